"""Converted plans and tolerances: what is said, dropped, emulated or refused, before any upstream is called."""

from __future__ import annotations

import json

import msgspec
import pytest

from asgi_surface import Rejection
from asgi_surface.catalog import build
from asgi_surface.codecs import CODECS
from asgi_surface.cuts import cut, original
from asgi_surface.errors import Code
from asgi_surface.inbound import read
from asgi_surface.ir import Seal, SealKind
from asgi_surface.members import Members
from asgi_surface.planner import decide
from asgi_surface.plans import explain
from asgi_surface.profiles import PROFILES, tolerances
from asgi_surface.seals import wrap
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Operation

TURN = {"role": "user", "content": "hi"}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
CHAT_FUNCTION = {"type": "function", "function": {"name": "f"}}
PLAIN = ["tools", "parallel-tools", "reasoning"]


def decided(surface, catalog, body, **options):
    return decide(read(CODECS[surface], options.pop("operation", Operation.GENERATE), json.dumps(body).encode(), **options), catalog)


def refusal(surface, catalog, body, **options) -> Rejection:
    with pytest.raises(Rejection) as caught:
        decided(surface, catalog, body, **options)
    return caught.value


def test_a_converted_plan_says_what_became_of_the_request(catalog):
    body = {"model": "m", "input": "hi", "store": False, "metadata": {"a": "b"}, "tools": [{"type": "custom", "name": "c"}]}
    decision = decided(RESPONSES, catalog(CHAT, features=PLAIN), body, query="beta=true", headers=((b"anthropic-version", b"x"),))
    shown = json.loads(explain(decision.plan))
    assert shown["mode"] == {"kind": "convert", "converter": "openai-responses->openai-chat-completions"}
    assert decision.plan.mode_name == shown["mode"]["converter"]
    assert (shown["downstreamSurface"], shown["upstreamSurface"], shown["upstreamPath"]) == (RESPONSES, CHAT, "/v1/chat/completions")
    assert "/store" in shown["dropped"]
    assert shown["emulated"] == ["/tools/0"]
    assert [demand["feature"] for demand in shown["demands"]] == ["tools"]
    assert "anthropic-version" not in dict(shown["headers"])
    sent = json.loads(decision.draft.body)
    assert (sent["model"], sent["messages"]) == ("up-model", [TURN])
    assert sent["tools"][0]["function"]["parameters"]["required"] == ["input"]


def test_native_is_preferred_and_the_declared_order_decides_among_conversions(catalog):
    body = {"model": "m", "input": "hi"}
    assert decided(RESPONSES, catalog(MESSAGES, RESPONSES), body).plan.mode_name == "native"
    assert decided(RESPONSES, catalog(MESSAGES, CHAT), body).plan.upstream_surface == MESSAGES
    assert decided(RESPONSES, catalog(CHAT, MESSAGES), body).plan.upstream_surface == CHAT
    only = '[converters]\nenabled = ["openai-responses->anthropic-messages"]\n'
    assert decided(RESPONSES, catalog(CHAT, MESSAGES, top=only), body).plan.upstream_surface == MESSAGES
    assert refusal(RESPONSES, catalog(CHAT, top=only), body).code is Code.NO_CONVERTER


@pytest.mark.parametrize(
    ("surface", "to", "body", "pointer", "code"),
    [
        (RESPONSES, CHAT, {"model": "m", "input": "hi", "previous_response_id": "r"}, "/previous_response_id", Code.UNREPRESENTABLE),
        (RESPONSES, CHAT, {"model": "m", "input": "hi", "unheard_of": 1}, "/unheard_of", Code.UNREPRESENTABLE),
        (CHAT, MESSAGES, {"model": "m", "messages": [TURN], "temperature": 1.5}, "/temperature", Code.UNREPRESENTABLE),
        (CHAT, MESSAGES, {"model": "m", "messages": [TURN], "tools": [CHAT_FUNCTION]}, "/tools", Code.FEATURE_UNSUPPORTED),
    ],
)
def test_what_cannot_be_said_is_refused_at_the_clients_place(catalog, surface, to, body, pointer, code):
    rejection = refusal(surface, catalog(to, features=[]), body)
    assert (rejection.code, rejection.pointer) == (code, pointer)


def test_the_targets_policy_judges_last_and_speaks_the_clients_words(routes):
    policy = '[policies.p]\nsurface = "openai-chat-completions"\nallowed_fields = ["model", "messages", "temperature"]\nunknown_field_action = "{}"\n'
    text = routes(CHAT, top=policy, binding='request_policy = "p"\n', features=PLAIN)
    body = {"model": "m", "input": "hi", "max_output_tokens": 50}
    rejection = refusal(RESPONSES, build(text.format("reject")), body)
    assert (rejection.code, rejection.pointer) == (Code.FIELD_REJECTED, "/max_output_tokens")
    decision = decided(RESPONSES, build(text.format("drop")), body)
    assert decision.plan.dropped == ("/max_output_tokens",)
    assert set(json.loads(decision.draft.body)) == {"model", "messages"}


def test_a_member_the_gateway_added_is_left_out_where_the_policy_does_not_allow_it(routes):
    policy = '[policies.p]\nsurface = "openai-responses"\nallowed_fields = ["model", "input"]\nunknown_field_action = "{}"\n'
    text = routes(RESPONSES, top=policy, binding='request_policy = "p"\n', features=PLAIN)
    for action in ("reject", "drop"):
        decision = decided(CHAT, build(text.format(action)), {"model": "m", "messages": [TURN]})
        # What the surface's own shipped policy forces stays forced.
        assert set(json.loads(decision.draft.body)) <= {"model", "input", "store"}
        assert decision.plan.dropped == ()


PADDED = {"stream": True, "stream_options": {"include_obfuscation": False}}


@pytest.mark.parametrize(
    ("surface", "to", "sent"),
    [
        (CHAT, RESPONSES, {"include_obfuscation": False}),
        (RESPONSES, CHAT, {"include_usage": True, "include_obfuscation": False}),
        *((surface, to, None) for surface in (CHAT, RESPONSES) for to in (MESSAGES, GEMINI)),
    ],
)
def test_padding_of_a_stream_is_said_where_the_upstream_can_pad(catalog, surface, to, sent):
    body = PADDED | {"model": "m"} | ({"messages": [TURN]} if surface == CHAT else {"input": "hi"})
    decision = decided(surface, catalog(to, features=["streaming"]), body)
    assert json.loads(decision.draft.body).get("stream_options") == sent
    assert ("/stream_options/include_obfuscation" in decision.plan.dropped) == (sent is None)
    # An upstream that does not stream has nothing to pad.
    unstreamed = decided(surface, catalog(to, features=["streaming"], binding='dialect = { stream = "never" }\n'), body)
    assert "stream_options" not in json.loads(unstreamed.draft.body)


def test_what_a_client_asks_of_a_stream_is_no_member_of_the_gateways(routes):
    policy = '[policies.p]\nsurface = "openai-chat-completions"\nallowed_fields = ["model", "messages", "stream"]\nunknown_field_action = "{}"\n'
    text = routes(CHAT, top=policy, binding='request_policy = "p"\n', features=["streaming"])
    body = {"model": "m", "input": "hi", **PADDED}
    rejection = refusal(RESPONSES, build(text.format("reject")), body)
    assert (rejection.code, rejection.pointer) == (Code.FIELD_REJECTED, "/stream_options/include_obfuscation")
    assert "/stream_options/include_obfuscation" in decided(RESPONSES, build(text.format("drop")), body).plan.dropped


def test_only_generation_is_converted(catalog):
    body = {"model": "m", "max_tokens": 9, "messages": [TURN]}
    assert refusal(MESSAGES, catalog(CHAT, features=[]), body, operation=Operation.COUNT_TOKENS).code is Code.NO_CONVERTER


def test_a_history_is_bounded_in_the_clients_own_count(catalog):
    built = catalog(MESSAGES, features=PLAIN, binding="limits = { history_items = 2 }\n")
    rejection = refusal(CHAT, built, {"model": "m", "messages": [TURN] * 3})
    assert (rejection.code, rejection.pointer) == (Code.LIMIT_EXCEEDED, "/messages")


NOTHING = [
    (CHAT, {"model": "m", "messages": []}, "/messages"),
    (RESPONSES, {"model": "m", "instructions": "Be brief."}, "/input"),
    (RESPONSES, {"model": "m", "input": []}, "/input"),
    (MESSAGES, {"model": "m", "max_tokens": 9, "system": "Be brief."}, "/messages"),
    (MESSAGES, {"model": "m", "max_tokens": 9, "messages": []}, "/messages"),
    (GEMINI, {}, "/contents"),
    (GEMINI, {"contents": [], "systemInstruction": {"parts": [{"text": "Be brief."}]}}, "/contents"),
]


@pytest.mark.parametrize(
    ("surface", "body", "place", "target"), [(*row, target) for row in NOTHING for target in (CHAT, RESPONSES, MESSAGES) if row[0] != target]
)
def test_a_request_without_a_conversation_asks_no_other_surface(catalog, surface, body, place, target):
    """Its own API would refuse it."""
    options = {"model": "m"} if surface == GEMINI else {}
    rejection = refusal(surface, catalog(target, features=PLAIN), body, **options)
    assert (rejection.code, rejection.pointer) == (Code.MALFORMED_BODY, place)


def test_instructions_that_stand_in_the_conversation_are_one(catalog):
    system = [{"role": "system", "content": "Say hello."}]
    assert decided(CHAT, catalog(RESPONSES, features=PLAIN), {"model": "m", "messages": system}).plan.dropped == ()
    assert decided(RESPONSES, catalog(CHAT, features=PLAIN), {"model": "m", "input": "hi"}).plan.dropped == ()


def tolerant(*names: str) -> str:
    return f"tolerate = {json.dumps(names)}\n"


def test_a_refused_construct_may_be_tolerated_and_is_reported(catalog):
    body = {"model": "m", "input": "hi", "tools": [{"type": "web_search"}, FUNCTION]}
    assert refusal(RESPONSES, catalog(CHAT, features=PLAIN), body).pointer == "/tools/0"
    decision = decided(RESPONSES, catalog(CHAT, features=PLAIN, binding=tolerant("tool:web_search")), body)
    assert (decision.plan.tolerated, "/tools/0" in decision.plan.dropped) == (("/tools/0",), True)
    assert [tool["function"]["name"] for tool in json.loads(decision.draft.body)["tools"]] == ["f"]


def test_conversion_without_a_tolerance_is_preferred_to_native_with_one(catalog):
    body = {"model": "m", "input": "hi", "reasoning": {"effort": "low"}, "tools": [FUNCTION]}
    text = {"features": ["tools"], "binding": tolerant("reasoning")}
    assert decided(RESPONSES, catalog(RESPONSES, CHAT, **text), body).plan.mode_name == "native"
    assert decided(RESPONSES, catalog(RESPONSES, CHAT, **text), body).plan.tolerated == ("/reasoning/effort",)


def test_a_missing_feature_may_be_tolerated_in_conversion_too(catalog):
    body = {"model": "m", "input": "hi", "reasoning": {"effort": "low"}}
    rejection = refusal(RESPONSES, catalog(CHAT, features=[]), body)
    assert (rejection.code, rejection.pointer) == (Code.FEATURE_UNSUPPORTED, "/reasoning/effort")
    decision = decided(RESPONSES, catalog(CHAT, features=[], binding=tolerant("reasoning")), body)
    assert decision.plan.tolerated == ("/reasoning/effort",)
    assert set(json.loads(decision.draft.body)) == {"model", "messages"}
    wanted = {**body, "tools": [FUNCTION]}
    assert refusal(RESPONSES, catalog(CHAT, features=[], binding=tolerant("reasoning")), wanted).pointer == "/tools"


def test_natively_only_what_the_binding_lacks_is_cut(catalog):
    body = {"model": "m", "input": "hi", "tools": [FUNCTION, {"type": "web_search"}, {"type": "custom", "name": "c"}, {"type": "web_search_preview"}]}
    named = tolerant("tool:web_search", "tool:web_search_preview", "tool:function")
    decision = decided(RESPONSES, catalog(RESPONSES, features=["tools", "custom-tools"], binding=named), body)
    assert decision.plan.tolerated == ("/tools/1", "/tools/3")
    assert [tool["type"] for tool in json.loads(decision.draft.body)["tools"]] == ["function", "custom"]
    rejection = refusal(RESPONSES, catalog(RESPONSES, features=["tools"], binding=named), body)
    assert (rejection.code, rejection.pointer) == (Code.FEATURE_UNSUPPORTED, "/tools/1")


def test_a_tolerated_feature_is_cut_natively_with_the_block_that_is_nothing_without_it(catalog):
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    turns = [TURN, {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]}, TURN]
    body = {"model": "m", "max_tokens": 9, "messages": turns}
    lacking = {"features": ["reasoning"], "top": "[converters]\nenabled = []\n"}
    assert refusal(MESSAGES, catalog(MESSAGES, **lacking), body).pointer == "/messages/1/content/0/signature"
    decision = decided(MESSAGES, catalog(MESSAGES, binding=tolerant("encrypted-reasoning"), **lacking), body)
    assert decision.plan.tolerated == ("/messages/1/content/0",)
    assert json.loads(decision.draft.body)["messages"][1]["content"] == [{"type": "text", "text": "a"}]
    counting = catalog(MESSAGES, binding=tolerant("count-tokens"), **lacking)
    counted = refusal(MESSAGES, counting, {**body, "messages": [TURN]}, operation=Operation.COUNT_TOKENS)
    assert counted.code is Code.FEATURE_UNSUPPORTED


def test_foreign_seals_are_refused_or_tolerated_and_own_ones_go_home(catalog):
    def asking(signature):
        thought = {"type": "thinking", "thinking": "hm", "signature": signature}
        turns = [TURN, {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]}, TURN]
        return {"model": "m", "max_tokens": 9, "messages": turns}

    sealed = {"features": ["reasoning", "encrypted-reasoning"]}
    rejection = refusal(MESSAGES, catalog(RESPONSES, **sealed), asking("bare"))
    assert (rejection.code, rejection.pointer) == (Code.UNREPRESENTABLE, "/messages/1/content/0")
    tolerated = decided(MESSAGES, catalog(RESPONSES, binding=tolerant("foreign-seals"), **sealed), asking("bare"))
    assert tolerated.plan.tolerated == ("/messages/1/content/0",)
    assert [item.get("type", "message") for item in json.loads(tolerated.draft.body)["input"]] == ["message"] * 3
    own = wrap(Seal("TOKEN==", SealKind.ENCRYPTED, RESPONSES, id="rs_1"), "up")
    decision = decided(MESSAGES, catalog(RESPONSES, **sealed), asking(own))
    reasoning = next(item for item in json.loads(decision.draft.body)["input"] if item.get("type") == "reasoning")
    assert (reasoning["id"], reasoning["encrypted_content"]) == ("rs_1", "TOKEN==")


def test_a_call_keeps_when_its_foreign_seal_goes(catalog):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "s"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    turns = [TURN, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "x"}]
    body = {"model": "m", "messages": turns, "tools": [tool]}
    assert refusal(CHAT, catalog(MESSAGES, features=PLAIN), body).code is Code.UNREPRESENTABLE
    decision = decided(CHAT, catalog(MESSAGES, features=PLAIN, binding=tolerant("foreign-seals")), body)
    assert len(decision.plan.tolerated) == 1
    assert json.loads(decision.draft.body)["messages"][1]["content"][0]["type"] == "tool_use"


BODY = b'{"a":[ {"x":1.0, "y":[1,2 , 3]} ,{"z":"\\u00e9"},[0]],"b/c":{"~":1,"k":2},"s":"x"}'


@pytest.mark.parametrize(
    ("pointers", "left"),
    [
        ([], {"a": b'[ {"x":1.0, "y":[1,2 , 3]} ,{"z":"\\u00e9"},[0]]', "b/c": b'{"~":1,"k":2}', "s": b'"x"'}),
        (["/a/0", "/b~1c"], {"a": b'[{"z":"\\u00e9"},[0]]', "s": b'"x"'}),
        (["/a/0/y/1", "/b~1c/~0"], {"a": b'[{"x":1.0,"y":[1,3]},{"z":"\\u00e9"},[0]]', "b/c": b'{"k":2}', "s": b'"x"'}),
        (["/s/0", "/a/9", "/nowhere/at/all"], {"a": b'[{"x":1.0, "y":[1,2 , 3]},{"z":"\\u00e9"},[0]]', "b/c": b'{"~":1,"k":2}', "s": b'"x"'}),
    ],
)
def test_cutting_leaves_every_other_byte(pointers, left):
    members = msgspec.json.decode(BODY, type=Members)
    assert {name: bytes(raw).strip() for name, raw in cut(members, pointers).items()} == left


@pytest.mark.parametrize(
    ("pointer", "cuts", "place"),
    [
        ("/tools/1", [], "/tools/1"),
        ("/tools/1", ["/tools/0"], "/tools/2"),
        ("/tools/1", ["/tools/0", "/tools/1", "/tools/3"], "/tools/4"),
        ("/tools/0/x/1", ["/tools/0", "/tools/1/x/0", "/other/0"], "/tools/1/x/2"),
        ("/a~1b/0", ["/a~1b/0"], "/a~1b/1"),
        ("", ["/a"], ""),
    ],
)
def test_a_place_of_the_cut_body_is_found_in_the_clients_own(pointer, cuts, place):
    assert original(pointer, cuts) == place


def test_gemini_bodies_convert_too(catalog):
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"topK": 5}}
    rejection = refusal(GEMINI, catalog(CHAT, features=[]), body, model="m", stream=False)
    assert rejection.pointer == "/generationConfig/topK"
    decision = decided(GEMINI, catalog(MESSAGES, features=[]), body, model="m", stream=False)
    assert json.loads(decision.draft.body)["top_k"] == 5


def test_tolerances_are_known_names():
    assert tolerances(["tool:web_search"], ["gemini-cli"]) == {"tool:web_search", *PROFILES["gemini-cli"].tolerates}
    for names, profiles in ([["tool:nothing"], []], [[], ["nobody"]]):
        with pytest.raises(ValueError, match="not"):
            tolerances(names, profiles)


@pytest.mark.parametrize(("declared", "asked"), [("always", False), ("never", True)])
def test_a_binding_may_say_how_its_upstream_answers(catalog, declared, asked):
    built = catalog(CHAT, features=["streaming"] if declared == "always" else [], binding=f'dialect = {{ stream = "{declared}" }}\n')
    for surface, body in ((CHAT, {"messages": [TURN]}), (RESPONSES, {"input": "hi"})):
        decision = decided(surface, built, {"model": "m", "stream": asked, **body})
        assert (decision.plan.stream, decision.plan.upstream_stream) == (asked, not asked)
        assert json.loads(decision.draft.body).get("stream", False) is not asked


def test_gemini_is_asked_by_its_path(catalog):
    built = catalog(GEMINI, features=["streaming"], binding='dialect = { stream = "always" }\n')
    plan = decided(GEMINI, built, {"contents": []}, model="m", stream=False).plan
    assert plan.upstream_path == "/v1beta/models/up-model:streamGenerateContent?alt=sse"
    assert dict(plan.headers)["accept"] == "text/event-stream"
