"""Chat Completions streams, written for clients that accumulate them with the official SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from asgi_surface import seals
from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs.base import Alias, Context, Frames
from asgi_surface.codecs.chat.decode import decoder
from asgi_surface.codecs.chat.encode import encoder
from asgi_surface.codecs.chat.read import read
from asgi_surface.codecs.chat.write import write
from asgi_surface.errors import Code, UpstreamDetail, UpstreamError
from asgi_surface.events import KINDS, Cited, Closed, Ending, Event, Finish, Found, Grew, Logged, Opened, PartEvent, Sealed, Start, UsageSeen
from asgi_surface.framing import Frame
from asgi_surface.ir import (
    Alternative,
    Call,
    Citation,
    Form,
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
from asgi_surface.lifecycle import Kind
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, Surface

START = Start("u1", "up", 7)
SEAL = Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI)


def context(*tools: Tool, upstream: Surface = MESSAGES, usage: bool = False, **aliases: Alias) -> Context:
    request = Request(turns=(), tools=tools, include_usage=usage)
    return Context(request=request, aliases=aliases, seal_domain="google", upstream=upstream, model="m", request_id="r1", now=99)


OLD = context(Tool("f", at="/functions/0"))


Grammar = Callable[..., None]


def sse(frames: Frames) -> bytes:
    """The frames as they stand in a body; the surface names no event."""
    assert {event for event, _ in frames} == {b""}
    return b"".join(b"data: " + data + b"\n\n" for _, data in frames)


def frames_of(
    grammar: Grammar, events: Iterable[PartEvent], ending: Ending | None = None, *, start: Start = START, to: Context | None = None
) -> Frames:
    """The frames of a stream, which is one by the surface's grammar."""
    writer = encoder(to or context())
    frames = [*writer.open(start, None), *(frame for event in events for frame in writer.part(event)), *writer.close(ending or Ending(Stop.END))]
    assert frames[-1] == (b"", b"[DONE]")
    grammar(CHAT, sse(frames), sound=False)
    return frames


def written(grammar: Grammar, events: Iterable[PartEvent], ending: Ending | None = None, **options: Any) -> list[Any]:
    """The chunks of a stream."""
    return [msgspec.json.decode(data) for _, data in frames_of(grammar, events, ending, **options)[:-1]]


def deltas(grammar: Grammar, events: Iterable[PartEvent], **options: Any) -> list[dict[str, Any]]:
    """What the parts' chunks and those of the end add, without the first chunk and the finish."""
    chunks = written(grammar, events, **options)
    return [chunk["choices"][0]["delta"] for chunk in chunks[1:-1]]


def test_a_plain_stream(grammar: Grammar) -> None:
    base = {"id": "u1", "object": "chat.completion.chunk", "created": 7, "model": "up", "service_tier": "flex", "usage": None}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return base | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    events = [Opened(0, Text("")), Grew(0, "é"), Grew(0, "A"), Closed(0)]
    start = Start("u1", "up", 7, "flex")
    chunks = written(grammar, events, Ending(Stop.LENGTH, usage=Usage(11, 7)), start=start, to=context(usage=True))
    assert chunks == [
        chunk({"role": "assistant", "content": None}),
        chunk({"content": ""}),
        chunk({"content": "é"}),
        chunk({"content": "A"}),
        chunk({}, "length"),
        base | {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}},
    ]
    for one in chunks:
        ChatCompletionChunk.model_validate(one)


def test_later_chunks_tell_what_is_known_by_then(grammar: Grammar) -> None:
    writer = encoder(context())
    frames = writer.open(START, None) + writer.part(Opened(0, Text("a")))
    writer.note(Start("u1", "up-2", 7, "flex"), None)
    frames += writer.part(Grew(0, "b")) + writer.close(Ending(Stop.END))
    grammar(CHAT, sse(frames))
    said = [msgspec.json.decode(data) for _, data in frames[:-1]]
    assert [(chunk["id"], chunk["model"], chunk.get("service_tier")) for chunk in said] == [("u1", "up", None)] * 2 + [("u1", "up", "flex")] * 2


def test_what_the_upstream_did_not_give(grammar: Grammar) -> None:
    (first, last) = written(grammar, [], start=Start(), to=context(usage=True))
    assert (first["id"], first["created"], first["model"]) == ("asf_r1", 99, "m")
    assert first["usage"] is None
    assert "service_tier" not in first
    # Asked for, but not counted: no number is invented.
    assert last["choices"][0]["finish_reason"] == "stop"


def test_usage_is_told_to_who_asked(grammar: Grammar) -> None:
    assert not any("usage" in chunk for chunk in written(grammar, [], Ending(Stop.END, usage=Usage(11, 7))))


def test_calls_grow_side_by_side(grammar: Grammar) -> None:
    said = deltas(
        grammar,
        [
            Opened(0, Call("c1", "f", "")),
            Opened(1, Call("c2", "p", "", Form.CUSTOM)),
            Grew(1, "fr"),
            Grew(0, "{}"),
            Grew(1, "ee"),
            Closed(1),
            Closed(0),
        ],
    )
    assert [delta["tool_calls"] for delta in said] == [
        [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 1, "id": "c2", "type": "custom", "custom": {"name": "p", "input": ""}}],
        [{"index": 1, "custom": {"input": "fr"}}],
        [{"index": 0, "function": {"arguments": "{}"}}],
        [{"index": 1, "custom": {"input": "ee"}}],
    ]


def test_a_wrapped_tool_s_text_is_said_when_it_is_whole(grammar: Grammar) -> None:
    aliases = {"p": Alias("patch", Form.CUSTOM), "ns__f": Alias("f", namespace="ns")}
    events = [Opened(0, Call("c1", "p", "")), Opened(1, Call("c2", "ns__f", "")), Grew(0, '{"input":"a'), Grew(1, "{}"), Grew(0, '\\nb"}'), Closed(0)]
    assert [delta["tool_calls"] for delta in deltas(grammar, events, to=context(**aliases))] == [
        [{"index": 0, "id": "c2", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": "{}"}}],
        [{"index": 1, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}}],
    ]


def signature(delta: dict[str, Any]) -> Seal | None:
    return seals.unwrap(delta["tool_calls"][0]["extra_content"]["google"]["thought_signature"])


def test_gemini_s_signature_stands_in_the_call_s_first_delta(grammar: Grammar) -> None:
    events = [Opened(0, Call("c1", "f", "")), Grew(0, "{}"), Sealed(0, SEAL), Closed(0)]
    (one,) = deltas(grammar, events, to=context(upstream=GEMINI))
    assert signature(one) == Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI, "google")
    assert one["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    # From elsewhere calls are live, and a signature comes when it comes.
    _, _, last = deltas(grammar, events)
    assert signature(last) == Seal("dG9r+/8=", SealKind.THOUGHT, GEMINI, "google")
    assert last["tool_calls"][0]["function"] == {"arguments": ""}


@pytest.mark.parametrize("part", [Reasoning(""), Call("c1", "f", "")])
def test_other_seals_have_no_place(grammar: Grammar, part: Reasoning | Call) -> None:
    assert "sig" not in str(deltas(grammar, [Opened(0, part), Grew(0, "{}"), Sealed(0, Seal("sig", SealKind.SIGNATURE, MESSAGES)), Closed(0)]))


def test_who_asked_with_functions_is_answered_so(grammar: Grammar) -> None:
    events = [Opened(0, Call("c1", "f", "")), Grew(0, "{"), Grew(0, "}"), Closed(0)]
    *_, delta, finish = [chunk["choices"][0] for chunk in written(grammar, events, Ending(Stop.TOOLS), to=OLD)]
    assert delta["delta"] == {"function_call": {"name": "f", "arguments": "{}"}}
    assert finish["finish_reason"] == "function_call"
    # That form has one call; more are not lost.
    more = [Opened(1, Call("c2", "f", "")), Closed(1)]
    *_, delta, finish = [chunk["choices"][0] for chunk in written(grammar, events + more, Ending(Stop.TOOLS), to=OLD)]
    assert [(call["index"], call["id"]) for call in delta["delta"]["tool_calls"]] == [(0, "c1"), (1, "c2")]
    assert finish["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("stop", "finish"),
    [(Stop.END, "tool_calls"), (Stop.TOOLS, "tool_calls"), (Stop.LENGTH, "length"), (Stop.FILTER, "content_filter"), (Stop.OTHER, "other")],
)
def test_a_cut_call_is_neither_completed_nor_called_finished(grammar: Grammar, stop: Stop, finish: str) -> None:
    *_, delta, last = [chunk["choices"][0] for chunk in written(grammar, [Opened(0, Call("c1", "f", "")), Grew(0, '{"a'), Closed(0)], Ending(stop))]
    assert delta["delta"] == {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}
    assert last["finish_reason"] == finish


def test_all_sources_come_at_once(grammar: Grammar) -> None:
    events = [Opened(0, Text("ab")), Cited(0, Citation("u")), Closed(0), Opened(1, Text("c")), Cited(1, Citation("v", "V", 0, 1)), Closed(1)]
    assert deltas(grammar, events)[-1]["annotations"] == [
        {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 2, "url": "u", "title": ""}},
        {"type": "url_citation", "url_citation": {"start_index": 2, "end_index": 3, "url": "v", "title": "V"}},
    ]


def test_an_error_is_the_last_word(grammar: Grammar) -> None:
    writer = encoder(context())
    error = UpstreamError(Code.UPSTREAM_ERROR, "gone", detail=UpstreamDetail("overloaded_error"))
    ((event, data),) = writer.fail(error)
    assert (event, msgspec.json.decode(data)["error"]["message"]) == (b"", "gone")
    grammar(CHAT, sse([(event, data)]))
    begun = [*writer.open(START, None), *writer.part(Opened(0, Text("")))]
    assert writer.fail(error) == [(event, data)]
    grammar(CHAT, sse([*begun, (event, data)]))


LONG = [Opened(0, Text("")), Grew(0, "long before"), Opened(1, Text(""), 2), Grew(1, "y"), Cited(1, Citation("u", "U", 0, 1)), Closed(1), Closed(0)]


def test_several_answers_stand_side_by_side(grammar: Grammar) -> None:
    events = [*LONG, Opened(2, Call("c1", "f", ""), 1), Logged(1, LOGPROBS), Grew(2, "{}"), Closed(2)]
    ending = Ending(Stop.END, usage=Usage(11, 7), more={2: Stop.LENGTH, 1: Stop.TOOLS, 3: Stop.FILTER})
    chunks = written(grammar, events, ending, to=context(usage=True))
    told = [(one["choices"][0]["index"], one["choices"][0]["delta"], one["choices"][0]["finish_reason"]) for one in chunks[:-1]]
    role = {"role": "assistant", "content": None}
    cited = {"start_index": 0, "end_index": 1, "url": "u", "title": "U"}
    # Numbered as they begin: the SDK puts them in a list. Offsets and calls count within their own.
    assert told == [
        (0, role, None),
        (0, {"content": ""}, None),
        (0, {"content": "long before"}, None),
        (1, role, None),
        (1, {"content": ""}, None),
        (1, {"content": "y"}, None),
        (2, role, None),
        (2, {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]}, None),
        (1, {}, None),
        (2, {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, None),
        (0, {}, "stop"),
        (2, {}, "tool_calls"),
        (1, {"annotations": [{"type": "url_citation", "url_citation": cited}]}, None),
        (1, {}, "length"),
        (3, role, None),
        (3, {}, "content_filter"),
    ]
    assert chunks[8]["choices"][0]["logprobs"] == {"content": msgspec.json.decode(LOGPROBS), "refusal": None}
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 18)


def test_a_search_is_not_said(grammar: Grammar) -> None:
    found = [Opened(0, Search("s1", "what")), Found(0, (Citation("u"),)), Grew(0, "x"), Sealed(0, SEAL), Closed(0)]
    assert deltas(grammar, [*found, Opened(1, Text("x")), Closed(1)]) == [{"content": "x"}]


def test_calls_that_never_came_are_no_end_of_an_answer(grammar: Grammar) -> None:
    assert written(grammar, [], Ending(Stop.TOOLS))[-1]["choices"][0]["finish_reason"] == "other"


@pytest.mark.parametrize("stop", [Stop.PAUSE, Stop.OTHER])
def test_the_sdk_passes_a_finish_of_no_official_word(grammar: Grammar, stop: Stop) -> None:
    body = sse(frames_of(grammar, [Opened(0, Text("x")), Closed(0)], Ending(stop)))
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body, headers={"content-type": "text/event-stream"}))
    with OpenAI(api_key="k", base_url="http://gateway/v1", http_client=httpx.Client(transport=transport)) as client:
        *_, last = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
        with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as stream:
            (choice,) = stream.get_final_completion().choices
    assert last.choices[0].finish_reason == stop.name.lower()
    assert (choice.finish_reason, choice.message.content) == (stop.name.lower(), "x")


# The laws: put together by the SDK, a stream is the whole answer; and read again, it gives the events' answer.

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
COUNTS = st.integers(0, 99)
CITED = st.lists(st.builds(Citation, WORDS, WORDS, COUNTS, COUNTS), max_size=2).map(tuple)
LOGPROBS = Raw(b'[{"token":"x","logprob":-0.10,"bytes":null,"top_logprobs":[]}]')
ARGUMENTS = st.sampled_from(['{"a": 1.0}', "{}", '{"input":"x"}', '{"a'])
FUNCTIONS = st.builds(Call, WORDS, st.sampled_from("fgp"), ARGUMENTS, seal=st.none() | st.just(SEAL))
CALLS = FUNCTIONS | st.builds(Call, WORDS, WORDS, WORDS, st.just(Form.CUSTOM))
ANY_PARTS = st.lists(
    st.builds(Text, st.just("") | WORDS, citations=CITED) | st.builds(Reasoning, st.just("") | WORDS) | st.builds(Refusal, WORDS) | CALLS, max_size=4
)
# What the surface can say in its own order.
OWN_PARTS = st.tuples(
    st.lists(st.builds(Reasoning, WORDS), max_size=1),
    st.lists(st.builds(Text, WORDS, citations=CITED), max_size=1)
    | st.tuples(st.builds(Text, WORDS), st.builds(Refusal, WORDS), CALLS, CALLS).map(list),
).map(lambda parts: [*parts[0], *parts[1]])


def responses(parts: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[Response]:
    answers = st.builds(logged, parts.map(tuple), st.sampled_from([Stop.END, Stop.LENGTH, Stop.FILTER]))
    return st.builds(
        lambda first, **facts: Response(parts=first.parts, stop=first.stop, logprobs=first.logprobs, **facts),
        answers,
        # A further answer that says nothing is numbered when it ends.
        more=st.lists(answers.filter(lambda answer: answer.parts), max_size=2).map(tuple),
        id=WORDS,
        model=st.none() | WORDS,
        created=st.none() | COUNTS,
        usage=st.none() | st.builds(Usage, COUNTS, COUNTS, *[st.none() | COUNTS] * 5),
        service_tier=st.none() | st.just("flex"),
    )


def logged(parts: tuple[Any, ...], stop: Stop) -> Alternative:
    """An answer with token entries, where it has text."""
    texts = any(isinstance(part, Text) and part.text for part in parts)
    return Alternative(parts=parts, stop=stop, logprobs=LOGPROBS if texts else None)


CONTEXTS = st.sampled_from([context(usage=True), context(upstream=GEMINI, usage=True), context(usage=True, p=Alias("q", Form.CUSTOM), f=Alias("F"))])


def streamed(grammar: Grammar, response: Response, to: Context) -> list[bytes]:
    """The data of the frames that a whole answer's events make."""
    told: list[Event] = list(unfold(response))
    start = next(event for event in told if isinstance(event, Start))
    parts = [event for event in told if isinstance(event, PartEvent)]
    stops = {choice: answer.stop for choice, answer in enumerate(response.more, 1)}
    frames = frames_of(grammar, parts, Ending(response.stop, None, response.usage, stops), start=start, to=to)
    return [data for _, data in frames]


def said(value: Any) -> Any:
    """A document without what is null: the SDK's types fill it in."""
    if isinstance(value, dict):
        return {key: said(one) for key, one in value.items() if one is not None}
    return [said(one) for one in value] if isinstance(value, list) else value


def without_places(answer: dict[str, Any]) -> dict[str, Any]:
    """The SDK keeps the deltas' indices in the calls it has put together."""
    for call in (call for choice in answer["choices"] for call in choice["message"].get("tool_calls", ())):
        call.pop("index", None)
    return answer


@settings(max_examples=40)
@given(responses(ANY_PARTS), CONTEXTS)
def test_the_sdk_puts_the_whole_answer_together(grammar: Grammar, response: Response, to: Context) -> None:
    state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
    for data in streamed(grammar, response, to)[:-1]:
        state.handle_chunk(ChatCompletionChunk.construct(**msgspec.json.decode(data)))
    put = state.current_completion_snapshot.to_dict()
    assert without_places(said(put)) == said(msgspec.json.decode(write(response, to)))


@settings(max_examples=60)
@given(responses(OWN_PARTS), CONTEXTS)
def test_reading_the_stream_gives_the_answer(grammar: Grammar, response: Response, to: Context) -> None:
    taken: list[Response] = []
    fold = Fold(lambda answer: taken.append(answer) or b"")
    reader = decoder()
    stops, usage = {}, None
    for data in streamed(grammar, response, to):
        for event in reader.feed(Frame(b"", b"", data)):
            if isinstance(event, Start):
                fold.open(event, None)
            elif isinstance(event, Finish):
                stops[event.choice] = event.stop
            elif isinstance(event, UsageSeen):
                usage = event.usage
            elif KINDS[type(event)] is Kind.PART:
                fold.part(event)
    fold.close(Ending(stops.pop(0), None, usage, stops))
    assert taken == [read(write(response, to))]


THOUGHT = [Reasoning("A"), Text("x"), Reasoning(" C"), Reasoning(""), Reasoning("D")]


@pytest.mark.parametrize(
    ("upstream", "parts", "told"),
    [
        (CHAT, THOUGHT, "A CD"),
        (CHAT, [*THOUGHT, Search("s", "q"), Reasoning("E")], "A CD\n\nE"),
        (CHAT, [Search("s", "q"), *THOUGHT], "A CD"),
        (MESSAGES, THOUGHT, "A\n\n C\n\nD"),
        (MESSAGES, [*THOUGHT, Search("s", "q"), Search("t", "r"), Reasoning("E")], "A\n\n C\n\nD\n\nE"),
        (GEMINI, [Reasoning(""), Text("x"), Reasoning("D")], "D"),
    ],
)
def test_what_stands_between_thoughts(grammar: Grammar, upstream: Surface, parts: list[Any], told: str) -> None:
    """Chat's reasoning is one text, whatever came between its deltas; a thought of another surface is a paragraph. Streamed and folded alike."""
    response, to = Response(id="u1", model="up", parts=tuple(parts)), context(upstream=upstream)
    assert msgspec.json.decode(write(response, to))["choices"][0]["message"]["reasoning_content"] == told
    said = deltas(grammar, [event for event in unfold(response) if isinstance(event, PartEvent)], to=to)
    assert "".join(delta.get("reasoning_content", "") for delta in said) == told


def test_reasoning_that_a_word_interrupts_gains_nothing(grammar: Grammar) -> None:
    """Neither in a fold of the stream nor in the stream itself."""
    reader, to = decoder(), context(upstream=CHAT)
    pieces = [{"reasoning_content": "A"}, {"content": "B"}, {"reasoning_content": "C", "content": "D"}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in pieces]
    events = [event for one in chunks for event in reader.feed(Frame(b"", b"", msgspec.json.encode(one))) if isinstance(event, PartEvent)]
    fold = Fold(lambda response: write(response, to))
    for event in events:
        fold.part(event)
    ((_, body),) = fold.close(Ending(Stop.END))
    message = msgspec.json.decode(body)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("AC", "BD")
    said = deltas(grammar, events, to=to)
    assert "".join(delta.get("reasoning_content", "") for delta in said) == "AC"
