"""The result of planning, as data: what every later layer reads and none recomputes.

Knows nothing of how a plan is made.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from asgi_surface import ir
from asgi_surface.codecs.base import Alias, Demand
from asgi_surface.errors import Code, RequestError
from asgi_surface.framing import Framing
from asgi_surface.surfaces import Operation, Surface


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one request and its answer. Seconds, bytes, characters, items; `keepalive_seconds = 0` means never.

    `events` and `line_bytes` of an upstream's stream are bounded by contracts only.
    """

    request_bytes: int = 33_554_432
    history_items: int = 2_000
    event_bytes: int = 16_777_216
    response_bytes: int = 33_554_432
    output_chars: int = 4_000_000
    connect_seconds: float = 5.0
    first_byte_seconds: float = 120.0
    json_seconds: float = 600.0
    idle_seconds: float = 300.0
    total_seconds: float = 3600.0
    keepalive_seconds: float = 15.0
    events: int | None = None
    line_bytes: int | None = None


class Native(Struct, frozen=True, tag="native", tag_field="kind"):
    """The surfaces match: bytes are moved."""


class Convert(Struct, frozen=True, tag="convert", tag_field="kind"):
    """The meaning is moved by a registered converter."""

    converter: str


class RouteCandidate(Struct, frozen=True, rename="camel"):
    """A route that may serve a model name; `upstream_surface` pins the binding."""

    route_id: str
    upstream_surface: Surface | None = None


class RequestPlan(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What will be done with one request, decided before any upstream is contacted.

    `upstream_path` is the request target (path and query) below the provider's base URL; `headers` are all outbound headers but the credential.
    `stream` and `framing` are what the client asked for, `upstream_stream` and `upstream_framing` what the upstream is asked for; where they differ,
    the answer is folded or unfolded. `demands` is what the request needs and where it says so; `dropped` the client's JSON pointers of what is left
    out, of these `tolerated` what only a tolerance allows to lose; `emulated` of what is said another way. `interceptors` names those that take part.
    With a `carrier`, that is what the upstream speaks; `upstream_surface` is what it carries, and `upstream_framing` how that is framed once it has
    been taken out.
    """

    downstream_surface: Surface
    upstream_surface: Surface
    upstream_path: str
    mode: Native | Convert
    request_policy: str
    route_id: str
    model: str
    upstream_model: str
    provider: str
    operation: Operation
    stream: bool
    framing: Framing
    upstream_stream: bool
    upstream_framing: Framing
    demands: tuple[Demand, ...]
    dropped: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    interceptors: tuple[str, ...] = ()
    limits: Limits = Limits()
    carrier: Surface | None = None

    @property
    def spoken(self) -> Surface:
        """The surface that the upstream speaks: what `x-surface-upstream` says."""
        return self.carrier or self.upstream_surface

    @property
    def mode_name(self) -> str:
        """`native`, or the converter's name: what `x-surface-mode` says."""
        return self.mode.converter if isinstance(self.mode, Convert) else "native"


class Draft(Struct, frozen=True):
    """The body that the policy judged and that will be sent, byte for byte.

    A converted one keeps the request it says and the names it gave to tools: the client's answer is written with them. One in an envelope keeps the
    request too.
    """

    body: bytes
    request: ir.Request | None = None
    aliases: Mapping[str, Alias] = {}
    seal_domain: str = ""


class Decision(Struct, frozen=True):
    """A plan with the body that its policy judged."""

    plan: RequestPlan
    draft: Draft


class Refusal(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="reject", tag_field="kind"):
    """A rejection as JSON: the same facts that a client would have got as an error."""

    status: int
    code: Code
    message: str
    pointer: str | None = None
    served_by: tuple[str, ...] = ()


class Rejection(RequestError):
    """A request that no binding of its route can serve, found without any upstream call.

    `served_by` names the bindings (`route_id/surface`) that would have served it, had the route's choice been another.
    """

    def __init__(self, code: Code, message: str, *, pointer: str | None = None, served_by: tuple[str, ...] = ()) -> None:
        super().__init__(code, message, pointer=pointer)
        self.served_by = served_by


def explain(answer: RequestPlan | RequestError) -> bytes:
    """A plan or a rejection as JSON, for dry runs and the command line."""
    if isinstance(answer, RequestPlan):
        return msgspec.json.encode(answer)
    served = answer.served_by if isinstance(answer, Rejection) else ()
    return msgspec.json.encode(Refusal(status=answer.status, code=answer.code, message=answer.message, pointer=answer.pointer, served_by=served))
