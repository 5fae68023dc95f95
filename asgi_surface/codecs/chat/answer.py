"""Reads the facts of an unstreamed Chat Completions answer. Knows nothing of streams: their reader is `stream`."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.base import Sight
from asgi_surface.codecs.chat.stream import STOPS, Said


class _Choice(Struct):
    message: Said | None = None
    finish_reason: Any = None


class _Answer(Struct):
    object: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def document(body: bytes) -> Sight:
    """The facts of an answer: its finish and usage where it gives them, and its end; or the fault, where the answer is only an error.

    Raises `ValueError` when the body is no JSON object of this surface.
    """
    answer = reading.decode(_ANSWER, body)
    choices = answer.choices or []
    if answer.object == "error" or (answer.error and not choices):
        return Sight((reading.fault(reading.error_facts(body)),))
    stops = [stop for choice in choices if (stop := reading.reason(STOPS, choice.finish_reason)) is not None]
    signals = (*reading.finish(max(stops, default=None)), *reading.spent(openai_wire.usage(answer.usage)), reading.END)
    return Sight(signals, sum(choice.message.size() for choice in choices if choice.message))
