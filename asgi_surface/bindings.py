"""A binding as the gateway uses it: one surface that a route's upstream speaks, with its provider, credential, policies and limits resolved.

Pure: of the environment only names are kept. Knows the tables of providers and bindings; how routes, names and keys meet is `catalog`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from asgi_surface import config
from asgi_surface import contradictions as against
from asgi_surface.codecs.base import Codec, Dialect
from asgi_surface.codecs.zed.envelope import INNER
from asgi_surface.codecs.zed.fields import ENVELOPE
from asgi_surface.engines import ENGINES, dialect
from asgi_surface.errors import Problem
from asgi_surface.plans import Limits
from asgi_surface.policies import Policies
from asgi_surface.policy import Policy
from asgi_surface.profiles import KNOWN, PROFILES, tolerances
from asgi_surface.surfaces import ZED, Feature, Surface
from asgi_surface.tables import dotted, nearest

_FEATURES: Final = {str(feature): feature for feature in Feature}


class ProviderAuth(Struct, frozen=True, kw_only=True):
    """The header (lower-case) that carries a credential, and where that is found. Without a scheme the value is sent bare.

    `env` names an environment variable; `command` is a program with its arguments that prints a new credential, run when there is none or the
    upstream has refused it.
    """

    header: str
    scheme: str | None
    env: str | None
    command: tuple[str, ...] = ()


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

    `tolerate` holds every feature and construct that may be lost here, also those of the route and of the profiles. Where the upstream speaks a
    carrier, `surface` is the one that it carries, `policy` judges the carried body, and `envelope` what goes around it: the file names one of the two
    as the `request_policy`, and the other is its surface's shipped one. Which headers pass is the envelope's to say.
    """

    surface: Surface
    path: str
    features: frozenset[Feature]
    policy: Policy
    request_policy: str
    provider: Provider
    limits: Limits
    query: tuple[tuple[str, str], ...]
    dialect: Dialect = Dialect()
    tolerate: frozenset[str] = frozenset()
    carrier: Surface | None = None
    envelope: Policy | None = None

    @property
    def declared(self) -> Surface:
        """The surface that the route file names."""
        return self.carrier or self.surface


def inner(table: config.BindingTable) -> Surface | None:
    """The surface of the bodies that a binding sends. None where a carrier's table does not say it."""
    return INNER.get(table.dialect.zed_provider or "") if table.surface == ZED else Surface(table.surface)


class Bindings:
    """The providers of a file, and the bindings that its routes make of them. What is wrong is added to `problems`."""

    def __init__(
        self,
        file: config.RouteFile,
        problems: list[Problem],
        *,
        environ: Mapping[str, str] | None,
        codecs: Mapping[Surface, Codec],
        serving: bool,
    ) -> None:
        self._problems = problems
        self._environ = environ
        self._codecs = codecs
        self._serving = serving
        self._spoken: dict[tuple[str, str], str] = {}
        self._providers = {name: self._provider(name, table) for name, table in file.providers.items()}
        self._policies = Policies(file.policies, {**codecs, ZED: ENVELOPE}, problems)

    def _report(self, path: str, message: str, suggestion: str) -> None:
        self._problems.append(Problem(path, message, suggestion))

    def limits(self, path: str, table: config.LimitTable, above: Limits | None) -> Limits:
        """The limits that hold where a table tightens those above it."""
        self._problems += against.of_limits(path, table, above)
        return structs.replace(above or Limits(), **against.limits_set(table))

    def _provider(self, name: str, table: config.ProviderTable) -> Provider:
        path = dotted("providers", name)
        self._problems += against.of_provider(path, table)
        # An embedded llama.cpp has the quirks of any other.
        engine = "llama-cpp" if table.embedded == "llama-cpp" else table.engine
        return Provider(
            name=name,
            base_url=table.base_url and table.base_url.rstrip("/"),
            auth=self._credential(f"{path}.auth", table.auth, engine) if table.auth else None,
            engine=engine,
            transport=table.transport or "http1",
            embedded=table.embedded,
            query=tuple(table.query.items()),
            seal_domain=table.seal_domain or name,
        )

    def _credential(self, path: str, table: config.CredentialTable, engine: str | None) -> ProviderAuth:
        """The credential; in the engine's own header where the table names none."""
        row = ENGINES.get(engine or "")
        if table.header is None and row and row.header:
            table = structs.replace(table, header=row.header.value)
        self._problems += against.of_credential(path, table, self._environ, serving=self._serving)
        return ProviderAuth(header=(table.header or "").lower(), scheme=table.scheme, env=table.env, command=table.command or ())

    def named_provider(self, path: str, name: str | None) -> Provider | None:
        """The provider that something at `path` refers to. None when nothing does, or nothing is there."""
        if name and name not in self._providers:
            self._report(path, f'unknown provider "{name}"', nearest(name, self._providers.keys()) or f"declare it: [{dotted('providers', name)}]")
        return None if name is None else self._providers.get(name)

    def of_route(self, path: str, table: config.RouteTable, default: Provider | None, above: Limits) -> tuple[Binding, ...]:
        """The bindings of one route that can be used."""
        found: dict[str, Binding | None] = {}
        tolerate = self._tolerances(path, table)
        for index, one in enumerate(table.api_bindings):
            spot = f"{path}.api_bindings[{index}]"
            if one.provider is None and table.provider is None:
                self._report(spot, "neither the binding nor its route names a provider", 'for example provider = "openai"')
            surface = inner(one) or ""
            if surface and surface in found:
                self._report(f"{spot}.surface", f"the route binds {surface} already", "a route has one binding a surface; write another route")
            provider = default if one.provider is None else self.named_provider(f"{spot}.provider", one.provider)
            found[surface] = self._binding(spot, one, provider, above, tolerate)
        return tuple(binding for binding in found.values() if binding)

    def _tolerances(self, path: str, table: config.RouteTable | config.BindingTable) -> frozenset[str]:
        self._problems += against.of_tolerances(path, table.tolerate, table.profiles)
        named = (against.SPELLINGS.get(name, name) for name in table.tolerate)
        return tolerances([name for name in named if name in KNOWN], [name for name in table.profiles if name in PROFILES])

    def _judge(self, path: str, table: config.BindingTable, surface: Surface | None) -> None:
        """What a binding says against itself."""
        self._problems += against.of_surface(f"{path}.surface", table.surface, (*self._codecs, ZED))
        self._problems += against.of_features(f"{path}.features", surface or table.surface, table.features)
        self._problems += against.of_query(f"{path}.query", table.query)
        self._problems += against.of_dialect(f"{path}.dialect", surface or table.surface, against.dialect_set(table.dialect))
        self._problems += against.of_carrier(path, table)

    def _binding(self, path: str, table: config.BindingTable, provider: Provider | None, above: Limits, tolerate: frozenset[str]) -> Binding | None:
        limits = self.limits(f"{path}.limits", table.limits, above)
        surface = inner(table)
        self._judge(path, table, surface)
        tolerate |= self._tolerances(path, table)
        auth = self._credential(f"{path}.auth", table.auth, provider.engine if provider else None) if table.auth else None
        codec = self._codecs.get(surface) if surface else None
        wire = ENVELOPE if table.surface == ZED else codec
        within = () if codec is None else (codec,)
        policy = self._policies.bound(f"{path}.request_policy", table.request_policy, wire, *within) if wire else None
        if wire and provider:
            self._judge_place(path, table, provider, model_in_path=wire is not ENVELOPE and bool(codec and codec.model_in_path))
        if codec is None or policy is None or provider is None:
            return None
        carrier = ZED if table.surface == ZED else None
        return Binding(
            surface=codec.surface,
            path=table.path,
            features=frozenset(_FEATURES[name] for name in table.features if name in _FEATURES),
            policy=policy if policy.surface == codec.surface else self._policies.shipped(codec),
            request_policy=policy.name,
            provider=structs.replace(provider, auth=auth or provider.auth),
            limits=limits,
            query=tuple({**dict(provider.query), **table.query}.items()),
            dialect=dialect(provider.engine, codec.surface, against.dialect_set(table.dialect)),
            tolerate=tolerate,
            carrier=carrier,
            envelope=None if carrier is None else policy if policy.surface == carrier else self._policies.shipped(ENVELOPE),
        )

    def _judge_place(self, path: str, table: config.BindingTable, provider: Provider, *, model_in_path: bool) -> None:
        """Whether the binding's path and credential suit its provider."""
        if provider.embedded and (table.auth or table.query):
            self._report(path, "an embedded upstream is called in process and takes no auth or query", "leave them out")
        if not table.path:
            return
        base_url = provider.base_url or ""
        self._problems += against.of_engine(path, provider.engine, table, base_url, {**dict(provider.query), **table.query})
        self._problems += against.of_path(f"{path}.path", table.path, table.surface, model_in_path=model_in_path, base_url=base_url)
        surface = self._spoken.setdefault((provider.name, table.path.rstrip("/")), table.surface)
        if surface != table.surface:
            self._report(f"{path}.path", f'"{provider.name}" speaks {surface} at this path already', f"write the path of {table.surface}")
