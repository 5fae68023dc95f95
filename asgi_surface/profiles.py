"""What an operator lets the gateway drop: single tolerances, and profiles, which are the tolerances that one agent needs.

A profile is a closed list made from the agent's captured requests: hints, and optional tools that the provider would run, which some target refuses
and the agent works without. It never drops the conversation, tool calls, tool results or answer text. Every drop is reported. Knows no wire.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from asgi_surface.codecs import CODECS
from asgi_surface.surfaces import Feature


class Profile(Struct, frozen=True):
    """The tolerances of one agent: each construct or feature, and why its loss is bearable. `version` counts the changes of the list."""

    name: str
    version: int
    tolerates: Mapping[str, str]


# Every agent sends these: it asks for reasoning, and gives its state back with the history.
_REASONING: Final = {
    Feature.REASONING: "a wish how much to think; a model that cannot reason answers at once",
    Feature.ENCRYPTED_REASONING: "state of earlier reasoning; a model that has none reads what it led to in the history",
    "seal:foreign": "reasoning that another provider sealed before the conversation came here; what it led to stands in the history",
}
_TOP_K: Final = {"field:generationConfig.topK": "a default of sampling that narrows what top_p narrows already"}
_SEALS: Final = {"field:include.reasoning.encrypted_content": "asks for state to give back; where reasoning is not sealed there is none"}

_SHIPPED: Final = (
    Profile(
        "codex",
        1,
        _REASONING
        | _SEALS
        | {
            Feature.HOSTED_TOOLS: "a search that the provider would run; the tools that Codex runs itself remain",
            "tool:web_search": "a search that the provider would run; the tools that Codex runs itself remain",
            "tool:tool_search": "finds tools that Codex has not offered yet; those that it has offered remain",
            "field:text.verbosity": "a wish how long to answer",
        },
    ),
    Profile("claude-code", 1, _REASONING),
    Profile("gemini-cli", 1, _REASONING | _TOP_K),
    Profile("qwen-code", 1, _REASONING | _TOP_K),
    Profile("opencode", 1, _REASONING | _SEALS | _TOP_K),
)

PROFILES: Final[Mapping[str, Profile]] = {profile.name: profile for profile in _SHIPPED}
"""The shipped profiles, by the name that route files use."""

KNOWN: Final[frozenset[str]] = frozenset(Feature).union(*(codec.rows for codec in CODECS.values()))
"""What a tolerance may name: a feature, or a construct of any surface."""


def tolerances(tolerate: Collection[str], profiles: Collection[str]) -> frozenset[str]:
    """Everything that these single tolerances and these profiles tolerate. Raises `ValueError` for a name that no table has."""
    unknown = [*(name for name in tolerate if name not in KNOWN), *(name for name in profiles if name not in PROFILES)]
    if unknown:
        raise ValueError(f'nothing is called "{unknown[0]}"')
    return frozenset(tolerate).union(*(PROFILES[name].tolerates for name in profiles))
