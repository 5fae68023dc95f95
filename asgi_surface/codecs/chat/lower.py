"""Says a request in Chat Completions' words, as the binding's dialect has them. Turns are said in `lower_turns`, tools in `lower_tools`.

Knows no other surface: what the IR holds and this surface cannot say is refused at the client's pointer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs.base import Dialect, Lowered, Target
from asgi_surface.codecs.chat.lower_reasoning import asked
from asgi_surface.codecs.chat.lower_tools import Names, choice, tool
from asgi_surface.codecs.chat.lower_turns import messages
from asgi_surface.codecs.moved import before_calls, made_names, other_ids
from asgi_surface.codecs.strict_schema import is_strict
from asgi_surface.codecs.wishes import offered
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Format, Pick, Request, Role, Settings
from asgi_surface.members import Members
from asgi_surface.verdicts import Mention

_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",  # engines'
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "stop": "stop",  # OpenAI takes four and refuses more, engines take more
    "n": "n",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
    "parallel": "parallel_tool_calls",
    "store": "store",
    "user": "user",
    "safety_id": "safety_identifier",
    "metadata": "metadata",
    "service_tier": "service_tier",
    "cache_key": "prompt_cache_key",
    "verbosity": "verbosity",
}
_VERBOSITIES: Final = frozenset({"low", "medium", "high"})


def lower(request: Request, target: Target) -> Lowered:
    """The body. Raises `RequestError` with the client's pointer for what cannot be said."""
    request, narrowed = offered(request, target.dialect)
    names = Names(request, target)
    emulated: list[Mention] = [*narrowed]
    body = _Body()
    body.say("model", target.model, "/model")
    body.say("messages", messages(request.turns, target, names, emulated), _history(request))
    if request.tools:
        body.say("tools", [tool(each, names) for each in request.tools], _root(request.tools[0].at))
    # Without tools the surface refuses a choice among them, even of none.
    if request.choice and (request.tools or request.choice.pick is Pick.REQUIRED):
        body.say("tool_choice", choice(request.choice, names), request.choice.at)
    _settings(request.settings, target.dialect, bool(request.tools), body)
    if request.effort:
        for name, value in asked(request.effort, target.dialect, emulated).items():
            body.say(name, value, request.effort.at)
    if request.format:
        body.say("response_format", _format(request.format, target.dialect, emulated), request.format.at)
    if request.stream:
        body.say("stream", True, "/stream")
        _stream_options(request.settings, target.dialect, body)
    emulated += (*before_calls(request.turns), *other_ids(request, names.id), *made_names(request))
    added = frozenset(body.members.keys() - body.origins.keys())
    return Lowered(members=body.members, origins=body.origins, added=added, aliases=names.aliases(), emulated=(*names.emulated(), *emulated))


class _Body:
    """The members so far, and the client's pointer behind each."""

    def __init__(self) -> None:
        self.members: Members = {}
        self.origins: dict[str, str] = {}

    def say(self, name: str, value: object, at: str) -> None:
        self.members[name] = value if isinstance(value, Raw) else Raw(msgspec.json.encode(value))
        self.origins[name] = at


def _history(request: Request) -> str:
    """Where the client's history stands; instructions may stand elsewhere."""
    spoken = [turn.at for turn in request.turns if turn.role in {Role.USER, Role.ASSISTANT}]
    return _root(next(iter(spoken), ""))


def _root(at: str) -> str:
    return "/".join(at.split("/")[:2])


def _settings(settings: Settings, dialect: Dialect, tools: bool, body: _Body) -> None:
    at = settings.at
    if settings.verbosity is not None:
        _known(settings.verbosity, _VERBOSITIES, at.get("verbosity", ""))
    if settings.max_tokens is not None:
        body.say(dialect.max_tokens_field, settings.max_tokens, at.get("max_tokens", ""))
    for field, member in _SETTINGS.items():
        value: Any = getattr(settings, field)
        # Without tools the surface refuses to hear whether their calls may be parallel.
        if value is not None and (tools or field != "parallel"):
            body.say(member, value, at.get(field, ""))
    if settings.top_logprobs is not None and settings.logprobs is None:
        body.say("logprobs", True, at.get("top_logprobs", ""))


def _stream_options(settings: Settings, dialect: Dialect, body: _Body) -> None:
    """What the stream is to hold. Servers that send usage unasked refuse the member (Mistral), and pad nothing."""
    if dialect.stream_usage == "always":
        return
    if settings.obfuscation is None:
        body.members["stream_options"] = Raw(b'{"include_usage":true}')
    else:
        options = {"include_usage": True, "include_obfuscation": settings.obfuscation}
        body.say("stream_options", options, settings.at.get("obfuscation", ""))


def _known(word: str, words: frozenset[str], at: str) -> None:
    if word not in words:
        raise RequestError(Code.UNREPRESENTABLE, "a word that the surface does not have", pointer=at)


def _format(said: Format, dialect: Dialect, emulated: list[Mention]) -> dict[str, Any]:
    if said.schema is None:
        return {"type": "json_object"}
    about = {"description": said.description} if said.description is not None else {}
    # Surfaces that enforce every schema say nothing of strictness; here only a strict one is enforced, and only some schemas may be.
    wanted = is_strict(said.schema) if said.strict is None else said.strict
    strict = wanted and dialect.strict_tools
    if strict is not wanted or (said.strict is None and not strict):
        emulated.append(Mention("format:strict", said.at))
    # The surface demands a name.
    schema = {"name": said.name or "response", **about, "schema": said.schema, **({"strict": True} if strict else {})}
    return {"type": "json_schema", "json_schema": schema}
