"""Lifts the tools of a Responses request and the choice among them. Knows nothing of the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface import ir
from asgi_surface.codecs import strict
from asgi_surface.codecs.responses import intake, wire
from asgi_surface.codecs.responses.intake import Notes
from asgi_surface.codecs.strict_schema import is_strict

_WORD: Final = Decoder(str)


def tools(raw: Raw, notes: Notes) -> Iterator[ir.Tool]:
    """The client's tools, those of namespaces in their places. Tools of the provider's are noted only."""
    for index, tool in enumerate(intake.elements(raw, "/tools")):
        at = f"/tools/{index}"
        kind = notes.kind("tool:", intake.kind_of(tool, at), at)
        if kind == "namespace":
            yield from _namespace(tool, at, notes)
        else:
            yield from _tool(kind, tool, at, notes)


def _tool(kind: str, raw: Raw, at: str, notes: Notes, namespace: wire.Namespace | None = None) -> Iterator[ir.Tool]:
    name = None if namespace is None else namespace.name
    about = None if namespace is None else namespace.description
    if kind == "function":
        function = intake.read(wire.FunctionTool, raw, "tool:function", at, notes)
        schema = strict.as_object(function.parameters, f"{at}/parameters") if intake.given(function.parameters) else None
        yield ir.Tool(
            function.name, function.description, schema, _enforced(function.strict, schema), namespace=name, namespace_description=about, at=at
        )
    elif kind == "custom":
        custom = intake.read(wire.CustomTool, raw, "tool:custom", at, notes)
        grammar = _grammar(custom.format, f"{at}/format", notes)
        yield ir.Tool(custom.name, custom.description, form=ir.Form.CUSTOM, grammar=grammar, namespace=name, namespace_description=about, at=at)


def _enforced(said: bool | None, schema: Raw | None) -> bool:
    """Whether the arguments must follow the schema.

    Where the client does not say, the API tries: "If omitted, Responses attempts to use strict validation when the schema is compatible, and falls
    back to non-strict validation otherwise" (openai.types.responses.namespace_tool). It closes open objects for that. A client's schema is never
    edited here, so it counts as strict only as it stands: another surface would refuse `strict` beside any other.
    """
    return (schema is not None and is_strict(schema)) if said is None else said


def _grammar(raw: Raw, at: str, notes: Notes) -> Raw | None:
    """The format that is a grammar; free text is the default."""
    if not intake.given(raw):
        return None
    kind = notes.kind("tool:custom.format.", intake.kind_of(raw, at), at)
    intake.read(wire.Grammar if kind == "grammar" else wire.OnlyType, raw, f"tool:custom.format.{kind}", at, notes)
    return raw if kind == "grammar" else None


def _namespace(raw: Raw, at: str, notes: Notes) -> Iterator[ir.Tool]:
    namespace = intake.read(wire.Namespace, raw, "tool:namespace", at, notes)
    for index, tool in enumerate(namespace.tools):
        place = f"{at}/tools/{index}"
        kind = notes.kind("tool:", intake.kind_of(tool, place), place)
        if kind == "namespace":
            raise strict.unknown(place)
        yield from _tool(kind, tool, place, notes, namespace)


def choice(raw: Raw, notes: Notes) -> ir.Choice | None:
    """The tool choice. One of a tool of the provider's is noted only."""
    at = "/tool_choice"
    if intake.is_text(raw):
        return ir.Choice(ir.Pick(notes.kind("choice:", _word(raw, at), at)), at=at)
    kind = notes.kind("choice:", _typed(raw, at), at)
    if kind == "allowed_tools":
        allowed = intake.read(wire.Allowed, raw, "choice:allowed_tools", at, notes)
        return ir.Choice(ir.Pick(allowed.mode), tuple(_names(allowed.tools, f"{at}/tools", notes)), at)
    if kind in _NAMED:
        return ir.Choice(ir.Pick.REQUIRED, (intake.read(wire.Named, raw, f"choice:{kind}", at, notes).name,), at)
    return None


_NAMED: Final = frozenset({"function", "custom"})
_WORDS: Final = frozenset(ir.Pick)


def _word(raw: Raw, at: str) -> str:
    word = strict.decode(_WORD, raw, at)
    if word not in _WORDS:
        raise strict.unknown(at)
    return word


def _typed(raw: Raw, at: str) -> str | None:
    """The type of a choice. A word that stands alone is no type."""
    kind = intake.kind_of(raw, at)
    return None if kind in _WORDS else kind


def _names(tools: list[Raw], at: str, notes: Notes) -> Iterator[str]:
    for index, tool in enumerate(tools):
        place = f"{at}/{index}"
        kind = notes.kind("choice:", _typed(tool, place), place)
        if kind == "allowed_tools":
            raise strict.unknown(place)
        if kind in _NAMED:
            yield intake.read(wire.Named, tool, f"choice:{kind}", place, notes).name
