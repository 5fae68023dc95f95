"""The members of a Responses answer, and of a stream's events, that have a row or are read: what else one says is counted as unknown. Data only."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.strangers import shape

# `store` is not in the SDK: OpenAI repeats it as it does the request's other settings.
KNOWN: Final = shape("""
. id object created_at status error incomplete_details model output usage service_tier reasoning output_text
. access_programs background completed_at conversation image input_transformations instructions max_output_tokens max_tool_calls metadata
. moderation parallel_tool_calls previous_response_id prompt prompt_cache_diagnostics prompt_cache_key prompt_cache_options prompt_cache_retention
. safety_identifier store temperature text tool_choice tool_usage tools top_logprobs top_p truncation user
output/message id type role status content phase
output/message.content/output_text type text annotations logprobs
output/message.content/refusal type refusal
output/function_call id type status call_id name arguments namespace async caller
output/custom_tool_call id type status call_id name input namespace async caller
output/reasoning id type status summary content encrypted_content
usage input_tokens input_tokens_details output_tokens output_tokens_details total_tokens
usage.input_tokens_details cached_tokens cache_write_tokens cache_write_tokens_details audio_tokens
usage.output_tokens_details reasoning_tokens audio_tokens
""")
"""A whole answer, by path."""

FRAMES: Final = shape("""
. type sequence_number item_id output_index content_index summary_index annotation_index
. response item part delta text refusal arguments input logprobs annotation status obfuscation
""")
"""An event that is read. The items and answers in it are looked into by who reads them."""
