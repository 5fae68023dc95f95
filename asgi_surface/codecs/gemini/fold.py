"""A generateContent stream and document, each made of the other without leaving the surface: pieces of text are joined, all else is kept.

Of what chunks repeat (usage, ratings, reasons) the last stands. Knows nothing of what any of it means, but for the reasons' weight.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import folding
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.gemini import partial
from asgi_surface.codecs.gemini.fold_grounding import Grounding
from asgi_surface.codecs.gemini.stream import DONE, reason
from asgi_surface.framing import Frame
from asgi_surface.members import Members

_WORDS: Final = frozenset({"text", "thought"})
# Each chunk tells of its own tokens, and of the sources of its own words.
_LISTS: Final = {"logprobsResult": ("chosenCandidates", "topCandidates"), "citationMetadata": ("citationSources", "citations")}


class _Part(Struct):
    """A part, and what it is put together of: pieces of its text, or the arguments of its call."""

    members: Members
    pieces: list[str] = []
    arguments: partial.Arguments | None = None

    def joins(self, said: Members) -> bool:
        """Whether words go on in this part."""
        return self.members.keys() | said.keys() <= _WORDS and self.members.get("thought") == said.get("thought")

    def whole(self) -> Raw:
        """The part as a document has it."""
        if self.arguments is not None:
            call = {name: value for name, value in folding.part(self.members["functionCall"]).items() if name not in ("partialArgs", "willContinue")}
            return folding.whole(self.members | {"functionCall": folding.whole(call | {"args": Raw(self.arguments.text().encode())})})
        return folding.whole(self.members | ({"text": folding.raw("".join(self.pieces))} if len(self.pieces) > 1 else {}))


class _Candidate:
    """One of a stream's answers."""

    def __init__(self) -> None:
        self._members: Members = {}
        self._content: Members = {}
        self._parts: list[_Part] = []
        self._lists: dict[tuple[str, str], list[Raw]] = {}
        self._growing: _Part | None = None
        self._grounding: Grounding | None = None

    def feed(self, said: Members) -> int:
        """Takes its piece of a chunk. Gives the bytes that it keeps."""
        content = folding.part(said.pop("content", folding.NULL))
        parts = folding.items(content.pop("parts", folding.NULL))
        for one in parts:
            self._part(folding.members(one))
        size = sum(len(bytes(one)) for one in parts) + folding.latest(self._content, content)
        for name, lists in _LISTS.items():
            size += self._list(name, said, lists)
        if grounding := folding.part(said.pop("groundingMetadata", folding.NULL)):
            self._grounding = self._grounding or Grounding()
            size += self._grounding.feed(grounding)
        return size + folding.latest(self._members, folding.weighed(self._members, said, "finishReason", reason))

    def _part(self, said: Members) -> None:
        call = said.get("functionCall", folding.NULL)
        if bytes(call) != b"null" and self._piece(said, partial.piece(call)):
            return
        text = folding.text(said.get("text", folding.NULL))
        if self._parts and self._parts[-1].joins(said):
            self._parts[-1].pieces.append(text)
        else:
            self._parts.append(_Part(said, [text]))

    def _piece(self, said: Members, piece: partial.Piece) -> bool:
        """Whether this is a call of several pieces, which it puts together."""
        if self._growing is None:
            if not (piece.will_continue or piece.partial_args):
                return False
            self._growing = _Part(said, arguments=partial.Arguments())
            self._parts.append(self._growing)
        assert self._growing.arguments is not None
        self._growing.arguments.add(piece)
        self._growing = self._growing if piece.will_continue else None
        return True

    def _list(self, name: str, said: Members, lists: tuple[str, ...]) -> int:
        """Takes the lists of a member that grows from chunk to chunk."""
        metadata = folding.part(said.get(name, folding.NULL))
        news = {one: folding.items(metadata[one]) for one in lists if one in metadata}
        for one, elements in news.items():
            self._lists.setdefault((name, one), []).extend(elements)
        return sum(len(bytes(element)) for elements in news.values() for element in elements)

    @property
    def half(self) -> bool:
        """Whether a call was to go on and did not."""
        return self._growing is not None

    def whole(self) -> Raw:
        """The candidate as a document has it."""
        said = dict(self._members)
        if self._content or self._parts:
            whole = [part.whole() for part in self._parts if part is not self._growing]
            parts = {"parts": folding.listed(whole)} if self._parts else {}
            said = {"content": folding.whole(self._content | parts)} | said
        for (name, one), elements in self._lists.items():
            said[name] = folding.whole(folding.part(said[name]) | {one: folding.listed(elements)})
        if self._grounding is not None:
            said["groundingMetadata"] = self._grounding.whole()
        return folding.whole(said)


class GeminiFolder:
    """Puts one stream together, whichever framing it came in."""

    def __init__(self) -> None:
        self.unsaid: tuple[str, ...] = ()
        self._members: Members = {}
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, frame: Frame) -> int:
        """Takes one chunk, or `[DONE]`."""
        if frame.data.startswith(DONE):
            return 0
        chunk = folding.members(frame.data)
        size = 0
        for one in folding.items(chunk.pop("candidates", folding.NULL)):
            said = folding.members(one)
            size += self._candidates.setdefault(_index(said), _Candidate()).feed(said)
        return size + folding.latest(self._members, chunk)

    def document(self, written: bytes) -> bytes:
        """The document. A prompt that was blocked has no candidate. Half a call is left out: arguments are an object there."""
        self.unsaid = ("answer:half_call",) if any(one.half for one in self._candidates.values()) else ()
        demanded = {name: value for name, value in folding.members(written).items() if name != "candidates"}
        candidates = [one.whole() for _, one in sorted(self._candidates.items())]
        said = {"candidates": folding.listed(candidates)} if candidates else {}
        return bytes(folding.whole({**demanded, **said, **self._members}))


def _index(said: Members) -> int:
    index = bytes(said.get("index", b"0"))
    return int(index) if index.isdigit() else 0


def unfold(body: bytes, _written: bytes, _context: Context) -> Frames:
    """The document as the one chunk of a stream, on one line: some SDKs read no more of an event."""
    return [(b"", msgspec.json.format(body, indent=-1))]


folder: Final = GeminiFolder
