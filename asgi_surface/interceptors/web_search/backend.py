"""Where searches are run: one HTTP call a search to the operator's back end, JSON in and out, bounded and timed. SearXNG's API works as it is.

The URL is the operator's; redirects are not followed, and nothing of the back end's errors goes any further. Knows nothing of surfaces or models.
"""

from __future__ import annotations

import functools
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import httpx
import msgspec
from msgspec import Struct

from asgi_surface.searching import QUERY, SearchSettings

_JSON: Final = msgspec.json.Decoder()
# Of one result: some back ends give whole pages, and a page may call itself what it likes.
_EXCERPT_CHARS: Final = 2_000
_TITLE_CHARS: Final = 300
_URL_CHARS: Final = 2_000
_WEB: Final = re.compile(rf"https?://[^\s]{{1,{_URL_CHARS}}}", re.IGNORECASE)
_CONTROLS: Final = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


class SearchFailed(Exception):
    """The back end gave no results that can be read. The text says why, in words of ours alone."""


class Hit(Struct, frozen=True):
    """One result, each fact on one line: no page can write a result of its own among the others. `excerpt` and `title` may be empty."""

    url: str
    title: str
    excerpt: str


class Backend:
    """The configured back end. `environ` holds the secret that `auth` names."""

    def __init__(self, settings: SearchSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        auth = settings.auth
        secret = "" if auth is None else environ.get(auth.env, "").strip()
        credential = {} if auth is None else {auth.header: secret if auth.scheme is None else f"{auth.scheme} {secret}"}
        fixed = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "asgi-surface"}
        self._headers = {**fixed, **dict(settings.headers), **credential}

    async def find(self, query: str) -> list[Hit]:
        """The results in the back end's order. Raises `SearchFailed`."""
        try:
            with anyio.fail_after(self._settings.timeout_seconds):
                body = await self._call(query)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise SearchFailed(type(error).__name__) from None
        return self._hits(body)

    async def _call(self, query: str) -> bytes:
        """The answer's body. A client a search: httpx 0.28 loses slots of a pool whose calls are cancelled."""
        settings = self._settings
        request: dict[str, Any] = {"params": {name: _filled(value, query) for name, value in settings.query}, "headers": dict(self._headers)}
        if settings.body is not None:
            request["content"] = msgspec.json.encode(_filled(_JSON.decode(settings.body), query))
            request["headers"]["content-type"] = "application/json"
        async with (
            httpx.AsyncClient(verify=_tls(), timeout=None, follow_redirects=False) as client,  # noqa: S113 -- `find` bounds the whole
            client.stream(settings.method, settings.url, **request) as response,
        ):
            if response.status_code != 200:
                raise SearchFailed(f"status {response.status_code}")
            if "content-encoding" in response.headers:
                raise SearchFailed("an encoding that was not asked for")
            return await self._read(response)

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._settings.response_bytes:
                raise SearchFailed("too many results")
        return bytes(body)

    def _hits(self, body: bytes) -> list[Hit]:
        settings = self._settings
        try:
            found = _at(_JSON.decode(body), settings.results)
        except (msgspec.DecodeError, RecursionError):
            raise SearchFailed("no JSON") from None
        if not isinstance(found, list):
            raise SearchFailed("no list of results where the route file says")
        paths = (settings.url_field, settings.title_field, settings.content_field)
        said = ([_text(_at(one, path)) for path in paths] for one in found)
        return [Hit(url, title[:_TITLE_CHARS], excerpt[:_EXCERPT_CHARS]) for url, title, excerpt in said if _WEB.fullmatch(url)]


@functools.cache
def _tls() -> ssl.SSLContext:
    """What trusted certificates there are: reading them takes longer than a search."""
    return httpx.create_ssl_context()


def _filled(template: Any, query: str) -> Any:
    """The template with the query in its strings."""
    if isinstance(template, str):
        return template.replace(QUERY, query)
    if isinstance(template, dict):
        return {name: _filled(value, query) for name, value in template.items()}
    return [_filled(one, query) for one in template] if isinstance(template, list) else template


def _at(value: Any, path: Sequence[str]) -> Any:
    """What stands at the end of a path of names; None where it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: object) -> str:
    return " ".join(value.translate(_CONTROLS).split()) if isinstance(value, str) else ""
