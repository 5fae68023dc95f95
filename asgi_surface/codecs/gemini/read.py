"""A whole generateContent answer in no surface's words. Knows no client.

Strict in what an answer is for (text, calls, its finish), tolerant in the rest: what it holds beyond that is skipped and named.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface import ir
from asgi_surface.codecs import reading
from asgi_surface.codecs.gemini.grounding import sources
from asgi_surface.codecs.gemini.known import KNOWN
from asgi_surface.codecs.gemini.logprobs import tokens
from asgi_surface.codecs.gemini.stream import reason
from asgi_surface.codecs.gemini.texts import Texts
from asgi_surface.codecs.gemini.usage import Counted
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.codecs.strangers import strangers
from asgi_surface.surfaces import GEMINI

Said = ir.Text | ir.Reasoning | ir.Call
"""What a part of an answer may say."""


class _FunctionCall(Struct):
    name: str
    args: dict[str, Raw] | None = None
    id: str | None = None


class _Content(Struct):
    parts: list[dict[str, Raw]] | None = None


class Candidate(Struct, rename="camel"):
    """One of the answers, whole or a piece of it."""

    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    citation_metadata: Any = None
    grounding_metadata: Any = None
    logprobs_result: Raw = Raw(b"null")
    finish_message: Any = None
    token_count: Any = None
    avg_logprobs: Any = None
    safety_ratings: Any = None
    url_context_metadata: Any = None
    continuation_token: Any = None

    def parts(self) -> Sequence[Mapping[str, Raw]]:
        """Its parts, each undecoded."""
        return (self.content and self.content.parts) or ()

    def stop(self) -> ir.Stop | None:
        """Why it stopped, if it has. Gemini says STOP for calls as well."""
        return reason(self.finish_reason)

    def traces(self) -> list[str]:
        """The names of what is skipped beside its parts."""
        return [name for field, name in _TRACES.items() if getattr(self, field)]


class Answer(Struct, rename="camel"):
    """A GenerateContentResponse, whole or one chunk of a stream."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Any = None
    response_id: str | None = None
    model_version: str | None = None
    create_time: str | None = None
    usage_metadata: Counted | None = None
    model_status: Any = None
    error: Any = None

    def created(self) -> int | None:
        """Seconds since the epoch."""
        try:
            return int(datetime.fromisoformat(self.create_time or "").timestamp())
        except ValueError:
            return None

    def usage(self) -> ir.Usage | None:
        """The tokens that it says were used; None where it says nothing of them."""
        counted = self.usage_metadata.usage() if self.usage_metadata else ir.Usage()
        return None if counted == ir.Usage() else counted

    def tier(self) -> str | None:
        """The service tier, in the IR's words."""
        return self.usage_metadata.tier() if self.usage_metadata else None

    def unread(self) -> list[str]:
        """The names of what it says beside its candidates and is skipped."""
        feedback = reading.mapping(self.prompt_feedback)
        names = [f"answer:promptFeedback.{name}" for name in _FEEDBACK if feedback.get(name)]
        names += ["answer:modelStatus"] if self.model_status else []
        return names + (self.usage_metadata.unread() if self.usage_metadata else [])

    def blocked(self) -> bool:
        """Whether the prompt was. It has no candidates then: a refusal without words."""
        reason = reading.mapping(self.prompt_feedback).get("blockReason")
        return not self.candidates and reason not in (None, "", "BLOCKED_REASON_UNSPECIFIED")


class _Arguments(Struct):
    args: Raw = Raw(b"{}")


ANSWER: Final = msgspec.json.Decoder(Answer)
_CALL: Final = msgspec.json.Decoder(_FunctionCall)
_ARGUMENTS: Final = msgspec.json.Decoder(_Arguments)
_TEXT: Final = msgspec.json.Decoder(str | None)
NULL: Final = Raw(b"null")
_TRUE: Final = Raw(b"true")
_READ: Final = frozenset({"thought", "thoughtSignature"})
_CALLING: Final = _READ | {"functionCall"}
_FEEDBACK: Final = ("blockReasonMessage", "safetyRatings")
_TRACES: Final = {
    "finish_message": "answer:finishMessage",
    "token_count": "answer:tokenCount",
    "avg_logprobs": "answer:avgLogprobs",
    "safety_ratings": "answer:safetyRatings",
    "url_context_metadata": "answer:urlContextMetadata",
    "continuation_token": "answer:continuationToken",
}


def read(body: bytes) -> ir.Response:
    """The answers of all candidates. Raises `ValueError` when the text, the calls or the finish of one cannot be read."""
    answer = reading.decode(ANSWER, body)
    response = ir.Response(
        id=answer.response_id, model=answer.model_version, created=answer.created(), usage=answer.usage(), service_tier=answer.tier()
    )
    candidates = sorted(answer.candidates or [], key=lambda candidate: candidate.index or 0)
    if not candidates:
        if not answer.blocked():
            raise ValueError("an answer without candidates")
        return structs.replace(response, stop=ir.Stop.REFUSAL, unread=(*answer.unread(), *strangers(body, KNOWN)))
    answers, names = zip(*map(_candidate, candidates), strict=True)
    first, *more = answers
    unread = dict.fromkeys(itertools.chain(*names, answer.unread(), strangers(body, KNOWN)))
    return structs.replace(response, parts=first.parts, stop=first.stop, logprobs=first.logprobs, more=tuple(more), unread=tuple(unread))


def _candidate(candidate: Candidate) -> tuple[ir.Alternative, list[str]]:
    """One of the answers, and the names of what is skipped of it."""
    stop = candidate.stop()
    if stop is None:
        raise ValueError("an answer that has not finished")
    read_parts = [heard(raw) for raw in candidate.parts()]
    found, uncited = sources(candidate.grounding_metadata, candidate.citation_metadata, Texts(_words(parts) for parts, _ in read_parts))
    cited: dict[int, list[ir.Citation]] = {}
    for _, place, citation in found:
        cited.setdefault(place, []).append(citation)
    parts = _numbered(_with(one, cited.get(index, ())) for index, (said, _) in enumerate(read_parts) for one in said)
    logprobs, unlogged = tokens(candidate.logprobs_result)
    stop = stopped(stop, calls=any(isinstance(part, ir.Call) for part in parts))
    skipped = (name for _, names in read_parts for name in names)
    return ir.Alternative(parts=parts, stop=stop, logprobs=logprobs), [*skipped, *uncited, *unlogged, *candidate.traces()]


def stopped(stop: ir.Stop, *, calls: bool) -> ir.Stop:
    """The reason as others say it: Gemini says STOP for calls as well."""
    return ir.Stop.TOOLS if stop is ir.Stop.END and calls else stop


def sealed(raw: Mapping[str, Raw]) -> ir.Seal | None:
    """The token on a part."""
    signature = _optional(raw.get("thoughtSignature", NULL))
    return ir.Seal(signature, ir.SealKind.THOUGHT, GEMINI) if signature else None


def thinks(raw: Mapping[str, Raw]) -> bool:
    """Whether a part's words are thought."""
    return raw.get("thought") == _TRUE


def heard(raw: Mapping[str, Raw]) -> tuple[list[Said], list[str]]:
    """A part's words or call, with its token, and the names of what is skipped."""
    said = {name: value for name, value in raw.items() if value != NULL and name not in _READ}
    seal, thought = sealed(raw), thinks(raw)
    text = _optional(said.pop("text", NULL))
    if "functionCall" in said:
        return [_call(said["functionCall"], seal)], beside(raw)
    return list(_said(text, seal, thought=thought)), _skipped(said)


def beside(raw: Mapping[str, Raw]) -> list[str]:
    """The names of what stands beside the call in a part. The wire has one or the other, so text is of no kind that is known there."""
    said = (name for name, value in raw.items() if name not in _CALLING and bytes(value) not in (b"null", b'""'))
    return _skipped("part" if name == "text" else name for name in said)


def _optional(raw: Raw) -> str | None:
    return reading.decode(_TEXT, bytes(raw))


def _said(text: str | None, seal: ir.Seal | None, *, thought: bool) -> Iterator[Said]:
    """A token on text stands before it as reasoning whose words are hidden; alone on an empty part it stays."""
    if thought:
        yield ir.Reasoning(text or "", seal)
        return
    if seal is not None:
        yield ir.Reasoning("", seal)
    if text:
        yield ir.Text(text)


def _call(raw: Raw, seal: ir.Seal | None) -> ir.Call:
    call = reading.decode(_CALL, bytes(raw))
    arguments = "{}" if call.args is None else bytes(_ARGUMENTS.decode(raw).args).decode()
    return ir.Call(call.id or "", call.name, arguments, seal=seal, minted=not call.id)


def _numbered(parts: Iterable[ir.Part]) -> tuple[ir.Part, ...]:
    """Calls that came without an id are numbered by their place among the calls."""
    places = itertools.count()
    return tuple(identified(part, next(places)) if isinstance(part, ir.Call) else part for part in parts)


def identified(call: ir.Call, place: int) -> ir.Call:
    """A call under an id: its own, or one made of its place among the calls."""
    return structs.replace(call, id=f"call_{place}") if call.minted else call


def _skipped(said: Iterable[str]) -> list[str]:
    return [name if (name := f"answer:{key}") in ROWS else "answer:part" for key in said]


def _words(parts: Sequence[ir.Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ir.Text))


def _with(part: ir.Part, citations: Sequence[ir.Citation]) -> ir.Part:
    return structs.replace(part, citations=tuple(citations)) if citations and isinstance(part, ir.Text) else part
