"""The shapes of a Messages request that a conversion understands, strict: a member that is not listed here is refused with its pointer.

Shapes only; what they mean, and what becomes of them, is not known here. Numbers, schemas and calls keep their text.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Raw, Struct

NULL: Final = Raw(b"null")


class Strict(Struct, frozen=True, forbid_unknown_fields=True):
    """An object without other members than these."""


class Typed(Struct, frozen=True):
    """Anything that says its type; a client's own tool need not."""

    type: str | None = None


class CacheControl(Strict, frozen=True):
    """A cache mark."""

    type: str
    ttl: str | None = None


class TextBlock(Strict, frozen=True):
    """Words. Citations stand in the history only."""

    type: str
    text: str
    citations: list[Raw] | None = None
    cache_control: CacheControl | None = None


class Base64(Strict, frozen=True, tag="base64"):
    """Bytes in the body."""

    media_type: str
    data: str


class Url(Strict, frozen=True, tag="url"):
    """Bytes elsewhere."""

    url: str


class PlainText(Strict, frozen=True, tag="text"):
    """A document's text as it is."""

    media_type: str
    data: str


class Content(Strict, frozen=True, tag="content"):
    """A document made of blocks."""

    content: Raw


class File(Strict, frozen=True, tag="file"):
    """Bytes that the provider stores."""

    file_id: str


class Transformations(Strict, frozen=True):
    """How the provider treats an image that is too large."""

    oversized_image: str | None = None


class ImageBlock(Strict, frozen=True):
    """A picture."""

    type: str
    source: Base64 | Url | File
    transformations: Transformations | None = None
    cache_control: CacheControl | None = None


class Citations(Strict, frozen=True):
    """Whether the model is to cite a document."""

    enabled: bool | None = None


class DocumentBlock(Strict, frozen=True):
    """A file, a text, or blocks."""

    type: str
    source: Base64 | Url | PlainText | Content | File
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None
    cache_control: CacheControl | None = None


class ThinkingBlock(Strict, frozen=True):
    """What the model thought, and the proof of it."""

    type: str
    thinking: str
    signature: str = ""


class RedactedBlock(Strict, frozen=True):
    """What the model thought, readable to its provider only."""

    type: str
    data: str


class Caller(Strict, frozen=True):
    """Who called a tool: the model itself (`direct`), or a program of its own."""

    type: str
    tool_id: str | None = None


class ToolUseBlock(Strict, frozen=True):
    """A call."""

    type: str
    id: str
    name: str
    input: Raw
    caller: Caller | None = None
    toolset_name: str | None = None
    cache_control: CacheControl | None = None


class ToolResultBlock(Strict, frozen=True):
    """What a tool gave."""

    type: str
    tool_use_id: str
    content: str | list[Raw] | None = None
    is_error: bool | None = None
    toolset_name: str | None = None
    cache_control: CacheControl | None = None


class ToolReferenceBlock(Strict, frozen=True):
    """A tool that a search by the client has found, to be loaded."""

    type: str
    tool_name: str
    cache_control: CacheControl | None = None


class Message(Strict, frozen=True):
    """One turn. The two last members stand at role `system` only."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Raw] | None = None
    clear_at: str | None = None
    output_config: dict[str, Any] | None = None


class Tool(Strict, frozen=True):
    """A tool that the client runs."""

    name: str
    input_schema: Raw
    type: str | None = None
    description: str | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: list[Raw] | None = None
    allowed_callers: list[str] | None = None
    cache_control: CacheControl | None = None


class ToolChoice(Strict, frozen=True):
    """Which tools the model may or must call; `name` with type `tool`."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(Strict, frozen=True):
    """How the model is to reason; `budget_tokens` with type `enabled`."""

    type: Literal["enabled", "adaptive", "disabled", "between_tools"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted", "updates"] | None = None
    block_binding: dict[str, Any] | None = None


class OutputFormat(Strict, frozen=True):
    """A JSON Schema that the answer follows."""

    type: Literal["json_schema"]
    schema: Raw


class OutputConfig(Strict, frozen=True):
    """How much effort, and in which format."""

    effort: str | None = None
    format: OutputFormat | None = None
    task_budget: dict[str, Any] | None = None


class Management(Strict, frozen=True):
    """Edits of the history by the server, before the model sees it."""

    edits: list[dict[str, Any]] | None = None


class Metadata(Strict, frozen=True):
    """Who the client's user is."""

    user_id: str | None = None
