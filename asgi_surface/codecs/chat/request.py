"""What a Chat Completions request asks of its upstream, read from as little of the body as possible.

Knows nothing of routes, policies or other surfaces, and changes no byte. Text, which is most of a body, is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs.base import Demand, Needs
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members, pointer_of, read
from asgi_surface.surfaces import Feature

_Demands = Iterator[tuple[Feature, str]]
_Object = dict[str, Raw]
_NULL: Final = Raw(b"null")


class _Typed(Struct, frozen=True, gc=False):
    """A content part, a response format, a tool choice; or a call, which engines take for that of a function where it says no type."""

    type: str | None = None


class _Tool(Struct, frozen=True):
    """Engines take one that holds a function for a function, also where it says no type."""

    type: str | None = None
    function: _Object | None = None

    @property
    def kind(self) -> str:
        return self.type or ("" if self.function is None else "function")


class _Message(Struct, frozen=True):
    role: str
    content: Raw = _NULL
    tool_calls: list[_Typed] | None = None
    function_call: _Object | None = None
    audio: _Object | None = None


class _Reasoning(Struct, frozen=True, gc=False):
    """OpenRouter's object. `exclude` alone turns nothing on."""

    effort: str | None = None
    max_tokens: int | None = None
    enabled: bool | None = None


class _Template(Struct, frozen=True):
    """The switches that chat templates take: Qwen's and GLM's, DeepSeek's, and that of gpt-oss."""

    enable_thinking: Any = None
    thinking: Any = None
    reasoning_effort: Any = None


class _Switch(Struct, frozen=True):
    """A top-level member that asks for a feature where its value, when there is one, is `on`."""

    name: str
    feature: Feature
    shape: Any
    on: Callable[[Any], bool] = bool


def _given(_value: object) -> bool:
    return True


def _effort(value: str | None) -> bool:
    return value not in (None, "none")


def _thinking(value: _Typed | bool) -> bool:
    return value if isinstance(value, bool) else value.type != "disabled"


def _openrouter(value: _Reasoning) -> bool:
    return value.enabled is not False and (_effort(value.effort) or value.max_tokens is not None or value.enabled is True)


def _template(value: _Template) -> bool:
    return bool(value.enable_thinking or value.thinking or _effort(value.reasoning_effort))


# `store: true` is not here: it asks for a copy at the provider, not for anything in the answer, so the policy alone decides about it.
_SWITCHES: Final = [
    (switch, Decoder(switch.shape | None))
    for switch in (
        _Switch("functions", Feature.TOOLS, list[_Object]),
        _Switch("parallel_tool_calls", Feature.PARALLEL_TOOLS, bool),
        _Switch("web_search_options", Feature.HOSTED_TOOLS, _Object, _given),
        _Switch("reasoning_effort", Feature.REASONING, str, _effort),
        _Switch("reasoning", Feature.REASONING, _Reasoning, _openrouter),
        _Switch("thinking", Feature.REASONING, _Typed | bool, _thinking),
        _Switch("enable_thinking", Feature.REASONING, bool),
        _Switch("chat_template_kwargs", Feature.REASONING, _Template, _template),
        _Switch("audio", Feature.AUDIO, _Object, _given),
        _Switch("modalities", Feature.AUDIO, list[str], lambda value: "audio" in value),
        _Switch("response_format", Feature.STRUCTURED_OUTPUT, _Typed, lambda value: value.type != "text"),
        _Switch("structured_outputs", Feature.STRUCTURED_OUTPUT, _Object, _given),
        _Switch("json_schema", Feature.STRUCTURED_OUTPUT, _Object | str, _given),
        _Switch("grammar", Feature.STRUCTURED_OUTPUT, str),
        _Switch("regex", Feature.STRUCTURED_OUTPUT, str),
        _Switch("ebnf", Feature.STRUCTURED_OUTPUT, str),
        _Switch("logprobs", Feature.LOGPROBS, bool),
        _Switch("top_logprobs", Feature.LOGPROBS, int),
        _Switch("n", Feature.MULTIPLE_CHOICES, int, lambda value: value > 1),
    )
]
_TOOLS: Final = Decoder(list[_Tool] | None)
_CHOICE: Final = Decoder(str | _Typed | None)
_MESSAGES: Final = Decoder(list[_Message] | None)
_PARTS: Final = Decoder(list[_Typed])

_KINDS: Final = {"function": Feature.TOOLS, "custom": Feature.CUSTOM_TOOLS}
"""What each type of tool, call or tool choice needs; other types of tool are the provider's own."""

PARTS: Final[dict[str, Feature | None]] = {
    "text": None,
    "refusal": None,
    "image_url": Feature.IMAGES,
    "file": Feature.FILES,
    "input_audio": Feature.AUDIO,
    "audio_url": Feature.AUDIO,  # vLLM, vllm/entrypoints/chat_utils.py
}
"""What each type of content part needs; types newer than this table need nothing."""

_INSTRUCTIONS: Final = frozenset({"system", "developer"})


def tool_types(raw: Raw) -> list[tuple[str, str]]:
    """The place of each tool below `/tools`, and its type."""
    tools = read({"tools": raw}, "tools", _TOOLS)
    return [(f"/{index}", tool.kind) for index, tool in enumerate(tools or ())]


def needs(members: Members, stream: bool) -> Needs:
    """The features that a request needs, and how many messages it has. Raises `RequestError` at a shape that the surface does not know."""
    messages = read(members, "messages", _MESSAGES) or []
    demands = chain([(Feature.STREAMING, "/stream")] if stream else [], _tools(members), _switches(members), _history(messages))
    first: dict[Feature, str] = {}
    for feature, pointer in demands:
        first.setdefault(feature, pointer)
    return Needs(tuple(Demand(feature, pointer) for feature, pointer in first.items()), len(messages), "/messages")


def _tools(members: Members) -> _Demands:
    for place, kind in tool_types(members.get("tools", _NULL)):
        yield (Feature.TOOLS, "/tools") if kind == "function" else (_KINDS.get(kind, Feature.HOSTED_TOOLS), f"/tools{place}")
    choice = read(members, "tool_choice", _CHOICE)
    if isinstance(choice, _Typed) and choice.type in _KINDS:
        yield _KINDS[choice.type], "/tool_choice"


def _switches(members: Members) -> _Demands:
    for switch, decoder in _SWITCHES:
        value = read(members, switch.name, decoder)
        if value is not None and switch.on(value):
            yield switch.feature, f"/{switch.name}"


def _history(messages: list[_Message]) -> _Demands:
    begun = False
    for index, message in enumerate(messages):
        at = f"/messages/{index}"
        if message.role not in _INSTRUCTIONS:
            begun = True
        elif begun:
            yield Feature.MID_CONVERSATION_SYSTEM, at
        yield from _message(message, at)


def _message(message: _Message, at: str) -> _Demands:
    if message.function_call is not None:
        yield Feature.TOOLS, f"{at}/function_call"
    if message.audio is not None:
        yield Feature.AUDIO, f"{at}/audio"
    for call in message.tool_calls or ():
        yield _KINDS.get(call.type or "function", Feature.HOSTED_TOOLS), f"{at}/tool_calls"
    if len(message.tool_calls or ()) > 1:
        yield Feature.PARALLEL_TOOLS, f"{at}/tool_calls"
    for index, part in enumerate(_parts(message.content, f"{at}/content")):
        if (feature := PARTS.get(part.type or "")) is not None:
            yield feature, f"{at}/content/{index}"


def _parts(content: Raw, at: str) -> list[_Typed]:
    """The parts of a content; none where it is text or null."""
    if bytes(memoryview(content)[:1]) in (b'"', b"n"):
        return []
    try:
        return _PARTS.decode(content)
    except (msgspec.ValidationError, RecursionError) as error:
        place = pointer_of(msgspec.ValidationError(str(error)), at)
        raise RequestError(Code.MALFORMED_BODY, "the value has a shape that the surface does not know", pointer=place) from None
