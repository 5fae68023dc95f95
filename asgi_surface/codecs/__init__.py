"""One folder a surface: everything the gateway knows of its wire. A new surface is a folder and one line here."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs import chat, gemini, messages, responses
from asgi_surface.codecs.base import Codec
from asgi_surface.surfaces import Surface

CODECS: Final[dict[Surface, Codec]] = {codec.surface: codec for codec in (chat.CODEC, responses.CODEC, messages.CODEC, gemini.CODEC)}
