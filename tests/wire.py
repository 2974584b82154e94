"""The network with bare sockets: `serve` as a process, messages as bytes, and a player that answers as it is told."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

PATIENCE = 120.0  # seconds; only what hangs takes so long
GAMELORE = (sys.executable, "-c", "from gamelore.cli import main; main()")


@contextmanager
def serving(*options: object) -> Iterator[int]:
    """`gamelore serve` with these options in a process of its own; gives the port."""
    with served(*options) as (_, port):
        yield port


@contextmanager
def served(*options: object, log: IO[str] | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The same, with the process. Its log goes to this file instead of standard error."""
    process = start_server(*options, log=log)
    try:
        yield process, port_of(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


def start_server(*options: object, port: int = 0, log: IO[str] | None = None) -> subprocess.Popen[str]:
    """Start `gamelore serve`; whoever does so ends it."""
    command = [*GAMELORE, "serve", "--port", str(port), "--json", *map(str, options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait until a server listens; return its port."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"expected a server that listens, got one that ended: {process.wait(PATIENCE)}"
    return int(json.loads(line)["url"].rpartition(":")[2].strip("/"))


def hosting(*arguments: object, code: int = 0) -> Any:
    """`gamelore host` with these arguments in a process of its own: what it printed as JSON."""
    command = [*GAMELORE, "host", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def exchange(port: int, sent: bytes) -> bytes:
    """All that comes back for these bytes, until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def request(body: str | bytes, *headers: str) -> bytes:
    """A message as the field's managers send it."""
    raw = body.encode() if isinstance(body, str) else body
    lines = [
        "POST / HTTP/1.0",
        "Accept: text/delim",
        "Sender: GAMESERVER",
        "Receiver: PLAYER",
        "Content-Type: text/acl",
        f"Content-Length: {len(raw)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


def say(port: int, body: str | bytes, *headers: str) -> str:
    """The reply to a message, whose head must be exact."""
    head, _, reply = exchange(port, request(body, *headers)).partition(b"\r\n\r\n")
    status, *lines = head.decode("ascii").split("\r\n")
    found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert status == "HTTP/1.0 200 OK", (status, reply)
    assert found["content-type"].startswith("text/acl")
    assert int(found["content-length"]) == len(reply)
    return reply.decode("ascii")


def status_of(port: int, sent: bytes) -> int:
    """The status of the HTTP reply to these bytes; 0 where the connection was closed without one."""
    try:
        answer = exchange(port, sent)
    except ConnectionError:
        return 0
    return int(answer.split(b" ", 2)[1]) if answer else 0


def rules(name: str) -> str:
    """A shipped rulesheet on one line, as managers send it."""
    from gamelore import rulesheets as games
    from gamelore.gdl.syntax import parse

    return str(parse(games.path(name).read_text(encoding="utf-8"))).replace("\n", " ")


class Scripted:
    """A player on a bare socket: keeps every request as it came, and sends what `answer` makes of its body."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[str]:
        return [request.partition(b"\r\n\r\n")[2].decode() for request in self.requests]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # the other side has gone
                self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        received = b""
        while (head := received.partition(b"\r\n\r\n"))[1] == b"":
            received += (part := connection.recv(65536))
            if not part:
                return
        lines = [line.lower() for line in head[0].split(b"\r\n")]
        (length,) = (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        while len(received) < len(head[0]) + 4 + length:
            received += (part := connection.recv(65536))
            if not part:
                return
        self.requests.append(received)
        connection.sendall(self.answer(received.partition(b"\r\n\r\n")[2].decode()))


def reply(body: str, *headers: str) -> bytes:
    """A reply as the field's players send it."""
    lines = ["HTTP/1.0 200 OK", "Content-type: text/acl", f"Content-length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def words(message: str) -> Sequence[str]:
    """The words of a message, parentheses among them."""
    return message.replace("(", " ( ").replace(")", " ) ").split()
