"""Tools and the tool choice as Messages has them: free-text tools as functions with one string, allowed tools by offering no others.

Knows nothing of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface import ir
from asgi_surface.codecs.base import Dialect
from asgi_surface.codecs.messages.lower_blocks import Block, refused
from asgi_surface.codecs.spelling import Names, bare
from asgi_surface.codecs.wrapping import wrapper

# No arguments. A strict schema has to close its objects.
_EMPTY: Final = {
    False: Raw(b'{"type":"object","properties":{}}'),
    True: Raw(b'{"type":"object","properties":{},"additionalProperties":false}'),
}
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_PICKS: Final = {ir.Pick.AUTO: "auto", ir.Pick.REQUIRED: "any", ir.Pick.NONE: "none"}


def offered(request: ir.Request) -> tuple[ir.Tool, ...]:
    """The tools to offer. Messages has no list of allowed tools, so the others are left out; a single forced tool it can name."""
    wanted = request.choice
    if wanted is None:
        return request.tools
    chosen = request.tools if wanted.names is None else _named(request.tools, wanted.names)
    if not chosen and wanted.pick is ir.Pick.REQUIRED:
        raise refused("the tool that must be called is not offered", wanted.at)
    return request.tools if forced(wanted) else chosen


def _named(tools: tuple[ir.Tool, ...], names: Iterable[str]) -> tuple[ir.Tool, ...]:
    meant = {id(bare(tools, name)) for name in names}
    return tuple(tool for tool in tools if id(tool) in meant)


def forced(wanted: ir.Choice) -> bool:
    """Whether the choice is one tool that must be called."""
    return wanted.pick is ir.Pick.REQUIRED and wanted.names is not None and len(wanted.names) == 1


def tools(chosen: Iterable[ir.Tool], names: Names, dialect: Dialect) -> list[Block]:
    """The entries of `tools`."""
    return [_tool(tool, names, dialect) for tool in chosen]


def choice(wanted: ir.Choice | None, parallel: bool | None, names: Names) -> Block:
    """The `tool_choice`, which also says whether calls may come in parallel; empty when the client says neither."""
    if wanted is None:
        said: Block = {} if parallel is None else {"type": "auto"}
    elif wanted.names is not None and forced(wanted):
        said = {"type": "tool", "name": names.chosen(wanted.names[0])[1]}
    else:
        said = {"type": _PICKS[wanted.pick]}
    if parallel is not None and said["type"] != "none":
        said["disable_parallel_tool_use"] = not parallel
    return said


def _tool(tool: ir.Tool, names: Names, dialect: Dialect) -> Block:
    block: Block = {"name": names.of(tool)}
    if tool.description is not None:
        block["description"] = tool.description
    block["input_schema"] = _schema(tool) if tool.form is ir.Form.FUNCTION else _wrapped(tool, dialect)
    return block | ({"strict": True} if tool.strict else {})


def is_typeless(tool: ir.Tool) -> bool:
    """Whether the schema of a tool's arguments does not say that they are an object."""
    if tool.schema is None or tool.form is not ir.Form.FUNCTION:
        return False
    return "type" not in _MEMBERS.decode(tool.schema)


def _schema(tool: ir.Tool) -> Raw:
    """The schema byte for byte. The API refuses one that does not say it is an object's, so that is added where nothing else is said."""
    if tool.schema is None:
        return _EMPTY[bool(tool.strict)]
    try:
        members = _MEMBERS.decode(tool.schema)
    except msgspec.DecodeError:
        raise refused("the schema of the tool's arguments is no JSON object", tool.at) from None
    kind = members.get("type")
    if kind is None:
        return Raw(msgspec.json.encode({"type": "object"} | members)) if members else _EMPTY[bool(tool.strict)]
    if bytes(kind) != b'"object"':
        raise refused("the arguments of a tool are an object on Messages", tool.at)
    return tool.schema


def _wrapped(tool: ir.Tool, dialect: Dialect) -> Block:
    """The schema of the function that stands for a custom tool."""
    if dialect.custom_tools == "refuse":
        raise refused("this upstream takes no tools with free text", tool.at)
    return wrapper(tool.grammar)
