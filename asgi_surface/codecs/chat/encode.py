"""Writes a Chat Completions stream: chunks with one id, the role of each answer first, its finish once, usage when the client asked for it, `[DONE]`.

Put together, the chunks are what `write` says at once. Keeps no flags about the end: the lifecycle's table calls it in order.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import openai_wire
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.chat.encode_parts import Answer, Delta, Words, Writer
from asgi_surface.codecs.chat.write import _usage
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Found, Grew, Logged, Opened, PartEvent, Sealed, Start
from asgi_surface.ir import Stop, Usage


class ChatEncoder:
    """One stream. Answers, and parallel calls in them, may grow in any order.

    Arguments stream live, but for wrapped custom tools, Gemini's calls (which are whole anyway), and clients that asked with `functions`: that form
    has room for one call, and whether there is one more is known at the end.
    """

    sequential = False
    several = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._base: dict[str, Any] = {}
        self._answers: dict[int, Answer] = {}
        self._parts: dict[int, tuple[int, Writer]] = {}

    def open(self, start: Start, usage: Usage | None) -> Frames:
        """The first chunk: the role."""
        self._base = {
            "id": start.id or f"asf_{self._context.request_id}",
            "object": "chat.completion.chunk",
            "created": self._context.now if start.created is None else start.created,
            "model": start.model or self._context.model,
            **({"usage": None} if self._context.request.include_usage else {}),
        }
        self.note(start, usage)
        return self._begun(0)

    def note(self, start: Start, usage: Usage | None) -> None:  # noqa: ARG002  -- the surface tells usage at the end
        """Every chunk tells the tier as it is known by then. All chunks are of one model: the first that was told."""
        self._base |= {} if start.service_tier is None else {"service_tier": start.service_tier}

    def _begun(self, choice: int) -> Frames:
        """The role, once in each answer. The API sends null for content that has not begun."""
        if choice in self._answers:
            return []
        # Numbered as they begin: SDKs keep them in a list.
        self._answers[choice] = Answer(self._context, len(self._answers))
        return self._chunk(choice, {"role": "assistant", "content": None})

    def part(self, event: PartEvent) -> Frames:
        """A chunk, when there is something to say. Citations wait for the end: SDKs cannot add a second list of them to the first."""
        if isinstance(event, Opened):
            frames = self._begun(event.choice)
            writer, delta = self._answers[event.choice].opened(event.part)
            self._parts[event.index] = event.choice, writer
            return frames + self._said(event.choice, delta)
        choice, writer = self._parts[event.index]
        if isinstance(event, Logged):
            return self._chunk(choice, {}, logprobs={"content": event.logprobs, "refusal": None})
        return self._said(choice, _delta(writer, event))

    def _said(self, choice: int, delta: Delta) -> Frames:
        return self._chunk(choice, delta) if delta else []

    def close(self, ending: Ending) -> Frames:
        """Every answer's end, the usage if it was asked for and counted, and `[DONE]`."""
        stops = {0: ending.stop, **ending.more}
        frames = [frame for choice, stop in sorted(stops.items()) for frame in self._ended(choice, stop)]
        usage = _usage(ending.usage) if self._context.request.include_usage else {}
        if usage:
            frames.append((b"", msgspec.json.encode(self._base | {"choices": []} | usage)))
        return [*frames, (b"", b"[DONE]")]

    def _ended(self, choice: int, stop: Stop) -> Frames:
        frames = self._begun(choice)
        waited, finish = self._answers[choice].ended(stop)
        return [*frames, *(frame for delta in waited for frame in self._chunk(choice, delta)), *self._chunk(choice, {}, finish=finish)]

    def fail(self, error: GatewayError) -> Frames:
        """A chunk that is the error envelope: the SDK raises on it. No `[DONE]` follows."""
        return [(b"", openai_wire.error(error, self._context.request_id))]

    def _chunk(self, choice: int, delta: Delta, logprobs: dict[str, Raw | None] | None = None, finish: str | None = None) -> Frames:
        said = {"index": self._answers[choice].place, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return [(b"", msgspec.json.encode(self._base | {"choices": [said]}))]


def _delta(writer: Writer, event: Grew | Sealed | Cited | Found | Closed) -> Delta:
    match event:
        case Grew(text=text):
            return writer.grow(text)
        case Sealed(seal=seal):
            return writer.seal(seal)
        case Cited(citation=citation) if isinstance(writer, Words):
            writer.citations.append(citation)
        case Closed():
            return writer.close()
    return {}


encoder: Final = ChatEncoder
