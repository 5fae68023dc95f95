"""The httpx option speaks the engine's language: same messages, same errors, no cookies, nothing followed."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from asgi_surface.errors import Code
from asgi_surface.upstream.httpx_transport import HttpxUpstream

OK = b"HTTP/1.1 200 OK\r\n"
TWO = OK + b"content-length: 2\r\n\r\n{}"
SSE = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b"data: {}\n\n"
CHUNK = b"a\r\n" + EVENT + b"\r\n"
END = b"0\r\n\r\n"

# name: script, status, body, code
ANSWERS = {
    "length": ((TWO,), 200, b"{}", None),
    "stream": ((SSE, CHUNK, 0.001, CHUNK + END), 200, EVENT * 2, None),
    "coded": ((OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",), 200, b"{}", None),
    "redirect": ((b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",), 302, b"", None),
    "closed at once": (("fin",), None, b"", Code.UPSTREAM_PROTOCOL_ERROR),
    "no HTTP": ((b"hello\r\n\r\n", "fin"), None, b"", Code.UPSTREAM_PROTOCOL_ERROR),
    "no last chunk": ((SSE + CHUNK, "fin"), 200, EVENT, Code.UPSTREAM_TRUNCATED),
    "reset": ((SSE + CHUNK, 0.01, "rst"), 200, EVENT, Code.UPSTREAM_TRUNCATED),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name, scripted, call):
    script, status, body, code = ANSWERS[name]

    async def main():
        async with scripted(script) as upstream:
            app = HttpxUpstream(upstream.url)
            answer = await call(app)
            await app.aclose()
            assert (answer.status, answer.body, answer.code, answer.whole) == (status, body, code, code is None)
            assert len(upstream.requests) == 1

    asyncio.run(main())


def test_the_request_goes_out_as_it_was_built(scripted, call):
    async def main():
        async with scripted((TWO,)) as upstream:
            app = HttpxUpstream(upstream.url + "/prefix")
            answer = await call(app, path=b"/a/../m%2Fa:b", query=b"alt=sse", headers=[(b"x", b"1"), (b"x", b"2")])
            await app.aclose()
            assert answer.headers == [(b"content-length", b"2")]
            (request,) = upstream.requests
            assert request.startswith(b"POST /prefix/a/../m%2Fa:b?alt=sse HTTP/1.1\r\n")
            fields = sorted(line.lower() for line in request.split(b"\r\n\r\n")[0].split(b"\r\n")[1:])
            assert fields == [b"content-length: 2", b"host: localhost:%d" % upstream.port, b"x: 1", b"x: 2"]

    asyncio.run(main())


@pytest.mark.parametrize("own", [True, False])
def test_a_cookie_is_neither_kept_nor_sent(own, scripted, call):
    async def main():
        async with (
            scripted((OK + b"set-cookie: tenant=a\r\ncontent-length: 2\r\n\r\n{}",)) as upstream,
            httpx.AsyncClient(cookies={"mine": "1"}, headers={"user-agent": "host"}) as client,
        ):
            app = HttpxUpstream(upstream.url, client=None if own else client)
            assert [(await call(app)).body, (await call(app)).body] == [b"{}", b"{}"]
            await app.aclose()
            assert not any(b"cookie" in request.lower() or b"user-agent" in request.lower() for request in upstream.requests)
            assert client.cookies == {"mine": "1"}
            assert client.is_closed is False
            assert app._client.is_closed is own
            assert "tenant" not in app._client.cookies

    asyncio.run(main())


def test_nothing_there(call):
    async def main():
        app = HttpxUpstream("http://nowhere.invalid")
        (answer,) = await asyncio.gather(call(app))
        await app.aclose()
        assert (answer.code, answer.messages) == (Code.UPSTREAM_UNREACHABLE, [])

    asyncio.run(main())


def test_a_bounded_client_that_is_busy_is_overloaded_and_a_cancelled_call_closes(scripted, call):
    async def main():
        limits = httpx.Limits(max_connections=1)
        async with scripted((SSE, CHUNK, "hold")) as upstream, httpx.AsyncClient(limits=limits) as client:
            app = HttpxUpstream(upstream.url, client=client, connect_seconds=0.1)
            streaming = asyncio.Event()

            async def send(message):
                streaming.set()

            held = asyncio.create_task(call(app, send=send))
            await streaming.wait()
            (refused,) = await asyncio.gather(call(app))
            assert refused.code is Code.OVERLOADED
            held.cancel()
            await asyncio.wait([held])
            assert held.cancelled()
            await upstream.until(lambda: upstream.open == 0)

    asyncio.run(main())


def test_large_chunks_are_cut_and_names_are_in_lower_case(call):
    async def main():
        def handler(request):
            return httpx.Response(200, headers=[("X-A", "1")], stream=httpx.ByteStream(b"a" * 200_000))

        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
            answer = await call(HttpxUpstream("http://mock", client=client))
            assert answer.headers == [(b"x-a", b"1")]
            assert [len(message["body"]) for message in answer.messages[1:]] == [65_536, 65_536, 65_536, 3_392, 0]

    asyncio.run(main())


def test_a_caller_who_left_before_the_body_was_whole_is_not_served():
    async def main():
        async def receive():
            return {"type": "http.disconnect"}

        app = HttpxUpstream("http://127.0.0.1:9")
        await app({"method": "POST"}, receive, None)
        await app.aclose()

    asyncio.run(main())
