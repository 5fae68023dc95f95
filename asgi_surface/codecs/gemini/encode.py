"""Writes a streamed generateContent answer: one chunk for each piece of words, whole calls, the finish and the sources last. Knows no upstream.

There is no first chunk without words and no end event; the finish is the last chunk, as the API sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.gemini import logprobs
from asgi_surface.codecs.gemini.errors import error as envelope
from asgi_surface.codecs.gemini.grounding import metadata
from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.gemini.write import CARRIERS, function_call, is_object, reason, usage
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Grew, Logged, Opened, PartEvent, Sealed, Start

Piece = ir.Text | ir.Reasoning | ir.Call | ir.Refusal


class _Words(Struct):
    """Text as one part of Gemini's, which neighbouring texts become: its place among the parts, what was said, and what it cites."""

    place: int
    pieces: list[str] = []
    citations: list[ir.Citation] = []

    def cited(self) -> tuple[int, str, list[ir.Citation]]:
        """The same in one text."""
        return self.place, "".join(self.pieces), self.citations


class _Open(Struct):
    """The part that is being said: what came of it, its token, and its sources."""

    part: Piece
    pieces: list[str] = []
    seal: str | None = None
    citations: list[ir.Citation] = []


class GeminiEncoder:
    """Writes one stream.

    A token without words of its own waits for the part that follows, as in a whole answer. A call without arguments waits for what comes next: only
    then is it known that it was not cut off.
    """

    sequential = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._head: Json = {}
        self._open = _Open(ir.Text(""))
        self._lent: str | None = None
        self._waiting: list[Json] = []
        self._places = 0
        self._flat: type[Piece] | None = None  # what more words of the same kind continue
        self._texts: list[_Words] = []
        self._tokens: list[logprobs.Entry] = []
        self._unsaid = False
        self._steps: dict[type[PartEvent], Callable[[Any], Frames]] = {
            Opened: self._opened,
            Grew: self._grew,
            Cited: self._cited,
            Logged: self._logged,
            Sealed: self._sealed,
            Closed: self._closed,
        }

    def open(self, start: Start, usage: ir.Usage | None) -> Frames:  # noqa: ARG002 -- said with the finish
        """Nothing yet: the API's first chunk has words."""
        self._head = {"modelVersion": start.model or self._context.model} | ({} if start.id is None else {"responseId": start.id})
        return []

    def part(self, event: PartEvent) -> Frames:
        """The chunks that an event of a part makes."""
        return self._steps[type(event)](event)

    def close(self, ending: Ending) -> Frames:
        """The last chunk."""
        parts = [] if ending.stop > ir.Stop.TOOLS else self._waiting
        said = [*parts, *self._unlent()]
        more: Json = {"finishReason": reason(ending.stop, unsaid=self._unsaid)}
        if (grounding := metadata([words.cited() for words in self._texts])) is not None:
            more["groundingMetadata"] = grounding
        if self._tokens:
            more["logprobsResult"] = logprobs.result(self._tokens)
        counted = usage(ending.usage)
        return self._chunk(said or [{"text": ""}], more, {"usageMetadata": counted} if counted else {})

    def fail(self, error: GatewayError) -> Frames:
        """The error envelope as a chunk."""
        return [(b"", envelope(error, self._context.request_id))]

    def _opened(self, event: Opened) -> Frames:
        part = event.part
        said, self._waiting = self._waiting, []
        if not isinstance(part, CARRIERS):
            said = [*said, *self._unlent()]
        self._open = _Open(part)
        first = part.arguments if isinstance(part, ir.Call) else part.text
        return self._chunk(said) + (self._grew(Grew(event.index, first)) if first else [])

    def _grew(self, event: Grew) -> Frames:
        self._open.pieces.append(event.text)
        if isinstance(self._open.part, ir.Call):
            return []
        if isinstance(self._open.part, ir.Reasoning):
            self._begin(ir.Reasoning)
            return self._chunk([{"text": event.text, "thought": True}])
        return self._chunk([self._text(event.text)])

    def _text(self, text: str) -> Json:
        token = self._token()
        self._begin(ir.Text, anew=bool(token))
        self._texts[-1].pieces.append(text)
        return {"text": text} | token

    def _begin(self, kind: type[Piece], *, anew: bool = False) -> None:
        """Counts a part, unless its words continue the one before."""
        if anew or kind is not self._flat:
            self._texts += [_Words(self._places)] if kind is ir.Text else []
            self._places += 1
        self._flat = kind

    def _cited(self, event: Cited) -> Frames:
        self._open.citations.append(event.citation)
        return []

    def _logged(self, event: Logged) -> Frames:
        self._tokens += logprobs.entries(event.logprobs)
        return []

    def _sealed(self, event: Sealed) -> Frames:
        self._open.seal = seals.wrap(event.seal, self._context.seal_domain)
        return []

    def _closed(self, _: Closed) -> Frames:
        part, seal = self._open.part, self._open.seal
        if isinstance(part, ir.Call):
            return self._called(structs.replace(part, arguments="".join(self._open.pieces)), seal)
        if isinstance(part, ir.Reasoning):
            return self._thought(seal)
        return self._written()

    def _called(self, call: ir.Call, seal: str | None) -> Frames:
        if not is_object(call.arguments):
            self._unsaid = True
            return []
        said = self._unlent() if seal else []
        token = {"thoughtSignature": seal} if seal else self._token()
        said.append({"functionCall": function_call(call, self._context.aliases)} | token)
        self._apart()
        if call.arguments:
            return self._chunk(said)
        self._waiting = said
        return []

    def _thought(self, seal: str | None) -> Frames:
        """The end of a thought: its token closes it, or waits when it has no words."""
        if seal is None:
            return []
        if not self._open.pieces:
            self._lent = seal
            return []
        self._flat = None
        return self._chunk([{"text": "", "thought": True, "thoughtSignature": seal}])

    def _written(self) -> Frames:
        """The end of a text: what it cites counts from where its part of Gemini's began."""
        frames = [] if self._open.pieces or self._lent is None else self._chunk([self._text("")])
        if self._open.pieces:
            words = self._texts[-1]
            before = sum(map(len, words.pieces)) - sum(map(len, self._open.pieces))
            words.citations += [_shifted(citation, before) for citation in self._open.citations]
        return frames

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

    def _chunk(self, parts: list[Json], more: Json | None = None, beside: Json | None = None) -> Frames:
        """A chunk with these parts; none without."""
        candidate: Json = {"content": {"parts": parts, "role": "model"}, **(more or {}), "index": 0}
        return [(b"", msgspec.json.encode({"candidates": [candidate], **(beside or {}), **self._head}))] if parts else []


def _shifted(citation: ir.Citation, by: int) -> ir.Citation:
    start, end = citation.start, citation.end
    return citation if start is None or end is None else structs.replace(citation, start=start + by, end=end + by)


encoder: Final = GeminiEncoder
