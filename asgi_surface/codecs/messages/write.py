"""Writes a whole answer as a Messages client reads it: one message with its blocks in the order in which the model said them.

Opaque tokens travel in envelopes in the surface's own slots. Knows nothing of the upstream's surface.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface import seals
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.messages import searches
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Call, Form, Part, Reasoning, Refusal, Response, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.losses import held
from asgi_surface.soundness import ENDED, whole

Object = dict[str, object]

REASONS: Final = {
    Stop.END: "end_turn",
    Stop.STOP_SEQUENCE: "stop_sequence",
    Stop.PAUSE: "pause_turn",
    Stop.TOOLS: "tool_use",
    Stop.OTHER: "other",
    Stop.REFUSAL: "refusal",
    Stop.FILTER: "refusal",
    Stop.LENGTH: "max_tokens",
}
"""An end that the SDK has no word for is told by its own, never as a success."""
# The IR has OpenAI's words for it.
_TIERS: Final = {"default": "standard", "priority": "priority"}
_SILENT: Final = frozenset({"answer:logprobs", "answer:choices", "usage:audio"})


def write(response: Response, context: Context) -> bytes:
    """The message. Raises `UpstreamError` for a call in a form that the surface does not have."""
    usage = spent(response.usage or Usage(), response.service_tier)
    count = sum(isinstance(part, Search) for part in response.parts)
    body = {
        "id": response.id or f"asf_msg_{context.request_id}",
        "type": "message",
        "role": "assistant",
        "model": response.model or context.model,
        "content": list(_blocks(response, context)),
        "stop_reason": REASONS[response.stop],
        "stop_sequence": response.stop_sequence,
        "usage": usage if response.usage is None else usage | searched(count),
    }
    return msgspec.json.encode(body)


def unsaid(response: Response, context: Context) -> Collection[str]:
    """What has no place here: half a call is seen in a stream only, a source only where a search of this answer found it, a proof not at the end."""
    lost = {
        "answer:seals": len(_shown(response.parts, context)) < len(response.parts),
        "answer:citations": tuple(searches.told(response.parts)) != response.parts,
        "answer:half_call": not context.stream and any(_is_half(part, response.stop) for part in response.parts),
        "answer:service_tier": response.service_tier is not None and response.service_tier not in _TIERS,
    }
    return (held(response) & _SILENT) | {name for name, is_lost in lost.items() if is_lost}


def _blocks(response: Response, context: Context) -> Iterator[Object]:
    """The blocks. Half a call has none, nor has a part that no block can say."""
    for part in searches.told(_shown(response.parts, context)):
        make = None if _is_half(part, response.stop) else _BLOCKS.get(type(part))
        if make is not None:
            yield from make(part, context)


def _shown(parts: Sequence[Part], context: Context) -> tuple[Part, ...]:
    """The parts without Gemini's tokens at their end: Claude Code takes the last block for the answer, and Gemini needs none back for words."""
    end = next((index for index in range(len(parts), 0, -1) if not is_silent(parts[index - 1], context)), len(parts))
    return tuple(parts[:end])


def is_silent(part: Part, context: Context) -> bool:
    """Whether a part is a token of Gemini's whose words, if any, the client does not see."""
    seal = part.seal if isinstance(part, Reasoning) and (not part.text or hidden(context)) else None
    return seal is not None and seal.kind is SealKind.THOUGHT


def _is_half(part: object, stop: Stop) -> bool:
    """Whether a cut left half a call. It may have come before the first argument: none at all are whole only where nothing was cut."""
    return isinstance(part, Call) and stop not in ENDED and not (part.arguments and whole(part))


def _text(part: Any, context: Context) -> Iterator[Object]:
    # The API refuses an empty block when the client sends it back.
    if part.text:
        sources = [searches.location(citation, context) for citation in getattr(part, "citations", ())]
        yield {"type": "text", "text": part.text} | ({"citations": sources} if sources else {})


def _reasoning(part: Any, context: Context) -> Iterator[Object]:
    """Thinking, or its redacted form. The API's clients demand a signature: without a token the text itself rides in the envelope."""
    if not part.text and part.seal is None:
        return
    seal = part.seal or Seal(part.text, SealKind.TEXT, context.upstream)
    if seal.kind is SealKind.REDACTED:
        yield {"type": "redacted_thinking", "data": seals.wrap(seal, context.seal_domain)}
        return
    yield _thinking("" if hidden(context) else part.text, seal, context)


def _search(part: Any, context: Context) -> Iterator[Object]:
    yield searches.use(part) | {"input": searches.asked(part)}
    yield searches.result(part, context)


def hidden(context: Context) -> bool:
    """Whether the client asked not to see the words of the reasoning."""
    effort = context.request.effort
    return effort is not None and effort.summary == "omitted"


def _thinking(text: str, seal: Seal, context: Context) -> Object:
    return {"type": "thinking", "thinking": text, "signature": seals.wrap(seal, context.seal_domain)}


def _call(part: Any, context: Context) -> Iterator[Object]:
    """A call. The surface has no slot for a call's own seal: it stands in a thinking block before it, without words and with the call's id."""
    said = tool_use(part, context)
    if part.seal is not None:
        yield _thinking("", call_seal(part.seal, said), context)
    # The exact text; no arguments at all are an empty object.
    yield said | {"input": Raw(part.arguments or "{}")}


def tool_use(call: Call, context: Context) -> Object:
    """A call without its arguments, by the client's name for the tool. Raises `UpstreamError` for one of free text, which no client here offered."""
    if call.form is not Form.FUNCTION:
        raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream called a tool with free text")
    identity = f"asf_{call.id}_{context.request_id}" if call.minted else call.id
    alias = context.aliases.get(call.name)
    return {"type": "tool_use", "id": identity, "name": call.name if alias is None else alias.name, "input": {}}


def call_seal(seal: Seal, said: Object) -> Seal:
    """A call's seal, which names the call, as the client knows it, in its envelope."""
    return structs.replace(seal, id=said["id"])


_BLOCKS: Final[dict[type[Any], Callable[[Any, Context], Iterator[Object]]]] = {
    Text: _text,
    Refusal: _text,
    Reasoning: _reasoning,
    Call: _call,
    Search: _search,
}


def searched(count: int) -> Object:
    """How many searches were run. The SDK's type demands the number of fetches beside it."""
    return {"server_tool_use": {"web_search_requests": count, "web_fetch_requests": 0}} if count else {}


def spent(usage: Usage, tier: str | None) -> Object:
    """Input is told in three parts. The SDK's type demands two numbers: 0 is the only one that claims nothing."""
    # Caches count in blocks, so some servers report more cached tokens than there was input.
    rest = max(0, (usage.input or 0) - (usage.cached or 0) - (usage.cache_write or 0))
    said: Object = {
        "input_tokens": rest,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output or 0,
        "output_tokens_details": None if usage.reasoning is None else {"thinking_tokens": usage.reasoning},
        "service_tier": _TIERS.get(tier or ""),
    }
    return {name: value for name, value in said.items() if value is not None}
