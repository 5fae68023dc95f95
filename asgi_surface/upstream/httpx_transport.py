"""An upstream over httpx, as an ASGI app: the option for outbound proxies, HTTP/2 or a client that the host app brings.

It costs several times the engine's CPU and, with httpx 0.28, connections that cancelled calls lost; so it is never the default. Knows nothing of
surfaces.
"""

from __future__ import annotations

import importlib.util
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.request import Request

import anyio
import httpx

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.upstream.asgi import Receive, Scope, Send, batches, body_message, failure, origin, read_body, start_message, target

# In this order: the first class that fits names the failure; whatever is left depends on whether a head had come.
_FAILURES: Final = (
    (httpx.PoolTimeout, Code.OVERLOADED),
    ((httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol), Code.UPSTREAM_UNREACHABLE),
)


class _NoNewCookies(DefaultCookiePolicy):
    """A client is shared by all callers: a cookie set for one must not travel with the next."""

    def set_ok(self, cookie: Cookie, request: Request) -> bool:
        del cookie, request
        return False


def _own_client() -> httpx.AsyncClient:
    """No bound on connections: httpx 0.28 loses bounded slots for good when calls are cancelled. HTTP/2 where `h2` is installed."""
    return httpx.AsyncClient(
        http2=importlib.util.find_spec("h2") is not None,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=15.0),
        cookies=CookieJar(),
    )


class HttpxUpstream:
    """Sends each call to `base_url` through httpx and streams the answer, undecoded; raises the `UpstreamError`s that `HttpUpstream` raises.

    `client` stays its owner's to close; its headers and cookies are not sent, and its jar takes no more cookies. Without one, a client is made
    that honours the proxy variables of the environment. `connect_seconds` bounds TCP and TLS each. One event loop only.
    """

    def __init__(self, base_url: str, *, client: httpx.AsyncClient | None = None, connect_seconds: float = 5.0) -> None:
        url = origin(base_url)
        self._origin: Final = f"{url.scheme}://{url.netloc}"
        self._prefix: Final = url.path
        self._owned: Final = client is None
        self._client: Final = client or _own_client()
        self._client.cookies.jar.set_policy(_NoNewCookies())
        self._timeout: Final = httpx.Timeout(None, connect=connect_seconds, pool=connect_seconds).as_dict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One exchange. Raises `UpstreamError`; a caller who left before the body was whole is not served."""
        body = await read_body(receive)
        if body is None:
            return
        response = await self._open(self._request(scope, body))
        try:
            await self._relay(response, send)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        await send(body_message(b""))

    async def aclose(self) -> None:
        """Closes the client, if it is our own."""
        if self._owned:
            await self._client.aclose()

    def _request(self, scope: Scope, body: bytes) -> httpx.Request:
        """Built here and not by the client, which would add its own headers and cookies. The target goes out as it is, not as httpx has it."""
        path = target(self._prefix, scope)
        extensions = {"timeout": self._timeout, "target": path}
        return httpx.Request(scope["method"], self._origin + path.decode(), headers=scope["headers"], content=body, extensions=extensions)

    async def _open(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._client.send(request, stream=True, follow_redirects=False)
        except httpx.TransportError as error:
            raise _failure(error, Code.UPSTREAM_PROTOCOL_ERROR) from None

    async def _relay(self, response: httpx.Response, send: Send) -> None:
        await send(start_message(response.status_code, [(name.lower(), value) for name, value in response.headers.raw]))
        try:
            async for chunk in response.aiter_raw():
                for batch in batches(chunk):
                    await send(body_message(batch))
        except httpx.TransportError as error:
            raise _failure(error, Code.UPSTREAM_TRUNCATED) from None


def _failure(error: httpx.TransportError, otherwise: Code) -> UpstreamError:
    return failure(next((code for kinds, code in _FAILURES if isinstance(error, kinds)), otherwise))
