"""Writing and reading undo each other on every surface, for everything in an answer that clients of any other surface get exactly."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from asgi_surface import ir
from asgi_surface.codecs import CODECS
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.verdicts import Verdict

SURFACES = (CHAT, RESPONSES, MESSAGES, GEMINI)


@pytest.mark.parametrize("surface", SURFACES)
@settings(max_examples=80)
@given(data=st.data())
def test_reading_what_was_written_gives_the_answer(answers, retold, told, surface, data):
    answer = data.draw(answers(surface))
    assert told(retold(answer, surface, surface)[0], surface) == told(answer, surface)


@pytest.mark.parametrize("surface", SURFACES)
@settings(max_examples=80)
@given(data=st.data())
def test_a_stream_says_what_the_document_says(answers, retold, streamed, told, grammar, surface, data):
    """Told part by part and put together again, with all of its answers.

    Chat names sources at the end. Where a call has followed the text that they are of, it is closed, and their loss is counted.
    """
    answer = data.draw(answers(surface))
    (folded, body, unread), (whole, _) = streamed(answer, surface), retold(answer, surface, surface)
    grammar(surface, body)
    texts = [part for one in answer.answers for part in one.parts[:-1] if isinstance(part, ir.Text)]
    assert unread == () or (surface == CHAT and any(text.citations for text in texts))
    same_but_for_sources = told(bare(folded), surface) == told(bare(whole), surface)
    assert same_but_for_sources if unread else told(folded, surface) == told(whole, surface)


def bare(answer):
    """Without sources."""
    parts = tuple(structs.replace(part, citations=()) if isinstance(part, ir.Text) else part for part in answer.parts)
    more = {"more": tuple(map(bare, answer.more))} if isinstance(answer, ir.Response) else {}
    return structs.replace(answer, parts=parts, **more)


REASONED = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a", "reasoning": "why"}, "finish_reason": "stop"}]}
WINDOW = {"content": [], "stop_reason": "model_context_window_exceeded"}
SAID = {"content": {"role": "model", "parts": [{"text": "abc"}]}, "finishReason": "STOP"}
RECITED = {"citations": [{"startIndex": 0, "endIndex": 2, "uri": "https://a.example/"}]}
CITED = ir.Text("abc", citations=(ir.Citation("https://a.example/", "", 0, 2),))

# The constructs that writing never chooses: each with a document that has it, and what is read there.
SPELLINGS = {
    CHAT: {"answer:reasoning": (REASONED, {"parts": (ir.Reasoning("why"), ir.Text("a"))})},
    RESPONSES: {},
    MESSAGES: {"stop:model_context_window_exceeded": (WINDOW, {"stop": ir.Stop.LENGTH})},
    GEMINI: {
        "answer:citationMetadata": ({"candidates": [SAID | {"citationMetadata": RECITED}]}, {"parts": (CITED,)}),
        "answer:createTime": ({"candidates": [SAID], "createTime": "2023-11-14T22:13:20Z"}, {"created": 1_700_000_000}),
    },
}


@pytest.mark.parametrize(("surface", "construct"), [(surface, construct) for surface, found in SPELLINGS.items() for construct in found])
def test_another_spelling_is_read_the_same(surface, construct):
    document, told = SPELLINGS[surface][construct]
    answer = CODECS[surface].read(json.dumps(document).encode())
    assert {name: getattr(answer, name) for name in told} == told


def exact(surface):
    rows = CODECS[surface].rows.values()
    return {row.construct for row in rows if Verdict.EXACT in row.verdicts.values() and row.construct.startswith(("answer:", "stop:", "usage:"))}


def words(value):
    """Every member's name and every string, all the way down."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from words(inner)
    if isinstance(value, str):
        yield value


@pytest.mark.parametrize("surface", SURFACES)
def test_the_generators_reach_every_construct_that_is_exact_somewhere(answers, retold, surface):
    seen: set[str] = set()

    @settings(max_examples=60, derandomize=True, database=None)
    @given(answer=answers(surface))
    def collect(answer):
        seen.update(words(json.loads(retold(answer, surface, surface)[1])))

    collect()
    missed = {construct for construct in exact(surface) if not seen.issuperset(construct.partition(":")[2].split("."))}
    assert missed == set(SPELLINGS[surface])
