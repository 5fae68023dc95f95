"""Chat Completions: a search asked for by `web_search_options`, or by a tool of that type as some servers have it. Nothing of one is in a history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from asgi_surface.codecs.chat.lower_reasoning import placed
from asgi_surface.interceptors.web_search import openai
from asgi_surface.interceptors.web_search.words import (
    DESCRIPTION,
    SCHEMA,
    Object,
    Upstream,
    Wish,
    Words,
    beyond,
    elements,
    fields,
    hosted,
    located,
    obj,
    packed,
    replaced,
    turns,
    word,
)
from asgi_surface.members import Members
from asgi_surface.residents import Finding

_HEARD: Final = frozenset({"type"})
_NULL: Final = b"null"
_KEPT: Final = ("role", "refusal")
_REASONED: Final = ("reasoning_content", "reasoning_details")


def _wish(members: Members) -> Wish | None:
    asked = hosted(members) or bytes(members.get("web_search_options", _NULL)) != _NULL
    return Wish() if asked else None


def _unheard(members: Members) -> Iterator[str]:
    yield from beyond("/web_search_options", fields(members.get("web_search_options")), ())
    for place, said in located(members):
        yield from beyond(place, said, _HEARD)


def _names(members: Members) -> Collection[str]:
    tools = [obj(tool.get("function") or tool.get("custom")) for tool in map(fields, elements(members.get("tools")))]
    return {word(one.get("name")) for one in (*tools, *map(fields, elements(members.get("functions"))))}


def _named(name: str) -> Object:
    return {"type": "function", "function": {"name": name}}


def _allowed(choice: Object) -> Object:
    choice["allowed_tools"] = within = obj(choice.get("allowed_tools"))
    return within


_CHOOSING: Final = openai.Choosing(_named, _allowed)


def _offered(members: Members, name: str) -> Members:
    function = {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": SCHEMA}}
    return _CHOOSING.retold(openai.offered(replaced(members, web_search_options=None), function), name)


def _continued(members: Members, answer: bytes, findings: Sequence[Finding], upstream: Upstream) -> Members:
    message = fields(answer)["choices"][0]["message"]
    said = {name: message[name] for name in _KEPT if message.get(name) is not None} | _said(message, upstream)
    added: list[Object] = []
    for calls, given in turns(message["tool_calls"], bool, findings, pairs=upstream.pairs):
        added += [said | {"tool_calls": calls}, *({"role": "tool", "tool_call_id": call["id"], "content": finding.told} for call, finding in given)]
        said = {"role": "assistant", "content": None}
    return replaced(members, messages=packed([*elements(members.get("messages")), *added]))


def _said(message: Object, upstream: Upstream) -> Object:
    """Content and reasoning. What is converted says the reasoning as it is; a server takes it back where its dialect says, or by its own proofs."""
    content, dialect = message["content"], upstream.dialect
    reasoned = {name: message[name] for name in _REASONED if name in message}
    if not upstream.native:
        return {"content": content} | reasoned
    if "reasoning_details" in reasoned or dialect.reasoning_replay == "never":
        return {"content": content, **{name: value for name, value in reasoned.items() if name == "reasoning_details"}}
    thoughts, members = placed(reasoned.get("reasoning_content", ""), dialect)
    spoken = [{"type": "text", "text": content}] if content else []
    return {"content": [*thoughts, *spoken] if thoughts else content} | members


WORDS: Final = Words(
    wish=_wish,
    unheard=_unheard,
    names=_names,
    offered=_offered,
    relaxed=_CHOOSING.relaxed,
    replayed=lambda members, _ours: members,
    continued=_continued,
)
