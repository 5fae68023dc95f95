"""Real answers of many providers, read by the codecs. The recordings stand beside the checkout, not in it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from asgi_surface.framing import Framing, splitter
from asgi_surface.lifecycle import Kind

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
INDEX = json.loads((RECORDED / "index.json").read_text()) if RECORDED.is_dir() else []

# Streams of another API than their folder's, and streams that end in an error.
OTHER_API = {"responses/openai-ai-sdk-azure-model-router-1.json", "gemini/gemini-ai-sdk-google-search.json"}
FAILED = {
    "chat/groq-tool-use-failed-error-streaming-1.json",
    "chat/openrouter-stream-error.json",
    "responses/openai-ai-sdk-openai-error-1.json",
}

pytestmark = pytest.mark.skipif(not INDEX, reason="the recordings of shared/ are not beside this checkout")


def recordings(*, stream, refused=False):
    return [entry for entry in INDEX if entry["sse"] is stream and (entry["status"] != 200) is refused]


def body_of(entry):
    return json.dumps(json.loads((RECORDED / entry["file"]).read_text())["response"]["body"]).encode()


def kinds(entry):
    watch = import_module(f"asgi_surface.codecs.{entry['surface']}.stream").watch()
    cutter = splitter(Framing.SSE, 1 << 24)
    frames = cutter.feed((RECORDED / entry["file"]).with_suffix(".sse").read_bytes())
    last = cutter.eof()
    return {signal.kind for frame in (*frames, *([last] if last else [])) for signal in watch.see(frame).signals}


def test_every_recorded_stream_is_seen_to_its_end():
    terminals = {entry["file"]: kinds(entry) for entry in recordings(stream=True)}
    failed = {name for name, seen in terminals.items() if Kind.FAULT in seen}
    assert failed == FAILED
    for name, seen in terminals.items():
        if name not in FAILED | OTHER_API:
            end = set() if name.startswith("gemini/") else {Kind.END}
            assert seen >= {Kind.FINISH, Kind.USAGE} | end, name


def test_every_recorded_answer_is_read():
    for entry in recordings(stream=False):
        sight = import_module(f"asgi_surface.codecs.{entry['surface']}.answer").document(body_of(entry))
        assert sight.signals[-1].kind is Kind.END, entry["file"]


def test_every_recorded_refusal_is_read():
    for entry in recordings(stream=False, refused=True):
        facts = import_module(f"asgi_surface.codecs.{entry['surface']}.errors").error_facts(body_of(entry))
        assert facts.message, entry["file"]
        assert facts.status in (None, entry["status"])
