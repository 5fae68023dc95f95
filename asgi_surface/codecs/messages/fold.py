"""A Messages stream as a document, put together as the official SDK does it, and without leaving the surface: a block is kept whatever its type.

Knows nothing of what the blocks mean, but that half a call has no place in a document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import folding, reading
from asgi_surface.codecs.messages.answer import STOPS
from asgi_surface.framing import Frame
from asgi_surface.members import Members
from asgi_surface.soundness import ENDED

_OBJECT: Final = msgspec.json.Decoder(Members)
_REASON: Final = partial(reading.reason, STOPS)
_OWN: Final = frozenset({"type", "delta", "usage"})  # of a message_delta: the rest are members of the message
_SEALS: Final = frozenset({"signature", "encrypted_content"})
_BARE: Final = frozenset({b"{}", b"null"})


class _Block:
    """One block as far as it has come."""

    def __init__(self, begun: Members) -> None:
        self.key = (bytes(begun.get("type", b"")), bytes(begun.get("id", b"")))
        self._members = begun
        self._words: dict[str, list[str]] = {}
        self._cited = folding.items(begun.get("citations", folding.NULL))
        self._input = ""

    def take(self, delta: Members) -> None:
        """What a delta adds. A text that it names grows; a proof comes whole, as does all else."""
        for name, value in delta.items():
            if name == "partial_json":
                self._input += folding.text(value)
            elif name == "citation":
                self._cited.append(value)
            elif name in _SEALS or not bytes(value).startswith(b'"'):
                folding.latest(self._members, {name: value})
            elif name != "type":
                self._words.setdefault(name, [folding.text(self._members.get(name, folding.NULL))]).append(folding.text(value))

    def broken(self) -> bool:
        """Whether its input broke off."""
        try:
            return bool(self._input) and reading.decode(_OBJECT, self._input.encode()) is None
        except ValueError:
            return True

    def bare(self) -> bool:
        """Whether nothing has come of its input: it has none, or was cut off before."""
        return not self._input and bytes(self._members.get("input", b"")) in _BARE

    def whole(self) -> Raw:
        """The block as a document has it."""
        said = self._members | {name: folding.raw("".join(pieces)) for name, pieces in self._words.items()}
        if self._cited:
            said["citations"] = folding.listed(self._cited)
        if self._input:
            said["input"] = Raw(self._input.encode())
        return folding.whole(said)


class MessagesFolder:
    """Puts one stream together. Blocks are found by their index, and stand in the order in which they began."""

    def __init__(self) -> None:
        self.unsaid: tuple[str, ...] = ()
        self._message: Members = {}
        self._usage: Members = {}
        self._blocks: list[_Block] = []
        self._open: dict[bytes, _Block] = {}

    def feed(self, frame: Frame) -> int:
        """Takes one event."""
        event = folding.members(frame.data)
        kind = folding.text(event.get("type", folding.NULL)) or frame.event.decode("latin-1")
        takes = self._takes.get(kind)
        return 0 if takes is None else takes(self, event)

    def _begun(self, event: Members) -> int:
        message = folding.part(event.get("message", folding.NULL))
        content = [one for one in folding.items(message.pop("content", folding.NULL)) if folding.part(one).get("text") != Raw(b'""')]
        size = folding.latest(self._usage, folding.part(message.pop("usage", folding.NULL)))
        if self._message:
            return size
        self._blocks += [_Block(folding.part(one)) for one in content]
        return size + sum(len(bytes(one)) for one in content) + folding.latest(self._message, message)

    def _started(self, event: Members) -> int:
        """A block begins. One that is announced twice is one."""
        index, begun = _index(event), event.get("content_block", folding.NULL)
        block = _Block(folding.part(begun))
        former = self._open.get(index)
        if former is not None and former.key == block.key:
            return 0
        self._open[index] = block
        self._blocks.append(block)
        return len(bytes(begun))

    def _grown(self, event: Members) -> int:
        delta, block = event.get("delta", folding.NULL), self._open.get(_index(event))
        if block is None:
            return 0
        block.take(folding.part(delta))
        return len(bytes(delta))

    def _stopped(self, event: Members) -> int:
        self._open.pop(_index(event), None)
        return 0

    def _outcome(self, event: Members) -> int:
        """Why it stopped, by the weightiest reason, and more of the message. Numbers are cumulative, and what a report leaves out stands."""
        beside = {name: value for name, value in event.items() if name not in _OWN}
        size = folding.latest(self._usage, folding.part(event.get("usage", folding.NULL)))
        said = folding.part(event.get("delta", folding.NULL)) | beside
        return size + folding.latest(self._message, folding.weighed(self._message, said, "stop_reason", _REASON))

    _takes: ClassVar[Mapping[str, Callable[[MessagesFolder, Members], int]]] = {
        "message_start": _begun,
        "content_block_start": _started,
        "content_block_delta": _grown,
        "content_block_stop": _stopped,
        "message_delta": _outcome,
    }

    def document(self, written: bytes) -> bytes:
        """The message. Half a call is left out: input is an object there. One without any input was cut off before it if the answer was."""
        demanded = folding.members(written)
        stop = _REASON(folding.text(self._message.get("stop_reason", folding.NULL)))
        cut = stop not in ENDED
        blocks = [one for one in self._blocks if not (one.broken() or (cut and one.bare() and one is self._blocks[-1]))]
        self.unsaid = ("answer:half_call",) if len(blocks) < len(self._blocks) else ()
        usage = folding.whole(folding.part(demanded["usage"]) | self._usage)
        said = {"content": folding.listed([block.whole() for block in blocks]), "usage": usage}
        return bytes(folding.whole({**demanded, **self._message, **said}))


def _index(event: Members) -> bytes:
    return bytes(event.get("index", b""))


folder: Final = MessagesFolder
