"""The model list as Responses clients read it. Both OpenAI surfaces have the same one."""

from __future__ import annotations

from asgi_surface.codecs.openai_wire import model, models

__all__ = ["model", "models"]
