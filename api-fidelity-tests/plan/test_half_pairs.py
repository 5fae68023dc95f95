"""A body whose grammar is JSON's, but in which a string holds half a surrogate pair, is told so, with its place."""

from __future__ import annotations

import pytest

from asgi_surface import members
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import CHAT

HALVES = {
    "the first half": (rb'{"a":"\ud800"}', "/a"),
    "the first half, in capitals": (rb'{"a":"x\uDBFFy"}', "/a"),
    "the second half": (rb'{"b":"\ufffd","a":"\udc00"}', "/a"),
    "behind a whole pair": (rb'{"messages":[{"role":"user","content":"\ud83d\ude00\ud800"}]}', "/messages/0/content"),
    "a second half behind a whole pair": (rb'{"a":"\ud83d\ude00\ude00"}', "/a"),
    "two first halves": (rb'{"a":"\ud83d\ud83d\ude00"}', "/a"),
    "another escape behind it": (rb'{"a":"\ud83d\n"}', "/a"),
    "behind a backslash": (rb'{"a":"\\\ud800"}', "/a"),
    "in a list, behind white space": (b' \n{"b": [1, "\\udc00"]}', "/b/1"),
    "in a name within": (rb'{"a":{"\ud800":1}}', "/a"),
    "in a name": (rb'{"\ud800":1}', None),
    "far within": (b'{"a":' + b"[" * 9 + rb'"\ud800"' + b"]" * 9 + b"}", "/a/0/0/0/0/0/0/0"),
}


@pytest.mark.parametrize(("body", "pointer"), HALVES.values(), ids=HALVES)
def test_half_a_pair_is_named_where_it_stands(body, pointer):
    with pytest.raises(RequestError) as caught:
        members.parse(body)
    assert (caught.value.code, caught.value.pointer) == (Code.MALFORMED_BODY, pointer)
    assert "surrogate pair" in caught.value.message


@pytest.mark.parametrize("text", [rb"\\ud800", rb"\ud83d\ude00", rb"\ufffd", rb"\uFfFd"])
def test_what_only_looks_like_one_is_text(text):
    body = b'{"a":"' + text + b'"}'
    assert bytes(members.parse(body)["a"]) == b'"' + text + b'"'


@pytest.mark.parametrize(
    "body", [rb'{"a":"\ud800","b":', rb'{"a":"\uFfFd","b":', rb'{"a":"\ud80"}', b'{"a":"\\ud800","b":' + b"[" * 9999 + b"]" * 9999 + b"}"]
)
def test_where_more_is_wrong_that_is_told(body):
    with pytest.raises(RequestError, match=r"not JSON|nested") as caught:
        members.parse(body)
    assert caught.value.pointer is None


def test_a_client_is_told_before_anything_is_sent(gateway, upstream, ask):
    app = upstream()
    reply = ask(gateway(app, CHAT), "/v1/chat/completions", rb'{"model":"m","messages":[{"role":"user","content":"\ud83d"}]}')
    assert (reply.status, reply.json["error"]["param"], app.calls) == (400, "messages[0].content", [])
