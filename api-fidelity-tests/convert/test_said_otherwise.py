"""What a conversion says another way is named in its plan, whether the source's table knows it or only lowering can."""

from __future__ import annotations

import json

import pytest

from asgi_surface import plan
from asgi_surface.errors import Code, RequestError
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


FUNCTION = {"type": "function", "function": {"name": "f"}}
OPEN, CLOSED = ({"type": "json_schema", "schema": {"type": "object", "additionalProperties": way}} for way in (True, False))
DECLARED = {"name": "f", "parameters": {"type": "OBJECT"}, "parametersJsonSchema": {"type": "object"}}
TWICE = [
    (CHAT, {"messages": [HI], "tools": [FUNCTION], "tool_choice": "auto", "function_call": "none"}, "/function_call"),
    (MESSAGES, {"messages": [HI], "max_tokens": 9, "output_format": OPEN, "output_config": {"format": CLOSED}}, "/output_format"),
    (GEMINI, {"tools": [{"functionDeclarations": [DECLARED]}]}, "/tools/0/functionDeclarations/0/parameters"),
    (GEMINI, {"generationConfig": {"responseSchema": {}, "responseJsonSchema": {}}}, "/generationConfig/responseSchema"),
]


@pytest.fixture
def refusal(catalog):
    """The refusal of a body, for a binding of another surface."""

    def once(surface, upstream, body):
        path = {"model": "m", "stream": False} if surface == GEMINI else {}
        told = {"contents": [{"parts": [{"text": "hi"}]}]} if surface == GEMINI else {"model": "m"}
        with pytest.raises(RequestError) as caught:
            plan(Surface(surface), json.dumps(told | body).encode(), catalog(upstream), **path)
        return caught.value

    return once


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize(("surface", "body", "pointer"), TWICE, ids=[row[2] for row in TWICE])
def test_of_two_members_that_disagree_none_is_lost(refusal, surface, upstream, body, pointer):
    if surface != upstream:
        error = refusal(surface, upstream, body)
        assert (error.code, error.pointer) == (Code.UNREPRESENTABLE, pointer)


def test_members_that_say_the_same_are_no_harm(planned):
    choice = {"tool_choice": {"type": "function", "function": {"name": "f"}}, "function_call": {"name": "f"}}
    assert planned(CHAT, MESSAGES, messages=[HI], tools=[FUNCTION], **choice).dropped == ()
    assert planned(MESSAGES, CHAT, messages=[HI], max_tokens=9, output_format=CLOSED, output_config={"format": CLOSED}).dropped == ()
    assert planned(CHAT, MESSAGES, messages=[HI], max_tokens=9, max_completion_tokens=9).dropped == ()


def test_the_older_limit_that_is_overruled_is_named(planned):
    assert planned(CHAT, MESSAGES, messages=[HI], max_tokens=500, max_completion_tokens=8).dropped == ("/max_tokens",)


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
def test_a_tier_that_google_does_not_have_is_not_passed_on(refusal, upstream):
    assert refusal(GEMINI, upstream, {"serviceTier": "SERVICE_TIER_PRIORITY"}).pointer == "/serviceTier"


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize(
    ("surface", "body", "pointer"),
    [
        (RESPONSES, {"input": [HI, {"role": "user", "content": []}]}, "/input/1"),
        (MESSAGES, {"max_tokens": 9, "messages": [HI, {"role": "user", "content": []}]}, "/messages/1"),
        (GEMINI, {"contents": [{"parts": [{"text": "hi"}]}, {"role": "user", "parts": []}]}, "/contents/1"),
    ],
    ids=[RESPONSES, MESSAGES, GEMINI],
)
def test_a_user_turn_without_content_does_not_vanish(refusal, surface, upstream, body, pointer):
    if surface != upstream:
        assert refusal(surface, upstream, body).pointer == pointer


def test_a_user_turn_that_holds_only_what_is_tolerated_goes_with_it(catalog):
    body = {"contents": [{"parts": [{"text": "hi"}]}, {"parts": [{"executableCode": {"code": "1"}}]}]}
    found = plan(Surface(GEMINI), json.dumps(body).encode(), catalog(CHAT, binding='tolerate = ["part:executableCode"]'), model="m", stream=False)
    assert found.dropped == ("/contents/1/parts/0",)


NULL, BLANK = ({"role": "assistant", "content": said} for said in (None, ""))


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize(
    ("surface", "members", "pointer"),
    [
        (CHAT, {"messages": [HI, NULL, HI]}, "/messages/1"),
        (RESPONSES, {"input": [HI, {"role": "assistant", "content": []}, HI]}, "/input/1"),
        (MESSAGES, {"max_tokens": 9, "messages": [HI, {"role": "assistant", "content": []}, HI]}, "/messages/1"),
    ],
    ids=[CHAT, RESPONSES, MESSAGES],
)
def test_a_models_turn_without_content_does_not_vanish_unreported(planned, surface, upstream, members, pointer):
    if surface != upstream:
        assert planned(surface, upstream, **members).dropped == (pointer,)


@pytest.mark.parametrize("upstream", [CHAT, MESSAGES, GEMINI])
def test_what_a_turn_lost_is_named_once(planned, upstream):
    assert planned(RESPONSES, upstream, input=[HI, {"type": "reasoning", "id": "r", "summary": []}, HI]).dropped == ("/input/1",)


@pytest.mark.parametrize(("upstream", "dropped"), [(RESPONSES, ()), (MESSAGES, ("/messages/1/content",)), (GEMINI, ())])
def test_empty_words_are_kept_where_they_can_be_said(planned, upstream, dropped):
    assert planned(CHAT, upstream, messages=[HI, BLANK, HI]).dropped == dropped


def test_an_empty_text_beside_calls_is_nothing_lost(planned):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [HI, BLANK | {"tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": ""}]
    assert planned(CHAT, MESSAGES, messages=history).dropped == ()


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES])
def test_a_geminis_turn_without_parts_is_named_and_the_end_of_a_stream_is_not(catalog, upstream):
    said = [{"role": role, "parts": parts} for role, parts in (("user", [{"text": "q"}]), ("model", []), ("model", [{"text": ""}]))]
    body = json.dumps({"contents": [*said, said[0]]}).encode()
    assert plan(Surface(GEMINI), body, catalog(upstream), model="m", stream=False).dropped == ("/contents/1",)
