"""Three parallel calls, mixed in any way that an upstream may mix them, arrive whole and in order on every client's surface."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Request
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

CALLS = ("c0", "f", '{"a":"é}{","b":[1.0,{}]}'), ("c1", "g", "{}"), ("c2", "f", '{"x":{"y":"\\""}, "z":null}')
CLIENTS = {name: (name, Framing.SSE) for name in (CHAT, RESPONSES, MESSAGES, GEMINI)} | {"array": (GEMINI, Framing.JSON_ARRAY)}


def translated(upstream, client, body):
    surface, framing = CLIENTS[client]
    reader = CODECS[upstream]
    asked = Request(turns=(), stream=True)
    one = Translation(
        reader.decoder(),
        CODECS[surface].encoder(Context(request=asked, aliases={}, seal_domain="up", upstream=upstream, model="m", request_id="r", now=1)),
        upstream=Framing.SSE,
        downstream=framing,
        event_bytes=1 << 20,
        output_chars=1 << 20,
        eof_ends=reader.eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )
    return one.feed(body) + one.eof()


# What the client gets, by the wire's own rules: id, name and argument text of each call ----------------------------------------------------


def chat_calls(events):
    found = {}
    for delta in [choice["delta"] for event in events for choice in event["choices"]]:
        for call in delta.get("tool_calls", ()):
            one = found.setdefault(call["index"], [call.get("id"), call["function"].get("name"), ""])
            one[2] += call["function"]["arguments"]
    return [tuple(found[index]) for index in sorted(found)]


def responses_calls(events):
    done = {event["output_index"]: event["item"] for event in events if event["type"] == "response.output_item.done"}
    return [(item["call_id"], item["name"], item["arguments"]) for _, item in sorted(done.items())]


def messages_calls(events):
    found = []
    for event in events:
        if event["type"] == "content_block_start":
            found.append((event["content_block"]["id"], event["content_block"]["name"], ""))
        elif event["type"] == "content_block_delta":
            *head, said = found.pop()
            found.append((*head, said + event["delta"]["partial_json"]))
    return found


def gemini_calls(events):
    parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return [(call["id"], call["name"], json.dumps(call["args"])) for call in calls]


READ = {CHAT: chat_calls, RESPONSES: responses_calls, MESSAGES: messages_calls, GEMINI: gemini_calls}


def received(client, body):
    surface, framing = CLIENTS[client]
    found = json.loads(body) if framing is Framing.JSON_ARRAY else [json.loads(data) for data in re.findall(rb"^data: (\{.*)$", body, re.MULTILINE)]
    return [(call_id, name, json.loads(arguments)) for call_id, name, arguments in READ[surface](found)]


def whole(order):
    return [(call_id, name, json.loads(arguments)) for call_id, name, arguments in (CALLS[number] for number in order)]


# What the upstream sends -------------------------------------------------------------------------------------------------------------------


def pieces(draw, text):
    """The text in up to four pieces, some of them empty."""
    places = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=3))), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def mixed(draw, queues):
    """The numbered queues' steps as one, each queue's in its order."""
    order = draw(st.permutations([number for number, queue in enumerate(queues) for _ in queue]))
    left = [iter(queue) for queue in queues]
    return [(number, next(left[number])) for number in order]


@st.composite
def chat_stream(draw):
    """Id and name at once, one before the other, or behind the first arguments; then the order in which the calls could be told."""
    queues = []
    for number, (call_id, name, arguments) in enumerate(CALLS):
        head = draw(st.sampled_from([[{"id": call_id, "name": name}], [{"id": call_id}, {"name": name}], [{"id": call_id}, {}, {"name": name}]]))
        said = pieces(draw, arguments)
        early = said.pop(0) if {} in head else ""
        steps = [{"arguments": early} if step == {} else step for step in head] + [{"arguments": one} for one in said]
        queues.append([(number, step) for step in steps])
    steps = [step for _, step in mixed(draw, queues)]
    per_chunk = draw(st.integers(1, 3))
    chunks = [[call_delta(*step) for step in steps[at : at + per_chunk]] for at in range(0, len(steps), per_chunk)]
    deltas = [({"role": "assistant", "tool_calls": calls}, None) for calls in chunks] + [({}, "tool_calls")]
    lines = [{"id": "c", "model": "up", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas]
    body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
    return body.encode(), [number for number, step in steps if "name" in step]


def call_delta(number, step):
    function = {name: step[name] for name in ("name", "arguments") if name in step}
    return {"index": number, **({"id": step["id"], "type": "function"} if "id" in step else {}), "function": function}


@st.composite
def responses_stream(draw):
    """Three items at once: announced, their arguments in pieces, and done, with or without the events that say so."""
    queues = []
    for number, (_, _, arguments) in enumerate(CALLS):
        steps = [("added", ""), *(("delta", piece) for piece in pieces(draw, arguments))]
        steps += draw(st.sampled_from([[("done", arguments), ("item", "")], [("done", arguments)], [("item", "")], []]))
        queues.append([(number, *step) for step in steps])
    told = [step for _, step in mixed(draw, queues)]
    response = {"id": "resp_1", "model": "up", "object": "response", "status": "in_progress", "output": []}
    items = [item(number, arguments) for number, (_, _, arguments) in enumerate(CALLS)]
    events = [("response.created", {"response": response}), *(item_event(*step) for step in told)]
    events.append(("response.completed", {"response": response | {"status": "completed", "output": items}}))
    body = "".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **members})}\n\n"
        for number, (kind, members) in enumerate(events)
    )
    return body.encode(), [number for number, step, _ in told if step == "added"]


def item(number, arguments):
    call_id, name, _ = CALLS[number]
    return {"type": "function_call", "id": f"fc_{number}", "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}


def item_event(number, step, text):
    place = {"output_index": number}
    if step in {"added", "item"}:
        kind = "added" if step == "added" else "done"
        return f"response.output_item.{kind}", place | {"item": item(number, "" if step == "added" else CALLS[number][2])}
    member = "delta" if step == "delta" else "arguments"
    return f"response.function_call_arguments.{step}", place | {"item_id": f"fc_{number}", member: text}


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=60)
@given(chat_stream())
def test_calls_of_a_chat_upstream_arrive_whole_and_in_order(grammar, client, stream):
    body, order = stream
    out = translated(CHAT, client, body)
    grammar(CLIENTS[client][0], out, array=client == "array")
    assert received(client, out) == whole(order)
    assert Counter(order) == Counter(range(3))


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=60)
@given(responses_stream())
def test_calls_of_a_responses_upstream_arrive_whole_and_in_order(grammar, client, stream):
    body, order = stream
    out = translated(RESPONSES, client, body)
    grammar(CLIENTS[client][0], out, array=client == "array")
    assert received(client, out) == whole(order)
