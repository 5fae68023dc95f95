"""llama.cpp speaks Messages and Responses itself: what it says there is what our converters make of its Chat Completions, streamed and not.

The official SDKs read everything. All ways lead to one running model with one prompt in its cache, so a greedy answer has to agree in its text, its
calls, its reason and every number of its usage. Where llama.cpp leaves the official wire, the fact stands in a table or in a test of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import socket
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai
import pytest
import uvicorn

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.surfaces import CHAT, MESSAGES, RESPONSES
from asgi_surface.upstream.llama import Llama

pytestmark = pytest.mark.skipif(Llama().unavailable() is not None, reason=str(Llama().unavailable()))

# The model's own template leaves tools out. llama.cpp finds out from a template how a call is written and makes a grammar of it for a choice that is
# `required`. Where calls begin with a marker such as `<tool_call>`, that grammar lets any text stand before it, in which a small model loses itself;
# a call that is a name, a line feed and arguments leaves no such room. Turns and instructions are those of the model's own template.
TEMPLATE = """\
{%- for message in messages %}
  {{- '<|im_start|>' + message.role + '\\n' }}
  {%- if loop.first and tools %}
    {%- for tool in tools %}{{- tool | tojson + '\\n' }}{%- endfor %}
  {%- endif %}
  {{- message.content or '' }}
  {%- for call in message.tool_calls or [] %}
    {{- call.function.name + '\\n' + call.function.arguments | tojson }}
  {%- endfor %}
  {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

# One route for each of llama.cpp's surfaces, under that surface's name: a client of another surface is converted.
ROUTES = """
[auth]
mode = "host"
[providers.llama]
base_url = "http://127.0.0.1:9"
engine = "llama-cpp"
[policies.chats-name-too]
surface = "openai-responses"
extends = "openai-responses-default"
allowed_fields = ["model", "instructions", "input", "max_output_tokens", "temperature", "stream", "tools", "tool_choice", "text", "response_format"]
"""
ROUTE = """
[[routes]]
route_id = "{surface}"
upstream_model = "model"
models = ["{surface}"]
provider = "llama"
[[routes.api_bindings]]
surface = "{surface}"
path = "{path}"
features = ["streaming", "tools", "structured-output"]
{policy}
"""
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
POLICIES = {RESPONSES: 'request_policy = "chats-name-too"'}

RULE, WISH = "Be brief.", "Name a colour."
LIMIT, CUT = 48, 4
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
NAMED = {"name": "wall", "strict": True, "schema": SCHEMA}
PAINT = {"name": "paint", "description": "Paints the wall"}
TOOL = {"type": "function", **PAINT, "parameters": SCHEMA, "strict": True}
BY_TEXT = {"text": {"format": {"type": "json_schema", **NAMED}}}
BY_CONFIG = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
BY_CHATS_NAME = {"extra_body": {"response_format": {"type": "json_schema", "json_schema": NAMED}}}
FORCED = {
    MESSAGES: {"tools": [{**PAINT, "input_schema": SCHEMA}], "tool_choice": {"type": "any"}},
    RESPONSES: {"tools": [TOOL], "tool_choice": "required"},
}
DONE = {
    MESSAGES: {
        "messages": [
            {"role": "user", "content": WISH},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "paint", "input": {"colour": "blue"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "painted"}]},
        ]
    },
    RESPONSES: {
        "input": [
            {"role": "user", "content": WISH},
            {"type": "function_call", "call_id": "call_1", "name": "paint", "arguments": '{"colour": "blue"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "painted"},
        ]
    },
}


class Heard(NamedTuple):
    """What an SDK made of an answer: `usage` counts what was read anew, what was read from the cache, and what was written."""

    text: str
    calls: tuple[tuple[str, Any], ...]
    reason: str
    stop: str | None
    usage: tuple[int, int, int]


class Case(NamedTuple):
    """How a client asks, and how llama.cpp's own surface, or another of its own, is asked where that differs."""

    asked: dict[str, Any]
    limit: int = LIMIT
    native: tuple[str, dict[str, Any]] | None = None


CASES = {
    (MESSAGES, "text"): Case({}),
    (MESSAGES, "truncated"): Case({}, CUT),
    (MESSAGES, "schema"): Case(BY_CONFIG, native=(RESPONSES, BY_CHATS_NAME)),
    (MESSAGES, "called"): Case(FORCED[MESSAGES]),
    (MESSAGES, "answered"): Case(DONE[MESSAGES]),
    (RESPONSES, "text"): Case({}),
    (RESPONSES, "truncated"): Case({}, CUT),
    (RESPONSES, "schema"): Case(BY_TEXT, native=(RESPONSES, BY_CHATS_NAME)),
    (RESPONSES, "called"): Case(FORCED[RESPONSES]),
    (RESPONSES, "cut call"): Case(FORCED[RESPONSES], CUT),
    (RESPONSES, "answered"): Case(DONE[RESPONSES]),
}

REASONS = {"end_turn": "end", "max_tokens": "cut", "tool_use": "call", "max_output_tokens": "cut"}

# llama.cpp's own Responses says `completed` of an answer that the limit cut.
NEVER_CUT = {RESPONSES}


class Bench:
    """The SDKs at the served gateway; they live in the loop that the model lives in."""

    def __init__(self, runner, url, http):
        self.runner, self.url, self.http = runner, url, http
        self.openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http)
        self.anthropic = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, http_client=http)

    def hear(self, surface, route, *, stream=False, limit=LIMIT, **asked):
        """What a client of `surface` hears from the binding that speaks `route`."""
        return self.runner.run({MESSAGES: self._messages, RESPONSES: self._responses}[surface](route, stream, limit, asked))

    def all(self, surface, case):
        """Natively and converted, each not streamed and streamed. llama.cpp's sums differ in the last bits between a prompt that it reads and one
        that it has in its cache, and so may a greedy choice: a first call puts it there.
        """
        origin, native = case.native or (surface, case.asked)
        self.hear(origin, origin, limit=1, **native)
        ways = [(origin, origin, native), (surface, CHAT, case.asked)]
        return [self.hear(one, route, stream=stream, limit=case.limit, **asked) for one, route, asked in ways for stream in (False, True)]

    def post(self, surface, **body):
        """The bytes of an answer that llama.cpp gives on a surface of its own."""

        async def post():
            usual = {"model": surface, "temperature": 0}
            return (await self.http.post(self.url + PATHS[surface], json={**usual, **body})).text

        return self.runner.run(post())

    async def _messages(self, route, stream, limit, asked):
        usual = {
            "model": route,
            "max_tokens": limit,
            "system": RULE,
            "messages": [{"role": "user", "content": WISH}],
            "extra_body": {"temperature": 0},
        }
        if stream:
            async with self.anthropic.messages.stream(**usual | asked) as events:
                answer = await events.get_final_message()
        else:
            answer = await self.anthropic.messages.create(**usual | asked)
        text = "".join(block.text for block in answer.content if block.type == "text")
        calls = tuple((block.name, block.input) for block in answer.content if block.type == "tool_use" and block.id)
        read = (answer.usage.input_tokens, answer.usage.cache_read_input_tokens)
        return Heard(text, calls, REASONS[answer.stop_reason], answer.stop_sequence, (*read, answer.usage.output_tokens))

    async def _responses(self, route, stream, limit, asked):
        usual = {"model": route, "max_output_tokens": limit, "instructions": RULE, "input": WISH, "temperature": 0} | asked
        if stream and route == CHAT:
            async with self.openai.responses.stream(**usual) as events:
                answer = await _end(events)
        elif stream:
            answer = await _end(await self.openai.responses.create(**usual, stream=True))
        else:
            answer = await self.openai.responses.create(**usual)
        calls = tuple((item.name, item.arguments) for item in answer.output if item.type == "function_call" and item.call_id)
        reason = REASONS[answer.incomplete_details.reason] if answer.status == "incomplete" else "call" if calls else "end"
        cached = answer.usage.input_tokens_details.cached_tokens
        return Heard(answer.output_text, calls, reason, None, (answer.usage.input_tokens - cached, cached, answer.usage.output_tokens))


async def _end(events):
    """The answer that the last event holds. Its text is that of the deltas."""
    heard = [event async for event in events]
    answer = heard[-1].response
    assert "".join(event.delta for event in heard if event.type == "response.output_text.delta") == answer.output_text
    return answer


@contextlib.asynccontextmanager
async def _served(app):
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


def _start_with_tools(runner, model, patch):
    """Starts the model with the template above, and on one thread: two wait for each other by spinning, and on a busy machine that takes ten times as
    long.
    """
    xllamacpp = importlib.import_module("xllamacpp")
    made = xllamacpp.CommonParams

    def params():
        one = made()
        one.chat_template = TEMPLATE
        one.cpuparams.n_threads = one.cpuparams_batch.n_threads = 1
        return one

    patch.setattr(xllamacpp, "CommonParams", params)
    runner.run(model.warm())


@pytest.fixture(scope="module")
def bench():
    model, closing = Llama(), contextlib.AsyncExitStack()
    routes = (ROUTE.format(surface=surface, path=path, policy=POLICIES.get(surface, "")) for surface, path in PATHS.items())
    gateway = Gateway(catalog=build(ROUTES + "".join(routes)), upstream=model)
    with asyncio.Runner() as runner:
        with pytest.MonkeyPatch.context() as patch:
            _start_with_tools(runner, model, patch)
        closing.push_async_callback(model.aclose)
        url = runner.run(closing.enter_async_context(_served(gateway)))
        http = runner.run(closing.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=300)))
        yield Bench(runner, url, http)
        runner.run(closing.aclose())


@pytest.mark.parametrize(("surface", "name"), CASES)
def test_both_ways_agree(bench, surface, name):
    case = CASES[surface, name]
    native, native_stream, converted, converted_stream = bench.all(surface, case)
    assert (native, converted) == (native_stream, converted_stream)
    written = converted.usage[2]
    assert converted.reason == ("cut" if written == case.limit else "call" if converted.calls else "end")
    cut = converted.reason == "cut" and surface in NEVER_CUT
    assert native == converted._replace(reason="call" if cut and converted.calls else "end" if cut else converted.reason)
    assert bool(converted.calls) == ("call" in name)
    assert bool(converted.text) == ("call" not in name)
    assert (written == case.limit) == (case.limit == CUT) or name in {"text", "answered"}  # a free answer ends where it likes


def test_a_grammar_is_enforced(bench):
    """What the cases of a schema and of a forced call rest on."""
    said = bench.hear(MESSAGES, CHAT, **BY_CONFIG)
    assert json.loads(said.text)["colour"] in {"red", "blue"}
    ((name, arguments),) = bench.hear(MESSAGES, MESSAGES, **FORCED[MESSAGES]).calls
    assert (name, arguments["colour"] in {"red", "blue"}, list(arguments)) == ("paint", True, ["colour"])


def test_a_stop_sequence(bench):
    _, whole = (bench.hear(MESSAGES, MESSAGES).text for _ in range(2))
    stop = max(whole.split()[1:], key=len)
    native, native_stream, converted, converted_stream = bench.all(MESSAGES, Case({"stop_sequences": [stop]}))
    assert (native, converted) == (native_stream, converted_stream)
    # llama.cpp's own Messages names the sequence, and calls the reason `end_turn`, where the API says `stop_sequence`. Its Chat does not name it.
    assert native == converted._replace(stop=stop)
    assert (converted.text, converted.reason, converted.stop) == (whole.partition(stop)[0], "end", None)


def test_half_a_call_on_messages(bench):
    native, native_stream, converted, converted_stream = bench.all(MESSAGES, Case(FORCED[MESSAGES], CUT))
    assert native == native_stream == converted_stream
    assert (native.reason, native.calls) == ("cut", (("paint", {}),))
    # A document has no place for half of an object. llama.cpp says an empty one there, as if the call were whole; ours has no such block.
    assert converted == native._replace(calls=())


# Where llama.cpp leaves the wire ------------------------------------------------------------------------------------------------------------------


def _events(body):
    return [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")]


def test_its_responses_stream_has_no_numbers(bench):
    text = _events(bench.post(RESPONSES, input=WISH, max_output_tokens=CUT, stream=True))
    call = _events(bench.post(RESPONSES, input=WISH, max_output_tokens=LIMIT, stream=True, **FORCED[RESPONSES]))
    # The API has all three, the first in every event.
    assert {"sequence_number", "output_index", "content_index"}.isdisjoint(itertools.chain(*text, *call))
    # The SDK's type requires `model`, `output`, `tools` and more of every response.
    assert [set(event["response"]) for event in text[:2]] == [{"id", "object", "status"}] * 2
    assert "response.function_call_arguments.done" not in {event["type"] for event in call}

    # So the SDK's own accumulation fails at the first piece of text, and its last event is what a client has.
    async def accumulated():
        async with bench.openai.responses.stream(model=RESPONSES, input=WISH, max_output_tokens=CUT) as events:
            await events.until_done()

    with pytest.raises(TypeError, match="list indices"):
        bench.runner.run(accumulated())


def test_its_messages_stream_begins_a_call_without_input(bench):
    asked = {"messages": [{"role": "user", "content": WISH}], "max_tokens": LIMIT, "stream": True}
    (begun,) = [event for event in _events(bench.post(MESSAGES, **asked, **FORCED[MESSAGES])) if event["type"] == "content_block_start"]
    assert set(begun["content_block"]) == {"type", "id", "name"}  # the API says `input: {}`


@pytest.mark.parametrize(("surface", "asked"), [(MESSAGES, BY_CONFIG), (RESPONSES, BY_TEXT)])
def test_its_own_surfaces_read_no_schema_by_the_official_name(bench, surface, asked):
    _, free, wished = (bench.hear(surface, surface, **one) for one in ({}, {}, asked))
    assert wished == free


def test_its_choice_of_one_tool_is_no_choice_but_on_messages(bench):
    """Its Chat and its Responses read a choice that is no string as `auto`. The model then says no call, which with this template is an error."""
    wish, function = [{"role": "user", "content": WISH}], {"type": "function", "function": {**PAINT, "parameters": SCHEMA}}
    by_name = {
        CHAT: {"messages": wish, "tools": [function], "tool_choice": {"type": "function", "function": {"name": "paint"}}, "max_tokens": 24},
        RESPONSES: {"input": wish, "tools": [TOOL], "tool_choice": {"type": "function", "name": "paint"}, "max_output_tokens": 24},
    }
    for surface, body in by_name.items():
        said = bench.post(surface, **body)
        assert (json.loads(said)["error"]["code"], bench.post(surface, **body | {"tool_choice": "auto"})) == (500, said)
        assert '"name":"paint"' in bench.post(surface, **body | {"tool_choice": "required"})
    heard = bench.hear(MESSAGES, MESSAGES, **FORCED[MESSAGES] | {"tool_choice": {"type": "tool", "name": "paint"}})
    assert [name for name, _ in heard.calls] == ["paint"]
