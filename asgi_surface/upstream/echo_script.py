"""What an echo request says: its body, checked, and the directives in its last message (their table stands in `echo`).

Knows nothing of the answer.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from asgi_surface.upstream.asgi import Headers, Scope

PATH: Final = "/v1/chat/completions"

_TOOL: Final = re.compile(r"\[tool\s+([\w.-]{1,64})\s*(?=[{\]])")
_CLOSE: Final = re.compile(r"\s*\]\s*")
_PLAIN: Final = re.compile(
    r"\[(?:(?P<finish>length|filter)|reason\s+(?P<reason>[^\s\][][^\][]*)|refuse\s+(?P<refuse>[^\s\][][^\][]*)|error\s+(?P<error>[45]\d\d)"
    r"|pace\s+(?P<pace>\d{1,2}(?:\.\d{1,3})?)|repeat\s+(?P<repeat>[1-9]\d{0,2}))\]\s*"
)

# Type and code as api.openai.com sends them with these statuses.
_ERRORS: Final = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


class _Function(Struct, frozen=True):
    name: str


class _Tool(Struct, frozen=True):
    type: str
    function: _Function | None = None


class _Part(Struct, frozen=True):
    type: str
    text: str = ""


class _Message(Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _StreamOptions(Struct, frozen=True):
    include_usage: bool = False


class ChatRequest(Struct, frozen=True):
    """The members that change the answer; all others are taken and ignored."""

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[list[_Message], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Tool | None = None
    parallel_tool_calls: bool | None = None
    n: Literal[1] | None = None

    @property
    def functions(self) -> list[str]:
        """The names of the declared functions."""
        return [tool.function.name for tool in self.tools or () if tool.function is not None]

    @property
    def limit(self) -> int | None:
        """The most words of text, or None."""
        return self.max_completion_tokens or self.max_tokens


_REQUEST: Final = msgspec.json.Decoder(ChatRequest)


class Call(Struct, frozen=True):
    """One tool call; `arguments` is the JSON text as the directive has it."""

    name: str
    arguments: str = "{}"


class Script(Struct, frozen=True):
    """What the directives say, and the text that is left."""

    text: str
    calls: tuple[Call, ...] = ()
    finish: Literal["length", "filter"] | None = None
    reason: str = ""
    refuse: str = ""
    error: int | None = None
    pace: float = 0.0
    repeat: int = 1


class Refused(Exception):
    """An HTTP error, in OpenAI's envelope."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None, headers: Headers | None = None) -> None:
        super().__init__(message)
        kind, usual = _ERRORS.get(status, ("invalid_request_error" if status < 500 else "server_error", None))
        self.status = status
        self.headers = headers or []
        self.body = msgspec.json.encode({"error": {"message": message, "type": kind, "param": param, "code": code or usual}})


def read(scope: Scope, body: bytes) -> tuple[ChatRequest, Script]:
    """The request and what it directs. Raises `Refused`."""
    if scope["path"] != PATH:
        raise Refused(404, "Invalid URL", code="unknown_url")
    if scope["method"] != "POST":
        raise Refused(405, "Only POST requests are accepted.", code="method_not_supported", headers=[(b"allow", b"POST")])
    request = _decode(body)
    script = _script(request)
    if script.error is not None:
        raise Refused(script.error, "The directive [error] asked for this status.")
    return request, script


def _decode(body: bytes) -> ChatRequest:
    try:
        return _REQUEST.decode(body)
    except msgspec.ValidationError as error:
        raise Refused(400, str(error), param=_param(str(error))) from None
    except (msgspec.DecodeError, RecursionError):
        raise Refused(400, "We could not parse the JSON body of your request.") from None


def _param(message: str) -> str | None:
    """The place that msgspec's message names, which is OpenAI's own notation once the root is off: `messages[0].content`."""
    place = re.search(r"at `\$\.?([^`]*)`$", message)
    missing = re.search(r"required field `(\w+)`", message)
    return ".".join(found[1] for found in (place, missing) if found) or None


def _script(request: ChatRequest) -> Script:
    """The directives of the last user message, or the results that end the conversation as they are."""
    results = list(takewhile(lambda message: message.role == "tool", reversed(request.messages)))
    if results:
        return Script("\n".join(message.text for message in reversed(results)).strip())
    text = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
    text, calls = _take_calls(text)
    found: dict[str, Any] = {}
    for match in _PLAIN.finditer(text):
        found.update({name: value for name, value in match.groupdict().items() if value is not None})
    left, calls = _PLAIN.sub("", text).strip(), _choose(request, calls)
    if "refuse" in found:
        left, calls = "", []
    # The pattern lets only digits through, so a lax conversion cannot fail.
    return msgspec.convert({"text": left, "calls": calls, **found}, Script, strict=False)


def _take_calls(text: str) -> tuple[str, list[Call]]:
    """The text without its tool directives, and the calls. The arguments are JSON, which may hold brackets, so a pattern cannot find their end."""
    kept: list[str] = []
    calls: list[Call] = []
    at = 0
    for match in _TOOL.finditer(text):
        end = _end_of_arguments(text, match.end())
        close = _CLOSE.match(text, end)
        if match.start() >= at and close is not None:
            kept.append(text[at : match.start()])
            calls.append(Call(match[1], text[match.end() : end] or "{}"))
            at = close.end()
    return "".join([*kept, text[at:]]), calls


def _end_of_arguments(text: str, at: int) -> int:
    """Where the JSON object at `at` ends; `at` itself when none stands there."""
    if text[at] != "{":
        return at
    try:
        return json.JSONDecoder().raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return at


def _choose(request: ChatRequest, calls: list[Call]) -> list[Call]:
    """The calls that `tool_choice` and `parallel_tool_calls` leave or demand. Raises `Refused` for a choice of a function that is not there."""
    choice = request.tool_choice
    if choice == "none":
        return []
    wanted = choice.function.name if isinstance(choice, _Tool) and choice.function is not None else None
    if wanted is not None or choice == "required":
        names = [name for name in request.functions if wanted in (None, name)]
        if not names:
            raise Refused(400, "The tool choice is not found in the 'tools' parameter.", param="tool_choice")
        calls = calls or [Call(names[0])]
    return calls[:1] if request.parallel_tool_calls is False else calls
