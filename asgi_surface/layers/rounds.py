"""Asks the model again: where a resident takes part, runs the layers within once a round, its searches between them, and ends the one answer.

Each round is planned by the same planner, on the same route and binding. Without a resident messages pass through. Knows no surface and no search.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import Final

import anyio
from msgspec import structs

from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, GatewayError, RequestError, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Stop
from asgi_surface.layers.exchange import ASGIApp, ClientGone, Exchange, Message, Receive, Scope, Send, exchange_of
from asgi_surface.residents import FAILED, NO_MORE, Finding, Session
from asgi_surface.stitching import Stitch, Wanted

_LOG: Final = logging.getLogger("asgi_surface")

# Of one answer: how many searches run at a time, and how many at all.
_AT_ONCE: Final = 4
_PER_ROUND: Final = 8


class Rounds:
    """ASGI layer between Authentication and Planning."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. Raises what went wrong as long as nothing has been sent; then the error is the stream's terminal."""
        exchange = exchange_of(scope)
        outlet = _Outlet(exchange, send)
        try:
            await self._run(scope, receive, outlet)
        except GatewayError as error:
            if not outlet.begun:
                raise
            await outlet.fail(error)
        except ClientGone:
            raise
        except Exception:
            if outlet.begun:
                await outlet.fail(GatewayError(Code.INTERNAL, "the gateway failed"))
            raise
        finally:
            outlet.settle()

    async def _run(self, scope: Scope, receive: Receive, outlet: _Outlet) -> None:
        exchange, started = outlet.exchange, anyio.current_time()
        await self.app(scope, receive, outlet.send)
        session, stitch = exchange.session, exchange.stitch
        if session is None or stitch is None:
            return
        with anyio.CancelScope(deadline=started + exchange.planned().limits.total_seconds) as patience:
            while stitch.round.pending and await _searched(exchange, session, stitch, outlet):
                try:
                    await self.app(scope, receive, outlet.send)
                except RequestError as error:
                    # The client's body was planned; what became of it is not the client's to mend, and its places mean nothing there.
                    raise GatewayError(error.code, error.message) from error
        if patience.cancelled_caught:
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, "the upstream took too long")
        await outlet.finish()


async def _searched(exchange: Exchange, session: Session, stitch: Stitch, outlet: _Outlet) -> bool:
    """Runs and shows the searches of a round. True when the model is to be asked again with what they gave; else the answer has ended."""
    round_ = stitch.round
    spent = stitch.rounds >= session.rounds
    steps = list(round_.steps())
    pending = _Pending(exchange, session, [step.query for step in steps if isinstance(step, Wanted)], most=0 if spent else _PER_ROUND)
    findings: list[Finding] = []
    for step in steps:
        if isinstance(step, Wanted):
            index, said = stitch.search(step)
            await outlet.write(said)
            finding = await pending.wait(len(findings))
            findings.append(finding)
            await outlet.write(stitch.found(index, finding.sources, failed=finding.failed))
        else:
            await outlet.write(stitch.part(step))
    if round_.mixed or spent:
        # The client has to answer its own calls first. A model that still searches when it cannot has not come to its end.
        await outlet.write(round_.end(None if round_.mixed else Stop.PAUSE))
        return False
    turn = exchange.codec.write(round_.response, _turning(stitch))
    exchange.next = session.next(turn, findings, last=stitch.rounds + 1 >= session.rounds)
    return True


def _turning(stitch: Stitch) -> Context:
    """How a round's turn is written for the next request: with every seal, ids that no other round has made, and calls in their present form."""
    known = stitch.context
    request = structs.replace(known.request, wants_seals=True, tools=())
    return structs.replace(known, request=request, request_id=f"{known.request_id}_{stitch.rounds}", stream=False)


class _Pending:
    """Searches that run beside the request, a few at a time, and are waited for in their order. They end with the request."""

    def __init__(self, exchange: Exchange, session: Session, queries: list[str], *, most: int) -> None:
        self._session = session
        self._few = anyio.Semaphore(_AT_ONCE)
        self._done = [anyio.Event() for _ in queries]
        self._found = [NO_MORE] * len(queries)
        for place, query in enumerate(queries):
            if place < most:
                exchange.spawn(functools.partial(self._run, place, query))
            else:
                self._done[place].set()

    async def _run(self, place: int, query: str) -> None:
        try:
            async with self._few:
                self._found[place] = await self._session.search(query)
        except Exception:  # noqa: BLE001 -- nobody is above this task who could tell the client
            _LOG.exception("a search failed inside the gateway")
            self._found[place] = FAILED
        self._done[place].set()

    async def wait(self, place: int) -> Finding:
        """What one of them gave."""
        await self._done[place].wait()
        return self._found[place]


class _Outlet:
    """The way out of one request. Of stitched rounds the client gets one head, which goes out with the first bytes, and one end."""

    def __init__(self, exchange: Exchange, send: Send) -> None:
        self.exchange = exchange
        self.begun = False
        self._send = send
        self._head: Message | None = None
        # The server's `send` may be waiting with a keep-alive when the next event comes.
        self._writing = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._sent_at = self._clock()

    async def send(self, message: Message) -> None:
        """The `send` of the layers within."""
        if self.exchange.stitch is None:
            await self._send(message)
        elif message["type"] == "http.response.body":
            await self.write(message.get("body", b""))
        elif self._head is None:
            self._head = message
            self._keep_alive(self.exchange.stitch)

    async def write(self, body: bytes) -> None:
        """Sends a piece of a stream, or the document."""
        if not body:
            return
        async with self._writing:
            if not self.begun:
                self.begun = True
                self.settle()
                await self._send(self._head or _json(len(body)))
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
        self._sent_at = self._clock()

    async def finish(self) -> None:
        """Ends the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def fail(self, error: GatewayError) -> None:
        """Ends a response that has begun with the error."""
        exchange = self.exchange
        exchange.error = exchange.error or error
        await self.write(b"" if exchange.stitch is None else exchange.stitch.fail(error))
        await self.finish()

    def settle(self) -> None:
        """Notes the facts of the whole answer, as far as they are known."""
        exchange, stitch = self.exchange, self.exchange.stitch
        if stitch is not None:
            exchange.frames, exchange.stop, exchange.usage = stitch.frames, stitch.stop, stitch.spent
            exchange.unsaid = tuple(dict.fromkeys((*stitch.unread, *sorted(exchange.codec.unsaid(stitch.held, stitch.context)))))

    def _keep_alive(self, stitch: Stitch) -> None:
        plan, beat = self.exchange.planned(), self.exchange.keepalive
        if beat and plan.limits.keepalive_seconds and plan.framing is Framing.SSE:
            self.exchange.spawn(functools.partial(self._keep, stitch, beat, plan.limits.keepalive_seconds))

    async def _keep(self, stitch: Stitch, beat: bytes, silence: float) -> None:
        """Tells a waiting client that the gateway lives, also while it searches; never after the end."""
        while True:
            left = self._sent_at + silence - self._clock()
            if left > 0:
                await asyncio.sleep(left)
            elif stitch.closed:
                return
            elif self._writing.locked():
                self._sent_at = self._clock()
            else:
                await self.write(beat)


def _json(size: int) -> Message:
    """The head of a document, which nobody within gives: it comes of all rounds."""
    head = [(b"content-type", b"application/json"), (b"content-length", str(size).encode())]
    return {"type": "http.response.start", "status": 200, "headers": head}
