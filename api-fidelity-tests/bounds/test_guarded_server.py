"""What `asgi-surface serve` answers to hostile, slow and leaving clients, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import signal
import ssl
from types import SimpleNamespace

import pytest
import trustme
import uvicorn
import uvloop

from asgi_surface import server
from asgi_surface.server import GuardedHttpTools, serve, settings

PROBE = b"GET /probe HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
HEAD = b"POST /a HTTP/1.1\r\nhost: x\r\n"
TWO = b"content-length: 2\r\n\r\n{}"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
LONG = b"a" * 100_000


class Impatient(GuardedHttpTools):
    HEAD_SECONDS = BODY_SECONDS = STALL_SECONDS = 0.25


class Watching(GuardedHttpTools):
    STALL_SECONDS = 0.02


class Recorder:
    """An application that reads the whole request, notes it under the client's port, and says `ok`."""

    def __init__(self) -> None:
        self.seen: dict[int, list[tuple]] = {}

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await lifespan(scope, receive, send)
        before, body = list(scope["headers"]), await read(receive)
        assert list(scope["headers"]) == before
        assert b"authorization" not in dict(before)  # of no request here, only of a trailer
        self.seen.setdefault(scope["client"][1], []).append((scope["raw_path"], body))
        if body is not None:
            await answer(send)
        return None


async def lifespan(_scope, receive, send):
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})


async def read(receive):
    """The whole request body, or None when the client left before its end."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body, more = body + message["body"], message["more_body"]
    return body


async def answer(send, status=200, body=b"ok"):
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def until(condition):
    """Poll, because what is waited for happens inside the server."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def running(app, protocol=GuardedHttpTools, **options):
    """The port of a server of `app` with the settings of `serve`, on a free port of this loop."""
    config = uvicorn.Config(app, **{**settings(port=0), "http": protocol, "log_config": None, **options})
    machine = uvicorn.Server(config)
    task = asyncio.create_task(machine.serve())
    await until(lambda: machine.started)
    try:
        yield machine.servers[0].sockets[0].getsockname()[1]
    finally:
        machine.should_exit = True
        await task


def plain(handler):
    """An application of one coroutine function `handler(scope, receive, send)`, with a lifespan."""

    async def app(scope, receive, send):
        await (lifespan if scope["type"] == "lifespan" else handler)(scope, receive, send)

    return app


class Told(asyncio.Protocol):
    """Keeps what the server wrote, also when it ends with a reset, as it does where it closes on a client that still writes."""

    def __init__(self) -> None:
        self.said = b""
        self.over = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.said += data

    def eof_received(self) -> None:
        self.over.set()

    def connection_lost(self, _why: Exception | None) -> None:
        self.over.set()


async def talk(port, *pieces, pause=0.0, **options):
    """Send the pieces, then wait for the end: the client's own port and everything the server wrote."""
    transport, told = await asyncio.get_running_loop().create_connection(Told, "127.0.0.1", port, **options)
    local = transport.get_extra_info("sockname")[1]
    for piece in pieces:
        if not told.over.is_set():
            transport.write(piece)
            await asyncio.sleep(pause)
    async with asyncio.timeout(5):
        await told.over.wait()
    transport.close()
    return local, told.said


def statuses(said):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)]


# A request that the application never sees, and its answer.
REFUSED = {
    "content-length and chunks": (
        HEAD + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
    ),
    "chunks and content-length": (
        HEAD + b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
    ),
    "two lengths": (HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x", 400),
    "one length twice": (HEAD + b"content-length: 2\r\n" + TWO, 400),
    "length list": (HEAD + b"content-length: 2, 2\r\n\r\n{}", 400),
    "length +2": (HEAD + b"content-length: +2\r\n\r\n{}", 400),
    "length -1": (HEAD + b"content-length: -1\r\n\r\n", 400),
    "length 0x2": (HEAD + b"content-length: 0x2\r\n\r\n{}", 400),
    "length 10^23": (HEAD + b"content-length: 99999999999999999999999\r\n\r\n{}", 400),
    "coding xchunked": (HEAD + b"transfer-encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "coding identity": (HEAD + b"transfer-encoding: identity\r\n" + TWO, 400),
    "coding gzip, chunked": (HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "coding chunked, identity": (HEAD + b"transfer-encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "coding twice": (HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "coding, space, colon": (HEAD + b"transfer-encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "chunks on 1.0": (b"POST /a HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "no host": (b"POST /a HTTP/1.1\r\n" + TWO, 400),
    "two hosts": (HEAD + b"host: y\r\n" + TWO, 400),
    "two hosts on 1.0": (b"POST /a HTTP/1.0\r\nhost: x\r\nhost: y\r\n" + TWO, 400),
    "host with path": (b"POST /a HTTP/1.1\r\nhost: x/v1\r\n" + TWO, 400),
    "host with user": (b"POST /a HTTP/1.1\r\nhost: u@x\r\n" + TWO, 400),
    "bare line feeds": (b"POST /a HTTP/1.1\nhost: x\ncontent-length: 2\n\n{}", 400),
    "folded header": (HEAD + b"x-a: b\r\n c\r\n" + TWO, 400),
    "NUL in header": (HEAD + b"x-a: b\0\r\n" + TWO, 400),
    "CR in header": (HEAD + b"x-a: b\rc\r\n" + TWO, 400),
    "absolute target": (b"POST http://evil/a HTTP/1.1\r\nhost: x\r\n" + TWO, 404),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 404),
    "CONNECT": (b"CONNECT evil:443 HTTP/1.1\r\nhost: evil\r\n\r\n", 400),
    "CONNECT to a path": (b"CONNECT /a HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    "space in target": (b"POST /a b HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    "raw UTF-8 in target": ("POST /é HTTP/1.1\r\nhost: x\r\n".encode() + TWO, 400),
    "lower-case method": (b"post /a HTTP/1.1\r\nhost: x\r\n" + TWO, 400),
    "PRI": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "version 0.9": (b"GET /a HTTP/0.9\r\nhost: x\r\n\r\n", 400),
    "version 1.2": (b"POST /a HTTP/1.2\r\nhost: x\r\n" + TWO, 400),
    "version 2.0": (b"POST /a HTTP/2.0\r\nhost: x\r\n" + TWO, 400),
    "TLS hello": (b"\x16\x03\x01\x02\x00", 400),
    "upgrade to h2c": (HEAD + b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAAA\r\n" + TWO, 400),
    "upgrade not named": (HEAD + b"connection: close, x-hop\r\nte: trailers\r\nupgrade: h2c\r\nexpect: 100-continue\r\n" + TWO, 400),
    "upgrade to websocket": (b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 400),
    "unknown expectation": (HEAD + b"expect: tea\r\n" + TWO, 417),
    "target of 9 KB": (b"POST /" + b"a" * 9_000 + b" HTTP/1.1\r\nhost: x\r\n" + TWO, 414),
    "target of 100 KB": (b"POST /" + LONG, 414),
    "header of 17 KB": (HEAD + b"x: " + b"a" * 17_000 + b"\r\n" + TWO, 431),
    "header of 100 KB": (HEAD + b"x: " + LONG, 431),
    "header name of 100 KB": (HEAD + LONG, 431),
    "101 headers": (HEAD + b"".join(b"x-%d: a\r\n" % n for n in range(99)) + TWO, 431),
    "5000 headers": (HEAD + b"".join(b"x-%d: a\r\n" % n for n in range(5_000)) + TWO, 431),
    "33 KB of headers": (HEAD + b"".join(b"x-%d: %b\r\n" % (n, b"a" * 3_000) for n in range(11)) + TWO, 431),
}

# A request whose head is good and whose body is not: the application sees the client leave, and nothing is read as another request.
BROKEN = {
    "chunk size zz": (CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n", 400),
    "chunk size 2^64": (CHUNKED + b"10000000000000000\r\n{}\r\n0\r\n\r\n", 400),
    "chunk of more": (CHUNKED + b"2\r\n{}XX0\r\n\r\n", 400),
    "chunk, bare line feeds": (CHUNKED + b"2\n{}\n0\n\n", 400),
    "chunk extension of 100 KB": (CHUNKED + b"2;" + LONG, 431),
    "trailer of 100 KB": (CHUNKED + b"2\r\n{}\r\n0\r\nx: " + LONG, 431),
    "trailers of 100 KB": (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"x: y\r\n" * 16_000, 431),
}

# A request that is served, and what the application sees of it.
SERVED = {
    "plain": (HEAD + TWO, (b"/a", b"{}")),
    "no body": (HEAD + b"\r\n", (b"/a", b"")),
    "GET with a body": (b"GET /a HTTP/1.1\r\nhost: x\r\n" + TWO, (b"/a", b"{}")),
    "chunks": (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", (b"/a", b"{}")),
    "chunk extension": (CHUNKED + b"2;x=y\r\n{}\r\n0\r\n\r\n", (b"/a", b"{}")),
    "coding after a tab": (HEAD + b"transfer-encoding:\tChunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", (b"/a", b"{}")),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\nauthorization: evil\r\nhost: evil\r\n\r\n", (b"/a", b"{}")),
    "100 headers": (HEAD + b"".join(b"x-%d: a\r\n" % n for n in range(98)) + TWO, (b"/a", b"{}")),
    "encoded slash": (b"POST /v1%2fchat/..%2f HTTP/1.1\r\nhost: x\r\n" + TWO, (b"/v1%2fchat/..%2f", b"{}")),
    "dots": (b"POST /v1/../admin HTTP/1.1\r\nhost: [::1]:80\r\n" + TWO, (b"/v1/../admin", b"{}")),
    "bad escape": (b"POST /%zz%ff HTTP/1.1\r\nhost: x\r\n" + TWO, (b"/%zz%ff", b"{}")),
    "line break before": (b"\r\n" + HEAD + TWO, (b"/a", b"{}")),
    "body of 300 KB": (HEAD + b"content-length: 300000\r\n\r\n" + LONG * 3, (b"/a", LONG * 3)),
}


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_each_request_has_one_reading(loop):
    """Behind every request comes a probe on the same connection: it is served when the request was, and never read as part of it."""
    app = Recorder()

    async def all_of_them():
        async with running(app) as port:
            cases = {**REFUSED, **BROKEN, **SERVED}
            return dict(zip(cases, await asyncio.gather(*(talk(port, raw, PROBE) for raw, _ in cases.values())), strict=True))

    with asyncio.Runner(loop_factory=loop) as runner:
        told = runner.run(all_of_them())
    found = {name: (statuses(said), app.seen.get(local, [])) for name, (local, said) in told.items()}
    assert found == {
        **{name: ([status], []) for name, (_, status) in REFUSED.items()},
        **{name: ([status], [(b"/a", None)]) for name, (_, status) in BROKEN.items()},
        **{name: ([200, 200], [request, (b"/probe", b"")]) for name, (_, request) in SERVED.items()},
    }
    head, _, body = told["two hosts"][1].partition(b"\r\n\r\n")
    assert {b"connection: close", b"x-surface-error: unsupported_request", b"content-type: application/json"} <= set(head.split(b"\r\n"))
    assert json.loads(body)["error"]["message"] == "exactly one well-formed Host header is required"


def test_an_old_client_without_host_is_served_once():
    async def old():
        async with running(Recorder()) as port:
            return await talk(port, b"POST /a HTTP/1.0\r\n" + TWO, PROBE)

    _, said = asyncio.run(old())
    assert statuses(said) == [200]


# What a client sends, piece by piece and slower than its deadline, and the answers it gets before the server closes.
WAITING = {
    "silent": ([b""], []),
    "half a head": ([HEAD], []),
    "head in drips": ([HEAD, *[b"x-a: b\r\n"] * 20], []),
    "line break after a request": ([HEAD + TWO, b"\r\n"], [200]),
    "half a second head": ([HEAD + TWO, b"POST /b"], [200]),
    "no body": ([HEAD + b"content-length: 20\r\n\r\n"], [408]),
    "body in drips": ([HEAD + b"content-length: 20\r\n\r\n", *[b"x"] * 15], [408]),
    "chunks in drips": ([CHUNKED, *[b"1\r\nx\r\n"] * 15], [408]),
}


def test_a_client_that_keeps_the_server_waiting_is_closed():
    async def wait():
        async with running(Recorder(), Impatient) as port:
            return await asyncio.gather(*(talk(port, *pieces, pause=0.03) for pieces, _ in WAITING.values()))

    told = dict(zip(WAITING, asyncio.run(wait()), strict=True))
    assert {name: statuses(said) for name, (_, said) in told.items()} == {name: expected for name, (_, expected) in WAITING.items()}


def test_what_the_application_lets_wait_is_not_the_clients_fault():
    """A large body whose reading we paused, and half a next head behind a long answer, both outlive their deadlines."""

    async def late(_scope, receive, send):
        await asyncio.sleep(Impatient.BODY_SECONDS * 1.6)
        await answer(send, body=b"%d" % len(await read(receive)))

    async def wait():
        async with running(plain(late), Impatient) as port:
            return await talk(port, HEAD + b"content-length: 1000000\r\n\r\n" + LONG * 10, b"POST /b")

    _, said = asyncio.run(wait())
    assert said.endswith(b"\r\n\r\n1000000")


def test_an_early_answer_lets_the_connection_live():
    """The body of a request that is answered already is read past; the next is served, and then the keep-alive timer runs."""

    async def early(_scope, _receive, send):
        await answer(send, 413)

    async def wait():
        async with running(plain(early), timeout_keep_alive=0.1) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(2):
                writer.write(HEAD + b"content-length: 4\r\n\r\n12")
                assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 413 ")
                writer.write(b"34")
            assert await reader.read() == b""
            writer.close()

    asyncio.run(wait())


def test_pipelined_requests_are_answered_in_order():
    async def name(scope, receive, send):
        await read(receive)
        await answer(send, body=scope["raw_path"])

    async def pipeline():
        async with running(plain(name)) as port:
            return await talk(port, b"".join(b"GET /%02d HTTP/1.1\r\nhost: x\r\n\r\n" % n for n in range(30)), PROBE)

    _, said = asyncio.run(pipeline())
    assert [part[:3] for part in said.split(b"\r\n\r\n")[1:-1]] == [b"/%02d" % n for n in range(30)]
    assert said.endswith(b"/probe")


@pytest.mark.parametrize(
    ("rest", "begun"),
    [
        pytest.param(HEAD + TWO, False, id="leaves"),
        pytest.param(b"garbage\r\n\r\n", False, id="sends garbage"),
        pytest.param(b"garbage\r\n\r\n", True, id="sends garbage into an answer"),
        pytest.param(CHUNKED + b"zz\r\n", True, id="sends a bad body into an answer"),
    ],
)
def test_a_request_under_way_sees_its_client_go(rest, begun):
    """Whatever stands behind it in the pipeline; and no error is written where its answer would be."""
    seen = []

    async def waiting(_scope, receive, send):
        await read(receive)
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
        seen.append("waiting")
        seen.append((await receive())["type"])

    async def leave():
        async with running(plain(waiting)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + TWO)
            await until(lambda: seen)
            writer.write(rest)
            await writer.drain()
            if rest.endswith(b"{}"):
                writer.close()
            said = await reader.read()
            await until(lambda: len(seen) == 2)
            writer.close()
            return said

    assert statuses(asyncio.run(leave())) == ([200] if begun else [])
    assert seen == ["waiting", "http.disconnect"]


def test_a_bad_body_ends_an_answer_that_has_begun():
    async def eager(_scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        assert await read(receive) is None

    async def wait():
        async with running(plain(eager)) as port:
            return await talk(port, CHUNKED, b"zz\r\n", pause=0.1)

    _, said = asyncio.run(wait())
    assert statuses(said) == [200]
    assert said.endswith(b"part\r\n")


def test_a_reader_that_stops_is_cut_off():
    left = asyncio.Event()

    async def endless(_scope, receive, send):
        await read(receive)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.create_task(receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        left.set()

    async def stare():
        async with running(plain(endless), Impatient) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(HEAD + TWO)
            async with asyncio.timeout(5):
                await left.wait()
            writer.close()

    asyncio.run(stare())
    assert left.is_set()


def test_a_slow_reader_is_not_cut_off():
    """As long as the buffer shrinks the reader is alive; a full resume stops the clock."""
    sizes, aborted = [9, 5, 3, 3], []
    transport = SimpleNamespace(get_write_buffer_size=lambda: sizes.pop(0), abort=lambda: aborted.append(len(sizes)), close=lambda: None)
    transport.get_extra_info = lambda _: None

    async def watch():
        protocol = Watching(uvicorn.Config(Recorder(), log_config=None), uvicorn.server.ServerState(), {})
        protocol.connection_made(transport)
        protocol.pause_writing()
        await until(lambda: aborted)
        sizes.append(1)
        protocol.pause_writing()
        protocol.resume_writing()
        await asyncio.sleep(Watching.STALL_SECONDS * 2)
        protocol.connection_lost(None)

    asyncio.run(watch())
    assert aborted == [0]


def test_over_tls_refusals_arrive_and_plain_text_is_closed(tmp_path):
    authority = trustme.CA()
    chain = tmp_path / "server.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(chain)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    async def both():
        async with running(Recorder(), ssl_certfile=chain) as port:
            return await talk(port, REFUSED["two hosts"][0], ssl=trust, server_hostname="localhost"), await talk(port, HEAD + TWO)

    (_, refused), (_, plain_text) = asyncio.run(both())
    assert statuses(refused) == [400]
    assert b"HTTP" not in plain_text


def test_serve_says_where_it_listens_and_ends_on_a_signal(capsys):
    async def app(scope, receive, send):
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
        await lifespan(scope, receive, send)

    try:
        serve(app, port=0)
    finally:
        for name in server.LOGGING["loggers"]:  # handlers of this test's captured stderr
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.NOTSET)
    assert capsys.readouterr().err.startswith("listening on http://127.0.0.1:")


def test_serve_takes_no_ones_word_for_who_they_are():
    chosen = settings(host="::1", port=1)
    assert (chosen["host"], chosen["port"]) == ("::1", 1)
    assert not any(chosen[name] for name in ("access_log", "server_header", "proxy_headers"))
