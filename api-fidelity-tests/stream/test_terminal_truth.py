"""How providers end streams, one test for each way, for clients of every other surface: one true terminal, and it is the last thing said."""

from __future__ import annotations

import json

import pytest

from asgi_surface.errors import Code
from asgi_surface.ir import Usage
from asgi_surface.layers.conversion import answer
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
SURFACES = WIRES[:4]
PAIRS = [(client, origin) for client in WIRES for origin in SURFACES if origin not in (client, {"array": GEMINI}.get(client))]
pairs = pytest.mark.parametrize(("client", "origin"), PAIRS)
of_chat = pytest.mark.parametrize("client", [RESPONSES, MESSAGES, GEMINI, "array"])
ending_with_a_terminal = pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[1] != GEMINI])
DONE = b"data: [DONE]\n\n"
USED = Usage(input=3, output=2)
COUNTED = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def sse(*events, named=False):
    return [(f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]


def chunk(delta=None, finish=None, **more):
    """A Chat chunk."""
    choice = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "up-model", "choices": choice, **more}


HI = chunk({"role": "assistant", "content": "Hi"})
STOP = chunk({}, "stop")
USAGE = chunk(usage=COUNTED)


@pytest.fixture
def heard(ask, gateway, upstream, wires, records):
    """What a client of another surface makes of a stream: how it ended, its text and calls, and the record. The grammar of its stream is checked."""

    def one(client, origin, chunks, **script):
        wire, up = wires[client], upstream(chunks=chunks, **script)
        reply = ask(gateway(up, origin), *wire.ask(stream=True))
        assert reply.whole
        assert (reply.status, len(up.calls)) == (200, 1)
        [record] = records
        events = [event for event in wire.events(reply.body) if event != "[DONE]"]
        errors = [event for event in events if event.get("type") in ("response.failed", "error") or "error" in event]
        text, calls, stop = READERS[wire.surface]([event for event in events if event not in errors])
        assert (record.ending is Ending.COMPLETED) == (errors == [])
        return "error" if errors else "end", text, calls, stop, record

    return one


def _chat(events):
    deltas = [(choice["delta"], choice["finish_reason"]) for event in events for choice in event["choices"]]
    calls = [call["function"] for delta, _ in deltas for call in delta.get("tool_calls", ())]
    stops = [stop for _, stop in deltas if stop]
    return "".join(delta.get("content") or "" for delta, _ in deltas), [call["name"] for call in calls if call.get("name")], stops


def _responses(events):
    ends = [one["response"] for one in events if one["type"] in ("response.completed", "response.incomplete")]
    items = [one["item"] for one in events if one["type"] == "response.output_item.done"]
    calls = [item["name"] for item in items if (item["type"], item["status"]) == ("function_call", "completed")]
    stops = [(one["incomplete_details"] or {}).get("reason", one["status"]) for one in ends]
    return "".join(one["delta"] for one in events if one["type"] == "response.output_text.delta"), calls, stops


def _messages(events):
    starts = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    text = "".join(one["delta"].get("text", "") for one in events if one["type"] == "content_block_delta")
    calls = [one["name"] for one in starts if one["type"] == "tool_use"]
    return text, calls, [one["delta"]["stop_reason"] for one in events if one["type"] == "message_delta"]


def _gemini(events):
    candidates = [candidate for event in events for candidate in event.get("candidates", ())]
    parts = [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]
    calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    return "".join(part.get("text", "") for part in parts), calls, [one["finishReason"] for one in candidates if "finishReason" in one]


READERS = {CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages, GEMINI: _gemini}
ENDED = {CHAT: ["stop"], RESPONSES: ["completed"], MESSAGES: ["end_turn"], GEMINI: ["STOP"], "array": ["STOP"]}
LENGTH = {CHAT: ["length"], RESPONSES: ["max_output_tokens"], MESSAGES: ["max_tokens"], GEMINI: ["MAX_TOKENS"], "array": ["MAX_TOKENS"]}
FILTER = {RESPONSES: ["content_filter"], MESSAGES: ["refusal"], GEMINI: ["SAFETY"], "array": ["SAFETY"]}
TOOLS = {RESPONSES: ["completed"], MESSAGES: ["tool_use"], GEMINI: ["STOP"], "array": ["STOP"]}
BEGUN = {CHAT: 1, RESPONSES: 3, MESSAGES: 3, GEMINI: 1}  # frames up to the first word
SAID = {CHAT: "Hi", RESPONSES: "Hi", MESSAGES: "Hi", GEMINI: "Hi!"}


def good(found, client, text="Hi", usage=USED):
    """The whole answer, its end said once."""
    end, said, calls, stop, record = found
    assert (end, said, calls, stop) == ("end", text, [], ENDED[client])
    assert (record.stop, record.usage, record.code) == ("end", usage, None)


def bad(found, code):
    """An error, and nothing that looks like success."""
    end, _, _, stop, record = found
    assert (end, stop) == ("error", [])
    assert (record.ending, record.code) == (Ending.FAILED, code)


# Finishes ---------------------------------------------------------------------------------------------------------------------------------

FINISHES = {
    CHAT: sse(STOP, chunk({}, "stop")),
    MESSAGES: sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}, named=True) * 2,
    GEMINI: sse({"candidates": [{"finishReason": "STOP", "index": 0}]}) * 2,
}


@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[1] in FINISHES])
def test_a_finish_said_twice_is_one(heard, wires, client, origin):
    first, last = {CHAT: (1, 2), MESSAGES: (4, 5), GEMINI: (2, 2)}[origin]
    frames = wires[origin].frames
    good(heard(client, origin, [*frames[:first], *FINISHES[origin], *frames[last:]]), client, SAID[origin])


@of_chat
@pytest.mark.parametrize(("first", "second", "told"), [("stop", "length", LENGTH), ("length", "stop", LENGTH), ("content_filter", "stop", FILTER)])
def test_of_two_finishes_the_weightier_is_said(heard, client, first, second, told):
    """A truncation or a filter is never relabelled as a good end."""
    end, text, _, stop, record = heard(client, CHAT, [*sse(HI, chunk({}, first), chunk({}, second), USAGE), DONE])
    assert (end, text, stop) == ("end", "Hi", told[client])
    assert record.ending is Ending.COMPLETED


@of_chat
def test_a_finish_with_content_loses_none_of_it(heard, client):
    good(heard(client, CHAT, [*sse(chunk({"role": "assistant", "content": "H"}), chunk({"content": "i"}, "stop"), USAGE), DONE]), client)


@of_chat
def test_text_after_a_finish_is_said(heard, client):
    good(heard(client, CHAT, [*sse(chunk({"role": "assistant", "content": "H"}, "stop"), chunk({"content": "i"}), USAGE), DONE]), client)


@of_chat
@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_finish_is_none(heard, client, empty):
    said = [chunk({"role": "assistant", "content": "H"}, empty), chunk({"content": "i"}, empty), STOP, USAGE]
    good(heard(client, CHAT, [*sse(*said), DONE]), client)


@of_chat
@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_finish_at_the_end_is_a_cut(heard, client, empty):
    bad(heard(client, CHAT, [*sse(HI, chunk({}, empty)), DONE]), Code.UPSTREAM_TRUNCATED)


# Usage ------------------------------------------------------------------------------------------------------------------------------------

COUNTS = {
    "before the finish": [HI, chunk({}, usage=COUNTED), STOP],
    "before the answer": [chunk(usage=COUNTED), HI, STOP],
    "with the finish": [HI, chunk({}, "stop", usage=COUNTED)],
    "after the finish, with empty choices": [HI, STOP, USAGE],
    "after the finish, without choices": [HI, STOP, {name: value for name, value in USAGE.items() if name != "choices"}],
    "after the finish, with choices of null": [HI, STOP, USAGE | {"choices": None}],
    "in every chunk": [HI | {"usage": {**COUNTED, "completion_tokens": 1}}, STOP | {"usage": COUNTED}],
    "null before it comes": [HI | {"usage": None}, STOP | {"usage": None}, USAGE],
}


@of_chat
@pytest.mark.parametrize("where", COUNTS)
def test_usage_is_found_wherever_it_stands(heard, client, where):
    good(heard(client, CHAT, [*sse(*COUNTS[where]), DONE]), client)


@of_chat
def test_usage_after_the_terminal_counts_for_the_record(heard, client):
    good(heard(client, CHAT, [*sse(HI, STOP), DONE, *sse(USAGE)]), client)


@of_chat
def test_without_usage_none_is_recorded(heard, client):
    good(heard(client, CHAT, [*sse(HI, STOP), DONE]), client, usage=None)


# Terminals --------------------------------------------------------------------------------------------------------------------------------


@of_chat
def test_done_said_twice_is_one(heard, client):
    good(heard(client, CHAT, [*sse(HI, STOP, USAGE), DONE, DONE]), client)


@ending_with_a_terminal
def test_a_terminal_said_twice_is_one(heard, wires, client, origin):
    frames = wires[origin].frames
    good(heard(client, origin, [*frames, frames[-1]]), client)


@ending_with_a_terminal
@pytest.mark.parametrize("together", [False, True])
def test_late_events_are_dropped(heard, wires, client, origin, together):
    """Words after the end, and the whole answer again."""
    frames = [*wires[origin].frames, *wires[origin].frames]
    good(heard(client, origin, [b"".join(frames)] if together else frames), client)


@pytest.mark.parametrize("client", [CHAT, MESSAGES, GEMINI, "array"])
def test_a_terminal_snapshot_without_deltas_is_the_answer(heard, wires, client):
    frames = wires[RESPONSES].frames
    good(heard(client, RESPONSES, [frames[0], frames[-1]]), client)


@pytest.mark.parametrize("client", [CHAT, MESSAGES, GEMINI, "array"])
def test_a_terminal_alone_is_the_answer(heard, wires, client):
    good(heard(client, RESPONSES, [wires[RESPONSES].frames[-1]]), client)


@of_chat
def test_a_chat_stream_without_done_has_ended_when_its_body_has(heard, client):
    good(heard(client, CHAT, sse(HI, STOP, USAGE)), client)


@ending_with_a_terminal
def test_an_upstream_that_stays_open_after_its_terminal_is_not_waited_for(heard, wires, monkeypatch, client, origin):
    monkeypatch.setattr(answer, "_GRACE", 0.03)
    good(heard(client, origin, [*wires[origin].frames, 60.0], whole=False), client)


# Errors in a 200 stream -------------------------------------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("named", [False, True])
def test_an_error_event_is_the_terminal(heard, wires, client, origin, named):
    frames, error = wires[origin].frames, (b"event: error\n" if named else b"") + b"data: " + wires[origin].error + b"\n\n"
    begun = BEGUN[origin]
    bad(heard(client, origin, [*frames[:begun], error, *frames[begun:]]), Code.UPSTREAM_RATE_LIMITED)


@pairs
def test_an_error_body_inside_a_stream_is_a_failure(heard, wires, client, origin):
    """A server that fails after its head writes the body of an error where an event should be."""
    begun = BEGUN[origin]
    bad(heard(client, origin, [*wires[origin].frames[:begun], wires[origin].error]), Code.UPSTREAM_TRUNCATED)


UNTRUE = {
    "failed": ({"status": "failed", "error": {"code": "server_error", "message": "M"}}, Code.UPSTREAM_ERROR),
    "failed without a word": ({"status": "failed"}, Code.UPSTREAM_ERROR),
    "queued": ({"status": "queued"}, Code.UPSTREAM_TRUNCATED),
    "in_progress": ({"status": "in_progress"}, Code.UPSTREAM_TRUNCATED),
}


@pytest.mark.parametrize("client", [CHAT, MESSAGES, GEMINI, "array"])
@pytest.mark.parametrize(("told", "code"), UNTRUE.values(), ids=UNTRUE)
def test_a_terminal_whose_response_denies_it_is_no_success(heard, wires, client, told, code):
    frames = wires[RESPONSES].frames
    event = json.loads(frames[-1].partition(b"data: ")[2])
    bad(heard(client, RESPONSES, [*frames[:-1], *sse(event | {"response": event["response"] | told}, named=True)]), code)


@pairs
def test_an_error_after_the_finish_is_an_error(heard, wires, client, origin):
    """Nothing that looks like success may follow, nor have come before."""
    last = {CHAT: 2, RESPONSES: -1, MESSAGES: 5, GEMINI: 2}[origin]
    error = (b"event: error\n" if origin == MESSAGES else b"") + b"data: " + wires[origin].error + b"\n\n"
    found = heard(client, origin, [*wires[origin].frames[:last], error])
    bad(found, Code.UPSTREAM_RATE_LIMITED)


# Ends of the body -------------------------------------------------------------------------------------------------------------------------


@pairs
def test_an_end_without_a_finish_is_a_cut(heard, wires, client, origin):
    begun = BEGUN[origin]
    bad(heard(client, origin, wires[origin].frames[:begun]), Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("finish", [{"finishReason": "STOP"}, {}])
def test_what_proxies_send_behind_a_gemini_stream_is_no_end(heard, client, finish):
    """Nor is it a chunk that cannot be read."""
    said = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "index": 0} | finish], "usageMetadata": {"promptTokenCount": 3}}
    found = heard(client, GEMINI, [*sse(said), DONE])
    if finish:
        good(found, client, usage=Usage(input=3))
    else:
        bad(found, Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[1] in (RESPONSES, MESSAGES)])
def test_an_end_without_its_terminal_is_a_cut(heard, wires, client, origin):
    """These surfaces always say their end, so a finish is not enough."""
    bad(heard(client, origin, wires[origin].frames[:-1]), Code.UPSTREAM_TRUNCATED)


@pairs
@pytest.mark.parametrize("rest", [b"data: {", b'data: {"a": "\xf0\x9f', b"data", b"data: \xf0\x9f\x98"])
def test_an_end_in_mid_event_is_a_cut(heard, wires, client, origin, rest):
    begun = BEGUN[origin]
    bad(heard(client, origin, [*wires[origin].frames[:begun], rest]), Code.UPSTREAM_TRUNCATED)


@of_chat
@pytest.mark.parametrize("rest", [b"data: {", b"data: \xf0\x9f"])
def test_an_end_in_mid_event_is_a_cut_even_after_the_finish(heard, client, rest):
    bad(heard(client, CHAT, [*sse(HI, STOP), rest]), Code.UPSTREAM_TRUNCATED)


@pairs
def test_a_broken_character_in_an_event_is_a_bad_answer(heard, wires, client, origin):
    frames, begun = wires[origin].frames, BEGUN[origin]
    broken = frames[begun - 1].replace(b"Hi", b"\xf0\x9f")
    bad(heard(client, origin, [*frames[:begun], broken, *frames[begun:]]), Code.UPSTREAM_BAD_RESPONSE)


# Calls ------------------------------------------------------------------------------------------------------------------------------------


def call(arguments):
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments}}]}


@of_chat
def test_a_stop_after_a_call_is_for_the_call(heard, client):
    end, _, calls, stop, record = heard(client, CHAT, [*sse(chunk(call('{"a": 1}')), STOP), DONE])
    assert (end, calls, stop, record.stop) == ("end", ["look"], TOOLS[client], "tools")


@of_chat
def test_half_a_call_at_the_limit_is_no_finished_one(heard, client):
    """Gemini has no place for one, Responses says that it is incomplete, and a Messages client that reads `max_tokens` does not run it."""
    end, _, calls, stop, record = heard(client, CHAT, [*sse(chunk(call('{"a": "b')), chunk({}, "length")), DONE])
    assert (end, calls, stop, record.stop) == ("end", ["look"] * (client == MESSAGES), LENGTH[client], "length")


@of_chat
def test_half_a_call_without_a_finish_is_a_cut(heard, client):
    bad(heard(client, CHAT, [*sse(HI, chunk(call('{"a": "b'))), DONE]), Code.UPSTREAM_TRUNCATED)


HALF = '{"a": "b'
DEAD = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "", "status": "in_progress"}
USE = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}}
GREW = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": HALF}}
AFTER = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hi"}}
PLACE = {"output_index": 0, "item_id": "fc_1"}
SAYING = {"type": "message", "id": "m_1", "role": "assistant", "status": "in_progress", "content": []}
# An upstream that says in its own words that half a call is over, then says something else. And how it fails then, or says that all is well.
OVER = {
    CHAT: sse(chunk({"role": "assistant", **call(HALF)}), chunk({"content": "Hi"}), chunk({}, "tool_calls")),
    RESPONSES: sse(
        {"type": "response.output_item.added", "output_index": 0, "item": DEAD},
        {"type": "response.function_call_arguments.delta", **PLACE, "delta": HALF},
        {"type": "response.function_call_arguments.done", **PLACE, "arguments": HALF},
        {"type": "response.output_item.done", "output_index": 0, "item": DEAD | {"arguments": HALF, "status": "completed"}},
        {"type": "response.output_item.added", "output_index": 1, "item": SAYING},
        {"type": "response.output_text.delta", "item_id": "m_1", "output_index": 1, "content_index": 0, "delta": "Hi"},
        named=True,
    ),
    MESSAGES: sse(USE, GREW, {"type": "content_block_stop", "index": 0}, AFTER, {"type": "content_block_stop", "index": 1}, named=True),
}
LOST = ["an error", "a broken body", "an end that is none"]
FINISHED = {"content_block_stop", "response.function_call_arguments.done", "response.output_item.done", "message_delta"}


def closing(origin, frames, lost):
    """What the upstream says after half a call: an error, nothing more, or its usual end."""
    error = (b"event: error\n" if origin == MESSAGES else b"") + b"data: %s\n\n"
    ends = {CHAT: [DONE], RESPONSES: frames[-1:], MESSAGES: frames[4:]}
    return {"an error": [error % b'{"type": "error", "error": {"type": "api_error", "message": "M"}}'], "a broken body": []}.get(lost, ends[origin])


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[1] in OVER])
def test_half_a_call_before_a_failure_is_never_told_as_a_finished_one(ask, gateway, upstream, wires, client, origin, lost):
    """The upstream closes its block or item before it fails; what has passed stays open, and what follows it is not said at all."""
    wire, frames = wires[client], wires[origin].frames
    chunks = [*([] if origin == CHAT else frames[:1]), *OVER[origin], *closing(origin, frames, lost)]
    reply = ask(gateway(upstream(chunks=chunks, whole=lost != "a broken body"), origin), *wire.ask(stream=True))
    events = wire.events(reply.body) if reply.status == 200 else [reply.json]
    said = reply.body.decode()
    assert events[-1].get("type") in {"error", "response.failed"} or "error" in events[-1]
    assert "look" in said or wire.surface == GEMINI
    assert not [one for one in events if one.get("type") in FINISHED]
    assert not any(word in said for word in ('tool_calls"}', "functionCall", "finishReason"))
