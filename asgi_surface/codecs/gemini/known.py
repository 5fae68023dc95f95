"""The members of a Gemini answer, or of a chunk of one, that have a row, or that are read: what else one says is counted as unknown. Data only.

Unknown members of a part are read with it, and counted as `answer:part`.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.codecs.strangers import shape

KNOWN: Final = shape("""
. candidates createTime modelVersion modelStatus promptFeedback responseId usageMetadata error
candidates content citationMetadata finishMessage tokenCount finishReason groundingMetadata avgLogprobs index logprobsResult safetyRatings
candidates urlContextMetadata continuationToken
candidates.content parts role
promptFeedback blockReason blockReasonMessage safetyRatings
usageMetadata promptTokenCount candidatesTokenCount thoughtsTokenCount toolUsePromptTokenCount cachedContentTokenCount totalTokenCount
usageMetadata promptTokensDetails candidatesTokensDetails cacheTokensDetails toolUsePromptTokensDetails trafficType serviceTier
""")
"""By path. A chunk is an answer of its own."""
