"""A body as members with their exact bytes: one reading, or none."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_surface import members as m
from asgi_surface.errors import Code, RequestError

EXOTIC = b'{ "a" : 1.0e3 ,"b":"\\u00e9\\/", "c":{"z": 12345678901234567890123 , "y":[ ]},"\\u0064":null}'


def test_members_keep_their_bytes():
    members = m.parse(EXOTIC)
    assert {name: bytes(raw) for name, raw in members.items()} == {
        "a": b"1.0e3",
        "b": b'"\\u00e9\\/"',
        "c": b'{"z": 12345678901234567890123 , "y":[ ]}',
        "d": b"null",
    }
    assert m.encode(members) == b'{"a":1.0e3,"b":"\\u00e9\\/","c":{"z": 12345678901234567890123 , "y":[ ]},"d":null}'


@pytest.mark.parametrize(
    ("body", "words", "pointer"),
    [
        (b"", "not JSON: it ends too early", None),
        (b'{"a":1} x', "not JSON: byte 9", None),
        (b"[1]", "must be a JSON object", None),
        (b'{"a":"\xff"}', "not UTF-8 (byte 6)", None),
        (b'{"a":' + b"[" * 100_000, "nested too deeply", None),
        (b'{"a":1,"a":1}', "twice", "/a"),
        (b'{"a":1,"b":2,"a":3}', "twice", "/a"),
        (b'{"b":2,"a":12,"a":1}', "twice", "/a"),
        (b'{"a":1,"a":12}', "twice", "/a"),
        (b'{"model":"x","mod\\u0065l":"y"}', "twice", "/model"),
        (b'{"a/b~":1 , "a/b~" : 1}', "twice", "/a~1b~0"),
    ],
)
def test_bodies_without_one_reading_are_refused(body, words, pointer):
    with pytest.raises(RequestError) as caught:
        m.parse(body)
    assert (caught.value.code, caught.value.status, caught.value.pointer) == (Code.MALFORMED_BODY, 400, pointer)
    assert words in caught.value.message


def test_an_empty_object_is_an_object():
    assert m.parse(b" { } ") == {}


NAMES = st.text(max_size=3)
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.sampled_from([None, 1]))
@settings(max_examples=200)
def test_a_repeated_name_is_found_and_nothing_else_is(pairs, indent):
    inside = ",".join(f"{json.dumps(name)}:{json.dumps(value, indent=indent)}" for name, value in pairs)
    document = f"{{{inside}}}".encode()
    names = [name for name, _ in pairs]
    found = m.repeated(document, msgspec.json.decode(document, type=m.Members))
    assert (found is None) == (len(set(names)) == len(names))
    assert found is None or names.count(found) > 1


def test_reading_one_member():
    numbers = msgspec.json.Decoder(list[int])
    members = m.parse(b'{"n":[1,2],"bad":[1,"x"],"deep":' + b"[" * 900 + b"]" * 900 + b"}")
    assert m.read(members, "n", numbers) == [1, 2]
    assert m.read(members, "absent", numbers) is None
    with pytest.raises(RequestError) as caught:
        m.read(members, "bad", numbers)
    assert caught.value.pointer == "/bad/1"


def test_reading_a_member_that_is_nested_too_deeply():
    raw = msgspec.Raw(b'{"inner":' * 20_000 + b"null" + b"}" * 20_000)
    with pytest.raises(RequestError) as caught:
        m.read({"deep": raw}, "deep", msgspec.json.Decoder(list[list[dict[str, object]]] | dict[str, object]))
    assert (caught.value.pointer, caught.value.message) == ("/deep", "nested too deeply")


class Part(msgspec.Struct):
    text: str


class Turn(msgspec.Struct):
    parts: list[Part]


def test_pointers_from_what_msgspec_says():
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b'{"parts":[{"text":"a"},{"text":1}]}', type=Turn)
    assert m.pointer_of(caught.value, "/messages/0") == "/messages/0/parts/1/text"
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b"1", type=Turn)
    assert m.pointer_of(caught.value) == ""
