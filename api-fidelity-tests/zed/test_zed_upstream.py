"""A Zed server as upstream: clients of all surfaces get its answers as their own, and whatever goes wrong there is told as what it is."""

from __future__ import annotations

import itertools
import json
import zlib

import pytest

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.upstream import carried

PROVIDERS = {"anthropic": MESSAGES, "open_ai": RESPONSES, "google": GEMINI, "x_ai": CHAT, "baseten": CHAT}
FOUR = list(PROVIDERS)[:4]
WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
WRAPPED = [(b"content-type", b"application/x-ndjson"), (b"x-zed-server-supports-status-messages", b"true"), (b"x-request-id", b"up-1")]
BARE = [(b"content-type", b"text/plain")]
STARTED = {"status": "started"}
ENDED = {"status": "stream_ended"}
FEATURES = ["streaming", "tools", "parallel-tools", "reasoning", "images", "structured-output"]


def line(value):
    return json.dumps(value).encode() + b"\n"


def failed(code, message="too fast", **more):
    return line({"status": {"failed": {"code": code, "message": message, "request_id": "6f1c51c4-1c7e-4b59-b9b3-7a1d2f6e7c11", **more}}})


@pytest.fixture
def events(wires):
    """What a provider's stream says, event by event."""
    return lambda provider: [event for event in wires[PROVIDERS[provider]].events(b"".join(wires[PROVIDERS[provider]].frames)) if event != "[DONE]"]


@pytest.fixture
def lines(events):
    """A whole answer as a Zed server says it: wrapped, with statuses around the events, or bare."""

    def write(provider, *, wrapped=True):
        said = events(provider)
        if not wrapped:
            return [line(event) for event in said]
        return [line({"status": {"queued": {"position": 2}}}), line(STARTED), *(line({"event": event}) for event in said), line(ENDED)]

    return write


def routes(provider, *, features=(), top="", binding="", upstream_model="up-model"):
    declared = json.dumps([*FEATURES, *features])
    return f"""
[auth]
mode = "host"
{top}
[providers.zed]
base_url = "http://127.0.0.1:9"
[[routes]]
route_id = "zed:model"
models = ["m"]
upstream_model = "{upstream_model}"
provider = "zed"
[[routes.api_bindings]]
surface = "zed-completions"
path = "/completions"
features = {declared}
dialect = {{ zed_provider = "{provider}" }}
{binding}
"""


@pytest.fixture
def run(ask, upstream, wires, records):
    """One request to a gateway with one Zed binding. Gives the wire, the reply, the calls that reached the upstream, and the record."""

    def one(client, provider, chunks=(), *, stream=True, headers=WRAPPED, members=None, path=None, **script):
        options = {name: script.pop(name) for name in ("features", "top", "binding", "upstream_model") if name in script}
        sent = script.pop("sent", ())
        wire, up = wires[client], upstream(chunks=chunks, headers=headers, **script)
        gateway = Gateway(catalog=build(routes(provider, **options)), upstream=up, record=records.append)
        asked, body = wire.ask(stream=stream, **(members or {}))
        reply = ask(gateway, path or asked, body, headers=sent)
        assert reply.whole
        return wire, reply, up.calls, records[-1]

    return one


def text(surface, event):
    """The text that one event of a stream adds."""
    if event == "[DONE]":
        return ""
    found = {
        CHAT: lambda: [choice["delta"].get("content") or "" for choice in event["choices"]],
        RESPONSES: lambda: [event["delta"]] if event["type"] == "response.output_text.delta" else [],
        MESSAGES: lambda: [event["delta"].get("text", "")] if event["type"] == "content_block_delta" else [],
        GEMINI: lambda: [part["text"] for candidate in event["candidates"] for part in candidate["content"].get("parts", ()) if "text" in part],
    }
    return "".join(found[surface]())


def document(surface, answer):
    """The text of a whole answer."""
    found = {
        CHAT: lambda: answer["choices"][0]["message"]["content"],
        RESPONSES: lambda: answer["output"][0]["content"][0]["text"],
        MESSAGES: lambda: answer["content"][0]["text"],
        GEMINI: lambda: "".join(part["text"] for part in answer["candidates"][0]["content"]["parts"]),
    }
    return found[surface]()


SAID = {"anthropic": "Hi", "open_ai": "Hi", "google": "Hi!", "x_ai": "Hi", "baseten": "Hi"}

# -- whole answers ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "bare"])
@pytest.mark.parametrize(("client", "provider"), [*itertools.product(WIRES, PROVIDERS)])
def test_clients_of_all_surfaces_get_a_stream(run, lines, client, provider, wrapped):
    wire, reply, [call], record = run(client, provider, lines(provider, wrapped=wrapped), headers=WRAPPED if wrapped else BARE)
    assert (reply.status, reply.headers["content-type"], wire.end(reply.body)) == (200, wire.media, "end")
    assert "".join(text(wire.surface, event) for event in wire.events(reply.body)) == SAID[provider]
    assert b"zed" not in reply.body
    assert (record.ending, record.usage.input, record.usage.output) == (Ending.COMPLETED, 3, 2)
    assert (call.target, reply.headers["x-surface-upstream"], record.upstream) == ("/completions", "zed-completions", "zed-completions")


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "bare"])
@pytest.mark.parametrize(("client", "provider"), [*itertools.product(WIRES[:4], FOUR)])
def test_clients_that_do_not_stream_get_a_document(run, lines, client, provider, wrapped):
    wire, reply, [call], record = run(client, provider, lines(provider, wrapped=wrapped), stream=False, headers=WRAPPED if wrapped else BARE)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert document(wire.surface, reply.json) == SAID[provider]
    assert record.ending is Ending.COMPLETED
    assert call.json["provider_request"].get("stream", True)


@pytest.mark.parametrize("provider", FOUR)
def test_native_frames_are_the_providers_events_byte_for_byte(run, provider, wires, events):
    surface = PROVIDERS[provider]
    odd = [json.dumps(event).encode().replace(b'"Hi"', b'"H\\u0069"').replace(b": ", b" :\t") for event in events(provider)]
    _, reply, _, _ = run(surface, provider, [*(b'{"event":' + one + b"}\n" for one in odd), line(ENDED)])
    named = [json.loads(one).get("type", "") if surface in (MESSAGES, RESPONSES) else "" for one in odd]
    frames = [(f"event: {name}\n" if name else "").encode() + b"data: " + one + b"\n\n" for name, one in zip(named, odd, strict=True)]
    assert reply.body == b"".join(frames) + (b"data: [DONE]\n\n" if surface == CHAT else b"")


@pytest.mark.parametrize("size", [1, 7, 64])
def test_lines_are_found_however_the_bytes_are_cut(run, lines, size):
    body = b"".join(lines("anthropic"))
    wire, reply, _, _ = run(CHAT, "anthropic", [body[at : at + size] for at in range(0, len(body), size)])
    assert wire.end(reply.body) == "end"


@pytest.mark.parametrize("ending", [b"\r\n", b""], ids=["CRLF", "no line end behind the last"])
def test_other_line_ends_do(run, lines, ending):
    *before, last = lines("x_ai")
    wire, reply, _, _ = run(CHAT, "x_ai", [*(one[:-1] + (ending or b"\n") for one in before), last[:-1] + ending])
    assert wire.end(reply.body) == "end"
    wire, reply, _, _ = run(MESSAGES, "x_ai", [b"".join(lines("x_ai", wrapped=False))[:-1] + ending], headers=BARE)
    assert wire.end(reply.body) == "end"


def test_statuses_of_older_and_newer_servers_say_nothing(run, lines):
    older = [line({"status": {"usage_updated": {"amount": 1, "limit": "unlimited"}}}), line({"status": "tool_use_limit_reached"})]
    wire, reply, _, _ = run(MESSAGES, "anthropic", [*older, *lines("anthropic")])
    assert wire.end(reply.body) == "end"


def test_nothing_follows_the_end(run, lines, events):
    wire, reply, _, record = run(GEMINI, "google", [*lines("google"), line({"event": events("google")[0]}), failed("upstream_http_500")])
    assert wire.end(reply.body) == "end"
    assert "".join(text(GEMINI, event) for event in wire.events(reply.body)) == "Hi!"
    assert record.ending is Ending.COMPLETED


def test_a_compressed_answer_is_unpacked(run, lines):
    packed = zlib.compress(b"".join(lines("anthropic")))
    wire, reply, _, _ = run(CHAT, "anthropic", [packed[:20], packed[20:]], headers=[*WRAPPED, (b"Content-Encoding", b"deflate")])
    assert wire.end(reply.body) == "end"


@pytest.mark.parametrize(
    ("coding", "chunks", "text"),
    [
        (b"br", [b"x"], "encoded in a way"),
        (b"gzip", [b"no gzip"], "not what its content-encoding says"),
        (b"deflate", [zlib.compress(b'{"status":"started"}\n')[:-4]], "not what its content-encoding says"),
    ],
)
def test_a_coding_that_cannot_be_undone_is_a_bad_answer(run, coding, chunks, text):
    wire, reply, _, record = run(MESSAGES, "anthropic", chunks, headers=[*WRAPPED, (b"content-encoding", coding)])
    assert (reply.status, record.code) == (502, Code.UPSTREAM_BAD_RESPONSE)
    assert text in reply.json["error"]["message"]
    assert wire.surface == MESSAGES


def test_an_answer_without_a_head_is_no_http(ask, wires, records):
    async def headless(scope, receive, send):
        await send({"type": "http.response.body", "body": line(STARTED), "more_body": False})

    gateway = Gateway(catalog=build(routes("x_ai")), upstream=headless, record=records.append)
    reply = ask(gateway, *wires[CHAT].ask(stream=True))
    assert (reply.status, records[0].code) == (502, Code.UPSTREAM_PROTOCOL_ERROR)


# -- the request -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "provider"), [*itertools.product(WIRES, FOUR)])
def test_the_upstream_gets_an_envelope(run, lines, client, provider):
    _, _, [call], record = run(client, provider, lines(provider), sent=[("anthropic-beta", "b"), ("x-zed-version", "1.2.3")])
    assert list(call.json) == ["provider", "model", "provider_request"]
    assert (call.json["provider"], call.json["model"]) == (provider, "up-model")
    inner = call.json["provider_request"]
    assert inner["model"] == ("models/up-model" if provider == "google" else "up-model")
    assert inner.get("stream", provider == "google") is True
    assert {"anthropic": "messages", "open_ai": "input", "google": "contents", "x_ai": "messages"}[provider] in inner
    assert dict(call.headers) == {
        b"content-type": b"application/json",
        b"accept": b"*/*",
        b"accept-encoding": b"identity",
        b"user-agent": dict(call.headers)[b"user-agent"],
        b"x-zed-client-supports-status-messages": b"true",
        b"x-zed-client-supports-stream-ended-request-completion-status": b"true",
    }
    assert record.mode == "native" if PROVIDERS[provider] == record.surface else "->" in record.mode


def test_a_native_body_keeps_the_bytes_of_its_members(run, lines):
    tools = [{"name": "f", "input_schema": {"type": "object", "x": 1.0}}]
    members = {"system": [{"type": "text", "text": "é", "cache_control": {"type": "ephemeral"}}], "tools": tools}
    _, _, [call], _ = run(MESSAGES, "anthropic", lines("anthropic"), members=members, features=["prompt-cache"])
    assert json.dumps(members["system"]).encode() in call.body
    assert json.dumps(tools).encode() in call.body


@pytest.mark.parametrize("stream", [True, False])
def test_a_chat_upstream_is_asked_for_usage(run, lines, stream):
    _, reply, [call], _ = run(MESSAGES, "x_ai", lines("x_ai"), stream=stream)
    assert call.json["provider_request"]["stream_options"] == {"include_usage": True}
    assert reply.status == 200


def test_a_query_of_the_route_file_goes_along_and_none_of_the_client(run, lines):
    binding = 'query = { "api version" = "1/2" }'
    _, _, [call], _ = run(MESSAGES, "anthropic", lines("anthropic"), path="/v1/messages?beta=true", binding=binding)
    assert call.target == "/completions?api%20version=1%2F2"


TIGHT = """
[policies.tight]
surface = "zed-completions"
extends = "zed-default"
allowed_headers = ["X-Zed-Version"]
force = { mode = "normal" }
"""


def test_the_request_policy_judges_the_envelope(run, lines):
    sent = [("x-zed-version", "1.2.3"), ("anthropic-beta", "b")]
    _, _, [call], _ = run(MESSAGES, "anthropic", lines("anthropic"), top=TIGHT, binding='request_policy = "tight"', sent=sent)
    assert call.json["mode"] == "normal"
    assert {name for name, _ in call.headers} >= {b"x-zed-version"}
    assert b"anthropic-beta" not in dict(call.headers)


def test_the_carried_body_is_judged_by_its_own_surface(run):
    wire, reply, calls, record = run(MESSAGES, "anthropic", members={"container": "c"})
    assert (reply.status, record.code, record.pointer, calls) == (400, Code.FIELD_REJECTED, "/container", [])
    assert wire.surface == MESSAGES


WITHIN = """
[policies.within]
surface = "anthropic-messages"
extends = "anthropic-messages-default"
allowed_fields = ["model", "max_tokens", "messages", "stream", "tools", "metadata"]
unknown_field_action = "drop"
force = { metadata = { user_id = "gateway" } }
defaults = { temperature = 0 }
allowed_tool_types = ["custom"]
"""
TOOLS = [{"name": "look", "input_schema": {"type": "object"}}, {"type": "bash_20250124", "name": "bash"}]


def test_a_policy_of_the_carried_surface_judges_the_body_within(run, lines):
    members = {"tools": TOOLS, "top_k": 3, "metadata": {"user_id": "u"}}
    options = {"top": WITHIN, "binding": 'request_policy = "within"'}
    _, reply, [call], _ = run(MESSAGES, "anthropic", lines("anthropic"), members=members, **options)
    inner = call.json["provider_request"]
    assert (inner["metadata"], inner["temperature"], inner["tools"], "top_k" in inner) == ({"user_id": "gateway"}, 0, TOOLS[:1], False)
    assert set(reply.headers["x-surface-dropped"].split(",")) == {"/tools/*", "/top_k", "/metadata"}


def test_it_judges_what_a_conversion_makes_too(run, lines):
    options = {"top": WITHIN, "binding": 'request_policy = "within"'}
    _, reply, [call], _ = run(CHAT, "anthropic", lines("anthropic"), members={"top_p": 0.5}, **options)
    inner = call.json["provider_request"]
    assert (inner["metadata"], inner["temperature"], "top_p" in inner) == ({"user_id": "gateway"}, 0, False)
    assert "/top_p" in reply.headers["x-surface-dropped"].split(",")


def test_it_refuses_with_the_place_in_the_body_and_leaves_the_envelope_to_the_shipped_one(run):
    top = WITHIN.replace('"drop"', '"reject"')
    _, reply, calls, record = run(MESSAGES, "anthropic", members={"top_k": 3}, top=top, binding='request_policy = "within"')
    assert (reply.status, record.code, record.pointer, calls) == (400, Code.FIELD_REJECTED, "/top_k", [])


def test_a_plan_names_the_policy_that_the_file_does(run):
    for name, top in (("within", WITHIN), ("tight", TIGHT), ("zed-default", "")):
        _, reply, _, _ = run(MESSAGES, "anthropic", top=top, binding=f'request_policy = "{name}"', sent=[("x-surface-dry-run", "true")])
        assert reply.json["requestPolicy"] == name


def test_a_repeating_answer_knows_its_request(run, lines):
    """A Responses document repeats the request, which stands in an envelope here."""
    _, reply, _, _ = run(RESPONSES, "open_ai", lines("open_ai"), stream=False, members={"instructions": "be brief", "temperature": 0.5})
    assert (reply.json["instructions"], reply.json["temperature"]) == ("be brief", 0.5)


def test_a_request_that_cannot_be_lifted_is_served_natively(run, lines):
    odd = {"messages": [{"role": "user", "content": [{"type": "x-new", "x": 1}]}]}
    wire, reply, [call], _ = run(MESSAGES, "anthropic", lines("anthropic"), members=odd)
    assert wire.end(reply.body) == "end"
    assert call.json["provider_request"]["messages"] == odd["messages"]


# -- tokens counted --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "provider", "path", "answer"),
    [
        (MESSAGES, "anthropic", "/v1/messages/count_tokens", {"input_tokens": 42}),
        (GEMINI, "google", "/v1beta/models/m:countTokens", {"totalTokens": 42}),
    ],
)
def test_tokens_are_counted_beside(run, client, provider, path, answer):
    options = {"stream": False, "path": path, "features": ["count-tokens"]}
    _, reply, [call], record = run(client, provider, [b'{"tokens"', b":42}"], headers=[(b"content-length", b"13")], **options)
    assert (reply.status, reply.json, call.target) == (200, answer, "/count_tokens")
    assert (call.json["provider"], call.json["model"], "stream" in call.json["provider_request"]) == (provider, "up-model", False)
    assert b"x-zed-client-supports-status-messages" not in dict(call.headers)
    assert record.ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("chunks", "script", "code"),
    [
        ([b'{"tokens": "many"}'], {}, Code.UPSTREAM_BAD_RESPONSE),
        ([b"<html>"], {}, Code.UPSTREAM_BAD_RESPONSE),
        ([b'{"tokens": 1', UpstreamError(Code.UPSTREAM_TRUNCATED, "cut")], {}, Code.UPSTREAM_TRUNCATED),
        ([b'{"tokens": 1'], {"whole": False}, Code.UPSTREAM_TRUNCATED),
        ([b" " * 101], {"top": "[limits]\nresponse_bytes = 100\n"}, Code.OUTPUT_TOO_LARGE),
    ],
)
def test_what_is_no_count_is_an_error(run, chunks, script, code):
    path, features = "/v1/messages/count_tokens", ["count-tokens"]
    _, reply, _, record = run(MESSAGES, "anthropic", chunks, stream=False, path=path, features=features, headers=BARE, **script)
    assert (reply.status, record.code) == (502, code)


# -- failures --------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrapped", "cut", "script"),
    [
        (True, 1, {}),
        (False, 1, {}),
        (True, 1, {"whole": False}),
        (False, 0, {"whole": False}),
    ],
    ids=["wrapped without the end", "bare without the last event", "wrapped, broken off", "bare, broken off"],
)
@pytest.mark.parametrize(("client", "provider"), [*itertools.product(WIRES, ["anthropic", "open_ai"])])
def test_a_stream_that_ends_early_is_cut(run, lines, client, provider, wrapped, cut, script):
    """Wrapped, only `stream_ended` ends an answer, even after the provider's last event; bare, that event does."""
    said = lines(provider, wrapped=wrapped)
    said = said[: len(said) - cut]
    if script and not wrapped:
        said.pop()
    wire, reply, _, record = run(client, provider, said, headers=WRAPPED if wrapped else BARE, **script)
    assert wire.end(reply.body) == "error" or wire.surface == GEMINI
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize("provider", ["google", "x_ai"])
def test_a_surface_without_an_event_of_its_own_for_the_end_needs_a_finish_in_bare_lines(run, lines, provider):
    said = lines(provider, wrapped=False)
    _, reply, _, record = run(MESSAGES, provider, said[:1], headers=BARE)
    assert (reply.status, record.ending, record.code) == (200, Ending.FAILED, Code.UPSTREAM_TRUNCATED)
    _, _, _, record = run(MESSAGES, provider, lines(provider)[:-1])
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize(("wrapped", "half"), [*itertools.product([True, False], [b'{"ev', b'{"event": {"type": "mess'])])
def test_half_a_line_at_the_end_is_a_cut(run, lines, wrapped, half):
    said = lines("anthropic", wrapped=wrapped)[:-1]
    _, _, _, record = run(CHAT, "anthropic", [*said, half], headers=WRAPPED if wrapped else BARE)
    assert record.code is Code.UPSTREAM_TRUNCATED


@pytest.mark.parametrize("stream", [True, False])
def test_a_bare_stream_ends_with_its_last_event_though_the_body_goes_on(run, lines, stream, monkeypatch):
    monkeypatch.setattr("asgi_surface.layers.conversion.answer._GRACE", 0.01)
    wire, reply, _, record = run(CHAT, "anthropic", [*lines("anthropic", wrapped=False), 5.0], headers=BARE, stream=stream)
    assert reply.status == 200
    assert record.ending is Ending.COMPLETED
    assert wire.surface == CHAT


@pytest.mark.parametrize(
    ("wrapped", "bad"),
    [
        (True, b"\n"),
        (True, b": keep-alive\n"),
        (True, b'data: {"event": {"type": "ping"}}\n'),
        (True, b'{"type": "ping"}\n'),
        (True, b"{}\n"),
        (True, b'{"event": {"type": "ping"}, "status": "started"}\n'),
        (True, b'{"event": 5}\n'),
        (True, b"[DONE]\n"),
        (False, b"\n"),
        (False, b"<html>\n"),
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_a_line_that_is_none_of_zeds_fails_the_answer(run, lines, provider, wrapped, bad):
    first = lines(provider, wrapped=wrapped)[: 3 if wrapped else 1]
    headers = WRAPPED if wrapped else BARE
    wire, reply, _, record = run(MESSAGES, provider, [*first, bad], headers=headers)
    assert (reply.status, wire.end(reply.body), record.code) == (200, "error", Code.UPSTREAM_BAD_RESPONSE)
    _, reply, _, record = run(MESSAGES, provider, [bad], headers=headers)
    assert (reply.status, record.code) == (502, Code.UPSTREAM_BAD_RESPONSE)


@pytest.mark.parametrize("client", [MESSAGES, CHAT])
def test_a_line_is_bounded_and_those_before_it_count(run, lines, client):
    top = "[limits]\nevent_bytes = 600\n"
    said = lines("anthropic")
    wire, reply, _, record = run(client, "anthropic", [b"".join(said[:5]) + b"x" * 601], top=top)
    assert "".join(text(client, event) for event in wire.events(reply.body)[:-1]) == "Hi"
    assert (wire.end(reply.body), record.code) == ("error", Code.EVENT_TOO_LARGE)
    wire, reply, _, record = run(client, "anthropic", [b"".join(said) + b"x" * 601], top=top)
    assert (wire.end(reply.body), record.ending) == ("end", Ending.COMPLETED)
    wire, reply, _, record = run(client, "anthropic", [b"x" * 601 + b"\n" + b"".join(said)], top=top)
    assert (reply.status, record.code) == (502, Code.EVENT_TOO_LARGE)


FAILURES = [
    ("upstream_http_429", {"retry_after": 1.2}, 429, Code.UPSTREAM_RATE_LIMITED, "2"),
    ("upstream_http_529", {"retry_after": None}, 503, Code.UPSTREAM_OVERLOADED, None),
    ("upstream_http_429", {"retry_after": 10**400}, 429, Code.UPSTREAM_RATE_LIMITED, "3600"),
    ("upstream_http_429", {"retry_after": 1e300}, 429, Code.UPSTREAM_RATE_LIMITED, "3600"),
    ("upstream_http_429", {"retry_after": -1}, 429, Code.UPSTREAM_RATE_LIMITED, None),
    ("upstream_http_429", {"retry_after": True}, 429, Code.UPSTREAM_RATE_LIMITED, None),
    ("upstream_http_503", {"upstream_status": 429}, 429, Code.UPSTREAM_RATE_LIMITED, None),
    ("upstream_http_error", {"upstream_status": 400}, 400, Code.UPSTREAM_REJECTED, None),
    ("upstream_http_error", {}, 502, Code.UPSTREAM_ERROR, None),
    ("upstream_http_200", {}, 502, Code.UPSTREAM_ERROR, None),
    ("rate_limit_exceeded", {"retry_after": 3}, 429, Code.UPSTREAM_RATE_LIMITED, None),
    ("upstream_http_401", {}, 502, Code.UPSTREAM_AUTH_FAILED, None),
    ("something", {}, 502, Code.UPSTREAM_ERROR, None),
]


@pytest.mark.parametrize(("code", "more", "status", "told", "retry"), FAILURES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_before_any_event_is_an_error_with_its_status(run, code, more, status, told, retry, stream):
    _, reply, _, record = run(CHAT, "x_ai", [line(STARTED), failed(code, **more)], stream=stream)
    assert (reply.status, record.code, reply.headers.get("retry-after")) == (status, told, retry)
    assert reply.headers["x-surface-error"] == told
    assert reply.json["error"]["message"] == (
        "the upstream did not accept the gateway's credential" if told is Code.UPSTREAM_AUTH_FAILED else "too fast"
    )
    assert not reply.json["error"]["code"].startswith("upstream_http")


def test_a_failure_needs_no_line_end(run):
    _, reply, _, record = run(MESSAGES, "anthropic", [failed("upstream_http_429")[:-1]])
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)


@pytest.mark.parametrize("failure", [{"failed": None}, {"failed": {"code": 5, "message": []}}])
def test_a_failure_that_says_nothing_is_one(run, failure):
    _, reply, _, record = run(MESSAGES, "anthropic", [line({"status": failure})])
    assert (reply.status, record.code) == (502, Code.UPSTREAM_ERROR)


def test_a_client_that_knows_529_is_told_it(run):
    _, reply, _, _ = run(MESSAGES, "anthropic", [failed("upstream_http_529")])
    assert (reply.status, reply.json["error"]["type"]) == (529, "overloaded_error")


FIRST_TEXT = {"anthropic": 5, "open_ai": 5, "google": 3, "x_ai": 3}  # lines up to the first text, with the two statuses before it


@pytest.mark.parametrize("late", [False, True], ids=["after the first text", "after the last event"])
@pytest.mark.parametrize(("client", "provider"), [*itertools.product(WIRES, FOUR)])
def test_a_failure_after_events_ends_the_stream_with_an_error(run, lines, client, provider, late):
    said = lines(provider)
    place = -1 if late else FIRST_TEXT[provider]
    chunks = [*said[:place], failed("upstream_http_529", "sk-0123456789abcdef"), *said[place:]]
    wire, reply, _, record = run(client, provider, chunks)
    assert (reply.status, wire.end(reply.body)) == (200, "error")
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_OVERLOADED)
    assert b"sk-0123456789abcdef" not in reply.body


# -- errors over HTTP ------------------------------------------------------------------------------------------------------------------------


def zed_error(**members):
    return [json.dumps(members).encode()]


ERRORS = [
    (429, zed_error(code="upstream_http_429", message="too fast", retry_after=7.5), 429, Code.UPSTREAM_RATE_LIMITED, "8"),
    (500, zed_error(code="upstream_http_error", message="too fast", upstream_status=429), 429, Code.UPSTREAM_RATE_LIMITED, None),
    (500, zed_error(code="upstream_http_error", message="too fast", upstream_status=99), 500, Code.UPSTREAM_ERROR, None),
    (500, zed_error(code="upstream_http_413", message="too fast"), 413, Code.UPSTREAM_REJECTED, None),
    (503, zed_error(code="upstream_http_7", message="too fast"), 503, Code.UPSTREAM_OVERLOADED, None),
    (429, zed_error(code="too_many_requests", message="too fast", retry_after=7.5, upstream_status=500), 429, Code.UPSTREAM_RATE_LIMITED, None),
    (402, zed_error(code="upstream_http_429", message="too fast", retry_after=7.5), 502, Code.UPSTREAM_AUTH_FAILED, None),
    (403, zed_error(code="trial_blocked", message="too fast"), 502, Code.UPSTREAM_AUTH_FAILED, None),
    (500, [b"<html>"], 500, Code.UPSTREAM_ERROR, None),
    (500, zed_error(code=5, message="too fast"), 500, Code.UPSTREAM_ERROR, None),
    (500, zed_error(message="too fast"), 500, Code.UPSTREAM_ERROR, None),
    (500, zed_error(code="upstream_http_429", message=""), 429, Code.UPSTREAM_RATE_LIMITED, None),
]


@pytest.mark.parametrize(("status", "chunks", "expected", "code", "retry"), ERRORS)
@pytest.mark.parametrize("client", [CHAT, MESSAGES])
def test_an_error_is_told_with_the_status_behind_it(run, client, status, chunks, expected, code, retry):
    wire, reply, [_], record = run(
        client, "anthropic", chunks, status=status, headers=[(b"content-type", b"application/json"), (b"x-request-id", b"up-1")]
    )
    assert (reply.status, record.code, reply.headers.get("retry-after"), reply.headers["x-request-id"]) == (expected, code, retry, "up-1")
    said = reply.json["error"]["message"]
    assert said == "too fast" or (code is Code.UPSTREAM_AUTH_FAILED or b"too fast" not in b"".join(chunks))
    assert b"upstream_http" not in reply.body
    assert wire.surface == client


def test_a_header_that_says_when_to_come_back_gives_way_to_the_provider(run):
    chunks = zed_error(code="upstream_http_429", message="m", retry_after=2)
    _, reply, _, _ = run(CHAT, "x_ai", chunks, status=429, headers=[(b"retry-after", b"60")])
    assert reply.headers["retry-after"] == "2"
    for said in ({"code": "slow", "retry_after": 2}, {"code": "upstream_http_429", "retry_after": -2}):
        _, reply, _, _ = run(CHAT, "x_ai", zed_error(message="m", **said), status=429, headers=[(b"retry-after", b"60")])
        assert reply.headers["retry-after"] == "60"


@pytest.mark.parametrize(
    "script",
    [
        {"chunks": [*zed_error(code="upstream_http_429", message="m"), UpstreamError(Code.UPSTREAM_TRUNCATED, "cut")]},
        {"chunks": zed_error(code="upstream_http_429", message="m"), "whole": False},
        {"chunks": [*zed_error(code="upstream_http_429", message="m"), 5.0]},
        {"chunks": [b'{"code": "upstream_http_429", "message": "m"}' + b" " * 70_000, b" " * 1000]},
    ],
    ids=["broken", "without an end", "endless silence", "endless"],
)
def test_an_error_whose_body_does_not_end_is_still_that_error(run, script, monkeypatch):
    monkeypatch.setattr(carried, "_GRACE", 0.01)
    chunks = script.pop("chunks")
    _, reply, _, record = run(CHAT, "x_ai", chunks, status=500, headers=[], **script)
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)


def test_other_upstreams_are_left_alone(ask, gateway, upstream, wires):
    wire = wires[MESSAGES]
    reply = ask(gateway(upstream(chunks=wire.frames, headers=[(b"content-type", b"text/event-stream")]), MESSAGES), *wire.ask(stream=True))
    assert reply.body == b"".join(wire.frames)
