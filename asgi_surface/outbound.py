"""What a planned request looks like on the wire apart from its body: model name, request target and headers, built from nothing but declarations.

Pure. Knows nothing of how a binding was chosen.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote

from asgi_surface import members as m
from asgi_surface.catalog import Binding, Route
from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.zed.envelope import wrap
from asgi_surface.codecs.zed.fields import ENVELOPE
from asgi_surface.errors import Code, RequestError
from asgi_surface.framing import Framing
from asgi_surface.inbound import Inbound
from asgi_surface.names import fits
from asgi_surface.policy import gate
from asgi_surface.surfaces import Operation
from asgi_surface.version import __version__

Headers = tuple[tuple[str, str], ...]

_ASKED: Final = "{model}"
_TRUSTED: Final = "/-._~:@!$'()*+,;="  # what an operator's own model name may hold in a path
_METHOD: Final = {
    (Operation.GENERATE, False): "generateContent",
    (Operation.GENERATE, True): "streamGenerateContent",
    (Operation.COUNT_TOKENS, False): "countTokens",
}
_STREAMS: Final = {"always": True, "never": False}
_COUNT: Final = "/count_tokens"
# What Zed says of itself: that it reads status lines, and that the last of them ends an answer.
_READS_STATUS: Final = (
    ("x-zed-client-supports-status-messages", "true"),
    ("x-zed-client-supports-stream-ended-request-completion-status", "true"),
)


def upstream_model(route: Route, asked: str) -> str:
    """The name the upstream knows. A route that passes names on cannot be asked by its own id: the upstream has never heard of it."""
    if route.upstream_model != _ASKED:
        return route.upstream_model
    if not any(fits(pattern, asked) for pattern in route.models):
        raise RequestError(Code.UNKNOWN_MODEL, "the route passes on the model's name, so it must be asked by one of its models")
    return asked


def upstream_stream(inbound: Inbound, binding: Binding) -> bool:
    """Whether the upstream is asked to stream: as the client asked, unless the binding says that its upstream only or never does. Zed only does."""
    generates = inbound.operation is Operation.GENERATE
    return _STREAMS.get(binding.dialect.stream or "", inbound.stream or binding.carrier is not None) if generates else False


def target(codec: Codec, inbound: Inbound, binding: Binding, route: Route, model: str) -> str:
    """The request target below the provider's base URL. A name that a client chose is one path segment, whatever it holds.

    `codec` is the upstream's. Only a client of the same surface has a query that means something there.
    """
    path = binding.path
    if binding.carrier is not None:
        path = path.rpartition("/")[0] + _COUNT if inbound.operation is Operation.COUNT_TOKENS else path
    elif codec.model_in_path:
        name = quote(model, safe="" if route.upstream_model == _ASKED else _TRUSTED)
        if name in (".", ".."):
            raise RequestError(Code.UNKNOWN_MODEL, "no route serves this model")
        path = path.replace("{model}", name).replace("{method}", _METHOD[inbound.operation, upstream_stream(inbound, binding)])
    elif inbound.operation is Operation.COUNT_TOKENS:
        path += _COUNT
    query = _query(codec, inbound, binding)
    return f"{path}?{query}" if query else path


def enveloped(inbound: Inbound, binding: Binding, model: str, members: m.Members) -> tuple[m.Members, tuple[str, ...]]:
    """The body's members as the upstream gets them, in an envelope where it is a carrier, and the pointers of what the envelope's policy dropped.

    A Zed client's ids go along. Raises `RequestError` where the policy rejects one of them.
    """
    provider = binding.dialect.zed_provider
    if binding.envelope is None or provider is None:
        return members, ()
    extras = inbound.carried.extras if inbound.carried else {}
    counting = inbound.operation is Operation.COUNT_TOKENS
    gated = gate(wrap(provider, model, members, extras), binding.envelope, ENVELOPE, binding.features, counting=counting)
    return gated.members, gated.dropped


def _query(codec: Codec, inbound: Inbound, binding: Binding) -> str:
    """The client's query in its own spelling, then what the route file adds; the route file's value of a name stands alone."""
    added = dict(binding.query)
    if binding.carrier is not None:
        return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in added.items())
    if codec.model_in_path and upstream_stream(inbound, binding) and upstream_framing(codec, inbound) is Framing.SSE:
        added["alt"] = "sse"
    own = inbound.query if inbound.surface == codec.surface else ()
    parts = [part for name, part in own if name not in added]
    parts += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in added.items()]
    return "&".join(parts)


def upstream_framing(codec: Codec, inbound: Inbound) -> Framing:
    """How the upstream is asked to frame a stream: as the client asked on its own surface, else as events."""
    return inbound.framing if inbound.surface == codec.surface else Framing.SSE


def headers(codec: Codec, inbound: Inbound, binding: Binding) -> Headers:
    """All outbound headers but the credential: the fixed set, the upstream surface's own, and what the policy lets through.

    A client's version of a surface's own header counts only when it speaks that surface. A carried surface has no headers.
    """
    if binding.envelope is not None:
        stating = _READS_STATUS if inbound.operation is Operation.GENERATE else ()
        return (*_fixed("*/*"), *stating, *_own(inbound, binding.envelope.headers))
    passing = binding.policy.headers | ({name for name, _ in codec.fixed_headers} if inbound.surface == codec.surface else frozenset())
    own = _own(inbound, passing)
    said = {name for name, _ in own}
    streams = upstream_stream(inbound, binding) and upstream_framing(codec, inbound) is Framing.SSE
    accepted = "text/event-stream" if streams else "application/json"
    return (*_fixed(accepted), *(pair for pair in codec.fixed_headers if pair[0] not in said), *own)


def _fixed(accepted: str) -> Headers:
    return (
        ("content-type", "application/json"),
        ("accept", accepted),
        ("accept-encoding", "identity"),
        ("user-agent", f"asgi_surface/{__version__}"),
    )


def _own(inbound: Inbound, passing: Collection[str]) -> Headers:
    """The client's headers that may pass."""
    return tuple((name.decode(), _printable(name, value)) for name, value in inbound.headers if name.decode("latin-1") in passing)


def _printable(name: bytes, value: bytes) -> str:
    """A header value that may leave: visible ASCII and spaces, so that nothing can be smuggled into the head."""
    text = value.decode("latin-1").strip()
    if not (text.isascii() and text.isprintable()):
        raise RequestError(Code.UNSUPPORTED_REQUEST, f"the header `{name.decode()}` has characters that cannot be sent on")
    return text
