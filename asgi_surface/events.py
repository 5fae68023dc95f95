"""A streamed answer in no surface's words: what a decoder reads out of frames and an encoder writes into them.

Parts are addressed by index, in the order in which they were opened, so several may be open at a time. Knows no wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Raw, Struct

from asgi_surface.errors import ErrorFacts
from asgi_surface.ir import Call, Citation, Reasoning, Refusal, Seal, Search, Stop, Text, Usage
from asgi_surface.lifecycle import Kind


class Start(Struct, frozen=True, gc=False):
    """The answer begins. Absent facts are None."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
    service_tier: str | None = None


class Opened(Struct, frozen=True):
    """A part begins. Its text or arguments are what is known at once (mostly ""); the rest comes as `Grew`. Its seal comes as `Sealed`.

    `choice` says which of several answers it belongs to: 0, the first, unless the client asked for more.
    """

    index: int
    part: Text | Reasoning | Call | Refusal | Search
    choice: int = 0


class Grew(Struct, frozen=True, gc=False):
    """More text, reasoning, refusal, or call arguments."""

    index: int
    text: str


class Cited(Struct, frozen=True, gc=False):
    """A source of a text part.

    One that comes when its text has closed is `late`, by the name under which it is counted where parts are said one after the other.
    """

    index: int
    citation: Citation
    late: str = ""


class Logged(Struct, frozen=True, gc=False):
    """OpenAI's token entries (a JSON array) for text that grew."""

    index: int
    logprobs: Raw


class Sealed(Struct, frozen=True, gc=False):
    """The seal of a reasoning part or a call, whole."""

    index: int
    seal: Seal


class Found(Struct, frozen=True, gc=False):
    """What a search gave, whole. A search opens with its query alone."""

    index: int
    sources: tuple[Citation, ...]
    failed: bool = False


class Closed(Struct, frozen=True, gc=False):
    """A part is whole."""

    index: int


class Finish(Struct, frozen=True, gc=False):
    """Why the model stopped, the stop sequence it met, and in which of several answers."""

    stop: Stop
    sequence: str | None = None
    choice: int = 0


class Told(Struct, frozen=True, gc=False):
    """Which model answers, and in which service tier, where that is news since `Start`: OpenAI decides the tier later. None says nothing."""

    model: str | None = None
    service_tier: str | None = None


class UsageSeen(Struct, frozen=True, gc=False):
    """Tokens used so far; reports are cumulative."""

    usage: Usage


class End(Struct, frozen=True, gc=False):
    """The surface's own terminal."""


class Fault(Struct, frozen=True, gc=False):
    """The upstream's own error."""

    facts: ErrorFacts


PartEvent = Opened | Grew | Cited | Logged | Sealed | Found | Closed
Event = Start | Told | PartEvent | Finish | UsageSeen | End | Fault

KINDS: Final[dict[type, Kind]] = {
    Start: Kind.START,
    Told: Kind.USAGE,  # a fact beside the answer, which may come at any time
    Opened: Kind.PART,
    Grew: Kind.PART,
    Cited: Kind.PART,
    Logged: Kind.PART,
    Sealed: Kind.PART,
    Found: Kind.PART,
    Closed: Kind.PART,
    Finish: Kind.FINISH,
    UsageSeen: Kind.USAGE,
    End: Kind.END,
    Fault: Kind.FAULT,
}
"""What each event is to the lifecycle."""


class Ending(Struct, frozen=True):
    """How the answer ended, for the encoder's terminal: the weightiest reason seen, and the usage as far as the upstream said.

    `more` gives the reasons of the further answers by their number, where there are any.
    """

    stop: Stop
    sequence: str | None = None
    usage: Usage | None = None
    more: Mapping[int, Stop] = {}
