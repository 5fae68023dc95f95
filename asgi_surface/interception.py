"""Hooks around one request: what an interceptor is, and how its rewriter is run over every answer that leaves, in the client's surface.

An interceptor sees the client's members before they are judged, and each frame or whole document before it is sent, whatever way the answer came:
native, converted, folded, unfolded or an error. Pure; knows nothing of transports, nor of any particular interceptor.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from asgi_surface.codecs.base import Watch
from asgi_surface.errors import Code, GatewayError
from asgi_surface.framing import Frame, Framing, closing, splitter, write
from asgi_surface.lifecycle import Kind
from asgi_surface.members import Members
from asgi_surface.plans import RequestPlan
from asgi_surface.surfaces import Surface

# What the plan was chosen by; a body that says it otherwise would not be the one that was planned.
_PLANNED_BY = ("model", "stream")
_ENDS = (Kind.END, Kind.FAULT)


class Rewriter(Protocol):
    """One request's share of an interceptor. A class that inherits from this changes nothing until it overrides something."""

    def frame(self, frame: Frame) -> Iterable[Frame]:
        """What is sent in place of one frame with data of a streamed answer: any number of frames. Pings and comments are not asked about.

        A frame given back itself keeps its exact bytes. Of any other `event` and `data` are written, `raw` is not read. The frame that ends the
        answer comes here too, and has to leave once. What the surface's watch cannot read is a failure of the rewriter.
        """
        return (frame,)

    def document(self, status: int, body: bytes) -> bytes:
        """What is sent in place of a whole JSON body: an unstreamed answer, or an error (`status` says which)."""
        del status
        return body


class Interceptor(Protocol):
    """One hook, shared by all requests. `name` stands in the plans it takes part in.

    A `GatewayError` that `applies`, `request` or `open` raises is the client's answer; anything else that a hook raises is an internal error.
    """

    name: str

    def applies(self, surface: Surface, route_id: str, members: Members) -> bool:
        """Whether it takes part in a request to this route. Asked once for each route, before anything else is decided."""
        ...

    def request(self, members: Members) -> Members:
        """The members that go on, in the client's surface, before needs, policy and conversion. `model` and `stream` have to stay as they are.

        The mapping is the interceptor's own to change; a member that is left alone keeps its exact bytes.
        """
        return members

    def dropped(self, members: Members) -> Iterable[str]:
        """Pointers to what `request` leaves out of the client's members for good: the plan and `x-surface-dropped` name them. Asked before it."""
        del members
        return ()

    def open(self, plan: RequestPlan) -> Rewriter:
        """The rewriter for one planned request, before any upstream is called. Not asked in dry runs."""
        ...


class Discerning(Interceptor, ABC):
    """An interceptor to which it matters whether the upstream speaks the client's surface. `applies` is its answer where that is so, or where
    nothing differs.
    """

    @abstractmethod
    def differs(self, surface: Surface, route_id: str, members: Members) -> bool:
        """Whether its answer is another where a converter serves. Then every interceptor is asked once more, if it comes to that."""

    @abstractmethod
    def converts(self, surface: Surface, route_id: str, members: Members) -> bool:
        """Whether it takes part where a converter serves."""


class Broken(GatewayError):
    """A rewriter failed. `rest` is what a stream that has begun still says: the frames before, and its error terminal."""

    def __init__(self, rest: bytes = b"") -> None:
        super().__init__(Code.INTERNAL, "the gateway failed")
        self.rest = rest


class Named(Protocol):
    """What stands in plans by its name."""

    name: str


N = TypeVar("N", bound=Named)


def by_name(interceptors: Iterable[N]) -> dict[str, N]:
    """The interceptors in their order. Raises `ValueError` when two have one name: a plan could not tell them apart."""
    named: dict[str, N] = {}
    for one in interceptors:
        if named.setdefault(one.name, one) is not one:
            raise ValueError(f"two interceptors are named {one.name}")
    return named


def requested(interceptors: Sequence[Interceptor], members: Members) -> Members:
    """The client's members as the interceptors leave them; the same mapping when none of them changed anything.

    Raises `RuntimeError` for one that changes what the plan was chosen by.
    """
    changed = dict(members)
    for one in interceptors:
        changed = one.request(changed)
        for name in _PLANNED_BY:
            if changed.get(name) != members.get(name):
                raise RuntimeError(f"the interceptor {one.name} changed `{name}`")
    same = len(changed) == len(members) and all(changed.get(name) == raw for name, raw in members.items())
    return members if same else changed


class Rewriting(Protocol):
    """One answer on its way through the rewriters."""

    def feed(self, body: bytes, *, last: bool) -> bytes:
        """What may be sent now. Raises `Broken`."""
        ...


class Document:
    """A whole JSON answer."""

    def __init__(self, rewriters: Sequence[Rewriter], status: int) -> None:
        self._rewriters = rewriters
        self._status = status
        self._body = b""

    def feed(self, body: bytes, *, last: bool) -> bytes:
        """The document once it is whole."""
        self._body += body
        return self._rewritten(self._body) if last else b""

    def _rewritten(self, body: bytes) -> bytes:
        try:
            for rewriter in self._rewriters:
                body = rewriter.document(self._status, body)
        except Exception as error:
            raise Broken from error
        return body


class Stream:
    """A streamed answer, whose frames may come in any pieces.

    `watch` makes the surface's watch: one tells pings from events, one follows what the client is told, so that an error terminal continues it.
    From a finish on frames are held until the end has passed: a rewriter that fails before that has no finish told before its error. Where words
    follow a finish it was none (old Gemini models say one in each chunk), and it waits no longer.
    """

    def __init__(self, rewriters: Sequence[Rewriter], framing: Framing, watch: Callable[[], Watch], request_id: str) -> None:
        self._rewriters = rewriters
        self._framing = framing
        self._splitter = splitter(framing, sys.maxsize)  # the frames have been bounded where they came from
        self._heard = watch()
        self._told = watch()
        self._request_id = request_id
        self._written = 0
        self._sent = 0
        self._held: list[bytes] = []

    def feed(self, body: bytes, *, last: bool) -> bytes:
        """The client's bytes for a piece of the answer."""
        out: list[bytes] = []
        try:
            for frame in self._frames(body, last=last):
                self._pass(frame, out)
        except Exception as error:
            broken = Broken()
            broken.rest = b"".join(out) + self._terminal(broken)
            raise broken from error
        if last:
            self._release(out)
        return b"".join(out)

    def _frames(self, body: bytes, *, last: bool) -> list[Frame]:
        frames = self._splitter.feed(body)
        rest = self._splitter.eof() if last else None
        return frames if rest is None else [*frames, rest]

    def _pass(self, frame: Frame, out: list[bytes]) -> None:
        if not frame.data or not self._heard.see(frame).alive:
            (self._held or out).append(self._unasked(frame))
            return
        frames = [frame]
        for rewriter in self._rewriters:
            frames = [after for before in frames for after in rewriter.frame(before)]
        for one in frames:
            self._tell(one, out, kept=one is frame)

    def _tell(self, frame: Frame, out: list[bytes], *, kept: bool) -> None:
        sight = self._told.see(frame)
        kinds = {signal.kind for signal in sight.signals}
        if sight.chars:
            self._release(out)
        waits = self._held or Kind.FINISH in kinds
        (self._held if waits else out).append(self._said(frame, kept=kept))
        if not waits or not kinds.isdisjoint(_ENDS):
            self._release(out)

    def _release(self, out: list[bytes]) -> None:
        out += self._held
        self._held = []
        self._sent = self._written

    def _said(self, frame: Frame, *, kept: bool) -> bytes:
        """A frame's own bytes, unless it is new or has come to stand in another place of an array."""
        first = not self._written
        self._written += 1
        if kept and (self._framing is Framing.SSE or _opens(frame.raw) is first):
            return frame.raw
        return write(self._framing, frame.event, frame.data, first=first)

    def _unasked(self, frame: Frame) -> bytes:
        """A comment, a ping, or the bracket that closes an array: its first element, which opened it, may have been left out."""
        unopened = self._framing is Framing.JSON_ARRAY and not self._written and not _opens(frame.raw)
        return b"[" + frame.raw if unopened else frame.raw

    def _terminal(self, error: GatewayError) -> bytes:
        event, data = self._told.failure(error, self._request_id)
        return write(self._framing, event, data, first=not self._sent) + closing(self._framing, opened=True)


def _opens(raw: bytes) -> bool:
    return raw.lstrip()[:1] == b"["
