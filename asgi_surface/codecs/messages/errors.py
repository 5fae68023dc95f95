"""The Messages error envelope, and what an upstream's says. Knows nothing of transport: the status is the caller's."""

from __future__ import annotations

from typing import Final

import msgspec

from asgi_surface.codecs.reading import error_facts
from asgi_surface.errors import GatewayError, Kind, UpstreamError

__all__ = ["TYPES", "error", "error_facts"]

TYPES: Final[dict[Kind, str]] = {
    Kind.INVALID: "invalid_request_error",
    Kind.AUTHENTICATION: "authentication_error",
    Kind.PERMISSION: "permission_error",
    Kind.NOT_FOUND: "not_found_error",
    Kind.TOO_LARGE: "request_too_large",
    Kind.RATE_LIMIT: "rate_limit_error",
    Kind.OVERLOADED: "overloaded_error",
    Kind.TIMEOUT: "timeout_error",
    Kind.UPSTREAM: "api_error",
}

# Types that Anthropic sends and no kind of ours has. Clients act on the type, so one that is not Anthropic's (vLLM's `BadRequestError`) gives way.
_KNOWN: Final = frozenset(TYPES.values()) | {"billing_error", "conflict_error"}


def error(error: GatewayError, request_id: str) -> bytes:
    """The envelope `{"type": "error", "error": {"type", "message", "details"?}, "request_id"}`. A type the upstream said itself is kept."""
    said = error.detail.type if isinstance(error, UpstreamError) else None
    body: dict[str, object] = {"type": said if said in _KNOWN else TYPES[error.kind], "message": error.text}
    if error.details is not None:
        body["details"] = error.details
    return msgspec.json.encode({"type": "error", "error": body, "request_id": request_id})
