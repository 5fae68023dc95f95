"""A deterministic model server on OpenAI Chat Completions, for trying the gateway without key or network.

It answers the last user message with that message's own text. Directives in the text, anywhere and in any order, shape the answer; each is taken
out of the text with the white space that follows it:

| directive | what the answer does |
|---|---|
| `[tool NAME {"json": "arguments"}]` | calls the tool NAME; arguments default to `{}`; several are parallel calls |
| `[reason TEXT]` | says TEXT as `reasoning_content` before the answer |
| `[repeat N]` | says the text N times, 1 to 999, within 1,000,000 characters |
| `[length]` | keeps the first half of the words and finishes with `length` |
| `[filter]` | finishes with `content_filter` |
| `[refuse TEXT]` | says TEXT as `refusal`, and nothing else |
| `[error STATUS]` | is an HTTP error of that status, 400 to 599, in OpenAI's envelope |
| `[pace SECONDS]` | pauses before every chunk of a stream but the first, 0 to 99.999 seconds |

What has not exactly such a form is text; TEXT holds no brackets. One token is one word between white space: `max_completion_tokens` and
`max_tokens` cut the text and finish with `length`, and usage counts words. A `tool_choice` that demands a call gets one with `{}` when no directive
names another; `none` allows none. Results of tools that end the conversation are answered with their text, directives unread, so that an agent's
loop ends.

Equal request bodies get equal bytes back: ids are made from the body's hash, and `created` is 0 because there is no clock. Knows nothing of routes,
plans or other surfaces.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

import anyio
import msgspec
from msgspec import Struct

from asgi_surface.upstream.asgi import Headers, Receive, Scope, Send, body_message, read_body, start_message
from asgi_surface.upstream.echo_script import ChatRequest, Refused, Script, read

_MAX_CHARS: Final = 1_000_000
_ARGUMENT_PIECE: Final = 12
_FINISH: Final[dict[str | None, str]] = {"length": "length", "filter": "content_filter"}


class _Answer(Struct, frozen=True):
    """One answer, before it is a body or a stream."""

    id: str
    model: str
    finish: str
    usage: dict[str, Any]
    text: str = ""
    reason: str = ""
    refuse: str = ""
    calls: tuple[dict[str, Any], ...] = ()


class Echo:
    """The model server as an ASGI app: `POST /v1/chat/completions`, JSON or stream. Anything else gets OpenAI's error envelope."""

    def unavailable(self) -> str | None:
        """None: it needs nothing."""
        return None

    async def warm(self) -> None:
        """Nothing to start."""

    async def aclose(self) -> None:
        """Nothing to stop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One exchange. A client that leaves cancels it, at the latest in a pause."""
        body = await read_body(receive)
        if body is None:
            return
        try:
            request, script = read(scope, body)
            answer = _answer(request, script, hashlib.sha256(body).hexdigest())
        except Refused as error:
            await _whole(send, error.status, error.body, error.headers)
            return
        if request.stream:
            await _stream(send, _chunks(answer, usage=request.stream_options is not None and request.stream_options.include_usage), script.pace)
        else:
            await _whole(send, 200, msgspec.json.encode(_completion(answer)), [])


async def _whole(send: Send, status: int, body: bytes, headers: Headers) -> None:
    await send(start_message(status, [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]))
    await send({"type": "http.response.body", "body": body})


async def _stream(send: Send, chunks: Iterator[dict[str, Any]], pace: float) -> None:
    await send(start_message(200, [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]))
    pause = 0.0
    for chunk in chunks:
        await anyio.sleep(pause)
        await send(body_message(b"data: %b\n\n" % msgspec.json.encode(chunk)))
        pause = pace
    await send(body_message(b"data: [DONE]\n\n"))
    await send(body_message(b""))


def _answer(request: ChatRequest, script: Script, digest: str) -> _Answer:
    text, cut = _cut(script, request.limit)
    spoken = [text, script.refuse, *(f"{call.name} {call.arguments}" for call in script.calls)]
    return _Answer(
        id=f"chatcmpl-echo-{digest[:24]}",
        model=request.model,
        finish="length" if cut else _FINISH.get(script.finish, "tool_calls" if script.calls else "stop"),
        usage=_usage([message.text for message in request.messages], spoken, script.reason),
        text=text,
        reason=script.reason,
        refuse=script.refuse,
        calls=tuple(
            {"id": f"call_echo_{digest[:12]}_{index}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for index, call in enumerate(script.calls)
        ),
    )


def _cut(script: Script, limit: int | None) -> tuple[str, bool]:
    """The text to say, and whether it was cut: by the directive, or because it has more words than `limit`."""
    times = max(1, min(script.repeat, _MAX_CHARS // (len(script.text) + 1)))
    text = " ".join([script.text] * times)
    words = _words(text)
    keep = len(words) if script.finish != "length" else (len(words) + 1) // 2
    keep = min(keep, len(words) if limit is None else limit)
    return ("".join(words[:keep]).rstrip(), True) if keep < len(words) else (text, False)


def _words(text: str) -> list[str]:
    """The words, each with the white space that follows it; joined they are `text`, which has none before its first word."""
    return re.findall(r"\S+\s*", text)


def _usage(read: list[str], spoken: list[str], reason: str) -> dict[str, Any]:
    prompt, reasoning = (sum(len(text.split()) for text in texts) for texts in (read, [reason]))
    completion = reasoning + sum(len(text.split()) for text in spoken)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _completion(answer: _Answer) -> dict[str, Any]:
    """The `chat.completion` of an answer. Content is null beside a refusal, and beside calls without text, as OpenAI sends it."""
    silent = answer.refuse or (answer.calls and not answer.text)
    message: dict[str, Any] = {"role": "assistant", "content": None if silent else answer.text, "refusal": answer.refuse or None}
    if answer.reason:
        message["reasoning_content"] = answer.reason
    if answer.calls:
        message["tool_calls"] = answer.calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
    return {"id": answer.id, "object": "chat.completion", "created": 0, "model": answer.model, "choices": [choice], "usage": answer.usage}


def _chunks(answer: _Answer, *, usage: bool) -> Iterator[dict[str, Any]]:
    """The `chat.completion.chunk`s of an answer: deltas, one finish, and with `usage` one more without choices."""
    frame: dict[str, Any] = {"id": answer.id, "object": "chat.completion.chunk", "created": 0, "model": answer.model}
    if usage:
        frame["usage"] = None
    for delta in _deltas(answer):
        yield {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": answer.finish}]}
    if usage:
        yield {**frame, "choices": [], "usage": answer.usage}


def _deltas(answer: _Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if answer.text else None}
    for member, text in (("reasoning_content", answer.reason), ("content", answer.text), ("refusal", answer.refuse)):
        yield from ({member: word} for word in _words(text))
    for index, call in enumerate(answer.calls):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        arguments: str = function["arguments"]
        for at in range(0, len(arguments), _ARGUMENT_PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + _ARGUMENT_PIECE]}}]}
