"""Messages: `message_start` with its usage, one block after the other, deltas that fit them, `message_delta`, `message_stop`, under their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from grammar.frames import Frame, Grammar, counts, is_object, must, named, shape

_ENDS = {"message_stop", "error"}
_MESSAGE = {
    "id": str,
    "type": {"message"},
    "role": {"assistant"},
    "model": str,
    "content": list,
    "stop_reason": str,
    "stop_sequence": str,
    "usage": dict,
}
_BLOCKS = {
    "text": ({"text": {""}}, {"citations": list}),
    "thinking": ({"thinking": {""}, "signature": {""}}, {}),
    "redacted_thinking": ({"data": str}, {}),
    "tool_use": ({"id": str, "name": str, "input": dict}, {"caller": dict}),
    "server_tool_use": ({"id": str, "name": str, "input": dict}, {"caller": dict}),
    "web_search_tool_result": ({"tool_use_id": str, "content": (list, dict)}, {"caller": dict}),
}
# By a delta: the blocks it belongs into, its member, and what that is.
_DELTAS = {
    "text_delta": ({"text"}, "text", str),
    "input_json_delta": ({"tool_use", "server_tool_use"}, "partial_json", str),
    "thinking_delta": ({"thinking"}, "thinking", str),
    "signature_delta": ({"thinking"}, "signature", str),
    "citations_delta": ({"text"}, "citation", dict),
}
# `other` is our word for an end that the API has none for: a client must not take it for a success.
_REASONS = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded", "other"}
_SOUND = {"end_turn", "stop_sequence", "tool_use"}
_SPENT = {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}
_ERRORS = {
    "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error", "request_too_large", "rate_limit_error",
    "api_error", "overloaded_error", "timeout_error", "conflict_error",
}  # fmt: skip


class Relayed(Grammar):
    """A provider's own stream: every event under its name, or the SDK skips it."""

    def ends(self, frame: Frame) -> bool:
        return frame.kind in _ENDS or (frame.broken and not frame.kind)

    def step(self, frame: Frame) -> None:
        must(frame.name == frame.kind, "an event under another name")


class _Block:
    """The block that is open."""

    def __init__(self, block: dict[str, Any], index: int) -> None:
        kind = block.get("type")
        must(kind in _BLOCKS, "a block of no known kind")
        need, may = _BLOCKS[kind]
        shape(block, f"a {kind} block", {"type": {kind}, **need}, may)
        named(block, f"a {kind} block", *(name for name in ("id", "name", "data", "tool_use_id") if name in need))
        must(not block.get("input"), "a call that begins with its input")
        self.kind, self.index = kind, index
        self.input: list[str] = []
        self.said = False
        self._signed = False

    def take(self, delta: dict[str, Any]) -> None:
        must(delta.get("type") in _DELTAS, "a delta of no known kind")
        kinds, member, value = _DELTAS[delta["type"]]
        must(self.kind in kinds, "a delta of another kind of block")
        shape(delta, "a delta", {"type": str, member: value})
        must(not self._signed, "more after the signature")
        self._signed = delta["type"] == "signature_delta"
        self.said |= bool(delta[member])
        if member == "partial_json":
            self.input.append(delta[member])

    def close(self) -> None:
        must(self.kind != "text" or self.said, "a text block without text")
        must(self.kind != "thinking" or self._signed, "thinking without its signature")

    @property
    def half(self) -> bool:
        return not is_object("".join(self.input))


class Written(Grammar):
    """A stream that we wrote."""

    def __init__(self, *, sound: bool = True) -> None:
        super().__init__(sound=sound)
        self._message: dict[str, Any] | None = None
        self._block: _Block | None = None
        self._begun = 0
        self._ids: set[str] = set()
        self._searches: list[str] = []
        self._calls = self._halves = 0
        self._reason: str | None = None

    def ends(self, frame: Frame) -> bool:
        return frame.kind in _ENDS

    def step(self, frame: Frame) -> None:
        must(frame.name == frame.kind, "an event under another name")
        must(frame.kind in self._steps, f"{frame.kind} inside a message")
        must(self._message or frame.kind in {"ping", "error", "message_start"}, "no message_start first")
        self._steps[frame.kind](self, frame.event)

    def _ping(self, event: dict[str, Any]) -> None:
        shape(event, "a ping", {"type": str})

    def _start(self, event: dict[str, Any]) -> None:
        must(self._message is None, "message_start inside a message")
        shape(event, "message_start", {"type": str, "message": dict})
        message = self._message = event["message"]
        shape(message, "a message", _MESSAGE, {"container": dict, "stop_details": dict})
        named(message, "a message", "id", "model")
        must(message["content"] == [], "content in message_start")
        must(message["stop_reason"] is message["stop_sequence"] is None, "an end in message_start")
        counts(message["usage"], "input_tokens", "output_tokens")

    def _block_start(self, event: dict[str, Any]) -> None:
        shape(event, "a block's start", {"type": str, "index": int, "content_block": dict})
        must(self._block is None, "a block inside a block")
        must(event["index"] == self._begun, "a block out of its order")
        must(self._reason is None, "a block after the reason")
        block = event["content_block"]
        self._block = _Block(block, self._begun)
        self._begun += 1
        self._search(block)
        if "id" in block:
            self._whole(block["id"] not in self._ids, "a block's id twice")
            self._ids.add(block["id"])

    def _search(self, block: dict[str, Any]) -> None:
        if block["type"] == "server_tool_use":
            self._searches.append(block["id"])
        if block["type"] == "web_search_tool_result":
            must(block["tool_use_id"] in self._searches, "results of no search, or twice")
            self._searches.remove(block["tool_use_id"])

    def _delta(self, event: dict[str, Any]) -> None:
        shape(event, "a delta's event", {"type": str, "index": int, "delta": dict})
        block = self._block
        must(block and event["index"] == block.index, "a delta outside its block")
        block.take(event["delta"])  # type: ignore[union-attr]

    def _block_stop(self, event: dict[str, Any]) -> None:
        shape(event, "a block's stop", {"type": str, "index": int})
        block, self._block = self._block, None
        must(block and event["index"] == block.index, "a stop of a block that is not open")
        block.close()  # type: ignore[union-attr]
        self._calls += block.kind == "tool_use"  # type: ignore[union-attr]
        self._halves += block.half  # type: ignore[union-attr]

    def _reasoned(self, event: dict[str, Any]) -> None:
        must(self._block is None, "message_delta inside a block")
        must(self._reason is None, "two reasons")
        shape(event, "message_delta", {"type": str, "delta": dict, "usage": dict})
        delta = event["delta"]
        shape(delta, "message_delta", {"stop_reason": _REASONS, "stop_sequence": str}, {"stop_details": dict, "container": dict})
        self._reason = delta["stop_reason"]
        must(self._reason, "an end without one reason")
        self._whole(self._reason != "tool_use" or self._calls, "a reason for calls, and no call")
        self._whole(self._reason not in _SOUND or not self._halves, "half a call in a finished answer")
        counts(event["usage"], "output_tokens")
        before = self._message["usage"]  # type: ignore[index]
        must(all(event["usage"].get(name, before.get(name, 0)) >= before.get(name, 0) for name in _SPENT), "usage that shrinks")

    def _stop(self, event: dict[str, Any]) -> None:
        must(self._reason is not None, "an end without one reason")
        shape(event, "message_stop", {"type": str})

    def _error(self, event: dict[str, Any]) -> None:
        must(self._reason is None, "an error after the reason")
        must(not self._halves, "half a call that was closed before an error")
        shape(event, "an error", {"type": str, "error": dict}, {"request_id": str})
        shape(event["error"], "an error", {"type": _ERRORS, "message": str}, {"details": dict})

    _steps: ClassVar[dict[str, Callable[[Written, dict[str, Any]], None]]] = {
        "ping": _ping,
        "message_start": _start,
        "content_block_start": _block_start,
        "content_block_delta": _delta,
        "content_block_stop": _block_stop,
        "message_delta": _reasoned,
        "message_stop": _stop,
        "error": _error,
    }
