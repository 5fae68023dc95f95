"""What a Responses request asks of its upstream, read from as little of the body as possible.

Knows nothing of routes, policies or other surfaces, and changes no byte. Text, which is most of a body, is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs.base import Demand, Needs
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, parse, pointer_of, read
from asgi_surface.surfaces import Feature

T = TypeVar("T")
_Demands = Iterator[tuple[Feature, str]]
_Object = dict[str, Raw]
_NULL: Final = Raw(b"null")


class _Typed(Struct, frozen=True, gc=False):
    """A text format or a tool choice."""

    type: str | None = None


class _Tool(Struct, frozen=True):
    """`tools` are those of a namespace."""

    type: str = ""
    tools: Raw = _NULL


class _Part(Struct, frozen=True, gc=False):
    type: str | None = None
    file_id: str | None = None


class _Reasoning(Struct, frozen=True, gc=False):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    mode: str | None = None


class _Text(Struct, frozen=True):
    format: _Typed | None = None


class _Item(Struct, frozen=True):
    """One entry of `input`. What stands in a Raw is read only for the types that have it."""

    type: str | None = None
    role: str | None = None
    content: Raw = _NULL
    output: Raw = _NULL
    tools: Raw = _NULL
    encrypted_content: str | None = None
    reasoning: Raw = _NULL
    text: Raw = _NULL

    @property
    def kind(self) -> str:
        """The type. Messages may leave it out, and so may item references, which have no role either."""
        return self.type or ("item_reference" if self.role is None else "message")


class _Switch(Struct, frozen=True):
    """A top-level member that asks for a feature where its value, when there is one, is `on`."""

    name: str
    feature: Feature
    shape: Any
    on: Callable[[Any], bool] = bool


def _given(_value: object) -> bool:
    return True


# An absent `parallel_tool_calls` means true to the API, but asks for nothing.
_SWITCHES: Final = [
    (switch, Decoder(switch.shape | None))
    for switch in (
        _Switch("parallel_tool_calls", Feature.PARALLEL_TOOLS, bool),
        _Switch("top_logprobs", Feature.LOGPROBS, int),
        _Switch("context_management", Feature.ENCRYPTED_REASONING, list[_Object]),  # the answer holds a compaction item
        _Switch("store", Feature.STORED_RESPONSES, bool),
        _Switch("previous_response_id", Feature.STORED_RESPONSES, str, _given),
        _Switch("conversation", Feature.STORED_RESPONSES, _Object | str, _given),
        _Switch("prompt", Feature.STORED_RESPONSES, _Object, _given),
        _Switch("background", Feature.BACKGROUND, bool),
    )
]
_REASONING: Final = Decoder(_Reasoning | None)
_TEXT: Final = Decoder(_Text | None)
_INCLUDE: Final = Decoder(list[str] | None)
_CHOICE: Final = Decoder(str | _Typed | None)
_TOOLS: Final = Decoder(list[_Tool] | None)
_ELEMENTS: Final = Decoder(list[Raw])
_ITEMS: Final = Decoder(list[_Item])
_PARTS: Final = Decoder(list[_Part])
_STRING: Final = Decoder(str)

TOOLS: Final[dict[str, Feature | None]] = {
    "function": Feature.TOOLS,
    "custom": Feature.CUSTOM_TOOLS,
    "namespace": None,  # asks for what is in it
    "allowed_tools": None,  # a tool choice, which narrows `tools`
}
"""What each type of tool, or of tool choice, needs. All others are the provider's own, also where the client runs them (shell, apply_patch …)."""

INCLUDE: Final[dict[str, Feature | None]] = {
    "reasoning.encrypted_content": Feature.ENCRYPTED_REASONING,
    "message.output_text.logprobs": Feature.LOGPROBS,
    "message.input_image.image_url": None,  # repeats what the client sent
    "file_search_call.results": Feature.HOSTED_TOOLS,
    "web_search_call.results": Feature.HOSTED_TOOLS,
    "web_search_call.action.sources": Feature.HOSTED_TOOLS,
    "computer_call_output.output.image_url": Feature.HOSTED_TOOLS,
    "code_interpreter_call.outputs": Feature.HOSTED_TOOLS,
}
"""What each value of `include` needs; values newer than this table need nothing."""

ITEMS: Final[dict[str, Feature | None]] = {
    "message": None,
    "additional_tools": None,  # this and the next ask for what is in them
    "configuration_update": None,
    "function_call": Feature.TOOLS,
    "function_call_output": Feature.TOOLS,
    "custom_tool_call": Feature.CUSTOM_TOOLS,
    "custom_tool_call_output": Feature.CUSTOM_TOOLS,
    "reasoning": Feature.REASONING,
    "compaction": Feature.ENCRYPTED_REASONING,
    "compaction_trigger": Feature.ENCRYPTED_REASONING,
    "item_reference": Feature.STORED_RESPONSES,
    **dict.fromkeys(
        (
            "apply_patch_call",
            "apply_patch_call_output",
            "code_interpreter_call",
            "computer_call",
            "computer_call_output",
            "file_search_call",
            "image_generation_call",
            "local_shell_call",
            "local_shell_call_output",
            "mcp_approval_request",
            "mcp_approval_response",
            "mcp_call",
            "mcp_list_tools",
            "program",
            "program_output",
            "shell_call",
            "shell_call_output",
            "tool_search_call",
            "tool_search_output",
            "web_search_call",
        ),
        Feature.HOSTED_TOOLS,
    ),
}
"""What each type of item needs by being there; types newer than this table need nothing."""

PARTS: Final[dict[str, Feature | None]] = {
    "input_text": None,
    "output_text": None,
    "text": None,
    "refusal": None,
    "input_image": Feature.IMAGES,
    "input_file": Feature.FILES,
    "input_audio": Feature.AUDIO,
}
"""What each type of content part needs; types newer than this table need nothing."""

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"})
"""Calls that the client answers, so that two in one turn were parallel."""

_INSTRUCTIONS: Final = frozenset({"system", "developer"})


_SETTINGS: Final = frozenset({"additional_tools", "configuration_update"})
"""Items that say how to go on, before or between the turns."""


def tool_types(raw: Raw) -> list[tuple[str, str]]:
    """The place of each tool below `/tools`, and its type. The types in a namespace stand at the namespace's place, so it goes with any of them."""
    return [("/" + place.split("/")[1], kind) for place, kind in _types(raw, "/tools")]


def needs(members: Members, stream: bool) -> Needs:
    """The features that a request needs, and how many items it has (a text is none). Raises `RequestError` at a shape the surface does not know."""
    items = _listed(members.get("input", _NULL), _ITEMS, "/input")
    demands = chain(
        [(Feature.STREAMING, "/stream")] if stream else [],
        _offered(members.get("tools", _NULL), "/tools"),
        _configuration(members),
        _late_instructions(items),
        _parallel_calls(items),
        chain.from_iterable(_item(item, f"/input/{index}") for index, item in enumerate(items)),
    )
    first: dict[Feature, str] = {}
    for feature, pointer in demands:
        first.setdefault(feature, pointer)
    return Needs(tuple(Demand(feature, pointer) for feature, pointer in first.items()), len(items), "/input")


def _types(raw: Raw, at: str) -> Iterator[tuple[str, str]]:
    """The place of each tool below `at`, and its type; those in a namespace follow it."""
    tools = _decoded(raw, _TOOLS, at)
    for index, tool in enumerate(tools or ()):
        yield f"/{index}", tool.type
        inside = _decoded(tool.tools, _ELEMENTS, f"{at}/{index}/tools") if tool.type == "namespace" else []
        for inner, element in enumerate(inside):
            place = f"/{index}/tools/{inner}"
            yield place, _inner_type(element, at + place)


def _inner_type(element: Raw, at: str) -> str:
    """The one type of a tool in a namespace: the policy sees only the outer tools whole."""
    try:
        return read(parse(bytes(element)), "type", _STRING) or ""
    except RequestError as error:
        raise RequestError(Code.MALFORMED_BODY, "a tool must be an object with one type", pointer=at + (error.pointer or "")) from None


def _offered(raw: Raw, at: str) -> _Demands:
    for place, kind in _types(raw, at):
        if (feature := TOOLS.get(kind, Feature.HOSTED_TOOLS)) is not None:
            yield feature, at if feature is Feature.TOOLS else at + place


def _configuration(members: Members) -> _Demands:
    choice = read(members, "tool_choice", _CHOICE)
    if isinstance(choice, _Typed) and (feature := TOOLS.get(choice.type or "", Feature.HOSTED_TOOLS)) is not None:
        yield feature, "/tool_choice"
    yield from _reasoning(members.get("reasoning", _NULL), "/reasoning")
    yield from _text(members.get("text", _NULL), "/text")
    included = read(members, "include", _INCLUDE)
    for index, name in enumerate(included or ()):
        if (feature := INCLUDE.get(name)) is not None:
            yield feature, f"/include/{index}"
    for switch, decoder in _SWITCHES:
        value = read(members, switch.name, decoder)
        if value is not None and switch.on(value):
            yield switch.feature, f"/{switch.name}"


def _reasoning(raw: Raw, at: str) -> _Demands:
    """A summary asks for reasoning too, unless the effort says none: then there is nothing to sum up."""
    value = _decoded(raw, _REASONING, at)
    if value is None or value.effort == "none":
        return
    if value.effort is not None:
        yield Feature.REASONING, f"{at}/effort"
    if value.summary is not None or value.generate_summary is not None:
        yield Feature.REASONING, f"{at}/{'generate_summary' if value.summary is None else 'summary'}"
    if value.mode not in {None, "standard"}:
        yield Feature.REASONING, f"{at}/mode"


def _text(raw: Raw, at: str) -> _Demands:
    value = _decoded(raw, _TEXT, at)
    if value is not None and value.format is not None and value.format.type != "text":
        yield Feature.STRUCTURED_OUTPUT, f"{at}/format"


def _late_instructions(items: list[_Item]) -> _Demands:
    begun = False
    for index, item in enumerate(items):
        if item.kind == "message" and item.role in _INSTRUCTIONS:
            if begun:
                yield Feature.MID_CONVERSATION_SYSTEM, f"/input/{index}"
        elif item.kind not in _SETTINGS:
            begun = True


def _parallel_calls(items: list[_Item]) -> _Demands:
    """A turn ends where an output, or anybody but the assistant, speaks."""
    calls = 0
    for index, item in enumerate(items):
        if item.kind in _CALLS:
            calls += 1
            if calls > 1:
                yield Feature.PARALLEL_TOOLS, f"/input/{index}"
        elif item.kind.endswith("_output") or item.role not in {None, "assistant"}:
            calls = 0


def _item(item: _Item, at: str) -> _Demands:
    if item.encrypted_content:
        yield Feature.ENCRYPTED_REASONING, f"{at}/encrypted_content"
    elif (feature := ITEMS.get(item.kind)) is not None:
        yield feature, at
    if (reader := _READERS.get(item.kind)) is not None:
        yield from reader(item, at)


def _content(raw: Raw, at: str) -> _Demands:
    for index, part in enumerate(_listed(raw, _PARTS, at)):
        if (feature := PARTS.get(part.type or "")) is not None:
            yield feature, f"{at}/{index}"
        if part.file_id is not None:  # an image may be one that the provider stores
            yield Feature.FILES, f"{at}/{index}/file_id"


def _update(item: _Item, at: str) -> _Demands:
    yield from _reasoning(item.reasoning, f"{at}/reasoning")
    yield from _text(item.text, f"{at}/text")


_READERS: Final[Mapping[str, Callable[[_Item, str], _Demands]]] = {
    "message": lambda item, at: _content(item.content, f"{at}/content"),
    "function_call_output": lambda item, at: _content(item.output, f"{at}/output"),
    "custom_tool_call_output": lambda item, at: _content(item.output, f"{at}/output"),
    "additional_tools": lambda item, at: _offered(item.tools, f"{at}/tools"),
    "tool_search_output": lambda item, at: _offered(item.tools, f"{at}/tools"),
    "configuration_update": _update,
}


def _listed(raw: Raw, decoder: Decoder[list[T]], at: str) -> list[T]:
    """What an input, a content or an output lists; nothing where it is a text or null."""
    return [] if bytes(memoryview(raw)[:1]) in {b'"', b"n"} else _decoded(raw, decoder, at)


def _decoded(raw: Raw, decoder: Decoder[T], at: str) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.ValidationError, RecursionError) as error:
        place = pointer_of(msgspec.ValidationError(str(error)), at)
        raise RequestError(Code.MALFORMED_BODY, "the value has a shape that the surface does not know", pointer=place) from None
