"""The grammars that every stream of every test is held against: a good stream passes, and each rule refuses a stream that breaks it."""

from __future__ import annotations

import json
import re

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

DONE = "[DONE]"


def sse(*events, name=True):
    """Events that are objects with a type are named by it."""
    lines = []
    for event in events:
        kind = event.get("type") if name and isinstance(event, dict) else None
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append((f"event: {kind}\n" if kind else "") + f"data: {data}\n\n")
    return ": a comment\n\n" + "".join(lines)


def chunk(delta=None, finish=None, *, index=0, **members):
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **members}


def call(index=0, arguments="", **head):
    more = {"id": head["id"]} if "id" in head else {}
    said = {"name": head["name"]} if "name" in head else {}
    return {"tool_calls": [{"index": index, **more, "function": {**said, "arguments": arguments}}]}


ROLE = chunk({"role": "assistant", "content": ""})
FINISH = chunk(finish="stop")
USAGE = chunk(choices=[], usage={"total_tokens": 3})
ERROR = {"error": {"message": "x"}}
ONE = chunk(call(id="a", name="f"))

OTHER = [chunk({"role": "assistant"}, index=1), chunk(call(id="b", name="g"), index=1)]  # a second choice counts its calls anew
OVER = chunk(finish="length", index=1)

GOOD_CHAT = [ROLE, chunk({"content": "a"}), ONE, chunk(call(arguments="{}")), *OTHER, chunk(call(1, id="b", name="f")), FINISH, OVER, USAGE, DONE]
BAD_CHAT = {
    "no terminal": [ROLE, FINISH],
    "two terminals": [ROLE, FINISH, DONE, DONE],
    "something after the terminal": [ROLE, ERROR, FINISH],
    "an end without a finish": [ROLE, *OTHER, FINISH, DONE],
    "two ids": [ROLE, FINISH | {"id": "d"}, DONE],
    "no id": [ROLE | {"id": ""}, FINISH | {"id": ""}, DONE],
    "two values of model": [ROLE, FINISH | {"model": "n"}, DONE],
    "something after the usage chunk": [ROLE, FINISH, USAGE, USAGE, DONE],
    "a chunk without choices that is no usage chunk": [ROLE, USAGE, FINISH, DONE],
    "a choice goes on after its finish": [ROLE, FINISH, FINISH, DONE],
    "no role first": [ROLE, FINISH, OVER, DONE],
    "a call out of its order": [ROLE, chunk(call(1, id="a", name="f")), FINISH, DONE],
    "a call without its id": [ROLE, chunk(call(name="f")), FINISH, DONE],
    "a call without its name": [ROLE, chunk(call(id="a")), FINISH, DONE],
    "a call's id twice": [ROLE, ONE, chunk(call(id="a")), FINISH, DONE],
    "a call's name twice": [ROLE, ONE, chunk(call(name="f")), FINISH, DONE],
    "a named chunk": [ROLE | {"type": "chunk"}, FINISH, DONE],
    "a frame that is no object": [ROLE, "[1]", DONE],
}


def begin(index=0, kind="text", **members):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def delta(index=0, kind="text_delta"):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind}}


def stop(index=0):
    return {"type": "content_block_stop", "index": index}


START = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}
BROKEN = {"type": "error", "error": {}}
SIGNED = delta(kind="signature_delta")

SEARCH = begin(kind="server_tool_use", id="s", name="web_search")
FOUND = begin(1, "web_search_tool_result", tool_use_id="s", content=[])

GOOD_MESSAGES = [START, {"type": "ping"}, begin(kind="thinking"), SIGNED, stop(), begin(1), delta(1), stop(1), REASON, STOP]
SEARCHED = [
    START,
    SEARCH,
    delta(kind="input_json_delta"),
    stop(),
    FOUND,
    stop(1),
    begin(2),
    delta(2),
    delta(2, "citations_delta"),
    stop(2),
    REASON,
    STOP,
]
BAD_MESSAGES = {
    "no terminal": [START, REASON],
    "two terminals": [START, REASON, STOP, BROKEN],
    "something after the terminal": [START, BROKEN, REASON],
    "no message_start first": [begin(), STOP],
    "no usage in message_start": [{"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}, REASON, STOP],
    "content in message_start": [{"type": "message_start", "message": START["message"] | {"content": [{}]}}, REASON, STOP],
    "a block inside a block": [START, begin(), begin(1), STOP],
    "a block out of its order": [START, begin(1), stop(1), REASON, STOP],
    "a block after the reason": [START, REASON, begin(), stop(), STOP],
    "a delta outside its block": [START, delta(), REASON, STOP],
    "a delta of another kind of block": [START, begin(), SIGNED, stop(), REASON, STOP],
    "more after the signature": [START, begin(kind="thinking"), SIGNED, SIGNED, stop(), REASON, STOP],
    "a search without its id": [START, begin(kind="server_tool_use", name="web_search"), stop(), REASON, STOP],
    "a search without its name": [START, begin(kind="server_tool_use", id="s"), stop(), REASON, STOP],
    "results of no search": [START, FOUND | {"index": 0}, stop(), REASON, STOP],
    "or twice": [START, SEARCH, stop(), FOUND, stop(1), FOUND | {"index": 2}, stop(2), REASON, STOP],
    "results without their content": [START, SEARCH, stop(), begin(1, "web_search_tool_result", tool_use_id="s"), stop(1), REASON, STOP],
    "a stop of a block that is not open": [START, begin(), stop(), stop(), REASON, STOP],
    "message_delta inside a block": [START, begin(), REASON, STOP],
    "message_start inside a message": [START, START, REASON, STOP],
    "an end without one reason": [START, STOP],
}

CALL = {"type": "function_call", "id": "i", "call_id": "c", "name": "f"}


def numbered(*events):
    """Events with their numbers; each one's type without its prefix."""
    return [{"sequence_number": number, **event, "type": event["type"]} for number, event in enumerate(events)]


def response(kind, *output, identity="r"):
    return {"type": f"response.{kind}", "response": {"id": identity, "output": [*output]}}


def item(step, index=0, **members):
    return {"type": f"response.output_item.{step}", "output_index": index, "item": CALL | members}


def arguments(step, identity="i", index=0, **members):
    return {"type": f"response.function_call_arguments.{step}", "item_id": identity, "output_index": index, **members}


def part(step):
    return {"type": f"response.content_part.{step}", "item_id": "i", "output_index": 0, "content_index": 0, "part": {}}


def step(name, **members):
    return {"type": f"response.web_search_call.{name}", "item_id": "i", "output_index": 0, **members}


LOOKUP = {"type": "web_search_call", "id": "i"}
ASKED, ANSWERED = ({"type": f"response.output_item.{name}", "output_index": 0, "item": LOOKUP} for name in ("added", "done"))
CREATED, ADDED, ENDED = response("created"), item("added"), item("done")
COMPLETED = response("completed", CALL)
SAID, ALL = arguments("delta", delta="{}"), arguments("done", arguments="{}")

GOOD_RESPONSES = [CREATED, ADDED, part("added"), part("done"), SAID, ALL, ENDED, item("added", 1, id="j"), item("done", 1, id="j")]
GOOD_RESPONSES += [response("incomplete", CALL, CALL | {"id": "j"})]
LOOKED_UP = [CREATED, ASKED, *map(step, ("in_progress", "searching", "completed")), ANSWERED, response("completed", LOOKUP)]
BAD_RESPONSES = {
    "a step of another kind of item": numbered(CREATED, ADDED, step("searching"), ENDED, COMPLETED),
    "a search's steps out of their order": numbered(CREATED, ASKED, step("searching"), step("in_progress"), ANSWERED, COMPLETED),
    "no terminal": numbered(CREATED, ADDED, ENDED),
    "two terminals": numbered(CREATED, response("completed"), response("failed")),
    "something after the terminal": numbered(CREATED, response("failed"), ADDED),
    "sequence numbers with gaps": [CREATED | {"sequence_number": 0}, response("completed") | {"sequence_number": 2}],
    "no response.created first": numbered(ADDED, ENDED, COMPLETED),
    "two response ids": numbered(CREATED, response("completed", identity="s")),
    "an item out of its order": numbered(CREATED, item("added", 1), item("done", 1), COMPLETED),
    "an item's id twice": numbered(CREATED, ADDED, item("added", 1), COMPLETED),
    "an item that was not announced": numbered(CREATED, SAID, COMPLETED),
    "more of an item that is done": numbered(CREATED, ADDED, ENDED, SAID, COMPLETED),
    "another item than was announced": numbered(CREATED, ADDED, item("done", name="g"), COMPLETED),
    "another item's id": numbered(CREATED, ADDED, arguments("delta", "j", delta=""), COMPLETED),
    "more of what is done": numbered(CREATED, ADDED, SAID, ALL, SAID, COMPLETED),
    "done twice": numbered(CREATED, ADDED, SAID, ALL, ALL, COMPLETED),
    "a part announced twice": numbered(CREATED, ADDED, part("added"), part("added"), COMPLETED),
    "another text than its deltas": numbered(CREATED, ADDED, SAID, arguments("done", arguments="{ }"), ENDED, COMPLETED),
    "another output than the items that were done": numbered(CREATED, ADDED, ENDED, response("completed")),
    "an end with an item that is not done": numbered(CREATED, ADDED, response("completed")),
}


def said(text="a", finish=None, index=None, **members):
    ending = ({"finishReason": finish} if finish else {}) | ({"index": index} if index else {})
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **ending}], **members}


def spent(total):
    return {"usageMetadata": {"totalTokenCount": total}}


NAMELESS = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "", "args": {}}}]}, "finishReason": "STOP"}]}
GOOD_GEMINI = [said(**spent(1)), said(), said(index=1), said(finish="STOP", **spent(2)), said(finish="STOP", index=1)]
BAD_GEMINI = {
    "no terminal": [said(), said(index=1), said(finish="STOP")],
    "two terminals": [said(finish="STOP"), said(finish="STOP")],
    "something after the terminal": [ERROR, said()],
    "usage that shrinks": [said(**spent(2)), said(finish="STOP", **spent(1))],
    "a call without its name": [NAMELESS],
    "a frame that is no object": ["[1]"],
}
ORDERS = {CHAT: (GOOD_CHAT, BAD_CHAT), MESSAGES: (GOOD_MESSAGES, BAD_MESSAGES), GEMINI: (GOOD_GEMINI, BAD_GEMINI)}
ORDERS[RESPONSES] = (numbered(*GOOD_RESPONSES), BAD_RESPONSES)
BROKEN_RULES = [(surface, rule) for surface, (_, bad) in ORDERS.items() for rule in bad]


@pytest.mark.parametrize("surface", ORDERS)
def test_a_good_stream_passes(grammar, surface):
    grammar(surface, sse(*ORDERS[surface][0]).encode())
    grammar(surface, sse(*ORDERS[surface][0]).replace("\n", "\r\n").encode())


@pytest.mark.parametrize(
    ("surface", "events"),
    [
        (CHAT, [ERROR]),
        (CHAT, [ROLE, ERROR]),
        (MESSAGES, SEARCHED),
        (RESPONSES, numbered(*LOOKED_UP)),
        (GEMINI, [said(finish="STOP"), said(index=1), ERROR]),
        (MESSAGES, [BROKEN]),
        (MESSAGES, [START, begin(), BROKEN]),
        (RESPONSES, numbered({"type": "error"})),
        (RESPONSES, numbered(CREATED, ADDED, {"type": "error"})),
        (RESPONSES, numbered(CREATED, ADDED, response("failed"))),
        (RESPONSES, [CREATED | {"sequence_number": 0}, {"type": "ping"}, response("completed") | {"sequence_number": 1}]),
        (GEMINI, [ERROR]),
        (GEMINI, [said(), ERROR]),
        (GEMINI, [{"promptFeedback": {"blockReason": "SAFETY"}}]),
    ],
)
def test_a_good_end_passes(grammar, surface, events):
    grammar(surface, sse(*events).encode())


@pytest.mark.parametrize(("surface", "rule"), BROKEN_RULES)
def test_each_rule_refuses_what_breaks_it(grammar, surface, rule):
    with pytest.raises(AssertionError, match=re.escape(rule)):
        grammar(surface, sse(*ORDERS[surface][1][rule]).encode())


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ([said(), said(finish="STOP", index=1)], "no terminal"),
        ([said(finish="STOP"), ERROR], "two terminals"),
        ([said(finish="STOP"), said(index=1), said()], "something after the terminal"),
        ([said(finish="STOP"), spent(3)], "something after the terminal"),
        ([], "no terminal"),
    ],
)
def test_each_candidate_ends_once_and_an_end_is_the_last(grammar, events, rule):
    with pytest.raises(AssertionError, match=rule):
        grammar(GEMINI, sse(*events).encode())


@pytest.mark.parametrize("rule", [rule for rule in BAD_GEMINI if rule != "a frame that is no object"])
def test_the_rules_hold_for_an_array(grammar, rule):
    grammar(GEMINI, json.dumps(GOOD_GEMINI).encode(), array=True)
    with pytest.raises(AssertionError, match=re.escape(rule)):
        grammar(GEMINI, json.dumps(BAD_GEMINI[rule]).encode(), array=True)


@pytest.mark.parametrize(
    ("surface", "body", "rule"),
    [
        (CHAT, sse(*GOOD_CHAT)[:-1], "an unfinished block"),
        (MESSAGES, sse(*GOOD_MESSAGES, name=False), "an event under another name"),
        (RESPONSES, sse(*numbered(CREATED, COMPLETED)).replace("response.created\n", "x\n"), "an event under another name"),
        (GEMINI, sse(*GOOD_GEMINI).replace("data", "event: x\ndata", 1), "a named chunk"),
    ],
)
def test_the_framing_has_rules_too(grammar, surface, body, rule):
    with pytest.raises(AssertionError, match=rule):
        grammar(surface, body.encode())


def test_an_array_holds_objects_alone_and_is_whole(grammar):
    with pytest.raises(AssertionError, match="no object"):
        grammar(GEMINI, b"[1]", array=True)
    with pytest.raises(ValueError, match="delimiter"):
        grammar(GEMINI, json.dumps(GOOD_GEMINI).encode()[:-1], array=True)


@pytest.mark.parametrize("surface", ORDERS)
def test_every_stream_that_a_test_asks_for_is_checked(ask, wires, surface):
    """A gateway that says what its surface does not allow is caught; a stream whose client has left, or what is no stream, is not looked at."""
    wire, body = wires[surface], sse(*BAD_GEMINI["no terminal"]).encode()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    with pytest.raises((AssertionError, KeyError)):
        ask(app, *wire.ask(stream=True))
    assert ask(app, *wire.ask(stream=True), grammar=False).body == body
    assert ask(app, "/health").body == body
