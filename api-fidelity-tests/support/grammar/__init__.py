"""The grammar of each surface's streams, by the wire's own rules; what breaks one is a `Violation` that names it. Shares nothing with the package.

Two levels: `relayed` for a provider's own bytes, which may be odd but end once, at their end; and `written` for what a gateway says in its own words
(converted, unfolded, stitched, errors), which has no excuse for anything. No null stands where the real API has none.
"""

from __future__ import annotations

from collections.abc import Callable

from grammar import chat, frames, gemini, messages, responses
from grammar.frames import Grammar, Violation
from grammar.nulls import CHAT, GEMINI, MESSAGES, NULLS, RESPONSES, null_free

__all__ = ["CHAT", "GEMINI", "MESSAGES", "NULLS", "RESPONSES", "Violation", "check"]

_RELAYED: dict[str, Callable[..., Grammar]] = {
    CHAT: chat.Relayed,
    RESPONSES: responses.Relayed,
    MESSAGES: messages.Relayed,
    GEMINI: gemini.Relayed,
}
_WRITTEN: dict[str, Callable[..., Grammar]] = {
    CHAT: chat.Written,
    RESPONSES: responses.Written,
    MESSAGES: messages.Written,
    GEMINI: gemini.Written,
}


def check(
    surface: str,
    body: bytes,
    *,
    array: bool = False,
    relayed: bool = False,
    whole: bool = True,
    sound: bool = True,
    usage: bool | None = None,
) -> None:
    """Holds what a client got against its surface's grammar.

    `array`: Gemini's other stream; `relayed`: a provider's own bytes; not `whole`: the client left before the end; not `sound`: an encoder was told
    parts and an ending that are no answer together. `usage` says whether a Chat client asked for it. Raises `Violation`.
    """
    read = frames.elements if array else frames.relayed if relayed else frames.written
    facts = {} if relayed else {"sound": sound, **({"usage": usage} if surface == CHAT else {})}
    grammar = (_RELAYED if relayed else _WRITTEN)[surface](**facts)
    for frame in read(body, whole=whole):
        if not relayed and frame.event != frames.DONE:
            null_free(surface, frame.event)
        grammar.take(frame)
    if whole:
        grammar.end()
