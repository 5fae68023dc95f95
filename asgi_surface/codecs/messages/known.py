"""The members of a Messages answer, and of a stream's events, that have a row or are read: what else one says is counted as unknown. Data only."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.strangers import shape, under

_BLOCKS: Final = """
/text type text citations
/thinking type thinking signature
/redacted_thinking type data
/tool_use type id name input caller toolset_name
"""
_DETAILS: Final = """
. type category explanation fallback_credit_token fallback_has_prefill_claim recommended_model
"""
_USAGE: Final = """
. input_tokens output_tokens cache_creation cache_creation_input_tokens cache_read_input_tokens output_tokens_details service_tier
. inference_geo server_tool_use speed iterations fallback_credit
output_tokens_details thinking_tokens
"""
_MESSAGE: Final = """
. id type role model content stop_reason stop_sequence stop_details usage container context_management diagnostics input_transformations
"""
_ANSWER: Final = _MESSAGE + under("content", _BLOCKS) + under("stop_details", _DETAILS) + under("usage", _USAGE)
_DELTAS: Final = """
/text_delta type text
/input_json_delta type partial_json
/thinking_delta type thinking estimated_tokens
/signature_delta type signature
/citations_delta type citation
"""
_EVENTS: Final = """
/message_start type message
/content_block_start type index content_block
/content_block_delta type index delta
/content_block_stop type index
/message_delta type delta usage context_management input_transformations
/message_delta.delta stop_reason stop_sequence stop_details container
/message_stop type
"""

KNOWN: Final = shape(_ANSWER)
"""A whole answer, by path."""

FRAMES: Final = shape(
    _EVENTS
    + under("/message_start.message", _ANSWER)
    + under("/content_block_start.content_block", _BLOCKS)
    + under("/content_block_delta.delta", _DELTAS)
    + under("/message_delta.delta.stop_details", _DETAILS)
    + under("/message_delta.usage", _USAGE)
)
"""An event, by its type and path."""
