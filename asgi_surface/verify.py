"""The operator's probe: asks each binding of a catalog for what it declares, and tells which declarations do not hold.

Every request goes through a `Gateway` of its own in this process, on a catalog of that one binding, in the binding's own surface: policy, dialect,
credential and engine are those of the route file. Runs when it is told to, never while requests are served.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface import members as m
from asgi_surface.catalog import AuthMode, Binding, Catalog, Route
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, Target
from asgi_surface.errors import RequestError
from asgi_surface.layers.exchange import ASGIApp, Message, Outcome, Receive, Scope, Send
from asgi_surface.layers.stack import Gateway
from asgi_surface.names import is_glob
from asgi_surface.outbound import upstream_model
from asgi_surface.plans import Limits, RouteCandidate
from asgi_surface.policy import permits
from asgi_surface.probes import CUES, PROBES, Answer, Ask, Finding, Probe, Refused, Verdict, text
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, IMPLIES, MESSAGES, METHODS, RESPONSES, Feature, Operation, Surface
from asgi_surface.upstream.embedded import EMBEDDED
from asgi_surface.upstream.providers import connect

SECONDS: Final = 60.0
"""How long one request may take in all."""

_CHEAP: Final = (Feature.STREAMING, Feature.TOOLS)
"""Features that are looked for even where they are not declared."""
_PATHS: Final[Mapping[tuple[Surface, Operation], str]] = {
    (CHAT, Operation.GENERATE): "/v1/chat/completions",
    (RESPONSES, Operation.GENERATE): "/v1/responses",
    (MESSAGES, Operation.GENERATE): "/v1/messages",
    (MESSAGES, Operation.COUNT_TOKENS): "/v1/messages/count_tokens",
}
_METHODS: Final = {meaning: method for method, meaning in METHODS.items()}
_HEADERS: Final = ((b"content-type", b"application/json"), (b"host", b"localhost"))
_NOT_COUNTED: Final = frozenset({"max_tokens", "generationConfig"})  # what generation takes and a count does not
_SKIPPED: Final = "cannot be asked"


class Line(Struct, frozen=True):
    """One line of the report. `bad` says that something declared is not so, or that a binding could not be asked."""

    text: str
    bad: bool = False


async def verify(
    catalog: Catalog, environ: Mapping[str, str], *, route: str | None = None, model: str | None = None, seconds: float = SECONDS
) -> AsyncIterator[Line]:
    """The report, line by line, as it becomes known.

    `route` narrows it to one route (unknown: nothing is told); `model` is the name to ask for where a route serves any; `seconds` bound each request.
    """
    for one in catalog.routes.values() if route is None else filter(None, [catalog.routes.get(route)]):
        for binding in one.bindings:
            async for line in _binding(catalog, environ, one, binding, model, seconds):
                yield line


async def _binding(
    catalog: Catalog, environ: Mapping[str, str], route: Route, binding: Binding, model: str | None, seconds: float
) -> AsyncIterator[Line]:
    place, name = f"{route.route_id}/{binding.declared}", _model(route, model)
    if name is None or (lack := _lack(binding, environ)):
        yield Line(f"{place}: {_SKIPPED}: {'name a model with --model' if name is None else lack}", bad=True)
        return
    yield Line(place)
    asker = _Asker(_narrowed(catalog, route, binding, name, seconds), environ)
    try:
        async for line in _features(asker):
            yield line
    finally:
        await asker.aclose()


def _model(route: Route, asked: str | None) -> str | None:
    """The name to ask for; None where the route serves whatever the client says."""
    for name in (asked or "", *(name for name in route.models if not is_glob(name))):
        with contextlib.suppress(RequestError):
            if found := upstream_model(route, name):
                return found
    return None


def _lack(binding: Binding, environ: Mapping[str, str]) -> str | None:
    """What the binding lacks to be asked at all."""
    provider = binding.provider
    if provider.embedded is not None:
        return EMBEDDED[provider.embedded]().unavailable()
    auth = provider.auth
    if auth is None or auth.command or auth.env is None or environ.get(auth.env):
        return None
    return f"{auth.env} is not set"


class _Narrowed(Struct, frozen=True):
    """A catalog of one binding, in which one model may be asked for. `declared` are the features that the route file says."""

    catalog: Catalog
    binding: Binding
    model: str
    declared: frozenset[Feature]


def _narrowed(catalog: Catalog, route: Route, binding: Binding, model: str, seconds: float) -> _Narrowed:
    """Nothing of the catalog that is between a client and the binding: no keys, no contract, no search, and nothing may be lost."""
    cheap = CARRIES[binding.surface].intersection(_CHEAP)
    wide = structs.replace(binding, features=binding.features | cheap, tolerate=frozenset(), limits=_within(binding.limits, seconds))
    alone = structs.replace(
        catalog,
        auth_mode=AuthMode.HOST,
        dry_run=False,
        web_search=None,
        routes={route.route_id: structs.replace(route, bindings=(wide,), contract=None)},
        names={model: (RouteCandidate(route.route_id),)},
        globs=(),
    )
    return _Narrowed(alone, wide, model, binding.features)


def _within(limits: Limits, seconds: float) -> Limits:
    return structs.replace(limits, **{name: min(value, seconds) for name, value in structs.asdict(limits).items() if name.endswith("_seconds")})


async def _features(asker: _Asker) -> AsyncIterator[Line]:
    """A line for each feature, and what the route file should say."""
    first = await asker.ask(text())
    for line in _first(first, asker.declared):
        yield line
    found: dict[Feature, Finding] = {}
    for feature in asker.askable() if first.verdict is Verdict.HOLDS else ():
        found[feature] = await asker.ask(PROBES[feature](asker.cue(feature)))
        for line in _told(feature, found[feature], asker.declared):
            yield line
    for line in _corrected(found, asker.declared):
        yield line


def _first(finding: Finding, declared: Sequence[Feature]) -> Iterator[Line]:
    """Whether there is an answer at all. Without one nothing else is asked for."""
    bad = finding.verdict is not Verdict.HOLDS
    yield Line(f"  {'text':<24}{finding}", bad)
    for feature in declared if bad else ():
        yield from _told(feature, Finding(Verdict.OPEN, "there is no text answer"), declared)


def _told(feature: Feature, finding: Finding, declared: Sequence[Feature]) -> Iterator[Line]:
    """The line of a feature. One that is not declared is told of only where it holds."""
    if feature in declared:
        yield Line(f"  {feature:<24}{finding}", finding.verdict is Verdict.FALSE)
    elif finding.verdict is Verdict.HOLDS:
        yield Line(f"  {feature:<24}holds, and could be declared too")


def _corrected(found: Mapping[Feature, Finding], declared: Sequence[Feature]) -> Iterator[Line]:
    """The declaration that would be true, where the file's is not: without what does not hold, and what means nothing without that."""
    wrong = {feature for feature in declared if feature in found and found[feature].verdict is Verdict.FALSE}
    if wrong:
        true = (f'"{feature}"' for feature in declared if feature not in wrong and IMPLIES.get(feature) not in wrong)
        yield Line(f"  features = [{', '.join(true)}]")


class _Asker:
    """Sends the requests of probes through a gateway, one after the other."""

    def __init__(self, narrowed: _Narrowed, environ: Mapping[str, str]) -> None:
        self._binding = narrowed.binding
        self._model = narrowed.model
        self._codec: Final[Codec] = CODECS[narrowed.binding.surface]
        self._upstreams = connect(narrowed.catalog, environ)
        self._head = _Head(self._upstreams)
        self._outcomes: list[Outcome] = []
        self._gateway = Gateway(catalog=narrowed.catalog, upstream=self._head, record=self._outcomes.append)
        self.declared = [feature for feature in Feature if feature in narrowed.declared]

    async def aclose(self) -> None:
        """Closes what the requests opened."""
        await self._gateway.aclose()
        await self._upstreams.aclose()

    def cue(self, feature: Feature) -> str:
        """What the server must be told to show the feature; only `echo` must."""
        return CUES.get(feature, "") if self._binding.provider.embedded == "echo" else ""

    def askable(self) -> list[Feature]:
        """The features to ask for: those declared, then those that are cheap to look for."""
        return [*self.declared, *(feature for feature in _CHEAP if feature in self._binding.features and feature not in self.declared)]

    async def ask(self, probe: Probe) -> Finding:
        """Runs a probe to its finding."""
        try:
            ask = next(probe)
            while True:
                try:
                    answer = await self._answer(ask)
                except Refused as refused:
                    ask = probe.throw(refused)
                else:
                    ask = probe.send(answer)
        except StopIteration as stop:
            finding: Finding = stop.value
            return finding
        except Refused as refused:
            return refused.finding

    async def _answer(self, ask: Ask) -> Answer:
        """The answer to one request. Raises `Refused`."""
        body = self._body(ask)
        self._head.forget()
        client = _Client(body)
        await self._gateway(_scope(*self._target(ask)), client.receive, client.send)
        code = self._outcomes.pop().code
        if code is not None:
            raise Refused(code, self._head.status)
        return Answer(self._codec, client.body, self._streams())

    def _streams(self) -> bool:
        """Whether the upstream's answer was a stream. A carrier's lines always are; where the file says that there are none, none is expected."""
        return self._binding.carrier is not None or self._binding.dialect.stream == "never" or self._head.streams

    def _body(self, ask: Ask) -> bytes:
        """The request in the binding's surface, as a conversion would say it, without what only the gateway would add and the policy forbids."""
        binding, counting = self._binding, ask.operation is Operation.COUNT_TOKENS
        target = Target(model=self._model, dialect=binding.dialect, seal_domain=binding.provider.seal_domain, features=binding.features)
        try:
            lowered = self._codec.lower(ask.request, target)
        except RequestError as error:
            raise Refused(error.code) from None
        said = {name: Raw(msgspec.json.encode(value)) for name, value in ask.more.get(binding.surface, {}).items()}
        members = {
            name: raw
            for name, raw in (lowered.members | said).items()
            if not (counting and name in _NOT_COUNTED) and self._permitted(name, lowered.added, lowered.members)
        }
        return m.encode(members)

    def _permitted(self, name: str, added: Collection[str], members: m.Members) -> bool:
        return name not in added or permits(self._binding.policy, self._codec, name, self._binding.features, members)

    def _target(self, ask: Ask) -> tuple[str, str]:
        """Path and query."""
        if self._binding.surface != GEMINI:
            return _PATHS[self._binding.surface, ask.operation], ""
        streams = ask.request.stream
        return f"/v1beta/models/{quote(self._model, safe='')}:{_METHODS[ask.operation, streams]}", "alt=sse" if streams else ""


def _scope(path: str, query: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": list(_HEADERS),
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
    }


class _Client:
    """A client in this process: sends one body, keeps the answer, and never leaves."""

    def __init__(self, body: bytes) -> None:
        self._asked = [body]
        self.body = b""

    async def receive(self) -> Message:
        """The request, then nothing more."""
        if not self._asked:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": self._asked.pop(), "more_body": False}

    async def send(self, message: Message) -> None:
        """A piece of the answer."""
        self.body += message.get("body", b"")


class _Head:
    """ASGI app around the upstreams that keeps the head of the last answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.status: int | None = None
        self.streams = False

    def forget(self) -> None:
        """Before the next request."""
        self.status, self.streams = None, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""

        async def keeping(message: Message) -> None:
            if message["type"] == "http.response.start":
                media = dict(message["headers"]).get(b"content-type", b"")
                self.status, self.streams = message["status"], media.lower().startswith(b"text/event-stream")
            await send(message)

        await self._app(scope, receive, keeping)
