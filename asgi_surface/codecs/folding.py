"""What the folds and unfolds of all surfaces share: objects as their members, each undecoded, so that what no table knows keeps its bytes.

Knows no surface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import reading
from asgi_surface.ir import Stop, weightier
from asgi_surface.members import Members, encode

NULL: Final = Raw(b"null")
_MEMBERS: Final = msgspec.json.Decoder(Members)
_ITEMS: Final = msgspec.json.Decoder(list[Raw])
_STRING: Final = msgspec.json.Decoder(str)


def members(data: bytes) -> Members:
    """An object's members. Raises `ValueError` for anything else."""
    return reading.decode(_MEMBERS, bytes(data))


def part(data: bytes) -> Members:
    """An object's members; none where it is none: null, or an oddity beside the answer."""
    return members(data) if bytes(data).startswith(b"{") else {}


def items(data: bytes) -> list[Raw]:
    """An array's elements; none where it is none."""
    return reading.decode(_ITEMS, bytes(data)) if bytes(data).startswith(b"[") else []


def text(data: bytes) -> str:
    """A string; "" where it is none."""
    return reading.decode(_STRING, bytes(data)) if bytes(data).startswith(b'"') else ""


def raw(value: object) -> Raw:
    """A value as JSON."""
    return Raw(msgspec.json.encode(value))


def whole(said: Mapping[str, Raw]) -> Raw:
    """Members as an object again."""
    return Raw(encode(dict(said)))


def listed(elements: list[Raw]) -> Raw:
    """Elements as an array again."""
    return Raw(b"[" + b",".join(map(bytes, elements)) + b"]")


def weighed(kept: Mapping[str, Raw], news: Members, name: str, reason: Callable[[object], Stop | None]) -> Members:
    """The news without a finish, a member of this name, that is none or weighs less than the one that was kept."""
    before, now = (reason(text(one.get(name, NULL))) for one in (kept, news))
    if before is None or (now is not None and weightier(before, now) is not before):
        return news
    return {one: value for one, value in news.items() if one != name}


def latest(kept: Members, news: Mapping[str, Raw]) -> int:
    """Keeps members of which the last that was said stands; null says nothing. Gives how many bytes more are kept."""
    before = len(kept)
    said = {name: value for name, value in news.items() if bytes(value) != b"null" or name not in kept}
    size = sum(len(bytes(value)) - len(bytes(kept.get(name, b""))) for name, value in said.items())
    kept.update(said)
    return size + len(kept) - before
