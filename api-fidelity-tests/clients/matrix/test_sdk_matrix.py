"""Every official SDK holds every kind of conversation with every kind of upstream: whole, as raw events and through the SDK's helpers; sync, async.

The upstream keeps what it was asked; both ends are compared with one script.
"""

from __future__ import annotations

import base64
import itertools
from typing import Any, NamedTuple

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = {"forecast": ("Tells the weather of days to come.", SCHEMA)}
TWO = TOOLS | {"river": ("Tells how high a river is.", {**SCHEMA, "properties": {"city": {"type": "string"}}, "required": ["city"]})}
KOELN, BONN = ("forecast", {"city": "Köln", "days": 2}), ("river", {"city": 'B"o}nn'})
HI = (("user", "hi"),)


class Case(NamedTuple):
    """`ask` and `says` are the members of `Ask` and of each `Say`; `results` are given after each answer but the last."""

    ask: dict[str, Any]
    says: tuple[dict[str, Any], ...]
    results: tuple[tuple[str, ...], ...] = ()
    parsed: dict[str, Any] | None = None


CITY = {"name": "Köln", "population": 7, "tags": ["a", "é"]}
CASES = {
    "text": Case({"turns": HI}, ({"text": "Grüße, 世界 🌍 data: {"},)),
    "system": Case({"turns": HI, "system": "Sei knapp.\nAlways."}, ({"text": "Ja."},)),
    "multi-turn": Case({"turns": (*HI, ("said", "Grüße"), ("user", "More?")), "system": "Sei knapp."}, ({"text": "No."},)),
    "tools": Case({"turns": HI, "tools": TOOLS}, ({"calls": (KOELN,), "stop": "tools"}, {"text": "Sun."}), (("22 °C",),)),
    "parallel tools": Case(
        {"turns": HI, "tools": TWO, "system": "Sei knapp."},
        ({"text": "Both.", "calls": (KOELN, BONN, KOELN), "stop": "tools"}, {"calls": (BONN,), "stop": "tools"}, {"text": "Done."}),
        (("one", "two", "three"), ("four",)),
    ),
    "forced tool": Case({"turns": HI, "tools": TWO, "force": "river"}, ({"calls": (BONN,), "stop": "tools"},)),
    "any tool": Case({"turns": HI, "tools": TWO, "force": "*"}, ({"calls": (BONN,), "stop": "tools"},)),
    "structured output": Case({"turns": HI, "schema": True}, ({"text": '{"name": "Köln", "population": 7, "tags": ["a", "é"]}'},), parsed=CITY),
    "reasoning": Case(
        {"turns": HI, "tools": TOOLS, "effort": "low"},
        ({"thought": "Größe?", "calls": (KOELN,), "stop": "tools"}, {"thought": "So.", "calls": (KOELN,), "stop": "tools"}, {"text": "Sun."}),
        (("22 °C",), ("23 °C",)),
    ),
    "image": Case({"turns": (("user", "What is it?"), ("image", PNG))}, ({"text": "A dot."},)),
    "truncation": Case({"turns": HI}, ({"text": "Once upon a", "stop": "length"},)),
    "refusal": Case({"turns": HI}, ({"refused": "I cannot help.", "stop": "refusal"},)),
    "silent refusal": Case({"turns": HI}, ({"stop": "blocked"},)),
}
CASES["unsealed reasoning"] = CASES["reasoning"]._replace(ask=CASES["reasoning"].ask | {"sealed": False})
WAYS = [f"{kind} {way}" for kind in ("sync", "async") for way in ("whole", "raw", "helper")]

# What a pair cannot say: the gateway's code and the place. No upstream is asked.
REFUSED = {("reasoning", RESPONSES, CHAT): ("unrepresentable", "/include/0")}
# What of a model's reasoning does not come back to it: Chat has a place for the seals of calls alone, Gemini does not ask for its thoughts again, and
# a Responses client that asks for no seals has nothing that another provider would take.
BOTH = {"thought", "seal"}
FORGOTTEN = {
    "reasoning": {(CHAT, RESPONSES): BOTH, (CHAT, MESSAGES): BOTH, (CHAT, GEMINI): {"thought"}, (RESPONSES, GEMINI): {"thought"}},
}
FORGOTTEN["unsealed reasoning"] = FORGOTTEN["reasoning"] | {(RESPONSES, MESSAGES): BOTH, (RESPONSES, GEMINI): BOTH}
# Who tells a refusal apart from an answer: OpenAI's two by a place of its own, the others by the reason why the answer ended.
PLACED = (CHAT, RESPONSES)


CELLS = [*itertools.product(CASES, SURFACES, SURFACES, WAYS)]


def heard_of(words, cell, say, turn):
    """What the client must hear of what was said."""
    name, client, origin, way = cell
    calls = tuple((words.call_id(turn, n), *call) for n, call in enumerate(say.calls))
    told = client in PLACED and origin in PLACED
    stop = "end" if say.refused and origin in PLACED else {"blocked": "refusal"}.get(say.stop, say.stop)
    usage = (5, 0) if (origin, say.stop) == (GEMINI, "blocked") else (5, 7)  # nothing was generated
    parsed = CASES[name].parsed and not way.endswith("raw") and (client, way.split()[1]) != (GEMINI, "helper")
    text, refused = (say.text, say.refused) if told else (say.text or say.refused, "")
    return words.Said(text, say.thought, refused, calls, stop, usage, words.City(**CITY) if parsed else None)


def kept_of(words, cell, say, turn, results):
    """What of a turn must come back to the upstream."""
    name, client, origin, _ = cell
    seal = words.seal_of(turn)
    if client == origin == GEMINI:  # google-genai decodes seals, and sends them back in the URL-safe alphabet
        seal = seal.replace("+", "-").replace("/", "_")
    thought = [("thought", say.thought)] if say.thought else []
    sealed = [("seal", seal)] if say.thought and origin != CHAT else []
    calls = [("call", words.call_id(turn, n), *call) for n, call in enumerate(say.calls)]
    text = [("said", say.text)] if say.text else []
    kept = [*thought, *text, *calls[:1], *sealed, *calls[1:]] if origin == GEMINI else [*thought, *sealed, *text, *calls]
    given = [("result", call[1], result) for call, result in zip(calls, results, strict=True)]
    forgotten = FORGOTTEN.get(name, {}).get((client, origin), ())
    kept = [entry for entry in kept if entry[0] not in forgotten]
    if client != origin == GEMINI and calls and (not sealed or "seal" in forgotten):  # Google takes no first call without a token
        kept.insert(kept.index(calls[0]) + 1, ("seal", words.STAND_IN))
    return kept + given


async def converse(talk, way, results):
    """One answer more than there are results to give."""
    yield await talk.hear(way)
    for given in results:
        talk.give(given)
        yield await talk.hear(way)


@pytest.mark.parametrize(("name", "client", "origin", "way"), CELLS, ids=["-".join(cell).replace(" ", "_") for cell in CELLS])
def test_a_conversation(bench, words, name, client, origin, way):
    case, (kind, how), cell = CASES[name], way.split(), (name, client, origin, way)
    ask = words.Ask(**case.ask)._replace(schema=words.City if case.parsed else None)
    says = [words.Say(**say) for say in case.says]
    bench.upstream.script(*says)

    async def main():
        return [said async for said in converse(bench.talk(client, origin, kind, ask), how, case.results)]

    if cell[:3] in REFUSED:
        assert (bench.refused(main()), bench.upstream.bodies) == (REFUSED[cell[:3]], [])
        return
    heard = bench.run(main())
    assert heard == [heard_of(words, cell, say, turn) for turn, say in enumerate(says)]
    assert all(words.City.model_validate_json(said.text).model_dump() == case.parsed for said in heard if case.parsed)
    rest = {"system": ask.system, "tools": ask.tools, "force": ask.force, "effort": ask.effort, "limit": 99}
    rest["schema"] = words.shape(words.City.model_json_schema()) if case.parsed else None
    kept = [kept_of(words, cell, *one) for one in zip(says, itertools.count(), case.results, strict=False)]
    histories = [(*ask.turns, *itertools.chain(*kept[:turn])) for turn in range(len(says))]
    assert bench.upstream.asked == [words.Asked(turns=turns, **rest) for turns in histories]
