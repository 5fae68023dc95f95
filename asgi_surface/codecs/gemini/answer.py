"""Reads the facts of an unstreamed generateContent answer: a chunk that is the whole. Knows nothing of frames."""

from __future__ import annotations

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Sight
from asgi_surface.codecs.gemini.stream import CHUNK


def document(body: bytes) -> Sight:
    """The facts of an answer: its finish and usage where it gives them, and its end; or the fault, where it is only an error.

    Raises `ValueError` when the body is no JSON object.
    """
    answer = reading.decode(CHUNK, body)
    if answer.error and not answer.candidates:
        return Sight((reading.fault(reading.error_facts(body)),))
    return Sight((*answer.signals(reading.Candidates()), reading.END), answer.size())
