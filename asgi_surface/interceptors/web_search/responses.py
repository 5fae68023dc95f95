"""Responses: the tool types `web_search…`, and the `web_search_call` items that the gateway wrote into earlier answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Raw

from asgi_surface.codecs.responses.searches import own
from asgi_surface.interceptors.web_search import openai
from asgi_surface.interceptors.web_search.words import (
    DESCRIPTION,
    SCHEMA,
    Object,
    Upstream,
    Wish,
    Words,
    beyond,
    count,
    elements,
    fields,
    hosted,
    limits,
    located,
    obj,
    packed,
    remembered,
    replaced,
    strictest,
    turns,
    word,
)
from asgi_surface.ir import Citation
from asgi_surface.members import Members
from asgi_surface.residents import Finding

_CALL: Final = "web_search_call"
_HEARD: Final = frozenset({"type", "filters"})
_FILTERS: Final = frozenset({"allowed_domains", "blocked_domains"})
_SOURCES: Final = b'"web_search_call.action.sources"'
_OWN: Final = ("function", "custom", "namespace")
# Marks of the provider on what it returned: an id of the gateway's is none, and `status` says nothing.
_MARKS: Final = ("id", "status")


def _wish(members: Members) -> Wish | None:
    uses = _decoded(members.get("max_tool_calls"))
    return strictest([limits(obj(said.get("filters")), uses) for said in hosted(members)])


def _unheard(members: Members) -> Iterator[str]:
    for place, said in located(members):
        yield from beyond(place, said, _HEARD)
        yield from beyond(f"{place}/filters", obj(said.get("filters")), _FILTERS)
    asked = enumerate(elements(members.get("include")))
    yield from (f"/include/{place}" for place, raw in asked if _told_of(raw) and bytes(raw) != _SOURCES)


def _told_of(raw: Raw) -> bool:
    """Whether a part of the answer that is asked for is one of a hosted search."""
    return str(bytes(raw), "utf-8", "replace").startswith(f'"{_CALL}.')


def _decoded(raw: Raw | None) -> object:
    return fields(b'{"it":%b}' % bytes(raw)).get("it") if raw is not None else None


def _names(members: Members) -> Collection[str]:
    """Those in a namespace too: a choice calls them by their bare names."""
    tools = list(map(fields, elements(members.get("tools"))))
    within = [obj(one) for tool in tools if isinstance(tool.get("tools"), list) for one in tool["tools"]]
    return {word(tool.get("name")) for tool in (*tools, *within)}


def _named(name: str) -> Object:
    return {"type": "function", "name": name}


_CHOOSING: Final = openai.Choosing(_named, lambda choice: choice)


def _offered(members: Members, name: str) -> Members:
    """`include` may ask for sources, which are told anyway; `max_tool_calls` bounds the gateway's searches, unless the provider runs other tools."""
    function = {"type": "function", "name": name, "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}
    include = [raw for raw in elements(members.get("include")) if not _told_of(raw)]
    members = _CHOOSING.retold(openai.offered(members, function), name)
    if "include" in members:
        members = replaced(members, include=packed(include) if include else None)
    others = any(tool.get("type") not in _OWN for tool in map(fields, elements(members.get("tools"))))
    # What is no number of calls is left to be judged.
    heeded = not others and count(_decoded(members.get("max_tool_calls"))) is not None
    return replaced(members, max_tool_calls=None) if heeded else members


def _replayed(members: Members, ours: bool) -> Members:
    """Codex sends its items back without their ids."""
    if f'"{_CALL}"'.encode() not in bytes(members.get("input", b"")):
        return members
    items = elements(members.get("input"))
    told = [_told(raw, ours=ours) for raw in items]
    return replaced(members, input=packed(told)) if told != items else members


def _told(raw: Raw, *, ours: bool) -> Raw:
    item = fields(raw)
    if not (own(item) or (ours and item.get("type") == _CALL and not item.get("id"))):
        return raw
    search = obj(item.get("action"))
    said = search.get("sources")
    urls = [word(obj(one).get("url")) for one in said] if isinstance(said, list) else []
    sources = [Citation(url) for url in urls if url]
    text = remembered(word(search.get("query")), sources, failed=item.get("status") == "failed")
    return packed({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})


def _continued(members: Members, answer: bytes, findings: Sequence[Finding], upstream: Upstream) -> Members:
    output = [{name: value for name, value in item.items() if name not in _MARKS} for item in fields(answer)["output"]]
    # The provider itself takes reasoning back by its id or by its seal, and has stored none of it.
    said = [item for item in output if not (upstream.native and item["type"] == "reasoning" and "encrypted_content" not in item)]
    items: list[Object] = []
    for piece, given in turns(said, lambda item: item["type"] == "function_call", findings, pairs=upstream.pairs):
        items += [*piece, *({"type": "function_call_output", "call_id": call["call_id"], "output": finding.told} for call, finding in given)]
    return replaced(members, input=packed([*_conversation(members), *items]))


def _conversation(members: Members) -> list[Raw]:
    """`input` as items: a text is a message of the user's."""
    raw = members.get("input", Raw(b"[]"))
    return elements(raw) if bytes(raw).startswith(b"[") else [packed({"type": "message", "role": "user", "content": raw})]


WORDS: Final = Words(
    wish=_wish,
    unheard=_unheard,
    names=_names,
    offered=_offered,
    relaxed=_CHOOSING.relaxed,
    replayed=_replayed,
    continued=_continued,
)
