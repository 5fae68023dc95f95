"""A member of an answer that its surface is not known to have is skipped and counted; what the official SDK knows is no stranger."""

from __future__ import annotations

import copy
import json

import pytest
from anthropic.types import beta
from google.genai import types as google
from openai.types import chat as openai_chat
from openai.types import completion_usage, responses
from openai.types.chat import chat_completion

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.chat.known import KNOWN as CHAT_KNOWN
from asgi_surface.codecs.gemini.known import KNOWN as GEMINI_KNOWN
from asgi_surface.codecs.messages.known import KNOWN as MESSAGES_KNOWN
from asgi_surface.codecs.responses.known import KNOWN as RESPONSES_KNOWN
from asgi_surface.codecs.strangers import UNKNOWN, shape, strangers
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
    assert {field.alias or name for name, field in official.model_fields.items()} - known[path] <= OF_THE_SDK
