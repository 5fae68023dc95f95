"""An upstream over our own HTTP/1.1 engine, as an ASGI app for one origin.

No retries, redirects, cookies, proxies or decoding: what the origin answered is what the caller gets, byte for byte, and a call that breaks says
where it broke. Deadlines but the connect one are the caller's, who cancels; nothing here waits once a call is cancelled. Knows nothing of surfaces.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from asgi_surface.upstream.asgi import Headers, Receive, Scope, Send, body_message, origin, read_body, start_message, target
from asgi_surface.upstream.connection import Connection
from asgi_surface.upstream.pool import Origin, Pool, default_ssl_context

_PORTS: Final = {"http": 80, "https": 443}
# Other methods mean nothing by a body, and say no length without one (RFC 9110 §8.6).
_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})


class HttpUpstream:
    """Sends each call to `base_url` (`http(s)://host[:port][/prefix]`) and streams the answer.

    The scope's headers go out as they are, with `host` and `content-length`; HEAD and CONNECT have no place here. Raises `UpstreamError`:
    upstream_unreachable, upstream_protocol_error (nothing was sent on), upstream_truncated (the bytes that came were), overloaded (no connection
    of `max_connections` came free within `connect_seconds`). `connect_seconds` is a total over name, TCP and TLS.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_seconds: float = 5.0,
        ssl_context: ssl.SSLContext | None = None,
        reuse_after_stream: bool = True,
        keepalive_seconds: float = 15.0,
        max_connections: int = 256,
    ) -> None:
        self._url = origin(base_url)
        self._ssl_context = ssl_context
        self._reuse_after_stream = reuse_after_stream
        self._connect_seconds = connect_seconds
        self._keepalive_seconds = keepalive_seconds
        self._max_connections = max_connections
        self._pool: Pool | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One exchange. Raises `UpstreamError`; a caller who left before the body was whole is not served."""
        body = await read_body(receive)
        if body is None:
            return
        request = self._encode(scope, body)
        del body  # a body can be large and an answer long: only the transport keeps what is not yet sent
        pool = self._current_pool()
        connection = await pool.acquire(self._patience(scope))
        try:
            connection.begin(request)
            del request
            await self._relay(connection, send)
        finally:
            pool.release(connection)
        await send(body_message(b""))

    def _patience(self, scope: Scope) -> float:
        """Seconds for a connection: the provider's, or what the route of this call tightened them to."""
        exchange = scope.get("asgi_surface")
        return self._connect_seconds if exchange is None else min(self._connect_seconds, exchange.planned().limits.connect_seconds)

    async def aclose(self) -> None:
        """Closes all connections; calls under way fail. A later call begins anew."""
        pool, self._pool = self._pool, None
        if pool is not None and pool.loop is asyncio.get_running_loop():
            await pool.aclose()

    async def _relay(self, connection: Connection, send: Send) -> None:
        status, headers = await connection.head()
        await send(start_message(status, headers))
        while batch := await connection.read():
            await send(body_message(batch))
        if not self._reuse_after_stream and _is_stream(headers):
            connection.abort()

    def _encode(self, scope: Scope, body: bytes) -> bytes:
        method: str = scope["method"]
        lines = [
            b"%b %b HTTP/1.1" % (method.encode(), target(self._url.path, scope)),
            b"host: " + self._url.netloc.encode(),
            *(b"%b: %b" % field for field in scope["headers"]),
        ]
        if body or method in _BODY_METHODS:
            lines.append(b"content-length: %d" % len(body))
        head = b"\r\n".join(lines)
        if not head.count(b"\r") == head.count(b"\n") == len(lines) - 1 or lines[0].count(b" ") != 2:
            raise ValueError("a line break in the head of an upstream request, or a space in its target")
        return b"%b\r\n\r\n%b" % (head, body)

    def _current_pool(self) -> Pool:
        """The running loop's pool. A loop that ended has taken its connections with it."""
        if self._pool is None or self._pool.loop is not asyncio.get_running_loop():
            self._pool = Pool(self._origin())
        return self._pool

    def _origin(self) -> Origin:
        url = self._url
        return Origin(
            host=url.hostname or "",
            port=url.port or _PORTS[url.scheme],
            tls=(self._ssl_context or default_ssl_context()) if url.scheme == "https" else None,
            keepalive_seconds=self._keepalive_seconds,
            max_connections=self._max_connections,
        )


def _is_stream(headers: Headers) -> bool:
    return any(name == b"content-type" and value.lower().startswith(b"text/event-stream") for name, value in headers)
