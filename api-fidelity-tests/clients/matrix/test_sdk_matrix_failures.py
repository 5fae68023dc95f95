"""What every official SDK makes of an upstream's errors and of the gateway's own, through every kind of upstream, and how often it asks again.

Errors before any upstream is asked are refusals of verdicts, keys and limits; those cells are listed with the code and the place.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import NamedTuple

import anthropic
import openai
import pytest
from google.genai import errors as google

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

SURFACES = [CHAT, RESPONSES, MESSAGES, GEMINI]
PAIRS = [*itertools.product(SURFACES, SURFACES)]
KINDS = ["sync", "async"]
HI = (("user", "hi"),)


@pytest.fixture
def delays(monkeypatch) -> list[float]:
    """What the SDKs would wait before they ask again. They do not."""
    found: list[float] = []
    for sdk in (openai, anthropic):
        real = sdk._base_client.BaseClient._calculate_retry_timeout

        def instead(self, *more, real=real):
            found.append(real(self, *more))
            return 0.0

        monkeypatch.setattr(sdk._base_client.BaseClient, "_calculate_retry_timeout", instead)
    return found


class Failure(NamedTuple):
    """What an upstream's status becomes: the class of OpenAI's, Anthropic's and Google's SDK, the status, and the calls of the first two."""

    openai: type[Exception]
    anthropic: type[Exception]
    google: type[Exception]
    status: int
    calls: int

    def kind(self, client: str) -> type[Exception]:
        return {MESSAGES: self.anthropic, GEMINI: self.google}.get(client, self.openai)


INVALID = Failure(openai.BadRequestError, anthropic.BadRequestError, google.ClientError, 400, 1)
SERVER = Failure(openai.InternalServerError, anthropic.InternalServerError, google.ServerError, 502, 1)
BUSY = Failure(openai.InternalServerError, anthropic.ServiceUnavailableError, google.ServerError, 503, 3)
LATE = Failure(openai.InternalServerError, anthropic.DeadlineExceededError, google.ServerError, 504, 1)  # it may have been worked on
FAILURES = {
    400: INVALID,
    401: SERVER,  # the operator's credential is no client's business
    402: SERVER,
    403: SERVER,
    404: Failure(openai.NotFoundError, anthropic.NotFoundError, google.ClientError, 404, 1),
    408: LATE,
    409: Failure(openai.ConflictError, anthropic.ConflictError, google.ClientError, 409, 3),
    413: Failure(openai.APIStatusError, anthropic.RequestTooLargeError, google.ClientError, 413, 1),
    422: Failure(openai.UnprocessableEntityError, anthropic.UnprocessableEntityError, google.ClientError, 422, 1),
    429: Failure(openai.RateLimitError, anthropic.RateLimitError, google.ClientError, 429, 3),
    500: SERVER._replace(status=500),
    503: BUSY,
    504: LATE,
    529: BUSY._replace(anthropic=anthropic.OverloadedError),
}


def status_of(error):
    return error.code if isinstance(error, google.APIError) else error.status_code


async def drained(words, talk):
    return [event async for event in words.each(await talk.events())]


@pytest.mark.parametrize("how", ["whole", "events"])
@pytest.mark.parametrize(("client", "origin"), PAIRS)
@pytest.mark.parametrize("status", FAILURES)
def test_an_upstreams_error(bench, words, delays, status, client, origin, how):
    """The sync client gets it unstreamed, the async one streamed."""
    expected, kind = FAILURES[status], KINDS[how == "events"]
    after = (("retry-after", "7"),) if status == 429 else ()
    bench.upstream.script(status=status, headers=after)
    talk = bench.talk(client, origin, kind, words.Ask(HI))
    error = bench.raised(drained(words, talk) if how == "events" else talk.whole())
    assert type(error) is expected.kind(client)
    assert status_of(error) == (529 if (client, status) == (MESSAGES, 529) else expected.status)
    assert ("no such thing" in str(error)) == (expected is not SERVER)
    calls = 1 if client == GEMINI else expected.calls
    assert len(bench.upstream.bodies) == calls
    assert len(delays) == calls - 1
    if after:
        assert error.response.headers["retry-after"] == "7"
        assert delays == [7.0] * (calls - 1)


async def closed(words, talk):
    """Takes one event of a stream and closes it."""
    stream = await talk.events()
    event = next(iter(stream))
    stream.close()
    return event


async def cancelled(words, talk):
    """Takes one event of a stream and is cancelled in wait of the next."""
    seen = []
    come = asyncio.Event()

    async def take():
        async for event in words.each(await talk.events()):
            seen.append(event)
            come.set()

    task = asyncio.create_task(take())
    await come.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    return seen[0]


@pytest.mark.parametrize(("kind", "leave"), [("sync", closed), ("async", cancelled)])
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_client_that_leaves_in_mid_stream_is_felt_upstream(bench, words, client, origin, kind, leave):
    bench.upstream.script(words.Say(text="Once upon a time."), half="hangs")
    before = len(bench.records)
    assert bench.run(leave(words, bench.talk(client, origin, kind, words.Ask(HI)))) is not None
    # What was recorded of the request before may come late.
    bench.wait(lambda: bench.upstream.left == 1 and [record.ending for record in bench.records[before:]][-1:] == ["disconnected"])


# What each SDK makes of an error within a stream; OpenAI's gives the one that ends a response to who reads it.
WITHIN = {CHAT: openai.APIError, MESSAGES: anthropic.APIStatusError, GEMINI: google.ServerError}


@pytest.mark.parametrize(("half", "words_of_it"), [("breaks", "the upstream's answer broke off"), ("fails", "no such thing")])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_stream_that_fails_within_never_looks_whole(bench, words, client, origin, kind, half, words_of_it):
    """What was begun is not asked for again. An error that the upstream itself tells stays its own event between equal surfaces."""
    bench.upstream.script(words.Say(text="Once upon a time."), half=half)
    taken = drained(words, bench.talk(client, origin, kind, words.Ask(HI)))
    if client == RESPONSES:
        last = bench.run(taken)[-1]
        own = half == "fails" and origin == RESPONSES
        assert last.type == ("error" if own else "response.failed")
        assert own or last.response.status == "failed"
        told = (last if own else last.response.error).message
    else:
        error = bench.raised(taken)
        assert type(error) is WITHIN[client]
        told = str(error)
    assert words_of_it in told
    assert len(bench.upstream.bodies) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_stream_that_is_but_an_error_has_its_status(bench, words, delays, client, origin, kind):
    """It came with 200: the SDKs see what it says of itself, and ask again."""
    bench.upstream.script(half="fails at once")
    error = bench.raised(drained(words, bench.talk(client, origin, kind, words.Ask(HI))))
    busy = FAILURES[503 if origin == GEMINI else 529]
    assert type(error) is busy.kind(client)
    assert "no such thing" in str(error)
    assert len(bench.upstream.bodies) == (1 if client == GEMINI else 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("origin", SURFACES)
@pytest.mark.parametrize(("status", "calls"), [(429, 3), (503, 3), (500, 3), (400, 1), (409, 1)])
def test_googles_sdk_asks_again_where_it_is_told_to(bench, words, status, calls, origin, kind):
    bench.upstream.script(status=status)
    talk = bench.talk(GEMINI, origin, kind, words.Ask(HI))
    talk.request["config"]["http_options"] = {"retry_options": {"attempts": 3, "initial_delay": 0.0, "max_delay": 0.0, "jitter": 0.0}}
    assert type(bench.raised(talk.whole())) is FAILURES[status].google
    assert len(bench.upstream.bodies) == calls


class Own(NamedTuple):
    """An error of the gateway's own: the key, what is asked, and what comes back."""

    failure: Failure
    code: str
    key: str = "key-of-the-client"
    text: str = "hi"
    model: str | None = None


OWN = {
    "a wrong key": Own(Failure(openai.AuthenticationError, anthropic.AuthenticationError, google.ClientError, 401, 1), "unauthorized", "sk-no"),
    "a key for less": Own(
        Failure(openai.PermissionDeniedError, anthropic.PermissionDeniedError, google.ClientError, 403, 1), "model_forbidden", "key-for-one-model"
    ),
    "an unknown model": Own(FAILURES[404], "unknown_model", model="nobody"),
    "a large body": Own(FAILURES[413], "body_too_large", text="hi" * 100_000),
    "an upstream that is away": Own(SERVER._replace(calls=3), "upstream_unreachable", model="nowhere"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("client", SURFACES)
@pytest.mark.parametrize("name", OWN)
def test_an_error_of_the_gateways_own(bench, words, delays, name, client, kind):
    own = OWN[name]
    bench.upstream.script()
    talk = bench.talk(client, own.model or client, kind, words.Ask((("user", own.text),)), own.key)
    error = bench.raised(talk.whole())
    assert type(error) is own.failure.kind(client)
    assert (status_of(error), error.response.headers["x-surface-error"]) == (own.failure.status, own.code)
    assert bench.upstream.bodies == []
    assert len(delays) == (0 if client == GEMINI else own.failure.calls - 1)
