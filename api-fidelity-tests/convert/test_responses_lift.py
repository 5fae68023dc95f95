"""What a Responses request says in no surface's words, and the constructs that it uses, each at its place."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from asgi_surface import ir, seals
from asgi_surface.codecs.responses import wire
from asgi_surface.codecs.responses.intake import decode
from asgi_surface.codecs.responses.lift import lift
from asgi_surface.codecs.responses.verdicts import ROWS
from asgi_surface.codecs.strict_schema import is_strict
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Form, Pick, Role
from asgi_surface.members import parse
from asgi_surface.surfaces import MESSAGES, RESPONSES

MINTED = ir.Seal("tok/en+", ir.SealKind.SIGNATURE, MESSAGES, "anthropic")
ENVELOPE = seals.wrap(MINTED, "anthropic")
PNG = "data:image/png;base64,iVBORw0KGgo="


def lifted(**body):
    return lift(parse(json.dumps(body).encode()), body.get("stream") is True)


def request(**body):
    return lifted(**body).request


def refusal(body):
    with pytest.raises(RequestError) as caught:
        lifted(**body)
    return caught.value.code, caught.value.pointer


def user(*parts, at):
    return ir.Turn(Role.USER, parts, at)


def call(place, name="f", **more):
    return {"type": "function_call", "call_id": place, "name": name, "arguments": "{}", **more}


def said(place, output="out", **more):
    return {"type": "function_call_output", "call_id": place, "output": output, **more}


def message(*content, role="user", **more):
    return {"role": role, "content": list(content), **more}


TURNS = {
    "a text": ("hi", [user(ir.Text("hi", "/input"), at="/input")]),
    "an easy message": ([{"role": "user", "content": "hi"}], [user(ir.Text("hi", "/input/0/content"), at="/input/0")]),
    "messages stay apart": (
        [{"role": "user", "content": "a"}, message({"type": "input_text", "text": "b"}, type="message", id="msg_1", status="completed")],
        [user(ir.Text("a", "/input/0/content"), at="/input/0"), user(ir.Text("b", "/input/1/content/0"), at="/input/1")],
    ),
    "an empty message is a turn": ([message()], [user(at="/input/0")]),
    "an empty answer is none": (
        [message(role="assistant"), call("c")],
        [ir.Turn(Role.ASSISTANT, (ir.Call("c", "f", "{}", at="/input/1"),), "/input/0")],
    ),
    "instructions in place": (
        [{"role": "user", "content": "q"}, {"role": "developer", "content": "D"}, {"role": "system", "content": "S"}],
        [
            user(ir.Text("q", "/input/0/content"), at="/input/0"),
            ir.Turn(Role.DEVELOPER, (ir.Text("D", "/input/1/content"),), "/input/1"),
            ir.Turn(Role.SYSTEM, (ir.Text("S", "/input/2/content"),), "/input/2"),
        ],
    ),
    "one model turn, one results turn": (
        [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "one"}], "encrypted_content": "gAAA"},
            call("c1", id="fc_1", status="completed", namespace="ns", caller={"type": "direct"}),
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x y", "namespace": None},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t", "annotations": []}]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "two"},
            said("c1", [{"type": "input_text", "text": "pic"}, {"type": "input_image", "image_url": PNG, "detail": "auto"}], name="f"),
        ],
        [
            ir.Turn(
                Role.ASSISTANT,
                (
                    ir.Reasoning("one", ir.Seal("gAAA", ir.SealKind.ENCRYPTED, RESPONSES, id="rs_1"), "/input/0"),
                    ir.Call("c1", "f", "{}", namespace="ns", at="/input/1"),
                    ir.Call("c2", "g", "x y", form=Form.CUSTOM, at="/input/2"),
                    ir.Text("t", "/input/3/content/0"),
                ),
                "/input/0/type",
            ),
            user(
                ir.Result("c2", (ir.Text("two", "/input/4/output"),), form=Form.CUSTOM, at="/input/4"),
                ir.Result(
                    "c1",
                    (ir.Text("pic", "/input/5/output/0"), ir.Image(ir.Inline("image/png", "iVBORw0KGgo="), at="/input/5/output/1")),
                    name="f",
                    at="/input/5",
                ),
                at="/input/4/type",
            ),
        ],
    ),
    "a text of JSON stays one": (
        [said("c", '[{"type":"input_text"}]')],
        [user(ir.Result("c", (ir.Text('[{"type":"input_text"}]', "/input/0/output"),), at="/input/0"), at="/input/0/type")],
    ),
    "an envelope is opened": (
        [{"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": ENVELOPE}],
        [ir.Turn(Role.ASSISTANT, (ir.Reasoning("", ir.Seal("tok/en+", MINTED.kind, MESSAGES, "anthropic", "rs_9"), "/input/0"),), "/input/0/type")],
    ),
    "reasoning itself before its summary": (
        [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "s"}],
                "content": [{"type": "reasoning_text", "text": "a"}, {"type": "reasoning_text", "text": "b"}],
                "encrypted_content": None,
            }
        ],
        [ir.Turn(Role.ASSISTANT, (ir.Reasoning("a\n\nb", at="/input/0"),), "/input/0/type")],
    ),
    "reasoning that is only an id": ([{"type": "reasoning", "id": "rs_1", "summary": []}], [ir.Turn(ir.Role.ASSISTANT, (), "/input/0/type")]),
    "what the provider ran": (
        [{"type": "web_search_call", "id": "ws_1", "anything": 1}, {"role": "user", "content": "q"}],
        [user(ir.Text("q", "/input/1/content"), at="/input/1")],
    ),
}


@pytest.mark.parametrize(("given", "turns"), TURNS.values(), ids=TURNS)
def test_items_become_turns(given, turns):
    assert request(input=given).turns == tuple(turns)


def test_instructions_lead():
    assert request(instructions="I", input="q").turns[0] == ir.Turn(Role.SYSTEM, (ir.Text("I", "/instructions"),), "/instructions")
    assert request(instructions="").turns == request(instructions=None).turns == ()


PARTS = {
    "text": ({"type": "input_text", "text": "a"}, ir.Text("a")),
    "words of the model": ({"type": "output_text", "text": "a", "annotations": [], "logprobs": []}, ir.Text("a")),
    "a refusal": ({"type": "refusal", "refusal": "no"}, ir.Refusal("no")),
    "an image by URL": ({"type": "input_image", "image_url": "https://x/a.png", "detail": "low"}, ir.Image(ir.Link("https://x/a.png"), "low")),
    "an image as data": ({"type": "input_image", "image_url": PNG.replace("data", "DATA")}, ir.Image(ir.Inline("image/png", "iVBORw0KGgo="))),
    "a stored image": ({"type": "input_image", "file_id": "file_1", "image_url": None}, ir.Image(ir.Stored("file_1"))),
    "a file as data": (
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        ir.Document(ir.Inline("application/pdf", "JVBERi0="), "a.pdf"),
    ),
    "a file as bare data": ({"type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0="}, ir.Document(ir.Inline("", "JVBERi0="), "a.pdf")),
    "a file by URL": ({"type": "input_file", "file_url": "https://x/a.pdf"}, ir.Document(ir.Link("https://x/a.pdf"))),
    "a stored file": ({"type": "input_file", "file_id": "file_1"}, ir.Document(ir.Stored("file_1"))),
    "sound": ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}}, ir.Audio(ir.Inline("audio/mpeg", "AA=="))),
}


@pytest.mark.parametrize(("given", "part"), PARTS.values(), ids=PARTS)
def test_parts(given, part):
    place = {"at": "/input/0/content/0"}
    assert request(input=[message(given)]).turns[0].parts == (type(part)(**{name: getattr(part, name) for name in part.__struct_fields__} | place),)


def function(name="f", **more):
    return {"type": "function", "name": name, **more}


def test_tools():
    body = b"""{"tools": [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "x": 1.0e3, "y": "\\u00e9"}, "strict": false},
        {"type": "function", "name": "g", "parameters": null, "strict": null},
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}},
        {"type": "custom", "name": "t", "description": "d", "format": {"type": "text"}},
        {"type": "web_search"},
        {"type": "namespace", "name": "ns", "description": "n", "tools": [
            {"type": "function", "name": "f", "parameters": {}}, {"type": "custom", "name": "c"}, {"type": "mcp"}]}
    ]}"""
    assert lift(parse(body), False).request.tools == (
        ir.Tool("f", "d", Raw(b'{"type": "object", "x": 1.0e3, "y": "\\u00e9"}'), strict=False, at="/tools/0"),
        ir.Tool("g", strict=False, at="/tools/1"),
        ir.Tool("c", form=Form.CUSTOM, grammar=Raw(b'{"type": "grammar", "syntax": "lark", "definition": "start: /a/"}'), at="/tools/2"),
        ir.Tool("t", "d", form=Form.CUSTOM, at="/tools/3"),
        ir.Tool("f", schema=Raw(b"{}"), strict=False, namespace="ns", namespace_description="n", at="/tools/5/tools/0"),
        ir.Tool("c", form=Form.CUSTOM, namespace="ns", namespace_description="n", at="/tools/5/tools/1"),
    )


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
STRICTNESS = [
    ({"parameters": CLOSED}, True),
    ({"parameters": CLOSED, "strict": None}, True),
    ({"parameters": CLOSED, "strict": False}, False),
    # The API closes this one by itself; what cannot be edited cannot be strict elsewhere.
    ({"parameters": OPEN}, False),
    ({"parameters": OPEN | {"required": []}}, False),
    ({"parameters": OPEN, "strict": True}, True),
    ({"parameters": None}, False),
    ({"strict": True}, True),
    ({}, False),
]


@pytest.mark.parametrize(("more", "enforced"), STRICTNESS)
def test_a_function_is_strict_where_that_was_said_or_its_schema_allows(more, enforced):
    tools = [function(**more), {"type": "namespace", "name": "ns", "tools": [function(**more)]}]
    assert [tool.strict for tool in request(tools=tools).tools] == [enforced, enforced]


CHOICES = [
    ("auto", Pick.AUTO, None),
    ("none", Pick.NONE, None),
    ("required", Pick.REQUIRED, None),
    ({"type": "function", "name": "f"}, Pick.REQUIRED, ("f",)),
    ({"type": "custom", "name": "c"}, Pick.REQUIRED, ("c",)),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [function(), {"type": "custom", "name": "c"}, {"type": "mcp", "server_label": "s"}]},
        Pick.AUTO,
        ("f", "c"),
    ),
]


@pytest.mark.parametrize(("given", "pick", "names"), CHOICES)
def test_choice(given, pick, names):
    assert request(tool_choice=given).choice == ir.Choice(pick, names, "/tool_choice")


def test_settings_keep_their_text():
    body = (
        b'{"max_output_tokens": 64, "temperature": 1.0e0, "top_p": 1, "top_logprobs": 3, "metadata": {"a": "\\u00e9"}, "parallel_tool_calls": true,'
        b'"store": true, "user": "u", "safety_identifier": "s", "service_tier": "flex", "prompt_cache_key": "k", "text": {"verbosity": "high"}}'
    )
    settings = lift(parse(body), False).request.settings
    expected = {
        "max_tokens": (Raw(b"64"), "/max_output_tokens"),
        "temperature": (Raw(b"1.0e0"), "/temperature"),
        "top_p": (Raw(b"1"), "/top_p"),
        "top_logprobs": (Raw(b"3"), "/top_logprobs"),
        "logprobs": (True, "/top_logprobs"),
        "metadata": (Raw(b'{"a": "\\u00e9"}'), "/metadata"),
        "parallel": (True, "/parallel_tool_calls"),
        "store": (True, "/store"),
        "user": ("u", "/user"),
        "safety_id": ("s", "/safety_identifier"),
        "service_tier": ("flex", "/service_tier"),
        "cache_key": ("k", "/prompt_cache_key"),
        "verbosity": ("high", "/text/verbosity"),
    }
    assert settings == ir.Settings(**{name: value for name, (value, _) in expected.items()}, at={name: at for name, (_, at) in expected.items()})


EFFORTS = [
    ({"effort": "high"}, ir.Effort("high", at="/reasoning/effort")),
    ({"effort": "none", "summary": None}, ir.Effort(off=True, at="/reasoning/effort")),
    ({"effort": "low", "summary": "auto", "generate_summary": "concise"}, ir.Effort("low", summary="auto", at="/reasoning/effort")),
    ({"generate_summary": "concise"}, ir.Effort(summary="concise", at="/reasoning/generate_summary")),
    ({"mode": "standard"}, None),
]


@pytest.mark.parametrize(("given", "effort"), EFFORTS)
def test_effort(given, effort):
    assert request(reasoning=given).effort == effort


FORMATS = [
    ({"type": "text"}, None),
    (None, None),
    ({"type": "json_object"}, ir.Format(None, at="/text/format")),
    ({"type": "json_schema", "name": "n", "schema": {}}, ir.Format(Raw(b"{}"), "n", strict=False, at="/text/format")),
    (
        {"type": "json_schema", "name": "n", "schema": {}, "description": "d", "strict": True},
        ir.Format(Raw(b"{}"), "n", "d", strict=True, at="/text/format"),
    ),
]


@pytest.mark.parametrize(("given", "wanted"), FORMATS)
def test_format(given, wanted):
    assert request(text={"format": given}).format == wanted


def test_flags():
    plain = request(input="q")
    assert (plain.stream, plain.include_usage, plain.wants_seals, plain.settings.logprobs) == (False, True, False, None)
    asked = lifted(stream=True, include=["reasoning.encrypted_content", "message.output_text.logprobs"]).request
    assert (asked.stream, asked.wants_seals, asked.settings.logprobs, asked.settings.at) == (True, True, True, {"logprobs": "/include/1"})


@pytest.mark.parametrize(("said", "wanted"), [({"include_obfuscation": False}, False), ({"include_obfuscation": True}, True), ({}, None)])
def test_padding_of_a_stream(said, wanted):
    settings = request(stream=True, stream_options=said).settings
    assert (settings.obfuscation, settings.at) == (wanted, {"obfuscation": "/stream_options/include_obfuscation"})


def test_null_and_defaults_say_nothing():
    nothing = lifted(model="m", stream=False, store=None, nonsense=None, background=False, truncation="disabled", metadata={}, tools=[], include=[])
    assert nothing.mentions == ()
    assert nothing.request == ir.Request(turns=(), include_usage=True)


PROGRAM = {"type": "program", "caller_id": "p"}
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
TOOL = {"allowed_callers": ["programmatic"], "defer_loading": True, "async": True}
CALL = {"caller": PROGRAM, "async": True, "namespace": "ns"}
MEDIA = [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}, {"type": "input_file", "file_data": "aGk="}]
MENTIONS = [
    ({"instructions": "i"}, {"field:instructions": "/instructions"}),
    ({"stream": True}, {"field:stream": "/stream"}),
    ({"stream_options": {"include_obfuscation": False}}, {"field:stream_options.include_obfuscation": "/stream_options/include_obfuscation"}),
    ({"prompt_cache_options": {"mode": "implicit"}}, {"field:prompt_cache_options": "/prompt_cache_options"}),
    (
        {"prompt_cache_options": {"prewarm": True}},
        {"field:prompt_cache_options": "/prompt_cache_options", "field:prompt_cache_options.prewarm": "/prompt_cache_options/prewarm"},
    ),
    *(
        ({name: value}, {f"field:{name}": f"/{name}"})
        for name, value in {
            "max_output_tokens": 64,
            "temperature": 1,
            "top_p": 0.5,
            "top_logprobs": 2,
            "metadata": {"a": "b"},
            "user": "u",
            "safety_identifier": "s",
            "prompt_cache_key": "k",
            "service_tier": "scale",
            "store": True,
            "parallel_tool_calls": True,
            "max_tool_calls": 3,
            "truncation": "auto",
            "previous_response_id": "resp_1",
            "conversation": "conv_1",
            "prompt": {"id": "p"},
            "background": True,
            "background_options": {},
            "context_management": [{"type": "compaction"}],
            "access_programs": {},
            "moderation": {},
            "image": {},
            "client_metadata": {},
            "prompt_cache_retention": "24h",
        }.items()
    ),
    ({"service_tier": "auto"}, {"field:service_tier.auto": "/service_tier"}),
    *(({"service_tier": word}, {f"field:service_tier.{word}": "/service_tier"}) for word in ("default", "flex", "priority")),
    ({"store": False}, {"field:store.false": "/store"}),
    ({"parallel_tool_calls": False}, {"field:parallel_tool_calls.false": "/parallel_tool_calls"}),
    *(({"include": [row.removeprefix("field:include.")]}, {row: "/include/0"}) for row in ROWS if row.startswith("field:include.")),
    (
        {"reasoning": {"effort": "low", "summary": "auto", "generate_summary": "auto", "context": "all_turns", "mode": "pro"}},
        {f"field:reasoning.{name}": f"/reasoning/{name}" for name in ("effort", "summary", "generate_summary", "context", "mode")},
    ),
    ({"reasoning": {"context": "auto", "mode": "standard"}}, {}),
    ({"text": {"format": {"type": "text"}, "verbosity": "medium"}}, {"field:text.format.text": "/text/format"}),
    (
        {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
        {"field:text.format.json_object": "/text/format", "field:text.verbosity": "/text/verbosity"},
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "description": "d"}}},
        {"field:text.format.json_schema": "/text/format", "field:text.format.json_schema.description": "/text/format/description"},
    ),
    *(
        ({"input": [{"role": role, "content": "x"}]}, {"item:message": "/input/0", f"role:{role}": "/input/0/role"})
        for role in ("user", "assistant", "system", "developer")
    ),
    *(
        (
            {"input": [said("c"), {"role": role, "content": "x"}]},
            {"item:function_call_output": "/input/0", "item:message": "/input/1", f"role:{role}": "/input/1/role", f"role:{role}.mid": "/input/1"},
        )
        for role in ("system", "developer")
    ),
    (
        {"input": [{"role": "assistant", "content": "x", "phase": "commentary"}]},
        {"item:message": "/input/0", "item:message.phase": "/input/0/phase", "role:assistant": "/input/0/role"},
    ),
    (
        {"input": [call("c", **CALL)]},
        {"item:function_call": "/input/0", **{f"item:function_call.{name}": f"/input/0/{name}" for name in CALL}},
    ),
    (
        {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "", **CALL}]},
        {"item:custom_tool_call": "/input/0", **{f"item:custom_tool_call.{name}": f"/input/0/{name}" for name in CALL}},
    ),
    (
        {"input": [said("c", name="f", namespace="ns", caller=PROGRAM)]},
        {
            "item:function_call_output": "/input/0",
            **{f"item:function_call_output.{name}": f"/input/0/{name}" for name in ("name", "namespace", "caller")},
        },
    ),
    *(
        (
            {"input": [{"type": kind, "call_id": "c", "output": [{"type": "input_text", "text": "t"}, *MEDIA]}]},
            {
                f"item:{kind}": "/input/0",
                f"item:{kind}.image": "/input/0/output/1",
                f"item:{kind}.file": "/input/0/output/2",
                "part:input_text": "/input/0/output/0",
                "part:input_image": "/input/0/output/1",
                "part:input_image.image_url": "/input/0/output/1/image_url",
                "part:input_file": "/input/0/output/2",
                "part:input_file.file_data": "/input/0/output/2/file_data",
            },
        )
        for kind in ("function_call_output", "custom_tool_call_output")
    ),
    (
        {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": "", "caller": PROGRAM}]},
        {"item:custom_tool_call_output": "/input/0", "item:custom_tool_call_output.caller": "/input/0/caller"},
    ),
    (
        {
            "input": [
                {
                    "type": "reasoning",
                    "id": "r",
                    "summary": [{"type": "summary_text", "text": "s"}],
                    "content": [{"type": "reasoning_text", "text": "t"}],
                    "encrypted_content": "x",
                }
            ]
        },
        {"item:reasoning": "/input/0", **{f"item:reasoning.{name}": f"/input/0/{name}" for name in ("summary", "content", "encrypted_content")}},
    ),
    (
        {"input": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]}]},
        {"item:reasoning": "/input/0", "item:reasoning.summary": "/input/0/summary", "item:reasoning.unsealed": "/input/0"},
    ),
    ({"input": [{"type": "reasoning", "id": "r", "summary": []}]}, {"item:reasoning": "/input/0", "item:reasoning.empty": "/input/0"}),
    ({"input": [{"id": "msg_1"}]}, {"item:item_reference": "/input/0"}),
]
PART_MENTIONS = [
    ({"type": "input_text", "text": "", **MARK}, ["", ".prompt_cache_breakpoint"]),
    (
        {"type": "input_image", "image_url": "u", "detail": "original", **MARK},
        ["", ".image_url", ".detail", ".detail.original", ".prompt_cache_breakpoint"],
    ),
    ({"type": "input_image", "file_id": "f", "detail": "auto"}, ["", ".file_id"]),
    (
        {"type": "input_file", "file_data": "AA==", "filename": "n", "detail": "low", **MARK},
        ["", ".file_data", ".filename", ".detail", ".prompt_cache_breakpoint"],
    ),
    ({"type": "input_file", "file_url": "u"}, ["", ".file_url"]),
    ({"type": "input_file", "file_id": "f"}, ["", ".file_id"]),
    ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, [""]),
    ({"type": "output_text", "text": "", "annotations": [{}], "logprobs": [{}]}, ["", ".annotations", ".logprobs"]),
    ({"type": "text", "text": ""}, [""]),
    ({"type": "refusal", "refusal": ""}, [""]),
]
TOOL_MENTIONS = [
    (
        function(parameters={}, strict=True, output_schema={"type": "string"}, **TOOL),
        ["", ".strict", ".output_schema", *(f".{name}" for name in TOOL)],
    ),
    (function(parameters={}, allowed_callers=["direct", "programmatic"]), [""]),
    ({"type": "custom", "name": "c", "format": {"type": "text"}, **TOOL}, ["", ".format.text", *(f".{name}" for name in TOOL)]),
    ({"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": ""}}, ["", ".format.grammar"]),
    ({"type": "namespace", "name": "n", "description": "d", "tools": []}, ["", ".description"]),
]
HOSTED = [row for row in ROWS if row.startswith(("tool:", "choice:", "item:")) and "." not in row]
SAID_ELSEWHERE = {
    "function",
    "custom",
    "namespace",
    "message",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
    "reasoning",
}


def place_of(base, suffix):
    """The pointer of a construct's attribute; the last word is a value of the member before it."""
    words = [word for word in suffix.split(".") if word and word not in {"original", "text", "grammar"}]
    return "/".join([base, *words])


def spread(kind, base, suffixes):
    return {f"{kind}{suffix}": place_of(base, suffix) for suffix in suffixes}


ALL_MENTIONS = [
    *MENTIONS,
    *(
        (
            {"input": [message(part)]},
            {"item:message": "/input/0", "role:user": "/input/0/role", **spread(f"part:{part['type']}", "/input/0/content/0", suffixes)},
        )
        for part, suffixes in PART_MENTIONS
    ),
    *(({"tools": [tool]}, spread(f"tool:{tool['type']}", "/tools/0", suffixes)) for tool, suffixes in TOOL_MENTIONS),
    *(
        (
            {
                "tool": {"tools": [{"type": kind, "whatever": 1}]},
                "choice": {"tool_choice": {"type": kind}},
                "item": {"input": [{"type": kind, "whatever": 1}]},
            }[prefix],
            {row: {"tool": "/tools/0", "choice": "/tool_choice", "item": "/input/0"}[prefix]},
        )
        for row in HOSTED
        for prefix, kind in [row.split(":")]
        if kind not in SAID_ELSEWHERE | {"auto", "none", "required", "allowed_tools"}
    ),
    *(({"tool_choice": word}, {f"choice:{word}": "/tool_choice"}) for word in ("auto", "none", "required")),
    *(({"tool_choice": {"type": kind, "name": "n"}}, {f"choice:{kind}": "/tool_choice"}) for kind in ("function", "custom")),
    (
        {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "shell"}]}},
        {"choice:allowed_tools": "/tool_choice", "choice:shell": "/tool_choice/tools/0"},
    ),
]


@pytest.mark.parametrize(("body", "mentions"), ALL_MENTIONS)
def test_every_construct_is_mentioned_at_its_place(body, mentions):
    found = lifted(**body).mentions
    assert {mention.construct: mention.pointer for mention in found} == mentions
    assert len(found) == len(mentions)


def test_the_table_above_reaches_every_row():
    """A foreign seal alone is not seen here: whose it is depends on the target."""
    assert {construct for _, mentions in ALL_MENTIONS for construct in mentions} == {*ROWS} - {"seal:foreign"}


def test_every_loss_has_its_reason():
    assert [row.construct for row in ROWS.values() if {*row.verdicts.values()} != {"exact"} and not row.why] == []


UNKNOWN = [
    ({"nonsense": 1}, "/nonsense"),
    ({"store.false": 1}, "/store.false"),
    ({"a/b": 1}, "/a~1b"),
    ({"include": ["reasoning.else"]}, "/include/0"),
    ({"reasoning": {"nonsense": 1}}, "/reasoning/nonsense"),
    ({"text": {"format": {"type": "yaml"}}}, "/text/format"),
    ({"text": {"format": {"type": "json_object", "schema": {}}}}, "/text/format/schema"),
    ({"input": [{"type": "nonsense"}]}, "/input/0"),
    ({"input": [{"type": "message.phase", "role": "user"}]}, "/input/0"),
    ({"input": [{"role": "narrator", "content": "x"}]}, "/input/0/role"),
    ({"input": [{"role": "user", "content": "x", "nonsense": 1}]}, "/input/0/nonsense"),
    ({"input": [message({"text": "x"})]}, "/input/0/content/0"),
    ({"input": [message({"type": "input_video"})]}, "/input/0/content/0"),
    ({"input": [message({"type": "input_text", "text": "x", "nonsense": 1})]}, "/input/0/content/0/nonsense"),
    ({"input": [message({"type": "input_audio", "input_audio": {"data": "", "format": "wav", "rate": 1}})]}, "/input/0/content/0/input_audio/rate"),
    ({"input": [message({"type": "input_image"})]}, "/input/0/content/0"),
    ({"input": [message({"type": "input_file", "file_id": "f", "file_url": "u"})]}, "/input/0/content/0"),
    ({"input": [message({"type": "input_file", "file_data": "data:text/plain,a%20b"})]}, "/input/0/content/0"),
    ({"input": [said("c", [{"type": "input_text", "text": ""}, {"type": "refusal", "refusal": ""}])]}, "/input/0/output/1"),
    ({"input": [call("c", nonsense=1)]}, "/input/0/nonsense"),
    ({"tools": [{"type": "nonsense"}]}, "/tools/0"),
    ({"tools": [{"type": "function.strict", "name": "f"}]}, "/tools/0"),
    ({"tools": [function(parameters={}, nonsense=1)]}, "/tools/0/nonsense"),
    ({"tools": [{"type": "custom", "name": "c", "format": {"type": "else"}}]}, "/tools/0/format"),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "namespace"}]}]}, "/tools/0/tools/0"),
    ({"tool_choice": "sometimes"}, "/tool_choice"),
    ({"tool_choice": {"type": "auto"}}, "/tool_choice"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "allowed_tools"}]}}, "/tool_choice/tools/0"),
]


@pytest.mark.parametrize(("body", "pointer"), UNKNOWN)
def test_what_is_not_known_is_refused_at_its_place(body, pointer):
    assert refusal(body) == (Code.UNREPRESENTABLE, pointer)


MALFORMED = [
    ({"input": 1}, "/input"),
    ({"tools": [function(parameters="x")]}, "/tools/0/parameters"),
    ({"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark"}}]}, "/tools/0/format"),
    ({"text": {"format": {"type": "json_schema", "name": "n", "schema": True}}}, "/text/format/schema"),
    ({"input": ["x"]}, "/input/0"),
    ({"input": [{"role": "user"}]}, "/input/0"),
    ({"input": [{"role": "user", "content": 1}]}, "/input/0/content"),
    ({"input": [call(1)]}, "/input/0/call_id"),
    ({"instructions": ["x"]}, "/instructions"),
    ({"tools": {}}, "/tools"),
    ({"tools": [{"type": "function"}]}, "/tools/0"),
    ({"tool_choice": 1}, "/tool_choice"),
    ({"include": "x"}, "/include"),
    ({"temperature": "hot"}, "/temperature"),
    ({"max_output_tokens": 1.5}, "/max_output_tokens"),
    ({"metadata": {"a": 1}}, "/metadata"),
    ({"store": "yes"}, "/store"),
    ({"reasoning": {"effort": 1}}, "/reasoning/effort"),
]


@pytest.mark.parametrize(("body", "pointer"), MALFORMED)
def test_a_wrong_shape_is_named_by_its_place(body, pointer):
    code, place = refusal(body)
    assert code is Code.MALFORMED_BODY
    assert place.startswith(pointer)  # inside free maps msgspec names the map's key type only


def test_numbers_beyond_any_are_malformed():
    with pytest.raises(RequestError) as caught:
        lift(parse(b"""{"temperature": 1e999}"""), False)
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, "/temperature")


def test_deep_nesting_is_malformed():
    deep = Raw(b'{"name":"n","type":"json_schema","schema":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(RequestError) as caught:
        decode(msgspec.json.Decoder(wire.JsonSchema), deep, "/text/format")
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, "/text/format")


TEXT = {"type": "string"}
OBJECT = {"type": "object", "additionalProperties": False}
STRICT = {
    "closed and required": (OBJECT | {"properties": {"a": TEXT}, "required": ["a"]}, True),
    "empty": (OBJECT, True),
    "optional": (OBJECT | {"properties": {"a": TEXT}, "required": []}, False),
    "open": ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, False),
    "open within": (OBJECT | {"properties": {"a": {"type": "array", "items": {"type": "object"}}}, "required": ["a"]}, False),
    "open or null": (OBJECT | {"properties": {"a": {"type": ["object", "null"]}}, "required": ["a"]}, False),
    "one of several": (OBJECT | {"properties": {"a": {"anyOf": [TEXT, {"$ref": "#/$defs/x"}]}}, "required": ["a"], "$defs": {"x": OBJECT}}, True),
    "alternatives at the root": (OBJECT | {"anyOf": [OBJECT]}, False),
    "default": (OBJECT | {"properties": {"a": TEXT | {"default": "b"}}, "required": ["a"]}, False),
    "another keyword": (OBJECT | {"oneOf": [TEXT]}, False),
    "no object": ({"type": "array", "items": TEXT}, False),
    "no type": ({}, False),
    "no schema": ([], False),
    "properties in a list": (OBJECT | {"properties": []}, False),
}


@pytest.mark.parametrize(("schema", "within"), STRICT.values(), ids=STRICT)
def test_strict_subset(schema, within):
    assert is_strict(Raw(json.dumps(schema).encode())) is within
