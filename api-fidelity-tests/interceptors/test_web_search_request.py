"""What becomes of a request: the hosted tool by its type, the function in its place, choices, history and limits, on each client surface."""

from __future__ import annotations

import io
import json

import pytest

from asgi_surface import seals
from asgi_surface.catalog import build
from asgi_surface.cli import main
from asgi_surface.errors import Code, RequestError
from asgi_surface.interceptors.web_search import WebSearch
from asgi_surface.interceptors.web_search.hook import SURFACES
from asgi_surface.interceptors.web_search.words import DESCRIPTION, turns
from asgi_surface.ir import Seal, SealKind
from asgi_surface.members import encode, parse
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, ZED

PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages", GEMINI: "/v1beta/models/{model}:{method}"}
SEARCH = {"type": "web_search"}
CHAT_OWN = {"type": "function", "function": {"name": "look"}}
OWN = {"type": "function", "name": "look", "parameters": {}}
MESSAGES_OWN = {"name": "look", "input_schema": {"type": "object"}}


TABLE = '[interceptors.web_search]\nenabled = true\nurl = "http://127.0.0.1:9/search"\n'
ROUTES = """
[auth]
mode = "host"
[providers.up]
base_url = "http://127.0.0.1:9"
[[routes]]
route_id = "up:m"
upstream_model = "m"
provider = "up"
"""


def binding(surface, features):
    """One binding of the route."""
    return f'[[routes.api_bindings]]\nsurface = "{surface}"\npath = "{PATHS[surface]}"\nfeatures = {json.dumps(features)}\n'


def catalog(*bindings, more=""):
    """One route with these bindings, each a surface and its features."""
    return build(TABLE + more + ROUTES + "".join(binding(*one) for one in bindings))


def visit(surface, body, *bindings, more=""):
    """Whether the interceptor takes part in a request, and the body that goes on."""
    built = catalog(*(bindings or ((surface, ["tools"]),)), more=more)
    hook = WebSearch(built, built.web_search, {}).visit()
    members = parse(json.dumps(body).encode())
    applies = hook.applies(surface, "up:m", members)
    return applies, json.loads(encode(hook.request(dict(members)))) if applies else body


def named(*tools):
    """Tools by name, the search's function by a mark that it is whole."""
    said = [tool.get("function", tool) for tool in tools]
    return ["*" + tool["name"] if tool.get("description") == DESCRIPTION else tool.get("name", tool.get("type")) for tool in said]


# The hosted tool -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surface", "body", "names"),
    [
        (CHAT, {"web_search_options": {"search_context_size": "low"}}, ["*web_search"]),
        (CHAT, {"web_search_options": {}, "tools": [CHAT_OWN]}, ["look", "*web_search"]),
        (CHAT, {"tools": [{"type": "web_search"}, CHAT_OWN, {"type": "web_search_preview"}]}, ["*web_search", "look"]),
        (RESPONSES, {"tools": [OWN, {"type": "web_search_preview_2025_03_11"}]}, ["look", "*web_search"]),
        (RESPONSES, {"tools": [{"type": "web_search", "user_location": {"type": "approximate"}}]}, ["*web_search"]),
        (MESSAGES, {"tools": [{"type": "web_search_20250305", "name": "web_search"}, MESSAGES_OWN]}, ["*web_search", "look"]),
        (MESSAGES, {"tools": [{"type": "web_search_20260318", "name": "find"}, {"type": "web_search_1", "name": "f"}]}, ["*web_search"]),
    ],
)
def test_a_hosted_search_becomes_a_function_in_its_place(surface, body, names):
    applies, changed = visit(surface, body)
    assert applies
    assert named(*changed["tools"]) == names
    assert "web_search_options" not in changed


def test_the_function_is_each_surfaces_own():
    chat = visit(CHAT, {"web_search_options": {}})[1]["tools"][0]
    responses = visit(RESPONSES, {"tools": [{"type": "web_search"}]})[1]["tools"][0]
    messages = visit(MESSAGES, {"tools": [{"type": "web_search_1", "name": "x", "cache_control": {"type": "ephemeral"}}]})[1]["tools"][0]
    assert chat.keys() == {"type", "function"}
    assert responses.keys() == {"type", "name", "description", "parameters", "strict"}
    assert messages.keys() == {"name", "description", "input_schema", "cache_control"}
    schemas = [chat["function"]["parameters"], responses["parameters"], messages["input_schema"]]
    assert {json.dumps(schema["required"]) for schema in schemas} == {'["query"]'}


@pytest.mark.parametrize("name", ["googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval"])
def test_geminis_search_becomes_a_declaration_beside_the_others(name):
    declared = {"functionDeclarations": [{"name": "look"}]}
    for tools, left in (([declared | {name: {}}], [declared]), ([declared, {name: {}}], [declared]), ({name: {"exclude_domains": ["a.b"]}}, [])):
        applies, changed = visit(GEMINI, {"tools": tools})
        *others, last = changed["tools"]
        assert (applies, others, named(*last["functionDeclarations"])) == (True, left, ["*web_search"])


@pytest.mark.parametrize(
    ("surface", "tools"),
    [
        (CHAT, [{"type": "function", "function": {"name": "web_search"}}]),
        (RESPONSES, [{"type": "function", "name": "web_search"}, {"type": "x_web_search"}]),
        (MESSAGES, [{"name": "web_search", "input_schema": {}}, {"type": "custom", "name": "web_search_20250305"}]),
        (GEMINI, [{"functionDeclarations": [{"name": "googleSearch"}]}, {"codeExecution": {}}, {"googleSearch": None}]),
    ],
)
def test_a_function_of_the_clients_is_never_taken_for_one(surface, tools):
    assert visit(surface, {"tools": tools}) == (False, {"tools": tools})


@pytest.mark.parametrize("body", [{}, {"tools": None}, {"tools": {"type": "web_search"}}, {"tools": [1, "web_search"]}, {"web_search_options": None}])
@pytest.mark.parametrize("surface", [CHAT, RESPONSES, MESSAGES, GEMINI])
def test_nothing_and_nonsense_are_left_to_the_planner(surface, body):
    assert visit(surface, body) == (False, body)


def test_surfaces_without_a_search_are_left_alone():
    built = catalog((CHAT, ["tools"]))
    assert not WebSearch(built, built.web_search, {}).visit().applies(ZED, "up:m", parse(b'{"web_search_options": {}}'))


@pytest.mark.parametrize(
    ("surface", "tools"),
    [
        (
            CHAT,
            [
                {"type": "function", "function": {"name": "web_search"}},
                {"type": "custom", "custom": {"name": "web_search_2"}},
                {"type": "web_search"},
            ],
        ),
        (RESPONSES, [OWN | {"name": "web_search"}, {"type": "custom", "name": "web_search_2"}, {"type": "web_search"}]),
        (MESSAGES, [{"name": "web_search"}, {"name": "web_search_2"}, {"type": "web_search_1", "name": "s"}]),
        (GEMINI, [{"functionDeclarations": {"name": "web_search"}}, {"function_declarations": [{"name": "web_search_2"}, 3]}, {"googleSearch": {}}]),
    ],
)
def test_the_functions_name_is_not_one_of_the_clients(surface, tools):
    changed = visit(surface, {"tools": tools})[1]["tools"]
    own = changed[-1].get("functionDeclarations", changed)
    assert named(*own)[-1] == "*web_search_3"


@pytest.mark.parametrize(
    ("surface", "body"),
    [
        (CHAT, {"tools": [{"type": "function", "function": {"name": ["a"]}}, {"type": "custom", "custom": 3}, SEARCH], "tool_choice": "auto"}),
        (CHAT, {"tools": [SEARCH], "tool_choice": {"type": "allowed_tools", "allowed_tools": 3}}),
        (RESPONSES, {"tools": [{"type": "function", "name": {}}, {"type": "namespace", "name": [], "tools": []}, SEARCH | {"filters": 3}]}),
        (RESPONSES, {"tools": [SEARCH], "input": [{"type": "web_search_call", "action": {"query": 3, "sources": 3}}]}),
        (MESSAGES, {"tools": [{"name": ["a"]}, {"type": "web_search_1", "name": []}], "tool_choice": {"type": "tool", "name": []}}),
    ],
)
def test_nonsense_beside_a_search_is_left_to_the_planner(surface, body):
    applies, changed = visit(surface, body)
    assert (applies, named(*changed["tools"][-1:])) == (True, ["*web_search"])


def test_a_namespaces_function_of_that_name_is_the_clients():
    """A choice calls it by its bare name."""
    tools = [SEARCH, {"type": "namespace", "name": "n", "description": "d", "tools": [OWN | {"name": "web_search"}]}]
    applies, changed = visit(RESPONSES, {"tools": tools, "tool_choice": SEARCH})
    assert (applies, named(*changed["tools"])) == (True, ["*web_search_2", "n"])
    assert changed["tool_choice"] == {"type": "function", "name": "web_search_2"}


def test_the_names_of_the_deprecated_functions_count_too():
    body = {"functions": [{"name": "web_search"}], "web_search_options": {}}
    assert named(*visit(CHAT, body)[1]["tools"]) == ["*web_search_2"]


# Which route --------------------------------------------------------------------------------------------------------------------------------

HOSTED = ["tools", "hosted-tools"]


@pytest.mark.parametrize(
    ("bindings", "more", "applies"),
    [
        ([(MESSAGES, ["tools"])], "", True),
        ([(MESSAGES, HOSTED)], "", False),
        ([(MESSAGES, HOSTED)], 'routes = ["up:m"]\n', True),
        ([(CHAT, HOSTED)], "", True),  # the tool cannot be converted
        ([(CHAT, ["tools"]), (MESSAGES, HOSTED)], "", False),
        ([(MESSAGES, ["reasoning"])], "", False),  # and no function could be called
    ],
)
def test_it_applies_where_the_provider_has_no_search_or_the_file_says_so(bindings, more, applies):
    body = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    assert visit(MESSAGES, body, *bindings, more=more)[0] is applies


@pytest.mark.parametrize(("table", "code"), [("", "feature_unsupported"), (TABLE, None)])
def test_the_command_line_plans_as_the_gateway_does(tmp_path, monkeypatch, capsys, table, code):
    file = tmp_path / "routes.toml"
    file.write_text(table + ROUTES + binding(RESPONSES, ["tools"]))
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps({"model": "m", "input": "hi", "tools": [SEARCH | {"user_location": {}}]}).encode()))
    )
    status = main(["plan", str(file), "--surface", RESPONSES])
    said = json.loads(capsys.readouterr().out)
    assert (said.get("code"), said.get("interceptors"), status) == (code, None if code else ["web_search"], 3 if code else 0)
    assert code or said["dropped"] == ["/tools/0/user_location"]


# Choices ------------------------------------------------------------------------------------------------------------------------------------

CHAT_NAMED, NAMED = {"type": "function", "function": {"name": "web_search"}}, {"type": "function", "name": "web_search"}
LOOK = {"type": "function", "name": "look"}
FORCED = [
    # surface, the client's choice, at first, then, at last beside another tool, and alone
    (CHAT, None, None, None, None, "none"),
    (CHAT, "auto", "auto", "auto", "auto", "none"),
    (CHAT, "required", "required", None, None, "none"),
    (CHAT, SEARCH, CHAT_NAMED, None, None, "none"),
    (RESPONSES, {"type": "web_search_preview"}, NAMED, None, None, "none"),
    (RESPONSES, LOOK, LOOK, None, None, "none"),
    (
        RESPONSES,
        {"type": "allowed_tools", "mode": "required", "tools": [SEARCH, LOOK]},
        {"type": "allowed_tools", "mode": "required", "tools": [NAMED, LOOK]},
        {"type": "allowed_tools", "mode": "auto", "tools": [NAMED, LOOK]},
        {"type": "allowed_tools", "mode": "auto", "tools": [LOOK]},
        "none",
    ),
    (
        CHAT,
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [SEARCH]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [CHAT_NAMED]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [CHAT_NAMED]}},
        "none",
        "none",
    ),
    (CHAT, {"type": "allowed_tools"}, {"type": "allowed_tools", "allowed_tools": {"tools": []}}, "none", "none", "none"),
    (MESSAGES, {"type": "auto"}, {"type": "auto"}, {"type": "auto"}, {"type": "auto"}, {"type": "none"}),
    (MESSAGES, {"type": "any"}, {"type": "any"}, {"type": "auto"}, {"type": "auto"}, {"type": "none"}),
    (
        MESSAGES,
        {"type": "tool", "name": "hosted", "disable_parallel_tool_use": True},
        {"type": "tool", "name": "web_search", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": True},
        {"type": "none"},
    ),
    (MESSAGES, {"type": "tool", "name": "look"}, {"type": "tool", "name": "look"}, {"type": "auto"}, {"type": "auto"}, {"type": "none"}),
]
TOOLS = {
    CHAT: ([{"type": "web_search"}], [CHAT_OWN, {"type": "custom", "custom": {"name": "c"}}]),
    RESPONSES: ([SEARCH], [OWN]),
    MESSAGES: ([{"type": "web_search_1", "name": "hosted"}], [MESSAGES_OWN]),
    GEMINI: ([{"googleSearch": {}}], [{"functionDeclarations": [{"name": "look"}]}]),
}


@pytest.mark.parametrize(("surface", "said", "first", "then", "last", "alone"), FORCED)
def test_a_forced_search_is_forced_once_and_the_last_time_there_is_none(surface, said, first, then, last, alone):
    hosted, others = TOOLS[surface]
    body = {"tools": [*others, *hosted], **({} if said is None else {"tool_choice": said})}
    _, changed = visit(surface, body)
    assert changed.get("tool_choice") == first
    words, members = SURFACES[surface], parse(json.dumps(changed).encode())
    assert json.loads(encode(words.relaxed(members, "web_search", False))).get("tool_choice") == then
    at_last = json.loads(encode(words.relaxed(members, "web_search", True)))
    assert (at_last.get("tool_choice"), at_last["tools"]) == (last, others)
    single = parse(json.dumps(visit(surface, body | {"tools": hosted})[1]).encode())
    at_last = json.loads(encode(words.relaxed(single, "web_search", True)))
    assert (at_last["tool_choice"], named(*at_last["tools"])) == (alone, ["*web_search"])


@pytest.mark.parametrize(
    ("config", "then", "last"),
    [
        ({}, {}, {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        (
            {"tool_config": {"function_calling_config": {"mode": "ANY"}, "retrieval_config": {}}},
            {"tool_config": {"retrieval_config": {}}},
            {"tool_config": {"retrieval_config": {}, "functionCallingConfig": {"mode": "NONE"}}},
        ),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, {}, {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
            {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
            {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
        ),
    ],
)
def test_geminis_choice(config, then, last):
    hosted, others = TOOLS[GEMINI]
    words = SURFACES[GEMINI]

    def relaxed(tools, last):
        members = parse(json.dumps(visit(GEMINI, {**config, "tools": tools})[1]).encode())
        return json.loads(encode(words.relaxed(members, "web_search", last)))

    again = relaxed([*others, *hosted], False)
    assert {name: value for name, value in again.items() if name != "tools"} == then
    at_last = relaxed([*others, *hosted], True)
    assert (at_last["tools"], {name: value for name, value in at_last.items() if name != "tools"}) == (others, then)
    assert {name: value for name, value in relaxed(hosted, True).items() if name != "tools"} == last


# What the client asks of its search ---------------------------------------------------------------------------------------------------------


def test_uses_and_domains_are_read():
    def wish(surface, body):
        found = SURFACES[surface].wish(parse(json.dumps(body).encode()))
        return found.uses, found.allowed, found.blocked

    tool = {"type": "web_search_1", "max_uses": 2, "allowed_domains": ["a.b", 1], "blocked_domains": None}
    assert wish(MESSAGES, {"tools": [tool]}) == (2, (("a.b",),), ())
    assert wish(MESSAGES, {"tools": [tool | {"max_uses": True, "blocked_domains": ["c.d"]}]}) == (None, (("a.b",),), ("c.d",))
    filters = {"allowed_domains": ["a.b"], "blocked_domains": ["c.d"]}
    assert wish(RESPONSES, {"tools": [SEARCH | {"filters": filters}], "max_tool_calls": 3}) == (3, (("a.b",),), ("c.d",))
    assert wish(RESPONSES, {"tools": [SEARCH | {"filters": None}]}) == (None, (), ())
    assert wish(GEMINI, {"tools": [{"googleSearch": {"excludeDomains": ["c.d"]}}]}) == (None, (), ("c.d",))
    assert wish(CHAT, {"web_search_options": {}}) == (None, (), ())
    others = [{"type": "web_search_2", "max_uses": 1, "allowed_domains": ["b.c"]}, {"type": "web_search_3", "blocked_domains": ["e.f"]}]
    assert wish(MESSAGES, {"tools": [tool, *others]}) == (1, (("a.b",), ("b.c",)), ("e.f",))


HERE = {"type": "approximate", "country": "DE"}


@pytest.mark.parametrize(
    ("surface", "body", "pointers"),
    [
        (CHAT, {"web_search_options": {"search_context_size": "low", "user_location": HERE}}, ["search_context_size", "user_location"]),
        (CHAT, {"tools": [CHAT_OWN, {"type": "web_search", "user_location": HERE}]}, ["/tools/1/user_location"]),
        (RESPONSES, {"tools": [OWN, SEARCH | {"user_location": HERE, "search_context_size": None}]}, ["/tools/1/user_location"]),
        (RESPONSES, {"tools": [SEARCH | {"filters": {"allowed_domains": ["a.b"], "a/b": 1}}]}, ["/tools/0/filters/a~1b"]),
        (RESPONSES, {"tools": [SEARCH], "include": ["web_search_call.results", "web_search_call.action.sources"]}, ["/include/0"]),
        (MESSAGES, {"tools": [{"type": "web_search_1", "name": "s", "max_uses": 1, "user_location": HERE}]}, ["/tools/0/user_location"]),
        (MESSAGES, {"tools": [{"type": "web_search_1", "strict": False, "allowed_callers": ["direct"]}]}, []),
        (MESSAGES, {"tools": [{"type": "web_search_1", "allowed_callers": ["code_execution_1"]}]}, ["/tools/0/allowed_callers"]),
        (GEMINI, {"tools": [{}, {"googleSearch": {"timeRangeFilter": {}, "exclude_domains": []}}]}, ["/tools/1/googleSearch/timeRangeFilter"]),
        (GEMINI, {"tools": {"google_search_retrieval": {"dynamicRetrievalConfig": {}}}}, ["/tools/google_search_retrieval/dynamicRetrievalConfig"]),
    ],
)
def test_what_no_back_end_is_asked_for_is_named(surface, body, pointers):
    built = catalog((surface, ["tools"]))
    members = parse(json.dumps(body).encode())
    hook = WebSearch(built, built.web_search, {}).visit()
    assert hook.applies(surface, "up:m", members)
    named = ["/web_search_options/" + name if surface == CHAT and "tools" not in body else name for name in pointers]
    assert list(hook.dropped(members)) == named


def test_what_responses_says_of_hosted_searches_is_told_anyway():
    body = {"tools": [SEARCH, OWN], "include": ["web_search_call.action.sources", "reasoning.encrypted_content"], "max_tool_calls": 1}
    _, changed = visit(RESPONSES, body)
    assert (changed["include"], "max_tool_calls" in changed) == (["reasoning.encrypted_content"], False)
    _, changed = visit(RESPONSES, body | {"include": ["web_search_call.results"]})
    assert "include" not in changed
    _, changed = visit(RESPONSES, body | {"tools": [SEARCH, {"type": "code_interpreter"}]})
    assert changed["max_tool_calls"] == 1
    _, changed = visit(RESPONSES, body | {"max_tool_calls": "3"})
    assert changed["max_tool_calls"] == "3"


@pytest.mark.parametrize(
    ("surface", "body", "pointer"),
    [
        (CHAT, {"web_search_options": {}, "n": 2}, "/n"),
        (GEMINI, {"tools": [{"googleSearch": {}}], "generationConfig": {"candidateCount": 2}}, "/generationConfig/candidateCount"),
        (RESPONSES, {"tools": [SEARCH], "background": True}, "/background"),
    ],
)
def test_what_cannot_be_one_answer_of_several_rounds_is_refused(surface, body, pointer):
    with pytest.raises(RequestError) as refusal:
        visit(surface, body)
    assert (refusal.value.code, refusal.value.pointer) == (Code.UNSUPPORTED_REQUEST, pointer)


# History ------------------------------------------------------------------------------------------------------------------------------------


def enveloped(text="One\nhttps://a.example"):
    return seals.wrap(Seal(text, SealKind.TEXT, CHAT), "up")


USE = {"type": "server_tool_use", "id": "asf_ws_1", "name": "web_search", "input": {"query": "news"}}
SOURCE = {"type": "web_search_result", "url": "https://a.example", "title": "One", "encrypted_content": enveloped()}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "asf_ws_1", "content": [SOURCE]}
CITED = {"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": enveloped(), "cited_text": ""}
FOREIGN_CITED = CITED | {"encrypted_index": "theirs"}
FOREIGN = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [SOURCE | {"encrypted_content": "theirs"}]},
    {"type": "text", "text": "t", "citations": [FOREIGN_CITED, {"type": "char_location"}, 3]},
    {"type": "text", "text": "t", "citations": None},
]
MARK, LONG = ({"cache_control": {"type": "ephemeral", "ttl": ttl}} for ttl in ("5m", "1h"))
OF_NOTHING = {"type": "text", "text": "[Searched the web. Found:\n- One https://a.example]"}
TOLD = {"type": "text", "text": '[Searched the web for "news". Found:\n- One https://a.example]'}


NEXT = {"role": "user", "content": "and?"}


def history(*blocks, role="assistant", then=(NEXT,)):
    return {"messages": [{"role": "user", "content": "hi"}, {"role": role, "content": list(blocks)}, *then]}


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        ([USE, RESULT], [TOLD]),
        ([{"type": "text", "text": "So"}, USE, RESULT], [{"type": "text", "text": "So"}, TOLD]),
        ([USE], [{"type": "text", "text": '[Searched the web for "news".]'}]),
        ([USE, RESULT | {"tool_use_id": []}], [{"type": "text", "text": '[Searched the web for "news".]'}, OF_NOTHING]),
        ([USE | {"input": None}, RESULT | {"content": []}], [{"type": "text", "text": "[Searched the web.]"}]),
        ([RESULT], [OF_NOTHING]),
        ([RESULT | MARK], [OF_NOTHING | MARK]),
        ([USE | MARK, RESULT], [TOLD | MARK]),
        ([USE | MARK, RESULT | LONG], [TOLD | LONG]),
        (
            [USE, RESULT | {"content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}],
            [{"type": "text", "text": '[Searched the web for "news". The search failed.]'}],
        ),
        ([{"type": "text", "text": "t", "citations": [CITED]}], [{"type": "text", "text": "t"}]),
        ([{"type": "text", "text": "t", "citations": [CITED, FOREIGN_CITED]}], [{"type": "text", "text": "t", "citations": [FOREIGN_CITED]}]),
        ([*FOREIGN, USE, RESULT], [*FOREIGN, TOLD]),
    ],
)
def test_the_gateways_own_blocks_are_told_as_text(blocks, told):
    applies, changed = visit(MESSAGES, history(*blocks))
    assert (applies, changed) == (True, history(*told))


def test_a_paused_answer_that_is_sent_back_is_gone_on_with():
    """As the surface has it: its last message is the assistant's, whose last block is a search."""
    said = {"type": "text", "text": "So"}
    go_on = {"role": "user", "content": "Go on."}
    for last, then in (((USE, RESULT), (go_on,)), ((said, USE), (go_on,)), ((USE, RESULT, said), ())):
        _, changed = visit(MESSAGES, history(*last, then=()))
        assert changed["messages"][2:] == list(then)
    assert visit(MESSAGES, history(USE | {"id": "asf_ws_1"}, *FOREIGN, then=()))[1]["messages"][2:] == []


@pytest.mark.parametrize(
    "body",
    [
        history(*FOREIGN),
        history(*FOREIGN[:2], {"type": "tool_use", "id": "asf_1", "name": "f", "input": {}}, then=()),
        history(then=()),
        history({"type": "tool_use", "id": "asf_1", "name": "f", "input": {}}),
        history(USE, RESULT, role="user"),
        {"messages": [{"role": "assistant", "content": '"asf_ws_1"'}]},
    ],
)
def test_a_providers_blocks_and_other_things_stay(body):
    assert visit(MESSAGES, body) == (False, body)


def test_history_is_replayed_also_where_the_provider_searches_itself():
    body = history(USE, RESULT) | {"tools": [{"type": "web_search_1", "name": "web_search"}]}
    applies, changed = visit(MESSAGES, body, (MESSAGES, HOSTED))
    assert (applies, changed) == (True, body | history(TOLD))


CALL = {
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "news", "sources": [{"type": "url", "url": "https://a.example"}, 3]},
}


def message(text):
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


@pytest.mark.parametrize(
    ("item", "alone", "redirected"),
    [
        (CALL | {"id": "asf_ws_1"}, '[Searched the web for "news". Found:\n- https://a.example]', None),
        (CALL | {"id": "asf_ws_1", "status": "failed"}, '[Searched the web for "news". The search failed.]', None),
        (CALL | {"id": "asf_ws_1", "action": None}, "[Searched the web.]", None),
        (CALL, None, '[Searched the web for "news". Found:\n- https://a.example]'),  # as Codex sends it back
        (CALL | {"id": "ws_1"}, None, None),
    ],
)
def test_the_gateways_own_items_are_told_as_text(item, alone, redirected):
    applies, changed = visit(RESPONSES, {"input": [message("So"), item]})
    assert (applies, changed["input"][1]) == (alone is not None, item if alone is None else message(alone))
    _, changed = visit(RESPONSES, {"input": [item], "tools": [SEARCH]})
    text = redirected or alone
    assert changed["input"] == [item if text is None else message(text)]


# What a turn becomes ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "pairs", "cut"),
    [
        ("t1t2t", False, [("t1t2t", "12")]),
        ("t1t2t", True, [("t1", "1"), ("t2t", "2")]),
        ("1", True, [("1", "1")]),
        ("12", True, [("1", "1"), ("2", "2")]),
    ],
)
def test_a_turn_is_cut_behind_each_call_where_calls_may_not_be_parallel(pieces, pairs, cut):
    found = turns(pieces, str.isdigit, "12", pairs=pairs)
    assert [("".join(said), "".join(finding for _, finding in given)) for said, given in found] == cut
