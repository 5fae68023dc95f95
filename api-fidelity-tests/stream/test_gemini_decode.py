"""A Gemini stream, chunk by chunk, as events: table by table."""

import json

import pytest

from asgi_surface import ir
from asgi_surface.codecs.gemini.decode import decoder
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.errors import ErrorFacts, UpstreamDetail
from asgi_surface.events import Cited, Closed, Fault, Finish, Grew, Logged, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.surfaces import GEMINI

BEGUN = Start("r1", "m1", 1771141837)


def seal(token):
    return ir.Seal(token, ir.SealKind.THOUGHT, GEMINI)


def frame(chunk, event=b""):
    return Frame(b"", event, (chunk if isinstance(chunk, str) else json.dumps(chunk)).encode())


def candidate(*parts, **more):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}]}


def decoded(*chunks):
    """The events of these chunks after the start, and what was not read."""
    reader = decoder()
    events = [event for chunk in chunks for event in reader.feed(frame(chunk))]
    assert set(reader.unread) <= ROWS.keys()
    return [event for event in events if not isinstance(event, Start)], reader.unread


def test_another_model_is_told_once():
    said = [candidate({"text": "a"}), candidate({"text": "b"}) | {"modelVersion": "m2"}, {"modelVersion": "m2"}]
    assert decoded(*said)[0] == [Opened(0, ir.Text("")), Grew(0, "a"), Told("m2"), Grew(0, "b")]


def test_the_tier_is_told_once_wherever_it_is_said_first():
    late = candidate({"text": "b"}, finishReason="STOP") | {"usageMetadata": {"serviceTier": "standard"}}
    assert decoded(candidate({"text": "a"}), late, late)[0][2:4] == [Told(None, "default"), Grew(0, "b")]
    assert next(iter(decoder().feed(frame(late)))) == Start(service_tier="default")


def test_a_model_that_was_told_before_the_start_begins_it():
    reader = decoder()
    chunks = [{"modelVersion": "m1", "usageMetadata": {"promptTokenCount": 3}}, candidate({"text": "a"})]
    assert [event for one in chunks for event in reader.feed(frame(one))][:2] == [UsageSeen(ir.Usage(3)), Start(None, "m1")]


CALL = {"functionCall": {"name": "f", "id": "c1", "args": {"a": 1}}}
PARTS = {
    "text grows": (
        [candidate({"text": "a"}), candidate({"text": "b"})],
        [Opened(0, ir.Text("")), Grew(0, "a"), Grew(0, "b")],
    ),
    "text follows thought": (
        [candidate({"text": "T", "thought": True}, {"text": "U", "thought": True}), candidate({"text": "a", "thought": False})],
        [Opened(0, ir.Reasoning("")), Grew(0, "T"), Grew(0, "U"), Closed(0), Opened(1, ir.Text("")), Grew(1, "a")],
    ),
    "a token on thought ends it": (
        [
            candidate({"text": "T", "thought": True}),
            candidate({"text": "", "thought": True, "thoughtSignature": "t"}, {"text": "U", "thought": True}),
        ],
        [
            *[Opened(0, ir.Reasoning("")), Grew(0, "T"), Sealed(0, seal("t")), Closed(0)],
            *[Opened(1, ir.Reasoning("")), Grew(1, "U")],
        ],
    ),
    "a token on text stands before it": (
        [candidate({"text": "T", "thought": True}), candidate({"text": "a", "thoughtSignature": "t"}), candidate({"text": "b"})],
        [
            *[Opened(0, ir.Reasoning("")), Grew(0, "T"), Closed(0)],
            *[Opened(1, ir.Reasoning("")), Sealed(1, seal("t")), Closed(1)],
            *[Opened(2, ir.Text("")), Grew(2, "a"), Grew(2, "b")],
        ],
    ),
    "a token on an empty part stays": (
        [candidate({"text": "a"}), candidate({"text": "", "thoughtSignature": "t"}, {"thoughtSignature": "u"})],
        [
            *[Opened(0, ir.Text("")), Grew(0, "a")],
            *[Opened(1, ir.Reasoning("")), Sealed(1, seal("t")), Closed(1)],
            *[Opened(2, ir.Reasoning("")), Sealed(2, seal("u")), Closed(2)],
        ],
    ),
    "empty parts say nothing": ([candidate({"text": ""}, {"text": "", "thought": True}), candidate(), {"candidates": [{}]}], []),
    "a call is whole": (
        [candidate({"text": "a"}, {**CALL, "thoughtSignature": "t"})],
        [
            *[Opened(0, ir.Text("")), Grew(0, "a")],
            *[Opened(1, ir.Call("c1", "f", "")), Sealed(1, seal("t")), Grew(1, '{"a": 1}'), Closed(1)],
        ],
    ),
    "a text waits for its sources until the finish": (
        [candidate({"text": "a"}, CALL), candidate(finishReason="STOP"), candidate({"text": "b"})],
        [
            *[Opened(0, ir.Text("")), Grew(0, "a"), Opened(1, ir.Call("c1", "f", "")), Grew(1, '{"a": 1}'), Closed(1)],
            *[Closed(0), Finish(ir.Stop.TOOLS), Opened(2, ir.Text("")), Grew(2, "b")],
        ],
    ),
    "a text waits until other words begin": (
        [candidate({"text": "a"}, CALL), candidate({"text": "T", "thought": True}), candidate({"text": "b"})],
        [
            *[Opened(0, ir.Text("")), Grew(0, "a"), Opened(1, ir.Call("c1", "f", "")), Grew(1, '{"a": 1}'), Closed(1)],
            *[Closed(0), Opened(2, ir.Reasoning("")), Grew(2, "T"), Closed(2), Opened(3, ir.Text("")), Grew(3, "b")],
        ],
    ),
    "calls without ids are numbered": (
        [candidate(CALL, {"functionCall": {"name": "g"}}), candidate({"functionCall": {"name": "g", "args": {}}})],
        [
            *[Opened(0, ir.Call("c1", "f", "")), Grew(0, '{"a": 1}'), Closed(0)],
            *[Opened(1, ir.Call("call_1", "g", "", minted=True)), Grew(1, "{}"), Closed(1)],
            *[Opened(2, ir.Call("call_2", "g", "", minted=True)), Grew(2, "{}"), Closed(2)],
        ],
    ),
}


@pytest.mark.parametrize(("chunks", "events"), PARTS.values(), ids=PARTS)
def test_parts(chunks, events):
    assert decoded(*chunks) == (events, [])


def test_arguments_keep_their_text():
    events, _ = decoded('{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"b":  1.0, "a": "\\u00e9"}}}]}}]}')
    assert events[1] == Grew(0, '{"b":  1.0, "a": "\\u00e9"}')


def test_what_is_skipped_is_named_and_parts_the_text():
    chunks = [candidate({"text": "a"}, {"executableCode": {"code": "1"}}, {"text": "b", "partMetadata": {"x": 1}}, {"hologram": {}})]
    events, unread = decoded(*chunks)
    assert events == [Opened(0, ir.Text("")), Grew(0, "a"), Closed(0), Opened(1, ir.Text("")), Grew(1, "b")]
    assert unread == ["answer:executableCode", "answer:partMetadata", "answer:part"]


def test_the_answer_begins_once_and_with_what_is_used_so_far():
    reader = decoder()
    head = {"responseId": "r1", "modelVersion": "m1", "createTime": "2026-02-15T07:50:37.854117Z"}
    assert list(reader.feed(frame({"usageMetadata": {"promptTokenCount": 3}}))) == [UsageSeen(ir.Usage(3))]
    first = {**candidate({"text": "a"}), **head, "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}}
    assert list(reader.feed(frame(first))) == [UsageSeen(ir.Usage(3, 3, reasoning=2)), BEGUN, Opened(0, ir.Text("")), Grew(0, "a")]
    again = {**candidate({"text": "b"}), **head, "usageMetadata": {"trafficType": "ON_DEMAND"}, "createTime": "soon"}
    assert list(reader.feed(frame(again))) == [Grew(0, "b")]


FINISHES = {
    "a stop": ([candidate({"text": "a"}, finishReason="STOP")], [ir.Stop.END]),
    "a stop on every chunk": ([candidate({"text": "a"}, finishReason="STOP"), candidate({"text": "b"}, finishReason="STOP")], [ir.Stop.END] * 2),
    "a weightier one later": ([candidate(finishReason="STOP"), candidate(finishReason="MAX_TOKENS")], [ir.Stop.END, ir.Stop.LENGTH]),
    "with a call": ([candidate(CALL, finishReason="STOP")], [ir.Stop.TOOLS]),
    "after a call": ([candidate(CALL), candidate({"text": ""}, finishReason="STOP")], [ir.Stop.TOOLS]),
    "before a call": ([candidate(finishReason="STOP"), candidate(CALL)], [ir.Stop.END, ir.Stop.TOOLS]),
    "truncated with a call": ([candidate(CALL, finishReason="MAX_TOKENS")], [ir.Stop.LENGTH]),
    "a malformed call": ([candidate(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="print(1)")], [ir.Stop.ERROR]),
    "an unknown one": ([candidate(finishReason="BORED")], [ir.Stop.OTHER]),
    "none": ([candidate(finishReason="FINISH_REASON_UNSPECIFIED"), candidate(finishReason=""), candidate(finishReason=None)], []),
    "a blocked prompt": ([{"promptFeedback": {"blockReason": "SAFETY"}}], [ir.Stop.REFUSAL]),
    "no blocked prompt": ([{"promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}}, {"promptFeedback": {}}], []),
}


@pytest.mark.parametrize(("chunks", "stops"), FINISHES.values(), ids=FINISHES)
def test_finishes(chunks, stops):
    events, _ = decoded(*chunks)
    assert [event.stop for event in events if isinstance(event, Finish)] == stops


def test_text_after_the_finish_goes_on():
    events, _ = decoded(candidate({"text": "a"}, finishReason="STOP"), candidate({"text": "b"}, finishReason="STOP"))
    assert events == [Opened(0, ir.Text("")), Grew(0, "a"), Finish(ir.Stop.END), Grew(0, "b"), Finish(ir.Stop.END)]


def test_a_blocked_prompt_begins_the_answer():
    assert list(decoder().feed(frame({"promptFeedback": {"blockReason": "OTHER"}, "responseId": "r"}))) == [Start("r"), Finish(ir.Stop.REFUSAL)]


def of(choice, *parts, **more):
    return {"content": {"parts": list(parts)}, "index": choice, **more}


def test_every_candidate_is_an_answer_with_a_state_of_its_own():
    sourced = {"groundingMetadata": {"groundingChunks": [{"web": {"uri": "u"}}], "groundingSupports": []}}
    chunks = [
        {"candidates": [of(1, {"text": "b"})]},
        {"candidates": [of(0, {"text": "a"}), of(1, {"functionCall": {"name": "f"}})]},
        {"candidates": [of(0, {"functionCall": {"name": "g"}}, finishReason="STOP"), of(2, {"text": "c"})]},
        {"candidates": [of(1, finishReason="STOP"), of(2, {"text": "d"}, finishReason="MAX_TOKENS", **sourced)]},
    ]
    assert decoded(*chunks) == (
        [
            *[Opened(0, ir.Text(""), 1), Grew(0, "b")],
            *[Opened(1, ir.Text("")), Grew(1, "a")],
            *[Opened(2, ir.Call("call_0", "f", "", minted=True), 1), Grew(2, "{}"), Closed(2)],
            *[Opened(3, ir.Call("call_0", "g", "", minted=True)), Grew(3, "{}"), Closed(3), Closed(1), Finish(ir.Stop.TOOLS)],
            *[Opened(4, ir.Text(""), 2), Grew(4, "c")],
            *[Closed(0), Finish(ir.Stop.TOOLS, choice=1)],
            *[Grew(4, "d"), Cited(4, ir.Citation("u")), Finish(ir.Stop.LENGTH, choice=2)],
        ],
        [],
    )


def test_what_an_answer_says_beyond_is_named_once():
    rated = {"safetyRatings": [{"probability": "LOW"}], "avgLogprobs": -0.5}
    used = {"usageMetadata": {"trafficType": "ON_DEMAND", "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]}}
    chunks = [{**candidate({"text": "a"}, **rated), **used}, {**candidate(finishReason="STOP", finishMessage="m", **rated), **used}]
    assert decoded(*chunks)[1] == [
        *["answer:avgLogprobs", "answer:safetyRatings", "usage:promptTokensDetails", "usage:trafficType"],
        "answer:finishMessage",
    ]
    assert decoded({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "m"}})[1] == ["answer:promptFeedback.blockReasonMessage"]


def test_tokens_of_sound_are_counted():
    said = {"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 5}], "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 7}]}
    assert decoded({"usageMetadata": said}) == ([UsageSeen(ir.Usage(audio_input=5, audio_output=7))], [])


NO = ErrorFacts("no", UpstreamDetail("RESOURCE_EXHAUSTED"), 429)
ERROR = {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED"}}
FAULTS = {
    "an object": (frame(ERROR), [Fault(NO)]),
    "in an array": (frame([ERROR]), [Fault(NO)]),
    "an error event": (frame({"message": "no"}, b"error"), [Fault(ErrorFacts("no"))]),
    "without words": (frame({"error": 7}), [Fault(ErrorFacts(""))]),
    "with the last words": (
        frame({**candidate({"text": "a"}), **ERROR}),
        [Start(), Opened(0, ir.Text("")), Grew(0, "a"), Fault(NO)],
    ),
}


@pytest.mark.parametrize(("given", "events"), FAULTS.values(), ids=FAULTS)
def test_errors_of_the_upstream(given, events):
    assert list(decoder().feed(given)) == events


WEB = {"groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}]}
SUPPORTED = {**WEB, "groundingSupports": [{"segment": {"startIndex": 2, "endIndex": 3}, "groundingChunkIndices": [0]}]}


def test_sources_count_over_all_of_the_text_and_are_said_once():
    events, unread = decoded(
        candidate({"text": "T", "thought": True}, {"text": "é", "thoughtSignature": "t"}, groundingMetadata={}, urlContextMetadata={"a": 1}),
        candidate({"text": "a"}, groundingMetadata=SUPPORTED, urlContextMetadata={"a": 1}),
        candidate({"text": "b"}, finishReason="STOP", groundingMetadata=SUPPORTED, citationMetadata={"citations": [{"uri": "u2"}]}),
    )
    assert [event for event in events if isinstance(event, Cited)] == [Cited(2, ir.Citation("u1", "t1", 1, 2)), Cited(2, ir.Citation("u2"))]
    assert unread == ["answer:urlContextMetadata"]


def test_supports_may_count_the_sources_of_a_chunk_before():
    others = {"groundingChunks": [*WEB["groundingChunks"], {"web": {"uri": "u2", "title": "t2"}}]}
    later = {"groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 1}, "groundingChunkIndices": [1, 5]}]}
    events, unread = decoded(
        candidate({"text": "ab"}, groundingMetadata=SUPPORTED | {"groundingSupports": []} | others),
        candidate(finishReason="STOP", groundingMetadata=later),
    )
    whole = [Cited(0, ir.Citation(f"u{number}", f"t{number}")) for number in (1, 2)]
    assert [event for event in events if isinstance(event, Cited)] == [*whole, Cited(0, ir.Citation("u2", "t2", 0, 1))]
    assert unread == []


CHUNKS, RECITED = "answer:groundingMetadata.groundingChunks", "answer:citationMetadata.citations"
WITHOUT_TEXT = [
    ([candidate({"text": "a"}), candidate(CALL, finishReason="STOP"), candidate(groundingMetadata=SUPPORTED)], [CHUNKS]),
    ([candidate({"text": "a"}), candidate(CALL), candidate({"text": "b"}, citationMetadata={"citations": [{"uri": "u"}]})], [RECITED]),
    ([candidate(CALL, groundingMetadata=SUPPORTED)], [CHUNKS]),
    ([candidate({"text": "a"}, groundingMetadata={"webSearchQueries": ["q"]})], ["answer:groundingMetadata.webSearchQueries"]),
    ([candidate({"text": "a"}, groundingMetadata=SUPPORTED), candidate(CALL, groundingMetadata=SUPPORTED)], []),
]


@pytest.mark.parametrize(("chunks", "unread"), WITHOUT_TEXT)
def test_sources_without_an_open_text_are_not_read(chunks, unread):
    assert decoded(*chunks)[1] == unread


LOGGED = {"chosenCandidates": [{"token": "a", "logProbability": -0.10}]}


@pytest.mark.parametrize("last", [{}, {"finishReason": "STOP"}])
@pytest.mark.parametrize("between", [CALL, {"text": "", "thoughtSignature": "t"}, {"executableCode": {}}])
def test_sources_and_log_probabilities_may_come_behind_calls_and_tokens(between, last):
    said = {"citationMetadata": {"citations": [{"uri": "u"}]}, "logprobsResult": LOGGED}
    for chunks in ([candidate({"text": "a"}, between, **said, **last)], [candidate({"text": "a"}), candidate(between), candidate(**said, **last)]):
        events, unread = decoded(*chunks)
        assert [(type(event), event.index) for event in events if isinstance(event, Cited | Logged)] == [(Cited, 0), (Logged, 0)]
        assert {name for name in unread if name != "answer:executableCode"} == set()


def test_log_probabilities_stand_with_their_text():
    events, unread = decoded(candidate({"text": "a"}, logprobsResult=LOGGED))
    assert [type(event) for event in events] == [Opened, Grew, Logged]
    assert json.loads(bytes(events[-1].logprobs)) == [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]
    assert unread == []


@pytest.mark.parametrize(
    "chunk",
    [
        candidate({"text": "a"}, logprobsResult={"chosenCandidates": [{}]}),
        candidate(CALL, logprobsResult=LOGGED),
        candidate({"text": "a", "thought": True}, logprobsResult=LOGGED),
    ],
)
def test_log_probabilities_of_no_text_are_not_read(chunk):
    assert decoded(chunk)[1] == ["answer:logprobsResult.other"]


UNREADABLE = [
    "[]",
    "[1]",
    "7",
    "{",
    candidate({"text": 1}),
    candidate({"functionCall": {}}),
    candidate({"functionCall": {"name": "f", "args": "{}"}}),
    candidate({"functionCall": 7}),
    candidate({"text": "a", "thoughtSignature": 7}),
    candidate(finishReason=7),
    candidate({"functionCall": {"willContinue": True}}),
]


@pytest.mark.parametrize("chunk", UNREADABLE)
def test_a_chunk_whose_words_calls_or_finish_cannot_be_read_is_none(chunk):
    with pytest.raises(ValueError, match=r"^(?!.*print)"):
        list(decoder().feed(frame(chunk)))


def piece(path=None, last=False, **more):
    said = {} if path is None else {"partialArgs": [{"jsonPath": path, **more}]}
    return candidate({"functionCall": said if last else {**said, "willContinue": True}})


def test_arguments_that_come_piece_by_piece_are_put_together():
    first = candidate({"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "t"})
    pieces = [
        piece("$.a", stringValue="x", willContinue=True),
        piece("$.a", stringValue="y"),
        piece("$.b['c d'][1]", numberValue=2.50),
        piece('$.b["c d"][0].e', boolValue=False),
        piece("$.n", nullValue="NULL_VALUE"),
    ]
    events, _ = decoded(first, *pieces, piece(last=True), candidate(finishReason="STOP"))
    assert events == [
        *[Opened(0, ir.Call("call_0", "f", "", minted=True)), Sealed(0, seal("t"))],
        *[Grew(0, '{"a":"xy","b":{"c d":[{"e":false},2.5]},"n":null}'), Closed(0)],
        Finish(ir.Stop.TOOLS),
    ]


@pytest.mark.parametrize("call", [{"name": "f"}, {"name": "f", "partialArgs": []}, {"name": "f", "willContinue": True}])
def test_text_beside_a_call_is_named(call):
    assert decoded(candidate({"functionCall": call, "text": ""}))[1] == []
    assert decoded(candidate({"functionCall": call, "text": "a"}))[1] == ["answer:part"]


def test_a_call_may_be_said_in_one_piece_under_its_own_id():
    said = {"functionCall": {"name": "f", "id": "c1", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}}
    assert decoded(candidate(said))[0] == [Opened(0, ir.Call("c1", "f", "")), Grew(0, '{"a":"x"}'), Closed(0)]


@pytest.mark.parametrize("path", ["a", "$", "$.a.b", "$..a"])
def test_what_is_no_path_of_a_value_is_not_read(path):
    chunks = [candidate({"functionCall": {"name": "f", "willContinue": True}}), piece("$.a", stringValue="x"), piece(path, stringValue="y")]
    with pytest.raises(ValueError, match="path"):
        decoded(*chunks)


def test_numbers_keep_their_text():
    reader = decoder()
    chunk = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1.50}]}}]}}]}'
    assert list(reader.feed(frame(chunk)))[2] == Grew(0, '{"a":1.50}')


@pytest.mark.parametrize(("reason", "fails"), [("STOP", True), ("MAX_TOKENS", False), (None, False)])
@pytest.mark.parametrize("begun", [[], [piece("$.a", stringValue="x", willContinue=True)]])
def test_a_call_that_was_to_go_on_is_no_success(begun, reason, fails):
    """The last piece may come after the finish; when the body ends without it, only a cut explains that."""
    reader, end = decoder(), [candidate(finishReason=reason)] if reason else []
    for chunk in (candidate({"functionCall": {"name": "f", "willContinue": True}}), *begun, *end):
        list(reader.feed(frame(chunk)))
    if fails:
        with pytest.raises(ValueError, match="half a call"):
            reader.eof()
    else:
        assert list(reader.eof()) == []
    assert Closed(0) in list(reader.feed(frame(piece(last=True))))
    assert list(reader.eof()) == []
