"""Writes a whole Chat Completions answer. Knows no upstream: tools' names and forms come back through the context's aliases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from asgi_surface import seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.chat.lower_reasoning import detail
from asgi_surface.codecs.wrapping import unwrapped
from asgi_surface.ir import (
    Alternative,
    Call,
    Citation,
    Form,
    Part,
    Reasoning,
    Refusal,
    Request,
    Response,
    Seal,
    SealKind,
    Search,
    Stop,
    Text,
    Usage,
)
from asgi_surface.losses import held
from asgi_surface.surfaces import CHAT, GEMINI, Surface

# A reason that the surface has no word for is said as itself: none of the official ones would be true.
_FINISHES: Final[dict[Stop, str]] = {
    Stop.PAUSE: "pause",
    Stop.OTHER: "other",
    Stop.REFUSAL: "content_filter",
    Stop.FILTER: "content_filter",
    Stop.LENGTH: "length",
    Stop.ERROR: "error",
}
_SILENT: Final = frozenset({"answer:stop_sequence"})
_COUNTS: Final = frozenset({"usage:cache_write", "usage:audio"})


def write(response: Response, context: Context) -> bytes:
    """The `chat.completion` object. The id, model and time are the upstream's where it gave them."""
    body = {
        "id": response.id or f"asf_{context.request_id}",
        "object": "chat.completion",
        "created": context.now if response.created is None else response.created,
        "model": response.model or context.model,
        "choices": [{"index": index, **_choice(answer, context)} for index, answer in enumerate(response.answers)],
    }
    tier = {} if response.service_tier is None else {"service_tier": response.service_tier}
    return msgspec.json.encode(body | tier | _usage(response.usage))


def _choice(answer: Response | Alternative, context: Context) -> dict[str, Any]:
    calls = [_call(part, context) for part in answer.parts if isinstance(part, Call)]
    old = _old(calls, context.request)
    return {
        "message": _message(answer.parts, calls, old) | _thoughts(answer.parts, context.upstream) | _proved(answer.parts, context),
        "logprobs": None if answer.logprobs is None else {"content": answer.logprobs, "refusal": None},
        "finish_reason": _finish(answer.stop, called=bool(calls), old=old),
    }


def _finish(stop: Stop, *, called: bool, old: bool) -> str:
    """The finish reason. `old` is a call in the deprecated form. An end for calls without any is not the end of an answer."""
    if stop in _FINISHES:
        return _FINISHES[stop]
    if called:
        return "function_call" if old else "tool_calls"
    return _FINISHES[Stop.OTHER] if stop is Stop.TOOLS else "stop"


def unsaid(response: Response, context: Context) -> Collection[str]:
    """Which stop sequence it was, proofs of reasoning without a slot, and what is counted beside tokens that are not."""
    seals_ = {"answer:seals"} if any(_unsealed(answer, context) for answer in response.answers) else set()
    return held(response) & (_SILENT | seals_ | (frozenset() if _usage(response.usage) else _COUNTS))


def _unsealed(answer: Response | Alternative, context: Context) -> bool:
    """Whether a proof gets lost. The one slot for these is on calls, is Google's, and the deprecated form has none."""
    calls = [_call(part, context) for part in answer.parts if isinstance(part, Call)]
    slots = 0 if _old(calls, context.request) else sum("extra_content" in call for call in calls)
    return slots < sum(isinstance(part, Reasoning | Call) and part.seal is not None for part in answer.parts)


def _message(parts: tuple[Part, ...], calls: list[dict[str, Any]], old: bool) -> dict[str, Any]:
    texts = [part for part in parts if isinstance(part, Text)]
    refusals = [part.text for part in parts if isinstance(part, Refusal)]
    cited = [{"type": "url_citation", "url_citation": citation} for citation in _citations(texts)]
    return {
        "role": "assistant",
        "content": "".join(part.text for part in texts) if texts else None,
        "refusal": "".join(refusals) or None,
        **({"annotations": cited} if cited else {}),
        **_calls(calls, old),
    }


class Thread:
    """The reasoning of one answer, which goes into one member: what stands between a thought and the one before it.

    Other surfaces tell thought from thought: each is a paragraph. Chat tells one text, whose deltas say where it goes on after a word of the answer:
    nothing is added to it, unless the gateway's search parts two answers of the model.
    """

    def __init__(self, upstream: Surface) -> None:
        self._one = upstream == CHAT
        self._said = self._parted = False

    def part(self, *, searched: bool = False) -> None:
        """A thought, or a search, begins."""
        self._parted |= searched or not self._one

    def lead(self) -> str:
        """What parts the words that follow from those before."""
        lead = "\n\n" if self._said and self._parted else ""
        self._said, self._parted = True, False
        return lead


def _thoughts(parts: Iterable[Part], upstream: Surface) -> dict[str, str]:
    thread, words = Thread(upstream), []
    for part in parts:
        if isinstance(part, Reasoning | Search):
            thread.part(searched=isinstance(part, Search))
        if isinstance(part, Reasoning) and part.text:
            words += [thread.lead(), part.text]
    return {"reasoning_content": "".join(words)} if words else {}


def _proved(parts: Iterable[Part], context: Context) -> dict[str, Any]:
    """Reasoning piece by piece with its proofs, for who goes on with this turn: natively as the upstream gave it."""
    thoughts = [part for part in parts if isinstance(part, Reasoning)] if context.request.wants_seals else []
    sealed = any(part.seal for part in thoughts)
    return {"reasoning_details": [_piece(part, part.seal, context.seal_domain) for part in thoughts]} if sealed else {}


def _piece(part: Reasoning, seal: Seal | None, domain: str) -> dict[str, Any]:
    if seal is not None and not domain:
        return detail(part, seal)
    return {"type": "reasoning.text", "text": part.text} | ({} if seal is None else {"signature": seals.wrap(seal, domain)})


def _old(calls: list[dict[str, Any]], request: Request) -> bool:
    """Whether the client asked with `functions` and can be answered so: that form has one call and no other kind."""
    return len(calls) == 1 and any(tool.at.startswith("/functions/") for tool in request.tools) and calls[0]["type"] == "function"


def _calls(calls: list[dict[str, Any]], old: bool) -> dict[str, Any]:
    if old:
        return {"function_call": calls[0]["function"]}
    return {"tool_calls": calls} if calls else {}


def _citations(texts: Iterable[Text]) -> Iterator[dict[str, Any]]:
    """The sources, their offsets counted over the joined text. One without offsets supports the whole of its part."""
    before = 0
    for part in texts:
        for citation in part.citations:
            yield _citation(citation, before, len(part.text))
        before += len(part.text)


def _citation(citation: Citation, before: int, length: int) -> dict[str, Any]:
    start = 0 if citation.start is None else citation.start
    end = length if citation.end is None else citation.end
    return {"start_index": before + start, "end_index": before + end, "url": citation.url, "title": citation.title}


def _call(call: Call, context: Context) -> dict[str, Any]:
    alias = context.aliases.get(call.name) or Alias(call.name, call.form)
    identity = f"asf_{call.id}_{context.request_id}" if call.minted else call.id
    said = {"id": identity, "type": alias.form.value, alias.form.value: _said(call, alias)}
    return said | _extra(call.seal, context.seal_domain)


def _said(call: Call, alias: Alias) -> dict[str, str]:
    if alias.form is Form.FUNCTION:
        return {"name": alias.name, "arguments": call.arguments}
    text = None if call.form is Form.CUSTOM else unwrapped(call.arguments)
    # What the model wrote, where that is not a custom tool's stand-in's.
    return {"name": alias.name, "input": call.arguments if text is None else text}


def _extra(seal: Seal | None, domain: str) -> dict[str, Any]:
    """Chat's one opaque slot is Google's, and takes only what belongs there."""
    if seal is None or seal.surface != GEMINI or seal.kind is not SealKind.THOUGHT:
        return {}
    return {"extra_content": {"google": {"thought_signature": seals.wrap(seal, domain)}}}


def _usage(usage: Usage | None) -> dict[str, Any]:
    """The usage, when the upstream counted. The surface demands both numbers and their sum; what it did not say is left out elsewhere."""
    if usage is None or (usage.input is None and usage.output is None):
        return {}
    asked, answered = usage.input or 0, usage.output or 0
    details = {
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write, "audio_tokens": usage.audio_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": usage.audio_output},
    }
    counted = {name: {word: count for word, count in words.items() if count is not None} for name, words in details.items()}
    numbers = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
    return {"usage": numbers | {name: words for name, words in counted.items() if words}}
