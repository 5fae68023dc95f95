"""Whether an answer is one: which ends of it may stand with which arguments of its calls, and what of it a client may miss by name."""

from __future__ import annotations

import pytest
from msgspec import Raw

from asgi_surface.errors import Code
from asgi_surface.ir import Alternative, Call, Citation, Form, Reasoning, Response, Seal, SealKind, Stop, Text, Usage
from asgi_surface.losses import LEFT, held
from asgi_surface.soundness import flaw, halves, whole
from asgi_surface.surfaces import GEMINI

WHOLE = ["{}", '{"a": 1}', ' {"a":{"b":[1e400]}}\n', "", '{"a":1,"a":2}', '{"a":"\\u00e9 é"}']
BROKEN = ["{", '{"a": "b', '{"a":1}}', "[]", "null", '"{}"', "x", " ", '{"a":' * 5000, "{'a': 1}", '{"a":NaN}', "{}{}"]
DONE = {Stop.END, Stop.STOP_SEQUENCE, Stop.TOOLS}


def answered(*parts, stop=Stop.TOOLS, more=()):
    return Response(id=None, model=None, parts=parts, stop=stop, more=more)


def called(arguments, form=Form.FUNCTION):
    return Call("c", "f", arguments, form)


@pytest.mark.parametrize("arguments", [*WHOLE, *BROKEN])
def test_a_calls_arguments_are_one_object_or_none(arguments):
    assert whole(called(arguments)) == (arguments in WHOLE)
    assert whole(called(arguments, Form.CUSTOM)), "free text is whole whatever it is"
    assert halves(answered(Text("{"), called(arguments))) == (arguments in BROKEN)


@pytest.mark.parametrize("arguments", [*WHOLE, *BROKEN])
@pytest.mark.parametrize("stop", Stop)
def test_only_an_answer_that_was_cut_may_hold_half_a_call(stop, arguments):
    found = flaw(answered(called("{}"), Text("x"), called(arguments), stop=stop))
    expected = Code.UPSTREAM_ERROR if stop is Stop.ERROR else Code.UPSTREAM_BAD_RESPONSE if stop in DONE and arguments in BROKEN else None
    assert (found and found.code) == expected
    assert found is None or not arguments.strip() or arguments not in found.message


@pytest.mark.parametrize("stop", Stop)
def test_free_text_is_no_flaw(stop):
    assert (flaw(answered(called("{", Form.CUSTOM), stop=stop)) is None) == (stop is not Stop.ERROR)


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (("{}", Stop.TOOLS), ("{}", Stop.TOOLS), None),
        (("{", Stop.LENGTH), ("{}", Stop.TOOLS), None),
        (("{}", Stop.TOOLS), ("{", Stop.LENGTH), None),
        (("{}", Stop.TOOLS), ("{", Stop.TOOLS), Code.UPSTREAM_BAD_RESPONSE),
        (("{", Stop.LENGTH), ("{", Stop.END), Code.UPSTREAM_BAD_RESPONSE),
        (("{", Stop.END), ("{}", Stop.LENGTH), Code.UPSTREAM_BAD_RESPONSE),
        (("{", Stop.END), ("{}", Stop.ERROR), Code.UPSTREAM_ERROR),
    ],
)
def test_of_several_answers_each_has_to_be_sound_by_its_own_end(first, second, code):
    further = Alternative(parts=(called(second[0]),), stop=second[1])
    response = answered(called(first[0]), stop=first[1], more=(further,))
    found = flaw(response)
    assert (found and found.code) == code
    assert halves(response) == ("{" in {first[0], second[0]})


# What may be lost -------------------------------------------------------------------------------------------------------------------------

SEAL = Seal("t", SealKind.THOUGHT, GEMINI)
CITED, LOGGED = Text("a", citations=(Citation("https://a.example"),)), Raw(b"[{}]")
SAID = {
    "answer:citations": {"parts": (CITED,)},
    "answer:logprobs": {"logprobs": LOGGED},
    "answer:seals": {"parts": (Reasoning("", SEAL),)},
    "answer:stop_sequence": {"stop_sequence": "x"},
    "answer:choices": {"more": (Alternative(),)},
    "answer:half_call": {"parts": (called("{"),), "stop": Stop.LENGTH},
    "answer:service_tier": {"service_tier": "flex"},
    "usage:cache_write": {"usage": Usage(cache_write=1)},
    "usage:audio": {"usage": Usage(audio_input=1)},
}
FURTHER = {
    "answer:citations": Alternative(parts=(CITED,)),
    "answer:logprobs": Alternative(logprobs=LOGGED),
    "answer:seals": Alternative(parts=(Text("a"), Call("c", "f", "{}", seal=SEAL))),
    "answer:stop_sequence": Alternative(stop_sequence="x"),
    "answer:half_call": Alternative(parts=(called("{"),)),
}


def test_every_name_has_an_answer_that_holds_it():
    assert SAID.keys() == LEFT.keys()


@pytest.mark.parametrize("name", SAID)
def test_what_an_answer_holds_is_named(name):
    assert held(Response(id=None, model=None, **SAID[name])) == {name}


@pytest.mark.parametrize("name", FURTHER)
def test_what_a_further_answer_holds_is_named_too(name):
    assert held(answered(Text("a"), more=(Alternative(parts=(Text("b"),)), FURTHER[name]))) == {name, "answer:choices"}


@pytest.mark.parametrize("usage", [None, Usage(), Usage(3, 2, cached=1, cache_write=0, reasoning=1, audio_input=0, audio_output=0)])
def test_a_count_of_nothing_is_no_loss(usage):
    assert held(Response(id="a", model="m", created=1, parts=(Text("a"), called("{}"), Reasoning("hm")), usage=usage)) == frozenset()


def test_speech_is_counted_whoever_spoke():
    assert held(Response(id=None, model=None, usage=Usage(audio_output=1))) == {"usage:audio"}


@pytest.mark.parametrize("stop", Stop)
def test_an_answer_that_stopped_for_a_call_has_one(stop):
    found = flaw(answered(Text("x"), stop=stop))
    codes = {Stop.TOOLS: Code.UPSTREAM_BAD_RESPONSE, Stop.ERROR: Code.UPSTREAM_ERROR}
    assert (found and found.code) == codes.get(stop)
