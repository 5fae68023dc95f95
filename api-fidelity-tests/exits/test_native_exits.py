"""What leaves through the exit: headers, errors, refusals, plans and model lists, in the surface of the client that asked."""

from __future__ import annotations

import gzip
import json
import re
import zlib

import pytest

from asgi_surface import Gateway, RouteCandidate
from asgi_surface.codings import zstd
from asgi_surface.errors import Code
from asgi_surface.layers.exchange import Ending
from asgi_surface.layers.exit import folded
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
JSON = (b"content-type", b"application/json")
SECRET = "provider-secret-0123"


@pytest.fixture
def call(ask, gateway, upstream, wires, records):
    """One request to a gateway with a binding for its surface; `script` is the upstream's. Gives the reply, the calls and the record."""

    def one(surface, *, stream=False, path=None, body=None, asks=(), method="POST", options=None, inbox=None, only=None, **script):
        usual, asked = wires[surface].ask(stream=stream)
        up = upstream(**script)
        app = gateway(up, only or surface, **(options or {}))
        reply = ask(app, path or usual, asked if body is None else body, headers=asks, method=method, inbox=inbox)
        assert reply.whole
        assert reply.headers["content-length" if reply.headers["content-type"] == "application/json" else "x-accel-buffering"]
        assert (reply.headers["cache-control"], reply.headers["x-content-type-options"]) == ("no-store", "nosniff")
        record = records.pop()
        assert (records, reply.headers["x-surface-request-id"]) == ([], record.request_id)
        assert (reply.headers.get("x-surface-error"), reply.status) == (record.code, record.status)
        return reply, up.calls, record

    return one


def word(reply):
    """What kind of error the client's SDK reads."""
    error = reply.json["error"]
    return error.get("status") or error["type"]


# Headers ----------------------------------------------------------------------------------------------------------------------------------

PASSING = {
    "x-request-id": "req-1",
    "request-id": "req-2",
    "openai-processing-ms": "12",
    "openai-version": "2020-10-01",
    "retry-after": "5",
    "x-ratelimit-remaining-tokens": "9",
    "anthropic-ratelimit-tokens-limit": "8",
}
KEPT_BACK = {
    "set-cookie": "a=b",
    "server": "nginx",
    "openai-organization": "org-1",
    "openai-project": "proj_1",
    "authorization": SECRET,
    "location": "http://upstream.internal/",
    "x-powered-by": "us",
    "access-control-allow-origin": "*",
    "connection": "keep-alive",
    "keep-alive": "timeout=5",
}
FORGED = {
    "x-surface-route": "forged",
    "x-surface-request-id": "forged",
    "cache-control": "public",
    "content-length": "3",
    "content-type": "text/html",
}
OURS = {"content-type", "content-length", "cache-control", "x-content-type-options", "x-surface-request-id", "x-request-id"}
PLANNED = {"x-surface-route", "x-surface-upstream", "x-surface-mode"}


@pytest.mark.parametrize("surface", SURFACES)
def test_of_the_upstreams_headers_a_few_pass(call, wires, surface):
    sent = [(name.title().encode(), value.encode()) for name, value in {**PASSING, **KEPT_BACK, **FORGED}.items()]
    reply, _, record = call(surface, headers=sent, chunks=[wires[surface].document])
    assert {name: reply.headers[name] for name in PASSING} == PASSING
    assert set(reply.headers) == {*OURS, *PLANNED, *PASSING}
    assert [reply.headers[name] for name in sorted(PLANNED)] == ["native", "up:model", surface]
    assert (record.route, record.upstream, record.mode, record.model, record.stream) == ("up:model", surface, "native", "m", False)
    assert b"\n".join(name for name, _ in reply.messages[0]["headers"]).count(b"x-request-id") == 1


@pytest.mark.parametrize("surface", SURFACES)
def test_without_the_upstreams_id_ours_is_told(call, wires, surface):
    reply, _, record = call(surface, stream=True, asks=[("x-request-id", "the client's own")], chunks=wires[surface].frames)
    assert reply.headers["x-request-id"] == reply.headers["x-surface-request-id"] == record.request_id
    assert re.fullmatch(r"[0-9a-f]{32}", record.request_id)
    assert set(reply.headers) == {*OURS, *PLANNED, "x-accel-buffering"} - {"content-length"}


@pytest.mark.parametrize("surface", SURFACES)
def test_nothing_of_the_client_travels_but_what_is_declared(call, wires, surface):
    asks = [("authorization", "Bearer client"), ("cookie", "a=b"), ("x-forwarded-for", "192.0.2.1"), ("user-agent", "sdk"), ("x-surface-trace", "1")]
    path = f"{wires[surface].path}?beta=true&key=client"
    _, [sent], _ = call(surface, asks=asks, path=path, chunks=[wires[surface].document])
    names = {name.decode() for name, _ in sent.headers}
    assert names - {"anthropic-version"} == {"content-type", "accept", "accept-encoding", "user-agent"}
    assert b"client" not in b"".join(value for _, value in sent.headers)
    assert sent.target.endswith("?beta=true")


# An upstream's refusals -------------------------------------------------------------------------------------------------------------------

STATUSES = {
    201: (502, Code.UPSTREAM_BAD_RESPONSE, False),
    204: (502, Code.UPSTREAM_BAD_RESPONSE, False),
    302: (502, Code.UPSTREAM_BAD_RESPONSE, False),
    400: (400, Code.UPSTREAM_REJECTED, True),
    401: (502, Code.UPSTREAM_AUTH_FAILED, False),
    402: (502, Code.UPSTREAM_AUTH_FAILED, False),
    403: (502, Code.UPSTREAM_AUTH_FAILED, False),
    404: (404, Code.UPSTREAM_REJECTED, True),
    408: (504, Code.UPSTREAM_TIMEOUT, False),
    409: (409, Code.UPSTREAM_REJECTED, True),
    413: (413, Code.UPSTREAM_REJECTED, True),
    422: (422, Code.UPSTREAM_REJECTED, True),
    429: (429, Code.UPSTREAM_RATE_LIMITED, True),
    431: (502, Code.UPSTREAM_PROTOCOL_ERROR, False),
    500: (500, Code.UPSTREAM_ERROR, True),
    503: (503, Code.UPSTREAM_OVERLOADED, True),
    504: (504, Code.UPSTREAM_TIMEOUT, True),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("status", STATUSES)
def test_an_upstreams_status_becomes_the_clients(call, wires, surface, stream, status):
    told, code, relayed = STATUSES[status]
    reply, _, record = call(surface, stream=stream, status=status, chunks=[wires[surface].error])
    assert (reply.status, record.ending, record.code, record.usage) == (told, Ending.FAILED, code, None)
    assert (reply.body == wires[surface].error) == relayed
    assert reply.json["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("surface", "status"), [(MESSAGES, 529), (CHAT, 503), (RESPONSES, 503), (GEMINI, 503)])
def test_529_is_a_word_of_messages_alone(call, wires, surface, stream, status):
    reply, _, record = call(surface, stream=stream, status=529, chunks=[wires[surface].error])
    assert (reply.status, record.code) == (status, Code.UPSTREAM_OVERLOADED)


PAGES = [b"<html><h1>502 Bad Gateway</h1>nginx</html>", b"", b"upstream.internal:8000 refused", b'{"detail":"Not Found"}']


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("body", PAGES)
@pytest.mark.parametrize(("status", "told", "code"), [(404, 502, Code.UPSTREAM_BAD_RESPONSE), (500, 500, Code.UPSTREAM_ERROR)])
def test_a_page_becomes_the_clients_envelope(call, surface, body, status, told, code):
    reply, _, record = call(surface, status=status, headers=[(b"content-type", b"text/html")], chunks=[body])
    assert (reply.status, record.code, reply.headers["content-type"]) == (told, code, "application/json")
    assert b"nginx" not in reply.body
    assert b"internal" not in reply.body


def test_an_error_says_when_to_come_back(call, wires):
    sent = [
        (b"Retry-After", b"7"),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"X-Request-Id", b"req-1"),
        (b"set-cookie", b"a=b"),
        (b"openai-version", b"1"),
    ]
    reply, _, _ = call(CHAT, status=429, headers=sent, chunks=[wires[CHAT].error])
    expected = {"retry-after": "7", "x-ratelimit-remaining-requests": "0", "x-request-id": "req-1", "x-surface-error": "upstream_rate_limited"}
    assert set(reply.headers) == {*OURS, *PLANNED, *expected}
    assert {name: reply.headers[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("sent", "told"),
    [([], "true"), ([(b"x-should-retry", b"false")], "false")],
)
def test_an_overloaded_upstream_may_be_asked_again(call, wires, sent, told):
    reply, _, _ = call(CHAT, status=503, headers=sent, chunks=[wires[CHAT].error])
    assert reply.headers["x-should-retry"] == told


def test_an_endless_error_page_is_left(call):
    reply, _, record = call(CHAT, status=500, chunks=[b"x" * 40_000] * 2 + [60.0])
    assert (reply.status, record.code) == (500, Code.UPSTREAM_ERROR)


@pytest.mark.parametrize("chunks", [[b"{", RuntimeError("late")], [b"not gzip"]])
def test_an_error_whose_body_is_broken_is_still_that_error(call, chunks):
    reply, _, record = call(CHAT, status=429, headers=[(b"content-encoding", b"gzip")] if chunks[1:] == [] else [JSON], chunks=chunks)
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_an_unknown_coding_is_still_that_error(call, surface, stream):
    reply, _, record = call(surface, stream=stream, status=500, headers=[(b"content-encoding", b"br")], chunks=[b"x"])
    assert (reply.status, record.code) == (500, Code.UPSTREAM_ERROR)


CODED = {
    b"gzip": gzip.compress,
    b"X-Gzip": gzip.compress,
    b"deflate": zlib.compress,
    b"zstd": zstd.compress,
    b"identity": bytes,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("coding", CODED)
def test_a_coded_answer_is_decoded(call, wires, coding, stream):
    plain = b"".join(wires[CHAT].frames) if stream else wires[CHAT].document
    coded = CODED[coding](plain)
    reply, _, record = call(CHAT, stream=stream, headers=[(b"content-encoding", coding)], chunks=[coded[:9], coded[9:]])
    assert (reply.body, record.ending, record.stop) == (plain, Ending.COMPLETED, "end")
    assert "content-encoding" not in reply.headers


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_coding_is_a_bad_answer(call, wires, stream):
    coded = gzip.compress(wires[RESPONSES].document)[:-4]
    reply, _, record = call(RESPONSES, stream=stream, headers=[(b"content-encoding", b"gzip")], chunks=[coded])
    assert (reply.status, record.code) == (502, Code.UPSTREAM_BAD_RESPONSE)


def test_a_small_body_does_not_become_a_large_one(call, wires):
    bomb = gzip.compress(b" " * 300_000 + wires[CHAT].document)
    options = {"top": "[limits]\nresponse_bytes = 1000\n"}
    reply, _, record = call(CHAT, headers=[(b"content-encoding", b"gzip")], chunks=[bomb], options=options)
    assert (reply.status, record.code) == (502, Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize("surface", [*SURFACES, "array"])
@pytest.mark.parametrize("how", ["status", "page", "answer", "first event", "later event", "coded"])
def test_no_error_text_tells_a_secret(ask, gateway, upstream, wires, monkeypatch, surface, how):
    monkeypatch.setenv("UP_KEY", SECRET)
    wire = wires[surface]
    error = wire.error.replace(b"too fast", b"key " + SECRET.encode() + b" at http://10.0.0.1:8000/v1 is too fast").replace(
        b'"param": null', b'"param": "' + SECRET.encode() + b'"'
    )
    frame = b"[" + error if surface == "array" else b"data: " + error + b"\n\n"
    scripts = {
        "status": {"status": 400, "chunks": [error]},
        "page": {"status": 429, "chunks": [b"<p>" + error]},
        "answer": {"chunks": [error]},
        "first event": {"chunks": [frame]},
        "later event": {"chunks": [wire.frames[0], b"," + frame[1:] if surface == "array" else frame]},
        "coded": {"status": 400, "headers": [(b"content-encoding", b"gzip")], "chunks": [gzip.compress(error)]},
    }
    app = gateway(upstream(**scripts[how]), wire.surface, binding='auth = { header = "authorization", env = "UP_KEY" }\n')
    reply = ask(app, *wire.ask(stream="event" in how))
    assert reply.whole
    assert b"error" in reply.body
    assert SECRET.encode() not in reply.body
    assert b"10.0.0.1" not in reply.body
    assert SECRET not in str(reply.headers)


# What a client asks wrongly: refused before any upstream call -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("surface", SURFACES)
def test_another_method_is_told_which_one_would_do(call, surface, method):
    reply, calls, record = call(surface, method=method)
    assert (reply.status, reply.headers["allow"], record.code, calls) == (405, "POST", Code.METHOD_NOT_ALLOWED, [])
    assert word(reply) in ("invalid_request_error", "INVALID_ARGUMENT")
    assert record.ending is Ending.REJECTED


@pytest.mark.parametrize(
    ("path", "asks", "envelope"),
    [("/v1/models", [], "param"), ("/v1/models/m", [("anthropic-version", "1")], "type"), ("/v1beta/models", [], "details")],
)
def test_a_model_list_is_got(call, path, asks, envelope):
    reply, calls, _ = call(CHAT, path=path, asks=asks)
    assert (reply.status, reply.headers["allow"], calls) == (405, "GET", [])
    assert envelope in reply.json["error"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/embeddings", "/v1/chat/completions/x", "//v1/messages", "/v1beta/models/m:embedContent"])
def test_a_path_of_no_surface(call, path):
    reply, calls, record = call(CHAT, path=path)
    assert (reply.status, record.code, calls) == (404, Code.NOT_FOUND, [])
    assert word(reply) == "invalid_request_error"


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    "asks",
    [[("content-type", kind)] for kind in ("", "text/plain", "application/json; charset=latin-1", "application/jsonl")]
    + [[("content-encoding", "br")]],
)
def test_other_media_types_and_codings(call, surface, asks):
    reply, calls, record = call(surface, asks=asks)
    assert (reply.status, record.code, calls) == (415, Code.UNSUPPORTED_MEDIA_TYPE, [])
    assert reply.received == 0
    assert record.ending is Ending.REJECTED


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON;charset=UTF-8", 'application/json; charset="utf-8"; x=y', "application/json;charset=utf8"]
)
def test_json_under_all_its_names(call, wires, kind):
    reply, calls, _ = call(CHAT, asks=[("content-type", kind)], chunks=[wires[CHAT].document])
    assert (reply.status, len(calls)) == (200, 1)


MALFORMED = {
    "empty": (b"", None),
    "no JSON": (b"{nope", None),
    "cut": (b'{"model": "m"', None),
    "no object": (b"[]", None),
    "no UTF-8": (b'{"model": "\xff"}', None),
    "twice": (b'{"model": "m", "model": "n", "contents": []}', "/model"),
    "deep": (b'{"a": ' + b"[" * 100_000, None),
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("how", MALFORMED)
def test_a_body_that_is_no_request(call, surface, how):
    body, pointer = MALFORMED[how]
    reply, calls, record = call(surface, body=body)
    assert (reply.status, record.code, record.pointer, calls) == (400, Code.MALFORMED_BODY, pointer, [])


@pytest.mark.parametrize("coding", [*CODED, b"raw deflate"])
def test_a_coded_body_is_decoded(call, wires, coding):
    body = json.dumps(wires[CHAT].body).encode()
    raw = zlib.compressobj(wbits=-15)
    coded = CODED[coding](body) if coding in CODED else raw.compress(body) + raw.flush()
    inbox = [{"type": "http.request", "body": coded[:5], "more_body": True}, {"type": "http.request", "body": coded[5:]}]
    asks = [("content-encoding", coding.decode().removeprefix("raw "))]
    reply, [sent], _ = call(CHAT, asks=asks, inbox=inbox, chunks=[wires[CHAT].document])
    assert (reply.status, sent.json) == (200, {**wires[CHAT].body, "model": "up-model"})


def test_a_coded_body_that_is_not_what_it_says(call, wires):
    for body in (b"{}", gzip.compress(json.dumps(wires[CHAT].body).encode())[:-1]):
        reply, calls, record = call(CHAT, asks=[("content-encoding", "gzip")], body=body)
        assert (reply.status, record.code, calls) == (400, Code.MALFORMED_BODY, [])


LIMITED = {"top": "[limits]\nrequest_bytes = 1000\n"}
LARGE = b'{"model": "' + b"m" * 1000 + b'"}'


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("asks", "pieces", "received"),
    [
        ([("content-length", str(len(LARGE)))], [LARGE], 0),
        ([], [LARGE], 1),
        ([("content-length", "many")], [LARGE[:900], LARGE[900:1001], b"never read"], 2),
        ([("content-encoding", "gzip")], [gzip.compress(LARGE)], 1),
        ([("content-encoding", "gzip")], [gzip.compress(b" " * 9_000_000)[:900]], 1),
    ],
)
def test_a_large_body_is_not_read_to_its_end(call, surface, asks, pieces, received):
    inbox = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    reply, calls, record = call(surface, asks=asks, inbox=inbox, options=LIMITED)
    assert (reply.status, record.code, calls) == (413, Code.BODY_TOO_LARGE, [])
    assert (reply.received, reply.headers["connection"]) == (received, "close")


def test_a_body_of_the_limit_is_read(call, wires):
    body = json.dumps(wires[CHAT].body).encode().ljust(1000)
    reply, calls, _ = call(CHAT, asks=[("content-length", "1000")], body=body, options=LIMITED, chunks=[wires[CHAT].document])
    assert (reply.status, len(calls)) == (200, 1)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
REJECTED = {
    "a field": (CHAT, {"nope": 1}, {}, Code.FIELD_REJECTED, "/nope", 400),
    "a feature": (CHAT, {"tools": [TOOL]}, {"features": ["streaming"]}, Code.FEATURE_UNSUPPORTED, "/tools", 400),
    "a stream": (MESSAGES, {"stream": True}, {"features": []}, Code.FEATURE_UNSUPPORTED, "/stream", 400),
    "a model": (RESPONSES, {"model": "x"}, {}, Code.UNKNOWN_MODEL, "/model", 404),
    "a long history": (
        CHAT,
        {"messages": [{"role": "user", "content": "x"}] * 3},
        {"top": "[limits]\nhistory_items = 2\n"},
        Code.LIMIT_EXCEEDED,
        "/messages",
        400,
    ),
    "a thread": (MESSAGES, {"thread": {}}, {}, Code.UNSUPPORTED_REQUEST, "/thread", 400),
    "another surface": (CHAT, {}, {"only": MESSAGES, "top": "[converters]\nenabled = []\n"}, Code.NO_CONVERTER, None, 400),
}


@pytest.mark.parametrize("how", REJECTED)
def test_a_rejection_calls_no_upstream(call, wires, how):
    surface, members, given, code, pointer, status = REJECTED[how]
    only = given.get("only")
    options = {name: value for name, value in given.items() if name != "only"}
    reply, calls, record = call(surface, body={**wires[surface].body, **members}, only=only, options=options)
    assert (reply.status, record.code, calls) == (status, code, [])
    assert record.ending is Ending.REJECTED
    assert (record.route, record.pointer) == (None, pointer)


def test_a_thread_is_refused_so_that_the_sdk_resends(call, wires):
    reply, _, record = call(MESSAGES, body={**wires[MESSAGES].body, "thread": {}})
    assert reply.json["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert reply.json["request_id"] == record.request_id


# Dry runs ---------------------------------------------------------------------------------------------------------------------------------

DRY = {"header": {"asks": [("x-surface-dry-run", "true")]}, "route file": {"options": {"top": "[dry_run]\nenabled = true\n"}}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("how", DRY)
def test_a_dry_run_answers_with_the_plan(call, surface, stream, how):
    reply, calls, record = call(surface, stream=stream, **DRY[how])
    assert (reply.status, reply.headers["content-type"], calls) == (200, "application/json", [])
    assert {name: reply.json[name] for name in ("downstreamSurface", "upstreamSurface", "routeId", "stream")} == {
        "downstreamSurface": surface,
        "upstreamSurface": surface,
        "routeId": "up:model",
        "stream": stream,
    }
    assert (record.ending, record.code, record.mode) == (Ending.COMPLETED, None, None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("how", DRY)
def test_a_dry_run_answers_with_the_rejection(call, wires, surface, stream, how):
    _, body = wires[surface].ask(stream=stream, nope=1)
    reply, calls, _ = call(surface, stream=stream, body=body, **DRY[how])
    assert (reply.status, calls) == (200, [])
    expected = {"kind": "reject", "status": 400, "code": "field_rejected", "pointer": "/nope", "servedBy": [f"up:model/{surface}"]}
    assert {name: reply.json[name] for name in expected} == expected


@pytest.mark.parametrize("said", ["false", "1", "yes", ""])
def test_a_dry_run_is_asked_for_by_one_word(call, wires, said):
    _, calls, _ = call(CHAT, asks=[("x-surface-dry-run", said)], chunks=[wires[CHAT].document])
    assert len(calls) == 1


# Model lists ------------------------------------------------------------------------------------------------------------------------------

ROUTES = {
    "binding": '[[routes]]\nroute_id = "b"\nupstream_model = "z"\nprovider = "up"\napi_bindings = [{ surface = "openai-responses", path = "/r" }]\n'
}


@pytest.fixture
def listed(ask, gateway, upstream, records):
    """A GET from a gateway with the models m and z."""

    def one(path, *headers):
        up = upstream()
        reply = ask(gateway(up, CHAT, **ROUTES), path, method="GET", headers=headers)
        assert reply.whole
        assert (up.calls, reply.received) == ([], 0)
        assert (reply.headers["cache-control"], len(records)) == ("no-store", 1)
        assert set(reply.headers) >= OURS
        return reply

    return one


ANTHROPIC, GOOGLE = ("anthropic-version", "2023-06-01"), ("x-goog-api-key", "k")


@pytest.mark.parametrize(
    ("path", "headers", "names"),
    [
        ("/v1/models", [], ["m", "z"]),
        ("/models", [], ["m", "z"]),
        ("/v1/models?limit=1", [], ["m", "z"]),
        ("/v1/models", [ANTHROPIC], ["m", "z"]),
        ("/v1/models?limit=1", [ANTHROPIC], ["m"]),
        ("/v1/models?limit=1&after_id=m", [ANTHROPIC], ["z"]),
        ("/v1/models?limit=5&before_id=z", [ANTHROPIC], ["m"]),
        ("/v1beta/models", [], ["models/m", "models/z"]),
        ("/v1/models?limit=1001", [ANTHROPIC], ["m", "z"]),
        ("/v1beta1/models/?pageSize=1", [], ["models/m"]),
        ("/v1beta/models?pageSize=1001", [], ["models/m", "models/z"]),
        ("/v1beta/models?pageSize=1000&pageToken=m", [], ["models/z"]),
        ("/v1/models", [GOOGLE], ["models/m", "models/z"]),
    ],
)
def test_the_model_list_of_each_api(listed, path, headers, names):
    reply = listed(path, *headers)
    entries = reply.json.get("data") or reply.json["models"]
    assert (reply.status, [one.get("id") or one["name"] for one in entries]) == (200, names)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        *((f"/v1/models?limit={limit}", [ANTHROPIC]) for limit in ("0", "-1", "x", "1.5", "%C2%B2", "9999999999")),
        ("/v1/models?after_id=nobody", [ANTHROPIC]),
        ("/v1/models?before_id=nobody", [ANTHROPIC]),
        *((f"/v1beta/models?pageSize={size}", []) for size in ("0", "-1", "ten")),
        ("/v1beta/models?pageToken=nobody", []),
    ],
)
def test_a_page_that_is_none(listed, path, headers):
    reply = listed(path, *headers)
    assert (reply.status, word(reply)) == (400, "INVALID_ARGUMENT" if "v1beta" in path else "invalid_request_error")


@pytest.mark.parametrize(
    ("path", "headers", "name", "value"),
    [
        ("/v1/models/m", [], "id", "m"),
        ("/v1/models/%6D/", [], "id", "m"),
        ("/v1/models/m", [ANTHROPIC], "display_name", "m"),
        ("/v1beta/models/m", [], "name", "models/m"),
        ("/v1/models/z", [GOOGLE], "supportedGenerationMethods", ["generateContent"]),
    ],
)
def test_one_model_of_each_api(listed, path, headers, name, value):
    reply = listed(path, *headers)
    assert (reply.status, reply.json[name]) == (200, value)


@pytest.mark.parametrize(
    ("path", "headers", "said"),
    [
        ("/v1/models/nobody", [], "invalid_request_error"),
        ("/v1/models/up-model", [ANTHROPIC], "not_found_error"),
        ("/v1beta/models/a%2Fb", [], "NOT_FOUND"),
    ],
)
def test_a_model_that_nobody_serves(listed, path, headers, said):
    reply = listed(path, *headers)
    assert (reply.status, word(reply), reply.headers["x-surface-error"]) == (404, said, Code.UNKNOWN_MODEL)


# Counting tokens --------------------------------------------------------------------------------------------------------------------------

COUNT = {
    MESSAGES: ("/v1/messages/count_tokens", b'{"input_tokens": 3}', "/v1/messages/count_tokens"),
    GEMINI: ("/v1beta/models/m:countTokens", b'{"totalTokens": 3}', "/v1beta/models/up-model:countTokens"),
}
COUNTING = {"features": ["count-tokens"]}


@pytest.mark.parametrize("surface", COUNT)
def test_tokens_are_counted_by_the_upstream(call, surface):
    path, answer, target = COUNT[surface]
    reply, [sent], record = call(surface, path=path, chunks=[answer], options=COUNTING)
    assert (reply.status, reply.body, sent.target) == (200, answer, target)
    assert (record.operation, record.ending, record.usage) == ("count-tokens", Ending.COMPLETED, None)


@pytest.mark.parametrize("surface", COUNT)
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (b"nope", 502, Code.UPSTREAM_BAD_RESPONSE),
        (b"[3]", 502, Code.UPSTREAM_BAD_RESPONSE),
        (b'{"input_tokens": "\xff"}', 502, Code.UPSTREAM_BAD_RESPONSE),
        (b'{"a": ' + b"[" * 200_000, 502, Code.UPSTREAM_BAD_RESPONSE),
        (b'{"error": {"code": 429, "message": "slow", "type": "rate_limit_error"}}', 429, Code.UPSTREAM_RATE_LIMITED),
    ],
)
def test_a_count_that_is_none(call, surface, answer, status, code):
    reply, _, record = call(surface, path=COUNT[surface][0], chunks=[answer], options=COUNTING)
    assert (reply.status, record.code) == (status, code)


@pytest.mark.parametrize("surface", COUNT)
def test_a_route_that_does_not_count(call, surface):
    reply, calls, record = call(surface, path=COUNT[surface][0])
    assert (reply.status, record.code, calls) == (400, Code.FEATURE_UNSUPPORTED, [])


# What was left out ------------------------------------------------------------------------------------------------------------------------

DROPPING = {
    "top": '[policies.loose]\nsurface = "openai-chat-completions"\nextends = "openai-chat-default"\nunknown_field_action = "drop"\n'
    'allowed_tool_types = ["function"]\n',
    "binding": 'request_policy = "loose"\n',
}


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_left_out_is_told(call, wires, stream):
    custom = {"type": "custom", "custom": {"name": "c"}}
    _, body = wires[CHAT].ask(stream=stream, nope=1, tools=[custom, TOOL, custom], **{"a,b\n\xe9": 2})
    chunks = wires[CHAT].frames if stream else [wires[CHAT].document]
    reply, [sent], record = call(CHAT, stream=stream, body=body, options=DROPPING, chunks=chunks)
    assert reply.headers["x-surface-dropped"] == "/nope,/tools/*,/a?b?\\xe9"
    # A client can write anything into a name, and the record holds no words of a client's.
    assert record.dropped == ("/nope", "/tools/0", "/tools/2", "/?")
    assert set(sent.json) == set(body) - {"nope", "a,b\n\xe9"}
    assert sent.json["tools"] == [TOOL]


def test_what_was_left_out_is_told_within_bounds(call, wires):
    body = {**wires[CHAT].body, **{f"field_{number:03}": 1 for number in range(300)}}
    reply, _, record = call(CHAT, body=body, options=DROPPING, chunks=[wires[CHAT].document])
    told = reply.headers["x-surface-dropped"].split(",")
    assert (told[0], told[-1]) == ("/field_000", f"+{300 - len(told) + 1}")
    assert 900 < len(reply.headers["x-surface-dropped"]) <= 1024
    assert len(record.dropped) == 300


@pytest.mark.parametrize(
    ("pointers", "value"),
    [
        (("/input/0/id", "/input/12/id", "/input/0/name"), b"/input/*/id,/input/*/name"),
        (("/" + "x" * 2000,), b"+1"),
        (("/a", "/" + "x" * 2000, "/b"), b"/a,+2"),
        (("/\u2603", "/a\r\nb"), b"/\\u2603,/a??b"),
    ],
)
def test_pointers_as_one_header(pointers, value):
    assert folded(pointers) == value


# A host's own choice of routes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "status", "calls"),
    [
        (None, 200, 1),
        ([RouteCandidate("up:model")], 200, 1),
        ([RouteCandidate("gone"), RouteCandidate("up:model", CHAT)], 200, 1),
        ([RouteCandidate("up:model", MESSAGES)], 400, 0),
        ([RouteCandidate("gone")], 404, 0),
        ([], 404, 0),
    ],
)
def test_a_host_may_choose_the_route(ask, gateway, upstream, wires, chosen, status, calls):
    asked = []

    async def candidates(surface, model):
        asked.append((surface, model))
        return chosen

    up = upstream(chunks=[wires[CHAT].document])
    reply = ask(gateway(up, candidates=candidates, top="[converters]\nenabled = []\n"), wires[CHAT].path, wires[CHAT].body)
    assert (reply.status, len(up.calls), asked) == (status, calls, [(CHAT, "m")])


# The record -------------------------------------------------------------------------------------------------------------------------------


def test_the_record_is_one_line_without_a_word_of_the_conversation(ask, catalog, upstream, wires, caplog):
    up = upstream(chunks=[wires[CHAT].document.replace(b"Hi", b"the answer")])
    body = {**wires[CHAT].body, "messages": [{"role": "user", "content": "the prompt"}]}
    with caplog.at_level("INFO", logger="asgi_surface"):
        ask(Gateway(catalog=catalog(CHAT), upstream=up), wires[CHAT].path, body, headers=[("authorization", "Bearer the-key")])
    [entry] = caplog.records
    record = json.loads(entry.getMessage())
    assert {name: record[name] for name in record if name not in ("request_id", "seconds", "bytes")} == {
        "surface": CHAT,
        "operation": "generate",
        "ending": "completed",
        "status": 200,
        "model": "m",
        "route": "up:model",
        "upstream": CHAT,
        "mode": "native",
        "stop": "end",
        "usage": {"input": 3, "output": 2, **dict.fromkeys(("cached", "cache_write", "reasoning", "audio_input", "audio_output"))},
    }
    assert not any(word in entry.getMessage() for word in ("the answer", "the prompt", "the-key"))
