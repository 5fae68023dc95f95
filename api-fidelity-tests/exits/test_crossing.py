"""Where the client and its upstream speak of different transports: a stream folded into one document, a document unfolded into a stream.

Both ways by declaration (`dialect.stream`) and because the upstream does so anyway; natively and between surfaces.
"""

from __future__ import annotations

import itertools
import json

import pytest

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Usage
from asgi_surface.layers.conversion import answer
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
SURFACES = WIRES[:4]
ANSWERS = list(itertools.product(SURFACES, SURFACES))
STREAMS = list(itertools.product(WIRES, SURFACES))
CONVERTED = [(client, origin) for client, origin in STREAMS if origin not in (client, {"array": GEMINI}.get(client))]
CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's answer broke off")
SSE, JSON = [(b"content-type", b"text/event-stream")], [(b"content-type", b"application/json")]
ALWAYS, NEVER = 'dialect.stream = "always"\n', 'dialect.stream = "never"\n'
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
STREAMED = {CHAT: "Hi", RESPONSES: "Hi", MESSAGES: "Hi", GEMINI: "Hi!"}  # what the scripted upstreams say
WHOLE = STREAMED | {GEMINI: "!"}


@pytest.fixture
def run(ask, gateway, upstream, wires, records):
    """One request to a gateway with one binding, of the upstream's surface. Gives the wire, the reply, the upstream's one call, and the record."""

    def one(client, origin, *, stream, members=None, top="", binding="", **script):
        wire, up = wires[client], upstream(**script)
        path, body = wire.ask(stream=stream, **(members or {}))
        reply = ask(gateway(up, origin, top=top, binding=binding), path, body)
        assert reply.whole
        [call] = up.calls
        [record] = records
        return wire, reply, call, record

    return one


# What a client reads in a document of its surface: text, why it ended, tokens.


def read_chat(answer):
    [choice] = answer["choices"]
    usage = answer["usage"]
    return choice["message"]["content"], choice["finish_reason"], (usage["prompt_tokens"], usage["completion_tokens"])


def read_responses(answer):
    [message] = answer["output"]
    [part] = message["content"]
    return part["text"], answer["status"], (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"])


def read_messages(answer):
    [block] = answer["content"]
    return block["text"], answer["stop_reason"], (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"])


def read_gemini(answer):
    [candidate] = answer["candidates"]
    usage = answer["usageMetadata"]
    text = "".join(part["text"] for part in candidate["content"]["parts"])
    return text, candidate["finishReason"], (usage["promptTokenCount"], usage["candidatesTokenCount"])


READ = {CHAT: read_chat, RESPONSES: read_responses, MESSAGES: read_messages, GEMINI: read_gemini}
STOPS = {CHAT: "stop", RESPONSES: "completed", MESSAGES: "end_turn", GEMINI: "STOP"}


def folded(answer, client):
    """What a client reads in the events of a stream of its surface: the text, and everything said of the end."""
    return "".join(TEXTS[client](event) for event in answer if event != "[DONE]")


def _delta(event):
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def _words(event):
    return event["delta"] if event["type"] == "response.output_text.delta" else ""


def _block(event):
    return event["delta"].get("text", "") if event["type"] == "content_block_delta" else ""


def _parts(event):
    return "".join(part.get("text", "") for candidate in event["candidates"] for part in candidate.get("content", {}).get("parts", ()))


TEXTS = {CHAT: _delta, RESPONSES: _words, MESSAGES: _block, GEMINI: _parts}


def asked(call):
    """What an upstream was asked for: its `accept`, the `stream` of the body, and the target."""
    headers = {name.decode(): value.decode() for name, value in call.headers}
    return headers["accept"], call.json.get("stream", False), call.target


def asks(origin, *, stream):
    accept = "text/event-stream" if stream else "application/json"
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return accept, stream and origin != GEMINI, PATHS.get(origin, f"/v1beta/models/up-model:{method}")


def said(record):
    return record.ending, record.code, record.stop, record.usage


def event(origin, data):
    """One SSE event as the surface names its errors."""
    return (b"event: error\n" if origin == MESSAGES else b"") + b"data: " + data + b"\n\n"


def begun(wire):
    """A stream up to its first word."""
    return wire.frames[: 3 if wire.surface in (RESPONSES, MESSAGES) else 1]


DONE = (Ending.COMPLETED, None, "end", Usage(input=3, output=2))


def failed(code):
    return (Ending.FAILED, code)


# Good answers -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binding", ["", ALWAYS])
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
def test_a_stream_for_a_document_is_folded(run, wires, client, origin, binding):
    frames = wires[origin].frames
    _, reply, call, record = run(client, origin, stream=False, binding=binding, chunks=frames, headers=SSE)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["content-length"] == str(len(reply.body))
    assert READ[client](reply.json) == (STREAMED[origin], STOPS[client], (3, 2))
    assert asked(call) == asks(origin, stream=bool(binding))
    assert said(record) == DONE
    assert (record.stream, record.frames, record.bytes) == (False, len(frames), len(reply.body))
    assert record.mode == ("native" if client == origin else f"{client}->{origin}")


@pytest.mark.parametrize("binding", ["", NEVER])
@pytest.mark.parametrize(("client", "origin"), STREAMS)
def test_a_document_for_a_stream_is_unfolded(run, wires, client, origin, binding):
    wire, reply, call, record = run(client, origin, stream=True, binding=binding, chunks=[wires[origin].document])
    assert (reply.status, reply.headers["content-type"], reply.headers["x-accel-buffering"]) == (200, wire.media, "no")
    assert "content-length" not in reply.headers
    assert wire.end(reply.body) == "end"
    assert folded(wire.events(reply.body), wire.surface) == WHOLE[origin]
    array = "/v1beta/models/up-model:streamGenerateContent"
    natively = ("application/json", False, array) if client == "array" and origin == GEMINI else asks(origin, stream=True)
    assert asked(call) == (asks(origin, stream=False) if binding else natively)
    assert said(record) == DONE
    assert (record.stream, record.frames, record.bytes) == (True, 0, len(reply.body))


@pytest.mark.parametrize(("client", "origin"), CONVERTED)
@pytest.mark.parametrize("cut", ["frames", "one chunk", "bytes"])
def test_a_stream_of_another_surface_is_told_event_by_event(run, wires, client, origin, cut):
    frames = wires[origin].frames
    whole = b"".join(frames)
    chunks = {"frames": frames, "one chunk": [whole], "bytes": [bytes([byte]) for byte in whole]}[cut]
    wire, reply, call, record = run(client, origin, stream=True, chunks=chunks, headers=SSE)
    assert (reply.status, reply.headers["content-type"]) == (200, wire.media)
    assert wire.end(reply.body) == "end"
    assert folded(wire.events(reply.body), wire.surface) == STREAMED[origin]
    assert asked(call) == asks(origin, stream=True)
    assert said(record) == DONE
    assert (record.frames, record.bytes) == (len(frames), len(reply.body))


@pytest.mark.parametrize("binding", ["", NEVER], ids=["all the same", "as declared"])
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("origin", SURFACES)
def test_a_client_of_chat_may_ask_for_usage(run, wires, origin, wanted, binding):
    """Also where the upstream, which is not asked to stream, is not told so."""
    options = {"stream_options": {"include_usage": wanted}}
    _, reply, _, _ = run(CHAT, origin, stream=True, binding=binding, members=options, chunks=[wires[origin].document])
    usage = [one["usage"] for one in wires[CHAT].events(reply.body)[:-1] if one.get("usage")]
    assert [(one["prompt_tokens"], one["completion_tokens"]) for one in usage] == [(3, 2)] * wanted


# What decides -----------------------------------------------------------------------------------------------------------------------------

TYPES = ["text/event-stream", "application/json", "text/html", "application/octet-stream", "", None]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "origin"), [*zip(SURFACES, SURFACES, strict=True), (CHAT, MESSAGES), (MESSAGES, GEMINI), (GEMINI, RESPONSES)])
def test_the_first_bytes_decide_and_not_the_content_type(run, wires, client, origin, stream, streamed, kind):
    headers = [] if kind is None else [(b"content-type", kind.encode())]
    chunks = wires[origin].frames if streamed else [wires[origin].document]
    wire, reply, _, record = run(client, origin, stream=stream, chunks=chunks, headers=headers)
    assert reply.headers["content-type"] == (wire.media if stream else "application/json")
    text = folded(wire.events(reply.body), client) if stream else READ[client](reply.json)[0]
    assert text == (STREAMED if streamed else WHOLE)[origin]
    assert said(record) == DONE


BEGINNINGS = {
    "a field in two pieces": [b"da", b"ta: "],
    "byte by byte": [b"d", b"a", b"t", b"a", b":", b" "],
    "a comment": [b": warm", b"ing up\n\nda", b"ta: "],
    "an id": [b"i", b"d: 1\ndata: "],
    "a name": [b"event", b": x\ndata: "],
    "a time": [b"retry: 5\n\n", b"data: "],
    "white space": [b"\n", b"\r\n", b"\ndata: "],
    "a byte order mark": [b"\xef\xbb", b"\xbfdata: "],
}


@pytest.mark.parametrize("how", BEGINNINGS)
@pytest.mark.parametrize(("client", "stream"), [*itertools.product(SURFACES[1:], [False, True]), (CHAT, False)])
def test_a_stream_is_known_however_its_first_bytes_come(run, wires, client, stream, how):
    first, *frames = wires[CHAT].frames
    wire, reply, _, record = run(client, CHAT, stream=stream, chunks=[*BEGINNINGS[how], first.removeprefix(b"data: "), *frames])
    text = folded(wire.events(reply.body), client) if stream else READ[client](reply.json)[0]
    assert (text, said(record)) == ("Hi", DONE)


@pytest.mark.parametrize(("client", "origin"), [(CHAT, CHAT), (CHAT, RESPONSES)])
@pytest.mark.parametrize("stream", [False, True])
def test_of_the_beginning_of_a_stream_nothing_can_be_made(run, client, origin, stream):
    _, reply, _, record = run(client, origin, stream=stream, chunks=[b"da"])
    assert (reply.status, record.ending) == (502, Ending.FAILED)


@pytest.mark.parametrize("binding", [ALWAYS, NEVER])
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
@pytest.mark.parametrize("stream", [False, True])
def test_streaming_is_a_demand_only_where_the_upstream_is_asked_to(ask, gateway, upstream, wires, records, client, origin, stream, binding):
    up = upstream(chunks=[wires[origin].document])
    reply = ask(gateway(up, origin, features=[], binding=binding), *wires[client].ask(stream=stream))
    [record] = records
    if binding == NEVER:
        assert (reply.status, said(record), len(up.calls)) == (200, DONE, 1)
    else:
        assert (reply.status, record.code, up.calls) == (400, Code.FEATURE_UNSUPPORTED, [])
        assert "streaming" in reply.json["error"]["message"]


# Failures ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
def test_an_error_in_a_folded_stream_has_its_status(run, wires, client, origin, at):
    """Nothing has been sent when it comes, early or late."""
    frames = wires[origin].frames
    _, reply, _, record = run(client, origin, stream=False, chunks=[*frames[:at], event(origin, wires[origin].error), *frames[at:]], headers=SSE)
    assert (reply.status, reply.headers["content-type"], reply.headers["x-surface-error"]) == (429, "application/json", Code.UPSTREAM_RATE_LIMITED)
    assert reply.json["error"]["message"] == "too fast"
    assert (record.ending, record.code, record.status) == (Ending.FAILED, Code.UPSTREAM_RATE_LIMITED, 429)


CUTS = {
    "the body ends": ({"chunks": []}, Code.UPSTREAM_TRUNCATED),
    "the app returns without an end": ({"chunks": [], "whole": False}, Code.UPSTREAM_TRUNCATED),
    "the connection breaks": ({"chunks": [CUT]}, Code.UPSTREAM_TRUNCATED),
    "the app raises": ({"chunks": [RuntimeError("the app's own words")]}, Code.UPSTREAM_ERROR),
    "in mid event": ({"chunks": [b"data: {"]}, Code.UPSTREAM_TRUNCATED),
    "garbage": ({"chunks": [b"data: {garbage}\n\n"]}, Code.UPSTREAM_BAD_RESPONSE),
}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
def test_of_half_a_stream_no_document_is_made(run, wires, client, origin, how):
    script, code = CUTS[how]
    _, reply, _, record = run(client, origin, stream=False, **{**script, "chunks": [wires[origin].frames[0], *script["chunks"]]})
    assert (reply.status, reply.headers["x-surface-error"], record.status) == (502, code, 502)
    assert (record.ending, record.code, record.stop) == (*failed(code), None)
    assert b"words" not in reply.body
    assert b"Hi" not in reply.body


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize(("client", "origin"), CONVERTED)
def test_half_a_converted_stream_ends_with_one_error(run, wires, client, origin, how):
    script, code = CUTS[how]
    wire, reply, _, record = run(client, origin, stream=True, **{**script, "chunks": [*begun(wires[origin]), *script["chunks"]]})
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert (record.ending, record.code) == failed(code)
    assert b"words" not in reply.body


GARBAGE = [b"data: {garbage}\n\n", b"data: 5\n\n", b"data: [1]\n\n", b'data: {"a": "\xff"}\n\n', b": hi\n\ndata: x\n\n"]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "origin"), CONVERTED)
def test_a_first_frame_that_cannot_be_read_has_its_status(run, wires, client, origin, stream, garbage):
    """No 200 before the upstream has said anything, whatever it may say afterwards."""
    _, reply, _, record = run(client, origin, stream=stream, chunks=[garbage, *wires[origin].frames], headers=SSE)
    assert (reply.status, reply.headers["content-type"], reply.headers["x-surface-error"]) == (502, "application/json", Code.UPSTREAM_BAD_RESPONSE)
    assert (record.ending, record.code, record.status) == (*failed(Code.UPSTREAM_BAD_RESPONSE), 502)
    assert b"garbage" not in reply.body


@pytest.mark.parametrize(("limit", "code"), [("output_chars = 1", Code.OUTPUT_TOO_LARGE), ("event_bytes = 20", Code.EVENT_TOO_LARGE)])
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
def test_a_folded_stream_is_bounded(run, wires, client, origin, limit, code):
    _, reply, _, record = run(client, origin, stream=False, top=f"[limits]\n{limit}\n", chunks=wires[origin].frames)
    assert (reply.status, reply.headers["x-surface-error"]) == (502, code)
    assert (record.ending, record.code) == failed(code)


@pytest.mark.parametrize("limit", ["output_chars = 1", "response_bytes = 9"])
@pytest.mark.parametrize(("client", "origin"), ANSWERS)
def test_an_unfolded_document_is_bounded(run, wires, client, origin, limit):
    document = wires[origin].document.replace(b'"!"', b'"Hi"')
    _, reply, _, record = run(client, origin, stream=True, top=f"[limits]\n{limit}\n", chunks=[document])
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.OUTPUT_TOO_LARGE)
    assert (record.ending, record.code) == failed(Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize("binding", ["", NEVER, ALWAYS])
@pytest.mark.parametrize(("client", "origin"), STREAMS)
def test_an_error_document_for_a_stream_has_its_status(run, wires, client, origin, binding, status):
    _, reply, _, record = run(client, origin, stream=True, binding=binding, status=status, chunks=[wires[origin].error])
    assert (reply.status, reply.headers["x-surface-error"]) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json["error"]["message"] == "too fast"
    assert (record.ending, record.code, record.bytes) == (*failed(Code.UPSTREAM_RATE_LIMITED), len(reply.body))


# Documents that pass a glance and are no answer.
CALL = {"function": {"arguments": 5}}
ITEM = {"type": "message", "content": [{"type": "output_text", "text": 5}]}
UNREADABLE = {
    CHAT: {"object": "chat.completion", "choices": [{"index": 0, "message": {"tool_calls": [CALL]}, "finish_reason": "stop"}]},
    RESPONSES: {"id": "r", "object": "response", "status": "completed", "output": [ITEM]},
    MESSAGES: {"type": "message", "content": [{"type": "text", "text": 5}], "stop_reason": "end_turn"},
    GEMINI: {"candidates": [{"content": {"parts": [{"text": 5}]}, "finishReason": "STOP"}]},
}
MEANT = [(client, origin, stream) for client, origin in ANSWERS for stream in (False, True) if stream or client != origin]


@pytest.mark.parametrize(("client", "origin", "stream"), MEANT)
def test_a_document_that_cannot_be_read_is_no_answer(run, client, origin, stream):
    _, reply, _, record = run(client, origin, stream=stream, chunks=[json.dumps(UNREADABLE[origin]).encode()])
    assert (reply.status, reply.headers["x-surface-error"]) == (502, Code.UPSTREAM_BAD_RESPONSE)
    assert (record.ending, record.code) == failed(Code.UPSTREAM_BAD_RESPONSE)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("client", "stream"), [*itertools.product(SURFACES[1:], [False, True])])
def test_a_model_that_broke_off_has_not_answered(run, wires, client, stream, streamed):
    """Whether its stream or its document says so: in a stream that has begun it is an error there."""
    chunks = [one.replace(b'"finish_reason": "stop"', b'"finish_reason": "error"') for one in (*wires[CHAT].frames, wires[CHAT].document)]
    wire, reply, _, record = run(client, CHAT, stream=stream, chunks=chunks[:-1] if streamed else chunks[-1:])
    assert (record.ending, record.code) == failed(Code.UPSTREAM_ERROR)
    if stream and streamed:
        assert (reply.status, wire.end(reply.body)) == (200, "error")
    else:
        assert (reply.status, reply.json["error"]["message"]) == (502, "the model broke off with an error")


# Half a call: what upstreams send that broke off in mid argument, whatever they say of it. Messages and Gemini have no words for it in a document.


def half_call(origin, reason, arguments='{"a": "b'):
    """A document, where there is one, and the frames of a stream."""
    return {CHAT: half_chat, RESPONSES: half_responses, MESSAGES: half_messages}[origin](reason, arguments)


def sse(*events, named=True):
    return [(f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]


def half_chat(reason, arguments):
    head = {"id": "c", "created": 0, "model": "up-model"}
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    whole = {"index": 0, "message": {"role": "assistant", "content": "Hi", "tool_calls": [call]}, "finish_reason": reason}
    said = {"index": 0, "delta": {"role": "assistant", "content": "Hi", "tool_calls": [{"index": 0, **call}]}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    chunks = [{**head, "object": "chat.completion.chunk", "choices": [one]} for one in (said, last)]
    return json.dumps({**head, "object": "chat.completion", "choices": [whole]}).encode(), [*sse(*chunks, named=False), b"data: [DONE]\n\n"]


def half_responses(reason, arguments):
    cut = reason == "max_output_tokens"
    text = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}
    call = {"type": "function_call", "id": "f", "call_id": "call_1", "name": "look", "arguments": arguments}
    output = [text | {"status": "completed"}, call | {"status": "incomplete" if cut else "completed"}]
    whole = {"id": "r", "object": "response", "status": "incomplete" if cut else "completed", "output": output}
    whole |= {"incomplete_details": {"reason": reason}} if cut else {}
    events = [{"type": "response.created", "response": whole | {"status": "in_progress", "output": []}}]
    for place, item in enumerate(output):
        events += [{"type": f"response.output_item.{step}", "output_index": place, "item": item} for step in ("added", "done")]
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return json.dumps(whole).encode(), sse(*({"sequence_number": number, **one} for number, one in enumerate(events)))


def half_messages(reason, arguments):
    message = {"id": "a", "type": "message", "role": "assistant", "model": "up-model", "content": [], "stop_reason": None, "stop_sequence": None}
    blocks = [{"type": "text", "text": ""}, {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}]
    deltas = [{"type": "text_delta", "text": "Hi"}, {"type": "input_json_delta", "partial_json": arguments}]
    events = [{"type": "message_start", "message": message | {"usage": {"input_tokens": 3, "output_tokens": 1}}}]
    for index, (block, delta) in enumerate(zip(blocks, deltas, strict=True)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 2}})
    return None, sse(*events, {"type": "message_stop"})


SENDERS = [(CHAT, True), (CHAT, False), (RESPONSES, True), (RESPONSES, False), (MESSAGES, True)]  # the surfaces and transports of half a call
HALVES = [(client, *sender, stream) for client in WIRES for sender in SENDERS for stream in (True, False)]
# Natively frames and documents pass as they are; who folds or unfolds one has its whole in hand and judges it, also on the same surface.
HALVES = [(client, origin, streamed, stream) for client, origin, streamed, stream in HALVES if (client, stream) != (origin, streamed)]
CALLED = {CHAT: "tool_calls", RESPONSES: "completed", MESSAGES: "tool_use"}
CUT_OFF = {CHAT: "length", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens"}


def told_of(wire, reply, *, stream):
    """Everything that a client reads, as one document: of a stream its events."""
    return wire.events(reply.body) if stream else reply.json


@pytest.mark.parametrize("arguments", ['{"a": "b', "[1]", '{"a": 1}}'])
@pytest.mark.parametrize(("client", "origin", "streamed", "stream"), HALVES)
def test_half_a_call_that_is_called_finished_is_an_error_for_every_client(run, client, origin, streamed, stream, arguments):
    document, frames = half_call(origin, CALLED[origin], arguments)
    wire, reply, _, record = run(client, origin, stream=stream, chunks=frames if streamed else [document])
    assert (record.ending, record.code) == failed(Code.UPSTREAM_BAD_RESPONSE)
    if stream and reply.status == 200:
        assert wire.end(reply.body) == "error"
        assert not {"tool_calls", "tool_use", "STOP"} & {*reasons(wire.events(reply.body))}
    else:
        assert (reply.status, reply.headers["x-surface-error"], stream and streamed) == (502, Code.UPSTREAM_BAD_RESPONSE, False)


def reasons(node):
    """Every reason for an end, wherever it stands."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("finish_reason", "stop_reason", "finishReason") and value:
                yield value
            elif name == "incomplete_details" and value:
                yield value["reason"]
            else:
                yield from reasons(value)
    for inner in node if isinstance(node, list) else ():
        yield from reasons(inner)


TRUNCATED = {CHAT: "length", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens", GEMINI: "MAX_TOKENS"}
SAYS_HALF = {CHAT: (True, True), RESPONSES: (True, True), MESSAGES: (False, True), GEMINI: (False, False)}  # in a document, in a stream


@pytest.mark.parametrize(("client", "origin", "streamed", "stream"), HALVES)
def test_half_a_call_at_the_limit_is_cut_for_every_client(run, client, origin, streamed, stream):
    """The reason is the limit, and where the surface has no words for half a call, that it is missing is said."""
    document, frames = half_call(origin, CUT_OFF[origin])
    wire, reply, _, record = run(client, origin, stream=stream, chunks=frames if streamed else [document])
    told = told_of(wire, reply, stream=stream)
    assert (reply.status, record.ending, record.stop) == (200, Ending.COMPLETED, "length")
    assert [*reasons(told)] == [TRUNCATED[wire.surface]]
    said = SAYS_HALF[wire.surface][stream]
    assert ("look" in json.dumps(told)) == said
    assert ("answer:half_call" in record.dropped) == (not said)
    assert stream or reply.headers.get("x-surface-dropped", "") == ",".join(record.dropped)


KEPT = [(client, origin) for client, origin in STREAMS if client in (CHAT, RESPONSES, MESSAGES)]
WAITING = {"top": "[limits]\nkeepalive_seconds = 0.01\n", "binding": NEVER}


@pytest.mark.parametrize(("client", "origin"), KEPT)
@pytest.mark.parametrize("how", ["error", "garbage", "cut"])
def test_after_a_keep_alive_an_error_document_is_an_error_in_the_stream(run, wires, client, origin, how):
    """The silence has committed the 200."""
    last, code = {
        "error": (wires[origin].error, Code.UPSTREAM_RATE_LIMITED),
        "garbage": (b"<html>", Code.UPSTREAM_BAD_RESPONSE),
        "cut": (CUT, Code.UPSTREAM_TRUNCATED),
    }[how]
    wire, reply, _, record = run(client, origin, stream=True, chunks=[0.04, last], **WAITING)
    assert (reply.status, reply.headers["content-type"], wire.end(reply.body)) == (200, wire.media, "error")
    assert reply.body.startswith(b"event: ping\n" if client == MESSAGES else b": keep-alive\n\n")
    assert (record.ending, record.code, record.status) == (*failed(code), 200)


@pytest.mark.parametrize(("client", "origin"), KEPT)
def test_after_a_keep_alive_a_document_is_unfolded(run, wires, client, origin):
    wire, reply, _, record = run(client, origin, stream=True, chunks=[0.04, wires[origin].document], **WAITING)
    assert reply.body.startswith(b"event: ping\n" if client == MESSAGES else b": keep-alive\n\n")
    events = [one for one in wire.events(reply.body) if one == "[DONE]" or one.get("type") != "ping"]
    assert (folded(events, client), wire.end(reply.body)) == (WHOLE[origin], "end")
    assert said(record) == DONE


@pytest.mark.parametrize("client", [GEMINI, "array"])
def test_gemini_knows_no_keep_alive(run, wires, client):
    _, reply, _, record = run(client, CHAT, stream=True, chunks=[0.04, wires[CHAT].error], **WAITING)
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)


# Errors in the client's own words ---------------------------------------------------------------------------------------------------------

FOREIGN = {
    CHAT: b'{"error": {"message": "no", "type": "requests", "param": "messages[3]", "code": "rate_limit_exceeded"}}',
    RESPONSES: b'{"error": {"message": "no", "type": "requests", "param": "messages[3]", "code": "rate_limit_exceeded"}}',
    MESSAGES: b'{"type": "error", "error": {"type": "rate_limit_error", "message": "no"}, "request_id": "messages[3]"}',
    GEMINI: b'{"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED", "details": [{"requests": "messages[3]"}]}}',
}
KINDS = {CHAT: "rate_limit_error", RESPONSES: "rate_limit_error", MESSAGES: "rate_limit_error", GEMINI: "RESOURCE_EXHAUSTED"}


@pytest.mark.parametrize("how", ["status", "document", "event"])
@pytest.mark.parametrize(("client", "origin"), [pair for pair in ANSWERS if pair[0] != pair[1]])
def test_an_error_of_another_surface_loses_its_type_and_place(run, client, origin, how):
    """Message and code mean something everywhere; types and parameters are those of a request that the client never sent."""
    error = FOREIGN[origin]
    chunks, status = [event(origin, error) if how == "event" else error], 429 if how == "status" else 200
    _, reply, _, _ = run(client, origin, stream=False, chunks=chunks, status=status)
    told = reply.json["error"]
    assert (reply.status, told["message"], told.get("status") or told["type"]) == (429, "no", KINDS[client])
    assert b"messages[3]" not in reply.body
    assert b"requests" not in reply.body


# What is not said -------------------------------------------------------------------------------------------------------------------------


def spoken(data):
    """A Chat answer that speaks too: no other surface has words for that."""
    return data.replace(b'"content": "Hi"', b'"content": "Hi", "audio": {"id": "a", "data": ""}')


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", SURFACES)
def test_what_the_client_does_not_get_is_recorded(run, wires, client, stream, streamed):
    chunks = [spoken(one) for one in (wires[CHAT].frames if streamed else [wires[CHAT].document])]
    wire, reply, _, record = run(client, CHAT, stream=stream, chunks=chunks)
    natively = client == CHAT  # on any transport: the surface can say it on both
    assert (record.dropped, said(record)) == (() if natively else ("answer:audio",), DONE)
    assert (b'"audio"' in reply.body) == natively
    text = folded(wire.events(reply.body), client) if stream else READ[client](reply.json)[0]
    assert text == "Hi"


# A native request was never lifted: what its answer repeats of it is read now, as far as it can be -----------------------------------------


@pytest.mark.parametrize(("members", "echoed"), [({"temperature": 0.5}, 0.5), ({"metadata": 5, "temperature": 0.5}, None)])
def test_a_folded_answer_repeats_the_request_as_far_as_it_is_known(run, wires, members, echoed):
    _, reply, call, record = run(RESPONSES, RESPONSES, stream=False, members=members, binding=ALWAYS, chunks=wires[RESPONSES].frames)
    assert (reply.json["temperature"], said(record)) == (echoed, DONE)
    assert call.json == {**wires[RESPONSES].body, **members, "model": "up-model", "stream": True, "store": False}


# Clients that leave -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "origin"), STREAMS[:16])
def test_a_client_that_leaves_ends_the_upstreams_call(ask, gateway, upstream, wires, records, client, origin, stream):
    up = upstream(chunks=[*begun(wires[origin]), 60.0])
    reply = ask(gateway(up, origin), *wires[client].ask(stream=stream), leave=0.03)
    [record] = records
    assert (up.cancelled, record.ending, record.code) == (1, Ending.DISCONNECTED, None)
    assert (record.bytes, bool(reply.messages)) == (len(reply.body) if stream else 0, stream)


@pytest.mark.parametrize(("client", "origin"), [pair for pair in ANSWERS if pair[1] != GEMINI])
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_stays_open_after_its_terminal_is_left(run, wires, monkeypatch, client, origin, stream):
    """The client has its answer at once. Gemini has no terminal: its answer ends with the body."""
    monkeypatch.setattr(answer, "_GRACE", 0.03)
    frames = wires[origin].frames
    _, _, _, record = run(client, origin, stream=stream, chunks=[*frames, 60.0], whole=False)
    assert said(record) == DONE
