"""Turns and parts as messages and blocks: grouped by role, results first in their turn, empty words left out, seals only for who minted them.

Knows nothing of a request's settings.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface import ir
from asgi_surface.codecs.base import Target
from asgi_surface.codecs.spelling import Names
from asgi_surface.codecs.wrapping import wrapped
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import MESSAGES, Feature

Block = dict[str, Any]

INSTRUCTIONS: Final = (ir.Role.SYSTEM, ir.Role.DEVELOPER)
"""The roles whose turns Messages calls system."""

PLAIN: Final = "text/plain"
"""The media type of every document that is text."""

_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


class Scope(Struct, frozen=True):
    """What a part's writing depends on beside it. `calls` says how each call's id is written."""

    names: Names
    calls: Mapping[str, str]
    target: Target


def refused(why: str, at: str) -> RequestError:
    """The error of something that Messages cannot say, at the client's pointer."""
    return RequestError(Code.UNREPRESENTABLE, why, pointer=at)


def system(turns: Iterable[ir.Turn], scope: Scope) -> list[Block]:
    """The blocks of the top-level system prompt."""
    return [block for turn in turns for block in _turn(turn, scope)]


def messages(turns: Iterable[ir.Turn], scope: Scope) -> list[Block]:
    """The messages, neighbours of one role as one, and in it the results first: the API refuses a result that stands behind anything else."""
    said = [_Said(_role(turn, scope), turn, blocks) for turn in turns if (blocks := _turn(turn, scope))]
    placed = [one for by_model, run in groupby(said, key=_is_model) for one in (run if by_model else _instructing(list(run)))]
    written = [(one.role, block) for one in placed for block in one.blocks]
    grouped = groupby(written, key=lambda pair: pair[0])
    return [{"role": role, "content": sorted((block for _, block in pairs), key=_behind_results)} for role, pairs in grouped]


def is_thoughtless(said: Sequence[Block]) -> bool:
    """Whether the messages end with results of calls, and nothing that the model said since the user's words before begins with a thought."""
    talk = [message for message in said if message["role"] != "system"]
    if not talk or talk[-1]["content"][0]["type"] != "tool_result":
        return False
    loop = takewhile(_is_of_a_loop, reversed(talk[:-1]))
    return not any(message["content"][0]["type"] in _THOUGHTS for message in loop)


def _is_of_a_loop(message: Block) -> bool:
    return all(block["type"] == "tool_result" for block in message["content"]) or message["role"] == "assistant"


class _Said(Struct, frozen=True):
    role: str
    turn: ir.Turn
    blocks: list[Block]


def _is_model(said: _Said) -> bool:
    return said.turn.role is ir.Role.ASSISTANT


def _instructing(run: list[_Said]) -> list[_Said]:
    """What stands between two turns of the model. The API takes instructions only behind a user's turn, and nothing but the model's behind them.

    (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages)
    """
    if all(one.turn.role in INSTRUCTIONS for one in run):
        raise refused("an instruction between turns stands behind a user's turn", run[0].turn.at)
    return sorted(run, key=lambda one: one.turn.role in INSTRUCTIONS)


def _behind_results(block: Block) -> bool:
    return bool(block["type"] != "tool_result")


def _role(turn: ir.Turn, scope: Scope) -> str:
    if turn.role not in INSTRUCTIONS:
        return turn.role
    if Feature.MID_CONVERSATION_SYSTEM not in scope.target.features:
        raise refused("this upstream takes instructions only before the conversation", turn.at)
    return "system"


def _turn(turn: ir.Turn, scope: Scope) -> list[Block]:
    """The blocks of a turn. The API refuses empty words, so they are left out; a user's turn of nothing else cannot be said."""
    blocks = [block for part in turn.parts for block in _placed(part, turn.role, scope)]
    if not blocks and turn.role is ir.Role.USER:
        raise refused("a user turn without content cannot be said", turn.at)
    return blocks


def _placed(part: ir.Part, role: ir.Role, scope: Scope) -> Iterable[Block]:
    writer = _WRITERS[role].get(type(part))
    if writer is None:
        raise refused(f"{type(part).__name__.lower()} cannot stand in a turn of role {role}", part.at)
    return writer(part, scope)


def _text(part: ir.Text | ir.Refusal, _: Scope) -> Iterator[Block]:
    if part.text:
        yield {"type": "text", "text": part.text}


def _image(part: ir.Image, _: Scope) -> Iterator[Block]:
    yield {"type": "image", "source": _image_source(part.source, part.at)}


def _image_source(source: ir.Source, at: str) -> Block:
    match source:
        case ir.Inline(media, data) if media in _IMAGES:
            return {"type": "base64", "media_type": media, "data": data}
        case ir.Link(url):
            return {"type": "url", "url": url}
        case ir.Stored():
            raise refused("the file is at another provider", at)
        case _:
            raise refused("Messages takes JPEG, PNG, GIF and WebP images", at)


def _document(part: ir.Document, _: Scope) -> Iterator[Block]:
    titled = {} if part.name is None else {"title": part.name}
    yield {"type": "document", "source": _document_source(part.source, part.at)} | titled


def _document_source(source: ir.Source, at: str) -> Block:
    match source:
        case ir.Inline("application/pdf" as media, data):
            return {"type": "base64", "media_type": media, "data": data}
        case ir.Inline(media, data) if media.startswith("text/"):
            return {"type": "text", "media_type": PLAIN, "data": _words(data, at)}
        case ir.Link(url):
            return {"type": "url", "url": url}
        case ir.Stored():
            raise refused("the file is at another provider", at)
        case _:
            raise refused("Messages takes PDF and plain text documents", at)


def _words(data: str, at: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        raise refused("the document is not base64 of UTF-8 text", at) from None


def _call(part: ir.Call, scope: Scope) -> Iterator[Block]:
    if part.seal is not None:
        yield from _sealed("", part.seal, part.at, scope)
    yield {"type": "tool_use", "id": scope.calls[part.id], "name": scope.names.of(part), "input": _input(part)}


def _input(part: ir.Call) -> Raw:
    """The arguments, byte for byte; free text stands in the one member of the function that carries it."""
    if part.form is ir.Form.CUSTOM:
        return Raw(wrapped(part.arguments).encode())
    try:
        _OBJECT.decode(part.arguments or "{}")
    except msgspec.DecodeError:
        raise refused("the arguments of the call are no JSON object", part.at) from None
    return Raw((part.arguments or "{}").encode())


def _result(part: ir.Result, scope: Scope) -> Iterator[Block]:
    content = [block for inner in part.parts for block in _placed(inner, ir.Role.USER, scope)]
    block: Block = {"type": "tool_result", "tool_use_id": scope.calls[part.call_id]}
    yield block | ({"content": content} if content else {}) | ({"is_error": True} if part.failed else {})


def _reasoning(part: ir.Reasoning, scope: Scope) -> Iterator[Block]:
    """Thinking goes back with its seal: the API refuses a block that it did not sign, so mere text is left out where the server is not another's."""
    if part.seal is not None and part.seal.kind is not ir.SealKind.TEXT:
        yield from _sealed(part.text, part.seal, part.at, scope)
    elif part.text and not scope.target.dialect.signatures:
        yield {"type": "thinking", "thinking": part.text}


def _sealed(text: str, seal: ir.Seal, at: str, scope: Scope) -> Iterator[Block]:
    if (seal.surface, seal.domain) != (MESSAGES, scope.target.seal_domain):
        raise refused("seal:foreign: reasoning goes back only to who sealed it", seal.at or at)
    if seal.kind is ir.SealKind.REDACTED:
        yield {"type": "redacted_thinking", "data": seal.token}
    else:
        yield {"type": "thinking", "thinking": text, "signature": seal.token}


_Writer = Callable[[Any, Scope], Iterable[Block]]
_SYSTEM: Final[dict[type, _Writer]] = {ir.Text: _text}
# A result stands in a user's turn, and in it what a user may say.
_USER: Final[dict[type, _Writer]] = {ir.Text: _text, ir.Image: _image, ir.Document: _document, ir.Result: _result}
_ASSISTANT: Final[dict[type, _Writer]] = {ir.Text: _text, ir.Refusal: _text, ir.Call: _call, ir.Reasoning: _reasoning}
_WRITERS: Final[dict[ir.Role, dict[type, _Writer]]] = {
    ir.Role.SYSTEM: _SYSTEM,
    ir.Role.DEVELOPER: _SYSTEM,
    ir.Role.USER: _USER,
    ir.Role.ASSISTANT: _ASSISTANT,
}
