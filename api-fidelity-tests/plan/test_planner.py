"""One plan per request: native, or refused with the most specific reason; nothing is decided twice."""

from __future__ import annotations

import json

import msgspec
import pytest

import asgi_surface
from asgi_surface import Rejection, RequestError, RouteCandidate
from asgi_surface.catalog import build
from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code
from asgi_surface.inbound import read
from asgi_surface.planner import decide
from asgi_surface.plans import Limits, explain
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Operation

HELLO = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "m", "input": "hi"},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
NO_CONVERTERS = "[converters]\nenabled = []\n"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def decided(surface, catalog, body, *, operation=Operation.GENERATE, query="", headers=(), candidates=None, **path):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = {"model": "m", "stream": False, **path} if surface == GEMINI else {}
    return decide(read(CODECS[surface], operation, raw, query=query, headers=headers, **path), catalog, candidates)


def test_a_native_plan_says_everything(catalog):
    plan = asgi_surface.plan(CHAT, json.dumps({**HELLO[CHAT], "stream": True, "tools": [TOOL]}).encode(), catalog(CHAT))
    assert json.loads(explain(plan)) == {
        "downstreamSurface": "openai-chat-completions",
        "upstreamSurface": "openai-chat-completions",
        "upstreamPath": "/v1/chat/completions",
        "mode": {"kind": "native"},
        "requestPolicy": "openai-chat-default",
        "routeId": "up:model",
        "model": "m",
        "upstreamModel": "up-model",
        "provider": "up",
        "operation": "generate",
        "stream": True,
        "framing": "sse",
        "upstreamStream": True,
        "upstreamFraming": "sse",
        "demands": [{"feature": "streaming", "pointer": "/stream"}, {"feature": "tools", "pointer": "/tools"}],
        "headers": [
            ["content-type", "application/json"],
            ["accept", "text/event-stream"],
            ["accept-encoding", "identity"],
            ["user-agent", f"asgi_surface/{asgi_surface.__version__}"],
        ],
        "limits": msgspec.to_builtins(Limits()),
    }
    assert plan.mode_name == "native"


@pytest.mark.parametrize(
    ("surface", "options", "target"),
    [
        (CHAT, {"query": "a=1&b=%20"}, "/v1/chat/completions?a=1&b=%20"),
        (MESSAGES, {"operation": Operation.COUNT_TOKENS, "query": "beta=true"}, "/v1/messages/count_tokens?beta=true"),
        (GEMINI, {}, "/v1beta/models/up-model:generateContent"),
        (GEMINI, {"stream": True}, "/v1beta/models/up-model:streamGenerateContent"),
        (GEMINI, {"stream": True, "query": "alt=sse&key=K&x=1"}, "/v1beta/models/up-model:streamGenerateContent?x=1&alt=sse"),
        (GEMINI, {"operation": Operation.COUNT_TOKENS, "query": "alt=sse"}, "/v1beta/models/up-model:countTokens"),
    ],
)
def test_the_request_target(catalog, surface, options, target):
    features = ["streaming", *(["count-tokens"] if surface in (MESSAGES, GEMINI) else [])]
    assert decided(surface, catalog(surface, features=features), HELLO[surface], **options).plan.upstream_path == target


def test_the_route_file_adds_to_the_query(catalog):
    built = catalog(CHAT, binding='query = { api-version = "2026 1", a = "b" }\n')
    assert decided(CHAT, built, HELLO[CHAT], query="a=1&c=2").plan.upstream_path == "/v1/chat/completions?c=2&api-version=2026%201&a=b"


def test_the_original_buffer_is_sent_when_nothing_changes(catalog):
    raw = b'{ "messages": [ {"role":"user","content":"caf\\u00e9"} ] ,\n "temperature": 1.0, "model":"m" }'
    assert decided(CHAT, catalog(CHAT, upstream_model="m"), raw).draft.body == raw
    renamed = decided(CHAT, catalog(CHAT), raw).draft.body
    assert renamed == b'{"messages":[ {"role":"user","content":"caf\\u00e9"} ],"temperature":1.0,"model":"up-model"}'


def test_a_route_may_pass_the_name_that_was_asked_for(routes):
    text = routes(CHAT, GEMINI, upstream_model="{model}", features=[], top=NO_CONVERTERS).replace('models = ["m"]', 'models = ["g/*", "."]')
    built = build(text)
    decision = decided(CHAT, built, {**HELLO[CHAT], "model": "g/../x"})
    assert json.loads(decision.draft.body)["model"] == decision.plan.upstream_model == "g/../x"
    assert decided(GEMINI, built, HELLO[GEMINI], model="g/../x?y").plan.upstream_path == "/v1beta/models/g%2F..%2Fx%3Fy:generateContent"
    with pytest.raises(Rejection) as caught:
        decided(GEMINI, built, HELLO[GEMINI], model=".")
    assert caught.value.code is Code.UNKNOWN_MODEL
    assert refusal(CHAT, built, {**HELLO[CHAT], "model": "up:model"}).code is Code.UNKNOWN_MODEL


def refusal(surface, catalog, body, **options) -> Rejection:
    with pytest.raises(Rejection) as caught:
        decided(surface, catalog, body, **options)
    return caught.value


def test_an_unknown_model(catalog):
    rejection = refusal(CHAT, catalog(CHAT), {**HELLO[CHAT], "model": "x"})
    assert (rejection.code, rejection.status, rejection.pointer) == (Code.UNKNOWN_MODEL, 404, "/model")
    assert refusal(GEMINI, catalog(GEMINI), HELLO[GEMINI], model="x").pointer is None


def test_a_missing_feature_names_who_asked_for_it(catalog):
    rejection = refusal(CHAT, catalog(CHAT, features=["streaming"]), {**HELLO[CHAT], "tools": [TOOL]})
    assert (rejection.code, rejection.status, rejection.pointer, rejection.served_by) == (Code.FEATURE_UNSUPPORTED, 400, "/tools", ())
    assert json.loads(explain(rejection)) == {
        "kind": "reject",
        "status": 400,
        "code": "feature_unsupported",
        "message": "the route does not declare `tools`",
        "pointer": "/tools",
    }


def test_a_surface_that_no_binding_speaks(catalog):
    rejection = refusal(RESPONSES, catalog(CHAT, top=NO_CONVERTERS), HELLO[RESPONSES])
    assert (rejection.code, rejection.status, rejection.pointer) == (Code.NO_CONVERTER, 400, None)
    assert rejection.served_by == ("up:model/openai-chat-completions",)
    assert json.loads(explain(rejection))["servedBy"] == ["up:model/openai-chat-completions"]


def test_a_history_has_a_bound(catalog):
    built = catalog(CHAT, binding="limits = { history_items = 2 }\n")
    two = [{"role": "user", "content": "x"}] * 2
    assert decided(CHAT, built, {"model": "m", "messages": two})
    rejection = refusal(CHAT, built, {"model": "m", "messages": [*two, *two]})
    assert (rejection.code, rejection.pointer) == (Code.LIMIT_EXCEEDED, "/messages")


def test_counting_needs_the_feature(catalog):
    rejection = refusal(MESSAGES, catalog(MESSAGES), HELLO[MESSAGES], operation=Operation.COUNT_TOKENS)
    assert (rejection.code, rejection.message) == (Code.FEATURE_UNSUPPORTED, "the route does not declare `count-tokens`")


def test_headers_are_built_from_nothing(routes):
    policy = '[policies.p]\nsurface = "anthropic-messages"\nextends = "anthropic-messages-default"\nallowed_headers = ["x-tag"]\n'
    built = build(routes(MESSAGES, top=policy, binding='request_policy = "p"\n'))
    headers = ((b"x-tag", b"t"), (b"anthropic-beta", b"b1"), (b"cookie", b"c"), (b"authorization", b"Bearer k"), (b"x-api-key", b"k"))
    sent = dict(decided(MESSAGES, built, HELLO[MESSAGES], headers=headers).plan.headers)
    assert sent["anthropic-version"] == "2023-06-01"
    assert sent["x-tag"] == "t"
    assert not {"anthropic-beta", "cookie", "authorization", "x-api-key"} & set(sent)
    shipped = decided(MESSAGES, build(routes(MESSAGES)), HELLO[MESSAGES], headers=headers)
    assert dict(shipped.plan.headers)["anthropic-beta"] == "b1"
    own = decided(MESSAGES, built, HELLO[MESSAGES], headers=((b"anthropic-version", b"2026-10-21"),)).plan.headers
    assert [value for name, value in own if name == "anthropic-version"] == ["2026-10-21"]


@pytest.mark.parametrize("value", [b"caf\xe9", b"a\x00b", b"a\tb"])
def test_a_header_that_cannot_be_sent_on_is_refused(catalog, value):
    assert refusal(MESSAGES, catalog(MESSAGES), HELLO[MESSAGES], headers=((b"anthropic-version", value),)).code is Code.UNSUPPORTED_REQUEST


TWO = """
[converters]
enabled = []
[auth]
mode = "host"
[providers.a]
base_url = "http://a.example"
[[routes]]
route_id = "a:chat"
models = []
upstream_model = "chat"
provider = "a"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = []
[[routes]]
route_id = "a:both"
models = []
upstream_model = "both"
provider = "a"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming"]
[[routes.api_bindings]]
surface = "openai-responses"
path = "/v1/responses"
features = ["streaming"]
[[models]]
name = "m"
candidates = ["a:chat", "a:both"]
[[models]]
name = "pinned"
candidates = [{ route_id = "a:both", upstream_surface = "openai-responses" }]
"""


def test_candidates_are_planned_in_order():
    built = build(TWO)
    assert decided(CHAT, built, HELLO[CHAT]).plan.route_id == "a:chat"
    assert decided(CHAT, built, {**HELLO[CHAT], "stream": True}).plan.route_id == "a:both"
    assert decided(RESPONSES, built, HELLO[RESPONSES]).plan.route_id == "a:both"
    assert decided(RESPONSES, built, {"model": "pinned", "input": "hi"}).plan.route_id == "a:both"
    rejection = refusal(CHAT, built, {**HELLO[CHAT], "model": "pinned"})
    assert (rejection.code, "openai-responses," in rejection.message) == (Code.NO_CONVERTER, True)


def test_the_most_specific_reason_is_told():
    rejection = refusal(RESPONSES, build(TWO), {**HELLO[RESPONSES], "tools": [{"type": "function", "name": "f", "parameters": {}}]})
    assert (rejection.code, rejection.pointer, rejection.served_by) == (Code.FEATURE_UNSUPPORTED, "/tools", ())


def test_a_host_may_choose_the_candidates():
    built = build(TWO)
    assert decided(CHAT, built, {**HELLO[CHAT], "model": "anything"}, candidates=[RouteCandidate("a:both")]).plan.upstream_model == "both"
    assert refusal(CHAT, built, HELLO[CHAT], candidates=[RouteCandidate("gone")]).code is Code.UNKNOWN_MODEL


def test_a_plan_is_frozen_and_carries_the_binding_limits(catalog):
    plan = decided(CHAT, catalog(CHAT, binding="limits = { idle_seconds = 7.0 }\n"), HELLO[CHAT]).plan
    assert plan.limits == Limits(idle_seconds=7.0)
    with pytest.raises(AttributeError):
        plan.model = "other"


def test_what_a_policy_drops_or_overwrites_is_not_demanded(routes):
    policy = '[policies.p]\nsurface = "openai-responses"\nallowed_fields = ["model", "input", "store", "tools"]\nunknown_field_action = "drop"\n'
    policy += 'force = { store = false }\nallowed_tool_types = ["function", "custom"]\n'
    built = build(routes(RESPONSES, top=policy, binding='request_policy = "p"\n'))
    function = {"type": "function", "name": "f", "parameters": {}}
    decision = decided(RESPONSES, built, {**HELLO[RESPONSES], "background": True, "store": True, "tools": [{"type": "mcp"}, function]})
    assert set(decision.plan.dropped) == {"/background", "/store", "/tools/0"}
    assert json.loads(decision.draft.body) == {"model": "up-model", "input": "hi", "store": False, "tools": [function]}
    rejection = refusal(RESPONSES, built, {**HELLO[RESPONSES], "tools": [{"type": "mcp"}, {"type": "custom", "name": "c"}]})
    assert (rejection.code, rejection.pointer) == (Code.FEATURE_UNSUPPORTED, "/tools/1")


def test_a_malformed_body_is_explained_too():
    with pytest.raises(RequestError) as caught:
        asgi_surface.plan(CHAT, b"[]", build(TWO))
    assert json.loads(explain(caught.value))["code"] == "malformed_body"
