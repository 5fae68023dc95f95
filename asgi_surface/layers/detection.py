"""The outermost layer: tells surface paths from all others, and stands around one request from its head to its record.

Everything that can go wrong within becomes an answer here, in the client's envelope. Knows nothing of routes.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import anyio
from anyio.abc import TaskGroup

from asgi_surface import surfaces
from asgi_surface.codecs import FACES
from asgi_surface.errors import Code, GatewayError, RequestError
from asgi_surface.layers.exchange import KEY, ASGIApp, ClientGone, Ending, Exchange, Headers, Inbox, Outcome, Receive, Scope, Send, Spawn, Task, log
from asgi_surface.layers.exit import Exit, Phase
from asgi_surface.plans import RequestPlan
from asgi_surface.surfaces import CHAT, Endpoint

_LOG: Final = logging.getLogger("asgi_surface")


class SurfaceDetection:
    """ASGI layer. `app` gets requests on surface paths, with their `Exchange` in the scope; all else goes to `fallback` untouched.

    `short_paths` serves the aliases without `/v1` too; without a `fallback` that is the default. `record` gets every request's `Outcome`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        fallback: ASGIApp | None = None,
        short_paths: bool | None = None,
        record: Callable[[Outcome], None] = log,
    ) -> None:
        self.app = app
        self.fallback = fallback
        self.short_paths = fallback is None if short_paths is None else short_paths
        self.record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one ASGI connection."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        if KEY in scope:
            raise RuntimeError("two gateways stand in one stack")
        headers = tuple((name.lower(), value) for name, value in scope["headers"])
        names = frozenset(name.decode("latin-1") for name, _ in headers)
        found = surfaces.find(path_of(scope), names, short=self.short_paths)
        if found is None and self.fallback is not None:
            await self.fallback(scope, receive, send)
            return
        endpoint, method = found or (Endpoint(CHAT, surfaces.Operation.GENERATE), None)
        await self._serve(scope, receive, send, headers, endpoint, method)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.fallback is not None:
            await self.fallback(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, endpoint: Endpoint, method: str | None) -> None:
        started = time.monotonic()
        query = scope.get("query_string", b"").decode("latin-1")
        exchange = Exchange(endpoint, FACES[endpoint.surface], secrets.token_hex(16), headers, query, Inbox(receive))
        exit_ = Exit(send, exchange)
        try:
            async with anyio.create_task_group() as group:
                exchange.leave = group.cancel_scope.cancel
                exchange.spawn = _spawner(group)
                with contextlib.suppress(ClientGone):
                    await self._answer({**scope, KEY: exchange}, receive, exit_, method)
                group.cancel_scope.cancel()
        finally:
            self.record(_outcome(exchange, exit_, time.monotonic() - started))

    async def _answer(self, scope: Scope, receive: Receive, exit_: Exit, method: str | None) -> None:
        """Runs the layers within and sees to it that the client gets one whole answer. Raises `ClientGone`."""
        try:
            _check_method(scope["method"], method)
            await self.app(scope, receive, exit_)
            if exit_.phase is not Phase.FINISHED:
                await exit_.error(GatewayError(Code.INTERNAL, "the request ended without an answer"))
        except GatewayError as error:
            await exit_.error(error)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001 -- a client must get an answer whatever broke
            # The traceback is for the operator; it names code, never a body.
            _LOG.exception("a request failed inside the gateway")
            await exit_.error(GatewayError(Code.INTERNAL, "the gateway failed"))


def _spawner(group: TaskGroup) -> Spawn:
    """Runs a task beside the request; one that finds the client gone ends the request."""

    async def run(task: Task) -> None:
        try:
            await task()
        except ClientGone:
            group.cancel_scope.cancel()

    def spawn(task: Task) -> None:
        group.start_soon(run, task)

    return spawn


def path_of(scope: Scope) -> str:
    """The raw path below the root path. Servers need not give `raw_path`; then the decoded path is encoded again."""
    raw, root = scope.get("raw_path"), scope.get("root_path", "")
    path = quote(scope["path"], safe="/:@!$&'()*+,;=-._~") if raw is None else raw.decode("latin-1").partition("?")[0]
    prefix = quote(root, safe="/:@!$&'()*+,;=-._~")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path


def _check_method(method: str, allowed: str | None) -> None:
    if allowed is None:
        raise RequestError(Code.NOT_FOUND, "no API surface has this path")
    if method != allowed:
        allow = ((b"allow", allowed.encode()),)
        raise RequestError(Code.METHOD_NOT_ALLOWED, f"this path takes {allowed}", headers=allow)


def _outcome(exchange: Exchange, exit_: Exit, seconds: float) -> Outcome:
    plan, error = exchange.plan, exchange.error
    planned = {} if plan is None else _planned(plan)
    return Outcome(
        request_id=exchange.request_id,
        surface=exchange.endpoint.surface,
        operation=exchange.endpoint.operation,
        ending=_ending(exchange, exit_),
        status=exit_.status,
        seconds=round(seconds, 6),
        bytes=exit_.size,
        code=None if error is None else error.code,
        pointer=None if error is None or error.pointer is None else plain(error.pointer),
        stop=None if exchange.stop is None else exchange.stop.name.lower(),
        usage=exchange.usage,
        frames=exchange.frames,
        rounds=1 if exchange.stitch is None else exchange.stitch.rounds,
        key=exchange.key,
        dropped=(*(() if plan is None else map(plain, plan.dropped)), *exchange.unsaid),
        **planned,
    )


def _planned(plan: RequestPlan) -> dict[str, Any]:
    return {
        "model": plan.model,
        "route": plan.route_id,
        "upstream": plan.spoken,
        "mode": plan.mode_name,
        "stream": plan.stream,
    }


_STEP: Final = re.compile(r"[A-Za-z0-9_.~-]{1,64}")


def plain(pointer: str) -> str:
    """A pointer for the record. A client can put any words into a member's name, and no prompt may reach a log."""
    return "/".join(step if not step or _STEP.fullmatch(step) else "?" for step in pointer.split("/"))


def _ending(exchange: Exchange, exit_: Exit) -> Ending:
    """A client that leaves after its whole answer was sent has been served."""
    if exit_.phase is not Phase.FINISHED:
        return Ending.DISCONNECTED
    if isinstance(exchange.error, RequestError):
        return Ending.REJECTED
    return Ending.COMPLETED if exchange.error is None else Ending.FAILED
