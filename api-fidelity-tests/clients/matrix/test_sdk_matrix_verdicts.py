"""What every official SDK can ask for beyond a conversation, by pair: taken, or refused by a verdict with code and place, and then nobody is asked.

Beside it what only some surfaces have: counts of tokens, lists of models, and the SDKs' own tool loops.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import anthropic
import pytest
from google.genai import types

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
KINDS = ["sync", "async"]
HI = (("user", "hi"),)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TOOLS = {"look": ("Looks.", SCHEMA)}
ORDINARY = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}
TEXT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Blue."}, "title": "t"}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
LINK = "https://example.com/a.png"


class Row(NamedTuple):
    """`more` is merged into the SDK's call (Gemini: into its config). Upstreams of `by` are not asked: it is refused at `place`. The others are."""

    client: str
    more: dict[str, Any]
    place: str = ""
    by: tuple[str, ...] = ()
    tools: bool = False


def said(**message):
    return {"messages": [{"role": "user", "content": "hi"} | message]}


def called(*calls, **results):
    """A Messages history with a call, and what came of it."""
    return {"messages": [*said()["messages"], {"role": "assistant", "content": [*calls]}, {"role": "user", "content": [results]}]}


NOT_CHAT, NOT_RESPONSES, NOT_GEMINI = (RESPONSES, MESSAGES, GEMINI), (CHAT, MESSAGES, GEMINI), (CHAT, RESPONSES, MESSAGES)
FILE = {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}
MCP = {"type": "mcp", "server_label": "s", "server_url": "https://example.com"}
UNSAFE = {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_ONLY_HIGH"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
SHOWN = {"type": "base64", "media_type": "image/png", "data": PIXEL}
SEEN = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": "x"}}
ITEM = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"a": "x"}'}
AT_PICTURE = "/messages/0/content/0"
ROWS = {
    "sampling of Chat": Row(CHAT, {"temperature": 0.5, "top_p": 0.9}),
    "hints of Chat": Row(CHAT, {"metadata": {"k": "v"}, "user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "store": False}),
    "stop of Chat": Row(CHAT, {"stop": ["x"]}, "/stop", (RESPONSES,)),
    "seed of Chat": Row(CHAT, {"seed": 7}, "/seed", (RESPONSES, MESSAGES)),
    "penalties of Chat": Row(CHAT, {"frequency_penalty": 0.1}, "/frequency_penalty", (RESPONSES, MESSAGES)),
    "choices of Chat": Row(CHAT, {"n": 2}, "/n", (RESPONSES, MESSAGES)),
    "logprobs of Chat": Row(CHAT, {"logprobs": True, "top_logprobs": 2}, "/logprobs", (MESSAGES,)),
    "biases of Chat": Row(CHAT, {"logit_bias": {"7": 1}}, "/logit_bias", NOT_CHAT),
    "any JSON of Chat": Row(CHAT, {"response_format": {"type": "json_object"}}, "/response_format", (MESSAGES,)),
    "verbosity of Chat": Row(CHAT, {"verbosity": "low"}, "/verbosity", (MESSAGES, GEMINI)),
    "single calls of Chat": Row(CHAT, {"parallel_tool_calls": False}, "/parallel_tool_calls", (GEMINI,), tools=True),
    "tier of Chat": Row(CHAT, {"service_tier": "flex"}, "/service_tier", (MESSAGES,)),
    "kept by Chat": Row(CHAT, {"store": True}, "/store", NOT_RESPONSES),
    "spoken by Chat": Row(CHAT, {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}, "/audio", NOT_CHAT),
    "search of Chat": Row(CHAT, {"web_search_options": {}}, "/web_search_options", NOT_CHAT),
    "name of Chat": Row(CHAT, said(name="ada"), "/messages/0/name", NOT_CHAT),
    "custom tool of Chat": Row(CHAT, {"tools": [{"type": "custom", "custom": {"name": "look"}}]}),
    "file of Chat": Row(CHAT, said(content=[{"type": "file", "file": FILE}])),
    "picture by address of Chat": Row(CHAT, said(content=[{"type": "image_url", "image_url": {"url": LINK}}]), "/messages/0/content/0", (GEMINI,)),
    "no call of Chat": Row(CHAT, {"tool_choice": "none"}, tools=True),
    "sampling of Responses": Row(RESPONSES, {"temperature": 0.5, "top_p": 0.9}),
    "hints of Responses": Row(RESPONSES, {"metadata": {"k": "v"}, "user": "u", "prompt_cache_key": "k"}),
    "previous response": Row(RESPONSES, {"previous_response_id": "resp_1"}, "/previous_response_id", NOT_RESPONSES),
    "conversation": Row(RESPONSES, {"conversation": "conv_1"}, "/conversation", NOT_RESPONSES),
    "background": Row(RESPONSES, {"background": True}, "/background", NOT_RESPONSES),
    "truncation": Row(RESPONSES, {"truncation": "auto"}, "/truncation", NOT_RESPONSES),
    "prompt": Row(RESPONSES, {"prompt": {"id": "p"}}, "/prompt", NOT_RESPONSES),
    "logprobs of Responses": Row(RESPONSES, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}, "/top_logprobs", (MESSAGES,)),
    "verbosity of Responses": Row(RESPONSES, {"text": {"verbosity": "low"}}, "/text/verbosity", (MESSAGES, GEMINI)),
    "any JSON of Responses": Row(RESPONSES, {"text": {"format": {"type": "json_object"}}}, "/text/format", (MESSAGES,)),
    "search of Responses": Row(RESPONSES, {"tools": [ORDINARY, {"type": "web_search"}]}, "/tools/1", NOT_RESPONSES),
    "code of Responses": Row(RESPONSES, {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "/tools/0", NOT_RESPONSES),
    "MCP of Responses": Row(RESPONSES, {"tools": [MCP]}, "/tools/0", NOT_RESPONSES),
    "custom tool of Responses": Row(RESPONSES, {"tools": [{"type": "custom", "name": "look"}]}),
    "single calls of Responses": Row(RESPONSES, {"parallel_tool_calls": False}, "/parallel_tool_calls", (GEMINI,), tools=True),
    "picture by address of Responses": Row(
        RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": LINK}]}]}, "/input/0/content/0", (GEMINI,)
    ),
    "picture as a result of Responses": Row(
        RESPONSES,
        {"input": [*said()["messages"], ITEM, {"type": "function_call_output", "call_id": "t1", "output": [SEEN]}]},
        "/input/2/output/0",
        (CHAT,),
        tools=True,
    ),
    "sampling of Messages": Row(MESSAGES, {"extra_body": {"temperature": 0.5}}),
    "hints of Messages": Row(MESSAGES, {"metadata": {"user_id": "u"}, "service_tier": "auto"}),
    "cache marks": Row(MESSAGES, {"system": [{"type": "text", "text": "Sei knapp.", "cache_control": {"type": "ephemeral"}}]}),
    "stop of Messages": Row(MESSAGES, {"stop_sequences": ["x"]}, "/stop_sequences", (RESPONSES,)),
    "top_k of Messages": Row(MESSAGES, {"extra_body": {"top_k": 5}}, "/top_k", (CHAT, RESPONSES)),
    "budget of Messages": Row(MESSAGES, {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2048}}),
    "single calls of Messages": Row(
        MESSAGES,
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        "/tool_choice/disable_parallel_tool_use",
        (GEMINI,),
        tools=True,
    ),
    "search of Messages": Row(MESSAGES, {"tools": [SEARCH]}, "/tools/0", (CHAT, RESPONSES, GEMINI)),
    "document of Messages": Row(MESSAGES, said(content=[TEXT])),
    "PDF of Messages": Row(MESSAGES, said(content=[PDF])),
    "citations of Messages": Row(
        MESSAGES, said(content=[TEXT | {"citations": {"enabled": True}}]), "/messages/0/content/0/citations", (CHAT, RESPONSES, GEMINI)
    ),
    "prefill": Row(MESSAGES, {"messages": [*said()["messages"], {"role": "assistant", "content": "So"}]}, "/messages/1", (CHAT, RESPONSES, GEMINI)),
    "picture by address of Messages": Row(MESSAGES, said(content=[{"type": "image", "source": {"type": "url", "url": LINK}}]), AT_PICTURE, (GEMINI,)),
    "picture as a result of Messages": Row(
        MESSAGES,
        called(CALL, type="tool_result", tool_use_id="t1", content=[{"type": "image", "source": SHOWN}]),
        "/messages/2/content/0/content/0",
        (CHAT,),
        tools=True,
    ),
    "failed result of Messages": Row(MESSAGES, called(CALL, type="tool_result", tool_use_id="t1", is_error=True, content="no"), tools=True),
    "sampling of Gemini": Row(GEMINI, {"temperature": 0.5, "top_p": 0.9}),
    "resolution": Row(GEMINI, {"media_resolution": "MEDIA_RESOLUTION_LOW"}),
    "budget of Gemini": Row(GEMINI, {"thinking_config": {"thinking_budget": 1024}, "max_output_tokens": 4096}),
    "top_k of Gemini": Row(GEMINI, {"top_k": 5.0}, "/generationConfig/topK", (CHAT, RESPONSES)),
    "seed of Gemini": Row(GEMINI, {"seed": 7}, "/generationConfig/seed", (RESPONSES, MESSAGES)),
    "stop of Gemini": Row(GEMINI, {"stop_sequences": ["x"]}, "/generationConfig/stopSequences", (RESPONSES,)),
    "penalties of Gemini": Row(GEMINI, {"presence_penalty": 0.1}, "/generationConfig/presencePenalty", (RESPONSES, MESSAGES)),
    "logprobs of Gemini": Row(GEMINI, {"response_logprobs": True, "logprobs": 2}, "/generationConfig/responseLogprobs", (MESSAGES,)),
    "candidates": Row(GEMINI, {"candidate_count": 2}, "/generationConfig/candidateCount", (RESPONSES, MESSAGES)),
    "any JSON of Gemini": Row(GEMINI, {"response_mime_type": "application/json"}, "/generationConfig/responseMimeType", (MESSAGES,)),
    "safety": Row(GEMINI, {"safety_settings": [UNSAFE]}, "/safetySettings/0", NOT_GEMINI),
    "search of Gemini": Row(GEMINI, {"tools": [{"google_search": {}}]}, "/tools/0/googleSearch", NOT_GEMINI),
    "code of Gemini": Row(GEMINI, {"tools": [{"code_execution": {}}]}, "/tools/0/codeExecution", NOT_GEMINI),
    "pages": Row(GEMINI, {"tools": [{"url_context": {}}]}, "/tools/0/urlContext", NOT_GEMINI),
    "cached content": Row(GEMINI, {"cached_content": "cachedContents/c"}, "/cachedContent", NOT_GEMINI),
    "spoken by Gemini": Row(GEMINI, {"response_modalities": ["AUDIO"]}, "/generationConfig/responseModalities/0", NOT_GEMINI),
}
# Natively it is the policy that refuses, and every other refusal is a verdict's.
CODES = {("kept by Chat", CHAT): "field_rejected"}


@pytest.mark.parametrize("origin", SURFACES)
@pytest.mark.parametrize("name", ROWS)
def test_a_request_is_taken_or_refused_at_its_place(bench, words, name, origin):
    row = ROWS[name]
    talk = bench.talk(row.client, origin, "sync", words.Ask(HI, tools=TOOLS if row.tools else {}))
    (talk.request["config"] if row.client == GEMINI else talk.request).update(row.more)
    bench.upstream.script(words.Say(text="Ja."))
    if origin in row.by:
        assert bench.refused(talk.whole()) == (CODES.get((name, origin), "unrepresentable"), row.place)
        assert bench.upstream.bodies == []
    else:
        assert bench.run(talk.hear("whole")).text == "Ja."
        assert len(bench.upstream.bodies) == 1


# Counts of tokens: natively only.

COUNTS = {MESSAGES: {"input_tokens": 7}, GEMINI: {"totalTokens": 7}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("origin", SURFACES)
@pytest.mark.parametrize("client", COUNTS)
def test_tokens_are_counted_by_the_own_surfaces_upstream(bench, words, client, origin, kind):
    sdk = bench.client(client, kind)
    bench.upstream.script(counts=COUNTS.get(origin))

    async def count():
        if client == GEMINI:
            return (await words.got(sdk.models.count_tokens(model=origin, contents="hi"))).total_tokens
        return (await words.got(sdk.messages.count_tokens(model=origin, messages=said()["messages"]))).input_tokens

    if client == origin:
        assert bench.run(count()) == 7
        assert [path.rpartition("/")[2] for path in bench.upstream.paths] == [{MESSAGES: "count_tokens", GEMINI: "up:countTokens"}[client]]
    else:
        assert bench.refused(count()) == ("no_converter", "")
        assert bench.upstream.bodies == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("client", SURFACES)
def test_models_are_listed_in_the_clients_surface(bench, words, client, kind):
    sdk, name = bench.client(client, kind), "name" if client == GEMINI else "id"

    async def listed():
        pages = await words.got(sdk.models.list())
        one = await words.got(sdk.models.get(model=CHAT) if client == GEMINI else sdk.models.retrieve(CHAT))
        return [getattr(model, name) async for model in words.each(pages)], getattr(one, name)

    bench.upstream.script()
    prefix = "models/" if client == GEMINI else ""
    assert bench.run(listed()) == ([prefix + model for model in (CHAT, "narrow", RESPONSES, MESSAGES, GEMINI, "nowhere")], prefix + CHAT)
    assert bench.upstream.bodies == []


# The SDKs' own tool loops.


def look(a: str) -> str:
    """Looks.

    Args:
        a: Where
    """
    return f"It is {a}."


async def run_messages(words, sdk, kind, origin, *, streamed):
    """The runner asks for a thread first, which no gateway without a memory has, and then sends the whole history."""
    tool = anthropic.beta_async_tool(alook) if kind == "async" else anthropic.beta_tool(look)
    runner = sdk.beta.messages.tool_runner(model=origin, max_tokens=99, tools=[tool], messages=said()["messages"], stream=streamed)
    if not streamed:
        return (await words.got(runner.until_done())).content[-1].text
    async for stream in words.each(runner):
        last = await words.got(stream.get_final_message())
    return last.content[-1].text


async def alook(a: str) -> str:
    """Looks.

    Args:
        a: Where
    """
    return look(a)


async def run_gemini(words, sdk, kind, origin, *, streamed):
    config = types.GenerateContentConfig(tools=[look])
    if not streamed:
        return (await words.got(sdk.models.generate_content(model=origin, contents="hi", config=config))).text
    stream = await words.got(sdk.models.generate_content_stream(model=origin, contents="hi", config=config))
    return "".join([chunk.text or "" async for chunk in words.each(stream)])


LOOPS = [(*loop, *rest) for loop, *rest in itertools.product([(MESSAGES, run_messages), (GEMINI, run_gemini)], SURFACES, KINDS, [False, True])]


@pytest.mark.parametrize(("client", "loop", "origin", "kind", "streamed"), LOOPS)
def test_an_sdks_own_tool_loop(bench, words, client, loop, origin, kind, streamed):
    name = "alook" if (client, kind) == (MESSAGES, "async") else "look"
    bench.upstream.script(words.Say(calls=((name, {"a": "Köln"}),), stop="tools"), words.Say(text="So it is."))
    assert bench.run(loop(words, bench.client(client, kind), kind, origin, streamed=streamed)) == "So it is."
    first, second = bench.upstream.asked
    call = words.call_id(0, 0)
    answered = None if client == origin == GEMINI else call  # Google's own loop pairs them by name
    assert first.turns == HI
    # Another client's call has no token, and Google takes none without.
    minted = [("seal", words.STAND_IN)] if client != origin == GEMINI else []
    assert second.turns == (*HI, ("call", call, name, {"a": "Köln"}), *minted, ("result", answered, "It is Köln."))
    assert [*first.tools] == [*second.tools] == [name]
