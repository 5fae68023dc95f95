"""The corpus of conversions: what a client asks, what is sent, what the upstream answers, what the client gets; each case guards against one fault.

`--accept` writes what is sent and what the client gets; the diff is reviewed. A refused case has neither: it never reaches an upstream. What the
upstream answers, and what the client gets, is a document (`.json`) or a stream (`.sse`).
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from asgi_surface.codecs import CODECS
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, MESSAGES, RESPONSES, Feature
from asgi_surface.verdicts import Verdict

CORPUS = Path(__file__).parents[1] / "corpus"
SURFACES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages", GEMINI: "/v1beta/models/m:generateContent"}
STREAM = ":streamGenerateContent?alt=sse"  # elsewhere the body asks for it
PAIRS = [f"{client}--{upstream}" for client, upstream in itertools.permutations(SURFACES, 2)]
CASES = sorted(path.parent for pair in PAIRS for path in (CORPUS / pair).glob("*/case.toml"))
LOSSES = ("emulated", "advisory", "refused", "tolerated")
NOW = 1_800_000_000


def names(case):
    return f"{case.parent.name}/{case.name}"


def facts(case):
    return tomllib.loads((case / "case.toml").read_text())


def test_there_is_a_case_for_every_pair_and_every_verdict_but_exact():
    found = {(case.parent.name, facts(case)["verdict"]) for case in CASES}
    assert found >= set(itertools.product(PAIRS, LOSSES))


@pytest.mark.parametrize("case", [case for case in CASES if "construct" in facts(case)], ids=names)
def test_the_verdict_is_that_of_the_table(case):
    client, upstream = (SURFACES[name] for name in case.parent.name.split("--"))
    known = facts(case)
    verdict = CODECS[client].rows[known["construct"]].verdicts[upstream]
    assert verdict is Verdict({"tolerated": "refused"}.get(known["verdict"], known["verdict"]))


@pytest.fixture
def run(gateway, upstream, ask, monkeypatch):
    """Runs a case, and gives the reply and the upstream. The clock stands still."""
    monkeypatch.setattr("asgi_surface.layers.conversion.meaning.time", SimpleNamespace(time=lambda: NOW))

    def once(case, *, tolerate):
        known = facts(case)
        client, surface = (SURFACES[name] for name in case.parent.name.split("--"))
        features = sorted(CARRIES[surface] - {Feature.BACKGROUND} - set(known.get("without", ())))
        binding = [f"tolerate = {json.dumps(known['tolerate'])}"] if tolerate and "tolerate" in known else []
        binding += [f"dialect.{name} = {json.dumps(value)}" for name, value in known.get("dialect", {}).items()]
        said = {file.suffix: file.read_bytes() for file in case.glob("upstream.*")}
        app = upstream([json.dumps(json.loads(body)).encode() if suffix == ".json" else body for suffix, body in said.items()])
        door = gateway(app, surface, features=features, binding="\n".join(binding) + "\n")
        path = PATHS[client].replace(":generateContent", STREAM) if known.get("stream") else PATHS[client]
        return ask(door, path, json.loads((case / "request.json").read_text())), app

    return once


def _client(reply):
    """The client's answer by the name of its file, without the id that the gateway gave to the request."""
    body = reply.body.decode().replace(reply.headers["x-surface-request-id"], "REQUEST")
    return {"client.sse": body} if reply.headers["content-type"].startswith("text/event-stream") else {"client.json": _pretty(json.loads(body))}


def _pretty(document):
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("case", CASES, ids=names)
def test_corpus(run, accept, records, case):
    known = facts(case)
    reply, app = run(case, tolerate=True)
    sent = {"sent.json": _pretty(app.calls[0].json)} if app.calls else {}
    for name, found in (sent | _client(reply)).items():
        if accept:  # pragma: no cover -- rewrites the file, by hand
            (case / name).write_text(found)
        assert found == (case / name).read_text()
    assert len(app.calls) == (known["verdict"] != "refused")
    assert reply.status == known.get("status", 400 if known["verdict"] == "refused" else 200)
    dropped = ",".join(records[0].dropped) if known.get("stream") else reply.headers.get("x-surface-dropped")
    assert (dropped or None) == known.get("dropped")


def _place(error):
    """The JSON pointer that an error of any surface names."""
    if "param" in error:
        return re.sub(r"[\[.]", "/", "/" + error["param"]).replace("]", "")
    return error["message"].rpartition("(at ")[2][:-1]


@pytest.mark.parametrize("case", [case for case in CASES if facts(case)["verdict"] == "refused"], ids=names)
def test_what_is_refused_is_named_by_its_place(case):
    assert _place(json.loads((case / "client.json").read_text())["error"]) == facts(case)["pointer"]


@pytest.mark.parametrize("case", [case for case in CASES if facts(case)["verdict"] == "tolerated"], ids=names)
def test_what_is_tolerated_is_refused_otherwise(run, case):
    reply, app = run(case, tolerate=False)
    assert (reply.status, app.calls) == (400, [])
