"""Pages of NiceGUI without a browser: requests, websockets and visitors by hand, and malformed messages."""

from __future__ import annotations

import html
import http.client
import json
import re
import socket
from collections.abc import Iterator
from random import Random
from time import monotonic
from typing import Any, NamedTuple, Self

from gamelore.web.service.guard import SOCKET_PATH

PATIENCE = 60.0  # seconds that a busy machine may take
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10  # kinds of frames
EVENT_NAMES = ("event", "ack", "log", "handshake", "javascript_response", "connect", "quit")


class Address(NamedTuple):
    """The port of a server of pages on this machine."""

    port: int

    @property
    def host(self) -> str:
        """The name and the port of the server."""
        return f"127.0.0.1:{self.port}"

    @property
    def own(self) -> dict[str, str]:
        """The headers of a handshake of the page itself."""
        return {"Host": self.host, "Origin": f"http://{self.host}"}


class Reply(NamedTuple):
    """The reply to a request over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes


def fetch(address: Address, path: str = "/", *, method: str = "GET", body: Any = None, **headers: str) -> Reply:
    """Return the reply to a request over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names, encode_chunked="Transfer-Encoding" in names)
        reply = connection.getresponse()
        return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
    finally:
        connection.close()


# ---- websockets -------------------------------------------------------------------------------------------------


def frame(kind: int, payload: bytes) -> bytes:
    """Return a frame of a websocket, with a mask of zeros."""
    size = len(payload)
    length = bytes([128 | size]) if size < 126 else b"\xfe" + size.to_bytes(2) if size < 1 << 16 else b""
    return bytes([128 | kind]) + (length or b"\xff" + size.to_bytes(8)) + bytes(4) + payload


class WebSocket:
    """A websocket by hand: a handshake with headers of choice, and frames of text."""

    def __init__(
        self, address: Address, query: str = "EIO=4&transport=websocket", patience: float = PATIENCE, **headers: str
    ) -> None:
        self._stream = socket.create_connection(("127.0.0.1", address.port), patience)
        self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = [f"GET {SOCKET_PATH}?{query} HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade"]
        lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._stream.sendall("\r\n".join([*lines, "", ""]).encode())
        self._file = self._stream.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._stream.close()

    def send(self, text: str | bytes) -> None:
        """Send a message."""
        self.send_raw(frame(BINARY, text) if isinstance(text, bytes) else frame(TEXT, text.encode()))

    def send_raw(self, sent: bytes) -> None:
        """Send bytes, which may be no frame."""
        self._stream.sendall(sent)

    def receive(self) -> str | int:
        """Return the next text; the code if the server closes the websocket, 1006 if it breaks the connection."""
        try:
            while (head := self._file.read(2))[1:]:
                size = head[1] & 127
                if size > 125:
                    size = int.from_bytes(self._file.read(2 if size == 126 else 8))
                kind, payload = head[0] & 15, self._file.read(size)
                if kind != PING:
                    return int.from_bytes(payload[:2]) if kind == CLOSE else payload.decode()
                self.send_raw(frame(PONG, payload))
        except ConnectionError:
            pass
        return 1006

    def closed_with(self) -> int:
        """Return the code of the end, after all texts."""
        while isinstance(received := self.receive(), str):
            pass
        return received


# ---- visitors ---------------------------------------------------------------------------------------------------


class Page(NamedTuple):
    """A page as it was served: the id of its client, and its elements by their ids."""

    client_id: str
    elements: dict[str, Any]


def page_of(body: str) -> Page:
    """Return what a page of NiceGUI consists of."""
    (client_id,) = re.findall("'client_id': '([^']+)'", body)
    return Page(client_id, elements_of(body))


def elements_of(body: str) -> dict[str, Any]:
    """Return the elements that a page of NiceGUI consists of."""
    (text,) = re.findall(r"String\.raw`(.*?)`", body, re.DOTALL)
    elements: dict[str, Any] = json.loads(html.unescape(text))
    return elements


class Visitor:
    """A page of NiceGUI without a browser: it sends events of elements, and keeps the elements up to date.

    Attributes:
        elements: the present elements of the page, by their ids
        socket: the websocket of the page
        client_id: what the server calls the page
    """

    def __init__(self, address: Address, path: str = "/", patience: float = PATIENCE) -> None:
        self._patience = patience
        self.client_id, self.elements = page_of(fetch(address, path).body.decode())
        query = f"EIO=4&transport=websocket&client_id={self.client_id}&document_id=d&tab_id=t&implicit_handshake=true"
        self.socket = WebSocket(address, f"{query}&next_message_id=0", patience, **address.own)

    def __enter__(self) -> Self:
        opened = self.socket.receive()
        assert str(opened).startswith("0{"), f"expected a websocket, got {self.socket.status} {opened}"
        self.socket.send("40")
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.__exit__()

    def events(self, kind: str = "") -> list[tuple[str, dict[str, Any]]]:
        """Return the ids of elements, each with an event that it listens to: of this kind, or of all kinds."""
        pairs = [(key, event) for key, element in self.elements.items() for event in element.get("events", [])]
        return [(key, event) for key, event in pairs if kind in ("", event["type"])]

    def send(self, key: str, listener: str, *args: str | None) -> None:
        """Send an event of an element, with arguments in JSON."""
        event = {"id": int(key), "client_id": self.client_id, "listener_id": listener, "args": args}
        self.socket.send(f"42{json.dumps(['event', event])}")

    def receive(self) -> list[Any]:
        """Return the next event that the server sends, with its name; answer pings and take in changes of elements.

        Raises:
            ConnectionError: the server has closed the websocket
            TimeoutError: no event comes in time; pings would keep the websocket open for ever
        """
        deadline = monotonic() + self._patience
        while isinstance(text := self.socket.receive(), str):
            if text == "2":
                if monotonic() > deadline:
                    raise TimeoutError(f"expected an event from the server within {self._patience:g} s")
                self.socket.send("3")
            elif text.startswith("42["):
                event: list[Any] = json.loads(text[2:])
                if event[0] == "update":
                    self._update(event[1])
                return event
        raise ConnectionError(f"the server has closed the websocket: {text}")

    def wait_for(self, what: str, seconds: float = PATIENCE, **props: Any) -> dict[str, Any]:
        """Return the first element with these properties; receive events until there is one.

        Raises:
            AssertionError: there is none in time
        """
        deadline = monotonic() + seconds
        while not (elements := self.with_props(**props)):
            assert monotonic() < deadline, f"expected {what} within {seconds:g} s"
            self.receive()
        return elements[0]

    def with_props(self, **props: Any) -> list[dict[str, Any]]:
        """Return all elements with these properties, and their ids as `key`; ... stands for any value that is true."""
        wanted = props.items()
        return [
            {**element, "key": key}
            for key, element in self.elements.items()
            if all(_has(element.get("props") or {}, name, value) for name, value in wanted)
        ]

    def _update(self, changes: dict[str, Any]) -> None:
        for key, element in changes.items():
            if isinstance(element, dict):
                self.elements[key] = element
            elif key.isdecimal():
                self.elements.pop(key, None)


def _has(props: dict[str, Any], name: str, value: Any) -> bool:
    return bool(props.get(name)) if value is ... else props.get(name) == value


# ---- malformed messages -----------------------------------------------------------------------------------------


def malformed(random: Random, client_id: str) -> Iterator[str | bytes]:
    """Yield malformed messages without end: of the transport, of Socket.IO, and of NiceGUI."""
    letters = '0123456789[]{}",:-/abte\\ \x00\u20ac'
    good = json.dumps(["event", {"id": 5, "client_id": client_id, "listener_id": "x", "args": ['{"a":1}']}])
    texts = ("", "x" * 1000, "\ud800", "nobody", "__proto__", "]{", "1" * 4000, client_id)
    odd: tuple[Any, ...] = (None, -1, 10**300, 1e308, [], {}, [[[]]], True, {"a": {"b": []}}, *texts)
    while True:
        yield random.randbytes(random.randrange(1, 200))
        yield "".join(random.choices(letters, k=random.randrange(1, 100)))
        place = random.randrange(len(good))
        yield f"42{good[:place]}{random.choice(letters)}{good[place + random.randrange(3) :]}"
        depth = random.choice((10, 1_000, 100_000))
        yield f'42["event",{{"client_id":"{client_id}","args":{"[" * depth}{"]" * random.choice((0, depth))}}}]'
        yield f"45{random.randrange(10**12)}-{good}"
        name = random.choice(EVENT_NAMES)
        names = ("client_id", "id", "listener_id", "args", "level", "message", "tab_id", "document_id", "request_id")
        yield f"42{json.dumps([name, {key: random.choice(odd) for key in names}])}"
        for _ in range(4):  # right types, wrong values
            client, text = random.choice(("nobody", client_id)), random.choice(texts)
            numbers = {"id": random.choice((-1, 0, 3, 5, 6, 10**300)), "next_message_id": 10**300}
            ids = {"client_id": client, "listener_id": text, "tab_id": text, "document_id": text, "request_id": text}
            others = {"args": [text, None], "level": "debug", "message": random.choice(odd)}
            yield f"42{random.randrange(10**9)}{json.dumps([name, {**numbers, **ids, **others}])}"
