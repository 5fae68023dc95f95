"""Whether an answer is one: what no client may be told as a success, whichever surfaces it came from and goes to.

One rule for whole answers and for streams. Pure; knows no wire.
"""

from __future__ import annotations

from typing import Final

import msgspec

from asgi_surface.errors import Code, UpstreamError
from asgi_surface.ir import Alternative, Call, Form, Response, Stop
from asgi_surface.members import Members

_OBJECT: Final = msgspec.json.Decoder(Members)

ENDED: Final = frozenset({Stop.END, Stop.STOP_SEQUENCE, Stop.TOOLS})
"""Reasons by which a model says that it was done. With every other one the last that it wrote may be half."""


def whole(call: Call) -> bool:
    """Whether a call's input can be read: free text always, arguments as a JSON object, or as nothing at all."""
    if call.form is Form.CUSTOM or not call.arguments:
        return True
    try:
        _OBJECT.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def halves(response: Response) -> bool:
    """Whether any of the answers holds half a call."""
    return any(_broken(one) for one in response.answers)


def flaw(response: Response) -> UpstreamError | None:
    """The error that stands in the answer's place: its model broke off, or says that it has finished with half a call, or with one that is none."""
    answers = response.answers
    if any(one.stop is Stop.ERROR for one in answers):
        return UpstreamError(Code.UPSTREAM_ERROR, "the model broke off with an error")
    if any(one.stop in ENDED and _broken(one) for one in answers):
        return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream called a tool with arguments that are no JSON object")
    if any(one.stop is Stop.TOOLS and not any(isinstance(part, Call) for part in one.parts) for one in answers):
        return UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "the upstream says that it called a tool, and called none")
    return None


def _broken(answer: Response | Alternative) -> bool:
    return any(isinstance(part, Call) and not whole(part) for part in answer.parts)
