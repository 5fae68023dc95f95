"""A streamed answer as a Responses client gets it: the official grammar, the official SDK's stream helper, and the unstreamed answer agree."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from openai import omit
from openai._models import construct_type_unchecked
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.responses.encode import encoder
from asgi_surface.codecs.responses.logprobs import listed
from asgi_surface.codecs.responses.write import write
from asgi_surface.errors import Code, GatewayError, UpstreamDetail, UpstreamError
from asgi_surface.events import Cited, Closed, Ending, Found, Grew, Logged, Opened, Sealed, Start
from asgi_surface.framing import Framing
from asgi_surface.framing import write as sse
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Response, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.surfaces import GEMINI, MESSAGES, RESPONSES

OFFICIAL = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(get_args(ResponseStreamEvent)[0])}
ALIASES = {"flat": Alias("read", namespace="fs"), "wrapped": Alias("patch", Form.CUSTOM)}
SIGNED = Seal("sig==", SealKind.SIGNATURE, MESSAGES)
THOUGHT = Seal("dGhvdWdodA==", SealKind.THOUGHT, GEMINI)
LOGPROB = b'{"token":"x","logprob":-0.10,"bytes":[120],"top_logprobs":[]}'
BEYOND = [{"reason": "pause"}, {"reason": "other"}]
"""What no official word says: its own word, rather than a wrong one."""
USAGE = Usage(11, 7, 5, 0, 3)


def context(*, seals_wanted=True):
    asked = ir.Request(turns=(), tools=(ir.Tool("read", schema=Raw(b'{"type":"object"}'), strict=True),), wants_seals=seals_wanted)
    return Context(request=asked, aliases=ALIASES, seal_domain="up", upstream=MESSAGES, model="m", request_id="r_1", now=1_700_000_000)


def words(part):
    return part.arguments if isinstance(part, Call) else getattr(part, "text", "")


def blank(part):
    if isinstance(part, Search):
        return Search(part.id, part.query)
    if isinstance(part, Call):
        return Call(part.id, part.name, "", part.form, part.namespace, minted=part.minted)
    return type(part)("")


def events(parts, *, size=3, logprobs=None):
    """The events of parts, one after another. Log probabilities go before the first text's first words."""
    left = logprobs
    for index, part in enumerate(parts):
        yield Opened(index, blank(part))
        if isinstance(part, Call) and part.seal:
            yield Sealed(index, part.seal)
        if isinstance(part, Text) and part.text and left:
            yield Logged(index, left)
            left = None
        yield from (Grew(index, words(part)[place : place + size]) for place in range(0, len(words(part)), size))
        if isinstance(part, Text):
            yield from (Cited(index, citation) for citation in part.citations)
        if isinstance(part, Reasoning) and part.seal:
            yield Sealed(index, part.seal)
        if isinstance(part, Search):
            yield Found(index, part.sources, part.failed)
        yield Closed(index)


def streamed(grammar, told, ending, given_context=None, start=None):
    """Every event's data of a whole stream, each as the official type takes it, with its name and number."""
    writing = encoder(given_context or context())
    frames = writing.open(start or Start("resp_1", "up", 5, "flex"), None)
    for event in told:
        frames += writing.part(event)
    frames += writing.close(ending)
    return checked(grammar, frames)


def checked(grammar, frames):
    grammar(RESPONSES, b"".join(sse(Framing.SSE, name, data, first=False) for name, data in frames), sound=False)
    found = [json.loads(data) for _, data in frames]
    for one in found:
        if (one.get("response") or {}).get("incomplete_details") not in BEYOND:
            OFFICIAL[one["type"]].model_validate_json(json.dumps(one), strict=True)
    return found


def accumulated(found):
    """What the SDK's stream helper makes of it."""
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for one in found:
        state.handle_event(construct_type_unchecked(type_=OFFICIAL[one["type"]], value=one))
    return state._completed_response


def kinds(found):
    return [one["type"].removeprefix("response.") for one in found]


def whole(parts, ending, given_context=None, **more):
    answer = Response(id="resp_1", model="up", created=5, service_tier="flex", parts=parts, stop=ending.stop, usage=ending.usage, **more)
    return json.loads(write(answer, given_context or context()))


CITED = Text("One.", citations=(Citation("https://a.example", "A"), Citation("https://b.example", "B", 0, 3)))
PLAIN = Call("c1", "f", '{"a":"1"}')
FOUND = Search("s1", "q", (Citation("https://a.example", "A"), Citation("https://b.example")))
GRAMMAR = {
    "nothing": ([], []),
    "text": (
        [Text("Hello")],
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
        ],
    ),
    "text without words": ([Text("")], []),
    "refusal": (
        [Refusal("No.")],
        ["output_item.added", "content_part.added", "refusal.delta", "refusal.done", "content_part.done", "output_item.done"],
    ),
    "reasoning": (
        [Reasoning("Hm.", SIGNED)],
        [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
        ],
    ),
    "hidden reasoning": ([Reasoning("", SIGNED)], ["output_item.added", "output_item.done"]),
    "function": (
        [Call("c1", "f", "{}")],
        ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    ),
    "function without arguments": (
        [Call("c1", "f", "")],
        ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    ),
    "custom tool": (
        [Call("c1", "p", "abc", Form.CUSTOM)],
        ["output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"],
    ),
    "wrapped custom tool": (
        [Call("c1", "wrapped", '{"input":"NEW\\n"}')],
        ["output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"],
    ),
    "search": (
        [FOUND],
        [
            "output_item.added",
            "web_search_call.in_progress",
            "web_search_call.searching",
            "web_search_call.completed",
            "output_item.done",
        ],
    ),
    "search that failed": (
        [Search("s1", "q", failed=True)],
        ["output_item.added", "web_search_call.in_progress", "web_search_call.searching", "output_item.done"],
    ),
    "citations": (
        [CITED],
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.annotation.added",
            "output_text.annotation.added",
            "output_text.done",
            "content_part.done",
            "output_item.done",
        ],
    ),
}


@pytest.mark.parametrize(("parts", "expected"), GRAMMAR.values(), ids=GRAMMAR)
def test_the_grammar(grammar, parts, expected):
    found = streamed(grammar, events(parts), Ending(Stop.END, usage=USAGE))
    assert kinds(found) == ["created", "in_progress", *expected, "completed"]
    assert found[-1]["response"] == whole(tuple(parts), Ending(Stop.END, usage=USAGE))


def test_the_response_runs_first_with_what_is_known_and_what_the_request_said(grammar):
    created, running, ended = streamed(grammar, [], Ending(Stop.END))
    assert created["response"] == running["response"] == whole((), Ending(Stop.END)) | {"status": "in_progress"}
    assert (created["response"]["tools"][0]["name"], created["response"]["usage"], ended["response"]["usage"]) == ("read", None, None)


def test_what_the_upstream_did_not_say_is_the_gateway_s_in_every_event(grammar):
    found = streamed(grammar, [], Ending(Stop.END), start=Start())
    assert {(one["response"]["id"], one["response"]["model"], one["response"]["created_at"]) for one in found} == {
        ("asf_resp_r_1", "m", 1_700_000_000)
    }


def test_every_event_names_its_item_and_its_place(grammar):
    parts = [Reasoning("R"), Text("A"), Text("B"), PLAIN, Call("call_0", "flat", "{}", minted=True)]
    found = streamed(grammar, events(parts), Ending(Stop.TOOLS))
    items = {one["output_index"]: one["item"] for one in found if one["type"] == "response.output_item.done"}
    assert [items[index]["id"] for index in range(4)] == ["asf_rs_r_1_0", "asf_msg_r_1_1", "asf_fc_r_1_2", "asf_fc_r_1_3"]
    assert all(one["item_id"] == items[one["output_index"]]["id"] for one in found if "item_id" in one)
    assert [one["content_index"] for one in found if one["type"] == "response.output_text.delta"] == [0, 1]
    assert (items[3]["call_id"], items[3]["name"], items[3]["namespace"]) == ("asf_call_0_r_1", "read", "fs")
    announced = [one["item"] for one in found if one["type"] == "response.output_item.added"]
    assert [item.get("status") for item in announced] == [None, "in_progress", "in_progress", "in_progress"]
    assert [item.get("arguments", item.get("content", item.get("summary"))) for item in announced] == [[], [], "", ""]


def test_a_search_is_announced_with_its_query_and_done_with_its_sources(grammar):
    found = streamed(grammar, events([Text("a"), FOUND, Text("b")]), Ending(Stop.LENGTH))
    message, announced, searched, *_ = (one["item"] for one in found if one.get("item", {}).get("id") in {"asf_msg_r_1_0", "asf_ws_r_1_1"})
    assert (message["status"], announced["id"], announced["status"]) == ("in_progress", "asf_msg_r_1_0", "completed")
    assert (searched["status"], searched["action"]) == ("in_progress", {"type": "search", "query": "q"})
    assert [(item["type"], item["status"]) for item in found[-1]["response"]["output"]] == [
        ("message", "completed"),
        ("web_search_call", "completed"),
        ("message", "incomplete"),
    ]
    sources = [{"type": "url", "url": "https://a.example"}, {"type": "url", "url": "https://b.example"}]
    assert found[-1]["response"]["output"][1]["action"] == {"type": "search", "query": "q", "sources": sources}


def test_a_search_runs_until_it_has_found(grammar):
    writing = encoder(context())
    frames = writing.open(Start("resp_1", "up"), None) + writing.part(Opened(0, Search("s1", "q")))
    assert kinds(checked(grammar, frames + writing.fail(GatewayError(Code.INTERNAL, "RL"))))[-2:] == ["web_search_call.searching", "failed"]


def test_words_that_a_part_opens_with_are_said(grammar):
    told = [Opened(0, Text("Hi")), Closed(0), Opened(1, Call("c", "f", '{"a"')), Grew(1, ":1}"), Grew(1, ""), Closed(1)]
    found = streamed(grammar, told, Ending(Stop.TOOLS))
    assert [one["delta"] for one in found if "delta" in one] == ["Hi", '{"a":1}']
    assert found[-1]["response"]["output"][1]["arguments"] == '{"a":1}'


def test_what_a_kind_of_part_does_not_have_is_not_said(grammar):
    bare = [Opened(0, Refusal("")), Closed(0)]
    full = [bare[0], Cited(0, Citation("u")), Logged(0, Raw(b"[]")), Sealed(0, SIGNED), Found(0, ()), bare[1]]
    assert streamed(grammar, full, Ending(Stop.END)) == streamed(grammar, bare, Ending(Stop.END))
    bare = [Opened(0, Search("s1", "q")), Found(0, ()), Closed(0)]
    assert streamed(grammar, [bare[0], Grew(0, "x"), *bare[1:]], Ending(Stop.END)) == streamed(grammar, bare, Ending(Stop.END))


def test_token_entries_follow_their_words_exactly_as_they_were():
    entries = Raw(b"[" + LOGPROB + b"]")
    writing = encoder(context())
    told = [Opened(0, Text("")), Logged(0, entries), Grew(0, "x"), Grew(0, "y"), Logged(0, entries), Closed(0)]
    frames = [frame for event in told for frame in writing.part(event)]
    deltas = [data for name, data in frames if name == b"response.output_text.delta"]
    assert [LOGPROB in data for data in deltas] == [True, False, True]
    assert [json.loads(data)["delta"] for data in deltas] == ["x", "y", ""]
    assert (b"[" + LOGPROB + b"," + LOGPROB + b"]") in dict(frames)[b"response.output_text.done"]
    assert (b"[" + LOGPROB + b"," + LOGPROB + b"]") in writing.close(Ending(Stop.END))[0][1]


CHAT_ENTRIES = [
    (
        '{"token":"x","logprob":-0.10,"bytes":null,"top_logprobs":[{"token":"x","logprob":-1,"bytes":null},{"token":"y","logprob":-2,"bytes":[121]}]}',
        [[], [[], [121]]],
    ),
    ('{"token":"x","logprob":-0.10}', [[], []]),
    ('{"token":"x","logprob":-0.10,"bytes":[120],"top_logprobs":null}', [[120], []]),
]


@pytest.mark.parametrize(("entry", "lists"), CHAT_ENTRIES)
def test_token_entries_have_the_lists_that_chat_leaves_null(grammar, entry, lists):
    """`bytes` and `top_logprobs` are lists on Responses, always."""
    entries = Raw(f"[{entry}]".encode())
    found = streamed(grammar, [Opened(0, Text("")), Logged(0, entries), Grew(0, "x"), Closed(0)], Ending(Stop.END))
    told = [one["logprobs"] for one in found if "logprobs" in one] + [
        whole((Text("x"),), Ending(Stop.END), logprobs=entries)["output"][0]["content"][0]["logprobs"]
    ]
    assert len(told) == 3
    for (one,) in told:
        assert [one["bytes"], [top["bytes"] for top in one["top_logprobs"]]] == lists
    assert all(b"-0.10" in data for data in [bytes(listed(entries))])


def test_token_entries_that_are_none_stay_as_they_are():
    assert [bytes(listed(Raw(odd))) for odd in (b"[7]", b'{"a":1}', b"[]")] == [b"[7]", b'{"a":1}', b"[]"]


def test_token_entries_of_no_words_are_nothing(grammar):
    told = [Opened(0, Text("")), Logged(0, Raw(b"[" + LOGPROB + b"]")), Closed(0)]
    assert kinds(streamed(grammar, told, Ending(Stop.END))) == ["created", "in_progress", "completed"]


def test_a_seal_is_in_an_envelope_when_its_item_is_done(grammar):
    found = streamed(grammar, events([Reasoning("R", SIGNED)]), Ending(Stop.END))
    items = [one["item"] for one in found if "item" in one]
    assert ["encrypted_content" in item for item in items] == [False, True]
    assert items[1]["encrypted_content"] == seals.wrap(SIGNED, "up")


def test_a_seal_is_nothing_to_who_did_not_ask(grammar):
    parts = [Reasoning("", SIGNED), Call("c1", "f", "{}", seal=THOUGHT)]
    found = streamed(grammar, events(parts), Ending(Stop.TOOLS), context(seals_wanted=False))
    assert [item["type"] for item in found[-1]["response"]["output"]] == ["function_call"]


@pytest.mark.parametrize(("late", "order"), [(False, ["reasoning", "function_call"]), (True, ["function_call", "reasoning"])])
def test_a_call_s_seal_stands_before_it_unless_it_came_too_late(grammar, late, order):
    told = [Opened(0, Call("c1", "f", "")), Sealed(0, THOUGHT), Grew(0, "{}"), Closed(0), Opened(1, Text("A")), Closed(1)]
    if late:
        told[1:3] = told[2:0:-1]
    output = streamed(grammar, told, Ending(Stop.END))[-1]["response"]["output"]
    assert [item["type"] for item in output] == [*order, "message"]
    assert next(item for item in output if item["type"] == "reasoning")["encrypted_content"]


CUTS = {
    "text": ([Text("Hel")], "incomplete", "Hel"),
    "call": ([PLAIN, Call("c2", "f", '{"b":')], "incomplete", '{"b":'),
    "call without arguments": ([Call("c2", "f", "")], "incomplete", ""),
    "parallel calls": ([Call("c1", "f", '{"a":'), Call("c2", "f", "")], "incomplete", ""),
}


@pytest.mark.parametrize("stop", [Stop.LENGTH, Stop.FILTER])
@pytest.mark.parametrize(("parts", "status", "said"), CUTS.values(), ids=CUTS)
def test_a_cut_answer_s_last_item_is_incomplete(grammar, stop, parts, status, said):
    found = streamed(grammar, events(parts), Ending(stop))
    assert kinds(found)[-1] == "incomplete"
    assert found[-1]["response"] == whole(tuple(parts), Ending(stop))
    *_, last = (one["item"] for one in found if one["type"] == "response.output_item.done")
    assert last["status"] == status
    assert found[-1]["response"]["output"][-1] == last
    assert said in (last.get("arguments"), (last.get("content") or [{}])[-1].get("text"))


BROKEN = Call("c2", "wrapped", '{"input":"half')


def test_a_half_wrapped_call_is_left_out_where_the_answer_was_cut(grammar):
    found = streamed(grammar, events([Text("a"), BROKEN]), Ending(Stop.LENGTH))
    assert [(item["type"], item["status"]) for item in found[-1]["response"]["output"]] == [("message", "incomplete")]


AFTER = [[], [Text("b")], [PLAIN], [BROKEN], [Call("c3", "f", "")], [Refusal("")]]


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("broken", [BROKEN, Call("c2", "wrapped", ""), Call("c2", "wrapped", '{"text":"a"}')])
def test_a_wrapped_call_that_cannot_be_told_is_left_out_where_the_answer_was_cut_and_else_the_upstream_s_error(grammar, broken, after):
    parts = [Text("a"), broken, *after]
    assert streamed(grammar, events(parts), Ending(Stop.LENGTH))[-1]["response"] == whole(tuple(parts), Ending(Stop.LENGTH))
    for tell in (lambda: streamed(grammar, events(parts), Ending(Stop.TOOLS)), lambda: whole(tuple(parts), Ending(Stop.TOOLS))):
        with pytest.raises(UpstreamError) as caught:
            tell()
        assert caught.value.code is Code.UPSTREAM_BAD_RESPONSE


def test_a_model_that_broke_off_has_not_answered(grammar):
    with pytest.raises(UpstreamError):
        streamed(grammar, [], Ending(Stop.ERROR))


def test_a_spoken_refusal_is_a_whole_answer(grammar):
    assert kinds(streamed(grammar, events([Refusal("No.")]), Ending(Stop.REFUSAL)))[-1] == "completed"
    assert kinds(streamed(grammar, events([Text("a")]), Ending(Stop.REFUSAL)))[-1] == "incomplete"


ERRORS = {
    "limit by code": (UpstreamError(Code.UPSTREAM_RATE_LIMITED, "RL"), "rate_limit_exceeded"),
    "limit by type": (UpstreamError(Code.UPSTREAM_ERROR, "RL", detail=UpstreamDetail(type="rate_limit_error")), "rate_limit_exceeded"),
    "limit by status": (UpstreamError(Code.UPSTREAM_ERROR, "RL", status=429), "rate_limit_exceeded"),
    "upstream": (UpstreamError(Code.UPSTREAM_TRUNCATED, "RL"), "server_error"),
    "ours": (GatewayError(Code.INTERNAL, "RL"), "server_error"),
}


@pytest.mark.parametrize(("error", "code"), ERRORS.values(), ids=ERRORS)
def test_a_failure_has_the_response_as_far_as_it_went(grammar, error, code):
    writing = encoder(context())
    frames = writing.open(Start("resp_1", "up"), None)
    for event in events([Text("a"), PLAIN, Text("b")]):
        frames += writing.part(event)
    found = checked(grammar, frames + writing.fail(error))
    assert kinds(found)[-1] == "failed"
    response = found[-1]["response"]
    assert (response["id"], response["status"], response["error"]) == ("resp_1", "failed", {"code": code, "message": "RL"})
    assert [item["type"] for item in response["output"]] == ["message", "function_call"]


@pytest.mark.parametrize("failed", [False, True])
def test_the_terminal_tells_what_is_known_by_then(grammar, failed):
    writing = encoder(context())
    frames = writing.open(Start("resp_1", "up", 5, "auto"), None)
    writing.note(Start("resp_1", "up-2", 5, "default"), Usage(1, 2))
    found = checked(grammar, frames + (writing.fail(GatewayError(Code.INTERNAL, "RL")) if failed else writing.close(Ending(Stop.END))))
    told = [(one["response"]["id"], one["response"]["model"], one["response"]["service_tier"]) for one in found]
    assert told == [*[("resp_1", "up", "auto")] * 2, ("resp_1", "up-2", "default")]


@pytest.mark.parametrize(("error", "code"), ERRORS.values(), ids=ERRORS)
def test_a_failure_before_the_answer_invents_no_response(grammar, error, code):
    assert checked(grammar, encoder(context()).fail(error)) == [{"type": "error", "sequence_number": 0, "code": code, "message": "RL", "param": None}]


CALLS = st.builds(
    Call,
    st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(["f", "flat"]),
    st.sampled_from(["", "{}", '{"a": 1.50, "b": "é\\n"}', '{"a": 1']),
    seal=st.sampled_from([None, THOUGHT]),
    minted=st.booleans(),
)
CUSTOM = st.builds(Call, st.just("c4"), st.just("p"), st.text(max_size=6), st.just(Form.CUSTOM))
WRAPPED = st.builds(Call, st.just("c5"), st.just("wrapped"), st.text(max_size=6).map(lambda text: json.dumps({"input": text})))
CITATIONS = st.lists(
    st.builds(Citation, st.just("https://a.example"), st.just("A"), st.sampled_from([None, 0]), st.sampled_from([None, 2])), max_size=2
)
TEXTS = st.builds(Text, st.text(max_size=9), citations=CITATIONS.map(tuple))
THOUGHTS = st.builds(Reasoning, st.text(max_size=6), st.sampled_from([None, SIGNED]))
SEARCHES = st.builds(Search, st.just("s1"), st.text(max_size=4), CITATIONS.map(tuple), st.booleans())
PARTS = st.lists(st.one_of(TEXTS, TEXTS, THOUGHTS, CALLS, CUSTOM, WRAPPED, SEARCHES, st.builds(Refusal, st.text(max_size=4))), max_size=6)
STOPS = st.sampled_from([stop for stop in Stop if stop is not Stop.ERROR])


@settings(max_examples=60)
@given(PARTS, STOPS, st.booleans(), st.integers(1, 5), st.sampled_from([None, Raw(b"[" + LOGPROB + b"]")]))
def test_a_folded_stream_is_the_unstreamed_answer(grammar, parts, stop, seals_wanted, size, logprobs):
    # Where the two differ: a call before reasoning that nobody sees, in which the answer was cut, is whole in the one and half in the other.
    while parts and isinstance(parts[-1], Text | Reasoning) and not parts[-1].text:
        parts.pop()
    ending, given_context = Ending(stop, usage=USAGE), context(seals_wanted=seals_wanted)
    found = streamed(grammar, events(parts, size=size, logprobs=logprobs), ending, given_context)
    expected = whole(tuple(parts), ending, given_context, logprobs=logprobs)
    assert found[-1]["response"] == expected
    assert [one["item"] for one in found if one["type"] == "response.output_item.done"] == expected["output"]
    for index, item in enumerate(expected["output"]):
        deltas = "".join(one["delta"] for one in found if one.get("output_index") == index and "delta" in one)
        said = item.get("arguments", item.get("input")) or "".join(part["text"] for part in item.get("summary", []))
        assert deltas == said + "".join(part.get("text", part.get("refusal")) for part in item.get("content", []))


@settings(max_examples=25)
@given(PARTS, st.integers(1, 5))
def test_the_official_stream_helper_gathers_the_unstreamed_answer(grammar, parts, size):
    parts = [part if not isinstance(part, Call) else Call(f"c{index}", part.name, part.arguments, part.form) for index, part in enumerate(parts)]
    found = streamed(grammar, events(parts, size=size), Ending(Stop.END, usage=USAGE))
    gathered = accumulated(found)
    assert gathered.id == "resp_1"
    expected = whole(tuple(parts), Ending(Stop.END, usage=USAGE))
    beside = {"parsed_arguments": True, "content": {"__all__": {"parsed"}}}
    assert [item.model_dump(mode="json", exclude_unset=True, exclude=beside) for item in gathered.output] == expected["output"]
