"""What a resident is: an interceptor that runs a tool beside the model, so that one request takes several rounds of asking it.

Pure; knows no surface, no transport and no resident in particular.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from asgi_surface.interception import Interceptor, Rewriter
from asgi_surface.ir import Citation
from asgi_surface.members import Members


class Finding(Struct, frozen=True):
    """What one search gave: its sources, and the words for the model. A failed one has words too."""

    sources: tuple[Citation, ...]
    told: str
    failed: bool = False


NO_MORE: Final = Finding((), "The search failed: no more searches are allowed.", failed=True)
"""What a search gives that is not run any more."""
FAILED: Final = Finding((), "The search failed.", failed=True)
"""What it gives when it went wrong."""


class Session(Rewriter, ABC):
    """A resident's share of one planned request. It rewrites nothing: the answer is stitched from those of the rounds.

    `tool` is the name by which the client's surface knows the function that the model calls ("": the model has none); `rounds` says how many times
    the model may be asked.
    """

    tool: str
    rounds: int

    @abstractmethod
    async def search(self, query: str) -> Finding:
        """Runs one search. Raises nothing: what goes wrong is a failed finding."""

    @abstractmethod
    def next(self, turn: bytes, findings: Sequence[Finding], *, last: bool) -> Members:
        """The members of the next request: those of the one before, `turn` (an answer as the client's surface has it), and what its calls gave.

        In the `last` round the model can search no more.
        """


class Resident(ABC):
    """Shared by all requests; `name` stands in the plans it takes part in."""

    name: str

    @abstractmethod
    def visit(self) -> Interceptor:
        """The hook around one request. Its `open` gives the `Session`."""
