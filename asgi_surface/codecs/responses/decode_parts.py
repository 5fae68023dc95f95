"""One part of a Responses stream as it grows: what it has got, what a snapshot still adds, and its end. Knows nothing of items and events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Raw

from asgi_surface.events import Cited, Closed, Grew, Logged, PartEvent, Sealed
from asgi_surface.ir import Call, Citation, Part, Reasoning, Text


class OpenPart:
    """A part that was opened: the text it has got, and its sources."""

    __slots__ = ("cited", "index", "open", "pieces")

    def __init__(self, index: int) -> None:
        self.index = index
        self.pieces: list[str] = []
        self.cited: list[Citation] = []
        self.open = True

    def grow(self, text: str) -> Iterator[PartEvent]:
        """More of its text, or of its arguments."""
        if text:
            self.pieces.append(text)
            yield Grew(self.index, text)

    def cite(self, found: Sequence[Citation]) -> Iterator[PartEvent]:
        """More of its sources."""
        self.cited += found
        yield from (Cited(self.index, citation) for citation in found)

    def log(self, entries: list[Raw]) -> Iterator[PartEvent]:
        """More of its token entries."""
        if entries:
            yield Logged(self.index, Raw(b"[" + b",".join(entries) + b"]"))

    def complete(self, said: Part) -> Iterator[PartEvent]:
        """What a snapshot of the part adds to it."""
        yield from self.grow(rest_of(self.pieces, said.arguments if isinstance(said, Call) else getattr(said, "text", "")))
        if isinstance(said, Text):
            yield from self.cite(said.citations[len(self.cited) :])
        if isinstance(said, Reasoning) and said.seal is not None:
            yield Sealed(self.index, said.seal)

    def close(self, rest: str = "") -> Iterator[PartEvent]:
        """The end, once. `rest` stands for what never came."""
        if self.open:
            self.open = False
            yield from () if self.pieces else self.grow(rest)
            yield Closed(self.index)


def rest_of(pieces: list[str], whole: str) -> str:
    """What a snapshot adds. One that says it otherwise adds nothing: what was streamed stands."""
    said = "".join(pieces)
    return whole[len(said) :] if whole.startswith(said) else ""
