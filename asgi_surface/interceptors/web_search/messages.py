"""Messages: the tool types `web_search_…`, and the blocks of its own searches that the gateway wrote into earlier answers.

A provider's own blocks are told by what they are sealed with, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Raw

from asgi_surface import seals
from asgi_surface.codecs.messages.searches import excerpt, own
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
    limits,
    located,
    obj,
    packed,
    remembered,
    replaced,
    searches,
    strictest,
    turns,
    word,
)
from asgi_surface.ir import Citation, SealKind
from asgi_surface.members import Members
from asgi_surface.residents import Finding

_RESULT: Final = "web_search_tool_result"
_FORCED: Final = ("any", "tool")
_DIRECT: Final = ["direct"]
_HEARD: Final = frozenset({"type", "name", "max_uses", "allowed_domains", "blocked_domains", "cache_control"})
# Few models continue a turn of their own.
_GO_ON: Final = packed({"role": "user", "content": "Go on."})
_CITED: Final = "web_search_result_location"


def _wish(members: Members) -> Wish | None:
    return strictest([limits(said, said.get("max_uses")) for said in hosted(members)])


def _unheard(members: Members) -> Iterator[str]:
    """The function is called by the model alone, which is what a tool says that only allows that."""
    for place, said in located(members):
        yield from beyond(place, said, _HEARD | {"allowed_callers"} if said.get("allowed_callers") == _DIRECT else _HEARD)


def _names(members: Members) -> Collection[str]:
    return {word(fields(raw).get("name")) for raw in elements(members.get("tools")) if not searches(raw)}


def _offered(members: Members, name: str) -> Members:
    chosen = {word(tool.get("name")) for tool in hosted(members)}
    tools: list[Raw] = []
    placed = False
    for raw in elements(members.get("tools")):
        if not searches(raw):
            tools.append(raw)
        elif not placed:
            placed, tool = True, fields(raw)
            tools.append(packed({"name": name, "description": DESCRIPTION, "input_schema": SCHEMA} | _marked(tool)))
    members = replaced(members, tools=packed(tools))
    choice = fields(members.get("tool_choice"))
    named = choice.get("type") == "tool" and word(choice.get("name")) in chosen
    return replaced(members, tool_choice=packed(choice | {"name": name})) if named else members


def _relaxed(members: Members, name: str, last: bool) -> Members:
    """Requests whose history holds calls are refused without tools, so the only tool stays, and may not be called."""
    choice = fields(members.get("tool_choice"))
    if choice.get("type") in _FORCED:
        choice = {key: value for key, value in choice.items() if key != "name"} | {"type": "auto"}
        members = replaced(members, tool_choice=packed(choice))
    if not last:
        return members
    others = [raw for raw in elements(members.get("tools")) if fields(raw).get("name") != name]
    return replaced(members, tools=packed(others)) if others else replaced(members, tool_choice=packed({"type": "none"}))


def _replayed(members: Members, _ours: bool) -> Members:
    raw = bytes(members.get("messages", b""))
    if b'"asf_' not in raw and seals.PREFIX.encode() not in raw:
        return members
    messages = elements(raw)
    told = [_message(one) for one in messages]
    if messages and _paused(fields(messages[-1])):
        told.append(_GO_ON)
    return replaced(members, messages=packed(told)) if told != messages else members


def _paused(message: Object) -> bool:
    """Whether it is the answer that the gateway ended with `pause_turn`: sent back last, as it is, to be gone on with."""
    blocks = message.get("content")
    return message.get("role") == "assistant" and isinstance(blocks, list) and bool(blocks) and _is_own(obj(blocks[-1]))


def _message(raw: Raw) -> Raw:
    message = fields(raw)
    blocks = message.get("content")
    if message.get("role") != "assistant" or not isinstance(blocks, list):
        return raw
    told = _blocks([block for block in blocks if isinstance(block, dict)])
    return packed(message | {"content": told}) if told != blocks else raw


def _blocks(blocks: list[Object]) -> list[Object]:
    """Each search of the gateway's where it was called, and text without what it cites of them."""
    ours = [block for block in blocks if _is_own(block)]
    results = {word(block.get("tool_use_id")): block for block in ours if block["type"] == _RESULT}
    told = []
    for block in blocks:
        if block not in ours:
            told.append(_uncited(block))
        elif block["type"] != _RESULT:
            result = results.pop(word(block.get("id")), {})
            told.append(_text(word(obj(block.get("input")).get("query")), result) | _marked(block, result))
        elif word(block.get("tool_use_id")) in results:
            told.append(_text("", results.pop(word(block.get("tool_use_id")))) | _marked(block))
    return told


def _marked(*places: Object) -> Object:
    """The last mark of a cached prefix that one of these bears."""
    marks = [place["cache_control"] for place in places if place.get("cache_control")]
    return {"cache_control": marks[-1]} if marks else {}


def _is_own(block: Object) -> bool:
    return own({name: packed(value) for name, value in block.items()})


def _text(query: str, result: Object) -> Object:
    content = result.get("content", [])
    found = content if isinstance(content, list) else []
    sources = [Citation(word(one.get("url")), word(one.get("title")), excerpt=excerpt(word(one.get("encrypted_content")))) for one in map(obj, found)]
    return {"type": "text", "text": remembered(query, sources, failed=isinstance(content, dict))}


def _uncited(block: Object) -> Object:
    cited = block.get("citations")
    if block.get("type") != "text" or not isinstance(cited, list):
        return block
    kept = [one for one in cited if not _enveloped(one)]
    return block if kept == cited else {name: value for name, value in block.items() if name != "citations"} | ({"citations": kept} if kept else {})


def _enveloped(citation: object) -> bool:
    token = citation.get("encrypted_index") if isinstance(citation, dict) and citation.get("type") == _CITED else None
    seal = seals.unwrap(token) if isinstance(token, str) else None
    return seal is not None and seal.kind is SealKind.TEXT


def _continued(members: Members, answer: bytes, findings: Sequence[Finding], upstream: Upstream) -> Members:
    messages: list[Object] = []
    for blocks, given in turns(fields(answer)["content"], lambda block: block["type"] == "tool_use", findings, pairs=upstream.pairs):
        messages.append({"role": "assistant", "content": blocks})
        messages.append({"role": "user", "content": [_given(call, finding) for call, finding in given]})
    return replaced(members, messages=packed([*elements(members.get("messages")), *messages]))


def _given(call: Object, finding: Finding) -> Object:
    failed = {"is_error": True} if finding.failed else {}
    return {"type": "tool_result", "tool_use_id": call["id"], "content": finding.told, **failed}


WORDS: Final = Words(wish=_wish, unheard=_unheard, names=_names, offered=_offered, relaxed=_relaxed, replayed=_replayed, continued=_continued)
