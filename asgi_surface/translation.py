"""A converted stream: the upstream's frames decoded to events, stepped through the lifecycle's table, and encoded as the client's frames.

Has the same face as `stream.Passage`. No I/O, no clock; knows nothing of any surface.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asgi_surface import soundness
from asgi_surface.codecs.base import Decoder, Encoder, Frames
from asgi_surface.errors import Code, ErrorFacts, GatewayError, UpstreamError
from asgi_surface.events import KINDS, Cited, Closed, Event, Fault, Finish, Grew, PartEvent, Start, Told, UsageSeen
from asgi_surface.framing import Frame, FrameTooLarge, Framing, closing, splitter, write
from asgi_surface.gauge import Gauge
from asgi_surface.ir import Response, Stop, Usage
from asgi_surface.kept import Kept
from asgi_surface.lifecycle import Action, Kind, Lifecycle, State

MESSAGES: Final = {
    Code.UPSTREAM_BAD_RESPONSE: "the upstream sent a stream event that is not what its API sends",
    Code.EVENT_TOO_LARGE: "a stream event of the upstream is larger than the gateway allows",
    Code.OUTPUT_TOO_LARGE: "the answer is longer than the gateway allows",
    Code.UPSTREAM_TRUNCATED: "the upstream's stream ended before the answer was finished",
    Code.UPSTREAM_ERROR: "the model broke off with an error",
}


def failure(code: Code) -> UpstreamError:
    """The error of a stream that went wrong, with a constant text."""
    return UpstreamError(code, MESSAGES[code])


class Sequencer:
    """Lets one part be open at a time: the first streams live, later ones wait until it has closed. Nothing is lost or put out of its order."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[PartEvent]] = {}
        self._order: deque[int] = deque()

    def feed(self, event: PartEvent) -> Iterator[PartEvent]:
        """The events that may be said now."""
        if event.index not in self._waiting:
            self._waiting[event.index] = []
            self._order.append(event.index)
        if event.index != self._order[0]:
            self._waiting[event.index].append(event)
            return
        yield event
        while isinstance(event, Closed):
            del self._waiting[self._order.popleft()]
            if not self._order:
                return
            head = self._order[0]
            held, self._waiting[head] = self._waiting[head], []
            yield from held
            event = held[-1]


class Translation:
    """One converted stream: bytes in, the client's frames out, and exactly one end.

    `downstream` is None where a fold stands in the encoder's place: what it writes is no frame but the document. `event_bytes` bounds one frame of
    the upstream, `output_chars` the characters of the whole answer. `eof_ends` says that the end of a whole body is a terminal of the upstream's
    surface. `blame` makes the client's error of one that the upstream states.
    """

    def __init__(  # noqa: PLR0913 -- one argument a seam
        self,
        decoder: Decoder,
        encoder: Encoder,
        *,
        upstream: Framing,
        downstream: Framing | None,
        event_bytes: int,
        output_chars: int,
        eof_ends: bool,
        gauge: Gauge | None = None,
        blame: Callable[[ErrorFacts], UpstreamError],
    ) -> None:
        self._decoder = decoder
        self._encoder = encoder
        self._framing = downstream
        self._splitter = splitter(upstream, event_bytes)
        self._sequencer = Sequencer() if encoder.sequential else None
        self._gauge = gauge
        self._chars_left = output_chars
        self._end_of_body = Kind.EOF if eof_ends else Kind.FAULT
        self._blame = blame
        self._life = Lifecycle()
        self._kept = Kept()
        self._late: dict[str, None] = {}
        self._written = 0
        self.usage: Usage | None = None
        self.fault: GatewayError | None = None
        self.early = False
        self.opening_fault: ErrorFacts | None = None
        self.frames = 0
        self.beats = 0

    @property
    def state(self) -> State:
        """Where the answer stands."""
        return self._life.state

    @property
    def closed(self) -> bool:
        """Whether the client has been told the end."""
        return self._life.closed

    @property
    def held(self) -> Response:
        """The answer without its words, with what not every surface can say: see `Kept`."""
        return self._kept.response(self.usage)

    @property
    def stop(self) -> Stop | None:
        """The weightiest reason seen of the first answer."""
        return self._kept.stops.get(0)

    @property
    def unread(self) -> tuple[str, ...]:
        """The constructs of the answer that the client did not get."""
        return (*self._decoder.unread, *self._late)

    def feed(self, chunk: bytes) -> bytes:
        """The client's bytes for a piece of the upstream's body."""
        try:
            return b"".join(map(self._frame, self._splitter.feed(chunk)))
        except FrameTooLarge as error:
            return b"".join(map(self._frame, error.frames)) + self.fail(failure(Code.EVENT_TOO_LARGE))
        except ValueError:
            return self.fail(failure(Code.UPSTREAM_BAD_RESPONSE))

    def eof(self) -> bytes:
        """The body has ended by its framing, whole."""
        rest = self._splitter.eof()
        last = self._frame(rest) if rest else b""
        if self._splitter.half:
            return last + self._step(Kind.FAULT, failure(Code.UPSTREAM_TRUNCATED))
        if self.state < State.DONE:
            last += self._read(self._decoder.eof)
        return last + self._step(self._end_of_body, failure(Code.UPSTREAM_TRUNCATED))

    def fail(self, error: GatewayError) -> bytes:
        """The stream broke off: the error terminal, or nothing when the end was said before."""
        return self._step(Kind.FAULT, error)

    def say(self, events: Iterable[Event]) -> bytes:
        """The client's whole stream for an answer that came as one document."""
        return b"".join(map(self._event, events)) + self._step(Kind.EOF, failure(Code.UPSTREAM_TRUNCATED))

    def cancel(self) -> None:
        """The client has left."""
        self._life.step(Kind.CANCEL)

    def _frame(self, frame: Frame) -> bytes:
        if self.state in (State.FAILED, State.CANCELLED):
            return b""
        broken = self._gauge and self._gauge.weigh(frame)
        if broken:
            return self.fail(failure(broken))
        if not frame.data:
            return b""
        self.frames += 1
        return self._read(lambda: self._decoder.feed(frame))

    def _read(self, read: Callable[[], Iterable[Event]]) -> bytes:
        try:
            events = list(read())
        except ValueError:
            return self.fail(failure(Code.UPSTREAM_BAD_RESPONSE))
        except GatewayError as error:
            return self.fail(error)
        self.beats += bool(events)
        return b"".join(map(self._event, events))

    def _event(self, event: Event) -> bytes:
        if isinstance(event, Grew):
            self._chars_left -= len(event.text)
            if self._chars_left < 0:
                return self.fail(failure(Code.OUTPUT_TOO_LARGE))
        if isinstance(event, Fault):
            return self._faulted(event.facts)
        action = self._life.step(KINDS[type(event)])
        if action is Action.NOTE and isinstance(event, Finish | Told | UsageSeen):
            self._note(event)
        return self._act(action, event, failure(Code.UPSTREAM_TRUNCATED))

    def _faulted(self, facts: ErrorFacts) -> bytes:
        if self.state is State.NEW:
            self.opening_fault = facts
        return self.fail(self._blame(facts))

    def _note(self, event: Finish | Told | UsageSeen) -> None:
        if isinstance(event, Finish):
            self._kept.finish(event)
            return
        if isinstance(event, Told):
            self._kept.tell(event)
        else:
            self.usage = event.usage if self.usage is None else self.usage.merged(event.usage)
        if State.NEW < self.state < State.DONE:
            self._encoder.note(self._kept.facts, self.usage)

    def _step(self, kind: Kind, error: GatewayError) -> bytes:
        return self._act(self._life.step(kind), None, error)

    def _act(self, action: Action, event: Event | None, error: GatewayError) -> bytes:
        """What the table says is to be done."""
        if action is Action.CLOSE:
            # However orderly a stream ended: a model that broke off has not answered, and half a call is none.
            flaw = self._flaw()
            return self._closed() if flaw is None else self._failed(flaw)
        if action is Action.FAIL:
            return self._failed(error)
        if isinstance(event, Start) and action is Action.OPEN:
            self._kept.start(event)
            return self._write(self._encoder.open(event, self.usage))
        return self._passed(event) if action is Action.PASS and isinstance(event, PartEvent) else b""

    def _passed(self, event: PartEvent) -> bytes:
        if isinstance(event, Closed) and self._kept.half(event.index):
            # Only a cut excuses half a call. Before the end says that there was one, its end would look like that of a finished one.
            return b""
        out: list[bytes] = []
        try:
            self._part(event, out)
        except GatewayError as error:
            out.append(self.fail(error))
        return b"".join(out)

    def _flaw(self) -> UpstreamError | None:
        return soundness.flaw(self.held) if self._kept.finished else failure(Code.UPSTREAM_TRUNCATED)

    def _failed(self, error: GatewayError) -> bytes:
        self.fault = error
        self.early = not self._written
        return self._write(self._encoder.fail(error)) + self._closing()

    def _closed(self) -> bytes:
        end = self._kept.ending(self.usage, several=self._encoder.several)
        out: list[bytes] = []
        try:
            for index in list(self._kept.open):
                self._part(Closed(index), out)
            out.append(self._write(self._encoder.close(end)))
        except GatewayError as error:
            # What was streamed cannot be an answer of the client's surface: no success terminal may follow it.
            return b"".join(out) + self._failed(error)
        return b"".join(out) + self._closing()

    def _closing(self) -> bytes:
        return b"" if self._framing is None else closing(self._framing, opened=True)

    def _part(self, event: PartEvent, out: list[bytes]) -> None:
        """Adds what the client gets of it to `out`. Raises `GatewayError` when its surface cannot say it."""
        if self._sequencer is not None and isinstance(event, Cited) and event.late:
            self._late[event.late] = None
            return
        self._kept.part(event)
        if not self._encoder.several and self._kept.choices[event.index]:
            return
        ready: Iterable[PartEvent] = (event,) if self._sequencer is None else self._sequencer.feed(event)
        for one in ready:
            out.append(self._write(self._encoder.part(one)))  # noqa: PERF401 -- what was written before a failure stays

    def _write(self, frames: Frames) -> bytes:
        out = []
        for event, data in frames:
            out.append(data if self._framing is None else write(self._framing, event, data, first=not self._written))
            self._written += 1
        return b"".join(out)
