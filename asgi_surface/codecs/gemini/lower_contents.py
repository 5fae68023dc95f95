"""Turns as Gemini's contents. Knows nothing of settings or tools, nor of client surfaces."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface import ir
from asgi_surface.codecs.base import Target
from asgi_surface.codecs.gemini.parts import Json, signed
from asgi_surface.codecs.spelling import Names
from asgi_surface.codecs.wrapping import wrapped
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members
from asgi_surface.seals import STAND_IN
from asgi_surface.surfaces import GEMINI
from asgi_surface.verdicts import Mention

_OBJECT: Final = msgspec.json.Decoder(Members)
_MADE: Final = re.compile(r"asf_call_[0-9]+_")
"""How the ids begin under which clients of other surfaces got calls that came without one."""
INSTRUCTIONS: Final = frozenset({ir.Role.SYSTEM, ir.Role.DEVELOPER})
"""The roles that instruct."""
LATE: Final = "[system] "
"""What stands before an instruction between turns: Gemini has none there, so it is said in its place as the user's text."""
# Text has no seal of its own, so its token stands before it as reasoning without words. A call has: a token that only stands before one is not its.
_CARRIERS: Final = (ir.Text, ir.Image, ir.Document, ir.Audio)


def refused(why: str, at: str) -> RequestError:
    """The error for what Gemini cannot say, at the client's pointer."""
    return RequestError(Code.UNREPRESENTABLE, why, pointer=at)


class Contents:
    """Says the turns of one request, and remembers its calls: Gemini names the function on each result.

    `emulated` takes results out of their order, and calls under a stand-in for a token.
    """

    def __init__(self, target: Target, names: Names, emulated: list[Mention]) -> None:
        self._target = target
        self._names = names
        self._emulated = emulated
        self._calls: dict[str, tuple[int, ir.Call]] = {}
        self._writers: dict[type[ir.Part], Callable[[Any], Json]] = {
            ir.Text: _text,
            ir.Refusal: _text,
            ir.Reasoning: _thought,
            ir.Image: self._media,
            ir.Document: self._media,
            ir.Audio: self._media,
            ir.Call: self._call,
            ir.Result: self._result,
        }

    def said(self, turns: Sequence[ir.Turn]) -> list[Json]:
        """The contents: a model's neighbouring turns are one, so that its calls stand together, and so are the results that answer them."""
        groups = itertools.groupby(enumerate(turns), lambda placed: _group(*placed))
        return [content for _, group in groups for content in self._content([turn for _, turn in group])]

    def _content(self, turns: Sequence[ir.Turn]) -> Iterator[Json]:
        role = "model" if turns[0].role is ir.Role.ASSISTANT else "user"
        if said := _late(turns[0]) if turns[0].role in INSTRUCTIONS else self._parts(turns):
            yield {"role": role, "parts": said}

    def _parts(self, turns: Sequence[ir.Turn]) -> list[Json]:
        parts = [_plain(part) for turn in turns for part in turn.parts]
        for part in parts:
            if isinstance(part, ir.Call):
                self._calls[part.id] = (len(self._calls), part)
        given = [part for part in parts if isinstance(part, ir.Result)]
        results = sorted(given, key=self._order)
        self._emulated += (Mention("order:result", part.at) for part, other in zip(results, given, strict=True) if part is not other)
        places = iter(results)
        parts = [next(places) if isinstance(part, ir.Result) else part for part in parts]
        unsigned = self._unsigned(parts)
        return list(
            signed(
                parts,
                lambda part: self._writers[type(part)](part),
                lambda part: STAND_IN if part is unsigned else self._token(part),
                _CARRIERS,
            )
        )

    def _unsigned(self, parts: Sequence[ir.Part]) -> ir.Call | None:
        """The call that gets a stand-in: the first of a content in which nothing has a token. Gemini 3 refuses such a step.

        It looks at no step of earlier questions, but these get theirs too: so a history stays the same bytes from turn to turn.
        """
        first = next((part for part in parts if isinstance(part, ir.Call)), None)
        if first is None or self._target.dialect.unsigned_calls == "bare" or any(map(self._token, parts)):
            return None
        self._emulated.append(Mention("call:unsigned", first.at))
        return first

    def _order(self, result: ir.Result) -> int:
        """Results stand as their calls did: an upstream that drops ids pairs them by order."""
        return self._calls[result.call_id][0] if result.call_id in self._calls else -1

    def _token(self, part: ir.Part) -> str | None:
        """The token of Gemini's own. One that came bare can only be from the slot that Chat keeps for Google."""
        seal = part.seal if isinstance(part, ir.Reasoning | ir.Call) else None
        if seal is None:
            return None
        if seal.surface != GEMINI or seal.domain not in {"", self._target.seal_domain}:
            raise refused("seal:foreign: another upstream minted this reasoning", seal.at or part.at)
        return seal.token

    def _call(self, call: ir.Call) -> Json:
        return {"functionCall": _identity(call) | {"name": self._names.of(call), "args": _arguments(call)}}

    def _result(self, result: ir.Result) -> Json:
        _, call = self._calls.get(result.call_id, (0, None))
        name = result.name if call is None else self._names.of(call)
        if name is None:
            raise refused("a result that answers no call", result.at)
        text = "\n".join(part.text for part in result.parts if isinstance(part, ir.Text))
        said: Json = {"id": result.call_id} if call is None else _identity(call)
        said |= {"name": name, "response": {"error" if result.failed else "output": text}}
        media = [self._media(part) for part in result.parts if not isinstance(part, ir.Text)]
        return {"functionResponse": said | ({"parts": media} if media else {})}

    def _media(self, part: ir.Image | ir.Document | ir.Audio) -> Json:
        source = part.source
        if isinstance(source, ir.Inline) and source.media:
            return {"inlineData": {"mimeType": source.media, "data": source.data}}
        if isinstance(source, ir.Link) and self._target.dialect.remote_images:
            return {"fileData": {"fileUri": source.url} | ({"mimeType": source.media} if source.media else {})}
        raise refused(f"Gemini cannot take this {type(part).__name__.lower()} from {_WHENCE[type(source)]}", part.at)


_WHENCE: Final = {ir.Inline: "bytes without a media type", ir.Link: "a URL", ir.Stored: "another provider's file store"}


def _group(index: int, turn: ir.Turn) -> tuple[str, int]:
    """Turns with equal keys, one after another, are one content."""
    if turn.role is ir.Role.ASSISTANT:
        return "model", 0
    results = turn.role is ir.Role.USER and all(isinstance(part, ir.Result) for part in turn.parts)
    return ("results", 0) if results else ("user", index)


def instruction(part: ir.Part) -> Json:
    """A part of an instruction."""
    if not isinstance(part, ir.Text):
        raise refused("instructions are text", part.at)
    return {"text": part.text}


def _late(turn: ir.Turn) -> list[Json]:
    said = [instruction(part) for part in turn.parts]
    return [{"text": LATE + part["text"]} for part in said[:1]] + said[1:]


def _identity(call: ir.Call) -> Json:
    """The call's id. One that the gateway made stands for none: the upstream gave none, and Vertex refuses any."""
    return {} if call.minted or _MADE.match(call.id) else {"id": call.id}


def _plain(part: ir.Part) -> ir.Part:
    """A part whose seal is only an envelope of words, as those words."""
    if isinstance(part, ir.Reasoning) and part.seal is not None and part.seal.kind is ir.SealKind.TEXT:
        return structs.replace(part, text=part.text or part.seal.token, seal=None)
    return part


def _text(part: ir.Text | ir.Refusal) -> Json:
    return {"text": part.text}


def _thought(part: ir.Reasoning) -> Json:
    return {"text": part.text, "thought": True} if part.text else {"text": ""}


def _arguments(call: ir.Call) -> Raw:
    if call.form is ir.Form.CUSTOM:
        return Raw(wrapped(call.arguments).encode())
    try:
        _OBJECT.decode(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        raise refused("Gemini takes the arguments of a call as an object", call.at) from None
    return Raw((call.arguments or "{}").encode())
