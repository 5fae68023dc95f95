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
from asgi_surface.codecs.gemini.write import REASONS, unsaid, write
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
    ({"functionCall": {"name": "f"}, "text": ""}, (ir.Call("call_0", "f", "{}", minted=True),), ()),
    ({"functionCall": {"name": "f"}, "text": "a"}, (ir.Call("call_0", "f", "{}", minted=True),), ("answer:part",)),
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


def test_who_answers_and_when_is_read():
    body = {**answer({"text": "a"}), "responseId": "r1", "modelVersion": "m1", "createTime": "2026-02-15T07:50:37.854117Z"}
    found = heard(body)
    assert (found.id, found.model, found.created) == ("r1", "m1", 1771141837)
    assert heard({**body, "createTime": "soon"}).created is None


def several(*candidates):
    return {"candidates": [{**answer(*parts)["candidates"][0], **more} for parts, more in candidates]}


def test_every_candidate_is_an_answer():
    logged = {"chosenCandidates": [{"token": "b", "logProbability": -1}]}
    found = heard(
        several(
            ([{"text": "b"}, {"functionCall": {"name": "f"}}, {"hologram": 1}], {"index": 1, "logprobsResult": logged}),
            ([{"text": "a"}, {"hologram": 1}], {"groundingMetadata": {"groundingChunks": [{"web": {"uri": "u"}}]}}),
            ([], {"index": 2, "finishReason": "MAX_TOKENS"}),
        )
    )
    assert (found.parts, found.stop, found.logprobs) == ((ir.Text("a", citations=(ir.Citation("u"),)),), ir.Stop.END, None)
    second, third = found.more
    assert (second.parts, second.stop) == ((ir.Text("b"), ir.Call("call_0", "f", "{}", minted=True)), ir.Stop.TOOLS)
    assert b'"token":"b"' in bytes(second.logprobs)
    assert third == ir.Alternative(stop=ir.Stop.LENGTH)
    assert found.unread == ("answer:part",)


def test_one_unfinished_candidate_is_no_answer():
    with pytest.raises(ValueError, match="not finished"):
        heard(several(([{"text": "a"}], {}), ([{"text": "b"}], {"index": 1, "finishReason": None})))


LOST = [
    ({}, {"finishMessage": "m"}, ["answer:finishMessage"]),
    ({}, {"tokenCount": 3, "avgLogprobs": -0.1}, ["answer:tokenCount", "answer:avgLogprobs"]),
    ({}, {"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}]}, ["answer:safetyRatings"]),
    ({}, {"finishMessage": "", "tokenCount": 0, "avgLogprobs": None, "safetyRatings": [], "urlContextMetadata": {}}, []),
    ({"modelStatus": {"modelStage": "LEGACY"}}, {}, ["answer:modelStatus"]),
    ({"promptFeedback": {"safetyRatings": [{"blocked": False}]}}, {}, ["answer:promptFeedback.safetyRatings"]),
    ({"promptFeedback": {}, "modelStatus": None, "usageMetadata": {"trafficType": "TRAFFIC_TYPE_UNSPECIFIED"}}, {}, []),
]


@pytest.mark.parametrize(("top", "more", "unread"), LOST)
def test_what_an_answer_says_beyond_is_named(top, more, unread):
    assert list(heard({**answer({"text": "a"}, **more), **top}).unread) == unread


def test_what_is_said_of_a_blocked_prompt_is_named():
    feedback = {"blockReason": "MODEL_ARMOR", "blockReasonMessage": "m", "safetyRatings": [{"blocked": True}]}
    assert heard({"promptFeedback": feedback}).unread == ("answer:promptFeedback.blockReasonMessage", "answer:promptFeedback.safetyRatings")


@pytest.mark.parametrize(
    ("said", "tier", "unread"),
    [
        *[("standard", "default", ()), ("FLEX", "flex", ()), ("priority", "priority", ()), ("unspecified", None, ()), (None, None, ())],
        *[("", None, ()), (7, None, ()), ("warp", None, ("usage:serviceTier.other",))],
    ],
)
def test_the_tier_stands_beside_what_was_used(said, tier, unread):
    answer = heard({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"serviceTier": said}})
    assert (answer.service_tier, answer.usage, answer.unread) == (tier, None, unread)


def by_modality(**counts):
    return [{"modality": modality, "tokenCount": count} for modality, count in counts.items()]


@pytest.mark.parametrize(
    ("said", "usage", "unread"),
    [
        ({"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 10}, ir.Usage(3, 7, reasoning=5), ()),
        ({"promptTokenCount": 10, "toolUsePromptTokenCount": 73, "cachedContentTokenCount": 4}, ir.Usage(83, cached=4), ()),
        ({"trafficType": "ON_DEMAND"}, None, ("usage:trafficType",)),
        (None, None, ()),
        ({"promptTokensDetails": by_modality(AUDIO=5), "candidatesTokensDetails": by_modality(AUDIO=7)}, ir.Usage(audio_input=5, audio_output=7), ()),
        ({"promptTokensDetails": [{"modality": "audio"}, {"modality": "TEXT"}, {"modality": "TEXT", "tokenCount": 0}]}, ir.Usage(audio_input=0), ()),
        (
            {"promptTokensDetails": by_modality(TEXT=2, AUDIO=5), "candidatesTokensDetails": by_modality(IMAGE=1)},
            ir.Usage(audio_input=5),
            ("usage:promptTokensDetails", "usage:candidatesTokensDetails"),
        ),
        (
            {"promptTokenCount": 1, "cacheTokensDetails": by_modality(AUDIO=1), "toolUsePromptTokensDetails": by_modality(TEXT=1)},
            ir.Usage(1),
            ("usage:cacheTokensDetails", "usage:toolUsePromptTokensDetails"),
        ),
        ({"promptTokenCount": 1, "promptTokensDetails": 7, "candidatesTokensDetails": [7, {"modality": 7}]}, ir.Usage(1), ()),
    ],
)
def test_usage_is_read(said, usage, unread):
    found = heard({**answer({"text": "a"}), "usageMetadata": said})
    assert (found.usage, found.unread) == (usage, unread)


WEB = {"groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"maps": {"uri": "u2"}}, {"web": {"title": "no address"}}, {}]}
CHUNKS = "answer:groundingMetadata.groundingChunks"
RECITED = "answer:citationMetadata.citations"
CITATIONS = [
    (
        {
            "groundingMetadata": {
                **WEB,
                "groundingSupports": [{"segment": {"endIndex": 3, "startIndex": 2, "partIndex": 1}, "groundingChunkIndices": [0, 9, "x"]}],
            }
        },
        (ir.Citation("u1", "t1", 1, 2), ir.Citation("u2")),
        (CHUNKS,),
    ),
    (
        {
            "groundingMetadata": {
                "groundingSupports": [{"segment": {"endIndex": 2}, "groundingChunkIndices": [0]}, {"groundingChunkIndices": 0}],
                "groundingChunks": WEB["groundingChunks"][:1],
            }
        },
        (ir.Citation("u1", "t1", 0, 1),),
        (),
    ),
    (
        {"citationMetadata": {"citations": [{"uri": "u3", "startIndex": 2, "endIndex": 4, "license": ""}]}},
        (ir.Citation("u3", "", 1, 3),),
        (),
    ),
    ({"citationMetadata": {"citations": [{"uri": "u3", "license": "x"}]}}, (ir.Citation("u3"),), (RECITED,)),
    ({"citationMetadata": {"citations": [{"title": "no address"}]}}, (), (RECITED,)),
    (
        {
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "u1", "domain": "d"}}],
                "groundingSupports": [{"confidenceScores": [0.5]}],
                "webSearchQueries": ["q"],
                "searchEntryPoint": {"renderedContent": "h"},
                "retrievalMetadata": {},
            }
        },
        (ir.Citation("u1"),),
        (
            "answer:groundingMetadata.webSearchQueries",
            "answer:groundingMetadata.searchEntryPoint",
            CHUNKS,
            "answer:groundingMetadata.groundingSupports",
        ),
    ),
    (
        {"groundingMetadata": {"webSearchQueries": ["q"]}, "urlContextMetadata": {"a": 1}, "continuationToken": "t"},
        (),
        ("answer:groundingMetadata.webSearchQueries", "answer:urlContextMetadata", "answer:continuationToken"),
    ),
    ({"groundingMetadata": {}, "citationMetadata": {"citations": None}}, (), ()),
]


@pytest.mark.parametrize(("metadata", "citations", "unread"), CITATIONS)
def test_sources_become_citations_counted_in_characters(metadata, citations, unread):
    found = heard(answer({"text": "T", "thought": True}, {"text": "éab"}, **metadata))
    assert (found.parts[1], found.unread) == (ir.Text("éab", citations=citations), unread)


def test_every_member_of_the_sdks_grounding_is_a_source_or_named():
    for field in types.GroundingMetadata.model_fields.values():
        said = [{"web": {"uri": "u", "domain": "d"}}] if field.alias == "groundingChunks" else [{"confidenceScores": [1]}]
        assert heard(answer({"text": "a"}, groundingMetadata={field.alias: said})).unread == (f"answer:groundingMetadata.{field.alias}",)


def test_sources_without_text_are_not_read():
    assert heard(answer(groundingMetadata=WEB)).unread == (CHUNKS,)
    assert heard(answer(citationMetadata={"citations": [{"uri": "u"}]})).unread == (RECITED,)


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
    assert found.unread == ("answer:logprobsResult.tokenId",)
    summed = heard(answer(logprobsResult={"chosenCandidates": chosen[1:], "logProbabilitySum": -2.0}))
    assert summed.unread == ("answer:logprobsResult.logProbabilitySum",)


@pytest.mark.parametrize(("said", "unread"), [({}, ()), (None, ()), ({"chosenCandidates": [{}]}, ("answer:logprobsResult.other",))])
def test_log_probabilities_of_nothing_are_none(said, unread):
    found = heard(answer({"text": "a"}, logprobsResult=said))
    assert (found.logprobs, found.unread) == (None, unread)


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


def test_tokens_of_sound_are_the_only_modality_that_is_known():
    assert written(usage=ir.Usage(audio_input=5, audio_output=7))["usageMetadata"] == {
        "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 5}],
        "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 7}],
    }


def test_every_answer_is_a_candidate():
    logged = Raw(b'[{"token":"b","logprob":-1,"bytes":[98],"top_logprobs":[]}]')
    more = (
        ir.Alternative(parts=(ir.Text("b", citations=(ir.Citation("u", "", 0, 1),)),), stop=ir.Stop.LENGTH, logprobs=logged),
        ir.Alternative(parts=(ir.Call("c", "f", "{}"),), stop=ir.Stop.TOOLS),
    )
    first, second, third = written(ir.Text("a"), more=more)["candidates"]
    assert first == {"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}
    assert (second["index"], second["finishReason"], second["content"]["parts"]) == (1, "MAX_TOKENS", [{"text": "b"}])
    assert (second["groundingMetadata"]["groundingChunks"], len(second["logprobsResult"]["chosenCandidates"])) == ([{"web": {"uri": "u"}}], 1)
    assert (third["index"], third["finishReason"], list(third)) == (2, "STOP", ["content", "finishReason", "index"])


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
    ((ir.Call("c", "p", "*** Begin", ir.Form.CUSTOM),), [{"functionCall": {"id": "c", "name": "p", "args": {"input": "*** Begin"}}}]),
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


HALF = ir.Call("c", "f", '{"a":')
BARE = ir.Call("c", "f", "")
CUT = {
    "half a call": ((ir.Text("a"), HALF), ["text"], True),
    "no object": ((ir.Call("c", "f", "[1]"),), [], True),
    "a call that had only begun": ((ir.Text("a"), BARE, ir.Search("s", "q")), ["text"], True),
    "a call without arguments before another part": ((BARE, ir.Text("a")), ["functionCall", "text"], False),
    "whole calls": ((ir.Call("c", "f", "{}"),), ["functionCall"], False),
    "nothing": ((), [], False),
}


@pytest.mark.parametrize(("parts", "kinds", "lost"), CUT.values(), ids=CUT)
@pytest.mark.parametrize("stop", [ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER])
def test_half_a_call_of_an_answer_that_was_cut_is_left_out_and_counted(parts, kinds, lost, stop):
    told, reason = said(*parts, stop=stop)
    assert ([next(iter(part)) for part in told], reason) == (kinds, REASONS[stop])
    assert unsaid(response(*parts, stop=stop), CONTEXT) == ({"answer:half_call"} if lost else set())
    further = ir.Alternative(parts=parts, stop=stop)
    assert unsaid(response(more=(further,)), CONTEXT) == ({"answer:half_call"} if lost else set())


def test_a_call_without_arguments_of_an_answer_that_was_not_cut_is_whole():
    assert said(BARE, stop=ir.Stop.TOOLS) == ([{"functionCall": {"id": "c", "name": "f", "args": {}}}], "STOP")
    assert unsaid(response(BARE, stop=ir.Stop.TOOLS), CONTEXT) == set()


LOGGED = Raw(b'[{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[]}]')
UNSAID = [
    (response(stop_sequence="x"), {"answer:stop_sequence"}),
    (response(service_tier="flex"), {"answer:service_tier"}),
    (response(usage=ir.Usage(cache_write=1)), {"usage:cache_write"}),
    (response(usage=ir.Usage(audio_input=1, cache_write=0)), set()),
    (response(ir.Text("a", citations=(ir.Citation("u"),)), ir.Reasoning("T", SIGNATURE), logprobs=LOGGED), set()),
    (response(more=(ir.Alternative(),)), set()),
    (response(ir.Text("a"), logprobs=Raw(b'[{"odd": 1}]')), {"answer:logprobs"}),
]


@pytest.mark.parametrize(("given_response", "names"), UNSAID)
def test_what_has_no_place_is_counted(given_response, names):
    assert unsaid(given_response, CONTEXT) == names


def test_citations_are_written_in_bytes_of_the_part_they_stand_in():
    cited = (ir.Citation("u1", "t1", 1, 2), ir.Citation("u2"), ir.Citation("u1", "t1", 0, 1))
    candidate = written(ir.Reasoning("T", SIGNATURE), ir.Refusal("no"), ir.Text("éa", citations=cited))["candidates"][0]
    assert candidate["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 2, "startIndex": 2, "endIndex": 3, "text": "a"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 2, "startIndex": 0, "endIndex": 3, "text": "éa"}, "groundingChunkIndices": [1]},
            {"segment": {"partIndex": 2, "startIndex": 0, "endIndex": 2, "text": "é"}, "groundingChunkIndices": [0]},
        ],
    }
    assert "groundingSupports" not in written(ir.Text("", citations=(ir.Citation("u"),)))["candidates"][0]["groundingMetadata"]


def test_searches_are_written_with_what_they_found():
    searches = (
        ir.Search("s1", "q1", (ir.Citation("u1", "t1"), ir.Citation("u2"))),
        ir.Search("s2", "q2", (ir.Citation("u3"),), failed=True),
        ir.Search("s3", "q3", (ir.Citation("u2"),)),
    )
    text = ir.Text("ab", citations=(ir.Citation("u2", "", 0, 1), ir.Citation("u4", "", 1, 2)))
    candidate = written(ir.Reasoning("", SIGNATURE), *searches[:2], text, searches[2])["candidates"][0]
    assert candidate["content"]["parts"] == [{"text": "ab", "thoughtSignature": ENVELOPE}]
    assert candidate["groundingMetadata"] == {
        "webSearchQueries": ["q1", "q2", "q3"],
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}, {"web": {"uri": "u4"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 0, "startIndex": 0, "endIndex": 1, "text": "a"}, "groundingChunkIndices": [1]},
            {"segment": {"partIndex": 0, "startIndex": 1, "endIndex": 2, "text": "b"}, "groundingChunkIndices": [2]},
        ],
    }
    assert written(searches[1])["candidates"][0]["groundingMetadata"] == {"webSearchQueries": ["q2"]}


def test_log_probabilities_are_written():
    plain = b'[{"token":"a","logprob":-0.10,"bytes":[97],"top_logprobs":[]}]'
    body = write(response(ir.Text("a"), logprobs=Raw(plain)), CONTEXT)
    assert b'"logprobsResult":{"chosenCandidates":[{"token":"a","logProbability":-0.10}]}' in body


# -- read undoes write, on everything that both say exactly

words = st.text(min_size=1, max_size=8)
tokens = words.map(lambda token: ir.Seal(token, ir.SealKind.SIGNATURE, MESSAGES))
objects = st.dictionaries(words, st.integers() | words, max_size=2).map(json.dumps)


LOGGED_TOP = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
LOGPROBS = Raw(json.dumps([{**LOGGED_TOP, "top_logprobs": [LOGGED_TOP]}], ensure_ascii=False, separators=(",", ":")).encode())
COUNTED = st.builds(
    lambda read, said, thought, cached, heard, spoken: ir.Usage(read, said + thought, cached, None, thought, heard, spoken),
    *[st.integers(0, 99)] * 4,
    *[st.none() | st.integers(0, 99)] * 2,
)


@st.composite
def cited_texts(draw):
    text = draw(words)
    spans = draw(st.lists(st.none() | st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=2))
    return ir.Text(text, citations=tuple(ir.Citation(draw(words), "", *([] if span is None else sorted(span))) for span in spans))


@st.composite
def alternatives(draw):
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
    stop = ir.Stop.TOOLS if calls else draw(st.sampled_from([ir.Stop.END, ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER]))
    return ir.Alternative(parts=parts, stop=stop, logprobs=draw(st.sampled_from([None, LOGPROBS])))


@st.composite
def responses(draw):
    first, *more = draw(st.lists(alternatives(), min_size=1, max_size=3))
    return ir.Response(
        id=draw(st.none() | words),
        model=draw(words),
        parts=first.parts,
        stop=first.stop,
        logprobs=first.logprobs,
        usage=draw(st.none() | COUNTED),
        more=tuple(more),
    )


def enclosed(part):
    """The part as a client sees it: its token in an envelope, and its sources with the place that they have in Gemini: at least all of the text."""
    if isinstance(part, ir.Text):
        spans = [citation if citation.start is not None else structs.replace(citation, start=0, end=len(part.text)) for citation in part.citations]
        return structs.replace(part, citations=tuple(spans))
    return part if part.seal is None else structs.replace(part, seal=seal(seals.wrap(part.seal, "anthropic")))


@bounded(max_examples=50)
@given(responses())
def test_read_undoes_write(given_response):
    found = read(write(given_response, structs.replace(CONTEXT, aliases={})))
    more = tuple(structs.replace(one, parts=tuple(map(enclosed, one.parts))) for one in given_response.more)
    assert found == structs.replace(given_response, parts=tuple(map(enclosed, given_response.parts)), more=more)
