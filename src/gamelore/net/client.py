"""Sending messages to players by HTTP."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from contextlib import suppress
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

from ..errors import ProtocolError
from .http import Incoming, shown
from .messages import printable

MOST_REPLY = 1 << 16  # bytes of a reply's body
MOST_HEAD = 1 << 14  # bytes of a reply's head


class Client:
    """Sends messages. At its end, connections that are still open are dropped."""

    def __init__(self) -> None:
        self._open: set[socket.socket] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for stream in self._open:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)  # who waits for a reply finds that the connection has ended

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
        except OSError as error:
            raise ConnectionError(f"expected a reply from {url}, got none: {error}") from error

    async def _exchange(self, place: SplitResult, request: bytes) -> str:
        stream = await _connect(place)
        self._open.add(stream)
        try:
            sent = stream.send(request)
            if sent == len(request):
                return await _read_reply(Incoming(stream))
            rest = asyncio.create_task(asyncio.get_running_loop().sock_sendall(stream, request[sent:]))
            try:  # and not when all is sent: whoever refuses a body may answer before it is there
                return await _read_reply(Incoming(stream))
            finally:
                rest.cancel()
                await asyncio.gather(rest, return_exceptions=True)
        finally:
            self._open.discard(stream)
            stream.close()


async def _connect(place: SplitResult) -> socket.socket:
    """A connection to the first of a name's addresses that takes one. Raises ConnectionRefusedError."""
    try:
        *others, last = await _addresses(place.hostname, place.port or 80)
        for address in others:
            with suppress(OSError):
                return await _connect_to(*address)
        return await _connect_to(*last)
    except (OSError, UnicodeError) as error:  # no name is a UnicodeError where a part of it is too long
        raise ConnectionRefusedError(f"expected a player at {place.geturl()}, got none: {error}") from error


async def _addresses(host: str | None, port: int) -> list[tuple[Any, ...]]:
    """Family, kind, protocol, name and address of each; numbers need nobody to be asked."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connect_to(family: int, kind: int, protocol: int, _name: str, address: Any) -> socket.socket:
    stream = socket.socket(family, kind, protocol)
    stream.setblocking(False)
    try:  # within a machine a connection is there at once, but only the second call says so
        if stream.connect_ex(address) and stream.connect_ex(address) not in (0, errno.EISCONN):
            await asyncio.get_running_loop().sock_connect(stream, address)
    except BaseException:
        stream.close()
        raise
    return stream


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
    return shown(f"POST {place.path or '/'} HTTP/1.0", fields, body)


async def _read_reply(incoming: Incoming) -> str:
    head = await incoming.head(MOST_HEAD)
    said = re.fullmatch(r"HTTP/\d\.\d +(\d+).*", head.first)
    if not said or said[1] != "200":
        raise ProtocolError(f"expected a reply in HTTP with status 200, got {printable(head.first)!r}")
    if "transfer-encoding" in head.fields:
        raise ProtocolError("expected a reply in one piece, as HTTP/1.0 has it, got one with a Transfer-Encoding")
    body = await incoming.body(MOST_REPLY + 1 if head.length is None else min(head.length, MOST_REPLY + 1))
    if len(body) > MOST_REPLY:
        raise ProtocolError(f"expected a reply of at most {MOST_REPLY} bytes, got more")
    return body.decode("utf-8", "replace").encode("ascii", "replace").decode("ascii")
