"""The only way out to the client: starts the response once, finishes it once, and knows how many bytes went. Here interceptors see every answer.

Nothing else is handed the server's `send`. Knows nothing of planning, routes or upstreams.
"""

from __future__ import annotations

import enum
import logging
from typing import Final

from asgi_surface.codecs.zed.lines import HEADERS, Count, JsonLines
from asgi_surface.errors import GatewayError
from asgi_surface.interception import Broken, Document, Rewriting, Stream
from asgi_surface.layers.exchange import ClientGone, Exchange, Headers, Message, Send
from asgi_surface.surfaces import Operation

_LOG: Final = logging.getLogger("asgi_surface")

# x-surface-dropped: at most this many bytes, so that no proxy refuses the head.
_DROPPED_BYTES: Final = 1_024


class Phase(enum.Enum):
    """Where the response stands towards the client."""

    PENDING = enum.auto()
    STARTED = enum.auto()
    FINISHED = enum.auto()
    LOST = enum.auto()  # the client left while it was being told


_OVER: Final = (Phase.FINISHED, Phase.LOST)


class Exit:
    """An ASGI `send` for the layers within. The head is held back until there is something to send with it."""

    def __init__(self, send: Send, exchange: Exchange) -> None:
        self._send = send
        self._exchange = exchange
        self._head: Message | None = None
        self._rewriting: Rewriting | None = None
        self._carrying: Rewriting | None = None
        self.phase = Phase.PENDING
        self.status = 0
        self.size = 0

    async def __call__(self, message: Message) -> None:
        """Takes one ASGI message. What comes after the end is ignored: an upstream may go on after its terminal."""
        if self.phase in _OVER:
            return
        if message["type"] == "http.response.start":
            self._rewriting = self._rewritten(message["status"])
            self._carrying = self._carried(message["status"])
            self._head = _lined(message) if isinstance(self._carrying, JsonLines) else message
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._rewriting is None:
            await self._body(body, more=more)
        else:
            await self._intercepted(self._rewriting, body, more=more)

    def _rewritten(self, status: int) -> Rewriting | None:
        """What the interceptors do to an answer. None, and bytes go straight through, when the plan has none."""
        exchange = self._exchange
        if not exchange.rewriters:
            return None
        plan = exchange.planned()
        if plan.stream and status == 200:
            return Stream(exchange.rewriters, plan.framing, exchange.codec.watch, exchange.request_id)
        return Document(exchange.rewriters, status)

    def _carried(self, status: int) -> Rewriting | None:
        """What makes a carrier's words of the answer to a request that came in its envelope. An error, or a dry run's plan, is no such answer."""
        exchange = self._exchange
        if exchange.carried is None or exchange.plan is None or status != 200:
            return None
        if exchange.plan.operation is Operation.COUNT_TOKENS:
            return Count(exchange.plan.downstream_surface)
        return JsonLines(exchange.codec, exchange.request_id, lambda: exchange.error)

    async def _intercepted(self, rewriting: Rewriting, body: bytes, *, more: bool) -> None:
        try:
            body = rewriting.feed(body, last=not more)
        except Broken as broken:
            _LOG.error("an interceptor failed", exc_info=broken.__cause__)
            await self._break_off(broken)
            if more:  # so that the upstream is left
                raise
            return
        if self._head is not None and not more:
            self._head = _measured(self._head, len(body))
        await self._body(body, more=more)

    async def _break_off(self, broken: Broken) -> None:
        """Ends the response for a failed interceptor, and asks none any more."""
        self._exchange.error = broken
        body = broken.rest
        if self.phase is Phase.PENDING:
            body = error_body(self._exchange, broken)
            self._carrying = None
            self._head = _json(broken.status, body, _error_headers(broken))
        await self._body(body, more=False)

    async def _body(self, body: bytes, *, more: bool) -> None:
        if self._carrying is not None:
            body = self._carrying.feed(body, last=not more)
            self._head = self._head if self._head is None or more else _measured(self._head, len(body))
        if more and not body:
            return
        if self.phase is Phase.PENDING:
            await self._start()
        self.phase = Phase.STARTED if more else Phase.FINISHED
        self.size += len(body)
        await self._out({"type": "http.response.body", "body": body, "more_body": more})

    async def _start(self) -> None:
        if self._head is None:
            raise RuntimeError("a response needs its start before its body")
        self.status = self._head["status"]
        headers = [*self._head.get("headers", ()), *self._own()]
        await self._out({"type": "http.response.start", "status": self.status, "headers": headers})

    async def _out(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:  # what `send` raises once the client has left, since ASGI 2.4
            self.phase = Phase.LOST
            raise ClientGone from None

    def _own(self) -> Headers:
        """The gateway's own headers, from what is known by now."""
        exchange, plan = self._exchange, self._exchange.plan
        ours = exchange.request_id.encode()
        headers = [
            (b"x-surface-request-id", ours),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *exchange.answer_headers,
        ]
        if not any(name == b"x-request-id" for name, _ in exchange.answer_headers):
            headers.append((b"x-request-id", ours))
        if plan is not None:
            headers += [
                (b"x-surface-route", plan.route_id.encode("ascii", "replace")),
                (b"x-surface-upstream", plan.spoken.encode()),
                (b"x-surface-mode", plan.mode_name.encode()),
            ]
            if dropped := (*plan.dropped, *exchange.unsaid):
                headers.append((b"x-surface-dropped", folded(dropped)))
        return tuple(headers)

    async def document(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """A whole JSON response."""
        await self(_json(status, body, headers))
        await self({"type": "http.response.body", "body": body, "more_body": False})

    async def error(self, error: GatewayError) -> None:
        """Ends the response for an error: as the surface's JSON envelope while nothing has been sent, else by ending the body.

        Whoever streams writes the in-stream error itself before that; here nothing fit could be said any more.
        """
        self._exchange.error = self._exchange.error or error
        if self.phase is not Phase.PENDING:
            await self({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await self.document(error.status, error_body(self._exchange, error), _error_headers(error))


def _json(status: int, body: bytes, headers: Headers = ()) -> Message:
    """The head of a whole JSON response."""
    length = str(len(body)).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", length), *headers]
    return {"type": "http.response.start", "status": status, "headers": head}


def _measured(head: Message, size: int) -> Message:
    """The head with the length that a document has now; a stream's has none."""
    length = str(size).encode()
    return {**head, "headers": [(name, length if name == b"content-length" else value) for name, value in head.get("headers", ())]}


def _lined(head: Message) -> Message:
    """The head of a stream that leaves as lines."""
    others = [pair for pair in head.get("headers", ()) if pair[0] != b"content-type"]
    return {**head, "headers": [*HEADERS, *others]}


def _error_headers(error: GatewayError) -> Headers:
    headers = ((b"x-surface-error", error.code.encode()), *error.headers)
    retry = error.trait.retry
    if retry is not None and not any(name == b"x-should-retry" for name, _ in error.headers):
        headers += ((b"x-should-retry", b"true" if retry else b"false"),)
    return headers


def error_body(exchange: Exchange, error: GatewayError) -> bytes:
    """The error in the client's envelope; an upstream's own envelope stays byte for byte where it may, which is not the carrier's."""
    body: bytes | None = None if exchange.carried else getattr(error, "body", None)
    return exchange.face.error(error, exchange.request_id) if body is None else body


def folded(pointers: tuple[str, ...]) -> bytes:
    """JSON pointers as one header value: ASCII, array indices folded to `*`, each once, at most 1,024 bytes, then how many are left out."""
    names = list(dict.fromkeys(_folded(pointer) for pointer in pointers))
    kept: list[str] = []
    room = _DROPPED_BYTES - len(",+999999")
    for name in names:
        room -= len(name) + 1
        if room < 0:
            break
        kept.append(name)
    rest = len(names) - len(kept)
    return ",".join([*kept, f"+{rest}"] if rest else kept).encode()


def _folded(pointer: str) -> str:
    ascii_only = pointer.encode("ascii", "backslashreplace").decode()
    clean = "".join(char if char.isprintable() and char != "," else "?" for char in ascii_only)
    return "/".join("*" if step.isdigit() else step for step in clean.split("/"))
