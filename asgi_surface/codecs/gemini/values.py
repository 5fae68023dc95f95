"""A Gemini request's values with their places, and the collector of the constructs that it uses.

Proto JSON takes each name in camelCase and in snake_case, a number as a string, and a lone value where a list is due; pointers keep the client's
spelling. Knows no construct.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Final, NoReturn, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs import strict
from asgi_surface.codecs.gemini.request import canonical
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, token
from asgi_surface.verdicts import Mention

T = TypeVar("T")

_OBJECT: Final = Decoder(Members)
_LIST: Final = Decoder(list[Raw])
_STRING: Final = Decoder(str)
_FLAG: Final = Decoder(bool)
_NUMBER: Final = Decoder(float, strict=False)
_NULL: Final = Raw(b"null")
_UNSAID: Final = re.compile(rb'\[\s*\]|\{\s*\}|false|""')


class Value(Struct, frozen=True):
    """One JSON value, and the pointer of where it stands."""

    raw: Raw
    at: str

    def malformed(self) -> NoReturn:
        """Refuses the value for its shape."""
        raise strict.malformed(self.at)

    @property
    def said(self) -> bool:
        """Whether it says anything: empty lists, objects and texts, and `false`, do not."""
        return _UNSAID.fullmatch(self.raw) is None

    def members(self, known: Collection[str]) -> dict[str, Value]:
        """The members of an object by their names in camelCase, null left out. Refuses a name not `known`, and both spellings of one."""
        return placed(self._decode(_OBJECT), self.at, known)

    def items(self) -> list[Value]:
        """The items of a list, or a lone value in its place."""
        if not bytes(self.raw).startswith(b"["):
            return [self]
        items = self._decode(_LIST)
        return [Value(item, f"{self.at}/{index}") for index, item in enumerate(items)]

    def text(self) -> str:
        """A string."""
        return self._decode(_STRING)

    def flag(self) -> bool:
        """A boolean."""
        return self._decode(_FLAG)

    def number(self) -> Raw:
        """A number's own text, out of its quotes where it has some."""
        if not math.isfinite(self._decode(_NUMBER)):
            self.malformed()
        return Raw(bytes(self.raw).strip(b'"'))

    def integer(self) -> Raw:
        """A whole number's text; google-genai writes `40.0` where its own type is a float."""
        text = self.number()
        number = float(text)
        if not number.is_integer():
            self.malformed()
        return text if bytes(text).removeprefix(b"-").isdigit() else Raw(str(int(number)).encode())

    def object(self) -> str:
        """The exact text of an object."""
        self._decode(_OBJECT)
        return bytes(self.raw).decode()

    def _decode(self, decoder: Decoder[T]) -> T:
        return strict.decode(decoder, self.raw, self.at)


def placed(members: Members, at: str, known: Collection[str]) -> dict[str, Value]:
    """The members of an object at a pointer by their names in camelCase, null left out."""
    found: dict[str, Value] = {}
    for spelling, raw in members.items():
        name, place = canonical(spelling), at + token(spelling)
        if raw == _NULL:
            continue
        if name not in known:
            raise strict.unknown(place)
        if name in found:
            raise RequestError(Code.MALFORMED_BODY, "a name stands in the body twice", pointer=place)
        found[name] = Value(raw, place)
    return found


class Uses:
    """The constructs that a request uses, in the order in which they are met."""

    __slots__ = ("mentions",)

    def __init__(self) -> None:
        self.mentions: list[Mention] = []

    def note(self, construct: str, at: str) -> None:
        """A construct used at a pointer."""
        self.mentions.append(Mention(construct, at))

    def each(self, prefix: str, members: dict[str, Value], names: Collection[str]) -> None:
        """Notes those of `members` that are among `names` and say something."""
        for name, value in members.items():
            if name in names and value.said:
                self.note(prefix + name, value.at)
