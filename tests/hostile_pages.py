"""Hostile requests, websockets, uploads and texts to `gamelore web`, and what must hold while and after they come."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gamelore import rulesheets
from hostile_messages import SENDING, beside, fewer_steps
from page_grammar import PAGES, UNTOUCHED, Step, form_of, text_of
from processes import Delays, descendants, num_connections, num_open_files, resident, wait_until, waited
from visitors import Address, Visitor, fetch

__all__ = ["assert_borne", "fewer_steps", "session"]

MEMORY = 1 << 30  # bytes for each process that knows rules
SERVER_MEMORY = 700 << 20  # bytes, resident, of the process that listens; of this about 120 MB are its imports
CHILD_MEMORY = 5 << 30  # bytes, resident, of all its children together
MOST_PROCESSES = 21  # 10 that play and their spare one, 4 that check texts, some that end, and the fork server
OPEN_FILES = 400  # of the server, while no connection is left from here: pipes of processes, and pages
PAGE_SECONDS = 5.0  # of the server itself until the start page is there, see `page_is_asked`
BETWEEN_PAGES = 0.5  # seconds
VERDICT_SECONDS = 400.0  # until a check of a text has ended; 60 s and 40 s are its own limits, and others go before it
WARM_UP_SECONDS = 900.0
REPLY_SECONDS = 15.0  # until a handshake is answered; one that is damaged may lack its end
PATIENCE = 120.0  # seconds; only what hangs takes so long
STATUSES = frozenset({200, 206, 304, 307, 400, 403, 404, 405, 413, 416, 421, 422, 426, 431})
"""Statuses of HTTP; 101 is judged apart, 500 is an error of the server."""
NO_FORMS = ("no file", "odd head", "many parts")  # faults of forms with fields that are no files, see `is_made_up`
CANARY = f"canary {secrets.token_hex(16)}"
"""The content of a file beside the folder of the server, which no reply may have."""
GAME = "tictactoe"  # the game of the honest visitors
GAMELORE = "from gamelore.cli import main; main()"
FOLDER = re.compile(
    r"(matches|sheets|drafts|nicegui|learning|network|series|tour)(/.*)?|knowledge\.db.*"  # what the pages keep
)
EVENT_ERRORS = ("KeyError", "ValueError", "TypeError", "AttributeError", "IndexError", "orjson.JSONDecodeError")


@dataclass
class PageFigures:
    """What came of all batches so far."""

    batches: int = 0
    steps: int = 0
    pages: int = 0
    slowest_page: float = 0.0
    slowest_server: float = 0.0
    moves: int = 0
    verdicts: int = 0
    most_processes: int = 0
    most_files: int = 0
    most_memory: int = 0
    most_of_children: int = 0

    def __str__(self) -> str:
        return (
            f"{self.batches} batches of {self.steps} steps, {self.moves} honest moves, {self.verdicts} verdicts, "
            f"{self.pages} pages, the slowest after {self.slowest_page:.3f} s ({self.slowest_server:.3f} s of the "
            f"server), at most {self.most_processes} child processes, {self.most_files} open files, "
            f"{self.most_memory >> 20} MiB and {self.most_of_children >> 20} MiB of the children"
        )


class PageServer:
    """`gamelore web` in a folder of its own, below a folder where everything else must stay as it is.

    Args:
        root: an empty folder
        code: what the process runs, with the arguments of the command line; tests run broken servers
    """

    def __init__(self, root: Path, code: str = GAMELORE) -> None:
        self.folder = root / "home" / "data" / "web"
        self.log = root / "log"
        for folder in (self.folder / "matches", root / "work", root / "tmp"):
            folder.mkdir(parents=True)
        for folder in (root, root / "home", self.folder.parent):
            (folder / "canary.txt").write_text(CANARY)
        self._root = root
        self._stack = ExitStack()
        self._process = self._started(code)
        self.address = Address(self._port())
        self._others = self._all_others()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _started(self, code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, "web", "--port", "0", "--no-browser", "--json", "--memory", "1G"]
        command += ["--folder", str(self.folder), "--knowledge", str(self.folder / "knowledge.db")]
        own = {"HOME": self._root / "home", "TMPDIR": self._root / "tmp"}
        environment = {**os.environ, **{name: str(path) for name, path in own.items()}}
        return self._stack.enter_context(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=self._stack.enter_context(self.log.open("w")),
                cwd=self._root / "work",
                env=environment,
                text=True,
            )
        )

    def _port(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"expected a server that listens, got {self.log.read_text()}"
        return int(json.loads(line)["url"].rstrip("/").rpartition(":")[2])

    def end(self) -> None:
        """End the process and all below it, without any check."""
        with suppress(OSError):
            below = descendants(self.pid)
            self._process.kill()
            self._stack.close()
            wait_until(lambda: not any(process.is_alive for process in below), "no process to be left", PATIENCE)

    def new_match(self) -> str:
        """Write a match that has not begun; return its id."""
        match, text = secrets.token_urlsafe(9), rulesheets.path(GAME).read_text(encoding="utf-8")
        roles = re.findall(r"^\(role (\S+)\)", text, re.MULTILINE)
        kept = {"id": match, "game": GAME, "rules": text, "roles": [], "plies": [], "choosers": [], "learned": -1}
        kept |= {"seats": {role: ["person", False] for role in roles}, "pace": [1.0, 1.0, 0.3]}
        (self.folder / "matches" / f"{match}.json").write_text(json.dumps(kept))
        return match

    # ---- what must hold

    def assert_alive(self) -> None:
        assert self._process.poll() is None, f"expected the server to live, got exit code {self._process.returncode}"

    def assert_nothing_else_is_written(self) -> None:
        """Assert that no file has changed outside the folder, and that none of an unknown name is in it."""
        others = self._all_others()
        changed = {name for name in others.keys() | self._others.keys() if others.get(name) != self._others.get(name)}
        assert not changed, f"expected no change outside the folder, got one of {sorted(changed)[:5]}"
        inside = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")]
        unknown = [name for name in inside if not FOLDER.fullmatch(name)]
        assert not unknown, f"expected matches, sheets and drafts in the folder, got {unknown[:5]}"

    def _all_others(self) -> dict[str, tuple[int, int]]:
        """Return size and time of change of each file that is neither in the folder nor the log nor in a cache."""
        kept = (self.folder, self.log, self._root / "home" / ".cache")
        states = {}
        for path in self._root.rglob("*"):
            if path.is_file() and not any(path == other or other in path.parents for other in kept):
                with suppress(FileNotFoundError):
                    state = path.stat()
                    states[path.relative_to(self._root).as_posix()] = (state.st_size, state.st_mtime_ns)
        return states

    def assert_no_bug(self) -> None:
        """Assert that the log has no traceback, except for those of `is_made_up`."""
        log = self.log.read_text(errors="replace")
        bugs = [text for text in tracebacks(log) if not is_made_up(text)]
        assert not bugs, f"expected no traceback in the log, got {bugs[0][-300:]} at the end of {bugs[0][-6000:]}"


def tracebacks(log: str) -> list[str]:
    """Return the tracebacks of a log, each with the error at its end."""
    joint = r"\n(.*)\n+(?:The above exception was|During handling of)[^\n]*:\n+"
    log = re.sub(joint, r"\n  \1\n  and then: ", log)  # what belongs together is one traceback
    return re.findall(r"Traceback \(most recent call last\):\n(?:[ \t|+].*\n|\n)*.*", log)


def is_made_up(traceback: str) -> bool:
    """Whether NiceGUI or uvicorn alone stumbles over an event, a form or a frame that no page sends.

    It does not check the arguments of events before it uses them, and takes each field of a form for a file. It logs
    what comes of that. Nothing else happens: the event or form is lost, and no code of gamelore but the guard has run.
    uvicorn logs a text that is not UTF-8 as an exception, and closes the websocket with 1007, as it should.
    """
    error = traceback.rpartition("\n")[2]
    if re.search(r"/gamelore/(?!web/service/guard\.py)", traceback):
        return False
    if "in send_receive_event_to_app" in traceback:
        return error.startswith("UnicodeDecodeError: ")
    if "in create_file_upload" in traceback:
        return error.startswith("AttributeError: 'str' object has no attribute")
    return ("in handle_event" in traceback or "in _handle_event" in traceback) and error.startswith(EVENT_ERRORS)


class PageTarget:
    """A server that batches are sent to. It is started when it is needed, and after a failure."""

    def __init__(self, folder: Path, code: str = GAMELORE) -> None:
        self.figures = PageFigures()
        self._folder, self._code = folder, code
        self._server: PageServer | None = None
        self._num_started = 0

    def __call__(self, example: dict[str, Any]) -> None:
        """Send a batch. Raise AssertionError if the server does not bear it."""
        try:
            server = self._opened()
            with page_is_asked(server, self.figures):
                Batch(server, self.figures).send(example["steps"])
            self._assert_well(server)
        except BaseException:
            self.give_up()
            raise
        self.figures.batches += 1
        self.figures.steps += len(example["steps"])

    def give_up(self) -> None:
        """End the server, if it runs, without any check."""
        if self._server is not None:
            self._server.end()
        self._server = None

    def _opened(self) -> PageServer:
        if self._server is None:
            self._num_started += 1
            self._server = PageServer(self._folder / str(self._num_started), self._code)
            play_honestly(self._server, WARM_UP_SECONDS)  # which compiles what is not compiled yet
        return self._server

    def _assert_well(self, server: PageServer) -> None:
        """Assert that the server serves an honest visitor, is small, and has written nothing elsewhere."""
        server.assert_alive()
        wait_until(lambda: not num_connections(server.address.port), "no connection to be left", PATIENCE)
        play_honestly(server)
        self.figures.moves += 1
        self._assert_small(server)
        server.assert_nothing_else_is_written()
        server.assert_no_bug()

    def _assert_small(self, server: PageServer) -> None:
        figures, pid = self.figures, server.pid

        def of_children() -> int:
            return sum(resident(child.pid) for child in descendants(pid))

        figures.most_processes = max(figures.most_processes, len(descendants(pid)))
        figures.most_files = max(figures.most_files, num_open_files(pid))
        figures.most_memory = max(figures.most_memory, resident(pid))
        figures.most_of_children = max(figures.most_of_children, of_children())
        wait_until(lambda: len(descendants(pid)) <= MOST_PROCESSES, "few child processes", PATIENCE)
        wait_until(lambda: num_open_files(pid) <= OPEN_FILES, "few open files", PATIENCE)
        wait_until(lambda: resident(pid) <= SERVER_MEMORY, f"at most {SERVER_MEMORY >> 20} MiB", PATIENCE)
        wait_until(lambda: of_children() <= CHILD_MEMORY, f"children of at most {CHILD_MEMORY >> 20} MiB", PATIENCE)


@contextmanager
def page_is_asked(server: PageServer, figures: PageFigures) -> Iterator[None]:
    """Ask for the start page all the time, at least once, and assert that the server is not slow to reply.

    As in `hostile_messages.info_is_asked`, the time for which either side waits for a processor is taken off.
    """
    over = threading.Event()

    def ask_on() -> None:
        is_last = False
        while not is_last:
            is_last = over.wait(BETWEEN_PAGES)
            begin, held_up, waited_before = time.monotonic(), delays.seconds, waited(server.pid)
            status = fetch(server.address).status
            seconds = time.monotonic() - begin
            own = seconds - max(delays.seconds - held_up, waited(server.pid) - waited_before)
            figures.pages += 1
            figures.slowest_page = max(figures.slowest_page, seconds)
            figures.slowest_server = max(figures.slowest_server, own)
            assert status == 200, f"expected the start page, got status {status}"
            assert own <= PAGE_SECONDS, f"expected the start page within {PAGE_SECONDS} s, got it after {own:.2f} s"

    with Delays() as delays, beside(ask_on, over):
        yield


def play_honestly(server: PageServer, patience: float = PATIENCE) -> None:
    """Open a new match as a page does, make a move, and see the next position."""
    with visiting(server, f"/play/{server.new_match()}", patience) as visitor:
        board = visitor.wait_for("a board", patience, paths=...)
        (listener,) = [event["listener_id"] for event in board["events"] if event["type"] == "move"]
        click = {"indices": [0], "ply": 0, "role": board["props"]["role"]}
        visitor.send(board["key"], listener, json.dumps(click))
        visitor.wait_for("the next position", patience, ply=1)


@contextmanager
def visiting(server: PageServer, path: str, patience: float = PATIENCE) -> Iterator[Visitor]:
    """Open a page; wait while too many websockets are open, as after a flood."""
    deadline = time.monotonic() + patience
    while (visitor := Visitor(server.address, path, patience)).socket.status != 101:
        visitor.__exit__()
        assert time.monotonic() < deadline, f"expected a websocket, got status {visitor.socket.status}"
        time.sleep(0.1)
    with visitor:
        yield visitor


# ---- the steps of a batch ---------------------------------------------------------------------------------------


class Batch:
    """One batch: it does the steps, one after the other, and looks at the replies.

    Args:
        server: where to
        figures: to be added to
    """

    def __init__(self, server: PageServer, figures: PageFigures) -> None:
        self._server, self._figures = server, figures
        self._held: list[socket.socket] = []

    def send(self, steps: list[Step]) -> None:
        """Do all steps."""
        try:
            for step in steps:
                getattr(self, f"_{step['kind']}")(step)
        finally:
            for connection in self._held:
                connection.close()

    def _filled(self, text: str, client: str = "") -> str:
        host = self._server.address.host
        return text.replace("$HOST", host).replace("$ORIGIN", f"http://{host}").replace("$CLIENT", client)

    def _answer(self, way: str, sent: bytes) -> bytes:
        """Send bytes; return what comes back. The server may end the connection before it has all of them."""
        try:
            return SENDING[way](self._server.address.port, sent, self._held)
        except TimeoutError:
            raise
        except OSError:
            return b""

    def _request(self, step: Step) -> None:
        sent = self._filled(step["sent"]).encode("latin-1", "replace")
        answer = self._answer(step["way"], sent)
        assert_allowed(sent, answer, self._server.address)

    def _handshake(self, step: Step) -> None:
        sent = self._filled(step["sent"]).encode("latin-1", "replace")
        assert_allowed(sent, first_of(self._server.address.port, sent), self._server.address)

    def _upload(self, step: Step) -> None:
        """Send a file to the address of a page that is open."""
        body, fields = form_of(step)
        with visiting(self._server, step["page"]) as visitor:
            (url,) = [element["props"]["url"] for element in visitor.with_props(url=...)]
            lines = [f"POST {url} HTTP/1.1", f"Host: {self._server.address.host}", "Connection: close", *fields, "", ""]
            head, way = "\r\n".join(lines).encode(), "shut" if step["fault"] == "longer" else "whole"
            if step["fault"] == "cut":
                way = "cut"
            answer = self._answer(way, head + body)
            is_form = step["fault"] not in NO_FORMS
            assert_allowed(head, answer, self._server.address, STATUSES if is_form else STATUSES | {500})

    def _messages(self, step: Step) -> None:
        """Send messages on the websocket of a page; open another one each time that the server closes it."""
        waiting = iter(step["sent"])
        message = next(waiting, None)
        while message is not None:
            with visiting(self._server, "/rulesheets") as visitor, suppress(ConnectionError):
                while message is not None:
                    text, message = message, next(waiting, None)
                    visitor.socket.send(self._filled(text, visitor.client_id))
        with visiting(self._server, "/rulesheets") as visitor, suppress(ConnectionError):
            for sent in step["frames"]:
                visitor.socket.send_raw(sent.encode("latin-1"))

    def _flood(self, step: Step) -> None:
        """Open connections, send a share of a handshake on each, and close them all."""
        address = self._server.address
        head = handshake_of(address)
        for _ in range(step["number"]):
            connection = socket.create_connection(("127.0.0.1", address.port), PATIENCE)
            self._held.append(connection)
            with suppress(ConnectionError):
                connection.sendall(head[: int(step["share"] * len(head))])
        while self._held:
            self._held.pop().close()

    def _events(self, step: Step) -> None:
        """Send events of the elements of a page."""
        path = step["page"].replace("$MATCH", f"/play/{self._server.new_match()}")
        with visiting(self._server, path) as visitor, suppress(ConnectionError):
            visitor.wait_for("a complete page", PATIENCE, **{"data-testid": PAGES[step["page"]]})
            for place, args in step["events"]:
                events = [pair for pair in visitor.events() if (path, self._test_id(visitor, pair[0])) not in UNTOUCHED]
                key, event = events[place % len(events)]
                visitor.send(key, event["listener_id"], *args)

    @staticmethod
    def _test_id(visitor: Visitor, key: str) -> str:
        return str(visitor.elements[key].get("props", {}).get("data-testid", ""))

    def _typed(self, step: Step) -> None:
        """Type texts in the editor, and see that the server takes them over, or says why not."""
        with visiting(self._server, f"/rulesheets?sheet={step['sheet']}") as visitor, suppress(ConnectionError):
            editor = visitor.wait_for("an editor", PATIENCE, sheet=step["sheet"])
            (listener,) = [event["listener_id"] for event in editor["events"] if event["type"] == "typed"]
            for number, recipe in enumerate(step["texts"], 1):
                given = {"text": text_of(recipe), "edits": number, "base": 10**9}
                visitor.send(editor["key"], listener, json.dumps(given))
            if step["waits"]:
                self._wait_for_verdict(visitor)

    def _wait_for_verdict(self, visitor: Visitor) -> None:
        deadline = time.monotonic() + VERDICT_SECONDS
        while not has_verdict(visitor):
            assert time.monotonic() < deadline, f"expected a verdict within {VERDICT_SECONDS:g} s"
            visitor.receive()
        self._figures.verdicts += 1


def has_verdict(visitor: Visitor) -> bool:
    """Whether the checks of the text in the editor have ended."""
    (verdict,) = visitor.with_props(**{"data-testid": "verdict"})
    text = verdict.get("text", "")
    return bool(text) and not text.startswith("Checking") and not text.endswith("..")


def handshake_of(address: Address) -> bytes:
    """Return the handshake of a page's own websocket."""
    lines = ["GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    lines += [f"{name}: {value}" for name, value in address.own.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def first_of(port: int, sent: bytes) -> bytes:
    """Send bytes; return the first that comes back, which is a refusal or the begin of a websocket."""
    address = "127.0.0.1", port
    with socket.create_connection(address, REPLY_SECONDS) as connection, suppress(ConnectionError, TimeoutError):
        connection.sendall(sent)
        return connection.recv(65536)
    return b""


# ---- replies ----------------------------------------------------------------------------------------------------


def assert_allowed(sent: bytes, answer: bytes, address: Address, statuses: frozenset[int] = STATUSES) -> None:
    """Assert that a reply is no error of the server, shows no foreign file, and opens no websocket to another page."""
    assert CANARY.encode() not in answer, "expected no file from outside, got one"
    assert b"Traceback (most" not in answer, answer[:3000]
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"))
    if status is None:
        assert not answer.startswith(b"HTTP"), f"expected HTTP, got {answer[:100]!r}"
    elif status[1] == b"101":
        assert is_own(sent, address), f"expected no websocket for another page, got one for {sent[:2000]!r}"
    else:
        assert int(status[1]) in statuses, f"expected a refusal or a page, got {answer[:300]!r} for {sent[:2000]!r}"


def is_own(sent: bytes, address: Address) -> bool:
    """Whether the head of a request has one Host and one Origin, and both are the server's own."""
    hosts, origins = (re.findall(rb"(?im)^%s:[ \t]*(.*?)[ \t]*\r?$" % name, sent) for name in (b"host", b"origin"))
    own = address.own
    return [value.lower() for value in hosts] == [own["Host"].encode()] and origins == [own["Origin"].encode()]


# ---- the fuzzer -------------------------------------------------------------------------------------------------


@contextmanager
def session(code: str = GAMELORE) -> Iterator[Callable[[Any], None]]:
    """One server for many batches. `code`: see `PageServer`."""
    with TemporaryDirectory(prefix="gamelore-pages-") as folder:
        target = PageTarget(Path(folder), code)
        try:
            yield target
        finally:
            target.give_up()


def assert_borne(example: dict[str, Any]) -> None:
    """Send a batch to a server of its own."""
    with session() as check:
        check(example)
