"""The echo upstream: its directives, and that OpenAI's own SDK reads what it says."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx
import openai
import pytest
import uvicorn
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from asgi_surface.upstream.echo import Echo
from asgi_surface.upstream.echo_script import PATH
from asgi_surface.upstream.embedded import EMBEDDED

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TIME = {"type": "function", "function": {"name": "time"}}
CUSTOM = {"type": "custom", "custom": {"name": "shell"}}


def user(text, **members):
    return {"model": "echo-1", "messages": [{"role": "user", "content": text}], **members}


def events(reply):
    """The data of each SSE frame; what is not JSON stays text."""
    data = [frame.removeprefix(b"data: ") for frame in reply.body.split(b"\n\n") if frame]
    return [json.loads(item) if item.startswith(b"{") else item.decode() for item in data]


def completion(reply):
    """The choice of a JSON ask, after the SDK's own model has taken the answer strictly."""
    assert reply.status == 200, reply.body
    parsed = ChatCompletion.model_validate(reply.json, strict=True)
    assert parsed.usage.total_tokens == parsed.usage.prompt_tokens + parsed.usage.completion_tokens
    return parsed.choices[0]


def fold(reply):
    """A stream's chunks as (text, reasoning, refusal, calls, finish), after the SDK's own model has taken each chunk strictly."""
    *frames, done = events(reply)
    assert done == "[DONE]"
    chunks = [ChatCompletionChunk.model_validate(event, strict=True) for event in frames]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert [delta.role for delta in deltas] == ["assistant", *[None] * (len(deltas) - 1)]
    calls = {}
    for piece in (call for delta in deltas for call in delta.tool_calls or ()):
        seen = calls.setdefault(piece.index, [piece.id, piece.function.name, ""])
        assert (piece.id, piece.function.name) in ((seen[0], seen[1]), (None, None))
        seen[2] += piece.function.arguments
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert set(finishes[:-1]) == {None}
    said = ["".join(getattr(delta, name, None) or "" for delta in deltas) for name in ("content", "reasoning_content", "refusal")]
    return (*said, [tuple(call) for call in calls.values()], finishes[-1])


# text; then what is said, the reasoning, the refusal, the calls and the finish reason
DIRECTIVES = {
    "plain text is said again": ("Hello,\n  you", ("Hello,\n  you", "", "", [], "stop")),
    "no text is an empty answer": ("", ("", "", "", [], "stop")),
    "a directive goes with the space behind it": ("a [filter] b", ("a b", "", "", [], "content_filter")),
    "one call": ('[tool weather {"city": "Köln"}]', ("", "", "", [("weather", '{"city": "Köln"}')], "tool_calls")),
    "arguments may be absent": ("[tool weather]", ("", "", "", [("weather", "{}")], "tool_calls")),
    "text and parallel calls, brackets and directives in the arguments": (
        'one [tool a {"x": [[1], {"y": "]}[tool b]"}]} ] two [tool c-d.e {"long": "abcdefghijklmnopqrstuvwxyz"}] three',
        (
            "one two three",
            "",
            "",
            [("a", '{"x": [[1], {"y": "]}[tool b]"}]}'), ("c-d.e", '{"long": "abcdefghijklmnopqrstuvwxyz"}')],
            "tool_calls",
        ),
    ),
    "arguments that are no JSON are text": ('[tool a {"x": }]', ('[tool a {"x": }]', "", "", [], "stop")),
    "a tool without a name is text": ("[tool ] [tool !]", ("[tool ] [tool !]", "", "", [], "stop")),
    "reasoning comes before the answer": ("[reason first think] then say", ("then say", "first think", "", [], "stop")),
    "repeat": ("[repeat 3] ab c", ("ab c ab c ab c", "", "", [], "stop")),
    "repeat is bounded by its digits": ("[repeat 1000] [repeat 0] x", ("[repeat 1000] [repeat 0] x", "", "", [], "stop")),
    "length keeps half of the words": ("[length]a b  c", ("a b", "", "", [], "length")),
    "length with nothing to cut": ("a [length]", ("a", "", "", [], "length")),
    "filter outweighs calls": ("[filter] [tool a]", ("", "", "", [("a", "{}")], "content_filter")),
    "a refusal says nothing else": ("[refuse I cannot.] text [tool a]", ("", "", "I cannot.", [], "stop")),
    "a status that is no error is text": ("[error 200]", ("[error 200]", "", "", [], "stop")),
    "an empty value is text": ("[reason ] [refuse  ]", ("[reason ] [refuse  ]", "", "", [], "stop")),
    "an unknown word is text": ("[lengthy] [x]", ("[lengthy] [x]", "", "", [], "stop")),
    "pace shows in streams only": ("[pace 0.001] a b", ("a b", "", "", [], "stop")),
}


@pytest.mark.parametrize(("text", "expected"), DIRECTIVES.values(), ids=DIRECTIVES.keys())
def test_directives_shape_json_and_stream_alike(ask, text, expected):
    said, reason, refusal, calls, finish = expected

    choice = completion(ask(Echo(), PATH, user(text)))
    message = choice.message
    assert (message.content or "", getattr(message, "reasoning_content", ""), message.refusal or "", choice.finish_reason) == (
        said,
        reason,
        refusal,
        finish,
    )
    assert [(call.function.name, call.function.arguments) for call in message.tool_calls or ()] == calls
    assert (message.content is None) == bool(refusal or (calls and not said))

    *streamed, stream_calls, stream_finish = fold(ask(Echo(), PATH, user(text, stream=True)))
    assert (*streamed, stream_finish) == (said, reason, refusal, finish)
    assert [call[1:] for call in stream_calls] == calls
    assert len({call[0] for call in stream_calls}) == len(calls)


@pytest.mark.parametrize(
    ("members", "said", "finish"),
    [
        ({"max_tokens": 2}, "one two", "length"),
        ({"max_completion_tokens": 1, "max_tokens": 2}, "one", "length"),
        ({"max_tokens": 3}, "one two three", "stop"),
        ({"max_tokens": None}, "one two three", "stop"),
    ],
)
def test_a_token_is_a_word(ask, members, said, finish):
    reply = ask(Echo(), PATH, user("one two three", **members))
    choice = completion(reply)
    assert (choice.message.content, choice.finish_reason) == (said, finish)
    usage = reply.json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (3, len(said.split()))


def test_usage_counts_reasoning_refusals_and_calls(ask):
    usage = ask(Echo(), PATH, user('[reason a b] [tool t {"x": 1}] c')).json["usage"]
    assert usage == {"prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert ask(Echo(), PATH, user("[refuse a b c]")).json["usage"]["completion_tokens"] == 3


def test_repeating_stops_within_its_bound(ask):
    content = completion(ask(Echo(), PATH, user("[repeat 999] " + "x" * 400_000))).message.content
    assert content == " ".join(["x" * 400_000] * 2)
    assert len(completion(ask(Echo(), PATH, user("[repeat 2] " + "x" * 1_000_001))).message.content) == 1_000_001


@pytest.mark.parametrize(
    ("text", "members", "names"),
    [
        ("hi", {"tools": [WEATHER, TIME]}, []),
        ("hi", {"tools": [WEATHER, TIME], "tool_choice": "auto"}, []),
        ("hi", {"tools": [CUSTOM, WEATHER, TIME], "tool_choice": "required"}, ["weather"]),
        ("hi", {"tools": [WEATHER, TIME], "tool_choice": {"type": "function", "function": {"name": "time"}}}, ["time"]),
        ("[tool other]", {"tools": [WEATHER], "tool_choice": "required"}, ["other"]),
        ("[tool weather]", {"tools": [WEATHER], "tool_choice": "none"}, []),
        ("[tool a] [tool b]", {"tools": [WEATHER], "parallel_tool_calls": False}, ["a"]),
        ("[tool a] [tool b]", {"tools": [WEATHER], "parallel_tool_calls": True}, ["a", "b"]),
        ("hi", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, []),
        ("[refuse no]", {"tools": [WEATHER], "tool_choice": "required"}, []),
    ],
)
def test_tool_choice(ask, text, members, names):
    choice = completion(ask(Echo(), PATH, user(text, **members)))
    assert [call.function.name for call in choice.message.tool_calls or ()] == names
    assert choice.finish_reason == ("tool_calls" if names else "stop")


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "user", "content": "old"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "new"}], "new"),
        ([{"role": "user", "content": "asked"}, {"role": "assistant", "content": "begun"}], "asked"),
        ([{"role": "system", "content": "[tool a]"}], ""),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]}],
            "a\nb",
        ),
        ([{"role": "user", "content": "[tool f]"}, CALLED, {"role": "tool", "tool_call_id": "c", "content": " 21 [tool f]"}], "21 [tool f]"),
        ([CALLED, *({"role": "tool", "tool_call_id": "c", "content": text} for text in ("one", "two"))], "one\ntwo"),
        ([CALLED, {"role": "tool", "tool_call_id": "c", "content": "21"}, {"role": "user", "content": "thanks"}], "thanks"),
    ],
)
def test_which_message_is_answered(ask, messages, said):
    body = {"model": "m", "messages": messages}
    choice = completion(ask(Echo(), PATH, body))
    assert (choice.message.content, choice.finish_reason) == (said, "stop")
    assert fold(ask(Echo(), PATH, {**body, "stream": True}))[0] == said


def test_equal_requests_get_equal_bytes(ask):
    one, two, other = (ask(Echo(), PATH, user(text, stream=True)) for text in ("[tool a]", "[tool a]", "[tool a] x"))
    assert one.body == two.body
    assert events(one)[0]["id"].startswith("chatcmpl-echo-")
    assert events(one)[0]["id"] != events(other)[0]["id"]
    assert (events(one)[0]["created"], events(one)[0]["model"]) == (0, "echo-1")


def test_words_are_chunks_and_usage_comes_last_when_wanted(ask):
    reply = ask(Echo(), PATH, user("one two", stream=True, stream_options={"include_usage": True}))
    assert reply.headers["content-type"].startswith("text/event-stream")
    role, first, second, finish, usage, done = events(reply)
    assert [event["choices"][0]["delta"] for event in (role, first, second, finish)] == [
        {"role": "assistant", "content": ""},
        {"content": "one "},
        {"content": "two"},
        {},
    ]
    assert [event["usage"] for event in (role, first, second, finish)] == [None] * 4
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 2, "[DONE]")
    for without in ({}, {"stream_options": None}, {"stream_options": {"include_usage": False}}):
        assert not any("usage" in event for event in events(ask(Echo(), PATH, user("x", stream=True, **without)))[:-1])


def test_pace_pauses_between_chunks(ask, monkeypatch):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)
    ask(Echo(), PATH, user("[pace 12.5] a b", stream=True))
    assert pauses == [0, 12.5, 12.5, 12.5]


ERRORS = [
    (400, "invalid_request_error", None),
    (401, "invalid_request_error", "invalid_api_key"),
    (404, "invalid_request_error", "model_not_found"),
    (429, "requests", "rate_limit_exceeded"),
    (503, "server_error", None),
]


@pytest.mark.parametrize(("status", "kind", "code"), ERRORS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_directive_is_an_http_error(ask, status, kind, code, stream):
    reply = ask(Echo(), PATH, user(f"[error {status}] hi", stream=stream))
    error = reply.json["error"]
    assert (reply.status, error["type"], error["param"], error["code"]) == (status, kind, None, code)
    assert reply.headers["content-type"] == "application/json"


HELLO = [{"role": "user", "content": "hi"}]
BAD = {
    "no JSON": (b"{", None),
    "no object": (b"[]", None),
    "no UTF-8": (b'{"model": "\xff"}', None),
    "nested too deeply": (b'{"x": ' + b"[" * 100_000, None),
    "no model": ({"messages": HELLO}, "model"),
    "an empty model": ({"model": "", "messages": HELLO}, "model"),
    "no messages": ({"model": "m"}, "messages"),
    "empty messages": ({"model": "m", "messages": []}, "messages"),
    "a message without role": ({"model": "m", "messages": [{"content": "x"}]}, "messages[0].role"),
    "an unknown role": ({"model": "m", "messages": [*HELLO, {"role": "robot"}]}, "messages[1].role"),
    "content of another shape": ({"model": "m", "messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
    "stream is no flag": (user("x", stream="yes"), "stream"),
    "no room for a token": (user("x", max_completion_tokens=0), "max_completion_tokens"),
    "several choices": (user("x", n=2), "n"),
    "an unknown tool choice": (user("x", tool_choice="any"), "tool_choice"),
    "a choice without tools": (user("x", tool_choice="required"), "tool_choice"),
    "a choice of a tool that is not there": (
        user("x", tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "no"}}),
        "tool_choice",
    ),
}


@pytest.mark.parametrize(("body", "param"), BAD.values(), ids=BAD.keys())
def test_a_bad_request_names_its_place(ask, body, param):
    reply = ask(Echo(), PATH, body)
    error = reply.json["error"]
    assert (reply.status, error["type"], error["param"], error["code"]) == (400, "invalid_request_error", param, None)
    assert error["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "allow"),
    [
        ("POST", "/v1/responses", 404, "unknown_url", None),
        ("GET", "/v1/models", 404, "unknown_url", None),
        ("GET", "/v1/chat/completions", 405, "method_not_supported", "POST"),
    ],
)
def test_other_paths_and_methods(ask, method, path, status, code, allow):
    reply = ask(Echo(), path, method=method)
    assert (reply.status, reply.json["error"]["code"], reply.headers.get("allow")) == (status, code, allow)


def test_a_client_that_leaves_before_its_body_is_whole_gets_nothing():
    async def receive():
        return {"type": "http.disconnect"}

    # Anything sent would be a call of None.
    asyncio.run(Echo()({"type": "http", "method": "POST", "path": PATH}, receive, None))


def test_cancelling_ends_a_paced_stream():
    async def main():
        sent = []
        second = asyncio.Event()

        async def receive():
            return {"type": "http.request", "body": b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "[pace 99] a"}]}'}

        async def send(message):
            sent.append(message)
            if len(sent) == 2:
                second.set()

        task = asyncio.create_task(Echo()({"method": "POST", "path": PATH}, receive, send))
        await second.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]

    asyncio.run(main())


def test_it_is_always_there():
    async def main():
        echo = EMBEDDED["echo"]()
        await echo.warm()
        await echo.aclose()
        return echo.unavailable()

    assert asyncio.run(main()) is None


@asynccontextmanager
async def served(app):
    """The app behind uvicorn on a free port, by its URL."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await task


def test_the_openai_sdk_talks_to_it():
    async def main():
        async with (
            served(Echo()) as url,
            httpx.AsyncClient(trust_env=False) as http,
            openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http) as client,
        ):
            whole = await client.chat.completions.create(model="echo-1", messages=[{"role": "user", "content": "[reason hm] hello there"}])
            assert whole.choices[0].message.content == "hello there"

            arguments = {"model": "echo-1", "messages": [{"role": "user", "content": '[tool weather {"city": "Rome"}] ok'}], "tools": [WEATHER]}
            async with client.chat.completions.stream(**arguments, stream_options={"include_usage": True}) as stream:
                final = await stream.get_final_completion()
            call = final.choices[0].message.tool_calls[0].function
            assert (final.choices[0].message.content, call.name, call.arguments) == ("ok", "weather", '{"city": "Rome"}')
            assert final.usage.completion_tokens == 4

            with pytest.raises(openai.RateLimitError):
                await client.chat.completions.create(model="echo-1", messages=[{"role": "user", "content": "[error 429]"}])

    asyncio.run(main())
