"""Agents that nobody here wrote complete their loop of two turns through every kind of upstream, told only what `asgi-surface connect` prints.

Each has to run its own shell tool and to end with what the upstream says to the command's output. What else an agent is told makes it work without a
person at hand and ask nobody but the gateway.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from asgi_surface.connect import CLIENTS
from asgi_surface.surfaces import SURFACES

PROMPT = "Run the shell check and report what it printed."
UPSTREAMS = ["chat", "responses", "messages", "gemini"]
QUIET = {
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
}


class Agent(NamedTuple):
    """How an agent works alone: words after its command, environment, and what its JSON settings say besides."""

    words: list[str]
    env: dict[str, str]
    settings: dict[str, Any]


CODEX = ["check_for_update_on_startup=false", "analytics.enabled=false", 'approval_policy="never"', 'sandbox_mode="danger-full-access"']
CLAUDE = dict.fromkeys(("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER"), "1")
OPENCODE = {f"OPENCODE_DISABLE_{one}": "1" for one in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}
AGENTS = {
    "codex": Agent(["exec", "--skip-git-repo-check", *(word for one in CODEX for word in ("-c", one)), PROMPT], {}, {}),
    "claude-code": Agent(["-p", PROMPT, "--allowedTools", "Bash", "--output-format", "text"], CLAUDE, {}),
    "gemini-cli": Agent(["-p", PROMPT, "--yolo"], {"GEMINI_CLI_TRUST_WORKSPACE": "true"}, QUIET),
    "opencode": Agent(["run", PROMPT], OPENCODE, {"autoupdate": False, "share": "disabled", "snapshot": False, "permission": {"bash": "allow"}}),
    "qwen-code": Agent(["-p", PROMPT, "--yolo"], {}, QUIET),
}
WAYS = [(agent, surface) for agent in AGENTS for surface in SURFACES if surface in CLIENTS[agent].ways]


@pytest.fixture(scope="module", autouse=True)
def programs(installed):
    if missing := sorted(
        {CLIENTS[agent].ways[surface].run[0] for agent, surface in WAYS} - {one.name for one in installed.glob("node_modules/.bin/*")}
    ):
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize(("agent", "surface"), WAYS)
def test_an_agent_completes_its_shell_loop(bench, launch, results, capsys, agent, surface, upstream):
    worker = AGENTS[agent]
    script = bench.renew()
    told = bench.told(capsys, agent, surface, model := f"{agent}-on-{upstream}")
    told["files"] = {name: json.dumps(json.loads(text) | worker.settings) if name.endswith(".json") else text for name, text in told["files"].items()}
    ran = launch(told, [*told["run"], *worker.words], **worker.env)
    assert script.complaints == []
    assert ran.status == 0, (ran.out[-2000:], ran.err[-2000:], bench.refused())
    assert "FINAL: tool-ran-42" in ran.out, (ran.out[-2000:], ran.err[-2000:], [turn.results for turn in script.turns])
    assert bench.refused() == []
    results.tell("agents", f"{agent} over {surface}", upstream, {"dropped": bench.dropped(model), "ids": script.ids(), "seals": script.sealed()})
