"""Bounds that a route tightens, and what a record or a message may repeat of a client's words."""

from __future__ import annotations

import json

import pytest

from asgi_surface.catalog import inspect
from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code
from asgi_surface.layers.exchange import Exchange, Inbox
from asgi_surface.surfaces import Endpoint, Operation, Surface

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(("bound", "to"), [(CHAT, "/v1/chat/completions"), (RESPONSES, "/v1/chat/completions")])
def test_a_binding_may_take_smaller_bodies_than_the_file(gateway, upstream, ask, bound, to):
    app = upstream([b"{}"])
    reply = ask(gateway(app, bound, binding="limits = { request_bytes = 20 }\n"), to, HELLO)
    assert (reply.status, reply.headers["x-surface-error"], app.calls) == (413, Code.BODY_TOO_LARGE, [])


def test_a_dry_run_is_asked_for_in_any_case(gateway, upstream, ask):
    app = upstream([b"{}"])
    reply = ask(gateway(app, CHAT), "/v1/chat/completions", HELLO, headers=[("x-surface-dry-run", " True ")])
    assert (reply.status, reply.json["routeId"], app.calls) == (200, "up:model", [])


def test_neither_record_nor_message_repeats_a_long_name(gateway, upstream, ask, records):
    name = "a secret prompt " * 5_000
    reply = ask(gateway(upstream([b"{}"]), CHAT), "/v1/chat/completions", {**HELLO, name: 1})
    assert (reply.status, records[0].pointer) == (400, "/?")
    assert len(reply.body) < 2_000


@pytest.mark.parametrize("key", ["force", "defaults"])
@pytest.mark.parametrize("name", ["model", "stream"])
def test_a_policy_does_not_write_what_the_plan_writes(routes, key, name):
    policy = f'[policies.p]\nsurface = "{CHAT}"\nextends = "openai-chat-default"\n{key} = {{ {name} = "x" }}\n'
    catalog, problems = inspect(routes(CHAT, top=policy, binding='request_policy = "p"\n'))
    assert catalog is None
    assert [(one.path, one.message) for one in problems] == [(f"policies.p.{key}", f'"{name}" is written by the plan, after the policy')]


def test_without_the_planning_layer_there_is_nothing_to_send():
    exchange = Exchange(Endpoint(Surface(CHAT), Operation.GENERATE), CODECS[CHAT], "r", (), "", Inbox(None))
    for asked in (exchange.planned, exchange.drafted):
        with pytest.raises(RuntimeError, match="Planning"):
            asked()
    with pytest.raises(RuntimeError, match="no resident"):
        exchange.opened()


ENVELOPES = [
    (CHAT, "/v1/chat/completions", {"error": {"message": "no", "type": "t"}}, True),
    (CHAT, "/v1/chat/completions", {"detail": [{"msg": "no"}]}, False),
    (CHAT, "/v1/chat/completions", {"error": "no"}, False),
    (GEMINI, "/v1beta/models/m:generateContent", {"error": {"code": 422, "message": "no", "status": "INVALID_ARGUMENT"}}, True),
    (GEMINI, "/v1beta/models/m:generateContent", {"error": {"code": "slug", "message": "no"}}, False),
    (GEMINI, "/v1beta/models/m:generateContent", [{"error": {"code": 422, "message": "no", "status": "X"}}], False),
]


@pytest.mark.parametrize(("surface", "path", "said", "kept"), ENVELOPES)
def test_only_the_surfaces_own_error_envelope_is_relayed(gateway, upstream, ask, surface, path, said, kept):
    body = HELLO if surface == CHAT else {"contents": []}
    reply = ask(gateway(upstream([json.dumps(said).encode()], status=422), surface), path, body)
    assert reply.status == 422
    assert (reply.json == said) is kept
    assert reply.json["error"]["message"]
