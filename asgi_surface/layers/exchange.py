"""What the layers share about one request: the `Exchange` in `scope["asgi_surface"]`, the client's inbox, and the record of how it ended.

Facts travel here, bytes travel as ASGI. Each field is written by one layer and read by the later ones.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs.base import Codec, Face, Signal
from asgi_surface.codecs.zed.envelope import Carried
from asgi_surface.codings import Corrupt, Decoder, TooLarge, decoder
from asgi_surface.errors import Code, GatewayError, RequestError
from asgi_surface.interception import Rewriter
from asgi_surface.ir import Stop, Usage, weightier
from asgi_surface.members import Members
from asgi_surface.plans import Decision, Draft, RequestPlan
from asgi_surface.residents import Session
from asgi_surface.stitching import Stitch
from asgi_surface.surfaces import Endpoint

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]
Task = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Task], None]

KEY: Final = "asgi_surface"
_LOG: Final = logging.getLogger("asgi_surface")


class ClientGone(Exception):
    """The client left; nobody is there to be told anything."""


class Ending(enum.StrEnum):
    """How a request ended, as its record says."""

    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    DISCONNECTED = "disconnected"


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one record of how a request ended. Holds no prompt, answer, header value or key.

    `seconds` is the time from the first byte of the head to the end; `bytes` what the client was sent; `frames` whole frames relayed; `rounds` how
    many times the model was asked; `dropped` the places of the request and the constructs of the answer that were left out.
    """

    request_id: str
    surface: str
    operation: str
    ending: Ending
    status: int
    seconds: float
    bytes: int
    model: str | None = None
    route: str | None = None
    upstream: str | None = None
    mode: str | None = None
    stream: bool = False
    code: Code | None = None
    pointer: str | None = None
    stop: str | None = None
    usage: Usage | None = None
    frames: int = 0
    rounds: int = 1
    dropped: tuple[str, ...] = ()
    key: str | None = None


def log(outcome: Outcome) -> None:
    """Writes the record as one JSON line."""
    _LOG.info("%s", msgspec.json.encode(outcome).decode())


class Exchange:
    """One request's facts, filled from left to right."""

    __slots__ = (
        "_codec",
        "answer_headers",
        "beats",
        "carried",
        "draft",
        "endpoint",
        "error",
        "face",
        "frames",
        "headers",
        "inbox",
        "key",
        "leave",
        "next",
        "pin",
        "plan",
        "query",
        "request_id",
        "rewriters",
        "session",
        "spawn",
        "stitch",
        "stop",
        "unsaid",
        "usage",
    )

    def __init__(self, endpoint: Endpoint, face: Face, request_id: str, headers: Headers, query: str, inbox: Inbox) -> None:
        self.endpoint = endpoint
        self.face = face
        self._codec = face if isinstance(face, Codec) else None
        # What the envelope said that the request came in: its answer leaves as the carrier's lines.
        self.carried: Carried | None = None
        self.request_id = request_id
        # A snapshot: some servers add a request's trailers to the scope's list once the body has been read.
        self.headers = headers
        self.query = query
        self.inbox = inbox
        self.spawn: Spawn = _unwatched
        self.leave: Callable[[], None] = _unwatched
        self.key: str | None = None
        self.plan: RequestPlan | None = None
        self.draft: Draft | None = None
        self.rewriters: tuple[Rewriter, ...] = ()
        # With a resident the model is asked in several rounds: how the next one is planned, what it asks, and what is told of all of them.
        self.session: Session | None = None
        self.pin: Callable[[Members], Decision] | None = None
        self.next: Members | None = None
        self.stitch: Stitch | None = None
        self.answer_headers: Headers = ()
        self.unsaid: tuple[str, ...] = ()
        self.beats = 0
        self.frames = 0
        self.stop: Stop | None = None
        self.usage: Usage | None = None
        self.error: GatewayError | None = None

    @property
    def codec(self) -> Codec:
        """The codec of the surface in which the answer is said. Raises `RuntimeError` for a carrier's request that has not been taken out yet."""
        if self._codec is None:
            raise RuntimeError("the Planning layer must stand before this one")
        return self._codec

    @property
    def keepalive(self) -> bytes:
        """What a client that waits for its stream may be sent: a carrier's nothing, it reads only lines."""
        return b"" if self.carried else self.codec.keepalive

    def carry(self, codec: Codec, carried: Carried) -> None:
        """Keeps what came in an envelope, and the codec of the request within."""
        self._codec, self.carried = codec, carried

    def note(self, signals: Sequence[Signal]) -> None:
        """Keeps what a whole answer says of its end and use."""
        for signal in signals:
            self.stop = self.stop if signal.stop is None else weightier(self.stop, signal.stop)
            self.usage = self.usage if signal.usage is None else (self.usage or Usage()).merged(signal.usage)

    async def watch(self) -> None:
        """Waits, once the body has been read, for the client to leave, and ends the request's tasks then."""
        await self.inbox.gone()
        self.leave()

    def planned(self) -> RequestPlan:
        """The plan. Raises `RuntimeError` when a stack was put together without the planning layer."""
        if self.plan is None:
            raise RuntimeError("the Planning layer must stand before this one")
        return self.plan

    def drafted(self) -> Draft:
        """The draft. Raises `RuntimeError` when a stack was put together without the planning layer."""
        if self.draft is None:
            raise RuntimeError("the Planning layer must stand before this one")
        return self.draft

    def opened(self) -> Session:
        """The resident's session. Raises `RuntimeError` where none takes part."""
        if self.session is None:
            raise RuntimeError("no resident takes part in this request")
        return self.session

    def header(self, name: bytes) -> bytes | None:
        """The first value of a request header."""
        return next((value for key, value in self.headers if key == name), None)


def _unwatched(_: Task | None = None) -> None:
    raise RuntimeError("the SurfaceDetection layer must stand before this one")


def exchange_of(scope: Scope) -> Exchange:
    """The exchange of a request. Raises `RuntimeError` when SurfaceDetection does not stand before the caller."""
    exchange: Exchange | None = scope.get(KEY)
    if exchange is None:
        raise RuntimeError("the SurfaceDetection layer must stand before this one")
    return exchange


class Inbox:
    """The client's side of `receive`: the body once, bounded, then only the news that the client left."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def body(self, limit: int, coding: bytes, length: bytes | None) -> bytes:
        """The whole decoded body, at most `limit` bytes. Raises `RequestError` and `ClientGone`."""
        if length is not None and length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        try:
            unpack = decoder(coding, limit)
        except KeyError:
            raise RequestError(Code.UNSUPPORTED_MEDIA_TYPE, "the content-encoding is not one of gzip, deflate, zstd") from None
        pieces, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(_unpacked(unpack, piece, limit, last=not more))
        return b"".join(pieces)

    async def gone(self) -> None:
        """Returns when the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _unpacked(unpack: Decoder | None, piece: bytes, limit: int, *, last: bool) -> bytes:
    if unpack is None:
        return piece
    try:
        out = unpack.feed(piece)
        if last:
            unpack.eof()
    except TooLarge:
        raise _too_large(limit) from None
    except Corrupt:
        raise RequestError(Code.MALFORMED_BODY, "the body is not what its content-encoding says") from None
    return out


def _too_large(limit: int) -> RequestError:
    # The rest of the body stays unread, so the connection cannot be used again.
    return RequestError(Code.BODY_TOO_LARGE, f"the body is larger than {limit} bytes", headers=((b"connection", b"close"),))


class Alarm:
    """A timer that is set again lazily: `due()` is asked only when it fires, so that progress costs nothing but a stored number.

    `due()` gives a loop time; once it has passed, `ring()` is called, once. `ring` runs in no task, so it can start none.
    """

    def __init__(self, due: Callable[[], float], ring: Callable[[], None]) -> None:
        self._due = due
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_at(due(), self._fire)

    def _fire(self) -> None:
        due = self._due()
        if due <= self._loop.time():
            self._ring()
        else:
            self._timer = self._loop.call_at(due, self._fire)

    def sooner(self) -> None:
        """To be told when `due()` may have come nearer."""
        due = self._due()
        if due < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(due, self._fire)

    def stop(self) -> None:
        """Ends it."""
        self._timer.cancel()
