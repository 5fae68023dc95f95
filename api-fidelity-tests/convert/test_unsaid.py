"""What an answer holds and the client's surface has no place for is named in `x-surface-dropped`, whether it came whole or as a stream."""

from __future__ import annotations

import json

import pytest

from asgi_surface.surfaces import MESSAGES, RESPONSES

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
USED = {"input_tokens": 1, "output_tokens": 1}
WHOLE = {"id": "u1", "type": "message", "role": "assistant", "model": "up", "content": [THINKING, {"type": "text", "text": "x"}]}
EVENTS = [
    {"type": "message_start", "message": WHOLE | {"content": [], "usage": USED}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USED},
    {"type": "message_stop"},
]
DOCUMENT = json.dumps(WHOLE | {"stop_reason": "end_turn", "usage": USED}).encode()
STREAM = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS)
SSE = [(b"content-type", b"text/event-stream")]


@pytest.mark.parametrize(
    ("answer", "binding"),
    [({"chunks": [DOCUMENT]}, ""), ({"chunks": [STREAM], "headers": SSE}, 'dialect.stream = "always"\n')],
    ids=["whole", "folded"],
)
def test_a_seal_without_a_slot_is_named(gateway, upstream, ask, answer, binding):
    app = upstream(**answer)
    reply = ask(gateway(app, MESSAGES, binding=binding), "/v1/chat/completions", ASK)
    message = reply.json["choices"][0]["message"]
    assert (reply.status, message["content"], message["reasoning_content"]) == (200, "x", "hm")
    assert reply.headers["x-surface-dropped"] == "answer:seals"


@pytest.mark.parametrize("answer", [{"chunks": [STREAM], "headers": SSE}, {"chunks": [DOCUMENT]}], ids=["streamed", "unfolded"])
def test_of_a_stream_it_is_named_in_the_record(gateway, upstream, ask, records, answer):
    reply = ask(gateway(upstream(**answer), MESSAGES), "/v1/chat/completions", {**ASK, "stream": True})
    assert (reply.status, records[0].dropped) == (200, ("answer:seals",))


FAILED = {"id": "r", "object": "response", "status": "failed", "output": []}
PATHS = {"/v1/chat/completions": ASK, "/v1/messages": ASK | {"max_tokens": 9}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_a_failed_response_is_the_error_that_it_holds(gateway, upstream, ask, path, stream):
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    app = upstream([json.dumps(FAILED | {"error": error}).encode()])
    reply = ask(gateway(app, RESPONSES), path, PATHS[path] | {"stream": stream})
    assert (reply.status, reply.headers["x-surface-error"], reply.json["error"]["message"]) == (429, "upstream_rate_limited", "slow down")


def test_one_that_holds_none_cannot_be_read(gateway, upstream, ask):
    reply = ask(gateway(upstream([json.dumps(FAILED).encode()]), RESPONSES), "/v1/chat/completions", ASK)
    assert (reply.status, reply.headers["x-surface-error"]) == (502, "upstream_bad_response")
