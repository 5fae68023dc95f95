"""The API surfaces, what each can carry at all, and the operations a client can ask of one.

Knows nothing of bytes, routes or providers. A surface is an open string, so that a codec from outside can bring its own; a feature is a closed
enum, because the planner must know what a name means.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NewType
from urllib.parse import unquote

from msgspec import Struct

Surface = NewType("Surface", str)

CHAT: Final = Surface("openai-chat-completions")
RESPONSES: Final = Surface("openai-responses")
MESSAGES: Final = Surface("anthropic-messages")
GEMINI: Final = Surface("gemini-generate-content")
ZED: Final = Surface("zed-completions")

SURFACES: Final = (CHAT, RESPONSES, MESSAGES, GEMINI, ZED)


class Feature(enum.StrEnum):
    """A semantic capability that a request can need and a binding can declare."""

    STREAMING = "streaming"
    TOOLS = "tools"
    PARALLEL_TOOLS = "parallel-tools"
    REASONING = "reasoning"
    ENCRYPTED_REASONING = "encrypted-reasoning"
    IMAGES = "images"
    FILES = "files"
    AUDIO = "audio"
    STRUCTURED_OUTPUT = "structured-output"
    HOSTED_TOOLS = "hosted-tools"
    CUSTOM_TOOLS = "custom-tools"
    PROMPT_CACHE = "prompt-cache"
    STORED_RESPONSES = "stored-responses"
    BACKGROUND = "background"
    LOGPROBS = "logprobs"
    MULTIPLE_CHOICES = "multiple-choices"
    MID_CONVERSATION_SYSTEM = "mid-conversation-system"
    COUNT_TOKENS = "count-tokens"


class Operation(enum.StrEnum):
    """What a client asks of a surface path."""

    GENERATE = "generate"
    COUNT_TOKENS = "count-tokens"
    LIST_MODELS = "list-models"
    GET_MODEL = "get-model"


_F = Feature
_NEVER: Final[dict[Surface, frozenset[Feature]]] = {
    CHAT: frozenset({_F.ENCRYPTED_REASONING, _F.STORED_RESPONSES, _F.BACKGROUND, _F.COUNT_TOKENS}),
    RESPONSES: frozenset({_F.MULTIPLE_CHOICES, _F.COUNT_TOKENS}),
    MESSAGES: frozenset({_F.CUSTOM_TOOLS, _F.STORED_RESPONSES, _F.BACKGROUND, _F.LOGPROBS, _F.MULTIPLE_CHOICES, _F.AUDIO}),
    GEMINI: frozenset({_F.CUSTOM_TOOLS, _F.STORED_RESPONSES, _F.BACKGROUND, _F.MID_CONVERSATION_SYSTEM}),
}

CARRIES: Final[dict[Surface, frozenset[Feature]]] = {surface: frozenset(Feature) - never for surface, never in _NEVER.items()}
"""What each built surface can carry at all; a binding that declares more contradicts itself."""

IMPLIES: Final[dict[Feature, Feature]] = {_F.PARALLEL_TOOLS: _F.TOOLS, _F.ENCRYPTED_REASONING: _F.REASONING}
"""A declared feature (key) means nothing without the other (value)."""


class Endpoint(Struct, frozen=True):
    """What a method and path ask for. `model` and `stream` are set where the path says them (Gemini; one model's entry)."""

    surface: Surface
    operation: Operation
    model: str | None = None
    stream: bool | None = None


class Row(Struct, frozen=True):
    """One path of a surface. `short` rows are aliases that a host app's own routes may own."""

    surface: Surface
    operation: Operation
    method: str = "POST"
    short: bool = False


_GEN: Final = Operation.GENERATE
PATHS: Final[dict[str, Row]] = {
    "/v1/chat/completions": Row(CHAT, _GEN),
    "/chat/completions": Row(CHAT, _GEN, short=True),
    "/v1/responses": Row(RESPONSES, _GEN),
    "/responses": Row(RESPONSES, _GEN, short=True),
    "/v1/messages": Row(MESSAGES, _GEN),
    "/messages": Row(MESSAGES, _GEN, short=True),
    "/v1/messages/count_tokens": Row(MESSAGES, Operation.COUNT_TOKENS),
    "/v1/models": Row(CHAT, Operation.LIST_MODELS, "GET"),
    "/models": Row(CHAT, Operation.LIST_MODELS, "GET", short=True),
    "/completions": Row(ZED, _GEN, short=True),
    "/count_tokens": Row(ZED, Operation.COUNT_TOKENS, short=True),
    "/v1beta/models": Row(GEMINI, Operation.LIST_MODELS, "GET"),
}
"""Every fixed path. The model lists stand here under the surface that asks by default; headers may tell another (`lister`)."""

METHODS: Final[dict[str, tuple[Operation, bool]]] = {
    "generateContent": (_GEN, False),
    "streamGenerateContent": (_GEN, True),
    "countTokens": (Operation.COUNT_TOKENS, False),
}
"""Gemini's methods after the colon: the operation, and whether the answer is a stream."""

_MODELS: Final = re.compile(r"/(v1|v1beta)/models/(.+)", re.DOTALL)


def lister(path: str, names: frozenset[str]) -> Surface:
    """The surface whose model list is asked for. `/v1/models` belongs to three APIs, `/models` to Zed too, whose requests have headers of its own.

    `names` are the request's header names, lower-case.
    """
    if path == "/models" and any(name.startswith("x-zed-") for name in names):
        return ZED
    if path.startswith("/v1beta/") or "x-goog-api-key" in names:
        return GEMINI
    return MESSAGES if "anthropic-version" in names else CHAT


def find(path: str, names: frozenset[str], *, short: bool) -> tuple[Endpoint, str] | None:
    """What the raw path asks for and the method it takes, or None when it is no surface's path.

    `path` is still percent-encoded and below the root path. One trailing slash is optional; nothing else is normalised, so that no other spelling
    slips past a rule that a proxy in front applies.
    """
    path = path.removesuffix("/") if len(path) > 1 else path
    path = "/v1beta" + path.removeprefix("/v1beta1") if path.startswith("/v1beta1/") else path
    row = PATHS.get(path)
    if row is not None and (short or not row.short):
        surface = lister(path, names) if row.operation is Operation.LIST_MODELS else row.surface
        return Endpoint(surface, row.operation), row.method
    found = _MODELS.fullmatch(path)
    return _of_model(path, found[2], names) if found else None


def _of_model(path: str, rest: str, names: frozenset[str]) -> tuple[Endpoint, str] | None:
    """A path below `models/`: Gemini's `{model}:{method}`, or one model's entry. The model's name is decoded once, here."""
    model, colon, method = rest.rpartition(":")
    if colon and method in METHODS:
        operation, stream = METHODS[method]
        return Endpoint(GEMINI, operation, unquote(model), stream), "POST"
    if path.startswith("/v1beta/") and colon:
        return None  # another method of the Gemini API
    return Endpoint(lister(path, names), Operation.GET_MODEL, unquote(rest)), "GET"
