"""The request policies of a route file: the shipped ones, and those that tables make from them.

Knows the tables and the codecs' lists of fields; how a policy judges a body is `policy`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from asgi_surface import contradictions as against
from asgi_surface.config import PolicyTable
from asgi_surface.errors import Problem
from asgi_surface.policy import Fields, Policy, UnknownField, extended, shipped
from asgi_surface.surfaces import ZED, Surface
from asgi_surface.tables import dotted, nearest

T = TypeVar("T")


class Policies:
    """All policies of one file. Whatever is wrong with one is added to `problems`, and it is None then."""

    def __init__(self, tables: Mapping[str, PolicyTable], codecs: Mapping[Surface, Fields], problems: list[Problem]) -> None:
        self._tables = tables
        self._codecs = codecs
        self._problems = problems
        self._shipped = {codec.policy.name: shipped(surface, codec.policy) for surface, codec in codecs.items()}
        self._made: dict[str, Policy | None] = {**self._shipped}
        for name in tables:
            if name in self._shipped:
                self._report(dotted("policies", name), "the name of a shipped policy", f'write [policies.my-{name}] with extends = "{name}"')
            self._get(name, ())

    def shipped(self, codec: Fields) -> Policy:
        """The policy that ships with a surface."""
        return self._shipped[codec.policy.name]

    def bound(self, path: str, name: str | None, codec: Fields, *within: Fields) -> Policy | None:
        """The policy that a binding names, by default its surface's shipped one. It may be that of a surface `within` a carrier. None when it is
        unknown or another surface's.
        """
        if not (policy := self._named(path, codec.policy.name if name is None else name, ())):
            return None
        if policy.surface in {one.surface for one in (codec, *within)}:
            return policy
        self._report(path, f'"{policy.name}" is a policy of {policy.surface}', f'for example "{codec.policy.name}"')
        return None

    def _report(self, path: str, message: str, suggestion: str) -> None:
        self._problems.append(Problem(path, message, suggestion))

    def _named(self, path: str, name: str, trail: tuple[str, ...]) -> Policy | None:
        """The policy that something at `path` refers to. `trail` are those that wait for it."""
        if name in trail:
            self._report(path, f"a policy cannot extend itself: {' -> '.join((*trail, name))}", "extend a shipped policy")
        elif name in self._made or name in self._tables:
            return self._get(name, trail)
        elif name:
            self._report(path, f'unknown policy "{name}"', nearest(name, {*self._made, *self._tables}))
        return None

    def _get(self, name: str, trail: tuple[str, ...]) -> Policy | None:
        if name not in self._made:
            self._made[name] = self._make(name, self._tables[name], (*trail, name))
        return self._made[name]

    def _make(self, name: str, table: PolicyTable, trail: tuple[str, ...]) -> Policy | None:
        path = dotted("policies", name)
        self._problems += against.of_headers(f"{path}.allowed_headers", table.allowed_headers or ())
        codec = self._codecs.get(Surface(table.surface))
        parent = None if table.extends is None else self._named(f"{path}.extends", table.extends, trail)
        self._problems += against.of_surface(f"{path}.surface", table.surface, self._codecs)
        if codec is None:
            return None
        if codec.surface == ZED and table.allowed_tool_types is not None:
            self._report(f"{path}.allowed_tool_types", "the policy judges the envelope, not the tools of the request within", "leave it out")
        if parent and parent.surface != codec.surface:
            self._report(f"{path}.extends", f'"{parent.name}" is a policy of {parent.surface}', f'for example "{codec.policy.name}"')
        if table.extends is None and table.allowed_fields is None:
            self._report(f"{path}.allowed_fields", "missing, and no policy is extended", f'or write extends = "{codec.policy.name}"')
        if parent is None and (table.extends is not None or table.allowed_fields is None):
            return None
        policy = _extended(parent, name, table, codec)
        self._problems += _contradictions(path, policy, codec)
        return policy


def _extended(parent: Policy | None, name: str, table: PolicyTable, codec: Fields) -> Policy:
    """The policy of a table, under the codec's own names of fields."""
    return extended(
        parent,
        name,
        codec.surface,
        allowed_fields=_canonical(table.allowed_fields, codec),
        unknown_field_action=None if table.unknown_field_action is None else UnknownField(table.unknown_field_action),
        force=_renamed(table.force, codec),
        defaults=_renamed(table.defaults, codec),
        allowed_headers=table.allowed_headers,
        allowed_tool_types=table.allowed_tool_types,
    )


_PLANNED: Final = {"model": "say upstream_model on the route", "stream": 'say dialect = { stream = "always" } or "never" on the binding'}


_ENVELOPED: Final = {"provider": "say zed_provider in the dialect of the binding", "provider_request": "its members are those of another surface"}


def _canonical(names: Sequence[str] | None, codec: Fields) -> list[str] | None:
    return None if names is None else [codec.names(name) for name in names if name]


def _renamed(values: Mapping[str, T] | None, codec: Fields) -> dict[str, T] | None:
    return None if values is None else {codec.names(name): value for name, value in values.items()}


def _contradictions(path: str, policy: Policy, codec: Fields) -> Iterator[Problem]:
    for name in sorted(codec.required - policy.allowed - policy.guarded.keys() - policy.force.keys()):
        end = "dropped" if policy.unknown is UnknownField.DROP else "rejected with the whole request"
        yield Problem(path, f'{codec.surface} requires "{name}", and here it is {end}', f'add "{name}" to allowed_fields')
    for name in sorted(policy.force.keys() & policy.defaults.keys()):
        yield Problem(f"{path}.defaults", f'"{name}" is never used, because force overwrites it', "leave one out")
    for key, values in (("force", policy.force), ("defaults", policy.defaults)):
        for name, instead in (_PLANNED | _ENVELOPED if codec.surface == ZED else _PLANNED).items():
            if name in values:
                yield Problem(f"{path}.{key}", f'"{name}" is written by the plan, after the policy', instead)
