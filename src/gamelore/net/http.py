"""HTTP as the GGP protocol speaks it: one message a connection, its reply, and the connection is closed.

This stands on bare sockets and on no HTTP library, because the field's programs are looser than what those take:
managers end their lines with a bare line feed, or send one more behind the body, players count the characters of a
reply as its bytes. What has to be read is little: a first line, fields, and a body whose length is one of the fields.
asyncio's streams would take such programs as well, but half as much time again for each message.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import ProtocolError

CHUNK = 1 << 16  # bytes that are read at once
BLANK = re.compile(rb"\n[ \t\r]*\n")  # what ends a head


class Refusal(ProtocolError):
    """A message that is not read to its end, or not answered; `status` says why."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Head(NamedTuple):
    """The first line, and the fields by names in lower case; where one is given twice, a comma joins its values."""

    first: str
    fields: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body; None where the fields do not give a number."""
        text = self.fields.get("content-length", "")
        return int(text) if re.fullmatch("[0-9]{1,12}", text) else None


class Incoming:
    """What comes on a connection."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self._loop = asyncio.get_running_loop()
        self._kept = bytearray()  # has come, and was not asked for yet

    async def head(self, most: int) -> Head:
        """A head of at most so many bytes, lines ended by CR LF or LF. Raises OSError where it breaks off."""
        kept, end = self._kept, None
        while end is None and most >= 0:
            begin = max(kept.rfind(b"\n"), 0)
            data = await self._loop.sock_recv(self.stream, CHUNK)
            if not data:
                raise ConnectionResetError("the connection ended")
            most -= len(data)
            kept += data if kept else data.lstrip()  # empty lines before the first one are skipped
            end = BLANK.search(kept, begin)
        if end is None or most + len(kept) - end.end() < 0:
            raise Refusal(431, "expected a shorter head, got too many fields")
        first, *lines = kept[: end.start()].decode("latin-1").split("\n")
        del kept[: end.end()]
        return Head(first.strip(), _fields(lines))

    async def body(self, length: int) -> bytes:
        """So many bytes, or fewer where the connection ends before."""
        while len(self._kept) < length and (data := await self._loop.sock_recv(self.stream, CHUNK)):
            self._kept += data
        return bytes(self._kept[:length])


def _fields(lines: list[str]) -> dict[str, str]:
    """Fields by name; a line without a colon is one without a value."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def shown(first: str, fields: Mapping[str, object], body: bytes) -> bytes:
    """A request or a reply as it goes out."""
    lines = [first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body
