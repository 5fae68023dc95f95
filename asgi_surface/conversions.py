"""A converted plan: the client's request lifted once, lowered for a binding of another surface, and gated there. Pure.

Proving that everything can be said is saying it; the product is kept in the draft, so it is done once.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from msgspec import structs

from asgi_surface import ir, natively, outbound
from asgi_surface import members as m
from asgi_surface.catalog import Binding, Route
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, Demand, Lifted, Needs, Target
from asgi_surface.codecs.slots import place
from asgi_surface.converters import PAIRS, Conversion, convert, prune
from asgi_surface.cuts import cut, original, steps
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import Inbound
from asgi_surface.plans import Convert, Decision, Draft, RequestPlan
from asgi_surface.policy import gate, permits
from asgi_surface.surfaces import Operation
from asgi_surface.verdicts import Mention

_FOREIGN = "seal:foreign"


class Converting:
    """One request on its way to other surfaces. Lifted at the first attempt, then shared by all."""

    def __init__(self, codec: Codec, inbound: Inbound) -> None:
        self._codec = codec
        self._inbound = inbound
        self._lifted: Lifted | None = None

    def attempt(self, route: Route, binding: Binding, *, tolerant: bool) -> Decision:
        """The plan for a binding of another surface. Raises `RequestError` with the client's pointer."""
        inbound, codec = self._inbound, CODECS[binding.surface]
        if inbound.operation is not Operation.GENERATE:
            raise RequestError(Code.NO_CONVERTER, "only generation is converted; tokens are counted by the surface itself")
        model = outbound.upstream_model(route, inbound.model)
        target = Target(model=model, dialect=binding.dialect, seal_domain=binding.provider.seal_domain, features=binding.features)
        natively.check_size(inbound, binding)
        own = self._codec.needs(inbound.members, inbound.stream)
        natively.check_history(own, binding)
        conversion, needs, lost = self._within(codec, binding, target, binding.tolerate if tolerant else frozenset())
        _check_asked(self._lift().request, own)
        members, cut_there = _gated(conversion, binding, codec)
        lowered = conversion.lowered
        body, lost_around = outbound.enveloped(inbound, binding, model, members)
        plan = RequestPlan(
            downstream_surface=inbound.surface,
            upstream_surface=binding.surface,
            upstream_path=outbound.target(codec, inbound, binding, route, model),
            mode=Convert(PAIRS[inbound.surface, binding.surface].name),
            request_policy=binding.request_policy,
            route_id=route.route_id,
            model=inbound.model,
            upstream_model=model,
            provider=binding.provider.name,
            operation=inbound.operation,
            stream=inbound.stream,
            framing=inbound.framing,
            upstream_stream=outbound.upstream_stream(inbound, binding),
            upstream_framing=outbound.upstream_framing(codec, inbound),
            demands=needs.demands,
            dropped=(*(mention.pointer for mention in conversion.dropped), *lost, *cut_there, *lost_around),
            tolerated=lost,
            emulated=_emulated(conversion, {*lost, *(mention.pointer for mention in conversion.dropped)}),
            headers=outbound.headers(codec, inbound, binding),
            limits=binding.limits,
            carrier=binding.carrier,
        )
        return Decision(plan, Draft(m.encode(body), conversion.request, lowered.aliases, target.seal_domain))

    def _within(self, codec: Codec, binding: Binding, target: Target, tolerate: Collection[str]) -> tuple[Conversion, Needs, tuple[str, ...]]:
        """The conversion that needs only declared features, and the places of what had to be lost for it, all of it tolerated."""
        streams = outbound.upstream_stream(self._inbound, binding)
        lifted = self._lift()
        lifted = structs.replace(lifted, request=structs.replace(lifted.request, stream=streams))
        foreign: tuple[str, ...] = ()
        if _FOREIGN in tolerate:
            foreign = tuple(mention.pointer for mention in foreign_seals(lifted.request, target, codec))
            lifted = structs.replace(lifted, request=unsealed(lifted.request, foreign))
        cuts: list[str] = []
        while True:
            conversion = convert(self._codec, lifted, codec, target, tolerate)
            needs = codec.needs(conversion.lowered.members, streams)
            demand = next((one for one in needs.demands if one.feature not in binding.features), None)
            if demand is None:
                tolerated = (mention.pointer for mention in conversion.tolerated)
                return conversion, needs, tuple(dict.fromkeys((*foreign, *tolerated, *cuts)))
            pointer = self._asked(demand, conversion, cuts)
            if demand.feature not in tolerate or not pointer or pointer in cuts:
                raise natively.lacks(demand, pointer)
            cuts.append(pointer)
            lifted = structs.replace(lifted, request=prune(lifted.request, _nodes(lifted.request, pointer)))

    def _lift(self) -> Lifted:
        if self._lifted is None:
            self._lifted = self._codec.lift(self._inbound.members, self._inbound.stream)
        return self._lifted

    def _asked(self, demand: Demand, conversion: Conversion, cuts: Collection[str]) -> str:
        """Where the client asks for a feature that the lowered body needs: its own demand, else the member that became the needy one."""
        own = self._codec.needs(cut(self._inbound.members, cuts), self._inbound.stream).demands
        said = next((one.pointer for one in own if one.feature == demand.feature), None)
        return _origin(demand.pointer, conversion) if said is None else original(said, cuts)


def _check_asked(request: ir.Request, own: Needs) -> None:
    """Raises `RequestError` for a request without a conversation: its own API would not answer it, and another may."""
    if own.history == 0 and not any(natively.related(own.history_pointer, turn.at) for turn in request.turns):
        raise RequestError(Code.MALFORMED_BODY, "there is nothing to answer", pointer=own.history_pointer)


def _emulated(conversion: Conversion, lost: Collection[str]) -> tuple[str, ...]:
    """The places of what is said another way, once each, without those within what is not said at all."""
    places = dict.fromkeys(mention.pointer for mention in conversion.emulated)
    return tuple(place for place in places if not any(around in lost for around in itertools.accumulate(place.split("/"), "{}/{}".format)))


def _nodes(request: ir.Request, pointer: str) -> set[str]:
    """The places of the nodes that stand at a pointer, around it or within."""
    parts = (part for turn in request.turns for part in turn.parts)
    inner = (one for turn in request.turns for part in turn.parts if isinstance(part, ir.Result) for one in part.parts)
    single = (node for node in (request.choice, request.effort, request.format) if node is not None)
    places = {node.at for node in (*parts, *inner, *request.tools, *single)} | set(request.settings.at.values())
    return {place for place in places if place and natively.related(place, pointer)}


def foreign_seals(request: ir.Request, target: Target, codec: Codec) -> tuple[Mention, ...]:
    """The places of seals that the target did not mint."""
    seals = ((part.seal, place(part)) for turn in request.turns for part in turn.parts if isinstance(part, ir.Reasoning | ir.Call))
    return tuple(Mention(_FOREIGN, at) for seal, at in seals if seal and not _own(seal, target, codec))


def _own(seal: ir.Seal, target: Target, codec: Codec) -> bool:
    return seal.kind is ir.SealKind.TEXT or (seal.domain == target.seal_domain and seal.surface == codec.surface)


def unsealed(request: ir.Request, places: Collection[str]) -> ir.Request:
    """The request without the reasoning, and with calls bare of the seals, at these places."""
    calls = {place(part) for turn in request.turns for part in turn.parts if isinstance(part, ir.Call)}
    turns = tuple(
        structs.replace(turn, parts=tuple(_bare(part) if isinstance(part, ir.Call) and place(part) in places else part for part in turn.parts))
        for turn in request.turns
    )
    return prune(structs.replace(request, turns=turns), set(places) - calls)


def _bare(call: ir.Call) -> ir.Call:
    return structs.replace(call, seal=None)


def _gated(conversion: Conversion, binding: Binding, codec: Codec) -> tuple[m.Members, tuple[str, ...]]:
    """The members that may leave, and the client's pointers of those that the target's policy dropped."""
    lowered = conversion.lowered
    unwanted = {name for name in lowered.added if not permits(binding.policy, codec, name, binding.features, lowered.members)}
    members = {name: raw for name, raw in lowered.members.items() if name not in unwanted}
    try:
        gated = gate(members, binding.policy, codec, binding.features)
    except RequestError as error:
        raise RequestError(error.code, error.message, pointer=_origin(error.pointer or "", conversion)) from error
    return gated.members, tuple(_origin(pointer, conversion) for pointer in gated.dropped)


def _origin(pointer: str, conversion: Conversion) -> str:
    first = steps(pointer)[:1]
    return conversion.lowered.origins.get(first[0], "") if first else ""
