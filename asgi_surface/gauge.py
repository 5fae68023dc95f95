"""Bounds of an upstream's stream beyond the size of one frame: how many events it may have, and how long a line may be. Knows no surface."""

from __future__ import annotations

from asgi_surface.errors import Code
from asgi_surface.framing import Frame
from asgi_surface.plans import Limits


class Gauge:
    """Measures one stream, frame by frame. A bound that is None does not hold."""

    def __init__(self, events: int | None, line_bytes: int | None) -> None:
        self._left = events
        self._line_bytes = line_bytes

    def weigh(self, frame: Frame) -> Code | None:
        """What the frame breaks: one event too many, or a line that is too long, its end not counted."""
        if self._left is not None and frame.data:
            self._left -= 1
            if self._left < 0:
                return Code.OUTPUT_TOO_LARGE
        if self._line_bytes is not None and any(len(line) > self._line_bytes for line in frame.raw.splitlines()):
            return Code.EVENT_TOO_LARGE
        return None


def gauge(limits: Limits) -> Gauge | None:
    """The gauge for a plan's limits; None where they say nothing of it, as mostly."""
    return None if limits.events is None and limits.line_bytes is None else Gauge(limits.events, limits.line_bytes)
