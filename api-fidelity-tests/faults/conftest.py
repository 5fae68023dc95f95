"""A scripted raw-socket upstream, and one ASGI call as a test sees it. Nothing here knows HTTP beyond where a request ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import socket
import struct

import pytest
import trustme

from asgi_surface.errors import GatewayError


async def fin(upstream, reader, writer):
    """Ends the connection; over TLS with a close_notify."""
    writer.close()
    await upstream.gone(writer)


async def rst(upstream, reader, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    await upstream.gone(writer)


async def rip(upstream, reader, writer):
    """Over TLS: ends the connection without the close_notify that says so."""
    writer.transport.abort()
    await upstream.gone(writer)


async def hold(upstream, reader, writer):
    """Waits until the other side leaves."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


async def flood(upstream, reader, writer):
    """Chunks without end, as fast as they are taken."""
    while True:
        writer.write(b"8000\r\n%b\r\n" % (b"a" * 0x8000))
        await writer.drain()
        upstream.written += 0x8000


STEPS = {"fin": fin, "rst": rst, "rip": rip, "hold": hold, "flood": flood}


class Scripted:
    """Answers its n-th request by its n-th script, the last one for all later ones.

    A script is a tuple of steps: bytes are written, numbers are slept, names are `STEPS`. `deaf` scripts run as
    soon as the head is there, while the body is still on its way. `drip` writes byte by byte.
    """

    def __init__(self, *scripts, tls=None, drip=False, deaf=False):
        self.scripts, self.tls, self.drip, self.deaf = scripts, tls, drip, deaf
        self.requests = []
        self.connections = self.open = self.written = 0
        self.writers = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.tls, limit=2**20, backlog=256)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self.tls else 'http'}://localhost:{self.port}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        await self.until(lambda: self.open == 0)
        await self.server.wait_closed()

    async def until(self, holds):
        """Waits for a fact about the upstream."""
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 -- some of the facts are the engine's, which tells nobody
                await asyncio.sleep(0.001)

    async def gone(self, writer):
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def serve(self, reader, writer):
        self.connections += 1
        self.open += 1
        self.writers.append(writer)
        try:
            await self.exchanges(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            await self.gone(writer)
            self.open -= 1

    async def exchanges(self, reader, writer):
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            body = b"" if self.deaf or not length else await reader.readexactly(int(length[1]))
            self.requests.append(head + body)
            for step in self.scripts[min(len(self.requests), len(self.scripts)) - 1]:
                await self.step(step, reader, writer)

    async def step(self, step, reader, writer):
        if isinstance(step, str):
            await STEPS[step](self, reader, writer)
        elif isinstance(step, bytes):
            for at in range(0, len(step), 1 if self.drip else len(step)):
                writer.write(step[at:] if not self.drip else step[at : at + 1])
                await asyncio.sleep(0)
            await writer.drain()
        else:
            await asyncio.sleep(step)


class Answer:
    """What one call sent, and the `GatewayError` it raised."""

    def __init__(self):
        self.messages = []
        self.error = None

    @property
    def status(self):
        return self.messages[0]["status"] if self.messages else None

    @property
    def headers(self):
        return self.messages[0]["headers"]

    @property
    def body(self):
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def whole(self):
        return bool(self.messages) and self.messages[-1].get("more_body") is False

    @property
    def code(self):
        return self.error and self.error.code


async def call(app, body=b"{}", *, path=b"/v1/x", query=b"", headers=(), method="POST", send=None):
    """One call of an ASGI app, its body in two messages. A `path` of None leaves the scope's decoded one."""
    answer = Answer()
    parts = [{"type": "http.request", "body": body[:1], "more_body": True}, {"type": "http.request", "body": body[1:]}]

    async def receive():
        return parts.pop(0)

    async def keep(message):
        answer.messages.append(message)
        if send is not None:
            await send(message)

    scope = {"type": "http", "method": method, "path": "/a é/b:c", "raw_path": path, "query_string": query, "headers": list(headers)}
    try:
        await app(scope, receive, keep)
    except GatewayError as error:
        answer.error = error
    return answer


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture(name="call")
def fixture_call():
    return call


@functools.cache
def authority():
    return trustme.CA()


@pytest.fixture
def ca():
    """A certificate authority of this session."""
    return authority()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine to its end on the standard loop and on the one that servers use: their TLS and flow control differ."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else pytest.importorskip("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner.run
