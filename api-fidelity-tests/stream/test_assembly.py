"""Between the two forms of an answer: a folded stream is the JSON answer, and an unfolded answer is a stream that says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from pydantic import TypeAdapter

from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Cited, Closed, Ending, Finish, Found, Grew, Logged, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Framing
from asgi_surface.ir import (
    Alternative,
    Call,
    Citation,
    Form,
    Image,
    Link,
    Reasoning,
    Refusal,
    Request,
    Response,
    Seal,
    SealKind,
    Search,
    Stop,
    Text,
    Usage,
)
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

SURFACES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
FILES = {str(file.parent.relative_to(file.parents[2])): file for file in (Path(__file__).parents[1] / "corpus").glob("native--*/*/upstream.*")}
ANSWERS = sorted(name for name in FILES if name.rpartition("/")[2] not in {"error", "array-error", "overloaded", "failed"})
EVENT = TypeAdapter(RawMessageStreamEvent)
THOUGHT = Seal("dGhvdWdodA==", SealKind.THOUGHT, GEMINI)
SOURCE, OTHER = Citation("https://a.example", "A", 0, 1), Citation("https://b.example")


def context(surface):
    """What a client of the surface asked, when the upstream's is the same."""
    asked = Request(turns=(), include_usage=True, stream=True, wants_seals=True)
    return Context(request=asked, aliases={}, seal_domain="up", upstream=surface, model="m", request_id="r", now=1)


def translation(surface, encoder, *, upstream=Framing.SSE, downstream=None):
    codec = CODECS[surface]
    return Translation(
        codec.decoder(),
        encoder,
        upstream=upstream,
        downstream=downstream,
        event_bytes=1 << 20,
        output_chars=1 << 20,
        eof_ends=codec.eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )


def folded(surface, body, framing=Framing.SSE):
    """The answer that a whole stream makes."""
    found = []
    one = translation(surface, Fold(lambda response: found.append(response) or b"answer"), upstream=framing)
    assert one.feed(body) + one.eof() == b"answer"
    return found[0]


def streamed(surface, response, framing=Framing.SSE):
    """The stream that says an answer to a client of the surface."""
    return translation(surface, CODECS[surface].encoder(context(surface)), downstream=framing).say(unfold(response))


# The JSON answer that goes with a stream, as the SDKs make it; the package has no part in it -----------------------------------------------


def datas(body):
    return re.findall(r"^data: (\{.*)$", body.decode().partition("data: [DONE]")[0], re.MULTILINE)


def chat_document(body):
    state = ChatCompletionStreamState()
    for data in datas(body):
        state.handle_chunk(ChatCompletionChunk.model_validate_json(data))
    return state.current_completion_snapshot.model_dump_json(exclude_none=True).encode()


def messages_document(body):
    snapshot, buffers = None, {}
    for event in map(EVENT.validate_json, [data for data in datas(body) if '"ping"' not in data]):
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return snapshot.model_dump_json(exclude_none=True).encode()


def gemini_document(body):
    """Neighbouring pieces of one kind are one part, as the API answers at once."""
    chunks = json.loads(body) if body.startswith(b"[") else [json.loads(data) for data in datas(body)]
    whole = {}
    for one in [one for chunk in chunks for one in chunk.get("candidates", ())]:
        parts = whole.get(one["index"], {"content": {"parts": []}})["content"]["parts"]
        for part in one["content"]["parts"]:
            if parts and {"functionCall", "thoughtSignature"}.isdisjoint({*parts[-1], *part}) and parts[-1].get("thought") == part.get("thought"):
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
        whole[one["index"]] = one | {"content": {"parts": parts}}
    last = chunks[-1] | ({"candidates": [*whole.values()]} if whole else {})
    return json.dumps(last, ensure_ascii=False, separators=(",", ":")).encode()


DOCUMENTS = {
    CHAT: chat_document,
    RESPONSES: lambda body: json.dumps(json.loads(datas(body)[-1])["response"], ensure_ascii=False).encode(),
    MESSAGES: messages_document,
    GEMINI: gemini_document,
}


def answer_of(name):
    """Surface and JSON answer of a stream of the corpus, the latter read."""
    surface = SURFACES[name.removeprefix("native--").partition("/")[0]]
    body = FILES[name].read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return surface, structs.replace(CODECS[surface].read(DOCUMENTS[surface](body)), unread=())


def compact(response):
    """With arguments that differ in no white space: the documents here were written anew."""
    again = [structs.replace(part, arguments=json.dumps(json.loads(part.arguments))) if isinstance(part, Call) else part for part in response.parts]
    return structs.replace(response, parts=tuple(again))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_folded_stream_is_the_json_answer(name):
    surface, answer = answer_of(name)
    framing = Framing.JSON_ARRAY if FILES[name].suffix == ".json" else Framing.SSE
    assert compact(folded(surface, FILES[name].read_bytes(), framing)) == compact(answer)


@pytest.mark.parametrize("surface", SURFACES.values())
@pytest.mark.parametrize("name", ANSWERS)
def test_an_unfolded_answer_says_the_same(grammar, name, surface):
    """On its own surface all of it; on others its words and calls. Seals come in our envelope."""
    origin, answer = answer_of(name)
    body = streamed(surface, answer)
    grammar(surface, body)
    told = folded(surface, body)
    assert said(told) == said(answer)
    counts = {name: count for name, count in known(answer.usage).items() if surface in {CHAT, GEMINI} or "audio" not in name}
    assert counts.items() <= known(told.usage).items()
    if surface == origin:
        left_out = {"usage", "parts"} | ({"stop"} if answer.stop is Stop.REFUSAL else set())  # a blocked prompt has no finish reason of its own
        assert {name: value for name, value in known(told).items() if name not in left_out and name in known(answer)} == {
            name: value for name, value in known(answer).items() if name not in left_out
        }


def known(struct):
    """What is said of a response or of its usage; OpenAI's surfaces count what was not said as 0."""
    return {name: value for name, value in ({} if struct is None else structs.asdict(struct)).items() if value is not None}


def said(response):
    """The words and the calls, in their order."""
    calls = [(part.name, json.loads(part.arguments)) for part in response.parts if isinstance(part, Call)]
    words = {kind: "".join(part.text for part in response.parts if isinstance(part, kind)) for kind in (Text, Reasoning)}
    return calls, words


# Part by part ------------------------------------------------------------------------------------------------------------------------------

WHOLE = Response(
    id="a",
    model="up",
    created=5,
    parts=(
        Reasoning("hm", THOUGHT),
        Text("hi", citations=(SOURCE, OTHER)),
        Call("c1", "f", '{"x":1}', seal=THOUGHT),
        Call("c2", "g", "", Form.CUSTOM, "ns"),
        Refusal("no"),
        Text("yo"),
        Search("s1", "who", (SOURCE, OTHER)),
        Search("s2", "why", failed=True),
    ),
    stop=Stop.STOP_SEQUENCE,
    stop_sequence="x",
    usage=Usage(3, 2),
    logprobs=Raw(b'[{"token":"h"},{"token":"i"}]'),
    service_tier="flex",
)
EVENTS = [
    Start("a", "up", 5, "flex"),
    UsageSeen(Usage(3, 2)),
    *(Opened(0, Reasoning("")), Grew(0, "hm"), Sealed(0, THOUGHT), Closed(0)),
    *(Opened(1, Text("")), Grew(1, "hi"), Cited(1, SOURCE), Cited(1, OTHER), Logged(1, Raw(b'[{"token":"h"},{"token":"i"}]')), Closed(1)),
    *(Opened(2, Call("c1", "f", "")), Sealed(2, THOUGHT), Grew(2, '{"x":1}'), Closed(2)),
    *(Opened(3, Call("c2", "g", "", Form.CUSTOM, "ns")), Closed(3)),
    *(Opened(4, Refusal("")), Grew(4, "no"), Closed(4)),
    *(Opened(5, Text("")), Grew(5, "yo"), Closed(5)),
    *(Opened(6, Search("s1", "who")), Found(6, (SOURCE, OTHER)), Closed(6)),
    *(Opened(7, Search("s2", "why")), Found(7, (), failed=True), Closed(7)),
    Finish(Stop.STOP_SEQUENCE, "x"),
]
# Further answers follow the first; what is said beside them counts for all.
SECOND = Alternative(parts=(Call("c3", "f", "{}"), Text("or", citations=(OTHER,))), stop=Stop.TOOLS, logprobs=Raw(b'[{"token":"or"}]'))
SEVERAL = structs.replace(WHOLE, more=(SECOND, Alternative(stop=Stop.FILTER)))
MORE_EVENTS = [
    *(Opened(8, Call("c3", "f", ""), 1), Grew(8, "{}"), Closed(8)),
    *(Opened(9, Text(""), 1), Grew(9, "or"), Cited(9, OTHER), Logged(9, Raw(b'[{"token":"or"}]')), Closed(9)),
    Finish(Stop.TOOLS, None, 1),
    Finish(Stop.FILTER, None, 2),
]


def test_an_answer_unfolds_in_the_order_of_a_stream():
    assert list(unfold(WHOLE)) == EVENTS
    assert list(unfold(SEVERAL)) == EVENTS + MORE_EVENTS
    picture = Image(Link("https://a.example/a.png"))
    assert list(unfold(Response(id=None, model=None, parts=(picture,)))) == [Start(), Finish(Stop.END)], "no stream has pictures"


@pytest.mark.parametrize(("events", "answer"), [(EVENTS, WHOLE), (EVENTS + MORE_EVENTS, SEVERAL)])
def test_what_was_unfolded_folds_to_itself(events, answer):
    found = []
    assert translation(CHAT, Fold(lambda response: found.append(response) or b"x")).say(events) == b"x"
    assert found == [answer]


def test_answers_may_grow_side_by_side():
    found = []
    steps = [Start(), Opened(0, Text("")), Opened(1, Text(""), 3), Grew(1, "b"), Finish(Stop.LENGTH, None, 3), Grew(0, "a"), Finish(Stop.END)]
    assert translation(CHAT, Fold(lambda response: found.append(response) or b"x")).say(steps) == b"x"
    [answer] = found
    assert (answer.parts, answer.more) == ((Text("a"),), (Alternative(parts=(Text("b"),), stop=Stop.LENGTH),))


def test_what_is_told_later_stands():
    found = []
    steps = [Start("a", "up", 5, "auto"), Told(service_tier="default"), Finish(Stop.END), Told("up-2")]
    assert translation(CHAT, Fold(lambda response: found.append(response) or b"x")).say(steps) == b"x"
    assert found == [Response(id="a", model="up-2", created=5, service_tier="default")]


LATE = {
    CHAT: (
        {"id": "c", "model": "up", "service_tier": None, "choices": [{"index": 0, "delta": {"content": "a"}}]},
        {"id": "c", "model": "up", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"id": "c", "model": "up-2", "service_tier": "default", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        "[DONE]",
    ),
    RESPONSES: (
        {"type": "response.created", "response": {"id": "r", "model": "up", "service_tier": "auto"}},
        {"type": "response.in_progress", "response": None},
        {"type": "response.completed", "response": {"id": "r", "model": "up-2", "service_tier": "default", "status": "completed", "output": []}},
    ),
    MESSAGES: (
        {"type": "message_start", "message": {"id": "m", "model": "up-2", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2, "service_tier": "standard"}},
        {"type": "message_stop"},
    ),
    GEMINI: (
        {"candidates": [{"content": {"parts": [{"text": "a"}]}, "index": 0}], "modelVersion": "up"},
        {"candidates": [{"finishReason": "STOP", "index": 0}], "modelVersion": "up-2", "usageMetadata": {"serviceTier": "standard"}},
    ),
}


@pytest.mark.parametrize("client", SURFACES.values())
@pytest.mark.parametrize("surface", LATE)
def test_the_last_word_on_tier_and_model_reaches_every_client(grammar, surface, client):
    """As its document says it: in the last chunk, the terminal's response, or the usage at the end. Chat's chunks keep their first model."""
    body = b"".join(b"data: " + (one if isinstance(one, str) else json.dumps(one)).encode() + b"\n\n" for one in LATE[surface])
    one = translation(surface, CODECS[client].encoder(context(client)), downstream=Framing.SSE)
    told = one.feed(body) + one.eof()
    grammar(client, told)
    answer = folded(surface, body)
    assert (answer.model, answer.service_tier) == ("up-2", "default")
    last = json.loads(datas(told)[-2 if client == MESSAGES else -1])
    whole = json.loads(CODECS[client].write(answer, context(client)))
    said = last.get("response", last)
    assert all(whole[name] == said[name] == "up-2" for name in MODEL.get(client, ()))
    assert [one.get("service_tier") for one in (said, said.get("usage") or {})] == [
        one.get("service_tier") for one in (whole, whole.get("usage") or {})
    ]
    assert ("answer:service_tier" in CODECS[client].unsaid(one.held, context(client))) == (client == GEMINI)


MODEL = {RESPONSES: ["model"], GEMINI: ["modelVersion"]}


def test_parts_may_grow_side_by_side_and_begin_with_words():
    found = []
    fold = Fold(lambda response: found.append(response) or b"x")
    assert fold.open(Start(), Usage(1)) == []
    for event in (Opened(0, Call("c", "f", "{")), Opened(1, Text("a")), Grew(0, "}"), Grew(1, "b"), Closed(1), Grew(1, "c")):
        assert fold.part(event) == []
    assert fold.part(Logged(1, Raw(b"[1]"))) + fold.part(Logged(1, Raw(b"[2, 3]"))) == []
    assert fold.close(Ending(Stop.TOOLS)) == [(b"", b"x")]
    assert found == [Response(id=None, model=None, parts=(Call("c", "f", "{}"), Text("abc")), stop=Stop.TOOLS, logprobs=Raw(b"[1,2,3]"))]


def test_a_failed_answer_writes_nothing():
    one = translation(CHAT, Fold(lambda response: b"never"))
    assert one.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n') + one.eof() == b""
    assert one.fault.code is Code.UPSTREAM_TRUNCATED


# Whatever an answer holds, what is written of it is grammatical ----------------------------------------------------------------------------

WORDS = st.text("aé\n", max_size=3)
PART = st.one_of(
    st.builds(Text, WORDS, citations=st.sampled_from([(), (SOURCE,), (SOURCE, OTHER)])),
    st.builds(Refusal, WORDS),
    st.builds(Reasoning, WORDS, st.none() | st.just(THOUGHT)),
    st.builds(Call, st.uuids().map(str), st.just("f"), st.sampled_from(["{}", '{"x": 1.0}']), seal=st.none() | st.just(THOUGHT)),
    st.builds(Search, st.uuids().map(str), WORDS, st.sampled_from([(), (SOURCE,), (SOURCE, OTHER)]), st.booleans()),
)
SAID = {
    "parts": st.lists(PART, max_size=5).map(tuple),
    "stop": st.sampled_from([stop for stop in Stop if stop is not Stop.ERROR]),
    "logprobs": st.none() | st.just(Raw(b'[{"token":"h","logprob":-1,"bytes":null,"top_logprobs":[]}]')),
}
ANSWER = st.builds(
    Response,
    id=st.none() | st.just("a"),
    model=st.none() | st.just("up"),
    usage=st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    more=st.lists(st.builds(Alternative, **SAID), max_size=2).map(tuple),
    **SAID,
)


@settings(max_examples=80)
@given(ANSWER)
@pytest.mark.parametrize(("surface", "framing"), [*((surface, Framing.SSE) for surface in SURFACES.values()), (GEMINI, Framing.JSON_ARRAY)])
def test_every_answer_is_told_by_the_grammar(grammar, surface, framing, answer):
    array = framing is Framing.JSON_ARRAY
    grammar(surface, streamed(surface, answer, framing), array=array)
    broken = translation(surface, CODECS[surface].encoder(context(surface)), downstream=framing)
    events = list(unfold(structs.replace(answer, more=())))
    half = broken.say(events[: len(events) // 2])
    grammar(surface, half, array=array)
    assert broken.fault.code is Code.UPSTREAM_TRUNCATED
