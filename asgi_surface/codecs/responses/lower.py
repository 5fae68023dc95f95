"""Lowers a request to Responses: everything it says, with this surface's differing defaults written out.

Knows no source surface: what this one cannot say has been judged by the source's table; only what depends on values is refused here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface import ir
from asgi_surface.codecs.base import Dialect, Lowered, Target
from asgi_surface.codecs.responses import lower_items, lower_tools
from asgi_surface.codecs.spelling import OPENAI
from asgi_surface.codecs.strict_schema import is_strict
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import Feature
from asgi_surface.verdicts import Mention


class _Said(Struct, frozen=True):
    """A member of the body. `origin` is the client's place behind it, None for what the gateway adds by itself."""

    name: str
    value: object
    origin: str | None


# Settings that go by one name here, and what that is.
_SETTINGS: Final = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_logprobs": "top_logprobs",
    "parallel": "parallel_tool_calls",
    "metadata": "metadata",
    "user": "user",
    "service_tier": "service_tier",
    "cache_key": "prompt_cache_key",
}
_IDENTIFIER: Final = 64


def lower(request: ir.Request, target: Target) -> Lowered:
    """The request in Responses' words. Raises `RequestError` with the client's pointer for what its values make unsayable."""
    _check_end(request.turns, target.dialect)
    said = list(_members(request, target))
    model = {"model": Raw(msgspec.json.encode(target.model))}
    return Lowered(
        members=model | {member.name: Raw(msgspec.json.encode(member.value)) for member in said},
        origins={member.name: member.origin for member in said if member.origin is not None},
        added=frozenset(member.name for member in said if member.origin is None),
        aliases=lower_tools.aliases(request.tools, target),
        emulated=tuple(_emulated(request, target)),
    )


def _emulated(request: ir.Request, target: Target) -> Iterator[Mention]:
    """What is said another way because of its value or the dialect: the source's table cannot know it."""
    for tool in request.tools:
        if (how := lower_tools.emulation(tool, target)) is not None:
            yield Mention(how, tool.at)
    parts = (part for turn in request.turns for part in turn.parts)
    yield from (Mention("result:failed", part.at) for part in parts if isinstance(part, ir.Result) and part.failed)
    if request.effort is not None and _is_budget(request.effort):
        yield Mention("effort:budget", request.effort.at)


def _check_end(turns: tuple[ir.Turn, ...], dialect: Dialect) -> None:
    """An answer always begins a new turn: an unfinished one is not continued."""
    if turns and turns[-1].role is ir.Role.ASSISTANT and not dialect.prefill:
        raise RequestError(Code.UNREPRESENTABLE, "a Responses upstream does not continue an assistant's turn", pointer=turns[-1].at)


def _members(request: ir.Request, target: Target) -> Iterator[_Said]:
    yield from _conversation(request.turns, target)
    yield from _offer(request, target)
    yield from _settings(request.settings)
    yield from _reasoning(request.effort, target.dialect)
    yield from _text(request.format, request.settings)
    yield from _include(request, target)
    # Absent means stored, so it is always said.
    yield _Said("store", False, request.settings.at.get("store") if request.settings.store is False else None)
    if request.stream:
        yield _Said("stream", True, "/stream")


def _conversation(turns: tuple[ir.Turn, ...], target: Target) -> Iterator[_Said]:
    """One leading system text is `instructions`; everything else stands in its place, with its parts apart."""
    first, rest = _instructions(turns)
    if first is not None:
        yield _Said("instructions", first.text, turns[0].at)
    yield _Said("input", list(lower_items.items(rest, target)), rest[0].at if rest else "")


def _instructions(turns: tuple[ir.Turn, ...]) -> tuple[ir.Text | None, tuple[ir.Turn, ...]]:
    match turns:
        case (ir.Turn(role=ir.Role.SYSTEM, parts=(ir.Text() as text,)), *rest):
            return text, tuple(rest)
    return None, turns


def _offer(request: ir.Request, target: Target) -> Iterator[_Said]:
    if request.tools:
        yield _Said("tools", list(lower_tools.tools(request.tools, target)), request.tools[0].at)
    if request.choice is not None:
        yield _Said("tool_choice", lower_tools.choice(request.choice, request.tools, target), request.choice.at)


def _settings(settings: ir.Settings) -> Iterator[_Said]:
    for name, member in _SETTINGS.items():
        if (value := getattr(settings, name)) is not None:
            yield _Said(member, value, settings.at.get(name, ""))
    if (user := settings.safety_id) is not None:
        # The API takes 64 characters of it and advises a hash; equal ids stay equal.
        short = user if len(user) <= _IDENTIFIER else hashlib.sha256(user.encode()).hexdigest()
        yield _Said("safety_identifier", short, settings.at.get("safety_id", ""))


def _reasoning(effort: ir.Effort | None, dialect: Dialect) -> Iterator[_Said]:
    """The word and the summary. Adaptive reasoning is the API's own way, so without a word nothing is said of it."""
    if effort is None:
        return
    word = _nearest(effort, dialect) if _is_budget(effort) else "none" if effort.off else effort.word
    wishes = {"effort": word, "summary": None if effort.summary == "omitted" else effort.summary}
    if said := {name: wish for name, wish in wishes.items() if wish is not None}:
        yield _Said("reasoning", said, effort.at)


def _is_budget(effort: ir.Effort) -> bool:
    """Whether the effort is told by its tokens only."""
    return effort.budget is not None and effort.word is None and not effort.off


def _nearest(effort: ir.Effort, dialect: Dialect) -> str:
    """The word whose declared budget is nearest."""
    budgets = dialect.reasoning_budgets
    if not budgets:
        raise RequestError(Code.UNREPRESENTABLE, "this binding has no words for reasoning budgets", pointer=effort.at)
    return min(budgets, key=lambda word: abs(budgets[word] - (effort.budget or 0)))


def _text(wish: ir.Format | None, settings: ir.Settings) -> Iterator[_Said]:
    said: dict[str, object] = {} if wish is None else {"format": _format(wish)}
    said |= {} if settings.verbosity is None else {"verbosity": settings.verbosity}
    if said:
        yield _Said("text", said, settings.at.get("verbosity", "") if wish is None else wish.at)


def _format(wish: ir.Format) -> dict[str, Any]:
    """A schema must have a name. Surfaces that enforce every schema say nothing of strictness; here only some schemas can be enforced."""
    if wish.schema is None:
        return {"type": "json_object"}
    name = OPENAI.fitting(wish.name or "response")
    about = {"description": wish.description} if wish.description is not None else {}
    strict = is_strict(wish.schema) if wish.strict is None else wish.strict
    return {"type": "json_schema", "name": name, **about, "schema": wish.schema, "strict": strict}


def _include(request: ir.Request, target: Target) -> Iterator[_Said]:
    """What the answer is to hold beyond itself. Seals are added by the gateway, where the upstream has them."""
    sealed = request.wants_seals and Feature.ENCRYPTED_REASONING in target.features
    values = [
        name for name, wanted in (("reasoning.encrypted_content", sealed), ("message.output_text.logprobs", request.settings.logprobs)) if wanted
    ]
    if values:
        yield _Said("include", values, request.settings.at.get("logprobs", "") if request.settings.logprobs else None)
