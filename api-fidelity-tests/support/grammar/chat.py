"""Chat Completions: one head on all chunks, the role first, calls announced once, one finish for each choice, the usage if asked for, `[DONE]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grammar.frames import DONE, Frame, Grammar, counts, is_object, must, named, shape

_HEAD = {"id": str, "object": {"chat.completion.chunk"}, "created": int, "model": str}
_BESIDE = {"service_tier": str, "system_fingerprint": str}
_PADDED = {"obfuscation": str}
_DELTA = {
    "role": {"assistant"},
    "content": str,
    "refusal": str,
    "tool_calls": list,
    "function_call": dict,
    "reasoning_content": str,
    "annotations": list,
}
# The last two are our words for ends that the API has none for: a client must not take them for a success.
_REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call", "other", "pause"}
_SOUND = {"stop", "tool_calls", "function_call"}
_MEMBERS = {"function": "arguments", "custom": "input"}


class Relayed(Grammar):
    """A provider's own stream. Some leave `[DONE]` out; then the body's end stands for it."""

    def __init__(self) -> None:
        super().__init__()
        self._finished = False

    def ends(self, frame: Frame) -> bool:
        return frame.event == DONE or frame.broken

    def step(self, frame: Frame) -> None:
        choices = [] if frame.event == DONE else frame.event.get("choices") or []
        self._finished |= any(choice.get("finish_reason") for choice in choices if isinstance(choice, dict))
        must(frame.event != DONE or self._finished, "an end without a finish")

    def end(self) -> None:
        must(self.ended or self._finished, "no terminal")


class _Choice:
    """One answer as far as it has been said. `whole` holds what makes it a sound one."""

    def __init__(self, whole: Callable[[object, str], None]) -> None:
        self._whole = whole
        self.finish: str | None = None
        self._role = False
        self._calls: dict[int, tuple[str, list[str]]] = {}
        self._old = False

    def take(self, choice: dict[str, Any]) -> None:
        need = {"index": int, "delta": dict, "finish_reason": _REASONS}
        must(self.finish is None, "a choice goes on after its finish")
        shape(choice, "a choice", need, {"logprobs": dict})
        delta = choice["delta"]
        shape(delta, "a delta", {}, _DELTA)
        must(self._role != ("role" in delta), "a role twice" if self._role else "no role first")
        must("role" in delta or None not in delta.values(), "null in a later delta")
        self._role = True
        for call in delta.get("tool_calls", ()):
            self._call(call)
        self._old |= "function_call" in delta
        self.finish = choice["finish_reason"]
        if self.finish is not None:
            self._close(self.finish)

    def _call(self, call: dict[str, Any]) -> None:
        shape(call, "a call", {"index": int}, {"id": str, "type": {"function", "custom"}, "function": dict, "custom": dict, "extra_content": dict})
        index = call["index"]
        if index not in self._calls:
            must(index == len(self._calls), "a call out of its order")
            named(call, "a call", "id", "type")
            named(call.get(call["type"]) or {}, "a call", "name")
            self._calls[index] = call["type"], []
        else:
            must(not {"id", "type"} & call.keys(), "a call's id twice")
            must(not any("name" in (call.get(form) or {}) for form in _MEMBERS), "a call's name twice")
        form, pieces = self._calls[index]
        said = (call.get(form) or {}).get(_MEMBERS[form])
        must(isinstance(said, str), "a call's piece without a string of arguments")
        pieces.append(said)

    def _close(self, finish: str) -> None:
        self._whole(finish != "tool_calls" or self._calls, "a finish for calls, and no call")
        self._whole(finish != "function_call" or self._old, "a finish for a function call, and no call")
        halves = [pieces for form, pieces in self._calls.values() if form == "function" and not is_object("".join(pieces))]
        self._whole(finish not in _SOUND or not halves, "half a call in a finished answer")


class Written(Grammar):
    """A stream that we wrote. `usage` says whether the client asked for it; None: unknown."""

    def __init__(self, *, usage: bool | None = None, sound: bool = True) -> None:
        super().__init__(sound=sound)
        self._asked = usage
        self._head: dict[str, Any] | None = None
        self._choices: dict[int, _Choice] = {}
        self._counted = False

    def ends(self, frame: Frame) -> bool:
        return frame.event == DONE or frame.broken

    @property
    def _finished(self) -> bool:
        return bool(self._choices) and all(choice.finish for choice in self._choices.values())

    def step(self, frame: Frame) -> None:
        must(frame.name is None, "a named chunk")
        if frame.event == DONE:
            must(self._finished, "an end without a finish")
        elif frame.broken:
            must(not any(choice.finish for choice in self._choices.values()), "an error after a finish")
            shape(frame.event, "an error", {"error": dict})
            shape(frame.event["error"], "an error", {"message": str, "type": str, "param": str, "code": str})
        else:
            self._chunk(frame.event)

    def _chunk(self, chunk: dict[str, Any]) -> None:
        must(not self._counted, "something after the usage chunk")
        named(chunk, "a chunk", "id", "model")
        shape(chunk, "a chunk", {**_HEAD, "choices": list}, {**_BESIDE, **_PADDED, "usage": dict})
        head = {name: chunk.get(name) for name in (*_HEAD, "system_fingerprint")}  # the tier may be known late
        for name, value in (self._head or head).items():
            must(head[name] == value, f"two values of {name}")
        self._head = head
        self._usage(chunk)
        for choice in chunk["choices"]:
            must(isinstance(choice.get("index"), int), "a choice without index")
            must(choice["index"] <= len(self._choices), "a choice out of its order")
            self._choices.setdefault(choice["index"], _Choice(self._whole)).take(choice)

    def _usage(self, chunk: dict[str, Any]) -> None:
        must(self._asked is not False or "usage" not in chunk, "usage that nobody asked for")
        must(not self._asked or "usage" in chunk, "a chunk without the usage that was asked for")
        if chunk["choices"]:
            must(chunk.get("usage") is None, "usage in a chunk with choices")
            return
        must(chunk.get("usage") and self._finished, "a chunk without choices that is no usage chunk after the finish")
        counts(chunk["usage"], "prompt_tokens", "completion_tokens", "total_tokens")
        self._counted = True
