"""What the conversion hub says in Chat Completions' words: grouping, dialects, aliases, seals, and that lifting it again gives the same request."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct, structs
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from asgi_surface.codecs.base import Alias, Dialect, Lowered, Target
from asgi_surface.codecs.chat.lift import lift
from asgi_surface.codecs.chat.lower import lower
from asgi_surface.codecs.strict_schema import is_strict
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import (
    Audio,
    Call,
    Choice,
    Document,
    Effort,
    Form,
    Format,
    Image,
    Inline,
    Link,
    Part,
    Pick,
    Reasoning,
    Refusal,
    Request,
    Result,
    Role,
    Seal,
    SealKind,
    Settings,
    Stored,
    Text,
    Tool,
    Turn,
)
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature

HI = Turn(Role.USER, (Text("hi"),), "/input/0")
OBJECT = Raw(b'{ "type":"object", "properties":{} }')
GRAMMAR = Raw(b'{"type":"grammar","syntax":"lark","definition":"start: A"}')


def target(*features: Feature, domain: str = "here", **dialect: Any) -> Target:
    return Target(model="up", dialect=Dialect(**dialect), seal_domain=domain, features=frozenset(features))


CUSTOM = target(Feature.CUSTOM_TOOLS)


def said(lowered: Lowered) -> dict[str, Any]:
    return {name: msgspec.json.decode(raw) for name, raw in lowered.members.items()}


def body(*turns: Turn, to: Target | None = None, **request: Any) -> dict[str, Any]:
    return said(lower(Request(turns=turns or (HI,), **request), to or target()))


def user(*parts: Part) -> Turn:
    return Turn(Role.USER, parts, "/u")


def model(*parts: Part) -> Turn:
    return Turn(Role.ASSISTANT, parts, "/m")


F = Call("c1", "f", '{"a":1.0}')
SAID_F = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1.0}'}}

GROUPS: list[tuple[tuple[Turn, ...], list[dict[str, Any]]]] = [
    # Items of one model turn become one message; the results follow it at once, the words behind them.
    (
        (
            HI,
            model(Text("a")),
            model(F),
            model(Call("c2", "f", "{}")),
            user(Text("note"), Result("c2", (Text("r1"), Text("r2"))), Text("also")),
            user(Result("c1", ())),
        ),
        [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [SAID_F, {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "r1"}, {"type": "text", "text": "r2"}]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "user", "content": [{"type": "text", "text": "note"}, {"type": "text", "text": "also"}]},
        ],
    ),
    # Reasoning goes back only before calls.
    (
        (model(Reasoning("R1"), Reasoning("", Seal("t", SealKind.TEXT, MESSAGES)), Reasoning("R2"), F), user(Result("c1", (Text("x"),)))),
        [
            {"role": "assistant", "content": None, "reasoning_content": "R1\n\nR2", "tool_calls": [SAID_F]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ],
    ),
    ((model(Reasoning("R"), Text("a")), HI), [{"role": "assistant", "content": "a"}, {"role": "user", "content": "hi"}]),
    ((model(Reasoning("R")), HI), [{"role": "user", "content": "hi"}]),
    (
        (Turn(Role.SYSTEM, (Text("S"),)), Turn(Role.DEVELOPER, (Text("D"), Text("E"))), HI),
        [
            {"role": "system", "content": "S"},
            {"role": "system", "content": [{"type": "text", "text": "D"}, {"type": "text", "text": "E"}]},
            {"role": "user", "content": "hi"},
        ],
    ),
    ((model(Refusal("no")), HI), [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, {"role": "user", "content": "hi"}]),
]


@pytest.mark.parametrize(("turns", "messages"), GROUPS)
def test_turns_are_grouped_as_the_surface_demands(turns: tuple[Turn, ...], messages: list[dict[str, Any]]) -> None:
    assert body(*turns)["messages"] == messages


PARTS: list[tuple[Part, dict[str, Any]]] = [
    (Image(Inline("image/png", "iVBO"), "low"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}}),
    (Image(Link("https://i/a.png")), {"type": "image_url", "image_url": {"url": "https://i/a.png"}}),
    (
        Document(Inline("application/pdf", "JVBE"), "a.pdf"),
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
    ),
    (Document(Inline("", "JVBE")), {"type": "file", "file": {"filename": "file.bin", "file_data": "JVBE"}}),
    (
        Document(Inline("application/pdf", "JVBE")),
        {"type": "file", "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
    ),
    (Document(Stored("file-1")), {"type": "file", "file": {"file_id": "file-1"}}),
    (Audio(Inline("audio/mpeg", "SUQz")), {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}),
]


@pytest.mark.parametrize(("part", "content"), PARTS)
def test_parts(part: Part, content: dict[str, Any]) -> None:
    assert body(user(part))["messages"][0]["content"] == [content]


@pytest.mark.parametrize(("parts", "content"), [((Text("42"),), "[tool error] 42"), ((), "[tool error] ")])
def test_a_failed_result_says_so(parts: tuple[Text, ...], content: str) -> None:
    lowered = lower(Request(turns=(model(F), user(Result("c1", parts, failed=True, at="/r")))), target())
    assert said(lowered)["messages"][1]["content"] == content
    assert [(mention.construct, mention.pointer) for mention in lowered.emulated] == [("result:failed", "/r")]


FOREIGN: list[Part] = [
    Reasoning("R", Seal("t", SealKind.SIGNATURE, MESSAGES, "there"), "/x"),
    Reasoning("", Seal("t", SealKind.ENCRYPTED, RESPONSES, "here"), "/x"),
    Call("c", "f", "{}", seal=Seal("t", SealKind.THOUGHT, GEMINI, "there"), at="/x"),
    Call("c", "f", "{}", seal=Seal("t", SealKind.THOUGHT, GEMINI), at="/x"),
]
REFUSED: list[tuple[tuple[Turn, ...], Target, str]] = [
    ((HI, model(Text("The answer is ("))), target(), "/m"),
    *(((model(part), HI), target(), "/x") for part in FOREIGN),
    ((user(Document(Link("https://d/a.pdf"), at="/x")),), target(), "/x"),
    ((user(Image(Stored("file-1"), at="/x")),), target(), "/x"),
    ((user(Audio(Link("https://a/a.wav"), at="/x")),), target(), "/x"),
    ((user(Audio(Inline("audio/flac", "x"), at="/x")),), target(), "/x"),
    ((user(Refusal("no", at="/x")),), target(), "/x"),
    ((user(Result("c1", (Text("pic"), Image(Link("u"), at="/x")))),), target(), "/x"),
    ((model(Image(Link("u"), at="/x")), HI), target(), "/x"),
    ((Turn(Role.SYSTEM, (Image(Link("u"), at="/x"),)), HI), target(), "/x"),
    ((model(Call("c", "p", "x", Form.CUSTOM, at="/x")), HI), target(custom_tools="refuse"), "/x"),
]


@pytest.mark.parametrize(("turns", "to", "pointer"), REFUSED)
def test_what_a_message_cannot_hold_is_refused_where_the_client_said_it(turns: tuple[Turn, ...], to: Target, pointer: str) -> None:
    with pytest.raises(RequestError) as caught:
        lower(Request(turns=turns), to)
    assert (caught.value.code, caught.value.pointer) == (Code.UNREPRESENTABLE, pointer)


def test_googles_signature_goes_back_to_who_minted_it_bit_by_bit() -> None:
    seal = Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI, "google")
    call = body(model(Call(F.id, F.name, F.arguments, seal=seal)), HI, to=target(domain="google"))["messages"][0]["tool_calls"][0]
    assert call == SAID_F | {"extra_content": {"google": {"thought_signature": "dG9r+/8="}}}


def test_a_binding_may_continue_a_turn_and_say_developer() -> None:
    messages = body(Turn(Role.SYSTEM, (Text("S"),)), HI, model(Text("(")), to=target(prefill=True, instruction_role="developer"))["messages"]
    assert [message["role"] for message in messages] == ["developer", "user", "assistant"]


LONG = "srv." + "x" * 70
TOOLS = (
    Tool("read", namespace="fs", at="/tools/0/tools/0"),
    Tool("read", "d", OBJECT, strict=True, at="/tools/1"),
    Tool(LONG, at="/tools/2"),
    Tool("fs__read", at="/tools/3"),
)


def test_names_that_the_surface_cannot_say_get_reversible_ones() -> None:
    lowered = lower(Request(turns=(model(Call("c", LONG, "{}")), HI), tools=TOOLS, choice=Choice(Pick.REQUIRED, (LONG,), "/tool_choice")), target())
    names = [tool["function"]["name"] for tool in said(lowered)["tools"]]
    assert names[1::2] == ["read", "fs__read"]
    assert len(set(names)) == 4
    assert max(map(len, names)) == 64
    assert lowered.aliases == {names[0]: Alias("read", namespace="fs"), names[2]: Alias(LONG)}
    assert said(lowered)["tool_choice"]["function"]["name"] == said(lowered)["messages"][0]["tool_calls"][0]["function"]["name"] == names[2]
    assert said(lowered)["tools"][1]["function"] == {
        "name": "read",
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
    }
    assert b'{ "type":"object", "properties":{} }' in bytes(lowered.members["tools"])


def test_a_namespace_is_flattened_where_its_name_is_free() -> None:
    lowered = lower(Request(turns=(HI,), tools=TOOLS[:2]), target())
    assert lowered.aliases == {"fs__read": Alias("read", namespace="fs")}
    assert [(mention.construct, mention.pointer) for mention in lowered.emulated] == [("tool:name", "/tools/0/tools/0")]


WRAPPER = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": False}


def test_a_custom_tool_is_a_function_of_one_string_where_the_upstream_has_none() -> None:
    turns = (model(Call("c", "p", 'OLD "q"', Form.CUSTOM)), user(Result("c", (Text("done"),), form=Form.CUSTOM)))
    lowered = lower(Request(turns=turns, tools=(Tool("p", form=Form.CUSTOM, at="/tools/0"),), choice=Choice(Pick.REQUIRED, ("p",))), target())
    sent = said(lowered)
    assert sent["tools"] == [{"type": "function", "function": {"name": "p", "parameters": WRAPPER}}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "p"}}
    assert msgspec.json.decode(sent["messages"][0]["tool_calls"][0]["function"]["arguments"]) == {"input": 'OLD "q"'}
    assert lowered.aliases == {"p": Alias("p", Form.CUSTOM)}
    assert [(mention.construct, mention.pointer) for mention in lowered.emulated] == [("tool:custom", "/tools/0")]


def test_a_wrapped_grammar_is_told() -> None:
    (tool,) = body(tools=(Tool("p", form=Form.CUSTOM, grammar=GRAMMAR),))["tools"]
    assert tool["function"]["parameters"]["properties"]["input"]["description"] == "Must follow this lark grammar:\nstart: A"


CHOICES = [
    (Choice(Pick.AUTO), "auto"),
    (Choice(Pick.NONE, ("f",)), "none"),
    (Choice(Pick.REQUIRED, ("p",)), {"type": "custom", "custom": {"name": "p"}}),
    (Choice(Pick.REQUIRED, ("gone",)), {"type": "function", "function": {"name": "gone"}}),
    (
        Choice(Pick.REQUIRED, ("f", "p")),
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "p"}}],
            },
        },
    ),
]


@pytest.mark.parametrize(("choice", "word"), CHOICES)
def test_choices(choice: Choice, word: Any) -> None:
    assert body(tools=(Tool("f"), Tool("p", form=Form.CUSTOM)), choice=choice, to=CUSTOM)["tool_choice"] == word


@pytest.mark.parametrize(("pick", "sent"), [(Pick.AUTO, False), (Pick.REQUIRED, True)])
def test_without_tools_only_a_demand_is_passed_on(pick: Pick, sent: bool) -> None:
    found = body(choice=Choice(pick), settings=Settings(parallel=False))
    assert ("tool_choice" in found) is sent
    assert "parallel_tool_calls" not in found


EFFORTS = [
    (Effort("xhigh"), {}, {"reasoning_effort": "xhigh"}),
    (Effort(off=True), {}, {"reasoning_effort": "none"}),
    (Effort(budget=5000), {}, {"reasoning_effort": "medium"}),
    (Effort(budget=10**6), {}, {"reasoning_effort": "high"}),
    (Effort(adaptive=True, summary="auto"), {}, {}),
    (Effort("low"), {"reasoning_style": "template"}, {"chat_template_kwargs": {"enable_thinking": True}}),
    (Effort(off=True), {"reasoning_style": "template"}, {"chat_template_kwargs": {"enable_thinking": False}}),
    (Effort(summary="auto"), {"reasoning_style": "template"}, {}),
]


@pytest.mark.parametrize(("effort", "dialect", "members"), EFFORTS)
def test_effort_in_the_dialect_s_words(effort: Effort, dialect: dict[str, Any], members: dict[str, Any]) -> None:
    assert {name: value for name, value in body(effort=effort, to=target(**dialect)).items() if name not in {"model", "messages"}} == members


@pytest.mark.parametrize("style", ["effort", "thinking", "reasoning"])
@pytest.mark.parametrize("effort", [Effort("low"), Effort(off=True), Effort("none", off=True), Effort(adaptive=True), Effort("high", adaptive=True)])
def test_an_effort_that_the_words_say_is_exact(style: str, effort: Effort) -> None:
    assert emulated(target(reasoning_style=style), effort=effort) == []


EFFORTS_OTHERWISE = [
    ("effort", Effort("high", off=True, at="/e"), "effort:word"),
    ("thinking", Effort("high", off=True, at="/e"), "effort:word"),
    ("reasoning", Effort("high", off=True, at="/e"), "effort:word"),
    ("effort", Effort("high", 2048, at="/e"), "effort:budget"),
    ("thinking", Effort("high", 2048, at="/e"), "effort:budget"),
    ("reasoning", Effort("high", 2048, at="/e"), "effort:word"),
    ("thinking", Effort(budget=2048, at="/e"), "effort:budget"),
    ("template", Effort("high", at="/e"), "effort:template"),
]


@pytest.mark.parametrize(("style", "effort", "how"), EFFORTS_OTHERWISE)
def test_what_of_an_effort_is_said_another_way_is_named(style: str, effort: Effort, how: str) -> None:
    assert emulated(target(reasoning_style=style), effort=effort) == [(how, "/e")]


def test_the_words_are_the_sdk_s() -> None:
    asked = get_type_hints(CompletionCreateParamsBase)
    efforts, verbosities = (get_args(get_args(asked[name])[0]) for name in ("reasoning_effort", "verbosity"))
    assert [body(effort=Effort(word))["reasoning_effort"] for word in efforts] == [*efforts]
    assert [body(settings=Settings(verbosity=word))["verbosity"] for word in verbosities] == [*verbosities]
    assert {"minimal", "xhigh"} < {*efforts}
    assert "low" in verbosities


@pytest.mark.parametrize(
    ("wish", "pointer"),
    [
        ({"effort": Effort("ultra", at="/output_config/effort")}, "/output_config/effort"),
        ({"settings": Settings(verbosity="wordy", at={"verbosity": "/text/verbosity"})}, "/text/verbosity"),
    ],
)
def test_a_word_that_the_surface_does_not_have_is_refused(wish: dict[str, Any], pointer: str) -> None:
    with pytest.raises(RequestError) as caught:
        body(**wish)
    assert caught.value.pointer == pointer


def test_a_budget_without_words_for_it_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        body(effort=Effort(budget=1, at="/thinking"), to=target(reasoning_budgets={}))
    assert caught.value.pointer == "/thinking"


OPEN = Raw(b'{"type":"object","properties":{"n":{"type":"string"}},"required":[],"additionalProperties":false}')
CLOSED = Raw(b'{"type":"object","properties":{"n":{"type":["string","null"]}},"required":["n"],"additionalProperties":false}')
FORMATS = [
    (Format(None), {"type": "json_object"}),
    (Format(OPEN), {"type": "json_schema", "json_schema": {"name": "response", "schema": msgspec.json.decode(OPEN)}}),
    (Format(CLOSED), {"type": "json_schema", "json_schema": {"name": "response", "schema": msgspec.json.decode(CLOSED), "strict": True}}),
    (
        Format(CLOSED, "p", "d", strict=False),
        {"type": "json_schema", "json_schema": {"name": "p", "description": "d", "schema": msgspec.json.decode(CLOSED)}},
    ),
]


def emulated(to: Target, **request: Any) -> list[tuple[str, str]]:
    return [(mention.construct, mention.pointer) for mention in lower(Request(**{"turns": (HI,)} | request), to).emulated]


@pytest.mark.parametrize(("format_", "named"), [(Format(OPEN, at="/f"), True), (Format(CLOSED), False), (Format(OPEN, strict=False), False)])
def test_a_schema_that_cannot_be_enforced_is_named(format_: Format, named: bool) -> None:
    assert emulated(target(), format=format_) == ([("format:strict", "/f")] if named else [])


MINE = Seal('{"type":"reasoning.encrypted","data":"x"}', SealKind.ENCRYPTED, CHAT, "here")
ONE, TWO, SEALED = Reasoning("R1", at="/1"), Reasoning("R2", at="/2"), Reasoning("", MINE, "/s")
THOUGHT: list[tuple[tuple[Part, ...], str, list[str]]] = [
    ((ONE, TWO, F), "tools", []),
    ((ONE, Text("a"), TWO), "tools", ["/1", "/2"]),
    ((ONE, F), "never", ["/1"]),
    ((ONE, Text("a")), "always", []),
    ((ONE,), "always", ["/1"]),
    # The proved details stand alone.
    ((ONE, SEALED, F), "tools", ["/1"]),
    ((SEALED, Text("a")), "never", []),
    ((SEALED, ONE), "always", ["/s", "/1"]),
]


@pytest.mark.parametrize(("parts", "replay", "named"), THOUGHT)
def test_reasoning_that_is_not_said_again_is_named(parts: tuple[Part, ...], replay: str, named: list[str]) -> None:
    assert emulated(target(reasoning_replay=replay), turns=(model(*parts), HI)) == [("reasoning:unsaid", at) for at in named]


R1, R2 = Result("c1", (), at="/r1"), Result("c2", (), at="/r2")
SYSTEM = Turn(Role.SYSTEM, (Text("S"),), "/s")
MOVED: list[tuple[tuple[Turn, ...], list[str]]] = [
    ((user(R1, R2, Text("a")), SYSTEM), []),
    ((user(R1, Text("a"), R2),), ["/r2"]),
    ((SYSTEM, user(R1), user(R2)), ["/r1", "/r2"]),
    ((user(R1), SYSTEM, user(R2)), ["/r2"]),
]


@pytest.mark.parametrize(("turns", "named"), MOVED)
def test_results_that_are_said_before_what_stood_before_them_are_named(turns: tuple[Turn, ...], named: list[str]) -> None:
    calls = model(F, Call("c2", "f", "{}"))
    assert emulated(target(), turns=(HI, calls, *turns)) == [("order:result", at) for at in named]


@pytest.mark.parametrize(("role", "named"), [(Role.DEVELOPER, []), (Role.SYSTEM, [("role:system", "/s")])])
def test_an_instruction_in_another_role_is_named(role: Role, named: list[tuple[str, str]]) -> None:
    turn = Turn(role, (Text("S"),), "/s")
    assert emulated(target(instruction_role="developer"), turns=(turn, HI)) == named


@pytest.mark.parametrize(("format_", "member"), FORMATS)
def test_a_schema_is_strict_only_where_that_was_said_or_holds(format_: Format, member: dict[str, Any]) -> None:
    assert body(format=format_)["response_format"] == member


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (
            b'{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}},"required":["a"],"additionalProperties":false,"$defs":{"N":{"type":"array","items":{"type":"string"}}}}',
            True,
        ),
        (b'{"type":"array","items":{"type":"string"}}', False),
        (b'{"type":"object"}', False),
        (b'{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}', False),
        (b'{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}', False),
        (b'{"type":"object","properties":[],"additionalProperties":false}', False),
        (b'{"type":"object","required":[[]],"additionalProperties":false}', False),
        (b'"\\ud83d"', False),
    ],
)
def test_the_strict_subset(schema: bytes, strict: bool) -> None:
    assert is_strict(Raw(schema)) is strict


def test_every_member_names_its_place_in_the_client_s_words() -> None:
    request = Request(
        turns=(Turn(Role.SYSTEM, (Text("S"),), "/instructions"), HI),
        tools=(Tool("f", at="/tools/0/functionDeclarations/0"),),
        settings=Settings(max_tokens=Raw(b"777"), top_logprobs=Raw(b"1"), at={"max_tokens": "/max_output_tokens", "top_logprobs": "/top_logprobs"}),
        stream=True,
    )
    lowered = lower(request, target(max_tokens_field="max_tokens"))
    assert lowered.origins == {
        "model": "/model",
        "messages": "/input",
        "tools": "/tools",
        "max_tokens": "/max_output_tokens",
        "top_logprobs": "/top_logprobs",
        "logprobs": "/top_logprobs",
        "stream": "/stream",
    }
    assert lowered.added == {"stream_options"}
    assert {name: said(lowered)[name] for name in ("max_tokens", "logprobs", "stream", "stream_options", "model")} == {
        "max_tokens": 777,
        "logprobs": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "model": "up",
    }


@pytest.mark.parametrize("padded", [True, False])
def test_padding_is_asked_for_beside_usage(padded: bool) -> None:
    wishes = Settings(obfuscation=padded, at={"obfuscation": "/stream_options/include_obfuscation"})
    lowered = lower(Request(turns=(), settings=wishes, stream=True), target())
    assert said(lowered)["stream_options"] == {"include_usage": True, "include_obfuscation": padded}
    assert (lowered.origins["stream_options"], lowered.added) == ("/stream_options/include_obfuscation", frozenset())
    for unasked in (lower(Request(turns=(), settings=wishes), target()), lower(Request(turns=(), settings=wishes, stream=True), UNASKED)):
        assert "stream_options" not in unasked.members


UNASKED = target(stream_usage="always")


def test_an_empty_history_is_passed_on() -> None:
    lowered = lower(Request(turns=()), target())
    assert (said(lowered)["messages"], lowered.origins["messages"]) == ([], "")


# The law: what is exact on this surface is the same after saying and understanding it.

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
TEXTS = st.lists(st.builds(Text, WORDS), min_size=1, max_size=2)
INLINE = st.builds(Inline, st.sampled_from(["image/png", "application/pdf"]), st.just("QUJD"))
SEEN = st.one_of(
    st.builds(Text, WORDS),
    st.builds(Image, INLINE | st.just(Link("https://i/a.png")), st.sampled_from([None, "high"])),
    st.builds(Document, INLINE, WORDS.filter(bool)) | st.builds(Document, st.just(Stored("file-1")), st.none() | WORDS),
    st.builds(Audio, st.builds(Inline, st.sampled_from(["audio/wav", "audio/mp3"]), st.just("QUJD"))),
)
SPOKEN = TEXTS | st.lists(st.builds(Refusal, WORDS), min_size=1, max_size=1)
THOUGHTS = st.lists(st.builds(Reasoning, WORDS), max_size=1)
FLAGS = st.booleans()
USERS = st.lists(SEEN, min_size=1, max_size=3).map(lambda parts: Turn(Role.USER, tuple(parts)))
INSTRUCTIONS = TEXTS.map(lambda parts: Turn(Role.SYSTEM, tuple(parts)))
FORMS = st.sampled_from([(Form.FUNCTION, "f", '{"x": 1.0}'), (Form.CUSTOM, "p", "free")])


@st.composite
def rounds(draw: st.DrawFn) -> list[Turn]:
    """An assistant's turn with the results of its calls, and a user's turn after it."""
    forms = draw(st.lists(FORMS, max_size=2))
    calls = [Call(f"c{index}", name, text, form) for index, (form, name, text) in enumerate(forms)]
    reasoning = draw(THOUGHTS) if calls else []
    silent = draw(FLAGS) if calls else False
    words = () if silent else draw(SPOKEN)
    results = [Turn(Role.USER, (Result(call.id, tuple(draw(TEXTS)), form=call.form, name=call.name),)) for call in calls]
    return [Turn(Role.ASSISTANT, (*reasoning, *words, *calls)), *results, draw(USERS)]


NUMBERS = st.none() | st.sampled_from([Raw(b"2"), Raw(b"3")])
OPTIONS = st.builds(
    Settings,
    **dict.fromkeys(("max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "n"), NUMBERS),
    stop=st.none() | st.lists(WORDS, min_size=1, max_size=2).map(tuple),
    logprobs=st.none() | st.just(True),
    parallel=st.none() | st.booleans(),
    store=st.none() | st.booleans(),
    user=st.none() | WORDS,
    safety_id=st.none() | WORDS,
    metadata=st.none() | st.just(Raw(b'{"a": "b"}')),
    service_tier=st.none() | st.sampled_from(["auto", "flex"]),
    cache_key=st.none() | WORDS,
    verbosity=st.none() | st.sampled_from(["low", "medium"]),
)
DEFINED = (Tool("f", "d", OBJECT, strict=True), Tool("g"), Tool("p", form=Form.CUSTOM, grammar=GRAMMAR), Tool("q", form=Form.CUSTOM))
REQUESTS = st.builds(
    lambda opening, later, stream, padded, settings, **members: Request(
        turns=(*opening, *(turn for each in later for turn in each)),
        stream=stream,
        include_usage=stream,
        settings=structs.replace(settings, obfuscation=padded if stream else None),
        **members,
    ),
    st.tuples(INSTRUCTIONS, USERS),
    st.lists(rounds(), max_size=2),
    st.booleans(),
    st.none() | st.booleans(),
    tools=st.just(DEFINED),
    choice=st.none() | st.sampled_from([Choice(Pick.AUTO), Choice(Pick.REQUIRED, ("p",)), Choice(Pick.AUTO, ("f", "q"))]),
    settings=OPTIONS,
    effort=st.none() | st.sampled_from([Effort("high"), Effort(off=True)]),
    format=st.none() | st.sampled_from([Format(None), Format(OBJECT, "p", "d", strict=True), Format(OBJECT, "p", strict=False)]),
)


def placeless(value: Any) -> Any:
    """The same without the client's pointers."""
    if isinstance(value, tuple):
        return tuple(map(placeless, value))
    if not isinstance(value, Struct):
        return value
    cleared = {name: placeless(getattr(value, name)) for name in value.__struct_fields__ if name != "at"}
    return type(value)(**cleared)


@settings(max_examples=60, deadline=None)
@given(REQUESTS)
def test_lifting_what_was_lowered_gives_the_request(request: Request) -> None:
    assert placeless(lift(lower(request, CUSTOM).members, request.stream).request) == request


def test_a_made_name_of_a_file_is_named() -> None:
    parts = (Document(Inline("application/pdf", "JVBE"), at="/a"), Document(Inline("", "JVBE"), "a.pdf", at="/b"), Document(Stored("f"), at="/c"))
    assert emulated(target(), turns=(user(*parts),)) == [("document:name", "/a")]
