"""A client's request as the planner reads it: the surface, its members, the model asked for, and how the answer is to be framed.

Knows nothing of routes. Pure: bytes and names in, facts or a refusal out.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_plus

import msgspec
from msgspec import Raw, Struct

from asgi_surface import members as m
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.zed.envelope import PLACE, Carried, inside, unwrap
from asgi_surface.errors import Code, RequestError
from asgi_surface.framing import Framing
from asgi_surface.surfaces import GEMINI, ZED, Operation, Surface

_NAME: Final = msgspec.json.Decoder(str)
_FLAG: Final[msgspec.json.Decoder[bool | None]] = msgspec.json.Decoder(bool | None)

Headers = tuple[tuple[bytes, bytes], ...]
Query = tuple[tuple[str, str], ...]
"""A query string's parts: the decoded name, and the part as the client spelled it."""

# Names that carry a client's credential in a query somewhere; none of them may travel.
_CREDENTIALS: Final = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "oauth_token", "token"})
_ALT: Final = frozenset({"alt", "$alt"})
_ALT_FRAMING: Final = {"sse": Framing.SSE, "json": Framing.JSON_ARRAY}


class Inbound(Struct, frozen=True, kw_only=True):
    """One request. `headers` are lower-case pairs as they came; `query` what may travel of the query string.

    One that came in an envelope is the request within; `carried` is what the envelope says beside it.
    """

    surface: Surface
    operation: Operation
    members: m.Members
    body: bytes
    model: str
    stream: bool
    framing: Framing
    query: Query = ()
    headers: Headers = ()
    carried: Carried | None = None


def received(
    surface: Surface,
    operation: Operation,
    body: bytes,
    *,
    model: str | None = None,
    stream: bool | None = None,
    query: str = "",
    headers: Headers = (),
) -> Inbound:
    """Reads a request as it came: out of its envelope where the surface is a carrier. Raises as `read` does."""
    if surface == ZED:
        return _carried(operation, body, headers)
    return read(CODECS[surface], operation, body, model=model, stream=stream, query=query, headers=headers)


def _carried(operation: Operation, body: bytes, headers: Headers) -> Inbound:
    """The request in Zed's envelope. The carrier only streams, whatever the request says; its query is none of the carried surface's."""
    carried, members = unwrap(m.parse(body))
    codec, streams = CODECS[carried.surface], operation is Operation.GENERATE
    try:
        codec.precheck(members)
        _stream(codec, members, streams)
    except RequestError as error:
        raise inside(error) from error
    if streams and "stream" in codec.streaming:
        members = {**members, "stream": Raw(b"true")}
    return Inbound(
        surface=codec.surface,
        operation=operation,
        members=members,
        body=m.encode(members),
        model=carried.model,
        stream=streams,
        framing=Framing.SSE,
        headers=headers,
        carried=carried,
    )


def outward(inbound: Inbound, pointer: str) -> str:
    """A pointer in the words of the client: into its envelope where the request came in one. The model is the envelope's, and so are its ids."""
    carried = inbound.carried
    if carried is None or pointer == "/model" or (pointer[1:] in carried.extras and pointer[1:] not in inbound.members):
        return pointer
    return PLACE + pointer


def read(
    codec: Codec,
    operation: Operation,
    body: bytes,
    *,
    model: str | None = None,
    stream: bool | None = None,
    query: str = "",
    headers: Headers = (),
) -> Inbound:
    """Reads a request. `model` and `stream` are what the path says, where it says so. Raises `RequestError` with the pointer of what is wrong."""
    members = m.parse(body)
    codec.precheck(members)
    parts = tuple((unquote_plus(part.partition("=")[0]), part) for part in query.split("&") if part)
    streams = _stream(codec, members, stream)
    return Inbound(
        surface=codec.surface,
        operation=operation,
        members=members,
        body=body,
        model=_model(members) if model is None else model,
        stream=streams,
        framing=_framing(codec, parts) if streams else Framing.SSE,
        query=_allowed(codec, parts),
        headers=headers,
    )


def _model(members: m.Members) -> str:
    name = m.read(members, "model", _NAME)
    if not name:
        raise RequestError(Code.MALFORMED_BODY, "the body must name a model", pointer="/model")
    return name


def _stream(codec: Codec, members: m.Members, asked: bool | None) -> bool:
    """Whether the answer is to be streamed. Where the path decides, a `stream` member in the body is the policy's business."""
    if codec.model_in_path:
        return bool(asked)
    said = m.read(members, "stream", _FLAG)
    return bool(said)


def _framing(codec: Codec, parts: Query) -> Framing:
    """How a streamed answer is framed: Gemini clients choose with `alt`; without it they get one JSON array."""
    if Framing.JSON_ARRAY not in codec.framings:
        return Framing.SSE
    asked = [unquote_plus(part.partition("=")[2]) for name, part in parts if name in _ALT]
    if len(asked) > 1 or any(value not in _ALT_FRAMING for value in asked):
        raise RequestError(Code.UNSUPPORTED_REQUEST, "`alt` must be given once, as `sse` or `json`")
    return _ALT_FRAMING[asked[0]] if asked else Framing.JSON_ARRAY


def _allowed(codec: Codec, parts: Query) -> Query:
    """What of the query may travel: no credential, and no `alt` of Gemini (the plan writes it)."""
    hidden = _CREDENTIALS | _ALT if codec.surface == GEMINI else _CREDENTIALS
    return tuple(part for part in parts if part[0].lower() not in hidden)
