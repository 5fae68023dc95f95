"""Writes a stream as a Messages client reads it: one message, its blocks one after the other, and one terminal.

Folded, the frames are the whole answer. Knows nothing of the upstream's surface, nor of what may follow what: that is the lifecycle's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar, Final

from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.messages import errors
from asgi_surface.codecs.messages.encode_blocks import BLOCKS, Block, frame
from asgi_surface.codecs.messages.write import REASONS, Object, hidden, searched, spent
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Found, Grew, Opened, PartEvent, Sealed, Start
from asgi_surface.ir import Reasoning, Search, Usage


class MessagesEncoder:
    """Writes one stream. A source is told where a search of this answer found it. Log-probabilities have no place."""

    sequential = True
    several = False

    def __init__(self, context: Context) -> None:
        self._context = context
        self._numbers = count()
        self._block: Block
        self._waiting: list[Block] = []
        self._said = False
        self._found: set[str] = set()
        self._searches = 0
        self._begun_in: str | None = None
        self._tier: str | None = None

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """The message, still empty. The SDK needs its usage here, so what is not known yet is 0."""
        self._begun_in = self._tier = start.service_tier
        message: Object = {
            "id": start.id or f"asf_msg_{self._context.request_id}",
            "type": "message",
            "role": "assistant",
            "model": start.model or self._context.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": spent(usage or Usage(), start.service_tier),
        }
        return [frame("message_start", message=message)]

    def note(self, start: Start, usage: Usage | None) -> None:  # noqa: ARG002  -- comes with the end
        """A tier that was not known as the message began is told with its end. A model has no place there."""
        self._tier = start.service_tier

    def part(self, event: PartEvent) -> Frames:
        """Something of the open part. A token without words waits for what follows it: at the end it has no place, see `write`."""
        take = self.takes.get(type(event))
        return [] if take is None else take(self, event)

    def _opened(self, event: Opened) -> Frames:
        part = event.part
        self._searches += isinstance(part, Search)
        before = [] if isinstance(part, Reasoning) else self._unwaited()
        self._block = BLOCKS[type(part)](part, self._numbers, self._context)
        return [*before, *self._block.begun()]

    def _unwaited(self) -> Frames:
        waiting, self._waiting = self._waiting, []
        return [one for block in waiting for one in block.closed()]

    def _grew(self, event: Grew) -> Frames:
        before = self._unwaited() if self._waiting and event.text and not hidden(self._context) else []
        return [*before, *self._block.grew(event.text)]

    def _sealed(self, event: Sealed) -> Frames:
        return self._block.sealed(event.seal)

    def _cited(self, event: Cited) -> Frames:
        return self._block.cited(event.citation) if event.citation.url in self._found else []

    def _gave(self, event: Found) -> Frames:
        self._found |= {source.url for source in event.sources}
        return self._block.found(event.sources, failed=event.failed)

    def _closed(self, _event: Closed) -> Frames:
        if self._block.silent:
            self._waiting.append(self._block)
            return []
        self._said = True
        return self._block.closed()

    takes: ClassVar[Mapping[type, Callable[[MessagesEncoder, Any], Frames]]] = {
        Opened: _opened,
        Grew: _grew,
        Sealed: _sealed,
        Cited: _cited,
        Found: _gave,
        Closed: _closed,
    }

    def close(self, ending: Ending) -> Frames:
        """The reason and the usage, and the end. A cut may have left the last calls half: their blocks are as far as they came, as the API's are."""
        delta = {"stop_reason": REASONS[ending.stop], "stop_sequence": ending.sequence}
        late = None if self._tier == self._begun_in else self._tier
        used = _used(ending.usage or Usage(), late) | ({} if ending.usage is None else searched(self._searches))
        alone = [] if self._said else self._unwaited()
        return [*alone, frame("message_delta", delta=delta, usage=used), frame("message_stop")]

    def fail(self, error: GatewayError) -> Frames:
        """The `error` event, which is the error envelope."""
        return [(b"error", errors.error(error, self._context.request_id))]


def _used(usage: Usage, tier: str | None) -> Object:
    """Cumulative numbers. Of the input nothing is repeated that nobody said."""
    said = spent(usage, tier)
    if usage.input is None:
        del said["input_tokens"]
    return said


encoder: Final = MessagesEncoder
