"""The catalog's providers as one ASGI app: a connection engine or an embedded upstream each, and the credential of the planned binding.

The one place where secrets are read and put into a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from asgi_surface.catalog import Binding, Catalog, Provider
from asgi_surface.surfaces import Surface
from asgi_surface.upstream.asgi import ASGIApp, Receive, Scope, Send
from asgi_surface.upstream.embedded import EMBEDDED
from asgi_surface.upstream.http1 import HttpUpstream
from asgi_surface.upstream.httpx_transport import HttpxUpstream
from asgi_surface.upstream.tokens import Header, Token, renewing

Place = tuple[str, Surface]


class Upstreams:
    """The innermost app: sends each call to the provider that its plan names, with the binding's credential. Knows nothing else of plans.

    `secrets` are the providers' keys and hosts, for whoever must keep them out of texts. `tokens` are credentials that can be had anew when the
    upstream refuses one.
    """

    def __init__(
        self, apps: Mapping[str, ASGIApp], credentials: Mapping[Place, Header], secrets: Sequence[str], tokens: Mapping[Place, Token] | None = None
    ) -> None:
        self._apps: Final = dict(apps)
        self._credentials: Final = dict(credentials)
        self._tokens: Final = dict(tokens or {})
        self.secrets: Final = secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call. The plan's names come from the catalog that built this, so an unknown one is a programming error (`KeyError`)."""
        plan = scope["asgi_surface"].planned()
        app, place = self._apps[plan.provider], (plan.route_id, plan.upstream_surface)
        if (token := self._tokens.get(place)) is not None:
            await renewing(app, token, scope, receive, send)
            return
        if (credential := self._credentials.get(place)) is not None:
            scope["headers"] = [*scope["headers"], credential]
        await app(scope, receive, send)

    async def warm(self) -> None:
        """Starts the embedded models that can be started."""
        await asyncio.gather(*(app.warm() for app in self._able("warm") if app.unavailable() is None))

    async def aclose(self) -> None:
        """Closes every connection and embedded model."""
        await asyncio.gather(*(app.aclose() for app in self._able("aclose")))

    def _able(self, method: str) -> list[Any]:
        return [app for app in self._apps.values() if hasattr(app, method)]


def connect(catalog: Catalog, environ: Mapping[str, str]) -> Upstreams:
    """The upstreams of a catalog. Opens nothing yet. A variable that is not set leaves its provider without credential."""
    places = {(route.route_id, binding.surface): binding for route in catalog.routes.values() for binding in route.bindings}
    providers = {binding.provider.name: binding.provider for binding in places.values()}
    # An upstream's host must no more be told than its key. The list grows when a token is renewed.
    secrets = [host for provider in providers.values() if (host := urlsplit(provider.base_url or "").hostname)]
    declared = dict.fromkeys(binding.provider.auth for binding in places.values())
    sources = {auth: Token(auth, environ, secrets) for auth in declared if auth is not None}
    found = {place: sources[auth] for place, binding in places.items() if (auth := binding.provider.auth) is not None}
    tokens = {place: token for place, token in found.items() if _renewable(places[place])}
    credentials = {place: header for place, token in found.items() if place not in tokens and (header := token.header) is not None}
    apps = {name: _TRANSPORTS[provider.transport](catalog, provider) for name, provider in providers.items()}
    return Upstreams(apps, credentials, secrets, tokens)


def _renewable(binding: Binding) -> bool:
    """Whether the upstream's tokens run out: where a command makes them, and on Zed."""
    return bool(binding.carrier or (binding.provider.auth and binding.provider.auth.command))


def _http1(catalog: Catalog, provider: Provider) -> ASGIApp:
    if provider.embedded is not None:
        app: ASGIApp = EMBEDDED[provider.embedded]()
        return app
    # llama.cpp closes the connection it promised to keep, after a stream.
    reuse = provider.engine != "llama-cpp"
    return HttpUpstream(provider.base_url or "", connect_seconds=catalog.limits.connect_seconds, reuse_after_stream=reuse)


def _httpx(catalog: Catalog, provider: Provider) -> ASGIApp:
    return HttpxUpstream(provider.base_url or "", connect_seconds=catalog.limits.connect_seconds)


_TRANSPORTS: Final[dict[str, Callable[[Catalog, Provider], ASGIApp]]] = {"http1": _http1, "httpx": _httpx}
