"""A converted stream between a scripted decoder and a recording encoder: what the client is told, and exactly one end."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from asgi_surface.errors import Code, ErrorFacts, GatewayError, UpstreamError
from asgi_surface.events import Cited, Closed, End, Ending, Fault, Finish, Found, Grew, Logged, Opened, Sealed, Start, Told, UsageSeen
from asgi_surface.framing import Framing
from asgi_surface.ir import Call, Citation, Form, Reasoning, Seal, SealKind, Search, Stop, Text, Usage
from asgi_surface.lifecycle import State
from asgi_surface.losses import LEFT, held
from asgi_surface.surfaces import GEMINI
from asgi_surface.translation import Sequencer, Translation

FRAME = b"data: x\n\n"
UNSAYABLE = UpstreamError(Code.UPSTREAM_BAD_RESPONSE, "no place for this")
OVERLOADED = ErrorFacts("too much")


class Script:
    """A decoder that reads each frame as the next of its lists of events. `last` are those at the end of the body."""

    def __init__(self, *frames, last=()):
        self.unread = ["answer:x"]
        self._frames = list(frames)
        self._last = last

    def feed(self, frame):
        events = self._frames.pop(0)
        return self._read(events)

    def eof(self):
        return self._read(self._last)

    def _read(self, events):
        if events is None:
            raise ValueError("unreadable")
        return events


class Record:
    """An encoder that notes what it is told and writes one frame for each. It cannot say the events of `unsayable`."""

    def __init__(self, *, sequential=False, several=False, unsayable=(), noted=None):
        self.sequential, self.several = sequential, several
        self.told = []
        self.noted = [] if noted is None else noted
        self._unsayable = unsayable

    def open(self, start, usage):
        return self._note("open", start, usage)

    def note(self, start, usage):
        self.noted.append((start, usage))

    def part(self, event):
        if event in self._unsayable:
            raise UNSAYABLE
        return self._note("part", event)

    def close(self, ending):
        if ending.stop in self._unsayable:
            raise UNSAYABLE
        return self._note("close", ending)

    def fail(self, error):
        return self._note("fail", error.code)

    def _note(self, *said):
        self.told.append(said)
        return [(b"", said[0].encode())]


def translated(*frames, framing=Framing.SSE, eof_ends=True, chars=99, event_bytes=99, upstream=Framing.SSE, last=(), **options):
    record = Record(**options)
    one = Translation(
        Script(*frames, last=last),
        record,
        upstream=upstream,
        downstream=framing,
        event_bytes=event_bytes,
        output_chars=chars,
        eof_ends=eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )
    return one, record.told


def opened(index=0, choice=0):
    return Opened(index, Text(""), choice)


def called(arguments, form=Form.FUNCTION, choice=0):
    """The events of a call whose arguments come in two pieces."""
    half = len(arguments) // 2
    return [Opened(1, Call("c", "f", arguments[:half], form), choice), Grew(1, arguments[half:]), LAST]


START, CLOSED, FINISH, END = Start("a", "up"), Closed(0), Finish(Stop.END), End()
HI = Grew(0, "hi")
USED, MORE = UsageSeen(Usage(3, 1)), UsageSeen(Usage(output=2))
TRUNCATED, BAD = ("fail", Code.UPSTREAM_TRUNCATED), ("fail", Code.UPSTREAM_BAD_RESPONSE)
BEGUN = ("open", START, None)
LAST = Closed(1)
SECOND = Finish(Stop.LENGTH, "y", 1)


def parts(*events):
    return [("part", event) for event in events]


def closed(stop=Stop.END, sequence=None, usage=None, more=()):
    return ("close", Ending(stop, sequence, usage, dict(more)))


TOLD = {
    "an answer": ([START, opened(), HI, CLOSED, FINISH, END], [BEGUN, *parts(opened(), HI, CLOSED), closed()]),
    "usage before, with and after the finish": (
        [USED, START, FINISH, MORE, UsageSeen(Usage(cached=1)), END],
        [("open", START, Usage(3, 1)), closed(usage=Usage(3, 2, 1))],
    ),
    "a second start": ([START, Start("b"), FINISH, END], [BEGUN, closed()]),
    "the weightiest finish stands": (
        [START, Finish(Stop.LENGTH, "x"), FINISH, Finish(Stop.TOOLS), END],
        [BEGUN, closed(Stop.LENGTH, "x")],
    ),
    "text after the finish": ([START, opened(), FINISH, HI, END], [BEGUN, *parts(opened(), HI, CLOSED), closed()]),
    "parts that stay open": ([START, opened(), opened(1), FINISH, END], [BEGUN, *parts(opened(), opened(1), CLOSED, Closed(1)), closed()]),
    "late events": ([START, FINISH, END, END, HI, Fault(OVERLOADED), START], [BEGUN, closed()]),
    "no finish": ([START, opened(), END], [BEGUN, *parts(opened()), TRUNCATED]),
    "nothing at all": ([END], [TRUNCATED]),
    "a finish without a start": ([FINISH], [TRUNCATED]),
    "a part without a start": ([opened()], [TRUNCATED]),
    "an error": ([START, Fault(OVERLOADED), FINISH, END, HI], [BEGUN, ("fail", Code.UPSTREAM_ERROR)]),
    "no finish of the first": ([START, opened(), SECOND, END], [BEGUN, *parts(opened()), TRUNCATED]),
    "the model broke off": ([START, Finish(Stop.ERROR), FINISH, END], [BEGUN, ("fail", Code.UPSTREAM_ERROR)]),
}


@pytest.mark.parametrize("how", ["one frame", "a frame each", "one chunk"])
@pytest.mark.parametrize("case", TOLD)
def test_what_the_client_is_told(case, how):
    events, expected = TOLD[case]
    one, told = translated(*([events] if how == "one frame" else [[event] for event in events]))
    chunks = {"one frame": [FRAME], "a frame each": [FRAME] * len(events), "one chunk": [FRAME * len(events)]}[how]
    out = b"".join([one.feed(chunk) for chunk in chunks])
    assert told == expected
    assert out == b"".join(b"data: %b\n\n" % said[0].encode() for said in expected)
    assert one.closed
    assert (one.fault and one.fault.code) == (expected[-1][1] if expected[-1][0] == "fail" else None)
    assert one.unread == ("answer:x",)


def test_usage_after_the_end_counts_for_the_record():
    one, told = translated([START, FINISH, END], [USED])
    one.feed(FRAME * 2)
    assert one.usage == Usage(3, 1)
    assert told == [BEGUN, closed()]
    assert one.state is State.DONE


def test_pings_are_no_beats_and_comments_no_frames():
    one, _ = translated([], [START], [])
    one.feed(b": x\n\n" + FRAME * 3)
    assert (one.frames, one.beats, one.state, one.stop) == (3, 1, State.OPEN, None)


def test_an_error_before_all_else_is_an_opening_fault():
    one, told = translated([USED, Fault(OVERLOADED), Fault(ErrorFacts("again"))])
    one.feed(FRAME)
    assert one.opening_fault == OVERLOADED
    assert told == [("fail", Code.UPSTREAM_ERROR)]
    later, _ = translated([START, Fault(OVERLOADED)])
    later.feed(FRAME)
    assert (later.opening_fault, later.state) == (None, State.FAILED)


def test_what_cannot_be_read_ends_the_stream():
    one, told = translated([START], None, [FINISH])
    one.feed(FRAME * 3)
    assert told == [BEGUN, BAD]
    assert (one.frames, one.state) == (2, State.FAILED)
    array, told = translated(upstream=Framing.JSON_ARRAY)
    array.feed(b"{}")
    assert told == [BAD]


@pytest.mark.parametrize(
    ("eof_ends", "events", "rest", "expected"),
    [
        (True, [START, FINISH], b"", closed()),
        (True, [START, FINISH], b": x", closed()),
        (True, [START, FINISH], b"data: {", TRUNCATED),
        (True, [START], b"", TRUNCATED),
        (False, [START, FINISH], b"", TRUNCATED),
    ],
)
def test_the_body_ends(eof_ends, events, rest, expected):
    one, told = translated(events, eof_ends=eof_ends)
    one.feed(FRAME + rest)
    one.eof()
    assert told == [BEGUN, expected]


@pytest.mark.parametrize(
    ("rest", "last", "expected"),
    [
        (b"", [HI], [*parts(HI, CLOSED), closed()]),
        (b"", None, [BAD]),
        (b"data: {", [HI], [TRUNCATED]),
        (b"data: x\n\n", [HI], [*parts(CLOSED), closed()]),
    ],
)
def test_what_a_decoder_says_at_the_end_of_the_body(rest, last, expected):
    """It is heard where the end of the body is the answer's: not behind half a frame, nor behind a terminal."""
    one, told = translated([START, opened(), FINISH], [END], last=last)
    one.feed(FRAME + rest)
    one.eof()
    assert told == [BEGUN, *parts(opened()), *expected]


SOURCE = Citation("u", "t", 0, 1)


@pytest.mark.parametrize(("sequential", "told", "unread"), [(False, [LATE := Cited(0, SOURCE, "answer:y")], ()), (True, [], ("answer:y",))])
def test_a_late_source_is_told_or_counted(sequential, told, unread):
    """What is said part after part cannot go back to one that has closed."""
    one, said = translated([START, opened(), HI, CLOSED, opened(1), FINISH, LATE, LATE, LAST, END], sequential=sequential)
    one.feed(FRAME)
    assert said == [BEGUN, *parts(opened(), HI, CLOSED, opened(1), *told * 2, LAST), closed()]
    assert one.unread == ("answer:x", *unread)
    assert ("answer:citations" in held(one.held)) is bool(told)


def test_the_last_frame_may_lack_its_blank_line():
    one, told = translated([START], [FINISH, END], eof_ends=False)
    one.feed(FRAME + b"data: {}")
    one.eof()
    assert told == [BEGUN, closed()]


def test_nothing_follows_the_end():
    one, told = translated([START, FINISH], [END], [HI])
    one.feed(FRAME)
    assert one.fail(UNSAYABLE)
    assert one.feed(FRAME) + one.eof() + one.fail(UNSAYABLE) == b""
    assert told == [BEGUN, BAD]


def test_a_client_that_left_is_told_nothing():
    one, told = translated([START], [FINISH, END])
    one.feed(FRAME)
    one.cancel()
    assert one.feed(FRAME) + one.eof() + one.fail(UNSAYABLE) == b""
    assert told == [BEGUN]
    assert (one.state, one.fault) == (State.CANCELLED, None)


def test_a_frame_has_a_bound():
    one, told = translated([START], event_bytes=len(FRAME))
    one.feed(FRAME + b"data: " + b"x" * 99)
    assert told == [BEGUN, ("fail", Code.EVENT_TOO_LARGE)]


@pytest.mark.parametrize(("chars", "ending"), [(4, closed()), (3, ("fail", Code.OUTPUT_TOO_LARGE))])
def test_the_answer_has_a_bound(chars, ending):
    one, told = translated([START, opened(), HI], [HI, CLOSED, FINISH, END], chars=chars)
    one.feed(FRAME * 2)
    assert told[-1] == ending


@pytest.mark.parametrize(("framing", "body"), [(Framing.JSON_ARRAY, b"[open,part,part,close]"), (None, b"openpartpartclose")])
@pytest.mark.parametrize("sequential", [False, True])
def test_a_whole_answer_is_said(framing, body, sequential):
    one, told = translated(framing=framing, sequential=sequential)
    assert one.say([START, opened(), FINISH]) == body
    assert told == [BEGUN, *parts(opened(), CLOSED), closed()]
    assert (one.frames, one.beats) == (0, 0)


def test_an_answer_that_ends_in_an_error_is_no_answer():
    one, told = translated(framing=Framing.JSON_ARRAY)
    assert one.say([START, Finish(Stop.ERROR)]) == b"[open,fail]"
    assert told == [BEGUN, ("fail", Code.UPSTREAM_ERROR)]


# Several answers --------------------------------------------------------------------------------------------------------------------------

TWO = [START, opened(), opened(1, 1), HI, Grew(1, "yo"), CLOSED, SECOND, LAST, FINISH, END]


@pytest.mark.parametrize("sequential", [False, True])
def test_several_answers_are_told_to_a_client_whose_surface_has_them(sequential):
    one, told = translated(TWO, several=True, sequential=sequential)
    one.feed(FRAME)
    ordered = parts(opened(), HI, CLOSED, opened(1, 1), Grew(1, "yo"), LAST) if sequential else parts(*TWO[1:6], LAST)
    assert told == [BEGUN, *ordered, closed(more={1: Stop.LENGTH})]
    assert (one.stop, one.held.more[0].stop, held(one.held)) == (Stop.END, Stop.LENGTH, {"answer:choices"})


@pytest.mark.parametrize("sequential", [False, True])
def test_of_several_answers_another_client_gets_the_first(sequential):
    one, told = translated(TWO, sequential=sequential)
    one.feed(FRAME)
    assert told == [BEGUN, *parts(opened(), HI, CLOSED), closed()]
    assert held(one.held) == {"answer:choices"}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("said", [[opened(1, 1), LAST], [opened(1, 1)]])
def test_an_answer_that_began_has_to_end(several, said):
    one, told = translated([START, opened(), CLOSED, *said, FINISH, END], several=several)
    one.feed(FRAME)
    assert (told[-1], one.fault.code) == (TRUNCATED, Code.UPSTREAM_TRUNCATED)


@pytest.mark.parametrize("several", [False, True])
def test_if_one_of_several_broke_off_there_is_no_answer(several):
    one, told = translated([START, Finish(Stop.ERROR, choice=1), FINISH, END], several=several)
    one.feed(FRAME)
    assert told == [BEGUN, ("fail", Code.UPSTREAM_ERROR)]


def test_an_answer_without_words_may_end_beside_others():
    one, told = translated([START, FINISH, SECOND, Finish(Stop.FILTER, choice=2), END], several=True)
    one.feed(FRAME)
    assert told == [BEGUN, closed(more={1: Stop.LENGTH, 2: Stop.FILTER})]


# What is known beside the parts --------------------------------------------------------------------------------------------------------------


def test_the_encoder_hears_of_news_while_it_writes():
    """Before the answer it comes with the opening; after its end nobody is told."""
    late = [FINISH, Told("up-2"), Told(service_tier="flex"), END, Told("late"), MORE]
    noted = []
    one, told = translated([USED, START, Told(service_tier="auto"), opened(), MORE, CLOSED, *late], noted=noted)
    one.feed(FRAME)
    assert told == [("open", START, Usage(3, 1)), *parts(opened(), CLOSED), closed(usage=Usage(3, 2))]
    assert noted == [
        (Start("a", "up", service_tier="auto"), Usage(3, 1)),
        (Start("a", "up", service_tier="auto"), Usage(3, 2)),
        (Start("a", "up-2", service_tier="auto"), Usage(3, 2)),
        (Start("a", "up-2", service_tier="flex"), Usage(3, 2)),
    ]


@pytest.mark.parametrize("end", [[END], [Fault(OVERLOADED)]])
def test_a_tier_that_is_told_late_is_remembered(end):
    one, _ = translated([START, opened(), Told(service_tier="flex"), FINISH, *end])
    one.feed(FRAME)
    assert (one.held.service_tier, held(one.held)) == ("flex", {"answer:service_tier"})


# Half a call ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("stop", [stop for stop in Stop if stop is not Stop.ERROR])
@pytest.mark.parametrize(
    ("arguments", "form", "sound"), [('{"a":', Form.FUNCTION, False), ('{"a":1}', Form.FUNCTION, True), ("{", Form.CUSTOM, True)]
)
def test_half_a_call_is_no_end_of_an_answer_that_says_it_is_done(arguments, form, sound, stop, choice):
    """What has streamed stays; cut short by something else it may stand, and until that is known half a call is not told as one that has closed."""
    call = called(arguments, form, choice)
    one, told = translated([START, opened(), CLOSED, *call, Finish(stop, choice=choice), *[FINISH] * choice, END], several=True)
    one.feed(FRAME)
    good = sound or stop not in {Stop.END, Stop.STOP_SEQUENCE, Stop.TOOLS}
    assert told == [
        BEGUN,
        *parts(opened(), CLOSED, *(call if good else call[:-1])),
        closed(*([Stop.END] if choice else [stop]), more={1: stop} if choice else {}) if good else BAD,
    ]
    assert ("answer:half_call" in held(one.held)) == (not sound)


# What is remembered -----------------------------------------------------------------------------------------------------------------------

SEAL, SOURCE = Seal("t", SealKind.THOUGHT, GEMINI), Citation("https://a.example")
KEPT = {
    "answer:service_tier": [Start("a", service_tier="flex")],
    "answer:seals": [START, Opened(0, Reasoning("")), Grew(0, "hm"), Sealed(0, SEAL)],
    "answer:citations": [START, opened(), HI, Cited(0, SOURCE)],
    "answer:logprobs": [START, opened(), HI, Logged(0, Raw(b"[]"))],
    "answer:stop_sequence": [START, Finish(Stop.STOP_SEQUENCE, "x")],
    "answer:choices": [START, SECOND],
    "answer:half_call": [START, *called("{")],
    "usage:cache_write": [START, UsageSeen(Usage(cache_write=1))],
    "usage:audio": [START, UsageSeen(Usage(audio_output=1))],
}


def test_every_loss_is_known():
    assert KEPT.keys() == LEFT.keys()


@pytest.mark.parametrize("name", KEPT)
def test_what_may_be_lost_is_remembered_without_the_words(name):
    one, _ = translated(KEPT[name])
    one.feed(FRAME)
    assert held(one.held) == {name}
    assert all(part.text == "" for part in one.held.parts if not isinstance(part, Call | Reasoning))


def test_every_source_is_remembered_once():
    """Some surfaces have a place for some sources only, so one cannot stand for all."""
    other = Citation("https://b.example")
    cited = [Cited(0, SOURCE), Cited(0, other), Cited(0, Citation(SOURCE.url, "again", 1, 2)), Cited(1, other)]
    one, _ = translated([START, opened(), opened(1), opened(2), *cited])
    one.feed(FRAME)
    assert [part.citations for part in one.held.parts] == [(SOURCE, other), (other,), ()]


def test_of_reasoning_the_first_piece_is_remembered():
    thought = [Opened(0, Reasoning("")), Grew(0, ""), Grew(0, "first"), Grew(0, " second"), CLOSED]
    one, _ = translated([START, *thought, FINISH, END])
    one.feed(FRAME)
    assert [part.text for part in one.held.parts] == ["first"]


def test_what_a_search_found_passes():
    search = [Opened(0, Search("s", "q")), Found(0, (SOURCE,)), CLOSED]
    one, told = translated([START, *search, FINISH, END])
    one.feed(FRAME)
    assert told == [BEGUN, *parts(*search), closed()]


# What the client's surface cannot say ------------------------------------------------------------------------------------------------------

BAD_WORD = Grew(1, "bad")


@pytest.mark.parametrize(
    ("unsayable", "expected"),
    [
        # Held back until the part before has closed.
        (BAD_WORD, parts(opened(), CLOSED, opened(1))),
        # Only when the answer ends is the second part known to be whole.
        (LAST, parts(opened(), CLOSED, opened(1), BAD_WORD)),
        (Stop.END, parts(opened(), CLOSED, opened(1), BAD_WORD, LAST)),
    ],
)
@pytest.mark.parametrize("size", [1, 99])
def test_what_was_said_before_it_stays_and_no_success_follows(unsayable, expected, size):
    events = [START, opened(), opened(1), BAD_WORD, CLOSED, FINISH, END]
    one, told = translated(*[[event] for event in events], sequential=True, unsayable=[unsayable])
    whole = FRAME * len(events)
    out = b"".join([one.feed(whole[at : at + size]) for at in range(0, len(whole), size)])
    assert told == [BEGUN, *expected, BAD]
    assert out == b"".join(b"data: %b\n\n" % said[0].encode() for said in told)
    assert one.fault is UNSAYABLE
    assert one.closed


# One part at a time ------------------------------------------------------------------------------------------------------------------------

WORDS = st.lists(st.text("ab", max_size=2), max_size=3)


def told_of(index, words):
    return [opened(index), *(Grew(index, word) for word in words), Closed(index)]


@st.composite
def interleaved(draw):
    """The events of some parts, mixed; each part's own in their order."""
    queues = [told_of(index, words) for index, words in enumerate(draw(st.lists(WORDS, min_size=1, max_size=4)))]
    mixed = []
    while queues:
        queue = draw(st.sampled_from(queues))
        mixed.append(queue.pop(0))
        queues = [one for one in queues if one]
    return mixed


@settings(max_examples=200)
@given(interleaved())
def test_one_part_at_a_time_and_nothing_is_lost(events):
    sequencer = Sequencer()
    said = [list(sequencer.feed(event)) for event in events]
    flat = [event for some in said for event in some]
    first_seen = list(dict.fromkeys(event.index for event in events))
    assert flat == [event for index in first_seen for event in events if event.index == index]
    waiting = list(first_seen)
    for event, some in zip(events, said, strict=True):
        assert bool(some) == (event.index == waiting[0]), "the first part streams live, the others wait"
        waiting = [index for index in waiting if Closed(index) not in some]


# Any sequence of events --------------------------------------------------------------------------------------------------------------------

INDICES = st.integers(0, 2)
CHOICES = st.sampled_from([0, 0, 0, 1])
ANYTHING = st.one_of(
    st.builds(Start, st.none() | st.just("a")),
    st.builds(opened, INDICES, CHOICES),
    st.builds(Opened, INDICES, st.just(Call("c", "f", "{")), CHOICES),
    st.builds(Grew, INDICES, st.text("ab}", max_size=3)),
    INDICES.map(lambda index: Cited(index, SOURCE)),
    INDICES.map(lambda index: Logged(index, Raw(b"[]"))),
    INDICES.map(lambda index: Sealed(index, SEAL)),
    st.builds(Closed, INDICES),
    st.builds(Finish, st.sampled_from(Stop), choice=CHOICES),
    st.builds(UsageSeen, st.builds(Usage, st.none() | st.integers(0, 9))),
    st.just(END),
    st.just(Fault(OVERLOADED)),
)


def sane(steps):
    """Without what no decoder says: a part that opens twice, more of one that is not open, a seal of words, a source of a call."""
    kinds = {}

    def said(event):
        if isinstance(event, Opened):
            return kinds.setdefault(event.index, event) is event
        wrong = {Cited: Call, Sealed: Text}.get(type(event), ())
        return not hasattr(event, "index") or (event.index in kinds and not isinstance(kinds[event.index].part, wrong))

    return [[event for event in step if said(event)] if isinstance(step, list) else step for step in steps]


ENDS = {"eof": Translation.eof, "fail": lambda one: one.fail(UNSAYABLE), "cancel": Translation.cancel}
BEGINNINGS = st.sampled_from([[], [[START]], [[START, opened()]], [[START, FINISH]]])  # by chance alone an answer would hardly ever come to an end
STEPS = st.lists(st.lists(ANYTHING, max_size=4) | st.none() | st.sampled_from([*ENDS]), max_size=12)
LETTERS = {"open": "o", "part": "p", "close": "c", "fail": "f"}


@settings(max_examples=300)
@given(BEGINNINGS, STEPS, st.booleans(), st.booleans(), st.lists(ANYTHING | st.sampled_from(Stop), max_size=2))
@example([[START, opened(), FINISH]], ["eof", [END], "fail"], True, True, [])
@example([[START, opened(), FINISH]], [[END, END], "cancel"], False, True, [])
@example([[START]], ["cancel", [FINISH, END]], False, False, [])
def test_never_two_terminals_and_nothing_behind_one(beginning, steps, eof_ends, sequential, unsayable):
    steps = sane([*beginning, *steps])
    frames = [step for step in steps if not isinstance(step, str)]
    one, told = translated(*frames, eof_ends=eof_ends, sequential=sequential, chars=9, unsayable=unsayable)
    for step in steps:
        left = one.state is State.CANCELLED
        before = len(told)
        ENDS[step](one) if isinstance(step, str) else one.feed(FRAME)
        assert not left or len(told) == before
    said = "".join(LETTERS[said[0]] for said in told)
    assert re.fullmatch("(op*)?f?|op*c", said)
    assert one.closed == (said[-1:] in {"c", "f"} or one.state is State.CANCELLED)
    if said.endswith("c"):
        assert isinstance(one.stop, Stop), "no success without a finish"
        assert one.fault is None
        assert one.stop is not Stop.ERROR
    if said.endswith("f"):
        assert isinstance(one.fault, GatewayError)


@settings(max_examples=100)
@given(st.lists(ANYTHING, max_size=12))
def test_cutting_the_frames_otherwise_changes_nothing(events):
    [events] = sane([events])
    whole, told = translated(events, sequential=True)
    apart, said = translated(*[[event] for event in events], sequential=True)
    out = whole.feed(FRAME) + whole.eof()
    assert apart.feed(FRAME * len(events)) + apart.eof() == out
    assert said == told
