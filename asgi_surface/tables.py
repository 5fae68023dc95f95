"""A TOML document as msgspec structs, with everything that is wrong in its shape found at once.

msgspec's own conversion stops at the first error, so this walks the parsed document beside the struct types. A value that was refused becomes a
blank (an empty string, list or table), so that whoever reads the structs can go on, and knows that a blank has been reported. Knows nothing of
what the tables mean.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, inspect

from asgi_surface.errors import Problem

T = TypeVar("T", bound=Struct)

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MANY: Final = 20
_NUMBER: Final = re.compile(r"([0-9]+)")
_WHERE: Final = re.compile(r"^(.*) \(at (?:(line \d+, column \d+)|end of document)\)$", re.DOTALL)

_NOUNS: Final[dict[type[object], str]] = {
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
    float: "a decimal number",
    list: "a list",
    dict: "a table",
    inspect.StrType: "a string",
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.LiteralType: "a string",
    inspect.VarTupleType: "a list",
    inspect.DictType: "a table",
    inspect.StructType: "a table",
}


class Unbuilt(Struct, frozen=True):
    """A key whose issue has not come: every value but those in `but`, which say what happens anyway."""

    but: tuple[object, ...] = ()

    def refuses(self, value: object) -> bool:
        """Whether the value asks for what is not built."""
        return value not in self.but


class Rules(Struct, frozen=True):
    """What a document's keys need beyond their types, each by its shape (`routes[].models`, `providers.*.auth`).

    `misplaced` makes message and suggestion for a key that stands where it does not belong; `examples` show a key that is missing.
    """

    unbuilt: Mapping[str, Unbuilt]
    misplaced: Mapping[str, Callable[[object], tuple[str, str]]]
    examples: Mapping[str, str]


class Place(Struct, frozen=True):
    """Where a value stands: `path` as an operator finds it, `shape` the same without indices and free names."""

    path: str = ""
    shape: str = ""

    def key(self, name: str, *, free: bool = False) -> Place:
        """The place of a member; `free` when its name is the operator's own."""
        return Place(dotted(self.path, name), f"{self.shape}.{'*' if free else name}".removeprefix("."))

    def item(self, index: int) -> Place:
        """The place of a list's element."""
        return Place(f"{self.path}[{index}]", f"{self.shape}[]")


def dotted(path: str, name: str) -> str:
    """A key below `path`, quoted where TOML asks for it."""
    shown = name if _BARE.fullmatch(name) else msgspec.json.encode(name).decode()
    return f"{path}.{shown}" if path and not path.endswith(" ") else path + shown


def nearest(word: str, names: Collection[str]) -> str:
    """What would be right instead of `word`: the name that looks like it, else all of them; "" when there are none or too many to read."""
    if found := difflib.get_close_matches(word, names, n=1):
        return f'did you mean "{found[0]}"?'
    return "it is one of " + ", ".join(sorted(names)) if 0 < len(names) < _MANY else ""


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, by path, `routes[2]` before `routes[10]`."""
    return tuple(sorted(set(problems), key=lambda problem: ([_numbered(part) for part in _NUMBER.split(problem.path)], problem.message)))


def _numbered(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() else (0, part)


def parse(text: str, root: type[T], rules: Rules, *, prefix: str = "") -> tuple[T | None, list[Problem]]:
    """The document as `root` with blanks for what was refused, and all problems. None when it is no TOML. `prefix` opens every path."""
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        return None, [Problem(prefix + "the file", "not TOML: nested too deeply")]
    except ValueError as error:
        return None, [_syntax(error, prefix)]
    reader = _Reader(rules)
    # A document is a table, and a table is never refused as a whole.
    document: Any = reader.struct(inspect.type_info(root), tree, Place(prefix))
    return document, reader.problems


def _syntax(error: ValueError, prefix: str) -> Problem:
    found = _WHERE.match(str(error))
    place = (found[2] or "end of file") if found else "the file"
    return Problem(prefix + place, f"not TOML: {found[1] if found else error}")


def _blank(node: inspect.Type) -> object:
    """What stands for a refused value; UNSET where the field's default has to do."""
    match node:
        case inspect.StrType():
            return ""
        case inspect.VarTupleType():
            return ()
        case inspect.DictType():
            return {}
        case inspect.StructType():
            return node.cls(**{field.encode_name: _blank(field.type) for field in node.fields if field.required})
        case _:
            return UNSET


class _Reader:
    """One walk over a document. Each method gives the value as its node's type, or a blank after reporting why not."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.problems: list[Problem] = []

    def report(self, place: Place, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(place.path, message, suggestion))

    def value(self, node: Any, value: Any, place: Place) -> object:
        return _READERS[type(node)](self, node, value, place)

    def unbuilt(self, row: Unbuilt, value: object, place: Place) -> bool:
        if refused := row.refuses(value):
            self.report(place, f"{_shown(value)}not built yet", "leave it out")
        return refused

    def mistyped(self, node: inspect.Type, value: object, place: Place) -> object:
        self.report(place, f"{_NOUNS[type(node)]} is expected, not {_NOUNS.get(type(value), 'a date or time')}", self.example(place))
        return _blank(node)

    def example(self, place: Place) -> str:
        name = place.shape.rpartition(".")[2]
        return f"for example {self.rules.examples[name]}" if name in self.rules.examples else ""

    def struct(self, node: Any, value: Any, place: Place) -> object:
        if not isinstance(value, dict):
            return self.mistyped(node, value, place)
        kinds = {field.encode_name: field.type for field in node.fields}
        read = {name: self.value(kinds[name], item, place.key(name)) for name, item in value.items() if self.known(kinds, name, item, place)}
        for name in (field.encode_name for field in node.fields if field.required and field.encode_name not in value):
            self.report(place.key(name), "missing", self.example(place.key(name)))
            read[name] = _blank(kinds[name])
        return node.cls(**{name: item for name, item in read.items() if item is not UNSET})

    def known(self, kinds: Mapping[str, object], name: str, value: object, place: Place) -> bool:
        """Whether a key is a field; reports one that is not, unless it says only what happens anyway."""
        spot = place.key(name)
        if name in kinds:
            return True
        if spot.shape in self.rules.unbuilt:
            self.unbuilt(self.rules.unbuilt[spot.shape], value, spot)
        elif spot.shape in self.rules.misplaced:
            self.report(spot, *self.rules.misplaced[spot.shape](value))
        else:
            self.report(spot, "unknown key", nearest(name, {*kinds, *self.later(place)}))
        return False

    def later(self, place: Place) -> Iterator[str]:
        """The keys of a table whose issue has not come."""
        for shape in self.rules.unbuilt:
            table, _, name = shape.rpartition(".")
            if table == place.shape:
                yield name

    def table(self, node: Any, value: Any, place: Place) -> object:
        if not isinstance(value, dict):
            return self.mistyped(node, value, place)
        return {name: self.value(node.value_type, item, place.key(name, free=True)) for name, item in value.items()}

    def items(self, node: Any, value: Any, place: Place) -> object:
        if not isinstance(value, list):
            return self.mistyped(node, value, place)
        if len(value) < (node.min_length or 0):
            self.report(place, "the list is empty", self.example(place))
        return tuple(self.value(node.item_type, item, place.item(index)) for index, item in enumerate(value))

    def union(self, node: Any, value: Any, place: Place) -> object:
        """`X | None`, or a string or a table: what the value looks like decides."""
        tables = [kind for kind in node.types if isinstance(kind, inspect.StructType)]
        return self.value(tables[0] if tables and isinstance(value, dict) else node.types[0], value, place)

    def string(self, node: Any, value: Any, place: Place) -> object:
        if not isinstance(value, str):
            return self.mistyped(node, value, place)
        if not value.strip():
            self.report(place, "the string is empty", self.example(place))
            return ""
        return value

    def literal(self, node: Any, value: Any, place: Place) -> object:
        if not isinstance(value, str):
            return self.mistyped(node, value, place)
        if value not in node.values:
            self.report(place, f'"{value}" is unknown', nearest(value, node.values))
            return UNSET
        return value

    def boolean(self, node: Any, value: Any, place: Place) -> object:
        return value if isinstance(value, bool) else self.mistyped(node, value, place)

    def whole(self, node: Any, value: Any, place: Place) -> object:
        return value if type(value) is int else self.mistyped(node, value, place)

    def number(self, node: Any, value: Any, place: Place) -> object:
        return float(value) if type(value) in (int, float) else self.mistyped(node, value, place)

    def json(self, node: Any, value: Any, place: Place) -> object:
        """A value that will be sent as JSON, which has no dates and no infinities."""
        if isinstance(value, dict):
            return {name: self.json(node, item, place.key(name, free=True)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.json(node, item, place.item(index)) for index, item in enumerate(value)]
        if type(value) not in _NOUNS or (isinstance(value, float) and not math.isfinite(value)):
            self.report(place, "JSON has no such value", "write it as a string")
        return value


def _shown(value: object) -> str:
    return f'"{value}" is ' if isinstance(value, str) else ""


_READERS: Final[dict[type[inspect.Type], Callable[[_Reader, Any, Any, Place], object]]] = {
    inspect.StructType: _Reader.struct,
    inspect.DictType: _Reader.table,
    inspect.VarTupleType: _Reader.items,
    inspect.UnionType: _Reader.union,
    inspect.StrType: _Reader.string,
    inspect.LiteralType: _Reader.literal,
    inspect.BoolType: _Reader.boolean,
    inspect.IntType: _Reader.whole,
    inspect.FloatType: _Reader.number,
    inspect.AnyType: _Reader.json,
}
