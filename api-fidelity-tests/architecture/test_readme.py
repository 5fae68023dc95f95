"""README is true: what it shows of the code is made from the code. `--accept` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asgi_surface.catalog import build
from asgi_surface.cli import main
from asgi_surface.lifecycle import TABLE, Kind
from asgi_surface.surfaces import Feature
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


def printed(capsys, *arguments) -> str:
    assert main(["matrix", *arguments]) == 0
    return "```\n" + capsys.readouterr().out.strip() + "\n```"


PIPES, FENCE = r"(?:\|.*\n)+", r"```\n(?:.*\n)*?```\n"


@pytest.mark.parametrize(("mark", "shape"), [("lifecycle", PIPES), ("echo", PIPES), ("matrix", FENCE), ("verdicts", FENCE)])
def test_generated_parts_are_current(mark, shape, accept, capsys):
    text = README.read_text(encoding="utf-8")
    makers = {
        "lifecycle": lifecycle,
        "echo": directives,
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
