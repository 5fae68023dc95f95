"""Reading a Responses request strictly: what is not known is refused by its pointer, and every construct is noted with its place.

A shape is read together with the construct it stands for, so that each of its members with a row of its own is noted where it says something. Knows
nothing of what a construct becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs.responses.verdicts import ROWS
from asgi_surface.codecs.strict import decode, unknown
from asgi_surface.members import token
from asgi_surface.verdicts import Mention

S = TypeVar("S", bound=Struct)


class Notes:
    """The constructs seen so far, each with its place."""

    __slots__ = ("mentions",)

    def __init__(self) -> None:
        self.mentions: list[Mention] = []

    def note(self, construct: str, at: str) -> None:
        """Takes one construct. Raises `RequestError` when the table does not know it."""
        if construct not in ROWS:
            raise unknown(at)
        self.mentions.append(Mention(construct, at))

    def kind(self, prefix: str, kind: str | None, at: str) -> str:
        """Takes one value of a closed set: a type or a role. A dot would name a member, so a type with one is unknown."""
        if kind is None or "." in kind:
            raise unknown(at)
        self.note(f"{prefix}{kind}", at)
        return kind


def given(raw: Raw) -> bool:
    """Whether a member says anything: null means absent."""
    return bytes(memoryview(raw)[:1]) != b"n"


def is_text(raw: Raw) -> bool:
    """Whether a value is a string."""
    return bytes(memoryview(raw)[:1]) == b'"'


class _Typed(Struct, frozen=True):
    type: str | None = None
    role: str | None = None


# What a member's value must be to say anything, where that is not its truth: the values left out here are the API's own defaults.
_MEANS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "allowed_callers": lambda callers: bool(callers) and "direct" not in callers,
    "caller": lambda caller: caller is not None and caller.type != "direct",
    "context": lambda value: value not in {None, "auto"},
    "detail": lambda value: value not in {None, "auto"},
    "include_obfuscation": lambda value: value is not None,
    "mode": lambda value: value not in {None, "standard"},
    "verbosity": lambda value: value not in {None, "medium"},
}
_DECODERS: Final[dict[type[Struct], Decoder[Any]]] = {}
_TYPED: Final = Decoder(_Typed)
_ELEMENTS: Final = Decoder(list[Raw])


def read(shape: type[S], raw: Raw, construct: str, at: str, notes: Notes) -> S:
    """`raw` as a shape, whose members are noted under `construct` where they say something and have a row of their own."""
    value: S = decode(_DECODERS.setdefault(shape, Decoder(shape)), raw, at)
    for field, name in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        if f"{construct}.{name}" in ROWS and _MEANS.get(name, bool)(getattr(value, field)):
            notes.note(f"{construct}.{name}", at + token(name))
    return value


def elements(raw: Raw, at: str) -> list[Raw]:
    """The elements of a list."""
    return decode(_ELEMENTS, raw, at)


def kind_of(raw: Raw, at: str) -> str | None:
    """The type of an element."""
    return decode(_TYPED, raw, at).type


def item_kind(raw: Raw, at: str) -> str:
    """The type of an input item. Messages may leave it out, and so may item references, which have no role either."""
    typed = decode(_TYPED, raw, at)
    return typed.type or ("item_reference" if typed.role is None else "message")
