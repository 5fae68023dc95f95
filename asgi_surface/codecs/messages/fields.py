"""Which top-level fields of an Anthropic Messages request pass by default, and which only under a condition.

Data only; how a policy is applied is not known here. The fields are those of the official SDK's stable and beta parameters; a test walks them, so
that a new SDK release names what has not been looked at.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import Guard, ShippedPolicy
from asgi_surface.surfaces import Feature

REQUIRED: Final = frozenset({"model", "max_tokens", "messages"})
"""What the API refuses a request without (a token count needs no max_tokens)."""

COUNT_FIELDS: Final[frozenset[str]] = frozenset()
"""A token count takes no field that a message does not take."""

POLICY: Final = ShippedPolicy(
    name="anthropic-messages-default",
    # Fields of a beta are refused without the header that names it; the header alone does nothing.
    headers=frozenset({"anthropic-beta"}),
    fields=REQUIRED
    | {
        "cache_control",
        # Both compact or edit the history within one request and keep nothing; Claude Code always sends the second.
        "compaction",
        "context_management",
        # Redeems what a refused answer handed out; fits only the organization that got it, and only ever lowers the price.
        "fallback_credit_token",
        # Anthropic itself holds a workspace to the regions its owner allows.
        "inference_geo",
        "metadata",
        "output_config",
        # The beta's first spelling of output_config.format, which older SDKs still send.
        "output_format",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        # The SDK's types no longer have the sampling parameters (API version 2026-10-21 refuses them), older API versions take them.
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    },
    guarded={
        # Who pays is the operator's to say.
        "billing_policy": Guard(None),
        # A sandbox that outlives the request, with its files and skills.
        "container": Guard(Feature.HOSTED_TOOLS),
        # Makes the server keep a fingerprint of this prompt and compare it with that of an earlier request.
        "diagnostics": Guard(Feature.PROMPT_CACHE),
        # Names other models than the one that was routed, past the operator's choice; "default" is that model's own setting at the provider.
        "fallbacks": Guard(None, harmless=(b"null", b"[]", b'"default"')),
        # The server calls addresses that the client names, with the tokens that it gives.
        "mcp_servers": Guard(Feature.HOSTED_TOOLS, harmless=(b"null", b"[]")),
        # A conversation kept by the server; `precheck` refuses it before any policy is asked.
        "thread": Guard(None),
    },
)
