"""A Messages stream read into events: block by block, the ways in which servers deviate, and the same answer as the whole body gives."""

from __future__ import annotations

import json

import pytest
from msgspec import structs

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.messages.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.messages.decode import decoder
from asgi_surface.codecs.messages.read import read
from asgi_surface.errors import Code, ErrorFacts, UpstreamDetail, UpstreamError
from asgi_surface.events import Cited, Closed, End, Fault, Finish, Grew, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Frame, Framing
from asgi_surface.ir import Call, Citation, Reasoning, Refusal, Request, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation


def start(**members):
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [], "stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": said | members}


def begin(index, kind="text", **members):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind} | members}


def delta(index, kind, **members):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def words(index, said):
    return delta(index, "text_delta", text=said)


def piece(index, said):
    return delta(index, "input_json_delta", partial_json=said)


def stop(index):
    return {"type": "content_block_stop", "index": index}


def outcome(reason="end_turn", **members):
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None} | members}


END = {"type": "message_stop"}
SOURCE = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "..", "encrypted_index": "I"}
CITED = Citation("https://a.example", "A")
SIGNED = Seal("sig==", SealKind.SIGNATURE, MESSAGES)
REDACTED = Seal("data==", SealKind.REDACTED, MESSAGES)
CALL = Opened(0, Call("t1", "f", ""))
USE = begin(0, "tool_use", id="t1", name="f", input={})
TOLD = [Start("msg_1", "up")]


def frame(said, event=b""):
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    return Frame(data, event, data)


def decoded(*frames):
    """The events of whole frames, and what was skipped."""
    reader = decoder()
    events = [event for said in frames for event in reader.feed(frame(said))]
    assert set(reader.unread) <= set(ANSWER_ROWS)
    return events, reader.unread


@pytest.mark.parametrize("client", [CHAT, RESPONSES, GEMINI])
@pytest.mark.parametrize(("blocks", "sound"), [([begin(0, text="Hi"), stop(0)], False), ([], False), ([USE, piece(0, "{}"), stop(0)], True)])
def test_no_client_gets_an_answer_that_stopped_for_a_call_and_has_none(client, blocks, sound):
    context = Context(request=Request(turns=()), aliases={}, seal_domain="up", upstream=MESSAGES, model="m", request_id="r", now=0)
    limits = {"event_bytes": 9999, "output_chars": 99, "eof_ends": False}
    encoder = CODECS[client].encoder(context)
    told = Translation(decoder(), encoder, upstream=Framing.SSE, downstream=Framing.SSE, blame=UpstreamError, **limits)
    told.feed(b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in [start(), *blocks, outcome("tool_use"), END]))
    assert told.closed
    assert (told.fault and told.fault.code) == (None if sound else Code.UPSTREAM_BAD_RESPONSE)


READ = {
    "text": ([begin(0, text=""), words(0, "H"), words(0, "i"), stop(0)], [Opened(0, Text("")), Grew(0, "H"), Grew(0, "i"), Closed(0)]),
    "text at the beginning": ([begin(0, text="Hi"), stop(0)], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
    "no words": ([begin(0, text=""), words(0, ""), stop(0)], []),
    "a source before its words": (
        [begin(0, text=""), delta(0, "citations_delta", citation=SOURCE), words(0, "A"), stop(0)],
        [Opened(0, Text("")), Grew(0, "A"), Cited(0, CITED), Closed(0)],
    ),
    "sources at the beginning and after": (
        [begin(0, text="A", citations=[SOURCE]), delta(0, "citations_delta", citation=SOURCE), stop(0)],
        [Opened(0, Text("")), Grew(0, "A"), Cited(0, CITED), Cited(0, CITED), Closed(0)],
    ),
    "thinking": (
        [
            begin(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="T"),
            delta(0, "signature_delta", signature="sig=="),
            stop(0),
        ],
        [Opened(0, Reasoning("")), Grew(0, "T"), Sealed(0, SIGNED), Closed(0)],
    ),
    "thinking not shown": (
        [begin(0, "thinking", thinking=""), delta(0, "signature_delta", signature="sig=="), stop(0)],
        [Opened(0, Reasoning("")), Sealed(0, SIGNED), Closed(0)],
    ),
    "thinking whole at the beginning": (
        [begin(0, "thinking", thinking="T", signature="sig=="), stop(0)],
        [Opened(0, Reasoning("")), Grew(0, "T"), Sealed(0, SIGNED), Closed(0)],
    ),
    "a signature repeated": (
        [begin(0, "thinking", thinking="T", signature="old"), delta(0, "signature_delta", signature="sig=="), stop(0)],
        [Opened(0, Reasoning("")), Grew(0, "T"), Sealed(0, SIGNED), Closed(0)],
    ),
    "no thinking": (
        [begin(0, "thinking", thinking="", signature=""), delta(0, "thinking_delta"), delta(0, "signature_delta", signature=""), stop(0)],
        [],
    ),
    "redacted": ([begin(0, "redacted_thinking", data="data=="), stop(0)], [Opened(0, Reasoning("")), Sealed(0, REDACTED), Closed(0)]),
    "call": (
        [USE, piece(0, ""), piece(0, '{"a": '), piece(0, "1}"), stop(0)],
        [CALL, Grew(0, '{"a": '), Grew(0, "1}"), Closed(0)],
    ),
    "call whole at the beginning": (
        [begin(0, "tool_use", id="t1", name="f", input={"a": 1}), stop(0)],
        [CALL, Grew(0, '{"a": 1}'), Closed(0)],
    ),
    "call whole at the beginning and in pieces": (
        [begin(0, "tool_use", id="t1", name="f", input={"a": 1}), piece(0, '{"a":1}'), stop(0)],
        [CALL, Grew(0, '{"a":1}'), Closed(0)],
    ),
    "no index": (
        [{"type": "content_block_start", "content_block": {"type": "text", "text": "Hi"}}, {"type": "content_block_stop"}],
        [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)],
    ),
    "announced twice": ([USE, USE, piece(0, "{}"), stop(0)], [CALL, Grew(0, "{}"), Closed(0)]),
    "an index used again": (
        [USE, piece(0, '{"a":1}'), begin(0, "tool_use", id="t2", name="g"), piece(0, '{"b":2}'), stop(0)],
        [CALL, Grew(0, '{"a":1}'), Closed(0), Opened(1, Call("t2", "g", "")), Grew(1, '{"b":2}'), Closed(1)],
    ),
    "an index used again after no arguments": (
        [USE, begin(0, text="A"), stop(0)],
        [CALL, Grew(0, "{}"), Closed(0), Opened(1, Text("")), Grew(1, "A"), Closed(1)],
    ),
    "interleaved": (
        [begin(5, "tool_use", id="t1", name="f"), begin(2, text=""), words(2, "A"), piece(5, "{}"), stop(5), words(2, "B"), stop(2)],
        [CALL, Opened(1, Text("")), Grew(1, "A"), Grew(0, "{}"), Closed(0), Grew(1, "B"), Closed(1)],
    ),
    "no arguments and a block after": (
        [USE, piece(0, ""), stop(0), begin(1, text="A"), stop(1)],
        [CALL, Grew(0, "{}"), Closed(0), Opened(1, Text("")), Grew(1, "A"), Closed(1)],
    ),
    "a block that was not begun ends": ([stop(3)], []),
}


@pytest.mark.parametrize(("frames", "events"), READ.values(), ids=READ)
def test_a_block_is_read(frames, events):
    assert decoded(*frames) == (events, [])


def test_arguments_keep_their_text():
    exact = '{"id":19876543210987654321, "y":1.0,"z":-0}'
    whole = json.dumps(USE).encode().replace(b'"input": {}', b'"input": ' + exact.encode())
    assert decoded(whole, stop(0))[0] == [CALL, Grew(0, exact), Closed(0)]


UNREAD = {
    "hosted tools": (
        [
            begin(0, "server_tool_use", id="s", name="web_search", input={}),
            piece(0, '{"query": "x"}'),
            stop(0),
            begin(1, "web_search_tool_result", content=[]),
            stop(1),
        ],
        ["answer:server_tool_use", "answer:web_search_tool_result"],
    ),
    "compaction": (
        [begin(0, "compaction", content=None), delta(0, "compaction_delta", content="S"), stop(0)],
        ["answer:compaction"],
    ),
    "newer block": ([begin(0, "hologram\r\nx-evil: 1"), delta(0, "hologram_delta"), stop(0)], ["answer:unknown"]),
    "newer events": ([{"type": "brand_new_event", "delta": "x"}, {"type": "brand_new_event"}], ["answer:unknown"]),
    "members": (
        [
            start(container={"id": "c"}, diagnostics=None, input_transformations=[]),
            outcome(None, container={"id": "c"}) | {"context_management": {"applied_edits": [{}]}, "input_transformations": [{}]},
        ],
        ["answer:container", "answer:context_management", "answer:input_transformations"],
    ),
    "members that say nothing": ([start(container=None), outcome(None) | {"context_management": {"applied_edits": []}}], []),
    "what a refusal says": (
        [outcome(None, stop_details={"type": "refusal", "category": "bio", "explanation": None, "recommended_model": "m"})],
        ["answer:stop_details.category", "answer:stop_details.recommended_model"],
    ),
    "what a usage says": (
        [
            start(usage={"speed": "fast", "inference_geo": "global", "service_tier": "batch"}),
            outcome(None) | {"usage": {"server_tool_use": {"web_search_requests": 2}, "speed": "fast"}},
        ],
        ["usage:inference_geo", "usage:speed", "usage:service_tier.batch", "usage:server_tool_use"],
    ),
    "a usage that says nothing": (
        [
            start(usage={"speed": "standard", "inference_geo": "not_available", "cache_creation": {"ephemeral_5m_input_tokens": 0}}),
            outcome(None) | {"usage": {"server_tool_use": {"web_search_requests": 0}}},
        ],
        [],
    ),
}


@pytest.mark.parametrize(("frames", "unread"), UNREAD.values(), ids=UNREAD)
def test_what_is_skipped_is_named(frames, unread):
    events, found = decoded(*frames)
    assert found == unread
    assert events in ([], TOLD)


def test_what_is_skipped_of_a_block_leaves_the_rest():
    place = {"type": "char_location", "cited_text": "x", "document_index": 0}
    frames = [begin(0, text=""), delta(0, "citations_delta", citation=place), words(0, "A"), delta(0, "future_delta"), delta(0, "future_delta")]
    assert decoded(*frames, stop(0)) == ([Opened(0, Text("")), Grew(0, "A"), Closed(0)], ["answer:char_location", "answer:unknown"])
    said = {"toolset_name": "s", "caller": {"type": "code_execution_20250825", "tool_id": "c"}}
    events, unread = decoded(begin(0, "tool_use", id="t1", name="f", **said), piece(0, "{}"), stop(0))
    assert (events, unread) == ([CALL, Grew(0, "{}"), Closed(0)], ["answer:tool_use.caller", "answer:tool_use.toolset_name"])
    assert decoded(begin(0, "tool_use", id="t1", name="f", caller={"type": "direct"}), piece(0, "{}"), stop(0))[1] == []


USED = {"input_tokens": 3, "cache_read_input_tokens": 75, "cache_creation_input_tokens": 20, "output_tokens": 1}


def test_the_message_is_read():
    used = USED | {"service_tier": "standard"}
    events, _ = decoded({"type": "ping"}, start(usage=used), start(usage=used), outcome(None) | {"usage": {"output_tokens": 9}})
    assert events == [
        Start("msg_1", "up", None, "default"),
        UsageSeen(Usage(98, 1, 75, 20)),
        UsageSeen(Usage(98, 1, 75, 20)),
        UsageSeen(Usage(98, 9, 75, 20)),
    ]


def test_a_tier_or_a_model_may_come_late():
    late = outcome(None) | {"usage": {"output_tokens": 9, "service_tier": "priority"}}
    events, unread = decoded(start(usage=USED), start(usage=USED, model="up-2"), late, late)
    assert [event for event in events if isinstance(event, Told)] == [Told("up-2"), Told("up-2", "priority")]
    assert unread == []


def test_absent_facts_stay_absent():
    assert decoded({"type": "message_start"}, outcome(None) | {"usage": {}})[0] == [Start()]


def test_later_input_tokens_are_the_true_ones():
    events, _ = decoded(start(usage={"input_tokens": 2230, "output_tokens": 1}), outcome() | {"usage": {"input_tokens": 12284, "output_tokens": 9}})
    assert events[-1] == UsageSeen(Usage(12284, 9))


FINISHES = {
    "end_turn": ([outcome()], [Finish(Stop.END)]),
    "end_turn with a call": ([USE, piece(0, "{}"), stop(0), outcome()], [Finish(Stop.TOOLS)]),
    "max_tokens with a call": ([USE, piece(0, "{"), stop(0), outcome("max_tokens")], [Finish(Stop.LENGTH)]),
    "stop_sequence": ([outcome("stop_sequence", stop_sequence="END")], [Finish(Stop.STOP_SEQUENCE, "END")]),
    "compaction": ([outcome("compaction")], [Finish(Stop.PAUSE)]),
    "newer": ([outcome("solar_flare")], [Finish(Stop.OTHER)]),
    "empty": ([outcome("")], []),
    "none": ([outcome(None)], []),
    "two": ([outcome("tool_use"), outcome("end_turn")], [Finish(Stop.TOOLS), Finish(Stop.END)]),
    "two ends": ([outcome(), END, END], [Finish(Stop.END), End(), End()]),
    "an end without finish": ([END], [End()]),
}


@pytest.mark.parametrize(("frames", "events"), FINISHES.values(), ids=FINISHES)
def test_the_finish_is_read(frames, events):
    assert [event for event in decoded(*frames)[0] if isinstance(event, (Finish, End))] == events


NO_ARGUMENTS = {
    "tool_use": ([USE, stop(0), outcome("tool_use"), END], ["{}"]),
    "null": ([begin(0, "tool_use", id="t1", name="f", input=None), stop(0), outcome("tool_use"), END], ["{}"]),
    "nobody closed it": ([USE, outcome("tool_use"), END], ["{}"]),
    "cut": ([USE, stop(0), outcome("max_tokens"), END], []),
    "refused": ([USE, stop(0), outcome("refusal"), END], []),
    "paused": ([USE, stop(0), outcome("pause_turn"), END], []),
    "an end that is newer": ([USE, stop(0), outcome("solar_flare"), END], []),
    "no reason": ([USE, stop(0), END], ["{}"]),
    "cut and nobody closed it": ([USE, outcome("max_tokens"), END], []),
}


@pytest.mark.parametrize(("frames", "grown"), NO_ARGUMENTS.values(), ids=NO_ARGUMENTS)
def test_no_arguments_are_an_empty_object_but_in_a_cut_answer(frames, grown):
    events, _ = decoded(*frames)
    assert [event.text for event in events if isinstance(event, Grew)] == grown
    assert events.count(Closed(0)) == 1


HALVES = {
    "closed": [USE, piece(0, '{"a": "par'), stop(0), outcome("max_tokens"), END],
    "nobody closed it": [USE, piece(0, '{"a": "par'), outcome("max_tokens"), END],
    "not the last": [USE, piece(0, '{"a": "par'), begin(1, text="A"), stop(0), stop(1), outcome("refusal"), END],
}


@pytest.mark.parametrize("frames", HALVES.values(), ids=HALVES)
def test_half_a_call_is_told_as_far_as_it_came(frames):
    events, unread = decoded(*frames)
    assert [event for event in events if getattr(event, "index", None) == 0] == [CALL, Grew(0, '{"a": "par'), Closed(0)]
    assert unread == []


def test_a_block_that_nobody_closed_is_whole_at_the_end():
    frames = [begin(0, text="A"), outcome("end_turn"), words(0, "B"), END]
    assert decoded(*frames)[0] == [Opened(0, Text("")), Grew(0, "A"), Finish(Stop.END), Grew(0, "B"), Closed(0), End()]


def test_a_refusal_s_explanation_is_its_words_once():
    refused = outcome("refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "Not that."})
    events, unread = decoded(refused, refused)
    assert events == [Opened(0, Refusal("")), Grew(0, "Not that."), Closed(0), Finish(Stop.REFUSAL), Finish(Stop.REFUSAL)]
    assert unread == ["answer:stop_details.category"]


FAULTS = {
    "overloaded": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ErrorFacts("Overloaded", UpstreamDetail("overloaded_error")),
    ),
    "no type": ({"error": {"message": "m", "code": 503}}, ErrorFacts("m", status=503)),
    "no words": ({"type": "error"}, ErrorFacts("")),
}


@pytest.mark.parametrize(("said", "facts"), FAULTS.values(), ids=FAULTS)
def test_an_error_is_read(said, facts):
    assert decoded(start(), said)[0] == [*TOLD, Fault(facts)]


def test_the_kind_of_a_frame_without_type_is_its_event_name():
    reader = decoder()
    said = {"index": 0, "content_block": {"type": "text", "text": "A"}}
    assert list(reader.feed(frame(said, b"content_block_start"))) == [Opened(0, Text("")), Grew(0, "A")]


BROKEN = {
    "no JSON": [b"{"],
    "no object": [[]],
    "an index that is none": [stop("0")],
    "no block": [{"type": "content_block_start", "index": 0}],
    "text that is none": [begin(0, text=""), words(0, None)],
    "text at the beginning that is none": [begin(0)],
    "text of no block": [words(0, "A")],
    "text after its block": [begin(0, text=""), stop(0), words(0, "A")],
    "text of a call": [USE, words(0, "A")],
    "arguments of a text": [begin(0, text=""), piece(0, "{}")],
    "arguments that are none": [USE, piece(0, {})],
    "a call without name": [begin(0, "tool_use", id="t1")],
    "a call without id": [begin(0, "tool_use", name="f")],
    "a call whose input is no object": [begin(0, "tool_use", id="t1", name="f", input="{}"), stop(0)],
    "a delta without type": [begin(0, text=""), {"type": "content_block_delta", "index": 0, "delta": {"text": "A"}}],
}


@pytest.mark.parametrize("frames", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_an_error(frames):
    with pytest.raises(ValueError):  # noqa: PT011  -- the contract of a codec; the words are for nobody
        decoded(*frames)


def folded(events, unread):
    """The whole answer that the events tell."""
    start, finish = (next(event for event in events if isinstance(event, kind)) for kind in (Start, Finish))
    parts = {}
    for event in events:
        if isinstance(event, Opened):
            parts[event.index] = event.part
        elif isinstance(event, Grew):
            part = parts[event.index]
            said = "arguments" if isinstance(part, Call) else "text"
            parts[event.index] = structs.replace(part, **{said: getattr(part, said) + event.text})
        elif isinstance(event, Cited):
            part = parts[event.index]
            parts[event.index] = structs.replace(part, citations=(*part.citations, event.citation))
        elif isinstance(event, Sealed):
            parts[event.index] = structs.replace(parts[event.index], seal=event.seal)
    return Response(
        id=start.id,
        model=start.model,
        parts=tuple(parts.values()),
        stop=finish.stop,
        stop_sequence=finish.sequence,
        usage=[event.usage for event in events if isinstance(event, UsageSeen)][-1],
        service_tier=start.service_tier,
        unread=tuple(unread),
    )


STREAMED = {
    "text": lambda i, b: [begin(i, text=""), *[delta(i, "citations_delta", citation=c) for c in b.get("citations", [])], words(i, b["text"])],
    "thinking": lambda i, b: [
        begin(i, "thinking", thinking="", signature=""),
        delta(i, "thinking_delta", thinking=b["thinking"]),
        delta(i, "signature_delta", signature=b["signature"]),
    ],
    "tool_use": lambda i, b: [begin(i, **{"kind": "tool_use"} | b | {"input": {}}), piece(i, ""), piece(i, json.dumps(b["input"]))],
}


def streamed(answer):
    """The frames in which the API streams the answer."""
    content = answer["content"]
    frames = [start(id=answer["id"], model=answer["model"], usage=answer["usage"] | {"output_tokens": 1})]
    for index, block in enumerate(content):
        made = STREAMED.get(block["type"], lambda i, b: [begin(i, **{"kind": b["type"]} | b)])
        frames += [*made(index, block), stop(index)]
    finish = outcome(answer["stop_reason"], stop_sequence=answer["stop_sequence"], stop_details=answer.get("stop_details"))
    return [*frames, finish | {"usage": {"output_tokens": answer["usage"]["output_tokens"]}}, END]


WHOLE = {
    "text": {"content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": ""}, {"type": "text", "text": "A.", "citations": [SOURCE]}]},
    "reasoning and calls": {
        "content": [
            {"type": "thinking", "thinking": "T", "signature": "sig=="},
            {"type": "redacted_thinking", "data": "data=="},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
        ],
        "stop_reason": "tool_use",
    },
    "refused": {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio", "explanation": "Not that."}},
    "sequence": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
}


@pytest.mark.parametrize("members", WHOLE.values(), ids=WHOLE)
def test_folding_a_stream_gives_the_whole_answer(members):
    plain = {"id": "msg_1", "model": "up", "content": [], "stop_reason": "end_turn", "stop_sequence": None}
    answer = plain | {"usage": USED | {"output_tokens": 30, "service_tier": "priority"}} | members
    assert folded(*decoded(*streamed(answer))) == read(json.dumps(answer).encode())


def test_what_a_message_holds_as_it_begins_is_told_once():
    """The API sends an empty list there. SDKs keep what a server has put into it."""
    held = [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "novel"},
    ]
    events, unread = decoded(start(content=held), start(content=held), outcome(), END)
    thought = [Opened(0, Reasoning("")), Grew(0, "hm"), Sealed(0, SIGNED), Closed(0)]
    said = [Opened(1, Text("")), Grew(1, "Hi"), Closed(1), Opened(2, Call("t1", "f", "")), Grew(2, "{}"), Closed(2)]
    assert events == [*TOLD, *thought, *said, Finish(Stop.TOOLS), End()]
    assert unread == ["answer:unknown"]
    assert decoded(start(content="Hi"), outcome(), END)[0] == [*TOLD, Finish(Stop.END), End()]
