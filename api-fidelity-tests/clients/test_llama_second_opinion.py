"""llama.cpp speaks three surfaces itself: what it says natively on Messages and Responses is what our converters make of its Chat Completions.

Read by the official SDKs. Where llama.cpp departs from the official wire, the fact stands in a test of its own, and the SDK's reading counts.

Tools are not compared: with its own chat template the model's tools are ignored, and of two tool-aware ones (a plain one and Qwen's, tried with this
build) neither brought llama.cpp to enforce `tool_choice`, not on its own Chat Completions either.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request

import anthropic
import openai
import pytest

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.upstream.llama import Llama

pytestmark = pytest.mark.skipif(Llama().unavailable() is not None, reason=str(Llama().unavailable()))

CHAT, RESPONSES, MESSAGES = "openai-chat-completions", "openai-responses", "anthropic-messages"
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
PROMPT = "Name a colour."
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
# How a Messages and a Responses client ask; llama.cpp's own Responses knows the schema under Chat's name only, its Messages not at all.
TURN = {"messages": [{"role": "user", "content": PROMPT}]}
ENDS = ("response.completed", "response.incomplete")
LIMITS = {"text": 64, "truncated": 16, "stop": 64}


def routes():
    head = '[auth]\nmode = "host"\n[providers.llama]\nbase_url = "http://127.0.0.1:9"\nengine = "llama-cpp"\n'

    more = [
        f'[[routes]]\nroute_id = "{surface}"\nupstream_model = "model"\nmodels = ["{surface}"]\nprovider = "llama"\n[[routes.api_bindings]]\n'
        f'surface = "{surface}"\npath = "{path}"\nfeatures = ["streaming", "structured-output"]\n'
        for surface, path in PATHS.items()
    ]
    return build(head + "\n".join(more))


class Kept:
    """The model in the server's own loop, where it has to be stopped."""

    def __init__(self):
        self.model = Llama()

    async def __call__(self, scope, receive, send):
        self.loop = asyncio.get_running_loop()
        await self.model(scope, receive, send)


@pytest.fixture(scope="module")
def llama(server):
    app = Kept()
    server.app = Gateway(catalog=routes(), upstream=app)
    yield server.url
    asyncio.run_coroutine_threadsafe(app.model.aclose(), app.loop).result(30)


def by_messages(url, model, *, stream, limit, **more):
    """What the anthropic SDK makes of it: text, reason, tokens read and written."""
    asked = {"model": model, "max_tokens": limit, "extra_body": {"temperature": 0}, **TURN, **more}
    with anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
    usage = answer.usage
    text = "".join(block.text for block in answer.content if block.type == "text")
    return text, answer.stop_reason, (usage.input_tokens + (usage.cache_read_input_tokens or 0), usage.output_tokens)


def by_responses(url, model, *, stream, limit, **more):
    """What the openai SDK makes of it; of a stream its terminal."""
    asked = {"model": model, "input": PROMPT, "max_output_tokens": limit, "temperature": 0, **more}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
        if stream:
            ends = [one.response for one in client.responses.create(**asked, stream=True) if one.type in ENDS]
            assert len(ends) == 1
            answer = ends[0]
        else:
            answer = client.responses.create(**asked)
    why = answer.incomplete_details.reason if answer.status == "incomplete" and answer.incomplete_details else answer.status
    return answer.output_text, why, (answer.usage.input_tokens, answer.usage.output_tokens)


def settled(read, *arguments, **options):
    """The answer to a prompt that llama.cpp has cached: its sums differ in the last bits from those of a fresh one, and so may a greedy choice."""
    read(*arguments, **options)
    return read(*arguments, **options)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", LIMITS)
def test_messages_agree(llama, case, stream):
    more = {"stop_sequences": ["colour"]} if case == "stop" else {}
    native = settled(by_messages, llama, MESSAGES, stream=stream, limit=LIMITS[case], **more)
    assert settled(by_messages, llama, CHAT, stream=stream, limit=LIMITS[case], **more) == native
    text, reason, (_, written) = native
    assert text
    assert reason == ("max_tokens" if case == "truncated" else "end_turn")
    assert (written == LIMITS[case]) == (case == "truncated")
    assert ("colour" in text) == (case != "stop")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", ["text", "truncated"])
def test_responses_agree(llama, case, stream):
    text, reason, usage = settled(by_responses, llama, RESPONSES, stream=stream, limit=LIMITS[case])
    # llama.cpp says `completed` of an answer that the limit cut: the tokens tell.
    assert (reason, usage[1] == LIMITS[case]) == ("completed", case == "truncated")
    cut = "max_output_tokens" if case == "truncated" else "completed"
    assert settled(by_responses, llama, CHAT, stream=stream, limit=LIMITS[case]) == (text, cut, usage)


@pytest.mark.parametrize("stream", [False, True])
def test_an_enforced_schema_agrees(llama, stream):
    wish = {"text": {"format": {"type": "json_schema", "name": "r", "strict": True, "schema": SCHEMA}}}
    said = settled(by_responses, llama, CHAT, stream=stream, limit=64, **wish)
    assert (json.loads(said[0])["colour"] in ("red", "blue"), said[1]) == (True, "completed")
    chat = {"model": CHAT, "temperature": 0, "max_completion_tokens": 64, **TURN}
    chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "r", "strict": True, "schema": SCHEMA}}
    answer = post(llama, PATHS[CHAT], chat)
    native = answer["choices"][0]["message"]["content"], (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"])
    assert (said[0], said[2]) == native
    text, reason, usage = settled(
        by_messages, llama, CHAT, stream=stream, limit=64, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
    )
    assert ((text, usage), reason) == (native, "end_turn")


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        whole = answer.read()
    return json.loads(whole) if answer.headers["content-type"].startswith("application/json") else whole.decode()


def test_where_llama_cpp_departs_from_the_wire(llama):
    stopped = post(llama, PATHS[MESSAGES], {"model": MESSAGES, "max_tokens": 64, "temperature": 0, "stop_sequences": ["colour"], **TURN})
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("end_turn", "colour")  # the API says `stop_sequence`
    stream = post(llama, PATHS[RESPONSES], {"model": RESPONSES, "input": PROMPT, "max_output_tokens": 16, "stream": True})
    events = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
    assert not any("sequence_number" in event or "output_index" in event for event in events)  # the API numbers every event
    assert "usage" not in events[0]["response"]
    assert "output" not in events[0]["response"]  # the SDK's type requires it
    free = by_responses(
        llama, RESPONSES, stream=False, limit=64, text={"format": {"type": "json_schema", "name": "r", "strict": True, "schema": SCHEMA}}
    )
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(free[0])  # its Responses does not read `text.format`
