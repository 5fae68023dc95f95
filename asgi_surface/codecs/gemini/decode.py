"""Reads a streamed generateContent answer, chunk by chunk, whichever framing they came in. Knows no client.

There is no end event, and text may come after a finish: the part that words last went into stays open until another begins. Chunks carry whole calls;
neighbouring pieces of one kind are one part, and a token ends the thought that it stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Raw, Struct

from asgi_surface import ir
from asgi_surface.codecs import reading
from asgi_surface.codecs.gemini import partial
from asgi_surface.codecs.gemini.grounding import sources
from asgi_surface.codecs.gemini.logprobs import tokens
from asgi_surface.codecs.gemini.read import ANSWER, NULL, Answer, Candidate, heard, identified, sealed, stopped, thinks
from asgi_surface.errors import ErrorFacts
from asgi_surface.events import Cited, Closed, Event, Fault, Finish, Grew, Logged, Opened, Sealed, Start, UsageSeen
from asgi_surface.framing import Frame


class _Place(Struct):
    """A part as Gemini counts them (`partIndex`): the event index of it, -1 when it was skipped, and its text so far."""

    index: int
    pieces: list[str] = []


class _Flat(Struct, frozen=True):
    """The open part of words."""

    index: int
    kind: type[ir.Text | ir.Reasoning]


class _Growing(Struct, frozen=True):
    """The open call whose arguments are still coming."""

    index: int
    arguments: partial.Arguments


class GeminiDecoder:
    """Follows the first candidate of one stream."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._started = False
        self._opened = 0
        self._calls = 0
        self._places: list[_Place] = []
        self._flat: _Flat | None = None
        self._growing: _Growing | None = None
        self._cited: set[tuple[int, ir.Citation]] = set()
        self._stop: ir.Stop | None = None

    def feed(self, frame: Frame) -> Iterator[Event]:
        """The events of one chunk; its usage comes first, so that it is known when the answer begins."""
        if frame.data.lstrip().startswith(b"["):  # an error as Google sends it for an array stream
            yield _fault_in_array(frame.data)
            return
        answer = reading.decode(ANSWER, frame.data)
        usage = answer.usage()
        if usage is not None:
            yield UsageSeen(usage)
        yield from self._answer(answer)
        if answer.error or frame.event == b"error":
            yield Fault(reading.error_facts(frame.data) or ErrorFacts(""))

    def _answer(self, answer: Answer) -> Iterator[Event]:
        blocked = answer.blocked()
        if not self._started and (blocked or answer.candidates):
            self._started = True
            yield Start(answer.response_id, answer.model_version, answer.created())
        if blocked:
            yield Finish(ir.Stop.REFUSAL)
        for candidate in answer.candidates or ():
            if candidate.index:
                self._skip("answer:candidates")
            else:
                yield from self._candidate(candidate)

    def _candidate(self, candidate: Candidate) -> Iterator[Event]:
        calls = self._calls
        for raw in candidate.parts():
            yield from self._part(raw)
        yield from self._sources(candidate)
        yield from self._logprobs(candidate.logprobs_result)
        self._skip(*candidate.traces())
        said = candidate.stop()
        yield from self._finish(self._stop if said is None and self._calls > calls else said)  # a call after the finish: it was for calls

    def _finish(self, stop: ir.Stop | None) -> Iterator[Event]:
        if stop is not None:
            self._stop = stop
            yield Finish(stopped(stop, calls=self._calls > 0))

    def _part(self, raw: Mapping[str, Raw]) -> Iterator[Event]:
        call = raw.get("functionCall", NULL)
        if call != NULL and (self._growing or _grows(call)):
            yield from self._piece(partial.piece(call), sealed(raw))
            return
        said, skipped = heard(raw)
        self.unread += skipped
        for one in said:
            # A token on text stands before it, and only the text is a part to Gemini.
            placed, continues = one is said[-1], isinstance(one, ir.Text) or thinks(raw)
            yield from self._call(one) if isinstance(one, ir.Call) else self._words(one, continues=continues, placed=placed)
        if skipped and not said:
            yield from self._close()
            self._places.append(_Place(-1))

    def _words(self, said: ir.Text | ir.Reasoning, *, continues: bool, placed: bool) -> Iterator[Event]:
        seal = said.seal if isinstance(said, ir.Reasoning) else None
        if not said.text and seal is None:
            return
        flat = self._flat
        if flat is None or flat.kind is not type(said) or not continues:
            yield from self._close()
            yield self._open(ir.Text("") if isinstance(said, ir.Text) else ir.Reasoning(""), placed=placed)
            flat = self._flat = _Flat(self._opened - 1, type(said))
        if said.text:
            self._places[-1].pieces += [said.text] if flat.kind is ir.Text else []
            yield Grew(flat.index, said.text)
        if seal is not None:
            yield Sealed(flat.index, seal)
            yield from self._close()

    def _call(self, call: ir.Call) -> Iterator[Event]:
        yield from self._begin(call)
        yield Grew(self._opened - 1, call.arguments)
        yield Closed(self._opened - 1)

    def _begin(self, call: ir.Call) -> Iterator[Event]:
        """The call without its arguments."""
        yield from self._close()
        named = identified(call, self._calls)
        self._calls += 1
        yield self._open(ir.Call(named.id, named.name, "", minted=named.minted))
        if call.seal is not None:
            yield Sealed(self._opened - 1, call.seal)

    def _piece(self, piece: partial.Piece, seal: ir.Seal | None) -> Iterator[Event]:
        if self._growing is None:
            yield from self._begin(ir.Call(piece.id, piece.name, "", seal=seal, minted=not piece.id))
            self._growing = _Growing(self._opened - 1, partial.Arguments())
        index, arguments = self._growing.index, self._growing.arguments
        arguments.add(piece)
        if not piece.will_continue:
            self._growing = None
            yield Grew(index, arguments.text())
            yield Closed(index)

    def _open(self, part: ir.Text | ir.Reasoning | ir.Call, *, placed: bool = True) -> Opened:
        if placed:
            self._places.append(_Place(self._opened))
        self._opened += 1
        return Opened(self._opened - 1, part)

    def _close(self) -> Iterator[Event]:
        if self._flat is not None:
            yield Closed(self._flat.index)
            self._flat = None

    def _sources(self, candidate: Candidate) -> Iterator[Event]:
        """Sources of the open text. Gemini gives them late, counts over all that was said, and may say them again."""
        if not (candidate.grounding_metadata or candidate.citation_metadata):
            return
        found, unread = sources(candidate.grounding_metadata, candidate.citation_metadata, ["".join(place.pieces) for place in self._places])
        self._skip(*unread)
        for place, citations in found.items():
            yield from self._cite(self._places[place].index, citations)

    def _cite(self, index: int, citations: Iterable[ir.Citation]) -> Iterator[Event]:
        if self._flat is None or self._flat.index != index:
            self._skip("answer:groundingMetadata")
            return
        fresh = [citation for citation in citations if (index, citation) not in self._cited]
        self._cited.update((index, citation) for citation in fresh)
        yield from (Cited(index, citation) for citation in fresh)

    def _logprobs(self, result: Raw) -> Iterator[Event]:
        if result == NULL:
            return
        logprobs = tokens(result)
        if logprobs is None or self._flat is None or self._flat.kind is not ir.Text:
            self._skip("answer:logprobsResult")
        else:
            yield Logged(self._flat.index, logprobs)

    def _skip(self, *names: str) -> None:
        """Names what may come in every chunk, once."""
        self.unread += [name for name in names if name not in self.unread]


def _grows(call: Raw) -> bool:
    piece = partial.piece(call)
    return bool(piece.will_continue or piece.partial_args) and bool(piece.name)


def _fault_in_array(data: bytes) -> Fault:
    facts = reading.error_facts(data)
    if facts is None:
        raise ValueError("a chunk is an object")
    return Fault(facts)


decoder: Final = GeminiDecoder
