"""OpenAI Responses."""

from __future__ import annotations

from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.responses.answer import document
from asgi_surface.codecs.responses.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.responses.decode import decoder
from asgi_surface.codecs.responses.encode import encoder
from asgi_surface.codecs.responses.errors import error, error_facts
from asgi_surface.codecs.responses.fields import POLICY, REQUIRED
from asgi_surface.codecs.responses.fold import folder
from asgi_surface.codecs.responses.lift import lift
from asgi_surface.codecs.responses.lower import lower
from asgi_surface.codecs.responses.models import model, models
from asgi_surface.codecs.responses.read import read
from asgi_surface.codecs.responses.request import needs, tool_types
from asgi_surface.codecs.responses.stream import watch
from asgi_surface.codecs.responses.unfold import unfold
from asgi_surface.codecs.responses.verdicts import ROWS
from asgi_surface.codecs.responses.write import unsaid, write
from asgi_surface.surfaces import RESPONSES

CODEC = Codec(
    surface=RESPONSES,
    policy=POLICY,
    required=REQUIRED,
    needs=needs,
    tool_types=tool_types,
    watch=watch,
    document=document,
    error=error,
    error_facts=error_facts,
    envelope={"message": str},
    models=models,
    model=model,
    streaming={"stream": b"true"},
    keepalive=b": keep-alive\n\n",
    rows=ROWS | ANSWER_ROWS,
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
