"""Which route answers to a model name: the index that the catalog keeps, and the claims that fill it.

Names and globs are the operator's; `*` stands for any run of characters. Knows nothing of what a route is.
"""

from __future__ import annotations

import functools
import re

from asgi_surface.codecs.base import ModelEntry
from asgi_surface.errors import Problem
from asgi_surface.plans import RouteCandidate


def is_glob(name: str) -> bool:
    """Whether a model name is a pattern."""
    return "*" in name


def fits(glob: str, model: str) -> bool:
    """Whether a model's name is one that the pattern means. Patterns come from the file only, so they are few."""
    return _pattern(glob).fullmatch(model) is not None


@functools.cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)


class Names:
    """Claims to names while a file is read. Each claim that comes too late is a problem."""

    def __init__(self, problems: list[Problem]) -> None:
        self.exact: dict[str, tuple[RouteCandidate, ...]] = {}
        self.listed: list[ModelEntry] = []
        self._globs: list[tuple[str, RouteCandidate]] = []
        self._owners: dict[str, str] = {}
        self._problems = problems

    def claim(self, path: str, name: str, candidates: tuple[RouteCandidate, ...], entry: ModelEntry | None = None) -> None:
        """Gives `name` to the candidates, and to the model lists when there is an entry for it. A blank is nobody's."""
        if is_glob(name):
            self._problems.append(Problem(path, "a name, not a pattern, stands here", "write the pattern in a route's models"))
        elif self._owns(path, name):
            self.exact[name] = candidates
            self.listed += [entry] if entry else []

    def claim_glob(self, path: str, glob: str, candidate: RouteCandidate) -> None:
        """Gives every name that fits `glob`, and is nobody's, to one route. Globs are not listed."""
        if self._owns(path, glob):
            self._globs.append((glob, candidate))

    def _owns(self, path: str, name: str) -> bool:
        """Whether the claim is the first to a name."""
        owner = self._owners.setdefault(name, path) if name else path
        if owner != path:
            self._problems.append(Problem(path, f'"{name}" is taken by {owner}', "a name or glob belongs to one route or model"))
        return bool(name) and owner == path

    @property
    def globs(self) -> tuple[tuple[str, RouteCandidate], ...]:
        """The patterns in the order in which they are tried: the longest literal prefix first, then the longest, then the file's order."""
        return tuple(sorted(self._globs, key=lambda row: (-row[0].index("*"), -len(row[0]))))

    def knows(self, name: str) -> bool:
        """Whether a request for this name has a route."""
        return name in self.exact or any(fits(glob, name) for glob, _ in self._globs)
