"""What each codec reads in the frames of a stream and in a whole answer."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from asgi_surface.codecs import reading
from asgi_surface.framing import Frame
from asgi_surface.ir import Stop, Usage
from asgi_surface.lifecycle import Kind

SURFACES = ("chat", "responses", "messages", "gemini")


def watch(surface):
    return import_module(f"asgi_surface.codecs.{surface}.stream").watch()


def document(surface, value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return import_module(f"asgi_surface.codecs.{surface}.answer").document(body)


def frame(value, event=b""):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Frame(raw=b"data: " + data + b"\n\n", event=event, data=data)


def facts(sight):
    """The signals as short tuples: a finish, a usage, an end, or a fault with its message, type, code and status."""
    return [fact(signal) for signal in sight.signals]


def fact(signal):
    fault = signal.fault and (signal.fault.message, signal.fault.detail.type, signal.fault.detail.code, signal.fault.status)
    return {Kind.FINISH: signal.stop, Kind.USAGE: signal.usage, Kind.END: "end", Kind.FAULT: fault}[signal.kind]


def seen(surface, *frames):
    one = watch(surface)
    return [facts(one.see(each if isinstance(each, Frame) else frame(each))) for each in frames]


def choice(reason=None, index=0, **delta):
    return {"index": index, "delta": delta, "finish_reason": reason}


def chunk(*choices, **members):
    return {"choices": list(choices), **members}


def candidate(reason=None, index=0, parts=()):
    return {"index": index, "content": {"parts": list(parts)}, **({"finishReason": reason} if reason is not None else {})}


def delta(reason):
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    "data", [b"{", b"[1]", b'"x"', b'{"a":"\xff"}', b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}"], ids=["cut", "array", "text", "utf8", "deep"]
)
def test_data_that_no_surface_sends_is_an_error(surface, data):
    with pytest.raises(ValueError, match=r"^(a chunk is an object|[A-Za-z]+Error)$"):
        watch(surface).see(frame(data))
    with pytest.raises(ValueError, match=r"Error$"):
        document(surface, data)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_comment_is_a_sign_of_life_and_nothing_else(surface):
    sight = watch(surface).see(frame(b""))
    assert (sight.signals, sight.chars, sight.event, sight.alive) == ((), 0, b"", False)


CHAT_STREAMS = {
    "done ends": ([b"[DONE]"], [["end"]]),
    "stop": ([chunk(choice("stop"))], [[Stop.END]]),
    "length": ([chunk(choice("length"))], [[Stop.LENGTH]]),
    "tools": ([chunk(choice("tool_calls"))], [[Stop.TOOLS]]),
    "legacy call": ([chunk(choice("function_call"))], [[Stop.TOOLS]]),
    "filter": ([chunk(choice("content_filter"))], [[Stop.FILTER]]),
    "mistral's full window": ([chunk(choice("model_length"))], [[Stop.LENGTH]]),
    "a broken run": ([chunk(choice("insufficient_system_resource"))], [[Stop.ERROR]]),
    "unknown is no success": ([chunk(choice("novel"))], [[Stop.OTHER]]),
    "empty and null are no finish": ([chunk(choice("")), chunk(choice(None)), chunk(choice(7))], [[], [], []]),
    "all choices must finish": (
        [chunk(choice(), choice(index=1)), chunk(choice("stop")), chunk(choice("length", index=1)), chunk(choice("stop"))],
        [[], [], [Stop.LENGTH], [Stop.LENGTH]],
    ),
    "no choices": ([{"choices": None}, {"choices": []}, {}], [[], [], []]),
    "usage in its own chunk": ([chunk(usage={"prompt_tokens": 3, "completion_tokens": 2})], [[Usage(3, 2)]]),
    "usage beside the finish": ([chunk(choice("stop"), usage={"prompt_tokens": 3})], [[Stop.END, Usage(3)]]),
    "usage that says nothing": ([chunk(usage={"total_tokens": "many"})], [[]]),
    "groq's usage": ([chunk(x_groq={"usage": {"completion_tokens": 4}})], [[Usage(output=4)]]),
    "groq's error": ([chunk(x_groq={"error": "stopped"})], [[("stopped", None, None, None)]]),
    "error object": ([{"error": {"message": "m", "type": "t", "code": "c"}}], [[("m", "t", "c", None)]]),
    "numeric code is a status": ([{"error": {"message": "m", "code": 429}}], [[("m", None, None, 429)]]),
    "digits are a number": ([{"error": {"message": "m", "code": "503"}}], [[("m", None, None, 503)]]),
    "groq's status_code": ([{"error": {"message": "m", "code": "c", "status_code": 400}}], [[("m", None, "c", 400)]]),
    "other numbers are codes": ([{"error": {"message": "m", "code": 1113, "type": True}}], [[("m", None, "1113", None)]]),
    "error text": ([{"error": "m"}], [[("m", None, None, None)]]),
    "vLLM's flat error": ([{"object": "error", "message": "m", "type": "BadRequestError", "code": 400}], [[("m", "BadRequestError", None, 400)]]),
    "named event": ([frame({"detail": "m"}, b"error")], [[("m", None, None, None)]]),
    "error without words": ([frame({"x": 1}, b"error"), {"error": {"code": 500}}], [[("", None, None, None)], [("", None, None, 500)]]),
    "error beside usage": ([chunk(choice(), usage={"prompt_tokens": 3}, error={"message": "m"})], [[Usage(3), ("m", None, None, None)]]),
    "no error": ([{"error": None}, {"error": {}}], [[], []]),
}

RESPONSES_STREAMS = {
    "completed": ([{"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 3}}}], [[Stop.END, Usage(3), "end"]]),
    "completed without status": ([{"type": "response.completed", "response": {}}], [[Stop.END, "end"]]),
    "cut": ([{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}], [[Stop.LENGTH, "end"]]),
    "filtered": ([{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}], [[Stop.FILTER, "end"]]),
    "steered": ([{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "steered"}}}], [[Stop.OTHER, "end"]]),
    "incomplete for no reason": ([{"type": "response.incomplete", "response": {}}], [[Stop.OTHER, "end"]]),
    "failed": (
        [{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}, "usage": {"output_tokens": 1}}}],
        [[Usage(output=1), ("m", None, "server_error", None)]],
    ),
    "failed without words": ([{"type": "response.failed", "response": {"error": None}}], [[("", None, None, None)]]),
    "flat error": ([{"type": "error", "code": "c", "message": "m", "param": None, "sequence_number": 3}], [[("m", None, "c", None)]]),
    "nested error": ([{"type": "error", "error": {"type": "t", "code": "c", "message": "m"}}], [[("m", "t", "c", None)]]),
    "error without type": ([{"error": {"message": "m"}}], [[("m", None, None, None)]]),
    "the name of the event is a type": ([frame({"message": "m"}, b"error")], [[("m", None, None, None)]]),
    "cancelled is no terminal": ([{"type": "response.cancelled", "response": {"status": "cancelled"}}], [[]]),
    "done ends nothing": ([b"[DONE]"], [[]]),
    "unnumbered and odd": ([{"type": "response.new", "sequence_number": None, "delta": {"code": "x"}}, {"type": 7}], [[], []]),
}

MESSAGES_STREAMS = {
    "reasons": (
        [delta(reason) for reason in ("end_turn", "max_tokens", "model_context_window_exceeded", "stop_sequence", "tool_use")],
        [[Stop.END], [Stop.LENGTH], [Stop.LENGTH], [Stop.STOP_SEQUENCE], [Stop.TOOLS]],
    ),
    "more reasons": (
        [delta(reason) for reason in ("pause_turn", "compaction", "refusal", "novel", None, "")],
        [[Stop.PAUSE], [Stop.PAUSE], [Stop.REFUSAL], [Stop.OTHER], [], []],
    ),
    "message_stop": ([{"type": "message_stop"}], [["end"]]),
    "error": ([{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}], [[("m", "overloaded_error", None, None)]]),
    "details": (
        [{"type": "error", "error": {"type": "t", "message": "m", "details": {"error_code": "c"}}}],
        [[("m", "t", "c", None)]],
    ),
    "error of a compatible server": ([{"error": {"message": "m"}}], [[("m", None, None, None)]]),
    "usage grows": (
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 1}}},
            {"type": "message_delta", "usage": {"input_tokens": 6, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}},
            {"type": "message_delta", "usage": {"cache_creation_input_tokens": 100}},
        ],
        [[Usage(95, 1, 90)], [Usage(96, 9, 90, None, 4)], [Usage(196, 9, 90, 100, 4)]],
    ),
    "nothing said": ([{"type": "message_start", "message": {"usage": None}}, {"type": "message_delta", "usage": {"output_tokens": None}}], [[], []]),
    "new events pass": ([{"type": "content_block_note", "index": 0}], [[]]),
}

GEMINI_STREAMS = {
    "reasons": (
        [{"candidates": [candidate(reason)]} for reason in ("STOP", "MAX_TOKENS", "SAFETY", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "NOVEL")],
        # One candidate gives them all: from the second on the weightiest so far stands.
        [[Stop.END], [Stop.LENGTH], [Stop.LENGTH], [Stop.LENGTH], [Stop.ERROR], [Stop.ERROR]],
    ),
    "no finish": (
        [{"candidates": [candidate(reason)]} for reason in (None, "", "FINISH_REASON_UNSPECIFIED", 3)] + [{"candidates": None}, {}],
        [[], [], [], [], [], []],
    ),
    "all candidates must finish": (
        [{"candidates": [candidate(), candidate(index=1)]}, {"candidates": [candidate("STOP")]}, {"candidates": [candidate("SPII", 1)]}],
        [[], [], [Stop.FILTER]],
    ),
    "blocked prompt": ([{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}], [[Stop.REFUSAL, Usage(5)]]),
    "prompt not blocked": (
        [
            {"promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}},
            {"promptFeedback": {"safetyRatings": []}},
            {"promptFeedback": {"blockReason": "SAFETY"}, "candidates": [candidate()]},
        ],
        [[], [], []],
    ),
    "usage": (
        [
            {"usageMetadata": {"promptTokenCount": 7, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}},
            {"usageMetadata": {"promptTokenCount": 7, "cachedContentTokenCount": 6, "thoughtsTokenCount": 4}},
            {"usageMetadata": {"trafficType": "ON_DEMAND"}},
        ],
        [[Usage(9, 7, reasoning=4)], [Usage(7, 4, 6, reasoning=4)], []],
    ),
    "error": ([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}], [[("m", "RESOURCE_EXHAUSTED", None, 429)]]),
    "error in an array": ([[{"error": {"code": 404, "message": "m", "status": "NOT_FOUND"}}]], [[("m", "NOT_FOUND", None, 404)]]),
    "reason": (
        [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": [7, {"reason": ""}, {"reason": "API_KEY_INVALID"}]}}],
        [[("m", "INVALID_ARGUMENT", "API_KEY_INVALID", 400)]],
    ),
    "named event": ([frame({"message": "m"}, b"error")], [[("m", None, None, None)]]),
}

STREAMS = {"chat": CHAT_STREAMS, "responses": RESPONSES_STREAMS, "messages": MESSAGES_STREAMS, "gemini": GEMINI_STREAMS}


@pytest.mark.parametrize(("surface", "name"), [(surface, name) for surface, table in STREAMS.items() for name in table])
def test_a_stream_tells_its_facts(surface, name):
    frames, expected = STREAMS[surface][name]
    assert seen(surface, *frames) == expected


@pytest.mark.parametrize("reason", ["RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_RECITATION"])
def test_google_filters_in_many_words(reason):
    assert seen("gemini", {"candidates": [candidate(reason)]}) == [[Stop.FILTER]]


PROSE = [
    ("chat", chunk(choice(content="abc")), 3),
    ("chat", chunk(choice(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]}, {"type": "text", "text": "c"}])), 3),
    ("chat", chunk(choice(refusal="no", reasoning_content="why", reasoning="why")), 5),
    ("chat", chunk(choice(reasoning="é", function_call={"name": "f", "arguments": "{}"})), 3),
    ("chat", chunk(choice(tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}, {"custom": {"input": "abc"}}])), 5),
    ("chat", chunk(choice(content="a"), {"index": 1, "finish_reason": None}), 1),
    ("chat", chunk(choice(content={"parts": "x"}, tool_calls="odd")), 3),
    ("chat", chunk(choice(content=[[[[[[["too deep"]]]]]]])), 0),
    ("responses", {"type": "response.output_text.delta", "delta": "abc"}, 3),
    ("responses", {"type": "response.output_text.done", "delta": "abc"}, 0),
    ("messages", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "abc"}}, 3),
    ("messages", {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "ab"}}, 2),
    ("messages", {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"'}}, 2),
    ("messages", {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "abcdef"}}, 0),
    ("messages", {"type": "content_block_start", "content_block": {"type": "text", "text": "abc"}}, 3),
    ("gemini", {"candidates": [candidate(parts=[{"text": "abc"}, {"text": "d", "thought": True}, {"inlineData": {"data": "AAAA"}}])]}, 4),
    ("gemini", {"candidates": [candidate(parts=[{"functionCall": {"name": "f", "args": {"a": 1}}}, {"functionCall": {"name": "f"}}])]}, 8),
    ("gemini", {"candidates": [{"content": {"parts": None}}, {"finishReason": None}]}, 0),
]


@pytest.mark.parametrize(("surface", "value", "chars"), PROSE)
def test_text_reasoning_and_arguments_are_counted(surface, value, chars):
    assert watch(surface).see(frame(value)).chars == chars


@pytest.mark.parametrize(
    ("value", "event"),
    [
        ({"type": "ping"}, b"ping"),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}, b"content_block_delta"),
        ({"type": "error", "error": {"type": "api_error", "message": "m"}}, b"error"),
        ({"type": "x\nevent: message_stop"}, b""),
        ({"type": "\u0440ing"}, b""),
        ({}, b""),
    ],
)
def test_messages_frames_have_the_name_of_their_type(value, event):
    """A name could carry an event of its own into the stream, so only plain words pass."""
    assert watch("messages").see(frame(value)).event == event


@pytest.mark.parametrize(
    ("surface", "value", "alive"),
    [
        ("messages", {"type": "ping"}, False),
        ("messages", {"type": "message_stop"}, True),
        ("responses", {"type": "keepalive", "sequence_number": 3}, False),
        ("responses", {"type": "response.in_progress"}, True),
        ("chat", chunk(choice(content="")), True),
        ("gemini", {"candidates": []}, True),
    ],
)
def test_pings_are_no_progress(surface, value, alive):
    assert watch(surface).see(frame(value)).alive is alive


THOUGHT = {"reasoning_tokens": 3}
USAGES = [
    (None, Usage()),
    ("many", Usage()),
    ({"prompt_tokens": True, "completion_tokens": -1}, Usage()),
    ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
    ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}}, Usage(9, None, 4, 2)),
    ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(9, None, 4)),
    ({"prompt_tokens": 9, "cached_tokens": 4}, Usage(9, None, 4)),
    ({"prompt_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}, Usage(9, None, 4, 5)),
    (
        {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 3}},
        Usage(9, 5, reasoning=3),
    ),
    (
        {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 17, "completion_tokens_details": {"reasoning_tokens": 3}},
        Usage(9, 8, reasoning=3),
    ),
    ({"completion_tokens": 5, "reasoning_tokens": 3, "total_tokens": 8}, Usage(None, 5, reasoning=3)),
    ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 1}, "output_tokens": 2}, Usage(9, 2, 1)),
    ({"output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}, Usage(None, 2, reasoning=1)),
]


@pytest.mark.parametrize(("value", "usage"), USAGES)
def test_openai_usage_in_every_spelling(value, usage):
    assert fact_of_usage(document("chat", {"choices": [], "usage": value})) == usage


def fact_of_usage(sight):
    return next((signal.usage for signal in sight.signals if signal.usage), Usage())


COUNTED = {"promptTokenCount": 2}
DOCUMENTS = [
    ("chat", {"choices": [{"message": {"content": "abc"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}, [Stop.END, Usage(3), "end"], 3),
    ("chat", {"choices": [{"message": None, "finish_reason": "stop"}, {"finish_reason": "length"}]}, [Stop.LENGTH, "end"], 0),
    ("chat", {"choices": [{"message": {"content": "a"}, "finish_reason": None}], "error": {"message": "m"}}, ["end"], 1),
    ("chat", {"id": "x"}, ["end"], 0),
    ("chat", {"error": {"code": 429, "message": "m"}}, [("m", None, None, 429)], 0),
    ("chat", {"object": "error", "message": "m"}, [("m", None, None, None)], 0),
    (
        "responses",
        {"status": "completed", "output": [{"content": [{"type": "output_text", "text": "abc"}]}, {"arguments": "{}"}]},
        [Stop.END, "end"],
        5,
    ),
    ("responses", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, [Stop.LENGTH, "end"], 0),
    ("responses", {"status": "queued", "usage": None}, [Stop.OTHER, "end"], 0),
    ("responses", {"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "m"}}, [Stop.ERROR, "end"], 0),
    ("responses", {"object": "response.compaction", "output": []}, ["end"], 0),
    ("responses", {"error": {"message": "m", "code": "c"}}, [("m", None, "c", None)], 0),
    ("responses", {"object": "error", "message": "m"}, [("m", None, None, None)], 0),
    (
        "messages",
        {"type": "message", "content": [{"text": "abc"}], "stop_reason": "tool_use", "usage": {"input_tokens": 1}},
        [Stop.TOOLS, Usage(1), "end"],
        3,
    ),
    ("messages", {"type": "message", "content": [], "stop_reason": None}, ["end"], 0),
    ("messages", {"type": "error", "error": {"type": "api_error", "message": "m"}}, [("m", "api_error", None, None)], 0),
    ("messages", {"error": "m"}, [("m", None, None, None)], 0),
    (
        "gemini",
        {"candidates": [candidate("STOP", parts=[{"text": "abc"}])], "usageMetadata": {"promptTokenCount": 2}},
        [Stop.END, Usage(2), "end"],
        3,
    ),
    ("gemini", {"promptFeedback": {"blockReason": "OTHER"}}, [Stop.REFUSAL, "end"], 0),
    ("gemini", {"error": {"code": 500, "message": "m", "status": "INTERNAL"}}, [("m", "INTERNAL", None, 500)], 0),
]


@pytest.mark.parametrize(("surface", "value", "expected", "chars"), DOCUMENTS)
def test_a_whole_answer_tells_its_facts(surface, value, expected, chars):
    sight = document(surface, value)
    assert facts(sight) == expected
    assert sight.chars == chars


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":{"detail":[{"loc":["body"],"msg":"a"},{"msg":"b"}]}}}', "a; b"),
        (b'{"error":{"message":[1]}}', ""),
        (b'{"error":true,"message":"m"}', "m"),
        (b'{"message":"m"}', "m"),
        (b'{"detail":[{"msg":"m"}]}', "m"),
        (b'{"detail":[[[[["m"]]]]]}', None),
        (b'{"detail":[]}', None),
        (b'{"message":{"role":"assistant","content":"x"}}', None),
        (b"[]", None),
        (b'"x"', None),
        (b"<html>", None),
    ],
)
def test_an_error_body_is_read_in_every_spelling(body, message):
    said = reading.error_facts(body)
    assert (said and said.message) == message
