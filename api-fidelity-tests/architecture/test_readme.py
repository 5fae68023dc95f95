"""README is true: what it shows of the code is made from the code. `--accept` writes it anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from asgi_surface import contracts
from asgi_surface.catalog import build
from asgi_surface.cli import main
from asgi_surface.connect import CLIENTS
from asgi_surface.engines import ENGINES
from asgi_surface.errors import RequestError
from asgi_surface.lifecycle import TABLE, Kind
from asgi_surface.planner import plan
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature
from asgi_surface.upstream import echo

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def lifecycle() -> str:
    lines = ["| state | " + " | ".join(kind.name for kind in Kind) + " |", "|---" * (len(Kind) + 1) + "|"]
    for state, row in TABLE.items():
        cells = [f"{after.name}·{action.value}" for after, action in row.values()]
        lines.append(f"| {state.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def directives() -> str:
    return "\n".join(line for line in (echo.__doc__ or "").splitlines() if line.startswith("|"))


def engines() -> str:
    lines = ["| engine | where | what | the fact it rests on |", "|---|---|---|---|"]
    for name, row in ENGINES.items():
        official = [str(surface) for surface, values in row.values.items() if not values]
        values = [(str(surface), f"`{key} = {json.dumps(one.value)}`", one.fact) for surface, said in row.values.items() for key, one in said.items()]
        known = [("answers", note.value, note.fact) for note in row.notes]
        told = [(", ".join(official), "the official wire", "the surface's SDK")] if official else []
        called = [(where, f"`{one.value}`", one.fact) for where, one in (("the key's header", row.header), ("every query", row.query)) if one]
        lines += [f"| {name} | {where} | {what} | {fact} |" for where, what, fact in (*values, *told, *called, *known)]
    return "\n".join(lines)


CONTRACT = [  # what a client asks beside `"model": "m", "input": "hi"`, in the words of the table
    ("`input`: a text, or up to 64 messages", {"input": [{"role": "user", "content": "hi"}] * 64}),
    ("`input`: 65 messages", {"input": [{"role": "user", "content": "hi"}] * 65}),
    ("roles `system`, `developer`, `user`, `assistant`", {"input": [{"role": role, "content": "x"} for role in contracts.ROLES]}),
    ("another role", {"input": [{"role": "tool", "content": "x"}]}),
    (
        "parts `input_text`, `output_text`, `text`",
        {"input": [{"role": "user", "content": [{"type": kind, "text": "x"} for kind in contracts.PARTS]}]},
    ),
    ("another part", {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
    ("an item that is no message", {"input": [{"type": "item_reference", "id": "i"}]}),
    ("a further member of a message (`id`, `status` …)", {"input": [{"role": "user", "content": "x", "id": "i"}]}),
    ("1,000,000 characters of `instructions` and `input`", {"input": "x" * 999_998, "instructions": "xx"}),
    ("1,000,001 characters", {"input": "x" * 999_999, "instructions": "xx"}),
    ("`max_output_tokens`: 1", {"max_output_tokens": 1}),
    ("`max_output_tokens`: 32768", {"max_output_tokens": 32_768}),
    ("`max_output_tokens`: 0, 32769, 1.0", {"max_output_tokens": 32_769}),
    ("`temperature`: 0 to 2", {"temperature": 2}),
    ("`temperature`: 2.1", {"temperature": 2.1}),
    ("`stream`: true, false", {"stream": True}),
    ("null for `instructions`, `stream`, `max_output_tokens`, `temperature`", dict.fromkeys(("instructions", "stream", "temperature"))),
    ("any other field", {"store": False}),
]


def contract() -> str:
    file = (
        '[auth]\nmode = "host"\n[providers.p]\nbase_url = "http://127.0.0.1:9"\n[[routes]]\nroute_id = "r"\nupstream_model = "m"\nprovider = "p"\n'
        'inbound_contract = "responses-bounded-text"\n[[routes.api_bindings]]\nsurface = "openai-responses"\npath = "/r"\nfeatures = ["streaming"]\n'
    )
    catalog = build(file)
    lines = ["| a client asks | answer |", "|---|---|"]
    for words, members in CONTRACT:
        try:
            plan(RESPONSES, json.dumps({"model": "m", "input": "hi"} | members).encode(), catalog)
        except RequestError as error:
            lines.append(f"| {words} | {error.status} `{error.code}` at `{error.pointer}` |")
        else:
            lines.append(f"| {words} | taken |")
    return "\n".join(lines)


SHORT = {"chat": "Chat", "responses": "Responses", "messages": "Messages", "gemini": "Gemini"}
WORK = {"agents": "shell loop", "programs": "answer", "llm-comply": "schema checks"}
OVER = {"openai-chat": CHAT, "open-responses": RESPONSES, "anthropic": MESSAGES, "google-genai": GEMINI}  # llm-comply's names


def clients() -> str:
    """Each client, what it did through a gateway and over which surface, and what was lost on the way to each kind of upstream."""
    told = json.loads((ROOT / "api-fidelity-tests/clients/agents/results.json").read_text(encoding="utf-8"))
    rows: dict[tuple[str, ...], list[str]] = {}
    for part, work in WORK.items():
        for name, cells in told[part].items():
            client, _, surface = name.rpartition(" over ")
            over = surface if client else OVER[surface]
            rows.setdefault((work, over, *(cell(cells[short]) for short in SHORT)), []).append(client or part)
    lines = ["| client | did | over | " + " | ".join(SHORT.values()) + " |", "|---" * 7 + "|"]
    return "\n".join([*lines, *(f"| {', '.join(names)} | {' | '.join(row)} |" for row, names in rows.items())])


def cell(found: Any) -> str:
    if isinstance(found, str):
        return found
    if "refused" in found:
        return f"refused: {found['refused']}"
    return "yes" + "".join(f"<br>`{one}`" for one in found["dropped"])


def printed(capsys, *arguments) -> str:
    assert main(["matrix", *arguments]) == 0
    return "```\n" + capsys.readouterr().out.strip() + "\n```"


PIPES, FENCE = r"(?:\|.*\n)+", r"```\n(?:.*\n)*?```\n"


@pytest.mark.parametrize(
    ("mark", "shape"),
    [("lifecycle", PIPES), ("echo", PIPES), ("engines", PIPES), ("contract", PIPES), ("clients", PIPES), ("matrix", FENCE), ("verdicts", FENCE)],
)
def test_generated_parts_are_current(mark, shape, accept, capsys):
    text = README.read_text(encoding="utf-8")
    makers = {
        "lifecycle": lifecycle,
        "echo": directives,
        "engines": engines,
        "contract": contract,
        "clients": clients,
        "matrix": lambda: printed(capsys, str(ROOT / "routes.toml")),
        "verdicts": lambda: printed(capsys, "--count"),
    }
    made = makers[mark]() + "\n"
    found = re.search(rf"<!-- {mark} -->\n({shape})", text)
    if accept:  # pragma: no cover -- rewrites the file, by hand
        README.write_text(re.sub(rf"(<!-- {mark} -->\n){shape}", lambda old: old[1] + made, text), encoding="utf-8")
        return
    assert found
    assert found[1] == made


def test_the_table_of_clients_is_complete():
    """Every client that `connect` knows, on every surface that it speaks, at every kind of upstream; Zed is not run."""
    told = json.loads((ROOT / "api-fidelity-tests/clients/agents/results.json").read_text(encoding="utf-8"))
    spoken = {f"{name} over {surface}" for name, client in CLIENTS.items() if name != "zed" for surface in client.ways}
    assert {*told["agents"], *told["programs"]} == spoken
    assert {*told["llm-comply"]} == {*OVER}
    assert {frozenset(row) for part in WORK for row in told[part].values()} == {frozenset(SHORT)}


def test_the_route_file_that_readme_explains_is_valid():
    found = re.search(r"<!-- toml -->\n```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    catalog = build(found[1], environ={"OPENAI_API_KEY": "k"}, serving=True)
    assert [route.route_id for route in catalog.routes.values()] == ["openai:gpt-5"]


def test_every_feature_is_named():
    listed = re.search(r"The features are `([^`]*)`", README.read_text(encoding="utf-8"))
    assert listed[1].split() == [str(feature) for feature in Feature]


def test_the_two_commands_stand_where_ci_finds_them():
    text = README.read_text(encoding="utf-8")
    for name in ("run", "test", "curl"):
        assert re.search(rf"<!-- ci: {name} -->\n```sh\n.+?```", text, re.DOTALL)
    assert re.search(r"<!-- ci: sdk -->\n```python\n.+?```", text, re.DOTALL)


def test_the_version_is_in_the_changelog():
    assert re.search(r"^## \[Unreleased\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
