"""Web searches that were run beside the model, as Messages tells those of its provider: the call, what it gave, and the sources that text rests on.

The opaque strings that the surface has for these are envelopes of the gateway's own, which say nothing but a source and, in a result, its excerpt. By
them, and by the ids, the blocks are known again when a client sends them back. Knows neither what ran a search nor how blocks stand in an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from msgspec import Struct, structs
from msgspec.json import Decoder

from asgi_surface import seals
from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Context
from asgi_surface.ir import Citation, Part, Seal, SealKind, Search, Text
from asgi_surface.members import Members, encode

Object = dict[str, object]

_ID: Final = "asf_"


def use(search: Search) -> Object:
    """The call of the search, without what was asked."""
    return {"type": "server_tool_use", "id": f"{_ID}{search.id}", "name": "web_search", "input": {}}


def asked(search: Search) -> Object:
    """What was asked: the call's input."""
    return {"query": search.query}


def result(search: Search, context: Context) -> Object:
    """What the search gave."""
    content = {"type": "web_search_tool_result_error", "error_code": "unavailable"} if search.failed else _results(search.sources, context)
    return {"type": "web_search_tool_result", "tool_use_id": f"{_ID}{search.id}", "content": content}


def _results(sources: Collection[Citation], context: Context) -> list[Object]:
    return [
        {"type": "web_search_result", "url": source.url, "title": source.title, "encrypted_content": _envelope(source, context)} for source in sources
    ]


def location(citation: Citation, context: Context) -> Object:
    """A source of text. What of it was cited is not known, and the type demands a text."""
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title or None,
        "cited_text": "",
        "encrypted_index": _envelope(citation, context),
    }


def _envelope(source: Citation, context: Context) -> str:
    """The title, the URL and, where there is one, the excerpt, each on a line: who reads it again has what the model had."""
    said = "\n".join([source.title, source.url, *filter(None, [source.excerpt])])
    return seals.wrap(Seal(said, SealKind.TEXT, context.upstream), context.seal_domain)


def excerpt(token: str) -> str:
    """What an envelope of a result says of its page, on one line; "" where it says nothing or is none."""
    seal = seals.unwrap(token)
    said = seal.token.split("\n", 2)[2:] if seal is not None and seal.kind is SealKind.TEXT else []
    return " ".join(" ".join(said).split())


def told(parts: Collection[Part]) -> Iterator[Part]:
    """The parts, of whose citations those stand that a search before them found: the surface knows no others."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, Search):
            found |= {source.url for source in part.sources}
        yield structs.replace(part, citations=tuple(one for one in part.citations if one.url in found)) if isinstance(part, Text) else part


class _Block(Struct, frozen=True):
    type: Any = None
    id: Any = None
    tool_use_id: Any = None
    content: Any = None


_BLOCK: Final = Decoder(_Block)


def own(block: Members) -> bool:
    """Whether a block that a client sends is one of these: a result by the envelopes in it, a call, and a result of nothing, by its id."""
    try:
        said = reading.decode(_BLOCK, encode(block))
    except ValueError:
        return False
    if said.type == "server_tool_use":
        return _ours(said.id)
    if said.type != "web_search_tool_result":
        return False
    sources = said.content if isinstance(said.content, list) else []
    return all(map(_enveloped, sources)) if sources else _ours(said.tool_use_id)


def _ours(identity: object) -> bool:
    return isinstance(identity, str) and identity.startswith(_ID)


def _enveloped(source: object) -> bool:
    token = source.get("encrypted_content") if isinstance(source, dict) else None
    seal = seals.unwrap(token) if isinstance(token, str) else None
    return seal is not None and seal.kind is SealKind.TEXT
