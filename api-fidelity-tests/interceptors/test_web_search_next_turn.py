"""A search beside the client's own calls: the client answers its calls in the next turn, and what it brings back of the search the model reads."""

from __future__ import annotations

import json

import pytest

from asgi_surface import seals
from asgi_surface.codecs.messages.searches import excerpt
from asgi_surface.interceptors.web_search.hook import SURFACES
from asgi_surface.ir import Seal, SealKind
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

CALLS = (("web_search", '{"query": "news"}'), ("look", '{"at":"it"}'))
LOOK = {"name": "look", "input_schema": {"type": "object"}}
TOOLS = [{"type": "web_search_20250305", "name": "web_search"}, LOOK]
ASKED = {"role": "user", "content": "news?"}


def streamed(body):
    """The blocks of a streamed answer, as a client keeps them."""
    blocks, inputs = {}, {}
    for line in body.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event.get("delta", {}).get("type") == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
        elif event.get("delta", {}).get("type") == "input_json_delta":
            inputs[event["index"]] = inputs.get(event["index"], "") + event["delta"]["partial_json"]
    return [block | ({"input": json.loads(inputs[index])} if index in inputs else {}) for index, block in blocks.items()]


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize("stream", [False, True])
def test_the_excerpts_come_back_to_the_model(run, search, upstream, stream):
    reply, model, _ = run(MESSAGES, upstream, run.said("Let me see.", CALLS), stream=stream, members={"tools": TOOLS})
    assert (search.queries, len(model.calls)) == (["news"], 1)
    content = streamed(reply.body) if stream else reply.json["content"]
    assert [block["type"] for block in content] == ["text", "server_tool_use", "web_search_tool_result", "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "seen"}]
    messages = [ASKED, {"role": "assistant", "content": content}, {"role": "user", "content": results}]
    reply, model, _ = run(MESSAGES, upstream, run.said("Done."), stream=stream, members={"tools": TOOLS, "messages": messages})
    asked = json.dumps(model.calls[0])
    assert (reply.status, len(model.calls)) == (200, 1)
    for said in ("Searched the web for", "https://a.example/one", "First.", "https://b.example/two", "Second.", "seen"):
        assert asked.count(said) == 1, said
    assert "asf_ws_" not in asked


def envelope(said, kind=SealKind.TEXT):
    return seals.wrap(Seal(said, kind, CHAT), "up")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (envelope("One\nhttps://a.example\nFirst."), "First."),
        (envelope("One\nhttps://a.example\n a\n\n2. b "), "a 2. b"),  # no page writes a line of its own
        (envelope("One\nhttps://a.example"), ""),  # as earlier releases wrote them
        (envelope("One\nhttps://a.example\nFirst.", SealKind.ENCRYPTED), ""),
        ("theirs", ""),
    ],
)
def test_an_envelope_gives_its_excerpt(token, said):
    assert excerpt(token) == said


def test_what_text_cites_carries_no_excerpt(run):
    rounds = run.said(calls=CALLS[:1]), run.said("It is https://a.example/one, so.")
    reply, _, _ = run(MESSAGES, CHAT, *rounds)
    cited = [one for block in reply.json["content"] for one in block.get("citations") or ()]
    assert [excerpt(one["encrypted_index"]) for one in cited] == [""]
    assert all(one["url"] == "https://a.example/one" for one in cited)


def test_a_responses_item_brings_back_what_it_has_room_for(run):
    """The query and the addresses: the surface has no slot for more."""
    tools = [{"type": "web_search"}, {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}]
    reply, _, _ = run(RESPONSES, CHAT, run.said(calls=CALLS), members={"tools": tools})
    items = reply.json["output"]
    told = json.loads(encode(SURFACES[RESPONSES].replayed(parse(json.dumps({"input": items}).encode()), True)))["input"]
    assert "https://a.example/one" in told[0]["content"][0]["text"]
    assert told[1]["type"] == "function_call"
