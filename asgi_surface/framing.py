"""Bytes to frames, each with its exact bytes, and our own frames to bytes. Knows nothing of LLMs, nor of what a frame's data means.

Which frames come out depends on the bytes alone, never on how they were chunked.
"""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

import msgspec
from msgspec import Struct


class Framing(enum.StrEnum):
    """How a body is cut into frames."""

    SSE = "sse"
    JSON_ARRAY = "json-array"


class Frame(Struct, frozen=True, gc=False):
    """One whole frame.

    `raw` is its exact bytes: for SSE with the blank line that ends it, in an array with what stands before the element. `event` is the SSE event
    name (b"" for none). `data` is b"" when there is nothing to read: a comment, a block of other fields, the end of an array.
    """

    raw: bytes
    event: bytes
    data: bytes


class FrameTooLarge(ValueError):
    """A frame, or what is held of one, has more bytes than the limit. `frames` are the whole ones that came before it in the same chunk.

    What a splitter finds after an error means nothing.
    """

    def __init__(self, limit: int, frames: list[Frame]) -> None:
        super().__init__(f"a frame of more than {limit} bytes")
        self.frames = frames


class Splitter(Protocol):
    """Finds whole frames in a byte stream."""

    @property
    def half(self) -> bool:
        """Whether, after `eof`, bytes were left that are no whole frame. Comments and white space do not count."""
        ...

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes. Raises `FrameTooLarge`, or `ValueError` when the bytes are not of this framing at all."""
        ...

    def eof(self) -> Frame | None:
        """The body has ended cleanly: the last frame, with what its end lacked, or None."""
        ...


Buffer = bytes | bytearray


class _Cutter(ABC):
    """What both splitters do: hold the incomplete tail, and remember how far it was searched, so that a huge frame in small chunks stays linear."""

    def __init__(self, limit: int) -> None:
        self.half = False
        self._limit = limit
        self._held = bytearray()
        self._at = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        end = 0
        if self._held:
            self._held += chunk
            end = self._end(self._held)
            if end < 0 and len(self._held) <= self._limit:
                return []
            chunk = bytes(self._held)
            self._held.clear()
        frames, start = self._frames(chunk, end)
        if len(chunk) - start > self._limit:
            raise FrameTooLarge(self._limit, frames)
        if start < len(chunk):
            self._held += chunk[start:]
        self._at -= start
        return frames

    @abstractmethod
    def _end(self, buffer: Buffer) -> int:
        """Where the next frame ends, searched from `_at` on, which moves to what was searched; -1 when it does not end in the buffer."""

    @abstractmethod
    def _frames(self, chunk: bytes, end: int) -> tuple[list[Frame], int]:
        """The frames of the chunk up to one that is too large, and where they end; `end`, unless 0, is what `_end` said of the first one."""


_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?!\Z)")
# A line end after an LF or CRLF. A CR as the very last byte decides nothing yet: it may be half of a CRLF.
_BLANK: Final = re.compile(rb"\n(?:\n|\r\n|\r(?=[^\n]))")
_FIRST_LINE: Final = re.compile(rb"([^\r\n]++)(\r\n|\n|\r)")


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _fields(block: bytes) -> tuple[bytes, bytes]:
    """Event name and data of a block whose lines end in LF. `id`, `retry` and unknown fields say nothing here."""
    line = block.find(b"\n") + 1
    if block[:7] == b"event: " and block[line : line + 6] == b"data: " and block.find(b"\n", line) == len(block) - 2:
        return block[7 : line - 1], block[line + 6 : -2]  # the common case, in half the time
    event, data = b"", []
    for field in block.split(b"\n"):
        name, _, value = field.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
    return event, b"\n".join(data)


class _Sse(_Cutter):
    """Server-sent events by the WHATWG grammar, on bytes: LF, CR and CRLF end lines, nothing else does (U+2028 is legal inside JSON strings).

    A frame ends where one line end follows another. After a lone CR a second one ends it at once, and an LF behind that stands at the head of the
    next frame, where it says nothing: so no live stream waits for a byte that may not come, and one that uses CRLF has its frames whole.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._bom = _BOM
        self._line_end = b""
        self._plain = True  # no CR seen yet: the usual stream, for which `bytes.find` is enough

    def _end(self, buffer: Buffer) -> int:
        self._plain = self._plain and buffer.find(b"\r", self._at) < 0
        end = self._blank(buffer, self._at)
        self._at = max(self._at, len(buffer) - 2)
        return end

    def _blank(self, buffer: Buffer, at: int) -> int:
        if self._plain:
            found = buffer.find(b"\n\n", at)
            return found if found < 0 else found + 2
        match = _BLANK.search(buffer, at)
        end = match.end() if match else -1
        lone = buffer.find(b"\r\r", at, end if match else len(buffer))
        return end if lone < 0 else lone + 2

    def _frames(self, chunk: bytes, _end: int) -> tuple[list[Frame], int]:
        self._plain = plain = self._plain and b"\r" not in chunk
        frames: list[Frame] = []
        start, size = 0, len(chunk)
        while start < size:
            end = chunk.find(b"\n\n", start) + 2 if plain else self._blank(chunk, start)
            if end < 2 or end - start > self._limit:
                break
            raw = chunk[start:end]
            if plain and raw[:6] == b"data: " and raw.find(b"\n") == end - start - 2:  # one data line alone, as most frames are
                frames.append(Frame(raw, b"", raw[6:-2]))
            else:
                frames.append(Frame(raw, *self._read(raw)))
            self._bom = b""
            start = end
        self._at = max(start, size - 2) if start < size else size
        if frames and not plain:
            self._line_end = b"\r\n" if chunk.endswith(b"\r\n", 0, start) else chunk[start - 1 : start]
        return frames, start

    def _read(self, raw: bytes) -> tuple[bytes, bytes]:
        block = raw.removeprefix(self._bom) if self._bom else raw
        return _fields(block if self._plain else _unix(block))

    def eof(self) -> Frame | None:
        rest = bytes(self._held)
        event, data = self._read(rest)
        if _whole(data):
            return Frame(rest + self._missing(rest), event, data)
        self.half = any(line.strip() and not line.startswith(b":") for line in _unix(rest).split(b"\n"))
        return None

    def _missing(self, rest: bytes) -> bytes:
        """What the rest lacks of a blank line, in its own line ending, else in that before it. A CR that ended no line yet is half of a CRLF."""
        own = _LINE_END.search(rest)
        before = b"\r\n" if rest[-1:] == b"\r" != self._line_end else self._line_end or (b"\n" if self._plain else b"\r\n")
        blank = (own.group() if own else before) * 2
        return next(blank[size:] for size in range(len(blank), -1, -1) if rest.endswith(blank[:size]))


def _whole(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return data == b"[DONE]"
    return True


_SPACE: Final = b" \t\n\r"
_BLANKS: Final = re.compile(rb"[ \t\n\r]*+")
_GAP: Final = re.compile(rb"[ \t\n\r,]*+")
_SCALAR: Final = re.compile(rb"[^ \t\n\r,\]]*+")
# Up to the next bracket, over whole strings; it stops at the quote of a string that does not end in the buffer.
_NESTED: Final = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_TEXT: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_DEPTH: Final = {b"{"[0]: 1, b"["[0]: 1, b"}"[0]: -1, b"]"[0]: -1}
_OPEN, _QUOTE = b'["'

_Where = enum.Enum("_Where", ["HEAD", "GAP", "SCALAR", "NESTED", "TEXT", "ESCAPE", "CLOSED"])  # where in an array the scan stands
# By an element's first byte: where the scan goes on, and how many bytes it has read. Anything else is a number or a word.
_FIRST: Final = {b"{"[0]: (_Where.NESTED, 0), b"["[0]: (_Where.NESTED, 0), b'"'[0]: (_Where.TEXT, 1), b"]"[0]: (_Where.CLOSED, 1)}


class _Array(_Cutter):
    """A JSON array, element by element, as Gemini streams without `alt=sse`. Whether an element is good JSON is for its reader to say.

    The bracket that closes it is given at `eof`, with all that follows: until the body has ended nobody knows that it ends well, and behind the
    bracket there is no place left for an error.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._where = _Where.HEAD
        self._depth = 0
        self._opening = b"["

    def _end(self, buffer: Buffer) -> int:
        while self._at < len(buffer):
            if self._steps[self._where](self, buffer):
                self._where = _Where.GAP
                return self._at
        return -1

    def _frames(self, chunk: bytes, end: int) -> tuple[list[Frame], int]:
        frames: list[Frame] = []
        start, end = 0, end or self._end(chunk)
        while 0 < end <= start + self._limit:
            frames.append(self._frame(chunk[start:end]))
            start = end
            end = self._end(chunk)
        return frames, start

    def _frame(self, raw: bytes) -> Frame:
        opening, self._opening = self._opening, b""
        return Frame(raw, b"", raw.lstrip(_SPACE).removeprefix(opening).lstrip(_SPACE + b","))

    def eof(self) -> Frame | None:
        rest = bytes(self._held)
        if self._where is _Where.GAP:
            return Frame(rest.strip(_SPACE + b",") + b"]", b"", b"")
        if self._where is _Where.CLOSED and not rest.partition(b"]")[2].strip(_SPACE):
            return Frame(rest, b"", b"")
        self.half = self._where is not _Where.HEAD
        return None

    # Each step reads on from `_at` and says whether that is now the end of an element.

    def _skip(self, pattern: re.Pattern[bytes], buffer: Buffer) -> int:
        """Moves behind what the pattern, which may be nothing, matches: the byte that stands there, -1 at the end of the buffer."""
        match = pattern.match(buffer, self._at)
        assert match is not None
        self._at = match.end()
        return buffer[self._at] if self._at < len(buffer) else -1

    def _head(self, buffer: Buffer) -> bool:
        byte = self._skip(_BLANKS, buffer)
        if byte not in {_OPEN, -1}:
            raise ValueError("not a JSON array")
        self._where = _Where.GAP if byte == _OPEN else _Where.HEAD
        self._at += byte == _OPEN
        return False

    def _gap(self, buffer: Buffer) -> bool:
        byte = self._skip(_GAP, buffer)
        if byte >= 0:
            self._where, size = _FIRST.get(byte, (_Where.SCALAR, 0))
            self._at += size
        return False

    def _scalar(self, buffer: Buffer) -> bool:
        return self._skip(_SCALAR, buffer) >= 0

    def _nested(self, buffer: Buffer) -> bool:
        while (byte := self._skip(_NESTED, buffer)) >= 0:
            self._at += 1
            if byte == _QUOTE:
                self._where = _Where.TEXT
                return False
            self._depth += _DEPTH[byte]
            if not self._depth:
                return True
        return False

    def _text(self, buffer: Buffer) -> bool:
        byte = self._skip(_TEXT, buffer)
        if byte >= 0:
            self._at += 1
            self._where = _Where.NESTED if byte == _QUOTE else _Where.ESCAPE
        return byte == _QUOTE and not self._depth

    def _escape(self, _buffer: Buffer) -> bool:
        self._at += 1
        self._where = _Where.TEXT
        return False

    def _closed(self, buffer: Buffer) -> bool:
        self._at = len(buffer)
        return False

    _steps: ClassVar[dict[_Where, Callable[[_Array, Buffer], bool]]] = {
        _Where.HEAD: _head,
        _Where.GAP: _gap,
        _Where.SCALAR: _scalar,
        _Where.NESTED: _nested,
        _Where.TEXT: _text,
        _Where.ESCAPE: _escape,
        _Where.CLOSED: _closed,
    }


_SPLITTERS: Final[dict[Framing, Callable[[int], Splitter]]] = {Framing.SSE: _Sse, Framing.JSON_ARRAY: _Array}


def splitter(framing: Framing, limit: int) -> Splitter:
    """A splitter for one body. No frame of it may have more than `limit` bytes."""
    return _SPLITTERS[framing](limit)


def write(framing: Framing, event: bytes, data: bytes, *, first: bool) -> bytes:
    """A frame of our own. `event` (b"" for none) is an SSE event name; `first` says that nothing of the array has been sent yet."""
    if framing is Framing.JSON_ARRAY:
        return (b"[" if first else b",") + data
    return (b"event: " + event + b"\n" if event else b"") + b"data: " + _unix(data).replace(b"\n", b"\ndata: ") + b"\n\n"


def closing(framing: Framing, *, opened: bool) -> bytes:
    """What ends a body behind its last frame; an array that was never `opened` is an empty one."""
    return b"" if framing is Framing.SSE else b"]" if opened else b"[]"


def named(raw: bytes, event: bytes) -> bytes:
    """An SSE frame with an `event` line put before its first line, in the frame's own line ending."""
    bom = _BOM if raw.startswith(_BOM) else b""
    return bom + _FIRST_LINE.sub(lambda line: b"event: " + event + line[2] + line[0], raw.removeprefix(bom), count=1)
