"""Content codings, decoded within bounds: one layer of gzip, deflate or zstd, on either side of the gateway.

Knows nothing of HTTP messages. Decoded size is bounded while decoding, so a small body cannot become a large one.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

if sys.version_info >= (3, 14):  # pragma: no cover -- the branch depends on the interpreter
    from compression import zstd
else:  # pragma: no cover -- the branch depends on the interpreter
    from backports import zstd

_STEP: Final = 262_144


class Corrupt(ValueError):
    """The bytes are not what their coding says, or they end too early."""


class TooLarge(ValueError):
    """The decoded body passes its bound."""


class _Engine(Protocol):
    """What zlib's and zstd's decompressors share once wrapped: feed bytes, get at most `_STEP`, ask whether input is left."""

    def step(self, data: bytes) -> bytes: ...

    @property
    def hungry(self) -> bool: ...

    @property
    def eof(self) -> bool: ...


class _Zlib:
    """`deflate` on the web is zlib's format, and from some servers the raw stream: the first byte tells (RFC 9110, 8.4.1.2)."""

    def __init__(self, window: int) -> None:
        self._inflate = zlib.decompressobj(window)

    def step(self, data: bytes) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, _STEP)

    @property
    def hungry(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._inflate.eof


class _Deflate:
    def __init__(self) -> None:
        self._engine: _Zlib | None = None

    def step(self, data: bytes) -> bytes:
        if self._engine is None:
            if not data:
                return b""
            self._engine = _Zlib(zlib.MAX_WBITS if data[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS)
        return self._engine.step(data)

    @property
    def hungry(self) -> bool:
        return self._engine is None or self._engine.hungry

    @property
    def eof(self) -> bool:
        return self._engine is not None and self._engine.eof


class _Zstd:
    def __init__(self) -> None:
        self._engine = zstd.ZstdDecompressor()

    def step(self, data: bytes) -> bytes:
        return self._engine.decompress(data, _STEP)

    @property
    def hungry(self) -> bool:
        return self._engine.needs_input or self._engine.eof

    @property
    def eof(self) -> bool:
        return self._engine.eof


_ENGINES: Final[dict[bytes, Callable[[], _Engine]]] = {
    b"gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    b"x-gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    b"deflate": _Deflate,
    b"zstd": _Zstd,
}


class Decoder:
    """Decodes one body. `limit` bounds the decoded bytes of the whole body; None leaves that to the caller."""

    def __init__(self, engine: _Engine, limit: int | None) -> None:
        self._engine = engine
        self._limit = limit
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """The bytes that `data` decodes to. Raises `Corrupt` and `TooLarge`."""
        return b"".join(self.pieces(data))

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The same a piece at a time, none decoded before it is asked for: a small body may hold a large one. Raises as `feed` does."""
        yield self._step(data)
        while not self._engine.hungry:
            yield self._step(b"")

    def _step(self, data: bytes) -> bytes:
        if self._engine.eof:
            return b""
        try:
            piece = self._engine.step(data)
        except (zlib.error, zstd.ZstdError):
            raise Corrupt from None
        self._size += len(piece)
        if self._limit is not None and self._size > self._limit:
            raise TooLarge
        return piece

    def eof(self) -> None:
        """Says that the coded body has ended. Raises `Corrupt` when it was cut."""
        if not self._engine.eof:
            raise Corrupt


def decoder(coding: bytes, limit: int | None = None) -> Decoder | None:
    """A decoder for the value of a `content-encoding` header; None for no coding. Raises `KeyError` for a coding (or a chain) not known here."""
    names = [name.strip().lower() for name in coding.split(b",")]
    named = [name for name in names if name not in (b"", b"identity")]
    if not named:
        return None
    engine = _ENGINES[named[0] if len(named) == 1 else b","]
    return Decoder(engine(), limit)
