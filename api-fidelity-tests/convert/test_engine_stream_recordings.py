"""The recordings that engines' rows rest on: they exist, they decode, and reasoning with proofs goes back as real clients send it back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from asgi_surface.assembly import Fold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context, Target
from asgi_surface.converters import convert
from asgi_surface.engines import ENGINES, dialect
from asgi_surface.framing import Framing
from asgi_surface.ir import Request
from asgi_surface.members import parse
from asgi_surface.surfaces import CHAT, MESSAGES, RESPONSES
from asgi_surface.translation import Translation

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
SURFACES = {"chat": CHAT, "responses": RESPONSES}
FACTS = [one.fact for row in ENGINES.values() for one in (*row.notes, *(said for values in row.values.values() for said in values.values()))]
NAMES = sorted({name for fact in FACTS for name in re.findall(r"(?:chat|responses)/[\w-]+(?=\.json)", fact)})
# The first answer of a conversation, and the request that sent it back.
REPLAYED = [
    ("openrouterthinking-anthropic-thinking-streaming", "openrouter"),
    ("openroutercommon-gemini-multi-tool-streaming", "openrouter"),
    ("openrouter-reasoning-tool-order-matrix-streaming-signed-agent-roundtrip", "openrouter"),
    # Another gateway with the same details: a proof goes back wherever the dialect has plain reasoning.
    ("vercel-gateway-vercelthinking-claude-sonnet-4-sig-thinking-streaming", "openai-compatible"),
    ("vercel-gateway-vercelthinking-gemini-3-pro-preview-thinking-streaming", "openai-compatible"),
]
SAME = ("type", "text", "data", "signature")

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recordings lie beside the checkout, in ../shared/recorded")


def folded(name, surface):
    """A recorded stream as a Messages client's JSON answer."""
    asked = Request(turns=(), wants_seals=True, stream=True)
    context = Context(request=asked, aliases={}, seal_domain="up", upstream=surface, model="m", request_id="r", now=1)
    codec, failed = CODECS[surface], []
    stream = Translation(
        codec.decoder(),
        Fold(lambda response: CODECS[MESSAGES].write(response, context)),
        upstream=Framing.SSE,
        downstream=None,
        event_bytes=1 << 24,
        output_chars=1 << 24,
        eof_ends=codec.eof_ends,
        blame=lambda facts: failed.append(facts) or pytest.fail(f"{name}: {facts}"),
    )
    return stream.feed((RECORDED / f"{name}.sse").read_bytes()) + stream.eof()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_row_rests_on_is_there_and_decodes(name):
    told = json.loads((RECORDED / f"{name}.json").read_text())
    surface = SURFACES[name.partition("/")[0]]
    if not (RECORDED / f"{name}.sse").exists():
        body = told["response"].get("body", told["response"].get("json"))
        assert CODECS[surface].read((body if isinstance(body, str) else json.dumps(body)).encode()).unread is not None
    elif "error" not in name:
        assert json.loads(folded(name, surface))["role"] == "assistant"


@pytest.mark.parametrize(("name", "engine"), REPLAYED)
def test_proofs_of_reasoning_go_back_as_the_recorded_client_sent_them(name, engine):
    sent = json.loads((RECORDED / "chat" / f"{name}-2.json").read_text())["request"]
    body = sent.get("body", sent.get("json"))
    body = json.loads(body) if isinstance(body, str) else body
    expected = next(message["reasoning_details"] for message in body["messages"] if message["role"] == "assistant")
    answer = json.loads(folded(f"chat/{name}-1", CHAT))
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "x"} for block in answer["content"] if block["type"] == "tool_use"]
    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
    tools = [{"name": block["name"], "input_schema": {"type": "object"}} for block in answer["content"] if block["type"] == "tool_use"]
    request = json.dumps({"model": "m", "max_tokens": 9, "messages": history, "tools": tools}).encode()
    target = Target(model="m", dialect=dialect(engine, CHAT, {}), seal_domain="up", features=frozenset())
    lowered = convert(CODECS[MESSAGES], CODECS[MESSAGES].lift(parse(request), stream=False), CODECS[CHAT], target, ()).lowered
    said = json.loads(bytes(lowered.members["messages"]))[1]["reasoning_details"]
    # One client replaces what it does not know by null, so the words and the proofs are compared.
    assert [{key: one[key] for key in SAME if key in one} for one in said] == [{key: one[key] for key in SAME if key in one} for one in expected]
