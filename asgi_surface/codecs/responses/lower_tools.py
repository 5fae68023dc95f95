"""Lowers tools, and the choice among them, to a Responses request; and the names that they have there.

A name outside OpenAI's charset or length gets another that is made from it alone, so that it is the same in tools, history and choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from asgi_surface import ir
from asgi_surface.codecs.base import Alias, Target
from asgi_surface.codecs.spelling import OPENAI, Names
from asgi_surface.codecs.wrapping import wrapper
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import Feature


def as_custom(node: ir.Tool | ir.Call | ir.Result, target: Target) -> bool:
    """Whether a node is said in the words of custom tools.

    One of a custom tool is not where the upstream has only functions: it is wrapped in one, or refused with its pointer where the dialect says so.
    """
    if node.form is ir.Form.FUNCTION:
        return False
    if Feature.CUSTOM_TOOLS in target.features:
        return True
    if target.dialect.custom_tools == "refuse":
        raise RequestError(Code.UNREPRESENTABLE, "the upstream takes no custom tools", pointer=node.at)
    return False


def is_wrapped(node: ir.Tool | ir.Call, target: Target) -> bool:
    """Whether a custom tool, or a call of one, is said as a function with one string, `input`."""
    return node.form is ir.Form.CUSTOM and not as_custom(node, target)


def emulations(request: ir.Request, target: Target) -> Iterator[tuple[ir.Tool | ir.Call, str]]:
    """The tools, and calls of tools that are no longer offered, that are said another way, and how: wrapped, or by another name."""
    for node in Names(request, OPENAI).nodes.values():
        if is_wrapped(node, target):
            yield node, "tool:custom"
        elif OPENAI.fitting(node.name) != node.name:
            yield node, "tool:name"


def aliases(request: ir.Request, target: Target) -> Mapping[str, Alias]:
    """What the client calls the tools that have another name or form upstream."""
    return {OPENAI.fitting(node.name): Alias(node.name, node.form, node.namespace) for node, _ in emulations(request, target)}


def tools(given: tuple[ir.Tool, ...], target: Target) -> Iterator[dict[str, Any]]:
    """The tools; those of one namespace together in it."""
    for (namespace, about), group in itertools.groupby(given, key=lambda tool: (tool.namespace, tool.namespace_description)):
        said = [_tool(tool, target) for tool in group]
        if namespace is None:
            yield from said
        else:
            yield {"type": "namespace", "name": namespace, "description": about or "", "tools": said}


def _tool(tool: ir.Tool, target: Target) -> dict[str, Any]:
    about = {"description": tool.description} if tool.description is not None else {}
    named = {"name": OPENAI.fitting(tool.name), **about}
    if as_custom(tool, target):
        return {"type": "custom", **named, **({"format": tool.grammar} if tool.grammar is not None else {})}
    if tool.form is ir.Form.CUSTOM:
        return {"type": "function", **named, "parameters": wrapper(tool.grammar), "strict": False}
    # Functions are strict unless they say otherwise, so it is always said.
    return {"type": "function", **named, "parameters": tool.schema, "strict": tool.strict}


def choice(wish: ir.Choice, given: tuple[ir.Tool, ...], target: Target) -> object:
    """The tool choice: a word, one tool, or a mode among some."""
    if wish.names is None or wish.pick is ir.Pick.NONE:
        return wish.pick
    custom = {tool.name for tool in given if as_custom(tool, target)}
    named = [{"type": "custom" if name in custom else "function", "name": OPENAI.fitting(name)} for name in wish.names]
    if wish.pick is ir.Pick.REQUIRED and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "mode": wish.pick, "tools": named}
