"""A real server for real clients: an ASGI app under uvicorn, as `asgi-surface serve` runs it, in a thread on a free port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from asgi_surface.server import settings


class Server:
    """Serves `app`, which may be another one for each test: a gateway starts at its first request where no lifespan comes."""

    def __init__(self) -> None:
        self.app: Any = None
        self._server = uvicorn.Server(uvicorn.Config(self, **{**settings(port=0), "log_config": None, "lifespan": "off"}))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        self.wait(lambda: self._server.started or not self._thread.is_alive())
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    async def __call__(self, scope, receive, send) -> None:
        await self.app(scope, receive, send)

    def wait(self, holds: Callable[[], object], seconds: float = 10.0) -> None:
        """Waits for a fact."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it did not come about in time"
            time.sleep(0.002)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for a module's tests."""
    one = Server()
    yield one
    one.stop()
