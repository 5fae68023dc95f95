"""The official SDKs, sync and async, against a served gateway: what they read, what they raise, and how often they ask again.

One set of async drivers serves both kinds of client: what a sync one returns at once is not awaited. The streams are those of the corpus.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as google

from asgi_surface.surfaces import CARRIES

CORPUS = Path(__file__).parents[1] / "corpus"
CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
FOLDERS = {CHAT: "native--chat", RESPONSES: "native--responses", MESSAGES: "native--messages", GEMINI: "native--gemini"}
SSE = ((b"content-type", b"text/event-stream"),)
HI = [{"role": "user", "content": "hi"}]


class Said(NamedTuple):
    """What a client made of an answer: text, calls by name and arguments, why it ended, tokens written."""

    text: str
    calls: tuple[tuple[str, Any], ...]
    stop: str | None
    output: int | None


async def got(value):
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    if hasattr(stream, "__aiter__"):
        async for one in stream:
            yield one
    else:
        for one in stream:
            yield one


@contextlib.asynccontextmanager
async def entered(manager):
    if hasattr(manager, "__aenter__"):
        async with manager as inner:
            yield inner
    else:
        with manager as inner:
            yield inner


# One driver a surface: `ask` and `begin` send, `read` and `fold` make `Said` of an answer and of a stream's events, `helped` uses the SDK's helper.


class Chat:
    sync, asynchronous, base = openai.OpenAI, openai.AsyncOpenAI, "/v1"
    request: ClassVar[dict[str, Any]] = {"model": "m", "messages": HI}

    def ask(self, client, **more):
        return got(client.chat.completions.create(**{**self.request, **more}))

    def begin(self, client):
        return self.ask(client, stream=True)

    def read(self, answer):
        choice = answer.choices[0]
        calls = tuple((call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ())
        return Said(choice.message.content or "", calls, choice.finish_reason, answer.usage and answer.usage.completion_tokens)

    def fold(self, events):
        deltas = [choice.delta for event in events for choice in event.choices if choice.index == 0]
        pieces: dict[int, list[str]] = {}
        for call in (call for delta in deltas for call in delta.tool_calls or ()):
            pieces.setdefault(call.index, []).extend(part for part in (call.function.name, call.function.arguments or "") if part is not None)
        calls = tuple((name, json.loads("".join(arguments))) for name, *arguments in pieces.values())
        stop = next(choice.finish_reason for event in events for choice in event.choices if choice.finish_reason)
        usage = next((event.usage for event in events if event.usage), None)
        return Said("".join(delta.content or "" for delta in deltas), calls, stop, usage and usage.completion_tokens)

    async def helped(self, client):
        async with entered(client.chat.completions.stream(**self.request)) as stream:
            return self.read(await got(stream.get_final_completion()))


class Responses(Chat):
    request: ClassVar[dict[str, Any]] = {"model": "m", "input": "hi"}

    def ask(self, client, **more):
        return got(client.responses.create(**{**self.request, **more}))

    def read(self, answer):
        calls = tuple((item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call")
        stop = answer.incomplete_details.reason if answer.incomplete_details else answer.status
        return Said(answer.output_text, calls, stop, answer.usage.output_tokens)

    def fold(self, events):
        said = self.read(events[-1].response)
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == said.text
        return said

    async def helped(self, client):
        async with entered(client.responses.stream(**self.request)) as stream:
            events = [event async for event in each(stream)]
        return self.fold(events)


class Messages(Chat):
    sync, asynchronous, base = anthropic.Anthropic, anthropic.AsyncAnthropic, ""
    request: ClassVar[dict[str, Any]] = {"model": "m", "max_tokens": 9, "messages": HI}

    def ask(self, client, **more):
        return got(client.messages.create(**{**self.request, **more}))

    def read(self, answer):
        text = "".join(block.text for block in answer.content if block.type == "text")
        calls = tuple((block.name, block.input) for block in answer.content if block.type == "tool_use")
        return Said(text, calls, answer.stop_reason, answer.usage.output_tokens)

    def fold(self, events):
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        text = "".join(delta.text for delta in deltas if delta.type == "text_delta")
        names = [event.content_block.name for event in events if event.type == "content_block_start" and event.content_block.type == "tool_use"]
        arguments = "".join(delta.partial_json for delta in deltas if delta.type == "input_json_delta")
        end = next(event for event in events if event.type == "message_delta")
        return Said(text, tuple((name, json.loads(arguments)) for name in names), end.delta.stop_reason, end.usage.output_tokens)

    async def helped(self, client):
        async with entered(client.messages.stream(**self.request)) as stream:
            return self.read(await got(stream.get_final_message()))


class Gemini(Chat):
    request: ClassVar[dict[str, Any]] = {"model": "m", "contents": "hi"}

    def ask(self, client, **more):
        return got(client.models.generate_content(**{**self.request, **more}))

    def begin(self, client):
        return got(client.models.generate_content_stream(**self.request))

    def read(self, answer):
        return self.fold([answer])

    def fold(self, events):
        parts = [part for event in events for part in event.candidates[0].content.parts if not part.thought]
        calls = tuple((part.function_call.name, part.function_call.args) for part in parts if part.function_call)
        stop, usage = events[-1].candidates[0].finish_reason, events[-1].usage_metadata
        return Said("".join(part.text or "" for part in parts), calls, stop.value, usage.candidates_token_count)

    async def helped(self, client):
        stream = await got(client.chats.create(model="m").send_message_stream("hi"))
        return self.fold([event async for event in each(stream)])


DRIVERS = {CHAT: Chat(), RESPONSES: Responses(), MESSAGES: Messages(), GEMINI: Gemini()}
KINDS = ["sync", "async"]
every_client = pytest.mark.parametrize("kind", KINDS)


@contextlib.asynccontextmanager
async def client_of(surface, kind, url):
    """An SDK's client with its default retries, closed at the end."""
    if surface == GEMINI:
        with genai.Client(api_key="k", http_options={"base_url": url}) as client:
            try:
                yield client.aio if kind == "async" else client
            finally:
                await client.aio.aclose()
        return
    driver = DRIVERS[surface]
    made = (driver.asynchronous if kind == "async" else driver.sync)(api_key="k", base_url=url + driver.base)
    async with entered(made) as client:
        yield client


@pytest.fixture
def use(server, gateway, upstream):
    """Serves a gateway with one native binding and lets one client use it: what the use gave, and the upstream."""

    def run(surface, kind, task, **script):
        app = upstream(**script)
        server.app = gateway(app, surface, features=sorted(CARRIES[surface]))

        async def main():
            async with client_of(surface, kind, server.url) as client:
                return await task(DRIVERS[surface], client)

        return asyncio.run(main()), app

    return run


@pytest.fixture(autouse=True)
def _without_delays(monkeypatch):
    """The SDKs wait half a second and more before they ask again."""
    for sdk in (openai, anthropic):
        monkeypatch.setattr(sdk._base_client, "INITIAL_RETRY_DELAY", 0.001)


async def asks(driver, client):
    return driver.read(await driver.ask(client))


async def streams(driver, client):
    return driver.fold([event async for event in each(await driver.begin(client))])


# Answers.

U = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
RU = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
CALL = ("look", {"a": "é"})


def chat(message, reason):
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [choice], "usage": U}


def responses(item, status="completed", why=None):
    head = {"id": "r", "object": "response", "created_at": 1, "model": "up", "status": status, "incomplete_details": why and {"reason": why}}
    return {**head, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": RU}


def said(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": content}


def messages(block, reason):
    usage = {"input_tokens": 5, "output_tokens": 7}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": reason, "stop_sequence": None}
    return {**head, "content": [block], "usage": usage}


def gemini(part, reason):
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": reason, "index": 0}], "usageMetadata": usage}


TOOL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a":"é"}'}}
FUNCTION = {"id": "f", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "look", "arguments": '{"a":"é"}'}
DOCUMENTS = [
    (CHAT, chat({"content": "Grüße 🌍"}, "stop"), Said("Grüße 🌍", (), "stop", 7)),
    (CHAT, chat({"tool_calls": [TOOL]}, "tool_calls"), Said("", (CALL,), "tool_calls", 7)),
    (CHAT, chat({"content": "a"}, "length"), Said("a", (), "length", 7)),
    (RESPONSES, responses(said("Grüße 🌍")), Said("Grüße 🌍", (), "completed", 7)),
    (RESPONSES, responses(FUNCTION), Said("", (CALL,), "completed", 7)),
    (RESPONSES, responses(said("a"), "incomplete", "max_output_tokens"), Said("a", (), "max_output_tokens", 7)),
    (MESSAGES, messages({"type": "text", "text": "Grüße 🌍"}, "end_turn"), Said("Grüße 🌍", (), "end_turn", 7)),
    (MESSAGES, messages({"type": "tool_use", "id": "t", "name": "look", "input": {"a": "é"}}, "tool_use"), Said("", (CALL,), "tool_use", 7)),
    (MESSAGES, messages({"type": "text", "text": "a"}, "max_tokens"), Said("a", (), "max_tokens", 7)),
    (GEMINI, gemini({"text": "Grüße 🌍"}, "STOP"), Said("Grüße 🌍", (), "STOP", 7)),
    (GEMINI, gemini({"functionCall": {"name": "look", "args": {"a": "é"}}}, "STOP"), Said("", (CALL,), "STOP", 7)),
    (GEMINI, gemini({"text": "a"}, "MAX_TOKENS"), Said("a", (), "MAX_TOKENS", 7)),
]
ARGUMENTS = {"a": "é", "b": [1, {"c": "}]"}]}
STREAMS = [
    (CHAT, "text", Said("Grüße, 世界 🌍\u2028\\n\\ndata: {", (), "stop", 7)),
    (CHAT, "tools-crlf", Said("", (CALL, ("sum", {})), "tool_calls", 7)),
    (CHAT, "no-done", Said("a", (), "length", 7)),
    (RESPONSES, "text", Said("Grüße 🌍", (), "completed", 7)),
    (RESPONSES, "tools-crlf", Said("", (CALL,), "completed", 7)),
    (RESPONSES, "incomplete", Said("a", (), "max_output_tokens", 7)),
    (MESSAGES, "tools", Said("Grüße 🌍", (CALL,), "tool_use", 7)),
    (MESSAGES, "nameless-crlf", Said("a", (), "max_tokens", 7)),
    (GEMINI, "text-crlf", Said("Grüße 🌍", (), "STOP", 5)),
    (GEMINI, "calls", Said("ab", (("look", ARGUMENTS),), "MAX_TOKENS", 5)),
]


def recorded(surface, name):
    return (CORPUS / FOLDERS[surface] / name / "upstream.sse").read_bytes()


@every_client
@pytest.mark.parametrize(("surface", "document", "expected"), DOCUMENTS)
def test_a_whole_answer(use, kind, surface, document, expected):
    answer, app = use(surface, kind, asks, chunks=[json.dumps(document).encode()])
    assert answer == expected
    assert len(app.calls) == 1


async def is_streamed_both_ways(driver, client):
    try:
        helped = await driver.helped(client)
    except openai.LengthFinishReasonError as error:  # what Chat's helper makes of a truncated answer
        helped = driver.read(error.completion)
    return await streams(driver, client), helped


@every_client
@pytest.mark.parametrize(("surface", "name", "expected"), STREAMS)
def test_a_stream(use, kind, surface, name, expected):
    answers, app = use(surface, kind, is_streamed_both_ways, chunks=[recorded(surface, name)], headers=SSE)
    assert answers == (expected, expected)
    assert len(app.calls) == 2


# Errors.

FAILURES = {
    # The upstream's status: what OpenAI's, Anthropic's and Google's SDKs raise, the status they see, and how often the first two ask.
    400: (openai.BadRequestError, anthropic.BadRequestError, google.ClientError, 400, 1),
    401: (openai.InternalServerError, anthropic.InternalServerError, google.ServerError, 502, 1),
    404: (openai.NotFoundError, anthropic.NotFoundError, google.ClientError, 404, 1),
    429: (openai.RateLimitError, anthropic.RateLimitError, google.ClientError, 429, 3),
    500: (openai.InternalServerError, anthropic.InternalServerError, google.ServerError, 500, 1),
    503: (openai.InternalServerError, anthropic.ServiceUnavailableError, google.ServerError, 503, 3),
    529: (openai.InternalServerError, anthropic.OverloadedError, google.ServerError, 503, 3),
}
ENVELOPES = {
    CHAT: {"error": {"message": "no such thing", "type": "t", "param": None, "code": "c"}},
    MESSAGES: {"type": "error", "error": {"type": "t", "message": "no such thing"}},
    GEMINI: {"error": {"code": 0, "message": "no such thing", "status": "S"}},
}
ENVELOPES[RESPONSES] = ENVELOPES[CHAT]
PLACE = {CHAT: 0, RESPONSES: 0, MESSAGES: 1, GEMINI: 2}
ERRORS = {0: openai.APIError, 1: anthropic.APIError, 2: google.APIError}


def status_of(error):
    return error.code if isinstance(error, google.APIError) else error.status_code


def raising(task):
    """The task, for what it raises."""

    async def main(driver, client):
        with pytest.raises((openai.APIError, anthropic.APIError, google.APIError)) as raised:
            await task(driver, client)
        return raised.value

    return main


@pytest.mark.parametrize("task", [asks, streams])
@pytest.mark.parametrize("surface", DRIVERS)
@pytest.mark.parametrize("status", FAILURES)
def test_an_upstream_error_is_the_sdks_own(use, surface, status, task):
    *kinds, seen, calls = FAILURES[status]
    kind = KINDS[task is streams]
    body = json.dumps(ENVELOPES[surface]).encode()
    error, app = use(surface, kind, raising(task), status=status, chunks=[body])
    assert type(error) is kinds[PLACE[surface]]
    assert status_of(error) == (529 if (surface, status) == (MESSAGES, 529) else seen)
    assert ("no such thing" in str(error)) == (status != 401), "what the operator's credential is refused for is no client's business"
    assert len(app.calls) == (1 if surface == GEMINI else calls)


@every_client
@pytest.mark.parametrize("surface", DRIVERS)
def test_an_unknown_model_asks_nobody(use, surface, kind):
    async def task(driver, client):
        return await driver.ask(client, model="other")

    error, app = use(surface, kind, raising(task))
    assert type(error) is {0: openai.NotFoundError, 1: anthropic.NotFoundError, 2: google.ClientError}[PLACE[surface]]
    assert (status_of(error), app.calls) == (404, [])


ODD = {
    CHAT: {"extra_body": {"unheard_of": 1}},
    RESPONSES: {"prompt": {"id": "p"}, "extra_body": {"access_programs": ["x"]}},
    MESSAGES: {"extra_body": {"unheard_of": 1}},
    GEMINI: {"config": {"http_options": {"extra_body": {"unheardOf": 1}}}},
}


@every_client
@pytest.mark.parametrize("surface", DRIVERS)
def test_a_rejection_names_the_place_and_asks_nobody(use, surface, kind):
    async def task(driver, client):
        return await driver.ask(client, **ODD[surface])

    error, app = use(surface, kind, raising(task))
    assert type(error) is {0: openai.BadRequestError, 1: anthropic.BadRequestError, 2: google.ClientError}[PLACE[surface]]
    name = {GEMINI: "unheardOf", RESPONSES: "access_programs"}.get(surface, "unheard_of")
    assert f"/{name}" in str(error)
    assert (status_of(error), app.calls) == (400, [])
    assert not isinstance(error, openai.APIError) or (error.param, error.code) == (name, "field_rejected")


# Streams that fail.


@every_client
@pytest.mark.parametrize(("surface", "name"), [(CHAT, "text"), (MESSAGES, "tools"), (GEMINI, "calls")])
def test_a_stream_that_breaks_off_raises(use, kind, surface, name):
    body = recorded(surface, name)
    cut = body.index(b"data:", body.index(b"data:") + 1)
    error, app = use(surface, kind, raising(streams), chunks=[body[: cut + 9]], headers=SSE, whole=False)
    assert isinstance(error, ERRORS[PLACE[surface]])
    assert "the upstream's stream was cut" in str(error)
    assert len(app.calls) == 1


@every_client
@pytest.mark.parametrize(("surface", "name", "words"), [(CHAT, "error", "Provider disconnected"), (MESSAGES, "overloaded", "Overloaded")])
def test_the_providers_own_error_in_a_stream_raises(use, kind, surface, name, words):
    error, app = use(surface, kind, raising(streams), chunks=[recorded(surface, name)], headers=SSE)
    assert isinstance(error, ERRORS[PLACE[surface]])
    assert words in str(error)
    assert len(app.calls) == 1


@every_client
@pytest.mark.parametrize(("name", "cut", "words"), [("failed", None, "The model failed."), ("text", 600, "the upstream's stream was cut")])
def test_a_failed_response_is_an_event(use, kind, name, cut, words):
    """The SDK raises nothing on `response.failed`: the client reads it, with the numbering of the stream."""

    async def task(driver, client):
        return [event async for event in each(await driver.begin(client))]

    events, _ = use(RESPONSES, kind, task, chunks=[recorded(RESPONSES, name)[:cut]], headers=SSE, whole=cut is None)
    assert (events[-1].type, events[-1].response.status, events[-1].response.id) == ("response.failed", "failed", "resp_1")
    assert (events[-1].response.error.code, events[-1].response.error.message) == ("server_error", words)
    assert [event.sequence_number for event in events] == [*range(len(events))]


@every_client
@pytest.mark.parametrize("surface", DRIVERS)
def test_a_stream_that_never_begins_has_a_status(use, kind, surface):
    error, app = use(surface, kind, raising(streams), chunks=[b": wait\n\n"], headers=SSE, whole=False)
    assert status_of(error) == 502
    assert len(app.calls) == 1, "what may have been carried out is not asked for twice"


@every_client
@pytest.mark.parametrize(("surface", "name"), [(CHAT, "text"), (RESPONSES, "text"), (MESSAGES, "tools"), (GEMINI, "calls")])
def test_a_client_that_leaves_in_mid_stream_is_felt_upstream(use, server, kind, surface, name, records):
    async def task(driver, client):
        stream = await driver.begin(client)
        events = each(stream)
        first = await anext(events)
        await events.aclose()
        await got(getattr(stream, "close", getattr(stream, "aclose", None))())
        return first

    body = recorded(surface, name)
    first, app = use(surface, kind, task, chunks=[body[: len(body) // 2], 60.0], headers=SSE)
    assert first is not None
    server.wait(lambda: app.cancelled == 1 and records)
    assert [record.ending for record in records] == ["disconnected"]


# Around an answer.


@every_client
@pytest.mark.parametrize("surface", [CHAT, MESSAGES, GEMINI])
def test_models_are_listed(use, kind, surface):
    async def task(_, client):
        pages = await got(client.models.list())
        names = [model.name if surface == GEMINI else model.id async for model in each(pages)]
        one = await got(client.models.get(model="m") if surface == GEMINI else client.models.retrieve("m"))
        return names, one.name if surface == GEMINI else one.id

    listed, app = use(surface, kind, task)
    prefix = "models/" if surface == GEMINI else ""
    assert listed == ([f"{prefix}m"], f"{prefix}m")
    assert app.calls == []


COUNTS = {MESSAGES: b'{"input_tokens": 7}', GEMINI: b'{"totalTokens": 7}'}


@every_client
@pytest.mark.parametrize("surface", COUNTS)
def test_tokens_are_counted_by_the_upstream(use, kind, surface):
    async def task(_, client):
        if surface == GEMINI:
            return (await got(client.models.count_tokens(model="m", contents="hi"))).total_tokens
        return (await got(client.messages.count_tokens(model="m", messages=HI))).input_tokens

    tokens, app = use(surface, kind, task, chunks=[COUNTS[surface]])
    assert tokens == 7
    assert app.calls[0].target == ("/v1beta/models/up-model:countTokens" if surface == GEMINI else "/v1/messages/count_tokens")
