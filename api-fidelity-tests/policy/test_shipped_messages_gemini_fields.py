"""The shipped policies of Messages, Gemini and Zed know every field that the official SDKs can send."""

from __future__ import annotations

import ast
import inspect
import typing

import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_count_tokens_params as beta_count_tokens_params
from anthropic.types.beta import message_create_params as beta_create_params
from google.genai import models as gemini_models

from asgi_surface.codecs.gemini import fields as gemini
from asgi_surface.codecs.gemini.request import canonical
from asgi_surface.codecs.messages import fields as messages
from asgi_surface.codecs.zed import fields as zed
from asgi_surface.surfaces import CARRIES, GEMINI, MESSAGES, Feature

# The SDK sends these three as headers (anthropic-beta, anthropic-user-profile-id, anthropic-workspace-id), never in the body.
HEADERS = {"betas", "user_profile_id", "workspace_id"}

ANTHROPIC = [
    message_create_params.MessageCreateParamsNonStreaming,
    message_create_params.MessageCreateParamsStreaming,
    beta_create_params.MessageCreateParamsNonStreaming,
    beta_create_params.MessageCreateParamsStreaming,
    message_count_tokens_params.MessageCountTokensParams,
    beta_count_tokens_params.MessageCountTokensParams,
]


def known(module):
    return module.POLICY.fields | set(module.POLICY.guarded) | module.COUNT_FIELDS


@pytest.mark.parametrize("params", ANTHROPIC, ids=lambda params: f"{params.__module__.rpartition('types.')[2]}.{params.__name__}")
def test_every_field_of_the_anthropic_sdk_is_known(params):
    sent = set(typing.get_type_hints(params)) - HEADERS
    assert {"model", "messages"} <= sent
    assert sent - known(messages) == set()


def written(converter, target):
    """The member names that a converter of google-genai sets on one of its objects: `setv(target, ['name', …], …)`."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(converter))) if isinstance(node, ast.Call)]
    return {
        ast.literal_eval(call.args[1])[0] for call in calls if getattr(call.func, "id", "") == "setv" and getattr(call.args[0], "id", "") == target
    }


@pytest.mark.parametrize(
    ("converter", "target"),
    [
        ("_GenerateContentParameters_to_mldev", "to_object"),
        ("_GenerateContentConfig_to_mldev", "parent_object"),
        ("_CountTokensParameters_to_mldev", "to_object"),
    ],
)
def test_every_field_of_the_google_sdk_is_known(converter, target):
    sent = written(getattr(gemini_models, converter), target) - {"_url"}  # the path's
    assert sent & {"contents", "tools"}
    assert sent - known(gemini) == set()


def test_zed_envelopes_of_all_releases_are_known():
    assert known(zed) == {"thread_id", "prompt_id", "provider", "model", "provider_request", "intent", "mode"}


@pytest.mark.parametrize("module", [messages, gemini, zed], ids=lambda module: module.POLICY.name)
def test_a_policy_lets_through_what_its_surface_requires(module):
    policy = module.POLICY
    assert policy.fields >= module.REQUIRED
    assert not policy.fields & set(policy.guarded)
    assert not policy.force_without
    assert all(b"null" in guard.harmless for guard in policy.guarded.values())


def test_the_names_of_the_policies():
    assert [module.POLICY.name for module in (messages, gemini, zed)] == ["anthropic-messages-default", "gemini-default", "zed-default"]


def test_gemini_names_are_in_camel_case():
    assert {name for name in known(gemini) if canonical(name) != name} == set()


@pytest.mark.parametrize(("module", "surface"), [(messages, MESSAGES), (gemini, GEMINI)], ids=lambda value: getattr(value, "__name__", value))
def test_a_guard_can_be_met_or_says_that_it_cannot(module, surface):
    assert {guard.feature for guard in module.POLICY.guarded.values()} <= CARRIES[surface] | {None}


@pytest.mark.parametrize(
    ("module", "field", "feature", "harmless"),
    [
        (messages, "billing_policy", None, (b"null",)),
        (messages, "container", Feature.HOSTED_TOOLS, (b"null",)),
        (messages, "diagnostics", Feature.PROMPT_CACHE, (b"null",)),
        (messages, "fallbacks", None, (b"null", b"[]", b'"default"')),
        (messages, "mcp_servers", Feature.HOSTED_TOOLS, (b"null", b"[]")),
        (messages, "thread", None, (b"null",)),
        (gemini, "cachedContent", Feature.PROMPT_CACHE, (b"null",)),
        (gemini, "model", None, (b"null",)),
        (gemini, "store", None, (b"null", b"false")),
    ],
)
def test_fields_with_effects_at_the_server_are_guarded(module, field, feature, harmless):
    guard = module.POLICY.guarded[field]
    assert (guard.feature, guard.harmless) == (feature, harmless)
