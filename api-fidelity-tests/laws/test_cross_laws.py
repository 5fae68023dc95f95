"""What the tables call exact comes back unchanged: to another surface and back, and around three."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs

from asgi_surface import ir
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context
from asgi_surface.ir import Form, Role
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature

SURFACES = (CHAT, RESPONSES, MESSAGES, GEMINI)
PAIRS = list(itertools.permutations(SURFACES, 2))
CYCLES = list(itertools.permutations(SURFACES, 3))


@pytest.mark.parametrize("path", [*PAIRS, *CYCLES], ids=lambda path: "-".join(surface.split("-")[1] for surface in path))
@settings(max_examples=25)
@given(data=st.data())
def test_a_request_goes_around_unchanged(requests, over, meaning, path, data):
    asked = over(data.draw(requests(path[0], path[1:])), path[0]).request
    came = asked
    for surface in (*path[1:], path[0]):
        came = over(came, surface).request
        assert meaning(came, *path) == meaning(asked, *path)


@pytest.mark.parametrize("path", [*PAIRS, *CYCLES], ids=lambda path: "-".join(surface.split("-")[1] for surface in path))
@settings(max_examples=25)
@given(data=st.data())
def test_an_answer_goes_around_unchanged(answers, retold, told, path, data):
    said = data.draw(answers(path[0], path[1:]))
    came = said
    for surface in (*path, path[0]):
        came, _ = retold(came, surface, path[0])
        assert told(came, *path) == told(said, *path)


# Emulated constructs come back to the client as its own.

SCHEMA = Raw(b'{"type":"object","properties":{}}')
FREE = ir.Tool("apply patch", "d", form=Form.CUSTOM)
SPACED = ir.Tool("get", "d", SCHEMA, namespace="mcp__a")
LONG = ir.Tool("mcp.server/" + "x" * 140, "d", SCHEMA)
CLASH = ir.Tool("mcp__a__get", "d", SCHEMA)
HISTORY = (
    ir.Turn(Role.USER, (ir.Text("hi"),)),
    ir.Turn(Role.ASSISTANT, (ir.Call("c0", FREE.name, "*** free", Form.CUSTOM), ir.Call("c1", "get", "{}", namespace="mcp__a"))),
    ir.Turn(Role.USER, (ir.Result("c0", (ir.Text("done"),), form=Form.CUSTOM), ir.Result("c1", (ir.Text("no"),), failed=True))),
)
CALLS = {
    "free text": ir.Call("c", FREE.name, '*** "free"\n', Form.CUSTOM),
    "a namespace": ir.Call("c", "get", '{"a": 1.0}', namespace="mcp__a"),
    "a long name": ir.Call("c", LONG.name, "{}"),
    "a name like a flattened one": ir.Call("c", CLASH.name, "{}"),
}


@pytest.mark.parametrize("upstream", [CHAT, MESSAGES, GEMINI])
@pytest.mark.parametrize("tool", CALLS)
def test_an_emulated_tool_comes_back_as_the_clients_own(target, upstream, tool):
    """The upstream is told another tool, in the history as well, and calls that; the Responses client gets the one that it offered."""
    asked = ir.Request(turns=HISTORY, tools=(FREE, SPACED, LONG, CLASH), settings=ir.Settings(max_tokens=Raw(b"64")), wants_seals=True)
    plain = structs.replace(target(upstream), features=target(upstream).features - {Feature.CUSTOM_TOOLS})
    lowered = CODECS[upstream].lower(asked, plain)
    offered = CODECS[upstream].lift(lowered.members, False).request
    names = {(wanted.namespace, wanted.name): told.name for wanted, told in zip(asked.tools, offered.tools, strict=True)}
    assert len(set(names.values())) == 4
    called = [part.name for turn in offered.turns for part in turn.parts if isinstance(part, ir.Call)]
    assert called == [names[None, FREE.name], names["mcp__a", "get"]]
    call = CALLS[tool]
    arguments = call.arguments if call.form is Form.FUNCTION else msgspec.json.encode({"input": call.arguments}).decode()
    said = ir.Response(id="r", model="up", parts=(ir.Call("c", names[call.namespace, call.name], arguments),), stop=ir.Stop.TOOLS)
    knows = Context(request=asked, aliases=lowered.aliases, seal_domain="up", upstream=upstream, model="m", request_id="0", now=0)
    told = CODECS[RESPONSES].read(CODECS[RESPONSES].write(said, knows))
    assert told.parts == (call,)


@pytest.mark.parametrize("upstream", SURFACES)
def test_a_failed_result_stays_failed(over, upstream):
    """Where the surface has no mark for it, its text says so."""
    asked = ir.Request(turns=HISTORY, tools=(FREE, SPACED), settings=ir.Settings(max_tokens=Raw(b"64")))
    *_, results = over(asked, upstream).request.turns
    failed = results.parts[-1]
    assert failed.failed or failed.parts[0].text == "[tool error] no"
