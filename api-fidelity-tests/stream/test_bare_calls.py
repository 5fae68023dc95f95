"""A call without arguments: the empty object on every client's surface, streamed, folded and whole, unless a cut came before its arguments.

A Responses item says itself whether it is whole. Where it does not, and on the other surfaces, the end of the answer says it.
"""

from __future__ import annotations

import json
import re

import pytest

from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Request
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

SILENT = object()


def chat(finish, arguments=""):
    function = {"name": "f"} | ({} if arguments is SILENT else {"arguments": arguments})
    call = {"id": "c", "type": "function", "function": function}
    chunks = [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}, {"index": 0, "delta": {}, "finish_reason": finish}]
    return [*({"choices": [one]} for one in chunks), "[DONE]"], {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": finish}]}


def responses(status, item_status=SILENT, *, done=True, repeated=True):
    said = {} if item_status is SILENT else {"status": item_status}
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", **said}
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    response = {"status": status, "output": [item] if repeated else [], **why}
    events = [
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
        {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc", "arguments": ""},
        *[{"type": "response.output_item.done", "output_index": 0, "item": item}] * done,
        {"type": f"response.{status}", "response": response},
    ]
    return events, response


def messages(reason):
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return events, None


GENERATED = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]}

WHOLE = {
    "chat": (CHAT, *chat("tool_calls")),
    "chat, told nothing": (CHAT, *chat("stop", SILENT)),
    "chat, null": (CHAT, *chat("tool_calls", None)),
    "responses": (RESPONSES, *responses("completed", "completed")),
    "responses, no status": (RESPONSES, *responses("completed")),
    "responses, an odd status": (RESPONSES, *responses("completed", "in_progress")),
    "responses, never done": (RESPONSES, *responses("completed", done=False)),
    "responses, only announced": (RESPONSES, responses("completed", done=False, repeated=False)[0], None),
    "responses, cut later": (RESPONSES, *responses("incomplete", "completed")),
    "messages": (MESSAGES, *messages("tool_use")),
    "gemini": (GEMINI, [GENERATED], GENERATED),
}
HALF = {
    "chat": (CHAT, *chat("length")),
    "chat, null": (CHAT, *chat("length", None)),
    "responses": (RESPONSES, *responses("incomplete", "incomplete")),
    "responses, no status": (RESPONSES, *responses("incomplete")),
    "responses, never done": (RESPONSES, *responses("incomplete", done=False)),
    "responses, only announced": (RESPONSES, responses("incomplete", done=False, repeated=False)[0], None),
    "messages": (MESSAGES, messages("max_tokens")[0], None),
}
CLIENTS = (CHAT, RESPONSES, MESSAGES, GEMINI)


def translation(upstream, client, *, fold):
    to = Context(request=Request(turns=(), stream=not fold), aliases={}, seal_domain="up", upstream=upstream, model="m", request_id="r", now=1)
    reader, writer = CODECS[upstream], CODECS[client]
    return Translation(
        reader.decoder(),
        Fold(lambda response: writer.write(response, to)) if fold else writer.encoder(to),
        upstream=Framing.SSE,
        downstream=None if fold else Framing.SSE,
        event_bytes=1 << 20,
        output_chars=1 << 20,
        eof_ends=reader.eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )


def told(upstream, client, events, document):
    """The client's bytes: of the stream, of its fold, of the unfolded document and of the document written."""
    body = b"".join(b"data: %b\n\n" % (one if isinstance(one, str) else json.dumps(one)).encode() for one in events)
    outs = []
    for fold in (False, True):
        one = translation(upstream, client, fold=fold)
        outs.append(one.feed(body) + one.eof())
        assert one.fault is None
    whole = json.dumps(document).encode()
    return outs + [translation(upstream, client, fold=fold).say(unfold(CODECS[upstream].read(whole))) for fold in (False, True) if document]


def arguments(client, out):
    """The arguments of the calls that a client gets, by the wire's own rules; a stream's deltas are put together."""
    stream = out.startswith((b"data:", b"event:"))
    said = [json.loads(data) for data in re.findall(rb"data: (\{.*)", out)] if stream else [json.loads(out)]
    if client == CHAT:
        choices = [one.get("delta", one.get("message")) for event in said for one in event["choices"]]
        calls = [call for one in choices for call in one.get("tool_calls", ())]
        return ["".join(call["function"]["arguments"] for call in calls)] * bool(calls)
    if client == RESPONSES:
        return [item["arguments"] for item in (said[-1]["response"] if stream else said[0])["output"]]
    if client == GEMINI:
        parts = [part for event in said for one in event["candidates"] for part in one["content"].get("parts", ())]
        return [json.dumps(part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    if not stream:
        return [json.dumps(block["input"]) for block in said[0]["content"]]
    pieces = [event["delta"]["partial_json"] for event in said if event["type"] == "content_block_delta"]
    return ["".join(pieces)] * any(event["type"] == "content_block_start" for event in said)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", WHOLE)
def test_a_call_without_arguments_has_the_empty_object(case, client):
    upstream, events, document = WHOLE[case]
    assert {tuple(arguments(client, out)) for out in told(upstream, client, events, document)} == {("{}",)}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", HALF)
def test_a_call_that_was_cut_before_its_arguments_is_not_whole(case, client):
    """OpenAI's surfaces and a Messages stream say what there is; the others have no half calls."""
    upstream, events, document = HALF[case]
    assert all("{}" not in arguments(client, out) for out in told(upstream, client, events, document))
