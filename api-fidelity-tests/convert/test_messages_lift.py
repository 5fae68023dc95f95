"""A Messages request in no surface's words: every construct is named at its place, nothing unknown passes, and texts keep their bytes."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.messages.lift import lift
from asgi_surface.codecs.messages.verdicts import ROWS
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.verdicts import Verdict

HI = {"role": "user", "content": "hi"}
CACHE = {"type": "ephemeral", "ttl": "1h"}
EXTRA = {"model": "m", "max_tokens": 64, "messages": [HI]}
BASE = {("field:model", "/model"), ("field:max_tokens", "/max_tokens"), ("field:messages", "/messages"), ("role:user", "/messages/0")}


def lifted(body, stream=False):
    return lift(parse(body if isinstance(body, bytes) else json.dumps(body).encode()), stream)


def parts(*blocks, role="user"):
    """The parts of one turn with these blocks, and the constructs below it."""
    found = lifted({"messages": [{"role": role, "content": list(blocks)}]})
    (turn,) = found.request.turns
    mentions = [(mention.construct, mention.pointer.removeprefix("/messages/0/content")) for mention in found.mentions]
    return turn.parts, {mention for mention in mentions if mention[0].split(":")[0] in ("block", "seal")}


FIELDS = [
    ({"system": "S"}, {("field:system", "/system")}),
    (
        {"system": [{"type": "text", "text": "A", "cache_control": CACHE}]},
        {("field:system", "/system"), ("block:text", "/system/0"), ("block:text.cache_control", "/system/0/cache_control")},
    ),
    ({"stream": True}, {("field:stream", "/stream")}),
    ({"stream": False}, set()),
    ({"temperature": None, "tools": [], "mcp_servers": [], "stop_sequences": [], "speed": "standard", "fallbacks": "default"}, set()),
    ({"top_k": 4, "top_p": 0.5}, {("field:top_k", "/top_k"), ("field:top_p", "/top_p")}),
    ({"metadata": {"user_id": "u"}}, {("field:metadata.user_id", "/metadata/user_id")}),
    ({"metadata": {}}, {("field:metadata", "/metadata")}),
    ({"service_tier": "auto"}, {("field:service_tier.auto", "/service_tier")}),
    ({"service_tier": "later"}, {("field:service_tier", "/service_tier")}),
    ({"speed": "fast"}, {("field:speed", "/speed")}),
    ({"container": "c", "mcp_servers": [{}]}, {("field:container", "/container"), ("field:mcp_servers", "/mcp_servers")}),
    ({"context_management": {}}, set()),
    (
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]}},
        {
            ("field:context_management.keep_all", "/context_management/edits/0"),
            ("field:context_management", "/context_management/edits/1"),
        },
    ),
    ({"tool_choice": {"type": "auto"}}, {("field:tool_choice", "/tool_choice"), ("choice:auto", "/tool_choice")}),
    (
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {
            ("field:tool_choice", "/tool_choice"),
            ("choice:any", "/tool_choice"),
            ("field:tool_choice.disable_parallel_tool_use", "/tool_choice/disable_parallel_tool_use"),
        },
    ),
    (
        {"thinking": {"type": "adaptive", "display": "updates", "block_binding": {}}, "output_config": {"effort": "low", "task_budget": {}}},
        {
            ("field:thinking", "/thinking"),
            ("field:thinking.adaptive.effort", "/thinking"),
            ("field:thinking.display.updates", "/thinking/display"),
            ("field:thinking.block_binding", "/thinking/block_binding"),
            ("field:output_config", "/output_config"),
            ("field:output_config.effort", "/output_config/effort"),
            ("field:output_config.task_budget", "/output_config/task_budget"),
        },
    ),
    (
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {("field:thinking", "/thinking"), ("field:thinking.adaptive", "/thinking/type"), ("field:thinking.display", "/thinking/display")},
    ),
    (
        {"tools": [{"name": "f", "input_schema": {}, "strict": True, "defer_loading": True, "eager_input_streaming": False}]},
        {
            ("field:tools", "/tools"),
            ("tool:custom", "/tools/0"),
            ("tool:custom.strict", "/tools/0/strict"),
            ("tool:custom.defer_loading", "/tools/0/defer_loading"),
        },
    ),
    ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, {("field:tools", "/tools"), ("tool:web_search_20250305", "/tools/0")}),
    (
        {"messages": [HI, {"role": "system", "content": "MID", "clear_at": "next_user_message", "output_config": {"effort": "low"}}]},
        {
            ("role:system", "/messages/1"),
            ("role:system.clear_at", "/messages/1/clear_at"),
            ("role:system.output_config", "/messages/1/output_config"),
        },
    ),
]


@pytest.mark.parametrize(("extra", "expected"), FIELDS)
def test_members_are_named_where_they_mean_something(extra, expected):
    found = lifted(EXTRA | extra)
    mentions = {(mention.construct, mention.pointer) for mention in found.mentions}
    assert mentions == BASE | expected
    assert {construct for construct, _ in mentions} <= set(ROWS)


def test_settings_keep_their_text_and_say_where_they_stand():
    body = (
        b'{"messages": [], "max_tokens": 1e2, "temperature": 0.50, "top_p": 1.0, "top_k": 40, "stop_sequences": ["#"], '
        b'"metadata": {"user_id": "u"}, "service_tier": "standard_only", "tool_choice": {"type": "none", "disable_parallel_tool_use": false}}'
    )
    request = lifted(body, stream=True).request
    at = {name: f"/{name}" for name in ("max_tokens", "temperature", "top_p", "top_k", "service_tier")}
    at |= {"stop": "/stop_sequences", "safety_id": "/metadata/user_id", "parallel": "/tool_choice/disable_parallel_tool_use"}
    assert request.settings == ir.Settings(
        max_tokens=Raw(b"1e2"),
        temperature=Raw(b"0.50"),
        top_p=Raw(b"1.0"),
        top_k=Raw(b"40"),
        stop=("#",),
        safety_id="u",
        service_tier="default",
        parallel=True,
        at=at,
    )
    assert (request.stream, request.include_usage, request.wants_seals) == (True, True, True)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, ir.Choice(ir.Pick.AUTO, None, "/tool_choice")),
        ({"type": "any"}, ir.Choice(ir.Pick.REQUIRED, None, "/tool_choice")),
        ({"type": "tool", "name": "f"}, ir.Choice(ir.Pick.REQUIRED, ("f",), "/tool_choice")),
        ({"type": "none"}, ir.Choice(ir.Pick.NONE, None, "/tool_choice")),
    ],
)
def test_tool_choices(choice, expected):
    assert lifted({"messages": [], "tool_choice": choice}).request.choice == expected


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, None),
        ({"output_config": {"effort": "max"}}, ir.Effort("max", at="/output_config/effort")),
        ({"thinking": {"type": "disabled"}}, ir.Effort(off=True, at="/thinking")),
        ({"thinking": {"type": "between_tools"}}, ir.Effort(at="/thinking")),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, ir.Effort(budget=2048, summary="auto", at="/thinking")),
        ({"thinking": {"type": "enabled", "budget_tokens": 9, "display": "omitted"}}, ir.Effort(budget=9, summary="omitted", at="/thinking")),
        ({"thinking": {"type": "adaptive"}}, ir.Effort(adaptive=True, at="/thinking")),
        (
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
            ir.Effort("low", adaptive=True, summary="auto", at="/thinking"),
        ),
    ],
)
def test_reasoning(members, expected):
    assert lifted({"messages": []} | members).request.effort == expected


@pytest.mark.parametrize(
    ("member", "at"), [(b'"output_config": {"format": %b}', "/output_config/format"), (b'"output_format": %b', "/output_format")]
)
def test_both_spellings_of_structured_output_keep_the_schema(member, at):
    schema = b'{"type": "object", "n": 1.0}'
    body = b'{"messages": [], %b}' % (member % (b'{"type": "json_schema", "schema": %b}' % schema))
    found = lifted(body)
    assert found.request.format == ir.Format(Raw(schema), at=at)
    assert at in {mention.pointer for mention in found.mentions}


def test_turns_stand_in_place_with_their_pointers():
    body = {"system": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}], "messages": [HI, {"role": "system", "content": "MID"}]}
    assert lifted(body).request.turns == (
        ir.Turn(ir.Role.SYSTEM, (ir.Text("A", "/system/0"), ir.Text("B", "/system/1")), "/system"),
        ir.Turn(ir.Role.USER, (ir.Text("hi", "/messages/0/content"),), "/messages/0"),
        ir.Turn(ir.Role.SYSTEM, (ir.Text("MID", "/messages/1/content"),), "/messages/1"),
    )


def test_an_empty_system_prompt_is_none_and_a_turn_without_content_is_empty():
    assert lifted({"system": "", "messages": [{"role": "user", "content": ""}]}).request.turns == (ir.Turn(ir.Role.USER, (), "/messages/0"),)


def test_tools_keep_their_schemas():
    body = b'{"messages": [], "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "x": 1.0}, "strict": true}]}'
    tool = ir.Tool("f", "d", Raw(b'{"type": "object", "x": 1.0}'), strict=True, at="/tools/0")
    assert lifted(body).request.tools == (tool,)


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
AT = "/messages/0/content/0"
BLOCKS = [
    ({"type": "text", "text": "x", "citations": [{}]}, ir.Text("x", AT), {"text", "text.citations"}),
    ({"type": "image", "source": PNG}, ir.Image(ir.Inline("image/png", "iVBORw0KGgo="), at=AT), {"image", "image.base64"}),
    ({"type": "image", "source": {"type": "url", "url": "u"}}, ir.Image(ir.Link("u"), at=AT), {"image", "image.url"}),
    ({"type": "image", "source": {"type": "file", "file_id": "f"}}, None, {"image", "image.file"}),
    (
        {"type": "image", "source": PNG, "transformations": {"oversized_image": "error"}},
        ir.Image(ir.Inline("image/png", "iVBORw0KGgo="), at=AT),
        {"image", "image.base64", "image.transformations"},
    ),
    (
        {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "sky"}, "citations": {"enabled": True}},
        ir.Document(ir.Inline("text/plain", "c2t5"), "t", AT),
        {"document", "document.text", "document.title", "document.citations"},
    ),
    (
        {"type": "document", "source": {"type": "url", "url": "u"}, "context": "c", "citations": {"enabled": False}},
        ir.Document(ir.Link("u"), None, AT),
        {"document", "document.url", "document.context"},
    ),
    ({"type": "document", "source": {"type": "content", "content": "x"}}, None, {"document", "document.content"}),
    ({"type": "thinking", "thinking": "T"}, ir.Reasoning("T", None, AT), {"thinking", "thinking.unsealed"}),
    (
        {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "42", "cache_control": CACHE},
        ir.Result("t", (ir.Text("42", f"{AT}/content"),), failed=True, at=AT),
        {"tool_result", "tool_result.is_error", "tool_result.cache_control"},
    ),
    ({"type": "tool_result", "tool_use_id": "t"}, ir.Result("t", (), at=AT), {"tool_result"}),
    (
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": [
                {"type": "image", "source": PNG},
                {"type": "document", "source": {"type": "url", "url": "u"}},
                {"type": "tool_reference", "tool_name": "n"},
                {"type": "search_result"},
            ],
        },
        ir.Result(
            "t",
            (
                ir.Image(ir.Inline("image/png", "iVBORw0KGgo="), at=f"{AT}/content/0"),
                ir.Document(ir.Link("u"), None, f"{AT}/content/1"),
                ir.Text("n", f"{AT}/content/2"),
            ),
            at=AT,
        ),
        {
            "tool_result",
            "tool_result.image",
            "image",
            "image.base64",
            "tool_result.document",
            "document",
            "document.url",
            "tool_reference",
            "search_result",
        },
    ),
    ({"type": "server_tool_use", "anything": 1}, None, {"server_tool_use"}),
    ({"type": "fallback", "from": {}, "to": {}}, None, {"fallback"}),
]


@pytest.mark.parametrize(("block", "part", "constructs"), BLOCKS)
def test_blocks(block, part, constructs):
    found, mentions = parts(block)
    assert found == (() if part is None else (part,))
    assert {construct for construct, _ in mentions} == {f"block:{name}" for name in constructs} <= set(ROWS)


def test_a_call_keeps_its_text():
    body = (
        b'{"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"y": 1.0, "z": -0}, '
        b'"caller": {"type": "direct"}}, {"type": "tool_use", "id": "u", "name": "f", "input": {}, "caller": {"type": "code_execution_20250825", '
        b'"tool_id": "x"}}]}]}'
    )
    found = lifted(body)
    first, second = found.request.turns[0].parts
    assert (first.arguments, second.arguments) == ('{"y": 1.0, "z": -0}', "{}")
    assert [mention.pointer for mention in found.mentions if mention.construct == "block:tool_use.caller"] == ["/messages/0/content/1/caller"]


def envelope(kind, surface, token="token", identity=""):
    seal = ir.Seal(token, kind, surface, "up", identity)
    return seal, seals.wrap(seal, "up")


def test_a_bare_token_is_anthropics_own():
    found, mentions = parts(
        {"type": "thinking", "thinking": "T", "signature": "sig"}, {"type": "redacted_thinking", "data": "secret"}, role="assistant"
    )
    assert [part.seal for part in found] == [
        ir.Seal("sig", ir.SealKind.SIGNATURE, MESSAGES),
        ir.Seal("secret", ir.SealKind.REDACTED, MESSAGES),
    ]
    assert {("seal:signature", "/0/signature"), ("seal:redacted", "/1/data")} <= mentions


def test_an_envelope_is_opened():
    seal, text = envelope(ir.SealKind.ENCRYPTED, RESPONSES)
    found, mentions = parts({"type": "thinking", "thinking": "T", "signature": text}, role="assistant")
    assert found == (ir.Reasoning("T", seal, AT),)
    assert ("seal:encrypted", "/0/signature") in mentions


def test_hidden_reasoning_text_is_found_in_its_envelope():
    seal, text = envelope(ir.SealKind.TEXT, CHAT, "hidden words")
    found, _ = parts({"type": "thinking", "thinking": "", "signature": text}, role="assistant")
    assert found == (ir.Reasoning("hidden words", seal, AT),)


@pytest.mark.parametrize(
    ("kind", "thought", "owner", "owned"),
    [
        (ir.SealKind.THOUGHT, "", "t", True),
        (ir.SealKind.THOUGHT, "", "", False),
        (ir.SealKind.THOUGHT, "", "other", False),
        (ir.SealKind.THOUGHT, "words", "t", False),
        (ir.SealKind.SIGNATURE, "", "t", False),
    ],
)
def test_the_seal_of_a_call_goes_back_to_its_call(kind, thought, owner, owned):
    seal, text = envelope(kind, GEMINI, identity=owner)
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    found, _ = parts({"type": "thinking", "thinking": thought, "signature": text}, call, role="assistant")
    bare = ir.Call("t", "f", "{}", at="/messages/0/content/1")
    own = structs.replace(seal, at=AT)  # where it stands in the body
    assert found == ((ir.Call("t", "f", "{}", seal=own, at=bare.at),) if owned else (ir.Reasoning(thought, seal, AT), bare))


def test_a_call_after_words_has_no_seal():
    found, _ = parts({"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, role="assistant")
    assert found[1].seal is None


UNKNOWN = [
    ({"frobnicate": 1}, "/frobnicate"),
    ({"tools": [{"name": "f", "input_schema": {}, "new/member": 1}]}, "/tools/0/new~1member"),
    ({"tools": [{"type": "newest_20300101", "name": "f"}]}, "/tools/0/type"),
    ({"tool_choice": {"type": "auto", "x": 1}}, "/tool_choice/x"),
    ({"thinking": {"type": "disabled", "x": 1}}, "/thinking/x"),
    ({"messages": [{"role": "user", "content": "x", "name": "n"}]}, "/messages/0/name"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "extra": 1}]}]}, "/messages/0/content/0/extra"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": PNG | {"x": 1}}]}]}, "/messages/0/content/0/source/x"),
    ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "/messages/0/content/0/type"),
    ({"messages": [{"role": "user", "content": [{}]}]}, "/messages/0/content/0/type"),
    ({"messages": [{"role": "tool", "content": ""}]}, "/messages/0/role"),
]
MALFORMED = [
    ({"messages": {}}, "/messages"),
    ({"messages": [{"role": "user", "content": 4}]}, "/messages/0/content"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "/messages/0/content/0"),
    ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": []}]}]}, "/messages/0/content/0/input"),
    (
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_use"}]}]}]},
        "/messages/0/content/0/content/0/type",
    ),
    ({"messages": [{"role": "user", "content": [{"type": "tool_reference", "tool_name": "n"}]}]}, "/messages/0/content/0/type"),
    ({"system": [{"type": "image", "source": PNG}]}, "/system/0/type"),
    ({"temperature": "warm"}, "/temperature"),
    ({"stop_sequences": "x"}, "/stop_sequences"),
    ({"tool_choice": {"type": "tool"}}, "/tool_choice"),
    ({"tool_choice": {"type": "auto", "name": "f"}}, "/tool_choice"),
    ({"thinking": {"type": "enabled"}}, "/thinking"),
    ({"tools": [{"name": "f", "input_schema": None}]}, "/tools/0/input_schema"),
    ({"output_config": {"format": {"type": "json_schema", "schema": 1}}}, "/output_config/format/schema"),
]


@pytest.mark.parametrize(
    ("extra", "pointer", "code"), [(*row, Code.UNREPRESENTABLE) for row in UNKNOWN] + [(*row, Code.MALFORMED_BODY) for row in MALFORMED]
)
def test_what_is_unknown_or_misshapen_is_refused_at_its_place(extra, pointer, code):
    with pytest.raises(RequestError) as caught:
        lifted(EXTRA | extra)
    assert (caught.value.pointer, caught.value.code) == (pointer, code)


def test_every_other_surface_has_a_verdict_and_a_reason_where_it_is_not_exact():
    assert {frozenset(row.verdicts) for row in ROWS.values()} == {frozenset({CHAT, RESPONSES, GEMINI})}
    assert [row.construct for row in ROWS.values() if bool(row.why) is (set(row.verdicts.values()) == {Verdict.EXACT})] == []
