"""Lifts the tools of a Chat Completions request and the choice among them, in today's form and in that of `functions`. Knows no history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface.codecs.chat.wire import CustomFormat, CustomTool, FunctionTool, Named, ToolChoice, ToolDefinition, ToolReference, there
from asgi_surface.codecs.strict import decode, twice
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Choice, Form, Pick, Tool
from asgi_surface.members import Members
from asgi_surface.verdicts import Mention

_TOOLS: Final = Decoder(list[ToolDefinition])
_FUNCTIONS: Final = Decoder(list[FunctionTool])
_CUSTOM_FORMAT: Final = Decoder(CustomFormat)
_CHOICE: Final = Decoder(Literal["none", "auto", "required"] | ToolChoice)
_FUNCTION_CALL: Final = Decoder(Literal["none", "auto"] | Named)


def tools(given: Members, notes: list[Mention]) -> tuple[Tool, ...]:
    """The tools in the client's order, those of `functions` last."""
    return (*_tools(given.get("tools"), notes), *_functions(given.get("functions"), notes))


def _tools(raw: Raw | None, notes: list[Mention]) -> Iterator[Tool]:
    listed = decode(_TOOLS, raw, "/tools") if raw is not None else []
    for index, tool in enumerate(listed):
        at = f"/tools/{index}"
        if tool.cache_control is not None:
            notes.append(Mention("tool:cache_control", f"{at}/cache_control"))
        if tool.type == "custom":
            yield _custom(there(tool.custom, at), at, notes)
        else:
            yield _function(there(tool.function, at), at, f"{at}/function", notes)


def _functions(raw: Raw | None, notes: list[Mention]) -> Iterator[Tool]:
    listed = decode(_FUNCTIONS, raw, "/functions") if raw is not None else []
    if listed:
        notes.append(Mention("field:functions", "/functions"))
    for index, function in enumerate(listed):
        at = f"/functions/{index}"
        yield _function(function, at, at, notes)


def _function(function: FunctionTool, at: str, place: str, notes: list[Mention]) -> Tool:
    notes.append(Mention("tool:function", at))
    if function.strict:
        notes.append(Mention("tool:function.strict", f"{place}/strict"))
    schema = bytes(function.parameters)
    if schema[:1] not in {b"{", b"n"}:
        raise RequestError(Code.MALFORMED_BODY, "a schema is an object", pointer=f"{place}/parameters")
    return Tool(function.name, function.description, None if schema == b"null" else function.parameters, bool(function.strict), at=at)


def _custom(custom: CustomTool, at: str, notes: list[Mention]) -> Tool:
    notes.append(Mention("tool:custom", at))
    return Tool(custom.name, custom.description, form=Form.CUSTOM, grammar=_grammar(custom.format, f"{at}/custom/format", notes), at=at)


def _grammar(raw: Raw, at: str, notes: list[Mention]) -> Raw | None:
    """The format in the flat form that Responses has; Chat nests the grammar once more. Text is the default and says nothing."""
    if bytes(raw) == b"null" or (said := decode(_CUSTOM_FORMAT, raw, at)).type == "text":
        return None
    notes.append(Mention("tool:custom.grammar", at))
    grammar = there(said.grammar, at)
    return Raw(msgspec.json.encode({"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}))


def choice(given: Members, notes: list[Mention]) -> Choice | None:
    """Which tools may be called; None when the client leaves it open. `function_call` may only repeat what today's form says."""
    older = _older_choice(given, notes)
    if (raw := given.get("tool_choice")) is None:
        return older
    at = "/tool_choice"
    chosen = _choice(decode(_CHOICE, raw, at), at, notes)
    if older is not None and (older.pick, older.names) != (chosen.pick, chosen.names):
        raise twice(older.at, at)
    return chosen


def _older_choice(given: Members, notes: list[Mention]) -> Choice | None:
    if (raw := given.get("function_call")) is None:
        return None
    at = "/function_call"
    said = decode(_FUNCTION_CALL, raw, at)
    notes.append(Mention("field:function_call", at))
    return Choice(Pick(said), at=at) if isinstance(said, str) else Choice(Pick.REQUIRED, (said.name,), at)


def _choice(said: str | ToolChoice, at: str, notes: list[Mention]) -> Choice:
    notes.append(Mention(f"choice:{said if isinstance(said, str) else said.type}", at))
    if isinstance(said, str):
        return Choice(Pick(said), at=at)
    if said.type == "allowed_tools":
        allowed = there(said.allowed_tools, at)
        names = tuple(_named(tool, f"{at}/allowed_tools/tools/{index}") for index, tool in enumerate(allowed.tools))
        return Choice(Pick(allowed.mode), names, at)
    return Choice(Pick.REQUIRED, (_named(said, at),), at)


def _named(said: ToolChoice | ToolReference, at: str) -> str:
    return there(said.custom if said.type == "custom" else said.function, at).name
