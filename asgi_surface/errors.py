"""Every way a request or a route file can be refused, as one tree. Each error knows its code, status, pointer and whose fault it is.

Knows nothing of surfaces: how an error looks to a client is the codec's job.
"""

from __future__ import annotations

import enum
from typing import Final

from msgspec import Struct


class Code(enum.StrEnum):
    """The gateway's own error codes, sent in `x-surface-error` on every surface."""

    MALFORMED_BODY = "malformed_body"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    BODY_TOO_LARGE = "body_too_large"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNKNOWN_MODEL = "unknown_model"
    FIELD_REJECTED = "field_rejected"
    FEATURE_UNSUPPORTED = "feature_unsupported"
    UNREPRESENTABLE = "unrepresentable"
    NO_CONVERTER = "no_converter"
    LIMIT_EXCEEDED = "limit_exceeded"
    UNSUPPORTED_REQUEST = "unsupported_request"
    UNAUTHORIZED = "unauthorized"
    MODEL_FORBIDDEN = "model_forbidden"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_PROTOCOL_ERROR = "upstream_protocol_error"
    UPSTREAM_BAD_RESPONSE = "upstream_bad_response"
    UPSTREAM_AUTH_FAILED = "upstream_auth_failed"
    UPSTREAM_REJECTED = "upstream_rejected"
    UPSTREAM_RATE_LIMITED = "upstream_rate_limited"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_OVERLOADED = "upstream_overloaded"
    UPSTREAM_TRUNCATED = "upstream_truncated"
    EVENT_TOO_LARGE = "event_too_large"
    OUTPUT_TOO_LARGE = "output_too_large"
    OVERLOADED = "overloaded"
    DRAINING = "draining"
    NOT_CONFIGURED = "not_configured"
    INTERNAL = "internal_error"


class Kind(enum.Enum):
    """What an error means to a client, whatever its surface calls it. Each codec maps a kind to its own error type."""

    INVALID = enum.auto()
    AUTHENTICATION = enum.auto()
    PERMISSION = enum.auto()
    NOT_FOUND = enum.auto()
    TOO_LARGE = enum.auto()
    RATE_LIMIT = enum.auto()
    OVERLOADED = enum.auto()
    TIMEOUT = enum.auto()
    UPSTREAM = enum.auto()


class Trait(Struct, frozen=True):
    """One row of `TRAITS`: `retry` is what `x-should-retry` tells the SDKs (None: they decide by status)."""

    status: int
    kind: Kind
    retry: bool | None = None


_INVALID = Trait(400, Kind.INVALID)

# The official OpenAI and Anthropic SDKs resend a 408, 409, 429 or 5xx twice by default. Where the first request may have been carried out, a
# resend doubles the work, so the row says no.
TRAITS: Final[dict[Code, Trait]] = {
    Code.MALFORMED_BODY: _INVALID,
    Code.UNSUPPORTED_MEDIA_TYPE: Trait(415, Kind.INVALID),
    Code.BODY_TOO_LARGE: Trait(413, Kind.TOO_LARGE),
    Code.NOT_FOUND: Trait(404, Kind.NOT_FOUND),
    Code.METHOD_NOT_ALLOWED: Trait(405, Kind.INVALID),
    Code.UNKNOWN_MODEL: Trait(404, Kind.NOT_FOUND),
    Code.FIELD_REJECTED: _INVALID,
    Code.FEATURE_UNSUPPORTED: _INVALID,
    Code.UNREPRESENTABLE: _INVALID,
    Code.NO_CONVERTER: _INVALID,
    Code.LIMIT_EXCEEDED: _INVALID,
    Code.UNSUPPORTED_REQUEST: _INVALID,
    Code.UNAUTHORIZED: Trait(401, Kind.AUTHENTICATION),
    Code.MODEL_FORBIDDEN: Trait(403, Kind.PERMISSION),
    Code.UPSTREAM_UNREACHABLE: Trait(502, Kind.UPSTREAM, True),
    Code.UPSTREAM_TIMEOUT: Trait(504, Kind.TIMEOUT, False),
    Code.UPSTREAM_PROTOCOL_ERROR: Trait(502, Kind.UPSTREAM, False),
    Code.UPSTREAM_BAD_RESPONSE: Trait(502, Kind.UPSTREAM, False),
    Code.UPSTREAM_AUTH_FAILED: Trait(502, Kind.UPSTREAM, False),
    Code.UPSTREAM_REJECTED: _INVALID,
    Code.UPSTREAM_RATE_LIMITED: Trait(429, Kind.RATE_LIMIT),
    Code.UPSTREAM_ERROR: Trait(502, Kind.UPSTREAM, False),
    Code.UPSTREAM_OVERLOADED: Trait(503, Kind.OVERLOADED, True),
    Code.UPSTREAM_TRUNCATED: Trait(502, Kind.UPSTREAM, False),
    Code.EVENT_TOO_LARGE: Trait(502, Kind.UPSTREAM, False),
    Code.OUTPUT_TOO_LARGE: Trait(502, Kind.UPSTREAM, False),
    Code.OVERLOADED: Trait(503, Kind.OVERLOADED, True),
    Code.DRAINING: Trait(503, Kind.OVERLOADED, True),
    Code.NOT_CONFIGURED: Trait(503, Kind.OVERLOADED, False),
    Code.INTERNAL: Trait(500, Kind.UPSTREAM, False),
}

# The meaning of a status that an upstream chose itself, where its code's row says less.
_KIND_OF_STATUS: Final = {401: Kind.AUTHENTICATION, 403: Kind.PERMISSION, 404: Kind.NOT_FOUND, 413: Kind.TOO_LARGE, 504: Kind.TIMEOUT}


class UpstreamDetail(Struct, frozen=True):
    """What an upstream's own error said: its type, code and the parameter it named. Absent stays None."""

    type: str | None = None
    code: str | None = None
    param: str | None = None


class ErrorFacts(Struct, frozen=True):
    """What an error body of a surface says. `status` is a numeric HTTP status (400 to 599) that the body itself names."""

    message: str
    detail: UpstreamDetail = UpstreamDetail()
    status: int | None = None


_POINTER_CHARS: Final = 256


class GatewayError(Exception):
    """A request that did not get its answer.

    `message` is fit for a client; `pointer` is the JSON pointer into the client's body; `status` overrides the code's own; `headers` are extra
    response headers (lower-case names); `details` is a machine-readable member some SDKs act on.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        pointer: str | None = None,
        status: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        # A client can name a member at any length; the message and the record need not repeat it.
        self.pointer = pointer if pointer is None or len(pointer) <= _POINTER_CHARS else pointer[:_POINTER_CHARS] + "…"
        self.trait = TRAITS[code]
        self.status = self.trait.status if status is None else status
        self.headers = headers
        self.details = details

    @property
    def text(self) -> str:
        """The message with the pointer in it, as a client reads it."""
        return self.message if self.pointer is None else f"{self.message} (at {self.pointer or 'the whole body'})"

    @property
    def kind(self) -> Kind:
        """What the error means to a client: the status an upstream chose says more than the code's row."""
        return _KIND_OF_STATUS.get(self.status, self.trait.kind) if self.code is Code.UPSTREAM_REJECTED else self.trait.kind


class RequestError(GatewayError):
    """The client's fault, found before any upstream was called."""


class UpstreamError(GatewayError):
    """The upstream's fault. `detail` is what its own error body said; `body` that body, when it may be relayed as it is."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        status: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        detail: UpstreamDetail | None = None,
        body: bytes | None = None,
    ) -> None:
        super().__init__(code, message, status=status, headers=headers)
        self.detail = detail or UpstreamDetail()
        self.body = body


class Problem(Struct, frozen=True, order=True):
    """One thing wrong with a route file: where (a TOML path), what, and what would be right ("" when nothing can be suggested)."""

    path: str
    message: str
    suggestion: str = ""
    fatal: bool = True

    def __str__(self) -> str:
        mark = "" if self.fatal else "warning: "
        return f"{self.path}: {mark}{self.message}" + (f"; {self.suggestion}" if self.suggestion else "")


class ConfigError(Exception):
    """The operator's fault, found at start: every problem of the route file at once."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
