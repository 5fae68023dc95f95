"""How a response may go and how it ends: THE terminal state machine, as one total table.

All state of a response's life is here; nobody else keeps a flag about it. The file knows nothing of surfaces, frames or which side is "us".
`close` and `fail` lead only to states whose rows contain neither, so "at most one terminal" is a property of the table.
"""

from __future__ import annotations

import enum
from typing import Final


class State(enum.IntEnum):
    """Where a response stands. From `DONE` on nothing more reaches the client."""

    NEW = 0
    OPEN = 1
    FINISHED = 2
    DONE = 3
    FAILED = 4
    CANCELLED = 5


class Kind(enum.IntEnum):
    """What can happen to a response."""

    START = 0
    PART = 1
    FINISH = 2
    USAGE = 3
    END = 4
    FAULT = 5
    EOF = 6
    CANCEL = 7


class Action(enum.Enum):
    """What the owner of the response does about it."""

    OPEN = "open"
    PASS = "pass"  # noqa: S105 -- an action, no password
    NOTE = "note"
    CLOSE = "close"
    FAIL = "fail"
    DROP = "drop"


Cell = tuple[State, Action]
_FAIL: Final[Cell] = (State.FAILED, Action.FAIL)
_CANCEL: Final[Cell] = (State.CANCELLED, Action.DROP)


def _row(state: State, **cells: Cell) -> dict[Kind, Cell]:
    return {kind: cells.get(kind.name, (state, Action.DROP)) for kind in Kind}


TABLE: Final[dict[State, dict[Kind, Cell]]] = {
    State.NEW: _row(
        State.NEW,
        START=(State.OPEN, Action.OPEN),
        PART=_FAIL,
        FINISH=_FAIL,
        USAGE=(State.NEW, Action.NOTE),
        END=_FAIL,
        FAULT=_FAIL,
        EOF=_FAIL,
        CANCEL=_CANCEL,
    ),
    State.OPEN: _row(
        State.OPEN,
        PART=(State.OPEN, Action.PASS),
        FINISH=(State.FINISHED, Action.NOTE),
        USAGE=(State.OPEN, Action.NOTE),
        END=_FAIL,
        FAULT=_FAIL,
        EOF=_FAIL,
        CANCEL=_CANCEL,
    ),
    # A further finish is noted: the weightiest wins. Text after a finish passes: providers send it.
    State.FINISHED: _row(
        State.FINISHED,
        PART=(State.FINISHED, Action.PASS),
        FINISH=(State.FINISHED, Action.NOTE),
        USAGE=(State.FINISHED, Action.NOTE),
        END=(State.DONE, Action.CLOSE),
        FAULT=_FAIL,
        EOF=(State.DONE, Action.CLOSE),
        CANCEL=_CANCEL,
    ),
    # Usage after the end counts for the record only.
    State.DONE: _row(State.DONE, USAGE=(State.DONE, Action.NOTE)),
    State.FAILED: _row(State.FAILED, USAGE=(State.FAILED, Action.NOTE)),
    State.CANCELLED: _row(State.CANCELLED),
}


class Lifecycle:
    """One response's walk through the table."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State.NEW

    def step(self, kind: Kind) -> Action:
        """Takes one event; says what to do about it."""
        self.state, action = TABLE[self.state][kind]
        return action

    @property
    def closed(self) -> bool:
        """Whether the terminal has been said."""
        return self.state >= State.DONE
