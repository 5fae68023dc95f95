"""Gemini generateContent and streamGenerateContent."""

from __future__ import annotations

from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.gemini.answer import document
from asgi_surface.codecs.gemini.decode import decoder
from asgi_surface.codecs.gemini.encode import encoder
from asgi_surface.codecs.gemini.errors import error, error_facts
from asgi_surface.codecs.gemini.fields import COUNT_FIELDS, POLICY, REQUIRED
from asgi_surface.codecs.gemini.fold import folder, unfold
from asgi_surface.codecs.gemini.lift import lift
from asgi_surface.codecs.gemini.lower import lower
from asgi_surface.codecs.gemini.models import model, models
from asgi_surface.codecs.gemini.read import read
from asgi_surface.codecs.gemini.request import canonical, needs, tool_types
from asgi_surface.codecs.gemini.stream import watch
from asgi_surface.codecs.gemini.verdicts import ROWS
from asgi_surface.codecs.gemini.write import unsaid, write
from asgi_surface.framing import Framing
from asgi_surface.surfaces import GEMINI

# No keep-alive: the official client dies on comments. The model and the wish to stream stand in the path.
CODEC = Codec(
    surface=GEMINI,
    policy=POLICY,
    required=REQUIRED,
    model_in_path=True,
    count_fields=COUNT_FIELDS,
    names=canonical,
    needs=needs,
    tool_types=tool_types,
    watch=watch,
    document=document,
    error=error,
    error_facts=error_facts,
    envelope={"message": str, "code": int, "status": str},
    models=models,
    model=model,
    framings=(Framing.SSE, Framing.JSON_ARRAY),
    eof_ends=True,
    rows=ROWS,
    lift=lift,
    lower=lower,
    read=read,
    write=write,
    decoder=decoder,
    encoder=encoder,
    unsaid=unsaid,
    folder=folder,
    unfold=unfold,
)
