"""Every native stream of the corpus, cut at every byte: the client is told the end exactly once, last, and before it only whole frames as they were.

What a cut stream must become is worked out here from the corpus alone, with a reading of SSE and JSON arrays that shares nothing with the package.
"""

from __future__ import annotations

import copy
import json
import random
import re
import tomllib
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import pytest

from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.lifecycle import State
from asgi_surface.stream import Passage

CORPUS = Path(__file__).parents[1] / "corpus"
CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "cut")
SPACE = b" \t\r\n,"


# What a stream says, by the wire's own rules.


def unix(raw):
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(raw):
    """The data of an SSE block, or the text of an array's element."""
    if b"data:" not in raw and raw[:1] in b"[,{ \n\r":
        return raw.strip(SPACE + b"[")
    return b"\n".join(line[5:].strip() for line in unix(raw).split(b"\n") if line.startswith(b"data:"))


def whole(data):
    try:
        json.loads(data)
    except ValueError:
        return data == b"[DONE]"
    return True


def says(surface, data):
    """The terminal that a frame's data is, if any: `end` or `error`."""
    if data == b"[DONE]":
        return "end" if surface == CHAT else None
    said = json.loads(data or b"{}")
    if "error" in said or said.get("type") in {"error", "response.failed"}:
        return "error"
    return "end" if said.get("type") in {"message_stop", "response.completed", "response.incomplete"} else None


def sse_frames(body):
    """The whole blocks, each with the blank line that ends it."""
    return re.findall(rb".*?(?:\r\n\r\n|\n\n|\r\r)", body, re.DOTALL)


def elements(body):
    """The whole elements of an array, each with what stands before it."""
    frames, start = [], 0
    text = body.decode(errors="surrogateescape")
    # Every cut of an array ends in a half element or in nothing, so the loop is only left by the break, or after the last one.
    while (at := next((index for index in range(start + (not frames), len(text)) if text[index] not in " \t\r\n,"), -1)) >= 0:  # pragma: no branch
        try:
            _, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            break
        frames.append(text[start:end].encode(errors="surrogateescape"))
        start = end
    return frames


class Case:
    """One stream of the corpus. `finished` counts the frames after which the answer has its finish (99: never)."""

    def __init__(self, folder):
        facts = tomllib.loads((folder / "case.toml").read_text())
        self.name = f"{folder.parent.name}/{folder.name}"
        self.surface, self.ends = facts["surface"], facts["ends"]
        self.finished, self.stop, self.output = facts.get("finished", 99), facts.get("stop"), facts.get("output")
        [file] = folder.glob("upstream.*")
        self.framing = Framing.JSON_ARRAY if file.suffix == ".json" else Framing.SSE
        self.cutter = elements if file.suffix == ".json" else sse_frames
        self.body = file.read_bytes()
        client = file.with_stem("client")
        self.client = client.read_bytes() if client.exists() else self.body
        self.frames, self.shown = self.cutter(self.body), self.cutter(self.client)
        self.edges = [len(b"".join(self.frames[:count])) for count in range(len(self.frames) + 1)]
        self.told = [says(self.surface, data_of(raw)) for raw in self.frames]

    def passage(self):
        codec = CODECS[self.surface]
        bounds = {"event_bytes": 1 << 20, "output_chars": 1 << 20, "request_id": "req_1"}
        return Passage(codec.watch(), self.framing, eof_ends=codec.eof_ends, **bounds)

    def expected(self, at, *, clean):
        """How many frames the client gets, how many of them byte for byte, and whether an error of ours must follow."""
        count = exact = bisect_right(self.edges, at) - 1
        rest = self.body[self.edges[count] : at]
        if clean and self.framing is Framing.SSE and whole(data_of(rest)):
            count, rest = count + 1, b""
        told = any(self.told[:count])
        at_end = clean and self.surface in {CHAT, GEMINI} and count >= self.finished and self.between(rest)
        return min(count, len(self.shown)), min(exact, len(self.shown)), not (told or at_end)

    def between(self, rest):
        """Whether bytes behind the last frame are no part of another."""
        if self.framing is Framing.JSON_ARRAY:
            return rest.strip(SPACE) in {b"", b"]"}
        return all(not line.strip() or line.startswith(b":") for line in unix(rest).split(b"\n"))

    def check(self, at, out, *, clean):
        """Holds what the client got against what the cut stream must become."""
        count, exact, added = self.expected(at, clean=clean)
        kept = b"".join(self.shown[:exact])
        assert out.startswith(kept)
        got = self.cutter(out)
        assert unix(b"".join(got[:count])) == unix(b"".join(self.shown[:count]))
        assert len(got) == count + added
        assert [says(self.surface, data_of(raw)) for raw in got[count:]] == ["error"] * added
        assert not any(self.told[: count - (not added)]), "exactly one terminal, last"
        if self.framing is Framing.JSON_ARRAY:
            assert json.loads(out)
            assert out[len(b"".join(got)) :].strip() == b"]"
        else:
            assert out == b"".join(got)


CASES = [Case(folder) for folder in sorted(CORPUS.glob("native--*/*"))]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def ended(passage, *, clean):
    return passage.eof() if clean else passage.fail(CUT)


def fed(case, *chunks):
    passage = case.passage()
    return passage, b"".join([passage.feed(chunk) for chunk in chunks])


@every_case
def test_the_whole_stream_passes_and_is_understood(case):
    passage, out = fed(case, case.body)
    assert out + passage.eof() == case.client
    assert passage.state is (State.FAILED if case.ends == "failure" else State.DONE)
    assert (None if passage.stop is None else passage.stop.name.lower()) == case.stop
    assert (passage.usage and passage.usage.output) == case.output
    assert [says(case.surface, data_of(raw)) for raw in case.shown][-1] == {"terminal": "end", "failure": "error", "body": None}[case.ends]


@every_case
@pytest.mark.parametrize("clean", [True, False], ids=["whole", "broken"])
def test_cut_at_every_byte(case, clean):
    """Delivered whole, one byte at a time or in random chunks, the bytes that the client gets are the same."""
    dice = random.Random(case.name)
    slow, slow_out = case.passage(), b""
    for at in range(len(case.body) + 1):
        passage, out = fed(case, case.body[:at])
        out += ended(passage, clean=clean)
        case.check(at, out, clean=clean)
        assert passage.state is (State.DONE if passage.fault is None else State.FAILED)
        assert passage.feed(case.body[at:]) + passage.eof() + passage.fail(CUT) == b"", "nothing follows the end"
        slow_out += slow.feed(case.body[at - 1 : at] if at else b"")
        if at % 2 and not any(abs(at - edge) < 3 for edge in case.edges):
            places = sorted({0, at, *(dice.randint(0, at) for _ in range(3))})
            other, other_out = fed(case, *(case.body[start:end] for start, end in pairwise(places)))
        else:
            other, other_out = (slow if slow.closed else copy.deepcopy(slow)), slow_out
        assert other_out + ended(other, clean=clean) == out


REQUESTS = {
    CHAT: ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}),
    RESPONSES: ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
    MESSAGES: ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}),
    GEMINI: ("/v1beta/models/m:streamGenerateContent", {"contents": [{"parts": [{"text": "hi"}]}]}),
}
TYPES = {Framing.SSE: b"text/event-stream", Framing.JSON_ARRAY: b"application/json"}


def cut_short(case, at, dice, *, clean):
    """What an upstream app sends of a cut stream: it ends cleanly, just returns, or breaks; an error is where it broke."""
    place = dice.randint(0, at)
    chunks = [case.body[:place], case.body[place:at], *([] if clean or dice.random() < 0.5 else [CUT])]
    return {"chunks": chunks, "whole": clean, "headers": [(b"content-type", TYPES[case.framing])]}


@every_case
def test_cut_through_the_whole_gateway(case, gateway, upstream, ask, records):
    dice = random.Random(case.name)
    path, body = REQUESTS[case.surface]
    path += "?alt=sse" if case.surface == GEMINI and case.framing is Framing.SSE else ""
    for at in sorted({*case.edges, len(case.body), *dice.sample(range(len(case.body)), 8)}):
        clean = dice.random() < 0.5
        reply = ask(gateway(upstream(**cut_short(case, at, dice, clean=clean)), case.surface), path, body)
        count, _, added = case.expected(at, clean=clean)
        assert reply.whole
        if any(data_of(raw) for raw in case.frames[:count]):
            assert reply.status == 200
            case.check(at, reply.body, clean=clean)
        else:
            assert (reply.status, reply.headers["x-surface-error"]) == (502, "upstream_truncated")
            assert added
        assert records[-1].ending == ("failed" if added or (case.ends == "failure" and count == len(case.shown)) else "completed")


@pytest.mark.parametrize(
    ("surface", "framing", "out", "terminals"),
    [
        (CHAT, sse_frames, b'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"error":{}}\n\n', [None, "end", "error"]),
        (RESPONSES, sse_frames, b'data: {"type":"response.failed"}\r\n\r\n: c\n\ndata: [DONE]\r\rdata: {"ha', ["error", None, None]),
        (MESSAGES, sse_frames, b'event: message_stop\ndata: {"type":"message_stop"}\n\nevent: error\ndata: {"type":"error"}\n\n', ["end", "error"]),
        (GEMINI, elements, b'[{"a":"]"}\n,\r\n{"error":{}},{"b', [None, "error"]),
    ],
)
def test_the_grammar_counts_what_it_must(surface, framing, out, terminals):
    assert [says(surface, data_of(raw)) for raw in framing(out)] == terminals
