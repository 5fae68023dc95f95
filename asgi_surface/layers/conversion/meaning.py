"""How an answer is said in the client's surface: which observer, translation or fold a stream gets, and a JSON answer read and written anew."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from asgi_surface import soundness
from asgi_surface.assembly import Fold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, Context, Encoder, Folder
from asgi_surface.crossing import Listening, Whole
from asgi_surface.errors import Code, ErrorFacts, RequestError, UpstreamDetail, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.gauge import gauge
from asgi_surface.ir import Request, Response
from asgi_surface.layers.exchange import Exchange
from asgi_surface.members import parse
from asgi_surface.plans import Convert
from asgi_surface.refusals import scrub_data
from asgi_surface.stream import Passage
from asgi_surface.translation import Translation, failure
from asgi_surface.verdicts import Verdict

_SAID: Final = frozenset({Verdict.EXACT, Verdict.EMULATED})


def reader(exchange: Exchange) -> Codec:
    """The codec of the upstream's surface."""
    return CODECS[exchange.planned().upstream_surface]


Blame = Callable[[ErrorFacts], UpstreamError]
"""Makes the client's error of one that an upstream states inside a 200 answer."""


def native(exchange: Exchange) -> bool:
    """Whether the answer stays in its surface's words, on whatever transport. Of an answer of several rounds no round is the client's own."""
    return not isinstance(exchange.planned().mode, Convert) and exchange.session is None


def passage(exchange: Exchange, blame: Blame, secrets: Sequence[str], framing: Framing) -> Passage | Translation:
    """What stands between the upstream's stream, framed so, and the client's: an observer where the surfaces match, else a translation."""
    plan, codec = exchange.planned(), exchange.codec
    if not native(exchange):
        return translation(exchange, blame, framing)
    return Passage(
        codec.watch(),
        plan.framing,
        upstream=framing,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        gauge=gauge(plan.limits),
        eof_ends=codec.eof_ends,
        request_id=exchange.request_id,
        scrub=lambda data: scrub_data(data, secrets),
    )


def translation(exchange: Exchange, blame: Blame, framing: Framing) -> Translation:
    """Frames of the upstream's surface, in whatever framing they come, to frames of the client's."""
    return _translation(exchange, blame, framing, exchange.codec.encoder(context(exchange)))


def unfolded(exchange: Exchange, blame: Blame, body: bytes, response: Response) -> Translation:
    """What says a JSON answer, read as `response`, as the client's stream. Raises `UpstreamError` for one of odd parts that cannot be told."""
    said, codec = context(exchange), exchange.codec
    encoder = codec.encoder(said)
    if native(exchange):
        try:
            encoder = Whole(codec.unfold(body, codec.write(response, said), said), encoder)
        except ValueError:
            raise failure(Code.UPSTREAM_BAD_RESPONSE) from None
    return _translation(exchange, blame, Framing.SSE, encoder)


def _translation(exchange: Exchange, blame: Blame, framing: Framing, encoder: Encoder) -> Translation:
    plan, codec = exchange.planned(), reader(exchange)
    return Translation(
        codec.decoder(),
        encoder,
        upstream=framing,
        downstream=plan.framing,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        gauge=gauge(plan.limits),
        eof_ends=codec.eof_ends,
        blame=blame,
    )


def fold(exchange: Exchange, blame: Blame, framing: Framing) -> Translation:
    """Frames of the upstream's surface to one JSON answer of the client's."""
    plan, codec = exchange.planned(), reader(exchange)
    folder = codec.folder() if native(exchange) else None
    decoder = codec.decoder()
    return Translation(
        decoder if folder is None else Listening(decoder, folder, plan.limits.response_bytes),
        Fold(lambda response: _folded(exchange, response, folder)),
        upstream=framing,
        downstream=None,
        event_bytes=plan.limits.event_bytes,
        output_chars=plan.limits.output_chars,
        gauge=gauge(plan.limits),
        eof_ends=codec.eof_ends,
        blame=blame,
    )


def _folded(exchange: Exchange, response: Response, folder: Folder | None) -> bytes:
    said = context(exchange)
    written = exchange.codec.write(response, said)
    document = written if folder is None else folder.document(written)
    exchange.unsaid = tuple(sorted(exchange.codec.unsaid(response, said) if folder is None else folder.unsaid))
    return document


def answered(exchange: Exchange, body: bytes) -> Response:
    """A JSON answer, read. Raises `ValueError` when text, calls or end cannot be read, `UpstreamError` when it is none."""
    response = reader(exchange).read(body)
    if (flaw := soundness.flaw(response)) is not None:
        raise flaw
    if not native(exchange):
        exchange.unsaid = counted(lost(exchange, response.unread), exchange.codec.unsaid(response, context(exchange)))
    return response


def counted(*names: Iterable[str]) -> tuple[str, ...]:
    """What the client did not get, each once."""
    return tuple(dict.fromkeys(itertools.chain(*names)))


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
        stream=plan.stream,
    )


def _lifted(codec: Codec, body: bytes, *, stream: bool) -> Request:
    try:
        return codec.lift(parse(body), stream).request
    except RequestError:
        return Request(turns=(), stream=stream)


def lost(exchange: Exchange, names: Iterable[str]) -> tuple[str, ...]:
    """Which of these constructs, that were not read, the client misses: on its own surface all of them, on another what is not said otherwise."""
    rows, told = reader(exchange).rows, exchange.planned().downstream_surface
    return tuple(name for name in names if rows[name].verdicts.get(told) not in _SAID)


def in_own_words(exchange: Exchange, error: UpstreamError) -> UpstreamError:
    """An upstream's error for a client of another surface: message and machine-readable code stay, its types and parameters mean nothing."""
    if not isinstance(exchange.planned().mode, Convert):
        return error
    detail = UpstreamDetail(code=error.detail.code)
    return UpstreamError(error.code, error.message, status=error.status, headers=error.headers, detail=detail)
