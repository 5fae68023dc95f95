"""The response half: takes the upstream's answer, whatever it is, and hands the client one whole answer in its own surface.

Cannot see the planner, the catalog or the configuration: it reads the plan. Whoever streams ends the stream: every failure after the first byte
becomes one error terminal here.
"""

from __future__ import annotations

from collections.abc import Sequence

from asgi_surface.layers.conversion.answer import Answer
from asgi_surface.layers.exchange import ASGIApp, Receive, Scope, Send, exchange_of


class Conversion:
    """ASGI layer between PolicyWhitelist and StreamRelay. `secrets` are the providers' keys: no error text that holds one reaches a client."""

    def __init__(self, app: ASGIApp, *, secrets: Sequence[str] = ()) -> None:
        self.app = app
        self.secrets = secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the layers within. Raises `UpstreamError` while nothing has been sent to the client."""
        answer = Answer(exchange_of(scope), send, self.secrets)
        try:
            await answer.take(self.app, scope, receive)
        finally:
            answer.settle()
