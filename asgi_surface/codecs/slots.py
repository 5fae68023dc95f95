"""Seals of calls on surfaces whose calls have no slot for one: they travel in reasoning without words that stands before the call.

Knows no surface.
"""

from __future__ import annotations

from msgspec import structs

from asgi_surface.ir import Call, Part, Reasoning, SealKind


def owned(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Gives the seals of calls back to their calls. Such a seal names its call in its envelope."""
    lifted: list[Part] = []
    for part in parts:
        before = lifted[-1] if lifted else None
        if isinstance(part, Call) and isinstance(before, Reasoning) and _is_of(before, part.id):
            lifted[-1] = structs.replace(part, seal=before.seal)
        else:
            lifted.append(part)
    return tuple(lifted)


def _is_of(reasoning: Reasoning, call: str) -> bool:
    seal = reasoning.seal
    return not reasoning.text and seal is not None and seal.kind is SealKind.THOUGHT and seal.id == call
