"""Every recorded Gemini stream decodes, to what the native watch sees in it. The recordings stand beside the checkout, not in it."""

from pathlib import Path

import pytest

from asgi_surface import ir
from asgi_surface.codecs.gemini.decode import decoder
from asgi_surface.codecs.gemini.stream import watch
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.events import Fault, Finish, Grew, Start, Told, UsageSeen
from asgi_surface.framing import Framing, splitter
from asgi_surface.lifecycle import Kind

RECORDED = sorted((Path(__file__).parents[3] / "shared" / "recorded" / "gemini").glob("*.sse"))

pytestmark = pytest.mark.skipif(not RECORDED, reason="the recordings of shared/ are not beside this checkout")


def frames(file):
    cutter = splitter(Framing.SSE, 1 << 24)
    found = [*cutter.feed(file.read_bytes()), cutter.eof()]
    return [frame for frame in found if frame is not None and frame.data]


def watched(given):
    """The native facts: stop, usage, faults, characters."""
    native = watch()
    sights = [native.see(frame) for frame in given]
    signals = [signal for sight in sights for signal in sight.signals]
    return (
        [signal.stop for signal in signals if signal.kind is Kind.FINISH],
        [signal.usage for signal in signals if signal.kind is Kind.USAGE],
        [signal.fault for signal in signals if signal.kind is Kind.FAULT],
        sum(sight.chars for sight in sights),
    )


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_a_recorded_stream_decodes_to_what_its_watch_sees(file):
    given = frames(file)
    reader = decoder()
    events = [event for frame in given for event in reader.feed(frame)]
    stops, usages, faults, chars = watched(given)
    said = [event.stop for event in events if isinstance(event, Finish)]
    assert [ir.Stop.END if stop is ir.Stop.TOOLS else stop for stop in said] == stops  # Gemini says STOP for calls
    assert [event.usage for event in events if isinstance(event, UsageSeen)] == usages
    assert [event.facts for event in events if isinstance(event, Fault)] == faults
    assert sum(isinstance(event, Start) for event in events) == bool(stops)
    if "stream-tool-call-arguments" not in file.stem:  # the watch does not count pieces of arguments
        assert sum(len(event.text) for event in events if isinstance(event, Grew)) == chars
    tiers = [event.service_tier for event in events if isinstance(event, Start | Told)]
    assert (tiers[-1:] == ["default"]) == any(b'"serviceTier":"standard"' in frame.data for frame in given)
    assert set(reader.unread) <= ROWS.keys()
