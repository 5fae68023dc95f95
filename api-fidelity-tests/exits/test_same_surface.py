"""A client and an upstream of one surface on different transports: what a stream and a document of the surface can both say stays as it was said.

Folded, a stream keeps every finish word, block, item and part; unfolded, a document is what the official SDKs put together again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai

from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
NAMES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}


def streams():
    """The streams of the corpus, and the recorded ones beside the checkout where they are there."""
    for name, surface in NAMES.items():
        for path in (*sorted(CORPUS.glob(f"*--{name}/*/upstream.sse")), *sorted((RECORDED / name).glob("*.sse"))):
            yield surface, path


def documents():
    """The same of documents: a recording holds its document within."""
    for name, surface in NAMES.items():
        for path in (*sorted(CORPUS.glob(f"*--{name}/*/upstream.json")), *sorted((RECORDED / name).glob("*.json"))):
            said = json.loads(path.read_bytes())
            document = said["response"].get("body") if "source" in said else said
            if isinstance(document, dict):
                yield surface, path, document


@pytest.fixture
def cross(ask, gateway, upstream, wires, records):
    """One request to a gateway whose binding is of the client's surface: what the client got of `body`, and the record."""

    def one(surface, body, *, stream, client=None, top="", **members):
        records.clear()
        path, asked = wires[client or surface].ask(stream=stream, **members)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = ask(gateway(upstream(chunks=[raw]), surface, top=top), path, asked)
        assert reply.whole
        [record] = records
        return reply, record

    return one


def data(body):
    """The data of a stream's events, up to its end."""
    frames = body.decode().partition("[DONE]")[0].replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    texts = ["\n".join(line.removeprefix("data:").strip() for line in frame.split("\n") if line.startswith("data:")) for frame in frames]
    events = [json.loads(text) for text in texts if text]
    ends = [number for number, event in enumerate(events, 1) if event.get("type") in ("response.completed", "response.incomplete")]
    return events[: min(ends, default=None)]  # some recordings hold several answers


# What a stream says that the document must say too: reasons, and the names of everything that an answer is made of ---------------------------


def chat_says(event):
    for choice in event.get("choices") or ():
        yield from (f"message.{name}" for name, value in (choice.get("delta") or {}).items() if value not in (None, "", []))
        yield f"reason {choice.get('finish_reason')}"
        yield from (f"choice.{name}" for name, value in choice.items() if name != "delta" and value is not None)
    yield from (name for name, value in event.items() if value is not None)


def chat_said(answer):
    for choice in answer["choices"]:
        yield from (f"message.{name}" for name in choice["message"])
        yield f"reason {choice['finish_reason']}"
        yield from (f"choice.{name}" for name in choice)
    yield from answer


def responses_says(event):
    if event.get("type") == "response.output_item.done":
        yield from item_says(event["item"])
    if event.get("type") in ("response.completed", "response.incomplete"):
        yield from responses_said(event["response"])


def responses_said(answer):
    yield f"status {answer['status']} {answer.get('incomplete_details')}"
    yield from answer
    for item in answer["output"]:
        yield from item_says(item)


def item_says(item):
    yield item["type"]
    yield from (f"{item['type']}.{part['type']} {part.get('annotations')}" for part in item.get("content") or ())


def messages_says(event):
    if event.get("type") == "content_block_start":
        yield event["content_block"]["type"]
    if event.get("type") == "message_delta":
        yield from (f"{name} {value}" for name, value in event["delta"].items())
        yield from (f"usage.{name}" for name in event.get("usage") or ())


def messages_said(answer):
    yield from (block["type"] for block in answer["content"])
    yield from (f"{name} {value}" for name, value in answer.items())
    yield from (f"usage.{name}" for name in answer["usage"])


def gemini_says(event):
    for candidate in event.get("candidates") or ():
        yield from (f"part.{name}" for part in (candidate.get("content") or {}).get("parts") or () for name in part)
        yield from (f"candidate.{name}" for name in candidate)
        yield f"reason {candidate.get('finishReason')}"
    yield from event


SAYS = {CHAT: chat_says, RESPONSES: responses_says, MESSAGES: messages_says, GEMINI: gemini_says}
SAID = {CHAT: chat_said, RESPONSES: responses_said, MESSAGES: messages_said, GEMINI: gemini_says}
STREAM_ONLY = {"reason None", "obfuscation"}


def test_a_folded_stream_keeps_every_reason_and_every_kind_of_part(cross):
    folded = 0
    for surface, path in streams():
        reply, record = cross(surface, path.read_bytes(), stream=False)
        if reply.status != 200:
            assert record.ending == Ending.FAILED
            continue
        told = {one for event in data(path.read_bytes()) for one in SAYS[surface](event)}
        half = {"tool_use"} if record.dropped else set()
        weighed = {"reason STOP"} if sum(one.startswith("reason ") for one in told - STREAM_ONLY) > 1 else set()
        assert told - {*SAID[surface](reply.json)} - STREAM_ONLY - weighed == half, path
        assert not half or (record.dropped, record.stop) == (("answer:half_call",), "length"), path
        folded += 1
    assert folded > 30


# What the official SDKs make of a stream, and of a document ------------------------------------------------------------------------------------

WHOLE, LIVE = "application/json", "text/event-stream"
HI = [{"role": "user", "content": "hi"}]


def served(body, kind, http=httpx):
    """An HTTP client for SDKs, of a server that always says this."""
    return http.Client(transport=http.MockTransport(lambda _: http.Response(200, headers={"content-type": kind}, content=body)))


def chat_reads(body, kind):
    chat = openai.OpenAI(api_key="k", http_client=served(body, kind)).chat.completions
    if kind != LIVE:
        return chat.create(model="m", messages=HI).to_dict()
    with chat.stream(model="m", messages=HI) as stream:
        [last] = [event.snapshot for event in stream if event.type == "chunk"][-1:]  # the final one is refused where a limit was reached
        return last.to_dict()


def responses_reads(body, kind):
    responses = openai.OpenAI(api_key="k", http_client=served(body, kind)).responses
    if kind != LIVE:
        return responses.create(model="m", input="hi").to_dict()
    with responses.stream(model="m", input="hi") as stream:
        [last] = [event for event in stream if event.type in ("response.completed", "response.incomplete")]
        return last.response.to_dict()


def messages_reads(body, kind):
    messages = anthropic.Anthropic(api_key="k", http_client=served(body, kind, httpx2)).messages
    if kind != LIVE:
        return messages.create(model="m", max_tokens=9, messages=HI).to_dict()
    with messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        return stream.get_final_message().to_dict()


def gemini_reads(body, kind):
    models = genai.Client(api_key="k", http_options=genai.types.HttpOptions(httpx_client=served(body, kind))).models
    if kind != LIVE:
        return models.generate_content(model="m", contents="hi").model_dump(mode="json", exclude={"sdk_http_response"})
    [chunk] = models.generate_content_stream(model="m", contents="hi")
    return chunk.model_dump(mode="json", exclude={"sdk_http_response"})


READS = {CHAT: chat_reads, RESPONSES: responses_reads, MESSAGES: messages_reads, GEMINI: gemini_reads}
WANTS_USAGE = {CHAT: {"stream_options": {"include_usage": True}}}


def lost(said, more):
    """What of `said` is missing or other in `more`, by place. A null says nothing, nor does an empty list."""
    if isinstance(said, dict) and isinstance(more, dict):
        return [f"/{name}{place}" for name, value in said.items() for place in lost(value, more.get(name))]
    if isinstance(said, list) and isinstance(more, list) and len(said) == len(more):
        return [f"/{number}{place}" for number, pair in enumerate(zip(said, more, strict=True)) for place in lost(*pair)]
    return [] if (said or None) == (more or None) else [f" {said} != {more}"]


# Calls that ended without arguments have an empty object, those without an id get one; and the SDK keeps a choice's own members of its first chunk alone.
QUIRKS = re.compile(r"/function/arguments  != {}$|/id  != asf_|^/choices/\d/(stop_reason|content_filter_results)\b")


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # the SDK's own, where a compatible server's members have other types
def test_a_document_that_is_unfolded_is_put_together_to_the_same(cross):
    whole = 0
    for surface, path, document in documents():
        reply, record = cross(surface, document, stream=True, **WANTS_USAGE.get(surface, {}))
        if reply.status != 200:
            assert record.ending == Ending.FAILED
            continue
        assert record.dropped == (), path
        again, _ = cross(surface, reply.body, stream=False)
        assert [place for place in lost(document, again.json) if not QUIRKS.search(place)] == [], path
        unread = lost(READS[surface](json.dumps(document).encode(), WHOLE), READS[surface](reply.body, LIVE))
        assert [place for place in unread if not QUIRKS.search(place)] == [], path
        whole += 1
    assert whole > 20
