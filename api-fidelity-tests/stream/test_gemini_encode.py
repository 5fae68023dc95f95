"""Events as a Gemini stream: chunk by chunk; the stream folds to the whole answer, decodes to its events, and the SDK reads every chunk."""

import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.gemini.decode import decoder
from asgi_surface.codecs.gemini.encode import encoder
from asgi_surface.codecs.gemini.read import read
from asgi_surface.codecs.gemini.write import REASONS, write
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Cited, Closed, Ending, Fault, Finish, Grew, Logged, Opened, Sealed, Start, UsageSeen
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


def written(*events, ending=END, start=BEGUN):
    """The chunks of a whole stream."""
    writer = encoder(CONTEXT)
    assert writer.sequential
    frames = [*writer.open(start, None), *(frame for event in events for frame in writer.part(event)), *writer.close(ending)]
    assert {event for event, _ in frames} == {b""}
    for _, data in frames:
        types.GenerateContentResponse.model_validate_json(data)
    return [json.loads(data) for _, data in frames]


def contents(*events, **more):
    """The parts of each chunk, and the finish of the last."""
    chunks = [chunk["candidates"][0] for chunk in written(*events, **more)]
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
    "a refusal": ([Opened(0, ir.Refusal("")), Grew(0, "no"), Closed(0)], [[{"text": "no"}]]),
}


@pytest.mark.parametrize(("events", "parts"), PARTS.values(), ids=PARTS)
def test_parts(events, parts):
    assert contents(*events)[0] == [*parts, [{"text": ""}]]


def test_what_waits_comes_with_the_finish():
    assert contents(*call(0), ending=Ending(ir.Stop.TOOLS)) == ([[NONE]], "STOP")
    assert contents(*thought(0)) == ([[LENT]], "STOP")


@pytest.mark.parametrize("stop", [ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER])
def test_a_call_that_was_cut_off_is_not_said(stop):
    for events in (call(0), call(0, '{"a":')):
        assert contents(*events, ending=Ending(stop)) == ([[{"text": ""}]], REASONS[stop])


@pytest.mark.parametrize("arguments", ['{"a":', "[1]"])
def test_a_call_whose_arguments_are_no_object_is_not_said(arguments):
    assert contents(*thought(0), *call(1, arguments), ending=Ending(ir.Stop.TOOLS)) == ([[LENT]], "MALFORMED_FUNCTION_CALL")


@pytest.mark.parametrize(("stop", "reason"), REASONS.items())
def test_reasons(stop, reason):
    assert contents(*text(0, "a"), ending=Ending(stop))[1] == reason


def test_a_refusal_is_words_and_the_reason_stays_the_upstream_s():
    refusal = [Opened(0, ir.Refusal("")), Grew(0, "no"), Closed(0)]
    assert contents(*refusal)[1] == "STOP"
    assert contents(*refusal, ending=Ending(ir.Stop.FILTER))[1] == "SAFETY"
    assert contents(*refusal, ending=Ending(ir.Stop.LENGTH))[1] == "MAX_TOKENS"


def test_every_chunk_says_whose_it_is_and_the_last_what_was_used():
    usage = ir.Usage(input=10, output=7, cached=4, reasoning=5)
    first, last = written(*text(0, "a"), ending=Ending(ir.Stop.END, usage=usage), start=Start("u1", "up"))
    assert [(chunk["responseId"], chunk["modelVersion"]) for chunk in (first, last)] == [("u1", "up")] * 2
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4, "totalTokenCount": 17}
    assert ("usageMetadata" in first, last["usageMetadata"]) == (False, counted)


def test_nothing_is_invented():
    candidate = {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}
    assert written() == [{"candidates": [candidate], "modelVersion": "asked"}]


def test_arguments_keep_their_text():
    writer = encoder(CONTEXT)
    writer.open(Start(), None)
    frames = [frame for event in call(0, '{"b":  1.0, "a": "\\u00e9"}') for frame in writer.part(event)]
    assert b'"args":{"b":  1.0, "a": "\\u00e9"}' in frames[0][1]


def cited(index, said, *citations):
    opened, *grown, closed = text(index, said)
    return [opened, *grown, *(Cited(index, citation) for citation in citations), closed]


def test_sources_are_said_last_in_bytes_of_the_part_that_neighbouring_texts_are():
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
    *before, last = written(*events)
    assert not any("groundingMetadata" in chunk["candidates"][0] for chunk in before)
    assert last["candidates"][0]["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "u1", "title": "t1"}}, {"web": {"uri": "u2"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 1, "startIndex": 2, "endIndex": 3, "text": "a"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 1, "startIndex": 3, "endIndex": 4, "text": "b"}, "groundingChunkIndices": [0]},
            {"segment": {"partIndex": 3, "startIndex": 0, "endIndex": 1, "text": "c"}, "groundingChunkIndices": [0]},
        ],
    }


def token(word):
    return Raw(json.dumps([{"token": word, "logprob": -0.5, "bytes": [97], "top_logprobs": []}]).encode())


def test_log_probabilities_are_gathered():
    events = [Opened(0, ir.Text("")), Grew(0, "a"), Logged(0, token("a")), Grew(0, "b"), Logged(0, token("b")), Closed(0)]
    chosen = [{"token": "a", "logProbability": -0.5}, {"token": "b", "logProbability": -0.5}]
    assert written(*events)[-1]["candidates"][0]["logprobsResult"] == {"chosenCandidates": chosen}


def test_log_probabilities_that_are_none_are_an_error_at_once():
    writer = encoder(CONTEXT)
    writer.part(Opened(0, ir.Text("")))
    with pytest.raises(ValueError, match="Expected"):
        writer.part(Logged(0, Raw(b'{"odd": 1}')))


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
COUNTED = st.builds(lambda read, said, thought, cached: ir.Usage(read, said + thought, cached, None, thought), *[st.integers(0, 99)] * 4)


@st.composite
def texts(draw):
    said = draw(words)
    spans = draw(st.lists(st.tuples(words, st.integers(0, len(said)), st.integers(0, len(said))), unique=True, max_size=2))
    return ir.Text(said, citations=tuple(dict.fromkeys(ir.Citation(url, "", min(start, end), max(start, end)) for url, start, end in spans)))


@st.composite
def answers(draw):
    """Answers in the form that a stream of Gemini's has: thoughts with their tokens, at most one text, and then the calls."""
    thoughts = draw(st.lists(st.builds(ir.Reasoning, words, tokens), max_size=2))
    said = draw(st.lists(texts(), max_size=1))
    lent = [ir.Reasoning("", draw(tokens))] if said and draw(st.booleans()) else []
    calls = draw(st.lists(st.builds(ir.Call, words, words, objects, seal=st.none() | tokens), max_size=2))
    stop = ir.Stop.TOOLS if calls else draw(st.sampled_from([ir.Stop.END, ir.Stop.LENGTH, ir.Stop.FILTER, ir.Stop.OTHER]))
    if calls:
        said = [structs.replace(one, citations=()) for one in said]  # a text is closed when its sources come with the finish
    return ir.Response(
        id=draw(st.none() | words), model=draw(words), parts=(*thoughts, *lent, *said, *calls), stop=stop, usage=draw(st.none() | COUNTED)
    )


def events_of(response, size):
    """An answer as a decoder would give it, its words in pieces of this size."""
    for index, part in enumerate(response.parts):
        said = part.arguments if isinstance(part, ir.Call) else part.text
        bare = {ir.Text: {"text": "", "citations": ()}, ir.Reasoning: {"text": "", "seal": None}, ir.Call: {"arguments": "", "seal": None}}
        yield Opened(index, structs.replace(part, **bare[type(part)]))
        yield from (Grew(index, said[start : start + size]) for start in range(0, len(said), size))
        yield from (Cited(index, citation) for citation in getattr(part, "citations", ()))
        if getattr(part, "seal", None) is not None:
            yield Sealed(index, part.seal)
        yield Closed(index)


def streamed(response, size, framing):
    """The stream of an answer, through its framing."""
    writer = encoder(structs.replace(CONTEXT, aliases={}))
    frames = [*writer.open(Start(response.id, response.model), None)]
    frames += [frame for event in events_of(response, size) for frame in writer.part(event)]
    frames += writer.close(Ending(response.stop, usage=response.usage))
    data = b"".join(framed(framing, event, body, first=not place) for place, (event, body) in enumerate(frames)) + closing(framing, opened=True)
    cutter = splitter(framing, 1 << 20)
    return [frame for frame in cutter.feed(data) if frame.data]


def folded(events):
    """What a stream said, as an answer."""
    response, parts = ir.Response(id=None, model=None), {}
    for event in events:
        if isinstance(event, Start):
            response = structs.replace(response, id=event.id, model=event.model)
        elif isinstance(event, Finish):
            response = structs.replace(response, stop=event.stop)
        elif isinstance(event, UsageSeen):
            response = structs.replace(response, usage=event.usage)
        elif isinstance(event, Opened):
            parts[event.index] = event.part
        elif not isinstance(event, Closed):
            parts[event.index] = grown(parts[event.index], event)
    return structs.replace(response, parts=tuple(parts.values()))


def grown(part, event):
    if isinstance(event, Sealed):
        return structs.replace(part, seal=event.seal)
    if isinstance(event, Cited):
        return structs.replace(part, citations=(*part.citations, event.citation))
    name = "arguments" if isinstance(part, ir.Call) else "text"
    return structs.replace(part, **{name: getattr(part, name) + event.text})


def enclosed(part):
    """The part as a client sees it: its token in an envelope."""
    seal = getattr(part, "seal", None)
    return part if seal is None else structs.replace(part, seal=ir.Seal(seals.wrap(seal, "anthropic"), ir.SealKind.THOUGHT, GEMINI))


@pytest.mark.parametrize("framing", [Framing.SSE, Framing.JSON_ARRAY])
@given(response=answers(), size=st.integers(1, 4))
def test_a_stream_decodes_to_its_events_and_folds_to_the_whole_answer(framing, response, size):
    reader = decoder()
    found = folded(event for frame in streamed(response, size, framing) for event in reader.feed(frame))
    assert found == structs.replace(response, parts=tuple(map(enclosed, response.parts)))
    assert found == read(write(response, structs.replace(CONTEXT, aliases={})))
    assert reader.unread == []


@given(response=answers(), size=st.integers(1, 4))
def test_the_sdk_reads_the_same_words_calls_and_finish_in_all_chunks(response, size):
    chunks = [types.GenerateContentResponse.model_validate_json(frame.data) for frame in streamed(response, size, Framing.SSE)]
    whole = types.GenerateContentResponse.model_validate_json(write(response, structs.replace(CONTEXT, aliases={})))

    def said(answers):
        parts = [part for answer in answers for part in answer.candidates[0].content.parts or []]
        texts = ["".join(part.text for part in parts if part.text and bool(part.thought) is thinks) for thinks in (False, True)]
        signatures = [part.thought_signature for part in parts if part.thought_signature]
        return texts, [part.function_call for part in parts if part.function_call], signatures, answers[-1].candidates[0].finish_reason

    assert said(chunks) == said([whole])
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert chunks[-1].candidates[0].grounding_metadata == whole.candidates[0].grounding_metadata
