"""Which search items of a conversation are the gateway's own: it wrote them into an answer, and the client sends them back. Knows no codec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "asf_ws_"
"""What the id of a search that the gateway ran begins with. A provider's own begin with `ws_`."""


def own(item: Mapping[str, object]) -> bool:
    """Whether an input item is a search that the gateway ran. No upstream knows it: what was found went to the model as a tool's result."""
    identity = item.get("id")
    return item.get("type") == "web_search_call" and isinstance(identity, str) and identity.startswith(PREFIX)
