"""Bytes to frames: the same frames however the bytes arrive, as a slow reading of the standards finds them, and every byte in one of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface.framing import Frame, FrameTooLarge, Framing, closing, named, splitter, write

LIMIT = 1 << 20
BOM = b"\xef\xbb\xbf"
quick = settings(max_examples=120, deadline=None, database=None)


def pieces(body, cuts):
    """The body cut at the given places, which are taken modulo its length; empty pieces too."""
    at = sorted(cut % (len(body) + 1) for cut in cuts)
    return [body[start:end] for start, end in zip([0, *at], [*at, len(body)], strict=True)]


def split(framing, chunks):
    cutter = splitter(framing, LIMIT)
    return cutter, [frame for chunk in chunks for frame in cutter.feed(chunk)]


def reference(body):
    """The WHATWG event stream algorithm, byte by byte: (event, data) of what it dispatches with data."""
    lines, line, rest = [], bytearray(), body.removeprefix(BOM)
    while rest:
        size = 2 if rest[:2] == b"\r\n" else 1
        head, rest = rest[:size], rest[size:]
        if head in (b"\r\n", b"\n", b"\r"):
            lines.append(bytes(line))
            line.clear()
        else:
            line += head
    found, event, data = [], b"", []
    for one in lines:
        if not one:
            found += [(event, b"\n".join(data))] if any(data) or len(data) > 1 else []
            event, data = b"", []
            continue
        name, _, value = one.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        event = value if name == b"event" else event
        data += [value] if name == b"data" else []
    return found


TOKENS = [
    b"data: {}",
    b"data:1",
    b"data",
    b"data:  two",
    b"event: e",
    b"event:",
    b": note",
    b"id: 7",
    b"retry: 3",
    b"dat",
    BOM,
    b"\xe2\x80\xa8",
    b"\x0b",
]
ENDS = [b"\n", b"\r\n", b"\r"]
lines = st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from([*ENDS, *(end + end for end in ENDS), b"\n\r", b""])).map(b"".join), max_size=12)
cuts = st.lists(st.integers(0, 400), max_size=8)


@given(lines.map(b"".join), cuts)
@quick
def test_sse_is_read_as_the_standard_says(body, where):
    body += b":"  # decides whether a CR at the very end was half of a CRLF
    _, frames = split(Framing.SSE, pieces(body, where))
    assert [(frame.event, frame.data) for frame in frames if frame.data] == reference(body)
    assert body.startswith(b"".join(frame.raw for frame in frames))


@given(lines.map(b"".join), st.sampled_from(ENDS), cuts)
@quick
def test_sse_frames_do_not_depend_on_the_chunks(body, end, where):
    uniform = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", end)
    for stream in (body, uniform):
        whole, expected = split(Framing.SSE, [stream])
        for chunks in (pieces(stream, where), [stream[at : at + 1] for at in range(len(stream))]):
            cutter, frames = split(Framing.SSE, chunks)
            assert frames == expected
            assert (cutter.eof(), cutter.half) == (splitter_end := (whole.eof(), whole.half))
            assert splitter_end[0] is None or not splitter_end[1]


@pytest.mark.parametrize(
    ("chunks", "given_at_once"),
    [
        ([b"data: 1\n", b"\n", b"data: 2\n\n"], [0, 1, 1]),
        ([b"data: 1\r\n", b"\r", b"\ndata: 2\r\n\r\n"], [0, 0, 2]),
        ([b"data: 1\r\n\r\n", b"data: 2\r\n\r\n"], [1, 1]),
        ([b"data: 1\r", b"\r", b"data: 2\r\r"], [0, 1, 1]),
        ([b"data: 1\r\r", b"\ndata: 2\n\n"], [1, 1]),
        ([b"data: 1\n\r", b"data: 2\n\n"], [0, 2]),
        ([b"data: 1\n\ndata: 2\r\n\r\ndata: 3\r\r"], [3]),
        ([b"data: 1\n\ndata", b": 2\r\r"], [1, 1]),
    ],
)
def test_a_live_frame_waits_only_for_the_rest_of_a_crlf(chunks, given_at_once):
    cutter = splitter(Framing.SSE, LIMIT)
    assert [len(cutter.feed(chunk)) for chunk in chunks] == given_at_once


@pytest.mark.parametrize(
    ("raw", "event", "data"),
    [
        (b": ping\n\n", b"", b""),
        (b"\n\n", b"", b""),
        (b"event: e\nid: 1\nretry: 5\n\n", b"e", b""),
        (b"data:\n\n", b"", b""),
        (b"data: a\ndata: b\ndata:  c\n\n", b"", b"a\nb\n c"),
        (b"event: e\ndata: {}\n\n", b"e", b"{}"),
        (b"event: e\ndata: a\ndata: b\n\n", b"e", b"a\nb"),
        (b"data: {}\nevent: late\n\n", b"late", b"{}"),
        (BOM + b"data: {}\n\n", b"", b"{}"),
        (BOM + b"event: e\r\ndata: {}\r\n\r\n", b"e", b"{}"),
        (b"\ndata: {}\n\n", b"", b"{}"),
        ('data: "\u2028\x85\x0b\x0c"\n\n'.encode(), b"", '"\u2028\x85\x0b\x0c"'.encode()),
    ],
)
def test_one_frame(raw, event, data):
    assert splitter(Framing.SSE, LIMIT).feed(raw) == [Frame(raw, event, data)]


def test_only_the_first_byte_order_mark_is_one():
    _, frames = split(Framing.SSE, [b"data: 1\n\n" + BOM + b"data: 2\n\n", BOM + b"data: 3\n\n"])
    assert [frame.data for frame in frames] == [b"1", b"", b""]


@pytest.mark.parametrize(
    ("before", "rest", "added"),
    [
        (b"", b"data: {}", b"\n\n"),
        (b"", b"data: {}\n", b"\n"),
        (b"", b"data: {}\r\n", b"\r\n"),
        (b"", b"data: {}\r\n\r", b"\n"),
        (b"", b"data: {}\r", b"\n\r\n"),
        (b"data: 1\r\n\r\n", b"data: {}\r", b"\n\r\n"),
        (b"data: 1\r\r", b"data: {}\r", b"\r"),
        (b"", b"event: e\r\ndata: {}\r", b"\n\r\n"),
        (b"", BOM + b"data: [DONE]", b"\n\n"),
        (b"data: 1\n\n", b"data: [DONE]", b"\n\n"),
        (b"data: 1\r\n\r\n", b"data: [DONE]", b"\r\n\r\n"),
        (b"data: 1\r\r", b": note\rdata: [DONE]", b"\r\r"),
        (b"data: 1\r\r", b"data: [DONE]", b"\r\r"),
    ],
)
def test_a_whole_last_frame_gets_its_blank_line(before, rest, added):
    cutter, _ = split(Framing.SSE, [before, rest])
    last = cutter.eof()
    assert last is not None
    assert (last.raw, cutter.half) == (rest + added, False)
    assert split(Framing.SSE, [before, rest + added])[1][-1] == last


@pytest.mark.parametrize(
    ("rest", "half"),
    [
        (b"", False),
        (b"\n", False),
        (b": note", False),
        (b": note\r\n:", False),
        (b"data: {", True),
        (b"data: [DON", True),
        (b"data: " + b"[" * 100_000, True),
        (b"event: message_st", True),
        (b"da", True),
    ],
)
def test_a_half_last_frame_is_none(rest, half):
    cutter, _ = split(Framing.SSE, [b"data: 1\n\n", rest])
    assert (cutter.eof(), cutter.half) == (None, half)


inner = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{},: \n\u2028\U0001f600', max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(alphabet='k"}', max_size=3), values, max_size=3),
    max_leaves=8,
)


@given(st.lists(inner, max_size=5), st.sampled_from([None, 0, 2]), st.booleans(), st.sampled_from([b"", b"\r\n", b" \t"]), cuts)
@quick
def test_array_elements_are_those_of_json(values, indent, ascii_only, around, where):
    body = around + json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode() + around
    for chunks in (pieces(body, where), [body[at : at + 1] for at in range(len(body))]):
        cutter, frames = split(Framing.JSON_ARRAY, chunks)
        last = cutter.eof()
        assert [json.loads(frame.data) for frame in frames] == values
        assert last is not None
        assert (last.event, last.data, cutter.half) == (b"", b"", False)
        assert b"".join(frame.raw for frame in [*frames, last]) == body
        assert all(frame.raw.endswith(frame.data) for frame in frames)


@pytest.mark.parametrize(
    ("body", "elements", "last", "half"),
    [
        (b"", [], None, False),
        (b" \n", [], None, False),
        (b" [", [], b"[]", False),
        (b"[\n{}\n,\n", [b"{}"], b"]", False),
        (b"[{}", [b"{}"], b"]", False),
        (b"[{}]\n", [b"{}"], b"]\n", False),
        (b"[]", [], b"[]", False),
        (b"[1, null,[2]]", [b"1", b"null", b"[2]"], b"]", False),
        (b"[1", [], None, True),
        (b"[{}, {", [b"{}"], None, True),
        (b'[{}, {"a', [b"{}"], None, True),
        (b'[{}, {"a\\', [b"{}"], None, True),
        (b"[{}] x", [b"{}"], None, True),
        (b'["a\\"]", }]', [b'"a\\"]"', b"}"], b"]", False),
    ],
)
def test_how_an_array_ends(body, elements, last, half):
    for chunks in ([body], [body[at : at + 1] for at in range(len(body))]):
        cutter, frames = split(Framing.JSON_ARRAY, chunks)
        assert [frame.data for frame in frames] == elements
        end = cutter.eof()
        assert (end and end.raw, cutter.half) == (last, half)


@pytest.mark.parametrize("chunks", [[b'{"error": {}}'], [b" ", b" \n", b"data: 1"], [b"null"]])
def test_what_is_no_array_is_refused(chunks):
    cutter = splitter(Framing.JSON_ARRAY, LIMIT)
    with pytest.raises(ValueError, match="not a JSON array"):
        [cutter.feed(chunk) for chunk in chunks]


LARGE = {
    Framing.SSE: [b'data: "' + b"x" * 400_000 + b'"\n\n', b'data: "' + b"x" * 400_000 + b'"\r\n\r\n'],
    Framing.JSON_ARRAY: [b'[{"a": "' + b'\\"' * 200_000 + b'"}', b'[{"a": [' + b"1.25, {}, " * 40_000 + b"1]}"],
}


@pytest.mark.parametrize(("framing", "body"), [(framing, body) for framing, bodies in LARGE.items() for body in bodies])
def test_a_huge_frame_in_small_chunks(framing, body):
    _, frames = split(framing, [body[at : at + 256] for at in range(0, len(body), 256)])
    assert [frame.raw for frame in frames] == [body]


NINE = {Framing.SSE: b"data: 1\n\n", Framing.JSON_ARRAY: b'[{"a": 1}'}
TEN = {Framing.SSE: (b"data: 22\n\n", b"data: 2222"), Framing.JSON_ARRAY: (b',{"a": 22}', b',{"a": 222', b"         ]")}


@pytest.mark.parametrize(("framing", "large"), [(framing, large) for framing, all_large in TEN.items() for large in all_large])
@pytest.mark.parametrize("size", [1, 4, 9, 100])
def test_the_limit_is_on_one_frame_whatever_the_chunks(framing, large, size):
    body = NINE[framing] + large
    cutter, frames = splitter(framing, 9), []
    with pytest.raises(FrameTooLarge, match="more than 9 bytes") as caught:
        frames.extend(frame for at in range(0, len(body), size) for frame in cutter.feed(body[at : at + size]))
    assert [frame.raw for frame in [*frames, *caught.value.frames]] == [NINE[framing]]


@given(inner, st.sampled_from([b"", b"error"]))
@quick
def test_a_frame_of_ours_reads_back_as_itself(value, event):
    data = json.dumps(value, ensure_ascii=False).encode()
    raw = write(Framing.SSE, event, data, first=False)
    assert split(Framing.SSE, [raw])[1] == [Frame(raw, event, data)]
    body = write(Framing.JSON_ARRAY, event, data, first=True) + write(Framing.JSON_ARRAY, event, data, first=False)
    assert json.loads(body + closing(Framing.JSON_ARRAY, opened=True)) == [value, value]


def test_data_of_several_lines_cannot_leave_its_frame():
    raw = write(Framing.SSE, b"e", b"1\n\nevent: x\r\ry\r\nz", first=True)
    assert split(Framing.SSE, [raw])[1] == [Frame(raw, b"e", b"1\n\nevent: x\n\ny\nz")]


def test_what_closes_a_body():
    assert closing(Framing.SSE, opened=True) == closing(Framing.SSE, opened=False) == b""
    assert json.loads(closing(Framing.JSON_ARRAY, opened=False)) == []


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: 1\n\n", b"event: e\ndata: 1\n\n"),
        (b"data: 1\r\n\r\n", b"event: e\r\ndata: 1\r\n\r\n"),
        (b"data: 1\r\r", b"event: e\rdata: 1\r\r"),
        (b"\n: c\ndata: 1\n\n", b"\nevent: e\n: c\ndata: 1\n\n"),
        (BOM + b"data: 1\n\n", BOM + b"event: e\ndata: 1\n\n"),
    ],
)
def test_an_event_line_is_put_before_the_first_line(raw, expected):
    assert named(raw, b"e") == expected
    assert split(Framing.SSE, [expected])[1] == [Frame(expected, b"e", b"1")]
