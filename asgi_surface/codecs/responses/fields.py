"""Which top-level fields of a Responses request pass by default, and which only under a condition.

Data only; how a policy is applied is not known here. A test walks the official SDK's parameters, so that a new SDK release names what has not been
looked at.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import Guard, ShippedPolicy
from asgi_surface.surfaces import Feature

REQUIRED: Final = frozenset({"model"})
"""The SDK's types require nothing: `input` may come from a stored prompt, and so may `model`, but a gateway routes by it."""

COUNT_FIELDS: Final[frozenset[str]] = frozenset()
"""The surface's token count is not served."""

_OFFICIAL: Final = frozenset(
    {
        # Compacts the history within this request and keeps nothing.
        "context_management",
        # Whether images in the context are compressed.
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        # Bounds the calls of hosted tools.
        "max_tool_calls",
        "metadata",
        # Scores or blocks this request's own text and keeps nothing.
        "moderation",
        "parallel_tool_calls",
        # Hints to a cache; they change the price and the delay, not the answer.
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        # Forced to false without the feature, because absent means stored; `true` is a demand of its own.
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)

POLICY: Final = ShippedPolicy(
    name="openai-responses-default",
    # Codex sends `client_metadata`: session, thread and turn ids, for the provider's telemetry only.
    fields=REQUIRED | _OFFICIAL | {"client_metadata"},
    guarded={
        # Claims an access program that the operator's organization was authorized for.
        "access_programs": Guard(None),
        # The response outlives the request, and is polled for.
        "background": Guard(Feature.BACKGROUND, harmless=(b"null", b"false")),
        "background_options": Guard(Feature.BACKGROUND),
        # The provider reads the history from, and adds this turn to, a conversation it keeps.
        "conversation": Guard(Feature.STORED_RESPONSES),
        "previous_response_id": Guard(Feature.STORED_RESPONSES),
        # A template stored at the provider, which may bring instructions, tools and a model of its own.
        "prompt": Guard(Feature.STORED_RESPONSES),
    },
    force_without={"store": (Feature.STORED_RESPONSES, b"false")},
)
