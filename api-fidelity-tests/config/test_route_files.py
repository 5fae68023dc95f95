"""The route file and the key file on disk, and the environment."""

from __future__ import annotations

import pytest

from asgi_surface.errors import ConfigError
from asgi_surface.files import VARIABLE, default_path, examine, load_catalog

ROUTES = """
[auth]
keys_file = "secrets/keys.toml"
[providers.up]
base_url = "https://up.example"
auth = { header = "authorization", scheme = "Bearer", env = "ASGI_SURFACE_TEST_KEY" }
[[routes]]
route_id = "up:m"
upstream_model = "m"
provider = "up"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
"""
KEYS = f'[[keys]]\nname = "ada"\nsha256 = "{"ab" * 32}"\nmodels = ["m"]\n'
SET = ("providers.up.auth.env", False)


@pytest.fixture
def routes(tmp_path, monkeypatch):
    monkeypatch.delenv("ASGI_SURFACE_TEST_KEY", raising=False)
    (tmp_path / "secrets").mkdir()
    file = tmp_path / "gateway.toml"
    file.write_text(ROUTES)
    (tmp_path / "secrets" / "keys.toml").write_text(KEYS)
    return file


def test_the_key_file_stands_beside_the_route_file(routes, monkeypatch):
    monkeypatch.setenv("ASGI_SURFACE_TEST_KEY", "x")
    catalog = load_catalog(routes, serving=True)
    assert [key.name for key in catalog.keys] == ["ada"]
    assert examine(str(routes)) == (catalog, ())


def test_the_environment_is_looked_at(routes):
    catalog, problems = examine(routes)
    assert catalog is not None
    assert [(problem.path, problem.fatal) for problem in problems] == [SET]
    with pytest.raises(ConfigError) as caught:
        load_catalog(routes, serving=True)
    assert [problem.path for problem in caught.value.problems] == ["providers.up.auth.env"]


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        (None, ['auth.keys_file: "secrets/keys.toml" cannot be read; its path is relative to the route file; it holds [[keys]] tables']),
        (b"\xff", ['auth.keys_file: "secrets/keys.toml" cannot be read; its path is relative to the route file; it holds [[keys]] tables']),
        (
            KEYS.replace("ab", "zz").replace("models", "model").encode(),
            [
                'secrets/keys.toml: keys[0].model: unknown key; did you mean "models"?',
                "secrets/keys.toml: keys[0].sha256: not a SHA-256 of 64 hexadecimal digits; `asgi-surface key new` prints a key and its hash",
            ],
        ),
        (b"keys = 5", ["secrets/keys.toml: keys: a list is expected, not a whole number"]),
        (b"[[keys]", ["secrets/keys.toml: line 1, column 7: not TOML: Expected ']]' at the end of an array declaration"]),
    ],
    ids=["absent", "not text", "wrong", "misshapen", "no TOML"],
)
def test_a_bad_key_file_is_named(routes, keys, lines):
    file = routes.parent / "secrets" / "keys.toml"
    file.unlink()
    if keys is not None:
        file.write_bytes(keys)
    catalog, problems = examine(routes)
    assert catalog is None
    assert [line for line in map(str, problems) if line.startswith(("auth.keys_file", "secrets"))] == lines


def test_a_byte_order_mark_is_no_problem(routes):
    routes.write_text("\ufeff" + ROUTES, "utf-8")
    assert examine(routes)[0] is not None


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda file: None, "routes.toml: there is no such file; copy the repository's routes.toml, or name another file in ASGI_SURFACE_ROUTES"),
        (lambda file: file.mkdir(), "routes.toml: cannot be read: Is a directory; name a readable file in ASGI_SURFACE_ROUTES"),
        (lambda file: file.write_bytes(b"# caf\xe9"), "routes.toml: not UTF-8 (byte 5); save the file as UTF-8"),
    ],
    ids=["absent", "folder", "latin-1"],
)
def test_a_file_that_cannot_be_read_is_one_problem(tmp_path, make, line):
    file = tmp_path / "routes.toml"
    make(file)
    with pytest.raises(ConfigError) as caught:
        load_catalog(file)
    assert str(caught.value) == line


def test_the_file_is_named_by_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "elsewhere.toml")
    assert default_path() == "elsewhere.toml"
    monkeypatch.setenv(VARIABLE, "")
    assert default_path() == "routes.toml"
