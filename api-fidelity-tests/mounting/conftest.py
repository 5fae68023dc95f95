"""A server's side of the lifespan protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def lifespan() -> Callable[..., list[dict[str, Any]]]:
    """Starts an ASGI app up and down again, with `scope` of its own; gives what it sent. What it raised comes last, as its message."""

    def run(app, **scope) -> list[dict[str, Any]]:
        return asyncio.run(one(app, scope))

    async def one(app, scope) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        kinds = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive():
            return {"type": next(kinds)}

        async def send(message):
            sent.append(message)

        async with asyncio.timeout(10):
            try:
                await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}, **scope}, receive, send)
            except RuntimeError as error:
                sent.append({"type": "raised", "message": str(error)})
        return sent

    return run
