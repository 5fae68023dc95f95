"""Whether the text of a call's arguments, as far as it has come, is a whole JSON object. Each piece of it is looked at once.

The text is decoded once at most, when its first brace is closed: whatever follows then, it is a whole object or never one. Knows no calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
# A backslash takes the character after it, which may come with the next piece.
_MARKS: Final = re.compile(r'\\.?|["{}]', re.DOTALL)
_STEPS: Final = {"{": 1, "}": -1}


class Braces:
    """Follows `pieces`, a list that grows."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces
        self._seen = 0
        self._depth = 0
        self._quoted = False
        self._carry = ""
        self._object: bool | None = None

    def whole(self) -> bool:
        """Whether nothing can follow but white space."""
        text = "".join(self._pieces[self._seen :])
        self._seen = len(self._pieces)
        if self._object is None:
            self._read(self._carry + text)
        elif self._object:
            self._object = not text.strip()
        return bool(self._object)

    def _read(self, text: str) -> None:
        mark = ""
        for mark in _MARKS.findall(text):
            if mark == '"':
                self._quoted = not self._quoted
            elif not self._quoted and mark in _STEPS:
                self._depth += _STEPS[mark]
                if self._depth < 1:
                    self._object = self._decoded()
                    return
        self._carry = mark if mark == "\\" else ""

    def _decoded(self) -> bool:
        try:
            _OBJECT.decode("".join(self._pieces))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True
