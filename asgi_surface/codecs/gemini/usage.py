"""Gemini's usageMetadata as everyone counts, and back.

Google counts thoughts beside the candidates, and the results of its own tools beside the prompt. Knows nothing of answers else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from asgi_surface.codecs import reading
from asgi_surface.codecs.gemini.parts import Json
from asgi_surface.ir import Usage

_AUDIO: Final = "AUDIO"
_BY_MODALITY: Final = {
    "prompt_tokens_details": "usage:promptTokensDetails",
    "candidates_tokens_details": "usage:candidatesTokensDetails",
    "cache_tokens_details": "usage:cacheTokensDetails",
    "tool_use_prompt_tokens_details": "usage:toolUsePromptTokensDetails",
}
_TIERS: Final = {"standard": "default", "flex": "flex", "priority": "priority"}
"""Service tiers, for which the IR has OpenAI's words. The API tells them here, before its SDK's type does."""
_SPOKEN: Final = frozenset({"prompt_tokens_details", "candidates_tokens_details"})
"""Of these the tokens of sound have a place of their own."""


class Counted(Struct, rename="camel"):
    """A usageMetadata."""

    prompt_token_count: Any = None
    tool_use_prompt_token_count: Any = None
    candidates_token_count: Any = None
    thoughts_token_count: Any = None
    cached_content_token_count: Any = None
    prompt_tokens_details: Any = None
    candidates_tokens_details: Any = None
    cache_tokens_details: Any = None
    tool_use_prompt_tokens_details: Any = None
    traffic_type: Any = None
    service_tier: Any = None

    def usage(self) -> Usage:
        """As everyone counts: what was read, and what was written."""
        thoughts = reading.count(self.thoughts_token_count)
        return Usage(
            input=reading.total(reading.count(self.prompt_token_count), reading.count(self.tool_use_prompt_token_count)),
            output=reading.total(reading.count(self.candidates_token_count), thoughts),
            cached=reading.count(self.cached_content_token_count),
            reasoning=thoughts,
            audio_input=_spoken(self.prompt_tokens_details),
            audio_output=_spoken(self.candidates_tokens_details),
        )

    def tier(self) -> str | None:
        """The service tier, in the IR's words."""
        return _TIERS.get(self._word())

    def _word(self) -> str:
        return (reading.string(self.service_tier) or "unspecified").lower()

    def unread(self) -> list[str]:
        """The names of what it tells beyond that."""
        names = [name for field, name in _BY_MODALITY.items() if _beyond(getattr(self, field), spoken=field in _SPOKEN)]
        names += [] if self._word() in {"unspecified", *_TIERS} else ["usage:serviceTier.other"]
        return names + (["usage:trafficType"] if self.traffic_type not in (None, "", "TRAFFIC_TYPE_UNSPECIFIED") else [])


def _entries(details: object) -> Iterator[Mapping[str, Any]]:
    return map(reading.mapping, details if isinstance(details, list) else ())


def _heard(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("modality")).upper() == _AUDIO


def _spoken(details: object) -> int | None:
    # Proto JSON leaves a zero out.
    return reading.total(*(reading.count(entry.get("tokenCount", 0)) for entry in _entries(details) if _heard(entry)))


def _beyond(details: object, *, spoken: bool) -> bool:
    return any(entry.get("tokenCount") and not (spoken and _heard(entry)) for entry in _entries(details))


def usage(spent: Usage | None) -> Json:
    """The usageMetadata; empty where nothing is known."""
    counted = spent or Usage()
    said = {
        "promptTokenCount": counted.input,
        "candidatesTokenCount": None if counted.output is None else max(counted.output - (counted.reasoning or 0), 0),
        "thoughtsTokenCount": counted.reasoning,
        "cachedContentTokenCount": counted.cached,
        "totalTokenCount": None if counted.input is None or counted.output is None else counted.input + counted.output,
        "promptTokensDetails": _details(counted.audio_input),
        "candidatesTokensDetails": _details(counted.audio_output),
    }
    return {name: number for name, number in said.items() if number is not None}


def _details(spoken: int | None) -> list[Json] | None:
    """By modality, as far as it is known: what is no sound is not said to be text."""
    return None if spoken is None else [{"modality": _AUDIO, "tokenCount": spoken}]
