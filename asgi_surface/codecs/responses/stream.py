"""Reads the terminal facts of a Responses stream, and writes the error that may end one.

Knows nothing of requests or routes. Every event is JSON with its own `type`; the terminals are `response.completed`, `response.incomplete`,
`response.failed` and `error`. The official wire has no `response.cancelled`: a server that sends one has sent no terminal that a client knows.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.codecs.responses.answer import ANSWER, terminal
from asgi_surface.errors import GatewayError, Kind
from asgi_surface.framing import Frame
from asgi_surface.ir import Stop


class _Event(Struct):
    type: Any = None
    sequence_number: Any = None
    response: Raw = Raw()
    item: Raw = Raw()
    delta: Any = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any] | None)
_ENDS: Final = {"response.completed": Stop.END, "response.incomplete": Stop.OTHER}
_FAULTS: Final = frozenset({"response.failed", "error"})
_PINGS: Final = frozenset({"keepalive", "ping"})
_KEPT: Final = 1 << 20
"""Bytes of done items that a failure repeats. Longer ones (images) and what follows them are left out: the client has had them."""


class ResponsesWatch:
    """Follows one stream's events; remembers the numbering, the response object and the items that were done, so that a failure can continue them.

    Nothing it remembers is changed in place, so a copy goes on by itself.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._response = Raw()
        self._done: tuple[Raw, ...] = ()
        self._room = _KEPT

    def see(self, frame: Frame) -> Sight:
        """The facts of one event."""
        if not frame.data or frame.data.startswith(b"[DONE]"):  # compatible servers send it behind the terminal: here it ends nothing
            return reading.PING
        event = reading.decode(_EVENT, frame.data)
        kind = event.type if isinstance(event.type, str) else frame.event.decode("latin-1")
        sight = self._sight(kind, event, frame.data)
        self._remember(kind, event)
        return sight

    def _sight(self, kind: str, event: _Event, data: bytes) -> Sight:
        if (stop := _ENDS.get(kind)) is not None:
            return Sight(terminal(reading.decode(ANSWER, bytes(event.response)), stop))
        if kind in _FAULTS or event.error:
            return Sight(_failed(data, event))
        return reading.PING if kind in _PINGS else Sight((), reading.size(event.delta) if kind.endswith(".delta") else 0)

    def _remember(self, kind: str, event: _Event) -> None:
        self._last = reading.first(reading.count(event.sequence_number), self._last)
        if event.response and not self._response:
            self._response = event.response
        if kind == "response.output_item.done":
            self._room -= len(bytes(event.item))
            self._done += (event.item,) if event.item and self._room >= 0 else ()

    def failure(self, error: GatewayError, request_id: str) -> tuple[bytes, bytes]:  # noqa: ARG002  -- the surface has no place for it
        """`response.failed` with the response object as the stream began it, and the items that were done.

        An `error` event when it never did: an id is not invented.
        """
        number = 0 if self._last is None else self._last + 1
        code = "rate_limit_exceeded" if error.kind is Kind.RATE_LIMIT else "server_error"  # of the SDK's closed list
        response = reading.decode(_OBJECT, bytes(self._response) or b"{}") or {}
        if not isinstance(response.get("id"), str):
            return b"error", _event("error", number, code=code, message=error.text, param=None)
        failed = {"status": "failed", "error": {"code": code, "message": error.text}, "output": self._done}
        return b"response.failed", _event("response.failed", number, response={"object": "response"} | response | failed)


def _event(kind: str, number: int, **members: object) -> bytes:
    return msgspec.json.encode({"type": kind, "sequence_number": number, **members})


def _failed(data: bytes, event: _Event) -> tuple[Signal, ...]:
    """The error of `response.failed` stands in the response, that of an `error` event in the event or in its `error`."""
    if not event.response:
        return (reading.fault(reading.error_facts(data)),)
    return terminal(structs.replace(reading.decode(ANSWER, bytes(event.response)), status="failed"), Stop.ERROR)


watch: Final = ResponsesWatch
