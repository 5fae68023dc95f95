"""Lifts a Responses request: what it says in no surface's words, and every construct that it uses, with its place.

Knows no target: what becomes of a construct stands in verdicts.py, and is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from asgi_surface import ir
from asgi_surface.codecs import strict
from asgi_surface.codecs.base import Lifted
from asgi_surface.codecs.responses import intake, lift_items, lift_tools, wire
from asgi_surface.codecs.responses.intake import Notes
from asgi_surface.codecs.responses.verdicts import ROWS
from asgi_surface.members import Members, token

_CONTAINERS: Final = frozenset({"include", "input", "model", "reasoning", "stream_options", "text", "tool_choice", "tools"})
_FIELDS: Final = _CONTAINERS | {name for row in ROWS if (name := row.removeprefix("field:")) != row and "." not in name}

# Values that say nothing: the API's own defaults.
_HARMLESS: Final = frozenset(
    {
        ("background", b"false"),
        ("context_management", b"[]"),
        ("metadata", b"{}"),
        ("stream", b"false"),
        ("top_logprobs", b"0"),
        ("truncation", b'"disabled"'),
    }
)
# Values whose meaning is another than the member's own.
_SPELLED: Final = {
    ("parallel_tool_calls", b"false"): "field:parallel_tool_calls.false",
    ("service_tier", b'"auto"'): "field:service_tier.auto",
    ("service_tier", b'"default"'): "field:service_tier.default",
    ("service_tier", b'"flex"'): "field:service_tier.flex",
    ("service_tier", b'"priority"'): "field:service_tier.priority",
    ("store", b"false"): "field:store.false",
}


class _Setting(Struct, frozen=True):
    """Where a scalar member goes. `raw`: as the client's own text, which is only checked."""

    name: str
    shape: Decoder[Any]
    raw: bool = False


_BOOL: Final = Decoder(bool)
_TEXT: Final = Decoder(str)
_WHOLE: Final = Decoder(int)
_NUMBER: Final = Decoder(float)
_STREAM_OPTIONS: Final = Decoder(wire.StreamOptions)
_INCLUDE: Final = Decoder(list[str])
_SETTINGS: Final[Mapping[str, _Setting]] = {
    "max_output_tokens": _Setting("max_tokens", _WHOLE, raw=True),
    "temperature": _Setting("temperature", _NUMBER, raw=True),
    "top_p": _Setting("top_p", _NUMBER, raw=True),
    "top_logprobs": _Setting("top_logprobs", _WHOLE, raw=True),
    "metadata": _Setting("metadata", Decoder(dict[str, str]), raw=True),
    "parallel_tool_calls": _Setting("parallel", _BOOL),
    "store": _Setting("store", _BOOL),
    "user": _Setting("user", _TEXT),
    "safety_identifier": _Setting("safety_id", _TEXT),
    "service_tier": _Setting("service_tier", _TEXT),
    "prompt_cache_key": _Setting("cache_key", _TEXT),
}


def lift(members: Members, stream: bool) -> Lifted:
    """The request and its constructs. A usage report is part of every answer, so it always asks for one.

    Raises `RequestError` with the pointer of what has a wrong shape, or is not known.
    """
    notes = Notes()
    said = {name: raw for name, raw in members.items() if _says(name, raw)}
    for name, raw in said.items():
        _mention(name, raw, notes)
    included = _included(said.get("include", wire.NULL), notes)
    effort = _effort(said["reasoning"], notes) if "reasoning" in said else None
    text = intake.read(wire.TextConfig, said["text"], "field:text", "/text", notes) if "text" in said else wire.TextConfig()
    request = ir.Request(
        turns=(*_instructions(said), *(lift_items.turns(said["input"], notes) if "input" in said else ())),
        tools=tuple(lift_tools.tools(said["tools"], notes)) if "tools" in said else (),
        choice=lift_tools.choice(said["tool_choice"], notes) if "tool_choice" in said else None,
        settings=_settings(said, included, text),
        effort=effort,
        format=_format(text.format, notes),
        stream=stream,
        include_usage=True,
        wants_seals="reasoning.encrypted_content" in included,
    )
    return Lifted(request, tuple(notes.mentions))


def _says(name: str, raw: Raw) -> bool:
    """Whether a member says anything. Raises `RequestError` for one that is not known and not null."""
    if not intake.given(raw) or (name, bytes(raw)) in _HARMLESS:
        return False
    if name not in _FIELDS:
        raise strict.unknown(token(name))
    return True


def _mention(name: str, raw: Raw, notes: Notes) -> None:
    if name not in _CONTAINERS:
        notes.note(_SPELLED.get((name, bytes(raw)), f"field:{name}"), f"/{name}")
    if (shape := _OPTIONS.get(name)) is not None:
        intake.read(shape, raw, f"field:{name}", f"/{name}", notes)


_OPTIONS: Final[Mapping[str, type[Struct]]] = {"stream_options": wire.StreamOptions, "prompt_cache_options": wire.CacheOptions}


def _instructions(said: Members) -> tuple[ir.Turn, ...]:
    at = "/instructions"
    text = strict.decode(_TEXT, said["instructions"], at) if "instructions" in said else ""
    return (ir.Turn(ir.Role.SYSTEM, (ir.Text(text, at),), at),) if text else ()


def _included(raw: Raw, notes: Notes) -> dict[str, str]:
    """What the answer is to hold beyond itself, each with its place."""
    values = strict.decode(_INCLUDE, raw, "/include") if intake.given(raw) else []
    for index, value in enumerate(values):
        notes.note(f"field:include.{value}", f"/include/{index}")
    return {value: f"/include/{index}" for index, value in enumerate(values)}


def _settings(said: Members, included: Mapping[str, str], text: wire.TextConfig) -> ir.Settings:
    """The scalar members, each with its place. Alternatives (`top_logprobs`) ask for log probabilities too."""
    values: dict[str, Any] = {}
    at: dict[str, str] = {}
    for name, setting in _SETTINGS.items():
        if name in said:
            value = strict.decode(setting.shape, said[name], f"/{name}")
            values[setting.name] = said[name] if setting.raw else value
            at[setting.name] = f"/{name}"
    if (place := included.get("message.output_text.logprobs") or at.get("top_logprobs")) is not None:
        values["logprobs"], at["logprobs"] = True, place
    if text.verbosity is not None:
        values["verbosity"], at["verbosity"] = text.verbosity, "/text/verbosity"
    if "stream_options" in said:
        values["obfuscation"] = strict.decode(_STREAM_OPTIONS, said["stream_options"], "/stream_options").include_obfuscation
        at["obfuscation"] = "/stream_options/include_obfuscation"
    return ir.Settings(**values, at=at)


def _effort(raw: Raw, notes: Notes) -> ir.Effort | None:
    """How to reason. `summary` is the newer name of `generate_summary`; without effort, the summary's place is the wish's."""
    config = intake.read(wire.ReasoningConfig, raw, "field:reasoning", "/reasoning", notes)
    said = [name for name in ("effort", "summary", "generate_summary") if getattr(config, name) is not None]
    if not said:
        return None
    summary = config.generate_summary if config.summary is None else config.summary
    off = config.effort == "none"
    return ir.Effort(word=None if off else config.effort, off=off, summary=summary, at=f"/reasoning/{said[0]}")


def _format(raw: Raw, notes: Notes) -> ir.Format | None:
    """Structured output; plain text is the default."""
    if not intake.given(raw):
        return None
    at = "/text/format"
    kind = notes.kind("field:text.format.", intake.kind_of(raw, at), at)
    if kind == "json_schema":
        schema = intake.read(wire.JsonSchema, raw, "field:text.format.json_schema", at, notes)
        # Unlike functions, schemas of the answer are strict only where that is said.
        return ir.Format(strict.as_object(schema.schema, f"{at}/schema"), schema.name, schema.description, bool(schema.strict), at)
    intake.read(wire.OnlyType, raw, f"field:text.format.{kind}", at, notes)
    return ir.Format(None, at=at) if kind == "json_object" else None
