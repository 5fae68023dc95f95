"""What a Gemini request asks of its upstream, read from as little of the body as possible.

Proto JSON takes each name in camelCase and in snake_case, a number as a string, and a lone value where a list is due. So objects are read name by
name and by tables of camelCase names, and pointers keep the client's spelling. Knows nothing of routes, policies or other surfaces, and changes no
byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from asgi_surface import seals
from asgi_surface.codecs.base import Demand, Needs
from asgi_surface.errors import RequestError
from asgi_surface.members import Members, read, token
from asgi_surface.surfaces import Feature

T = TypeVar("T")
_Object = dict[str, Raw]
_Demands = Iterator[tuple[Feature, str]]
_Reader = Callable[[Raw, str], _Demands]
"""Reads one value, not null, that stands at a pointer."""


class _Content(Struct, frozen=True):
    parts: list[_Object] | _Object | None = None


class _Blob(Struct, frozen=True):
    """Data or a file, by its two spellings of one name."""

    camel: str | None = field(name="mimeType", default=None)
    snake: str | None = field(name="mime_type", default=None)


_CONTENTS: Final = Decoder(list[_Content] | _Content | None)
_CONTENT: Final = Decoder(_Content)
_BLOB: Final = Decoder(_Blob)
_OBJECT: Final = Decoder(_Object)
_OBJECTS: Final = Decoder(list[_Object] | _Object | None)
_STRING: Final = Decoder(str)
_STRINGS: Final = Decoder(list[str] | str)
_NUMBER: Final = Decoder(float, strict=False)
_FLAG: Final = Decoder(bool)

_NULL: Final = Raw(b"null")
_UNSAID: Final = re.compile(rb"null|\[\s*\]")
_SNAKE: Final = re.compile(r"(?<=[a-zA-Z0-9])_([a-z0-9])")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def canonical(name: str) -> str:
    """The proto JSON name: `system_instruction` as `systemInstruction`. A name in camelCase stays as it is."""
    return _SNAKE.sub(lambda found: found[1].upper(), name)


def tool_types(raw: Raw) -> list[tuple[str, str]]:
    """Each member of each tool object: its place below `/tools` in the client's spelling, and its name in camelCase."""
    tools = _spread(read({"tools": raw}, "tools", _OBJECTS), "")
    return [(place + token(name), canonical(name)) for place, tool in tools for name, value in tool.items() if value != _NULL]


def needs(members: Members, stream: bool) -> Needs:
    """The features that a request needs, and how long its history is. Raises `RequestError` at a shape that Gemini does not know.

    The path says that an answer is streamed, so that demand points at the whole body.
    """
    contents = _spread(read(members, "contents", _CONTENTS), "/contents")
    demands = chain(
        [(Feature.STREAMING, "")] if stream else [],
        chain.from_iterable(reader(members[name], token(name)) for name, reader in _TOP.items() if members.get(name, _NULL) != _NULL),
        chain.from_iterable(_content(content, place) for place, content in contents),
    )
    first: dict[Feature, str] = {}
    for feature, pointer in demands:
        first.setdefault(feature, pointer)
    return Needs(tuple(Demand(feature, pointer) for feature, pointer in first.items()), len(contents), "/contents")


def _read(raw: Raw, decoder: Decoder[T], at: str) -> T | None:
    """The value at a pointer; to `read` it is a member with an empty name, whose own pointer is `/`."""
    try:
        return read({"": raw}, "", decoder)
    except RequestError as error:
        raise RequestError(error.code, error.message, pointer=at + (error.pointer or "")[1:]) from None


def _spread(value: list[T] | T | None, at: str) -> list[tuple[str, T]]:
    """The items of a list, or a lone value in its place, each with its pointer."""
    if isinstance(value, list):
        return [(f"{at}/{index}", item) for index, item in enumerate(value)]
    return [] if value is None else [(at, value)]


def _walk(members: _Object, at: str, readers: Mapping[str, _Reader]) -> _Demands:
    """What the members of an object ask for, each read by the reader of its name."""
    for name, value in members.items():
        reader = readers.get(name)
        if reader is not None and value != _NULL:
            yield from reader(value, f"{at}/{name}")  # no name in a table has to be escaped


def _spellings(table: Mapping[str, T]) -> dict[str, T]:
    """The table under both spellings of each of its names."""
    return {spelling: value for name, value in table.items() for spelling in (name, _CAMEL.sub(lambda found: "_" + found[1].lower(), name))}


def _object(readers: Mapping[str, _Reader]) -> _Reader:
    return lambda raw, at: _walk(_read(raw, _OBJECT, at) or {}, at, readers)


def _objects(readers: Mapping[str, _Reader]) -> _Reader:
    def reader(raw: Raw, at: str) -> _Demands:
        for place, item in _spread(_read(raw, _OBJECTS, at), at):
            yield from _walk(item, place, readers)

    return reader


def _always(feature: Feature) -> _Reader:
    return lambda _, at: iter([(feature, at)])


def _when(feature: Feature, decoder: Decoder[T], asks: Callable[[T], bool]) -> _Reader:
    def reader(raw: Raw, at: str) -> _Demands:
        value = _read(raw, decoder, at)
        if value is not None and asks(value):
            yield feature, at

    return reader


def _content(content: _Content, at: str) -> _Demands:
    parts = _spread(content.parts, f"{at}/parts")
    calls = [place for place, part in parts if not _CALLS.isdisjoint(part)]
    if len(calls) > 1:
        yield Feature.PARALLEL_TOOLS, calls[1]
    for place, part in parts:
        yield from _walk(part, place, _PART)


def _instruction(raw: Raw, at: str) -> _Demands:
    content = _read(raw, _CONTENT, at)
    return _content(content or _Content(), at)


def _tools(raw: Raw, at: str) -> _Demands:
    """A client's own functions, and whatever else a tool object names: Google runs that."""
    for place, tool in _spread(_read(raw, _OBJECTS, at), at):
        for name, value in tool.items():
            if not _UNSAID.fullmatch(value):
                feature = Feature.TOOLS if canonical(name) == "functionDeclarations" else Feature.HOSTED_TOOLS
                yield feature, place + token(name)


def _response(raw: Raw, at: str) -> _Demands:
    yield Feature.TOOLS, at
    yield from _walk(_read(raw, _OBJECT, at) or {}, at, _RESPONSE)


def _media(raw: Raw, at: str) -> _Demands:
    """Data or a file, told by its MIME type; documents, video and what has no type are files."""
    blob = _read(raw, _BLOB, at) or _Blob()
    mime = blob.camel or blob.snake or ""
    yield _MIME.get(mime.partition("/")[0].lower(), Feature.FILES), at


def _modalities(raw: Raw, at: str) -> _Demands:
    for place, modality in _spread(_read(raw, _STRINGS, at), at):
        feature = _MODALITY.get(modality.upper())
        if feature is not None:
            yield feature, place


_CALLS: Final = frozenset({"functionCall", "function_call"})
_MIME: Final = {"image": Feature.IMAGES, "audio": Feature.AUDIO}
_MODALITY: Final = {"IMAGE": Feature.IMAGES, "AUDIO": Feature.AUDIO, "VIDEO": Feature.FILES}

_MEDIA: Final[Mapping[str, _Reader]] = _spellings({"inlineData": _media, "fileData": _media})
_RESPONSE: Final[Mapping[str, _Reader]] = {"parts": _objects(_MEDIA)}
_PART: Final[Mapping[str, _Reader]] = {
    **_MEDIA,
    **_spellings(
        {
            "functionCall": _always(Feature.TOOLS),
            "functionResponse": _response,
            "thought": _when(Feature.REASONING, _FLAG, bool),
            "thoughtSignature": _when(Feature.ENCRYPTED_REASONING, _STRING, seals.proves),
            # Calls that Google's side ran; the client only plays them back.
            "executableCode": _always(Feature.HOSTED_TOOLS),
            "codeExecutionResult": _always(Feature.HOSTED_TOOLS),
            "toolCall": _always(Feature.HOSTED_TOOLS),
            "toolResponse": _always(Feature.HOSTED_TOOLS),
        }
    ),
}

# MINIMAL is as near to "no thinking" as the models with levels come; it asks nothing of an upstream that does not think.
_IDLE_LEVELS: Final = frozenset({"THINKING_LEVEL_UNSPECIFIED", "MINIMAL"})
_THINKING: Final[Mapping[str, _Reader]] = _spellings(
    {
        "includeThoughts": _when(Feature.REASONING, _FLAG, bool),
        "thinkingBudget": _when(Feature.REASONING, _NUMBER, lambda budget: budget != 0),  # 0 is off, -1 leaves it to the model
        "thinkingLevel": _when(Feature.REASONING, _STRING, lambda level: level.upper() not in _IDLE_LEVELS),
    }
)

_FORMAT: Final[Mapping[str, _Reader]] = {
    "text": _always(Feature.STRUCTURED_OUTPUT),
    "image": _always(Feature.IMAGES),
    "audio": _always(Feature.AUDIO),
    "video": _always(Feature.FILES),
}
_GENERATION: Final[Mapping[str, _Reader]] = _spellings(
    {
        "thinkingConfig": _object(_THINKING),
        "responseMimeType": _when(Feature.STRUCTURED_OUTPUT, _STRING, lambda mime: mime not in {"", "text/plain"}),
        "responseSchema": _always(Feature.STRUCTURED_OUTPUT),
        "responseJsonSchema": _always(Feature.STRUCTURED_OUTPUT),
        "_responseJsonSchema": _always(Feature.STRUCTURED_OUTPUT),  # the field's first name in the REST reference
        "responseFormat": _objects(_FORMAT),
        "responseModalities": _modalities,
        "speechConfig": _always(Feature.AUDIO),
        "imageConfig": _always(Feature.IMAGES),
        "responseLogprobs": _when(Feature.LOGPROBS, _FLAG, bool),
        "candidateCount": _when(Feature.MULTIPLE_CHOICES, _NUMBER, lambda count: count > 1),
    }
)

# In the order in which the reader of a refusal would look for the cause; the contents come after them.
_TOP: Final[Mapping[str, _Reader]] = _spellings(
    {
        "tools": _tools,
        "generationConfig": _object(_GENERATION),
        "cachedContent": _always(Feature.PROMPT_CACHE),
        "systemInstruction": _instruction,
    }
)
