"""Events as a Gemini stream: chunk by chunk; the stream folds to the whole answer, decodes to its events, and the SDK reads every chunk."""

import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.gemini.decode import decoder
from asgi_surface.codecs.gemini.encode import encoder
from asgi_surface.codecs.gemini.read import read
from asgi_surface.codecs.gemini.write import REASONS, write
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Cited, Closed, Ending, Fault, Finish, Found, Grew, Logged, Opened, Sealed, Start, UsageSeen
from asgi_surface.framing import Frame, Framing, closing, splitter
from asgi_surface.framing import write as framed
from asgi_surface.surfaces import GEMINI, MESSAGES

CONTEXT = Context(
    request=ir.Request(turns=()), aliases={"al_1": Alias("al 1")}, seal_domain="anthropic", upstream=MESSAGES, model="asked", request_id="r", now=1
)
SIGNATURE = ir.Seal("sig", ir.SealKind.SIGNATURE, MESSAGES)
ENVELOPE = seals.wrap(SIGNATURE, "anthropic")
END = Ending(ir.Stop.END)
BEGUN = Start()


def written(grammar, *events, ending=END, start=BEGUN):
    """The chunks of a whole stream, which keeps to the grammar in both framings."""
    writer = encoder(CONTEXT)
    assert writer.sequential
    frames = [*writer.open(start, None), *(frame for event in events for frame in writer.part(event)), *writer.close(ending)]
    assert {event for event, _ in frames} == {b""}
    for _, data in frames:
        types.GenerateContentResponse.model_validate_json(data)
    for framing in (Framing.SSE, Framing.JSON_ARRAY):
        body = b"".join(framed(framing, event, data, first=not place) for place, (event, data) in enumerate(frames))
        grammar(GEMINI, body + closing(framing, opened=True), array=framing is Framing.JSON_ARRAY)
    return [json.loads(data) for _, data in frames]


def contents(grammar, *events, **more):
    """The parts of each chunk, and the finish of the last."""
    chunks = [chunk["candidates"][0] for chunk in written(grammar, *events, **more)]
    assert not any("finishReason" in chunk for chunk in chunks[:-1])
    return [chunk["content"]["parts"] for chunk in chunks], chunks[-1]["finishReason"]


def text(index, *pieces):
    return [Opened(index, ir.Text("")), *(Grew(index, piece) for piece in pieces), Closed(index)]


def thought(index, *pieces, seal=SIGNATURE):
    return [Opened(index, ir.Reasoning("")), *(Grew(index, piece) for piece in pieces), *([Sealed(index, seal)] if seal else []), Closed(index)]


def call(index, *pieces, seal=None, **more):
    part = ir.Call("c", "f", "", **more)
    return [Opened(index, part), *(Grew(index, piece) for piece in pieces), *([Sealed(index, seal)] if seal else []), Closed(index)]


F = {"functionCall": {"id": "c", "name": "f", "args": {"a": 1.0}}}
ARGS = ('{"a":', "1.0}")
LENT = {"text": "", "thought": True, "thoughtSignature": ENVELOPE}
NONE = {"functionCall": {"id": "c", "name": "f", "args": {}}}
PARTS = {
    "nothing": ([], []),
    "text piece by piece": (text(0, "a", "b"), [[{"text": "a"}], [{"text": "b"}]]),
    "what is known at once": ([Opened(0, ir.Text("a")), Grew(0, "b"), Closed(0)], [[{"text": "a"}], [{"text": "b"}]]),
    "a call known at once": ([Opened(0, ir.Call("c", "f", '{"a":1.0}')), Closed(0)], [[F]]),
    "a call whole, at its close": (call(0, *ARGS), [[F]]),
    "a call with its token": (call(0, *ARGS, seal=SIGNATURE), [[{**F, "thoughtSignature": ENVELOPE}]]),
    "a call under the client's name without an id": (
        [Opened(0, ir.Call("call_0", "al_1", "", minted=True)), Grew(0, "{}"), Closed(0)],
        [[{"functionCall": {"name": "al 1", "args": {}}}]],
    ),
    "thought": (thought(0, "T", "U", seal=None), [[{"text": "T", "thought": True}], [{"text": "U", "thought": True}]]),
    "thought with its token": (thought(0, "T"), [[{"text": "T", "thought": True}], [LENT]]),
    "a token lent to text": ([*thought(0), *text(1, "a", "b")], [[{"text": "a", "thoughtSignature": ENVELOPE}], [{"text": "b"}]]),
    "a token lent to no text": ([*thought(0), *text(1)], [[{"text": "", "thoughtSignature": ENVELOPE}]]),
    "a token lent to a call": ([*thought(0), *call(1, *ARGS)], [[{**F, "thoughtSignature": ENVELOPE}]]),
    "a token before a call with its own": ([*thought(0), *call(1, *ARGS, seal=SIGNATURE)], [[LENT, {**F, "thoughtSignature": ENVELOPE}]]),
    "a token before a thought": ([*thought(0), *thought(1, "T", seal=None)], [[LENT], [{"text": "T", "thought": True}]]),
    "a thought that said nothing": (thought(0, seal=None), []),
    "a call without arguments before text": ([*call(0), *text(1, "a")], [[NONE], [{"text": "a"}]]),
    "free text as a function's": (
        [Opened(0, ir.Call("c", "p", "", ir.Form.CUSTOM)), Grew(0, "*** Begin"), Closed(0)],
        [[{"functionCall": {"id": "c", "name": "p", "args": {"input": "*** Begin"}}}]],
    ),
    "a refusal": ([Opened(0, ir.Refusal("")), Grew(0, "no"), Closed(0)], [[{"text": "no"}]]),
}


@pytest.mark.parametrize(("events", "parts"), PARTS.values(), ids=PARTS)
def test_parts(grammar, events, parts):
    assert contents(grammar, *events)[0] == [*parts, [{"text": ""}]]


def test_what_waits_comes_with_the_finish(grammar):
    assert contents(grammar, *call(0), ending=Ending(ir.Stop.TOOLS)) == ([[NONE]], "STOP")
    assert contents(grammar, *thought(0)) == ([[LENT]], "STOP")


CUT = {
    "a call without arguments": (call(0), []),
    "half a call": (call(0, '{"a":'), []),
    "no object": (call(0, "[1]"), []),
    "half a call that a token stood before": ([*thought(0), *call(1, '{"a":')], [LENT]),
}


@pytest.mark.parametrize(("events", "said"), CUT.values(), ids=CUT)
@pytest.mark.parametrize("stop", [ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER])
def test_a_call_that_was_cut_off_is_not_said(grammar, events, said, stop):
    assert contents(grammar, *events, ending=Ending(stop)) == ([said or [{"text": ""}]], REASONS[stop])


@pytest.mark.parametrize(("stop", "reason"), REASONS.items())
def test_reasons(grammar, stop, reason):
    assert contents(grammar, *text(0, "a"), ending=Ending(stop))[1] == reason


def test_a_refusal_is_words_and_the_reason_stays_the_upstream_s(grammar):
    refusal = [Opened(0, ir.Refusal("")), Grew(0, "no"), Closed(0)]
    assert contents(grammar, *refusal)[1] == "STOP"
    assert contents(grammar, *refusal, ending=Ending(ir.Stop.FILTER))[1] == "SAFETY"
    assert contents(grammar, *refusal, ending=Ending(ir.Stop.LENGTH))[1] == "MAX_TOKENS"


def test_every_chunk_says_whose_it_is_and_the_last_what_was_used(grammar):
    usage = ir.Usage(input=10, output=7, cached=4, reasoning=5)
    first, last = written(grammar, *text(0, "a"), ending=Ending(ir.Stop.END, usage=usage), start=Start("u1", "up"))
    assert [(chunk["responseId"], chunk["modelVersion"]) for chunk in (first, last)] == [("u1", "up")] * 2
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4, "totalTokenCount": 17}
    assert ("usageMetadata" in first, last["usageMetadata"]) == (False, counted)


def test_what_the_upstream_has_counted_by_then_stands_in_every_chunk(grammar):
    writer = encoder(CONTEXT)
    frames = writer.open(Start("u1", "up"), ir.Usage(10, 1))
    for place, event in enumerate(text(0, "a", "b", "c")):
        if place == 2:
            writer.note(Start("u1", "up-2"), ir.Usage(10, 3, reasoning=2))
        frames += writer.part(event)
    frames += writer.close(Ending(ir.Stop.END, usage=ir.Usage(10, 7, reasoning=2)))
    body = b"".join(framed(Framing.SSE, event, data, first=not place) for place, (event, data) in enumerate(frames))
    grammar(GEMINI, body)
    chunks = [json.loads(data) for _, data in frames]
    assert [chunk["usageMetadata"] for chunk in chunks] == [
        {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
        *[{"promptTokenCount": 10, "candidatesTokenCount": 1, "thoughtsTokenCount": 2, "totalTokenCount": 13}] * 2,
        {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 17},
    ]
    assert [(chunk["responseId"], chunk["modelVersion"]) for chunk in chunks] == [("u1", "up"), *[("u1", "up-2")] * 3]


def test_nothing_is_invented(grammar):
    candidate = {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}
    assert written(grammar) == [{"candidates": [candidate], "modelVersion": "asked"}]


def test_arguments_keep_their_text():
    writer = encoder(CONTEXT)
    writer.open(Start(), None)
    frames = [frame for event in call(0, '{"b":  1.0, "a": "\\u00e9"}') for frame in writer.part(event)]
    assert b'"args":{"b":  1.0, "a": "\\u00e9"}' in frames[0][1]


def cited(index, said, *citations):
    opened, *grown, closed = text(index, said)
    return [opened, *grown, *(Cited(index, citation) for citation in citations), closed]


def test_sources_are_said_last_in_bytes_of_the_part_that_neighbouring_texts_are(grammar):
    events = [
        *thought(0, "T", seal=None),
        *cited(1, "éa", ir.Citation("u1", "t1", 1, 2)),
        *cited(2, "b", ir.Citation("u1", "t1", 0, 1), ir.Citation("u2")),
        *call(3, *ARGS),
        *cited(4, "c", ir.Citation("u1", "t1", 0, 1)),
        Opened(5, ir.Text("")),
        Cited(5, ir.Citation("of nothing")),
        Closed(5),
    ]
    *before, last = written(grammar, *events)
    assert not any("groundingMetadata" in chunk["candidates"][0] for chunk in before)
    assert last["candidates"][0]["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 1, "startIndex": 2, "endIndex": 3, "text": "a"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 1, "startIndex": 3, "endIndex": 4, "text": "b"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 1, "startIndex": 3, "endIndex": 4, "text": "b"}, "groundingChunkIndices": [1]},
            {"segment": {"partIndex": 3, "startIndex": 0, "endIndex": 1, "text": "c"}, "groundingChunkIndices": [0]},
        ],
    }


def test_a_source_rests_on_no_words_behind_its_own_text(grammar):
    events = [*cited(0, "a", ir.Citation("u1", "", 0, 9)), *cited(1, "b", ir.Citation("u2", "", 7, 9))]
    supports = written(grammar, *events)[-1]["candidates"][0]["groundingMetadata"]["groundingSupports"]
    assert [(one["segment"]["startIndex"], one["segment"]["endIndex"], one["segment"]["text"]) for one in supports] == [(0, 1, "a"), (2, 2, "")]


def token(word):
    return Raw(json.dumps([{"token": word, "logprob": -0.5, "bytes": [97], "top_logprobs": []}]).encode())


def test_log_probabilities_are_gathered(grammar):
    events = [Opened(0, ir.Text("")), Grew(0, "a"), Logged(0, token("a")), Grew(0, "b"), Logged(0, token("b")), Closed(0)]
    chosen = [{"token": "a", "logProbability": -0.5}, {"token": "b", "logProbability": -0.5}]
    assert written(grammar, *events)[-1]["candidates"][0]["logprobsResult"] == {"chosenCandidates": chosen}


def test_log_probabilities_that_cannot_be_read_are_left_out(grammar):
    events = [Opened(0, ir.Text("")), Grew(0, "a"), Logged(0, Raw(b'[{"odd": 1}]')), Closed(0)]
    assert "logprobsResult" not in written(grammar, *events)[-1]["candidates"][0]


def searched(index, query, *found, **more):
    return [Opened(index, ir.Search("s", query)), Found(index, found, **more), Closed(index)]


def test_searches_are_said_last_with_what_they_found_and_part_no_text(grammar):
    u1, u2 = ir.Citation("u1", "t1"), ir.Citation("u2")
    events = [
        *[*searched(0, "q1", u1, u2), *thought(1), *searched(2, "q2", u2, failed=True)],
        *[*cited(3, "a", u2), *searched(4, "q3"), *cited(5, "b", ir.Citation("u1", "t1", 0, 1))],
    ]
    first, second, last = written(grammar, *events)
    assert first["candidates"][0]["content"]["parts"] == [{"text": "a", "thoughtSignature": ENVELOPE}]
    assert second["candidates"][0]["content"]["parts"] == [{"text": "b"}]
    assert last["candidates"][0]["groundingMetadata"] == {
        "webSearchQueries": ["q1", "q2", "q3"],
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 0, "startIndex": 0, "endIndex": 1, "text": "a"}, "groundingChunkIndices": [1]},
            {"segment": {"partIndex": 0, "startIndex": 1, "endIndex": 2, "text": "b"}, "groundingChunkIndices": [0]},
        ],
    }


def test_every_answer_is_a_candidate_with_its_own_finish_in_the_last_chunk(grammar):
    events = [
        *text(0, "a"),
        *[Opened(1, ir.Text(""), 1), Grew(1, "b"), Cited(1, ir.Citation("u")), Closed(1)],
        *[Opened(2, ir.Call("c", "f", ""), 2), Closed(2), Opened(3, ir.Text(""), 1), Grew(3, "d"), Logged(3, token("d")), Closed(3)],
    ]
    ending = Ending(ir.Stop.END, usage=ir.Usage(1, 2), more={1: ir.Stop.LENGTH, 2: ir.Stop.TOOLS, 3: ir.Stop.FILTER})
    *before, last = written(grammar, *events, ending=ending)
    pieces = [(one["index"], one["content"]["parts"]) for chunk in before for one in chunk["candidates"]]
    assert pieces == [(0, [{"text": "a"}]), (1, [{"text": "b"}]), (1, [{"text": "d"}])]
    assert [(one["index"], one["content"]["parts"], one["finishReason"]) for one in last["candidates"]] == [
        (0, [{"text": ""}], "STOP"),
        (1, [{"text": ""}], "MAX_TOKENS"),
        (2, [NONE], "STOP"),
        (3, [{"text": ""}], "SAFETY"),
    ]
    assert [sorted(one.keys() - {"content", "finishReason", "index"}) for one in last["candidates"]] == [
        *[[], ["groundingMetadata", "logprobsResult"], [], []],
    ]
    assert last["usageMetadata"]["totalTokenCount"] == 3


BROKEN = UpstreamError(Code.UPSTREAM_TRUNCATED, "the stream ended")


@pytest.mark.parametrize("before", [[], [Opened(0, ir.Call("c", "f", "")), Grew(0, '{"a":')]])
def test_an_error_is_the_only_end(before):
    writer = encoder(CONTEXT)
    assert [frame for event in before for frame in writer.part(event)] == []
    ((event, data),) = writer.fail(BROKEN)
    assert (event, set(json.loads(data))) == (b"", {"error"})
    assert set(json.loads(data)["error"]) == {"code", "message", "status", "details"}
    (fault,) = decoder().feed(Frame(b"", b"", data))
    assert isinstance(fault, Fault)
    assert fault.facts.message == BROKEN.text


# -- laws: a stream folds to the whole answer, in both framings, and decodes to what it was made of

words = st.text(min_size=1, max_size=6)
objects = st.dictionaries(words, st.integers() | words, max_size=2).map(json.dumps)
tokens = words.map(lambda said: ir.Seal(said, ir.SealKind.SIGNATURE, MESSAGES))
COUNTED = st.builds(
    lambda read, said, thought, cached, heard, spoken: ir.Usage(read, said + thought, cached, None, thought, heard, spoken),
    *[st.integers(0, 99)] * 4,
    *[st.none() | st.integers(0, 99)] * 2,
)


@st.composite
def texts(draw):
    said = draw(words)
    spans = draw(st.lists(st.tuples(words, st.none() | st.tuples(st.integers(0, len(said)), st.integers(0, len(said)))), unique=True, max_size=2))
    cited = [ir.Citation(url, "", *([] if span is None else sorted(span))) for url, span in spans]
    return ir.Text(said, citations=tuple({placed(said, citation): citation for citation in cited}.values()))


def placed(said, citation):
    """A source with the place that it has in Gemini: at least all of the text."""
    return citation if citation.start is not None else structs.replace(citation, start=0, end=len(said))


@st.composite
def alternatives(draw):
    """Answers in the form that a stream of Gemini's has: thoughts with their tokens, at most one text, and then the calls."""
    thoughts = draw(st.lists(st.builds(ir.Reasoning, words, tokens), max_size=2))
    said = draw(st.lists(texts(), max_size=1))
    lent = [ir.Reasoning("", draw(tokens))] if said and draw(st.booleans()) else []
    calls = draw(st.lists(st.builds(ir.Call, words, words, objects, seal=st.none() | tokens), max_size=2))
    stop = ir.Stop.TOOLS if calls else draw(st.sampled_from([ir.Stop.END, ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER]))
    if calls:
        said = [structs.replace(one, citations=()) for one in said]  # a text is closed when its sources come with the finish
    return ir.Alternative(parts=(*thoughts, *lent, *said, *calls), stop=stop)


@st.composite
def answers(draw):
    first, *more = draw(st.lists(alternatives(), min_size=1, max_size=3))
    return ir.Response(
        id=draw(st.none() | words), model=draw(words), parts=first.parts, stop=first.stop, usage=draw(st.none() | COUNTED), more=tuple(more)
    )


def pieces(events, size):
    """Events with words in pieces of this size."""
    for event in events:
        if isinstance(event, Grew):
            yield from (Grew(event.index, event.text[start : start + size]) for start in range(0, len(event.text), size))
        else:
            yield event


def streamed(grammar, response, size, framing):
    """The stream of an answer, through its framing."""
    writer = encoder(structs.replace(CONTEXT, aliases={}))
    frames = [*writer.open(Start(response.id, response.model), None)]
    said = [event for event in unfold(response) if not isinstance(event, Start | UsageSeen | Finish)]
    frames += [frame for event in pieces(said, size) for frame in writer.part(event)]
    stops = dict(enumerate(one.stop for one in response.more))
    frames += writer.close(Ending(response.stop, usage=response.usage, more={choice + 1: stop for choice, stop in stops.items()}))
    data = b"".join(framed(framing, event, body, first=not place) for place, (event, body) in enumerate(frames)) + closing(framing, opened=True)
    grammar(GEMINI, data, array=framing is Framing.JSON_ARRAY)
    cutter = splitter(framing, 1 << 20)
    return [frame for frame in cutter.feed(data) if frame.data]


def folded(events):
    """What a stream said, as an answer."""
    kept = []
    fold, stops, usage = Fold(lambda response: kept.append(response) or b""), {}, None
    for event in events:
        if isinstance(event, Start):
            fold.open(event, None)
        elif isinstance(event, Finish):
            stops[event.choice] = event.stop
        elif isinstance(event, UsageSeen):
            usage = event.usage
        else:
            fold.part(event)
    fold.close(Ending(stops.pop(0), usage=usage, more=stops))
    return kept[0]


def enclosed(response):
    """The answer as a client sees it: tokens in envelopes, sources in their places."""
    more = tuple(structs.replace(one, parts=tuple(map(told, one.parts))) for one in response.more)
    return structs.replace(response, parts=tuple(map(told, response.parts)), more=more)


def told(part):
    if isinstance(part, ir.Text):
        return structs.replace(part, citations=tuple(placed(part.text, citation) for citation in part.citations))
    return part if part.seal is None else structs.replace(part, seal=ir.Seal(seals.wrap(part.seal, "anthropic"), ir.SealKind.THOUGHT, GEMINI))


@pytest.mark.parametrize("framing", [Framing.SSE, Framing.JSON_ARRAY])
@bounded(max_examples=40)
@given(response=answers(), size=st.integers(1, 4))
def test_a_stream_decodes_to_its_events_and_folds_to_the_whole_answer(grammar, framing, response, size):
    reader = decoder()
    found = folded(event for frame in streamed(grammar, response, size, framing) for event in reader.feed(frame))
    assert found == enclosed(response)
    assert found == read(write(response, structs.replace(CONTEXT, aliases={})))
    assert reader.unread == []


@bounded(max_examples=40)
@given(response=answers(), size=st.integers(1, 4))
def test_the_sdk_reads_the_same_words_calls_and_finish_in_all_chunks(grammar, response, size):
    chunks = [types.GenerateContentResponse.model_validate_json(frame.data) for frame in streamed(grammar, response, size, Framing.SSE)]
    whole = types.GenerateContentResponse.model_validate_json(write(response, structs.replace(CONTEXT, aliases={})))

    def said(answers, index):
        candidates = [candidate for answer in answers for candidate in answer.candidates if candidate.index == index]
        parts = [part for candidate in candidates for part in candidate.content.parts or []]
        texts = ["".join(part.text for part in parts if part.text and bool(part.thought) is thinks) for thinks in (False, True)]
        signatures = [part.thought_signature for part in parts if part.thought_signature]
        last = candidates[-1]
        return texts, [part.function_call for part in parts if part.function_call], signatures, last.finish_reason, last.grounding_metadata

    for index in range(len(response.answers)):
        assert said(chunks, index) == said([whole], index)
    assert chunks[-1].usage_metadata == whole.usage_metadata
