"""One exchange over the bare ASGI interface, for upstreams that live longer than one event loop's call."""

import json

import pytest


async def _exchange(app, path, body):
    """Status, headers and body of the answer to a POST; the client has a credential and a host of its own."""
    incoming = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent = []

    async def receive():
        return incoming.pop(0)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"client.example"), (b"content-type", b"application/json"), (b"authorization", b"Bearer client"), (b"cookie", b"a=b")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    await app(scope, receive, send)
    start, *rest = sent
    return start["status"], dict(start["headers"]), b"".join(message["body"] for message in rest)


@pytest.fixture
def exchange():
    return _exchange
