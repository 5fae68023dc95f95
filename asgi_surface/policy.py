"""The outbound gate: which members of a body may leave for an upstream, which are overwritten, and which tool types pass.

Judges names, and the types of tools; it knows nothing of any particular surface, route or transport, and never reads a value it does not have to.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs.base import Guard, ShippedPolicy
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, encode, parse, read, token
from asgi_surface.surfaces import Feature, Surface

_ELEMENTS: Final = msgspec.json.Decoder(list[Raw] | None)


class Fields(Protocol):
    """What is known of a body's members: by a codec of its surface's, by a carrier of its envelope's."""

    @property
    def surface(self) -> Surface:
        """Whose members they are."""
        ...

    @property
    def policy(self) -> ShippedPolicy:
        """What passes by default."""
        ...

    @property
    def required(self) -> frozenset[str]:
        """The members that no body may lack."""
        ...

    @property
    def count_fields(self) -> frozenset[str]:
        """The members that only count-tokens bodies have."""
        ...

    @property
    def names(self) -> Callable[[str], str]:
        """The name that policies know, for a member's spelling."""
        ...

    @property
    def tool_types(self) -> Callable[[Raw], Sequence[tuple[str, str]]]:
        """The place below `/tools` and the type of every tool."""
        ...


class UnknownField(enum.StrEnum):
    """What happens to a field that a policy does not allow."""

    DROP = "drop"
    REJECT = "reject"


class Policy(Struct, frozen=True, kw_only=True):
    """What may leave through a binding. Field names are the codec's canonical ones, values JSON bytes, header names lower-case.

    `force_without` overwrites like `force`, but only where the binding does not declare the feature. `tool_types` None means any.
    """

    name: str
    surface: Surface
    allowed: frozenset[str]
    guarded: Mapping[str, Guard]
    unknown: UnknownField
    force: Mapping[str, bytes]
    force_without: Mapping[str, tuple[Feature, bytes]]
    defaults: Mapping[str, bytes]
    headers: frozenset[str]
    tool_types: frozenset[str] | None


class Gated(Struct, frozen=True):
    """A judged body. `dropped` are the JSON pointers, in the client's words, of what was left out or overwritten.

    `changed` is False when the client's own buffer says the same and can be sent as it is.
    """

    members: Members
    dropped: tuple[str, ...]
    changed: bool


def shipped(surface: Surface, policy: ShippedPolicy) -> Policy:
    """A surface's default policy. It rejects what it does not know, so that nothing is lost in silence."""
    return Policy(
        name=policy.name,
        surface=surface,
        allowed=policy.fields,
        guarded=policy.guarded,
        unknown=UnknownField.REJECT,
        force={},
        force_without=policy.force_without,
        defaults={},
        headers=policy.headers,
        tool_types=None,
    )


def extended(  # noqa: PLR0913 -- one argument a key of a policy table
    parent: Policy | None,
    name: str,
    surface: Surface,
    *,
    allowed_fields: Sequence[str] | None,
    unknown_field_action: UnknownField | None,
    force: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    allowed_headers: Sequence[str] | None,
    allowed_tool_types: Sequence[str] | None,
) -> Policy:
    """An operator's policy: every key given replaces the parent's, None keeps it. Without a parent nothing is allowed but what is given.

    A given `allowed_fields` is the whole list: it takes the parent's guards away too, so a guarded field that it names passes unguarded and one
    that it does not name never passes. `force_without` is inherited.
    """
    base = parent or shipped(surface, ShippedPolicy(name=name, fields=frozenset()))
    given = {
        "allowed": None if allowed_fields is None else frozenset(allowed_fields),
        "guarded": None if allowed_fields is None else {},
        "unknown": unknown_field_action,
        "force": _encoded(force),
        "defaults": _encoded(defaults),
        "headers": None if allowed_headers is None else frozenset(header.lower() for header in allowed_headers),
        "tool_types": None if allowed_tool_types is None else frozenset(allowed_tool_types),
    }
    return msgspec.structs.replace(base, name=name, surface=surface, **{key: value for key, value in given.items() if value is not None})


def _encoded(values: Mapping[str, object] | None) -> dict[str, bytes] | None:
    return None if values is None else {name: msgspec.json.encode(value) for name, value in values.items()}


def gate(members: Members, policy: Policy, codec: Fields, features: frozenset[Feature], *, counting: bool = False) -> Gated:
    """What of a body may leave through a binding that declares `features`.

    The client's order is kept, added members stand at the end, and a member that is not named here keeps its exact bytes. A `counting` body is
    not generated from: its extra fields pass, and nothing is forced or defaulted. Raises `RequestError`: malformed_body for two spellings of one
    name and for a tool that could be read in two ways, field_rejected for what a rejecting policy does not allow.
    """
    spelled = _spelled(members, codec)
    forced = {} if counting else _forced(policy, features)
    allowed = policy.allowed | codec.count_fields if counting else policy.allowed
    looking = policy.tool_types is not None or Feature.HOSTED_TOOLS not in features
    kept: Members = {}
    dropped: list[str] = []
    for canonical, name in spelled.items():
        raw, pointer = members[name], token(name)
        if canonical in forced:
            kept[name] = _overwritten(raw, forced[canonical])
            dropped += [] if kept[name] is raw else [pointer]
        elif canonical not in allowed and not _harmless(policy.guarded.get(canonical), raw, features):
            dropped.append(_refused(policy, pointer))
        elif canonical == "tools" and looking:
            tools, cut = _tools(name, raw, policy, codec)
            kept |= {} if tools is None else {name: tools}
            dropped += cut
        else:
            kept[name] = raw
    added = {} if counting else {**policy.defaults, **forced}
    kept |= {name: Raw(value) for name, value in added.items() if name not in spelled}
    same = len(kept) == len(members) and all(kept.get(name) is raw for name, raw in members.items())
    return Gated(kept, tuple(dropped), not same)


def permits(policy: Policy, codec: Fields, name: str, features: frozenset[Feature], members: Members) -> bool:
    """Whether the policy lets a member that the gateway added pass. Otherwise it is left out: nobody asked for it."""
    try:
        return not gate({name: members[name]}, policy, codec, features, counting=True).dropped
    except RequestError:
        return False


def _spelled(members: Members, codec: Fields) -> dict[str, str]:
    """The client's spelling of each canonical name. The policy and an upstream could read a body with two of one differently."""
    spelled: dict[str, str] = {}
    for name in members:
        if spelled.setdefault(codec.names(name), name) != name:
            raise RequestError(Code.MALFORMED_BODY, "two spellings of one name stand in the body", pointer=token(name))
    return spelled


def _forced(policy: Policy, features: frozenset[Feature]) -> dict[str, bytes]:
    without = {name: value for name, (feature, value) in policy.force_without.items() if feature not in features}
    return {**without, **policy.force}


def _overwritten(raw: Raw, value: bytes) -> Raw:
    """The forced value; the client's own bytes where they say the same already, but for white space."""
    return raw if msgspec.json.format(bytes(raw), indent=-1) == value else Raw(value)


def _harmless(guard: Guard | None, raw: Raw, features: frozenset[Feature]) -> bool:
    return guard is not None and (guard.feature in features or bytes(raw).strip() in guard.harmless)


def _refused(policy: Policy, pointer: str) -> str:
    """The pointer of what a dropping policy leaves out. A rejecting one raises."""
    if policy.unknown is UnknownField.REJECT:
        raise RequestError(Code.FIELD_REJECTED, f"the request policy {policy.name} does not allow this", pointer=pointer)
    return pointer


def _tools(name: str, raw: Raw, policy: Policy, codec: Fields) -> tuple[Raw | None, list[str]]:
    """The tools that may pass (None when none is left, the client's own bytes when all are) and the pointers of those that may not."""
    pointer = token(name)
    elements = read({name: raw}, name, _ELEMENTS)
    if elements is None:
        return raw, []
    tools = [_one_reading(element, f"{pointer}/{index}") for index, element in enumerate(elements)]
    types = codec.tool_types(raw)
    refused = dict.fromkeys(suffix for suffix, kind in types if policy.tool_types is not None and kind not in policy.tool_types)
    if not refused:
        return raw, []
    cut = [_refused(policy, pointer + suffix) for suffix in refused]
    left = b",".join(_left(elements, tools, frozenset(refused)))
    return Raw(b"[" + left + b"]") if left else None, cut


def _one_reading(element: Raw, pointer: str) -> Members:
    """A tool's members. What reads as two types at once would pass the gate as one and reach the upstream as the other."""
    try:
        return parse(bytes(element))
    except RequestError as error:
        place = pointer + (error.pointer or "")
        raise RequestError(Code.MALFORMED_BODY, "a tool must be an object in which no name stands twice", pointer=place) from None


def _left(elements: Sequence[Raw], tools: Sequence[Members], refused: frozenset[str]) -> Iterator[bytes]:
    """The elements without what is refused: a whole element (`/0`), or one member of it (`/0/googleSearch`). All else keeps its bytes."""
    for index, (element, tool) in enumerate(zip(elements, tools, strict=True)):
        left = {name: value for name, value in tool.items() if f"/{index}{token(name)}" not in refused}
        if f"/{index}" in refused or (tool and not left):
            continue
        yield bytes(element) if len(left) == len(tool) else encode(left)
