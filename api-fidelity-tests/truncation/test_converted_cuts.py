"""Every stream of the corpus, converted for every other surface and cut: exactly one terminal, last, and a failure unless the answer was finished.

Each is cut at every byte: by turns the body ends there or breaks off, and around the end of each frame it does both. What a cut must become is worked
out from the corpus by a reading that shares nothing with the package.
"""

from __future__ import annotations

import json
import random
import re
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import pytest

from asgi_surface.assembly import Fold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Request
from asgi_surface.lifecycle import State
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "cut")
SURFACES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
CLIENTS = {**{name: (surface, Framing.SSE) for name, surface in SURFACES.items()}, "array": (GEMINI, Framing.JSON_ARRAY)}
FOLDS = {f"{name} document": (surface, None) for name, surface in SURFACES.items()}


def sse_ends(body):
    return [match.end() for match in re.finditer(rb"\r\n\r\n|\n\n|\r\r", body)]


def array_ends(body):
    """Where the elements end."""
    text, ends, at = body.decode("latin-1"), [], 1
    while (at := text.find("{", at)) >= 0:
        _, at = json.JSONDecoder().raw_decode(text, at)
        ends.append(at)
    return ends


def data_of(raw):
    """The data of an SSE frame, whether its blank line has come or not, or an element."""
    lines = re.split(rb"\r\n|\n|\r", raw)
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:")) or raw.strip(b" \t\r\n,[")


def whole(data):
    try:
        json.loads(data)
    except ValueError:
        return data == b"[DONE]"
    return True


def says(data):
    """What a frame tells of the end: which answers are there (`began`), which have a reason (`done`), and what ends them all."""
    if not data.startswith(b"{"):
        return ["end"] * (data == b"[DONE]")
    event = json.loads(data)
    kind = event.get("type")
    if event.get("error") or kind in {"error", "response.failed"}:
        return ["error"]
    told = []
    for one in event.get("choices", event.get("candidates", [])):
        told.append(("began", one.get("index", 0)))
        told += [("done", one.get("index", 0))] * bool(one.get("finish_reason") or one.get("finishReason"))
    last = kind in {"response.completed", "response.incomplete"}
    told += [("done", 0)] * (last or kind == "message_delta" or "promptFeedback" in event)
    return told + ["end"] * (last or kind == "message_stop")


def finished(told):
    """Whether the first answer, and every other that began, has its reason."""
    return {0, *(word[1] for word in told if word[0] == "began")} == {word[1] for word in told if word[0] == "done"}


class Case:
    """One stream of the corpus."""

    def __init__(self, file):
        self.name = str(file.parent.relative_to(file.parents[2])).removeprefix("native--")
        self.surface = SURFACES[self.name.partition("/")[0]]
        self.array = file.suffix == ".json"
        self.body = file.read_bytes()
        self.ends = array_ends(self.body) if self.array else sse_ends(self.body)
        self.told = [says(data_of(self.body[start:end])) for start, end in pairwise([0, *self.ends])]
        self.near = {end + step for end in (*self.ends, len(self.body)) for step in (-2, -1, 0, 1)}

    def ways(self, at):
        """How it is cut at a byte: whether the body ends cleanly there."""
        return (True, False) if at in self.near else (at % 2 == 0,)

    def succeeds(self, at, *, clean):
        """Whether the client is to be told a good end when the stream stops at this byte."""
        count = bisect_right(self.ends, at)
        rest = self.body[self.ends[count - 1] if count else 0 : at]
        told = [word for words in self.told[:count] for word in words]
        if clean and not self.array and whole(data_of(rest)):
            told, rest = told + says(data_of(rest)), b""
        last = next((place for place, word in enumerate(told) if word in ("end", "error")), None)
        if last is not None:
            return told[last] == "end" and finished(told[:last])
        between = not rest.strip(b" \t\r\n,]") if self.array else all(line[:1] in (b"", b":") for line in re.split(rb"[\r\n]", rest))
        return clean and between and finished(told) and self.surface in {CHAT, GEMINI}


CASES = [Case(file) for file in sorted((Path(__file__).parents[1] / "corpus").glob("native--*/*/upstream.*"))]
PAIRS = [(case, name) for case in CASES for name, (surface, _) in CLIENTS.items() if surface != case.surface]
# Fold where the surfaces match too: a client that asks for JSON has its stream folded natively.
FOLDED = [(case, name) for case in CASES for name in FOLDS]


def blame(facts):
    return UpstreamError(Code.UPSTREAM_ERROR, facts.message)


def translation(case, client):
    surface, framing = {**CLIENTS, **FOLDS}[client]
    reader, writer = CODECS[case.surface], CODECS[surface]
    asked = Request(turns=(), include_usage=True, stream=True, wants_seals=True)
    to = Context(request=asked, aliases={}, seal_domain="up", upstream=case.surface, model="m", request_id="r", now=1)
    return Translation(
        reader.decoder(),
        writer.encoder(to) if framing else Fold(lambda response: writer.write(response, to)),
        upstream=Framing.JSON_ARRAY if case.array else Framing.SSE,
        downstream=framing,
        event_bytes=1 << 20,
        output_chars=1 << 20,
        eof_ends=reader.eof_ends,
        blame=blame,
    )


def fed(case, client, *chunks):
    one = translation(case, client)
    return one, b"".join([one.feed(chunk) for chunk in chunks])


def ended(one, *, clean):
    return one.eof() if clean else one.fail(CUT)


def failed(client, out):
    """Whether the last that a client gets is an error."""
    events = json.loads(out) if client == "array" else [json.loads(data) for data in re.findall(rb"data: (\{.*)", out)]
    return bool(events[-1].get("error")) or events[-1].get("type") in {"error", "response.failed"}


def cut_up(body, dice):
    """The bytes in up to four chunks."""
    places = sorted({0, len(body), *(dice.randint(0, len(body)) for _ in range(3))})
    return [body[start:end] for start, end in pairwise(places)]


def pieces(case, at, dice):
    """The bytes before the cut: as one chunk, or as several."""
    return cut_up(case.body[:at], dice) if at // 2 % 2 else [case.body[:at]]


@pytest.mark.parametrize(("case", "client"), PAIRS, ids=lambda one: getattr(one, "name", one))
def test_a_converted_stream_that_is_cut_has_one_terminal(grammar, case, client):
    """Delivered whole, one byte at a time or in random chunks, the bytes that the client gets are the same."""
    dice = random.Random(case.name)
    slow, slow_out, told, sound = translation(case, client), b"", b"", {}
    for at in range(len(case.body) + 1):
        slow_out += slow.feed(case.body[max(0, at - 1) : at])
        for clean in case.ways(at):
            one, begun = fed(case, client, *pieces(case, at, dice))
            assert begun == slow_out
            out = begun + ended(one, clean=clean)
            if out not in sound:  # most bytes of a frame make no difference to what the client gets
                grammar(CLIENTS[client][0], out, array=client == "array")
                sound[out] = not failed(client, out)
            assert sound[out] == (one.fault is None) == case.succeeds(at, clean=clean)
            assert one.state >= State.DONE
            assert one.feed(case.body[at:]) + one.eof() + one.fail(CUT) == b"", "nothing follows the end"
            told = out if clean else told
    assert slow_out + slow.eof() == told


@pytest.mark.parametrize(("case", "client"), FOLDED, ids=lambda one: getattr(one, "name", one))
def test_a_folded_stream_that_is_cut_is_no_answer(case, client):
    """Either one whole document, or an error and not a byte."""
    dice = random.Random(case.name)
    for at in range(len(case.body) + 1):
        for clean in case.ways(at):
            one, out = fed(case, client, *pieces(case, at, dice))
            out += ended(one, clean=clean)
            good = case.succeeds(at, clean=clean)
            assert (one.fault is None, bool(out)) == (good, good)
            assert not out or json.loads(out)
