"""`asgi-surface connect`: what clients are told. The clients' own tests use what it prints; here is what it says of itself."""

from __future__ import annotations

import ast
import json
import subprocess
import tomllib

import pytest

from asgi_surface import cli
from asgi_surface.connect import CLIENTS, written
from asgi_surface.connect import settings as told
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

ROUTES = """
[auth]
mode = "MODE"
[providers.here]
embedded = "echo"
[[routes]]
route_id = "one"
models = ["first", "second", "more-*"]
upstream_model = "m"
provider = "here"
context_tokens = 9000
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming"]
"""
WAYS = [(client, surface) for client, row in CLIENTS.items() for surface in row.ways]
HOSTILE = "a\"b\\{key}'$(c)"


@pytest.fixture
def connect(tmp_path, capsys):
    """Runs the command with a route file: exit status, what it printed, what it complained of."""

    def run(*arguments, mode="loopback", routes=ROUTES):
        file = tmp_path / "routes.toml"
        file.write_text(routes.replace("MODE", mode))
        try:
            status = cli.main(["connect", arguments[0], str(file), *arguments[1:]])
        except SystemExit as exit_:
            status = exit_.code
        return status, *capsys.readouterr()

    return run


def test_every_client_of_the_brief_is_there_and_speaks_its_surfaces():
    every = [CHAT, RESPONSES, MESSAGES, GEMINI]
    assert {client: sorted(row.ways) for client, row in CLIENTS.items()} == {
        "openai": sorted([CHAT, RESPONSES]),
        "anthropic": [MESSAGES],
        "google-genai": [GEMINI],
        "codex": [RESPONSES],
        "claude-code": [MESSAGES],
        "gemini-cli": [GEMINI],
        "opencode": sorted(every),
        "qwen-code": sorted([CHAT, MESSAGES, GEMINI]),
        "aider": sorted([CHAT, MESSAGES]),
        "ai-sdk": sorted(every),
        "openai-agents": sorted([CHAT, RESPONSES]),
        "pydantic-ai": sorted(every),
        "langchain": sorted(every),
        "litellm": sorted(every),
        "instructor": sorted([CHAT, RESPONSES, MESSAGES]),
        "zed": sorted([CHAT, MESSAGES, GEMINI]),
    }


@pytest.mark.parametrize(("client", "surface"), WAYS)
def test_address_model_and_key_are_told_once_each_and_nothing_is_left_open(client, surface):
    settings = told(client, surface, url="http://gate.example:81/", model="mm", key="kk")
    text = "\n".join(written(settings))
    assert "http://gate.example:81" in text
    assert "http://gate.example:81/\n" not in text
    assert "mm" in text
    assert "kk" in settings.env.values()
    assert not any(name in text for name in ("{url}", "{model}", "{key}", "{context}"))
    assert settings.run or settings.code


@pytest.mark.parametrize(("client", "surface"), WAYS)
def test_no_name_of_a_model_breaks_out_of_its_quotes(client, surface):
    """Files are still JSON and TOML, programs still programs, and a shell reads back what was meant."""
    settings = told(client, surface, url="http://g", model=HOSTILE)
    for path, text in settings.files.items():
        assert HOSTILE in str(tomllib.loads(text) if path.endswith(".toml") else json.loads(text)).replace('\\"', '"') or HOSTILE not in text
    if settings.code and client != "ai-sdk":
        assert any(isinstance(node, ast.Constant) and HOSTILE in str(node.value) for node in ast.walk(ast.parse(settings.code)))
    lines = [line for line in written(settings) if line.startswith("export ")]
    script = "\n".join([*lines, *(f"printf '%s\\n' \"${name}\"" for name in settings.env)])
    shell = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert shell.stdout.splitlines() == [*settings.env.values()]


def test_a_person_reads_exports_files_and_the_command(connect):
    status, out, err = connect("codex", "--url", "https://gate.example")
    assert (status, err) == (0, "")
    assert out.splitlines()[:4] == ["# codex, over openai-responses", "export ASGI_SURFACE_KEY=unused", "", "# the file ~/.codex/config.toml"]
    assert out.endswith("\n\n# start it\ncodex\n")


def test_a_program_is_shown_where_there_is_nothing_to_start(connect):
    _, out, _ = connect("anthropic", "--model", "more-1")
    assert "\n\n# a program that asks\nfrom anthropic import Anthropic\n" in out
    assert 'model="more-1"' in out


def test_a_program_reads_json(connect):
    status, out, _ = connect("opencode", "--surface", MESSAGES, "--json")
    settings = json.loads(out)
    [(path, text)] = settings["files"].items()
    assert (status, settings["client"], settings["surface"], settings["env"]) == (0, "opencode", MESSAGES, {"ASGI_SURFACE_KEY": "unused"})
    assert (path, json.loads(text)["model"]) == ("~/.config/opencode/opencode.json", "asgi_surface/first")
    assert json.loads(text)["provider"]["asgi_surface"]["options"] == {"baseURL": "http://127.0.0.1:8080/v1", "apiKey": "{env:ASGI_SURFACE_KEY}"}


@pytest.mark.parametrize(("model", "context"), [("first", 9000), ("more-2", 32_768)])
def test_what_a_model_can_read_comes_from_the_file(connect, model, context):
    [text] = json.loads(connect("zed", "--json", "--model", model)[1])["files"].values()
    assert json.loads(text)["language_models"]["openai_compatible"]["asgi_surface"]["available_models"][0]["max_tokens"] == context


@pytest.mark.parametrize(("mode", "key"), [("loopback", "unused"), ("keys", "YOUR-KEY"), ("host", "YOUR-KEY")])
def test_where_a_key_is_asked_for_its_place_is_shown(connect, mode, key):
    _, out, _ = connect("openai", mode=mode)
    assert f"export OPENAI_API_KEY={key}\n" in out
    assert ("# YOUR-KEY stands for the client's key\n" in out) == (key == "YOUR-KEY")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("emacs",), "invalid choice: 'emacs' (choose from"),
        (("codex", "--surface", CHAT), "codex does not speak openai-chat-completions; it speaks openai-responses"),
        (("codex", "--model", "other"), "the file serves no model 'other'"),
    ],
)
def test_what_cannot_be_is_told_with_what_can(connect, arguments, complaint):
    status, out, err = connect(*arguments)
    assert (status, out) == (2, "")
    assert complaint in err


def test_a_file_of_patterns_only_has_no_first_name(connect):
    status, _, err = connect("codex", routes=ROUTES.replace('"first", "second", ', ""))
    assert status == 2
    assert "--model is required: the file lists no name" in err


def test_a_bad_file_is_told_of(connect):
    status, out, err = connect("codex", mode="open")
    assert (status, out) == (1, "")
    assert err.startswith("auth.mode: ")
