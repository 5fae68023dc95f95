"""Requests that released clients sent, relayed to a native binding with the shipped policy: unaltered, or refused for a known reason.

The captures stand beside the checkout, not in it.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from asgi_surface import RouteCandidate
from asgi_surface.surfaces import CARRIES

CAPTURED = Path(__file__).parents[3] / "shared" / "captured"
CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
PATHS = {
    r"/v1/chat/completions": CHAT,
    r"/v1/responses": RESPONSES,
    r"/v1/messages(/count_tokens)?": MESSAGES,
    r"/v1(beta)?/models/[^/]+:(generateContent|streamGenerateContent|countTokens)": GEMINI,
}
OUTBOUND = {"content-type", "accept", "accept-encoding", "user-agent"}

# Why a captured request is refused, by file: gateway code and JSON pointer.
THREAD = ("unsupported_request", "/thread")  # a conversation kept by the server; on this answer the SDK resends the whole history
REFUSED = {
    "anthropic/tool_runner.*.json": THREAD,
    "anthropic/tool_runner_stream.*.json": THREAD,
    "anthropic/tool_runner_thread_not_found.00[789].json": THREAD,
    "anthropic/tool_runner_unthreaded.001.json": THREAD,
}


def surface_of(path):
    return next((surface for pattern, surface in PATHS.items() if re.fullmatch(pattern, path)), None)


def captures():
    """The generation requests, by file name below `captured`."""
    found = {file.relative_to(CAPTURED).as_posix(): json.loads(file.read_text()) for file in sorted(CAPTURED.glob("*/*.json"))}
    return {name: one for name, one in found.items() if one["method"] == "POST" and surface_of(one["path"])}


CAPTURES = captures()
pytestmark = pytest.mark.skipif(not CAPTURES, reason="the captures of shared/ are not beside this checkout")


def exotic(body):
    """A spelling that no encoder in the package would choose, so that equal bytes mean untouched bytes."""
    return json.dumps(body, ensure_ascii=True, indent=1, separators=(" ,", " : ")).replace("/", "\\/").encode()


def raw_members(body):
    """The members of a JSON object by name, each with its exact text."""
    text, found, at = body.decode(), {}, body.index(b"{") + 1
    decoder = json.JSONDecoder()
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        if text[at] == "}":
            return found
        name, at = decoder.raw_decode(text, at)
        start = re.compile(r"\s*:\s*").match(text, at).end()
        _, at = decoder.raw_decode(text, start)
        found[name] = text[start:at]


async def anyone(_surface, _model):
    """A host's choice: whatever model is asked for, the one route serves it."""
    return [RouteCandidate("up:model")]


def asked(capture, **more):
    """Path, body and headers as the client sent them; a body of another length needs another content-length."""
    headers = [(name.lower(), value) for name, value in capture["headers"] if name.lower() != "content-length"]
    query = f"?{capture['query']}" if capture["query"] else ""
    return capture["path"] + query, exotic(capture["body"]), [*headers, *more.items()]


@pytest.fixture
def relayed(gateway, upstream, ask, wires):
    """Sends a capture to a binding that declares all its surface can carry, but for `missing`: the upstream's calls and the reply."""

    def send(capture, *missing, **headers):
        surface = surface_of(capture["path"])
        wire = wires["array" if surface == GEMINI and "alt=sse" not in capture["query"] else surface]
        stream = capture["body"].get("stream") is True or "streamGenerateContent" in capture["path"]
        app = upstream(chunks=wire.frames if stream else [wire.document])
        built = gateway(app, surface, features=sorted(CARRIES[surface] - set(missing)), candidates=anyone)
        path, body, pairs = asked(capture, **headers)
        return app.calls, ask(built, path, body, headers=pairs)

    return send


@pytest.mark.parametrize("name", CAPTURES)
def test_a_captured_request_is_relayed_unaltered_or_refused(name, relayed):
    capture = CAPTURES[name]
    calls, reply = relayed(capture)
    no_calls, dry = relayed(capture, **{"x-surface-dry-run": "true"})
    refusal = next((reason for pattern, reason in REFUSED.items() if fnmatch(name, pattern)), None)
    assert no_calls == []
    assert dry.status == 200
    assert "x-surface-dropped" not in reply.headers
    if refusal is not None:
        assert (reply.headers["x-surface-error"], dry.json.get("pointer")) == refusal
        assert (dry.json["kind"], dry.json["code"], dry.json["status"]) == ("reject", refusal[0], reply.status)
        assert calls == []
        return
    assert reply.status == 200, reply.body
    assert dry.json["mode"] == {"kind": "native"}
    assert "dropped" not in dry.json
    [call] = calls
    assert call.target == dry.json["upstreamPath"]
    assert parse_qsl(call.target.partition("?")[2]) == [pair for pair in parse_qsl(capture["query"]) if pair[0] != "key"]
    assert raw_members(call.body) == members(capture)
    assert [*raw_members(call.body)] == [*members(capture)], "in the client's order"
    sent = {name.decode(): value.decode() for name, value in call.headers}
    given = {name.lower(): value for name, value in capture["headers"]}
    own = {name: given[name] for name in ("anthropic-version", "anthropic-beta") if name in given}
    assert sent.keys() == OUTBOUND | own.keys()
    assert sent.items() >= own.items()


def members(capture):
    """What must reach the upstream: every member in the client's own bytes, but for the model's name, which is the route's."""
    given = raw_members(exotic(capture["body"]))
    return given | ({"model": '"up-model"'} if "model" in given else {})


@pytest.mark.parametrize("name", [name for name, one in CAPTURES.items() if surface_of(one["path"]) == RESPONSES])
def test_without_stored_responses_nothing_is_stored_and_all_else_is_unaltered(name, relayed):
    capture = CAPTURES[name]
    calls, reply = relayed(capture, "stored-responses")
    if "previous_response_id" in capture["body"]:
        assert (reply.status, reply.headers["x-surface-error"], reply.json["error"]["param"]) == (400, "field_rejected", "previous_response_id")
        assert calls == []
        return
    assert reply.headers.get("x-surface-dropped") == ("/store" if capture["body"].get("store") else None)
    assert raw_members(calls[0].body) == members(capture) | {"store": "false"}


def test_every_known_reason_is_still_met():
    assert [pattern for pattern in REFUSED if not any(fnmatch(name, pattern) for name in CAPTURES)] == []
