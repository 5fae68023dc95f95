"""The envelope in which opaque reasoning state crosses surfaces: it names the seal domain, so that a token goes back only to who minted it.

The envelope is standard base64 on every surface; google-genai sends it back in the URL-safe alphabet, so both are read. It is unsigned and trusted
with nothing: it can only put an opaque string where the client could put one itself. It shows no route or host names. Knows no wire.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Struct

from asgi_surface.ir import Seal, SealKind
from asgi_surface.surfaces import Surface

# Twelve bytes are sixteen characters of base64, so every envelope begins with the same text and can be found by a byte search.
_MAGIC: Final = b"asgi-surface"
PREFIX: Final = base64.b64encode(_MAGIC).decode()
"""What every envelope begins with."""


class _Envelope(Struct, frozen=True, array_like=True):
    domain: str
    surface: str
    kind: SealKind
    token: str
    id: str = ""


_DECODER: Final = msgspec.json.Decoder(_Envelope)


def wrap(seal: Seal, domain: str) -> str:
    """The seal as a string for a client's own opaque slot. `domain` is the provider's that minted it.

    Natively ("" for a domain) the client sends the token back to where it came from, past everybody who would open an envelope, so it stays bare.
    """
    if not domain and seal.kind is not SealKind.TEXT:
        return seal.token
    inside = _Envelope(domain, seal.surface, seal.kind, seal.token, seal.id)
    return base64.b64encode(_MAGIC + msgspec.json.encode(inside)).decode()


def unwrap(text: str) -> Seal | None:
    """The seal in one of our envelopes, exactly as it was minted; None when the text is none of ours (or was damaged on the way)."""
    if not text.startswith(PREFIX):
        return None
    try:
        raw = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
        inside = _DECODER.decode(raw[len(_MAGIC) :])
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
    return Seal(inside.token, inside.kind, Surface(inside.surface), inside.domain, inside.id)


def received(text: str, kind: SealKind, surface: Surface) -> Seal:
    """What a client sent in its opaque slot: one of our envelopes opened, or a bare token of the client's own surface."""
    return unwrap(text) or Seal(text, kind, surface)
