"""`[interceptors.web_search]` as the gateway uses it: where searches are run and how, judged table by table. Pure; the environment is an argument.

What could be a secret is never repeated in a message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface import contradictions as against
from asgi_surface.config import CredentialTable, SearchTable
from asgi_surface.errors import Problem
from asgi_surface.tables import dotted, nearest

PLACE: Final = "interceptors.web_search"
QUERY: Final = "{query}"
"""Stands in the templates for what is searched for."""

_URL: Final = 'url = "http://127.0.0.1:8888/search"'
_SEARXNG: Final = {"q": QUERY, "format": "json"}
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\t -~]*")
_CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "api-key", "x-api-key", "x-subscription-token", "x-goog-api-key"})
_FRAMING: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "content-type"})


class Credential(Struct, frozen=True, kw_only=True):
    """The header (lower-case) that carries the back end's secret, and the environment variable that holds it. Without a scheme it is sent bare."""

    header: str
    scheme: str | None
    env: str


class SearchSettings(Struct, frozen=True, kw_only=True):
    """The back end and its bounds. `query` and `body` are templates; `results` are the steps to the list in the answer, `fields` to each fact of one.

    `rounds` is how many times the model is asked for one answer. `routes` get their searches here even where the provider has its own.
    """

    url: str
    method: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]
    auth: Credential | None
    body: Raw | None
    results: tuple[str, ...]
    url_field: tuple[str, ...]
    title_field: tuple[str, ...]
    content_field: tuple[str, ...]
    max_results: int
    rounds: int
    timeout_seconds: float
    response_bytes: int
    routes: frozenset[str]


def settings(table: SearchTable | None) -> SearchSettings | None:
    """The settings of a table without problems; None where nothing is to be searched."""
    if table is None or not table.enabled:
        return None
    return SearchSettings(
        url=table.url or "",
        method=table.method,
        query=tuple(_query(table).items()),
        headers=tuple(table.headers.items()),
        auth=None if table.auth is None else _credential(table.auth),
        body=None if table.body is None else Raw(msgspec.json.encode(table.body)),
        results=_steps(table.results),
        url_field=_steps(table.fields.url),
        title_field=_steps(table.fields.title),
        content_field=_steps(table.fields.content),
        max_results=table.max_results,
        rounds=table.max_rounds,
        timeout_seconds=table.timeout_seconds,
        response_bytes=table.response_bytes,
        routes=frozenset(table.routes),
    )


def _credential(table: CredentialTable) -> Credential:
    return Credential(header=(table.header or "").lower(), scheme=table.scheme, env=table.env or "")


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _query(table: SearchTable) -> Mapping[str, str]:
    """SearXNG's where the file says none, and none beside a body."""
    default = _SEARXNG if table.body is None else {}
    return default if table.query is None else table.query


def problems(table: SearchTable | None, environ: Mapping[str, str] | None, routes: Collection[str], *, serving: bool) -> Iterator[Problem]:
    """What the table says against itself, or against the routes that there are."""
    if table is None:
        return
    if table.enabled and table.url is None:
        yield Problem(f"{PLACE}.url", "missing, and web_search is enabled", f"for example {_URL}")
    if table.url:
        yield from against.of_url(f"{PLACE}.url", table.url, _URL)
    yield from against.of_query(f"{PLACE}.query", table.query or {})
    yield from _of_headers(table)
    yield from _of_templates(table)
    if table.auth is not None:
        yield from against.of_credential(f"{PLACE}.auth", table.auth, environ, serving=serving)
        if table.auth.command is not None:
            yield Problem(f"{PLACE}.auth.command", "the secret of a search comes from an environment variable", 'for example env = "SEARCH_API_KEY"')
    yield from _of_bounds(table)
    for index, route in enumerate(table.routes):
        if route and route not in routes:
            yield Problem(f"{PLACE}.routes[{index}]", f'unknown route "{route}"', nearest(route, routes))


def _of_headers(table: SearchTable) -> Iterator[Problem]:
    for name, value in table.headers.items():
        place = dotted(f"{PLACE}.headers", name)
        if name.lower() in _CREDENTIALS or against.is_secret(value):
            yield Problem(place, "a secret does not belong in the file", "use auth, which names an environment variable")
        elif name.lower() in _FRAMING:
            yield Problem(place, "the gateway sends this header itself", "leave it out")
        elif not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            yield Problem(place, "not a header that HTTP can carry", 'for example headers = { "x-app" = "gateway" }')


def _of_templates(table: SearchTable) -> Iterator[Problem]:
    if table.body is not None and table.method == "GET":
        yield Problem(f"{PLACE}.body", "a GET request has no body", 'write method = "POST"')
    if table.body is not None:
        for text in _texts(table.body):
            if against.is_secret(text):
                yield Problem(f"{PLACE}.body", "a secret does not belong in the file", "use auth, which names an environment variable")
    if not any(QUERY in text for text in (*_query(table).values(), *_texts(table.body))):
        place = f"{PLACE}.{'query' if table.body is None else 'body'}"
        yield Problem(place, f"nothing says what is searched for: no value holds {QUERY}", 'for example query = { q = "{query}" }')
    for name, path in (("results", table.results), *((f"fields.{key}", getattr(table.fields, key)) for key in ("url", "title", "content"))):
        if path and not all(_steps(path)):
            yield Problem(f"{PLACE}.{name}", "a path is names joined by dots", 'for example results = "web.results"')


def _texts(value: Any) -> Iterator[str]:
    """The strings in a template, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


_LEAST: Final = {"max_results": 1, "max_rounds": 2, "response_bytes": 1}


def _of_bounds(table: SearchTable) -> Iterator[Problem]:
    for name, least in _LEAST.items():
        if getattr(table, name) < least:
            yield Problem(f"{PLACE}.{name}", f"at least {least} is expected", "leave it out for the default")
    if not 0 < table.timeout_seconds <= 600:
        yield Problem(f"{PLACE}.timeout_seconds", "more than 0 and at most 600 seconds are expected", "leave it out for the default")
