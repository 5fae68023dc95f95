"""The interceptor: which requests are redirected, the hook around one of them, and its session of searches.

Knows no surface: what each of them says stands in its row of `SURFACES`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from asgi_surface.catalog import Catalog
from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code, RequestError
from asgi_surface.interception import Discerning, Interceptor
from asgi_surface.interceptors.web_search import chat, gemini, messages, responses
from asgi_surface.interceptors.web_search.backend import Backend, Hit, SearchFailed
from asgi_surface.interceptors.web_search.words import Upstream, Wish, Words, told
from asgi_surface.ir import Citation
from asgi_surface.members import Members
from asgi_surface.plans import Native, RequestPlan
from asgi_surface.residents import FAILED, NO_MORE, Finding, Resident, Session
from asgi_surface.searching import SearchSettings
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature, Operation, Surface

_LOG: Final = logging.getLogger("asgi_surface")

NAME: Final = "web_search"

SURFACES: Final[Mapping[Surface, Words]] = {CHAT: chat.WORDS, RESPONSES: responses.WORDS, MESSAGES: messages.WORDS, GEMINI: gemini.WORDS}
"""The client surfaces on which a search can be asked for."""

_SINGLE: Final = frozenset({Feature.MULTIPLE_CHOICES, Feature.BACKGROUND})
_NO_QUERY: Final = Finding((), "The search failed: the call holds no query.", failed=True)


class WebSearch(Resident):
    """Runs the hosted searches of clients whose model's provider has none, or of the routes that the settings name."""

    name = NAME

    def __init__(self, catalog: Catalog, settings: SearchSettings, environ: Mapping[str, str]) -> None:
        self.settings = settings
        self.backend = Backend(settings, environ)
        self._calling = frozenset(route for _, route in _declaring(catalog, Feature.TOOLS))
        self._hosting = frozenset(_declaring(catalog, Feature.HOSTED_TOOLS))
        self._bindings = {(binding.surface, route.route_id): binding for route in catalog.routes.values() for binding in route.bindings}

    def visit(self) -> Interceptor:
        """The hook around one request."""
        return _Visit(self)

    def redirects(self, surface: Surface, route_id: str, *, converted: bool) -> bool:
        """Whether hosted searches of a surface's clients are run here when this route serves: where some binding of it can call a function, and the
        one that serves runs no hosted tools for the client's surface, or the settings say so.
        """
        hosted = not converted and (surface, route_id) in self._hosting
        return route_id in self._calling and (route_id in self.settings.routes or not hosted)

    def upstream(self, plan: RequestPlan) -> Upstream:
        """The planned binding, as far as going on with it needs to know it."""
        binding = self._bindings[plan.upstream_surface, plan.route_id]
        pairs = Feature.PARALLEL_TOOLS not in binding.features
        return Upstream(pairs=pairs, native=isinstance(plan.mode, Native), dialect=binding.dialect)


def _declaring(catalog: Catalog, feature: Feature) -> Iterator[tuple[Surface, str]]:
    for route in catalog.routes.values():
        yield from ((binding.surface, route.route_id) for binding in route.bindings if feature in binding.features)


class _Visit(Discerning):
    """One request. It is asked for each route, once or twice, and `request` right after that for the same one."""

    name = NAME

    def __init__(self, search: WebSearch) -> None:
        self._search = search
        self._surface, self._words = CHAT, chat.WORDS
        self._redirects = False
        self._asked = "", False
        self._offers: dict[tuple[str, bool], _Offer] = {}

    def applies(self, surface: Surface, route_id: str, members: Members) -> bool:
        """Where a hosted search is to be redirected, or the history tells of one of the gateway's."""
        return self._judged(surface, route_id, members, converted=False)

    def differs(self, surface: Surface, route_id: str, members: Members) -> bool:
        """Where the provider runs a hosted search of its own surface's clients: no conversion can ask it to."""
        words = SURFACES.get(surface)
        served = [self._search.redirects(surface, route_id, converted=converted) for converted in (False, True)]
        return words is not None and served == [False, True] and words.wish(members) is not None

    def converts(self, surface: Surface, route_id: str, members: Members) -> bool:
        """The same as `applies`, for a converter."""
        return self._judged(surface, route_id, members, converted=True)

    def _judged(self, surface: Surface, route_id: str, members: Members, *, converted: bool) -> bool:
        words = SURFACES.get(surface)
        if words is None:
            return False
        self._surface, self._words, self._asked = surface, words, (route_id, converted)
        self._redirects = words.wish(members) is not None and self._search.redirects(surface, route_id, converted=converted)
        return self._redirects or words.replayed(members, False) is not members

    def dropped(self, members: Members) -> Iterable[str]:
        """What the hosted tool asks for beyond what a back end is asked."""
        return self._words.unheard(members) if self._redirects else ()

    def request(self, members: Members) -> Members:
        """The members with the function in the hosted tool's place."""
        words = self._words
        members = words.replayed(members, self._redirects)
        wish = words.wish(members) if self._redirects else None
        name = ""
        if wish is not None:
            self._check(members)
            name = _unique(words.names(members))
            members = words.offered(members, name)
        self._offers[self._asked] = _Offer(words, members, name, wish or Wish())
        return members

    def _check(self, members: Members) -> None:
        """Raises `RequestError` for an answer that cannot be stitched from rounds."""
        for demand in CODECS[self._surface].needs(members, False).demands:
            if demand.feature in _SINGLE:
                text = f"a search that the gateway runs takes no `{demand.feature}` beside it"
                raise RequestError(Code.UNSUPPORTED_REQUEST, text, pointer=demand.pointer)

    def open(self, plan: RequestPlan) -> Session:
        """The session; one without a tool where no answer is asked for, or none of a search."""
        ways = [(plan.route_id, converted) for converted in ((False,) if isinstance(plan.mode, Native) else (True, False))]
        return _Searches(self._search, next(self._offers[way] for way in ways if way in self._offers), plan)


class _Offer(Struct, frozen=True):
    """What the model was offered: the members as they go on, the function's name ("": none), and what the client asked of its tool."""

    words: Words
    members: Members
    tool: str
    wish: Wish


def _unique(names: Collection[str]) -> str:
    """The function's name: a client's own may have the same."""
    name, number = NAME, 1
    while name in names:
        number += 1
        name = f"{NAME}_{number}"
    return name


class _Searches(Session):
    """The searches of one request."""

    def __init__(self, search: WebSearch, offer: _Offer, plan: RequestPlan) -> None:
        self.tool = offer.tool if plan.operation is Operation.GENERATE else ""
        self.rounds = search.settings.rounds
        self._backend = search.backend
        self._most = search.settings.max_results
        self._upstream = search.upstream(plan)
        self._words = offer.words
        self._wish = offer.wish
        self._members = offer.members
        self._left = offer.wish.uses

    async def search(self, query: str) -> Finding:
        """One search, filtered as the client asked. Any failure is told to the model as one."""
        if self._left == 0:
            return NO_MORE
        if not query:
            return _NO_QUERY
        if self._left is not None:
            self._left -= 1
        try:
            hits = await self._backend.find(query)
        except SearchFailed as failed:
            _LOG.warning("a web search failed: %s", failed)
            return FAILED
        kept = [hit for hit in hits if self._wanted(hit)][: self._most]
        sources = tuple(Citation(hit.url, hit.title, excerpt=hit.excerpt) for hit in kept)
        return Finding(sources, told(query, sources))

    def _wanted(self, hit: Hit) -> bool:
        allowed, blocked = self._wish.allowed, self._wish.blocked
        return all(_within(hit.url, domains) for domains in allowed) and not _within(hit.url, blocked)

    def next(self, turn: bytes, findings: Sequence[Finding], *, last: bool) -> Members:
        """The members of the next request. No call is forced a second time, and none is possible when no search is left."""
        words = self._words
        members = words.continued(self._members, turn, findings, self._upstream)
        self._members = words.relaxed(members, self.tool, last or self._left == 0)
        return self._members


def _within(url: str, domains: Sequence[str]) -> bool:
    """Whether a URL is of one of the domains, which may name a path, and mean all that is below them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    for domain in domains:
        name, slash, path = domain.lower().partition("://")[2].partition("/") if "://" in domain else domain.lower().partition("/")
        name = name.removeprefix("*.").removeprefix("www.")
        if (host == name or host.endswith("." + name)) and parts.path.lower().startswith(slash + path):
            return True
    return False
