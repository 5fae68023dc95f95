"""An upstream's stream: frames through the passage to a client that streams, with keep-alives and one terminal; or folded into one document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from asgi_surface.assembly import unfold
from asgi_surface.errors import Code, GatewayError, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Response
from asgi_surface.layers.conversion.meaning import Blame, context, counted, fold, lost, native, passage, unfolded
from asgi_surface.layers.exchange import Exchange, Send
from asgi_surface.translation import Translation

TYPES: Final = {Framing.SSE: b"text/event-stream; charset=utf-8", Framing.JSON_ARRAY: b"application/json"}
_HELD_BYTES: Final = 65_536


class Streaming:
    """The client's stream. The head is sent with the first bytes, so an upstream that fails at once still gets its true status."""

    def __init__(self, exchange: Exchange, send: Send, refused: Blame, secrets: Sequence[str]) -> None:
        plan = exchange.planned()
        self._exchange = exchange
        self._send = send
        self._refused = refused
        self._secrets = secrets
        self._type = TYPES[plan.framing]
        self._passage = passage(exchange, refused, secrets, plan.upstream_framing)
        self.begun = False
        self._held = b""
        # The server's `send` may be waiting with a keep-alive when the upstream's next event comes.
        self._writing = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._sent_at = self._clock()
        self._silence = plan.limits.keepalive_seconds
        self._keepalive = exchange.keepalive
        if self._keepalive and self._silence and plan.framing is Framing.SSE:
            exchange.spawn(self._keep)

    def framed(self, framing: Framing) -> None:
        """Says how the upstream really frames its stream, before any of it is fed. Asked for another framing, its frames are written anew."""
        if framing is not self._exchange.planned().upstream_framing:
            self._passage = passage(self._exchange, self._refused, self._secrets, framing)

    async def feed(self, data: bytes) -> bool:
        """Relays what became whole. True once the terminal has been said."""
        out = self._passage.feed(data)
        self._exchange.beats = self._passage.beats
        await self._deliver(out)
        return self._passage.closed

    @property
    def failed(self) -> bool:
        """Whether the client has been told an error."""
        return self._passage.fault is not None

    async def eof(self, *, whole: bool) -> None:
        """The upstream's body ended, by its framing or not."""
        cut = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's stream was cut")
        await self._deliver(self._passage.eof() if whole else self._passage.fail(cut))

    async def tell(self, response: Response, body: bytes) -> None:
        """Says an answer that came as one document."""
        told = unfolded(self._exchange, self._refused, body, response)
        self._passage = told
        await self._deliver(told.say(unfold(response)))

    async def fail(self, error: GatewayError) -> None:
        """Ends a begun stream with the error."""
        await self._deliver(self._passage.fail(error))

    async def _deliver(self, out: bytes) -> None:
        passage = self._passage
        if not self.begun and passage.opening_fault is not None:
            raise self._refused(passage.opening_fault)
        if not self.begun and passage.fault is not None and passage.early:
            raise passage.fault
        if self._waits(len(out)):
            # Comments and pings promise nothing: until the first event an upstream's error still gets its own status.
            self._held += out
        elif out or self._held or passage.closed:
            out, self._held = self._held + out, b""
            # Told in the stream. What is raised above says more: it has the status that the fault stands for.
            self._exchange.error = self._exchange.error or passage.fault
            await self._write(out, more=not passage.closed)

    def _waits(self, size: int) -> bool:
        passage = self._passage
        return not (self.begun or passage.closed or passage.beats) and len(self._held) + size <= _HELD_BYTES

    async def _write(self, out: bytes, *, more: bool) -> None:
        async with self._writing:
            if not self.begun:
                self.begun = True
                head = [(b"content-type", self._type), (b"x-accel-buffering", b"no")]
                await self._send({"type": "http.response.start", "status": 200, "headers": head})
            await self._send({"type": "http.response.body", "body": out, "more_body": more})
        self._sent_at = self._clock()

    async def _keep(self) -> None:
        """Tells a waiting client that the gateway lives; never between the pieces of a write, never after the end."""
        while True:
            left = self._sent_at + self._silence - self._clock()
            if left > 0:
                await asyncio.sleep(left)
            elif self._passage.closed:
                return
            elif self._writing.locked():
                self._sent_at = self._clock()
            else:
                await self._write(self._keepalive, more=True)

    def settle(self) -> None:
        """Notes the facts of the stream. Nothing is sent after this."""
        passage, exchange = self._passage, self._exchange
        passage.cancel()
        exchange.frames, exchange.stop, exchange.usage = passage.frames, passage.stop, passage.usage
        if isinstance(passage, Translation) and passage.fault is None and not native(exchange):
            exchange.unsaid = counted(exchange.unsaid, lost(exchange, passage.unread), exchange.codec.unsaid(passage.held, context(exchange)))


class Folding:
    """An upstream's stream for a client that asked for one document. Nothing is sent before the end, so every failure has its own status."""

    failed = False  # it raises

    def __init__(self, exchange: Exchange, send: Send, refused: Blame, framing: Framing) -> None:
        self._exchange = exchange
        self._send = send
        self._refused = refused
        self._fold = fold(exchange, refused, framing)

    async def feed(self, data: bytes) -> bool:
        """Takes a piece of the stream. True once the client has its answer."""
        out = self._fold.feed(data)
        self._exchange.beats = self._fold.beats
        return await self._tell(out)

    async def eof(self, *, whole: bool) -> None:
        """The upstream's body ended, by its framing or not."""
        cut = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's stream was cut")
        await self._tell(self._fold.eof() if whole else self._fold.fail(cut))

    async def _tell(self, out: bytes) -> bool:
        if self._fold.opening_fault is not None:
            raise self._refused(self._fold.opening_fault)
        if self._fold.fault is not None:
            raise self._fold.fault
        if out:
            self._exchange.unsaid = counted(lost(self._exchange, self._fold.unread), self._exchange.unsaid)
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(out)).encode())]
            await self._send({"type": "http.response.start", "status": 200, "headers": head})
            await self._send({"type": "http.response.body", "body": out, "more_body": False})
        return bool(out)

    def settle(self) -> None:
        """Notes the facts of the stream."""
        fold, exchange = self._fold, self._exchange
        exchange.frames, exchange.stop, exchange.usage = fold.frames, fold.stop, fold.usage
