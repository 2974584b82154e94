"""HTTP as the GGP protocol speaks it, both ends: one message a connection, its reply, and the connection is closed.

This stands on asyncio's streams and on no HTTP library, because the field's programs are looser than what those take:
managers end their lines with a bare line feed, or send one more behind the body, players count the characters of a
reply as its bytes. What has to be read is little: a first line, fields, and a body whose length is one of the fields.

A web page can make a browser on this machine send a POST to any of its ports. So a message is refused where it comes
from a page (the fields Origin and Sec-Fetch-Site, which no page can leave out or change), and where its Host is no name
of this machine (a name of the page's own that was pointed here: DNS rebinding).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple, Self
from urllib.parse import SplitResult, unquote_plus, urlsplit

from ..errors import ProtocolError
from .messages import printable

LINGER = 1.0  # seconds that a client gets to take its reply and to close
CLOSING = 2.0  # seconds for answers under way when a listener ends
MOST_REPLY = 1 << 16  # bytes of a reply's body
MOST_HEAD = 1 << 14  # bytes of a reply's head
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
    listener = _Listener(answer, address, limits or WebLimits())
    server = await asyncio.start_server(
        listener.serve, address or None, port, limit=listener.limits.head, backlog=listener.limits.connections
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await listener.close()


class Client:
    """Sends messages. At its end, connections that are still open are dropped."""

    def __init__(self) -> None:
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def post(self, url: str, text: str, seconds: float, receiver: str = "") -> str:
        """The body of the reply to a message, sent to http://ADDRESS:PORT.

        What is not ASCII in it is replaced by question marks. Redirections are not followed, proxies not used.

        Raises TimeoutError where the reply is not there after `seconds`; ConnectionRefusedError where there is no
        connection, so that nothing was sent; ConnectionError where it ends before the reply begins; ProtocolError for
        a reply that is not HTTP, has another status than 200 or is longer than MOST_REPLY, and for an address that is
        none.
        """
        place = parse_url(url)
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(place, _request(place, text, receiver))
        except TimeoutError:
            raise TimeoutError(f"expected a reply from {url} within {seconds:g} s, got none") from None
        except ConnectionRefusedError:
            raise
        except (OSError, EOFError) as error:
            raise ConnectionError(f"expected a reply from {url}, got none: {error}") from error

    async def _exchange(self, place: SplitResult, request: bytes) -> str:
        try:
            reader, writer = await asyncio.open_connection(place.hostname, place.port or 80, limit=MOST_HEAD)
        except OSError as error:  # several ones in one, where a name has several addresses
            raise ConnectionRefusedError(f"expected a player at {place.geturl()}, got none: {error}") from error
        self._open.add(writer)
        try:
            writer.write(request)  # and not drained: whoever refuses a body may answer before all of it is there
            return await _read_reply(reader)
        finally:
            self._open.discard(writer)
            writer.transport.abort()


def parse_url(url: str) -> SplitResult:
    """The parts of http://ADDRESS:PORT, with or without a path. Raises ProtocolError where it is none."""
    try:
        place = urlsplit(url)
        is_address = place.scheme == "http" and bool(place.hostname) and place.port != 0
    except ValueError:
        is_address = False
    if not is_address or not re.fullmatch("[!-~]+", url):
        raise ProtocolError(f"expected the address of a player, got {printable(url)!r}; write http://ADDRESS:PORT")
    return place


def _request(place: SplitResult, text: str, receiver: str) -> bytes:
    body = text.encode("ascii", "replace")
    fields = {
        "Accept": "text/delim",
        "Host": place.netloc.rpartition("@")[2],
        "Sender": "GAMESERVER",
        "Receiver": printable(receiver),
        "Content-Type": "text/acl",
        "Content-Length": len(body),
    }
    return _shown(f"POST {place.path or '/'} HTTP/1.0", fields, body)


def _shown(first: str, fields: Mapping[str, object], body: bytes) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body


async def _read_reply(reader: asyncio.StreamReader) -> str:
    head = await _read_head(reader, MOST_HEAD)
    said = re.fullmatch(r"HTTP/\d\.\d +(\d+).*", head.first)
    if not said or said[1] != "200":
        raise ProtocolError(f"expected a reply in HTTP with status 200, got {printable(head.first)!r}")
    if "transfer-encoding" in head.fields:
        raise ProtocolError("expected a reply in one piece, as HTTP/1.0 has it, got one with a Transfer-Encoding")
    body = await _read_at_most(reader, MOST_REPLY + 1 if head.length is None else min(head.length, MOST_REPLY + 1))
    if len(body) > MOST_REPLY:
        raise ProtocolError(f"expected a reply of at most {MOST_REPLY} bytes, got more")
    return body.decode("utf-8", "replace").encode("ascii", "replace").decode("ascii")


async def _read_at_most(reader: asyncio.StreamReader, most: int) -> bytes:
    """What comes until the connection ends, but no more than this."""
    try:
        return await reader.readexactly(most)
    except asyncio.IncompleteReadError as error:
        return error.partial


class _Refusal(ProtocolError):
    """A message that is not answered, and the status that says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        self.status = status
        super().__init__(text)


class _Head(NamedTuple):
    """The first line, and the fields by names in lower case; where one is given twice, a comma joins its values."""

    first: str
    fields: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body; None where the fields do not give a number."""
        text = self.fields.get("content-length", "")
        return int(text) if re.fullmatch("[0-9]{1,12}", text) else None


async def _read_head(reader: asyncio.StreamReader, most: int) -> _Head:
    """A head of at most so many bytes, lines ended by CR LF or LF. Raises IncompleteReadError where it breaks off."""
    lines: list[str] = []
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            most = -1
        else:
            most -= len(line)
        if most < 0:
            raise _Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "expected a shorter head, got too many fields")
        if text := line.decode("latin-1").strip():
            lines.append(text)
        elif lines:  # empty lines before the first one are skipped
            return _Head(lines[0], _fields(lines[1:]))


def _fields(lines: list[str]) -> dict[str, str]:
    """Fields by name; a line without a colon is one without a value."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


class _Listener:
    """The connections of one address and port."""

    def __init__(self, answer: Answer, address: str, limits: WebLimits) -> None:
        self.limits = limits
        self._answer = answer
        self._address = address
        self._tasks: set[asyncio.Task[None]] = set()
        self._awaited: dict[asyncio.StreamWriter, None] = {}  # whose clients keep us waiting, for longest first
        self._is_closing = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its last."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._is_closing:
                await self._serve(reader, writer)
        except (OSError, EOFError) as error:  # TimeoutError is one as well
            log.debug("the connection from %s is lost: %s", _peer(writer), error)
        except asyncio.CancelledError:
            if not self._is_closing:  # asyncio's streams would report what `close` has cancelled
                raise
        finally:
            self._awaited.pop(writer, None)
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            text = await self._received(reader, writer)
            status, reply = HTTPStatus.OK, await self._answered(text) if text else ""
        except ProtocolError as error:
            status, reply = error.status if isinstance(error, _Refusal) else HTTPStatus.BAD_REQUEST, f"{error}\n"
            log.info("refused a message from %s: %s", _peer(writer), printable(reply))
        self._awaited[writer] = None
        async with asyncio.timeout(LINGER):
            await self._send(reader, writer, status, reply.encode("ascii", "replace"))

    async def _answered(self, text: str) -> str:
        try:
            return await self._answer(text)
        except ProtocolError:
            raise
        except Exception:
            log.exception("no answer to %s", printable(text))
            raise _Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the player's log says more") from None

    async def _received(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """The message of a connection; empty where there is none to answer. Raises ProtocolError."""
        self._awaited[writer] = None
        self._make_room_for(writer)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._read(reader, writer)
        except TimeoutError:
            raise _Refusal(
                HTTPStatus.REQUEST_TIMEOUT, f"expected a message within {self.limits.seconds:g} s, got less; be quicker"
            ) from None
        finally:
            self._awaited.pop(writer, None)

    def _make_room_for(self, writer: asyncio.StreamWriter) -> None:
        """Where there are too many connections, one is dropped: its client has kept us waiting for longest."""
        if len(self._tasks) <= self.limits.connections:
            return
        longest = next(iter(self._awaited))
        if longest is writer:
            raise _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many messages at once; come back later")
        del self._awaited[longest]
        longest.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        head = await _read_head(reader, self.limits.head)
        said = re.fullmatch(r"(?i)([A-Z]+) +(.*?) +HTTP/\d\.\d", head.first)
        if not said:
            raise _Refusal(
                HTTPStatus.BAD_REQUEST, f"expected HTTP, got {printable(head.first)!r}; begin with POST / HTTP/1.0"
            )
        method, target = said[1].upper(), said[2]
        if method == "OPTIONS":
            return ""
        self._check_sender(head)
        if method == "GET" and self.limits.is_get_allowed:
            return unquote_plus(target.lstrip("/"), errors="replace")
        if method != "POST":
            raise _Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, f"expected POST, got {printable(method)}; send the message as a body"
            )
        return await self._read_body(reader, writer, head)

    def _check_sender(self, head: _Head) -> None:
        """Raises ProtocolError where a web page may be behind a message."""
        host = head.fields.get("host")
        if host and not self._is_own(host):
            raise _Refusal(
                HTTPStatus.FORBIDDEN,
                f"expected a name of this machine as Host, got {printable(host)!r}; allow it with --allow-host",
            )
        site = head.fields.get("sec-fetch-site", "none")
        if not self.limits.is_cors_allowed and ("origin" in head.fields or site != "none"):
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected a game manager, got a web page; allow pages with --cors")

    def _is_own(self, host: str) -> bool:
        """Whether a field Host names this machine: loopback, the address listened on, or a name that was given."""
        said = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:\d*)?", host.lower())
        if not said:
            return False
        name = said[1].strip("[]").rstrip(".")
        if name in ("localhost", self._address.lower(), *(name.lower() for name in self.limits.hosts)):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._address in EVERYWHERE

    async def _read_body(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: _Head) -> str:
        length = head.length
        if length is None or "transfer-encoding" in head.fields:
            raise _Refusal(
                HTTPStatus.LENGTH_REQUIRED, "expected the bytes of the body as Content-Length, got no number"
            )
        if length > self.limits.body:
            raise _Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {self.limits.body} bytes, got {length}"
            )
        if head.fields.get("expect", "").lower() == "100-continue":
            writer.write(_shown("HTTP/1.1 100 Continue", {}, b""))
        body = await _read_at_most(reader, length)
        if len(body) < length:
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"expected {length} bytes as Content-Length says, got {len(body)}")
        if not body:
            raise _Refusal(
                HTTPStatus.BAD_REQUEST, "expected a message, got an empty body; send ( INFO ) or another one"
            )
        return body.decode("utf-8", "replace")

    async def _send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: HTTPStatus, body: bytes
    ) -> None:
        """Sends a reply and waits until the client has closed: to close before it has read could destroy the reply."""
        fields = {"Content-type": "text/acl", "Content-length": len(body), "Connection": "close"}
        fields |= CORS if self.limits.is_cors_allowed else {}
        writer.transport.set_write_buffer_limits(0)  # so that drain means: all of it is on its way
        writer.write(_shown(f"HTTP/1.0 {status.value} {status.phrase}", fields, body))
        await writer.drain()
        writer.write_eof()
        while await reader.read(1 << 16):
            pass

    async def close(self) -> None:
        """Drops whoever keeps us waiting; answers under way have a moment to go out."""
        self._is_closing = True
        for writer in list(self._awaited):
            writer.transport.abort()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _peer(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if name else "nobody"
