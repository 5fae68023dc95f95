"""Whole messages in a stream: what each says beyond those before it, or beyond the deltas. Knows no frames, nor what members mean."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T", bound=Struct)


def beyond(kept: T, said: T) -> tuple[T, T]:
    """What a message says beyond what messages before it said, and what all have said now. What it leaves out stands.

    Raises `ValueError` when it says otherwise: nobody can tell a piece that is to be added from words that are to stand in others' place.
    """
    both = {name: (getattr(kept, name), getattr(said, name)) for name in said.__struct_fields__}
    news = {name: _rest(old, new) for name, (old, new) in both.items()}
    return type(said)(**news), type(said)(**{name: new or old for name, (old, new) in both.items()})


def _rest(old: Any, new: Any) -> Any:
    if not new or new == old:
        return None
    if not old:
        return new
    if isinstance(new, str | list) and new[: len(old)] == old:
        return new[len(old) :]
    raise ValueError("a message that says otherwise than the one before")


def repeats(content: Any, told: str) -> bool:
    """Whether a content is what deltas have told so far, or its beginning. Servers trim it."""
    return not content or (isinstance(content, str) and told.strip().startswith(content.strip()))
