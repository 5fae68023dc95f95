"""Reads the body, bounded, and asks the planner once; answers dry runs and model lists, which need no upstream.

The only layer that sees the catalog beside Authentication. Knows nothing of transports.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qs

from msgspec import structs

from asgi_surface.catalog import Catalog
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import ListQuery
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import Inbound, received
from asgi_surface.interception import Interceptor, by_name
from asgi_surface.layers.exchange import ASGIApp, Exchange, Receive, Scope, Send, exchange_of
from asgi_surface.members import Members, encode
from asgi_surface.planner import decide
from asgi_surface.plans import Decision, RequestPlan, RouteCandidate, explain
from asgi_surface.residents import Resident, Session
from asgi_surface.surfaces import Operation

# Both APIs give at most this many models a page.
_PAGE = 1_000

Candidates = Callable[[str, str], Awaitable[Sequence[RouteCandidate] | None]]
"""A host application's choice: surface and model to candidates, in order; None leaves it to the route file."""


class Planning:
    """ASGI layer. `catalog` may be a function that gives the catalog in force: a request keeps the one it was planned with.

    `interceptors` are hooks around requests and answers, in their order. Raises `ValueError` when two have one name.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        catalog: Catalog | Callable[[], Catalog],
        candidates: Candidates | None = None,
        interceptors: Sequence[Interceptor | Resident] = (),
    ) -> None:
        self.app = app
        self.catalog = catalog
        self.candidates = candidates
        self.interceptors = by_name(interceptors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Plans the request and passes it on; raises `RequestError` for a rejection, before anything within is called."""
        exchange = exchange_of(scope)
        catalog = self.catalog() if callable(self.catalog) else self.catalog
        if exchange.endpoint.operation in (Operation.LIST_MODELS, Operation.GET_MODEL):
            await _reply(send, 200, _models(exchange, catalog))
        elif catalog.dry_run or (exchange.header(b"x-surface-dry-run") or b"").strip().lower() == b"true":
            await _reply(send, 200, await self._dry_run(exchange, catalog))
        else:
            await self._plan(exchange, catalog)
            await self.app(scope, receive, send)

    async def _plan(self, exchange: Exchange, catalog: Catalog) -> None:
        """Writes plan and draft: the first time for what the client asks, with its interceptors' shares; then for each further round of it."""
        if exchange.next is not None and exchange.pin is not None:
            decision = exchange.pin(exchange.next)
        else:
            hooks = self._hooks()
            inbound, decision = await self._decide(exchange, catalog, hooks)
            opened = [hooks[name].open(decision.plan) for name in decision.plan.interceptors]
            exchange.rewriters = tuple(one for one in opened if not isinstance(one, Session))
            exchange.session = next((one for one in opened if isinstance(one, Session) and one.tool), None)
            if exchange.session is not None:
                exchange.pin = functools.partial(_pinned, inbound, catalog, decision.plan)
        exchange.plan, exchange.draft = decision.plan, decision.draft

    def _hooks(self) -> dict[str, Interceptor]:
        return {name: one.visit() if isinstance(one, Resident) else one for name, one in self.interceptors.items()}

    async def _dry_run(self, exchange: Exchange, catalog: Catalog) -> bytes:
        try:
            return explain((await self._decide(exchange, catalog, self._hooks()))[1].plan)
        except RequestError as rejection:
            return explain(rejection)

    async def _decide(self, exchange: Exchange, catalog: Catalog, hooks: Mapping[str, Interceptor]) -> tuple[Inbound, Decision]:
        inbound = await _inbound(exchange, catalog)
        _check_model(exchange, catalog, inbound.model)
        chosen = None if self.candidates is None else await self.candidates(inbound.surface, inbound.model)
        return inbound, decide(inbound, catalog, chosen, interceptors=tuple(hooks.values()))


def _pinned(inbound: Inbound, catalog: Catalog, first: RequestPlan, members: Members) -> Decision:
    """The plan of a further round: by the same planner and catalog, on the same route and binding. What the first left out of the client's body was
    said with its places; those of a later body mean nothing to the client.
    """
    inbound = structs.replace(inbound, members=members, body=encode(members))
    decision = decide(inbound, catalog, [RouteCandidate(first.route_id, first.upstream_surface)])
    kept = {name: getattr(first, name) for name in ("dropped", "tolerated", "emulated", "interceptors")}
    return structs.replace(decision, plan=structs.replace(decision.plan, **kept))


async def _reply(send: Send, status: int, body: bytes) -> None:
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _inbound(exchange: Exchange, catalog: Catalog) -> Inbound:
    _check_media_type(exchange.header(b"content-type"))
    length, coding = exchange.header(b"content-length"), exchange.header(b"content-encoding") or b""
    body = await exchange.inbox.body(catalog.limits.request_bytes, coding, length)
    exchange.spawn(exchange.watch)
    endpoint = exchange.endpoint
    inbound = received(
        endpoint.surface,
        endpoint.operation,
        body,
        model=endpoint.model,
        stream=endpoint.stream,
        query=exchange.query,
        headers=exchange.headers,
    )
    if inbound.carried is not None:
        exchange.carry(CODECS[inbound.surface], inbound.carried)
    return inbound


def _check_media_type(value: bytes | None) -> None:
    media, *parameters = (part.strip().lower() for part in (value or b"").split(b";"))
    charsets = [part.partition(b"=")[2].strip(b'"') for part in parameters if part.startswith(b"charset=")]
    if media != b"application/json" or any(charset not in (b"utf-8", b"utf8") for charset in charsets):
        raise RequestError(Code.UNSUPPORTED_MEDIA_TYPE, "the body must be sent as `content-type: application/json`")


def _check_model(exchange: Exchange, catalog: Catalog, model: str) -> None:
    key = next((one for one in catalog.keys if one.name == exchange.key), None)
    if key is not None and not catalog.allows(key, model):
        raise RequestError(Code.MODEL_FORBIDDEN, "this key may not use this model")


def _models(exchange: Exchange, catalog: Catalog) -> bytes:
    """The model list, or one entry of it, in the shape of the surface that asks; a key sees what it may use."""
    key = next((one for one in catalog.keys if one.name == exchange.key), None)
    entries = [entry for entry in catalog.entries() if key is None or catalog.allows(key, entry.name)]
    if exchange.endpoint.operation is Operation.LIST_MODELS:
        return exchange.face.models(entries, _list_query(exchange.query))
    entry = next((one for one in entries if one.name == exchange.endpoint.model), None)
    if entry is None:
        raise RequestError(Code.UNKNOWN_MODEL, "no route serves this model")
    return exchange.codec.model(entry)


def _list_query(query: str) -> ListQuery:
    """Paging: Anthropic's `limit`, `after_id`, `before_id`; Gemini's `pageSize` and `pageToken`."""
    said = {name: values[-1] for name, values in parse_qs(query).items()}
    limit = said.get("limit", said.get("pageSize"))
    if limit is not None and not (limit.isascii() and limit.isdigit() and 0 < len(limit) < 10 and int(limit)):
        raise RequestError(Code.UNSUPPORTED_REQUEST, "a page holds at least one model")
    return ListQuery(None if limit is None else min(int(limit), _PAGE), said.get("after_id", said.get("pageToken")), said.get("before_id"))
