"""A request of any surface as a Messages body: the same meaning, or a refusal at the client's pointer."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir
from asgi_surface.codecs.base import Alias, Dialect, Target
from asgi_surface.codecs.messages.lift import lift
from asgi_surface.codecs.messages.lower import lower
from asgi_surface.codecs.messages.verdicts import ROWS
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import GEMINI, MESSAGES, Feature
from asgi_surface.verdicts import Mention, Verdict

USER, ASSISTANT, SYSTEM, DEVELOPER = ir.Role.USER, ir.Role.ASSISTANT, ir.Role.SYSTEM, ir.Role.DEVELOPER
SCHEMA = Raw(b'{"type": "object", "properties": {"x": {"const": 1.0}}}')
SEAL = ir.Seal("sig", ir.SealKind.SIGNATURE, MESSAGES, "up")


def target(*features, **dialect):
    return Target(model="up-model", dialect=Dialect(**dialect), seal_domain="up", features=frozenset(features))


def turn(role, *parts, at="/t"):
    return ir.Turn(role, tuple(ir.Text(part) if isinstance(part, str) else part for part in parts), at)


def request(*turns, **more):
    return ir.Request(turns=turns or (turn(USER, "hi"),), **more)


def body(wanted, to=None):
    return json.loads(encode(lower(wanted, to or target()).members))


def said(*parts, role=USER, to=None):
    """The blocks of one turn."""
    return body(request(turn(role, *parts)), to)["messages"][0]["content"]


def text(words):
    return {"type": "text", "text": words}


def test_the_least_request():
    lowered = lower(ir.Request(turns=(), stream=True), target())
    assert json.loads(encode(lowered.members)) == {"model": "up-model", "messages": [], "max_tokens": 8192, "stream": True}
    assert (lowered.added, dict(lowered.origins)) == ({"model", "max_tokens"}, {"messages": "", "stream": "/stream"})


def test_leading_instructions_become_the_system_prompt():
    wanted = request(turn(SYSTEM, "S1", at="/messages/0"), turn(DEVELOPER, "D1", "D2"), turn(USER, "hi", at="/messages/2"))
    lowered = lower(wanted, target())
    found = json.loads(encode(lowered.members))
    assert found["system"] == [text("S1"), text("D1"), text("D2")]
    assert found["messages"] == [{"role": "user", "content": [text("hi")]}]
    assert (lowered.origins["system"], lowered.origins["messages"]) == ("/messages/0", "/messages/2")


def test_an_empty_system_prompt_is_left_out():
    found = body(request(turn(SYSTEM, ""), turn(USER, "", "x")))
    assert "system" not in found
    assert found["messages"] == [{"role": "user", "content": [text("x")]}]


def test_later_instructions_need_an_upstream_that_takes_them():
    with pytest.raises(RequestError) as caught:
        body(request(turn(USER, "q"), turn(DEVELOPER, "MID", at="/messages/1")))
    assert caught.value.pointer == "/messages/1"


CALLED, ANSWERED = turn(ASSISTANT, ir.Call("t", "f", "{}")), turn(USER, ir.Result("t", ()))
PLACED = {
    "at the end": ([turn(USER, "q"), turn(SYSTEM, "I", at="/i")], ["user", "system"], []),
    "before the model": (
        [turn(USER, "q"), turn(SYSTEM, "I", at="/i"), turn(ASSISTANT, "a"), turn(USER, "r")],
        ["user", "system", "assistant", "user"],
        [],
    ),
    "between a user's": ([turn(USER, "q"), turn(DEVELOPER, "I", at="/i"), turn(USER, "r")], ["user", "system"], ["/i"]),
    "behind the model": (
        [turn(USER, "q"), turn(ASSISTANT, "a"), turn(SYSTEM, "I", at="/i"), turn(USER, "r"), turn(SYSTEM, "J", at="/j")],
        ["user", "assistant", "user", "system"],
        ["/i"],
    ),
    "between call and result": ([turn(USER, "q"), CALLED, turn(SYSTEM, "I", at="/i"), ANSWERED], ["user", "assistant", "user", "system"], ["/i"]),
    "before a turn that says nothing": ([turn(USER, "q"), turn(SYSTEM, "I", at="/i"), turn(ASSISTANT, ""), turn(USER, "r")], ["user", "system"], []),
    "in front": ([turn(SYSTEM, "I"), turn(USER, "q")], ["user"], []),
}


@pytest.mark.parametrize(("turns", "roles", "moved"), PLACED.values(), ids=PLACED)
def test_later_instructions_stand_where_the_api_takes_them(turns, roles, moved):
    """It refuses them anywhere but behind a user's turn, before one of the model's or at the end."""
    lowered = lower(request(*turns), target(Feature.MID_CONVERSATION_SYSTEM))
    assert [message["role"] for message in json.loads(bytes(lowered.members["messages"]))] == roles
    assert lowered.emulated == tuple(Mention("order:instruction", at) for at in moved)


@pytest.mark.parametrize("after", [(), (turn(ASSISTANT, "b"), turn(USER, "r"))])
def test_an_instruction_that_no_user_speaks_before_has_no_place(after):
    with pytest.raises(RequestError) as caught:
        lower(request(turn(USER, "q"), turn(ASSISTANT, "a"), turn(SYSTEM, "I", at="/i"), *after), target(Feature.MID_CONVERSATION_SYSTEM))
    assert caught.value.pointer == "/i"


def test_neighbours_of_one_role_are_one_message_with_results_first():
    wanted = request(
        turn(USER, "one"),
        turn(USER, "two"),
        turn(ASSISTANT, "a", ir.Call("t", "f", "{}")),
        turn(USER, "note"),
        turn(USER, ir.Result("t", (ir.Text("r"),), failed=True), "also"),
        turn(ASSISTANT, ""),
    )
    assert body(wanted)["messages"] == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("a"), {"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [text("r")], "is_error": True}, text("note"), text("also")],
        },
    ]


DATA = ir.Inline("image/png", "iVBORw0KGgo=")
PARTS = [
    (USER, ir.Image(DATA), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}),
    (USER, ir.Image(ir.Link("https://a.example/b")), {"type": "image", "source": {"type": "url", "url": "https://a.example/b"}}),
    (
        USER,
        ir.Document(ir.Inline("application/pdf", "JVBERi0="), "a.pdf"),
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "a.pdf"},
    ),
    (
        USER,
        ir.Document(ir.Inline("text/csv", "c2t5")),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "sky"}},
    ),
    (USER, ir.Document(ir.Link("u")), {"type": "document", "source": {"type": "url", "url": "u"}}),
    (USER, ir.Result("t", ()), {"type": "tool_result", "tool_use_id": "t"}),
    (ASSISTANT, ir.Refusal("no"), text("no")),
    (ASSISTANT, ir.Call("t", "f", ""), {"type": "tool_use", "id": "t", "name": "f", "input": {}}),
    (ASSISTANT, ir.Call("t", "f", "free", ir.Form.CUSTOM), {"type": "tool_use", "id": "t", "name": "f", "input": {"input": "free"}}),
    (ASSISTANT, ir.Reasoning("T", SEAL), {"type": "thinking", "thinking": "T", "signature": "sig"}),
    (ASSISTANT, ir.Reasoning("", structs.replace(SEAL, kind=ir.SealKind.REDACTED)), {"type": "redacted_thinking", "data": "sig"}),
]


@pytest.mark.parametrize(("role", "part", "block"), PARTS)
def test_parts(role, part, block):
    assert said(part, role=role) == [block]


def test_the_seal_of_a_call_stands_before_it():
    assert [block["type"] for block in said(ir.Call("t", "f", "{}", seal=SEAL), role=ASSISTANT)] == ["thinking", "tool_use"]


@pytest.mark.parametrize("seal", [None, ir.Seal("T", ir.SealKind.TEXT, MESSAGES, "up")])
def test_reasoning_that_nobody_signed_is_left_out(seal):
    assert said(ir.Reasoning("T", seal), "a", role=ASSISTANT) == [text("a")]


def test_arguments_keep_their_bytes():
    arguments = '{"big": 19876543210987654321, "y":1.0,"z":-0}'
    assert arguments.encode() in encode(lower(request(turn(ASSISTANT, ir.Call("t", "f", arguments))), target()).members)


REFUSED_PARTS = [
    (USER, ir.Audio(ir.Inline("audio/wav", "UklGRg=="), at="/p"), "audio"),
    (USER, ir.Image(ir.Inline("image/heic", "x"), at="/p"), "JPEG"),
    (USER, ir.Image(ir.Stored("f"), at="/p"), "another provider"),
    (USER, ir.Document(ir.Inline("", "x"), at="/p"), "PDF"),
    (USER, ir.Document(ir.Stored("f"), at="/p"), "another provider"),
    (USER, ir.Document(ir.Inline("text/plain", "!"), at="/p"), "base64"),
    (USER, ir.Document(ir.Inline("text/plain", "/w=="), at="/p"), "UTF-8"),
    (ASSISTANT, ir.Image(DATA, at="/p"), "role assistant"),
    (ASSISTANT, ir.Call("t", "f", "[]", at="/p"), "no JSON object"),
    (ASSISTANT, ir.Call("t", "f", "{", at="/p"), "no JSON object"),
    (ASSISTANT, ir.Call("t", "f", "{}", seal=ir.Seal("x", ir.SealKind.THOUGHT, GEMINI, "up"), at="/p"), "seal:foreign"),
    (ASSISTANT, ir.Reasoning("", structs.replace(SEAL, domain=""), at="/p"), "seal:foreign"),
    (ASSISTANT, ir.Reasoning("", structs.replace(SEAL, domain="sibling"), at="/p"), "seal:foreign"),
    (USER, ir.Text("", at="/p"), "without content"),
]


@pytest.mark.parametrize(("role", "part", "why"), REFUSED_PARTS)
def test_parts_that_cannot_be_said_are_refused_at_their_place(role, part, why):
    with pytest.raises(RequestError, match=why) as caught:
        body(request(turn(role, part, at="/p")))
    assert (caught.value.code, caught.value.pointer) == (Code.UNREPRESENTABLE, "/p")


def test_names_and_ids_outside_the_charset_get_aliases():
    long = "srv.x" * 40
    tools = (ir.Tool(long), ir.Tool(long + "y"), ir.Tool("f", namespace="n"), ir.Tool("n__f"))
    call = ir.Call("functions.f:0", long, "{}")
    wanted = request(
        turn(ASSISTANT, call, ir.Call("c", "f", "{}", namespace="n"), ir.Call("d", "gone!", "{}")),
        turn(USER, ir.Result("functions.f:0", ())),
        tools=tools,
        choice=ir.Choice(ir.Pick.REQUIRED, (long,)),
    )
    lowered = lower(wanted, target())
    found = json.loads(encode(lowered.members))
    names = [tool["name"] for tool in found["tools"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in names)
    assert len(set(names)) == 4
    assert names[3] == "n__f"
    assert [lowered.aliases.get(name) for name in names] == [Alias(long), Alias(long + "y"), Alias("f", namespace="n"), None]
    calls, results = found["messages"][0]["content"], found["messages"][1]["content"]
    assert [block["name"] for block in calls] == [names[0], names[2], calls[2]["name"]]
    assert re.fullmatch(r"gone__[0-9a-f]{8}", calls[2]["name"])
    assert calls[0]["id"] == results[0]["tool_use_id"] != "functions.f:0"
    assert found["tool_choice"] == {"type": "tool", "name": names[0]}


EMPTY = {"type": "object", "properties": {}}
TOOLS = [
    (ir.Tool("f", "d", SCHEMA, strict=True), {"description": "d", "input_schema": json.loads(bytes(SCHEMA)), "strict": True}),
    (
        ir.Tool("f", None, None, strict=True),
        {"input_schema": {"type": "object", "properties": {}, "additionalProperties": False}, "strict": True},
    ),
    (ir.Tool("f"), {"input_schema": EMPTY}),
    (ir.Tool("f", schema=Raw(b"{}")), {"input_schema": EMPTY}),
    (ir.Tool("f", schema=Raw(b'{"required": []}')), {"input_schema": {"type": "object", "required": []}}),
    (
        ir.Tool("f", form=ir.Form.CUSTOM, grammar=Raw(b'{"type":"grammar","syntax":"lark","definition":"start: A"}')),
        {
            "input_schema": {
                "type": "object",
                "properties": {"input": {"type": "string", "description": "Must follow this lark grammar:\nstart: A"}},
                "required": ["input"],
                "additionalProperties": False,
            }
        },
    ),
]


@pytest.mark.parametrize(("tool", "expected"), TOOLS)
def test_tools(tool, expected):
    assert body(request(tools=(tool,)))["tools"] == [{"name": "f"} | expected]


def test_a_tool_with_free_text_is_told_to_the_client_as_its_own():
    lowered = lower(request(tools=(ir.Tool("f", form=ir.Form.CUSTOM, at="/tools/0"), ir.Tool("g"))), target())
    assert lowered.aliases == {"f": Alias("f", ir.Form.CUSTOM)}
    assert lowered.emulated == (Mention("tool:custom", "/tools/0"),)


RENAMED = [
    (ir.Tool("a.b", at="/tools/0"), "tool:name"),
    (ir.Tool("f", namespace="ns", at="/tools/0"), "tool:namespace"),
]


@pytest.mark.parametrize(("tool", "how"), RENAMED)
def test_a_tool_by_another_name_is_emulated(tool, how):
    lowered = lower(request(tools=(tool, ir.Tool("g"))), target())
    assert lowered.emulated == (Mention(how, "/tools/0"),)
    assert [(alias.name, alias.namespace) for alias in lowered.aliases.values()] == [(tool.name, tool.namespace)]


RESAID = {
    "a schema that does not say that it is an object's": ({"tools": (ir.Tool("f", schema=Raw(b'{"required":[]}'), at="/x"),)}, "tool:schema"),
    "a schema that says nothing": ({"tools": (ir.Tool("f", schema=Raw(b"{}"), at="/x"),)}, "tool:schema"),
    "no schema": ({"tools": (ir.Tool("f", at="/x"),)}, None),
    "a whole schema": ({"tools": (ir.Tool("f", schema=SCHEMA, at="/x"),)}, None),
    "a schema that was not to be enforced": ({"format": ir.Format(SCHEMA, strict=False, at="/x")}, "format:strict"),
    "a schema that was": ({"format": ir.Format(SCHEMA, strict=True, at="/x")}, None),
    "a schema of a surface that enforces all": ({"format": ir.Format(SCHEMA, at="/x")}, None),
    "a call of a tool that is gone, by another name": ({"turns": (turn(ASSISTANT, ir.Call("c", "a.b", "{}", at="/x")),)}, "tool:name"),
    "in a namespace": ({"turns": (turn(ASSISTANT, ir.Call("c", "f", "{}", namespace="n", at="/x")),)}, "tool:namespace"),
    "of free text": ({"turns": (turn(ASSISTANT, ir.Call("c", "f", "x", ir.Form.CUSTOM, at="/x")),)}, "tool:custom"),
    "by its own name": ({"turns": (turn(ASSISTANT, ir.Call("c", "f", "{}", at="/x")),)}, None),
    "a call by another id": ({"turns": (turn(ASSISTANT, ir.Call("c.d", "f", "{}", at="/x")), turn(USER, ir.Result("c.d", ())))}, "call:id"),
    "a result before the words before it": ({"turns": (turn(USER, "x"), turn(USER, ir.Result("c", (), at="/x")))}, "order:result"),
    "a developer": ({"turns": (turn(DEVELOPER, "x", at="/x"), turn(USER, "x"))}, None),  # the client's table says it
}


@pytest.mark.parametrize(("wanted", "how"), RESAID.values(), ids=RESAID)
def test_what_is_said_another_way_is_named(wanted, how):
    assert lower(ir.Request(**{"turns": (turn(USER, "hi"),)} | wanted), target()).emulated == (() if how is None else (Mention(how, "/x"),))


def test_text_of_another_media_type_is_emulated_as_plain():
    documents = [ir.Document(ir.Inline(media, "aGk="), at=f"/d/{place}") for place, media in enumerate(["text/csv", "text/plain", "application/pdf"])]
    answered = ir.Result("c1", (ir.Document(ir.Inline("text/html", "aGk="), at="/r"),))
    lowered = lower(request(turn(ASSISTANT, ir.Call("c1", "f", "{}")), turn(USER, answered, *documents)), target())
    assert lowered.emulated == (Mention("document:media", "/r"), Mention("document:media", "/d/0"))


@pytest.mark.parametrize(
    ("tool", "to"),
    [
        (ir.Tool("f", form=ir.Form.CUSTOM, at="/x"), target(custom_tools="refuse")),
        (ir.Tool("f", schema=Raw(b'{"type": "array"}'), at="/x"), target()),
        (ir.Tool("f", schema=Raw(b"[]"), at="/x"), target()),
    ],
)
def test_tools_that_cannot_be_said_are_refused(tool, to):
    with pytest.raises(RequestError) as caught:
        body(request(tools=(tool,)), to)
    assert caught.value.pointer == "/x"


F, G = ir.Tool("f"), ir.Tool("g")
CHOICES = [
    (None, None, None, "fg"),
    (None, False, {"type": "auto", "disable_parallel_tool_use": True}, "fg"),
    (ir.Choice(ir.Pick.REQUIRED), False, {"type": "any", "disable_parallel_tool_use": True}, "fg"),
    (ir.Choice(ir.Pick.AUTO), True, {"type": "auto", "disable_parallel_tool_use": False}, "fg"),
    (ir.Choice(ir.Pick.NONE), False, {"type": "none"}, "fg"),
    (ir.Choice(ir.Pick.REQUIRED, ("g",)), None, {"type": "tool", "name": "g"}, "fg"),
    (ir.Choice(ir.Pick.AUTO, ("g",)), None, {"type": "auto"}, "g"),
    (ir.Choice(ir.Pick.REQUIRED, ("g", "f")), None, {"type": "any"}, "fg"),
    (ir.Choice(ir.Pick.AUTO, ()), True, None, ""),
]


@pytest.mark.parametrize(("choice", "parallel", "expected", "names"), CHOICES)
def test_tool_choices(choice, parallel, expected, names):
    found = body(request(tools=(F, G), choice=choice, settings=ir.Settings(parallel=parallel)))
    assert (found.get("tool_choice"), "".join(tool["name"] for tool in found.get("tools", []))) == (expected, names)


def test_allowed_tools_are_emulated_by_offering_no_others():
    lowered = lower(request(tools=(F, G), choice=ir.Choice(ir.Pick.AUTO, ("g",), "/tool_choice")), target())
    assert lowered.emulated == (Mention("choice:allowed_tools", "/tool_choice"),)
    assert lowered.origins["tool_choice"] == "/tool_choice"


@pytest.mark.parametrize(("tools", "names"), [((F,), ("gone",)), ((), ("gone",)), ((), None)])
def test_a_tool_that_must_be_called_must_be_offered(tools, names):
    with pytest.raises(RequestError) as caught:
        body(request(tools=tools, choice=ir.Choice(ir.Pick.REQUIRED, names, "/tool_choice")))
    assert caught.value.pointer == "/tool_choice"


BUDGETS = target(reasoning_style="budget")
AT = "/effort"
EFFORTS = [
    (None, target(), None, None, ()),
    (ir.Effort("high", at=AT), target(), {"type": "adaptive"}, "high", ()),
    (ir.Effort("minimal", at=AT), target(), {"type": "adaptive"}, "low", ("effort:word",)),
    (ir.Effort(summary="omitted", at=AT), target(), {"type": "adaptive", "display": "omitted"}, None, ()),
    (ir.Effort(adaptive=True, summary="detailed", at=AT), target(), {"type": "adaptive", "display": "summarized"}, None, ()),
    (ir.Effort(off=True, at=AT), target(), {"type": "disabled"}, None, ()),
    (ir.Effort("low", budget=2048, at=AT), target(), {"type": "enabled", "budget_tokens": 2048}, "low", ()),
    (ir.Effort("low", at=AT), BUDGETS, {"type": "enabled", "budget_tokens": 1024}, None, ("effort:word",)),
    (ir.Effort("minimal", at=AT), BUDGETS, {"type": "enabled", "budget_tokens": 1024}, None, ("effort:word",)),
    (
        ir.Effort(adaptive=True, summary="auto", at=AT),
        BUDGETS,
        {"type": "enabled", "budget_tokens": 8192, "display": "summarized"},
        None,
        ("effort:word",),
    ),
]


@pytest.mark.parametrize(("effort", "to", "thinking", "word", "emulated"), EFFORTS)
def test_reasoning(effort, to, thinking, word, emulated):
    found = body(request(effort=effort), to)
    assert (found.get("thinking"), found.get("output_config", {}).get("effort")) == (thinking, word)
    assert lower(request(effort=effort), to).emulated == tuple(Mention(one, AT) for one in emulated)


def test_the_default_limit_leaves_room_for_the_thinking():
    assert body(request(effort=ir.Effort("high")), BUDGETS)["max_tokens"] == 24576 + 8192


def limited(limit, **effort):
    return request(effort=ir.Effort(**effort, at="/e"), settings=ir.Settings(max_tokens=Raw(limit), at={"max_tokens": "/max_output_tokens"}))


def test_a_budget_below_the_clients_limit_is_said():
    lowered = lower(limited(b"2049", budget=2048), target())
    assert bytes(lowered.members["max_tokens"]) == b"2049"
    assert (lowered.origins["max_tokens"], lowered.added) == ("/max_output_tokens", {"model"})


@pytest.mark.parametrize("budget", [8192, 16000])
def test_a_budget_of_the_clients_own_is_clamped_to_what_its_limit_leaves(budget):
    lowered = lower(limited(b"8192", budget=budget, summary="auto"), target())
    assert json.loads(bytes(lowered.members["thinking"])) == {"type": "enabled", "budget_tokens": 8191, "display": "summarized"}
    assert bytes(lowered.members["max_tokens"]) == b"8192"
    assert lowered.emulated == (Mention("effort:budget", "/e"),)


REFUSED = [
    (limited(b"900", word="high"), BUDGETS, "/e"),
    (limited(b"1024", budget=1024), target(), "/e"),
    (limited(b"9000", word="high"), BUDGETS, "/e"),
    (limited(b"9000", budget=1023), target(), "/e"),
    (request(effort=ir.Effort("xhigh", at="/e")), BUDGETS, "/e"),
    (request(effort=ir.Effort("utmost", at="/e")), target(), "/e"),
    (request(format=ir.Format(None, at="/f")), target(), "/f"),
    (request(settings=ir.Settings(temperature=Raw(b"1.6"), at={"temperature": "/temperature"})), target(), "/temperature"),
    (request(settings=ir.Settings(temperature=Raw(b"1e999"), at={"temperature": "/temperature"})), target(), "/temperature"),
    (request(settings=ir.Settings(temperature=Raw(b"-0.1"), at={"temperature": "/temperature"})), target(), "/temperature"),
    (request(settings=ir.Settings(service_tier="flex", at={"service_tier": "/service_tier"})), target(), "/service_tier"),
]


@pytest.mark.parametrize(("wanted", "to", "pointer"), REFUSED)
def test_values_that_cannot_be_said_are_refused_at_their_place(wanted, to, pointer):
    with pytest.raises(RequestError) as caught:
        lower(wanted, to)
    assert (caught.value.code, caught.value.pointer) == (Code.UNREPRESENTABLE, pointer)


def test_effort_and_format_share_a_member():
    wanted = request(effort=ir.Effort("high", at="/reasoning_effort"), format=ir.Format(SCHEMA, name="p", at="/response_format"))
    lowered = lower(wanted, target())
    assert bytes(SCHEMA) in bytes(lowered.members["output_config"])
    assert json.loads(bytes(lowered.members["output_config"]))["effort"] == "high"
    assert (lowered.origins["output_config"], lowered.origins["thinking"]) == ("/response_format", "/reasoning_effort")


def test_settings_keep_their_text():
    wanted = ir.Settings(
        temperature=Raw(b"0.50"), top_p=Raw(b"1.0"), top_k=Raw(b"40"), stop=("\n#",), user="u", safety_id="s", metadata=Raw(b'{"team": "x"}')
    )
    lowered = lower(request(settings=structs.replace(wanted, seed=Raw(b"1"), service_tier="default", at={"stop": "/stop"})), target())
    expected = {"temperature": b"0.50", "top_p": b"1.0", "top_k": b"40", "stop_sequences": b'["\\n#"]', "metadata": b'{"user_id":"s"}'}
    found = {name: bytes(raw) for name, raw in lowered.members.items() if name not in ("model", "messages", "max_tokens")}
    assert found == expected | {"service_tier": b'"standard_only"'}
    assert lowered.origins["stop_sequences"] == "/stop"


@pytest.mark.parametrize("effort", [ir.Effort("high"), ir.Effort(adaptive=True), ir.Effort(budget=2048)])
@pytest.mark.parametrize("style", ["effort", "budget"])
def test_beside_thinking_sampling_is_left_out_and_named(effort, style):
    wanted = ir.Settings(temperature=Raw(b"1.6"), top_k=Raw(b"64"), stop=("#",), at={"temperature": "/t", "top_k": "/k"})
    lowered = lower(request(settings=wanted, effort=effort), target(reasoning_style=style))
    assert {"temperature", "top_p", "top_k"}.isdisjoint(lowered.members)
    assert "stop_sequences" in lowered.members
    assert lowered.dropped == (Mention("sampling:temperature", "/t"), Mention("sampling:top_k", "/k"))
    assert lower(request(effort=effort), target(reasoning_style=style)).dropped == ()


def test_without_thinking_sampling_stands():
    lowered = lower(request(settings=ir.Settings(top_k=Raw(b"64")), effort=ir.Effort(off=True)), target())
    assert (bytes(lowered.members["top_k"]), lowered.dropped) == (b"64", ())


HI = turn(USER, "hi")
CALLED = turn(ASSISTANT, ir.Call("t", "f", "{}"))
GIVEN = ir.Turn(USER, (ir.Result("t", (ir.Text("r"),)),))
THOUGHTFUL = ir.Turn(ASSISTANT, (ir.Reasoning("T", SEAL), ir.Call("t", "f", "{}")))
BUDGET = ir.Effort(budget=2048, at=AT)
NUDGE = ir.Turn(SYSTEM, (ir.Text("Hurry."),))
LOOPS = [
    ((HI, CALLED, GIVEN), False),
    ((HI, CALLED, GIVEN, NUDGE), False),
    ((HI, THOUGHTFUL, GIVEN, HI, CALLED, GIVEN), False),
    ((HI, ir.Turn(ASSISTANT, (ir.Reasoning("unsigned"), *CALLED.parts)), GIVEN), False),
    ((HI, THOUGHTFUL, GIVEN), True),
    ((HI, THOUGHTFUL, GIVEN, CALLED, GIVEN), True),
    ((HI, CALLED, GIVEN, HI), False),
    ((HI, THOUGHTFUL, GIVEN, HI), True),
    ((HI, CALLED, GIVEN, turn(ASSISTANT, "So."), HI), True),
    ((HI, NUDGE), True),
]


@pytest.mark.parametrize(("turns", "kept"), LOOPS)
def test_a_budget_for_thought_waits_where_a_loop_began_without_a_thought(turns, kept):
    """The API refuses it there; it takes adaptive thinking everywhere."""
    to = target(*Feature)
    settings = ir.Settings(temperature=Raw(b"0.5"), at={"temperature": "/t"})
    lowered = lower(request(*turns, effort=BUDGET, settings=settings), to)
    assert ("thinking" in lowered.members, "temperature" in lowered.members) == (kept, False)
    assert lowered.dropped == (*(() if kept else (Mention("effort:thinking", AT),)), Mention("sampling:temperature", "/t"))
    assert "thinking" in lower(request(*turns, effort=ir.Effort(adaptive=True, at=AT)), to).members


@pytest.mark.parametrize(("choice", "kept"), [(ir.Choice(ir.Pick.REQUIRED), False), (ir.Choice(ir.Pick.AUTO), True), (None, True)])
def test_a_budget_for_thought_gives_way_to_a_call_that_must_be(choice, kept):
    wanted = request(tools=(ir.Tool("f", SCHEMA),), choice=choice, effort=BUDGET)
    lowered = lower(wanted, target())
    assert ("thinking" in lowered.members, lowered.dropped == ()) == (kept, kept)


def test_an_upstream_without_signatures_takes_any_loop():
    lowered = lower(request(HI, CALLED, GIVEN, effort=BUDGET), target(signatures=False))
    assert ("thinking" in lowered.members, lowered.dropped) == (True, ())


def test_a_user_alone_is_named_too():
    assert body(request(settings=ir.Settings(user="u")))["metadata"] == {"user_id": "u"}


# The law: what Messages says exactly comes back the same. The IR below is in the form that lift gives, without pointers.
WORDS = st.text('aé\n"\\', min_size=1, max_size=4)
NAMES = st.sampled_from(["f", "g-1", "h_2"])
OBJECTS = st.sampled_from(["{}", '{"y": 1.0,"big":19876543210987654321}', '{"k":{"a":[1e3]}}'])
TEXTS = st.builds(ir.Text, WORDS)
IMAGES = st.builds(ir.Image, st.sampled_from([DATA, ir.Link("https://a.example/b")]))
SOURCES = st.sampled_from([ir.Inline("application/pdf", "JVBERi0="), ir.Inline("text/plain", "c2t5"), ir.Link("u")])
DOCUMENTS = st.builds(ir.Document, SOURCES, st.none() | WORDS)
INNER = st.lists(TEXTS | IMAGES | DOCUMENTS, max_size=3).map(tuple)
RESULTS = st.builds(ir.Result, st.just("t"), INNER, failed=st.booleans())
CALLS = st.builds(ir.Call, st.sampled_from(["t", "toolu_1"]), NAMES, OBJECTS)
TURNS = {
    USER: st.tuples(st.lists(RESULTS, max_size=2), st.lists(TEXTS | IMAGES | DOCUMENTS, min_size=1, max_size=3)).map(
        lambda pair: (*pair[0], *pair[1])
    ),
    ASSISTANT: st.lists(TEXTS | CALLS, min_size=1, max_size=3).map(tuple),
    SYSTEM: st.lists(TEXTS, min_size=1, max_size=2).map(tuple),
}
NUMBERS = st.none() | st.sampled_from([Raw(b"0.50"), Raw(b"1")])


@st.composite
def requests(draw):
    roles = draw(st.sampled_from([(USER,), (SYSTEM, USER, ASSISTANT, USER), (USER, SYSTEM, ASSISTANT), (SYSTEM, USER, ASSISTANT, USER, SYSTEM)]))
    tools = tuple(
        ir.Tool(name, draw(st.none() | WORDS), SCHEMA, strict=draw(st.booleans())) for name in draw(st.lists(NAMES, unique=True, max_size=2))
    )
    choices = [None, ir.Choice(ir.Pick.AUTO), ir.Choice(ir.Pick.REQUIRED), *(ir.Choice(ir.Pick.REQUIRED, (tool.name,)) for tool in tools)]
    choice = draw(st.sampled_from(choices)) if tools else None
    effort = draw(st.sampled_from([None, ir.Effort("max", adaptive=True), ir.Effort(off=True), ir.Effort("low", budget=2048, summary="omitted")]))
    sampled = st.none() if effort and not effort.off else NUMBERS
    return ir.Request(
        turns=tuple(ir.Turn(role, draw(TURNS[role])) for role in roles),
        tools=tools,
        choice=choice,
        settings=ir.Settings(
            max_tokens=Raw(b"4096"),
            temperature=draw(sampled),
            top_p=draw(sampled),
            top_k=draw(sampled),
            stop=draw(st.none() | st.just(("#", "\n"))),
            parallel=draw(st.none() | st.booleans()) if choice else None,
            service_tier=draw(st.sampled_from([None, "auto", "default"])),
            safety_id=draw(st.none() | WORDS),
        ),
        effort=effort,
        format=draw(st.sampled_from([None, ir.Format(SCHEMA)])),
        stream=draw(st.booleans()),
        include_usage=True,
        wants_seals=True,
    )


def bare(node):
    """The node without pointers."""
    if isinstance(node, tuple):
        return tuple(map(bare, node))
    if not isinstance(node, ir.Request | ir.Turn | ir.Part | ir.Tool | ir.Choice | ir.Settings | ir.Effort | ir.Format):
        return node
    plain = {name: bare(getattr(node, name)) for name in node.__struct_fields__ if name != "at"}
    return type(node)(**plain)


@settings(deadline=None, max_examples=60, database=None)
@given(requests())
def test_what_is_said_comes_back(wanted):
    lowered = lower(wanted, target(Feature.MID_CONVERSATION_SYSTEM))
    found = lift(parse(encode(lowered.members)), wanted.stream)
    unthought = Mention("effort:thinking", "") in lowered.dropped
    assert bare(found.request) == (structs.replace(wanted, effort=ir.Effort("low")) if unthought else wanted)
    assert lowered.aliases == {}


def test_a_seal_comes_back_bit_by_bit():
    blocks = said(ir.Reasoning("T", SEAL), "a", role=ASSISTANT)
    found = lift(parse(json.dumps({"messages": [{"role": "assistant", "content": blocks}]}).encode()), stream=False)
    assert found.request.turns[0].parts[0].seal == structs.replace(SEAL, domain="")
    assert Verdict.REFUSED not in {verdict for mention in found.mentions for verdict in ROWS[mention.construct].verdicts.values()}
