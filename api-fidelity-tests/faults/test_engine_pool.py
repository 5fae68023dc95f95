"""What the engine keeps and gives back: connections, slots, back-pressure, and a clean house after callers that leave."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl

import pytest

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.upstream.connection import HIGH_WATER, Connection
from asgi_surface.upstream.http1 import HttpUpstream
from asgi_surface.upstream.pool import default_ssl_context

OK = b"HTTP/1.1 200 OK\r\n"
TWO = OK + b"content-length: 2\r\n\r\n{}"
NEXT = OK + b"content-length: 6\r\n\r\n{next}"
SSE = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b"data: {}\n\n"
CHUNK = b"a\r\n" + EVENT + b"\r\n"
END = b"0\r\n\r\n"


def idle(app):
    return len(app._pool._idle)


@pytest.mark.parametrize(
    ("base", "call_with", "sent"),
    [
        (
            "",
            {"body": b"{}", "headers": [(b"content-type", b"application/json"), (b"x", b"1"), (b"x", b"2")]},
            b"POST /v1/x HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\nx: 1\r\nx: 2\r\ncontent-length: 2\r\n\r\n{}",
        ),
        ("/prefix/", {"query": b"alt=sse&a=%2F"}, b"POST /prefix/v1/x?alt=sse&a=%%2F HTTP/1.1\r\nhost: %b\r\ncontent-length: 2\r\n\r\n{}"),
        ("", {"body": b"", "path": b"/m%2Fa:b"}, b"POST /m%%2Fa:b HTTP/1.1\r\nhost: %b\r\ncontent-length: 0\r\n\r\n"),
        ("", {"body": b"", "method": "GET"}, b"GET /v1/x HTTP/1.1\r\nhost: %b\r\n\r\n"),
        ("", {"body": b"", "method": "GET", "path": None}, b"GET /a%%20%%C3%%A9/b:c HTTP/1.1\r\nhost: %b\r\n\r\n"),
    ],
)
def test_the_request_goes_out_as_it_was_built(base, call_with, sent, scripted, call):
    async def main():
        async with scripted((TWO,)) as upstream:
            app = HttpUpstream(upstream.url + base)
            assert (await call(app, **call_with)).body == b"{}"
            await app.aclose()
            assert upstream.requests == [sent % f"localhost:{upstream.port}".encode()]

    asyncio.run(main())


@pytest.mark.parametrize(
    "call_with",
    [
        {"headers": [(b"x", b"1\r\nx-evil: 1")]},
        {"headers": [(b"x", b"1\n")]},
        {"headers": [(b"x\r", b"1")]},
        {"path": b"/a\r\nb"},
        {"path": b"/a b"},
        {"query": b"a HTTP/1.1"},
    ],
)
def test_a_head_that_would_be_two_is_never_sent(call_with, scripted, call):
    async def main():
        async with scripted((TWO,)) as upstream:
            app = HttpUpstream(upstream.url)
            with pytest.raises(ValueError, match="head of an upstream request"):
                await call(app, **call_with)
            assert upstream.connections == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host",
        "ftp://host",
        "http://",
        "http://u:p@host",
        "http://host?x=1",
        "http://host#x",
        "http://host:0",
        "http://host:99999",
        "http://é.test",
        "http://ho st",
        "http://host\n",
        "http://" + "a" * 64 + ".test",
    ],
)
def test_a_base_url_says_where_and_nothing_else(url):
    with pytest.raises(ValueError):  # noqa: PT011 -- the texts are partly urllib's
        HttpUpstream(url)


def test_a_caller_who_left_before_the_body_was_whole_is_not_served():
    async def receive():
        return {"type": "http.disconnect"}

    asyncio.run(HttpUpstream("http://127.0.0.1:9")({"method": "POST"}, receive, None))


def test_events_arrive_one_by_one_and_only_what_waited_comes_together(scripted, call):
    async def main():
        took = asyncio.Event()

        async def send(message):
            if message.get("body"):
                took.set()

        async with scripted((SSE, CHUNK, "hold")) as upstream:
            app = HttpUpstream(upstream.url)
            task = asyncio.create_task(call(app, send=send))
            await took.wait()
            assert not task.done()
            await app.aclose()
            answer = await task
            assert (answer.body, answer.code) == (EVENT, Code.UPSTREAM_TRUNCATED)

        async with scripted((SSE + CHUNK * 20_000 + END,)) as upstream:
            app = HttpUpstream(upstream.url)
            answer = await call(app)
            await app.aclose()
            assert answer.body == EVENT * 20_000
            assert len(answer.messages) < 2_000
            assert max(len(message["body"]) for message in answer.messages[1:]) <= 65_536

    asyncio.run(main())


def test_an_upstream_that_is_not_read_stops_sending(scripted, call, run):
    async def main():
        stalled, go = asyncio.Event(), asyncio.Event()

        async def send(message):
            if message.get("body"):
                stalled.set()
                await go.wait()

        async with scripted((SSE, "flood")) as upstream:
            app = HttpUpstream(upstream.url)
            task = asyncio.create_task(call(app, send=send))
            await stalled.wait()
            before = -1
            while upstream.written != before:
                before = upstream.written
                await asyncio.sleep(0.03)
            (connection,) = app._pool._live
            assert HIGH_WATER < len(connection._buffer) < HIGH_WATER * 2 + 65_536
            go.set()
            await upstream.until(lambda: upstream.written > before + 4_000_000)
            task.cancel()
            await asyncio.wait([task])
            await upstream.until(lambda: upstream.open == 0)
            await app.aclose()

    run(main())


def test_what_waits_is_delivered_although_the_connection_is_gone(scripted, call, run):
    """The reader falls behind, the upstream's connection ends: what had arrived still comes, then the cut."""

    async def main():
        stalled, go = asyncio.Event(), asyncio.Event()

        async def send(message):
            if message.get("body"):
                stalled.set()
                await go.wait()

        async with scripted((SSE, "flood")) as upstream:
            app = HttpUpstream(upstream.url)
            task = asyncio.create_task(call(app, send=send))
            await stalled.wait()
            (connection,) = app._pool._live
            await upstream.until(lambda: len(connection._buffer) > HIGH_WATER)
            kept = len(connection._buffer)
            await app.aclose()
            go.set()
            answer = await task
            assert answer.code is Code.UPSTREAM_TRUNCATED
            assert len(answer.body) == kept + len(answer.messages[1]["body"])

    run(main())


# what the upstream does once the answer is out, and what a second call then meets: body or code, requests, connections
STALE = {
    "closes while idle": ((TWO, "fin"), (b"{next}", None), 2, 2),
    "resets while idle": ((TWO, "rst"), (b"{next}", None), 2, 2),
    "speaks while idle": ((TWO, 0.001, b"HTTP/1.1 408 x\r\n\r\n", "hold"), (b"{next}", None), 2, 2),
}


@pytest.mark.parametrize("name", STALE)
def test_a_connection_that_died_while_idle_is_not_used(name, scripted, call, run):
    script, expected, requests, connections = STALE[name]

    async def main():
        async with scripted(script, (NEXT,)) as upstream:
            app = HttpUpstream(upstream.url)
            await call(app)
            await upstream.until(lambda: upstream.open == 0)
            answer = await call(app)
            await app.aclose()
            assert ((answer.body, answer.code), len(upstream.requests), upstream.connections) == (expected, requests, connections)

    run(main())


@pytest.mark.parametrize("greeting", [b"", TWO])
def test_a_connection_that_ends_or_speaks_before_the_request_gets_none(greeting):
    received = []

    async def greet(reader, writer):
        writer.write(greeting)
        writer.close()
        received.append(await reader.read())

    async def main():
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            where = server.sockets[0].getsockname()
            _, connection = await asyncio.get_running_loop().create_connection(Connection, *where)
            await connection.closed
            connection.begin(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(UpstreamError, match="did not answer in valid HTTP"):
                await connection.head()
            assert received == [b""]

    asyncio.run(main())


def test_an_end_that_the_loop_has_not_seen_is_seen_before_reuse(scripted, call, run):
    async def main():
        async with scripted((TWO,), (NEXT,)) as upstream:
            app = HttpUpstream(upstream.url)
            await call(app)
            assert idle(app) == 1
            with socket.socket(fileno=os.dup(upstream.writers[0].get_extra_info("socket").fileno())) as theirs:
                theirs.shutdown(socket.SHUT_RDWR)
            assert (await call(app)).body == b"{next}"  # without one turn of the loop in between
            await app.aclose()
            assert upstream.connections == 2

    run(main())


@pytest.mark.parametrize("ending", ["fin", "rst"])
def test_a_kept_connection_that_breaks_on_the_request_is_not_retried(ending, scripted, call):
    async def main():
        async with scripted((TWO,), (ending,)) as upstream:
            app = HttpUpstream(upstream.url)
            answers = [await call(app), await call(app)]
            await app.aclose()
            assert [answer.code for answer in answers] == [None, Code.UPSTREAM_PROTOCOL_ERROR]
            assert (len(upstream.requests), upstream.connections) == (2, 1)

    asyncio.run(main())


def test_idle_connections_are_used_last_in_first_out_and_expire(scripted, call):
    async def main():
        async with scripted((0.03, TWO), (TWO,), (TWO,)) as upstream:
            app = HttpUpstream(upstream.url, keepalive_seconds=0.1)
            await asyncio.gather(call(app), call(app))
            assert idle(app) == 2
            newest = app._pool._idle[-1]
            await call(app)
            assert app._pool._idle[-1] is newest
            await upstream.until(lambda: upstream.open == 0)
            assert (idle(app), upstream.connections) == (0, 2)
            await call(app)
            assert upstream.connections == 3
            await app.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(("reuse", "connections"), [(True, 1), (False, 2)])
def test_a_connection_after_a_stream(reuse, connections, scripted, call):
    async def main():
        async with scripted((SSE + CHUNK + END,)) as upstream:
            app = HttpUpstream(upstream.url, reuse_after_stream=reuse)
            assert [(await call(app)).body, (await call(app)).body] == [EVENT, EVENT]
            await app.aclose()
            assert upstream.connections == connections

    asyncio.run(main())


def test_a_request_waits_for_a_slot_but_not_for_ever(scripted, call):
    async def main():
        async with scripted((0.05, TWO), (TWO,), ("hold",)) as upstream:
            app = HttpUpstream(upstream.url, max_connections=1)
            answers = await asyncio.gather(call(app), call(app))
            assert [answer.body for answer in answers] == [b"{}", b"{}"]
            await app.aclose()

            app = HttpUpstream(upstream.url, max_connections=1, connect_seconds=0.05)
            held = asyncio.create_task(call(app))
            await upstream.until(lambda: len(upstream.requests) == 3)
            (refused,) = await asyncio.gather(call(app))
            assert (refused.code, refused.messages) == (Code.OVERLOADED, [])
            await app.aclose()
            assert (await held).code is Code.UPSTREAM_PROTOCOL_ERROR
            assert (len(upstream.requests), upstream.connections) == (3, 2)

    asyncio.run(main())


def test_closing_ends_what_is_idle_and_in_use_and_a_later_call_begins_anew(scripted, call, run):
    async def main():
        async with scripted((TWO,), ("hold",), ("hold",), (TWO,)) as upstream:
            app = HttpUpstream(upstream.url)
            await app.aclose()
            calls = [asyncio.create_task(call(app)) for _ in range(3)]
            await upstream.until(lambda: len(upstream.requests) == 3 and idle(app) == 1)
            await app.aclose()
            assert sorted(str(answer.code) for answer in await asyncio.gather(*calls)) == ["None", *["upstream_protocol_error"] * 2]
            await upstream.until(lambda: upstream.open == 0)
            assert (await call(app)).body == b"{}"
            await app.aclose()

    run(main())


def test_a_call_that_was_connecting_when_the_pool_closed_leaves_nothing_behind(scripted, call):
    async def main():
        async with scripted((TWO,)) as upstream:
            app = HttpUpstream(upstream.url)
            task = asyncio.create_task(call(app))
            await asyncio.sleep(0)
            pool = app._pool
            await app.aclose()
            assert (await task).body == b"{}"
            await upstream.until(lambda: upstream.open == 0)
            assert not pool._idle

    asyncio.run(main())


def test_several_loops_one_after_the_other(scripted, call):
    app = None

    async def main(close):
        nonlocal app
        async with scripted((OK + b"connection: close\r\ncontent-length: 2\r\n\r\n{}",)) as upstream:
            app = app or HttpUpstream(upstream.url)
            app._url = app._url._replace(netloc=f"localhost:{upstream.port}")
            answer = await call(app)
            if close:
                await app.aclose()
            return answer.body

    assert [asyncio.run(main(close)) for close in (False, False, True, True)] == [b"{}"] * 4
    asyncio.run(main(close=False))
    asyncio.run(app.aclose())


def test_nagle_is_off_and_tls_is_current(scripted, call):
    async def main():
        async with scripted((TWO,)) as upstream:
            app = HttpUpstream(upstream.url)
            await call(app)
            (connection,) = app._pool._live
            assert connection._transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await app.aclose()

    asyncio.run(main())
    assert default_ssl_context().minimum_version is ssl.TLSVersion.TLSv1_2
    assert default_ssl_context().verify_mode is ssl.CERT_REQUIRED


def test_a_dripping_head_ends_when_the_caller_says(scripted, call):
    async def main():
        async with scripted((OK + b"x: ", *[0.005, b"a"] * 10_000)) as upstream:
            app = HttpUpstream(upstream.url)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await call(app)
            await upstream.until(lambda: upstream.open == 0)
            await app.aclose()

    asyncio.run(main())


def test_callers_who_leave_at_any_moment_leave_nothing_behind(scripted, call, run):
    """600 calls over 20 workers; every second one is cancelled: while the body is read, connecting, waiting, streaming or sending."""
    dice = random.Random(7)

    async def one(app):
        async def send(message):
            await asyncio.sleep(dice.random() * 0.002)

        task = asyncio.create_task(call(app, b"x" * dice.choice([2, 300_000]), send=send))
        if dice.random() < 0.5:
            await asyncio.sleep(dice.random() * 0.012)
            task.cancel()
        await asyncio.wait([task])
        return "cancelled" if task.cancelled() else task.result().body

    async def main():
        scripts = [(TWO,), (0.002, SSE, *[CHUNK, 0.001] * 4, END), (0.004, TWO), (OK + b"content-length: 5\r\n\r\n{}", 0.01, "fin")]
        async with scripted(*dice.choices(scripts, [4, 4, 4, 1], k=600), (TWO,)) as upstream:
            app = HttpUpstream(upstream.url, max_connections=16)

            async def worker():
                return [await one(app) for _ in range(30)]

            ends = [end for part in await asyncio.gather(*(worker() for _ in range(20))) for end in part]
            pool = app._pool
            await upstream.until(lambda: upstream.open == len(pool._idle))
            assert {task.get_coro().__name__ for task in asyncio.all_tasks()} <= {"main", "serve"}
            assert len(pool._live) == len(pool._idle) == upstream.open
            assert pool._slots._value == 16
            assert len(ends) == 600
            assert set(ends) <= {"cancelled", b"{}", EVENT * 4}
            assert 150 < ends.count("cancelled") < 400
            await app.aclose()
            assert not pool._live

    run(main())
