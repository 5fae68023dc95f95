"""A Messages request in no surface's words, with every construct it uses and the place of it.

Members that are null count as absent; an unknown one is refused. Knows nothing of what another surface can say: that is the table of verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface import ir
from asgi_surface.codecs import strict
from asgi_surface.codecs.base import Lifted
from asgi_surface.codecs.messages import wire
from asgi_surface.codecs.messages.lift_blocks import Notes, content, texts
from asgi_surface.codecs.messages.verdicts import ROWS
from asgi_surface.members import Members, token

_NONE: Final = Raw(b"[]")
_LIST: Final = Decoder(list[Raw])
_CONTENT: Final = Decoder(str | list[Raw])
_MESSAGES: Final = Decoder(list[wire.Message])
_TYPED: Final = Decoder(wire.Typed)
_TOOL: Final = Decoder(wire.Tool)
_CHOICE: Final = Decoder(wire.ToolChoice)
_THINKING: Final = Decoder(wire.Thinking)
_OUTPUT: Final = Decoder(wire.OutputConfig)
_FORMAT: Final = Decoder(wire.OutputFormat)
_METADATA: Final = Decoder(wire.Metadata)
_STRINGS: Final = Decoder(list[str])
_NUMBER: Final = Decoder(int | float)
_STRING: Final = Decoder(str)

_NUMBERS: Final = ("max_tokens", "temperature", "top_p", "top_k")
_MARKS: Final = ("strict", "defer_loading", "eager_input_streaming", "input_examples", "allowed_callers", "cache_control")
_THINKING_MARKS: Final = ("display", "block_binding")

# What a member may say without meaning anything; `speed` and `fallbacks` have defaults with names of their own.
_HARMLESS: Final = {
    "stream": (b"false",),
    "stop_sequences": (b"[]",),
    "tools": (b"[]",),
    "mcp_servers": (b"[]",),
    "fallbacks": (b"[]", b'"default"'),
    "speed": (b'"standard"',),
}
# Members whose values are constructs of their own.
_VALUED: Final = {"context_management", "metadata", "service_tier"}

_PICKS: Final = {"auto": ir.Pick.AUTO, "any": ir.Pick.REQUIRED, "tool": ir.Pick.REQUIRED, "none": ir.Pick.NONE}
_SUMMARIES: Final = {"summarized": "auto", "updates": "auto", "omitted": "omitted"}
# The IR's words for tiers are OpenAI's: `default` is the standard one.
_TIERS: Final = {"auto": "auto", "standard_only": "default"}
_KEEP_ALL: Final = ("all", {"type": "all"})
_MANAGEMENT: Final = Decoder(wire.Management)


def lift(members: Members, stream: bool) -> Lifted:
    """The request and its constructs. Raises `RequestError` with the pointer of what is unknown or has another shape than Messages has."""
    notes = Notes()
    said = {name: raw for name, raw in members.items() if raw != wire.NULL}
    for name, raw in said.items():
        _field(name, raw, notes)
    choice = strict.decode(_CHOICE, said["tool_choice"], "/tool_choice") if "tool_choice" in said else None
    output = strict.decode(_OUTPUT, said["output_config"], "/output_config") if "output_config" in said else wire.OutputConfig()
    request = ir.Request(
        turns=(*_system(said, notes), *_turns(said, notes)),
        tools=tuple(_tools(said, notes)),
        choice=_choice(choice, notes),
        settings=_settings(said, choice, notes),
        effort=_effort(said, output, notes),
        format=_format(said, output, notes),
        stream=stream,
        # What the API does unasked: usage in every stream, and a signature at every thought.
        include_usage=True,
        wants_seals=True,
    )
    return Lifted(request, tuple(notes.mentions))


def _field(name: str, raw: Raw, notes: Notes) -> None:
    construct = f"field:{name}"
    if construct not in ROWS:
        raise strict.unknown(token(name))
    if name not in _VALUED and bytes(raw) not in _HARMLESS.get(name, ()):
        notes(construct, token(name))
    if name == "context_management":
        _management(raw, notes)


def _management(raw: Raw, notes: Notes) -> None:
    """Edits by the server of what the model sees. Keeping all thinking is none: the other surfaces clear nothing."""
    for index, edit in enumerate(strict.decode(_MANAGEMENT, raw, "/context_management").edits or ()):
        kept = edit.get("type") == "clear_thinking_20251015" and edit.get("keep") in _KEEP_ALL
        notes("field:context_management.keep_all" if kept else "field:context_management", f"/context_management/edits/{index}")


def _system(said: Members, notes: Notes) -> Iterator[ir.Turn]:
    if "system" in said:
        parts = texts(strict.decode(_CONTENT, said["system"], "/system"), "/system", notes)
        if parts:
            yield ir.Turn(ir.Role.SYSTEM, parts, "/system")


def _turns(said: Members, notes: Notes) -> Iterator[ir.Turn]:
    messages = strict.decode(_MESSAGES, said.get("messages", _NONE), "/messages")
    for index, message in enumerate(messages):
        at = f"/messages/{index}"
        notes(f"role:{message.role}", at)
        if message.clear_at not in (None, "never"):
            notes("role:system.clear_at", f"{at}/clear_at")
        if message.output_config:
            notes("role:system.output_config", f"{at}/output_config")
        read = texts if message.role == "system" else content
        yield ir.Turn(ir.Role(message.role), read(message.content, f"{at}/content", notes), at)


def _tools(said: Members, notes: Notes) -> Iterator[ir.Tool]:
    entries = strict.decode(_LIST, said.get("tools", _NONE), "/tools")
    for index, raw in enumerate(entries):
        at = f"/tools/{index}"
        kind = strict.decode(_TYPED, raw, at).type or "custom"
        if f"tool:{kind}" not in ROWS:
            raise strict.unknown(f"{at}/type")
        notes(f"tool:{kind}", at)
        if kind == "custom":
            yield _tool(strict.decode(_TOOL, raw, at), at, notes)


def _tool(tool: wire.Tool, at: str, notes: Notes) -> ir.Tool:
    notes.attributes("tool:custom", tool, at, _MARKS)
    schema = strict.as_object(tool.input_schema, f"{at}/input_schema")
    return ir.Tool(tool.name, tool.description, schema, strict=bool(tool.strict), at=at)


def _choice(choice: wire.ToolChoice | None, notes: Notes) -> ir.Choice | None:
    if choice is None:
        return None
    if (choice.type == "tool") != (choice.name is not None):
        raise strict.malformed("/tool_choice")
    notes(f"choice:{choice.type}", "/tool_choice")
    return ir.Choice(_PICKS[choice.type], None if choice.name is None else (choice.name,), "/tool_choice")


def _effort(said: Members, output: wire.OutputConfig, notes: Notes) -> ir.Effort | None:
    thinking = strict.decode(_THINKING, said["thinking"], "/thinking") if "thinking" in said else None
    if output.effort is not None:
        notes("field:output_config.effort", "/output_config/effort")
    if thinking is not None:
        return _thinking(thinking, output.effort, notes)
    return None if output.effort is None else ir.Effort(output.effort, at="/output_config/effort")


def _thinking(thinking: wire.Thinking, word: str | None, notes: Notes) -> ir.Effort:
    if (thinking.type == "enabled") != (thinking.budget_tokens is not None):
        raise strict.malformed("/thinking")
    said = "adaptive.effort" if thinking.type == "adaptive" and word is not None else thinking.type
    # The display stands in the same member and is judged by itself.
    notes(f"field:thinking.{said}", "/thinking/type" if said == "adaptive" else "/thinking")
    value = ".updates" if thinking.display == "updates" else ""
    for name in _THINKING_MARKS:
        if getattr(thinking, name) is not None:
            notes(f"field:thinking.{name}{value if name == 'display' else ''}", f"/thinking/{name}")
    # Models that take a budget show their thinking unless told otherwise; the default of adaptive thinking differs by model.
    display = thinking.display or ("summarized" if thinking.type == "enabled" else "")
    return ir.Effort(
        word,
        thinking.budget_tokens,
        adaptive=thinking.type == "adaptive",
        off=thinking.type == "disabled",
        summary=_SUMMARIES.get(display),
        at="/thinking",
    )


def _format(said: Members, output: wire.OutputConfig, notes: Notes) -> ir.Format | None:
    """The schema of the answer, in the member of today or in the beta's first spelling of it."""
    if output.task_budget is not None:
        notes("field:output_config.task_budget", "/output_config/task_budget")
    older = _schema(strict.decode(_FORMAT, said["output_format"], "/output_format"), "/output_format") if "output_format" in said else None
    if output.format is None:
        return older
    at = "/output_config/format"
    notes("field:output_config.format", at)
    wanted = _schema(output.format, at)
    if older is not None and older.schema != wanted.schema:
        raise strict.twice(older.at, at)
    return wanted


def _schema(output: wire.OutputFormat, at: str) -> ir.Format:
    return ir.Format(strict.as_object(output.schema, f"{at}/schema"), at=at)


def _settings(said: Members, choice: wire.ToolChoice | None, notes: Notes) -> ir.Settings:
    found: dict[str, object] = {name: said[name] for name in _NUMBERS if name in said and strict.decode(_NUMBER, said[name], token(name)) is not None}
    at = {name: token(name) for name in found}
    for name, place, value in (*_stop(said), *_parallel(choice, notes), *_user(said, notes), *_tier(said, notes)):
        found[name], at[name] = value, place
    return ir.Settings(**found, at=at)  # type: ignore[arg-type]  # each name with the type that its reader gives


_Found = Iterator[tuple[str, str, object]]


def _stop(said: Members) -> _Found:
    if "stop_sequences" in said and (words := strict.decode(_STRINGS, said["stop_sequences"], "/stop_sequences")):
        yield "stop", "/stop_sequences", tuple(words)


def _parallel(choice: wire.ToolChoice | None, notes: Notes) -> _Found:
    if choice is not None and choice.disable_parallel_tool_use is not None:
        place = "/tool_choice/disable_parallel_tool_use"
        notes("field:tool_choice.disable_parallel_tool_use" + ("" if choice.disable_parallel_tool_use else ".false"), place)
        yield "parallel", place, not choice.disable_parallel_tool_use


def _user(said: Members, notes: Notes) -> _Found:
    if "metadata" not in said:
        return
    user = strict.decode(_METADATA, said["metadata"], "/metadata").user_id
    if user is None:
        notes("field:metadata", "/metadata")
    else:
        notes("field:metadata.user_id", "/metadata/user_id")
        yield "safety_id", "/metadata/user_id", user


def _tier(said: Members, notes: Notes) -> _Found:
    tier = strict.decode(_STRING, said["service_tier"], "/service_tier") if "service_tier" in said else None
    if tier in _TIERS:
        notes(f"field:service_tier.{tier}", "/service_tier")
        yield "service_tier", "/service_tier", _TIERS[tier]
    elif tier is not None:
        notes("field:service_tier", "/service_tier")
