"""What one relayed request and one relayed stream event cost the gateway, beside two peers, in one run.

    python bench/relay.py [--requests N] [--streams N] [--events N]

Three servers stand in turn between a load generator and a fake upstream, each in its own process: `gateway` (uvicorn with asgi_surface, native),
`httpx` (a minimal Starlette relay on httpx, what one writes first) and `echo` (a bare ASGI app that answers by itself: the floor of the server).
The figure is CPU time of the server process per unit of work, which survives a noisy machine; read the ratios, not the microseconds. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
TICK = os.sysconf("SC_CLK_TCK")
ROUTES = """
[auth]
mode = "host"
[providers.up]
base_url = "http://127.0.0.1:{port}"
[[routes]]
route_id = "up"
upstream_model = "m"
provider = "up"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming"]
"""
EVENT = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}],
    }
)
FINISH = EVENT.replace("null", '"stop"')
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 120}, "finish_reason": "stop"}],
    }
).encode()
TURN = {"role": "user", "content": "some words of a conversation " * 12}


def body(stream: bool) -> bytes:
    return json.dumps({"model": "m", "messages": [TURN] * 3, "stream": stream}).encode()


async def upstream(port: int, events: int) -> None:
    """Answers at once: a JSON answer, or a stream whose events come one chunk each, without pause."""
    chunks = [f"data: {EVENT}\n\n".encode()] * (events - 1) + [f"data: {FINISH}\n\n".encode(), b"data: [DONE]\n\n"]

    async def serve(reader, writer) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
                request = await reader.readexactly(length)
                if b'"stream": true' not in request:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
                    continue
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                for chunk in chunks:
                    writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


def httpx_relay(port: int):
    """The relay that one writes first."""
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}")

    async def relay(request):
        raw = await request.body()
        if not json.loads(raw)["stream"]:
            answer = await client.post("/v1/chat/completions", content=raw)
            return Response(answer.content, media_type="application/json")

        async def stream():
            async with client.stream("POST", "/v1/chat/completions", content=raw) as answer:
                async for chunk in answer.aiter_raw():
                    yield chunk

        return StreamingResponse(stream(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", relay, methods=["POST"])])


def floor(events: int):
    """A bare ASGI app: what uvicorn alone costs for the same messages."""
    frame, end = f"data: {EVENT}\n\n".encode(), f"data: {FINISH}\n\ndata: [DONE]\n\n".encode()

    async def app(scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        raw = b""
        while (message := await receive()).get("more_body"):
            raw += message["body"]
        raw += message.get("body", b"")
        stream = json.loads(raw)["stream"]
        sized = (b"content-length", str(len(ANSWER)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream") if stream else sized]})
        if stream:
            for _ in range(events - 1):
                await send({"type": "http.response.body", "body": frame, "more_body": True})
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": end if stream else ANSWER})

    return app


def serve(subject: str, port: int, up: int, events: int) -> None:
    import uvicorn

    if subject == "gateway":
        from asgi_surface import app
    else:
        app = httpx_relay(up) if subject == "httpx" else floor(events)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


async def one(port: int, stream: bool, times: int) -> int:
    """Sends requests over one connection; gives the number of events seen."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    raw, seen = body(stream), 0
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(raw)
    for _ in range(times):
        writer.write(head + raw)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in answer, answer
        if b"content-length" in answer:
            seen += len(await reader.readexactly(int(answer.split(b"content-length:")[1].split(b"\r\n")[0]))) > 0
            continue
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            seen += (await reader.readexactly(size + 2)).count(b"data: {")
        await reader.readexactly(2)
    writer.close()
    return seen


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


async def load(port: int, pid: int, stream: bool, workers: int, each: int) -> dict[str, float]:
    await asyncio.gather(*(one(port, stream, 2) for _ in range(workers)))  # warm up
    before, started = cpu(pid), time.perf_counter()
    units = sum(await asyncio.gather(*(one(port, stream, each) for _ in range(workers))))
    return {"cpu_us": round((cpu(pid) - before) / units * 1e6, 2), "per_second": round(units / (time.perf_counter() - started))}


def free_port() -> int:
    with socket.socket() as one_socket:
        one_socket.bind(("127.0.0.1", 0))
        return one_socket.getsockname()[1]


def start(*arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, HERE, *map(str, arguments)], env={**os.environ, **(env or {})})
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", int(arguments[2])), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process
    raise SystemExit(f"{arguments} did not start")


def measure(options: argparse.Namespace) -> dict[str, object]:
    up = free_port()
    fake = start("--role", "upstream", up, options.events)
    results: dict[str, object] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            routes = Path(folder) / "routes.toml"
            routes.write_text(ROUTES.format(port=up))
            for subject in ("echo", "gateway", "httpx"):
                port = free_port()
                server = start("--role", subject, port, options.events, up, env={"ASGI_SURFACE_ROUTES": str(routes)})
                try:
                    json_cost = asyncio.run(load(port, server.pid, False, 16, options.requests // 16))
                    sse_cost = asyncio.run(load(port, server.pid, True, 16, options.streams // 16))
                finally:
                    server.terminate()
                    server.wait(10)
                results[subject] = {"json_request": json_cost, "sse_event": sse_cost}
    finally:
        fake.terminate()
        fake.wait(10)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--streams", type=int, default=160)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        role, port, events, *up = options.role
        if role == "upstream":
            asyncio.run(upstream(int(port), int(events)))
        else:
            serve(role, int(port), int(up[0]), int(events))
        return
    results = measure(options)
    ratios = {
        unit: {subject: round(results[subject][unit]["cpu_us"] / results["gateway"][unit]["cpu_us"], 2) for subject in results}
        for unit in ("json_request", "sse_event")
    }
    print(json.dumps({"python": platform.python_version(), "results": results, "cpu_relative_to_gateway": ratios}, indent=2))


if __name__ == "__main__":
    main()
