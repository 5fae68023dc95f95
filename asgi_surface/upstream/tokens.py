"""A credential that runs out: where it comes from, how a new one is had, and the one more try that a new one is worth.

The environment is read again, or a command is run. What either says is never logged nor told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from asgi_surface.bindings import ProviderAuth
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.upstream.asgi import ASGIApp, Message, Receive, Scope, Send, read_body

Header = tuple[bytes, bytes]

_LOG: Final = logging.getLogger("asgi_surface")
_SECONDS: Final = 20.0
_LINE_BYTES: Final = 16_384
_BLOCK: Final = 65_536
# What Zed says of a token that a new one can replace.
_RUN_OUT: Final = frozenset({b"x-zed-expired-token", b"x-zed-outdated-token"})


class Token:
    """One credential. `secrets` is told each new one, so that it can be kept out of texts."""

    def __init__(self, auth: ProviderAuth, environ: Mapping[str, str], secrets: list[str], *, seconds: float = _SECONDS) -> None:
        self._auth = auth
        self._environ = environ
        self._secrets = secrets
        self._seconds = seconds
        self._value: str | None = None
        self._former: str | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._take(self._read())

    @property
    def header(self) -> Header | None:
        """The header that carries it; None while there is none."""
        if self._value is None:
            return None
        return self._auth.header.encode(), (f"{self._auth.scheme} {self._value}" if self._auth.scheme else self._value).encode()

    async def ready(self) -> Header | None:
        """The header, after a first run of the command where nothing else gives it. Raises `UpstreamError` when the command fails."""
        if self._value is None and self._auth.command and await self.renewed(None) is None:
            raise UpstreamError(Code.UPSTREAM_AUTH_FAILED, "the gateway has no credential for the upstream")
        return self.header

    async def renewed(self, refused: Header | None) -> Header | None:
        """A header that differs from the refused one; None when there is no other. Requests that were refused together renew once."""
        if self.header == refused:
            # A client that leaves does not take the new token from the others.
            await asyncio.shield(self._renewing())
        return self.header if self.header != refused else None

    def _renewing(self) -> asyncio.Task[None]:
        task = self._renewal
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._renewal = asyncio.ensure_future(self._renew())
        return task

    async def _renew(self) -> None:
        self._take(await _printed(self._auth.command, self._seconds) if self._auth.command else self._read())

    def _read(self) -> str | None:
        return self._environ.get(self._auth.env) or None if self._auth.env else None

    def _take(self, value: str | None) -> None:
        """The former one stays a secret: an answer to a request that went out with it may still tell of it."""
        if value is None or value == self._value:
            return
        if self._former in self._secrets:
            self._secrets.remove(self._former)
        self._former, self._value = self._value, value
        self._secrets.append(value)


async def _printed(command: tuple[str, ...], seconds: float) -> str | None:
    """The first line that a command prints; None, with the reason in the log, when there is none that a header can carry."""
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True)
    except OSError as error:
        _LOG.error("a token command cannot be run: %s", error.strerror)
        return None
    try:
        async with asyncio.timeout(seconds):
            line = await _first_line(process)
            status = await process.wait()
    except TimeoutError:
        _LOG.error("a token command took too long")
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended, and nobody has been told yet
                os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started: that holds its output open
            await process.wait()
    if status or not (line and line.isascii() and line.isprintable()):
        _LOG.error("a token command failed (status %d), or printed no token", status)
        return None
    return line


async def _first_line(process: Process) -> str:
    """The first line; "" for one that is too long. What follows is read too, so that the command can end."""
    assert process.stdout is not None
    head = b""
    while block := await process.stdout.read(_BLOCK):
        head += block[: _LINE_BYTES - len(head)]
    line, end, _ = head.partition(b"\n")
    return line.decode("latin-1").strip() if end or len(head) < _LINE_BYTES else ""


async def renewing(app: ASGIApp, token: Token, scope: Scope, receive: Receive, send: Send) -> None:
    """One call with the token. Refused for it, and given a new one, the call is made once more; nothing of the refusal is passed on then."""
    body = await read_body(receive)
    if body is None:
        return
    header = await token.ready()
    first = _Try(send, lambda: token.renewed(header))
    try:
        await app(_with(scope, header), _again(body, receive), first.send)
    except Exception:
        if first.renewed is None:
            raise
    if first.renewed is not None:
        await app(_with(scope, first.renewed), _again(body, receive), send)


class _Abandoned(Exception):
    """What the refused answer's `send` raises, so that the app leaves it."""


class _Try:
    """The `send` of a call that may be made once more."""

    def __init__(self, send: Send, renew: Callable[[], Awaitable[Header | None]]) -> None:
        self._send = send
        self._renew = renew
        self.renewed: Header | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _refused(message):
            self.renewed = await self._renew()
        if self.renewed is not None:
            raise _Abandoned
        await self._send(message)


def _refused(message: Message) -> bool:
    status = message["status"]
    return status == 401 or (status != 200 and any(name.lower() in _RUN_OUT for name, _ in message.get("headers", ())))


def _with(scope: Scope, header: Header | None) -> Scope:
    return {**scope, "headers": [*scope["headers"], *([header] if header else ())]}


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, and then what still comes."""
    bodies = iter((body,))

    async def replay() -> Message:
        whole = next(bodies, None)
        return await receive() if whole is None else {"type": "http.request", "body": whole, "more_body": False}

    return replay
