"""Reads a whole Chat Completions answer: tolerant of what servers add and of the types they use, strict about text, calls and the finish.

Knows no client: what is read here is said again by the client's codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.chat.stream import STOPS
from asgi_surface.ir import Call, Citation, Form, Part, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.surfaces import GEMINI

_NULL: Final = Raw(b"null")


class _Function(Struct):
    name: Any = None
    arguments: Raw = _NULL


class _Custom(Struct):
    name: Any = None
    input: Any = None


class _Call(Struct):
    id: Any = None
    type: Any = None
    function: _Function | None = None
    custom: _Custom | None = None
    extra_content: Any = None


class _Message(Struct):
    content: Any = None
    refusal: Any = None
    annotations: Any = None
    reasoning_details: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    audio: Any = None


class _Logprobs(Struct):
    content: Raw = _NULL


class _Choice(Struct):
    index: Any = None
    message: _Message | None = None
    finish_reason: Any = None
    logprobs: _Logprobs | None = None


class _Answer(Struct):
    id: Any = None
    model: Any = None
    created: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    moderation: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_STRING: Final = msgspec.json.Decoder(str)
# Members of the answer and of its message that have no place in the IR.
_UNREAD_ANSWER: Final = ("system_fingerprint", "moderation")
_TOOL_STOPS: Final = frozenset({Stop.END, Stop.TOOLS})


def read(body: bytes) -> Response:
    """The answer in no surface's words: the choice of index 0. Raises `ValueError` when its text, calls or finish cannot be read."""
    answer = reading.decode(_ANSWER, body)
    choices = answer.choices or []
    # Servers need not send the choices in order.
    choice = next((choice for choice in choices if choice.index == 0), next(iter(choices), None))
    # Azure leaves the message out where its filter stopped the answer.
    if choice is None or (choice.message is None and choice.finish_reason != "content_filter"):
        raise ValueError("no message")
    unread: dict[str, None] = {f"answer:{name}": None for name in _UNREAD_ANSWER if getattr(answer, name)}
    parts = tuple(_parts(choice.message or _Message(), unread))
    return Response(
        id=reading.string(answer.id),
        model=reading.string(answer.model),
        created=reading.count(answer.created),
        parts=parts,
        stop=_stop(choice.finish_reason, parts),
        usage=_usage(answer.usage),
        logprobs=_logprobs(choice.logprobs),
        service_tier=reading.string(answer.service_tier),
        unread=tuple(unread),
    )


def _stop(said: object, parts: tuple[Part, ...]) -> Stop:
    """Why it stopped. Ollama and its like say `stop` beside calls; a cut or a filter stays one."""
    stop = reading.reason(STOPS, said)
    if stop is None:
        raise ValueError("no finish reason")
    return Stop.TOOLS if stop in _TOOL_STOPS and any(isinstance(part, Call) for part in parts) else stop


def _usage(said: object) -> Usage | None:
    usage = openai_wire.usage(said)
    return None if usage == Usage() else usage


def _logprobs(said: _Logprobs | None) -> Raw | None:
    return said.content if said is not None and bytes(said.content) not in {b"null", b"[]"} else None


def _parts(message: _Message, unread: dict[str, None]) -> Iterator[Part]:
    """Reasoning first, then words, then calls: the surface has no order of its own."""
    texts, thoughts = _content(message.content, unread)
    reasoning = _reasoning(message, unread) or "".join(thoughts)
    if reasoning:
        yield Reasoning(reasoning)
    citations = tuple(_citations(message.annotations, unread))
    # Offsets of citations count over the whole content.
    if text := "".join(texts):
        yield Text(text, citations=citations)
    if (refusal := _words(message.refusal)) is not None:
        yield Refusal(refusal)
    if message.audio:
        unread["answer:audio"] = None
    for index, call in enumerate(message.tool_calls or ()):
        yield _call(call, index)
    if message.function_call is not None:
        yield Call("call_0", *_function(message.function_call), minted=True)


def _words(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("text is no text")
    return value or None


def _content(content: object, unread: dict[str, None]) -> tuple[list[str], list[str]]:
    """The texts of the content, and the thoughts that Mistral puts among them."""
    if not isinstance(content, list):
        return [_words(content) or ""], []
    texts, thoughts = [], []
    for part in map(reading.mapping, content):
        if part.get("type") == "text":
            texts.append(_words(part.get("text")) or "")
        elif part.get("type") == "thinking":
            thoughts += _content(part.get("thinking"), unread)[0]
        else:
            unread["answer:part"] = None
    return texts, thoughts


def _reasoning(message: _Message, unread: dict[str, None]) -> str:
    """The reasoning under the first of its names that has text. Tokens that prove it have no place on this surface."""
    details = [reading.mapping(detail) for detail in (message.reasoning_details if isinstance(message.reasoning_details, list) else ())]
    if any(detail.get("data") or detail.get("signature") for detail in details):
        unread["answer:reasoning_details"] = None
    told = "".join(reading.string(detail.get("text")) or reading.string(detail.get("summary")) or "" for detail in details)
    return told or reading.string(message.reasoning_content) or reading.string(message.reasoning) or ""


def _citations(annotations: object, unread: dict[str, None]) -> Iterator[Citation]:
    for annotation in annotations if isinstance(annotations, list) else ():
        said = reading.mapping(reading.mapping(annotation).get("url_citation"))
        if (url := reading.string(said.get("url"))) is None:
            unread["answer:annotations"] = None
            continue
        yield Citation(url, reading.string(said.get("title")) or "", reading.count(said.get("start_index")), reading.count(said.get("end_index")))


def _call(call: _Call, index: int) -> Call:
    """A call. Servers that leave its id out have their calls numbered."""
    seal = _seal(call.extra_content)
    own = reading.string(call.id)
    id_, minted = own or f"call_{index}", own is None
    if call.function is not None:
        return Call(id_, *_function(call.function), seal=seal, minted=minted)
    if call.custom is None or not isinstance(call.custom.input, str):
        raise ValueError("a call of an unknown kind")
    return Call(id_, _name(call.custom.name), call.custom.input, Form.CUSTOM, seal=seal, minted=minted)


def _name(value: object) -> str:
    name = reading.string(value)
    if name is None:
        raise ValueError("a call without a name")
    return name


def _function(said: _Function) -> tuple[str, str]:
    return _name(said.name), _arguments(bytes(said.arguments))


def _arguments(raw: bytes) -> str:
    """Text is kept even when it is no JSON; Ollama sends the object itself; nothing means no arguments."""
    if raw == b"null":
        return "{}"
    return (reading.decode(_STRING, raw) if raw.startswith(b'"') else raw.decode()) or "{}"


def _seal(extra: object) -> Seal | None:
    """Google's signature of a call."""
    token = reading.string(reading.mapping(reading.mapping(extra).get("google")).get("thought_signature"))
    return Seal(token, SealKind.THOUGHT, GEMINI) if token else None
