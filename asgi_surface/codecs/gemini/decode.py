"""Reads a streamed generateContent answer, chunk by chunk, whichever framing they came in. Knows no client.

There is no end event. What a chunk says of one candidate is read by that candidate's own state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from asgi_surface import ir
from asgi_surface.codecs import reading
from asgi_surface.codecs.gemini.decode_candidate import CandidateDecoder
from asgi_surface.codecs.gemini.known import KNOWN
from asgi_surface.codecs.gemini.read import ANSWER, Answer
from asgi_surface.codecs.gemini.stream import DONE
from asgi_surface.codecs.strangers import Lookout
from asgi_surface.errors import ErrorFacts
from asgi_surface.events import Event, Fault, Finish, Start, UsageSeen
from asgi_surface.framing import Frame


class GeminiDecoder:
    """Follows the candidates of one stream."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._started = False
        self._candidates: dict[int, CandidateDecoder] = {}
        self._indices = itertools.count()
        self._telling = reading.Telling()
        self._lookout = Lookout(KNOWN)

    def feed(self, frame: Frame) -> Iterator[Event]:
        """The events of one chunk; its usage comes first, so that it is known when the answer begins. `[DONE]` says nothing here."""
        if frame.data.startswith(DONE):
            return
        if frame.data.lstrip().startswith(b"["):  # an error as Google sends it for an array stream
            yield _fault_in_array(frame.data)
            return
        answer = reading.decode(ANSWER, frame.data)
        usage = answer.usage()
        if usage is not None:
            yield UsageSeen(usage)
        yield from self._answer(answer)
        self._skip(self._lookout.see(frame.data))
        if answer.error or frame.event == b"error":
            yield Fault(reading.error_facts(frame.data) or ErrorFacts(""))

    def eof(self) -> Iterable[Event]:
        """Nothing. Raises `ValueError` when a candidate has ended in the middle of a call."""
        for candidate in self._candidates.values():
            candidate.eof()
        return ()

    def _answer(self, answer: Answer) -> Iterator[Event]:
        blocked = answer.blocked()
        news = self._telling.news(answer.model_version, answer.tier())
        if not self._started and (blocked or answer.candidates):
            self._started = True
            yield Start(answer.response_id, self._telling.model, answer.created(), self._telling.tier)
        elif self._started:
            yield from news
        if blocked:
            yield Finish(ir.Stop.REFUSAL)
        for candidate in answer.candidates or ():
            yield from self._candidate(candidate.index or 0).feed(candidate)
        self._skip(answer.unread())

    def _candidate(self, choice: int) -> CandidateDecoder:
        if choice not in self._candidates:
            self._candidates[choice] = CandidateDecoder(choice, self._indices, self._skip)
        return self._candidates[choice]

    def _skip(self, names: Iterable[str]) -> None:
        """Names what may come in every chunk, once."""
        self.unread += [name for name in names if name not in self.unread]


def _fault_in_array(data: bytes) -> Fault:
    facts = reading.error_facts(data)
    if facts is None:
        raise ValueError("a chunk is an object")
    return Fault(facts)


decoder: Final = GeminiDecoder
