"""OpenAI Chat Completions."""

from __future__ import annotations

from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.chat.answer import document
from asgi_surface.codecs.chat.decode import decoder
from asgi_surface.codecs.chat.encode import encoder
from asgi_surface.codecs.chat.errors import error, error_facts
from asgi_surface.codecs.chat.fields import POLICY, REQUIRED
from asgi_surface.codecs.chat.fold import folder
from asgi_surface.codecs.chat.lift import lift
from asgi_surface.codecs.chat.lower import lower
from asgi_surface.codecs.chat.models import model, models
from asgi_surface.codecs.chat.read import read
from asgi_surface.codecs.chat.request import needs, tool_types
from asgi_surface.codecs.chat.stream import watch
from asgi_surface.codecs.chat.unfold import unfold
from asgi_surface.codecs.chat.verdicts import ROWS
from asgi_surface.codecs.chat.write import unsaid, write
from asgi_surface.surfaces import CHAT

# `[DONE]` is a custom that not every server keeps, so the end of a whole body ends a finished answer too. Comments are what the API itself sends.
CODEC = Codec(
    surface=CHAT,
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
    eof_ends=True,
    streaming={"stream": b"true", "stream_options": b'{"include_usage":true}'},
    keepalive=b": keep-alive\n\n",
    rows=ROWS,
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
