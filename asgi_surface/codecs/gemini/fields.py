"""Which top-level fields of a Gemini generateContent request pass by default, and which only under a condition.

Data only; how a policy is applied is not known here. Names are in camelCase, as policies know them. The fields are those that the official SDK
writes for the Gemini API; a test reads them from it, so that a new SDK release names what has not been looked at.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import Guard, ShippedPolicy
from asgi_surface.surfaces import Feature

REQUIRED: Final = frozenset({"contents"})
"""What the API refuses a request without; the model is in the path."""

COUNT_FIELDS: Final = frozenset({"generateContentRequest"})
"""A token count takes `contents`, or in its place a whole generateContent request under this name."""

POLICY: Final = ShippedPolicy(
    name="gemini-default",
    fields=REQUIRED
    | {
        # Resumes an answer that stopped with CONTINUATION. The SDK sends it by itself, and only the server that minted it can read it.
        "continuationToken",
        "generationConfig",
        "labels",
        # Filter thresholds of this one answer. LangChain sends them with every request.
        "safetySettings",
        "serviceTier",
        "systemInstruction",
        "toolConfig",
        "tools",
    },
    guarded={
        # Names stored content, which any client with the operator's key could read.
        "cachedContent": Guard(Feature.PROMPT_CACHE),
        # REST binds the model to the path; a second name in the body could call another than the one routed.
        "model": Guard(None),
        # Prompts and answers go to the log of the operator's project; no Gemini binding can declare that it stores.
        "store": Guard(None, harmless=(b"null", b"false")),
    },
)
