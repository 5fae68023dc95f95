"""What a client of another surface gets of each construct of a Responses answer, as data. Knows no wire.

The letters stand for chat, responses, messages, gemini. In an answer `a` is left out and counted, and `r` ends in an error of the client's surface.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ANSWER_ROWS: Final = table(
    """
    # The response object.
    answer:id e-ee
    answer:object e-ee
    answer:created_at e-aa the surface has no time of creation
    answer:completed_at a-aa no other surface has it
    answer:model e-ee
    answer:status e-ee
    answer:error r-rr becomes an error of the client's surface
    answer:incomplete_details e-ee
    answer:output e-ee
    answer:usage e-ee
    answer:service_tier e-ma Messages has other words for it; Gemini has none
    answer:access_programs a-aa repeats the request
    answer:background a-aa repeats the request
    answer:conversation a-aa stored at the provider
    answer:image a-aa repeats the request
    answer:input_transformations a-aa tells of the provider's own history
    answer:instructions a-aa repeats the request
    answer:max_output_tokens a-aa repeats the request
    answer:max_tool_calls a-aa repeats the request
    answer:metadata a-aa repeats the request
    answer:moderation a-aa no other surface has a place for it
    answer:parallel_tool_calls a-aa repeats the request
    answer:previous_response_id a-aa repeats the request
    answer:prompt a-aa repeats the request
    answer:prompt_cache_diagnostics a-aa tells of the provider's cache
    answer:prompt_cache_key a-aa repeats the request
    answer:prompt_cache_options a-aa repeats the request
    answer:prompt_cache_retention a-aa repeats the request
    answer:safety_identifier a-aa repeats the request
    answer:temperature a-aa repeats the request
    answer:text a-aa repeats the request
    answer:tool_choice a-aa repeats the request
    answer:tool_usage a-aa counts hosted tools
    answer:tools a-aa repeats the request
    answer:top_logprobs a-aa repeats the request
    answer:top_p a-aa repeats the request
    answer:truncation a-aa repeats the request
    answer:user a-aa repeats the request
    answer:unknown a-aa newer than this table
    # Output items.
    answer:message e-ee
    answer:message.phase a-aa no other surface has it
    answer:function_call e-ee
    answer:function_call.namespace m-mm restored from the flat name
    answer:function_call.async a-aa no other surface has it
    answer:function_call.caller a-aa no other surface has it
    answer:custom_tool_call e-rm as a function with one string on Gemini; no Messages client can declare one
    answer:custom_tool_call.namespace m-rm restored from the flat name
    answer:custom_tool_call.async a-aa no other surface has it
    answer:custom_tool_call.caller a-aa no other surface has it
    # The member of the response object that has the item's name repeats the request.
    answer:reasoning m-mm the summaries are one text of reasoning
    answer:reasoning.summary m-mm paragraphs of one text
    answer:reasoning.content m-mm paragraphs of one text
    answer:reasoning.encrypted_content a-mm in an envelope where the surface has an opaque slot; Chat has none for text
    answer:additional_tools a-aa hosted tools
    answer:apply_patch_call a-aa hosted tools
    answer:apply_patch_call_output a-aa hosted tools
    answer:code_interpreter_call a-aa hosted tools
    answer:compaction a-aa the provider's own state
    answer:computer_call a-aa hosted tools
    answer:computer_call_output a-aa hosted tools
    answer:custom_tool_call_output a-aa repeats the request
    answer:file_search_call a-aa hosted tools
    answer:function_call_output a-aa repeats the request
    answer:image_generation_call a-aa hosted tools
    answer:local_shell_call a-aa hosted tools
    answer:local_shell_call_output a-aa hosted tools
    answer:mcp_approval_request a-aa hosted tools
    answer:mcp_approval_response a-aa hosted tools
    answer:mcp_call a-aa hosted tools
    answer:mcp_list_tools a-aa hosted tools
    answer:program a-aa hosted tools
    answer:program_output a-aa hosted tools
    answer:shell_call a-aa hosted tools
    answer:shell_call_output a-aa hosted tools
    answer:tool_search_call a-aa hosted tools
    answer:tool_search_output a-aa hosted tools
    answer:web_search_call a-aa hosted tools
    # Content parts and their annotations.
    answer:output_text e-ee
    answer:output_text.annotations e-aa each type of annotation has its own row
    answer:output_text.logprobs e-aa the surface has no place for them
    answer:refusal e-mm said as text
    answer:url_citation e-aa the surface wants what only its own search gives
    answer:container_file_citation a-aa a file at the provider
    answer:file_citation a-aa a file at the provider
    answer:file_path a-aa a file at the provider
    # Why it ended.
    stop:completed e-ee
    stop:incomplete m-mm its reason says more; without one it is an unknown end
    stop:max_output_tokens e-ee
    stop:content_filter e-me a refusal
    stop:max_messages m-mm an unknown end
    stop:steered m-mm an unknown end
    stop:cancelled m-mm an unknown end
    stop:failed r-rr becomes an error of the client's surface
    stop:in_progress r-rr no answer yet
    stop:queued r-rr no answer yet
    # What it used.
    usage:input_tokens e-ee
    usage:input_tokens_details e-ee
    usage:input_tokens_details.cached_tokens e-ee
    usage:input_tokens_details.cache_write_tokens e-ea Gemini does not tell it
    usage:input_tokens_details.cache_write_tokens_details a-aa only their sum
    usage:output_tokens e-ee
    usage:output_tokens_details e-ee
    usage:output_tokens_details.reasoning_tokens e-ee
    usage:total_tokens e-ae Messages has no total
    """
)
