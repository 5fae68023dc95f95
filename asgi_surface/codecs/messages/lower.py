"""A request of any surface as a Messages body.

What Messages cannot say at all has been judged before by the client's table; here only values can still be impossible, and are refused at the
client's pointer. Knows no other surface.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface import ir
from asgi_surface.codecs.base import Dialect, Lowered, Target
from asgi_surface.codecs.messages.lower_blocks import INSTRUCTIONS, PLAIN, Block, Scope, is_thoughtless, messages, refused, system
from asgi_surface.codecs.messages.lower_tools import choice, forced, is_typeless, offered, tools
from asgi_surface.codecs.moved import before_words, behind_users, other_ids
from asgi_surface.codecs.spelling import Names, Rule, spelt
from asgi_surface.verdicts import Mention

_NUMBER: Final = msgspec.json.Decoder(float)

_WORDS: Final = {word: word for word in ("low", "medium", "high", "xhigh", "max")} | {"minimal": "low"}
_TIERS: Final = {"auto": "auto", "default": "standard_only"}
_PLAIN: Final = (("top_p", "top_p"), ("top_k", "top_k"), ("stop_sequences", "stop"))
_NO_THINKING: Final[Block] = {"type": "disabled"}
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_LEAST_BUDGET: Final = 1024
_RULE: Final = Rule(re.compile(r"[a-zA-Z0-9_-]{1,128}"), re.compile(r"[^a-zA-Z0-9_-]"), 128)
"""The names of tools, and the ids of calls."""


class Entry(Struct, frozen=True):
    """A member of the body, and the client's pointer behind it (None: the gateway's own)."""

    name: str
    value: object
    origin: str | None


class Thinking(Struct, frozen=True):
    """How the upstream is asked to reason: the member, the effort's word, and the token budget, each None when not said."""

    member: Block | None = None
    word: str | None = None
    budget: int | None = None


def lower(request: ir.Request, target: Target) -> Lowered:
    """The body. Raises `RequestError` with the client's pointer for what Messages cannot say."""
    names = Names(request, _RULE)
    scope = Scope(names, _calls(request), target)
    conversation = tuple(_conversation(request, scope))
    wanted = _thinking(request.effort, target.dialect)
    clamped = _clamped(wanted, request)
    thinking, unthought = _possible(clamped, request, target.dialect, conversation[-1].value)
    settings, unheard = _sampled(request.settings, clamped)  # the same through a whole loop
    entries = [
        Entry("model", target.model, None),
        *conversation,
        *_limit(request, thinking, target.dialect),
        *_tools(request, scope),
        *_reasoning(request, thinking),
        *_settings(settings),
    ]
    if request.stream:
        entries.append(Entry("stream", value=True, origin="/stream"))
    return Lowered(
        members={entry.name: Raw(msgspec.json.encode(entry.value)) for entry in entries},
        origins={entry.name: entry.origin for entry in entries if entry.origin is not None},
        added=frozenset(entry.name for entry in entries if entry.origin is None),
        aliases=names.aliases(custom=False),
        emulated=(
            *_emulated(request, names),
            *_another(request.effort, wanted, clamped),
            *before_words(request.turns),
            *behind_users(_divided(request)[1]),
            *other_ids(request, scope.calls.__getitem__),
        ),
        dropped=(*unthought, *unheard, *_wordless(request.turns)),
    )


def _calls(request: ir.Request) -> dict[str, str]:
    """How the ids of calls, and of results that answer none, are written."""
    parts = [part for turn in request.turns for part in turn.parts]
    ids = [part.id for part in parts if isinstance(part, ir.Call)] + [part.call_id for part in parts if isinstance(part, ir.Result)]
    return spelt(((own, own) for own in ids), _RULE)


def _emulated(request: ir.Request, names: Names) -> Iterator[Mention]:
    """What the client's surface has and Messages says another way."""
    tools = offered(request)
    # A call stands here for its tool where that is no longer offered.
    used: list[ir.Tool | ir.Call] = [*tools, *(node for node in names.nodes.values() if isinstance(node, ir.Call))]
    for node in used:
        if node.form is ir.Form.CUSTOM:
            yield Mention("tool:custom", node.at)
        elif names.of(node) != node.name:
            yield Mention("tool:name" if node.namespace is None else "tool:namespace", node.at)
    yield from (Mention("tool:schema", tool.at) for tool in tools if is_typeless(tool))
    if request.choice is not None and request.choice.names is not None and not forced(request.choice):
        yield Mention("choice:allowed_tools", request.choice.at)
    # Every schema of an answer is enforced here.
    if request.format is not None and request.format.strict is False:
        yield Mention("format:strict", request.format.at)
    yield from (Mention("document:media", part.at) for part in _parts(request) if _is_retyped(part))


def _wordless(turns: tuple[ir.Turn, ...]) -> Iterator[Mention]:
    """Turns of the model's with nothing but empty words, which the API refuses. Elsewhere such words say nothing, but a turn does."""
    for turn in turns:
        if turn.role is ir.Role.ASSISTANT and not any(not isinstance(part, ir.Text | ir.Refusal) or part.text for part in turn.parts):
            yield from (Mention("text:empty", part.at) for part in turn.parts[:1])


def _parts(request: ir.Request) -> Iterator[ir.Part]:
    """Every part, and those in results."""
    for turn in request.turns:
        for part in turn.parts:
            yield part
            yield from part.parts if isinstance(part, ir.Result) else ()


def _is_retyped(part: ir.Part) -> bool:
    """Whether it is a document of text that is not called plain: Messages knows no other."""
    source = part.source if isinstance(part, ir.Document) else None
    return isinstance(source, ir.Inline) and source.media.startswith("text/") and source.media != PLAIN


def _another(effort: ir.Effort | None, wanted: Thinking, thinking: Thinking) -> Iterator[Mention]:
    """An effort that is asked for by another word, or by a budget; or a budget that is not the client's."""
    if effort is None:
        return
    if effort.word != wanted.word or (effort.budget is None and wanted.budget is not None):
        yield Mention("effort:word", effort.at)
    if thinking is not wanted:
        yield Mention("effort:budget", effort.at)


def _divided(request: ir.Request) -> tuple[tuple[ir.Turn, ...], tuple[ir.Turn, ...]]:
    """The instructions before the conversation, and the conversation."""
    leading = tuple(takewhile(lambda turn: turn.role in INSTRUCTIONS, request.turns))
    return leading, request.turns[len(leading) :]


def _conversation(request: ir.Request, scope: Scope) -> Iterator[Entry]:
    leading, rest = _divided(request)
    prompt = system(leading, scope)
    if prompt:
        yield Entry("system", prompt, leading[0].at)
    yield Entry("messages", messages(rest, scope), rest[0].at if rest else "")


def _clamped(thinking: Thinking, request: ir.Request) -> Thinking:
    """A budget that the client says itself is a ceiling: where the answer's limit leaves less, and still enough, it is what the limit leaves."""
    said, own = request.settings.max_tokens, request.effort is not None and request.effort.budget is not None
    if said is None or thinking.budget is None or not own:
        return thinking
    most = int(_number(said, _place(request.settings, "max_tokens"))) - 1
    if not _LEAST_BUDGET <= most < thinking.budget:
        return thinking
    return structs.replace(thinking, member=(thinking.member or {}) | {"budget_tokens": most}, budget=most)


def _possible(thinking: Thinking, request: ir.Request, dialect: Dialect, said: Any) -> tuple[Thinking, tuple[Mention, ...]]:
    """The thinking that the API takes, and the mention of what it does not.

    With a budget it takes no tool that must be called, and no results of calls whose turn did not begin with its own thought, which many clients do
    not keep. (https://platform.claude.com/docs/build-with-claude/thinking-tool-workflows)
    """
    must = request.choice is not None and request.choice.pick is ir.Pick.REQUIRED
    if thinking.budget is None or not dialect.signatures or not (must or is_thoughtless(said)):
        return thinking, ()
    return structs.replace(thinking, member=None, budget=None), (Mention("effort:thinking", _at(request.effort)),)


def _limit(request: ir.Request, thinking: Thinking, dialect: Dialect) -> Iterator[Entry]:
    """The limit that the client says, never raised behind its back; else the dialect's, beyond what is to be thought."""
    said = request.settings.max_tokens
    budget = thinking.budget
    limit: float = dialect.default_max_tokens + (budget or 0) if said is None else _number(said, _place(request.settings, "max_tokens"))
    if budget is not None and not _LEAST_BUDGET <= budget < limit:
        raise refused(f"a thinking budget is at least {_LEAST_BUDGET} tokens and less than the limit of the answer", _at(request.effort))
    yield Entry("max_tokens", limit, None) if said is None else Entry("max_tokens", said, _place(request.settings, "max_tokens"))


def _number(raw: Raw, at: str) -> float:
    try:
        return _NUMBER.decode(raw)
    except msgspec.DecodeError:  # JSON has no bounds
        raise refused("a number that no Messages upstream can take", at) from None


def _tools(request: ir.Request, scope: Scope) -> Iterator[Entry]:
    """The tools, and the choice among them: without tools the API refuses a choice, which means nothing then."""
    chosen = offered(request)
    if not chosen:
        return
    yield Entry("tools", tools(chosen, scope.names, scope.target.dialect), chosen[0].at)
    said = choice(request.choice, request.settings.parallel, scope.names)
    if said:
        yield Entry("tool_choice", said, _at(request.choice) or _place(request.settings, "parallel"))


def _thinking(effort: ir.Effort | None, dialect: Dialect) -> Thinking:
    if effort is None:
        return Thinking()
    word = _word(effort)
    if effort.off:
        return Thinking(_NO_THINKING, word)
    if effort.budget is not None:
        return Thinking({"type": "enabled", "budget_tokens": effort.budget} | _display(effort), word, effort.budget)
    if dialect.reasoning_style == "budget":
        budget = _budget(effort, dialect)
        return Thinking({"type": "enabled", "budget_tokens": budget} | _display(effort), None, budget)
    return Thinking({"type": "adaptive"} | _display(effort), word)


def _word(effort: ir.Effort) -> str | None:
    if effort.word is None:
        return None
    if effort.word not in _WORDS:
        raise refused("an effort that Messages does not have", effort.at)
    return _WORDS[effort.word]


def _budget(effort: ir.Effort, dialect: Dialect) -> int:
    """The declared budget of an effort; where the model is to choose, a medium one."""
    word = effort.word or "medium"
    budget = dialect.reasoning_budgets.get(word, dialect.reasoning_budgets.get(_WORDS[word]))
    if budget is None:
        raise refused("no thinking budget is declared for this effort", effort.at)
    return budget


def _display(effort: ir.Effort) -> Block:
    if effort.summary is None:
        return {}
    return {"display": "omitted" if effort.summary == "omitted" else "summarized"}


def _reasoning(request: ir.Request, thinking: Thinking) -> Iterator[Entry]:
    if thinking.member is not None:
        yield Entry("thinking", thinking.member, _at(request.effort))
    output = {} if thinking.word is None else {"effort": thinking.word}
    if output or request.format is not None:
        yield Entry("output_config", output | _format(request.format), _at(request.format) or _at(request.effort))


def _format(wanted: ir.Format | None) -> Block:
    if wanted is None:
        return {}
    if wanted.schema is None:
        raise refused("Messages has structured output only with a schema", wanted.at)
    return {"format": {"type": "json_schema", "schema": wanted.schema}}


def _sampled(settings: ir.Settings, thinking: Thinking) -> tuple[ir.Settings, tuple[Mention, ...]]:
    """The settings that the API takes, and the mentions of the others.

    A model that thinks is sampled its own way: the API refuses a temperature and `top_k` beside thinking, and most values of `top_p`, its newest
    models every one. (https://platform.claude.com/docs/en/build-with-claude/thinking, Sampling parameters)
    """
    if thinking.member in (None, _NO_THINKING):
        return settings, ()
    unheard = {name: None for name in _SAMPLING if getattr(settings, name) is not None}
    mentions = tuple(Mention(f"sampling:{name}", _place(settings, name)) for name in unheard)
    return (structs.replace(settings, **unheard) if unheard else settings), mentions


def _settings(settings: ir.Settings) -> Iterator[Entry]:
    yield from _temperature(settings)
    for name, field in _PLAIN:
        value = getattr(settings, field)
        if value is not None:
            yield Entry(name, value, _place(settings, field))
    for field in ("safety_id", "user"):
        if (user := getattr(settings, field)) is not None:
            yield Entry("metadata", {"user_id": user}, _place(settings, field))
            break
    if settings.service_tier is not None:
        yield Entry("service_tier", _tier(settings), _place(settings, "service_tier"))


def _temperature(settings: ir.Settings) -> Iterator[Entry]:
    if settings.temperature is not None:
        place = _place(settings, "temperature")
        if not 0 <= _number(settings.temperature, place) <= 1:
            raise refused("a temperature on Messages is between 0 and 1", place)
        yield Entry("temperature", settings.temperature, place)


def _tier(settings: ir.Settings) -> str:
    tier = _TIERS.get(settings.service_tier or "")
    if tier is None:
        raise refused("a service tier that Messages does not have", _place(settings, "service_tier"))
    return tier


def _place(settings: ir.Settings, field: str) -> str:
    return settings.at.get(field, "")


def _at(node: ir.Choice | ir.Effort | ir.Format | None) -> str:
    return "" if node is None else node.at
