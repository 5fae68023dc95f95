"""The gateway alone, in front of a site, under a prefix, around another framework, layer by layer, and under a real server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from quart import Quart
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient

import asgi_surface
from asgi_surface import Authentication, Conversion, Gateway, Planning, PolicyWhitelist, StreamRelay, SurfaceDetection
from asgi_surface.errors import Code, GatewayError
from asgi_surface.layers.exchange import Ending, Exchange
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES
from asgi_surface.upstream import providers

ROOT = Path(__file__).parents[2]
ECHO = """
[auth]
mode = "host"
[providers.echo]
embedded = "echo"
[[routes]]
route_id = "echo"
upstream_model = "echo"
provider = "echo"
api_bindings = [{ surface = "openai-chat-completions", path = "/v1/chat/completions", features = ["streaming"] }]
"""
BROKEN = ECHO.replace('"echo"\napi', '"ecko"\napi').replace("host", "hosts")
ASKED = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
COMPLETE = [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


@pytest.fixture
def file(tmp_path):
    """Writes a route file; gives its path."""

    def write(text=ECHO):
        path = tmp_path / "routes.toml"
        path.write_text(text)
        return path

    return write


def told(app, events):
    """The app, with what it tells the server in `events`."""

    async def heard(scope, receive, send):
        async def note(message):
            events.append(message["type"])
            await send(message)

        await app(scope, receive, note)

    return heard


class Watched(Gateway):
    """A gateway that says when it starts and closes."""

    def __init__(self, app=None, *, events, **options):
        super().__init__(app, **options)
        self.events = events

    async def start(self):
        self.events.append("gateway up")
        await super().start()

    async def aclose(self):
        self.events.append("gateway down")
        await super().aclose()


async def page(request):
    return PlainTextResponse(f"the site at {request.url.path}")


async def socket(websocket):
    await websocket.accept()
    await websocket.send_text("the site's socket")
    await websocket.close()


PAGES = [Route("/", page), Route("/v1/other", page), Route("/messages", page, methods=["POST"]), WebSocketRoute("/v1/messages", socket)]


def site(events, *, middleware=(), fails=None, routes=PAGES):
    @contextlib.asynccontextmanager
    async def life(_):
        if fails == "up":
            raise RuntimeError("the site cannot start")
        events.append("site up")
        yield {"shared": "with the site"}
        events.append("site down")
        if fails == "down":
            raise RuntimeError("the site cannot stop")

    return Starlette(routes=routes, middleware=middleware, lifespan=life)


# Alone ------------------------------------------------------------------------------------------------------------------------------------


def test_alone_it_serves_surfaces_and_nothing_else(ask, lifespan, file):
    app = Gateway(routes=file(), record=[].append)
    assert lifespan(app) == COMPLETE
    reply = ask(app, "/v1/chat/completions", ASKED)
    assert (reply.status, reply.json["choices"][0]["message"]["content"]) == (200, "hello")
    assert ask(app, "/chat/completions", ASKED).status == 200
    assert ask(app, "/", method="GET").headers["x-surface-error"] == Code.NOT_FOUND
    assert app.__class__ is Gateway


def test_alone_a_websocket_is_closed(file):
    async def main():
        sent = []

        async def receive():
            return {"type": "websocket.connect"}

        async def send(message):
            sent.append(message)

        await Gateway(routes=file())({"type": "websocket", "path": "/v1/messages", "headers": []}, receive, send)
        return sent

    assert asyncio.run(main()) == [{"type": "websocket.close", "code": 1008}]


def test_layers_alone_have_no_lifespan(lifespan):
    assert lifespan(SurfaceDetection(page)) == []


@pytest.mark.parametrize("how", ["argument", "variable", "working directory"])
def test_where_the_route_file_is(ask, file, monkeypatch, how):
    path = file()
    monkeypatch.delenv("ASGI_SURFACE_ROUTES", raising=False)
    if how == "variable":
        monkeypatch.setenv("ASGI_SURFACE_ROUTES", str(path))
    if how == "working directory":
        monkeypatch.chdir(path.parent)
    app = Gateway(routes=path) if how == "argument" else Gateway()
    assert ask(app, "/v1/models", method="GET").json["data"][0]["id"] == "echo"


def test_the_module_has_an_app_on_the_variables_file(ask, file, monkeypatch):
    monkeypatch.setitem(vars(asgi_surface), "app", None)
    del vars(asgi_surface)["app"]
    monkeypatch.setenv("ASGI_SURFACE_ROUTES", str(file()))
    app = asgi_surface.app
    assert isinstance(app, Gateway)
    assert asgi_surface.app is app
    assert ask(app, "/v1/chat/completions", ASKED).status == 200


def test_the_public_names():
    assert asgi_surface.__all__ == [
        "Authentication",
        "Carried",
        "Catalog",
        "ConfigError",
        "Conversion",
        "Feature",
        "Gateway",
        "GatewayError",
        "Interceptor",
        "Operation",
        "Outcome",
        "Planning",
        "PolicyWhitelist",
        "Problem",
        "Rejection",
        "RequestError",
        "RequestPlan",
        "Rewriter",
        "RouteCandidate",
        "StreamRelay",
        "Surface",
        "SurfaceDetection",
        "UpstreamError",
        "__version__",
        "app",
        "load_catalog",
        "plan",
    ]
    assert all(getattr(asgi_surface, name) is not None for name in asgi_surface.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Gatway'"):
        _ = asgi_surface.Gatway


@pytest.mark.parametrize("path", [None, "missing.toml"])
def test_a_bad_route_file_ends_the_start_with_every_problem(ask, lifespan, file, path, records):
    app = Gateway(routes=path or file(BROKEN), record=records.append)
    [failed] = lifespan(app)
    assert failed["type"] == "lifespan.startup.failed"
    told = ["auth.mode", "routes[0].provider", "ecko"] if path is None else ["missing.toml"]
    assert all(word in failed["message"] for word in told)
    reply = ask(app, "/v1/messages", {})
    assert (reply.status, reply.json["type"], reply.headers["x-surface-error"]) == (503, "error", Code.NOT_CONFIGURED)
    assert reply.headers["x-should-retry"] == "false"
    assert [one.code for one in records] == [Code.NOT_CONFIGURED]


# In front of a site -----------------------------------------------------------------------------------------------------------------------


def test_as_starlettes_middleware(catalog, upstream, wires, records):
    events, up = [], upstream(chunks=[wires[CHAT].document])
    gateway = Middleware(Watched, events=events, catalog=catalog(CHAT), upstream=up, record=records.append)
    with TestClient(site(events, middleware=[gateway])) as client:
        assert client.post("/v1/chat/completions", json=wires[CHAT].body).content == wires[CHAT].document
        assert client.get("/v1/other").text == "the site at /v1/other"
        assert client.post("/messages", json={}).text == "the site at /messages"
        assert client.get("/nowhere").text == "Not Found"
        assert client.put("/v1/messages").status_code == 405
        with client.websocket_connect("/v1/messages") as found:
            assert found.receive_text() == "the site's socket"
        assert events == ["gateway up", "site up"]
    assert list(dict.fromkeys(events)) == ["gateway up", "site up", "site down", "gateway down"]
    assert [one.status for one in records] == [200, 405]


def test_the_sites_requests_are_untouched(ask, gateway, upstream, records):
    seen = []

    async def host(scope, receive, send):
        seen.append((scope, receive, send))
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body"})

    reply = ask(gateway(upstream(), fallback=host), "/elsewhere?a=b", b"x", root_path="/r", state={"a": 1})
    [(scope, _, _)] = seen
    assert (reply.status, reply.received, records) == (418, 0, [])
    assert (scope["query_string"], scope["root_path"], scope["state"]) == (b"a=b", "/r", {"a": 1})
    assert "asgi_surface" not in scope


def test_the_sites_state_is_the_servers(lifespan, file):
    state = {}
    assert lifespan(Gateway(site([]), routes=file()), state=state) == COMPLETE
    assert state == {"shared": "with the site"}


def test_the_gateway_is_closed_before_the_server_hears_of_the_end(lifespan, file):
    """A server may end the process then."""
    events = []
    lifespan(told(Watched(site(events), events=events, routes=file()), events))
    expected = ["gateway up", "site up", "lifespan.startup.complete", "site down", "gateway down", "lifespan.shutdown.complete"]
    assert list(dict.fromkeys(events)) == expected


async def returns(scope, receive, send):
    """Knows nothing of lifespans, and does nothing about one."""


async def raises(scope, receive, send):
    raise RuntimeError("only http here")


async def reads_then_raises(scope, receive, send):
    await receive()
    raise RuntimeError("only http here")


@pytest.mark.parametrize("host", [returns, raises, reads_then_raises])
def test_a_site_without_lifespan(lifespan, file, host):
    events = []
    assert lifespan(Watched(host, events=events, routes=file())) == COMPLETE
    assert events == ["gateway up", "gateway down"]


@pytest.mark.parametrize(
    ("fails", "kinds"),
    [
        ("up", ["lifespan.startup.failed", "raised"]),
        ("down", ["lifespan.startup.complete", "lifespan.shutdown.failed", "raised"]),
    ],
)
def test_a_site_that_fails(lifespan, file, fails, kinds):
    events = []
    sent = lifespan(Watched(site(events, fails=fails), events=events, routes=file()))
    assert [message["type"] for message in sent] == kinds
    assert "the site cannot" in sent[-1]["message"]
    assert events[-1] == "gateway down"


def test_a_site_that_dies_after_it_came_up(lifespan, file):
    async def dies(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        raise RuntimeError("dead")

    events = []
    sent = lifespan(Watched(dies, events=events, routes=file()))
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "raised"]
    assert events == ["gateway up", "gateway down"]


def test_a_server_that_is_killed_closes_the_gateway(file):
    events = []

    async def main():
        async def receive():
            if events != ["gateway up"]:
                return {"type": "lifespan.startup"}
            return await asyncio.Event().wait()

        async def send(message):
            assert message == COMPLETE[0]

        task = asyncio.create_task(Watched(events=events, routes=file())({"type": "lifespan"}, receive, send))
        for _ in range(20):  # turns of the loop, not time
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert events == ["gateway up", "gateway down"]


def test_a_broken_route_file_keeps_the_site_from_starting(lifespan, file):
    events = []
    [failed] = lifespan(Gateway(site(events), routes=file(BROKEN)))
    assert (failed["type"], events) == ("lifespan.startup.failed", [])


# Under a prefix, where no lifespan comes --------------------------------------------------------------------------------------------------


def test_mounted_it_starts_with_the_first_request(catalog, upstream, wires, records):
    up = upstream(chunks=[wires[CHAT].document])
    mounted = Mount("/llm", app=Gateway(catalog=catalog(), upstream=up, record=records.append))
    client = TestClient(site([], routes=[*PAGES, mounted]))
    assert client.post("/llm/v1/chat/completions", json=wires[CHAT].body).content == wires[CHAT].document
    assert client.post("/llm/chat/completions", json=wires[CHAT].body).status_code == 200
    assert client.get("/llm/v1/models/m").json()["id"] == "m"
    assert client.get("/llm/nowhere").headers["x-surface-error"] == Code.NOT_FOUND
    assert client.get("/v1/other").text == "the site at /v1/other"
    assert client.post("/v1/chat/completions", json=wires[CHAT].body).text == "Not Found"
    assert [one.status for one in records] == [200, 200, 200, 404]


def test_mounted_on_a_broken_route_file_the_site_works_on(file, caplog):
    client = TestClient(site([], routes=[*PAGES, Mount("/llm", app=Gateway(routes=file(BROKEN), record=[].append))]))
    for _ in range(2):
        answer = client.post("/llm/v1/messages", json={})
        assert (answer.status_code, answer.headers["x-surface-error"]) == (503, Code.NOT_CONFIGURED)
        assert "ecko" not in answer.text
    assert client.get("/").text == "the site at /"
    assert [entry.message.count("ecko") for entry in caplog.records if entry.name == "asgi_surface"] == [1]


# Around Quart -----------------------------------------------------------------------------------------------------------------------------


def test_around_quart(apart, file, records):
    events = []
    quart = Quart("site")

    @quart.get("/")
    async def index():
        return "the site"

    @quart.before_serving
    async def up():
        events.append("site up")

    @quart.after_serving
    async def down():
        events.append("site down")

    quart.asgi_app = Watched(quart.asgi_app, events=events, routes=file(), record=records.append)

    async def main():
        async with quart.test_app() as app:
            client = app.test_client()
            assert await (await client.get("/")).get_data(as_text=True) == "the site"
            whole = await client.post("/v1/chat/completions", json=ASKED)
            assert (whole.status_code, (await whole.get_json())["model"]) == (200, "echo")
            streamed = await client.post("/v1/chat/completions", json={**ASKED, "stream": True})
            assert (await streamed.get_data()).endswith(b"data: [DONE]\n\n")
            assert (await client.post("/messages", json={})).status_code == 404

    apart(main())
    assert list(dict.fromkeys(events)) == ["gateway up", "site up", "site down", "gateway down"]
    assert [one.ending for one in records] == [Ending.COMPLETED] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_below_a_middleware_whose_send_waits(catalog, upstream, wires, records, stream):
    class Plain(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            return await call_next(request)

    wire = wires[CHAT]
    up = upstream(chunks=[0.05, *wire.frames] if stream else [wire.document])
    limits = "[limits]\nkeepalive_seconds = 0.02\n"
    gateway = Middleware(Gateway, catalog=catalog(CHAT, top=limits), upstream=up, record=records.append)
    with TestClient(site([], middleware=[Middleware(Plain), gateway])) as client:
        path, body = wire.ask(stream=stream)
        answer = client.post(path, json=body)
    assert answer.content.replace(b": keep-alive\n\n", b"") == (b"".join(wire.frames) if stream else wire.document)
    assert [one.ending for one in records] == [Ending.COMPLETED]


# Any ASGI app as upstream -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_another_framework_as_upstream(ask, gateway, wires, stream):
    wire = wires[CHAT]

    async def model(request):
        assert (await request.json())["model"] == "up-model"
        return StreamingResponse(iter(wire.frames if stream else [wire.document]))

    up = Starlette(routes=[Route("/v1/chat/completions", model, methods=["POST"])])
    reply = ask(gateway(up, CHAT), *wire.ask(stream=stream))
    assert reply.whole
    assert reply.body == (b"".join(wire.frames) if stream else wire.document)


# Layer by layer ---------------------------------------------------------------------------------------------------------------------------


def test_layer_by_layer(ask, catalog, upstream, wires, records):
    up, built = upstream(chunks=[wires[CHAT].document]), catalog(CHAT, top='[auth]\nmode = "loopback"\n')
    planning = Planning(PolicyWhitelist(Conversion(StreamRelay(up))), catalog=lambda: built)
    app = SurfaceDetection(Authentication(planning, catalog=lambda: built), fallback=site([]), record=records.append)
    answer = ask(app, *wires[CHAT].ask(stream=False), headers=[("host", "localhost")])
    assert (answer.status, answer.body) == (200, wires[CHAT].document)
    assert ask(app, *wires[CHAT].ask(stream=False), headers=[("host", "evil.example")]).status == 403
    assert ask(app, "/v1/other", method="GET", headers=[("host", "x")]).body == b"the site at /v1/other"
    assert len(up.calls) == 1


def test_the_authentication_layer_may_be_the_hosts(ask, catalog, upstream, wires):
    up = upstream(chunks=[wires[CHAT].document])
    app = SurfaceDetection(Planning(PolicyWhitelist(Conversion(StreamRelay(up))), catalog=catalog(CHAT)), record=[].append)
    assert ask(app, *wires[CHAT].ask(stream=False)).body == wires[CHAT].document


WITHOUT = "must stand before this one"


@pytest.mark.parametrize("layer", ["Authentication", "Planning", "PolicyWhitelist", "Conversion", "StreamRelay"])
def test_a_layer_wants_detection_before_it(ask, catalog, upstream, layer):
    up = upstream()
    options = {"catalog": catalog()} if layer in ("Authentication", "Planning") else {}
    with pytest.raises(RuntimeError, match=f"SurfaceDetection layer {WITHOUT}"):
        ask(getattr(asgi_surface, layer)(up, **options), "/v1/messages", {})
    assert up.calls == []


@pytest.mark.parametrize("layer", [PolicyWhitelist, Conversion, StreamRelay])
def test_a_layer_wants_planning_before_it(ask, upstream, caplog, layer):
    up = upstream()
    reply = ask(SurfaceDetection(layer(up), record=[].append), "/v1/messages", {})
    assert (reply.status, up.calls) == (500, [])
    assert f"Planning layer {WITHOUT}" in caplog.text


def test_an_exchange_without_its_surroundings():
    exchange = Exchange(None, None, "", (), "", None)
    for act in (exchange.leave, lambda: exchange.spawn(exchange.watch)):
        with pytest.raises(RuntimeError, match=WITHOUT):
            act()


# Two gateways in one stack ----------------------------------------------------------------------------------------------------------------


def test_two_gateways_next_to_each_other(file):
    with pytest.raises(TypeError, match="two gateways"):
        Gateway(Gateway(routes=file()), routes=file())


def test_two_gateways_with_something_between(ask, lifespan, file, records):
    inner = Gateway(site([]), routes=file(), record=records.append)
    app = Gateway(Starlette(routes=[Mount("/", app=inner)]), routes=file(), record=records.append)
    between = Gateway(functools.partial(inner), routes=file(), record=records.append)
    assert lifespan(between) == [{"type": "lifespan.startup.failed", "message": "two gateways stand in one stack"}]
    assert lifespan(app) == COMPLETE  # Starlette hands no lifespan to what is mounted, and no path of the outer one gets there
    assert ask(app, "/v1/chat/completions", ASKED).status == 200
    assert len(records) == 1


def test_two_detections_never_give_two_answers(ask, upstream, records, caplog):
    up = upstream()
    app = SurfaceDetection(SurfaceDetection(up, record=records.append), record=records.append)
    reply = ask(app, "/v1/messages", {})
    assert reply.whole
    assert (reply.status, up.calls) == (500, [])
    assert [(one.ending, one.code) for one in records] == [(Ending.FAILED, Code.INTERNAL)]
    assert "two gateways stand in one stack" in caplog.text


# Paths ------------------------------------------------------------------------------------------------------------------------------------

SHORT = ["/messages", "/responses", "/chat/completions"]


@pytest.mark.parametrize("path", SHORT)
@pytest.mark.parametrize(("hosted", "short", "ours"), [(False, None, True), (True, None, False), (True, True, True), (False, False, False)])
def test_the_short_paths_may_be_the_sites(ask, gateway, upstream, records, path, hosted, short, ours):
    app = gateway(upstream(), fallback=site([]) if hosted else None, short_paths=short)
    reply = ask(app, path, method="DELETE", headers=[("host", "x")])
    assert (reply.headers.get("allow") == "POST" and reply.headers.get("x-surface-error") == Code.METHOD_NOT_ALLOWED) == ours
    assert len(records) == (ours or not hosted)


@pytest.mark.parametrize(
    ("path", "scope", "model"),
    [
        ("/v1beta/models/a b/c:generateContent", {"raw_path": None}, "a b/c"),
        ("/v1beta/models/a%b:generateContent", {"raw_path": None}, "a%b"),
        ("/decoded", {"raw_path": b"/v1beta/models/a%20b%2Fc:generateContent?x=1"}, "a b/c"),
        ("/decoded", {"raw_path": b"/r/s/v1beta/models/m:generateContent", "root_path": "/r/s"}, "m"),
        ("/r \u00e4/v1beta/models/m:generateContent", {"raw_path": None, "root_path": "/r \u00e4"}, "m"),
        ("/v1beta/models/m:generateContent", {"raw_path": None, "root_path": "/r"}, "m"),
    ],
)
def test_servers_differ_in_what_they_say_of_the_path(ask, gateway, upstream, wires, records, path, scope, model):
    app = gateway(upstream(chunks=[wires[GEMINI].document]), GEMINI, models=("*",))
    assert ask(app, path, wires[GEMINI].body, **scope).status == 200
    assert [(one.surface, one.model) for one in records] == [(GEMINI, model)]


def test_a_server_without_raw_path_and_with_headers_in_any_case(ask, gateway, upstream, wires):
    up = upstream(chunks=[wires[MESSAGES].document])
    headers = [("Content-Type", "application/json"), ("Anthropic-Version", "2026-10-21")]
    assert ask(gateway(up, MESSAGES), *wires[MESSAGES].ask(stream=False), headers=headers, raw_path=None).status == 200
    assert dict(up.calls[0].headers)[b"anthropic-version"] == b"2026-10-21"


# Providers --------------------------------------------------------------------------------------------------------------------------------

KEYED = """
[auth]
mode = "host"
[providers.up]
base_url = "{url}"
transport = "{transport}"
auth = {{ header = "Authorization", scheme = "Bearer", env = "UP_KEY" }}
[[routes]]
route_id = "m"
upstream_model = "m"
provider = "up"
api_bindings = [
  {{ surface = "openai-chat-completions", path = "/v1/chat/completions" }},
  {{ surface = "anthropic-messages", path = "/anthropic/v1/messages", auth = {{ header = "x-api-key", env = "OTHER_KEY" }} }},
]
"""


class Handler(BaseHTTPRequestHandler):
    """Answers every POST with the server's document, and remembers what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, self.headers))
        self.send_response(200)
        self.send_header("content-length", str(len(self.server.document)))
        self.end_headers()
        self.wfile.write(self.server.document)

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture
def origin(wires):
    """A loopback HTTP server; `asked` are the paths and headers that it saw."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.document, server.asked = wires[CHAT].document, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def closing(gateway):
    """The gateway for one request: it is closed behind it, twice, for that must be harmless."""

    async def app(scope, receive, send):
        await gateway(scope, receive, send)
        await gateway.aclose()
        await gateway.aclose()

    return app


@pytest.mark.parametrize("transport", ["http1", "httpx"])
def test_each_binding_gets_its_own_credential(ask, origin, wires, monkeypatch, file, transport):
    monkeypatch.setenv("UP_KEY", "up-secret")
    monkeypatch.setenv("OTHER_KEY", "other-secret")
    path = file(KEYED.format(url=f"http://127.0.0.1:{origin.server_port}", transport=transport))
    for name in (CHAT, MESSAGES):
        reply = ask(closing(Gateway(routes=path, record=[].append)), *wires[name].ask(stream=False))
        assert (reply.status, reply.body) == (200, wires[CHAT].document)
    assert [(target, headers["authorization"], headers["x-api-key"]) for target, headers in origin.asked] == [
        ("/v1/chat/completions", "Bearer up-secret", None),
        ("/anthropic/v1/messages", None, "other-secret"),
    ]


def test_a_variable_that_is_not_set(ask, origin, wires, lifespan, monkeypatch, file):
    """It ends a gateway's start; the catalog of a host that looked away from the environment leaves the credential out."""
    for name in ("UP_KEY", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)
    path = file(KEYED.format(url=f"http://127.0.0.1:{origin.server_port}", transport="http1"))
    reply = ask(closing(Gateway(catalog=asgi_surface.load_catalog(path), record=[].append)), *wires[CHAT].ask(stream=False))
    assert (reply.status, origin.asked[0][1]["authorization"]) == (200, None)
    [failed] = lifespan(Gateway(routes=path))
    assert (failed["type"], "UP_KEY" in failed["message"], "OTHER_KEY" in failed["message"]) == ("lifespan.startup.failed", True, True)


def test_a_gateway_that_never_started_can_be_closed(apart, file):
    assert apart(Gateway(routes=file()).aclose()) is None


class Model:
    """An embedded model that can be started here, or not."""

    def __init__(self, reason=None, failure=None):
        self.reason = reason
        self.failure = failure
        self.events = []

    async def warm(self):
        self.events.append("warm")
        if self.failure is not None:
            raise self.failure

    async def aclose(self):
        self.events.append("closed")

    def unavailable(self):
        return self.reason


FAILED = [{"type": "lifespan.startup.failed", "message": "no such weights"}]


@pytest.mark.parametrize(
    ("model", "warm", "sent", "events"),
    [
        (Model(), True, COMPLETE, ["warm", "closed"]),
        (Model(), False, COMPLETE, ["closed"]),
        (Model(reason="not installed"), True, COMPLETE, ["closed"]),
        (Model(failure=GatewayError(Code.NOT_CONFIGURED, "no such weights")), True, FAILED, ["warm", "closed"]),
    ],
)
def test_embedded_models_may_be_warmed(lifespan, file, monkeypatch, model, warm, sent, events):
    monkeypatch.setattr(providers, "EMBEDDED", {"echo": lambda: model})
    assert lifespan(Gateway(routes=file(), warm=warm)) == sent
    assert list(dict.fromkeys(model.events)) == events


# A real server ----------------------------------------------------------------------------------------------------------------------------


def test_uvicorn_serves_the_shipped_route_file():
    environ = {name: value for name, value in os.environ.items() if name != "ASGI_SURFACE_ROUTES"}
    command = [sys.executable, "-m", "uvicorn", "asgi_surface:app", "--port", "0", "--no-access-log", "--no-use-colors"]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True) as server:
        try:
            started = next(line for line in server.stderr if "running on" in line)
            connection = http.client.HTTPConnection("127.0.0.1", int(started.partition("127.0.0.1:")[2].split()[0]), timeout=10)
            for stream in (False, True):
                connection.request("POST", "/v1/chat/completions", json.dumps({**ASKED, "stream": stream}), {"content-type": "application/json"})
                answer = connection.getresponse()
                body = answer.read()
                assert (answer.status, answer.headers["x-surface-mode"], b"hello" in body) == (200, "native", True)
                assert body.endswith(b"data: [DONE]\n\n") == stream
            connection.request("GET", "/v1/models", headers={"host": "evil.example"})
            assert connection.getresponse().status == 403
            connection.close()
        finally:
            server.terminate()
        assert "Application shutdown complete" in server.stderr.read()
