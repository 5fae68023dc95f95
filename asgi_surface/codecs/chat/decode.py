"""Reads a Chat Completions stream, chunk by chunk, of any server that speaks it. What a delta says is read as `read` reads a message.

Knows no client: the events are said again by the client's encoder. Nor does it judge their order: that is the lifecycle's table's.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.chat.decode_calls import Calls, Piece
from asgi_surface.codecs.chat.decode_notes import Notes
from asgi_surface.codecs.chat.known import FRAMES
from asgi_surface.codecs.chat.read import (
    _arguments,
    _Call,
    _citations,
    _content,
    _ended,
    _filtered,
    _Function,
    _Logprobs,
    _logprobs,
    _meant,
    _Message,
    _seal,
    _uncounted,
    _unread,
    _words,
)
from asgi_surface.codecs.chat.snapshots import beyond, repeats
from asgi_surface.codecs.chat.stream import STOPS
from asgi_surface.codecs.chat.thoughts import thoughts as reasoned
from asgi_surface.codecs.strangers import UNKNOWN, Lookout
from asgi_surface.errors import ErrorFacts
from asgi_surface.events import Closed, End, Event, Fault, Finish, Grew, Opened, PartEvent, Sealed, Start, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.ir import Form, Reasoning, Refusal, Seal, SealKind, Stop, Text, Usage


class _CallDelta(_Call):
    index: Any = None


class _Delta(_Message):
    tool_calls: list[_CallDelta] | None = None  # type: ignore[assignment]  # msgspec reads it, nobody writes it


class _Choice(Struct):
    index: Any = None
    delta: _Delta | None = None
    message: Raw = Raw()
    finish_reason: Any = None
    logprobs: _Logprobs | None = None
    content_filter_results: Any = None


class _Groq(Struct):
    usage: Any = None
    error: Any = None


class _Chunk(Struct):
    object: Any = None
    id: Any = None
    model: Any = None
    created: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    moderation: Any = None
    prompt_filter_results: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: _Groq | None = None


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_SNAPSHOT: Final = msgspec.json.Decoder(_Delta)
_NO_GROQ: Final = _Groq()
_NO_DELTA: Final = _Delta()
_NO_FUNCTION: Final = _Function()
_FLAT: Final[dict[type, Reasoning | Text | Refusal]] = {Reasoning: Reasoning(""), Text: Text(""), Refusal: Refusal("")}
# The deprecated form has one call and no index.
_OLD_SLOT: Final = "function_call"


class _Answer:
    """One of a stream's answers: its open words, its calls, and what is said about its text.

    Calls that are whole close at a finish, words when their kind changes. The rest waits for `[DONE]`: servers send text and calls after a finish,
    and whether its reason holds is judged at the end.
    """

    def __init__(self, number: int, parts: Iterator[int], skipped: dict[str, None]) -> None:
        self._stop: Stop | None = None
        self._told = False
        self._text: list[str] = []
        self._whole = _NO_DELTA
        self._number = number
        self._parts = parts
        self._skipped = skipped
        self._calls = Calls(parts, number)
        self._flat: tuple[type, int] | None = None
        self._notes = Notes(skipped)

    def take(self, choice: _Choice) -> Iterator[Event]:
        """What one chunk says of this answer. A finish chunk may have text and calls, which come before the finish."""
        called = self._calls.opened
        self._skipped |= _filtered(choice)
        told = list(self._delta(choice.delta or _NO_DELTA, _logprobs(choice.logprobs, self._skipped)))
        yield from told
        self._told = self._told or bool(told)
        if bytes(choice.message).startswith(b"{"):
            yield from self._message(reading.decode(_SNAPSHOT, bytes(choice.message)))
        stop = reading.reason(STOPS, choice.finish_reason)
        if stop is not None:
            self._stop = stop
            yield from self._calls.close_whole()
        elif self._calls.opened > called:
            stop = self._stop  # a call after the finish: it was for calls
        if stop is not None:
            yield Finish(_ended(stop, called=self._calls.opened > 0), choice=self._number)

    def _delta(self, delta: _Delta, logprobs: Raw | None) -> Iterator[PartEvent]:
        yield from self._words(delta)
        yield from self._about_text(delta, logprobs)
        if delta.tool_calls or delta.function_call:
            for piece in _pieces(delta):
                yield from self._call(piece)

    def _message(self, message: _Delta) -> Iterator[PartEvent]:
        """Some servers put the whole message beside the deltas, or in their place: it is news only while no delta has said anything."""
        if self._told:
            again = repeats(message.content, "".join(self._text)) and len(message.tool_calls or ()) <= self._calls.opened
            self._skipped |= {} if again else {UNKNOWN: None}
            return
        for place, call in enumerate(message.tool_calls or ()):
            call.index = place if call.index is None else call.index
        news, self._whole = beyond(self._whole, message)
        yield from self._delta(news, None)

    def done(self) -> Iterator[PartEvent]:
        """Nothing more comes. A further answer without a finish is missed only where it has a part, so one that gave its role alone gets one.

        Calls may have come after a finish. Raises `ValueError` when one of them cannot be told.
        """
        if self._stop is not None:
            yield from self._calls.finish(cut=self._stop not in {Stop.END, Stop.TOOLS})
            _meant(self._stop, called=self._calls.opened > 0)
        elif self._number:
            yield from self._open(Text)
        yield from self._close()
        yield from self._notes.rest()

    def _words(self, delta: _Delta) -> Iterator[PartEvent]:
        texts, thoughts = _content(delta.content, self._skipped)
        if delta.audio:
            self._skipped["answer:audio"] = None
        for thought in reasoned(delta, "".join(thoughts)):
            yield from self._grow(Reasoning, thought.words)
            yield from self._sealed(thought.seal)
        yield from self._grow(Text, "".join(texts))
        yield from self._grow(Refusal, _words(delta.refusal) or "")

    def _grow(self, kind: type[Reasoning | Text | Refusal], text: str) -> Iterator[PartEvent]:
        if not text:
            return
        part = yield from self._open(kind)
        yield Grew(part, text)
        if kind is Text:
            self._notes.grew(text)
            self._text.append(text)

    def _open(self, kind: type[Reasoning | Text | Refusal]) -> Generator[PartEvent, None, int]:
        if self._flat is None or self._flat[0] is not kind:
            yield from self._close()
            yield from self._calls.close_whole()
            self._flat = kind, next(self._parts)
            self._notes.opened(self._flat[1] if kind is Text else None)
            yield Opened(self._flat[1], _FLAT[kind], self._number)
        return self._flat[1]

    def _sealed(self, seal: Seal | None) -> Iterator[PartEvent]:
        """A proof ends the reasoning that it proves, or stands for one that nobody may read."""
        if seal is None:
            return
        if seal.kind is not SealKind.SIGNATURE:
            yield from self._close()
        part = yield from self._open(Reasoning)
        yield Sealed(part, seal)
        yield from self._close()

    def _close(self) -> Iterator[PartEvent]:
        if self._flat is not None:
            yield Closed(self._flat[1])
            self._flat = None
            self._notes.closed()

    def _about_text(self, delta: _Delta, logprobs: Raw | None) -> Iterator[PartEvent]:
        if delta.annotations:
            self._notes.cite(_citations(delta.annotations, self._skipped))
        if logprobs is not None:
            self._notes.log(logprobs, called=bool(delta.tool_calls or delta.function_call))
        return self._notes.told()

    def _call(self, piece: Piece) -> Iterator[PartEvent]:
        for event in self._calls.feed(piece):
            if isinstance(event, Opened):
                yield from self._close()
                self._notes.opened(None)
            yield event


class ChatDecoder:
    """One stream, of one answer or of several that grow side by side."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._skipped: dict[str, None] = {}
        self._parts = itertools.count()
        self._answers: dict[int, _Answer] = {}
        self._telling = reading.Telling()
        self._lookout = Lookout(FRAMES)

    def feed(self, frame: Frame) -> Iterable[Event]:
        """The events of one chunk, or of `[DONE]`."""
        if frame.data.startswith(b"[DONE]"):
            return [*self.eof(), End()]
        events = list(self._chunk(frame))
        self._tell()
        return events

    def eof(self) -> Iterable[Event]:
        """What is left to say when nothing more comes. Many servers send no `[DONE]`."""
        events = [event for answer in self._answers.values() for event in answer.done()]
        self._tell()
        return events

    def _tell(self) -> None:
        if len(self.unread) != len(self._skipped):
            self.unread = [*self._skipped]

    def _chunk(self, frame: Frame) -> Iterator[Event]:
        chunk = reading.decode(_CHUNK, frame.data)
        groq = chunk.x_groq or _NO_GROQ
        said = chunk.usage or groq.usage
        self._skipped |= dict.fromkeys((*_unread(chunk), *_uncounted(said), *self._lookout.see(frame.data)))
        if chunk.error or groq.error or chunk.object == "error" or frame.event == b"error":
            facts = reading.facts_of({"error": groq.error}) if groq.error else reading.error_facts(frame.data)
            yield from _spent(said)
            yield Fault(facts or ErrorFacts(""))
            return
        told = self._telling
        news = told.news(reading.string(chunk.model), reading.string(chunk.service_tier))
        # Azure's first chunk has no choices and no id: it tells about the prompt.
        if chunk.choices and not self._answers:
            yield Start(reading.string(chunk.id), told.model, reading.count(chunk.created), told.tier)
        elif self._answers:
            yield from news
        for choice in chunk.choices or ():
            yield from self._answer(choice).take(choice)
        yield from _spent(said)

    def _answer(self, choice: _Choice) -> _Answer:
        number = reading.count(choice.index) or 0
        if number not in self._answers:
            self._answers[number] = _Answer(number, self._parts, self._skipped)
        return self._answers[number]


def _spent(said: Any) -> tuple[UsageSeen, ...]:
    usage = openai_wire.usage(said) if said else Usage()
    return () if usage == Usage() else (UsageSeen(usage),)


def _pieces(delta: _Delta) -> Iterator[Piece]:
    """What a delta says of calls. Empty stubs say nothing."""
    pieces = [_piece(call, position) for position, call in enumerate(delta.tool_calls or ())]
    if delta.function_call is not None:
        pieces.append(Piece(0, _OLD_SLOT, None, reading.string(delta.function_call.name), _arguments(bytes(delta.function_call.arguments))))
    return (piece for piece in pieces if piece.id or piece.name or piece.text or piece.seal)


def _piece(call: _CallDelta, position: int) -> Piece:
    index = call.index if type(call.index) is int else None
    custom, function = call.custom, call.function or _NO_FUNCTION
    if custom is not None:
        name, text, form = custom.name, _words(custom.input) or "", Form.CUSTOM
    else:
        name, text, form = function.name, _arguments(bytes(function.arguments)), Form.FUNCTION
    return Piece(position, index, reading.string(call.id), reading.string(name), text, form, _seal(call.extra_content))


decoder: Final = ChatDecoder
