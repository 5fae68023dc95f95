"""A request in Gemini's words, node by node; what Gemini cannot say is refused at the client's pointer; and lift undoes lower."""

import itertools
import json
import re

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Dialect, Target
from asgi_surface.codecs.gemini.lift import lift
from asgi_surface.codecs.gemini.lower import lower
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import GEMINI, MESSAGES
from asgi_surface.verdicts import Mention

USER, MODEL, SYSTEM = ir.Role.USER, ir.Role.ASSISTANT, ir.Role.SYSTEM
HI = ir.Turn(USER, (ir.Text("hi"),), "/hi")
OWN = ir.Seal("t+/=", ir.SealKind.THOUGHT, GEMINI, "google")
BARE = {"unsigned_calls": "bare"}
PICTURE = ir.Inline("image/png", "AA==")


def target(**dialect):
    return Target(model="m", dialect=Dialect(**dialect), seal_domain="google", features=frozenset())


def lowered(*turns, dialect=None, **more):
    return lower(ir.Request(turns=turns, **more), target(**(dialect or {})))


def body(*turns, **more):
    return {name: json.loads(bytes(raw)) for name, raw in lowered(*turns, **more).members.items()}


def contents(*turns, **more):
    return body(*turns, **more)["contents"]


def model(*parts):
    """The parts of the model's turn, before the user's."""
    return contents(ir.Turn(MODEL, parts), HI)[0]["parts"]


def user(*parts, **dialect):
    return contents(ir.Turn(USER, parts), dialect=dialect)[0]["parts"]


def refusal(*turns, **more):
    with pytest.raises(RequestError) as caught:
        lowered(*turns, **more)
    assert caught.value.code == Code.UNREPRESENTABLE
    return caught.value.pointer


def test_instructions_lead():
    developer = ir.Turn(ir.Role.DEVELOPER, (ir.Text("D1"), ir.Text("D2")))
    assert body(ir.Turn(SYSTEM, (ir.Text("S"),)), developer, HI) == {
        "systemInstruction": {"parts": [{"text": "S"}, {"text": "D1"}, {"text": "D2"}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }


@pytest.mark.parametrize("role", [SYSTEM, ir.Role.DEVELOPER])
def test_an_instruction_between_turns_is_said_in_its_place_as_marked_text_of_the_user(role):
    said = lowered(HI, ir.Turn(role, (ir.Text("S"), ir.Text("T")), "/s"), ir.Turn(MODEL, (ir.Text("a"),)), ir.Turn(role, (), "/empty"), HI)
    assert json.loads(bytes(said.members["contents"])) == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "user", "parts": [{"text": "[system] S"}, {"text": "T"}]},
        {"role": "model", "parts": [{"text": "a"}]},
        {"role": "user", "parts": [{"text": "hi"}]},
    ]
    assert said.emulated == (Mention(f"role:{role}.mid", "/s"), Mention(f"role:{role}.mid", "/empty"))


def call(given="c1", name="f", arguments="{}", **more):
    return ir.Call(given, name, arguments, **more)


def result(answered="c1", *parts, **more):
    return ir.Turn(USER, (ir.Result(answered, parts or (ir.Text("ok"),), **more),), f"/{answered}")


def test_results_take_the_name_from_their_call_and_stand_together_in_the_calls_order():
    said = contents(
        HI, ir.Turn(MODEL, (call("t1", "f", '{"a":1.0}'), call("t2", "g"))), result("t2", ir.Text("two")), result("t1", ir.Text("[1,2]")), HI
    )
    assert [content["role"] for content in said] == ["user", "model", "user", "user"]
    assert said[1]["parts"][0]["functionCall"] == {"id": "t1", "name": "f", "args": {"a": 1.0}}
    assert said[2]["parts"] == [
        {"functionResponse": {"id": "t1", "name": "f", "response": {"output": "[1,2]"}}},
        {"functionResponse": {"id": "t2", "name": "g", "response": {"output": "two"}}},
    ]


def test_arguments_keep_their_text():
    assert b'"args":{"a":  1.0, "b":1}' in bytes(lowered(ir.Turn(MODEL, (call("c", "f", '{"a":  1.0, "b":1}'),)), HI).members["contents"])


def test_the_first_call_of_a_content_without_tokens_gets_a_stand_in_which_is_named():
    turns = ir.Turn(MODEL, (ir.Text("a"), call("c1", at="/c1"), call("c2", at="/c2"))), result("c1"), ir.Turn(MODEL, (call("c3", at="/c3"),)), HI
    said = lowered(*turns)
    first, _, second, _ = json.loads(bytes(said.members["contents"]))
    assert [part.get("thoughtSignature") for part in first["parts"] + second["parts"]] == [None, seals.STAND_IN, None, seals.STAND_IN]
    assert said.emulated == (Mention("call:unsigned", "/c1"), Mention("call:unsigned", "/c3"))
    bare = lowered(*turns, dialect=BARE)
    assert (b"thoughtSignature" in bytes(bare.members["contents"]), bare.emulated) == (False, ())


@pytest.mark.parametrize("signed", [ir.Reasoning("", OWN), ir.Reasoning("T", OWN), call(seal=OWN)])
def test_what_gemini_signed_itself_goes_back_without_a_stand_in(signed):
    assert "thoughtSignature" not in model(signed, call("c2"))[-1]


def test_a_models_turns_are_one_content():
    assert contents(ir.Turn(MODEL, (ir.Text("a"),)), ir.Turn(MODEL, (call(),)), result())[0]["parts"][0] == {"text": "a"}


def test_numbered_calls_go_without_their_number():
    said = contents(ir.Turn(MODEL, (call("call_0", minted=True),)), result("call_0"))
    assert "id" not in said[0]["parts"][0]["functionCall"]
    assert "id" not in said[1]["parts"][0]["functionResponse"]


RESULTS = [
    ((ir.Text("a"), ir.Text("b")), {}, {"response": {"output": "a\nb"}}),
    ((ir.Text("no"),), {"failed": True}, {"response": {"error": "no"}}),
    ((ir.Image(PICTURE),), {}, {"response": {"output": ""}, "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}),
]


@pytest.mark.parametrize(("parts", "more", "expected"), RESULTS)
def test_results(parts, more, expected):
    said = contents(ir.Turn(MODEL, (call(),)), result("c1", *parts, **more))
    assert said[1]["parts"] == [{"functionResponse": {"id": "c1", "name": "f", **expected}}]


def test_a_result_whose_call_is_not_in_sight_has_a_name_or_is_refused():
    assert contents(result("x", name="g"))[0]["parts"][0]["functionResponse"]["name"] == "g"
    assert refusal(ir.Turn(USER, (ir.Result("x", (), at="/r"),))) == "/r"


def test_tokens_of_its_own_stand_on_their_part():
    reasoning = ir.Reasoning("", OWN)
    assert model(ir.Reasoning("T", OWN)) == [{"text": "T", "thought": True, "thoughtSignature": "t+/="}]
    assert model(ir.Reasoning("T"), reasoning, ir.Text("a")) == [{"text": "T", "thought": True}, {"text": "a", "thoughtSignature": "t+/="}]
    assert model(ir.Text("a"), reasoning) == [{"text": "a"}, {"text": "", "thoughtSignature": "t+/="}]
    assert model(reasoning, reasoning, ir.Text("a"))[0] == {"text": "", "thoughtSignature": "t+/="}
    assert model(call(seal=OWN))[0]["thoughtSignature"] == "t+/="
    assert model(reasoning, call())[1] == {"functionCall": {"id": "c1", "name": "f", "args": {}}}
    assert model(reasoning, call(seal=OWN))[0] == {"text": "", "thoughtSignature": "t+/="}
    assert model(ir.Reasoning("", structs.replace(OWN, domain="")), ir.Text("a"))[0]["thoughtSignature"] == "t+/="


def test_words_in_an_envelope_are_words():
    envelope = ir.Seal("T", ir.SealKind.TEXT, MESSAGES, "google")
    assert model(ir.Reasoning("", envelope), ir.Reasoning("U", envelope)) == [{"text": "T", "thought": True}, {"text": "U", "thought": True}]
    assert contents(ir.Turn(MODEL, (ir.Reasoning(""),)), HI) == [{"role": "user", "parts": [{"text": "hi"}]}]


@pytest.mark.parametrize(
    "seal", [structs.replace(OWN, domain="other"), structs.replace(OWN, surface=MESSAGES), structs.replace(OWN, surface=MESSAGES, domain="")]
)
def test_tokens_of_another_issuer_are_refused_where_they_stand(seal):
    assert refusal(ir.Turn(MODEL, (ir.Reasoning("", seal, "/r"),)), HI) == "/r"
    assert refusal(ir.Turn(MODEL, (call(seal=seal, at="/c"),)), HI) == "/c"


def test_media():
    assert user(ir.Image(PICTURE), ir.Audio(ir.Inline("audio/wav", "AA=="))) == [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
    ]
    link = ir.Image(ir.Link("https://x/a"), at="/i")
    assert user(link, ir.Document(ir.Link("https://x/b", "application/pdf")), remote_images=True) == [
        {"fileData": {"fileUri": "https://x/a"}},
        {"fileData": {"fileUri": "https://x/b", "mimeType": "application/pdf"}},
    ]
    for source in (link.source, ir.Stored("file_1"), ir.Inline("", "AA==")):
        assert refusal(ir.Turn(USER, (ir.Image(source, at="/i"),))) == "/i"


def test_refusals_are_words():
    assert model(ir.Refusal("no")) == [{"text": "no"}]


REFUSED = [
    ((ir.Turn(SYSTEM, (ir.Text("S"),), "/s"),), {}, "/s"),
    ((), {}, ""),
    ((HI, ir.Turn(SYSTEM, (ir.Image(PICTURE, at="/s/0"),), "/s"), HI), {}, "/s/0"),
    ((ir.Turn(SYSTEM, (ir.Image(PICTURE, at="/i"),)), HI), {}, "/i"),
    ((HI, ir.Turn(MODEL, (ir.Text("a"),), "/m")), {}, "/m"),
    ((ir.Turn(MODEL, (call(arguments="[1]", at="/c"),)), HI), {}, "/c"),
    ((ir.Turn(MODEL, (call(arguments='{"a":', at="/c"),)), HI), {}, "/c"),
    ((HI,), {"settings": ir.Settings(stop=tuple("abcdef"), at={"stop": "/stop"})}, "/stop"),
    ((HI,), {"settings": ir.Settings(seed=Raw(b"4294967296"), at={"seed": "/seed"})}, "/seed"),
    ((HI,), {"settings": ir.Settings(parallel=False, at={"parallel": "/p"}), "tools": (ir.Tool("f"),)}, "/p"),
    ((HI,), {"tools": (ir.Tool("f", form=ir.Form.CUSTOM, at="/t"),), "dialect": {"custom_tools": "refuse"}}, "/t"),
    ((HI,), {"choice": ir.Choice(ir.Pick.REQUIRED, (), "/c")}, "/c"),
    ((HI,), {"effort": ir.Effort(word="huge", at="/e")}, "/e"),
    ((HI,), {"effort": ir.Effort(word="huge", at="/e"), "dialect": {"reasoning_style": "budget"}}, "/e"),
]


@pytest.mark.parametrize(("turns", "more", "pointer"), REFUSED)
def test_what_gemini_cannot_say_is_refused_where_it_stands(turns, more, pointer):
    assert refusal(*turns, **more) == pointer


def test_a_trailing_turn_of_the_models_goes_where_it_is_continued():
    assert contents(HI, ir.Turn(MODEL, (ir.Text("a"),)), dialect={"prefill": True})[-1] == {"role": "model", "parts": [{"text": "a"}]}


def test_no_arguments_are_an_empty_object():
    assert model(call(arguments=""))[0]["functionCall"]["args"] == {}


def test_tools_keep_their_schema_to_the_byte():
    schema = b'{"type":"object", "properties":{"title":{"type":"string","format":"uri"}}, "additionalProperties":false, "required":["title"]}'
    said = lowered(HI, tools=(ir.Tool("f", "d", Raw(schema), strict=True, at="/t"), ir.Tool("g")))
    assert (
        bytes(said.members["tools"])
        == b'[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":' + schema + b'},{"name":"g"}]}]'
    )
    assert said.origins["tools"] == "/t"
    assert said.aliases == {}


def test_names_that_gemini_does_not_take_have_reversible_aliases():
    long = "x" * 70
    tools = (ir.Tool("a b"), ir.Tool("a_b"), ir.Tool("1"), ir.Tool(long), ir.Tool(long + "y"), ir.Tool("find", namespace="crm"))
    said = lowered(ir.Turn(MODEL, (call("c", "old name"),)), result("c"), tools=tools, choice=ir.Choice(ir.Pick.REQUIRED, ("a b", "unknown")))
    first, second, third, fourth, fifth, sixth = (
        declared["name"] for declared in json.loads(bytes(said.members["tools"]))[0]["functionDeclarations"]
    )
    old = json.loads(bytes(said.members["contents"]))[1]["parts"][0]["functionResponse"]["name"]
    assert (second, sixth) == ("a_b", "crm__find")
    assert said.aliases == {
        old: Alias("old name"),
        first: Alias("a b"),
        third: Alias("1"),
        fourth: Alias(long),
        fifth: Alias(long + "y"),
        sixth: Alias("find", namespace="crm"),
    }
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}", name) for name in said.aliases)
    assert first.startswith("a_b_")
    assert json.loads(bytes(said.members["toolConfig"]))["functionCallingConfig"]["allowedFunctionNames"] == [first, "unknown"]


def test_custom_tools_are_functions_with_one_text():
    tool = ir.Tool("patch", "d", form=ir.Form.CUSTOM, at="/tools/0")
    patch = call("c", "patch", "*** Begin", form=ir.Form.CUSTOM)
    said = lowered(ir.Turn(MODEL, (patch,)), result("c", form=ir.Form.CUSTOM), tools=(tool,), dialect=BARE)
    declared = json.loads(bytes(said.members["tools"]))[0]["functionDeclarations"][0]
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": False}
    assert declared["parametersJsonSchema"] == schema
    assert json.loads(bytes(said.members["contents"]))[0]["parts"][0]["functionCall"]["args"] == {"input": "*** Begin"}
    assert said.aliases == {"patch": Alias("patch", ir.Form.CUSTOM)}
    assert said.emulated == (Mention("tool:custom", "/tools/0"),)


def test_a_grammar_is_told_and_a_namespace_stands_in_the_name():
    grammar = Raw(b'{"type":"grammar","syntax":"lark","definition":"start: A"}')
    tools = (
        ir.Tool("p", form=ir.Form.CUSTOM, grammar=grammar, namespace="n", at="/tools/0"),
        ir.Tool("q", form=ir.Form.CUSTOM, at="/tools/1"),
    )
    said = lowered(HI, tools=tools, effort=ir.Effort(word="max", at="/e"))
    first, second = json.loads(bytes(said.members["tools"]))[0]["functionDeclarations"]
    assert first["name"] == "n__p"
    assert first["parametersJsonSchema"]["properties"]["input"]["description"] == "Must follow this lark grammar:\nstart: A"
    assert second["parametersJsonSchema"]["properties"]["input"] == {"type": "string"}
    assert [mention.construct for mention in said.emulated] == ["tool:custom", "tool:namespace", "tool:custom", "effort:word"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ir.Choice(ir.Pick.AUTO), {"mode": "AUTO"}),
        (ir.Choice(ir.Pick.NONE), {"mode": "NONE"}),
        (ir.Choice(ir.Pick.REQUIRED), {"mode": "ANY"}),
        (ir.Choice(ir.Pick.REQUIRED, ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ir.Choice(ir.Pick.AUTO, ("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
        (ir.Choice(ir.Pick.AUTO, ()), {"mode": "NONE"}),
    ],
)
def test_choices(choice, expected):
    assert body(HI, tools=(ir.Tool("f"),), choice=choice)["toolConfig"] == {"functionCallingConfig": expected}


def test_one_call_at_a_time_is_met_where_none_can_be_made():
    settings = ir.Settings(parallel=False)
    assert "tools" not in body(HI, settings=settings)
    assert "tools" in body(HI, settings=settings, tools=(ir.Tool("f"),), choice=ir.Choice(ir.Pick.NONE))


EFFORTS = [
    (ir.Effort(word="high"), {}, {"thinkingLevel": "HIGH"}, False),
    (ir.Effort(word="minimal"), {}, {"thinkingLevel": "MINIMAL"}, False),
    (ir.Effort(word="max", summary="detailed"), {}, {"thinkingLevel": "XHIGH", "includeThoughts": True}, True),
    (ir.Effort(word="none"), {}, {"thinkingBudget": 0}, False),
    (ir.Effort(word="none"), {"reasoning_style": "budget"}, {"thinkingBudget": 0}, False),
    (ir.Effort(off=True, summary="omitted"), {}, {"thinkingBudget": 0, "includeThoughts": False}, False),
    (ir.Effort(off=True, word="low"), {}, {"thinkingBudget": 0}, True),
    (ir.Effort(budget=2048, summary="auto"), {}, {"thinkingBudget": 2048, "includeThoughts": True}, False),
    (ir.Effort(budget=2048, word="low"), {}, {"thinkingBudget": 2048}, True),
    (ir.Effort(adaptive=True), {}, {"thinkingBudget": -1}, False),
    (ir.Effort(adaptive=True, word="low"), {}, {"thinkingLevel": "LOW"}, False),
    (ir.Effort(word="medium"), {"reasoning_style": "budget"}, {"thinkingBudget": 8192}, True),
    (ir.Effort(word="xhigh"), {"reasoning_style": "budget"}, {"thinkingBudget": 24576}, True),
    (ir.Effort(word="xhigh"), {"reasoning_style": "budget", "reasoning_budgets": {"xhigh": 5}}, {"thinkingBudget": 5}, True),
]


@pytest.mark.parametrize(("effort", "dialect", "expected", "emulated"), EFFORTS)
def test_efforts(effort, dialect, expected, emulated):
    said = lowered(HI, effort=structs.replace(effort, at="/e"), dialect=dialect)
    assert json.loads(bytes(said.members["generationConfig"])) == {"thinkingConfig": expected}
    assert said.emulated == ((Mention("effort:word", "/e"),) if emulated else ())
    assert expected.get("thinkingLevel", "LOW") in {known.value for known in types.ThinkingLevel}


def test_an_effort_that_says_nothing_is_not_said():
    assert "generationConfig" not in body(HI, effort=ir.Effort())


@pytest.mark.parametrize(("schema", "expected"), [(None, {}), (Raw(b'{"type":"object"}'), {"responseJsonSchema": {"type": "object"}})])
def test_formats(schema, expected):
    said = lowered(HI, format=ir.Format(schema, name="n", strict=True, at="/f"))
    assert json.loads(bytes(said.members["generationConfig"])) == {"responseMimeType": "application/json", **expected}
    assert said.origins["generationConfig"] == "/f"


DEEP = {"type": "object", "properties": {"a": {"anyOf": [{"type": "array", "items": {"enum": ["x"]}, "minItems": 1}, {"$ref": "#/$defs/n"}]}}}
ENFORCED = [
    ({}, True),
    (DEEP | {"$defs": {"n": {"type": "null", "default": None}}, "additionalProperties": False}, True),
    (DEEP | {"$defs": {"n": {"const": 1}}}, False),
    ({"properties": {"const": {"type": "string"}}}, True),
    ({"properties": {"a": {"type": "string", "pattern": "^a"}}}, False),
    ({"prefixItems": [{"multipleOf": 2}]}, False),
    ({"additionalProperties": {"minLength": 1}}, False),
    ({"oneOf": [{"type": "string"}]}, False),
    ({"properties": ["a"]}, False),
]


@pytest.mark.parametrize(("schema", "enforced"), ENFORCED)
def test_what_of_a_schema_gemini_does_not_enforce_is_named(schema, enforced):
    said = lowered(HI, format=ir.Format(Raw(json.dumps(schema).encode()), at="/f"))
    assert said.emulated == (() if enforced else (Mention("format:schema", "/f"),))


def test_a_schema_that_was_to_guide_is_enforced_and_named():
    assert lowered(HI, format=ir.Format(Raw(b"{}"), strict=False, at="/f")).emulated == (Mention("format:strict", "/f"),)


@pytest.mark.parametrize(
    ("order", "named"),
    [(("c1", "c2", "c3"), []), (("c2", "c1", "c3"), ["/c1", "/c2"]), (("c3", "c1", "c2"), ["/c1", "/c2", "/c3"])],
)
def test_results_that_are_said_in_the_order_of_their_calls_are_named(order, named):
    told = [ir.Result(one, (ir.Text(one),), at=f"/{one}") for one in order]
    said = lowered(ir.Turn(MODEL, tuple(map(call, ("c1", "c2", "c3")))), ir.Turn(USER, tuple(told)), dialect=BARE)
    assert [(mention.construct, mention.pointer) for mention in said.emulated] == [("order:result", at) for at in named]


def test_calls_of_tools_that_are_no_longer_offered_are_named():
    gone = call("c1", "old tool", at="/c1"), call("c2", "p", form=ir.Form.CUSTOM, at="/c2"), call("c3", "q", namespace="n", at="/c3")
    said = lowered(ir.Turn(MODEL, gone), result("c1"), tools=(ir.Tool("new"),), dialect=BARE)
    assert said.emulated == (Mention("tool:name", "/c1"), Mention("tool:custom", "/c2"), Mention("tool:namespace", "/c3"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ir.Settings(service_tier="default"), {"serviceTier": "standard"}),
        (ir.Settings(service_tier="auto"), {}),
        (ir.Settings(store=True), {"store": True}),
        (ir.Settings(store=False), {"store": False}),
        (ir.Settings(user="u", metadata=Raw(b'{"a":"b"}'), cache_key="k", verbosity="low", safety_id="s"), {}),
    ],
)
def test_settings_of_the_top_level(settings, expected):
    assert {name: value for name, value in body(HI, settings=settings).items() if name != "contents"} == expected


# -- lift undoes lower, on everything that both say exactly

words = st.text(min_size=1, max_size=8)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,10}", fullmatch=True)
objects = st.dictionaries(words, st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words, max_size=2).map(json.dumps)
raw_objects = objects.map(lambda text: Raw(text.encode()))
own_seals = st.none() | words.map(lambda token: ir.Seal(token, ir.SealKind.THOUGHT, GEMINI))
inline = st.sampled_from(["image/png", "application/pdf", "audio/wav"]).map(lambda media: ir.Inline(media, "AA=="))
linked = st.sampled_from(["image/png", "application/pdf"]).map(lambda media: ir.Link("https://x/y", media))
MAKERS = {"image/png": ir.Image, "application/pdf": ir.Document, "audio/wav": ir.Audio}
media = (inline | linked).map(lambda source: MAKERS[source.media](source))
texts = words.map(ir.Text)
signed_texts = st.tuples(words.map(lambda token: ir.Reasoning("", ir.Seal(token, ir.SealKind.THOUGHT, GEMINI))), texts)
thoughts = st.builds(ir.Reasoning, words, own_seals)


def apart(said):
    """No thought, and no text, directly behind one without a token: those are pieces of one."""
    return not any(_bare(one) and type(one[0]) is type(two[0]) and two[0].text for one, two in itertools.pairwise(said))


def _bare(said):
    return len(said) == 1 and getattr(said[0], "seal", None) is None


@st.composite
def exchanges(draw):
    """A model's turn, and the user's that answers its calls."""
    calls = tuple(ir.Call(f"c{number}", name, draw(objects), seal=draw(own_seals)) for number, name in enumerate(draw(st.lists(names, max_size=2))))
    said = [*draw(st.lists(st.tuples(thoughts) | st.tuples(texts) | signed_texts, min_size=1, max_size=3).filter(apart)), calls]
    pictures = st.lists(st.just(ir.Image(PICTURE)) | st.just(ir.Document(ir.Link("https://x/y", "text/plain"))), max_size=1)
    results = tuple(ir.Result(call.id, (ir.Text(draw(st.text())), *draw(pictures)), failed=draw(st.booleans()), name=call.name) for call in calls)
    return ir.Turn(MODEL, tuple(part for group in said for part in group)), ir.Turn(
        USER, (*results, *draw(st.lists(texts | media, min_size=1, max_size=2)))
    )


numbers = st.none() | st.integers(1, 2**31 - 1).map(lambda number: Raw(str(number).encode()))
fractions = st.none() | st.floats(0.01, 1).map(lambda number: Raw(json.dumps(number).encode()))
settings = st.builds(
    ir.Settings,
    max_tokens=numbers,
    temperature=fractions,
    top_p=fractions,
    top_k=numbers,
    seed=numbers,
    frequency_penalty=fractions,
    presence_penalty=fractions,
    stop=st.none() | st.lists(words, min_size=1, max_size=5).map(tuple),
    n=st.none() | st.just(Raw(b"2")),
    logprobs=st.none() | st.just(True),
    top_logprobs=numbers,
    store=st.none() | st.booleans(),
    service_tier=st.sampled_from([None, "default", "flex", "priority"]),
)
efforts = st.sampled_from(
    [
        None,
        *(ir.Effort(word=word, summary="auto") for word in ("minimal", "low", "medium", "high", "xhigh")),
        ir.Effort(off=True),
        ir.Effort(adaptive=True),
    ]
) | st.integers(1, 9999).map(lambda budget: ir.Effort(budget=budget))
choices = (
    st.none()
    | st.builds(ir.Choice, st.sampled_from(ir.Pick))
    | st.builds(ir.Choice, st.sampled_from(["auto", "required"]).map(ir.Pick), names.map(lambda name: (name,)))
)
leading = st.none() | st.lists(texts, min_size=1, max_size=2).map(lambda said: ir.Turn(SYSTEM, tuple(said)))


@st.composite
def requests(draw):
    pairs = draw(st.lists(exchanges(), max_size=2))
    calls = iter(range(9))
    fresh = [_renumbered(pair, calls) for pair in pairs]
    turns = [draw(leading), ir.Turn(USER, (ir.Text("hi"),)), *(turn for pair in fresh for turn in pair)]
    return ir.Request(
        turns=tuple(turn for turn in turns if turn),
        tools=tuple(ir.Tool(name, draw(st.none() | words), draw(st.none() | raw_objects)) for name in draw(st.lists(names, unique=True, max_size=3))),
        choice=draw(choices),
        settings=draw(settings),
        effort=draw(efforts),
        format=draw(st.none() | st.builds(ir.Format, st.none() | raw_objects)),
        wants_seals=True,
    )


def _renumbered(pair, calls):
    """The pair with call ids that no other has."""
    fresh = {part.id: f"c{next(calls)}" for part in pair[0].parts if isinstance(part, ir.Call)}
    asked = tuple(structs.replace(part, id=fresh[part.id]) if isinstance(part, ir.Call) else part for part in pair[0].parts)
    told = tuple(structs.replace(part, call_id=fresh[part.call_id]) if isinstance(part, ir.Result) else part for part in pair[1].parts)
    return structs.replace(pair[0], parts=asked), structs.replace(pair[1], parts=told)


def placeless(node):
    """The node and all below it without their pointers."""
    if isinstance(node, tuple):
        return tuple(map(placeless, node))
    if not hasattr(node, "__struct_fields__"):
        return node
    inner = {name: placeless(getattr(node, name)) for name in node.__struct_fields__ if name != "at"}
    return structs.replace(node, **inner, **({"at": type(node)().at if isinstance(node, ir.Settings) else ""} if hasattr(node, "at") else {}))


@bounded(max_examples=50)
@given(requests())
def test_lift_undoes_lower(request):
    said = lower(request, target(remote_images=True))
    settings = request.settings
    if settings.top_logprobs is not None and settings.logprobs is None:  # their number asks for them: on its own the API refuses it
        request = structs.replace(request, settings=structs.replace(settings, logprobs=True))
    assert placeless(lift(said.members, False).request) == placeless(request)
