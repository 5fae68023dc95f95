"""What an answer may hold that not every client's surface has a place for, by the names under which its loss is counted. Pure; knows no wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asgi_surface.ir import Call, Reasoning, Response, Text, Usage
from asgi_surface.soundness import halves


def held(response: Response) -> frozenset[str]:
    """Which of `LEFT` an answer holds."""
    return frozenset(name for name, holds in LEFT.items() if holds(response))


def _cited(response: Response) -> bool:
    return any(isinstance(part, Text) and part.citations for one in response.answers for part in one.parts)


def _sealed(response: Response) -> bool:
    return any(isinstance(part, Reasoning | Call) and part.seal is not None for one in response.answers for part in one.parts)


def _spoken(response: Response) -> bool:
    usage = response.usage or Usage()
    return bool(usage.audio_input or usage.audio_output)


LEFT: Final[dict[str, Callable[[Response], bool]]] = {
    "answer:citations": _cited,
    "answer:logprobs": lambda response: any(one.logprobs is not None for one in response.answers),
    "answer:seals": _sealed,
    "answer:stop_sequence": lambda response: any(one.stop_sequence is not None for one in response.answers),
    "answer:choices": lambda response: bool(response.more),
    "answer:half_call": halves,
    "answer:service_tier": lambda response: response.service_tier is not None,
    "usage:cache_write": lambda response: bool((response.usage or Usage()).cache_write),
    "usage:audio": _spoken,
}
"""The names, whatever an upstream calls it, and whether an answer holds it. A count of nothing is no loss."""
