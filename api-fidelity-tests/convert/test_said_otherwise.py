"""What a conversion says another way is named in its plan, whether the source's table knows it or only lowering can."""

from __future__ import annotations

import json

import pytest

from asgi_surface import plan
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface

HI = {"role": "user", "content": "hi"}
REFUSAL = {"role": "assistant", "content": None, "refusal": "no"}
DEVELOPER = {"role": "developer", "content": "be brief"}


@pytest.fixture
def planned(catalog):
    """Plans a body for a binding of another surface."""

    def once(surface, upstream, binding="", **members):
        return plan(Surface(surface), json.dumps({"model": "m", **members}).encode(), catalog(upstream, binding=binding))

    return once


@pytest.mark.parametrize("upstream", [MESSAGES, GEMINI])
def test_what_the_table_calls_emulated_is_named(planned, upstream):
    assert planned(CHAT, upstream, messages=[DEVELOPER, HI, REFUSAL, HI]).emulated == ("/messages/0", "/messages/2/refusal")
    functions = planned(CHAT, upstream, messages=[HI], functions=[{"name": "f"}], function_call="auto")
    assert functions.emulated == ("/functions", "/function_call")


def test_it_is_named_once_where_lowering_says_so_too(planned):
    namespace = {"type": "namespace", "name": "n", "description": "", "tools": [{"type": "function", "name": "f"}]}
    assert planned(RESPONSES, CHAT, input="hi", store=False, tools=[namespace]).emulated == ("/tools/0", "/tools/0/tools/0")


def test_nothing_is_named_within_what_is_not_said_at_all(planned):
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "x"}]}
    found = planned(MESSAGES, RESPONSES, max_tokens=9, messages=[HI, thought, HI])
    assert (found.dropped, found.emulated) == (("/messages/1/content/0",), ())
