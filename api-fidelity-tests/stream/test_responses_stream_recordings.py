"""Every recorded Responses stream decodes to what its watch reports, and to what the items that were done say as a whole answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asgi_surface.assembly import Fold
from asgi_surface.codecs.responses.decode import decoder
from asgi_surface.codecs.responses.read import read
from asgi_surface.codecs.responses.stream import watch
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Closed, End, Fault, Finish, Grew, Opened, Sealed, Start, UsageSeen
from asgi_surface.framing import Framing, splitter
from asgi_surface.ir import Call, Stop
from asgi_surface.translation import Translation

FOLDER = Path(__file__).parents[3] / "shared" / "recorded" / "responses"
# One recording is a Chat stream, which an Azure router sent for a Responses request.
STREAMS = sorted(path for path in FOLDER.glob("*.sse") if "model-router" not in path.stem)


OVER = {"response.completed", "response.incomplete"}


@pytest.fixture(params=STREAMS, ids=[path.stem for path in STREAMS])
def frames(request):
    found = splitter(Framing.SSE, 1 << 24).feed(request.param.read_bytes())
    return [frame for frame in found if frame.data]


def decoded(frames):
    reading = decoder()
    return [event for frame in frames for event in reading.feed(frame)], reading.unread


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.skipif(not STREAMS, reason="the recordings lie beside the project")
class TestRecording:
    def test_the_terminal_facts_are_the_watch_s(self, frames):
        looking = watch()
        signals = [signal for frame in frames for signal in looking.see(frame).signals]
        events, _ = decoded(frames)
        finishes = [Stop.END if event.stop is Stop.TOOLS else event.stop for event in only(events, Finish)]
        assert finishes == [signal.stop for signal in signals if signal.stop is not None]
        assert [event.usage for event in only(events, UsageSeen)] == [signal.usage for signal in signals if signal.usage is not None]
        assert [event.facts for event in only(events, Fault)] == [signal.fault for signal in signals if signal.fault is not None]
        assert len(only(events, End)) == (len(finishes) or 0)
        assert len(only(events, Start)) == 1
        assert isinstance(events[0], Start)

    def test_the_folded_answer_is_of_the_terminal_s_model_and_tier(self, frames):
        """OpenAI says `auto` as it begins, and the tier that it took as it ends."""
        kept = []
        blame = lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message)  # noqa: E731
        fold = Fold(lambda response: kept.append(response) or b"")
        one = Translation(
            decoder(), fold, upstream=Framing.SSE, downstream=None, event_bytes=1 << 24, output_chars=1 << 24, eof_ends=False, blame=blame
        )
        one.feed(b"".join(frame.raw for frame in frames))
        ends = [event for frame in frames if frame.data != b"[DONE]" if (event := json.loads(frame.data))["type"] in OVER]
        assert [(answer.model, answer.service_tier) for answer in kept] == [
            (end["response"]["model"], end["response"].get("service_tier")) for end in ends[:1]
        ]

    def test_the_parts_are_those_of_the_items_that_were_done(self, frames):
        events = [json.loads(frame.data) for frame in frames if frame.data != b"[DONE]"]
        # One recording holds four streams, one behind another.
        last = next(
            index for index, event in enumerate(events) if event["type"].endswith((".completed", ".incomplete", ".failed")) and "response" in event
        )
        events, terminal = events[: last + 1], events[last]["response"]
        told, unread = decoded(frames[: last + 1])
        # Codex's backend and others leave the terminal's own output empty, or cut.
        ends = sorted((event for event in events if event["type"] == "response.output_item.done"), key=lambda event: event["output_index"])
        done = [event["item"] for event in ends]
        # Of a response that failed its error is told, and nothing else of its head.
        head = {"status": "completed"} if terminal["status"] == "failed" else terminal
        whole = read(json.dumps(head | {"output": done}).encode())
        grown = ["".join(event.text for event in only(told, Grew) if event.index == opened.index) for opened in only(told, Opened)]
        assert grown == [part.arguments if isinstance(part, Call) else part.text for part in whole.parts]
        assert [type(opened.part) for opened in only(told, Opened)] == [type(part) for part in whole.parts]
        assert sorted(event.index for event in only(told, Closed)) == [event.index for event in only(told, Opened)]
        # OpenAI seals the same state anew for every snapshot.
        assert len(only(told, Sealed)) == sum(getattr(part, "seal", None) is not None for part in whole.parts)
        assert sorted(unread) == sorted(whole.unread)
