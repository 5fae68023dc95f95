"""The shapes of a Chat Completions request, strict: what a conversion must understand whole before it may say it in other words.

Null means absent everywhere. Knows no other surface; meaning is made in the lift modules.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from msgspec import Raw, Struct

from asgi_surface.errors import Code, RequestError

T = TypeVar("T")

ABSENT: Final = Raw(b"null")


def there(value: T | None, at: str) -> T:
    """The member that the type beside it promises."""
    if value is None:
        raise RequestError(Code.MALFORMED_BODY, "the member that its type names is missing", pointer=at)
    return value


class Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """A strict object."""


class Part(Wire, frozen=True, tag_field="type"):
    """A content part. Both names of a cache mark are in use: OpenAI's, and Anthropic's through gateways and Qwen's API."""

    prompt_cache_breakpoint: Any = None
    cache_control: Any = None


class TextPart(Part, frozen=True, tag="text", kw_only=True):
    """Words."""

    text: str


class RefusalPart(Wire, frozen=True, tag_field="type", tag="refusal"):
    """An earlier refusal."""

    refusal: str


class ImageURL(Wire, frozen=True):
    """`url` is a data URL too."""

    url: str
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImagePart(Part, frozen=True, tag="image_url", kw_only=True):
    """A picture."""

    image_url: ImageURL


class File(Wire, frozen=True):
    """`file_data` is a data URL or bare base64."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class FilePart(Part, frozen=True, tag="file", kw_only=True):
    """A document."""

    file: File


class InputAudio(Wire, frozen=True):
    """`data` is base64."""

    data: str
    format: Literal["wav", "mp3"]


class AudioPart(Part, frozen=True, tag="input_audio", kw_only=True):
    """Sound."""

    input_audio: InputAudio


class Function(Wire, frozen=True):
    """A call of a function. `arguments` is JSON text."""

    name: str
    arguments: str


class Custom(Wire, frozen=True):
    """A call of a custom tool."""

    name: str
    input: str


class Google(Wire, frozen=True):
    """Where Google's own Chat API puts a call's signature."""

    thought_signature: str | None = None


class Extra(Wire, frozen=True):
    """Other vendors' members of a call."""

    google: Google | None = None


class ToolCall(Wire, frozen=True):
    """A call in the history. `index` comes from clients that replay a stream's deltas; it says what the place says."""

    id: str
    type: Literal["function", "custom"] | None = None
    function: Function | None = None
    custom: Custom | None = None
    extra_content: Extra | None = None
    index: int | None = None


class Message(Wire, frozen=True, tag_field="role"):
    """A message; the role is its tag."""

    name: str | None = None


class System(Message, frozen=True, tag="system", kw_only=True):
    """An instruction."""

    content: str | list[TextPart]


class Developer(Message, frozen=True, tag="developer", kw_only=True):
    """An instruction."""

    content: str | list[TextPart]


class User(Message, frozen=True, tag="user", kw_only=True):
    """A user's turn."""

    content: str | list[TextPart | ImagePart | FilePart | AudioPart]


class Detail(Struct, frozen=True):
    """OpenRouter's piece of reasoning. Its proof is the provider's own, so only an envelope of the gateway's is looked into."""

    text: str | None = None
    summary: str | None = None
    signature: Any = None


class Audio(Wire, frozen=True):
    """An earlier spoken answer at the provider."""

    id: str


class Assistant(Message, frozen=True, tag="assistant", kw_only=True):
    """An earlier answer, with what servers beyond OpenAI add to it."""

    content: str | list[TextPart | RefusalPart] | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    audio: Audio | None = None
    annotations: list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Detail] | None = None


class Tool(Message, frozen=True, tag="tool", kw_only=True):
    """A result. Officially text; servers with vision take images too."""

    tool_call_id: str
    content: str | list[TextPart | ImagePart | FilePart] | None = None


class FunctionResult(Wire, frozen=True, tag_field="role", tag="function", kw_only=True):
    """A result in the form before tools."""

    name: str
    content: str | None


class FunctionTool(Wire, frozen=True):
    """A function's definition. `parameters` keeps its text."""

    name: str
    description: str | None = None
    parameters: Raw = ABSENT
    strict: bool | None = None


class CustomTool(Wire, frozen=True):
    """A custom tool's definition."""

    name: str
    description: str | None = None
    format: Raw = ABSENT


class ToolDefinition(Wire, frozen=True):
    """A tool. Engines take one that holds a function for a function, also where it says no type."""

    type: Literal["function", "custom"] | None = None
    function: FunctionTool | None = None
    custom: CustomTool | None = None
    cache_control: Any = None


class Grammar(Wire, frozen=True):
    """What a custom tool's input must follow."""

    definition: str
    syntax: Literal["lark", "regex"]


class CustomFormat(Wire, frozen=True):
    """A custom tool's input: any text, or a grammar."""

    type: Literal["text", "grammar"]
    grammar: Grammar | None = None


class Named(Wire, frozen=True):
    """A tool by name."""

    name: str


class ToolReference(Wire, frozen=True):
    """A tool in a choice."""

    type: Literal["function", "custom"]
    function: Named | None = None
    custom: Named | None = None


class AllowedTools(Wire, frozen=True):
    """The tools a model may call now."""

    mode: Literal["auto", "required"]
    tools: list[ToolReference]


class ToolChoice(Wire, frozen=True):
    """A choice that is no word."""

    type: Literal["function", "custom", "allowed_tools"]
    function: Named | None = None
    custom: Named | None = None
    allowed_tools: AllowedTools | None = None


class JSONSchema(Wire, frozen=True):
    """A named schema, which keeps its text."""

    name: str
    description: str | None = None
    schema: Raw = ABSENT
    strict: bool | None = None


class ResponseFormat(Wire, frozen=True):
    """How the answer is to be written."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JSONSchema | None = None


class StreamOptions(Wire, frozen=True):
    """What a stream is to hold."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
