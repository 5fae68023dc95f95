"""A hosted search asked for within Zed's envelope: the rounds leave as lines, with one terminal, and nothing else while a search runs."""

from __future__ import annotations

import itertools
import json
import uuid

import pytest

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

PROVIDERS = {CHAT: "x_ai", RESPONSES: "open_ai", MESSAGES: "anthropic", GEMINI: "google"}
SEARCH = ("web_search", '{"query": "news"}')
ANSWER = "It is https://a.example/one, so."
ASKS = {
    CHAT: {"messages": [{"role": "user", "content": "news?"}], "web_search_options": {}},
    RESPONSES: {"input": "news?", "tools": [{"type": "web_search"}]},
    MESSAGES: {
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "news?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "news?"}]}], "tools": [{"googleSearch": {}}]},
}
PAIRS = [*itertools.product(ASKS, [CHAT, MESSAGES])]


@pytest.fixture
def told(run, grammar):
    """One request of a Zed client: the events as SSE of the surface within, the terminal, the model and the record."""

    def one(client, upstream, *rounds, **options):
        body = {"provider": PROVIDERS[client], "model": "m", "provider_request": ASKS[client]}
        reply, model, record = run(client, upstream, *rounds, stream=True, path="/completions", body=body, grammar=False, **options)
        assert (reply.status, reply.headers["content-type"], reply.body[-1:]) == (200, "application/x-ndjson", b"\n")
        lines = [json.loads(line) for line in reply.body.splitlines()]
        assert all(len(line) == 1 for line in lines)
        *events, end = lines
        frames = [(f"event: {one['type']}\n" if "type" in one else "") + f"data: {json.dumps(one)}\n\n" for one in (line["event"] for line in events)]
        if end["status"] == "stream_ended":
            grammar(client, "".join([*frames, "data: [DONE]\n\n" if client == CHAT else ""]).encode())
        return "".join(frames), end["status"], model, record

    return one


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_rounds_are_one_stream_of_lines(told, run, search, client, upstream):
    search.delay = 0.1  # a Zed client gets no sign of life meanwhile: it could not read one
    rounds = run.said("Let me see. ", (SEARCH,)), run.said(ANSWER, used=(20, 5))
    text, end, model, record = told(client, upstream, *rounds, more="[limits]\nkeepalive_seconds = 0.02\n")
    assert (end, record.ending, record.rounds, record.usage.output) == ("stream_ended", Ending.COMPLETED, 2, 9)
    assert (search.queries, len(model.calls)) == (["news"], 2)
    assert text.index("Let me see.") < text.index("It is https://a.example/one")
    assert '"tool_calls"' not in text


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_round_that_fails_is_the_one_terminal(told, run, client, upstream):
    broke = UpstreamError(Code.UPSTREAM_UNREACHABLE, "not there")
    _, end, _, record = told(client, upstream, run.said("Let me see. ", (SEARCH,)), broke)
    assert end["failed"]["code"] == "upstream_http_502"
    assert uuid.UUID(end["failed"]["request_id"])
    assert (record.ending, record.code) == (Ending.FAILED, Code.UPSTREAM_UNREACHABLE)
