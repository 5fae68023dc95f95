"""The native observer: whole frames pass as they are, and the client is told the end exactly once, last."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.codecs.responses.stream import ResponsesWatch
from asgi_surface.errors import Code, ErrorFacts, UpstreamDetail, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Stop, Usage
from asgi_surface.lifecycle import Kind, State
from asgi_surface.stream import Passage
from asgi_surface.surfaces import RESPONSES

STOPS = {"stop": Stop.END, "length": Stop.LENGTH}


class Wire:
    """A made-up surface: `{"text"|"stop"|"used"|"error"|"end": …}`, with what tells its end apart from the others."""

    framing, eof_ends, named = Framing.SSE, True, False

    def see(self, frame):
        if frame.data == b"[DONE]":
            return Sight((Signal(Kind.END),))
        said = json.loads(frame.data)
        signals = []
        if "stop" in said:
            signals.append(Signal(Kind.FINISH, stop=STOPS[said["stop"]]))
        if "used" in said:
            signals.append(Signal(Kind.USAGE, usage=Usage(input=said.get("read"), output=said["used"])))
        if "error" in said:
            signals.append(Signal(Kind.FAULT, fault=ErrorFacts(said["error"], UpstreamDetail(type="oops"), 503)))
        if "end" in said:
            signals.append(Signal(Kind.END))
        return Sight(
            tuple(signals), chars=len(said.get("text", "")), event=next(iter(said)).encode() if self.named else b"", alive="ping" not in said
        )

    def failure(self, error, request_id):
        return b"error" if self.named else b"", json.dumps({"error": f"{error.code} {request_id}"}).encode()


class Chat(Wire):
    """Ends with `[DONE]`, or with the body after a finish."""

    body = b': hello\n\ndata: {"text": "a"}\n\ndata: {"text": "\xc3\xa9"}\n\ndata: {"stop": "stop"}\n\ndata: {"used": 7}\n\ndata: [DONE]\n\n'


class Messages(Wire):
    """Named events; only its own last event ends it. The wire uses CRLF."""

    eof_ends, named = False, True
    body = (
        b'event: text\r\ndata: {"text": "a"}\r\n\r\nevent: ping\r\ndata: {"ping": 1}\r\n\r\n'
        b'event: stop\r\ndata: {"stop": "length", "used": 7}\r\n\r\nevent: end\r\ndata: {"end": 1}\r\n\r\n'
    )


class Gemini(Wire):
    """Ends with the body alone."""

    body = b'data: {"text": "a"}\r\n\r\ndata: {"text": "b", "stop": "stop"}\r\n\r\ndata: {"text": "c", "stop": "length", "used": 7}\r\n\r\n'


class Array(Gemini):
    """The same without `alt=sse`."""

    framing = Framing.JSON_ARRAY
    body = b'[{"text": "a"}\n,\r\n{"text": "]", "stop": "stop"}\n,\n{"text": "c", "stop": "length", "used": 7}\n]\n'


WIRES = [Chat, Messages, Gemini, Array]


def passage(wire, **settings_):
    options = {"event_bytes": 1000, "output_chars": 100, "eof_ends": wire.eof_ends, "request_id": "req_1"} | settings_
    return Passage(wire(), wire.framing, **options)


def ran(wire, *chunks, **settings_):
    one = passage(wire, **settings_)
    return one, b"".join(one.feed(chunk) for chunk in chunks)


def broken(wire, code, *, first=False):
    data = json.dumps({"error": f"{code} req_1"}).encode()
    if wire.framing is Framing.JSON_ARRAY:
        return (b"[" if first else b",") + data + b"]"
    return (b"event: error\n" if wire.named else b"") + b"data: " + data + b"\n\n"


def unix(body):
    return body.replace(b"\r\n", b"\n")


TIMEOUT = UpstreamError(Code.UPSTREAM_TIMEOUT, "too slow")


@pytest.mark.parametrize("wire", WIRES)
def test_a_good_stream_passes_byte_for_byte(wire):
    one, out = ran(wire, wire.body)
    assert out + one.eof() == wire.body
    assert (one.state, one.closed, one.fault, one.opening_fault) == (State.DONE, True, None, None)
    assert (one.stop, one.usage) == (Stop.END if wire is Chat else Stop.LENGTH, Usage(output=7))
    assert (one.frames, one.beats) == {Chat: (6, 5), Messages: (4, 3)}.get(wire, (3, 3))


@pytest.mark.parametrize("wire", WIRES)
@given(cuts=st.lists(st.integers(0, 200), max_size=6), limit=st.sampled_from([20, 30, 45, 1000]), chars=st.sampled_from([1, 2, 100]))
@settings(max_examples=40, deadline=None, database=None)
def test_the_chunks_do_not_matter(wire, cuts, limit, chars):
    places = [0, *sorted(cut % len(wire.body) for cut in cuts), len(wire.body)]
    results = []
    for chunks in ([wire.body], [wire.body[start:end] for start, end in pairwise(places)]):
        one, out = ran(wire, *chunks, event_bytes=limit, output_chars=chars)
        results.append((out + one.eof(), one.state, one.stop, one.usage, one.fault and one.fault.code, one.frames, one.beats))
    assert results[0] == results[1]


@pytest.mark.parametrize("how", [Passage.eof, lambda one: one.fail(TIMEOUT)])
@pytest.mark.parametrize("wire", WIRES)
def test_cut_at_every_byte_the_end_is_told_once_and_last(wire, how):
    for at in range(len(wire.body) + 1):
        one, out = ran(wire, wire.body[:at])
        first = not one.frames
        out += how(one)
        assert one.state in {State.DONE, State.FAILED}
        error = broken(wire, one.fault.code, first=first) if one.fault else b""
        assert bool(error) == (one.state is State.FAILED)
        assert out.endswith(error)
        assert out.count(b'"error"') == bool(error)
        kept = out.removesuffix(error)
        # The blank line that a whole last frame lacked is in the stream's own line ending, if it had any yet.
        assert unix(wire.body).startswith((unix(kept), unix(kept.removesuffix(b"]"))))
        assert error or b'"stop"' in kept
        assert wire.framing is Framing.SSE or json.loads(out)
        assert (one.feed(wire.body[at:]), one.eof(), one.fail(TIMEOUT)) == (b"", b"", b""), "nothing follows the end"


FINISH = {
    Chat: b'data: {"stop": "stop"}\n\n',
    Messages: b'event: stop\r\ndata: {"stop": "stop"}\r\n\r\n',
    Gemini: b'data: {"stop": "stop"}\r\n\r\n',
    Array: b'[{"stop": "stop"}',
}
DONE, CUT = State.DONE, State.FAILED


@pytest.mark.parametrize(
    ("wire", "tail", "state", "added"),
    [
        (Chat, b"", DONE, b""),
        (Chat, b": bye", DONE, b""),
        (Chat, b'data: {"used": 7}', DONE, b'data: {"used": 7}\n\n'),
        (Chat, b"data: [DONE]", DONE, b"data: [DONE]\n\n"),
        (Chat, b'data: {"used', CUT, None),
        (Chat, b"data: [DON", CUT, None),
        (Chat, b"data: 1]\n", CUT, None),
        (Messages, b"", CUT, None),
        (Messages, b'event: end\r\ndata: {"end": 1}', DONE, b'event: end\r\ndata: {"end": 1}\r\n\r\n'),
        (Messages, b'event: end\r\ndata: {"end"', CUT, None),
        (Gemini, b'data: {"text": "d"}\r\n\r', DONE, b'data: {"text": "d"}\r\n\r\n'),
        (Array, b"", DONE, b"]"),
        (Array, b"\n,\n", DONE, b"]"),
        (Array, b"\n]\n ", DONE, b"\n]\n "),
        (Array, b', {"te', CUT, None),
        (Array, b"] junk", CUT, None),
    ],
)
def test_the_body_ends_after_a_finish(wire, tail, state, added):
    one, out = ran(wire, FINISH[wire] + tail)
    assert out == FINISH[wire]
    expected = broken(wire, Code.UPSTREAM_TRUNCATED) if added is None else added
    assert (one.eof(), one.state) == (expected, state)
    assert (one.fault and one.fault.code) == (Code.UPSTREAM_TRUNCATED if state is CUT else None)


@pytest.mark.parametrize(
    ("wire", "raw"),
    [
        (Chat, b'data: {"error": "full"}\n\n'),
        (Messages, b'event: error\r\ndata: {"error": "full"}\r\n\r\n'),
        (Gemini, b'data: {"error": "full"}\r\n\r\n'),
        (Array, b',\n{"error": "full"}'),
    ],
)
def test_an_error_of_the_upstream_stands_as_it_is(wire, raw):
    close = b"]" if wire is Array else b""
    one, out = ran(wire, FINISH[wire] + raw + raw)
    assert out == FINISH[wire] + raw + close
    assert (one.eof(), one.state, one.opening_fault) == (b"", State.FAILED, None)
    assert isinstance(one.fault, UpstreamError)
    assert (one.fault.code, one.fault.message, one.fault.status, one.fault.detail.type) == (Code.UPSTREAM_ERROR, "full", 503, "oops")


@pytest.mark.parametrize(
    ("wire", "body", "out"),
    [
        (Chat, b': wait\n\ndata: {"error": "key sk-1"}\n\n', b': wait\n\ndata: {"error": "key ***"}\n\n'),
        (Messages, b'data: {"error": "key sk-1"}\n\n', b'event: error\ndata: {"error": "key ***"}\n\n'),
        (Array, b'[{"error": "key sk-1"}]', b'[{"error": "key ***"}]'),
    ],
)
def test_an_error_that_opens_the_stream_is_told_apart_and_scrubbed(wire, body, out):
    one, got = ran(wire, body, scrub=lambda data: data.replace(b"sk-1", b"***"))
    assert got == out
    assert one.opening_fault == ErrorFacts("key ***", UpstreamDetail(type="oops"), 503)
    assert (one.fault and one.fault.message, one.beats) == ("key ***", 1)


@pytest.mark.parametrize("wire", [Chat, Messages, Array])
def test_pings_before_an_error_promise_nothing(wire):
    ping, error = b'{"ping": 1}', b'{"error": "full"}'
    frames = (b"[%b", b",%b", b",%b") if wire is Array else (b"data: %b\n\n",) * 3
    one, _ = ran(wire, b"".join(frame % data for frame, data in zip(frames, (ping, ping, error), strict=True)))
    assert (one.opening_fault and one.opening_fault.message, one.beats) == ("full", 1)
    one, _ = ran(wire, b"".join(frame % data for frame, data in zip(frames, (b'{"text": "a"}', ping, error), strict=True)))
    assert (one.opening_fault, one.state) == (None, State.FAILED)


def test_an_end_without_a_finish_is_no_success_and_nothing_is_added():
    one, out = ran(Chat, b"data: [DONE]\n\ndata: [DONE]\n\n")
    assert (out, one.eof(), one.state) == (b"data: [DONE]\n\n", b"", State.FAILED)
    assert (one.fault and one.fault.code, one.opening_fault) == (Code.UPSTREAM_TRUNCATED, ErrorFacts(one.fault.message))
    one, _ = ran(Chat, b'data: {"text": "a"}\n\ndata: [DONE]\n\n')
    assert (one.fault and one.fault.code, one.opening_fault) == (Code.UPSTREAM_TRUNCATED, None)


FIRST = {Chat: b'data: {"text": "aaa"}\n\n', Messages: b'event: text\ndata: {"text": "aaa"}\n\n', Array: b'[{"text": "aaa"}'}
SECOND = {
    Code.EVENT_TOO_LARGE: {Chat: b"data: " + b"1" * 60, Messages: b": " + b"x" * 60, Array: b"," + b" " * 60},
    Code.OUTPUT_TOO_LARGE: {Chat: b'data: {"text": "bbb"}\n\n', Messages: b'data: {"text": "bbb"}\n\n', Array: b', {"text": "bbb"}'},
    Code.UPSTREAM_BAD_RESPONSE: {Chat: b"data: nope\n\n", Messages: b': \xff\ndata: {"text": ""}\n\n', Array: b", nope,"},
}


@pytest.mark.parametrize("wire", FIRST)
@pytest.mark.parametrize("code", SECOND)
def test_what_breaks_a_bound_is_not_delivered(wire, code):
    for chunks in ([FIRST[wire] + SECOND[code][wire]], [FIRST[wire], SECOND[code][wire]]):
        one, out = ran(wire, *chunks, event_bytes=50, output_chars=3)
        assert out == FIRST[wire] + broken(wire, code)
        assert (one.state, one.fault and one.fault.code, one.frames) == (State.FAILED, code, 1)
        assert one.feed(FIRST[wire]) == one.eof() == b""


@pytest.mark.parametrize("wire", WIRES)
def test_what_fails_before_anything_was_sent(wire):
    for one in (passage(wire), passage(wire)):
        assert one.fail(TIMEOUT) == broken(wire, Code.UPSTREAM_TIMEOUT, first=True)
        assert (one.fault, one.frames, one.beats) == (TIMEOUT, 0, 0)
    empty = passage(wire)
    assert empty.eof() == broken(wire, Code.UPSTREAM_TRUNCATED, first=True)


def test_an_array_that_is_none():
    one, out = ran(Array, b'{"error": "full"}')
    assert out == broken(Array, Code.UPSTREAM_BAD_RESPONSE, first=True)
    assert one.feed(b"{") == b""


def test_an_array_without_elements_gets_its_error():
    one, out = ran(Array, b"[", b"]")
    assert (out, one.eof()) == (b"", broken(Array, Code.UPSTREAM_TRUNCATED, first=True))


def test_a_nameless_frame_gets_the_name_its_surface_has():
    one, out = ran(Messages, b'data: {"text": "a"}\r\n\r\n: c\n\nevent: other\ndata: {"text": "a"}\n\n')
    assert out == b'event: text\r\ndata: {"text": "a"}\r\n\r\n: c\n\nevent: other\ndata: {"text": "a"}\n\n'
    assert one.state is State.OPEN


def test_the_weightiest_reason_stands_and_repeated_finishes_pass():
    body = b'data: {"stop": "length"}\n\ndata: {"stop": "stop"}\n\ndata: {"text": "late"}\n\n'
    one, out = ran(Chat, body)
    assert (out, one.state, one.stop) == (body, State.FINISHED, Stop.LENGTH)


def test_usage_is_merged_and_what_follows_the_end_counts_for_the_record_only():
    start = b'data: {"read": 5, "used": 1}\n\ndata: {"stop": "stop", "used": 2}\n\ndata: [DONE]\n\n'
    after = b'data: {"text": "more", "used": 3}\n\n: c\n\ndata: {"error": "late"}\n\ndata: nope\n\ndata: [DONE]\n\n'
    for chunks in ([start + after], [start, after]):
        one, out = ran(Chat, *chunks)
        assert out + one.eof() == start
        assert (one.state, one.usage, one.frames, one.fault) == (State.DONE, Usage(input=5, output=3), 3, None)


def test_the_client_leaves():
    one, out = ran(Chat, b'data: {"text": "a"}\n\n')
    one.cancel()
    assert one.feed(b'data: {"stop": "stop", "used": 1}\n\ndata: [DONE]\n\n') == one.fail(TIMEOUT) == one.eof() == b""
    assert (one.state, one.closed, one.stop, one.usage, one.fault, one.frames) == (State.CANCELLED, True, None, None, None, 1)
    assert out


def _event(kind, number, **members):
    data = json.dumps({"type": f"response.{kind}", "sequence_number": number} | members).encode()
    return f"event: response.{kind}\n".encode() + b"data: " + data + b"\n\n"


ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": []}
BEGUN = [
    _event("created", 0, response={"id": "resp_1", "object": "response", "output": []}),
    _event("output_item.added", 1, output_index=0, item=ITEM | {"status": "in_progress"}),
    _event("output_item.done", 2, output_index=0, item=ITEM),
    _event("output_item.added", 3, output_index=1, item=ITEM | {"id": "msg_2"}),
]
UNPASSED = {
    Code.OUTPUT_TOO_LARGE: _event("output_text.delta", 4, item_id="msg_2", output_index=1, content_index=0, delta="x" * 9),
    Code.EVENT_TOO_LARGE: _event("output_text.delta", 4, item_id="msg_2", output_index=1, content_index=0, delta="x" * 999),
    Code.UPSTREAM_BAD_RESPONSE: _event("completed", 4, response=[]),
    Code.UPSTREAM_TRUNCATED: b"",
}


@pytest.mark.parametrize("code", UNPASSED)
def test_a_responses_failure_goes_on_from_what_the_client_got(grammar, code):
    one = Passage(ResponsesWatch(), Framing.SSE, event_bytes=500, output_chars=len("ok") + 4, eof_ends=False, request_id="req_1")
    text = _event("output_text.delta", 4, item_id="msg_2", output_index=1, content_index=0, delta="ok")
    last = UNPASSED[code].replace(b'"sequence_number": 4', b'"sequence_number": 5')
    out = one.feed(b"".join(BEGUN) + text + last) + one.eof()
    grammar(RESPONSES, out, relayed=True)
    assert (one.fault and one.fault.code, out.count(b"event: ")) == (code, 6)
    failed = json.loads(out.rpartition(b"data: ")[2])
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", 5)
    assert failed["response"]["output"] == [ITEM]


def test_a_responses_failure_repeats_no_more_than_it_may_keep():
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "A" * (1 << 20)}
    one = Passage(ResponsesWatch(), Framing.SSE, event_bytes=1 << 22, output_chars=100, eof_ends=False, request_id="req_1")
    late = _event("output_item.done", 5, output_index=2, item=ITEM | {"id": "msg_3"})
    out = one.feed(b"".join(BEGUN) + _event("output_item.done", 4, output_index=1, item=image) + late) + one.eof()
    failed = json.loads(out.rpartition(b"data: ")[2])
    assert (failed["sequence_number"], failed["response"]["output"]) == (6, [ITEM])
