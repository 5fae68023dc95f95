"""Log probabilities: Gemini's logprobsResult as OpenAI's list of tokens, and back. Numbers keep their text. Knows nothing of answers else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Final

import msgspec
from msgspec import Raw, Struct

from asgi_surface.codecs.gemini.parts import Json


class _Token(Struct, rename="camel"):
    token: str
    log_probability: Raw


class _Alternatives(Struct):
    candidates: list[_Token] = []


class _Result(Struct, rename="camel"):
    chosen_candidates: list[_Token]
    top_candidates: list[_Alternatives] = []


class Entry(Struct):
    """A token as OpenAI tells it."""

    token: str
    logprob: Raw
    top_logprobs: list[Entry] = []


_RESULT: Final = msgspec.json.Decoder(_Result)
_ENTRIES: Final = msgspec.json.Decoder(list[Entry])


def tokens(result: Raw) -> Raw | None:
    """OpenAI's list of token entries (a JSON array); None where the result cannot be read as one."""
    try:
        said = _RESULT.decode(result)
    except msgspec.DecodeError:
        return None
    tops = [top.candidates for top in said.top_candidates]
    pairs = zip(said.chosen_candidates, chain(tops, repeat([])), strict=False)  # the alternatives may be left out
    entries = [_entry(chosen) | {"top_logprobs": [_entry(other) for other in top]} for chosen, top in pairs]
    return Raw(msgspec.json.encode(entries))


def _entry(token: _Token) -> Json:
    return {"token": token.token, "logprob": token.log_probability, "bytes": list(token.token.encode())}


def entries(said: Raw) -> list[Entry]:
    """OpenAI's token entries, read. Raises `ValueError` where they are none."""
    return _ENTRIES.decode(said)


def result(said: Sequence[Entry]) -> Json:
    """Gemini's logprobsResult of them."""
    chosen: Json = {"chosenCandidates": [_token(entry) for entry in said]}
    top = [{"candidates": [_token(other) for other in entry.top_logprobs]} for entry in said]
    return chosen | ({"topCandidates": top} if any(entry.top_logprobs for entry in said) else {})


def _token(entry: Entry) -> Json:
    return {"token": entry.token, "logProbability": entry.logprob}
