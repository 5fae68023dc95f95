"""Arguments of a call that come piece by piece, each with its JSON path, put together. Only Vertex sends them. Knows nothing of parts or streams."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import reading


class _Value(Struct, rename="camel"):
    json_path: str
    string_value: str | None = None
    number_value: Raw = Raw(b"null")
    bool_value: bool | None = None

    def value(self) -> str | Raw | bool:
        """What stands there; null is what nothing else is said of."""
        return next((said for said in (self.string_value, self.bool_value) if said is not None), self.number_value)


class Piece(Struct, rename="camel"):
    """A part's functionCall that is not whole: the first has the name, the last does not say that it will continue."""

    name: str = ""
    id: str = ""
    partial_args: list[_Value] = []
    will_continue: bool = False


_PIECE: Final = msgspec.json.Decoder(Piece)
_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_PATH: Final = re.compile(rf"\$(?:{_STEP.pattern})+")


def piece(raw: Raw) -> Piece:
    """A functionCall as a piece of one. Raises `ValueError` when it cannot be read."""
    return reading.decode(_PIECE, bytes(raw))


class Arguments:
    """The arguments of one call as far as they came."""

    def __init__(self) -> None:
        self._root: dict[str | int, Any] = {}

    def add(self, said: Piece) -> None:
        """Takes the values of a piece. Text at a path that has text already continues it. Raises `ValueError` for what is no path."""
        for value in said.partial_args:
            self._put(_steps(value.json_path), value.value())

    def text(self) -> str:
        """The JSON of the whole object."""
        return msgspec.json.encode(_plain(self._root)).decode()

    def _put(self, steps: list[str | int], value: object) -> None:
        node = self._root
        for step in steps[:-1]:
            node = node.setdefault(step, {})
            if type(node) is not dict:
                raise ValueError("a path into a value")
        if not isinstance(value, str):
            node[steps[-1]] = value
        elif isinstance(before := node.get(steps[-1]), list):
            before.append(value)
        else:
            node[steps[-1]] = [value]


def _steps(path: str) -> list[str | int]:
    if _PATH.fullmatch(path) is None:
        raise ValueError("no path of a value")
    return [int(found[2]) if found[2] else found[1] or found[3] or found[4] or "" for found in _STEP.finditer(path)]


def _plain(node: object) -> object:
    """Lists are held as objects whose names are numbers, and texts as their pieces, until all is there."""
    if not isinstance(node, dict):
        return "".join(node) if isinstance(node, list) else node
    plain = {step: _plain(value) for step, value in node.items()}
    return [plain[step] for step in sorted(plain)] if plain and all(isinstance(step, int) for step in plain) else plain
