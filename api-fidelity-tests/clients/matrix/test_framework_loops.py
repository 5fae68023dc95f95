"""openai-agents, pydantic-ai and LangChain finish a tool loop of two turns on each surface they speak, through every kind of upstream.

Each lives in a virtualenv of its own in the folder of `.ci/clients/install` (`v-oai`, `v-pyd`, `v-lc`), because they want different SDKs. One process
a framework serves all its cells, told by lines on its stdin.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

CLIENTS = Path(os.environ.get("ASGI_SURFACE_CLIENTS") or Path(__file__).resolve().parents[3] / ".clients")
SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
MARK = "=> "

LOOP = """
import asyncio, json, os, sys
os.environ.update(OPENAI_AGENTS_DISABLE_TRACING="1", LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")
url, key = sys.argv[1:]
CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat-completions", "openai-responses", "anthropic-messages", "gemini-generate-content"

def look(city: str) -> str:
    '''Looks at a city.'''
    return f"It is {city}."

{framework}

async def serve():
    for line in iter(sys.stdin.readline, ""):
        try:
            said = await run(**json.loads(line))
        except Exception as error:
            said = repr(error)
        print({mark!r} + json.dumps(said), flush=True)

asyncio.run(serve())
"""

AGENTS = """
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
client = AsyncOpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
models = {CHAT: OpenAIChatCompletionsModel, RESPONSES: OpenAIResponsesModel}

async def run(surface, origin, streamed):
    settings = ModelSettings()
    if surface == RESPONSES:
        include = [] if origin == CHAT else ["reasoning.encrypted_content"]
        settings = ModelSettings(store=False, reasoning=Reasoning(effort="low", summary="auto"), response_include=include)
    model = models[surface](origin, openai_client=client)
    agent = Agent(name="a", instructions="be brief", model=model, tools=[function_tool(look)], model_settings=settings)
    if not streamed:
        return (await Runner.run(agent, "hi")).final_output
    result = Runner.run_streamed(agent, "hi")
    async for _ in result.stream_events():
        pass
    return result.final_output
"""

PYDANTIC = """
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
claude = AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
models = {
    CHAT: lambda name: OpenAIChatModel(name, provider=OpenAIProvider(base_url=url + "/v1", api_key=key)),
    RESPONSES: lambda name: OpenAIResponsesModel(
        name,
        provider=OpenAIProvider(base_url=url + "/v1", api_key=key),
        profile=OpenAIModelProfile(supports_thinking=True, openai_supports_encrypted_reasoning_content=name != CHAT),
    ),
    MESSAGES: lambda name: AnthropicModel(name, provider=AnthropicProvider(anthropic_client=claude)),
    GEMINI: lambda name: GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=url)),
}
settings = {
    CHAT: {},
    RESPONSES: {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto"},
    MESSAGES: {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096},
    GEMINI: {"google_thinking_config": {"include_thoughts": True}},
}

async def run(surface, origin, streamed):
    agent = Agent(models[surface](origin), instructions="be brief", tools=[look], model_settings=settings[surface])
    if not streamed:
        return (await agent.run("hi")).output
    async with agent.run_stream("hi") as result:
        return await result.get_output()
"""

LANGCHAIN = """
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

def responses(name):
    include = [] if name == CHAT else ["reasoning.encrypted_content"]
    reasoning = {"effort": "low", "summary": "auto"}
    more = {"use_responses_api": True, "reasoning": reasoning, "include": include, "store": False}
    return ChatOpenAI(model=name, base_url=url + "/v1", api_key=key, max_retries=0, **more)

models = {
    CHAT: lambda name: ChatOpenAI(model=name, base_url=url + "/v1", api_key=key, max_retries=0, stream_usage=True),
    RESPONSES: responses,
    MESSAGES: lambda name: ChatAnthropic(
        model=name, base_url=url, api_key=key, max_tokens=4096, max_retries=0, thinking={"type": "enabled", "budget_tokens": 1024}
    ),
    GEMINI: lambda name: ChatGoogleGenerativeAI(model=name, google_api_key=key, base_url=url, max_retries=0, include_thoughts=True),
}

def joined(chunks):
    whole = next(chunks)
    for chunk in chunks:
        whole += chunk
    return whole

async def run(surface, origin, streamed):
    model, history = models[surface](origin).bind_tools([tool(look)]), [SystemMessage("be brief"), HumanMessage("hi")]
    for _ in range(4):
        message = joined(model.stream(history)) if streamed else model.invoke(history)
        history.append(message)
        if not message.tool_calls:
            return message.text if isinstance(message.text, str) else message.text()
        history += [ToolMessage(look(**call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]
"""

FRAMEWORKS = {
    "openai-agents": ("v-oai", AGENTS, (CHAT, RESPONSES)),
    "pydantic-ai": ("v-pyd", PYDANTIC, SURFACES),
    "LangChain": ("v-lc", LANGCHAIN, SURFACES),
}
# What Google takes on a call whose client kept no token; Chat's three keep none.
STAND_IN = "skip/thought/signature/validator"


def cells():
    for name, (*_, spoken) in FRAMEWORKS.items():
        yield from ((name, *cell) for cell in itertools.product(spoken, SURFACES, [False, True]))


class Process:
    """A framework in its own Python."""

    def __init__(self, python, script, url) -> None:
        command = [str(python), "-c", script, url, "key-of-the-client"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, encoding="utf-8")

    def run(self, **cell):
        """What it said at the end of the loop."""
        self.process.stdin.write(json.dumps(cell) + "\n")
        self.process.stdin.flush()
        noise = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))
            noise.append(line)
        raise AssertionError("".join(noise))

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@pytest.fixture(scope="module")
def framework(bench):
    """Starts each framework once."""
    started = {}

    def start(name):
        place, code, _ = FRAMEWORKS[name]
        python = CLIENTS / place / "bin/python"
        if not python.exists():
            pytest.skip(f"{name} is not installed: .ci/clients/install puts it into {CLIENTS.name}; ASGI_SURFACE_CLIENTS names another folder")
        if name not in started:
            started[name] = Process(python, LOOP.replace("{framework}", code).replace("{mark!r}", repr(MARK)), bench.url)
        return started[name]

    yield start
    for process in started.values():
        process.stop()


@pytest.mark.parametrize(("name", "client", "origin", "streamed"), [*cells()])
def test_a_framework_finishes_its_loop(bench, words, framework, name, client, origin, streamed):
    process = framework(name)
    thought = "" if client == CHAT else "Größe?"
    bench.upstream.script(words.Say(thought=thought, calls=(("look", {"city": "Köln"}),), stop="tools"), words.Say(text="So it is."))
    assert process.run(surface=client, origin=origin, streamed=streamed) == "So it is."
    first, second = bench.upstream.asked
    assert (first.system, first.turns, [*first.tools]) == ("be brief", (("user", "hi"),), ["look"])
    asked, [(_, call, *named), (_, answered, text)] = second.turns[0], [turn for turn in second.turns if turn[0] in ("call", "result")]
    if name == "pydantic-ai" and client == GEMINI != origin:  # it gives Gemini an object, which is the tool's text elsewhere
        text = json.loads(text)["return_value"]
    assert (asked, named, text) == (("user", "hi"), ["look", {"city": "Köln"}], "It is Köln.")
    assert call == answered
    seals = [token.replace("-", "+").replace("_", "/") for kind, token, *_ in second.turns if kind == "seal"]
    minted = [STAND_IN] if origin == GEMINI else []
    assert seals == ([words.seal_of(0)] if client != CHAT != origin else minted)
