"""Which fields of a Zed completion envelope pass by default.

Data only. What `provider_request` may hold is the affair of the surface that it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Raw, Struct

from asgi_surface.codecs.base import ShippedPolicy
from asgi_surface.surfaces import ZED, Surface

REQUIRED: Final = frozenset({"provider", "model", "provider_request"})
"""The three members that Zed always sends."""

COUNT_FIELDS: Final[frozenset[str]] = frozenset()
"""A token count takes the same envelope."""

POLICY: Final = ShippedPolicy(
    name="zed-default",
    # Zed omits an absent id; only older releases send an intent and a mode ("normal" or "max").
    fields=REQUIRED | {"thread_id", "prompt_id", "intent", "mode"},
)


class Envelope(Struct, frozen=True, kw_only=True):
    """What policies must know of the envelope; a body's tools are within, where its own surface judges them."""

    surface: Surface = ZED
    policy: ShippedPolicy = POLICY
    required: frozenset[str] = REQUIRED
    count_fields: frozenset[str] = COUNT_FIELDS
    names: Callable[[str], str] = str  # each name is its own
    tool_types: Callable[[Raw], Sequence[tuple[str, str]]] = lambda _: ()


ENVELOPE: Final = Envelope()
"""The envelope of every release of Zed."""
