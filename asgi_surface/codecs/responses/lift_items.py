"""Lifts the input of a Responses request: items become the turns of a conversation.

The items of one model turn (reasoning, calls, messages) are one assistant turn; neighbouring outputs are one user turn. Knows nothing of settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from asgi_surface import ir, seals
from asgi_surface.codecs import strict
from asgi_surface.codecs.responses import intake, wire
from asgi_surface.codecs.responses.intake import Notes
from asgi_surface.codecs.slots import owned
from asgi_surface.surfaces import RESPONSES

_TEXT: Final = Decoder(str)
_INSTRUCTIONS: Final = frozenset({ir.Role.SYSTEM, ir.Role.DEVELOPER})
_MEDIA: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}


class _Piece(Struct, frozen=True):
    """What one item gives to a turn. Neighbours with one `group` are one turn."""

    role: ir.Role
    parts: tuple[ir.Part, ...]
    at: str
    group: str


def turns(raw: Raw, notes: Notes) -> Iterator[ir.Turn]:
    """The turns of `input`, a text or a list of items."""
    if intake.is_text(raw):
        yield ir.Turn(ir.Role.USER, (ir.Text(strict.decode(_TEXT, raw, "/input"), "/input"),), "/input")
        return
    for _, pieces in itertools.groupby(_pieces(raw, notes), key=lambda piece: piece.group):
        first, *rest = pieces
        yield ir.Turn(first.role, owned((*first.parts, *(part for piece in rest for part in piece.parts))), first.at)


def _pieces(raw: Raw, notes: Notes) -> Iterator[_Piece]:
    begun = False
    for index, item in enumerate(intake.elements(raw, "/input")):
        at = f"/input/{index}"
        kind = notes.kind("item:", intake.item_kind(item, at), at)
        if (reader := _ITEMS.get(kind)) is not None:
            piece = reader(item, at, notes)
            instructs = piece.role in _INSTRUCTIONS
            if instructs and begun:  # instructions in mid-conversation have a row of their own
                notes.note(f"role:{piece.role}.mid", at)
            begun = begun or not instructs
            yield piece


def _message(raw: Raw, at: str, notes: Notes) -> _Piece:
    message = intake.read(wire.Message, raw, "item:message", at, notes)
    role = ir.Role(notes.kind("role:", message.role, f"{at}/role"))
    parts = content(message.content, f"{at}/content", notes)
    return _Piece(role, parts, at, "model" if role is ir.Role.ASSISTANT else at)


def _model(part: ir.Part | None, at: str) -> _Piece:
    """A piece of the model's turn. The turn's place is not the item's own, so that the item can be dropped without the turn."""
    return _Piece(ir.Role.ASSISTANT, () if part is None else (part,), f"{at}/type", "model")


def _function_call(raw: Raw, at: str, notes: Notes) -> _Piece:
    call = intake.read(wire.FunctionCall, raw, "item:function_call", at, notes)
    return _model(ir.Call(call.call_id, call.name, call.arguments, namespace=call.namespace, at=at), at)


def _custom_call(raw: Raw, at: str, notes: Notes) -> _Piece:
    call = intake.read(wire.CustomCall, raw, "item:custom_tool_call", at, notes)
    return _model(ir.Call(call.call_id, call.name, call.input, form=ir.Form.CUSTOM, namespace=call.namespace, at=at), at)


def _output(form: ir.Form, construct: str) -> Callable[[Raw, str, Notes], _Piece]:
    def reader(raw: Raw, at: str, notes: Notes) -> _Piece:
        output = intake.read(wire.Output, raw, construct, at, notes)
        parts = _given(output.output, construct, f"{at}/output", notes)
        return _Piece(ir.Role.USER, (ir.Result(output.call_id, parts, form=form, name=output.name, at=at),), f"{at}/type", "results")

    return reader


_MEDIA_IN: Final[Mapping[type[Any], str]] = {ir.Image: "image", ir.Document: "file"}


def _given(raw: Raw, construct: str, at: str, notes: Notes) -> tuple[ir.Text | ir.Image | ir.Document, ...]:
    """What a tool gave: text, images and files. Not every surface's results hold what its messages hold."""
    parts = content(raw, at, notes)
    for part in parts:
        if (kind := _MEDIA_IN.get(type(part))) is not None:
            notes.note(f"{construct}.{kind}", part.at)
    fit = tuple(part for part in parts if isinstance(part, ir.Text | ir.Image | ir.Document))
    if len(fit) < len(parts):
        raise strict.unknown(next(part.at for part in parts if part not in fit))
    return fit


def _reasoning(raw: Raw, at: str, notes: Notes) -> _Piece:
    """The reasoning itself where it is shown (`content`), else its summary; paragraphs apart, as the API shows them."""
    item = intake.read(wire.ReasoningItem, raw, "item:reasoning", at, notes)
    text = "\n\n".join(part.text for part in item.content or item.summary or ())
    if not item.encrypted_content:
        notes.note(f"item:reasoning.{'unsealed' if text else 'empty'}", at)
        return _model(ir.Reasoning(text, at=at) if text else None, at)
    seal = seals.received(item.encrypted_content, ir.SealKind.ENCRYPTED, RESPONSES)
    return _model(ir.Reasoning(text, structs.replace(seal, id=seal.id or item.id or ""), at), at)


_ITEMS: Final[Mapping[str, Callable[[Raw, str, Notes], _Piece]]] = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "function_call_output": _output(ir.Form.FUNCTION, "item:function_call_output"),
    "custom_tool_call_output": _output(ir.Form.CUSTOM, "item:custom_tool_call_output"),
    "reasoning": _reasoning,
}


def content(raw: Raw, at: str, notes: Notes) -> tuple[ir.Part, ...]:
    """The parts of a content or an output, a text or a list."""
    if intake.is_text(raw):
        return (ir.Text(strict.decode(_TEXT, raw, at), at),)
    return tuple(_part(part, f"{at}/{index}", notes) for index, part in enumerate(intake.elements(raw, at)))


def _part(raw: Raw, at: str, notes: Notes) -> ir.Part:
    kind = notes.kind("part:", intake.kind_of(raw, at), at)
    shape, made = _PARTS[kind]
    return made(intake.read(shape, raw, f"part:{kind}", at, notes), at, notes)


def _text(part: wire.InputText | wire.OutputText | wire.PlainText, at: str, _notes: Notes) -> ir.Text:
    return ir.Text(part.text, at)


def _refusal(part: wire.RefusalPart, at: str, _notes: Notes) -> ir.Refusal:
    return ir.Refusal(part.refusal, at)


def _image(part: wire.InputImage, at: str, notes: Notes) -> ir.Image:
    """`auto` is the default detail, so it says nothing."""
    if part.detail == "original":
        notes.note("part:input_image.detail.original", f"{at}/detail")
    return ir.Image(_source(at, url=part.image_url, stored=part.file_id), None if part.detail == "auto" else part.detail, at)


def _file(part: wire.InputFile, at: str, _notes: Notes) -> ir.Document:
    return ir.Document(_source(at, url=part.file_url, stored=part.file_id, data=part.file_data), part.filename, at)


def _audio(part: wire.InputAudio, at: str, _notes: Notes) -> ir.Audio:
    return ir.Audio(ir.Inline(_MEDIA[part.input_audio.format], part.input_audio.data), at)


def _source(at: str, *, url: str | None, stored: str | None, data: str | None = None) -> ir.Source:
    """Where the bytes are. Raises `RequestError` unless exactly one place is named: which one the API would take is not known."""
    sources: list[ir.Source] = [_located(url, at)] if url else []
    sources += [ir.Stored(stored)] if stored else []
    sources += [_inline(data, at)] if data else []
    if len(sources) != 1:
        raise strict.unknown(at)
    return sources[0]


def _located(url: str, at: str) -> ir.Source:
    return _inline(url, at) if url[:5].lower() == "data:" else ir.Link(url)


def _inline(data: str, at: str) -> ir.Inline:
    """Bare base64, or a data URL of it."""
    head, comma, body = data.partition(",")
    media, base64, _ = head[5:].partition(";base64")
    if comma and not base64:
        raise strict.unknown(at)
    return ir.Inline(media, body) if comma else ir.Inline("", data)


_PARTS: Final[Mapping[str, tuple[type[Any], Callable[[Any, str, Notes], ir.Part]]]] = {
    "input_text": (wire.InputText, _text),
    "output_text": (wire.OutputText, _text),
    "text": (wire.PlainText, _text),
    "refusal": (wire.RefusalPart, _refusal),
    "input_image": (wire.InputImage, _image),
    "input_file": (wire.InputFile, _file),
    "input_audio": (wire.InputAudio, _audio),
}
