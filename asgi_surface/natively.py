"""A native plan: the binding of the client's own surface, its body gated, and, where the binding tolerates it, cut. Pure."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface import ir, outbound
from asgi_surface import members as m
from asgi_surface.catalog import Binding, Route
from asgi_surface.codecs.base import Codec, Demand, Needs
from asgi_surface.cuts import cut, original
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import Inbound
from asgi_surface.plans import Decision, Draft, Native, RequestPlan
from asgi_surface.policy import Gated, gate, permits
from asgi_surface.surfaces import Feature, Operation

_SEALS: Final = frozenset({"signature", "data", "encrypted_content"})


def needs_of(codec: Codec, inbound: Inbound, members: m.Members, *, streams: bool | None = None) -> Needs:
    """What a body asks of its upstream, streaming only where the upstream is asked to; counting tokens is a need of its own."""
    needs = codec.needs(members, inbound.stream if streams is None else streams)
    if inbound.operation is not Operation.COUNT_TOKENS:
        return needs
    return Needs((*needs.demands, Demand(Feature.COUNT_TOKENS, "")), needs.history, needs.history_pointer)


def check_history(needs: Needs, binding: Binding) -> None:
    """Raises `RequestError` (limit_exceeded) for a history longer than the binding allows."""
    if needs.history > binding.limits.history_items:
        text = f"the history has {needs.history} items, the route allows {binding.limits.history_items}"
        raise RequestError(Code.LIMIT_EXCEEDED, text, pointer=needs.history_pointer)


def check_size(inbound: Inbound, binding: Binding) -> None:
    """Raises `RequestError` (body_too_large) for a body larger than the binding allows; the file's own bound held while it was read."""
    if len(inbound.body) > binding.limits.request_bytes:
        raise RequestError(Code.BODY_TOO_LARGE, f"the body is larger than {binding.limits.request_bytes} bytes")


def lacks(demand: Demand, pointer: str) -> RequestError:
    """The refusal for a feature that a binding does not declare."""
    return RequestError(Code.FEATURE_UNSUPPORTED, f"the route does not declare `{demand.feature}`", pointer=pointer)


def attempt(codec: Codec, inbound: Inbound, route: Route, binding: Binding, *, tolerant: bool) -> Decision:
    """The plan for a binding of the client's surface. Raises `RequestError` with the client's pointer."""
    check_size(inbound, binding)
    gated = gate(inbound.members, binding.policy, codec, binding.features, counting=inbound.operation is Operation.COUNT_TOKENS)
    # What the policy leaves out or overwrites is not asked of the upstream any more.
    needs, members, cuts = _tolerable(codec, inbound, binding, gated) if tolerant else (_all(codec, inbound, binding, gated), gated.members, ())
    check_history(needs, binding)
    streams = outbound.upstream_stream(inbound, binding)
    crossed = streams != inbound.stream
    model = outbound.upstream_model(route, inbound.model)
    renamed = not codec.model_in_path and model != inbound.model
    if renamed:
        members = {**members, "model": Raw(msgspec.json.encode(model))}
    # What of the client's wishes the upstream is not told, its usage in a stream for one, is still what its answer is written by.
    said = _said(codec, members, stream=inbound.stream) if crossed or binding.carrier is not None else None
    if crossed:
        members = _crossing(codec, binding, members, streams=streams)
    body, lost = outbound.enveloped(inbound, binding, model, members)
    plan = RequestPlan(
        downstream_surface=inbound.surface,
        upstream_surface=binding.surface,
        upstream_path=outbound.target(codec, inbound, binding, route, model),
        mode=Native(),
        request_policy=binding.request_policy,
        route_id=route.route_id,
        model=inbound.model,
        upstream_model=model,
        provider=binding.provider.name,
        operation=inbound.operation,
        stream=inbound.stream,
        framing=inbound.framing,
        upstream_stream=streams,
        upstream_framing=outbound.upstream_framing(codec, inbound),
        demands=needs.demands,
        dropped=(*gated.dropped, *cuts, *lost),
        tolerated=cuts,
        headers=outbound.headers(codec, inbound, binding),
        limits=binding.limits,
        carrier=binding.carrier,
    )
    if binding.carrier is not None:
        return Decision(plan, Draft(m.encode(body), said))
    return Decision(plan, Draft(m.encode(members) if gated.changed or renamed or cuts or crossed else inbound.body, said))


def _said(codec: Codec, members: m.Members, *, stream: bool) -> ir.Request:
    """The request for answers that repeat it, as far as it can be lifted: who writes them cannot read it in its envelope, nor once it was crossed."""
    try:
        return codec.lift(members, stream).request
    except RequestError:
        return ir.Request(turns=(), stream=stream)


def _crossing(codec: Codec, binding: Binding, members: m.Members, *, streams: bool) -> m.Members:
    """The members with the client's wish for a stream turned around. What the policy would not let pass is not added."""
    others = {name: raw for name, raw in members.items() if name not in codec.streaming}
    if not streams:
        return others
    asking = {name: Raw(value) for name, value in codec.streaming.items()}
    return others | {name: raw for name, raw in asking.items() if permits(binding.policy, codec, name, binding.features, asking)}


def _all(codec: Codec, inbound: Inbound, binding: Binding, gated: Gated) -> Needs:
    needs = needs_of(codec, inbound, gated.members, streams=outbound.upstream_stream(inbound, binding))
    for demand in needs.demands:
        if demand.feature not in binding.features:
            raise lacks(demand, original(demand.pointer, gated.dropped))
    return needs


def _tolerable(codec: Codec, inbound: Inbound, binding: Binding, gated: Gated) -> tuple[Needs, m.Members, tuple[str, ...]]:
    """The needs, the members and the pointers of what had to be cut for them, all of it tolerated."""
    places = [mention.pointer for mention in codec.lift(inbound.members, inbound.stream).mentions if mention.construct in binding.tolerate]
    cuts: list[str] = []
    while True:
        members = cut(gated.members, cuts)
        needs = needs_of(codec, inbound, members, streams=outbound.upstream_stream(inbound, binding))
        demand = next((one for one in needs.demands if one.feature not in binding.features), None)
        if demand is None:
            return needs, members, tuple(cuts)
        pointer = original(demand.pointer, (*gated.dropped, *cuts))
        place = next((place for place in places if place not in cuts and related(place, pointer)), None)
        if place is None and demand.feature in binding.tolerate and pointer:
            place = _element(pointer)
        if place is None or place in cuts:
            raise lacks(demand, pointer)
        cuts.append(place)


def _element(pointer: str) -> str:
    """What to cut for a demand: the seal of a block or item is nothing without it, nor it without the seal."""
    parent, _, name = pointer.rpartition("/")
    return parent if name in _SEALS else pointer


def related(place: str, pointer: str) -> bool:
    """Whether one of two pointers leads to the other or into it."""
    return place == pointer or pointer.startswith(place + "/") or place.startswith(pointer + "/")
