"""What Messages and Gemini requests ask of an upstream, construct by construct: the exact features, each with its pointer."""

from __future__ import annotations

import json
import typing
from functools import reduce

import pytest
from anthropic.types import ContentBlockParam, ToolUnionParam
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam
from anthropic.types.beta.beta_tool_result_block_param import Content as BetaToolResultContent
from google.genai import types as gemini_types
from typing_extensions import is_typeddict  # the SDK's are not those of typing

from asgi_surface.codecs.gemini import request as gemini
from asgi_surface.codecs.messages import request as messages
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import parse


def needs(codec, body, *, stream=False):
    found = codec.needs(parse(json.dumps(body).encode()), stream)
    assert len({demand.feature for demand in found.demands}) == len(found.demands)
    return {demand.feature.value: demand.pointer for demand in found.demands}


def said(*blocks, role="user"):
    return {"messages": [{"role": role, "content": list(blocks)}]}


def parts(*parts, role="user"):
    return {"contents": [{"role": role, "parts": list(parts)}]}


def config(**members):
    return {"generationConfig": members}


BLOCK = "/messages/0/content/0"
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}

MESSAGES = {
    "plain": ({"messages": [{"role": "user", "content": "hi"}], "system": "s", "temperature": 1}, {}),
    "nothing": ({}, {}),
    "text": (said({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}), {}),
    "nulls": ({"tools": None, "tool_choice": None, "thinking": None, "output_config": None, "output_format": None, "container": None}, {}),
    "empties": ({"tools": [], "mcp_servers": [], "output_config": {}, "tool_choice": {"type": "auto"}}, {}),
    "untyped tool": ({"tools": [{"name": "f", "input_schema": {}}]}, {"tools": "/tools"}),
    "custom tool": ({"tools": [{"type": "custom", "name": "f"}]}, {"tools": "/tools"}),
    "web search": ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, {"hosted-tools": "/tools/0"}),
    "client-run bash": ({"tools": [{"name": "f"}, {"type": "bash_20250124", "name": "bash"}]}, {"tools": "/tools", "hosted-tools": "/tools/1"}),
    "mcp toolset": ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}]}, {"hosted-tools": "/tools/0"}),
    "mcp servers": ({"mcp_servers": [{"type": "url", "url": "https://mcp.test", "name": "s"}]}, {"hosted-tools": "/mcp_servers"}),
    "container id": ({"container": "c1"}, {"hosted-tools": "/container"}),
    "container skills": ({"container": {"skills": []}}, {"hosted-tools": "/container"}),
    "parallel": ({"tool_choice": {"disable_parallel_tool_use": False}}, {"parallel-tools": "/tool_choice/disable_parallel_tool_use"}),
    "not parallel": ({"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, {}),
    "thinking": ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"reasoning": "/thinking"}),
    "adaptive": ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, {"reasoning": "/thinking"}),
    "between tools": ({"thinking": {"type": "between_tools"}}, {"reasoning": "/thinking"}),
    "no thinking": ({"thinking": {"type": "disabled"}}, {}),
    "effort": ({"output_config": {"effort": "low"}}, {"reasoning": "/output_config/effort"}),
    "format": ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, {"structured-output": "/output_config/format"}),
    "older format": ({"output_format": {"type": "json_schema", "schema": {}}}, {"structured-output": "/output_format"}),
    "hints": ({"metadata": {"user_id": "u"}, "service_tier": "auto", "context_management": {"edits": []}}, {}),
    "call": (said(CALL, role="assistant"), {"tools": BLOCK}),
    "two calls": (
        said({"type": "text", "text": "a"}, CALL, CALL, role="assistant"),
        {"parallel-tools": "/messages/0/content/2", "tools": "/messages/0/content/1"},
    ),
    "one call a turn": ({"messages": [{"role": "assistant", "content": [CALL]}] * 2}, {"tools": BLOCK}),
    "result": (said({"type": "tool_result", "tool_use_id": "c", "content": "r"}), {"tools": BLOCK}),
    "empty result": (said({"type": "tool_result", "tool_use_id": "c"}), {"tools": BLOCK}),
    "image result": (
        said({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}, IMAGE]}),
        {"tools": BLOCK, "images": f"{BLOCK}/content/1"},
    ),
    "image": (said(IMAGE), {"images": BLOCK}),
    "image URL": (said({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}), {"images": BLOCK}),
    "stored image": (said({"type": "image", "source": {"type": "file", "file_id": "f"}}), {"images": BLOCK, "files": f"{BLOCK}/source/file_id"}),
    "document": (said(PDF), {"files": BLOCK}),
    "document with an image": (
        said({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "t"}, IMAGE]}}),
        {"files": BLOCK, "images": f"{BLOCK}/source/content/1"},
    ),
    "image in a document in a result": (
        said({"type": "tool_result", "content": [{"type": "document", "source": {"type": "content", "content": [IMAGE]}}]}),
        {"tools": BLOCK, "files": f"{BLOCK}/content/0", "images": f"{BLOCK}/content/0/source/content/0"},
    ),
    "deeper than the wire": (said(reduce(lambda inner, _: {"type": "tool_result", "content": [inner]}, range(400), IMAGE)), {"tools": BLOCK}),
    "document of text": (said({"type": "document", "source": {"type": "content", "content": "t"}}), {"files": BLOCK}),
    "search result": (said({"type": "search_result", "source": "https://x.test", "title": "t", "content": []}), {"files": BLOCK}),
    "upload": (said({"type": "container_upload", "file_id": "f"}), {"hosted-tools": BLOCK, "files": BLOCK}),
    "hosted call": (said({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, role="assistant"), {"hosted-tools": BLOCK}),
    "hosted result": (
        said({"type": "web_search_tool_result", "content": [{"type": "web_search_result", "encrypted_content": "e"}]}),
        {"hosted-tools": BLOCK},
    ),
    "hosted error": (said({"type": "web_fetch_tool_result", "content": {"type": "web_fetch_tool_result_error"}}), {"hosted-tools": BLOCK}),
    "signed thinking": (said({"type": "thinking", "thinking": "", "signature": "c2ln"}), {"encrypted-reasoning": f"{BLOCK}/signature"}),
    "unsigned thinking": (said({"type": "thinking", "thinking": "t", "signature": ""}, role="assistant"), {"reasoning": BLOCK}),
    "redacted thinking": (said({"type": "redacted_thinking", "data": "ZA=="}, role="assistant"), {"encrypted-reasoning": f"{BLOCK}/data"}),
    "compaction": (said({"type": "compaction", "content": "s", "encrypted_content": "e"}), {"encrypted-reasoning": f"{BLOCK}/encrypted_content"}),
    "signed compaction": (said({"type": "compaction", "content": None, "signature": "c2ln"}), {"encrypted-reasoning": f"{BLOCK}/signature"}),
    "plain compaction": (said({"type": "compaction", "content": "s"}), {}),
    "system": ({"messages": [{"role": "user", "content": "u"}, {"role": "system", "content": "s"}]}, {"mid-conversation-system": "/messages/1"}),
    "system effort": (
        {"messages": [{"role": "system", "output_config": {"effort": "low"}}]},
        {"mid-conversation-system": "/messages/0", "reasoning": "/messages/0/output_config/effort"},
    ),
    "tool reference": (said({"type": "tool_addition", "tool": {"type": "tool_reference", "tool_name": "f"}}), {"tools": f"{BLOCK}/tool"}),
    "toolset removed": (said({"type": "tool_removal", "tool": {"type": "mcp_toolset_reference"}}), {"hosted-tools": f"{BLOCK}/tool"}),
    "tool defined": (said({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "f"}}}), {"tools": f"{BLOCK}/tool"}),
    "hosted defined": (
        said({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"type": "web_search_20260318"}}}),
        {"hosted-tools": f"{BLOCK}/tool"},
    ),
    "echo of a fallback": (said({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, role="assistant"), {}),
    "newer block": (said({"type": "hologram", "data": {}}), {}),
}  # fmt: skip

PART = "/contents/0/parts/0"
GEN = "/generationConfig"
THINK = f"{GEN}/thinkingConfig"

GEMINI = {
    "plain": (parts({"text": "hi"}) | {"systemInstruction": {"parts": [{"text": "s"}]}, "safetySettings": []}, {}),
    "nothing": ({}, {}),
    "count": ({"generateContentRequest": {"contents": [{"parts": [{"functionCall": {}}]}]}}, {}),
    "nulls": ({"tools": None, "generationConfig": None, "cachedContent": None, "systemInstruction": None, "contents": None}, {}),
    "empties": ({"tools": [{"functionDeclarations": []}, {"googleSearch": None}, {}], "generationConfig": {}, "contents": [{"role": "user"}]}, {}),
    "tools": ({"tools": [{"functionDeclarations": [{"name": "f"}]}]}, {"tools": "/tools/0/functionDeclarations"}),
    "snake tools": ({"tools": [{"function_declarations": [{"name": "f"}]}]}, {"tools": "/tools/0/function_declarations"}),
    "a lone tool": ({"tools": {"functionDeclarations": [{"name": "f"}]}}, {"tools": "/tools/functionDeclarations"}),
    "both": (
        {"tools": [{"functionDeclarations": [{"name": "f"}]}, {"url_context": {}, "googleSearch": {}}]},
        {"tools": "/tools/0/functionDeclarations", "hosted-tools": "/tools/1/url_context"},
    ),
    "call": (parts({"functionCall": {"name": "f", "args": {}}}, role="model"), {"tools": f"{PART}/functionCall"}),
    "two calls": (
        parts({"functionCall": {"name": "f"}}, {"text": "t"}, {"function_call": {"name": "g"}}, role="model"),
        {"parallel-tools": "/contents/0/parts/2", "tools": f"{PART}/functionCall"},
    ),
    "response": (parts({"functionResponse": {"name": "f", "response": {}}}), {"tools": f"{PART}/functionResponse"}),
    "response with media": (
        parts({"function_response": {"name": "f", "parts": [{"inline_data": {"mime_type": "image/png", "data": "AA=="}}]}}),
        {"tools": f"{PART}/function_response", "images": f"{PART}/function_response/parts/0/inline_data"},
    ),
    "signature": (parts({"text": "", "thoughtSignature": "c2ln"}), {"encrypted-reasoning": f"{PART}/thoughtSignature"}),
    "no thought": (parts({"text": "t", "thought": False, "thoughtSignature": ""}), {}),
    "thought": (parts({"text": "t", "thought": True}), {"reasoning": f"{PART}/thought"}),
    "image": (parts({"inlineData": {"mimeType": "image/png", "data": "AA=="}}), {"images": f"{PART}/inlineData"}),
    "audio": (parts({"fileData": {"mimeType": "audio/wav", "fileUri": "gs://b/a"}}), {"audio": f"{PART}/fileData"}),
    "document": (parts({"file_data": {"mime_type": "application/pdf", "file_uri": "gs://b/a"}}), {"files": f"{PART}/file_data"}),
    "video": (parts({"inlineData": {"mimeType": "video/mp4", "data": "AA=="}, "videoMetadata": {}}), {"files": f"{PART}/inlineData"}),
    "untyped file": (parts({"fileData": {"fileUri": "gs://b/a"}}), {"files": f"{PART}/fileData"}),
    "lone content and part": ({"contents": {"parts": {"inlineData": {"mimeType": "image/png"}}}}, {"images": "/contents/parts/inlineData"}),
    "instruction": ({"system_instruction": {"parts": {"inlineData": {"mimeType": "IMAGE/png"}}}}, {"images": "/system_instruction/parts/inlineData"}),
    "hosted traces": (parts({"executableCode": {"code": "1"}}, {"codeExecutionResult": {}}), {"hosted-tools": f"{PART}/executableCode"}),
    "hosted calls": (parts({"tool_call": {}}, {"toolResponse": {}}), {"hosted-tools": f"{PART}/tool_call"}),
    "budget": (config(thinkingConfig={"thinkingBudget": -1}), {"reasoning": f"{THINK}/thinkingBudget"}),
    "budget as a string": (config(thinkingConfig={"thinkingBudget": "0"}), {}),
    "no budget": (config(thinkingConfig={"thinkingBudget": 0, "includeThoughts": False}), {}),
    "level": (config(thinkingConfig={"thinkingLevel": "low"}), {"reasoning": f"{THINK}/thinkingLevel"}),
    "least level": (config(thinkingConfig={"thinkingLevel": "MINIMAL"}), {}),
    "idle": (config(responseLogprobs=False, candidateCount=1, thinkingConfig={"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}), {}),
    "snake thoughts": (
        {"generation_config": {"thinking_config": {"include_thoughts": True}}},
        {"reasoning": "/generation_config/thinking_config/include_thoughts"},
    ),
    "schema": (config(responseSchema={"type": "OBJECT"}), {"structured-output": f"{GEN}/responseSchema"}),
    "JSON schema": (config(response_json_schema={}), {"structured-output": f"{GEN}/response_json_schema"}),
    "older JSON schema": (config(_responseJsonSchema={}), {"structured-output": f"{GEN}/_responseJsonSchema"}),
    "JSON": (config(responseMimeType="application/json"), {"structured-output": f"{GEN}/responseMimeType"}),
    "enum": (config(responseMimeType="text/x.enum"), {"structured-output": f"{GEN}/responseMimeType"}),
    "plain text": (config(responseMimeType="text/plain", temperature=1), {}),
    "formats": (
        config(responseFormat=[{"text": {"mimeType": "application/json"}}, {"image": {}}, {"audio": {}}, {"video": {}}]),
        {
            "structured-output": f"{GEN}/responseFormat/0/text",
            "images": f"{GEN}/responseFormat/1/image",
            "audio": f"{GEN}/responseFormat/2/audio",
            "files": f"{GEN}/responseFormat/3/video",
        },
    ),
    "modalities": (
        config(responseModalities=["TEXT", "Image", "AUDIO"]),
        {"images": f"{GEN}/responseModalities/1", "audio": f"{GEN}/responseModalities/2"},
    ),
    "speech": (config(speech_config={}), {"audio": f"{GEN}/speech_config"}),
    "image size": (config(imageConfig={"aspectRatio": "1:1"}), {"images": f"{GEN}/imageConfig"}),
    "logprobs": (config(responseLogprobs=True), {"logprobs": f"{GEN}/responseLogprobs"}),
    "candidates": (config(candidateCount=2), {"multiple-choices": f"{GEN}/candidateCount"}),
    "cache": ({"cached_content": "cachedContents/c"}, {"prompt-cache": "/cached_content"}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_a_messages_request_needs(body, expected):
    assert needs(messages, body) == expected


@pytest.mark.parametrize(("body", "expected"), GEMINI.values(), ids=GEMINI)
def test_a_gemini_request_needs(body, expected):
    assert needs(gemini, body) == expected


def test_a_stream_is_needed_where_the_client_asked_for_it():
    assert needs(messages, {"stream": True, "messages": []}, stream=True) == {"streaming": "/stream"}
    assert needs(gemini, {"contents": []}, stream=True) == {"streaming": ""}


@pytest.mark.parametrize(
    ("codec", "body", "history"),
    [
        (messages, {"messages": [{"role": "user", "content": "a"}] * 3}, (3, "/messages")),
        (messages, {}, (0, "/messages")),
        (gemini, {"contents": [{"parts": []}, {}]}, (2, "/contents")),
        (gemini, {"contents": {"parts": {"text": "a"}}}, (1, "/contents")),
        (gemini, {"generateContentRequest": {"contents": [{}]}}, (0, "/contents")),
    ],
)
def test_the_history_is_counted(codec, body, history):
    found = codec.needs(parse(json.dumps(body).encode()), False)
    assert (found.history, found.history_pointer) == history


@pytest.mark.parametrize(
    ("codec", "body", "pointer"),
    [
        (messages, {"messages": "hi"}, "/messages"),
        (messages, {"messages": [{"role": "user"}, 5]}, "/messages/1"),
        (messages, {"messages": [{"content": "no role"}]}, "/messages/0"),
        (messages, said({"text": "no type"}), BLOCK),
        (messages, said({"type": "thinking", "signature": 5}), f"{BLOCK}/signature"),
        (messages, said({"type": "tool_result", "content": [{"type": "text"}, {}]}), f"{BLOCK}/content/1"),
        (messages, {"tools": {}}, "/tools"),
        (messages, {"tools": [{"type": 5}]}, "/tools/0/type"),
        (messages, {"thinking": "high"}, "/thinking"),
        (messages, {"output_config": {"effort": 5}}, "/output_config/effort"),
        (messages, {"tool_choice": "auto"}, "/tool_choice"),
        (messages, {"container": 5}, "/container"),
        (messages, {"mcp_servers": {}}, "/mcp_servers"),
        (gemini, {"contents": "hi"}, "/contents"),
        (gemini, {"contents": [{"parts": ["hi"]}]}, "/contents/0/parts/0"),
        (gemini, parts({"thoughtSignature": 5}), f"{PART}/thoughtSignature"),
        (gemini, parts({"inlineData": {"mime_type": 5}}), f"{PART}/inlineData/mime_type"),
        (gemini, parts({"functionResponse": "r"}), f"{PART}/functionResponse"),
        (gemini, {"systemInstruction": "s"}, "/systemInstruction"),
        (gemini, {"tools": [[]]}, "/tools/0"),
        (gemini, {"generation_config": []}, "/generation_config"),
        (gemini, config(thinkingConfig={"thinkingBudget": "much"}), f"{THINK}/thinkingBudget"),
        (gemini, config(responseModalities=[5]), f"{GEN}/responseModalities/0"),
    ],
)
def test_a_shape_the_surface_does_not_know_is_pointed_at(codec, body, pointer):
    with pytest.raises(RequestError) as caught:
        needs(codec, body)
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, pointer)


@pytest.mark.parametrize(
    ("codec", "tools", "expected"),
    [
        (messages, None, []),
        (messages, [{"name": "f"}, {"type": None}, {"type": "bash_20250124"}], [("/0", "custom"), ("/1", "custom"), ("/2", "bash_20250124")]),
        (gemini, None, []),
        (
            gemini,
            [{"function_declarations": []}, {"googleSearch": {}, "url_context": {}, "codeExecution": None}],
            [("/0/function_declarations", "functionDeclarations"), ("/1/googleSearch", "googleSearch"), ("/1/url_context", "urlContext")],
        ),
        (gemini, {"google_maps": {}}, [("/google_maps", "googleMaps")]),
    ],
)
def test_tools_are_listed_with_place_and_type(codec, tools, expected):
    assert codec.tool_types(parse(json.dumps({"tools": tools}).encode())["tools"]) == expected


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}, "t"])
def test_a_thread_is_refused_as_the_sdk_expects(thread):
    with pytest.raises(RequestError) as caught:
        messages.precheck(parse(json.dumps({"thread": thread}).encode()))
    error = caught.value
    assert (error.code, error.status, error.pointer) == (Code.UNSUPPORTED_REQUEST, 400, "/thread")
    assert error.details == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


@pytest.mark.parametrize("body", [{}, {"thread": None}])
def test_no_thread_passes_the_precheck(body):
    messages.precheck(parse(json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system_instruction", "systemInstruction"),
        ("systemInstruction", "systemInstruction"),
        ("parameters_json_schema", "parametersJsonSchema"),
        ("image_2k", "image2k"),
        ("_responseJsonSchema", "_responseJsonSchema"),
        ("cached__content", "cached__content"),
        ("cached_Content", "cached_Content"),
        ("contents", "contents"),
        ("", ""),
    ],
)
def test_names_have_one_canonical_spelling(name, expected):
    assert gemini.canonical(name) == expected


def types_of(*unions):
    """The values of `type` in the members of unions of TypedDicts."""
    blocks = [block for union in unions for block in typing.get_args(union) if is_typeddict(block)]
    return set().union(*(literals(typing.get_type_hints(block)["type"]) for block in blocks))


def literals(hint):
    """The values of the `Literal`s in a type hint; the None of an `Optional` is not one."""
    inner = typing.get_args(hint)
    return set(inner) if typing.get_origin(hint) is typing.Literal else set().union(*map(literals, inner))


def test_every_block_type_of_the_sdk_has_been_looked_at():
    types = types_of(ContentBlockParam, BetaContentBlockParam, BetaToolResultContent)
    assert len(types) > 20
    assert {name for name in types if name not in messages.BLOCKS and not name.endswith(messages.HOSTED_ENDS)} == set()
    assert set(messages.BLOCKS) - types == set()


def test_every_tool_type_of_the_sdk_but_the_clients_own_is_hosted():
    for kind in sorted(types_of(ToolUnionParam, BetaToolUnionParam) - {"custom"}):
        assert needs(messages, {"tools": [{"type": kind}]}) == {"hosted-tools": "/tools/0"}


# Members of a part that ask nothing: text, and what is said about a neighbour.
QUIET = {"text", "media_resolution", "video_metadata", "part_metadata", "audio_transcription", "media_processing", "speech_metadata"}
QUIET |= {"document_metadata", "spreadsheet_metadata", "audio_metadata"}


@pytest.mark.parametrize("name", sorted(gemini_types.Part.model_fields))
def test_every_member_of_a_gemini_part_has_been_looked_at(name):
    value = {"thought": True, "thought_signature": "c2ln"}.get(name, {})
    snake, camel = needs(gemini, parts({name: value})), needs(gemini, parts({gemini.canonical(name): value}))
    assert bool(snake) == bool(camel) == (name not in QUIET)
    assert list(snake) == list(camel)
