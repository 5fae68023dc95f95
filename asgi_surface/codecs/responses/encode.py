"""Writes one streamed answer as a Responses client reads it: the response object when it begins and ends, its items between, every event numbered.

The client's `stream_options.include_obfuscation` asks for padding in the deltas against those who watch the sizes of encrypted records. The padding
says nothing and is optional on the wire: no event has any, whatever the client said. Knows nothing of the upstream's surface.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

import msgspec
from msgspec import Raw, structs

from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.responses.encode_items import Desk, Item, Said
from asgi_surface.codecs.responses.encode_parts import SCRIBES, Scribe
from asgi_surface.codecs.responses.write import write
from asgi_surface.errors import GatewayError, Kind, UpstreamError
from asgi_surface.events import Ending, Grew, Opened, PartEvent, Start
from asgi_surface.ir import Refusal, Response, Usage

_RESPONSE: Final = msgspec.json.Decoder(Item)
_RUNNING: Final = {"status": Raw(b'"in_progress"')}
_COMPLETED: Final = Raw(b'"completed"')

# How the surfaces call the error that a client may wait out. The SDK's list of codes has `rate_limit_exceeded` and `server_error` for what can go
# wrong with an upstream.
_LIMITS: Final = frozenset({"rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"})


class ResponsesEncoder:
    """One stream. Item after item, as the official API sends them.

    The wire's indices would let several items be open at a time, but clients cannot follow it: Codex gives every delta to the one item it saw begin
    last, and forgets that one with the next item that is done.
    """

    sequential = True
    several = False

    def __init__(self, context: Context) -> None:
        self._context = context
        self._desk = Desk(context)
        self._answer = Response(id=None, model=None)
        self._parts: dict[int, Scribe] = {}
        self._number = 0

    def open(self, start: Start, usage: Usage | None) -> Frames:  # noqa: ARG002  -- a running response has none
        """The response object, while it runs. Its usage is null until it ends."""
        self._answer = Response(id=start.id, model=start.model, created=start.created, service_tier=start.service_tier)
        running = self._running()
        return self._frames((kind, {"response": running}) for kind in ("response.created", "response.in_progress"))

    def _running(self) -> Item:
        return _RESPONSE.decode(write(self._answer, self._context)) | _RUNNING

    def note(self, start: Start, usage: Usage | None) -> None:  # noqa: ARG002  -- comes with the end
        """The response that the terminal carries has the model and the tier as they are known by then."""
        self._answer = structs.replace(self._answer, model=start.model, service_tier=start.service_tier)

    def part(self, event: PartEvent) -> Frames:
        """The events of an item. Raises `UpstreamError` when a call cannot be told to the client."""
        if not isinstance(event, Opened):
            return self._frames(self._parts[event.index].take(event))
        scribe = self._parts[event.index] = SCRIBES[type(event.part)](self._desk, event.part)
        known = getattr(event.part, "text", "")
        return self._frames(chain(scribe.opened(), scribe.take(Grew(event.index, known))))

    def close(self, ending: Ending) -> Frames:
        """The last item's end, and the whole response. Raises `UpstreamError` when one of its calls cannot be told."""
        parts = (Refusal(""),) if self._desk.refused else ()
        ended = structs.replace(self._answer, parts=parts, stop=ending.stop, usage=ending.usage)
        response = _RESPONSE.decode(write(ended, self._context))
        cut = response["status"] != _COMPLETED
        self._desk.judge(ending.stop)
        frames = self._frames(self._desk.settle(ending.stop, cut=cut))
        kind = "response.incomplete" if cut else "response.completed"
        return frames + self._frames([(kind, {"response": response | {"output": self._output()}})])

    def fail(self, error: GatewayError) -> Frames:
        """`response.failed` with the items that were done; an `error` event when no response has begun: an id is not invented."""
        code = _code(error)
        if not self._number:
            return self._frames([("error", {"code": code, "message": error.text, "param": None})])
        failure: dict[str, object] = {"status": "failed", "error": {"code": code, "message": error.text}, "output": self._output()}
        return self._frames([("response.failed", {"response": self._running() | failure})])

    def _output(self) -> Raw:
        return Raw(msgspec.json.encode(self._desk.done))

    def _frames(self, said: Iterable[Said]) -> Frames:
        return [(kind.encode(), self._numbered(kind, members)) for kind, members in said]

    def _numbered(self, kind: str, members: dict[str, object]) -> bytes:
        number, self._number = self._number, self._number + 1
        return msgspec.json.encode({"type": kind, "sequence_number": number, **members})


def _code(error: GatewayError) -> str:
    said = {error.detail.code, error.detail.type} if isinstance(error, UpstreamError) else set()
    limited = error.kind is Kind.RATE_LIMIT or error.status == 429 or said & _LIMITS
    return "rate_limit_exceeded" if limited else "server_error"


encoder: Final = ResponsesEncoder
