"""A Responses stream as a document: the response that its terminal event carries. Knows nothing of what the items mean."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import folding, reading
from asgi_surface.codecs.responses.decode import _ENDS
from asgi_surface.framing import Frame
from asgi_surface.members import Members


class _Event(Struct):
    type: Any = None
    output_index: Any = None
    item: Raw = folding.NULL
    response: Raw = folding.NULL


_EVENT: Final = msgspec.json.Decoder(_Event)


def demanded(written: bytes) -> Members:
    """The written answer's members, but for why it is incomplete: what its upstream said of that stands in its own words, or nowhere."""
    return {name: value for name, value in folding.members(written).items() if name != "incomplete_details"}


class ResponsesFolder:
    """Keeps the items that were done: some servers leave them out of the response at the end."""

    unsaid: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._done: dict[int, Raw] = {}
        self._response = folding.NULL

    def feed(self, frame: Frame) -> int:
        """Takes one event."""
        if frame.data.startswith(b"[DONE]"):
            return 0
        event = reading.decode(_EVENT, frame.data)
        kind = event.type if isinstance(event.type, str) else frame.event.decode("latin-1")
        if kind in _ENDS:
            self._response = event.response
            return len(bytes(event.response))
        if kind != "response.output_item.done":
            return 0
        place = reading.count(event.output_index)
        self._done[len(self._done) if place is None else place] = event.item
        return len(bytes(event.item))

    def document(self, written: bytes) -> bytes:
        """The response. Its items are its own, else those that were done, else those that the pieces made."""
        base, said = demanded(written), folding.part(self._response)
        done = [item for _, item in sorted(self._done.items())]
        made = folding.items(base["output"])
        if folding.text(said.get("reasoning", folding.NULL)):  # mistral.rs: the member holds it, and stays
            made = [one for one in made if folding.text(folding.part(one)["type"]) != "reasoning"]
        found = (folding.items(said.get("output", folding.NULL)), done, made)
        return bytes(folding.whole({**base, **said, "output": folding.listed(max(found, key=len))}))


folder: Final = ResponsesFolder
