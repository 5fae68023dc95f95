"""SDKs and frameworks get an answer through every kind of upstream, by the very program and environment that `asgi-surface connect` prints."""

from __future__ import annotations

import sys

import pytest

from asgi_surface.connect import CLIENTS
from asgi_surface.surfaces import MESSAGES, SURFACES

UPSTREAMS = ["chat", "responses", "messages", "gemini"]
# Where each lives in the folder of the clients; the official SDKs are among the packages of the tests.
PLACES = {
    "openai-agents": "v-oai",
    "pydantic-ai": "v-pyd",
    "langchain": "v-lc",
    "instructor": "v-inst",
    "litellm": "v-litellm",
    "aider": "v-aider",
    "ai-sdk": "node_modules/ai",
}
PYTHON = [name for name, client in CLIENTS.items() if any(way.code for way in client.ways.values()) and name != "ai-sdk"]
WAYS = [(name, surface) for name in (*PYTHON, "ai-sdk", "aider") for surface in SURFACES if surface in CLIENTS[name].ways]
ALONE = ["--message", "Say hello.", "--edit-format", "ask", "--no-git", "--yes-always", "--no-check-update", "--analytics-disable", "--no-pretty"]
ALONE += ["--map-tokens", "0", "--no-detect-urls", "--no-suggest-shell-commands", "--no-show-release-notes"]
ANSWER, FILLED = "Hello from the upstream.", "x"
# What a client always asks for and an upstream's surface has no word for: the program ends with the gateway's refusal.
REFUSED = {("instructor", MESSAGES): {"gemini": "unrepresentable at /tool_choice/disable_parallel_tool_use"}}


def commands(client, surface, told, place, home):
    """What to run: a Python program of all the programs told, or one command for each."""
    work = home / "work"
    if client == "aider":
        return [[str(place / "bin" / one["run"][0]), *one["run"][1:], *ALONE] for one in told]
    if client == "ai-sdk":
        (work / "node_modules").symlink_to(place.parent)
        for number, one in enumerate(told):
            (work / f"ask{number}.mjs").write_text(one["code"])
        return [["node", f"ask{number}.mjs"] for number in range(len(told))]
    (work / "ask.py").write_text("\n".join(one["code"] for one in told))
    return [[str(place / "bin/python") if client in PLACES else sys.executable, "ask.py"]]


@pytest.mark.parametrize(("client", "surface"), WAYS)
def test_a_program_gets_its_answers(bench, launch, home, installed, results, capsys, client, surface):
    place = installed / PLACES.get(client, "")
    if not place.exists():
        pytest.skip(f"{place.name} is not installed")
    script = bench.renew()
    models = {upstream: f"plain-on-{upstream}" for upstream in UPSTREAMS}
    told = [bench.told(capsys, client, surface, model) for model in models.values()]
    runs = [launch(told[0], command) for command in commands(client, surface, told, place, home)]
    refused = REFUSED.get((client, surface), {})
    assert script.complaints == []
    assert bench.refused() == [*refused.values()]
    assert [ran.status for ran in runs] == [bool(refused)] * len(runs), [(ran.out[-2000:], ran.err[-2000:]) for ran in runs]
    out = "\n".join(ran.out for ran in runs)
    assert out.count(FILLED if client == "instructor" else ANSWER) == len(UPSTREAMS) - len(refused), out
    for upstream, model in models.items():
        found = {"refused": refused[upstream]} if upstream in refused else {"dropped": bench.dropped(model)}
        results.tell("programs", f"{client} over {surface}", upstream, found)
