"""What watches a stream on its way: `Passage` for native answers, whose frames pass as they are. No I/O, no clock.

Knows nothing of any surface: what a frame says is told by the codec's `Watch`, what follows from it by the lifecycle's table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final

import msgspec
from msgspec.structs import replace

from asgi_surface.codecs.base import Sight, Signal, Watch
from asgi_surface.errors import Code, ErrorFacts, GatewayError, UpstreamError
from asgi_surface.framing import Frame, FrameTooLarge, Framing, closing, named, splitter, write
from asgi_surface.gauge import Gauge
from asgi_surface.ir import Stop, Usage, weightier
from asgi_surface.lifecycle import Action, Kind, Lifecycle, State

_MESSAGES: Final = {
    Code.UPSTREAM_BAD_RESPONSE: "the upstream sent a stream event that is not what its API sends",
    Code.EVENT_TOO_LARGE: "a stream event of the upstream is larger than the gateway allows",
    Code.OUTPUT_TOO_LARGE: "the answer is longer than the gateway allows",
    Code.UPSTREAM_TRUNCATED: "the upstream's stream ended before the answer was finished",
}


def _error(code: Code) -> UpstreamError:
    return UpstreamError(code, _MESSAGES[code])


def _seen(watch: Watch, frame: Frame) -> Sight:
    if not frame.raw.isascii():
        frame.raw.decode()  # SDKs decode strictly and would die on it; msgspec checks no string that it skips
    return watch.see(frame)


def _line(framing: Framing, data: bytes) -> bytes:
    """Events hold their JSON on one line: some SDKs read no more of it."""
    return msgspec.json.format(data, indent=-1) if framing is Framing.SSE and b"\n" in data else data


class Passage:
    """One native stream: bytes in, the same bytes out in whole frames, and exactly one end.

    A frame that was relayed is never followed by an invented one: the upstream's own error frame, or an end without a finish, stands as it is. Only
    a stream that breaks off (`fail`, a bound, bad data, the end of the body before the answer's) gets one error frame of ours.

    `event_bytes` bounds one frame, `output_chars` the characters of the whole answer. `eof_ends` says that the end of a whole body is a terminal of
    the surface. `scrub` takes secrets out of the data of an upstream's error frame; a frame it changes is written anew. `upstream` is how the
    upstream frames its stream; where that is not the client's `framing`, every frame with data is written anew around the same JSON.
    """

    def __init__(  # noqa: PLR0913 -- one argument a seam
        self,
        watch: Watch,
        framing: Framing,
        *,
        upstream: Framing | None = None,
        event_bytes: int,
        output_chars: int,
        eof_ends: bool,
        gauge: Gauge | None = None,
        request_id: str,
        scrub: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        self._watch = watch
        self._framing = framing
        self._splitter = splitter(upstream or framing, event_bytes)
        self._reframed = upstream not in (None, framing)
        self._gauge = gauge
        self._chars_left = output_chars
        self._end_of_body = Kind.EOF if eof_ends else Kind.FAULT
        self._request_id = request_id
        self._scrub = scrub
        self._life = Lifecycle()
        self.stop: Stop | None = None
        """Why the model stopped: the weightiest reason that was said."""
        self.usage: Usage | None = None
        """The tokens used, as far as the upstream said."""
        self.fault: GatewayError | None = None
        """What went wrong, whoever told the client of it."""
        self.early = False
        """Whether it went wrong before anything was passed on that says something."""
        self.opening_fault: ErrorFacts | None = None
        """What was wrong, when the first frame that was no ping was an error or an end: who has sent nothing yet may answer with a true status."""
        self.frames = 0
        """The upstream's frames that were passed on."""
        self.beats = 0
        """The frames with data that were no mere ping: signs that the upstream is at work."""

    @property
    def state(self) -> State:
        """Where the answer stands."""
        return self._life.state

    @property
    def closed(self) -> bool:
        """Whether the client has been told the end. After a good end bytes may still be fed, for the usage in them."""
        return self._life.closed

    def feed(self, chunk: bytes) -> bytes:
        """The bytes to pass on now."""
        if self._life.state > State.DONE:
            return b""
        try:
            return self._pass(self._splitter.feed(chunk))
        except FrameTooLarge as error:
            return self._pass(error.frames) + self.fail(_error(Code.EVENT_TOO_LARGE))
        except ValueError:
            return self.fail(_error(Code.UPSTREAM_BAD_RESPONSE))

    def eof(self) -> bytes:
        """The body has ended by its framing, whole: the last bytes to pass on."""
        rest = self._splitter.eof()
        last = self._take(rest) if rest and rest.data else b""
        action = self._life.step(Kind.FAULT if self._splitter.half else self._end_of_body)
        if action is Action.FAIL:
            return last + self._break_off(_error(Code.UPSTREAM_TRUNCATED))
        if self._reframed:
            return last + (closing(self._framing, opened=self.frames > 0) if action is Action.CLOSE else b"")
        return last + (rest.raw if action is Action.CLOSE and rest and not rest.data else b"")

    def fail(self, error: GatewayError) -> bytes:
        """The stream broke off: the error terminal, or nothing when the end was said before."""
        return self._break_off(error) if self._life.step(Kind.FAULT) is Action.FAIL else b""

    def cancel(self) -> None:
        """The client has left."""
        self._life.step(Kind.CANCEL)

    def _break_off(self, error: GatewayError) -> bytes:
        self.fault = error
        self.early = not self.beats
        event, data = self._watch.failure(error, self._request_id)
        return write(self._framing, event, data, first=not self.frames) + closing(self._framing, opened=True)

    def _pass(self, frames: Sequence[Frame]) -> bytes:
        return b"".join([self._take(frame) for frame in frames])

    def _take(self, frame: Frame) -> bytes:
        """What one whole frame brings the client."""
        if self._life.state > State.DONE:
            return b""
        broken = self._gauge and self._gauge.weigh(frame)
        if broken:
            return self.fail(_error(broken))
        if not frame.data:
            passes = not (self.closed or self._reframed)
            self.frames += passes
            return frame.raw if passes else b""
        # A frame that may be over the bound is shown to a copy: our error goes on from what the client has got.
        watch = copy(self._watch) if len(frame.data) > self._chars_left else self._watch
        try:
            sight = _seen(watch, frame)
        except ValueError:
            return self.fail(_error(Code.UPSTREAM_BAD_RESPONSE))
        if not sight.passes:
            return b""
        self._chars_left -= sight.chars
        if self._chars_left < 0:
            return self.fail(_error(Code.OUTPUT_TOO_LARGE))
        self._watch = watch
        action = self._life.step(Kind.START if self._life.state is State.NEW else Kind.PART)
        opening = not self.beats
        self.beats += sight.alive
        for signal in sight.signals:
            self._note(signal, opening=opening)
        if action is Action.DROP:
            return b""
        raw = self._shown(frame, sight) if self._reframed or sight.signals or sight.event != frame.event else frame.raw
        self.frames += 1
        return raw

    def _note(self, signal: Signal, *, opening: bool) -> None:
        action = self._life.step(signal.kind)
        if action is Action.DROP:
            return
        if signal.stop is not None:
            self.stop = weightier(self.stop, signal.stop)
        if signal.usage is not None:
            self.usage = signal.usage if self.usage is None else self.usage.merged(signal.usage)
        if action is Action.FAIL:
            self._relayed(signal.fault, opening=opening)

    def _relayed(self, facts: ErrorFacts | None, *, opening: bool) -> None:
        """The frame being passed on ends the answer badly: it is the upstream's error, or (no facts) an end without a finish."""
        if facts is None:
            self.fault = _error(Code.UPSTREAM_TRUNCATED)
            self.opening_fault = ErrorFacts(self.fault.message) if opening else None
            return
        clean = replace(facts, message=self._scrub(facts.message.encode()).decode())
        self.fault = UpstreamError(Code.UPSTREAM_ERROR, clean.message, status=clean.status, detail=clean.detail)
        self.opening_fault = clean if opening else None

    def _shown(self, frame: Frame, sight: Sight) -> bytes:
        """The frame as it goes out, with what closes the body when it is the last."""
        raw, event = frame.raw, frame.event or sight.event
        clean = self._scrub(frame.data) if any(signal.kind is Kind.FAULT for signal in sight.signals) else frame.data
        if self._reframed or clean != frame.data:
            raw = write(self._framing, event, _line(self._framing, clean), first=not self.frames)
        elif event != frame.event:
            raw = named(raw, event)
        return raw + closing(self._framing, opened=True) if self.closed else raw
