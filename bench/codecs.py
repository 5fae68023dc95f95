"""What one stream event costs each codec: decoding, encoding, and both with the table between, beside plain msgspec decoding and encoding.

    python bench/codecs.py [--events N] [--rounds N]

The same text answer goes through every ordered pair in process; no sockets. CPU time per event, the best of the rounds; read the ratios. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable

import msgspec

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Closed, Ending, Grew, Opened, Start
from asgi_surface.framing import Framing, splitter, write
from asgi_surface.ir import Request, Stop, Text, Usage
from asgi_surface.translation import Translation

USAGE = Usage(input=10, output=20)


def context(upstream: str) -> Context:
    request = Request(turns=(), stream=True, include_usage=True)
    return Context(request=request, aliases={}, seal_domain="d", upstream=upstream, model="m", request_id="r", now=1)


def stream(surface: str, events: int) -> bytes:
    """A text answer of so many deltas, as the surface's own encoder writes it."""
    encoder = CODECS[surface].encoder(context(surface))
    frames = encoder.open(Start("id-1", "m", 1), None)
    for event in (Opened(0, Text("")), *(Grew(0, "word ") for _ in range(events)), Closed(0)):
        frames += encoder.part(event)
    frames += encoder.close(Ending(Stop.END, None, USAGE))
    return b"".join(write(Framing.SSE, event, data, first=False) for event, data in frames)


def best(work: Callable[[], object], rounds: int, events: int) -> float:
    """Microseconds of CPU per event, the best round."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return round(min(times) / events * 1e6, 2)


def plain(raw: bytes) -> Callable[[], object]:
    """The floor: every frame's data decoded to objects and encoded again."""
    decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()
    data = [frame.data for frame in splitter(Framing.SSE, 1 << 24).feed(raw) if frame.data not in (b"", b"[DONE]")]
    return lambda: [encoder.encode(decoder.decode(one)) for one in data]


def decoding(surface: str, raw: bytes) -> Callable[[], object]:
    frames = [frame for frame in splitter(Framing.SSE, 1 << 24).feed(raw) if frame.data]

    def work() -> None:
        decoder = CODECS[surface].decoder()
        for frame in frames:
            list(decoder.feed(frame))

    return work


def encoding(surface: str, events: int) -> Callable[[], object]:
    said: Iterable[object] = [Opened(0, Text("")), *(Grew(0, "word ") for _ in range(events)), Closed(0)]

    def work() -> None:
        encoder = CODECS[surface].encoder(context(surface))
        encoder.open(Start("id-1", "m", 1), None)
        for event in said:
            encoder.part(event)
        encoder.close(Ending(Stop.END, None, USAGE))

    return work


def translating(source: str, target: str, raw: bytes) -> Callable[[], object]:
    chunks = [raw[at : at + 4_096] for at in range(0, len(raw), 4_096)]

    def work() -> None:
        one = Translation(
            CODECS[source].decoder(),
            CODECS[target].encoder(context(source)),
            upstream=Framing.SSE,
            downstream=Framing.SSE,
            event_bytes=1 << 24,
            output_chars=1 << 24,
            eof_ends=CODECS[source].eof_ends,
            blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
        )
        for chunk in chunks:
            one.feed(chunk)
        one.eof()
        assert one.fault is None, one.fault

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    raw = {surface: stream(surface, options.events) for surface in CODECS}
    each = {
        surface: {
            "plain": best(plain(raw[surface]), options.rounds, options.events),
            "decode": best(decoding(surface, raw[surface]), options.rounds, options.events),
            "encode": best(encoding(surface, options.events), options.rounds, options.events),
        }
        for surface in CODECS
    }
    pairs = {
        f"{source}->{target}": best(translating(source, target, raw[source]), options.rounds, options.events)
        for source in CODECS
        for target in CODECS
        if source != target
    }
    print(json.dumps({"unit": "us of CPU per event", "codecs": each, "translations": pairs}, indent=2))


if __name__ == "__main__":
    main()
