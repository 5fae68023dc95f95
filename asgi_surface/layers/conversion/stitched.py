"""An upstream's answer as one round of an answer of several: what it says goes to the client at once, its end and its failure do not.

The Rounds layer, which asks the model again, ends the answer or tells the error.
"""

from __future__ import annotations

from msgspec import structs

from asgi_surface.assembly import Fold, unfold
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Request, Response
from asgi_surface.layers.conversion.meaning import Blame, context, counted, lost, reader
from asgi_surface.layers.conversion.streaming import TYPES
from asgi_surface.layers.exchange import Exchange, Send
from asgi_surface.stitching import Stitch, added
from asgi_surface.translation import Translation


class Stitched:
    """One round, for a client that streams or not. Everything that goes wrong is raised."""

    failed = False  # it raises

    def __init__(self, exchange: Exchange, send: Send, refused: Blame) -> None:
        self._exchange = exchange
        self._plan = exchange.planned()
        self._send = send
        self._refused = refused
        self._stitch = exchange.stitch = exchange.stitch or _stitch(exchange)
        self._stitch.rounds += 1
        self._before = self._stitch.beats
        self._translation = self._made(self._plan.upstream_framing)

    def _made(self, framing: Framing) -> Translation:
        codec, limits = reader(self._exchange), self._plan.limits
        return Translation(
            codec.decoder(),
            self._stitch.begin(),
            upstream=framing,
            downstream=None,
            event_bytes=limits.event_bytes,
            output_chars=limits.output_chars - self._stitch.chars,
            eof_ends=codec.eof_ends,
            blame=self._refused,
        )

    async def begin(self) -> None:
        """The head of a stream, which goes out with the first bytes."""
        if self._plan.stream:
            head = [(b"content-type", TYPES[self._plan.framing]), (b"x-accel-buffering", b"no")]
            await self._send({"type": "http.response.start", "status": 200, "headers": head})

    def framed(self, framing: Framing) -> None:
        """Says how the upstream really frames its stream, before any of it is fed."""
        if framing is not self._plan.upstream_framing:
            self._translation = self._made(framing)

    async def feed(self, data: bytes) -> bool:
        """Relays what became whole. True once the round is over."""
        await self._deliver(self._translation.feed(data))
        return self._translation.closed

    async def eof(self, *, whole: bool) -> None:
        """The upstream's body ended, by its framing or not."""
        cut = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's stream was cut")
        await self._deliver(self._translation.eof() if whole else self._translation.fail(cut))

    async def tell(self, response: Response, _body: bytes) -> None:
        """A round that came as one document."""
        self._stitch.unread = counted(self._stitch.unread, lost(self._exchange, response.unread))
        self._translation = self._made(Framing.SSE)
        await self._deliver(self._translation.say(unfold(response)))

    async def _deliver(self, out: bytes) -> None:
        told = self._translation
        self._exchange.beats = self._stitch.beats = self._before + told.beats
        self._note()
        if out:
            await self._send({"type": "http.response.body", "body": out, "more_body": True})
        if told.opening_fault is not None:
            raise self._refused(told.opening_fault)
        if told.fault is not None:
            raise told.fault

    def _note(self) -> None:
        self._stitch.unread = counted(self._stitch.unread, lost(self._exchange, self._translation.unread))

    def settle(self) -> None:
        """Adds the facts of the round to those of the answer."""
        stitch, told = self._stitch, self._translation
        self._note()
        stitch.spent = added(stitch.spent, told.usage)
        stitch.frames += told.frames


def _stitch(exchange: Exchange) -> Stitch:
    """The client's answer: one encoder for all rounds, or the fold of a document. The echo of the request knows nothing of the resident's tool."""
    plan, session, codec = exchange.planned(), exchange.opened(), exchange.codec
    known = context(exchange)
    known = structs.replace(known, request=_without(known.request, session.tool))
    encoder = codec.encoder(known) if plan.stream else Fold(lambda response: codec.write(response, known))
    return Stitch(encoder, plan.framing if plan.stream else None, known, session.tool)


def _without(request: Request, tool: str) -> Request:
    choice = request.choice
    if choice is not None and choice.names is not None:
        names = tuple(name for name in choice.names if name != tool)
        choice = structs.replace(choice, names=names) if names else None
    tools = tuple(one for one in request.tools if (one.namespace, one.name) != (None, tool))
    return structs.replace(request, tools=tools, choice=choice)
