"""The Gemini error envelope (google.rpc.Status as JSON), and what an upstream's says. Knows nothing of transport."""

from __future__ import annotations

from typing import Final

import msgspec

from asgi_surface.codecs.reading import error_facts
from asgi_surface.errors import Code, GatewayError, Kind, UpstreamError

__all__ = ["STATUSES", "error", "error_facts"]

STATUSES: Final[dict[Kind, str]] = {
    Kind.INVALID: "INVALID_ARGUMENT",
    Kind.AUTHENTICATION: "UNAUTHENTICATED",
    Kind.PERMISSION: "PERMISSION_DENIED",
    Kind.NOT_FOUND: "NOT_FOUND",
    Kind.TOO_LARGE: "INVALID_ARGUMENT",  # google.rpc.Code has no word for it
    Kind.RATE_LIMIT: "RESOURCE_EXHAUSTED",
    Kind.OVERLOADED: "UNAVAILABLE",
    Kind.TIMEOUT: "DEADLINE_EXCEEDED",
    Kind.UPSTREAM: "INTERNAL",
}
_STATUS_OF_CODE: Final = {Code.UPSTREAM_UNREACHABLE: "UNAVAILABLE"}  # nothing was done: the client may ask again
_OTHERS: Final = {"FAILED_PRECONDITION", "OUT_OF_RANGE", "ALREADY_EXISTS", "ABORTED", "UNIMPLEMENTED", "DATA_LOSS", "UNKNOWN", "CANCELLED"}
_KNOWN: Final = frozenset(STATUSES.values()) | _OTHERS
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"


def error(error: GatewayError, request_id: str) -> bytes:  # noqa: ARG001  -- Google's envelope has no place for the id: it travels in a header
    """The envelope `{"error": {"code", "message", "status", "details"}}`; `code` is the HTTP status. A status the upstream said itself is kept.

    The gateway's code is Google's `reason`: its clients read details and do not see the headers.
    """
    said = error.detail.type if isinstance(error, UpstreamError) else None
    body = {
        "code": error.status,
        "message": error.text,
        "status": said if said in _KNOWN else _STATUS_OF_CODE.get(error.code, STATUSES[error.kind]),
        "details": [{"@type": _ERROR_INFO, "reason": error.code.upper(), "domain": "asgi_surface"}],
    }
    return msgspec.json.encode({"error": body})
