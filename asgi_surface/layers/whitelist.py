"""Puts the body that the policy judged on the wire: the layers within get an ordinary ASGI request to the upstream's path, and nothing else.

Nothing of the client's scope but the server's own keys goes further, so no header, query or path of the client can.
"""

from __future__ import annotations

from urllib.parse import unquote

import anyio

from asgi_surface.layers.exchange import KEY, ASGIApp, Exchange, Message, Receive, Scope, Send, exchange_of


class PolicyWhitelist:
    """ASGI layer between Planning and Conversion."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the planned request on. The client's `receive` stays with the watcher that SurfaceDetection keeps."""
        del receive
        exchange = exchange_of(scope)
        await self.app(outbound(scope, exchange), _Body(exchange).receive, send)


def outbound(scope: Scope, exchange: Exchange) -> Scope:
    """The scope of the upstream request, built from the plan."""
    plan = exchange.planned()
    path, _, query = plan.upstream_path.partition("?")
    return {
        "type": "http",
        "asgi": scope.get("asgi", {"version": "3.0"}),
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in plan.headers],
        "client": None,
        "server": None,
        KEY: exchange,
    }


class _Body:
    """`receive` of the upstream request: the drafted body once; after it nothing comes, for a client that leaves cancels the call."""

    def __init__(self, exchange: Exchange) -> None:
        self._drafts = iter((exchange.draft,))

    async def receive(self) -> Message:
        draft = next(self._drafts, None)
        if draft is None:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": draft.body if draft else b"", "more_body": False}
