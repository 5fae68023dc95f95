"""What one table of a route file says against itself. Each function yields the problems of the table at `path`.

Knows the shape of tables and the facts of surfaces, nothing of other tables. Empty strings have been reported already, so they are passed over;
what could be a secret is never repeated in a message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from msgspec import structs

from asgi_surface.codecs.base import Dialect
from asgi_surface.config import EMBEDDED, BindingTable, CredentialTable, DialectTable, LimitTable, ProviderTable, RouteTable
from asgi_surface.converters import PAIRS
from asgi_surface.engines import ENGINES
from asgi_surface.errors import Problem
from asgi_surface.plans import Limits
from asgi_surface.profiles import KNOWN, PROFILES
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, IMPLIES, MESSAGES, RESPONSES, ZED, Feature, Surface
from asgi_surface.tables import dotted, nearest

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What well-known secrets look like, wherever somebody may have written one.
_SECRET: Final = re.compile(r"\b(AIza|(sk|gsk|hf|ghp|xai)[-_])[\w-]{16,}")
_IN_FILE: Final = "a secret does not belong in the file"
_TARGET: Final = re.compile(r"[!-~]+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS: Final = ("model", "method")
_SECRET_QUERY: Final = frozenset({"key", "api_key", "api-key", "apikey", "token", "access_token", "secret", "password"})
_FEATURES: Final = tuple(str(feature) for feature in Feature)
_PAIRS: Final = tuple(pair.name for pair in PAIRS.values())
# What route files call a construct that has no plain name of its own.
SPELLINGS: Final = {"foreign-seals": "seal:foreign"}
_TOLERATED: Final = KNOWN.union(SPELLINGS)
_SPOKEN: Final = frozenset({CHAT, RESPONSES, MESSAGES, GEMINI})
# Messages and Gemini keep instructions apart from the turns, only Messages demands a limit and continues a turn officially, only Gemini takes no
# addresses of pictures by itself and no calls without a token, and only Chat Completions has engines with ways of their own.
_MEANT: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("instruction_role", "tool_choice"), frozenset({CHAT, RESPONSES})),
    "prefill": frozenset({CHAT, RESPONSES, GEMINI}),
    **dict.fromkeys(("remote_images", "unsigned_calls"), frozenset({GEMINI})),
    **dict.fromkeys(("default_max_tokens", "signatures"), frozenset({MESSAGES})),
    **dict.fromkeys(("call_ids", "max_tokens_field", "reasoning_field", "reasoning_replay"), frozenset({CHAT})),
    **dict.fromkeys(("stream_usage", "strict_tools", "template_switch"), frozenset({CHAT})),
}
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    CHAT: ("effort", "template", "thinking", "reasoning"),
    RESPONSES: ("effort",),
    MESSAGES: ("effort", "budget"),
    GEMINI: ("effort", "budget"),
}
_OFFICIAL: Final = Dialect()
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# The least budget that the Messages API takes; elsewhere 0 asks for no reasoning.
_LEAST_BUDGET: Final[Mapping[str, int]] = {MESSAGES: 1024}
# Not bounds but a rhythm: less of it is not more, and 0 means never.
_RHYTHM: Final = "keepalive_seconds"

# Built by the gateway or by the connection, or a client's credential: none may come from a client.
_NEVER_SENT: Final = frozenset(
    {
        *("accept-encoding", "api-key", "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect"),
        *("host", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "x-api-key", "x-goog-api-key"),
        *("accept", "proxy-authenticate", "proxy-connection", "set-cookie", "user-agent", "x-amz-security-token"),
    }
)


def of_provider(path: str, table: ProviderTable) -> Iterator[Problem]:
    """A provider without its one place to call, or with what that place does not take."""
    yield from _of_kind(path, table)
    if table.base_url:
        yield from of_url(dotted(path, "base_url"), table.base_url)
        if _SECRET.search(table.base_url):
            yield Problem(dotted(path, "base_url"), _IN_FILE, "use auth, which names an environment variable")
    if table.embedded and table.embedded not in EMBEDDED:
        yield Problem(dotted(path, "embedded"), f'unknown embedded upstream "{table.embedded}"', nearest(table.embedded, EMBEDDED))
    if table.engine and table.engine not in ENGINES:
        yield Problem(dotted(path, "engine"), f'unknown engine "{table.engine}"', nearest(table.engine, ENGINES))
    yield from of_query(dotted(path, "query"), table.query)


def _of_kind(path: str, table: ProviderTable) -> Iterator[Problem]:
    if table.base_url is None and table.embedded is None:
        yield Problem(path, "a provider needs a base_url, or embedded", 'for example base_url = "https://api.openai.com"')
    if table.base_url is not None and table.embedded is not None:
        yield Problem(path, "a provider has either a base_url or embedded, not both", "leave one out")
    if table.embedded is not None:
        for name in ("auth", "transport", "query"):
            if getattr(table, name):
                yield Problem(dotted(path, name), "an embedded upstream is called in process and takes none", "leave it out")


def is_secret(text: str) -> bool:
    """Whether a text holds what looks like a well-known secret."""
    return _SECRET.search(text) is not None


def of_url(path: str, text: str, example: str = 'base_url = "https://api.openai.com"') -> Iterator[Problem]:
    """What is no URL to call, or holds what belongs elsewhere."""
    url = _split(text)
    if url is None or url.scheme not in ("http", "https") or not url.hostname or not _TARGET.fullmatch(text):
        yield Problem(path, "not an http or https URL with a host", f"for example {example}")
        return
    if "@" in url.netloc:
        yield Problem(path, "a secret does not belong in the file: the URL holds user information", "use auth, which names an environment variable")
    if url.query or url.fragment or text.endswith(("?", "#")):
        yield Problem(path, "a base URL has no query or fragment", 'write query = { name = "value" } beside it')


def _split(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        usable = url.port != 0
    except ValueError:
        return None
    return url if usable else None


def of_credential(path: str, table: CredentialTable, environ: Mapping[str, str] | None, *, serving: bool) -> Iterator[Problem]:
    """A credential that no header can carry, that stands in the file itself, or that is not there (fatal when `serving`)."""
    for name, text in (("header", table.header), ("scheme", table.scheme)):
        if text and not _TOKEN.fullmatch(text):
            yield Problem(dotted(path, name), "not one word that an HTTP header may hold", 'for example header = "authorization", scheme = "Bearer"')
        elif text and _SECRET.search(text):
            yield Problem(dotted(path, name), _IN_FILE, "env names the environment variable that holds it")
    if table.env and (_SECRET.match(table.env) or not _VARIABLE.fullmatch(table.env)):
        message = "not the name of an environment variable (a secret does not belong in the file)"
        yield Problem(dotted(path, "env"), message, 'for example env = "OPENAI_API_KEY"')
    elif table.env and table.command is None and environ is not None and not environ.get(table.env):
        yield Problem(dotted(path, "env"), f"the environment variable {table.env} is not set", f"export {table.env}=...", serving)
    if table.header is None:
        yield Problem(dotted(path, "header"), "missing", 'for example header = "authorization"')
    if table.env is None and table.command is None:
        yield Problem(dotted(path, "env"), "missing", 'for example env = "OPENAI_API_KEY"')
    for index, word in enumerate(table.command or ()):
        if _SECRET.search(word):
            yield Problem(f"{path}.command[{index}]", _IN_FILE, "let the command look it up")


def of_query(path: str, query: Mapping[str, str]) -> Iterator[Problem]:
    """A query that would carry a secret."""
    for name, value in query.items():
        if name.lower() in _SECRET_QUERY or _SECRET.search(value):
            yield Problem(dotted(path, name), _IN_FILE, "use auth, which names an environment variable")


def of_path(path: str, text: str, surface: str, *, model_in_path: bool, base_url: str) -> Iterator[Problem]:
    """A binding's path that cannot be joined to its provider's base URL, or not be filled in."""
    if not text.startswith("/"):
        yield Problem(path, "a path begins with a slash", f'write path = "/{text}"')
    if not _TARGET.fullmatch(text) or "?" in text or "#" in text:
        yield Problem(path, "a path is printable ASCII without spaces, query or fragment", 'a query goes to query = { name = "value" }')
    if repeated := _overlap(base_url, text):
        yield Problem(path, f'"{repeated}" ends the base_url already', f'write path = "{text.removeprefix(repeated) or "/"}"')
    yield from _of_placeholders(path, _PLACEHOLDER.findall(text), surface, model_in_path=model_in_path)


def _of_placeholders(path: str, found: Sequence[str], surface: str, *, model_in_path: bool) -> Iterator[Problem]:
    wanted = _PLACEHOLDERS if model_in_path else ()
    for name in found:
        if name not in wanted:
            yield Problem(path, f"{{{name}}} cannot be filled in on {surface}", nearest(name, wanted) or "write the path as it is")
    for name in wanted:
        if name not in found:
            yield Problem(path, f"a path of {surface} needs {{{name}}}", 'for example path = "/v1beta/models/{model}:{method}"')


def _overlap(base_url: str, path: str) -> str:
    """The beginning of `path` that `base_url` ends with, in whole segments; "" for none."""
    split = _split(base_url)
    ends = (split.path if split else "").rstrip("/")
    segments = path.split("/")
    starts = ("/".join(segments[:count]) for count in range(len(segments), 1, -1))
    return next((start for start in starts if ends.endswith(start) and start != "/"), "")


def of_features(path: str, surface: str, features: Sequence[str]) -> Iterator[Problem]:
    """Features that are unknown, mean nothing alone, or cannot be said on the surface."""
    carried = CARRIES.get(Surface(surface), frozenset(Feature))
    for index, name in enumerate(features):
        spot = f"{path}[{index}]"
        if not name:
            continue
        if name not in _FEATURES:
            yield Problem(spot, f'unknown feature "{name}"', nearest(name, _FEATURES))
        elif name not in carried:
            yield Problem(spot, f'{surface} cannot carry "{name}"', "leave it out")
        elif (needed := IMPLIES.get(Feature(name))) and needed not in features:
            yield Problem(spot, f'"{name}" means nothing without "{needed}"', f'add "{needed}"')
        if name in features[:index]:
            yield Problem(spot, f'"{name}" stands there twice', "leave one out")


def of_limits(path: str, table: LimitTable, above: Limits | None) -> Iterator[Problem]:
    """Limits that are not positive, or loosen those of the table above them (None: there is none)."""
    for name, value in limits_set(table).items():
        spot = dotted(path, name)
        if not (math.isfinite(value) and (value > 0 or (name == _RHYTHM and value == 0))):
            yield Problem(spot, "a limit is positive and finite", "leave it out for the default")
        elif above and name != _RHYTHM and value > getattr(above, name):
            yield Problem(spot, f"{value:,} loosens the {getattr(above, name):,} above it", "a route or binding may only tighten a limit")


def limits_set(table: LimitTable) -> dict[str, float]:
    """The limits that a table sets."""
    return {name: value for name, value in structs.asdict(table).items() if value is not None}


def of_headers(path: str, names: Iterable[str]) -> Iterator[Problem]:
    """Client headers that no policy may let through."""
    for index, name in enumerate(names):
        if name and not _TOKEN.fullmatch(name):
            yield Problem(f"{path}[{index}]", "not the name of an HTTP header", 'for example "openai-beta"')
        elif name.lower() in _NEVER_SENT:
            yield Problem(f"{path}[{index}]", f'"{name}" never comes from a client', "leave it out")


def of_surface(path: str, name: str, known: Iterable[str]) -> Iterator[Problem]:
    """A surface that no codec speaks."""
    names = tuple(known)
    if name and name not in names:
        yield Problem(path, f'unknown surface "{name}"', nearest(name, names))


def of_converters(path: str, names: Sequence[str] | None) -> Iterator[Problem]:
    """Converters that nobody knows."""
    for index, name in enumerate(names or ()):
        if name and name not in _PAIRS:
            yield Problem(f"{path}[{index}]", f'unknown converter "{name}"', nearest(name, _PAIRS) or f'for example "{_PAIRS[0]}"')


def of_tolerances(path: str, tolerate: Sequence[str], profiles: Sequence[str]) -> Iterator[Problem]:
    """Tolerances and profiles that nobody knows."""
    for index, name in enumerate(tolerate):
        if name and name not in _TOLERATED:
            suggestion = nearest(name, _TOLERATED) or "`asgi-surface matrix --verdicts` lists the constructs"
            yield Problem(f"{path}.tolerate[{index}]", f'no feature or construct is called "{name}"', suggestion)
    for index, name in enumerate(profiles):
        if name and name not in PROFILES:
            yield Problem(f"{path}.profiles[{index}]", f'unknown profile "{name}"', nearest(name, PROFILES))


def dialect_set(table: DialectTable) -> dict[str, Any]:
    """The keys that a dialect's table sets."""
    return {name: value for name, value in structs.asdict(table).items() if value is not None}


def of_dialect(path: str, surface: str, said: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys of a dialect, `said`, that ask for what their surface cannot say. What happens anyway may be said."""
    for name, value in said.items():
        if surface in _SPOKEN - _MEANT.get(name, _SPOKEN) and value != getattr(_OFFICIAL, name):
            yield Problem(dotted(path, name), f"means nothing on {surface}", "leave it out")
    style, styles = said.get("reasoning_style", "effort"), _STYLES.get(surface, ())
    if styles and style not in styles:
        suggestion = "it is one of " + ", ".join(f'"{one}"' for one in styles)
        yield Problem(dotted(path, "reasoning_style"), f'"{style}" means nothing on {surface}', suggestion)
    if said.get("default_max_tokens", 1) <= 0:
        yield Problem(dotted(path, "default_max_tokens"), "a limit is positive", "leave it out for the default")
    yield from _of_budgets(dotted(path, "reasoning_budgets"), surface, said.get("reasoning_budgets", {}))


def of_engine(path: str, engine: str | None, table: BindingTable, base_url: str, query: Collection[str]) -> Iterator[Problem]:
    """A binding that its engine cannot serve: on a surface that it is not known to speak, or without what every `query` must have."""
    row = ENGINES.get(engine or "")
    if row is None:
        return
    if table.surface in _SPOKEN and table.surface not in row.values:
        yield Problem(f"{path}.surface", f'"{engine}" is not known to speak {table.surface}', "its official wire is spoken", fatal=False)
    split = _split(base_url)
    wanted = row.query and row.query.value
    if wanted and wanted not in query and row.unless not in f"{split.path if split else ''}{table.path}/":
        yield Problem(path, f'"{engine}" wants `{wanted}` in the query', f'for example query = {{ {wanted} = "2024-10-21" }}')


def _of_budgets(path: str, surface: str, budgets: Mapping[str, int]) -> Iterator[Problem]:
    least = _LEAST_BUDGET.get(surface, 0)
    for word, tokens in budgets.items():
        if word not in _EFFORTS:
            yield Problem(dotted(path, word), f'unknown effort "{word}"', nearest(word, _EFFORTS))
        # What is no number has been reported already.
        elif isinstance(tokens, int) and tokens < least:
            yield Problem(dotted(path, word), f"a budget on {surface} is at least {least:,} tokens", "write more, or leave it out")


def of_carrier(path: str, table: BindingTable) -> Iterator[Problem]:
    """A Zed binding that does not say what it carries, or anything else that does; and one that denies that Zed only streams."""
    if table.surface != ZED:
        if table.dialect.zed_provider is not None:
            yield Problem(f"{path}.dialect.zed_provider", f"means nothing on {table.surface}", "leave it out")
        return
    if table.dialect.zed_provider is None:
        yield Problem(f"{path}.dialect.zed_provider", "missing", 'for example dialect = { zed_provider = "anthropic" }')
    if table.dialect.stream == "never":
        yield Problem(f"{path}.dialect.stream", f"{ZED} only streams", "leave it out")
    if Feature.STREAMING not in table.features:
        yield Problem(f"{path}.features", f'{ZED} only streams, and "streaming" is not declared', 'add "streaming"')


def of_tokens(path: str, table: RouteTable) -> Iterator[Problem]:
    """Numbers of tokens that are not positive."""
    for name in ("context_tokens", "max_output_tokens"):
        value = getattr(table, name)
        if value is not None and value <= 0:
            yield Problem(f"{path}.{name}", "a number of tokens is positive", "leave it out where it is not known")
