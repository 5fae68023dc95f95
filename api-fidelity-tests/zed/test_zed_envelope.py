"""The envelope taken off and put on: strict, and nothing of the request within is touched."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from asgi_surface.codecs.zed.envelope import INNER, PROVIDERS, unwrap, wrap
from asgi_surface.errors import Code, RequestError
from asgi_surface.inbound import outward, received
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, ZED, Endpoint, Operation, find

GEN, COUNT = Operation.GENERATE, Operation.COUNT_TOKENS
REQUEST = {"model": "m", "messages": []}
SENT = {"thread_id": "t", "prompt_id": "p", "provider": "anthropic", "model": "m", "provider_request": REQUEST}


def said(**members):
    """Zed's envelope with members changed, or taken out by None."""
    return json.dumps({name: value for name, value in {**SENT, **members}.items() if value is not None}).encode()


def test_every_word_for_a_provider_has_its_surface():
    assert INNER == {"anthropic": MESSAGES, "open_ai": RESPONSES, "google": GEMINI, "x_ai": CHAT, "baseten": CHAT}
    assert {surface: INNER[word] for surface, word in PROVIDERS.items()} == {surface: surface for surface in (MESSAGES, RESPONSES, GEMINI, CHAT)}


@pytest.mark.parametrize("spelled", ["m", "models/m", None])
@pytest.mark.parametrize("model", ["m", "models/m"])
def test_geminis_path_names_the_model(spelled, model):
    request = {"contents": [], **({} if spelled is None else {"model": spelled})}
    carried, inner = unwrap(parse(said(provider="google", model=model, provider_request=request)))
    assert (carried.surface, carried.model, inner) == (GEMINI, model, {"contents": Raw(b"[]")})


def test_what_stands_around_the_request_is_kept_as_it_came():
    body = b'{"intent":"user_prompt","mode" : "max","prompt_id":null,"provider":"x_ai","model":"m","provider_request": {"model":"m", "x": 1.50 } }'
    carried, inner = unwrap(parse(body))
    assert (carried.provider, carried.model, carried.surface) == ("x_ai", "m", CHAT)
    assert carried.extras == {"intent": Raw(b'"user_prompt"'), "mode": Raw(b'"max"')}
    assert inner == {"model": Raw(b'"m"'), "x": Raw(b"1.50")}


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"thread_id": 1}, Code.MALFORMED_BODY, "/thread_id"),
        ({"mode": {}}, Code.MALFORMED_BODY, "/mode"),
        ({"a/b": 1}, Code.FIELD_REJECTED, "/a~1b"),
        ({"provider": None}, Code.MALFORMED_BODY, "/provider"),
        ({"provider": 1}, Code.MALFORMED_BODY, "/provider"),
        ({"provider": "openai"}, Code.FIELD_REJECTED, "/provider"),
        ({"model": None}, Code.MALFORMED_BODY, "/model"),
        ({"model": ""}, Code.MALFORMED_BODY, "/model"),
        ({"provider_request": None}, Code.MALFORMED_BODY, "/provider_request"),
        ({"provider_request": "{}"}, Code.MALFORMED_BODY, "/provider_request"),
        ({"provider_request": {"model": 1}}, Code.MALFORMED_BODY, "/provider_request/model"),
        ({"provider_request": {"model": "models/m"}}, Code.FIELD_REJECTED, "/provider_request/model"),
        ({"provider": "google", "provider_request": {"model": "models/n"}}, Code.FIELD_REJECTED, "/provider_request/model"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(members, code, pointer):
    with pytest.raises(RequestError) as caught:
        unwrap(parse(said(**members)))
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_a_name_that_stands_twice_is_refused_within_too():
    with pytest.raises(RequestError) as caught:
        unwrap(parse(said().replace(b'"messages"', b'"model"')))
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, "/provider_request/model")


@pytest.mark.parametrize(("provider", "named"), [("anthropic", None), ("open_ai", None), ("x_ai", None), ("google", "models/up")])
@pytest.mark.parametrize("model", ["up", "models/up"])
def test_an_envelope_that_was_put_on_can_be_taken_off(provider, named, model):
    inner = {"model": Raw(f'"{model}"'.encode()), "x": Raw(b"1.50")} if named is None else {"x": Raw(b"1.50")}
    extras = {"thread_id": Raw(b'"t"')}
    members = wrap(provider, model, inner, extras)
    sent = json.loads(encode(members))
    assert list(sent) == ["thread_id", "provider", "model", "provider_request"]
    assert sent["provider_request"]["model"] == (named or model)
    carried, back = unwrap(members)
    assert (carried.provider, carried.model, carried.extras, back) == (provider, model, extras, inner)


@pytest.mark.parametrize("provider", INNER)
def test_the_request_within_is_read_as_one_that_streams(provider):
    request = b'{"model":"m","stream":false,"x": 1.50}'
    body = said(provider=provider, provider_request="?").replace(b'"?"', request)
    inbound = received(ZED, GEN, body, query="key=secret&beta=true", headers=((b"x", b"y"),))
    stream = b"false" if provider == "google" else b"true"
    model = {} if provider == "google" else {"model": Raw(b'"m"')}
    assert (inbound.surface, inbound.model, inbound.stream, inbound.query, inbound.headers) == (INNER[provider], "m", True, (), ((b"x", b"y"),))
    assert inbound.members == {**model, "stream": Raw(stream), "x": Raw(b"1.50")}
    assert inbound.body == encode(inbound.members)
    assert inbound.carried is not None


def test_a_count_streams_nothing():
    inbound = received(ZED, COUNT, said())
    assert (inbound.stream, inbound.members.keys()) == (False, {"model", "messages"})


def test_pointers_are_told_in_the_words_of_who_sent_them():
    zed = received(ZED, GEN, said(mode="max", provider_request={"model": "m", "mode": 1}))
    plain = received(MESSAGES, GEN, b'{"model": "m"}')
    pointers = ("/messages/0", "", "/model", "/thread_id", "/mode")
    assert [outward(plain, one) for one in pointers] == list(pointers)
    told = ["/provider_request/messages/0", "/provider_request", "/model", "/thread_id", "/provider_request/mode"]
    assert [outward(zed, one) for one in pointers] == told


@pytest.mark.parametrize(
    ("path", "names", "endpoint", "method"),
    [
        ("/completions", (), Endpoint(ZED, GEN), "POST"),
        ("/completions/", (), Endpoint(ZED, GEN), "POST"),
        ("/count_tokens", (), Endpoint(ZED, COUNT), "POST"),
        ("/models/", ("x-zed-client-supports-x-ai",), Endpoint(ZED, Operation.LIST_MODELS), "GET"),
        ("/models", ("x-zed-version", "anthropic-version"), Endpoint(ZED, Operation.LIST_MODELS), "GET"),
        ("/models", ("x-z",), Endpoint(CHAT, Operation.LIST_MODELS), "GET"),
        ("/v1/models", ("x-zed-version",), Endpoint(CHAT, Operation.LIST_MODELS), "GET"),
        ("/v1/models/m", ("x-zed-version",), Endpoint(CHAT, Operation.GET_MODEL, "m"), "GET"),
    ],
)
def test_paths_of_zed(path, names, endpoint, method):
    assert find(path, frozenset(names), short=True) == (endpoint, method)


@pytest.mark.parametrize("path", ["/completions", "/count_tokens", "/models"])
def test_zeds_paths_are_short_ones(path):
    assert find(path, frozenset({"x-zed-version"}), short=False) is None
