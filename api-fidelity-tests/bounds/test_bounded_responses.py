"""The contract `responses-bounded-text`: what it takes, what it refuses and where, and the bounds of what comes back, on both sides of each limit."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from asgi_surface import Gateway
from asgi_surface.catalog import build
from asgi_surface.contracts import CHARS, CONTRACTS, ITEMS, MIB
from asgi_surface.errors import Code, RequestError
from asgi_surface.planner import plan

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
CONTRACT = 'inbound_contract = "responses-bounded-text"\n'
HELLO = {"model": "m", "input": "hi"}
SSE = [(b"content-type", b"text/event-stream")]


def said(content, **more):
    return {"role": "user", "content": content, **more}


def parts(*texts, kind="input_text"):
    return [{"type": kind, "text": text} for text in texts]


ACCEPTED = [
    {"input": ""},
    {"input": [said("hi")]},
    {"input": [said(parts("hi"), type="message")]},
    {"input": [{"role": role, "content": parts("hi", kind=kind)} for role in ("system", "developer", "user") for kind in ("input_text", "text")]},
    {"input": [said("hi"), {"role": "assistant", "content": parts("yes", kind="output_text")}, said("and?")]},
    {"input": [said("x")] * ITEMS},
    {"input": "x" * CHARS},
    {"input": "\U0001f600" * 600_000},  # code points, not halves of surrogate pairs
    {"input": [said("x" * (CHARS - 4)), said(parts("xx"))], "instructions": "xx"},
    {"instructions": "be brief", "stream": False},
    {"max_output_tokens": 1},
    {"max_output_tokens": 32_768},
    {"temperature": 0},
    {"temperature": 2.0},
    {"instructions": None, "stream": None, "max_output_tokens": None, "temperature": None},
]
REFUSED = [
    ({"top_p": 1}, "/top_p"),
    ({"tools": []}, "/tools"),
    ({"store": False}, "/store"),
    ({"a/b": 1}, "/a~1b"),
    ({"input": None}, "/input"),
    ({"input": {"role": "user"}}, "/input"),
    ({"input": [said("x")] * (ITEMS + 1)}, f"/input/{ITEMS}"),
    ({"input": "x" * (CHARS + 1)}, "/input"),
    ({"input": [said("x" * (CHARS - 3)), said(parts("xx"))], "instructions": "xx"}, "/input"),
    ({"input": ["hi"]}, "/input/0"),
    ({"input": [said("hi", id="msg_1")]}, "/input/0/id"),
    ({"input": [said("hi", type="reasoning")]}, "/input/0/type"),
    ({"input": [{"role": "tool", "content": "hi"}]}, "/input/0/role"),
    ({"input": [{"role": ["user"], "content": "hi"}]}, "/input/0/role"),
    ({"input": [{"role": "user"}]}, "/input/0/content"),
    ({"input": [said([{"type": "input_image", "image_url": "data:"}])]}, "/input/0/content/0/type"),
    ({"input": [said([{"type": "input_text", "text": "hi", "cache": 1}])]}, "/input/0/content/0/cache"),
    ({"input": [said([{"text": "hi"}])]}, "/input/0/content/0/type"),
    ({"input": [{"type": "item_reference", "id": "i"}]}, "/input/0/type"),
    ({"input": [said([{"type": "refusal", "text": "no"}])]}, "/input/0/content/0/type"),
    ({"input": [said([{"type": "input_text", "text": 1}])]}, "/input/0/content/0/text"),
    ({"input": [said(["hi"])]}, "/input/0/content/0"),
    ({"instructions": ["be brief"]}, "/instructions"),
    ({"instructions": "x" * (CHARS - 1)}, "/instructions"),
    ({"stream": 1}, "/stream"),
    ({"max_output_tokens": 0}, "/max_output_tokens"),
    ({"max_output_tokens": 32_769}, "/max_output_tokens"),
    ({"max_output_tokens": 1.0}, "/max_output_tokens"),
    ({"max_output_tokens": True}, "/max_output_tokens"),
    ({"temperature": -0.1}, "/temperature"),
    ({"temperature": 2.1}, "/temperature"),
    ({"temperature": "1"}, "/temperature"),
    ({"temperature": True}, "/temperature"),
]


def answer(surface, text="hello"):
    """A whole answer of the upstream's surface."""
    if surface == CHAT:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [choice]}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": content}
    return {"id": "resp", "object": "response", "created_at": 1, "model": "up", "status": "completed", "output": [item]}


def stream(surface, *pieces):
    """A whole stream of the upstream's surface, a frame each."""
    if surface == CHAT:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up"}
        deltas = [({"role": "assistant", "content": ""}, None), *(({"content": piece}, None) for piece in pieces), ({}, "stop")]
        chunks = [json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}) for delta, stop in deltas]
        return [f"data: {chunk}\n\n".encode() for chunk in (*chunks, "[DONE]")]
    whole = answer(surface, "".join(pieces))
    item, place = whole["output"][0], {"output_index": 0, "item_id": "msg"}
    empty, part = {**item, "status": "in_progress", "content": []}, item["content"][0]
    events = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        {"type": "response.content_part.added", **place, "content_index": 0, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **place, "content_index": 0, "text": part["text"]},
        {"type": "response.content_part.done", **place, "content_index": 0, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one | {'sequence_number': at})}\n\n".encode() for at, one in enumerate(events)]


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("members", ACCEPTED, ids=range(len(ACCEPTED)))
@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_what_the_contract_takes(gateway, upstream, ask, surface, members, path):
    app = upstream([json.dumps(answer(surface)).encode()])
    reply = ask(gateway(app, surface, route=CONTRACT, features=["streaming", "mid-conversation-system"]), path, HELLO | members)
    assert (reply.status, len(app.calls)) == (200, 1), reply.body[:300]
    assert "usage" not in reply.json or reply.json["usage"] is None


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize(("members", "pointer"), REFUSED, ids=range(len(REFUSED)))
def test_what_the_contract_refuses_and_where(gateway, upstream, ask, surface, members, pointer, dry):
    app = upstream([json.dumps(answer(surface)).encode()])
    door = gateway(app, surface, route=CONTRACT, features=["streaming", "tools", "images", "mid-conversation-system"])
    reply = ask(door, "/v1/responses", HELLO | members, headers=[("x-surface-dry-run", "true")] if dry else [])
    if isinstance(members.get("stream"), int) and not isinstance(members["stream"], bool):
        # The surface itself knows no such `stream`: how to answer could not even be told.
        assert (reply.status if not dry else reply.json["status"]) == 400
    elif dry:
        assert (reply.json["status"], reply.json["code"], reply.json["pointer"]) == (400, Code.UNSUPPORTED_REQUEST, pointer)
    else:
        assert (reply.status, reply.headers["x-surface-error"]) == (400, Code.UNSUPPORTED_REQUEST)
        assert f"(at {pointer})" in reply.json["error"]["message"]
    assert app.calls == []


def test_a_value_that_no_number_can_hold_is_refused(routes):
    with pytest.raises(RequestError) as caught:
        plan(RESPONSES, b'{"model":"m","input":"hi","temperature":1e999}', build(routes(RESPONSES, route=CONTRACT)))
    assert (caught.value.code, caught.value.pointer) == (Code.UNSUPPORTED_REQUEST, "/temperature")


TWICE = [
    b'{"role": "system", "role": "user", "content": "hi"}',
    b'{"role": "user", "content": [{"type": "input_image", "image_url": "x"}], "content": "hi"}',
    b'{"role": "user", "content": "hi", "c\\u006fntent": "ho: \\":"}',
    b'{"role": "user", "content": [{"type": "input_image", "type": "input_text", "text": "hi"}]}',
    b'{"role": "user", "content": [{"type": "text", "text": {"a": 1}, "text": "hi"}]}',
]


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("item", TWICE)
def test_no_name_stands_twice_in_a_message(gateway, upstream, ask, surface, item):
    """Natively the upstream could read the value that was not judged; converted the other is lost."""
    app = upstream()
    fine = json.dumps(said(parts('":"', '{"a": 1}', "\\"), type="message")).encode()
    reply = ask(gateway(app, surface, route=CONTRACT), "/v1/responses", b'{"model": "m", "input": [' + fine + b", " + item + b"]}")
    assert (reply.status, reply.headers["x-surface-error"], app.calls) == (400, Code.UNSUPPORTED_REQUEST, [])
    assert "twice in this message (at /input/1)" in reply.json["error"]["message"]


def test_a_request_without_input_asks_nothing(gateway, upstream, ask):
    app = upstream()
    reply = ask(gateway(app, RESPONSES, route=CONTRACT), "/v1/responses", {"model": "m", "instructions": "be brief"})
    assert (reply.status, reply.headers["x-surface-error"], app.calls) == (400, Code.UNSUPPORTED_REQUEST, [])
    assert "(at /input)" in reply.json["error"]["message"]


def test_clients_of_other_surfaces_are_not_bound(gateway, upstream, ask):
    app = upstream([json.dumps(answer(CHAT)).encode()])
    door = gateway(app, CHAT, route=CONTRACT)
    reply = ask(door, "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_p": 0.5})
    assert (reply.status, len(app.calls)) == (200, 1)


def test_the_bindings_policy_still_applies(gateway, upstream, ask):
    policy = f'[policies.p]\nsurface = "{RESPONSES}"\nallowed_fields = ["model", "input", "stream"]\n'
    app = upstream([json.dumps(answer(RESPONSES)).encode()])
    door = gateway(app, RESPONSES, route=CONTRACT, top=policy, binding='request_policy = "p"\n')
    reply = ask(door, "/v1/responses", HELLO | {"temperature": 1})
    assert (reply.status, reply.headers["x-surface-error"], app.calls) == (400, Code.FIELD_REJECTED, [])


def test_the_narrower_limit_stands(routes):
    body = json.dumps(HELLO).encode()
    told = plan(RESPONSES, body, build(routes(RESPONSES, route=CONTRACT + "limits = { output_chars = 10 }\n"))).limits
    assert (told.output_chars, told.event_bytes, told.line_bytes, told.events, told.response_bytes) == (10, MIB, MIB // 4, 8_192, 8 * MIB)


def test_another_candidate_may_serve_what_the_contract_refuses(routes, gateway, upstream, ask):
    more = f'[[routes]]\nroute_id = "wide"\nupstream_model = "w"\nprovider = "up"\n[[routes.api_bindings]]\nsurface = "{RESPONSES}"\npath = "/w"\n'
    top = '[[models]]\nname = "both"\ncandidates = ["up:model", "wide"]\n'
    app = upstream([json.dumps(answer(RESPONSES)).encode()])
    door = gateway(app, RESPONSES, route=CONTRACT, top=top + more)
    reply = ask(door, "/v1/responses", {"model": "both", "input": "hi", "top_p": 1})
    assert (reply.status, reply.headers["x-surface-route"]) == (200, "wide")


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("chars", "good"), [(CHARS, True), (CHARS + 1, False)])
def test_characters_that_come_back(gateway, upstream, ask, records, surface, streams, chars, good):
    pieces = ["x" * 100_000] * 9 + ["x" * (chars - 900_000)]
    sent = stream(surface, *pieces) if streams else [json.dumps(answer(surface, "x" * chars)).encode()]
    app = upstream(sent, headers=SSE if streams else [(b"content-type", b"application/json")])
    reply = ask(gateway(app, surface, route=CONTRACT + "limits = {}\n"), "/v1/responses", HELLO | {"stream": streams})
    if not streams:
        assert (reply.status, reply.headers.get("x-surface-error")) == ((200, None) if good else (502, Code.OUTPUT_TOO_LARGE))
    elif surface == CHAT:
        assert (b"response.completed" in reply.body, b"response.failed" in reply.body) == (good, not good)
    else:  # all the text passes, but the line that repeats it does not
        assert (b'"type": "response.completed"' in reply.body, reply.body.count(b"response.failed")) == (False, 2)
        assert records[0].code == (Code.EVENT_TOO_LARGE if good else Code.OUTPUT_TOO_LARGE)


@pytest.mark.parametrize(("surface", "fixed"), [(RESPONSES, 8), (CHAT, 3)])
@pytest.mark.parametrize("over", [0, 1])
def test_events_that_come_back(gateway, upstream, ask, surface, fixed, over):
    app = upstream([b"".join(stream(surface, *["x"] * (8_192 - fixed + over)))], headers=SSE)
    reply = ask(gateway(app, surface, route=CONTRACT), "/v1/responses", HELLO | {"stream": True})
    assert (reply.status, b"event: response.completed" in reply.body, b"event: response.failed" in reply.body) == (200, not over, bool(over))
    folded = gateway(app, surface, route=CONTRACT, binding='dialect = { stream = "always" }\n')
    reply = ask(folded, "/v1/responses", HELLO)
    assert (reply.status, reply.headers.get("x-surface-error")) == ((502, Code.OUTPUT_TOO_LARGE) if over else (200, None))


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("kind", ["comment", "data"])
@pytest.mark.parametrize("over", [0, 1])
def test_lines_that_come_back(gateway, upstream, ask, records, surface, kind, over):
    frames = stream(surface, "hello")
    if kind == "comment":
        frames.insert(1, b":" + b"x" * (MIB // 4 - 1 + over) + b"\n\n")
    else:
        short = next(index for index, frame in enumerate(frames) if b"hello" in frame)
        line = max(map(len, frames[short].splitlines()))
        frames[short] = frames[short].replace(b'"hello"', b'"hello"' + b" " * (MIB // 4 - line + over))
    app = upstream(frames, headers=SSE)
    reply = ask(gateway(app, surface, route=CONTRACT), "/v1/responses", HELLO | {"stream": True})
    assert (b"event: response.completed" in reply.body, records[0].code) == (not over, Code.EVENT_TOO_LARGE if over else None)


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("over", [0, 1])
def test_an_event_of_a_megabyte(gateway, upstream, ask, records, surface, over):
    frames = stream(surface, "hello")
    frames.insert(1, b"".join(b":" + b"x" * 99 + b"\n" for _ in range((MIB - 2) // 101)))
    frames[1] += b":" + b"x" * (MIB - 3 - len(frames[1]) + over) + b"\n\n"
    reply = ask(gateway(upstream(frames, headers=SSE), surface, route=CONTRACT), "/v1/responses", HELLO | {"stream": True})
    assert (b"event: response.completed" in reply.body, records[0].code) == (not over, Code.EVENT_TOO_LARGE if over else None)


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize("over", [0, 1])
def test_bodies_of_eight_megabytes(gateway, upstream, ask, surface, over):
    whole = json.dumps(answer(surface)).encode()
    door = gateway(upstream([whole + b" " * (8 * MIB - len(whole) + over)]), surface, route=CONTRACT)
    assert ask(door, "/v1/responses", HELLO).status == (502 if over else 200)
    asked = json.dumps(HELLO).encode()
    door = gateway(app := upstream([whole]), surface, route=CONTRACT)
    reply = ask(door, "/v1/responses", asked + b" " * (8 * MIB - len(asked) + over))
    assert (reply.status, len(app.calls)) == ((413, 0) if over else (200, 1))


@pytest.mark.parametrize(("provider", "text"), [("open_ai", RESPONSES), ("x_ai", CHAT)])
@pytest.mark.parametrize("over", [0, 1])
def test_lines_of_a_zed_upstream_are_lines_too(routes, upstream, ask, records, provider, text, over):
    """What stands around the event counts: the line is what is held."""
    events = [frame.split(b"data: ")[1].strip() for frame in stream(text, "hello") if b"[DONE]" not in frame]
    lines = [b'{"event":' + event + b"}" for event in events]
    lines[2] = lines[2][:-1] + b" " * (MIB // 4 - len(lines[2]) + over) + b"}"
    headers = [(b"x-zed-server-supports-status-messages", b"")]
    app = upstream([b"".join(line + b"\n" for line in (*lines, b'{"status":"stream_ended"}'))], headers=headers)
    file = routes(RESPONSES, route=CONTRACT, binding=f'dialect = {{ zed_provider = "{provider}" }}\n').replace(RESPONSES, "zed-completions")
    reply = ask(Gateway(catalog=build(file), upstream=app, record=records.append), "/v1/responses", HELLO | {"stream": True})
    assert (b"event: response.completed" in reply.body, records[0].code) == (not over, Code.EVENT_TOO_LARGE if over else None)


@pytest.mark.parametrize(("value", "good"), [(b"true", True), (b"null", True), (b"1", False), (b'"true"', False)])
def test_the_contract_judges_a_stream_flag_by_itself_too(value, good):
    members = {"model": Raw(b'"m"'), "input": Raw(b'"hi"'), "stream": Raw(value)}
    check = CONTRACTS["responses-bounded-text"].check
    if good:
        check(members)
        return
    with pytest.raises(RequestError) as caught:
        check(members)
    assert (caught.value.code, caught.value.pointer) == (Code.UNSUPPORTED_REQUEST, "/stream")


@pytest.mark.parametrize("surface", [RESPONSES, CHAT])
@pytest.mark.parametrize(("provider", "bound"), [("open_ai", True), ("x_ai", False)])
def test_a_zed_client_is_bound_where_it_carries_responses(gateway, upstream, ask, surface, provider, bound):
    """The carrier only streams, which the contract allows; places are told as they stand in the envelope."""
    inner = {"input": "hi"} if bound else {"messages": [{"role": "user", "content": "hi"}]}
    app = upstream(stream(surface, "hello"), headers=SSE)
    door = gateway(app, surface, route=CONTRACT)
    envelope = {"provider": provider, "model": "m", "provider_request": inner}
    assert ask(door, "/completions", envelope).status == 200
    reply = ask(door, "/completions", envelope | {"provider_request": inner | {"top_p": 0.5}})
    assert (reply.status, len(app.calls)) == ((400, 1) if bound else (200, 2))
    if bound:
        assert (reply.headers["x-surface-error"], "(at /provider_request/top_p)" in reply.json["message"]) == (Code.UNSUPPORTED_REQUEST, True)
