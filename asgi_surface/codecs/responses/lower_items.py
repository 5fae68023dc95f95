"""Lowers turns to the input items of a Responses request. Knows nothing of settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from asgi_surface import ir
from asgi_surface.codecs.base import Target
from asgi_surface.codecs.openai_wire import file_name
from asgi_surface.codecs.responses.lower_tools import as_custom, is_wrapped
from asgi_surface.codecs.spelling import OPENAI
from asgi_surface.codecs.wrapping import FAILED, wrapped
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import RESPONSES

Object = dict[str, Any]

_CALL_ID: Final = 64
_FORMATS: Final = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}


def items(turns: tuple[ir.Turn, ...], target: Target) -> Iterator[Object]:
    """The items of the turns, in their order."""
    for turn in turns:
        if turn.role is ir.Role.ASSISTANT:
            yield from _assistant(turn, target)
        elif turn.role is ir.Role.USER:
            yield from _user(turn, target)
        else:
            yield _message(target.dialect.instruction_role, turn.parts)


def _message(role: str, parts: tuple[ir.Part, ...]) -> Object:
    return {"type": "message", "role": role, "content": _content(parts)}


def _user(turn: ir.Turn, target: Target) -> Iterator[Object]:
    """Outputs come before the words, where engines look for them."""
    results = [part for part in turn.parts if isinstance(part, ir.Result)]
    words = tuple(part for part in turn.parts if not isinstance(part, ir.Result))
    yield from (_output(result, target) for result in results)
    if words or not results:
        yield _message("user", words)


def _assistant(turn: ir.Turn, target: Target) -> Iterator[Object]:
    """Every part is an item of its own, in order."""
    for part in turn.parts:
        if (made := _ASSISTANT.get(type(part))) is None:
            raise _refused(part, "an assistant's turn holds words, reasoning and calls only")
        yield from made(part, target)


def _words(part: ir.Text, _target: Target) -> Iterator[Object]:
    """A string: the SDK's type has lists of output parts only with an item id, which is the provider's to give."""
    yield {"type": "message", "role": "assistant", "content": part.text}


def _refusal(part: ir.Refusal, _target: Target) -> Iterator[Object]:
    """A list all the same, as there is no string for it; the API takes it without an id."""
    yield {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": part.text}]}


def _called(call: ir.Call, target: Target) -> Iterator[Object]:
    if call.seal is not None:
        yield from _sealed("", call.seal, call.at, target)
    yield _call(call, target)


def _call(call: ir.Call, target: Target) -> Object:
    """A call. Its item id is the upstream's to give, so it has none."""
    names = {"call_id": call_id(call.id), "name": OPENAI.fitting(call.name)}
    names |= {"namespace": call.namespace} if call.namespace is not None else {}
    if as_custom(call, target):
        return {"type": "custom_tool_call", **names, "input": call.arguments}
    arguments = wrapped(call.arguments) if is_wrapped(call, target) else call.arguments
    return {"type": "function_call", **names, "arguments": arguments}


def call_id(name: str) -> str:
    """How a call's id is said. The API takes 64 characters. An id is only a link between call and output, so a longer one is replaced by its hash."""
    return name if len(name) <= _CALL_ID else f"call_{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _reasoning(part: ir.Reasoning, target: Target) -> Iterator[Object]:
    """Reasoning without a token is left out: the API takes back only its own."""
    if part.seal is not None:
        yield from _sealed(part.text, part.seal, part.at, target)


def _sealed(text: str, seal: ir.Seal, at: str, target: Target) -> Iterator[Object]:
    if seal.kind is ir.SealKind.TEXT:
        return
    if (seal.domain, seal.surface, seal.kind) != (target.seal_domain, RESPONSES, ir.SealKind.ENCRYPTED):
        raise RequestError(Code.UNREPRESENTABLE, "seal:foreign: the reasoning was sealed by another provider", pointer=seal.at or at)
    identity = {"id": seal.id} if seal.id else {}
    summary = [{"type": "summary_text", "text": text}] if text else []
    yield {"type": "reasoning", **identity, "summary": summary, "encrypted_content": seal.token}


_ASSISTANT: Final[Mapping[type[Any], Callable[[Any, Target], Iterator[Object]]]] = {
    ir.Text: _words,
    ir.Refusal: _refusal,
    ir.Call: _called,
    ir.Reasoning: _reasoning,
}


def _output(result: ir.Result, target: Target) -> Object:
    kind = "custom_tool_call_output" if as_custom(result, target) else "function_call_output"
    return {"type": kind, "call_id": call_id(result.call_id), "output": _content(_marked(result) or (ir.Text(""),))}


def _marked(result: ir.Result) -> tuple[ir.Part, ...]:
    """What the tool gave, behind the mark of failure where it failed."""
    if not result.failed:
        return result.parts
    match result.parts:
        case (ir.Text() as first, *rest):
            return ir.Text(FAILED + first.text), *rest
    return ir.Text(FAILED), *result.parts


def _content(parts: tuple[ir.Part, ...]) -> str | list[Object]:
    """One text as it is, else a list of parts."""
    return parts[0].text if len(parts) == 1 and isinstance(parts[0], ir.Text) else [_part(part) for part in parts]


def _part(part: ir.Part) -> Object:
    if (made := _PARTS.get(type(part))) is None:
        raise _refused(part, "only an assistant's turn holds reasoning, calls and refusals")
    said: Object = made(part)
    return said


def _refused(part: ir.Part, why: str) -> RequestError:
    return RequestError(Code.UNREPRESENTABLE, why, pointer=part.at)


def _text(part: ir.Text) -> Object:
    return {"type": "input_text", "text": part.text}


def _image(part: ir.Image) -> Object:
    """The SDK's type requires the detail; `auto` is its default."""
    detail = part.detail or "auto"
    if isinstance(part.source, ir.Stored):
        return {"type": "input_image", "detail": detail, "file_id": part.source.id}
    return {"type": "input_image", "detail": detail, "image_url": _url(part.source)}


def _document(part: ir.Document) -> Object:
    """A file. Data needs a name, whose ending tells the kind; a stored file has its own."""
    named = {"filename": part.name} if part.name is not None else {}
    if isinstance(part.source, ir.Stored):
        return {"type": "input_file", "file_id": part.source.id}
    if isinstance(part.source, ir.Link):
        return {"type": "input_file", **named, "file_url": part.source.url}
    data = _url(part.source) if part.source.media else part.source.data
    return {"type": "input_file", "filename": part.name or file_name(part.source.media), "file_data": data}


def _audio(part: ir.Audio) -> Object:
    if not isinstance(part.source, ir.Inline) or (name := _FORMATS.get(part.source.media)) is None:
        raise _refused(part, "audio is taken as mp3 or wav data only")
    return {"type": "input_audio", "input_audio": {"data": part.source.data, "format": name}}


def _url(source: ir.Inline | ir.Link) -> str:
    return source.url if isinstance(source, ir.Link) else f"data:{source.media};base64,{source.data}"


_PARTS: Final[Mapping[type[Any], Callable[[Any], Object]]] = {ir.Text: _text, ir.Image: _image, ir.Document: _document, ir.Audio: _audio}
