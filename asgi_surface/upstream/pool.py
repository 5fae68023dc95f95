"""The connections to one origin, of one event loop: at most so many in use, the idle ones reused last in, first out.

A connection comes back only when it says itself that it is reusable; everything else is closed. Knows nothing of HTTP messages.
"""

from __future__ import annotations

import asyncio
import functools
import select
import ssl
import sys
from collections import deque
from typing import Final

from msgspec import Struct

from asgi_surface.errors import Code
from asgi_surface.upstream.asgi import failure
from asgi_surface.upstream.connection import Connection


@functools.cache
def default_ssl_context() -> ssl.SSLContext:
    """Verifies against the system's authorities; TLS 1.2 at least. Made once, for loading the authorities takes tens of milliseconds."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


if sys.platform == "win32":  # pragma: no cover -- has no poll; its select bounds no descriptor

    def _readable(descriptor: int) -> bool:
        return bool(select.select([descriptor], [], [], 0)[0])

else:

    def _readable(descriptor: int) -> bool:
        """Whether bytes or an end wait in the kernel that the loop has not read yet."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))


class Origin(Struct, frozen=True):
    """Where the connections lead, and within which bounds. `tls` is None for plain text; seconds and connections."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    keepalive_seconds: float
    max_connections: int


class Pool:
    """Lends connections. Every `acquire` that returned is answered by one `release`, which never waits."""

    def __init__(self, origin: Origin) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self._origin: Final = origin
        self._slots = asyncio.Semaphore(origin.max_connections)
        self._idle: deque[Connection] = deque()  # the one that has waited longest comes first
        self._live: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self, seconds: float) -> Connection:
        """A connection ready for a request, made within `seconds`. Raises `UpstreamError`: overloaded (none came free), upstream_unreachable."""
        await self._slot(seconds)
        try:
            return self._reuse() or await self._connect(seconds)
        except BaseException:
            self._slots.release()
            raise

    def release(self, connection: Connection) -> None:
        """Takes a connection back, or closes it."""
        self._slots.release()
        if self._closed or not connection.reusable:
            connection.abort()
            return
        connection.idle_since = self.loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(self._origin.keepalive_seconds, self._sweep)

    async def aclose(self) -> None:
        """Closes every connection, those in use as well, and waits until the loop has let go of them."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._live:
            connection.abort()
        if self._live:
            await asyncio.wait([connection.closed for connection in self._live])

    async def _slot(self, seconds: float) -> None:
        if not self._slots.locked():  # no timer on the way that nearly every request takes
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise failure(Code.OVERLOADED) from None

    def _reuse(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.ready and not _readable(connection.descriptor):
                return connection
            connection.abort()
        return None

    async def _connect(self, seconds: float) -> Connection:
        """One deadline over name, TCP and TLS together."""
        to = self._origin
        try:
            async with asyncio.timeout(seconds):
                _, connection = await self.loop.create_connection(
                    Connection, to.host, to.port, ssl=to.tls, server_hostname=to.host if to.tls else None
                )
        except OSError:  # refused, unknown names, TLS and the deadline alike
            raise failure(Code.UPSTREAM_UNREACHABLE) from None
        self._live.add(connection)
        connection.closed.add_done_callback(lambda _: self._live.discard(connection))
        return connection

    def _sweep(self) -> None:
        """Closes what has waited too long, and comes back when the next one will have."""
        self._sweeper = None
        oldest = self.loop.time() - self._origin.keepalive_seconds
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.popleft().abort()
        if self._idle:
            self._sweeper = self.loop.call_later(self._idle[0].idle_since - oldest, self._sweep)
