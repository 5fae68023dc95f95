"""The typed form between two codecs: a request and an answer in no surface's words. Native mode reads only why an answer stopped and what it used.

A construct enters when two surfaces can say it; what only one says is named in its table of verdicts. A node that a target may be unable to say
carries `at`, the JSON pointer into the client's body. Knows nothing of wires.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from msgspec import Raw, Struct
from msgspec.structs import astuple

from asgi_surface.surfaces import Surface


class Stop(enum.IntEnum):
    """Why a model stopped, by weight: truncation and filters are never relabelled by a lighter reason that comes with them."""

    END = 0
    STOP_SEQUENCE = 1
    PAUSE = 2
    TOOLS = 3
    OTHER = 4
    REFUSAL = 5
    FILTER = 6
    LENGTH = 7
    ERROR = 8


def weightier(seen: Stop | None, new: Stop) -> Stop:
    """The reason that stands: the weightiest, the first among equals."""
    return new if seen is None or new > seen else seen


class Usage(Struct, frozen=True, gc=False):
    """Tokens as the upstream counted them; None means it did not say.

    `input` is everything the model read, cached tokens and a tool's included; `output` everything it wrote, reasoning included. `audio_input` and
    `audio_output` are the spoken part of each.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None

    def merged(self, later: Usage) -> Usage:
        """This usage with what a later report says anew: streams report cumulatively, so the later number stands."""
        return Usage(*(old if new is None else new for old, new in zip(astuple(self), astuple(later), strict=True)))


class Role(enum.StrEnum):
    """Who says a turn. Instructions before and between turns are turns too, in their place."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"


class Form(enum.StrEnum):
    """How a tool takes its input: arguments as a JSON object, or free text."""

    FUNCTION = "function"
    CUSTOM = "custom"


class Inline(Struct, frozen=True):
    """Bytes in the body: base64 text in the standard alphabet, and the media type ("" when the client did not say)."""

    media: str
    data: str


class Link(Struct, frozen=True):
    """Bytes elsewhere, by URL. Never fetched here. `media` is "" when the client did not say."""

    url: str
    media: str = ""


class Stored(Struct, frozen=True):
    """Bytes at the provider, by the provider's id."""

    id: str


Source = Inline | Link | Stored


class SealKind(enum.StrEnum):
    """What an opaque token is. `TEXT` is no token of an upstream's: reasoning text in an envelope of its own, for clients that demand one."""

    SIGNATURE = "signature"
    REDACTED = "redacted"
    ENCRYPTED = "encrypted"
    THOUGHT = "thought"
    TEXT = "text"


class Seal(Struct, frozen=True):
    """Opaque reasoning state: the token, what it is, the surface it was minted on, and by whom (`domain`, "" when it came bare, not in our envelope).

    `id` is the id of the item it came with, "" when none; `at` its place in the client's body, where that is not its part's.
    """

    token: str
    kind: SealKind
    surface: Surface
    domain: str = ""
    id: str = ""
    at: str = ""


class Citation(Struct, frozen=True):
    """A source of answer text. Offsets are characters of it, None where the surface has none; `excerpt` is what the gateway's search gave of it."""

    url: str
    title: str = ""
    start: int | None = None
    end: int | None = None
    excerpt: str = ""


class Text(Struct, frozen=True, tag=True):
    """Words. `citations` stand in answers only."""

    text: str
    at: str = ""
    citations: tuple[Citation, ...] = ()


class Image(Struct, frozen=True, tag=True):
    """A picture. `detail` is OpenAI's hint of resolution."""

    source: Source
    detail: str | None = None
    at: str = ""


class Document(Struct, frozen=True, tag=True):
    """A file: PDF, text and the like."""

    source: Source
    name: str | None = None
    at: str = ""


class Audio(Struct, frozen=True, tag=True):
    """Sound. `source.media` is `audio/…`."""

    source: Source
    at: str = ""


class Call(Struct, frozen=True, tag=True):
    """A tool call. `arguments` is the JSON text of an object, byte for byte, or free text for a custom tool.

    Where a surface has no call ids the lifting codec numbers them (`call_0`, `call_1` …) by position, results alike, and says so with `minted`.
    """

    id: str
    name: str
    arguments: str
    form: Form = Form.FUNCTION
    namespace: str | None = None
    seal: Seal | None = None
    minted: bool = False
    at: str = ""


class Result(Struct, frozen=True, tag=True):
    """What a tool gave. `name` is the tool's, where it is known; `parts` are text, images and documents in order."""

    call_id: str
    parts: tuple[Text | Image | Document, ...]
    failed: bool = False
    form: Form = Form.FUNCTION
    name: str | None = None
    at: str = ""


class Reasoning(Struct, frozen=True, tag=True):
    """What the model thought: its text ("" when hidden) and the seal that proves it."""

    text: str
    seal: Seal | None = None
    at: str = ""


class Refusal(Struct, frozen=True, tag=True):
    """The model's words for not answering."""

    text: str
    at: str = ""


class Search(Struct, frozen=True, tag=True):
    """A web search that was run beside the model, in answers only: what was asked, and the sources found."""

    id: str
    query: str
    sources: tuple[Citation, ...] = ()
    failed: bool = False
    at: str = ""


Part = Text | Image | Document | Audio | Call | Result | Reasoning | Refusal | Search


class Turn(Struct, frozen=True):
    """One speaker's parts. Neighbouring turns of one role are allowed; each codec groups them as its surface wants."""

    role: Role
    parts: tuple[Part, ...]
    at: str = ""


class Tool(Struct, frozen=True):
    """A tool that the client runs.

    `schema` is the JSON Schema of its arguments, byte for byte (None: it takes none); `grammar` a custom tool's format object. `strict` is what the
    source surface means, its default written out.
    """

    name: str
    description: str | None = None
    schema: Raw | None = None
    strict: bool = False
    form: Form = Form.FUNCTION
    grammar: Raw | None = None
    namespace: str | None = None
    namespace_description: str | None = None
    at: str = ""


class Pick(enum.StrEnum):
    """Which tools the model may or must call."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class Choice(Struct, frozen=True):
    """The tool choice. `names` restricts it to these tools (None: all); REQUIRED with one name is the forced tool."""

    pick: Pick
    names: tuple[str, ...] | None = None
    at: str = ""


class Effort(Struct, frozen=True):
    """How much the model is to reason: a word, a token budget, or `off`; `adaptive` leaves it to the model. `summary` asks to see it or not to."""

    word: str | None = None
    budget: int | None = None
    adaptive: bool = False
    off: bool = False
    summary: str | None = None
    at: str = ""


class Format(Struct, frozen=True):
    """Structured output: a JSON Schema, or (schema None) just some JSON object."""

    schema: Raw | None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    at: str = ""


class Settings(Struct, frozen=True, kw_only=True):
    """The scalar wishes of a request, each as the exact JSON text the client wrote; None: not said. `at` gives the client's pointer by field name."""

    max_tokens: Raw | None = None
    temperature: Raw | None = None
    top_p: Raw | None = None
    top_k: Raw | None = None
    seed: Raw | None = None
    frequency_penalty: Raw | None = None
    presence_penalty: Raw | None = None
    stop: tuple[str, ...] | None = None
    n: Raw | None = None
    logprobs: bool | None = None
    top_logprobs: Raw | None = None
    parallel: bool | None = None
    store: bool | None = None
    user: str | None = None
    safety_id: str | None = None
    metadata: Raw | None = None
    service_tier: str | None = None
    cache_key: str | None = None
    verbosity: str | None = None
    obfuscation: bool | None = None
    at: Mapping[str, str] = {}


class Request(Struct, frozen=True, kw_only=True):
    """A request in no surface's words."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice | None = None
    settings: Settings = Settings()
    effort: Effort | None = None
    format: Format | None = None
    stream: bool = False
    include_usage: bool = False
    wants_seals: bool = False


class Alternative(Struct, frozen=True, kw_only=True):
    """One more answer to the same request, as `n` and `candidateCount` ask for."""

    parts: tuple[Part, ...] = ()
    stop: Stop = Stop.END
    stop_sequence: str | None = None
    logprobs: Raw | None = None


class Response(Struct, frozen=True, kw_only=True):
    """A whole answer in no surface's words. `created` is seconds since the epoch; absent facts are None.

    `logprobs` are OpenAI's token entries as they came (a JSON array). `more` are the further answers to the same request, in order; usage counts all.
    `unread` names what the answer held beyond this (constructs of the answer's table), once each time.
    """

    id: str | None
    model: str | None
    created: int | None = None
    parts: tuple[Part, ...] = ()
    stop: Stop = Stop.END
    stop_sequence: str | None = None
    usage: Usage | None = None
    logprobs: Raw | None = None
    service_tier: str | None = None
    more: tuple[Alternative, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[Response | Alternative, ...]:
        """The first answer and the further ones."""
        return self, *self.more
