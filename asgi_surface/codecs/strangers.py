"""Members of a whole answer that its surface is not known to have: they are skipped, and that is counted. Knows no surface.

A member that says nothing (null, zero, empty) is no loss. An upstream's own word is never repeated in a header, so all have one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from asgi_surface.codecs import reading

UNKNOWN: Final = "answer:unknown"
"""What is newer than a codec's tables."""

Shape = Mapping[str, frozenset[str]]
"""The members of each object that is looked at, by its path: names joined by dots, lists passed through, `/` before the type of an element."""

_ANY: Final = msgspec.json.Decoder()


def shape(text: str) -> Shape:
    """Reads a codec's table: a path and members there, a line each; `.` is the answer itself, and a path may have several lines."""
    found: dict[str, frozenset[str]] = {}
    for path, *names in (line.split() for line in text.splitlines() if line):
        found[path.lstrip(".")] = found.get(path.lstrip("."), frozenset()) | frozenset(names)
    return found


def strangers(body: bytes, known: Shape) -> tuple[str, ...]:
    """`UNKNOWN`, once, when the answer says something under a name that is not known there."""
    try:
        return (UNKNOWN,) if _strange(reading.decode(_ANY, body), known, "") else ()
    except ValueError:  # what nobody reads need not be JSON that can be read
        return ()


def _strange(value: Any, known: Shape, path: str) -> bool:
    if isinstance(value, list):
        return any(_strange(element, known, path) for element in value)
    if not isinstance(value, dict):
        return False
    typed = f"{path}/{value.get('type')}"
    names = known.get(typed if typed in known else path)
    if names is None:
        return False
    inner = f"{typed if typed in known else path}."
    return any((member and name not in names) or _strange(member, known, (inner + name).lstrip(".")) for name, member in value.items())
