"""The items of a Responses stream as parts in no surface's words: what was announced, what has grown, and what a snapshot still adds.

Servers leave out ids, indices, announcements, deltas or done events: an item is found by an id it was named with, else by its place, else it is the
last of its type. Snapshots are read by `read`, so a stream says what the unstreamed answer says. Knows nothing of the response object.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.responses.decode_parts import OpenPart, rest_of
from asgi_surface.codecs.responses.decode_snapshots import is_of_message, message, read_item, says, sources
from asgi_surface.codecs.responses.read import whole_item
from asgi_surface.codecs.strangers import UNKNOWN
from asgi_surface.events import Opened, PartEvent
from asgi_surface.ir import Call, Form, Part, Reasoning, Refusal, Response, Text

_Blank = Text | Reasoning | Call | Refusal


class Voice(Struct, frozen=True):
    """What lets an item grow: the type of the item, which of its strands, and the blank part that it begins (calls begin with their name)."""

    kind: str
    strand: str
    blank: _Blank | None = None


class Place(Struct, frozen=True):
    """What an event names its item by, as far as it does, and the number of the strand in it."""

    id: str | None = None
    index: int | None = None
    number: int = 0


class _Seen(Struct):
    """What tells one item from another."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    status: Any = None


_SEEN: Final = msgspec.json.Decoder(_Seen)
_RAWS: Final = msgspec.json.Decoder(list[Raw])
_FORMS: Final = {"function_call": Form.FUNCTION, "custom_tool_call": Form.CUSTOM}
_BLANKS: Final[dict[type, _Blank]] = {Text: Text(""), Reasoning: Reasoning(""), Refusal: Refusal("")}
# What does not say anything in its words says nothing; other items are named.
_SAYING: Final = frozenset({"message", *_FORMS})
_Key = tuple[str, int]
_ONLY: Final[_Key] = ("", 0)


class _Item:
    """One output item: its texts by strand, and the parts that came of them. Contents of a message are parts each, other items are one part."""

    __slots__ = ("began", "by_key", "call", "contents", "done", "ids", "kind", "logged", "parts", "place", "strands")

    def __init__(self, kind: str, place: int, ids: set[str]) -> None:
        self.kind = kind
        self.place = place
        self.ids = ids
        self.call: Call | None = None
        self.began = b""
        self.contents: dict[int, Raw] = {}
        self.done = False
        self.logged = 0
        self.strands: dict[_Key, list[str]] = {}
        self.parts: list[OpenPart] = []
        self.by_key: dict[_Key, OpenPart] = {}

    def key(self, strand: _Key) -> _Key:
        return strand if self.kind == "message" else _ONLY

    def mute(self, voice: Voice) -> bool:
        """Whether what an event says is not to be heard: a reasoning item's words and their summary are one text, told once."""
        heard, _ = next(iter(self.strands), (voice.strand, 0))
        other = self.kind == "reasoning" and heard != voice.strand
        return self.done or self.kind != voice.kind or other

    def bare(self) -> bool:
        """A call without arguments, which may have been cut off before them: where the item does not say it, the answer's end will."""
        return self.kind == "function_call" and not any(part.pieces for part in self.parts)

    def unheard(self) -> Iterator[tuple[bytes, list[OpenPart]]]:
        """What the item, or a content of it, held as it was announced, where nothing else was ever said of that; with the parts that wait for it.

        What reasoning holds then is no whole token.
        """
        if self.done or self.kind == "reasoning":
            return
        for number, raw in sorted(self.contents.items()):
            parts = [part for (_, place), part in self.by_key.items() if place == number]
            if says(raw) and not any(part.pieces for part in parts):
                yield message(raw), parts
        if not self.contents and not any(part.pieces for part in self.parts) and (self.kind not in _SAYING or says(self.began)):
            yield self.began, self.parts

    def close(self, rest: str = "") -> Iterator[PartEvent]:
        """The end of what is open. `rest` stands for what never came."""
        for part in self.parts:
            yield from part.close(rest)

    def demand_name(self) -> None:
        """Nobody can answer a call that has never said what it calls."""
        if self.kind in _FORMS and not self.parts:
            raise ValueError("a call without a name")


class Ledger:
    """All items of one answer. `unread` names what its items held beyond parts."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self.called = False
        self._apart: list[tuple[Place, Raw]] = []
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_place: dict[tuple[str, int], list[_Item]] = {}
        self._places: set[int] = set()
        # Items that are not done, by type: all, and those that nobody named.
        self._running: dict[str, dict[_Item, None]] = {}
        self._nameless: dict[str, dict[_Item, None]] = {}
        self._opened = 0

    def knows(self, place: Place) -> bool:
        """Whether an event is about an item that was announced."""
        return place.id in self._by_id or place.index in self._places

    def announced(self, raw: Raw, index: int | None) -> Iterator[PartEvent]:
        """An item begins. What it holds already is left to its deltas and snapshots, if any come: most servers say it twice."""
        seen = reading.decode(_SEEN, bytes(raw))
        ids = _ids(seen.id, seen.call_id)
        twin = self._found(ids) if ids else self._fitting(str(seen.type), ids, index) if index is not None else None
        if twin is None:
            item = self._new(str(seen.type), ids, index)
            item.began = bytes(raw)
            yield from self._named(item, seen)

    def opened(self, place: Place, raw: Raw) -> Iterator[PartEvent]:
        """A content part of a message begins. What it holds already is left to what follows, as an item's is: also of a message nobody announced."""
        item = self._seek("message", place)
        if item is None and says(raw):
            if not is_of_message(raw):
                self._strange()
                return iter(())
            item = self._item("message", place)
        if item is not None and raw:
            item.contents[place.number] = raw
        return iter(())

    def grew(self, voice: Voice, place: Place, text: str, logprobs: list[Raw]) -> Iterator[PartEvent]:
        """A delta."""
        item = self._item(voice.kind, place)
        if item.mute(voice) or not (text or logprobs):
            return
        key = voice.strand, place.number
        strand = item.strands.setdefault(key, [])
        part = item.by_key.get(item.key(key))
        if part is None and voice.blank is not None:
            part = yield from self._open(item, voice.blank, key)
        if part is not None and part.open:
            yield from part.grow(text if strand or not part.pieces else f"\n\n{text}")  # a further strand is a paragraph
            item.logged += len(logprobs)
            yield from part.log(logprobs)
        strand.append(text)

    def said(self, voice: Voice, place: Place, text: str) -> Iterator[PartEvent]:
        """All of a strand so far."""
        item = self._item(voice.kind, place)
        if rest := rest_of(item.strands.get((voice.strand, place.number), []), text):
            yield from self.grew(voice, place, rest, [])

    def cited(self, place: Place, annotation: Raw) -> Iterator[PartEvent]:
        """A source. One of no open text, and what is no source, is left to the snapshot that repeats it."""
        part, found = self._content(place, "text"), sources(annotation)
        if part is None or not found:
            self._apart.append((place, annotation))
        else:
            yield from part.cite(found)

    def content(self, place: Place, raw: Raw) -> Iterator[PartEvent]:
        """A snapshot of one content part of a message, which ends it. One of which nothing was said is left to the item's."""
        for said in read_item(message(raw)).parts:
            part = self._content(place, "refusal" if isinstance(said, Refusal) else "text")
            if part is not None:
                yield from part.complete(said)
                yield from part.close()
            else:
                yield from self.opened(place, raw)

    def whole(self, raw: Raw, index: int | None) -> Iterator[PartEvent]:
        """A snapshot of an item, which ends it."""
        seen = reading.decode(_SEEN, bytes(raw))
        kind, ids = str(seen.type), _ids(seen.id, seen.call_id)
        item = self._found(ids) or self._fitting(kind, ids, index, seen.call_id) or self._new(kind, ids, index)
        if item.done:
            return
        self._end(item)
        answer = read_item(bytes(raw))
        self.unread += answer.unread
        yield from self._named(item, seen)
        item.demand_name()
        yield from self._completed(item, answer, item.parts)
        if not (item.bare() and whole_item(seen.status, ended=True)):
            yield from item.close()

    def beside(self, said: Part) -> Iterator[PartEvent]:
        """What the response object says beside its items at the end: all of the reasoning, on servers that have no items for it."""
        if any(item.kind == "reasoning" and item.parts for item in self._items):
            return
        item = self._new("reasoning", set(), None)
        part = yield from self._open(item, _BLANKS[type(said)], _ONLY)
        yield from part.complete(said)
        self._end(item)
        yield from part.close()

    def end(self, output: list[Raw], *, ended: bool) -> Iterator[PartEvent]:
        """The answer ends with these items; `ended` says that it was not cut. Raises `ValueError` when a call has never said its name."""
        for index, raw in enumerate(output):
            yield from self.whole(raw, index)
        for place, annotation in self._apart:
            yield from self._rested(place, annotation)
        for item in self._items:
            yield from self._begun(item)
            item.demand_name()
            yield from item.close("{}" if ended and item.kind == "function_call" else "")

    def _rested(self, place: Place, annotation: Raw) -> Iterator[PartEvent]:
        """An annotation that nothing was made of, at the end. What a snapshot of its item has not repeated belongs to no text."""
        item, part, found = self._seek("message", place), self._content(place, "text"), sources(annotation)
        if part is not None:
            yield from part.cite(found)
        told = [] if item is None else [citation for one in item.parts for citation in one.cited]
        if any(citation not in told for citation in found) or (not found and (item is None or not item.done)):
            self._strange()

    def _strange(self) -> None:
        """Counts what belongs to nothing that is known, once."""
        self.unread += () if UNKNOWN in self.unread else (UNKNOWN,)

    def _begun(self, item: _Item) -> Iterator[PartEvent]:
        """What an item said as it began, and never again. Raises `ValueError` when its words or its arguments cannot be read."""
        for raw, parts in list(item.unheard()):
            answer = read_item(raw)
            self.unread += answer.unread
            yield from self._completed(item, answer, parts)

    def _completed(self, item: _Item, answer: Response, parts: list[OpenPart]) -> Iterator[PartEvent]:
        entries = _RAWS.decode(answer.logprobs or b"[]")[item.logged if parts is item.parts else 0 :]
        for number, said in enumerate(answer.parts):
            part = parts[number] if number < len(parts) else (yield from self._open(item, _BLANKS[type(said)], ("", number)))
            if not part.open:
                continue
            yield from part.complete(said)
            if isinstance(said, Text):
                yield from part.log(entries)
                entries = []

    def _named(self, item: _Item, seen: _Seen) -> Iterator[PartEvent]:
        """Opens a call once its name is known, with the arguments that came before."""
        form = _FORMS.get(item.kind)
        if form is None or item.parts or not (_ids(seen.name) and _ids(seen.call_id)):
            return
        item.call = Call(seen.call_id, seen.name, "", form, seen.namespace if isinstance(seen.namespace, str) else None)
        part = yield from self._open(item, item.call, _ONLY)
        for strand in item.strands.values():
            yield from part.grow("".join(strand))

    def _open(self, item: _Item, blank: _Blank, key: _Key) -> Generator[PartEvent, None, OpenPart]:
        part = item.by_key[item.key(key)] = OpenPart(self._opened)
        item.parts.append(part)
        self._opened += 1
        self.called |= isinstance(blank, Call)
        yield Opened(part.index, blank)
        return part

    def _item(self, kind: str, place: Place) -> _Item:
        """The item that an event names, or a new one that was never announced."""
        return self._seek(kind, place) or self._new(kind, _ids(place.id), place.index)

    def _seek(self, kind: str, place: Place) -> _Item | None:
        ids = _ids(place.id)
        return self._found(ids) or self._fitting(kind, ids, place.index)

    def _content(self, place: Place, strand: str) -> OpenPart | None:
        """The part of a message's content, while it is open."""
        item = self._seek("message", place)
        part = None if item is None else item.by_key.get((strand, place.number))
        return part if part is not None and part.open else None

    def _found(self, ids: set[str]) -> _Item | None:
        return next((self._by_id[known] for known in ids if known in self._by_id), None)

    def _fitting(self, kind: str, ids: set[str], index: int | None, call_id: object = None) -> _Item | None:
        """The last item of the type in this place. Without a place it is the last that is not done, unless both say who they are."""
        here = (self._nameless if ids else self._running).get(kind, {}) if index is None else self._by_place.get((kind, index), [])
        return next((item for item in reversed(here) if item.call is None or call_id in (None, item.call.id)), None)

    def _new(self, kind: str, ids: set[str], index: int | None) -> _Item:
        item = _Item(kind, len(self._items) if index is None else index, ids)
        self._items.append(item)
        self._by_id |= dict.fromkeys(ids, item)
        self._by_place.setdefault((kind, item.place), []).append(item)
        self._places.add(item.place)
        self._running.setdefault(kind, {})[item] = None
        if not ids:
            self._nameless.setdefault(kind, {})[item] = None
        return item

    def _end(self, item: _Item) -> None:
        item.done, item.began = True, b""
        self._running[item.kind].pop(item)
        self._nameless.get(item.kind, {}).pop(item, None)


def _ids(*values: object) -> set[str]:
    return {value for value in values if isinstance(value, str) and value}
