"""Inbound contracts: what a route takes of its clients, narrower than their surface, whatever binding serves. Judged on the client's own body.

A contract denies what it does not name: nothing is ignored. Knows nothing of bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, names, token
from asgi_surface.plans import Limits
from asgi_surface.surfaces import RESPONSES, Surface

V = TypeVar("V")

MIB: Final = 1_048_576
ITEMS: Final = 64
CHARS: Final = 1_000_000
TOKENS: Final = 32_768
TEMPERATURE: Final = 2.0
ROLES: Final = ("system", "developer", "user", "assistant")
PARTS: Final = ("input_text", "output_text", "text")
_WANTED: Final = "the contract takes a text or a list of messages"


class Contract(Struct, frozen=True):
    """What holds for clients of `surface` on a route: `check` raises `RequestError` (unsupported_request), `limits` tighten the binding's."""

    surface: Surface
    check: Callable[[Members], None]
    limits: Mapping[str, int]


def tightened(limits: Limits, contract: Contract) -> Limits:
    """The limits under a contract: the narrower of each."""
    narrow = {name: bound for name, bound in contract.limits.items() if (own := getattr(limits, name)) is None or own > bound}
    return structs.replace(limits, **narrow)


def _refused(message: str, pointer: str = "") -> RequestError:
    """The refusal of a value; `pointer` leads into it. Whoever holds the value adds where it stands, so that good ones cost no pointers."""
    return RequestError(Code.UNSUPPORTED_REQUEST, message, pointer=pointer)


def _within(step: object, check: Callable[[V], int], value: V) -> int:
    try:
        return check(value)
    except RequestError as error:
        error.pointer = token(step) + (error.pointer or "")
        raise


def _as(decoder: msgspec.json.Decoder[V], raw: Raw) -> V:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise _refused("the contract cannot read this value") from None


def _bounded_text(members: Members) -> None:
    """Raises for anything but text, within bounds."""
    chars = {name: _within(name, _FIELDS.get(name, _unknown), raw) for name, raw in members.items()}
    if "input" not in members:  # nothing else that is taken could say what is to be answered
        raise _refused(_WANTED, "/input")
    if sum(chars.values()) > CHARS:
        raise _refused(f"the contract takes {CHARS} characters", token(max(chars, key=chars.__getitem__)))


# Each of these judges one value, and gives the characters of text in it that count.


def _unknown(_: Raw) -> int:
    raise _refused(f"the contract takes {', '.join(_FIELDS)} only")


def _model(raw: Raw) -> int:
    _text(_as(_ANY, raw))
    return 0


def _instructions(raw: Raw) -> int:
    said = _as(_ANY, raw)
    return 0 if said is None else _text(said)


def _text(value: Any, wanted: str = "the contract takes a text here") -> int:
    if not isinstance(value, str):
        raise _refused(wanted)
    return len(value)


def _flag(raw: Raw) -> int:
    value = _as(_ANY, raw)
    if not (value is None or isinstance(value, bool)):
        raise _refused("the contract takes true or false here")
    return 0


def _tokens(raw: Raw) -> int:
    value = _as(_ANY, raw)
    if value is not None and not (type(value) is int and 1 <= value <= TOKENS):
        raise _refused(f"the contract takes a whole number from 1 to {TOKENS}")
    return 0


def _temperature(raw: Raw) -> int:
    value = _as(_ANY, raw)
    if value is not None and not (type(value) in (int, float) and 0 <= value <= TEMPERATURE):
        raise _refused("the contract takes a number from 0 to 2")
    return 0


def _input(raw: Raw) -> int:
    if not bytes(raw).startswith(b"["):
        return _text(_as(_ANY, raw), _WANTED)
    items = _as(_ITEMS, raw)
    if len(items) > ITEMS:
        raise _refused(f"the contract takes {ITEMS} messages", token(ITEMS))
    return sum(_within(index, _message, item) for index, item in enumerate(items))


def _message(raw: Raw) -> int:
    """A message, no object of which has a name twice: natively the upstream could read the value that was not judged."""
    known = _object(_as(_ANY, raw), ("type", "role", "content"), "message", ("message",))
    _within("role", _role, known.get("role"))
    content = known.get("content")
    chars = _within("content", _content, content)
    if names(raw) != len(known) + (sum(map(len, content)) if isinstance(content, list) else 0):
        raise _refused("a name stands twice in this message")
    return chars


def _role(value: Any) -> int:
    _one_of(value, ROLES)
    return 0


def _content(value: Any) -> int:
    return sum(_within(index, _part, part) for index, part in enumerate(value)) if isinstance(value, list) else _text(value)


def _part(value: Any) -> int:
    return _within("text", _text, _object(value, ("type", "text"), None, PARTS).get("text"))


def _object(value: Any, taken: tuple[str, ...], untyped: str | None, types: tuple[str, ...]) -> dict[str, Any]:
    """An object of one of the types (`untyped` where it says none), without other members. Its type says more than what else is wrong with it."""
    if not isinstance(value, dict):
        raise _refused("the contract takes an object here")
    _one_of(value.get("type", untyped), types, "/type")
    for name in value:
        if name not in taken:
            raise _refused(f"the contract takes {', '.join(taken)} only", token(name))
    return value


def _one_of(value: Any, words: tuple[str, ...], pointer: str = "") -> None:
    if value not in words:
        raise _refused(f"the contract takes {', '.join(words)} only", pointer)


_ANY: Final = msgspec.json.Decoder()
_ITEMS: Final = msgspec.json.Decoder(list[Raw])

_FIELDS: Final[dict[str, Callable[[Raw], int]]] = {
    "model": _model,
    "input": _input,
    "instructions": _instructions,
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
