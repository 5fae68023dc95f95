"""Lifts the messages of a Chat Completions request to turns. Knows no other member of the body."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface import seals
from asgi_surface.codecs.chat import wire
from asgi_surface.codecs.chat.wire import there
from asgi_surface.codecs.strict import decode
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import (
    Audio,
    Call,
    Document,
    Form,
    Image,
    Inline,
    Link,
    Part,
    Reasoning,
    Refusal,
    Result,
    Role,
    Seal,
    Source,
    Stored,
    Text,
    Turn,
)
from asgi_surface.verdicts import Mention

_Message = wire.System | wire.Developer | wire.User | wire.Assistant | wire.Tool | wire.FunctionResult
_WirePart = wire.TextPart | wire.RefusalPart | wire.ImagePart | wire.FilePart | wire.AudioPart

_MESSAGES: Final = Decoder(list[_Message])
# `data:image/jpeg;name=a.jpg;base64,…`: the type, any parameters, and the mark of base64 last.
_DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]+)*?;base64,([A-Za-z0-9+/]*={0,2})", re.ASCII | re.IGNORECASE)


def turns(raw: Raw, notes: list[Mention]) -> tuple[Turn, ...]:
    """The history: a turn for each message, in its place."""
    return tuple(_History(notes).turns(decode(_MESSAGES, raw, "/messages")))


class _History:
    """What later messages need of earlier ones: whether the conversation has begun, and the calls that results answer."""

    def __init__(self, notes: list[Mention]) -> None:
        self._notes = notes
        self._begun = False
        self._calls: dict[str, Call] = {}
        self._minted = 0

    def turns(self, messages: list[_Message]) -> Iterator[Turn]:
        for index, message in enumerate(messages):
            at = f"/messages/{index}"
            if message.name is not None and not isinstance(message, wire.FunctionResult):
                self._note(f"role:{_role(message)}.name", f"{at}/name")
            turn = _LIFTERS[type(message)](self, message, at)
            if not turn.parts and turn.role is not Role.ASSISTANT:  # an assistant's null says nothing
                raise RequestError(Code.MALFORMED_BODY, "the list of parts is empty", pointer=f"{at}/content")
            yield turn

    def _note(self, construct: str, at: str) -> None:
        self._notes.append(Mention(construct, at))

    def instruction(self, message: wire.System | wire.Developer, at: str) -> Turn:
        role = _role(message)
        self._note(f"role:{role}.mid" if self._begun else f"role:{role}", at)
        return Turn(Role(role), tuple(self._content(message.content, at)), at)

    def user(self, message: wire.User, at: str) -> Turn:
        self._begun = True
        self._note("role:user", at)
        return Turn(Role.USER, tuple(self._content(message.content, at)), at)

    def assistant(self, message: wire.Assistant, at: str) -> Turn:
        self._begun = True
        self._note("role:assistant", at)
        for name in ("audio", "annotations"):
            if getattr(message, name):
                self._note(f"role:assistant.{name}", f"{at}/{name}")
        calls = tuple(self._made(message, at))
        return Turn(Role.ASSISTANT, (*self._reasoning(message, at), *self._said(message, at, bool(calls)), *calls), at)

    def _said(self, message: wire.Assistant, at: str, calls: bool) -> Iterator[Part]:
        # Beside calls, clients write "" for null.
        if message.content or (message.content is not None and not calls and not message.refusal):
            yield from self._content(message.content, at)
        if message.refusal:
            self._note("part:refusal", f"{at}/refusal")
            yield Refusal(message.refusal, f"{at}/refusal")

    def _reasoning(self, message: wire.Assistant, at: str) -> Iterator[Reasoning]:
        """The reasoning under one of its names: they carry the same text. Pieces with proofs are the gateway's own, and stay apart."""
        pieces = message.reasoning_details or []
        proofs = [seals.unwrap(piece.signature) if isinstance(piece.signature, str) else None for piece in pieces]
        if any(proofs):
            self._note("part:reasoning_details", f"{at}/reasoning_details")
            yield from (
                Reasoning(piece.text or piece.summary or "", proof, at=f"{at}/reasoning_details/{index}")
                for index, (piece, proof) in enumerate(zip(pieces, proofs, strict=True))
            )
            return
        details = "".join(piece.text or piece.summary or "" for piece in pieces)
        spellings = {"reasoning_details": details, "reasoning_content": message.reasoning_content, "reasoning": message.reasoning}
        said = [(f"{at}/{name}", text) for name, text in spellings.items() if text]
        for name in spellings:
            if getattr(message, name):
                self._note(f"part:{name}", f"{at}/{name}")
        yield from (Reasoning(text, at=place) for place, text in said[:1])

    def _made(self, message: wire.Assistant, at: str) -> Iterator[Call]:
        for index, call in enumerate(message.tool_calls or ()):
            yield self._remember(self._call(call, f"{at}/tool_calls/{index}"))
        if (old := message.function_call) is not None:
            place = f"{at}/function_call"
            self._note("role:assistant.function_call", place)
            yield self._remember(Call(f"call_{self._minted}", old.name, old.arguments or "{}", minted=True, at=place))
            self._minted += 1

    def _remember(self, call: Call) -> Call:
        self._calls[call.id] = call
        return call

    def _call(self, call: wire.ToolCall, at: str) -> Call:
        seal = self._seal(call.extra_content, at)
        if call.type == "custom":
            self._note("part:tool_calls.custom", at)
            custom = there(call.custom, at)
            return Call(call.id, custom.name, custom.input, Form.CUSTOM, seal=seal, at=at)
        self._note("part:tool_calls.function", at)
        function = there(call.function, at)
        return Call(call.id, function.name, function.arguments or "{}", seal=seal, at=at)

    def _seal(self, extra: wire.Extra | None, at: str) -> Seal | None:
        token = extra.google.thought_signature if extra and extra.google else None
        if not token:
            return None
        seal = seals.from_googles_slot(token)
        self._note("seal:none" if seal is None else "seal:thought", f"{at}/extra_content/google/thought_signature")
        return seal

    def tool(self, message: wire.Tool, at: str) -> Turn:
        self._begun = True
        self._note("role:tool", at)
        call = self._calls.get(message.tool_call_id)
        form, name = (call.form, call.name) if call else (Form.FUNCTION, message.name)
        parts = tuple(self._content(message.content or (), at))
        return Turn(Role.USER, (Result(message.tool_call_id, parts, form=form, name=name, at=at),), at)

    def function(self, message: wire.FunctionResult, at: str) -> Turn:
        """A result in the old form answers the last call of its name."""
        self._begun = True
        self._note("role:function", at)
        call = next((call for call in reversed(self._calls.values()) if call.minted and call.name == message.name), None)
        if call is None:
            raise RequestError(Code.MALFORMED_BODY, "no call before has this name", pointer=f"{at}/name")
        parts = tuple(self._content(message.content or (), at))
        return Turn(Role.USER, (Result(call.id, parts, name=call.name, at=at),), at)

    def _content(self, content: Any, at: str) -> Iterator[Any]:
        place = f"{at}/content"
        if isinstance(content, str):
            self._note("part:text", place)
            yield Text(content, place)
            return
        for index, part in enumerate(content):
            yield self._part(part, f"{place}/{index}")

    def _part(self, part: _WirePart, at: str) -> Part:
        self._note(f"part:{part.__struct_config__.tag}", at)
        for mark in ("prompt_cache_breakpoint", "cache_control"):
            if getattr(part, mark, None) is not None:
                self._note(f"part:{mark}", f"{at}/{mark}")
        if isinstance(part, wire.TextPart):
            return Text(part.text, at)
        if isinstance(part, wire.RefusalPart):
            return Refusal(part.refusal, at)
        if isinstance(part, wire.AudioPart):
            return Audio(Inline(f"audio/{part.input_audio.format}", part.input_audio.data), at)
        return self._image(part.image_url, at) if isinstance(part, wire.ImagePart) else self._document(part.file, at)

    def _image(self, image: wire.ImageURL, at: str) -> Image:
        source = _linked(image.url, f"{at}/image_url/url")
        self._note(f"part:image_url.{'base64' if isinstance(source, Inline) else 'url'}", f"{at}/image_url/url")
        if image.detail not in {None, "auto"}:
            self._note("part:image_url.detail", f"{at}/image_url/detail")
        return Image(source, image.detail, at)

    def _document(self, file: wire.File, at: str) -> Document:
        for name in ("file_data", "file_id", "filename"):
            if getattr(file, name) is not None:
                self._note(f"part:file.{name}", f"{at}/file/{name}")
        return Document(_held(file, f"{at}/file"), file.filename, at)


def _role(message: _Message) -> str:
    return str(message.__struct_config__.tag)


def _linked(url: str, at: str) -> Source:
    if url[:5].lower() != "data:":
        return Link(url)
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise RequestError(Code.MALFORMED_BODY, "a data URL holds base64", pointer=at)
    return Inline(found[1], found[2])


def _held(file: wire.File, at: str) -> Source:
    """A file's bytes or id. Without `data:` before it, the text is base64 of a type unsaid."""
    if file.file_data is not None:
        return _linked(file.file_data, f"{at}/file_data") if file.file_data[:5].lower() == "data:" else Inline("", file.file_data)
    return Stored(there(file.file_id, at))


_LIFTERS: Final[dict[type, Callable[[_History, Any, str], Turn]]] = {
    wire.System: _History.instruction,
    wire.Developer: _History.instruction,
    wire.User: _History.user,
    wire.Assistant: _History.assistant,
    wire.Tool: _History.tool,
    wire.FunctionResult: _History.function,
}
