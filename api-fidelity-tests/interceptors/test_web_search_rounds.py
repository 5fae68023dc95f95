"""A hosted search end to end: a search double, models that answer round by round, and every client surface on every upstream's.

Every stream is held against its surface's grammar by `ask`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from msgspec import structs

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Ending as Ended
from asgi_surface.events import Grew, Opened, Start
from asgi_surface.framing import Framing
from asgi_surface.interception import Interceptor, Rewriter
from asgi_surface.interceptors.web_search import hook
from asgi_surface.ir import Request, Stop, Text, Usage
from asgi_surface.layers.exchange import Ending
from asgi_surface.stitching import Stitch
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
CLIENTS = [*SURFACES, "array"]
PAIRS = [(client, upstream) for client in CLIENTS for upstream in SURFACES]
FEW = [(client, upstream) for client, upstream in PAIRS if upstream in (client, CHAT)] + [("array", GEMINI)]
QUERY, OTHER = '{"query": "news"}', '{"query": "weather"}'
SEARCH, OWN = ("web_search", QUERY), ("look", '{"at":"it"}')
ONE, TWO = "https://a.example/one", "https://b.example/two"
ANSWER = f"It is {ONE}, so."
CITED = [(ONE, ONE)]
BROKE = UpstreamError(Code.UPSTREAM_ERROR, "the upstream failed")


# What a client is shown ---------------------------------------------------------------------------------------------------------------------


class Shown:
    """An answer as its client reads it: texts, searches (query, URLs, failed), cited URLs with the text they rest on, calls, reason, tokens."""

    def __init__(self, texts, searches, cited, calls, reason, used):
        self.texts, self.searches, self.cited, self.calls, self.reason, self.used = texts, searches, cited, calls, reason, used


def of_chat(document):
    [choice] = document["choices"]
    message, usage = choice["message"], document.get("usage") or {}
    text = message["content"] or ""
    notes = [note["url_citation"] for note in message.get("annotations") or ()]
    cited = [(note["url"], text[note["start_index"] : note["end_index"]]) for note in notes]
    calls = [call["function"]["name"] for call in message.get("tool_calls") or ()]
    return Shown(text, None, cited, calls, choice["finish_reason"], (usage.get("prompt_tokens"), usage.get("completion_tokens")))


def of_responses(document):
    texts, searches, cited, calls = [], [], [], []
    for item in document["output"]:
        if item["type"] == "web_search_call":
            assert item["id"].startswith("asf_ws_")
            searches.append((item["action"]["query"], [one["url"] for one in item["action"].get("sources", ())], item["status"] == "failed"))
        elif item["type"] == "function_call":
            calls.append(item["name"])
        for part in item.get("content", ()):
            texts.append(part["text"])
            cited += [(note["url"], part["text"][note["start_index"] : note["end_index"]]) for note in part["annotations"]]
    reason = (document["incomplete_details"] or {}).get("reason") or document["status"]
    usage = document["usage"]
    return Shown("".join(texts), searches, cited, calls, reason, (usage["input_tokens"], usage["output_tokens"]))


def of_messages(document):
    blocks, usage = document["content"], document["usage"]
    gave = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "web_search_tool_result"}
    searches = [
        (block["input"]["query"], [one["url"] for one in found] if isinstance(found := gave[block["id"]], list) else [], isinstance(found, dict))
        for block in blocks
        if block["type"] == "server_tool_use"
    ]
    texts = [block for block in blocks if block["type"] == "text"]
    cited = [(one["url"], one["url"]) for block in texts for one in block.get("citations") or ()]
    calls = [block["name"] for block in blocks if block["type"] == "tool_use"]
    assert (usage.get("server_tool_use") or {}).get("web_search_requests", 0) == len(searches)
    used = (usage["input_tokens"], usage["output_tokens"])
    return Shown("".join(block["text"] for block in texts), searches, cited, calls, document["stop_reason"], used)


def of_gemini(document):
    [candidate] = document["candidates"]
    parts = [part for part in candidate["content"].get("parts", ()) if not part.get("thought")]
    ground, usage = candidate.get("groundingMetadata", {}), document.get("usageMetadata", {})
    urls = [chunk["web"]["uri"] for chunk in ground.get("groundingChunks", ())]
    cited = [(urls[place], one["segment"]["text"]) for one in ground.get("groundingSupports", ()) for place in one["groundingChunkIndices"]]
    searches = [(query, urls, not urls) for query in ground.get("webSearchQueries", ())]
    calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    text = "".join(part.get("text", "") for part in parts)
    return Shown(text, searches, cited, calls, candidate["finishReason"], (usage.get("promptTokenCount"), usage.get("candidatesTokenCount")))


READS = {CHAT: of_chat, RESPONSES: of_responses, MESSAGES: of_messages, GEMINI: of_gemini, "array": of_gemini}


def shown(wires, client, reply, stream):
    """The answer of either form."""
    return READS[client](WHOLES[client](wires[client].events(reply.body)) if stream else reply.json)


def whole_chat(events):
    message = {"content": "", "annotations": [], "tool_calls": []}
    reason, usage = None, None
    for event in events[:-1]:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"] or reason
            message["content"] += delta.get("content") or ""
            message["annotations"] += delta.get("annotations") or []
            message["tool_calls"] += [call for call in delta.get("tool_calls") or () if call.get("id")]
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def whole_messages(events):
    blocks, document = [], {}
    for event in events:
        match event["type"]:
            case "message_start":
                document = event["message"]
            case "content_block_start":
                blocks.append(event["content_block"] | {"pieces": "", "cited": []})
            case "content_block_delta":
                delta = event["delta"]
                blocks[-1]["pieces"] += delta.get("text", "") + delta.get("partial_json", "")
                blocks[-1]["cited"] += [delta["citation"]] if "citation" in delta else []
            case "message_delta":
                document |= event["delta"] | {"usage": document["usage"] | event["usage"]}
    for block in blocks:
        if block["type"] in ("text", "server_tool_use"):
            said = {"text": block["pieces"], "citations": block["cited"]} if block["type"] == "text" else {"input": json.loads(block["pieces"])}
            block.update(said)
    return document | {"content": blocks}


def whole_gemini(events):
    parts = [part for event in events for one in event["candidates"] for part in one.get("content", {}).get("parts", ())]
    last = events[-1]
    return last | {"candidates": [last["candidates"][0] | {"content": {"parts": parts}}]}


WHOLES = {CHAT: whole_chat, RESPONSES: lambda events: events[-1]["response"], MESSAGES: whole_messages, GEMINI: whole_gemini, "array": whole_gemini}
USAGE = {CHAT: {"stream_options": {"include_usage": True}}}
DONE = {CHAT: "stop", RESPONSES: "completed", MESSAGES: "end_turn", GEMINI: "STOP", "array": "STOP"}
CALLS = {CHAT: "tool_calls", RESPONSES: "completed", MESSAGES: "tool_use", GEMINI: "STOP", "array": "STOP"}
OWN_TOOL = {
    CHAT: {"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]},
    RESPONSES: {"tools": [{"type": "web_search"}, {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}]},
    MESSAGES: {"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "look", "input_schema": {"type": "object"}}]},
    GEMINI: {"tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "look"}]}]},
}
OWN_TOOL["array"] = OWN_TOOL[GEMINI]


@pytest.fixture
def go(run, wires):
    """One request that ends well, as its client reads it, with the model and the record."""

    def one(client, upstream, *rounds, stream=False, members=None, **options):
        asked = {**(USAGE.get(client, {}) if stream else {}), **(members or {})}
        reply, model, record = run(client, upstream, *rounds, stream=stream, members=asked, **options)
        assert (reply.status, reply.whole, record.ending) == (200, True, Ending.COMPLETED)
        assert record.bytes == len(reply.body)
        return shown(wires, client, reply, stream), model, record

    return one


def offered(body):
    """The names of the functions that an upstream was offered."""
    tools = list(itertools.chain.from_iterable(tool.get("functionDeclarations", [tool]) for tool in body.get("tools", ())))
    return [tool.get("function", tool)["name"] for tool in tools]


# Every pair ---------------------------------------------------------------------------------------------------------------------------------


BOTH = [(*pair, stream) for pair in PAIRS for stream in (False, True) if stream or pair[0] != "array"]


@pytest.mark.parametrize(("client", "upstream", "stream"), BOTH)
def test_a_search_is_run_and_shown(go, run, search, client, upstream, stream):
    rounds = run.said("Let me see. ", (SEARCH,), thought="hm"), run.said(ANSWER, used=(20, 5))
    told, model, record = go(client, upstream, *rounds, stream=stream)
    assert (told.texts, told.calls, told.reason, told.used) == (f"Let me see. {ANSWER}", [], DONE[client], (30, 9))
    assert told.searches in ([("news", [ONE, TWO], False)], None)
    assert told.cited == CITED
    assert search.queries == ["news"]
    first, second = model.calls
    assert offered(first) == offered(second) == ["web_search"]
    assert "Results of the web search" not in json.dumps(first)
    assert json.dumps(second).count("Results of the web search") == json.dumps(second).count("First.") == 1
    assert json.dumps(second).count("Let me see.") == 1
    assert (record.usage.input, record.usage.output, record.usage.cached, record.stop, record.rounds) == (30, 9, None, "end", 2)
    assert record.dropped == (("answer:seals",) if upstream == MESSAGES and client in (CHAT, RESPONSES) else ())
    assert len(set(model.targets)) == 1


@pytest.mark.parametrize(("client", "upstream"), FEW)
def test_what_the_model_says_before_a_search_does_not_wait_for_it(run, search, client, upstream):
    asked = {}

    async def sink(message):
        for word in (b"Let me see.", b"server_tool_use", b"call.searching", b"web_search_tool_result", b"call.completed"):
            if word in message.get("body", b""):
                asked.setdefault(word, len(search.asked))

    search.delay = 0.05
    reply, _, _ = run(client, upstream, run.said("Let me see.", (SEARCH,)), run.said(ANSWER), stream=True, sink=sink)
    assert asked.pop(b"Let me see.") == 0
    assert list(asked.values()) == ([0, 1] if client in (RESPONSES, MESSAGES) else [])
    assert reply.status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_added_and_what_nobody_counted_stays_unsaid(go, run, stream):
    first = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 6}}
    second = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "completion_tokens_details": {"reasoning_tokens": 2}}
    rounds = run.said("", (SEARCH,), usage=first), run.said(ANSWER, usage=second)
    _, _, record = go(MESSAGES, CHAT, *rounds, stream=stream)
    assert structs.asdict(record.usage) == {
        **dict.fromkeys(("cache_write", "audio_input", "audio_output")),
        "input": 30,
        "output": 9,
        "cached": 6,
        "reasoning": 2,
    }
    _, _, record = go(RESPONSES, CHAT, run.said("", (SEARCH,), usage={}), run.said(ANSWER), stream=stream)
    assert (record.usage.input, record.usage.output) == (10, 4)


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("client", "upstream"), [(CHAT, CHAT), (RESPONSES, CHAT), (MESSAGES, MESSAGES), (GEMINI, RESPONSES)])
def test_folded_and_unfolded_rounds_are_one_answer_too(go, run, client, upstream, stream, streams):
    rounds = run.said("Well. ", (SEARCH,)), run.said(ANSWER)
    binding = f'dialect = {{ stream = "{"always" if streams else "never"}" }}\n'
    told, _, _ = go(client, upstream, model=run.model(upstream, rounds, streams=streams), stream=stream, binding=binding)
    assert (told.texts, told.cited, told.reason) == (f"Well. {ANSWER}", CITED, DONE[client])


def test_an_upstream_that_frames_its_stream_another_way_is_read(go, run):
    rounds = [run.said("Well. ", (SEARCH,)), run.said(ANSWER)]
    model = run.model(GEMINI, rounds, streams=False)
    model.rounds = [b"[" + json.dumps(answer).encode() + b"]" for answer in (gemini_calls("web_search", QUERY), gemini_says(ANSWER))]
    told, _, _ = go(CHAT, GEMINI, model=model, stream=True)
    assert told.texts == ANSWER


def gemini_calls(name, arguments):
    return gemini({"functionCall": {"name": name, "args": json.loads(arguments)}})


def gemini_says(text):
    return gemini({"text": text})


def gemini(part):
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]}


# More than one search -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stream", "parallel"), [(False, False), (True, True)])
@pytest.mark.parametrize(("client", "upstream"), PAIRS[:16])
def test_two_searches_in_one_answer_keep_their_order(go, run, search, client, upstream, stream, parallel):
    search.answers["weather"] = (200, json.dumps({"results": [{"url": "https://c.example", "title": "", "content": "Rain."}]}).encode())
    rounds = run.said("", (("web_search", OTHER), SEARCH)), run.said("Rain: https://c.example. Not https://c.example/d or https://c.example.org")
    features = ["streaming", "tools", *(["parallel-tools"] if parallel else [])]
    told, model, _ = go(client, upstream, *rounds, stream=stream, features=features)
    found = [("weather", ["https://c.example"], False), ("news", [ONE, TWO], False)]
    assert told.searches in (found, None) or (client == GEMINI and [query for query, _, _ in told.searches] == ["weather", "news"])
    assert told.cited == [("https://c.example", "https://c.example")]
    assert sorted(search.queries) == ["news", "weather"]
    said = json.dumps(model.calls[1])
    assert said.index("Rain.") < said.index("First.")
    assert re.search(r"Rain\.(?!.*query).*First\.", said) is None or parallel


def test_a_search_and_another_round_and_an_answer(go, run, search):
    rounds = run.said("", (SEARCH,)), run.said("", (("web_search", OTHER),)), run.said(ANSWER)
    told, model, record = go(RESPONSES, GEMINI, *rounds, stream=True)
    assert [query for query, _, _ in told.searches] == search.queries == ["news", "weather"]
    assert record.usage.input == 30
    assert offered(model.calls[0]) == offered(model.calls[1]) == ["web_search"]


@pytest.mark.parametrize(("client", "upstream"), FEW[:8])
def test_the_last_round_cannot_search(go, run, client, upstream):
    rounds = run.said("", (SEARCH,)), run.said(ANSWER)
    told, model, _ = go(client, upstream, *rounds, more="max_rounds = 2\n", members=OWN_TOOL[client])
    assert (offered(model.calls[0])[-1] in ("web_search", "look"), offered(model.calls[1])) == (True, ["look"])
    assert told.reason == DONE[client]
    _, model, _ = go(client, upstream, *rounds, more="max_rounds = 2\n")
    choice = json.dumps(model.calls[1].get("tool_choice") or model.calls[1]["toolConfig"]["functionCallingConfig"])
    assert "none" in choice.lower()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "reason"), [(CHAT, "pause"), (RESPONSES, "pause"), (MESSAGES, "pause_turn"), (GEMINI, "OTHER")])
def test_a_model_that_searches_when_it_cannot_has_not_come_to_its_end(go, run, search, client, reason, stream):
    rounds = run.said("", (SEARCH,)), run.said("Hm. ", (("web_search", OTHER),))
    told, model, record = go(client, CHAT, *rounds, stream=stream, more="max_rounds = 2\n")
    assert (told.texts, told.reason, len(model.calls), search.queries) == ("Hm. ", reason, 2, ["news"])
    assert record.stop == "pause"
    if client in (RESPONSES, MESSAGES):
        assert told.searches[1] == ("weather", [], True)


@pytest.mark.parametrize("upstream", SURFACES)
def test_a_paused_turn_is_continued(go, run, upstream):
    """As the Messages API wants it: with the answer sent back as it is."""
    reply, _, _ = run(MESSAGES, CHAT, run.said("", (SEARCH,)), run.said("Hm. ", (SEARCH,)), more="max_rounds = 2\n")
    assert reply.json["stop_reason"] == "pause_turn"
    history = [{"role": "user", "content": "news?"}, {"role": "assistant", "content": reply.json["content"]}]
    told, model, _ = go(MESSAGES, upstream, run.said("So."), members={"messages": history})
    assert (told.texts, told.reason, len(model.calls)) == ("So.", "end_turn", 1)
    assert json.dumps(model.calls[0]).count("Go on.") == 1


def test_only_so_many_searches_are_run_in_one_answer(go, run, search):
    calls = tuple(("web_search", json.dumps({"query": f"q{number}"})) for number in range(10))
    told, _, _ = go(RESPONSES, CHAT, run.said("", calls), run.said("No."))
    assert sorted(search.queries) == [f"q{number}" for number in range(8)]
    assert [failed for _, _, failed in told.searches] == [False] * 8 + [True] * 2


# What the client asked of its search --------------------------------------------------------------------------------------------------------


def hosted(**wishes):
    return {"tools": [{"type": "web_search_20250305", "name": "web_search", **wishes}]}


def test_uses_are_bounded(go, run, search):
    rounds = run.said("", (SEARCH, ("web_search", OTHER))), run.said("No.")
    told, model, _ = go(MESSAGES, CHAT, *rounds, members=hosted(max_uses=1))
    assert (len(search.queries), [failed for _, _, failed in told.searches]) == (1, [False, True])
    assert "no more searches are allowed" in json.dumps(model.calls[1])
    assert model.calls[1]["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("wishes", "urls"),
    [
        ({"allowed_domains": ["b.example"]}, [TWO]),
        ({"allowed_domains": ["https://www.b.example/two", "example.org"]}, [TWO]),
        ({"allowed_domains": ["b.example/other"]}, []),
        ({"blocked_domains": ["*.example"]}, []),
        ({"blocked_domains": ["a.example/on"]}, [TWO]),
        ({}, [ONE, TWO]),
    ],
)
def test_domains_are_kept_or_left_out(go, run, wishes, urls):
    told, model, _ = go(MESSAGES, CHAT, run.said("", (SEARCH,)), run.said("No."), members=hosted(**wishes))
    assert told.searches == [("news", urls, False)]
    assert urls or "found nothing" in json.dumps(model.calls[1])


def test_a_blocked_domain_has_no_other_spelling(go, run, search):
    urls = ["https://a.example./x", "https://WWW.A.Example:8443/x", "https://user@a.example/x", "https://a.example.org/x"]
    search.answers["news"] = (200, json.dumps({"results": [{"url": url} for url in urls]}).encode())
    told, _, _ = go(MESSAGES, CHAT, run.said("", (SEARCH,)), run.said("No."), members=hosted(blocked_domains=["a.example"]))
    assert told.searches == [("news", ["https://a.example.org/x"], False)]


def test_a_url_that_is_none_is_of_no_domain(go, run, search):
    search.answers["news"] = (200, b'{"results": [{"url": "http://[::1"}]}')
    told, _, _ = go(MESSAGES, CHAT, run.said("", (SEARCH,)), run.said("No."), members=hosted(allowed_domains=["a.example"]))
    assert told.searches == [("news", [], False)]


def test_only_so_many_results_are_given(go, run):
    told, _, _ = go(RESPONSES, CHAT, run.said("", (SEARCH,)), run.said("No."), more="max_results = 1\n")
    assert told.searches == [("news", [ONE], False)]


# Failures -----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", SURFACES)
def test_a_failing_search_is_told_to_the_model_and_the_client(go, run, search, caplog, client, stream):
    search.answers["news"] = (500, b"the back end's own words")
    told, model, _ = go(client, MESSAGES, run.said("", (SEARCH,)), run.said("I could not search."), stream=stream)
    assert told.searches in ([("news", [], True)], None)
    assert told.texts == "I could not search."
    said = json.dumps(model.calls[1])
    assert "The search failed." in said
    assert "own words" not in said + caplog.text
    assert "a web search failed: status 500" in caplog.text
    assert model.calls[1]["messages"][-1]["content"][0].get("is_error") or client in (CHAT, RESPONSES)


@pytest.mark.parametrize("arguments", ["{}", '{"query": " "}', '{"query": 3}', ""])
def test_a_search_for_nothing_fails_without_a_call(go, run, search, arguments):
    told, model, _ = go(RESPONSES, CHAT, run.said("", (("web_search", arguments),)), run.said("No."))
    assert (told.searches, search.asked) == ([("", [], True)], [])
    assert "holds no query" in json.dumps(model.calls[1])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", SURFACES)
@pytest.mark.parametrize(("arguments", "stop"), [(QUERY, "length"), ('{"que', "length"), (QUERY, "filter")])
def test_a_cut_answer_is_not_searched_for(go, run, search, client, stream, arguments, stop):
    reasons = {
        "length": {CHAT: "length", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens", GEMINI: "MAX_TOKENS"},
        "filter": {CHAT: "content_filter", RESPONSES: "content_filter", MESSAGES: "refusal", GEMINI: "SAFETY"},
    }
    told, model, _ = go(client, CHAT, run.said("So ", (("web_search", arguments),), stop), stream=stream)
    assert (told.texts, told.reason, told.calls, told.searches or []) == ("So ", reasons[stop][client], [], [])
    assert (len(model.calls), search.asked) == (1, [])


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_answer_keeps_what_came_behind_the_search(go, run, stream):
    told, _, _ = go(RESPONSES, CHAT, run.said("So ", (SEARCH, OWN), "length"), stream=stream, members=OWN_TOOL[RESPONSES])
    assert (told.calls, told.searches) == (["look"], [])


@pytest.mark.parametrize("client", SURFACES)
def test_half_a_call_that_is_said_to_be_whole_is_an_error(run, wires, client):
    reply, _, record = run(client, CHAT, run.said("", (("web_search", '{"que'),)))
    assert (reply.status, record.code) == (502, Code.UPSTREAM_BAD_RESPONSE)
    reply, _, record = run(client, CHAT, run.said("So", (("web_search", '{"que'),)), stream=True)
    assert (reply.status, wires[client].end(reply.body), record.code, record.ending) == (200, "error", Code.UPSTREAM_BAD_RESPONSE, Ending.FAILED)


@pytest.mark.parametrize(
    "failure", [BROKE, b'{"error": {"message": "no", "type": "t", "code": "c"}}', b'data: {"error": {"message": "no"}}\n\n', b""]
)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_later_round_that_fails_ends_the_stream_with_its_error(run, wires, client, failure):
    reply, model, record = run(client, CHAT, run.said("So. ", (SEARCH,)), failure, stream=True)
    assert (reply.status, wires[client].end(reply.body), len(model.calls)) == (200, "error", 2)
    assert (record.ending, record.usage.input, record.status) == (Ending.FAILED, 10, 200)
    if client not in ("array", GEMINI):
        reply, _, record = run(client, CHAT, run.said("So. ", (SEARCH,)), failure)
        assert (reply.status, record.ending, reply.headers["x-surface-error"]) == (502, Ending.FAILED, record.code)


@pytest.mark.parametrize("stream", [False, True])
def test_a_first_round_that_fails_has_its_own_status(run, stream):
    reply, _, record = run(RESPONSES, CHAT, BROKE, stream=stream)
    assert (reply.status, reply.headers["content-type"], record.code) == (502, "application/json", Code.UPSTREAM_ERROR)
    reply, _, record = run(RESPONSES, CHAT, b'data: {"error": {"message": "no"}}\n\n', stream=stream)
    assert (reply.status, record.ending) == (502, Ending.FAILED)


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_that_may_not_be_sent_is_an_error_without_a_place(run, wires, stream):
    reply, model, record = run(RESPONSES, CHAT, run.said("", (SEARCH,)), stream=stream, binding="limits = { history_items = 2 }\n")
    assert (record.ending, record.code, record.pointer, len(model.calls)) == (Ending.FAILED, Code.LIMIT_EXCEEDED, None, 1)
    assert wires[RESPONSES].end(reply.body) == "error" if stream else reply.status == 400


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_of_our_own_is_told_like_any_other(run, wires, monkeypatch, caplog, stream):
    monkeypatch.setattr(hook._Searches, "next", lambda *_, **__: 1 / 0)
    reply, _, record = run(MESSAGES, CHAT, run.said("So. ", (SEARCH,)), stream=stream)
    assert (record.ending, record.code) == (Ending.FAILED, Code.INTERNAL)
    assert wires[MESSAGES].end(reply.body) == "error" if stream else reply.status == 500
    assert "ZeroDivisionError" in caplog.text


def test_a_search_that_breaks_is_a_failed_one(go, run, monkeypatch, caplog):
    monkeypatch.setattr(hook.Backend, "find", lambda *_: 1 / 0)
    told, _, _ = go(RESPONSES, CHAT, run.said("", (SEARCH,)), run.said("No."))
    assert told.searches == [("news", [], True)]
    assert "a search failed inside the gateway" in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_the_answers_length_is_bounded_over_all_rounds(run, wires, stream):
    limits = "limits = { output_chars = 40 }\n"
    reply, _, record = run(CHAT, MESSAGES, run.said("x" * 20, (SEARCH,)), run.said("x" * 20), stream=stream, binding=limits)
    assert record.code == Code.OUTPUT_TOO_LARGE
    assert wires[CHAT].end(reply.body) == "error" if stream else reply.status == 502


CONTEXT = Context(request=Request(turns=()), aliases={}, seal_domain="", upstream=CHAT, model="m", request_id="r", now=0)


def test_an_error_behind_the_end_says_nothing_more():
    stitch = Stitch(CODECS[CHAT].encoder(CONTEXT), Framing.SSE, CONTEXT, "web_search")
    assert stitch.open(Start(), None)
    assert (stitch.closed, bool(stitch.close(Ended(Stop.END))), stitch.closed, stitch.fail(BROKE)) == (False, True, True, b"")


def test_every_round_has_its_model_and_tier_and_adds_to_what_was_used():
    stitch = Stitch(CODECS[GEMINI].encoder(CONTEXT), Framing.SSE, CONTEXT, "web_search")
    stitch.begin().open(Start("a", "up", service_tier="auto"), None)
    stitch.spent = Usage(10, 4)
    later = stitch.begin()
    assert later.open(Start("b", "up-2"), Usage(1)) == []
    later.note(Start("b", "up-2", service_tier="default"), Usage(1, 2))
    later.part(Opened(0, Text("")))
    [(_, chunk)] = later.part(Grew(0, "a"))
    said = json.loads(chunk.removeprefix(b"data: "))
    assert (said["responseId"], said["modelVersion"], said["usageMetadata"]["totalTokenCount"]) == ("a", "up-2", 17)
    assert stitch.held.service_tier == "default"


def test_an_end_that_cannot_be_said_becomes_an_error(run, wires, monkeypatch):
    def close(*_):
        raise UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "no answer of the surface")

    monkeypatch.setattr(type(CODECS[CHAT].encoder(CONTEXT)), "close", close)
    for calls in ((), (SEARCH, OWN)):
        reply, _, record = run(CHAT, MESSAGES, run.said("So. ", calls), stream=True, members=OWN_TOOL[CHAT])
        assert (wires[CHAT].end(reply.body), record.ending) == ("error", Ending.FAILED)


# Time ---------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_the_deadline_of_the_whole_holds_for_searches_too(run, wires, search, stream):
    search.delay = 0.5
    reply, model, record = run(MESSAGES, CHAT, run.said("So. ", (SEARCH,)), stream=stream, binding="limits = { total_seconds = 0.2 }\n")
    assert (record.code, len(model.calls)) == (Code.UPSTREAM_TIMEOUT, 1)
    assert wires[MESSAGES].end(reply.body) == "error" if stream else reply.status == 504


@pytest.mark.parametrize(("client", "beat"), [(MESSAGES, b"event: ping"), (CHAT, b"\n:"), (GEMINI, None), ("array", None)])
def test_a_client_that_waits_for_a_search_is_told_that_the_gateway_lives(run, wires, search, client, beat):
    search.delay = 0.3
    reply, _, record = run(client, CHAT, run.said("So. ", (SEARCH,)), run.said("No."), stream=True, binding="limits = { keepalive_seconds = 0.1 }\n")
    assert (record.ending, wires[client].end(reply.body)) == (Ending.COMPLETED, "end")
    assert beat is None or beat in b"\n" + reply.body


def test_a_slow_client_gets_no_sign_of_life_into_a_write(run, wires):
    async def sink(message):
        await asyncio.sleep(0.03)

    reply, _, _ = run(
        CHAT, CHAT, run.said("So. ", (SEARCH,)), run.said("No."), stream=True, sink=sink, binding="limits = { keepalive_seconds = 0.01 }\n"
    )
    assert wires[CHAT].end(reply.body) == "end"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", [RESPONSES, MESSAGES])
def test_a_client_that_leaves_in_mid_search_ends_everything(run, search, client, stream):
    search.delay = 0.6
    reply, model, record = run(client, CHAT, run.said("So. ", (SEARCH,)), stream=stream, leave=0.3)
    assert (record.ending, len(model.calls), len(search.asked)) == (Ending.DISCONNECTED, 1, 1)
    assert not reply.whole if stream else reply.messages == []


def test_a_client_that_leaves_in_a_later_round_is_not_served_any_more(run):
    async def sink(message):
        if b"No." in message.get("body", b""):
            raise OSError

    _, model, record = run(RESPONSES, CHAT, run.said("So. ", (SEARCH,)), run.said("No."), stream=True, sink=sink)
    assert (record.ending, len(model.calls)) == (Ending.DISCONNECTED, 2)


# Beside the client's own tools and interceptors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "upstream"), PAIRS[:16])
@pytest.mark.parametrize(("stream", "calls"), [(False, (SEARCH, OWN)), (True, (OWN, SEARCH))])
def test_searches_beside_calls_of_the_clients_are_shown_and_the_client_goes_on(go, run, search, client, upstream, stream, calls):
    told, model, record = go(client, upstream, run.said("So. ", calls), stream=stream, members=OWN_TOOL[client])
    assert (told.texts, told.calls, told.reason, told.used) == ("So. ", ["look"], CALLS[client], (10, 4))
    assert told.searches in ([("news", [ONE, TWO], False)], None)
    assert (len(model.calls), search.queries, record.stop) == (1, ["news"], "tools")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", SURFACES)
def test_a_call_into_a_namespace_is_the_clients(go, run, search, upstream, stream):
    """Also where the model takes it from the history, and the tool is offered no more."""
    name = "web_search" if upstream == RESPONSES else "mcp__web_search"
    call = {"type": "function_call", "call_id": "c", "name": "web_search", "namespace": "mcp", "arguments": "{}"}
    items = [{"role": "user", "content": "hi"}, call, {"type": "function_call_output", "call_id": "c", "output": "x"}]
    space = {"type": "namespace", "name": "mcp", "description": "d", "tools": [OWN_TOOL[RESPONSES]["tools"][1] | {"name": "web_search"}]}
    members = {"input": items, "tools": [{"type": "web_search"}, space]}
    told, model, _ = go(RESPONSES, upstream, run.said("", ((name, QUERY),)), members=members, stream=stream)
    assert (told.calls, told.searches, search.asked, len(model.calls)) == (["web_search"], [], [], 1)
    if upstream != RESPONSES:
        told, model, _ = go(RESPONSES, upstream, run.said("", ((name, QUERY),)), members=members | {"tools": [{"type": "web_search"}]}, stream=stream)
        assert (told.calls, told.searches, search.asked, len(model.calls)) == (["web_search"], [], [], 1)


class Counter(Interceptor):
    """Counts what it is asked, and what leaves."""

    name = "counter"

    def __init__(self):
        self.applied, self.requests, self.frames, self.documents = 0, [], [], []

    def applies(self, surface, route_id, members):
        self.applied += 1
        return True

    def request(self, members):
        self.requests.append(sorted(members))
        return members

    def open(self, plan):
        return _Counting(self)


class _Counting(Rewriter):
    def __init__(self, counter):
        self.counter = counter

    def frame(self, frame):
        self.counter.frames.append(frame.data)
        return (frame,)

    def document(self, status, body):
        self.counter.documents.append((status, body))
        return body


@pytest.mark.parametrize(("client", "upstream", "fails"), [*((*pair, False) for pair in PAIRS), *((*pair, True) for pair in FEW)])
def test_each_exit_is_seen_once(run, wires, client, upstream, fails):
    rounds = run.said("So. ", (SEARCH,)), BROKE if fails else run.said(ANSWER)
    counter = Counter()
    reply, model, _ = run(client, upstream, *rounds, stream=True, hooks=[counter])
    assert (counter.applied, len(counter.requests), counter.documents, len(model.calls)) == (1, 1, [], 2)
    events = [event if event == "[DONE]" else json.dumps(event) for event in wires[client].events(reply.body)]
    assert [frame if frame == b"[DONE]" else json.loads(frame) for frame in counter.frames] == [
        b"[DONE]" if event == "[DONE]" else json.loads(event) for event in events
    ]
    if client != "array":
        counter = Counter()
        reply, _, _ = run(client, upstream, *rounds, hooks=[counter])
        assert (counter.documents, counter.frames) == ([(reply.status, reply.body)], [])
        assert int(reply.headers["content-length"]) == len(reply.body)


def test_a_hosts_interceptor_of_the_same_name_is_a_mistake(ask, catalog, configured, caplog):
    counter = Counter()
    counter.name = "web_search"
    app = Gateway(catalog=catalog(CHAT, top=configured), interceptors=[counter])
    reply = ask(app, "/v1/chat/completions", {})
    assert (reply.status, reply.headers["x-surface-error"]) == (503, Code.NOT_CONFIGURED)
    assert "an interceptor of the host has this name" in caplog.text


# Whichever binding serves ---------------------------------------------------------------------------------------------------------------------

TWO_BINDINGS = """
[auth]
mode = "host"
[providers.up]
base_url = "http://127.0.0.1:9"
[[routes]]
route_id = "up:m"
models = ["m"]
upstream_model = "up-model"
provider = "up"
[[routes.api_bindings]]
surface = "openai-responses"
path = "/v1/responses"
features = ["streaming", "tools", "hosted-tools"]
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming", "tools", "parallel-tools", "images"]
[[models]]
name = "pinned"
candidates = [{ route_id = "up:m", upstream_surface = "openai-chat-completions" }]
[[models]]
name = "twice"
candidates = [{ route_id = "up:m", upstream_surface = "openai-responses" }, "up:m"]
"""
PICTURE = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}]}


@pytest.mark.parametrize(
    ("model", "members", "asked"),
    [("m", {}, 1), ("pinned", {}, 1), ("pinned", {"tools": []}, 1), ("m", PICTURE, 2), ("twice", PICTURE, 2), ("m", PICTURE | {"tools": []}, 1)],
)
def test_the_binding_that_serves_decides(ask, run, configured, search, records, model, members, asked):
    """A host's interceptor is asked once more only where the search's answer is another."""
    body = {"model": model, "input": "news?", "tools": [{"type": "web_search"}]} | members
    chats, searches = members or model == "pinned", bool(body["tools"]) and (members or model == "pinned")
    rounds = [run.said("", (SEARCH,)), run.said(ANSWER)] if searches else [run.said(ANSWER)]
    upstream, counter = run.model(CHAT if chats else RESPONSES, rounds), Counter()
    reply = ask(
        Gateway(catalog=build(configured + TWO_BINDINGS), upstream=upstream, record=records.append, interceptors=[counter]), "/v1/responses", body
    )
    assert (reply.status, len(upstream.calls), search.queries) == (200, len(rounds), ["news"] if searches else [])
    assert ("web_search" in json.dumps(upstream.calls[0])) is bool(body["tools"])
    assert (records.pop().ending, counter.applied) == (Ending.COMPLETED, asked)


# Nothing where it does not apply --------------------------------------------------------------------------------------------------------------

SPACED = b'{ "model":"m",  "messages": [ {"role":"user",  "content":"hi"} ],"tools":[ {"type":"function","function":{"name":"web_search"}} ]}'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", SURFACES)
def test_a_search_that_the_provider_runs_is_left_untouched(run, wires, client, stream):
    answer = b"".join(wires[client].frames) if stream else wires[client].document
    reply, model, record = run(client, client, answer, stream=stream, features=["streaming", "tools", "hosted-tools"])
    assert reply.body == answer
    assert "googleSearch" in model.raw[0].decode() or b"web_search" in model.raw[0]
    assert b"current information" not in model.raw[0]
    assert record.mode == "native"


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_of_the_clients_by_that_name_is_left_untouched(run, stream):
    """And so is its call."""
    body = SPACED.replace(b'"model"', b'"stream":true,"model"') if stream else SPACED
    reply, model, _ = run(CHAT, CHAT, run.said("", (SEARCH,)), body=body, stream=stream, upstream_model="m")
    assert b'"web_search"' in reply.body
    assert model.raw == [body]


def test_tokens_are_counted_with_the_function(run):
    counted = b'{"input_tokens": 3}'
    reply, model, record = run(
        MESSAGES, MESSAGES, counted, path="/v1/messages/count_tokens", features=["tools", "count-tokens"], without=["max_tokens"]
    )
    assert (reply.body, record.ending) == (counted, Ending.COMPLETED)
    assert offered(model.calls[0]) == ["web_search"]


def test_a_dry_run_shows_that_it_takes_part(run):
    reply, model, _ = run(RESPONSES, CHAT, headers=[("x-surface-dry-run", "true")])
    assert (reply.json["interceptors"], model.calls) == (["web_search"], [])


def test_searches_of_the_history_alone_take_one_round(run, wires):
    item = {"type": "web_search_call", "id": "asf_ws_1", "status": "completed", "action": {"type": "search", "query": "news"}}
    asked = {"input": [{"role": "user", "content": "hi"}, item, {"role": "user", "content": "and?"}], "tools": []}
    reply, model, _ = run(RESPONSES, RESPONSES, wires[RESPONSES].document, members=asked)
    assert reply.body == wires[RESPONSES].document
    assert model.calls[0]["input"][1]["content"][0]["text"] == '[Searched the web for "news".]'


# Clients of the world -------------------------------------------------------------------------------------------------------------------------

CODEX = {
    "model": "m",
    "instructions": "You are Codex.",
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "news?"}]}],
    "tools": [
        {"type": "function", "name": "shell", "description": "Runs a command", "strict": False, "parameters": {"type": "object", "properties": {}}},
        {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"x": "y"},
}
CLAUDE_CODE = {
    "model": "m",
    "max_tokens": 32000,
    "system": [{"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Perform a web search for the query: news"}]}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
    "metadata": {"user_id": "u"},
    "thinking": {"type": "disabled"},
}
AGENTS = {"codex": (RESPONSES, CODEX), "claude-code": (MESSAGES, CLAUDE_CODE)}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("agent", AGENTS)
def test_agents_search_on_a_binding_that_only_chats(go, run, agent, stream):
    client, body = AGENTS[agent]
    rounds = run.said("", (SEARCH, ("web_search", OTHER))), run.said(ANSWER)
    binding = f'profiles = ["{agent}"]\n'
    told, model, _ = go(client, CHAT, *rounds, body=body | {"stream": stream}, stream=stream, binding=binding)
    assert ([query for query, _, _ in told.searches], told.texts, told.cited) == (["news", "weather"], ANSWER, CITED)
    assert "web_search" in offered(model.calls[0])
    if agent == "claude-code":
        assert model.calls[0]["tool_choice"] == {"type": "function", "function": {"name": "web_search"}}
        assert model.calls[1].get("tool_choice", "auto") == "auto"


@pytest.mark.parametrize("agent", AGENTS)
def test_what_an_agent_sends_back_is_told_to_the_model_as_text(go, run, wires, agent):
    client, body = AGENTS[agent]
    rounds = run.said("Well. ", (SEARCH,)), run.said(ANSWER)
    reply, _, _ = run(client, CHAT, *rounds, body=body, binding=f'profiles = ["{agent}"]\n')
    answered = reply.json["output"] if client == RESPONSES else [{"role": "assistant", "content": reply.json["content"]}]
    name = "input" if client == RESPONSES else "messages"
    again = body | {
        name: [*body[name], *answered, {"role": "user", "content": "and?"}],
        "tool_choice": {"type": "auto"} if name == "messages" else "auto",
    }
    _, model, _ = go(client, CHAT, run.said("So."), body=again, binding=f'profiles = ["{agent}"]\n')
    said = json.dumps(model.calls[0]["messages"])
    assert said.count("Searched the web for") == 1
    assert said.count(ANSWER) == 1
    assert ONE in said
    assert "asf_" not in said


def test_reasoning_goes_natively_back_with_its_own_seal(run):
    rounds = run.said("", (SEARCH,), thought="hm"), run.said("So.", thought="ah")
    reply, model, _ = run(MESSAGES, MESSAGES, *rounds)
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig1"}
    assert model.calls[1]["messages"][1]["content"][0] == thought
    assert [block for block in reply.json["content"] if block["type"] == "thinking"] == [
        thought,
        {"type": "thinking", "thinking": "ah", "signature": "sig2"},
    ]


def test_reasoning_comes_back_to_another_surface_with_its_seal(run):
    _, model, _ = run(
        RESPONSES, MESSAGES, run.said("", (SEARCH,), thought="hm"), run.said("So."), members={"include": ["reasoning.encrypted_content"]}
    )
    assert model.calls[1]["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig1"}


PROVED = {"type": "reasoning.text", "text": "hm", "signature": "SIG", "format": "anthropic-claude-v1", "index": 0}
CALLING = {"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "web_search", "arguments": QUERY}}]}
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    ("dialect", "said", "replayed"),
    [
        ('reasoning_field = "reasoning"', {"reasoning": "hm"}, {"content": None, "reasoning": "hm"}),
        ('reasoning_field = "reasoning"', {"content": "So"}, {"content": "So"}),
        ('reasoning_field = "reasoning_content"', {"reasoning_content": "hm", "content": "So"}, {"content": "So", "reasoning_content": "hm"}),
        ('reasoning_field = "reasoning_details"', {"reasoning_details": [PROVED]}, {"content": None, "reasoning_details": [PROVED]}),
        ('reasoning_replay = "never"', {"reasoning_details": [PROVED]}, {"content": None, "reasoning_details": [PROVED]}),
        ('reasoning_replay = "never"', {"reasoning_content": "hm"}, {"content": None}),
        ('reasoning_field = "content"', {"content": [THINKING]}, {"content": [THINKING]}),
        (
            'reasoning_field = "content"',
            {"content": [THINKING, {"type": "text", "text": "So"}]},
            {"content": [THINKING, {"type": "text", "text": "So"}]},
        ),
    ],
)
def test_reasoning_goes_back_to_a_chat_server_where_its_dialect_says(run, client, dialect, said, replayed):
    message = {"role": "assistant", "content": None, **said, **CALLING}
    answer = {"id": "c", "object": "chat.completion", "created": 0, "model": "u"}
    first = answer | {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    _, model, _ = run(client, CHAT, json.dumps(first).encode(), run.said("So."), binding=f"dialect = {{ {dialect} }}\n")
    turn = model.calls[1]["messages"][1]
    assert {name: value for name, value in turn.items() if name not in ("role", "tool_calls")} == replayed


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_has_no_slot_for_proofs_gets_its_reasoning_back_to_the_provider(run, stream):
    rounds = run.said("", (SEARCH,), thought="hm"), run.said("So.")
    reply, model, record = run(CHAT, MESSAGES, *rounds, stream=stream)
    assert model.calls[1]["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig1"}
    assert b"reasoning_details" not in reply.body
    assert record.dropped == ("answer:seals",)


def test_reasoning_without_a_proof_stays_beside_that_with_one(run):
    document = {"id": "m", "type": "message", "role": "assistant", "model": "u", "stop_reason": "tool_use", "usage": {}}
    thoughts = [{"type": "thinking", "thinking": "a", "signature": ""}, {"type": "thinking", "thinking": "b", "signature": "sig"}]
    first = document | {"content": [*thoughts, {"type": "tool_use", "id": "t", "name": "web_search", "input": {"query": "news"}}]}
    _, model, _ = run(CHAT, MESSAGES, json.dumps(first).encode(), run.said("So."), binding="dialect = { signatures = false }\n")
    told = [block for block in model.calls[1]["messages"][1]["content"] if block["type"] == "thinking"]
    assert told == [{"type": "thinking", "thinking": "a"}, thoughts[1]]


def test_a_client_of_the_deprecated_functions_is_served(go, run):
    functions = {"functions": [{"name": "look", "parameters": {"type": "object"}}]}
    told, _, _ = go(CHAT, RESPONSES, run.said("", (SEARCH,)), run.said(ANSWER), members=functions)
    assert told.texts == ANSWER


def test_the_echo_of_the_request_knows_nothing_of_the_function(run):
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, {"type": "function", "name": "look"}]}
    members = OWN_TOOL[RESPONSES] | {"tool_choice": allowed}
    reply, _, _ = run(RESPONSES, RESPONSES, run.said("", (SEARCH,)), run.said("So."), members=members)
    assert [tool["name"] for tool in reply.json["tools"]] == ["look"]
    assert reply.json["tool_choice"]["tools"] == [{"type": "function", "name": "look"}]
    reply, _, _ = run(RESPONSES, RESPONSES, run.said("", (SEARCH,)), run.said("So."), members={"tool_choice": {"type": "web_search_preview"}})
    assert (reply.json["tools"], reply.json["tool_choice"]) == ([], "auto")


# The official SDKs ----------------------------------------------------------------------------------------------------------------------------


def served(reply, library=httpx):
    """An HTTP client whose server answers with what the gateway said."""
    answer = library.Response(200, content=reply.body, headers={"content-type": "text/event-stream"})
    return library.Client(transport=library.MockTransport(lambda _: answer))


def chat_sdk(reply):
    client = openai.OpenAI(api_key="k", base_url="http://x", http_client=served(reply))
    with client, client.chat.completions.stream(model="m", messages=[]) as stream:
        message = stream.get_final_completion().choices[0].message
    return message.content, [note.url_citation.url for note in message.annotations]


def responses_sdk(reply):
    client = openai.OpenAI(api_key="k", base_url="http://x", http_client=served(reply))
    with client, client.responses.stream(model="m", input="") as stream:
        final = stream.get_final_response()
    assert [item.action.query for item in final.output if item.type == "web_search_call"] == ["news"]
    notes = [note.url for item in final.output if item.type == "message" for part in item.content for note in part.annotations]
    return final.output_text, notes


def messages_sdk(reply):
    client = anthropic.Anthropic(api_key="k", base_url="http://x", http_client=served(reply, httpx2))
    with client, client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
        message = stream.get_final_message()
    [use] = [block for block in message.content if block.type == "server_tool_use"]
    [result] = [block for block in message.content if block.type == "web_search_tool_result"]
    assert (use.input, result.tool_use_id, len(result.content)) == ({"query": "news"}, use.id, 2)
    texts = [block for block in message.content if block.type == "text"]
    return "".join(block.text for block in texts), [one.url for block in texts for one in block.citations or ()]


def gemini_sdk(reply):
    with genai.Client(api_key="k", http_options={"base_url": "http://x", "httpx_client": served(reply)}) as client:
        chunks = list(client.models.generate_content_stream(model="m", contents="hi"))
    ground = chunks[-1].candidates[0].grounding_metadata
    cited = [ground.grounding_chunks[place].web.uri for one in ground.grounding_supports for place in one.grounding_chunk_indices]
    assert ground.web_search_queries == ["news"]
    return "".join(part.text or "" for chunk in chunks for part in chunk.candidates[0].content.parts or ()), cited


SDKS = {CHAT: chat_sdk, RESPONSES: responses_sdk, MESSAGES: messages_sdk, GEMINI: gemini_sdk}


@pytest.mark.parametrize("upstream", SURFACES)
@pytest.mark.parametrize("client", SDKS)
def test_the_official_sdks_read_the_streams(run, client, upstream):
    reply, _, _ = run(client, upstream, run.said("Well. ", (SEARCH,)), run.said(ANSWER), stream=True)
    assert SDKS[client](reply) == (f"Well. {ANSWER}", [ONE])
