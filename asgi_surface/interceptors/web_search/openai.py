"""What Chat Completions and Responses have in common: a list of typed tools, and a choice by word, by tool, or among allowed tools.

Knows neither conversation nor answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Raw

from asgi_surface.interceptors.web_search.words import Object, elements, fields, is_hosted, packed, replaced, searches
from asgi_surface.members import Members

_REQUIRED: Final = Raw(b'"required"')
_FORCED: Final = ("function", "custom")


def offered(members: Members, function: Object) -> Members:
    """The tools with the function in the place of the first hosted search, or behind them all."""
    tools: list[Raw] = []
    placed = False
    for raw in elements(members.get("tools")):
        if not searches(raw):
            tools.append(raw)
        elif not placed:
            tools.append(packed(function))
            placed = True
    return replaced(members, tools=packed(tools if placed else [*tools, function]))


class Choosing:
    """The choice of tools. `named` makes the choice of one function; `allowed` gives the object that lists allowed tools in a choice of that type."""

    def __init__(self, named: Callable[[str], Object], allowed: Callable[[Object], Object]) -> None:
        self._named = named
        self._allowed = allowed

    def retold(self, members: Members, name: str) -> Members:
        """The choice with the function, once, where it named hosted searches."""
        choice = fields(members.get("tool_choice"))
        if is_hosted(choice):
            return replaced(members, tool_choice=packed(self._named(name)))
        if choice.get("type") != "allowed_tools":
            return members
        within = self._allowed(choice)
        ours, tools = self._named(name), _objects(within)
        first = next((tool for tool in tools if is_hosted(tool)), None)
        within["tools"] = [ours if tool is first else tool for tool in tools if tool is first or not is_hosted(tool)]
        return replaced(members, tool_choice=packed(choice))

    def relaxed(self, members: Members, name: str, last: bool) -> Members:
        """No call is forced any more; the last time the function is gone, or, where it was the only tool, none may be called."""
        raw = members.get("tool_choice")
        choice = fields(raw)
        if choice.get("type") in _FORCED or raw == _REQUIRED:
            members = replaced(members, tool_choice=None)
        elif choice.get("type") == "allowed_tools":
            members = self._narrowed(members, choice, name, last=last)
        return self._without(members, name) if last else members

    def _narrowed(self, members: Members, choice: Object, name: str, *, last: bool) -> Members:
        within = self._allowed(choice)
        within["mode"] = "auto"
        within["tools"] = [tool for tool in _objects(within) if not (last and tool == self._named(name))]
        return replaced(members, tool_choice=packed(choice if within["tools"] else "none"))

    def _without(self, members: Members, name: str) -> Members:
        """Upstreams refuse calls in a history without tools, so the only tool stays, and may not be called."""
        tools = elements(members.get("tools"))
        others = [raw for raw in tools if self._choice_of(fields(raw)) != self._named(name)]
        return replaced(members, tools=packed(others)) if others else replaced(members, tool_choice=packed("none"))

    def _choice_of(self, tool: Object) -> Object:
        if tool.get("type") != "function":
            return {}
        return self._named(tool.get("name") or (tool.get("function") or {}).get("name") or "")


def _objects(within: Object) -> list[Object]:
    tools = within.get("tools")
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
