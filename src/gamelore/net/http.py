"""HTTP client and server for the GGP protocol, with one message for each connection, and limits on messages.

The module uses sockets and no HTTP library, because common GGP programs do not follow HTTP as strictly as those
libraries require. Some managers end lines with a line feed alone, or send an additional line feed after the body. Some
players send the number of characters of a reply as Content-Length, instead of the number of bytes. The messages are
easy to read: a first line, fields, and a body. The field Content-Length is the length of the body. asyncio streams
would work with such programs too, but they need about 1.5 times as much time for each message.

`Client` sends messages. `listen` receives messages, and limits their senders, number, size and time. A web page can
make a browser on this machine send a POST to any local port. So `listen` refuses two kinds of messages:

- Messages from a web page. The fields Origin and Sec-Fetch-Site show this, and a page cannot omit or change them. Old
  browsers send neither with a form; their field User-Agent shows that they are browsers. The type of a form alone shows
  nothing, because curl and Python's urllib send it by default, and many programs send another type than text/acl.
- Messages whose field Host is no name of this machine. This prevents DNS rebinding.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote_plus, urlsplit

from ..errors import ProtocolError
from ..gdl.syntax import printable

BROWSERS = ("mozilla/", "opera/")  # what the names of browsers in the field User-Agent begin with
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")  # types that a form may send
CHUNK = 1 << 16  # maximum number of bytes to read at once
BLANK = re.compile(rb"\n[ \t\r]*\n")  # the empty line at the end of a head
MOST_REPLY = 1 << 16  # maximum number of bytes in the body of a reply
MOST_HEAD = 1 << 14  # maximum number of bytes in the head of a reply
LINGER = 1.0  # maximum seconds for a client to receive its reply and to close the connection
CLOSING = 2.0  # maximum seconds for unfinished replies at the end of a listener
PAUSE = 1.0  # seconds without new connections after an error of accept
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # addresses that mean all network interfaces of this machine
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Sender, Receiver",
    "Access-Control-Max-Age": "86400",
}
log = logging.getLogger(__name__)


# both ends


class Refusal(ProtocolError):
    """A message that is refused with an HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Head(NamedTuple):
    """The first line and the fields of a message.

    The names of the fields are in lower case. If a field is repeated, its values are joined by commas.
    """

    first: str
    fields: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Number of bytes in the body; None if the fields do not contain a valid number."""
        text = self.fields.get("content-length", "")
        return int(text) if re.fullmatch("[0-9]{1,12}", text) else None


class Incoming:
    """A reader of the head and the body of a message from a connection."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self._loop = asyncio.get_running_loop()
        self._kept = bytearray()  # bytes that were received and not yet returned

    async def head(self, most: int) -> Head:
        """Read and return a head of at most `most` bytes. Its lines may end with CR LF or LF.

        Raise OSError if the connection ends before the end of the head.
        """
        kept, end = self._kept, None
        while end is None and most >= 0:
            begin = max(kept.rfind(b"\n"), 0)
            data = await self._loop.sock_recv(self.stream, CHUNK)
            if not data:
                raise ConnectionResetError("the connection was closed")
            most -= len(data)
            kept += data if kept else data.lstrip()  # skip empty lines before the first line
            end = BLANK.search(kept, begin)
        if end is None or most + len(kept) - end.end() < 0:
            raise Refusal(431, "expected a shorter HTTP header, got too many fields")
        first, *lines = kept[: end.start()].decode("latin-1").split("\n")
        del kept[: end.end()]
        return Head(first.strip(), _fields(lines))

    async def body(self, length: int) -> bytes:
        """Read and return `length` bytes, or fewer bytes if the connection ends."""
        while len(self._kept) < length and (data := await self._loop.sock_recv(self.stream, CHUNK)):
            self._kept += data
        return bytes(self._kept[:length])


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the values of fields by name. A line without a colon is a field with an empty value."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        name, _, value = line.partition(":")
        values[name.strip().lower()].append(value.strip())
    return {name: ", ".join(parts) for name, parts in values.items()}


def _shown(first: str, fields: Mapping[str, object], body: bytes) -> bytes:
    """Return the bytes of a request or a reply."""
    lines = [first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body


# sending messages


class Client:
    """A sender of messages; an asynchronous context manager, which closes open connections at its end."""

    def __init__(self) -> None:
        self._open: set[socket.socket] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for stream in self._open:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)  # this ends the wait for a reply

    async def post(self, url: str, text: str, seconds: float, receiver: str = "") -> str:
        """Send a message to http://ADDRESS:PORT, and return the body of the reply.

        In the message and in the reply, each character that is not ASCII is replaced by "?". Redirections are not
        followed, and no proxies are used.

        Raises:
            TimeoutError: if the reply is not complete after `seconds`
            ConnectionRefusedError: if no connection could be made; nothing was sent
            ConnectionError: if the connection ends before the reply begins
            ProtocolError: for an invalid address, and for a reply that is not HTTP, has a status other than 200, or is
                longer than MOST_REPLY
        """
        parts = parse_url(url)
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(parts, _request(parts, text, receiver))
        except TimeoutError:
            raise TimeoutError(f"expected a reply from {url} within {seconds:g} s, got none") from None
        except ConnectionRefusedError:
            raise
        except OSError as error:
            raise ConnectionError(f"expected a reply from {url}, got none: {error}") from error

    async def _exchange(self, parts: SplitResult, request: bytes) -> str:
        stream = await _connect(parts)
        self._open.add(stream)
        try:
            sent = stream.send(request)
            if sent == len(request):
                return await _read_reply(Incoming(stream))
            rest = asyncio.create_task(asyncio.get_running_loop().sock_sendall(stream, request[sent:]))
            try:  # a refusal may arrive before all of the body is sent, so start to read now
                return await _read_reply(Incoming(stream))
            finally:
                rest.cancel()
                await asyncio.gather(rest, return_exceptions=True)
        finally:
            self._open.discard(stream)
            stream.close()


async def _connect(parts: SplitResult) -> socket.socket:
    """Connect to the first address of the host that accepts the connection.

    Raise ConnectionRefusedError if no address accepts it.
    """
    try:
        *others, last = await _addresses(parts.hostname, parts.port or 80)
        for address in others:
            with suppress(OSError):
                return await _connect_to(*address)
        return await _connect_to(*last)
    except (OSError, UnicodeError) as error:  # UnicodeError: part of the name is too long
        raise ConnectionRefusedError(f"expected a player at {parts.geturl()}, got none: {error}") from error


async def _addresses(host: str | None, port: int) -> list[tuple[Any, ...]]:
    """Return (family, kind, protocol, name, address) of each address of a host.

    A numeric address is not looked up on a name server.
    """
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connect_to(family: int, kind: int, protocol: int, _name: str, address: Any) -> socket.socket:
    stream = socket.socket(family, kind, protocol)
    stream.setblocking(False)
    try:  # a local connection is complete after the first call, but only the second call reports this
        if stream.connect_ex(address) and stream.connect_ex(address) not in (0, errno.EISCONN):
            await asyncio.get_running_loop().sock_connect(stream, address)
    except BaseException:
        stream.close()
        raise
    return stream


def parse_url(url: str) -> SplitResult:
    """Return the parts of http://ADDRESS:PORT, with or without a path. Raise ProtocolError for another text."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not re.fullmatch("[!-~]+", url):
        raise ProtocolError(f"expected the address of a player, got {printable(url)!r}; write http://ADDRESS:PORT")
    return parts


def _request(parts: SplitResult, text: str, receiver: str) -> bytes:
    body = text.encode("ascii", "replace")
    fields = {
        "Accept": "text/delim",
        "Host": parts.netloc.rpartition("@")[2],
        "Sender": "GAMESERVER",
        "Receiver": printable(receiver),
        "Content-Type": "text/acl",
        "Content-Length": len(body),
    }
    return _shown(f"POST {parts.path or '/'} HTTP/1.0", fields, body)


async def _read_reply(incoming: Incoming) -> str:
    head = await incoming.head(MOST_HEAD)
    status = re.fullmatch(r"HTTP/\d\.\d +(\d+).*", head.first)
    if not status or status[1] != "200":
        raise ProtocolError(f"expected a reply in HTTP with status 200, got {printable(head.first)!r}")
    if "transfer-encoding" in head.fields:
        raise ProtocolError("expected a reply without a Transfer-Encoding, as in HTTP/1.0, got a reply with one")
    body = await incoming.body(MOST_REPLY + 1 if head.length is None else min(head.length, MOST_REPLY + 1))
    if len(body) > MOST_REPLY:
        raise ProtocolError(f"expected a reply of at most {MOST_REPLY} bytes, got more")
    return body.decode("utf-8", "replace").encode("ascii", "replace").decode("ascii")


# receiving messages


@dataclass(frozen=True)
class WebLimits:
    """Limits on incoming messages."""

    head: int = 1 << 14  # maximum bytes of the first line and the fields; a GET message is part of the first line
    body: int = 1 << 20  # maximum bytes of the body
    seconds: float = 15.0  # maximum time until the whole message has arrived
    connections: int = 256  # maximum number; if there are more, the longest idle connection is dropped
    hosts: tuple[str, ...] = ()  # additional names of this machine that the field Host may contain
    is_get_allowed: bool = False  # whether messages may be sent by GET
    is_cors_allowed: bool = False  # whether all web pages may send messages and read the replies


@asynccontextmanager
async def listen(
    answer: Callable[[str], Awaitable[str]], address: str = "127.0.0.1", port: int = 0, limits: WebLimits | None = None
) -> AsyncIterator[int]:
    """Answer HTTP messages while the context is open. The context yields the port.

    answer: function that returns the reply to a message. If it raises ProtocolError, the client receives status 400. If
        it raises another error, the error is logged, and the client receives status 500. The function always runs to
        its end, even if the client closes the connection.
    port: port to use; 0 for any free port

    At the end of the context, unfinished replies have CLOSING more seconds.

    Raises OSError if the address or the port cannot be used.
    """
    listener = _Listener(answer, address, port, limits or WebLimits())
    try:
        yield listener.port
    finally:
        await listener.close()


class _Listener:
    """A listener on one address and port, with all its connections."""

    def __init__(self, answer: Callable[[str], Awaitable[str]], address: str, port: int, limits: WebLimits) -> None:
        self._answer = answer
        self._address = address
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()  # one task for each connection
        # tasks that wait for their clients; the task that has waited longest comes first
        self._awaited: dict[asyncio.Task[None], None] = {}
        self._loop = asyncio.get_running_loop()
        is_double = address in ("", "::") and socket.has_dualstack_ipv6()  # IPv6 and IPv4
        family = socket.AF_INET6 if ":" in address or is_double else socket.AF_INET
        self._listening = socket.create_server(
            (address, port), family=family, backlog=limits.connections, dualstack_ipv6=is_double
        )
        self._listening.setblocking(False)
        self.port = self._listening.getsockname()[1]
        self._take_connections()

    def _take_connections(self) -> None:
        if self._listening.fileno() >= 0:  # the listener is not closed
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            stream, (host, port, *_) = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has closed the connection
        except OSError as error:
            log.warning("no new connections are accepted for %g s: %s", PAUSE, error)
            self._loop.remove_reader(self._listening)
            self._loop.call_later(PAUSE, self._take_connections)
            return
        stream.setblocking(False)
        self._tasks.add(self._loop.create_task(self._serve(stream, f"{host}:{port}")))

    async def _serve(self, stream: socket.socket, client: str) -> None:
        """Serve one connection from its begin to its end."""
        task = asyncio.current_task()
        assert task is not None
        try:
            with stream:
                reply = await self._reply(task, stream, client)
                self._awaited[task] = None
                async with asyncio.timeout(LINGER):
                    await self._send(stream, reply)
        except OSError as error:  # TimeoutError is a subclass of OSError
            log.debug("the connection from %s was lost: %s", client, error)
        finally:
            self._drop(task)

    async def _reply(self, task: asyncio.Task[None], stream: socket.socket, client: str) -> bytes:
        self._awaited[task] = None
        try:
            self._make_room_for(task)
            text = await self._received(Incoming(stream))
            del self._awaited[task]
            return self._reply_of(200, await self._answered(text) if text else "")
        except ProtocolError as error:
            log.info("refused a message from %s: %s", client, printable(str(error)))
            return self._reply_of(error.status if isinstance(error, Refusal) else 400, f"{error}\n")

    def _make_room_for(self, task: asyncio.Task[None]) -> None:
        """If there are too many connections, drop those that have waited longest for their clients.

        Raise Refusal if this leaves no room for the connection of `task`.
        """
        while len(self._tasks) > self._limits.connections:
            longest = next(iter(self._awaited))
            if longest is task:
                raise Refusal(503, "there are too many messages at once; send this message again later")
            self._drop(longest)
            longest.cancel()

    def _drop(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._awaited.pop(task, None)

    async def _received(self, incoming: Incoming) -> str:
        """Return the message of a connection; empty if the request contains no message.

        Raise ProtocolError if the message is refused.
        """
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._read(incoming)
        except TimeoutError:
            raise Refusal(
                408, f"expected a whole message within {self._limits.seconds:g} s, got only a part; send it faster"
            ) from None

    async def _answered(self, text: str) -> str:
        try:
            return await self._answer(text)
        except ProtocolError:
            raise
        except Exception:
            log.exception("an error prevented an answer to %s", printable(text))
            raise Refusal(500, "internal error of the player; its log has the details") from None

    async def _read(self, incoming: Incoming) -> str:
        head = await incoming.head(self._limits.head)
        request = re.fullmatch(r"(?i)([A-Z]+) +(.*?) +HTTP/\d\.\d", head.first)
        if not request:
            raise Refusal(400, f"expected HTTP, got {printable(head.first)!r}; begin the message with POST / HTTP/1.0")
        method, target = request[1].upper(), request[2]
        if method == "OPTIONS":
            return ""
        self._check_sender(head)
        if method == "GET" and self._limits.is_get_allowed:
            return unquote_plus(target.lstrip("/"), errors="replace")
        if method != "POST":
            raise Refusal(
                405, f"expected POST, got {printable(method)}; send the message as the body of a POST request"
            )
        return await self._read_body(incoming, head)

    def _check_sender(self, head: Head) -> None:
        """Raise ProtocolError if a web page that is not allowed may have sent the message."""
        host = head.fields.get("host")
        if host and not self._is_own(host):
            raise Refusal(
                403, f"expected a name of this machine, got {printable(host)!r}; allow this name with --allow-host"
            )
        if not self._limits.is_cors_allowed and _is_of_page(head.fields):
            raise Refusal(
                403, "expected a message from a game manager, got one from a web page; allow web pages with --cors"
            )

    def _is_own(self, host: str) -> bool:
        """Return whether the field Host names this machine.

        Valid names are localhost, loopback addresses, the address of the listener, and the names in `WebLimits.hosts`.
        If the listener uses all network interfaces, every numeric address is valid.
        """
        match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:\d*)?", host.lower())
        if not match:
            return False
        name = match[1].strip("[]").rstrip(".")
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
            raise Refusal(411, "expected the length of the body in bytes as Content-Length, got no number")
        if length > self._limits.body:
            raise Refusal(413, f"expected a body of at most {self._limits.body} bytes, got {length}")
        if head.fields.get("expect", "").lower() == "100-continue":
            incoming.stream.send(_shown("HTTP/1.1 100 Continue", {}, b""))
        body = await incoming.body(length)
        if len(body) < length:
            raise Refusal(400, f"expected a body of {length} bytes as in Content-Length, got {len(body)}")
        if not body:
            raise Refusal(400, "expected a message, got an empty body; send ( INFO ) or another message")
        return body.decode("utf-8", "replace")

    def _reply_of(self, status: int, text: str) -> bytes:
        body = text.encode("ascii", "replace")
        fields = {"Content-type": "text/acl", "Content-length": len(body), "Connection": "close"}
        fields |= CORS if self._limits.is_cors_allowed else {}
        return _shown(f"HTTP/1.0 {status} {HTTPStatus(status).phrase}", fields, body)

    async def _send(self, stream: socket.socket, reply: bytes) -> None:
        """Send a reply, and wait until the client has closed the connection.

        If this side closed the connection first, the client could lose parts of the reply.
        """
        await self._loop.sock_sendall(stream, reply)
        stream.shutdown(socket.SHUT_WR)
        while await self._loop.sock_recv(stream, CHUNK):
            pass

    async def close(self) -> None:
        """Drop the connections that wait for their clients. Unfinished replies have CLOSING more seconds."""
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in self._awaited:
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _is_of_page(fields: Mapping[str, str]) -> bool:
    """Return whether a web page made a browser send a message with these fields."""
    if "origin" in fields or fields.get("sec-fetch-site", "none") != "none":
        return True
    is_browser = fields.get("user-agent", "").lower().startswith(BROWSERS)
    return is_browser and fields.get("content-type", "").lower().startswith(FORMS)
