"""The texts of a model's turns, put together from their pieces. Knows no other part.

A stream tells a text in pieces, and clients send them back as they came: as parts of one content, or each in a content of its own (google-genai's
chats). Google's SDKs read them as one text; elsewhere each would be a paragraph or a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from asgi_surface import ir


def whole(turns: Iterable[ir.Turn]) -> Iterator[ir.Turn]:
    """The turns, each text of the model's where its first piece stood. Whatever stands between two texts keeps them apart, a token as well."""
    for by_model, run in groupby(turns, key=lambda turn: turn.role is ir.Role.ASSISTANT):
        said = tuple(run)
        yield from _joined(said) if by_model else said


def _joined(run: Sequence[ir.Turn]) -> Iterator[ir.Turn]:
    told: list[list[list[ir.Part]]] = [[] for _ in run]
    order: list[list[ir.Part]] = []
    for turn, own in zip(run, told, strict=True):
        for part in turn.parts:
            if isinstance(part, ir.Text) and _grows(order):
                order[-1].append(part)
            else:
                order.append([part])
                own.append(order[-1])
    for turn, own in zip(run, told, strict=True):
        yield ir.Turn(turn.role, tuple(map(_one, own)), turn.at)


def _grows(order: Sequence[Sequence[ir.Part]]) -> bool:
    """Whether the last part said is a text without a token of its own, which would stand before it."""
    before, last = (None, None, *(pieces[0] for pieces in order[-2:]))[-2:]
    return isinstance(last, ir.Text) and not (isinstance(before, ir.Reasoning) and before.seal is not None and not before.text)


def _one(pieces: Sequence[ir.Part]) -> ir.Part:
    texts = [part.text for part in pieces if isinstance(part, ir.Text)]
    return pieces[0] if len(pieces) == 1 else ir.Text("".join(texts), pieces[0].at)
