"""The items of a streamed Responses answer: which are done, and which one is still open. Knows nothing of parts, nor of event numbers.

Items and contents are made by `write`, so a stream's are those of the unstreamed answer. The last item is held open until another begins or the
answer ends: a cut answer's last item is `incomplete`, and neighbouring texts are one message.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, Protocol

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface.codecs.base import Context
from asgi_surface.codecs.responses.write import wraps, write
from asgi_surface.ir import Call, Part, Refusal, Request, Response, Stop

Item = dict[str, Raw]
Place = dict[str, object]
"""What events name an item by."""
Said = tuple[str, dict[str, object]]
"""An event's type, and its members but the number."""


class _Output(Struct):
    output: list[Item]


_OUTPUT: Final = msgspec.json.Decoder(_Output)
STRING: Final = msgspec.json.Decoder(str)

# How an item looks when it is announced. Its opaque token is known only in the end.
_BLANK: Final[Item] = {
    "status": Raw(b'"in_progress"'),
    "content": Raw(b"[]"),
    "summary": Raw(b"[]"),
    "arguments": Raw(b'""'),
    "input": Raw(b'""'),
}
_INCOMPLETE: Final = Raw(b'"incomplete"')


class Held(Protocol):
    """An item that is announced and not done."""

    def finish(self, stop: Stop, /, *, cut: bool) -> Iterator[Said]:
        """What is left to say of it. `stop` is why the answer ended, `cut` says that it is incomplete."""
        ...


class Desk:
    """The items of one answer."""

    def __init__(self, context: Context) -> None:
        # An item repeats nothing of the request.
        self._context = structs.replace(context, request=Request(turns=(), wants_seals=context.request.wants_seals))
        self.done: list[Item] = []
        self.held: Held | None = None
        self.message: Message | None = None
        """The message that a further text joins."""
        self.refused = False
        self._broken: list[Call] = []

    def wraps(self, call: Call) -> bool:
        """Whether the call is to be told in another form than it came in."""
        return wraps(call, self._context)

    def render(self, part: Part, stop: Stop = Stop.END, logprobs: Raw | None = None) -> list[Item]:
        """The items of a part. Raises `UpstreamError` where it cannot be told."""
        body = write(Response(id=None, model=None, parts=(part,), stop=stop, logprobs=logprobs), self._context)
        return _OUTPUT.decode(body).output

    def begin(self, item: Item) -> Generator[Said, None, Place]:
        """Announces an item, after the one before it is done."""
        yield from self.settle()
        index = len(self.done)
        place: Place = {"item_id": f"{STRING.decode(item['id']).rpartition('_')[0]}_{index}", "output_index": index}
        blank = {name: _BLANK.get(name, value) for name, value in item.items() if name != "encrypted_content"}
        yield "response.output_item.added", {"output_index": index, "item": blank | {"id": place["item_id"]}}
        return place

    def end(self, item: Item, place: Place, *, cut: bool = False) -> Iterator[Said]:
        """An item is whole, as far as the answer goes."""
        whole = item | ({"status": _INCOMPLETE} if cut and "status" in item else {}) | {"id": Raw(msgspec.json.encode(place["item_id"]))}
        self.done.append(whole)
        yield "response.output_item.done", {"output_index": place["output_index"], "item": whole}

    def settle(self, stop: Stop = Stop.END, *, cut: bool = False) -> Iterator[Said]:
        """Finishes the item that is held."""
        held, self.held, self.message = self.held, None, None
        if held is not None:
            yield from held.finish(stop, cut=cut)

    def give_up(self, call: Call) -> None:
        """A call cannot be told: it is left out if it turns out that the answer was cut."""
        self._broken.append(call)

    def judge(self, stop: Stop) -> None:
        """Raises `UpstreamError` when the answer ended well, and yet a call was left out."""
        for call in self._broken:
            self.render(call, stop)

    def joined(self) -> Generator[Said, None, Message]:
        """The message for a text or refusal: the one before it, or a new one."""
        if self.message is None:
            item, *_ = self.render(Refusal(""))
            place = yield from self.begin(item)
            self.message = self.held = Message(self, item, place)
        return self.message


class Message:
    """A message item and the contents that are whole."""

    def __init__(self, desk: Desk, item: Item, place: Place) -> None:
        self._desk = desk
        self._item = item
        self.place = place
        self.contents: list[Item] = []

    def finish(self, _: Stop, /, *, cut: bool) -> Iterator[Said]:
        """Says that it is done."""
        yield from self._desk.end(self._item | {"content": Raw(msgspec.json.encode(self.contents))}, self.place, cut=cut)
