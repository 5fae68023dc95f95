"""A Zed client in front of every upstream: turns, ends and failures, errors before the stream, counts, models and dry runs.

The double reads as Zed does: every line strictly, one terminal, and the events of the provider that it asked.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from asgi_surface import Gateway
from asgi_surface.codecs import FACES
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.interception import Interceptor
from asgi_surface.layers.exchange import Ending, Exchange, Inbox
from asgi_surface.surfaces import ZED, Endpoint, Operation

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
SURFACES = (CHAT, RESPONSES, MESSAGES, GEMINI)
INNER = {"anthropic": MESSAGES, "open_ai": RESPONSES, "google": GEMINI, "x_ai": CHAT, "baseten": CHAT}
PROVIDERS = ("anthropic", "open_ai", "google", "x_ai")
ZED_HEADERS = (("x-zed-client-supports-status-messages", "true"), ("x-zed-client-supports-stream-ended-request-completion-status", "true"))


@dataclass
class Turn:
    """What a client has read of an answer, whatever provider's words it came in."""

    text: str = ""
    thinking: str = ""
    calls: list[Any] = field(default_factory=list)
    stop: Any = None


@dataclass
class Line:
    """One line: an event or a status."""

    event: Any = None
    status: Any = None


def parse(line: bytes) -> Line:
    """One line as Zed's client takes it: externally tagged JSON, and nothing else."""
    assert line == line.strip()
    assert line, "a blank line"
    said = json.loads(line)
    assert isinstance(said, dict)
    assert len(said) == 1
    return Line(**said)


def read(reply) -> tuple[list[Any], Any]:
    """The events of a stream, and how it ended: "stream_ended", or what `failed` says. Anything but whole lines and one terminal is an error."""
    assert (reply.status, reply.whole) == (200, True)
    assert "x-zed-server-supports-status-messages" in reply.headers
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert "content-length" not in reply.headers
    *lines, rest = reply.body.split(b"\n")
    assert rest == b""
    parsed = [parse(line) for line in lines]
    statuses = [line.status for line in parsed if line.event is None]
    assert len(statuses) == 1
    assert parsed[-1].event is None
    end = statuses[0]
    if end != "stream_ended":
        end = end["failed"]
        assert end.keys() == {"code", "message", "request_id", "retry_after"}
        assert uuid.UUID(end["request_id"]).hex == reply.headers["x-surface-request-id"]
    return [line.event for line in parsed[:-1]], end


def messages_turn(events: list[Any]) -> Turn:
    turn = Turn()
    for event in events:
        delta = event.get("delta", {})
        turn.text += delta.get("text", "")
        turn.thinking += delta.get("thinking", "")
        turn.stop = delta.get("stop_reason", turn.stop)
        block = event.get("content_block", {})
        if block.get("type") == "tool_use":
            turn.calls.append([block["name"], ""])
        if "partial_json" in delta:
            turn.calls[-1][1] += delta["partial_json"]
    return turn


def responses_turn(events: list[Any]) -> Turn:
    turn = Turn()
    for event in events:
        match event["type"]:
            case "response.output_text.delta":
                turn.text += event["delta"]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                turn.thinking += event["delta"]
            case "response.output_item.done" if event["item"]["type"] == "function_call":
                turn.calls.append([event["item"]["name"], event["item"]["arguments"]])
            case "response.completed" | "response.incomplete":
                turn.stop = event["type"].partition(".")[2]
    return turn


def gemini_turn(events: list[Any]) -> Turn:
    turn = Turn()
    for candidate in (one for event in events for one in event.get("candidates", ())):
        for part in candidate.get("content", {}).get("parts", ()):
            if "functionCall" in part:
                turn.calls.append([part["functionCall"]["name"], json.dumps(part["functionCall"]["args"])])
            elif part.get("thought"):
                turn.thinking += part["text"]
            else:
                turn.text += part["text"]
        turn.stop = candidate.get("finishReason", turn.stop)
    return turn


def chat_turn(events: list[Any]) -> Turn:
    turn = Turn()
    for choice in (one for event in events for one in event["choices"]):
        delta = choice["delta"]
        turn.text += delta.get("content") or ""
        turn.thinking += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                turn.calls.append([call["function"]["name"], ""])
            turn.calls[-1][1] += call["function"].get("arguments", "")
        turn.stop = choice.get("finish_reason") or turn.stop
    return turn


READERS = {MESSAGES: messages_turn, RESPONSES: responses_turn, GEMINI: gemini_turn, CHAT: chat_turn}
STOPS = {  # what each surface says at the end of the four turns
    MESSAGES: {"text": "end_turn", "reasoning": "end_turn", "tools": "tool_use", "truncated": "max_tokens"},
    RESPONSES: {"text": "completed", "reasoning": "completed", "tools": "completed", "truncated": "incomplete"},
    GEMINI: {"text": "STOP", "reasoning": "STOP", "tools": "STOP", "truncated": "MAX_TOKENS"},
    CHAT: {"text": "stop", "reasoning": "stop", "tools": "tool_calls", "truncated": "length"},
}
SAID = {
    "text": {"text": "Hi there"},
    "reasoning": {"text": "Hi there", "thinking": "Well"},
    "tools": {"calls": [["weather", {"city": "Paris"}]]},
    "truncated": {"text": "Hi there"},
}


def sse(events, *, named=True) -> list[bytes]:
    head = ["event: {type}\n".format(**one) if named else "" for one in events]
    return [(name + f"data: {json.dumps(one)}\n\n").encode() for name, one in zip(head, events, strict=True)]


def chat_stream(turn: str) -> list[bytes]:
    deltas = {
        "text": [{"content": "Hi "}, {"content": "there"}],
        "reasoning": [{"reasoning_content": "Well"}, {"content": "Hi there"}],
        "tools": [
            {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "Paris"}'}}]},
        ],
        "truncated": [{"content": "Hi there"}],
    }[turn]
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up-model"}
    said = [{"delta": {"role": "assistant"}}, *({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": STOPS[CHAT][turn]}]
    chunks = [{**base, "choices": [{"index": 0, "finish_reason": None, **one}]} for one in said]
    usage = {**base, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
    return [*sse([*chunks, usage], named=False), b"data: [DONE]\n\n"]


def messages_stream(turn: str) -> list[bytes]:
    text = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Hi "}, {"type": "text_delta", "text": "there"}])
    thought = [{"type": "thinking_delta", "thinking": "Well"}, {"type": "signature_delta", "signature": "c2ln"}]
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    blocks = {
        "reasoning": [({"type": "thinking", "thinking": "", "signature": ""}, thought), text],
        "tools": [(call, [{"type": "input_json_delta", "partial_json": '{"city": "Paris"}'}])],
    }.get(turn, [text])
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "a", "type": "message", "role": "assistant", "model": "up-model", "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": STOPS[MESSAGES][turn], "stop_sequence": None}
    return sse([*events, {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 2}}, {"type": "message_stop"}])


def gemini_stream(turn: str) -> list[bytes]:
    parts = {
        "reasoning": [{"text": "Well", "thought": True}, {"text": "Hi there"}],
        "tools": [{"functionCall": {"name": "weather", "args": {"city": "Paris"}}}],
    }.get(turn, [{"text": "Hi "}, {"text": "there"}])
    chunks: list[dict[str, Any]] = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = STOPS[GEMINI][turn]
    chunks[-1]["usageMetadata"] = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    return sse(chunks, named=False)


def responses_stream(turn: str) -> list[bytes]:
    status = "incomplete" if turn == "truncated" else "completed"
    message = {"type": "message", "id": "i1", "role": "assistant", "status": status}
    said = [{"type": "output_text", "text": "Hi there", "annotations": []}]
    text = ({**message, "status": "in_progress", "content": []}, ("output_text", "Hi there"), {**message, "content": said})
    thought = {"type": "reasoning", "id": "i0", "summary": [], "content": [{"type": "reasoning_text", "text": "Well"}]}
    call = {"type": "function_call", "id": "i1", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris"}', "status": "completed"}
    items: list[Any] = {
        "reasoning": [({**thought, "content": []}, ("reasoning_text", "Well"), thought), text],
        "tools": [({**call, "arguments": "", "status": "in_progress"}, ("function_call_arguments", call["arguments"]), call)],
    }.get(turn, [text])
    base = {"id": "r", "object": "response", "status": "in_progress", "model": "up-model", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": base}]
    for index, (begun, (kind, delta), done) in enumerate(items):
        where = {"output_index": index, "item_id": begun["id"], "delta": delta} | ({} if turn == "tools" else {"content_index": 0})
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events.append({"type": f"response.{kind}.delta", **where})
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if turn == "truncated" else {}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    whole = {**base, "status": status, "output": [done for _, _, done in items], "usage": usage, **why}
    events.append({"type": f"response.{status}", "response": whole})
    return sse([{**event, "sequence_number": number} for number, event in enumerate(events)])


STREAMS = {CHAT: chat_stream, MESSAGES: messages_stream, GEMINI: gemini_stream, RESPONSES: responses_stream}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
REQUESTS: dict[str, dict[str, Any]] = {
    MESSAGES: {
        "model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}], "stream": True,
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    },
    RESPONSES: {"model": "m", "input": "hi", "stream": True, "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]},
    GEMINI: {
        "model": "models/m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}]}],
    },
    CHAT: {
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
    },
}  # fmt: skip


def envelope(provider: str, *, request: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """What Zed sends for a provider; `request` adds to the request within, None takes a member out."""
    inner = {**REQUESTS[INNER[provider]], **(request or {})}
    carried = {name: value for name, value in inner.items() if value is not None}
    return {"thread_id": "t", "prompt_id": "p", "provider": provider, "model": "m", "provider_request": carried, **members}


@pytest.fixture
def complete(gateway, upstream, ask):
    """Asks for a completion: the reply, and the upstream that was asked."""

    def once(provider, surface, chunks, *, body=None, headers=(), app=None, **options):
        app = app or upstream(chunks, headers=[(b"content-type", b"text/event-stream")])
        door = gateway(app, surface, **options)
        return ask(door, "/completions", body or envelope(provider), headers=(*ZED_HEADERS, *headers)), app

    return once


@pytest.mark.parametrize("turn", SAID)
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("provider", INNER)
def test_turns_are_finished_against_every_upstream(complete, grammar, records, provider, surface, turn):
    inner = INNER[provider]
    reply, app = complete(provider, surface, STREAMS[surface](turn))
    events, end = read(reply)
    read_turn = READERS[inner](events)
    read_turn.calls = [[name, json.loads(arguments)] for name, arguments in read_turn.calls]
    assert (end, read_turn) == ("stream_ended", Turn(**SAID[turn], stop=STOPS[inner][turn]))
    again = sse(events, named="type" in events[0])
    grammar(inner, b"".join([*again, b"data: [DONE]\n\n"] if inner == CHAT else again), relayed=surface == inner)
    assert reply.headers["x-surface-mode"] == ("native" if surface == inner else f"{inner}->{surface}")
    assert [(one.surface, one.ending, one.usage.output) for one in records] == [("zed-completions", Ending.COMPLETED, 2)]
    assert not {"thread_id", "prompt_id", "provider", "provider_request"} & app.calls[0].json.keys()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_natively_every_byte_of_an_event_passes_whatever_the_pieces(complete, provider):
    whole = b": comment\n\n" + b"".join(STREAMS[INNER[provider]]("text")).replace(b"Hi ", b"\\u0048i\xe2\x80\xa8")
    data = [line[6:] for line in whole.split(b"\n") if line.startswith(b"data: {")]
    for chunks in ([whole], [whole[place : place + 1] for place in range(len(whole))]):
        reply, _ = complete(provider, INNER[provider], chunks)
        assert reply.body == b"".join(b'{"event":' + one + b"}\n" for one in data) + b'{"status":"stream_ended"}\n'


def test_an_event_of_several_data_lines_is_one_line(complete):
    stream = b"".join(messages_stream("text")).replace(b'{"type": "message_stop"}', b'{\ndata: "type" :\ndata:  "message_stop"}')
    reply, _ = complete("anthropic", MESSAGES, [stream])
    assert reply.body.endswith(b'{"event":{"type":"message_stop"}}\n{"status":"stream_ended"}\n')
    assert read(reply)[1] == "stream_ended"


@pytest.mark.parametrize("said", [None, False])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_carrier_always_streams(complete, provider, said):
    inner = INNER[provider]
    body = envelope(provider, request={} if inner == GEMINI else {"stream": said})
    reply, app = complete(provider, inner, STREAMS[inner]("text"), body=body)
    assert read(reply)[1] == "stream_ended"
    assert app.calls[0].json.get("stream", "absent") == ("absent" if inner == GEMINI else True)
    assert app.calls[0].target.endswith("streamGenerateContent?alt=sse") == (inner == GEMINI)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_envelope_names_the_model(complete, provider):
    inner = INNER[provider]
    reply, app = complete(provider, inner, STREAMS[inner]("text"), body=envelope(provider, request={"model": None}))
    assert (reply.status, app.calls[0].json.get("model")) == (200, None if inner == GEMINI else "up-model")


def test_a_document_is_told_as_a_stream(complete, wires, upstream):
    reply, _ = complete("x_ai", MESSAGES, (), app=upstream([wires[MESSAGES].document]))
    events, end = read(reply)
    assert (chat_turn(events).text, end) == ("Hi", "stream_ended")


# Failures


BROKEN = {  # what comes after the first text, how the body ends, and the code of the failure
    "cut": ([], {"whole": False}, "upstream_http_502"),
    "ended early": ([], {}, "upstream_http_502"),
    "unreadable": ([b"data: {nonsense\n\n"], {}, "upstream_http_502"),
    "too slow": ([UpstreamError(Code.UPSTREAM_TIMEOUT, "too slow")], {}, "upstream_http_504"),
    "a broken app": ([RuntimeError("secret")], {}, "upstream_http_502"),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_stream_that_breaks_is_failed_once(complete, upstream, records, provider, surface, fault):
    then, options, code = BROKEN[fault]
    stream = STREAMS[surface]("text")
    begun = stream[: 1 + next(place for place, chunk in enumerate(stream) if b"Hi" in chunk)]
    reply, _ = complete(provider, surface, (), app=upstream([*begun, *then], **options))
    events, end = read(reply)
    assert READERS[INNER[provider]](events).text.startswith("Hi")
    assert (end["code"], end["retry_after"], "secret" in end["message"]) == (code, None, False)
    assert records[0].ending is Ending.FAILED


@pytest.mark.parametrize(("limit", "message"), [("output_chars = 4", "longer"), ("event_bytes = 3000", "larger")])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_bound_that_is_broken_is_a_failure(complete, provider, surface, limit, message):
    stream = STREAMS[surface]("text")
    place = 1 + next(place for place, chunk in enumerate(stream) if b"Hi" in chunk)
    huge = b": " + b"x" * 4000 + b"\n\n"
    reply, _ = complete(provider, surface, [*stream[:place], huge, *stream[place:]], top=f"[limits]\n{limit}\n")
    events, end = ([], reply.json) if reply.status == 502 else read(reply)  # a client that was told nothing yet gets the true status
    inner = INNER[provider]
    assert (READERS[inner](events).stop, end["code"], message in end["message"]) == (None, "upstream_http_502", True)


ERRORS = {  # an error in the stream, as each upstream says it, and the status that it stands for
    MESSAGES: ({"type": "error", "error": {"type": "overloaded_error", "message": "Too busy"}}, "upstream_http_529"),
    RESPONSES: ({"type": "error", "code": "rate_limit_exceeded", "message": "Too busy", "param": None, "sequence_number": 1}, "upstream_http_429"),
    GEMINI: ({"error": {"code": 503, "message": "Too busy", "status": "UNAVAILABLE"}}, "upstream_http_503"),
    CHAT: ({"error": {"message": "Too busy", "type": "server_error", "param": None, "code": None}}, "upstream_http_502"),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_an_upstreams_own_error_is_the_failure_and_no_event(complete, surface):
    error, code = ERRORS[surface]
    provider = next(name for name, inner in INNER.items() if inner == surface)
    reply, _ = complete(provider, surface, [STREAMS[surface]("text")[0], *sse([error], named="type" in error)])
    events, end = read(reply)
    assert (len(events), end["code"], end["message"]) == (1, code, "Too busy")


def test_a_finish_that_never_came_is_no_success(complete):
    chunks = [chunk for chunk in chat_stream("text") if b'"stop"' not in chunk]
    events, end = read(complete("x_ai", CHAT, chunks)[0])
    assert (chat_turn(events).text, end["code"]) == ("Hi there", "upstream_http_502")


class Hook(Interceptor):
    """An interceptor that takes part for Messages requests, and fails at a frame that holds `word`."""

    name = "hook"

    def __init__(self, word: bytes) -> None:
        self._word = word

    def applies(self, surface, route_id, members):
        return surface == MESSAGES and "max_tokens" in members

    def open(self, plan):
        return self

    def frame(self, frame):
        if self._word in frame.data:
            raise RuntimeError("secret")
        return [frame]


@pytest.mark.parametrize("surface", [MESSAGES, CHAT])
def test_an_interceptor_sees_the_carried_surface_and_its_failure_is_one_too(catalog, upstream, ask, surface):
    door = Gateway(catalog=catalog(surface), upstream=upstream(STREAMS[surface]("text")), interceptors=[Hook(b"there")])
    events, end = read(ask(door, "/completions", envelope("anthropic")))
    assert (messages_turn(events).text, end["code"], end["message"]) == ("Hi ", "internal_error", "the gateway failed")


def test_an_interceptor_that_fails_at_once_is_an_error_of_zeds(catalog, upstream, ask):
    door = Gateway(catalog=catalog(MESSAGES), upstream=upstream(messages_stream("text")), interceptors=[Hook(b"message_start")])
    reply = ask(door, "/completions", envelope("anthropic"))
    assert (reply.status, reply.json) == (500, {"code": "internal_error", "message": "the gateway failed"})


def test_a_carried_answer_needs_its_request_to_have_been_taken_out():
    exchange = Exchange(Endpoint(ZED, Operation.GENERATE), FACES[ZED], "r", (), "", Inbox(None))
    with pytest.raises(RuntimeError, match="Planning"):
        _ = exchange.codec


def test_nothing_but_lines_is_sent_while_the_client_waits(complete, upstream):
    first, *others = messages_stream("text")
    app = upstream([b": up\n\n", 0.05, first, 0.05, b": up\n\n", 0.05, *others])
    reply, _ = complete("anthropic", MESSAGES, (), app=app, top="[limits]\nkeepalive_seconds = 0.01\n")
    assert len(read(reply)[0]) == len(others) + 1


# Errors before the stream


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_upstreams_refusal_is_told_in_zeds_words(complete, upstream, wires, provider, surface):
    app = upstream([wires[surface].error], status=429, headers=[(b"content-type", b"application/json"), (b"retry-after", b"12")])
    reply, _ = complete(provider, surface, (), app=app)
    assert (reply.status, reply.headers["x-surface-error"]) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert reply.json == {"code": "upstream_http_429", "message": "too fast", "upstream_status": 429, "retry_after": 12}


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ({"status": 500, "chunks": [b"oops"]}, 500, {"code": "upstream_http_500", "message": "the upstream failed", "upstream_status": 500}),
        ({"status": 401}, 502, {"code": "upstream_http_502", "message": "the upstream did not accept the gateway's credential"}),
        ({"fails": UpstreamError(Code.UPSTREAM_UNREACHABLE, "not there")}, 502, {"code": "upstream_http_502", "message": "not there"}),
        ({"chunks": sse([ERRORS[MESSAGES][0]])}, 529, {"code": "upstream_http_529", "message": "Too busy", "upstream_status": 529}),
    ],
)
def test_an_upstream_that_fails_at_once_has_its_status(complete, upstream, options, status, said):
    reply, _ = complete("anthropic", MESSAGES, (), app=upstream(**options))
    assert (reply.status, reply.json) == (status, said)


@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        (b"{", 400, Code.MALFORMED_BODY, None),
        (envelope("anthropic", extra=1), 400, Code.FIELD_REJECTED, "/extra"),
        (envelope("anthropic", model="other"), 400, Code.FIELD_REJECTED, "/provider_request/model"),
        (envelope("anthropic", model="other", request={"model": "other"}), 404, Code.UNKNOWN_MODEL, "/model"),
        (envelope("google", model="other", request={"model": None}), 404, Code.UNKNOWN_MODEL, None),
        (envelope("anthropic", request={"thread": {}}), 400, Code.UNSUPPORTED_REQUEST, "/provider_request/thread"),
        (envelope("anthropic", request={"stream": "yes"}), 400, Code.MALFORMED_BODY, "/provider_request/stream"),
        (envelope("anthropic", request={"messages": 1}), 400, Code.MALFORMED_BODY, "/provider_request/messages"),
        (envelope("anthropic", request={"container": "c"}), 400, Code.FIELD_REJECTED, "/provider_request/container"),
        (envelope("anthropic", request={"mode": "x"}, mode="max"), 400, Code.FIELD_REJECTED, "/provider_request/mode"),
        (envelope("x_ai", request={"n": 2}), 400, Code.UNREPRESENTABLE, "/provider_request/n"),
    ],
)
def test_a_request_that_is_refused_is_told_where(complete, body, status, code, pointer):
    reply, app = complete("anthropic", MESSAGES, (), body=body)
    assert (reply.status, reply.headers["x-surface-error"], app.calls) == (status, code, [])
    assert reply.json.keys() == {"code", "message"}
    assert reply.json["code"] == code
    assert reply.json["message"].endswith(f" (at {pointer})") == (pointer is not None)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"method": "GET"}, 405, Code.METHOD_NOT_ALLOWED),
        ({"headers": [("content-type", "text/plain")]}, 415, Code.UNSUPPORTED_MEDIA_TYPE),
    ],
)
@pytest.mark.parametrize("path", ["/completions", "/count_tokens"])
def test_errors_before_the_body_is_read_are_zeds_too(gateway, upstream, ask, path, options, status, code):
    reply = ask(gateway(upstream()), path, envelope("anthropic"), **options)
    assert (reply.status, reply.json.keys(), reply.json["code"]) == (status, {"code", "message"}, code)


def test_a_client_without_a_key_is_told_to_renew_it(routes, upstream, ask, catalog):
    key = f'[[keys]]\nname = "zed"\nsha256 = "{"0" * 64}"\n'
    reply = ask(Gateway(catalog=catalog(MESSAGES, top=f'[auth]\nmode = "keys"\n{key}'), upstream=upstream()), "/completions", envelope("anthropic"))
    assert (reply.status, reply.json["code"]) == (401, Code.UNAUTHORIZED)


# Plans


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_dry_run_names_places_in_the_envelope(complete, provider):
    reply, app = complete(provider, CHAT, (), headers=[("x-surface-dry-run", "true")])
    plan = reply.json
    assert (reply.status, reply.headers["content-type"], app.calls) == (200, "application/json", [])
    assert (plan["downstreamSurface"], plan["model"], plan["stream"]) == (INNER[provider], "m", True)
    tools = next(demand for demand in plan["demands"] if demand["feature"] == "tools")
    assert tools["pointer"].startswith("/provider_request/tools")


def test_what_is_left_out_is_named_by_its_place_in_the_envelope(complete):
    body = envelope("anthropic", request={"metadata": {"user_id": "u"}})
    reply, _ = complete("anthropic", GEMINI, gemini_stream("text"), body=body)
    assert reply.headers["x-surface-dropped"] == "/provider_request/metadata/user_id,/thread_id,/prompt_id"
    dry, _ = complete("anthropic", GEMINI, (), body=body, headers=[("x-surface-dry-run", "true")])
    assert dry.json["dropped"] == ["/provider_request/metadata/user_id", "/thread_id", "/prompt_id"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("surface", SURFACES)
def test_what_stands_beside_the_request_is_named_where_no_zed_upstream_gets_it(complete, records, provider, surface):
    body = envelope(provider, intent="user_prompt", mode="max")
    reply, app = complete(provider, surface, STREAMS[surface]("text"), body=body)
    named = ["/thread_id", "/prompt_id", "/intent", "/mode"]
    assert [name for name in reply.headers["x-surface-dropped"].split(",") if name in named] == named
    assert set(named) <= set(records[-1].dropped)
    assert not {"thread_id", "prompt_id", "intent", "mode"} & app.calls[0].json.keys()
    dry, _ = complete(provider, surface, (), body=body, headers=[("x-surface-dry-run", "true")])
    assert dry.json["dropped"][-4:] == named


def test_an_id_that_is_null_is_none(complete):
    body = envelope("anthropic", thread_id=None, prompt_id=None, mode="max")
    dry, _ = complete("anthropic", MESSAGES, (), body=body, headers=[("x-surface-dry-run", "true")])
    assert dry.json["dropped"] == ["/mode"]


def test_a_rejected_dry_run_names_its_place(complete):
    reply, _ = complete("anthropic", MESSAGES, (), headers=[("x-surface-dry-run", "true")], features=["streaming"])
    assert (reply.status, reply.json["kind"], reply.json["pointer"]) == (200, "reject", "/provider_request/tools")


def test_a_hosts_choice_is_asked_for_the_carried_surface(gateway, upstream, ask):
    asked = []

    async def candidates(surface, model):
        asked.append((surface, model))

    door = gateway(upstream(responses_stream("text")), RESPONSES, candidates=candidates)
    assert read(ask(door, "/completions", envelope("open_ai")))[1] == "stream_ended"
    assert asked == [(RESPONSES, "m")]


def test_the_short_paths_are_left_to_a_host_app(gateway, upstream, ask):
    async def site(scope, receive, send):
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    door = gateway(upstream(), fallback=site)
    assert [ask(door, path, envelope("anthropic")).status for path in ("/completions", "/count_tokens")] == [418, 418]
    assert ask(door, "/models", method="GET", headers=ZED_HEADERS).status == 418


# Counts and models


COUNTS = {
    "anthropic": (b'{"input_tokens": 42}', "/v1/messages/count_tokens"),
    "google": (b'{"totalTokens": 42}', "/v1beta/models/up-model:countTokens"),
}


@pytest.mark.parametrize("provider", COUNTS)
def test_tokens_are_counted_natively(gateway, upstream, ask, provider, records):
    document, target = COUNTS[provider]
    app = upstream([document])
    body = envelope(provider, request={"stream": None, "max_tokens": None})
    reply = ask(gateway(app, INNER[provider], features=["tools", "count-tokens"]), "/count_tokens", body)
    assert (reply.status, reply.json, app.calls[0].target) == (200, {"tokens": 42}, target)
    assert (reply.headers["content-type"], reply.headers["content-length"]) == ("application/json", str(len(reply.body)))
    assert "x-zed-server-supports-status-messages" not in reply.headers
    assert (records[0].operation, records[0].ending) == ("count-tokens", Ending.COMPLETED)


@pytest.mark.parametrize("document", [b"{}", b'{"input_tokens": "42"}'])
def test_an_answer_that_counts_nothing_is_an_error(gateway, upstream, ask, document):
    door = gateway(upstream([document]), MESSAGES, features=["tools", "count-tokens"])
    reply = ask(door, "/count_tokens", envelope("anthropic", request={"stream": None, "max_tokens": None}))
    assert (reply.status, reply.json["code"], reply.headers["x-surface-error"]) == (502, "upstream_http_502", Code.UPSTREAM_BAD_RESPONSE)


@pytest.mark.parametrize(("provider", "surface"), [("open_ai", RESPONSES), ("x_ai", CHAT), ("open_ai", MESSAGES)])
def test_other_surfaces_count_no_tokens(gateway, upstream, ask, provider, surface):
    app = upstream()
    reply = ask(gateway(app, surface), "/count_tokens", envelope(provider))
    assert (reply.status, reply.json.keys(), app.calls) == (400, {"code", "message"}, [])


def test_models_are_listed_with_their_declared_features(gateway, upstream, ask):
    sizes = "context_tokens = 200000\nmax_output_tokens = 8192\n"
    door = gateway(upstream(), MESSAGES, CHAT, models=["m", "n-*", "o"], route=sizes)
    listed = ask(door, "/models", method="GET", headers=[("x-zed-client-supports-x-ai", "true")]).json
    assert [model["id"] for model in listed["models"]] == ["m", "o"]
    assert (listed["default_model"], listed["default_fast_model"], listed["recommended_models"]) == ("m", "m", [])
    assert listed["models"][0] == {
        "provider": "anthropic",
        "id": "m",
        "display_name": "m",
        "is_latest": False,
        "max_token_count": 200000,
        "max_output_tokens": 8192,
        "supports_tools": True,
        "supports_images": True,
        "supports_thinking": True,
        "supports_disabling_thinking": True,
        "supports_fast_mode": False,
        "supports_server_side_compaction": False,
        "supported_effort_levels": [],
        "supports_streaming_tools": True,
        "is_disabled": False,
    }


@pytest.mark.parametrize(("surface", "provider"), [(CHAT, "x_ai"), (RESPONSES, "open_ai"), (GEMINI, "google"), (MESSAGES, "anthropic")])
@pytest.mark.parametrize("parallel", [True, False])
def test_a_model_says_who_is_asked_for_it(gateway, upstream, ask, surface, provider, parallel):
    features = ["streaming", "tools", *(["parallel-tools"] if parallel else [])]
    door = gateway(upstream(), surface, features=features, route="context_tokens = 10\nmax_output_tokens = 5\n")
    model = ask(door, "/models", method="GET", headers=ZED_HEADERS).json["models"][0]
    asks = surface in (CHAT, RESPONSES)
    assert (model["provider"], model.get("supports_parallel_tool_calls")) == (provider, parallel if asks else None)
    assert (model["supports_thinking"], model["supports_images"]) == (False, False)


@pytest.mark.parametrize(
    ("route", "counts", "reason"),
    [
        ("", (0, 0), "`context_tokens` and `max_output_tokens`"),
        ("context_tokens = 10\n", (10, 0), "`max_output_tokens`"),
        ("max_output_tokens = 5\n", (0, 5), "`context_tokens`"),
    ],
)
def test_a_model_of_unknown_size_is_disabled(gateway, upstream, ask, route, counts, reason):
    listed = ask(gateway(upstream(), MESSAGES, route=route), "/models", method="GET", headers=ZED_HEADERS).json
    model = listed["models"][0]
    assert (model["max_token_count"], model["max_output_tokens"], model["is_disabled"]) == (*counts, True)
    assert model["disabled_reason"] == f"the gateway's route file does not say {reason}"
    assert listed["default_model"] is None


@pytest.mark.parametrize(
    ("features", "binding", "reason"),
    [
        (["tools"], "", "the gateway's route file does not say `streaming`"),
        (["tools"], 'dialect = { stream = "never" }\n', None),
        (["tools", "streaming"], "", None),
    ],
)
def test_a_model_that_cannot_stream_is_disabled(gateway, upstream, ask, wires, features, binding, reason):
    """As the list says, so it is."""
    options = {"features": features, "binding": binding, "route": "context_tokens = 10\nmax_output_tokens = 5\n"}
    door = gateway(upstream([wires[MESSAGES].document]), MESSAGES, **options)
    listed = ask(door, "/models", method="GET", headers=ZED_HEADERS).json
    assert (listed["models"][0].get("disabled_reason"), listed["default_model"]) == (reason, None if reason else "m")
    assert ask(door, "/completions", envelope("anthropic")).status == (400 if reason else 200)


def test_without_zeds_headers_the_list_is_openais(gateway, upstream, ask):
    assert ask(gateway(upstream()), "/models", method="GET").json["object"] == "list"
