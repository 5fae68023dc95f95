"""Engines as presets: what a provider's `engine` makes of its bindings, what a binding's own keys make of that, and what check says of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import msgspec
import pytest

from asgi_surface.catalog import inspect
from asgi_surface.codecs.base import Dialect
from asgi_surface.config import DialectTable
from asgi_surface.engines import ENGINES, dialect
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SOURCE = Path(__file__).resolve().parents[2] / "asgi_surface"
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages", GEMINI: "/v1beta/models/{model}:{method}"}
ROWS = [(name, surface) for name, row in ENGINES.items() for surface in row.values]


def checked(engine="", *, surface=CHAT, path=None, provider="", binding="", embedded=False):
    """The one binding of a file, and what check says of it."""
    place = f'embedded = "{engine}"' if embedded else 'base_url = "https://up.example"\n' + (f'engine = "{engine}"' if engine else "")
    text = f"""
auth.mode = "host"
[providers.up]
{place}
{provider}
[[routes]]
route_id = "up:m"
upstream_model = "m"
provider = "up"
[[routes.api_bindings]]
surface = "{surface}"
path = "{path or PATHS[surface]}"
{binding}
"""
    catalog, problems = inspect(text)
    return catalog and catalog.routes["up:m"].bindings[0], [str(problem) for problem in problems]


@pytest.mark.parametrize(("engine", "surface"), ROWS)
def test_a_row_says_what_a_binding_could_say(engine, surface):
    binding, problems = checked(engine, surface=surface, provider='query = { "api-version" = "2024-10-21" }')
    assert problems == []
    assert binding.dialect == dialect(engine, surface, {}) == msgspec.convert(msgspec.to_builtins(binding.dialect), Dialect)
    said = ENGINES[engine].values[surface]
    assert {name: getattr(binding.dialect, name) for name in said} == {name: one.value for name, one in said.items()}
    written = msgspec.json.encode({name: one.value for name, one in said.items()}).decode()
    keys = ", ".join(f"{name} = {value}" for name, value in re.findall(r'"(\w+)":("\w+"|true|false)', written))
    assert checked(surface=surface, binding=f"dialect = {{ {keys} }}")[0].dialect == binding.dialect


@pytest.mark.parametrize("engine", ENGINES)
def test_every_value_and_note_names_its_fact(engine):
    row = ENGINES[engine]
    facts = [one.fact for values in row.values.values() for one in values.values()] + [note.fact for note in row.notes]
    facts += [one.fact for one in (row.header, row.query) if one]
    assert all(re.search(r"https://|^(chat|responses)/[\w-]+\.json|[\w.-]+/[\w.-]+(#\d+| [\w./]+)", fact) for fact in facts)


def test_every_key_of_a_dialect_is_read():
    trees = [
        ast.parse(file.read_text()) for file in SOURCE.rglob("*.py") if file.parent != SOURCE or file.stem in {"outbound", "converters", "bindings"}
    ]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set(Dialect.__struct_fields__) <= read


def test_what_a_binding_sets_wins_also_when_it_sets_the_official_value():
    binding, _ = checked("deepseek", binding='dialect = { reasoning_style = "effort", max_tokens_field = "max_completion_tokens", prefill = true }')
    assert binding.dialect == Dialect(strict_tools=False, prefill=True)
    assert DialectTable.__struct_fields__ == Dialect.__struct_fields__


def test_without_an_engine_the_official_wire_is_spoken():
    assert checked()[0].dialect == dialect(None, CHAT, {}) == Dialect()


def test_an_embedded_llama_cpp_is_one_too():
    assert checked("llama-cpp", embedded=True)[0].dialect == dialect("llama-cpp", CHAT, {}) != Dialect()


@pytest.mark.parametrize(
    ("engine", "auth", "header", "scheme"),
    [
        ("azure-openai", 'env = "K"', "api-key", None),
        ("azure-openai", 'header = "Authorization", scheme = "Bearer", env = "K"', "authorization", "Bearer"),
        ("anthropic", 'env = "K"', "x-api-key", None),
    ],
)
def test_an_engine_knows_the_header_of_its_key(engine, auth, header, scheme):
    surface = next(iter(ENGINES[engine].values))
    for place in ({"provider": f"auth = {{ {auth} }}"}, {"binding": f"auth = {{ {auth} }}"}):
        extra = {"path": "/openai/v1/x"} if engine == "azure-openai" else {}
        binding, problems = checked(engine, surface=surface, **place, **extra)
        assert (binding.provider.auth.header, binding.provider.auth.scheme, problems) == (header, scheme, [])


PROBLEMS = [
    ({"engine": "vllm", "provider": 'auth = { env = "K" }'}, 'providers.up.auth.header: missing; for example header = "authorization"'),
    (
        {"engine": "azure-openai"},
        'routes[0].api_bindings[0]: "azure-openai" wants `api-version` in the query; for example query = { api-version = "2024-10-21" }',
    ),
    (
        {"engine": "groq", "surface": GEMINI},
        'routes[0].api_bindings[0].surface: warning: "groq" is not known to speak gemini-generate-content; its official wire is spoken',
    ),
    (
        {"surface": RESPONSES, "binding": 'dialect = { reasoning_style = "thinking" }'},
        'routes[0].api_bindings[0].dialect.reasoning_style: "thinking" means nothing on openai-responses; it is one of "effort"',
    ),
    (
        {"surface": MESSAGES, "binding": 'dialect = { call_ids = "nine" }'},
        "routes[0].api_bindings[0].dialect.call_ids: means nothing on anthropic-messages; leave it out",
    ),
    (
        {"binding": "dialect = { signatures = false }"},
        "routes[0].api_bindings[0].dialect.signatures: means nothing on openai-chat-completions; leave it out",
    ),
]


@pytest.mark.parametrize(("file", "problem"), PROBLEMS)
def test_check_says_what_an_engine_or_a_dialect_cannot_mean(file, problem):
    assert checked(**file)[1] == [problem]


def test_azure_s_newer_paths_and_bindings_with_a_version_need_no_more():
    assert checked("azure-openai", path="/openai/v1/chat/completions")[1] == []
    assert checked("azure-openai", binding='query = { api-version = "2024-10-21" }')[1] == []
