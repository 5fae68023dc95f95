"""Two thousand requests through a served gateway, a random half of them cancelled: nothing is left behind, and every abort was felt upstream.

Clients and upstream are raw sockets of this thread's loop; the gateway has a loop of its own, so that its tasks can be counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import socket
import struct
import threading
from collections import Counter
from pathlib import Path

import pytest
import uvicorn

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.layers.exchange import Ending
from asgi_surface.server import settings

REQUESTS, AT_ONCE = 2_000, 48
CHAT = "openai-chat-completions"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
PADDING = "x" * 8_000  # OpenAI pads its chunks so
DESCRIPTORS = Path("/proc/self/fd")
MOMENTS = ["in the body", "at once", "soon", "in the answer", "unread"]


def event(choices, **more):
    data = b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices, **more}).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


PART = event([{"index": 0, "delta": {"content": "a"}, "finish_reason": None}])
FLOOD = event([{"index": 0, "delta": {"content": "a"}, "finish_reason": None}], obfuscation=PADDING)
END = event([{"index": 0, "delta": {}, "finish_reason": "stop"}]) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
ANSWER = json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}).encode()


class Plan:
    """What will happen to one request. A cancelled one is never answered whole, so that its abort must be felt wherever it arrived."""

    def __init__(self, number, dice):
        self.model = f"m-{number}"
        self.stream = dice.random() < 0.7
        self.moment = dice.choice(MOMENTS if self.stream else MOMENTS[:3]) if dice.random() < 0.5 else None
        self.events = dice.randint(1, 6)
        self.pause = dice.choice([0, 0, 0.001, 0.004])
        self.delay = dice.random() * 0.02
        self.reset = dice.random() < 0.5

    def request(self, port):
        body = json.dumps({"model": self.model, "messages": [{"role": "user", "content": "hi"}], "stream": self.stream}).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-length: %d\r\n"
        head += "content-type: application/json\r\nconnection: close\r\n\r\n"
        return (head % (port, len(body))).encode() + body


class Provider:
    """The raw upstream. Knows of each model that reached it whether it was answered whole or its connection was lost."""

    def __init__(self, plans):
        self.plans = {plan.model: plan for plan in plans}
        self.reached, self.answered, self.lost = set(), set(), set()
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
                await self.exchange(self.plans[json.loads(body)["model"]], reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()

    async def exchange(self, plan, reader, writer):
        self.reached.add(plan.model)
        try:
            await (self.streams(plan, reader, writer) if plan.stream else self.answers(plan, reader, writer))
        except OSError:
            self.lost.add(plan.model)
            raise
        self.answered.add(plan.model)

    async def streams(self, plan, reader, writer):
        writer.write(HEAD % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(plan.events):
            writer.write(PART)
            await asyncio.sleep(plan.pause)
        if plan.moment == "unread":
            writer.write(FLOOD * 64)
            await writer.drain()
        await self.hold(plan, reader)
        writer.write(END)
        await writer.drain()

    async def answers(self, plan, reader, writer):
        await asyncio.sleep(plan.pause)
        await self.hold(plan, reader)
        writer.write(HEAD % b"application/json" + b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
        await writer.drain()

    async def hold(self, plan, reader):
        """Keeps a request that is to be cancelled until the gateway leaves."""
        if plan.moment is not None:
            await reader.read(1)
            raise ConnectionResetError


class Served:
    """The gateway under uvicorn in a thread. `started` counts the requests that it was given."""

    def __init__(self, gateway):
        self.gateway, self.loop, self.started = gateway, None, 0
        self.server = uvicorn.Server(uvicorn.Config(self, **{**settings(port=0), "log_config": None, "timeout_graceful_shutdown": 2}))
        self.thread = threading.Thread(target=self.server.run)

    async def __call__(self, scope, receive, send):
        self.loop = asyncio.get_running_loop()
        self.started += scope["type"] == "http"
        await self.gateway(scope, receive, send)

    async def __aenter__(self):
        self.thread.start()
        await until(lambda: self.server.started)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.should_exit = True
        await asyncio.to_thread(self.thread.join)

    @property
    def pool(self):
        return self.gateway._running.upstreams._apps["up"]._pool

    def quiet(self):
        """Whether no request and no connection of a client is left."""
        return not self.server.server_state.connections and not self.server.server_state.tasks

    def standing(self):
        """What a storm must leave as it was: the gateway's tasks, the slots of its pool, and descriptors but those of idle connections."""
        idle = len(self.pool._idle)
        descriptors = len([*DESCRIPTORS.iterdir()]) - 2 * idle  # both ends of one are in this process
        return (
            sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks(self.loop)),
            self.pool._slots._value,
            len(self.pool._live) - idle,
            descriptors,
        )


async def until(holds, seconds=20):
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 -- the facts are another thread's, which tells nobody
            await asyncio.sleep(0.005)


async def client(plan, port):
    """One client: the answer, or what it had read when it left."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = plan.request(port)
    writer.write(request[:-9] if plan.moment == "in the body" else request)
    with contextlib.suppress(asyncio.IncompleteReadError):
        await moment(plan, reader)
    if plan.moment is None:
        answer = await reader.read()
    else:
        answer = None
        if plan.reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return answer


async def moment(plan, reader):
    if plan.moment in ("in the body", "soon", "unread"):
        await asyncio.sleep(plan.delay)
    elif plan.moment == "in the answer":
        for _ in range(plan.events):
            await reader.readuntil(b"data: ")


async def storm(plans, port, answers):
    waiting = iter(plans)

    async def worker():
        for plan in waiting:
            answers[plan.model] = await client(plan, port)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors where Linux shows them")
def test_a_storm_of_cancelled_requests_leaves_nothing_behind(routes):
    seed = int(os.environ.get("STORM_SEED", random.randrange(2**32)))
    print("STORM_SEED =", seed)  # noqa: T201 -- pytest shows it when the test fails
    dice = random.Random(seed)
    plans = [Plan(number, dice) for number in range(REQUESTS)]
    warm = [plan for plan in (Plan(-number, dice) for number in range(1, 99)) if plan.moment is None][:1]
    provider, records, answers = Provider([*plans, *warm]), [], {}

    async def main():
        raw = await asyncio.start_server(provider.serve, "127.0.0.1", 0, backlog=1024)
        text = routes(CHAT, upstream_model="{model}").replace('models = ["m"]', 'models = ["m-*"]')
        text = text.replace("127.0.0.1:9", f"127.0.0.1:{raw.sockets[0].getsockname()[1]}")
        async with Served(Gateway(catalog=build(text), record=records.append)) as served:
            await storm(warm, served.port, answers)
            await until(served.quiet)
            before = served.standing()
            await storm(plans, served.port, answers)
            await until(served.quiet)
            assert len(records) == served.started
            await until(lambda: provider.answered | provider.lost == provider.reached)
            await until(lambda: served.standing() == before)
            assert provider.connections < len(provider.answered), "whole answers leave their connection to others"
        await until(lambda: len(asyncio.all_tasks()) == 1)  # the provider's, which wait for the next request of an idle connection
        raw.close()
        await raw.wait_closed()
        return served

    served = asyncio.run(main())
    cancelled = {plan.model for plan in plans if plan.moment is not None}
    whole = {plan.model for plan in (*plans, *warm)} - cancelled
    assert REQUESTS // 3 < len(cancelled) < 2 * REQUESTS // 3
    assert provider.answered == whole
    assert provider.lost == provider.reached - whole
    assert len(provider.lost) > len(cancelled) // 2
    assert {model for model, answer in answers.items() if answer is not None} == whole
    assert all(b"[DONE]" in answers[model] or answers[model].endswith(ANSWER) for model in whole)
    assert len(records) == served.started
    planned = Counter(record.model for record in records if record.model)
    assert set(planned.values()) == {1}
    assert {record.model for record in records if record.ending is Ending.COMPLETED} == whole
    assert Counter(record.ending for record in records) == {Ending.COMPLETED: len(whole), Ending.DISCONNECTED: served.started - len(whole)}
    assert provider.reached <= planned.keys()
