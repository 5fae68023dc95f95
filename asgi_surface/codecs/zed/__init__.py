"""The Zed completions surface: an envelope that carries another surface's request, and lines that carry its answer.

It is a carrier, so it has a face and no codec: its words for errors and models stand here, all else is said by the surface that it carries.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import Face
from asgi_surface.codecs.zed.errors import error
from asgi_surface.codecs.zed.models import models
from asgi_surface.surfaces import ZED

__all__ = ["FACE"]

FACE: Final = Face(surface=ZED, error=error, models=models)
