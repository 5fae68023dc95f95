"""The shapes of a Responses request, member by member. An unknown member is an error.

Data only: how they are read is not known here.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Raw, Struct

NULL: Final = Raw(b"null")
_Object = dict[str, Any]


class _Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """A shape. An item's `id` and `status` are the provider's marks on what it once returned; they say nothing to another."""


class Caller(_Wire, frozen=True):
    """Who called a tool: the model itself (`direct`), or a program it wrote."""

    type: str
    caller_id: str | None = None


class InputText(_Wire, frozen=True):
    """Text from anybody but the model."""

    text: str
    type: str
    prompt_cache_breakpoint: _Object | None = None


class PlainText(_Wire, frozen=True):
    """Text as conversations keep it, which clients send back."""

    text: str
    type: str


class OutputText(_Wire, frozen=True):
    """Text from the model."""

    text: str
    type: str
    annotations: list[_Object] | None = None
    logprobs: list[_Object] | None = None


class RefusalPart(_Wire, frozen=True):
    """The model's words for not answering."""

    refusal: str
    type: str


class InputImage(_Wire, frozen=True):
    """An image: a URL, a data URL, or a stored file."""

    type: str
    detail: str | None = None
    file_id: str | None = None
    image_url: str | None = None
    prompt_cache_breakpoint: _Object | None = None


class InputFile(_Wire, frozen=True):
    """A file: a data URL, a URL, or a stored file."""

    type: str
    detail: str | None = None
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None
    prompt_cache_breakpoint: _Object | None = None


class AudioData(_Wire, frozen=True):
    """Sound in base64."""

    data: str
    format: Literal["mp3", "wav"]


class InputAudio(_Wire, frozen=True):
    """Sound."""

    input_audio: AudioData
    type: str


class Message(_Wire, frozen=True):
    """A message item, in any of its three spellings."""

    role: str
    content: Raw
    type: str | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class FunctionCall(_Wire, frozen=True, rename={"async_": "async"}):
    """A call of a function."""

    arguments: str
    call_id: str
    name: str
    type: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None
    caller: Caller | None = None
    async_: bool | None = None


class CustomCall(_Wire, frozen=True, rename={"async_": "async"}):
    """A call of a custom tool. The SDK's type has no status, but what the API returns does."""

    call_id: str
    input: str
    name: str
    type: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None
    caller: Caller | None = None
    async_: bool | None = None


class Output(_Wire, frozen=True):
    """What a function or custom tool gave: text, or a list of parts."""

    call_id: str
    output: Raw
    type: str
    id: str | None = None
    status: str | None = None
    name: str | None = None
    namespace: str | None = None
    caller: Caller | None = None


class ReasoningText(_Wire, frozen=True):
    """One part of a summary or of the reasoning itself."""

    text: str
    type: Literal["summary_text", "reasoning_text"]


class ReasoningItem(_Wire, frozen=True):
    """What the model thought. `id` is the API's own, which some clients leave out."""

    type: str
    id: str | None = None
    status: str | None = None
    summary: list[ReasoningText] | None = None
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None


class FunctionTool(_Wire, frozen=True, rename={"async_": "async"}):
    """A function. Without `strict` it is strict where its schema allows; `parameters` null takes none."""

    name: str
    type: str
    parameters: Raw = NULL
    strict: bool | None = None
    description: str | None = None
    output_schema: _Object | None = None
    defer_loading: bool | None = None
    allowed_callers: list[str] | None = None
    async_: bool | None = None


class CustomTool(_Wire, frozen=True, rename={"async_": "async"}):
    """A tool that takes free text, or text of a grammar."""

    name: str
    type: str
    description: str | None = None
    format: Raw = NULL
    defer_loading: bool | None = None
    allowed_callers: list[str] | None = None
    async_: bool | None = None


class Grammar(_Wire, frozen=True):
    """What a custom tool's text must follow."""

    type: str
    syntax: str
    definition: str


class Namespace(_Wire, frozen=True):
    """Tools under a common name."""

    name: str
    type: str
    tools: list[Raw]
    description: str | None = None


class Named(_Wire, frozen=True):
    """A tool choice, or a tool in one, that names the client's tool."""

    type: str
    name: str


class Allowed(_Wire, frozen=True):
    """A tool choice among some of the tools."""

    type: str
    mode: Literal["auto", "required"]
    tools: list[Raw]


class ReasoningConfig(_Wire, frozen=True):
    """How much to reason, and what to show of it. `generate_summary` is the old name of `summary`."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    context: str | None = None
    mode: str | None = None


class TextConfig(_Wire, frozen=True):
    """How the answer's text is to be."""

    format: Raw = NULL
    verbosity: str | None = None


class JsonSchema(_Wire, frozen=True):
    """Structured output by a schema."""

    name: str
    schema: Raw
    type: str
    description: str | None = None
    strict: bool | None = None


class OnlyType(_Wire, frozen=True):
    """What consists of its type alone."""

    type: str


class StreamOptions(_Wire, frozen=True):
    """Options of a stream."""

    include_obfuscation: bool | None = None


class CacheOptions(_Wire, frozen=True):
    """Hints to the prompt cache, and `prewarm`, which only fills it."""

    comparison_response_id: str | None = None
    mode: str | None = None
    prewarm: bool | None = None
    ttl: str | None = None
