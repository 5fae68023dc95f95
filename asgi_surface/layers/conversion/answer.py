"""One upstream answer as ASGI messages: told apart into a stream, a JSON document or a failure, and decoded. Streams go to `streaming`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.codecs.reading import decode, is_envelope
from asgi_surface.errors import Code, ErrorFacts, GatewayError, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Response
from asgi_surface.layers.conversion.meaning import answered, in_own_words, said
from asgi_surface.layers.conversion.stitched import Stitched
from asgi_surface.layers.conversion.streaming import Folding, Streaming
from asgi_surface.layers.exchange import ASGIApp, ClientGone, Exchange, Headers, Message, Receive, Scope, Send
from asgi_surface.lifecycle import Kind
from asgi_surface.members import Members
from asgi_surface.refusals import in_answer, refusal
from asgi_surface.surfaces import MESSAGES, Operation
from asgi_surface.upstream.unpacking import Unpacking

# Response headers of an upstream that may pass. Everything else stays here: cookies, server names, organisation ids, and whatever an upstream
# echoes of our own request.
_IDS: Final = frozenset({b"x-request-id", b"request-id"})
_PASSING: Final = _IDS | {b"retry-after", b"openai-processing-ms", b"openai-version"}
_PASSING_PREFIX: Final = (b"x-ratelimit-", b"anthropic-ratelimit-")

_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")  # what a stream of events begins with
_UNREADABLE: Final = "the upstream's answer cannot be read as an answer of its surface"
_ERROR_BYTES: Final = 65_536  # of an error body; the rest is not read
_MEMBERS: Final = msgspec.json.Decoder(Members)
_GRACE: Final = 2.0  # seconds for an error body, and for an upstream that goes on after its terminal


class Shape(enum.Enum):
    """What a body turned out to be."""

    STREAM = enum.auto()
    DOCUMENT = enum.auto()
    FAILURE = enum.auto()


class Progress(enum.Enum):
    """How far the upstream's side has come: still open, its body whole, or the client already told the end."""

    OPEN = enum.auto()
    WHOLE = enum.auto()
    TOLD = enum.auto()


class Answer:
    """One upstream answer on its way to the client."""

    def __init__(self, exchange: Exchange, send: Send, secrets: Sequence[str]) -> None:
        self._exchange = exchange
        self._plan = exchange.planned()
        self._codec = CODECS[self._plan.upstream_surface]
        self._send = send
        self._secrets = secrets
        self._status = 0
        self._headers: Headers = ()
        self._unpack = Unpacking()
        self._shape: Shape | None = None
        self._body = bytearray()
        self._patience = anyio.CancelScope()
        self._stream: Streaming | Stitched | Folding | None = None
        if exchange.session is not None:
            self._stream = Stitched(exchange, send, self._refused)
        elif self._plan.stream:
            self._stream = Streaming(exchange, send, self._refused, secrets)
        self._progress = Progress.OPEN
        self._knows_529 = self._plan.downstream_surface == MESSAGES

    async def take(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        """Runs the upstream to the answer's end. Raises `UpstreamError` while nothing has been sent to the client."""
        try:
            await self._run(app, scope, receive)
        except GatewayError as error:
            if not isinstance(self._stream, Streaming) or not self._stream.begun:
                raise
            await self._stream.fail(error)
        except ClientGone:
            raise
        except Exception:
            # A mistake of ours ends a stream no worse than one of the upstream's.
            if isinstance(self._stream, Streaming) and self._stream.begun:
                await self._stream.fail(GatewayError(Code.INTERNAL, "the gateway failed"))
            raise

    async def _run(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        if isinstance(self._stream, Stitched):
            await self._stream.begin()
        try:
            with self._patience:
                await app(scope, receive, self._take)
        except UpstreamError:
            # A refusal whose body broke is still a refusal, and a whole answer was not harmed by what came after it.
            if self._progress is Progress.OPEN and self._shape is not Shape.FAILURE:
                raise
        if self._progress is not Progress.TOLD:
            await self._end()

    async def _take(self, message: Message) -> None:
        """The `send` of the layers within. What an upstream says after the answer's end counts for the record at most."""
        if self._progress is Progress.WHOLE:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
            return
        last = not message.get("more_body", False)
        for data in self._unpack.pieces(message.get("body", b""), last=last):
            if data:
                await self._feed(data)
            if self._unpack.packed:
                await checkpoint()  # much may be packed into one message: others get their turn, and a deadline its chance
        if last and self._progress is Progress.OPEN:
            self._progress = Progress.WHOLE
            self._hurry()

    def _start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._status = status
        self._headers = tuple((name.lower(), value) for name, value in headers)
        self._exchange.answer_headers = tuple(pair for pair in self._headers if pair[0] in _PASSING or pair[0].startswith(_PASSING_PREFIX))
        if status != 200:
            self._shape = Shape.FAILURE
            self._hurry()
        coding = next((value for name, value in self._headers if name == b"content-encoding"), b"")
        # Bounded is what comes out: a stream by its events and its text, a document as it is collected.
        self._unpack = Unpacking(coding)

    def _hurry(self) -> None:
        self._patience.deadline = anyio.current_time() + _GRACE

    async def _feed(self, data: bytes) -> None:
        if self._shape is None:
            self._recognise(bytes(self._body) + data)
        if self._shape is not Shape.STREAM or self._stream is None:
            self._collect(data)
            return
        data, self._body = bytes(self._body) + data, bytearray()
        if await self._stream.feed(data) and self._progress is Progress.OPEN:
            self._progress = Progress.TOLD
            if self._stream.failed:
                self._patience.cancel()  # what more the upstream says is of no use to anybody
            self._hurry()

    def _recognise(self, data: bytes) -> None:
        """Tells a document from a stream, and how it is framed: the first byte says it more truly than the content type, or than what was asked for.

        Nothing is told while only white space, or a piece of a first field's name, has come.
        """
        head = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:8]
        if not head or any(field.startswith(head) for field in _FIELDS):
            return
        array = Framing.JSON_ARRAY in self._codec.framings and head.startswith(b"[")
        if not (array or head.startswith(_FIELDS)):
            self._shape = Shape.DOCUMENT
            return
        self._shape = Shape.STREAM
        framing = Framing.JSON_ARRAY if array else Framing.SSE
        if isinstance(self._stream, Streaming | Stitched):
            self._stream.framed(framing)
        else:
            self._stream = Folding(self._exchange, self._send, self._refused, framing)

    def _collect(self, data: bytes) -> None:
        limit = _ERROR_BYTES if self._shape is Shape.FAILURE else self._plan.limits.response_bytes
        self._body += data[: max(0, limit + 1 - len(self._body))]
        if len(self._body) <= limit:
            return
        if self._shape is not Shape.FAILURE:
            raise _too_large()
        # What has been read classifies the error; an endless error page is left.
        self._patience.cancel()

    async def _end(self) -> None:
        """The upstream has nothing more to say."""
        whole = self._progress is Progress.WHOLE or self._shape is Shape.FAILURE
        if self._stream is not None and self._shape in (Shape.STREAM, None):
            await self._stream.eof(whole=whole)
            return
        if not whole:
            raise UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's answer was cut")
        body = bytes(self._body)
        if self._shape is Shape.FAILURE:
            self._keep_ids()
            facts = self._codec.error_facts(body)
            refused = refusal(self._status, facts, body, self._headers, secrets=self._secrets, keep_529=self._knows_529)
            if refused.body is not None and not is_envelope(refused.body, self._codec.envelope):
                refused.body = None
            raise in_own_words(self._exchange, refused)
        await self._document(body)

    async def _document(self, body: bytes) -> None:
        """A whole JSON answer: relayed byte for byte once it is known to be one."""
        sight = self._read(body)
        fault = next((signal.fault for signal in sight.signals if signal.kind is Kind.FAULT), None)
        if fault is not None:
            raise self._refused(fault)
        if sight.chars > self._plan.limits.output_chars:
            raise _too_large()
        self._exchange.note(sight.signals)
        if isinstance(self._stream, Streaming | Stitched):
            await self._stream.tell(self._answered(body), body)
            return
        body = self._said(body)
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def _read(self, body: bytes) -> Sight:
        try:
            return self._counted(body) if self._plan.operation is Operation.COUNT_TOKENS else self._codec.document(body)
        except ValueError:
            raise _bad("the upstream's answer is not a JSON answer of its surface") from None

    def _answered(self, body: bytes) -> Response:
        try:
            return answered(self._exchange, body)
        except ValueError:
            raise self._unreadable(body) from None

    def _said(self, body: bytes) -> bytes:
        try:
            return said(self._exchange, body)
        except ValueError:
            raise self._unreadable(body) from None

    def _unreadable(self, body: bytes) -> UpstreamError:
        """The error for an answer that is none: its own, where it holds one, as a failed response does. Natively that is a client's to read."""
        facts = self._codec.error_facts(body)
        return _bad(_UNREADABLE) if facts is None else self._refused(facts)

    def _counted(self, body: bytes) -> Sight:
        decode(_MEMBERS, body)
        facts = self._codec.error_facts(body)
        return Sight() if facts is None else Sight((Signal(Kind.FAULT, fault=facts),))

    def _refused(self, fault: ErrorFacts) -> UpstreamError:
        """The error that an upstream hid in a 200 answer."""
        self._keep_ids()
        return in_own_words(self._exchange, in_answer(fault, self._headers, secrets=self._secrets, keep_529=self._knows_529))

    def _keep_ids(self) -> None:
        """An error brings its own selection of the upstream's headers; of the answer's own only the ids stay."""
        self._exchange.answer_headers = tuple(pair for pair in self._headers if pair[0] in _IDS)

    def settle(self) -> None:
        """Notes what is known at the end, however it came."""
        if self._stream is not None:
            self._stream.settle()


def _bad(text: str) -> UpstreamError:
    return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, text)


def _too_large() -> UpstreamError:
    return UpstreamError(Code.OUTPUT_TOO_LARGE, "the upstream's answer is too large")
