"""The Responses error envelope, and what an upstream's says. Both OpenAI surfaces have the same one."""

from __future__ import annotations

from asgi_surface.codecs.openai_wire import error
from asgi_surface.codecs.reading import error_facts

__all__ = ["error", "error_facts"]
