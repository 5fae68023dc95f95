"""The envelope around another surface's request: which one it carries, taking it out, putting it in.

Pure. Knows nothing of what the carried request says, but for the model that both name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface import members as m
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface

INNER: Final[dict[str, Surface]] = {"anthropic": MESSAGES, "open_ai": RESPONSES, "google": GEMINI, "x_ai": CHAT, "baseten": CHAT}
"""Zed's word for a provider, and the surface of the request and of the events that travel under it."""

PROVIDERS: Final[dict[Surface, str]] = {MESSAGES: "anthropic", RESPONSES: "open_ai", GEMINI: "google", CHAT: "x_ai"}
"""The word under which a surface is offered to Zed."""

REQUEST: Final = "provider_request"
PLACE: Final = m.token(REQUEST)
"""Where the carried request stands: what a pointer into it begins with."""

# Zed omits an id that it has not; only older releases send an intent and a mode ("normal" or "max").
_EXTRAS: Final = ("thread_id", "prompt_id", "intent", "mode")
_TAKEN: Final = frozenset({*_EXTRAS, "provider", "model", REQUEST})
_NAME: Final = msgspec.json.Decoder(str)
_WORD: Final[msgspec.json.Decoder[str | None]] = msgspec.json.Decoder(str | None)
_API_NAME: Final = "models/"  # how Gemini's API spells a model's name in a body


class Carried(Struct, frozen=True):
    """What an envelope says beside the request in it. `extras` holds `thread_id`, `prompt_id`, `intent` and `mode`, as far as they were said."""

    provider: str
    model: str
    extras: Mapping[str, Raw] = {}

    @property
    def surface(self) -> Surface:
        """The surface of the carried request."""
        return INNER[self.provider]


def unwrap(members: m.Members) -> tuple[Carried, m.Members]:
    """What the envelope says, and the members of the request in it, which names the envelope's model (Gemini's, whose path says it, names none).

    Raises `RequestError`: the envelope is strict, so that nothing is lost in silence, and the two must not name different models.
    """
    for name in members:
        if name not in _TAKEN:
            raise RequestError(Code.FIELD_REJECTED, "Zed's envelope has no such member", pointer=m.token(name))
    extras = {name: members[name] for name in _EXTRAS if m.read(members, name, _WORD) is not None}
    provider, model = _named(members, "provider"), _named(members, "model")
    if provider not in INNER:
        raise RequestError(Code.FIELD_REJECTED, f"the provider is none of {', '.join(INNER)}", pointer="/provider")
    carried = Carried(provider, model, extras)
    return carried, _agreeing(carried, _request(members))


def _named(members: m.Members, name: str) -> str:
    said = m.read(members, name, _NAME)
    if not said:
        raise RequestError(Code.MALFORMED_BODY, f"the envelope must name a {name}", pointer=m.token(name))
    return said


def _request(members: m.Members) -> m.Members:
    if REQUEST not in members:
        raise RequestError(Code.MALFORMED_BODY, "the envelope carries no request", pointer=PLACE)
    try:
        return m.parse(bytes(members[REQUEST]))
    except RequestError as error:
        raise inside(error) from error


def _agreeing(carried: Carried, inner: m.Members) -> m.Members:
    """The request with the envelope's model. One that names another is refused: the policy and the upstream could read it differently."""
    in_path = carried.surface == GEMINI
    try:
        said = m.read(inner, "model", _NAME)
    except RequestError as error:
        raise inside(error) from error
    if said is not None and _bare(said, prefixed=in_path) != _bare(carried.model, prefixed=in_path):
        raise RequestError(Code.FIELD_REJECTED, "the request names another model than its envelope", pointer=f"{PLACE}/model")
    if in_path:
        return {name: raw for name, raw in inner.items() if name != "model"}
    return inner if said is not None else {"model": Raw(msgspec.json.encode(carried.model)), **inner}


def _bare(name: str, *, prefixed: bool) -> str:
    return name.removeprefix(_API_NAME) if prefixed else name


def inside(error: RequestError) -> RequestError:
    """The error with its pointer, which leads into the carried request, in the words of a client that sent the envelope."""
    error.pointer = PLACE + (error.pointer or "")
    return error


def wrap(provider: str, model: str, inner: m.Members, extras: Mapping[str, Raw]) -> m.Members:
    """The envelope around a request for `provider`. `model` is the upstream's name; Gemini's request, whose path cannot say it, says it too."""
    if INNER[provider] == GEMINI:
        inner = {"model": _json(_API_NAME + model.removeprefix(_API_NAME)), **inner}
    return {**extras, "provider": _json(provider), "model": _json(model), REQUEST: Raw(m.encode(inner))}


def _json(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))
