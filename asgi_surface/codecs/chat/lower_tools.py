"""Says tools and the choice among them in Chat Completions' words, and knows how every tool is called there.

Names, namespaces and custom tools that the upstream could not say get aliases, which are undone in the answer. Knows no messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import spelling
from asgi_surface.codecs.base import Alias, Target
from asgi_surface.codecs.wrapping import wrapper
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Call, Choice, Form, Pick, Request, Tool
from asgi_surface.surfaces import Feature
from asgi_surface.verdicts import Mention

_NINE: Final = 9
_IDS: Final = {"any": re.compile(r".*", re.DOTALL), "nine": re.compile(rf"[a-zA-Z0-9]{{{_NINE}}}")}
_GRAMMAR: Final = msgspec.json.Decoder(dict[str, Any])


class Names:
    """What every tool of a request, or of its history, is called upstream, and in which form."""

    def __init__(self, request: Request, target: Target) -> None:
        self.native_custom = Feature.CUSTOM_TOOLS in target.features
        self.strict = target.dialect.strict_tools
        self._wraps = target.dialect.custom_tools == "wrap"
        self._fits = _IDS[target.dialect.call_ids]
        self._tools = request.tools
        self._names = spelling.Names(request, spelling.OPENAI)

    def of(self, tool: Tool | Call) -> str:
        """The name upstream. Raises `RequestError` for a custom tool where the binding refuses them."""
        if self._wrapped(tool) and not self._wraps:
            raise RequestError(Code.UNREPRESENTABLE, "this upstream takes no custom tools, and its binding does not wrap them", pointer=tool.at)
        return self._names.of(tool)

    def chosen(self, name: str) -> tuple[Form, str]:
        """The upstream's form and name of a tool that a choice names."""
        form, said = self._names.chosen(name)
        return form if self.native_custom else Form.FUNCTION, said

    def id(self, own: str) -> str:
        """The id of a call, and of its result. One that the upstream refuses is made anew, alike in every turn of a conversation."""
        return own if self._fits.fullmatch(own) else hashlib.sha256(own.encode()).hexdigest()[:_NINE]

    def aliases(self) -> Mapping[str, Alias]:
        """Those that the client calls otherwise."""
        return self._names.aliases(custom=self.native_custom)

    def emulated(self) -> Iterator[Mention]:
        """The tools that are said another way."""
        for node in self._names.nodes.values():
            if self._wrapped(node) or self.of(node) != node.name:
                yield Mention("tool:custom" if self._wrapped(node) else "tool:name", node.at)
        yield from (Mention("tool:strict", tool.at) for tool in self._tools if tool.strict and not self.strict)

    def _wrapped(self, tool: Tool | Call) -> bool:
        return tool.form is Form.CUSTOM and not self.native_custom


def tool(tool: Tool, names: Names) -> dict[str, Any]:
    """The definition of a tool."""
    about = {"name": names.of(tool)} | ({"description": tool.description} if tool.description is not None else {})
    if tool.form is Form.FUNCTION:
        schema = {} if tool.schema is None else {"parameters": tool.schema}
        return {"type": "function", "function": about | schema | ({"strict": True} if tool.strict and names.strict else {})}
    if names.native_custom:
        return {"type": "custom", "custom": about | ({} if tool.grammar is None else {"format": _nested(tool.grammar)})}
    return {"type": "function", "function": about | {"parameters": wrapper(tool.grammar)}}


def _nested(grammar: Raw) -> dict[str, Any]:
    """The flat format object with its grammar nested, as Chat has it."""
    flat = _GRAMMAR.decode(grammar)
    return {"type": "grammar", "grammar": {"syntax": flat["syntax"], "definition": flat["definition"]}}


def choice(choice: Choice, names: Names) -> object:
    """The tool choice: a word, one tool, or the allowed tools."""
    if choice.names is None or choice.pick is Pick.NONE:
        return choice.pick.value
    references = [{"type": form.value, form.value: {"name": said}} for form, said in map(names.chosen, choice.names)]
    if choice.pick is Pick.REQUIRED and len(references) == 1:
        return references[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.pick.value, "tools": references}}
