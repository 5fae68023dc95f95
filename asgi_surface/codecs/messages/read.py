"""Reads a whole Messages answer into no surface's words. Knows nothing of events, nor of the client's surface.

Strict where a client acts on it (text, calls, the finish), tolerant everywhere else: what it does not know is skipped and named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs import reading
from asgi_surface.codecs.messages import beyond
from asgi_surface.codecs.messages.answer import STOPS, Spent
from asgi_surface.codecs.messages.known import KNOWN
from asgi_surface.codecs.strangers import strangers
from asgi_surface.ir import Call, Citation, Part, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.surfaces import MESSAGES

T = TypeVar("T")


class _Message(Struct):
    content: list[Raw]
    id: Any = None
    model: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None
    stop_details: Any = None
    usage: Any = None
    container: Any = None
    context_management: Any = None
    diagnostics: Any = None
    input_transformations: Any = None


class _Typed(Struct):
    type: Any = None


class _Text(Struct):
    text: str
    citations: Any = None


class _Thinking(Struct):
    thinking: Any = None
    signature: Any = None


class _Redacted(Struct):
    data: Any = None


class _ToolUse(Struct):
    id: str
    name: str
    input: Raw
    caller: Any = None
    toolset_name: Any = None


_MESSAGE: Final = Decoder(_Message)
_TYPED: Final = Decoder(_Typed)
_TEXT: Final = Decoder(_Text)
_THINKING: Final = Decoder(_Thinking)
_REDACTED: Final = Decoder(_Redacted)
_TOOL_USE: Final = Decoder(_ToolUse)


class _Reader:
    """What the blocks have said so far, in order."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.unread: list[str] = []

    def block(self, raw: Raw) -> None:
        """One block of `content`."""
        kind = _decoded(_TYPED, raw).type
        take = _BLOCKS.get(kind) if isinstance(kind, str) else None
        if take is None:
            self.unread.append(beyond.construct(f"answer:{kind}"))
        else:
            take(self, raw)

    def text(self, raw: Raw) -> None:
        said = _decoded(_TEXT, raw)
        places = said.citations if isinstance(said.citations, list) else []
        citations = [source for place in places if (source := citation(place, self.unread)) is not None]
        if said.text:
            self.parts.append(Text(said.text, citations=tuple(citations)))

    def thinking(self, raw: Raw) -> None:
        said = _decoded(_THINKING, raw)
        self._reasoning(reading.string(said.thinking) or "", said.signature, SealKind.SIGNATURE)

    def redacted(self, raw: Raw) -> None:
        self._reasoning("", _decoded(_REDACTED, raw).data, SealKind.REDACTED)

    def _reasoning(self, text: str, token: object, kind: SealKind) -> None:
        seal = Seal(token, kind, MESSAGES) if isinstance(token, str) and token else None
        if text or seal:
            self.parts.append(Reasoning(text, seal))

    def tool_use(self, raw: Raw) -> None:
        said = _decoded(_TOOL_USE, raw)
        arguments = bytes(said.input).decode()
        if not arguments.startswith("{"):
            raise ValueError("arguments that are no object")
        self.parts.append(Call(said.id, said.name, arguments))
        self.unread += beyond.call(said)


_BLOCKS: Final = {"text": _Reader.text, "thinking": _Reader.thinking, "redacted_thinking": _Reader.redacted, "tool_use": _Reader.tool_use}


def _beyond(answer: _Message) -> Iterator[str]:
    yield from beyond.details(answer.stop_details)
    yield from beyond.usage(answer.usage)
    yield from beyond.members(answer)


def read(body: bytes) -> Response:
    """The answer. Raises `ValueError` when its text, calls or finish cannot be read."""
    answer = reading.decode(_MESSAGE, body)
    stop = reading.reason(STOPS, answer.stop_reason)
    if stop is None:
        raise ValueError("no finish")
    reader = _Reader()
    for block in answer.content:
        reader.block(block)
    words = refusal(answer.stop_details)
    usage = Spent().take(answer.usage)
    calls = any(isinstance(part, Call) for part in reader.parts)
    return Response(
        id=reading.string(answer.id),
        model=reading.string(answer.model),
        parts=(*reader.parts, *([Refusal(words)] if words else [])),
        stop=Stop.TOOLS if stop is Stop.END and calls else stop,
        stop_sequence=reading.string(answer.stop_sequence),
        usage=None if usage == Usage() else usage,
        service_tier=tier(answer.usage),
        unread=(*reader.unread, *_beyond(answer), *strangers(body, KNOWN)),
    )


def _decoded(decoder: Decoder[T], raw: Raw) -> T:
    return reading.decode(decoder, bytes(raw))


def citation(place: object, skipped: list[str]) -> Citation | None:
    """A source with a URL; another is named in `skipped`. The offsets of others are those of the source, not of the text."""
    said = reading.mapping(place)
    url = said.get("url")
    if said.get("type") == "web_search_result_location" and isinstance(url, str):
        return Citation(url, reading.string(said.get("title")) or "")
    skipped.append(beyond.construct(f"answer:{said.get('type')}"))
    return None


def refusal(details: object) -> str | None:
    """What a refusal says of itself: an explanation, in the provider's words."""
    return reading.string(reading.mapping(details).get("explanation"))


def tier(usage: object) -> str | None:
    """The service tier that a usage object tells, in the IR's words."""
    return beyond.TIERS.get(reading.string(reading.mapping(usage).get("service_tier")) or "")
