"""Writes a whole answer as a Responses client reads it: one response object with its items in the order in which the model said them.

Ids that the surface demands and no upstream gave are made of the gateway's request id. Knows nothing of the upstream's surface.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from asgi_surface import seals
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.responses import searches
from asgi_surface.codecs.responses.echo import echoed
from asgi_surface.codecs.responses.logprobs import listed
from asgi_surface.codecs.wrapping import unwrapped
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Call, Citation, Form, Part, Reasoning, Refusal, Response, Seal, Search, Stop, Text, Usage
from asgi_surface.losses import held
from asgi_surface.soundness import whole
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
# What the model itself writes, so that it may have been cut in it.
_WRITTEN: Final = frozenset({"message", "function_call"})
_STATUS: Final = {True: "completed", False: "incomplete"}
_PREFIXES: Final = {
    "message": "asf_msg_",
    "function_call": "asf_fc_",
    "custom_tool_call": "asf_ctc_",
    "reasoning": "asf_rs_",
    "web_search_call": searches.PREFIX,
}


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


def unsaid(response: Response, context: Context) -> Collection[str]:
    """What has no place here, or not in this answer: only text has token entries, and seals are for clients that ask for them."""
    lost = {
        "answer:stop_sequence": True,
        "answer:choices": True,
        "usage:audio": True,
        "answer:logprobs": not any(isinstance(part, Text) for part in response.parts),
        "answer:seals": not context.request.wants_seals,
        "answer:half_call": any(isinstance(part, Call) and not whole(part) and wraps(part, context) for part in response.parts),
    }
    return {name for name in held(response) if lost.get(name)}


def wraps(call: Call, context: Context) -> bool:
    """Whether the call stands for one of a custom tool, whose text is a string in the arguments: half of them may be half an escape."""
    alias = context.aliases.get(call.name)
    return alias is not None and alias.form is not call.form


def _why(response: Response) -> str | None:
    """A refusal in words is a whole answer; one without is the provider's filter."""
    if response.stop is Stop.ERROR:
        raise UpstreamError(Code.UPSTREAM_ERROR, "the upstream's model failed")
    spoken = response.stop is Stop.REFUSAL and any(isinstance(part, Refusal) for part in response.parts)
    return None if spoken else _WHY[response.stop]


def _output(response: Response, context: Context, *, cut: bool) -> list[_Object]:
    """The items, each with its id. The last one of a cut answer is incomplete itself."""
    said = [part for part in response.parts if not (isinstance(part, Text) and not part.text)]
    writer = _Writer(response, context, said, cut=cut)
    items = [
        item for spoken, group in groupby(said, lambda part: isinstance(part, Text | Refusal)) for item in writer.items(list(group), spoken=spoken)
    ]
    if cut and items and items[-1].get("status") == "completed" and items[-1]["type"] in _WRITTEN:
        items[-1]["status"] = "incomplete"
    return [{"id": f"{_PREFIXES[str(item['type'])]}{context.request_id}_{index}"} | item for index, item in enumerate(items)]


class _Writer:
    """Makes items of parts."""

    def __init__(self, response: Response, context: Context, parts: list[Part], *, cut: bool) -> None:
        self._context = context
        # The IR has the log probabilities of the whole answer: they stand with its first text.
        self._first = next((part for part in parts if isinstance(part, Text)), None)
        self._logprobs = listed(response.logprobs) if response.logprobs else _NO_LOGPROBS
        self._cut = cut
        self._last = parts[-1] if parts else None

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
        call = _restored(part, self._context, cut=self._cut)
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
            # A model that was cut before the first argument has not said that there is none.
            arguments = call.arguments if self._cut and part is self._last else call.arguments or "{}"
            yield {"type": "function_call", "status": _STATUS[whole(call)], **identity, "arguments": arguments, **place}

    def search(self, part: Any) -> Iterator[_Object]:
        """A search of the gateway's, as the API shows its own: the sources stand in the item, by their URLs alone."""
        sources = {"sources": [{"type": "url", "url": source.url} for source in part.sources]} if part.sources else {}
        action = {"type": "search", "query": part.query, **sources}
        yield {"type": "web_search_call", "status": "failed" if part.failed else "completed", "action": action}


_ITEMS: Final[dict[type[Any], Callable[[_Writer, Any], Iterator[_Object]]]] = {
    Reasoning: _Writer.reasoning,
    Call: _Writer.call,
    Search: _Writer.search,
}


def _restored(call: Call, context: Context, *, cut: bool) -> Call | None:
    """The call under the name and in the form that the client knows; None where a cut left too little of it to say."""
    alias = context.aliases.get(call.name)
    if alias is None:
        return call
    known = structs.replace(call, name=alias.name, namespace=alias.namespace)
    if not wraps(call, context):
        return known
    if (text := unwrapped(call.arguments)) is not None:
        return structs.replace(known, form=Form.CUSTOM, arguments=text)
    if cut:
        return None
    raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream called a custom tool with arguments that hold no `input`")


def _annotation(citation: Citation, length: int) -> _Object:
    """A citation without offsets rests under the whole text."""
    start = 0 if citation.start is None else citation.start
    end = length if citation.end is None else citation.end
    return {"type": "url_citation", "start_index": start, "end_index": end, "title": citation.title, "url": citation.url}


def _usage(usage: Usage) -> _Object:
    """Tokens as far as the upstream counted them.

    The SDK's types demand every number, but neither its parser nor openai-agents, pydantic-ai or LangChain mind when details are missing, so what
    nobody counted is not said to be 0. Without the three totals clients die, and in details that are there Codex demands `cached_tokens`, or it
    reads no answer.
    """
    asked, answered = usage.input or 0, usage.output or 0
    written = {} if usage.cache_write is None else {"cache_write_tokens": usage.cache_write}
    details = {"cached_tokens": usage.cached or 0, **written} if written or usage.cached is not None else None
    thought = None if usage.reasoning is None else {"reasoning_tokens": usage.reasoning}
    said = {
        "input_tokens": asked,
        "input_tokens_details": details,
        "output_tokens": answered,
        "output_tokens_details": thought,
        "total_tokens": asked + answered,
    }
    return {name: value for name, value in said.items() if value is not None}
