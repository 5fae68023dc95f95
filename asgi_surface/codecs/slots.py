"""Seals of calls on surfaces whose calls have no slot for one: they travel in reasoning without words that stands before the call.

Knows no surface.
"""

from __future__ import annotations

from msgspec import structs

from asgi_surface.ir import Call, Part, Reasoning, Seal, SealKind


def owned(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Gives the seals of calls back to their calls. Such a seal names its call in its envelope."""
    lifted: list[Part] = []
    for part in parts:
        before = lifted[-1] if lifted else None
        seal = before.seal if isinstance(before, Reasoning) else None
        if isinstance(part, Call) and isinstance(before, Reasoning) and seal is not None and _is_of(before.text, seal, part.id):
            lifted[-1] = structs.replace(part, seal=structs.replace(seal, at=before.at))
        else:
            lifted.append(part)
    return tuple(lifted)


def _is_of(words: str, seal: Seal, call: str) -> bool:
    return not words and seal.kind is SealKind.THOUGHT and seal.id == call


def place(part: Reasoning | Call) -> str:
    """Where the part's seal stands in the client's body."""
    return (part.seal and part.seal.at) or part.at
