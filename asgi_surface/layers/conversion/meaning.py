"""How an answer is said in the client's surface: which observer, translation or fold a stream gets, and a JSON answer read and written anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from asgi_surface.assembly import Fold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, Context
from asgi_surface.errors import Code, ErrorFacts, RequestError, UpstreamDetail, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Request, Response, Stop
from asgi_surface.layers.exchange import Exchange
from asgi_surface.members import parse
from asgi_surface.plans import Convert
from asgi_surface.refusals import scrub_data
from asgi_surface.stream import Passage
from asgi_surface.translation import Translation
from asgi_surface.verdicts import Verdict


def reader(exchange: Exchange) -> Codec:
    """The codec of the upstream's surface."""
    return CODECS[exchange.planned().upstream_surface]


Blame = Callable[[ErrorFacts], UpstreamError]
"""Makes the client's error of one that an upstream states inside a 200 answer."""


def passage(exchange: Exchange, blame: Blame, secrets: Sequence[str]) -> Passage | Translation:
    """What stands between the upstream's stream and the client's: an observer where the surfaces match, else a translation."""
    plan, codec = exchange.planned(), exchange.codec
    if isinstance(plan.mode, Convert):
        return translation(exchange, blame, plan.upstream_framing)
    return Passage(
        codec.watch(),
        plan.framing,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        eof_ends=codec.eof_ends,
        request_id=exchange.request_id,
        scrub=lambda data: scrub_data(data, secrets),
    )


def translation(exchange: Exchange, blame: Blame, framing: Framing) -> Translation:
    """Frames of the upstream's surface, in whatever framing they come, to frames of the client's."""
    plan, codec = exchange.planned(), reader(exchange)
    return Translation(
        codec.decoder(),
        exchange.codec.encoder(context(exchange)),
        upstream=framing,
        downstream=plan.framing,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        eof_ends=codec.eof_ends,
        blame=blame,
    )


def fold(exchange: Exchange, blame: Blame, framing: Framing) -> Translation:
    """Frames of the upstream's surface to one JSON answer of the client's."""
    plan, codec = exchange.planned(), reader(exchange)
    return Translation(
        codec.decoder(),
        Fold(lambda response: _folded(exchange, response)),
        upstream=framing,
        downstream=None,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        eof_ends=codec.eof_ends,
        blame=blame,
    )


def _folded(exchange: Exchange, response: Response) -> bytes:
    exchange.unsaid = exchange.codec.unsaid(response)
    return exchange.codec.write(response, context(exchange))


def answered(exchange: Exchange, body: bytes) -> Response:
    """A JSON answer, read. Raises `ValueError` when text, calls or end cannot be read, `UpstreamError` when the client may not lose what it holds."""
    response = reader(exchange).read(body)
    if response.stop is Stop.ERROR:
        raise UpstreamError(Code.UPSTREAM_ERROR, "the model broke off with an error")
    exchange.unsaid = (*unsaid(exchange, response.unread), *exchange.codec.unsaid(response))
    return response


def said(exchange: Exchange, body: bytes) -> bytes:
    """A JSON answer as the client's surface says it; the same bytes in native mode. Raises as `answered` does."""
    if not isinstance(exchange.planned().mode, Convert):
        return body
    return exchange.codec.write(answered(exchange, body), context(exchange))


def context(exchange: Exchange) -> Context:
    """What writing an answer needs to know of the request. A native one was never lifted; for its echo it is lifted now, as far as it can be."""
    plan, draft = exchange.planned(), exchange.drafted()
    return Context(
        request=draft.request or _lifted(exchange.codec, draft.body, stream=plan.stream),
        aliases=draft.aliases,
        seal_domain=draft.seal_domain,
        upstream=plan.upstream_surface,
        model=plan.model,
        request_id=exchange.request_id,
        now=int(time.time()),
    )


def _lifted(codec: Codec, body: bytes, *, stream: bool) -> Request:
    try:
        return codec.lift(parse(body), stream).request
    except RequestError:
        return Request(turns=(), stream=stream)


def unsaid(exchange: Exchange, names: Sequence[str]) -> tuple[str, ...]:
    """The constructs of the answer that the client does not get, by name. One that may not be lost makes the answer a failure."""
    plan = exchange.planned()
    if plan.upstream_surface == plan.downstream_surface:
        return tuple(names)
    rows = reader(exchange).rows
    refused = [name for name in names if rows[name].verdicts[plan.downstream_surface] is Verdict.REFUSED]
    if refused:
        raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, f"{plan.downstream_surface} cannot say `{refused[0]}` of the upstream's answer")
    return tuple(names)


def in_own_words(exchange: Exchange, error: UpstreamError) -> UpstreamError:
    """An upstream's error for a client of another surface: message and machine-readable code stay, its types and parameters mean nothing."""
    if not isinstance(exchange.planned().mode, Convert):
        return error
    detail = UpstreamDetail(code=error.detail.code)
    return UpstreamError(error.code, error.message, status=error.status, headers=error.headers, detail=detail)
