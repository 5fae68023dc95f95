"""Real Messages streams, read into events. The recordings stand beside the checkout, not in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asgi_surface.codecs.messages.decode import decoder
from asgi_surface.codecs.messages.stream import watch
from asgi_surface.events import KINDS, Closed, Finish, Grew, Opened, Start, UsageSeen
from asgi_surface.framing import Framing, splitter
from asgi_surface.lifecycle import Kind

FOLDER = Path(__file__).parents[3] / "shared" / "recorded" / "messages"
FILES = sorted(FOLDER.glob("*.sse"))

pytestmark = pytest.mark.skipif(not FILES, reason="the recordings of shared/ are not beside this checkout")


def read(path):
    """The events, and what the watch says: the reasons, the usages, and the kinds of its terminal signals."""
    cutter, reader, observer = splitter(Framing.SSE, 1 << 24), decoder(), watch()
    frames = [frame for frame in cutter.feed(path.read_bytes()) if frame.data]
    assert cutter.eof() is None
    events = [event for frame in frames for event in reader.feed(frame)]
    return events, [signal for frame in frames for signal in observer.see(frame).signals], frames


def block_text(frames):
    """All text, reasoning and input of the blocks that a client acts on."""
    told, said = set(), []
    for frame in frames:
        event = json.loads(frame.data)
        block, delta = event.get("content_block") or {}, event.get("delta") or {}
        if block.get("type") in ("text", "thinking", "tool_use"):
            told.add(event["index"])
        if event.get("index") in told:
            said += [delta[name] for name in ("text", "thinking", "partial_json") if name in delta]
        said += [(delta.get("stop_details") or {}).get("explanation") or ""]
    return "".join(said)


def test_every_recorded_stream_is_decoded_to_what_the_watch_sees():
    for path in FILES:
        events, signals, frames = read(path)
        terminal = [event for event in events if KINDS[type(event)] not in (Kind.START, Kind.PART)]
        assert [KINDS[type(event)] for event in terminal if not isinstance(event, UsageSeen)] == [
            signal.kind for signal in signals if signal.usage is None
        ], path.name
        assert [event.usage for event in terminal if isinstance(event, UsageSeen)][-1] == [s.usage for s in signals if s.usage][-1], path.name
        (finish,) = (event for event in terminal if isinstance(event, Finish))
        (seen,) = (signal.stop for signal in signals if signal.stop is not None)
        assert finish.stop is seen, path.name
        assert isinstance(events[0], Start), path.name
        assert "".join(event.text for event in events if isinstance(event, Grew)) == block_text(frames), path.name


def test_every_part_of_a_recorded_stream_is_closed():
    for path in FILES:
        events, _, _ = read(path)
        opened = [event.index for event in events if isinstance(event, Opened)]
        assert opened == list(range(len(opened))), path.name
        assert [event.index for event in events if isinstance(event, Closed)] == opened, path.name
