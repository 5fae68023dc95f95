"""Whole Gemini answers: read into no surface's words, and written for a Gemini client; read undoes write."""

import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.gemini.read import read
from asgi_surface.codecs.gemini.stream import STOPS
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.codecs.gemini.write import REASONS, write
from asgi_surface.surfaces import GEMINI, MESSAGES

CONTEXT = Context(
    request=ir.Request(turns=()), aliases={"al_1": Alias("al 1")}, seal_domain="anthropic", upstream=MESSAGES, model="asked", request_id="r", now=1
)


def answer(*parts, **more):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0, **more}]}


def heard(body):
    found = read((body if isinstance(body, str) else json.dumps(body)).encode())
    assert set(found.unread) <= ROWS.keys()
    return found


def seal(token):
    return ir.Seal(token, ir.SealKind.THOUGHT, GEMINI)


PARTS = [
    ({"text": "a"}, (ir.Text("a"),), ()),
    ({"text": "a", "thought": True}, (ir.Reasoning("a"),), ()),
    ({"thought": True, "thoughtSignature": "t"}, (ir.Reasoning("", seal("t")),), ()),
    ({"text": "a", "thought": False, "thoughtSignature": "t"}, (ir.Reasoning("", seal("t")), ir.Text("a")), ()),
    ({"text": "", "thoughtSignature": "t"}, (ir.Reasoning("", seal("t")),), ()),
    ({"text": ""}, (), ()),
    ({"functionCall": {"name": "f", "id": "c1", "args": {"a": 1}}, "thoughtSignature": "t"}, (ir.Call("c1", "f", '{"a": 1}', seal=seal("t")),), ()),
    ({"functionCall": {"name": "f"}, "mediaResolution": {"level": "x"}}, (ir.Call("call_0", "f", "{}", minted=True),), ("answer:mediaResolution",)),
    ({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, (), ("answer:inlineData",)),
    ({"executableCode": {"code": "1"}, "text": None}, (), ("answer:executableCode",)),
    ({"hologram": {}}, (), ("answer:part",)),
]


@pytest.mark.parametrize(("part", "parts", "unread"), PARTS)
def test_parts_are_read(part, parts, unread):
    found = heard(answer(part))
    assert (found.parts, found.unread) == (parts, unread)
    assert found.stop is (ir.Stop.TOOLS if "functionCall" in part else ir.Stop.END)


def test_arguments_keep_their_text_and_calls_without_ids_are_numbered():
    found = heard(
        '{"candidates": [{"content": {"parts": [{"text": "x"}, {"functionCall": {"name": "f", "args": {"b":  1.0, "a": "\\u00e9"}}}, '
        '{"functionCall": {"name": "f", "id": "own"}}, {"functionCall": {"name": "f", "id": ""}}]}, "finishReason": "STOP"}]}'
    )
    assert found.parts[1].arguments == '{"b":  1.0, "a": "\\u00e9"}'
    assert [(call.id, call.minted) for call in found.parts[1:]] == [("call_0", True), ("own", False), ("call_2", True)]


@pytest.mark.parametrize("reason", [reason.value for reason in types.FinishReason if reason.value != "FINISH_REASON_UNSPECIFIED"])
def test_every_reason_of_the_sdk_is_read_as_in_native_mode(reason):
    assert heard(answer(finishReason=reason)).stop is STOPS[reason]


def test_truncation_is_not_relabelled_by_a_call():
    assert heard(answer({"functionCall": {"name": "f"}}, finishReason="MAX_TOKENS")).stop is ir.Stop.LENGTH


def test_an_unknown_reason_is_no_success():
    assert heard(answer(finishReason="BORED")).stop is ir.Stop.OTHER


def test_a_malformed_call_is_an_error():
    assert heard({"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(f(a=1))"}]}).stop is ir.Stop.ERROR


def test_a_blocked_prompt_is_a_refusal_without_words():
    found = heard({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}})
    assert (found.stop, found.parts, found.usage) == (ir.Stop.REFUSAL, (), ir.Usage(input=5))


UNREADABLE = [
    {},
    {"candidates": [], "promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}},
    {"error": {"code": 429, "message": "no"}},
    {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
    answer(finishReason="FINISH_REASON_UNSPECIFIED"),
    answer(finishReason=7),
    answer({"text": 1}),
    answer({"functionCall": {"args": {}}}),
    answer({"functionCall": {"name": "f", "args": "{}"}}),
    [],
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_an_answer_whose_text_calls_or_finish_cannot_be_read_is_none(body):
    with pytest.raises(ValueError, match=r"^(?!.*print)"):
        heard(body)


def test_the_first_candidate_answers():
    body = {"candidates": [{"index": 1, "finishReason": "STOP"}, answer({"text": "a"})["candidates"][0]]}
    found = heard({**body, "responseId": "r1", "modelVersion": "m1", "createTime": "2026-02-15T07:50:37.854117Z"})
    assert (found.parts, found.unread) == ((ir.Text("a"),), ("answer:candidates",))
    assert (found.id, found.model, found.created) == ("r1", "m1", 1771141837)
    assert heard({**body, "createTime": "soon"}).created is None


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 10}, ir.Usage(3, 7, reasoning=5)),
        ({"promptTokenCount": 10, "toolUsePromptTokenCount": 73, "cachedContentTokenCount": 4}, ir.Usage(83, cached=4)),
        ({"trafficType": "ON_DEMAND"}, None),
        (None, None),
    ],
)
def test_usage_is_read(said, usage):
    assert heard({**answer({"text": "a"}), "usageMetadata": said}).usage == usage


WEB = {"groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"maps": {"uri": "u2"}}, {"web": {"title": "no address"}}, {}]}
CITATIONS = [
    (
        {
            "groundingMetadata": {
                **WEB,
                "groundingSupports": [{"segment": {"endIndex": 3, "startIndex": 2, "partIndex": 1}, "groundingChunkIndices": [0, 9, "x"]}],
            }
        },
        (ir.Citation("u1", "t1", 1, 2), ir.Citation("u2")),
        (),
    ),
    (
        {
            "groundingMetadata": {
                "groundingSupports": [{"segment": {"endIndex": 2}, "groundingChunkIndices": [0]}],
                "groundingChunks": WEB["groundingChunks"][:1],
            }
        },
        (ir.Citation("u1", "t1", 0, 1),),
        (),
    ),
    ({"citationMetadata": {"citations": [{"uri": "u3", "startIndex": 2, "endIndex": 4}, {"license": "x"}]}}, (ir.Citation("u3", "", 1, 3),), ()),
    (
        {"groundingMetadata": {"webSearchQueries": ["q"]}, "urlContextMetadata": {"a": 1}, "continuationToken": "t"},
        (),
        ("answer:groundingMetadata", "answer:urlContextMetadata", "answer:continuationToken"),
    ),
    ({"groundingMetadata": {}}, (), ()),
]


@pytest.mark.parametrize(("metadata", "citations", "unread"), CITATIONS)
def test_sources_become_citations_counted_in_characters(metadata, citations, unread):
    found = heard(answer({"text": "T", "thought": True}, {"text": "éab"}, **metadata))
    assert (found.parts[1], found.unread) == (ir.Text("éab", citations=citations), unread)


def test_sources_without_text_are_not_read():
    assert heard(answer(groundingMetadata=WEB)).unread == ("answer:groundingMetadata",)


def test_log_probabilities_are_read():
    chosen = [{"token": "é", "logProbability": -0.10, "tokenId": 1}, {"token": "a", "logProbability": -2}]
    found = heard(answer({"text": "éa"}, logprobsResult={"chosenCandidates": chosen, "topCandidates": [{"candidates": chosen}]}))
    assert json.loads(bytes(found.logprobs)) == [
        {
            "token": "é",
            "logprob": -0.1,
            "bytes": [195, 169],
            "top_logprobs": [{"token": "é", "logprob": -0.1, "bytes": [195, 169]}, {"token": "a", "logprob": -2, "bytes": [97]}],
        },
        {"token": "a", "logprob": -2, "bytes": [97], "top_logprobs": []},
    ]
    assert heard(answer(logprobsResult={"odd": 1})).unread == ("answer:logprobsResult",)


# -- writing


def response(*parts, stop=ir.Stop.END, **more):
    return ir.Response(id=None, model=None, parts=parts, stop=stop, **more)


def written(*parts, **more):
    body = write(response(*parts, **more), CONTEXT)
    types.GenerateContentResponse.model_validate_json(body)
    return json.loads(body)


def test_nothing_is_invented():
    assert written() == {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}], "modelVersion": "asked"}


def test_ids_and_usage_are_the_upstreams():
    usage = ir.Usage(input=10, output=7, cached=4, cache_write=1, reasoning=5)
    body = json.loads(write(structs.replace(response(usage=usage), id="u1", model="up"), CONTEXT))
    assert (body["responseId"], body["modelVersion"]) == ("u1", "up")
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4, "totalTokenCount": 17}
    assert body["usageMetadata"] == counted
    assert written(usage=ir.Usage(output=3))["usageMetadata"] == {"candidatesTokenCount": 3}


def said(*parts, **more):
    candidate = written(*parts, **more)["candidates"][0]
    return candidate["content"].get("parts", []), candidate["finishReason"]


SIGNATURE = ir.Seal("sig", ir.SealKind.SIGNATURE, MESSAGES)
ENVELOPE = seals.wrap(SIGNATURE, "anthropic")
WRITTEN = [
    ((ir.Text("a"),), [{"text": "a"}]),
    ((ir.Reasoning("T", SIGNATURE), ir.Text("a")), [{"text": "T", "thought": True, "thoughtSignature": ENVELOPE}, {"text": "a"}]),
    ((ir.Reasoning("", SIGNATURE), ir.Text("a")), [{"text": "a", "thoughtSignature": ENVELOPE}]),
    (
        (ir.Reasoning("", SIGNATURE), ir.Call("c", "f", '{"a":1.0}')),
        [{"functionCall": {"id": "c", "name": "f", "args": {"a": 1.0}}, "thoughtSignature": ENVELOPE}],
    ),
    ((ir.Reasoning("", SIGNATURE),), [{"text": "", "thought": True, "thoughtSignature": ENVELOPE}]),
    ((ir.Call("call_0", "al_1", "", seal=SIGNATURE, minted=True),), [{"functionCall": {"name": "al 1", "args": {}}, "thoughtSignature": ENVELOPE}]),
    ((ir.Text("a"), ir.Image(ir.Link("https://x"))), [{"text": "a"}]),
]


@pytest.mark.parametrize(("parts", "expected"), WRITTEN)
def test_parts_are_written(parts, expected):
    assert said(*parts)[0] == expected


@pytest.mark.parametrize(("stop", "reason"), REASONS.items())
def test_reasons_are_the_sdks(stop, reason):
    assert said(ir.Text("a"), stop=stop) == ([{"text": "a"}], reason)
    assert reason in {known.value for known in types.FinishReason}


def test_a_refusal_is_words_and_the_reason_stays_the_upstream_s():
    assert said(ir.Refusal("no")) == ([{"text": "no"}], "STOP")
    assert said(ir.Refusal("no"), stop=ir.Stop.FILTER) == ([{"text": "no"}], "SAFETY")
    assert said(ir.Refusal("no"), stop=ir.Stop.LENGTH) == ([{"text": "no"}], "MAX_TOKENS")


@pytest.mark.parametrize("arguments", ['{"a":', "[1]"])
def test_a_call_whose_arguments_are_no_object_is_not_said(arguments):
    call = ir.Call("c", "f", arguments)
    assert said(ir.Text("a"), call, stop=ir.Stop.TOOLS) == ([{"text": "a"}], "MALFORMED_FUNCTION_CALL")
    assert said(call, stop=ir.Stop.LENGTH) == ([], "MAX_TOKENS")


def test_citations_are_written_in_bytes_of_the_part_they_stand_in():
    cited = (ir.Citation("u1", "t1", 1, 2), ir.Citation("u2"), ir.Citation("u1", "t1", 0, 1))
    candidate = written(ir.Reasoning("T", SIGNATURE), ir.Refusal("no"), ir.Text("éa", citations=cited))["candidates"][0]
    assert candidate["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 2, "startIndex": 2, "endIndex": 3, "text": "a"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 2, "startIndex": 0, "endIndex": 2, "text": "é"}, "groundingChunkIndices": [0]},
        ],
    }
    assert "groundingSupports" not in written(ir.Text("a", citations=(ir.Citation("u"),)))["candidates"][0]["groundingMetadata"]


def test_log_probabilities_are_written():
    plain = b'[{"token":"a","logprob":-0.10,"bytes":[97],"top_logprobs":[]}]'
    body = write(response(ir.Text("a"), logprobs=Raw(plain)), CONTEXT)
    assert b'"logprobsResult":{"chosenCandidates":[{"token":"a","logProbability":-0.10}]}' in body


# -- read undoes write, on everything that both say exactly

words = st.text(min_size=1, max_size=8)
tokens = words.map(lambda token: ir.Seal(token, ir.SealKind.SIGNATURE, MESSAGES))
objects = st.dictionaries(words, st.integers() | words, max_size=2).map(json.dumps)


@st.composite
def cited_texts(draw):
    text = draw(words)
    spans = draw(st.lists(st.tuples(words, st.integers(0, len(text)), st.integers(0, len(text))), max_size=2))
    return ir.Text(text, citations=tuple(ir.Citation(url, "", min(start, end), max(start, end)) for url, start, end in spans))


@st.composite
def responses(draw):
    said = draw(
        st.lists(
            st.builds(ir.Reasoning, words, st.none() | tokens).map(lambda part: (part,))
            | cited_texts().map(lambda part: (part,))
            | st.tuples(tokens.map(lambda token: ir.Reasoning("", token)), cited_texts())
            | st.builds(ir.Call, words, words, objects, seal=st.none() | tokens).map(lambda part: (part,)),
            max_size=4,
        )
    )
    parts = tuple(part for group in said for part in group)
    calls = any(isinstance(part, ir.Call) for part in parts)
    entry = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
    return ir.Response(
        id=draw(st.none() | words),
        model=draw(words),
        parts=parts,
        stop=ir.Stop.TOOLS if calls else draw(st.sampled_from([ir.Stop.END, ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER])),
        usage=draw(
            st.none()
            | st.builds(lambda read, said, thought, cached: ir.Usage(read, said + thought, cached, None, thought), *[st.integers(0, 99)] * 4)
        ),
        logprobs=draw(
            st.sampled_from([None, Raw(json.dumps([{**entry, "top_logprobs": [entry]}], ensure_ascii=False, separators=(",", ":")).encode())])
        ),
    )


def enclosed(part):
    """The part as a client sees it: its token in an envelope."""
    token = getattr(part, "seal", None)
    return part if token is None else structs.replace(part, seal=seal(seals.wrap(token, "anthropic")))


@bounded(max_examples=50)
@given(responses())
def test_read_undoes_write(given_response):
    found = read(write(given_response, structs.replace(CONTEXT, aliases={})))
    assert found == structs.replace(given_response, parts=tuple(map(enclosed, given_response.parts)))
