"""Reading a client's request strictly, for all codecs: what is unknown is refused with its pointer, since its meaning cannot be moved.

Knows no surface: the shapes are each codec's own.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface.errors import Code, RequestError
from asgi_surface.members import pointer_of, token

T = TypeVar("T")

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `.*`)?", re.DOTALL)


def decode(decoder: Decoder[T], raw: Raw, at: str) -> T:
    """`raw` as the decoder's type. Raises `RequestError` with the pointer, below `at`, of what is unknown or has another shape."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise malformed(at) from None
    except msgspec.DecodeError as error:  # of any kind: Raw has not looked at numbers beyond any type, or half surrogates
        raise _refusal(error, at) from None


def _refusal(error: msgspec.DecodeError, at: str) -> RequestError:
    text, place = str(error), pointer_of(error, at)
    if found := _UNKNOWN.fullmatch(text):
        return unknown(place + token(found[1]))
    # A type, a role or another word beyond those listed may be newer than the list.
    return unknown(place) if text.startswith("Invalid ") else malformed(place)


def unknown(at: str) -> RequestError:
    """The refusal of what is not known, whose meaning can therefore not be moved."""
    return RequestError(Code.UNREPRESENTABLE, "not known on this surface, so its meaning cannot be converted", pointer=at)


def malformed(at: str) -> RequestError:
    """The refusal of another shape."""
    return RequestError(Code.MALFORMED_BODY, "the value has a shape that the surface does not know", pointer=at)


def twice(at: str, other: str) -> RequestError:
    """The refusal of what another member says otherwise: one of the two would be lost."""
    return RequestError(Code.UNREPRESENTABLE, f"`{other}` says it too, and otherwise", pointer=at)


def as_object(raw: Raw, at: str) -> Raw:
    """A value that is kept as it is, and must be an object."""
    if bytes(memoryview(raw)[:1]) != b"{":
        raise malformed(at)
    return raw
