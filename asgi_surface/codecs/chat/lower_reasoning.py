"""Asks for reasoning, and says that of earlier turns, in the words of the server that a binding's dialect names.

Knows of messages only where reasoning stands in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from asgi_surface.codecs.base import Dialect, Target
from asgi_surface.codecs.wishes import EFFORTS, sufficient
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Effort, Part, Reasoning, Seal, SealKind
from asgi_surface.surfaces import CHAT
from asgi_surface.verdicts import Mention

Said = dict[str, Any]

_DETAIL: Final = msgspec.json.Decoder(dict[str, Any])


def asked(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> Said:
    """The members that ask for an effort; none where the client leaves it to the model. Raises `RequestError` for a word that the surface lacks."""
    if effort == Effort(summary=effort.summary, at=effort.at):
        return {}
    return _STYLES[dialect.reasoning_style](effort, dialect, emulated)


def _by_word(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> Said:
    word = _word(effort, dialect, emulated)
    return {} if word is None else {"reasoning_effort": word}


def _by_template(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> Said:
    emulated.append(Mention("effort:template", effort.at))
    return {"chat_template_kwargs": {dialect.template_switch: not effort.off}}


def _by_thinking(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> Said:
    """DeepSeek, GLM and Kimi: a switch, and a word beside it."""
    word = _word(effort, dialect, emulated)
    if effort.off:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled"}} | ({} if word is None else {"reasoning_effort": word})


def _by_reasoning(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> Said:
    """OpenRouter takes a word or a budget, not both."""
    if effort.budget is not None and not effort.off:
        emulated += [Mention("effort:word", effort.at)] if effort.word is not None else []
        return {"reasoning": {"max_tokens": effort.budget}}
    word = _word(effort, dialect, emulated)
    return {"reasoning": {"enabled": True} if word is None else {"effort": word}}


_STYLES: Final[dict[str, Callable[[Effort, Dialect, list[Mention]], Said]]] = {
    "effort": _by_word,
    "budget": _by_word,  # no style of this surface: no binding can ask for it
    "template": _by_template,
    "thinking": _by_thinking,
    "reasoning": _by_reasoning,
}


def _word(effort: Effort, dialect: Dialect, emulated: list[Mention]) -> str | None:
    """The effort as a word; None leaves it to the model. A budget becomes the least word that allows it."""
    if effort.off:
        emulated += [Mention("effort:word", effort.at)] if effort.word not in {None, "none"} else []
        return "none"
    if effort.word is not None:
        emulated += [Mention("effort:budget", effort.at)] if effort.budget is not None else []
        if effort.word not in EFFORTS:
            raise RequestError(Code.UNREPRESENTABLE, "a word that the surface does not have", pointer=effort.at)
        return effort.word
    if effort.budget is None:
        return None
    emulated.append(Mention("effort:budget", effort.at))
    return sufficient(effort, dialect)


def replayed(parts: Sequence[Part], target: Target, emulated: list[Mention], *, heard: bool, called: bool) -> tuple[list[Said], Said]:
    """What an assistant's message says of its reasoning: parts of its content, and members.

    `heard` tells whether there is a message at all, `called` whether it has calls. Raises `RequestError` at a seal that another provider minted.
    """
    thoughts = [part for part in parts if isinstance(part, Reasoning)]
    sealed = {index: detail(part, part.seal) for index, part in enumerate(thoughts) if part.seal and is_own(part.seal, target, part.at)}
    replay = target.dialect.reasoning_replay
    if heard and not sealed and (replay == "always" or (called and replay == "tools")):
        return placed("\n\n".join(part.text for part in thoughts if part.text), target.dialect)
    unsaid = (part for index, part in enumerate(thoughts) if (not heard if index in sealed else part.text))
    emulated += (Mention("reasoning:unsaid", part.at) for part in unsaid)
    return [], {"reasoning_details": [*sealed.values()]} if sealed else {}


def is_own(seal: Seal, target: Target, at: str) -> bool:
    """Whether the upstream minted it: our envelope of bare text is no proof. Raises `RequestError` for another provider's."""
    if seal.kind is SealKind.TEXT:
        return False
    if (seal.surface, seal.domain) != (CHAT, target.seal_domain):
        raise RequestError(Code.UNREPRESENTABLE, "seal:foreign: the reasoning was proved by another provider", pointer=seal.at or at)
    return True


def placed(text: str, dialect: Dialect) -> tuple[list[Said], Said]:
    """Reasoning where the upstream looks for it, as parts of the content and as members; "" stands nowhere."""
    return _PLACES[dialect.reasoning_field](text) if text else ([], {})


def detail(part: Reasoning, seal: Seal) -> Said:
    """One of `reasoning_details`, as the upstream gave it. The token is the detail without its words, which travelled beside it."""
    try:
        said = _DETAIL.decode(seal.token)
    except (msgspec.DecodeError, RecursionError):
        raise RequestError(Code.UNREPRESENTABLE, "seal:foreign: no detail of this upstream's reasoning", pointer=seal.at or part.at) from None
    return said | ({"text": part.text} if part.text else {})


_PLACES: Final[dict[str, Callable[[str], tuple[list[Said], Said]]]] = {
    "reasoning_content": lambda text: ([], {"reasoning_content": text}),
    "reasoning": lambda text: ([], {"reasoning": text}),
    "reasoning_details": lambda text: ([], {"reasoning_details": [{"type": "reasoning.text", "text": text}]}),
    "content": lambda text: ([{"type": "thinking", "thinking": [{"type": "text", "text": text}]}], {}),
}
