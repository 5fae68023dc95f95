"""Says the parts of one streamed Chat Completions answer: what each event adds to its message. Knows no chunks and no order of events."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from msgspec import structs

from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.chat.write import Thread, _call, _calls, _citation, _extra, _finish, _old
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Seal, Search, Stop, Text
from asgi_surface.surfaces import GEMINI

Delta = dict[str, Any]
"""What a chunk adds to the message."""

_MEMBERS: Final[dict[type, str]] = {Text: "content", Reasoning: "reasoning_content", Refusal: "refusal"}


class Writer(Protocol):
    """Says one part: what each event of it adds to the message. Nothing is said by an empty delta."""

    def grow(self, text: str) -> Delta:
        """More of its words or arguments."""
        ...

    def seal(self, seal: Seal) -> Delta:
        """Its seal."""
        ...

    def close(self) -> Delta:
        """It is whole."""
        ...


class _Silent:
    """A part that has no place on the surface."""

    def grow(self, _: str) -> Delta:
        return {}

    def seal(self, _: Seal) -> Delta:
        return {}

    def close(self) -> Delta:
        return {}


class Words:
    """Text, reasoning or a refusal: all of a kind go into one member. `lead` says what parts this one, once it has words, from the one before."""

    def __init__(self, member: str, lead: Callable[[], str] | None = None) -> None:
        self._member = member
        self._lead = lead
        self.length = 0
        self.citations: list[Citation] = []

    def grow(self, text: str) -> Delta:
        """More of them."""
        lead, self._lead = self._lead, None
        self.length += len(text)
        return {self._member: (lead() if lead else "") + text}

    def seal(self, _: Seal) -> Delta:
        """Nothing: words have no opaque slot on this surface."""
        return {}

    def close(self) -> Delta:
        """Nothing: the surface does not say it."""
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

    With `waits` it is not even said then, but at the answer's end. Its place is the next one when it is said: SDKs keep calls in a list.
    """

    def __init__(self, places: Iterator[int], call: Call, context: Context, *, waits: bool) -> None:
        self._places = places
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
        call = structs.replace(self._call, arguments="".join(self._pieces), seal=self._seal)
        return {"index": next(self._places), **_call(call, self._context)}


class Answer:
    """One answer as far as it has been said, and what of it waits for its end. `place` is its index."""

    def __init__(self, context: Context, place: int) -> None:
        self.place = place
        self._context = context
        self._texts: list[Words] = []
        self._thread = Thread(context.upstream)
        self._called = False
        self._places = itertools.count()
        self._waiting: list[_Held] = []
        # Whether a lone call would be said in the deprecated form.
        self._old = _old([{"type": "function"}], context.request)

    def opened(self, part: Text | Reasoning | Call | Refusal | Search) -> tuple[Writer, Delta]:
        """Who writes a part, and what its opening says."""
        if isinstance(part, Call):
            return self._opened_call(part)
        if isinstance(part, Reasoning | Search):
            self._thread.part(searched=isinstance(part, Search))
        if isinstance(part, Search):
            return _Silent(), {}
        words = Words(_MEMBERS[type(part)], self._thread.lead if isinstance(part, Reasoning) else None)
        if isinstance(part, Text):
            self._texts.append(words)
        # Empty text is an answer, empty reasoning is none.
        return words, words.grow(part.text) if part.text or isinstance(part, Text) else {}

    def _opened_call(self, call: Call) -> tuple[Writer, Delta]:
        self._called = True
        alias = self._context.aliases.get(call.name) or Alias(call.name, call.form)
        wrapped = alias.form is Form.CUSTOM and call.form is Form.FUNCTION
        if wrapped or self._old or self._context.upstream == GEMINI:
            held = _Held(self._places, call, self._context, waits=self._old)
            self._waiting += [held] if self._old else []
            return held, {}
        place = next(self._places)
        return _Live(place, alias.form, self._context.seal_domain), {"tool_calls": [{"index": place, **_call(call, self._context)}]}

    def ended(self, stop: Stop) -> tuple[list[Delta], str]:
        """What waited for the end, and the finish."""
        calls = [held.whole() for held in self._waiting]
        old = _old(calls, self._context.request)
        said = [{"annotations": cited}] if (cited := list(self._annotations())) else []
        said += [waited] if (waited := _calls(calls, old)) else []
        return said, _finish(stop, called=self._called, old=old)

    def _annotations(self) -> Iterator[dict[str, Any]]:
        """The sources, their offsets counted over all text."""
        before = 0
        for text in self._texts:
            for citation in text.citations:
                yield {"type": "url_citation", "url_citation": _citation(citation, before, text.length)}
            before += text.length
