"""Undoes the content-encoding of an upstream's answer. Knows nothing of what the bytes say."""

from __future__ import annotations

from collections.abc import Iterator

from asgi_surface.codings import Corrupt, decoder
from asgi_surface.errors import Code, UpstreamError


class Unpacking:
    """One answer's body, from the value of its `content-encoding` header. Nothing bounds what comes out: its reader does.

    Raises `UpstreamError` for a coding that was not asked for.
    """

    def __init__(self, coding: bytes = b"") -> None:
        try:
            self._decoder = decoder(coding)
        except KeyError:
            raise _bad("the upstream's answer is encoded in a way that was not asked for") from None

    @property
    def packed(self) -> bool:
        """Whether much may come out of little."""
        return self._decoder is not None

    def pieces(self, data: bytes, *, last: bool) -> Iterator[bytes]:
        """What `data` holds, a piece at a time; `last` says that the body ends with it. Raises `UpstreamError` when it is not what was said."""
        if self._decoder is None:
            yield data
            return
        try:
            yield from self._decoder.pieces(data)
            if last:
                self._decoder.eof()
        except Corrupt:
            raise _bad("the upstream's answer is not what its content-encoding says") from None


def _bad(text: str) -> UpstreamError:
    return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, text)
