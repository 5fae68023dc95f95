"""The blocks of a Messages stream as a client reads them: each part on its way into one, which begins with the first that can be told of it.

Folded, the blocks are those of the whole answer. Knows nothing of the message around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import structs

from asgi_surface import seals
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.messages import searches
from asgi_surface.codecs.messages.write import Object, call_seal, hidden, tool_use
from asgi_surface.ir import Call, Citation, Reasoning, Refusal, Seal, SealKind, Search, Text


def frame(kind: str, **members: object) -> tuple[bytes, bytes]:
    """One event. The SDK dispatches on the SSE event name."""
    return kind.encode(), msgspec.json.encode({"type": kind, **members})


class Block:
    """What the kinds of blocks have in common. A block is numbered once begun: the client counts what it is told."""

    def __init__(self, part: Any, numbers: Iterator[int], context: Context) -> None:
        self._part = part
        self._numbers = numbers
        self._context = context
        self._number: int | None = None

    @property
    def silent(self) -> bool:
        """Whether it is a token of Gemini's of which the client has seen no words."""
        return False

    def begun(self) -> Frames:
        """What is known of the part at once."""
        return self.grew(self._part.text)

    def grew(self, _text: str) -> Frames:
        """More of the part."""
        return []

    def sealed(self, _seal: Seal) -> Frames:
        """The part's seal. A part without a place for one leaves it out."""
        return []

    def cited(self, _citation: Citation) -> Frames:
        """A source of the part's words."""
        return []

    def found(self, _sources: tuple[Citation, ...], *, failed: bool) -> Frames:
        """What the part, a search, gave."""
        del failed
        return []

    def closed(self) -> Frames:
        """The end of the part."""
        return [] if self._number is None else [frame("content_block_stop", index=self._number)]

    def _begin(self, block: Object) -> Frames:
        if self._number is not None:
            return []
        self._number = next(self._numbers)
        return [frame("content_block_start", index=self._number, content_block=block)]

    def _delta(self, kind: str, **members: object) -> tuple[bytes, bytes]:
        return frame("content_block_delta", index=self._number, delta={"type": kind, **members})


class _Words(Block):
    """Text, and words of refusal. The API refuses an empty block when the client sends it back, so there is none, and sources wait for words."""

    def __init__(self, part: Text | Refusal, numbers: Iterator[int], context: Context) -> None:
        super().__init__(part, numbers, context)
        self._held: list[Citation] = []

    def grew(self, text: str) -> Frames:
        return [*self._begin({"type": "text", "text": ""}), self._delta("text_delta", text=text), *self._cited()] if text else []

    def cited(self, citation: Citation) -> Frames:
        self._held.append(citation)
        return [] if self._number is None else self._cited()

    def _cited(self) -> Frames:
        held, self._held = self._held, []
        return [self._delta("citations_delta", citation=searches.location(one, self._context)) for one in held]


class _Thinking(Block):
    """Reasoning, its signature last. Redacted reasoning has no words and comes whole."""

    def __init__(self, part: Reasoning, numbers: Iterator[int], context: Context) -> None:
        super().__init__(part, numbers, context)
        self._hidden = hidden(context)
        self._words: list[str] = []
        self._seal: Seal | None = None

    @property
    def silent(self) -> bool:
        return self._number is None and self._seal is not None and self._seal.kind is SealKind.THOUGHT

    def grew(self, text: str) -> Frames:
        self._words.append(text)
        return [*self._thinking(), self._delta("thinking_delta", thinking=text)] if text and not self._hidden else []

    def sealed(self, seal: Seal) -> Frames:
        self._seal = seal
        return []

    def closed(self) -> Frames:
        words = "".join(self._words)
        if not words and self._seal is None:
            return []
        seal = self._seal or Seal(words, SealKind.TEXT, self._context.upstream)
        token = seals.wrap(seal, self._context.seal_domain)
        if self._number is None and seal.kind is SealKind.REDACTED:
            return [*self._begin({"type": "redacted_thinking", "data": token}), *super().closed()]
        return [*self._thinking(), self._delta("signature_delta", signature=token), *super().closed()]

    def _thinking(self) -> Frames:
        return self._begin({"type": "thinking", "thinking": "", "signature": ""})


class _ToolUse(Block):
    """A call. Its own seal has no slot: it stands in a thinking block before, so the call waits for what comes right after its opening."""

    def __init__(self, part: Call, numbers: Iterator[int], context: Context) -> None:
        super().__init__(part, numbers, context)
        self._block = tool_use(part, context)
        self._held = part.arguments

    def begun(self) -> Frames:
        return []

    def grew(self, text: str) -> Frames:
        said, self._held = self._held + text, ""
        return [*self._begin(self._block), self._delta("input_json_delta", partial_json=said)] if said else []

    def sealed(self, seal: Seal) -> Frames:
        if self._number is not None:
            return []
        thinking = _Thinking(Reasoning(""), self._numbers, self._context)
        return [*thinking.sealed(call_seal(seal, self._block)), *thinking.closed()]

    def closed(self) -> Frames:
        """A call without arguments has one empty piece of them, as the API tells it."""
        frames = self.grew("")
        if self._number is None:
            frames = [*self._begin(self._block), self._delta("input_json_delta", partial_json="")]
        return [*frames, *super().closed()]


class _Search(Block):
    """A search: its call as soon as it is known, and what it gave as a block of its own."""

    def begun(self) -> Frames:
        query = msgspec.json.encode(searches.asked(self._part)).decode()
        return [*self._begin(searches.use(self._part)), self._delta("input_json_delta", partial_json=query), *self.closed()]

    def found(self, sources: tuple[Citation, ...], *, failed: bool) -> Frames:
        gave = structs.replace(self._part, sources=sources, failed=failed)
        return [*self._begin(searches.result(gave, self._context)), *self.closed()]

    def closed(self) -> Frames:
        frames, self._number = super().closed(), None
        return frames


BLOCKS: Final[dict[type[Any], Callable[[Any, Iterator[int], Context], Block]]] = {
    Text: _Words,
    Refusal: _Words,
    Reasoning: _Thinking,
    Call: _ToolUse,
    Search: _Search,
}
"""The block of each kind of part."""
