"""routes.toml as strict structs: what the file may say, which of it is not built yet, and where its old keys went.

Knows the shape of each table and nothing beyond: what tables say against themselves or each other is found in `contradictions` and `catalog`. A
string that is empty here has been reported already; None means that the key is absent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, defstruct, structs

from asgi_surface.codecs.base import Dialect
from asgi_surface.errors import Problem
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
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
    """`auth` of a provider or binding: the header that carries the secret, and where that is: an environment variable, or what a command prints.

    Some engines have a header of their own, so it need not be named.
    """

    header: str | None = None
    scheme: str | None = None
    env: str | None = None
    command: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None


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


if TYPE_CHECKING:
    DialectTable = Dialect
else:
    # The dialect's keys, each None where the file does not set it: only what it sets wins over the engine's.
    DialectTable = defstruct(
        "DialectTable", [(one.name, one.type | None, None) for one in structs.fields(Dialect)], bases=(Table,), frozen=True, kw_only=True
    )


class BindingTable(Table, frozen=True, kw_only=True):
    """`[[routes.api_bindings]]`: one surface that the route's upstream speaks. `tolerate` and `profiles` add to the route's."""

    surface: str
    path: str
    features: tuple[str, ...] = ()
    request_policy: str | None = None
    provider: str | None = None
    tolerate: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    dialect: DialectTable = DialectTable()
    auth: CredentialTable | None = None
    query: dict[str, str] = {}
    limits: LimitTable = LimitTable()


class RouteTable(Table, frozen=True, kw_only=True):
    """`[[routes]]`: a model that the gateway serves. `tolerate` names features and constructs that may be lost, `profiles` lists of them.

    `context_tokens` and `max_output_tokens` are told in model lists that have a place for them. `inbound_contract` narrows what clients may ask.
    """

    route_id: str
    models: tuple[str, ...] | None = None
    upstream_model: str
    provider: str | None = None
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    inbound_contract: str | None = None
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


class FoundTable(Table, frozen=True, kw_only=True):
    """`fields` of `[interceptors.web_search]`: the paths (names joined by dots) to the facts of one result."""

    url: str = "url"
    title: str = "title"
    content: str = "content"


class SearchTable(Table, frozen=True, kw_only=True):
    """`[interceptors.web_search]`: the back end for hosted searches that the provider does not run; the defaults are SearXNG's.

    `query` and `body` are templates in which `{query}` stands for what is searched for; `results` is the path to the list in the answer. `max_rounds`
    is how many times the model is asked for one answer; `routes` are redirected even where the provider searches itself.
    """

    enabled: bool = False
    url: str | None = None
    method: Literal["GET", "POST"] = "GET"
    query: dict[str, str] | None = None
    headers: dict[str, str] = {}
    auth: CredentialTable | None = None
    body: dict[str, Any] | None = None
    results: str = "results"
    fields: FoundTable = FoundTable()
    max_results: int = 5
    max_rounds: int = 3
    timeout_seconds: float = 10.0
    response_bytes: int = 1_000_000
    routes: tuple[str, ...] = ()


class InterceptorsTable(Table, frozen=True, kw_only=True):
    """`[interceptors]`: those that come with the gateway."""

    web_search: SearchTable | None = None


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


EMBEDDED: Final = ("echo", "llama-cpp")
_BINDING: Final = "routes[].api_bindings[]"

NOT_BUILT: Final[dict[str, Unbuilt]] = {
    "keys[].profiles": Unbuilt(but=([],)),
    "models[].failover_on": Unbuilt(),
    "models[].strategy": Unbuilt(but=("ordered",)),
    "routes[].price": Unbuilt(),
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


_SEARCH: Final = ("interceptors.web_search", "interceptors.web_search.auth")
_SECRETS: Final = ("api_key", "apikey", "key", "password", "secret", "token", "value")
_MISPLACED: Final[dict[str, Callable[[object], tuple[str, str]]]] = {
    "routes[].path": _old_path,
    **{f"{table}.{key}": _old_format for table in ("routes[]", _BINDING, "providers.*") for key in ("format", "provider_format")},
    **{f"{table}.{key}": _secret for table in ("providers.*", "providers.*.auth", f"{_BINDING}.auth", *_SEARCH) for key in _SECRETS},
    **{f"keys[].{key}": _plain_key for key in _SECRETS},
}
_EXAMPLES: Final = {
    "api_bindings": _binding(CHAT, _PATHS[CHAT]).removeprefix("write "),
    "base_url": 'base_url = "https://api.openai.com"',
    "command": 'command = ["print-token", "--raw"]',
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
