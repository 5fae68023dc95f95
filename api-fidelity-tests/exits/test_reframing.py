"""A Gemini upstream that frames its stream otherwise than it was asked to is still understood: the first byte tells."""

from __future__ import annotations

import json

import pytest

CHAT, GEMINI = "openai-chat-completions", "gemini-generate-content"
CHUNKS = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}], "modelVersion": "up", "responseId": "r"}
    for text in ("He", "llo")
]
CHUNKS[-1]["candidates"][0]["finishReason"] = "STOP"
SSE = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS).encode()
ARRAY = json.dumps(CHUNKS).encode()
BODY = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def words(chunks) -> str:
    return "".join(part.get("text", "") for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"])


@pytest.mark.parametrize("upstream_body", [SSE, ARRAY])
def test_each_client_gets_the_framing_it_asked_for(gateway, upstream, ask, upstream_body):
    app = gateway(upstream([upstream_body]), GEMINI, features=["streaming"])
    array = ask(app, "/v1beta/models/m:streamGenerateContent", BODY)
    assert (array.headers["content-type"], words(array.json)) == ("application/json", "Hello")
    events = ask(app, "/v1beta/models/m:streamGenerateContent?alt=sse", BODY)
    assert events.headers["content-type"].startswith("text/event-stream")
    assert words(json.loads(line[6:]) for line in events.body.decode().split("\n\n") if line) == "Hello"
    document = ask(app, "/v1beta/models/m:generateContent", BODY)
    assert words([document.json]) == "Hello"
    chat = ask(app, "/v1/chat/completions", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    deltas = [json.loads(line[6:]) for line in chat.body.decode().split("\n\n") if line and line != "data: [DONE]"]
    assert "".join(delta["choices"][0]["delta"].get("content") or "" for delta in deltas) == "Hello"


def test_a_framing_as_it_was_asked_for_keeps_its_bytes(gateway, upstream, ask):
    assert ask(gateway(upstream([ARRAY]), GEMINI, features=["streaming"]), "/v1beta/models/m:streamGenerateContent", BODY).body == ARRAY
    assert ask(gateway(upstream([SSE]), GEMINI, features=["streaming"]), "/v1beta/models/m:streamGenerateContent?alt=sse", BODY).body == SSE


@pytest.mark.parametrize(
    ("declared", "allowed", "asked", "sent"),
    [
        ("never", None, {"stream": True, "stream_options": {"include_usage": True}}, {}),
        ("always", None, {}, {"stream": True, "stream_options": {"include_usage": True}}),
        ("always", ["model", "messages", "stream"], {}, {"stream": True}),
    ],
)
def test_a_native_wish_for_a_stream_is_turned_around_whole(gateway, upstream, ask, declared, allowed, asked, sent):
    policy = "" if allowed is None else f'[policies.p]\nsurface = "{CHAT}"\nallowed_fields = {json.dumps(allowed)}\nunknown_field_action = "reject"\n'
    binding = f'dialect = {{ stream = "{declared}" }}\n' + ("" if allowed is None else 'request_policy = "p"\n')
    app = upstream([b'{"choices":[]}'])
    ask(gateway(app, CHAT, features=["streaming"], top=policy, binding=binding), "/v1/chat/completions", {"model": "m", "messages": [], **asked})
    assert app.calls[0].json == {"model": "up-model", "messages": [], **sent}
