"""An upstream that speaks a carrier, as one that speaks the surface it carries: JSON lines become that surface's own stream.

Stands before any upstream app and passes every other exchange through. Reads the plan; knows nothing of routes, keys or the client.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import anyio

from asgi_surface.codecs.zed.answers import FINAL, WRAPPED, Ended, Event, Failed, Lines, LineTooLong, counted, error, line_reader
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing, closing, write
from asgi_surface.plans import RequestPlan
from asgi_surface.refusals import in_answer
from asgi_surface.surfaces import MESSAGES, Operation
from asgi_surface.upstream.asgi import ASGIApp, Headers, Message, Receive, Scope, Send, failure, start_message
from asgi_surface.upstream.unpacking import Unpacking

_ERROR_BYTES: Final = 65_536  # of an error body; the rest is not read
_GRACE: Final = 2.0  # seconds for an error body
_TYPES: Final = {Framing.SSE: b"text/event-stream", Framing.JSON_ARRAY: b"application/json"}
# What described the body as it came.
_OF_BODY: Final = frozenset({b"content-type", b"content-length", b"content-encoding"})


class Carried:
    """ASGI app around the upstream app. `secrets` must not be repeated in what a client is told of a failure."""

    def __init__(self, app: ASGIApp, *, secrets: Sequence[str] = ()) -> None:
        self.app = app
        self.secrets = secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call. Raises `UpstreamError` when the upstream's stream is no whole one, or says that it failed."""
        plan: RequestPlan = scope["asgi_surface"].planned()
        if plan.carrier is None:
            await self.app(scope, receive, send)
        else:
            await _Answer(plan, send, self.secrets).take(self.app, scope, receive)


class _Reader(Protocol):
    """What is made of one kind of answer. Both say whether there is nothing more to read."""

    async def feed(self, data: bytes) -> bool:
        """Takes a piece of the decoded body."""
        ...

    async def eof(self) -> bool:
        """The body has ended, whole."""
        ...


class _Answer:
    """One answer of a carrier: told apart by its head, and decoded."""

    def __init__(self, plan: RequestPlan, send: Send, secrets: Sequence[str]) -> None:
        self._plan = plan
        self._send = send
        self._secrets = secrets
        self._patience = anyio.CancelScope()
        self._unpack = Unpacking()
        self._reader: _Reader | None = None
        self._over = False

    async def take(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        """Runs the upstream. An error whose body breaks off, or does not end, is still that error."""
        try:
            with self._patience:
                await app(scope, receive, self._take)
        except UpstreamError:
            if self._over or not isinstance(self._reader, _Refusal):
                raise
        if not self._over and isinstance(self._reader, _Refusal):
            await self._reader.eof()

    async def _take(self, message: Message) -> None:
        if self._over:
            return
        if message["type"] == "http.response.start":
            self._reader = await self._start(message["status"], [(name.lower(), value) for name, value in message.get("headers", ())])
            return
        reader, last = self._begun(), not message.get("more_body", False)
        for piece in self._unpack.pieces(message.get("body", b""), last=last):
            if await reader.feed(piece):
                self._over = True
                return
        if last:
            self._over = await reader.eof()

    def _begun(self) -> _Reader:
        if self._reader is None:
            raise failure(Code.UPSTREAM_PROTOCOL_ERROR)
        return self._reader

    async def _start(self, status: int, headers: Headers) -> _Reader:
        said = dict(headers)
        self._unpack = Unpacking(said.get(b"content-encoding", b""))
        kept = [pair for pair in headers if pair[0] not in _OF_BODY]
        if status != 200:
            self._patience.deadline = anyio.current_time() + _GRACE
            return _Refusal(status, headers, self._send)
        if self._plan.operation is Operation.COUNT_TOKENS:
            return _Count(self._plan, kept, self._send)
        stream = _Stream(self._plan, said, self._send, self._secrets)
        await self._send(start_message(200, [(b"content-type", _TYPES[self._plan.upstream_framing]), *kept]))
        return stream


class _Refusal:
    """An error answer, with the status that it really stands for."""

    def __init__(self, status: int, headers: Headers, send: Send) -> None:
        self._status = status
        self._headers = headers
        self._send = send
        self._body = b""

    async def feed(self, data: bytes) -> bool:
        self._body += data[: _ERROR_BYTES - len(self._body)]
        return len(self._body) == _ERROR_BYTES and await self.eof()

    async def eof(self) -> bool:
        found = error(self._status, self._body)
        status, body, seconds = found or (self._status, self._body, None)
        retry = _retry(seconds)
        kept = [pair for pair in self._headers if pair[0] not in _OF_BODY and not (retry and pair[0] == b"retry-after")]
        await _whole(self._send, status, [(b"content-type", b"application/json"), *kept, *retry], body)
        return True


class _Count:
    """A count of tokens."""

    def __init__(self, plan: RequestPlan, headers: Headers, send: Send) -> None:
        self._plan = plan
        self._headers = headers
        self._send = send
        self._body = b""

    async def feed(self, data: bytes) -> bool:
        self._body += data
        if len(self._body) > self._plan.limits.response_bytes:
            raise UpstreamError(Code.OUTPUT_TOO_LARGE, "the upstream's answer is too large")
        return False

    async def eof(self) -> bool:
        try:
            body = counted(self._plan.upstream_surface, self._body)
        except ValueError:
            raise _bad("the upstream's answer is no count of tokens") from None
        await _whole(self._send, 200, [(b"content-type", b"application/json"), *self._headers], body)
        return True


class _Stream:
    """JSON lines on their way to frames of the carried surface.

    An event with which that surface ends is held back until the carrier says that the answer is whole: a failure may come instead.
    """

    def __init__(self, plan: RequestPlan, said: Mapping[bytes, bytes], send: Send, secrets: Sequence[str]) -> None:
        self._plan = plan
        self._send = send
        self._secrets = secrets
        self._wrapped = WRAPPED in said
        self._read = line_reader(plan.upstream_surface, wrapped=self._wrapped)
        self._lines = Lines(min(bound for bound in (plan.limits.event_bytes, plan.limits.line_bytes) if bound is not None))
        self._held: Event | None = None
        self._out: list[bytes] = []
        self._first = True

    async def feed(self, data: bytes) -> bool:
        try:
            return await self._tell(self._lines.feed(data))
        except LineTooLong as too_long:
            if await self._tell(too_long.lines):
                return True
            raise UpstreamError(Code.EVENT_TOO_LARGE, "a line of the upstream's stream is too large") from None

    async def eof(self) -> bool:
        """The end of the body is the answer's end only where nobody could say another: what it meant is for the surface to judge."""
        rest = self._lines.rest
        try:
            if rest and await self._tell([rest]):
                return True
        except UpstreamError as broken:
            if broken.code is Code.UPSTREAM_BAD_RESPONSE:  # half a line
                raise failure(Code.UPSTREAM_TRUNCATED) from None
            raise
        if self._wrapped:
            raise failure(Code.UPSTREAM_TRUNCATED)
        return await self._close()

    async def _tell(self, lines: Sequence[bytes]) -> bool:
        """Sends on what the lines say. What came before a failure is sent before it is raised."""
        ended = False
        try:
            for line in lines:
                if ended := self._line(line):
                    break
        finally:
            await self._flush(more=True)
        return ended and await self._close()

    def _line(self, line: bytes) -> bool:
        """Takes one line; says whether the answer is whole with it."""
        try:
            said = self._read(line)
        except ValueError:
            raise _bad("the upstream's stream is not made of JSON lines") from None
        if isinstance(said, Failed):
            raise in_answer(said.facts, _retry(said.retry_after), secrets=self._secrets, keep_529=self._plan.downstream_surface == MESSAGES)
        if isinstance(said, Event):
            self._let_go()
            self._held = said
            if not (said.last and self._wrapped):
                self._let_go()
        return isinstance(said, Ended)

    def _let_go(self) -> None:
        if self._held is not None:
            self._frame(self._held.name, self._held.data)
            self._held = None

    def _frame(self, name: bytes, data: bytes) -> None:
        self._out.append(write(self._plan.upstream_framing, name, data, first=self._first))
        self._first = False

    async def _close(self) -> bool:
        self._let_go()
        if final := FINAL.get(self._plan.upstream_surface):
            self._frame(b"", final)
        self._out.append(closing(self._plan.upstream_framing, opened=not self._first))
        await self._flush(more=False)
        return True

    async def _flush(self, *, more: bool) -> None:
        body, self._out = b"".join(self._out), []
        if body or not more:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})


async def _whole(send: Send, status: int, headers: Headers, body: bytes) -> None:
    await send(start_message(status, headers))
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _retry(seconds: float | None) -> Headers:
    """Seconds to wait as the header that says so; it knows whole ones only."""
    return [] if seconds is None else [(b"retry-after", b"%d" % math.ceil(seconds))]


def _bad(text: str) -> UpstreamError:
    return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, text)
