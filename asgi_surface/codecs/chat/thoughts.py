"""What an answer, or a piece of one, says of its model's reasoning: the words, and the proofs that OpenRouter and its like put beside them.

A proof goes back to its provider as it came, so its token is the whole detail but for the words. Knows neither answers nor streams as wholes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from asgi_surface.codecs import reading
from asgi_surface.ir import Reasoning, Seal, SealKind
from asgi_surface.surfaces import CHAT

_PROOFS: Final = {"signature": SealKind.SIGNATURE, "data": SealKind.ENCRYPTED}
_WORDS: Final = ("text", "summary")


class Thought(NamedTuple):
    """Words of reasoning, and the proof that ends them. One of kind SIGNATURE proves the words before it, too; another stands for itself."""

    words: str
    seal: Seal | None


class Message(Protocol):
    """A message or a delta, as far as it reasons. Servers disagree about types."""

    reasoning_details: Any
    reasoning_content: Any
    reasoning: Any


def thoughts(message: Message, others: str) -> list[Thought]:
    """The reasoning under the first of its names that has words, else `others`: they carry the same."""
    details = message.reasoning_details if isinstance(message.reasoning_details, list) else ()
    said = [_thought(reading.mapping(detail)) for detail in details]
    if not any(thought.words for thought in said):
        said.insert(0, Thought(reading.string(message.reasoning_content) or reading.string(message.reasoning) or others, None))
    return [thought for thought in said if thought.words or thought.seal]


def _thought(detail: Mapping[str, Any]) -> Thought:
    words = next(filter(None, (reading.string(detail.get(name)) for name in _WORDS)), "")
    kind = next((kind for name, kind in _PROOFS.items() if reading.string(detail.get(name))), None)
    if kind is None:
        return Thought(words, None)
    rest = {name: value for name, value in detail.items() if name not in _WORDS}
    return Thought(words, Seal(msgspec.json.encode(rest).decode(), kind, CHAT))


def parts(message: Message, others: str) -> Iterator[Reasoning]:
    """The same as whole parts."""
    words = ""
    for thought in thoughts(message, others):
        words += thought.words
        if thought.seal is None:
            continue
        if words and thought.seal.kind is not SealKind.SIGNATURE:
            yield Reasoning(words)
            words = ""
        yield Reasoning(words, thought.seal)
        words = ""
    if words:
        yield Reasoning(words)
