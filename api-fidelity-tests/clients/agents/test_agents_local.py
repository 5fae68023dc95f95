"""Against the real model, served as a user serves it: Codex, Claude Code and the official SDKs hold a streamed conversation without protocol error.

What the model says is not judged; it calls no tools by itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from asgi_surface import cli
from asgi_surface.upstream.llama import Llama

pytestmark = pytest.mark.skipif(Llama().unavailable() is not None, reason=str(Llama().unavailable()))

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 600.0  # an agent's own prompt is long for a small model on a small machine
ASK = ["Name a colour.", "Name another."]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`asgi-surface serve` with the shipped route file, in a process of its own: its address, and what it logs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("served") / "log"
    command = [sys.executable, "-m", "asgi_surface", "serve", "--warm", "--port", str(port), str(ROOT / "routes.toml")]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
        try:
            wait(f"http://127.0.0.1:{port}/v1/models", process)
            yield f"http://127.0.0.1:{port}", log
        finally:
            process.terminate()
            process.wait(60)


def wait(url, process):
    for _ in range(600):
        assert process.poll() is None
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail("the gateway did not start")


def outcomes(log):
    """What the gateway recorded."""
    return [json.loads(line[line.index("{") :]) for line in log.read_text().splitlines() if '"request_id"' in line]


def chat(url):
    client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0, timeout=SECONDS)
    turns = []
    for words in ASK:
        turns.append({"role": "user", "content": words})
        chunks = [*client.chat.completions.create(model="local", messages=turns, max_tokens=24, temperature=0, stream=True)]
        said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        turns.append({"role": "assistant", "content": said})
        assert [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason] in (["stop"], ["length"])
        yield said
    client.close()


def responses(url):
    client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0, timeout=SECONDS)
    items = []
    for words in ASK:
        items.append({"role": "user", "content": words})
        events = [*client.responses.create(model="local", input=items, max_output_tokens=24, temperature=0, store=False, stream=True)]
        answer = events[-1].response
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        assert events[-1].type in ("response.completed", "response.incomplete")
        yield answer.output_text
    client.close()


def messages(url):
    client = anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0, timeout=SECONDS)
    turns = []
    for words in ASK:
        turns.append({"role": "user", "content": words})
        with client.messages.stream(model="local", messages=turns, max_tokens=24, extra_body={"temperature": 0}) as stream:
            answer = stream.get_final_message()
        turns.append({"role": "assistant", "content": answer.content})
        yield "".join(block.text for block in answer.content)
    client.close()


def gemini(url):
    client = genai.Client(api_key="unused", http_options=types.HttpOptions(base_url=url, timeout=int(SECONDS * 1000)))
    talk = client.chats.create(model="local", config=types.GenerateContentConfig(max_output_tokens=24, temperature=0))
    for words in ASK:
        yield "".join(chunk.text or "" for chunk in talk.send_message_stream(words))
    client.close()


@pytest.mark.parametrize("talk", [chat, responses, messages, gemini])
def test_an_sdk_holds_a_conversation(served, talk):
    assert all(talk(served[0]))


ALONE = {
    "codex": ["exec", "--skip-git-repo-check", "-c", 'approval_policy="never"', "-c", 'sandbox_mode="read-only"', ASK[0]],
    "claude-code": ["-p", ASK[0], "--output-format", "json"],
}

QUIET = {"DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "48"}


@pytest.mark.parametrize("agent", ALONE)
def test_an_agent_holds_a_conversation(served, launch, capsys, installed, agent):
    url, log = served
    assert cli.main(["connect", agent, str(ROOT / "routes.toml"), "--model", "local", "--url", url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    if not (installed / "node_modules/.bin" / told["run"][0]).exists():
        pytest.skip(f"{told['run'][0]} is not installed")
    before = len(outcomes(log))
    ran = launch(told, [*told["run"], *ALONE[agent]], seconds=SECONDS, **QUIET)
    new = outcomes(log)[before:]
    assert [one["ending"] for one in new] == ["completed"] * len(new), new
    # The model may talk on until its limit; Claude Code then asks it to go on, a few times, and says so in the end.
    assert ran.status == 0 or "output token maximum" in ran.out, (ran.out[-2000:], ran.err[-2000:])
    assert ran.out.strip()
    assert any(one.get("stream") and one.get("frames") for one in new)
