"""What a good route file becomes: bindings with everything resolved, names in their order, keys and policies."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from asgi_surface.catalog import AuthMode, Catalog, Key, ProviderAuth, build, inspect
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Dialect, ModelEntry
from asgi_surface.converters import PAIRS
from asgi_surface.plans import Limits, RouteCandidate
from asgi_surface.policy import UnknownField
from asgi_surface.profiles import PROFILES
from asgi_surface.surfaces import CHAT, MESSAGES, Feature, Surface

SHIPPED = Path(__file__).parents[2] / "routes.toml"
DIGEST = "ab" * 32
FULL = f"""
[auth]
mode = "keys"

[limits]
idle_seconds = 60
request_bytes = 1_000

[dry_run]
enabled = true

[converters]
enabled = []

[interceptors.web_search]
enabled = false

[providers.up]
base_url = "https://up.example/api/"
auth = {{ header = "Authorization", scheme = "Bearer", env = "UP_KEY" }}
query = {{ api-version = "1", region = "eu" }}
engine = "llama-cpp"
transport = "httpx"
seal_domain = "family"

[providers.local]
embedded = "llama-cpp"

[providers.echo]
embedded = "echo"

[policies.base]
surface = "openai-chat-completions"
extends = "openai-chat-default"
unknown_field_action = "drop"
force = {{ store = false }}

[policies.tight]
surface = "openai-chat-completions"
extends = "base"
allowed_fields = ["model", "messages", "stream"]
defaults = {{ max_completion_tokens = 4096 }}
allowed_headers = ["OpenAI-Beta"]
allowed_tool_types = ["function"]

[policies.snake]
surface = "gemini-generate-content"
allowed_fields = ["contents", "system_instruction"]
force = {{ generation_config = {{ topK = 1 }} }}

[[routes]]
route_id = "up:big"
models = ["big", "gpt-*", "gpt-5-*"]
upstream_model = "big-1"
provider = "up"
tolerate = ["foreign-seals"]
profiles = ["qwen-code"]
limits = {{ idle_seconds = 30.5 }}
context_tokens = 200_000
max_output_tokens = 8_192

[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming", "tools"]
request_policy = "tight"
limits = {{ idle_seconds = 10, keepalive_seconds = 0 }}
query = {{ region = "us" }}
tolerate = ["hosted-tools", "field:n"]
dialect = {{ max_tokens_field = "max_tokens", reasoning_style = "template", custom_tools = "refuse", prefill = true }}

[[routes.api_bindings]]
surface = "openai-responses"
path = "/v1/responses"
auth = {{ header = "api-key", env = "OTHER_KEY" }}
profiles = ["codex"]
dialect = {{ instruction_role = "developer", max_tokens_field = "max_completion_tokens" }}

[[routes.api_bindings]]
surface = "anthropic-messages"
path = "/v1/messages"
provider = "local"
features = ["count-tokens"]
[routes.api_bindings.dialect]
default_max_tokens = 32_000
reasoning_style = "budget"
reasoning_budgets = {{ minimal = 1024, max = 64_000 }}

[[routes]]
route_id = "any"
models = ["*"]
upstream_model = "{{model}}"
provider = "echo"

[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"

[[routes]]
route_id = "plain"
upstream_model = "plain"
provider = "echo"

[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"

[[routes]]
route_id = "hidden"
models = []
upstream_model = "hidden-1"
provider = "echo"

[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"

[[models]]
name = "smart"
candidates = ["hidden", {{ route_id = "up:big", upstream_surface = "anthropic-messages" }}, {{ route_id = "any" }}]

[[keys]]
name = "ada"
sha256 = "{DIGEST.upper()}"

[[keys]]
name = "bob"
sha256 = "{"cd" * 32}"
models = ["big", "gpt-*"]
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return build(FULL, environ={"UP_KEY": "x", "OTHER_KEY": "y"}, serving=True)


def test_the_tables_of_the_whole_file(catalog):
    assert catalog.auth_mode is AuthMode.KEYS
    assert catalog.dry_run
    assert catalog.converters == frozenset()
    assert catalog.limits == Limits(idle_seconds=60.0, request_bytes=1_000)
    assert list(catalog.routes) == ["up:big", "any", "plain", "hidden"]
    assert catalog.routes["up:big"].models == ("big", "gpt-*", "gpt-5-*")
    assert catalog.routes["plain"].models == ("plain",)


def test_a_binding_has_everything_resolved(catalog):
    chat, responses, messages = catalog.routes["up:big"].bindings
    assert (chat.surface, chat.path, chat.features) == (CHAT, "/v1/chat/completions", {Feature.STREAMING, Feature.TOOLS})
    assert chat.limits == Limits(idle_seconds=10.0, request_bytes=1_000, keepalive_seconds=0.0)
    assert chat.query == (("api-version", "1"), ("region", "us"))
    assert chat.provider.base_url == "https://up.example/api"
    assert chat.provider.auth == ProviderAuth(header="authorization", scheme="Bearer", env="UP_KEY")
    assert (chat.provider.engine, chat.provider.transport, chat.provider.embedded) == ("llama-cpp", "httpx", None)
    assert responses.limits.idle_seconds == 30.5
    assert responses.provider == msgspec.structs.replace(chat.provider, auth=ProviderAuth(header="api-key", scheme=None, env="OTHER_KEY"))
    assert (messages.provider.base_url, messages.provider.engine, messages.provider.embedded) == (None, "llama-cpp", "llama-cpp")


def test_a_binding_has_its_dialect_and_who_mints_its_seals(catalog):
    chat, responses, messages = catalog.routes["up:big"].bindings
    said = {"max_tokens_field": "max_tokens", "reasoning_style": "template", "custom_tools": "refuse", "prefill": True}
    assert chat.dialect == Dialect(**said, tool_choice="words")  # the choice is the engine's
    assert responses.dialect == Dialect(instruction_role="developer", tool_choice="words")
    assert messages.dialect == Dialect(default_max_tokens=32_000, reasoning_style="budget", reasoning_budgets={"minimal": 1024, "max": 64_000})
    assert catalog.routes["plain"].bindings[0].dialect == Dialect()
    assert [one.provider.seal_domain for one in (chat, responses, messages)] == ["family", "family", "local"]


def test_a_binding_tolerates_what_its_route_and_all_profiles_do(catalog):
    chat, responses, messages = catalog.routes["up:big"].bindings
    of_route = {"seal:foreign", *PROFILES["qwen-code"].tolerates}
    assert chat.tolerate == of_route | {"hosted-tools", "field:n"}
    assert responses.tolerate == of_route | set(PROFILES["codex"].tolerates)
    assert messages.tolerate == of_route
    assert catalog.routes["plain"].bindings[0].tolerate == frozenset()


@pytest.mark.parametrize("names", [None, [], ["openai-responses->anthropic-messages"], [pair.name for pair in PAIRS.values()]])
def test_converters_are_those_enabled_or_all(names):
    table = "" if names is None else f"[converters]\nenabled = {names}\n"
    assert build(minimal(("r", ["a"])) + table).converters == (None if names is None else frozenset(names))


def test_the_default_policy_is_the_shipped_one_and_a_key_given_replaces_the_parents(catalog):
    chat, responses, messages = catalog.routes["up:big"].bindings
    assert [one.policy.name for one in (responses, messages)] == ["openai-responses-default", "anthropic-messages-default"]
    assert chat.policy.allowed == {"model", "messages", "stream"}
    assert chat.policy.unknown is UnknownField.DROP
    assert chat.policy.force == {"store": b"false"}
    assert chat.policy.defaults == {"max_completion_tokens": b"4096"}
    assert (chat.policy.headers, chat.policy.tool_types) == ({"openai-beta"}, {"function"})


def test_the_spelling_of_a_field_is_the_codecs():
    text = FULL.replace('surface = "anthropic-messages"\npath = "/v1/messages"\nprovider = "local"', GEMINI_BINDING)
    text = text.replace("default_max_tokens = 32_000\n", "")
    text = text.replace('upstream_surface = "anthropic-messages"', 'upstream_surface = "gemini-generate-content"')
    gemini = build(text).routes["up:big"].bindings[2]
    assert gemini.policy.allowed == {"contents", "systemInstruction"}
    assert gemini.policy.force == {"generationConfig": b'{"topK":1}'}


GEMINI_BINDING = 'surface = "gemini-generate-content"\npath = "/v1beta/models/{model}:{method}"\nrequest_policy = "snake"'


@pytest.mark.parametrize(
    ("model", "routes"),
    [
        ("big", ["up:big"]),
        ("up:big", ["up:big"]),
        ("gpt-4", ["up:big"]),
        ("plain", ["plain"]),
        ("gpt", ["any"]),
        ("x\ny", ["any"]),
        ("", ["any"]),
        ("hidden", ["hidden"]),
        ("smart", ["hidden", "up:big", "any"]),
    ],
)
def test_a_name_leads_to_its_routes(catalog, model, routes):
    assert [candidate.route_id for candidate in catalog.candidates(model)] == routes


def test_a_candidate_can_pin_its_surface(catalog):
    assert [one.upstream_surface for one in catalog.candidates("smart")] == [None, MESSAGES, None]
    assert catalog.candidates("big") == (RouteCandidate("up:big"),)


BINDING = '[[routes.api_bindings]]\nsurface = "openai-chat-completions"\npath = "/v1/chat/completions"\n'


def minimal(*routes: tuple[str, list[str]], auth: str = '[auth]\nmode = "host"\n') -> str:
    tables = [f'[[routes]]\nroute_id = "{name}"\nmodels = {models}\nupstream_model = "m"\nprovider = "up"\n{BINDING}' for name, models in routes]
    return auth + '[providers.up]\nbase_url = "https://up.example"\n' + "".join(tables)


@pytest.mark.parametrize(
    ("model", "route"),
    [("a-b-c", "middle"), ("a-b", "short"), ("a-x-c", "shaped"), ("b[1]", "literal"), ("b1", "rest"), ("a.b", "rest")],
)
def test_the_glob_with_the_longest_literal_beginning_wins(model, route):
    rows = [("rest", ["*"]), ("short", ["a-*"]), ("middle", ["a-b-*"]), ("shaped", ["a-*-c"]), ("literal", ["b[*]"])]
    assert build(minimal(*rows)).candidates(model) == (RouteCandidate(route),)


def test_an_unknown_name_has_no_candidates():
    assert build(minimal(("r", ["a"]))).candidates("b") == ()


def test_model_lists_show_names_in_the_files_order_and_no_globs(catalog):
    both, tools, sizes = ("generate", "count-tokens"), {Feature.STREAMING, Feature.TOOLS}, {"context_tokens": 200_000, "max_output_tokens": 8_192}
    assert catalog.entries() == (
        ModelEntry("big", "up", both, surface=CHAT, features=tools, **sizes),
        ModelEntry("plain", "echo", ("generate",), surface=CHAT, streams=False),
        ModelEntry("smart", "echo", both, surface=CHAT, streams=False),
    )


def test_keys_and_what_they_may_ask_for(catalog):
    ada, bob = catalog.keys
    assert ada == Key(name="ada", digest=bytes.fromhex(DIGEST), models=None)
    assert [catalog.allows(ada, name) for name in ("big", "anything")] == [True, True]
    assert [catalog.allows(bob, name) for name in ("big", "gpt-4", "up:big", "smart")] == [True, True, False, False]


def test_no_secret_is_in_the_catalog(catalog):
    secret = "a-secret-value-of-the-environment"
    assert secret not in repr(build(FULL, environ={"UP_KEY": secret, "OTHER_KEY": secret}))
    assert "UP_KEY" in repr(catalog)


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        (FULL, None, []),
        (FULL, {"UP_KEY": "", "OTHER_KEY": "y"}, ["providers.up.auth.env"]),
        (minimal(("r", ["a"]), auth=""), {}, ["auth.mode"]),
    ],
    ids=["not looked at", "empty is unset", "no key"],
)
def test_what_only_a_running_gateway_lacks_is_a_warning_at_check(text, environ, expected):
    catalog, problems = inspect(text, environ=environ)
    assert catalog is not None
    assert [(problem.path, problem.fatal) for problem in problems] == [(path, False) for path in expected]
    catalog, problems = inspect(text, environ=environ, serving=True)
    assert (catalog is None) is bool(expected)
    assert [(problem.path, problem.fatal) for problem in problems] == [(path, True) for path in expected]


def test_a_surface_from_outside_needs_only_its_codec():
    mine = Surface("mine")
    codec = msgspec.structs.replace(CODECS[CHAT], surface=mine, policy=msgspec.structs.replace(CODECS[CHAT].policy, name="mine-default"))
    text = minimal(("r", ["a"])).replace("openai-chat-completions", "mine").replace("m/v1", "m")
    assert inspect(text)[1][0].message == 'unknown surface "mine"'
    assert build(text, codecs={**CODECS, mine: codec}).routes["r"].bindings[0].policy.surface == mine


def test_several_routes_may_share_provider_path_and_surface():
    assert inspect(minimal(("r", ["a"]), ("s", ["b"])))[1] == ()


def test_problems_are_ordered_by_number_not_by_digit():
    many = minimal(*((f"r{index}", [f"m{index}"]) for index in range(11))).replace("/v1/chat", "v1/chat")
    assert [problem.path for problem in inspect(many)[1]] == [f"routes[{index}].api_bindings[0].path" for index in range(11)]


@pytest.mark.parametrize("url", ["https://[::1]:8080", "http://127.0.0.1:8000/", "https://up.example/v2/models"])
def test_base_urls_that_are_right(url):
    assert inspect(minimal(("r", ["a"])).replace("https://up.example", url))[1] == ()


@pytest.mark.parametrize(("url", "repeated"), [("https://u.example/v1", "/v1"), ("https://u.example/a/v1/chat/", "/v1/chat"), ("https://u:0/v1", "")])
def test_a_path_repeats_whole_segments_of_its_base_url(url, repeated):
    found = [problem.message for problem in inspect(minimal(("r", ["a"])).replace("https://up.example", url))[1]]
    assert (f'"{repeated}" ends the base_url already' in found) is bool(repeated)


@pytest.mark.parametrize("mode", ["host", "loopback"])
def test_keys_in_another_mode_are_a_warning(mode):
    text = minimal(("r", ["a"]), auth=f'[auth]\nmode = "{mode}"\n') + f'[[keys]]\nname = "ada"\nsha256 = "{DIGEST}"\n'
    assert [(problem.path, problem.fatal) for problem in inspect(text, serving=True)[1]] == [("auth.mode", False)]


# -- the route file that ships ---------------------------------------------------------------------------------------------------------------


def uncommented(text: str) -> str:
    return re.sub(r"^#(?=[^\s#])|^#$", "", text, flags=re.MULTILINE)


def blocks() -> dict[str, str]:
    """The commented providers with their routes, by the provider's name."""
    found = re.findall(r"^#\[.*\n(?:#\S.*\n|#\n)*", SHIPPED.read_text(), flags=re.MULTILINE)
    return {re.search(r"\[providers\.([\w-]+)\]", block)[1]: uncommented(block) for block in found}


def test_the_shipped_file_works_as_it_is():
    catalog, problems = inspect(SHIPPED.read_text(), environ={}, serving=True)
    assert problems == ()
    assert catalog.auth_mode is AuthMode.LOOPBACK
    assert {name: [binding.surface for binding in route.bindings] for name, route in catalog.routes.items()} == {
        "echo": [CHAT],
        "local": [CHAT, MESSAGES],
    }
    everything = frozenset().union(*(profile.tolerates for profile in PROFILES.values()))
    assert {binding.tolerate for route in catalog.routes.values() for binding in route.bindings} == {everything}


def test_every_service_of_the_readme_has_a_block():
    assert set(blocks()) == {"openai", "anthropic", "gemini", "azure", "openrouter", "deepseek", "zed", "vllm", "sglang", "ollama"}


@pytest.mark.parametrize("name", sorted(blocks()))
def test_each_block_is_ready_to_use(name):
    catalog, problems = inspect('[auth]\nmode = "host"\n' + blocks()[name], environ={})
    assert {binding.provider.name for route in catalog.routes.values() for binding in route.bindings} == {name}
    assert all(problem.message.startswith("the environment variable ") for problem in problems)


def test_all_blocks_work_together():
    text = uncommented(SHIPPED.read_text())
    names = {problem.message.split()[3] for problem in inspect(text, environ={})[1]}
    catalog, problems = inspect(text, environ=dict.fromkeys(names, "x"), serving=True)
    assert problems == ()
    assert len(catalog.routes) == 2 + len(blocks())
    assert catalog.candidates("Qwen/Qwen3-8B") == (RouteCandidate("vllm:qwen3"),)
    assert catalog.candidates("mistralai/devstral") == (RouteCandidate("openrouter"),)
