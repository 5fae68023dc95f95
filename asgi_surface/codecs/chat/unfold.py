"""A Chat Completions document as the stream that the surface would have given: of each choice its role, its message, its finish; the usage, `[DONE]`.

Generic: members that no table knows are told where they stand. Knows nothing of what a message says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from msgspec import Raw

from asgi_surface.codecs import folding
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.members import Members

_EVERYWHERE: Final = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_APART: Final = frozenset({*_EVERYWHERE, "choices", "usage"})
_KIND: Final = folding.raw("chat.completion.chunk")
_IDENTITY: Final = ("id", "type")
_KINDS: Final = ("function", "custom")
_NO_DELTA: Final = Raw(b"{}")


def unfold(body: bytes, written: bytes, context: Context) -> Frames:
    """The chunks, each with the members that all have; what else stands beside the choices comes with the first. Usage is for who asked for it."""
    demanded, said = folding.members(written), folding.members(body)
    document = demanded | said
    wanted = context.request.include_usage
    base = {name: document[name] for name in _EVERYWHERE if name in document} | {"object": _KIND} | ({"usage": folding.NULL} if wanted else {})
    choices = zip_longest(folding.items(said.get("choices", folding.NULL)), folding.items(demanded["choices"]), fillvalue=Raw(b"{}"))
    pairs = ((folding.members(choice), folding.members(other)) for choice, other in choices)
    chunks = [base | {"choices": folding.listed([one])} for choice, other in pairs for one in _choice(choice, other)]
    chunks[0] |= {name: value for name, value in document.items() if name not in _APART}
    if wanted and "usage" in document:
        chunks.append(base | {"choices": folding.listed([]), "usage": document["usage"]})
    return [*((b"", bytes(folding.whole(chunk))) for chunk in chunks), (b"", b"[DONE]")]


def _choice(said: Members, written: Members) -> Iterator[Raw]:
    """The role, the rest of the message with its token entries, and the finish with all else."""
    choice = written | said
    message = {name: value for name, value in folding.members(choice["message"]).items() if bytes(value) != b"null"}
    running = {"index": choice["index"], "logprobs": folding.NULL, "finish_reason": folding.NULL}
    yield folding.whole(running | {"delta": folding.whole({"role": message.pop("role", folding.raw("assistant"))})})
    if "tool_calls" in message:
        calls = (folding.items(one.get("tool_calls", folding.NULL)) for one in (message, folding.members(written["message"])))
        pairs = enumerate(zip_longest(*calls, fillvalue=Raw(b"{}")))
        message["tool_calls"] = folding.listed([_call(place, folding.members(call), folding.members(other)) for place, (call, other) in pairs])
    if message:
        yield folding.whole(running | {"delta": folding.whole(message), "logprobs": choice.get("logprobs", folding.NULL)})
    others = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    yield folding.whole(running | others | {"delta": _NO_DELTA})


def _call(place: int, said: Members, written: Members) -> Raw:
    """A call. Servers leave the id out, or the kind, and some say the arguments as an object: clients need all of it, as a text."""
    told = {name: value for name, value in said.items() if name not in written or bytes(value) not in (b"null", b'""')}
    read = {name: folding.whole(folding.part(told.get(name, folding.NULL)) | folding.members(written[name])) for name in _KINDS if name in written}
    return folding.whole({"index": folding.raw(place)} | {name: written[name] for name in _IDENTITY if name in written} | told | read)
