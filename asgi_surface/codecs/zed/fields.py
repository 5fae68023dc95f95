"""Which fields of a Zed completion envelope pass by default.

Data only. What `provider_request` may hold is the affair of the surface that it carries.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import ShippedPolicy

REQUIRED: Final = frozenset({"provider", "model", "provider_request"})
"""The three members that Zed always sends."""

COUNT_FIELDS: Final[frozenset[str]] = frozenset()
"""A token count takes the same envelope."""

POLICY: Final = ShippedPolicy(
    name="zed-default",
    # Zed omits an absent id; only older releases send an intent and a mode ("normal" or "max").
    fields=REQUIRED | {"thread_id", "prompt_id", "intent", "mode"},
)
