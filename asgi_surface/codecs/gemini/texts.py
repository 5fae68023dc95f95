"""The texts that sources stand in. Gemini counts bytes of them where the others count characters, so each is measured once. Knows no source."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Measured:
    """One text, as it grows."""

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._length = len(text)
        self._measured = 0
        self._ends: array[int] | None = None

    def __bool__(self) -> bool:
        return self._length > 0

    def add(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text)
        self._length += len(text)

    def characters(self, size: int) -> int:
        """How many whole characters its first `size` bytes are."""
        ends = self._measure()
        return min(size, self._length) if ends is None else bisect_right(ends, size)

    def bytes(self, count: int) -> int:
        """How many bytes its first `count` characters are."""
        ends, count = self._measure(), min(count, self._length)
        return ends[count - 1] if ends and count else count

    def _measure(self) -> array[int] | None:
        """Where each character ends, in bytes; None while a character is a byte."""
        text = "".join(self._pieces[self._measured :])
        self._measured = len(self._pieces)
        if self._ends is None and not text.isascii():
            self._ends = array("Q", range(1, self._length - len(text) + 1))
        if self._ends is not None:
            before = self._ends[-1] if self._ends else 0
            self._ends.extend(accumulate(map(len, map(str.encode, text[1:])), initial=before + len(text[0].encode())) if text else ())
        return self._ends


class Texts:
    """The texts of an answer's parts, in order; "" for a part that is none."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[Measured] = []
        self._first: int | None = None
        for text in texts:
            self.open()
            self.add(text)

    def __bool__(self) -> bool:
        return self._first is not None

    def open(self) -> None:
        """A further part begins."""
        self._texts.append(Measured())

    def add(self, text: str) -> None:
        """More text of the last part."""
        self._texts[-1].add(text)
        if self._first is None and text:
            self._first = len(self._texts) - 1

    def place(self, index: int) -> int:
        """The part that a source means; the first with text where that one has none."""
        return index if index < len(self._texts) and self._texts[index] else self._first or 0

    def characters(self, index: int, size: int) -> int:
        """How many whole characters the first `size` bytes of a part's text are."""
        return self._texts[index].characters(size)
