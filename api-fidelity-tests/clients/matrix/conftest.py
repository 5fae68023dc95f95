"""The bench on which real clients work: a served gateway, and behind it, over real sockets, an upstream of four surfaces that keeps what it is asked.

The upstream says what a script tells it, in each surface's own wire, and reads each request back into one neutral form, so that one expectation holds
for every pair. It shares nothing with the package. Each SDK has one driver here; sync and async clients run through the same one.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import inspect
import itertools
import json
import re
import socket
from collections.abc import Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": MESSAGES,
    "/v1beta/models/up:generateContent": GEMINI,
    "/v1beta/models/up:streamGenerateContent": GEMINI,
    "/v1beta/models/up:countTokens": GEMINI,
}
# The header of each provider's key, and its scheme.
KEYS = {CHAT: ("authorization", "Bearer "), RESPONSES: ("authorization", "Bearer "), MESSAGES: ("x-api-key", ""), GEMINI: ("x-goog-api-key", "")}
CLIENT_KEY, NARROW_KEY, PROVIDER_KEY = "key-of-the-client", "key-for-one-model", "key-of-the-provider"
LIMIT = 99
STAND_IN = "skip_thought_signature_validator"
"""What Google documents for a call whose token there is none of."""


class Say(NamedTuple):
    """What an upstream says in one turn. `stop` is one of end, tools, length, refusal, blocked; a thought is sealed where the surface has seals."""

    text: str = ""
    thought: str = ""
    refused: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    stop: str = "end"


class Asked(NamedTuple):
    """What an upstream was asked, whatever its surface.

    `turns` are (user, text), (image, bytes), (said, text), (thought, text), (seal, token), (call, id, name, arguments) and (result, id, text).
    `tools` are description and schema by name; `force` is a tool's name, or `*` for any; `schema` is the shape of a structured answer.
    """

    system: str = ""
    turns: tuple[tuple[Any, ...], ...] = ()
    tools: Mapping[str, tuple[str, dict[str, Any]]] = MappingProxyType({})
    force: str | None = None
    schema: dict[str, Any] | None = None
    effort: str | None = None
    limit: int | None = None


def call_id(turn, number):
    return f"call_{turn}_{number}"


def seal_of(turn):
    """A token with every kind of character of base64, another one each turn."""
    return base64.b64encode(bytes((*range(62, 255, 5), turn, 0xFB, 0xEF, 0xBE, 0xFF))).decode()


def shape(schema):
    """The types of a schema's members, which every SDK and converter must leave as they are, whatever they add to be strict."""
    if schema is None:
        return None
    if str(schema.get("type")).lower() == "object":
        members = {name: shape(one) for name, one in schema["properties"].items()}
        return {"object": members, "required": sorted(schema.get("required", ()))}
    return [shape(schema["items"])] if str(schema["type"]).lower() == "array" else schema["type"].lower()


def halves(text):
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def sse(events, *, named=False):
    return [(f"event: {one['type']}\n" if named else "").encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]


def texts(content):
    """The text of a content that is a string or a list of parts of text."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def joined(turns):
    """The turns with what stands in pieces put together: a client may send back the pieces of a stream."""
    for kind, group in itertools.groupby(turns, lambda turn: turn[0]):
        pieces = [*group]
        yield from [(kind, "".join(text for _, text in pieces))] if kind in ("said", "thought") else pieces


OPAQUE = {"args", "response", "parametersJsonSchema", "responseJsonSchema", "responseSchema"}


def camel(value):
    """Gemini's body with every name as the API documents it: it takes both spellings, and google-genai mixes them. What users name is left alone."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub("_([a-z])", lambda found: found[1].upper(), name): one for name, one in value.items()}
    return {name: one if name in OPAQUE else camel(one) for name, one in named.items()}


def data(url):
    """The bytes in a data URL of a PNG."""
    head, _, rest = url.partition(",")
    assert head == "data:image/png;base64"
    return base64.b64decode(rest, validate=True)


# The wires: `read` makes `Asked` of a body; `whole` and `streamed` are an answer.


class ChatWire:
    usage: ClassVar = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    stops: ClassVar = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "stop", "blocked": "content_filter"}
    head: ClassVar = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "up"}

    def read(self, body):
        system = [texts(one["content"]) for one in body["messages"] if one["role"] in ("system", "developer")]
        turns = [entry for one in body["messages"] for entry in getattr(self, one["role"], self.instruction)(one)]
        tools = {tool["function"]["name"]: (tool["function"]["description"], tool["function"]["parameters"]) for tool in body.get("tools", ())}
        choice = body.get("tool_choice")
        force = choice["function"]["name"] if isinstance(choice, dict) else {"required": "*"}.get(choice)
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return Asked("\n".join(system), tuple(turns), tools, force, shape(schema), body.get("reasoning_effort"), body.get("max_completion_tokens"))

    def instruction(self, _):
        return ()

    def user(self, message):
        parts = [{"type": "text", "text": message["content"]}] if isinstance(message["content"], str) else message["content"]
        return [("user", part["text"]) if part["type"] == "text" else ("image", data(part["image_url"]["url"])) for part in parts]

    def assistant(self, message):
        if message.get("reasoning_content"):
            yield "thought", message["reasoning_content"]
        if message.get("content"):
            yield "said", texts(message["content"])
        for call in message.get("tool_calls") or ():
            yield "call", call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])

    def tool(self, message):
        yield "result", message["tool_call_id"], texts(message["content"])

    def calls(self, say, turn):
        return [(call_id(turn, number), name, json.dumps(arguments)) for number, (name, arguments) in enumerate(say.calls)]

    def whole(self, say, turn):
        calls = [{"id": one, "type": "function", "function": {"name": name, "arguments": text}} for one, name, text in self.calls(say, turn)]
        said = {"content": say.text or None, "refusal": say.refused or None, "reasoning_content": say.thought, "tool_calls": calls}
        message = {"role": "assistant", "content": None} | {name: value for name, value in said.items() if value}
        return self.head | {"choices": [{"index": 0, "message": message, "finish_reason": self.stops[say.stop]}], "usage": self.usage}

    def streamed(self, say, turn):
        deltas = [{"role": "assistant", "content": ""}]
        for name, text in (("reasoning_content", say.thought), ("content", say.text), ("refusal", say.refused)):
            deltas += [{name: piece} for piece in halves(text)]
        for index, (one, name, text) in enumerate(self.calls(say, turn)):
            calls = [{"id": one, "type": "function", "function": {"name": name, "arguments": ""}}]
            calls += [{"function": {"arguments": piece}} for piece in halves(text)]
            deltas += [{"tool_calls": [{"index": index} | call]} for call in calls]
        chunks = [self.chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        end = self.chunk([{"index": 0, "delta": {}, "finish_reason": self.stops[say.stop]}])
        return [*sse([*chunks, end, self.chunk([], usage=self.usage)]), b"data: [DONE]\n\n"]

    def chunk(self, choices, **more):
        return self.head | {"object": "chat.completion.chunk", "choices": choices} | more

    def error(self, status):
        return {"error": {"message": "no such thing", "type": "t", "param": None, "code": f"c{status}"}}

    def fault(self):
        """An error within a stream: the upstream has too much to do."""
        return sse([{"error": {"message": "no such thing", "type": "overloaded_error", "param": None, "code": None}}])


class ResponsesWire(ChatWire):
    cut: ClassVar = {"length": "max_output_tokens", "blocked": "content_filter"}
    usage: ClassVar = {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }

    def read(self, body):
        items = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
        system = [body.get("instructions") or "", *(texts(one["content"]) for one in items if one.get("role") in ("system", "developer"))]
        turns = [entry for one in items for entry in getattr(self, one.get("type", "message"))(one)]
        tools = {tool["name"]: (tool["description"], tool["parameters"]) for tool in body.get("tools", ())}
        choice = body.get("tool_choice")
        force = choice["name"] if isinstance(choice, dict) else {"required": "*"}.get(choice)
        effort, limit = (body.get("reasoning") or {}).get("effort"), body.get("max_output_tokens")
        schema = body.get("text", {}).get("format", {}).get("schema")
        return Asked("\n".join(filter(None, system)), tuple(turns), tools, force, shape(schema), effort, limit)

    def message(self, item):
        kind = {"user": "user", "assistant": "said"}.get(item["role"])
        parts = [{"text": item["content"]}] if isinstance(item["content"], str) else item["content"]
        return [(kind, part["text"]) if "text" in part else ("image", data(part["image_url"])) for part in parts if kind]

    def reasoning(self, item):
        yield "thought", texts(item["summary"])
        yield from (("seal", item[name]) for name in ("encrypted_content",) if name in item)

    def function_call(self, item):
        yield "call", item["call_id"], item["name"], json.loads(item["arguments"])

    def function_call_output(self, item):
        yield "result", item["call_id"], texts(item["output"])

    def fault(self):
        return sse([{"type": "error", "code": "overloaded_error", "message": "no such thing", "param": None, "sequence_number": 99}], named=True)

    def items(self, say, turn):
        if say.thought:
            summary = [{"type": "summary_text", "text": say.thought}]
            yield {"id": f"rs_{turn}", "type": "reasoning", "summary": summary, "encrypted_content": seal_of(turn)}
        parts = [{"type": "output_text", "text": say.text, "annotations": [], "logprobs": []}] if say.text else []
        parts += [{"type": "refusal", "refusal": say.refused}] if say.refused else []
        status = "incomplete" if say.stop in self.cut else "completed"
        yield from ({"id": f"msg_{turn}", "type": "message", "role": "assistant", "status": status, "content": [part]} for part in parts)
        for one, name, arguments in self.calls(say, turn):
            yield {"id": f"fc_{one}", "type": "function_call", "status": "completed", "call_id": one, "name": name, "arguments": arguments}

    def response(self, turn, **more):
        said = {"id": f"resp_{turn}", "object": "response", "created_at": 1, "model": "up", "status": "in_progress", "output": []}
        return said | {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "incomplete_details": None} | more

    def whole(self, say, turn):
        end = {"status": "completed"}
        if say.stop in self.cut:
            end = {"status": "incomplete", "incomplete_details": {"reason": self.cut[say.stop]}}
        return self.response(turn, output=[*self.items(say, turn)], usage=self.usage, **end)

    def streamed(self, say, turn):
        """Only what changes the answer: the `done` of texts and arguments repeat it."""
        whole = self.whole(say, turn)
        events = [{"type": "response.created", "response": self.response(turn)}]
        for index, item in enumerate(whole["output"]):
            grown = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
            begun = item | {name: value for name, value in grown.items() if name in item}
            events += [
                {"type": "response.output_item.added", "output_index": index, "item": begun},
                *getattr(self, "grow_" + item["type"])(item, index),
            ]
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response." + whole["status"], "response": whole})
        return sse([one | {"sequence_number": number} for number, one in enumerate(events)], named=True)

    def grow_reasoning(self, item, index):
        where = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        yield {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}} | where
        yield from ({"type": "response.reasoning_summary_text.delta", "delta": piece} | where for piece in halves(item["summary"][0]["text"]))
        yield {"type": "response.reasoning_summary_part.done", "part": item["summary"][0]} | where

    def grow_message(self, item, index):
        [part] = item["content"]
        where = {"item_id": item["id"], "output_index": index, "content_index": 0}
        slot = "text" if "text" in part else "refusal"
        yield {"type": "response.content_part.added", "part": part | {slot: ""}} | where
        yield from ({"type": f"response.{part['type']}.delta", "delta": piece, "logprobs": []} | where for piece in halves(part[slot]))
        yield {"type": "response.content_part.done", "part": part} | where

    def grow_function_call(self, item, index):
        where = {"item_id": item["id"], "output_index": index}
        yield from ({"type": "response.function_call_arguments.delta", "delta": piece} | where for piece in halves(item["arguments"]))
        yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], "name": item["name"]} | where


class MessagesWire:
    usage: ClassVar = {"input_tokens": 5, "output_tokens": 7}
    stops: ClassVar = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "refusal", "blocked": "refusal"}

    def read(self, body):
        turns = [
            entry
            for one in body["messages"]
            for block in self.blocks_of(one["content"])
            for entry in getattr(self, block["type"])(block, one["role"])
        ]
        tools = {tool["name"]: (tool["description"], tool["input_schema"]) for tool in body.get("tools", ())}
        choice, output = body.get("tool_choice", {}), body.get("output_config", {})
        force = choice.get("name", {"any": "*"}.get(choice.get("type")))
        schema = output.get("format", {}).get("schema")
        return Asked(texts(body.get("system", "")), tuple(turns), tools, force, shape(schema), output.get("effort"), body.get("max_tokens"))

    def blocks_of(self, content):
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    def text(self, block, role):
        yield ("user" if role == "user" else "said"), block["text"]

    def image(self, block, _):
        assert (block["source"]["type"], block["source"]["media_type"]) == ("base64", "image/png")
        yield "image", base64.b64decode(block["source"]["data"], validate=True)

    def thinking(self, block, _):
        return [("thought", block["thinking"]), ("seal", block["signature"])]

    def tool_use(self, block, _):
        yield "call", block["id"], block["name"], block["input"]

    def tool_result(self, block, _):
        yield "result", block["tool_use_id"], texts(block["content"])

    def blocks(self, say, turn):
        thought = {"type": "thinking", "thinking": say.thought, "signature": seal_of(turn)}
        text = {"type": "text", "text": say.text or say.refused}
        calls = [{"type": "tool_use", "id": call_id(turn, n), "name": name, "input": inside} for n, (name, inside) in enumerate(say.calls)]
        return [*([thought] if say.thought else []), *([text] if text["text"] else []), *calls]

    def message(self, turn, **more):
        said = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "up", "content": [], "stop_reason": None, "stop_sequence": None}
        return said | {"usage": {"input_tokens": 5, "output_tokens": 1}} | more

    def whole(self, say, turn):
        return self.message(turn, content=self.blocks(say, turn), stop_reason=self.stops[say.stop], usage=self.usage)

    def streamed(self, say, turn):
        events = [{"type": "message_start", "message": self.message(turn)}, {"type": "ping"}]
        bare = {"text": "", "thinking": "", "signature": "", "input": {}}
        for index, block in enumerate(self.blocks(say, turn)):
            begun = block | {name: bare[name] for name in bare if name in block}
            deltas = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in self.deltas(block)]
            events += [
                {"type": "content_block_start", "index": index, "content_block": begun},
                *deltas,
                {"type": "content_block_stop", "index": index},
            ]
        events.append({"type": "message_delta", "delta": {"stop_reason": self.stops[say.stop], "stop_sequence": None}, "usage": {"output_tokens": 7}})
        return sse([*events, {"type": "message_stop"}], named=True)

    def deltas(self, block):
        match block["type"]:
            case "thinking":
                yield from ({"type": "thinking_delta", "thinking": piece} for piece in halves(block["thinking"]))
                yield {"type": "signature_delta", "signature": block["signature"]}
            case "text":
                yield from ({"type": "text_delta", "text": piece} for piece in halves(block["text"]))
            case _:
                yield from ({"type": "input_json_delta", "partial_json": piece} for piece in halves(json.dumps(block["input"])))

    def error(self, status):
        return {"type": "error", "error": {"type": f"t{status}", "message": "no such thing"}}

    def fault(self):
        return sse([{"type": "error", "error": {"type": "overloaded_error", "message": "no such thing"}}], named=True)


class GeminiWire:
    stops: ClassVar = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    usage: ClassVar = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}

    def read(self, body):
        body = camel(body)
        turns = [entry for one in body["contents"] for part in one["parts"] for entry in self.entries(part, one["role"])]
        declared = [one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
        tools = {one["name"]: (one["description"], one.get("parametersJsonSchema", one.get("parameters"))) for one in declared}
        calling, config = body.get("toolConfig", {}).get("functionCallingConfig", {}), body.get("generationConfig", {})
        force = calling.get("allowedFunctionNames", ["*"])[0] if calling.get("mode") == "ANY" else None
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        effort = config.get("thinkingConfig", {}).get("thinkingLevel", "").lower() or None
        system = texts(body.get("systemInstruction", {"parts": []})["parts"])
        return Asked(system, tuple(turns), tools, force, shape(schema), effort, config.get("maxOutputTokens"))

    def entries(self, part, role):
        match part:
            case {"functionCall": call}:
                yield "call", call.get("id"), call["name"], call["args"]
            case {"functionResponse": answer}:
                [text] = answer["response"].values()  # the SDK's own loop says `result` where others say `output`, and no id
                yield "result", answer.get("id"), text
            case {"inlineData": blob}:
                assert blob["mimeType"] == "image/png"
                yield "image", base64.urlsafe_b64decode(blob["data"].replace("+", "-").replace("/", "_"))
            case _:
                yield "thought" if part.get("thought") else "user" if role == "user" else "said", part["text"]
        if "thoughtSignature" in part:
            yield "seal", part["thoughtSignature"]

    def parts(self, say, turn, cut):
        parts = [{"text": piece, "thought": True} for piece in cut(say.thought)] + [{"text": piece} for piece in cut(say.text or say.refused)]
        calls = [{"functionCall": {"id": call_id(turn, n), "name": name, "args": inside}} for n, (name, inside) in enumerate(say.calls)]
        if say.thought:
            calls[0]["thoughtSignature"] = seal_of(turn)
        return parts + calls

    def chunk(self, parts, turn, **more):
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0} | more
        return {"candidates": [candidate], "modelVersion": "up", "responseId": f"r{turn}", "usageMetadata": self.usage}

    def blocked(self, turn):
        """The prompt is refused: there is no candidate."""
        spent = {"promptTokenCount": 5, "totalTokenCount": 5}
        return {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "up", "responseId": f"r{turn}", "usageMetadata": spent}

    def whole(self, say, turn):
        if say.stop == "blocked":
            return self.blocked(turn)
        return self.chunk(self.parts(say, turn, lambda text: [text] if text else []), turn, finishReason=self.stops[say.stop])

    def streamed(self, say, turn):
        if say.stop == "blocked":
            return sse([self.blocked(turn)])
        *parts, last = self.parts(say, turn, halves)
        return sse([*(self.chunk([part], turn) for part in parts), self.chunk([last], turn, finishReason=self.stops[say.stop])])

    def error(self, status):
        return {"error": {"code": status, "message": "no such thing", "status": "S"}}

    def fault(self):
        return sse([{"error": {"code": 503, "message": "no such thing", "status": "UNAVAILABLE"}}])


WIRES = {CHAT: ChatWire(), RESPONSES: ResponsesWire(), MESSAGES: MessagesWire(), GEMINI: GeminiWire()}


class Upstream:
    """An ASGI app of four surfaces. `bodies` are what it was asked since the last script, `left` counts clients that went away in mid-stream."""

    def __init__(self) -> None:
        self.script()

    def script(self, *says: Say, status: int = 200, headers: tuple[tuple[str, str], ...] = (), half: str = "", counts: Any = None) -> None:
        """What is said turn by turn; or the error of a `status`, again and again; or a count of tokens. Of a stream only `half` may be said: it

        `hangs` until the client has gone, `breaks` off, or `fails` with an error of its own, which may be all there is of it (`fails at once`).
        """
        self.says, self.status, self.half, self.counts = says, status, half, counts
        self.headers = [(name.encode(), value.encode()) for name, value in headers]
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.left = 0

    @property
    def asked(self) -> list[Asked]:
        read = [WIRES[PATHS[path]].read(body) for path, body in zip(self.paths, self.bodies, strict=True)]
        return [one._replace(turns=tuple(joined(one.turns))) for one in read]

    async def __call__(self, scope, receive, send) -> None:
        surface, read = PATHS[scope["path"]], b""
        header, scheme = KEYS[surface]
        sent = {name.decode(): value.decode() for name, value in scope["headers"]}
        assert {name: sent[name] for name in ("authorization", "x-api-key", "x-goog-api-key") if name in sent} == {header: scheme + PROVIDER_KEY}
        more = True
        while more:
            message = await receive()
            read, more = read + message["body"], message["more_body"]
        body = json.loads(read)
        self.paths.append(scope["path"])
        self.bodies.append(body)
        streamed = body.get("stream", "stream" in scope["path"]) and self.status == 200
        media = "text/event-stream" if streamed else "application/json"
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"content-type", media.encode()), *self.headers]})
        for chunk in self.chunks(WIRES[surface], streamed):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if self.half == "hangs":
            assert (await receive())["type"] == "http.disconnect"
            self.left += 1
        if self.half != "breaks":
            await send({"type": "http.response.body", "body": b""})

    def chunks(self, wire, streamed):
        turn = len(self.bodies) - 1
        if self.status != 200:
            return [json.dumps(wire.error(self.status)).encode()]
        if self.counts is not None:
            return [json.dumps(self.counts).encode()]
        if not streamed:
            return [json.dumps(wire.whole(self.says[turn], turn)).encode()]
        if self.half == "fails at once":
            return wire.fault()
        chunks = wire.streamed(self.says[turn], turn)
        return chunks[: len(chunks) // 2 if self.half else None] + (wire.fault() if self.half == "fails" else [])


BINDING = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages", GEMINI: "/v1beta/models/{model}:{method}"}


def away() -> str:
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def routes(url: str) -> str:
    """A route file with one route a surface, whose model has the surface's name; behind `nowhere` is nobody."""
    hashed = {name: hashlib.sha256(name.encode()).hexdigest() for name in (CLIENT_KEY, NARROW_KEY)}
    lines = ['[auth]\nmode = "keys"', f'[[keys]]\nname = "ada"\nsha256 = "{hashed[CLIENT_KEY]}"']
    lines += [f'[[keys]]\nname = "bob"\nsha256 = "{hashed[NARROW_KEY]}"\nmodels = ["narrow"]', "[limits]\nrequest_bytes = 100_000"]
    for surface in SURFACES:
        header, scheme = KEYS[surface]
        said = f', scheme = "{scheme.strip()}"' if scheme else ""
        lines.append(f'[providers.{surface}]\nbase_url = "{url}"\nauth = {{ header = "{header}"{said}, env = "MATRIX_PROVIDER_KEY" }}')
        names = json.dumps([surface, "narrow"] if surface == CHAT else [surface])
        lines.append(f'[[routes]]\nroute_id = "r:{surface}"\nmodels = {names}\nupstream_model = "up"\nprovider = "{surface}"')
        features = json.dumps(sorted(CARRIES[surface]))
        lines.append(f'[[routes.api_bindings]]\nsurface = "{surface}"\npath = "{BINDING[surface]}"\nfeatures = {features}')
    lines.append(
        f'[providers.away]\nbase_url = "{away()}"\n[[routes]]\nroute_id = "r:away"\nmodels = ["nowhere"]\nupstream_model = "up"\nprovider = "away"'
    )
    lines += [f'[[routes.api_bindings]]\nsurface = "{surface}"\npath = "{path}"\nfeatures = []' for surface, path in BINDING.items()]
    return "\n".join(lines) + "\n"


class City(BaseModel):
    """A structured answer."""

    name: str
    population: int
    tags: list[str]


async def got(value):
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    if hasattr(stream, "__aiter__"):
        async for one in stream:
            yield one
    else:
        for one in stream:
            yield one


@contextlib.asynccontextmanager
async def entered(manager):
    if hasattr(manager, "__aenter__"):
        async with manager as inner:
            yield inner
    else:
        with manager as inner:
            yield inner


# The drivers: a talk holds one SDK's own history. `hear` sends it and keeps the answer, `give` adds the results of the last calls. A `way` is whole
# (unstreamed; with a schema the SDK's parse helper), raw (the stream's own events) or helper (the SDK's stream helper).


class Ask(NamedTuple):
    """What a client asks for, in no SDK's words. `turns` are the (kind, value) of user, image and said; `tools` as in `Asked`."""

    turns: tuple[tuple[str, Any], ...]
    system: str = ""
    tools: Mapping[str, tuple[str, dict[str, Any]]] = MappingProxyType({})
    force: str | None = None
    schema: type[BaseModel] | None = None
    effort: str | None = None
    sealed: bool = True


class Said(NamedTuple):
    """What a client heard. `calls` have id, name and arguments."""

    text: str = ""
    thought: str = ""
    refused: str = ""
    calls: tuple[tuple[str | None, str, Any], ...] = ()
    stop: str = "end"
    usage: tuple[int, int] = (5, 7)
    parsed: Any = None


def groups(turns):
    """Turns by who says them: (assistant?, entries)."""
    return [(said, [*group]) for said, group in itertools.groupby(turns, lambda turn: turn[0] == "said")]


def plain(value):
    """An SDK's object as the JSON that goes back, without what its helpers added."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    value = value.model_dump(exclude_none=True, warnings=False) if isinstance(value, BaseModel) else value
    return {name: plain(one) for name, one in value.items() if name not in ("parsed", "parsed_arguments")} if isinstance(value, dict) else value


def grow(whole, delta):
    """Merges a delta of Chat into what there is: texts are joined, calls are told apart by their index."""
    for name, value in delta.items():
        if name == "tool_calls":
            for call in value:
                grow(whole.setdefault(name, {}).setdefault(call.pop("index"), {}), call)
        elif isinstance(value, dict):
            grow(whole.setdefault(name, {}), value)
        else:
            whole[name] = whole[name] + value if name in ("content", "reasoning_content", "refusal", "arguments") and name in whole else value


class ChatTalk:
    sdk, base = (openai.OpenAI, openai.AsyncOpenAI), "/v1"
    stops: ClassVar = {"stop": "end", "tool_calls": "tools", "length": "length", "content_filter": "refusal"}

    @classmethod
    def clients(cls, url, key):
        """A sync and an async client."""
        return [made(api_key=key, base_url=url + cls.base) for made in cls.sdk]

    def __init__(self, client, model, ask):
        self.client, self.schema = client, ask.schema
        system = [{"role": "system", "content": ask.system}] if ask.system else []
        self.history = system + [{"role": "assistant" if said else "user", "content": self.content(turns)} for said, turns in groups(ask.turns)]
        self.request = {"model": model, "max_completion_tokens": LIMIT, "messages": self.history}
        if ask.tools:
            self.request["tools"] = [self.tool(name, *one) for name, one in ask.tools.items()]
        if ask.force:
            self.request["tool_choice"] = self.forced(ask.force)
        if ask.effort:
            self.request |= self.thinking(ask.effort, ask.sealed)

    def content(self, turns):
        if [kind for kind, _ in turns] in (["user"], ["said"]):
            return turns[0][1]
        return [self.image(value) if kind == "image" else {"type": "text", "text": value} for kind, value in turns]

    def image(self, value):
        return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(value).decode()}}

    def tool(self, name, description, schema):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": schema, "strict": True}}

    def forced(self, name):
        return "required" if name == "*" else {"type": "function", "function": {"name": name}}

    def thinking(self, effort, _):
        return {"reasoning_effort": effort}

    async def hear(self, way):
        return self.keep(await getattr(self, way)())

    def structured(self):
        schema = {"name": "City", "strict": True, "schema": openai.lib._pydantic.to_strict_json_schema(self.schema)} if self.schema else None
        return {"response_format": {"type": "json_schema", "json_schema": schema}} if self.schema else {}

    async def whole(self):
        if self.schema:
            return await got(self.client.chat.completions.parse(**self.request, response_format=self.schema))
        return await got(self.client.chat.completions.create(**self.request))

    async def events(self):
        counted = {"stream": True, "stream_options": {"include_usage": True}}
        return await got(self.client.chat.completions.create(**self.request, **self.structured(), **counted))

    async def raw(self):
        message: dict[str, Any] = {}
        answer = {"id": "", "object": "chat.completion", "created": 1, "model": ""}
        async for chunk in each(await self.events()):
            answer["usage"] = chunk.usage
            for choice in chunk.choices:
                answer["choices"] = [{"index": 0, "message": message, "finish_reason": choice.finish_reason}]
                grow(message, choice.delta.model_dump(exclude_none=True))
        message |= {"tool_calls": [*message["tool_calls"].values()]} if "tool_calls" in message else {}
        return openai.types.chat.ChatCompletion.model_validate(answer)

    async def helper(self):
        more = {"response_format": self.schema} if self.schema else {}
        async with entered(self.client.chat.completions.stream(**self.request, stream_options={"include_usage": True}, **more)) as stream:
            try:
                return await got(stream.get_final_completion())
            except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):  # what the helper makes of a truncated answer
                return stream.current_completion_snapshot

    def keep(self, answer):
        [choice] = answer.choices
        said = choice.message
        self.history.append(plain(said))
        self.calls = tuple((call.id, call.function.name, json.loads(call.function.arguments)) for call in said.tool_calls or ())
        thought, usage = getattr(said, "reasoning_content", None) or "", (answer.usage.prompt_tokens, answer.usage.completion_tokens)
        parsed = getattr(said, "parsed", None)
        return Said(said.content or "", thought, said.refusal or "", self.calls, self.stops[choice.finish_reason], usage, parsed)

    def give(self, results):
        self.history += [{"role": "tool", "tool_call_id": call[0], "content": text} for call, text in zip(self.calls, results, strict=True)]


class ResponsesTalk(ChatTalk):
    stops: ClassVar = {"completed": "end", "max_output_tokens": "length", "content_filter": "refusal"}

    def __init__(self, client, model, ask):
        super().__init__(client, model, ask._replace(system=""))
        self.request |= {"input": self.request.pop("messages"), "max_output_tokens": self.request.pop("max_completion_tokens"), "store": False}
        self.request |= {"instructions": ask.system} if ask.system else {}

    def content(self, turns):
        if [kind for kind, _ in turns] in (["user"], ["said"]):
            return turns[0][1]
        return [self.image(value) if kind == "image" else {"type": "input_text", "text": value} for kind, value in turns]

    def image(self, value):
        return {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + base64.b64encode(value).decode()}

    def tool(self, name, description, schema):
        return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": True}

    def forced(self, name):
        return "required" if name == "*" else {"type": "function", "name": name}

    def thinking(self, effort, sealed):
        return {"reasoning": {"effort": effort, "summary": "auto"}} | ({"include": ["reasoning.encrypted_content"]} if sealed else {})

    def structured(self):
        named = super().structured()
        return {"text": {"format": {"type": "json_schema"} | named["response_format"]["json_schema"]}} if named else {}

    async def whole(self):
        if self.schema:
            return await got(self.client.responses.parse(**self.request, text_format=self.schema))
        return await got(self.client.responses.create(**self.request))

    async def events(self):
        return await got(self.client.responses.create(**self.request, **self.structured(), stream=True))

    async def raw(self):
        events = [event async for event in each(await self.events())]
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == events[-1].response.output_text
        return events[-1].response

    async def helper(self):
        more = {"text_format": self.schema} if self.schema else {}
        async with entered(self.client.responses.stream(**self.request, **more)) as stream:
            return [event async for event in each(stream)][-1].response

    def keep(self, answer):
        self.history += plain(answer.output)
        parts = [part for item in answer.output if item.type == "message" for part in item.content]
        thoughts = [one.text for item in answer.output if item.type == "reasoning" for one in item.summary]
        self.calls = tuple((item.call_id, item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call")
        stop = self.stops[answer.incomplete_details.reason if answer.incomplete_details else answer.status]
        refused = "".join(part.refusal for part in parts if part.type == "refusal")
        usage, parsed = (answer.usage.input_tokens, answer.usage.output_tokens), getattr(answer, "output_parsed", None)
        return Said(answer.output_text, "".join(thoughts), refused, self.calls, "tools" if self.calls else stop, usage, parsed)

    def give(self, results):
        self.history += [{"type": "function_call_output", "call_id": call[0], "output": text} for call, text in zip(self.calls, results, strict=True)]


class MessagesTalk(ChatTalk):
    sdk, base = (anthropic.Anthropic, anthropic.AsyncAnthropic), ""
    stops: ClassVar = {"end_turn": "end", "tool_use": "tools", "max_tokens": "length", "refusal": "refusal"}

    def __init__(self, client, model, ask):
        super().__init__(client, model, ask._replace(system=""))
        self.request["max_tokens"] = self.request.pop("max_completion_tokens")
        self.request |= {"system": ask.system} if ask.system else {}

    def image(self, value):
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(value).decode()}}

    def tool(self, name, description, schema):
        return {"name": name, "description": description, "input_schema": schema}

    def forced(self, name):
        return {"type": "any"} if name == "*" else {"type": "tool", "name": name}

    def thinking(self, effort, _):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}

    def structured(self):
        schema = {"type": "json_schema", "schema": anthropic.transform_schema(self.schema)} if self.schema else None
        return {"output_config": {"format": schema}} if schema else {}

    async def whole(self):
        if self.schema:
            return await got(self.client.messages.parse(**self.request, output_format=self.schema))
        return await got(self.client.messages.create(**self.request))

    async def events(self):
        return await got(self.client.messages.create(**self.request, **self.structured(), stream=True))

    async def raw(self):
        blocks: list[dict[str, Any]] = []
        async for event in each(await self.events()):
            match event.type:
                case "message_start":
                    answer = event.message.model_dump()
                case "content_block_start":
                    blocks.append(event.content_block.model_dump(exclude_none=True) | {"partial_json": ""})
                case "content_block_delta":
                    delta = event.delta.model_dump(exclude={"type"})
                    blocks[event.index] |= {name: blocks[event.index].get(name, "") + value for name, value in delta.items()}
                case "message_delta":
                    answer |= event.delta.model_dump(include={"stop_reason", "stop_sequence"})
                    answer["usage"] |= event.usage.model_dump(exclude_none=True)
        for block in blocks:
            arguments = block.pop("partial_json")
            block.update({"input": json.loads(arguments or "{}")} if block["type"] == "tool_use" else {})
        return anthropic.types.Message.model_validate(answer | {"content": blocks})

    async def helper(self):
        more = {"output_format": self.schema} if self.schema else {}
        async with entered(self.client.messages.stream(**self.request, **more)) as stream:
            return await got(stream.get_final_message())

    def keep(self, answer):
        self.history.append({"role": "assistant", "content": answer.content})
        text = "".join(block.text for block in answer.content if block.type == "text")
        thought = "".join(block.thinking for block in answer.content if block.type == "thinking")
        self.calls = tuple((block.id, block.name, block.input) for block in answer.content if block.type == "tool_use")
        usage, parsed = (answer.usage.input_tokens, answer.usage.output_tokens), getattr(answer, "parsed_output", None)
        return Said(text, thought, "", self.calls, self.stops[answer.stop_reason], usage, parsed)

    def give(self, results):
        pairs = zip(self.calls, results, strict=True)
        self.history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call[0], "content": text} for call, text in pairs]})


class GeminiTalk(ChatTalk):
    stops: ClassVar = {"STOP": "end", "MAX_TOKENS": "length", "SAFETY": "refusal"}

    @classmethod
    def clients(cls, url, key):
        made = genai.Client(api_key=key, http_options={"base_url": url})
        return [made, made.aio]

    def __init__(self, client, model, ask):
        super().__init__(client, model, ask._replace(system=""))
        config = {"max_output_tokens": LIMIT, "automatic_function_calling": {"disable": True}}
        config |= {"system_instruction": ask.system} if ask.system else {}
        config |= {"tools": [{"function_declarations": self.request["tools"]}]} if ask.tools else {}
        config |= self.request.get("tool_choice", {}) | (self.thinking(ask.effort, ask.sealed) if ask.effort else {})
        self.history = [types.Content(role="model" if said else "user", parts=self.content(turns)) for said, turns in groups(ask.turns)]
        self.request, self.chat = {"model": model, "config": config}, None

    def content(self, turns):
        return [types.Part.from_bytes(data=value, mime_type="image/png") if kind == "image" else types.Part(text=value) for kind, value in turns]

    def tool(self, name, description, schema):
        return {"name": name, "description": description, "parameters_json_schema": schema}

    def forced(self, name):
        named = {} if name == "*" else {"allowed_function_names": [name]}
        return {"tool_config": {"function_calling_config": {"mode": "ANY", **named}}}

    def thinking(self, effort, _):
        return {"thinking_config": {"include_thoughts": True, "thinking_level": effort}}

    def structured(self, **schema):
        return {**self.request, "config": self.request["config"] | ({"response_mime_type": "application/json"} | schema if self.schema else {})}

    async def whole(self):
        asked = self.structured(response_schema=self.schema)
        return [await got(self.client.models.generate_content(contents=self.history, **asked))]

    async def events(self):
        asked = self.structured(response_json_schema=self.schema and self.schema.model_json_schema())
        return await got(self.client.models.generate_content_stream(contents=self.history, **asked))

    async def raw(self):
        return [chunk async for chunk in each(await self.events())]

    async def helper(self):
        """A chat keeps the history itself, with the seals."""
        self.chat = self.chat or self.client.chats.create(history=self.history[:-1], **self.structured(response_schema=self.schema))
        stream = await got(self.chat.send_message_stream(self.history[-1].parts))
        return [chunk async for chunk in each(stream)]

    def keep(self, answer):
        candidates = [one for chunk in answer for one in chunk.candidates or ()]
        parts = [part for one in candidates for part in (one.content and one.content.parts) or ()]
        self.history.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        self.calls = tuple((call.id, call.name, call.args) for call in calls)
        texts = [part for part in parts if part.text]
        text, thought = ("".join(part.text for part in texts if bool(part.thought) == kind) for kind in (False, True))
        blocked = ["refusal" for chunk in answer if chunk.prompt_feedback and chunk.prompt_feedback.block_reason]
        [stop] = blocked or [self.stops[one.finish_reason.value] for one in candidates if one.finish_reason]
        used = answer[-1].usage_metadata
        usage = used.prompt_token_count, (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        return Said(text, thought, "", self.calls, "tools" if calls else stop, usage, answer[-1].parsed)

    def give(self, results):
        answers = [
            types.FunctionResponse(id=call, name=name, response={"output": text}) for (call, name, _), text in zip(self.calls, results, strict=True)
        ]
        self.history.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]))


TALKS = {CHAT: ChatTalk, RESPONSES: ResponsesTalk, MESSAGES: MessagesTalk, GEMINI: GeminiTalk}


class Bench:
    """The served gateway `url`, its `upstream`, and the loop in which clients run: one of each surface, kind (sync, async) and key."""

    def __init__(self, runner, url, upstream, wait, records) -> None:
        self.url, self.upstream, self.wait, self.records, self.run = url, upstream, wait, records, runner.run
        self.clients: dict[tuple[str, str], dict[str, Any]] = {}

    def client(self, surface, kind, key=CLIENT_KEY):
        """An SDK's client; it is made once."""
        if (surface, key) not in self.clients:
            self.clients[surface, key] = dict(zip(("sync", "async"), TALKS[surface].clients(self.url, key), strict=True))
        return self.clients[surface, key][kind]

    def talk(self, client, upstream, kind, ask, key=CLIENT_KEY):
        return TALKS[client](self.client(client, kind, key), upstream, ask)

    def raised(self, task) -> Exception:
        """What an SDK raises."""
        with pytest.raises((openai.OpenAIError, anthropic.AnthropicError, errors.APIError)) as found:
            self.run(task)
        return found.value

    def refused(self, task) -> tuple[str, str]:
        """The gateway's code and the place of a refusal."""
        error = self.raised(task)
        found = re.search(r"\(at (/[^)]*)\)", str(error))
        return error.response.headers["x-surface-error"], found[1] if found else ""

    async def close(self) -> None:
        for (surface, _), pair in self.clients.items():
            pair["sync"].close()
            await (pair["async"].aclose() if surface == GEMINI else pair["async"].close())


@pytest.fixture(scope="module")
def bench(server) -> Iterator[Bench]:
    """One bench for a module's tests."""
    upstream, records = Upstream(), []
    with contextlib.ExitStack() as stack:
        behind = type(server)()
        stack.callback(behind.stop)
        behind.app = upstream
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("MATRIX_PROVIDER_KEY", PROVIDER_KEY)
        server.app = Gateway(catalog=build(routes(behind.url)), record=records.append)
        runner = stack.enter_context(asyncio.Runner())
        made = Bench(runner, server.url, upstream, server.wait, records)
        stack.callback(lambda: runner.run(made.close()))
        yield made


@pytest.fixture(scope="session")
def words() -> SimpleNamespace:
    """The names of this bench that tests need; test modules cannot import one another."""
    return SimpleNamespace(
        STAND_IN=STAND_IN, **{one.__name__: one for one in (Say, Ask, Asked, Said, City, call_id, seal_of, shape, got, each, entered)}
    )
