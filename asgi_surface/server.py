"""uvicorn as `asgi-surface serve` runs it: bounds on everything a connection can send or hold before the application sees a request.

Knows HTTP/1.1 framing and uvicorn's protocol class, and nothing of routes, surfaces or models. The application does not rely on it: under any other
ASGI server its own checks hold. Measured of uvicorn 0.54 with httptools, hence the rules here: no bound on a head, no deadline for a head or a body,
none for a reader that stops reading, trailers appended to the request's headers, the body of an `Upgrade` request lost, a missing or second Host let
through, an error written into the middle of an earlier answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from asgi_surface.codecs import openai_wire
from asgi_surface.errors import Code, RequestError
from asgi_surface.layers.exchange import ASGIApp

_LOG: Final = logging.getLogger("asgi_surface")


class Fault(enum.Enum):
    """Why the server refuses a request by itself: status, gateway code, message. No surface is known yet, so the envelope is OpenAI's."""

    MALFORMED = (400, Code.UNSUPPORTED_REQUEST, "this is not a well-formed HTTP/1.1 request")
    FRAMING = (400, Code.UNSUPPORTED_REQUEST, "transfer-encoding may only be a single `chunked`, on HTTP/1.1")
    HOST = (400, Code.UNSUPPORTED_REQUEST, "exactly one well-formed Host header is required")
    UPGRADE = (400, Code.UNSUPPORTED_REQUEST, "this server speaks HTTP/1.1 only: no CONNECT, and no Upgrade header")
    TARGET = (404, Code.NOT_FOUND, "the request target must be a path")
    SLOW_BODY = (408, Code.LIMIT_EXCEEDED, "the request body did not arrive in time")
    LONG_TARGET = (414, Code.LIMIT_EXCEEDED, "the request line is too long")
    EXPECTATION = (417, Code.UNSUPPORTED_REQUEST, "the only expectation met is `100-continue`")
    LARGE_HEAD = (431, Code.LIMIT_EXCEEDED, "the request headers, trailers or chunk extensions are too large")

    def response(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """The whole response with the server's default `headers`; it always ends the connection."""
        status, code, message = self.value
        body = openai_wire.error(RequestError(code, message, status=status), "")
        own = (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-surface-error", code.encode()),
            (b"connection", b"close"),
        )
        return b"".join((STATUS_LINE[status], *(b"%s: %s\r\n" % header for header in (*headers, *own)), b"\r\n", body))


class _Refused(Exception):
    """Raised inside a parser callback: httptools stops, and names it as the context of its own error."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.name)
        self.fault = fault


class _Phase(enum.Enum):
    """What a connection waits for."""

    IDLE = enum.auto()  # the next request, as long as uvicorn's keep-alive timer allows
    HEAD = enum.auto()
    BODY = enum.auto()
    REFUSED = enum.auto()  # the client's close: our error is written, and what still comes is thrown away


_HOST: Final = re.compile(rb"[^\x00-\x20\x7f-\xff/\\?#@,]*")


def _is_one_host(version: str, hosts: list[bytes]) -> bool:
    return (len(hosts) == 1 and _HOST.fullmatch(hosts[0]) is not None) or (version == "1.0" and not hosts)


def _is_plain_framing(version: str, codings: list[bytes]) -> bool:
    # HTTP/1.0 has no chunks: a proxy of that version would end this body elsewhere than we do.
    return not codings or (version == "1.1" and [coding.lower() for coding in codings] == [b"chunked"])


# What a header may say: judged from the HTTP version and every value that the request has for it (none included).
_HEADERS: Final[dict[bytes, tuple[Callable[[str, list[bytes]], bool], Fault]]] = {
    b"host": (_is_one_host, Fault.HOST),
    b"transfer-encoding": (_is_plain_framing, Fault.FRAMING),
    # httptools skips the body of a request that asks for an upgrade, so ignoring the header (RFC 9110 7.8 allows it) would lose the body.
    b"upgrade": (lambda _, protocols: not protocols, Fault.UPGRADE),
    b"expect": (lambda _, expectations: all(one.lower() == b"100-continue" for one in expectations), Fault.EXPECTATION),
}


def _fault(version: str, target: bytes, headers: list[tuple[bytes, bytes]]) -> Fault | None:
    """What forbids a head that the parser took, or None. Header names are lower-case."""
    if version not in {"1.0", "1.1"}:
        return Fault.MALFORMED
    said: dict[bytes, list[bytes]] = {name: [] for name in _HEADERS}
    for name, value in headers:
        if name in said:
            said[name].append(value)
    for name, (allowed, fault) in _HEADERS.items():
        if not allowed(version, said[name]):
            return fault
    return None if target.startswith(b"/") else Fault.TARGET


class GuardedHttpTools(HttpToolsProtocol):
    """uvicorn's httptools protocol with bounds, deadlines and strict framing. The bounds are class attributes; sizes are bytes, times seconds."""

    HEAD_BYTES = 32 * 1024
    HEADER_COUNT = 100
    HEADER_BYTES = 16 * 1024
    TARGET_BYTES = 8 * 1024
    HEAD_SECONDS = 10.0
    BODY_SECONDS = 60.0  # all of it
    STALL_SECONDS = 30.0  # without one byte taken by a reader that we wait for
    LINGER_SECONDS = 1.0  # closing at once resets the connection, and the client may never read why
    PIPELINED = 8  # requests in waiting until which we read on, and so see the client leave
    STEP = 4096  # bytes given to the parser between two looks at the bounds

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._phase = _Phase.IDLE
        self._framing = 0  # bytes read since the last that the application could get: an unfinished head, chunk extensions, trailers
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._cycles: list[RequestResponseCycle] = []

    # -- what the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the clock of the first head: a silent connection is closed by it."""
        super().connection_made(transport)
        self._enter(_Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop every clock, and tell every request under way."""
        _cancel(self._deadline)
        _cancel(self._stall)
        self._abandon()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser piece by piece, so that no bound is overrun by more than a piece."""
        if self._phase is _Phase.IDLE:  # even for a lone CRLF, which stops the keep-alive timer and begins no message
            self._enter(_Phase.HEAD)
        self._unset_keepalive_if_required()
        for start in range(0, len(data), self.STEP):
            if self._phase is _Phase.REFUSED:
                return
            self._feed(data[start : start + self.STEP])

    def pause_writing(self) -> None:
        """The reader takes less than we send: start its clock."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The reader caught up."""
        super().resume_writing()
        _cancel(self._stall)

    # -- what the parser calls

    def on_message_begin(self) -> None:
        """Start the clock of a head that came on a kept or pipelined connection."""
        super().on_message_begin()
        self._framing = 0
        self._enter(_Phase.HEAD)

    def on_url(self, url: bytes) -> None:
        """Bound the request target, which may come in parts."""
        super().on_url(url)
        if len(self.url) > self.TARGET_BYTES:
            raise _Refused(Fault.LONG_TARGET)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Bound the headers one by one; a trailer is dropped, since the request has been judged by its headers."""
        if self._phase is not _Phase.HEAD:
            return
        if len(name) + len(value) > self.HEADER_BYTES or len(self.headers) >= self.HEADER_COUNT:
            raise _Refused(Fault.LARGE_HEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Judge the whole head, then let uvicorn start the application."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self.HEAD_BYTES:
            raise _Refused(Fault.LARGE_HEAD)
        # The parser asks for an upgrade on CONNECT too.
        fault = Fault.UPGRADE if self.parser.should_upgrade() else _fault(self.parser.get_http_version(), self.url, self.headers)
        if fault is not None:
            raise _Refused(fault)
        self._framing = 0
        super().on_headers_complete()
        self._enter(_Phase.BODY)
        self._cycles = [*self._unanswered(), self.cycle]
        if len(self._cycles) <= self.PIPELINED:
            self.flow.resume_reading()  # uvicorn stops at the first pipelined request, and would not see the client of an earlier one leave

    def on_body(self, body: bytes) -> None:
        """Bytes for the application: what came before them was well spent."""
        self._framing = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Between requests uvicorn's keep-alive timer holds the connection."""
        super().on_message_complete()
        self._enter(_Phase.IDLE)
        if self.cycle.response_complete:  # answered before its body had come: these bytes stopped the keep-alive timer, and nothing else starts it
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    # -- bounds

    def _feed(self, piece: bytes) -> None:
        self._framing += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause.fault if isinstance(cause, _Refused) else Fault.MALFORMED)
        else:
            if self._framing > self.HEAD_BYTES:
                self._refuse(Fault.LARGE_HEAD)

    def _refuse(self, fault: Fault) -> None:
        """End the connection, with an answer when the client would read it as the answer to the request it is about."""
        told = self._answerable()
        self._abandon()
        self._enter(_Phase.REFUSED)
        if told:
            self.transport.write(fault.response(self.server_state.default_headers))
        if told and self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _answerable(self) -> bool:
        """A head is answered when no response is under way, a body when its own response is next and has not begun."""
        unanswered = self._unanswered()
        if self._phase is _Phase.BODY:
            return unanswered == [self.cycle] and not self.cycle.response_started
        return not unanswered

    def _unanswered(self) -> list[RequestResponseCycle]:
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete]
        return self._cycles

    def _abandon(self) -> None:
        """Tell every request under way that its client is gone; uvicorn tells only the last of a pipeline."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()

    # -- deadlines

    def _enter(self, phase: _Phase) -> None:
        """Move to a phase and start its clock. Staying in a phase does not wind the clock again."""
        if phase is not self._phase:
            self._phase = phase
            self._wind()

    def _wind(self) -> None:
        _cancel(self._deadline)
        seconds = {_Phase.HEAD: self.HEAD_SECONDS, _Phase.BODY: self.BODY_SECONDS, _Phase.REFUSED: self.LINGER_SECONDS}.get(self._phase)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late, self.flow.read_paused)

    def _late(self, paused: bool) -> None:
        waiting = self._unanswered() if self._phase is _Phase.HEAD else paused or self.flow.read_paused
        if waiting and self._phase is not _Phase.REFUSED:
            self._wind()  # an answer is under way, or we ourselves do not read: the client holds nothing up
        elif self._phase is _Phase.BODY:
            self._refuse(Fault.SLOW_BODY)
        else:
            self.transport.close()

    def _watch_reader(self) -> None:
        _cancel(self._stall)
        self._stall = self.loop.call_later(self.STALL_SECONDS, self._stalled, self.transport.get_write_buffer_size())

    def _stalled(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_reader()
        else:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {
        "asgi_surface": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}
"""The gateway's own lines (one per request) and uvicorn's warnings, bare, on standard error."""


def settings(*, host: str = "127.0.0.1", port: int = 8080) -> dict[str, Any]:
    """The arguments of `uvicorn.Config` that `serve` uses; `port` 0 takes a free one."""
    return {
        "host": host,
        "port": port,
        "loop": "auto",  # uvloop where it can be imported
        "http": GuardedHttpTools,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # a client could claim to be loopback
        "backlog": 2048,
        "timeout_keep_alive": 75,  # above the 60 s after which load balancers drop an idle connection, so that they do it first
        "timeout_graceful_shutdown": 30,
        "log_config": LOGGING,
    }


class _Server(uvicorn.Server):
    """Says in one line where it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in self.servers[0].sockets:
            host, port = listener.getsockname()[:2]
            _LOG.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)


def serve(app: ASGIApp, *, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Run `app` until SIGINT or SIGTERM. SystemExit(3) when it cannot start; why is on standard error."""
    with contextlib.suppress(KeyboardInterrupt):
        _Server(uvicorn.Config(app, **settings(host=host, port=port))).run()
