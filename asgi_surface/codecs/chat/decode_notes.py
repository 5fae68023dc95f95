"""What a Chat Completions stream says about an answer's text: sources and token entries, which need not come with the words. Knows no chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw

from asgi_surface.events import Cited, Logged, PartEvent
from asgi_surface.ir import Citation

_UNCITED: Final = "answer:annotations.other"
_UNLOGGED: Final = "answer:logprobs.other"


class Notes:
    """The notes on one answer's texts.

    Search servers name their sources before the text: they wait for it. Others name them at the end, when calls have long closed it: they are told as
    late ones. Entries that come before anything else wait for the text, too; those of a call or of reasoning have no place.
    """

    def __init__(self, skipped: dict[str, None]) -> None:
        self._skipped = skipped
        self._begun = False
        self._open: int | None = None
        self._last: int | None = None
        self._before = self._chars = 0
        self._cited: list[Citation] = []
        self._logged: list[Raw] = []

    def opened(self, text: int | None) -> None:
        """A part has opened: a text, by its index, or another (None)."""
        self._begun = True
        self._open = text
        if text is not None:
            self._last, self._before = text, self._chars

    def closed(self) -> None:
        """What was open is so no more."""
        self._open = None

    def grew(self, text: str) -> None:
        """The open text has grown."""
        self._chars += len(text)

    def cite(self, citations: Iterable[Citation]) -> None:
        """Takes sources."""
        self._cited += citations

    def log(self, entries: Raw, *, called: bool) -> None:
        """Takes token entries; `called` says that they came with a call."""
        if self._open is None and (self._begun or called):
            self._skipped[_UNLOGGED] = None
        else:
            self._logged.append(entries)

    def told(self) -> Iterator[PartEvent]:
        """What can be told of the open text."""
        if self._open is None:
            return
        for entries in self._logged:
            yield Logged(self._open, entries)
        for citation in self._cited:
            yield Cited(self._open, self._moved(citation))
        self._logged.clear()
        self._cited.clear()

    def rest(self) -> Iterator[PartEvent]:
        """Nothing more comes: what came too late for the last text, and what has no text at all."""
        if self._logged:
            self._skipped[_UNLOGGED] = None
        for citation in self._cited:
            if self._last is None:
                self._skipped[_UNCITED] = None
            else:
                yield Cited(self._last, self._moved(citation), late=_UNCITED)
        self._cited.clear()

    def _moved(self, citation: Citation) -> Citation:
        """The wire counts offsets over all text, a part over its own. A place before the part is none in it."""
        if citation.start is None or citation.end is None:
            return citation
        inside = citation.start >= self._before
        place = (citation.start - self._before, citation.end - self._before) if inside else (None, None)
        return Citation(citation.url, citation.title, *place)
