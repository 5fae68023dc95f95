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

from asgi_surface.codecs.gemini.stream import STOPS as GEMINI_STOPS
from asgi_surface.crossing import Whole
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.events import Closed, Start
from asgi_surface.events import Ending as EndingOf
from asgi_surface.ir import Stop
from asgi_surface.layers.exchange import Ending
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
NAMES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}


HOSTED = ["streaming", "tools"]


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

    def one(surface, body, *, stream, client=None, top="", features=HOSTED, **members):
        records.clear()
        path, asked = wires[client or surface].ask(stream=stream, **members)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = ask(gateway(upstream(chunks=[raw]), surface, top=top, features=features), path, asked)
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
    yield from (f"{item['type']}.{part['type']} {part.get('annotations')}" for part in item.get("content") or () if isinstance(part, dict))


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


# Calls that ended without arguments have an empty object, those without an id get one; and of a choice's own members the SDK keeps the first.
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


# What no other surface could say -------------------------------------------------------------------------------------------------------------------

BEYOND_GEMINI = [reason for reason, stop in GEMINI_STOPS.items() if stop is not Stop.ERROR]
RATED = {"safetyRatings": [{"category": "C", "probability": "LOW"}], "finishMessage": "why", "tokenCount": 3}
SOURCES = {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}


def sse(*events, named=True, done=False):
    frames = [(f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]
    return b"".join([*frames, b"data: [DONE]\n\n" if done else b""])


def gemini(*parts, reason="STOP", **more):
    candidate = {"content": {"role": "model", "parts": [*parts]}, "index": 0, **({"finishReason": reason} if reason else {}), **more}
    return {"candidates": [candidate], "modelVersion": "up", "responseId": "r"}


@pytest.mark.parametrize("reason", BEYOND_GEMINI)
def test_every_reason_of_gemini_stays_on_every_transport(cross, reason):
    document = gemini({"text": "a"}, *CODE, IMAGE, reason=reason, groundingMetadata=SOURCES, **RATED) | {"usageMetadata": {"promptTokenCount": 3}}
    folded, _ = cross(GEMINI, sse(document, named=False), stream=False)
    events, record = cross(GEMINI, document, stream=True)
    array, _ = cross(GEMINI, sse(document, named=False), stream=True, client="array")
    back, _ = cross(GEMINI, [document], stream=True)
    assert (folded.json, data(events.body), array.json, data(back.body)) == (document, [document], [document], [document])
    assert (record.dropped, record.usage.input, record.stop) == ((), 3, GEMINI_STOPS[reason].name.lower())


def test_the_pieces_of_a_gemini_stream_are_one_answer(cross):
    chunks = [
        gemini({"text": "th", "thought": True}, reason=None),
        gemini({"text": "ought", "thought": True}, reason=None, logprobsResult={"chosenCandidates": [{"token": "a"}], "logProbabilitySum": 1}),
        gemini({"text": "He"}, {"text": "y", "thoughtSignature": "c2ln"}, reason="RECITATION", citationMetadata={"citationSources": [{"uri": "a"}]}),
        gemini({"text": "!"}, CODE[0], reason="STOP", logprobsResult={"chosenCandidates": [{"token": "b"}]}),
        {"candidates": [{"index": 0}], "usageMetadata": {"totalTokenCount": 9}, "modelVersion": None},
        {"candidates": [{"content": None, "index": None, "citationMetadata": {"citationSources": [{"uri": "b"}]}}]},
    ]
    reply, _ = cross(GEMINI, sse(*chunks, named=False), stream=False)
    [candidate] = reply.json["candidates"]
    texts = [{"text": "thought", "thought": True}, {"text": "He"}, {"text": "y", "thoughtSignature": "c2ln"}, {"text": "!"}, CODE[0]]
    assert candidate["content"] == {"role": "model", "parts": texts}
    assert (candidate["finishReason"], candidate["citationMetadata"]) == ("RECITATION", {"citationSources": [{"uri": "a"}, {"uri": "b"}]})
    assert candidate["logprobsResult"] == {"chosenCandidates": [{"token": "a"}, {"token": "b"}]}
    assert (reply.json["modelVersion"], reply.json["usageMetadata"]) == ("up", {"totalTokenCount": 9})


def source(name):
    return {"web": {"uri": f"https://{name}.example", "title": name}}


def support(end, *indices):
    return {"segment": {"startIndex": 0, "endIndex": end}, "groundingChunkIndices": list(indices), "confidenceScores": [0.5]}


A, B, C = map(source, "abc")
GROUNDED = {
    "pieces, each numbered for itself": (
        [
            {"groundingChunks": [A], "groundingSupports": [support(1, 0)]},
            {"groundingChunks": [B, A], "groundingSupports": [support(2, 0, 1, 9, "?")]},
        ],
        {"groundingChunks": [A, B], "groundingSupports": [support(1, 0), support(2, 1, 0)]},
    ),
    "all said again, and more": (
        [
            {"groundingChunks": [A], "groundingSupports": [support(1, 0)]},
            {"groundingChunks": [A, C], "groundingSupports": [support(1, 0), support(2, 1)]},
        ],
        {"groundingChunks": [A, C], "groundingSupports": [support(1, 0), support(2, 1)]},
    ),
    "supports without sources": (
        [{"groundingChunks": [A, B]}, {"groundingSupports": [support(2, 1)]}],
        {"groundingChunks": [A, B], "groundingSupports": [support(2, 1)]},
    ),
    "queries, an entry point, and nothing more": (
        [{"webSearchQueries": ["p", "q"], "searchEntryPoint": {"a": 1}}, {"webSearchQueries": ["q", "r"], "searchEntryPoint": {"a": 2}}, {}],
        {"searchEntryPoint": {"a": 2}, "webSearchQueries": ["p", "q", "r"]},
    ),
}


@pytest.mark.parametrize("case", GROUNDED)
def test_grounding_that_comes_in_pieces_is_one_in_a_document(cross, case):
    pieces, grounding = GROUNDED[case]
    chunks = [gemini({"text": "a"}, reason=None, groundingMetadata=one) for one in pieces]
    reply, _ = cross(GEMINI, sse(*chunks, gemini({"text": "b"}), named=False), stream=False)
    assert reply.json["candidates"][0]["groundingMetadata"] == grounding


def test_a_call_that_gemini_tells_in_pieces_is_whole_in_a_document(cross):
    pieces = [
        {"functionCall": {"name": "f", "id": "1", "willContinue": True}, "thoughtSignature": "c2ln"},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}]}},
        {"functionCall": {"name": "g", "args": {"b": 1.0}}},
    ]
    reply, _ = cross(GEMINI, sse(*(gemini(one) for one in pieces), named=False), stream=False)
    [candidate] = reply.json["candidates"]
    call = {"functionCall": {"name": "f", "id": "1", "args": {"a": "xy"}}, "thoughtSignature": "c2ln"}
    assert candidate["content"]["parts"] == [call, pieces[3]]


def test_half_a_call_of_gemini_is_none_in_a_document(cross):
    begun = {"functionCall": {"name": "f", "willContinue": True}}
    more = {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}}
    chunks = gemini({"text": "a"}, begun, reason=None), gemini(more, reason="MAX_TOKENS")
    reply, record = cross(GEMINI, sse(*chunks, named=False), stream=False)
    [candidate] = reply.json["candidates"]
    assert (candidate["content"]["parts"], candidate["finishReason"], record.dropped) == ([{"text": "a"}], "MAX_TOKENS", ("answer:half_call",))


@pytest.mark.parametrize(
    ("reasons", "told"),
    [(("FINISH_REASON_UNSPECIFIED", "STOP"), "STOP"), (("STOP", "FINISH_REASON_UNSPECIFIED"), "STOP"), (("SAFETY", "STOP"), "SAFETY")],
)
def test_the_weightiest_reason_of_gemini_stands_in_a_document(cross, reasons, told):
    reply, _ = cross(GEMINI, sse(*(gemini({"text": "a"}, reason=reason) for reason in reasons), named=False), stream=False)
    assert [one["finishReason"] for one in reply.json["candidates"]] == [told]


def test_a_blocked_prompt_has_no_candidate_on_any_transport(cross):
    refused = {"candidates": [{"index": 0, "finishReason": "SPII", **RATED}], "modelVersion": "up"}
    assert cross(GEMINI, sse(refused, named=False), stream=False)[0].json == refused
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": RATED["safetyRatings"]}, "modelVersion": "up"}
    folded, _ = cross(GEMINI, sse(blocked, named=False), stream=False)
    events, _ = cross(GEMINI, blocked, stream=True)
    assert (folded.json, data(events.body)) == (blocked, [blocked])


# Gemini's two framings --------------------------------------------------------------------------------------------------------------------------


def test_a_reframed_stream_keeps_its_json_and_says_each_end_once(cross):
    texts = [b'{"candidates": [{"content": {"parts": [{"text": "\\u00e9"}]}}],\n "x": 1.0e5}', b'{"candidates":[{"finishReason":"SPII"}]}']
    events = b": hi\n\ndata: " + texts[0].replace(b"\n", b"\ndata: ") + b"\n\nevent: x\n\ndata: " + texts[1] + b"\n\n"
    array, record = cross(GEMINI, events, stream=True, client="array")
    assert (array.body, record.stop, record.frames) == (b"[" + b",".join(texts) + b"]", "filter", 2)
    said, record = cross(GEMINI, b"[" + b"\n,".join(texts) + b"]\n", stream=True)
    assert said.body == b'data: {"candidates":[{"content":{"parts":[{"text":"\\u00e9"}]}}],"x":1.0e5}\n\ndata: ' + texts[1] + b"\n\n"
    assert (record.stop, record.frames) == ("filter", 2)


@pytest.mark.parametrize("last", [b"", b"data: {", b'data: {"error": {"code": 429, "message": "late"}}\n\n'])
def test_a_reframed_stream_that_breaks_off_ends_with_one_error(cross, last):
    reply, record = cross(GEMINI, sse(gemini({"text": "a"}, reason=None), named=False) + last, stream=True, client="array")
    [said, error] = reply.json
    assert (said["candidates"][0]["content"]["parts"], "error" in error, record.ending) == ([{"text": "a"}], True, Ending.FAILED)


@pytest.mark.parametrize("reason", ["STOP", None])
@pytest.mark.parametrize(("client", "stream"), [(GEMINI, True), ("array", True), (GEMINI, False)])
def test_what_proxies_send_behind_a_gemini_stream_is_no_chunk_and_no_end(cross, client, stream, reason):
    reply, record = cross(GEMINI, sse(gemini({"text": "a"}, reason=reason), named=False, done=True), stream=stream, client=client)
    assert b"[DONE]" not in reply.body
    assert (record.ending, record.code) == ((Ending.COMPLETED, None) if reason else (Ending.FAILED, Code.UPSTREAM_TRUNCATED))
    if stream and client == GEMINI:
        assert ["error" in one for one in data(reply.body)] == ([False] if reason else [False, True])
    else:
        answers = reply.json if stream else [reply.json]
        assert (answers[0].get("candidates", [None])[0] is not None, "error" in answers[-1]) == (stream or bool(reason), not reason)


# Messages ---------------------------------------------------------------------------------------------------------------------------------------

MESSAGE = {"id": "a", "type": "message", "role": "assistant", "model": "up", "stop_sequence": None}
CITED = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "encrypted_index": "e", "cited_text": "c"}
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "thinking", "thinking": "", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]},
    {"type": "text", "text": "Hi", "citations": [CITED]},
    {"type": "text", "text": "!", "citations": None},
    {"type": "compaction", "content": "short"},
    {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    {"type": "tool_use", "id": "t2", "name": "f", "input": {"a": 1.0}},
]


@pytest.mark.parametrize("reason", ["model_context_window_exceeded", "pause_turn", "refusal", "compaction", "end_turn", "max_tokens", "new_reason"])
def test_every_block_and_reason_of_messages_stays_on_every_transport(cross, reason):
    more = {"container": {"id": "c", "expires_at": "t"}, "context_management": {"applied_edits": []}, "stop_details": {"type": "refusal"}}
    usage = {"input_tokens": 3, "output_tokens": 2, "server_tool_use": {"web_search_requests": 1}}
    document = {**MESSAGE, "content": BLOCKS, "stop_reason": reason, **more, "usage": usage}
    events, record = cross(MESSAGES, document, stream=True)
    assert (events.status, record.dropped, record.usage.input) == (200, (), 3)
    folded, record = cross(MESSAGES, events.body, stream=False)
    assert (lost(document, folded.json), lost(folded.json, document), record.dropped) == ([], [], ())


def messages(*events, reason="end_turn"):
    begun = {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}}}
    ending = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}
    return sse(begun, *events, ending, {"type": "message_stop"})


def block(index, begun, *deltas, stop=True):
    events = [{"type": "content_block_start", "index": index, "content_block": begun}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, *([{"type": "content_block_stop", "index": index}] if stop else [])]


def test_a_messages_stream_is_read_as_tolerantly_as_ever(cross):
    text = {"type": "text", "text": ""}
    events = [
        {"type": "message_start", "message": {"id": "again", "usage": {"input_tokens": 4}}},
        {"type": "ping"},
        *block(0, text, {"type": "text_delta", "text": "a"}, stop=False),
        *block(0, text, {"type": "text_delta", "text": "b"}),
        *block(1, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "s", "encrypted_content": "e"}),
        *block(1, {"type": "novel", "x": "1", "n": 0}, {"type": "novel_delta", "x": "2", "n": 5}),
        {"type": "content_block_delta", "index": 7, "delta": {"type": "novel_delta", "y": "nobody's"}},
        {"type": "content_block_stop", "index": 7},
        *block(1, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}}, {"type": "input_json_delta", "partial_json": '{"a":'}),
    ]
    reply, record = cross(MESSAGES, messages(*events), stream=False)
    assert (reply.json["id"], reply.json["usage"]) == ("a", {"input_tokens": 4, "output_tokens": 2})
    assert reply.json["content"] == [
        {"type": "text", "text": "ab"},
        {"type": "compaction", "content": "s", "encrypted_content": "e"},
        {"type": "novel", "x": "12", "n": 5},
    ]
    assert record.dropped == ("answer:half_call",)  # of a hosted tool, too


@pytest.mark.parametrize("reasons", [("max_tokens", "end_turn"), ("end_turn", "max_tokens"), ("max_tokens", None), ("max_tokens", "")])
def test_the_weightiest_reason_of_a_message_stands_in_a_document(cross, reasons):
    """A cut is never called an end, whatever is said after it."""
    told = {"type": "message_delta", "delta": {"stop_reason": reasons[0], "stop_sequence": None}, "usage": {"output_tokens": 2}}
    reply, record = cross(MESSAGES, messages(*block(0, {"type": "text", "text": "a"}), told, reason=reasons[1]), stream=False)
    assert (reply.json["stop_reason"], record.stop) == ("max_tokens", "length")


def test_what_a_message_holds_as_it_begins_is_told(cross):
    begun, *rest = messages(*block(0, {"type": "text", "text": "b"})).split(b"\n\n")
    held = [{"type": "text", "text": ""}, {"type": "text", "text": "a"}, {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}}]
    stream = b"\n\n".join([begun.replace(b'"content": []', b'"content": ' + json.dumps(held).encode()), *rest])
    again = b"\n\n".join([begun.replace(b'"content": []', b'"content": [{"type": "text", "text": "twice"}]'), stream])
    reply, _ = cross(MESSAGES, stream, stream=False)
    assert reply.json["content"] == [*held[1:], {"type": "text", "text": "b"}]
    reply, _ = cross(MESSAGES, again, stream=False)
    assert reply.json["content"] == [{"type": "text", "text": "twice"}, {"type": "text", "text": "b"}]


def test_a_call_that_was_cut_off_before_its_input_is_none(cross):
    calls = [event for index in (0, 1) for event in block(index, {"type": "tool_use", "id": f"t{index}", "name": "f", "input": {}})]
    reply, record = cross(MESSAGES, messages(*calls, reason="max_tokens"), stream=False)
    assert ([one["id"] for one in reply.json["content"]], record.dropped) == (["t0"], ("answer:half_call",))


# Chat -------------------------------------------------------------------------------------------------------------------------------------------

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "system_fingerprint": "fp", "service_tier": "default"}


def chat(*deltas, reason="stop", **more):
    chunks = [{**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return sse(*chunks, {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": reason, **more}], "x": [1]}, named=False, done=True)


GROWING = {
    "text": ([{"role": "assistant", "content": "a", "refusal": None}, {"role": "assistant", "content": "b"}], {"content": "ab", "refusal": None}),
    "refusal": ([{"content": None, "refusal": "n"}, {"refusal": "o"}], {"content": None, "refusal": "no"}),
    "reasoning": ([{"reasoning_content": "a", "reasoning": "a"}, {"reasoning_content": "b"}], {"reasoning_content": "ab", "reasoning": "a"}),
    "audio": (
        [{"content": "x", "audio": {"id": "i", "data": "A"}}, {"audio": {"data": "B", "expires_at": 5}}],
        {"content": "x", "audio": {"id": "i", "data": "AB", "expires_at": 5}},
    ),
    "details": (
        [
            {"content": "x", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]},
            {"reasoning_details": [{"text": "b", "index": 0}, {"type": "reasoning.encrypted", "data": "d", "index": 0}, 5]},
        ],
        {"reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0}, {"type": "reasoning.encrypted", "data": "d", "index": 0}, 5]},
    ),
    "mistral": (
        [
            {"content": "a"},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}, {"type": "reference", "ids": [1]}]},
            {"content": "b"},
            {"content": "c"},
        ],
        {
            "content": [
                {"type": "text", "text": "a"},
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "reference", "ids": [1]},
                {"type": "text", "text": "bc"},
            ]
        },
    ),
    "annotations": ([{"content": "x", "annotations": [{"type": "u"}]}, {"annotations": [{"type": "u"}]}], {"annotations": [{"type": "u"}] * 2}),
}


@pytest.mark.parametrize(("deltas", "message"), GROWING.values(), ids=GROWING)
def test_a_chat_message_grows_member_by_member(cross, deltas, message):
    reply, record = cross(CHAT, chat(*deltas), stream=False)
    [choice] = reply.json["choices"]
    assert lost({"role": "assistant"} | message, choice["message"]) == []
    assert {name: reply.json[name] for name in ("system_fingerprint", "service_tier", "object", "x")} == {
        "system_fingerprint": "fp",
        "service_tier": "default",
        "object": "chat.completion",
        "x": [1],
    }
    assert record.dropped == ()


def called(*calls, **more):
    return {"tool_calls": [*calls], **more}


def test_usage_that_no_chunk_told_is_no_member_of_a_chat_document(cross):
    chunks = [{**HEAD, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": end}], "usage": None} for end in (None, "stop")]
    stream = sse(*chunks, named=False, done=True)
    reply, _ = cross(CHAT, stream, stream=False)
    assert (reply.json["choices"][0]["message"]["content"], "usage" in reply.json) == ("aa", False)


@pytest.mark.parametrize("last", [{}, {"content": ""}, {"content": "Hi", "extra": [1]}, {"content": None, "tool_calls": []}])
@pytest.mark.parametrize("beside", [True, False])
def test_whole_messages_in_a_chat_stream_stand_in_its_document(cross, beside, last):
    """Beside deltas and in their place. What the last of them leaves out stands."""
    more = {name: value for name, value in last.items() if value}
    asked = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "note": 1}
    said = {"role": "assistant", "content": "Hi", "tool_calls": [asked]}
    deltas = [{"delta": said | {"tool_calls": [asked | {"index": 0}]}}] if beside else []
    told = [*deltas, {"message": last if beside else said}, {"message": last}, {"delta": {}, "finish_reason": "tool_calls"}]
    stream = sse(*({**HEAD, "choices": [{"index": 0} | one]} for one in told), named=False, done=True)
    folded, record = cross(CHAT, stream, stream=False)
    [choice] = folded.json["choices"]
    assert {name: value for name, value in choice["message"].items() if value is not None} == said | more
    assert record.stop == "tools"


def test_calls_of_a_chat_stream_keep_what_stands_beside_them(cross):
    proof = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    deltas = [
        called({"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": ""}, **proof}),
        called({"index": 5, "extra_content": {"google": {"thought_signature": "nobody's"}}}),
        called({"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "id": "2", "type": "custom", "custom": {"name": "g", "input": "x"}}),
    ]
    reply, record = cross(
        CHAT, chat(*deltas, reason="tool_calls", stop_reason=5, token_ids=[1, 2], logprobs={"content": [{"token": "a"}]}), stream=False
    )
    [choice] = reply.json["choices"]
    function = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **proof}
    assert choice["message"]["tool_calls"] == [function, {"id": "2", "type": "custom", "custom": {"name": "g", "input": "x"}}]
    assert (choice["stop_reason"], choice["token_ids"], choice["logprobs"]) == (5, [1, 2], {"content": [{"token": "a"}]})
    events, _ = cross(CHAT, reply.json, stream=True)
    again, _ = cross(CHAT, events.body, stream=False)
    assert (again.json, record.dropped) == (reply.json, ())


def test_the_deprecated_call_and_several_answers_stay(cross):
    chunks = [
        {**HEAD, "choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]},
        {**HEAD, "choices": [{"index": 0, "delta": {"function_call": {"name": "f", "arguments": "{}"}}, "finish_reason": "function_call"}]},
        {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    asked = {"functions": [{"name": "f", "parameters": {"type": "object"}}], "n": 2}
    reply, _ = cross(CHAT, sse(*chunks, named=False, done=True), stream=False, features=["streaming", "tools", "multiple-choices"], **asked)
    told = [(one["index"], one["finish_reason"], one["message"]) for one in reply.json["choices"]]
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert told == [(0, "function_call", call), (1, "length", {"role": "assistant", "content": "b"})]


def test_an_unfolded_chat_answer_has_what_clients_need(cross):
    """Engines leave ids and kinds out, and say arguments as an object."""
    call = {"id": "", "function": {"name": "f", "arguments": {"a": 1}}}
    document = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    reply, _ = cross(CHAT, document, stream=True)
    [call] = [call for event in data(reply.body) for choice in event["choices"] for call in choice["delta"].get("tool_calls", ())]
    assert (call["index"], call["type"], call["function"]) == (0, "function", {"name": "f", "arguments": '{"a": 1}'})
    assert call["id"].startswith("asf_")
    empty, _ = cross(CHAT, {"choices": [{"index": 0, "message": {"role": "assistant"}, "finish_reason": "stop"}]}, stream=True)
    assert [event["choices"][0]["delta"] for event in data(empty.body)] == [{"role": "assistant"}, {}]


# Responses --------------------------------------------------------------------------------------------------------------------------------------

TEXT = {"type": "output_text", "text": "Hi", "annotations": [{"type": "file_citation", "file_id": "f", "index": 0}], "logprobs": []}
ITEMS = [
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
    {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "code_interpreter_call", "id": "c1", "status": "completed", "code": "1", "container_id": "k", "outputs": []},
    {"type": "image_generation_call", "id": "i1", "status": "completed", "result": "AA=="},
    {"type": "mcp_call", "id": "m1", "name": "n", "server_label": "s", "arguments": "{}", "output": "o"},
    {"type": "function_call", "id": "f1", "call_id": "1", "name": "f", "arguments": "{}", "status": "completed"},
    {"type": "custom_tool_call", "id": "u1", "call_id": "2", "name": "g", "input": ""},
    {"type": "novel", "id": "n1", "x": 1.0, "content": [5]},
    {"type": "message", "id": "t1", "role": "assistant", "status": "completed", "phase": "final", "content": [TEXT, {"type": "novel_part"}]},
]


@pytest.mark.parametrize("reason", [None, "max_output_tokens", "content_filter", "new_reason"])
def test_every_item_of_responses_stays_on_every_transport(cross, reason):
    cut = {"status": "incomplete", "incomplete_details": {"reason": reason}} if reason else {"status": "completed"}
    document = {"id": "r", "object": "response", **cut, "output": ITEMS, "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}
    events, record = cross(RESPONSES, document, stream=True)
    told = data(events.body)
    assert [one["sequence_number"] for one in told] == [*range(len(told))]
    assert [one["item"] for one in told if one["type"] == "response.output_item.done"] == ITEMS
    assert {one["type"]: one["delta"] for one in told if "delta" in one} == {
        "response.reasoning_summary_text.delta": "s",
        "response.reasoning_text.delta": "t",
        "response.code_interpreter_call_code.delta": "1",
        "response.mcp_call_arguments.delta": "{}",
        "response.function_call_arguments.delta": "{}",
        "response.output_text.delta": "Hi",
    }
    folded, _ = cross(RESPONSES, events.body, stream=False)
    assert (lost(document, folded.json), record.dropped) == ([], ())


@pytest.mark.parametrize("said", [{}, {"incomplete_details": None}, {"incomplete_details": {}}])
def test_why_a_response_is_incomplete_is_not_invented(cross, said):
    whole = {"id": "r", "object": "response", "created_at": 1, "model": "up", "status": "incomplete", "output": []} | said
    folded, _ = cross(RESPONSES, sse({"type": "response.incomplete", "response": whole}), stream=False)
    answer = json.loads(folded.body)
    assert {name: value for name, value in answer.items() if name in whole} == whole
    assert ("incomplete_details" in answer) is bool(said)
    streamed, _ = cross(RESPONSES, whole, stream=True)
    last = data(streamed.body)[-1]
    assert last["type"] == "response.incomplete"
    assert {name: value for name, value in last["response"].items() if name == "incomplete_details"} == said


@pytest.mark.parametrize("indexed", [True, False])
def test_items_that_the_last_response_leaves_out_are_those_that_were_done(cross, indexed):
    done = [{"type": "response.output_item.done", "item": item, **({"output_index": place} if indexed else {})} for place, item in enumerate(ITEMS)]
    running = {"id": "r", "object": "response", "status": "in_progress", "output": []}
    last = {"type": "response.completed", "response": running | {"status": "completed"}}
    reply, _ = cross(RESPONSES, b"data: [DONE]\n\n" + sse({"type": "response.created", "response": running}, *done, last), stream=False)
    assert (reply.json["output"], reply.json["status"]) == (ITEMS, "completed")


# Bounds -----------------------------------------------------------------------------------------------------------------------------------------

LARGE = "x" * 2000


@pytest.mark.parametrize(
    ("surface", "stream"),
    [
        (CHAT, chat({"content": "a", "novel": LARGE})),
        (
            RESPONSES,
            sse({"type": "response.created", "response": {"id": "r"}}, {"type": "response.output_item.done", "item": {"type": "n", "x": LARGE}}),
        ),
        (MESSAGES, messages(*block(0, {"type": "novel", "x": LARGE}))),
        (GEMINI, sse(gemini({"inlineData": {"mimeType": "a/b", "data": LARGE}}), named=False)),
    ],
)
def test_what_a_fold_keeps_beside_the_words_is_bounded(cross, surface, stream):
    reply, record = cross(surface, stream, stream=False, top="[limits]\nresponse_bytes = 1000\n")
    assert (reply.status, record.code) == (502, Code.OUTPUT_TOO_LARGE)


def test_what_stands_in_an_encoders_place_fails_as_the_encoder_does():
    class Failing:
        def fail(self, error):
            return [(b"", error.text.encode())]

    whole = Whole([(b"", b"{}")], Failing())
    assert (whole.open(Start(), None), whole.part(Closed(0)), whole.close(EndingOf(Stop.END))) == ([], [], [(b"", b"{}")])
    assert whole.fail(UpstreamError(Code.UPSTREAM_ERROR, "no")) == [(b"", b"no")]


def test_a_document_with_parts_that_are_none_cannot_be_told(cross):
    odd = {"type": "reasoning", "id": "r", "summary": [], "content": [5]}
    document = {"id": "r", "object": "response", "status": "completed", "output": [odd, ITEMS[-1]], "usage": None}
    reply, record = cross(RESPONSES, document, stream=True)
    assert (reply.status, record.code) == (502, Code.UPSTREAM_BAD_RESPONSE)
