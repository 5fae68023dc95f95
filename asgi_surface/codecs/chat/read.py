"""Reads a whole Chat Completions answer: tolerant of what servers add and of the types they use, strict about text, calls and the finish.

Knows no client: what is read here is said again by the client's codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.chat.known import KNOWN
from asgi_surface.codecs.chat.stream import STOPS
from asgi_surface.codecs.chat.thoughts import parts as reasoned
from asgi_surface.codecs.strangers import strangers
from asgi_surface.ir import Alternative, Call, Citation, Form, Part, Refusal, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.soundness import ENDED
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
    refusal: Raw = _NULL


class _Choice(Struct):
    index: Any = None
    message: _Message | None = None
    finish_reason: Any = None
    logprobs: _Logprobs | None = None
    content_filter_results: Any = None


class _Answer(Struct):
    id: Any = None
    model: Any = None
    created: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    moderation: Any = None
    metadata: Any = None
    prompt_filter_results: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_STRING: Final = msgspec.json.Decoder(str)
# Members of the answer and of its message that have no place in the IR.
_UNREAD_ANSWER: Final = ("system_fingerprint", "moderation", "prompt_filter_results", "metadata")
_UNREAD_USAGE: Final = {
    "prompt_tokens_details": ("image_tokens", "text_tokens"),
    "completion_tokens_details": ("accepted_prediction_tokens", "rejected_prediction_tokens", "text_tokens"),
}


def read(body: bytes) -> Response:
    """The answer in no surface's words, its choices by their index. Raises `ValueError` when text, calls or a finish cannot be read."""
    answer = reading.decode(_ANSWER, body)
    unread = dict.fromkeys((*_unread(answer), *_uncounted(answer.usage), *strangers(body, KNOWN)))
    answers = [_choice(choice, unread) for choice in _ordered(answer.choices or [])]
    if not answers:
        raise ValueError("no choice")
    first, *more = answers
    return Response(
        id=reading.string(answer.id),
        model=reading.string(answer.model),
        created=reading.count(answer.created),
        parts=first.parts,
        stop=first.stop,
        usage=_usage(answer.usage),
        logprobs=first.logprobs,
        service_tier=reading.string(answer.service_tier),
        more=tuple(more),
        unread=tuple(unread),
    )


def _unread(said: object) -> Iterator[str]:
    """Members of an answer, or of a chunk, that say something and have no place in the IR."""
    return (f"answer:{name}" for name in _UNREAD_ANSWER if getattr(said, name, None))


def _uncounted(usage: object) -> Iterator[str]:
    """Token counts that have none."""
    for name, members in _UNREAD_USAGE.items():
        details = reading.mapping(reading.mapping(usage).get(name))
        yield from (f"usage:{name}.{member}" for member in members if reading.count(details.get(member)))


def _ordered(choices: list[_Choice]) -> list[_Choice]:
    """By index: servers need not send them in order, nor say it."""
    places = [position if reading.count(choice.index) is None else choice.index for position, choice in enumerate(choices)]
    return [choices[position] for position in sorted(range(len(choices)), key=places.__getitem__)]


def _choice(choice: _Choice, unread: dict[str, None]) -> Alternative:
    # Azure leaves the message out where its filter stopped the answer.
    if choice.message is None and choice.finish_reason != "content_filter":
        raise ValueError("no message")
    stop = reading.reason(STOPS, choice.finish_reason)
    if stop is None:
        raise ValueError("no finish reason")
    # No arguments are the empty object, unless a cut came before them.
    parts = tuple(_parts(choice.message or _Message(), unread, "{}" if stop in ENDED else ""))
    unread |= _filtered(choice)
    called = any(isinstance(part, Call) for part in parts)
    return Alternative(parts=parts, stop=_meant(stop, called=called), logprobs=_logprobs(choice.logprobs, unread))


def _filtered(choice: Any) -> dict[str, None]:
    """What Azure's filters say of an answer."""
    return {"answer:content_filter_results": None} if choice.content_filter_results else {}


def _meant(stop: Stop, *, called: bool) -> Stop:
    """The reason of a whole answer. A finish for calls without any has lost them."""
    if stop is Stop.TOOLS and not called:
        raise ValueError("a finish for calls, and no call")
    return _ended(stop, called=called)


def _ended(stop: Stop, *, called: bool) -> Stop:
    """Why it stopped. Ollama and its like say `stop` beside calls; a cut or a filter stays one."""
    return Stop.TOOLS if called and stop is Stop.END else stop


def _usage(said: object) -> Usage | None:
    usage = openai_wire.usage(said)
    return None if usage == Usage() else usage


def _logprobs(said: _Logprobs | None, unread: dict[str, None]) -> Raw | None:
    """The entries of the text's tokens."""
    if said is None:
        return None
    if _entries(said.refusal):
        unread["answer:logprobs.refusal"] = None
    return said.content if _entries(said.content) else None


def _entries(said: Raw) -> bool:
    return bytes(said) not in {b"null", b"[]"}


def _parts(message: _Message, unread: dict[str, None], bare: str) -> Iterator[Part]:
    """Reasoning first, then words, then calls: the surface has no order of its own. `bare` stands for arguments that are none."""
    texts, thoughts = _content(message.content, unread)
    yield from reasoned(message, "".join(thoughts))
    citations = tuple(_citations(message.annotations, unread))
    # Offsets of citations count over the whole content.
    if text := "".join(texts):
        yield Text(text, citations=citations)
    elif citations:
        unread["answer:annotations.other"] = None
    if (refusal := _words(message.refusal)) is not None:
        yield Refusal(refusal)
    if message.audio:
        unread["answer:audio"] = None
    for index, call in enumerate(message.tool_calls or ()):
        yield _call(call, index, bare)
    if message.function_call is not None:
        yield Call("call_0", *_function(message.function_call, bare), minted=True)


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


def _citations(annotations: object, unread: dict[str, None]) -> Iterator[Citation]:
    for annotation in annotations if isinstance(annotations, list) else ():
        said = reading.mapping(reading.mapping(annotation).get("url_citation"))
        if (url := reading.string(said.get("url"))) is None:
            unread["answer:annotations.other"] = None
            continue
        yield Citation(url, reading.string(said.get("title")) or "", reading.count(said.get("start_index")), reading.count(said.get("end_index")))


def _call(call: _Call, index: int, bare: str) -> Call:
    """A call. Servers that leave its id out have their calls numbered."""
    seal = _seal(call.extra_content)
    own = reading.string(call.id)
    id_, minted = own or f"call_{index}", own is None
    if call.function is not None:
        return Call(id_, *_function(call.function, bare), seal=seal, minted=minted)
    if call.custom is None or not isinstance(call.custom.input, str):
        raise ValueError("a call of an unknown kind")
    return Call(id_, _name(call.custom.name), call.custom.input, Form.CUSTOM, seal=seal, minted=minted)


def _name(value: object) -> str:
    name = reading.string(value)
    if name is None:
        raise ValueError("a call without a name")
    return name


def _function(said: _Function, bare: str) -> tuple[str, str]:
    return _name(said.name), _arguments(bytes(said.arguments)) or bare


def _arguments(raw: bytes) -> str:
    """Text is kept even when it is no JSON; Ollama sends the object itself."""
    if raw == b"null":
        return ""
    return reading.decode(_STRING, raw) if raw.startswith(b'"') else raw.decode()


def _seal(extra: object) -> Seal | None:
    """Google's signature of a call."""
    token = reading.string(reading.mapping(reading.mapping(extra).get("google")).get("thought_signature"))
    return Seal(token, SealKind.THOUGHT, GEMINI) if token else None
