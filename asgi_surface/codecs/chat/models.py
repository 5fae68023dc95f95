"""The model list as Chat Completions clients read it. Both OpenAI surfaces have the same one."""

from __future__ import annotations

from asgi_surface.codecs.openai_wire import model, models

__all__ = ["model", "models"]
