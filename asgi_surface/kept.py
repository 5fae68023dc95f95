"""What a converted stream remembers of its answer: why each of its answers stopped, which parts are open, and what `soundness` and `losses` ask.

Of words it keeps the calls' arguments, and of reasoning the first piece: that there is some; of sources each once. Pure; knows no wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import Raw, structs

from asgi_surface.events import Cited, Closed, Ending, Finish, Found, Grew, Logged, Opened, PartEvent, Sealed, Start, Told
from asgi_surface.ir import Alternative, Call, Citation, Reasoning, Refusal, Response, Search, Stop, Text, Usage, weightier
from asgi_surface.soundness import whole

Said = Text | Reasoning | Call | Refusal | Search


class Kept:
    """One answer, without its words. `choices` says which of several answers each part belongs to; `stops` has None for one that has not finished.

    `facts` is how the answer began, with what was told of it since.
    """

    def __init__(self) -> None:
        self.facts = Start()
        self.open: dict[int, None] = {}
        self.choices: dict[int, int] = {}
        self.stops: dict[int, Stop | None] = {}
        self._parts: dict[int, Said] = {}
        self._arguments: dict[int, list[str]] = {}
        self._words: dict[int, str] = {}
        self._logprobs: dict[int, Raw] = {}
        self._sources: dict[int, dict[str, Citation]] = {}
        self._sequence: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the first answer, and every other that began, has said why it stopped."""
        return self.stops.get(0) is not None and None not in self.stops.values()

    def start(self, event: Start) -> None:
        """Notes what is said as the answer begins."""
        self.facts = event

    def tell(self, event: Told) -> None:
        """Notes what is said later: it stands in the place of what was said before."""
        known = self.facts
        self.facts = structs.replace(known, model=event.model or known.model, service_tier=event.service_tier or known.service_tier)

    def finish(self, event: Finish) -> None:
        """Notes a reason: the weightiest stands."""
        self.stops[event.choice] = weightier(self.stops.get(event.choice), event.stop)
        if not event.choice:
            self._sequence = event.sequence or self._sequence

    def part(self, event: PartEvent) -> None:
        """Notes something of a part."""
        self._notes[type(event)](self, event)

    def _opened(self, event: Opened) -> None:
        index, part = event.index, event.part
        self.open[index], self._parts[index], self.choices[index] = None, part, event.choice
        self.stops.setdefault(event.choice, None)
        if isinstance(part, Call):
            self._arguments[index] = [part.arguments]

    def _grew(self, event: Grew) -> None:
        if event.index in self._arguments:
            self._arguments[event.index].append(event.text)
        elif event.text and isinstance(self._parts[event.index], Reasoning):
            self._words.setdefault(event.index, event.text)

    def _sealed(self, event: Sealed) -> None:
        self._parts[event.index] = structs.replace(self._parts[event.index], seal=event.seal)

    def _cited(self, event: Cited) -> None:
        self._sources.setdefault(event.index, {}).setdefault(event.citation.url, event.citation)

    def _found(self, event: Found) -> None:
        self._parts[event.index] = structs.replace(self._parts[event.index], sources=event.sources, failed=event.failed)

    def _logged(self, event: Logged) -> None:
        self._logprobs[self.choices[event.index]] = event.logprobs

    def _closed(self, event: Closed) -> None:
        self.open.pop(event.index, None)

    _notes: ClassVar[Mapping[type, Callable[[Kept, Any], None]]] = {
        Opened: _opened,
        Grew: _grew,
        Sealed: _sealed,
        Cited: _cited,
        Found: _found,
        Logged: _logged,
        Closed: _closed,
    }

    def half(self, index: int) -> bool:
        """Whether a part is a call whose arguments, as far as they came, cannot be read."""
        part = self._parts.get(index)
        return isinstance(part, Call) and not whole(structs.replace(part, arguments="".join(self._arguments[index])))

    def response(self, usage: Usage | None) -> Response:
        """The answer without its words: of token entries only the last, which tells that there are some; a source stands once in its part."""
        said: dict[int, list[Said]] = {choice: [] for choice in sorted({0, *self.stops})}
        for index, part in self._parts.items():
            said[self.choices[index]].append(self._said(index, part))
        first, *more = (self._answer(choice, tuple(parts)) for choice, parts in said.items())
        return Response(
            id=None,
            model=None,
            parts=first.parts,
            stop=first.stop,
            stop_sequence=self._sequence,
            usage=usage,
            logprobs=first.logprobs,
            service_tier=self.facts.service_tier,
            more=tuple(more),
        )

    def _answer(self, choice: int, parts: tuple[Said, ...]) -> Alternative:
        stop = self.stops.get(choice)
        return Alternative(parts=parts, stop=Stop.OTHER if stop is None else stop, logprobs=self._logprobs.get(choice))

    def _said(self, index: int, part: Said) -> Said:
        if isinstance(part, Call):
            return structs.replace(part, arguments="".join(self._arguments[index]))
        if isinstance(part, Text):
            return structs.replace(part, citations=tuple(self._sources.get(index, {}).values()))
        return structs.replace(part, text=self._words[index]) if index in self._words and isinstance(part, Reasoning) else part

    def ending(self, usage: Usage | None, *, several: bool) -> Ending:
        """How it ended, once it has `finished`; with the reasons of `several` answers, or of the first."""
        first, *more = ((choice, stop) for choice, stop in sorted(self.stops.items()) if stop is not None)
        return Ending(first[1], self._sequence, usage, dict(more) if several else {})
