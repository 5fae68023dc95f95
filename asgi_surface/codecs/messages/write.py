"""Writes a whole answer as a Messages client reads it: one message with its blocks in the order in which the model said them.

Opaque tokens travel in envelopes in the surface's own slots. Knows nothing of the upstream's surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface import seals
from asgi_surface.codecs import reading
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.messages.answer import CUT
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Call, Form, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text, Usage

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
_ARGUMENTS: Final = msgspec.json.Decoder(dict[str, Raw])


def write(response: Response, context: Context) -> bytes:
    """The message. Raises `UpstreamError` where the answer failed, or a call cannot be told to the client."""
    if response.stop is Stop.ERROR:
        raise UpstreamError(Code.UPSTREAM_ERROR, "the upstream's model failed")
    body = {
        "id": response.id or f"asf_msg_{context.request_id}",
        "type": "message",
        "role": "assistant",
        "model": response.model or context.model,
        "content": list(_blocks(response, context)),
        "stop_reason": REASONS[response.stop],
        "stop_sequence": response.stop_sequence,
        "usage": spent(response.usage or Usage(), response.service_tier),
    }
    return msgspec.json.encode(body)


def unsaid(response: Response) -> tuple[str, ...]:
    """Citations of a web search need the provider's own encrypted index, and log-probabilities have no place."""
    cited = any(part.citations for part in response.parts if isinstance(part, Text))
    return (*(["answer:citations"] if cited else []), *(["answer:logprobs"] if response.logprobs is not None else []))


def _blocks(response: Response, context: Context) -> Iterator[Object]:
    """The blocks. A part that no block can say is left out."""
    last = len(response.parts) - 1
    for index, part in enumerate(response.parts):
        make = _BLOCKS.get(type(part))
        if make is not None:
            yield from make(part, context, index == last and response.stop in CUT)


def _text(part: Any, _context: Context, _half: bool) -> Iterator[Object]:
    # The API refuses an empty block when the client sends it back. Citations of a web search need the provider's own encrypted index.
    if part.text:
        yield {"type": "text", "text": part.text}


def _reasoning(part: Any, context: Context, _half: bool) -> Iterator[Object]:
    """Thinking, or its redacted form. The API's clients demand a signature: without a token the text itself rides in the envelope."""
    if not part.text and part.seal is None:
        return
    seal = part.seal or Seal(part.text, SealKind.TEXT, context.upstream)
    if seal.kind is SealKind.REDACTED:
        yield {"type": "redacted_thinking", "data": seals.wrap(seal, context.seal_domain)}
        return
    yield _thinking("" if hidden(context) else part.text, seal, context)


def hidden(context: Context) -> bool:
    """Whether the client asked not to see the words of the reasoning."""
    effort = context.request.effort
    return effort is not None and effort.summary == "omitted"


def _thinking(text: str, seal: Seal, context: Context) -> Object:
    return {"type": "thinking", "thinking": text, "signature": seals.wrap(seal, context.seal_domain)}


def _call(part: Any, context: Context, half: bool) -> Iterator[Object]:
    """A call. The surface has no slot for a call's own seal: it stands in a thinking block before it, without words and with the call's id."""
    arguments = _input(part, half=half)
    if arguments is None:
        return
    said = tool_use(part, context)
    if part.seal is not None:
        yield _thinking("", call_seal(part.seal, said), context)
    yield said | {"input": arguments}


def tool_use(call: Call, context: Context) -> Object:
    """A call without its arguments, by the client's name for the tool."""
    identity = f"asf_{call.id}_{context.request_id}" if call.minted else call.id
    alias = context.aliases.get(call.name)
    return {"type": "tool_use", "id": identity, "name": call.name if alias is None else alias.name, "input": {}}


def call_seal(seal: Seal, said: Object) -> Seal:
    """A call's seal, which names the call, as the client knows it, in its envelope."""
    return structs.replace(seal, id=said["id"])


def _input(call: Call, *, half: bool) -> Raw | None:
    """The arguments in their exact text; None where a cut left half of them. No arguments at all are an empty object, nothing else is."""
    text = call.arguments or ("" if half else "{}")
    if call.form is Form.FUNCTION and is_object(text):
        return Raw(text)
    if half:
        return None
    raise unreadable_call()


def is_object(arguments: str) -> bool:
    """Whether the text is a whole JSON object."""
    try:
        reading.decode(_ARGUMENTS, arguments.encode())
    except ValueError:
        return False
    return True


def unreadable_call() -> UpstreamError:
    """The error of a call that the client cannot be told."""
    return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream called a tool with arguments that are no JSON object")


_BLOCKS: Final[dict[type[Any], Callable[[Any, Context, bool], Iterator[Object]]]] = {
    Text: _text,
    Refusal: _text,
    Reasoning: _reasoning,
    Call: _call,
}


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
