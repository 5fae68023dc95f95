"""What leaves towards Zed: the carried surface's stream as JSON lines with one terminal, and its count of tokens.

No I/O. Knows what a frame means only through the carried surface's `Watch`. Imports `refusals`, so the registry of codecs cannot import it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import msgspec

from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.reading import decode
from asgi_surface.codecs.zed.errors import failed
from asgi_surface.errors import Code, ErrorFacts, GatewayError, UpstreamError
from asgi_surface.framing import Frame, Framing, splitter
from asgi_surface.lifecycle import Action, Kind, Lifecycle, State
from asgi_surface.members import Members
from asgi_surface.refusals import in_answer
from asgi_surface.surfaces import GEMINI, MESSAGES, Surface

HEADERS: Final = ((b"content-type", b"application/x-ndjson"), (b"x-zed-server-supports-status-messages", b"true"))
"""What the head says of such a body. The second header, by being there, tells the client that every line is wrapped."""

_ENDED: Final = b'{"status":"stream_ended"}\n'
# Chat's last frame, as its SDK knows it. It is no JSON, and Zed's client reads nothing else.
_DONE: Final = b"[DONE]"
_COUNTED: Final[dict[Surface, str]] = {MESSAGES: "input_tokens", GEMINI: "totalTokens"}
_MEMBERS: Final = msgspec.json.Decoder(Members)
_NUMBER: Final = msgspec.json.Decoder(int)


class JsonLines:
    """One answer, an event a line: SSE of the carried surface in, in any pieces; whole lines out.

    Zed's client parses every line strictly, and reads on after a terminal, so nothing else is ever written: no comment, no blank line, no `[DONE]`,
    one terminal last. A frame by which the answer fails is no event but the status `failed`. `error` gives the gateway's own fault, if it knows one.
    """

    def __init__(self, codec: Codec, request_id: str, error: Callable[[], GatewayError | None]) -> None:
        self._watch = codec.watch()
        self._end_of_body = Kind.EOF if codec.eof_ends else Kind.FAULT
        self._request_id = request_id
        self._error = error
        self._splitter = splitter(Framing.SSE, sys.maxsize)  # the frames have been bounded where they came from
        self._life = Lifecycle()

    def feed(self, body: bytes, *, last: bool) -> bytes:
        """The lines to send now; with the `last` piece the terminal, unless the answer has failed before."""
        lines = b"".join(map(self._line, self._splitter.feed(body)))
        return lines + self._end() if last else lines

    def _line(self, frame: Frame) -> bytes:
        if not frame.data:
            return b""
        action = self._life.step(Kind.START if self._life.state is State.NEW else Kind.PART)
        for signal in self._watch.see(frame).signals:
            if self._life.step(signal.kind) is Action.FAIL:
                return self._failed(signal.fault)
        silent = action is Action.DROP or frame.data.startswith(_DONE)
        return b"" if silent else b'{"event":' + _flat(frame.data) + b"}\n"

    def _end(self) -> bytes:
        if self._life.step(self._end_of_body) is Action.FAIL:
            return self._failed(None)
        return _ENDED if self._life.state is State.DONE else b""

    def _failed(self, facts: ErrorFacts | None) -> bytes:
        """The terminal of a failure. What an upstream said itself tells more than that it failed."""
        known = self._error()
        if facts is not None and (known is None or known.code is Code.UPSTREAM_ERROR):
            known = in_answer(facts, (), secrets=(), keep_529=True)  # whoever passed the frame on has taken the secrets out
        known = known or UpstreamError(Code.UPSTREAM_TRUNCATED, "the answer ended before it was finished")
        return b'{"status":' + failed(known, self._request_id) + b"}\n"


def _flat(data: bytes) -> bytes:
    """JSON on one line: line breaks between its tokens came from an event of several data lines."""
    return msgspec.json.format(data, indent=-1) if b"\n" in data else data


class Count:
    """A count of tokens: the carried surface's document in, `{"tokens": n}` out."""

    def __init__(self, surface: Surface) -> None:
        self._name = _COUNTED[surface]
        self._body = b""

    def feed(self, body: bytes, *, last: bool) -> bytes:
        """The document once it is whole. Raises `UpstreamError` for one that does not say the number."""
        self._body += body
        return self._said() if last else b""

    def _said(self) -> bytes:
        try:
            tokens = decode(_NUMBER, bytes(decode(_MEMBERS, self._body)[self._name]))
        except (ValueError, KeyError):
            raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream's answer does not say how many tokens it counted") from None
        return msgspec.json.encode({"tokens": tokens})
