"""Listening for messages by HTTP: who may send them, how many, how large and how slowly.

A web page can make a browser on this machine send a POST to any of its ports. So a message is refused where it comes
from a page (the fields Origin and Sec-Fetch-Site, which no page can leave out or change), and where its Host is no name
of this machine (a name of the page's own that was pointed here: DNS rebinding).
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import unquote_plus

from ..errors import ProtocolError
from .http import CHUNK, Head, Incoming, Refusal, shown
from .messages import printable

LINGER = 1.0  # seconds that a client gets to take its reply and to close
CLOSING = 2.0  # seconds for answers under way when a listener ends
PAUSE = 1.0  # seconds without new connections where this process can open no more
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # addresses that stand for all of this machine's
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Sender, Receiver",
    "Access-Control-Max-Age": "86400",
}

Answer = Callable[[str], Awaitable[str]]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WebLimits:
    """What a listener takes."""

    head: int = 1 << 14  # bytes of first line and fields, in which a message sent by GET must fit as well
    body: int = 1 << 20  # bytes
    seconds: float = 15.0  # for a whole message to arrive
    connections: int = 256  # at once; beyond it, the client that has kept us waiting for longest has to go
    hosts: tuple[str, ...] = ()  # further names of this machine that the field Host may give
    is_get_allowed: bool = False
    is_cors_allowed: bool = False  # whether pages of any origin may send messages and read the replies


@asynccontextmanager
async def listen(
    answer: Answer, address: str = "127.0.0.1", port: int = 0, limits: WebLimits | None = None
) -> AsyncIterator[int]:
    """Answers messages by HTTP until it ends; gives the port that it listens on, which is a free one for port 0.

    The text that `answer` returns is the reply. The ProtocolError that it may raise becomes a reply with status 400,
    any other error a line in the log and status 500. It is awaited to its end even where the client has gone.
    When the block ends, answers under way have CLOSING seconds to go out.

    Raises OSError where the address and port cannot be listened on.
    """
    limits = limits or WebLimits()
    is_double = address in ("", "::") and socket.has_dualstack_ipv6()  # addresses of IPv4 as well
    family = socket.AF_INET6 if ":" in address or is_double else socket.AF_INET
    listening = socket.create_server(
        (address, port), family=family, backlog=limits.connections, dualstack_ipv6=is_double
    )
    listening.setblocking(False)
    listener = _Listener(listening, answer, address, limits)
    try:
        yield listening.getsockname()[1]
    finally:
        await listener.close()


class _Listener:
    """The connections of one address and port."""

    def __init__(self, listening: socket.socket, answer: Answer, address: str, limits: WebLimits) -> None:
        self._answer = answer
        self._address = address
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()  # one a connection
        self._awaited: dict[asyncio.Task[None], None] = {}  # whose clients keep us waiting, for longest first
        self._listening = listening
        self._loop = asyncio.get_running_loop()
        self._take_connections()

    def _take_connections(self) -> None:
        if self._listening.fileno() >= 0:  # it is not closed yet
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            stream, (host, port, *_) = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has gone
        except OSError as error:
            log.warning("no new connections for %g s: %s", PAUSE, error)
            self._loop.remove_reader(self._listening)
            self._loop.call_later(PAUSE, self._take_connections)
            return
        stream.setblocking(False)
        self._tasks.add(self._loop.create_task(self._serve(stream, f"{host}:{port}")))

    async def _serve(self, stream: socket.socket, client: str) -> None:
        """One connection, from its first byte to its last."""
        task = asyncio.current_task()
        assert task is not None
        try:
            with stream:
                reply = await self._reply(task, stream, client)
                self._awaited[task] = None
                async with asyncio.timeout(LINGER):
                    await self._send(stream, reply)
        except OSError as error:  # TimeoutError is one as well
            log.debug("the connection from %s is lost: %s", client, error)
        finally:
            self._drop(task)

    async def _reply(self, task: asyncio.Task[None], stream: socket.socket, client: str) -> bytes:
        self._awaited[task] = None
        try:
            self._make_room_for(task)
            text = await self._received(Incoming(stream))
            del self._awaited[task]
            return self._shown(200, await self._answered(text) if text else "")
        except ProtocolError as error:
            log.info("refused a message from %s: %s", client, printable(str(error)))
            return self._shown(error.status if isinstance(error, Refusal) else 400, f"{error}\n")

    def _make_room_for(self, task: asyncio.Task[None]) -> None:
        """Where there are too many connections, those are dropped whose clients have kept us waiting for longest."""
        while len(self._tasks) > self._limits.connections:
            longest = next(iter(self._awaited))
            if longest is task:
                raise Refusal(503, "too many messages at once; come back later")
            self._drop(longest)
            longest.cancel()

    def _drop(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._awaited.pop(task, None)

    async def _received(self, incoming: Incoming) -> str:
        """The message of a connection; empty where there is none to answer. Raises ProtocolError."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._read(incoming)
        except TimeoutError:
            raise Refusal(408, f"expected a message within {self._limits.seconds:g} s, got less; be quicker") from None

    async def _answered(self, text: str) -> str:
        try:
            return await self._answer(text)
        except ProtocolError:
            raise
        except Exception:
            log.exception("no answer to %s", printable(text))
            raise Refusal(500, "internal error; the player's log says more") from None

    async def _read(self, incoming: Incoming) -> str:
        head = await incoming.head(self._limits.head)
        said = re.fullmatch(r"(?i)([A-Z]+) +(.*?) +HTTP/\d\.\d", head.first)
        if not said:
            raise Refusal(400, f"expected HTTP, got {printable(head.first)!r}; begin with POST / HTTP/1.0")
        method, target = said[1].upper(), said[2]
        if method == "OPTIONS":
            return ""
        self._check_sender(head)
        if method == "GET" and self._limits.is_get_allowed:
            return unquote_plus(target.lstrip("/"), errors="replace")
        if method != "POST":
            raise Refusal(405, f"expected POST, got {printable(method)}; send the message as a body")
        return await self._read_body(incoming, head)

    def _check_sender(self, head: Head) -> None:
        """Raises ProtocolError where a web page may be behind a message."""
        host = head.fields.get("host")
        if host and not self._is_own(host):
            raise Refusal(403, f"expected a name of this machine, got {printable(host)!r}; allow it with --allow-host")
        site = head.fields.get("sec-fetch-site", "none")
        if not self._limits.is_cors_allowed and ("origin" in head.fields or site != "none"):
            raise Refusal(403, "expected a game manager, got a web page; allow pages with --cors")

    def _is_own(self, host: str) -> bool:
        """Whether a field Host names this machine: loopback, the address listened on, or a name that was given."""
        said = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:\d*)?", host.lower())
        if not said:
            return False
        name = said[1].strip("[]").rstrip(".")
        if name in ("localhost", self._address.lower(), *(name.lower() for name in self._limits.hosts)):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._address in EVERYWHERE

    async def _read_body(self, incoming: Incoming, head: Head) -> str:
        length = head.length
        if length is None or "transfer-encoding" in head.fields:
            raise Refusal(411, "expected the bytes of the body as Content-Length, got no number")
        if length > self._limits.body:
            raise Refusal(413, f"expected at most {self._limits.body} bytes, got {length}")
        if head.fields.get("expect", "").lower() == "100-continue":
            incoming.stream.send(shown("HTTP/1.1 100 Continue", {}, b""))
        body = await incoming.body(length)
        if len(body) < length:
            raise Refusal(400, f"expected {length} bytes as Content-Length says, got {len(body)}")
        if not body:
            raise Refusal(400, "expected a message, got an empty body; send ( INFO ) or another one")
        return body.decode("utf-8", "replace")

    def _shown(self, status: int, text: str) -> bytes:
        body = text.encode("ascii", "replace")
        fields = {"Content-type": "text/acl", "Content-length": len(body), "Connection": "close"}
        fields |= CORS if self._limits.is_cors_allowed else {}
        return shown(f"HTTP/1.0 {status} {HTTPStatus(status).phrase}", fields, body)

    async def _send(self, stream: socket.socket, reply: bytes) -> None:
        """Sends it and waits until the client has closed: to close before it has read could destroy the reply."""
        await self._loop.sock_sendall(stream, reply)
        stream.shutdown(socket.SHUT_WR)
        while await self._loop.sock_recv(stream, CHUNK):
            pass

    async def close(self) -> None:
        """Drops whoever keeps us waiting; answers under way have a moment to go out."""
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in self._awaited:
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
