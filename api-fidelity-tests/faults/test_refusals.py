"""What an upstream's refusal becomes, and what of its words reaches a client."""

from __future__ import annotations

import json

import pytest

from asgi_surface.codecs.reading import error_facts
from asgi_surface.errors import Code, ErrorFacts, UpstreamDetail
from asgi_surface.refusals import in_answer, refusal, scrub, scrub_data

SECRET = "topsecret-upstream-key"
SAID = b'{"error":{"message":"no such luck","type":"t","code":"c","param":"p"}}'
HTML = b"<html><h1>cf-ray 123</h1></html>"


def refused(status, body=SAID, headers=(), **options):
    return refusal(status, error_facts(body), body, headers, secrets=(SECRET, ""), **options)


# status of the upstream: code, status for the client, whether the message is told, whether the body passes
TABLE = {
    301: (Code.UPSTREAM_BAD_RESPONSE, 502, False, False),
    307: (Code.UPSTREAM_BAD_RESPONSE, 502, False, False),
    400: (Code.UPSTREAM_REJECTED, 400, True, True),
    401: (Code.UPSTREAM_AUTH_FAILED, 502, False, False),
    402: (Code.UPSTREAM_AUTH_FAILED, 502, False, False),
    403: (Code.UPSTREAM_AUTH_FAILED, 502, False, False),
    404: (Code.UPSTREAM_REJECTED, 404, True, True),
    407: (Code.UPSTREAM_AUTH_FAILED, 502, False, False),
    408: (Code.UPSTREAM_TIMEOUT, 504, True, False),
    409: (Code.UPSTREAM_REJECTED, 409, True, True),
    413: (Code.UPSTREAM_REJECTED, 413, True, True),
    415: (Code.UPSTREAM_REJECTED, 415, True, True),
    422: (Code.UPSTREAM_REJECTED, 422, True, True),
    425: (Code.UPSTREAM_ERROR, 502, True, False),
    429: (Code.UPSTREAM_RATE_LIMITED, 429, True, True),
    431: (Code.UPSTREAM_PROTOCOL_ERROR, 502, False, False),
    451: (Code.UPSTREAM_REJECTED, 451, True, True),
    500: (Code.UPSTREAM_ERROR, 500, True, True),
    502: (Code.UPSTREAM_ERROR, 502, True, True),
    503: (Code.UPSTREAM_OVERLOADED, 503, True, True),
    504: (Code.UPSTREAM_TIMEOUT, 504, True, True),
    520: (Code.UPSTREAM_ERROR, 520, True, True),
    529: (Code.UPSTREAM_OVERLOADED, 503, True, False),
    999: (Code.UPSTREAM_BAD_RESPONSE, 502, False, False),
}


@pytest.mark.parametrize(("status", "row"), TABLE.items())
def test_one_table_by_status(status, row):
    code, kept, told, relayed = row
    error = refused(status)
    assert (error.code, error.status) == (code, kept)
    assert (error.message == "no such luck") is told
    assert error.detail == (UpstreamDetail("t", "c", "p") if told else UpstreamDetail())
    assert error.body == (SAID if relayed else None)


@pytest.mark.parametrize("status", [status for status in TABLE if status not in (404, 405)])
def test_a_page_that_is_no_error_body_gives_a_constant_text(status):
    error = refused(status, HTML)
    assert (error.code, error.status) == TABLE[status][:2]
    assert error.message == refused(status, b"").message
    assert "cf-ray" not in error.message
    assert error.body is None


def test_529_stays_where_the_surface_knows_it():
    error = refused(529, keep_529=True)
    assert (error.code, error.status, error.body) == (Code.UPSTREAM_OVERLOADED, 529, SAID)
    assert refused(503, keep_529=True).status == 503


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, HTML),
        (405, b""),
        (404, b'{"detail":"Not Found"}'),
        (405, b'{"detail":"Method Not Allowed"}'),
        (404, b'{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error"}}'),
    ],
)
def test_a_wrong_path_is_the_routes_fault(status, body):
    error = refused(status, body)
    assert (error.code, error.status, error.body) == (Code.UPSTREAM_BAD_RESPONSE, 502, None)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}',
        b'{"error":{"message":"Incorrect key","code":"invalid_api_key"}}',
    ],
)
def test_a_wrong_key_is_the_operators_fault_whatever_the_status(body):
    error = refused(400, body)
    assert (error.code, error.status, error.body, error.detail) == (Code.UPSTREAM_AUTH_FAILED, 502, None, UpstreamDetail())
    assert "key" not in error.message.lower()


UNSAYABLE = [
    SECRET,
    "https://internal.example/v1?key=x",
    "http://10.0.0.5:8000/v1",
    "10.0.0.5",
    "10.0.0.5:8000",
    "[fd00::1]:8000",
    "gpu.cluster.local:8000",
    "localhost:80",
    "vllm-0:8000",
    "sk-ant-api03-abcdefgh",
    "sk-inval**************-key",
    "gsk_abcdefgh",
    "xai-abcdefgh",
    "AIzaSyA1234567",
    "Bearer abc.def",
    "org-abcdefgh1234",
    "proj_abcdefgh1234",
    "organization (12345678-90ab-cdef-1234-567890abcdef)",
    "project_number:123456789012",
    "projects/my-project-1",
    "/subscriptions/12345678-90ab-cdef-1234-567890abcdef/resourceGroups/x",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/x",
    "ops.team+alerts@example.com",
]
SAYABLE = [
    "messages[2].content: at line 1 column 216",
    "max 8192 tokens, got 1250025:",
    "This model's maximum context length is 8192 tokens.",
    "your organization (the whole) has several projects",
    "models/gemini-x is not found for API version v1beta",
    "ask-me task-force organisation-wide 2026-11-30T20:00:00Z qwen3:8b 1.2.3",
]


@pytest.mark.parametrize("word", UNSAYABLE)
def test_what_identifies_the_upstream_is_removed(word):
    assert scrub(f"see {word} there", (SECRET,)) == "see [removed] there"
    body = json.dumps({"error": {"message": f"before\n{word}"}}).encode()
    error = refused(400, body)
    assert error.message == "before [removed]"
    assert error.body == scrub_data(body, (SECRET,))
    assert json.loads(scrub_data(body, (SECRET,))) == {"error": {"message": "before\n[removed]"}}


@pytest.mark.parametrize("text", SAYABLE)
def test_plain_words_stay(text):
    assert scrub(text, (SECRET,)) == text
    body = json.dumps({"error": {"message": text}}).encode()
    error = refused(400, body)
    assert (error.message, error.body) == (text, body)
    assert scrub_data(body, (SECRET,)) is body


def test_the_longer_of_two_secrets_goes_first():
    assert scrub("abcdef", ("abc", "", "abcdef")) == "[removed]"


@pytest.mark.parametrize(
    ("data", "clean"),
    [
        (b'{"a":[1,2.5,null,true,"http:\\/\\/x"],"see http://y":"z"}', b'{"a":[1,2.5,null,true,"[removed]"],"see [removed]":"z"}'),
        (b'{"a":"http://x","a":"b"}', b'{"a":"b"}'),
        (b"upstream http://x broke", b"upstream [removed] broke"),
        (b'{"a":"\xff"}', '{"a":"\ufffd"}'.encode()),
        (b"[" * 5000, b"[" * 5000),
    ],
    ids=["escaped", "repeated name", "text", "not UTF-8", "deep"],
)
def test_data_is_scrubbed_string_by_string(data, clean):
    assert scrub_data(data, ()) == clean


def test_a_repeated_name_hides_nothing():
    assert refused(400, b'{"error":{"message":"http://x"},"error":{"message":"m"}}').body == b'{"error":{"message":"m"}}'


def test_long_text_is_cut_and_scrubbed_in_one_walk():
    facts = ErrorFacts("x" * 200_000)
    assert refusal(400, facts, b"", (), secrets=()).message == "x" * 512


@pytest.mark.parametrize(("pairs", "relayed"), [(30_000, True), (40_000, False)])
def test_only_a_bounded_body_passes(pairs, relayed):
    error = refused(400, json.dumps({"error": {"message": "m", "more": "x." * pairs}}).encode())
    assert error.message == "m"
    assert (error.body is not None) is relayed


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a\r\nb\x00\x1b[31mc\u202e", "a b [31mc"),
        ("  ", "the upstream refused the request"),
        ('failed: Traceback (most recent call last)\n  File "/srv/app.py", line 3', "failed:"),
    ],
)
def test_messages_are_printable_and_without_traces(message, shown):
    assert refused(400, json.dumps({"error": {"message": message}}).encode()).message == shown


def test_a_trace_keeps_the_body_back():
    assert refused(500, json.dumps({"error": {"message": "m", "trace": "Traceback (most recent call last)"}}).encode()).body is None


@pytest.mark.parametrize("word", [f"x{SECRET}", "w" * 129, "a\nb", "http://x", ""])
def test_details_are_words_or_nothing(word):
    facts = ErrorFacts("m", UpstreamDetail(word, word, word))
    assert refusal(400, facts, b"", (), secrets=(SECRET,)).detail == UpstreamDetail()


HEADERS = [
    ("retry-after", "5", "5"),
    ("Retry-After", " 7 ", "7"),
    ("retry-after", "0", "1"),
    ("retry-after", "1000000000", "3600"),
    ("retry-after", "9" * 30, None),
    ("retry-after", "-1", None),
    ("retry-after", "1.5", None),
    ("retry-after", "soon", None),
    ("retry-after", "Mon, 30 Nov 2026 20:00:00 GMT", "Mon, 30 Nov 2026 20:00:00 GMT"),
    ("retry-after", "30 Nov 2026", None),
    ("retry-after-ms", "250", "250"),
    ("retry-after-ms", "99999999", "3600000"),
    ("x-should-retry", "false", "false"),
    ("x-should-retry", "maybe", None),
    ("x-ratelimit-reset-requests", "6m0s", "6m0s"),
    ("anthropic-ratelimit-requests-reset", "2026-11-30T20:00:00Z", "2026-11-30T20:00:00Z"),
    ("x-ratelimit-note", f"key {SECRET}", None),
    ("x-ratelimit-note", "a\x1bb", None),
    ("x-ratelimit-note", "\xe9", None),
    ("x-ratelimit-note", "n" * 257, None),
    ("set-cookie", "a=b", None),
    ("x-goog-api-key", SECRET, None),
    ("openai-organization", "org-1", None),
    ("location", "https://evil.example", None),
    ("x-request-id", "r1", None),
]


@pytest.mark.parametrize(("name", "value", "passed"), HEADERS)
@pytest.mark.parametrize("status", [429, 503])
def test_headers_that_say_when_to_come_back_pass(status, name, value, passed):
    error = refused(status, headers=[(name.encode(), value.encode("latin-1"))])
    assert error.headers == (() if passed is None else ((name.lower().encode(), passed.encode()),))


def test_of_a_repeated_header_the_first_counts():
    assert refused(429, headers=[(b"retry-after", b"5"), (b"Retry-After", b"9")]).headers == ((b"retry-after", b"5"),)


IN_ANSWERS = [
    (ErrorFacts("m", status=429), Code.UPSTREAM_RATE_LIMITED, 429),
    (ErrorFacts("m", UpstreamDetail("rate_limit_error"), 500), Code.UPSTREAM_ERROR, 500),
    (ErrorFacts("m", UpstreamDetail("rate_limit_error")), Code.UPSTREAM_RATE_LIMITED, 429),
    (ErrorFacts("m", UpstreamDetail("RESOURCE_EXHAUSTED")), Code.UPSTREAM_RATE_LIMITED, 429),
    (ErrorFacts("m", UpstreamDetail("insufficient_quota", "insufficient_quota")), Code.UPSTREAM_RATE_LIMITED, 429),
    (ErrorFacts("m", UpstreamDetail("overloaded_error")), Code.UPSTREAM_OVERLOADED, 503),
    (ErrorFacts("m", UpstreamDetail("UNAVAILABLE")), Code.UPSTREAM_OVERLOADED, 503),
    (ErrorFacts("m", UpstreamDetail("timeout_error")), Code.UPSTREAM_TIMEOUT, 504),
    (ErrorFacts("m", UpstreamDetail("invalid_request_error")), Code.UPSTREAM_REJECTED, 400),
    (ErrorFacts("m", UpstreamDetail(code="context_length_exceeded")), Code.UPSTREAM_REJECTED, 400),
    (ErrorFacts("m", UpstreamDetail("request_too_large")), Code.UPSTREAM_REJECTED, 413),
    (ErrorFacts("m", UpstreamDetail("not_found_error")), Code.UPSTREAM_REJECTED, 404),
    (ErrorFacts("m", UpstreamDetail("authentication_error")), Code.UPSTREAM_AUTH_FAILED, 502),
    (ErrorFacts("m", UpstreamDetail("permission_error")), Code.UPSTREAM_AUTH_FAILED, 502),
    (ErrorFacts("m", UpstreamDetail("invalid_request_error", "invalid_api_key")), Code.UPSTREAM_AUTH_FAILED, 502),
    (ErrorFacts("m", UpstreamDetail("weird_new_error")), Code.UPSTREAM_ERROR, 502),
    (ErrorFacts("m"), Code.UPSTREAM_ERROR, 502),
]


@pytest.mark.parametrize(("facts", "code", "status"), IN_ANSWERS)
def test_an_error_inside_an_answer_goes_through_the_same_table(facts, code, status):
    error = in_answer(facts, [(b"retry-after", b"5")], secrets=())
    assert (error.code, error.status, error.body, error.headers) == (code, status, None, ((b"retry-after", b"5"),))
    assert (error.message == "m") is (code is not Code.UPSTREAM_AUTH_FAILED)


def test_an_overload_inside_an_answer_is_529_where_the_surface_knows_it():
    assert in_answer(ErrorFacts("m", UpstreamDetail("overloaded_error")), (), secrets=(), keep_529=True).status == 529
