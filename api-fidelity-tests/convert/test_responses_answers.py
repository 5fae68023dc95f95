"""Whole answers of the Responses surface: read from an upstream, and written to a client, construct by construct. The official SDK judges what is
written, and reading what was written gives the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs
from openai.types.responses import Response as OfficialResponse

from asgi_surface import ir, seals
from asgi_surface.codecs.base import Alias, Context
from asgi_surface.codecs.responses.answer_verdicts import ANSWER_ROWS
from asgi_surface.codecs.responses.read import read
from asgi_surface.codecs.responses.write import unsaid, write
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Alternative, Call, Citation, Form, Pick, Reasoning, Refusal, Response, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.losses import LEFT, held
from asgi_surface.surfaces import GEMINI, MESSAGES, RESPONSES

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"

ASKED = ir.Request(turns=(), wants_seals=True)
SEALED = Seal("gAAAA", SealKind.ENCRYPTED, RESPONSES, id="rs_1")
SIGNED = Seal("sig==", SealKind.SIGNATURE, MESSAGES)
THOUGHT = Seal("dGhvdWdodA==", SealKind.THOUGHT, GEMINI)


def context(request=ASKED, aliases=()):
    return Context(request=request, aliases=dict(aliases), seal_domain="up", upstream=MESSAGES, model="m", request_id="r1", now=1_700_000_000)


def answer(*output, status="completed", **members):
    return json.dumps({"id": "resp_1", "object": "response", "created_at": 1, "model": "up", "status": status, "output": output} | members).encode()


def message(*content, **members):
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": list(content)} | members


def text(words, **members):
    return {"type": "output_text", "text": words, "annotations": []} | members


def official(body):
    """The official class takes it strictly, but for details that nobody counted."""
    found = json.loads(body)
    if found["usage"]:
        ours = found["usage"]
        read_details = {"cached_tokens": 0, "cache_write_tokens": 0} | ours.get("input_tokens_details", {})
        found["usage"] = {"output_tokens_details": {"reasoning_tokens": 0}} | ours | {"input_tokens_details": read_details}
    OfficialResponse.model_validate_json(json.dumps(found), strict=True)


def said(*parts, **members):
    """What a client is written, and has parsed."""
    given_context = members.pop("context", context())
    body = write(Response(**{"id": "resp_1", "model": "up", "parts": parts} | members), given_context)
    official(body)
    return json.loads(body)


ALIASES = {
    "flat": Alias("read", namespace="fs"),
    "wrapped": Alias("patch", Form.CUSTOM),
    "both": Alias("patch", Form.CUSTOM, "fs"),
}
CITED = {"type": "url_citation", "url": "https://b.example", "title": "B", "start_index": 0, "end_index": 3}
LOGPROB = {"token": "x", "logprob": -0.10, "bytes": [120], "top_logprobs": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"id": 2512292042121000001}'}
READ_ITEMS = {
    "text": (message(text("Hi")), [Text("Hi")]),
    "several parts": (message(text("One. "), text("Two.")), [Text("One. "), Text("Two.")]),
    "no words": (message(text("")), []),
    "citation": (message(text("One", annotations=[CITED])), [Text("One", citations=(Citation("https://b.example", "B", 0, 3),))]),
    "citation without place": (
        message(text("One", annotations=[{"type": "url_citation", "url": "u", "title": None}])),
        [Text("One", citations=(Citation("u"),))],
    ),
    "no annotations": (message(text("One", annotations=None)), [Text("One")]),
    "refusal": (message({"type": "refusal", "refusal": "No."}), [Refusal("No.")]),
    "function": (CALL, [Call("c1", "f", '{"id": 2512292042121000001}')]),
    "namespace": (CALL | {"namespace": "fs"}, [Call("c1", "f", '{"id": 2512292042121000001}', namespace="fs")]),
    "custom": (
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin", "namespace": "fs"},
        [Call("c2", "patch", "*** Begin", Form.CUSTOM, "fs")],
    ),
    "summary": (
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "S1"}, {"type": "summary_text", "text": "S2"}]},
        [Reasoning("S1\n\nS2")],
    ),
    "words": (
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "S"}], "content": [{"type": "reasoning_text", "text": "T"}, {"text": 1}]},
        [Reasoning("T")],
    ),
    "sealed": ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}, [Reasoning("", SEALED)]),
    "sealed without id": ({"type": "reasoning", "encrypted_content": "g"}, [Reasoning("", Seal("g", SealKind.ENCRYPTED, RESPONSES))]),
    "empty reasoning": ({"type": "reasoning", "id": "rs_1", "summary": []}, []),
}


@pytest.mark.parametrize(("item", "parts"), READ_ITEMS.values(), ids=READ_ITEMS)
def test_an_item_is_read(item, parts):
    found = read(answer(item))
    assert list(found.parts) == parts
    assert found.unread == ()


UNREAD = {
    "hosted tool": ([{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}], ("answer:web_search_call",)),
    "newer item": ([{"type": "hologram\r\nx-evil: 1"}, {"type": 7}], ("answer:unknown", "answer:unknown")),
    "newer part": ([message({"type": "output_smell"})], ("answer:unknown",)),
    "annotations": (
        [message(text("a", annotations=[{"type": "file_citation", "file_id": "f"}, {"type": "url_citation"}, 3]))],
        ("answer:file_citation", "answer:url_citation", "answer:unknown"),
    ),
    "phase": ([message(text("a"), phase="commentary")], ("answer:message.phase",)),
}


@pytest.mark.parametrize(("output", "unread"), UNREAD.values(), ids=UNREAD)
def test_what_is_not_read_is_named_by_the_table(output, unread):
    found = read(answer(*output))
    assert found.unread == unread
    assert set(unread) <= set(ANSWER_ROWS)


def test_members_that_say_more_are_named_where_they_say_something():
    more = {
        "moderation": {"input": {"type": "error", "code": "c"}},
        "conversation": {"id": "conv_1"},
        "input_transformations": [{"id": "rs_1", "action": "removed"}],
        "prompt_cache_diagnostics": {"type": "cache_hit"},
        "tool_usage": {"image_gen": {"input_tokens": 0}, "web_search": {"num_requests": 2}},
    }
    none = {
        "moderation": None,
        "conversation": {},
        "input_transformations": [],
        "prompt_cache_diagnostics": None,
        "tool_usage": {"image_gen": {"input_tokens": 0, "input_tokens_details": {"image_tokens": 0}}, "web_search": {"num_requests": 0}},
    }
    assert sorted(read(answer(**more)).unread) == [f"answer:{name}" for name in sorted(more)]
    assert read(answer(**none, completed_at=1, instructions="i", tools=[{"type": "web_search"}], object="response")).unread == ()


@pytest.mark.parametrize(("ttl", "unread"), [(0, ()), (7, ("usage:input_tokens_details.cache_write_tokens_details",))])
def test_how_long_a_cache_lives_is_more_than_other_surfaces_say(ttl, unread):
    details = {"cached_tokens": 0, "cache_write_tokens": ttl, "cache_write_tokens_details": {"ttl_12h_tokens": 0, "ttl_30m_tokens": ttl}}
    found = read(answer(usage={"input_tokens": 9, "input_tokens_details": details, "output_tokens": 1}))
    assert (found.usage.cache_write, found.unread) == (ttl, unread)


def test_what_lies_deeper_than_anything_official_says_something():
    deep = 0
    for _ in range(9):
        deep = [deep]
    assert read(answer(moderation=deep)).unread == ("answer:moderation",)


MARKS = [
    ({"async": False, "caller": {"type": "direct"}}, ()),
    ({"caller": None}, ()),
    ({"async": True, "caller": {"type": "program", "caller_id": "p"}}, ("async", "caller")),
]


@pytest.mark.parametrize(("marks", "names"), MARKS)
@pytest.mark.parametrize(("kind", "said"), [("function_call", "arguments"), ("custom_tool_call", "input")])
def test_marks_of_a_call_are_named(kind, said, marks, names):
    found = read(answer({"type": kind, "call_id": "c", "name": "n", said: "{}"} | marks))
    assert found.unread == tuple(f"answer:{kind}.{name}" for name in names)


READ_STOPS = {
    "completed": ({}, [message(text("a"))], Stop.END),
    "calls": ({}, [CALL], Stop.TOOLS),
    "length": ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, [], Stop.LENGTH),
    "length with a call": ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, [CALL], Stop.LENGTH),
    "filter": ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, [], Stop.FILTER),
    "newer reason": ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, [CALL], Stop.OTHER),
    "no reason": ({"status": "incomplete", "incomplete_details": None}, [], Stop.OTHER),
    "newer status": ({"status": "cancelled"}, [], Stop.OTHER),
}


@pytest.mark.parametrize(("members", "output", "stop"), READ_STOPS.values(), ids=READ_STOPS)
def test_the_finish_is_read(members, output, stop):
    assert read(answer(*output, **members)).stop is stop


def test_the_facts_of_an_answer_are_read():
    used = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2}, "output_tokens": 7}
    found = read(answer(message(text("a")), usage=used | {"output_tokens_details": {"reasoning_tokens": 3}}, service_tier="default", created_at=1.5))
    assert (found.id, found.model, found.created, found.service_tier) == ("resp_1", "up", 1, "default")
    assert found.usage == Usage(11, 7, 5, 2, 3)


def test_reasoning_beside_the_items_is_read_first():
    assert read(answer(message(text("a")), reasoning="R")).parts == (Reasoning("R"), Text("a"))
    assert read(answer(reasoning={"effort": "low", "summary": None})).parts == ()


def test_absent_facts_stay_absent():
    found = read(b'{"status": "completed", "output": []}')
    assert found == Response(id=None, model=None)


def test_log_probabilities_keep_their_text_in_the_order_of_the_answer():
    body = answer(message(text("a", logprobs=[LOGPROB]), text("b", logprobs={"odd": 1}), text("c", logprobs=[LOGPROB])))
    assert body.count(b"-0.1,") == 2
    found = read(body.replace(b"-0.1,", b"-0.10,"))
    assert found.logprobs is not None
    assert bytes(found.logprobs).count(b'"logprob": -0.10,') == 2


BROKEN = {
    "no JSON": b"{",
    "no output": b'{"status": "completed"}',
    "output of another shape": answer().replace(b"[]", b"{}"),
    "an item that is no object": answer(7),
    "text that is none": answer(message(text(7))),
    "a message without content": answer({"type": "message"}),
    "a refusal without words": answer(message({"type": "refusal"})),
    "a call without name": answer({"type": "function_call", "call_id": "c", "arguments": "{}"}),
    "a custom call without input": answer({"type": "custom_tool_call", "call_id": "c", "name": "n"}),
    "failed": answer(status="failed", error={"code": "server_error", "message": "m"}),
    "still running": answer(status="in_progress"),
    "waiting": answer(status="queued"),
    "no finish": answer(status=None),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_cannot_be_read_is_none(body):
    with pytest.raises(ValueError):  # noqa: PT011  -- the contract of a codec; the words are for nobody
        read(body)


WRITTEN = {
    "text": ([Text("Hi")], [message(text("Hi", logprobs=[]), id="asf_msg_r1_0")]),
    "text and refusal are one message": (
        [Text("a"), Refusal("No."), Text("")],
        [message(text("a", logprobs=[]), {"type": "refusal", "refusal": "No."}, id="asf_msg_r1_0")],
    ),
    "order": (
        [Text("one"), Call("c1", "f", "{}"), Text("two")],
        [
            message(text("one", logprobs=[]), id="asf_msg_r1_0"),
            {"id": "asf_fc_r1_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{}"},
            message(text("two", logprobs=[]), id="asf_msg_r1_2"),
        ],
    ),
    "citations": (
        [Text("One", citations=(Citation("u", "T", 1, 2), Citation("v")))],
        [
            message(
                text(
                    "One",
                    logprobs=[],
                    annotations=[
                        {"type": "url_citation", "url": "u", "title": "T", "start_index": 1, "end_index": 2},
                        {"type": "url_citation", "url": "v", "title": "", "start_index": 0, "end_index": 3},
                    ],
                ),
                id="asf_msg_r1_0",
            )
        ],
    ),
    "no arguments": (
        [Call("c1", "f", "")],
        [{"id": "asf_fc_r1_0", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{}"}],
    ),
    "minted id": (
        [Call("call_0", "f", "{}", minted=True)],
        [{"id": "asf_fc_r1_0", "type": "function_call", "status": "completed", "call_id": "asf_call_0_r1", "name": "f", "arguments": "{}"}],
    ),
    "custom": (
        [Call("c1", "p", "***", Form.CUSTOM, "ns")],
        [{"id": "asf_ctc_r1_0", "type": "custom_tool_call", "call_id": "c1", "name": "p", "input": "***", "namespace": "ns"}],
    ),
    "reasoning": (
        [Reasoning("R")],
        [{"id": "asf_rs_r1_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "R"}]}],
    ),
    "sealed reasoning": (
        [Reasoning("", SIGNED)],
        [{"id": "asf_rs_r1_0", "type": "reasoning", "summary": [], "encrypted_content": seals.wrap(SIGNED, "up")}],
    ),
    "reasoning of the surface": (
        [Reasoning("", SEALED)],
        [{"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": seals.wrap(SEALED, "up")}],
    ),
    "a call's seal": (
        [Call("c1", "f", "{}", seal=THOUGHT)],
        [
            {"id": "asf_rs_r1_0", "type": "reasoning", "summary": [], "encrypted_content": seals.wrap(structs.replace(THOUGHT, id="c1"), "up")},
            {"id": "asf_fc_r1_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{}"},
        ],
    ),
    "a search": (
        [Text("a"), Search("s1", "q", (Citation("https://a.example", "A"), Citation("https://b.example"))), Text("b")],
        [
            message(text("a", logprobs=[])) | {"id": "asf_msg_r1_0"},
            {
                "id": "asf_ws_r1_1",
                "type": "web_search_call",
                "status": "completed",
                "action": {
                    "type": "search",
                    "query": "q",
                    "sources": [{"type": "url", "url": "https://a.example"}, {"type": "url", "url": "https://b.example"}],
                },
            },
            message(text("b", logprobs=[])) | {"id": "asf_msg_r1_2"},
        ],
    ),
    "a search that failed": (
        [Search("s1", "q", failed=True)],
        [{"id": "asf_ws_r1_0", "type": "web_search_call", "status": "failed", "action": {"type": "search", "query": "q"}}],
    ),
    "nothing": ([Reasoning("")], []),
    "what the surface cannot say": ([ir.Image(ir.Inline("image/png", "aGk="))], []),
}


@pytest.mark.parametrize(("parts", "output"), WRITTEN.values(), ids=WRITTEN)
def test_parts_are_written_in_order(parts, output):
    assert said(*parts)["output"] == output


def test_seals_are_only_for_those_who_ask():
    plain = context(ir.Request(turns=()))
    found = said(Reasoning("S", SIGNED), Reasoning("", SIGNED), Call("c1", "f", "{}", seal=THOUGHT), context=plain)["output"]
    assert [item["type"] for item in found] == ["reasoning", "function_call"]
    assert "encrypted_content" not in found[0]


def test_a_search_is_done_however_the_answer_ends():
    assert said(Search("s1", "q"), stop=Stop.LENGTH)["output"][0]["status"] == "completed"


HELD = {
    "answer:citations": (Response(id=None, model=None, parts=(Text("a", citations=(Citation("u"),)),)), False),
    "answer:logprobs": (Response(id=None, model=None, parts=(Text("a"),), logprobs=Raw(b"[]")), False),
    "answer:logprobs of no text": (Response(id=None, model=None, parts=(Refusal("No."),), logprobs=Raw(b"[]")), True),
    "answer:seals": (Response(id=None, model=None, parts=(Reasoning("", SIGNED),)), False),
    "answer:seals unasked": (Response(id=None, model=None, parts=(Reasoning("", SIGNED),)), True),
    "answer:stop_sequence": (Response(id=None, model=None, stop_sequence="!"), True),
    "answer:choices": (Response(id=None, model=None, more=(Alternative(),)), True),
    "answer:half_call": (Response(id=None, model=None, parts=(Call("c", "flat", "{"), Text("a")), stop=Stop.LENGTH), False),
    "answer:half_call wrapped": (Response(id=None, model=None, parts=(Call("c", "wrapped", "{"),), stop=Stop.LENGTH), True),
    "answer:service_tier": (Response(id=None, model=None, service_tier="flex"), False),
    "usage:cache_write": (Response(id=None, model=None, usage=Usage(cache_write=3)), False),
    "usage:audio": (Response(id=None, model=None, usage=Usage(audio_output=3)), True),
}


@pytest.mark.parametrize("name", HELD)
def test_what_is_not_written_is_named(name):
    response, lost = HELD[name]
    construct = name.split()[0]
    assert construct in held(response)
    asked = ir.Request(turns=()) if "unasked" in name else ASKED
    assert unsaid(response, context(asked, ALIASES)) == ({construct} if lost else set())


def test_every_loss_is_looked_at():
    assert {name.split()[0] for name in HELD} == set(LEFT)


ENDS = {
    Stop.END: ("completed", None),
    Stop.STOP_SEQUENCE: ("completed", None),
    Stop.TOOLS: ("completed", None),
    Stop.LENGTH: ("incomplete", {"reason": "max_output_tokens"}),
    Stop.FILTER: ("incomplete", {"reason": "content_filter"}),
    Stop.REFUSAL: ("incomplete", {"reason": "content_filter"}),
}


@pytest.mark.parametrize("stop", ENDS)
def test_the_finish_is_written(stop):
    found = said(Text("a"), Call("c1", "f", '{"a": 1}'), stop=stop)
    status, details = ENDS[stop]
    assert (found["status"], found["incomplete_details"], found["error"]) == (status, details, None)
    assert [item["status"] for item in found["output"]] == ["completed", status]


@pytest.mark.parametrize("stop", [Stop.LENGTH, Stop.FILTER, Stop.REFUSAL])
def test_every_half_call_of_a_cut_answer_is_incomplete(stop):
    found = said(Call("c1", "f", "{}"), Call("c2", "f", '{"a": "par'), Call("c3", "f", ""), Call("c4", "f", ""), stop=stop)["output"]
    told = [(item["status"], item["arguments"]) for item in found]
    assert told == [("completed", "{}"), ("incomplete", '{"a": "par'), ("completed", "{}"), ("incomplete", "")]


def test_words_of_refusal_are_a_whole_answer():
    found = said(Refusal("No."), stop=Stop.REFUSAL)
    assert (found["status"], found["incomplete_details"], found["output"][0]["status"]) == ("completed", None, "completed")


@pytest.mark.parametrize(("stop", "reason"), [(Stop.PAUSE, "pause"), (Stop.OTHER, "other")])
def test_an_end_without_official_word_is_no_success(stop, reason):
    body = json.loads(write(Response(id="i", model="m", parts=(Reasoning("R"),), stop=stop), context()))
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert "status" not in body["output"][0]
    assert OfficialResponse.construct(**body).incomplete_details.reason == reason


def test_a_failed_answer_is_an_error():
    with pytest.raises(UpstreamError) as caught:
        said(stop=Stop.ERROR)
    assert caught.value.code is Code.UPSTREAM_ERROR


RESTORED = {
    "namespace": (Call("c", "flat", "{}"), {"type": "function_call", "name": "read", "namespace": "fs", "arguments": "{}"}),
    "custom": (Call("c", "wrapped", '{"input":"NEW\\nline \\"z\\""}'), {"type": "custom_tool_call", "name": "patch", "input": 'NEW\nline "z"'}),
    "both": (Call("c", "both", '{"input":""}'), {"type": "custom_tool_call", "name": "patch", "namespace": "fs", "input": ""}),
    "no alias": (Call("c", "fs__read", "{}"), {"type": "function_call", "name": "fs__read", "arguments": "{}"}),
}


@pytest.mark.parametrize(("call", "expected"), RESTORED.values(), ids=RESTORED)
def test_tools_have_the_client_s_names_and_forms(call, expected):
    found = said(call, context=context(aliases=ALIASES))["output"][0]
    assert {name: found.get(name) for name in expected} == expected
    assert ("namespace" in found) is ("namespace" in expected)


@pytest.mark.parametrize("arguments", ['{"input": "half', '{"text": "a"}', '{"input": 7}'])
def test_a_wrapped_call_that_cannot_be_unwrapped_is_an_error_unless_cut(arguments):
    call = Call("c", "wrapped", arguments)
    with pytest.raises(UpstreamError) as caught:
        said(call, context=context(aliases=ALIASES))
    assert caught.value.code is Code.UPSTREAM_BAD_RESPONSE
    for parts in ([Text("a"), call], [call, Text("a")]):
        assert [item["status"] for item in said(*parts, stop=Stop.LENGTH, context=context(aliases=ALIASES))["output"]] == ["incomplete"]


def test_the_envelope_has_the_upstream_s_facts():
    found = said(Text("x"), created=5, service_tier="flex", logprobs=Raw(json.dumps([LOGPROB]).encode()), usage=Usage(11, 7, 5, None, 3))
    assert (found["id"], found["model"], found["created_at"], found["service_tier"], found["object"]) == ("resp_1", "up", 5, "flex", "response")
    assert found["output"][0]["content"][0]["logprobs"] == [LOGPROB]
    assert found["usage"] == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 18,
    }


COUNTED = {
    "nothing": (Usage(), {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
    "totals": (Usage(11, 7), {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}),
    "zeros": (
        Usage(1, 1, 0, 0, 0),
        {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    ),
    "writes alone": (
        Usage(1, 1, None, 4),
        {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4}, "output_tokens": 1, "total_tokens": 2},
    ),
}


@pytest.mark.parametrize(("usage", "told"), COUNTED.values(), ids=COUNTED)
def test_details_that_nobody_counted_are_absent_and_the_official_parser_does_not_miss_them(usage, told):
    found = said(Text("x"), usage=usage)["usage"]
    assert found == told
    parsed = OfficialResponse.construct(**json.loads(write(Response(id="r", model="m", usage=usage), context()))).usage
    assert (parsed.total_tokens, parsed.output_tokens_details is None) == (found["total_tokens"], usage.reasoning is None)


def test_what_the_upstream_did_not_say_is_the_gateway_s_or_absent():
    found = said(id=None, model=None)
    assert (found["id"], found["model"], found["created_at"], found["usage"]) == ("asf_resp_r1", "m", 1_700_000_000, None)
    assert "service_tier" not in found


def tool(name, **members):
    return ir.Tool(name, **members)


ECHOES = {
    "nothing said": (
        ir.Request(turns=()),
        {
            "background": False,
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_logprobs": 0,
            "top_p": None,
            "truncation": "disabled",
            "user": None,
        },
    ),
    "scalars": (
        ir.Request(
            turns=(),
            settings=ir.Settings(
                max_tokens=Raw(b"64"),
                temperature=Raw(b"0.50"),
                top_p=Raw(b"1.0"),
                metadata=Raw(b'{"k":"v"}'),
                parallel=False,
                user="u",
                safety_id="s",
                cache_key="k",
                top_logprobs=Raw(b"2"),
                verbosity="low",
            ),
        ),
        {
            "max_output_tokens": 64,
            "temperature": 0.5,
            "top_p": 1.0,
            "metadata": {"k": "v"},
            "parallel_tool_calls": False,
            "user": "u",
            "safety_identifier": "s",
            "prompt_cache_key": "k",
            "top_logprobs": 2,
            "text": {"format": {"type": "text"}, "verbosity": "low"},
        },
    ),
    "instructions": (
        ir.Request(
            turns=(
                ir.Turn(ir.Role.SYSTEM, (Text("Be brief."),), at="/instructions"),
                ir.Turn(ir.Role.SYSTEM, (Text("Later."),), at="/input/0"),
            )
        ),
        {"instructions": "Be brief."},
    ),
    "effort": (ir.Request(turns=(), effort=ir.Effort("low", summary="auto")), {"reasoning": {"effort": "low", "summary": "auto"}}),
    "no effort": (ir.Request(turns=(), effort=ir.Effort(off=True)), {"reasoning": {"effort": "none", "summary": None}}),
    "some JSON": (ir.Request(turns=(), format=ir.Format(None)), {"text": {"format": {"type": "json_object"}}}),
    "a schema": (
        ir.Request(turns=(), format=ir.Format(Raw(b'{"type":"object"}'), "n", "d", strict=True)),
        {"text": {"format": {"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"}, "strict": True}}},
    ),
    "tools": (
        ir.Request(
            turns=(),
            tools=(
                tool("f", description="d", schema=Raw(b'{"type":"object"}'), strict=True),
                tool("p", form=Form.CUSTOM),
                tool("q", form=Form.CUSTOM, grammar=Raw(b'{"type":"grammar","syntax":"lark","definition":"x"}')),
                tool("a", namespace="fs", namespace_description="files"),
                tool("b", namespace="fs", namespace_description="files"),
                tool("c", namespace="gs"),
            ),
        ),
        {
            "tools": [
                {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
                {"type": "custom", "name": "p", "description": None, "format": {"type": "text"}},
                {"type": "custom", "name": "q", "description": None, "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
                {
                    "type": "namespace",
                    "name": "fs",
                    "description": "files",
                    "tools": [
                        {"type": "function", "name": "a", "description": None, "parameters": None, "strict": False},
                        {"type": "function", "name": "b", "description": None, "parameters": None, "strict": False},
                    ],
                },
                {
                    "type": "namespace",
                    "name": "gs",
                    "description": "",
                    "tools": [{"type": "function", "name": "c", "description": None, "parameters": None, "strict": False}],
                },
            ]
        },
    ),
    "required": (ir.Request(turns=(), choice=ir.Choice(Pick.REQUIRED)), {"tool_choice": "required"}),
    "forced": (ir.Request(turns=(), choice=ir.Choice(Pick.REQUIRED, ("f",))), {"tool_choice": {"type": "function", "name": "f"}}),
    "forced custom": (
        ir.Request(turns=(), tools=(tool("p", form=Form.CUSTOM),), choice=ir.Choice(Pick.REQUIRED, ("p",))),
        {"tool_choice": {"type": "custom", "name": "p"}},
    ),
    "allowed": (
        ir.Request(turns=(), choice=ir.Choice(Pick.AUTO, ("f",))),
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}},
    ),
}


@pytest.mark.parametrize(("request_said", "expected"), ECHOES.values(), ids=ECHOES)
def test_the_request_is_repeated_as_the_client_said_it(request_said, expected):
    found = said(Text("a"), context=context(request_said))
    assert {name: found[name] for name in expected} == expected


WORDS = st.text(min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-zA-Z_]{1,8}", fullmatch=True)
OBJECTS = st.dictionaries(WORDS, st.integers(), max_size=2).map(json.dumps)
SEALS = st.builds(Seal, WORDS, st.just(SealKind.ENCRYPTED), st.just(RESPONSES), id=st.one_of(st.just(""), NAMES))
PARTS = st.one_of(
    st.builds(Text, WORDS, citations=st.lists(st.builds(Citation, WORDS, WORDS, st.integers(0, 9), st.integers(0, 9)), max_size=2).map(tuple)),
    st.builds(Refusal, WORDS),
    st.builds(Call, NAMES, NAMES, OBJECTS, namespace=st.none() | NAMES),
    st.builds(Call, NAMES, NAMES, st.text(max_size=9), st.just(Form.CUSTOM), st.none() | NAMES),
    st.builds(Reasoning, WORDS, st.none() | SEALS),
    st.builds(Reasoning, st.just(""), SEALS),
)
COUNTS = st.integers(0, 1 << 40)


@st.composite
def answers(draw):
    """Answers of which each construct is exact on the surface."""
    parts = draw(st.lists(PARTS, max_size=4).map(tuple))
    calls = any(isinstance(part, Call) for part in parts)
    stops = [Stop.TOOLS if calls else Stop.END, Stop.LENGTH, Stop.FILTER]
    spoken = any(isinstance(part, Text) for part in parts)
    return Response(
        id=draw(NAMES),
        model=draw(NAMES),
        created=draw(COUNTS),
        parts=parts,
        stop=draw(st.sampled_from(stops)),
        usage=draw(st.none() | st.builds(Usage, COUNTS, COUNTS, COUNTS, st.none() | COUNTS, st.none() | COUNTS)),
        logprobs=Raw(json.dumps([LOGPROB], separators=(",", ":")).encode()) if spoken and draw(st.booleans()) else None,
        service_tier=draw(st.none() | st.sampled_from(["default", "flex"])),
    )


def opened(response):
    """An answer of ours as its client knows it: the envelopes taken off, which named us. Items without id of their own got one."""

    def open_part(part):
        if not isinstance(part, Reasoning) or part.seal is None:
            return part
        inside = seals.unwrap(part.seal.token)
        assert inside is not None
        assert inside.domain == "up"
        return structs.replace(part, seal=structs.replace(inside, domain=""))

    return structs.replace(response, parts=tuple(map(open_part, response.parts)), logprobs=response.logprobs and bytes(response.logprobs))


@settings(max_examples=60, deadline=None, database=None)
@given(answers())
def test_reading_what_was_written_gives_the_answer(response):
    body = write(response, context())
    official(body)
    assert opened(read(body)) == structs.replace(response, logprobs=response.logprobs and bytes(response.logprobs))


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings of shared/ are not beside this checkout")
def test_every_recorded_answer_comes_back():  # pragma: no cover -- needs the recordings
    index = json.loads((RECORDED / "index.json").read_text()) if RECORDED.is_dir() else []
    files = [entry["file"] for entry in index if entry["surface"] == "responses" and entry["status"] == 200 and not entry["sse"]]
    bodies = {name: json.loads((RECORDED / name).read_text())["response"]["body"] for name in files}
    answered = {name: read(json.dumps(body).encode()) for name, body in bodies.items() if body["object"] == "response"}
    assert len(answered) >= 10
    for name, response in answered.items():
        again = opened(read(write(response, context())))
        assert again == structs.replace(response, unread=(), logprobs=response.logprobs and bytes(response.logprobs)), name
