"""What every test may ask for: a scripted upstream that counts its calls, a gateway around it, and a client that drives the ASGI callable.

httpx's ASGITransport buffers whole answers, so nothing here uses it.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from asgi_surface import Gateway, Outcome
from asgi_surface.catalog import Catalog, build

# A busy machine is no reason to fail: examples are bounded by number, never by time.
settings.register_profile("surface", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("surface")

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
BINDING_PATHS = {
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    MESSAGES: "/v1/messages",
    GEMINI: "/v1beta/models/{model}:{method}",
}
PLAIN = ["streaming", "tools", "parallel-tools", "reasoning", "images", "files", "structured-output"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="write what is generated instead of comparing it; review the diff")


@pytest.fixture
def accept(request) -> bool:
    """Whether generated files are to be rewritten."""
    return request.config.getoption("--accept")


@dataclass
class Call:
    """One request that reached the upstream."""

    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Upstream:
    """An ASGI app that answers every call with `status`, `headers` and `chunks`; an exception among the chunks is raised there.

    A number among the chunks is a pause in seconds. `fails` is raised in place of the head. `calls` are the requests that reached it; `cancelled`
    counts calls that were cut short.
    """

    chunks: Sequence[bytes | float | Exception] = ()
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"application/json"),)
    whole: bool = True
    fails: Exception | None = None
    calls: list[Call] = field(default_factory=list)
    cancelled: int = 0

    async def __call__(self, scope, receive, send):
        body = (await receive())["body"]
        query = scope["query_string"].decode()
        self.calls.append(Call(scope["raw_path"].decode() + (f"?{query}" if query else ""), scope["headers"], body))
        try:
            await self.answer(send)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def answer(self, send):
        if self.fails is not None:
            raise self.fails
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, float):
                await asyncio.sleep(chunk)
            else:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if self.whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass
class Reply:
    """What the client got, with every ASGI message of it; `received` counts the calls of `receive`."""

    messages: list[dict[str, Any]]
    received: int = 0

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode("latin-1") for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def whole(self) -> bool:
        """Started once, ended once, and nothing after the end."""
        kinds = [message["type"] for message in self.messages]
        ends = [index for index, message in enumerate(self.messages) if index and not message.get("more_body", False)]
        return kinds.count("http.response.start") == 1 and kinds[0] == "http.response.start" and ends == [len(kinds) - 1]


@dataclass(frozen=True)
class Wire:
    """How one surface's clients ask, and what its upstream says: a good answer, streamed and not, and an error."""

    surface: str
    path: str
    body: dict[str, Any]
    document: bytes
    frames: tuple[bytes, ...]
    error: bytes
    stream_path: str = ""
    media: str = "text/event-stream; charset=utf-8"

    def ask(self, *, stream: bool, **members: Any) -> tuple[str, dict[str, Any]]:
        """Path and body of a request."""
        path, asked = (self.stream_path, {}) if stream and self.stream_path else (self.path, {"stream": True} if stream else {})
        return path, {**self.body, **asked, **members}

    def events(self, body: bytes) -> list[Any]:
        """The data of a stream that was read to its end. `[DONE]` is one too."""
        if self.media == "application/json":
            return json.loads(body)
        *frames, rest = body.decode().split("\n\n")
        assert rest == ""
        data = ["\n".join(line[6:] for line in frame.split("\n") if line.startswith("data: ")) for frame in frames]
        return [one if one == "[DONE]" else json.loads(one) for one in data if one]

    def end(self, body: bytes) -> str:
        """How the stream ended, `end` or `error`: said once, at its end. Gemini has no terminal but the end of the body."""
        told = [_terminal(event) for event in self.events(body)]
        said = [one for one in told if one] or ["end"] * (self.surface == GEMINI)
        assert len(said) == 1
        assert told[-1] == said[0] or self.surface == GEMINI
        return said[0]


def _terminal(event: Any) -> str:
    kind = "" if event == "[DONE]" else event.get("type")
    if event == "[DONE]" or kind in ("response.completed", "message_stop"):
        return "end"
    return "error" if kind in ("response.failed", "error") or "error" in event else ""


def _sse(*events: dict[str, Any], named: bool = True) -> tuple[bytes, ...]:
    return tuple((f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)


def _chat() -> Wire:
    def chunk(choices, **more):
        return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "up-model", "choices": choices, **more}

    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    said = chunk([{"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}])
    done = chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    answer = chunk([{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], object="chat.completion", usage=usage)
    return Wire(
        CHAT,
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
        json.dumps(answer).encode(),
        (*_sse(said, done, chunk([], usage=usage), named=False), b"data: [DONE]\n\n"),
        b'{"error": {"message": "too fast", "type": "requests", "param": null, "code": "rate_limit_exceeded"}}',
    )


def _responses() -> Wire:
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    said = {"type": "output_text", "text": "Hi", "annotations": []}
    text = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [said]}
    answer = {"id": "r", "object": "response", "status": "completed", "output": [text], "usage": usage}
    begun = text | {"status": "in_progress", "content": []}
    frames = _sse(
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "object": "response", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": begun},
        {"type": "response.output_text.delta", "sequence_number": 2, "item_id": "i", "output_index": 0, "content_index": 0, "delta": "Hi"},
        {"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": text},
        {"type": "response.completed", "sequence_number": 4, "response": answer},
    )
    error = b'{"error": {"message": "too fast", "type": "requests", "param": null, "code": "rate_limit_exceeded"}}'
    return Wire(RESPONSES, "/v1/responses", {"model": "m", "input": "hi"}, json.dumps(answer).encode(), frames, error)


def _messages() -> Wire:
    message = {"id": "a", "type": "message", "role": "assistant", "model": "up-model", "content": [], "stop_reason": None, "stop_sequence": None}
    begun = {**message, "usage": {"input_tokens": 3, "output_tokens": 1}}
    answer = {**message, "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 2}}
    frames = _sse(
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
    error = b'{"type": "error", "error": {"type": "rate_limit_error", "message": "too fast"}}'
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return Wire(MESSAGES, "/v1/messages", body, json.dumps(answer).encode(), frames, error)


def _gemini(*, array: bool) -> Wire:
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "index": 0}]}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    done = {"candidates": [{"content": {"role": "model", "parts": [{"text": "!"}]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    elements = (b"[" + json.dumps(said).encode(), b"\n,\r\n" + json.dumps(done).encode(), b"\n]\n")
    return Wire(
        GEMINI,
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        json.dumps(done).encode(),
        elements if array else _sse(said, done, named=False),
        b'{"error": {"code": 429, "message": "too fast", "status": "RESOURCE_EXHAUSTED"}}',
        "/v1beta/models/m:streamGenerateContent" + ("" if array else "?alt=sse"),
        "application/json" if array else "text/event-stream; charset=utf-8",
    )


@pytest.fixture(scope="session")
def wires() -> dict[str, Wire]:
    """The wire of each surface by its name, and Gemini's other stream as `array`."""
    found = (_chat(), _responses(), _messages(), _gemini(array=False))
    return {**{one.surface: one for one in found}, "array": _gemini(array=True)}


@pytest.fixture
def upstream() -> Callable[..., Upstream]:
    """Makes scripted upstreams."""
    return Upstream


@pytest.fixture
def routes() -> Callable[..., str]:
    """Writes a route file: one route `up:model` for model `m` (or `models`), with a binding for each surface given."""

    def write(
        *surfaces: str,
        features: Sequence[str] = PLAIN,
        top: str = "",
        route: str = "",
        binding: str = "",
        models: Sequence[str] = ("m",),
        upstream_model: str = "up-model",
    ) -> str:
        lines = ['[auth]\nmode = "host"\n' if "[auth]" not in top else "", top, '[providers.up]\nbase_url = "http://127.0.0.1:9"\n']
        names = json.dumps(list(models))
        lines.append(f'[[routes]]\nroute_id = "up:model"\nmodels = {names}\nupstream_model = "{upstream_model}"\nprovider = "up"\n{route}')
        listed = json.dumps(list(features))
        for surface in surfaces or (CHAT, RESPONSES, MESSAGES, GEMINI):
            head = f'[[routes.api_bindings]]\nsurface = "{surface}"\npath = "{BINDING_PATHS[surface]}"'
            lines.append(f"{head}\nfeatures = {listed}\n{binding}")
        return "\n".join(lines)

    return write


_built = functools.cache(build)  # a catalog is frozen, and most tests want one of a few


@pytest.fixture
def catalog(routes) -> Callable[..., Catalog]:
    """Builds the catalog of such a route file."""
    return lambda *surfaces, **options: _built(routes(*surfaces, **options))


@pytest.fixture
def records() -> list[Outcome]:
    """The outcomes that the gateways of this test recorded."""
    return []


@pytest.fixture
def gateway(catalog, records) -> Callable[..., Gateway]:
    """Makes a gateway in front of a scripted upstream."""

    def make(app, *surfaces: str, fallback=None, candidates=None, short_paths=None, **options: Any) -> Gateway:
        built = catalog(*surfaces, **options)
        return Gateway(fallback, catalog=built, upstream=app, record=records.append, candidates=candidates, short_paths=short_paths)

    return make


@pytest.fixture
def apart() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine in a loop and a thread of its own.

    CPython 3.11 loses trace events where a cancellation unwinds coroutines, and with them coverage its place in the thread.
    """

    def run(coroutine):
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, coroutine).result()

    return run


# The grammar of each surface's streams, by the wire's own rules; a broken one is an AssertionError that names it. Shares nothing with the package.


def _blocks(body: bytes) -> list[tuple[str | None, str]]:
    """Event name and data of each block of an SSE body that has data."""
    text = body.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n").replace("\r", "\n")
    assert not text or text.endswith("\n\n"), "an unfinished block"
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        fields = [(name, value.removeprefix(" ")) for name, _, value in (line.partition(":") for line in lines)]
        data = [value for name, value in fields if name == "data"]
        if data:
            found.append((next((value for name, value in fields if name == "event"), None), "\n".join(data)))
    return found


def _objects(texts: Sequence[str]) -> list[dict[str, Any]]:
    found = [json.loads(text) for text in texts]
    assert all(isinstance(one, dict) for one in found), "a frame that is no object"
    return found


def _typed(body: bytes, *, named: bool) -> list[dict[str, Any]]:
    """The events of a surface that names them."""
    blocks = _blocks(body)
    events = _objects([data for _, data in blocks])
    for (name, _), event in zip(blocks, events, strict=True):
        assert name == event.get("type") or (name is None and not named), "an event under another name"
    return events


def _ends(events: Sequence[Any], terminals: Callable[[Any], bool]) -> None:
    places = [place for place, event in enumerate(events) if terminals(event)]
    assert places, "no terminal"
    assert len(places) == 1, "two terminals"
    assert places == [len(events) - 1], "something after the terminal"


def _chat_grammar(body: bytes) -> None:
    blocks = _blocks(body)
    told = [data if data == "[DONE]" else _objects([data])[0] for _, data in blocks]
    assert not any(name for (name, _), event in zip(blocks, told, strict=True) if "error" not in event), "a named chunk"
    _ends(told, lambda event: event == "[DONE]" or bool(event.get("error")))
    chunks = told[:-1]
    ids = {chunk.get("id") for chunk in chunks}
    assert len(ids) == 1 or not chunks, "two ids"
    assert all(ids), "no id"
    for member in ("object", "created", "model"):
        assert len({chunk.get(member) for chunk in chunks}) <= 1, f"two values of {member}"
    finished: set[int] = set()
    calls: dict[int, list[int]] = {}
    counted = False
    for chunk in chunks:
        assert not counted, "something after the usage chunk"
        counted = not chunk["choices"]
        assert not counted or (chunk.get("usage") and finished), "a chunk without choices that is no usage chunk after the finish"
        for choice in chunk["choices"]:
            index = choice["index"]
            assert index not in finished, "a choice goes on after its finish"
            assert index in calls or choice["delta"].get("role") == "assistant", "no role first"
            for call in choice["delta"].get("tool_calls") or ():
                _call_grammar(call, calls.setdefault(index, []))
            calls.setdefault(index, [])
            finished |= {index} if choice.get("finish_reason") else set()
    assert told[-1] != "[DONE]" or (calls and finished == set(calls)), "an end without a finish"


def _call_grammar(call: dict[str, Any], seen: list[int]) -> None:
    said = call.get("function") or call.get("custom") or {}
    if call["index"] in seen:
        assert not call.get("id"), "a call's id twice"
        assert not said.get("name"), "a call's name twice"
        return
    assert call["index"] == len(seen), "a call out of its order"
    assert call.get("id"), "a call without its id"
    assert said.get("name"), "a call without its name"
    seen.append(call["index"])


_PIECES = {
    "text_delta": {"text"},
    "input_json_delta": {"tool_use", "server_tool_use"},
    "thinking_delta": {"thinking"},
    "signature_delta": {"thinking"},
    "citations_delta": {"text"},
    "compaction_delta": {"compaction"},
}


def _messages_grammar(body: bytes) -> None:
    events = [event for event in _typed(body, named=True) if event["type"] != "ping"]
    _ends(events, lambda event: event["type"] in {"message_stop", "error"})
    if len(events) > 1:
        assert events[0]["type"] == "message_start", "no message_start first"
        assert {"input_tokens", "output_tokens"} <= events[0]["message"]["usage"].keys(), "no usage in message_start"
        assert events[0]["message"]["content"] == [], "content in message_start"
    kind, number, sealed, reasons = None, 0, False, 0
    searches: list[str] = []
    for event in events[1:-1]:
        match event["type"]:
            case "content_block_start":
                assert kind is None, "a block inside a block"
                assert event["index"] == number, "a block out of its order"
                assert not reasons, "a block after the reason"
                kind, sealed = event["content_block"]["type"], False
                _search_grammar(event["content_block"], searches)
            case "content_block_delta":
                assert (kind is not None, event["index"]) == (True, number), "a delta outside its block"
                assert kind in _PIECES[event["delta"]["type"]], "a delta of another kind of block"
                assert not sealed, "more after the signature"
                sealed = event["delta"]["type"] == "signature_delta"
            case "content_block_stop":
                assert (kind is not None, event["index"]) == (True, number), "a stop of a block that is not open"
                kind, number = None, number + 1
            case "message_delta":
                assert kind is None, "message_delta inside a block"
                reasons += bool(event["delta"].get("stop_reason"))
            case other:
                raise AssertionError(f"{other} inside a message")
    assert events[-1]["type"] == "error" or reasons == 1, "an end without one reason"


def _search_grammar(block: dict[str, Any], asked: list[str]) -> None:
    """A search that the server runs: its block, and later one with what it gave."""
    if block["type"] == "server_tool_use":
        assert block.get("id"), "a search without its id"
        assert block.get("name"), "a search without its name"
        asked.append(block["id"])
    if block["type"] == "web_search_tool_result":
        assert block.get("tool_use_id") in asked, "results of no search, or twice"
        asked.remove(block["tool_use_id"])
        assert "content" in block, "results without their content"


_PINGS = {"keepalive", "ping"}
_WHOLE = ("text", "arguments", "input", "refusal")
_SAME = ("id", "type", "call_id", "name")
_PLACE = ("output_index", "content_index", "summary_index", "annotation_index")
_SEARCH = "response.web_search_call"
_BEFORE = {"in_progress": None, "searching": "in_progress", "completed": "searching"}


def _responses_grammar(body: bytes) -> None:
    events = [event for event in _typed(body, named=False) if event["type"] not in _PINGS]
    numbers = [event.get("sequence_number") for event in _typed(body, named=False) if event["type"] not in _PINGS or "sequence_number" in event]
    assert numbers == list(range(len(numbers))), "sequence numbers with gaps"
    ends = {"response.completed", "response.incomplete", "response.failed", "error"}
    _ends(events, lambda event: event["type"] in ends)
    if events[0]["type"] == "error":
        return
    assert events[0]["type"] == "response.created", "no response.created first"
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1, "two response ids"
    announced: dict[int, Any] = {}
    done: dict[int, Any] = {}
    strands: dict[tuple[Any, ...], str | None] = {}
    for event in events:
        _item_grammar(event, announced, done, strands)
    if events[-1]["type"] == "error":
        return
    whole, output = [done[index] for index in sorted(done)], events[-1]["response"]["output"]
    failed = events[-1]["type"] == "response.failed"
    assert output == whole or (failed and all(item in whole for item in output)), "another output than the items that were done"
    assert failed or done.keys() == announced.keys(), "an end with an item that is not done"


def _item_grammar(event: dict[str, Any], announced: dict[int, Any], done: dict[int, Any], strands: dict[tuple[Any, ...], str | None]) -> None:
    place, kind = event.get("output_index"), event["type"]
    if place is None:
        return
    if kind == "response.output_item.added":
        assert place == len(announced), "an item out of its order"
        assert event["item"]["id"] not in {item["id"] for item in announced.values()}, "an item's id twice"
        announced[place] = event["item"]
        return
    assert place in announced, "an item that was not announced"
    assert place not in done, "more of an item that is done"
    if kind == "response.output_item.done":
        assert [event["item"].get(name) for name in _SAME] == [announced[place].get(name) for name in _SAME], "another item than was announced"
        done[place] = event["item"]
        return
    assert event["item_id"] == announced[place]["id"], "another item's id"
    _strand_grammar(event, kind.rpartition("."), announced[place], strands)


def _strand_grammar(event: dict[str, Any], kind: tuple[str, str, str], item: dict[str, Any], strands: dict[tuple[Any, ...], str | None]) -> None:
    """One text, one argument string, one content part or one search of an item: deltas or steps, then what they make, once."""
    stem, _, step = kind
    key = (stem, *(event.get(name) for name in _PLACE))
    if stem == _SEARCH:
        assert item["type"] == "web_search_call", "a step of another kind of item"
        assert strands.get(key) == _BEFORE[step], "a search's steps out of their order"
        strands[key] = step
    elif step in {"added", "delta"}:
        assert strands.get(key, "") is not None, "more of what is done"
        assert step == "delta" or key not in strands, "a part announced twice"
        strands[key] = (strands.get(key) or "") + (event["delta"] if step == "delta" else "")
    elif step == "done":  # pragma: no branch -- other hosted tools have steps of their own
        assert strands.get(key, "") is not None, "done twice"
        whole = next((event[name] for name in _WHOLE if name in event), strands.get(key, ""))
        assert whole == strands.get(key, whole), "another text than its deltas"
        strands[key] = None


def _gemini_grammar(body: bytes, *, array: bool) -> None:
    blocks = [] if array else _blocks(body)
    assert not any(name for name, data in blocks if '"error"' not in data), "a named chunk"
    chunks = json.loads(body) if array else _objects([data for _, data in blocks])
    assert all(isinstance(chunk, dict) for chunk in chunks), "a frame that is no object"
    _candidates_grammar(chunks)
    spent = 0
    for chunk in chunks:
        total = chunk.get("usageMetadata", {}).get("totalTokenCount", spent)
        assert total >= spent, "usage that shrinks"
        spent = total
        parts = [part for one in chunk.get("candidates", ()) for part in one.get("content", {}).get("parts", ())]
        assert all(call["name"] for call in (part["functionCall"] for part in parts if "functionCall" in part)), "a call without its name"


def _candidates_grammar(chunks: Sequence[dict[str, Any]]) -> None:
    """Each candidate ends once, and the last that is said is an end: of a candidate, of all (an error) or of none (a blocked prompt)."""
    seen: set[int] = set()
    finished: set[int] = set()
    broken = False
    for chunk in chunks:
        assert not broken, "something after the terminal"
        broken = "error" in chunk or "blockReason" in chunk.get("promptFeedback", {})
        assert not broken or not seen or seen != finished, "two terminals"
        for one in chunk.get("candidates", ()):
            index, reason = one.get("index", 0), one.get("finishReason")
            assert index not in finished, "two terminals" if reason else "something after the terminal"
            seen.add(index)
            finished |= {index} if reason else set()
    assert broken or (seen and seen == finished), "no terminal"
    assert broken or any(one.get("finishReason") for one in chunks[-1].get("candidates", ())), "something after the terminal"


_GRAMMARS = {CHAT: _chat_grammar, RESPONSES: _responses_grammar, MESSAGES: _messages_grammar, GEMINI: functools.partial(_gemini_grammar, array=False)}
_STREAMS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES, ":streamGenerateContent": GEMINI}


def _check(surface: str, body: bytes, *, array: bool = False) -> None:
    if array:
        _gemini_grammar(body, array=True)
    else:
        _GRAMMARS[surface](body)


def _check_reply(path: str, reply: Reply) -> None:
    """A stream that was ended, whichever test asked for it."""
    surface = next((name for end, name in _STREAMS.items() if path.endswith(end)), None)
    media = reply.headers.get("content-type", "") if reply.messages and reply.status == 200 and reply.whole else ""
    array = surface == GEMINI and media.startswith("application/json") and reply.body.lstrip().startswith(b"[")  # a dry run tells an object
    if surface and (array or media.startswith("text/event-stream")):
        _check(surface, reply.body, array=array)


@pytest.fixture(scope="session")
def grammar() -> Callable[..., None]:
    """Holds a client's whole stream against its surface's grammar: `grammar(surface, body, array=False)`."""
    return _check


@pytest.fixture
def ask(apart) -> Callable[..., Reply]:
    """Drives an ASGI app with one request. `leave` seconds after the body the client leaves; `extra` goes into the scope. A stream is held against
    its surface's grammar, but with `grammar=False`: for native relays of what an upstream is made to say wrongly.

    `inbox` are the messages the server has instead of the one body; `sink` is awaited for each message before it counts as sent. Nothing may be
    left running, and nothing may have failed behind the request's back.
    """

    def send(app, path: str, body: Any = None, *, headers: Sequence[tuple[str, str]] = (), grammar: bool = True, **options: Any) -> Reply:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        reply = apart(one(app, path, raw, headers, **options))
        if grammar:
            _check_reply(path.partition("?")[0], reply)
        return reply

    async def one(app, path, raw, headers, *, method="POST", leave=None, inbox=None, sink=None, **extra) -> Reply:
        target, _, query = path.partition("?")
        given = {name.lower() for name, _ in headers}
        usual = [("content-type", "application/json"), ("host", "testserver")]
        pairs = [*(pair for pair in usual if pair[0] not in given), *headers]
        scope = {
            "type": "http", "method": method, "path": target, "raw_path": target.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs], **extra,
        }  # fmt: skip
        reply, failures = Reply([]), []
        waiting = list(inbox or ({"type": "http.request", "body": raw, "more_body": False},))
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

        async def receive():
            reply.received += 1
            if waiting:
                return waiting.pop(0)
            await (asyncio.Event().wait() if leave is None else asyncio.sleep(leave))
            return {"type": "http.disconnect"}

        async def collect(message):
            if sink is not None:
                await sink(message)
            reply.messages.append(message)

        async with asyncio.timeout(10):
            await app(scope, receive, collect)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert failures == []
        return reply

    return send
