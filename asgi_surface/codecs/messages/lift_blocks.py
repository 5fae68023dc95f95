"""Content blocks of a Messages request in no surface's words. Blocks that no other surface can say are named, and left to the table of verdicts.

Knows nothing of turns, settings or targets.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface import ir, seals
from asgi_surface.codecs import strict
from asgi_surface.codecs.messages import wire
from asgi_surface.codecs.messages.verdicts import ROWS
from asgi_surface.codecs.slots import owned
from asgi_surface.surfaces import MESSAGES
from asgi_surface.verdicts import Mention


class Notes:
    """The constructs met so far, in the client's order."""

    def __init__(self) -> None:
        self.mentions: list[Mention] = []

    def __call__(self, construct: str, at: str) -> None:
        """Notes one construct and the JSON pointer of where it stands."""
        self.mentions.append(Mention(construct, at))

    def attributes(self, construct: str, node: Struct, at: str, names: tuple[str, ...]) -> None:
        """Notes those members of `node` among `names` that say something."""
        for name in names:
            if getattr(node, name, None) not in _HARMLESS:
                self(f"{construct}.{name}", f"{at}/{name}")


_Lifter = Callable[[Raw, str, Notes], ir.Part | None]

# Values that mean the same as leaving the member out.
_HARMLESS: Final[tuple[object, ...]] = (
    None,
    False,
    [],
    ["direct"],
    wire.Caller("direct"),
    wire.Citations(),
    wire.Citations(enabled=False),
    wire.Transformations(),
    wire.Transformations("downsize"),
)
_ATTRIBUTES: Final = ("citations", "title", "context", "transformations", "caller", "is_error", "toolset_name", "cache_control")

_TYPED: Final = Decoder(wire.Typed)
_TEXT: Final = Decoder(wire.TextBlock)
_IMAGE: Final = Decoder(wire.ImageBlock)
_DOCUMENT: Final = Decoder(wire.DocumentBlock)
_THINKING: Final = Decoder(wire.ThinkingBlock)
_REDACTED: Final = Decoder(wire.RedactedBlock)
_TOOL_USE: Final = Decoder(wire.ToolUseBlock)
_TOOL_RESULT: Final = Decoder(wire.ToolResultBlock)
_TOOL_REFERENCE: Final = Decoder(wire.ToolReferenceBlock)


def content(said: str | list[Raw] | None, at: str, notes: Notes) -> tuple[ir.Part, ...]:
    """The parts of a message's content, a string or blocks."""
    return owned(_blocks(said, at, notes, _LIFTERS))


def texts(said: str | list[Raw] | None, at: str, notes: Notes) -> tuple[ir.Part, ...]:
    """The parts of a system prompt's content, which holds words only."""
    return _blocks(said, at, notes, _TEXTS)


def _blocks(said: str | list[Raw] | None, at: str, notes: Notes, lifters: Mapping[str, _Lifter]) -> tuple[ir.Part, ...]:
    if isinstance(said, str):
        return (ir.Text(said, at),) if said else ()
    parts = (_block(raw, f"{at}/{index}", notes, lifters) for index, raw in enumerate(said or ()))
    return tuple(part for part in parts if part is not None)


def _block(raw: Raw, at: str, notes: Notes, lifters: Mapping[str, _Lifter]) -> ir.Part | None:
    kind = strict.decode(_TYPED, raw, at).type or ""
    construct = f"block:{kind}"
    if construct not in ROWS:
        raise strict.unknown(f"{at}/type")
    notes(construct, at)
    if kind in lifters:
        return lifters[kind](raw, at, notes)
    if kind in _LIFTERS or kind in _INNER:  # a type that is known, but not here
        raise strict.malformed(f"{at}/type")
    return None


def _text(raw: Raw, at: str, notes: Notes) -> ir.Text:
    block = strict.decode(_TEXT, raw, at)
    notes.attributes("block:text", block, at, _ATTRIBUTES)
    return ir.Text(block.text, at)


def _image(raw: Raw, at: str, notes: Notes) -> ir.Image | None:
    block = strict.decode(_IMAGE, raw, at)
    notes.attributes("block:image", block, at, _ATTRIBUTES)
    source = _source("block:image", block.source, at, notes)
    return None if source is None else ir.Image(source, at=at)


def _document(raw: Raw, at: str, notes: Notes) -> ir.Document | None:
    block = strict.decode(_DOCUMENT, raw, at)
    notes.attributes("block:document", block, at, _ATTRIBUTES)
    source = _source("block:document", block.source, at, notes)
    return None if source is None else ir.Document(source, block.title, at)


def _source(
    construct: str, source: wire.Base64 | wire.Url | wire.PlainText | wire.Content | wire.File, at: str, notes: Notes
) -> ir.Inline | ir.Link | None:
    """The source; None where no other surface can say it."""
    notes(f"{construct}.{source.__struct_config__.tag}", f"{at}/source")
    match source:
        case wire.Base64():
            return ir.Inline(source.media_type, source.data)
        case wire.PlainText():
            return ir.Inline(source.media_type, base64.b64encode(source.data.encode()).decode())
        case wire.Url():
            return ir.Link(source.url)
        case _:
            return None


def _thinking(raw: Raw, at: str, notes: Notes) -> ir.Reasoning:
    block = strict.decode(_THINKING, raw, at)
    if not block.signature:
        notes("block:thinking.unsealed", at)
        return ir.Reasoning(block.thinking, None, at)
    seal = _seal(block.signature, ir.SealKind.SIGNATURE, f"{at}/signature", notes)
    # Where the client asked for no thinking to be shown, its words are in the envelope only.
    hidden = seal.token if seal.kind is ir.SealKind.TEXT else ""
    return ir.Reasoning(block.thinking or hidden, seal, at)


def _redacted(raw: Raw, at: str, notes: Notes) -> ir.Reasoning:
    block = strict.decode(_REDACTED, raw, at)
    return ir.Reasoning("", _seal(block.data, ir.SealKind.REDACTED, f"{at}/data", notes), at)


def _seal(text: str, kind: ir.SealKind, at: str, notes: Notes) -> ir.Seal:
    seal = seals.received(text, kind, MESSAGES)
    notes(f"seal:{seal.kind}", at)
    return seal


def _tool_use(raw: Raw, at: str, notes: Notes) -> ir.Call:
    block = strict.decode(_TOOL_USE, raw, at)
    notes.attributes("block:tool_use", block, at, _ATTRIBUTES)
    return ir.Call(block.id, block.name, bytes(strict.as_object(block.input, f"{at}/input")).decode(), at=at)


def _tool_result(raw: Raw, at: str, notes: Notes) -> ir.Result:
    block = strict.decode(_TOOL_RESULT, raw, at)
    notes.attributes("block:tool_result", block, at, _ATTRIBUTES)
    parts = _blocks(block.content, f"{at}/content", notes, _INNER)
    kept = tuple(part for part in parts if isinstance(part, ir.Text | ir.Image | ir.Document))
    return ir.Result(block.tool_use_id, kept, bool(block.is_error), at=at)


def _result_image(raw: Raw, at: str, notes: Notes) -> ir.Image | None:
    notes("block:tool_result.image", at)
    return _image(raw, at, notes)


def _result_document(raw: Raw, at: str, notes: Notes) -> ir.Document | None:
    notes("block:tool_result.document", at)
    return _document(raw, at, notes)


def _tool_reference(raw: Raw, at: str, notes: Notes) -> ir.Text:
    block = strict.decode(_TOOL_REFERENCE, raw, at)
    notes.attributes("block:tool_reference", block, at, _ATTRIBUTES)
    return ir.Text(block.tool_name, at)


_TEXTS: Final[dict[str, _Lifter]] = {"text": _text}
_LIFTERS: Final[dict[str, _Lifter]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
_INNER: Final[dict[str, _Lifter]] = {
    "text": _text,
    "image": _result_image,
    "document": _result_document,
    "tool_reference": _tool_reference,
}
