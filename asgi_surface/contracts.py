"""Inbound contracts: what a route takes of its clients, narrower than their surface, whatever binding serves. Judged on the client's own body.

A contract denies what it does not name: nothing is ignored. Knows nothing of bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, token
from asgi_surface.plans import Limits
from asgi_surface.surfaces import RESPONSES, Surface

MIB: Final = 1_048_576
ITEMS: Final = 64
CHARS: Final = 1_000_000
TOKENS: Final = 32_768
TEMPERATURE: Final = 2.0
ROLES: Final = ("system", "developer", "user", "assistant")
PARTS: Final = ("input_text", "output_text", "text")


class Contract(Struct, frozen=True):
    """What holds for clients of `surface` on a route: `check` raises `RequestError` (unsupported_request), `limits` tighten the binding's."""

    surface: Surface
    check: Callable[[Members], None]
    limits: Mapping[str, int]


def tightened(limits: Limits, contract: Contract) -> Limits:
    """The limits under a contract: the narrower of each."""
    narrow = {name: bound for name, bound in contract.limits.items() if (own := getattr(limits, name)) is None or own > bound}
    return structs.replace(limits, **narrow)


def _refused(message: str, pointer: str) -> RequestError:
    return RequestError(Code.UNSUPPORTED_REQUEST, message, pointer=pointer)


def _value(raw: Raw, pointer: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise _refused("the contract cannot read this value", pointer) from None


def _bounded_text(members: Members) -> None:
    """Raises for anything but text, within bounds."""
    for name, raw in members.items():
        if name not in _FIELDS:
            raise _refused(f"the contract takes {', '.join(_FIELDS)} only", token(name))
        _FIELDS[name](_value(raw, token(name)), token(name))
    texts = [_value(members[name], token(name)) for name in ("instructions", "input") if name in members]
    if sum(map(_chars, texts)) > CHARS:
        raise _refused(f"the contract takes {CHARS} characters", "/input")


def _chars(said: Any) -> int:
    """The characters of a text, or of the items' texts."""
    if not isinstance(said, list):
        return len(said or "")
    contents = (item["content"] for item in said)
    return sum(len(one) if isinstance(one, str) else sum(len(part["text"]) for part in one) for one in contents)


def _text(value: Any, pointer: str) -> None:
    if not isinstance(value, str):
        raise _refused("the contract takes a text here", pointer)


def _optional_text(value: Any, pointer: str) -> None:
    if value is not None:
        _text(value, pointer)


def _flag(value: Any, pointer: str) -> None:
    if value is not None and not isinstance(value, bool):
        raise _refused("the contract takes true or false here", pointer)


def _tokens(value: Any, pointer: str) -> None:
    if value is not None and not (type(value) is int and 1 <= value <= TOKENS):
        raise _refused(f"the contract takes a whole number from 1 to {TOKENS}", pointer)


def _temperature(value: Any, pointer: str) -> None:
    if value is not None and not (type(value) in (int, float) and 0 <= value <= TEMPERATURE):
        raise _refused("the contract takes a number from 0 to 2", pointer)


def _input(value: Any, pointer: str) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        raise _refused("the contract takes a text or a list of messages", pointer)
    if len(value) > ITEMS:
        raise _refused(f"the contract takes {ITEMS} messages", f"{pointer}/{ITEMS}")
    for index, item in enumerate(value):
        _message(item, f"{pointer}/{index}")


def _message(item: Any, pointer: str) -> None:
    known = _object(item, pointer, ("type", "role", "content"), "message", ("message",))
    _one_of(known.get("role"), ROLES, f"{pointer}/role")
    content = known.get("content")
    for place, part in _parts(content, f"{pointer}/content"):
        said = _object(part, place, ("type", "text"), None, PARTS)
        _text(said.get("text"), f"{place}/text")


def _parts(content: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    if isinstance(content, list):
        yield from ((f"{pointer}/{index}", part) for index, part in enumerate(content))
    else:
        _text(content, pointer)


def _object(value: Any, pointer: str, names: tuple[str, ...], untyped: str | None, types: tuple[str, ...]) -> dict[str, Any]:
    """An object of one of the types (`untyped` where it says none), without other members. Its type says more than what else is wrong with it."""
    if not isinstance(value, dict):
        raise _refused("the contract takes an object here", pointer)
    _one_of(value.get("type", untyped), types, f"{pointer}/type")
    if (unknown := next((name for name in value if name not in names), None)) is not None:
        raise _refused(f"the contract takes {', '.join(names)} only", pointer + token(unknown))
    return value


def _one_of(value: Any, words: tuple[str, ...], pointer: str) -> None:
    if value not in words:
        raise _refused(f"the contract takes {', '.join(words)} only", pointer)


_FIELDS: Final[dict[str, Callable[[Any, str], None]]] = {
    "model": _text,
    "input": _input,
    "instructions": _optional_text,
    "stream": _flag,
    "max_output_tokens": _tokens,
    "temperature": _temperature,
}

_LIMITS: Final = {
    "request_bytes": 8 * MIB,
    "response_bytes": 8 * MIB,
    "event_bytes": MIB,
    "line_bytes": MIB // 4,
    "events": 8_192,
    "output_chars": CHARS,
}

CONTRACTS: Final = {"responses-bounded-text": Contract(RESPONSES, _bounded_text, _LIMITS)}
"""Every contract a route can name."""
