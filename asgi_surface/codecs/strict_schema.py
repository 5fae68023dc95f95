"""Whether a JSON Schema lies within the subset that OpenAI's strict mode takes. Knows no request."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

# platform.openai.com/docs/guides/structured-outputs, "Supported schemas". Azure refuses `default` in a strict schema, so it is not among them.
_WORDS: Final = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "definitions",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maximum",
        "maxItems",
        "minimum",
        "minItems",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_MAPS: Final = ("properties", "$defs", "definitions")
_ANY: Final = msgspec.json.Decoder()


def is_strict(raw: Raw) -> bool:
    """True when strict mode takes the schema as it is."""
    try:
        root = _ANY.decode(raw)
        # Alternatives may stand anywhere but at the root.
        return isinstance(root, dict) and root.get("type") == "object" and "anyOf" not in root and _strict(root)
    except (msgspec.DecodeError, RecursionError, AttributeError, TypeError):  # no schema at all
        return False


def _strict(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _WORDS or not _closed(schema):
        return False
    maps = [inner for name in _MAPS for inner in schema.get(name, {}).values()]
    items = [schema["items"]] if "items" in schema else []
    return all(map(_strict, (*maps, *items, *schema.get("anyOf", ()))))


def _closed(schema: dict[str, Any]) -> bool:
    """An object names all that it holds, and demands it."""
    if "object" not in schema.get("type", "") and "properties" not in schema:
        return True
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(schema.get("properties", {}))
