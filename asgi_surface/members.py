"""A JSON object as its ordered top-level members, each with its exact bytes; and JSON pointers.

Native mode never decodes a member it does not have to read. Knows nothing of surfaces or policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from asgi_surface.errors import Code, RequestError

Members = dict[str, Raw]
T = TypeVar("T")

_MEMBERS: Final = msgspec.json.Decoder(Members)
_STRING: Final = msgspec.json.Decoder(str)
_VALUES: Final = msgspec.json.Decoder(list[Raw])
# An escape that is one half alone: no second half behind a first, or no first before a second. A backslash may itself be escaped.
_HALF: Final = re.compile(
    rb"((?<!\\)(?:\\\\)*)\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u)[dD][c-fC-F][0-9a-fA-F]{2})"
)
_MARK: Final = rb"\uFfFd"
"""Stands for half a pair while its place is looked for: the sign for what is no text, spelt as nobody does."""
_LEVELS: Final = 8
_SPACE: Final = re.compile(rb"[ \t\n\r]*")
_KEY: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRING_BYTES: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def token(key: object) -> str:
    """One reference token of a JSON pointer, with its slash (RFC 6901)."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def pointer_of(error: msgspec.DecodeError, base: str = "") -> str:
    """The JSON pointer that msgspec's message names (`… - at `$.a[0].b``), below `base`. Inside free maps it ends at the map."""
    found = re.search(r"at `(?:key in )?\$([^`]*)`$", str(error))
    steps = re.findall(r"\.([^.\[]+)|\[(\d+)\]", found[1] if found else "")
    return base + "".join(token(name or index) for name, index in steps)


def parse(body: bytes) -> Members:
    """The members of a JSON object, in the client's order.

    Raises `RequestError` (malformed_body) for anything but one UTF-8 JSON object, and for a name that stands there twice: a policy and an
    upstream could read such a body differently.
    """
    try:
        # Raw does not look at the bytes inside strings, so the encoding is checked here, once (9 µs for 192 kB).
        body.decode()
    except UnicodeDecodeError as error:
        raise RequestError(Code.MALFORMED_BODY, f"the body is not UTF-8 (byte {error.start})") from None
    try:
        members = _MEMBERS.decode(body)
    except RecursionError:
        raise RequestError(Code.MALFORMED_BODY, "the body is nested too deeply") from None
    except msgspec.ValidationError:
        raise RequestError(Code.MALFORMED_BODY, "the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        if (place := _halved(body)) is not None:
            text = "a string holds one half of a surrogate pair, which is no Unicode text"
            raise RequestError(Code.MALFORMED_BODY, text, pointer=place or None) from None
        raise RequestError(Code.MALFORMED_BODY, f"the body is not JSON: {_place(error)}") from None
    if (name := repeated(body, members)) is not None:
        raise RequestError(Code.MALFORMED_BODY, "a name stands in the body twice", pointer=token(name))
    return members


def _place(error: msgspec.DecodeError) -> str:
    """Where and why, never the client's text (a message may quote it)."""
    found = re.search(r"\(byte (\d+)\)", str(error))
    return f"byte {found[1]}" if found else "it ends too early"


def _halved(body: bytes) -> str | None:
    """The JSON pointer of a string with half a surrogate pair, where nothing else is wrong; "" where it stands in a name of the body's own.

    The grammar of JSON allows such an escape, the decoder does not. The pointer ends after some levels, since each is read anew.
    """
    inner, at = _HALF.sub(rb"\1" + _MARK.replace(b"\\", rb"\\"), body).lstrip(), ""
    if _MARK not in inner or not _inner(inner):
        return None
    for _ in range(_LEVELS):
        found = next(((key, value) for key, raw in _inner(inner) if _MARK in (value := bytes(raw))), None)
        if found is None:
            break
        at, inner = at + token(found[0]), found[1]
    return at


def _inner(document: bytes) -> Iterable[tuple[object, Raw]]:
    """What stands in an object or a list, by name or place."""
    try:
        return _MEMBERS.decode(document).items() if document.startswith(b"{") else list(enumerate(_VALUES.decode(document)))
    except (msgspec.DecodeError, RecursionError):
        return ()


def repeated(document: bytes, members: Members) -> str | None:
    """A top-level name that stands in `document` more than once, or None. `members` is the document as decoded (last wins).

    The decoder keeps the first place and the last value of a repeated name, so walking the document beside the members meets a value that is
    not the one kept, or a name too many. Compares memory, so it costs little even for large values.
    """
    at = _skip(document, 0) + 1
    for name, raw in members.items():
        key, at = _key(document, _skip(document, at))
        value = bytes(raw)
        if key != name or not document.startswith(value, at):
            return key
        at = _skip(document, at + len(value))
        if document[at : at + 1] not in (b",", b"}"):
            return key
        at += 1
    if members and document[at - 1 : at] == b",":
        return _key(document, _skip(document, at))[0]
    return None


def names(document: bytes | Raw) -> int:
    """How many names stand in a JSON document, at any depth: outside of strings only a name has a colon. More than are decoded: one stands twice."""
    return _STRING_BYTES.sub(b"", document).count(b":")


def _skip(document: bytes, at: int) -> int:
    found = _SPACE.match(document, at)
    return found.end() if found else at


def _key(document: bytes, at: int) -> tuple[str, int]:
    """The name at `at`, and where its value begins."""
    found = _KEY.match(document, at)
    if found is None:  # pragma: no cover -- the decoder has accepted the document, so a name stands here
        raise AssertionError(document[at : at + 20])
    colon = _skip(document, found.end()) + 1
    return _STRING.decode(found[0]), _skip(document, colon)


def encode(members: Members) -> bytes:
    """The object again. Every member keeps its exact bytes; white space between members is not kept."""
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in members.items()) + b"}"


def read(members: Members, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The member `name` as the decoder's type; None when it is absent. Raises `RequestError` with the pointer of what has another shape."""
    raw = members.get(name)
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise RequestError(Code.MALFORMED_BODY, "nested too deeply", pointer=token(name)) from None
    except msgspec.DecodeError as error:  # of any kind: Raw has not looked at numbers beyond any type, or half surrogates
        place = pointer_of(error, token(name))
        raise RequestError(Code.MALFORMED_BODY, "the value has a shape that the surface does not know", pointer=place) from None
