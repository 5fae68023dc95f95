"""Stands before the upstream and bounds it in time: first byte, whole JSON answer, silence, and the whole exchange.

The upstream is any ASGI app. Cannot see the planner, the catalog or the configuration: it reads the plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import anyio

from asgi_surface.errors import Code, GatewayError, UpstreamError
from asgi_surface.layers.exchange import Alarm, ASGIApp, Exchange, Message, Receive, Scope, Send, exchange_of

_LOG: Final = logging.getLogger("asgi_surface")


class StreamRelay:
    """ASGI layer between Conversion and the upstream app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the upstream. Raises `UpstreamError` (upstream_timeout) when a deadline passes; the call is cancelled then.

        What the app raises is an `UpstreamError` too. What `send` raised comes out as it was, whatever the app made of it: one that sends from a
        task group wraps it, another may swallow it.
        """
        with anyio.CancelScope() as cancel:
            patience = _Patience(exchange_of(scope), send, cancel.cancel)
            try:
                await self.app(scope, receive, patience.send)
            except Exception as error:  # noqa: BLE001 -- any app may stand here, and fail in any way
                patience.failure = patience.failure or _told(error)
            finally:
                patience.alarm.stop()
        if patience.failure is not None:
            raise patience.failure
        if cancel.cancelled_caught:
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, "the upstream took too long")


def _told(error: Exception) -> Exception:
    """The error as the layers know it; the traceback of another one is for the operator."""
    if isinstance(error, GatewayError):
        return error
    _LOG.error("an upstream app failed", exc_info=error)
    return UpstreamError(Code.UPSTREAM_ERROR, "the upstream failed")


class _Patience:
    """How long the upstream may still be silent. Pings do not count as life: the exchange counts the frames that do (`beats`)."""

    def __init__(self, exchange: Exchange, send: Send, ring: Callable[[], None]) -> None:
        plan = exchange.planned()
        self._limits = plan.limits
        self._exchange = exchange
        self._send = send
        self._clock = asyncio.get_running_loop().time
        self._beats = 0
        now = self._clock()
        self._end = now + plan.limits.total_seconds
        self._until = now + (plan.limits.first_byte_seconds if plan.stream else plan.limits.json_seconds)
        self._sending = False
        self.failure: Exception | None = None
        """What went wrong first: on our side of `send`, else in the app."""
        self.alarm = Alarm(self.due, ring)

    def due(self) -> float:
        """When patience ends, as a loop time. While the client is slow to take what was sent, the upstream is not to blame."""
        if self._sending:
            self._until = max(self._until, self._clock() + self._limits.idle_seconds)
        return min(self._until, self._end)

    async def send(self, message: Message) -> None:
        """Passes one message on and notes whether it was a sign of life."""
        self._sending = True
        try:
            await self._send(message)
        except Exception as error:
            self.failure = self.failure or error
            raise
        self._sending = False
        if self._exchange.beats != self._beats:
            self._beats = self._exchange.beats
            self._until = self._clock() + self._limits.idle_seconds
            self.alarm.sooner()
