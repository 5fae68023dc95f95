"""The blocks of a Messages stream, each as it comes: what of it is text, reasoning or a call, and when that is whole.

Knows nothing of the message around the blocks, nor of frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.messages import beyond
from asgi_surface.codecs.messages.read import citation
from asgi_surface.events import Cited, Closed, Event, Grew, Opened, Sealed
from asgi_surface.ir import Call, Citation, Reasoning, Refusal, Seal, SealKind, Text
from asgi_surface.surfaces import MESSAGES


class Beginning(Struct):
    """What `content_block_start` says of its block."""

    type: str
    text: Any = None
    citations: Any = None
    thinking: Any = None
    signature: Any = None
    data: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw(b"{}")
    caller: Any = None
    toolset_name: Any = None


class Delta(Struct):
    """What `content_block_delta` adds."""

    type: str
    text: Any = None
    citation: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None


Take = Callable[[Any, Delta], Iterable[Event]]


class Block:
    """A block that no conversion tells; its deltas go unheard. The others tell of a part, which opens with the first that it says.

    So an empty block is no part, as in a whole answer. `bare` says that what is missing may be whole or cut off: the finish will tell.
    """

    part: ClassVar[Text | Reasoning | Refusal] = Text("")
    takes: ClassVar[Mapping[str, Take] | None] = None

    def __init__(self, begun: Beginning, indices: Iterator[int], unread: list[str]) -> None:
        self.key = (begun.type, begun.id)
        self._indices = indices
        self._unread = unread
        self._index: int | None = None

    @property
    def bare(self) -> bool:
        """Whether nothing has come of what must come."""
        return False

    def start(self, _begun: Beginning) -> Iterator[Event]:
        """What the block's beginning already says."""
        self._unread.append(beyond.construct(f"answer:{self.key[0]}"))
        return iter(())

    def close(self) -> Iterator[Event]:
        """The end of the part, as far as it has come."""
        if self._index is not None:
            yield Closed(self._index)

    def complete(self) -> Iterator[Event]:
        """The end of a part that was not cut off."""
        return self.close()

    def grow(self, text: str) -> list[Event]:
        """More of the part."""
        return [*self._open(), Grew(self._at(), text)] if text else []

    def _open(self) -> list[Event]:
        return [Opened(self._at(), self.part)] if self._index is None else []

    def _at(self) -> int:
        """The part's index, given by the order in which parts open."""
        if self._index is None:
            self._index = next(self._indices)
        return self._index


class _Words(Block):
    """Text. Citations may come before the words that they bear out."""

    def __init__(self, begun: Beginning, indices: Iterator[int], unread: list[str]) -> None:
        super().__init__(begun, indices, unread)
        self._held: list[Citation] = []

    def start(self, begun: Beginning) -> Iterator[Event]:
        for place in begun.citations if isinstance(begun.citations, list) else ():
            yield from self._cite(place)
        yield from self.grow(_said(begun.text))

    def grow(self, text: str) -> list[Event]:
        return super().grow(text) + self._cited()

    def _text(self, delta: Delta) -> list[Event]:
        return self.grow(_said(delta.text))

    def _citation(self, delta: Delta) -> list[Event]:
        return self._cite(delta.citation)

    def _cite(self, place: object) -> list[Event]:
        source = citation(place, self._unread)
        if source is not None:
            self._held.append(source)
        return self._cited()

    def _cited(self) -> list[Event]:
        if self._index is None:
            return []
        held, self._held = self._held, []
        return [Cited(self._index, source) for source in held]

    takes: ClassVar[Mapping[str, Take] | None] = {"text_delta": _text, "citations_delta": _citation}


class _Reasoned(Block):
    """What the model thought. Its seal is told at the end, once, wherever it stood."""

    part = Reasoning("")
    kind: ClassVar[SealKind] = SealKind.SIGNATURE

    def __init__(self, begun: Beginning, indices: Iterator[int], unread: list[str]) -> None:
        super().__init__(begun, indices, unread)
        self._token: str | None = None

    def start(self, begun: Beginning) -> Iterator[Event]:
        yield from self.grow(reading.string(begun.thinking) or "")
        yield from self._seal(begun.signature)

    def _seal(self, token: object) -> Iterator[Event]:
        if reading.string(token):
            self._token = reading.string(token)
            yield from self._open()

    def _thought(self, delta: Delta) -> list[Event]:
        return self.grow(reading.string(delta.thinking) or "")

    def _signed(self, delta: Delta) -> Iterator[Event]:
        return self._seal(delta.signature)

    def close(self) -> Iterator[Event]:
        if self._token is not None:
            yield Sealed(self._at(), Seal(self._token, self.kind, MESSAGES))
        yield from super().close()

    takes: ClassVar[Mapping[str, Take] | None] = {"thinking_delta": _thought, "signature_delta": _signed}


class _Redacted(_Reasoned):
    """What the model thought, readable to its provider only. It comes whole."""

    kind = SealKind.REDACTED
    takes: ClassVar[Mapping[str, Take] | None] = {}

    def start(self, begun: Beginning) -> Iterator[Event]:
        return self._seal(begun.data)


class _ToolUse(Block):
    """A call. Its input comes in pieces, or whole at the beginning, as some servers send it."""

    def __init__(self, begun: Beginning, indices: Iterator[int], unread: list[str]) -> None:
        super().__init__(begun, indices, unread)
        self._whole = bytes(begun.input).decode()
        self._grown = False

    @property
    def bare(self) -> bool:
        """Nothing came. A call without arguments is streamed so, and so is one that was cut off before them."""
        return not self._grown and self._whole in ("null", "{}")

    def start(self, begun: Beginning) -> Iterator[Event]:
        yield Opened(self._at(), Call(_said(begun.id), _said(begun.name), ""))
        self._unread += beyond.call(begun)

    def _input(self, delta: Delta) -> list[Event]:
        text = _said(delta.partial_json)
        self._grown = self._grown or bool(text)
        return self.grow(text)

    def close(self) -> Iterator[Event]:
        if not (self._grown or self.bare):
            if not self._whole.startswith("{"):
                raise ValueError("arguments that are no object")
            yield from self.grow(self._whole)
        yield from super().close()

    def complete(self) -> Iterator[Event]:
        if self.bare:
            yield from self.grow("{}")
        yield from self.close()

    takes: ClassVar[Mapping[str, Take] | None] = {"input_json_delta": _input}


BLOCKS: Final[dict[str, type[Block]]] = {
    "text": _Words,
    "thinking": _Reasoned,
    "redacted_thinking": _Redacted,
    "tool_use": _ToolUse,
}
"""The blocks that are told, by type."""


def _said(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("text that is none")  # noqa: TRY004  -- the contract of a decoder
    return value
