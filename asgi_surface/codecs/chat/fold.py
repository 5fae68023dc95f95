"""A Chat Completions stream as a document, put together as SDKs do it, and without leaving the surface: members that no table knows are kept.

Whose piece a piece of a call is, is told by `decode_calls`; here stands what of a message grows. Knows nothing of what the members mean.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import ClassVar, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import folding, reading
from asgi_surface.codecs.chat.decode import _Delta, _pieces
from asgi_surface.codecs.chat.decode_calls import Assembled, Calls
from asgi_surface.codecs.chat.grow import Tree, grown, plain
from asgi_surface.codecs.chat.stream import STOPS
from asgi_surface.framing import Frame
from asgi_surface.members import Members

_ANY: Final = msgspec.json.Decoder()
_REASON: Final = partial(reading.reason, STOPS)
_DELTA: Final = msgspec.json.Decoder(_Delta)
_CALLS: Final = ("tool_calls", "function_call")
_OWN: Final = frozenset({"index", "id", "type", "function", "custom"})  # of a call: what is put together of it; the rest is kept beside
_CHUNKS: Final = frozenset({"choices", "object", "obfuscation"})  # what a document has no place for, or says otherwise
_NOTHING: Final = (b"null", b'""', b"[]")
_BLANK: Final[Members] = {"role": folding.raw("assistant"), "content": folding.NULL}


class _Choice:
    """One of a stream's answers."""

    def __init__(self) -> None:
        self._members: Members = {}
        self._message: Tree = {}
        self._whole: Members = {}  # what messages in the place of deltas, or beside them, have said
        self._lists: dict[str, list[Raw]] = {}
        self._logprobs: dict[str, list[Raw]] = {}
        self._calls = Calls(itertools.count(), 0)
        self._beside: dict[Assembled, Members] = {}

    def feed(self, said: Members) -> int:
        """Takes its piece of a chunk. Gives the bytes that it keeps."""
        size = sum(len(bytes(value)) for value in said.values())
        delta = said.pop("delta", folding.NULL)
        members = folding.part(delta)
        called = [members.pop(name) for name in _CALLS if name in members]
        for name, value in members.items():
            self._message[name] = grown(self._message.get(name), reading.decode(_ANY, bytes(value)), name, always=name != "role")
        if called:
            self._called(delta, called[0])
        whole = folding.part(said.pop("message", folding.NULL))
        folding.latest(self._whole, _news(whole, self._whole))
        _extend(self._logprobs, folding.part(said.pop("logprobs", folding.NULL)))
        folding.latest(self._members, folding.weighed(self._members, _extend(self._lists, said), "finish_reason", _REASON))
        return size

    def _called(self, delta: Raw, calls: Raw) -> None:
        """Pieces of calls. What stands beside a call's own members, such as a proof, goes with it."""
        raws = folding.items(calls)
        for piece in _pieces(reading.decode(_DELTA, bytes(delta))):
            call = self._calls.find(piece)
            for _ in self._calls.take(call, piece):
                pass  # what it says is in the written answer
            said = folding.members(raws[piece.position]) if raws else {}
            folding.latest(self._beside.setdefault(call, {}), _others(said))

    def whole(self, written: Members) -> Raw:
        """The choice as a document has it. Calls are said as they were put together."""
        message = _BLANK | {name: folding.raw(plain(value)) for name, value in self._message.items()}
        message |= self._put_together(folding.members(written["message"]))
        message |= {name: value for name, value in _news(self._whole, message).items() if name != "tool_calls" or self._beside}
        logprobs = folding.whole({name: folding.listed(entries) for name, entries in self._logprobs.items()}) if self._logprobs else folding.NULL
        lists = {name: folding.listed(elements) for name, elements in self._lists.items()}
        return folding.whole({"index": written["index"], "message": folding.whole(message), "logprobs": logprobs} | lists | self._members)

    def _put_together(self, written: Members) -> Members:
        said: Members = {name: written[name] for name in _CALLS if name in written}
        if "tool_calls" in said:
            beside = [members for call, members in sorted(self._beside.items(), key=lambda one: one[0].part or 0) if call.part is not None]
            beside = beside or [_others(folding.members(call)) for call in folding.items(self._whole.get("tool_calls", folding.NULL))]
            calls = map(folding.members, folding.items(said["tool_calls"]))
            said["tool_calls"] = folding.listed([folding.whole(_native(call) | more) for call, more in zip(calls, beside, strict=True)])
        return said


class ChatFolder:
    """Puts one stream together: its choices by their index, and of the members beside them the last."""

    unsaid: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._members: Members = {}
        self._choices: dict[int, _Choice] = {}

    def feed(self, frame: Frame) -> int:
        """Takes one chunk, or `[DONE]`."""
        if frame.data.startswith(b"[DONE]"):
            return 0
        chunk = folding.members(frame.data)
        size = 0
        for one in folding.items(chunk.get("choices", folding.NULL)):
            said = folding.members(one)
            size += self._choices.setdefault(_index(said), _Choice()).feed(said)
        return size + folding.latest(self._members, {name: value for name, value in chunk.items() if name not in _CHUNKS})

    def document(self, written: bytes) -> bytes:
        """The document."""
        demanded = folding.members(written)
        written_choices = map(folding.members, folding.items(demanded["choices"]))
        choices = [choice.whole(one) for (_, choice), one in zip(sorted(self._choices.items()), written_choices, strict=True)]
        said = demanded | self._members | {"choices": folding.listed(choices)}
        if said.get("usage") == folding.NULL:  # the null of chunks, whose place no usage took
            del said["usage"]
        return bytes(folding.whole(said))


def _index(said: Members) -> int:
    index = bytes(said.get("index", b"0"))
    return int(index) if index.isdigit() else 0


def _news(said: Members, known: Members) -> Members:
    """What a message says. Nothing in the place of something takes nothing back."""
    return {name: value for name, value in said.items() if bytes(value) not in _NOTHING or name not in known}


def _others(call: Members) -> Members:
    """What stands beside a call's own members."""
    return {name: value for name, value in call.items() if name not in _OWN}


def _native(call: Members) -> Members:
    """A written call without the slot that the gateway would have filled."""
    return {name: value for name, value in call.items() if name != "extra_content"}


def _extend(lists: dict[str, list[Raw]], said: Members) -> Members:
    """Lists grow by the elements of each chunk. Gives the members that are none."""
    for name, value in said.items():
        if bytes(value).startswith(b"["):
            lists.setdefault(name, []).extend(folding.items(value))
    return {name: value for name, value in said.items() if not bytes(value).startswith(b"[")}


folder: Final = ChatFolder
