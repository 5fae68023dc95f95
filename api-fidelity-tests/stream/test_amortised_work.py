"""The work of an answer grows with what it says, not with the square: an upstream may tell thousands of parts before anybody else gets a turn.

Counted are the lines of the package that run: no clock, the same on every machine.
"""

from __future__ import annotations

import sys

import msgspec
import pytest
from msgspec import Raw

from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.gemini.texts import Measured
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Closed, Ending, Grew, Opened, PartEvent, Start
from asgi_surface.framing import Framing
from asgi_surface.ir import Alternative, Call, Citation, Reasoning, Request, Response, Seal, SealKind, Search, Stop, Text
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Sequencer, Translation

SURFACES = (CHAT, RESPONSES, MESSAGES, GEMINI)
FEW, MANY = 20, 80


def lines(work):
    """How many lines of the package run."""
    count = 0

    def trace(frame, event, _):  # pragma: no cover -- a tracer, like coverage's
        nonlocal count
        if "asgi_surface" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows_as_said(make):
    """Four times as much is four times the work, and no more than a little beside. `make(n)` prepares the work with n of something."""
    few, many = lines(make(FEW)), lines(make(MANY))
    assert few > FEW
    assert many < few * 5, f"{many / few:.1f} times the work for four times as much"


def context(upstream):
    asked = Request(turns=(), stream=True, include_usage=True, wants_seals=True)
    return Context(request=asked, aliases={}, seal_domain="up", upstream=upstream, model="m", request_id="r", now=1)


def translation(upstream, client, *, fold=False):
    reader, writer, to = CODECS[upstream], CODECS[client], context(upstream)
    return Translation(
        reader.decoder(),
        Fold(lambda response: writer.write(response, to)) if fold else writer.encoder(to),
        upstream=Framing.SSE,
        downstream=None if fold else Framing.SSE,
        event_bytes=1 << 24,
        output_chars=1 << 24,
        eof_ends=reader.eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )


SEAL = Seal("dG9r", SealKind.THOUGHT, GEMINI)
LOGPROBS = Raw(b'[{"token":"x","logprob":-0.5,"bytes":null,"top_logprobs":[]}]')
SHAPES = {
    "calls": lambda n: [Call(f"c{i}", "f", '{"a":1}') for i in range(n)],
    "calls without arguments": lambda n: [Call(f"c{i}", "f", "{}") for i in range(n)],
    "texts": lambda n: [Text("x") for _ in range(n)],
    "texts and calls": lambda n: [one for i in range(n) for one in (Text("x"), Call(f"c{i}", "f", "{}"))],
    "thoughts and texts": lambda n: [one for _ in range(n) for one in (Reasoning("x"), Text("y"))],
    "sealed thoughts": lambda n: [Reasoning("", SEAL) for _ in range(n)] + [Text("x")],
    "sources": lambda n: [Text("xy" * n, citations=tuple(Citation(f"u{i}", "t", 2 * i, 2 * i + 1) for i in range(n)))],
    "searches": lambda n: [*(Search(f"s{i}", "q", (Citation("u"),)) for i in range(n)), Text("x")],
}


def said(shape, n):
    return Response(id="i", model="up", created=1, parts=tuple(SHAPES[shape](n)), stop=Stop.END, logprobs=LOGPROBS)


def streamed(surface, response):
    """The stream of a surface that says an answer."""
    one = translation(surface, surface)
    return one.say(unfold(response))


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_stream_is_read_and_written(surface, shape, fold):
    def make(n):
        one, body = translation(surface, surface, fold=fold), streamed(surface, said(shape, n))
        return lambda: one.feed(body) + one.eof()

    grows_as_said(make)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_document_is_read_and_written(surface, shape):
    def make(n):
        codec, to = CODECS[surface], context(surface)
        body = codec.write(said(shape, n), to)

        def work():  # pragma: no cover -- while another tracer is set
            response = codec.read(body)
            codec.write(response, to)
            codec.unsaid(response, to)

        return work

    grows_as_said(make)


def data(events):
    return b"".join(b"data: %b\n\n" % msgspec.json.encode(event) for event in events)


def chat(*deltas):
    return data(
        [*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    )


def call(index, arguments, **named):
    own = {"id": f"c{index}"} if named else {}
    return {"tool_calls": [{"index": index, **own, "function": {"arguments": arguments, **named}}]}


def side_by_side(n):
    """All calls open, then all grow, then all end."""
    return chat(*(call(i, "{", name="f") for i in range(n)), *(call(i, piece) for piece in ('"a":{}', "}") for i in range(n)))


def among_others(n):
    """One call in many pieces, with another call after each."""
    between = (one for i in range(n) for one in (call(0, "{},"), call(i + 1, "{}", name="g")))
    return chat(call(0, '{"a":[', name="f"), *between, call(0, "{}]}"))


def responses(*events, output=()):
    created = {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    return data([created, *events, {"type": "response.completed", "response": {"status": "completed", "output": list(output)}}])


def item(i, kind="message", **more):
    return {"type": kind, "status": "completed", **more} | (
        {"content": [{"type": "output_text", "text": f"x{i}", "annotations": []}]} if kind == "message" else {}
    )


STREAMS = {
    "calls that grow side by side": lambda n: (CHAT, side_by_side(n)),
    "one call in many pieces between others": lambda n: (CHAT, among_others(n)),
    "a finish again and again": lambda n: (CHAT, b"".join(chat(call(i, "{}", name="f")) for i in range(n))),
    "many answers": lambda n: (
        CHAT,
        data({"choices": [{"index": i, "delta": {"content": "x"}, "finish_reason": "stop"}]} for i in range(n)),
    ),
    "items without ids": lambda n: (
        RESPONSES,
        responses(
            *({"type": "response.output_item.added", "output_index": i, "item": item(i)} for i in range(n)),
            *({"type": "response.output_text.delta", "output_index": i, "content_index": 0, "delta": "x"} for i in range(n)),
            *({"type": "response.output_item.done", "output_index": i, "item": item("")} for i in range(n)),
            output=map(item, range(n)),
        ),
    ),
    "items known by their end only": lambda n: (RESPONSES, responses(output=map(item, range(n)))),
    "events of no item": lambda n: (
        RESPONSES,
        responses(
            *({"type": "response.output_item.done", "output_index": i, "item": item(i, "image_generation_call", id=f"i{i}")} for i in range(n)),
            *({"type": "response.image_generation_call.newer", "output_index": i, "item_id": "x"} for i in range(n)),
            *({"type": "response.newer", "item_id": "x"} for _ in range(n)),
        ),
    ),
    "paragraphs of a summary": lambda n: (
        RESPONSES,
        responses(*({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": i, "delta": "x"} for i in range(n))),
    ),
    "sources behind many calls": lambda n: (
        GEMINI,
        data(
            [
                {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}] * n}}]},
                *({"candidates": [{"content": {"parts": [{"text": "é"}]}}]} for _ in range(n)),
                {"candidates": [{"groundingMetadata": {"groundingChunks": [{"web": {"uri": f"u{i}"}} for i in range(n)]}, "finishReason": "STOP"}]},
            ]
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("client", "fold"), [(CHAT, False), (MESSAGES, False), (CHAT, True)])
@pytest.mark.parametrize("case", STREAMS)
def test_streams_that_are_odd(case, client, fold):
    """For a client who gets all at once, one who gets part after part, and one who gets it whole."""

    def make(n):
        upstream, body = STREAMS[case](n)
        one = translation(upstream, client, fold=fold)
        return lambda: one.feed(body) + one.eof()

    grows_as_said(make)


def test_parts_that_wait_for_one():
    """All are open when the first closes, and each lets the next go on."""

    def make(n):
        one = Sequencer()
        events = [Opened(i, Text("")) for i in range(n)] + [Grew(i, "x") for i in range(n)] + [Closed(i) for i in range(n)]
        return lambda: [list(one.feed(event)) for event in events]

    grows_as_said(make)


def test_many_answers_are_put_together():
    def make(n):
        fold = Fold(lambda response: str(len(response.more)).encode())
        response = Response(id="i", model="up", parts=(Text("x"),), more=tuple(Alternative(parts=(Text("y"),), stop=Stop.END) for _ in range(n)))
        events = [event for event in unfold(response) if isinstance(event, PartEvent)]

        def work():  # pragma: no cover -- while another tracer is set
            fold.open(Start(), None)
            for event in events:
                fold.part(event)
            assert fold.close(Ending(Stop.END, more=dict.fromkeys(range(1, n + 1), Stop.END))) == [(b"", b"%d" % n)]

        return work

    grows_as_said(make)


@pytest.mark.parametrize("pieces", [[], [""], ["ab"], ["a", "bé", "c"], ["é€", "", "😀x"], ["ab", "cé"]])
def test_texts_are_measured_in_bytes_and_in_characters(pieces):
    """As encoding and decoding tell it, asked after each piece."""
    one, text = Measured(), ""
    for piece in ["", *pieces]:
        one.add(piece)
        text += piece
        assert bool(one) is bool(text)
        for size in range(len(text.encode()) + 2):
            assert one.characters(size) == len(text.encode()[:size].decode(errors="ignore"))
        for count in range(len(text) + 2):
            assert one.bytes(count) == len(text[:count].encode())
