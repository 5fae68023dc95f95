"""One HTTP/1.1 connection to a provider: llhttp cuts the messages, this file judges them and keeps their bytes until they are read.

Everything that can happen to the connection is a row of `_ON_EOF` or `_ON_FAULT`; its one state is `Phase`. Knows nothing of pools, origins, ASGI
or deadlines: whoever owns the exchange cancels its own wait and aborts.
"""

from __future__ import annotations

import asyncio
import enum
import ssl
from typing import Final, cast

from httptools import HttpParserError, HttpResponseParser

from asgi_surface.errors import Code
from asgi_surface.upstream.asgi import BATCH, Headers, failure

HIGH_WATER: Final = 262_144
"""Bytes kept for a slow reader; above them the socket is left alone, and the kernel's window stops the upstream."""

MOST_HEADERS: Final = 200
MOST_INFORMATIONAL: Final = 8


class Phase(enum.Enum):
    """Where the connection stands. `IDLE` is the only one in which it may carry a request."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    BODY_TO_EOF = enum.auto()
    WHOLE = enum.auto()  # the message has ended by framing, and the connection outlives it
    LAST = enum.auto()  # the message has ended by framing, the connection has not
    NO_HEAD = enum.auto()
    CUT = enum.auto()


_P = Phase
_ARRIVING: Final = frozenset({_P.BODY, _P.BODY_TO_EOF})

# A bare loss is no end of a close-delimited body.
_ON_FAULT: Final = {_P.IDLE: _P.LAST, _P.HEAD: _P.NO_HEAD, _P.BODY: _P.CUT, _P.BODY_TO_EOF: _P.CUT, _P.WHOLE: _P.LAST}
_ON_EOF: Final = _ON_FAULT | {_P.BODY_TO_EOF: _P.LAST}

# Bytes of fields: the head's, and then the trailers'.
_MOST_FIELDS: Final = {_P.HEAD: 65_536, _P.BODY: 8_192}
# Bytes that are no body, after what each body byte pays for: "1\r\n" and "\r\n" around a chunk of one byte, with room for zeros.
_MOST_OVERHEAD: Final = _MOST_FIELDS
_OVERHEAD_PER_BYTE: Final = 16

_BODILESS: Final = frozenset({204, 304})


class _RefusedError(Exception):
    """The upstream sent what llhttp accepts and we do not; leaves the parser as `HttpParserError`."""


class Connection(asyncio.Protocol):
    """Carries one exchange at a time: `begin`, `head`, `read` until it returns nothing. Reads only as far ahead as `HIGH_WATER`."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._phase = Phase.IDLE
        self._waiter: asyncio.Future[None] | None = None
        self._buffer = bytearray()

    # -- the exchange

    @property
    def ready(self) -> bool:
        """Whether a request may go out: no answer is due, and the other side has neither spoken nor left."""
        return self._phase is Phase.IDLE and not self._transport.is_closing()

    @property
    def reusable(self) -> bool:
        """Whether it is ready again after an exchange: an upstream may answer before it has read a request, whose rest is then still here.

        Says nothing of a new connection: uvloop's may still hold the last bytes of the TLS handshake.
        """
        return self.ready and not self._transport.get_write_buffer_size()

    @property
    def descriptor(self) -> int:
        """The socket's file descriptor."""
        descriptor: int = self._transport.get_extra_info("socket").fileno()
        return descriptor

    def begin(self, request: bytes) -> None:
        """Sends a whole request. A connection that was lost before is not written to; `head` tells."""
        if not self.ready:
            self._phase = Phase.NO_HEAD
            return
        # A parser of its own for each answer, so that nothing of the last one can reach the next.
        self._parser = HttpResponseParser(self)
        self._phase = Phase.HEAD
        self._headers: Headers = []
        self._status = self._informational = self._fields = self._overhead = 0
        self._transport.write(request)

    async def head(self) -> tuple[int, Headers]:
        """Status and headers (names in lower case) of the final answer. Raises `UpstreamError` (upstream_protocol_error)."""
        while self._phase is Phase.HEAD:
            await self._wait()
        if self._phase is Phase.NO_HEAD:
            raise failure(Code.UPSTREAM_PROTOCOL_ERROR)
        return self._status, self._headers

    async def read(self) -> bytes:
        """Every byte that has arrived, at most `BATCH`; b"" when the message has ended by framing.

        Raises `UpstreamError` (upstream_truncated) after the last byte of a body that has not.
        """
        while not self._buffer and self._phase in _ARRIVING:
            await self._wait()
        if self._buffer:
            return self._take()
        if self._phase is Phase.CUT:
            raise failure(Code.UPSTREAM_TRUNCATED)
        if self._phase is Phase.WHOLE:
            self._phase = Phase.IDLE
        return b""

    def abort(self) -> None:
        """Closes the socket at once, whatever is under way."""
        self._transport.abort()

    def _take(self) -> bytes:
        before = len(self._buffer)
        taken = bytes(memoryview(self._buffer)[:BATCH])
        del self._buffer[:BATCH]
        if before > HIGH_WATER >= len(self._buffer) and not self._transport.is_closing():
            self._transport.resume_reading()
        return taken

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fall(self, table: dict[Phase, Phase]) -> None:
        self._phase = table.get(self._phase, self._phase)
        self._wake()

    def _fault(self) -> None:
        self._fall(_ON_FAULT)
        self._transport.abort()

    # -- what the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of `asyncio.Protocol`. The loop has set TCP_NODELAY."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        """Part of `asyncio.Protocol`."""
        phase, held = self._phase, len(self._buffer)
        if phase is not Phase.HEAD and phase not in _ARRIVING:
            self._fault()
            return
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            self._fault()
            return
        self._bound(phase, len(data), len(self._buffer) - held)
        if held <= HIGH_WATER < len(self._buffer):
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Part of `asyncio.Protocol`; the transport then closes itself."""
        self._fall(_ON_EOF if self._announced() else _ON_FAULT)

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of `asyncio.Protocol`."""
        del exc  # the system's text is nobody's business
        self._fall(_ON_FAULT)
        self.closed.set_result(None)

    def _announced(self) -> bool:
        """Whether it was the upstream that ended: without close_notify, anyone on the way can have ended a TLS connection (RFC 9112 §9.8)."""
        tls: ssl.SSLObject | None = self._transport.get_extra_info("ssl_object")
        try:
            return tls is None or not tls.read(1)
        except ssl.SSLError:
            return False

    def _bound(self, phase: Phase, arrived: int, body: int) -> None:
        """Bounds what no callback has shown yet: a field without an end, a chunk extension, an endless status line."""
        if self._phase is not phase:
            self._overhead = 0
            return
        self._overhead = max(0, self._overhead + arrived - body * (1 + _OVERHEAD_PER_BYTE))
        if self._overhead > _MOST_OVERHEAD.get(phase, 0):
            self._fault()

    # -- what the parser says

    def on_message_begin(self) -> None:
        """Surplus bytes begin a message that nobody asked for: they must not meet the next request (response-queue poisoning)."""
        if self._phase is not Phase.HEAD:
            raise _RefusedError

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head, or a trailer, which is counted and forgotten. llhttp leaves white space at the end of a value."""
        self._fields += len(name) + len(value)
        if self._phase is Phase.HEAD:
            self._headers.append((name.lower(), value.rstrip(b" \t")))
        if self._fields > _MOST_FIELDS[self._phase] or len(self._headers) > MOST_HEADERS:
            raise _RefusedError

    def on_headers_complete(self) -> None:
        """The end of a head, informational or final. llhttp takes HTTP/0.9 and 2.0, three digits as any status, and 101 as an upgrade."""
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if status == 101 or not 100 <= status <= 599 or version not in {"1.0", "1.1"}:
            raise _RefusedError
        if status < 200:
            self._skip()
            return
        self._phase = self._framing(status, version)
        self._status = status
        self._fields = 0

    def on_body(self, body: bytes) -> None:
        """Bytes of the body, without the chunks' framing."""
        self._buffer += body

    def on_message_complete(self) -> None:
        """The end of a message by its own framing. An informational one is followed by another."""
        if self._phase is not Phase.HEAD:
            self._phase = Phase.WHOLE if self._parser.should_keep_alive() else Phase.LAST

    def _skip(self) -> None:
        self._informational += 1
        if self._informational > MOST_INFORMATIONAL:
            raise _RefusedError
        self._headers.clear()

    def _framing(self, status: int, version: str) -> Phase:
        """How the body will end. llhttp has refused a repeated or unreadable content-length and one beside transfer-encoding."""
        codings = [value.lower() for name, value in self._headers if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or version == "1.0"):
            raise _RefusedError
        measured = codings or status in _BODILESS or any(name == b"content-length" for name, _ in self._headers)
        return Phase.BODY if measured else Phase.BODY_TO_EOF
