"""What a hosted search asks beside searching: what nobody heeds is named in the client's words, and the bounds of several tools hold together."""

from __future__ import annotations

import json

import pytest

from asgi_surface.interceptors.web_search.hook import SURFACES
from asgi_surface.interceptors.web_search.words import Wish
from asgi_surface.members import parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

PLACE = {"type": "approximate", "city": "Bern"}
HINTS = [
    # surface, the client's members, what of them nobody heeds
    (
        CHAT,
        {"web_search_options": {"search_context_size": "low", "user_location": PLACE}},
        ["/web_search_options/search_context_size", "/web_search_options/user_location"],
    ),
    (CHAT, {"tools": [{"type": "web_search", "user_location": PLACE}]}, ["/tools/0/user_location"]),
    (
        RESPONSES,
        {
            "tools": [
                {"type": "web_search", "user_location": PLACE, "search_context_size": "low", "filters": {"blocked_domains": ["c.d"], "fresh": 1}},
                {"type": "web_search_preview", "external_web_access": True, "user_location": None},
            ]
        },
        ["/tools/0/user_location", "/tools/0/search_context_size", "/tools/0/filters/fresh", "/tools/1/external_web_access"],
    ),
    (
        MESSAGES,
        {
            "tools": [
                {"type": "web_search_20260209", "name": "web_search", "allowed_callers": ["direct"], "defer_loading": False, "max_uses": 1},
                {"type": "web_search_20250305", "name": "other", "user_location": PLACE, "allowed_callers": ["code_execution_20260120"]},
            ]
        },
        ["/tools/1/user_location", "/tools/1/allowed_callers"],
    ),
    (
        GEMINI,
        {
            "tools": [
                {"googleSearch": {"excludeDomains": ["c.d"], "timeRangeFilter": {}}},
                {"google_search_retrieval": {"dynamicRetrievalConfig": {}}},
            ]
        },
        ["/tools/0/googleSearch/timeRangeFilter", "/tools/1/google_search_retrieval/dynamicRetrievalConfig"],
    ),
    (GEMINI, {"tools": {"google_search": {"a/b": 1}}}, ["/tools/google_search/a~1b"]),
]


def heads(names):
    """As the header says it: each place once, indices folded."""
    return list(dict.fromkeys("/".join("*" if step.isdigit() else step for step in name.split("/")) for name in names))


@pytest.mark.parametrize(("surface", "members", "names"), HINTS)
@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize("stream", [False, True])
def test_what_nobody_heeds_is_named_at_every_exit(run, surface, members, names, upstream, stream):
    said = run.said
    without = ["web_search_options"] if surface == CHAT and "tools" in members else []
    rounds = [said(calls=(("web_search", '{"query": "news"}'),)), said("Done.")]
    reply, model, record = run(surface, upstream, *rounds, stream=stream, members=members, without=without)
    assert (reply.status, len(model.calls)) == (200, 2)
    assert reply.headers["x-surface-dropped"].split(",")[: len(heads(names))] == heads(names)
    assert list(record.dropped)[: len(names)] == names


@pytest.mark.parametrize(("surface", "members", "names"), HINTS)
def test_a_dry_run_names_it_too(run, surface, members, names):
    without = ["web_search_options"] if surface == CHAT and "tools" in members else []
    reply, model, _ = run(surface, CHAT, members=members, without=without, headers=[("x-surface-dry-run", "true")])
    plan = json.loads(reply.body)
    assert plan["dropped"][: len(names)] == names
    assert not model.calls


@pytest.mark.parametrize(("surface", "members", "names"), HINTS)
def test_a_provider_that_searches_itself_reads_it(run, surface, members, names):
    del names
    without = ["web_search_options"] if surface == CHAT and "tools" in members else []
    features = ["streaming", "tools", "hosted-tools"]
    reply, _, record = run(surface, surface, run.said("Done."), members=members, without=without, features=features)
    assert (reply.status, record.dropped) == (200, ())


@pytest.mark.parametrize("surface", [CHAT, RESPONSES, MESSAGES, GEMINI])
def test_nothing_is_named_where_all_is_heeded(run, surface):
    reply, _, _ = run(surface, surface, run.said("Done."))
    assert "x-surface-dropped" not in reply.headers


@pytest.mark.parametrize(
    ("surface", "tool", "named"),
    [
        (MESSAGES, {"type": "web_search_1", "max_uses": -1, "allowed_domains": "a.b", "blocked_domains": ["c.d", 1]}, 3),
        (MESSAGES, {"type": "web_search_1", "max_uses": 0, "allowed_domains": [], "blocked_domains": ["c.d"]}, 0),
        (RESPONSES, {"type": "web_search", "filters": []}, 1),
        (GEMINI, {"googleSearch": {"exclude_domains": "c.d"}}, 1),
    ],
)
def test_a_bound_that_nobody_can_keep_is_named(surface, tool, named):
    assert len([*SURFACES[surface].unheard(parse(json.dumps({"tools": [tool]}).encode()))]) == named


def test_a_choice_among_several_searches_names_the_function_once():
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, {"type": "web_search_preview"}]}
    members = parse(json.dumps({"tools": [{"type": "web_search"}, {"type": "web_search_preview"}], "tool_choice": allowed}).encode())
    choice = json.loads(bytes(SURFACES[RESPONSES].offered(members, "find")["tool_choice"]))
    assert choice["tools"] == [{"type": "function", "name": "find"}]


# Several tools ------------------------------------------------------------------------------------------------------------------------------

FIRST = {"type": "web_search_20250305", "name": "web_search"}
SECOND = {"type": "web_search_20260209", "name": "again"}
SEARCH = {"type": "web_search"}
SEVERAL = [
    (MESSAGES, [FIRST | {"max_uses": 3}, SECOND | {"max_uses": 1}], Wish(uses=1)),
    (MESSAGES, [FIRST, SECOND | {"max_uses": 1}], Wish(uses=1)),
    (MESSAGES, [FIRST | {"blocked_domains": ["a.b"]}, SECOND | {"blocked_domains": ["c.d", "a.b"]}], Wish(blocked=("a.b", "c.d"))),
    (MESSAGES, [FIRST, SECOND | {"allowed_domains": ["c.d"]}], Wish(allowed=(("c.d",),))),
    (MESSAGES, [FIRST | {"allowed_domains": ["a.b"]}, SECOND | {"allowed_domains": ["c.d"]}], Wish(allowed=(("a.b",), ("c.d",)))),
    (
        RESPONSES,
        [SEARCH | {"filters": {"allowed_domains": ["a.b"]}}, SEARCH | {"filters": {"allowed_domains": ["x.a.b"], "blocked_domains": ["c.d"]}}],
        Wish(allowed=(("a.b",), ("x.a.b",)), blocked=("c.d",)),
    ),
    (GEMINI, [{"googleSearch": {}}, {"google_search": {"exclude_domains": ["c.d"]}}], Wish(blocked=("c.d",))),
]


@pytest.mark.parametrize(("surface", "tools", "wish"), SEVERAL)
def test_the_bounds_of_several_tools_hold_together(surface, tools, wish):
    assert SURFACES[surface].wish(parse(json.dumps({"tools": tools}).encode())) == wish


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({}, {"allowed_domains": ["b.example"]}, ["b.example"]),
        ({"allowed_domains": ["a.example", "b.example"]}, {"allowed_domains": ["b.example"]}, ["b.example"]),
        ({"allowed_domains": ["a.example"]}, {"allowed_domains": ["b.example"]}, []),
        ({"blocked_domains": ["a.example"]}, {"blocked_domains": ["b.example"]}, []),
    ],
)
def test_no_search_breaks_the_bounds_of_any_tool(run, first, second, found):
    rounds = [run.said(calls=(("web_search", '{"query": "news"}'),)), run.said("Done.")]
    _, model, _ = run(MESSAGES, CHAT, *rounds, members={"tools": [FIRST | first, SECOND | second]})
    told = model.calls[1]["messages"][-1]["content"]
    assert [host for host in ("a.example", "b.example") if host in told] == found


def test_the_smallest_number_of_uses_counts(run, search):
    call = (("web_search", '{"query": "news"}'),)
    members = {"tools": [FIRST | {"max_uses": 5}, SECOND | {"max_uses": 1}]}
    run(MESSAGES, CHAT, run.said(calls=call), run.said(calls=call), run.said("Done."), members=members)
    assert search.queries == ["news"]
