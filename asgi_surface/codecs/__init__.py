"""One folder a surface: everything the gateway knows of its wire. A new surface is a folder and one line here."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs import chat, gemini, messages, responses, zed
from asgi_surface.codecs.base import Codec, Face
from asgi_surface.surfaces import Surface

CODECS: Final[dict[Surface, Codec]] = {codec.surface: codec for codec in (chat.CODEC, responses.CODEC, messages.CODEC, gemini.CODEC)}

FACES: Final[dict[Surface, Face]] = {**CODECS, zed.FACE.surface: zed.FACE}
"""The surfaces whose clients are served: those that have a codec, and the carrier of the others."""
