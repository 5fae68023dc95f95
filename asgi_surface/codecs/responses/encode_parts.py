"""Writes the parts of a streamed answer as events of Responses items. Knows nothing of the response object, nor of event numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface.codecs.responses.encode_items import STRING, Desk, Item, Message, Place, Said
from asgi_surface.codecs.responses.logprobs import listed
from asgi_surface.errors import UpstreamError
from asgi_surface.events import Cited, Closed, Found, Grew, Logged, PartEvent, Sealed
from asgi_surface.ir import Call, Citation, Reasoning, Refusal, Seal, Search, Stop, Text

_CONTENTS: Final = msgspec.json.Decoder(list[Item])
_RAWS: Final = msgspec.json.Decoder(list[Raw])


class Scribe(ABC):
    """Writes one part. What its kind does not have is not said."""

    def take(self, event: PartEvent) -> Iterable[Said]:
        """What the client is told of one of the part's events."""
        return _TAKES[type(event)](self, event)

    @abstractmethod
    def opened(self) -> Iterable[Said]:
        """The part begins."""

    def grew(self, _: str, /) -> Iterable[Said]:
        """More text or arguments; never none."""
        return ()

    def cited(self, _: Citation, /) -> Iterable[Said]:
        """A source."""
        return ()

    def logged(self, _: Raw, /) -> Iterable[Said]:
        """Token entries."""
        return ()

    def sealed(self, _: Seal, /) -> Iterable[Said]:
        """A seal."""
        return ()

    def found(self, _: Found, /) -> Iterable[Said]:
        """What a search gave."""
        return ()

    @abstractmethod
    def closed(self) -> Iterable[Said]:
        """The part is whole."""


_TAKES: Final[dict[type, Callable[[Scribe, Any], Iterable[Said]]]] = {
    Grew: lambda scribe, event: scribe.grew(event.text) if event.text else (),
    Cited: lambda scribe, event: scribe.cited(event.citation),
    Logged: lambda scribe, event: scribe.logged(event.logprobs),
    Sealed: lambda scribe, event: scribe.sealed(event.seal),
    Found: lambda scribe, event: scribe.found(event),
    Closed: lambda scribe, _: scribe.closed(),
}


class _Spoken(Scribe):
    """One content part of a message."""

    _STEM: ClassVar[str]
    _BLANK: ClassVar[dict[str, object]]
    _REPEATED: ClassVar[tuple[str, ...]]
    """What the done event repeats of the content part."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._pieces: list[str] = []
        self._seat: tuple[Message, Place] | None = None

    def _seated(self) -> Generator[Said, None, tuple[Message, Place]]:
        """The message and the place in it, announced."""
        if self._seat is None:
            message = yield from self._desk.joined()
            place = message.place | {"content_index": len(message.contents)}
            yield "response.content_part.added", place | {"part": self._BLANK}
            self._seat = message, place
        return self._seat

    def _told(self, text: str, **more: object) -> Iterator[Said]:
        _, place = yield from self._seated()
        self._pieces.append(text)
        yield f"{self._STEM}.delta", place | {"delta": text, **more}

    def _done(self, message: Message, place: Place, content: Item) -> Iterator[Said]:
        message.contents.append(content)
        yield f"{self._STEM}.done", place | {name: content[name] for name in self._REPEATED}
        yield "response.content_part.done", place | {"part": content}


class _Text(_Spoken):
    """Text. Sources are told when it is whole: one without a place of its own rests under all of it."""

    _STEM = "response.output_text"
    _BLANK: ClassVar = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    _REPEATED = ("text", "logprobs")

    def __init__(self, desk: Desk, _: Text) -> None:
        super().__init__(desk)
        self._citations: list[Citation] = []
        self._entries: list[Raw] = []
        self._untold: list[Raw] = []

    def opened(self) -> Iterable[Said]:
        """Text without words is no part of an answer: its first word begins it."""
        return ()

    def grew(self, text: str, /) -> Iterator[Said]:
        """A delta, with the token entries that wait for it."""
        untold, self._untold = self._untold, []
        yield from self._told(text, logprobs=untold)

    def cited(self, citation: Citation, /) -> Iterable[Said]:
        self._citations.append(citation)
        return ()

    def logged(self, logprobs: Raw, /) -> Iterable[Said]:
        """Entries of what was said just now are told in a delta of no text; before the first word they wait for it."""
        entries = _RAWS.decode(listed(logprobs))
        self._entries += entries
        self._untold += entries
        return () if self._seat is None else self.grew("")

    def closed(self) -> Iterator[Said]:
        """The sources and the done events."""
        if self._seat is None:
            return
        text = Text("".join(self._pieces), citations=tuple(self._citations))
        logprobs = Raw(b"[" + b",".join(self._entries) + b"]")
        (item,) = self._desk.render(text, logprobs=logprobs)
        (content,) = _CONTENTS.decode(item["content"])
        for index, annotation in enumerate(_RAWS.decode(content["annotations"])):
            yield "response.output_text.annotation.added", self._seat[1] | {"annotation_index": index, "annotation": annotation}
        yield from self._done(*self._seat, content)


class _Refusal(_Spoken):
    """The model's words for not answering, said even when there are none."""

    _STEM = "response.refusal"
    _BLANK: ClassVar = {"type": "refusal", "refusal": ""}
    _REPEATED = ("refusal",)

    def __init__(self, desk: Desk, _: Refusal) -> None:
        super().__init__(desk)
        desk.refused = True

    def opened(self) -> Iterator[Said]:
        yield from self._seated()

    def grew(self, text: str, /) -> Iterator[Said]:
        yield from self._told(text)

    def closed(self) -> Iterator[Said]:
        seat = yield from self._seated()
        (item,) = self._desk.render(Refusal("".join(self._pieces)))
        (content,) = _CONTENTS.decode(item["content"])
        yield from self._done(*seat, content)


class _Reasoning(Scribe):
    """A reasoning item, when there is something to show. It has no status, so it is done with its part."""

    def __init__(self, desk: Desk, _: Reasoning) -> None:
        self._desk = desk
        self._pieces: list[str] = []
        self._seal: Seal | None = None
        self._place: Place | None = None

    def opened(self) -> Iterable[Said]:
        """Texts around reasoning are two messages, even when it is not shown."""
        self._desk.message = None
        return ()

    def _begun(self) -> Generator[Said, None, Place]:
        (item,) = self._desk.render(Reasoning("-"))
        return (yield from self._desk.begin(item))

    def grew(self, text: str, /) -> Iterator[Said]:
        if self._place is None:
            self._place = (yield from self._begun()) | {"summary_index": 0}
            yield "response.reasoning_summary_part.added", self._place | {"part": {"type": "summary_text", "text": ""}}
        self._pieces.append(text)
        yield "response.reasoning_summary_text.delta", self._place | {"delta": text}

    def sealed(self, seal: Seal, /) -> Iterable[Said]:
        self._seal = seal
        return ()

    def closed(self) -> Iterator[Said]:
        """The summary's done events, and the item with its token."""
        text = "".join(self._pieces)
        if self._place is not None:
            yield "response.reasoning_summary_text.done", self._place | {"text": text}
            yield "response.reasoning_summary_part.done", self._place | {"part": {"type": "summary_text", "text": text}}
        for item in self._desk.render(Reasoning(text, self._seal)):
            place = self._place or (yield from self._begun())
            yield from self._desk.end(item, place)


# By an item's type: the member with its arguments, and what the events about them are called.
_CALLS: Final = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


class _Call(Scribe):
    """A call. It is announced with its first arguments: its seal, which stands in an item before it, may come until then.

    A function that stands for a custom tool is told once it is whole: its input is a JSON string in the arguments.
    """

    def __init__(self, desk: Desk, call: Call) -> None:
        self._desk = desk
        self._call = structs.replace(call, arguments="")
        self._wrapped = desk.wraps(call)
        self._pieces = [call.arguments]
        self._told = 0
        self._seals = 0
        self._member = ""
        self._stem = ""
        self._place: Place | None = None

    def opened(self) -> Iterable[Said]:
        """Texts around a call are two messages."""
        self._desk.message = None
        return ()

    def _whole(self) -> Call:
        return structs.replace(self._call, arguments="".join(self._pieces))

    def _begun(self) -> Generator[Said, None, Place]:
        if self._place is None:
            *before, item = self._desk.render(self._whole() if self._wrapped else self._call)
            yield from self._sealing(before)
            self._member, self._stem = _CALLS[STRING.decode(item["type"])]
            self._place = yield from self._desk.begin(item)
            self._desk.held = self
        return self._place

    def _sealing(self, items: list[Item]) -> Iterator[Said]:
        """The items of the seal, unless they were told."""
        for item in items[self._seals :]:
            place = yield from self._desk.begin(item)
            yield from self._desk.end(item, place)
            self._seals += 1

    def grew(self, text: str, /) -> Iterator[Said]:
        self._pieces.append(text)
        if not self._wrapped:
            place = yield from self._begun()
            yield f"{self._stem}.delta", place | {"delta": "".join(self._pieces[self._told :])}
            self._told = len(self._pieces)

    def sealed(self, seal: Seal, /) -> Iterable[Said]:
        self._call = structs.replace(self._call, seal=seal)
        return ()

    def closed(self) -> Iterator[Said]:
        """Announces the call if nothing has yet. What is left of it waits for the next item, or for how the answer ends."""
        if self._tellable():
            yield from self._begun()

    def _tellable(self) -> bool:
        """Whether the call can be told now that it is whole."""
        try:
            self._desk.render(self._whole())
        except UpstreamError:
            self._desk.give_up(self._whole())
            return False
        return True

    def finish(self, stop: Stop, /, *, cut: bool) -> Iterator[Said]:
        """The rest of the arguments and the done events; the seal after all, if it came late."""
        place = yield from self._begun()
        *seals, item = self._desk.render(self._whole(), stop if cut else Stop.END)  # a refusal in words is a whole answer
        said, text = "".join(self._pieces[: self._told]), STRING.decode(item[self._member])
        if rest := text[len(said) :]:
            yield f"{self._stem}.delta", place | {"delta": rest}
        yield f"{self._stem}.done", place | {self._member: text}
        yield from self._desk.end(item, place, cut=cut)
        yield from self._sealing(seals)


class _Search(Scribe):
    """A search of the gateway's. It has happened when its part is whole, however the answer ends."""

    def __init__(self, desk: Desk, search: Search) -> None:
        self._desk = desk
        self._search = search
        self._place: Place = {}

    def opened(self) -> Iterator[Said]:
        """The item with its query, and that it runs."""
        (item,) = self._desk.render(self._search)
        self._place = yield from self._desk.begin(item)
        yield "response.web_search_call.in_progress", self._place
        yield "response.web_search_call.searching", self._place

    def found(self, given: Found, /) -> Iterator[Said]:
        """A search that failed has no event of its own: its item says it."""
        self._search = structs.replace(self._search, sources=given.sources, failed=given.failed)
        if not given.failed:
            yield "response.web_search_call.completed", self._place

    def closed(self) -> Iterator[Said]:
        (item,) = self._desk.render(self._search)
        yield from self._desk.end(item, self._place)


SCRIBES: Final[dict[type, Callable[[Desk, Any], Scribe]]] = {
    Text: _Text,
    Refusal: _Refusal,
    Reasoning: _Reasoning,
    Call: _Call,
    Search: _Search,
}
"""Who writes which part."""
