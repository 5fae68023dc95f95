"""Reads the terminal facts of a generateContent stream, and writes the error that may end one.

Knows nothing of requests or routes. There is no end event: the end of the body is the end, and a `finishReason`, or a blocked prompt, is the evidence
that it was reached.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.codecs.gemini.errors import error as envelope
from asgi_surface.codecs.gemini.usage import Counted
from asgi_surface.errors import GatewayError
from asgi_surface.framing import Frame
from asgi_surface.ir import Stop

STOPS: Final[dict[str, Stop]] = {
    "STOP": Stop.END,
    "MAX_TOKENS": Stop.LENGTH,
    "CONTINUATION": Stop.LENGTH,
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"), Stop.FILTER),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), Stop.FILTER),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), Stop.ERROR),
    **dict.fromkeys(("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "NO_IMAGE", "PUP_LIMITED_DISABLED"), Stop.ERROR),
    **dict.fromkeys(("LANGUAGE", "OTHER", "IMAGE_OTHER"), Stop.OTHER),
}


def reason(said: object) -> Stop | None:
    """What a `finishReason` means. Google's default of the enumeration is none."""
    return None if said == "FINISH_REASON_UNSPECIFIED" else reading.reason(STOPS, said)


class _Call(Struct):
    args: Raw = Raw()


class _Part(Struct, rename="camel"):
    text: Any = None
    function_call: _Call | None = None

    def size(self) -> int:
        # Arguments are an object here: what counts is their JSON.
        return reading.size(self.text) + (len(bytes(self.function_call.args).decode()) if self.function_call else 0)


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct, rename="camel"):
    index: int | None = 0
    content: _Content | None = None
    finish_reason: Any = None

    def stop(self) -> Stop | None:
        return reason(self.finish_reason)

    def size(self) -> int:
        return sum(part.size() for part in self.content.parts or []) if self.content else 0


class Chunk(Struct, rename="camel"):
    """A GenerateContentResponse: a whole answer or one chunk of a stream."""

    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None
    usage_metadata: Counted | None = None
    error: Any = None

    def signals(self, candidates: reading.Candidates) -> tuple[Signal, ...]:
        """Finish and usage. A blocked prompt has no candidates and is a refusal."""
        ended = False
        for candidate in self.candidates or []:
            stop = candidate.stop()
            candidates.note(candidate.index, stop)
            ended = ended or stop is not None
        finished = candidates.stop() if ended else None
        if not self.candidates and reading.mapping(self.prompt_feedback).get("blockReason") not in (None, "", "BLOCKED_REASON_UNSPECIFIED"):
            finished = Stop.REFUSAL
        finish = reading.finish(finished)
        return finish + reading.spent(self.usage_metadata.usage()) if self.usage_metadata else finish

    def size(self) -> int:
        """Characters of text and arguments."""
        return sum(candidate.size() for candidate in self.candidates or [])


DONE: Final = b"[DONE]"
"""What proxies send behind a stream. Google's API does not, and its SDKs would die of it."""
_BEHIND: Final = Sight(alive=False, passes=False)
CHUNK: Final = msgspec.json.Decoder(Chunk)


class GeminiWatch:
    """Follows the candidates of one stream: the answer has finished when each candidate seen so far has."""

    def __init__(self) -> None:
        self._candidates = reading.Candidates()

    def see(self, frame: Frame) -> Sight:
        """The facts of one chunk, whichever framing it came in."""
        if not frame.data:
            return reading.PING
        if frame.data.startswith(DONE):
            return _BEHIND
        if frame.data.lstrip().startswith(b"["):  # an error as Google sends it for an array stream
            return _fault_in_array(frame.data)
        chunk = reading.decode(CHUNK, frame.data)
        signals = chunk.signals(self._candidates)
        if chunk.error or frame.event == b"error":
            signals += (reading.fault(reading.error_facts(frame.data)),)
        return Sight(signals, chunk.size())

    def failure(self, error: GatewayError, request_id: str) -> tuple[bytes, bytes]:
        """A chunk that is the error envelope. The SDK raises on a chunk whose first member is `error`."""
        return b"", envelope(error, request_id)


def _fault_in_array(data: bytes) -> Sight:
    facts = reading.error_facts(data)
    if facts is None:
        raise ValueError("a chunk is an object")
    return Sight((reading.fault(facts),))


watch: Final = GeminiWatch
