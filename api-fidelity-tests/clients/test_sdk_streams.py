"""The official SDKs' stream helpers accumulate a converted stream to what they read in the unstreamed answer of the same content, for every pair.

The upstream's streams are those of the corpus that end well, and richer ones written here; the documents beside them are written from the same facts.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import anthropic
import openai
import pytest
from google import genai

from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, MESSAGES, RESPONSES

CORPUS = Path(__file__).parents[1] / "corpus"
SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
SSE = ((b"content-type", b"text/event-stream"),)
HI = [{"role": "user", "content": "hi"}]
LINKS = ("https://example.com/a", "https://example.com/b")


class Fact(NamedTuple):
    """What an upstream says. `stop` is one of end, tools, length, refusal; `link` are sources of the text."""

    text: str = ""
    thought: str = ""
    seal: str = ""
    refused: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    links: tuple[str, ...] = ()
    stop: str = "end"
    thoughts: int | None = None


class Heard(NamedTuple):
    """What an SDK made of an answer."""

    text: str
    thought: str
    seals: tuple[bytes, ...]
    refused: str
    calls: tuple[tuple[str, Any], ...]
    links: tuple[str, ...]
    stop: str
    usage: tuple[int | None, ...]


def counted(usage, *names):
    """Numbers of a usage object, each of which may be absent; a dot leads into an object within."""
    return tuple(functools.reduce(lambda found, name: getattr(found, name, None), path.split("."), usage) for path in names)


def opened(seal):
    """A seal without the id of the request, which stands in the ids of calls that the upstream did not name."""
    return re.sub(rb"[0-9a-f]{32}", b"", base64.urlsafe_b64decode(seal))


def halves(text):
    """A text in two pieces, the second of which may be empty."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def ids(fact):
    return [(f"call_{number}", name, json.dumps(arguments, ensure_ascii=False)) for number, (name, arguments) in enumerate(fact.calls)]


def sse(events, *, named=False):
    return [(f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]


# What upstreams say: `whole` is a document, `streamed` its stream ---------------------------------------------------------------------------


class ChatWire:
    usage: ClassVar = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    stops: ClassVar = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "stop"}
    head: ClassVar = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "up"}

    def cited(self, fact):
        return [{"type": "url_citation", "url_citation": {"url": link, "title": "t", "start_index": 0, "end_index": 3}} for link in fact.links]

    def whole(self, fact):
        calls = [{"id": one, "type": "function", "function": {"name": name, "arguments": arguments}} for one, name, arguments in ids(fact)]
        said = {"content": fact.text or None, "refusal": fact.refused or None, "reasoning_content": fact.thought, "annotations": self.cited(fact)}
        message = {"role": "assistant", "tool_calls": calls} | said
        choice = {"index": 0, "message": {name: value for name, value in message.items() if value}, "finish_reason": self.stops[fact.stop]}
        return self.head | {"choices": [choice], "usage": self.usage | self.thinking(fact)}

    def thinking(self, fact):
        return {} if fact.thoughts is None else {"completion_tokens_details": {"reasoning_tokens": fact.thoughts}}

    def streamed(self, fact):
        """Calls come interleaved."""
        deltas = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in halves(fact.thought)]
        deltas += [{"content": piece} for piece in halves(fact.text)]
        deltas += [{"annotations": [one]} for one in self.cited(fact)]
        deltas += [{"refusal": piece} for piece in halves(fact.refused)]
        begun = [
            {"index": index, "id": one, "type": "function", "function": {"name": name, "arguments": ""}}
            for index, (one, name, _) in enumerate(ids(fact))
        ]
        grown = itertools.zip_longest(*[[(index, piece) for piece in halves(arguments)] for index, (_, _, arguments) in enumerate(ids(fact))])
        more = [{"index": one[0], "function": {"arguments": one[1]}} for row in grown for one in row if one]
        deltas += [{"tool_calls": [call]} for call in (*begun, *more)]
        chunks = [self.chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        chunks += [
            self.chunk([{"index": 0, "delta": {}, "finish_reason": self.stops[fact.stop]}]),
            self.chunk([], usage=self.usage | self.thinking(fact)),
        ]
        return [*sse(chunks), b"data: [DONE]\n\n"]

    def chunk(self, choices, **more):
        return self.head | {"object": "chat.completion.chunk", "choices": choices} | more


class ResponsesWire:
    usage: ClassVar = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}

    def items(self, fact):
        items = []
        if fact.thought:
            summary = [{"type": "summary_text", "text": fact.thought}]
            items.append({"id": "rs", "type": "reasoning", "summary": summary} | ({"encrypted_content": fact.seal} if fact.seal else {}))
        cited = [{"type": "url_citation", "url": link, "title": "t", "start_index": 0, "end_index": 3} for link in fact.links]
        if fact.text:
            items.append(self.message({"type": "output_text", "text": fact.text, "annotations": cited}, fact))
        if fact.refused:
            items.append(self.message({"type": "refusal", "refusal": fact.refused}, fact))
        called = {"type": "function_call", "status": "completed"}
        items += [called | {"id": f"fc_{one}", "call_id": one, "name": name, "arguments": arguments} for one, name, arguments in ids(fact)]
        return items

    def message(self, part, fact):
        status = "incomplete" if fact.stop == "length" else "completed"
        return {"id": "msg_" + part["type"], "type": "message", "role": "assistant", "status": status, "content": [part]}

    def head(self, **more):
        said = {"id": "resp_1", "object": "response", "created_at": 1, "model": "up", "status": "in_progress", "output": []}
        return said | {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []} | more

    def whole(self, fact):
        cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if fact.stop == "length" else {"status": "completed"}
        details = {} if fact.thoughts is None else {"output_tokens_details": {"reasoning_tokens": fact.thoughts}}
        return self.head(output=self.items(fact), usage=self.usage | details, **cut)

    def streamed(self, fact):
        """All items are announced before any of them is whole."""
        answer = self.whole(fact)
        events = [{"type": "response.created", "response": self.head()}, {"type": "response.in_progress", "response": self.head()}]
        grown = [list(self.grown(item, index)) for index, item in enumerate(answer["output"])]
        calls = sum(item["type"] == "function_call" for item in answer["output"])
        events += [event for one in grown[: len(grown) - calls] for event in one]
        events += [one for row in itertools.zip_longest(*grown[len(grown) - calls :]) for one in row if one]
        events.append({"type": f"response.{answer['status']}", "response": answer})
        return sse([one | {"sequence_number": number} for number, one in enumerate(events)], named=True)

    def grown(self, item, index):
        place = {"item_id": item["id"], "output_index": index}
        bare = {"summary": [], "content": [], "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": item | {name: bare[name] for name in bare if name in item}}
        match item["type"]:
            case "reasoning":
                for piece in halves(item["summary"][0]["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": piece}
            case "function_call":
                for piece in halves(item["arguments"]):
                    yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                yield {"type": "response.function_call_arguments.done", **place, "name": item["name"], "arguments": item["arguments"]}
            case _:
                yield from self.part(item["content"][0], place | {"content_index": 0})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}

    def part(self, part, place):
        kind = "text" if part["type"] == "output_text" else "refusal"
        name = "response.output_text" if kind == "text" else "response.refusal"
        yield {"type": "response.content_part.added", **place, "part": part | {kind: ""} | ({"annotations": []} if kind == "text" else {})}
        for piece in halves(part[kind]):
            yield {"type": f"{name}.delta", **place, "delta": piece}
        for number, one in enumerate(part.get("annotations", ())):
            yield {"type": "response.output_text.annotation.added", **place, "annotation_index": number, "annotation": one}
        yield {"type": f"{name}.done", **place, kind: part[kind]}
        yield {"type": "response.content_part.done", **place, "part": part}


class MessagesWire:
    stops: ClassVar = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "refusal"}

    def head(self, **more):
        usage: ClassVar = {"input_tokens": 5, "output_tokens": 1}
        head: ClassVar = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "up",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        return head | {"usage": usage} | more

    def blocks(self, fact):
        found = {"type": "web_search_result_location", "title": "t", "cited_text": "See", "encrypted_index": "e"}
        thought = {"type": "thinking", "thinking": fact.thought, "signature": fact.seal}
        text = {"type": "text", "text": fact.text or fact.refused} | (
            {"citations": [found | {"url": link} for link in fact.links]} if fact.links else {}
        )
        calls = [{"type": "tool_use", "id": one, "name": name, "input": json.loads(arguments)} for one, name, arguments in ids(fact)]
        return [*([thought] if fact.thought else []), *([text] if text["text"] else []), *calls]

    def usage(self, fact):
        return {"output_tokens": 7} | ({} if fact.thoughts is None else {"output_tokens_details": {"thinking_tokens": fact.thoughts}})

    def whole(self, fact):
        return self.head(content=self.blocks(fact), stop_reason=self.stops[fact.stop], usage={"input_tokens": 5} | self.usage(fact))

    def streamed(self, fact):
        events = [{"type": "message_start", "message": self.head()}, {"type": "ping"}]
        for index, block in enumerate(self.blocks(fact)):
            bare = {"text": "", "thinking": "", "signature": "", "input": {}, "citations": []}
            events.append(
                {"type": "content_block_start", "index": index, "content_block": block | {name: bare[name] for name in bare if name in block}}
            )
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in self.deltas(block)]
            events.append({"type": "content_block_stop", "index": index})
        events.append({"type": "message_delta", "delta": {"stop_reason": self.stops[fact.stop], "stop_sequence": None}, "usage": self.usage(fact)})
        return sse([*events, {"type": "message_stop"}], named=True)

    def deltas(self, block):
        match block["type"]:
            case "thinking":
                yield from ({"type": "thinking_delta", "thinking": piece} for piece in halves(block["thinking"]))
                yield {"type": "signature_delta", "signature": block["signature"]}
            case "text":
                yield from ({"type": "text_delta", "text": piece} for piece in halves(block["text"]))
                yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations", ()))
            case _:
                yield from ({"type": "input_json_delta", "partial_json": piece} for piece in halves(json.dumps(block["input"])))


class GeminiWire:
    stops: ClassVar = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}

    def usage(self, fact):
        thoughts = fact.thoughts or 0
        said = {"promptTokenCount": 5, "candidatesTokenCount": 7 - thoughts, "totalTokenCount": 12}
        return {"usageMetadata": said | ({} if fact.thoughts is None else {"thoughtsTokenCount": thoughts})}

    def parts(self, fact, cut):
        text = fact.text or fact.refused
        sealed = {"thoughtSignature": fact.seal} if fact.seal else {}
        parts = [{"text": piece, "thought": True} for piece in cut(fact.thought)] + [{"text": piece} for piece in cut(text)]
        parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in fact.calls]
        return [
            part | (sealed if "functionCall" in part and "functionCall" not in before else {}) for before, part in itertools.pairwise([{}, *parts])
        ]

    def chunk(self, parts, fact, **more):
        said = {"content": {"role": "model", "parts": parts}, "index": 0} if parts else {"index": 0}
        return {"candidates": [said | more], "modelVersion": "up", "responseId": "r1"} | self.usage(fact)

    def end(self, fact):
        sources = [{"web": {"uri": link, "title": "t"}} for link in fact.links]
        supports = [{"segment": {"startIndex": 0, "endIndex": 3, "text": "See"}, "groundingChunkIndices": list(range(len(sources)))}]
        grounded = {"groundingMetadata": {"groundingChunks": sources, "groundingSupports": supports}} if sources else {}
        return {"finishReason": self.stops[fact.stop]} | grounded

    def whole(self, fact):
        return self.chunk(self.parts(fact, lambda text: [text] if text else []), fact, **self.end(fact))

    def streamed(self, fact):
        chunks = [self.chunk([part], fact) for part in self.parts(fact, halves)]
        return sse([*chunks, self.chunk([], fact, **self.end(fact))])


WIRES = {CHAT: ChatWire(), RESPONSES: ResponsesWire(), MESSAGES: MessagesWire(), GEMINI: GeminiWire()}
LOOK, SUM = ("look", {"a": "é", "b": [1, {"c": "}]"}]}), ("sum", {})
RICH = {
    "text": Fact(text="Grüße, 世界 🌍 data: {"),
    "reasoning, text and parallel calls": Fact(
        text="Gut.", thought="Größe? Klein.", seal="CpQBCg==", calls=(LOOK, SUM, LOOK), stop="tools", thoughts=2
    ),
    "parallel calls": Fact(calls=(SUM, LOOK), stop="tools"),
    "a refusal": Fact(refused="I cannot help with that.", stop="refusal"),
    "sources": Fact(text="See the sources.", links=LINKS),
    "truncated": Fact(text="Once upon a", stop="length"),
    "truncated thought": Fact(thought="Let me see, once", seal="CpQBCg==", stop="length", thoughts=7),
}
CASES = [(client, origin, name) for client, origin in itertools.permutations(SURFACES, 2) for name in RICH]

# The streams of the corpus that end well. Responses repeats the whole answer in its terminal, and Gemini's chunks are answers themselves.
CALL = ("look", {"a": "é"})
FOLDERS = {CHAT: "native--chat", RESPONSES: "native--responses", MESSAGES: "native--messages", GEMINI: "native--gemini"}
KNOWN = {
    (CHAT, "text"): Fact(text="Grüße, 世界 🌍\u2028\\n\\ndata: {", thoughts=2),
    (CHAT, "tools-crlf"): Fact(thought="Größe?", calls=(CALL, SUM), stop="tools", thoughts=2),
    (CHAT, "no-done"): Fact(text="a", stop="length", thoughts=2),
    (CHAT, "more-after-done"): Fact(text="a"),
    (RESPONSES, "text"): Fact(text="Grüße 🌍"),
    (RESPONSES, "tools-crlf"): Fact(thought="Größe?", calls=(CALL,)),
    (RESPONSES, "incomplete"): Fact(text="a"),
    (MESSAGES, "tools"): Fact(text="Grüße 🌍", thought="Größe?", seal="EqQBCg==", calls=(CALL,), stop="tools"),
    (MESSAGES, "nameless-crlf"): Fact(text="a", stop="length"),
    (GEMINI, "text-crlf"): Fact(text="Grüße 🌍", thought="Größe?"),
    (GEMINI, "calls"): Fact(text="ab", calls=(LOOK,)),
    (GEMINI, "blocked"): Fact(),
}


def recorded(origin, name):
    """A stream of the corpus, and the document of the same answer."""
    body = (CORPUS / FOLDERS[origin] / name / "upstream.sse").read_bytes()
    events = [json.loads(line.removeprefix("data: ")) for line in re.split("[\r\n]+", body.decode()) if line.startswith("data: {")]
    if origin == RESPONSES:
        return body, events[-1]["response"]
    if origin == GEMINI:
        parts = [part for event in events for one in event.get("candidates", ()) for part in one["content"]["parts"]]
        last = events[-1].get("candidates", [])
        return body, events[-1] | ({"candidates": [last[0] | {"content": {"role": "model", "parts": parts}}]} if last else {})
    whole = WIRES[origin].whole(KNOWN[origin, name])
    # What a client of another surface is told ends with the terminal: usage that comes later is too late.
    return body, {member: value for member, value in whole.items() if (member, name) != ("usage", "more-after-done")}


# What the SDKs hear -----------------------------------------------------------------------------------------------------------------------


class Chat:
    def __init__(self, url):
        self.client = openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0)
        self.close = self.client.close
        self.request = {"model": "m", "messages": HI}

    def whole(self):
        return self.read(self.client.chat.completions.create(**self.request))

    def streamed(self):
        with self.client.chat.completions.stream(**self.request, stream_options={"include_usage": True}) as stream:
            try:
                return self.read(stream.get_final_completion())
            except openai.LengthFinishReasonError as error:  # what the helper makes of a truncated answer
                return self.read(error.completion)
            except openai.ContentFilterFinishReasonError:
                return self.read(stream.current_completion_snapshot)

    def read(self, answer):
        [choice] = answer.choices
        said = choice.message
        return Heard(
            said.content or "",
            getattr(said, "reasoning_content", None) or "",
            (),
            said.refusal or "",
            tuple((call.function.name, json.loads(call.function.arguments)) for call in said.tool_calls or ()),
            tuple(one["url_citation"]["url"] if isinstance(one, dict) else one.url_citation.url for one in said.annotations or ()),
            choice.finish_reason,
            counted(answer.usage, "prompt_tokens", "completion_tokens", "completion_tokens_details.reasoning_tokens"),
        )


class Responses(Chat):
    def __init__(self, url):
        super().__init__(url)
        self.request = {"model": "m", "input": "hi"}

    def whole(self):
        return self.read(self.client.responses.create(**self.request))

    def streamed(self):
        with self.client.responses.stream(**self.request) as stream:
            events = list(stream)
        return self.read(events[-1].response)

    def read(self, answer):
        parts = [part for item in answer.output if item.type == "message" for part in item.content]
        thoughts = [item for item in answer.output if item.type == "reasoning"]
        return Heard(
            "".join(part.text for part in parts if part.type == "output_text"),
            "".join(one.text for item in thoughts for one in (*item.summary, *(item.content or ()))),
            tuple(opened(item.encrypted_content) for item in thoughts if item.encrypted_content),
            "".join(part.refusal for part in parts if part.type == "refusal"),
            tuple((item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call"),
            tuple(one.url for part in parts if part.type == "output_text" for one in part.annotations),
            answer.incomplete_details.reason if answer.incomplete_details else answer.status,
            counted(answer.usage, "input_tokens", "output_tokens", "output_tokens_details.reasoning_tokens"),
        )


class Messages:
    def __init__(self, url):
        self.client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
        self.close = self.client.close
        self.request = {"model": "m", "max_tokens": 9, "messages": HI}

    def whole(self):
        return self.read(self.client.messages.create(**self.request))

    def streamed(self):
        with self.client.messages.stream(**self.request) as stream:
            return self.read(stream.get_final_message())

    def read(self, answer):
        thoughts = [block for block in answer.content if block.type == "thinking"]
        texts = [block for block in answer.content if block.type == "text"]
        return Heard(
            "".join(block.text for block in texts),
            "".join(block.thinking for block in thoughts),
            tuple(opened(block.signature) for block in thoughts),
            "",
            tuple((block.name, block.input) for block in answer.content if block.type == "tool_use"),
            tuple(one.url for block in texts for one in block.citations or ()),
            answer.stop_reason,
            counted(answer.usage, "input_tokens", "output_tokens"),
        )


class Gemini:
    def __init__(self, url):
        self.client = genai.Client(api_key="k", http_options={"base_url": url})
        self.close = self.client.close
        self.request = {"model": "m", "contents": "hi"}

    def whole(self):
        return self.read([self.client.models.generate_content(**self.request)])

    def streamed(self):
        return self.read(list(self.client.models.generate_content_stream(**self.request)))

    def read(self, chunks):
        candidates = [candidate for chunk in chunks for candidate in chunk.candidates if not candidate.index]
        parts = [part for one in candidates for part in (one.content and one.content.parts) or ()]
        grounded = [one.grounding_metadata for one in candidates if one.grounding_metadata]
        return Heard(
            "".join(part.text or "" for part in parts if not part.thought),
            "".join(part.text or "" for part in parts if part.thought),
            tuple(part.thought_signature for part in parts if part.thought_signature),
            "",
            tuple((part.function_call.name, part.function_call.args) for part in parts if part.function_call),
            tuple(source.web.uri for one in grounded for source in one.grounding_chunks),
            "".join(one.finish_reason.value for one in candidates if one.finish_reason),
            counted(chunks[-1].usage_metadata, "prompt_token_count", "candidates_token_count", "thoughts_token_count"),
        )


@pytest.fixture(scope="module")
def sdks(server):
    """One client of each SDK."""
    made = {CHAT: Chat(server.url), RESPONSES: Responses(server.url), MESSAGES: Messages(server.url), GEMINI: Gemini(server.url)}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture
def both(server, sdks, gateway, upstream):
    """What the client's SDK hears of a stream, and of a document."""

    def hear(client, origin, stream, document):
        features = sorted(CARRIES[origin])
        server.app = gateway(upstream(chunks=stream, headers=SSE), origin, features=features)
        streamed = sdks[client].streamed()
        server.app = gateway(upstream(chunks=[json.dumps(document).encode()]), origin, features=features)
        return streamed, sdks[client].whole()

    return hear


@pytest.mark.parametrize(("client", "origin", "name"), [(client, *case) for case in KNOWN for client in SURFACES if client != case[0]])
def test_a_stream_of_the_corpus_says_what_its_document_says(both, client, origin, name):
    stream, document = recorded(origin, name)
    streamed, whole = both(client, origin, [stream], document)
    fact = KNOWN[origin, name]
    assert streamed == whole
    assert (whole.text, whole.thought, whole.calls) == (fact.text, fact.thought, fact.calls)


def test_every_stream_of_the_corpus_that_ends_well_is_read():
    broken = {(CHAT, "error"), (RESPONSES, "failed"), (MESSAGES, "overloaded")}
    found = {(origin, path.parent.name) for origin, folder in FOLDERS.items() for path in (CORPUS / folder).glob("*/upstream.sse")}
    assert found - broken == set(KNOWN)


@pytest.mark.parametrize(("client", "origin", "name"), CASES)
def test_a_stream_says_what_the_document_says(both, client, origin, name):
    fact = RICH[name]
    streamed, whole = both(client, origin, WIRES[origin].streamed(fact), WIRES[origin].whole(fact))
    assert streamed == whole
    assert (whole.text + whole.refused, whole.thought, whole.calls) == (fact.text + fact.refused, fact.thought, fact.calls)
    assert len(whole.links) in (0, len(fact.links))
