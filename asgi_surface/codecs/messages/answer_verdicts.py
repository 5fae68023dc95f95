"""What a client of another surface gets of each construct of a Messages answer, as data. Knows no wire.

The letters stand for chat, responses, messages, gemini. In an answer `a` is left out and counted, and `r` ends in an error of the client's surface.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ANSWER_ROWS: Final = table(
    """
    # The message.
    answer:id ee-e
    answer:type ee-e
    answer:role ee-e
    answer:model ee-e
    answer:content ee-e
    answer:usage ee-e
    answer:stop_reason ee-e
    answer:stop_sequence aa-a no other surface tells which
    answer:stop_details mm-m its explanation is told as the words of the refusal
    answer:stop_details.category aa-a no other surface has it
    answer:stop_details.fallback_credit_token aa-a changes the price of another request only
    answer:stop_details.fallback_has_prefill_claim aa-a changes the price of another request only
    answer:stop_details.recommended_model aa-a another model than the one that was routed
    answer:container aa-a hosted tools
    answer:context_management aa-a the provider's own edits of the history
    answer:diagnostics aa-a tells of the provider's cache
    answer:input_transformations aa-a tells of the provider's own history
    answer:unknown aa-a newer than this table
    # Content blocks.
    answer:text ee-e
    answer:thinking mm-m another surface's reasoning text
    answer:thinking.signature am-m in an envelope where the surface has an opaque slot; Chat has none for text
    answer:redacted_thinking am-m in an envelope where the surface has an opaque slot; Chat has none for text
    answer:tool_use ee-e
    answer:tool_use.caller aa-a hosted tools
    answer:tool_use.toolset_name aa-a no other surface has it
    answer:server_tool_use aa-a hosted tools
    answer:web_search_tool_result aa-a hosted tools
    answer:web_fetch_tool_result aa-a hosted tools
    answer:code_execution_tool_result aa-a hosted tools
    answer:bash_code_execution_tool_result aa-a hosted tools
    answer:text_editor_code_execution_tool_result aa-a hosted tools
    answer:tool_search_tool_result aa-a hosted tools
    answer:advisor_tool_result aa-a hosted tools
    answer:mcp_tool_use aa-a hosted tools
    answer:mcp_tool_result aa-a hosted tools
    answer:mcp_tool_listing aa-a hosted tools
    answer:container_upload aa-a hosted tools
    answer:compaction aa-a the provider's own state
    answer:fallback aa-a tells of the provider's own choice of model
    # Citations.
    answer:web_search_result_location mm-a the source under the whole text
    answer:search_result_location aa-a its source need be no URL
    answer:char_location aa-a a place in a document of the request
    answer:page_location aa-a a place in a document of the request
    answer:content_block_location aa-a a place in a document of the request
    # Why it ended.
    stop:end_turn ee-e
    stop:max_tokens ee-e
    stop:model_context_window_exceeded ee-e
    stop:stop_sequence ee-e
    stop:tool_use ee-e
    stop:refusal mm-m a filter, or the words of a refusal
    stop:pause_turn mm-m an end that is no success
    stop:compaction mm-m an end that is no success
    # What it used.
    usage:input_tokens mm-m the sum of what was read, cached or not
    usage:output_tokens ee-e
    usage:cache_read_input_tokens ee-e
    usage:cache_creation_input_tokens ee-a Gemini does not tell it
    usage:cache_creation aa-a only their sum
    usage:output_tokens_details ee-e
    usage:output_tokens_details.thinking_tokens ee-e
    usage:service_tier mm-a OpenAI has other words for it; Gemini has none
    usage:service_tier.batch aa-a no other surface has it
    usage:inference_geo aa-a no other surface has it
    usage:server_tool_use aa-a hosted tools
    usage:speed aa-a no other surface has it
    usage:iterations aa-a only their sum
    usage:fallback_credit aa-a no other surface has it
    """
)
