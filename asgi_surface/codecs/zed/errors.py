"""Errors as Zed's clients read them: of an HTTP answer, and of the line that ends a stream. Knows nothing of transport."""

from __future__ import annotations

from typing import Final

import msgspec

from asgi_surface.errors import Code, GatewayError, UpstreamError

# Of these the provider behind the gateway has said the status itself.
_STATED: Final = frozenset({Code.UPSTREAM_REJECTED, Code.UPSTREAM_RATE_LIMITED, Code.UPSTREAM_ERROR, Code.UPSTREAM_OVERLOADED})
_MS: Final = 1_000


def error(error: GatewayError, request_id: str) -> bytes:  # noqa: ARG001 -- Zed's error body has no place for the id: it travels in a header
    """The body `{"code", "message", "upstream_status"?, "retry_after"?}`; `retry_after` is in seconds, with a fraction."""
    body: dict[str, object] = {"code": _code(error), "message": error.text}
    if error.code in _STATED:
        body["upstream_status"] = error.status
    if (seconds := _retry_after(error)) is not None:
        body["retry_after"] = seconds
    return msgspec.json.encode(body)


def failed(error: GatewayError, request_id: str) -> bytes:
    """The status of a failed answer, `{"failed": {"code", "message", "request_id", "retry_after"}}`.

    `request_id` is the gateway's, 32 hexadecimal digits: Zed's client cannot read a status whose id is no UUID.
    """
    digits = (request_id[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    body = {"code": _code(error), "message": error.text, "request_id": "-".join(digits), "retry_after": _retry_after(error)}
    return msgspec.json.encode({"failed": body})


def _code(error: GatewayError) -> str:
    """A fault beyond the gateway is told with its status in the code: a line has no other place for it, and the client acts on it."""
    return f"upstream_http_{error.status}" if isinstance(error, UpstreamError) else error.code


def _retry_after(error: GatewayError) -> float | None:
    """The seconds to wait, where a header says a number of them. A date means nothing without a clock."""
    said = dict(error.headers)
    milliseconds, seconds = said.get(b"retry-after-ms", b""), said.get(b"retry-after", b"")
    if milliseconds.isdigit():
        return int(milliseconds) / _MS
    return float(seconds) if seconds.isdigit() else None
