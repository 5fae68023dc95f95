"""Whole answers of the Messages surface: read from an upstream, and written to a client, construct by construct. The official SDK judges what is
written, and reading what was written gives the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anthropic.types import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.messages.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.messages.read import read
from asgi_surface.codecs.messages.searches import own
from asgi_surface.codecs.messages.write import unsaid, write
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Alternative, Call, Citation, Form, Reasoning, Refusal, Response, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.losses import LEFT
from asgi_surface.members import parse
from asgi_surface.soundness import flaw
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"

ASKED = ir.Request(turns=())
SIGNED = Seal("sig==", SealKind.SIGNATURE, MESSAGES)
REDACTED = Seal("data==", SealKind.REDACTED, MESSAGES)
SEALED = Seal("gAAAA", SealKind.ENCRYPTED, RESPONSES, id="rs_1")
THOUGHT = Seal("dGhvdWdodA==", SealKind.THOUGHT, GEMINI)


def context(request=ASKED, aliases=(), **members):
    facts = {"seal_domain": "up", "upstream": CHAT, "model": "m", "request_id": "r1", "now": 1_700_000_000}
    return Context(request=request, aliases=dict(aliases), **facts, **members)


def answer(*content, stop="end_turn", **members):
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": list(content), "stop_reason": stop}
    return json.dumps(said | {"stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 7}} | members).encode()


def text(words, **members):
    return {"type": "text", "text": words} | members


def written(*parts, **members):
    """The body a client is written. The official class takes it strictly."""
    asked = members.pop("context", context())
    body = write(Response(**{"id": "msg_1", "model": "up", "parts": parts} | members), asked)
    Message.model_validate_json(body, strict=True)
    return body


def said(*parts, **members):
    return json.loads(written(*parts, **members))


SOURCE = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "..", "encrypted_index": "I"}
READ_BLOCKS = {
    "text": (text("Hi"), [Text("Hi")]),
    "no words": (text(""), []),
    "no citations": (text("Hi", citations=None), [Text("Hi")]),
    "a source": (text("A says.", citations=[SOURCE]), [Text("A says.", citations=(Citation("https://a.example", "A"),))]),
    "a source without title": (text("A", citations=[SOURCE | {"title": None}]), [Text("A", citations=(Citation("https://a.example"),))]),
    "thinking": ({"type": "thinking", "thinking": "T", "signature": "sig=="}, [Reasoning("T", SIGNED)]),
    "thinking not shown": ({"type": "thinking", "thinking": "", "signature": "sig=="}, [Reasoning("", SIGNED)]),
    "thinking not signed": ({"type": "thinking", "thinking": "T"}, [Reasoning("T")]),
    "no thinking": ({"type": "thinking", "thinking": "", "signature": ""}, []),
    "redacted": ({"type": "redacted_thinking", "data": "data=="}, [Reasoning("", REDACTED)]),
    "call": ({"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}, [Call("t1", "f", '{"a": 1}')]),
    "call without arguments": ({"type": "tool_use", "id": "t1", "name": "f", "input": {}}, [Call("t1", "f", "{}")]),
}


@pytest.mark.parametrize(("block", "parts"), READ_BLOCKS.values(), ids=READ_BLOCKS)
def test_a_block_is_read(block, parts):
    found = read(answer(block))
    assert list(found.parts) == parts
    assert found.unread == ()


def test_arguments_keep_their_text():
    body = answer({"type": "tool_use", "id": "t", "name": "f", "input": {}}).replace(b"{}", b'{"id":19876543210987654321, "y":1.0,"z":-0}')
    assert read(body).parts == (Call("t", "f", '{"id":19876543210987654321, "y":1.0,"z":-0}'),)


CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
DIRECT = {"type": "direct"}
BEYOND = {
    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
    "inference_geo": "us",
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    "speed": "fast",
    "iterations": [{"type": "message", "input_tokens": 1}],
    "fallback_credit": {"status": {"type": "redeemed"}},
}
NOTHING_BEYOND = {
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "inference_geo": "not_available",
    "server_tool_use": {"web_search_requests": 0},
    "speed": "standard",
    "iterations": None,
    "service_tier": "standard",
}
UNREAD = {
    "hosted tool": (
        {"content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "web_search_tool_result", "content": []}]},
        ("answer:server_tool_use", "answer:web_search_tool_result"),
    ),
    "newer block": ({"content": [{"type": "hologram\r\nx-evil: 1"}, {"type": 7}]}, ("answer:unknown", "answer:unknown")),
    "citations": (
        {"content": [text("a", citations=[{"type": "char_location", "document_index": 0}, {"type": "web_search_result_location"}, 3])]},
        ("answer:char_location", "answer:web_search_result_location", "answer:unknown"),
    ),
    "what a call says": (
        {"content": [CALL | {"toolset_name": "s", "caller": {"type": "code_execution_20250825", "tool_id": "c"}}, CALL | {"caller": DIRECT}]},
        ("answer:tool_use.caller", "answer:tool_use.toolset_name"),
    ),
    "members": (
        {"container": {"id": "c"}, "context_management": {"applied_edits": [{"type": "x"}]}, "input_transformations": [{"type": "x"}]},
        ("answer:container", "answer:context_management", "answer:input_transformations"),
    ),
    "members that say nothing": (
        {"container": None, "diagnostics": {"cache_miss_reason": None}, "context_management": {"applied_edits": []}, "input_transformations": []},
        (),
    ),
    "what a refusal says": (
        {"stop_details": {"type": "refusal", "category": "bio", "explanation": None, "fallback_credit_token": "t", "recommended_model": "m"}},
        ("answer:stop_details.category", "answer:stop_details.fallback_credit_token", "answer:stop_details.recommended_model"),
    ),
    "usage": ({"usage": BEYOND}, tuple(f"usage:{name}" for name in BEYOND)),
    "usage that says nothing": ({"usage": NOTHING_BEYOND}, ()),
    "a tier of its own": ({"usage": {"service_tier": "batch"}}, ("usage:service_tier.batch",)),
    "a newer tier": ({"usage": {"service_tier": "warp\r\nx-evil: 1"}}, ("answer:unknown",)),
    "no tier": ({"usage": {"service_tier": {}}}, ()),
}


@pytest.mark.parametrize(("members", "unread"), UNREAD.values(), ids=UNREAD)
def test_what_is_not_read_is_named_by_the_table(members, unread):
    found = read(answer(**members))
    assert found.unread == unread
    assert set(unread) <= set(ANSWER_ROWS)


READ_STOPS = {
    "end_turn": ("end_turn", [text("a")], Stop.END),
    "end_turn with a call": ("end_turn", [CALL], Stop.TOOLS),
    "tool_use": ("tool_use", [CALL], Stop.TOOLS),
    "max_tokens with a call": ("max_tokens", [CALL], Stop.LENGTH),
    "context window": ("model_context_window_exceeded", [], Stop.LENGTH),
    "pause_turn": ("pause_turn", [], Stop.PAUSE),
    "compaction": ("compaction", [], Stop.PAUSE),
    "refusal": ("refusal", [], Stop.REFUSAL),
    "newer": ("solar_flare", [text("a")], Stop.OTHER),
}


@pytest.mark.parametrize(("reason", "content", "stop"), READ_STOPS.values(), ids=READ_STOPS)
def test_the_finish_is_read(reason, content, stop):
    assert read(answer(*content, stop=reason)).stop is stop


def test_the_stop_sequence_is_read():
    found = read(answer(text("a"), stop="stop_sequence", stop_sequence="END"))
    assert (found.stop, found.stop_sequence) == (Stop.STOP_SEQUENCE, "END")


def test_a_refusal_s_explanation_is_its_words():
    found = read(answer(text("par"), stop="refusal", stop_details={"type": "refusal", "category": None, "explanation": "Not that."}))
    assert found.parts == (Text("par"), Refusal("Not that."))
    assert found.stop is Stop.REFUSAL


@pytest.mark.parametrize("content", [[], [text("I look it up.")], [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]])
def test_an_answer_that_stopped_for_a_call_and_has_none_is_no_answer(content):
    found = flaw(read(answer(*content, stop="tool_use")))
    assert found is not None
    assert found.code is Code.UPSTREAM_BAD_RESPONSE
    assert flaw(read(answer(*content, stop="pause_turn"))) is None


def test_the_facts_of_an_answer_are_read():
    used = {"input_tokens": 3, "cache_read_input_tokens": 75, "cache_creation_input_tokens": 20, "output_tokens": 30, "service_tier": "standard"}
    found = read(answer(usage=used | {"output_tokens_details": {"thinking_tokens": 9}}))
    assert (found.id, found.model, found.created, found.service_tier) == ("msg_1", "up", None, "default")
    assert found.usage == Usage(98, 30, 75, 20, 9)


def test_absent_facts_stay_absent():
    assert read(b'{"content": [], "stop_reason": "end_turn"}') == Response(id=None, model=None)


BROKEN = {
    "no JSON": b"{",
    "no content": b'{"stop_reason": "end_turn"}',
    "a block that is no object": answer(7),
    "text that is none": answer(text(None)),
    "a call without name": answer({"type": "tool_use", "id": "t", "input": {}}),
    "a call without input": answer({"type": "tool_use", "id": "t", "name": "f"}),
    "a call whose input is no object": answer({"type": "tool_use", "id": "t", "name": "f", "input": "{}"}),
    "no finish": answer(stop=None),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_cannot_be_read_is_none(body):
    with pytest.raises(ValueError):  # noqa: PT011  -- the contract of a codec; the words are for nobody
        read(body)


def thinking(words, seal):
    return {"type": "thinking", "thinking": words, "signature": seals.wrap(seal, "up")}


def use(name="f", identity="c1", **arguments):
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


WRITTEN = {
    "text": ([Text("Hi"), Text("")], [text("Hi")]),
    "a source that no search found": ([Text("Hi", citations=(Citation("u"),))], [text("Hi")]),
    "order": (
        [Text("one"), Call("c1", "f", '{"a":"1"}'), Text("two"), Call("c2", "f", '{"a":"2"}')],
        [text("one"), use(a="1"), text("two"), use(identity="c2", a="2")],
    ),
    "words without token": ([Reasoning("R"), Text("A")], [thinking("R", Seal("R", SealKind.TEXT, CHAT)), text("A")]),
    "sealed elsewhere": ([Reasoning("S1\n\nS2", SEALED), Text("x")], [thinking("S1\n\nS2", SEALED), text("x")]),
    "a token without words": ([Reasoning("", SEALED)], [thinking("", SEALED)]),
    "redacted": ([Reasoning("", REDACTED)], [{"type": "redacted_thinking", "data": seals.wrap(REDACTED, "up")}]),
    "no reasoning": ([Reasoning("")], []),
    "a call's seal": ([Call("c1", "f", "{}", seal=THOUGHT)], [thinking("", structs.replace(THOUGHT, id="c1")), use()]),
    "no arguments": ([Call("c1", "f", "")], [use()]),
    "minted id": ([Call("call_0", "f", "{}", minted=True)], [use(identity="asf_call_0_r1")]),
    "alias": ([Call("c1", "short", "{}")], [use("a much longer name")]),
    "what the surface cannot say": ([ir.Image(ir.Inline("image/png", "aGk="))], []),
}


@pytest.mark.parametrize(("parts", "content"), WRITTEN.values(), ids=WRITTEN)
def test_parts_are_written_in_order(parts, content):
    assert said(*parts, context=context(aliases={"short": Alias("a much longer name")}))["content"] == content


def test_arguments_are_written_in_their_text():
    assert b'"input":{"id": 19876543210987654321,"y":1.0,"z":-0}' in written(Call("c", "f", '{"id": 19876543210987654321,"y":1.0,"z":-0}'))


@pytest.mark.parametrize("seal", [None, SEALED])
def test_hidden_thinking_keeps_its_token_or_its_words_in_the_envelope(seal):
    hidden = context(ir.Request(turns=(), effort=ir.Effort(adaptive=True, summary="omitted")))
    (block,) = said(Reasoning("R", seal), context=hidden)["content"]
    assert block == thinking("", seal or Seal("R", SealKind.TEXT, CHAT))


CUTS = [Stop.LENGTH, Stop.FILTER, Stop.REFUSAL, Stop.OTHER, Stop.PAUSE]
HALF = {
    "half": Call("c", "f", '{"a": "par'),
    "none": Call("c", "f", ""),
}


@pytest.mark.parametrize("stop", CUTS)
@pytest.mark.parametrize("call", HALF.values(), ids=HALF)
def test_half_a_call_is_left_out_of_a_cut_answer_wherever_it_stands(call, stop):
    parts = (call, Text("a"), Call("c1", "f", '{"a":"1"}'), call)
    answered = Response(id="i", model="m", parts=parts, stop=stop)
    assert json.loads(write(answered, context()))["content"] == [text("a"), use(a="1")]
    assert unsaid(answered, context()) == {"answer:half_call"}
    assert unsaid(answered, context(stream=True)) == frozenset()


@pytest.mark.parametrize("stop", [Stop.TOOLS, Stop.LENGTH])
def test_a_call_of_free_text_is_an_error(stop):
    with pytest.raises(UpstreamError) as caught:
        written(Call("c", "p", "{}", Form.CUSTOM), stop=stop)
    assert caught.value.code is Code.UPSTREAM_BAD_RESPONSE


A, B = Citation("https://a.example", "A"), Citation("https://b.example")
FOUND = Search("ws_1", 'who "is" it', (A, B))


def envelope(title, url):
    return seals.wrap(Seal(f"{title}\n{url}", SealKind.TEXT, CHAT), "up")


def result(title, url):
    return {"type": "web_search_result", "url": url, "title": title, "encrypted_content": envelope(title, url)}


def location(title, url):
    return {"type": "web_search_result_location", "url": url, "title": title, "cited_text": "", "encrypted_index": envelope(title or "", url)}


def searched(content, identity="asf_ws_1", query='who "is" it'):
    asked = {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {"query": query}}
    return [asked, {"type": "web_search_tool_result", "tool_use_id": identity, "content": content}]


SEARCHES = {
    "found": ([FOUND], searched([result("A", "https://a.example"), result("", "https://b.example")]), set()),
    "found nothing": ([Search("ws_1", 'who "is" it')], searched([]), set()),
    "failed": (
        [Search("ws_1", 'who "is" it', failed=True)],
        searched({"type": "web_search_tool_result_error", "error_code": "unavailable"}),
        set(),
    ),
    "cited": (
        [FOUND, Text("x", citations=(A, B))],
        [
            *searched([result("A", "https://a.example"), result("", "https://b.example")]),
            text("x", citations=[location("A", "https://a.example"), location(None, "https://b.example")]),
        ],
        set(),
    ),
    "cited, and more": (
        [Search("ws_1", 'who "is" it', (A,)), Text("x", citations=(B, A))],
        [*searched([result("A", "https://a.example")]), text("x", citations=[location("A", "https://a.example")])],
        {"answer:citations"},
    ),
    "cited before it was found": (
        [Text("x", citations=(A,)), Search("ws_1", 'who "is" it', (A,))],
        [text("x"), *searched([result("A", "https://a.example")])],
        {"answer:citations"},
    ),
}


@pytest.mark.parametrize(("parts", "content", "left"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_is_told_as_the_surface_s_own(parts, content, left):
    found = said(*parts, usage=Usage(1, 2))
    assert found["content"] == content
    assert found["usage"]["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}
    assert unsaid(Response(id="i", model="m", parts=tuple(parts)), context()) == left


def test_searches_are_counted_in_a_usage_only():
    assert said(FOUND, FOUND, usage=Usage(1, 2))["usage"]["server_tool_use"]["web_search_requests"] == 2
    assert said(FOUND)["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert "server_tool_use" not in said(Text("x"), usage=Usage(1, 2))["usage"]


def read_back(block):
    return own(parse(json.dumps(block).encode()))


@pytest.mark.parametrize("parts", [parts for parts, _, _ in SEARCHES.values()], ids=SEARCHES)
def test_a_search_of_ours_is_known_again(parts):
    blocks = [block for block in said(*parts)["content"] if block["type"] != "text"]
    assert list(map(read_back, blocks)) == [True, True]


OTHERS = {
    "another block": text("asf_"),
    "the provider's call": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    "a call without id": {"type": "server_tool_use", "id": 7},
    "the provider's result": {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "EqgfCioIARgB"}]},
    "the provider's failure": {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"error_code": "unavailable"}},
    "one result of the provider's": {
        "type": "web_search_tool_result",
        "tool_use_id": "asf_1",
        "content": [result("A", "a"), {"encrypted_content": "x"}],
    },
    "a seal of reasoning": {"type": "web_search_tool_result", "tool_use_id": "asf_1", "content": [{"encrypted_content": seals.wrap(SEALED, "up")}]},
    "no envelope": {"type": "web_search_tool_result", "tool_use_id": "asf_1", "content": [{"url": "u"}]},
    "no object": {"type": "web_search_tool_result", "tool_use_id": "asf_1", "content": ["x"]},
}


@pytest.mark.parametrize("block", OTHERS.values(), ids=OTHERS)
def test_another_s_block_is_not_ours(block):
    assert not read_back(block)


def test_what_is_nested_too_deeply_is_not_ours():
    deep = Raw(b"[" * 100_000 + b"]" * 100_000)
    assert not own({"type": Raw(b'"web_search_tool_result"'), "content": deep})


ENDS = {
    Stop.END: "end_turn",
    Stop.STOP_SEQUENCE: "stop_sequence",
    Stop.PAUSE: "pause_turn",
    Stop.TOOLS: "tool_use",
    Stop.REFUSAL: "refusal",
    Stop.FILTER: "refusal",
    Stop.LENGTH: "max_tokens",
}


@pytest.mark.parametrize("stop", ENDS)
def test_the_finish_is_written(stop):
    found = said(Text("par"), stop=stop)
    assert found["stop_reason"] == ENDS[stop]
    assert found.get("stop_details") is None


LOST = {
    "sources": ({"parts": (Text("a", citations=(Citation("u"),)), Text("b"))}, {"answer:citations"}),
    "log-probabilities": ({"parts": (Text("a"),), "logprobs": Raw(b"[]")}, {"answer:logprobs"}),
    "seals have a place": ({"parts": (Text("a"), Reasoning("r", SEALED), Call("c", "f", "{}", seal=THOUGHT))}, set()),
    "further answers": ({"more": (Alternative(parts=(Text("b"),)),)}, {"answer:choices"}),
    "a tier": ({"service_tier": "flex"}, {"answer:service_tier"}),
    "a tier that has a word": ({"service_tier": "priority"}, set()),
    "sound": ({"usage": Usage(9, 9, audio_input=1)}, {"usage:audio"}),
    "numbers that have a place": ({"usage": Usage(9, 9, 1, 1, 1, 0, 0), "stop_sequence": "END"}, set()),
    "half a call": ({"parts": (Call("c", "f", "{"),), "stop": Stop.LENGTH}, {"answer:half_call"}),
}


@pytest.mark.parametrize(("members", "left"), LOST.values(), ids=LOST)
def test_what_has_no_place_is_named(members, left):
    assert set(unsaid(Response(**{"id": "i", "model": "m"} | members), context())) == left
    assert left <= set(LEFT)


def test_an_end_without_official_word_is_no_success():
    body = write(Response(id="i", model="m", stop=Stop.OTHER), context())
    assert Message.construct(**json.loads(body)).stop_reason == "other"


@pytest.mark.parametrize(("stop", "reason"), [(Stop.END, "end_turn"), (Stop.FILTER, "refusal"), (Stop.LENGTH, "max_tokens")])
def test_words_of_refusal_are_text_and_the_reason_stays_the_upstream_s(stop, reason):
    found = said(Refusal("No."), stop=stop)
    assert (found["content"], found["stop_reason"]) == ([text("No.")], reason)


USED = {
    "unknown": (None, {"input_tokens": 0, "output_tokens": 0}),
    "plain": (Usage(11, 7), {"input_tokens": 11, "output_tokens": 7}),
    "cached": (
        Usage(100, 30, 75, None, 20),
        {"input_tokens": 25, "cache_read_input_tokens": 75, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}},
    ),
    "cache written": (
        Usage(100, 30, 75, 20),
        {"input_tokens": 5, "cache_read_input_tokens": 75, "cache_creation_input_tokens": 20, "output_tokens": 30},
    ),
    "more cached than read": (Usage(10, 3, 16), {"input_tokens": 0, "cache_read_input_tokens": 16, "output_tokens": 3}),
}


@pytest.mark.parametrize(("usage", "expected"), USED.values(), ids=USED)
def test_usage_is_told_in_the_surface_s_arithmetic(usage, expected):
    assert said(Text("x"), usage=usage)["usage"] == expected


@pytest.mark.parametrize(("tier", "expected"), [("default", "standard"), ("priority", "priority"), ("flex", None), (None, None)])
def test_a_service_tier_is_told_where_the_surface_has_a_word(tier, expected):
    assert said(service_tier=tier)["usage"].get("service_tier") == expected


def test_the_envelope_has_the_upstream_s_facts_or_the_gateway_s():
    found = said(Text("x"), stop=Stop.STOP_SEQUENCE, stop_sequence="END")
    assert [found[name] for name in ("id", "type", "role", "model", "stop_sequence")] == ["msg_1", "message", "assistant", "up", "END"]
    assert [said(id=None, model=None)[name] for name in ("id", "model", "stop_sequence")] == ["asf_msg_r1", "m", None]


WORDS = st.text(min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-zA-Z_]{1,8}", fullmatch=True)
OBJECTS = st.dictionaries(WORDS, st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=2).map(json.dumps)
SIGNATURES = st.builds(Seal, WORDS, st.just(SealKind.SIGNATURE), st.just(MESSAGES))
PARTS = st.one_of(
    st.builds(Text, WORDS),
    st.builds(Call, NAMES, NAMES, OBJECTS),
    st.builds(Reasoning, st.text(max_size=9), SIGNATURES),
    st.builds(Reasoning, st.just(""), st.builds(Seal, WORDS, st.just(SealKind.REDACTED), st.just(MESSAGES))),
)
COUNTS = st.integers(0, 1 << 40)


@st.composite
def answers(draw):
    """Answers of which each construct is exact on the surface. Cached tokens are a part of the input."""
    parts = draw(st.lists(PARTS, max_size=4).map(tuple))
    calls = any(isinstance(part, Call) for part in parts)
    rest, cached, cache_write = draw(COUNTS), draw(st.none() | COUNTS), draw(st.none() | COUNTS)
    return Response(
        id=draw(NAMES),
        model=draw(NAMES),
        parts=parts,
        stop=draw(st.sampled_from([Stop.TOOLS if calls else Stop.END, Stop.LENGTH, Stop.PAUSE, Stop.STOP_SEQUENCE, Stop.REFUSAL])),
        stop_sequence=draw(st.none() | WORDS),
        usage=Usage(rest + (cached or 0) + (cache_write or 0), draw(COUNTS), cached, cache_write, draw(st.none() | COUNTS)),
        service_tier=draw(st.sampled_from([None, "default", "priority"])),
    )


def opened(response):
    """An answer of ours as its client knows it: the envelopes taken off, which named us."""

    def open_part(part):
        if not isinstance(part, Reasoning):
            return part
        inside = seals.unwrap(part.seal.token)
        assert inside is not None
        assert inside.domain == "up"
        return structs.replace(part, seal=structs.replace(inside, domain=""))

    return structs.replace(response, parts=tuple(map(open_part, response.parts)))


@settings(max_examples=60, deadline=None, database=None)
@given(answers())
def test_reading_what_was_written_gives_the_answer(response):
    body = write(response, context())
    Message.model_validate_json(body, strict=True)
    assert opened(read(body)) == response


def uncited(part):
    """A citation needs the provider's own index, so it is not said to a client of this surface."""
    return structs.replace(part, citations=()) if isinstance(part, Text) else part


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings of shared/ are not beside this checkout")
def test_every_recorded_answer_comes_back():  # pragma: no cover -- needs the recordings
    index = json.loads((RECORDED / "index.json").read_text()) if RECORDED.is_dir() else []
    files = [entry["file"] for entry in index if entry["surface"] == "messages" and entry["status"] == 200 and not entry["sse"]]
    answered = {name: read(json.dumps(json.loads((RECORDED / name).read_text())["response"]["body"]).encode()) for name in files}
    assert len(answered) >= 10
    for name, response in answered.items():
        again = opened(read(write(response, context())))
        assert again == structs.replace(response, parts=tuple(map(uncited, response.parts)), unread=()), name
