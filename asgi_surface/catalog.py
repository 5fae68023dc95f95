"""The route file as the gateway uses it: validated, indexed, frozen. Every problem is found at once.

Pure: the texts and the environment are arguments, and of the environment only names are kept. `config` reads the tables, `contradictions` judges
each by itself; here they are judged against each other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from asgi_surface import config, keyring, searching
from asgi_surface import contradictions as against
from asgi_surface.bindings import Binding, Bindings, Provider, ProviderAuth, inner
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Codec, ModelEntry
from asgi_surface.contracts import CONTRACTS, Contract
from asgi_surface.errors import ConfigError, Problem
from asgi_surface.names import Names, fits, is_glob
from asgi_surface.plans import Limits, RouteCandidate
from asgi_surface.searching import SearchSettings
from asgi_surface.surfaces import Feature, Operation, Surface
from asgi_surface.tables import in_order, nearest

__all__ = ["AuthMode", "Binding", "Catalog", "Key", "Provider", "ProviderAuth", "Route", "build", "inspect"]

_ANY_MODEL: Final = "{model}"


class AuthMode(enum.StrEnum):
    """Who decides whether a client may ask."""

    KEYS = "keys"
    LOOPBACK = "loopback"
    HOST = "host"


class Route(Struct, frozen=True, kw_only=True):
    """A model that the gateway serves; `models` are the names and globs clients may ask for, beside the route_id.

    `context_tokens` and `max_output_tokens` are how much it can read and write, where the file says so; `contract` what its clients may ask.
    """

    route_id: str
    models: tuple[str, ...]
    upstream_model: str
    bindings: tuple[Binding, ...]
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    contract: Contract | None = None


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
    web_search: SearchSettings | None = None

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
    found = in_order((*problems, *(problem for problem in builder.problems if misshapen.isdisjoint(_around(problem.path)))))
    return None if any(problem.fatal for problem in found) else catalog, found


def _around(path: str) -> Iterator[str]:
    """A path and those of the tables around it."""
    while path:
        yield path
        path = path.rpartition(".")[0]


class _Builder:
    """One pass over the tables, in which every name meets those it refers to. What is wrong is added to `problems`."""

    def __init__(self, file: config.RouteFile, *, environ: Mapping[str, str] | None, codecs: Mapping[Surface, Codec], serving: bool) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.environ = environ
        self.codecs = codecs
        self.serving = serving
        self.names = Names(self.problems)
        self.routes: dict[str, Route] = {}
        self.bound: dict[str, list[str]] = {}

    def report(self, path: str, message: str, suggestion: str) -> None:
        self.problems.append(Problem(path, message, suggestion))

    def catalog(self, keys_text: str | None) -> Catalog:
        self.bindings = Bindings(self.file, self.problems, environ=self.environ, codecs=self.codecs, serving=self.serving)
        limits = self.bindings.limits("limits", self.file.limits, None)
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
            web_search=self.web_search(self.file.interceptors.web_search),
        )

    def web_search(self, table: config.SearchTable | None) -> SearchSettings | None:
        found = list(searching.problems(table, self.environ, self.routes.keys(), serving=self.serving))
        self.problems += found
        return None if any(problem.fatal for problem in found) else searching.settings(table)

    def route(self, path: str, table: config.RouteTable, above: Limits) -> None:
        limits = self.bindings.limits(f"{path}.limits", table.limits, above)
        default = self.bindings.named_provider(f"{path}.provider", table.provider)
        self.problems += against.of_tokens(path, table)
        models = self.models_of(path, table)
        route = Route(
            route_id=table.route_id,
            models=models,
            upstream_model=table.upstream_model,
            bindings=self.bindings.of_route(path, table, default, limits),
            context_tokens=table.context_tokens,
            max_output_tokens=table.max_output_tokens,
            contract=self.contract(f"{path}.inbound_contract", table.inbound_contract),
        )
        self.routes.setdefault(table.route_id, route)
        bound = (name for one in table.api_bindings for name in (one.surface, inner(one)))
        self.bound.setdefault(table.route_id, list(dict.fromkeys(filter(None, bound))))
        candidate = RouteCandidate(table.route_id)
        if table.route_id not in models:
            self.names.claim(f"{path}.route_id", table.route_id, (candidate,))
        for index, name in enumerate(models):
            spot = f"{path}.upstream_model" if table.models is None else f"{path}.models[{index}]"
            if is_glob(name):
                self.names.claim_glob(spot, name, candidate)
            else:
                self.names.claim(spot, name, (candidate,), _entry(name, (route,)))

    def contract(self, path: str, name: str | None) -> Contract | None:
        if name is not None and name not in CONTRACTS:
            self.report(path, f'unknown contract "{name}"', nearest(name, CONTRACTS))
        return CONTRACTS.get(name or "")

    def models_of(self, path: str, table: config.RouteTable) -> tuple[str, ...]:
        if table.models is not None:
            return table.models
        if table.upstream_model != _ANY_MODEL:
            return (table.upstream_model,)
        self.report(f"{path}.models", f'missing, and upstream_model = "{_ANY_MODEL}" names none', 'for example models = ["gpt-*"]')
        return ()

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
            self.report(f"{path}.upstream_surface", message, f"it binds {', '.join(bound)}")
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
    first = bindings[0]
    return ModelEntry(
        name,
        first.provider.name,
        tuple(str(operation) for operation in operations),
        surface=first.surface,
        features=first.features,
        # Where the upstream is never asked to stream, the gateway makes a stream of its document.
        streams=Feature.STREAMING in first.features or first.dialect.stream == "never",
        context_tokens=routes[0].context_tokens,
        max_output_tokens=routes[0].max_output_tokens,
    )
