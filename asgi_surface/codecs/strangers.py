"""Members of an answer or of a stream's frame that its surface is not known to have: they are skipped, and that is counted. Knows no surface.

A member that says nothing (null, zero, empty) is no loss. An upstream's own word is never repeated in a header, so all have one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, Union

import msgspec
from msgspec import Raw

from asgi_surface.codecs import reading

UNKNOWN: Final = "answer:unknown"
"""What is newer than a codec's tables."""

_ANY: Final = msgspec.json.Decoder()
_STEP: Final = re.compile(r"([./]?)([^./]+)")
_SCALARS: Final = (None, bool, int, float, str)


class Shape:
    """What is known of one object: its members, the shapes of those that are looked into, and shapes by its `type` where that decides.

    `mute` are strangers that servers send with null again and again: so they cost no more than others.
    """

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.mute: frozenset[str] = frozenset()
        self.members: dict[str, Shape] = {}
        self.kinds: dict[str, Shape] = {}

    def at(self, path: str) -> Shape:
        """The shape at a path: names joined by dots, lists passed through, `/` before the type of an element. The empty path is this one."""
        found = self
        for mark, step in _STEP.findall(path):
            found = (found.kinds if mark == "/" else found.members).setdefault(step, Shape())
        return found

    def strange(self, value: Any) -> bool:
        """Whether a value says something under a name that is not known there."""
        if isinstance(value, list):
            return any(map(self.strange, value))
        if not isinstance(value, dict):
            return False
        shape = self.kinds.get(str(value.get("type")), self)
        if shape.names and any(value[name] for name in value.keys() - shape.names):
            return True
        return any(inner.strange(value.get(name)) for name, inner in shape.members.items())

    @cached_property
    def strict(self) -> msgspec.json.Decoder[Any]:
        """Refuses whatever `strange` would call so, and some more. A look through it costs a tenth of one through `strange`."""
        return msgspec.json.Decoder(Union[*self.structs()])

    def structs(self) -> list[type[msgspec.Struct]]:
        """The objects that may stand here."""
        return [kind.struct(tag_field="type", tag=name) for name, kind in self.kinds.items()] or [self.struct()]

    def struct(self, **tag: Any) -> type[msgspec.Struct]:
        """An object with these members and no others, of one type where that decides."""
        fields = [(name, self._member(name), None) for name in sorted(self.names) if name != tag.get("tag_field")]
        fields += [(name, None, None) for name in sorted(self.mute)]
        return msgspec.defstruct("Known", fields, forbid_unknown_fields=True, **tag)

    def _member(self, name: str) -> Any:
        if name not in self.members:
            return Raw
        inside: Any = Union[*self.members[name].structs()]
        return Union[inside, list[inside], *_SCALARS]


def shape(table: str) -> Shape:
    """Reads a codec's table: a path and members there, a line each; `.` is the answer, a path may have several lines, and `?` marks the mute."""
    root = Shape()
    for path, *names in (line.split() for line in table.splitlines() if line):
        found = root.at(path.lstrip("."))
        found.names |= {name for name in names if not name.endswith("?")}
        found.mute |= {name[:-1] for name in names if name.endswith("?")}
    return root


def under(place: str, table: str) -> str:
    """The lines of a table for what stands at a place of something larger."""
    return "".join(f"{place}{_joint(line)}\n" for line in table.splitlines() if line)


def _joint(line: str) -> str:
    return line[1:] if line.startswith(". ") else line if line.startswith("/") else f".{line}"


def strangers(body: bytes, known: Shape) -> tuple[str, ...]:
    """`UNKNOWN`, once, when the answer says something under a name that is not known there."""
    try:
        known.strict.decode(body)
    except (ValueError, RecursionError):
        return (UNKNOWN,) if _strange(body, known) else ()
    return ()


def _strange(body: bytes, known: Shape) -> bool:
    try:
        return known.strange(reading.decode(_ANY, body))
    except ValueError:  # what nobody reads need not be JSON that can be read
        return False


class Lookout:
    """Looks into every frame of one stream, until one says something unknown: that is told once."""

    def __init__(self, known: Shape) -> None:
        self._known: Shape | None = known

    def see(self, body: bytes) -> Iterable[str]:
        """`UNKNOWN`, the first time."""
        found = strangers(body, self._known) if self._known is not None else ()
        if found:
            self._known = None
        return found
