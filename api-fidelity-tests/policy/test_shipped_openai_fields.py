"""Every field of the official SDK's parameters is either allowed or guarded: a new SDK release names what has not been looked at."""

from __future__ import annotations

import pytest
from openai.types.chat import completion_create_params as chat_sdk
from openai.types.responses import response_create_params as responses_sdk

from asgi_surface.codecs.chat import fields as chat
from asgi_surface.codecs.responses import fields as responses
from asgi_surface.surfaces import CARRIES, CHAT, RESPONSES, Feature


def _required(params):
    return {name for name, hint in params.__annotations__.items() if hint.__forward_arg__.startswith("Required[")}


CHAT_FIELDS = frozenset().union(*(params.__annotations__ for params in chat_sdk.CompletionCreateParams.__args__))
RESPONSES_FIELDS = frozenset().union(*(params.__annotations__ for params in responses_sdk.ResponseCreateParams.__args__))


@pytest.mark.parametrize(
    ("codec", "sdk", "name", "some"),
    [
        (chat, CHAT_FIELDS, "openai-chat-default", {"messages", "stream", "store"}),
        (responses, RESPONSES_FIELDS, "openai-responses-default", {"input", "stream", "background"}),
    ],
)
def test_every_field_of_the_sdk_was_looked_at(codec, sdk, name, some):
    assert some <= sdk
    assert sdk - codec.POLICY.fields - set(codec.POLICY.guarded) == set()
    assert codec.POLICY.name == name


@pytest.mark.parametrize("codec", [chat, responses])
def test_a_field_is_allowed_or_guarded_and_what_is_required_is_allowed(codec):
    assert codec.POLICY.fields & set(codec.POLICY.guarded) == set()
    assert codec.POLICY.fields >= codec.REQUIRED
    assert codec.POLICY.force_without.keys() <= codec.POLICY.fields
    assert not codec.COUNT_FIELDS


def test_what_the_sdk_requires_is_required():
    assert _required(chat_sdk.CompletionCreateParamsBase) == chat.REQUIRED
    assert _required(responses_sdk.ResponseCreateParamsBase) == set()  # see the docstring of its REQUIRED


@pytest.mark.parametrize(
    ("codec", "surface", "extra"),
    [
        # Fields that other surfaces, engines or older APIs have with effects beyond this one answer.
        (chat, CHAT, {"chat_template", "plugins", "models", "provider", "kv_transfer_params", "lora_path", "previous_response_id"}),
        (responses, RESPONSES, {"mcp_servers", "container", "cachedContent"}),
    ],
)
def test_what_reaches_further_is_not_allowed(codec, surface, extra):
    assert extra & (codec.POLICY.fields | set(codec.POLICY.guarded)) == set()
    unguardable = {guard.feature for guard in codec.POLICY.guarded.values()} - CARRIES[surface] - {None}
    # A Chat binding can declare no stored-responses, so only an operator's own policy lets `store: true` out.
    assert unguardable == ({Feature.STORED_RESPONSES} if surface is CHAT else set())
