"""Content codings are decoded one layer deep and within bounds."""

from __future__ import annotations

import gzip
import sys
import zlib

import pytest

from asgi_surface.codings import Corrupt, TooLarge, decoder

if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:  # pragma: no cover
    from backports import zstd


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


CODINGS = [(b"gzip", gzip.compress), (b"X-Gzip", gzip.compress), (b"deflate", zlib.compress), (b"deflate", raw_deflate), (b"zstd", zstd.compress)]
DATA = b'{"text":"' + b"abc " * 200_000 + b'"}'


@pytest.mark.parametrize(("name", "squeeze"), CODINGS)
@pytest.mark.parametrize("step", [1, 7, 10_000_000])
def test_a_coded_body_is_read_in_any_pieces(name, squeeze, step):
    coded, unpack = squeeze(DATA), decoder(name, len(DATA))
    assert b"".join(unpack.feed(coded[at : at + step]) for at in range(0, len(coded), step)) == DATA
    unpack.eof()


@pytest.mark.parametrize(("name", "squeeze"), CODINGS)
def test_a_bomb_stops_at_the_bound(name, squeeze):
    with pytest.raises(TooLarge):
        decoder(name, 300_000).feed(squeeze(b"\0" * 50_000_000))


@pytest.mark.parametrize(("name", "squeeze"), CODINGS)
def test_a_cut_body_is_corrupt(name, squeeze):
    unpack = decoder(name)
    unpack.feed(squeeze(DATA)[:-3])
    with pytest.raises(Corrupt):
        unpack.eof()


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"zstd"])
def test_other_bytes_are_corrupt(name):
    with pytest.raises(Corrupt):
        decoder(name).feed(b"\x08nothing of the kind, at all")


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"zstd"])
def test_an_empty_body_is_a_cut_one(name):
    unpack = decoder(name)
    assert unpack.feed(b"") == b""
    with pytest.raises(Corrupt):
        unpack.eof()


@pytest.mark.parametrize("name", [b"", b"identity", b" Identity , identity"])
def test_no_coding_needs_no_decoder(name):
    assert decoder(name) is None


@pytest.mark.parametrize("name", [b"br", b"gzip, zstd", b"gzip,gzip", b"x"])
def test_other_codings_are_not_known(name):
    with pytest.raises(KeyError):
        decoder(name)


def test_what_follows_the_end_is_ignored():
    unpack = decoder(b"zstd")
    assert unpack.feed(zstd.compress(b"a")) + unpack.feed(b"more") == b"a"
