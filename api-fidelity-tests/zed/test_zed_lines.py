"""What leaves towards Zed, as pure machines: lines with one terminal, counts, errors."""

from __future__ import annotations

import json

import pytest

from asgi_surface.codecs import CODECS, FACES
from asgi_surface.codecs.base import ListQuery, ModelEntry
from asgi_surface.codecs.zed.errors import error, failed
from asgi_surface.codecs.zed.lines import Count, JsonLines
from asgi_surface.errors import Code, GatewayError, RequestError, UpstreamError
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, ZED, Surface

REQUEST_ID = "0123456789abcdef0123456789abcdef"
ENDED = b'{"status":"stream_ended"}\n'
START, STOP, END = (
    b'{"type":"message_start","message":{}}',
    b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    b'{"type":"message_stop"}',
)
SAID, FINISH = b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}', b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
CHUNK = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'
FAULT = b'{"type":"error","error":{"type":"overloaded_error","message":"Too busy"}}'


def lines(surface, known=None):
    return JsonLines(CODECS[surface], REQUEST_ID, lambda: known)


def sse(*data):
    return b"".join(b"data: " + one + b"\n\n" for one in data)


def event(*data):
    return b"".join(b'{"event":' + one + b"}\n" for one in data)


def told(line):
    """The failure that one line states."""
    return json.loads(line)["status"]["failed"]


@pytest.mark.parametrize(
    ("surface", "data", "written"),
    [
        (MESSAGES, (START, STOP, END), (START, STOP, END)),
        (CHAT, (SAID, FINISH, b"[DONE]"), (SAID, FINISH)),
        (CHAT, (SAID, FINISH), (SAID, FINISH)),  # some servers end so, and Chat allows it
        (GEMINI, (CHUNK,), (CHUNK,)),
    ],
)
def test_a_whole_answer_ends_once_whatever_the_pieces(surface, data, written):
    body = b": hello\n\nretry: 3\n\n" + sse(*data)
    assert lines(surface).feed(body, last=True) == event(*written) + ENDED
    slow = lines(surface)
    pieces = [slow.feed(body[place : place + 1], last=False) for place in range(len(body))]
    assert b"".join(pieces) + slow.feed(b"", last=True) == event(*written) + ENDED


@pytest.mark.parametrize(("surface", "data"), [(MESSAGES, ()), (MESSAGES, (START, STOP)), (CHAT, (SAID,)), (CHAT, ()), (GEMINI, ()), (RESPONSES, ())])
def test_an_end_before_the_answers_own_is_a_failure(surface, data):
    made = lines(surface)
    assert made.feed(sse(*data), last=False) == event(*data)
    end = made.feed(b"", last=True)
    assert (end.count(b"\n"), told(end)["code"], told(end)["message"]) == (1, "upstream_http_502", "the answer ended before it was finished")


@pytest.mark.parametrize("last", [True, False])
def test_nothing_follows_a_failure(last):
    made = lines(MESSAGES)
    out = made.feed(sse(START, FAULT, STOP, END), last=last) + made.feed(sse(END), last=True)
    first, second, rest = out.split(b"\n")
    assert (first + b"\n", rest) == (event(START), b"")
    assert told(second) == {
        "code": "upstream_http_529",
        "message": "Too busy",
        "request_id": "01234567-89ab-cdef-0123-456789abcdef",
        "retry_after": None,
    }


def test_nothing_follows_the_answers_own_end():
    assert lines(MESSAGES).feed(sse(START, STOP, END, STOP), last=True) == event(START, STOP, END) + ENDED


def test_a_terminal_without_a_finish_is_no_event():
    out = lines(MESSAGES).feed(sse(START, END), last=True).split(b"\n")
    assert (out[0] + b"\n", told(out[1])["code"], out[2:]) == (event(START), "upstream_http_502", [b""])


@pytest.mark.parametrize(
    ("known", "code", "message", "after"),
    [
        (None, "upstream_http_529", "Too busy", None),
        (UpstreamError(Code.UPSTREAM_ERROR, "broke"), "upstream_http_529", "Too busy", None),  # the frame says more
        (UpstreamError(Code.UPSTREAM_TIMEOUT, "slow", headers=((b"retry-after", b"3"),)), "upstream_http_504", "slow", 3.0),
        (GatewayError(Code.INTERNAL, "the gateway failed"), "internal_error", "the gateway failed", None),
    ],
)
def test_the_gateways_own_fault_is_told_in_its_words(known, code, message, after):
    said = told(lines(MESSAGES, known).feed(sse(START, FAULT), last=True).split(b"\n")[1])
    assert (said["code"], said["message"], said["retry_after"]) == (code, message, after)


@pytest.mark.parametrize(("surface", "document"), [(MESSAGES, b'{"input_tokens": 12, "x": "\xc3\xa4"}'), (GEMINI, b'{"totalTokens":12}')])
def test_a_count_is_told_once_it_is_whole(surface, document):
    count = Count(surface)
    assert (count.feed(document[:9], last=False), count.feed(document[9:], last=True)) == (b"", b'{"tokens":12}')


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"totalTokens": 1}', b'{"input_tokens": null}', b'{"input_tokens": 1.5}'])
def test_a_document_without_its_number_is_no_count(document):
    with pytest.raises(UpstreamError) as caught:
        Count(MESSAGES).feed(document, last=True)
    assert caught.value.code is Code.UPSTREAM_BAD_RESPONSE


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (RequestError(Code.FIELD_REJECTED, "no", pointer="/x"), {"code": "field_rejected", "message": "no (at /x)"}),
        (GatewayError(Code.OVERLOADED, "full", headers=((b"retry-after", b"2"),)), {"code": "overloaded", "message": "full", "retry_after": 2}),
        (UpstreamError(Code.UPSTREAM_UNREACHABLE, "gone"), {"code": "upstream_http_502", "message": "gone"}),
        (
            UpstreamError(Code.UPSTREAM_REJECTED, "long", status=413, headers=((b"retry-after", b"Wed, 21 Oct 2026 07:28:00 GMT"),)),
            {"code": "upstream_http_413", "message": "long", "upstream_status": 413},
        ),
        (
            UpstreamError(Code.UPSTREAM_RATE_LIMITED, "fast", headers=((b"retry-after", b"2"), (b"retry-after-ms", b"1500"))),
            {"code": "upstream_http_429", "message": "fast", "upstream_status": 429, "retry_after": 1.5},
        ),
    ],
)
def test_errors_say_what_zed_acts_on(fault, said):
    assert json.loads(error(fault, REQUEST_ID)) == said
    line = json.loads(failed(fault, REQUEST_ID))["failed"]
    assert (line["code"], line["message"], line["retry_after"]) == (said["code"], said["message"], said.get("retry_after"))


def test_only_what_zed_can_ask_for_is_listed():
    entries = (ModelEntry("a", "acme"), ModelEntry("b", "acme", surface=Surface("my-surface"), context_tokens=1, max_output_tokens=1))
    listed = json.loads(FACES[ZED].models(entries, ListQuery()))
    assert (listed["models"], listed["default_model"]) == ([], None)
