"""What the engine makes of every answer an upstream can give: the fault matrix, row by row, whole and byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import pytest

from asgi_surface.errors import Code
from asgi_surface.upstream.http1 import HttpUpstream

PROTOCOL = Code.UPSTREAM_PROTOCOL_ERROR
TRUNCATED = Code.UPSTREAM_TRUNCATED
UNREACHABLE = Code.UPSTREAM_UNREACHABLE

OK = b"HTTP/1.1 200 OK\r\n"
TWO = OK + b"content-length: 2\r\n\r\n{}"
SSE = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b"data: {}\n\n"
CHUNK = b"a\r\n" + EVENT + b"\r\n"
END = b"0\r\n\r\n"
NEXT = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n{next}"
EVIL = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL"

# name: script, status, body, whether the connection carries the next request
WHOLE = {
    "length": ((TWO,), 200, b"{}", True),
    "no body at all": ((OK + b"content-length: 0\r\n\r\n",), 200, b"", True),
    "no reason phrase": ((b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}",), 200, b"{}", True),
    "chunked": ((SSE + CHUNK + CHUNK + END,), 200, EVENT + EVENT, True),
    "chunked in parts": ((SSE, 0.001, CHUNK[:5], 0.001, CHUNK[5:], 0.001, END), 200, EVENT, True),
    "chunk extension": ((SSE + b"3;a=b\r\nabc\r\n" + END,), 200, b"abc", True),
    "trailers": ((SSE + CHUNK + b"0\r\nset-cookie: a=b\r\n\r\n",), 200, EVENT, True),
    "trailers after a large head": ((OK + b"x: " + b"a" * 9_000 + b"\r\n" + SSE[17:] + CHUNK + b"0\r\na: b\r\n\r\n",), 200, EVENT, True),
    "100": ((b"HTTP/1.1 100 Continue\r\n\r\n" + TWO,), 200, b"{}", True),
    "103 three times": ((b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 3, 0.001, TWO), 200, b"{}", True),
    "redirect": ((b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",), 302, b"", True),
    "204": ((b"HTTP/1.1 204 No Content\r\n\r\n",), 204, b"", True),
    "304 with a length": ((b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",), 304, b"", True),
    "529": ((b"HTTP/1.1 529 Overloaded\r\ncontent-length: 2\r\n\r\n{}",), 529, b"{}", True),
    "1.0 kept alive": ((b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}",), 200, b"{}", True),
    "1.0 closed": ((b"HTTP/1.0 200 OK\r\n\r\n{}", "fin"), 200, b"{}", False),
    "1.1 closed": ((OK + b"\r\n{}", 0.001, b"{}", "fin"), 200, b"{}{}", False),
    "1.0 with length": ((b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",), 200, b"{}", False),
    "connection: close": ((OK + b"connection: close\r\ncontent-length: 2\r\n\r\n{}", "hold"), 200, b"{}", False),
    "surplus byte": ((TWO + b"x",), 200, b"{}", False),
    "surplus letter of a head": ((TWO + b"H",), 200, b"{}", False),
    "surplus after close": ((OK + b"connection: close\r\ncontent-length: 2\r\n\r\n{}" + EVIL,), 200, b"{}", False),
    "forged answer": ((TWO + EVIL,), 200, b"{}", False),
    "forged answer after chunks": ((SSE + CHUNK + END + EVIL,), 200, EVENT, False),
    "forged answer later": ((TWO, 0.005, EVIL), 200, b"{}", False),
    "204 with a body": ((b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n{}",), 204, b"", False),
    "304 with chunks": ((b"HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n" + END,), 304, b"", False),
    "closed after the answer": ((TWO, "fin"), 200, b"{}", False),
    "reset after the answer": ((TWO, 0.005, "rst"), 200, b"{}", False),
}

# name: script, code, the bytes that came before; a head that was complete is delivered
BROKEN = {
    "accept, close": (("fin",), PROTOCOL, None),
    "accept, reset": (("rst",), PROTOCOL, None),
    "half a status line": ((b"HTTP/1.1 20", "fin"), PROTOCOL, None),
    "half a header": ((OK + b"content-ty", "fin"), PROTOCOL, None),
    "only 100": ((b"HTTP/1.1 100 Continue\r\n\r\n", "fin"), PROTOCOL, None),
    "nine informational": ((b"HTTP/1.1 103 x\r\n\r\n" * 9 + TWO,), PROTOCOL, None),
    "101": ((b"HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n{}",), PROTOCOL, None),
    "header of 64 KiB": ((OK + b"x: " + b"a" * 65_536 + b"\r\n\r\n",), PROTOCOL, None),
    "headers of 64 KiB": ((OK + b"x: aaaaaaaaa\r\n" * 150 + (b"x: " + b"a" * 1_300 + b"\r\n") * 50 + b"\r\n",), PROTOCOL, None),
    "header without end": ((OK + b"x: " + b"a" * 65_536, 0.001, b"a" * 65_536, "hold"), PROTOCOL, None),
    "status line without end": ((b"HTTP/1.1 200 " + b"a" * 65_536, 0.001, b"a" * 65_536, "hold"), PROTOCOL, None),
    "201 headers": ((OK + b"x: y\r\n" * 201 + b"content-length: 0\r\n\r\n",), PROTOCOL, None),
    "folded header": ((OK + b"a: b\r\n c\r\n\r\n",), PROTOCOL, None),
    "bare LF": ((b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}",), PROTOCOL, None),
    "space before colon": ((OK + b"a : b\r\n\r\n",), PROTOCOL, None),
    "NUL in header": ((OK + b"a: b\0\r\n\r\n",), PROTOCOL, None),
    "CR in header": ((OK + b"a: b\rc\r\n\r\n",), PROTOCOL, None),
    "length and chunks": ((OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n" + END,), PROTOCOL, None),
    "chunks and length": ((OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n" + END,), PROTOCOL, None),
    "two lengths": ((OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x",), PROTOCOL, None),
    "list of lengths": ((OK + b"content-length: 2, 2\r\n\r\n{}",), PROTOCOL, None),
    "signed length": ((OK + b"content-length: +2\r\n\r\n{}",), PROTOCOL, None),
    "negative length": ((OK + b"content-length: -2\r\n\r\n{}",), PROTOCOL, None),
    "gzip, chunked": ((OK + b"transfer-encoding: gzip, chunked\r\n\r\n" + END,), PROTOCOL, None),
    "transfer gzip": ((OK + b"transfer-encoding: gzip\r\n\r\nabc", "fin"), PROTOCOL, None),
    "chunked twice": ((OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n" + END,), PROTOCOL, None),
    "chunks in 1.0": ((b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + END,), PROTOCOL, None),
    "HTTP/0.9": ((b'{"hello": 1}\n', "fin"), PROTOCOL, None),
    "HTTP/0.9 by name": ((b"HTTP/0.9 200 OK\r\ncontent-length: 2\r\n\r\n{}",), PROTOCOL, None),
    "HTTP/2.0 by name": ((b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",), PROTOCOL, None),
    "HTTP/2 preface": ((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",), PROTOCOL, None),
    "status 99": ((b"HTTP/1.1 99 x\r\n\r\n",), PROTOCOL, None),
    "status 099": ((b"HTTP/1.1 099 x\r\n\r\n",), PROTOCOL, None),
    "status 999": ((b"HTTP/1.1 999 x\r\n\r\n",), PROTOCOL, None),
    "status abc": ((b"HTTP/1.1 abc x\r\n\r\n",), PROTOCOL, None),
    "short length": ((OK + b"content-length: 10\r\n\r\n{}", "fin"), TRUNCATED, b"{}"),
    "reset in the body": ((SSE + CHUNK, 0.005, "rst"), TRUNCATED, EVENT),
    "reset of a body until EOF": ((OK + b"\r\n" + EVENT, 0.005, "rst"), TRUNCATED, EVENT),
    "cut chunk": ((SSE + CHUNK + b"10\r\nabc", "fin"), TRUNCATED, EVENT + b"abc"),
    "no last chunk": ((SSE + CHUNK, "fin"), TRUNCATED, EVENT),
    "cut after last chunk": ((SSE + CHUNK + b"0\r\n", "fin"), TRUNCATED, EVENT),
    "bad chunk size": ((SSE + CHUNK + b"zz\r\nabc\r\n",), TRUNCATED, EVENT),
    "chunk without CRLF": ((SSE + b"3\r\nabcXX2\r\nab\r\n" + END,), TRUNCATED, b"abc"),
    "chunk with LF": ((SSE + b"3\nabc\n" + END,), TRUNCATED, b""),
    "chunk of 2^64": ((SSE + b"10000000000000000\r\nabc\r\n" + END,), TRUNCATED, b""),
    "chunk extension without end": ((SSE, 0.001, b"3;" + b"a" * 65_536, "hold"), TRUNCATED, b""),
    "trailer of 64 KiB": ((SSE + CHUNK + b"0\r\nx: " + b"a" * 65_536 + b"\r\n\r\n",), TRUNCATED, EVENT),
    "trailer without end": ((SSE + CHUNK + b"0\r\n", 0.001, b"x: " + b"a" * 65_536, "hold"), TRUNCATED, EVENT),
}


def rows(table):
    """Whole, and byte by byte where that is not long."""
    return [(name, drip) for name, row in table.items() for drip in (False, True) if not drip or sum(map(len, filter(is_bytes, row[0]))) < 500]


def is_bytes(step):
    return isinstance(step, bytes)


@pytest.mark.parametrize(("name", "drip"), rows(WHOLE))
def test_a_whole_answer_arrives_and_the_next_caller_sees_only_its_own(name, drip, scripted, call):
    script, status, body, reused = WHOLE[name]

    async def main():
        async with scripted(script, (NEXT,), drip=drip) as upstream:
            app = HttpUpstream(upstream.url)
            first = await call(app)
            if not reused:
                await upstream.until(lambda: upstream.open == 0)
            second = await call(app)
            await app.aclose()
            assert (first.code, first.status, first.body, first.whole) == (None, status, body, True)
            assert (second.code, second.status, second.body) == (None, 200, b"{next}")
            assert (len(upstream.requests), upstream.connections) == (2, 1 if reused else 2)

    asyncio.run(main())


@pytest.mark.parametrize(("name", "drip"), rows(BROKEN))
def test_a_broken_answer_says_where_and_its_connection_dies(name, drip, scripted, call):
    script, code, body = BROKEN[name]

    async def main():
        async with scripted(script, (NEXT,), drip=drip) as upstream:
            app = HttpUpstream(upstream.url)
            first = await call(app)
            await upstream.until(lambda: upstream.open == 0)
            second = await call(app)
            await app.aclose()
            assert (first.code, first.whole) == (code, False)
            assert (first.body if first.messages else None) == body
            assert str(upstream.port) not in str(first.error)
            assert first.error.__suppress_context__ or first.error.__context__ is None
            assert (second.body, len(upstream.requests)) == (b"{next}", 2)

    asyncio.run(main())


def test_headers_arrive_raw_in_order_with_names_in_lower_case(scripted, call):
    head = OK + b"X-B: \xe9 \t\r\nX-A:  1\r\nx-a: \xc3\xa9\r\nContent-Length: 0\r\n\r\n"

    async def main():
        async with scripted((head,)) as upstream:
            app = HttpUpstream(upstream.url)
            answer = await call(app)
            await app.aclose()
            assert answer.headers == [(b"x-b", b"\xe9"), (b"x-a", b"1"), (b"x-a", b"\xc3\xa9"), (b"content-length", b"0")]

    asyncio.run(main())


def test_an_early_refusal_of_a_large_body_is_read(scripted, call, run):
    refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\n{}"

    async def main():
        for ending in ("hold", "fin"):
            async with scripted((refusal, ending), deaf=True) as upstream:
                app = HttpUpstream(upstream.url)
                answer = await call(app, b"a" * 20_000_000)
                await upstream.until(lambda upstream=upstream: upstream.open == 0)
                await app.aclose()
                assert (answer.code, answer.status, answer.body, answer.whole) == (None, 413, b"{}", True)

    run(main())


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(
    "url",
    [lambda: f"http://127.0.0.1:{closed_port()}", lambda: "http://nowhere.invalid", lambda: "https://nowhere.invalid"],
    ids=["refused", "no such name", "no such name with TLS"],
)
def test_nothing_there(url, call):
    answer = asyncio.run(call(HttpUpstream(url())))
    assert (answer.code, answer.messages) == (UNREACHABLE, [])
    assert answer.error.text == "the upstream cannot be reached"


def test_a_connection_that_is_never_accepted_ends_at_the_deadline(call):
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for full in (first, second):  # the backlog of one, and the one beyond it that hangs
            full.setblocking(False)
            full.connect_ex(server.getsockname())
        answer = asyncio.run(call(HttpUpstream(f"http://127.0.0.1:{server.getsockname()[1]}", connect_seconds=0.05)))
    assert answer.code is UNREACHABLE


def contexts(ca, *names):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(server)
    client = ssl.create_default_context()
    ca.configure_trust(client)
    return server, client


# name: the server's names, the script, what comes of it, the connections that two calls need
TLS = {
    "length": (("localhost",), (TWO,), (None, b"{}"), 1),
    "closed with notice": (("localhost",), (OK + b"\r\n{}", "fin"), (None, b"{}"), 2),
    "closed without notice": (("localhost",), (OK + b"\r\n{}", "rip"), (TRUNCATED, b"{}"), 2),
    "chunks without end": (("localhost",), (SSE + CHUNK, "fin"), (TRUNCATED, EVENT), 2),
    "another name": (("elsewhere.test",), (TWO,), (UNREACHABLE, b""), 0),
}


@pytest.mark.parametrize("name", TLS)
def test_tls(name, ca, scripted, call, run):
    names, script, expected, connections = TLS[name]

    async def main():
        server, client = contexts(ca, *names)
        async with scripted(script, tls=server) as upstream:
            app = HttpUpstream(upstream.url, ssl_context=client)
            answers = [await call(app), await call(app)]
            await app.aclose()
            assert [(answer.code, answer.body) for answer in answers] == [expected] * 2
            assert upstream.connections == connections

    run(main())


def test_an_unknown_authority_is_refused(ca, scripted, call):
    async def main():
        server, _ = contexts(ca, "localhost")
        async with scripted((TWO,), tls=server) as upstream:
            (answer,) = await asyncio.gather(call(HttpUpstream(upstream.url)))
            assert (answer.code, upstream.requests) == (UNREACHABLE, [])

    asyncio.run(main())


@pytest.mark.parametrize("silent", [True, False])
def test_plain_text_on_a_tls_port_and_silence(silent, scripted, call, run):
    """A handshake that hangs counts into the same deadline as the connection."""

    async def answer(reader, writer):
        await reader.read(1)
        writer.write(b"" if silent else b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with contextlib.closing(writer):
            await reader.read()

    async def main():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert (await call(HttpUpstream(f"https://localhost:{port}", connect_seconds=0.1))).code is UNREACHABLE
            await asyncio.sleep(0.01)

    run(main())
