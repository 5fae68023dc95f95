"""The smallest files that a model can be shown: a picture of one colour, a page with one word, a moment of silence. Made, not kept, so that each
can be read. Knows nothing of models or wires.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

COLOUR: Final = "red"
"""What the picture shows."""
WORD: Final = "violet"
"""What the page says."""

# One pixel would do, but some models' image readers refuse what is smaller than one of their patches (28 pixels).
_SIDE: Final = 64
_RED: Final = b"\xff\x00\x00"
_RATE: Final = 8_000  # samples a second, a byte each: half a second below


def png() -> str:
    """A red square, in base64."""
    row = b"\x00" + _RED * _SIDE
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(row * _SIDE)), _chunk(b"IEND", b""))
    return _base64(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pdf() -> str:
    """A page that says `WORD`, in base64."""
    text = f"BT /F1 24 Tf 40 100 Td ({WORD}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    body, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, table, size, len(body))
    return _base64(body + end)


def wav() -> str:
    """Half a second of silence, in base64."""
    data = b"\x80" * (_RATE // 2)
    form = struct.pack("<HHIIHH", 1, 1, _RATE, _RATE, 1, 8)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return _base64(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
