"""What every client surface says of a hosted web search: the table's rows have one shape, and the words for the model are the same everywhere.

Knows no surface by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs.base import Dialect
from asgi_surface.ir import Citation
from asgi_surface.members import Members, token
from asgi_surface.residents import Finding

Object = dict[str, Any]

_TYPE: Final = "web_search"
_KIND: Final = re.compile(rb'"web_search')
"""How the type of a hosted search tool begins, versions and previews alike. A function of the client's has another type, whatever its name."""

DESCRIPTION: Final = (
    "Search the web for current information. Gives titles, URLs and excerpts of pages. Write the URL of every page that your answer rests on."
)
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to search for"}},
    "required": ["query"],
    "additionalProperties": False,
}

_LIST: Final = msgspec.json.Decoder(list[Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])
_MEMBERS: Final = msgspec.json.Decoder(Members)


class Wish(Struct, frozen=True, kw_only=True):
    """What a client asks of its hosted search: how many searches at most (None: not said), and the domains that may, or must not, be given.

    Each list of `allowed` domains holds by itself. Where the user is, how fresh or how long results should be and the like are hints for the
    provider's own search: no back end is asked for them.
    """

    uses: int | None = None
    allowed: tuple[tuple[str, ...], ...] = ()
    blocked: tuple[str, ...] = ()


def limits(said: Object, uses: object = None) -> Wish:
    """The limits that one hosted tool states."""
    allowed = strings(said.get("allowed_domains"))
    return Wish(uses=count(uses), allowed=(allowed,) if allowed else (), blocked=strings(said.get("blocked_domains")))


def strictest(wishes: Sequence[Wish]) -> Wish | None:
    """What several hosted tools of one request ask for, which is run as one search: the limits of all. None for none."""
    if not wishes:
        return None
    uses = [wish.uses for wish in wishes if wish.uses is not None]
    allowed, blocked = ([one for wish in wishes for one in getattr(wish, name)] for name in ("allowed", "blocked"))
    return Wish(uses=min(uses, default=None), allowed=tuple(allowed), blocked=tuple(dict.fromkeys(blocked)))


class Upstream(Struct, frozen=True, kw_only=True):
    """Who is asked again. With `pairs` it is not to be sent parallel calls; `native`ly it reads the members as they are, in its `dialect`."""

    pairs: bool
    native: bool
    dialect: Dialect


class Words(Struct, frozen=True, kw_only=True):
    """One client surface's words for a search.

    `wish(members)` is what the hosted tool asks for, None where there is none, and `unheard(members)` are pointers to what of it is left out.
    `names(members)` are the client's own tools. `offered(members, name)` has a function of that name in the hosted tool's place, and in a choice of
    it. `relaxed(members, name, last)` forces no call any more; the `last` time none of the function is possible. `replayed(members, ours)` tells the
    gateway's own searches in the history as text; `ours` says that a search without an id is one too. `continued(members, answer, findings,
    upstream)` adds the model's turn, as it stands in the whole answer, and what its calls gave, each call as a turn of its own where they may not be
    parallel.
    """

    wish: Callable[[Members], Wish | None]
    unheard: Callable[[Members], Iterable[str]]
    names: Callable[[Members], Collection[str]]
    offered: Callable[[Members, str], Members]
    relaxed: Callable[[Members, str, bool], Members]
    replayed: Callable[[Members, bool], Members]
    continued: Callable[[Members, bytes, Sequence[Finding], Upstream], Members]


def elements(raw: Raw | bytes | None) -> list[Raw]:
    """The elements of a list; none of anything else, which the planner will name."""
    try:
        return [] if raw is None else _LIST.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return []


def fields(raw: Raw | bytes | None) -> Object:
    """The members of an object; none of anything else."""
    try:
        return {} if raw is None else _OBJECT.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}


def obj(value: object) -> Object:
    """A value that is to be an object; an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def word(value: object) -> str:
    """A value that is to be a text; "" in the place of anything else."""
    return value if isinstance(value, str) else ""


def outline(raw: Raw) -> Members:
    """The same without looking into them: a tool's schema may be large."""
    try:
        return _MEMBERS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}


def hosted(members: Members) -> list[Object]:
    """The tools that are a hosted search by their type."""
    return [fields(raw) for raw in elements(members.get("tools")) if searches(raw)]


def located(members: Members) -> Iterator[tuple[str, Object]]:
    """The same, each with its pointer."""
    tools = enumerate(elements(members.get("tools")))
    return ((f"/tools/{place}", fields(raw)) for place, raw in tools if searches(raw))


def beyond(place: str, said: Object, heard: Collection[str]) -> Iterator[str]:
    """Pointers to the members of an object at a place that are not heard, or that hold no bound which could be kept. What is null or false asks for
    nothing.
    """
    for name, value in said.items():
        if value is not None and value is not False and not (name in heard and _BOUNDS.get(name, _any)(value)):
            yield place + token(name)


def _any(_value: object) -> bool:
    return True


def _domains(value: object) -> bool:
    return isinstance(value, list) and len(strings(value)) == len(value)


_BOUNDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "max_uses": lambda value: count(value) is not None,
    "filters": lambda value: isinstance(value, dict),
    **dict.fromkeys(("allowed_domains", "blocked_domains", "excludeDomains", "exclude_domains"), _domains),
}
"""Whether what a member holds is a bound."""


def searches(raw: Raw) -> bool:
    """Whether a tool is one."""
    return _KIND.match(outline(raw).get("type", b"")) is not None


def packed(value: object) -> Raw:
    """A value as JSON."""
    return Raw(msgspec.json.encode(value))


def is_hosted(tool: Mapping[str, Any]) -> bool:
    """Whether the choice of a tool is that of one."""
    kind = tool.get("type")
    return isinstance(kind, str) and kind.startswith(_TYPE)


def strings(value: object) -> tuple[str, ...]:
    """The strings of a list."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def count(value: object) -> int | None:
    """A number of searches."""
    return value if type(value) is int and value >= 0 else None


Turn = tuple[list[Object], list[tuple[Object, Finding]]]
"""What the model said, and each of its calls with what it gave."""


def turns(said: Sequence[Object], called: Callable[[Object], object], findings: Sequence[Finding], *, pairs: bool) -> list[Turn]:
    """The model's pieces as turns, in its order: all in one, or cut behind each call where the upstream is not to be sent parallel calls."""
    found = iter(findings)
    cut: list[Turn] = [([], [])]
    for piece in said:
        if pairs and cut[-1][1]:
            cut.append(([], []))
        cut[-1][0].append(piece)
        if called(piece):
            cut[-1][1].append((piece, next(found)))
    if len(cut) > 1 and not cut[-1][1]:  # what was said behind the last call
        cut[-2][0].extend(cut.pop()[0])
    return cut


def replaced(members: Members, **changed: Raw | None) -> Members:
    """The members with these anew; None leaves one out."""
    kept = {name: changed.get(name, raw) for name, raw in members.items()}
    return {name: raw for name, raw in (kept | changed).items() if raw is not None}


def told(query: str, sources: Iterable[Citation]) -> str:
    """A function's result: what was found, for the model."""
    found = [f"{number}. {_lines(source.title, source.url, source.excerpt)}" for number, source in enumerate(sources, 1)]
    return "\n".join([f'Results of the web search for "{query}":', *found]) if found else f'The web search for "{query}" found nothing.'


def _lines(*lines: str) -> str:
    return "\n   ".join(line for line in lines if line)


def remembered(query: str, sources: Sequence[Citation], *, failed: bool) -> str:
    """A search of an earlier turn, as text of the assistant's, with the excerpts that the client has brought back."""
    head = f'Searched the web for "{query}".' if query else "Searched the web."
    if failed:
        return f"[{head} The search failed.]"
    found = [_lines(f"- {source.title} {source.url}" if source.title else f"- {source.url}", source.excerpt) for source in sources]
    return "\n".join([f"[{head} Found:", *found]) + "]" if found else f"[{head}]"
