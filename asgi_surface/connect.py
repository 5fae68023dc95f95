"""What each client must be told to ask a gateway: environment, configuration files, how to start it, or a program that asks.

Data, and two ways to write it down. Knows no route file, no gateway and no network: address, model and key are arguments. In the table `{url}` is the
gateway's root, `{model}` the name to ask for, `{key}` the client's key and `{context}` how many tokens the model can read.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Surface

NO_KEY: Final = "unused"
"""What stands for the key where the gateway asks for none: every client wants one."""
YOUR_KEY: Final = "YOUR-KEY"
"""What stands for the key that only its owner knows."""

_PLACES: Final = re.compile(r"\{(url|model|key|context)\}")
_CONTEXT: Final = 32_768  # where the route file does not say what the model can read


class Way(Struct, frozen=True, kw_only=True):
    """How a client is told on one surface: `files` are texts by path (`~` is the user's home), `run` starts it, `code` is a program that asks."""

    env: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    run: tuple[str, ...] = ()
    code: str = ""


class Client(Struct, frozen=True, kw_only=True):
    """A client's ways by surface, the usual one first; `note` is what it cannot be told by settings."""

    ways: Mapping[Surface, Way]
    note: str = ""


def _json(**members: Any) -> str:
    return json.dumps(members, indent=2) + "\n"


_OPENAI: Final = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{key}"}
_ANTHROPIC: Final = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
_GOOGLE: Final = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}
_GOOGLE_API_KEY: Final = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GOOGLE_API_KEY": "{key}"}

_CODEX: Final = """\
model = "{model}"
model_provider = "asgi_surface"

[model_providers.asgi_surface]
name = "asgi_surface"
base_url = "{url}/v1"
env_key = "ASGI_SURFACE_KEY"
wire_api = "responses"
"""


def _opencode(package: str, path: str) -> Way:
    models = {"{model}": {"name": "{model}", "tool_call": True, "reasoning": True}}
    options = {"baseURL": "{url}" + path, "apiKey": "{env:ASGI_SURFACE_KEY}"}
    provider = {"asgi_surface": {"npm": package, "name": "asgi_surface", "options": options, "models": models}}
    name = "asgi_surface/{model}"
    file = _json(**{"$schema": "https://opencode.ai/config.json"}, provider=provider, model=name, small_model=name)
    return Way(env={"ASGI_SURFACE_KEY": "{key}"}, files={"~/.config/opencode/opencode.json": file}, run=("opencode",))


def _qwen(kind: str, **env: str) -> Way:
    file = _json(security={"auth": {"selectedType": kind}})
    return Way(env=env, files={"~/.qwen/settings.json": file}, run=("qwen", "--auth-type", kind))


def _aider(vendor: str, **env: str) -> Way:
    name = f"{vendor}/{{model}}"
    return Way(env=env, run=("aider", "--model", name, "--weak-model", name, "--no-show-model-warnings"))


def _ai_sdk(module: str, maker: str, model: str, env: Mapping[str, str], options: str = "") -> Way:
    code = f"import {{ generateText }} from 'ai';\nimport {{ {maker} }} from '{module}';\n\n"
    code += f'const {{ text }} = await generateText({{ model: {maker}({options}){model}("{{model}}"), prompt: "Hi" }});\nconsole.log(text);\n'
    return Way(env=env, code=code)


def _agents(kind: str) -> Way:
    model = f'{kind}("{{model}}", openai_client=AsyncOpenAI())'
    code = f'from agents import Agent, {kind}, Runner\nfrom openai import AsyncOpenAI\n\nagent = Agent(name="assistant", model={model})\n'
    # Traces would go to OpenAI, with the gateway's key.
    return Way(env={**_OPENAI, "OPENAI_AGENTS_DISABLE_TRACING": "1"}, code=code + 'print(Runner.run_sync(agent, "Hi").final_output)\n')


def _pydantic_ai(module: str, kind: str, env: Mapping[str, str]) -> Way:
    code = f"from pydantic_ai import Agent\nfrom pydantic_ai.models.{module} import {kind}\n\n"
    return Way(env=env, code=code + f'print(Agent({kind}("{{model}}")).run_sync("Hi").output)\n')


def _langchain(module: str, kind: str, env: Mapping[str, str], options: str = "") -> Way:
    return Way(env=env, code=f'from {module} import {kind}\n\nprint({kind}(model="{{model}}"{options}).invoke("Hi").text)\n')


def _litellm(vendor: str, **env: str) -> Way:
    asked = f'completion(model="{vendor}/{{model}}", messages=[{{"role": "user", "content": "Hi"}}])'
    code = f"import litellm\n\nprint(litellm.{asked}.choices[0].message.content)\n"
    # Prices would be fetched from the network.
    return Way(env={**env, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}, code=code)


def _instructor(maker: str, module: str, client: str, mode: str, env: Mapping[str, str], options: str = "") -> Way:
    code = f"import instructor\nfrom {module} import {client}\nfrom pydantic import BaseModel\n\n\nclass City(BaseModel):\n    name: str\n\n\n"
    code += f"client = instructor.{maker}({client}(), mode=instructor.Mode.{mode})\n"
    asked = f'model="{{model}}", response_model=City, messages=[{{"role": "user", "content": "Name a city."}}]{options}'
    return Way(env=env, code=code + f"print(client.create({asked}).name)\n")


def _zed(kind: str, url: str, key: str, **more: Any) -> Way:
    model = {"name": "{model}", "display_name": "{model}", "max_tokens": "{context}", **more}
    told: dict[str, Any] = {"api_url": url, "available_models": [model]}
    file = _json(language_models={kind: {"asgi_surface": told} if kind.endswith("_compatible") else told})
    return Way(env={key: "{key}"}, files={"~/.config/zed/settings.json": file.replace('"{context}"', "{context}")}, run=("zed",))


_HI: Final = 'messages=[{"role": "user", "content": "Hi"}]'

CLIENTS: Final[Mapping[str, Client]] = {
    "openai": Client(
        ways={
            RESPONSES: Way(
                env=_OPENAI, code='from openai import OpenAI\n\nprint(OpenAI().responses.create(model="{model}", input="Hi").output_text)\n'
            ),
            CHAT: Way(
                env=_OPENAI,
                code=f'from openai import OpenAI\n\nprint(OpenAI().chat.completions.create(model="{{model}}", {_HI}).choices[0].message.content)\n',
            ),
        }
    ),
    "anthropic": Client(
        ways={
            MESSAGES: Way(
                env=_ANTHROPIC,
                code="from anthropic import Anthropic\n\n"
                f'message = Anthropic().messages.create(model="{{model}}", max_tokens=1024, {_HI})\n'
                'print("".join(block.text for block in message.content if block.type == "text"))\n',
            )
        }
    ),
    "google-genai": Client(
        ways={
            GEMINI: Way(
                env=_GOOGLE,
                code="from google import genai\n\nclient = genai.Client()\n"
                'print(client.models.generate_content(model="{model}", contents="Hi").text)\n',
            )
        }
    ),
    "codex": Client(ways={RESPONSES: Way(env={"ASGI_SURFACE_KEY": "{key}"}, files={"~/.codex/config.toml": _CODEX}, run=("codex",))}),
    "claude-code": Client(
        ways={
            MESSAGES: Way(
                env={
                    **_ANTHROPIC,
                    # Every role that it gives to models by itself: without them it asks for Claude's names.
                    **dict.fromkeys(("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"), "{model}"),
                    **{f"ANTHROPIC_DEFAULT_{size}_MODEL": "{model}" for size in ("OPUS", "SONNET", "HAIKU")},
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                },
                run=("claude",),
            )
        }
    ),
    "gemini-cli": Client(
        ways={
            GEMINI: Way(
                env={**_GOOGLE, "GEMINI_MODEL": "{model}"},
                files={"~/.gemini/settings.json": _json(security={"auth": {"selectedType": "gemini-api-key"}})},
                run=("gemini",),
            )
        },
        note='for small tasks it asks for Gemini\'s own names: a route with models = ["gemini-*"] serves those too',
    ),
    "opencode": Client(
        ways={
            CHAT: _opencode("@ai-sdk/openai-compatible", "/v1"),
            RESPONSES: _opencode("@ai-sdk/openai", "/v1"),
            MESSAGES: _opencode("@ai-sdk/anthropic", "/v1"),
            GEMINI: _opencode("@ai-sdk/google", "/v1beta"),
        }
    ),
    "qwen-code": Client(
        ways={
            CHAT: _qwen("openai", **_OPENAI, OPENAI_MODEL="{model}"),
            MESSAGES: _qwen("anthropic", **_ANTHROPIC, ANTHROPIC_MODEL="{model}"),
            GEMINI: _qwen("gemini", **_GOOGLE, GEMINI_MODEL="{model}"),
        }
    ),
    "aider": Client(
        ways={
            CHAT: _aider("openai", OPENAI_API_BASE="{url}/v1", OPENAI_API_KEY="{key}"),
            MESSAGES: _aider("anthropic", ANTHROPIC_API_BASE="{url}", ANTHROPIC_API_KEY="{key}"),
        }
    ),
    "ai-sdk": Client(
        ways={
            RESPONSES: _ai_sdk("@ai-sdk/openai", "createOpenAI", ".responses", _OPENAI),
            CHAT: _ai_sdk("@ai-sdk/openai", "createOpenAI", ".chat", _OPENAI),
            MESSAGES: _ai_sdk("@ai-sdk/anthropic", "createAnthropic", "", {**_ANTHROPIC, "ANTHROPIC_BASE_URL": "{url}/v1"}),
            GEMINI: _ai_sdk(
                "@ai-sdk/google", "createGoogleGenerativeAI", "", {"GOOGLE_GENERATIVE_AI_API_KEY": "{key}"}, '{ baseURL: "{url}/v1beta" }'
            ),
        }
    ),
    "openai-agents": Client(ways={RESPONSES: _agents("OpenAIResponsesModel"), CHAT: _agents("OpenAIChatCompletionsModel")}),
    "pydantic-ai": Client(
        ways={
            RESPONSES: _pydantic_ai("openai", "OpenAIResponsesModel", _OPENAI),
            CHAT: _pydantic_ai("openai", "OpenAIChatModel", _OPENAI),
            MESSAGES: _pydantic_ai("anthropic", "AnthropicModel", _ANTHROPIC),
            GEMINI: _pydantic_ai("google", "GoogleModel", _GOOGLE_API_KEY),
        }
    ),
    "langchain": Client(
        ways={
            RESPONSES: _langchain("langchain_openai", "ChatOpenAI", _OPENAI, ", use_responses_api=True"),
            CHAT: _langchain("langchain_openai", "ChatOpenAI", _OPENAI, ", use_responses_api=False"),
            MESSAGES: _langchain("langchain_anthropic", "ChatAnthropic", _ANTHROPIC),
            GEMINI: _langchain("langchain_google_genai", "ChatGoogleGenerativeAI", _GOOGLE_API_KEY),
        }
    ),
    "litellm": Client(
        ways={
            CHAT: _litellm("openai", **_OPENAI),
            RESPONSES: _litellm("openai/responses", **_OPENAI),
            MESSAGES: _litellm("anthropic", ANTHROPIC_API_BASE="{url}", ANTHROPIC_API_KEY="{key}"),
            GEMINI: _litellm("gemini", GEMINI_API_BASE="{url}/v1beta", GEMINI_API_KEY="{key}"),
        }
    ),
    "instructor": Client(
        ways={
            CHAT: _instructor("from_openai", "openai", "OpenAI", "TOOLS", _OPENAI),
            RESPONSES: _instructor("from_openai", "openai", "OpenAI", "RESPONSES_TOOLS", _OPENAI),
            MESSAGES: _instructor("from_anthropic", "anthropic", "Anthropic", "ANTHROPIC_TOOLS", _ANTHROPIC, ", max_tokens=1024"),
        }
    ),
    "zed": Client(
        ways={
            CHAT: _zed(
                "openai_compatible",
                "{url}/v1",
                "ASGI_SURFACE_API_KEY",
                capabilities={"tools": True, "images": False, "parallel_tool_calls": False, "prompt_cache_key": False},
            ),
            MESSAGES: _zed("anthropic", "{url}", "ANTHROPIC_API_KEY"),
            GEMINI: _zed("google", "{url}", "GEMINI_API_KEY"),
        },
        note="max_tokens is how much the model can read: the route's context_tokens, or write the true number",
    ),
}
"""Every client by its name. Zed's are as its documentation has them; all others are run by the tests."""


class Settings(Struct, frozen=True, kw_only=True):
    """What a client is told: a `Way` with everything filled in, `env` and `run` as they are, ready to be written down."""

    client: str
    surface: str
    env: dict[str, str]
    files: dict[str, str]
    run: list[str]
    code: str
    notes: list[str]


def settings(client: str, surface: Surface | None = None, *, url: str, model: str, key: str = NO_KEY, context: int | None = None) -> Settings:
    """The settings of a client; without a surface those of its usual one. Raises `KeyError` for a client or surface that the table has not."""
    row = CLIENTS[client]
    surface = surface or next(iter(row.ways))
    way = row.ways[surface]
    values = {"url": url.rstrip("/"), "model": model, "key": key, "context": str(context or _CONTEXT)}
    put, quoted = _filler(values), _filler({name: json.dumps(value)[1:-1] for name, value in values.items()})
    return Settings(
        client=client,
        surface=surface,
        env={name: put(value) for name, value in way.env.items()},
        files={path: quoted(text) for path, text in way.files.items()},
        run=[put(word) for word in way.run],
        code=quoted(way.code),
        notes=[*filter(None, (row.note, f"{YOUR_KEY} stands for the client's key" if key == YOUR_KEY else ""))],
    )


def _filler(values: Mapping[str, str]) -> Callable[[str], str]:
    """Puts values in the place of their names. A value is never searched for names."""
    return lambda text: _PLACES.sub(lambda found: values[found[1]], text)


def written(told: Settings) -> Iterator[str]:
    """The lines that a person reads: a shell's exports, then each file with its path, then how to start."""
    yield f"# {told.client}, over {told.surface}"
    yield from (f"# {note}" for note in told.notes)
    yield from (f"export {name}={shlex.quote(value)}" for name, value in told.env.items())
    for path, text in told.files.items():
        yield from ("", f"# the file {path}", text.rstrip())
    if told.run:
        yield from ("", "# start it", shlex.join(told.run))
    if told.code:
        yield from ("", "# a program that asks", told.code.rstrip())
