"""What a surface without custom tools, or without a mark for results that failed, is told in their place; and how it is undone.

A custom tool is a function with one required string, `input`. Knows no surface.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

FAILED: Final = "[tool error] "
"""Stands before the text of a tool's result that failed, where results have no mark for it."""


class _Grammar(Struct):
    syntax: str
    definition: str


class _Wrapped(Struct):
    input: str


_GRAMMAR: Final = msgspec.json.Decoder(_Grammar)
_WRAPPED: Final = msgspec.json.Decoder(_Wrapped)


def wrapper(grammar: Raw | None) -> dict[str, Any]:
    """The schema of the function. `grammar` is the tool's format object: it is told to the model, though nothing enforces it."""
    text = {"type": "string"}
    if grammar is not None:
        said = _GRAMMAR.decode(grammar)
        text["description"] = f"Must follow this {said.syntax} grammar:\n{said.definition}"
    return {"type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False}


def wrapped(text: str) -> str:
    """A call's free text as the function's arguments."""
    return msgspec.json.encode({"input": text}).decode()


def unwrapped(arguments: str) -> str | None:
    """The free text in the function's arguments; None where the model wrote something else."""
    try:
        return _WRAPPED.decode(arguments).input
    except (msgspec.DecodeError, RecursionError):
        return None
