"""A whole answer as generateContent gives it. Knows no upstream; says nothing that the upstream did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.gemini.grounding import metadata
from asgi_surface.codecs.gemini.logprobs import entries, result
from asgi_surface.codecs.gemini.parts import Json, signed
from asgi_surface.members import Members

REASONS: Final[dict[ir.Stop, str]] = {
    ir.Stop.END: "STOP",
    ir.Stop.STOP_SEQUENCE: "STOP",
    ir.Stop.TOOLS: "STOP",  # Gemini has no reason of its own for calls
    ir.Stop.PAUSE: "OTHER",
    ir.Stop.OTHER: "OTHER",
    ir.Stop.REFUSAL: "SAFETY",  # the answer's text, if any, says why
    ir.Stop.FILTER: "SAFETY",
    ir.Stop.LENGTH: "MAX_TOKENS",
    ir.Stop.ERROR: "OTHER",
}
"""Gemini's finishReason for each reason."""

_OBJECT: Final = msgspec.json.Decoder(Members)
# A Gemini client that sends an envelope back on a call or a text has kept the part; on a part of its own it may have left it out.
CARRIERS: Final = (ir.Text, ir.Refusal, ir.Call)
"""What takes the token of reasoning without words that stands before it."""


def write(response: ir.Response, context: Context) -> bytes:
    """A GenerateContentResponse with one candidate. Tokens come in envelopes; what is not known is left out."""
    parts = tuple(part for part in response.parts if not isinstance(part, ir.Call) or is_object(part.arguments))
    said = list(signed(parts, lambda part: _say(part, context.aliases), lambda part: _envelope(part, context.seal_domain), CARRIERS))
    content: Json = {"role": "model"} | ({"parts": said} if said else {})
    finish = reason(response.stop, unsaid=len(parts) < len(response.parts))
    candidate: Json = {"content": content, "finishReason": finish, "index": 0}
    if (grounding := metadata(_cited(said, parts))) is not None:
        candidate["groundingMetadata"] = grounding
    if response.logprobs is not None:
        candidate["logprobsResult"] = result(entries(response.logprobs))
    body: Json = {"candidates": [candidate], "modelVersion": response.model or context.model}
    if (counted := usage(response.usage)) != {}:
        body["usageMetadata"] = counted
    if response.id is not None:
        body["responseId"] = response.id
    return msgspec.json.encode(body)


def reason(stop: ir.Stop, *, unsaid: bool) -> str:
    """The finishReason. A call whose arguments are no object cannot be said: it is left out, and the finish says so unless a weightier one stands."""
    if unsaid and stop <= ir.Stop.TOOLS:
        return "MALFORMED_FUNCTION_CALL"
    return REASONS[stop]


def is_object(arguments: str) -> bool:
    """Whether a call's arguments can be said: an object, or nothing."""
    try:
        _OBJECT.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _say(part: ir.Part, aliases: Mapping[str, Alias]) -> Json | None:
    """A part in Gemini's words; None for what answers do not hold."""
    if isinstance(part, ir.Text | ir.Refusal):
        return {"text": part.text}
    if isinstance(part, ir.Reasoning):
        return {"text": part.text, "thought": True}
    return {"functionCall": function_call(part, aliases)} if isinstance(part, ir.Call) else None


def function_call(call: ir.Call, aliases: Mapping[str, Alias]) -> Json:
    """A call under the client's own name of the tool. Its arguments must be an object."""
    said: Json = {} if call.minted else {"id": call.id}
    name = aliases[call.name].name if call.name in aliases else call.name
    return said | {"name": name, "args": Raw((call.arguments or "{}").encode())}


def _envelope(part: ir.Part, domain: str) -> str | None:
    seal = part.seal if isinstance(part, ir.Reasoning | ir.Call) else None
    return None if seal is None else seals.wrap(seal, domain)


def _cited(said: Sequence[Json], parts: Sequence[ir.Part]) -> list[tuple[int, str, Sequence[ir.Citation]]]:
    """Each text with its place among the parts as they are said."""
    places = (index for index, part in enumerate(said) if "text" in part and "thought" not in part)
    texts = (part for part in parts if isinstance(part, ir.Text | ir.Refusal))
    return [(index, part.text, part.citations) for index, part in zip(places, texts, strict=True) if isinstance(part, ir.Text)]


def usage(spent: ir.Usage | None) -> Json:
    """The usageMetadata; empty where nothing is known. Gemini counts thoughts beside the candidates."""
    counted = spent or ir.Usage()
    said = {
        "promptTokenCount": counted.input,
        "candidatesTokenCount": None if counted.output is None else max(counted.output - (counted.reasoning or 0), 0),
        "thoughtsTokenCount": counted.reasoning,
        "cachedContentTokenCount": counted.cached,
        "totalTokenCount": None if counted.input is None or counted.output is None else counted.input + counted.output,
    }
    return {name: number for name, number in said.items() if number is not None}
