"""Says one candidate of a stream: the pieces of it that stand in the chunks, and its end. Knows no other candidate, nor the chunks around it.

A token without words of its own waits for the part that follows, as in a whole answer. A call without arguments waits for what comes next: only then
is it known that it was not cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.gemini import logprobs
from asgi_surface.codecs.gemini.grounding import metadata, within
from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.gemini.write import CARRIERS, REASONS, function_call
from asgi_surface.events import Cited, Closed, Found, Grew, Logged, Opened, PartEvent, Sealed
from asgi_surface.soundness import whole

Piece = ir.Text | ir.Reasoning | ir.Call | ir.Refusal | ir.Search


class _Words(Struct):
    """Text as one part of Gemini's, which neighbouring texts become: its place among the parts, what was said, and what it cites."""

    place: int
    pieces: list[str] = []
    citations: list[ir.Citation] = []
    length: int = 0

    def add(self, text: str) -> None:
        """More of it."""
        self.pieces.append(text)
        self.length += len(text)

    def cited(self) -> tuple[int, str, list[ir.Citation]]:
        """The same in one text."""
        return self.place, "".join(self.pieces), self.citations


class _Open(Struct):
    """The part that is being said: what came of it, its token, and its sources."""

    part: Piece
    pieces: list[str] = []
    seal: str | None = None
    citations: list[ir.Citation] = []


class CandidateEncoder:
    """Writes one candidate."""

    def __init__(self, index: int, context: Context) -> None:
        self._index = index
        self._context = context
        self._open = _Open(ir.Text(""))
        self._lent: str | None = None
        self._waiting: list[Json] = []
        self._places = 0
        self._flat: type[Piece] | None = None  # what more words of the same kind continue
        self._texts: list[_Words] = []
        self._searches: list[ir.Search] = []
        self._tokens: list[logprobs.Entry] = []
        self._steps: dict[type[PartEvent], Callable[[Any], list[Json]]] = {
            Opened: self._opened,
            Grew: self._grew,
            Cited: self._cited,
            Logged: self._logged,
            Sealed: self._sealed,
            Found: self._found,
            Closed: self._closed,
        }

    def part(self, event: PartEvent) -> list[Json]:
        """The pieces of it that an event of a part makes, each for a chunk of its own."""
        return self._steps[type(event)](event)

    def close(self, stop: ir.Stop) -> Json:
        """Its last piece."""
        waiting = [] if stop > ir.Stop.TOOLS else self._waiting
        grounding = metadata([words.cited() for words in self._texts], self._searches)
        more = {"groundingMetadata": grounding, "logprobsResult": logprobs.result(self._tokens)}
        said = {name: value for name, value in more.items() if value is not None}
        return self._piece([*waiting, *self._unlent()] or [{"text": ""}], {"finishReason": REASONS[stop], **said})

    def _opened(self, event: Opened) -> list[Json]:
        part = event.part
        self._open = _Open(part)
        if isinstance(part, ir.Search):
            return []
        said, self._waiting = self._waiting, []
        if not isinstance(part, CARRIERS):
            said = [*said, *self._unlent()]
        first = part.arguments if isinstance(part, ir.Call) else part.text
        return self._pieces(said) + (self._grew(Grew(event.index, first)) if first else [])

    def _grew(self, event: Grew) -> list[Json]:
        self._open.pieces.append(event.text)
        if isinstance(self._open.part, ir.Call):
            return []
        if isinstance(self._open.part, ir.Reasoning):
            self._begin(ir.Reasoning)
            return self._pieces([{"text": event.text, "thought": True}])
        return self._pieces([self._text(event.text)])

    def _text(self, text: str) -> Json:
        token = self._token()
        self._begin(ir.Text, anew=bool(token))
        self._texts[-1].add(text)
        return {"text": text} | token

    def _begin(self, kind: type[Piece], *, anew: bool = False) -> None:
        """Counts a part, unless its words continue the one before."""
        if anew or kind is not self._flat:
            self._texts += [_Words(self._places)] if kind is ir.Text else []
            self._places += 1
        self._flat = kind

    def _cited(self, event: Cited) -> list[Json]:
        self._open.citations.append(event.citation)
        return []

    def _logged(self, event: Logged) -> list[Json]:
        self._tokens += logprobs.entries(event.logprobs) or []
        return []

    def _sealed(self, event: Sealed) -> list[Json]:
        self._open.seal = seals.wrap(event.seal, self._context.seal_domain)
        return []

    def _found(self, event: Found) -> list[Json]:
        self._open.part = structs.replace(self._open.part, sources=event.sources, failed=event.failed)
        return []

    def _closed(self, _: Closed) -> list[Json]:
        part, seal = self._open.part, self._open.seal
        if isinstance(part, ir.Call):
            return self._called(structs.replace(part, arguments="".join(self._open.pieces)), seal)
        if isinstance(part, ir.Reasoning):
            return self._thought(seal)
        if isinstance(part, ir.Search):
            self._searches.append(part)
            return []
        return self._written()

    def _called(self, call: ir.Call, seal: str | None) -> list[Json]:
        if not whole(call):  # only in an answer that was cut off; `unsaid` counts it
            return []
        said = self._unlent() if seal else []
        token = {"thoughtSignature": seal} if seal else self._token()
        said.append({"functionCall": function_call(call, self._context.aliases)} | token)
        self._apart()
        if call.arguments:
            return self._pieces(said)
        self._waiting = said
        return []

    def _thought(self, seal: str | None) -> list[Json]:
        """The end of a thought: its token closes it, or waits when it has no words."""
        if seal is None:
            return []
        if not self._open.pieces:
            self._lent = seal
            return []
        self._flat = None
        return self._pieces([{"text": "", "thought": True, "thoughtSignature": seal}])

    def _written(self) -> list[Json]:
        """The end of a text: what it cites counts from where its part of Gemini's began."""
        said = [] if self._open.pieces or self._lent is None else self._pieces([self._text("")])
        if self._open.pieces:
            words, text = self._texts[-1], "".join(self._open.pieces)
            before = words.length - len(text)
            words.citations += [_shifted(within(text, citation), before) for citation in self._open.citations]
        return said

    def _unlent(self) -> list[Json]:
        """A waiting token on a part of its own."""
        token = self._token()
        if token:
            self._apart()
        return [{"text": "", "thought": True} | token] if token else []

    def _apart(self) -> None:
        """Counts a part that nothing continues."""
        self._places += 1
        self._flat = None

    def _token(self) -> Json:
        lent, self._lent = self._lent, None
        return {} if lent is None else {"thoughtSignature": lent}

    def _pieces(self, parts: list[Json]) -> list[Json]:
        """A piece with these parts; none without."""
        return [self._piece(parts)] if parts else []

    def _piece(self, parts: list[Json], more: Json | None = None) -> Json:
        return {"content": {"parts": parts, "role": "model"}, **(more or {}), "index": self._index}


def _shifted(citation: ir.Citation, by: int) -> ir.Citation:
    return structs.replace(citation, start=(citation.start or 0) + by, end=(citation.end or 0) + by)
