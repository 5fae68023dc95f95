"""However an answer goes: one start, one end, one terminal in the client's surface, one record that says the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging

import anyio
import pytest

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Usage
from asgi_surface.layers import detection
from asgi_surface.layers.exchange import Ending
from asgi_surface.stream import Passage
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
SURFACES = WIRES[:4]
BROKEN = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's answer broke off")
USED = Usage(input=3, output=2)
DONE = (Ending.COMPLETED, None, "end", USED)


def failed(code):
    return (Ending.FAILED, code, None, None)


def said(record):
    return record.ending, record.code, record.stop, record.usage


@pytest.fixture
def run(ask, gateway, upstream, wires, records):
    """One request to a scripted upstream that is called once; gives the wire, the reply and the record."""

    def one(name, *, stream, app=None, members=None, leave=None, sink=None, options=None, **script):
        wire = wires[name]
        path, body = wire.ask(stream=stream, **(members or {}))
        up = upstream(**script)
        reply = ask(gateway(app or up, wire.surface, **(options or {})), path, body, leave=leave, sink=sink)
        assert len(up.calls) == (app is None)
        [record] = records
        return wire, reply, record

    return one


# Whole answers, whatever the chunks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("cut", ["frames", "one chunk", "bytes", "with white space before it"])
def test_a_whole_stream_passes_byte_for_byte(run, wires, name, cut):
    frames = wires[name].frames
    whole = b"".join(frames)
    space = b"\n \r\n" if name == "array" else b"\n\n"
    chunks = {
        "frames": frames,
        "one chunk": [whole],
        "bytes": [bytes([byte]) for byte in whole],
        "with white space before it": [space, *frames],
    }[cut]
    wire, reply, record = run(name, stream=True, chunks=chunks)
    assert reply.whole
    assert (reply.status, reply.headers["content-type"], reply.headers["x-accel-buffering"]) == (200, wire.media, "no")
    assert reply.body.strip() == whole.strip()
    assert wire.end(reply.body) == "end"
    assert said(record) == DONE
    assert record.frames >= len(frames) - (name == "array")
    assert record.bytes == len(reply.body)


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("cut", ["one chunk", "bytes"])
def test_a_whole_document_passes_byte_for_byte(run, wires, name, cut):
    document = b"\n" + wires[name].document + b"\n "
    chunks = {"one chunk": [document], "bytes": [bytes([byte]) for byte in document]}[cut]
    _, reply, record = run(name, stream=False, chunks=chunks)
    assert reply.whole
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, document, "application/json")
    assert reply.headers["content-length"] == str(len(document))
    assert (said(record), record.frames, record.bytes) == (DONE, 0, len(document))


# Failures after the first byte: the status has left, so the stream says it ----------------------------------------------------------------

CUTS = {
    "the body ends": ({"chunks": []}, Code.UPSTREAM_TRUNCATED),
    "the app returns without an end": ({"chunks": [], "whole": False}, Code.UPSTREAM_TRUNCATED),
    "the connection breaks": ({"chunks": [BROKEN]}, Code.UPSTREAM_TRUNCATED),
    "the gateway's own limit": ({"chunks": [UpstreamError(Code.OVERLOADED, "full")]}, Code.OVERLOADED),
    "the app raises": ({"chunks": [RuntimeError("the app's own words")]}, Code.UPSTREAM_ERROR),
}


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("how", CUTS)
def test_a_stream_that_breaks_off_ends_with_one_error(run, wires, name, how):
    script, code = CUTS[how]
    first = wires[name].frames[0]
    wire, reply, record = run(name, stream=True, **{**script, "chunks": [first, *script["chunks"]]})
    assert reply.whole
    assert reply.status == 200
    assert reply.body.startswith(first)
    assert wire.end(reply.body) == "error"
    assert b"own words" not in reply.body
    assert (record.ending, record.code, record.frames) == (Ending.FAILED, code, 1)


@pytest.mark.parametrize("name", WIRES)
def test_data_of_no_surface_ends_a_stream(run, wires, name):
    garbage = b', {"candidates": 1}' if name == "array" else b"data: {garbage}\n\n"
    wire, reply, record = run(name, stream=True, chunks=[wires[name].frames[0], garbage, *wires[name].frames[1:]])
    assert reply.whole
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code, record.frames) == (Ending.FAILED, Code.UPSTREAM_BAD_RESPONSE, 1)


@pytest.mark.parametrize("name", WIRES)
def test_the_upstreams_own_error_is_the_terminal(run, wires, name):
    first = wires[name].frames[0]
    error = {MESSAGES: b"event: error\n", "array": b","}.get(name, b"") + (b"" if name == "array" else b"data: ") + wires[name].error
    chunks = [first, error + b"\n\n", *wires[name].frames[1:]]
    wire, reply, record = run(name, stream=True, chunks=chunks)  # its errors are events with a type and a number
    assert reply.whole
    assert reply.body.startswith(first + error)
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_ERROR)


@pytest.mark.parametrize("name", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("after", [RuntimeError("late"), BROKEN, b"data: {garbage}\n\n", b"data: {}\n\n"])
def test_nothing_follows_a_terminal(run, wires, name, after):
    wire, reply, record = run(name, stream=True, chunks=[*wires[name].frames, after], whole=False)
    assert reply.whole
    assert reply.body == b"".join(wire.frames)
    assert said(record) == DONE


def test_usage_after_the_end_counts_for_the_record(run, wires):
    frames = wires[CHAT].frames
    _, reply, record = run(CHAT, stream=True, chunks=[*frames[:2], frames[3], frames[2]])
    assert reply.body == b"".join((*frames[:2], frames[3]))
    assert said(record) == DONE


def test_a_chat_stream_without_done_is_completed_and_none_is_invented(run, wires):
    frames = wires[CHAT].frames[:3]
    _, reply, record = run(CHAT, stream=True, chunks=frames)  # no [DONE]
    assert reply.whole
    assert reply.body == b"".join(frames)
    assert said(record) == DONE


@pytest.mark.parametrize(("name", "last"), [(RESPONSES, 2), (MESSAGES, 5)])
def test_without_its_terminal_a_finished_stream_is_cut(run, wires, name, last):
    wire, reply, record = run(name, stream=True, chunks=wires[name].frames[:last])
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_TRUNCATED)


# Failures before the first byte: a true status in the client's envelope -------------------------------------------------------------------

EARLY = {
    "unreachable": ({"fails": UpstreamError(Code.UPSTREAM_UNREACHABLE, "no way")}, 502, Code.UPSTREAM_UNREACHABLE),
    "the app raises at once": ({"fails": RuntimeError("the app's own words")}, 502, Code.UPSTREAM_ERROR),
    "broken after the head": ({"chunks": [BROKEN]}, 502, Code.UPSTREAM_TRUNCATED),
    "the app raises after the head": ({"chunks": [RuntimeError("the app's own words")]}, 502, Code.UPSTREAM_ERROR),
    "returns after the head": ({"whole": False}, 502, Code.UPSTREAM_TRUNCATED),
    "white space, then nothing": ({"chunks": [b" \n", b"\n"], "whole": False}, 502, Code.UPSTREAM_TRUNCATED),
    "a page": ({"chunks": [b"<html>an upstream's words</html>"]}, 502, Code.UPSTREAM_BAD_RESPONSE),
    "a list": ({"chunks": [b'["an upstream\'s words"]']}, 502, Code.UPSTREAM_BAD_RESPONSE),
    "half a document": ({"chunks": [b'{"id": "an upstream\'s words']}, 502, Code.UPSTREAM_BAD_RESPONSE),
    "an unknown coding": ({"headers": [(b"Content-Encoding", b"br")], "chunks": [b"x"]}, 502, Code.UPSTREAM_BAD_RESPONSE),
    "not its coding": ({"headers": [(b"content-encoding", b"gzip")], "chunks": [b"{}"]}, 502, Code.UPSTREAM_BAD_RESPONSE),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("how", EARLY)
def test_a_failure_before_the_first_byte_has_its_status(run, name, stream, how):
    script, status, code = EARLY[how]
    _, reply, record = run(name, stream=stream, **script)
    assert reply.whole
    assert (reply.status, reply.headers["x-surface-error"]) == (status, code)
    assert reply.headers["content-length"] == str(len(reply.body))
    assert "error" in reply.json
    assert b"words" not in reply.body
    assert (*said(record), record.status) == (*failed(code), status)


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("chunks", [[], [b"\n", b"\n\n"]])
def test_an_empty_stream_is_a_cut_one(run, name, chunks):
    _, reply, record = run(name, stream=True, chunks=chunks)
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_TRUNCATED)
    assert said(record) == failed(Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize("name", SURFACES)
def test_an_empty_document_is_none(run, name):
    _, reply, record = run(name, stream=False, chunks=[])
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_BAD_RESPONSE)
    assert said(record) == failed(Code.UPSTREAM_BAD_RESPONSE)


@pytest.mark.parametrize("name", WIRES)
def test_a_comment_commits_to_nothing(run, name):
    """What a server sends to keep a connection warm is held until an event comes: the failure that comes instead still has its status."""
    chunks = [b" \n", b"[ "] if name == "array" else [b": warming up\n\n", b": still\n\n"]
    _, reply, record = run(name, stream=True, chunks=[*chunks, BROKEN])
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_TRUNCATED)
    assert said(record) == failed(Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize(
    ("name", "ping"),
    [
        (CHAT, b'data: {"choices": []}\n\n'),
        (RESPONSES, b'event: keepalive\ndata: {"type": "keepalive"}\n\n'),
        (MESSAGES, b'event: ping\ndata: {"type": "ping"}\n\n'),
    ],
)
def test_a_ping_commits_to_nothing(run, wires, name, ping):
    """The error behind it has its own status, as it has in a converted stream."""
    _, reply, record = run(name, stream=True, chunks=[ping, ping, b"data: " + wires[name].error + b"\n\n"])
    assert (reply.status, reply.headers["x-surface-error"]) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert said(record) == failed(Code.UPSTREAM_RATE_LIMITED)


def test_comments_before_the_first_event_arrive_with_it(run, wires):
    _, reply, record = run(CHAT, stream=True, chunks=[b": warming up\n\n", *wires[CHAT].frames])
    assert [message.get("body") for message in reply.messages[1:2]] == [b": warming up\n\n" + wires[CHAT].frames[0]]
    assert said(record) == DONE


def test_of_comments_only_so_much_is_held(run):
    comments = [b": " + b"-" * 30_000 + b"\n\n"] * 3
    wire, reply, record = run(CHAT, stream=True, chunks=[*comments, BROKEN])
    assert reply.status == 200
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", WIRES)
def test_an_error_in_a_200_answer_gets_its_status(run, wires, name, stream):
    _, reply, record = run(name, stream=stream, chunks=[wires[name].error])
    assert (reply.status, reply.headers["x-surface-error"]) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert reply.json["error"]["message"] == "too fast"
    assert said(record) == failed(Code.UPSTREAM_RATE_LIMITED)


@pytest.mark.parametrize("name", WIRES)
def test_an_error_as_the_first_event_gets_its_status(run, wires, name):
    error = b"[" + wires[name].error if name == "array" else b"data: " + wires[name].error + b"\n\n"
    _, reply, record = run(name, stream=True, chunks=[error])
    assert reply.whole
    assert (reply.status, reply.headers["x-surface-error"]) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert reply.json["error"]["message"] == "too fast"
    assert (record.ending, record.code, record.status) == (Ending.FAILED, Code.UPSTREAM_RATE_LIMITED, 429)


@pytest.mark.parametrize("name", [CHAT, MESSAGES])
def test_garbage_as_the_first_event_gets_a_status(run, name):
    _, reply, record = run(name, stream=True, chunks=[b"data: {garbage}\n\n"])
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_BAD_RESPONSE)
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_BAD_RESPONSE)


# Apps that are not quite ASGI -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_app_that_says_nothing(run, stream):
    async def silent(scope, receive, send):
        await receive()

    _, reply, record = run(CHAT, stream=stream, app=silent)
    assert reply.whole
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_TRUNCATED)
    assert said(record) == failed(Code.UPSTREAM_TRUNCATED)


def test_a_document_is_whole_whatever_comes_after_it(run, wires):
    async def twice(scope, receive, send):
        for _ in range(2):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": wires[CHAT].document})
        raise BROKEN

    _, reply, record = run(CHAT, stream=False, app=twice)
    assert reply.whole
    assert reply.body == wires[CHAT].document
    assert said(record) == DONE


def test_an_app_that_runs_its_send_in_a_task_group(run, wires):
    """What the gateway raises through such an app comes out in a group."""

    async def grouped(scope, receive, send):
        async def stream():
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"<html>", "more_body": False})

        async with anyio.create_task_group() as group:
            group.start_soon(stream)

    _, reply, record = run(CHAT, stream=False, app=grouped, options={"top": "[limits]\nresponse_bytes = 2\n"})
    assert reply.whole
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.OUTPUT_TOO_LARGE)
    assert said(record) == failed(Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize("swallow", [True, False])
def test_an_app_that_goes_on_when_it_was_told_to_stop(run, wires, swallow):
    async def deaf(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for frame in (wires[CHAT].frames[0], b"data: {garbage}\n\n", *wires[CHAT].frames[1:]):
            with contextlib.suppress(Exception if swallow else OSError):
                await send({"type": "http.response.body", "body": frame, "more_body": True})

    wire, reply, record = run(CHAT, stream=True, app=deaf)
    assert reply.whole
    assert wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_BAD_RESPONSE)


def test_what_an_app_raises_is_logged_without_the_body(run, caplog):
    run(CHAT, stream=False, members={"messages": [{"role": "user", "content": "my secret"}]}, fails=RuntimeError("boom"))
    assert [entry.message for entry in caplog.records if entry.levelno >= logging.ERROR] == ["an upstream app failed"]
    assert "boom" in caplog.text
    assert "my secret" not in caplog.text


# Mistakes of ours -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 2])
def test_a_mistake_of_ours_ends_a_stream_like_any_failure(run, wires, monkeypatch, caplog, at):
    fed = []
    feed = Passage.feed

    def broken(passage, chunk):
        fed.append(chunk)
        if len(fed) == at:
            raise KeyError("a mistake")
        return feed(passage, chunk)

    monkeypatch.setattr(Passage, "feed", broken)
    wire, reply, record = run(CHAT, stream=True, chunks=wires[CHAT].frames)
    assert reply.whole
    assert (reply.status, reply.headers.get("x-surface-error")) == [(500, Code.INTERNAL), (200, None)][at - 1]
    assert at == 1 or wire.end(reply.body) == "error"
    assert (record.ending, record.code) == (Ending.FAILED, Code.INTERNAL)
    assert [entry.message for entry in caplog.records if entry.levelno >= logging.ERROR] == ["a request failed inside the gateway"]


def test_layers_that_return_without_an_answer(ask):
    async def nothing(scope, receive, send):
        return

    record = []
    reply = ask(detection.SurfaceDetection(nothing, record=record.append), "/v1/messages", {})
    assert reply.whole
    assert (reply.status, reply.json["error"]["type"]) == (500, "api_error")
    assert [(one.ending, one.code) for one in record] == [(Ending.FAILED, Code.INTERNAL)]


@pytest.mark.parametrize("failure", [None, RuntimeError("late")])
def test_layers_that_stop_in_the_middle_of_a_body(ask, failure):
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        if failure is not None:
            raise failure

    record = []
    reply = ask(detection.SurfaceDetection(half, record=record.append), "/v1/messages", {})
    assert reply.whole
    assert (reply.status, reply.body) == (200, b"half")
    assert [(one.ending, one.code) for one in record] == [(Ending.FAILED, Code.INTERNAL)]


def test_a_body_needs_a_start(ask):
    async def headless(scope, receive, send):
        await send({"type": "http.response.body", "body": b"x"})

    reply = ask(detection.SurfaceDetection(headless, record=[].append), "/v1/messages", {})
    assert (reply.status, reply.headers["x-surface-error"]) == (500, Code.INTERNAL)


# Clients that leave -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inbox", [[], [{"type": "http.request", "body": b'{"model"', "more_body": True}]])
def test_a_client_that_leaves_before_its_body_ended(ask, gateway, upstream, wires, records, inbox):
    up = upstream()
    reply = ask(gateway(up), wires[CHAT].path, inbox=[*inbox, {"type": "http.disconnect"}])
    assert (reply.messages, up.calls) == ([], [])
    assert [(one.ending, one.status, one.bytes) for one in records] == [(Ending.DISCONNECTED, 0, 0)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SURFACES)
def test_a_client_that_leaves_before_the_first_byte(ask, gateway, upstream, wires, records, name, stream):
    up = upstream(chunks=[60.0])
    path, body = wires[name].ask(stream=stream)
    reply = ask(gateway(up, name), path, body, leave=0.05)
    assert (reply.messages, up.cancelled) == ([], 1)
    assert [(one.ending, one.code, one.status) for one in records] == [(Ending.DISCONNECTED, None, 0)]


def test_only_leaving_is_leaving(ask, gateway, upstream, wires, records):
    """A server may still deliver an empty piece of the body once all of it was read."""
    path, body = wires[CHAT].ask(stream=False)
    rest = {"type": "http.request", "body": b"", "more_body": False}
    up = upstream(chunks=[0.02, wires[CHAT].document])
    reply = ask(gateway(up, CHAT), path, inbox=[{"type": "http.request", "body": json.dumps(body).encode()}, rest, rest])
    assert (reply.status, reply.received) == (200, 4)
    assert [said(one) for one in records] == [DONE]


@pytest.mark.parametrize("name", WIRES)
def test_a_client_that_leaves_in_mid_stream(ask, gateway, upstream, wires, records, name):
    wire = wires[name]
    up = upstream(chunks=[wire.frames[0], 60.0])
    reply = ask(gateway(up, wire.surface), *wire.ask(stream=True), leave=0.05)
    assert (reply.body, up.cancelled) == (wire.frames[0], 1)
    assert [(one.ending, one.code, one.frames, one.bytes) for one in records] == [(Ending.DISCONNECTED, None, 1, len(wire.frames[0]))]


def test_a_client_that_leaves_after_its_whole_answer_was_served(ask, gateway, upstream, wires, records):
    up = upstream(chunks=[*wires[CHAT].frames, 60.0])
    reply = ask(gateway(up, CHAT), *wires[CHAT].ask(stream=True), leave=0.05)
    assert reply.whole
    assert up.cancelled == 1
    assert [said(one) for one in records] == [DONE]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("at", [0, 1])
def test_a_send_that_fails_is_a_client_that_left(ask, gateway, upstream, wires, records, stream, at):
    """Since ASGI 2.4 `send` raises an OSError once the client has gone."""
    sent = []

    async def sink(message):
        sent.append(message["type"])
        if len(sent) > at:
            raise BrokenPipeError

    wire = wires[CHAT]
    up = upstream(chunks=[*wire.frames, 60.0] if stream else [wire.document])
    ask(gateway(up, CHAT), *wire.ask(stream=stream), sink=sink)
    assert sent == ["http.response.start", "http.response.body"][: at + 1]
    assert [(one.ending, one.code) for one in records] == [(Ending.DISCONNECTED, None)]


def test_a_server_that_cancels_the_request(gateway, upstream, wires, records):
    up = upstream(chunks=[60.0])

    async def main():
        async def receive():
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop()

        path, body = wires[CHAT].ask(stream=False)
        waiting = [{"type": "http.request", "body": json.dumps(body).encode()}]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [(b"content-type", b"application/json")]}
        task = asyncio.create_task(gateway(up, CHAT)(scope, receive, None))
        for _ in range(50):  # turns of the loop, not time
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    assert up.cancelled == 1
    assert [(one.ending, one.status) for one in records] == [(Ending.DISCONNECTED, 0)]
