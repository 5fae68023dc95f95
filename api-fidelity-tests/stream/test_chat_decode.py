"""Chat Completions streams of many servers, read into events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from asgi_surface.assembly import Fold
from asgi_surface.codecs.chat.decode import decoder
from asgi_surface.codecs.chat.read import read
from asgi_surface.codecs.chat.verdicts import ROWS
from asgi_surface.errors import Code, ErrorFacts, UpstreamDetail, UpstreamError
from asgi_surface.events import KINDS, Cited, Closed, End, Ending, Event, Fault, Finish, Grew, Logged, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Frame, Framing
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.lifecycle import Kind
from asgi_surface.surfaces import GEMINI
from asgi_surface.translation import Translation
from asgi_surface.verdicts import Verdict

START = Start("u1", "up", 7)
BASE = {"id": "u1", "object": "chat.completion.chunk", "created": 7, "model": "up"}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
SPENT = UsageSeen(Usage(11, 7))
DONE = "[DONE]"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return BASE | {"choices": [choice | more.pop("choice", {})]} | more


def called(*calls: dict[str, Any], finish: Any = None) -> dict[str, Any]:
    return chunk({"tool_calls": list(calls)}, finish)


def call(index: Any = None, own: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    said = {"index": index, "id": own, "function": {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}}
    return {key: value for key, value in said.items() if value is not None}


def frame(said: Any, event: bytes = b"") -> Frame:
    return Frame(b"", event, said.encode() if isinstance(said, str) else msgspec.json.encode(said))


def decoded(*chunks: Any) -> tuple[list[Event], list[str]]:
    reader = decoder()
    events = [event for one in chunks for event in reader.feed(frame(one))]
    return events, reader.unread


def events(*chunks: Any) -> list[Event]:
    """The events after the start."""
    found, unread = decoded(*chunks)
    assert found[0] == START
    assert unread == []
    return found[1:]


def folded(*chunks: Any) -> Response:
    """The answer that the events make, as the other half of a conversion gets it."""
    taken: list[Response] = []
    fold = Fold(lambda response: taken.append(response) or b"")
    stops, usage = {0: Stop.END}, None
    for event in decoded(*chunks)[0]:
        if isinstance(event, Start):
            fold.open(event, None)
        elif isinstance(event, Finish):
            stops[event.choice] = event.stop
        elif isinstance(event, UsageSeen):
            usage = event.usage
        elif KINDS[type(event)] is Kind.PART:
            fold.part(event)
    fold.close(Ending(stops.pop(0), None, usage, stops))
    return taken[0]


def calls(*chunks: Any) -> list[tuple[str, str, str]]:
    """The calls, each as id, name and arguments."""
    return [(part.id, part.name, part.arguments) for part in folded(*chunks).parts if isinstance(part, Call)]


def test_a_plain_stream() -> None:
    assert events(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "é"}),
        chunk({"role": "assistant", "content": "A"}),
        chunk({}, "stop"),
        BASE | {"choices": [], "usage": USAGE},
        DONE,
    ) == [Opened(0, Text("")), Grew(0, "é"), Grew(0, "A"), Finish(Stop.END), SPENT, Closed(0), End()]


def test_the_start_says_what_is_known() -> None:
    azure = {"id": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": []}
    assert decoded(azure, chunk({"role": "assistant"}, service_tier="flex"))[0] == [Start("u1", "up", 7, "flex")]
    assert decoded({"choices": [{"delta": {"role": "assistant"}}], "id": "", "created": "now"})[0] == [Start()]


def test_news_of_the_model_and_the_tier_is_told_once() -> None:
    flex = {"service_tier": "flex", "model": ""}
    said = [chunk({"role": "assistant"}), chunk({"content": "a"}, **flex), chunk({}, "stop", **flex), BASE | {"choices": [], "model": "up-2"}, DONE]
    opened = [Told("up", "flex"), Opened(0, Text("")), Grew(0, "a")]
    assert events(*said) == [*opened, Finish(Stop.END), Told("up-2", "flex"), Closed(0), End()]


def test_what_was_said_before_the_start_begins_it() -> None:
    """Azure and Copilot tell of the prompt first."""
    assert decoded(BASE | {"choices": [], "service_tier": "flex"}, chunk({"role": "assistant"}, model=None))[0] == [Start("u1", "up", 7, "flex")]


@pytest.mark.parametrize("said", [{"type": "ping"}, BASE | {"choices": None}, BASE | {"choices": []}, BASE, chunk({}, ""), chunk(None, None)])
def test_what_says_nothing(said: dict[str, Any]) -> None:
    assert events(chunk({"role": "assistant"}), said) == []


@pytest.mark.parametrize(
    "said",
    [
        BASE | {"choices": [], "usage": USAGE},
        BASE | {"usage": USAGE},
        chunk({}, None, usage=USAGE),
        BASE | {"choices": [], "x_groq": {"id": "r", "usage": USAGE}},
    ],
)
def test_usage_stands_in_many_places(said: dict[str, Any]) -> None:
    assert events(chunk({"role": "assistant"}), said) == [SPENT]


def test_a_finish_chunk_may_hold_everything() -> None:
    assert events(chunk({"content": "A"}, "length", usage=USAGE), chunk({}, "stop"), DONE) == [
        Opened(0, Text("")),
        Grew(0, "A"),
        Finish(Stop.LENGTH),
        SPENT,
        Finish(Stop.END),
        Closed(0),
        End(),
    ]


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", Stop.TOOLS), ("tool_calls", Stop.TOOLS), ("content_filter", Stop.FILTER), ("error", Stop.ERROR), ("eos_of_some_sort", Stop.OTHER)],
)
def test_why_it_stopped(finish: str, stop: Stop) -> None:
    assert [event for event in events(called(F1), chunk({}, finish)) if isinstance(event, Finish)] == [Finish(stop)]


def test_text_after_a_finish_goes_on() -> None:
    assert events(chunk({"content": "A"}, "stop"), chunk({"content": "B"}, "stop"), DONE) == [
        Opened(0, Text("")),
        Grew(0, "A"),
        Finish(Stop.END),
        Grew(0, "B"),
        Finish(Stop.END),
        Closed(0),
        End(),
    ]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "R"}]}
WORDS: list[tuple[list[dict[str, Any]], list[Any]]] = [
    ([{"content": "", "reasoning_content": ""}, {"reasoning_content": "R1"}, {"reasoning_content": "R2", "content": ""}], [Reasoning("R1R2")]),
    ([{"reasoning": "R", "reasoning_content": "R", "reasoning_details": [{"type": "reasoning.text", "text": "R"}]}], [Reasoning("R")]),
    ([{"reasoning": "R"}, {"content": "A"}], [Reasoning("R"), Text("A")]),
    ([{"reasoning_content": "R", "content": "A"}], [Reasoning("R"), Text("A")]),
    ([{"content": "A"}, {"reasoning_content": "R"}, {"content": "B"}], [Text("A"), Reasoning("R"), Text("B")]),
    ([{"content": [THOUGHT]}, {"content": [THOUGHT, {"type": "text", "text": "A"}]}, {"content": "B"}], [Reasoning("RR"), Text("AB")]),
    ([{"refusal": ""}, {"refusal": "N"}, {"refusal": "o."}], [Refusal("No.")]),
]


@pytest.mark.parametrize(("deltas", "parts"), WORDS)
def test_words_by_kind(deltas: list[dict[str, Any]], parts: list[Any]) -> None:
    assert list(folded(*map(chunk, deltas)).parts) == parts


def test_one_kind_closes_before_the_next_opens() -> None:
    said = events(chunk({"reasoning_content": "R", "content": "A"}), called(call(0, "c1", "f", "{}")), DONE)
    opening = Opened(2, Call("c1", "f", ""))
    assert said == [Opened(0, Reasoning("")), Grew(0, "R"), Closed(0), Opened(1, Text("")), Grew(1, "A"), Closed(1), opening, Grew(2, "{}"), End()]


F1 = call(0, "c1", "f", '{"a":1}')
CALLS: list[tuple[list[dict[str, Any]], list[tuple[str, str, str]]]] = [
    # Pieces, with the id and the name once, repeated, emptied, or nulled
    ([called(call(0, "c1", "f", '{"a"')), called(call(0, None, None, ":1}"))], [("c1", "f", '{"a":1}')]),
    ([called(call(0, "c1", "f", '{"a"')), called(call(0, "c1", "f", ":1}"))], [("c1", "f", '{"a":1}')]),
    ([called(call(0, "c1", "f", '{"a"')), called(call(0, "", "", ":1")), called(call(0, None, None, "}"))], [("c1", "f", '{"a":1}')]),
    ([called(call(0, "c1", "f", '{"a"')), called(call(0, None, "f", ":1}"))], [("c1", "f", '{"a":1}')]),
    # The name late, or the id late
    ([called(call(0, "c1", "", "")), called(call(0, None, None, '{"a"')), called(call(0, None, "f", ":1}"))], [("c1", "f", '{"a":1}')]),
    ([called(call(0, None, None, '{"a"')), called(call(0, "c1", "f", ":1}"))], [("c1", "f", '{"a":1}')]),
    # Whole calls in one chunk: index right, all 0, or missing
    ([called(F1, call(1, "c2", "f", "{}"))], [("c1", "f", '{"a":1}'), ("c2", "f", "{}")]),
    ([called(F1), called(call(0, "c2", "f", '{"a":2}'))], [("c1", "f", '{"a":1}'), ("c2", "f", '{"a":2}')]),
    ([called(call(None, "c1", "f", "{}"), call(None, "c2", "g", "{}"))], [("c1", "f", "{}"), ("c2", "g", "{}")]),
    ([called(call(None, "c1", "f", "{}")), called(call(None, "c2", "g", "{}"))], [("c1", "f", "{}"), ("c2", "g", "{}")]),
    ([called(call("0", "c1", "f", "{"), call("1", "c2", "g", "{")), called(call("1", "c2", None, "}"))], [("c1", "f", "{"), ("c2", "g", "{}")]),
    # Without ids they are numbered; a name where the call has one is another call
    ([called(call(0, None, "f", '{"a":')), called(call(0, None, None, "1}"))], [("call_0", "f", '{"a":1}')]),
    ([called(call(None, None, "f", "{}")), called(call(None, None, "f", "{}"))], [("call_0", "f", "{}"), ("call_1", "f", "{}")]),
    ([called(call(0, None, "f", "{}")), called(call(0, None, "g", "{}"))], [("call_0", "f", "{}"), ("call_1", "g", "{}")]),
    # An index used again, with pieces of both calls
    (
        [called(call(0, "c1", "f", "{")), called(call(0, "c2", "g", "{")), called(call(0, "c1", None, "}")), called(call(0, "c2", None, " }"))],
        [("c1", "f", "{}"), ("c2", "g", "{ }")],
    ),
    # One id for two indices, and a new id with every piece
    ([called(call(0, "f", "f", "{}"), call(1, "f", "f", "{}"))], [("f", "f", "{}"), ("f", "f", "{}")]),
    ([called(call(0, "c1", "f", '{"a"')), called(call(0, "x9", None, ":1}"))], [("c1", "f", '{"a":1}')]),
    ([called(F1), called(call(0, "c2")), called(call(0, None, "g", "{}"))], [("c1", "f", '{"a":1}'), ("c2", "g", "{}")]),
    # Told twice, in whole or as an empty stub
    ([called(F1), called(F1), called(call(0, "c1", "f", ""))], [("c1", "f", '{"a":1}')]),
    ([called(F1), chunk({"content": "", "function_call": {"name": "", "arguments": ""}}, "tool_calls"), called(F1)], [("c1", "f", '{"a":1}')]),
    ([called(call(0, "c1", "f", ""), finish="tool_calls"), called(call(0, "c1", "f", "{}"))], [("c1", "f", "{}")]),
    ([called({"index": 0, "type": "function", "function": {"arguments": ""}}, finish="stop")], []),
    # Arguments: an object itself, none at all, free text after a brace
    ([called(call(0, "c1", "f", {"a": 1.5}))], [("c1", "f", '{"a":1.5}')]),
    ([called(call(0, "c1", "f"), finish="tool_calls")], [("c1", "f", "{}")]),
    ([called(call(0, "c1", "f"), finish="length")], [("c1", "f", "")]),
    ([called(call(0, "c1", "f", '{"a":}')), called(call(1, "c2", "f", "{}"))], [("c1", "f", '{"a":}'), ("c2", "f", "{}")]),
    # The deprecated form
    ([chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}})], [("call_0", "f", "{}")]),
]


@pytest.mark.parametrize(("chunks", "found"), CALLS)
def test_whose_piece_a_piece_is(chunks: list[dict[str, Any]], found: list[tuple[str, str, str]]) -> None:
    assert calls(*chunks, DONE) == found


def test_calls_stay_open_together_until_they_are_whole() -> None:
    said = events(
        called(call(0, "c1", "f", '{"a":')),
        called(call(1, "c2", "g", "{")),
        called(call(0, None, None, "1}"), call(1, None, None, "}")),
        called(call(2, "c3", "h", "")),
        chunk({"content": "A"}),
        chunk({}, "stop"),
        DONE,
    )
    assert said == [
        Opened(0, Call("c1", "f", "")),
        Grew(0, '{"a":'),
        Opened(1, Call("c2", "g", "")),
        Grew(1, "{"),
        Grew(0, "1}"),
        Grew(1, "}"),
        Closed(0),
        Closed(1),
        Opened(2, Call("c3", "h", "")),
        Opened(3, Text("")),
        Grew(3, "A"),
        Finish(Stop.TOOLS),
        Grew(2, "{}"),
        Closed(2),
        Closed(3),
        End(),
    ]


def test_a_cut_call_is_not_completed() -> None:
    assert events(called(call(0, "c1", "f", '{"a":"par')), chunk({}, "length"), DONE) == [
        Opened(0, Call("c1", "f", "")),
        Grew(0, '{"a":"par'),
        Finish(Stop.LENGTH),
        Closed(0),
        End(),
    ]


LATE = {
    "the call": [chunk({"content": ""}), chunk({}, "tool_calls"), called(F1)],
    "its name": [called({"index": 0, "id": "c1"}, finish="tool_calls"), called(F1)],
    "its arguments": [called(call(0, "c1", "f", '{"a"'), finish="tool_calls"), called(call(0, None, None, ":1}"))],
    "all its arguments": [called(call(0, "c1", "f"), finish="tool_calls"), called(call(0, None, None, '{"a":1}'))],
}


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("ending", [[chunk({}, choice={"delta": None}), DONE], [DONE]])
def test_what_comes_of_a_call_after_the_finish_is_of_the_answer(late: str, ending: list[Any]) -> None:
    assert (folded(*LATE[late], *ending).parts, folded(*LATE[late], *ending).stop) == ((Call("c1", "f", '{"a":1}'),), Stop.TOOLS)


def test_calls_say_whether_their_ids_are_the_upstream_s_own() -> None:
    parts = folded(called(call(0, "c1", "f", "{}"), call(1, None, "g", "{}"))).parts
    assert parts == (Call("c1", "f", "{}"), Call("call_1", "g", "{}", minted=True))


def test_custom_calls_are_free_text() -> None:
    head = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "p", "input": "{}"}}
    more = {"index": 0, "custom": {"input": "x"}}
    other = {"index": 1, "id": "c2", "type": "custom", "custom": {"name": "p", "input": None}}
    response = folded(called(head), called(other), called(more), chunk({}, "tool_calls"))
    assert response.parts == (Call("c1", "p", "{}x", Form.CUSTOM), Call("c2", "p", "", Form.CUSTOM))


def test_google_s_signature_of_a_call() -> None:
    signed = call(0, "c1", "f", "{}") | {"extra_content": {"google": {"thought_signature": "sig"}}}
    seal = Seal("sig", SealKind.THOUGHT, GEMINI)
    assert events(called(signed), called(signed), chunk({}, "stop")) == [
        Opened(0, Call("c1", "f", "")),
        Sealed(0, seal),
        Grew(0, "{}"),
        Closed(0),
        Finish(Stop.TOOLS),
    ]


def cite(url: str, start: Any = 0, end: Any = 0) -> dict[str, Any]:
    return {"annotations": [{"type": "url_citation", "url_citation": {"url": url, "title": "t", "start_index": start, "end_index": end}}]}


def test_sources_wait_for_the_text() -> None:
    said = events(chunk({"content": ""} | cite("a")), chunk({"reasoning": "R"}), chunk({"content": "xyz"}), chunk(cite("b", 1, 2)))
    assert [event for event in said if isinstance(event, Cited)] == [Cited(1, Citation("a", "t", 0, 0)), Cited(1, Citation("b", "t", 1, 2))]


def test_offsets_count_within_their_part() -> None:
    between = [chunk({"content": "abc"}), chunk({"reasoning": "R"}), chunk({"content": "def"})]
    said = events(*between, chunk(cite("b", 3, 5)), chunk(cite("a", 0, 2)), chunk(cite("c", None)))
    assert [event.citation for event in said if isinstance(event, Cited)] == [
        Citation("b", "t", 0, 2),
        Citation("a", "t"),
        Citation("c", "t", None, 0),
    ]


def test_token_entries_go_with_their_text() -> None:
    entries = [{"token": "x", "logprob": -0.1}]
    logged = {"choice": {"logprobs": {"content": entries, "refusal": None}}}
    *_, last = events(chunk({"content": ""}, choice={"logprobs": {"content": []}}), chunk({"content": "x"}, **logged))
    assert isinstance(last, Logged)
    assert (last.index, msgspec.json.decode(last.logprobs)) == (0, entries)


UNREAD = [
    ([chunk({"content": [{"type": "hologram"}]})], ["answer:part"]),
    ([chunk({"audio": {"id": "a"}}, system_fingerprint="fp")], ["answer:system_fingerprint", "answer:audio"]),
    ([chunk({"reasoning": "R"}, choice={"logprobs": {"content": [{"token": "R"}]}})], ["answer:logprobs.other"]),
    ([chunk({"refusal": "N"}, choice={"logprobs": {"content": None, "refusal": [{"token": "N"}]}})], ["answer:logprobs.refusal"]),
    ([chunk({"annotations": [{"type": "file_citation"}]})], ["answer:annotations.other"]),
    ([chunk(cite("a")), DONE], ["answer:annotations.other"]),
    ([chunk({}, usage=USAGE | {"prompt_tokens_details": {"image_tokens": 3, "audio_tokens": 4}})], ["usage:prompt_tokens_details.image_tokens"]),
]


@pytest.mark.parametrize(("chunks", "names"), UNREAD)
def test_what_has_no_place_is_named(chunks: list[Any], names: list[str]) -> None:
    _, unread = decoded(*chunks)
    assert unread == names
    # All of these are lost wherever they go, so they are counted.
    assert {verdict for name in unread for verdict in ROWS[name].verdicts.values()} == {Verdict.ADVISORY}


def other(number: Any, delta: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk of another answer."""
    return chunk(delta, finish, choice={"index": number} | more)


def test_several_answers_grow_side_by_side() -> None:
    entries = {"content": [{"token": "y"}], "refusal": None}
    said = events(
        other(1, {"role": "assistant", "content": ""}),
        chunk({"content": "abc"}),
        other(1, {"reasoning": "R"}),
        other(1, {"content": "y"} | cite("u", 0, 1), logprobs=entries),
        called(F1),
        other(1, {"tool_calls": [call(0, "c1", "g", "{")]}),
        chunk({}, "stop"),
        other(1, {}, "length"),
        other(2, None, "content_filter"),
        BASE | {"choices": [], "usage": USAGE},
        DONE,
    )
    assert [event for event in said if isinstance(event, Opened)] == [
        Opened(0, Text(""), 0),
        Opened(1, Reasoning(""), 1),
        Opened(2, Text(""), 1),
        Opened(3, Call("c1", "f", ""), 0),
        Opened(4, Call("c1", "g", ""), 1),
    ]
    assert [event for event in said if isinstance(event, Finish)] == [
        Finish(Stop.TOOLS, choice=0),
        Finish(Stop.LENGTH, choice=1),
        Finish(Stop.FILTER, choice=2),
    ]
    # Each has its own words, offsets and calls; what one does closes nothing of another.
    assert [event.index for event in said if isinstance(event, Closed)] == [1, 0, 2, 3, 4]
    assert [(event.index, event.citation) for event in said if isinstance(event, Cited)] == [(2, Citation("u", "t", 0, 1))]
    assert [event.index for event in said if isinstance(event, Logged)] == [2]
    assert [event for event in said if isinstance(event, UsageSeen | End)] == [SPENT, End()]


@pytest.mark.parametrize("number", [None, -1, True, "0", 0])
def test_an_index_that_is_none_is_the_first_s(number: Any) -> None:
    assert events(other(number, {"content": "x"})) == [Opened(0, Text("")), Grew(0, "x")]


FAULTS: list[tuple[Any, bytes, ErrorFacts]] = [
    ({"error": {"message": "quota", "type": "t", "code": "c"}}, b"", ErrorFacts("quota", UpstreamDetail("t", "c"))),
    (chunk({"content": "x"}, "error", error={"code": 502, "message": "gone"}), b"", ErrorFacts("gone", status=502)),
    ({"object": "error", "message": "vllm", "type": "BadRequestError", "code": 400}, b"", ErrorFacts("vllm", UpstreamDetail("BadRequestError"), 400)),
    ({"message": "bare"}, b"error", ErrorFacts("bare")),
    ({"x_groq": {"error": "over capacity"}}, b"", ErrorFacts("over capacity")),
    ({"error": 7}, b"", ErrorFacts("")),
]


@pytest.mark.parametrize(("said", "event", "facts"), FAULTS)
def test_errors_in_the_stream(said: Any, event: bytes, facts: ErrorFacts) -> None:
    assert list(decoder().feed(frame(said, event))) == [Fault(facts)]
    assert list(decoder().feed(frame(said | {"usage": USAGE}, event))) == [SPENT, Fault(facts)]


@pytest.mark.parametrize(
    "chunks",
    [
        ['{"choices":[{"index":0,"delta":{"content":"B"'],
        ["[]"],
        [chunk({"content": 7})],
        [chunk({"refusal": {}})],
        [chunk({"tool_calls": "f()"})],
        [called(call(0, "c1", None, "{}"), finish="tool_calls")],
        [called(call(0, "c1"), finish="tool_calls")],
        [called({"index": 0, "id": "c1", "custom": {"name": "p", "input": {}}})],
        [called(F1, finish="tool_calls"), called(call(0, None, None, ',"b":2}'))],
        [chunk({"content": "x"}, "tool_calls")],
        [called({"index": 0, "function": {"arguments": ""}}, finish="function_call")],
        [called(F1), other(1, {"content": "x"}, "tool_calls")],
    ],
)
def test_what_cannot_be_read_is_no_answer(chunks: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(*chunks, DONE)


@pytest.mark.parametrize("delta", [{"role": "assistant"}, {"content": "y"}, {"tool_calls": [F1]}, {"reasoning": "R"}])
@pytest.mark.parametrize(("finish", "cut"), [(None, True), ("length", False)])
def test_a_further_answer_without_a_finish_is_missed(delta: dict[str, Any], finish: str | None, cut: bool) -> None:
    whole: list[Response] = []
    one = Translation(
        decoder(),
        Fold(lambda response: whole.append(response) or b""),
        upstream=Framing.SSE,
        downstream=None,
        event_bytes=9999,
        output_chars=99,
        eof_ends=False,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )
    said = (chunk({"content": "x"}, "stop"), other(1, delta), other(1, {}, finish), DONE)
    for each in said:
        one.feed(b"data: " + frame(each).data + b"\n\n")
    assert (one.fault.code if one.fault else None, len(whole)) == ((Code.UPSTREAM_TRUNCATED, 0) if cut else (None, 1))


# The law: a stream of an answer gives what the whole answer gives, however its pieces are cut and its parallel calls woven.

ARGUMENTS = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(lambda value: msgspec.json.encode(value).decode())
NAMES = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=4)


@settings(max_examples=40)
@given(st.data(), st.text(max_size=6), st.text(max_size=6), st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3))
def test_a_stream_gives_what_the_whole_answer_gives(data: st.DataObject, thought: str, text: str, told: list[tuple[str, str]]) -> None:
    whole = [call(None, f"c{index}", name, arguments) for index, (name, arguments) in enumerate(told)]
    message = {"reasoning_content": thought, "content": text, "tool_calls": whole}
    choices = [
        {"index": 1, "message": {"content": thought}, "finish_reason": "stop"},
        {"index": 0, "message": message, "finish_reason": "tool_calls"},
    ]
    answer = read(msgspec.json.encode(BASE | {"choices": choices, "usage": USAGE}))
    chunks = [*(chunk({"reasoning_content": one}) for one in thought), *(chunk({"content": one}) for one in text)]
    chunks += [called(call(index, f"c{index}", name, "")) for index, (name, _) in enumerate(told)]
    left = {index: arguments for index, (_, arguments) in enumerate(told)}
    while left:
        index = data.draw(st.sampled_from(sorted(left)))
        size = data.draw(st.integers(1, 4))
        chunks.append(called(call(index, None, None, left[index][:size])))
        left = {key: rest for key, value in left.items() if (rest := value[size:] if key == index else value)}
    chunks += [chunk({}, "tool_calls")]
    place = 0
    for one in (*(other(1, {"content": one}) for one in thought), other(1, {}, "stop")):
        place = data.draw(st.integers(place, len(chunks)))
        chunks.insert(place, one)
        place += 1
    assert folded(*chunks, BASE | {"choices": [], "usage": USAGE}, DONE) == answer


LP = [{"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}]
ENTRIES = Raw(msgspec.json.encode(LP))
LOGGED = {"choice": {"logprobs": {"content": LP, "refusal": None}}}


def rest(*chunks: Any) -> tuple[list[Event], list[str]]:
    """What is said of chunks after the start, when the body ends without `[DONE]`."""
    reader = decoder()
    said = [event for one in chunks for event in reader.feed(frame(one))]
    return [*said[1:], *reader.eof()], reader.unread


def test_entries_before_the_first_word_wait_for_it() -> None:
    told = events(chunk({"role": "assistant", "content": ""}, **LOGGED), chunk({"content": "x"}, **LOGGED), chunk({}, "stop"))
    assert told == [Opened(0, Text("")), Grew(0, "x"), Logged(0, ENTRIES), Logged(0, ENTRIES), Finish(Stop.END)]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk({"role": "assistant"}, **LOGGED)],
        [called(call(0, "c", "f", "{}")), chunk({}, **LOGGED)],
        [chunk({"tool_calls": [call(0, "c", "f", "{}")]}, **LOGGED), chunk({"content": "x"})],
        [chunk({"reasoning": "R"}), chunk({}, **LOGGED), chunk({"content": "x"})],
        [chunk({"content": "x"}), called(call(0, "c", "f", "{}")), chunk({}, **LOGGED)],
    ],
)
def test_entries_of_no_text_are_counted(chunks: list[Any]) -> None:
    told, unread = rest(*chunks, chunk({}, "stop"))
    assert unread == ["answer:logprobs.other"]
    assert not any(isinstance(event, Logged) for event in told)


@pytest.mark.parametrize("done", [[DONE], []])
@pytest.mark.parametrize("with_finish", [True, False])
def test_sources_that_come_after_a_call_are_late(with_finish: bool, done: list[Any]) -> None:
    """The text before the call has closed for it. Where nothing has to be said in order, they still reach it."""
    chunks = [chunk({"content": "Hi"}), called(call(0, "c", "f", "{}"))]
    chunks += [chunk(cite("a", 0, 2), "tool_calls")] if with_finish else [chunk(cite("a", 0, 2)), chunk({}, "tool_calls")]
    told, unread = rest(*chunks, *done)
    assert Cited(0, Citation("a", "t", 0, 2), "answer:annotations.other") in told
    assert unread == []
    assert folded(*chunks, DONE).parts == (Text("Hi", citations=(Citation("a", "t", 0, 2),)), Call("c", "f", "{}"))


def test_sources_between_two_texts_wait_for_the_second() -> None:
    told = events(chunk({"content": "Hi"}), called(call(0, "c", "f", "{}")), chunk(cite("a", 2, 4)), chunk({"content": "ho"}))
    assert [event for event in told if isinstance(event, Cited)] == [Cited(2, Citation("a", "t", 0, 2))]


def test_sources_without_any_text_are_counted_at_the_end_of_the_body() -> None:
    assert rest(chunk(cite("a"), "stop")) == ([Finish(Stop.END)], ["answer:annotations.other"])


@pytest.mark.parametrize("name", ["f", None])
def test_a_call_may_come_after_the_finish(name: str | None) -> None:
    """Then the answer stopped for it. Its arguments may follow, and it is whole when nothing more comes."""
    chunks = [chunk({"content": "x"}, "stop"), called(call(0, "c", "f")), called(call(0, None, name, '{"a":')), called(call(0, None, None, "1}"))]
    told, _ = rest(*chunks)
    finish = [Finish(Stop.TOOLS)]
    assert told[2:] == [
        Finish(Stop.END), Closed(0), Opened(1, Call("c", "f", "")), *finish, Grew(1, '{"a":'), Grew(1, "1}"), Closed(1)
    ]  # fmt: skip
    assert decoded(*chunks, DONE)[0][1:] == [*told, End()]


def test_a_call_without_arguments_after_the_finish_is_whole_unless_it_was_cut() -> None:
    for reason, told in (("stop", [Grew(0, "{}"), Closed(0)]), ("length", [Closed(0)])):
        assert rest(chunk({}, reason), called(call(0, "c", "f")))[0][3:] == told


@pytest.mark.parametrize("piece", [call(0, None, None, "{}"), call(0, "c", None, None), call(None, None, None, '{"a":1}')])
@pytest.mark.parametrize("client", [None, Framing.SSE])
@pytest.mark.parametrize("done", [b"data: [DONE]\n\n", b""])
def test_a_call_without_a_name_after_the_finish_is_no_success(piece: dict[str, Any], client: Framing | None, done: bytes) -> None:
    """Whether the answer is folded or streamed, and however it ends."""
    said: list[str] = []
    one = Translation(
        decoder(),
        Fold(lambda _: said.append("answer") or b""),
        upstream=Framing.SSE,
        downstream=client,
        event_bytes=999,
        output_chars=999,
        eof_ends=True,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )
    chunks = [chunk({"content": "x"}), chunk({}, "stop"), called(piece)]
    one.feed(b"".join(b"data: " + msgspec.json.encode(said) + b"\n\n" for said in chunks) + done)
    one.eof()
    assert (one.fault and one.fault.code, said) == (Code.UPSTREAM_BAD_RESPONSE, [])


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (['{"a":', "1}"], True),
        (["{}"], True),
        (["{}", " "], True),
        (["{}", "\n", "x"], None),
        (['{"a":"}', '"}'], True),
        (['{"a":"\\', '"}', '"}'], True),
        (['{"a":"\\\\"}'], True),
        (['{"a":"\\', "u007d}"], False),
        (['{"a":{}', "}"], True),
        (['{"a":{}', ',"b":{}'], False),
        (["{a}", "}"], False),
        (["}"], False),
        (["[{}"], False),
    ],
)
def test_when_arguments_are_whole(pieces: list[str], whole: bool | None) -> None:
    """A further call closes those before it that are whole objects, and no others, whether it comes between their pieces or after all."""
    after = decoded(*(called(call(0, "a", "f", piece)) for piece in pieces), called(call(1, "b", "g", "{}")))[0]
    assert (Closed(0) in after) is bool(whole)
    first, *others = pieces
    chunks = [called(call(0, "a", "f", first)), called(call(1, "b", "g", "{}"))]
    for number, piece in enumerate(others):
        chunks += [called(call(0, None, None, piece)), called(call(number + 2, f"b{number}", "g", "{}"))]
    if whole is None:
        with pytest.raises(ValueError, match="after the end"):
            decoded(*chunks)
        return
    assert (Closed(0) in decoded(*chunks)[0]) is whole


def test_a_seal_of_no_call_is_none() -> None:
    stub = {"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}
    assert rest(chunk({"content": "x", "tool_calls": [stub]}, "stop"))[0] == [Opened(0, Text("")), Grew(0, "x"), Finish(Stop.END), Closed(0)]


WHOLE = {"role": "assistant", "content": "Hi", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]}


def test_a_whole_message_in_the_place_of_deltas_is_the_answer() -> None:
    """As servers send it that only pretend to stream."""
    told = chunk(finish="tool_calls", choice={"message": WHOLE, "logprobs": None})
    del told["choices"][0]["delta"]
    text = [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]
    asked = [Opened(1, Call("c1", "f", "")), Grew(1, '{"a":1}'), Closed(1)]
    assert rest(told)[0] == [*text, *asked, Finish(Stop.TOOLS)]


@pytest.mark.parametrize("said", [{"content": "Hi"}, {"reasoning_content": "thought"}, {"tool_calls": [call(0, "c1", "f", '{"a":1}')]}])
def test_a_whole_message_beside_deltas_says_nothing_more(said: dict[str, Any]) -> None:
    """As Perplexity sends it with every chunk."""
    alone = decoded(chunk(said), chunk(finish="stop"), DONE)[0]
    beside = decoded(chunk(said, choice={"message": said}), chunk(finish="stop", choice={"message": WHOLE}), DONE)[0]
    assert beside == alone


@pytest.mark.parametrize("message", [None, "Hi", [], {}, {"content": None}])
def test_a_message_that_is_none_says_nothing(message: Any) -> None:
    assert rest(chunk({"content": ""}, choice={"message": message}), chunk({"content": "x"}, "stop"))[0][:2] == [Opened(0, Text("")), Grew(0, "x")]


def whole(*messages: Any) -> tuple[list[Event], list[str]]:
    """What a stream of messages says after its start, and what of it was not read."""
    return decoded(*[chunk(choice={"message": one}) for one in messages], chunk(finish="stop"), DONE)


def test_of_whole_messages_that_grow_only_what_is_new_is_said() -> None:
    """A last one that says less, or nothing, takes nothing back."""
    seal = {"type": "reasoning.encrypted", "data": "s"}
    thought = {"reasoning_content": "t", "reasoning_details": [seal]}
    calls = [call(None, "c1", "f", '{"a":1}'), call(None, "c2", "f", "{}")]
    said = [{"reasoning_content": "t"}, thought, thought | {"content": "H"}, {"content": "Hi", "tool_calls": calls[:1]}, {"tool_calls": calls}]
    events, unread = whole(*said, {"content": "Hi"}, {"content": ""})
    grown = [(event.index, event.text) for event in events if isinstance(event, Grew)]
    assert (grown, unread) == ([(0, "t"), (2, "H"), (2, "i"), (3, '{"a":1}'), (4, "{}")], [])
    assert [type(event.part) for event in events if isinstance(event, Opened)] == [Reasoning, Reasoning, Text, Call, Call]
    assert sum(isinstance(event, Sealed) for event in events) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"content": "Hel"}, {"content": "lo"}),
        ({"content": "Hello"}, {"content": "Hel"}),
        ({"content": "a"}, {"content": [{"type": "text", "text": "ab"}]}),
        ({"tool_calls": [call(0, "c1", "f", "{}")]}, {"tool_calls": [call(0, "c2", "g", "{}")]}),
    ],
)
def test_a_whole_message_that_says_otherwise_than_the_one_before_cannot_be_read(first: Any, second: Any) -> None:
    with pytest.raises(ValueError, match="says otherwise"):
        whole(first, second)


@pytest.mark.parametrize(
    ("message", "counted"),
    [
        ({"content": "Hi"}, False),
        ({"content": "Hi you"}, False),
        ({"content": "Hi you all"}, True),
        ({"content": ["Hi"]}, True),
        ({"tool_calls": [call(0, "c1", "f", "{}")]}, True),
        ({"content": "Hi", "hologram": 1}, True),
    ],
)
def test_what_a_whole_message_says_beyond_the_deltas_is_counted(message: Any, counted: bool) -> None:
    _, unread = decoded(chunk({"content": "Hi "}), chunk({"content": "you"}), chunk(finish="stop", choice={"message": message}), DONE)
    assert unread == (["answer:unknown"] if counted else [])
