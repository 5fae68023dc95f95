"""Recorded provider answers, read by the official SDKs directly and through a served gateway as every other surface: `recorded/replay.py` judges.

What it finds different is listed here, each with the reason why the gateway's reading stands. The core streams are replayed, and whatever is listed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT.parent / "shared" / "recorded"
CLIENTS = ("chat", "responses", "messages", "gemini")

# What differs by the script's reading (text, calls, stop or usage), for which clients, and why that is no fault.
KNOWN = {
    "chat/llamacpp-truncation-matrix-streaming-tool-call-cut-mid-arguments.json": (
        "calls",
        ("messages", "gemini"),
        "a call cut by the token limit: the SDK makes {} of half an object, and Gemini has no place for half a call; the stop says that it was cut",
    ),
    "chat/openai-refusal-matrix-chat-blocking-raw-model-surfaces-refusal.json": (
        "stop",
        ("responses",),
        "a refusal that ended with `stop`: the script reads a refusal part in a completed response as a filter, which Chat's own reading does not",
    ),
    "chat/openai-refusal-matrix-chat-streaming-raw-model-surfaces-refusal.json": ("stop", ("responses",), "the same, streamed"),
    "chat/openrouter-refusal-matrix-streaming-azure-routed-refusal.json": ("stop", ("responses",), "the same, from another provider"),
    "chat/xai-ai-sdk-xai-tool-call.json": (
        "usage",
        ("responses", "messages", "gemini"),
        "xAI counts reasoning beside the completion (307 + 26 + 227 = 560 in all); elsewhere the output includes it",
    ),
    "chat/xai-openaicompatiblecommon-xai-grok-4-fast-multi-tool-streaming-1.json": (
        "usage",
        ("responses", "messages", "gemini"),
        "reasoning counted beside the completion",
    ),
    "chat/xai-openaicompatiblecommon-xai-grok-4-fast-multi-tool-streaming-2.json": (
        "usage",
        ("responses", "messages", "gemini"),
        "reasoning counted beside the completion",
    ),
    "gemini/gemini-ai-sdk-google-stream-tool-call-arguments.json": (
        "calls",
        ("chat", "responses", "messages"),
        "arguments that stream in pieces: the script takes each piece for a call, the gateway puts them together",
    ),
    "gemini/vertex-google-model-armor-prompt-template-text-gets-blocked.json": (
        "stop",
        ("chat", "responses", "messages"),
        "a blocked prompt has no candidate and so no finish; the surfaces that need one are told of a filter",
    ),
    "messages/anthropic-ai-sdk-anthropic-refusal.json": (
        "text",
        ("chat", "responses", "gemini"),
        "the explanation of a refusal stands in `stop_details`; surfaces without such a place say it as the refusal's words",
    ),
    "responses/openai-previous-response-id-1.json": (
        "stop",
        ("chat", "messages", "gemini"),
        "a stand-in for the API that says `complete`, which is no status of a response; a word that nobody knows is no good end",
    ),
    "responses/openai-previous-response-id-2.json": ("stop", ("chat", "messages", "gemini"), "the same stand-in"),
}


def is_told(entry):
    return (entry["core"] and entry["sse"]) or entry["file"] in KNOWN


def is_another_s(entry):
    """A stream of a server that is not OpenAI's."""
    return entry["surface"] == "chat" and entry["sse"] and "openai" not in entry["provider"]


@pytest.mark.skipif(not RECORDED.exists(), reason="the recordings lie beside the checkout, in ../shared/recorded")
@pytest.mark.parametrize(("chosen", "more"), [(is_told, ()), (is_another_s, ("--engines",))], ids=["core", "engines"])
def test_recorded_answers_are_read_alike_through_every_surface(chosen, more, tmp_path):
    entries = [entry for entry in json.loads((RECORDED / "index.json").read_text()) if chosen(entry)]
    (tmp_path / "index.json").write_text(json.dumps(entries))
    for surface in CLIENTS:
        (tmp_path / surface).symlink_to(RECORDED / surface)
    command = [
        sys.executable,
        RECORDED / "replay.py",
        "--python",
        sys.executable,
        "--checkout",
        ROOT,
        "--recordings",
        tmp_path,
        "--min",
        "0.85",
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # The script's own server is loud about a connection that is closed on it.
    assert done.returncode == 0, done.stdout + done.stderr
    found = {tuple(line.split(": ")[:2]) for line in done.stdout.splitlines() if " -> " in line}
    known = {entry["file"] for entry in entries} & KNOWN.keys()
    assert found == {(f"{file} -> {client}", KNOWN[file][0]) for file in known for client in KNOWN[file][1]}
