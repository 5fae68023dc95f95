"""What an Anthropic Messages request asks of its upstream, read from as little of the body as possible.

Knows nothing of routes, policies or other surfaces, and changes no byte. Text is skipped, never decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs.base import Demand, Needs
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, read
from asgi_surface.surfaces import Feature

_Object = dict[str, Raw]
_Demands = Iterator[tuple[Feature, str]]
_NULL: Final = Raw(b"null")


class _Typed(Struct, frozen=True, gc=False):
    """A tool, or the thinking configuration."""

    type: str | None = None


class _Choice(Struct, frozen=True, gc=False):
    disable_parallel_tool_use: bool | None = None


class _Output(Struct, frozen=True):
    effort: str | None = None
    format: _Object | None = None


class _Change(Struct, frozen=True):
    """The `tool` of a tool_addition or tool_removal: a reference, or a definition like an entry of `tools`."""

    type: str
    definition: _Typed | None = None


class _Source(Struct, frozen=True):
    """The source of an image or a document. That of a document may hold blocks of its own."""

    file_id: str | None = None
    content: Raw = _NULL


class _Block(Struct, frozen=True):
    """A content block at any depth. Its content is text, blocks, or an object (some hosted tools' results); a search_result's source is a string."""

    type: str
    signature: str | None = None
    encrypted_content: str | None = None
    content: Raw = _NULL
    source: str | _Source | None = None
    tool: _Change | None = None


class _Message(Struct, frozen=True):
    role: str
    content: Raw = _NULL
    output_config: _Output | None = None


_TOOLS: Final = Decoder(list[_Typed] | None)
_SERVERS: Final = Decoder(list[Raw] | None)
_CONTAINER: Final = Decoder(str | _Object | None)
_CHOICE: Final = Decoder(_Choice | None)
_THINKING: Final = Decoder(_Typed | None)
_OUTPUT: Final = Decoder(_Output | None)
_FORMAT: Final = Decoder(_Object | None)
_MESSAGES: Final = Decoder(list[_Message])
_CONTENT: Final = Decoder(list[_Block])

BLOCKS: Final[dict[str, tuple[Feature, ...]]] = {
    "text": (),
    "fallback": (),  # marks where a substitute model took over; the server does not show it to the model
    "thinking": (),  # this and the four below ask for what is in them
    "redacted_thinking": (),
    "compaction": (),
    "tool_addition": (),
    "tool_removal": (),
    "image": (Feature.IMAGES,),
    "document": (Feature.FILES,),
    "search_result": (Feature.FILES,),
    "tool_use": (Feature.TOOLS,),
    "tool_result": (Feature.TOOLS,),
    "tool_reference": (Feature.TOOLS,),
    "container_upload": (Feature.HOSTED_TOOLS, Feature.FILES),
    "browser_state": (Feature.HOSTED_TOOLS,),
    "mcp_tool_listing": (Feature.HOSTED_TOOLS,),
}
"""What each type of block needs by being there. The calls and results of hosted tools are told by `HOSTED_ENDS`; other types need nothing."""

HOSTED_ENDS: Final = ("_tool_use", "_tool_result")
"""How the block types of hosted tools end: server_tool_use, mcp_tool_use, web_search_tool_result, advisor_tool_result …"""

_NOTHING: Final[tuple[Feature, ...]] = ()
_HOSTED: Final = (Feature.HOSTED_TOOLS,)


def precheck(members: Members) -> None:
    """Refuse a `thread`, a conversation kept by the server: on these details the official SDK resends the whole history without it."""
    if members.get("thread", _NULL) != _NULL:
        details: dict[str, object] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        raise RequestError(Code.UNSUPPORTED_REQUEST, "conversations kept by the server are not supported", pointer="/thread", details=details)


def tool_types(raw: Raw) -> list[tuple[str, str]]:
    """The place of each tool below `/tools`, and its type; a client's own tool is `custom` even where it does not say so."""
    tools = read({"tools": raw}, "tools", _TOOLS) or []
    return [(f"/{index}", tool.type or "custom") for index, tool in enumerate(tools)]


def needs(members: Members, stream: bool) -> Needs:
    """The features that a request needs, and how long its history is. Raises `RequestError` at a shape that Messages does not know."""
    messages = read(members, "messages", _MESSAGES) or []
    demands = chain(
        [(Feature.STREAMING, "/stream")] if stream else [],
        _tools(members),
        _hosts(members),
        _configuration(members),
        chain.from_iterable(_message(message, f"/messages/{index}") for index, message in enumerate(messages)),
    )
    first: dict[Feature, str] = {}
    for feature, pointer in demands:
        first.setdefault(feature, pointer)
    return Needs(tuple(Demand(feature, pointer) for feature, pointer in first.items()), len(messages), "/messages")


def _tools(members: Members) -> _Demands:
    for place, kind in tool_types(members.get("tools", _NULL)):
        yield (Feature.TOOLS, "/tools") if kind == "custom" else (Feature.HOSTED_TOOLS, f"/tools{place}")
    choice = read(members, "tool_choice", _CHOICE)
    if choice and choice.disable_parallel_tool_use is False:
        yield Feature.PARALLEL_TOOLS, "/tool_choice/disable_parallel_tool_use"


def _hosts(members: Members) -> _Demands:
    """What the server would have to run or reach besides the model."""
    if read(members, "mcp_servers", _SERVERS):
        yield Feature.HOSTED_TOOLS, "/mcp_servers"
    if read(members, "container", _CONTAINER) is not None:
        yield Feature.HOSTED_TOOLS, "/container"


def _configuration(members: Members) -> _Demands:
    thinking = read(members, "thinking", _THINKING)
    if thinking and thinking.type != "disabled":
        yield Feature.REASONING, "/thinking"
    yield from _output(read(members, "output_config", _OUTPUT), "/output_config")
    if read(members, "output_format", _FORMAT) is not None:
        yield Feature.STRUCTURED_OUTPUT, "/output_format"


def _output(config: _Output | None, at: str) -> _Demands:
    if config and config.effort is not None:
        yield Feature.REASONING, f"{at}/effort"
    if config and config.format is not None:
        yield Feature.STRUCTURED_OUTPUT, f"{at}/format"


def _message(message: _Message, at: str) -> _Demands:
    if message.role == "system":
        yield Feature.MID_CONVERSATION_SYSTEM, at
        yield from _output(message.output_config, f"{at}/output_config")
    blocks = _blocks(message.content, f"{at}/content")
    calls = [place for place, block in blocks if block.type == "tool_use"]
    if len(calls) > 1:
        yield Feature.PARALLEL_TOOLS, calls[1]
    for place, block in blocks:
        yield from _block(block, place)


def _blocks(content: Raw, at: str) -> list[tuple[str, _Block]]:
    """The blocks of a content but for those of text, each with its pointer; none where it is a string, an object or null."""
    if bytes(memoryview(content)[:1]) != b"[":
        return []
    try:
        blocks = read({"": content}, "", _CONTENT) or []
    except RequestError as error:
        raise RequestError(error.code, error.message, pointer=at + (error.pointer or "")[1:]) from None
    return [(f"{at}/{index}", block) for index, block in enumerate(blocks) if block.type != "text"]


def _block(block: _Block, at: str, inner: int = 2) -> _Demands:
    """The demands of a block and of `inner` levels in it: the wire nests no deeper than an image in a document in a tool result."""
    features = BLOCKS.get(block.type)
    if features is None:
        features = _HOSTED if block.type.endswith(HOSTED_ENDS) else _NOTHING
    for feature in features:
        yield feature, at
    yield from _opaque(block, at)
    if isinstance(block.source, _Source) and block.source.file_id is not None:
        yield Feature.FILES, f"{at}/source/file_id"  # names what the provider stores, so more than `images`
    if block.tool is not None:
        yield _changed(block.tool), f"{at}/tool"
    for place, child in _inside(block, at) if inner else ():
        yield from _block(child, place, inner - 1)


def _inside(block: _Block, at: str) -> list[tuple[str, _Block]]:
    if isinstance(block.source, _Source):
        return _blocks(block.source.content, f"{at}/source/content")
    return _blocks(block.content, f"{at}/content")


def _opaque(block: _Block, at: str) -> _Demands:
    """State that only the issuer can read, or the plain thinking that has none."""
    if block.type == "redacted_thinking":
        yield Feature.ENCRYPTED_REASONING, f"{at}/data"
    elif block.signature:
        yield Feature.ENCRYPTED_REASONING, f"{at}/signature"
    elif block.type == "thinking":
        yield Feature.REASONING, at
    elif block.type == "compaction" and block.encrypted_content:
        yield Feature.ENCRYPTED_REASONING, f"{at}/encrypted_content"


def _changed(tool: _Change) -> Feature:
    """Tools of an MCP server are named by references of their own (mcp_tool_reference, mcp_toolset_reference)."""
    if tool.definition is not None:
        return Feature.TOOLS if (tool.definition.type or "custom") == "custom" else Feature.HOSTED_TOOLS
    return Feature.HOSTED_TOOLS if tool.type.startswith("mcp_") else Feature.TOOLS
