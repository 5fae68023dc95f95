"""What each construct of a client's request becomes on another surface: exact, emulated, advisory or refused, as data.

A codec's `ROWS` (in its verdicts.py) is the one table from which refusals, dropped pointers, README's fidelity table and the tests are made. Knows
no wire itself.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface


class Verdict(enum.StrEnum):
    """How much of a construct's meaning arrives."""

    EXACT = "exact"
    EMULATED = "emulated"
    ADVISORY = "advisory"
    REFUSED = "refused"


_LETTERS: Final = {"e": Verdict.EXACT, "m": Verdict.EMULATED, "a": Verdict.ADVISORY, "r": Verdict.REFUSED}
_KNOWN: Final = {*_LETTERS, "-"}
_COLUMNS: Final = (CHAT, RESPONSES, MESSAGES, GEMINI)


class Row(Struct, frozen=True):
    """One construct of a surface, its verdict on each other surface, and why where it is not exact."""

    construct: str
    verdicts: Mapping[Surface, Verdict]
    why: str


class Mention(Struct, frozen=True):
    """A construct that a request uses, and the JSON pointer of where it does."""

    construct: str
    pointer: str


def table(text: str) -> dict[str, Row]:
    """Reads a codec's rows: `construct  letters  why`, a line each; `#` lines are comments.

    The letters stand for chat, responses, messages, gemini in this order: e, a, r, or m for emulated, and `-` for the surface itself. Raises
    `ValueError` for another letter or number of letters, and for a construct that has a row already: the table is read at import.
    """
    rows: dict[str, Row] = {}
    for line in filter(None, (raw.split("#")[0].strip() for raw in text.splitlines())):
        construct, letters, *why = line.split(maxsplit=2)
        if construct in rows or not set(letters) <= _KNOWN:
            raise ValueError(f"not a row of verdicts, or its construct has one already: {line}")
        pairs = zip(_COLUMNS, letters, strict=True)
        verdicts = {surface: _LETTERS[letter] for surface, letter in pairs if letter != "-"}
        rows[construct] = Row(construct, verdicts, why[0] if why else "")
    return rows
