"""Reads the terminal facts of a Chat Completions stream, and writes the error that may end one.

Knows nothing of requests or routes. The end is `data: [DONE]`; an error is any chunk with an `error` member.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.errors import GatewayError
from asgi_surface.framing import Frame
from asgi_surface.ir import Stop

STOPS: Final[dict[str, Stop]] = {
    "stop": Stop.END,
    "length": Stop.LENGTH,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "content_filter": Stop.FILTER,
    "model_length": Stop.LENGTH,  # Mistral: the context window is full
    "max_tokens": Stop.LENGTH,
    "error": Stop.ERROR,  # OpenRouter, Mistral
    "abort": Stop.ERROR,  # vLLM, SGLang
    "insufficient_system_resource": Stop.ERROR,  # DeepSeek
}


class Said(Struct):
    """The text of a delta or a message. Servers disagree about its types, so none is demanded."""

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None

    def size(self) -> int:
        """Characters of text, reasoning and arguments. The two names of reasoning carry the same text."""
        texts = (self.content, self.refusal, self.reasoning_content or self.reasoning, self.tool_calls, self.function_call)
        return sum(map(reading.size, filter(None, texts)))


class _Choice(Struct):
    index: int | None = 0
    delta: Said | None = None
    finish_reason: Any = None


class _Groq(Struct):
    usage: Any = None
    error: Any = None


class _Chunk(Struct):
    object: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: _Groq | None = None


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_DONE: Final = Sight((reading.END,))
_NO_GROQ: Final = _Groq()


class ChatWatch:
    """Follows the choices of one stream: the answer has finished when each choice seen so far has."""

    def __init__(self) -> None:
        self._choices = reading.Candidates()

    def see(self, frame: Frame) -> Sight:
        """The facts of one chunk."""
        if not frame.data:
            return reading.PING
        if frame.data.startswith(b"[DONE]"):  # all that the SDK compares
            return _DONE
        chunk = reading.decode(_CHUNK, frame.data)
        groq = chunk.x_groq or _NO_GROQ
        choices = chunk.choices or []
        signals = self._finish(choices)
        if chunk.usage or groq.usage:
            signals += reading.spent(openai_wire.usage(chunk.usage or groq.usage))
        if chunk.error or groq.error or chunk.object == "error" or frame.event == b"error":
            facts = reading.facts_of({"error": groq.error}) if groq.error else reading.error_facts(frame.data)
            signals += (reading.fault(facts),)
        # A chunk without choices that says nothing else is a ping of some servers', or what Azure tells of the prompt.
        return Sight(signals, sum(choice.delta.size() for choice in choices if choice.delta), alive=bool(choices or signals))

    def _finish(self, choices: list[_Choice]) -> tuple[Signal, ...]:
        ended = False
        for choice in choices:
            stop = reading.reason(STOPS, choice.finish_reason)
            self._choices.note(choice.index, stop)
            ended = ended or stop is not None
        return reading.finish(self._choices.stop()) if ended else ()

    def failure(self, error: GatewayError, request_id: str) -> tuple[bytes, bytes]:
        """A chunk that is the error envelope: the SDK raises on it. No `[DONE]` follows."""
        return b"", openai_wire.error(error, request_id)


watch: Final = ChatWatch
