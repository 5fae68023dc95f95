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
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, Surface

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


STAND_IN: Final = "skip_thought_signature_validator"
"""What Gemini and Vertex take in a token's place on a call that no model of theirs made. Nobody minted it."""
_NAMES: Final = (STAND_IN, "context_engineering_is_the_way_to_go")  # https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
# Clients write them as they are, or as the base64 of their bytes, with its padding or without.
_CODED: Final = tuple(base64.b64encode(name.encode()).decode() for name in _NAMES)
_NOTHING: Final = frozenset({*_NAMES, *_CODED, *(coded.rstrip("=") for coded in _CODED)})


def proves(text: str) -> bool:
    """Whether what stands in Google's slot is a token: nothing and a stand-in prove nothing."""
    return bool(text) and text not in _NOTHING


def from_googles_slot(text: str) -> Seal | None:
    """What a client sent where Google's token stands, on Gemini or in Chat's `extra_content`; None where that proves nothing."""
    return received(text, SealKind.THOUGHT, GEMINI) if proves(text) else None


_ALONE: Final = frozenset({(MESSAGES, SealKind.REDACTED), (CHAT, SealKind.ENCRYPTED)})


def proves_words(seal: Seal) -> bool:
    """Whether it proves the words that came before it. Messages' redacted thinking and Chat's encrypted details stand for themselves."""
    return (seal.surface, seal.kind) not in _ALONE
