"""A whole answer as generateContent gives it. Knows no upstream; says nothing that the upstream did not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.gemini.grounding import metadata
from asgi_surface.codecs.gemini.logprobs import entries, result
from asgi_surface.codecs.gemini.parts import Json, signed
from asgi_surface.codecs.gemini.usage import usage
from asgi_surface.codecs.wrapping import wrapped
from asgi_surface.losses import held
from asgi_surface.soundness import whole

Answer = ir.Response | ir.Alternative

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

_SILENT: Final = frozenset({"answer:stop_sequence", "answer:service_tier", "usage:cache_write"})
# A Gemini client that sends an envelope back on a call or a text has kept the part; on a part of its own it may have left it out.
CARRIERS: Final = (ir.Text, ir.Refusal, ir.Call)
"""What takes the token of reasoning without words that stands before it."""


def write(response: ir.Response, context: Context) -> bytes:
    """A GenerateContentResponse with a candidate for each answer. Tokens come in envelopes; what is not known is left out."""
    candidates = [_candidate(answer, context) | {"index": index} for index, answer in enumerate(response.answers)]
    body: Json = {"candidates": candidates, "modelVersion": response.model or context.model}
    if (counted := usage(response.usage)) != {}:
        body["usageMetadata"] = counted
    if response.id is not None:
        body["responseId"] = response.id
    return msgspec.json.encode(body)


def _candidate(answer: Answer, context: Context) -> Json:
    searches = [part for part in answer.parts if isinstance(part, ir.Search)]
    parts = spoken(answer)
    said = list(signed(parts, lambda part: _say(part, context.aliases), lambda part: _envelope(part, context.seal_domain), CARRIERS))
    content: Json = {"role": "model"} | ({"parts": said} if said else {})
    beside = {"groundingMetadata": metadata(_cited(said, parts), searches), "logprobsResult": result(entries(answer.logprobs))}
    return {"content": content, "finishReason": REASONS[answer.stop]} | {name: value for name, value in beside.items() if value is not None}


def unsaid(response: ir.Response, _context: Context) -> Collection[str]:
    """What has no place here, or cannot be read as what it should be."""
    cut = any(len(spoken(answer)) < len(_parts(answer)) for answer in response.answers)
    odd = any(entries(answer.logprobs) is None for answer in response.answers)
    return {*(held(response) & _SILENT), *(["answer:half_call"] if cut else []), *(["answer:logprobs"] if odd else [])}


def spoken(answer: Answer) -> list[ir.Part]:
    """The parts that can be said: without half a call, and without one at which the answer broke off before its arguments began."""
    parts = _parts(answer)
    if answer.stop > ir.Stop.TOOLS and parts and isinstance(last := parts[-1], ir.Call) and not last.arguments:
        parts.pop()
    return [part for part in parts if not isinstance(part, ir.Call) or whole(part)]


def _parts(answer: Answer) -> list[ir.Part]:
    return [part for part in answer.parts if not isinstance(part, ir.Search)]


def _say(part: ir.Part, aliases: Mapping[str, Alias]) -> Json | None:
    """A part in Gemini's words; None for what answers do not hold."""
    if isinstance(part, ir.Text | ir.Refusal):
        return {"text": part.text}
    if isinstance(part, ir.Reasoning):
        return {"text": part.text, "thought": True}
    return {"functionCall": function_call(part, aliases)} if isinstance(part, ir.Call) else None


def function_call(call: ir.Call, aliases: Mapping[str, Alias]) -> Json:
    """A call under the client's own name of the tool. Free text is said as the arguments of a function with one string."""
    said: Json = {} if call.minted else {"id": call.id}
    name = aliases[call.name].name if call.name in aliases else call.name
    arguments = wrapped(call.arguments) if call.form is ir.Form.CUSTOM else call.arguments or "{}"
    return said | {"name": name, "args": Raw(arguments.encode())}


def _envelope(part: ir.Part, domain: str) -> str | None:
    seal = part.seal if isinstance(part, ir.Reasoning | ir.Call) else None
    return None if seal is None else seals.wrap(seal, domain)


def _cited(said: Sequence[Json], parts: Sequence[ir.Part]) -> list[tuple[int, str, Sequence[ir.Citation]]]:
    """Each text with its place among the parts as they are said."""
    places = (index for index, part in enumerate(said) if "text" in part and "thought" not in part)
    texts = (part for part in parts if isinstance(part, ir.Text | ir.Refusal))
    return [(index, part.text, part.citations) for index, part in zip(places, texts, strict=True) if isinstance(part, ir.Text)]
