"""llm-comply's forty checks hold every answer and stream against the published API schemas: natively and through every converter."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

UPSTREAMS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}


class Suite(NamedTuple):
    """One surface's checks: their name and number, the base of the paths, and a model that they think able to do all.

    `excess` are words of errors for what the schema demands and the real wire leaves out; `unknown` for what it demands of a converted answer too,
    though only the provider could say: the gateway invents nothing.
    """

    name: str
    checks: int
    base: str
    model: str
    excess: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


SUITES = {
    RESPONSES: Suite(
        "open-responses",
        13,
        "/v1",
        "gpt-5",
        # Settings that the client left to the provider, and what only a provider counts and times.
        unknown=("temperature: None", "top_p: None", "presence_penalty", "frequency_penalty", "service_tier", "completed_at", "max_tool_calls"),
    ),
    CHAT: Suite("openai-chat", 9, "/v1", "gpt-5"),
    MESSAGES: Suite(
        "anthropic",
        9,
        "/v1",
        "claude-sonnet-4-6",
        # Taken from the SDK's types: `citations` of a text and `caller` of a call as null, and more that stands only in some answers.
        excess=("server_tool_use", "container", "stop_details", "not valid under any"),
        unknown=("cache_creation", "cache_read_input_tokens", "inference_geo", "service_tier", "output_tokens_details"),
    ),
    GEMINI: Suite("google-genai", 9, "", "gpt-5"),
}
# What a check asks for and a pair refuses, with the gateway's words.
REFUSED = {(CHAT, other): {"chat-reasoning-summary": "unrepresentable at /reasoning/summary"} for other in ("responses", "messages", "gemini")}


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("surface", SUITES)
def test_every_check_passes(bench, launch, installed, results, surface, upstream):
    program, suite = installed / "v-comply/bin/llm-comply", SUITES[surface]
    if not program.exists():
        pytest.skip("llm-comply is not installed")
    script = bench.renew()
    ignored = suite.excess + (() if UPSTREAMS[upstream] == surface else suite.unknown)
    command = [str(program), "-u", bench.url + suite.base, "-k", "unused", "-m", f"{suite.model}-on-{upstream}", "--format", suite.name, "--json"]
    ran = launch({"env": {}, "files": {}}, command + (["-i", ",".join(ignored)] if ignored else []))
    found = json.loads(ran.out)["results"]
    refused = REFUSED.get((surface, upstream), {})
    assert len(found) == suite.checks
    assert {one["id"]: one.get("errors") for one in found if one["status"] != "passed" and one["id"] not in refused} == {}
    assert {one["id"]: one["status"] for one in found if one["id"] in refused} == dict.fromkeys(refused, "failed")
    assert {*refused.values()} <= {*bench.refused()}
    assert script.complaints == []
    words = "".join(f"; refused: {one}" for one in refused.values())
    results.tell("llm-comply", suite.name, upstream, f"{suite.checks - len(refused)} of {suite.checks}{words}")
