"""The real model by the real llama.cpp: one answer and one stream on each surface, and a stop that leaves nothing behind."""

import asyncio
import json
import signal
import threading

import pytest

from asgi_surface.errors import UpstreamError
from asgi_surface.upstream import llama
from asgi_surface.upstream.llama import ALIAS, CONTEXT, Llama

pytestmark = pytest.mark.skipif(Llama().unavailable() is not None, reason=str(Llama().unavailable()))

MESSAGES = [{"role": "user", "content": "Say hi"}]
SURFACES = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 4, "temperature": 0},
    "/v1/responses": {"input": "Say hi", "max_output_tokens": 4, "temperature": 0},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 4, "temperature": 0},
}
LAST = {
    "/v1/chat/completions": "[DONE]",
    "/v1/responses": "response.completed",
    "/v1/messages": "message_stop",
}


@pytest.fixture(scope="module")
def runner():
    """SIGINT is Python's before the model starts: a shell's background job is begun with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with asyncio.Runner() as runner:
        yield runner
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def model(runner):
    model = Llama()
    runner.run(model.warm())
    yield model
    runner.run(model.aclose())


@pytest.mark.parametrize("path", SURFACES)
def test_one_answer(model, runner, exchange, path):
    status, headers, body = runner.run(exchange(model, path, {"model": "any", **SURFACES[path]}))
    answer = json.loads(body)
    usage = answer["usage"]
    assert (status, headers[b"content-type"].split(b";")[0], answer["model"]) == (200, b"application/json", ALIAS)
    assert usage.get("output_tokens", usage.get("completion_tokens")) == 4


@pytest.mark.parametrize("path", SURFACES)
def test_one_stream(model, runner, exchange, path):
    status, headers, body = runner.run(exchange(model, path, {"model": "any", "stream": True, **SURFACES[path]}))
    data = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    assert (status, headers[b"content-type"].split(b";")[0]) == (200, b"text/event-stream")
    assert LAST[path] in (data[-1], json.loads(data[-1] if data[-1] != "[DONE]" else "{}").get("type"))
    assert len(data) > 4


def test_counting_and_context(model, runner, exchange):
    status, _, body = runner.run(exchange(model, "/v1/messages/count_tokens", {"model": "any", "messages": MESSAGES}))
    assert (status, json.loads(body)["input_tokens"] > 2) == (200, True)
    over = {"messages": [{"role": "user", "content": "a " * (CONTEXT + 1)}]}
    status, _, body = runner.run(exchange(model, "/v1/chat/completions", over))
    assert (status, json.loads(body)["error"]["n_ctx"]) == (400, CONTEXT)


def test_an_answer_without_a_limit_ends(runner, exchange, monkeypatch):
    monkeypatch.setattr(llama, "UNASKED", 12)
    model = Llama()
    status, _, body = runner.run(exchange(model, "/v1/chat/completions", {"messages": MESSAGES, "ignore_eos": True}))
    runner.run(model.aclose())
    answer = json.loads(body)
    assert (status, answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == (200, "length", 12)


def test_signals_are_still_pythons(model):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("stream", [False, True])
def test_stopping_cuts_calls_under_way_and_leaves_no_socket(exchange, stream):
    endless = {"messages": MESSAGES, "max_tokens": 4000, "ignore_eos": True, "stream": stream}

    async def main():
        model = Llama()
        await model.warm()
        port = int(model._start.result()._server.listening_address.rsplit(":", 1)[1])
        call = asyncio.create_task(exchange(model, "/v1/chat/completions", endless))
        await asyncio.sleep(0.3)
        assert not call.done()
        await model.aclose()
        with pytest.raises(UpstreamError):
            await call
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    before = threading.active_count()
    asyncio.run(main())
    assert threading.active_count() == before
