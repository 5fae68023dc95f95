"""A request in Gemini's words: settings, tools and the choice. The conversation stands in a file of its own. Knows no client surface.

What Gemini cannot say of a value is refused at the client's pointer; attributes it has no word for have been judged before.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from asgi_surface import ir
from asgi_surface.codecs.base import Dialect, Lowered, Target
from asgi_surface.codecs.gemini.lower_contents import INSTRUCTIONS, Contents, instruction, refused
from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.codecs.gemini.schemas import is_enforced
from asgi_surface.codecs.moved import joined
from asgi_surface.codecs.spelling import Names, Rule
from asgi_surface.codecs.wrapping import wrapper
from asgi_surface.verdicts import Mention

_RULE: Final = Rule(re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"), re.compile(r"^[^a-zA-Z_]|[^a-zA-Z0-9_.-]"), 64)
"""The names of functions."""


def lower(request: ir.Request, target: Target) -> Lowered:
    """The body. Whether the answer is streamed stands in the path, as the model does."""
    names = Names(request, _RULE)
    said: dict[str, tuple[object, str]] = {}
    moved: list[Mention] = []
    for name, value, at in itertools.chain(_conversation(request, target, names, moved), _tools(request, target, names), _rest(request, target)):
        if value:
            said[name] = (value, at)
    return Lowered(
        members={name: Raw(msgspec.json.encode(value)) for name, (value, _) in said.items()},
        origins={name: at for name, (_, at) in said.items()},
        aliases=names.aliases(custom=False),
        emulated=(*_emulated(request, target.dialect, names), *moved, *joined(request)),
    )


def _emulated(request: ir.Request, dialect: Dialect, names: Names) -> Iterator[Mention]:
    yield from (Mention(f"role:{turn.role}.mid", turn.at) for turn in _divided(request)[1] if turn.role in INSTRUCTIONS)
    for node in names.nodes.values():  # a call stands for its tool where that is no longer offered
        if node.form is ir.Form.CUSTOM:
            yield Mention("tool:custom", node.at)
        if names.of(node) != node.name:
            yield Mention("tool:name" if node.namespace is None else "tool:namespace", node.at)
    if request.choice is not None and request.choice.names and request.choice.pick is ir.Pick.AUTO:
        yield Mention("choice:validated", request.choice.at)
    effort = request.effort
    if effort is not None and effort.word not in {None, "none"} and not _is_level(effort, dialect):
        yield Mention("effort:word", effort.at)
    if request.format is not None:
        yield from (Mention(f"format:{name}", request.format.at) for name in _reformed(request.format))


def _reformed(wanted: ir.Format) -> Iterator[str]:
    """What a schema's guarantee differs in: every schema of an answer is enforced here, but not all that it may say."""
    if wanted.strict is False:
        yield "strict"
    if wanted.schema is not None and not is_enforced(wanted.schema):
        yield "schema"


def _divided(request: ir.Request) -> tuple[tuple[ir.Turn, ...], tuple[ir.Turn, ...]]:
    """The instructions before the conversation, and the conversation."""
    leading = tuple(itertools.takewhile(lambda turn: turn.role in INSTRUCTIONS, request.turns))
    return leading, request.turns[len(leading) :]


def _conversation(request: ir.Request, target: Target, names: Names, moved: list[Mention]) -> Iterator[tuple[str, object, str]]:
    leading, turns = _divided(request)
    if not turns:
        raise refused("Gemini answers a user; here are only instructions", leading[0].at if leading else "")
    if turns[-1].role is ir.Role.ASSISTANT and not target.dialect.prefill:
        raise refused("Gemini does not continue the model's own turn", turns[-1].at)
    contents = Contents(target, names, moved)
    if leading:
        yield "systemInstruction", {"parts": [instruction(part) for turn in leading for part in turn.parts]}, leading[0].at
    yield "contents", contents.said(turns), turns[0].at


def _tools(request: ir.Request, target: Target, names: Names) -> Iterator[tuple[str, object, str]]:
    if request.tools:
        yield "tools", [{"functionDeclarations": [_tool(tool, target, names) for tool in request.tools]}], request.tools[0].at
    if request.choice is not None:
        yield "toolConfig", {"functionCallingConfig": _choice(request.choice, names)}, request.choice.at
    settings = request.settings
    calls = request.tools and (request.choice is None or request.choice.pick is not ir.Pick.NONE)
    if settings.parallel is False and calls:
        raise refused("Gemini may call several tools at once", settings.at.get("parallel", ""))


def _tool(tool: ir.Tool, target: Target, names: Names) -> Json:
    custom = tool.form is ir.Form.CUSTOM
    if custom and target.dialect.custom_tools == "refuse":
        raise refused("Gemini has functions only", tool.at)
    said: Json = {"name": names.of(tool)}
    if tool.description is not None:
        said["description"] = tool.description
    schema = wrapper(tool.grammar) if custom else tool.schema
    return said if schema is None else said | {"parametersJsonSchema": schema}


def _choice(choice: ir.Choice, names: Names) -> Json:
    if choice.names is None:
        return {"mode": _MODES[choice.pick]}
    if not choice.names and choice.pick is ir.Pick.REQUIRED:
        raise refused("a call is demanded, and no tool is allowed", choice.at)
    if not choice.names:  # to Gemini an empty list allows all
        return {"mode": "NONE"}
    # A list of names stands only with ANY, or with VALIDATED, under which the model may answer as well.
    return {"mode": _NAMED_MODES[choice.pick], "allowedFunctionNames": [names.chosen(name)[1] for name in choice.names]}


_MODES: Final = {ir.Pick.AUTO: "AUTO", ir.Pick.NONE: "NONE", ir.Pick.REQUIRED: "ANY"}
_NAMED_MODES: Final = _MODES | {ir.Pick.AUTO: "VALIDATED"}

_SETTINGS: Final = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "n": "candidateCount",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
_TIERS: Final = {"default": "standard", "standard_only": "standard", "flex": "flex", "priority": "priority"}
"""Gemini's word for a tier; the others leave the choice to the server, as saying nothing does."""
_MOST_STOPS: Final = 5
_MOST_SEED: Final = 2**31


def _rest(request: ir.Request, target: Target) -> Iterator[tuple[str, object, str]]:
    settings = request.settings
    _check(settings)
    config = {said: value for name, said in _SETTINGS.items() if (value := getattr(settings, name)) is not None}
    if settings.top_logprobs is not None:  # the API refuses their number alone
        config.setdefault("responseLogprobs", True)
    places = [settings.at.get(name, "") for name in _SETTINGS if getattr(settings, name) is not None]
    if request.effort is not None:
        config |= {"thinkingConfig": thinking} if (thinking := _thinking(request.effort, target.dialect)) else {}
        places.append(request.effort.at)
    if request.format is not None:
        config |= _format(request.format)
        places.append(request.format.at)
    yield "generationConfig", config, places[0] if places else ""
    yield "serviceTier", _TIERS.get(settings.service_tier or ""), settings.at.get("service_tier", "")
    if settings.store is not None:
        yield "store", Raw(b"true" if settings.store else b"false"), settings.at.get("store", "")


def _check(settings: ir.Settings) -> None:
    if len(settings.stop or ()) > _MOST_STOPS:
        raise refused(f"Gemini takes {_MOST_STOPS} stop sequences at most", settings.at.get("stop", ""))
    if settings.seed is not None and not -_MOST_SEED <= float(settings.seed) < _MOST_SEED:
        raise refused("a seed has 32 bits in Gemini", settings.at.get("seed", ""))


def _format(wanted: ir.Format) -> Json:
    said: Json = {"responseMimeType": "application/json"}
    return said if wanted.schema is None else said | {"responseJsonSchema": wanted.schema}


_LEVELS: Final = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "XHIGH", "max": "XHIGH"}
"""`thinkingLevel` by effort; there is none above XHIGH."""
_NEAREST: Final = {"minimal": "low", "xhigh": "high", "max": "high"}
"""Efforts for which a binding need not declare a budget: the declared one next to it stands in."""


def _thinking(effort: ir.Effort, dialect: Dialect) -> Json:
    said: Json = dict(_amount(effort, dialect))
    if effort.summary is not None:
        said["includeThoughts"] = effort.summary != "omitted"
    return said


def _is_level(effort: ir.Effort, dialect: Dialect) -> bool:
    """Whether Gemini is told the effort's own word: beside a budget, or where reasoning is off, none can stand."""
    return not effort.off and effort.budget is None and dialect.reasoning_style != "budget" and effort.word != "max"


def _amount(effort: ir.Effort, dialect: Dialect) -> Iterator[tuple[str, Any]]:
    """A budget or a level, never both: the API refuses that."""
    if effort.off or effort.word == "none":
        yield "thinkingBudget", 0
    elif effort.budget is not None:
        yield "thinkingBudget", effort.budget
    elif effort.word is not None:
        yield _by_budget(effort, dialect) if dialect.reasoning_style == "budget" else _by_level(effort)
    elif effort.adaptive:
        yield "thinkingBudget", -1


def _by_budget(effort: ir.Effort, dialect: Dialect) -> tuple[str, int]:
    budgets, word = dialect.reasoning_budgets, effort.word or ""
    budget = budgets.get(word, budgets.get(_NEAREST.get(word, "")))
    if budget is None:
        raise refused("no budget is declared for this effort", effort.at)
    return "thinkingBudget", budget


def _by_level(effort: ir.Effort) -> tuple[str, str]:
    level = _LEVELS.get(effort.word or "")
    if level is None:
        raise refused("Gemini has no thinking level for this effort", effort.at)
    return "thinkingLevel", level
