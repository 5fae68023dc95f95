"""Reads the facts of a response object: an unstreamed answer, or what a terminal event carries. Knows nothing of events."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from asgi_surface.codecs import openai_wire, reading
from asgi_surface.codecs.base import Sight, Signal
from asgi_surface.ir import Stop, weightier


class Answer(Struct):
    """The members of a response object that say how it went."""

    id: Any = None
    object: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: Any = None
    usage: Any = None
    output: Any = None


ANSWER: Final = msgspec.json.Decoder(Answer)

RUNNING: Final = frozenset({"queued", "in_progress"})
"""What a response says of itself that is not over yet."""
# A background response (`queued`, `in_progress`) is a whole answer though its run goes on.
_STOPS: Final[dict[str, Stop]] = {"completed": Stop.END, "failed": Stop.ERROR}
_INCOMPLETE: Final[dict[str, Stop]] = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.FILTER}


def finished(answer: Answer, stop: Stop | None) -> tuple[Signal, ...]:
    """Finish, usage and end of a response object. `stop` is what its event or status says; the reason of an incomplete one says more."""
    why = reading.reason(_INCOMPLETE, reading.mapping(answer.incomplete_details).get("reason"))
    return (*reading.finish(stop if why is None else why), *reading.spent(openai_wire.usage(answer.usage)), reading.END)


def failed(answer: Answer) -> bool:
    """True if the response says of itself that it failed, whatever the event is called that carries it."""
    return answer.status == "failed" or bool(answer.error and answer.status != "completed")


def terminal(answer: Answer, stop: Stop) -> tuple[Signal, ...]:
    """The facts of the response that a terminal event carries; `stop` is what the event says of it, which the response's own status may deny.

    One that failed is a fault. One that still runs has not finished.
    """
    if failed(answer):
        return (*reading.spent(openai_wire.usage(answer.usage)), reading.fault(reading.facts_of({"error": answer.error})))
    if answer.status in RUNNING:
        return (*reading.spent(openai_wire.usage(answer.usage)), reading.END)
    agrees = answer.status == "completed" or not isinstance(answer.status, str)
    return finished(answer, stop if agrees else weightier(stop, Stop.OTHER))


def document(body: bytes) -> Sight:
    """The facts of an answer; or the fault, where it is only an error: a response that failed has an id and is an answer.

    Raises `ValueError` when the body is no JSON object.
    """
    answer = reading.decode(ANSWER, body)
    if answer.object == "error" or (answer.error and not answer.id):
        return Sight((reading.fault(reading.error_facts(body)),))
    return Sight(finished(answer, reading.reason(_STOPS, answer.status)), reading.size(answer.output))
