"""Chat Completions requests as the conversion hub understands them: every construct, its pointer, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from asgi_surface import seals
from asgi_surface.codecs.base import Lifted
from asgi_surface.codecs.chat.fields import POLICY
from asgi_surface.codecs.chat.lift import lift
from asgi_surface.codecs.chat.lift_settings import _ALONE, _EFFORTS
from asgi_surface.codecs.chat.verdicts import ROWS
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
    Pick,
    Reasoning,
    Refusal,
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
from asgi_surface.members import parse
from asgi_surface.surfaces import CHAT, GEMINI

HI = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
TOKEN = "dG9rZW4="
OURS = seals.wrap(Seal(TOKEN, SealKind.THOUGHT, GEMINI), "google")


def lifted(body: dict[str, Any], stream: bool = False) -> Lifted:
    found = lift(parse(msgspec.json.encode({"model": "m", "messages": [HI]} | body)), stream)
    assert {mention.construct for mention in found.mentions} <= ROWS.keys()
    return found


def mentions(body: dict[str, Any]) -> set[tuple[str, str]]:
    """What the request uses beyond its one user message."""
    known = {("role:user", "/messages/0"), ("part:text", "/messages/0/content")}
    return {(mention.construct, mention.pointer) for mention in lifted(body).mentions} - known


TURNS = [
    ([{"role": "system", "content": "S"}], [Turn(Role.SYSTEM, (Text("S", "/messages/0/content"),), "/messages/0")]),
    (
        [{"role": "developer", "content": [{"type": "text", "text": "D1"}, {"type": "text", "text": "D2"}]}],
        [Turn(Role.DEVELOPER, (Text("D1", "/messages/0/content/0"), Text("D2", "/messages/0/content/1")), "/messages/0")],
    ),
    ([{"role": "assistant", "content": None}], [Turn(Role.ASSISTANT, (), "/messages/0")]),  # the conversion tells that it is lost
    ([{"role": "assistant", "content": ""}], [Turn(Role.ASSISTANT, (Text("", "/messages/0/content"),), "/messages/0")]),
    ([{"role": "assistant", "content": "", "refusal": "no"}], [Turn(Role.ASSISTANT, (Refusal("no", "/messages/0/refusal"),), "/messages/0")]),
    (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
        [Turn(Role.ASSISTANT, (Refusal("no", "/messages/0/content/0"),), "/messages/0")],
    ),
    (
        [
            {"role": "assistant", "content": "", "reasoning_content": "R", "reasoning": "R", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
            {"role": "tool", "tool_call_id": "c9", "name": "g"},
        ],
        [
            Turn(
                Role.ASSISTANT,
                (Reasoning("R", at="/messages/0/reasoning_content"), Call("c1", "f", '{"a": 1.0}', at="/messages/0/tool_calls/0")),
                "/messages/0",
            ),
            Turn(Role.USER, (Result("c1", (Text("42", "/messages/1/content"),), name="f", at="/messages/1"),), "/messages/1"),
            Turn(Role.USER, (Result("c9", (), name="g", at="/messages/2"),), "/messages/2"),
        ],
    ),
    (
        [
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "p", "input": "x"}}]},
            {"role": "tool", "tool_call_id": "c1"},
        ],
        [
            Turn(Role.ASSISTANT, (Call("c1", "p", "x", Form.CUSTOM, at="/messages/0/tool_calls/0"),), "/messages/0"),
            Turn(Role.USER, (Result("c1", (), form=Form.CUSTOM, name="p", at="/messages/1"),), "/messages/1"),
        ],
    ),
    (
        [{"role": "assistant", "function_call": {"name": "f", "arguments": ""}}, {"role": "function", "name": "f", "content": "r"}],
        [
            Turn(Role.ASSISTANT, (Call("call_0", "f", "{}", minted=True, at="/messages/0/function_call"),), "/messages/0"),
            Turn(Role.USER, (Result("call_0", (Text("r", "/messages/1/content"),), name="f", at="/messages/1"),), "/messages/1"),
        ],
    ),
]


@pytest.mark.parametrize(("messages", "turns"), TURNS)
def test_messages_become_turns_in_their_place(messages: list[dict[str, Any]], turns: list[Turn]) -> None:
    assert lifted({"messages": messages}).request.turns == tuple(turns)


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ([{"type": "reasoning.text", "text": "A"}, {"type": "reasoning.summary", "summary": "B"}], "AB"),
        ([{"type": "reasoning.encrypted", "data": "x"}], "R"),
    ],
)
def test_detailed_reasoning_goes_before_the_plain_names(details: list[dict[str, Any]], text: str) -> None:
    found = lifted({"messages": [{"role": "assistant", "content": "a", "reasoning": "R", "reasoning_details": details}]})
    assert isinstance(reasoning := found.request.turns[0].parts[0], Reasoning)
    assert (reasoning.text, reasoning.seal) == (text, None)
    assert {"part:reasoning", "part:reasoning_details"} <= {mention.construct for mention in found.mentions}


DATA = "data:image/jpeg;name=a-b.jpg;base64,/9j/4AAQ"
PARTS = [
    (
        {"type": "image_url", "image_url": {"url": DATA, "detail": "auto"}},
        Image(Inline("image/jpeg", "/9j/4AAQ"), "auto"),
        {("part:image_url", ""), ("part:image_url.base64", "/image_url/url")},
    ),
    (
        {"type": "image_url", "image_url": {"url": "https://i/a.png", "detail": "low"}, "cache_control": {"type": "ephemeral"}},
        Image(Link("https://i/a.png"), "low"),
        {
            ("part:image_url", ""),
            ("part:image_url.url", "/image_url/url"),
            ("part:image_url.detail", "/image_url/detail"),
            ("part:cache_control", "/cache_control"),
        },
    ),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}},
        Document(Inline("application/pdf", "JVBERi0="), "a.pdf"),
        {("part:file", ""), ("part:file.file_data", "/file/file_data"), ("part:file.filename", "/file/filename")},
    ),
    (
        {"type": "file", "file": {"file_data": "JVBERi0="}},
        Document(Inline("", "JVBERi0=")),
        {("part:file", ""), ("part:file.file_data", "/file/file_data")},
    ),
    ({"type": "file", "file": {"file_id": "file-1"}}, Document(Stored("file-1")), {("part:file", ""), ("part:file.file_id", "/file/file_id")}),
    ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, Audio(Inline("audio/wav", "UklG")), {("part:input_audio", "")}),
    (
        {"type": "text", "text": "t", "prompt_cache_breakpoint": {"mode": "explicit"}},
        Text("t"),
        {("part:text", ""), ("part:prompt_cache_breakpoint", "/prompt_cache_breakpoint")},
    ),
]


@pytest.mark.parametrize(("part", "node", "said"), PARTS)
def test_parts_of_a_user(part: dict[str, Any], node: Any, said: set[tuple[str, str]]) -> None:
    body = {"messages": [{"role": "user", "content": [part]}]}
    at = "/messages/0/content/0"
    assert lifted(body).request.turns[0].parts == (msgspec.structs.replace(node, at=at),)
    assert mentions(body) == {(construct, at + place) for construct, place in said}


@pytest.mark.parametrize(("token", "seal"), [(TOKEN, Seal(TOKEN, SealKind.THOUGHT, GEMINI)), (OURS, Seal(TOKEN, SealKind.THOUGHT, GEMINI, "google"))])
def test_a_calls_signature_is_google_s_own_or_comes_out_of_the_envelope(token: str, seal: Seal) -> None:
    call = CALL | {"extra_content": {"google": {"thought_signature": token}}, "index": 0}
    body = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    assert isinstance(made := lifted(body).request.turns[0].parts[0], Call)
    assert made.seal == seal
    assert ("seal:thought", "/messages/0/tool_calls/0/extra_content/google/thought_signature") in mentions(body)


def test_googles_stand_in_for_a_signature_is_no_seal() -> None:
    call = CALL | {"extra_content": {"google": {"thought_signature": seals.STAND_IN}}}
    body = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    assert isinstance(made := lifted(body).request.turns[0].parts[0], Call)
    assert made.seal is None
    assert ("seal:none", "/messages/0/tool_calls/0/extra_content/google/thought_signature") in mentions(body)


@pytest.mark.parametrize("extra", [{}, {"google": {}}])
def test_an_empty_slot_holds_no_seal(extra: dict[str, Any]) -> None:
    assert isinstance(
        made := lifted({"messages": [{"role": "assistant", "tool_calls": [CALL | {"extra_content": extra}]}]}).request.turns[0].parts[0], Call
    )
    assert made.seal is None


def test_roles_and_what_only_this_surface_says_of_them_are_mentioned() -> None:
    messages = [
        {"role": "system", "content": "S", "name": "n"},
        HI | {"name": "ann"},
        {
            "role": "assistant",
            "content": "a",
            "name": "b",
            "audio": {"id": "x"},
            "annotations": [{}],
            "function_call": {"name": "f", "arguments": "{}"},
        },
        {"role": "function", "name": "f", "content": None},
        {"role": "developer", "content": "D"},
        {"role": "system", "content": "late"},
    ]
    said = {(mention.construct, mention.pointer) for mention in lifted({"messages": messages}).mentions if not mention.construct.startswith("part:")}
    assert said == {
        ("role:system", "/messages/0"),
        ("role:system.name", "/messages/0/name"),
        ("role:user", "/messages/1"),
        ("role:user.name", "/messages/1/name"),
        ("role:assistant", "/messages/2"),
        ("role:assistant.name", "/messages/2/name"),
        ("role:assistant.audio", "/messages/2/audio"),
        ("role:assistant.annotations", "/messages/2/annotations"),
        ("role:assistant.function_call", "/messages/2/function_call"),
        ("role:function", "/messages/3"),
        ("role:developer.mid", "/messages/4"),
        ("role:system.mid", "/messages/5"),
    }


SCHEMA = Raw(b'{ "type":"object", "properties":{"n":{"const":1.0}} }')
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}
TOOLS = [
    (
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}},
        Tool("f", "d", SCHEMA, strict=True),
        {("tool:function", ""), ("tool:function.strict", "/function/strict")},
    ),
    ({"function": {"name": "now"}, "cache_control": {}}, Tool("now"), {("tool:function", ""), ("tool:cache_control", "/cache_control")}),
    ({"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}}, Tool("p", form=Form.CUSTOM), {("tool:custom", "")}),
    ({"type": "custom", "custom": {"name": "p"}}, Tool("p", form=Form.CUSTOM), {("tool:custom", "")}),
    (
        {"type": "custom", "custom": {"name": "p", "format": GRAMMAR}},
        Tool("p", form=Form.CUSTOM, grammar=Raw(b'{"type":"grammar","syntax":"lark","definition":"start: A"}')),
        {("tool:custom", ""), ("tool:custom.grammar", "/custom/format")},
    ),
]


@pytest.mark.parametrize(("tool", "node", "said"), TOOLS)
def test_tools(tool: dict[str, Any], node: Tool, said: set[tuple[str, str]]) -> None:
    body = {"tools": [tool]}
    assert lifted(body).request.tools == (msgspec.structs.replace(node, at="/tools/0"),)
    assert mentions(body) == {(construct, f"/tools/0{place}") for construct, place in said}


CHOICES = [
    ({"tool_choice": "none"}, Choice(Pick.NONE, at="/tool_choice"), "choice:none"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, Choice(Pick.REQUIRED, ("f",), "/tool_choice"), "choice:function"),
    ({"tool_choice": {"type": "custom", "custom": {"name": "p"}}}, Choice(Pick.REQUIRED, ("p",), "/tool_choice"), "choice:custom"),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}}},
        Choice(Pick.AUTO, ("f",), "/tool_choice"),
        "choice:allowed_tools",
    ),
    ({"function_call": "auto"}, Choice(Pick.AUTO, at="/function_call"), "field:function_call"),
    ({"function_call": {"name": "f"}}, Choice(Pick.REQUIRED, ("f",), "/function_call"), "field:function_call"),
]


@pytest.mark.parametrize(("body", "choice", "construct"), CHOICES)
def test_choices(body: dict[str, Any], choice: Choice, construct: str) -> None:
    assert lifted(body).request.choice == choice
    assert mentions(body) == {(construct, choice.at)}


def test_functions_are_tools() -> None:
    body = {"functions": [{"name": "f", "parameters": {}}]}
    assert lifted(body).request.tools == (Tool("f", schema=Raw(b"{}"), at="/functions/0"),)
    assert mentions(body) == {("field:functions", "/functions"), ("tool:function", "/functions/0")}
    assert mentions({"functions": []}) == set()


WISHES: list[tuple[str, Any, str, Any, str]] = [
    ("max_tokens", 500, "max_tokens", Raw(b"500"), "field:max_tokens"),
    ("temperature", Raw(b"1.60"), "temperature", Raw(b"1.60"), "field:temperature"),
    ("seed", 2**70, "seed", Raw(b"1180591620717411303424"), "field:seed"),
    ("top_k", 40, "top_k", Raw(b"40"), "field:top_k"),
    ("stop", "###", "stop", ("###",), "field:stop"),
    ("stop", ["a", "b"], "stop", ("a", "b"), "field:stop"),
    ("n", 2, "n", Raw(b"2"), "field:n"),
    ("logprobs", True, "logprobs", True, "field:logprobs"),
    ("parallel_tool_calls", True, "parallel", True, "field:parallel_tool_calls"),
    ("parallel_tool_calls", False, "parallel", False, "field:parallel_tool_calls.false"),
    ("store", True, "store", True, "field:store"),
    ("store", False, "store", False, "field:store.false"),
    ("user", "u", "user", "u", "field:user"),
    ("safety_identifier", "s", "safety_id", "s", "field:safety_identifier"),
    ("metadata", {"a": "b"}, "metadata", Raw(b'{"a":"b"}'), "field:metadata"),
    ("service_tier", "scale", "service_tier", "scale", "field:service_tier"),
    ("service_tier", "flex", "service_tier", "flex", "field:service_tier.flex"),
    ("service_tier", "priority", "service_tier", "priority", "field:service_tier.priority"),
    ("service_tier", "auto", "service_tier", "auto", "field:service_tier.auto"),
    ("prompt_cache_key", "k", "cache_key", "k", "field:prompt_cache_key"),
    ("verbosity", "medium", "verbosity", "medium", "field:verbosity.medium"),
    ("verbosity", "low", "verbosity", "low", "field:verbosity"),
]


@pytest.mark.parametrize(("name", "value", "setting", "said", "construct"), WISHES)
def test_settings_keep_their_text_and_place(name: str, value: Any, setting: str, said: Any, construct: str) -> None:
    found = lifted({name: value})
    assert found.request.settings == Settings(**{setting: said}, at={setting: f"/{name}"})
    assert mentions({name: value}) == {(construct, f"/{name}")}


def test_the_newer_token_limit_wins_in_either_order() -> None:
    for body in ({"max_tokens": 500, "max_completion_tokens": 8}, {"max_completion_tokens": 8, "max_tokens": 500}):
        settings = lifted(body).request.settings
        assert (settings.max_tokens, settings.at) == (Raw(b"8"), {"max_tokens": "/max_completion_tokens"})
        assert mentions(body) == {("field:max_completion_tokens", "/max_completion_tokens"), ("field:max_tokens.overruled", "/max_tokens")}


HARMLESS = {
    "n": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0.0,
    "logprobs": False,
    "top_logprobs": 0,
    "top_k": -1,
    "stop": [],
    "metadata": {},
    "logit_bias": {},
    "modalities": ["text"],
    "response_format": {"type": "text"},
    "stream_options": {},
    "min_p": 0,
    "add_generation_prompt": True,
    "reasoning": {"exclude": False},
    "include_reasoning": True,
    "chat_template_kwargs": {},
    "thinking": None,
    "tools": [],
    "audio": None,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_values_that_mean_nothing_are_nothing(name: str) -> None:
    body = {name: HARMLESS[name]}
    assert mentions(body) == set()
    assert lifted(body).request == lifted({}).request


@pytest.mark.parametrize("name", sorted(_ALONE))
def test_members_that_only_this_surface_has_are_mentioned(name: str) -> None:
    assert mentions({name: {"other": "value"}}) == {(f"field:{name}", f"/{name}")}


def test_a_number_is_not_a_switch() -> None:
    assert mentions({"ignore_eos": 0}) == {("field:ignore_eos", "/ignore_eos")}


EFFORTS = [
    ({"reasoning_effort": "high"}, Effort("high", at="/reasoning_effort")),
    ({"reasoning_effort": "none"}, Effort(off=True, at="/reasoning_effort")),
    ({"thinking": {"type": "enabled"}}, Effort(adaptive=True, at="/thinking")),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, Effort(budget=2048, at="/thinking")),
    ({"thinking": {"type": "disabled"}}, Effort(off=True, at="/thinking")),
    # The word is kept beside it, so that who cannot say both names the loss.
    ({"thinking": {"type": "disabled"}, "reasoning_effort": "high"}, Effort("high", off=True, at="/reasoning_effort")),
    ({"thinking": False}, Effort(off=True, at="/thinking")),
    ({"enable_thinking": True, "thinking_budget": 100}, Effort(budget=100, at="/enable_thinking")),
    ({"thinking_token_budget": 7}, Effort(budget=7, at="/thinking_token_budget")),
    ({"reasoning": {"effort": "low", "enabled": True, "exclude": True}}, Effort("low", summary="omitted", at="/reasoning")),
    ({"reasoning": {"max_tokens": 9}}, Effort(budget=9, at="/reasoning")),
    ({"chat_template_kwargs": {"enable_thinking": False}}, Effort(off=True, at="/chat_template_kwargs")),
    ({"chat_template_kwargs": {"reasoning_effort": "max"}}, Effort("max", at="/chat_template_kwargs")),
    ({"chat_template_kwargs": {"thinking": True}}, Effort(adaptive=True, at="/chat_template_kwargs")),
    ({"include_reasoning": False}, Effort(summary="omitted", at="/include_reasoning")),
]


@pytest.mark.parametrize(("body", "effort"), EFFORTS)
def test_reasoning_in_everyone_s_words(body: dict[str, Any], effort: Effort) -> None:
    assert lifted(body).request.effort == effort
    assert mentions(body) == {(f"field:{name}", f"/{name}") for name in body}


FORMATS = [
    ({"type": "json_object"}, Format(None), {"json_object": ""}),
    (
        {"type": "json_schema", "json_schema": {"name": "p"}},
        Format(Raw(b"{}"), "p", strict=False),
        {"json_schema": "", "json_schema.name": "/json_schema/name"},
    ),
    (
        {"type": "json_schema", "json_schema": {"name": "p", "description": "d", "schema": SCHEMA, "strict": True}},
        Format(SCHEMA, "p", "d", strict=True),
        {
            "json_schema": "",
            "json_schema.name": "/json_schema/name",
            "json_schema.description": "/json_schema/description",
            "json_schema.strict": "/json_schema/strict",
        },
    ),
]


@pytest.mark.parametrize(("said", "node", "constructs"), FORMATS)
def test_formats(said: dict[str, Any], node: Format, constructs: dict[str, str]) -> None:
    body = {"response_format": said}
    assert lifted(body).request.format == msgspec.structs.replace(node, at="/response_format")
    assert mentions(body) == {(f"field:response_format.{name}", f"/response_format{place}") for name, place in constructs.items()}


def test_stream_options() -> None:
    body = {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}
    request = lifted(body, stream=True).request
    assert (request.stream, request.include_usage, request.settings.obfuscation) == (True, True, False)
    assert request.settings.at["obfuscation"] == "/stream_options/include_obfuscation"
    assert lifted({"stream_options": {"include_obfuscation": None}}).request.settings == Settings()
    assert mentions(body) == {(f"field:stream_options.{name}", f"/stream_options/{name}") for name in ("include_usage", "include_obfuscation")}


BAD, UNKNOWN = Code.MALFORMED_BODY, Code.UNREPRESENTABLE
WRONG: list[tuple[dict[str, Any], Code, str]] = [
    ({"foo/bar": 1}, UNKNOWN, "/foo~1bar"),
    ({"messages": [HI | {"x": 1}]}, UNKNOWN, "/messages/0/x"),
    ({"messages": [{"role": "critic"}]}, UNKNOWN, "/messages/0/role"),
    ({"messages": [{"role": "user"}]}, BAD, "/messages/0"),
    ({"messages": [{"role": "user", "content": []}]}, BAD, "/messages/0/content"),
    ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, UNKNOWN, "/messages/0/content/0/type"),
    ({"messages": [{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]}, UNKNOWN, "/messages/0/content/0/type"),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]}, BAD, "/messages/0/content/0/file"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png,%20"}}]}]},
        BAD,
        "/messages/0/content/0/image_url/url",
    ),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, BAD, "/messages/0/tool_calls/0"),
    ({"messages": [{"role": "function", "name": "f", "content": "r"}]}, BAD, "/messages/0/name"),
    ({"messages": Raw(b'[{"role":"user","content":"bad \\ud83d end"}]')}, BAD, "/messages"),
    ({"logit_bias": Raw(b"[" * 5000 + b"]" * 5000)}, BAD, "/logit_bias"),
    ({"messages": None}, BAD, "/messages"),
    ({"tools": [{"type": "custom"}]}, BAD, "/tools/0"),
    ({"tools": [{"type": "web_search"}]}, UNKNOWN, "/tools/0/type"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, BAD, "/tools/0/function/parameters"),
    ({"tool_choice": {"type": "allowed_tools"}}, BAD, "/tool_choice"),
    ({"response_format": {"type": "json_schema"}}, BAD, "/response_format"),
    ({"temperature": "hot"}, BAD, "/temperature"),
    ({"reasoning_effort": "vast"}, UNKNOWN, "/reasoning_effort"),
    ({"chat_template_kwargs": {"tools_in_user_message": True}}, UNKNOWN, "/chat_template_kwargs/tools_in_user_message"),
]


@pytest.mark.parametrize(("body", "code", "pointer"), WRONG, ids=[f"{row[2]}-{index}" for index, row in enumerate(WRONG)])
def test_what_is_not_understood_is_refused_where_it_stands(body: dict[str, Any], code: Code, pointer: str) -> None:
    members = {"model": Raw(b'"m"'), "messages": Raw(msgspec.json.encode([HI]))} | {
        name: Raw(msgspec.json.encode(value)) for name, value in body.items()
    }
    with pytest.raises(RequestError) as caught:
        lift(members, False)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_every_member_that_the_policy_knows_has_a_row() -> None:
    names = POLICY.fields | POLICY.guarded.keys()
    assert {f"field:{name}" for name in names} <= ROWS.keys()
    assert {f"field:{name}" for name in (*_ALONE, *_EFFORTS)} <= ROWS.keys()
    assert all(CHAT not in row.verdicts and len(row.verdicts) == 3 for row in ROWS.values())
