"""A Gemini request in no surface's words: the body's members and generationConfig. The conversation and the tools stand in files of their own.

Every construct that the request uses is noted with its pointer in the client's spelling; what nothing here knows is refused at it. Knows no target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from asgi_surface import ir
from asgi_surface.codecs.base import Lifted
from asgi_surface.codecs.gemini import lift_contents, lift_tools
from asgi_surface.codecs.gemini.schemas import openapi
from asgi_surface.codecs.gemini.values import Uses, Value, placed
from asgi_surface.codecs.strict import twice, unknown
from asgi_surface.members import Members

_ALONE: Final = frozenset({"cachedContent", "continuationToken", "model", "modelArmorConfig", "generationOutputConfig", "labels"})
_TOP: Final = _ALONE | {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "serviceTier", "store"}
_NO_FILTER: Final = frozenset({"OFF", "BLOCK_NONE", "HARM_BLOCK_THRESHOLD_UNSPECIFIED"})
_TIERS: Final = {"standard": "default"}
"""Words of service tiers that OpenAI's surfaces have others for."""
_NO_TIER: Final = frozenset({"", "unspecified"})
_KNOWN_TIERS: Final = _NO_TIER | {"standard", "flex", "priority"}


def lift(members: Members, stream: bool) -> Lifted:
    """The request and its mentions. Raises `RequestError` at the client's pointer for a wrong shape or a member that no conversion knows."""
    top, uses = placed(members, "", _TOP), Uses()
    config = _Config(uses, top)
    turns = lift_contents.conversation(top, uses)
    tools = lift_tools.tools(top.get("tools"), uses)
    choice = lift_tools.choice(top.get("toolConfig"), uses)
    request = ir.Request(
        turns=turns,
        tools=tools,
        choice=choice,
        settings=config.settings(),
        effort=config.effort,
        format=config.format,
        stream=stream,
        include_usage=stream,  # every chunk of a Gemini stream counts tokens
        wants_seals=True,  # Gemini signs its thoughts unasked
    )
    return Lifted(request, tuple(uses.mentions))


class _Config:
    """What the top level and generationConfig say beside the conversation."""

    def __init__(self, uses: Uses, top: Mapping[str, Value]) -> None:
        self._uses = uses
        self._said: dict[str, Any] = {}
        self._at: dict[str, str] = {}
        self.effort: ir.Effort | None = None
        self.format: ir.Format | None = None
        uses.each("field:", dict(top), _ALONE)
        for name, read in {"safetySettings": self._filters, "serviceTier": self._tier, "store": self._store}.items():
            if name in top:
                read(top[name])
        if "generationConfig" in top and top["generationConfig"].said:
            self._generation(top["generationConfig"])

    def settings(self) -> ir.Settings:
        return ir.Settings(**self._said, at=self._at)

    def _set(self, construct: str, field: str, said: object, value: Value) -> None:
        self._uses.note(construct, value.at)
        self._said[field] = said
        self._at[field] = value.at

    def _filters(self, value: Value) -> None:
        for item in value.items():
            setting = item.members({"category", "threshold", "method"})
            idle = "threshold" not in setting or setting["threshold"].text() in _NO_FILTER
            self._uses.note("field:safetySettings.off" if idle else "field:safetySettings", item.at)

    def _tier(self, value: Value) -> None:
        tier = value.text().lower()
        if tier not in _KNOWN_TIERS:
            raise unknown(value.at)
        if tier not in _NO_TIER:
            self._set("field:serviceTier.standard" if tier in _TIERS else "field:serviceTier", "service_tier", _TIERS.get(tier, tier), value)

    def _store(self, value: Value) -> None:
        said = value.flag()
        self._set("field:store" if said else "field:store.false", "store", said, value)

    def _generation(self, value: Value) -> None:
        self._uses.note("field:generationConfig", value.at)
        fields = value.members(_GENERATION)
        self._uses.each(_PREFIX, fields, _NATIVE)
        for name, (field, read) in _SETTINGS.items():
            if name in fields and fields[name].said:
                self._setting(name, field, read(fields[name]), fields[name])
        if "responseModalities" in fields:
            self._modalities(fields["responseModalities"])
        if "mediaResolution" in fields and fields["mediaResolution"].text() != "MEDIA_RESOLUTION_UNSPECIFIED":
            self._uses.note(_PREFIX + "mediaResolution", fields["mediaResolution"].at)
        if "thinkingConfig" in fields and fields["thinkingConfig"].said:
            self.effort = _effort(fields["thinkingConfig"], self._uses)
        self.format = _format(fields, self._uses)

    def _setting(self, name: str, field: str, said: object, value: Value) -> None:
        if said not in _DEFAULTS.get(name, ()):
            self._set(_PREFIX + name, field, said, value)

    def _modalities(self, value: Value) -> None:
        for item in value.items():
            if item.text().upper() not in {"TEXT", "MODALITY_UNSPECIFIED"}:
                self._uses.note(_PREFIX + "responseModalities", item.at)


def _strings(value: Value) -> tuple[str, ...]:
    return tuple(item.text() for item in value.items())


_PREFIX: Final = "field:generationConfig."
_SETTINGS: Final[dict[str, tuple[str, Callable[[Value], object]]]] = {
    "temperature": ("temperature", Value.number),
    "topP": ("top_p", Value.number),
    "topK": ("top_k", Value.integer),
    "maxOutputTokens": ("max_tokens", Value.integer),
    "stopSequences": ("stop", _strings),
    "candidateCount": ("n", Value.integer),
    "seed": ("seed", Value.integer),
    "presencePenalty": ("presence_penalty", Value.number),
    "frequencyPenalty": ("frequency_penalty", Value.number),
    "responseLogprobs": ("logprobs", Value.flag),
    "logprobs": ("top_logprobs", Value.integer),
}
_ZERO: Final = (Raw(b"0"), Raw(b"0.0"))
_DEFAULTS: Final[dict[str, tuple[object, ...]]] = {"candidateCount": (Raw(b"1"),), "presencePenalty": _ZERO, "frequencyPenalty": _ZERO}
"""Values that ask for what every surface does unasked."""
_NATIVE: Final = frozenset(
    {
        "responseFormat",
        "speechConfig",
        "imageConfig",
        "audioTimestamp",
        "audioTranscriptionConfig",
        "translationConfig",
        "enableAffectiveDialog",
        "enableEnhancedCivicAnswers",
        "routingConfig",
        "modelSelectionConfig",
    }
)
_SCHEMAS: Final = ("responseJsonSchema", "_responseJsonSchema", "responseSchema")  # the second is the REST reference's first name of the first
_GENERATION: Final = _NATIVE | _SETTINGS.keys() | set(_SCHEMAS) | {"responseMimeType", "responseModalities", "mediaResolution", "thinkingConfig"}


def _effort(value: Value, uses: Uses) -> ir.Effort | None:
    prefix = "field:generationConfig.thinkingConfig"
    uses.note(prefix, value.at)
    fields = value.members({"includeThoughts", "thinkingBudget", "thinkingLevel"})
    said: dict[str, Any] = {}
    if "includeThoughts" in fields and fields["includeThoughts"].flag():
        uses.note(f"{prefix}.includeThoughts", fields["includeThoughts"].at)
        said["summary"] = "auto"
    if "thinkingBudget" in fields:
        budget = int(bytes(fields["thinkingBudget"].integer()))
        kind, meant = _BUDGETS.get(budget, ("", {"budget": budget}))
        uses.note(f"{prefix}.thinkingBudget{kind}", fields["thinkingBudget"].at)
        said |= meant
    if "thinkingLevel" in fields and (level := fields["thinkingLevel"].text().lower()) != "thinking_level_unspecified":
        uses.note(f"{prefix}.thinkingLevel{_LEAST.get(level, '')}", fields["thinkingLevel"].at)
        said["word"] = level
    return ir.Effort(**said, at=value.at) if said else None


_LEAST: Final = {"minimal": ".minimal"}
_BUDGETS: Final[dict[int, tuple[str, dict[str, Any]]]] = {0: (".off", {"off": True}), -1: (".adaptive", {"adaptive": True})}


def _format(fields: Mapping[str, Value], uses: Uses) -> ir.Format | None:
    mime = fields.get("responseMimeType")
    schemas = [fields[name] for name in _SCHEMAS if name in fields]
    if len(schemas) > 1:  # the API takes one of them
        raise twice(schemas[1].at, schemas[0].at)
    schema = next(iter(schemas), None)
    if mime is not None and mime.text() == "text/x.enum":
        uses.note(_PREFIX + "responseMimeType.enum", mime.at)
        return None
    if schema is not None:
        return _schema(schema, "responseSchema" if schema is fields.get("responseSchema") else "responseJsonSchema", uses)
    if mime is None or mime.text() in {"", "text/plain"}:
        return None
    uses.note(_PREFIX + "responseMimeType", mime.at)
    return ir.Format(None, at=mime.at) if mime.text() == "application/json" else mime.malformed()


def _schema(value: Value, name: str, uses: Uses) -> ir.Format:
    uses.note(_PREFIX + name, value.at)
    return ir.Format(openapi(value) if name == "responseSchema" else value.raw, at=value.at)
