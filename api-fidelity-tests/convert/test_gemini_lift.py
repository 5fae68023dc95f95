"""A Gemini request in no surface's words: each construct, its node and its mention, in both spellings of proto JSON."""

import json
import re

import msgspec
import pytest
from msgspec import Raw

from asgi_surface import ir, seals
from asgi_surface.codecs.gemini.lift import lift
from asgi_surface.codecs.gemini.schemas import openapi
from asgi_surface.codecs.gemini.values import Value
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import parse
from asgi_surface.surfaces import GEMINI, MESSAGES

HI = {"role": "user", "parts": [{"text": "hi"}]}
PLAIN = {"field:contents /contents", "role:user /contents/0/role", "part:text /contents/0/parts/0"}


def lifted(body, stream=False):
    text = body if isinstance(body, str) else json.dumps(body)
    found = lift(parse(text.encode()), stream)
    assert {mention.construct for mention in found.mentions} <= ROWS.keys()
    return found


def mentions(body):
    return {f"{mention.construct} {mention.pointer}" for mention in lifted(body).mentions}


def beside(members):
    """What members beside a plain conversation mention."""
    return mentions({"contents": [HI], **members}) - PLAIN


def generation(config):
    """What a generationConfig mentions, below its own prefixes."""
    found = beside({"generationConfig": config})
    return {
        mention.replace("field:generationConfig.", "").replace("/generationConfig", "")
        for mention in found
        if not mention.startswith("field:generationConfig ")
    }


def parts(*said, role="user"):
    """The parts of one content that follows a call of `f`, and their mentions below it."""
    found = lifted({"contents": [{"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f"}}]}, {"role": role, "parts": list(said)}]})
    below = {
        f"{mention.construct} {mention.pointer[len('/contents/1/parts') :]}"
        for mention in found.mentions
        if mention.pointer.startswith("/contents/1/parts")
    }
    return [part for turn in found.request.turns[1:] for part in turn.parts], below


def refusal(body):
    with pytest.raises(RequestError) as caught:
        lift(parse(json.dumps(body).encode()), False)
    return caught.value.code, caught.value.pointer


TOP = [
    ({"cachedContent": "cachedContents/a"}, {"field:cachedContent /cachedContent"}),
    ({"cached_content": "cachedContents/a"}, {"field:cachedContent /cached_content"}),
    ({"cachedContent": None, "labels": {}, "safetySettings": [], "tools": [], "toolConfig": {}, "generationConfig": {}}, set()),
    ({"labels": {"a": "b"}}, {"field:labels /labels"}),
    ({"continuationToken": "x"}, {"field:continuationToken /continuationToken"}),
    ({"model": "models/m"}, {"field:model /model"}),
    ({"modelArmorConfig": {"a": 1}}, {"field:modelArmorConfig /modelArmorConfig"}),
    ({"generationOutputConfig": {"a": 1}}, {"field:generationOutputConfig /generationOutputConfig"}),
    (
        {"safetySettings": [{"category": "X", "threshold": "BLOCK_NONE"}, {"category": "X", "threshold": "BLOCK_ONLY_HIGH"}, {"category": "X"}]},
        {"field:safetySettings.off /safetySettings/0", "field:safetySettings /safetySettings/1", "field:safetySettings.off /safetySettings/2"},
    ),
    ({"serviceTier": "flex"}, {"field:serviceTier /serviceTier"}),
    ({"serviceTier": "STANDARD"}, {"field:serviceTier.standard /serviceTier"}),
    ({"serviceTier": "unspecified"}, set()),
    ({"store": True}, {"field:store /store"}),
    ({"store": False}, {"field:store.false /store"}),
    (
        {"systemInstruction": {"parts": [{"text": "S", "thought": False}], "role": "user"}},
        {"field:systemInstruction /systemInstruction", "part:text /systemInstruction/parts/0"},
    ),
    (
        {"system_instruction": {"parts": {"inlineData": {"mimeType": "image/png", "data": "AA=="}}}},
        {"field:systemInstruction /system_instruction", "field:systemInstruction.parts /system_instruction/parts"},
    ),
    ({"systemInstruction": {}}, {"field:systemInstruction /systemInstruction"}),
    (
        {"toolConfig": {"retrievalConfig": {"languageCode": "de"}, "includeServerSideToolInvocations": True}},
        {
            "field:toolConfig /toolConfig",
            "field:toolConfig.retrievalConfig /toolConfig/retrievalConfig",
            "field:toolConfig.includeServerSideToolInvocations /toolConfig/includeServerSideToolInvocations",
        },
    ),
    ({"tools": {"googleSearch": {}}}, {"field:tools /tools", "tool:googleSearch /tools/googleSearch"}),
    ({"tools": [{"google_search": {}, "mcpServers": []}]}, {"field:tools /tools", "tool:googleSearch /tools/0/google_search"}),
]


@pytest.mark.parametrize(("members", "expected"), TOP)
def test_what_the_body_says_is_mentioned_where_it_stands(members, expected):
    assert beside(members) == expected


GENERATION = [
    (
        {"temperature": 0, "topP": 0.5, "topK": 40, "maxOutputTokens": 9},
        {f"{name} /{name}" for name in ("temperature", "topP", "topK", "maxOutputTokens")},
    ),
    ({"max_output_tokens": 9}, {"maxOutputTokens /max_output_tokens"}),
    ({"candidateCount": 1, "presencePenalty": 0, "frequencyPenalty": 0.0, "responseLogprobs": False, "stopSequences": []}, set()),
    ({"candidateCount": 2}, {"candidateCount /candidateCount"}),
    ({"responseModalities": ["TEXT", "IMAGE"]}, {"responseModalities /responseModalities/1"}),
    ({"mediaResolution": "MEDIA_RESOLUTION_LOW"}, {"mediaResolution /mediaResolution"}),
    ({"mediaResolution": "MEDIA_RESOLUTION_UNSPECIFIED", "audioTimestamp": False, "responseFormat": []}, set()),
    ({"speechConfig": {"a": 1}, "audioTimestamp": True}, {"speechConfig /speechConfig", "audioTimestamp /audioTimestamp"}),
    ({"thinkingConfig": {}}, set()),
    ({"thinkingConfig": {"includeThoughts": False, "thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}}, {"thinkingConfig /thinkingConfig"}),
    ({"responseMimeType": "text/plain"}, set()),
    ({"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING"}}, {"responseMimeType.enum /responseMimeType"}),
]


@pytest.mark.parametrize(("config", "expected"), GENERATION)
def test_what_a_configuration_says_is_mentioned_where_it_stands(config, expected):
    assert generation(config) == expected


def test_settings_keep_their_text_and_place():
    body = """{"contents": [], "store": true, "serviceTier": "standard", "generationConfig": {"temperature": 0.70, "topP": "0.5", "topK": 40.0,
      "maxOutputTokens": "64", "stopSequences": "x", "candidateCount": 2, "seed": -7, "presencePenalty": 1e-1, "frequencyPenalty": 0.2,
      "responseLogprobs": true, "logprobs": 3}}"""
    settings = lifted(body).request.settings
    assert settings.store is True
    assert settings.service_tier == "default"
    assert (settings.temperature, settings.top_p, settings.top_k) == (Raw(b"0.70"), Raw(b"0.5"), Raw(b"40"))
    assert (settings.max_tokens, settings.stop, settings.n, settings.seed) == (Raw(b"64"), ("x",), Raw(b"2"), Raw(b"-7"))
    assert (settings.presence_penalty, settings.frequency_penalty) == (Raw(b"1e-1"), Raw(b"0.2"))
    assert (settings.logprobs, settings.top_logprobs) == (True, Raw(b"3"))
    assert settings.at["stop"] == "/generationConfig/stopSequences"


THINKING = [
    ({"thinkingBudget": 0}, ir.Effort(off=True), {"thinkingBudget.off"}),
    ({"thinkingBudget": -1, "includeThoughts": True}, ir.Effort(adaptive=True, summary="auto"), {"thinkingBudget.adaptive", "includeThoughts"}),
    ({"thinking_budget": "512"}, ir.Effort(budget=512), {"thinkingBudget"}),
    ({"thinkingLevel": "HIGH"}, ir.Effort(word="high"), {"thinkingLevel"}),
    ({"thinkingLevel": "MINIMAL"}, ir.Effort(word="minimal"), {"thinkingLevel.minimal"}),
]


@pytest.mark.parametrize(("config", "effort", "constructs"), THINKING)
def test_thinking(config, effort, constructs):
    found = lifted({"contents": [HI], "generationConfig": {"thinkingConfig": config}})
    at = "/generationConfig/thinkingConfig"
    assert found.request.effort == ir.Effort(effort.word, effort.budget, effort.adaptive, effort.off, effort.summary, at)
    prefix = "field:generationConfig.thinkingConfig."
    assert {mention.construct.removeprefix(prefix) for mention in found.mentions if mention.construct.startswith(prefix)} == constructs
    assert found.request.wants_seals


@pytest.mark.parametrize(
    ("config", "schema", "at"),
    [
        ({"responseMimeType": "application/json"}, None, "responseMimeType"),
        ({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}, b'{"type": "object"}', "responseJsonSchema"),
        ({"_responseJsonSchema": {"type": "object"}}, b'{"type": "object"}', "_responseJsonSchema"),
        ({"response_schema": {"type": "OBJECT"}}, b'{"type":"object"}', "response_schema"),
    ],
)
def test_structured_output(config, schema, at):
    found = lifted({"contents": [HI], "generationConfig": config}).request.format
    assert found == ir.Format(None if schema is None else Raw(schema), at=f"/generationConfig/{at}")


def test_streams_count_tokens():
    assert (lifted({"contents": [HI]}, stream=True).request.stream, lifted({"contents": [HI]}, stream=True).request.include_usage) == (True, True)
    assert not lifted({"contents": [HI]}).request.include_usage


def test_turns_stand_in_place():
    turns = lifted(
        {
            "systemInstruction": {"parts": [{"text": "S"}]},
            "contents": [{"parts": {"text": "a"}}, {"role": "model", "parts": []}, {"role": "function"}],
        }
    )
    assert turns.request.turns == (
        ir.Turn(ir.Role.SYSTEM, (ir.Text("S", "/systemInstruction/parts/0"),), "/systemInstruction"),
        ir.Turn(ir.Role.USER, (ir.Text("a", "/contents/0/parts"),), "/contents/0"),
        ir.Turn(ir.Role.ASSISTANT, (), "/contents/1"),  # says nothing, which the conversion tells
        ir.Turn(ir.Role.USER, (), "/contents/2"),  # the API takes none without parts, so conversion refuses it
    )
    assert "role:function /contents/2/role" in {f"{mention.construct} {mention.pointer}" for mention in turns.mentions}
    assert lifted({"contents": HI}).request.turns[0].at == "/contents"
    assert lifted({}).request.turns == ()


SEAL = ir.Seal("tok", ir.SealKind.THOUGHT, GEMINI)
FOREIGN = ir.Seal("sig", ir.SealKind.SIGNATURE, MESSAGES, "anthropic")
WRAPPED = seals.wrap(FOREIGN, "anthropic")
AT = "/contents/1/parts/0"
SIGNED = f"{AT}/thoughtSignature"
# What Google documents for calls without a token, as it is written and as the base64 of it, with padding and without.
STAND_INS = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
]
NO_TOKEN = "part:thoughtSignature.none /0/thoughtSignature"

PARTS = [
    ({"text": "a"}, [ir.Text("a", AT)], {"part:text /0"}),
    ({"text": "a", "thought": True}, [ir.Reasoning("a", None, AT)], {"part:thought /0"}),
    ({"text": "a", "thought": True, "thoughtSignature": "tok"}, [ir.Reasoning("a", SEAL, AT)], {"part:thoughtSignature /0/thoughtSignature"}),
    (
        {"text": "a", "thoughtSignature": "tok"},
        [ir.Reasoning("", SEAL, SIGNED), ir.Text("a", AT)],
        {"part:text /0", "part:thoughtSignature /0/thoughtSignature"},
    ),
    ({"text": "a", "thoughtSignature": ""}, [ir.Text("a", AT)], {"part:text /0"}),
    ({"text": "", "thoughtSignature": "tok"}, [ir.Reasoning("", SEAL, SIGNED)], {"part:thoughtSignature /0/thoughtSignature"}),
    (
        {"functionCall": {"id": "x", "name": "g"}, "thoughtSignature": STAND_INS[0]},
        [ir.Call("x", "g", "{}", at=AT)],
        {"part:functionCall /0", NO_TOKEN},
    ),
    ({"text": "a", "thoughtSignature": STAND_INS[1]}, [ir.Text("a", AT)], {"part:text /0", NO_TOKEN}),
    ({"text": "a", "thought": True, "thoughtSignature": STAND_INS[2]}, [ir.Reasoning("a", None, AT)], {"part:thought /0", NO_TOKEN}),
    ({"thoughtSignature": STAND_INS[3]}, [], {NO_TOKEN}),
    ({"text": "", "thought": True}, [], set()),
    ({"thoughtSignature": "tok"}, [ir.Reasoning("", SEAL, SIGNED)], {"part:thoughtSignature /0/thoughtSignature"}),
    (
        {"functionCall": {"id": "x", "name": "g", "args": {"b": 1.0, "a": "é"}}, "thoughtSignature": "tok"},
        [ir.Call("x", "g", '{"b": 1.0, "a": "\\u00e9"}', seal=SEAL, at=AT)],
        {"part:functionCall /0", "part:thoughtSignature /0/thoughtSignature"},
    ),
    (
        {"functionCall": {"id": "x", "name": "g"}, "thoughtSignature": WRAPPED.replace("+", "-").replace("/", "_").rstrip("=")},
        [ir.Reasoning("", FOREIGN, SIGNED), ir.Call("x", "g", "{}", at=AT)],
        {"part:functionCall /0", "part:thoughtSignature /0/thoughtSignature"},
    ),
    (
        {"functionCall": {"id": "x", "name": "g", "partialArgs": [{"a": 1}], "willContinue": True}},
        [ir.Call("x", "g", "{}", at=AT)],
        {
            "part:functionCall /0",
            "part:functionCall.partialArgs /0/functionCall/partialArgs",
            "part:functionCall.willContinue /0/functionCall/willContinue",
        },
    ),
    (
        {"inline_data": {"mime_type": "image/png", "data": "-_A="}, "thoughtSignature": "tok", "mediaResolution": {"level": "x"}},
        [ir.Reasoning("", SEAL, SIGNED), ir.Image(ir.Inline("image/png", "+/A="), at=AT)],
        {"part:inlineData /0", "part:inlineData.image /0", "part:mediaResolution /0/mediaResolution", "part:thoughtSignature /0/thoughtSignature"},
    ),
    (
        {"inlineData": {"mimeType": "application/pdf", "data": "AA==", "displayName": "a.pdf"}},
        [ir.Document(ir.Inline("application/pdf", "AA=="), "a.pdf", AT)],
        {"part:inlineData /0", "part:inlineData.document /0"},
    ),
    (
        {"inlineData": {"mimeType": "audio/wav", "data": "AA==", "displayName": "a"}},
        [ir.Audio(ir.Inline("audio/wav", "AA=="), AT)],
        {"part:inlineData /0", "part:inlineData.audio /0", "part:inlineData.displayName /0/inlineData/displayName"},
    ),
    (
        {"inlineData": {"mimeType": "video/mp4", "data": "AA=="}, "videoMetadata": {"fps": 1}},
        [],
        {"part:inlineData /0", "part:inlineData.video /0", "part:videoMetadata /0/videoMetadata"},
    ),
    ({"inlineData": {"data": "AA=="}}, [], {"part:inlineData /0", "part:inlineData.other /0"}),
    (
        {"fileData": {"fileUri": "https://x/a.png", "mimeType": "image/png"}},
        [ir.Image(ir.Link("https://x/a.png", "image/png"), at=AT)],
        {"part:fileData /0", "part:fileData.image /0"},
    ),
    ({"fileData": {"fileUri": "gs://b/a.png", "mimeType": "image/png"}}, [], {"part:fileData /0", "part:fileData.stored /0"}),
    (
        {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a", "mimeType": "image/png"}},
        [],
        {"part:fileData /0", "part:fileData.stored /0"},
    ),
    ({"executableCode": {"code": "1"}}, [], {"part:executableCode /0"}),
    (
        {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "é"}}},
        [ir.Result("c1", (ir.Text("é"),), name="f", at=AT)],
        {"part:functionResponse /0"},
    ),
    (
        {"functionResponse": {"id": "c1", "name": "f", "response": {"result": [1, 2.0]}}},
        [ir.Result("c1", (ir.Text("[1, 2.0]"),), name="f", at=AT)],
        {"part:functionResponse /0"},
    ),
    (
        {"functionResponse": {"id": "c1", "response": {"error": "no", "output": None}}},
        [ir.Result("c1", (ir.Text("no"),), failed=True, name="f", at=AT)],
        {"part:functionResponse /0", "part:functionResponse.error /0/functionResponse/response"},
    ),
    ({"functionResponse": {"name": "f"}}, [ir.Result("c1", (ir.Text(""),), name="f", at=AT)], {"part:functionResponse /0"}),
    (
        {"functionResponse": {"id": "c1", "response": {"r": 1, "output": 2}, "scheduling": "SILENT"}},
        [ir.Result("c1", (ir.Text('{"r": 1, "output": 2}'),), name="f", at=AT)],
        {"part:functionResponse /0", "part:functionResponse.scheduling /0/functionResponse/scheduling"},
    ),
    (
        {
            "functionResponse": {
                "id": "c1",
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}}],
            }
        },
        [ir.Result("c1", (ir.Text(""), ir.Image(ir.Inline("image/png", "AA=="), at=f"{AT}/functionResponse/parts/0")), name="f", at=AT)],
        {"part:functionResponse /0"}
        | {
            f"{construct} /0/functionResponse/parts/{index}"
            for index, construct in (
                (0, "part:functionResponse.parts"),
                (0, "part:inlineData"),
                (0, "part:inlineData.image"),
                (1, "part:functionResponse.parts"),
                (1, "part:inlineData"),
                (1, "part:inlineData.audio"),
                (1, "part:functionResponse.parts.audio"),
            )
        },
    ),
]


@pytest.mark.parametrize(("part", "expected", "constructs"), PARTS)
def test_parts(part, expected, constructs):
    assert parts(part) == (expected, constructs)


THOUGHT = {"thought": True}
REDACTED = seals.wrap(ir.Seal("red", ir.SealKind.REDACTED, MESSAGES), "anthropic")
PIECES = [
    ([[{"text": "é "}, {"text": "b"}, {"text": "", "thoughtSignature": "tok"}]], [ir.Reasoning("é b", SEAL, "/0/2")], []),
    (
        [[{"text": "a"}, {"text": "\n\nb", "thoughtSignature": "tok"}, {"text": "c"}]],
        [ir.Reasoning("a\n\nb", SEAL, "/0/1"), ir.Reasoning("c", None, "/0/2")],
        ["/0/2"],
    ),
    # google-genai's chats keep each chunk as a content of its own.
    ([[{"text": "a"}], [{"text": "b"}], [{"text": "", "thoughtSignature": "tok"}]], [ir.Reasoning("ab", SEAL, "/2/0")], []),
    ([[{"text": "a"}], [{"text": ""}, {"text": "b"}]], [ir.Reasoning("ab", None, "/0/0")], ["/0/0", "/1/1"]),
    ([[{"text": "a"}], [{"text": "b"}, {"said": "c"}]], [ir.Reasoning("ab", None, "/0/0"), ir.Text("c", "/1/1")], ["/0/0", "/1/0"]),
    (
        [[{"text": "a"}, {"said": "", "thoughtSignature": "tok"}]],
        [ir.Reasoning("a", None, "/0/0"), ir.Reasoning("", SEAL, "/0/1/thoughtSignature")],
        ["/0/0"],
    ),
    ([[{"text": "a"}, {"said": ""}, {"text": "b", "thoughtSignature": "tok"}]], [ir.Reasoning("ab", SEAL, "/0/2")], []),
    # Messages' redacted thinking proves nothing that was said before it.
    (
        [[{"text": "a"}, {"text": "", "thoughtSignature": REDACTED}]],
        [ir.Reasoning("a", None, "/0/0"), ir.Reasoning("", seals.unwrap(REDACTED), "/0/1")],
        ["/0/0"],
    ),
]


@pytest.mark.parametrize("after", [[], [HI]])
@pytest.mark.parametrize(("contents", "expected", "unproved"), PIECES)
def test_the_pieces_of_a_thought_are_one_with_the_token_at_its_end(contents, expected, unproved, after):
    def part(said):
        return {"text": said["said"]} | {name: said[name] for name in said if name != "said"} if "said" in said else said | THOUGHT

    models = [{"role": "model", "parts": [*map(part, said)]} for said in contents]
    found = lifted({"contents": [*models, *after]})
    turns = [turn for turn in found.request.turns if turn.role is ir.Role.ASSISTANT]
    place = re.compile(r"/contents/(\d+)/parts")
    told = [msgspec.structs.replace(part, at=place.sub(r"/\1", part.at)) for turn in turns for part in turn.parts]
    assert told == expected
    assert [place.sub(r"/\1", mention.pointer) for mention in found.mentions if mention.construct == "part:thought"] == unproved
    assert found.request.turns[len(turns) :] == tuple(
        ir.Turn(ir.Role.USER, (ir.Text("hi", f"/contents/{len(models)}/parts/0"),), f"/contents/{len(models)}") for _ in after
    )


SIGNED = {"text": "c", "thoughtSignature": "c2ln"}
TEXTS = {
    "parts": ([[{"text": "a"}, {"text": "b"}, {"text": ""}]], [["ab"]]),
    "contents": ([[{"text": "a"}], [{"text": "b"}], [{"text": ""}]], [["ab"]]),
    "a thought between": ([[{"text": "a"}, {"text": "t", "thought": True}, {"text": "b"}]], [["a", "t", "b"]]),
    "a thought before": ([[{"text": "t", "thought": True}, {"text": "a"}], [{"text": "b"}]], [["t", "ab"]]),
    "a call between": ([[{"text": "a"}, {"functionCall": {"name": "f"}}], [{"text": "b"}]], [["a", "{}"], ["b"]]),
    "a token on the second": ([[{"text": "a"}], [SIGNED]], [["a"], ["", "c"]]),
    "a token on the first": ([[SIGNED], [{"text": "a"}], [{"text": "b"}]], [["", "c"], ["ab"]]),
    "a token at the end": ([[{"text": "a"}], [{"text": "b"}], [{"text": "", "thoughtSignature": "c2ln"}]], [["ab"], [""]]),
}


@pytest.mark.parametrize(("contents", "expected"), TEXTS.values(), ids=TEXTS)
def test_the_pieces_of_a_models_text_are_one(contents, expected):
    """google-genai's chats send back each chunk of a stream as a content of its own."""
    found = lifted({"contents": [HI, *({"role": "model", "parts": said} for said in contents), HI, HI]})
    first, *models, _, last = found.request.turns
    assert [[getattr(part, "arguments" if isinstance(part, ir.Call) else "text") for part in turn.parts] for turn in models] == expected
    assert models[0].parts[0].at.startswith("/contents/1")
    assert (first.parts[0].text, last.parts[0].text) == ("hi", "hi")


def test_a_models_empty_text_says_nothing_and_a_users_does():
    found = lifted({"contents": [{"role": "model", "parts": [{"text": ""}]}, {"role": "user", "parts": [{"text": ""}]}]})
    assert found.request.turns == (ir.Turn(ir.Role.USER, (ir.Text("", "/contents/1/parts/0"),), "/contents/1"),)


def test_calls_without_ids_are_numbered_and_results_find_them_by_name_and_order():
    def call(name, **more):
        return {"functionCall": {"name": name, **more}}

    def result(name, **more):
        return {"functionResponse": {"name": name, **more}}

    found = lifted(
        {
            "contents": [
                {"role": "model", "parts": [call("f"), call("f"), call("g", id="call_3"), call("h")]},
                {"role": "user", "parts": [result("g"), result("f"), result("h", id="unknown"), result("f")]},
            ]
        }
    ).request
    assert [(part.id, part.minted) for part in found.turns[0].parts] == [("call_0", True), ("call_1", True), ("call_3", False), ("call_4", True)]
    assert [part.call_id for part in found.turns[1].parts] == ["call_3", "call_0", "call_4", "call_1"]


def test_declarations():
    exact = '{"type":  "object", "properties":{"n":{"type":"integer","maximum":1.0}}}'
    body = f"""{{"contents": [], "tools": [{{"functionDeclarations": [
        {{"name": "a", "description": "d", "parametersJsonSchema": {exact}, "responseJsonSchema": {{"type": "string"}}}},
        {{"name": "b", "parameters": {{"type": "OBJECT"}}, "behavior": "NON_BLOCKING"}}, {{"name": "c", "behavior": "BLOCKING"}}]}},
        {{"function_declarations": {{"name": "d", "parameters_json_schema": {{}}}}}}]}}"""
    found = lifted(body)
    at = "/tools/0/functionDeclarations"
    assert found.request.tools == (
        ir.Tool("a", "d", Raw(exact.encode()), at=f"{at}/0"),
        ir.Tool("b", None, Raw(b'{"type":"object"}'), at=f"{at}/1"),
        ir.Tool("c", at=f"{at}/2"),
        ir.Tool("d", None, Raw(b"{}"), at="/tools/1/function_declarations"),
    )
    said = {f"{mention.construct.removeprefix('tool:functionDeclarations')} {mention.pointer}" for mention in found.mentions}
    assert {f".responseJsonSchema {at}/0/responseJsonSchema", f".behavior {at}/1/behavior", f".parameters {at}/1/parameters"} <= said
    assert f".behavior {at}/2/behavior" not in said


CHOICES = [
    ({"mode": "AUTO"}, ir.Pick.AUTO, None, {"choice:AUTO /mode"}),
    ({"mode": "MODE_UNSPECIFIED"}, ir.Pick.AUTO, None, {"choice:AUTO /mode"}),
    ({"mode": "NONE", "allowedFunctionNames": []}, ir.Pick.NONE, None, {"choice:NONE /mode"}),
    ({"mode": "ANY"}, ir.Pick.REQUIRED, None, {"choice:ANY /mode"}),
    ({"mode": "VALIDATED"}, ir.Pick.AUTO, None, {"choice:VALIDATED /mode"}),
    (
        {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
        ir.Pick.AUTO,
        ("f",),
        {"choice:allowedFunctionNames /allowedFunctionNames", "choice:VALIDATED /mode"},
    ),
    (
        {"mode": "ANY", "allowed_function_names": ["f"]},
        ir.Pick.REQUIRED,
        ("f",),
        {"choice:ANY /mode", "choice:allowedFunctionNames.one /allowed_function_names"},
    ),
    (
        {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
        ir.Pick.REQUIRED,
        ("f", "g"),
        {"choice:ANY /mode", "choice:allowedFunctionNames /allowedFunctionNames"},
    ),
    (
        {"streamFunctionCallArguments": True},
        ir.Pick.AUTO,
        None,
        {"choice:AUTO ", "field:toolConfig.functionCallingConfig.streamFunctionCallArguments /streamFunctionCallArguments"},
    ),
]


@pytest.mark.parametrize(("config", "pick", "names", "constructs"), CHOICES)
def test_choices(config, pick, names, constructs):
    found = lifted({"contents": [HI], "toolConfig": {"functionCallingConfig": config}})
    at = "/toolConfig/functionCallingConfig"
    assert found.request.choice == ir.Choice(pick, names, at)
    below = {f"{mention.construct} {mention.pointer.removeprefix(at)}" for mention in found.mentions if mention.pointer.startswith(at)}
    assert below == constructs | {"field:toolConfig.functionCallingConfig "}


@pytest.mark.parametrize(
    ("own", "exact"),
    [
        ('{"type": "object"}', '{"type": "object"}'),
        ('{"type": ["string", "null"], "properties": {"a": {"type": "x"}}}', '{"type": ["string", "null"], "properties": {"a": {"type": "x"}}}'),
        ('{"type": "ARRAY", "items": {"type": "STRING", "maxLength": "5"}}', '{"type":"array","items":{"type":"string","maxLength":5}}'),
        ('{"properties": {"type": {"type": "STRING", "title":  "x"}}}', '{"properties":{"type":{"type":"string","title":"x"}}}'),
        ('{"any_of": [{"type": "NULL"}], "property_ordering": ["a"]}', '{"anyOf":[{"type":"null"}],"propertyOrdering":["a"]}'),
        ('{"anyOf": [{"type": "x"}], "min_items": 3}', '{"anyOf":[{"type": "x"}],"minItems":3}'),
        ('{"type": "STRING", "nullable": true}', '{"type":["string","null"]}'),
        ('{"nullable": true, "enum": ["A"]}', '{"nullable": true, "enum": ["A"]}'),
        ('{"ref": "#", "defs": {"a": {"type": "BOOLEAN"}}}', '{"$ref":"#","$defs":{"a":{"type":"boolean"}}}'),
        ('{"additionalProperties": false, "type": "OBJECT"}', '{"additionalProperties":false,"type":"object"}'),
    ],
)
def test_gemini_schemas_become_json_schemas(own, exact):
    found = openapi(Value(Raw(own.encode()), ""))
    assert json.loads(bytes(found)) == json.loads(exact)
    assert (bytes(found) == own.encode()) == (own == exact)


ANSWERED = [{"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f", "parts": [{"text": "lost"}]}}]

BAD = [
    ({"contents": [{"parts": ANSWERED}]}, Code.UNREPRESENTABLE, "/contents/0/parts/1/functionResponse/parts/0/text"),
    ({"contents": [HI], "nope": 1}, Code.UNREPRESENTABLE, "/nope"),
    ({"contents": [{"role": "system", "parts": []}]}, Code.UNREPRESENTABLE, "/contents/0/role"),
    ({"contents": [{"parts": [{"text": "a", "cacheControl": {}}]}]}, Code.UNREPRESENTABLE, "/contents/0/parts/0/cacheControl"),
    ({"contents": [{"parts": [{"functionResponse": {"name": "f"}}]}]}, Code.UNREPRESENTABLE, "/contents/0/parts/0"),
    ({"contents": [HI], "generationConfig": {"topK": 1, "top_k": 2}}, Code.MALFORMED_BODY, "/generationConfig/top_k"),
    ({"contents": [HI], "generationConfig": {"topK": 1.5}}, Code.MALFORMED_BODY, "/generationConfig/topK"),
    ({"contents": [HI], "generationConfig": {"temperature": "NaN"}}, Code.MALFORMED_BODY, "/generationConfig/temperature"),
    ({"contents": [HI], "generationConfig": {"temperature": [1]}}, Code.MALFORMED_BODY, "/generationConfig/temperature"),
    ({"contents": [HI], "generationConfig": {"responseMimeType": "text/csv"}}, Code.MALFORMED_BODY, "/generationConfig/responseMimeType"),
    ({"contents": [HI], "systemInstruction": "S"}, Code.MALFORMED_BODY, "/systemInstruction"),
    ({"contents": [{"parts": [{}]}]}, Code.MALFORMED_BODY, "/contents/0/parts/0"),
    ({"contents": [{"parts": [{"text": "a", "functionCall": {"name": "f"}}]}]}, Code.MALFORMED_BODY, "/contents/0/parts/0"),
    ({"contents": [{"parts": [{"functionCall": {}}]}]}, Code.MALFORMED_BODY, "/contents/0/parts/0/functionCall"),
    ({"contents": [{"parts": [{"functionCall": {"name": "f", "args": "{}"}}]}]}, Code.MALFORMED_BODY, "/contents/0/parts/0/functionCall/args"),
    ({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}]}, Code.MALFORMED_BODY, "/contents/0/parts/0/inlineData"),
    ({"contents": [HI], "tools": [{"functionDeclarations": [{}]}]}, Code.MALFORMED_BODY, "/tools/0/functionDeclarations/0"),
    (
        {"contents": [HI], "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"items": {"properties": []}}}]}]},
        Code.MALFORMED_BODY,
        "/tools/0/functionDeclarations/0/parameters",
    ),
    ({"contents": [HI], "toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, Code.MALFORMED_BODY, "/toolConfig/functionCallingConfig"),
]


@pytest.mark.parametrize(("body", "code", "pointer"), BAD)
def test_what_nothing_knows_is_refused_at_its_place(body, code, pointer):
    assert refusal(body) == (code, pointer)
