"""What OpenAI's two surfaces, Chat Completions and Responses, share: the error envelope, the model list, the names of files and the words for usage.

Knows no route and no transport.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.codecs.reading import count, first, mapping
from asgi_surface.errors import GatewayError, Kind, UpstreamDetail, UpstreamError
from asgi_surface.ir import Usage

# The endings of files whose media type is not said, or named otherwise.
_ENDINGS: Final = {"": "bin", "plain": "txt"}
# OpenAI says `invalid_request_error` for nearly every 4xx, a wrong key included, and tells them apart by status and code.
TYPES: Final[dict[Kind, str]] = {
    Kind.INVALID: "invalid_request_error",
    Kind.AUTHENTICATION: "invalid_request_error",
    Kind.PERMISSION: "invalid_request_error",
    Kind.NOT_FOUND: "invalid_request_error",
    Kind.TOO_LARGE: "invalid_request_error",
    Kind.RATE_LIMIT: "rate_limit_error",
    Kind.OVERLOADED: "server_error",
    Kind.TIMEOUT: "server_error",
    Kind.UPSTREAM: "server_error",
}


def error(error: GatewayError, request_id: str) -> bytes:  # noqa: ARG001  -- OpenAI's envelope has no place for the id: it travels in a header
    """The error envelope `{"error": {"message", "type", "param", "code"}}`. Words that the upstream said itself are kept."""
    said = error.detail if isinstance(error, UpstreamError) else UpstreamDetail()
    body = {
        "message": error.text,
        "type": said.type or TYPES[error.kind],
        "param": said.param if error.pointer is None else param(error.pointer),
        "code": said.code or error.code,
    }
    return msgspec.json.encode({"error": body})


def param(pointer: str) -> str | None:
    """A JSON pointer in OpenAI's notation: `/messages/2/content` is `messages[2].content`; the whole body is None."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    place = "".join(f"[{token}]" if re.fullmatch(r"\d+", token, re.ASCII) else f".{token}" for token in tokens)
    return place.removeprefix(".") or None


def models(entries: Sequence[ModelEntry], query: ListQuery) -> bytes:  # noqa: ARG001  -- OpenAI's list has no pages
    """The model list: `{"object": "list", "data": [model, …]}`."""
    return msgspec.json.encode({"object": "list", "data": [_model(entry) for entry in entries]})


def model(entry: ModelEntry) -> bytes:
    """One model object."""
    return msgspec.json.encode(_model(entry))


def _model(entry: ModelEntry) -> dict[str, object]:
    # The wire demands `created`. A gateway does not know when a model was made: the epoch says so.
    return {"id": entry.name, "object": "model", "created": 0, "owned_by": entry.owner}


def usage(value: object) -> Usage:
    """A usage object of either surface, with the names that compatible servers use for cached tokens."""
    said = mapping(value)
    read = mapping(said.get("prompt_tokens_details") or said.get("input_tokens_details"))
    written = mapping(said.get("completion_tokens_details") or said.get("output_tokens_details"))
    reasoning = first(count(written.get("reasoning_tokens")), count(said.get("reasoning_tokens")))
    asked = first(count(said.get("prompt_tokens")), count(said.get("input_tokens")))
    answered = first(count(said.get("completion_tokens")), count(said.get("output_tokens")))
    return Usage(
        input=asked,
        output=_with_reasoning(asked, answered, reasoning, count(said.get("total_tokens"))),
        cached=first(
            count(read.get("cached_tokens")),
            count(said.get("prompt_cache_hit_tokens")),  # DeepSeek
            count(said.get("cache_read_input_tokens")),
            count(said.get("cached_tokens")),  # Moonshot
        ),
        cache_write=first(count(read.get("cache_write_tokens")), count(said.get("cache_creation_input_tokens"))),
        reasoning=reasoning,
        audio_input=count(read.get("audio_tokens")),
        audio_output=count(written.get("audio_tokens")),
    )


def _with_reasoning(asked: int | None, answered: int | None, reasoning: int | None, together: int | None) -> int | None:
    """Everything written. xAI and Google's shim leave reasoning out of `completion_tokens`; their total tells."""
    if asked is None or answered is None or not reasoning or together != asked + answered + reasoning:
        return answered
    return answered + reasoning


def file_name(media: str) -> str:
    """A name for a file's bytes that have none: both surfaces refuse them without, and read the kind off its ending."""
    kind = media.partition(";")[0].rpartition("/")[2]
    return f"file.{_ENDINGS.get(kind, kind)}"
