"""The model list as Gemini clients read it, with its pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import Operation

_PAGE: Final = 50
_PAGE_MOST: Final = 1000  # the API takes a larger size for this one
_METHODS: Final[dict[str, str]] = {Operation.GENERATE: "generateContent", Operation.COUNT_TOKENS: "countTokens"}


def models(entries: Sequence[ModelEntry], query: ListQuery) -> bytes:
    """One page: `{"models": [model, …], "nextPageToken"?}`; 50 entries unless the page size says otherwise. A token is the last name of its page.

    Raises `RequestError` for a negative page size and for a token that is not of this list.
    """
    size = query.limit or _PAGE
    if size < 0:
        raise RequestError(Code.FIELD_REJECTED, "pageSize must not be negative")
    start = 0 if query.after is None else _after(entries, query.after)
    stop = start + min(size, _PAGE_MOST)
    body: dict[str, object] = {"models": [_model(entry) for entry in entries[start:stop]]}
    if stop < len(entries):
        body["nextPageToken"] = entries[stop - 1].name
    return msgspec.json.encode(body)


def model(entry: ModelEntry) -> bytes:
    """One model object."""
    return msgspec.json.encode(_model(entry))


def _model(entry: ModelEntry) -> dict[str, object]:
    methods = [_METHODS[operation] for operation in entry.operations if operation in _METHODS]
    return {"name": f"models/{entry.name}", "displayName": entry.name, "supportedGenerationMethods": methods}


def _after(entries: Sequence[ModelEntry], token: str) -> int:
    found = next((place for place, entry in enumerate(entries) if entry.name == token), None)
    if found is None:
        raise RequestError(Code.FIELD_REJECTED, "pageToken is not of this list")
    return found + 1
