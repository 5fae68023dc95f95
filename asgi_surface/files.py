"""The route file and the key file on disk, and the environment they are judged in. The shell's part of configuration: it reads, `catalog` judges."""

from __future__ import annotations

import os
from pathlib import Path

from asgi_surface.catalog import Catalog, inspect
from asgi_surface.config import keys_file
from asgi_surface.errors import ConfigError, Problem

VARIABLE = "ASGI_SURFACE_ROUTES"
"""The environment variable that names the route file."""


def default_path() -> str:
    """The route file that the environment names, else `routes.toml` in the working directory."""
    return os.environ.get(VARIABLE) or "routes.toml"


def load_catalog(path: str | os.PathLike[str], *, serving: bool = False) -> Catalog:
    """The catalog of a route file. Raises `ConfigError` with every fatal problem, also when the file cannot be read."""
    catalog, problems = examine(path, serving=serving)
    if catalog is None:
        raise ConfigError(tuple(problem for problem in problems if problem.fatal))
    return catalog


def examine(path: str | os.PathLike[str], *, serving: bool = False) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """The catalog, None when a problem is fatal, and all problems. `serving` makes fatal what only a running gateway needs."""
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        return None, (_unreadable(file.name, error),)
    named = keys_file(text)
    return inspect(text, keys_text=_optional(file.parent / named) if named else None, environ=os.environ, serving=serving)


def _unreadable(name: str, error: OSError | UnicodeDecodeError) -> Problem:
    """Names the file without the machine's folders."""
    match error:
        case UnicodeDecodeError():
            return Problem(name, f"not UTF-8 (byte {error.start})", "save the file as UTF-8")
        case FileNotFoundError():
            return Problem(name, "there is no such file", f"copy the repository's routes.toml, or name another file in {VARIABLE}")
        case _:
            return Problem(name, f"cannot be read: {error.strerror}", f"name a readable file in {VARIABLE}")


def _optional(file: Path) -> str | None:
    """A key file's text; None when it cannot be read, which the catalog reports."""
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
