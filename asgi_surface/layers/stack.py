"""All layers folded into one: `Gateway`, the app a server runs or a host mounts. The only module that sees every layer.

Nothing is read or opened in the constructor: the route file is read at lifespan start-up or, where no lifespan comes, at the first request.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from asgi_surface.catalog import Catalog
from asgi_surface.errors import Code, ConfigError, GatewayError, Problem
from asgi_surface.files import default_path, load_catalog
from asgi_surface.interception import Interceptor, by_name
from asgi_surface.interceptors.web_search import WebSearch
from asgi_surface.layers.authentication import Authentication
from asgi_surface.layers.conversion import Conversion
from asgi_surface.layers.detection import SurfaceDetection
from asgi_surface.layers.exchange import KEY, ASGIApp, Message, Outcome, Receive, Scope, Send, log
from asgi_surface.layers.planning import Candidates, Planning
from asgi_surface.layers.relay import StreamRelay
from asgi_surface.layers.rounds import Rounds
from asgi_surface.layers.whitelist import PolicyWhitelist
from asgi_surface.residents import Resident
from asgi_surface.upstream.carried import Carried
from asgi_surface.upstream.providers import Upstreams, connect

_LOG: Final = logging.getLogger("asgi_surface")


class Gateway:
    """The gateway as one ASGI app or layer.

    `app` is the host's app that gets every other path. `routes` names a route file (default: `ASGI_SURFACE_ROUTES`, else `routes.toml`);
    `catalog` replaces it. `upstream` is an ASGI app that replaces all providers. `candidates` is a host's own choice of routes. `record` gets each
    request's `Outcome`. `warm` starts embedded models at start-up. `interceptors` are hooks around requests and answers; no two may have one name.
    """

    def __init__(  # noqa: PLR0913 -- one argument a seam
        self,
        app: ASGIApp | None = None,
        *,
        routes: str | os.PathLike[str] | None = None,
        catalog: Catalog | None = None,
        upstream: ASGIApp | None = None,
        candidates: Candidates | None = None,
        interceptors: Sequence[Interceptor] = (),
        short_paths: bool | None = None,
        record: Callable[[Outcome], None] = log,
        warm: bool = False,
    ) -> None:
        if isinstance(app, Gateway):
            raise TypeError("two gateways stand in one stack")
        self.app = app
        hooks = tuple(by_name(interceptors).values())
        self._options = _Options(routes, catalog, upstream, candidates, hooks, warm)
        self._running: _Running | None = None
        self._problem: str | None = None
        self._surfaces = SurfaceDetection(self._inner, fallback=app, short_paths=short_paths, record=record)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        else:
            await self._surfaces(scope, receive, send)

    async def _inner(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request on a surface path. Without a lifespan the first one starts the gateway."""
        if self._running is None and self._problem is None:
            self._start()
        if self._running is None:
            raise GatewayError(Code.NOT_CONFIGURED, "the gateway's route file is not valid")
        await self._running.layers(scope, receive, send)

    def _start(self) -> None:
        try:
            self._running = self._options.run()
        except ConfigError as error:
            self._problem = str(error)
            _LOG.error("the route file is not valid:\n%s", error)

    async def start(self) -> None:
        """Reads the route file and opens what it names. Raises `ConfigError`, and `GatewayError` for a model that cannot be warmed."""
        self._running = self._options.run()
        if self._options.warm:
            await self._running.upstreams.warm()

    async def aclose(self) -> None:
        """Closes every upstream connection and embedded model."""
        if self._running is not None:
            await self._running.upstreams.aclose()

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Starts before the host does and closes after it, whether or not the host knows the lifespan protocol."""
        message = await receive()
        if KEY in scope:
            await send({"type": "lifespan.startup.failed", "message": "two gateways stand in one stack"})
            return
        try:
            await self.start()
        except ConfigError as error:
            await send({"type": "lifespan.startup.failed", "message": f"the route file is not valid:\n{error}"})
            return
        except GatewayError as error:
            await self.aclose()
            await send({"type": "lifespan.startup.failed", "message": error.text})
            return
        host = _Host(self, message, receive, send)
        await host.run(self.app, {**scope, KEY: self})


class _Options(Struct, frozen=True):
    """What the constructor was told, until it is needed."""

    routes: str | os.PathLike[str] | None
    catalog: Catalog | None
    upstream: ASGIApp | None
    candidates: Candidates | None
    interceptors: tuple[Interceptor, ...]
    warm: bool

    def run(self) -> _Running:
        """Reads the route file and stacks the layers. Raises `ConfigError`."""
        catalog = self.catalog or load_catalog(self.routes or default_path(), serving=True)
        upstreams = connect(catalog, os.environ)
        relay = StreamRelay(Carried(self.upstream or upstreams, secrets=upstreams.secrets))
        conversion = Conversion(relay, secrets=upstreams.secrets)
        hooks = self._hooks(catalog)
        planning = Planning(PolicyWhitelist(conversion), catalog=catalog, candidates=self.candidates, interceptors=hooks)
        return _Running(Authentication(Rounds(planning), catalog=catalog), upstreams)

    def _hooks(self, catalog: Catalog) -> tuple[Interceptor | Resident, ...]:
        """The host's interceptors, and behind them, nearest to the model, the gateway's own."""
        if catalog.web_search is None:
            return self.interceptors
        search = WebSearch(catalog, catalog.web_search, os.environ)
        if any(hook.name == search.name for hook in self.interceptors):
            raise ConfigError((Problem(f"interceptors.{search.name}", "an interceptor of the host has this name already", "give that one another"),))
        return (*self.interceptors, search)


class _Running(Struct, frozen=True):
    """The layers below SurfaceDetection, and what must be closed at the end."""

    layers: ASGIApp
    upstreams: Upstreams


class _Host:
    """The lifespan of the app within, which may not know the protocol: then the gateway answers for it."""

    def __init__(self, gateway: Gateway, first: Message, receive: Receive, send: Send) -> None:
        self._gateway = gateway
        self._first: list[Message] = [first]
        self._server_receive = receive
        self._server_send = send
        self._answered = False

    async def run(self, app: ASGIApp | None, scope: Scope) -> None:
        try:
            if app is not None:
                await app(scope, self._receive, self._send)
        except Exception:
            if self._answered:
                raise
            _LOG.debug("the host app does not speak the lifespan protocol")
        finally:
            if self._answered:
                await self._gateway.aclose()
        if not self._answered:
            await self._alone()

    async def _alone(self) -> None:
        await self._server_send({"type": "lifespan.startup.complete"})
        try:
            await self._server_receive()
        finally:
            await self._gateway.aclose()
        await self._server_send({"type": "lifespan.shutdown.complete"})

    async def _receive(self) -> Message:
        return self._first.pop() if self._first else await self._server_receive()

    async def _send(self, message: Message) -> None:
        self._answered = True
        if message["type"].startswith("lifespan.shutdown"):
            # Once the server has heard this it may end the process.
            await self._gateway.aclose()
        await self._server_send(message)
