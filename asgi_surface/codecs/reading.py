"""What the reading halves of all codecs share: tolerant decoding, the spellings of an error body, and when several candidates have finished.

Knows the deviations that real servers show, never which server or surface it reads for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.errors import ErrorFacts, UpstreamDetail
from asgi_surface.events import Told
from asgi_surface.ir import Stop, Usage, weightier
from asgi_surface.lifecycle import Kind

T = TypeVar("T")

_ANY: Final = msgspec.json.Decoder()
_UNREAD: Final = ErrorFacts("")

PING: Final = Sight(alive=False)
"""A provider's sign of life that says nothing."""
END: Final = Signal(Kind.END)


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """`data` as the decoder's type. Raises `ValueError`, whose message quotes nothing of `data`."""
    try:
        # The decoder does not look inside strings that it skips.
        _ = data.isascii() or data.decode()
        return decoder.decode(data)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise ValueError(type(error).__name__) from None


def count(value: object) -> int | None:
    """A number of tokens, or None for anything that is not one."""
    return value if type(value) is int and value >= 0 else None


def first(*values: int | None) -> int | None:
    """The first number that was said, of several spellings of one."""
    return next((value for value in values if value is not None), None)


def total(*values: int | None) -> int | None:
    """The sum of what was said; None when nothing was."""
    said = [value for value in values if value is not None]
    return sum(said) if said else None


def string(value: object) -> str | None:
    """`value` when it is a text that says something."""
    return value if isinstance(value, str) and value else None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


# Where text stands in the parts and calls of all surfaces. Nothing else of a part counts: ids, signatures, images.
_TEXTS: Final = ("text", "thinking", "refusal", "content", "summary", "arguments", "input", "function", "custom")


def size(value: object, depth: int = 6) -> int:
    """Characters of text in a string, a list of parts, or a part, `depth` levels down: no surface nests text deeper."""
    if not value:
        return 0
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = [value[key] for key in _TEXTS if key in value]
    return sum(size(part, depth - 1) for part in value) if isinstance(value, list) and depth else 0


class Candidates:
    """Which of an answer's candidates have been seen and which have finished. The answer has finished when all seen have."""

    __slots__ = ("_finished", "_seen", "_stop")

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._finished: set[object] = set()
        self._stop: Stop | None = None

    def note(self, index: object, stop: Stop | None) -> None:
        """Takes one candidate's part of a frame; `stop` when it gives its reason there."""
        self._seen.add(index)
        if stop is not None:
            self._finished.add(index)
            self._stop = weightier(self._stop, stop)

    def stop(self) -> Stop | None:
        """The weightiest reason, once every candidate seen so far has given one."""
        return self._stop if len(self._finished) == len(self._seen) else None


class Telling:
    """Which model answers and in which tier, as a stream says it: some in every frame, some only at the end."""

    __slots__ = ("model", "tier")

    def __init__(self) -> None:
        self.model: str | None = None
        self.tier: str | None = None

    def news(self, model: str | None, tier: str | None) -> tuple[Told, ...]:
        """What a frame says that none before it did."""
        model, tier = model or self.model, tier or self.tier
        if model == self.model and tier == self.tier:
            return ()
        self.model, self.tier = model, tier
        return (Told(model, tier),)


def reason(table: Mapping[str, Stop], said: object) -> Stop | None:
    """What a finish reason means. An unknown one is `Stop.OTHER`, never a success in disguise; null and "" are no finish."""
    return table.get(said, Stop.OTHER) if isinstance(said, str) and said else None


def finish(stop: Stop | None) -> tuple[Signal, ...]:
    """The signal of a finish, if there was one."""
    return () if stop is None else (Signal(Kind.FINISH, stop=stop),)


def spent(usage: Usage) -> tuple[Signal, ...]:
    """The signal of a usage report, if it says anything."""
    return () if usage == Usage() else (Signal(Kind.USAGE, usage=usage),)


def fault(facts: ErrorFacts | None) -> Signal:
    """The signal of an upstream's error; None when its words could not be read."""
    return Signal(Kind.FAULT, fault=facts or _UNREAD)


def error_facts(body: bytes) -> ErrorFacts | None:
    """What an error body says, in any spelling met in the field; None when it is not one. The message may be ""."""
    try:
        return facts_of(decode(_ANY, body))
    except ValueError:
        return None


def is_envelope(body: bytes, members: Mapping[str, type]) -> bool:
    """Whether a JSON body is an object whose `error` is an object with these members: what a client of the surface can read."""
    document = decode(_ANY, body)
    error = document.get("error") if isinstance(document, dict) else None
    return isinstance(error, dict) and all(isinstance(error.get(name), kind) for name, kind in members.items())


def facts_of(value: object) -> ErrorFacts | None:
    """The same for a decoded body."""
    said = mapping(value[0] if isinstance(value, list) and value else value)  # Google wraps the errors of an array stream
    inner = said.get("error")
    if isinstance(inner, dict):
        return _facts(inner, _words(inner.get("message")) or "")
    # Flat: `{"error": "text"}` (Ollama), `{"detail": …}` (FastAPI), `{"message": …}` (Mistral, older vLLM, the Responses error event)
    words = _words(inner) or _words(said.get("message")) or _words(said.get("detail"))
    return None if words is None else _facts(said, words)


def _facts(said: Mapping[str, Any], message: str) -> ErrorFacts:
    status = next((found for name in ("code", "status_code", "status") if (found := _status(said.get(name))) is not None), None)
    # Google's `status` is a word: what others call the type. The type `error` of an event says nothing more.
    kind = next((word for name in ("type", "status") if (word := _word(said.get(name))) not in (None, "error")), None)
    code = None if _status(said.get("code")) is not None else _word(said.get("code"))
    return ErrorFacts(message, UpstreamDetail(kind, code or _detailed(said.get("details")), _word(said.get("param"))), status)


def _detailed(details: object) -> str | None:
    """The code in Google's list of details (`google.rpc.ErrorInfo`), or in Anthropic's details."""
    if isinstance(details, list):
        return next((reason for detail in details if (reason := _word(mapping(detail).get("reason")))), None)
    return _word(mapping(details).get("error_code"))


def _word(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None


def _status(value: object) -> int | None:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3 else value
    return number if type(number) is int and 400 <= number <= 599 else None


def _words(value: object, depth: int = 4) -> str | None:
    """The text of a message: a string, FastAPI's list of problems, or a message in a message (Mistral's 422)."""
    if isinstance(value, dict):
        value = [value[key] for key in ("msg", "message", "detail") if key in value][:1]
    if isinstance(value, list) and depth:
        return "; ".join(words for item in value[:3] if (words := _words(item, depth - 1))) or None
    return value if isinstance(value, str) and value else None
