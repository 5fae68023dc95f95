"""Which searches in a client's history are the gateway's own."""

from __future__ import annotations

import json

import pytest

from asgi_surface import ir
from asgi_surface.codecs.base import Context
from asgi_surface.codecs.responses.searches import own
from asgi_surface.codecs.responses.write import write
from asgi_surface.surfaces import CHAT


def test_what_the_gateway_wrote_is_its_own():
    asked = Context(request=ir.Request(turns=()), aliases={}, seal_domain="up", upstream=CHAT, model="m", request_id="r1", now=1)
    answer = ir.Response(id=None, model=None, parts=(ir.Text("a"), ir.Search("s1", "q")))
    assert [own(item) for item in json.loads(write(answer, asked))["output"]] == [False, True]


OTHERS = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "web_search_call", "status": "completed"},
    {"type": "web_search_call", "id": None},
    {"type": "web_search_call", "id": 7},
    {"type": "message", "id": "asf_ws_r1_0"},
    {"id": "asf_ws_r1_0"},
    {},
]


@pytest.mark.parametrize("item", OTHERS)
def test_nothing_else_is(item):
    assert not own(item)
