"""What the upstream apps share: the ASGI shapes, the request body as one buffer, and the four ways a call can fail.

Every text is constant: no host, URL, key or operating system message can reach a client or a log through an upstream error. Knows nothing of
sockets or providers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from asgi_surface.errors import Code, UpstreamError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

BATCH: Final = 65_536
"""The most bytes of one `http.response.body` message: an ASGI server accepts a single send of any size above its high-water mark."""

_FAILURES: Final = {
    Code.UPSTREAM_UNREACHABLE: "the upstream cannot be reached",
    Code.UPSTREAM_PROTOCOL_ERROR: "the upstream did not answer in valid HTTP",
    Code.UPSTREAM_TRUNCATED: "the upstream's answer broke off",
    Code.OVERLOADED: "too many requests to this upstream are in flight",
}


def failure(code: Code) -> UpstreamError:
    """The error of `code`, one of unreachable, protocol error, truncated and overloaded."""
    return UpstreamError(code, _FAILURES[code])


def origin(base_url: str) -> SplitResult:
    """The parts of a provider's base URL; its path loses a trailing slash.

    Raises `ValueError` for what is not `http(s)://host[:port][/prefix]` in ASCII: a user, query or fragment would be lost on the way.
    """
    url = urlsplit(base_url)
    host = url.hostname or ""
    host.encode("idna")
    whole = base_url.isascii() and base_url.isprintable() and " " not in base_url
    if not whole or not host or url.scheme not in {"http", "https"} or "@" in url.netloc or url.query or url.fragment or url.port == 0:
        raise ValueError("an upstream's base URL is http(s)://host[:port][/prefix]")
    return url._replace(path=url.path.rstrip("/"))


def target(prefix: str, scope: Scope) -> bytes:
    """The request target: the provider's path prefix, the call's path as it was encoded, and its query string."""
    path: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:@!$&'()*+,;=~").encode()
    query: bytes = scope.get("query_string", b"")
    return prefix.encode() + path + (b"?" + query if query else b"")


async def read_body(receive: Receive) -> bytes | None:
    """The whole request body; None when the caller left before it was whole."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def start_message(status: int, headers: Headers) -> Message:
    """The head of a response; `headers` as the upstream sent them, names in lower case."""
    return {"type": "http.response.start", "status": status, "headers": headers}


def body_message(body: bytes) -> Message:
    """Bytes of a response; none mean that the response is whole."""
    return {"type": "http.response.body", "body": body, "more_body": bool(body)}


def batches(data: bytes) -> Iterator[bytes]:
    """`data` in pieces of at most `BATCH` bytes."""
    return (data[at : at + BATCH] for at in range(0, len(data), BATCH))
