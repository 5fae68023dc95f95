"""How errors look on each surface, in a body and in a stream; the official SDKs judge."""

from __future__ import annotations

import json
from importlib import import_module
from typing import get_args

import anthropic
import google.genai
import httpx2
import openai
import pytest
from anthropic.types.shared import ErrorResponse
from google.genai import errors as google_errors
from google.genai import types as google_types
from openai.types.responses import Response, ResponseError, ResponseErrorEvent, ResponseFailedEvent
from openai.types.shared import ErrorObject

from asgi_surface.errors import TRAITS, Code, GatewayError, Kind, RequestError, UpstreamDetail, UpstreamError
from asgi_surface.framing import Frame

SURFACES = ("chat", "responses", "messages", "gemini")


def body(surface, error, request_id="req_1"):
    return import_module(f"asgi_surface.codecs.{surface}.errors").error(error, request_id)


def said(surface, error):
    return json.loads(body(surface, error))


def watch(surface, *values):
    one = import_module(f"asgi_surface.codecs.{surface}.stream").watch()
    for value in values:
        data = json.dumps(value).encode()
        one.see(Frame(raw=b"", event=b"", data=data))
    return one


def client(status, content, media="application/json"):
    """A transport that answers everything with one body."""
    return httpx2.MockTransport(lambda request: httpx2.Response(status, content=content, headers={"content-type": media}))


def ask_openai(status, content, media="application/json", **fields):
    with openai.OpenAI(api_key="k", max_retries=0, http_client=httpx2.Client(transport=client(status, content, media))) as sdk:
        return list(sdk.chat.completions.create(model="m", messages=[], **fields))


def ask_anthropic(status, content, media="application/json", **fields):
    with anthropic.Anthropic(api_key="k", max_retries=0, http_client=httpx2.Client(transport=client(status, content, media))) as sdk:
        return list(sdk.messages.create(model="m", messages=[], max_tokens=1, **fields))


def ask_google(status, content, method="generate_content", media="application/json"):
    options = google_types.HttpOptions(httpx_client=httpx2.Client(transport=client(status, content, media)))
    with google.genai.Client(api_key="k", http_options=options) as sdk:
        return list(getattr(sdk.models, method)(model="m", contents="hi"))


@pytest.mark.parametrize("code", Code)
def test_openai_reads_every_error(code):
    error = GatewayError(code, "what happened", pointer="/messages/2/content")
    with pytest.raises(openai.APIStatusError) as raised:
        ask_openai(error.status, body("chat", error))
    ErrorObject.model_validate(raised.value.body)
    assert raised.value.status_code == TRAITS[code].status
    assert (raised.value.code, raised.value.param) == (str(code), "messages[2].content")
    assert raised.value.body["message"] == "what happened (at /messages/2/content)"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.FIELD_REJECTED, "invalid_request_error"),
        (Code.UNAUTHORIZED, "invalid_request_error"),
        (Code.MODEL_FORBIDDEN, "invalid_request_error"),
        (Code.UNKNOWN_MODEL, "invalid_request_error"),
        (Code.BODY_TOO_LARGE, "invalid_request_error"),
        (Code.UPSTREAM_RATE_LIMITED, "rate_limit_error"),
        (Code.UPSTREAM_OVERLOADED, "server_error"),
        (Code.UPSTREAM_TIMEOUT, "server_error"),
        (Code.INTERNAL, "server_error"),
    ],
)
def test_openai_types(code, kind):
    assert said("chat", GatewayError(code, "m"))["error"] == {"message": "m", "type": kind, "param": None, "code": str(code)}


@pytest.mark.parametrize(
    ("pointer", "param"),
    [
        (None, None),
        ("", None),
        ("/n", "n"),
        ("/messages/2/content", "messages[2].content"),
        ("/tools/0/function/parameters/a~1b~0c", "tools[0].function.parameters.a/b~c"),
        ("/0", "[0]"),
    ],
)
def test_a_pointer_in_openais_notation(pointer, param):
    assert said("responses", RequestError(Code.FIELD_REJECTED, "m", pointer=pointer))["error"]["param"] == param


def test_openai_keeps_what_the_upstream_said():
    detail = UpstreamDetail("requests", "context_length_exceeded", "input")
    error = UpstreamError(Code.UPSTREAM_REJECTED, "m", status=400, detail=detail)
    assert said("chat", error)["error"] == {"message": "m", "type": "requests", "param": "input", "code": "context_length_exceeded"}


@pytest.mark.parametrize("code", Code)
def test_anthropic_reads_every_error(code):
    error = GatewayError(code, "what happened", pointer="/messages/2/content")
    envelope = body("messages", error)
    if error.kind is not Kind.TOO_LARGE:  # the documentation has this type, the SDK's union has not
        ErrorResponse.model_validate_json(envelope)
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask_anthropic(error.status, envelope)
    assert raised.value.status_code == TRAITS[code].status
    assert raised.value.body["error"]["message"] == "what happened (at /messages/2/content)"
    assert raised.value.body["request_id"] == "req_1"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GatewayError(Code.FIELD_REJECTED, "m"), "invalid_request_error"),
        (GatewayError(Code.UNAUTHORIZED, "m"), "authentication_error"),
        (GatewayError(Code.MODEL_FORBIDDEN, "m"), "permission_error"),
        (GatewayError(Code.UNKNOWN_MODEL, "m"), "not_found_error"),
        (GatewayError(Code.BODY_TOO_LARGE, "m"), "request_too_large"),
        (UpstreamError(Code.UPSTREAM_REJECTED, "m", status=413), "request_too_large"),
        (UpstreamError(Code.UPSTREAM_RATE_LIMITED, "m"), "rate_limit_error"),
        (UpstreamError(Code.UPSTREAM_OVERLOADED, "m", status=529), "overloaded_error"),
        (UpstreamError(Code.UPSTREAM_TIMEOUT, "m"), "timeout_error"),
        (UpstreamError(Code.UPSTREAM_ERROR, "m"), "api_error"),
        (UpstreamError(Code.UPSTREAM_REJECTED, "m", detail=UpstreamDetail("billing_error")), "billing_error"),
        (UpstreamError(Code.UPSTREAM_REJECTED, "m", detail=UpstreamDetail("BadRequestError")), "invalid_request_error"),
    ],
)
def test_anthropic_types(error, kind):
    assert said("messages", error) == {"type": "error", "error": {"type": kind, "message": "m"}, "request_id": "req_1"}


def test_anthropic_carries_the_details_that_its_sdk_acts_on():
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    with pytest.raises(anthropic.BadRequestError) as raised:
        ask_anthropic(400, body("messages", GatewayError(Code.FIELD_REJECTED, "m", details=details)))
    assert raised.value.body["error"]["details"] == details


@pytest.mark.parametrize("code", [Code.FIELD_REJECTED, Code.UNKNOWN_MODEL, Code.UPSTREAM_RATE_LIMITED, Code.UPSTREAM_TIMEOUT])
def test_google_reads_the_errors(code):
    error = GatewayError(code, "what happened", pointer="/contents/0")
    with pytest.raises(google_errors.APIError) as raised:
        ask_google(error.status, body("gemini", error))
    assert raised.value.code == error.status
    assert raised.value.message == "what happened (at /contents/0)"
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper(), "domain": "asgi_surface"}
    assert raised.value.details["error"]["details"] == [info]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (GatewayError(Code.FIELD_REJECTED, "m"), "INVALID_ARGUMENT"),
        (GatewayError(Code.UNAUTHORIZED, "m"), "UNAUTHENTICATED"),
        (GatewayError(Code.MODEL_FORBIDDEN, "m"), "PERMISSION_DENIED"),
        (GatewayError(Code.UNKNOWN_MODEL, "m"), "NOT_FOUND"),
        (GatewayError(Code.BODY_TOO_LARGE, "m"), "INVALID_ARGUMENT"),
        (UpstreamError(Code.UPSTREAM_RATE_LIMITED, "m"), "RESOURCE_EXHAUSTED"),
        (UpstreamError(Code.UPSTREAM_OVERLOADED, "m"), "UNAVAILABLE"),
        (UpstreamError(Code.UPSTREAM_UNREACHABLE, "m"), "UNAVAILABLE"),
        (UpstreamError(Code.UPSTREAM_TIMEOUT, "m"), "DEADLINE_EXCEEDED"),
        (UpstreamError(Code.UPSTREAM_ERROR, "m"), "INTERNAL"),
        (UpstreamError(Code.UPSTREAM_REJECTED, "m", detail=UpstreamDetail("FAILED_PRECONDITION")), "FAILED_PRECONDITION"),
        (UpstreamError(Code.UPSTREAM_REJECTED, "m", detail=UpstreamDetail("invalid_request_error")), "INVALID_ARGUMENT"),
    ],
)
def test_google_statuses(error, status):
    assert said("gemini", error)["error"]["status"] == status


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_reads_its_own_errors(surface):
    """What a second gateway behind this one would read."""
    facts = import_module(f"asgi_surface.codecs.{surface}.errors").error_facts(body(surface, GatewayError(Code.UNKNOWN_MODEL, "m")))
    assert facts.message == "m"
    assert facts.detail.type in ("invalid_request_error", "not_found_error", "NOT_FOUND")


CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "the stream broke")


def stream_of(event, data):
    return (b"event: " + event + b"\n" if event else b"") + b"data: " + data + b"\n\n"


def test_chat_stream_failure():
    with pytest.raises(openai.APIError) as raised:
        ask_openai(200, stream_of(*watch("chat").failure(CUT, "req_1")), "text/event-stream", stream=True)
    assert (raised.value.message, raised.value.code, raised.value.type) == ("the stream broke", "upstream_truncated", "server_error")


def test_messages_stream_failure():
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask_anthropic(200, stream_of(*watch("messages").failure(CUT, "req_1")), "text/event-stream", stream=True)
    assert raised.value.body == {"type": "error", "error": {"type": "api_error", "message": "the stream broke"}, "request_id": "req_1"}


def test_gemini_stream_failure():
    with pytest.raises(google_errors.APIError) as raised:
        ask_google(200, stream_of(*watch("gemini").failure(CUT, "req_1")), "generate_content_stream", "text/event-stream")
    assert (raised.value.code, raised.value.status, raised.value.message) == (502, "INTERNAL", "the stream broke")


CREATED = {
    "type": "response.created",
    "sequence_number": 0,
    "response": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "model": "m",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "temperature": 0.1,
    },
}
TEXT = {"type": "response.output_text.delta", "sequence_number": 4, "delta": "a"}
UNNUMBERED = {"type": "response.output_text.delta", "delta": "a"}


def test_responses_stream_failure_goes_on_with_the_upstreams_response():
    event, data = watch("responses", CREATED, TEXT, UNNUMBERED).failure(CUT, "req_1")
    failed = ResponseFailedEvent.model_validate_json(data)
    assert (event, failed.sequence_number) == (b"response.failed", 5)
    error = {"code": "server_error", "message": "the stream broke"}
    assert failed.response == Response.model_validate(CREATED["response"] | {"status": "failed", "error": error})


@pytest.mark.parametrize(("code", "word"), [(Code.UPSTREAM_RATE_LIMITED, "rate_limit_exceeded"), (Code.INTERNAL, "server_error")])
def test_responses_failure_codes_are_the_sdks(code, word):
    failed = json.loads(watch("responses", CREATED).failure(GatewayError(code, "m"), "req_1")[1])
    assert failed["response"]["error"] == {"code": word, "message": "m"}
    assert word in get_args(ResponseError.model_fields["code"].annotation)


@pytest.mark.parametrize(
    ("frames", "number"),
    [((), 0), ((TEXT,), 5), (({"type": "response.created", "response": None},), 0), (({"type": "response.created", "response": {"id": 7}},), 0)],
)
def test_responses_failure_invents_no_id(frames, number):
    event, data = watch("responses", *frames).failure(CUT, "req_1")
    error = ResponseErrorEvent.model_validate_json(data)
    assert (event, error.code, error.message, error.sequence_number) == (b"error", "server_error", "the stream broke", number)


def test_responses_failure_says_only_what_the_upstream_began_with():
    data = watch("responses", {"type": "response.created", "response": {"id": "resp_1"}}).failure(CUT, "req_1")[1]
    error = {"code": "server_error", "message": "the stream broke"}
    assert json.loads(data)["response"] == {"object": "response", "output": [], "id": "resp_1", "status": "failed", "error": error}
