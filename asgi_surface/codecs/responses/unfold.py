"""A Responses document as the stream that the surface would have given: every item announced, its words told, and done, then the response itself.

Generic: what an item or a part is made of stands in the tables; one that they do not know is told whole. Knows nothing of what the items mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs import folding
from asgi_surface.codecs.base import Context, Frames
from asgi_surface.codecs.responses.fold import demanded
from asgi_surface.codecs.responses.write import _PREFIXES
from asgi_surface.members import Members

_Said = tuple[str, dict[str, object]]

# Which member of an item is told in pieces, and what the done event repeats beside it.
_GROWING: Final = {
    "function_call": ("arguments", "response.function_call_arguments", ("name",)),
    "mcp_call": ("arguments", "response.mcp_call_arguments", ()),
    "custom_tool_call": ("input", "response.custom_tool_call_input", ()),
    "code_interpreter_call": ("code", "response.code_interpreter_call_code", ()),
}


class _Shape(Struct, frozen=True):
    """How a part of an item is told: the member that grows, the names of its events, how they count parts, and what its announcement lacks."""

    grows: str
    stem: str
    around: str = "response.content_part"
    counts: str = "content_index"
    blank: tuple[str, ...] = ()


_SHAPES: Final = {
    "output_text": _Shape("text", "response.output_text", blank=("annotations", "logprobs")),
    "refusal": _Shape("refusal", "response.refusal"),
    "reasoning_text": _Shape("text", "response.reasoning_text"),
    "summary_text": _Shape("text", "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"),
}
_WHOLE: Final = _Shape("", "")
_LISTS: Final = {"message": ("content",), "reasoning": ("summary", "content")}  # of parts, in an item
_EMPTY: Final = {"summary": Raw(b"[]"), "content": Raw(b"[]"), "result": folding.NULL}
_RUNNING: Final = folding.raw("in_progress")
_NOT_YET: Final = {"status": _RUNNING, "output": Raw(b"[]")}
_AT_THE_END: Final = ("usage", "incomplete_details", "error", "completed_at")


def unfold(body: bytes, written: bytes, context: Context) -> Frames:
    """The events, numbered. A response without its id, or an item without one, gets those of the gateway."""
    response = demanded(written) | folding.members(body)
    output = [_identified(folding.members(item), context, place) for place, item in enumerate(folding.items(response["output"]))]
    response["output"] = folding.listed([folding.whole(item) for item in output])
    begun = response | _NOT_YET | {name: folding.NULL for name in _AT_THE_END if name in response}
    said: list[_Said] = [(f"response.{kind}", {"response": folding.whole(begun)}) for kind in ("created", "in_progress")]
    for place, item in enumerate(output):
        said += _item(item, place)
    end = "completed" if folding.text(response["status"]) == "completed" else "incomplete"
    said.append((f"response.{end}", {"response": folding.whole(response)}))
    return [(kind.encode(), _event(kind, number, members)) for number, (kind, members) in enumerate(said)]


def _event(kind: str, number: int, members: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": kind, "sequence_number": number, **members})


def _identified(item: Members, context: Context, place: int) -> Members:
    kind = folding.text(item.get("type", folding.NULL))
    return {"id": folding.raw(f"{_PREFIXES.get(kind, 'asf_')}{context.request_id}_{place}")} | item


def _item(item: Members, place: int) -> Iterator[_Said]:
    kind = folding.text(item.get("type", folding.NULL))
    grows, stem, repeated = _GROWING.get(kind, ("", "", ()))
    lists = _LISTS.get(kind, ())
    begun = (
        item
        | {name: value for name, value in _EMPTY.items() if name in item and name in (*lists, "result")}
        | ({"status": _RUNNING} if "status" in item else {})
    )
    begun |= {grows: folding.raw("")} if grows in item else {}
    yield "response.output_item.added", {"output_index": place, "item": folding.whole(begun)}
    where: dict[str, object] = {"item_id": item["id"], "output_index": place}
    if grows in item:
        yield from _told(stem, where, grows, item, tuple(name for name in repeated if name in item))
    for name in lists:
        for number, part in enumerate(folding.items(item.get(name, folding.NULL))):
            yield from _part(folding.members(part), where, number)
    yield "response.output_item.done", {"output_index": place, "item": folding.whole(item)}


def _told(stem: str, where: dict[str, object], grows: str, said: Members, repeated: Iterable[str], **more: object) -> Iterator[_Said]:
    """The one piece of what grows, if it says anything, and its end."""
    if folding.text(said[grows]):
        yield f"{stem}.delta", {**where, "delta": said[grows], **more}
    yield f"{stem}.done", {**where, grows: said[grows], **{name: said[name] for name in repeated}, **more}


def _part(part: Members, item: dict[str, object], number: int) -> Iterator[_Said]:
    shape = _SHAPES.get(folding.text(part.get("type", folding.NULL)), _WHOLE)
    where = item | {shape.counts: number}
    blank = {name: Raw(b"[]") for name in shape.blank} | ({shape.grows: folding.raw("")} if shape.grows else {})
    yield f"{shape.around}.added", {**where, "part": folding.whole(part | blank)}
    if shape.grows in part:
        entries = {"logprobs": part.get("logprobs", Raw(b"[]"))} if "logprobs" in shape.blank else {}
        yield from _told(shape.stem, where, shape.grows, part, (), **entries)
    for index, annotation in enumerate(folding.items(part.get("annotations", folding.NULL))):
        yield "response.output_text.annotation.added", {**where, "annotation_index": index, "annotation": annotation}
    yield f"{shape.around}.done", {**where, "part": folding.whole(part)}
