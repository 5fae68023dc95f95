"""Whatever stands wherever in a body, planning it ends in a body for the upstream or in a `RequestError`: nothing else ever comes out.

Every place of a rich request of each surface is given hostile values drawn by a seed, and pairs of places two at once.
"""

from __future__ import annotations

import copy
import json
import random

import pytest
from msgspec import structs

from asgi_surface import inbound
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Dialect, Target
from asgi_surface.conversions import foreign_seals, unsealed
from asgi_surface.converters import PAIRS, convert
from asgi_surface.errors import RequestError
from asgi_surface.members import encode
from asgi_surface.policy import gate, shipped
from asgi_surface.profiles import KNOWN
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature, Operation

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
PIXEL = "data:image/png;base64,iVBORw0KGgo="

SAMPLES = {
    CHAT: {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "d", "name": "n"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "f.pdf"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "t"}, {"type": "refusal", "refusal": "r"}],
                "reasoning_details": [{"type": "reasoning.text", "text": "t"}],
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                        "extra_content": {"google": {"thought_signature": "s"}},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "i"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "o"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "o"}]},
            {"role": "assistant", "content": None, "function_call": {"name": "h", "arguments": "{}"}},
            {"role": "function", "name": "h", "content": "o"},
            {"role": "user", "content": "u"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}},
            {
                "type": "custom",
                "custom": {"name": "g", "format": {"type": "grammar", "grammar": {"definition": "x", "syntax": "regex"}}},
            },
        ],
        "functions": [{"name": "h", "parameters": SCHEMA}],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
        "response_format": {"type": "json_schema", "json_schema": {"name": "j", "schema": SCHEMA, "strict": True}},
        "max_completion_tokens": 9000,
        "temperature": 0.5,
        "top_k": 3,
        "seed": 1,
        "stop": ["s"],
        "n": 2,
        "logit_bias": {"1": 2},
        "metadata": {"a": "b"},
        "reasoning_effort": "low",
        "thinking_budget": 2048,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "chat_template_kwargs": {"enable_thinking": True},
        "user": "u",
        "service_tier": "auto",
        "stream_options": {"include_usage": True},
    },
    RESPONSES: {
        "model": "m",
        "instructions": "i",
        "input": [
            {"role": "developer", "content": "d"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "t"},
                    {"type": "input_image", "image_url": PIXEL, "detail": "low"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg==", "filename": "f.pdf"},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                ],
            },
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "s"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}', "namespace": "ns"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "i"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "o"}]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "o"},
            {
                "type": "message",
                "role": "assistant",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "t", "annotations": []}, {"type": "refusal", "refusal": "r"}],
            },
            {"type": "item_reference", "id": "x"},
            {"role": "user", "content": "u"},
        ],
        "tools": [
            {
                "type": "namespace",
                "name": "ns",
                "description": "d",
                "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
            },
            {"type": "custom", "name": "g", "format": {"type": "grammar", "definition": "x", "syntax": "lark"}},
            {"type": "web_search", "filters": {"allowed_domains": ["a"]}},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "g"}]},
        "text": {"format": {"type": "json_schema", "name": "j", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 9000,
        "temperature": 0.5,
        "top_logprobs": 2,
        "metadata": {"a": "b"},
        "user": "u",
        "store": False,
        "prompt_cache_options": {"ttl": "1h"},
        "stream_options": {"include_obfuscation": True},
    },
    MESSAGES: {
        "model": "m",
        "max_tokens": 9000,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "w"}, "title": "f.txt"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "s"},
                    {"type": "text", "text": "t", "citations": [{"type": "char_location"}]},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
                    {"type": "server_tool_use", "id": "c2", "name": "web_search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "o"}], "is_error": True},
                    {"type": "text", "text": "u"},
                ],
            },
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
        ],
        "tools": [
            {"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True, "allowed_callers": ["direct"]},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": "u"},
        "service_tier": "standard_only",
        "temperature": 0.5,
        "top_k": 3,
        "stop_sequences": ["s"],
    },
    GEMINI: {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "t"},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/f.pdf"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "t", "thought": True, "thoughtSignature": "s"},
                    {"text": "t"},
                    {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"},
                    {"executableCode": {"language": "PYTHON", "code": "c"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "f",
                            "response": {"output": "o"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}],
                        }
                    }
                ],
            },
            {"role": "user", "parts": [{"text": "u"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "description": "d", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "minLength": "1"}}}},
                    {"name": "g", "parametersJsonSchema": SCHEMA},
                ]
            },
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "generationConfig": {
            "temperature": 0.5,
            "topK": 3,
            "maxOutputTokens": 9000,
            "stopSequences": ["s"],
            "candidateCount": 2,
            "seed": 1,
            "responseLogprobs": True,
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT", "anyOf": [{"type": "STRING", "nullable": True}]},
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048},
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
        },
        "serviceTier": "flex",
        "store": False,
        "labels": {"a": "b"},
    },
}

WORDS = r"""
null true 0 -1 1e400 -1e400 0.1 "" "x" "auto" "\ud800" "\udc00\ud800" "a\u0000b" [] {} [[]] [null] [{}] [1e400] {"type":"x"} {"type":1}
{"\ud800":1} {"a":1e400} {"a`b":1} [{"type":null}] {"type":{"type":"text"}}
"""
DEEP = ("[" * 900 + "]" * 900, "[" * 3000 + "]" * 3000, '{"type":"object","items":' * 900 + "{}" + "}" * 900)
HOSTILE = (*WORDS.split(), "9" * 20, "9" * 400, *DEEP)
"""JSON that a decoder, a table or a recursion may trip over."""

MARK = "\x01hostile\x01"
POLICIES = {surface: shipped(surface, codec.policy) for surface, codec in CODECS.items()}
DIALECTS = (Dialect(prefill=True, remote_images=True), Dialect(prefill=True, remote_images=True, reasoning_style="budget"))


def places(value, path=()):
    """The path of every value in a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def put(document, path, text):
    """The document's JSON with the raw `text` at a path."""
    if not path:
        return text
    changed = copy.deepcopy(document)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = MARK
    return json.dumps(changed).replace(json.dumps(MARK), text)


def attempts(surface, body, dialect):
    """Every step that planning takes for a body, each on its own."""
    codec = CODECS[surface]
    read = inbound.read(codec, Operation.GENERATE, body, model="m", stream=False)
    yield lambda: codec.needs(read.members, False)
    yield lambda: gate(read.members, POLICIES[surface], codec, frozenset())
    lifted = codec.lift(read.members, False)
    for target in (pair.target for pair in PAIRS.values() if pair.source == surface):
        yield lambda target=target: said(codec, lifted, CODECS[target], dialect)


def said(codec, lifted, target, dialect):
    """The body for an upstream, without all that may be tolerated, as the upstream's own surface reads it."""
    upstream = Target(model="m", dialect=dialect, seal_domain="d", features=frozenset(Feature) - {Feature.CUSTOM_TOOLS})
    foreign = {mention.pointer for mention in foreign_seals(lifted.request, upstream, target)}
    bare = structs.replace(lifted, request=unsealed(lifted.request, foreign))
    lowered = convert(codec, bare, target, upstream, KNOWN).lowered
    target.needs(lowered.members, False)
    gate(lowered.members, POLICIES[target.surface], target, frozenset(Feature))
    json.loads(encode(lowered.members))


def refusals(surface, text, dialect):
    """What the steps refuse, as the client is told it. Anything but a `RequestError` comes out of here."""
    found = []
    try:
        for attempt in attempts(surface, text.encode(), dialect):
            try:
                attempt()
            except RequestError as error:
                found.append(error)
    except RequestError as error:
        found.append(error)
    return [json.loads(CODECS[surface].error(error, "id")) for error in found]


@pytest.mark.parametrize("surface", SAMPLES)
def test_the_sample_itself_converts_to_every_other_surface(surface):
    assert refusals(surface, json.dumps(SAMPLES[surface]), DIALECTS[0]) == []


@pytest.mark.parametrize("surface", SAMPLES)
def test_a_hostile_value_anywhere_is_converted_or_refused(surface):
    dice = random.Random(7)
    bodies = [put(SAMPLES[surface], path, text) for path in places(SAMPLES[surface]) for text in dice.sample(HOSTILE, 5)]
    told = [refusals(surface, body, DIALECTS[0]) for body in bodies]
    assert [] in told
    assert any(told)


def test_a_limit_beyond_all_numbers_is_refused_where_it_must_be_compared():
    for surface, place in ((CHAT, "max_completion_tokens"), (RESPONSES, "max_output_tokens")):
        told = refusals(surface, put(SAMPLES[surface], (place,), "9" * 400), DIALECTS[0])
        assert [error["error"]["param"] for error in told] == [place]  # Messages alone compares it, with the thinking budget


@pytest.mark.parametrize("surface", SAMPLES)
def test_so_are_two_at_once(surface):
    dice = random.Random(3)
    once = [put(SAMPLES[surface], path, text) for path in places(SAMPLES[surface]) if path for text in HOSTILE[:3]]
    for text in dice.sample(once, 100):
        changed = json.loads(text)
        refusals(surface, put(changed, dice.choice(list(places(changed))), dice.choice(HOSTILE)), DIALECTS[1])
