"""Events written as a Messages stream: the grammar block by block. The official SDK accumulates the frames to the answer that is written whole, and
decoding them gives the events back."""

from __future__ import annotations

import json

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs
from pydantic import TypeAdapter

from asgi_surface import ir, seals
from asgi_surface.assembly import unfold
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.messages.decode import decoder
from asgi_surface.codecs.messages.encode import encoder
from asgi_surface.codecs.messages.write import unsaid, write
from asgi_surface.errors import Code, GatewayError, UpstreamDetail, UpstreamError
from asgi_surface.events import Cited, Closed, End, Ending, Finish, Found, Grew, Logged, Opened, Sealed, Start, UsageSeen
from asgi_surface.framing import Frame, Framing, splitter
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Response, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

ASKED = ir.Request(turns=())
OMITTED = ir.Request(turns=(), effort=ir.Effort(adaptive=True, summary="omitted"))
REDACTED = Seal("data==", SealKind.REDACTED, MESSAGES)
SEALED = Seal("gAAAA", SealKind.ENCRYPTED, RESPONSES, id="rs_1")
THOUGHT = Seal("dGhvdWdodA==", SealKind.THOUGHT, GEMINI)
EVENT = TypeAdapter(RawMessageStreamEvent)


def context(request=ASKED, aliases=()):
    return Context(request=request, aliases=dict(aliases), seal_domain="up", upstream=CHAT, model="m", request_id="r1", now=1_700_000_000)


def parted(*parts, pieces=2):
    """The events that tell the parts, text in pieces; a seal comes where the decoders put it."""
    for index, part in enumerate(parts):
        yield from sought(index, part) if isinstance(part, Search) else worded(index, part, pieces)
        yield Closed(index)


def sought(index, part):
    return [Opened(index, Search(part.id, part.query)), Found(index, part.sources, part.failed)]


def worded(index, part, pieces):
    call = isinstance(part, Call)
    said = part.arguments if call else part.text
    seal = getattr(part, "seal", None)
    yield Opened(index, structs.replace(part, arguments="", seal=None) if call else type(part)(""))
    yield from [Sealed(index, seal)] if call and seal else []
    size = max(1, -(-len(said) // pieces))
    yield from (Grew(index, said[at : at + size]) for at in range(0, len(said), size))
    yield from [Sealed(index, seal)] if seal and not call else []
    yield from (Cited(index, source) for source in getattr(part, "citations", ()))


def held_to(grammar, frames):
    """The frames, when together they are a stream of the surface."""
    grammar(MESSAGES, b"".join(b"event: %b\ndata: %b\n\n" % frame for frame in frames), sound=False)
    return frames


def encoded(grammar, events, *, start=None, usage=None, ending=None, asked=None):
    """All frames of a stream, as data, each named by its type."""
    writer = encoder(asked or context())
    assert (writer.sequential, writer.several) == (True, False)
    frames = [*writer.open(start or Start("msg_1", "up"), usage), *(frame for event in events for frame in writer.part(event))]
    frames += writer.close(ending or Ending(Stop.END))
    return held_to(grammar, frames)


def told(grammar, events, **members):
    """What stands between the opening and the closing frames."""
    return [json.loads(data) for _, data in encoded(grammar, events, **members)][1:-2]


def accumulated(frames):
    """The message that the SDK makes of the frames, each of which its type takes strictly."""
    snapshot, buffers = None, {}
    for _, data in frames:
        event = EVENT.validate_json(data, strict=True)
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return json.loads(snapshot.model_dump_json(exclude_none=True))


def begin(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, kind, **members):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def thinking(index, *words, seal):
    said = [delta(index, "thinking_delta", thinking=word) for word in words]
    signed = delta(index, "signature_delta", signature=seals.wrap(seal, "up"))
    return [begin(index, type="thinking", thinking="", signature=""), *said, signed, stop(index)]


def use(index, *pieces, identity="c1", name="f"):
    said = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [begin(index, type="tool_use", id=identity, name=name, input={}), *said, stop(index)]


def words(index, *pieces):
    return [begin(index, type="text", text=""), *[delta(index, "text_delta", text=piece) for piece in pieces], stop(index)]


A, B = Citation("https://a.example", "A"), Citation("https://b.example")


def searched(index, content, identity="asf_ws_1"):
    asked = delta(index, "input_json_delta", partial_json='{"query":"who \\"is\\" it"}')
    return [
        begin(index, type="server_tool_use", id=identity, name="web_search", input={}),
        asked,
        stop(index),
        begin(index + 1, type="web_search_tool_result", tool_use_id=identity, content=content),
        stop(index + 1),
    ]


def envelope(source):
    return seals.wrap(Seal(f"{source.title}\n{source.url}", SealKind.TEXT, CHAT), "up")


def results(*sources):
    return [{"type": "web_search_result", "url": one.url, "title": one.title, "encrypted_content": envelope(one)} for one in sources]


def cited(index, source):
    place = {"type": "web_search_result_location", "url": source.url, "title": source.title or None, "cited_text": ""}
    return delta(index, "citations_delta", citation=place | {"encrypted_index": envelope(source)})


QUERY = 'who "is" it'
FAILED = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


WRITTEN = {
    "text": ([Text("Hi")], words(0, "H", "i")),
    "no words": ([Text(""), Refusal(""), Reasoning(""), Text("A")], words(0, "A")),
    "refusal": ([Refusal("No")], words(0, "N", "o")),
    "words without token": ([Reasoning("RS"), Text("A")], [*thinking(0, "R", "S", seal=Seal("RS", SealKind.TEXT, CHAT)), *words(1, "A")]),
    "sealed elsewhere": ([Reasoning("RS", SEALED)], thinking(0, "R", "S", seal=SEALED)),
    "a token without words": ([Reasoning("", SEALED)], thinking(0, seal=SEALED)),
    "redacted": (
        [Reasoning("", REDACTED), Text("A")],
        [begin(0, type="redacted_thinking", data=seals.wrap(REDACTED, "up")), stop(0), *words(1, "A")],
    ),
    "calls": (
        [Call("c1", "f", "{}"), Call("c2", "g", '{"a":1}')],
        [*use(0, "{", "}"), *use(1, '{"a"', ":1}", identity="c2", name="g")],
    ),
    "a call's seal": ([Call("c1", "f", "{}", seal=THOUGHT)], [*thinking(0, seal=structs.replace(THOUGHT, id="c1")), *use(1, "{", "}")]),
    "no arguments": ([Call("c1", "f", "")], use(0, "")),
    "minted id": ([Call("call_0", "f", "{}", minted=True)], use(0, "{", "}", identity="asf_call_0_r1")),
    "alias": ([Call("c1", "short", "{}")], use(0, "{", "}", name="a much longer name")),
}


@pytest.mark.parametrize(("parts", "frames"), WRITTEN.values(), ids=WRITTEN)
def test_a_part_is_a_block(grammar, parts, frames):
    assert told(grammar, parted(*parts), asked=context(aliases={"short": Alias("a much longer name")})) == frames


AT_ONCE = {
    "text": ([Opened(0, Text("Hi")), Closed(0)], words(0, "Hi")),
    "reasoning": ([Opened(0, Reasoning("R")), Sealed(0, SEALED), Closed(0)], thinking(0, "R", seal=SEALED)),
    "call": ([Opened(0, Call("c1", "f", '{"a":1}')), Closed(0)], use(0, '{"a":1}')),
    "sealed call": (
        [Opened(0, Call("c1", "f", '{"a":1}')), Sealed(0, THOUGHT), Closed(0)],
        [*thinking(0, seal=structs.replace(THOUGHT, id="c1")), *use(1, '{"a":1}')],
    ),
    "a seal too late for its place": ([Opened(0, Call("c1", "f", "{")), Grew(0, "}"), Sealed(0, THOUGHT), Closed(0)], use(0, "{}")),
    "what the surface cannot say": (
        [Opened(0, Text("A")), Cited(0, Citation("u")), Logged(0, Raw(b"[]")), Sealed(0, SEALED), Closed(0)],
        words(0, "A"),
    ),
    "what a part does not have": (
        [Opened(0, Call("c1", "f", "{}")), Found(0, (A,)), Cited(0, A), Closed(0), Opened(1, Search("ws_1", QUERY)), Grew(1, "x"), Closed(1)],
        [*use(0, "{}"), *searched(1, [])[:3]],
    ),
}


@pytest.mark.parametrize(("events", "frames"), AT_ONCE.values(), ids=AT_ONCE)
def test_what_is_known_at_once_is_told_at_once(grammar, events, frames):
    assert told(grammar, events) == frames


@pytest.mark.parametrize("seal", [None, SEALED])
def test_hidden_thinking_keeps_its_token_or_its_words_in_the_envelope(grammar, seal):
    found = told(grammar, parted(Reasoning("RS", seal)), asked=context(OMITTED))
    assert found == thinking(0, seal=seal or Seal("RS", SealKind.TEXT, CHAT))


BEGUN = Usage(100, 1, 75)


def test_the_opening_has_the_upstream_s_facts_or_the_gateway_s(grammar):
    opening = json.loads(
        encoded(grammar, [], start=Start("msg_1", "up", service_tier="default"), usage=BEGUN, ending=Ending(Stop.END, usage=BEGUN))[0][1]
    )
    assert opening == {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "up",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 25, "cache_read_input_tokens": 75, "output_tokens": 1, "service_tier": "standard"},
        },
    }
    bare = json.loads(encoded(grammar, [], start=Start())[0][1])["message"]
    assert (bare["id"], bare["model"], bare["usage"]) == ("asf_msg_r1", "m", {"input_tokens": 0, "output_tokens": 0})


@pytest.mark.parametrize(
    ("begun", "later", "said"),
    [(None, "priority", "priority"), ("default", "default", None), ("default", "priority", "priority"), (None, "flex", None)],
)
def test_a_tier_that_is_news_is_told_with_the_end(grammar, begun, later, said):
    writer = encoder(context())
    frames = writer.open(Start("msg_1", "up", service_tier=begun), None)
    writer.note(Start("msg_1", "up", service_tier=later), None)
    used = json.loads(held_to(grammar, frames + writer.close(Ending(Stop.END)))[1][1])["usage"]
    assert used.get("service_tier") == said


USED = {
    "unknown": (None, {"output_tokens": 0}),
    "input unknown": (Usage(output=7), {"output_tokens": 7}),
    "plain": (Usage(11, 7), {"input_tokens": 11, "output_tokens": 7}),
    "cached": (
        Usage(100, 30, 75, 20, 9),
        {
            "input_tokens": 5,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 75,
            "output_tokens": 30,
            "output_tokens_details": {"thinking_tokens": 9},
        },
    ),
}


@pytest.mark.parametrize(("usage", "expected"), USED.values(), ids=USED)
def test_usage_is_told_at_the_end(grammar, usage, expected):
    *_, outcome, end = encoded(grammar, [], ending=Ending(Stop.STOP_SEQUENCE, "END", usage))
    assert json.loads(outcome[1]) == {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        "usage": expected,
    }
    assert end == (b"message_stop", b'{"type":"message_stop"}')


ENDS = [
    (Stop.END, [], "end_turn"),
    (Stop.PAUSE, [], "pause_turn"),
    (Stop.OTHER, [], "other"),
    (Stop.FILTER, [Text("par")], "refusal"),
    (Stop.LENGTH, [Text("par")], "max_tokens"),
    (Stop.TOOLS, [Call("c", "f", "{}")], "tool_use"),
    (Stop.END, [Refusal("No.")], "end_turn"),
    (Stop.FILTER, [Refusal("No.")], "refusal"),
    (Stop.LENGTH, [Refusal("No.")], "max_tokens"),
    (Stop.LENGTH, [Call("c", "f", '{"a": "par')], "max_tokens"),
]


@pytest.mark.parametrize(("reason", "parts", "said"), ENDS)
def test_the_finish_is_told(grammar, reason, parts, said):
    assert json.loads(encoded(grammar, parted(*parts), ending=Ending(reason))[-2][1])["delta"] == {"stop_reason": said, "stop_sequence": None}


CUTS = [Stop.LENGTH, Stop.FILTER, Stop.REFUSAL, Stop.OTHER, Stop.PAUSE]


@pytest.mark.parametrize("reason", CUTS)
def test_half_a_call_is_told_as_far_as_it_came_wherever_it_stands(grammar, reason):
    parts = [Call("c1", "f", '{"a": "par'), Text("A"), Call("c2", "f", "{"), Call("c3", "f", "")]
    found = told(grammar, parted(*parts, pieces=1), ending=Ending(reason))
    assert found == [*use(0, '{"a": "par'), *words(1, "A"), *use(2, "{", identity="c2"), *use(3, "", identity="c3")]


def test_a_call_of_free_text_is_an_error_as_in_a_whole_answer(grammar):
    part = Call("c", "p", "free", Form.CUSTOM)
    with pytest.raises(UpstreamError) as whole:
        write(Response(id="msg_1", model="up", parts=(part,), stop=Stop.TOOLS), context())
    with pytest.raises(UpstreamError) as streamed:
        encoded(grammar, parted(part))
    assert (streamed.value.code, streamed.value.message) == (whole.value.code, whole.value.message)


SEARCHES = {
    "found": (parted(Search("ws_1", QUERY, (A, B))), searched(0, results(A, B))),
    "failed": (parted(Search("ws_1", QUERY, failed=True)), searched(0, FAILED)),
    "cut before it gave anything": ([Opened(0, Search("ws_1", QUERY)), Closed(0)], searched(0, [])[:3]),
    "cited": (
        parted(Search("ws_1", QUERY, (A, B)), Text("x", citations=(A, Citation("u"), B))),
        [*searched(0, results(A, B)), begin(2, type="text", text=""), delta(2, "text_delta", text="x"), cited(2, A), cited(2, B), stop(2)],
    ),
    "cited before its words": (
        [*parted(Search("ws_1", QUERY, (A,))), Opened(1, Text("")), Cited(1, A), Grew(1, "x"), Grew(1, "y"), Closed(1)],
        [
            *searched(0, results(A)),
            begin(2, type="text", text=""),
            delta(2, "text_delta", text="x"),
            cited(2, A),
            delta(2, "text_delta", text="y"),
            stop(2),
        ],
    ),
    "cited before it was found": (parted(Text("x", citations=(A,)), Search("ws_1", QUERY, (A,))), [*words(0, "x"), *searched(1, results(A))]),
}


@pytest.mark.parametrize(("events", "frames"), [(list(events), frames) for events, frames in SEARCHES.values()], ids=SEARCHES)
def test_a_search_is_told_as_the_surface_s_own(grammar, events, frames):
    assert told(grammar, events) == frames
    counted = json.loads(encoded(grammar, events, ending=Ending(Stop.END, usage=Usage(1, 2)))[-2][1])["usage"]
    assert counted["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}
    assert json.loads(encoded(grammar, events)[-2][1])["usage"] == {"output_tokens": 0}


USED = [UsageSeen(Usage(9)), Finish(Stop.END), UsageSeen(Usage(9, 4))]
CITED = {
    "a source that was found": (Citation(A.url), set()),
    "another": (Citation("u"), {"answer:citations"}),
}


@pytest.mark.parametrize(("source", "lost"), CITED.values(), ids=CITED)
@pytest.mark.parametrize("used", [USED, USED[1:]], ids=["usage at both ends", "usage at the end"])
def test_a_streamed_search_is_counted_whenever_usage_comes_and_loses_no_source_that_it_found(source, lost, used):
    limits = {"event_bytes": 99, "output_chars": 99, "eof_ends": True}
    one = Translation(decoder(), encoder(context()), upstream=Framing.SSE, downstream=Framing.SSE, blame=UpstreamError, **limits)
    answer = parted(Search("ws_1", QUERY, (A, B)), Text("x", citations=(B, source)))
    body = one.say([Start("msg_1", "up"), *answer, *used, End()])
    frames = splitter(Framing.SSE, len(body)).feed(body)
    assert set(unsaid(one.held, context())) == lost
    usage = {"input_tokens": 9, "output_tokens": 4, "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0}}
    assert accumulated([(b"", frame.data) for frame in frames])["usage"] == usage


FAILURES = {
    "overloaded": (
        UpstreamError(Code.UPSTREAM_ERROR, "Overloaded", detail=UpstreamDetail("overloaded_error")),
        {"type": "overloaded_error", "message": "Overloaded"},
    ),
    "another surface's type": (
        UpstreamError(Code.UPSTREAM_RATE_LIMITED, "quota", detail=UpstreamDetail("insufficient_quota")),
        {"type": "rate_limit_error", "message": "quota"},
    ),
    "our own": (GatewayError(Code.UPSTREAM_TRUNCATED, "cut"), {"type": "api_error", "message": "cut"}),
}


@pytest.mark.parametrize(("error", "said"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("begun", [True, False])
def test_a_failure_is_one_error_event(grammar, error, said, begun):
    writer = encoder(context())
    opening = [*writer.open(Start("msg_1", "up"), None), *writer.part(Opened(0, Text("par")))] if begun else []
    ((name, data),) = frames = writer.fail(error)
    held_to(grammar, [*opening, *frames])
    assert (name, json.loads(data)) == (b"error", {"type": "error", "error": said, "request_id": "r1"})


LETTERS = st.text(min_size=1, max_size=9)
NAMES = st.from_regex(r"[a-zA-Z_]{1,8}", fullmatch=True)
OBJECTS = st.dictionaries(LETTERS, st.integers(-9, 9) | LETTERS, max_size=2).map(json.dumps)
SIGNED = st.builds(Seal, LETTERS, st.just(SealKind.SIGNATURE), st.just(MESSAGES))
SOURCES = st.sampled_from([A, Citation("https://c.example", "C")])
PARTS = st.one_of(
    st.builds(Text, LETTERS, citations=st.lists(SOURCES, max_size=2).map(tuple)),
    st.builds(Refusal, LETTERS),
    st.builds(Search, NAMES, LETTERS, st.lists(SOURCES, max_size=2).map(tuple), st.booleans()),
    st.builds(Call, NAMES, NAMES, OBJECTS, seal=st.none() | st.just(THOUGHT)),
    st.builds(Reasoning, st.text(max_size=9), st.none() | SIGNED),
    st.just(Reasoning("", REDACTED)),
)
COUNTS = st.integers(0, 1 << 40)
USAGES = st.none() | st.builds(Usage, st.none() | COUNTS, st.none() | COUNTS, st.none() | COUNTS, st.none() | COUNTS, st.none() | COUNTS)
STOPS = st.sampled_from([Stop.END, Stop.TOOLS, Stop.LENGTH, Stop.PAUSE, Stop.STOP_SEQUENCE, Stop.FILTER])


@settings(max_examples=60, database=None)
@given(st.lists(PARTS, max_size=4), USAGES, STOPS, st.none() | LETTERS, st.integers(1, 4), st.sampled_from([ASKED, OMITTED]))
def test_the_sdk_accumulates_the_stream_to_the_whole_answer(grammar, parts, usage, reason, sequence, pieces, request_):
    asked = context(request_)
    frames = encoded(grammar, parted(*parts, pieces=pieces), ending=Ending(reason, sequence, usage), asked=asked)
    whole = json.loads(write(Response(id="msg_1", model="up", parts=tuple(parts), usage=usage, stop=reason, stop_sequence=sequence), asked))
    assert accumulated(frames) == {name: value for name, value in whole.items() if value is not None}


def redecoded(frames):
    reader = decoder()
    events = [event for name, data in frames for event in reader.feed(Frame(data, name, data))]
    assert reader.unread == []
    return events


def opened(event):
    """An event of ours as its client knows it: the envelope taken off, which named us."""
    if not isinstance(event, Sealed):
        return event
    inside = seals.unwrap(event.seal.token)
    return structs.replace(event, seal=structs.replace(inside, domain=""))


EXACT = st.one_of(
    st.builds(Text, LETTERS),
    st.builds(Call, NAMES, NAMES, OBJECTS),
    st.builds(Reasoning, st.text(max_size=9), SIGNED),
    st.just(Reasoning("", REDACTED)),
)


@settings(max_examples=60, database=None)
@given(st.lists(EXACT, max_size=4), st.integers(1, 4), st.sampled_from([Stop.TOOLS, Stop.LENGTH, Stop.PAUSE]), st.none() | LETTERS)
def test_decoding_what_was_written_gives_the_events(grammar, parts, pieces, reason, sequence):
    start, usage = Start("msg_1", "up", service_tier="priority"), Usage(11, 7, 3)
    events = list(parted(*parts, pieces=pieces))
    found = redecoded(encoded(grammar, events, start=start, ending=Ending(reason, sequence, usage)))
    assert list(map(opened, found)) == [start, UsageSeen(Usage(0, 0)), *events, Finish(reason, sequence), UsageSeen(usage), End()]


ENDS = {  # the parts of an answer, and the types of the blocks that a client gets
    "a proof behind the words": ([Text("hi"), Reasoning("", THOUGHT)], ["text"]),
    "two of them": ([Text("hi"), Reasoning("", THOUGHT), Reasoning("", THOUGHT)], ["text"]),
    "a proof before the words": ([Reasoning("", THOUGHT), Text("hi")], ["thinking", "text"]),
    "a proof between": ([Text("a"), Reasoning("", THOUGHT), Text("b")], ["text", "thinking", "text"]),
    "a proof before thoughts": ([Reasoning("", THOUGHT), Reasoning("hm", THOUGHT), Text("hi")], ["thinking", "thinking", "text"]),
    "a proof alone": ([Reasoning("", THOUGHT)], ["thinking"]),
    "thoughts at the end": ([Text("hi"), Reasoning("hm", THOUGHT)], ["text", "thinking"]),
}


@pytest.mark.parametrize(("parts", "kinds"), ENDS.values(), ids=ENDS)
def test_a_token_of_geminis_is_not_the_last_block(parts, kinds):
    response = Response(id="m", model="m", parts=tuple(parts))
    written = json.loads(write(response, context()))["content"]
    assert [block["type"] for block in written] == kinds
    stream = encoder(context())
    events = [event for event in unfold(response) if not isinstance(event, Start | Finish)]
    frames = [*stream.open(Start("m", "m"), None), *(one for event in events for one in stream.part(event)), *stream.close(Ending(Stop.END))]
    begun = [json.loads(data) for name, data in frames if name == b"content_block_start"]
    assert [(one["index"], one["content_block"]["type"]) for one in begun] == list(enumerate(kinds))
    lost = unsaid(response, context())
    assert ("answer:seals" in lost) == (len(kinds) < len(parts))
