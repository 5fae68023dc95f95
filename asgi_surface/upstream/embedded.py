"""The embedded upstreams by the names that routes.toml gives them. Knows nothing of what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from asgi_surface.upstream.asgi import Receive, Scope, Send
from asgi_surface.upstream.echo import Echo
from asgi_surface.upstream.llama import Llama


class Embedded(Protocol):
    """A provider inside this process: an ASGI app that may have to be started and stopped."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One HTTP exchange, as the provider would answer it."""
        ...

    def unavailable(self) -> str | None:
        """Why it cannot run here, with the command that helps; None when it can. Cheap: loads nothing."""
        ...

    async def warm(self) -> None:
        """Starts it, if the first request has not. Raises `GatewayError` when it cannot run."""
        ...

    async def aclose(self) -> None:
        """Stops it; calls under way fail. A later call starts it again."""
        ...


EMBEDDED: Final[Mapping[str, Callable[[], Embedded]]] = MappingProxyType({"echo": Echo, "llama-cpp": Llama})
"""A factory for each name that a provider's `embedded` may have."""
