"""A search back end on a loopback port, upstreams that answer round by round, and a gateway between them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from asgi_surface import Gateway
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

FOUND = {
    "results": [
        {"url": "https://a.example/one", "title": "One", "content": "First."},
        {"url": "https://b.example/two", "title": "Two", "content": "Second."},
    ]
}


@dataclass
class Search:
    """The back end. `answers` gives status and body by query, `delay` seconds before each; `asked` are method, target, headers and body."""

    url: str = ""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def queries(self) -> list[str]:
        return [parse_qs(urlsplit(target).query).get("q", [""])[0] for _, target, _, _ in self.asked]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        self.asked.append((handler.command, handler.path, {name.lower(): value for name, value in handler.headers.items()}, body))
        time.sleep(self.delay)
        query = parse_qs(urlsplit(handler.path).query).get("q", [""])[0]
        status, said = self.answers.get(query, (200, json.dumps(FOUND).encode()))
        handler.send_response(status)
        for name, value in {"content-length": str(len(said)), **self.headers}.items():
            handler.send_header(name, value)
        with contextlib.suppress(OSError):  # the gateway may have left
            handler.end_headers()
            handler.wfile.write(said)


@pytest.fixture(scope="session")
def engine() -> Iterator[tuple[str, list[Search]]]:
    """The server of the back end, and in a list the one that answers now."""
    now = [Search()]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            now[0].answer(self)

        do_POST = do_GET  # noqa: N815 -- the server's name for it

        def log_message(self, *_):
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/search", now
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def search(engine) -> Search:
    """The back end of this test."""
    url, now = engine
    now[0] = Search(url)
    return now[0]


# What upstreams say. A round is (text, calls, stop); a call is (name, arguments as JSON text).


@dataclass(frozen=True)
class Said:
    """One round's answer."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    stop: str = ""
    used: tuple[int, int] = (10, 4)
    thought: str = ""
    usage: dict[str, Any] | None = None

    @property
    def reason(self) -> str:
        return self.stop or ("calls" if self.calls else "end")


def _chat(said: Said, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reason = {"end": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter"}[said.reason]
    calls = [
        {"id": f"call_{number}_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(said.calls)
    ]
    thought = {"reasoning_content": said.thought} if said.thought else {}
    message = {"role": "assistant", "content": said.text or None, **thought, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": said.used[0], "completion_tokens": said.used[1], "total_tokens": sum(said.used)}
    usage = usage if said.usage is None else said.usage
    base = {"id": f"c{number}", "created": 0, "model": "up-model"}
    document = {**base, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": said.thought}] if said.thought else []
    deltas += [{"content": said.text}] if said.text else []
    for index, call in enumerate(calls):
        function = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": call["function"]["arguments"]}}]})
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": reason}]
    frames = [{**base, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
    return document, [*frames, {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}]


def _responses(said: Said, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    items: list[dict[str, Any]] = []
    if said.thought:
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": said.thought}]})
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content})
    for index, (name, arguments) in enumerate(said.calls):
        place = f"{number}_{index}"
        call = {"type": "function_call", "id": f"fc_{place}", "call_id": f"call_{place}", "name": name, "arguments": arguments, "status": "completed"}
        items.append(call)
    why = {"length": "max_output_tokens", "filter": "content_filter"}.get(said.reason)
    ended = {"status": "incomplete", "incomplete_details": {"reason": why}} if why else {"status": "completed"}
    usage = {"input_tokens": said.used[0], "output_tokens": said.used[1], "total_tokens": sum(said.used)}
    document = {"id": f"r{number}", "object": "response", **ended, "output": items, "usage": usage}
    begun = {"id": f"r{number}", "object": "response", "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {"function_call": {"arguments": ""}, "message": {"content": []}, "reasoning": {"summary": []}}[item["type"]]
        events.append({"type": "response.output_item.added", "output_index": index, "item": item | empty})
        if item["type"] == "function_call":
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]})
        elif item["type"] == "message":
            events.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": said.text})
        else:
            events.append({"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": said.thought})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.incomplete" if why else "response.completed", "response": document})
    return document, [event | {"sequence_number": place} for place, event in enumerate(events)]


def _messages(said: Said, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reason = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "refusal"}[said.reason]
    blocks: list[dict[str, Any]] = []
    if said.thought:
        blocks.append({"type": "thinking", "thinking": said.thought, "signature": f"sig{number}"})
    blocks += [{"type": "text", "text": said.text}] if said.text else []
    for index, (name, arguments) in enumerate(said.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": arguments})
    base = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "up-model", "stop_sequence": None}
    usage = {"input_tokens": said.used[0], "output_tokens": said.used[1]}
    whole = [block | {"input": json.loads(block["input"])} if block["type"] == "tool_use" and _whole(block["input"]) else block for block in blocks]
    document = {**base, "content": whole, "stop_reason": reason, "usage": usage}
    begun = {**base, "content": [], "stop_reason": None, "usage": {"input_tokens": said.used[0], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        kind = block["type"]
        empty = {"tool_use": {"input": {}}, "text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}[kind]
        deltas = {
            "tool_use": [{"type": "input_json_delta", "partial_json": block.get("input")}],
            "text": [{"type": "text_delta", "text": block.get("text")}],
            "thinking": [{"type": "thinking_delta", "thinking": said.thought}, {"type": "signature_delta", "signature": block.get("signature")}],
        }[kind]
        events.append({"type": "content_block_start", "index": index, "content_block": block | empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": said.used[1]}})
    return document, [*events, {"type": "message_stop"}]


def _whole(text: str) -> bool:
    return text.endswith("}")


def _gemini(said: Said, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reason = {"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}[said.reason]
    parts: list[dict[str, Any]] = [{"text": said.thought, "thought": True}] if said.thought else []
    parts += [{"text": said.text}] if said.text else []
    parts += [{"functionCall": {"name": name, "args": json.loads(arguments)}} for name, arguments in said.calls if _whole(arguments)]
    usage = {"promptTokenCount": said.used[0], "candidatesTokenCount": said.used[1], "totalTokenCount": sum(said.used)}
    base = {"modelVersion": "up-model", "responseId": f"g{number}"}
    last = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
    frames = [{**base, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts]
    ended = {**base, "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reason, "index": 0}], "usageMetadata": usage}
    return {**base, "candidates": [last], "usageMetadata": usage}, [*frames, ended]


SAYS = {CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages, GEMINI: _gemini}


def wire(surface: str, said: Said, number: int, *, stream: bool) -> bytes:
    """A round's answer as its upstream sends it."""
    document, events = SAYS[surface](said, number)
    if not stream:
        return json.dumps(document).encode()
    named = surface in (RESPONSES, MESSAGES)
    frames = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*frames, "data: [DONE]\n\n" if surface == CHAT else ""]).encode()


@dataclass
class Model:
    """An upstream that says one thing a call. A round may be the bytes of an answer, or an exception. `streams` overrides what was asked for."""

    surface: str
    rounds: Sequence[Any]
    streams: bool | None = None
    calls: list[Any] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    async def __call__(self, scope, receive, send):
        body = (await receive())["body"]
        query = scope["query_string"].decode()
        self.targets.append(scope["raw_path"].decode() + (f"?{query}" if query else ""))
        self.raw.append(body)
        self.calls.append(json.loads(body))
        said = self.rounds[len(self.calls) - 1]
        if isinstance(said, Exception):
            raise said
        asked = self.calls[-1].get("stream", False) or "stream" in self.targets[-1]
        stream = asked if self.streams is None else self.streams
        out = said if isinstance(said, bytes) else wire(self.surface, said, len(self.calls), stream=stream)
        media = b"text/event-stream" if stream else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", media)]})
        for chunk in out.split(b"\n\n") if stream else [out]:
            await send({"type": "http.response.body", "body": chunk + (b"\n\n" if stream and chunk else b""), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


ASKS: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "news?"}], "web_search_options": {}},
    RESPONSES: {"model": "m", "input": "news?", "tools": [{"type": "web_search"}]},
    MESSAGES: {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "news?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "news?"}]}], "tools": [{"googleSearch": {}}]},
}
FEATURES = ["streaming", "tools", "parallel-tools", "reasoning", "encrypted-reasoning", "images", "structured-output", "mid-conversation-system"]


@pytest.fixture
def configured(search) -> str:
    """The table of the route file, with keys added by `more`."""
    return f'[interceptors.web_search]\nenabled = true\nurl = "{search.url}"\n'


@pytest.fixture
def run(ask, catalog, configured, wires, records):
    """One request of a client through a gateway to a model that answers in rounds. Gives the reply, the model and the record."""

    def one(client, upstream, *rounds, stream=False, more="", hooks=(), body=None, members=None, headers=(), features=None, model=None, **options):
        given = list(FEATURES if features is None else features)
        given = [name for name in given if name != "encrypted-reasoning" or upstream != CHAT]
        given = [name for name in given if name != "mid-conversation-system" or upstream != GEMINI]
        binding = options.pop("binding", "")
        built = catalog(upstream, features=given, top=configured + more, binding=binding, upstream_model=options.pop("upstream_model", "up-model"))
        up = model or Model(upstream, rounds)
        wire_ = wires[client]
        path = options.pop("path", wire_.stream_path if stream and wire_.stream_path else wire_.path)
        asked = {**ASKS["gemini-generate-content" if client == "array" else client], **(members or {})}
        if stream and not wire_.stream_path:
            asked["stream"] = True
        for name in options.pop("without", ()):
            del asked[name]
        app = Gateway(catalog=built, upstream=up, record=records.append, interceptors=hooks)
        reply = ask(app, path, asked if body is None else body, headers=headers, **options)
        return reply, up, records.pop()

    one.said, one.model = Said, Model
    return one
