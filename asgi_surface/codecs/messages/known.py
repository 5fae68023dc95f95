"""The members of a Messages answer that have a row, or that are read: what else one says is counted as unknown. Data only."""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.strangers import shape

KNOWN: Final = shape("""
. id type role model content stop_reason stop_sequence stop_details usage container context_management diagnostics input_transformations
content/text type text citations
content/thinking type thinking signature
content/redacted_thinking type data
content/tool_use type id name input caller toolset_name
stop_details type category explanation fallback_credit_token fallback_has_prefill_claim recommended_model
usage input_tokens output_tokens cache_creation cache_creation_input_tokens cache_read_input_tokens output_tokens_details service_tier
usage inference_geo server_tool_use speed iterations fallback_credit
usage.output_tokens_details thinking_tokens
""")
"""By path."""
