"""What an upstream's refusal becomes: one table by status, and what of the upstream's words may reach a client.

Knows nothing of surfaces or transport. Whatever an upstream says is data of a stranger: bounded, printable, without keys, addresses and accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs.reading import decode
from asgi_surface.errors import Code, ErrorFacts, UpstreamDetail, UpstreamError

Headers = Sequence[tuple[bytes, bytes]]

_MESSAGE_CHARS: Final = 512
_WORD_CHARS: Final = 128
_HEADER_BYTES: Final = 256
_BODY_BYTES: Final = 65_536


class _Row(Struct, frozen=True):
    """What one status becomes: `status` None keeps the upstream's own; `words` says whether the upstream's message may be told."""

    code: Code
    status: int | None = None
    words: bool = True


_BAD: Final = _Row(Code.UPSTREAM_BAD_RESPONSE, 502, words=False)
_AUTH: Final = _Row(Code.UPSTREAM_AUTH_FAILED, 502, words=False)  # the credential is the operator's: its failure is no client's business
_OVERLOADED: Final = _Row(Code.UPSTREAM_OVERLOADED, 503)

_ROWS: Final[dict[int, _Row]] = {
    **dict.fromkeys((401, 402, 403, 407), _AUTH),
    408: _Row(Code.UPSTREAM_TIMEOUT, 504),
    425: _Row(Code.UPSTREAM_ERROR, 502),
    429: _Row(Code.UPSTREAM_RATE_LIMITED),
    431: _Row(Code.UPSTREAM_PROTOCOL_ERROR, 502, words=False),  # our headers, not the client's
    503: _OVERLOADED,
    504: _Row(Code.UPSTREAM_TIMEOUT),
    529: _OVERLOADED,
}
_CLASSES: Final[dict[int, _Row]] = {4: _Row(Code.UPSTREAM_REJECTED), 5: _Row(Code.UPSTREAM_ERROR)}

_CONSTANT: Final[dict[Code, str]] = {
    Code.UPSTREAM_BAD_RESPONSE: "the upstream's answer could not be used",
    Code.UPSTREAM_AUTH_FAILED: "the upstream did not accept the gateway's credential",
    Code.UPSTREAM_TIMEOUT: "the upstream timed out",
    Code.UPSTREAM_ERROR: "the upstream failed",
    Code.UPSTREAM_RATE_LIMITED: "the upstream's rate limit is reached",
    Code.UPSTREAM_PROTOCOL_ERROR: "the upstream did not accept the gateway's request",
    Code.UPSTREAM_OVERLOADED: "the upstream is overloaded",
    Code.UPSTREAM_REJECTED: "the upstream refused the request",
}

# What servers say of a path they do not have (Starlette, Go, OpenAI): the route is wrong, not the request.
_WRONG_PATH: Final = re.compile(r"Not Found|Method Not Allowed|404 page not found|Invalid URL \(.*", re.DOTALL)
_PATH_STATUSES: Final = frozenset({404, 405})
# Google answers a wrong key with 400 and this reason.
_KEY_REFUSED: Final = frozenset({"API_KEY_INVALID", "invalid_api_key"})

# Words of an error's code and type, for errors that come with status 200. The first that is found decides.
_WORDS: Final[tuple[tuple[str, int], ...]] = (
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("insufficient_quota", 429),
    ("too_many_requests", 429),
    ("overloaded", 529),
    ("unavailable", 503),
    ("timeout", 504),
    ("deadline_exceeded", 504),
    ("authentication", 401),
    ("unauthenticated", 401),
    ("api_key", 401),
    ("permission", 403),
    ("billing", 402),
    ("not_found", 404),
    ("too_large", 413),
    ("context_length_exceeded", 400),
    ("invalid_request", 400),
    ("invalid_argument", 400),
    ("invalid_prompt", 400),
)

_ANY: Final = msgspec.json.Decoder()
_TRACE: Final = "Traceback (most recent call last)"
REMOVED: Final = "[removed]"
# Every branch begins at a fixed word or where a run of letters begins, so that a long text is walked once.
_UNSAYABLE: Final = re.compile(
    r"""
      https?://[^\s"'<>\\]+
    | Traceback\ \(most\ recent\ call\ last\)
    | \bBearer\s+[^\s"'\\,;]+
    | \b(?:sk-|gsk_|xai-|hf_|pplx-|ya29\.|AIza)[\w*.-]{6,}
    | \borg-[A-Za-z0-9]{8,} | \bproj_[A-Za-z0-9]{8,}
    | \borganization(?:'s)?\ \([0-9a-f-]{36}\)  # Anthropic
    | \bproject(?:s/|_number:)[\w.:-]+  # Google
    | /subscriptions/[^\s"'<>\\]+ | \barn:aws[\w-]*:[^\s"'<>\\]+  # Azure, Bedrock
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | (?<![\w.-])\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]+\](?::\d{1,5})?
    | (?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.])
    | (?<![\w.-])(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}:\d{2,5}\b
    | (?<![\w.-])localhost:\d{2,5}\b
    | (?<![\w.-])[A-Za-z][A-Za-z0-9-]*:\d{4,5}\b
    """,
    re.VERBOSE | re.DOTALL,
)


def scrub(text: str, secrets: Sequence[str]) -> str:
    """`text` with `[removed]` for each of the secrets, and for whatever looks like a URL, a host with its port, a key, an account or an address."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, REMOVED)
    return _UNSAYABLE.sub(REMOVED, text)


def scrub_data(data: bytes, secrets: Sequence[str]) -> bytes:
    """JSON with every string scrubbed: the same bytes when nothing had to be removed. Text that is no JSON is scrubbed as it stands.

    Strings are judged with their escapes resolved: behind an escaped line break no word begins.
    """
    text = data.decode(errors="replace")
    try:
        value = decode(_ANY, data)
        clean = _clean(value, secrets)
        # What only the text shows stands under a repeated name, which the decoder has left out.
        return data if clean == value and scrub(text, secrets) == text else msgspec.json.encode(clean)
    except (ValueError, RecursionError):
        return scrub(text, secrets).encode()


def _clean(value: object, secrets: Sequence[str]) -> object:
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, list):
        return [_clean(item, secrets) for item in value]
    return {scrub(name, secrets): _clean(item, secrets) for name, item in value.items()} if isinstance(value, dict) else value


def refusal(
    status: int,
    facts: ErrorFacts | None,
    body: bytes,
    headers: Headers,
    *,
    secrets: Sequence[str],
    keep_529: bool = False,
) -> UpstreamError:
    """The error for an upstream's answer with `status`, a number other than 2xx.

    `facts` is what its body says, None when that could not be read; `secrets` what must not be repeated (keys, the upstream's host);
    `keep_529` says that the client's surface knows 529.
    """
    row = _row(status, facts)
    kept = status if row.status is None or (keep_529 and status == 529) else row.status
    told = facts if row.words else None
    relayed = told is not None and kept == status and 0 < len(body) <= _BODY_BYTES and _TRACE.encode() not in body
    return UpstreamError(
        row.code,
        _message(row.code, told, secrets),
        status=kept,
        headers=tuple(_passing(headers, secrets)),
        detail=_detail(told, secrets),
        # The provider's own envelope holds more than a message: SDKs read retry delays and violations in it.
        body=scrub_data(body, secrets) if relayed else None,
    )


def in_answer(facts: ErrorFacts, headers: Headers, *, secrets: Sequence[str], keep_529: bool = False) -> UpstreamError:
    """The error for an error that came inside a 200 answer. Its number, else its words, say what the status would have been; else 502.

    The body is not kept: with another status it is not what the upstream sent.
    """
    return refusal(_status(facts), facts, b"", headers, secrets=secrets, keep_529=keep_529)


def _row(status: int, facts: ErrorFacts | None) -> _Row:
    if status in _PATH_STATUSES and (facts is None or _WRONG_PATH.fullmatch(facts.message)):
        return _BAD
    if 400 <= status < 500 and facts and facts.detail.code in _KEY_REFUSED:
        return _AUTH
    return _ROWS.get(status) or _CLASSES.get(status // 100, _BAD)


def _status(facts: ErrorFacts) -> int:
    said = f"{facts.detail.code} {facts.detail.type}".lower()
    return facts.status or next((status for word, status in _WORDS if word in said), 502)


def _message(code: Code, facts: ErrorFacts | None, secrets: Sequence[str]) -> str:
    message = facts.message[:_BODY_BYTES].partition(_TRACE)[0] if facts else ""
    said = _printable(scrub(message, secrets))
    return said[:_MESSAGE_CHARS] or _CONSTANT[code]


def _printable(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _detail(facts: ErrorFacts | None, secrets: Sequence[str]) -> UpstreamDetail:
    if facts is None:
        return UpstreamDetail()
    said = (facts.detail.type, facts.detail.code, facts.detail.param)
    return UpstreamDetail(*(word if word and _plain(word, secrets) else None for word in said))


def _plain(word: str, secrets: Sequence[str]) -> bool:
    return len(word) <= _WORD_CHARS and word.isprintable() and scrub(word, secrets) == word


_DATE: Final = re.compile(rb"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
_LIMIT_HEADERS: Final = (b"x-ratelimit-", b"anthropic-ratelimit-")


def _passing(headers: Headers, secrets: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """The headers that tell a client when to come back. Of a repeated one the first counts."""
    seen: dict[bytes, bytes] = {}
    for name, value in headers:
        seen.setdefault(name.lower(), value.strip())
    for name, value in seen.items():
        passed = _value(name, value, secrets)
        if passed is not None:
            yield name, passed


def _value(name: bytes, value: bytes, secrets: Sequence[str]) -> bytes | None:
    match name:
        case b"retry-after":
            return value if _DATE.fullmatch(value) else _clamped(value, 3600)
        case b"retry-after-ms":
            return _clamped(value, 3_600_000)
        case b"x-should-retry":
            return value if value in (b"true", b"false") else None
    plain = name.startswith(_LIMIT_HEADERS) and len(value) <= _HEADER_BYTES and value.isascii() and _plain(value.decode("latin-1"), secrets)
    return value if plain else None


def _clamped(value: bytes, most: int) -> bytes | None:
    return b"%d" % min(max(int(value), 1), most) if value.isdigit() and len(value) < 20 else None
