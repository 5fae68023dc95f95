"""Limits of converted answers, in time and in size: silence, keep-alives in the client's own words, and streams that are packed."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib

import pytest

from asgi_surface.codings import _STEP
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.layers.conversion.answer import Answer
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:  # pragma: no cover
    from backports import zstd

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
# The upstreams are of another surface than the client, and each surface is one once.
PAIRS = [(CHAT, MESSAGES), (RESPONSES, CHAT), (MESSAGES, RESPONSES), (GEMINI, CHAT), ("array", MESSAGES), (CHAT, GEMINI)]
SSE = [(b"content-type", b"text/event-stream")]
LONG, SHORT = 60.0, 0.04
COMMENT, PING = b": keep-alive\n\n", b'event: ping\ndata: {"type": "ping"}\n\n'
BEATS = {CHAT: COMMENT, RESPONSES: COMMENT, MESSAGES: PING}
KEPT = [(client, origin) for client, origin in PAIRS if client in BEATS]
BEATING = {"keepalive_seconds": 0.015}
CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's answer broke off")


@pytest.fixture
def limited(ask, gateway, upstream, wires, records):
    """One request to an upstream of another surface under the limits given; gives the wire, the reply, the upstream and the record."""

    def one(client, origin, *, stream=True, sink=None, leave=None, limits=(), binding="", **script):
        wire, up = wires[client], upstream(headers=script.pop("headers", SSE), **script)
        top = "[limits]\n" + "".join(f"{limit} = {value}\n" for limit, value in {"keepalive_seconds": 0, **dict(limits)}.items())
        reply = ask(gateway(up, origin, top=top, binding=binding), *wire.ask(stream=stream), sink=sink, leave=leave)
        [record] = records
        assert len(up.calls) == 1
        return wire, reply, up, record

    return one


def failed(record, code):
    assert (record.ending, record.code) == (Ending.FAILED, code)


# Silence ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [[], [b": warming up\n\n"], [b"\n", 0.02] * 40])
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_first_event_has_its_time(limited, client, origin, said):
    _, reply, up, record = limited(client, origin, chunks=[*said, LONG], limits={"first_byte_seconds": SHORT})
    assert (reply.status, reply.headers["content-type"], reply.headers["x-surface-error"]) == (504, "application/json", Code.UPSTREAM_TIMEOUT)
    assert (up.cancelled, record.status) == (1, 504)
    failed(record, Code.UPSTREAM_TIMEOUT)


@pytest.mark.parametrize("limit", ["idle_seconds", "total_seconds"])
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_stream_that_falls_silent_ends_with_an_error_in_it(limited, wires, client, origin, limit):
    first = wires[origin].frames[:3] if origin in (RESPONSES, MESSAGES) else wires[origin].frames[:1]
    wire, reply, up, record = limited(client, origin, chunks=[*first, LONG], limits={limit: SHORT})
    assert reply.whole
    assert (reply.status, wire.end(reply.body), up.cancelled) == (200, "error", 1)
    assert b"Hi" in reply.body
    failed(record, Code.UPSTREAM_TIMEOUT)


@pytest.mark.parametrize(("client", "origin"), [(CHAT, MESSAGES), (GEMINI, MESSAGES), (MESSAGES, CHAT)])
def test_the_upstreams_pings_are_swallowed_and_no_answer(limited, wires, client, origin):
    beat = PING if origin == MESSAGES else b": x\n\n"
    wire, reply, up, record = limited(
        client, origin, chunks=[*wires[origin].frames[: 3 if origin == MESSAGES else 1], *([beat, 0.02] * 40)], limits={"idle_seconds": SHORT}
    )
    assert (wire.end(reply.body), up.cancelled) == ("error", 1)
    assert b"ping" not in reply.body
    assert b": x" not in reply.body
    failed(record, Code.UPSTREAM_TIMEOUT)


@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_stream_that_never_ends_has_a_total(limited, wires, client, origin):
    said = {CHAT: 0, MESSAGES: 2, RESPONSES: 2, GEMINI: 0}[origin]
    begun, again = wires[origin].frames[:said], wires[origin].frames[said]
    if origin == RESPONSES:
        again = again.replace(b'"sequence_number": 2', b'"sequence_number": 9')
    wire, reply, up, record = limited(client, origin, chunks=[*begun, *([again, 0.02] * 40)], limits={"total_seconds": SHORT})
    assert (reply.status, wire.end(reply.body), up.cancelled) == (200, "error", 1)
    failed(record, Code.UPSTREAM_TIMEOUT)


@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[0] != "array"])
@pytest.mark.parametrize("binding", ["", 'dialect.stream = "always"\n'])
def test_a_folded_answer_has_the_time_of_a_document(limited, wires, client, origin, binding):
    """However lively its stream is."""
    said = {CHAT: 0, MESSAGES: 2, RESPONSES: 2, GEMINI: 0}[origin]
    begun, again = wires[origin].frames[:said], wires[origin].frames[said]
    limits = {"json_seconds": SHORT, "total_seconds": SHORT, "first_byte_seconds": 30}
    _, reply, up, record = limited(client, origin, stream=False, chunks=[*begun, *([again, 0.02] * 40)], limits=limits, binding=binding)
    assert (reply.status, reply.headers["x-surface-error"], up.cancelled) == (504, Code.UPSTREAM_TIMEOUT, 1)
    failed(record, Code.UPSTREAM_TIMEOUT)


def test_a_slow_client_is_not_the_upstreams_fault(limited, wires):
    async def slow(message):
        del message
        await asyncio.sleep(0.1)

    wire, reply, _, record = limited(MESSAGES, CHAT, chunks=wires[CHAT].frames, sink=slow, limits={"idle_seconds": 0.04, "first_byte_seconds": 0.04})
    assert (wire.end(reply.body), record.ending) == ("end", Ending.COMPLETED)


# Keep-alives ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "origin"), KEPT)
def test_a_waiting_client_is_kept_in_its_own_words(limited, wires, client, origin):
    """Before the first event and between events, never after the end; what is said between is what would have been said without."""
    frames = wires[origin].frames
    wire, reply, _, record = limited(client, origin, chunks=[0.05, *frames[:1], 0.05, *frames[1:], 0.05], limits=BEATING)
    beat = BEATS[client]
    head, *rest = reply.body.replace(beat, b"\0").split(b"\0")
    told = [piece for piece in rest if piece]
    assert (reply.status, reply.headers["content-type"], head, wire.end(reply.body)) == (200, wire.media, b"", "end")
    assert len(rest) > len(told), "more than one while nothing had come"
    assert len(told) <= 2 + (origin == GEMINI), "Gemini's end is that of its body"
    assert rest[-1] == told[-1], "none after the end"
    assert all(piece.endswith(b"\n\n") for piece in told)
    assert (record.ending, record.frames) == (Ending.COMPLETED, len(frames))


FAILURES = {
    "status": ({"status": 429}, "error"),
    "document": ({}, "error"),
    "event": ({}, "event"),
    "garbage": ({}, "garbage"),
    "silence": ({}, "silence"),
    "cut": ({}, "cut"),
}
CODES = {
    "garbage": Code.UPSTREAM_BAD_RESPONSE,
    "silence": Code.UPSTREAM_TIMEOUT,
    "cut": Code.UPSTREAM_TRUNCATED,
    "error": Code.UPSTREAM_RATE_LIMITED,
    "event": Code.UPSTREAM_RATE_LIMITED,
}
STATUSES = {Code.UPSTREAM_BAD_RESPONSE: 502, Code.UPSTREAM_TIMEOUT: 504, Code.UPSTREAM_TRUNCATED: 502, Code.UPSTREAM_RATE_LIMITED: 429}


def last_words(wire, kind):
    event = (b"event: error\n" if wire.surface == MESSAGES else b"") + b"data: " + wire.error + b"\n\n"
    return {"error": wire.error, "event": event, "garbage": b"data: {garbage}\n\n", "silence": LONG, "cut": CUT}[kind]


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_keep_alive_commits_the_200_and_nothing_else_before_the_first_event(limited, wires, client, origin, how, late):
    """A failure before it has its own status, after it it is an error in the stream. Gemini's clients know no keep-alive."""
    script, kind = FAILURES[how]
    limits = {**BEATING, "first_byte_seconds": 0.05 if late else 0.01} if how == "silence" else BEATING if late else {"keepalive_seconds": 30}
    chunks = [0.04, last_words(wires[origin], kind)] if late and how != "silence" else [last_words(wires[origin], kind)]
    wire, reply, _, record = limited(client, origin, chunks=chunks, limits=limits, **script)
    failed(record, CODES[kind])
    if late and client in BEATS:
        assert (reply.status, wire.end(reply.body), reply.body.startswith(BEATS[client])) == (200, "error", True)
    else:
        assert (reply.status, reply.headers["content-type"]) == (STATUSES[CODES[kind]], "application/json")


@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[0] not in BEATS])
def test_a_gemini_client_waits_without(limited, wires, client, origin):
    frames = wires[origin].frames
    wire, reply, _, _ = limited(client, origin, chunks=[0.04, frames[0], 0.04, *frames[1:]], limits=BEATING)
    assert wire.end(reply.body) == "end"
    assert COMMENT not in reply.body


@pytest.mark.parametrize(("client", "origin"), PAIRS[:4])
def test_a_json_client_waits_without_too(limited, wires, client, origin):
    frames = wires[origin].frames
    _, reply, _, record = limited(client, origin, stream=False, chunks=[0.04, *frames[:1], 0.04, *frames[1:]], limits=BEATING)
    assert (reply.body[:1], record.ending) == (b"{", Ending.COMPLETED)


@pytest.mark.parametrize("client", BEATS)
def test_no_keep_alive_while_the_upstream_talks(limited, wires, client):
    origin = CHAT if client != CHAT else GEMINI
    frames = wires[origin].frames
    wire, reply, _, _ = limited(client, origin, chunks=[piece for frame in frames for piece in (frame, 0.02)], limits={"keepalive_seconds": 0.5})
    assert BEATS[client] not in reply.body
    assert wire.end(reply.body) == "end"


def test_a_client_that_leaves_while_it_is_kept(limited):
    _, reply, up, record = limited(MESSAGES, CHAT, chunks=[LONG], leave=0.04, limits=BEATING)
    assert reply.body.startswith(PING)
    assert (up.cancelled, record.ending) == (1, Ending.DISCONNECTED)


# Packed streams ---------------------------------------------------------------------------------------------------------------------------

CODINGS = {b"gzip": gzip.compress, b"deflate": zlib.compress, b"zstd": zstd.compress}


def packed(coding):
    return {"headers": [*SSE, (b"content-encoding", coding)]}


@pytest.mark.parametrize("step", [1, 50, 100_000])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("coding", CODINGS)
def test_a_packed_stream_is_bounded_by_what_it_says(limited, wires, coding, stream, step):
    """Not by its size as a document: the frames around a word are many times the word."""
    frames = b"".join(wires[CHAT].frames)
    raw = CODINGS[coding](b": padding\n\n" * 1000 + frames)
    assert len(frames) > 300
    chunks = [raw[at : at + step] for at in range(0, len(raw), step)]
    _, reply, _, record = limited(MESSAGES, CHAT, stream=stream, chunks=chunks, limits={"response_bytes": 300}, **packed(coding))
    assert (reply.status, record.ending, record.code) == (200, Ending.COMPLETED, None)
    assert b'"Hi"' in reply.body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    ("filler", "limit", "code"),
    [
        (b"x" * 4_000_000, "event_bytes", Code.EVENT_TOO_LARGE),
        (b'"},"finish_reason":null}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"abc' * 5_000, "output_chars", Code.OUTPUT_TOO_LARGE),
    ],
)
def test_a_packed_bomb_is_stopped_where_it_bursts(limited, wires, monkeypatch, coding, stream, filler, limit, code):
    """Little is unpacked beyond the bound."""
    unpacked, feed = [], Answer._feed

    async def counted(self, data):
        unpacked.append(len(data))
        await feed(self, data)

    monkeypatch.setattr(Answer, "_feed", counted)
    body = wires[CHAT].frames[0] + b'data: {"choices":[{"index":0,"delta":{"content":"' + filler
    chunks = [CODINGS[coding](body), LONG]
    wire, reply, up, record = limited(MESSAGES, CHAT, stream=stream, chunks=chunks, limits={limit: 9_000}, **packed(coding))
    failed(record, code)
    assert (reply.status, up.cancelled) == ((200, 1) if stream else (502, 0)), "the failure stops the upstream's call, in whichever way"
    assert not stream or wire.end(reply.body) == "error"
    assert sum(unpacked) <= 4 * _STEP


@pytest.mark.parametrize("coding", CODINGS)
def test_a_packed_document_is_bounded_while_it_is_unpacked(limited, coding):
    document = b'{"id":"c","object":"chat.completion","pad":"' + b"x" * 4_000_000
    _, reply, _, record = limited(MESSAGES, CHAT, stream=False, chunks=[CODINGS[coding](document)], limits={"response_bytes": 1000}, **packed(coding))
    assert reply.status == 502
    failed(record, Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_packed_stream_that_is_cut_is_no_answer(limited, wires, coding, stream):
    raw = CODINGS[coding](b"".join(wires[CHAT].frames[:-1]))
    wire, reply, _, record = limited(MESSAGES, CHAT, stream=stream, chunks=[raw[:-3]], **packed(coding))
    failed(record, Code.UPSTREAM_BAD_RESPONSE)
    assert reply.status == 502 or wire.end(reply.body) == "error"


def test_what_breaks_after_the_end_harms_no_answer(limited, wires):
    raw = gzip.compress(b"".join(wires[CHAT].frames))
    wire, reply, _, record = limited(MESSAGES, CHAT, chunks=[raw[:-3]], **packed(b"gzip"))
    assert (wire.end(reply.body), record.ending) == ("end", Ending.COMPLETED)
