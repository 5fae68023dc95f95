"""The items of a Responses stream: announced blank, filled by deltas, each text and part closed by what its deltas make, and done as exactly that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from grammar.frames import is_object, must, named, shape

_PLACE = {"type": str, "sequence_number": int, "item_id": str, "output_index": int}
_STATUS = {"in_progress", "completed", "incomplete", "failed"}


class Item(ABC):
    """An item that is announced and not done. `need` and `may` are its members, `blank` what they are when it is announced."""

    need: ClassVar[dict[str, Any]] = {}
    may: ClassVar[dict[str, Any]] = {}
    blank: ClassVar[dict[str, Any]] = {}

    def __init__(self, item: dict[str, Any]) -> None:
        self._same = {name: item[name] for name in ("id", "type", "call_id", "name", "namespace") if name in item}
        shape(item, f"a {item['type']}", self._needed, self.may)
        for name, value in self.blank.items():
            must(name not in item or item[name] == value, "an item that is announced with what it will say")

    @property
    def _needed(self) -> dict[str, Any]:
        return {"id": str, "type": str, **self.need}

    def take(self, kind: str, event: dict[str, Any]) -> None:
        must(event.get("item_id") == self._same["id"], "another item's id")
        stem, _, step = kind.rpartition(".")
        self.step(stem, step, event)

    @abstractmethod
    def step(self, stem: str, step: str, event: dict[str, Any]) -> None:
        """What the rules say to one event about the item: what it is about, and which step."""

    def close(self, item: dict[str, Any]) -> None:
        shape(item, f"a {item.get('type')}", self._needed, {**self.may, "encrypted_content": str})
        must({name: item[name] for name in self._same if name in item} == self._same, "another item than was announced")
        must(item.get("status") != "in_progress", "an item that is done in progress")
        self.closed(item)

    @abstractmethod
    def closed(self, item: dict[str, Any]) -> None:
        """What the rules say to the item as it is done."""


class _Part:
    """A content part of a message, or of a reasoning's summary: announced, grown, closed, done."""

    def __init__(self, part: dict[str, Any], member: str) -> None:
        must(not part.get(member), "a part that is announced with its text")
        self._kind, self._member = part["type"], member
        self._pieces: list[str] = []
        self._marks: list[Any] = []
        self._text: str | None = None
        self.done: dict[str, Any] | None = None

    def grow(self, event: dict[str, Any]) -> None:
        must(self._text is None, "more of what is done")
        must(isinstance(event["delta"], str), "a delta that is no text")
        self._pieces.append(event["delta"])

    def mark(self, event: dict[str, Any]) -> None:
        must(event.get("annotation_index") == len(self._marks), "a source out of its order")
        self._marks.append(event["annotation"])

    def finish(self, event: dict[str, Any]) -> None:
        must(self._text is None, "done twice")
        self._text = event.get(self._member)
        must(self._text == "".join(self._pieces), "another text than its deltas")

    def close(self, part: dict[str, Any]) -> None:
        must(self.done is None, "done twice")
        must(self._text is not None, "a part that is done before its text")
        must(part.get("type") == self._kind and part.get(self._member) == self._text, "another part than its text")
        must(part.get("annotations", []) == self._marks, "other sources than were told")
        self.done = part


class _Parts(Item):
    """An item of parts. `stems` gives the events about the words of each kind of part, and their member."""

    stems: ClassVar[dict[str, tuple[str, str]]] = {}
    part = ""
    index = ""
    member = ""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__(item)
        self._parts: list[_Part] = []

    def step(self, stem: str, step: str, event: dict[str, Any]) -> None:
        place = event.get(self.index)
        if (stem, step) == (self.part, "added"):
            must(place == len(self._parts), "a part out of its order, or twice")
            must(all(part.done for part in self._parts), "a part inside a part")
            must(event["part"].get("type") in self.stems, "a part of no known kind")
            kind = event["part"]["type"]
            self._parts.append(_Part(event["part"], self.stems[kind][1]))
            self._stem = self.stems[kind][0]
            return
        must(self._parts and place == len(self._parts) - 1, "an event of a part that was not announced")
        part = self._parts[-1]
        steps = {
            (self.part, "done"): lambda: part.close(event["part"]),
            (self._stem, "delta"): lambda: part.grow(event),
            (self._stem, "done"): lambda: part.finish(event),
            (f"{self._stem}.annotation", "added"): lambda: part.mark(event),
        }
        must((stem, step) in steps, "a step of another kind of item")
        steps[stem, step]()

    def closed(self, item: dict[str, Any]) -> None:
        must([part.done for part in self._parts] == item[self.member], "another content than its parts")


class Message(_Parts):
    need: ClassVar = {"status": _STATUS, "role": {"assistant"}, "content": list}
    may: ClassVar = {"phase": str}
    blank: ClassVar = {"status": "in_progress", "content": []}
    stems: ClassVar = {"output_text": ("output_text", "text"), "refusal": ("refusal", "refusal")}
    part, index, member = "content_part", "content_index", "content"


class Reasoning(_Parts):
    need: ClassVar = {"summary": list}
    may: ClassVar = {"status": _STATUS, "content": list, "encrypted_content": str}
    blank: ClassVar = {"status": "in_progress", "summary": [], "content": []}
    stems: ClassVar = {"summary_text": ("reasoning_summary_text", "text")}
    part, index, member = "reasoning_summary_part", "summary_index", "summary"


class _Call(Item):
    member = ""
    stem = ""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__(item)
        named(item, "a call", "call_id", "name")
        self._pieces: list[str] = []
        self._text: str | None = None

    def step(self, stem: str, step: str, event: dict[str, Any]) -> None:
        must(stem == self.stem and step in {"delta", "done"}, "a step of another kind of item")
        must(self._text is None, "done twice" if step == "done" else "more of what is done")
        if step == "delta":
            shape(event, "a delta", {**_PLACE, "delta": str}, {"obfuscation": str})
            self._pieces.append(event["delta"])
            return
        shape(event, "arguments", {**_PLACE, self.member: str}, {"name": str})
        self._text = event[self.member]
        must(self._text == "".join(self._pieces), "another text than its deltas")

    def closed(self, item: dict[str, Any]) -> None:
        must(self._text is not None, "a call that is done before its arguments")
        must(item[self.member] == self._text, "another text than its deltas")


class FunctionCall(_Call):
    need: ClassVar = {"status": _STATUS, "call_id": str, "name": str, "arguments": str}
    may: ClassVar = {"namespace": str}
    blank: ClassVar = {"status": "in_progress", "arguments": ""}
    member, stem = "arguments", "function_call_arguments"

    def closed(self, item: dict[str, Any]) -> None:
        super().closed(item)
        whole = bool(item["arguments"]) and is_object(item["arguments"])
        must(item["status"] != "completed" or whole, "half a call that is completed")


class CustomCall(_Call):
    need: ClassVar = {"call_id": str, "name": str, "input": str}
    may: ClassVar = {"status": _STATUS, "namespace": str}
    blank: ClassVar = {"status": "in_progress", "input": ""}
    member, stem = "input", "custom_tool_call_input"


_BEFORE = {"in_progress": None, "searching": "in_progress", "completed": "searching"}


class Search(Item):
    need: ClassVar = {"status": _STATUS, "action": dict}
    blank: ClassVar = {"status": "in_progress"}

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__(item)
        self._step: str | None = None

    def step(self, stem: str, step: str, event: dict[str, Any]) -> None:
        must(stem == "web_search_call" and step in _BEFORE, "a step of another kind of item")
        must(self._step == _BEFORE[step], "a search's steps out of their order")
        shape(event, "a search's step", _PLACE)
        self._step = step

    def closed(self, item: dict[str, Any]) -> None:
        must((item["status"] == "completed") == (self._step == "completed"), "a search that is done without its steps")


ITEMS: dict[str, type[Item]] = {
    "message": Message,
    "reasoning": Reasoning,
    "function_call": FunctionCall,
    "custom_tool_call": CustomCall,
    "web_search_call": Search,
}
