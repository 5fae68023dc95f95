"""Where a token stands among the parts of a content, in requests and answers alike. Knows neither.

A token proves the part that it stands on. Reasoning without words of its own lends its token to the part that follows, as Gemini does with its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from asgi_surface import ir

Json = dict[str, Any]


def signed(
    parts: Sequence[ir.Part],
    say: Callable[[ir.Part], Json | None],
    token: Callable[[ir.Part], str | None],
    carriers: tuple[type[ir.Part], ...],
) -> Iterator[Json]:
    """Each part as `say` has it (None: left out), with its token or the one lent by the part before. `carriers` are the kinds that take a loan."""
    lent = None
    for part, after in zip(parts, (*parts[1:], None), strict=False):
        own = token(part)
        if own and _wordless(part) and isinstance(after, carriers) and token(after) is None:
            lent = own
            continue
        said = None if _wordless(part) and own is None else say(part)
        if said is not None:
            yield said | ({"thoughtSignature": own or lent} if own or lent else {})
        lent = None


def _wordless(part: ir.Part) -> bool:
    return isinstance(part, ir.Reasoning) and not part.text
