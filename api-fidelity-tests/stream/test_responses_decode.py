"""Responses streams as events in no surface's words: every event type, what servers leave out or say twice, and how streams end."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from openai.types.responses import ResponseStreamEvent

from asgi_surface import ir
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.responses.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.responses.decode import decoder
from asgi_surface.codecs.responses.encode import encoder
from asgi_surface.codecs.responses.read import read
from asgi_surface.codecs.responses.write import write
from asgi_surface.errors import ErrorFacts, UpstreamDetail
from asgi_surface.events import Cited, Closed, End, Ending, Fault, Finish, Grew, Logged, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.ir import Call, Citation, Form, Reasoning, Refusal, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.surfaces import MESSAGES, RESPONSES

OFFICIAL = {get_args(kind.model_fields["type"].annotation)[0]: set(kind.model_fields) for kind in get_args(get_args(ResponseStreamEvent)[0])}


def frame(event, name=b""):
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    return Frame(data, name, data)


def decoded(*events):
    reading = decoder()
    return [event for one in events for event in reading.feed(frame(one))], reading.unread


def response(status="in_progress", output=(), **members):
    return {"id": "resp_1", "object": "response", "created_at": 5.5, "model": "up", "status": status, "output": list(output)} | members


def event(kind, **members):
    return {"type": f"response.{kind}"} | members


CREATED = event("created", response=response(service_tier="flex"))
START = Start("resp_1", "up", 5, "flex")
USAGE = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}


def completed(*output, **members):
    return event("completed", response=response("completed", output, usage=USAGE, **members))


def ended(stop=Stop.END):
    return [Finish(stop), UsageSeen(Usage(11, 7)), End()]


def body(*events, terminal=None):
    """What a stream says between its start and its end."""
    found, unread = decoded(CREATED, *events, terminal or completed())
    assert found[0] == START
    assert unread == []
    stop = Stop.TOOLS if any(isinstance(one, Opened) and isinstance(one.part, Call) for one in found) else Stop.END
    assert found[-3:] == ended(stop)
    return found[1:-3]


def at(index, item=None, content=None, **more):
    names = {"output_index": index, "item_id": item, "content_index": content}
    return {name: value for name, value in names.items() if value is not None} | more


def item(kind, known=None, **members):
    return {"type": kind} | ({} if known is None else {"id": known}) | members


def message(*content, known="m1", **members):
    return item("message", known, role="assistant", status="completed", content=list(content), **members)


def text(words, **members):
    return {"type": "output_text", "text": words, "annotations": []} | members


def call(arguments, known="fc_1", call_id="c1", name="f", **members):
    return item("function_call", known, call_id=call_id, name=name, arguments=arguments, **members)


def custom(words, **members):
    return item("custom_tool_call", "ctc_1", call_id="c1", name="p", input=words, **members)


def reasoning(*summary, known="rs_1", **members):
    return item("reasoning", known, summary=[{"type": "summary_text", "text": words} for words in summary], **members)


def added(index, what):
    return event("output_item.added", **at(index), item=what)


def done(index, what):
    return event("output_item.done", **at(index), item=what)


def delta(kind, index, words, known=None, **more):
    return event(f"{kind}.delta", **at(index, known), delta=words, **more)


CITED = {"type": "url_citation", "url": "https://b.example", "title": "B", "start_index": 0, "end_index": 3}
SOURCE = Citation("https://b.example", "B", 0, 3)
LOGPROB = {"token": "x", "logprob": -0.5}
ENTRY = Raw(json.dumps([LOGPROB]).encode())
SEAL = Seal("gAAAA", SealKind.ENCRYPTED, RESPONSES, id="rs_1")
MESSAGE = added(0, message(known="m1") | {"status": "in_progress"})
CALL = added(0, call(""))
SAID = [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]
CALLED = [Opened(0, Call("c1", "f", "")), Grew(0, "{}"), Closed(0)]

STREAMS = {
    "text in full": (
        [
            event("in_progress", response=response()),
            MESSAGE,
            event("content_part.added", **at(0, "m1", 0), part=text("")),
            delta("output_text", 0, "H", "m1", content_index=0, logprobs=[]),
            delta("output_text", 0, "i", "m1", content_index=0),
            event("output_text.done", **at(0, "m1", 0), text="Hi"),
            event("content_part.done", **at(0, "m1", 0), part=text("Hi")),
            done(0, message(text("Hi"))),
        ],
        [Opened(0, Text("")), Grew(0, "H"), Grew(0, "i"), Closed(0)],
    ),
    "text without announcement": ([delta("output_text", 0, "Hi", "m1"), done(0, message(text("Hi")))], SAID),
    "text without deltas": ([MESSAGE, done(0, message(text("Hi")))], SAID),
    "text in its done event only": ([event("output_text.done", **at(0, "m1", 0), text="Hi"), event("output_text.done", **at(0), text="Hi")], SAID),
    "text whose end is in the snapshot": (
        [MESSAGE, delta("output_text", 0, "H", "m1"), done(0, message(text("Hi")))],
        [Opened(0, Text("")), Grew(0, "H"), Grew(0, "i"), Closed(0)],
    ),
    "a snapshot that says it otherwise": ([MESSAGE, delta("output_text", 0, "Hi", "m1"), done(0, message(text("Hello")))], SAID),
    "text without place and numbers": (
        [added(None, message()), delta("output_text", None, "Hi", "m1"), done(None, message(text("Hi")))],
        SAID,
    ),
    "text without ids": (
        [added(0, message(known=None)), added(0, message(known=None)), delta("output_text", 0, "Hi"), done(0, message(text("Hi"), known=None))],
        SAID,
    ),
    "text without ids and places": (
        [added(None, message(known=None)), delta("output_text", None, "Hi"), done(None, message(text("Hi"), known=None))],
        SAID,
    ),
    "an id of its own in every event": (
        [MESSAGE, delta("output_text", 0, "Hi", "other"), done(0, message(text("Hi"), known="another"))],
        SAID,
    ),
    "an item said twice": ([MESSAGE, MESSAGE, delta("output_text", 0, "Hi", "m1"), *[done(0, message(text("Hi")))] * 2], SAID),
    "words after the item": ([MESSAGE, done(0, message(text("Hi"))), delta("output_text", 0, "!", "m1")], SAID),
    "no words": ([MESSAGE, delta("output_text", 0, "", "m1"), done(0, message(text("")))], []),
    "two contents": (
        [
            MESSAGE,
            delta("output_text", 0, "A", "m1", content_index=0),
            event("content_part.done", **at(0, "m1", 0), part=text("AB", annotations=[CITED])),
            delta("output_text", 0, "late", "m1", content_index=0),
            delta("output_text", 0, "C", "m1", content_index=1),
            event("content_part.done", **at(0, "m1", 2), part=text("nobody's")),
            done(0, message(text("AB", annotations=[CITED]), text("C"))),
        ],
        [
            Opened(0, Text("")),
            Grew(0, "A"),
            Grew(0, "B"),
            Cited(0, SOURCE),
            Closed(0),
            Opened(1, Text("")),
            Grew(1, "C"),
            Closed(1),
        ],
    ),
    "sources": (
        [
            MESSAGE,
            event("output_text.annotation.added", **at(0, "m1", 0), annotation=CITED, annotation_index=0),
            delta("output_text", 0, "One", "m1"),
            event("output_text.annotation.added", **at(0, "m1", 0), annotation=CITED, annotation_index=0),
            event("output_text.annotation.added", **at(0, "m1", 0), annotation={"type": "file_path"}, annotation_index=1),
            done(0, message(text("One", annotations=[CITED, CITED]))),
        ],
        [Opened(0, Text("")), Grew(0, "One"), Cited(0, SOURCE), Cited(0, SOURCE), Closed(0)],
    ),
    "log probabilities": (
        [
            MESSAGE,
            delta("output_text", 0, "x", "m1", logprobs=[LOGPROB]),
            delta("output_text", 0, "", "m1", logprobs=[LOGPROB]),
            delta("output_text", 0, "y", "m1", logprobs={"odd": 1}),
            done(0, message(text("xyz", logprobs=[LOGPROB] * 3))),
        ],
        [Opened(0, Text("")), Grew(0, "x"), Logged(0, ENTRY), Logged(0, ENTRY), Grew(0, "y"), Grew(0, "z"), Logged(0, ENTRY), Closed(0)],
    ),
    "log probabilities of a snapshot": (
        [done(0, message(text("x", logprobs=[LOGPROB]), text("y")))],
        [Opened(0, Text("")), Grew(0, "x"), Logged(0, ENTRY), Opened(1, Text("")), Grew(1, "y"), Closed(0), Closed(1)],
    ),
    "refusal": (
        [
            MESSAGE,
            delta("refusal", 0, "N", "m1", content_index=0),
            event("refusal.done", **at(0, "m1", 0), refusal="No"),
            event("content_part.done", **at(0, "m1", 0), part={"type": "refusal", "refusal": "No."}),
            done(0, message({"type": "refusal", "refusal": "No."})),
        ],
        [Opened(0, Refusal("")), Grew(0, "N"), Grew(0, "o"), Grew(0, "."), Closed(0)],
    ),
    "refusal without deltas": (
        [done(0, message({"type": "refusal", "refusal": "No."}))],
        [Opened(0, Refusal("")), Grew(0, "No."), Closed(0)],
    ),
    "function in full": (
        [
            CALL,
            delta("function_call_arguments", 0, "{", "fc_1"),
            event("function_call_arguments.done", **at(0, "fc_1"), arguments="{}"),
            done(0, call("{}")),
        ],
        [Opened(0, Call("c1", "f", "")), Grew(0, "{"), Grew(0, "}"), Closed(0)],
    ),
    "function with a namespace": (
        [done(0, call("{}", namespace="fs"))],
        [Opened(0, Call("c1", "f", "", namespace="fs")), Grew(0, "{}"), Closed(0)],
    ),
    "function named by its call alone": (
        [added(None, call("", known=None, call_id="fc_c1")), delta("function_call_arguments", None, "{}", "fc_c1")],
        [Opened(0, Call("fc_c1", "f", "")), Grew(0, "{}"), Closed(0)],
    ),
    "arguments before the name": (
        [
            added(0, call("", name="", call_id=None)),
            delta("function_call_arguments", 0, "{", "fc_1"),
            delta("function_call_arguments", 0, "}", "fc_1"),
            done(0, call("{}")),
        ],
        CALLED,
    ),
    "calls that nobody announced": (
        [
            delta("function_call_arguments", None, "{", "fc_1"),
            delta("function_call_arguments", None, "[", "fc_2"),
            delta("function_call_arguments", None, "}", "fc_1"),
            done(None, call("{}")),
            done(None, call("[", known="fc_2", call_id="c2")),
        ],
        [*CALLED, Opened(1, Call("c2", "f", "")), Grew(1, "["), Closed(1)],
    ),
    "interleaved calls": (
        [
            CALL,
            added(1, call("", known="fc_2", call_id="c2")),
            delta("function_call_arguments", 1, "[", "fc_2"),
            delta("function_call_arguments", 0, "{}", "fc_1"),
            done(0, call("{}")),
            delta("function_call_arguments", 1, "]", "fc_2"),
            done(1, call("[]", known="fc_2", call_id="c2")),
        ],
        [
            Opened(0, Call("c1", "f", "")),
            Opened(1, Call("c2", "f", "")),
            Grew(1, "["),
            Grew(0, "{}"),
            Closed(0),
            Grew(1, "]"),
            Closed(1),
        ],
    ),
    "two calls in one place": (
        [CALL, added(0, call("", known="fc_2", call_id="c2")), done(0, call("{}")), done(0, call("[]", known=None, call_id="c2"))],
        [Opened(0, Call("c1", "f", "")), Opened(1, Call("c2", "f", "")), Grew(0, "{}"), Closed(0), Grew(1, "[]"), Closed(1)],
    ),
    "another call in the place of one": (
        [CALL, done(0, call("[]", known=None, call_id="c2"))],
        # The first call's arguments never came, and the answer was not cut: it has none.
        [Opened(0, Call("c1", "f", "")), Opened(1, Call("c2", "f", "")), Grew(1, "[]"), Closed(1), Grew(0, "{}"), Closed(0)],
    ),
    "custom tool": (
        [
            added(0, custom("")),
            delta("custom_tool_call_input", 0, "a", "ctc_1"),
            event("custom_tool_call_input.done", **at(0, "ctc_1"), input="ab"),
            done(0, custom("ab")),
        ],
        [Opened(0, Call("c1", "p", "", Form.CUSTOM)), Grew(0, "a"), Grew(0, "b"), Closed(0)],
    ),
    "words of another type than the item": ([CALL, delta("custom_tool_call_input", 0, "a", "fc_1"), done(0, call("{}"))], CALLED),
    "reasoning in full": (
        [
            added(0, reasoning(encrypted_content="early")),
            event("reasoning_summary_part.added", **at(0, "rs_1"), summary_index=0),
            delta("reasoning_summary_text", 0, "A", "rs_1", summary_index=0),
            event("reasoning_summary_text.done", **at(0, "rs_1"), summary_index=0, text="A"),
            event("reasoning_summary_part.done", **at(0, "rs_1"), summary_index=0),
            delta("reasoning_summary_text", 0, "B", "rs_1", summary_index=1),
            event("reasoning_summary_text.done", **at(0, "rs_1"), summary_index=1, text="B2"),
            done(0, reasoning("A", "B2", encrypted_content="gAAAA")),
        ],
        [Opened(0, Reasoning("")), Grew(0, "A"), Grew(0, "\n\nB"), Grew(0, "2"), Sealed(0, SEAL), Closed(0)],
    ),
    "hidden reasoning": (
        [added(0, reasoning()), done(0, reasoning(encrypted_content="gAAAA"))],
        [Opened(0, Reasoning("")), Sealed(0, SEAL), Closed(0)],
    ),
    "reasoning that says nothing": ([added(0, reasoning()), done(0, reasoning())], []),
    "reasoning in words, told once": (
        [
            delta("reasoning_text", 0, "T", "rs_1", content_index=0),
            event("content_part.done", **at(0, "rs_1", 0), part={"type": "output_text", "text": "T"}),
            event("reasoning_text.done", **at(0, "rs_1", 0), text="T2"),
            delta("reasoning_summary_text", 0, "S", "rs_1", summary_index=0),
            done(0, reasoning("S", content=[{"type": "reasoning_text", "text": "T2"}])),
        ],
        [Opened(0, Reasoning("")), Grew(0, "T"), Grew(0, "2"), Closed(0)],
    ),
}


@pytest.mark.parametrize(("events", "expected"), STREAMS.values(), ids=STREAMS)
def test_a_stream_is_read(events, expected):
    assert body(*events) == expected


def test_a_terminal_snapshot_says_what_nobody_said_before():
    output = [reasoning("R"), message(text("Hi")), call("{}")]
    expected = [Opened(0, Reasoning("")), Grew(0, "R"), Closed(0), Opened(1, Text("")), Grew(1, "Hi"), Closed(1)]
    assert body(terminal=completed(*output)) == [*expected, Opened(2, Call("c1", "f", "")), Grew(2, "{}"), Closed(2)]


def test_a_terminal_snapshot_repeats_nothing():
    stream = [CALL, done(0, call("{}")), added(1, message()), delta("output_text", 1, "Hi", "m1")]
    expected = [*CALLED, Opened(1, Text("")), Grew(1, "Hi"), Closed(1)]
    assert body(*stream, terminal=completed(call("{}"), message(text("Hi")))) == expected
    assert body(*stream, terminal=completed(call("{}", known="new"), message(text("Hi"), known="new"))) == expected
    assert body(*stream, terminal=event("completed", response=response("completed", usage=USAGE) | {"output": None})) == expected


def test_what_is_not_read_is_named_once_by_its_item():
    search = item("web_search_call", "ws_1", status="completed", action={})
    cited = text("a", annotations=[{"type": "file_citation", "file_id": "f"}])
    note = {"type": "file_citation", "file_id": "f"}
    _, unread = decoded(
        CREATED,
        added(0, search),
        event("web_search_call.searching", **at(0, "ws_1")),
        event("web_search_call.completed", **at(0)),
        done(0, search),
        added(1, message()),
        delta("output_text", 1, "a", "m1"),
        event("output_text.annotation.added", **at(1, "m1", 0), annotation=note),
        done(1, message(cited, phase="commentary")),
        completed(search, message(cited, phase="commentary"), tool_usage={"web_search": {"num_requests": 1}}, moderation=None),
    )
    assert unread == ["answer:web_search_call", "answer:file_citation", "answer:message.phase", "answer:tool_usage"]
    assert set(unread) <= set(ANSWER_ROWS)


def test_an_event_of_nobody_s_is_named_once():
    assert decoded(event("audio.delta", delta="AAAA"), event("audio.delta", delta="AAAA"), {"type": "hologram"})[1] == ["answer:unknown"]


def test_a_stream_starts_with_the_first_event_of_a_response():
    assert decoded({"type": "hologram"}, b'{"type":7}')[0] == []
    assert decoded(event("queued", response=response("queued")), event("created", response=response()))[0] == [Start("resp_1", "up", 5)]
    assert decoded(delta("output_text", 0, "x"))[0][0] == Start()
    assert decoded(completed())[0] == [Start("resp_1", "up", 5), *ended()]


def test_every_response_may_have_news_of_the_model_and_the_tier():
    """OpenAI says `auto` until it has decided; a response that is none says nothing."""
    running = [event("queued", response=response("queued", service_tier="auto")), CREATED, event("in_progress", response=None), CREATED]
    found, _ = decoded(*running, completed(model="up-2", service_tier="default"))
    assert found == [Start("resp_1", "up", 5, "auto"), Told("up", "flex"), Told("up-2", "default"), *ended()]


@pytest.mark.parametrize("sign", [{"type": "keepalive", "sequence_number": 3}, {"type": "ping"}, b"[DONE]"])
def test_a_sign_of_life_says_nothing(sign):
    assert decoded(sign) == ([], [])


def test_an_event_is_named_by_its_line_where_its_data_has_no_type():
    reading = decoder()
    found = reading.feed(frame({"response": response()}, b"response.created"))
    assert list(found) == [Start("resp_1", "up", 5)]


ENDS = {
    "completed": (completed(), Stop.END),
    "with a call": (completed(call("{}")), Stop.TOOLS),
    "too long": (event("incomplete", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"}, usage=USAGE)), Stop.LENGTH),
    "too long, in a call": (
        event("incomplete", response=response("incomplete", [call("{")], incomplete_details={"reason": "max_output_tokens"}, usage=USAGE)),
        Stop.LENGTH,
    ),
    "filtered": (event("incomplete", response=response("incomplete", incomplete_details={"reason": "content_filter"}, usage=USAGE)), Stop.FILTER),
    "no reason": (event("incomplete", response=response("incomplete", usage=USAGE)), Stop.OTHER),
    "cancelled": (event("cancelled", response=response("cancelled", usage=USAGE)), Stop.OTHER),
    "cancelled, by the response in it": (event("completed", response=response("cancelled", usage=USAGE)), Stop.OTHER),
    "incomplete, by the response in it": (
        event("completed", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"}, usage=USAGE)),
        Stop.LENGTH,
    ),
    "without a status": (event("completed", response=response(None, usage=USAGE)), Stop.END),
}


@pytest.mark.parametrize(("terminal", "stop"), ENDS.values(), ids=ENDS)
def test_an_end_says_why(terminal, stop):
    assert decoded(CREATED, terminal)[0][-3:] == ended(stop)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_still_runs_has_not_finished(status):
    assert decoded(CREATED, event("completed", response=response(status, usage=USAGE)))[0] == [START, UsageSeen(Usage(11, 7)), End()]


def test_usage_is_nothing_when_it_was_not_said():
    assert decoded(CREATED, event("completed", response=response("completed")))[0] == [START, Finish(Stop.END), End()]


FAULTS = {
    "failed": (
        event("failed", response=response("failed", usage=USAGE, error={"code": "server_error", "message": "M"})),
        [UsageSeen(Usage(11, 7)), Fault(ErrorFacts("M", UpstreamDetail(code="server_error")))],
    ),
    "failed, by the response in it": (
        event("completed", response=response("failed", usage=USAGE, error={"code": "server_error", "message": "M"})),
        [UsageSeen(Usage(11, 7)), Fault(ErrorFacts("M", UpstreamDetail(code="server_error")))],
    ),
    "an error in a response without a status": (
        event("incomplete", response=response(None, error={"code": "server_error", "message": "M"})),
        [Fault(ErrorFacts("M", UpstreamDetail(code="server_error")))],
    ),
    "flat": (
        {"type": "error", "code": "rate_limit_exceeded", "message": "M", "param": None},
        [Fault(ErrorFacts("M", UpstreamDetail(code="rate_limit_exceeded")))],
    ),
    "nested": ({"type": "error", "error": {"type": "t", "message": "M"}}, [Fault(ErrorFacts("M", UpstreamDetail("t")))]),
    "an error body": ({"error": {"message": "M", "code": 429}}, [Fault(ErrorFacts("M", status=429))]),
}


@pytest.mark.parametrize(("fault", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_fault_starts_nothing(fault, expected):
    assert decoded(fault)[0] == expected
    assert decoded(CREATED, fault)[0] == [START, *expected]


UNREADABLE = {
    "no JSON": b"{",
    "text": delta("output_text", 0, {"odd": 1}),
    "arguments": event("function_call_arguments.done", **at(0), arguments={"a": 1}),
    "item": done(0, call(None)),
    "no item": event("output_item.done", **at(0)),
    "no response": event("completed"),
    "nameless call": completed(),
    "call named by nothing": done(0, call("{}", name="")),
}


@pytest.mark.parametrize("bad", UNREADABLE.values(), ids=UNREADABLE)
def test_what_a_client_acts_on_is_read_or_an_error(bad):
    reading = decoder()
    assert list(reading.feed(frame(CREATED))) == [START]
    assert list(reading.feed(frame(delta("function_call_arguments", 5, "{")))) == []
    with pytest.raises(ValueError, match=r".") as caught:
        list(reading.feed(frame(bad)))
    assert "odd" not in str(caught.value)


def test_a_second_lifecycle_adds_nothing():
    once = [CREATED, MESSAGE, delta("output_text", 0, "Hi", "m1"), done(0, message(text("Hi"))), completed(message(text("Hi")))]
    assert decoded(*once, *once)[0] == [START, *SAID, *ended(), *ended()]


@pytest.mark.parametrize("kind", OFFICIAL)
def test_every_official_event_is_known(kind):
    """None is unknown when it belongs to an item that was announced."""
    members = {"delta": "x", "text": "x", "refusal": "x", "arguments": "x", "input": "x", "response": response("completed"), "item": message()}
    annotated = {"annotation": CITED, "part": text("x"), "message": "M", "code": None}
    said = {name: value for name, value in (members | annotated).items() if name in OFFICIAL[kind]}
    _, unread = decoded(CREATED, MESSAGE, {"type": kind} | at(0, "m1", 0) | said)
    assert unread == []


CONTEXT = Context(
    request=ir.Request(turns=(), wants_seals=True), aliases={}, seal_domain="up", upstream=MESSAGES, model="m", request_id="r1", now=1_700_000_000
)
WORDS = st.text(min_size=1, max_size=6)
CALLS = st.builds(Call, st.sampled_from(["c1", "c2"]), st.just("f"), st.sampled_from(["{}", '{"a": 1.50}']), st.just(Form.FUNCTION))
TEXTS = st.builds(Text, WORDS, citations=st.sampled_from([(), (SOURCE,)]))
THOUGHTS = st.builds(Reasoning, WORDS, st.sampled_from([None, Seal("sig", SealKind.SIGNATURE, MESSAGES)]))
STOPS = st.sampled_from([Stop.END, Stop.LENGTH, Stop.FILTER])


def told(parts, size):
    for index, part in enumerate(parts):
        words = part.arguments if isinstance(part, Call) else part.text
        yield Opened(index, Call(part.id, part.name, "") if isinstance(part, Call) else type(part)(""))
        yield from (Grew(index, words[place : place + size]) for place in range(0, len(words), size))
        yield from (Cited(index, citation) for citation in getattr(part, "citations", ()))
        yield from [Sealed(index, part.seal)] if getattr(part, "seal", None) else []
        yield Closed(index)


def folded(found):
    """The parts that events tell."""
    return tuple(gathered(opened.part, [one for one in found if getattr(one, "index", None) == opened.index]) for opened in only(found, Opened))


def only(found, kind):
    return [one for one in found if isinstance(one, kind)]


def gathered(blank, own):
    words = "".join(one.text for one in only(own, Grew))
    if isinstance(blank, Call):
        return Call(blank.id, blank.name, words)
    if isinstance(blank, Text):
        return Text(words, citations=tuple(one.citation for one in only(own, Cited)))
    seal = next((one.seal for one in only(own, Sealed)), None)
    return Refusal(words) if isinstance(blank, Refusal) else Reasoning(words, seal)


@settings(max_examples=60)
@given(st.lists(st.one_of(TEXTS, THOUGHTS, CALLS, st.builds(Refusal, WORDS)), max_size=5), STOPS, st.integers(1, 4))
def test_what_the_encoder_wrote_is_what_the_unstreamed_answer_says(parts, stop, size):
    parts = [Call(f"c{index}", "f", part.arguments) if isinstance(part, Call) else part for index, part in enumerate(parts)]
    usage = Usage(11, 7, 0, 0, 0)
    writing = encoder(CONTEXT)
    frames = writing.open(Start("resp_1", "up", 5), None)
    for one in told(parts, size):
        frames += writing.part(one)
    frames += writing.close(Ending(stop, usage=usage))
    reading = decoder()
    found = [one for name, data in frames for one in reading.feed(Frame(data, name, data))]
    answer = read(write(Response(id="resp_1", model="up", created=5, parts=tuple(parts), stop=stop, usage=usage), CONTEXT))
    assert found[0] == Start(answer.id, answer.model, answer.created, answer.service_tier)
    assert folded(found) == answer.parts
    assert found[-3:] == [Finish(answer.stop), UsageSeen(answer.usage), End()]


# What only the beginning of an item says -----------------------------------------------------------------------------------------------------


def part_added(index, known, what):
    return event("content_part.added", **at(index, known, 0), part=what)


def part_done(index, known, what):
    return event("content_part.done", **at(index, known, 0), part=what)


def summary_done(words):
    return event("reasoning_summary_part.done", **at(0, "rs"), summary_index=0, part={"type": "summary_text", "text": words})


def source(known, annotation=CITED):
    return event("output_text.annotation.added", **at(0, known, 0), annotation=annotation, annotation_index=0)


@pytest.mark.parametrize("known", ["m1", "nobody", "rs_1"])
@pytest.mark.parametrize("annotation", [CITED, {"type": "file_path"}])
@pytest.mark.parametrize("whole", [True, False])
def test_an_annotation_of_no_text_is_told_or_counted(known, annotation, whole):
    """What an item's own snapshot leaves out that it is no source of is none of its text's."""
    words = delta("output_text", 0, "Hi", "m1")
    ends = [done(0, message(text("Hi", annotations=[CITED])))] if whole else []
    found, unread = decoded(CREATED, added(1, reasoning()), MESSAGE, words, *ends, source(known, annotation) | {"output_index": 9}, completed())
    counted = known != "m1" or (annotation != CITED and not whole)
    assert unread == (["answer:unknown"] if counted else [])
    assert sum(isinstance(one, Cited) for one in found) == (whole or (known, annotation) == ("m1", CITED))


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([added(0, call('{"a":1}'))], [Opened(0, Call("c1", "f", "")), Grew(0, '{"a":1}'), Closed(0)]),
        ([added(0, call(""))], [Opened(0, Call("c1", "f", "")), Grew(0, "{}"), Closed(0)]),
        ([added(0, item("function_call", "fc_1", call_id="c1", name="f"))], [Opened(0, Call("c1", "f", "")), Grew(0, "{}"), Closed(0)]),
        ([added(0, custom("x"))], [Opened(0, Call("c1", "p", "", Form.CUSTOM)), Grew(0, "x"), Closed(0)]),
        ([added(0, message(text("Hi")))], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
        ([added(0, message()), part_added(0, "m1", text("Hi"))], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
        ([added(0, message(text("Hi"))), delta("output_text", 0, "Ho", "m1")], [Opened(0, Text("")), Grew(0, "Ho"), Closed(0)]),
        ([added(0, message(text("Hi"))), done(0, message(text("Ho")))], [Opened(0, Text("")), Grew(0, "Ho"), Closed(0)]),
        ([added(0, reasoning("thought", encrypted_content="half"))], []),
        # What was never announced is an item all the same.
        ([part_added(0, "m1", text("Hi"))], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
        ([part_added(0, "m1", text(""))], []),
        ([part_added(0, "m1", text("H")), part_done(0, "m1", text("Hi"))], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
        ([part_done(0, None, text("Hi"))], [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)]),
        ([part_done(0, None, text("Hi", annotations=[CITED]))], [Opened(0, Text("")), Grew(0, "Hi"), Cited(0, SOURCE), Closed(0)]),
        ([part_done(0, "rs", {"type": "reasoning_text", "text": "hm"})], [Opened(0, Reasoning("")), Grew(0, "hm"), Closed(0)]),
        ([summary_done("hm")], [Opened(0, Reasoning("")), Grew(0, "hm"), Closed(0)]),
        (
            [delta("reasoning_summary_text", 0, "h", "rs", summary_index=0), summary_done("hm")],
            [Opened(0, Reasoning("")), Grew(0, "h"), Grew(0, "m"), Closed(0)],
        ),
        # One content in deltas, the other whole.
        (
            [MESSAGE, delta("output_text", 0, "Hi", "m1"), part_done(0, "m1", text("Ho")) | {"content_index": 1}],
            [Opened(0, Text("")), Grew(0, "Hi"), Opened(1, Text("")), Grew(1, "Ho"), Closed(0), Closed(1)],
        ),
        (
            [MESSAGE, part_added(0, "m1", text("")), delta("output_text", 0, "Hi", "m1") | {"content_index": 1}],
            [Opened(0, Text("")), Grew(0, "Hi"), Closed(0)],
        ),
        # A source before its text.
        ([source("m1"), delta("output_text", 0, "Hi", "m1")], [Opened(0, Text("")), Grew(0, "Hi"), Cited(0, SOURCE), Closed(0)]),
    ],
)
def test_an_item_of_which_nothing_else_came_has_said_all_as_it_began(events, said):
    assert body(*events) == said


def test_words_of_no_message_in_the_place_of_a_messages_are_counted():
    found, unread = decoded(CREATED, part_added(0, "m1", {"type": "reasoning_text", "text": "hm"}), completed())
    assert (found, unread) == ([START, *ended()], ["answer:unknown"])


@pytest.mark.parametrize(
    "told",
    [
        part_added(0, "m1", {"type": "output_text", "text": 1}),
        added(0, item("message", "m1", content="Hi")),
        added(0, item("function_call", "fc_1", call_id="c1", name="f", arguments={"a": 1})),
    ],
)
def test_what_only_a_beginning_says_and_nobody_can_read_is_no_answer(told):
    with pytest.raises(ValueError, match="ValidationError"):
        decoded(CREATED, told, completed())


def test_a_hosted_tool_that_was_announced_alone_is_named():
    _, unread = decoded(CREATED, added(0, item("image_generation_call", "ig", status="in_progress")), completed())
    assert unread == ["answer:image_generation_call"]


def test_reasoning_beside_the_items_is_told_once():
    """As mistral.rs says it, in the response object alone."""
    thought = [Opened(0, Reasoning("")), Grew(0, "hm"), Closed(0)]
    said = [Opened(1, Text("")), Grew(1, "Hi"), Closed(1)]
    assert body(terminal=completed(message(text("Hi")), reasoning="hm")) == [*thought, *said]
    streamed = [delta("reasoning_text", 0, "hm", "rs_1"), delta("output_text", 1, "Hi", "m1")]
    assert body(*streamed, terminal=completed(reasoning="hm")) == [*thought[:2], *said[:2], thought[2], said[2]]
    assert body(delta("output_text", 0, "Hi", "m1"), terminal=completed(reasoning={"effort": "low"})) == [
        Opened(0, Text("")), Grew(0, "Hi"), Closed(0)
    ]  # fmt: skip
