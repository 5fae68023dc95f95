"""What a codec is: all knowledge of one surface, behind one set of functions. Native mode uses the reading half of it.

Knows nothing of any particular surface, route or transport.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Raw, Struct, field

from asgi_surface.errors import ErrorFacts, GatewayError
from asgi_surface.events import Ending, Event, PartEvent, Start
from asgi_surface.framing import Frame, Framing
from asgi_surface.ir import Form, Request, Response, Stop, Usage
from asgi_surface.lifecycle import Kind
from asgi_surface.members import Members
from asgi_surface.surfaces import Feature, Surface
from asgi_surface.verdicts import Mention, Row


class Dialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a binding's upstream deviates from its surface's official wire, where a conversion must know it. Declared, never guessed.

    `default_max_tokens` is said where the surface requires a limit and the client gave none. `reasoning_style` is how effort is asked for: by words,
    by token budgets (`reasoning_budgets` translates words), or on Chat by a switch of the engine's chat template (`template_switch`), by DeepSeek's
    `thinking` with a word beside it, or by OpenRouter's `reasoning`, which takes words and budgets. `reasoning_field` is where a Chat upstream looks
    for the reasoning of earlier turns ("content": among the parts), `reasoning_replay` for which turns it is said: those with calls ("tools"), all or
    none. Without `signatures` a Messages upstream takes thinking back that nobody signed. `unsigned_calls`: how a Gemini upstream takes calls that
    no model of Google's made: under the stand-in for a token without which Gemini 3 refuses them, or as they are. `strict_tools`: it enforces the
    schemas of tools and answers that are to be strict; `tool_choice`: OpenAI's surfaces there read a choice by the names of tools, or words only;
    `call_ids`: the ids of calls that it takes ("nine": nine letters or digits); `stream_usage`: it is asked for the usage of a stream, or sends it
    unasked. `prefill` allows a trailing assistant turn on surfaces that do not
    continue it officially; `remote_images` lets URLs of images go to Gemini. `stream`: the upstream only streams, or never does; answers are folded
    or unfolded for the client.
    `zed_provider` is the provider whose surface a Zed upstream carries here.
    """

    instruction_role: Literal["system", "developer"] = "system"
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    default_max_tokens: int = 8192
    reasoning_style: Literal["effort", "budget", "template", "thinking", "reasoning"] = "effort"
    template_switch: Literal["enable_thinking", "thinking"] = "enable_thinking"
    reasoning_budgets: Mapping[str, int] = field(default_factory=lambda: {"low": 1024, "medium": 8192, "high": 24576})
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_details", "content"] = "reasoning_content"
    reasoning_replay: Literal["never", "tools", "always"] = "tools"
    signatures: bool = True
    unsigned_calls: Literal["stand-in", "bare"] = "stand-in"
    custom_tools: Literal["wrap", "refuse"] = "wrap"
    strict_tools: bool = True
    tool_choice: Literal["named", "words"] = "named"
    call_ids: Literal["any", "nine"] = "any"
    stream_usage: Literal["option", "always"] = "option"
    prefill: bool = False
    remote_images: bool = False
    stream: Literal["always", "never"] | None = None
    zed_provider: Literal["anthropic", "open_ai", "google", "x_ai", "baseten"] | None = None


class Demand(Struct, frozen=True):
    """A feature that a request needs, and the JSON pointer of what asks for it."""

    feature: Feature
    pointer: str


class Needs(Struct, frozen=True):
    """What a request asks of its upstream: each feature once, with its first pointer; and how long its history is, and where it stands."""

    demands: tuple[Demand, ...] = ()
    history: int = 0
    history_pointer: str = ""


class Guard(Struct, frozen=True):
    """A field with effects on the server's side. It passes when the binding declares `feature` or the value (its bytes) is harmless."""

    feature: Feature | None
    harmless: tuple[bytes, ...] = (b"null",)


class ShippedPolicy(Struct, frozen=True, kw_only=True):
    """A surface's default policy as data: the fields of the official SDK that pass, the guarded ones, what is forced without a feature; headers."""

    name: str
    fields: frozenset[str]
    guarded: Mapping[str, Guard] = {}
    force_without: Mapping[str, tuple[Feature, bytes]] = {}
    headers: frozenset[str] = frozenset()


class Signal(Struct, frozen=True, gc=False):
    """One fact that an answer tells about its own life."""

    kind: Kind
    stop: Stop | None = None
    usage: Usage | None = None
    fault: ErrorFacts | None = None


class Sight(Struct, frozen=True, gc=False):
    """What one frame, or one JSON answer, was seen to say.

    `chars` counts the characters of answer text, reasoning and call arguments in it; `event` is the SSE event name the official wire has for the
    frame (b"" where the surface has none); `alive` is False for a provider's ping, `passes` for what no client of the surface could read.
    """

    signals: tuple[Signal, ...] = ()
    chars: int = 0
    event: bytes = b""
    alive: bool = True
    passes: bool = True


class Watch(Protocol):
    """Reads the terminal facts of one stream, frame by frame, without changing it."""

    def see(self, frame: Frame) -> Sight:
        """The facts of one frame. Raises `ValueError` when the frame's data is not what the surface sends."""
        ...

    def failure(self, error: GatewayError, request_id: str) -> tuple[bytes, bytes]:
        """Event name (b"" for none) and data of the error terminal that fits this stream so far."""
        ...


class ModelEntry(Struct, frozen=True):
    """One name a client may ask for, with what the route behind it says of itself.

    `surface` and `features` are those of its first binding, and `streams` says whether that one's answers can be asked for as streams; the numbers
    of tokens are None where the route file does not say them.
    """

    name: str
    owner: str
    operations: tuple[str, ...] = ()
    surface: Surface = Surface("")
    features: frozenset[Feature] = frozenset()
    streams: bool = True
    context_tokens: int | None = None
    max_output_tokens: int | None = None


class ListQuery(Struct, frozen=True):
    """Paging as the surface's model list takes it; None where the client did not say. `after` and `before` are ids, or `after` a page token."""

    limit: int | None = None
    after: str | None = None
    before: str | None = None


def _same(name: str) -> str:
    return name


def _nothing(_: Members) -> None:
    return


class Lifted(Struct, frozen=True):
    """A client's request in no surface's words, and every construct of its surface that it uses, with its place."""

    request: Request
    mentions: tuple[Mention, ...] = ()


class Alias(Struct, frozen=True):
    """What the client calls a tool whose name, form or namespace the target could not say."""

    name: str
    form: Form = Form.FUNCTION
    namespace: str | None = None


class Target(Struct, frozen=True, kw_only=True):
    """The upstream that a request is lowered for."""

    model: str
    dialect: Dialect
    seal_domain: str
    features: frozenset[Feature]


class Lowered(Struct, frozen=True, kw_only=True):
    """A body in the target's words.

    `origins` maps a top-level member's name to the client's pointer behind it; members the gateway added by itself are in
    `added`, not in `origins`. `aliases` maps names of tools as the upstream knows them to the client's. `emulated` names constructs of the client's
    request that are said another way, with their pointers; `dropped` those hints that the target refuses beside something else, so they are left out.
    """

    members: Members
    origins: Mapping[str, str] = {}
    added: frozenset[str] = frozenset()
    aliases: Mapping[str, Alias] = {}
    emulated: tuple[Mention, ...] = ()
    dropped: tuple[Mention, ...] = ()


class Context(Struct, frozen=True, kw_only=True):
    """What writing an answer needs to know beside it: the client's request, the tools' names, who minted the seals, and the gateway's own facts.

    `request_id` is the gateway's, for ids that a surface demands and the upstream did not give; `now` is seconds since the epoch. `stream` says that
    the client gets a stream.
    """

    request: Request
    aliases: Mapping[str, Alias]
    seal_domain: str
    upstream: Surface
    model: str
    request_id: str
    now: int
    stream: bool = False


Frames = list[tuple[bytes, bytes]]
"""Frames to write: the SSE event name (b"" for none) and the data of each."""


class Decoder(Protocol):
    """Reads one stream of its surface, frame by frame. `unread` names the constructs that were skipped."""

    unread: list[str]

    def feed(self, frame: Frame) -> Iterable[Event]:
        """The events of one frame with data. Raises `ValueError` when it cannot be read."""
        ...

    def eof(self) -> Iterable[Event]:
        """What is left to say when a whole body has ended without a terminal. Raises `ValueError` when what was said is no answer."""
        ...


class Encoder(Protocol):
    """Writes one stream of its surface. Keeps no terminal flags: the lifecycle's table calls `open`, then `note` and `part`, then `close` or `fail`.

    `sequential` says that the surface allows one open part at a time; `several` that it can say further answers to one request. Every part is closed
    before `close`; before `fail` they stay open, and `fail` may come before `open`. `close` raises `GatewayError` when what was said is no answer of
    the surface; then `fail` follows.
    """

    sequential: bool
    several: bool

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """The answer begins; `usage` is what is known by then."""
        ...

    def note(self, start: Start, usage: Usage | None) -> None:
        """What is known of the answer by now, in the place of what was; usage is cumulative. Its id and time stay."""
        ...

    def part(self, event: PartEvent) -> Frames:
        """Something of a part."""
        ...

    def close(self, ending: Ending) -> Frames:
        """The success or truncation terminal."""
        ...

    def fail(self, error: GatewayError) -> Frames:
        """The error terminal."""
        ...


class Folder(Protocol):
    """Puts one stream of the surface together as the document that the surface would have given: everything stays, also what no table knows.

    It judges nothing: whether the answer is one is told by the decoder and the lifecycle's table, which follow the same frames.
    """

    @property
    def unsaid(self) -> Collection[str]:
        """What a document cannot say though a stream can, in words of `losses.LEFT`; known once the document is made."""
        ...

    def feed(self, frame: Frame) -> int:
        """Takes one frame that is no error. Gives the bytes that it keeps of it. Raises `ValueError` when it cannot be read."""
        ...

    def document(self, written: bytes) -> bytes:
        """The document. `written` is the answer as `write` says it: what the upstream left out that clients demand is taken from there."""
        ...


class Face(Struct, frozen=True, kw_only=True):
    """What clients of a surface can be told whatever they ask for: errors, and the list of models. Both are whole JSON bodies."""

    surface: Surface
    error: Callable[[GatewayError, str], bytes]
    models: Callable[[Sequence[ModelEntry], ListQuery], bytes]


class Codec(Face, frozen=True, kw_only=True):
    """One surface.

    `needs(members, stream)` raises `RequestError` when a member it must read has a shape the surface does not know; `precheck(members)` raises
    what must be refused before anything else. `tool_types(tools)` gives the place below `/tools` and the type of every tool. `fixed_headers` go out
    unless the client names its own. `document(body)` raises `ValueError` when the body is no JSON answer of the surface. `model` gives one
    entry of the list. `names` maps a member's spelling to the one that policies know. `eof_ends` says
    that a whole body's end is a terminal; `keepalive` is what a waiting client may be sent (b"": nothing). `count_fields` are members that only
    count-tokens bodies have.

    `envelope` are the members that the `error` object of the surface's own envelope has.

    `streaming` are the members (as JSON) by which a body asks for a stream; without them it asks for a document.

    The converting half: `rows` gives each construct's verdict on every other surface; `lift(members, stream)` and `lower(request, target)` raise
    `RequestError` with the client's pointer; `read(body)` raises `ValueError` when text, calls or finish cannot be read; `write` gives a JSON body,
    and `unsaid(response, context)` names what it has to leave out, in words of `losses.LEFT`;
    `decoder` and `encoder` make one for a stream.

    Between the surface's own two transports nothing is converted: `folder` makes a document of a stream, and `unfold(body, written, context)` a
    stream of a document, with its terminal; `written` is the same answer as `write` says it, as in `Folder.document`.
    """

    policy: ShippedPolicy
    required: frozenset[str]
    fixed_headers: tuple[tuple[str, str], ...] = ()
    model_in_path: bool = False
    count_fields: frozenset[str] = frozenset()
    names: Callable[[str], str] = _same
    precheck: Callable[[Members], None] = _nothing
    needs: Callable[[Members, bool], Needs]
    tool_types: Callable[[Raw], Sequence[tuple[str, str]]]
    watch: Callable[[], Watch]
    document: Callable[[bytes], Sight]
    error_facts: Callable[[bytes], ErrorFacts | None]
    envelope: Mapping[str, type]
    model: Callable[[ModelEntry], bytes]
    framings: tuple[Framing, ...] = (Framing.SSE,)
    streaming: Mapping[str, bytes] = {}
    eof_ends: bool = False
    keepalive: bytes = b""
    rows: Mapping[str, Row]
    decoder: Callable[[], Decoder]
    encoder: Callable[[Context], Encoder]
    lift: Callable[[Members, bool], Lifted]
    lower: Callable[[Request, Target], Lowered]
    read: Callable[[bytes], Response]
    write: Callable[[Response, Context], bytes]
    unsaid: Callable[[Response, Context], Collection[str]]
    folder: Callable[[], Folder]
    unfold: Callable[[bytes, bytes, Context], Frames]
