"""Lowers a request to Responses: everything it says, with this surface's differing defaults written out.

Knows no source surface: what this one cannot say has been judged by the source's table; only what depends on values is refused here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface import ir
from asgi_surface.codecs import moved
from asgi_surface.codecs.base import Dialect, Lowered, Target
from asgi_surface.codecs.responses import lower_items, lower_tools
from asgi_surface.codecs.spelling import OPENAI
from asgi_surface.codecs.strict_schema import is_strict
from asgi_surface.codecs.wishes import EFFORTS, offered, sufficient
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
_INSTRUCTIONS: Final = frozenset({ir.Role.SYSTEM, ir.Role.DEVELOPER})
_VERBOSITIES: Final = frozenset({"low", "medium", "high"})


def lower(request: ir.Request, target: Target) -> Lowered:
    """The request in Responses' words. Raises `RequestError` with the client's pointer for what its values make unsayable."""
    _check_end(request.turns, target.dialect)
    request, narrowed = offered(request, target.dialect)
    said = list(_members(request, target))
    model = {"model": Raw(msgspec.json.encode(target.model))}
    return Lowered(
        members=model | {member.name: Raw(msgspec.json.encode(member.value)) for member in said},
        origins={member.name: member.origin for member in said if member.origin is not None},
        added=frozenset(member.name for member in said if member.origin is None),
        aliases=lower_tools.aliases(request, target),
        emulated=(
            *narrowed,
            *_emulated(request, target),
            *moved.other_ids(request, lower_items.call_id),
            *moved.made_names(request),
            *moved.left_names(request),
            *_moved(request.turns),
        ),
    )


def _emulated(request: ir.Request, target: Target) -> Iterator[Mention]:
    """What is said another way because of its value or the dialect: the source's table cannot know it."""
    yield from (Mention(how, node.at) for node, how in lower_tools.emulations(request, target))
    for turn in _instructions(request.turns)[1]:
        if turn.role in _INSTRUCTIONS and turn.role != target.dialect.instruction_role:
            yield Mention(f"role:{turn.role}", turn.at)
        yield from (Mention("result:failed", part.at) for part in turn.parts if isinstance(part, ir.Result) and part.failed)
    if request.effort is not None:
        yield from (Mention(f"effort:{name}", request.effort.at) for name in _other_effort(request.effort))
    if request.format is not None:
        yield from (Mention(f"format:{name}", request.format.at) for name in _reformed(request.format))
    if _is_long(request.settings.safety_id):
        yield Mention("safety_id:hash", request.settings.at.get("safety_id", ""))


def _other_effort(effort: ir.Effort) -> Iterator[str]:
    """What of an effort is told another way: a budget by a word, and a word where reasoning is off."""
    if effort.budget is not None and not effort.off:
        yield "budget"
    if effort.off and effort.word not in {None, "none"}:
        yield "word"


def _moved(turns: tuple[ir.Turn, ...]) -> Iterator[Mention]:
    """Outputs stand before the words of their own turn only."""
    return (mention for turn in turns for mention in moved.before_words((turn,)))


def _reformed(wish: ir.Format) -> Iterator[str]:
    """What of a schema's frame is another: a name that does not fit, or a guarantee that only some schemas can have."""
    if wish.name and OPENAI.fitting(wish.name) != wish.name:
        yield "name"
    if wish.schema is not None and wish.strict is None and not is_strict(wish.schema):
        yield "strict"


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
        if (padded := request.settings.obfuscation) is not None:
            yield _Said("stream_options", {"include_obfuscation": padded}, request.settings.at.get("obfuscation", ""))


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
        short = hashlib.sha256(user.encode()).hexdigest() if _is_long(user) else user
        yield _Said("safety_identifier", short, settings.at.get("safety_id", ""))


def _is_long(user: str | None) -> bool:
    return user is not None and len(user) > _IDENTIFIER


def _reasoning(effort: ir.Effort | None, dialect: Dialect) -> Iterator[_Said]:
    """The word and the summary. Adaptive reasoning is the API's own way, so without a word nothing is said of it."""
    if effort is None:
        return
    word = sufficient(effort, dialect) if _is_budget(effort) else "none" if effort.off else _known(effort.word, EFFORTS, effort.at)
    wishes = {"effort": word, "summary": None if effort.summary == "omitted" else effort.summary}
    if said := {name: wish for name, wish in wishes.items() if wish is not None}:
        yield _Said("reasoning", said, effort.at)


def _known(word: str | None, words: Collection[str], at: str) -> str | None:
    """The word itself. Raises `RequestError` for one that the API does not have: no other means the same."""
    if word is not None and word not in words:
        raise RequestError(Code.UNREPRESENTABLE, "a word that Responses does not have", pointer=at)
    return word


def _is_budget(effort: ir.Effort) -> bool:
    """Whether the effort is told by its tokens only."""
    return effort.budget is not None and effort.word is None and not effort.off


def _text(wish: ir.Format | None, settings: ir.Settings) -> Iterator[_Said]:
    said: dict[str, object] = {} if wish is None else {"format": _format(wish)}
    at = settings.at.get("verbosity", "")
    if (verbosity := _known(settings.verbosity, _VERBOSITIES, at)) is not None:
        said["verbosity"] = verbosity
    if said:
        yield _Said("text", said, at if wish is None else wish.at)


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
