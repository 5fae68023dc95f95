"""The tools of a Gemini request and the choice among them. Knows nothing of the conversation or of targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from asgi_surface import ir
from asgi_surface.codecs.gemini.schemas import openapi
from asgi_surface.codecs.gemini.values import Uses, Value
from asgi_surface.codecs.strict import twice

_HOSTED: Final = frozenset(
    {
        "googleSearch",
        "googleSearchRetrieval",
        "googleMaps",
        "codeExecution",
        "urlContext",
        "fileSearch",
        "computerUse",
        "enterpriseWebSearch",
        "retrieval",
        "parallelAiSearch",
        "exaAiSearch",
        "mcpServers",
    }
)
_DECLARATION: Final = frozenset({"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"})
_BLOCKING: Final = frozenset({"BLOCKING", "UNSPECIFIED"})
_PICKS: Final = {
    "AUTO": ir.Pick.AUTO,
    "MODE_UNSPECIFIED": ir.Pick.AUTO,
    "ANY": ir.Pick.REQUIRED,
    "NONE": ir.Pick.NONE,
    "VALIDATED": ir.Pick.AUTO,  # the model may call or answer, as with AUTO
}


def tools(value: Value | None, uses: Uses) -> tuple[ir.Tool, ...]:
    """The client's own functions. What else a tool object names is Google's to run: noted, never a tool here."""
    if value is None or not value.said:
        return ()
    uses.note("field:tools", value.at)
    return tuple(tool for item in value.items() for tool in _tools(item, uses))


def _tools(item: Value, uses: Uses) -> Iterator[ir.Tool]:
    for name, value in item.members(_HOSTED | {"functionDeclarations"}).items():
        if name in _HOSTED:
            _hosted(name, value, uses)
        else:
            yield from (_declared(declaration, uses) for declaration in value.items())


def _hosted(name: str, value: Value, uses: Uses) -> None:
    if bytes(value.raw) != b"[]":
        uses.note(f"tool:{name}", value.at)


def _declared(value: Value, uses: Uses) -> ir.Tool:
    prefix = "tool:functionDeclarations"
    uses.note(prefix, value.at)
    fields = value.members(_DECLARATION)
    uses.each(f"{prefix}.", fields, ("parameters", "parametersJsonSchema", "response", "responseJsonSchema"))
    if "behavior" in fields and fields["behavior"].text() not in _BLOCKING:
        uses.note(f"{prefix}.behavior", fields["behavior"].at)
    if "name" not in fields:
        value.malformed()
    exact, own = fields.get("parametersJsonSchema"), fields.get("parameters")
    if exact is not None and own is not None:  # the API takes one of them
        raise twice(own.at, exact.at)
    schema = None if own is None else openapi(own)
    description = fields["description"].text() if "description" in fields else None
    return ir.Tool(fields["name"].text(), description, schema if exact is None else exact.raw, at=value.at)


def choice(value: Value | None, uses: Uses) -> ir.Choice | None:
    """Which functions may or must be called."""
    if value is None or not value.said:
        return None
    uses.note("field:toolConfig", value.at)
    fields = value.members({"functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"})
    uses.each("field:toolConfig.", fields, ("retrievalConfig", "includeServerSideToolInvocations"))
    calling = fields.get("functionCallingConfig")
    return _calling(calling, uses) if calling is not None and calling.said else None


def _calling(value: Value, uses: Uses) -> ir.Choice | None:
    prefix = "field:toolConfig.functionCallingConfig"
    uses.note(prefix, value.at)
    fields = value.members({"mode", "allowedFunctionNames", "streamFunctionCallArguments"})
    uses.each(f"{prefix}.", fields, ("streamFunctionCallArguments",))
    allowed, mode = fields.get("allowedFunctionNames"), fields["mode"].text() if "mode" in fields else "AUTO"
    if mode not in _PICKS:
        value.malformed()
    names = None
    if allowed is not None and allowed.said:
        names = tuple(item.text() for item in allowed.items())
        forced = mode == "ANY" and len(names) == 1
        uses.note("choice:allowedFunctionNames.one" if forced else "choice:allowedFunctionNames", allowed.at)
    uses.note(f"choice:{mode.replace('MODE_UNSPECIFIED', 'AUTO')}", fields["mode"].at if "mode" in fields else value.at)
    return ir.Choice(_PICKS[mode], names, value.at)
