"""The thoughts of a Gemini conversation, put together from their pieces. Knows no other part.

A stream tells a thought in pieces, and the token comes with the last of them, often with no words of its own. Clients send the pieces back as they
came: as parts of one content, or each in a content of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from asgi_surface import ir, seals
from asgi_surface.codecs.gemini.values import Uses


class Thoughts:
    """The pieces of the thought that is being said."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._pieces: list[tuple[str, str]] = []

    def add(self, text: str, seal: ir.Seal | None, at: str) -> Iterator[ir.Reasoning]:
        """What a piece ends, if it has a token: its thought, which the token proves with all that was said of it."""
        if seal is not None and not seals.proves_words(seal):
            yield from self.end()
        self._pieces.append((text, at))
        if seal is not None:
            said, self._pieces = self._pieces, []
            yield ir.Reasoning("".join(text for text, _ in said), seal, at)

    def end(self) -> Iterator[ir.Reasoning]:
        """The thought that nothing proves, where something else is said after it."""
        said, self._pieces = [(text, at) for text, at in self._pieces if text], []
        for _, at in said:
            self._uses.note("part:thought", at)
        if said:
            yield ir.Reasoning("".join(text for text, _ in said), None, said[0][1])
