"""Real Chat Completions streams, decoded to what the native observer sees in them. The recordings stand beside the checkout, not in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asgi_surface.codecs.chat.decode import decoder
from asgi_surface.codecs.chat.stream import watch
from asgi_surface.codecs.chat.verdicts import ROWS
from asgi_surface.events import Closed, End, Fault, Finish, Grew, Opened, Start, UsageSeen
from asgi_surface.framing import Framing, splitter
from asgi_surface.ir import Call, Stop
from asgi_surface.lifecycle import Kind

RECORDED = Path(__file__).parents[3] / "shared" / "recorded" / "chat"
STREAMS = sorted(RECORDED.glob("*.sse"))

pytestmark = pytest.mark.skipif(not STREAMS, reason="the recordings of shared/ are not beside this checkout")


def frames_of(path):
    cutter = splitter(Framing.SSE, 1 << 24)
    frames = cutter.feed(path.read_bytes())
    last = cutter.eof()
    return [frame for frame in (*frames, *([last] if last else [])) if frame.data]


def test_every_recorded_stream_decodes_to_what_the_observer_sees():
    for path in STREAMS:
        reader, observer = decoder(), watch()
        frames = frames_of(path)
        events = [event for frame in frames for event in reader.feed(frame)]
        sights = [observer.see(frame) for frame in frames]
        signals = [signal for sight in sights for signal in sight.signals]
        assert isinstance(events[0], Start), path.name
        called = any(isinstance(event, Opened) and isinstance(event.part, Call) for event in events)
        stops = [Stop.TOOLS if called and signal.stop is Stop.END else signal.stop for signal in signals if signal.kind is Kind.FINISH]
        # Where an error frame gives a finish too, only the error counts.
        faults = [signal.fault for signal in signals if signal.kind is Kind.FAULT]
        assert [event.facts for event in events if isinstance(event, Fault)] == faults, path.name
        assert faults or [event.stop for event in events if isinstance(event, Finish)] == stops, path.name
        assert [event.usage for event in events if isinstance(event, UsageSeen)] == [one.usage for one in signals if one.kind is Kind.USAGE], (
            path.name
        )
        assert sum(isinstance(event, End) for event in events) == sum(signal.kind is Kind.END for signal in signals), path.name
        assert sum(len(event.text) for event in events if isinstance(event, Grew)) == sum(sight.chars for sight in sights), path.name
        opened, closed = ([event.index for event in events if isinstance(event, kind)] for kind in (Opened, Closed))
        assert opened == list(range(len(opened))), path.name
        assert faults or sorted(closed) == opened, path.name
        assert set(reader.unread) <= ROWS.keys(), path.name


def test_every_recorded_call_is_whole():
    for path in STREAMS:
        reader = decoder()
        events = [event for frame in frames_of(path) for event in reader.feed(frame)]
        calls = {event.index: event.part.arguments for event in events if isinstance(event, Opened) and isinstance(event.part, Call)}
        for event in events:
            if isinstance(event, Grew) and event.index in calls:
                calls[event.index] += event.text
        cut = any(isinstance(event, Finish) and event.stop is Stop.LENGTH for event in events)
        assert cut or all(isinstance(json.loads(arguments), dict) for arguments in calls.values()), path.name
