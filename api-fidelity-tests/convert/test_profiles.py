"""Every captured request of an agent converts with the agent's profile, and what it loses is known: never its conversation or its tools.

The captures stand beside the checkout, not in it. `--accept` writes the snapshots in `profiles/` anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec import structs

from asgi_surface import ir
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Dialect, Target
from asgi_surface.codecs.gemini.lower_contents import LATE
from asgi_surface.conversions import foreign_seals, unsealed
from asgi_surface.converters import PAIRS, convert
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import parse
from asgi_surface.profiles import KNOWN, PROFILES, tolerances
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature
from asgi_surface.verdicts import Verdict

CAPTURED = Path(__file__).parents[3] / "shared" / "captured"
SNAPSHOTS = Path(__file__).with_name("profiles")
FOLDERS = {
    "codex": ["codex"],
    "claude-code": ["claude-code", "claude-code-latest"],
    "gemini-cli": ["gemini-cli"],
    "qwen-code": ["qwen-code", "qwen-code-latest"],
    "opencode": ["opencode-chat", "opencode-gemini", "opencode-messages", "opencode-responses"],
}
PATHS = {
    r"/v1/chat/completions": CHAT,
    r"/v1/responses": RESPONSES,
    r"/v1/messages": MESSAGES,
    r"/v1beta/models/[^/]+:(generateContent|streamGenerateContent)": GEMINI,
}


def captures(folders):
    """The generation requests in these folders, by file name: the surface, and the capture."""
    found = {}
    for file in (file for folder in folders for file in sorted((CAPTURED / folder).glob("*.json"))):
        capture = json.loads(file.read_text())
        surface = next((surface for path, surface in PATHS.items() if re.fullmatch(path, capture["path"])), None)
        if surface is not None:
            found[file.relative_to(CAPTURED).as_posix()] = surface, capture
    return found


CAPTURES = {agent: captures(folders) for agent, folders in FOLDERS.items()}
needs_captures = pytest.mark.skipif(not all(CAPTURES.values()), reason="the captures of shared/ are not beside this checkout")
every_agent = pytest.mark.parametrize("agent", FOLDERS)


def members(capture):
    return parse(json.dumps(capture["body"]).encode())


def lifted(surface, capture):
    return CODECS[surface].lift(members(capture), capture["body"].get("stream") is True or "streamGenerateContent" in capture["path"])


def converted(surface, capture, target, tolerated):
    """The conversion for an upstream that can do all that its surface can say, and the foreign seals that are tolerated."""
    able = Target(model="m", dialect=Dialect(prefill=True, remote_images=True), seal_domain="upstream", features=frozenset(Feature))
    source, given, codec = CODECS[surface], lifted(surface, capture), CODECS[target]
    foreign = foreign_seals(given.request, able, codec) if "seal:foreign" in tolerated else ()
    bare = unsealed(given.request, {mention.pointer for mention in foreign})
    return convert(source, structs.replace(given, request=bare), codec, able, tolerated), foreign


def cases(agent):
    """Every request of the agent for each other surface: file name, surface, capture, target."""
    for name, (surface, capture) in CAPTURES[agent].items():
        yield from ((name, surface, capture, pair.target) for pair in PAIRS.values() if pair.source == surface)


def substance(request):
    """What no profile may drop: who says what, the calls and results in their order; and how many tools the client runs."""
    return [said(part) for turn in request.turns for part in turn.parts if not isinstance(part, ir.Reasoning)], len(request.tools)


def said(part):
    """A part's words. Names and ids of calls are each surface's own, as is how Gemini is told an instruction between turns."""
    if isinstance(part, ir.Call):
        return json.loads(part.arguments)
    return part.text.removeprefix(LATE) if isinstance(part, ir.Text) else [inner.text for inner in part.parts]


def places(mentions):
    """The constructs, each with its pointers, indices folded."""
    found = {}
    for mention in mentions:
        found.setdefault(mention.construct, set()).add(re.sub(r"/\d+(?=/|$)", "/*", mention.pointer))
    return {construct: sorted(pointers) for construct, pointers in sorted(found.items())}


@needs_captures
@every_agent
def test_with_its_profile_every_request_converts_and_loses_what_is_known(agent, accept):
    outcomes = {}
    for name, surface, capture, target in cases(agent):
        conversion, foreign = converted(surface, capture, target, tolerances((), [agent]))
        received = CODECS[target].lift(conversion.lowered.members, True)  # as the upstream reads it
        assert substance(received.request) == substance(lifted(surface, capture).request)
        outcome = {"dropped": places(conversion.dropped), "tolerated": places([*conversion.tolerated, *foreign])}
        outcomes.setdefault(name, {})[target] = outcome
    file = SNAPSHOTS / f"{agent}.json"
    if accept:  # pragma: no cover -- rewrites the file, by hand
        file.write_text(json.dumps(outcomes, indent=1) + "\n")
    assert outcomes == json.loads(file.read_text())


def at(document, pointer):
    """The value at a JSON pointer; `LookupError` when there is none."""
    for step in pointer.split("/")[1:]:
        document = document[int(step) if isinstance(document, list) else step.replace("~1", "/").replace("~0", "~")]
    return document


@needs_captures
@every_agent
def test_without_a_profile_a_request_converts_or_is_refused_at_a_pointer_of_its_own(agent):
    refusals = []
    for _, surface, capture, target in cases(agent):
        try:
            converted(surface, capture, target, frozenset())
        except RequestError as error:
            refusals.append((capture["body"], error))
    assert {error.code for _, error in refusals} == {Code.UNREPRESENTABLE}
    for body, error in refusals:
        at(body, error.pointer)


def asked_too_much(surface, capture):
    """What a request asks that some upstream cannot do: constructs that a target refuses, and features."""
    request = lifted(surface, capture)
    seals = [part.seal for turn in request.request.turns for part in turn.parts if isinstance(part, ir.Reasoning | ir.Call) and part.seal]
    yield from ["seal:foreign"] if seals else []
    yield from (each.construct for each in request.mentions if Verdict.REFUSED in CODECS[surface].rows[each.construct].verdicts.values())
    yield from (demand.feature for demand in CODECS[surface].needs(members(capture), False).demands)


@needs_captures
@every_agent
def test_a_profile_tolerates_only_what_its_agent_sends_and_some_upstream_cannot_do(agent):
    asked = {one for surface, capture in CAPTURES[agent].values() for one in asked_too_much(surface, capture)}
    assert set(PROFILES[agent].tolerates) - asked == set()


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_profile_names_what_is_known_and_says_why(profile):
    assert set(profile.tolerates) <= KNOWN
    assert all(profile.tolerates.values())
    assert profile.version >= 1


def test_there_is_a_profile_for_each_agent():
    assert {name: profile.name for name, profile in PROFILES.items()} == {agent: agent for agent in FOLDERS}


def test_tolerances_are_single_ones_and_those_of_profiles():
    single = tolerances(["field:n", "hosted-tools"], [])
    assert single == {"field:n", "hosted-tools"}
    assert tolerances(["field:n"], ["codex", "gemini-cli"]) == {"field:n", *PROFILES["codex"].tolerates, *PROFILES["gemini-cli"].tolerates}
    assert tolerances([], []) == frozenset()


@pytest.mark.parametrize(("tolerate", "profiles"), [(["field:nn"], []), (["codex"], []), ([], ["field:n"]), ([], ["codexx"])])
def test_a_tolerance_that_no_table_has_is_an_error(tolerate, profiles):
    with pytest.raises(ValueError, match=re.escape((tolerate + profiles)[0])):
        tolerances(tolerate, profiles)
