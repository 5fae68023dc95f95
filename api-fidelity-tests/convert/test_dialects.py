"""Each engine's row, in what a converted request says to such a server, and proofs of reasoning that OpenRouter and its like take back."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from asgi_surface import seals
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context, Dialect, Target
from asgi_surface.codecs.chat.lower_reasoning import asked, is_own
from asgi_surface.converters import convert
from asgi_surface.engines import ENGINES, dialect
from asgi_surface.errors import RequestError
from asgi_surface.framing import Frame
from asgi_surface.ir import Effort, Reasoning, Request, Seal, SealKind, Text
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature

SCHEMA = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "additionalProperties": False}
THOUGHT = seals.wrap(Seal("I think.", SealKind.TEXT, CHAT), "up")
ASKED = {
    "model": "m",
    "max_tokens": 99,
    "stream": True,
    "system": "Be brief.",
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "tools": [{"name": "f", "input_schema": SCHEMA, "strict": True}],
    "messages": [
        {"role": "user", "content": "Hi."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I think.", "signature": THOUGHT},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"k": "v"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "I see.", "signature": THOUGHT}, {"type": "text", "text": "Done."}]},
        {"role": "user", "content": "And?"},
    ],
}
NINE = "4838a0c25"


def converted(body, engine=None, *, client=MESSAGES, upstream=CHAT, domain="up", **said):
    """A client's body as the upstream gets it, and the constructs that are said another way."""
    source, codec = CODECS[client], CODECS[upstream]
    target = Target(model="m", dialect=dialect(engine, upstream, said), seal_domain=domain, features=frozenset({Feature.STREAMING}))
    members = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in body.items()}
    lowered = convert(source, source.lift(members, stream=bool(body.get("stream"))), codec, target, ()).lowered
    return {name: json.loads(bytes(raw)) for name, raw in lowered.members.items()}, {mention.construct for mention in lowered.emulated}


def summed(body):
    """What a dialect can change in a Chat body."""
    system, _, called, result, answered, _ = body["messages"]
    limit = next(name for name in ("max_tokens", "max_completion_tokens") if name in body)
    switches = {name: body[name] for name in ("reasoning_effort", "chat_template_kwargs", "thinking", "reasoning") if name in body}
    thoughts = {name: called[name] for name in ("reasoning_content", "reasoning", "reasoning_details") if name in called}
    assert result["tool_call_id"] == called["tool_calls"][0]["id"]
    assert answered["content"] == "Done."
    strict, usage = "strict" in body["tools"][0]["function"], "stream_options" in body
    return system["role"], limit, switches, thoughts or called["content"], result["tool_call_id"], strict, usage


EFFORT, SWITCH = {"reasoning_effort": "high"}, {"chat_template_kwargs": {"enable_thinking": True}}
CONTENT, NAMED = {"reasoning_content": "I think."}, {"reasoning": "I think."}
OFFICIAL = ("system", "max_completion_tokens", EFFORT, CONTENT, "toolu_1", True, True)
COMPATIBLE = ("system", "max_tokens", EFFORT, CONTENT, "toolu_1", True, True)
SAID = {
    "openai": OFFICIAL,
    "azure-openai": OFFICIAL,
    "vllm": ("system", "max_completion_tokens", SWITCH, NAMED, "toolu_1", True, True),
    "sglang": ("system", "max_completion_tokens", SWITCH, CONTENT, "toolu_1", True, True),
    "llama-cpp": ("system", "max_tokens", SWITCH, CONTENT, "toolu_1", True, True),
    "ollama": ("system", "max_tokens", EFFORT, NAMED, "toolu_1", False, True),
    "lm-studio": COMPATIBLE,
    "deepseek": ("system", "max_tokens", {"thinking": {"type": "enabled"}} | EFFORT, CONTENT, "toolu_1", False, True),
    "openrouter": (
        *("system", "max_tokens", {"reasoning": {"effort": "high"}}),
        *({"reasoning_details": [{"type": "reasoning.text", "text": "I think."}]}, "toolu_1", True, True),
    ),
    "groq": ("system", "max_completion_tokens", EFFORT, NAMED, "toolu_1", True, True),
    "mistral": ("system", "max_tokens", EFFORT, [{"type": "thinking", "thinking": [{"type": "text", "text": "I think."}]}], NINE, True, False),
    "xai": OFFICIAL,
    "openai-compatible": COMPATIBLE,
}


def test_every_engine_that_speaks_chat_says_what_its_row_says():
    assert {name: summed(converted(ASKED, name)[0]) for name, row in ENGINES.items() if CHAT in row.values} == SAID


WORDS = [
    ({"type": "tool", "name": "g"}, ["g"], "required"),
    ({"type": "any"}, ["f", "g"], "required"),
    ({"type": "auto"}, ["f", "g"], "auto"),
]


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
@pytest.mark.parametrize(("choice", "names", "word"), WORDS)
def test_llama_cpp_is_offered_only_the_tools_that_may_be_called(choice, names, word, upstream):
    """It reads a choice by name as `auto`."""
    two = ASKED | {"tools": [{"name": name, "input_schema": SCHEMA} for name in ("f", "g")], "tool_choice": choice}
    body, emulated = converted(two, "llama-cpp", upstream=upstream)
    assert ([tool.get("function", tool)["name"] for tool in body["tools"]], body["tool_choice"]) == (names, word)
    assert ("choice:offered" in emulated) == (len(names) == 1)
    assert "choice:offered" not in converted(two, upstream=upstream)[1]


def test_llama_cpp_is_offered_what_a_choice_of_some_allows():
    tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("f", "g", "h")]
    some = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": name} for name in ("h", "f")]}
    body, emulated = converted({"model": "m", "input": "hi", "tools": tools, "tool_choice": some}, "llama-cpp", client=RESPONSES)
    assert ([tool["function"]["name"] for tool in body["tools"]], body["tool_choice"]) == (["f", "h"], "auto")
    assert "choice:offered" in emulated


def test_a_choice_of_a_tool_that_is_not_there_is_the_servers_to_refuse():
    body, emulated = converted(ASKED | {"tool_choice": {"type": "tool", "name": "gone"}}, "llama-cpp")
    assert (body["tool_choice"], "choice:offered" in emulated) == ({"type": "function", "function": {"name": "gone"}}, False)


def test_a_tool_that_is_not_held_to_its_schema_is_told():
    assert "tool:strict" in converted(ASKED, "deepseek")[1]
    assert "tool:strict" not in converted(ASKED, "openai")[1]
    wanted = {"messages": ASKED["messages"][:1], "max_tokens": 9, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    for engine, told in (("openai", False), ("deepseek", True)):
        body, emulated = converted(wanted, engine)
        assert (body["response_format"]["json_schema"].get("strict"), "format:strict" in emulated) == (None if told else True, told)


EFFORTS = [
    ("thinking", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
    ("thinking", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"thinking": {"type": "enabled"}, "reasoning_effort": "medium"}),
    ("reasoning", {"thinking": {"type": "disabled"}}, {"reasoning": {"effort": "none"}}),
    ("reasoning", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"reasoning": {"max_tokens": 2000}}),
    ("template", {"thinking": {"type": "disabled"}}, {"chat_template_kwargs": {"thinking": False}}),
]


@pytest.mark.parametrize(("style", "wish", "said"), EFFORTS)
def test_efforts_in_a_server_s_words(style, wish, said):
    body, _ = converted({"messages": ASKED["messages"][:1], "max_tokens": 4000} | wish, reasoning_style=style, template_switch="thinking")
    assert {name: value for name, value in body.items() if name not in {"messages", "model", "max_completion_tokens"}} == said


def test_an_effort_that_the_model_chooses_switches_reasoning_on_only():
    free = Effort(adaptive=True, at="/thinking")
    assert asked(free, Dialect(reasoning_style="reasoning"), []) == {"reasoning": {"enabled": True}}
    assert asked(free, Dialect(reasoning_style="thinking"), []) == {"thinking": {"type": "enabled"}}


@pytest.mark.parametrize(("replay", "turns"), [("never", []), ("tools", [1]), ("always", [1, 3])])
def test_whose_reasoning_is_said_again(replay, turns):
    body, _ = converted(ASKED, reasoning_replay=replay)
    history = body["messages"][1:]
    assert [index for index, message in enumerate(history) if "reasoning_content" in message] == turns


def test_ids_that_a_server_refuses_are_made_anew_alike():
    own = json.loads(json.dumps(ASKED).replace("toolu_1", "abcDEF123"))
    assert [summed(converted(body, "mistral")[0])[4] for body in (ASKED, ASKED, own)] == [NINE, NINE, "abcDEF123"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", NINE)


UNSIGNED = {
    RESPONSES: {
        "input": [
            {"role": "user", "content": "Hi."},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "I think."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
            {"role": "user", "content": "And?"},
        ]
    },
    CHAT: {
        "messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Yes.", "reasoning_content": "I think."},
            {"role": "user", "content": "And?"},
        ]
    },
    GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi."}]},
            {"role": "model", "parts": [{"text": "I think.", "thought": True}, {"text": "Yes."}]},
            {"role": "user", "parts": [{"text": "And?"}]},
        ]
    },
}


@pytest.mark.parametrize("client", UNSIGNED)
def test_thinking_without_signature_goes_to_messages_servers_that_take_it(client):
    thinking = {"type": "thinking", "thinking": "I think."}
    for engine, blocks in (("anthropic", []), ("anthropic-compatible", [thinking]), ("deepseek", [thinking])):
        body, _ = converted(UNSIGNED[client], engine, client=client, upstream=MESSAGES)
        assert body["messages"][1]["content"] == [*blocks, {"type": "text", "text": "Yes."}]


def test_messages_servers_without_adaptive_thinking_get_a_budget():
    wish = UNSIGNED[CHAT] | {"reasoning_effort": "low"}
    assert converted(wish, "anthropic-compatible", client=CHAT, upstream=MESSAGES)[0]["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert converted(wish, "anthropic", client=CHAT, upstream=MESSAGES)[0]["thinking"] == {"type": "adaptive"}


# Proofs of reasoning on Chat.

SIGNED = {"type": "reasoning.text", "text": "I think.", "signature": "sig==", "format": "anthropic-claude-v1", "index": 0}
HIDDEN = {"type": "reasoning.encrypted", "data": "opaque==", "format": "google-gemini-v1", "id": "t", "index": 1}
PLAIN = {"type": "reasoning.text", "text": "Well. ", "format": "unknown", "index": 0}
TOKENS = {
    name: msgspec.json.encode({key: value for key, value in detail.items() if key != "text"}).decode()
    for name, detail in (("signed", SIGNED), ("hidden", HIDDEN))
}
SEALED = Reasoning("I think.", Seal(TOKENS["signed"], SealKind.SIGNATURE, CHAT))
OPAQUE = Reasoning("", Seal(TOKENS["hidden"], SealKind.ENCRYPTED, CHAT))
DETAILS = [
    ([SIGNED], [SEALED]),
    ([HIDDEN], [Reasoning("R"), OPAQUE]),
    ([SIGNED, HIDDEN], [SEALED, OPAQUE]),
    ([PLAIN, HIDDEN], [Reasoning("Well. "), OPAQUE]),
    ([PLAIN, SIGNED], [Reasoning("Well. I think.", SEALED.seal)]),
    ([SIGNED, PLAIN], [SEALED, Reasoning("Well. ")]),
    ([PLAIN], [Reasoning("Well. ")]),
    ("none", [Reasoning("R")]),
]


def chunk(delta, finish=None):
    return Frame(b"", b"", msgspec.json.encode({"id": "i", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))


def streamed(*frames):
    """The reasoning of a stream, as parts."""
    decoder = CODECS[CHAT].decoder()
    parts = {}
    for frame in frames:
        for event in decoder.feed(frame):
            match type(event).__name__:
                case "Opened":
                    parts[event.index] = event.part
                case "Grew":
                    parts[event.index] = msgspec.structs.replace(parts[event.index], text=parts[event.index].text + event.text)
                case "Sealed":
                    parts[event.index] = msgspec.structs.replace(parts[event.index], seal=event.seal)
    return [*parts.values()]


@pytest.mark.parametrize(("details", "parts"), DETAILS)
def test_proofs_are_read_from_answers_and_streams_alike(details, parts):
    message = {"content": "A", "reasoning": "R", "reasoning_details": details}
    whole = CODECS[CHAT].read(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())
    assert (list(whole.parts), whole.unread) == ([*parts, Text("A")], ())
    assert streamed(chunk(message), chunk({}, "stop")) == [*parts, Text("A")]


def test_a_stream_says_words_first_and_their_proof_last():
    words = [{"type": "reasoning.text", "text": text} for text in ("I ", "think.")]
    proof = {key: value for key, value in SIGNED.items() if key != "text"}
    frames = [chunk({"reasoning": detail.get("text"), "reasoning_details": [detail]}) for detail in (*words, proof)]
    assert streamed(*frames, chunk({"content": "A"}, "stop")) == [SEALED, Text("A")]


def test_what_azure_s_filters_say_is_counted_once():
    seen = {"hate": {"filtered": False, "severity": "safe"}}
    names = {"answer:content_filter_results", "answer:prompt_filter_results"}
    prompt, choice = {"prompt_filter_results": [{"prompt_index": 0}]}, {"index": 0, "finish_reason": "stop", "content_filter_results": seen}
    whole = CODECS[CHAT].read(json.dumps(prompt | {"choices": [choice | {"message": {"content": "A"}}]}).encode())
    decoder = CODECS[CHAT].decoder()
    for body in (prompt | {"choices": []}, {"choices": [choice | {"delta": {"content": "A"}}]}, {"choices": [choice | {"delta": {}}]}):
        list(decoder.feed(Frame(b"", b"", json.dumps(body).encode())))
    assert (set(whole.unread), len(whole.unread)) == (names, 2)
    assert (set(decoder.unread), len(decoder.unread)) == (names, 2)


CLIENTS = {
    MESSAGES: ({"max_tokens": 9}, lambda body: {"messages": [{"role": "assistant", "content": body["content"]}, ASKED["messages"][0]]}),
    RESPONSES: ({}, lambda body: {"input": [*body["output"], {"role": "user", "content": "And?"}]}),
    GEMINI: ({}, lambda body: {"contents": [body["candidates"][0]["content"], {"role": "user", "parts": [{"text": "And?"}]}]}),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_proof_goes_back_as_it_came_to_who_minted_it(client):
    message = {"content": "A", "reasoning_details": [SIGNED, HIDDEN]}
    answer = CODECS[CHAT].read(json.dumps({"id": "i", "choices": [{"message": message, "finish_reason": "stop"}]}).encode())
    context = Context(request=Request(turns=(), wants_seals=True), aliases={}, seal_domain="up", upstream=CHAT, model="m", request_id="r", now=1)
    more, history = CLIENTS[client]
    body = more | history(json.loads(CODECS[client].write(answer, context)))
    said, _ = converted(body, client=client)
    assert said["messages"][0] == {"role": "assistant", "content": "A", "reasoning_details": [SIGNED, HIDDEN]}
    with pytest.raises(RequestError, match="seal:foreign"):
        converted(body, client=client, domain="other")


def test_a_proof_that_is_none_of_this_surface_s_is_refused():
    forged = seals.wrap(Seal("no JSON", SealKind.SIGNATURE, CHAT), "up")
    body = json.loads(json.dumps(ASKED).replace(THOUGHT, forged))
    with pytest.raises(RequestError, match="seal:foreign") as caught:
        converted(body)
    assert caught.value.pointer == "/messages/1/content/0"
    target = Target(model="m", dialect=Dialect(), seal_domain="up", features=frozenset())
    assert not is_own(Seal("words", SealKind.TEXT, CHAT), target, "/a")
