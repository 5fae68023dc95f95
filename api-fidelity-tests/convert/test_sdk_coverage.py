"""Every construct of the official SDKs has a verdict on every other surface, and every verdict is about a construct that exists.

The names are derived from the types of the installed `openai`, `anthropic` and `google-genai`, so a new release names what is new. The rules:

- A member of a request that only holds other constructs (`messages`, `tools`, `generationConfig` …) needs no row: its content is walked.
- What a construct cannot be without (its type, name, text, arguments, bytes) is none of its own: the construct's row speaks for it.
- Of types that no other surface has (hosted tools and their traces), the type alone is a construct, not its members.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator

import pytest
import typing_extensions
from anthropic.types import Message
from anthropic.types import message_create_params as messages_stable
from anthropic.types.beta import BetaMessage
from anthropic.types.beta import message_create_params as messages_beta
from google.genai import models as google_models
from google.genai import types as google
from openai.types.chat import ChatCompletion
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import Response
from openai.types.responses import response_create_params as responses_params

from asgi_surface.codecs import CODECS
from asgi_surface.codecs.chat import verdicts as chat
from asgi_surface.codecs.gemini import verdicts as gemini
from asgi_surface.codecs.messages import answer_verdicts as messages_answer
from asgi_surface.codecs.messages import verdicts as messages
from asgi_surface.codecs.responses import answer_verdicts as responses_answer
from asgi_surface.codecs.responses import verdicts as responses
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.verdicts import Verdict

# Walking types.


def arms(hint) -> Iterator[typing.Any]:
    """The types that a hint allows for one value or element: unions, sequences, `Required` and `Annotated` are looked through."""
    if typing.get_origin(hint) in (None, dict, typing.Literal):
        yield hint
        return
    inside = typing.get_args(hint)
    for arm in inside[:1] if typing.get_origin(hint) is typing.Annotated else inside:
        yield from arms(arm)


def models(*hints) -> list[type]:
    """The models that hints allow."""
    return [arm for hint in hints for arm in arms(hint) if hasattr(arm, "model_fields") or typing_extensions.is_typeddict(arm)]


def members(*hints) -> dict[str, tuple[typing.Any, ...]]:
    """The members of all models that hints allow, by their names on the wire, each with every type that a model gives it."""
    found = {}
    for model in models(*hints):
        fields = getattr(model, "model_fields", None)
        typed = typing_extensions.get_type_hints(model) if fields is None else {one.alias or name: one.annotation for name, one in fields.items()}
        for name, hint in typed.items():
            found[name] = (*found.get(name, ()), hint)
    return found


def literals(*hints) -> set[str]:
    """The strings that hints allow by name."""
    return {value for hint in hints for arm in arms(hint) if typing.get_origin(arm) is typing.Literal for value in typing.get_args(arm)}


def tagged(*hints, tag="type") -> dict[str, list[type]]:
    """The models that hints allow, by each value of their tag."""
    found = {}
    for model in models(*hints):
        for value in literals(*members(model).get(tag, ())):
            found.setdefault(value, []).append(model)
    return found


# Naming constructs.


def named(prefix, names, without=()) -> set[str]:
    return {f"{prefix}{name}" for name in set(names) - set(without)}


def detailed(prefix, kinds, own) -> set[str]:
    """`prefix` + type + member for the types that `own` names, without the members there: such a thing cannot be without them."""
    return {one for kind, words in own.items() for one in named(f"{prefix}{kind}.", members(*kinds[kind]), {"type", *words.split()})}


def numbers(usage, *groups) -> set[str]:
    """The members of a usage; those of an object in `groups` stand below its name."""
    below = {one for group in groups for one in named(f"usage:{group}.", members(*members(*usage)[group]))}
    return below | named("usage:", members(*usage))


# The surfaces.


def chat_requests() -> set[str]:
    asked = members(chat_params.CompletionCreateParamsNonStreaming, chat_params.CompletionCreateParamsStreaming)
    roles, tools = tagged(*asked["messages"], tag="role"), tagged(*asked["tools"])
    said = {role: members(*turns) for role, turns in roles.items() if role != "function"}  # deprecated: a row for all of it
    parts = tagged(*(hint for turn in said.values() for hint in turn["content"]))
    text = {"text"}  # the default of what has a type to choose: says nothing
    return (
        named("field:", asked, {"model", "messages", "tools", "tool_choice", "stream_options", "response_format"})
        | named("field:stream_options.", members(*asked["stream_options"]))
        | named("field:response_format.", tagged(*asked["response_format"]), text)
        | named("role:", roles)
        | {one for role, turn in said.items() for one in named(f"role:{role}.", turn, {"role", "content", "tool_calls", "tool_call_id", "refusal"})}
        | named("part:", parts)
        | named("part:", members(*parts["text"]), {"type", "text"})  # what any part may carry
        | named("part:image_url.", members(*members(*parts["image_url"])["image_url"]))
        | named("part:file.", members(*members(*parts["file"])["file"]))
        | named("part:tool_calls.", tagged(*said["assistant"]["tool_calls"]))
        | named("tool:", tools)
        | named("tool:function.", members(*members(*tools["function"])["function"]), {"name", "description", "parameters"})
        | named("tool:custom.", tagged(*members(*members(*tools["custom"])["custom"])["format"]), text)
        | named("choice:", {*literals(*asked["tool_choice"]), *tagged(*asked["tool_choice"])})
    )


def chat_answers() -> set[str]:
    answer = members(ChatCompletion)
    choice = members(*answer["choices"])
    message = members(*choice["message"])
    return (
        named("answer:", answer)
        | named("answer:", choice)
        | named("answer:", message)
        | named("answer:", tagged(*message["annotations"]))
        | named("answer:tool_calls.", tagged(*message["tool_calls"]))
        | named("stop:", literals(*choice["finish_reason"]))
        | numbers(answer["usage"], "prompt_tokens_details", "completion_tokens_details")
    )


def responses_requests() -> set[str]:
    asked = members(responses_params.ResponseCreateParamsNonStreaming, responses_params.ResponseCreateParamsStreaming)
    items, tools = tagged(*asked["input"]), tagged(*asked["tools"])
    message, text = members(*items["message"]), members(*asked["text"])
    parts = tagged(*message["content"])
    return (
        named("field:", asked, {"model", "input", "tools", "tool_choice", "stream_options", "reasoning", "text", "include"})
        | named("field:stream_options.", members(*asked["stream_options"]))
        | named("field:reasoning.", members(*asked["reasoning"]))
        | named("field:text.", text, {"format"})
        | named("field:text.format.", tagged(*text["format"]))
        | named("field:include.", literals(*asked["include"]))
        | named("role:", literals(*message["role"]))
        | named("part:", parts)
        | detailed("part:", parts, {"input_text": "text", "input_image": "", "input_file": "", "output_text": "text"})
        | named("item:", items)
        | detailed("item:", items, RESPONSES_ITEMS)
        | named("tool:", tools)
        | detailed("tool:", tools, {"function": "name description parameters", "custom": "name description format"})
        | named("tool:custom.format.", tagged(*members(*tools["custom"])["format"]))
        | named("choice:", {*literals(*asked["tool_choice"]), *tagged(*asked["tool_choice"])})
    )


# What a Responses item cannot be without; `id` and `status` are its bookkeeping, which says nothing to a model.
RESPONSES_ITEMS = {
    "message": "role content id status",
    "function_call": "call_id name arguments id status",
    "function_call_output": "call_id output id status",
    "custom_tool_call": "call_id name input id",
    "custom_tool_call_output": "call_id output id",
    "reasoning": "id status",
}


def responses_answers() -> set[str]:
    answer = members(Response)
    items = tagged(*answer["output"])
    parts = tagged(*members(*items["message"])["content"])
    own = {item: words for item, words in RESPONSES_ITEMS.items() if not item.endswith("_output")}  # those are the client's
    return (
        named("answer:", answer)
        | named("answer:", items)
        | detailed("answer:", items, own)
        | named("answer:", parts)
        | detailed("answer:", parts, {"output_text": "text"})
        | named("answer:", tagged(*members(*parts["output_text"])["annotations"]))
        | named("stop:", literals(*answer["status"]) | literals(*members(*answer["incomplete_details"])["reason"]))
        | numbers(answer["usage"], "input_tokens_details", "output_tokens_details")
    )


def messages_requests() -> set[str]:
    asked = members(
        messages_stable.MessageCreateParamsNonStreaming,
        messages_stable.MessageCreateParamsStreaming,
        messages_beta.MessageCreateParamsNonStreaming,
        messages_beta.MessageCreateParamsStreaming,
    )
    roles, tools, thinking = tagged(*asked["messages"], tag="role"), tagged(*asked["tools"]), tagged(*asked["thinking"])
    blocks = tagged(*(hint for turn in roles.values() for hint in members(*turn)["content"]))
    given = tagged(*members(*blocks["tool_result"])["content"])  # what a tool gives; some of it nothing else can hold
    return (
        named("field:", asked, HEADERS | {"model", "messages", "tools", "tool_choice", "thinking", "output_config", "metadata"})
        | named("field:thinking.", thinking)
        | named("field:thinking.", members(*asked["thinking"]), {"type", "budget_tokens"})
        | named("field:output_config.", members(*asked["output_config"]))
        | named("field:metadata.", members(*asked["metadata"]))
        | named("field:tool_choice.", members(*asked["tool_choice"]), {"type", "name"})
        | named("role:", roles)
        | named("role:system.", members(*roles["system"]), {"role", "content"})
        | named("block:", {*blocks, *given})
        | detailed("block:", blocks, MESSAGES_BLOCKS)
        | {f"block:{block}.{source}" for block in ("image", "document") for source in tagged(*members(*blocks[block])["source"])}
        | named("tool:", tools)
        | detailed("tool:", tools, {"custom": "name description input_schema"})
        | named("choice:", tagged(*asked["tool_choice"]))
    )


# The SDK sends these as headers.
HEADERS = {"betas", "user_profile_id", "workspace_id"}
# What a block cannot be without, for those that other surfaces have.
MESSAGES_BLOCKS = {"text": "text", "image": "source", "document": "source", "tool_use": "id name input", "tool_result": "tool_use_id content"}


def messages_answers() -> set[str]:
    answer = members(Message, BetaMessage)
    blocks = tagged(*answer["content"])
    return (
        named("answer:", answer)
        | named("answer:", blocks)
        | detailed("answer:", blocks, {"tool_use": "id name input"})
        | named("answer:", tagged(*members(*blocks["text"])["citations"]))
        | named("stop:", literals(*answer["stop_reason"]))
        | numbers(answer["usage"], "output_tokens_details")
    )


def gemini_requests() -> set[str]:
    settings, config, tools = members(google.GenerationConfig), members(google.ToolConfig), members(google.Tool)
    calling = members(google.FunctionCallingConfig)
    top = written("_GenerateContentConfig_to_mldev", "parent_object")
    return (
        named("field:", top, {"contents", "tools", "toolConfig"})
        | named("field:generationConfig.", {*settings, *written("_GenerateContentConfig_to_mldev", "to_object")}, {"thinkingConfig"})
        | named("field:generationConfig.thinkingConfig.", members(google.ThinkingConfig))
        | named("field:toolConfig.", config, {"functionCallingConfig"})
        | named("field:toolConfig.functionCallingConfig.", calling, {"mode", "allowedFunctionNames"})
        | named("role:", literals(*members(google.UserContent)["role"], *members(google.ModelContent)["role"]))
        | named("part:", members(google.Part))
        | named("part:inlineData.", members(google.Blob), {"data", "mimeType"})
        | named("part:fileData.", members(google.FileData), {"fileUri", "mimeType"})
        | named("part:functionCall.", members(google.FunctionCall), {"id", "name", "args"})
        | named("part:functionResponse.", members(google.FunctionResponse), {"id", "name", "response"})
        | named("tool:", tools)
        | named("tool:functionDeclarations.", members(google.FunctionDeclaration), {"name", "description", "parameters", "parametersJsonSchema"})
        | named("choice:", {"allowedFunctionNames"} | {mode.name for mode in google.FunctionCallingConfigMode}, {"MODE_UNSPECIFIED"})
    )


def gemini_answers() -> set[str]:
    return (
        named("answer:", members(google.GenerateContentResponse), SDK_ONLY)
        | named("answer:", members(google.Candidate))
        | named("answer:", members(google.Part))
        | named("stop:", (reason.name for reason in google.FinishReason))
        | numbers([google.GenerateContentResponseUsageMetadata])
    )


# What google-genai adds to an answer by itself.
SDK_ONLY = {"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"}


def written(converter, target) -> set[str]:
    """The members that a converter of google-genai sets on one of its objects for the Gemini API: `setv(target, ['name', …], …)`."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(getattr(google_models, converter)))) if isinstance(node, ast.Call)]
    return {
        ast.literal_eval(call.args[1])[0] for call in calls if getattr(call.func, "id", "") == "setv" and getattr(call.args[0], "id", "") == target
    }


# The tables.

DERIVED = {
    CHAT: chat_requests() | chat_answers(),
    RESPONSES: responses_requests() | responses_answers(),
    MESSAGES: messages_requests() | messages_answers(),
    GEMINI: gemini_requests() | gemini_answers(),
}
ROWS = {
    CHAT: chat.ROWS,
    RESPONSES: responses.ROWS | responses_answer.ANSWER_ROWS,
    MESSAGES: messages.ROWS | messages_answer.ANSWER_ROWS,
    GEMINI: gemini.ROWS,
}
HOLDERS = {
    CHAT: "model messages tools tool_choice stream_options response_format",
    RESPONSES: "",
    MESSAGES: "model messages tools tool_choice thinking output_config metadata",
    GEMINI: "contents tools toolConfig toolConfig.functionCallingConfig generationConfig generationConfig.thinkingConfig",
}
"""Request members that only hold constructs: a row may judge their place, none has to."""

BEYOND = {
    CHAT: """
        field:parallel_tool_calls.false field:service_tier.auto field:service_tier.default field:store.false field:verbosity.medium
        field:service_tier.flex field:service_tier.priority
        field:max_tokens.overruled
        field:response_format.json_schema.description field:response_format.json_schema.name field:response_format.json_schema.strict
        part:image_url.base64 role:developer.mid role:system.mid role:tool.name role:assistant.annotations seal:foreign seal:none seal:thought
        part:cache_control tool:cache_control part:reasoning part:reasoning_content part:reasoning_details
        answer:unknown answer:part answer:reasoning answer:reasoning_content answer:reasoning_details
        answer:reasoning_details.data answer:reasoning_details.signature answer:content_filter_results answer:prompt_filter_results
        answer:annotations.other answer:logprobs.other answer:logprobs.refusal
    """,
    RESPONSES: """
        field:parallel_tool_calls.false field:service_tier.auto field:service_tier.default field:store.false field:prompt_cache_options.prewarm
        field:service_tier.flex field:service_tier.priority
        field:text.format.json_schema.description part:input_image.detail.original role:developer.mid role:system.mid
        tool:namespace.description item:reasoning.empty item:reasoning.unsealed seal:foreign answer:unknown
        item:function_call_output.image item:function_call_output.file item:custom_tool_call_output.image item:custom_tool_call_output.file
        field:client_metadata item:agent_message part:input_audio part:text
    """,
    MESSAGES: """
        field:context_management.keep_all field:service_tier.auto field:service_tier.standard_only field:thinking.display.updates
        field:thinking.adaptive.effort
        field:tool_choice.disable_parallel_tool_use.false block:thinking.unsealed block:tool_reference.cache_control
        block:tool_result.document block:tool_result.image
        seal:encrypted seal:foreign seal:redacted seal:signature seal:text seal:thought
        answer:stop_details.category answer:thinking.signature answer:unknown usage:service_tier.batch
        answer:stop_details.fallback_credit_token answer:stop_details.fallback_has_prefill_claim answer:stop_details.recommended_model
        field:temperature field:top_k field:top_p field:output_format field:betas field:user_profile_id field:workspace_id
    """,
    GEMINI: """
        answer:unknown
        field:generationConfig.responseMimeType.enum field:generationConfig.thinkingConfig.thinkingBudget.adaptive
        field:generationConfig.thinkingConfig.thinkingBudget.off field:generationConfig.thinkingConfig.thinkingLevel.minimal
        field:safetySettings.off field:serviceTier.standard field:store.false
        field:systemInstruction.parts choice:allowedFunctionNames.one role:function seal:foreign answer:part part:thoughtSignature.none
        part:fileData.audio part:fileData.document part:fileData.image part:fileData.other part:fileData.stored part:fileData.video
        part:inlineData.audio part:inlineData.document part:inlineData.image part:inlineData.other part:inlineData.video
        part:functionResponse.error part:functionResponse.parts.audio
        tool:functionDeclarations.parameters tool:functionDeclarations.parametersJsonSchema
        field:generationOutputConfig field:modelArmorConfig field:model
        answer:promptFeedback.blockReasonMessage answer:promptFeedback.safetyRatings answer:citationMetadata.citations
        answer:groundingMetadata.groundingChunks answer:groundingMetadata.groundingSupports answer:groundingMetadata.webSearchQueries
        answer:groundingMetadata.imageSearchQueries answer:groundingMetadata.retrievalQueries answer:groundingMetadata.searchEntryPoint
        answer:groundingMetadata.retrievalMetadata answer:groundingMetadata.googleMapsWidgetContextToken
        answer:groundingMetadata.sourceFlaggingUris
        answer:logprobsResult.logProbabilitySum answer:logprobsResult.tokenId answer:logprobsResult.other
        usage:promptTokensDetails.AUDIO usage:candidatesTokensDetails.AUDIO usage:serviceTier usage:serviceTier.other
    """,
}
"""Rows of what no type of an SDK says: one value of a construct, seals, and what real clients and engines send beyond the SDK."""

ENGINES = named("field:", CODECS[CHAT].policy.fields)  # `fields` says which engine each is from

every_surface = pytest.mark.parametrize("surface", ROWS)


@every_surface
def test_every_construct_of_the_sdk_has_a_row(surface):
    missing = sorted(DERIVED[surface] - set(ROWS[surface]))
    assert not missing, "without a verdict: " + " ".join(missing)


@every_surface
def test_every_row_is_about_a_construct_that_exists(surface):
    beyond = set(ROWS[surface]) - DERIVED[surface] - named("field:", HOLDERS[surface].split())
    assert (beyond - ENGINES if surface == CHAT else beyond) == set(BEYOND[surface].split())


@every_surface
def test_every_row_has_a_verdict_for_each_other_surface(surface):
    assert [row.construct for row in ROWS[surface].values() if set(row.verdicts) != set(ROWS) - {surface}] == []


@every_surface
def test_what_is_not_exact_says_why(surface):
    assert [row.construct for row in ROWS[surface].values() if not row.why and set(row.verdicts.values()) != {Verdict.EXACT}] == []


@every_surface
def test_the_codec_has_all_its_rows(surface):
    assert CODECS[surface].rows == ROWS[surface]


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        (
            CHAT,
            {"role:developer", "part:image_url.detail", "tool:custom.grammar", "choice:allowed_tools", "usage:total_tokens", "stop:length"},
        ),
        (RESPONSES, {"field:reasoning.summary", "item:reasoning.encrypted_content", "tool:namespace", "choice:mcp", "answer:url_citation"}),
        (MESSAGES, {"field:mcp_servers", "block:image.url", "block:tool_result.is_error", "tool:custom.strict", "stop:pause_turn"}),
        (GEMINI, {"field:generationConfig.topK", "part:thoughtSignature", "tool:googleSearch", "choice:ANY", "stop:SAFETY"}),
    ],
)
def test_the_walk_reaches_what_is_known(surface, expected):
    assert expected <= DERIVED[surface]
