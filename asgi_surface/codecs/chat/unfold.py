"""A Chat Completions document as the stream that the surface would have given: of each choice its role, its message, its finish; the usage, `[DONE]`.

Generic: members that no table knows are told where they stand. Knows nothing of what a message says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Raw

from asgi_surface.codecs import folding
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.members import Members

_EVERYWHERE: Final = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_APART: Final = frozenset({*_EVERYWHERE, "choices", "usage"})
_KIND: Final = folding.raw("chat.completion.chunk")
_NO_DELTA: Final = Raw(b"{}")


def unfold(body: bytes, written: bytes, context: Context) -> Frames:
    """The chunks, each with the members that all have; what else stands beside the choices comes with the first. Usage is for who asked for it."""
    document = folding.members(written) | folding.members(body)
    wanted = context.request.include_usage
    base = {name: document[name] for name in _EVERYWHERE if name in document} | {"object": _KIND} | ({"usage": folding.NULL} if wanted else {})
    chunks = [base | {"choices": folding.listed([one])} for choice in folding.items(document["choices"]) for one in _choice(folding.members(choice))]
    chunks[0] |= {name: value for name, value in document.items() if name not in _APART}
    if wanted and "usage" in document:
        chunks.append(base | {"choices": folding.listed([]), "usage": document["usage"]})
    return [*((b"", bytes(folding.whole(chunk))) for chunk in chunks), (b"", b"[DONE]")]


def _choice(choice: Members) -> Iterator[Raw]:
    """The role, the rest of the message with its token entries, and the finish with all else."""
    message = {name: value for name, value in folding.members(choice["message"]).items() if bytes(value) != b"null"}
    index = choice.get("index", Raw(b"0"))
    running = {"index": index, "logprobs": folding.NULL, "finish_reason": folding.NULL}
    yield folding.whole(running | {"delta": folding.whole({"role": message.pop("role", folding.raw("assistant"))})})
    if "tool_calls" in message:
        message["tool_calls"] = folding.listed([_numbered(call, place) for place, call in enumerate(folding.items(message["tool_calls"]))])
    if message:
        yield folding.whole(running | {"delta": folding.whole(message), "logprobs": choice.get("logprobs", folding.NULL)})
    others = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    yield folding.whole(running | others | {"delta": _NO_DELTA})


def _numbered(call: Raw, place: int) -> Raw:
    return folding.whole({"index": folding.raw(place)} | folding.members(call))
