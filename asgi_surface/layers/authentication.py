"""Who may use the gateway, decided before the body is read. Knows nothing of models or routes beyond a key's name.

Modes by DESIGN: `keys`, `loopback` (no keys: whoever is on this machine and is no foreign web page), `host` (the mounting app decides).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from asgi_surface.catalog import AuthMode, Catalog, Key
from asgi_surface.errors import Code, RequestError
from asgi_surface.layers.exchange import ASGIApp, Exchange, Receive, Scope, Send, exchange_of
from asgi_surface.surfaces import GEMINI

_CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)


class Authentication:
    """ASGI layer between SurfaceDetection and Planning. `catalog` may be a function that gives the catalog in force."""

    def __init__(self, app: ASGIApp, *, catalog: Catalog | Callable[[], Catalog]) -> None:
        self.app = app
        self.catalog = catalog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the request through, with the key's name in the exchange, or raises `RequestError`."""
        exchange = exchange_of(scope)
        catalog = self.catalog() if callable(self.catalog) else self.catalog
        if catalog.auth_mode is AuthMode.KEYS:
            exchange.key = authorised(exchange, catalog.keys).name
        elif catalog.auth_mode is AuthMode.LOOPBACK:
            _check_loopback(scope, exchange)
        await self.app(scope, receive, send)


def credentials(exchange: Exchange) -> set[bytes]:
    """Every credential the request carries, in whatever place its surface allows."""
    found = set()
    for name, value in exchange.headers:
        if name == b"authorization":
            scheme, _, rest = value.partition(b" ")
            found.add(rest.strip() if scheme.lower() == b"bearer" else value)
        elif name == b"x-api-key" or (name == b"x-goog-api-key" and exchange.endpoint.surface == GEMINI):
            found.add(value)
    if exchange.endpoint.surface == GEMINI:
        found |= {value.encode() for value in parse_qs(exchange.query).get("key", ())}
    return found - {b""}


def authorised(exchange: Exchange, keys: Sequence[Key]) -> Key:
    """The key that the request carries. Every stored digest is compared, each in constant time."""
    found = credentials(exchange)
    if len(found) > 1:
        raise RequestError(Code.UNSUPPORTED_REQUEST, "the request carries credentials that differ")
    digest = hashlib.sha256(next(iter(found), b"")).digest()
    matches = [key for key in keys if hmac.compare_digest(key.digest, digest)]
    if not matches or not found:
        raise RequestError(Code.UNAUTHORIZED, "a valid API key is needed", headers=_CHALLENGE)
    return matches[0]


def _check_loopback(scope: Scope, exchange: Exchange) -> None:
    """Without keys, only this machine may ask, and no web page: a page elsewhere could spend the provider's key through a browser here.

    A browser sends `Origin` with every cross-site POST, a rebound name shows in `Host`, and a JSON content type needs a preflight.
    """
    host = exchange.header(b"host") or b""
    origin = exchange.header(b"origin")
    if not (_is_loopback(_address(scope.get("client"))) and _is_loopback(_address(scope.get("server"))) and _is_loopback(_host(host))):
        raise RequestError(Code.UNAUTHORIZED, "without keys the gateway serves only this machine", status=403)
    if origin is not None and _split(origin).netloc.encode("latin-1") != host:
        raise RequestError(Code.UNAUTHORIZED, "requests from other web origins are refused", status=403)


def _address(pair: Sequence[object] | None) -> str | None:
    """An ASGI address; None for a unix socket or a server that does not say."""
    return None if pair is None or len(pair) < 2 or pair[1] is None else str(pair[0])


def _host(value: bytes) -> str:
    return _split(b"//" + value).hostname or ""


def _split(value: bytes) -> SplitResult:
    """The parts of a URL; nothing of what is none."""
    try:
        return urlsplit(value.decode("latin-1"))
    except ValueError:
        return urlsplit("")


def _is_loopback(name: str | None) -> bool:
    if name is None or name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
        # A server on both protocols names an IPv4 client `::ffff:127.0.0.1`.
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False
