"""Anthropic Messages."""

from __future__ import annotations

from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.messages.answer import document
from asgi_surface.codecs.messages.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.messages.decode import decoder
from asgi_surface.codecs.messages.encode import encoder
from asgi_surface.codecs.messages.errors import error, error_facts
from asgi_surface.codecs.messages.fields import COUNT_FIELDS, POLICY, REQUIRED
from asgi_surface.codecs.messages.fold import folder
from asgi_surface.codecs.messages.lift import lift
from asgi_surface.codecs.messages.lower import lower
from asgi_surface.codecs.messages.models import model, models
from asgi_surface.codecs.messages.read import read
from asgi_surface.codecs.messages.request import needs, precheck, tool_types
from asgi_surface.codecs.messages.stream import watch
from asgi_surface.codecs.messages.unfold import unfold
from asgi_surface.codecs.messages.verdicts import ROWS
from asgi_surface.codecs.messages.write import unsaid, write
from asgi_surface.surfaces import MESSAGES

# The API refuses a request without a version; a client that names one speaks that version's wire, so its own travels.
CODEC = Codec(
    surface=MESSAGES,
    policy=POLICY,
    required=REQUIRED,
    fixed_headers=(("anthropic-version", "2023-06-01"),),
    count_fields=COUNT_FIELDS,
    precheck=precheck,
    needs=needs,
    tool_types=tool_types,
    watch=watch,
    document=document,
    error=error,
    error_facts=error_facts,
    envelope={"message": str, "type": str},
    models=models,
    model=model,
    streaming={"stream": b"true"},
    keepalive=b'event: ping\ndata: {"type": "ping"}\n\n',
    rows=ROWS | ANSWER_ROWS,
    lift=lift,
    lower=lower,
    read=read,
    write=write,
    unsaid=unsaid,
    decoder=decoder,
    encoder=encoder,
    folder=folder,
    unfold=unfold,
)
