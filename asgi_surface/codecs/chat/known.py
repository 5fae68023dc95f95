"""The members of a Chat Completions answer, and of a chunk, that have a row or are read: what else one says is counted as unknown. Data only."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.strangers import shape

# `prompt_cache_miss_tokens` is DeepSeek's rest of the input, which follows from the others.
_TABLE: Final = """
. id object created model choices usage service_tier system_fingerprint metadata moderation prompt_filter_results error
choices index message finish_reason logprobs content_filter_results
choices.message role content refusal annotations audio tool_calls function_call reasoning_content reasoning reasoning_details
choices.message.function_call name arguments
choices.message.tool_calls id type index function custom extra_content
choices.message.tool_calls.function name arguments
choices.message.tool_calls.custom name input
choices.logprobs content refusal
usage prompt_tokens completion_tokens total_tokens prompt_tokens_details completion_tokens_details reasoning_tokens cached_tokens
usage prompt_cache_hit_tokens prompt_cache_miss_tokens cache_read_input_tokens cache_creation_input_tokens
usage input_tokens output_tokens input_tokens_details output_tokens_details
usage.prompt_tokens_details cached_tokens audio_tokens cache_write_tokens image_tokens text_tokens
usage.completion_tokens_details reasoning_tokens audio_tokens accepted_prediction_tokens rejected_prediction_tokens text_tokens
"""

# Groq keeps usage and errors in `x_groq`, with an id of the request and the seed. Pings have a type. vLLM, SGLang and OpenRouter send nulls.
_CHUNK: Final = """
. obfuscation x_groq type prompt_token_ids?
choices delta token_ids? stop_reason? matched_stop? native_finish_reason?
choices.delta.tool_calls index
x_groq id usage error seed
"""

KNOWN: Final = shape(_TABLE)
"""A whole answer, by path."""

FRAMES: Final = shape(_TABLE + _TABLE.replace("choices.message", "choices.delta") + _CHUNK)
"""A chunk, by path."""
