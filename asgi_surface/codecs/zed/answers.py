"""Reads what a Zed upstream answers: JSON lines in either framing, a count of tokens, and errors.

Knows the carrier's words; an event's meaning is its own surface's affair, but for its name and whether it is the last one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from asgi_surface.codecs.reading import decode
from asgi_surface.errors import ErrorFacts, UpstreamDetail
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface

WRAPPED: Final = b"x-zed-server-supports-status-messages"
"""The response header whose presence says that every line is wrapped as an event or a status."""


class LineTooLong(ValueError):
    """A line has more bytes than the limit. `lines` are the whole ones that came before it in the same chunk."""

    def __init__(self, limit: int, lines: list[bytes]) -> None:
        super().__init__(f"a line of more than {limit} bytes")
        self.lines = lines


class Lines:
    """Cuts a body into lines. `rest` is what stands behind the last line end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends. Raises `LineTooLong`."""
        first, *others = chunk.split(b"\n")
        self._held.append(first)
        self._size += len(first)
        lines: list[bytes] = []
        for piece in others:
            self._check(lines)
            lines.append(self.rest)
            self._held, self._size = [piece], len(piece)
        self._check(lines)
        return lines

    def _check(self, lines: list[bytes]) -> None:
        if self._size > self._limit:
            raise LineTooLong(self._limit, lines)

    @property
    def rest(self) -> bytes:
        """What is held of a line."""
        return b"".join(self._held)


class Event(Struct, frozen=True):
    """One event of the carried surface: its SSE name (b"" where the surface has none), its JSON, and whether the surface ends with it."""

    name: bytes
    data: bytes
    last: bool = False


class Failed(Struct, frozen=True):
    """The upstream says that it failed; `retry_after` is in seconds."""

    facts: ErrorFacts
    retry_after: float | None


class Ended(Struct, frozen=True):
    """The upstream says that the answer is whole."""


Said = Event | Failed | Ended


class _Line(Struct, forbid_unknown_fields=True):
    event: Raw | UnsetType = UNSET
    status: Any = UNSET


class _Typed(Struct):
    type: Any = None


class _Fault(Struct):
    code: Any = None
    message: Any = None
    upstream_status: Any = None
    retry_after: Any = None


class _Count(Struct):
    tokens: int


_LINE: Final = msgspec.json.Decoder(_Line)
_EVENT: Final = msgspec.json.Decoder(dict[str, Raw])
_TYPED: Final = msgspec.json.Decoder(_Typed)
_FAULT: Final = msgspec.json.Decoder(_Fault)
_COUNT: Final = msgspec.json.Decoder(_Count)
# A type may become an `event:` line, so nothing passes that could end it.
_NAME: Final = re.compile(r"[a-z0-9_.]{1,64}", re.ASCII)
# What ends an answer of the surfaces whose events have types. It waits for the carrier's own end, which may still tell of a failure.
_LAST: Final[dict[Surface, frozenset[str]]] = {
    MESSAGES: frozenset({"message_stop"}),
    RESPONSES: frozenset({"response.completed", "response.incomplete"}),
}


def line_reader(surface: Surface, *, wrapped: bool) -> Callable[[bytes], Said | None]:
    """A function that reads one line: None for a status that says nothing of the answer. It raises `ValueError` for what is no line of Zed's."""
    return (lambda line: _tagged(surface, line)) if wrapped else (lambda line: _event(surface, line.strip()))


def _tagged(surface: Surface, line: bytes) -> Said | None:
    said = decode(_LINE, line)
    if isinstance(said.event, Raw) and said.status is UNSET:
        return _event(surface, bytes(said.event))
    if said.event is UNSET and said.status is not UNSET:
        return _status(said.status)
    raise ValueError("neither an event nor a status")


def _event(surface: Surface, data: bytes) -> Event:
    if surface not in _LAST:
        decode(_EVENT, data)
        return Event(b"", data)
    kind = decode(_TYPED, data).type
    name = kind if isinstance(kind, str) and _NAME.fullmatch(kind) else ""
    return Event(name.encode(), data, name in _LAST[surface])


def _status(said: object) -> Said | None:
    """`queued`, `started` and whatever else Zed says or once said of its work (`usage_updated`) tells nothing of the answer."""
    if said == "stream_ended":
        return Ended()
    if isinstance(said, dict) and "failed" in said:
        fault = msgspec.convert(said["failed"], _Fault) if isinstance(said["failed"], dict) else _Fault()
        return Failed(_facts(fault, None), _seconds(fault))
    return None


_UPSTREAM: Final = "upstream_http_"
_DAY: Final = 86_400  # JSON's whole numbers may be larger than any float
_NUMBER: Final = re.compile(r"upstream_http_(\d{3})", re.ASCII)


def error(status: int, body: bytes) -> tuple[int, bytes, float | None] | None:
    """What an error answer really says: the provider's status behind it, a body that says so in plain words, and seconds to wait.

    None where the body is no error of Zed's, or the status says all: a 402 is the operator's account, whatever the body holds.
    """
    if status == 402:
        return None
    try:
        fault = decode(_FAULT, body)
    except ValueError:
        return None
    if not isinstance(fault.code, str) or not isinstance(fault.message, str):
        return None
    facts = _facts(fault, status)
    told = {"message": facts.message, "code": facts.detail.code}
    return facts.status or status, msgspec.json.encode({name: word for name, word in told.items() if word}), _seconds(fault)


def _facts(fault: _Fault, status: int | None) -> ErrorFacts:
    """A code that only repeats the provider's status says no more than it."""
    code, message = (word if isinstance(word, str) else "" for word in (fault.code, fault.message))
    if not code.startswith(_UPSTREAM):
        return ErrorFacts(message, UpstreamDetail(code=code or None), status)
    number = _NUMBER.fullmatch(code)
    known = status if code.endswith("_error") or number is None else _valid(int(number[1])) or status
    return ErrorFacts(message, UpstreamDetail(), _valid(fault.upstream_status) or known)


def _valid(status: object) -> int | None:
    return status if type(status) is int and 400 <= status <= 599 else None


def _seconds(fault: _Fault) -> float | None:
    """How long to wait, a day at most; Zed's own clients heed it only where a provider said it."""
    said, told = fault.retry_after, isinstance(fault.code, str) and fault.code.startswith(_UPSTREAM)
    return float(min(said, _DAY)) if told and type(said) in (int, float) and said >= 0 else None


_COUNTED: Final[dict[Surface, str]] = {MESSAGES: "input_tokens", GEMINI: "totalTokens"}


def counted(surface: Surface, body: bytes) -> bytes:
    """A count of tokens as the carried surface says it. Raises `ValueError` for what is none."""
    return msgspec.json.encode({_COUNTED[surface]: decode(_COUNT, body).tokens})


FINAL: Final[dict[Surface, bytes]] = {CHAT: b"[DONE]"}
"""What a surface's own stream says last, where no event of Zed's carries it."""
