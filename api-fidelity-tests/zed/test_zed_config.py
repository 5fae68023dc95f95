"""Zed bindings in a route file, what is planned with them, and the tokens that a Zed server takes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import typing

import pytest

from asgi_surface import Gateway, Rejection, cli
from asgi_surface.bindings import ProviderAuth
from asgi_surface.catalog import build
from asgi_surface.codecs.base import Dialect
from asgi_surface.codecs.zed.envelope import INNER
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.planner import plan
from asgi_surface.plans import RouteCandidate
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, ZED
from asgi_surface.upstream import providers, tokens
from asgi_surface.upstream.tokens import Token, renewing

FILE = """
[auth]
mode = "host"

[providers.zed]
base_url = "https://zed.example"
{auth}

[policies.slim]
surface = "zed-completions"
extends = "zed-default"
allowed_fields = ["provider", "model", "provider_request"]
unknown_field_action = "{unknown}"

[[routes]]
route_id = "claude"
upstream_model = "claude-up"
provider = "zed"
context_tokens = 200_000
max_output_tokens = 8_192

[[routes.api_bindings]]
surface = "zed-completions"
path = "/completions"
features = ["streaming", "tools"]
request_policy = "slim"
dialect = {{ zed_provider = "anthropic" }}

[[routes.api_bindings]]
surface = "zed-completions"
path = "/completions"
features = ["streaming"]
dialect = {{ zed_provider = "x_ai" }}

[[routes]]
route_id = "gpt"
upstream_model = "gpt-up"
provider = "zed"

[[routes.api_bindings]]
surface = "zed-completions"
path = "/completions"
features = ["streaming"]
dialect = {{ zed_provider = "open_ai" }}

[[models]]
name = "any"
candidates = [{{ route_id = "claude", upstream_surface = "zed-completions" }}, {{ route_id = "gpt" }}]

[[models]]
name = "pinned"
candidates = [{{ route_id = "claude", upstream_surface = "anthropic-messages" }}]

[[models]]
name = "chatty"
candidates = [{{ route_id = "claude", upstream_surface = "openai-chat-completions" }}]
"""


def catalog(*, auth="", unknown="drop"):
    return build(FILE.format(auth=auth, unknown=unknown))


def asking(model, **members):
    return json.dumps({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **members}).encode()


# -- the catalog and the planner -------------------------------------------------------------------------------------------------------------


def test_a_binding_has_the_surface_that_is_carried():
    anthropic, xai = catalog().routes["claude"].bindings
    assert [(one.surface, one.carrier, one.declared, one.dialect.zed_provider) for one in (anthropic, xai)] == [
        (MESSAGES, ZED, ZED, "anthropic"),
        (CHAT, ZED, ZED, "x_ai"),
    ]
    assert [(one.request_policy, one.policy.name) for one in (anthropic, xai)] == [
        ("slim", "anthropic-messages-default"),
        ("zed-default", "openai-chat-default"),
    ]


def test_a_route_says_how_much_its_model_reads_and_writes():
    route = catalog().routes["claude"]
    assert (route.context_tokens, route.max_output_tokens) == (200_000, 8_192)
    assert {entry.name: (entry.context_tokens, entry.max_output_tokens) for entry in catalog().entries()}["gpt-up"] == (None, None)


def test_the_dialect_knows_every_provider():
    kind = typing.get_type_hints(Dialect)["zed_provider"]
    assert {word for part in typing.get_args(kind) for word in typing.get_args(part)} == INNER.keys()


def test_a_candidate_is_pinned_by_the_carrier_or_by_what_it_carries():
    assert catalog().candidates("any")[0] == RouteCandidate("claude", ZED)
    assert [plan(MESSAGES, asking(name), catalog()).upstream_surface for name in ("any", "chatty")] == [MESSAGES, CHAT]


def test_a_plan_tells_the_carrier():
    made = plan(MESSAGES, asking("claude-up"), catalog())
    assert (made.mode_name, made.upstream_surface, made.carrier, made.spoken) == ("native", MESSAGES, ZED, ZED)
    assert (made.upstream_path, made.upstream_stream, made.request_policy) == ("/completions", True, "slim")
    other = plan(RESPONSES, json.dumps({"model": "claude-up", "input": "hi"}).encode(), catalog())
    assert (other.mode_name, other.carrier) == ("openai-responses->anthropic-messages", ZED)


def test_a_rejection_names_the_binding_as_the_file_does():
    with pytest.raises(Rejection) as caught:
        plan(MESSAGES, asking("pinned", nope=1), catalog())
    assert caught.value.served_by == ("claude/zed-completions",)


def zed(model="claude-up", **members):
    return json.dumps({"provider": "anthropic", "model": model, "provider_request": json.loads(asking(model)), **members}).encode()


def test_a_zed_clients_ids_go_along_where_the_policy_lets_them():
    assert plan(ZED, zed(thread_id="t", prompt_id="p"), catalog()).dropped == ("/thread_id", "/prompt_id")
    with pytest.raises(Rejection) as caught:
        plan(ZED, zed("pinned", thread_id="t"), catalog(unknown="reject"))
    assert (caught.value.code, caught.value.pointer) == (Code.FIELD_REJECTED, "/thread_id")


def test_a_zed_client_of_a_zed_server(ask, upstream):
    up = upstream(chunks=[b'{"status":{"failed":{"code":"x","message":"m","request_id":"i"}}}\n'], headers=[(WRAPPED, b"1")])
    body = json.loads(zed(thread_id="t", prompt_id="p", mode="max"))
    reply = ask(Gateway(catalog=build(FILE.format(auth="", unknown="drop").replace('"slim"', '"zed-default"')), upstream=up), "/completions", body)
    assert reply.status == 502
    inner = body["provider_request"] | {"stream": True}
    assert up.calls[0].json == {
        "thread_id": "t",
        "prompt_id": "p",
        "mode": "max",
        "provider": "anthropic",
        "model": "claude-up",
        "provider_request": inner,
    }


WRAPPED = b"x-zed-server-supports-status-messages"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs a command of the gateway's on the file."""

    def run(*arguments, body=b""):
        file = tmp_path / "routes.toml"
        file.write_text(FILE.format(auth="", unknown="drop"))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))
        return cli.main([*arguments, str(file)]), capsys.readouterr().out

    return run


def test_the_command_line_shows_zed(command):
    assert command("check") == (0, "ok: 2 routes, 5 models\n")
    _, out = command("matrix")
    assert [re.split("  +", line) for line in out.splitlines()][1:] == MATRIX
    for surface, body in ((MESSAGES, asking("claude-up")), (ZED, zed())):
        status, out = command("plan", "--surface", surface, body=body)
        assert (status, json.loads(out)["carrier"], json.loads(out)["upstreamSurface"]) == (0, ZED, MESSAGES)


CARRIED = "(zed-completions)"
MATRIX = [
    ["claude", f"native {CARRIED}", f"via anthropic-messages {CARRIED}", f"native {CARRIED}", f"via anthropic-messages {CARRIED}", "as anthropic"],
    ["gpt", f"via openai-responses {CARRIED}", f"native {CARRIED}", *[f"via openai-responses {CARRIED}"] * 2, "as open_ai"],
]

# -- tokens ----------------------------------------------------------------------------------------------------------------------------------

ENV = 'auth = { header = "Authorization", scheme = "Bearer", env = "ASGI_SURFACE_ZED_TOKEN" }'
VARIABLE = "ASGI_SURFACE_ZED_TOKEN"
WHOLE = [b'{"event":{"type":"ping"}}\n', b'{"status":{"failed":{"code":"upstream_http_429","message":"served","request_id":"i"}}}\n']


class Server:
    """Answers each call with the next of the heads, and with `WHOLE` when that is good. `calls` holds each call's body and authorization."""

    def __init__(self, *heads, meanwhile=None):
        self.heads = list(heads)
        self.meanwhile = meanwhile
        self.calls = []

    async def __call__(self, scope, receive, send):
        body = (await receive())["body"]
        self.calls.append((body, dict(scope["headers"]).get(b"authorization")))
        status, *names = self.heads.pop(0)
        if self.meanwhile:
            self.meanwhile()
        await send({"type": "http.response.start", "status": status, "headers": [(name, b"") for name in (*names, WRAPPED)]})
        for chunk in WHOLE if status == 200 else [b"{}"]:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.fixture
def serve(ask, monkeypatch, records):
    """One request to a gateway whose only provider is the server. Gives the reply and the record."""

    def run(server, auth=ENV, **options):
        monkeypatch.setitem(providers._TRANSPORTS, "http1", lambda *_: server)
        gateway = Gateway(catalog=catalog(auth=auth), record=records.append)
        reply = ask(gateway, "/v1/messages", json.loads(asking("claude-up")), **options)
        return reply, records[-1]

    return run


def counting(tmp_path, *, then=""):
    """The `auth` of a provider whose command prints how often it has run."""
    script = f'echo x >> "$0"; echo "token-$(wc -l < "$0" | tr -d " ")"; {then}'
    words = json.dumps(["sh", "-c", script, str(tmp_path / "runs")])
    return f'auth = {{ header = "authorization", scheme = "Bearer", command = {words} }}'


@pytest.mark.parametrize("head", [(401,), (403, b"X-Zed-Expired-Token"), (400, b"x-zed-outdated-token")])
def test_a_refused_token_is_read_again_and_the_request_made_once_more(serve, monkeypatch, head):
    monkeypatch.setenv(VARIABLE, "old")
    server = Server(head, (200,), meanwhile=lambda: monkeypatch.setenv(VARIABLE, "new"))
    reply, record = serve(server)
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)
    assert [credential for _, credential in server.calls] == [b"Bearer old", b"Bearer new"]
    assert server.calls[0][0] == server.calls[1][0] != b""


@pytest.mark.parametrize(("before", "calls"), [("same", [b"Bearer same"]), ("", [None])])
def test_without_another_token_the_refusal_stands(serve, monkeypatch, before, calls):
    monkeypatch.setenv(VARIABLE, before)
    server = Server((401,))
    reply, record = serve(server)
    assert (reply.status, record.code) == (502, Code.UPSTREAM_AUTH_FAILED)
    assert [credential for _, credential in server.calls] == calls


def test_a_token_is_renewed_once(serve, tmp_path):
    server = Server((401,), (401,), (200,))
    reply, record = serve(server, counting(tmp_path))
    assert (reply.status, record.code) == (502, Code.UPSTREAM_AUTH_FAILED)
    assert [credential for _, credential in server.calls] == [b"Bearer token-1", b"Bearer token-2"]


def test_a_good_answer_is_no_refusal(serve, tmp_path):
    server = Server((200, b"x-zed-outdated-token"))
    reply, _ = serve(server, counting(tmp_path))
    assert (reply.status, [credential for _, credential in server.calls]) == (429, [b"Bearer token-1"])


def test_the_environment_comes_before_the_command(serve, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "first")
    server = Server((401,), (200,))
    serve(server, counting(tmp_path).replace("command", f'env = "{VARIABLE}", command'))
    assert [credential for _, credential in server.calls] == [b"Bearer first", b"Bearer token-1"]


SLOW = ["sh", "-c", "sleep 60 & echo s3cret; wait"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["sh", "-c", "echo s3cret; exit 3"], "failed (status 3)"),
        (["sh", "-c", ":"], "printed no token"),
        (["sh", "-c", r"printf 's3\001cret\n'"], "printed no token"),
        (["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' s"], "printed no token"),
        (["asgi-surface-no-such-program", "s3cret"], "cannot be run"),
        (SLOW, "took too long"),
    ],
)
def test_a_command_that_gives_no_token_is_no_call(serve, monkeypatch, caplog, command, reason):
    monkeypatch.setattr(Token.__init__, "__kwdefaults__", {"seconds": 0.05 if command is SLOW else 5.0})
    server = Server()
    with caplog.at_level(logging.ERROR):
        reply, record = serve(server, f'auth = {{ header = "x-key", command = {json.dumps(command)} }}')
    assert (reply.status, record.code, server.calls) == (502, Code.UPSTREAM_AUTH_FAILED, [])
    assert reason in caplog.text
    assert "s3" not in caplog.text


def test_a_command_that_ends_just_when_its_time_is_up_failed_all_the_same(apart, monkeypatch):
    kill = os.killpg

    def late(group, number):
        kill(group, number)
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", late)
    with pytest.raises(UpstreamError) as caught:
        apart(token(*SLOW, seconds=0.05).ready())
    assert caught.value.code is Code.UPSTREAM_AUTH_FAILED


def test_what_follows_the_first_line_is_not_the_token(apart, monkeypatch):
    made = token("sh", "-c", "echo ' tok '; head -c 200000 /dev/zero")
    assert apart(made.ready()) == (b"x-key", b"tok")


def token(*command, secrets=None, environ=None, env=None, **options):
    return Token(ProviderAuth(header="x-key", scheme=None, env=env, command=command), environ or {}, [] if secrets is None else secrets, **options)


def numbered(tmp_path):
    return ("sh", "-c", 'echo x >> "$0"; sleep 0.05; echo "token-$(wc -l < "$0" | tr -d " ")"', str(tmp_path / "runs"))


def test_requests_that_were_refused_together_renew_once(apart, tmp_path):
    secrets = ["host"]
    made = token(*numbered(tmp_path), secrets=secrets, environ={"T": "old"}, env="T")
    old = made.header

    async def together():
        return await asyncio.gather(made.renewed(old), made.renewed(old))

    assert apart(together()) == [(b"x-key", b"token-1")] * 2
    assert apart(made.renewed(old)) == (b"x-key", b"token-1")
    # An answer to a request that went out with the former one may still repeat it.
    assert secrets == ["host", "old", "token-1"]
    assert apart(made.renewed(made.header)) == (b"x-key", b"token-2")
    assert secrets == ["host", "token-1", "token-2"]


def test_a_client_that_leaves_does_not_stop_the_renewal(apart, tmp_path):
    made = token(*numbered(tmp_path))

    async def leave_and_stay():
        first = asyncio.ensure_future(made.ready())
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(made.ready())
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert apart(leave_and_stay()) == (b"x-key", b"token-1")


def test_a_renewal_ends_with_its_loop_and_the_next_loop_begins_another(apart, tmp_path):
    made = token(*numbered(tmp_path))

    async def leave():
        waiting = asyncio.ensure_future(made.ready())
        await asyncio.sleep(0.01)
        waiting.cancel()

    apart(leave())
    assert apart(made.ready())[1].startswith(b"token-")


async def once(app, made, *, inbox=None, sent=None):
    """One call through `renewing`."""
    messages = list(inbox or [{"type": "http.request", "body": b"b"}])

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    await renewing(app, made, {"headers": []}, receive, send)


def test_an_app_may_swallow_what_ends_a_refused_answer(apart):
    environ, sent, told = {"T": "old"}, [], []

    async def stubborn(scope, receive, send):
        bodies = [await receive(), await receive()]
        told.append((scope["headers"], bodies))
        environ["T"] = "new"
        for message in ({"type": "http.response.start", "status": 401}, {"type": "http.response.body"}):
            try:
                await send(message)
            except Exception as error:
                told.append(type(error))

    later = [{"type": "http.request", "body": b"b"}, {"type": "http.disconnect"}, {"type": "http.disconnect"}]
    apart(once(stubborn, token(environ=environ, env="T"), inbox=later, sent=sent))
    bodies = [{"type": "http.request", "body": b"b", "more_body": False}, {"type": "http.disconnect"}]
    assert told == [([(b"x-key", b"old")], bodies), tokens._Abandoned, tokens._Abandoned, ([(b"x-key", b"new")], bodies)]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_an_upstream_that_fails_is_not_called_again(apart):
    async def broken(scope, receive, send):
        raise UpstreamError(Code.UPSTREAM_UNREACHABLE, "down")

    with pytest.raises(UpstreamError):
        apart(once(broken, token(environ={"T": "old"}, env="T")))


def test_who_left_before_the_body_was_whole_is_not_served(apart):
    apart(once(None, token(), inbox=[{"type": "http.disconnect"}]))


def test_only_tokens_that_run_out_are_watched():
    plain = 'auth = { header = "authorization", env = "T" }'
    text = FILE.format(auth=plain, unknown="drop").replace("[[models]]", CHAT_ROUTE + "[[models]]", 1)
    found = providers.connect(build(text), {"T": "secret"})
    assert found._credentials == {("other", CHAT): (b"authorization", b"secret")}
    assert found._tokens.keys() == {("claude", MESSAGES), ("claude", CHAT), ("gpt", RESPONSES), ("other", GEMINI)}
    assert len(set(map(id, found._tokens.values()))) == 2
    assert sorted(found.secrets) == ["other.example", "secret", "zed.example"]


CHAT_ROUTE = """
[providers.other]
base_url = "https://other.example"
auth = { header = "authorization", env = "T" }

[[routes]]
route_id = "other"
upstream_model = "o"
provider = "other"

[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"

[[routes.api_bindings]]
surface = "gemini-generate-content"
path = "/v1beta/models/{model}:{method}"
auth = { header = "x-goog-api-key", command = ["print-token"] }

"""
