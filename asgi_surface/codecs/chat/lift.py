"""Lifts a Chat Completions request: every member is understood, or refused with its pointer. Knows no other surface.

The history is lifted in `lift_turns`, tools and their choice in `lift_tools`, scalar wishes in `lift_settings`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw, structs
from msgspec.json import Decoder

from asgi_surface.codecs.base import Lifted
from asgi_surface.codecs.chat.lift_settings import efforts, settings
from asgi_surface.codecs.chat.lift_tools import choice, tools
from asgi_surface.codecs.chat.lift_turns import turns
from asgi_surface.codecs.chat.wire import ABSENT, ResponseFormat, StreamOptions
from asgi_surface.codecs.strict import decode
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Format, Request, Settings
from asgi_surface.members import Members
from asgi_surface.verdicts import Mention

_FORMAT: Final = Decoder(ResponseFormat)
_STREAM_OPTIONS: Final = Decoder(StreamOptions)


def lift(members: Members, stream: bool) -> Lifted:
    """The request in no surface's words. Raises `RequestError` with the pointer of what cannot be understood."""
    given = {name: raw for name, raw in members.items() if bytes(raw) != b"null"}
    notes: list[Mention] = []
    options = _stream_options(given.get("stream_options"), notes)
    request = Request(
        turns=turns(given.get("messages", ABSENT), notes),
        tools=tools(given, notes),
        choice=choice(given, notes),
        settings=_padded(settings(given, notes), options.include_obfuscation),
        effort=efforts(given, notes),
        format=_format(given.get("response_format"), notes),
        stream=stream,
        include_usage=bool(options.include_usage),
    )
    return Lifted(request, tuple(notes))


def _stream_options(raw: Raw | None, notes: list[Mention]) -> StreamOptions:
    options = StreamOptions() if raw is None else decode(_STREAM_OPTIONS, raw, "/stream_options")
    said = [name for name in ("include_usage", "include_obfuscation") if getattr(options, name) is not None]
    notes.extend(Mention(f"field:stream_options.{name}", f"/stream_options/{name}") for name in said)
    return options


def _padded(said: Settings, padding: bool | None) -> Settings:
    at = {**said.at, "obfuscation": "/stream_options/include_obfuscation"}
    return said if padding is None else structs.replace(said, obfuscation=padding, at=at)


def _format(raw: Raw | None, notes: list[Mention]) -> Format | None:
    at = "/response_format"
    said = decode(_FORMAT, raw, at) if raw is not None else ResponseFormat("text")
    if said.type == "text":
        return None
    notes.append(Mention(f"field:response_format.{said.type}", at))
    if said.type == "json_object":
        return Format(None, at=at)
    schema = said.json_schema
    if schema is None:
        raise RequestError(Code.MALFORMED_BODY, "the schema is missing", pointer=at)
    labels = [name for name in ("name", "description", "strict") if getattr(schema, name)]
    notes.extend(Mention(f"field:response_format.json_schema.{name}", f"{at}/json_schema/{name}") for name in labels)
    # Absent, the schema is that of anything; strict is off unless said.
    text = Raw(b"{}") if bytes(schema.schema) == b"null" else schema.schema
    return Format(text, schema.name, schema.description, bool(schema.strict), at)
