"""Tool conversations of three turns through the gateway, against upstreams that sign what they think and verify every signature that comes back.

An upstream here answers 400 unless it finds each of its own signatures, bit for bit, on the content for which it made it, and nobody else's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re

import pytest

from asgi_surface import seals

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
TOOL, SCHEMA = "look_up", {"type": "object", "properties": {"key": {"type": "string"}}}
ENVELOPE = re.compile(rf"{seals.PREFIX}[A-Za-z0-9+/=_-]*")
KEYS = ("a", "b", "c")
TURNS = 3


def mac(*content):
    """An upstream's signature over content. It holds every character of base64's alphabets sooner or later."""
    return base64.b64encode(hmac.new(b"upstream's own key", json.dumps(content).encode(), hashlib.sha512).digest()).decode()


def arguments(turn):
    return {"key": KEYS[turn], "n": 2**60 + turn}


def thought(turn):
    return f"Thinking of {KEYS[turn]}."


# What each upstream says in a turn, and the signatures that it must find in a later request. The last turn has words in place of calls.


def say_messages(turn):
    hidden = {"type": "redacted_thinking", "data": mac("redacted", turn)}
    shown = {"type": "thinking", "thinking": thought(turn), "signature": mac(thought(turn))}
    call = {"type": "tool_use", "id": f"toolu_{turn}", "name": TOOL, "input": arguments(turn)}
    said = [shown, hidden, {"type": "text", "text": "So:"}, *([call] if turn < TURNS - 1 else [])]
    reason = "tool_use" if turn < TURNS - 1 else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m", "content": said, "stop_reason": reason, "usage": usage}


def find_messages(body):
    history = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    return [block for content in history for block in content], [block for turn in range(len(history)) for block in say_messages(turn)["content"]]


def say_responses(turn):
    reasoning = {
        "type": "reasoning",
        "id": f"rs_{turn}",
        "summary": [{"type": "summary_text", "text": thought(turn)}],
        "encrypted_content": mac(f"rs_{turn}", thought(turn)),
    }
    call = {"type": "function_call", "id": f"fc_{turn}", "call_id": f"call_{turn}", "name": TOOL, "arguments": json.dumps(arguments(turn))}
    text = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "So.", "annotations": []}],
    }
    last = call if turn < TURNS - 1 else text
    return {"id": f"resp_{turn}", "object": "response", "status": "completed", "model": "m", "output": [reasoning, last]}


def find_responses(body):
    assert "reasoning.encrypted_content" in body["include"]
    kinds = ("reasoning", "function_call")
    found = [item for item in body["input"] if item["type"] in kinds]
    count = sum(item["type"] == "reasoning" for item in found)
    said = [item for turn in range(count) for item in say_responses(turn)["output"] if item["type"] in kinds]
    return found, [{name: value for name, value in item.items() if item["type"] == "reasoning" or name != "id"} for item in said]


def say_gemini(turn):
    """Calls in parallel, without ids, as on Vertex: the first alone is signed."""
    calls = [{"functionCall": {"name": TOOL, "args": arguments(turn)}}, {"functionCall": {"name": TOOL, "args": {"key": "d"}}}]
    calls[0]["thoughtSignature"] = mac(TOOL, arguments(turn))
    text = {"text": "So.", "thoughtSignature": mac("So.")}
    parts = calls if turn < TURNS - 1 else [text]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}], "responseId": f"g{turn}"}


def find_gemini(body):
    history = [content["parts"] for content in body["contents"] if content["role"] == "model"]
    found = [part for parts in history for part in parts]
    said = [part for turn in range(len(history)) for part in say_gemini(turn)["candidates"][0]["content"]["parts"]]
    return found, said


def say_chat(turn):
    """Google's own Chat API."""
    call = {"id": f"call_{turn}", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(arguments(turn))}}
    call["extra_content"] = {"google": {"thought_signature": mac(arguments(turn))}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]} if turn < TURNS - 1 else {"role": "assistant", "content": "So."}
    reason = "tool_calls" if turn < TURNS - 1 else "stop"
    return {
        "id": f"c{turn}",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }


def find_chat(body):
    history = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return history, [call for turn in range(len(history)) for call in say_chat(turn)["choices"][0]["message"]["tool_calls"]]


SAY = {CHAT: say_chat, RESPONSES: say_responses, MESSAGES: say_messages, GEMINI: say_gemini}
FIND = {CHAT: find_chat, RESPONSES: find_responses, MESSAGES: find_messages, GEMINI: find_gemini}


def signing(surface):
    """An upstream that checks the whole of its own turns in the history, and says the next one. `turns` counts what it was asked."""

    async def app(scope, receive, send):
        body = json.loads((await receive())["body"])
        app.bodies.append(body)
        assert not ENVELOPE.search(json.dumps(body))
        found, said = FIND[surface](body)
        answer = SAY[surface](app.turn) if found == said else {"error": {"message": f"{found} is not {said}"}}
        app.turn += 1
        await send({"type": "http.response.start", "status": 200 if found == said else 400, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    app.turn, app.bodies = 0, []
    return app


# How each surface's client asks, keeps an answer and gives a tool's result.


class Client:
    """`called` are the ids of all calls so far."""

    def __init__(self):
        self.called = []


class ChatClient(Client):
    path = "/v1/chat/completions"

    def __init__(self):
        super().__init__()
        tool = {"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}
        self.body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}

    def keep(self, answer):
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        self.body["messages"] += [message, *({"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in calls)]
        self.called += [call["id"] for call in calls]
        return [json.loads(call["function"]["arguments"]) for call in calls]


class ResponsesClient(Client):
    path = "/v1/responses"

    def __init__(self):
        super().__init__()
        tool = {"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}
        self.body = {"model": "m", "input": [{"role": "user", "content": "hi"}], "tools": [tool]}
        self.body["include"] = ["reasoning.encrypted_content"]

    def keep(self, answer):
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": "found"} for call in calls]
        self.body["input"] += [*answer["output"], *outputs]
        self.called += [call["call_id"] for call in calls]
        return [json.loads(call["arguments"]) for call in calls]


class MessagesClient(Client):
    path = "/v1/messages"

    def __init__(self):
        super().__init__()
        self.body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
        self.body |= {"tools": [{"name": TOOL, "input_schema": SCHEMA}], "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}

    def keep(self, answer):
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "found"} for call in calls]
        self.body["messages"] += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
        self.called += [call["id"] for call in calls]
        return [call["input"] for call in calls]


class GeminiClient(Client):
    """google-genai decodes signatures, and sends them back in the URL-safe alphabet."""

    path = "/v1beta/models/m:generateContent"

    def __init__(self):
        super().__init__()
        tool = {"functionDeclarations": [{"name": TOOL, "parametersJsonSchema": SCHEMA}]}
        self.body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [tool]}

    def keep(self, answer):
        content = answer["candidates"][0]["content"]
        for part in content["parts"]:
            if "thoughtSignature" in part:
                part["thoughtSignature"] = part["thoughtSignature"].replace("+", "-").replace("/", "_")
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        results = [{"functionResponse": {"name": TOOL, "response": {"output": "found"}}} for _ in calls]
        self.body["contents"] += [content, {"role": "user", "parts": results}]
        self.called += [call["id"] for call in calls]
        return [call["args"] for call in calls]


CLIENTS = {CHAT: ChatClient, RESPONSES: ResponsesClient, MESSAGES: MessagesClient, GEMINI: GeminiClient}
# With the place of the first seal in the history: its own, or that of the call which it proves.
PLACES = {
    (RESPONSES, MESSAGES): "/input/1",
    (MESSAGES, RESPONSES): "/messages/1/content/0",
    (RESPONSES, GEMINI): "/input/1",
    (GEMINI, RESPONSES): "/contents/1/parts/0",
    (MESSAGES, GEMINI): "/messages/1/content/0",
    (GEMINI, MESSAGES): "/contents/1/parts/0",
    (CHAT, GEMINI): "/messages/1/tool_calls/0",
    (GEMINI, CHAT): "/contents/1/parts/0",
}
PAIRS = list(PLACES)
FEATURES = ["tools", "parallel-tools", "reasoning", "encrypted-reasoning"]


@pytest.fixture
def talk(gateway, ask):
    """A client of one surface, an upstream of another, and what one turn of the client gets."""

    def make(client, surface, **options):
        app, speaker = signing(surface), CLIENTS[client]()
        features = [name for name in FEATURES if surface != CHAT or name != "encrypted-reasoning"]
        door = gateway(app, surface, features=features, **options)
        return speaker, app, lambda: ask(door, speaker.path, speaker.body)

    return make


@pytest.mark.parametrize(("client", "surface"), PAIRS)
def test_three_turns_with_every_signature_bit_for_bit(talk, client, surface):
    speaker, app, turn = talk(client, surface)
    for index in range(TURNS):
        reply = turn()
        # Chat has a slot on calls alone, so the seal of the last answer's words is dropped and named.
        dropped = "answer:seals" if client == CHAT and index == TURNS - 1 else None
        assert (reply.status, reply.headers.get("x-surface-dropped")) == (200, dropped), reply.body
        asked = speaker.keep(reply.json)
        assert asked[:1] == ([arguments(index)] if index < TURNS - 1 else [])
    assert app.turn == TURNS
    assert len(set(speaker.called)) == len(speaker.called) > 1  # an upstream without ids makes no call's id another's


def foreign(speaker):
    """The client's history as if another provider had sealed it."""

    def other(found):
        seal = seals.unwrap(found[0])
        return seals.wrap(seal, "another-provider")

    text, count = ENVELOPE.subn(other, json.dumps(speaker.body))
    assert count
    speaker.body = json.loads(text)


@pytest.mark.parametrize(("client", "surface"), PAIRS)
def test_the_seal_of_another_issuer_is_refused_at_its_place(talk, client, surface):
    speaker, app, turn = talk(client, surface)
    speaker.keep(turn().json)
    foreign(speaker)
    reply = turn()
    assert (reply.status, app.turn) == (400, 1)
    error = reply.json["error"]
    place = re.sub(r"[\[.]", "/", "/" + error["param"]).replace("]", "") if "param" in error else error["message"].rpartition("(at ")[2][:-1]
    assert "seal:foreign" in error["message"]
    assert place == PLACES[client, surface]


@pytest.mark.parametrize(("client", "surface"), PAIRS)
def test_the_seal_of_another_issuer_is_dropped_and_reported_where_that_is_tolerated(talk, client, surface):
    speaker, app, turn = talk(client, surface, binding='tolerate = ["foreign-seals"]\n')
    speaker.keep(turn().json)
    foreign(speaker)
    reply = turn()
    sent = json.dumps(app.bodies[-1]).replace(f', "thoughtSignature": "{seals.STAND_IN}"', "")
    assert app.turn == 2
    assert re.sub(r"[0-9]+", "*", PLACES[client, surface]) in reply.headers["x-surface-dropped"]
    assert not re.search(r"encrypted_content\": |signature|thoughtSignature|redacted", sent)
    assert TOOL in sent


@pytest.mark.parametrize("client", [RESPONSES, MESSAGES])
def test_a_signature_goes_back_on_the_part_on_which_it_stood(gateway, upstream, ask, client):
    """Gemini signs an empty part as well; the call behind it is not what was signed."""
    parts = [{"text": "", "thoughtSignature": mac("")}, {"functionCall": {"name": TOOL, "args": {"key": "a"}}}]
    answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    app, speaker = upstream([json.dumps(answer).encode()]), CLIENTS[client]()
    door = gateway(app, GEMINI, features=FEATURES)
    for _ in range(2):
        speaker.keep(ask(door, speaker.path, speaker.body).json)
    assert app.calls[1].json["contents"][1]["parts"] == parts


def test_results_stand_in_the_order_of_calls_that_had_no_ids(gateway, upstream, ask):
    """All that pairs them on Vertex is their order; a client may give them in any."""
    app, speaker = upstream([json.dumps(say_gemini(0)).encode()]), MessagesClient()
    door = gateway(app, GEMINI, features=FEATURES)
    speaker.keep(ask(door, speaker.path, speaker.body).json)
    results = speaker.body["messages"][-1]["content"]
    speaker.body["messages"][-1]["content"] = [result | {"content": result["tool_use_id"].split("_")[2]} for result in reversed(results)]
    speaker.keep(ask(door, speaker.path, speaker.body).json)
    said = [{"functionResponse": {"name": TOOL, "response": {"output": place}}} for place in ("0", "1")]
    assert app.calls[1].json["contents"][2]["parts"] == said
