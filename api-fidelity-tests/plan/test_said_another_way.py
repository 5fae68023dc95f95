"""What a conversion says in another place, under another name or by another word is named in the plan, at the client's pointer."""

from __future__ import annotations

import json

import pytest

from asgi_surface.planner import plan

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"
FEATURES = ["streaming", "tools", "parallel-tools", "reasoning", "images", "files", "structured-output"]
TOOL = {"name": "f", "input_schema": {"type": "object"}}
LONG = "i" * 65


def block(kind, **members):
    return {"type": kind, **members}


def text(words="words"):
    return block("text", text=words)


def use(name="f", identity="t"):
    return block("tool_use", id=identity, name=name, input={})


def result(content="found", identity="t"):
    return block("tool_result", tool_use_id=identity, content=content)


IMAGE = block("image", source={"type": "base64", "media_type": "image/png", "data": "AA=="})


def talk(*turns, **more):
    """A Messages request whose turns alternate, the user's first."""
    roles = ("user", "assistant")
    return {"max_tokens": 2048, "messages": [{"role": roles[at % 2], "content": turn} for at, turn in enumerate(turns)], "tools": [TOOL], **more}


def chat(*parts, **more):
    return {"messages": [{"role": "user", "content": [text("hi"), *parts]}], **more}


def function(name):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


CALLED = "/messages/1/content/0"  # without a token of Gemini's own, a call goes there under a stand-in
DATA = {"file_data": "data:application/pdf;base64,AA=="}
ROWS = [
    # a result behind words is said before them; in its place on Gemini
    (MESSAGES, talk("hi", [use()], [text(), result()]), {CHAT: ["/messages/2/content/1"], RESPONSES: ["/messages/2/content/1"], GEMINI: [CALLED]}),
    (MESSAGES, talk("hi", [use()], [result(), text()]), {CHAT: [], RESPONSES: [], GEMINI: [CALLED]}),
    # Chat says words before calls
    (MESSAGES, talk("hi", [use(), text()], [result()]), {CHAT: ["/messages/1/content/1"], RESPONSES: [], GEMINI: [CALLED]}),
    # Gemini has one text for a result, and media behind it
    (MESSAGES, talk("hi", [use()], [result([text(), text()])]), {RESPONSES: [], GEMINI: [CALLED, "/messages/2/content/0"]}),
    (MESSAGES, talk("hi", [use()], [result([IMAGE, text()])]), {RESPONSES: [], GEMINI: [CALLED, "/messages/2/content/0"]}),
    (MESSAGES, talk("hi", [use()], [result([text(), IMAGE])]), {RESPONSES: [], GEMINI: [CALLED]}),
    # an id that is too long for the surface
    (MESSAGES, talk("hi", [use(identity=LONG)], [result(identity=LONG)]), {CHAT: [], RESPONSES: ["/messages/1/content/0"], GEMINI: [CALLED]}),
    # a word or a budget that cannot stand beside the other
    (
        MESSAGES,
        talk("hi", thinking={"type": "enabled", "budget_tokens": 1024}, output_config={"effort": "low"}),
        {CHAT: ["/thinking"], RESPONSES: ["/thinking"], GEMINI: ["/thinking"]},
    ),
    (
        MESSAGES,
        talk("hi", thinking={"type": "disabled"}, output_config={"effort": "low"}),
        {CHAT: ["/thinking"], RESPONSES: ["/thinking"], GEMINI: ["/thinking"]},
    ),
    (CHAT, chat(tools=[function("1st")]), {GEMINI: ["/tools/0"], MESSAGES: [], RESPONSES: []}),
    (CHAT, chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}]), {MESSAGES: ["/tools/0"], GEMINI: []}),
    (
        CHAT,
        chat(
            tools=[function("f"), function("g")],
            tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
        ),
        {GEMINI: ["/tool_choice"]},
    ),
    (CHAT, chat(block("file", file=DATA)), {RESPONSES: ["/messages/0/content/1"], MESSAGES: []}),
    (CHAT, chat(block("file", file=DATA | {"filename": "a.pdf"})), {RESPONSES: [], MESSAGES: []}),
    (CHAT, chat(block("file", file={"file_id": "f", "filename": "a.pdf"})), {RESPONSES: ["/messages/0/content/1"]}),
    (CHAT, chat(block("file", file={"file_id": "f"})), {RESPONSES: []}),
]


@pytest.mark.parametrize(
    ("client", "body", "surface", "places"),
    [(client, body, surface, places) for client, body, found in ROWS for surface, places in found.items()],
)
def test_what_is_said_another_way_is_named_at_its_place(catalog, client, body, surface, places):
    told = plan(client, json.dumps({"model": "m", **body}).encode(), catalog(surface, features=FEATURES))
    assert list(told.emulated) == places


def test_gemini_is_asked_for_the_log_probabilities_that_are_counted(gateway, upstream, ask):
    answered = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    app = upstream([json.dumps(answered).encode()])
    reply = ask(gateway(app, GEMINI, features=[*FEATURES, "logprobs"]), "/v1/responses", {"model": "m", "input": "hi", "top_logprobs": 2})
    assert (reply.status, app.calls[0].json["generationConfig"]) == (200, {"logprobs": 2, "responseLogprobs": True})
