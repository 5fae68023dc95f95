"""The table that says how an answer ends: it is total, and no walk through it ends an answer twice."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface.lifecycle import TABLE, Action, Kind, Lifecycle, State

TERMINALS = {Action.CLOSE, Action.FAIL}

# State by state, in the order of `Kind`: START PART FINISH USAGE END FAULT EOF CANCEL. A drop stays where it is, a cancel moves without a word.
EXPECTED = {
    State.NEW: "OPEN.open FAILED.fail FAILED.fail NEW.note FAILED.fail FAILED.fail FAILED.fail CANCELLED.drop",
    State.OPEN: "OPEN.drop OPEN.pass FINISHED.note OPEN.note FAILED.fail FAILED.fail FAILED.fail CANCELLED.drop",
    State.FINISHED: "FINISHED.drop FINISHED.pass FINISHED.note FINISHED.note DONE.close FAILED.fail DONE.close CANCELLED.drop",
    State.DONE: "DONE.drop DONE.drop DONE.drop DONE.note DONE.drop DONE.drop DONE.drop DONE.drop",
    State.FAILED: "FAILED.drop FAILED.drop FAILED.drop FAILED.note FAILED.drop FAILED.drop FAILED.drop FAILED.drop",
    State.CANCELLED: " ".join(["CANCELLED.drop"] * 8),
}


@pytest.mark.parametrize("state", State)
def test_every_cell(state):
    assert [f"{TABLE[state][kind][0].name}.{TABLE[state][kind][1].value}" for kind in Kind] == EXPECTED[state].split()


def test_the_table_is_total():
    assert {(state, kind) for state, row in TABLE.items() for kind in row} == {(state, kind) for state in State for kind in Kind}


def test_at_most_one_terminal_is_a_property_of_the_table():
    after = {TABLE[state][kind][0] for state in State for kind in Kind if TABLE[state][kind][1] in TERMINALS}
    reached: set[State] = set()
    while after - reached:
        reached |= after
        after = {TABLE[state][kind][0] for state in reached for kind in Kind}
    assert reached == {State.DONE, State.FAILED}
    assert not {TABLE[state][kind][1] for state in reached for kind in Kind} & TERMINALS


@given(st.lists(st.sampled_from(Kind), max_size=30))
@settings(max_examples=150, deadline=None, database=None)
def test_any_walk_ends_once(kinds):
    life = Lifecycle()
    assert life.state is State.NEW
    closed, actions = [life.closed], []
    for kind in kinds:
        actions.append(life.step(kind))
        closed.append(life.closed)
    assert sum(action in TERMINALS for action in actions) <= 1
    assert all(after or not before for before, after in pairwise(closed)), "what is closed stays closed"
    assert not any(action in {Action.OPEN, Action.PASS, *TERMINALS} for action, before in zip(actions, closed, strict=False) if before)


@given(st.lists(st.sampled_from([Kind.START, Kind.PART, Kind.USAGE, Kind.END, Kind.EOF]), max_size=12))
@settings(max_examples=60, deadline=None, database=None)
def test_no_success_without_a_finish(kinds):
    life = Lifecycle()
    assert Action.CLOSE not in [life.step(kind) for kind in kinds]
