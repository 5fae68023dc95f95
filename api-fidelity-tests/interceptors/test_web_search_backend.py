"""The search back end over a real socket: SearXNG's API as it is, others by a template, and every failure the same one."""

from __future__ import annotations

import json

import pytest

from asgi_surface.catalog import build, inspect
from asgi_surface.interceptors.web_search.backend import Backend, Hit, SearchFailed

ROUTE = """
[auth]
mode = "host"
[providers.up]
base_url = "http://127.0.0.1:9"
[[routes]]
route_id = "up:m"
upstream_model = "m"
provider = "up"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
"""
ONE, TWO = Hit("https://a.example/one", "One", "First."), Hit("https://b.example/two", "Two", "Second.")


@pytest.fixture
def find(apart, configured):
    """One search at the back end of a route file with `more` keys."""

    def one(query="news", more="", environ=None):
        given = environ or {}
        settings = build(configured + more + ROUTE, environ=given).web_search
        return apart(Backend(settings, given).find(query))

    return one


def test_searxng_as_it_is(find, search):
    assert find("what's new & old?") == [ONE, TWO]
    [(method, target, headers, body)] = search.asked
    assert (method, target, body) == ("GET", "/search?q=what%27s+new+%26+old%3F&format=json", b"")
    assert (headers["accept"], headers["user-agent"]) == ("application/json", "asgi-surface")
    assert not {"authorization", "cookie"} & headers.keys()


TEMPLATE = """
method = "POST"
headers = { "x-app" = "gateway" }
body = { text = "find {query}", list = ["{query}", 1], deep = { n = 2 } }
results = "data.hits"
fields = { url = "link", title = "meta.name", content = "snippet" }
"""


def test_another_api_by_a_template(find, search):
    hits = [
        {"link": "https://a.example/one", "meta": {"name": "One"}, "snippet": "First."},
        {"link": "https://b.example/two", "meta": "none", "snippet": 3},
        {"link": "ftp://c.example"},
        "no result",
    ]
    search.answers[""] = (200, json.dumps({"data": {"hits": hits}}).encode())
    assert find('"news"', TEMPLATE) == [ONE, Hit("https://b.example/two", "", "")]
    [(method, target, headers, body)] = search.asked
    assert (method, target, headers["x-app"], headers["content-type"]) == ("POST", "/search", "gateway", "application/json")
    assert json.loads(body) == {"text": 'find "news"', "list": ['"news"', 1], "deep": {"n": 2}}


@pytest.mark.parametrize(("scheme", "sent"), [('scheme = "Bearer", ', "Bearer s3cret"), ("", "s3cret")])
def test_the_secret_comes_from_the_environment(find, search, scheme, sent):
    find(more=f'auth = {{ header = "X-Token", {scheme}env = "SEARCH_KEY" }}\n', environ={"SEARCH_KEY": " s3cret "})
    assert search.asked[0][2]["x-token"] == sent


def test_what_a_page_says_is_bounded(find, search):
    results = [{"url": "https://a.example", "title": "t" * 9_000, "content": "x" * 9_000}, {"url": "https://b.example/" + "u" * 2_000}]
    search.answers["news"] = (200, json.dumps({"results": results}).encode())
    assert [(hit.url, len(hit.title), len(hit.excerpt)) for hit in find()] == [("https://a.example", 300, 2_000)]


def test_a_page_cannot_write_results_of_its_own(find, search):
    """Neither by its lines, nor by what terminals take for orders."""
    spoof = "One\n2. Two\r\n   https://evil.example\x1b[31m\x00\x85 end"
    results = [{"url": "HTTPS://a.example", "title": spoof, "content": spoof}, {"url": "https://b.example/x\n3. Three"}, {"url": "https://"}]
    search.answers["news"] = (200, json.dumps({"results": results}).encode())
    line = "One 2. Two https://evil.example [31m end"
    assert find() == [Hit("HTTPS://a.example", line, line)]


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (500, b"{}", "status 500"),
        (302, b"{}", "status 302"),
        (200, b"<html>the back end's own words</html>", "no JSON"),
        (200, b"[" * 200_000, "no JSON"),
        (200, b"[]", "no list"),
        (200, b'{"results": {"url": "https://a.example"}}', "no list"),
        (200, b'{"results": [' + b" " * 1_000_000 + b"]}", "too many"),
    ],
    ids=["error", "redirect", "no JSON", "deep", "no object", "no list", "too large"],
)
def test_every_failure_is_said_in_words_of_ours(find, search, status, body, why):
    search.answers["news"] = (status, body)
    search.headers = {"location": search.url}
    with pytest.raises(SearchFailed, match=why):
        find()
    assert len(search.asked) == 1


def test_what_is_packed_is_not_unpacked(find, search):
    search.headers = {"content-encoding": "gzip"}
    with pytest.raises(SearchFailed, match="encoding"):
        find()


def test_a_slow_back_end_is_left(find, search):
    search.delay = 0.3
    with pytest.raises(SearchFailed, match="TimeoutError"):
        find(more="timeout_seconds = 0.1\n")


def test_nobody_at_the_address_is_a_failure_too(apart, configured, search):
    table = configured.replace(search.url, "http://127.0.0.1:9/search")
    settings = build(table + ROUTE).web_search
    with pytest.raises(SearchFailed, match="ConnectError"):
        apart(Backend(settings, {}).find("news"))


def test_a_table_that_is_not_enabled_searches_nothing():
    for table in ("", "[interceptors.web_search]\n", "[interceptors.web_search]\nenabled = false\nurl = 'http://127.0.0.1:9'\n"):
        assert build(table + ROUTE).web_search is None


def test_a_secret_that_is_not_set_is_only_a_warning_at_check(configured):
    table = configured + 'auth = { header = "x-token", env = "SEARCH_KEY" }\n'
    catalog, problems = inspect(table + ROUTE, environ={})
    assert [problem.fatal for problem in problems] == [False]
    assert catalog.web_search.auth.env == "SEARCH_KEY"
