"""How a request is said in Responses' words; and that lifting it again gives the same request."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct, structs
from openai.types.responses import ResponseTextConfig
from openai.types.shared import ReasoningEffort

from asgi_surface import ir
from asgi_surface.codecs.base import Alias, Dialect, Target
from asgi_surface.codecs.gemini.lift import lift as gemini_lift
from asgi_surface.codecs.messages.lift import lift as messages_lift
from asgi_surface.codecs.responses.lift import lift
from asgi_surface.codecs.responses.lower import lower
from asgi_surface.codecs.wrapping import FAILED
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Form, Pick, Role
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import GEMINI, RESPONSES, Feature
from asgi_surface.verdicts import Mention

HI = ir.Turn(Role.USER, (ir.Text("hi", "/m/0/content"),), "/m/0")
OPEN = Raw(b'{"type":"object","properties":{"n":{"type":"string"},"o":{}},"required":["n"],"additionalProperties":false}')
CLOSED = Raw(b'{"type":"object","properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":false}')


def target(*without, **dialect):
    return Target(model="up", dialect=Dialect(**dialect), seal_domain="openai", features=frozenset(Feature) - {*without})


def lowered(turns=(HI,), to=None, **request):
    return lower(ir.Request(turns=tuple(turns), include_usage=True, **request), to or target())


def body(*args, **request):
    return json.loads(encode(lowered(*args, **request).members))


def items(*turns, to=None):
    return body(turns, to)["input"]


def user(*parts):
    return ir.Turn(Role.USER, parts, "/m/0")


def model(*parts):
    return ir.Turn(Role.ASSISTANT, parts, "/m/1")


def refusal(*args, **request):
    with pytest.raises(RequestError) as caught:
        lowered(*args, **request)
    assert caught.value.code is Code.UNREPRESENTABLE
    return caught.value.pointer


def test_the_least_body():
    assert body() == {"model": "up", "input": [{"type": "message", "role": "user", "content": "hi"}], "store": False}
    assert lowered().added == {"store"}
    assert lowered().origins == {"input": "/m/0"}


SYSTEM = ir.Turn(Role.SYSTEM, (ir.Text("S"),), "/s")
SYSTEM_ITEM = {"type": "message", "role": "system", "content": "S"}
INSTRUCTIONS = {
    "one text leads": ([SYSTEM, HI], "S", []),
    "a second stays an item": ([SYSTEM, SYSTEM, HI], "S", [SYSTEM_ITEM]),
    "a developer is an item": ([ir.Turn(Role.DEVELOPER, (ir.Text("S"),)), HI], None, [SYSTEM_ITEM]),
    "parts stay apart": (
        [ir.Turn(Role.SYSTEM, (ir.Text("a"), ir.Text("b"))), HI],
        None,
        [{"type": "message", "role": "system", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}],
    ),
}


@pytest.mark.parametrize(("turns", "instructions", "leading"), INSTRUCTIONS.values(), ids=INSTRUCTIONS)
def test_instructions(turns, instructions, leading):
    said = body(turns)
    assert (said.get("instructions"), said["input"][:-1]) == (instructions, leading)


def test_instructions_in_mid_conversation_stay_there():
    turns = [SYSTEM, HI, model(ir.Text("a")), HI, SYSTEM]
    said = body(turns, target(instruction_role="developer"))
    assert [item["role"] for item in said["input"]] == ["user", "assistant", "user", "developer"]
    assert lowered(turns).origins == {"instructions": "/s", "input": "/m/0"}


def test_only_instructions():
    assert (body([SYSTEM])["input"], lowered([SYSTEM]).origins["input"]) == ([], "")


PNG = ir.Inline("image/png", "AAAA")
PARTS = {
    "text": (ir.Text("a"), {"type": "input_text", "text": "a"}),
    "image data": (ir.Image(PNG), {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"}),
    "image URL": (ir.Image(ir.Link("https://x"), "low"), {"type": "input_image", "detail": "low", "image_url": "https://x"}),
    "stored image": (ir.Image(ir.Stored("f")), {"type": "input_image", "detail": "auto", "file_id": "f"}),
    "named PDF": (
        ir.Document(ir.Inline("application/pdf", "AAAA"), "a.pdf"),
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
    ),
    "PDF": (
        ir.Document(ir.Inline("application/pdf", "AAAA")),
        {"type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,AAAA"},
    ),
    "plain text": (
        ir.Document(ir.Inline("text/plain;charset=utf-8", "AAAA")),
        {"type": "input_file", "filename": "file.txt", "file_data": "data:text/plain;charset=utf-8;base64,AAAA"},
    ),
    "bare data": (ir.Document(ir.Inline("", "AAAA")), {"type": "input_file", "filename": "file.bin", "file_data": "AAAA"}),
    "file URL": (ir.Document(ir.Link("https://x"), "a"), {"type": "input_file", "filename": "a", "file_url": "https://x"}),
    "stored file": (ir.Document(ir.Stored("f"), "a"), {"type": "input_file", "file_id": "f"}),
    "sound": (ir.Audio(ir.Inline("audio/wav", "AAAA")), {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
}


@pytest.mark.parametrize(("part", "said"), PARTS.values(), ids=PARTS)
def test_parts(part, said):
    assert items(user(part, ir.Text("b")))[0]["content"] == [said, {"type": "input_text", "text": "b"}]


def seal(token="gAAA", kind=ir.SealKind.ENCRYPTED, surface=RESPONSES, domain="openai", name="rs_1"):
    return ir.Seal(token, kind, surface, domain, name)


SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
ASSISTANT = {
    "words that stand alone": ([ir.Text("a")], [{"type": "message", "role": "assistant", "content": "a"}]),
    "every part an item": (
        [ir.Text("a"), ir.Text(""), ir.Refusal("no")],
        [
            {"type": "message", "role": "assistant", "content": "a"},
            {"type": "message", "role": "assistant", "content": ""},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ],
    ),
    "in order": (
        [ir.Reasoning("why", seal()), ir.Call("c", "f", '{"a": 1.0}'), ir.Text("a"), ir.Call("d", "g", "{}", namespace="ns")],
        [
            SEALED | {"summary": [{"type": "summary_text", "text": "why"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1.0}'},
            {"type": "message", "role": "assistant", "content": "a"},
            {"type": "function_call", "call_id": "d", "name": "g", "namespace": "ns", "arguments": "{}"},
        ],
    ),
    "free text": (
        [ir.Call("c", "f", "x\ny", form=Form.CUSTOM)],
        [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x\ny"}],
    ),
    "reasoning without its token": (
        [ir.Reasoning("why"), ir.Reasoning("", seal(kind=ir.SealKind.TEXT)), ir.Text("a")],
        [{"type": "message", "role": "assistant", "content": "a"}],
    ),
    "a token without an item id": ([ir.Reasoning("", seal(name=""))], [{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}]),
    "a token that came with a call": (
        [ir.Call("c", "f", "{}", seal=seal())],
        [SEALED, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
    ),
}


@pytest.mark.parametrize(("parts", "said"), ASSISTANT.values(), ids=ASSISTANT)
def test_assistant_turns(parts, said):
    assert items(model(*parts), HI)[:-1] == said


RESULTS = {
    "text": (ir.Result("c", (ir.Text("a"),)), "a"),
    "nothing": (ir.Result("c", ()), ""),
    "several": (ir.Result("c", (ir.Text("a"), ir.Image(PNG))), [PARTS["text"][1], PARTS["image data"][1]]),
    "failed": (ir.Result("c", (ir.Text("42"),), failed=True), FAILED + "42"),
    "failed, with an image": (
        ir.Result("c", (ir.Image(PNG),), failed=True),
        [{"type": "input_text", "text": FAILED}, PARTS["image data"][1]],
    ),
    "failed without a word": (ir.Result("c", (), failed=True), FAILED),
}


@pytest.mark.parametrize(("result", "output"), RESULTS.values(), ids=RESULTS)
def test_results(result, output):
    assert items(user(result)) == [{"type": "function_call_output", "call_id": "c", "output": output}]
    assert lowered([user(result)]).emulated == ((Mention("result:failed", ""),) if result.failed else ())


def test_results_come_before_words():
    said = items(user(ir.Text("first"), ir.Result("c", (ir.Text("a"),), form=Form.CUSTOM), ir.Text("then")))
    assert [item["type"] for item in said] == ["custom_tool_call_output", "message"]
    assert [part["text"] for part in said[1]["content"]] == ["first", "then"]


def test_an_empty_turn_stays_one():
    assert items(user()) == [{"type": "message", "role": "user", "content": []}]


def test_long_call_ids_stay_linked():
    long = "call_" + "x" * 100
    call, output = items(model(ir.Call(long, "f", "{}")), user(ir.Result(long, (ir.Text("a"),))))
    assert call["call_id"] == output["call_id"] != items(user(ir.Result(long + "y", ())))[0]["call_id"]
    assert len(call["call_id"]) <= 64


FOREIGN = [
    seal(domain="other"),
    seal(domain=""),
    seal(surface=GEMINI),
    seal(kind=ir.SealKind.SIGNATURE),
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_foreign_seal_is_refused_where_it_stands(foreign):
    assert refusal([model(ir.Reasoning("t", foreign, "/m/1/content/0")), HI]) == "/m/1/content/0"
    assert refusal([model(ir.Call("c", "f", "{}", seal=foreign, at="/m/1/content/1")), HI]) == "/m/1/content/1"


def test_nothing_sealed_is_said_for_a_call_whose_reasoning_has_no_token():
    said = items(model(ir.Call("c", "f", "{}", seal=seal("words", ir.SealKind.TEXT))), HI)
    assert [item["type"] for item in said] == ["function_call", "message"]


MISPLACED = [
    (model(ir.Image(PNG, at="/p")), "/p"),
    (user(ir.Call("c", "f", "{}", at="/p")), "/p"),
    (user(ir.Audio(ir.Inline("audio/flac", "AAAA"), "/p")), "/p"),
    (user(ir.Audio(ir.Link("https://x", "audio/wav"), "/p")), "/p"),
]


@pytest.mark.parametrize(("turn", "pointer"), MISPLACED)
def test_parts_without_a_place_are_refused(turn, pointer):
    assert refusal([turn, HI]) == pointer


def test_an_unfinished_turn_is_refused_unless_the_dialect_continues_it():
    turns = [HI, model(ir.Text("The answer is ("))]
    assert refusal(turns) == "/m/1"
    assert items(*turns, to=target(prefill=True))[1]["content"] == "The answer is ("


LONG = "srv." + "x" * 70
GRAMMAR = Raw(b'{"type":"grammar","syntax":"lark","definition":"start: /a/"}')
TOOLS = {
    "strictness is always said": (
        ir.Tool("f", "d", OPEN, strict=False),
        {"type": "function", "name": "f", "description": "d", "parameters": json.loads(bytes(OPEN)), "strict": False},
    ),
    "no parameters": (ir.Tool("f", strict=True), {"type": "function", "name": "f", "parameters": None, "strict": True}),
    "free text": (ir.Tool("f", "d", form=Form.CUSTOM), {"type": "custom", "name": "f", "description": "d"}),
    "a grammar": (ir.Tool("f", form=Form.CUSTOM, grammar=GRAMMAR), {"type": "custom", "name": "f", "format": json.loads(bytes(GRAMMAR))}),
    "a namespace": (
        ir.Tool("f", namespace="ns", namespace_description="n"),
        {"type": "namespace", "name": "ns", "description": "n", "tools": [{"type": "function", "name": "f", "parameters": None, "strict": False}]},
    ),
}


@pytest.mark.parametrize(("tool", "said"), TOOLS.values(), ids=TOOLS)
def test_tools(tool, said):
    assert body(tools=(tool,))["tools"] == [said]
    assert lowered(tools=(tool,)).aliases == {}


def test_schemas_keep_their_text():
    schema = b'{"type": "object",  "z": 1.0e3, "a": "\\u00e9"}'
    assert schema in encode(lowered(tools=(ir.Tool("f", schema=Raw(schema)),)).members)


def test_names_outside_the_charset_get_another_everywhere():
    tools = (ir.Tool(LONG, at="/tools/0"), ir.Tool(LONG + "y", at="/tools/1"))
    done = lowered([HI, model(ir.Call("c", LONG, "{}")), user(ir.Result("c", ()))], tools=tools, choice=ir.Choice(Pick.REQUIRED, (LONG,)))
    said = json.loads(encode(done.members))
    first, second = (tool["name"] for tool in said["tools"])
    assert first != second
    assert max(len(first), len(second)) <= 64
    assert "." not in first + second
    assert said["input"][1]["name"] == said["tool_choice"]["name"] == first
    assert done.aliases == {first: Alias(LONG), second: Alias(LONG + "y")}
    assert done.emulated == (Mention("tool:name", "/tools/0"), Mention("tool:name", "/tools/1"))
    assert done.origins == {"input": "/m/0", "tools": "/tools/0", "tool_choice": ""}


def test_custom_tools_are_wrapped_where_the_upstream_has_none():
    tool = ir.Tool("patch", "d", form=Form.CUSTOM, grammar=GRAMMAR, at="/tools/0")
    plain = ir.Tool("free", form=Form.CUSTOM, at="/tools/1")
    history = [HI, model(ir.Call("c", "patch", 'a "b"', form=Form.CUSTOM)), user(ir.Result("c", (ir.Text("done"),), form=Form.CUSTOM))]
    wish = ir.Choice(Pick.REQUIRED, ("patch",))
    done = lowered(history, target(Feature.CUSTOM_TOOLS), tools=(tool, plain), choice=wish)
    said = json.loads(encode(done.members))
    assert said["tools"][0]["parameters"] == {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "Must follow this lark grammar:\nstart: /a/"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    assert said["tools"][1]["parameters"]["properties"] == {"input": {"type": "string"}}
    assert [tool["type"] for tool in said["tools"]] == ["function", "function"]
    assert json.loads(said["input"][1]["arguments"]) == {"input": 'a "b"'}
    assert said["input"][2]["type"] == "function_call_output"
    assert said["tool_choice"] == {"type": "function", "name": "patch"}
    assert done.aliases == {"patch": Alias("patch", Form.CUSTOM), "free": Alias("free", Form.CUSTOM)}
    assert done.emulated == (Mention("tool:custom", "/tools/0"), Mention("tool:custom", "/tools/1"))
    assert refusal([HI], target(Feature.CUSTOM_TOOLS, custom_tools="refuse"), tools=(tool,)) == "/tools/0"


CHOICES = [
    (ir.Choice(Pick.AUTO), "auto"),
    (ir.Choice(Pick.NONE, ("f",)), "none"),
    (ir.Choice(Pick.REQUIRED), "required"),
    (ir.Choice(Pick.REQUIRED, ("f",)), {"type": "function", "name": "f"}),
    (ir.Choice(Pick.REQUIRED, ("c",)), {"type": "custom", "name": "c"}),
    (ir.Choice(Pick.AUTO, ("f",)), {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}),
    (
        ir.Choice(Pick.REQUIRED, ("f", "c")),
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}]},
    ),
]


@pytest.mark.parametrize(("choice", "said"), CHOICES)
def test_choice(choice, said):
    assert body(tools=(ir.Tool("f"), ir.Tool("c", form=Form.CUSTOM)), choice=choice)["tool_choice"] == said


EFFORTS = [
    (ir.Effort("high", summary="auto"), {"effort": "high", "summary": "auto"}),
    (ir.Effort(off=True), {"effort": "none"}),
    (ir.Effort(budget=9000, summary="omitted"), {"effort": "high"}),  # the least word that allows as much, as on Chat
    (ir.Effort(budget=8192), {"effort": "medium"}),
    (ir.Effort(budget=10**6), {"effort": "high"}),
    (ir.Effort(adaptive=True, summary="detailed"), {"summary": "detailed"}),
    (ir.Effort("medium", adaptive=True), {"effort": "medium"}),
    (ir.Effort(adaptive=True), None),
]


@pytest.mark.parametrize(("effort", "said"), EFFORTS)
def test_effort(effort, said):
    assert body(effort=effort).get("reasoning") == said


def test_a_budget_is_emulated_by_a_word():
    done = lowered(effort=ir.Effort(budget=1, at="/thinking"))
    assert json.loads(bytes(done.members["reasoning"])) == {"effort": "low"}
    assert done.emulated == (Mention("effort:budget", "/thinking"),)
    assert refusal([HI], target(reasoning_budgets={}), effort=ir.Effort(budget=9000, at="/thinking")) == "/thinking"


SYSTEM_LATE = ir.Turn(Role.SYSTEM, (ir.Text("S"),), "/m/1")
DEVELOPER = ir.Turn(Role.DEVELOPER, (ir.Text("S"),), "/m/2")
NAMED = ir.Document(ir.Stored("f"), "a.pdf", "/d")
NAMELESS = ir.Document(ir.Inline("application/pdf", "AAAA"), at="/d")
GONE = [HI, model(ir.Call("c", "free", "x", form=Form.CUSTOM, at="/c")), user(ir.Result("c", ()))]
RESAID = [
    ({"turns": [HI, model(ir.Call("c" * 64, "f", "{}", at="/c")), user(ir.Result("c" * 64, ()))]}, {}, []),
    ({"turns": [HI, model(ir.Call("c" * 65, "f", "{}", at="/c")), user(ir.Result("c" * 65, ()))]}, {}, [Mention("call:id", "/c")]),
    ({"turns": [user(NAMED)]}, {}, [Mention("document:name", "/d")]),
    ({"turns": [user(NAMELESS)]}, {}, [Mention("document:name", "/d")]),
    ({"turns": [user(ir.Result("c", (NAMELESS,)))]}, {}, [Mention("document:name", "/d")]),
    ({"turns": [user(structs.replace(NAMED, name=None), structs.replace(NAMELESS, name="a.pdf"))]}, {}, []),
    ({"turns": [user(ir.Document(ir.Link("https://x/y"))), user(ir.Document(ir.Link("https://x/y"), "a.pdf"))]}, {}, []),
    ({"turns": [user(ir.Text("x"), ir.Result("c", (), at="/r"))]}, {}, [Mention("order:result", "/r")]),
    ({"turns": [user(ir.Result("c", (), failed=True, at="/r"), ir.Text("x"))]}, {}, [Mention("result:failed", "/r")]),
    ({"turns": GONE}, {}, []),
    ({"turns": [HI, model(ir.Call("c", LONG, "{}", at="/c")), user(ir.Result("c", ()))]}, {}, [Mention("tool:name", "/c")]),
    ({"effort": ir.Effort("high", 2048, at="/e")}, {}, [Mention("effort:budget", "/e")]),
    ({"effort": ir.Effort("high", off=True, at="/e")}, {}, [Mention("effort:word", "/e")]),
    ({"effort": ir.Effort("none", off=True, at="/e")}, {}, []),
    ({"turns": [DEVELOPER, HI]}, {}, [Mention("role:developer", "/m/2")]),
    ({"turns": [DEVELOPER, HI]}, {"instruction_role": "developer"}, []),
    ({"turns": [HI, SYSTEM_LATE, HI]}, {}, []),
    ({"turns": [HI, SYSTEM_LATE, HI]}, {"instruction_role": "developer"}, [Mention("role:system", "/m/1")]),
    ({"turns": [SYSTEM_LATE, HI]}, {"instruction_role": "developer"}, []),
    ({"format": ir.Format(CLOSED, at="/f")}, {}, []),
    ({"format": ir.Format(OPEN, at="/f")}, {}, [Mention("format:strict", "/f")]),
    ({"format": ir.Format(OPEN, "a name", strict=False, at="/f")}, {}, [Mention("format:name", "/f")]),
    ({"format": ir.Format(None, at="/f")}, {}, []),
    ({"settings": ir.Settings(safety_id="u" * 64)}, {}, []),
    ({"settings": ir.Settings(safety_id="u" * 65, at={"safety_id": "/metadata/user_id"})}, {}, [Mention("safety_id:hash", "/metadata/user_id")]),
]


LOOSE = {"type": "object", "properties": {"a": {"type": "string"}}}
SCHEMAS = [
    (gemini_lift, {"generationConfig": {"responseSchema": {"type": "OBJECT", "properties": {}}}}, "/generationConfig/responseSchema"),
    (gemini_lift, {"generationConfig": {"responseJsonSchema": LOOSE}}, "/generationConfig/responseJsonSchema"),
    (messages_lift, {"output_config": {"format": {"type": "json_schema", "schema": LOOSE}}}, "/output_config/format"),
]


@pytest.mark.parametrize(("request_said", "dialect", "emulated"), RESAID)
def test_what_is_said_another_way_by_its_value_is_noted(request_said, dialect, emulated):
    assert list(lowered(to=target(**dialect), **request_said).emulated) == emulated


def test_a_call_stands_for_its_tool_where_that_is_no_longer_offered():
    done = lowered(GONE, target(Feature.CUSTOM_TOOLS))
    assert (done.emulated, done.aliases) == ((Mention("tool:custom", "/c"),), {"free": Alias("free", Form.CUSTOM)})


@pytest.mark.parametrize(("client", "body_said", "place"), SCHEMAS)
def test_a_schema_that_its_surface_enforces_is_noted_where_it_cannot_be_enforced(client, body_said, place):
    wished = client(parse(json.dumps(body_said).encode()), False).request.format
    done = lowered(format=wished)
    assert json.loads(bytes(done.members["text"]))["format"]["strict"] is False
    assert done.emulated == (Mention("format:strict", place),)


def test_words_that_the_surface_does_not_have_are_refused():
    assert refusal([HI], effort=ir.Effort("ultra", at="/output_config/effort")) == "/output_config/effort"
    assert refusal([HI], settings=ir.Settings(verbosity="endless", at={"verbosity": "/verbosity"})) == "/verbosity"
    efforts = set(get_args(get_args(ReasoningEffort)[0]))
    assert {word for word in efforts if body(effort=ir.Effort(word))["reasoning"] == {"effort": word}} == efforts
    lengths = set(get_args(get_args(ResponseTextConfig.model_fields["verbosity"].annotation)[0]))
    assert {word for word in lengths if body(settings=ir.Settings(verbosity=word))["text"] == {"verbosity": word}} == lengths


FORMATS = [
    (ir.Format(None), {"type": "json_object"}),
    (ir.Format(OPEN), {"name": "response", "schema": json.loads(bytes(OPEN)), "strict": False}),
    (ir.Format(OPEN, strict=True), {"name": "response", "schema": json.loads(bytes(OPEN)), "strict": True}),
    (ir.Format(CLOSED), {"name": "response", "schema": json.loads(bytes(CLOSED)), "strict": True}),
    (ir.Format(CLOSED, "n", "d", strict=False), {"name": "n", "description": "d", "schema": json.loads(bytes(CLOSED)), "strict": False}),
]


@pytest.mark.parametrize(("wish", "said"), FORMATS)
def test_format(wish, said):
    assert body(format=wish)["text"]["format"] == {"type": "json_schema"} | said


def test_a_format_s_name_is_plain():
    assert body(format=ir.Format(CLOSED, "a b"))["text"]["format"]["name"].startswith("a_b_")


def test_settings():
    numbers = {"max_tokens": Raw(b"8"), "temperature": Raw(b"1.0e0"), "top_p": Raw(b"0.50"), "top_logprobs": Raw(b"3")}
    words = {"user": "u", "safety_id": "s", "service_tier": "flex", "cache_key": "k", "verbosity": "high"}
    values = {**numbers, **words, "metadata": Raw(b'{"a":"b"}'), "parallel": False, "logprobs": True, "store": False}
    done = lowered(settings=ir.Settings(**values, at={name: f"/{name}" for name in values}), stream=True)
    assert {name: bytes(raw) for name, raw in done.members.items() if name not in {"model", "input"}} == {
        "max_output_tokens": b"8",
        "temperature": b"1.0e0",
        "top_p": b"0.50",
        "top_logprobs": b"3",
        "parallel_tool_calls": b"false",
        "metadata": b'{"a":"b"}',
        "user": b'"u"',
        "service_tier": b'"flex"',
        "prompt_cache_key": b'"k"',
        "safety_identifier": b'"s"',
        "text": b'{"verbosity":"high"}',
        "include": b'["message.output_text.logprobs"]',
        "store": b"false",
        "stream": b"true",
    }
    assert done.added == frozenset()
    assert (done.origins["include"], done.origins["text"], done.origins["store"]) == ("/logprobs", "/verbosity", "/store")


def test_long_user_ids_are_hashed():
    first, second, again = (body(settings=ir.Settings(safety_id="u" * 65 + end))["safety_identifier"] for end in "xyx")
    assert first == again != second
    assert len(first) <= 64


@pytest.mark.parametrize("padded", [True, False])
def test_padding_of_a_stream(padded):
    wishes = ir.Settings(obfuscation=padded, at={"obfuscation": "/stream_options/include_obfuscation"})
    done = lowered(settings=wishes, stream=True)
    assert (json.loads(bytes(done.members["stream_options"])), done.origins["stream_options"]) == (
        {"include_obfuscation": padded},
        "/stream_options/include_obfuscation",
    )
    assert "stream_options" not in body(settings=wishes)


def test_seals_are_asked_for_where_there_are_any():
    done = lowered(wants_seals=True)
    assert bytes(done.members["include"]) == b'["reasoning.encrypted_content"]'
    assert done.added == {"include", "store"}
    assert "include" not in body([HI], target(Feature.ENCRYPTED_REASONING), wants_seals=True)
    both = lowered(wants_seals=True, settings=ir.Settings(logprobs=True, at={"logprobs": "/logprobs"}))
    assert json.loads(bytes(both.members["include"])) == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert both.origins["include"] == "/logprobs"


# -- the law: what is lifted again is the same, but for places, and the issuer of a seal, which this surface's own slot does not name

_TEXT = st.text(min_size=1, max_size=5)
_NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
_DATA = st.sampled_from(["", "AAAA", "iVBORw0KGgo="])
_NUMBER = st.sampled_from(["1", "0.50", "1.0e0"]).map(lambda text: Raw(text.encode()))
_WHOLE = st.sampled_from(["1", "64"]).map(lambda text: Raw(text.encode()))
_SCHEMA = st.sampled_from([OPEN, CLOSED, Raw(b"{}")])


def maybe(strategy):
    return st.none() | strategy


_LINK = st.builds(ir.Link, st.just("https://x/y"))
_STORED = st.builds(ir.Stored, _NAME)
_WORDS = st.builds(ir.Text, st.text(max_size=5))
_IMAGE = st.builds(ir.Image, st.builds(ir.Inline, st.just("image/png"), _DATA) | _LINK | _STORED, st.sampled_from([None, "low", "high", "original"]))
_FILE = (
    st.builds(ir.Document, st.builds(ir.Inline, st.just("application/pdf"), _DATA) | st.builds(ir.Inline, st.just(""), st.just("AAAA")), _NAME)
    | st.builds(ir.Document, _LINK, maybe(_NAME))
    | st.builds(ir.Document, _STORED)
)
_AUDIO = st.builds(ir.Audio, st.builds(ir.Inline, st.sampled_from(["audio/mpeg", "audio/wav"]), _DATA))
_FORM = st.sampled_from(Form)
_RESULT = st.builds(ir.Result, _NAME, st.lists(_WORDS | _IMAGE | _FILE, min_size=1, max_size=3).map(tuple), form=_FORM)
_SEAL = st.builds(ir.Seal, _TEXT, st.just(ir.SealKind.ENCRYPTED), st.just(RESPONSES), st.just("openai"), _NAME | st.just(""))
_REASONING = st.builds(ir.Reasoning, st.text(max_size=5), _SEAL)
_CALL = st.builds(ir.Call, _NAME, _NAME, st.text(max_size=5), form=_FORM, namespace=maybe(_NAME))


def turn(role, part, least=1):
    return st.builds(ir.Turn, st.just(role), st.lists(part, min_size=least, max_size=4).map(tuple))


_LEADING = turn(Role.SYSTEM, st.builds(ir.Text, _TEXT))
_USER = turn(Role.USER, _WORDS | _IMAGE | _FILE | _AUDIO, 0)
_ROUND = st.tuples(turn(Role.ASSISTANT, _WORDS | st.builds(ir.Refusal, _TEXT) | _CALL | _REASONING), turn(Role.USER, _RESULT) | _USER | _LEADING)


@st.composite
def _turns(draw):
    rounds = draw(st.lists(_ROUND, max_size=3))
    return (*draw(st.lists(_LEADING, max_size=2)), draw(_USER), *(turn for pair in rounds for turn in pair))


_TOOL = st.builds(ir.Tool, _NAME, maybe(_TEXT), maybe(_SCHEMA), st.booleans()) | st.builds(
    ir.Tool, _NAME, maybe(_TEXT), form=st.just(Form.CUSTOM), grammar=maybe(st.just(GRAMMAR))
)
_SPACED = st.builds(ir.Tool, _NAME, strict=st.booleans(), namespace=st.just("ns"), namespace_description=_TEXT)


@st.composite
def _settings(draw):
    top = draw(maybe(_WHOLE))
    return ir.Settings(
        max_tokens=draw(maybe(_WHOLE)),
        temperature=draw(maybe(_NUMBER)),
        top_p=draw(maybe(_NUMBER)),
        top_logprobs=top,
        logprobs=True if top is not None else draw(st.sampled_from([None, True])),
        parallel=draw(maybe(st.booleans())),
        store=False,
        user=draw(maybe(_TEXT)),
        safety_id=draw(maybe(_TEXT)),
        metadata=draw(maybe(st.just(Raw(b'{"a":"\\u00e9"}')))),
        service_tier=draw(maybe(st.sampled_from(["auto", "flex"]))),
        cache_key=draw(maybe(_TEXT)),
        verbosity=draw(maybe(st.sampled_from(["low", "medium"]))),
    )


_EFFORT = st.builds(ir.Effort, st.just("high"), summary=maybe(st.just("auto"))) | st.builds(ir.Effort, off=st.just(True))
_FORMAT = st.builds(ir.Format, st.just(CLOSED), _NAME, maybe(_TEXT), st.booleans()) | st.builds(ir.Format, st.none())
_CHOICE = st.builds(ir.Choice, st.sampled_from(Pick)) | st.builds(
    ir.Choice, st.sampled_from([Pick.AUTO, Pick.REQUIRED]), st.lists(_NAME, min_size=1, max_size=3).map(tuple)
)
_REQUEST = st.builds(
    lambda padded, settings, stream, **members: ir.Request(
        settings=structs.replace(settings, obfuscation=padded if stream else None), stream=stream, **members
    ),
    maybe(st.booleans()),
    turns=_turns(),
    # Of one name only one: where one is free text, the other is refused.
    tools=st.tuples(*(st.lists(kind, max_size=3, unique_by=lambda tool: tool.name) for kind in (_TOOL, _SPACED))).map(lambda two: (*two[0], *two[1])),
    choice=maybe(_CHOICE),
    settings=_settings(),
    effort=maybe(_EFFORT),
    format=maybe(_FORMAT),
    stream=st.booleans(),
    include_usage=st.just(True),
    wants_seals=st.booleans(),
)


def bare(node):
    """The node without places and issuers."""
    if isinstance(node, Struct):
        return type(node)(**{name: bare(getattr(node, name)) for name in node.__struct_fields__ if name not in {"at", "domain"}})
    return tuple(map(bare, node)) if isinstance(node, tuple) else node


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_REQUEST)
def test_what_is_lifted_again_is_the_same(request):
    done = lower(request, target(prefill=True))
    assert bare(lift(done.members, request.stream).request) == bare(request)
    assert {*done.members} == {"model", *done.origins, *done.added}
