"""Chat Completions answers, read from the many servers that speak them and written for clients that parse them with the official SDK."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from openai import OpenAI
from openai.types.chat import ChatCompletion

from asgi_surface import seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.chat.read import read
from asgi_surface.codecs.chat.verdicts import ROWS
from asgi_surface.codecs.chat.write import unsaid, write
from asgi_surface.ir import (
    Alternative,
    Call,
    Citation,
    Form,
    Part,
    Reasoning,
    Refusal,
    Request,
    Response,
    Seal,
    SealKind,
    Search,
    Stop,
    Text,
    Tool,
    Usage,
)
from asgi_surface.surfaces import GEMINI, MESSAGES
from asgi_surface.verdicts import Verdict

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
F = Call("c1", "f", '{"a": 1.0}')


def answered(message: Any, finish: Any = "stop", **answer: Any) -> Response:
    body = {"id": "u1", "model": "up", "created": 7, "choices": [{"index": 0, "message": message, "finish_reason": finish}]} | answer
    return read(msgspec.json.encode(body))


MESSAGES_READ: list[tuple[dict[str, Any], tuple[Part, ...]]] = [
    ({"content": "x"}, (Text("x"),)),
    ({"content": None, "tool_calls": [CALL]}, (F,)),
    ({"content": "", "tool_calls": [CALL | {"type": None}]}, (F,)),
    ({"content": "A", "reasoning_content": "R", "reasoning": "other"}, (Reasoning("R"), Text("A"))),
    ({"content": "A", "reasoning": "R"}, (Reasoning("R"), Text("A"))),
    ({"reasoning_content": "R", "reasoning_details": [{"text": "D"}, {"summary": "E"}, {"id": 1}]}, (Reasoning("DE"),)),
    ({"content": None, "refusal": "no"}, (Refusal("no"),)),
    (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "R"}]},
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
            ]
        },
        (Reasoning("R"), Text("ab")),
    ),
    (
        {"content": "xy", "annotations": [{"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}]},
        (Text("xy", citations=(Citation("u", "t", 0, 1),)),),
    ),
    ({"function_call": {"name": "f", "arguments": "{}"}}, (Call("call_0", "f", "{}", minted=True),)),
    ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.0}}}]}, (Call("call_0", "f", '{"a":1.0}', minted=True),)),
    ({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}}]}, (Call("c", "f", "{}"),)),
    ({"tool_calls": [{"id": "c", "function": {"name": "f"}}]}, (Call("c", "f", "{}"),)),
    ({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"a": "x""}'}}]}, (Call("c", "f", '{"a": "x""}'),)),
    ({"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p", "input": "free"}}]}, (Call("c", "p", "free", Form.CUSTOM),)),
    (
        {"tool_calls": [CALL | {"extra_content": {"google": {"thought_signature": "sig"}}}]},
        (Call("c1", "f", '{"a": 1.0}', seal=Seal("sig", SealKind.THOUGHT, GEMINI)),),
    ),
]


@pytest.mark.parametrize(("message", "parts"), MESSAGES_READ)
def test_a_message_s_parts(message: dict[str, Any], parts: tuple[Part, ...]) -> None:
    response = answered(message)
    assert response.parts == parts
    assert (response.id, response.model, response.created, response.unread) == ("u1", "up", 7, ())


UNREAD = [
    ({"content": [{"type": "hologram"}]}, {}, ["answer:part"]),
    ({"content": "x", "annotations": [{"type": "file_citation"}]}, {}, ["answer:annotations.other"]),
    ({"content": "", "annotations": [{"url_citation": {"url": "u"}}]}, {}, ["answer:annotations.other"]),
    (
        {"content": "x", "audio": {"id": "a"}},
        {"system_fingerprint": "fp", "moderation": {"input": {}}},
        ["answer:system_fingerprint", "answer:moderation", "answer:audio"],
    ),
    (
        {"content": "x"},
        {
            "usage": {
                "prompt_tokens_details": {"image_tokens": 5, "text_tokens": 6, "audio_tokens": 7, "cached_tokens": 8},
                "completion_tokens_details": {"accepted_prediction_tokens": 1, "rejected_prediction_tokens": 2, "text_tokens": 3},
            }
        },
        [
            *(f"usage:prompt_tokens_details.{name}_tokens" for name in ("image", "text")),
            *(f"usage:completion_tokens_details.{name}_tokens" for name in ("accepted_prediction", "rejected_prediction", "text")),
        ],
    ),
    ({"content": "x"}, {"usage": {"prompt_tokens_details": {"image_tokens": 0, "text_tokens": None}, "completion_tokens_details": []}}, []),
    ({"content": "x"}, {"usage": 7, "system_fingerprint": "", "moderation": None}, []),
]


@pytest.mark.parametrize(("message", "answer", "unread"), UNREAD)
def test_what_has_no_place_is_named(message: dict[str, Any], answer: dict[str, Any], unread: list[str]) -> None:
    assert answered(message, **answer).unread == tuple(unread)
    # All of these are lost wherever they go, so they are counted.
    assert {verdict for name in unread for verdict in ROWS[name].verdicts.values()} <= {Verdict.ADVISORY}


def test_entries_of_a_refusal_are_named() -> None:
    entries = [{"token": "N", "logprob": -0.1}]
    choice = {"index": 0, "message": {"refusal": "No"}, "finish_reason": "stop", "logprobs": {"content": None, "refusal": entries}}
    response = answered({}, choices=[choice])
    assert (response.logprobs, response.unread) == (None, ("answer:logprobs.refusal",))


@pytest.mark.parametrize(
    ("finish", "message", "stop"),
    [
        ("stop", {"content": "x"}, Stop.END),
        ("stop", {"tool_calls": [CALL]}, Stop.TOOLS),
        ("tool_calls", {"tool_calls": [CALL]}, Stop.TOOLS),
        ("length", {"tool_calls": [CALL]}, Stop.LENGTH),
        ("content_filter", {"content": "par"}, Stop.FILTER),
        ("eos_of_some_sort", {"content": "x"}, Stop.OTHER),
        ("error", {"content": "x"}, Stop.ERROR),
    ],
)
def test_why_it_stopped(finish: str, message: dict[str, Any], stop: Stop) -> None:
    assert answered(message, finish).stop is stop


def test_choices_stand_by_index() -> None:
    entries = [{"token": "x", "logprob": -0.1}]
    second = {"index": 1, "message": {"content": "second"}, "finish_reason": "length", "logprobs": {"content": entries}}
    first = {"index": 0, "message": {"content": "first"}, "finish_reason": "stop"}
    third = {"index": 2, "finish_reason": "content_filter"}
    response = answered({}, choices=[second, third, first])
    told = [(one.parts, one.stop, one.logprobs is None) for one in response.answers]
    assert told == [((Text("first"),), Stop.END, True), ((Text("second"),), Stop.LENGTH, False), ((), Stop.FILTER, True)]
    assert answered({}, choices=[second]).answers == (answered({}, choices=[second]),)
    unsaid_index = [choice | {"index": None} for choice in (first, second)]
    assert [one.parts for one in answered({}, choices=unsaid_index).answers] == [(Text("first"),), (Text("second"),)]


def test_azure_filters_without_a_message() -> None:
    response = answered({}, choices=[{"index": 0, "finish_reason": "content_filter", "content_filter_results": {}}])
    assert (response.parts, response.stop) == ((), Stop.FILTER)


def test_usage_tier_and_logprobs() -> None:
    entries = [{"token": "x", "logprob": -0.1, "bytes": [120], "top_logprobs": []}]
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 75, "cache_write_tokens": 5, "audio_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 0},
    }
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop", "logprobs": {"content": entries, "refusal": None}}
    response = answered({}, choices=[choice], usage=usage, service_tier="flex")
    assert (response.usage, response.service_tier) == (Usage(100, 30, 75, 5, 20, 40, 0), "flex")
    assert msgspec.json.decode(response.logprobs or b"") == entries


@pytest.mark.parametrize("logprobs", [None, {"content": None}, {"content": []}])
def test_what_was_not_said_stays_absent(logprobs: Any) -> None:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop", "logprobs": logprobs}
    response = answered({}, choices=[choice], id=None, model=3, created="now", usage={})
    facts = (response.id, response.model, response.created, response.usage, response.logprobs, response.service_tier)
    assert facts == (None,) * 6


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "x"}, "finish_reason": None}]},
        {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}, {"index": 1, "message": {"content": "y"}}]},
        {"choices": [{"message": {"content": "x"}, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"content": "x", "tool_calls": []}, "finish_reason": "function_call"}]},
        {"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": [{"type": "text", "text": 7}]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"refusal": {}}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c", "type": "teleport"}]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c", "custom": {"name": "p"}}]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"tool_calls": "f()"}, "finish_reason": "stop"}]},
    ],
)
def test_an_answer_whose_text_calls_or_finish_cannot_be_read_is_none(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(msgspec.json.encode(body))


def context(*tools: Tool, **aliases: Alias) -> Context:
    return Context(request=Request(turns=(), tools=tools), aliases=aliases, seal_domain="google", upstream=GEMINI, model="m", request_id="r1", now=99)


def written(*parts: Part, to: Context | None = None, **response: Any) -> dict[str, Any]:
    """The answer's JSON, which the official SDK takes as well."""
    facts: dict[str, Any] = {"id": "u1", "model": "up", "created": 7, "parts": parts} | response
    body = write(Response(**facts), to or context())
    answer: dict[str, Any] = msgspec.json.decode(body)
    if answer["choices"][0]["finish_reason"] in {"stop", "length", "tool_calls", "content_filter", "function_call"}:
        ChatCompletion.model_validate(answer)
    return answer


def message(*parts: Part, to: Context | None = None) -> dict[str, Any]:
    said: dict[str, Any] = written(*parts, to=to)["choices"][0]["message"]
    return said


def test_a_whole_answer() -> None:
    logprobs = Raw(b'[{"token":"x","logprob":-0.10,"bytes":null,"top_logprobs":[]}]')
    assert written(Text("x"), usage=Usage(100, 30, 75, 5, 20, 40, 4), service_tier="flex", logprobs=logprobs) == {
        "id": "u1",
        "object": "chat.completion",
        "created": 7,
        "model": "up",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "x", "refusal": None},
                "logprobs": {"content": msgspec.json.decode(logprobs), "refusal": None},
                "finish_reason": "stop",
            }
        ],
        "service_tier": "flex",
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 30,
            "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 75, "cache_write_tokens": 5, "audio_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 4},
        },
    }


def test_every_answer_is_a_choice() -> None:
    logprobs = Raw(b'[{"token":"y","logprob":-0.10,"bytes":null,"top_logprobs":[]}]')
    more = (
        Alternative(parts=(Text("y", citations=(Citation("https://b", "B", 0, 1),)),), stop=Stop.LENGTH, logprobs=logprobs),
        Alternative(parts=(F,), stop=Stop.TOOLS),
        Alternative(stop=Stop.FILTER),
    )
    choices = written(Text("long before"), more=more)["choices"]
    assert [(one["index"], one["message"]["content"], one["finish_reason"]) for one in choices] == [
        (0, "long before", "stop"),
        (1, "y", "length"),
        (2, None, "tool_calls"),
        (3, None, "content_filter"),
    ]
    # Offsets count within their own answer.
    assert choices[1]["message"]["annotations"][0]["url_citation"] == {"start_index": 0, "end_index": 1, "url": "https://b", "title": "B"}
    assert [one["logprobs"] is None for one in choices] == [True, False, True, True]
    assert choices[2]["message"]["tool_calls"] == [CALL]


def test_a_search_is_not_said() -> None:
    found = Search("s1", "what", (Citation("https://a"),))
    assert message(found, Text("x")) == {"role": "assistant", "content": "x", "refusal": None}


def test_what_the_upstream_did_not_give() -> None:
    answer = written(id=None, model=None, created=None)
    assert (answer["id"], answer["created"], answer["model"]) == ("asf_r1", 99, "m")
    assert answer["choices"][0]["message"]["content"] is None
    assert not answer.keys() & {"usage", "service_tier"}


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(), None),
        (Usage(cached=3), None),
        (Usage(input=5), {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}),
        (Usage(output=5), {"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 5}),
    ],
)
def test_usage_is_counted_not_invented(usage: Usage, said: dict[str, int] | None) -> None:
    assert written(Text("x"), usage=usage).get("usage") == said


FINISHES = [
    (Stop.END, (), "stop"),
    (Stop.STOP_SEQUENCE, (), "stop"),
    (Stop.END, (F,), "tool_calls"),
    (Stop.TOOLS, (F,), "tool_calls"),
    # Calls that are not there are no calls, and their end is not the end of an answer.
    (Stop.TOOLS, (), "other"),
    (Stop.LENGTH, (F,), "length"),
    (Stop.FILTER, (F,), "content_filter"),
    (Stop.REFUSAL, (), "content_filter"),
    (Stop.PAUSE, (), "pause"),
    (Stop.OTHER, (), "other"),
    (Stop.ERROR, (), "error"),
]


@pytest.mark.parametrize(("stop", "parts", "finish"), FINISHES)
def test_finish_reasons(stop: Stop, parts: tuple[Part, ...], finish: str) -> None:
    assert written(*parts, stop=stop)["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize("stop", [Stop.PAUSE, Stop.OTHER])
def test_the_sdk_passes_a_finish_of_no_official_word(stop: Stop) -> None:
    body = write(Response(id="u1", model="up", created=7, parts=(Text("x"),), stop=stop), context())
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body, headers={"content-type": "application/json"}))
    with OpenAI(api_key="k", base_url="http://gateway/v1", http_client=httpx.Client(transport=transport)) as client:
        (choice,) = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}]).choices
    assert (choice.finish_reason, choice.message.content) == (stop.name.lower(), "x")


def test_parts_are_joined_and_citations_shifted() -> None:
    said = message(
        Reasoning("R1", Seal("t", SealKind.SIGNATURE, MESSAGES)),
        Reasoning(""),
        Reasoning("R2"),
        Text("One. ", citations=(Citation("https://a"),)),
        Text("Two.", citations=(Citation("https://b", "B", 0, 3),)),
    )
    assert (said["content"], said["reasoning_content"]) == ("One. Two.", "R1\n\nR2")
    assert [annotation["url_citation"] for annotation in said["annotations"]] == [
        {"start_index": 0, "end_index": 5, "url": "https://a", "title": ""},
        {"start_index": 5, "end_index": 8, "url": "https://b", "title": "B"},
    ]


@pytest.mark.parametrize(("finish", "stop"), [("stop", Stop.END), ("content_filter", Stop.FILTER)])
def test_words_of_refusal_leave_the_finish_as_it_was(finish: str, stop: Stop) -> None:
    body = {"choices": [{"index": 0, "message": {"content": None, "refusal": "no"}, "finish_reason": finish}]}
    found = read(msgspec.json.encode(body))
    assert (found.parts, found.stop) == ((Refusal("no"),), stop)


GOOGLE = Call("c", "f", "{}", seal=Seal("t", SealKind.THOUGHT, GEMINI))
ELSEWHERE = Seal("t", SealKind.SIGNATURE, MESSAGES)
LEFT_OUT: list[tuple[dict[str, Any], set[str]]] = [
    ({"parts": (Reasoning("r", ELSEWHERE),)}, {"answer:seals"}),
    ({"parts": (Call("c", "f", "{}", seal=ELSEWHERE),)}, {"answer:seals"}),
    ({"parts": (GOOGLE, Reasoning("", ELSEWHERE))}, {"answer:seals"}),
    ({"parts": (GOOGLE, Reasoning("r"))}, set()),
    ({"more": (Alternative(parts=(Reasoning("r", ELSEWHERE),)),)}, {"answer:seals"}),
    ({"stop": Stop.STOP_SEQUENCE, "stop_sequence": "END"}, {"answer:stop_sequence"}),
    ({"usage": Usage(1, 1, cache_write=5, audio_input=1)}, set()),
    # Without the numbers that the surface demands there is no usage at all.
    ({"usage": Usage(cache_write=5, audio_input=1)}, {"usage:cache_write", "usage:audio"}),
    (
        {
            "parts": (Text("x", citations=(Citation("u"),)), Call("c", "f", '{"a')),
            "stop": Stop.LENGTH,
            "logprobs": Raw(b"[1]"),
            "service_tier": "flex",
            "more": (Alternative(),),
        },
        set(),
    ),
]


@pytest.mark.parametrize(("facts", "left"), LEFT_OUT)
def test_what_is_left_out_is_named(facts: dict[str, Any], left: set[str]) -> None:
    assert unsaid(Response(id=None, model=None, **facts), context()) == left


def test_the_deprecated_form_has_no_slot_for_a_proof() -> None:
    old = context(Tool("f", at="/functions/0"))
    assert unsaid(Response(id=None, model=None, parts=(GOOGLE,)), old) == {"answer:seals"}
    assert unsaid(Response(id=None, model=None, parts=(GOOGLE, GOOGLE)), old) == set()


def test_a_refusal_has_its_own_member() -> None:
    assert message(Refusal("no")) == {"role": "assistant", "content": None, "refusal": "no"}


CALLS = [
    (F, {}, CALL),
    (
        Call("c", "fs__read", "{}"),
        {"fs__read": Alias("read", namespace="fs")},
        {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}},
    ),
    (Call("c", "p", '{"input":"a\\nb"}'), {"p": Alias("p", Form.CUSTOM)}, {"id": "c", "type": "custom", "custom": {"name": "p", "input": "a\nb"}}),
    (Call("c", "p", '{"patch":1}'), {"p": Alias("p", Form.CUSTOM)}, {"id": "c", "type": "custom", "custom": {"name": "p", "input": '{"patch":1}'}}),
    (Call("c", "p", '{"input":1}', Form.CUSTOM), {}, {"id": "c", "type": "custom", "custom": {"name": "p", "input": '{"input":1}'}}),
]


@pytest.mark.parametrize(("call", "aliases", "said"), CALLS)
def test_calls_have_the_client_s_names_and_forms(call: Call, aliases: dict[str, Alias], said: dict[str, Any]) -> None:
    assert message(call, to=context(**aliases))["tool_calls"] == [said]


def test_only_google_s_signature_of_a_call_has_a_slot() -> None:
    seal = Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI)
    first, second = message(Call("a", "f", "{}", seal=seal), Call("b", "f", "{}", seal=Seal("t", SealKind.ENCRYPTED, MESSAGES)))["tool_calls"]
    opened = seals.unwrap(first["extra_content"]["google"]["thought_signature"])
    assert opened == Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI, "google")
    assert "extra_content" not in second


def test_who_asked_with_functions_is_answered_so() -> None:
    old = context(Tool("f", at="/functions/0"))
    answer = written(F, to=old, stop=Stop.TOOLS)["choices"][0]
    assert answer["message"]["function_call"] == CALL["function"]
    assert answer["finish_reason"] == "function_call"
    assert "tool_calls" not in answer["message"]
    # That form has one call; more are not lost.
    assert len(message(F, F, to=old)["tool_calls"]) == 2


# The law: an answer whose every construct is exact here is the same after writing and reading it.

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
CITATIONS = st.builds(Citation, WORDS, WORDS, st.integers(0, 9), st.integers(0, 9))
COUNTS = st.integers(0, 99)
LOGPROBS = st.none() | st.just(Raw(b'[{"token": "x", "logprob": -0.10}]'))
ANSWERS = st.builds(
    lambda reasoning, text, refusal, calls, stop, logprobs: Alternative(
        parts=(*reasoning, *text, *refusal, *calls), stop=Stop.TOOLS if calls and stop is Stop.END else stop, logprobs=logprobs
    ),
    st.lists(st.builds(Reasoning, WORDS), max_size=1),
    st.lists(st.builds(Text, WORDS, citations=st.lists(CITATIONS, max_size=2).map(tuple)), max_size=1),
    st.lists(st.builds(Refusal, WORDS), max_size=1),
    st.lists(st.builds(Call, WORDS, WORDS, st.just('{"a": 1.0}')) | st.builds(Call, WORDS, WORDS, WORDS, st.just(Form.CUSTOM)), max_size=2),
    st.sampled_from([Stop.END, Stop.LENGTH, Stop.FILTER]),
    LOGPROBS,
)
RESPONSES = st.builds(
    lambda first, **facts: Response(parts=first.parts, stop=first.stop, logprobs=first.logprobs, **facts),
    ANSWERS,
    more=st.lists(ANSWERS, max_size=2).map(tuple),
    id=WORDS,
    model=WORDS,
    created=COUNTS,
    usage=st.none() | st.builds(Usage, COUNTS, COUNTS, *[st.none() | COUNTS] * 5),
    service_tier=st.none() | WORDS,
)


@settings(max_examples=60, deadline=None)
@given(RESPONSES)
def test_reading_what_was_written_gives_the_answer(response: Response) -> None:
    assert read(write(response, context())) == response
