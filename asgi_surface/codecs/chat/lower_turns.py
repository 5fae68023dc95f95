"""Says turns as Chat Completions messages, grouped as the surface demands: one assistant message with its calls, then their results, then the rest.

What a message cannot hold is refused at the client's pointer. Knows no other member of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NoReturn, TypeVar

from asgi_surface.codecs.base import Target
from asgi_surface.codecs.chat.lower_reasoning import is_own, replayed
from asgi_surface.codecs.chat.lower_tools import Names
from asgi_surface.codecs.moved import behind
from asgi_surface.codecs.openai_wire import file_name
from asgi_surface.codecs.wrapping import FAILED, wrapped
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Audio, Call, Document, Form, Image, Inline, Part, Reasoning, Refusal, Result, Role, Seal, Stored, Text, Turn
from asgi_surface.surfaces import GEMINI
from asgi_surface.verdicts import Mention

_Node = TypeVar("_Node", Text, Call, Result, Reasoning)
_Said = dict[str, Any]

_AUDIO: Final = {"audio/wav": "wav", "audio/wave": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def messages(turns: tuple[Turn, ...], target: Target, names: Names, emulated: list[Mention]) -> list[_Said]:
    """The messages. Raises `RequestError` with the client's pointer for what they cannot hold, and for a last turn to be continued."""
    if turns and turns[-1].role is Role.ASSISTANT and not target.dialect.prefill:
        raise RequestError(Code.UNREPRESENTABLE, "the surface does not continue an assistant's turn", pointer=turns[-1].at)
    return list(_messages(turns, target, names, emulated))


def _messages(turns: tuple[Turn, ...], target: Target, names: Names, emulated: list[Mention]) -> Iterator[_Said]:
    for by_model, run in groupby(turns, key=lambda turn: turn.role is Role.ASSISTANT):
        if by_model:
            yield from _assistant([part for turn in run for part in turn.parts], target, names, emulated)
            continue
        others = list(run)
        parts = [part for turn in others for part in turn.parts]
        # A call's results must follow it at once; what stands before or between them, instructions too, moves behind them.
        emulated += behind(parts)
        for result in _of(Result, parts):
            yield _result(result, names, emulated)
        for turn in others:
            yield from _plain(turn, target, emulated)


def _of(kind: type[_Node], parts: Iterable[Part]) -> list[_Node]:
    return [part for part in parts if isinstance(part, kind)]


def _result(result: Result, names: Names, emulated: list[Mention]) -> _Said:
    texts = [_text(part) if isinstance(part, Text) else _refuse(part, "a tool message holds text only") for part in result.parts]
    if result.failed:
        emulated.append(Mention("result:failed", result.at))
        first = FAILED + (texts[0]["text"] if texts else "")
        texts = [{"type": "text", "text": first}, *texts[1:]]
    return {"role": "tool", "tool_call_id": names.id(result.call_id), "content": _content(texts) or ""}


def _plain(turn: Turn, target: Target, emulated: list[Mention]) -> Iterator[_Said]:
    """A user's or an instruction's message, unless results were all it held. Servers know one role of those that instruct."""
    instruction = turn.role is not Role.USER
    role = target.dialect.instruction_role if instruction else turn.role.value
    if role != turn.role:
        emulated.append(Mention(f"role:{turn.role}", turn.at))
    said = [_instruction(part) if instruction else _user(part) for part in turn.parts if not isinstance(part, Result)]
    if said:
        yield {"role": role, "content": _content(said)}


def _instruction(part: Part) -> _Said:
    return _text(part) if isinstance(part, Text) else _refuse(part, "an instruction holds text only")


def _user(part: Part) -> _Said:
    writer = _WRITERS.get(type(part))
    return writer(part) if writer else _refuse(part, "a user's message does not hold this")


def _assistant(parts: list[Part], target: Target, names: Names, emulated: list[Mention]) -> Iterator[_Said]:
    said = [_uttered(part) for part in parts if not isinstance(part, (Call, Reasoning))]
    calls = [_call(call, target, names) for call in _of(Call, parts)]
    thoughts, reasoned = replayed(parts, target, emulated, heard=bool(said or calls), called=bool(calls))
    if said or calls:
        yield {"role": "assistant", "content": _content([*thoughts, *said]), **reasoned, **({"tool_calls": calls} if calls else {})}


def _uttered(part: Part) -> _Said:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    return _text(part) if isinstance(part, Text) else _refuse(part, "an assistant's message holds text only")


def _call(call: Call, target: Target, names: Names) -> _Said:
    name = names.of(call)
    if call.form is Form.CUSTOM and names.native_custom:
        said: _Said = {"id": names.id(call.id), "type": "custom", "custom": {"name": name, "input": call.arguments}}
    else:
        said = {"id": names.id(call.id), "type": "function", "function": {"name": name, "arguments": _arguments(call)}}
    return said | _extra(call.seal, target, call.at)


def _arguments(call: Call) -> str:
    return wrapped(call.arguments) if call.form is Form.CUSTOM else call.arguments


def _extra(seal: Seal | None, target: Target, at: str) -> _Said:
    """Google's own Chat API takes its signatures back here."""
    if seal is not None and seal.surface == GEMINI and seal.domain == target.seal_domain:
        return {"extra_content": {"google": {"thought_signature": seal.token}}}
    if seal is not None:
        is_own(seal, target, at)
    return {}


def _content(said: list[_Said]) -> object:
    """A lone text as a string, which every server takes; null for nothing."""
    if len(said) == 1 and said[0]["type"] == "text":
        return said[0]["text"]
    return said or None


def _text(part: Text) -> _Said:
    return {"type": "text", "text": part.text}


def _image(part: Image) -> _Said:
    if isinstance(part.source, Stored):
        _refuse(part, "a picture is given by URL or bytes")
    url = f"data:{part.source.media};base64,{part.source.data}" if isinstance(part.source, Inline) else part.source.url
    return {"type": "image_url", "image_url": {"url": url} | ({"detail": part.detail} if part.detail is not None else {})}


def _document(part: Document) -> _Said:
    name = {"filename": part.name} if part.name is not None else {}
    if isinstance(part.source, Stored):
        return {"type": "file", "file": {"file_id": part.source.id} | name}
    if not isinstance(part.source, Inline):
        _refuse(part, "a document is given by bytes or id, not by URL")
    media, data = part.source.media, part.source.data
    # OpenAI refuses bytes without a name (openai/openai-agents-python#1513).
    return {"type": "file", "file": {"filename": part.name or file_name(media), "file_data": f"data:{media};base64,{data}" if media else data}}


def _audio(part: Audio) -> _Said:
    form = _AUDIO.get(part.source.media) if isinstance(part.source, Inline) else None
    if not isinstance(part.source, Inline) or form is None:
        _refuse(part, "sound is given as the bytes of WAV or MP3")
    return {"type": "input_audio", "input_audio": {"data": part.source.data, "format": form}}


_WRITERS: Final[dict[type, Callable[[Any], _Said]]] = {Text: _text, Image: _image, Document: _document, Audio: _audio}


def _refuse(part: Part, why: str) -> NoReturn:
    raise RequestError(Code.UNREPRESENTABLE, f"{type(part).__name__.lower()}: {why}", pointer=part.at)
