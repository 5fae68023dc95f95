"""Cuts elements out of a body and leaves every other byte of it as it was; and finds a place in the uncut body again.

Knows nothing of surfaces. Pointers are those of the client's own body.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface.members import Members, encode

_LIST: Final = msgspec.json.Decoder(list[Raw])
_OBJECT: Final = msgspec.json.Decoder(Members)


def steps(pointer: str) -> tuple[str, ...]:
    """The reference tokens of a JSON pointer."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def cut(members: Members, pointers: Collection[str]) -> Members:
    """The members without what stands at the pointers. A pointer that leads nowhere cuts nothing."""
    return _cut_object(members, {steps(pointer) for pointer in pointers})


def _cut_object(members: Members, places: Collection[tuple[str, ...]]) -> Members:
    return {name: _cut_value(raw, _below(name, places)) for name, raw in members.items() if (name,) not in places}


def _below(step: str, places: Collection[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {place[1:] for place in places if len(place) > 1 and place[0] == step}


def _cut_value(raw: Raw, places: Collection[tuple[str, ...]]) -> Raw:
    opening = bytes(raw).lstrip()[:1]
    if not places or opening not in b"[{":
        return raw
    if opening == b"{":
        return Raw(encode(_cut_object(_OBJECT.decode(raw), places)))
    kept = [_cut_value(item, _below(str(index), places)) for index, item in enumerate(_LIST.decode(raw)) if (str(index),) not in places]
    return Raw(b"[" + b",".join(bytes(item) for item in kept) + b"]")


def original(pointer: str, pointers: Collection[str]) -> str:
    """Where a place of the cut body stood in the client's own: behind what was cut, elements have moved up."""
    gone = {steps(one) for one in pointers}
    path: tuple[str, ...] = ()
    for step in steps(pointer):
        path = (*path, _moved(path, step, gone) if step.isdigit() else step)
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def _moved(parent: tuple[str, ...], step: str, gone: Collection[tuple[str, ...]]) -> str:
    index = int(step)
    for missing in sorted(int(place[-1]) for place in gone if place[:-1] == parent and place[-1].isdigit()):
        index += missing <= index
    return str(index)
