"""Token entries as Responses has them. Chat may leave `bytes` null, or out; here every entry has a list. Numbers keep their text."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface.members import Members

_ENTRIES: Final = msgspec.json.Decoder(list[Members])
_NULL: Final = Raw(b"null")
_EMPTY: Final = Raw(b"[]")
_TOP: Final = "top_logprobs"


def listed(entries: Raw) -> Raw:
    """The entries (a JSON array), each with its lists. What is no list of objects stays as it is."""
    try:
        return Raw(msgspec.json.encode([_entry(one) for one in _ENTRIES.decode(entries)]))
    except msgspec.DecodeError:
        return entries


def _entry(said: Members) -> Members:
    top = said.get(_TOP, _NULL)
    return _spelt(said) | {_TOP: _EMPTY if top == _NULL else Raw(msgspec.json.encode([_spelt(one) for one in _ENTRIES.decode(top)]))}


def _spelt(said: Members) -> Members:
    return said | {"bytes": _EMPTY} if said.get("bytes", _NULL) == _NULL else said
