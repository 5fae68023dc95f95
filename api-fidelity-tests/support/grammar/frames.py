"""What a stream is made of: server-sent events, or a JSON array's elements, and the rules that every surface shares."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"
NOTHING = type(None)


class Violation(AssertionError):
    """A stream that its surface does not allow; the text names the rule."""


def must(holds: object, rule: str) -> None:
    if not holds:
        raise Violation(rule)


@dataclass(frozen=True)
class Frame:
    """One event: the name of its `event:` line, and its data, which is an object or Chat's `[DONE]`."""

    name: str | None
    event: Any

    @property
    def kind(self) -> str:
        return "" if self.event == DONE else self.event.get("type", "")

    @property
    def broken(self) -> bool:
        return self.event != DONE and bool(self.event.get("error"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    must(len({name for name, _ in pairs}) == len(pairs), "a member twice")
    return dict(pairs)


def _constant(word: str) -> Any:
    raise Violation(f"{word} is no JSON")


def load(text: str) -> Any:
    """JSON as its standard has it: no member twice, no NaN."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except ValueError:
        raise Violation("a frame that is no JSON") from None


def _frame(name: str | None, data: str) -> Frame:
    event = DONE if data == DONE else load(data)
    must(event == DONE or isinstance(event, dict), "a frame that is no object")
    return Frame(name, event)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Violation("half a character") from None


def _fields(block: str) -> list[tuple[str, str]]:
    lines = [line for line in block.split("\n") if line and not line.startswith(":")]
    return [(name, value.removeprefix(" ")) for name, _, value in (line.partition(":") for line in lines)]


def relayed(body: bytes, *, whole: bool = True) -> list[Frame]:
    """The events of an SSE body however it is written. Of one that is not `whole` the last block may be half."""
    *blocks, rest = _text(body).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    must(not whole or not rest.strip("\n"), "an unfinished block")
    found = []
    for fields in map(_fields, blocks):
        data = [value for name, value in fields if name == "data"]
        if data:
            found.append(_frame(next((value for name, value in fields if name == "event"), None), "\n".join(data)))
    return found


def written(body: bytes, *, whole: bool = True) -> list[Frame]:
    """The events of an SSE body as we write it: a comment, or an event line at most and one data line, closed by one blank line."""
    text = _text(body)
    must("\r" not in text and not text.startswith("\ufeff"), "other line ends than \\n, or a mark before the first")
    *blocks, rest = text.split("\n\n")
    must(not whole or not rest, "an unfinished block")
    return [_frame(*pair) for pair in map(_block, blocks) if pair is not None]


def _block(block: str) -> tuple[str | None, str] | None:
    lines = block.split("\n")
    if all(line.startswith(":") for line in lines):
        return None
    names = [line[7:] for line in lines if line.startswith("event: ")]
    data = [line[6:] for line in lines if line.startswith("data: ")]
    must(len(names) + len(data) == len(lines), "a line that is neither an event's name nor its data")
    must(len(data) == 1 and len(names) < 2 and lines[-1].startswith("data: "), "an event that is not a name and its data")
    return (names[0] if names else None), data[0]


def elements(body: bytes, *, whole: bool = True) -> list[Frame]:
    """The elements of a JSON array; none of one that was left."""
    found = load(_text(body)) if whole else []
    must(isinstance(found, list) and all(isinstance(one, dict) for one in found), "a frame that is no object")
    return [Frame(None, one) for one in found]


# What values look like ------------------------------------------------------------------------------------------------------------------------

Kinds = Mapping[str, Any]
"""Members and what they are: a type, several, or a set of words."""


def fits(value: object, kind: Any) -> bool:
    if isinstance(kind, set | frozenset):
        return isinstance(value, str) and value in kind
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is int)


def shape(value: Any, what: str, need: Kinds, may: Kinds | None = None) -> None:
    """An object that has what it needs, and beside it nothing that its surface does not know."""
    must(isinstance(value, dict), f"{what} that is no object")
    known = {**need, **(may or {})}
    for name in need:
        must(name in value, f"{what} without {name}")
    for name, one in value.items():
        must(name in known, f"{what} with {name}, which the API does not have")
        must(one is None or fits(one, known[name]), f"{what} whose {name} is another kind of value")


def named(value: Any, what: str, *names: str) -> None:
    """Strings that say something."""
    for name in names:
        must(isinstance(value.get(name), str) and value[name], f"{what} without its {name}")


def counts(usage: Any, *names: str) -> None:
    """Numbers of tokens."""
    must(isinstance(usage, dict), "usage that is no object")
    for name in names:
        must(fits(usage.get(name), int) and usage[name] >= 0, f"no {name} in the usage")


def is_object(text: str) -> bool:
    """Whether arguments can be read: as a JSON object, or as none at all."""
    try:
        return not text or isinstance(json.loads(text), dict)
    except ValueError:
        return False


class Grammar(ABC):
    """One stream, event after event: `take` each, then `end`. The terminal is said once, and last.

    Not `sound`: what an encoder makes of parts and an ending that are no answer together. It is not asked to know that.
    """

    def __init__(self, *, sound: bool = True) -> None:
        self.ended = False
        self._sound = sound

    def _whole(self, holds: object, rule: str) -> None:
        must(holds or not self._sound, rule)

    @abstractmethod
    def ends(self, frame: Frame) -> bool:
        """Whether an event is a terminal."""

    @abstractmethod
    def step(self, frame: Frame) -> None:
        """What the surface's rules say to one event."""

    def take(self, frame: Frame) -> None:
        ends = self.ends(frame)
        must(not (self.ended and ends), "two terminals")
        must(not self.ended, "something after the terminal")
        self.ended = ends
        self.step(frame)

    def end(self) -> None:
        must(self.ended, "no terminal")
