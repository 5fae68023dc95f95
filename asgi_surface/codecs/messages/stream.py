"""Reads the terminal facts of a Messages stream, and writes the error that may end one.

Knows nothing of requests or routes. The end is `message_stop`; the finish stands in `message_delta`; usage is spread over `message_start` and
`message_delta`, each number cumulative.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.codecs.messages.answer import STOPS, Spent
from asgi_surface.codecs.messages.errors import error as envelope
from asgi_surface.errors import GatewayError
from asgi_surface.framing import Frame


class _Piece(Struct):
    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    content: Any = None  # of a compaction, or of a server tool's result
    stop_reason: Any = None

    def size(self) -> int:
        return sum(map(reading.size, (self.text, self.thinking, self.partial_json, self.content)))


class _Message(Struct):
    usage: Any = None


class _Event(Struct):
    type: Any = None
    message: _Message | None = None
    delta: _Piece | None = None
    content_block: _Piece | None = None
    usage: Any = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event)
# The name may become an `event:` line, so nothing passes that could end it.
_NAME: Final = re.compile(r"[a-z0-9_.]{1,64}", re.ASCII)


class MessagesWatch:
    """Follows one stream's events and the numbers of its usage so far."""

    def __init__(self) -> None:
        self._spent = Spent()

    def see(self, frame: Frame) -> Sight:
        """The facts of one event, and the event name that the SDK needs to see it at all."""
        if not frame.data:
            return reading.PING
        event = reading.decode(_EVENT, frame.data)
        kind = event.type if isinstance(event.type, str) else frame.event.decode("latin-1")
        chars = sum(piece.size() for piece in (event.delta, event.content_block) if piece)
        name = kind.encode() if _NAME.fullmatch(kind) else b""
        return Sight(self._signals(kind, event, frame.data), chars, name, kind != "ping")

    def _signals(self, kind: str, event: _Event, data: bytes) -> tuple[Signal, ...]:
        if kind == "error" or event.error:
            return (reading.fault(reading.error_facts(data)),)
        if kind == "message_stop":
            return (reading.END,)
        stop = event.delta.stop_reason if event.delta else None
        return reading.finish(reading.reason(STOPS, stop)) + self._usage(event.message.usage if event.message else event.usage)

    def _usage(self, said: object) -> tuple[Signal, ...]:
        return reading.spent(self._spent.take(said)) if said else ()

    def failure(self, error: GatewayError, request_id: str) -> tuple[bytes, bytes]:
        """The `error` event, which is the error envelope."""
        return b"error", envelope(error, request_id)


watch: Final = MessagesWatch
