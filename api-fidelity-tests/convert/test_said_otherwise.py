"""What a conversion says another way is named in its plan, whether the source's table knows it or only lowering can."""

from __future__ import annotations

import json

import pytest

from asgi_surface import plan
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface

HI = {"role": "user", "content": "hi"}
REFUSAL = {"role": "assistant", "content": None, "refusal": "no"}
DEVELOPER = {"role": "developer", "content": "be brief"}

TOOL = {"type": "function", "name": "f"}
NAMESPACE = {"type": "namespace", "name": "n", "description": "all of n", "tools": [TOOL]}


@pytest.fixture
def planned(catalog):
    """Plans a body for a binding of another surface."""

    def once(surface, upstream, **members):
        return plan(Surface(surface), json.dumps({"model": "m", **members}).encode(), catalog(upstream))

    return once


@pytest.mark.parametrize("upstream", [MESSAGES, GEMINI])
def test_what_the_table_calls_emulated_is_named(planned, upstream):
    assert planned(CHAT, upstream, messages=[DEVELOPER, HI, REFUSAL, HI]).emulated == ("/messages/0", "/messages/2/refusal")
    functions = planned(CHAT, upstream, messages=[HI], functions=[{"name": "f"}], function_call="auto")
    assert functions.emulated == ("/functions", "/function_call")


def test_it_is_named_once_where_lowering_says_so_too(planned):
    assert planned(RESPONSES, CHAT, input="hi", tools=[NAMESPACE]).emulated == ("/tools/0", "/tools/0/tools/0")


def test_nothing_is_named_within_what_is_not_said_at_all(planned):
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "x"}]}
    found = planned(MESSAGES, RESPONSES, max_tokens=9, messages=[HI, thought, HI])
    assert (found.dropped, found.emulated) == (("/messages/1/content/0",), ())


@pytest.mark.parametrize("upstream", [CHAT, MESSAGES, GEMINI])
def test_what_a_namespace_says_of_itself_is_named_where_it_has_no_place(planned, upstream):
    assert planned(RESPONSES, upstream, input="hi", tools=[NAMESPACE]).dropped == ("/tools/0/description",)


CHOICES = {
    CHAT: lambda sent: [sent["tool_choice"]["function"]["name"]],
    MESSAGES: lambda sent: [sent["tool_choice"]["name"]],
    GEMINI: lambda sent: sent["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"],
}
CALL = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": ""}]


@pytest.mark.parametrize("surface", CHOICES)
@pytest.mark.parametrize(
    ("tools", "history", "said"),
    [([NAMESPACE, TOOL], [], "f"), ([TOOL, NAMESPACE], [], "f"), ([NAMESPACE], [], "n__f"), ([NAMESPACE], CALL, "n__f")],
    ids=["behind", "before", "alone", "called before"],
)
def test_a_choice_means_the_tool_that_has_no_other_name(gateway, upstream, ask, surface, tools, history, said):
    app = upstream()
    choice = {"type": "function", "name": "f"}
    ask(gateway(app, surface), "/v1/responses", {"model": "m", "input": [HI, *history], "tools": tools, "tool_choice": choice})
    assert CHOICES[surface](app.calls[0].json) == [said]


def test_of_two_tools_of_one_name_only_the_allowed_one_is_offered(gateway, upstream, ask):
    app = upstream()
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    ask(gateway(app, MESSAGES), "/v1/responses", {"model": "m", "input": "hi", "tools": [NAMESPACE, TOOL], "tool_choice": choice})
    assert [tool["name"] for tool in app.calls[0].json["tools"]] == ["f"]
