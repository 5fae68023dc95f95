"""Gemini's own schemas (an OpenAPI subset) as JSON Schema, and what of JSON Schema Gemini enforces. Knows nothing of tools or answers.

Only what the two spell differently is written anew: type names, `nullable`, snake_case keywords, and counts that proto JSON writes as strings.
Everything else keeps its bytes, and names of properties are never taken for keywords.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from asgi_surface.codecs.gemini.request import canonical
from asgi_surface.codecs.gemini.values import Value
from asgi_surface.members import Members, encode

_OBJECT: Final = Decoder(Members)
_TRUE: Final = Raw(b"true")
_LIST: Final = Decoder(list[Raw])
_STRING: Final = Decoder(str)
_TYPES: Final = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_KEYWORDS: Final = frozenset({"anyOf", "additionalProperties", "propertyOrdering"}) | {
    side + what for side in ("min", "max") for what in ("Items", "Length", "Properties")
}
_RENAMED: Final = {"defs": "$defs", "ref": "$ref"}
# As the SDK's `response_json_schema` lists them. `oneOf` is taken for `anyOf`, and others may be sent and mean nothing.
_ENFORCED: Final = frozenset(
    {
        *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems"),
        *("minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering"),
    }
)
_REMARKS: Final = frozenset({"$schema", "$comment", "default", "deprecated", "examples", "readOnly", "writeOnly"})
"""Keywords that forbid nothing."""
_ANY: Final = Decoder()


def openapi(value: Value) -> Raw:
    """One of Gemini's own schemas as JSON Schema; its exact bytes where it is one already. Raises `RequestError` where it is no schema."""
    try:
        return _schema(value.raw)
    except (msgspec.DecodeError, RecursionError):
        value.malformed()


def is_enforced(raw: Raw) -> bool:
    """Whether Gemini holds an answer to all that this JSON Schema says."""
    try:
        return _is_enforced(_ANY.decode(raw))
    except (msgspec.DecodeError, RecursionError, AttributeError, TypeError):  # no schema at all
        return False


def _is_enforced(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    maps = (inner for name in ("properties", "$defs") for inner in schema.get(name, {}).values())
    lists = (inner for name in ("anyOf", "prefixItems") for inner in schema.get(name, ()))
    single = (schema.get(name) for name in ("items", "additionalProperties"))
    return schema.keys() <= _ENFORCED | _REMARKS and all(map(_is_enforced, (*maps, *lists, *single)))


def _schema(raw: Raw) -> Raw:
    members = _OBJECT.decode(raw)
    said = {_keyword(name): value for name, value in members.items()}
    written = {name: _WRITERS.get(name, _same)(value) for name, value in said.items()}
    if written.get("nullable") == _TRUE and bytes(written.get("type", _TRUE)).startswith(b'"'):
        del written["nullable"]
        written["type"] = Raw(b"[" + bytes(written["type"]) + b',"null"]')
    return raw if written == members else Raw(encode(written))


def _keyword(name: str) -> str:
    camel = canonical(name)
    return camel if camel in _KEYWORDS else _RENAMED.get(name, name)


def _same(raw: Raw) -> Raw:
    return raw


def _type(raw: Raw) -> Raw:
    if not bytes(raw).startswith(b'"'):
        return raw
    name = _STRING.decode(raw)
    return Raw(f'"{name.lower()}"'.encode()) if name in _TYPES else raw


def _inner(raw: Raw) -> Raw:
    """A schema where a boolean may stand as well."""
    return _schema(raw) if bytes(raw).startswith(b"{") else raw


def _named(raw: Raw) -> Raw:
    members = _OBJECT.decode(raw)
    written = {name: _inner(value) for name, value in members.items()}
    return raw if written == members else Raw(encode(written))


def _listed(raw: Raw) -> Raw:
    items = _LIST.decode(raw)
    written = [_inner(item) for item in items]
    return raw if written == items else Raw(msgspec.json.encode(written))


def _count(raw: Raw) -> Raw:
    """A count out of its quotes (proto JSON writes 64 bit numbers as strings)."""
    text = bytes(raw).strip(b'"')
    return Raw(text) if text.isdigit() else raw


_WRITERS: Final[dict[str, Callable[[Raw], Raw]]] = {
    "type": _type,
    "items": _inner,
    "additionalProperties": _inner,
    "properties": _named,
    "$defs": _named,
    "anyOf": _listed,
    **{side + what: _count for side in ("min", "max") for what in ("Items", "Length", "Properties")},
}
