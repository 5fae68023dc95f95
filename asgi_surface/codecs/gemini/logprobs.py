"""Log probabilities: Gemini's logprobsResult as OpenAI's list of tokens, and back. Numbers keep their text. Knows nothing of answers else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs.gemini.parts import Json


class _Token(Struct, rename="camel"):
    token: str
    log_probability: Raw
    token_id: Any = None


class _Alternatives(Struct):
    candidates: list[_Token] = []


class _Result(Struct, rename="camel"):
    chosen_candidates: list[_Token] = []
    top_candidates: list[_Alternatives] = []
    log_probability_sum: Any = None

    def unread(self) -> list[str]:
        """The names of what OpenAI's entries do not say."""
        every = chain(self.chosen_candidates, *(top.candidates for top in self.top_candidates))
        beyond = {"logProbabilitySum": self.log_probability_sum, "tokenId": any(token.token_id for token in every)}
        return [f"answer:logprobsResult.{name}" for name, said in beyond.items() if said]


class Entry(Struct):
    """A token as OpenAI tells it."""

    token: str
    logprob: Raw
    top_logprobs: list[Entry] = []


OTHER: Final = "answer:logprobsResult.other"
"""Log probabilities that cannot be read, or of what is no text."""
_RESULT: Final = msgspec.json.Decoder(_Result | None)
_ENTRIES: Final = msgspec.json.Decoder(list[Entry])


def tokens(result: Raw) -> tuple[Raw | None, list[str]]:
    """OpenAI's list of token entries (a JSON array), None where there are none; and the names of what is not among them."""
    try:
        said = _RESULT.decode(result)
    except msgspec.DecodeError:
        return None, [OTHER]
    if said is None or not said.chosen_candidates:
        return None, []
    tops = [top.candidates for top in said.top_candidates]
    pairs = zip(said.chosen_candidates, chain(tops, repeat([])), strict=False)  # the alternatives may be left out
    entries = [_entry(chosen) | {"top_logprobs": [_entry(other) for other in top]} for chosen, top in pairs]
    return Raw(msgspec.json.encode(entries)), said.unread()


def _entry(token: _Token) -> Json:
    return {"token": token.token, "logprob": token.log_probability, "bytes": list(token.token.encode())}


def entries(said: Raw | None) -> list[Entry] | None:
    """OpenAI's token entries, read; None where they are none."""
    try:
        return _ENTRIES.decode(said or b"[]")
    except msgspec.DecodeError:
        return None


def result(said: Sequence[Entry] | None) -> Json | None:
    """Gemini's logprobsResult of them; None where there are none."""
    if not said:
        return None
    chosen: Json = {"chosenCandidates": [_token(entry) for entry in said]}
    top = [{"candidates": [_token(other) for other in entry.top_logprobs]} for entry in said]
    return chosen | ({"topCandidates": top} if any(entry.top_logprobs for entry in said) else {})


def _token(entry: Entry) -> Json:
    return {"token": entry.token, "logProbability": entry.logprob}
