"""Writes a Chat Completions stream: chunks with one id, the role first, the finish once, usage when the client asked for it, `[DONE]`.

Put together, the chunks are what `write` says at once. Keeps no flags about the end: the lifecycle's table calls it in order.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from asgi_surface.codecs import openai_wire
from asgi_surface.codecs.base import Alias, Context, Frames
from asgi_surface.codecs.chat.write import _FINISHES, _call, _calls, _citation, _extra, _old, _usage
from asgi_surface.errors import GatewayError
from asgi_surface.events import Cited, Closed, Ending, Grew, Logged, Opened, PartEvent, Sealed, Start
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Seal, Text, Usage
from asgi_surface.surfaces import GEMINI

Delta = dict[str, Any]
_MEMBERS: Final[dict[type, str]] = {Text: "content", Reasoning: "reasoning_content", Refusal: "refusal"}


class _Writer(Protocol):
    """Says one part: what each event of it adds to the message. Nothing is said by an empty delta."""

    def grow(self, text: str) -> Delta: ...

    def seal(self, seal: Seal) -> Delta: ...

    def close(self) -> Delta: ...


class _Words:
    """Text, reasoning or a refusal: all of a kind go into one member. `lead` parts this one from the one before."""

    def __init__(self, member: str, lead: str = "") -> None:
        self._member = member
        self._lead = lead
        self.length = 0
        self.citations: list[Citation] = []

    def grow(self, text: str) -> Delta:
        lead, self._lead = self._lead, ""
        self.length += len(text)
        return {self._member: lead + text}

    def seal(self, _: Seal) -> Delta:
        # Words have no opaque slot on this surface.
        return {}

    def close(self) -> Delta:
        return {}


class _Live:
    """A call whose arguments pass as they come. The SDK wants the member of the call's kind in every delta of it."""

    def __init__(self, place: int, form: Form, domain: str) -> None:
        self._place = place
        self._form = form
        self._domain = domain

    def grow(self, text: str) -> Delta:
        return self._delta(text)

    def seal(self, seal: Seal) -> Delta:
        extra = _extra(seal, self._domain)
        return self._delta("", **extra) if extra else {}

    def close(self) -> Delta:
        return {}

    def _delta(self, text: str, **more: Any) -> Delta:
        member = "arguments" if self._form is Form.FUNCTION else "input"
        return {"tool_calls": [{"index": self._place, self._form.value: {member: text}, **more}]}


class _Held:
    """A call that is said at once when it has closed: a wrapped tool's text stands inside JSON, and a seal belongs into the call's first delta.

    With `waits` it is not even said then, but at the answer's end.
    """

    def __init__(self, place: int, call: Call, context: Context, *, waits: bool) -> None:
        self._place = place
        self._call = call
        self._context = context
        self._waits = waits
        self._seal: Seal | None = None
        self._pieces = [call.arguments]

    def grow(self, text: str) -> Delta:
        self._pieces.append(text)
        return {}

    def seal(self, seal: Seal) -> Delta:
        self._seal = seal
        return {}

    def close(self) -> Delta:
        return {} if self._waits else {"tool_calls": [self.whole()]}

    def whole(self) -> dict[str, Any]:
        call = msgspec.structs.replace(self._call, arguments="".join(self._pieces), seal=self._seal)
        return {"index": self._place, **_call(call, self._context)}


class ChatEncoder:
    """One stream. Parallel calls may grow in any order.

    Arguments stream live, but for wrapped custom tools, Gemini's calls (which are whole anyway), and clients that asked with `functions`: that form
    has room for one call, and whether there is one more is known at the end.
    """

    sequential = False

    def __init__(self, context: Context) -> None:
        self._context = context
        self._base: dict[str, Any] = {}
        self._parts: dict[int, _Writer] = {}
        self._texts: dict[int, _Words] = {}
        self._thoughts: list[_Words] = []
        self._calls = 0
        self._waiting: list[_Held] = []
        # Whether a lone call would be said in the deprecated form.
        self._old = _old([{"type": "function"}], context.request)

    def open(self, start: Start, usage: Usage | None) -> Frames:  # noqa: ARG002  -- the surface tells usage at the end
        """The first chunk: the role. The API sends null for content that has not begun."""
        self._base = {
            "id": start.id or f"asf_{self._context.request_id}",
            "object": "chat.completion.chunk",
            "created": self._context.now if start.created is None else start.created,
            "model": start.model or self._context.model,
            **({} if start.service_tier is None else {"service_tier": start.service_tier}),
            **({"usage": None} if self._context.request.include_usage else {}),
        }
        return self._chunk({"role": "assistant", "content": None})

    def part(self, event: PartEvent) -> Frames:
        """A chunk, when there is something to say. Citations wait for the end: SDKs cannot add a second list of them to the first."""
        if isinstance(event, Logged):
            return self._chunk({}, logprobs={"content": event.logprobs, "refusal": None})
        if isinstance(event, Cited):
            self._texts[event.index].citations.append(event.citation)
            return []
        delta = self._delta(event)
        return self._chunk(delta) if delta else []

    def _delta(self, event: Opened | Grew | Sealed | Closed) -> Delta:
        if isinstance(event, Opened):
            return self._opened(event.index, event.part)
        writer = self._parts[event.index]
        if isinstance(event, Grew):
            return writer.grow(event.text)
        return writer.seal(event.seal) if isinstance(event, Sealed) else writer.close()

    def _opened(self, index: int, part: Text | Reasoning | Call | Refusal) -> Delta:
        if isinstance(part, Call):
            return self._opened_call(index, part)
        lead = "\n\n" if isinstance(part, Reasoning) and any(thought.length for thought in self._thoughts) else ""
        words = self._parts[index] = _Words(_MEMBERS[type(part)], lead)
        if isinstance(part, Text):
            self._texts[index] = words
        elif isinstance(part, Reasoning):
            self._thoughts.append(words)
        # Empty text is an answer, empty reasoning is none.
        return words.grow(part.text) if part.text or isinstance(part, Text) else {}

    def _opened_call(self, index: int, call: Call) -> Delta:
        place, self._calls = self._calls, self._calls + 1
        alias = self._context.aliases.get(call.name) or Alias(call.name, call.form)
        wrapped = alias.form is Form.CUSTOM and call.form is Form.FUNCTION
        if wrapped or self._old or self._context.upstream == GEMINI:
            held = self._parts[index] = _Held(place, call, self._context, waits=self._old)
            self._waiting += [held] if self._old else []
            return {}
        self._parts[index] = _Live(place, alias.form, self._context.seal_domain)
        return {"tool_calls": [{"index": place, **_call(call, self._context)}]}

    def close(self, ending: Ending) -> Frames:
        """What waited for the end, the finish, the usage if it was asked for and counted, and `[DONE]`."""
        calls = [held.whole() for held in self._waiting]
        old = _old(calls, self._context.request)
        waited = (self._annotations(), _calls(calls, old))
        finish = _FINISHES.get(ending.stop) or (("function_call" if old else "tool_calls") if self._calls else "stop")
        frames = [frame for delta in waited if delta for frame in self._chunk(delta)] + self._chunk({}, finish=finish)
        usage = _usage(ending.usage) if self._context.request.include_usage else {}
        if usage:
            frames.append((b"", msgspec.json.encode(self._base | {"choices": []} | usage)))
        return [*frames, (b"", b"[DONE]")]

    def _annotations(self) -> Delta:
        """The sources, their offsets counted over all text."""
        said, before = [], 0
        for text in self._texts.values():
            said += [{"type": "url_citation", "url_citation": _citation(citation, before, text.length)} for citation in text.citations]
            before += text.length
        return {"annotations": said} if said else {}

    def fail(self, error: GatewayError) -> Frames:
        """A chunk that is the error envelope: the SDK raises on it. No `[DONE]` follows."""
        return [(b"", openai_wire.error(error, self._context.request_id))]

    def _chunk(self, delta: Delta, logprobs: dict[str, Raw | None] | None = None, finish: str | None = None) -> Frames:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return [(b"", msgspec.json.encode(self._base | {"choices": [choice]}))]


encoder: Final = ChatEncoder
