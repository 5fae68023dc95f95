"""Gemini: whole parts, each candidate's finish last, counts that never fall, one head, and nothing after the last finish. No null anywhere."""

from __future__ import annotations

from typing import Any

from grammar.frames import Frame, Grammar, fits, must, named, shape

_CHUNK = {"candidates": list, "usageMetadata": dict, "modelVersion": str, "responseId": str, "promptFeedback": dict, "createTime": str}
_CANDIDATE = {
    "content": dict,
    "finishReason": str,
    "finishMessage": str,
    "groundingMetadata": dict,
    "logprobsResult": dict,
    "avgLogprobs": float,
    "tokenCount": int,
    "safetyRatings": list,
    "citationMetadata": dict,
}
_PART = {"text": str, "thought": bool, "thoughtSignature": str, "functionCall": dict}
_SAID = {"text", "functionCall"}


def _blocked(chunk: dict[str, Any]) -> bool:
    return bool((chunk.get("promptFeedback") or {}).get("blockReason"))


def _candidates(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    return chunk.get("candidates") or []


class Relayed(Grammar):
    """A provider's own stream, whose terminal is the body's end: nothing follows an error, and something was an end."""

    def __init__(self) -> None:
        super().__init__()
        self._finished = False

    def ends(self, frame: Frame) -> bool:
        return frame.broken

    def step(self, frame: Frame) -> None:
        self._finished |= _blocked(frame.event) or any(one.get("finishReason") for one in _candidates(frame.event))

    def end(self) -> None:
        must(self.ended or self._finished, "no terminal")


class Written(Grammar):
    """A stream that we wrote."""

    def __init__(self, *, sound: bool = True) -> None:
        super().__init__(sound=sound)
        self._head: dict[str, Any] | None = None
        self._seen: set[int] = set()
        self._finished: set[int] = set()
        self._spent: dict[str, int] = {}
        self._last: dict[str, Any] = {}

    def ends(self, frame: Frame) -> bool:
        return frame.broken or _blocked(frame.event)

    def step(self, frame: Frame) -> None:
        must(frame.name is None, "a named chunk")
        chunk = self._last = frame.event
        if frame.broken:
            must(not self._finished, "two terminals")
            shape(chunk, "an error", {"error": dict})
            shape(chunk["error"], "an error", {"code": int, "message": str, "status": str}, {"details": list})
            return
        shape(chunk, "a chunk", {}, _CHUNK)
        head = {"responseId": chunk.get("responseId")}
        must(head == (self._head or head), "two heads")
        self._head = head
        must(chunk.get("modelVersion"), "a chunk without its model")
        self._usage(chunk.get("usageMetadata", {}))
        for candidate in chunk.get("candidates", ()):
            self._candidate(candidate)

    def _usage(self, usage: dict[str, Any]) -> None:
        # What was counted as the answer's may turn out to be thoughts: the sum of both does not shrink.
        spent = usage and usage | {"candidatesTokenCount": usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)}
        for name, value in spent.items():
            if name.endswith("TokenCount"):
                must(fits(value, int) and value >= self._spent.get(name, 0), "usage that shrinks")
                self._spent[name] = value

    def _candidate(self, candidate: dict[str, Any]) -> None:
        shape(candidate, "a candidate", {"index": int, "content": dict}, _CANDIDATE)
        index = candidate["index"]
        must(index not in self._finished, "two terminals" if candidate.get("finishReason") else "something after the terminal")
        self._seen.add(index)
        if "finishReason" in candidate:
            named(candidate, "a candidate", "finishReason")
            self._finished.add(index)
        shape(candidate["content"], "content", {"parts": list, "role": {"model"}})
        must(candidate["content"]["parts"], "content without parts")
        for part in candidate["content"]["parts"]:
            self._part(part)

    def _part(self, part: dict[str, Any]) -> None:
        shape(part, "a part", {}, _PART)
        must(len(_SAID & part.keys()) == 1, "a part that is not one thing")
        if "functionCall" in part:
            shape(part["functionCall"], "a call", {"name": str, "args": dict}, {"id": str})
            must(part["functionCall"]["name"], "a call without its name")

    def end(self) -> None:
        must(self.ended or (self._seen and self._seen == self._finished), "no terminal")
        must(self.ended or any(one.get("finishReason") for one in _candidates(self._last)), "something after the terminal")
