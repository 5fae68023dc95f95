"""Breaks a converter on purpose, one place at a time, in a copy of the checkout, and shows that the clients' own tests see it.

Needs the clients (.ci/clients/install). Fails when a mutation's place is not there any more, or when no test fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
AGENTS, SDKS = "api-fidelity-tests/clients/agents/test_agents.py", "api-fidelity-tests/clients/matrix/test_sdk_matrix.py"


class Mutation(NamedTuple):
    """What is broken, where, the words there and those in their place; `agents` and `sdks` pick the tests of each that must notice."""

    what: str
    file: str
    old: str
    new: str
    agents: str
    sdks: str


MUTATIONS = [
    Mutation(
        "tool results lose the ids of their calls on the way to Chat Completions",
        "asgi_surface/codecs/chat/lower_turns.py",
        '"tool_call_id": names.id(result.call_id)',
        '"tool_call_id": "call"',
        "codex and chat or claude and chat",
        "tools-anthropic-messages-openai-chat-completions or tools-openai-responses-openai-chat-completions",
    ),
    Mutation(
        "a finished answer is told as a cut one in Responses",
        "asgi_surface/codecs/responses/write.py",
        "    Stop.END: None,",
        '    Stop.END: "max_output_tokens",',
        "codex and messages or codex and chat",
        "text-openai-responses-anthropic-messages or text-openai-responses-openai-chat-completions",
    ),
    Mutation(
        "thought signatures do not reach Gemini",
        "asgi_surface/codecs/gemini/lower_contents.py",
        "        return seal.token\n",
        "        return None\n",
        "codex and gemini or claude and gemini",
        "reasoning-openai-responses-gemini-generate-content or reasoning-anthropic-messages-gemini-generate-content",
    ),
]


def tests(folder: Path, mutation: Mutation) -> set[int]:
    """The exit status of the agents' tests in a copy, and of the SDKs': 0 all passed, 1 some failed; anything else is no answer."""
    return {run(folder, AGENTS, mutation.agents), run(folder, SDKS, mutation.sdks)}


def run(folder: Path, file: str, picked: str) -> int:
    """The exit status of the tests of a file that are picked; 2 where one was skipped."""
    clients = os.environ.get("ASGI_SURFACE_CLIENTS") or str(ROOT / ".clients")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", file, "-k", picked]
    environ = {**os.environ, "ASGI_SURFACE_CLIENTS": clients, "PYTHONPATH": str(folder)}
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 -- our own tests
    print(f"  {ended.stdout.splitlines()[-1]}")
    return ended.returncode if " skipped" not in ended.stdout.splitlines()[-1] else 2


def main() -> None:
    """Every mutation after a run that must pass."""
    with tempfile.TemporaryDirectory() as scratch:
        for mutation in MUTATIONS:
            folder = Path(scratch, "copy")
            shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "bench"))
            print(f"{mutation.what}: as it is, and broken")
            if tests(folder, mutation) != {0}:
                sys.exit("the tests do not pass as they are")
            file = folder / mutation.file
            code = file.read_text()
            if code.count(mutation.old) != 1:
                sys.exit(f"{mutation.file} has changed: say anew what to break")
            file.write_text(code.replace(mutation.old, mutation.new))
            if tests(folder, mutation) != {1}:
                sys.exit("not all tests saw it")
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
