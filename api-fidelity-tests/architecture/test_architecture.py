"""The house of DESIGN §3 as it stands: who may import whom, how long things may be, and what no file may contain.

Every rule is a function over sources, so that a small bad snippet can show that it is able to fail.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "asgi_surface"

# Everything else is the core: a new module is in it until this line says otherwise.
SHELL = {"__init__", "__main__", "cli", "files", "interceptors", "server", "layers", "upstream", "verify"}
NOT_IN_CORE = {"asyncio", "anyio", "httpx", "starlette", "uvicorn", "httptools", "time", "random", "os", "socket", "ssl", "threading", "subprocess"}
BLIND_LAYERS = {"conversion", "relay", "exit"}
INPUTS_OF_A_DECISION = {f"{PACKAGE}.{name}" for name in ("planner", "catalog", "config")}
HTTPX = {f"{PACKAGE}.upstream.httpx_transport", f"{PACKAGE}.interceptors.web_search.backend"}  # the optional transport, and searches
HTTP_CLIENTS = {"httpx", "requests", "aiohttp", "urllib3", "http.client"}
OPENERS = {"create_connection", "open_connection", "create_unix_connection", "open_unix_connection", "connect_tcp", "urlopen", "connect_ex"}
TOP_LEVEL = {"pyproject.toml", "routes.toml", "README.md", "CHANGELOG.md", PACKAGE, "api-fidelity-tests", "bench"}
NOT_OURS = {"build", "dist"}  # what .gitignore names


def sources(folder):
    """The sources below a folder by module name."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text()
    return found


MODULES = sources(ROOT / PACKAGE)


# Who imports whom.


def imports(name, code, known):
    """The modules that a module imports, wherever in it the import stands; of a package's names those that are modules."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= full & known
            found |= {node.module} if full - known else set()
    return found


def graph(modules):
    return {name: imports(name, code, modules.keys()) for name, code in modules.items()}


def ours(edges):
    return {name: {one for one in found if one in edges} for name, found in edges.items()}


def room(name):
    """The first step below the package."""
    return [*name.split("."), "__init__"][1]


def under(name, *prefixes):
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def reached(edges, name):
    """Everything that a module imports, directly or not."""
    seen, waiting = set(), [name]
    while waiting:
        new = edges[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def core_sees_no_shell(edges):
    for name, found in edges.items():
        if room(name) not in SHELL:
            yield from (f"{name} -> {one}" for one in found if one in edges and room(one) in SHELL)
            yield from (f"{name} -> {one}" for one in found if under(one, *NOT_IN_CORE))


def codecs_are_strangers(edges):
    """A codec is a package below `codecs`; the single files there are what all may share. Zed, a carrier, asks the registry for the others."""
    folder = f"{PACKAGE}.codecs."
    codecs = {name.split(".")[2] for name in edges if name.startswith(folder) and name.count(".") > 2}
    codec_of = {name: name.split(".")[2] for name in edges if name.startswith(folder) and name.split(".")[2] in codecs}
    for name, codec in codec_of.items():
        yield from (f"{name} -> {one}" for one in edges[name] if codec_of.get(one, codec) != codec)
        yield from (f"{name} -> {one}" for one in edges[name] if one == folder[:-1] and codec != "zed")


def layers_are_strangers(edges):
    folder = f"{PACKAGE}.layers."
    layer_of = {name: name.split(".")[2] for name in edges if name.startswith(folder)}
    for name, layer in layer_of.items():
        if layer != "stack":
            yield from (f"{name} -> {one}" for one in edges[name] if layer_of.get(one, layer) not in {layer, "exchange", "exit"})


def what_follows_the_plan_is_blind(edges):
    inner = ours(edges)
    for name in inner:
        if name.startswith(f"{PACKAGE}.layers.") and name.split(".")[2] in BLIND_LAYERS:
            yield from (f"{name} -> {one}" for one in reached(inner, name) & INPUTS_OF_A_DECISION)


def http_clients_stay_upstream(edges):
    for name, found in edges.items():
        for one in found:
            if under(one, *HTTP_CLIENTS) and not (one == "httpx" and name in HTTPX):
                yield f"{name} -> {one}"


def no_circle(edges):
    try:
        TopologicalSorter(ours(edges)).prepare()
    except CycleError as error:
        yield " -> ".join(error.args[1])


GRAPH_RULES = [
    core_sees_no_shell,
    codecs_are_strangers,
    layers_are_strangers,
    what_follows_the_plan_is_blind,
    http_clients_stay_upstream,
    no_circle,
]


@pytest.mark.parametrize("rule", GRAPH_RULES)
def test_the_import_contract_holds(rule):
    assert list(rule(graph(MODULES))) == []


BAD_HOUSES = [
    (core_sees_no_shell, {"asgi_surface.ir": "import asyncio"}, "asgi_surface.ir -> asyncio"),
    (core_sees_no_shell, {"asgi_surface.ir": "def f():\n    from os.path import join"}, "asgi_surface.ir -> os.path"),
    (core_sees_no_shell, {"asgi_surface.new": "import asgi_surface.cli", "asgi_surface.cli": ""}, "asgi_surface.new -> asgi_surface.cli"),
    (
        codecs_are_strangers,
        {"asgi_surface.codecs.a.x": "from asgi_surface.codecs.b import y", "asgi_surface.codecs.b.y": "", "asgi_surface.codecs.shared": ""},
        "asgi_surface.codecs.a.x -> asgi_surface.codecs.b.y",
    ),
    (
        codecs_are_strangers,
        {"asgi_surface.codecs.a.x": "from asgi_surface.codecs import CODECS", "asgi_surface.codecs": ""},
        "asgi_surface.codecs.a.x -> asgi_surface.codecs",
    ),
    (
        layers_are_strangers,
        {"asgi_surface.layers.relay": "from asgi_surface.layers import planning", "asgi_surface.layers.planning": ""},
        "asgi_surface.layers.relay -> asgi_surface.layers.planning",
    ),
    (
        what_follows_the_plan_is_blind,
        {"asgi_surface.layers.exit": "import asgi_surface.a", "asgi_surface.a": "from asgi_surface.catalog import X", "asgi_surface.catalog": ""},
        "asgi_surface.layers.exit -> asgi_surface.catalog",
    ),
    (http_clients_stay_upstream, {"asgi_surface.upstream.pool": "import httpx"}, "asgi_surface.upstream.pool -> httpx"),
    (
        no_circle,
        {"asgi_surface.a": "import asgi_surface.b", "asgi_surface.b": "from asgi_surface import a"},
        "asgi_surface.a -> asgi_surface.b -> asgi_surface.a",
    ),
]


@pytest.mark.parametrize(("rule", "modules", "problem"), BAD_HOUSES)
def test_a_broken_import_contract_is_seen(rule, modules, problem):
    found = list(rule(graph(modules)))
    assert found == [problem] or (rule is no_circle and len(found) == 1)


def test_a_relative_import_is_seen():
    with pytest.raises(AssertionError, match="relative"):
        graph({"asgi_surface.a": "from . import b"})


# How long things are.


def functions(code):
    """Every function of a source with its number of lines, methods and inner ones included."""
    nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.name, node.end_lineno - node.lineno + 1) for node in nodes]


def too_long(modules):
    for name, code in modules.items():
        lines = len(code.splitlines())
        if lines > 350:
            yield f"{name}: {lines} lines"
        yield from (f"{name}.{function}: {size} lines" for function, size in functions(code) if size > 60)


def too_long_on_the_whole(modules):
    sizes = [size for code in modules.values() for _, size in functions(code)]
    if statistics.median(sizes) > 8:
        yield f"the median function has {statistics.median(sizes)} lines"
    if sum(size < 30 for size in sizes) < 0.9 * len(sizes):
        yield "more than a tenth of the functions have 30 lines or more"


def body(lines):
    return "def f():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize("rule", [too_long, too_long_on_the_whole])
def test_nothing_is_longer_than_it_may_be(rule):
    assert list(rule(MODULES)) == []


@pytest.mark.parametrize(
    ("rule", "code", "problem"),
    [
        (too_long, "x = 1\n" * 351, "m: 351 lines"),
        (too_long, "class C:\n    async def g(self):\n" + "        x = 1\n" * 60, "m.g: 61 lines"),
        (too_long_on_the_whole, body(9), "the median function has 9 lines"),
        (too_long_on_the_whole, body(8) * 8 + body(30), "more than a tenth of the functions have 30 lines or more"),
    ],
)
def test_what_is_too_long_is_seen(rule, code, problem):
    assert list(rule({"m": code})) == [problem]


# What no file may contain.


def unfinished(code):
    """Marks of what is still to be done, and functions that do nothing and do not say so."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT and re.search(r"\b(TODO|FIXME|XXX|HACK)\b", token.string):
            yield f"{token.start[0]}: {token.string}"
    tree = ast.parse(code)
    protocols = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)]
    declared = {id(node) for protocol in protocols for node in ast.walk(protocol)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in {"NotImplementedError", "NotImplemented"}:
            yield f"{node.lineno}: {node.id}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in declared and _is_empty(node):
            yield f"{node.lineno}: {node.name} does nothing"


def _is_empty(node):
    said = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    abstract = any("abstractmethod" in ast.unparse(one) for one in node.decorator_list)
    told = (ast.get_docstring(node) or "").startswith("Nothing")
    return not (abstract or told) and all(isinstance(one, ast.Pass) for one in said)


def swallowed(code):
    """Exceptions that vanish: handlers that do nothing at all, and broad ones that neither raise, log nor hand on what they caught."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ExceptHandler):
            caught = {"BaseException"} if node.type is None else {one.id for one in ast.walk(node.type) if isinstance(one, ast.Name)}
            broad = caught & {"Exception", "BaseException"}
            if all(isinstance(one, ast.Pass | ast.Continue) for one in node.body) or (broad and not _is_told(node)):
                yield f"{node.lineno}: an exception is swallowed"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            yield from (f"{node.lineno}: {one.id} is suppressed" for one in node.args if isinstance(one, ast.Name) and one.id.endswith("Exception"))


def _is_told(handler):
    names = {one.id for one in ast.walk(handler) if isinstance(one, ast.Name)}
    return bool(names & {"_LOG", handler.name}) or any(isinstance(one, ast.Raise) for one in ast.walk(handler))


def sockets(code):
    """Calls that open a connection to somewhere."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)).rpartition(".")[2] in OPENERS | ({"socket"} if "." in name else set()):
            yield f"{node.lineno}: {name}"


def request_objects(code):
    """Starlette's wrapped middleware buffers and hides `send`; only plain ASGI passes streams on."""
    for node in ast.walk(ast.parse(code)):
        if "BaseHTTPMiddleware" in {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}:
            yield f"{node.lineno}: BaseHTTPMiddleware"


CODE_RULES = [unfinished, swallowed, sockets, request_objects]


@pytest.mark.parametrize("rule", CODE_RULES)
def test_no_module_contains_what_none_may(rule):
    modules = {name: code for name, code in MODULES.items() if rule is not sockets or room(name) != "upstream"}
    assert [f"{name}:{problem}" for name, code in modules.items() for problem in rule(code)] == []


@pytest.mark.parametrize(
    ("rule", "code", "problem"),
    [
        (unfinished, "x = 1  # TODO: more", "1: # TODO: more"),
        (unfinished, "def f():\n    raise NotImplementedError", "2: NotImplementedError"),
        (unfinished, 'async def f():\n    """Later."""\n    ...', "1: f does nothing"),
        (swallowed, "try:\n    f()\nexcept ValueError:\n    pass", "3: an exception is swallowed"),
        (swallowed, "try:\n    f()\nexcept (OSError, Exception):\n    x = 1", "3: an exception is swallowed"),
        (swallowed, "try:\n    f()\nexcept:\n    x = 1", "3: an exception is swallowed"),
        (swallowed, "with contextlib.suppress(Exception):\n    f()", "1: Exception is suppressed"),
        (sockets, "await loop.create_connection(P)", "1: loop.create_connection"),
        (sockets, "s = socket.socket()", "1: socket.socket"),
        (request_objects, "from starlette.middleware.base import BaseHTTPMiddleware", "1: BaseHTTPMiddleware"),
        (request_objects, "class M(base.BaseHTTPMiddleware): x = 1", "1: BaseHTTPMiddleware"),
    ],
)
def test_what_no_module_may_contain_is_seen(rule, code, problem):
    assert list(rule(code)) == [problem]


UNFINISHED_ONLY_AT_A_GLANCE = """
class P(Protocol):
    def f(self):
        ...
class A:
    @abstractmethod
    def g(self):
        'Text: TODO.'
    def h(self):
        'Nothing to stop.'
"""
CAUGHT_AND_TOLD = """
try:
    f()
except Exception:
    _LOG.exception('x')
except Exception as error:
    f(error)
except OSError:
    x = 1
with suppress(OSError):
    f()
"""


@pytest.mark.parametrize(("rule", "code"), [(unfinished, UNFINISHED_ONLY_AT_A_GLANCE), (swallowed, CAUGHT_AND_TOLD)])
def test_what_a_module_may_contain_is_not_blamed(rule, code):
    assert list(rule(code)) == []


def test_every_module_says_what_it_is_for():
    assert [name for name, code in MODULES.items() if not ast.get_docstring(ast.parse(code))] == []


# What stands where.


def test_the_top_level_holds_what_the_brief_names_and_nothing_else():
    found = {one.name for one in ROOT.iterdir() if not one.name.startswith(".") and one.suffix != ".egg-info"} - NOT_OURS
    assert found - TOP_LEVEL == set()
    assert {"pyproject.toml", "routes.toml", "README.md", PACKAGE, "api-fidelity-tests"} <= found


def test_test_files_have_names_of_their_own():
    names = Counter(file.name for file in (ROOT / "api-fidelity-tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_every_codec_stands_in_the_registry_and_has_the_files_of_its_tasks():
    folders = {name.split(".")[2] for name in MODULES if name.startswith(f"{PACKAGE}.codecs.") and name.endswith(".stream")}
    assert folders == {one.split(".")[2] for one in graph(MODULES)[f"{PACKAGE}.codecs"] if one.count(".") == 2} - {"base", "zed"}  # a carrier
    for folder in folders:
        files = {name.rpartition(".")[2] for name in MODULES if name.startswith(f"{PACKAGE}.codecs.{folder}.")}
        assert files >= {"answer", "errors", "fields", "models", "request", "stream"}
