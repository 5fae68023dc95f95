"""Route files that are wrong in many ways at once: each problem is said once, with its place and what would be right, and nothing raises."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from asgi_surface import config
from asgi_surface.catalog import build, inspect
from asgi_surface.config import LimitTable, keys_file, read_routes
from asgi_surface.errors import ConfigError, Problem
from asgi_surface.plans import Limits

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.toml"))
BINDINGS = "routes[].api_bindings[]"
GOOD = """
[auth]
mode = "host"
[providers.up]
base_url = "https://up.example"
[policies.mine]
surface = "openai-chat-completions"
extends = "openai-chat-default"
[[routes]]
route_id = "up:m"
upstream_model = "m"
provider = "up"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
"""


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_each_broken_file_has_exactly_its_problems(file):
    with pytest.raises(ConfigError) as caught:
        build(file.read_text(), environ={}, serving=True)
    _, problems = inspect(file.read_text(), environ={}, serving=True)
    assert "".join(f"{problem}\n" for problem in problems) == file.with_suffix(".txt").read_text()
    assert caught.value.problems == tuple(problem for problem in problems if problem.fatal)


def test_there_are_at_least_twenty_broken_files():
    assert len(BROKEN) >= 20


@pytest.mark.parametrize("file", [file for file in BROKEN if "secrets" in file.name or "base-urls" in file.name], ids=lambda file: file.stem)
def test_no_problem_repeats_a_secret(file):
    said = file.with_suffix(".txt").read_text()
    assert not re.search(r"0123456789|hunter2|AIza|sk-", said)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = " + "[" * 5000, Problem("the file", "not TOML: nested too deeply")),
        ('x = "', Problem("end of file", "not TOML: Unterminated string")),
        ("x = " + "1" * 5000, None),
    ],
    ids=["nested", "cut", "huge number"],
)
def test_what_is_no_toml_is_one_problem(text, problem):
    file, problems = read_routes(text)
    assert file is None
    assert problems[0].message.startswith("not TOML: ")
    assert problem in (None, *problems)
    assert len(problems) == 1
    assert inspect(text) == (None, tuple(problems))


def paths(text: str) -> list[str]:
    return [problem.path for problem in inspect(text)[1]]


def put(shape: str, value: str) -> str:
    """GOOD with the value at a shape of `NOT_BUILT`, instead of what stands there."""
    table, _, key = shape.rpartition(".")
    headers = {
        "converters": "[converters]",
        "interceptors": "[interceptors]",
        "keys[]": f'[[keys]]\nname = "ada"\nsha256 = "{"0" * 64}"',
        "models[]": '[[models]]\nname = "smart"\ncandidates = ["up:m"]',
        f"{BINDINGS}.dialect": "[routes.api_bindings.dialect]",
        "models[].candidates[]": '[[models]]\nname = "smart"\ncandidates = [{ route_id = "up:m", KEY }]',
    }
    places = {"policies.*": "[policies.mine]", "providers.*": "[providers.up]", "routes[]": "[[routes]]", BINDINGS: "[[routes.api_bindings]]"}
    line = f"{key} = {value}"
    if table in headers:
        header = headers[table]
        return GOOD + (header.replace("KEY", line) if "KEY" in header else f"{header}\n{line}\n")
    before, after = GOOD.split(f"{places[table]}\n")
    return f"{before}{places[table]}\n{line}\n" + re.sub(rf"(?m)^{key} = .*\n", "", after, count=1)


def test_the_good_file_is_good():
    assert inspect(GOOD)[1] == ()


@pytest.mark.parametrize("shape", sorted(config.NOT_BUILT))
def test_what_is_not_built_yet_is_refused_and_what_says_nothing_new_is_not(shape):
    row = config.NOT_BUILT[shape]
    key = shape.removesuffix("[]") if shape.endswith("enabled[]") else shape

    def toml(value):
        plain = re.sub(r'"(\w+)":', r"\1 = ", msgspec.json.encode([value] if key != shape else value).decode())
        return plain if plain != "null" else "{ x = 1 }"

    problems = inspect(put(key, toml({"x": 1})))[1]
    assert [problem.message.endswith("not built yet") for problem in problems if problem.fatal] == [True], problems
    for value in row.but:
        assert not [problem for problem in inspect(put(key, toml(value)))[1] if problem.fatal]


@pytest.mark.parametrize(
    ("line", "surface", "path"),
    [
        ('format = "openai"', "openai-chat-completions", "/v1/chat/completions"),
        ('format = "gemini"', "gemini-generate-content", "/v1beta/models/{model}:{method}"),
        ('provider_format = "anthropic"', "anthropic-messages", "/v1/messages"),
        ('format = "no such"', "openai-chat-completions", "/v1/chat/completions"),
        ('path = "/api/v1/responses"', "openai-responses", "/api/v1/responses"),
        ('path = "/elsewhere"', "openai-chat-completions", "/elsewhere"),
        ("path = 5", "openai-chat-completions", "/v1/chat/completions"),
    ],
)
def test_an_old_key_is_named_with_the_binding_to_write(line, surface, path):
    [problem] = inspect(GOOD.replace("[[routes]]\n", f"[[routes]]\n{line}\n"))[1]
    assert problem.path == f"routes[0].{line.split()[0]}"
    assert problem.message.startswith("an old key")
    assert problem.suggestion == f'write [[routes.api_bindings]] with surface = "{surface}" and path = "{path}"'


def test_old_keys_are_known_on_providers_and_bindings_too():
    text = GOOD.replace("[providers.up]\n", '[providers.up]\nformat = "openai"\n') + 'provider_format = "openai"\n'
    assert paths(text) == ["providers.up.format", "routes[0].api_bindings[0].provider_format"]


def test_the_limits_of_the_file_are_those_of_a_plan():
    assert (*LimitTable.__struct_fields__, "events", "line_bytes") == Limits.__struct_fields__  # these two only contracts set


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[auth]\nkeys_file = "keys.toml"', "keys.toml"),
        ("[auth]\nkeys_file = 5", None),
        ('[auth]\nkeys_file = " "', None),
        ("auth = 5", None),
        ("", None),
        ("auth = ", None),
        ("x = " + "[" * 5000, None),
    ],
)
def test_the_key_file_is_found_in_any_text(text, name):
    assert keys_file(text) == name
