"""The groundingMetadata of a stream's chunks as that of a document. Knows no chunk, nor what a source is.

Each chunk numbers its own sources. What a chunk says again is one: some chunks repeat all that was said before.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import folding
from asgi_surface.members import Members

_CHUNKS: Final = "groundingChunks"
_SUPPORTS: Final = "groundingSupports"
_INDICES: Final = "groundingChunkIndices"
_ANY: Final = msgspec.json.Decoder()


class Grounding:
    """What one candidate rests on: lists grow, of other members the last stands."""

    def __init__(self) -> None:
        self._members: Members = {}
        self._lists: dict[str, dict[bytes, int]] = {}

    def feed(self, said: Members) -> int:
        """Takes a chunk's. Gives the bytes that it keeps."""
        lists = {name: folding.items(value) for name, value in said.items() if bytes(value).startswith(b"[")}
        size, places = 0, []
        for one in lists.pop(_CHUNKS, []):
            size += self._add(_CHUNKS, one)
            places.append(self._lists[_CHUNKS][bytes(one)])
        for one in lists.pop(_SUPPORTS, []):
            size += self._add(_SUPPORTS, _moved(one, places))
        for name, elements in lists.items():
            size += sum(self._add(name, one) for one in elements)
        return size + folding.latest(self._members, {name: value for name, value in said.items() if not bytes(value).startswith(b"[")})

    def _add(self, name: str, element: Raw) -> int:
        elements = self._lists.setdefault(name, {})
        before = len(elements)
        elements.setdefault(bytes(element), before)
        return len(bytes(element)) if len(elements) > before else 0

    def whole(self) -> Raw:
        """As a document has it."""
        return folding.whole(self._members | {name: folding.listed([*map(Raw, elements)]) for name, elements in self._lists.items()})


def _moved(support: Raw, places: list[int]) -> Raw:
    """A support whose sources are numbered as the document has them. Those of a chunk that names none are numbered so."""
    if places == list(range(len(places))):
        return support
    said = folding.part(support)
    indices = _ANY.decode(folding.listed(folding.items(said.get(_INDICES, folding.NULL))))
    moved = [places[one] for one in indices if type(one) is int and 0 <= one < len(places)]
    return folding.whole(said | {_INDICES: folding.raw(moved)})
