"""The model list as Anthropic's clients read it, with its pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.errors import Code, RequestError

_PAGE: Final = 20
_PAGE_MOST: Final = 1000


def models(entries: Sequence[ModelEntry], query: ListQuery) -> bytes:
    """One page: `{"data": [model, …], "has_more", "first_id", "last_id"}`; 20 entries unless `limit` says 1 to 1000.

    Raises `RequestError` for another limit, and for an `after_id` or `before_id` that is no entry's.
    """
    limit = _PAGE if query.limit is None else query.limit
    if not 1 <= limit <= _PAGE_MOST:
        raise RequestError(Code.FIELD_REJECTED, f"limit must be 1 to {_PAGE_MOST}")
    names = [entry.name for entry in entries]
    start = 0 if query.after is None else _place(names, query.after, "after_id") + 1
    stop = len(names) if query.before is None else _place(names, query.before, "before_id")
    between = entries[start:stop]
    page = between[:limit] if query.before is None else between[-limit:]
    ids = [entry.name for entry in page]
    body = {
        "data": [_model(entry) for entry in page],
        "has_more": len(between) > len(page),
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }
    return msgspec.json.encode(body)


def model(entry: ModelEntry) -> bytes:
    """One model object."""
    return msgspec.json.encode(_model(entry))


def _model(entry: ModelEntry) -> dict[str, str]:
    # `created_at` is required and, in the API's words, "an epoch value if the release date is unknown"; `active` is "available for use".
    return {"type": "model", "id": entry.name, "display_name": entry.name, "created_at": "1970-01-01T00:00:00Z", "lifecycle": "active"}


def _place(names: list[str], name: str, field: str) -> int:
    if name not in names:
        raise RequestError(Code.FIELD_REJECTED, f"{field} names no model of this list")
    return names.index(name)
