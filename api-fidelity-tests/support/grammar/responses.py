"""Responses: the response object as it begins and ends, its items one after the other between, every event numbered and under its name."""

from __future__ import annotations

from typing import Any

from grammar.frames import Frame, Grammar, counts, must, named, shape
from grammar.items import ITEMS, Item

_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed", "error": ""}
_SAME = ("id", "object", "created_at")  # a router may tell late which model it took
_WHY = {"max_output_tokens", "content_filter"}


class Relayed(Grammar):
    """A provider's own stream. An event line, where there is one, says the event's type."""

    def ends(self, frame: Frame) -> bool:
        return frame.kind in _ENDS or (frame.broken and not frame.kind)

    def step(self, frame: Frame) -> None:
        must(frame.name in {None, frame.kind}, "an event under another name")


class Written(Grammar):
    """A stream that we wrote."""

    def __init__(self, *, sound: bool = True) -> None:
        super().__init__(sound=sound)
        self._number = 0
        self._response: dict[str, Any] | None = None
        self._running = False
        self._item: Item | None = None
        self._ids: set[str] = set()
        self._done: list[dict[str, Any]] = []

    def ends(self, frame: Frame) -> bool:
        return frame.kind in _ENDS

    def step(self, frame: Frame) -> None:
        event, kind = frame.event, frame.kind
        must(frame.name == kind, "an event under another name")
        must(event.get("sequence_number") == self._number, "sequence numbers with gaps")
        self._number += 1
        if kind == "error":
            self._error(event)
        elif "response" in event:
            self._object(event, kind.removeprefix("response."))
        else:
            must(self._running, "no response.created and response.in_progress first")
            self._of_item(event, kind.removeprefix("response."))

    def _error(self, event: dict[str, Any]) -> None:
        must(self._response is None, "an error event in a response that has begun")
        shape(event, "an error", {"type": str, "sequence_number": int, "code": str, "message": str, "param": str})

    def _object(self, event: dict[str, Any], kind: str) -> None:
        shape(event, "an event", {"type": str, "sequence_number": int, "response": dict})
        response = event["response"]
        named(response, "a response", "id", "model", "object", "status")
        begun = self._response or response
        must(all(response.get(name) == begun.get(name) for name in _SAME), "two response ids, or heads")
        order = "created" if self._response is None else "in_progress" if not self._running else kind
        must(kind == order and (kind in {"created", "in_progress"}) == (not self._running), "no response.created and response.in_progress first")
        self._running |= self._response is not None
        self._response = response
        must(response["status"] == ("in_progress" if kind == "created" else kind), "a response of another status than its event's")
        self._told(response, kind)

    def _told(self, response: dict[str, Any], kind: str) -> None:
        for name in ("error", "incomplete_details", "output", "usage", "instructions", "parallel_tool_calls", "tool_choice", "tools"):
            must(name in response, f"a response without {name}")
        must((response["error"] is not None) == (kind == "failed"), "an error in another response than a failed one")
        must((response["incomplete_details"] is not None) == (kind == "incomplete"), "details of another response than an incomplete one")
        must(response["output"] == self._done, "another output than the items that were done")
        if kind == "failed":
            shape(response["error"], "an error", {"code": str, "message": str})
        elif kind in {"completed", "incomplete"}:
            self._closed(response, kind)
        else:
            must(response["usage"] is None, "usage of a running response")

    def _closed(self, response: dict[str, Any], kind: str) -> None:
        must(self._item is None, "an end with an item that is not done")
        if response["usage"] is not None:
            counts(response["usage"], "input_tokens", "output_tokens", "total_tokens")
        if kind == "incomplete":
            named(response["incomplete_details"], "details", "reason")
        self._whole(kind == "incomplete" or all(item.get("status") != "incomplete" for item in self._done), "half an item in a finished answer")

    def _of_item(self, event: dict[str, Any], kind: str) -> None:
        index = event.get("output_index")
        if kind == "output_item.added":
            shape(event, "an item's start", {"type": str, "sequence_number": int, "output_index": int, "item": dict})
            must(self._item is None, "an item inside an item")
            must(index == len(self._done), "an item out of its order")
            item = event["item"]
            named(item, "an item", "id", "type")
            must(item["type"] in ITEMS, "an item of no known kind")
            must(item["id"] not in self._ids, "an item's id twice")
            self._ids.add(item["id"])
            self._item = ITEMS[item["type"]](item)
            return
        must(self._item is not None and index == len(self._done), "an event of an item that is not open")
        if kind == "output_item.done":
            shape(event, "an item's end", {"type": str, "sequence_number": int, "output_index": int, "item": dict})
            self._item.close(event["item"])  # type: ignore[union-attr]
            self._done.append(event["item"])
            self._item = None
            return
        self._item.take(kind, event)  # type: ignore[union-attr]
