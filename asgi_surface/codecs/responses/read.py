"""Reads a whole Responses answer into no surface's words. Knows nothing of events, nor of the client's surface.

Strict where a client acts on it (text, refusals, calls, the finish), tolerant everywhere else: what it does not know is skipped and named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs import reading
from asgi_surface.codecs.responses.answer import RUNNING, Answer, finished
from asgi_surface.codecs.responses.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.responses.known import KNOWN
from asgi_surface.codecs.strangers import UNKNOWN, strangers
from asgi_surface.ir import Call, Citation, Form, Part, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text
from asgi_surface.lifecycle import Kind
from asgi_surface.soundness import ENDED
from asgi_surface.surfaces import RESPONSES

T = TypeVar("T")


class _Whole(Answer, kw_only=True):
    """A response object. What stands below `reasoning` says more than other surfaces can. What repeats the request, or tells a time, is not read."""

    output: list[Raw]
    model: Any = None
    created_at: Any = None
    service_tier: Any = None
    reasoning: Any = None
    conversation: Any = None
    input_transformations: Any = None
    moderation: Any = None
    prompt_cache_diagnostics: Any = None
    tool_usage: Any = None


class _Typed(Struct):
    """An item or a content part of any type."""

    type: Any = None


class _Message(Struct):
    content: list[Raw]
    phase: Any = None


class _OutputText(Struct):
    text: str
    annotations: Any = None
    logprobs: Raw = Raw(b"null")


class _Refused(Struct):
    refusal: str


class _Called(Struct, rename={"async_": "async"}):
    call_id: str
    name: str
    namespace: str | None = None
    async_: Any = None
    caller: Any = None


class _Function(_Called, kw_only=True):
    arguments: str
    status: Any = None


class _Custom(_Called, kw_only=True):
    input: str


class _Reasoned(Struct):
    id: Any = None
    summary: Any = None
    content: Any = None
    encrypted_content: Any = None


_ANSWER: Final = Decoder(_Whole)
_TYPED: Final = Decoder(_Typed)
_MESSAGE: Final = Decoder(_Message)
_TEXT: Final = Decoder(_OutputText)
_REFUSED: Final = Decoder(_Refused)
_FUNCTION: Final = Decoder(_Function)
_CUSTOM: Final = Decoder(_Custom)
_REASONED: Final = Decoder(_Reasoned)
_LIST: Final = Decoder(list[Raw] | None)

# Unknown words of a status are an unknown end. A response that still runs, or failed, is no answer.
_ENDS: Final = {"completed": Stop.END, "incomplete": Stop.OTHER}
_NO_ANSWER: Final = RUNNING | {"failed"}
_UNSAID: Final = ("conversation", "input_transformations", "moderation", "prompt_cache_diagnostics", "tool_usage")
_WRITES: Final = "usage:input_tokens_details.cache_write_tokens_details"
_DEEP: Final = 8


class _Reader:
    """What the items have said so far, in order. `ended` says that the answer was not cut."""

    def __init__(self, *, ended: bool) -> None:
        self._ended = ended
        self.parts: list[Part] = []
        self.logprobs: list[Raw] = []
        self.unread: list[str] = []

    def item(self, raw: Raw) -> None:
        """One item of `output`."""
        self._dispatch(raw, _ITEMS)

    def message(self, raw: Raw) -> None:
        said = _decoded(_MESSAGE, raw)
        for part in said.content:
            self._dispatch(part, _PARTS)
        if said.phase is not None:
            self.unread.append("answer:message.phase")

    def text(self, raw: Raw) -> None:
        said = _decoded(_TEXT, raw)
        self.logprobs += _entries(said.logprobs)
        annotations = said.annotations if isinstance(said.annotations, list) else []
        citations = [citation for annotation in annotations if (citation := self._citation(reading.mapping(annotation))) is not None]
        if said.text:
            self.parts.append(Text(said.text, citations=tuple(citations)))

    def _citation(self, said: Any) -> Citation | None:
        url, title = said.get("url"), said.get("title")
        if said.get("type") == "url_citation" and isinstance(url, str):
            place = reading.count(said.get("start_index")), reading.count(said.get("end_index"))
            return Citation(url, title if isinstance(title, str) else "", *place)
        self.unread.append(_construct(said.get("type")))
        return None

    def refusal(self, raw: Raw) -> None:
        self.parts.append(Refusal(_decoded(_REFUSED, raw).refusal))

    def function(self, raw: Raw) -> None:
        said = _decoded(_FUNCTION, raw)
        self._marked("function_call", said)
        # No arguments are the empty object, unless a cut came before them.
        whole = "{}" if whole_item(said.status, ended=self._ended) else ""
        self.parts.append(Call(said.call_id, said.name, said.arguments or whole, namespace=said.namespace))

    def custom(self, raw: Raw) -> None:
        said = _decoded(_CUSTOM, raw)
        self._marked("custom_tool_call", said)
        self.parts.append(Call(said.call_id, said.name, said.input, Form.CUSTOM, said.namespace))

    def _marked(self, kind: str, said: _Called) -> None:
        """Marks of a call that only this surface has. The model itself (`direct`) calls everywhere."""
        marks = {"async": said.async_, "caller": reading.mapping(said.caller).get("type") not in {None, "direct"}}
        self.unread += [f"answer:{kind}.{name}" for name, value in marks.items() if value]

    def reasoning(self, raw: Raw) -> None:
        said = _decoded(_REASONED, raw)
        # Each is a paragraph. OpenAI gives summaries only, open engines the words themselves.
        text = "\n\n".join(_texts(said.content) or _texts(said.summary))
        token, known = said.encrypted_content, said.id if isinstance(said.id, str) else ""
        seal = Seal(token, SealKind.ENCRYPTED, RESPONSES, id=known) if isinstance(token, str) and token else None
        if text or seal:
            self.parts.append(Reasoning(text, seal))

    def _dispatch(self, raw: Raw, table: Any) -> None:
        kind = _decoded(_TYPED, raw).type
        take = table.get(kind) if isinstance(kind, str) else None
        if take is None:
            self.unread.append(_construct(kind))
        else:
            take(self, raw)


_PARTS: Final = {"output_text": _Reader.text, "refusal": _Reader.refusal}
_ITEMS: Final = {
    "message": _Reader.message,
    "function_call": _Reader.function,
    "custom_tool_call": _Reader.custom,
    "reasoning": _Reader.reasoning,
}


def read(body: bytes) -> Response:
    """The answer. Raises `ValueError` when its text, refusals, calls or finish cannot be read, or when it is none: failed, or still running."""
    answer = reading.decode(_ANSWER, body)
    if not isinstance(answer.status, str) or answer.status in _NO_ANSWER:
        raise ValueError("no finish")
    facts = {signal.kind: signal for signal in finished(answer, _ENDS.get(answer.status, Stop.OTHER))}
    stop = facts[Kind.FINISH].stop or Stop.END
    reader = _Reader(ended=stop in ENDED)
    if thought := reading.string(answer.reasoning):  # mistral.rs tells it here; else the member repeats the request
        reader.parts.append(Reasoning(thought))
    for item in answer.output:
        reader.item(item)
    calls = any(isinstance(part, Call) for part in reader.parts)
    return Response(
        id=reading.string(answer.id),
        model=reading.string(answer.model),
        created=_whole(answer.created_at),
        parts=tuple(reader.parts),
        stop=Stop.TOOLS if stop is Stop.END and calls else stop,
        usage=facts[Kind.USAGE].usage if Kind.USAGE in facts else None,
        logprobs=Raw(b"[" + b",".join(map(bytes, reader.logprobs)) + b"]") if reader.logprobs else None,
        service_tier=reading.string(answer.service_tier),
        unread=(*reader.unread, *_unsaid(answer), *strangers(body, KNOWN)),
    )


def whole_item(status: object, *, ended: bool) -> bool:
    """Whether nothing of an item is missing: what it says itself, else whether the answer has `ended` as it should."""
    return status == "completed" or (ended and status != "incomplete")


def _unsaid(answer: _Whole) -> Iterator[str]:
    """What the response object says beside its items, and no other surface does."""
    yield from (f"answer:{name}" for name in _UNSAID if _says(getattr(answer, name)))
    if _says(reading.mapping(reading.mapping(answer.usage).get("input_tokens_details")).get("cache_write_tokens_details")):
        yield _WRITES


def _says(value: object, depth: int = _DEEP) -> bool:
    """Whether a value says anything: counts of nothing and what is empty do not. What lies deeper than anything official is taken to."""
    if not isinstance(value, dict | list) or not depth:
        return bool(value)
    return any(_says(inner, depth - 1) for inner in (value.values() if isinstance(value, dict) else value))


def _decoded(decoder: Decoder[T], raw: Raw) -> T:
    return reading.decode(decoder, bytes(raw))


def _construct(kind: object) -> str:
    name = f"answer:{kind}"
    return name if name in ANSWER_ROWS else UNKNOWN


def _entries(raw: Raw) -> list[Raw]:
    """Token entries, each in its exact text. Log probabilities of another shape are none: they are no part of the answer."""
    try:
        return _LIST.decode(raw) or []
    except msgspec.ValidationError:
        return []


def _texts(parts: object) -> list[str]:
    said = [reading.mapping(part).get("text") for part in parts] if isinstance(parts, list) else []
    return [text for text in said if isinstance(text, str) and text]


def _whole(value: object) -> int | None:
    """Seconds; some servers say them with a fraction."""
    return int(value) if isinstance(value, int | float) else None
