"""What Chat Completions and Responses requests demand: one row per construct, with the exact features and their pointers."""

from __future__ import annotations

import typing

import msgspec
import pytest
from openai.types.chat import chat_completion_assistant_message_param as assistant_sdk
from openai.types.chat import chat_completion_content_part_param as part_sdk
from openai.types.responses import response_includable, response_input_content_param, response_input_item_param, tool_param

from asgi_surface.codecs.chat import request as chat
from asgi_surface.codecs.responses import request as responses
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import parse
from asgi_surface.surfaces import CARRIES, CHAT, RESPONSES, Feature


def _needs(codec, body, *, stream=False):
    return codec.needs(parse(msgspec.json.encode(body)), stream)


def _demands(codec, body, **more):
    return {demand.feature.value: demand.pointer for demand in _needs(codec, body, **more).demands}


USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "s"}
FUNCTION = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CUSTOM_CALL = {"id": "c2", "type": "custom", "custom": {"name": "f", "input": ""}}


def _parts(*parts):
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "t"}, *parts]}]}


def _calls(*calls):
    return {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": list(calls)}]}


CHAT_ROWS = [
    ({"messages": [USER]}, {}),
    ({}, {}),
    ({"messages": None, "tools": None, "tool_choice": None, "n": None, "store": None, "reasoning": None, "thinking": None}, {}),
    # tools
    ({"tools": [FUNCTION, FUNCTION]}, {"tools": "/tools"}),
    ({"tools": [{"function": {"name": "f"}}]}, {"tools": "/tools"}),
    ({"tools": [{"web_search": {}}]}, {"hosted-tools": "/tools/0"}),
    ({"tools": []}, {}),
    ({"functions": [{"name": "f"}], "function_call": "auto"}, {"tools": "/functions"}),
    ({"functions": []}, {}),
    ({"tools": [FUNCTION, {"type": "custom", "custom": {"name": "p"}}]}, {"tools": "/tools", "custom-tools": "/tools/1"}),
    ({"tools": [FUNCTION, {"type": "web_search"}, {"type": "mcp"}]}, {"tools": "/tools", "hosted-tools": "/tools/1"}),
    ({"web_search_options": {}}, {"hosted-tools": "/web_search_options"}),
    ({"web_search_options": None}, {}),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tools": "/tool_choice"}),
    ({"tool_choice": {"type": "custom", "custom": {"name": "p"}}}, {"custom-tools": "/tool_choice"}),
    ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}, {}),
    ({"tool_choice": "required"}, {}),
    ({"parallel_tool_calls": True}, {"parallel-tools": "/parallel_tool_calls"}),
    ({"parallel_tool_calls": False}, {}),
    # history
    (_calls(CALL), {"tools": "/messages/1/tool_calls"}),
    (_calls({"id": "c", "function": {"name": "f", "arguments": ""}}), {"tools": "/messages/1/tool_calls"}),
    (_calls(CUSTOM_CALL), {"custom-tools": "/messages/1/tool_calls"}),
    (_calls({"id": "c", "type": "browser"}), {"hosted-tools": "/messages/1/tool_calls"}),
    (_calls(CALL, CALL), {"tools": "/messages/1/tool_calls", "parallel-tools": "/messages/1/tool_calls"}),
    (_calls(), {}),
    ({"tools": [FUNCTION], **_calls(CALL)}, {"tools": "/tools"}),
    ({"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": ""}}]}, {"tools": "/messages/0/function_call"}),
    ({"messages": [{"role": "assistant", "function_call": None, "tool_calls": None, "audio": None, "content": None}]}, {}),
    ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, {"audio": "/messages/0/audio"}),
    ({"messages": [{"role": "assistant", "content": "", "reasoning_content": "r"}]}, {}),
    ({"messages": [SYSTEM, {"role": "developer", "content": "d"}, USER]}, {}),
    ({"messages": [SYSTEM, USER, SYSTEM, {"role": "developer", "content": "d"}]}, {"mid-conversation-system": "/messages/2"}),
    # parts
    (_parts({"type": "image_url", "image_url": {"url": "u"}}), {"images": "/messages/0/content/1"}),
    (_parts({"type": "file", "file": {"file_id": "f"}}), {"files": "/messages/0/content/1"}),
    (_parts({"type": "input_audio", "input_audio": {}}), {"audio": "/messages/0/content/1"}),
    (_parts({"type": "audio_url", "audio_url": {}}), {"audio": "/messages/0/content/1"}),
    (_parts({"type": "refusal", "refusal": ""}, {"type": "of tomorrow"}, {}), {}),
    # reasoning
    ({"reasoning_effort": "minimal"}, {"reasoning": "/reasoning_effort"}),
    ({"reasoning_effort": "none"}, {}),
    ({"reasoning_effort": None}, {}),
    ({"reasoning": {"effort": "high"}}, {"reasoning": "/reasoning"}),
    ({"reasoning": {"max_tokens": 100}}, {"reasoning": "/reasoning"}),
    ({"reasoning": {"enabled": True}}, {"reasoning": "/reasoning"}),
    ({"reasoning": {"enabled": False, "effort": "high"}}, {}),
    ({"reasoning": {"effort": "none"}}, {}),
    ({"reasoning": {"exclude": True}}, {}),
    ({"thinking": {"type": "enabled"}}, {"reasoning": "/thinking"}),
    ({"thinking": {"type": "disabled"}}, {}),
    ({"thinking": True}, {"reasoning": "/thinking"}),
    ({"thinking": False}, {}),
    ({"enable_thinking": True}, {"reasoning": "/enable_thinking"}),
    ({"enable_thinking": False, "thinking_budget": 5}, {}),
    ({"chat_template_kwargs": {"enable_thinking": True}}, {"reasoning": "/chat_template_kwargs"}),
    ({"chat_template_kwargs": {"thinking": True}}, {"reasoning": "/chat_template_kwargs"}),
    ({"chat_template_kwargs": {"reasoning_effort": "low"}}, {"reasoning": "/chat_template_kwargs"}),
    ({"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "none", "x": [1]}}, {}),
    # the rest
    ({"audio": {"voice": "v", "format": "wav"}}, {"audio": "/audio"}),
    ({"modalities": ["text", "audio"]}, {"audio": "/modalities"}),
    ({"modalities": ["text"]}, {}),
    ({"response_format": {"type": "json_object"}}, {"structured-output": "/response_format"}),
    ({"response_format": {"type": "json_schema", "json_schema": {}}}, {"structured-output": "/response_format"}),
    ({"response_format": {"type": "text"}}, {}),
    ({"structured_outputs": {"choice": ["a"]}}, {"structured-output": "/structured_outputs"}),
    ({"json_schema": {}}, {"structured-output": "/json_schema"}),
    ({"grammar": "root ::= x"}, {"structured-output": "/grammar"}),
    ({"grammar": ""}, {}),
    ({"regex": "a+"}, {"structured-output": "/regex"}),
    ({"ebnf": "x"}, {"structured-output": "/ebnf"}),
    ({"logprobs": True, "top_logprobs": 5}, {"logprobs": "/logprobs"}),
    ({"logprobs": False, "top_logprobs": 0}, {}),
    ({"top_logprobs": 1}, {"logprobs": "/top_logprobs"}),
    ({"n": 2}, {"multiple-choices": "/n"}),
    ({"n": 1}, {}),
    # What only the policy judges, or what changes no answer.
    ({"store": True}, {}),
    ({"metadata": {}, "user": "u", "safety_identifier": "s", "service_tier": "flex", "prompt_cache_key": "k", "prediction": {}}, {}),
    ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, {"tools": "/tools"}),
]


def _input(*items):
    return {"input": list(items)}


def _content(*parts):
    return _input({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "t"}, *parts]})


NAMESPACE = {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "p"}]}
R_FUNCTION = {"type": "function", "name": "f"}
R_CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
R_OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "o"}
R_CUSTOM_CALL = {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}
R_IMAGE = {"type": "input_image", "image_url": "u"}
R_REASONING = {"type": "reasoning", "id": "rs", "summary": [], "content": None}
R_ASSISTANT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]}
EFFORT = {"reasoning": {"effort": "low"}}
SCHEMA = {"text": {"format": {"type": "json_schema"}}}

RESPONSES_ROWS = [
    ({"input": "hi"}, {}),
    (_input(USER), {}),
    ({}, {}),
    ({"input": None, "tools": None, "include": None, "reasoning": None, "text": None, "store": None, "conversation": None, "prompt": None}, {}),
    # tools
    ({"tools": [R_FUNCTION]}, {"tools": "/tools"}),
    ({"tools": [R_FUNCTION, {"type": "custom", "name": "p"}]}, {"tools": "/tools", "custom-tools": "/tools/1"}),
    ({"tools": [{"type": "custom", "name": "p"}, NAMESPACE]}, {"custom-tools": "/tools/0", "tools": "/tools"}),
    ({"tools": [R_FUNCTION, NAMESPACE]}, {"tools": "/tools", "custom-tools": "/tools/1/tools/1"}),
    ({"tools": [{"type": "namespace", "tools": [{"type": "mcp"}, {}]}]}, {"hosted-tools": "/tools/0/tools/0"}),
    ({"tools": [{"type": "web_search"}, R_FUNCTION, {"type": "shell"}]}, {"hosted-tools": "/tools/0", "tools": "/tools"}),
    ({"tools": [{}]}, {"hosted-tools": "/tools/0"}),
    ({"tool_choice": {"type": "function", "name": "f"}}, {"tools": "/tool_choice"}),
    ({"tool_choice": {"type": "custom", "name": "p"}}, {"custom-tools": "/tool_choice"}),
    ({"tool_choice": {"type": "mcp", "server_label": "s"}}, {"hosted-tools": "/tool_choice"}),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, {}),
    ({"tool_choice": "auto"}, {}),
    ({"parallel_tool_calls": True}, {"parallel-tools": "/parallel_tool_calls"}),
    ({"parallel_tool_calls": False}, {}),
    # calls in history
    (_input(USER, R_CALL, R_OUTPUT), {"tools": "/input/1"}),
    (_input(R_OUTPUT), {"tools": "/input/0"}),
    ({"tools": [R_FUNCTION], **_input(R_CALL)}, {"tools": "/tools"}),
    (_input(R_CUSTOM_CALL), {"custom-tools": "/input/0"}),
    (_input({"type": "custom_tool_call_output", "output": [R_IMAGE]}), {"custom-tools": "/input/0", "images": "/input/0/output/0"}),
    (_input(R_CALL, R_OUTPUT, R_CALL, R_OUTPUT), {"tools": "/input/0"}),
    (_input(R_CALL, R_CALL, R_OUTPUT), {"tools": "/input/0", "parallel-tools": "/input/1"}),
    (_input(R_CALL, R_ASSISTANT, R_CUSTOM_CALL), {"tools": "/input/0", "parallel-tools": "/input/2", "custom-tools": "/input/2"}),
    (_input(R_CALL, USER, R_CALL), {"tools": "/input/0"}),
    (_input({"type": "web_search_call", "id": "w"}), {"hosted-tools": "/input/0"}),
    (_input({"type": "computer_call_output", "output": {"type": "computer_screenshot"}}), {"hosted-tools": "/input/0"}),
    (_input({"type": "shell_call_output", "output": [{"stdout": ""}]}), {"hosted-tools": "/input/0"}),
    (_input({"type": "mcp_list_tools", "tools": [{"name": "t"}]}), {"hosted-tools": "/input/0"}),
    (_input({"type": "of tomorrow"}), {}),
    (_input({"type": "additional_tools", "role": "developer", "tools": [R_FUNCTION]}), {"tools": "/input/0/tools"}),
    (_input({"type": "additional_tools", "tools": [{"type": "mcp"}]}), {"hosted-tools": "/input/0/tools/0"}),
    (
        _input({"type": "tool_search_output", "tools": [NAMESPACE]}),
        {
            "hosted-tools": "/input/0",
            "tools": "/input/0/tools",
            "custom-tools": "/input/0/tools/0/tools/1",
        },
    ),
    # reasoning
    (EFFORT, {"reasoning": "/reasoning/effort"}),
    ({"reasoning": {"effort": None, "summary": "auto"}}, {"reasoning": "/reasoning/summary"}),
    ({"reasoning": {"generate_summary": "auto"}}, {"reasoning": "/reasoning/generate_summary"}),
    ({"reasoning": {"effort": "none", "summary": "auto"}}, {}),
    ({"reasoning": {"mode": "pro"}}, {"reasoning": "/reasoning/mode"}),
    ({"reasoning": {"mode": "standard"}}, {}),
    ({"reasoning": {}}, {}),
    (_input(R_REASONING), {"reasoning": "/input/0"}),
    (_input({**R_REASONING, "encrypted_content": None}), {"reasoning": "/input/0"}),
    (_input({**R_REASONING, "encrypted_content": "g"}), {"encrypted-reasoning": "/input/0/encrypted_content"}),
    (_input({"type": "compaction", "encrypted_content": "g"}), {"encrypted-reasoning": "/input/0/encrypted_content"}),
    (_input({"type": "compaction_trigger"}), {"encrypted-reasoning": "/input/0"}),
    ({"context_management": [{"type": "compaction"}]}, {"encrypted-reasoning": "/context_management"}),
    ({"context_management": []}, {}),
    (
        _input({"type": "configuration_update", **EFFORT, **SCHEMA}),
        {
            "reasoning": "/input/0/reasoning/effort",
            "structured-output": "/input/0/text/format",
        },
    ),
    # include
    ({"include": ["message.input_image.image_url", "reasoning.encrypted_content"]}, {"encrypted-reasoning": "/include/1"}),
    ({"include": ["message.output_text.logprobs", "of.tomorrow"]}, {"logprobs": "/include/0"}),
    ({"include": ["web_search_call.action.sources", "code_interpreter_call.outputs"]}, {"hosted-tools": "/include/0"}),
    ({"include": []}, {}),
    # parts
    (_content(R_IMAGE), {"images": "/input/0/content/1"}),
    (_content({**R_IMAGE, "file_id": "f"}), {"images": "/input/0/content/1", "files": "/input/0/content/1/file_id"}),
    (_content({"type": "input_file", "file_data": "d", "file_id": None}), {"files": "/input/0/content/1"}),
    (_content({"type": "input_audio", "input_audio": {}}), {"audio": "/input/0/content/1"}),
    (_content({"type": "of tomorrow"}, {}), {}),
    (_input({"role": "user", "content": [R_IMAGE]}), {"images": "/input/0/content/0"}),
    (_input({**R_OUTPUT, "output": [{"type": "input_text"}, {"type": "input_file"}]}), {"tools": "/input/0", "files": "/input/0/output/1"}),
    # instructions
    (_input(SYSTEM, {"type": "additional_tools", "role": "developer", "tools": []}, {"role": "developer", "content": "d"}, USER), {}),
    (_input(SYSTEM, {"type": "configuration_update"}, SYSTEM, USER, SYSTEM, SYSTEM), {"mid-conversation-system": "/input/4"}),
    # text
    (SCHEMA, {"structured-output": "/text/format"}),
    ({"text": {"format": {"type": "json_object"}}}, {"structured-output": "/text/format"}),
    ({"text": {"format": {"type": "text"}, "verbosity": "low"}}, {}),
    ({"text": {"verbosity": "low"}}, {}),
    ({"top_logprobs": 3}, {"logprobs": "/top_logprobs"}),
    ({"top_logprobs": 0}, {}),
    # state
    ({"store": True}, {"stored-responses": "/store"}),
    ({"store": False}, {}),
    ({"previous_response_id": "resp_1"}, {"stored-responses": "/previous_response_id"}),
    ({"conversation": "conv_1"}, {"stored-responses": "/conversation"}),
    ({"conversation": {"id": "conv_1"}}, {"stored-responses": "/conversation"}),
    ({"prompt": {"id": "pmpt_1"}}, {"stored-responses": "/prompt"}),
    (_input({"type": "item_reference", "id": "msg_1"}), {"stored-responses": "/input/0"}),
    (_input({"id": "msg_1"}), {"stored-responses": "/input/0"}),
    ({"background": True}, {"background": "/background"}),
    ({"background": False}, {}),
    ({"metadata": {}, "user": "u", "service_tier": "flex", "prompt_cache_key": "k", "truncation": "auto", "client_metadata": {}}, {}),
]


@pytest.mark.parametrize(("body", "demands"), CHAT_ROWS)
def test_chat(body, demands):
    assert _demands(chat, body) == demands


@pytest.mark.parametrize(("body", "demands"), RESPONSES_ROWS)
def test_responses(body, demands):
    assert _demands(responses, body) == demands


@pytest.mark.parametrize("codec", [chat, responses])
def test_streaming_is_demanded_first(codec):
    body = {"stream": True, "tools": [FUNCTION]}
    assert _demands(codec, body, stream=True) == {"streaming": "/stream", "tools": "/tools"}
    assert _needs(codec, body, stream=True).demands[0].feature is Feature.STREAMING
    assert _demands(codec, body) == {"tools": "/tools"}


@pytest.mark.parametrize(
    ("codec", "body", "length", "pointer"),
    [
        (chat, {"messages": [SYSTEM, USER, USER]}, 3, "/messages"),
        (chat, {}, 0, "/messages"),
        (responses, _input(USER, R_CALL), 2, "/input"),
        (responses, {"input": "hi"}, 0, "/input"),
    ],
)
def test_the_history_is_counted(codec, body, length, pointer):
    needs = _needs(codec, body)
    assert (needs.history, needs.history_pointer) == (length, pointer)


@pytest.mark.parametrize(
    ("codec", "body", "pointer"),
    [
        (chat, {"messages": "hi"}, "/messages"),
        (chat, {"messages": [{"content": "hi"}]}, "/messages/0"),
        (chat, {"messages": [USER, {"role": 1}]}, "/messages/1/role"),
        (chat, {"messages": [{"role": "user", "content": 5}]}, "/messages/0/content"),
        (chat, {"messages": [{"role": "user", "content": {"type": "text"}}]}, "/messages/0/content"),
        (chat, {"messages": [{"role": "user", "content": [{}, {"type": 1}]}]}, "/messages/0/content/1/type"),
        (chat, {"messages": [{"role": "user", "content": ["hi"]}]}, "/messages/0/content/0"),
        (chat, {"messages": [{"role": "assistant", "tool_calls": {}}]}, "/messages/0/tool_calls"),
        (chat, {"tools": {}}, "/tools"),
        (chat, {"tools": [FUNCTION, "web_search"]}, "/tools/1"),
        (chat, {"tool_choice": 1}, "/tool_choice"),
        (chat, {"parallel_tool_calls": "yes"}, "/parallel_tool_calls"),
        (chat, {"n": "2"}, "/n"),
        (chat, {"reasoning": {"effort": 3}}, "/reasoning/effort"),
        (responses, {"input": {}}, "/input"),
        (responses, {"input": ["hi"]}, "/input/0"),
        (responses, _input(USER, {"type": 1}), "/input/1/type"),
        (responses, _input({"role": "user", "content": True}), "/input/0/content"),
        (responses, _input({"role": "user", "content": [{"type": []}]}), "/input/0/content/0/type"),
        (responses, _input({**R_OUTPUT, "output": {}}), "/input/0/output"),
        (responses, _input({**R_REASONING, "encrypted_content": 1}), "/input/0/encrypted_content"),
        (responses, _input({"type": "additional_tools", "tools": "x"}), "/input/0/tools"),
        (responses, _input({"type": "configuration_update", "reasoning": []}), "/input/0/reasoning"),
        (responses, {"tools": [{"type": "namespace", "tools": None}]}, "/tools/0/tools"),
        (responses, {"tools": [{"type": "namespace", "tools": ["f"]}]}, "/tools/0/tools/0"),
        (responses, {"reasoning": "high"}, "/reasoning"),
        (responses, {"text": {"format": "json"}}, "/text/format"),
        (responses, {"include": "reasoning.encrypted_content"}, "/include"),
        (responses, {"previous_response_id": 1}, "/previous_response_id"),
    ],
)
def test_a_shape_the_surface_does_not_know_is_named(codec, body, pointer):
    with pytest.raises(RequestError) as caught:
        _needs(codec, body)
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, pointer)


@pytest.mark.parametrize("codec", [chat, responses])
def test_tool_types(codec):
    members = parse(b'{"tools":[{"type":"function"},{"type":"web_search"},{"type":"namespace","tools":[{"type":"custom"}]}],"none":null}')
    namespace = [("/2", "namespace"), ("/2", "custom")] if codec is responses else [("/2", "namespace")]
    assert codec.tool_types(members["tools"]) == [("/0", "function"), ("/1", "web_search"), *namespace]
    assert codec.tool_types(members["none"]) == []


@pytest.mark.parametrize(("rows", "surface"), [(CHAT_ROWS, CHAT), (RESPONSES_ROWS, RESPONSES)])
def test_every_feature_that_a_surface_can_carry_is_demanded_by_some_row(rows, surface):
    # Cache marks are hints; `/stream` has a test of its own.
    assert {Feature(feature) for _, demands in rows for feature in demands} == CARRIES[surface] - {Feature.PROMPT_CACHE, Feature.STREAMING}


def _literals(params):
    """The values of the `type` that the members of an SDK's union have."""
    for param in typing.get_args(params):
        hint = param.__annotations__.get("type")
        module = vars(__import__(param.__module__, fromlist=["_"]))
        yield from _strings(eval(hint.__forward_arg__, module)) if hint else ()


def _strings(hint):
    if isinstance(hint, str):
        return [hint]
    return [text for inner in typing.get_args(hint) for text in _strings(inner)]


def test_every_type_of_the_sdk_has_its_row():
    assert set(_literals(part_sdk.ChatCompletionContentPartParam)) <= chat.PARTS.keys()
    assert set(_literals(assistant_sdk.ContentArrayOfContentPart)) <= chat.PARTS.keys()
    assert set(_literals(response_input_content_param.ResponseInputContentParam)) <= responses.PARTS.keys()
    assert len(items := set(_literals(response_input_item_param.ResponseInputItemParam))) > 25
    assert items == responses.ITEMS.keys()
    assert set(typing.get_args(response_includable.ResponseIncludable)) == responses.INCLUDE.keys()
    client_tools = {kind for kind, feature in responses.TOOLS.items() if feature is not Feature.HOSTED_TOOLS}
    assert client_tools - set(_literals(tool_param.ToolParam)) == {"allowed_tools"}
