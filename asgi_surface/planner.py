"""Inbound request and catalog -> one plan and the body that will be sent, or a rejection. Pure: contacts nothing, decides once.

Every candidate route is judged by the same steps: the binding of the client's own surface (native), else a registered converter, each first as
declared and then with the binding's tolerances; else a reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from asgi_surface import members as m
from asgi_surface import natively
from asgi_surface.catalog import Binding, Catalog, Route
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.zed.envelope import Carried
from asgi_surface.contracts import tightened
from asgi_surface.conversions import Converting
from asgi_surface.converters import PAIRS
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import Headers, Inbound, outward, received
from asgi_surface.interception import Discerning, Interceptor, requested
from asgi_surface.plans import Decision, Rejection, RequestPlan, RouteCandidate
from asgi_surface.surfaces import Operation, Surface

# Which of several reasons a client is told: what its own surface's binding lacks says more than what a conversion cannot say.
_SPECIFIC: Final = (
    Code.FEATURE_UNSUPPORTED,
    Code.FIELD_REJECTED,
    Code.MALFORMED_BODY,
    Code.BODY_TOO_LARGE,
    Code.LIMIT_EXCEEDED,
    Code.UNSUPPORTED_REQUEST,
    Code.UNREPRESENTABLE,
    Code.UNKNOWN_MODEL,
    Code.NO_CONVERTER,
)


def plan(
    surface: Surface,
    body: bytes,
    catalog: Catalog,
    *,
    model: str | None = None,
    stream: bool | None = None,
    headers: Headers = (),
    operation: Operation = Operation.GENERATE,
    query: str = "",
) -> RequestPlan:
    """The plan for one request body. `model` and `stream` are Gemini's, whose path says them. No I/O.

    Raises `Rejection` when no binding can serve it and `RequestError` when the body cannot be read; both carry the JSON pointer.
    """
    return decide(received(surface, operation, body, model=model, stream=stream, query=query, headers=headers), catalog).plan


def decide(
    inbound: Inbound,
    catalog: Catalog,
    candidates: Sequence[RouteCandidate] | None = None,
    *,
    interceptors: Sequence[Interceptor] = (),
) -> Decision:
    """The first candidate that can be planned wins. `candidates` replaces the catalog's own list (a host application's choice).

    Each of the `interceptors` is asked once for each route whether it applies there; what they make of the request is what is judged and sent.
    """
    try:
        decision = _first(inbound, catalog, candidates, interceptors)
    except RequestError as error:
        error.pointer = None if error.pointer is None else outward(inbound, error.pointer)
        raise
    carried = inbound.carried
    return decision if carried is None else replace(decision, plan=_told(inbound, carried, decision.plan))


def _told(inbound: Inbound, carried: Carried, plan: RequestPlan) -> RequestPlan:
    """The plan with its pointers in the client's words. What stands beside the carried request goes to an upstream of the carrier alone."""
    places = {name: tuple(outward(inbound, pointer) for pointer in getattr(plan, name)) for name in ("dropped", "tolerated", "emulated")}
    if plan.carrier is None:
        places["dropped"] += tuple(map(m.token, carried.extras))
    return replace(plan, demands=tuple(replace(one, pointer=outward(inbound, one.pointer)) for one in plan.demands), **places)


def _first(inbound: Inbound, catalog: Catalog, candidates: Sequence[RouteCandidate] | None, interceptors: Sequence[Interceptor]) -> Decision:
    codec = CODECS[inbound.surface]
    named = catalog.candidates(inbound.model) if candidates is None else tuple(candidates)
    routes = [(catalog.routes[one.route_id], one.upstream_surface) for one in named if one.route_id in catalog.routes]
    if not routes:
        raise Rejection(Code.UNKNOWN_MODEL, "no route serves this model", pointer=None if codec.model_in_path else "/model")
    intercepted = _Intercepted(inbound, codec, interceptors)
    reasons: list[RequestError] = []
    for route, pinned in routes:
        bindings = [binding for binding in route.bindings if pinned in (None, binding.surface, binding.carrier)]
        try:
            bindings = _contracted(inbound, route, bindings)
        except RequestError as reason:
            reasons.append(reason)
            continue
        for attempt in _attempts(inbound, intercepted, catalog, route, bindings):
            try:
                return attempt()
            except RequestError as reason:
                reasons.append(reason)
    raise _rejection(codec, inbound, [route for route, _ in routes], reasons)


def _contracted(inbound: Inbound, route: Route, bindings: list[Binding]) -> list[Binding]:
    """The bindings under the route's contract, which the client's own body has to keep. Raises `RequestError`."""
    contract = route.contract
    if contract is None or contract.surface != inbound.surface:
        return bindings
    contract.check(inbound.members)
    return [replace(binding, limits=tightened(binding.limits, contract)) for binding in bindings]


class _Asked(Struct, frozen=True):
    """What is judged and sent, what converts it, the names of those that made it so, and pointers to what they left out."""

    inbound: Inbound
    converting: Converting
    names: tuple[str, ...]
    dropped: tuple[str, ...]

    def told(self, decision: Decision) -> Decision:
        """The decision with the names."""
        if not self.names:
            return decision
        dropped = tuple(dict.fromkeys((*self.dropped, *decision.plan.dropped)))
        return replace(decision, plan=replace(decision.plan, interceptors=self.names, dropped=dropped))


class _Intercepted:
    """The request for a route as the interceptors that apply there leave it. They are asked as seldom as can be."""

    def __init__(self, inbound: Inbound, codec: Codec, interceptors: Sequence[Interceptor]) -> None:
        self._inbound = inbound
        self._bare = Converting(codec, inbound)
        self._codec = codec
        self._interceptors = interceptors
        self._known: dict[tuple[str, bool], _Asked] = {}

    def __call__(self, route_id: str, *, converted: bool) -> _Asked:
        about = self._inbound.surface, route_id, self._inbound.members
        converted = converted and any(isinstance(one, Discerning) and one.differs(*about) for one in self._interceptors)
        if (route_id, converted) not in self._known:
            self._known[route_id, converted] = self._ask(about, converted=converted)
        return self._known[route_id, converted]

    def _ask(self, about: tuple[Surface, str, m.Members], *, converted: bool) -> _Asked:
        inbound, converting = self._inbound, self._bare
        chosen = [one for one in self._interceptors if (one.converts if converted and isinstance(one, Discerning) else one.applies)(*about)]
        dropped = tuple(pointer for one in chosen for pointer in one.dropped(inbound.members))
        members = requested(chosen, inbound.members)
        if members is not inbound.members:
            inbound = replace(inbound, members=members, body=m.encode(members))
            converting = Converting(self._codec, inbound)
        return _Asked(inbound, converting, tuple(one.name for one in chosen), dropped)


def _attempts(
    inbound: Inbound, intercepted: Callable[..., _Asked], catalog: Catalog, route: Route, bindings: Sequence[Binding]
) -> Iterator[Callable[[], Decision]]:
    """What can be tried for a route, best first: native, then converted, then both again with what the bindings tolerate to lose."""
    for tolerant in (False, True):
        usable = [one for one in bindings if one.tolerate or not tolerant]
        for binding in (one for one in usable if one.surface == inbound.surface):
            yield functools.partial(_native, intercepted(route.route_id, converted=False), route, binding, tolerant=tolerant)
        for binding in (one for one in usable if one.surface != inbound.surface):
            yield functools.partial(_converted, intercepted(route.route_id, converted=True), catalog, route, binding, tolerant=tolerant)


def _native(asked: _Asked, route: Route, binding: Binding, *, tolerant: bool) -> Decision:
    return asked.told(natively.attempt(CODECS[asked.inbound.surface], asked.inbound, route, binding, tolerant=tolerant))


def _converted(asked: _Asked, catalog: Catalog, route: Route, binding: Binding, *, tolerant: bool) -> Decision:
    surface = asked.inbound.surface
    pair = PAIRS.get((surface, binding.surface))
    if pair is None or (catalog.converters is not None and pair.name not in catalog.converters):
        raise RequestError(Code.NO_CONVERTER, f"the route speaks {binding.surface}, and no converter leads there from {surface}")
    return asked.told(asked.converting.attempt(route, binding, tolerant=tolerant))


def _rejection(codec: Codec, inbound: Inbound, routes: Sequence[Route], reasons: Sequence[RequestError]) -> Rejection:
    """The most specific reason, the first among equals; and the bindings that have every feature the request needs, whatever their surface."""
    nothing = RequestError(Code.NO_CONVERTER, f"no binding of the route can serve {inbound.surface}")
    told = min(reasons, key=lambda reason: _SPECIFIC.index(reason.code), default=nothing)
    if told.code is Code.UNSUPPORTED_REQUEST:  # a contract refuses what no surface has a shape for as well
        served: dict[str, None] = {}
    else:
        wanted = {demand.feature for demand in natively.needs_of(codec, inbound, inbound.members).demands}
        served = dict.fromkeys(f"{route.route_id}/{binding.declared}" for route in routes for binding in route.bindings if wanted <= binding.features)
    rejection = Rejection(told.code, told.message, pointer=told.pointer, served_by=tuple(served))
    rejection.__cause__ = told
    return rejection
