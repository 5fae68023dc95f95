"""What every test may ask for: a scripted upstream that counts its calls, a gateway around it, and a client that drives the ASGI callable.

httpx's ASGITransport buffers whole answers, so nothing here uses it.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from grammar import check
from grammar.watch import Watch
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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ungrammatical(reason): the test's streams may break their surface's grammar, for this reason")


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


# Every stream of every test is held against its surface's grammar.


@pytest.fixture(scope="session")
def grammar() -> Callable[..., None]:
    """Holds a client's whole stream against its surface's grammar: `grammar(surface, body, array=False, relayed=False)`."""
    return check


@pytest.fixture(scope="session")
def watch() -> Iterator[Watch]:
    """What sees every stream of this process."""
    one = Watch()
    with one.installed():
        yield one
    one.drain()


@pytest.fixture(autouse=True)
def _grammatical(request: pytest.FixtureRequest, watch: Watch) -> Iterator[None]:
    """Whoever asks and however: what a client got is a stream of its surface, or the test is marked `ungrammatical` with its reason."""
    mark = request.node.get_closest_marker("ungrammatical")
    watch.test, watch.excused = request.node.nodeid, mark is not None and bool(mark.args[0])
    yield
    watch.drain()


@pytest.fixture
def ask(apart, watch) -> Callable[..., Reply]:
    """Drives an ASGI app with one request. `leave` seconds after the body the client leaves; `extra` goes into the scope. A stream is held against
    its surface's grammar at once.

    `inbox` are the messages the server has instead of the one body; `sink` is awaited for each message before it counts as sent. Nothing may be
    left running, and nothing may have failed behind the request's back.
    """

    def send(app, path: str, body: Any = None, *, headers: Sequence[tuple[str, str]] = (), **options: Any) -> Reply:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        reply = apart(one(app, path, raw, headers, **options))
        watch.drain()
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
