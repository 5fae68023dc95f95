"""The permitted ordered pairs of surfaces, and the one way from one to the other: lift, judge, prune, lower.

Every loss is a verdict of the source's table or a declared tolerance, with its pointer; an unlisted pair does not exist. Knows no wire.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct, structs

from asgi_surface import ir
from asgi_surface.codecs.base import Codec, Lifted, Lowered, Target
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface
from asgi_surface.verdicts import Mention, Row, Verdict


class _Placed(Protocol):
    @property
    def at(self) -> str: ...


Node = TypeVar("Node", bound=_Placed)


class Pair(Struct, frozen=True):
    """A permitted conversion: the client's surface and the upstream's."""

    source: Surface
    target: Surface

    @property
    def name(self) -> str:
        """How route files, plans and headers call it."""
        return f"{self.source}->{self.target}"


PAIRS: Final[dict[tuple[Surface, Surface], Pair]] = {pair: Pair(*pair) for pair in itertools.permutations((CHAT, RESPONSES, MESSAGES, GEMINI), 2)}
"""Every permitted ordered pair."""


# Reasoning that no provider signed. Where an upstream asks for no signature, it can be said.
_UNSEALED: Final = frozenset(
    {
        *("block:thinking.unsealed", "item:reasoning.unsealed", "part:thought"),
        *("part:reasoning_content", "part:reasoning", "part:reasoning_details"),
    }
)


class Conversion(Struct, frozen=True):
    """A request in the target's words, and what became of the constructs that are not said as they were.

    `emulated` are those that the source's table says another way, and then those of which only lowering could know it.
    """

    lowered: Lowered
    request: ir.Request
    dropped: tuple[Mention, ...]
    tolerated: tuple[Mention, ...]
    emulated: tuple[Mention, ...]


def convert(source: Codec, lifted: Lifted, codec: Codec, target: Target, tolerate: Collection[str]) -> Conversion:
    """The request for a target. `tolerate` names refused constructs that may be dropped. Raises `RequestError` with the client's pointer."""
    mentions = lifted.mentions if target.dialect.signatures else [mention for mention in lifted.mentions if mention.construct not in _UNSEALED]
    advisory, tolerated = judge(mentions, source.rows, codec.surface, tolerate)
    lost = {mention.pointer for mention in (*advisory, *tolerated)}
    empty = tuple(_empty(lifted.request.turns, lost))
    request = prune(lifted.request, lost | {mention.pointer for mention in empty})
    lowered = codec.lower(request, target)
    # Answers repeat what was asked of the upstream.
    request = prune(request, {mention.pointer for mention in lowered.dropped})
    emulated = (mention for mention in mentions if source.rows[mention.construct].verdicts[codec.surface] is Verdict.EMULATED)
    return Conversion(lowered, request, (*advisory, *empty, *lowered.dropped), tolerated, (*emulated, *lowered.emulated))


def _empty(turns: Collection[ir.Turn], lost: Collection[str]) -> Iterator[Mention]:
    """Turns without content, which vanish: a user's is refused, no surface takes one. What a turn held may be lost by a verdict, which is told."""
    for turn in turns:
        if turn.parts or any(place.startswith(f"{turn.at}/") or turn.at.startswith(f"{place}/") for place in lost):
            continue
        if turn.role is ir.Role.USER:
            raise RequestError(Code.UNREPRESENTABLE, "a user turn without content cannot be said", pointer=turn.at)
        yield Mention("turn:empty", turn.at)


def judge(
    mentions: Collection[Mention], rows: Mapping[str, Row], target: Surface, tolerate: Collection[str]
) -> tuple[tuple[Mention, ...], tuple[Mention, ...]]:
    """The mentions that are dropped because they change no answer, and those that an operator tolerates to lose. Raises for a refused one."""
    advisory, tolerated = [], []
    for mention in mentions:
        row = rows[mention.construct]
        verdict = row.verdicts[target]
        if verdict is Verdict.ADVISORY:
            advisory.append(mention)
        elif verdict is Verdict.REFUSED:
            if mention.construct not in tolerate:
                raise RequestError(Code.UNREPRESENTABLE, f"{target} cannot say `{mention.construct}`: {row.why}", pointer=mention.pointer)
            tolerated.append(mention)
    return tuple(advisory), tuple(tolerated)


def prune(request: ir.Request, places: Collection[str]) -> ir.Request:
    """The request without the nodes at these pointers. A turn that loses all its parts goes with them."""
    if not places:
        return request
    settings = request.settings
    gone = {name: None for name, at in settings.at.items() if at in places}
    return structs.replace(
        request,
        turns=tuple(turn for turn in _turns(request.turns, places) if turn.parts),
        tools=_kept(request.tools, places),
        choice=_unless(request.choice, places),
        effort=_unless(request.effort, places),
        format=_unless(request.format, places),
        settings=structs.replace(settings, **gone) if gone else settings,
    )


def _turns(turns: tuple[ir.Turn, ...], places: Collection[str]) -> Iterator[ir.Turn]:
    for turn in _kept(turns, places):
        yield structs.replace(turn, parts=tuple(_inner(part, places) for part in _kept(turn.parts, places)))


def _inner(part: ir.Part, places: Collection[str]) -> ir.Part:
    return structs.replace(part, parts=_kept(part.parts, places)) if isinstance(part, ir.Result) else part


def _kept(nodes: tuple[Node, ...], places: Collection[str]) -> tuple[Node, ...]:
    return tuple(node for node in nodes if node.at not in places)


def _unless(node: Node | None, places: Collection[str]) -> Node | None:
    return None if node is None or node.at in places else node
