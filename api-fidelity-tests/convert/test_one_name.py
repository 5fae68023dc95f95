"""Tools that would be one tool upstream are refused at the second of them; those that only look alike keep apart, and come back as the client's."""

from __future__ import annotations

import json

import pytest

from asgi_surface import plan
from asgi_surface.codecs.base import Alias
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import received
from asgi_surface.planner import decide
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Operation, Surface

FUNCTION = {"type": "function", "function": {"name": "f"}}
CUSTOM = {"type": "custom", "custom": {"name": "f"}}
FLAT, FREE = {"type": "function", "name": "f"}, {"type": "custom", "name": "f"}
SPACE = {"type": "namespace", "name": "n", "description": "", "tools": [FLAT, FREE]}
NAMES = {
    CHAT: lambda body: [tool["function"]["name"] for tool in body["tools"]],
    MESSAGES: lambda body: [tool["name"] for tool in body["tools"]],
    GEMINI: lambda body: [tool["name"] for tool in body["tools"][0]["functionDeclarations"]],
}
BODIES = {
    "chat": (CHAT, {"messages": [{"role": "user", "content": "hi"}], "tools": [FUNCTION, CUSTOM]}, "/tools/1"),
    "chat, free text first": (CHAT, {"messages": [{"role": "user", "content": "hi"}], "tools": [CUSTOM, FUNCTION]}, "/tools/1"),
    "chat, functions": (CHAT, {"messages": [{"role": "user", "content": "hi"}], "tools": [CUSTOM], "functions": [{"name": "f"}]}, "/functions/0"),
    "responses": (RESPONSES, {"input": "hi", "tools": [FLAT, FREE]}, "/tools/1"),
    "one namespace": (RESPONSES, {"input": "hi", "tools": [SPACE]}, "/tools/0/tools/1"),
}


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize(("surface", "body", "pointer"), BODIES.values(), ids=BODIES)
def test_a_tool_of_another_kind_under_one_name_is_refused(catalog, surface, upstream, body, pointer):
    if surface != upstream:
        with pytest.raises(RequestError) as caught:
            plan(Surface(surface), json.dumps({"model": "m", **body}).encode(), catalog(upstream))
        assert (caught.value.code, caught.value.pointer) == (Code.UNREPRESENTABLE, pointer)


LOOKALIKES = [
    {"type": "function", "name": "n__f"},
    {"type": "namespace", "name": "n", "description": "", "tools": [FLAT]},
    {"type": "namespace", "name": "n__f", "description": "", "tools": [FREE]},
    FLAT,
]


@pytest.mark.parametrize(("upstream", "names"), NAMES.items())
def test_tools_that_only_look_alike_keep_apart(catalog, upstream, names):
    body = json.dumps({"model": "m", "input": "hi", "tools": LOOKALIKES}).encode()
    draft = decide(received(RESPONSES, Operation.GENERATE, body), catalog(upstream)).draft
    said = names(json.loads(draft.body))
    assert len(set(said)) == len(LOOKALIKES)
    known = [draft.aliases.get(name, Alias(name)) for name in said]
    assert [(alias.namespace, alias.name, alias.form) for alias in known] == [
        (None, "n__f", "function"),
        ("n", "f", "function"),
        ("n__f", "f", "custom"),
        (None, "f", "function"),
    ]
