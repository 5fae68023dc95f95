"""An answer that goes to a client of the upstream's own surface on another transport: its content stays in the surface's words.

The stream is still decoded beside it: that tells whether, why and how the answer ended, as on every other path. Pure; knows no wire.
"""

from __future__ import annotations

from collections.abc import Iterable

from asgi_surface.codecs.base import Decoder, Encoder, Folder, Frames
from asgi_surface.errors import Code, GatewayError
from asgi_surface.events import Ending, Event, Fault, PartEvent, Start
from asgi_surface.framing import Frame
from asgi_surface.ir import Usage
from asgi_surface.translation import failure


class Listening:
    """A decoder whose frames a folder takes too. `room` bounds the bytes that the folder may keep.

    Nothing is unread: what the decoder does not know stays in the folder's document. Raises `UpstreamError` (output_too_large) beyond the room.
    """

    def __init__(self, decoder: Decoder, folder: Folder, room: int) -> None:
        self.unread: list[str] = []
        self._decoder = decoder
        self._folder = folder
        self._room = room

    def feed(self, frame: Frame) -> Iterable[Event]:
        """The decoder's events. The folder has the frame before any of them is acted on."""
        events = list(self._decoder.feed(frame))
        if not any(isinstance(event, Fault) for event in events):
            self._room -= self._folder.feed(frame)
            if self._room < 0:
                raise failure(Code.OUTPUT_TOO_LARGE)
        return events

    def eof(self) -> Iterable[Event]:
        """What the decoder has left to say. Raises as it does."""
        return self._decoder.eof()


class Whole:
    """Stands in an encoder's place where the stream is known as a whole: says it when the answer has ended well, and nothing before."""

    sequential = False
    several = True

    def __init__(self, frames: Frames, encoder: Encoder) -> None:
        self._frames = frames
        self._encoder = encoder

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """Nothing yet."""
        del start, usage
        return []

    def note(self, start: Start, usage: Usage | None) -> None:
        """Nothing: the stream says it."""

    def part(self, event: PartEvent) -> Frames:
        """Nothing yet."""
        del event
        return []

    def close(self, ending: Ending) -> Frames:
        """The whole stream with its terminal."""
        del ending
        return self._frames

    def fail(self, error: GatewayError) -> Frames:
        """The surface's error terminal."""
        return self._encoder.fail(error)
