"""Reads what a stream's chunks say of one candidate. Knows no other candidate, and nothing of chunks else.

Text may come after a finish: the part that words last went into stays open until another begins. Sources come late: a text waits for them, though
calls and tokens follow it, until other words begin or the finish has come. Chunks carry whole calls; neighbouring pieces of one kind are one part,
and a token ends the thought that it stands on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping

from msgspec import Raw, Struct

from asgi_surface import ir
from asgi_surface.codecs.gemini import partial
from asgi_surface.codecs.gemini.grounding import sources
from asgi_surface.codecs.gemini.logprobs import OTHER, tokens
from asgi_surface.codecs.gemini.read import NULL, Candidate, beside, heard, identified, sealed, stopped, thinks
from asgi_surface.codecs.gemini.texts import Texts
from asgi_surface.codecs.reading import mapping
from asgi_surface.events import Cited, Closed, Event, Finish, Grew, Logged, Opened, Sealed
from asgi_surface.soundness import ENDED


class _Flat(Struct, frozen=True):
    """The open part of words."""

    index: int
    kind: type[ir.Text | ir.Reasoning]


class _Growing(Struct, frozen=True):
    """The open call whose arguments are still coming."""

    index: int
    arguments: partial.Arguments


class CandidateDecoder:
    """Follows one candidate. `indices` gives the event index of each part; `skip` takes the names of what is not read."""

    def __init__(self, choice: int, indices: Iterator[int], skip: Callable[[list[str]], None]) -> None:
        self._choice = choice
        self._indices = indices
        self._skip = skip
        self._calls = 0
        # The parts as Gemini counts them (`partIndex`): the event index of each, -1 when it was skipped, and its text so far.
        self._places: list[int] = []
        self._texts = Texts()
        self._flat: _Flat | None = None
        self._waiting: int | None = None
        self._growing: _Growing | None = None
        self._cited: set[tuple[int, ir.Citation]] = set()
        self._chunks: object = None
        self._stop: ir.Stop | None = None

    def feed(self, candidate: Candidate) -> Iterator[Event]:
        """The events of its piece of a chunk. Raises `ValueError` when words, calls or finish cannot be read."""
        calls = self._calls
        for raw in candidate.parts():
            yield from self._part(raw)
        yield from self._sources(candidate)
        yield from self._logprobs(candidate.logprobs_result)
        self._skip(candidate.traces())
        said = candidate.stop()
        yield from self._finish(self._stop if said is None and self._calls > calls else said)  # a call after the finish: it was for calls

    def eof(self) -> None:
        """Nothing more comes. Raises `ValueError` when a call whose arguments were to go on is left, and no cut explains it."""
        if self._growing is not None and self._stop in ENDED:
            raise ValueError("half a call")

    def _finish(self, stop: ir.Stop | None) -> Iterator[Event]:
        if stop is not None:
            self._stop = stop
            yield from self._settle()
            yield Finish(stopped(stop, calls=self._calls > 0), choice=self._choice)

    def _part(self, raw: Mapping[str, Raw]) -> Iterator[Event]:
        call = raw.get("functionCall", NULL)
        if call != NULL and (self._growing or _grows(call)):
            self._skip(beside(raw))
            yield from self._piece(partial.piece(call), sealed(raw))
            return
        said, skipped = heard(raw)
        self._skip(skipped)
        for one in said:
            # A token on text stands before it, and only the text is a part to Gemini.
            placed, continues = one is said[-1], isinstance(one, ir.Text) or thinks(raw)
            yield from self._call(one) if isinstance(one, ir.Call) else self._words(one, continues=continues, placed=placed)
        if skipped and not said:
            yield from self._close()
            self._place(-1)

    def _words(self, said: ir.Text | ir.Reasoning, *, continues: bool, placed: bool) -> Iterator[Event]:
        seal = said.seal if isinstance(said, ir.Reasoning) else None
        if not said.text and seal is None:
            return
        flat = self._flat
        if flat is None or flat.kind is not type(said) or not continues:
            yield from self._close()
            yield from self._settle() if said.text else ()  # a token alone is no words
            opened = self._open(ir.Text("") if isinstance(said, ir.Text) else ir.Reasoning(""), placed=placed)
            yield opened
            flat = self._flat = _Flat(opened.index, type(said))
        if said.text:
            if flat.kind is ir.Text:
                self._texts.add(said.text)
            yield Grew(flat.index, said.text)
        if seal is not None:
            yield Sealed(flat.index, seal)
            yield from self._close()

    def _call(self, call: ir.Call) -> Iterator[Event]:
        opened = yield from self._begin(call)
        yield Grew(opened.index, call.arguments)
        yield Closed(opened.index)

    def _begin(self, call: ir.Call) -> Generator[Event, None, Opened]:
        """The call without its arguments."""
        yield from self._close()
        named = identified(call, self._calls)
        self._calls += 1
        opened = self._open(ir.Call(named.id, named.name, "", minted=named.minted))
        yield opened
        if call.seal is not None:
            yield Sealed(opened.index, call.seal)
        return opened

    def _piece(self, piece: partial.Piece, seal: ir.Seal | None) -> Iterator[Event]:
        if self._growing is None:
            opened = yield from self._begin(ir.Call(piece.id, piece.name, "", seal=seal, minted=not piece.id))
            self._growing = _Growing(opened.index, partial.Arguments())
        index, arguments = self._growing.index, self._growing.arguments
        arguments.add(piece)
        if not piece.will_continue:
            self._growing = None
            yield Grew(index, arguments.text())
            yield Closed(index)

    def _open(self, part: ir.Text | ir.Reasoning | ir.Call, *, placed: bool = True) -> Opened:
        index = next(self._indices)
        if placed:
            self._place(index)
        return Opened(index, part, self._choice)

    def _place(self, index: int) -> None:
        self._places.append(index)
        self._texts.open()

    def _close(self) -> Iterator[Event]:
        """Words go nowhere for now. Text waits for its sources."""
        flat, self._flat = self._flat, None
        if flat is not None and flat.kind is ir.Text:
            self._waiting = flat.index
        elif flat is not None:
            yield Closed(flat.index)

    def _settle(self) -> Iterator[Event]:
        """The text that waited is whole."""
        if self._waiting is not None:
            yield Closed(self._waiting)
            self._waiting = None

    def _text(self) -> int | None:
        """The open text."""
        return self._flat.index if self._flat is not None and self._flat.kind is ir.Text else self._waiting

    def _sources(self, candidate: Candidate) -> Iterator[Event]:
        """Sources of the open text. Gemini gives them late, counts over all that was said, and may say them again."""
        if not (candidate.grounding_metadata or candidate.citation_metadata):
            return
        grounding, recited = mapping(candidate.grounding_metadata), candidate.citation_metadata
        found, unread = sources(grounding, recited, self._texts)
        self._chunks = grounding.get("groundingChunks") or self._chunks
        if grounding.get("groundingSupports") and not grounding.get("groundingChunks"):
            # They count the sources of a chunk before. Those that they do not name have been told.
            supported, _ = sources({**grounding, "groundingChunks": self._chunks}, None, self._texts)
            found += [one for one in supported if one[2].end is not None]
        self._skip(unread)
        for name, place, citation in found:
            yield from self._cite(name, self._places[place], citation)

    def _cite(self, name: str, index: int, citation: ir.Citation) -> Iterator[Event]:
        if (index, citation) in self._cited:
            return
        if index != self._text():
            self._skip([name])
            return
        self._cited.add((index, citation))
        yield Cited(index, citation)

    def _logprobs(self, result: Raw) -> Iterator[Event]:
        logprobs, unread = tokens(result)
        self._skip(unread)
        if logprobs is None:
            return
        text = self._text()
        if text is None:
            self._skip([OTHER])
        else:
            yield Logged(text, logprobs)


def _grows(call: Raw) -> bool:
    piece = partial.piece(call)
    return bool(piece.will_continue or piece.partial_args) and bool(piece.name)
