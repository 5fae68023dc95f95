"""Gemini: `googleSearch` and its predecessor `googleSearchRetrieval` beside the functions, in either spelling. Nothing of one is in a history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from msgspec import Raw

from asgi_surface.interceptors.web_search.words import (
    DESCRIPTION,
    Object,
    Upstream,
    Wish,
    Words,
    beyond,
    elements,
    fields,
    outline,
    packed,
    replaced,
    strictest,
    strings,
    turns,
)
from asgi_surface.members import Members
from asgi_surface.residents import Finding

_HOSTED: Final = ("googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval")
_BLOCKED: Final = ("excludeDomains", "exclude_domains")
_NULL: Final = b"null"
_DECLARED: Final = ("functionDeclarations", "function_declarations")
_CONFIG: Final = ("toolConfig", "tool_config")
_CALLING: Final = ("functionCallingConfig", "function_calling_config")
_SCHEMA: Final[Object] = {
    "type": "OBJECT",
    "properties": {"query": {"type": "STRING", "description": "What to search for"}},
    "required": ["query"],
}


def _spread(raw: Raw | None) -> list[Raw]:
    """A list, or a lone value in its place."""
    return elements(raw) or ([raw] if raw is not None and bytes(raw).startswith(b"{") else [])


def _said(within: dict[str, Any], spellings: Sequence[str]) -> list[Any]:
    return [within[name] for name in spellings if within.get(name) is not None]


def _asked(members: Members) -> Iterator[tuple[str, Object]]:
    """What each hosted search says, with its pointer."""
    raw = members.get("tools", Raw())
    listed = bytes(raw).startswith(b"[")
    for number, tool in enumerate(map(outline, _spread(raw))):
        for name in _HOSTED:
            if bytes(tool.get(name, _NULL)) != _NULL:
                yield f"/tools/{number}/{name}" if listed else f"/tools/{name}", fields(tool[name])


def _wish(members: Members) -> Wish | None:
    return strictest([Wish(blocked=strings(next(iter(_said(said, _BLOCKED)), None))) for _, said in _asked(members)])


def _unheard(members: Members) -> Iterator[str]:
    for place, said in _asked(members):
        yield from beyond(place, said, _BLOCKED)


def _declarations(tool: Object) -> Iterator[Object]:
    for said in _said(tool, _DECLARED):
        yield from (one for one in (said if isinstance(said, list) else [said]) if isinstance(one, dict))


def _names(members: Members) -> Collection[str]:
    tools = map(fields, _spread(members.get("tools")))
    return {one["name"] for tool in tools for one in _declarations(tool) if isinstance(one.get("name"), str)}


def _offered(members: Members, name: str) -> Members:
    """The declaration in the place of the first tool that is a search alone, or behind them all: the others keep their pointers."""
    declared = packed({"functionDeclarations": [{"name": name, "description": DESCRIPTION, "parameters": _SCHEMA}]})
    tools: list[Raw] = []
    for raw in _spread(members.get("tools")):
        tool = outline(raw)
        kept = {key: value for key, value in tool.items() if key not in _HOSTED}
        if kept:
            tools.append(raw if len(kept) == len(tool) else packed(kept))
        elif declared not in tools:
            tools.append(declared)
    return replaced(members, tools=packed(tools if declared in tools else [*tools, declared]))


def _relaxed(members: Members, name: str, last: bool) -> Members:
    place = next((key for key in _CONFIG if key in members), _CONFIG[0])
    config = fields(members.get(place))
    calling: object = next(iter(_said(config, _CALLING)), None)
    bare = {key: value for key, value in config.items() if key not in _CALLING}
    if isinstance(calling, dict) and calling.get("mode") == "ANY":
        members = replaced(members, **{place: packed(bare) if bare else None})
    if not last:
        return members
    others = [raw for raw in _spread(members.get("tools")) if [one.get("name") for one in _declarations(fields(raw))] != [name]]
    if others:
        return replaced(members, tools=packed(others))
    return replaced(members, **{place: packed(bare | {_CALLING[0]: {"mode": "NONE"}})})


def _continued(members: Members, answer: bytes, findings: Sequence[Finding], upstream: Upstream) -> Members:
    contents: list[Object] = []
    parts = fields(answer)["candidates"][0]["content"]["parts"]
    for said, given in turns(parts, lambda part: "functionCall" in part, findings, pairs=upstream.pairs):
        contents.append({"role": "model", "parts": said})
        contents.append({"role": "user", "parts": [_given(part["functionCall"], finding) for part, finding in given]})
    return replaced(members, contents=packed([*_spread(members.get("contents")), *contents]))


def _given(call: Object, finding: Finding) -> Object:
    identity = {"id": call["id"]} if "id" in call else {}
    return {"functionResponse": identity | {"name": call["name"], "response": {"error" if finding.failed else "output": finding.told}}}


WORDS: Final = Words(
    wish=_wish,
    unheard=_unheard,
    names=_names,
    offered=_offered,
    relaxed=_relaxed,
    replayed=lambda members, _ours: members,
    continued=_continued,
)
