"""A Messages document as the stream that the surface would have given: each block announced, its words told in one delta, and closed.

Generic: which members of a block are told apart stands in one table; a block without any is told whole as it begins. Knows no more of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from asgi_surface.codecs import folding
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.members import Members

_Object = dict[str, Any]

# What the message says at its end, and of whether it has ended.
_ENDINGS: Final = ("stop_reason", "stop_sequence", "stop_details", "container")
_NOT_YET: Final = {"content": Raw(b"[]"), "stop_reason": folding.NULL, "stop_sequence": folding.NULL}
_NO_WORDS: Final = folding.raw("")


def _told(kind: str, name: str) -> Callable[[Raw], Iterator[_Object]]:
    def tell(value: Raw) -> Iterator[_Object]:
        if folding.text(value):
            yield {"type": kind, name: value}

    return tell


def _asked(value: Raw) -> Iterator[_Object]:
    if bytes(value) != b"{}":
        yield {"type": "input_json_delta", "partial_json": bytes(value).decode()}


def _cited(value: Raw) -> Iterator[_Object]:
    return ({"type": "citations_delta", "citation": one} for one in folding.items(value))


# By a block's type: the members that deltas tell, in their order, what they are before, and how they are told.
_Telling = dict[str, tuple[Raw, Callable[[Raw], Iterator[_Object]]]]
_INPUT: Final[_Telling] = {"input": (Raw(b"{}"), _asked)}
_BLOCKS: Final[dict[str, _Telling]] = {
    "text": {"text": (_NO_WORDS, _told("text_delta", "text")), "citations": (Raw(b"[]"), _cited)},
    "thinking": {"thinking": (_NO_WORDS, _told("thinking_delta", "thinking")), "signature": (_NO_WORDS, _told("signature_delta", "signature"))},
    "compaction": {"content": (folding.NULL, _told("compaction_delta", "content"))},
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use"), _INPUT),
}


def unfold(body: bytes, written: bytes, _context: Context) -> Frames:
    """The events."""
    message = folding.members(written) | folding.members(body)
    events: list[_Object] = [{"type": "message_start", "message": folding.whole(message | _NOT_YET)}]
    for index, block in enumerate(folding.items(message["content"])):
        events += _block(folding.members(block), index)
    ending = {name: message[name] for name in _ENDINGS if name in message}
    events += [{"type": "message_delta", "delta": ending, "usage": message["usage"]}, {"type": "message_stop"}]
    return [(event["type"].encode(), msgspec.json.encode(event)) for event in events]


def _block(block: Members, index: int) -> Iterator[_Object]:
    telling = {name: how for name, how in _BLOCKS.get(folding.text(block.get("type", folding.NULL)), {}).items() if _tells(block, name)}
    begun = block | {name: before for name, (before, _) in telling.items()}
    yield {"type": "content_block_start", "index": index, "content_block": folding.whole(begun)}
    for name, (_, tell) in telling.items():
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in tell(block[name]))
    yield {"type": "content_block_stop", "index": index}


def _tells(block: Members, name: str) -> bool:
    return bytes(block.get(name, b"null")) != b"null"
