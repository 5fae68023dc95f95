"""Between the two forms of an answer: events fold into a whole one, and a whole one unfolds into events.

Pure. Knows no wire: a fold stands in the place of an encoder, so every stream passes the same table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, structs

from asgi_surface.codecs.base import Frames
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Event, Finish, Found, Grew, Logged, Opened, PartEvent, Sealed, Start, UsageSeen
from asgi_surface.ir import Alternative, Call, Citation, Reasoning, Refusal, Response, Search, Text, Usage

_LIST: Final = msgspec.json.Decoder(list[Raw])
_Growing = Text | Reasoning | Call | Refusal | Search


class Fold:
    """Takes events as an encoder does and writes one whole answer at the end. A failed answer writes nothing: its error has its own status."""

    sequential = False
    several = True

    def __init__(self, write: Callable[[Response], bytes]) -> None:
        self._write = write
        self._start = Start()
        self._parts: dict[int, _Growing] = {}
        self._texts: dict[int, list[str]] = {}
        self._citations: dict[int, list[Citation]] = {}
        self._choices: dict[int, int] = {}
        self._logprobs: dict[int, list[Raw]] = {}

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """The answer begins."""
        del usage
        self._start = start
        return []

    def note(self, start: Start, usage: Usage | None) -> None:
        """What is known of the answer by now. The usage comes with the end."""
        del usage
        self._start = start

    def part(self, event: PartEvent) -> Frames:
        """Something of a part. That it has closed says nothing more."""
        index = event.index
        match event:
            case Opened(part=part, choice=choice):
                self._parts[index], self._texts[index], self._choices[index] = part, [], choice
            case Grew(text=text):
                self._texts[index].append(text)
            case Sealed(seal=seal):
                self._parts[index] = structs.replace(self._parts[index], seal=seal)
            case Cited(citation=citation):
                self._citations.setdefault(index, []).append(citation)
            case Found(sources=sources, failed=failed):
                self._parts[index] = structs.replace(self._parts[index], sources=sources, failed=failed)
            case Logged(logprobs=logprobs):
                self._logprobs.setdefault(self._choices[index], []).extend(_LIST.decode(logprobs))
        return []

    def close(self, ending: Ending) -> Frames:
        """The whole answer."""
        start, said = self._start, self._whole()
        response = Response(
            id=start.id,
            model=start.model,
            created=start.created,
            parts=tuple(said.get(0, ())),
            stop=ending.stop,
            stop_sequence=ending.sequence,
            usage=ending.usage,
            logprobs=self._entries(0),
            service_tier=start.service_tier,
            more=tuple(
                Alternative(parts=tuple(said.get(one, ())), stop=stop, logprobs=self._entries(one)) for one, stop in sorted(ending.more.items())
            ),
        )
        return [(b"", self._write(response))]

    def _whole(self) -> dict[int, list[_Growing]]:
        """The parts of each answer."""
        said: dict[int, list[_Growing]] = {}
        for index, part in self._parts.items():
            whole = _grown(part, "".join(self._texts[index]), tuple(self._citations.get(index, ())))
            said.setdefault(self._choices[index], []).append(whole)
        return said

    def _entries(self, choice: int) -> Raw | None:
        logprobs = self._logprobs.get(choice)
        return Raw(b"[" + b",".join(map(bytes, logprobs)) + b"]") if logprobs else None

    def fail(self, error: GatewayError) -> Frames:
        """Nothing: whoever folds raises the error."""
        del error
        return []


def _grown(part: _Growing, text: str, citations: tuple[Citation, ...]) -> _Growing:
    if isinstance(part, Call):
        return structs.replace(part, arguments=part.arguments + text)
    if isinstance(part, Text):
        return structs.replace(part, text=part.text + text, citations=part.citations + citations)
    return part if isinstance(part, Search) else structs.replace(part, text=part.text + text)


def unfold(response: Response) -> Iterator[Event]:
    """The events of a whole answer, in the order in which a stream would bring them."""
    yield Start(response.id, response.model, response.created, response.service_tier)
    if response.usage is not None:
        yield UsageSeen(response.usage)
    places = itertools.count()
    for choice, answer in enumerate(response.answers):
        yield from _answer(answer, choice, places)


def _answer(answer: Response | Alternative, choice: int, places: Iterator[int]) -> Iterator[Event]:
    logprobs = answer.logprobs
    for part in answer.parts:
        if not isinstance(part, _Growing):
            continue
        index = next(places)
        yield from _unfolded(index, part, choice)
        if isinstance(part, Text) and logprobs is not None:
            yield Logged(index, logprobs)
            logprobs = None
        yield Closed(index)
    yield Finish(answer.stop, answer.stop_sequence, choice)


def _unfolded(index: int, part: _Growing, choice: int) -> Iterator[Event]:
    """A part as it opens, its seal, its words and its sources."""
    if isinstance(part, Search):
        yield Opened(index, structs.replace(part, sources=(), failed=False), choice)
        yield Found(index, part.sources, part.failed)
        return
    words = part.arguments if isinstance(part, Call) else part.text
    seal = part.seal if isinstance(part, Call | Reasoning) else None
    yield Opened(index, _bare(part), choice)
    if isinstance(part, Call) and seal is not None:
        yield Sealed(index, seal)
    if words:
        yield Grew(index, words)
    if isinstance(part, Reasoning) and seal is not None:
        yield Sealed(index, seal)
    for citation in part.citations if isinstance(part, Text) else ():
        yield Cited(index, citation)


def _bare(part: Text | Reasoning | Call | Refusal) -> Text | Reasoning | Call | Refusal:
    if isinstance(part, Call):
        return structs.replace(part, arguments="", seal=None)
    if isinstance(part, Reasoning):
        return structs.replace(part, text="", seal=None)
    return structs.replace(part, text="", citations=()) if isinstance(part, Text) else structs.replace(part, text="")
