"""Every limit of an answer is enforced: in time, and in size. What has left as a 200 ends with the error in the stream."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.layers.conversion import answer
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
SURFACES = WIRES[:4]
LONG = 60.0
SHORT = 0.06
COMMENT = b": keep-alive\n\n"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@pytest.fixture
def limited(ask, gateway, upstream, wires, records):
    """One request under the limits given; gives the wire, the reply, the upstream and the record."""

    def one(name, *, stream=True, sink=None, leave=None, chunks=(), limits, **script):
        wire = wires[name]
        up = upstream(chunks=chunks, **script)
        top = "[limits]\n" + "".join(f"{limit} = {value}\n" for limit, value in {"keepalive_seconds": 0, **limits}.items())
        reply = ask(gateway(up, wire.surface, top=top), *wire.ask(stream=stream), sink=sink, leave=leave)
        [record] = records
        assert len(up.calls) == 1
        return wire, reply, up, record

    return one


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
def test_an_upstream_that_says_nothing(limited, surface, stream):
    """A streamed answer has to begin in time, another one to be whole; the other limit is long."""
    limits = {"first_byte_seconds": SHORT if stream else 30, "json_seconds": 30 if stream else SHORT}
    _, reply, up, record = limited(surface, stream=stream, chunks=[LONG], limits=limits)
    assert reply.whole
    assert (reply.status, reply.headers["x-surface-error"], reply.headers["x-should-retry"]) == (504, Code.UPSTREAM_TIMEOUT, "false")
    assert "took too long" in reply.json["error"]["message"]
    assert (up.cancelled, record.ending, record.code) == (1, Ending.FAILED, Code.UPSTREAM_TIMEOUT)


@pytest.mark.parametrize("chunks", [[b": warming up\n\n", LONG], [b"\n", 0.02] * 40, [b": x\n\n", 0.02] * 40])
def test_comments_are_no_first_byte(limited, chunks):
    _, reply, up, record = limited(CHAT, chunks=chunks, limits={"first_byte_seconds": SHORT})
    assert (reply.status, record.code, up.cancelled) == (504, Code.UPSTREAM_TIMEOUT, 1)


def test_pings_are_no_first_byte(limited):
    _, reply, up, record = limited(MESSAGES, chunks=[PING, 0.02] * 40, limits={"first_byte_seconds": SHORT})
    assert (reply.status, record.code, up.cancelled) == (504, Code.UPSTREAM_TIMEOUT, 1)


def test_a_json_answer_has_one_deadline_whatever_trickles_in(limited):
    _, reply, up, record = limited(CHAT, stream=False, chunks=[b" ", 0.02] * 40, limits={"json_seconds": SHORT})
    assert (reply.status, record.code, up.cancelled) == (504, Code.UPSTREAM_TIMEOUT, 1)


@pytest.mark.parametrize("name", WIRES)
def test_a_stream_that_falls_silent(limited, wires, name):
    first = wires[name].frames[0]
    wire, reply, up, record = limited(name, chunks=[first, LONG], limits={"idle_seconds": SHORT})
    assert reply.whole
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert reply.body.startswith(first)
    assert (up.cancelled, record.ending, record.code, record.frames) == (1, Ending.FAILED, Code.UPSTREAM_TIMEOUT, 1)


@pytest.mark.parametrize(("name", "beat"), [(CHAT, b": x\n\n"), (RESPONSES, b": x\n\n"), (MESSAGES, PING), (GEMINI, b": x\n\n"), ("array", b"\n")])
def test_pings_and_comments_are_no_answer(limited, wires, name, beat):
    wire, reply, up, record = limited(name, chunks=[wires[name].frames[0], *([beat, 0.02] * 40)], limits={"idle_seconds": SHORT})
    assert wire.end(reply.body) == "error"
    assert (up.cancelled, record.code) == (1, Code.UPSTREAM_TIMEOUT)


def test_events_are_signs_of_life(limited, wires):
    said, *rest = wires[CHAT].frames
    chunks = [part for frame in [said] * 6 + rest for part in (0.06, frame)]
    _, reply, _, record = limited(CHAT, chunks=chunks, limits={"idle_seconds": 0.3, "first_byte_seconds": 0.3})
    assert (reply.body, record.ending) == (said * 6 + b"".join(rest), Ending.COMPLETED)


def repeated(wire, name, times):
    """The frames of a stream whose first word is said so many times: up to it, the words, and the rest."""
    at = 2 if name in (RESPONSES, MESSAGES) else 0
    words = [wire.frames[at], *([wire.frames[at].replace(b"[{", b",{", 1) if name == "array" else wire.frames[at]] * (times - 1))]
    words = [word.replace(b'"sequence_number": 2', b'"sequence_number": %d' % (2 + number)) for number, word in enumerate(words)]
    rest = [re.sub(rb'(?<="sequence_number": )\d', lambda found: b"%d" % (int(found[0]) + times - 1), frame) for frame in wire.frames[at + 1 :]]
    return list(wire.frames[:at]), words, rest


@pytest.mark.parametrize("name", WIRES)
def test_a_stream_that_never_ends(limited, wires, name):
    begun, words, _ = repeated(wires[name], name, 40)
    wire, reply, up, record = limited(name, chunks=[*begun, *(piece for word in words for piece in (word, 0.02))], limits={"total_seconds": SHORT})
    assert reply.whole
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert (up.cancelled, record.code) == (1, Code.UPSTREAM_TIMEOUT)
    assert record.frames < 20


def test_the_total_bounds_a_first_byte_too(limited):
    _, reply, up, record = limited(CHAT, chunks=[LONG], limits={"total_seconds": SHORT})
    assert (reply.status, record.code, up.cancelled) == (504, Code.UPSTREAM_TIMEOUT, 1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("chunks", [[LONG], [b'{"error": {"message": "half', LONG]])
def test_an_error_does_not_wait_for_its_body(limited, monkeypatch, stream, chunks):
    monkeypatch.setattr(answer, "_GRACE", SHORT)
    _, reply, up, record = limited(CHAT, stream=stream, status=429, headers=[(b"retry-after", b"3")], chunks=chunks, limits={})
    assert (reply.status, reply.headers["retry-after"], record.code, up.cancelled) == (429, "3", Code.UPSTREAM_RATE_LIMITED, 1)


@pytest.mark.parametrize("name", [CHAT, RESPONSES, MESSAGES])
def test_an_upstream_that_stays_open_after_its_end(limited, wires, monkeypatch, name):
    """The client has its whole answer at once; the upstream gets a moment to end by itself."""
    monkeypatch.setattr(answer, "_GRACE", SHORT)
    wire, reply, up, record = limited(name, chunks=[*wires[name].frames, LONG], limits={})
    assert reply.whole
    assert reply.body == b"".join(wire.frames)
    assert (up.cancelled, record.ending, record.stop) == (1, Ending.COMPLETED, "end")


def test_an_upstream_that_stays_open_after_its_document(ask, gateway, wires, records, monkeypatch):
    monkeypatch.setattr(answer, "_GRACE", SHORT)

    async def lingers(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": wires[CHAT].document})
        await asyncio.sleep(LONG)

    reply = ask(gateway(lingers, CHAT), *wires[CHAT].ask(stream=False))
    assert reply.body == wires[CHAT].document
    assert records[0].ending is Ending.COMPLETED


# Clients that are slow --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [CHAT, "array"])
def test_a_slow_client_is_not_the_upstreams_fault(limited, wires, name):
    async def slow(message):
        await asyncio.sleep(0.1)

    _, reply, _, record = limited(name, chunks=wires[name].frames, sink=slow, limits={"idle_seconds": 0.04, "first_byte_seconds": 0.04})
    assert (reply.body, record.ending) == (b"".join(wires[name].frames), Ending.COMPLETED)


def test_a_slow_client_has_a_total_too(limited, wires):
    taken = []

    async def stuck(message):
        taken.append(message)
        if len(taken) == 2:
            await asyncio.sleep(LONG)

    wire, reply, up, record = limited(CHAT, chunks=wires[CHAT].frames, sink=stuck, limits={"total_seconds": SHORT})
    assert up.cancelled == 1
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_TIMEOUT)


# Keep-alives ------------------------------------------------------------------------------------------------------------------------------

BEATING = {"keepalive_seconds": 0.03}
BEATS = {CHAT: COMMENT, RESPONSES: COMMENT, MESSAGES: PING}


@pytest.mark.parametrize("name", BEATS)
def test_a_waiting_client_is_kept(limited, wires, name):
    """Before the first event and between events, never after the end."""
    frames = wires[name].frames
    chunks = [0.1, frames[0], 0.1, *frames[1:], 0.1]
    wire, reply, _, record = limited(name, chunks=chunks, limits=BEATING)
    before, _, after = reply.body.partition(frames[0])
    assert reply.whole
    assert (reply.status, reply.headers["content-type"]) == (200, wire.media)
    assert set(before.split(BEATS[name])) == {b""}
    assert before.count(BEATS[name]) >= 1
    assert after.startswith(BEATS[name])
    assert after.removeprefix(BEATS[name] * after.count(BEATS[name])) == b"".join(frames[1:])
    assert wire.end(reply.body) == "end"
    assert (record.ending, record.frames) == (Ending.COMPLETED, len(frames))


@pytest.mark.parametrize("name", [GEMINI, "array"])
def test_a_gemini_client_would_die_of_it(limited, wires, name):
    _, reply, _, _ = limited(name, chunks=[0.08, wires[name].frames[0], 0.08, *wires[name].frames[1:]], limits=BEATING)
    assert reply.body == b"".join(wires[name].frames)


def test_a_json_client_waits_without(limited, wires):
    _, reply, _, _ = limited(CHAT, stream=False, chunks=[0.08, wires[CHAT].document], limits=BEATING)
    assert reply.body == wires[CHAT].document


@pytest.mark.parametrize("name", BEATS)
def test_no_keep_alive_while_the_upstream_talks(limited, wires, name):
    begun, words, rest = repeated(wires[name], name, 6)
    chunks = [*begun, *(piece for word in words for piece in (word, 0.06)), *rest]
    _, reply, _, _ = limited(name, chunks=chunks, limits={"keepalive_seconds": 0.3})
    assert reply.body == b"".join([*begun, *words, *rest])


@pytest.mark.parametrize("name", BEATS)
@pytest.mark.parametrize("how", ["status", "silence", "error event", "document"])
def test_after_a_keep_alive_a_failure_is_told_in_the_stream(limited, wires, name, how):
    wire = wires[name]
    script = {
        "status": {"status": 429, "chunks": [0.08, wire.error]},
        "silence": {"chunks": [LONG]},
        "error event": {"chunks": [0.08, b"data: " + wire.error + b"\n\n"]},
        "document": {"chunks": [0.08, wire.error]},
    }[how]
    limits = {**BEATING, "first_byte_seconds": 0.1 if how == "silence" else 30}
    wire, reply, _, record = limited(name, limits=limits, **script)
    code = {"status": Code.UPSTREAM_RATE_LIMITED, "silence": Code.UPSTREAM_TIMEOUT, "error event": Code.UPSTREAM_ERROR}.get(
        how, Code.UPSTREAM_RATE_LIMITED
    )
    assert reply.whole
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert reply.body.startswith(BEATS[name])
    assert (record.ending, record.code) == (Ending.FAILED, code)


def test_a_keep_alive_that_is_stuck_holds_the_stream_and_starts_it_once(limited, wires):
    """A server may make every `send` wait: the head that a keep-alive brings must not be sent again by the event that comes meanwhile."""

    async def slow(message):
        await asyncio.sleep(0.05)

    wire, reply, _, record = limited(CHAT, chunks=[0.05, *wires[CHAT].frames], sink=slow, limits=BEATING)
    assert reply.whole
    assert wire.end(reply.body) == "end"
    assert reply.body.replace(COMMENT, b"") == b"".join(wires[CHAT].frames)
    assert record.ending is Ending.COMPLETED


@pytest.mark.parametrize("name", BEATS)
def test_no_keep_alive_while_an_error_is_told(limited, name):
    """To a client that takes the head of a refusal slowly, or it would get two."""

    async def slow(message):
        await asyncio.sleep(0.1)

    _, reply, _, record = limited(name, fails=UpstreamError(Code.UPSTREAM_UNREACHABLE, "no way"), sink=slow, limits=BEATING)
    assert reply.whole
    assert (reply.status, record.code) == (502, Code.UPSTREAM_UNREACHABLE)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_client_that_is_gone_when_it_is_kept(limited, at):
    sent = []

    async def sink(message):
        sent.append(message)
        if len(sent) > at:
            raise ConnectionResetError

    _, _, up, record = limited(CHAT, chunks=[LONG], sink=sink, limits=BEATING)
    assert (up.cancelled, record.ending, record.code, len(sent)) == (1, Ending.DISCONNECTED, None, at + 1)


def test_a_client_that_leaves_while_it_is_kept(limited):
    _, reply, up, record = limited(CHAT, chunks=[LONG], leave=0.08, limits=BEATING)
    assert reply.body.startswith(COMMENT)
    assert (up.cancelled, record.ending) == (1, Ending.DISCONNECTED)


# Sizes ------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIRES)
def test_an_event_that_is_too_large(limited, wires, name):
    frames = wires[name].frames
    large = frames[0].replace(b"Hi", b"H" * 2000) if name in (CHAT, GEMINI, "array") else frames[0].replace(b'"id": "', b'"id": "' + b"H" * 2000)
    later = large.replace(b"[{", b",{", 1) if name == "array" else large
    wire, reply, _, record = limited(name, chunks=[frames[0], later[:500], later[500:]], limits={"event_bytes": 1000})
    assert reply.whole
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert (record.code, record.frames) == (Code.EVENT_TOO_LARGE, 1)


@pytest.mark.parametrize("name", WIRES)
def test_an_answer_that_is_too_long(limited, wires, name):
    wire, reply, _, record = limited(name, chunks=wires[name].frames, limits={"output_chars": 1})
    assert reply.whole
    early = name in (CHAT, GEMINI, "array")  # the first event has text already
    assert (reply.status == 502) == early
    assert early or wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("limit", ["output_chars", "response_bytes"])
def test_a_document_that_is_too_large(limited, wires, surface, limit):
    long = wires[surface].document.replace(b'"Hi"', b'"' + b"H" * 300 + b'"').replace(b'"!"', b'"' + b"H" * 300 + b'"')
    _, reply, _, record = limited(surface, stream=False, chunks=[long[:50], long[50:]], limits={limit: 299})
    assert reply.whole
    assert (reply.status, record.code, record.usage) == (502, Code.OUTPUT_TOO_LARGE, None)
    assert b"HHH" not in reply.body


def test_a_document_of_the_limit(limited, wires):
    document = wires[CHAT].document
    _, reply, _, record = limited(CHAT, stream=False, chunks=[document], limits={"response_bytes": len(document), "output_chars": 2})
    assert (reply.body, record.ending) == (document, Ending.COMPLETED)


@pytest.mark.parametrize("stream", [False, True])
def test_endless_white_space(limited, stream):
    _, reply, _, record = limited(CHAT, stream=stream, chunks=[b" " * 400] * 3, limits={"response_bytes": 1000})
    assert (reply.status, record.code) == (502, Code.OUTPUT_TOO_LARGE)


def test_a_binding_may_be_tighter(ask, gateway, upstream, wires, records):
    up = upstream(chunks=[LONG])
    app = gateway(up, CHAT, top="[limits]\nfirst_byte_seconds = 30\n", binding=f"limits = {{ first_byte_seconds = {SHORT} }}\n")
    assert ask(app, *wires[CHAT].ask(stream=True)).status == 504
    assert json.loads(ask(app, *wires[CHAT].ask(stream=True), headers=[("x-surface-dry-run", "true")]).body)["limits"]["first_byte_seconds"] == SHORT
