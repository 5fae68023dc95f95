"""The clients' keys of a route file and of the file it names, judged. Only hashes stand in them; nothing here sees a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from asgi_surface.config import KeyTable, RouteFile, read_keys
from asgi_surface.errors import Problem
from asgi_surface.names import is_glob

_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}")
_NEW: Final = "`asgi-surface key new` prints one"


def judged(file: RouteFile, text: str | None, knows: Callable[[str], bool], problems: list[Problem], *, serving: bool) -> list[KeyTable]:
    """The keys that can be used; whatever is wrong goes to `problems`. `text` is that of `auth.keys_file`, `knows` tells whether a model exists."""
    found = [(f"keys[{index}]", table) for index, table in enumerate(file.keys)]
    name = file.auth.keys_file
    if name and text is not None:
        document, more = read_keys(text, name)
        problems += more
        found += [(f"{name}: keys[{index}]", table) for index, table in enumerate(document.keys if document else ())]
    problems += _of_mode(file, text, found=bool(found), serving=serving)
    owners: dict[str, str] = {}
    for path, table in found:
        problems += _of_key(path, table, knows)
        for part, value in ((f"{path}.name", table.name), (f"{path}.sha256", table.sha256.lower())):
            # A name and a hash never look alike, so one index does.
            if value and (owner := owners.setdefault(value, part)) != part:
                problems.append(Problem(part, f"the same as {owner}", "each key has a name and a hash of its own"))
    return [table for _, table in found if _DIGEST.fullmatch(table.sha256)]


def _of_mode(file: RouteFile, text: str | None, *, found: bool, serving: bool) -> Iterator[Problem]:
    name, mode = file.auth.keys_file, file.auth.mode
    if name and text is None:
        yield Problem("auth.keys_file", f'"{name}" cannot be read', "its path is relative to the route file; it holds [[keys]] tables")
    elif mode == "keys" and not found:
        yield Problem("auth.mode", 'mode "keys" needs at least one key', f'{_NEW}; or write mode = "loopback"', serving)
    if mode != "keys" and (found or name):
        yield Problem("auth.mode", f'keys are not asked for in mode "{mode}"', 'write mode = "keys", or leave the keys out', fatal=False)


def _of_key(path: str, table: KeyTable, knows: Callable[[str], bool]) -> Iterator[Problem]:
    if table.sha256 and not _DIGEST.fullmatch(table.sha256):
        yield Problem(f"{path}.sha256", "not a SHA-256 of 64 hexadecimal digits", "`asgi-surface key new` prints a key and its hash")
    for index, model in enumerate(table.models or ()):
        if model and not is_glob(model) and not knows(model):
            yield Problem(f"{path}.models[{index}]", f'no route serves "{model}"', "name a model that clients may ask for")
