"""One answer of several rounds: what each round's decoder reads is said by one encoder, so there is one grammar, one terminal and one usage.

A round stands where a translation has its encoder. Calls of the resident's tool are held back: the client is shown the searches that they became.
No I/O, no clock; knows nothing of any surface, nor of who searches.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct, structs

from asgi_surface.assembly import Fold
from asgi_surface.codecs.base import Context, Encoder, Frames
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Found, Grew, Opened, PartEvent, Start, Told
from asgi_surface.framing import Framing, closing, write
from asgi_surface.ir import Call, Citation, Response, Search, Stop, Text, Usage
from asgi_surface.kept import Kept
from asgi_surface.lifecycle import Action, Kind, Lifecycle
from asgi_surface.soundness import ENDED

_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, object])
_ENDS: Final = r"(?![\w/?#&=%~+@:-]|\.\w)"  # what cannot follow a URL that has ended, but for the marks that end sentences too


class Wanted(Struct, frozen=True):
    """A search that the model asked for; the query is "" where its arguments hold none."""

    query: str


Step = Wanted | PartEvent
"""What a round still has to say once the model has stopped: a search that has to be run first, or something of a part."""


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """The tokens of both. What neither counted stays unsaid."""
    if one is None or other is None:
        return one or other
    pairs = zip(structs.astuple(one), structs.astuple(other), strict=True)
    return Usage(*(old if new is None else new + (old or 0) for old, new in pairs))


class Stitch:
    """The client's answer. `context` is what writing needs to know, `tool` the name of the resident's tool as the client's surface has it.

    `framing` is None where the encoder is a fold, which writes the document. `spent` are the tokens of the rounds that are over, `frames` and `beats`
    their upstreams' frames, `unread` what nobody told the client.
    """

    def __init__(self, encoder: Encoder, framing: Framing | None, context: Context, tool: str) -> None:
        self.encoder = encoder
        self.context = context
        self._framing = framing
        self._tool = tool
        self._life = Lifecycle()
        self._kept = Kept()
        self._places = itertools.count()
        self._searches = itertools.count()
        self._sources: dict[str, Citation] = {}
        self._texts: dict[int, list[str]] = {}
        self._written = 0
        self.chars = 0
        self.rounds = 0
        self.frames = 0
        self.beats = 0
        self.spent: Usage | None = None
        self.stop: Stop | None = None
        self.unread: tuple[str, ...] = ()
        self.round = Round(self)

    def begin(self) -> Round:
        """A new round."""
        self.round = Round(self)
        return self.round

    @property
    def held(self) -> Response:
        """The answer without its words: see `Kept`."""
        return self._kept.response(self.spent)

    @property
    def closed(self) -> bool:
        """Whether the client has been told the end."""
        return self._life.closed

    def place(self) -> int:
        """The index of the next part."""
        return next(self._places)

    def seeks(self, part: object) -> bool:
        """Whether a part is a call of the resident's tool, which stands in no namespace."""
        if not isinstance(part, Call):
            return False
        called = self.context.aliases.get(part.name, part)
        return (called.namespace, called.name) == (None, self._tool)

    def open(self, start: Start, usage: Usage | None) -> bytes:
        """The answer begins, once. A further round may have another model or tier."""
        if self._life.step(Kind.START) is not Action.OPEN:
            self.note(start, usage)
            return b""
        self._kept.start(start)
        return self._write(self.encoder.open(start, usage))

    def note(self, start: Start, usage: Usage | None) -> None:
        """What is known of the round by now; `usage` is that of all rounds so far."""
        self._kept.tell(Told(start.model, start.service_tier))
        self.encoder.note(self._kept.facts, usage)

    def part(self, event: PartEvent) -> bytes:
        """Something of a part. Where its text names a source that was found, the source is cited before it closes."""
        cited = [Cited(event.index, citation) for citation in self._cites(event)]
        return b"".join(map(self._say, (*cited, event)))

    def _say(self, event: PartEvent) -> bytes:
        self._kept.part(event)
        return self._write(self.encoder.part(event))

    def _cites(self, event: PartEvent) -> Iterator[Citation]:
        if isinstance(event, Opened) and isinstance(event.part, Text) and self._sources:
            self._texts[event.index] = [event.part.text]
        elif isinstance(event, Grew) and event.index in self._texts:
            self._texts[event.index].append(event.text)
        elif isinstance(event, Closed):
            yield from _named("".join(self._texts.pop(event.index, ())), self._sources)

    def search(self, wanted: Wanted) -> tuple[int, bytes]:
        """A search begins: the index of its part, for `found`."""
        index = self.place()
        identity = f"ws_{self.context.request_id}_{next(self._searches)}"
        return index, self._say(Opened(index, Search(identity, wanted.query)))

    def found(self, index: int, sources: tuple[Citation, ...], *, failed: bool) -> bytes:
        """What it gave."""
        self._sources |= {source.url: source for source in sources if source.url}
        return self._say(Found(index, sources, failed)) + self._say(Closed(index))

    def close(self, ending: Ending) -> bytes:
        """The terminal, with the tokens of all rounds. Raises `GatewayError` when what was said is no answer of the surface; then `fail` follows."""
        said = self._write(self.encoder.close(ending))
        self.stop = ending.stop
        self._life.step(Kind.FINISH)
        self._life.step(Kind.END)
        return said + self._closing()

    def fail(self, error: GatewayError) -> bytes:
        """The error terminal, or nothing when the end was said before."""
        if self._life.step(Kind.FAULT) is not Action.FAIL:
            return b""
        return self._write(self.encoder.fail(error)) + self._closing()

    def _closing(self) -> bytes:
        return b"" if self._framing is None else closing(self._framing, opened=True)

    def _write(self, frames: Frames) -> bytes:
        out = []
        for event, data in frames:
            out.append(data if self._framing is None else write(self._framing, event, data, first=not self._written))
            self._written += 1
        return b"".join(out)


class Round:
    """One round's answer, as an encoder that writes nothing but what goes on to the client. It says neither the failure of a round nor, while there
    is something to search, its end.

    What opens behind a call of the resident's waits with it, so that the client gets everything in the model's order.
    """

    several = False

    def __init__(self, stitch: Stitch) -> None:
        self.sequential = stitch.encoder.sequential
        self._stitch = stitch
        self._fold = Fold(self._folded)
        self._live: dict[int, int] = {}
        self._later: list[PartEvent] = []
        self._sought: dict[int, None] = {}
        self._ending = Ending(Stop.OTHER)
        self.response = Response(id=None, model=None)

    @property
    def pending(self) -> bool:
        """Whether the model waits for searches."""
        return bool(self._sought) and self._ending.stop in ENDED

    @property
    def mixed(self) -> bool:
        """Whether the model also called tools of the client's, who has to answer first."""
        return any(isinstance(part, Call) and not self._stitch.seeks(part) for part in self.response.parts)

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """The round begins."""
        self._fold.open(start, usage)
        return _passed(self._stitch.open(start, added(self._stitch.spent, usage)))

    def note(self, start: Start, usage: Usage | None) -> None:
        """What is known by now."""
        self._fold.note(start, usage)
        self._stitch.note(start, added(self._stitch.spent, usage))

    def part(self, event: PartEvent) -> Frames:
        """Something of a part: goes on to the client, or waits."""
        self._fold.part(event)
        if isinstance(event, Grew):
            self._stitch.chars += len(event.text)
        if isinstance(event, Opened):
            if self._stitch.seeks(event.part):
                self._sought[event.index] = None
            elif not self._sought:
                self._live[event.index] = self._stitch.place()
        if event.index in self._live:
            return _passed(self._stitch.part(structs.replace(event, index=self._live[event.index])))
        self._later.append(event)
        return []

    def close(self, ending: Ending) -> Frames:
        """The model has stopped. Cut off, it is not served any more: half a call asks for nothing."""
        self._fold.close(ending)
        self._ending = ending
        if self.pending:
            return []
        said = b"".join(self._stitch.part(step) for step in self.steps() if not isinstance(step, Wanted))
        return _passed(said + self._stitch.close(structs.replace(ending, usage=added(self._stitch.spent, ending.usage))))

    def fail(self, error: GatewayError) -> Frames:
        """Nothing: whoever runs the rounds says it, or gives it its own status."""
        del error
        return []

    def steps(self) -> Iterator[Step]:
        """What is left to say, in the model's order."""
        calls = dict(zip(self._sought, self.calls, strict=True))
        for event in self._later:
            if event.index in self._sought:
                if isinstance(event, Opened):
                    yield Wanted(_query(calls[event.index].arguments))
                continue
            if isinstance(event, Opened):
                self._live[event.index] = self._stitch.place()
            yield structs.replace(event, index=self._live[event.index])

    @property
    def calls(self) -> list[Call]:
        """The model's calls of the resident's tool, in order, whole."""
        return [part for part in self.response.parts if isinstance(part, Call) and self._stitch.seeks(part)]

    def end(self, stop: Stop | None = None) -> bytes:
        """The terminal after all searches; for another reason than the model's, if one is given. The round's own tokens have been added by now."""
        return self._stitch.close(Ending(self._ending.stop if stop is None else stop, self._ending.sequence, self._stitch.spent))

    def _folded(self, response: Response) -> bytes:
        self.response = response
        return b""


def _passed(out: bytes) -> Frames:
    return [(b"", out)] if out else []


def _query(arguments: str) -> str:
    try:
        query = _ARGUMENTS.decode(arguments).get("query")
    except msgspec.DecodeError:  # no arguments at all are whole too
        return ""
    return query.strip() if isinstance(query, str) else ""


def _named(text: str, sources: Mapping[str, Citation]) -> Iterator[Citation]:
    """Where the text has the URL of a source, whole: one that goes on there is another."""
    if not (text and sources):
        return
    for found in re.finditer(f"(?:{'|'.join(map(re.escape, sources))}){_ENDS}", text):
        yield structs.replace(sources[found[0]], start=found.start(), end=found.end(), excerpt="")
