"""Which surface a path means, and that nothing else means one."""

from __future__ import annotations

import pytest

from asgi_surface.layers.detection import path_of
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, ZED, Endpoint, Operation, find

GEN, COUNT, LIST, GET = Operation.GENERATE, Operation.COUNT_TOKENS, Operation.LIST_MODELS, Operation.GET_MODEL


@pytest.mark.parametrize(
    ("path", "names", "endpoint", "method"),
    [
        ("/v1/chat/completions", (), Endpoint(CHAT, GEN), "POST"),
        ("/chat/completions/", (), Endpoint(CHAT, GEN), "POST"),
        ("/v1/responses", (), Endpoint(RESPONSES, GEN), "POST"),
        ("/responses", (), Endpoint(RESPONSES, GEN), "POST"),
        ("/v1/messages", (), Endpoint(MESSAGES, GEN), "POST"),
        ("/messages", (), Endpoint(MESSAGES, GEN), "POST"),
        ("/v1/messages/count_tokens/", (), Endpoint(MESSAGES, COUNT), "POST"),
        ("/v1beta/models/m:generateContent", (), Endpoint(GEMINI, GEN, "m", False), "POST"),
        ("/v1beta1/models/m:streamGenerateContent", (), Endpoint(GEMINI, GEN, "m", True), "POST"),
        ("/v1/models/m:countTokens", (), Endpoint(GEMINI, COUNT, "m", False), "POST"),
        ("/v1beta/models/..%2F..%2Ffiles%2Fx:generateContent", (), Endpoint(GEMINI, GEN, "../../files/x", False), "POST"),
        ("/v1/models", (), Endpoint(CHAT, LIST), "GET"),
        ("/models/", (), Endpoint(CHAT, LIST), "GET"),
        ("/v1/models", ("anthropic-version",), Endpoint(MESSAGES, LIST), "GET"),
        ("/v1/models", ("anthropic-version", "x-goog-api-key"), Endpoint(GEMINI, LIST), "GET"),
        ("/v1beta/models", (), Endpoint(GEMINI, LIST), "GET"),
        ("/v1/models/openai:gpt-5", (), Endpoint(CHAT, GET, "openai:gpt-5"), "GET"),
        ("/v1/models/a%2Fb", ("anthropic-version",), Endpoint(MESSAGES, GET, "a/b"), "GET"),
        ("/v1beta/models/m", (), Endpoint(GEMINI, GET, "m"), "GET"),
        ("/completions", (), Endpoint(ZED, GEN), "POST"),
        ("/count_tokens/", (), Endpoint(ZED, COUNT), "POST"),
        ("/models", ("x-zed-client-supports-x-ai",), Endpoint(ZED, LIST), "GET"),
        ("/v1/models", ("x-zed-version",), Endpoint(CHAT, LIST), "GET"),
    ],
)
def test_paths_of_surfaces(path, names, endpoint, method):
    assert find(path, frozenset(names), short=True) == (endpoint, method)


@pytest.mark.parametrize(
    "path",
    [
        "/", "", "/v1", "/V1/chat/completions", "//v1/chat/completions", "/v1/chat/completions//", "/v1/chat/completions;x=1", "/v1/../v1/messages",
        "/v1/%6Dessages", "http://evil/v1/messages", "/v1/messages/batches", "/v1/completions", "/v1beta/models/m:embedContent", "/v1/models/",
    ],
)  # fmt: skip
def test_no_other_path_is_a_surface(path):
    found = find(path, frozenset(), short=True)
    assert found is None or path == "/v1/models/"


@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages", "/models", "/completions", "/count_tokens"])
def test_short_paths_can_be_left_to_the_host(path):
    assert find(path, frozenset(), short=False) is None


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ({"path": "/v1/messages"}, "/v1/messages"),
        ({"path": "/v1/models/a b:generateContent"}, "/v1/models/a%20b:generateContent"),
        ({"path": "/x", "raw_path": b"/v1/messages?beta=true"}, "/v1/messages"),
        ({"path": "/llm/v1/messages", "raw_path": b"/llm/v1/messages", "root_path": "/llm"}, "/v1/messages"),
        ({"path": "/v1/messages", "raw_path": b"/v1/messages", "root_path": "/llm"}, "/v1/messages"),
        ({"path": "/llmv1", "raw_path": b"/llmv1", "root_path": "/llm"}, "/llmv1"),
    ],
)
def test_the_path_below_the_root(scope, path):
    assert path_of(scope) == path
