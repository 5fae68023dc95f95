"""Lowering and lifting undo each other on every surface, for everything that any other surface can say exactly."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface.codecs import CODECS
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.verdicts import Verdict

SURFACES = (CHAT, RESPONSES, MESSAGES, GEMINI)


@pytest.mark.parametrize("surface", SURFACES)
@settings(max_examples=80)
@given(data=st.data())
def test_lifting_what_was_lowered_gives_the_request(requests, over, meaning, surface, data):
    request = data.draw(requests(surface))
    assert meaning(over(request, surface).request, surface) == meaning(request, surface)


USER = {"role": "user", "content": "hi"}
CALLED = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
GAVE = [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
OWN_SCHEMA = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_CALL = [USER, {"role": "assistant", "tool_calls": [CALL]}]
RESULT = {"role": "tool", "tool_call_id": "c", "content": "x"}
SAID = {"type": "message", "role": "assistant"}

# The constructs that lowering never chooses: each with a body that spells it, and one that means the same.
SPELLINGS = {
    CHAT: {"role:tool.name": ({"messages": [*CHAT_CALL, RESULT | {"name": "f"}]}, {"messages": [*CHAT_CALL, RESULT]})},
    RESPONSES: {
        "part:output_text": ({"input": [SAID | {"content": [{"type": "output_text", "text": "a"}]}]}, {"input": [SAID | {"content": "a"}]}),
        "part:text": ({"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, {"input": [{"role": "user", "content": "a"}]}),
        "field:text.format.text": ({"text": {"format": {"type": "text"}}}, {}),
        "tool:custom.format.text": (
            {"tools": [{"type": "custom", "name": "p", "format": {"type": "text"}}]},
            {"tools": [{"type": "custom", "name": "p"}]},
        ),
    },
    MESSAGES: {
        "field:output_format": (
            {"output_format": {"type": "json_schema", "schema": SCHEMA}},
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ),
    },
    GEMINI: {
        "role:function": (
            {"contents": [CALLED, {"role": "function", "parts": GAVE}]},
            {"contents": [CALLED, {"role": "user", "parts": GAVE}]},
        ),
        "field:generationConfig.responseSchema": (
            {"generationConfig": {"responseSchema": OWN_SCHEMA}},
            {"generationConfig": {"responseJsonSchema": SCHEMA}},
        ),
        "tool:functionDeclarations.parameters": (
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": OWN_SCHEMA}]}]},
            {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}]},
        ),
    },
}


@pytest.mark.parametrize(("surface", "construct"), [(surface, construct) for surface, found in SPELLINGS.items() for construct in found])
def test_another_spelling_means_the_same(meaning, surface, construct):
    lifted, plain = (CODECS[surface].lift(parse(msgspec.json.encode(body)), False) for body in SPELLINGS[surface][construct])
    assert construct in {mention.construct for mention in lifted.mentions}
    assert meaning(lifted.request, surface) == meaning(plain.request, surface)


ANSWERED = ("answer:", "stop:", "usage:")


def exact(surface):
    """The constructs of a surface's requests that some other surface says exactly."""
    rows = CODECS[surface].rows.values()
    return {row.construct for row in rows if Verdict.EXACT in row.verdicts.values() and not row.construct.startswith(ANSWERED)}


def members(value, at="field:"):
    """The dotted names of the members of an object, all the way down."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield at + name
            yield from members(inner, f"{at}{name}.")


@pytest.mark.parametrize("surface", SURFACES)
def test_the_generators_reach_every_construct_that_is_exact_somewhere(requests, target, surface):
    codec = CODECS[surface]
    seen: set[str] = set()

    @settings(max_examples=300, derandomize=True, database=None)
    @given(request=requests(surface), role=st.sampled_from(["system", "developer"]), limit=st.sampled_from(["max_tokens", "max_completion_tokens"]))
    def collect(request, role, limit):
        lowered = codec.lower(request, target(surface, instruction_role=role, max_tokens_field=limit))
        seen.update(mention.construct for mention in codec.lift(lowered.members, request.stream).mentions)
        seen.update(members(json.loads(encode(lowered.members))))

    collect()
    assert exact(surface) - seen == set(SPELLINGS[surface])
