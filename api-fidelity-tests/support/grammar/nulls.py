"""Where the real APIs write null. Everywhere else a member that says nothing is left out: a null there breaks clients that read it as a value.

Each place was seen in recorded streams of OpenAI, Anthropic and Google, or is `Optional` without a default of its own in the official SDK's type and
written by the API in answers (echoes of the request). `*` is any index. Below a place of `FREE` the client's or the model's own JSON begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammar.frames import must

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"

_ECHO = (
    "error incomplete_details instructions max_output_tokens max_tool_calls metadata moderation completed_at previous_response_id prompt_cache_key "
    "prompt_cache_retention reasoning/context reasoning/effort reasoning/summary safety_identifier temperature top_p usage user "
    "text/format/description text/format/strict tools/*/description tools/*/parameters tools/*/strict tools/*/tools/*/description "
    "tools/*/tools/*/parameters tools/*/tools/*/strict"
)
_TOKENS = "bytes top_logprobs/*/bytes"
# Entries of Chat are passed on as they are, and there a token that is no text has no bytes.
_ENTRIES = "logprobs part/logprobs item/content/*/logprobs response/output/*/content/*/logprobs"

NULLS = {
    CHAT: {
        "/choices/*/delta/content",
        "/choices/*/delta/refusal",
        "/choices/*/finish_reason",
        "/choices/*/logprobs",
        "/choices/*/logprobs/content",
        "/choices/*/logprobs/refusal",
        *(f"/choices/*/logprobs/{name}/*/{token}" for name in ("content", "refusal") for token in _TOKENS.split()),
        "/error/code",
        "/error/param",
        "/system_fingerprint",
        "/usage",
    },
    RESPONSES: {
        *(f"/response/{name}" for name in _ECHO.split()),
        *(f"/{name}/*/{token}" for name in _ENTRIES.split() for token in _TOKENS.split()),
        "/code",
        "/param",
    },
    MESSAGES: {
        "/message/stop_details",
        "/message/stop_reason",
        "/message/stop_sequence",
        "/delta/stop_details",
        "/delta/stop_sequence",
        "/delta/citation/title",
        "/content_block/content/*/page_age",
    },
    GEMINI: set(),
}
FREE = {
    CHAT: set(),
    RESPONSES: {"/response/metadata", "/response/text/format/schema", "/response/tools/*/parameters", "/response/tools/*/tools/*/parameters"},
    MESSAGES: {"/error/details"},
    GEMINI: {"/candidates/*/content/parts/*/functionCall/args"},
}


def _nulls(value: Any, path: str, free: set[str]) -> Iterator[str]:
    if value is None:
        yield path
    elif path not in free and isinstance(value, dict):
        for name, one in value.items():
            yield from _nulls(one, f"{path}/{name}", free)
    elif isinstance(value, list):
        for one in value:
            yield from _nulls(one, f"{path}/*", free)


def null_free(surface: str, event: Any) -> None:
    """Holds one event against the table."""
    for path in _nulls(event, "", FREE[surface]):
        must(path in NULLS[surface], f"null at {path}")
