"""The outbound gate, rule by rule: what passes keeps its bytes, what does not is dropped or rejected as declared."""

from __future__ import annotations

import re

import msgspec
import pytest

from asgi_surface.codecs.base import Codec, Guard, Needs, ShippedPolicy
from asgi_surface.codecs.chat import request as chat
from asgi_surface.codecs.responses import fields as responses_fields
from asgi_surface.codecs.responses import request as responses
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import encode, parse
from asgi_surface.policy import Gated, Policy, UnknownField, extended, gate, shipped
from asgi_surface.surfaces import CHAT, GEMINI, RESPONSES, Feature

ALL = frozenset(Feature)
NONE: frozenset[Feature] = frozenset()


def _codec(surface, tool_types, **more):
    names = "watch document error error_facts models model rows lift lower read write unsaid decoder encoder folder unfold envelope"
    unused = dict.fromkeys(names.split(), parse)
    shipped_policy = ShippedPolicy(name="unused", fields=frozenset())
    return Codec(
        surface=surface, policy=shipped_policy, required=frozenset(), needs=lambda _members, _stream: Needs(), tool_types=tool_types, **unused, **more
    )


def _camel(name):
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _member_types(raw):
    """As on Gemini: a tool's types are the names of its members."""
    return [(f"/{index}/{name}", _camel(name)) for index, tool in enumerate(msgspec.json.decode(raw)) for name in tool]


PLAIN = _codec(CHAT, chat.tool_types)
NESTING = _codec(RESPONSES, responses.tool_types)
COUNTING = _codec(GEMINI, _member_types, names=_camel, count_fields=frozenset({"generateContentRequest"}))


def _policy(**changes):
    base = Policy(
        name="tight",
        surface=CHAT,
        allowed=frozenset({"model", "messages", "tools", "stream", "systemInstruction"}),
        guarded={
            "store": Guard(Feature.STORED_RESPONSES, harmless=(b"null", b"false")),
            "never": Guard(None),
        },
        unknown=UnknownField.DROP,
        force={},
        force_without={},
        defaults={},
        headers=frozenset(),
        tool_types=None,
    )
    return msgspec.structs.replace(base, **changes)


def _gate(body: str, policy=None, features=ALL, codec=PLAIN, **more) -> Gated:
    return gate(parse(body.encode()), policy or _policy(), codec, features, **more)


def _said(gated: Gated) -> str:
    return encode(gated.members).decode()


def _refusal(body: str, policy=None, features=ALL, codec=PLAIN) -> tuple[Code, str | None]:
    with pytest.raises(RequestError) as caught:
        _gate(body, policy, features, codec)
    return caught.value.code, caught.value.pointer


EXOTIC = (
    '{ "model" : "m" ,\n"messages":[ {"role":"user","content":"\\u00e9 \\ud83d\\ude00 é \\/"} , {"n": 1.0e+02, "big": 19876543210987654321 } ],'
    '\t"tools":[ {"type":"function" , "function":{ } } ]}'
)


def test_what_is_allowed_is_not_touched():
    gated = _gate(EXOTIC)
    assert not gated.changed
    assert gated.dropped == ()
    assert gated.members == parse(EXOTIC.encode())


def test_a_member_that_stays_keeps_its_bytes_beside_one_that_goes():
    gated = _gate(EXOTIC[:-1] + ',"x":1}')
    assert gated.changed
    assert gated.dropped == ("/x",)
    for name, raw in parse(EXOTIC.encode()).items():
        assert bytes(gated.members[name]) == bytes(raw)


@pytest.mark.parametrize(
    ("body", "features", "said", "dropped"),
    [
        ('{"model":"m","b/~c":1,"a":2,"stream":true}', NONE, '{"model":"m","stream":true}', ("/b~1~0c", "/a")),
        ('{"store":true,"model":"m"}', NONE, '{"model":"m"}', ("/store",)),
        ('{"store": false ,"model":"m"}', NONE, '{"store":false,"model":"m"}', ()),
        ('{"store":null,"model":"m"}', NONE, '{"store":null,"model":"m"}', ()),
        ('{"store":true,"model":"m"}', {Feature.STORED_RESPONSES}, '{"store":true,"model":"m"}', ()),
        ('{"never":1,"model":"m"}', ALL, '{"model":"m"}', ("/never",)),
        ('{"never":null,"model":"m"}', NONE, '{"never":null,"model":"m"}', ()),
    ],
)
def test_fields_dropped(body, features, said, dropped):
    gated = _gate(body, features=frozenset(features))
    assert (_said(gated), gated.dropped, gated.changed) == (said, dropped, bool(dropped))


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"model":"m","b/c":1,"a":2}', "/b~1c"),
        ('{"model":"m","store":true,"x":1}', "/store"),
        ('{"x":1,"tools":[{"type":"web_search"}]}', "/x"),
    ],
)
def test_the_first_field_in_the_clients_order_is_rejected(body, pointer):
    rejecting = _policy(unknown=UnknownField.REJECT, tool_types=frozenset({"function"}))
    assert _refusal(body, rejecting, NONE) == (Code.FIELD_REJECTED, pointer)


def test_a_refusal_names_the_policy_and_not_the_value():
    with pytest.raises(RequestError) as caught:
        _gate('{"secret_field":"sk-1"}', _policy(unknown=UnknownField.REJECT))
    assert "tight" in caught.value.message
    assert "sk-1" not in caught.value.text


def test_names_are_judged_in_one_spelling_and_sent_in_the_clients():
    assert _said(_gate('{"system_instruction":{"parts":[]}}', codec=COUNTING)) == '{"system_instruction":{"parts":[]}}'
    assert _gate('{"cached_content":"c"}', codec=COUNTING).dropped == ("/cached_content",)
    assert _refusal('{"system_instruction":1,"systemInstruction":1}', codec=COUNTING) == (Code.MALFORMED_BODY, "/systemInstruction")
    assert _refusal('{"cachedContent":1,"cached_content":1}', codec=COUNTING) == (Code.MALFORMED_BODY, "/cached_content")


@pytest.mark.parametrize(
    ("body", "said", "dropped", "changed"),
    [
        # A forced field that nobody allowed is written all the same, and what the client said of it is reported only where it differed.
        ('{"store":true,"model":"m"}', '{"store":{"a":[false]},"model":"m"}', ("/store",), True),
        ('{"store": { "a" : [ false ] } ,"model":"m"}', '{"store":{ "a" : [ false ] },"model":"m"}', (), False),
        ('{"store":{"a":[0]},"model":"m"}', '{"store":{"a":[false]},"model":"m"}', ("/store",), True),
        ('{"model":"m"}', '{"model":"m","store":{"a":[false]}}', (), True),
    ],
)
def test_force(body, said, dropped, changed):
    gated = _gate(body, _policy(unknown=UnknownField.REJECT, force={"store": b'{"a":[false]}'}))
    assert (_said(gated), gated.dropped, gated.changed) == (said, dropped, changed)


def test_force_and_defaults_write_the_clients_spelling():
    policy = _policy(allowed=frozenset({"model", "maxTokens"}), force={"systemInstruction": b"1"}, defaults={"maxTokens": b"2"})
    assert _said(_gate('{"system_instruction":5,"max_tokens":6}', policy, codec=COUNTING)) == '{"system_instruction":1,"max_tokens":6}'
    assert _said(_gate('{"model":"m"}', policy, codec=COUNTING)) == '{"model":"m","maxTokens":2,"systemInstruction":1}'


@pytest.mark.parametrize(
    ("features", "force", "said"),
    [
        (NONE, {}, '{"model":"m","store":false}'),
        ({Feature.STORED_RESPONSES}, {}, '{"model":"m"}'),
        (NONE, {"store": b"true"}, '{"model":"m","store":true}'),
    ],
)
def test_force_without_a_feature(features, force, said):
    policy = _policy(force=force, force_without={"store": (Feature.STORED_RESPONSES, b"false")})
    assert _said(_gate('{"model":"m"}', policy, frozenset(features))) == said


def test_defaults_only_where_absent():
    policy = _policy(defaults={"stream": b"false", "top_p": b"0.5"})
    gated = _gate('{"stream":null,"model":"m"}', policy)
    assert (_said(gated), gated.dropped, gated.changed) == ('{"stream":null,"model":"m","top_p":0.5}', (), True)


def test_a_counting_body_is_judged_but_not_written_to():
    policy = _policy(force={"store": b"false"}, force_without={"x": (Feature.BACKGROUND, b"1")}, defaults={"top_p": b"1"})
    body = '{"generateContentRequest":{},"model":"m"}'
    assert not _gate(body, policy, NONE, COUNTING, counting=True).changed
    assert _gate('{"other":1}', policy, NONE, COUNTING, counting=True).dropped == ("/other",)
    assert _gate(body, policy, NONE, COUNTING).dropped == ("/generateContentRequest",)


FUNCTION = '{"type" : "function", "function":{"n":1.50}}'
SEARCH = '{"type":"web_search"}'


@pytest.mark.parametrize(
    ("codec", "tools", "left", "dropped"),
    [
        (PLAIN, f"[ {FUNCTION} , {FUNCTION} ]", f"[ {FUNCTION} , {FUNCTION} ]", ()),
        (PLAIN, f"[{SEARCH}, {FUNCTION} ,{SEARCH}]", f"[{FUNCTION}]", ("/tools/0", "/tools/2")),
        (PLAIN, f"[{SEARCH}]", None, ("/tools/0",)),
        (PLAIN, "[]", "[]", ()),
        (PLAIN, "null", "null", ()),
        (PLAIN, '[{"function":{}}]', '[{"function":{}}]', ()),
        (NESTING, '[{"type":"namespace","tools":[{"type":"function"}]}]', '[{"type":"namespace","tools":[{"type":"function"}]}]', ()),
        (NESTING, f'[{FUNCTION},{{"type":"namespace","tools":[{SEARCH},{SEARCH},{FUNCTION}]}}]', f"[{FUNCTION}]", ("/tools/1",)),
        (
            COUNTING,
            '[{"function":[ 1 ], "google_search":{}} , {"googleSearch":{}},{"function":[2]},{}]',
            '[{"function":[ 1 ]},{"function":[2]},{}]',
            ("/tools/0/google_search", "/tools/1/googleSearch"),
        ),
        (COUNTING, '[{"googleSearch":{},"codeExecution":{}}]', None, ("/tools/0/googleSearch", "/tools/0/codeExecution")),
    ],
)
def test_tool_types_dropped(codec, tools, left, dropped):
    policy = _policy(tool_types=frozenset({"function", "namespace"}))
    gated = _gate(f'{{"tools":{tools},"model":"m"}}', policy, codec=codec)
    assert _said(gated) == ('{"model":"m"}' if left is None else f'{{"tools":{left},"model":"m"}}')
    assert (gated.dropped, gated.changed) == (dropped, bool(dropped))


@pytest.mark.parametrize(
    ("codec", "tools", "pointer"),
    [
        (PLAIN, f"[{FUNCTION},{SEARCH}]", "/tools/1"),
        (NESTING, f'[{{"type":"namespace","tools":[{SEARCH}]}}]', "/tools/0"),
        (NESTING, "[{}]", "/tools/0"),
        (COUNTING, '[{"function":[],"googleSearch":{}}]', "/tools/0/googleSearch"),
    ],
)
def test_tool_types_rejected(codec, tools, pointer):
    policy = _policy(unknown=UnknownField.REJECT, tool_types=frozenset({"function", "namespace"}))
    assert _refusal(f'{{"tools":{tools}}}', policy, codec=codec) == (Code.FIELD_REJECTED, pointer)


@pytest.mark.parametrize(
    ("codec", "tools", "pointer"),
    [
        (PLAIN, '[{"type":"function","type":"web_search"}]', "/tools/0/type"),
        (PLAIN, f'[{FUNCTION},{{"type":"function","function":1,"function":2}}]', "/tools/1/function"),
        (PLAIN, '["function"]', "/tools/0"),
        (PLAIN, '[{"type":7}]', "/tools/0/type"),
        (PLAIN, "{}", "/tools"),
        (NESTING, '[{"type":"namespace","tools":[{"type":"function","type":"mcp"}]}]', "/tools/0/tools/0/type"),
        (NESTING, '[{"type":"namespace","tools":[{"type":1}]}]', "/tools/0/tools/0/type"),
        (NESTING, '[{"type":"namespace","tools":[3]}]', "/tools/0/tools/0"),
        (NESTING, '[{"type":"namespace"}]', "/tools/0/tools"),
        (COUNTING, '[{"googleSearch":{},"googleSearch":{}}]', "/tools/0/googleSearch"),
    ],
)
@pytest.mark.parametrize(("tool_types", "features"), [(frozenset({"function"}), ALL), (None, NONE)])
def test_a_tool_has_one_reading_where_the_gate_looks(codec, tools, pointer, tool_types, features):
    assert _refusal(f'{{"tools":{tools}}}', _policy(tool_types=tool_types), features, codec) == (Code.MALFORMED_BODY, pointer)


def test_the_gate_does_not_look_into_tools_where_all_may_pass():
    body = '{"tools":[{"type":"function","type":"web_search"}]}'
    assert not _gate(body, features=frozenset({Feature.HOSTED_TOOLS})).changed


def test_forced_tools_are_the_operators():
    gated = _gate(f'{{"tools":[{FUNCTION}]}}', _policy(force={"tools": f"[{SEARCH}]".encode()}, tool_types=frozenset({"function"})))
    assert (_said(gated), gated.dropped) == (f'{{"tools":[{SEARCH}]}}', ("/tools",))


def test_a_shipped_policy_rejects_and_keeps_its_guards():
    policy = shipped(RESPONSES, responses_fields.POLICY)
    assert (policy.name, policy.surface, policy.unknown) == ("openai-responses-default", RESPONSES, UnknownField.REJECT)
    assert _said(_gate('{"model":"m","background":false}', policy, NONE, NESTING)) == '{"model":"m","background":false,"store":false}'
    assert _refusal('{"model":"m","background":true}', policy, NONE, NESTING) == (Code.FIELD_REJECTED, "/background")
    assert _refusal('{"model":"m","access_programs":{"cyber":"daybreak_red"}}', policy, ALL, NESTING) == (Code.FIELD_REJECTED, "/access_programs")
    assert not _gate('{"model":"m","previous_response_id":"resp_1","store":true}', policy, ALL, NESTING).changed


NOTHING = dict.fromkeys(
    ("allowed_fields", "unknown_field_action", "force", "defaults", "allowed_headers", "allowed_tool_types"),
)


def test_an_extension_without_keys_is_its_parent_by_another_name():
    parent = shipped(RESPONSES, responses_fields.POLICY)
    assert extended(parent, "mine", RESPONSES, **NOTHING) == msgspec.structs.replace(parent, name="mine")


def test_every_key_given_replaces_the_parents():
    parent = shipped(RESPONSES, responses_fields.POLICY)
    policy = extended(
        parent,
        "mine",
        RESPONSES,
        allowed_fields=["model", "previous_response_id"],
        unknown_field_action=UnknownField.DROP,
        force={"top_p": 0.5},
        defaults={"text": {"verbosity": "low"}},
        allowed_headers=["OpenAI-Beta"],
        allowed_tool_types=["function"],
    )
    assert (policy.headers, policy.tool_types) == (frozenset({"openai-beta"}), frozenset({"function"}))
    # The guarded field that the operator listed passes unguarded; the one that was not listed does not pass with its feature either.
    body = '{"model":"m","previous_response_id":"r","background":true,"input":"x"}'
    gated = _gate(body, policy, frozenset({Feature.BACKGROUND}), NESTING)
    assert _said(gated) == '{"model":"m","previous_response_id":"r","text":{"verbosity":"low"},"store":false,"top_p":0.5}'
    assert gated.dropped == ("/background", "/input")


def test_without_a_parent_only_what_is_given_passes():
    policy = extended(None, "own", CHAT, **{**NOTHING, "allowed_fields": ["model"], "defaults": {}})
    assert _said(_gate('{"model":"m"}', policy, NONE)) == '{"model":"m"}'
    assert _refusal('{"model":"m","messages":[]}', policy) == (Code.FIELD_REJECTED, "/messages")
