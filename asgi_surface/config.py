"""routes.toml as strict structs: what the file may say, which of it is not built yet, and where its old keys went.

Knows the shape of each table and nothing beyond: what tables say against themselves or each other is found in `contradictions` and `catalog`. A
string that is empty here has been reported already; None means that the key is absent.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from asgi_surface.codecs.base import Dialect
from asgi_surface.errors import Problem
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, SURFACES, ZED
from asgi_surface.tables import Rules, Unbuilt
from asgi_surface.tables import parse as _parse


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""


class AuthTable(Table, frozen=True, kw_only=True):
    """`[auth]`: who may ask. `keys_file` names a file of `[[keys]]`, relative to the route file."""

    mode: Literal["keys", "loopback", "host"] = "keys"
    keys_file: str | None = None


class KeyTable(Table, frozen=True, kw_only=True):
    """`[[keys]]`: a client's key as its SHA-256, and the models it may ask for (absent: all)."""

    name: str
    sha256: str
    models: tuple[str, ...] | None = None


class LimitTable(Table, frozen=True, kw_only=True):
    """`[limits]`: the members of `plans.Limits` that the file sets. Bytes, items, characters, seconds."""

    request_bytes: int | None = None
    history_items: int | None = None
    event_bytes: int | None = None
    response_bytes: int | None = None
    output_chars: int | None = None
    connect_seconds: float | None = None
    first_byte_seconds: float | None = None
    json_seconds: float | None = None
    idle_seconds: float | None = None
    total_seconds: float | None = None
    keepalive_seconds: float | None = None


class CredentialTable(Table, frozen=True, kw_only=True):
    """`auth` of a provider or binding: the header that carries the secret, and the environment variable that holds it."""

    header: str
    scheme: str | None = None
    env: str


class ProviderTable(Table, frozen=True, kw_only=True):
    """`[providers.X]`: where, and with which key; says nothing about surfaces."""

    base_url: str | None = None
    embedded: str | None = None
    auth: CredentialTable | None = None
    engine: str | None = None
    seal_domain: str | None = None
    transport: Literal["http1", "httpx"] | None = None
    query: dict[str, str] = {}


class PolicyTable(Table, frozen=True, kw_only=True):
    """`[policies.X]`: what may leave through a binding. A key given replaces that of the policy it extends."""

    surface: str
    extends: str | None = None
    allowed_fields: tuple[str, ...] | None = None
    unknown_field_action: Literal["drop", "reject"] | None = None
    force: dict[str, Any] | None = None
    defaults: dict[str, Any] | None = None
    allowed_headers: tuple[str, ...] | None = None
    allowed_tool_types: tuple[str, ...] | None = None


class BindingTable(Table, frozen=True, kw_only=True):
    """`[[routes.api_bindings]]`: one surface that the route's upstream speaks. `tolerate` and `profiles` add to the route's."""

    surface: str
    path: str
    features: tuple[str, ...] = ()
    request_policy: str | None = None
    provider: str | None = None
    tolerate: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    dialect: Dialect = Dialect()
    auth: CredentialTable | None = None
    query: dict[str, str] = {}
    limits: LimitTable = LimitTable()


class RouteTable(Table, frozen=True, kw_only=True):
    """`[[routes]]`: a model that the gateway serves. `tolerate` names features and constructs that may be lost, `profiles` lists of them."""

    route_id: str
    models: tuple[str, ...] | None = None
    upstream_model: str
    provider: str | None = None
    tolerate: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    limits: LimitTable = LimitTable()
    api_bindings: Annotated[tuple[BindingTable, ...], Meta(min_length=1)]


class CandidateTable(Table, frozen=True, kw_only=True):
    """One candidate of `[[models]]`, with its surface pinned."""

    route_id: str
    upstream_surface: str | None = None


class ModelTable(Table, frozen=True, kw_only=True):
    """`[[models]]`: one name, several candidates."""

    name: str
    candidates: Annotated[tuple[str | CandidateTable, ...], Meta(min_length=1)]


class ConvertersTable(Table, frozen=True, kw_only=True):
    """`[converters]`: the pairs that may be used; absent means every registered one."""

    enabled: tuple[str, ...] | None = None


class InterceptorsTable(Table, frozen=True, kw_only=True):
    """`[interceptors]`: none is built yet."""


class DryRunTable(Table, frozen=True, kw_only=True):
    """`[dry_run]`: whether every request is answered with its plan."""

    enabled: bool = False


class RouteFile(Table, frozen=True, kw_only=True):
    """The whole route file."""

    auth: AuthTable = AuthTable()
    limits: LimitTable = LimitTable()
    providers: dict[str, ProviderTable] = {}
    policies: dict[str, PolicyTable] = {}
    routes: Annotated[tuple[RouteTable, ...], Meta(min_length=1)]
    models: tuple[ModelTable, ...] = ()
    keys: tuple[KeyTable, ...] = ()
    converters: ConvertersTable = ConvertersTable()
    interceptors: InterceptorsTable = InterceptorsTable()
    dry_run: DryRunTable = DryRunTable()


class KeyFile(Table, frozen=True, kw_only=True):
    """The file that `auth.keys_file` names."""

    keys: tuple[KeyTable, ...] = ()


ENGINES: Final = ("llama-cpp",)
EMBEDDED: Final = ("echo", "llama-cpp")
PAIRS_TO_COME: Final = tuple(f"{source}->{target}" for source, target in itertools.permutations(SURFACES, 2) if ZED in (source, target))
ENGINES_TO_COME: Final = (
    *("openai", "azure-openai", "vllm", "sglang", "ollama", "lm-studio", "deepseek", "openrouter", "groq", "mistral", "xai", "anthropic"),
)

_BINDING: Final = "routes[].api_bindings[]"
_ZED: Final = Unbuilt(only=(ZED,))
_ZED_POLICY: Final = Unbuilt(only=("zed-default",))

NOT_BUILT: Final[dict[str, Unbuilt]] = {
    "converters.enabled[]": Unbuilt(only=PAIRS_TO_COME),
    "interceptors.web_search": Unbuilt(but=({}, {"enabled": False})),
    "keys[].profiles": Unbuilt(but=([],)),
    "models[].candidates[].upstream_surface": _ZED,
    "models[].failover_on": Unbuilt(),
    "models[].strategy": Unbuilt(but=("ordered",)),
    "policies.*.extends": _ZED_POLICY,
    "policies.*.surface": _ZED,
    "providers.*.engine": Unbuilt(only=ENGINES_TO_COME),
    "routes[].inbound_contract": Unbuilt(),
    "routes[].price": Unbuilt(),
    f"{_BINDING}.dialect.zed_provider": Unbuilt(),
    f"{_BINDING}.request_policy": _ZED_POLICY,
    f"{_BINDING}.surface": _ZED,
}
"""Every key and value of the format whose issue has not come. The issue that builds one deletes its row."""

_PATHS: Final = {
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    MESSAGES: "/v1/messages",
    GEMINI: "/v1beta/models/{model}:{method}",
}
_FORMATS: Final = {"openai": CHAT, "openai-responses": RESPONSES, "anthropic": MESSAGES, "gemini": GEMINI, "google": GEMINI}
_ENDINGS: Final = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES, "{method}": GEMINI}


def _old_format(value: object) -> tuple[str, str]:
    surface = _FORMATS.get(str(value), CHAT)
    return "an old key: bindings say which surfaces an upstream speaks", _binding(surface, _PATHS[surface])


def _old_path(value: object) -> tuple[str, str]:
    path = value if isinstance(value, str) else _PATHS[CHAT]
    surface = next((surface for ending, surface in _ENDINGS.items() if path.endswith(ending)), CHAT)
    return "an old key: a path belongs to a binding", _binding(surface, path)


def _binding(surface: str, path: str) -> str:
    return f'write [[routes.api_bindings]] with surface = "{surface}" and path = "{path}"'


def _secret(_: object) -> tuple[str, str]:
    return "a secret does not belong in the file", 'put it into an environment variable and name that one: env = "PROVIDER_API_KEY"'


def _plain_key(_: object) -> tuple[str, str]:
    return "a secret does not belong in the file", "store its hash as sha256; `asgi-surface key new` prints a key and its hash"


_SECRETS: Final = ("api_key", "apikey", "key", "password", "secret", "token", "value")
_MISPLACED: Final[dict[str, Callable[[object], tuple[str, str]]]] = {
    "routes[].path": _old_path,
    **{f"{table}.{key}": _old_format for table in ("routes[]", _BINDING, "providers.*") for key in ("format", "provider_format")},
    **{f"{table}.{key}": _secret for table in ("providers.*", "providers.*.auth", f"{_BINDING}.auth") for key in _SECRETS},
    **{f"keys[].{key}": _plain_key for key in _SECRETS},
}
_EXAMPLES: Final = {
    "api_bindings": _binding(CHAT, _PATHS[CHAT]).removeprefix("write "),
    "base_url": 'base_url = "https://api.openai.com"',
    "candidates": 'candidates = ["openai:gpt-5"]',
    "env": 'env = "OPENAI_API_KEY"',
    "header": 'header = "authorization"',
    "name": 'name = "ada"',
    "path": f'path = "{_PATHS[CHAT]}"',
    "route_id": 'route_id = "openai:gpt-5"',
    "routes": '[[routes]] with route_id = "openai:gpt-5"',
    "sha256": "what `asgi-surface key new` prints",
    "surface": f'surface = "{CHAT}"',
    "upstream_model": 'upstream_model = "gpt-5"',
}
_RULES: Final = Rules(unbuilt=NOT_BUILT, misplaced=_MISPLACED, examples=_EXAMPLES)


def read_routes(text: str) -> tuple[RouteFile | None, list[Problem]]:
    """The route file's tables and every problem of their shape. None when the text is no TOML."""
    return _parse(text, RouteFile, _RULES)


def read_keys(text: str, name: str) -> tuple[KeyFile | None, list[Problem]]:
    """The same for a key file; `name` opens the paths of its problems."""
    return _parse(text, KeyFile, _RULES, prefix=f"{name}: ")


def keys_file(text: str) -> str | None:
    """The key file that a route file names; None when it names none, or cannot be read so far."""
    try:
        auth = tomllib.loads(text).get("auth")
    except (ValueError, RecursionError):
        return None
    found = auth.get("keys_file") if isinstance(auth, dict) else None
    return found if isinstance(found, str) and found.strip() else None
