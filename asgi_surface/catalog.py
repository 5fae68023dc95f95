"""The route file as the gateway uses it: validated, indexed, frozen. Every problem is found at once.

Pure: the texts and the environment are arguments, and of the environment only names are kept. `config` reads the tables, `contradictions` judges
each by itself; here they are judged against each other.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct, structs

from asgi_surface import config, keyring
from asgi_surface import contradictions as against
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, Dialect, ModelEntry
from asgi_surface.errors import ConfigError, Problem
from asgi_surface.names import Names, fits, is_glob
from asgi_surface.plans import Limits, RouteCandidate
from asgi_surface.policies import Policies
from asgi_surface.policy import Policy
from asgi_surface.profiles import KNOWN, PROFILES, tolerances
from asgi_surface.surfaces import Feature, Operation, Surface
from asgi_surface.tables import dotted, in_order, nearest

_ANY_MODEL: Final = "{model}"
_FEATURES: Final = {str(feature): feature for feature in Feature}


class AuthMode(enum.StrEnum):
    """Who decides whether a client may ask."""

    KEYS = "keys"
    LOOPBACK = "loopback"
    HOST = "host"


class ProviderAuth(Struct, frozen=True, kw_only=True):
    """The header (lower-case) that carries a credential, and the environment variable that holds it. Without a scheme the value is sent bare."""

    header: str
    scheme: str | None
    env: str


class Provider(Struct, frozen=True, kw_only=True):
    """Where requests go: a base URL without trailing slash, or an embedded upstream. `seal_domain` names who mints its reasoning state."""

    name: str
    base_url: str | None
    auth: ProviderAuth | None
    engine: str | None
    transport: Literal["http1", "httpx"]
    embedded: str | None
    query: tuple[tuple[str, str], ...]
    seal_domain: str


class Binding(Struct, frozen=True, kw_only=True):
    """One surface of a route. `query` is the provider's with the binding's; `limits` those that hold in the end.

    `tolerate` holds every feature and construct that may be lost here, also those of the route and of the profiles.
    """

    surface: Surface
    path: str
    features: frozenset[Feature]
    policy: Policy
    provider: Provider
    limits: Limits
    query: tuple[tuple[str, str], ...]
    dialect: Dialect = Dialect()
    tolerate: frozenset[str] = frozenset()


class Route(Struct, frozen=True, kw_only=True):
    """A model that the gateway serves; `models` are the names and globs clients may ask for, beside the route_id."""

    route_id: str
    models: tuple[str, ...]
    upstream_model: str
    bindings: tuple[Binding, ...]


class Key(Struct, frozen=True, kw_only=True):
    """A client's key: the SHA-256 of it, and the names or globs of models it may ask for (None: all)."""

    name: str
    digest: bytes
    models: frozenset[str] | None


class Catalog(Struct, frozen=True, kw_only=True):
    """Everything the route file declares. `names` holds exact names, `globs` patterns in the order in which they are tried."""

    auth_mode: AuthMode
    keys: tuple[Key, ...]
    limits: Limits
    dry_run: bool
    routes: Mapping[str, Route]
    converters: frozenset[str] | None
    names: Mapping[str, tuple[RouteCandidate, ...]]
    globs: tuple[tuple[str, RouteCandidate], ...]
    listed: tuple[ModelEntry, ...]

    def candidates(self, model: str) -> tuple[RouteCandidate, ...]:
        """The routes that may serve a name, best first: an exact name's, else the first glob's that fits. Empty when the name is unknown."""
        if (exact := self.names.get(model)) is not None:
            return exact
        return next(((route,) for glob, route in self.globs if fits(glob, model)), ())

    def entries(self) -> tuple[ModelEntry, ...]:
        """The names that model lists show, in the file's order: those of `models` without globs, then those of `[[models]]`."""
        return self.listed

    def allows(self, key: Key, model: str) -> bool:
        """Whether a key may ask for a model by this name."""
        return key.models is None or model in key.models or any(fits(name, model) for name in key.models if is_glob(name))


def build(
    text: str,
    *,
    keys_text: str | None = None,
    environ: Mapping[str, str] | None = None,
    serving: bool = False,
    codecs: Mapping[Surface, Codec] = CODECS,
) -> Catalog:
    """The catalog of a route file. Raises `ConfigError` with every fatal problem; see `inspect`."""
    catalog, problems = inspect(text, keys_text=keys_text, environ=environ, serving=serving, codecs=codecs)
    if catalog is None:
        raise ConfigError(tuple(problem for problem in problems if problem.fatal))
    return catalog


def inspect(
    text: str,
    *,
    keys_text: str | None = None,
    environ: Mapping[str, str] | None = None,
    serving: bool = False,
    codecs: Mapping[Surface, Codec] = CODECS,
) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """The catalog, None when a problem is fatal, and all problems ordered by path.

    `keys_text` is the text of the file that `auth.keys_file` names. `environ` is looked at for the variables that providers name (None: not at
    all). What only a running gateway lacks, such a variable or a first key, is fatal when `serving`, else a warning.
    """
    file, problems = config.read_routes(text)
    if file is None:
        return None, tuple(problems)
    builder = _Builder(file, environ=environ, codecs=codecs, serving=serving)
    catalog = builder.catalog(keys_text)
    # What has the wrong shape is not judged once more for what that led to.
    misshapen = {problem.path for problem in problems}
    found = in_order((*problems, *(problem for problem in builder.problems if problem.path not in misshapen)))
    return None if any(problem.fatal for problem in found) else catalog, found


class _Builder:
    """One pass over the tables, in which every name meets those it refers to. What is wrong is added to `problems`."""

    def __init__(self, file: config.RouteFile, *, environ: Mapping[str, str] | None, codecs: Mapping[Surface, Codec], serving: bool) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.environ = environ
        self.codecs = codecs
        self.serving = serving
        self.names = Names(self.problems)
        self.spoken: dict[tuple[str, str], str] = {}
        self.routes: dict[str, Route] = {}
        self.bound: dict[str, list[str]] = {}

    def report(self, path: str, message: str, suggestion: str) -> None:
        self.problems.append(Problem(path, message, suggestion))

    def catalog(self, keys_text: str | None) -> Catalog:
        limits = self.limits("limits", self.file.limits, None)
        self.providers = {name: self.provider(name, table) for name, table in self.file.providers.items()}
        self.policies = Policies(self.file.policies, self.codecs, self.problems)
        for index, route in enumerate(self.file.routes):
            self.route(f"routes[{index}]", route, limits)
        for index, model in enumerate(self.file.models):
            self.model(f"models[{index}]", model)
        self.problems += against.of_converters("converters.enabled", enabled := self.file.converters.enabled)
        return Catalog(
            auth_mode=AuthMode(self.file.auth.mode),
            keys=self.keys(keys_text),
            limits=limits,
            dry_run=self.file.dry_run.enabled,
            routes=MappingProxyType(self.routes),
            converters=None if enabled is None else frozenset(enabled),
            names=MappingProxyType(self.names.exact),
            globs=self.names.globs,
            listed=tuple(self.names.listed),
        )

    def limits(self, path: str, table: config.LimitTable, above: Limits | None) -> Limits:
        self.problems += against.of_limits(path, table, above)
        return structs.replace(above or Limits(), **against.limits_set(table))

    def provider(self, name: str, table: config.ProviderTable) -> Provider:
        path = dotted("providers", name)
        self.problems += against.of_provider(path, table)
        return Provider(
            name=name,
            base_url=table.base_url and table.base_url.rstrip("/"),
            auth=self.credential(f"{path}.auth", table.auth) if table.auth else None,
            # An embedded llama.cpp has the quirks of any other.
            engine="llama-cpp" if table.embedded == "llama-cpp" else table.engine,
            transport=table.transport or "http1",
            embedded=table.embedded,
            query=tuple(table.query.items()),
            seal_domain=table.seal_domain or name,
        )

    def credential(self, path: str, table: config.CredentialTable) -> ProviderAuth:
        self.problems += against.of_credential(path, table, self.environ, serving=self.serving)
        return ProviderAuth(header=table.header.lower(), scheme=table.scheme, env=table.env)

    def route(self, path: str, table: config.RouteTable, above: Limits) -> None:
        limits = self.limits(f"{path}.limits", table.limits, above)
        default = self.named_provider(f"{path}.provider", table.provider)
        bindings = self.bindings(path, table, default, limits)
        models = self.models_of(path, table)
        route = Route(route_id=table.route_id, models=models, upstream_model=table.upstream_model, bindings=bindings)
        self.routes.setdefault(table.route_id, route)
        self.bound.setdefault(table.route_id, [one.surface for one in table.api_bindings])
        candidate = RouteCandidate(table.route_id)
        if table.route_id not in models:
            self.names.claim(f"{path}.route_id", table.route_id, (candidate,))
        for index, name in enumerate(models):
            spot = f"{path}.upstream_model" if table.models is None else f"{path}.models[{index}]"
            if is_glob(name):
                self.names.claim_glob(spot, name, candidate)
            else:
                self.names.claim(spot, name, (candidate,), _entry(name, (route,)))

    def models_of(self, path: str, table: config.RouteTable) -> tuple[str, ...]:
        if table.models is not None:
            return table.models
        if table.upstream_model != _ANY_MODEL:
            return (table.upstream_model,)
        self.report(f"{path}.models", f'missing, and upstream_model = "{_ANY_MODEL}" names none', 'for example models = ["gpt-*"]')
        return ()

    def named_provider(self, path: str, name: str | None) -> Provider | None:
        """The provider that something at `path` refers to. None when nothing does, or nothing is there."""
        if name and name not in self.providers:
            self.report(path, f'unknown provider "{name}"', nearest(name, self.providers.keys()) or f"declare it: [{dotted('providers', name)}]")
        return None if name is None else self.providers.get(name)

    def bindings(self, path: str, table: config.RouteTable, default: Provider | None, above: Limits) -> tuple[Binding, ...]:
        found: dict[str, Binding | None] = {}
        tolerate = self.tolerances(path, table)
        for index, one in enumerate(table.api_bindings):
            spot = f"{path}.api_bindings[{index}]"
            if one.provider is None and table.provider is None:
                self.report(spot, "neither the binding nor its route names a provider", 'for example provider = "openai"')
            if one.surface and one.surface in found:
                self.report(f"{spot}.surface", f"the route binds {one.surface} already", "a route has one binding a surface; write another route")
            provider = default if one.provider is None else self.named_provider(f"{spot}.provider", one.provider)
            found[one.surface] = self.binding(spot, one, provider, above, tolerate)
        return tuple(binding for binding in found.values() if binding)

    def tolerances(self, path: str, table: config.RouteTable | config.BindingTable) -> frozenset[str]:
        self.problems += against.of_tolerances(path, table.tolerate, table.profiles)
        named = (against.SPELLINGS.get(name, name) for name in table.tolerate)
        return tolerances([name for name in named if name in KNOWN], [name for name in table.profiles if name in PROFILES])

    def binding(self, path: str, table: config.BindingTable, provider: Provider | None, above: Limits, tolerate: frozenset[str]) -> Binding | None:
        limits = self.limits(f"{path}.limits", table.limits, above)
        self.problems += against.of_surface(f"{path}.surface", table.surface, self.codecs)
        self.problems += against.of_features(f"{path}.features", table.surface, table.features)
        self.problems += against.of_query(f"{path}.query", table.query)
        self.problems += against.of_dialect(f"{path}.dialect", table.surface, table.dialect)
        tolerate |= self.tolerances(path, table)
        auth = self.credential(f"{path}.auth", table.auth) if table.auth else None
        codec = self.codecs.get(Surface(table.surface))
        policy = self.policies.bound(f"{path}.request_policy", table.request_policy, codec) if codec else None
        if codec and provider:
            self.judge_place(path, table, codec, provider)
        if codec is None or policy is None or provider is None:
            return None
        return Binding(
            surface=codec.surface,
            path=table.path,
            features=frozenset(_FEATURES[name] for name in table.features if name in _FEATURES),
            policy=policy,
            provider=structs.replace(provider, auth=auth or provider.auth),
            limits=limits,
            query=tuple({**dict(provider.query), **table.query}.items()),
            dialect=table.dialect,
            tolerate=tolerate,
        )

    def judge_place(self, path: str, table: config.BindingTable, codec: Codec, provider: Provider) -> None:
        """Whether the binding's path and credential suit its provider."""
        if provider.embedded and (table.auth or table.query):
            self.report(path, "an embedded upstream is called in process and takes no auth or query", "leave them out")
        if not table.path:
            return
        base_url = provider.base_url or ""
        self.problems += against.of_path(f"{path}.path", table.path, codec.surface, model_in_path=codec.model_in_path, base_url=base_url)
        surface = self.spoken.setdefault((provider.name, table.path.rstrip("/")), codec.surface)
        if surface != codec.surface:
            self.report(f"{path}.path", f'"{provider.name}" speaks {surface} at this path already', f"write the path of {codec.surface}")

    def model(self, path: str, table: config.ModelTable) -> None:
        found = tuple(
            candidate
            for index, one in enumerate(table.candidates)
            if (candidate := self.candidate(f"{path}.candidates[{index}]", config.CandidateTable(route_id=one) if isinstance(one, str) else one))
        )
        self.names.claim(f"{path}.name", table.name, found, _entry(table.name, tuple(self.routes[one.route_id] for one in found)))

    def candidate(self, path: str, table: config.CandidateTable) -> RouteCandidate | None:
        route = self.routes.get(table.route_id) if table.route_id else None
        if route is None:
            if table.route_id:
                self.report(path, f'unknown route "{table.route_id}"', nearest(table.route_id, self.routes.keys()))
            return None
        bound = self.bound[table.route_id]
        if table.upstream_surface and table.upstream_surface not in bound:
            message = f'"{route.route_id}" does not bind "{table.upstream_surface}"'
            self.report(f"{path}.upstream_surface", message, f"it binds {', '.join(filter(None, bound))}")
        return RouteCandidate(route.route_id, Surface(table.upstream_surface) if table.upstream_surface else None)

    def keys(self, text: str | None) -> tuple[Key, ...]:
        tables = keyring.judged(self.file, text, self.names.knows, self.problems, serving=self.serving)
        return tuple(
            Key(name=one.name, digest=bytes.fromhex(one.sha256), models=None if one.models is None else frozenset(one.models)) for one in tables
        )


def _entry(name: str, routes: tuple[Route, ...]) -> ModelEntry | None:
    """What the model lists show of a name: its first provider, and what any of its bindings can be asked for."""
    bindings = [binding for route in routes for binding in route.bindings]
    if not bindings:
        return None
    counts = any(Feature.COUNT_TOKENS in binding.features for binding in bindings)
    operations = (Operation.GENERATE, Operation.COUNT_TOKENS) if counts else (Operation.GENERATE,)
    return ModelEntry(name, bindings[0].provider.name, tuple(str(operation) for operation in operations))
