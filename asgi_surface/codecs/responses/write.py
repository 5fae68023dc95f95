"""Writes a whole answer as a Responses client reads it: one response object with its items in the order in which the model said them.

Ids that the surface demands and no upstream gave are made of the gateway's request id. Knows nothing of the upstream's surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface import seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.responses.echo import echoed
from asgi_surface.codecs.wrapping import unwrapped
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Call, Citation, Form, Part, Reasoning, Refusal, Response, Seal, Stop, Text, Usage
from asgi_surface.surfaces import RESPONSES

_Object = dict[str, object]


_NO_LOGPROBS: Final = Raw(b"[]")

# Why an answer is incomplete; None: it is complete. What the SDK has no word for is told by its own, never as a success.
_WHY: Final[dict[Stop, str | None]] = {
    Stop.END: None,
    Stop.STOP_SEQUENCE: None,
    Stop.TOOLS: None,
    Stop.LENGTH: "max_output_tokens",
    Stop.FILTER: "content_filter",
    Stop.REFUSAL: "content_filter",
    Stop.PAUSE: "pause",
    Stop.OTHER: "other",
}
_CUT: Final = frozenset({Stop.LENGTH, Stop.FILTER, Stop.REFUSAL})
_PREFIXES: Final = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}


def write(response: Response, context: Context) -> bytes:
    """The response object. Raises `UpstreamError` where the answer failed, or a call cannot be told to the client."""
    why = _why(response)
    body = {
        "id": response.id or f"asf_resp_{context.request_id}",
        "object": "response",
        "created_at": context.now if response.created is None else response.created,
        "status": "incomplete" if why else "completed",
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "model": response.model or context.model,
        "output": _output(response, context, cut=why is not None),
        **echoed(context.request),
        **({} if response.service_tier is None else {"service_tier": response.service_tier}),
        "usage": None if response.usage is None else _usage(response.usage),
    }
    return msgspec.json.encode(body)


def _why(response: Response) -> str | None:
    """A refusal in words is a whole answer; one without is the provider's filter."""
    if response.stop is Stop.ERROR:
        raise UpstreamError(Code.UPSTREAM_ERROR, "the upstream's model failed")
    spoken = response.stop is Stop.REFUSAL and any(isinstance(part, Refusal) for part in response.parts)
    return None if spoken else _WHY[response.stop]


def _output(response: Response, context: Context, *, cut: bool) -> list[_Object]:
    """The items, each with its id. The last one of a cut answer is incomplete itself."""
    said = [part for part in response.parts if not (isinstance(part, Text) and not part.text)]
    writer = _Writer(response, context, said)
    items = [
        item for spoken, group in groupby(said, lambda part: isinstance(part, Text | Refusal)) for item in writer.items(list(group), spoken=spoken)
    ]
    if cut and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return [{"id": f"asf_{_PREFIXES[str(item['type'])]}_{context.request_id}_{index}"} | item for index, item in enumerate(items)]


class _Writer:
    """Makes items of parts."""

    def __init__(self, response: Response, context: Context, parts: list[Part]) -> None:
        self._context = context
        # The IR has the log probabilities of the whole answer: they stand with its first text.
        self._first = next((part for part in parts if isinstance(part, Text)), None)
        self._logprobs = response.logprobs or _NO_LOGPROBS
        self._half = parts[-1] if parts and response.stop in _CUT else None

    def items(self, parts: list[Part], *, spoken: bool) -> list[_Object]:
        """The items of neighbouring parts: text and refusals make one message. What no item can say is left out."""
        if spoken:
            return [{"type": "message", "status": "completed", "role": "assistant", "content": [self._content(part) for part in parts]}]
        makers = [(part, _ITEMS.get(type(part))) for part in parts]
        return [item for part, make in makers if make is not None for item in make(self, part)]

    def _content(self, part: Any) -> _Object:
        if isinstance(part, Refusal):
            return {"type": "refusal", "refusal": part.text}
        logprobs = self._logprobs if part is self._first else _NO_LOGPROBS
        annotations = [_annotation(citation, len(part.text)) for citation in part.citations]
        return {"type": "output_text", "annotations": annotations, "logprobs": logprobs, "text": part.text}

    def reasoning(self, part: Any) -> Iterator[_Object]:
        return self._reasoned(part.text, part.seal)

    def _reasoned(self, text: str, seal: Seal | None) -> Iterator[_Object]:
        """One reasoning item. The seal is told to a client that asked for it, else it is nothing to it."""
        shown = seal if seal is not None and self._context.request.wants_seals else None
        if text or shown:
            item: _Object = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}] if text else []}
            if seal is not None and seal.id and seal.surface == RESPONSES:
                item["id"] = seal.id
            if shown is not None:
                item["encrypted_content"] = seals.wrap(shown, self._context.seal_domain)
            yield item

    def call(self, part: Any) -> Iterator[_Object]:
        """A call. The surface has no slot for a call's own seal: it stands in a reasoning item before it, without words and with the call's id."""
        call = _restored(part, self._context.aliases, half=part is self._half)
        if call is None:
            return
        call_id = f"asf_{call.id}_{self._context.request_id}" if call.minted else call.id
        if call.seal is not None:
            yield from self._reasoned("", structs.replace(call.seal, id=call_id))
        identity = {"call_id": call_id, "name": call.name}
        place = {} if call.namespace is None else {"namespace": call.namespace}
        if call.form is Form.CUSTOM:
            yield {"type": "custom_tool_call", **identity, "input": call.arguments, **place}
        else:
            arguments = call.arguments if part is self._half else call.arguments or "{}"
            yield {"type": "function_call", "status": "completed", **identity, "arguments": arguments, **place}


_ITEMS: Final[dict[type[Any], Callable[[_Writer, Any], Iterator[_Object]]]] = {Reasoning: _Writer.reasoning, Call: _Writer.call}


def _restored(call: Call, aliases: Mapping[str, Alias], *, half: bool) -> Call | None:
    """The call under the name and in the form that the client knows; None where a cut left too little of it to say."""
    alias = aliases.get(call.name)
    if alias is None:
        return call
    known = structs.replace(call, name=alias.name, namespace=alias.namespace)
    if alias.form is call.form:
        return known
    if (text := unwrapped(call.arguments)) is not None:
        return structs.replace(known, form=Form.CUSTOM, arguments=text)
    if half:
        return None
    raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream called a custom tool with arguments that hold no `input`")


def _annotation(citation: Citation, length: int) -> _Object:
    """A citation without offsets rests under the whole text."""
    start = 0 if citation.start is None else citation.start
    end = length if citation.end is None else citation.end
    return {"type": "url_citation", "start_index": start, "end_index": end, "title": citation.title, "url": citation.url}


def _usage(usage: Usage) -> _Object:
    """The SDK's types demand every number: 0 is the only one that claims nothing."""
    asked, answered = usage.input or 0, usage.output or 0
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_write or 0},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": asked + answered,
    }
