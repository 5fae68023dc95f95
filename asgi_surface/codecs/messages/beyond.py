"""Names what a Messages answer says beyond the form between codecs, so that its loss is counted; in words of the table of its constructs.

What says nothing (empty, zero, or the value that stands for "nothing of the kind") is no loss. Knows no client, and neither bodies nor streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from asgi_surface.codecs import reading
from asgi_surface.codecs.messages.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.strangers import UNKNOWN

TIERS: Final = {"standard": "default", "priority": "priority"}
"""Service tiers, for which the IR has OpenAI's words."""

_MEMBERS: Final = ("container", "context_management", "diagnostics", "input_transformations")
_DETAILS: Final = ("category", "fallback_credit_token", "fallback_has_prefill_claim", "recommended_model")
_USAGE: Final = ("cache_creation", "inference_geo", "server_tool_use", "speed", "iterations", "fallback_credit")
_NOTHING: Final = {"speed": "standard", "inference_geo": "not_available", "caller": {"type": "direct"}}
# No member that is named here nests what it counts deeper.
_DEPTH: Final = 2


def construct(name: str) -> str:
    """The name by which the table knows a construct that an upstream calls by a word of its own."""
    return name if name in ANSWER_ROWS else UNKNOWN


def members(said: object) -> Iterator[str]:
    """The members that no other surface has, of a message, or of what ends its stream."""
    return (f"answer:{name}" for name in _MEMBERS if _says(name, getattr(said, name, None)))


def details(stop_details: object) -> Iterator[str]:
    """What a refusal says of itself, but for its explanation."""
    said = reading.mapping(stop_details)
    return (f"answer:stop_details.{name}" for name in _DETAILS if _says(name, said.get(name)))


def call(said: object) -> Iterator[str]:
    """What a call says of itself beyond its tool and its input."""
    return (f"answer:tool_use.{name}" for name in ("caller", "toolset_name") if _says(name, getattr(said, name)))


def usage(report: object) -> Iterator[str]:
    """What a usage object tells beyond the numbers of tokens and a tier that the form between codecs has a word for."""
    said = reading.mapping(report)
    yield from (f"usage:{name}" for name in _USAGE if _says(name, said.get(name)))
    tier = reading.string(said.get("service_tier"))
    if tier and tier not in TIERS:
        yield construct(f"usage:service_tier.{tier}")


def _says(name: str, value: object) -> bool:
    return value != _NOTHING.get(name) and _full(value)


def _full(value: object, depth: int = _DEPTH) -> bool:
    """Whether anything is said; an object says what its members do."""
    return any(_full(one, depth - 1) for one in value.values()) if isinstance(value, dict) and depth else bool(value)
