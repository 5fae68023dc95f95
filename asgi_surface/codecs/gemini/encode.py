"""Writes a streamed generateContent answer: one chunk for each piece of words, whole calls, the finish and the sources last. Knows no upstream.

There is no first chunk without words and no end event; the finish is the last chunk, as the API sends it, for all candidates together.
"""

from __future__ import annotations

from typing import Final

import msgspec

from asgi_surface import ir
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.gemini.encode_candidate import CandidateEncoder
from asgi_surface.codecs.gemini.errors import error as envelope
from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.gemini.usage import usage
from asgi_surface.errors import GatewayError
from asgi_surface.events import Ending, Opened, PartEvent, Start


class GeminiEncoder:
    """Writes one stream."""

    sequential = True
    several = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._head: Json = {}
        self._counted: Json = {}
        self._candidates: dict[int, CandidateEncoder] = {}
        self._speaking = self._candidate(0)

    def open(self, start: Start, usage: ir.Usage | None) -> Frames:
        """Nothing yet: the API's first chunk has words."""
        self.note(start, usage)
        return []

    def note(self, start: Start, usage: ir.Usage | None) -> None:
        """Every later chunk tells the model, and the tokens used so far, as they are known by then."""
        self._head = {"modelVersion": start.model or self._context.model} | ({} if start.id is None else {"responseId": start.id})
        self._counted = _counted(usage)

    def part(self, event: PartEvent) -> Frames:
        """The chunks that an event of a part makes. One part is open at a time, so the candidate that opened last speaks."""
        if isinstance(event, Opened):
            self._speaking = self._candidate(event.choice)
        return [self._chunk([candidate], self._counted) for candidate in self._speaking.part(event)]

    def close(self, ending: Ending) -> Frames:
        """The last chunk."""
        last = [self._candidate(choice).close(stop) for choice, stop in sorted({0: ending.stop, **ending.more}.items())]
        return [self._chunk(last, _counted(ending.usage))]

    def fail(self, error: GatewayError) -> Frames:
        """The error envelope as a chunk."""
        return [(b"", envelope(error, self._context.request_id))]

    def _candidate(self, choice: int) -> CandidateEncoder:
        if choice not in self._candidates:
            self._candidates[choice] = CandidateEncoder(choice, self._context)
        return self._candidates[choice]

    def _chunk(self, candidates: list[Json], counted: Json) -> tuple[bytes, bytes]:
        return b"", msgspec.json.encode({"candidates": candidates, **counted, **self._head})


def _counted(spent: ir.Usage | None) -> Json:
    counted = usage(spent)
    return {"usageMetadata": counted} if counted else {}


encoder: Final = GeminiEncoder
