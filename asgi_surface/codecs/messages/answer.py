"""Reads the facts of a Messages answer: why it stopped and what it used. Knows nothing of events."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Sight
from asgi_surface.ir import Stop, Usage

STOPS: Final[dict[str, Stop]] = {
    "end_turn": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "stop_sequence": Stop.STOP_SEQUENCE,
    "tool_use": Stop.TOOLS,
    "pause_turn": Stop.PAUSE,
    "compaction": Stop.PAUSE,  # the turn waits for the client to go on with the summary
    "refusal": Stop.REFUSAL,
}


class Spent:
    """The usage numbers of one answer. Input is told in three parts, and a later report may repeat only some of them."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: dict[str, int] = {}

    def take(self, report: object) -> Usage:
        """All numbers so far with those of one more usage object."""
        self._said |= {name: number for name, value in reading.mapping(report).items() if (number := reading.count(value)) is not None}
        details = reading.mapping(reading.mapping(report).get("output_tokens_details"))
        if (thinking := reading.count(details.get("thinking_tokens"))) is not None:
            self._said["thinking_tokens"] = thinking
        say = self._said.get
        read, written = say("cache_read_input_tokens"), say("cache_creation_input_tokens")
        return Usage(reading.total(say("input_tokens"), read, written), say("output_tokens"), read, written, say("thinking_tokens"))


class _Answer(Struct):
    type: Any = None
    content: Any = None
    stop_reason: Any = None
    usage: Any = None
    error: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def document(body: bytes) -> Sight:
    """The facts of an answer: its finish and usage where it gives them, and its end; or the fault, where it is only an error.

    Raises `ValueError` when the body is no JSON object.
    """
    answer = reading.decode(_ANSWER, body)
    if answer.type == "error" or (answer.error and not answer.content):
        return Sight((reading.fault(reading.error_facts(body)),))
    signals = (*reading.finish(reading.reason(STOPS, answer.stop_reason)), *reading.spent(Spent().take(answer.usage)), reading.END)
    return Sight(signals, reading.size(answer.content))
