"""Gemini's grounding as citations, and back. Gemini counts bytes of a part's text where the others count characters. Knows no part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.gemini.texts import Measured, Texts
from asgi_surface.codecs.reading import count, mapping
from asgi_surface.ir import Citation, Search

CHUNKS: Final = "answer:groundingMetadata.groundingChunks"
RECITED: Final = "answer:citationMetadata.citations"

Cited = tuple[str, int, Citation]
"""A citation: what it was made of, by the name under which its loss is counted, and the index of the part whose text it stands in."""

_BESIDE: Final = (
    "webSearchQueries",
    "imageSearchQueries",
    "retrievalQueries",
    "searchEntryPoint",
    "retrievalMetadata",
    "googleMapsWidgetContextToken",
    "sourceFlaggingUris",
)
"""Members of groundingMetadata that are no sources."""
_ADDRESS: Final = frozenset({"uri", "title"})
_PLACE: Final = frozenset({"startIndex", "endIndex"})
_SUPPORT: Final = frozenset({"segment", "groundingChunkIndices"})


def sources(grounding: object, citation: object, texts: Texts) -> tuple[list[Cited], list[str]]:
    """The citations, and the names of what the metadata say beyond them. `texts` are the parts' texts, by their places."""
    grounded, recited = mapping(grounding), mapping(citation)
    found = [*_grounded(grounded, texts), *_recited(recited, texts)] if texts else []
    lost = any(_loses(one, _ADDRESS | _PLACE, texts) for one in _list(recited, "citations"))
    return found, [*_ungrounded(grounded, texts), *([RECITED] if lost else [])]


def _ungrounded(said: Mapping[str, Any], texts: Texts) -> Iterator[str]:
    yield from (f"answer:groundingMetadata.{name}" for name in _BESIDE if said.get(name))
    if any(_loses(one, _ADDRESS, texts) for one in _sources(said)):
        yield CHUNKS
    if any(_more(support, _SUPPORT) for support in _list(said, "groundingSupports")):
        yield "answer:groundingMetadata.groundingSupports"


def _loses(source: Mapping[str, Any], known: frozenset[str], texts: Texts) -> bool:
    """Whether a source says more than a citation does, or cannot be one: without an address, or text to stand in."""
    return _more(source, known) or not (texts and isinstance(source.get("uri"), str))


def _more(said: Mapping[str, Any], known: frozenset[str]) -> bool:
    return any(value for name, value in said.items() if name not in known)


def _sources(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The chunks, whatever kind of source each is."""
    return [next(filter(None, map(mapping, chunk.values())), {}) for chunk in _list(said, "groundingChunks")]


def _grounded(said: Mapping[str, Any], texts: Texts) -> Iterator[Cited]:
    """One citation for each source of each support; a source that supports nothing in particular stands for the whole text."""
    chunks = _sources(said)
    named = set()
    for support in _list(said, "groundingSupports"):
        segment, indices = mapping(support.get("segment")), support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if count(index) is not None and index < len(chunks):
                named.add(index)
                yield from _cite(CHUNKS, chunks[index], texts.place(count(segment.get("partIndex")) or 0), segment, texts)
    for index, chunk in enumerate(chunks):
        if index not in named:
            yield from _cite(CHUNKS, chunk, texts.place(0), {}, texts)


def _recited(said: Mapping[str, Any], texts: Texts) -> Iterator[Cited]:
    for citation in _list(said, "citations"):
        yield from _cite(RECITED, citation, texts.place(0), citation, texts)


def _list(said: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = said.get(name)
    return list(map(mapping, value if isinstance(value, list) else ()))


def _cite(name: str, source: Mapping[str, Any], index: int, segment: Mapping[str, Any], texts: Texts) -> Iterator[Cited]:
    url, title = source.get("uri"), source.get("title")
    if isinstance(url, str):
        end = count(segment.get("endIndex"))
        start = None if end is None else texts.characters(index, count(segment.get("startIndex")) or 0)
        yield name, index, Citation(url, title if isinstance(title, str) else "", start, None if end is None else texts.characters(index, end))


def within(text: str, citation: Citation) -> Citation:
    """The citation with its place in its text: one without offsets rests on all of it, and none on what comes behind."""
    if citation.start is None or citation.end is None:
        return structs.replace(citation, start=0, end=len(text))
    return structs.replace(citation, start=min(citation.start, len(text)), end=min(citation.end, len(text)))


def metadata(cited: Sequence[tuple[int, str, Sequence[Citation]]], searches: Sequence[Search]) -> Json | None:
    """The groundingMetadata of one answer: what was searched and found, and what the texts cite, each with its part's index. None for nothing."""
    found = [source for search in searches if not search.failed for source in search.sources]
    every = [citation for _, _, citations in cited for citation in citations]
    chunks = {address: place for place, address in enumerate(dict.fromkeys((source.url, source.title) for source in (*found, *every)))}
    said: Json = {
        "webSearchQueries": [search.query for search in searches],
        "groundingChunks": [{"web": {"uri": url} | ({"title": title} if title else {})} for url, title in chunks],
        "groundingSupports": [
            {"segment": _segment(index, text, measured, within(text, citation)), "groundingChunkIndices": [chunks[citation.url, citation.title]]}
            for index, text, citations in cited
            if text
            for measured in [Measured(text)]
            for citation in citations
        ],
    }
    return {name: value for name, value in said.items() if value} or None


def _segment(index: int, text: str, measured: Measured, citation: Citation) -> Json:
    start, end = measured.bytes(citation.start or 0), measured.bytes(citation.end or 0)
    return {"partIndex": index, "startIndex": start, "endIndex": end, "text": text[citation.start : citation.end]}
