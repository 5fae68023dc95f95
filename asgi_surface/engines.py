"""Servers by name: how each deviates from the official wire of the surfaces it speaks, as data, and the fact that each deviation rests on.

A row is the dialect of the bindings whose provider declares `engine`; a key that a binding sets itself wins. It is never chosen by a model's name,
and it declares no feature. What every server may do and the codecs take from all of them (comments, pings, the places of usage, indices and ids of
calls, words for a stop) needs no value; `notes` says which server does it. Knows nothing of route files and no wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from asgi_surface.codecs.base import Dialect
from asgi_surface.surfaces import CHAT, MESSAGES, RESPONSES, Surface


class Said(Struct, frozen=True):
    """The value of a dialect's field, and the fact it rests on: a recording (`chat/…`, of recorded/), a page, a source file, or a server's error."""

    value: object
    fact: str


class Engine(Struct, frozen=True, kw_only=True):
    """One server. `values` are its dialect's, on each surface that it speaks; a surface without values is spoken officially.

    `header` carries its key, without a scheme, where `auth` names no other; `query` is a name that every query must have, except below the path
    `unless`.
    """

    values: Mapping[Surface, Mapping[str, Said]]
    notes: tuple[Said, ...] = ()
    header: Said | None = None
    query: Said | None = None
    unless: str = ""


_NONE: Final[Mapping[str, Said]] = {}
_DEEPSEEK: Final = "https://api-docs.deepseek.com/guides/thinking_mode"
_DEEPSEEK_THINKS: Final = "chat/deepseek-reasoning-block-order-streaming-reasoner-parallel-tool-turn-leads-with-reasoning.json"
_OLLAMA: Final = "https://docs.ollama.com/api/openai-compatibility"
_OLLAMA_SOURCE: Final = "ollama/ollama openai/openai.go"
_OPENROUTER: Final = "https://openrouter.ai/docs/use-cases/reasoning-tokens"
_FIREWORKS: Final = "https://docs.fireworks.ai/guides/reasoning"
_LLAMA_CHOICE: Final = "ggml-org/llama.cpp#26535: a choice that is no string is read as `auto`"
_UNSIGNED: Final = "NousResearch/hermes-agent#17510, #75779: DeepSeek and MiniMax take thinking back that nobody signed, and need it"

ENGINES: Final[dict[str, Engine]] = {
    "openai": Engine(values={CHAT: _NONE, RESPONSES: _NONE}),
    "azure-openai": Engine(
        values={CHAT: _NONE, RESPONSES: _NONE},
        notes=(
            Said("a chunk without choices tells of the prompt first", "chat/azurecommon-azure-o4-mini-tool-streaming-1.json"),
            Said("`prompt_filter_results` and `content_filter_results` beside the answer", "chat/azure-chat-content-filtering.json"),
            Said("no message where the filter stopped the answer", "chat/azure-chat-content-filtering.json"),
        ),
        header=Said("api-key", "https://learn.microsoft.com/azure/ai-services/openai/reference"),
        query=Said("api-version", "https://learn.microsoft.com/azure/ai-services/openai/reference"),
        unless="/openai/v1/",
    ),
    "vllm": Engine(
        values={
            CHAT: {
                "instruction_role": Said("system", "ogx-ai/ogx#6069: templates refuse `developer`: Unexpected message role"),
                "reasoning_style": Said("template", "https://docs.vllm.ai/en/stable/features/reasoning_outputs/"),
                "reasoning_field": Said("reasoning", "chat/crusoe-vllm-crusoe-tool-calling-2.json; vllm-project/vllm#38488"),
            },
            RESPONSES: _NONE,
            MESSAGES: _NONE,
        },
        notes=(
            Said("`prompt_token_ids`, `token_ids` and `stop_reason` beside the answer", "chat/crusoe-vllm-crusoe-model-streaming.json"),
            Said("ids `chatcmpl-tool-…`", "chat/crusoe-vllm-crusoe-tool-calling-1.json"),
        ),
    ),
    "sglang": Engine(
        values={
            CHAT: {
                "instruction_role": Said("system", "sgl-project/sglang#40082: templates drop `developer`"),
                "reasoning_style": Said("template", "https://docs.sglang.io/docs/advanced_features/separate_reasoning"),
                "reasoning_field": Said("reasoning_content", "https://docs.sglang.io/docs/advanced_features/separate_reasoning"),
            },
        },
        notes=(
            Said("`matched_stop`, `role: null`, `reasoning_content: null`", "chat/azure-sglang-ai-sdk-azure-deepseek-reasoning-1.json"),
            Said("`usage.reasoning_tokens` beside the details", "chat/azure-sglang-ai-sdk-azure-deepseek-reasoning-1.json"),
        ),
    ),
    "llama-cpp": Engine(
        values={
            CHAT: {
                "max_tokens_field": Said("max_tokens", "chat/llamacpp-truncation-matrix-streaming-tool-call-cut-mid-arguments.json"),
                "reasoning_style": Said("template", "ggml-org/llama.cpp tools/server/README.md"),
                "reasoning_field": Said("reasoning_content", "chat/llamacpp-openaicompatiblethinking-llama-cpp-gpt-oss-thinking-streaming-2.json"),
                "tool_choice": Said("words", _LLAMA_CHOICE),
            },
            RESPONSES: {"tool_choice": Said("words", _LLAMA_CHOICE)},
            MESSAGES: _NONE,
        },
        notes=(Said("`timings` beside usage", "chat/llamacpp-content-matrix-unicode-across-chunks.json"),),
    ),
    "ollama": Engine(
        values={
            CHAT: {
                "max_tokens_field": Said("max_tokens", _OLLAMA),
                "reasoning_style": Said("effort", _OLLAMA),
                "reasoning_field": Said("reasoning", _OLLAMA_SOURCE),
                "strict_tools": Said(value=False, fact=_OLLAMA_SOURCE),
            },
            RESPONSES: _NONE,
            MESSAGES: _NONE,
        },
        notes=(Said("whole calls in one chunk", _OLLAMA_SOURCE),),
    ),
    "lm-studio": Engine(
        values={
            CHAT: {
                "max_tokens_field": Said("max_tokens", "lmstudio-ai/docs 1_developer/3_openai-compat/chat-completions.md"),
                "reasoning_style": Said("effort", "https://www.ruby-toolbox.com/projects/ruby_llm-providers-lms"),
            },
            RESPONSES: _NONE,
            MESSAGES: _NONE,
        },
        notes=(Said("reasoning items without proof", "responses/lmstudio-ai-sdk-lmstudio-tool-call-1.json"),),
    ),
    "deepseek": Engine(
        values={
            CHAT: {
                "instruction_role": Said("system", "earendil-works/pi#1048: unknown variant `developer`"),
                "max_tokens_field": Said("max_tokens", "chat/deepseek-wire-shape-matrix-streaming-repeated-prompt-reports-the-cache-split-1.json"),
                "reasoning_style": Said("thinking", f"{_DEEPSEEK}; {_DEEPSEEK_THINKS}"),
                "reasoning_field": Said("reasoning_content", _DEEPSEEK),
                "reasoning_replay": Said("tools", _DEEPSEEK),
                "strict_tools": Said(value=False, fact="https://api-docs.deepseek.com/guides/tool_calls: strict mode has a base URL of its own"),
            },
            RESPONSES: _NONE,
            MESSAGES: {"reasoning_style": Said("budget", _DEEPSEEK), "signatures": Said(value=False, fact=_UNSIGNED)},
        },
        notes=(
            Said("`prompt_cache_hit_tokens`", "chat/deepseek-wire-shape-matrix-streaming-repeated-prompt-reports-the-cache-split-1.json"),
            Said("the stop `insufficient_system_resource`", "https://api-docs.deepseek.com/api/create-chat-completion"),
        ),
    ),
    "openrouter": Engine(
        values={
            CHAT: {
                "max_tokens_field": Said("max_tokens", "chat/openroutercommon-anthropic-multi-tool-streaming-1.json"),
                "reasoning_style": Said("reasoning", f"{_OPENROUTER}; chat/openrouterthinking-anthropic-thinking-streaming-1.json"),
                "reasoning_field": Said("reasoning_details", "chat/openrouter-reasoning-tool-order-matrix-streaming-signed-agent-roundtrip-2.json"),
            },
            RESPONSES: _NONE,
            MESSAGES: _NONE,
        },
        notes=(
            Said("comments `: OPENROUTER PROCESSING`", "chat/openrouter-streaming-reasoning.json"),
            Said("an error inside a stream of status 200", "chat/openrouter-stream-error.json"),
            Said("signed and encrypted `reasoning_details`", "chat/openroutercommon-gemini-multi-tool-streaming-1.json"),
        ),
    ),
    "groq": Engine(
        values={
            CHAT: {
                "reasoning_field": Said("reasoning", "tashfeenahmed/freellmapi#1070: property 'reasoning_content' is unsupported; vercel/ai#8057")
            },
            RESPONSES: _NONE,
        },
        notes=(
            Said("usage in `x_groq`", "chat/groq-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.json"),
            Said("`event: error` inside a stream of status 200", "chat/groq-tool-use-failed-error-streaming-1.json"),
        ),
    ),
    "mistral": Engine(
        values={
            CHAT: {
                "max_tokens_field": Said("max_tokens", "avante-corp/avante.nvim#2347"),
                "reasoning_style": Said("effort", "https://docs.mistral.ai/inference/conversations/reasoning"),
                "reasoning_field": Said("content", "chat/mistral-ai-sdk-mistral-reasoning.json; @ai-sdk/mistral 3.0.52"),
                "call_ids": Said("nine", "langchain-ai/langchain#24668: must be a-z, A-Z, 0-9, with a length of 9"),
                "stream_usage": Said("always", "avante-corp/avante.nvim#2347: extra_forbidden; chat/mistral-model-thinking-part-iter.json"),
            },
        },
        notes=(
            Said("thinking among the parts of the content", "chat/mistral-ai-sdk-mistral-reasoning.json"),
            Said("a delta with an index of its own, empty names in later pieces of a call", "chat/mistral-ai-sdk-mistral-incremental-tool-call.json"),
            Said("the stop `model_length`", "https://docs.mistral.ai/api"),
        ),
    ),
    "xai": Engine(
        values={CHAT: {"reasoning_style": Said("effort", "https://docs.x.ai/docs/guides/reasoning")}, RESPONSES: _NONE},
        notes=(Said("reasoning counted beside `completion_tokens`", "chat/xai-ai-sdk-xai-tool-call.json"),),
    ),
    "openai-compatible": Engine(
        values={
            CHAT: {
                "instruction_role": Said("system", "bramses/chatgpt-md#189: `developer` is not among the roles"),
                "max_tokens_field": Said("max_tokens", "chat/huggingface-openaicompatiblecommon-huggingface-kimi-k2-multi-tool-streaming-1.json"),
                "reasoning_style": Said("effort", f"{_FIREWORKS}; chat/zai-openaicompatiblethinking-zai-glm-4-7-flash-thinking-streaming-1.json"),
                "reasoning_field": Said(
                    "reasoning_content", f"{_FIREWORKS}; chat/zai-openaicompatiblethinking-zai-glm-4-7-flash-thinking-streaming-2.json"
                ),
            },
            RESPONSES: _NONE,
        },
        notes=(Said("`reasoning_content` in deltas", "chat/moonshot-ai-sdk-moonshotai-stream.json"),),
    ),
    "anthropic": Engine(values={MESSAGES: _NONE}, header=Said("x-api-key", "https://docs.anthropic.com/en/api/overview")),
    "anthropic-compatible": Engine(
        values={
            MESSAGES: {
                "reasoning_style": Said("budget", "NousResearch/hermes-agent#67228: MiniMax and others keep to budgets"),
                "signatures": Said(value=False, fact=_UNSIGNED),
            }
        },
        notes=(Said("empty signatures", "earendil-works/pi#4464"),),
    ),
}
"""Every engine that a route file may name."""


def dialect(engine: str | None, surface: Surface, said: Mapping[str, Any]) -> Dialect:
    """The dialect of a binding: what it says itself (`said`, by field), else its engine's, else the official wire."""
    row = ENGINES.get(engine or "")
    preset: dict[str, Any] = {} if row is None else {name: one.value for name, one in row.values.get(surface, _NONE).items()}
    return Dialect(**(preset | dict(said)))
