"""Gemini's grounding as citations, and back. Gemini counts bytes of a part's text where the others count characters. Knows no part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.reading import count, mapping
from asgi_surface.ir import Citation

_Cited = tuple[int, Citation]


def sources(grounding: object, citation: object, texts: Sequence[str]) -> tuple[dict[int, list[Citation]], list[str]]:
    """The citations of each part by its index, and the names of metadata of which none could be made. `texts` are the parts' texts, "" for others."""
    found: dict[int, list[Citation]] = {}
    unread = []
    for name, said, read in (("answer:groundingMetadata", grounding, _grounded), ("answer:citationMetadata", citation, _recited)):
        cited = list(read(mapping(said), texts)) if any(texts) else []
        for index, made in cited:
            found.setdefault(index, []).append(made)
        unread += [name] if said and not cited else []
    return found, unread


def _grounded(said: Mapping[str, Any], texts: Sequence[str]) -> Iterator[_Cited]:
    """One citation for each source of each support; a source that supports nothing in particular stands for the whole text."""
    chunks = [next(filter(None, map(mapping, mapping(chunk).values())), {}) for chunk in _list(said.get("groundingChunks"))]
    named = set()
    for support in map(mapping, _list(said.get("groundingSupports"))):
        segment = mapping(support.get("segment"))
        for index in _list(support.get("groundingChunkIndices")):
            if count(index) is not None and index < len(chunks):
                named.add(index)
                yield from _cite(chunks[index], _place(count(segment.get("partIndex")) or 0, texts), segment, texts)
    for index, chunk in enumerate(chunks):
        if index not in named:
            yield from _cite(chunk, _place(0, texts), {}, texts)


def _recited(said: Mapping[str, Any], texts: Sequence[str]) -> Iterator[_Cited]:
    for citation in map(mapping, _list(said.get("citations"))):
        yield from _cite(citation, _place(0, texts), citation, texts)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _place(index: int, texts: Sequence[str]) -> int:
    """The part meant; the first with text where that one has none."""
    return index if index < len(texts) and texts[index] else next(place for place, text in enumerate(texts) if text)


def _cite(source: Mapping[str, Any], index: int, segment: Mapping[str, Any], texts: Sequence[str]) -> Iterator[_Cited]:
    url, title = source.get("uri"), source.get("title")
    if isinstance(url, str):
        end = count(segment.get("endIndex"))
        start = None if end is None else _characters(texts[index], count(segment.get("startIndex")) or 0)
        yield index, Citation(url, title if isinstance(title, str) else "", start, None if end is None else _characters(texts[index], end))


def _characters(text: str, size: int) -> int:
    return len(text.encode()[:size].decode(errors="ignore"))


def metadata(cited: Sequence[tuple[int, str, Sequence[Citation]]]) -> Json | None:
    """The groundingMetadata of parts that cite: each with its index and its text. None where none does."""
    every = [citation for _, _, citations in cited for citation in citations]
    chunks = list(dict.fromkeys((citation.url, citation.title) for citation in every))
    supports = [
        {"segment": _segment(index, text, citation.start, citation.end), "groundingChunkIndices": [chunks.index((citation.url, citation.title))]}
        for index, text, citations in cited
        for citation in citations
        if citation.start is not None and citation.end is not None
    ]
    said: Json = {"groundingChunks": [{"web": {"uri": url} | ({"title": title} if title else {})} for url, title in chunks]}
    return (said | ({"groundingSupports": supports} if supports else {})) if every else None


def _segment(index: int, text: str, start: int, end: int) -> Json:
    return {"partIndex": index, "startIndex": len(text[:start].encode()), "endIndex": len(text[:end].encode()), "text": text[start:end]}
