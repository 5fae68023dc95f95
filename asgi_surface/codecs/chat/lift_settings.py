"""Lifts the scalar members of a Chat Completions request, and how reasoning is asked for, in the words of OpenAI and of widely used engines.

Knows no history and no tools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface.codecs.chat.wire import Wire
from asgi_surface.codecs.strict import decode, unknown
from asgi_surface.ir import Effort, Settings
from asgi_surface.members import Members, token
from asgi_surface.verdicts import Mention

_Construct = Callable[[Any], str]


class _Scalar(Struct, frozen=True):
    """A member and the setting that it is. `harmless` values mean nothing; `suffix` tells values apart whose verdicts differ.

    `text` keeps the exact JSON, for numbers and free maps.
    """

    setting: str
    decoder: Decoder[Any]
    harmless: tuple[object, ...] = ()
    text: bool = False
    suffix: _Construct = lambda _: ""


def _number(setting: str, kind: Any = float, *harmless: object) -> _Scalar:
    return _Scalar(setting, Decoder(kind), harmless, text=True)


def _off(value: bool) -> str:
    return "" if value else ".false"


def _when(*words: str) -> _Construct:
    return lambda value: f".{value}" if value in words else ""


_SCALARS: Final[dict[str, _Scalar]] = {
    "max_tokens": _number("max_tokens", int),
    # Stands behind the older name, so that it wins where both are given.
    "max_completion_tokens": _number("max_tokens", int),
    "temperature": _number("temperature"),
    "top_p": _number("top_p"),
    "top_k": _number("top_k", int, -1, 0),
    "seed": _number("seed", int),
    "frequency_penalty": _number("frequency_penalty", float, 0),
    "presence_penalty": _number("presence_penalty", float, 0),
    "stop": _Scalar("stop", Decoder(str | list[str]), ([],)),
    "n": _number("n", int, 1),
    "logprobs": _Scalar("logprobs", Decoder(bool), (False,)),
    "top_logprobs": _number("top_logprobs", int, 0),
    "parallel_tool_calls": _Scalar("parallel", Decoder(bool), suffix=_off),
    "store": _Scalar("store", Decoder(bool), suffix=_off),
    "user": _Scalar("user", Decoder(str)),
    "safety_identifier": _Scalar("safety_id", Decoder(str)),
    "metadata": _Scalar("metadata", Decoder(dict[str, str]), ({},), text=True),
    "service_tier": _Scalar("service_tier", Decoder(str), suffix=_when("auto", "default", "flex", "priority")),
    "prompt_cache_key": _Scalar("cache_key", Decoder(str)),
    "verbosity": _Scalar("verbosity", Decoder(Literal["low", "medium", "high"]), suffix=_when("medium")),
}

# Members that never enter the IR, with the values that mean nothing.
_ALONE: Final[dict[str, tuple[object, ...]]] = {
    "logit_bias": ({},),
    "prompt_cache_retention": (),
    "prompt_cache_options": (),
    "prediction": (),
    "modalities": ([], ["text"]),
    "audio": (),
    "moderation": (),
    "web_search_options": (),
    "cache_prompt": (),
    "add_generation_prompt": (True,),
    "bad_words": ([],),
    "continue_final_message": (False,),
    "ebnf": (),
    "grammar": ("",),
    "ignore_eos": (False,),
    "include_stop_str_in_output": (False,),
    "json_schema": (),
    "length_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "reasoning_format": ("auto", "deepseek"),
    "regex": (),
    "repeat_penalty": (1,),
    "repetition_penalty": (1,),
    "separate_reasoning": (True,),
    "skip_special_tokens": (True,),
    "stop_token_ids": ([],),
    "stream_reasoning": (True,),
    "structured_outputs": (),
    "top_a": (0,),
    "typical_p": (1,),
}
_ANY: Final = Decoder()


def settings(given: Members, notes: list[Mention]) -> Settings:
    """The scalar wishes. `given` has no nulls. Every member that no other module lifts is looked at here; an unknown one is refused."""
    said: dict[str, Any] = {}
    places: dict[str, str] = {}
    for name, row in _SCALARS.items():
        if name in given:
            _scalar(name, row, given[name], said, places)
    if "max_tokens" in given and bytes(given["max_tokens"]) != bytes(given.get("max_completion_tokens", given["max_tokens"])):
        notes.append(Mention("field:max_tokens.overruled", "/max_tokens"))
    notes.extend(Mention(f"field:{at[1:]}{_SCALARS[at[1:]].suffix(said[setting])}", at) for setting, at in places.items())
    for name, raw in given.items():
        if name in _ALONE:
            _alone(name, raw, notes)
        elif name not in _SCALARS and name not in _ELSEWHERE:
            raise unknown(token(name))
    return Settings(**said, at=places)


def _scalar(name: str, row: _Scalar, raw: Raw, said: dict[str, Any], places: dict[str, str]) -> None:
    value = decode(row.decoder, raw, f"/{name}")
    if value in row.harmless:
        return
    if name == "stop":
        value = (value,) if isinstance(value, str) else tuple(value)
    said[row.setting] = raw if row.text else value
    places[row.setting] = f"/{name}"


def _alone(name: str, raw: Raw, notes: list[Mention]) -> None:
    value = decode(_ANY, raw, f"/{name}")
    if not any(value == other and isinstance(value, bool) is isinstance(other, bool) for other in _ALONE[name]):
        notes.append(Mention(f"field:{name}", f"/{name}"))


_Word = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class _Thinking(Wire, frozen=True):
    """The object of DeepSeek, GLM and Kimi, after Anthropic's."""

    type: Literal["enabled", "disabled", "adaptive", "auto"]
    budget_tokens: int | None = None


class _Reasoning(Wire, frozen=True):
    """OpenRouter's object."""

    effort: _Word | None = None
    max_tokens: int | None = None
    exclude: bool | None = None
    enabled: bool | None = None


class _Template(Wire, frozen=True):
    """The switches that chat templates take: Qwen's and GLM's, DeepSeek's, and that of gpt-oss."""

    enable_thinking: bool | None = None
    thinking: bool | None = None
    reasoning_effort: _Word | None = None


_Wish = dict[str, Any]


def _word(value: _Word | None) -> _Wish:
    return {"off": True} if value == "none" else {"word": value} if value else {}


def _switch(value: bool | None) -> _Wish:
    return {} if value is None else {"adaptive": True} if value else {"off": True}


def _budget(value: int | None) -> _Wish:
    return {} if value is None else {"budget": value}


def _thinking(value: _Thinking | bool) -> _Wish:
    if isinstance(value, bool):
        return _switch(value)
    return _switch(value.type != "disabled") | _budget(value.budget_tokens)


def _hidden(value: bool) -> _Wish:
    return {"summary": "omitted"} if value else {}


def _openrouter(value: _Reasoning) -> _Wish:
    return _switch(value.enabled) | _word(value.effort) | _budget(value.max_tokens) | _hidden(bool(value.exclude))


def _template(value: _Template) -> _Wish:
    return _switch(value.enable_thinking) | _switch(value.thinking) | _word(value.reasoning_effort)


_EFFORTS: Final[dict[str, tuple[Decoder[Any], Callable[[Any], _Wish]]]] = {
    "reasoning_effort": (Decoder(_Word), _word),
    "reasoning": (Decoder(_Reasoning), _openrouter),
    "thinking": (Decoder(_Thinking | bool), _thinking),
    "enable_thinking": (Decoder(bool), _switch),
    "thinking_budget": (Decoder(int), _budget),
    "thinking_token_budget": (Decoder(int), _budget),
    "chat_template_kwargs": (Decoder(_Template), _template),
    "include_reasoning": (Decoder(bool), lambda value: _hidden(not value)),
}


def efforts(given: Members, notes: list[Mention]) -> Effort | None:
    """How much is to be reasoned, from every member that says it; None when none does. Off wins; words and budgets say more than a switch."""
    wishes: _Wish = {}
    at = ""
    for name, (decoder, meaning) in _EFFORTS.items():
        if name in given and (wish := meaning(decode(decoder, given[name], f"/{name}"))):
            notes.append(Mention(f"field:{name}", f"/{name}"))
            wishes = wish | wishes
            at = at or f"/{name}"
    if not wishes:
        return None
    if "off" in wishes:
        return Effort(wishes.get("word"), off=True, at=at)
    if wishes.keys() & {"word", "budget"}:
        wishes.pop("adaptive", None)
    return Effort(**wishes, at=at)


_ELSEWHERE: Final = frozenset(_EFFORTS) | {
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
}
