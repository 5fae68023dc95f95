"""Reads a Responses stream, event by event. Strict where a client acts on it, tolerant everywhere else. Knows nothing of the client's surface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Signal
from asgi_surface.codecs.responses.answer import ANSWER, failed, terminal
from asgi_surface.codecs.responses.decode_items import Ledger, Place, Voice
from asgi_surface.codecs.responses.known import FRAMES
from asgi_surface.codecs.responses.read import read
from asgi_surface.codecs.responses.stream import ResponsesWatch
from asgi_surface.codecs.strangers import UNKNOWN, Lookout
from asgi_surface.events import End, Event, Fault, Finish, Start, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.ir import Reasoning, Refusal, Response, Stop, Text
from asgi_surface.soundness import ENDED


class _Event(Struct):
    type: Any = None
    item_id: Any = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None
    delta: Any = None
    text: Any = None
    refusal: Any = None
    arguments: Any = None
    input: Any = None
    logprobs: Raw = Raw()
    annotation: Raw = Raw()
    part: Raw = Raw()
    item: Raw = Raw()
    response: Raw = Raw()
    error: Any = None


class _Facts(Struct):
    model: Any = None
    service_tier: Any = None


class _Part(Struct):
    type: Any = None
    text: Any = None


class _Listed(Struct):
    output: list[Raw] | None = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_FACTS: Final = msgspec.json.Decoder(_Facts)
_PART: Final = msgspec.json.Decoder(_Part)
_LISTED: Final = msgspec.json.Decoder(_Listed)
_RAWS: Final = msgspec.json.Decoder(list[Raw])

_TEXT: Final = Voice("message", "text", Text(""))
_REFUSAL: Final = Voice("message", "refusal", Refusal(""))
_FUNCTION: Final = Voice("function_call", "arguments")
_CUSTOM: Final = Voice("custom_tool_call", "input")
_SUMMARY: Final = Voice("reasoning", "summary", Reasoning(""))
_WORDS: Final = Voice("reasoning", "text", Reasoning(""))

_DELTAS: Final = {
    "response.output_text.delta": _TEXT,
    "response.refusal.delta": _REFUSAL,
    "response.function_call_arguments.delta": _FUNCTION,
    "response.custom_tool_call_input.delta": _CUSTOM,
    "response.reasoning_summary_text.delta": _SUMMARY,
    "response.reasoning_text.delta": _WORDS,
}
# Parts of reasoning items, which are no parts of answers.
_THOUGHTS: Final = {"summary_text": _SUMMARY, "reasoning_text": _WORDS}
# What says all of a strand, and the member it stands in.
_DONES: Final = {
    "response.output_text.done": (_TEXT, "text"),
    "response.refusal.done": (_REFUSAL, "refusal"),
    "response.function_call_arguments.done": (_FUNCTION, "arguments"),
    "response.custom_tool_call_input.done": (_CUSTOM, "input"),
    "response.reasoning_summary_text.done": (_SUMMARY, "text"),
    "response.reasoning_text.done": (_WORDS, "text"),
}
_SILENT: Final = frozenset(
    {
        "response.created",
        "response.queued",
        "response.in_progress",
        # Each strand begins with its first word, and the snapshot of the part repeats it.
        "response.reasoning_summary_part.added",
    }
)
# `response.cancelled` is not in the SDK; who sends it has ended.
_ENDS: Final = {"response.completed": Stop.END, "response.incomplete": Stop.OTHER, "response.cancelled": Stop.OTHER}
_FAULTS: Final = frozenset({"response.failed", "error"})
_PINGS: Final = frozenset({"keepalive", "ping"})


class ResponsesDecoder:
    """Follows one stream."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._started = self._newer = False
        self._telling = reading.Telling()
        self._lookout = Lookout(FRAMES)
        self.unread: list[str] = self._ledger.unread

    def feed(self, frame: Frame) -> Iterable[Event]:
        """The events of one frame. `[DONE]`, which compatible servers send behind the terminal, says nothing here."""
        if frame.data.startswith(b"[DONE]"):
            return
        event = reading.decode(_EVENT, frame.data)
        kind = event.type if isinstance(event.type, str) else frame.event.decode("latin-1")
        if kind in _PINGS:
            return
        if kind in _FAULTS or event.error or (kind in _ENDS and failed(reading.decode(ANSWER, bytes(event.response)))):
            yield from _events(ResponsesWatch().see(frame).signals)
            return
        yield from self._facts(kind, event.response)
        yield from self._read(kind, event)
        if kind in _READ:
            self._name(self._lookout.see(frame.data))

    def _name(self, constructs: Iterable[str]) -> None:
        """Names what may come many times in one stream, once."""
        self.unread += (one for one in constructs if one not in self.unread)

    def eof(self) -> Iterable[Event]:
        """Nothing: such an end is none on this surface."""
        return ()

    def _facts(self, kind: str, response: Raw) -> Iterable[Event]:
        """The answer's own facts. Its tier is often known only as it ends."""
        if not kind.startswith("response.") or (self._started and not response):
            return ()
        said = reading.decode(_FACTS, bytes(response)) if bytes(response).startswith(b"{") else _Facts()
        news = self._telling.news(reading.string(said.model), reading.string(said.service_tier))
        if self._started:
            return news
        self._started = True
        return (self._start(response),)

    def _start(self, response: Raw) -> Start:
        """The answer's own facts; an event that carries no response has none."""
        if not response:
            return Start()
        head = _head(response)
        self._name(head.unread)
        return Start(head.id, head.model, head.created, head.service_tier)

    def _read(self, kind: str, event: _Event) -> Iterable[Event]:
        place = Place(_word(event.item_id), reading.count(event.output_index), _number(event))
        if (voice := _DELTAS.get(kind)) is not None:
            return self._ledger.grew(voice, place, _string(event.delta), _entries(event.logprobs))
        if kind in _DONES:
            voice, member = _DONES[kind]
            return self._ledger.said(voice, place, _string(getattr(event, member)))
        if kind in _ENDS:
            return self._ended(event.response, _ENDS[kind])
        take = _TAKES.get(kind)
        return self._passed(kind, place) if take is None else take(self._ledger, event, place)

    def _passed(self, kind: str, place: Place) -> Iterable[Event]:
        """An event of a hosted tool's is named by its item; one of nobody's is newer than the tables, and named once."""
        if not (self._newer or kind in _SILENT or self._ledger.knows(place)):
            self._newer = True
            self._name((UNKNOWN,))
        return ()

    def _ended(self, response: Raw, stop: Stop) -> Iterator[Event]:
        answer = reading.decode(ANSWER, bytes(response))
        head = _head(response)
        self._name(head.unread)
        for part in head.parts:
            yield from self._ledger.beside(part)
        signals = terminal(answer, stop)
        ended = any(signal.stop in ENDED for signal in signals)
        yield from self._ledger.end(reading.decode(_LISTED, bytes(response)).output or [], ended=ended)
        called = self._ledger.called
        for event in _events(signals):
            yield Finish(Stop.TOOLS) if called and event == Finish(Stop.END) else event


def _content(ledger: Ledger, event: _Event, place: Place) -> Iterable[Event]:
    """A snapshot of one part of an item."""
    part = reading.decode(_PART, bytes(event.part) or b"{}")
    voice = _THOUGHTS.get(part.type) if isinstance(part.type, str) else None
    return ledger.content(place, event.part) if voice is None else ledger.said(voice, place, reading.string(part.text) or "")


_TAKES: Final[dict[str, Callable[[Ledger, _Event, Place], Iterable[Event]]]] = {
    "response.output_item.added": lambda ledger, event, place: ledger.announced(event.item, place.index),
    "response.output_item.done": lambda ledger, event, place: ledger.whole(event.item, place.index),
    "response.content_part.added": lambda ledger, event, place: ledger.opened(place, event.part),
    "response.content_part.done": _content,
    "response.reasoning_summary_part.done": _content,
    "response.output_text.annotation.added": lambda ledger, event, place: ledger.cited(place, event.annotation),
}


_READ: Final = _SILENT.union(_DELTAS, _DONES, _ENDS, _TAKES)


def _head(response: Raw) -> Response:
    """What a response object says beside its status and its items."""
    members = reading.decode(_MEMBERS, bytes(response))
    return read(msgspec.json.encode(members | {"status": Raw(b'"completed"'), "output": Raw(b"[]")}))


def _events(signals: Iterable[Signal]) -> Iterator[Event]:
    for signal in signals:
        if signal.stop is not None:
            yield Finish(signal.stop)
        elif signal.usage is not None:
            yield UsageSeen(signal.usage)
        elif signal.fault is not None:
            yield Fault(signal.fault)
        else:
            yield End()


def _number(event: _Event) -> int:
    return reading.first(reading.count(event.content_index), reading.count(event.summary_index)) or 0


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _string(value: object) -> str:
    """Text and arguments of another shape cannot be read."""
    if not isinstance(value, str):
        raise ValueError("no text")  # noqa: TRY004  -- what a decoder raises
    return value


def _entries(logprobs: Raw) -> list[Raw]:
    """Token entries. Log probabilities of another shape are none: they are no part of the answer."""
    return _RAWS.decode(logprobs) if bytes(logprobs).startswith(b"[") else []


decoder: Final = ResponsesDecoder
