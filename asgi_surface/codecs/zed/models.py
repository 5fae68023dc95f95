"""The model list as Zed reads it: what each model can do, from what its route declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.codecs.zed.envelope import PROVIDERS
from asgi_surface.surfaces import CHAT, RESPONSES, Feature

_ASKS_PARALLEL: Final = frozenset({CHAT, RESPONSES})  # on the others Zed does not say whether calls may be parallel
# What a client cannot do without, and no route file has to say.
_SIZES: Final = ("context_tokens", "max_output_tokens")


def models(entries: Sequence[ModelEntry], query: ListQuery) -> bytes:  # noqa: ARG001 -- Zed's list has no pages
    """The list `{"models", "default_model", "default_fast_model", "recommended_models"}`: the default is the first model that can be used.

    A model whose sizes the route file does not say, or that cannot stream, is shown as disabled, with the reason: Zed fills a context of the size it
    is told, and only streams.
    """
    carried = [entry for entry in entries if entry.surface in PROVIDERS]
    first = next((entry.name for entry in carried if not _unsaid(entry)), None)
    body = {
        "models": [_model(entry) for entry in carried],
        "default_model": first,
        "default_fast_model": first,
        "recommended_models": [],
    }
    return msgspec.json.encode(body)


def _unsaid(entry: ModelEntry) -> list[str]:
    return [*(name for name in _SIZES if getattr(entry, name) is None), *([] if entry.streams else ["streaming"])]


def _model(entry: ModelEntry) -> dict[str, object]:
    has, unsaid = entry.features.__contains__, _unsaid(entry)
    model: dict[str, object] = {
        "provider": PROVIDERS[entry.surface],
        "id": entry.name,
        "display_name": entry.name,
        "is_latest": False,
        "max_token_count": entry.context_tokens or 0,
        "max_output_tokens": entry.max_output_tokens or 0,
        "supports_tools": has(Feature.TOOLS),
        "supports_images": has(Feature.IMAGES),
        "supports_thinking": has(Feature.REASONING),
        "supports_disabling_thinking": has(Feature.REASONING),
        "supports_fast_mode": False,
        "supports_server_side_compaction": False,
        "supported_effort_levels": [],  # no route says which of them its model knows
        "supports_streaming_tools": has(Feature.TOOLS) and has(Feature.STREAMING),
        "is_disabled": bool(unsaid),
    }
    if entry.surface in _ASKS_PARALLEL:
        model["supports_parallel_tool_calls"] = has(Feature.PARALLEL_TOOLS)
    if unsaid:
        model["disabled_reason"] = f"the gateway's route file does not say {' and '.join(f'`{name}`' for name in unsaid)}"
    return model
