"""A member of an answer that its surface is not known to have is skipped and counted; what the official SDK knows is no stranger."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest
from anthropic.types import beta
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from openai.types import chat as openai_chat
from openai.types import completion_usage, responses
from openai.types.chat import chat_completion, chat_completion_chunk

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.chat.known import FRAMES as CHAT_FRAMES
from asgi_surface.codecs.chat.known import KNOWN as CHAT_KNOWN
from asgi_surface.codecs.gemini.known import KNOWN as GEMINI_KNOWN
from asgi_surface.codecs.messages.known import FRAMES as MESSAGES_FRAMES
from asgi_surface.codecs.messages.known import KNOWN as MESSAGES_KNOWN
from asgi_surface.codecs.responses.known import FRAMES as RESPONSES_FRAMES
from asgi_surface.codecs.responses.known import KNOWN as RESPONSES_KNOWN
from asgi_surface.codecs.strangers import UNKNOWN, shape, strangers
from asgi_surface.framing import Frame
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

TEXT = {"type": "output_text", "text": "x", "annotations": []}
ANSWERS = {
    CHAT: {
        "id": "a",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    RESPONSES: {
        "id": "a",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [TEXT]}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    },
    MESSAGES: {
        "id": "a",
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    GEMINI: {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
}
PLACES = [
    *((CHAT, place) for place in ([], ["choices", 0], ["choices", 0, "message"], ["usage"])),
    *((RESPONSES, place) for place in ([], ["output", 0], ["output", 0, "content", 0], ["usage"])),
    *((MESSAGES, place) for place in ([], ["content", 0], ["usage"])),
    *((GEMINI, place) for place in ([], ["candidates", 0], ["candidates", 0, "content"], ["usageMetadata"])),
]


def unread(surface, place=(), **more):
    answer = copy.deepcopy(ANSWERS[surface])
    node = answer
    for step in place:
        node = node[step]
    node |= more
    return CODECS[surface].read(json.dumps(answer).encode()).unread


@pytest.mark.parametrize(("surface", "place"), PLACES, ids=[f"{surface}-{'.'.join(map(str, place))}" for surface, place in PLACES])
def test_a_stranger_is_counted_unless_it_says_nothing(surface, place):
    assert unread(surface) == ()
    assert unread(surface, place, newcomer={"a": [1]}) == (UNKNOWN,)
    assert unread(surface, place, newcomer=None, another={}) == ()
    assert UNKNOWN in CODECS[surface].rows


STREAMS = {
    CHAT: [
        {"id": "a", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]},
        {"id": "a", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}}]},
        {"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1}},
    ],
    RESPONSES: [
        {"type": "response.created", "sequence_number": 0, "response": {"id": "a", "output": []}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "x", "obfuscation": "yy"},
        {"type": "response.completed", "response": {"id": "a", "status": "completed", "output": [], "usage": {"input_tokens": 1}}},
    ],
    MESSAGES: [
        {"type": "message_start", "message": {"id": "a", "content": [], "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    GEMINI: [{"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}}],
}
STREAMED = [
    *((CHAT, place) for place in ([0], [0, "choices", 0], [1, "choices", 0, "delta", "tool_calls", 0], [2, "choices", 0, "delta"], [2, "usage"])),
    *((RESPONSES, place) for place in ([0], [0, "response"], [1], [2, "response"], [2, "response", "usage"])),
    *((MESSAGES, [place]) for place in range(6)),
    *((MESSAGES, place) for place in ([0, "message"], [0, "message", "usage"], [1, "content_block"], [2, "delta"], [4, "delta"], [4, "usage"])),
    *((GEMINI, place) for place in ([0], [0, "candidates", 0], [0, "candidates", 0, "content"], [0, "usageMetadata"])),
]


def streamed(surface, place, **more):
    """What is unread of a stream with more at a place of one of its frames."""
    stream = copy.deepcopy(STREAMS[surface])
    node = stream
    for step in place:
        node = node[step]
    if more:
        node |= more
    decoder = CODECS[surface].decoder()
    for frame in stream:
        list(decoder.feed(Frame(b"", b"", json.dumps(frame).encode())))
    return tuple(decoder.unread)


@pytest.mark.parametrize(("surface", "place"), STREAMED, ids=[f"{surface}-{'.'.join(map(str, place))}" for surface, place in STREAMED])
def test_a_stranger_in_a_stream_is_counted_unless_it_says_nothing(surface, place):
    assert streamed(surface, ()) == ()
    assert streamed(surface, place, newcomer={"a": [1]}) == (UNKNOWN,)
    assert streamed(surface, place, newcomer=None, another={}) == ()


def test_a_null_that_comes_again_and_again_takes_no_second_look():
    chunk = {"choices": [{"index": 0, "delta": {"content": "x"}, "matched_stop": None}]}
    CHAT_FRAMES.strict.decode(json.dumps(chunk))
    chunk["choices"][0]["matched_stop"] = 7
    assert strangers(json.dumps(chunk).encode(), CHAT_FRAMES) == (UNKNOWN,)


def test_strangers_of_a_stream_are_counted_once():
    decoder = CODECS[GEMINI].decoder()
    for word in "ab":
        list(decoder.feed(Frame(b"", b"", json.dumps({"newcomer": word, "candidates": [{"content": {"parts": [{"text": word}]}}]}).encode())))
    assert decoder.unread == [UNKNOWN]


def test_a_blocked_prompt_may_hold_one_too():
    body = {"promptFeedback": {"blockReason": "SAFETY", "newcomer": 1}}
    assert CODECS[GEMINI].read(json.dumps(body).encode()).unread == (UNKNOWN,)


def test_labels_of_a_stored_answer_are_counted():
    assert unread(CHAT, metadata={"a": "b"}) == ("answer:metadata",)


def test_the_client_is_told(gateway, upstream, ask):
    app = upstream([json.dumps(ANSWERS[CHAT] | {"newcomer": 1}).encode()])
    reply = ask(gateway(app, CHAT), "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
    assert (reply.status, reply.headers["x-surface-dropped"]) == (200, UNKNOWN)


def test_a_path_leads_through_lists_and_types_and_may_have_several_lines():
    known = shape("""
. a
. list
list/one type b
list type
""")
    assert strangers(b'{"a": {"any": 1}, "list": [{"type": "one", "b": 1}, {"type": "two"}, 3]}', known) == ()
    assert strangers(b'{"list": [{"type": "two", "b": 1}]}', known) == (UNKNOWN,)
    assert strangers(b"[", known) == ()


# The events that a Responses decoder reads.
READ = [
    f"Response{name}Event"
    for name in (
        *("Created", "Queued", "InProgress", "Completed", "Incomplete", "OutputItemAdded", "OutputItemDone", "ContentPartAdded", "ContentPartDone"),
        *("TextDelta", "TextDone", "RefusalDelta", "RefusalDone", "FunctionCallArgumentsDelta", "FunctionCallArgumentsDone"),
        *("CustomToolCallInputDelta", "CustomToolCallInputDone", "ReasoningTextDelta", "ReasoningTextDone", "ReasoningSummaryTextDelta"),
        *("ReasoningSummaryTextDone", "ReasoningSummaryPartAdded", "ReasoningSummaryPartDone", "OutputTextAnnotationAdded"),
    )
]

NAMES = st.sampled_from(["a", "list", "type", "in", "newcomer"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from(["", "one", "two"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_the_quick_look_lets_no_stranger_through(value):
    known = shape("""
. a list type
list/one type in
list/one.in a
a list
""")
    try:
        known.strict.decode(json.dumps(value))
    except msgspec.ValidationError:
        return
    assert not known.strange(value)


def test_what_is_too_deep_to_look_into_is_no_stranger():
    known = shape("""
. a
a a
a.a a
""")
    assert strangers(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", known) == ()


SDK = [
    (CHAT_KNOWN, "", openai_chat.ChatCompletion),
    (CHAT_KNOWN, "choices", chat_completion.Choice),
    (CHAT_KNOWN, "choices.logprobs", chat_completion.ChoiceLogprobs),
    (CHAT_KNOWN, "choices.message", openai_chat.ChatCompletionMessage),
    (CHAT_KNOWN, "choices.message.tool_calls", openai_chat.ChatCompletionMessageFunctionToolCall),
    (CHAT_KNOWN, "choices.message.tool_calls", openai_chat.ChatCompletionMessageCustomToolCall),
    (CHAT_KNOWN, "usage", completion_usage.CompletionUsage),
    (CHAT_KNOWN, "usage.prompt_tokens_details", completion_usage.PromptTokensDetails),
    (CHAT_KNOWN, "usage.completion_tokens_details", completion_usage.CompletionTokensDetails),
    (CHAT_FRAMES, "", openai_chat.ChatCompletionChunk),
    (CHAT_FRAMES, "choices", chat_completion_chunk.Choice),
    (CHAT_FRAMES, "choices.logprobs", chat_completion_chunk.ChoiceLogprobs),
    (CHAT_FRAMES, "choices.delta", chat_completion_chunk.ChoiceDelta),
    (CHAT_FRAMES, "choices.delta.function_call", chat_completion_chunk.ChoiceDeltaFunctionCall),
    (CHAT_FRAMES, "choices.delta.tool_calls", chat_completion_chunk.ChoiceDeltaToolCall),
    (CHAT_FRAMES, "choices.delta.tool_calls.function", chat_completion_chunk.ChoiceDeltaToolCallFunction),
    (CHAT_FRAMES, "usage", completion_usage.CompletionUsage),
    *((RESPONSES_FRAMES, "", getattr(responses, name)) for name in READ),
    (RESPONSES_KNOWN, "", responses.Response),
    (RESPONSES_KNOWN, "output/message", responses.ResponseOutputMessage),
    (RESPONSES_KNOWN, "output/message.content/output_text", responses.ResponseOutputText),
    (RESPONSES_KNOWN, "output/message.content/refusal", responses.ResponseOutputRefusal),
    (RESPONSES_KNOWN, "output/function_call", responses.ResponseFunctionToolCall),
    (RESPONSES_KNOWN, "output/custom_tool_call", responses.ResponseCustomToolCall),
    (RESPONSES_KNOWN, "output/reasoning", responses.ResponseReasoningItem),
    (RESPONSES_KNOWN, "usage", responses.ResponseUsage),
    (RESPONSES_KNOWN, "usage.input_tokens_details", responses.response_usage.InputTokensDetails),
    (RESPONSES_KNOWN, "usage.output_tokens_details", responses.response_usage.OutputTokensDetails),
    (MESSAGES_KNOWN, "", beta.BetaMessage),
    (MESSAGES_KNOWN, "content/text", beta.BetaTextBlock),
    (MESSAGES_KNOWN, "content/thinking", beta.BetaThinkingBlock),
    (MESSAGES_KNOWN, "content/redacted_thinking", beta.BetaRedactedThinkingBlock),
    (MESSAGES_KNOWN, "content/tool_use", beta.BetaToolUseBlock),
    (MESSAGES_KNOWN, "stop_details", beta.BetaRefusalStopDetails),
    (MESSAGES_KNOWN, "usage", beta.BetaUsage),
    (MESSAGES_KNOWN, "usage.output_tokens_details", beta.BetaOutputTokensDetails),
    (MESSAGES_FRAMES, "/message_start", beta.BetaRawMessageStartEvent),
    (MESSAGES_FRAMES, "/message_start.message", beta.BetaMessage),
    (MESSAGES_FRAMES, "/message_start.message.usage", beta.BetaUsage),
    (MESSAGES_FRAMES, "/content_block_start", beta.BetaRawContentBlockStartEvent),
    (MESSAGES_FRAMES, "/content_block_start.content_block/tool_use", beta.BetaToolUseBlock),
    (MESSAGES_FRAMES, "/content_block_delta", beta.BetaRawContentBlockDeltaEvent),
    (MESSAGES_FRAMES, "/content_block_delta.delta/text_delta", beta.BetaTextDelta),
    (MESSAGES_FRAMES, "/content_block_delta.delta/input_json_delta", beta.BetaInputJSONDelta),
    (MESSAGES_FRAMES, "/content_block_delta.delta/thinking_delta", beta.BetaThinkingDelta),
    (MESSAGES_FRAMES, "/content_block_delta.delta/signature_delta", beta.BetaSignatureDelta),
    (MESSAGES_FRAMES, "/content_block_delta.delta/citations_delta", beta.BetaCitationsDelta),
    (MESSAGES_FRAMES, "/content_block_stop", beta.BetaRawContentBlockStopEvent),
    (MESSAGES_FRAMES, "/message_delta", beta.BetaRawMessageDeltaEvent),
    (MESSAGES_FRAMES, "/message_delta.delta", beta.beta_raw_message_delta_event.Delta),
    (MESSAGES_FRAMES, "/message_delta.usage", beta.BetaMessageDeltaUsage),
    (MESSAGES_FRAMES, "/message_stop", beta.BetaRawMessageStopEvent),
    (GEMINI_KNOWN, "", google.GenerateContentResponse),
    (GEMINI_KNOWN, "candidates", google.Candidate),
    (GEMINI_KNOWN, "candidates.content", google.Content),
    (GEMINI_KNOWN, "promptFeedback", google.GenerateContentResponsePromptFeedback),
    (GEMINI_KNOWN, "usageMetadata", google.GenerateContentResponseUsageMetadata),
]
# What google-genai keeps for itself in its objects: none of it comes over the wire.
OF_THE_SDK = {"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"}


@pytest.mark.parametrize(("known", "path", "official"), SDK, ids=[f"{one.__module__}.{one.__name__}" for _, _, one in SDK])
def test_what_the_sdk_knows_is_no_stranger(known, path, official):
    assert {field.alias or name for name, field in official.model_fields.items()} - known.at(path).names <= OF_THE_SDK
