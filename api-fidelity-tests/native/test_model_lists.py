"""The model list in the shape of each surface; the official SDKs judge, and page through it."""

from __future__ import annotations

import json
from importlib import import_module

import anthropic
import google.genai
import httpx2
import openai
import pytest
from google.genai import types as google_types

from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.errors import Code, RequestError

MODELS = {surface: import_module(f"asgi_surface.codecs.{surface}.models") for surface in ("chat", "responses", "messages", "gemini")}
NAMES = tuple(f"model-{number}" for number in range(7))
ENTRIES = tuple(ModelEntry(name, "acme", ("generate", "count-tokens")) for name in NAMES)


def served(surface):
    """A client that answers with the surface's list or entry, by the paging its SDK asks for."""

    def answer(request):
        if request.url.path.endswith("/models"):
            said = request.url.params
            limit = said.get("limit", said.get("pageSize"))
            query = ListQuery(limit and int(limit), said.get("after_id", said.get("pageToken")), said.get("before_id"))
            return httpx2.Response(200, content=MODELS[surface].models(ENTRIES, query), headers={"content-type": "application/json"})
        return httpx2.Response(200, content=MODELS[surface].model(ENTRIES[2]), headers={"content-type": "application/json"})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def page(surface, **query):
    return json.loads(MODELS[surface].models(ENTRIES, ListQuery(**query)))


@pytest.mark.parametrize("surface", ["chat", "responses"])
def test_openai_reads_the_list(surface):
    with openai.OpenAI(api_key="k", max_retries=0, http_client=served(surface), _strict_response_validation=True) as sdk:
        models = list(sdk.models.list())
        assert [model.id for model in models] == list(NAMES)
        assert sdk.models.retrieve(NAMES[2]) == models[2]
    assert models[2].model_dump(exclude_unset=True) == {"id": "model-2", "object": "model", "created": 0, "owned_by": "acme"}


@pytest.mark.parametrize("limit", [1, 3, 7, 20])
def test_anthropic_pages_through_the_list(limit):
    with anthropic.Anthropic(api_key="k", max_retries=0, http_client=served("messages"), _strict_response_validation=True) as sdk:
        models = list(sdk.models.list(limit=limit))
        back = list(sdk.models.list(limit=limit, before_id=NAMES[5]))
        assert sdk.models.retrieve(NAMES[2]) == models[2]
    assert [model.id for model in models] == list(NAMES)
    assert sorted(model.id for model in back) == list(NAMES[:5])
    assert (models[0].display_name, models[0].created_at.timestamp(), models[0].lifecycle) == ("model-0", 0, "active")


@pytest.mark.parametrize(
    ("query", "names", "more"),
    [
        ({}, NAMES, False),
        ({"limit": 2}, NAMES[:2], True),
        ({"limit": 2, "after": "model-4"}, NAMES[5:], False),
        ({"limit": 2, "before": "model-4"}, NAMES[2:4], True),
        ({"after": "model-1", "before": "model-4"}, NAMES[2:4], False),
        ({"after": "model-6"}, (), False),
    ],
)
def test_anthropics_pages(query, names, more):
    said = page("messages", **query)
    assert ([model["id"] for model in said["data"]], said["has_more"]) == (list(names), more)
    assert (said["first_id"], said["last_id"]) == ((names[0], names[-1]) if names else (None, None))


@pytest.mark.parametrize("size", [1, 3, 7, 2000, None])
def test_google_pages_through_the_list(size):
    options = google_types.HttpOptions(httpx_client=served("gemini"))
    with google.genai.Client(api_key="k", http_options=options) as sdk:
        models = list(sdk.models.list(config={"page_size": size}))
        assert sdk.models.get(model=NAMES[2]) == models[2]
    assert [(model.name, model.display_name) for model in models] == [(f"models/{name}", name) for name in NAMES]
    assert models[0].supported_actions == ["generateContent", "countTokens"]


def test_googles_last_page_has_no_token():
    assert page("gemini", limit=6)["nextPageToken"] == "model-5"
    assert "nextPageToken" not in page("gemini", limit=7)


def test_an_operation_that_google_has_no_method_for_is_left_out():
    said = json.loads(MODELS["gemini"].model(ModelEntry("m", "acme", ("generate", "dream"))))
    assert said == {"name": "models/m", "displayName": "m", "supportedGenerationMethods": ["generateContent"]}


@pytest.mark.parametrize(
    ("surface", "query"),
    [
        ("messages", {"limit": 0}),
        ("messages", {"limit": 1001}),
        ("messages", {"after": "gone"}),
        ("messages", {"before": "gone"}),
        ("gemini", {"limit": -1}),
        ("gemini", {"after": "gone"}),
    ],
)
def test_a_page_that_is_not_there_is_refused(surface, query):
    with pytest.raises(RequestError) as raised:
        page(surface, **query)
    assert raised.value.code is Code.FIELD_REJECTED
