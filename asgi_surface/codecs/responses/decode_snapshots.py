"""Items and contents of a Responses stream that are told whole, read one by one as `read` reads an answer's. Knows nothing of what has grown."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.responses.read import read
from asgi_surface.ir import Citation, Response, Text


class _Words(Struct):
    """What an item or a content says, in the member that has it."""

    content: Any = None
    arguments: Any = None
    input: Any = None
    text: Any = None
    refusal: Any = None


_WORDS: Final = msgspec.json.Decoder(_Words)


def read_item(item: bytes) -> Response:
    """An item, of an answer that may yet be cut. Raises `ValueError` when its words or its arguments cannot be read."""
    return read(b'{"status":"incomplete","output":[%b]}' % item)


def message(content: Raw) -> bytes:
    """The item of a content alone."""
    return b'{"type":"message","content":[%b]}' % content


def says(raw: Raw | bytes) -> bool:
    """Whether an item or a content holds words. What is no object holds none."""
    said = reading.decode(_WORDS, bytes(raw)) if bytes(raw).startswith(b"{") else _Words()
    return any((said.content, said.arguments, said.input, said.text, said.refusal))


def is_of_message(content: Raw) -> bool:
    """Whether a content is of a kind that messages have, if it can be read."""
    try:
        return bool(read_item(message(content)).parts)
    except ValueError:
        return True


def sources(annotation: Raw) -> tuple[Citation, ...]:
    """The source that an annotation is; none where it is something else."""
    (text,) = read_item(message(Raw(b'{"type":"output_text","text":"-","annotations":[%b]}' % annotation))).parts
    return text.citations if isinstance(text, Text) else ()
