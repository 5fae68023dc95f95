"""Sees every stream that any gateway of this process gives a client, however the client asked: by the test's own driver, a server or an SDK.

The layer that stands first is wrapped, and what says how a stream was made: by relaying frames, or by writing them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from asgi_surface.layers.conversion.stitched import Stitched
from asgi_surface.layers.conversion.streaming import Streaming
from asgi_surface.layers.detection import SurfaceDetection
from asgi_surface.translation import Translation
from grammar import CHAT, GEMINI, MESSAGES, RESPONSES, Violation, check

_PATHS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES, ":streamGenerateContent": GEMINI}
Message = MutableMapping[str, Any]


class _Seen:
    """One request, as far as it went."""

    def __init__(self, path: str) -> None:
        self.surface = next((surface for end, surface in _PATHS.items() if path.endswith(end)), None)
        self.asked = bytearray()
        self.told: list[Message] = []

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.told[0]["headers"])

    @property
    def streamed(self) -> bool:
        """Whether it is the stream of a plan: an error or a dry run has no mode, or tells an object."""
        if self.surface is None or not self.told or self.told[0]["status"] != 200 or b"x-surface-mode" not in self.headers:
            return False
        return self.headers[b"content-type"].startswith(b"text/event-stream") or self.array

    @property
    def array(self) -> bool:
        return self.surface == GEMINI and self.headers[b"content-type"] == b"application/json" and self.body.startswith(b"[")

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.told[1:])

    @property
    def whole(self) -> bool:
        return not self.told[-1].get("more_body", True)

    @property
    def usage(self) -> bool | None:
        """Whether the client asked for its usage; None for a body that is packed."""
        try:
            return (json.loads(self.asked).get("stream_options") or {}).get("include_usage") is True
        except ValueError:
            return None


class Watch:
    """What has been seen and not been told yet. `test` is the one that runs, `excused` that its mark lets it have what streams it likes."""

    def __init__(self) -> None:
        self.test = ""
        self.excused = False
        self._written: set[bytes] = set()
        self._broken: list[str] = []

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Watches the classes themselves."""
        before = SurfaceDetection.__call__, Streaming.settle, Stitched.settle
        SurfaceDetection.__call__ = self._watched(before[0])  # type: ignore[method-assign]
        Streaming.settle = self._noted(before[1])  # type: ignore[method-assign]
        Stitched.settle = self._noted(before[2])  # type: ignore[method-assign]
        yield
        SurfaceDetection.__call__, Streaming.settle, Stitched.settle = before  # type: ignore[method-assign]

    def _noted(self, settle: Callable[[Any], None]) -> Callable[[Any], None]:
        def noted(one: Any) -> None:
            # A stream that is unfolded from a document of the client's own surface has the provider's members, whatever these are.
            crossing = one._exchange.plan.downstream_surface == one._exchange.plan.upstream_surface
            if isinstance(one, Stitched) or (isinstance(one._passage, Translation) and not crossing):
                self._written.add(one._exchange.request_id.encode())
            settle(one)

        return noted

    def _watched(self, serve: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(layer: Any, scope: Message, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await serve(layer, scope, receive, send)
                return
            seen, test, excused = _Seen(scope["path"]), self.test, self.excused

            async def heard() -> Message:
                message: Message = await receive()
                seen.asked += message.get("body", b"")
                return message

            async def told(message: Message) -> None:
                await send(message)
                seen.told.append(message)

            try:
                await serve(layer, scope, heard, told)
            finally:
                if not excused and seen.streamed:
                    self._judge(seen, test)

        return watched

    def _judge(self, seen: _Seen, test: str) -> None:
        relayed = seen.headers[b"x-surface-request-id"] not in self._written
        try:
            check(seen.surface or "", seen.body, array=seen.array, relayed=relayed, whole=seen.whole, usage=seen.usage)
        except Violation as broken:
            self._broken.append(f"{test}: {'relayed' if relayed else 'written'} {seen.surface}: {broken}\n{seen.body.decode(errors='replace')}")

    def drain(self) -> None:
        """Raises what was seen and is no stream of its surface."""
        broken, self._broken = self._broken, []
        if broken:
            raise Violation("\n\n".join(broken))
