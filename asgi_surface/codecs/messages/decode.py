"""Reads a Messages stream into events of no surface's words.

Strict where a client acts on it (text, calls, the finish), tolerant everywhere else: what it does not know is skipped and named. Knows nothing of the
client's surface, nor of what may follow what: that is the lifecycle's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs import reading
from asgi_surface.codecs.messages import beyond
from asgi_surface.codecs.messages.answer import STOPS, Spent
from asgi_surface.codecs.messages.decode_blocks import BLOCKS, Beginning, Block, Delta
from asgi_surface.codecs.messages.known import FRAMES
from asgi_surface.codecs.messages.read import refusal, tier
from asgi_surface.codecs.strangers import UNKNOWN, Lookout
from asgi_surface.errors import ErrorFacts
from asgi_surface.events import Closed, End, Event, Fault, Finish, Grew, Opened, Start, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.ir import Refusal, Stop, Usage
from asgi_surface.soundness import ENDED

_EMPTY: Final = Raw(b"{}")


class _Event(Struct):
    type: Any = None
    index: int | None = None
    message: Raw = _EMPTY
    content_block: Raw = _EMPTY
    delta: Raw = _EMPTY
    usage: Any = None
    error: Any = None
    context_management: Any = None
    input_transformations: Any = None


class _Message(Struct):
    id: Any = None
    model: Any = None
    content: Raw = _EMPTY
    usage: Any = None
    container: Any = None
    context_management: Any = None
    diagnostics: Any = None
    input_transformations: Any = None


class _Outcome(Struct):
    stop_reason: Any = None
    stop_sequence: Any = None
    stop_details: Any = None
    container: Any = None


_EVENT: Final = Decoder(_Event)
_MESSAGE: Final = Decoder(_Message)
_CONTENT: Final = Decoder(list[Beginning])
_BEGINNING: Final = Decoder(Beginning)
_DELTA: Final = Decoder(Delta)
_OUTCOME: Final = Decoder(_Outcome)

# Without these the answer would be another one.
_SUBSTANCE: Final = frozenset({"text_delta", "input_json_delta"})


class MessagesDecoder:
    """Reads one stream. Blocks are found by their index, so several may be open; one that nobody closes is whole at the end of the message."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._named = 0
        self._spent = Spent()
        self._telling = reading.Telling()
        self._lookout = Lookout(FRAMES)
        self._indices = count()
        self._blocks: dict[int | None, Block] = {}
        self._bare: list[Block] = []
        self._begun = False
        self._called = False
        self._stop: Stop | None = None

    def feed(self, frame: Frame) -> Iterable[Event]:
        """The events of one frame. A frame without an SSE event name tells its kind itself, and one without a type by its event name."""
        event = reading.decode(_EVENT, frame.data)
        kind = event.type if isinstance(event.type, str) else frame.event.decode("latin-1")
        if kind == "error" or event.error:
            return [Fault(reading.error_facts(frame.data) or ErrorFacts(""))]
        events = list(self.takes.get(kind, MessagesDecoder.unknown)(self, event))
        self.unread += self._lookout.see(frame.data)
        if len(self.unread) != self._named:  # blocks name what they skip as often as they meet it
            self.unread[:] = dict.fromkeys(self.unread)
            self._named = len(self.unread)
        return events

    def eof(self) -> Iterable[Event]:
        """Nothing: such an end is none on this surface."""
        return ()

    def unknown(self, _event: _Event) -> Iterator[Event]:
        """A kind of event, or of delta, that is newer than the table."""
        self._name([UNKNOWN])
        return iter(())

    def _name(self, constructs: Iterable[str]) -> None:
        """Names what may come many times in one stream, once."""
        self.unread += dict.fromkeys(one for one in constructs if one not in self.unread)

    def _message(self, event: _Event) -> Iterator[Event]:
        message = reading.decode(_MESSAGE, bytes(event.message))
        self._name(beyond.members(message))
        model = reading.string(message.model)
        news = self._telling.news(model, tier(message.usage))
        begun, self._begun = self._begun, True
        yield from news if begun else (Start(reading.string(message.id), model, None, tier(message.usage)),)
        yield from self._used(message.usage)
        if not begun and bytes(message.content).startswith(b"["):
            for block in reading.decode(_CONTENT, bytes(message.content)):
                yield from self._held(block)

    def _held(self, begun: Beginning) -> Iterator[Event]:
        """A block that the message holds as it begins, and so is whole. The API sends none, but SDKs keep what is there."""
        block = self._block(begun)
        yield from block.start(begun)
        yield from self._over(block)

    def _used(self, report: object) -> Iterator[Event]:
        self._name(beyond.usage(report))
        yield from self._telling.news(None, tier(report))
        if report and (usage := self._spent.take(report)) != Usage():
            yield UsageSeen(usage)

    def _started(self, event: _Event) -> Iterator[Event]:
        """A block begins. One that is announced twice is one; one at the index of another shows that the other is whole."""
        begun = reading.decode(_BEGINNING, bytes(event.content_block))
        block = self._block(begun)
        former = self._blocks.get(event.index)
        if former is not None and former.key == block.key:
            return
        yield from self._settled()
        if former is not None:
            yield from former.complete()
        self._blocks[event.index] = block
        yield from block.start(begun)

    def _block(self, begun: Beginning) -> Block:
        self._called = self._called or begun.type == "tool_use"
        return BLOCKS.get(begun.type, Block)(begun, self._indices, self.unread)

    def _settled(self) -> Iterator[Event]:
        """The ends of calls whose lack of arguments has been explained by what came after."""
        bare, self._bare = self._bare, []
        for block in bare:
            yield from block.complete() if self._stop is None or self._stop in ENDED else block.close()

    def _delta(self, event: _Event) -> Iterable[Event]:
        delta = reading.decode(_DELTA, bytes(event.delta))
        block = self._blocks.get(event.index)
        takes = {} if block is None else block.takes
        if takes is None:
            return ()
        if delta.type in takes:
            return takes[delta.type](block, delta)
        if delta.type in _SUBSTANCE:
            raise ValueError("text or arguments of no block that has them")
        return self.unknown(event)

    def _stopped(self, event: _Event) -> Iterator[Event]:
        block = self._blocks.pop(event.index, None)
        if block is not None:
            yield from self._over(block)

    def _over(self, block: Block) -> Iterator[Event]:
        if block.bare:
            self._bare.append(block)
        else:
            yield from block.close()

    def _outcome(self, event: _Event) -> Iterator[Event]:
        outcome = reading.decode(_OUTCOME, bytes(event.delta))
        self._name([*beyond.members(outcome), *beyond.members(event), *beyond.details(outcome.stop_details)])
        stop = reading.reason(STOPS, outcome.stop_reason)
        if stop is not None:
            yield from self._finished(stop, outcome)
        yield from self._used(event.usage)

    def _finished(self, stop: Stop, outcome: _Outcome) -> Iterator[Event]:
        first, self._stop = self._stop is None, stop
        yield from self._settled()
        if first and (words := refusal(outcome.stop_details)):
            index = next(self._indices)
            yield from (Opened(index, Refusal("")), Grew(index, words), Closed(index))
        yield Finish(Stop.TOOLS if stop is Stop.END and self._called else stop, reading.string(outcome.stop_sequence))

    def _ended(self, _event: _Event) -> Iterator[Event]:
        """The message is whole, and so are its blocks, also those that nobody closed."""
        self._bare += self._blocks.values()
        self._blocks = {}
        yield from self._settled()
        yield End()

    def _ping(self, _event: _Event) -> Iterator[Event]:
        return iter(())

    takes: ClassVar[Mapping[str, Callable[[MessagesDecoder, _Event], Iterable[Event]]]] = {
        "message_start": _message,
        "content_block_start": _started,
        "content_block_delta": _delta,
        "content_block_stop": _stopped,
        "message_delta": _outcome,
        "message_stop": _ended,
        "ping": _ping,
    }


decoder: Final = MessagesDecoder
