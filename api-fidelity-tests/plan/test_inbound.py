"""Reading a request: model, stream, framing and query."""

from __future__ import annotations

import json

import pytest

from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code, RequestError
from asgi_surface.framing import Framing
from asgi_surface.inbound import read
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, Operation

GEN = Operation.GENERATE


def body(**members) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize(("said", "streams"), [({}, False), ({"stream": None}, False), ({"stream": False}, False), ({"stream": True}, True)])
def test_the_body_says_whether_to_stream(said, streams):
    inbound = read(CODECS[CHAT], GEN, body(model="m", messages=[], **said))
    assert (inbound.model, inbound.stream, inbound.framing) == ("m", streams, Framing.SSE)


@pytest.mark.parametrize(
    ("members", "pointer"),
    [({}, "/model"), ({"model": ""}, "/model"), ({"model": 1}, "/model"), ({"model": None}, "/model"), ({"model": "m", "stream": "true"}, "/stream")],
)
def test_what_the_gateway_must_read_has_a_pointer(members, pointer):
    with pytest.raises(RequestError) as caught:
        read(CODECS[CHAT], GEN, body(**members))
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, pointer)


@pytest.mark.parametrize(
    ("query", "framing"),
    [("", Framing.JSON_ARRAY), ("alt=json", Framing.JSON_ARRAY), ("alt=sse", Framing.SSE), ("%24alt=sse&x=1", Framing.SSE)],
)
def test_gemini_clients_choose_the_framing(query, framing):
    inbound = read(CODECS[GEMINI], GEN, body(contents=[]), model="m", stream=True, query=query)
    assert (inbound.framing, inbound.stream, inbound.model) == (framing, True, "m")


@pytest.mark.parametrize("query", ["alt=xml", "alt=sse&alt=sse", "alt=sse&$alt=json", "alt="])
def test_an_unknown_framing_is_refused(query):
    with pytest.raises(RequestError) as caught:
        read(CODECS[GEMINI], GEN, body(contents=[]), model="m", stream=True, query=query)
    assert caught.value.code is Code.UNSUPPORTED_REQUEST


def test_no_credential_and_no_alt_travels():
    query = "key=K&alt=sse&beta=true&Access_Token=T&x=%20a&&k%65y=K&flag"
    gemini = read(CODECS[GEMINI], GEN, body(contents=[]), model="m", stream=False, query=query)
    assert [part for _, part in gemini.query] == ["beta=true", "x=%20a", "flag"]
    assert [part for _, part in read(CODECS[MESSAGES], GEN, body(model="m"), query="beta=true&key=K&alt=x").query] == ["beta=true", "alt=x"]


def test_a_thread_is_refused_before_all_else():
    with pytest.raises(RequestError) as caught:
        read(CODECS[MESSAGES], GEN, body(thread={"id": "t"}))
    assert caught.value.details == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
