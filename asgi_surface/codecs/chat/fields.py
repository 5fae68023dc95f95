"""Which top-level fields of a Chat Completions request pass by default, and which only under a condition.

Data only; how a policy is applied is not known here. A test walks the official SDK's parameters, so that a new SDK release names what has not been
looked at.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.base import Guard, ShippedPolicy
from asgi_surface.surfaces import Feature

REQUIRED: Final = frozenset({"model", "messages"})
"""What the SDK's types require."""

COUNT_FIELDS: Final[frozenset[str]] = frozenset()
"""The surface has no token count."""

_OFFICIAL: Final = frozenset(
    {
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        # Labels of a stored completion; without `store` they are ignored.
        "metadata",
        # Text is the default; audio is demanded by what is asked, and other values are OpenRouter's.
        "modalities",
        # Scores or blocks this request's own text and keeps nothing.
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        # Hints to a cache; they change the price and the delay, not the answer.
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)

# Fields of widely used engines that act on this one answer only. Those that reach further are left out: of vLLM chat_template,
# kv_transfer_params, vllm_xargs, priority and request_id; of SGLang lora_path, session_params, custom_logit_processor and bootstrap_*; of
# llama.cpp id_slot and lora; of OpenRouter models, provider, plugins and transforms.
_ENGINES: Final = frozenset(
    {
        # vLLM, vllm/entrypoints/openai/chat_completion/protocol.py; SGLang, srt/entrypoints/openai/protocol.py, has most of them too.
        "add_generation_prompt",
        "bad_words",
        "chat_template_kwargs",
        "continue_final_message",
        "ignore_eos",
        "include_reasoning",  # OpenRouter's first name for reasoning.exclude, too
        "include_stop_str_in_output",
        "length_penalty",
        "min_p",
        "min_tokens",
        "repetition_penalty",
        "skip_special_tokens",
        "stop_token_ids",
        "structured_outputs",
        "thinking_token_budget",
        "top_k",
        # SGLang, srt/entrypoints/openai/protocol.py.
        "ebnf",
        "regex",
        "separate_reasoning",
        "stream_reasoning",
        # llama.cpp, tools/server/README.md.
        "cache_prompt",
        "grammar",
        "json_schema",
        "reasoning_format",
        "repeat_penalty",
        "typical_p",
        # DeepSeek, api-docs.deepseek.com "Thinking Mode"; GLM and Kimi say it the same way.
        "thinking",
        # Qwen on Alibaba Cloud Model Studio, "Deep thinking".
        "enable_thinking",
        "thinking_budget",
        # OpenRouter, openrouter.ai/docs "Reasoning Tokens" and "Parameters".
        "reasoning",
        "top_a",
    }
)

POLICY: Final = ShippedPolicy(
    name="openai-chat-default",
    fields=REQUIRED | _OFFICIAL | _ENGINES,
    guarded={
        # The voice and format of a spoken answer.
        "audio": Guard(Feature.AUDIO),
        # Keeps the completion at the provider for distillation and evals.
        "store": Guard(Feature.STORED_RESPONSES, harmless=(b"null", b"false")),
        # The provider searches the web.
        "web_search_options": Guard(Feature.HOSTED_TOOLS),
    },
)
