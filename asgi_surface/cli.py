"""The command line: look at a route file, see what would become of a request, probe its upstreams, serve, make a key.

Only reads arguments, calls the library and prints: answers on standard output, what went wrong with a file on standard error. Decides nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from asgi_surface.catalog import AuthMode, Catalog, Route
from asgi_surface.codecs import CODECS, FACES
from asgi_surface.codecs.zed.envelope import PROVIDERS
from asgi_surface.connect import CLIENTS, NO_KEY, YOUR_KEY, settings, written
from asgi_surface.converters import PAIRS, Pair
from asgi_surface.errors import RequestError
from asgi_surface.files import default_path, examine
from asgi_surface.inbound import received
from asgi_surface.interceptors.web_search import WebSearch
from asgi_surface.layers.stack import Gateway
from asgi_surface.planner import decide
from asgi_surface.plans import RequestPlan, explain
from asgi_surface.server import serve
from asgi_surface.surfaces import ZED, Operation, Surface
from asgi_surface.upstream.embedded import EMBEDDED
from asgi_surface.verdicts import Verdict
from asgi_surface.verify import SECONDS, verify
from asgi_surface.version import __version__

_FINE: Final = 0
_BAD_FILE: Final = 1
_FALSE: Final = 1
_REJECTED: Final = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 fine, 1 a bad or untrue route file, 3 a rejected request. SystemExit(2) for wrong arguments."""
    arguments = _parser().parse_args(argv)
    status: int = arguments.run(arguments)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="asgi-surface", description="An LLM gateway: any client surface to any upstream surface, by declaration.")
    parser.add_argument("--version", action="version", version=f"asgi-surface {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", nargs="?", metavar="FILE", help="the route file (default: $ASGI_SURFACE_ROUTES, else routes.toml)")

    check = commands.add_parser("check", parents=[file], help="list every problem of a route file")
    check.set_defaults(run=_check)

    plans = commands.add_parser("plan", parents=[file], help="say what would become of the request body on standard input")
    plans.add_argument("--surface", required=True, choices=list(FACES), help="the API surface the client speaks")
    plans.add_argument("--model", help="the model, where the path names it and not the body (Gemini)")
    plans.add_argument("--stream", action="store_true", help="a streamed answer, where the path asks for it (Gemini)")
    plans.set_defaults(run=_plan, wrong=plans.error)

    matrix = commands.add_parser("matrix", parents=[file], help="show how each route serves each client surface, or what conversion keeps")
    fidelity = matrix.add_mutually_exclusive_group()
    each = "what each construct of a surface becomes on the others (default: of all surfaces)"
    fidelity.add_argument("--verdicts", nargs="?", const=True, choices=list(CODECS), metavar="SURFACE", help=each)
    fidelity.add_argument("--count", action="store_true", help="how many constructs become what, for every pair of surfaces")
    matrix.set_defaults(run=_matrix)

    probe = commands.add_parser("verify", parents=[file], help="ask each binding, with small requests, whether it does what the file says")
    probe.add_argument("--route", metavar="ROUTE", help="only this route")
    probe.add_argument("--model", help="the model to ask for, where a route serves any")
    probe.add_argument("--timeout", type=float, default=SECONDS, metavar="SECONDS", help="for each request (default: %(default)s)")
    probe.set_defaults(run=_verify, wrong=probe.error)

    client = commands.add_parser("connect", help="print what a client must be told to ask this gateway")
    client.add_argument("client", metavar="CLIENT", choices=list(CLIENTS), help=", ".join(CLIENTS))
    client.add_argument("file", nargs="?", metavar="FILE", help="the route file (default: $ASGI_SURFACE_ROUTES, else routes.toml)")
    client.add_argument("--surface", choices=list(CODECS), help="the surface it is to speak (default: its usual one)")
    client.add_argument("--model", help="the model to ask for (default: the first that the file serves)")
    client.add_argument("--url", default="http://127.0.0.1:8080", help="where the gateway is (default: %(default)s)")
    client.add_argument("--json", action="store_true", help="for programs: env, files, run and code as JSON")
    client.set_defaults(run=_connect, wrong=client.error)

    server = commands.add_parser("serve", parents=[file], help="run the gateway")
    server.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    server.add_argument("--port", default=8080, type=_port, help="the port to listen on, 0 for a free one (default: %(default)s)")
    server.add_argument("--warm", action="store_true", help="start the embedded models before the first request")
    server.set_defaults(run=_serve)

    keys = commands.add_parser("key", help="client keys").add_subparsers(required=True, metavar="COMMAND")
    new = keys.add_parser("new", help="make a key; it is shown once")
    new.add_argument("name", metavar="NAME", nargs="?", default="client", type=_key_name, help="whose key it is, as the log will call it")
    new.set_defaults(run=_new_key)
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _key_name(text: str) -> str:
    if not text or not text.isprintable():
        raise argparse.ArgumentTypeError("a name is one line of printable characters")
    return text


def _check(arguments: argparse.Namespace) -> int:
    catalog, problems = examine(_file(arguments))
    for problem in problems:
        print(problem)
    if catalog is None:
        return _BAD_FILE
    for line in _unavailable(catalog):
        print(line)
    print(f"ok: {len(catalog.routes)} routes, {len(catalog.entries())} models")
    return _FINE


def _plan(arguments: argparse.Namespace) -> int:
    surface = Surface(arguments.surface)
    by_path = surface in CODECS and CODECS[surface].model_in_path
    if by_path and arguments.model is None:
        arguments.wrong(f"--model is required: on {surface} the path names the model")
    if not by_path and (arguments.stream or arguments.model is not None):
        arguments.wrong(f"--model and --stream do not apply: on {surface} the body says both")
    catalog = _catalog(arguments)
    if catalog is None:
        return _BAD_FILE
    answer: RequestPlan | RequestError
    stream = arguments.stream if by_path else None
    hooks = () if catalog.web_search is None else (WebSearch(catalog, catalog.web_search, {}).visit(),)
    try:
        inbound = received(surface, Operation.GENERATE, sys.stdin.buffer.read(), model=arguments.model, stream=stream)
        answer = decide(inbound, catalog, interceptors=hooks).plan
    except RequestError as error:
        answer = error
    print(explain(answer).decode())
    return _REJECTED if isinstance(answer, RequestError) else _FINE


def _matrix(arguments: argparse.Namespace) -> int:
    if arguments.verdicts or arguments.count:
        return _fidelity(arguments)
    catalog = _catalog(arguments)
    if catalog is None:
        return _BAD_FILE
    rows = ([route.route_id, *(_served(catalog, route, surface) for surface in FACES)] for route in catalog.routes.values())
    _print_table([["route", *FACES], *rows])
    for line in _unavailable(catalog):
        print(line)
    return _FINE


def _fidelity(arguments: argparse.Namespace) -> int:
    """What conversion keeps. The tables are the package's own: no route file is read."""
    if arguments.count:
        _print_table([["pair", *Verdict], *([pair.name, *_counts(pair)] for pair in PAIRS.values())])
        return _FINE
    for number, source in enumerate(CODECS if arguments.verdicts is True else [arguments.verdicts]):
        print(end="\n" if number else "")
        targets = [surface for surface in CODECS if surface != source]
        lines = ([row.construct, *(row.verdicts[target] for target in targets), row.why] for row in CODECS[source].rows.values())
        _print_table([[source, *targets, "why"], *lines])
    return _FINE


def _counts(pair: Pair) -> Iterator[str]:
    """How many constructs of the pair's source become each verdict on its target, in the order of the verdicts."""
    counted = Counter(row.verdicts[pair.target] for row in CODECS[pair.source].rows.values())
    yield from (str(counted[verdict]) for verdict in Verdict)


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _verify(arguments: argparse.Namespace) -> int:
    catalog = _catalog(arguments)
    if catalog is None:
        return _BAD_FILE
    if arguments.route not in {None, *catalog.routes}:
        arguments.wrong(f"the file has no route {arguments.route!r}")
    return asyncio.run(_verified(catalog, arguments))


async def _verified(catalog: Catalog, arguments: argparse.Namespace) -> int:
    status = _FINE
    async for line in verify(catalog, os.environ, route=arguments.route, model=arguments.model, seconds=arguments.timeout):
        print(line.text, flush=True)
        status = _FALSE if line.bad else status
    return status


def _connect(arguments: argparse.Namespace) -> int:
    ways = CLIENTS[arguments.client].ways
    if arguments.surface not in {None, *ways}:
        arguments.wrong(f"{arguments.client} does not speak {arguments.surface}; it speaks {', '.join(ways)}")
    catalog = _catalog(arguments)
    if catalog is None:
        return _BAD_FILE
    entries = {entry.name: entry for entry in catalog.entries()}
    model: str = arguments.model or next(iter(entries), "")
    if not catalog.candidates(model):
        arguments.wrong(f"the file serves no model {model!r}" if model else "--model is required: the file lists no name")
    key = NO_KEY if catalog.auth_mode is AuthMode.LOOPBACK else YOUR_KEY
    context = entries[model].context_tokens if model in entries else None
    told = settings(arguments.client, arguments.surface, url=arguments.url, model=model, key=key, context=context)
    print(msgspec.json.encode(told).decode() if arguments.json else "\n".join(written(told)))
    return _FINE


def _serve(arguments: argparse.Namespace) -> int:
    serve(Gateway(routes=_file(arguments), warm=arguments.warm), host=arguments.host, port=arguments.port)
    return _FINE


def _new_key(arguments: argparse.Namespace) -> int:
    key = f"sk-surface-{secrets.token_urlsafe(32)}"
    print(f"{key}\n\n# Hand the key over now: it is stored nowhere. The route file gets its hash:\n[[keys]]")
    # A printable string's JSON form without \u escapes is its TOML form.
    print(f"name = {json.dumps(arguments.name, ensure_ascii=False)}")
    print(f'sha256 = "{hashlib.sha256(key.encode()).hexdigest()}"')
    return _FINE


def _file(arguments: argparse.Namespace) -> str:
    return arguments.file or default_path()


def _catalog(arguments: argparse.Namespace) -> Catalog | None:
    """The catalog, or None with every fatal problem told."""
    catalog, problems = examine(_file(arguments))
    if catalog is None:
        for problem in problems:
            print(problem, file=sys.stderr)
    return catalog


def _served(catalog: Catalog, route: Route, surface: Surface) -> str:
    """How a route serves the clients of a surface: natively, else through the first binding that a converter leads to; and what carries it there.

    Zed's clients are told the provider under which the first binding is native.
    """
    if surface == ZED:
        return f"as {PROVIDERS[route.bindings[0].surface]}"
    binding = next((one for one in route.bindings if one.surface == surface), None) or next(
        (one for one in route.bindings if _leads(catalog, surface, one.surface)), None
    )
    if binding is None:
        return "no converter"
    way = "native" if binding.surface == surface else f"via {binding.surface}"
    return f"{way} ({binding.carrier})" if binding.carrier else way


def _leads(catalog: Catalog, source: Surface, target: Surface) -> bool:
    """Whether a converter that is enabled leads from one surface to another."""
    return catalog.converters is None or PAIRS[source, target].name in catalog.converters


def _unavailable(catalog: Catalog) -> Iterator[str]:
    """A line for each route whose embedded upstream cannot run here, with the command that helps."""
    for route in catalog.routes.values():
        for name in sorted({binding.provider.embedded for binding in route.bindings if binding.provider.embedded is not None}):
            reason = EMBEDDED[name]().unavailable()
            if reason is not None:
                yield f"{route.route_id}: unavailable: {reason}"
