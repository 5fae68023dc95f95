"""The grammars that every stream of every test is held against: a good stream passes, and each rule refuses a stream that breaks it."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

DONE = "[DONE]"


def sse(*events):
    """Events that are objects with a type are named by it."""
    lines = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append((f"event: {kind}\n" if kind else "") + f"data: {data}\n\n")
    return (": a comment\n\n" + "".join(lines)).encode()


# Chat -----------------------------------------------------------------------------------------------------------------------------------------


def chunk(delta=None, finish=None, *, index=0, **members):
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **members}


def call(index=0, arguments="", form="function", **head):
    more = {"id": head["id"], "type": form} if "id" in head else {}
    said = {"name": head["name"]} if "name" in head else {}
    return {"tool_calls": [{"index": index, **more, form: {**said, "input" if form == "custom" else "arguments": arguments}}]}


ROLE = chunk({"role": "assistant", "content": None, "refusal": None})
TEXT, FINISH, CALLED = chunk({"content": "a"}), chunk(finish="stop"), chunk(finish="tool_calls")
COUNTED = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
USAGE = chunk(choices=[], usage=COUNTED)
ERROR = {"error": {"message": "x", "type": "server_error", "param": None, "code": None}}
ONE, HALF = chunk(call(id="a", name="f")), chunk(call(arguments='{"a'))
OTHER = [chunk({"role": "assistant"}, index=1), chunk(call(id="b", name="g"), index=1)]  # a second choice counts its calls anew
OVER = chunk(finish="length", index=1)
GOOD_CHAT = [
    [ROLE, TEXT, ONE, chunk(call(arguments="{}")), *OTHER, chunk(call(1, id="b", name="f", form="custom")), FINISH, OVER, USAGE, DONE],
    [ROLE, ONE, chunk(call(arguments="{}")), CALLED, DONE],
    [ROLE, ONE, HALF, chunk(finish="length"), DONE],
    [ROLE, chunk({"function_call": {"name": "f", "arguments": "{}"}}), chunk(finish="function_call"), DONE],
    [ROLE, chunk({"content": "a"}, choices=[{"index": 0, "delta": {"content": "a"}, "finish_reason": None, "logprobs": None}]), FINISH, DONE],
    [ERROR],
    [ROLE, ERROR],
]
BAD_CHAT = {
    "no terminal": [ROLE, FINISH],
    "two terminals": [ROLE, FINISH, DONE, DONE],
    "something after the terminal": [ROLE, ERROR, FINISH],
    "an error after a finish": [ROLE, FINISH, ERROR],
    "an end without a finish": [ROLE, *OTHER, FINISH, DONE],
    "two values of id": [ROLE, FINISH | {"id": "d"}, DONE],
    "two values of created": [ROLE, FINISH | {"created": 2}, DONE],
    "two values of model": [ROLE, FINISH | {"model": "n"}, DONE],
    "a chunk without its id": [ROLE | {"id": ""}, FINISH | {"id": ""}, DONE],
    "a chunk whose object is another": [ROLE | {"object": "x"}, DONE],
    "a chunk with foo, which the API does not have": [ROLE | {"foo": 1}, DONE],
    "a chunk without choices": [{name: value for name, value in ROLE.items() if name != "choices"}, DONE],
    "a choice without finish_reason": [chunk(choices=[{"index": 0, "delta": {"role": "assistant"}}]), DONE],
    "a choice without index": [chunk(choices=[{"delta": {"role": "assistant"}, "finish_reason": None}]), DONE],
    "a choice whose finish_reason is another": [ROLE, chunk(finish="STOP"), DONE],
    "a choice out of its order": [chunk({"role": "assistant"}, index=1), DONE],
    "something after the usage chunk": [ROLE, FINISH, USAGE, USAGE, DONE],
    "a chunk without choices that is no usage chunk": [ROLE, USAGE, FINISH, DONE],
    "no total_tokens in the usage": [ROLE, FINISH, chunk(choices=[], usage=COUNTED | {"total_tokens": True}), DONE],
    "usage in a chunk with choices": [ROLE | {"usage": COUNTED}, FINISH, DONE],
    "a choice goes on after its finish": [ROLE, FINISH, TEXT, DONE],
    "no role first": [TEXT, FINISH, DONE],
    "a role twice": [ROLE, ROLE, FINISH, DONE],
    "null in a later delta": [ROLE, chunk({"content": None}), FINISH, DONE],
    "null at /choices/*/delta/tool_calls": [chunk({"role": "assistant", "tool_calls": None}), FINISH, DONE],
    "null at /choices/*/delta/function_call": [chunk({"role": "assistant", "function_call": None}), FINISH, DONE],
    "null at /choices/*/delta/reasoning_content": [ROLE, chunk({"reasoning_content": None}), FINISH, DONE],
    "null at /service_tier": [ROLE | {"service_tier": None}, FINISH, DONE],
    "a delta whose content is another": [ROLE, chunk({"content": ["a"]}), FINISH, DONE],
    "a call out of its order": [ROLE, chunk(call(1, id="a", name="f")), FINISH, DONE],
    "a call without its id": [ROLE, chunk(call(name="f")), FINISH, DONE],
    "a call without its name": [ROLE, chunk(call(id="a")), FINISH, DONE],
    "a call's id twice": [ROLE, ONE, chunk(call(id="a")), FINISH, DONE],
    "a call's name twice": [ROLE, ONE, chunk(call(name="f")), FINISH, DONE],
    "a call's piece without a string of arguments": [ROLE, ONE, chunk(call(arguments={})), FINISH, DONE],
    "a finish for calls, and no call": [ROLE, TEXT, CALLED, DONE],
    "a finish for a function call, and no call": [ROLE, TEXT, chunk(finish="function_call"), DONE],
    "half a call in a finished answer": [ROLE, ONE, HALF, CALLED, DONE],
    "a named chunk": [{"type": "chunk"}, FINISH, DONE],
    "an error without type": [{"error": {"message": "x"}}],
    "a frame that is no object": [ROLE, "[1]", DONE],
    "a frame that is no JSON": [ROLE, "{", DONE],
    "NaN is no JSON": [ROLE, '{"created": NaN}', DONE],
    "a member twice": [ROLE, '{"id": "c", "id": "c"}', DONE],
}

# Messages -------------------------------------------------------------------------------------------------------------------------------------

BLANK = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"id": "t", "name": "f", "input": {}}}
SAID = {
    "text_delta": {"text": "a"},
    "thinking_delta": {"thinking": "a"},
    "signature_delta": {"signature": "s"},
    "input_json_delta": {"partial_json": "{}"},
    "citations_delta": {"citation": {"type": "web_search_result_location", "title": None}},
}


def begin(index=0, kind="text", **members):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **BLANK.get(kind, {}), **members}}


def delta(index=0, kind="text_delta", **members):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **SAID[kind], **members}}


def stop(index=0):
    return {"type": "content_block_stop", "index": index}


def started(**members):
    head = {"id": "m", "type": "message", "role": "assistant", "model": "u", "content": [], "stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": {**head, "usage": {"input_tokens": 1, "output_tokens": 1}, **members}}


def reason(why="end_turn", tokens=2, **members):
    return {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None, **members}, "usage": {"output_tokens": tokens}}


START, REASON, STOP = started(), reason(), {"type": "message_stop"}
BROKEN = {"type": "error", "error": {"type": "api_error", "message": "x"}, "request_id": "r"}
SPOKEN, SIGNED, USE = [begin(), delta(), stop()], delta(kind="signature_delta"), begin(kind="tool_use")
CUT = [USE, delta(kind="input_json_delta", partial_json='{"a'), stop()]
SEARCH = begin(kind="server_tool_use", id="s", name="web_search", input={})
FOUND = begin(1, "web_search_tool_result", tool_use_id="s", content=[{"type": "web_search_result", "page_age": None}])
THOUGHT = [begin(kind="thinking"), delta(kind="thinking_delta"), SIGNED, stop()]
GOOD_MESSAGES = [
    [START, {"type": "ping"}, *THOUGHT, begin(1), delta(1), stop(1), REASON, STOP],
    [START, SEARCH, delta(kind="input_json_delta"), stop(), FOUND, stop(1), begin(2), delta(2), delta(2, "citations_delta"), stop(2), REASON, STOP],
    [START, begin(kind="redacted_thinking", data="r"), stop(), begin(1, "tool_use"), delta(1, "input_json_delta"), stop(1), reason("tool_use"), STOP],
    [START, *CUT, reason("max_tokens"), STOP],
    [BROKEN],
    [START, begin(), delta(), BROKEN],
    [START, *CUT[:2], BROKEN],
]
BAD_MESSAGES = {
    "no terminal": [START, REASON],
    "two terminals": [START, REASON, STOP, BROKEN],
    "something after the terminal": [START, BROKEN, REASON],
    "an error after the reason": [START, REASON, BROKEN],
    "half a call that was closed before an error": [START, *CUT, BROKEN],
    "half a call in a finished answer": [START, *CUT, reason("tool_use"), STOP],
    "no message_start first": [begin(), STOP],
    "a message without its id": [started(id=""), REASON, STOP],
    "a message without stop_reason": [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "u", "content": []}}
    ],
    "an end in message_start": [started(stop_reason="end_turn"), REASON, STOP],
    "no output_tokens in the usage": [started(usage={"input_tokens": 1}), REASON, STOP],
    "content in message_start": [started(content=[{}]), REASON, STOP],
    "usage that shrinks": [started(usage={"input_tokens": 1, "output_tokens": 9}), REASON, STOP],
    "message_delta without usage": [START, {"type": "message_delta", "delta": REASON["delta"]}, STOP],
    "null at /message/container": [started(container=None), REASON, STOP],
    "null at /message/usage/service_tier": [started(usage={"input_tokens": 1, "output_tokens": 1, "service_tier": None}), REASON, STOP],
    "null at /content_block/citations": [START, begin(citations=None), delta(), stop(), REASON, STOP],
    "a block inside a block": [START, begin(), begin(1), STOP],
    "a block out of its order": [START, begin(1), stop(1), REASON, STOP],
    "a block after the reason": [START, REASON, begin(), stop(), STOP],
    "a block of no known kind": [START, begin(kind="x"), STOP],
    "a block's id twice": [START, USE, stop(), begin(1, "tool_use"), stop(1), reason("tool_use"), STOP],
    "a call that begins with its input": [START, begin(kind="tool_use", input={"a": 1}), STOP],
    "a text block whose text is another": [START, begin(text="a"), STOP],
    "a text block without text": [START, begin(), stop(), REASON, STOP],
    "thinking without its signature": [START, *THOUGHT[:2], stop(), REASON, STOP],
    "a delta outside its block": [START, delta(), REASON, STOP],
    "a delta of no known kind": [START, begin(), {"type": "content_block_delta", "index": 0, "delta": {"type": "x"}}, STOP],
    "a delta of another kind of block": [START, begin(), SIGNED, stop(), REASON, STOP],
    "a delta without text": [START, begin(), {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}, STOP],
    "more after the signature": [START, begin(kind="thinking"), SIGNED, SIGNED, stop(), REASON, STOP],
    "a server_tool_use block without its id": [START, begin(kind="server_tool_use", id="", name="web_search", input={}), STOP],
    "a server_tool_use block without name": [START, begin(kind="server_tool_use", id="s", input={}), STOP],
    "results of no search": [START, FOUND | {"index": 0}, stop(), REASON, STOP],
    "or twice": [START, SEARCH, stop(), FOUND, stop(1), FOUND | {"index": 2}, stop(2), REASON, STOP],
    "a web_search_tool_result block without content": [START, SEARCH, stop(), begin(1, "web_search_tool_result", tool_use_id="s"), STOP],
    "a stop of a block that is not open": [START, *SPOKEN, stop(), REASON, STOP],
    "message_delta inside a block": [START, begin(), REASON, STOP],
    "message_start inside a message": [START, START, REASON, STOP],
    "x inside a message": [START, {"type": "x"}, STOP],
    "an end without one reason": [START, STOP],
    "two reasons": [START, REASON, REASON, STOP],
    "a reason for calls, and no call": [START, *SPOKEN, reason("tool_use"), STOP],
    "message_delta whose stop_reason is another": [START, *SPOKEN, reason("stop"), STOP],
    "message_stop with usage": [START, *SPOKEN, REASON, STOP | {"usage": {}}],
    "an error whose type is another": [{"type": "error", "error": {"type": "x", "message": "x"}}],
}

# Responses ------------------------------------------------------------------------------------------------------------------------------------


def numbered(*events):
    return [{"type": event["type"], "sequence_number": number, **event} for number, event in enumerate(events)]


def response(kind, *output, status=None, **members):
    usual = {"error": None, "incomplete_details": None, "usage": None, "instructions": None, "parallel_tool_calls": True, "tool_choice": "auto"}
    ends = {"failed": {"error": {"code": "server_error", "message": "x"}}, "incomplete": {"incomplete_details": {"reason": "max_output_tokens"}}}
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status or ("in_progress" if kind == "created" else kind)}
    return {"type": f"response.{kind}", "response": {**head, **usual, "tools": [], "output": [*output], **ends.get(kind, {}), **members}}


def item(step, one, index=0):
    return {"type": f"response.output_item.{step}", "output_index": index, "item": one}


def of(kind, identity="i", index=0, **members):
    return {"type": f"response.{kind}", "item_id": identity, "output_index": index, **members}


def part(step, one, index=0):
    return of(f"content_part.{step}", content_index=index, part=one)


CALL = {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "status": "completed", "arguments": "{}"}
ASKS = item("added", CALL | {"status": "in_progress", "arguments": ""})
GREW, ALL = of("function_call_arguments.delta", delta="{}"), of("function_call_arguments.done", arguments="{}")
CREATED, RUNNING = response("created"), response("in_progress")
BEGUN, CALLING = [CREATED, RUNNING], [CREATED, RUNNING, ASKS, GREW, ALL, item("done", CALL)]
COMPLETED = response("completed", CALL, usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})
WORDS = {"type": "output_text", "text": "Hi", "annotations": []}
MESSAGE = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [WORDS]}
OPENED = item("added", MESSAGE | {"status": "in_progress", "content": []})
PART, GROWN, TOLD = (
    part("added", WORDS | {"text": ""}),
    of("output_text.delta", content_index=0, delta="Hi"),
    of("output_text.done", content_index=0, text="Hi"),
)
SPEAKING = [*BEGUN, OPENED, PART, GROWN, TOLD, part("done", WORDS)]
MARK, SOURCED = {"type": "url_citation", "url": "u"}, WORDS | {"annotations": [{"type": "url_citation", "url": "u"}]}
MARKED = of("output_text.annotation.added", content_index=0, annotation_index=0, annotation=MARK)
SHORT = CALL | {"status": "incomplete", "arguments": "{"}
SHORTLY = [of("function_call_arguments.delta", delta="{"), of("function_call_arguments.done", arguments="{")]
LOOKUP = {"type": "web_search_call", "id": "i", "status": "completed", "action": {"type": "search", "query": "q"}}
LOOKING, LOOKED = item("added", LOOKUP | {"status": "in_progress"}), item("done", LOOKUP)
STEPS = [of(f"web_search_call.{step}") for step in ("in_progress", "searching", "completed")]
SUMMARY = {"type": "summary_text", "text": "a"}
MUSED = {"type": "reasoning", "id": "i", "summary": [SUMMARY], "encrypted_content": "e"}
MUSING = [
    item("added", {"type": "reasoning", "id": "i", "summary": []}),
    of("reasoning_summary_part.added", summary_index=0, part=SUMMARY | {"text": ""}),
    of("reasoning_summary_text.delta", summary_index=0, delta="a"),
    of("reasoning_summary_text.done", summary_index=0, text="a"),
    of("reasoning_summary_part.done", summary_index=0, part=SUMMARY),
    item("done", MUSED),
]
FREE = {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "f", "input": "x"}
FREELY = [
    item("added", FREE | {"input": ""}),
    of("custom_tool_call_input.delta", delta="x"),
    of("custom_tool_call_input.done", input="x"),
    item("done", FREE),
]
FAULT = {"type": "error", "code": "server_error", "message": "x", "param": None}
SPOKE = item("done", MESSAGE)

GOOD_RESPONSES = [
    numbered(*one)
    for one in (
        [*CALLING, COMPLETED],
        [*SPEAKING, SPOKE, response("completed", MESSAGE)],
        [*BEGUN, OPENED, PART, GROWN, MARKED, TOLD, part("done", SOURCED), item("done", MESSAGE | {"content": [SOURCED]}),
         response("completed", MESSAGE | {"content": [SOURCED]})],
        [*BEGUN, *MUSING, response("completed", MUSED)],
        [*BEGUN, *FREELY, response("completed", FREE)],
        [*BEGUN, LOOKING, *STEPS, LOOKED, response("completed", LOOKUP)],
        [*BEGUN, ASKS, *SHORTLY, item("done", SHORT), response("incomplete", SHORT)],
        [FAULT],
        [*BEGUN, ASKS, response("failed")],
        [*CALLING, response("failed", CALL)],
    )
]  # fmt: skip
BAD_RESPONSES = {
    "a step of another kind of item": [*BEGUN, ASKS, STEPS[0]],
    "a search's steps out of their order": [*BEGUN, LOOKING, STEPS[1]],
    "a search that is done without its steps": [*BEGUN, LOOKING, LOOKED],
    "no terminal": CALLING,
    "two terminals": [*CALLING, COMPLETED, response("failed", CALL)],
    "something after the terminal": [*BEGUN, response("failed"), ASKS],
    "no response.created and response.in_progress first": [CREATED, ASKS],
    "another output than the items that were done": [*CALLING, response("completed")],
    "two response ids": [CREATED, RUNNING | {"response": RUNNING["response"] | {"id": "s"}}],
    "a response of another status": [*BEGUN, response("completed", status="incomplete")],
    "a response without its model": [response("created", model="")],
    "a response without usage": [{"type": "response.created", "response": {n: v for n, v in CREATED["response"].items() if n != "usage"}}],
    "usage of a running response": [response("created", usage={})],
    "an error in another response": [*BEGUN, response("completed", error={"code": "x", "message": "x"})],
    "details of another response": [*BEGUN, response("completed", incomplete_details={"reason": "x"})],
    "no total_tokens in the usage": [*BEGUN, response("completed", usage={"input_tokens": 1, "output_tokens": 1})],
    "usage that is no object": [*BEGUN, response("completed", usage=[1])],
    "details without its reason": [*BEGUN, response("incomplete", incomplete_details={})],
    "an error event in a response that has begun": [*BEGUN, FAULT],
    "an error without code": [{"type": "error", "message": "x"}],
    "null at /response/service_tier": [response("created", service_tier=None)],
    "null at /item/encrypted_content": [*BEGUN, item("added", {"type": "reasoning", "id": "i", "summary": [], "encrypted_content": None})],
    "an item inside an item": [*BEGUN, ASKS, item("added", CALL | {"id": "j"}, 1)],
    "an item out of its order": [*BEGUN, item("added", CALL, 1)],
    "an item's id twice": [*CALLING, item("added", ASKS["item"], 1)],
    "an item of no known kind": [*BEGUN, item("added", {"type": "x", "id": "i"})],
    "an item that is announced with what it will say": [*BEGUN, item("added", CALL)],
    "an event of an item that is not open": [*CALLING, GREW],
    "another item than was announced": [*CALLING[:-1], item("done", CALL | {"name": "g"})],
    "an item that is done in progress": [*CALLING[:-1], item("done", CALL | {"status": "in_progress"})],
    "another item's id": [*BEGUN, ASKS, of("function_call_arguments.delta", "j", delta="")],
    "a call without its call_id": [*BEGUN, item("added", ASKS["item"] | {"call_id": ""})],
    "a call that is done before its arguments": [*BEGUN, ASKS, GREW, item("done", CALL)],
    "more of what is done": [*BEGUN, ASKS, GREW, ALL, GREW],
    "done twice": [*BEGUN, ASKS, GREW, ALL, ALL],
    "another text than its deltas": [*BEGUN, ASKS, GREW, of("function_call_arguments.done", arguments="{ }")],
    "half a call that is completed": [*BEGUN, ASKS, *SHORTLY, item("done", SHORT | {"status": "completed"})],
    "half an item in a finished answer": [*BEGUN, ASKS, *SHORTLY, item("done", SHORT), response("completed", SHORT)],
    "an end with an item that is not done": [*BEGUN, ASKS, response("completed")],
    "an event of a part that was not announced": [*BEGUN, OPENED, GROWN],
    "a part out of its order, or twice": [*BEGUN, OPENED, PART, PART],
    "a part inside a part": [*BEGUN, OPENED, PART, part("added", WORDS | {"text": ""}, 1)],
    "a part of no known kind": [*BEGUN, OPENED, part("added", {"type": "x"})],
    "a part that is announced with its text": [*BEGUN, OPENED, part("added", WORDS)],
    "a part that is done before its text": [*BEGUN, OPENED, PART, part("done", WORDS)],
    "another part than its text": [*SPEAKING[:-1], part("done", WORDS | {"text": "Ho"})],
    "a delta that is no text": [*BEGUN, OPENED, PART, of("output_text.delta", content_index=0, delta=1)],
    "a source out of its order": [*BEGUN, OPENED, PART, GROWN, MARKED, MARKED],
    "other sources than were told": [*SPEAKING[:-2], MARKED, TOLD, part("done", WORDS)],
    "another content than its parts": [*SPEAKING, item("done", MESSAGE | {"content": [WORDS | {"text": "other"}]})],
}
BAD_RESPONSES = {rule: numbered(*events) for rule, events in BAD_RESPONSES.items()}
BAD_RESPONSES["sequence numbers with gaps"] = [CREATED | {"sequence_number": 0}, RUNNING | {"sequence_number": 2}]

# Gemini ---------------------------------------------------------------------------------------------------------------------------------------


def said(text="a", finish=None, index=0, **members):
    return told({"text": text}, finish=finish, index=index, **members)


def told(*parts, finish=None, index=0, **members):
    ending = {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"parts": [*parts], "role": "model"}, **ending, "index": index}], "modelVersion": "m", **members}


def spent(total):
    return {"usageMetadata": {"totalTokenCount": total}}


def function(**members):
    return told({"functionCall": members}, finish="STOP")


LATE = {"error": {"code": 500, "message": "x", "status": "INTERNAL"}}
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"}
GOOD_GEMINI = [
    [
        said(**spent(1)),
        said(),
        said(index=1),
        said(finish="STOP", usageMetadata={"totalTokenCount": 2, "promptTokensDetails": []}),
        said(finish="STOP", index=1),
    ],
    [function(name="f", args={"a": None})],
    [told({"text": "", "thought": True, "thoughtSignature": "s"}), said(finish="MAX_TOKENS")],
    [LATE],
    [said(), LATE],
    [BLOCKED],
]
BAD_GEMINI = {
    "no terminal": [said(), said(index=1), said(finish="STOP")],
    "two terminals": [said(finish="STOP"), said(finish="STOP")],
    "something after the terminal": [LATE, said()],
    "usage that shrinks": [said(**spent(2)), said(finish="STOP", **spent(1))],
    "two heads": [said(), said(finish="STOP") | {"responseId": "other"}],
    "a chunk without its model": [{name: value for name, value in said(finish="STOP").items() if name != "modelVersion"}],
    "null at /candidates/*/finishReason": [
        {"candidates": [{"content": {"parts": [{"text": "x"}], "role": "model"}, "index": 0, "finishReason": None}]}
    ],
    "null at /usageMetadata": [said(finish="STOP", usageMetadata=None)],
    "null at /candidates/*/content/parts/*/functionCall/args": [function(name="f", args=None)],
    "a call without its name": [function(name="", args={})],
    "a call without args": [function(name="f")],
    "a call whose args is another": [function(name="f", args="{")],
    "content without parts": [told(finish="STOP")],
    "a part that is not one thing": [told({}, finish="STOP")],
    "content without role": [{"candidates": [{"content": {"parts": [{"text": "x"}]}, "index": 0}], "modelVersion": "m"}],
    "a candidate without index": [{"candidates": [{"content": {}}], "modelVersion": "m"}],
    "a chunk with foo, which the API does not have": [said(finish="STOP", foo=1)],
    "an error without status": [{"error": {"code": 500, "message": "x"}}],
    "a frame that is no object": ["[1]"],
}
GOOD = {CHAT: GOOD_CHAT, MESSAGES: GOOD_MESSAGES, RESPONSES: GOOD_RESPONSES, GEMINI: GOOD_GEMINI}
BAD = {CHAT: BAD_CHAT, MESSAGES: BAD_MESSAGES, RESPONSES: BAD_RESPONSES, GEMINI: BAD_GEMINI}


@pytest.mark.parametrize(("surface", "events"), [(surface, events) for surface, good in GOOD.items() for events in good])
def test_a_good_stream_passes(grammar, surface, events):
    """On both levels; relayed, it may be framed in any way that the standard knows; cut short, it is a good beginning."""
    body = sse(*events)
    grammar(surface, body)
    grammar(surface, body, relayed=True)
    grammar(surface, b"\xef\xbb\xbfid: 1\n" + body.replace(b"\n", b"\r\n"), relayed=True)
    for count in range(len(events)):
        grammar(surface, sse(*events[:count]), whole=False)


@pytest.mark.parametrize(("surface", "rule"), [(surface, rule) for surface, bad in BAD.items() for rule in bad])
def test_each_rule_refuses_what_breaks_it(grammar, surface, rule):
    with pytest.raises(AssertionError, match=re.escape(rule)):
        grammar(surface, sse(*BAD[surface][rule]))


RELAYED = {
    CHAT: {"no terminal": [ROLE], "two terminals": [FINISH, DONE, DONE], "something after": [FINISH, DONE, ROLE], "an end without a": [ROLE, DONE]},
    MESSAGES: {"no terminal": [START], "two terminals": [STOP, STOP], "something after the terminal": [STOP, START]},
    RESPONSES: {"no terminal": [CREATED], "two terminals": [COMPLETED, COMPLETED], "something after the terminal": [FAULT, CREATED]},
    GEMINI: {"no terminal": [said()], "two terminals": [LATE, LATE], "something after the terminal": [LATE, said()]},
}


@pytest.mark.parametrize(("surface", "rule"), [(surface, rule) for surface, bad in RELAYED.items() for rule in bad])
def test_a_relayed_stream_ends_once_too(grammar, surface, rule):
    with pytest.raises(AssertionError, match=rule):
        grammar(surface, sse(*RELAYED[surface][rule]), relayed=True)


ODD = {
    CHAT: [[{"x": None}, FINISH, FINISH]],
    MESSAGES: [[BROKEN["error"] | {"error": {}}, STOP]],
    RESPONSES: [[COMPLETED]],
    GEMINI: [[{"x": 1}, BLOCKED]],
}


@pytest.mark.parametrize("surface", ODD)
def test_a_relayed_stream_may_be_odd(grammar, surface):
    for events in ODD[surface]:
        grammar(surface, sse(*events), relayed=True)


@pytest.mark.parametrize(
    ("asked", "events", "rule"),
    [
        (False, [ROLE, FINISH, USAGE, DONE], "usage that nobody asked for"),
        (False, [ROLE | {"usage": None}, FINISH, DONE], "usage that nobody asked for"),
        (True, [ROLE, FINISH, USAGE, DONE], "a chunk without the usage that was asked for"),
    ],
)
def test_usage_is_told_to_whom_asks_for_it(grammar, asked, events, rule):
    grammar(CHAT, sse(ROLE | {"usage": None}, FINISH | {"usage": None}, USAGE, DONE), usage=True)
    grammar(CHAT, sse(ROLE, FINISH, DONE), usage=False)
    with pytest.raises(AssertionError, match=rule):
        grammar(CHAT, sse(*events), usage=asked)


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ([said(), said(finish="STOP", index=1)], "no terminal"),
        ([said(finish="STOP"), LATE], "two terminals"),
        ([said(finish="STOP"), said(index=1), said()], "something after the terminal"),
        ([said(finish="STOP"), spent(3) | {"modelVersion": "m"}], "something after the terminal"),
        ([], "no terminal"),
    ],
)
def test_each_candidate_ends_once_and_an_end_is_the_last(grammar, events, rule):
    with pytest.raises(AssertionError, match=rule):
        grammar(GEMINI, sse(*events))


@pytest.mark.parametrize("rule", [rule for rule in BAD_GEMINI if rule != "a frame that is no object"])
def test_the_rules_hold_for_an_array(grammar, rule):
    grammar(GEMINI, json.dumps(GOOD_GEMINI[0]).encode(), array=True)
    with pytest.raises(AssertionError, match=re.escape(rule)):
        grammar(GEMINI, json.dumps(BAD_GEMINI[rule]).encode(), array=True)


GOODS = {surface: sse(*good[0]) for surface, good in GOOD.items()}


@pytest.mark.parametrize(
    ("surface", "body", "rule"),
    [
        (CHAT, GOODS[CHAT][:-1], "an unfinished block"),
        (CHAT, GOODS[CHAT].replace(b"\n", b"\r\n"), "other line ends"),
        (CHAT, b"\xef\xbb\xbf" + GOODS[CHAT], "a mark before the first"),
        (CHAT, GOODS[CHAT].replace(b"data: ", b"data:", 1), "a line that is neither"),
        (CHAT, GOODS[CHAT].replace(b"data: ", b"id: 1\ndata: ", 1), "a line that is neither"),
        (CHAT, b"event: x\n\n" + GOODS[CHAT], "an event that is not a name and its data"),
        (CHAT, b"data: {\ndata: }\n\n" + GOODS[CHAT], "an event that is not a name and its data"),
        (CHAT, GOODS[CHAT][:-2] + b"\xf0\x9f\n\n", "half a character"),
        (MESSAGES, GOODS[MESSAGES].replace(b"event: message_stop\n", b""), "an event under another name"),
        (RESPONSES, GOODS[RESPONSES].replace(b"event: response.created\n", b"event: x\n"), "an event under another name"),
        (RESPONSES, GOODS[RESPONSES].replace(b"event: response.created\n", b""), "an event under another name"),
        (GEMINI, GOODS[GEMINI].replace(b"data", b"event: x\ndata", 1), "a named chunk"),
    ],
)
def test_the_framing_has_rules_too(grammar, surface, body, rule):
    with pytest.raises(AssertionError, match=rule):
        grammar(surface, body)


def test_a_relayed_stream_is_named_and_whole(grammar):
    for surface, body in [
        (MESSAGES, GOODS[MESSAGES].replace(b"event: ping\n", b"")),
        (RESPONSES, GOODS[RESPONSES].replace(b"event: r", b"event: x", 1)),
    ]:
        with pytest.raises(AssertionError, match="an event under another name"):
            grammar(surface, body, relayed=True)
    with pytest.raises(AssertionError, match="an unfinished block"):
        grammar(CHAT, GOODS[CHAT][:-2], relayed=True)
    grammar(CHAT, GOODS[CHAT][:-9], relayed=True, whole=False)


def test_an_array_holds_objects_alone_and_is_whole(grammar):
    good = json.dumps(GOOD_GEMINI[0]).encode()
    for body, rule in [(b"[1]", "no object"), (good[:-1], "no JSON")]:
        with pytest.raises(AssertionError, match=rule):
            grammar(GEMINI, body, array=True)
    grammar(GEMINI, good[:-1], array=True, whole=False)


# Every stream is seen -------------------------------------------------------------------------------------------------------------------------


def test_a_written_stream_that_its_surface_does_not_allow_is_caught(ask, gateway, upstream, wires, monkeypatch):
    monkeypatch.setattr("asgi_surface.codecs.messages.encode.MessagesEncoder.close", lambda *_: [])
    with pytest.raises(AssertionError, match="written anthropic-messages: no terminal"):
        ask(gateway(upstream(chunks=wires[CHAT].frames), CHAT), *wires[MESSAGES].ask(stream=True))


def test_a_relayed_stream_that_its_surface_does_not_allow_is_caught(ask, gateway, upstream, wires, monkeypatch):
    monkeypatch.setattr("asgi_surface.layers.exit.Exit._body", _doubled)
    with pytest.raises(AssertionError, match="relayed openai-chat-completions: two terminals"):
        ask(gateway(upstream(chunks=wires[CHAT].frames), CHAT), *wires[CHAT].ask(stream=True))


def test_what_a_packed_request_asks_for_is_not_known(ask, gateway, upstream, wires):
    """So its stream may have usage, or none."""
    for wanted in (True, False):
        path, body = wires[CHAT].ask(stream=True, stream_options={"include_usage": wanted})
        app, packed = gateway(upstream(chunks=wires[MESSAGES].frames), MESSAGES), gzip.compress(json.dumps(body).encode())
        assert (b'"usage"' in ask(app, path, packed, headers=[("content-encoding", "gzip")]).body) == wanted


async def _doubled(exit_, body, *, more):
    if exit_.phase.name == "PENDING":
        await exit_._start()
    exit_.phase = type(exit_.phase).STARTED if more else type(exit_.phase).FINISHED
    await exit_._out({"type": "http.response.body", "body": body.replace(b"[DONE]\n\n", b"[DONE]\n\ndata: [DONE]\n\n"), "more_body": more})


@pytest.mark.ungrammatical("that a mark excuses its test is what is tested")
def test_a_test_with_a_reason_is_excused(ask, gateway, upstream, wires, monkeypatch):
    monkeypatch.setattr("asgi_surface.layers.exit.Exit._body", _doubled)
    assert b"[DONE]\n\ndata: [DONE]" in ask(gateway(upstream(chunks=wires[CHAT].frames), CHAT), *wires[CHAT].ask(stream=True)).body
