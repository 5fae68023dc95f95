"""Puts the tool calls of a Chat Completions stream together: whose piece each piece is, when a call can be told, and when it is whole.

Servers disagree about indices and ids. A call's id and name are written once: whatever a server says later changes neither. Knows no frames.

An answer may have thousands of calls: nothing here goes through all of them for each piece, nor through all of a call's text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from asgi_surface.codecs.chat.braces import Braces
from asgi_surface.events import Closed, Grew, Opened, PartEvent, Sealed
from asgi_surface.ir import Call, Form, Seal


class Piece(Struct, frozen=True):
    """What one delta says of one call. `index` is the wire's, `position` the place in its list; None is what it did not say."""

    position: int
    index: Any = None
    id: str | None = None
    name: str | None = None
    text: str = ""
    form: Form = Form.FUNCTION
    seal: Seal | None = None

    @property
    def slot(self) -> Any:
        """What tells parallel calls apart: the index, or the position where there is none."""
        return self.position if self.index is None else self.index


class Assembled:
    """One call as far as it is known, identified by itself. `part` is its index among the answer's parts, None until its name has come."""

    def __init__(self, number: int, slot: Any) -> None:
        self.slot = slot
        self.id: str | None = None
        self.part: int | None = None
        self.number = number
        self._name: str | None = None
        self._form = Form.FUNCTION
        self._seal: Seal | None = None
        self._pieces: list[str] = []
        self._braces = Braces(self._pieces)
        self.closed = False

    def goes_on(self, piece: Piece) -> bool:
        """Whether a piece in this call's slot is more of it. Some servers repeat the id or the name; old vLLM gives every piece a new id."""
        if piece.id and self.id:
            return piece.id == self.id or not (piece.name or self.whole())
        return not (piece.name and self._name) or (piece.name == self._name and not self.whole())

    def whole(self) -> bool:
        """Whether nothing can follow: the arguments are a JSON object. Free text is never known to be whole."""
        return self._form is not Form.CUSTOM and self._braces.whole()

    def learn(self, piece: Piece) -> bool:
        """Takes what the piece says anew; whether there was more of the call in it. A call that is told twice is one."""
        again = piece.text.startswith("{") and self.whole() and piece.text == "".join(self._pieces)
        if again or (self.closed and not piece.text.strip()):
            return False
        if self.closed:
            raise ValueError("arguments after the end of a call")
        if self._name is None and piece.name:
            self._name, self._form = piece.name, piece.form
        self.id = self.id or piece.id
        self._seal = self._seal or piece.seal
        if piece.text:
            self._pieces.append(piece.text)
        return True

    def named(self) -> bool:
        """Whether the call can be told."""
        return self._name is not None

    def open(self, part: int, choice: int) -> Iterator[PartEvent]:
        """The beginning, with the arguments that came before the name. Servers that leave ids out have their calls numbered."""
        self.part = part
        yield Opened(part, Call(self.id or f"call_{self.number}", self._name or "", "", self._form, minted=self.id is None), choice)
        # Other surfaces say a call's seal before the call, so it goes first where it is known.
        yield from self._sealed(part)
        yield from self.grow("".join(self._pieces))

    def _sealed(self, part: int) -> Iterator[PartEvent]:
        seal, self._seal = self._seal, None
        if seal is not None:
            yield Sealed(part, seal)

    def grow(self, text: str) -> Iterator[PartEvent]:
        """More of the arguments."""
        if text and self.part is not None:
            yield Grew(self.part, text)

    def close(self, *, cut: bool) -> Iterator[PartEvent]:
        """The end, once. No arguments are the empty object, unless the answer was cut."""
        if self.closed or self.part is None:
            return
        self.closed = True
        if not (cut or self._pieces or self._form is Form.CUSTOM):
            self._pieces.append("{}")
            yield Grew(self.part, "{}")
        yield from self._sealed(self.part)
        yield Closed(self.part)

    def lost(self) -> bool:
        """Whether something was said of a call that never got its name. An empty stub is no call."""
        return self._name is None and (self.id is not None or bool(self._pieces))


class Calls:
    """All calls of one of a stream's answers, `choice`. `parts` gives the next part's index. `opened` counts those that were told."""

    def __init__(self, parts: Iterator[int], choice: int) -> None:
        self.opened = 0
        self._parts = parts
        self._choice = choice
        self._count = itertools.count()
        self._open: dict[Assembled, None] = {}
        self._grown: dict[Assembled, None] = {}
        self._latest: dict[Any, Assembled] = {}
        self._known: dict[tuple[str, Any], Assembled] = {}

    def feed(self, piece: Piece) -> Iterator[PartEvent]:
        """The events of one piece: none until the call's name is known. A call that opens closes those before it that are whole."""
        return self.take(self.find(piece), piece)

    def take(self, call: Assembled, piece: Piece) -> Iterator[PartEvent]:
        """The same, where it is known whose piece it is."""
        if not call.learn(piece):
            return
        if piece.id and call.id == piece.id:
            self._known.setdefault((piece.id, call.slot), call)
            self._known.setdefault((piece.id, None), call)
        if not call.named():
            return
        if call.part is None:
            yield from self.close_whole()
            self.opened += 1
            yield from call.open(next(self._parts), self._choice)
        else:
            yield from call.grow(piece.text)
        self._grown[call] = None

    def find(self, piece: Piece) -> Assembled:
        """Whose piece it is: by index and id, by id alone where there is no index, else by slot."""
        known = self._known.get((piece.id, piece.index)) if piece.id else None
        if known is not None:
            return known
        latest = self._latest.get(piece.slot)
        if latest is None or not latest.goes_on(piece):
            latest = self._latest[piece.slot] = Assembled(next(self._count), piece.slot)
            self._open[latest] = None
        return latest

    def close_whole(self) -> Iterator[PartEvent]:
        """Closes the calls that nothing can follow. One that was not whole is looked at again when it has grown."""
        grown, self._grown = self._grown, {}
        for call in sorted(grown, key=lambda one: one.number):
            if call.whole():
                yield from self._close(call, cut=False)

    def finish(self, *, cut: bool) -> Iterator[PartEvent]:
        """The answer has ended. Raises `ValueError` when a call cannot be told because its name never came."""
        for call in list(self._open):
            if call.lost():
                raise ValueError("a call without a name")
            yield from self._close(call, cut=cut)

    def _close(self, call: Assembled, *, cut: bool) -> Iterator[PartEvent]:
        yield from call.close(cut=cut)
        if call.closed:
            self._open.pop(call, None)
