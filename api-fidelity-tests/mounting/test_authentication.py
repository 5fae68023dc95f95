"""Who may ask: clients with a key, whoever is on this machine, or whom the host lets through. Decided before a body is read."""

from __future__ import annotations

import hashlib
import json

import pytest

from asgi_surface.errors import Code
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
TYPES = {CHAT: "invalid_request_error", RESPONSES: "invalid_request_error", MESSAGES: "authentication_error", GEMINI: "UNAUTHENTICATED"}
KEYS = '[auth]\nmode = "keys"\n' + "".join(
    f'[[keys]]\nname = "{name}"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n{models}'
    for name, models in (("ada", ""), ("bob", 'models = ["m", "gpt-*"]\n'), ("eve", "models = []\n"))
)
LOOPBACK = '[auth]\nmode = "loopback"\n'
PEER = {"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 80)}
OTHER_ROUTE = """
[[routes]]
route_id = "other"
upstream_model = "x"
provider = "up"
api_bindings = [{ surface = "openai-chat-completions", path = "/x" }]
"""


@pytest.fixture
def ring(ask, gateway, upstream, wires, records):
    """One request to a gateway with an `[auth]` table; gives the reply, the calls and the record."""

    def one(surface, *, top, headers=(), query="", body=None, **scope):
        wire = wires[surface]
        up = upstream(chunks=[wire.document])
        reply = ask(gateway(up, surface, top=top), f"{wire.path}{query}", wire.body if body is None else body, headers=headers, **scope)
        [record] = records
        return reply, up.calls, record

    return one


BEARER = [("authorization", "Bearer ada")]
API_KEY = [("x-api-key", "ada")]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    "headers",
    [
        BEARER,
        API_KEY,
        [("AUTHORIZATION", "bearer   ada ")],
        [("authorization", "ada")],
        [*BEARER, *API_KEY],
        [("authorization", "Bearer "), *API_KEY],
    ],
)
def test_a_key_lets_in_from_wherever_a_client_puts_it(ring, surface, headers):
    reply, calls, record = ring(surface, top=KEYS, headers=headers)
    assert (reply.status, len(calls), record.key) == (200, 1, "ada")
    assert b"ada" not in b"".join(value for _, value in calls[0].headers)


@pytest.mark.parametrize(
    ("headers", "query"),
    [([("x-goog-api-key", "ada")], ""), ([], "?key=ada"), ([], "?k%65y=%61da&x=1"), ([*API_KEY, ("x-goog-api-key", "ada")], "?key=ada")],
)
def test_gemini_clients_have_places_of_their_own(ring, headers, query):
    reply, calls, record = ring(GEMINI, top=KEYS, headers=headers, query=query)
    assert (reply.status, record.key) == (200, "ada")
    assert "ada" not in calls[0].target


STRANGERS = {
    "no key": ([], ""),
    "an unknown key": ([("authorization", "Bearer mallory")], ""),
    "another scheme": ([("authorization", "Basic ada")], ""),
    "an empty key": ([("x-api-key", "")], ""),
    "an empty bearer": ([("authorization", "Bearer ")], ""),
    "no ASCII": ([("x-api-key", "\xe4da")], ""),
    "a key's hash": ([("x-api-key", hashlib.sha256(b"ada").hexdigest())], ""),
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("who", STRANGERS)
def test_a_stranger_is_told_so_before_the_body_is_read(ring, surface, who):
    headers, query = STRANGERS[who]
    reply, calls, record = ring(surface, top=KEYS, headers=headers, query=query)
    assert reply.whole
    assert (reply.status, reply.received, calls) == (401, 0, [])
    assert (reply.headers["www-authenticate"], reply.headers["x-surface-error"]) == ("Bearer", Code.UNAUTHORIZED)
    assert reply.json["error"].get("type", reply.json["error"].get("status")) == TYPES[surface]
    assert (record.ending, record.code, record.key) == (Ending.REJECTED, Code.UNAUTHORIZED, None)


def test_the_hash_of_nothing_is_no_key(ring):
    top = f'[auth]\nmode = "keys"\n[[keys]]\nname = "oops"\nsha256 = "{hashlib.sha256().hexdigest()}"\n'
    reply, calls, _ = ring(CHAT, top=top)
    assert (reply.status, calls) == (401, [])


@pytest.mark.parametrize(("surface", "query"), [(CHAT, "?key=ada"), (MESSAGES, "?key=ada"), (GEMINI, "?key="), (GEMINI, "?key=%ff")])
def test_a_query_is_no_place_for_a_key_elsewhere(ring, surface, query):
    reply, calls, _ = ring(surface, top=KEYS, query=query)
    assert (reply.status, reply.received, calls) == (401, 0, [])


@pytest.mark.parametrize("surface", [CHAT, RESPONSES, MESSAGES])
def test_googles_header_is_for_gemini(ring, surface):
    reply, calls, _ = ring(surface, top=KEYS, headers=[("x-goog-api-key", "ada")])
    assert (reply.status, calls) == (401, [])


@pytest.mark.parametrize(
    ("surface", "headers", "query"),
    [
        (CHAT, [("authorization", "Bearer ada"), ("x-api-key", "bob")], ""),
        (MESSAGES, [("x-api-key", "ada"), ("x-api-key", "bob")], ""),
        (GEMINI, [("x-goog-api-key", "ada")], "?key=bob"),
        (GEMINI, [], "?key=ada&key=bob"),
    ],
)
def test_credentials_that_differ_are_refused(ring, surface, headers, query):
    reply, calls, record = ring(surface, top=KEYS, headers=headers, query=query)
    assert (reply.status, reply.received, calls) == (400, 0, [])
    assert record.code is Code.UNSUPPORTED_REQUEST


def test_without_keys_credentials_may_differ(ring):
    reply, calls, _ = ring(CHAT, top=LOOPBACK, headers=[*BEARER, ("x-api-key", "bob"), ("host", "localhost")], **PEER)
    assert (reply.status, len(calls)) == (200, 1)


@pytest.mark.parametrize(
    ("key", "model", "status"),
    [("ada", "m", 200), ("bob", "m", 200), ("bob", "gpt-9", 404), ("bob", "other", 403), ("bob", "up:model", 403), ("eve", "m", 403)],
)
def test_a_key_may_be_for_some_models(ask, gateway, upstream, wires, records, key, model, status):
    up = upstream(chunks=[wires[CHAT].document])
    app = gateway(up, CHAT, top=KEYS, binding=OTHER_ROUTE)
    reply = ask(app, wires[CHAT].path, {**wires[CHAT].body, "model": model}, headers=[("x-api-key", key)])
    assert (reply.status, len(up.calls)) == (status, status == 200)
    assert records[0].key == key
    assert status != 403 or (reply.headers["x-surface-error"], reply.json["error"]["code"]) == (Code.MODEL_FORBIDDEN, "model_forbidden")


@pytest.mark.parametrize(("key", "names"), [("ada", ["m", "x"]), ("bob", ["m"]), ("eve", [])])
@pytest.mark.parametrize(
    ("path", "extra", "listed"),
    [
        ("/v1/models", [], lambda body: [one["id"] for one in body["data"]]),
        ("/v1/models", [("anthropic-version", "2023-06-01")], lambda body: [one["id"] for one in body["data"]]),
        ("/v1beta/models", [], lambda body: [one["displayName"] for one in body["models"]]),
    ],
)
def test_a_key_sees_what_it_may_use(ask, gateway, upstream, key, names, path, extra, listed):
    app = gateway(upstream(), CHAT, top=KEYS, binding=OTHER_ROUTE)
    headers = [("x-api-key", key), *extra]
    assert listed(ask(app, path, method="GET", headers=headers).json) == names
    assert ask(app, f"{path}/x", method="GET", headers=headers).status == (200 if "x" in names else 404)


def test_model_lists_want_a_key_too(ask, gateway, upstream):
    assert ask(gateway(upstream(), top=KEYS), "/v1/models", method="GET").status == 401


def test_the_host_decides(ring):
    reply, calls, record = ring(CHAT, top="", headers=[("host", "api.example.com"), ("origin", "https://example.com")], client=("192.0.2.1", 5))
    assert (reply.status, len(calls), record.key) == (200, 1, None)


HERE = {
    "this machine": (PEER, "localhost:8000", None),
    "by address": (PEER, "127.0.0.1:8000", None),
    "any loopback address": ({"client": ("127.1.2.3", 5), "server": ("127.0.0.1", 80)}, "127.9.9.9", None),
    "IPv6": ({"client": ("::1", 5), "server": ("::1", 80)}, "[::1]:8000", None),
    "both protocols": ({"client": ("::ffff:127.0.0.1", 5), "server": ("::ffff:127.0.0.1", 80)}, "LOCALHOST", None),
    "a unix socket": ({"client": None, "server": ("/run/gateway.sock", None)}, "localhost", None),
    "a unix socket with an empty peer": ({"client": ("",), "server": None}, "localhost", None),
    "a server that does not say": ({}, "localhost", None),
    "its own page": (PEER, "localhost:8000", "http://localhost:8000"),
    "its own page on IPv6": (PEER, "[::1]:8000", "http://[::1]:8000"),
}
ELSEWHERE = {
    "another machine": ({**PEER, "client": ("192.0.2.1", 5)}, "localhost", None),
    "another machine by name": ({**PEER, "client": ("testclient", 5)}, "localhost", None),
    "another interface": ({**PEER, "server": ("192.0.2.2", 80)}, "localhost", None),
    "all interfaces": ({**PEER, "server": ("0.0.0.0", 80)}, "localhost", None),
    "a mapped stranger": ({**PEER, "client": ("::ffff:192.0.2.1", 5)}, "localhost", None),
    "a rebound name": (PEER, "evil.example:8000", None),
    "a name that begins well": (PEER, "localhost.evil.example", None),
    "an address that begins well": (PEER, "127.0.0.1.evil.example", None),
    "user information": (PEER, "localhost@evil.example", None),
    "no host": (PEER, "", None),
    "no name": (PEER, ":8000", None),
    "a broken host": (PEER, "[::1", None),
    "no ASCII": (PEER, "localh\xf6st", None),
    "a page elsewhere": (PEER, "localhost:8000", "https://evil.example"),
    "a page on another port": (PEER, "localhost:8000", "http://localhost:9000"),
    "a page by another name": (PEER, "localhost:8000", "http://127.0.0.1:8000"),
    "a page of no origin": (PEER, "localhost:8000", "null"),
    "an empty origin": (PEER, "localhost:8000", ""),
    "a broken origin": (PEER, "localhost:8000", "http://[::1"),
}


@pytest.mark.parametrize(("where", "status"), [*((where, 200) for where in HERE), *((where, 403) for where in ELSEWHERE)])
def test_without_keys_only_this_machine_may_ask(ring, where, status):
    scope, host, origin = {**HERE, **ELSEWHERE}[where]
    headers = [("host", host), *([] if origin is None else [("origin", origin)])]
    reply, calls, record = ring(CHAT, top=LOOPBACK, headers=headers, **scope)
    assert (reply.status, len(calls)) == (status, status == 200)
    assert status == 200 or (reply.received, reply.headers["x-surface-error"], record.ending) == (0, Code.UNAUTHORIZED, Ending.REJECTED)


@pytest.mark.parametrize("surface", SURFACES)
def test_the_refusal_is_in_the_clients_envelope(ring, surface):
    reply, calls, _ = ring(surface, top=LOOPBACK, headers=[("host", "evil.example")])
    assert (reply.status, calls) == (403, [])
    assert reply.json["error"].get("type", reply.json["error"].get("status")) in (TYPES[surface], "permission_error", "PERMISSION_DENIED")


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
def test_what_a_page_may_send_without_being_asked_is_no_request(ring, wires, media):
    """A browser sends these types across origins without a preflight, and some send no Origin."""
    headers = [("host", "localhost"), ("content-type", media)]
    reply, calls, _ = ring(CHAT, top=LOOPBACK, headers=headers, body=json.dumps(wires[CHAT].body).encode(), **PEER)
    assert (reply.status, reply.received, calls) == (415, 0, [])
