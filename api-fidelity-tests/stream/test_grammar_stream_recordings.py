"""Recorded streams of real providers, held against the grammar: as they are relayed, and as if they had been written here.

They stand beside the checkout, not in it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
SURFACES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
STREAMS = {name: sorted((RECORDED / name).glob("*.sse")) for name in SURFACES}

pytestmark = pytest.mark.skipif(not any(STREAMS.values()), reason="the recordings of shared/ are not beside this checkout")

# What is no stream of its surface, or has more than one end.
NOT_ONE = {
    "openrouter-stream-error": "two terminals",  # an error chunk and [DONE] behind it: a relay ends with the error
    "openai-ai-sdk-openai-error-1": "two terminals",  # an error event and response.failed: a relay ends with the first
    "openrouter-openai-responses-raw-cot-stream-openrouter": "something after the terminal",  # Chat's [DONE]
    "azure-ai-sdk-azure-reasoning-encrypted-content-1": "something after the terminal",  # several answers in one file
    "openai-ai-sdk-openai-shell-tool-1": "something after the terminal",  # the same
    "openai-ai-sdk-azure-model-router-1": "no terminal",  # chunks of Chat
    "gemini-ai-sdk-google-search": "no terminal",  # events of the Interactions API
    "gemini-error-envelope-nonexistent-model-streaming-error-preserves-status-and-body": "an unfinished block",  # a JSON error
}

# Where providers go beyond what is allowed to us: members of their own (most of Chat's), nulls for what they do not say, hosted tools that we do not
# have, items that go into one another, and Gemini's line ends. How many recordings break each rule first.
STRICT = {
    "chat": {
        "a choice without finish_reason": 5,
        "a chunk with citations, which the API does not have": 1,
        "a chunk with timings, which the API does not have": 3,
        "a chunk with x_groq, which the API does not have": 7,
        "a chunk without its id": 4,
        "a chunk without object": 1,
        "a delta whose content is another kind of value": 2,
        "a delta with index, which the API does not have": 1,
        "a delta with reasoning, which the API does not have": 3,
        "a line that is neither an event's name nor its data": 2,
        "null at /choices/*/delta/provider_metadata/anthropic/stopSequence": 1,
        "null at /choices/*/delta/reasoning": 2,
        "null at /choices/*/delta/reasoning_content": 3,
        "null at /choices/*/delta/reasoning_details/*/format": 1,
        "null at /choices/*/delta/tool_calls": 1,
        "null at /choices/*/native_finish_reason": 11,
        "null at /prompt_token_ids": 1,
        "null in a later delta": 3,
        "two values of created": 1,
        "usage in a chunk with choices": 2,
        "none": 10,
    },
    "responses": {
        "a response of another status than its event's": 1,
        "a response without error": 1,
        "an event of a part that was not announced": 1,
        "an event under another name": 1,
        "an item of no known kind": 4,
        "another output than the items that were done": 7,
        "null at /error/param": 1,
        "null at /item/action/max_output_length": 1,
        "null at /response/content_filters": 4,
        "null at /response/tools/*/allowed_tools": 2,
        "null at /response/tools/*/filters": 2,
        "null at /response/tools/*/output_schema": 5,
        "null at /response/truncation": 1,
        "none": 7,
    },
    "messages": {
        "a block of no known kind": 2,
        "message_delta with context_management, which the API does not have": 1,
        "null at /content_block/content": 1,
        "results of no search, or twice": 1,
        "none": 16,
    },
    "gemini": {
        "a candidate without index": 1,
        "a chunk with interaction, which the API does not have": 1,
        "an unfinished block": 1,
        "other line ends than \\n, or a mark before the first": 15,
    },
}


@pytest.mark.parametrize("name", SURFACES)
def test_every_recorded_stream_may_be_relayed(grammar, name):
    for path in STREAMS[name]:
        if path.stem in NOT_ONE:
            with pytest.raises(AssertionError, match=NOT_ONE[path.stem]):
                grammar(SURFACES[name], path.read_bytes(), relayed=True)
        else:
            grammar(SURFACES[name], path.read_bytes(), relayed=True)


def broken(grammar, surface, path):
    """The first rule that a stream breaks."""
    try:
        grammar(surface, path.read_bytes())
    except AssertionError as rule:
        return str(rule)
    return "none"


@pytest.mark.parametrize("name", SURFACES)
def test_what_providers_write_that_we_may_not_is_known(grammar, name):
    assert Counter(broken(grammar, SURFACES[name], path) for path in STREAMS[name]) == STRICT[name]
