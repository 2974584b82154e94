"""Hostile sequences of messages to `gamelore serve`, and what must hold while they come and after them."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from commands import run, stored_matches
from gamelore.errors import ProtocolError
from gamelore.net import messages
from gamelore.net.http import WebLimits
from gamelore.net.pool import IDLE
from processes import Delays, descendants, num_connections, num_open_files, resident, wait_until, waited
from reducing import reduced
from scripted_manager import lead, start_of
from wire import request, rules, say, served

AT_ONCE = 16  # matches of the server: more than a sequence starts, so that the innocent ones are never `busy`
MEMORY = 1500 << 20  # bytes for each worker
SERVER_MEMORY = 400 << 20  # bytes, resident, of the process that listens; of this about 60 MB are its imports
IDLE_PROCESSES = 2 * (IDLE + 3) + 1  # of both pools: idle ones, the spare one, one that starts or ends; the fork server
OPEN_FILES = 40  # of the server: sockets, pipes of the event loop, and three pipes of each process
INFO_SECONDS = 1.0  # of the server itself, see `info_is_asked`
BETWEEN_INFOS = 0.1  # seconds
BETWEEN_MOVES = 0.02  # seconds
PATIENCE = 90.0  # seconds; only what hangs takes so long
STATUSES = frozenset({200, 400, 403, 405, 408, 411, 413, 431, 503})
"""Statuses of HTTP that http.py sends; 500 is an error of the server."""
GAME = "tictactoe"  # the game of the innocent matches


@dataclass
class Figures:
    """What came of all sequences so far."""

    messages: int = 0
    infos: int = 0
    slowest_info: float = 0.0
    slowest_server: float = 0.0
    innocent_matches: int = 0
    most_processes: int = 0
    most_files: int = 0
    most_memory: int = 0

    def __str__(self) -> str:
        return (
            f"{self.messages} hostile messages, {self.infos} INFOs, the slowest after {self.slowest_info:.3f} s "
            f"({self.slowest_server:.3f} s of the server), "
            f"{self.innocent_matches} innocent matches, at most {self.most_processes} child processes, "
            f"{self.most_files} open files, {self.most_memory >> 20} MiB"
        )


class Target:
    """A player server that sequences of messages are sent to. It is started when it is needed, and after a failure."""

    def __init__(self, folder: Path) -> None:
        self.figures = Figures()
        self._folder = folder
        self._stack = ExitStack()
        self._port = self._pid = 0
        self._finished: list[str] = []  # innocent matches
        self._num_started = 0

    def __call__(self, example: dict[str, Any]) -> None:
        """Send a sequence. Raise AssertionError if the server does not bear it."""
        try:
            self._open()
            with self._innocent_matches(example["newcomer"]), info_is_asked(self._port, self._pid, self.figures):
                self._send_all(example["steps"])
            self._abort_all(example["steps"])
            self._assert_small()
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Stop the server, if it runs, without any check."""
        self._pid = 0
        self._stack.close()

    def close(self) -> None:
        """Stop the server. Assert that nothing is left of it, and that each innocent match is in its store once."""
        if not self._pid:
            return
        self._assert_free()
        started = descendants(self._pid)
        self.give_up()
        wait_until(lambda: not any(process.is_alive for process in started), "no process to be left", PATIENCE)
        self._assert_no_bug()
        stored = stored_matches(self._store)
        innocent = {match: stored[match] for match in stored if match.startswith("innocent.")}
        assert innocent == dict.fromkeys(self._finished, 1)
        run("knowledge", "check", "--knowledge", self._store)

    @property
    def _store(self) -> Path:
        return self._folder / f"knowledge{self._num_started}.db"

    @property
    def _log(self) -> Path:
        return self._folder / f"log{self._num_started}"

    def _open(self) -> None:
        if self._pid:
            return
        self._num_started += 1
        self._finished = []
        limits = ("--memory", f"{MEMORY >> 20}M", "--prepare-seconds", 2, "--matches-at-once", AT_ONCE, "--patience", 2)
        log = self._stack.enter_context(self._log.open("w"))
        serving = served("--player", "baseline", "--knowledge", self._store, *limits, log=log)
        process, self._port = self._stack.enter_context(serving)
        self._pid = process.pid

    def _assert_free(self) -> None:
        """Assert that no match holds a place: so many new ones can begin as the server takes."""
        role = next(iter(start_of(GAME).legal))
        ids = [f"free.{number}" for number in range(AT_ONCE)]
        for match in ids:
            _expect("ready", say(self._port, f"( START {match} {role} ( {rules(GAME)} ) 60 20 )"))
        for match in ids:
            _expect("aborted", say(self._port, f"( ABORT {match} )"))

    def _assert_no_bug(self) -> None:
        log = self._log.read_text()
        begin = log.find("Traceback")
        assert begin < 0, f"expected no traceback in the log, got {log[max(0, begin - 300) : begin + 3000]}"

    # ---- while messages come

    @contextmanager
    def _innocent_matches(self, newcomer: str) -> Iterator[None]:
        """Play matches beside the sequence, at least one; the last one ends after the sequence.

        The first one has this fact in addition to the rules.
        """
        over = threading.Event()

        def play_on() -> None:
            facts = iter([newcomer])
            while True:
                is_last = over.is_set()
                match = f"innocent.{self.figures.innocent_matches}"
                played = lead(self._say_slowly, GAME, match, Random(match), more=next(facts, ""))
                assert not played.errors, f"expected legal moves, got {played.errors}"
                assert played.is_finished, "expected an answer to STOP"
                self.figures.innocent_matches += 1
                self._finished.append(match)
                if is_last:
                    return

        with beside(play_on, over):
            yield

    def _say_slowly(self, message: str) -> str:
        time.sleep(BETWEEN_MOVES)
        return say(self._port, message)

    def _send_all(self, steps: list[dict[str, Any]]) -> None:
        """Send the messages of a sequence, and look at the replies."""
        held: list[socket.socket] = []
        with ThreadPoolExecutor(max(1, len(steps))) as senders:
            answers: list[Future[bytes]] = []
            for step in steps:
                sent = step["sent"].encode("latin-1")
                answers.append(senders.submit(SENDING[step["way"]], self._port, sent, held))
                if step["waits"]:
                    answers[-1].exception()
                self.figures.messages += 1
            received = [answer.result() for answer in answers]
        for connection in held:
            connection.close()
        for step, answer in zip(steps, received, strict=True):
            assert_known(step["sent"].encode("latin-1"), step["way"], answer)

    def _abort_all(self, steps: list[dict[str, Any]]) -> None:
        """Abort the matches of a sequence, as a manager does before it goes away.

        A message may still be on its way, if its sender has not waited for the reply.
        """
        wait_until(lambda: not num_connections(self._port), "no connection to be left", PATIENCE)
        for step in steps:
            match = _started(step["sent"].encode("latin-1").decode("utf-8", "replace"))
            if match:
                assert say(self._port, f"( ABORT {match} )") in ("aborted", "busy")

    def _assert_small(self) -> None:
        """Wait until few processes and connections are left of a sequence."""
        assert os.path.exists(f"/proc/{self._pid}"), "expected the server to live"
        figures = self.figures
        figures.most_processes = max(figures.most_processes, len(descendants(self._pid)))
        figures.most_files = max(figures.most_files, num_open_files(self._pid))
        figures.most_memory = max(figures.most_memory, resident(self._pid))
        wait_until(lambda: len(descendants(self._pid)) <= IDLE_PROCESSES, "few child processes", PATIENCE)
        wait_until(lambda: num_open_files(self._pid) <= OPEN_FILES + 3 * IDLE_PROCESSES, "few open files", PATIENCE)
        assert resident(self._pid) <= SERVER_MEMORY
        self._assert_no_bug()


@contextmanager
def info_is_asked(port: int, pid: int, figures: Figures) -> Iterator[None]:
    """Send INFO all the time, and assert that the server, which has this pid, is not slow to reply.

    What holds up the server is not its fault as long as it waits for a processor, and the same holds for this process.
    On a busy machine both wait at the same time, so only the longer time is taken off.
    """
    over = threading.Event()

    def ask_on() -> None:
        while not over.wait(BETWEEN_INFOS):
            begin, held_up, waited_before = time.monotonic(), delays.seconds, waited(pid)
            assert messages.parse_status(say(port, "( INFO )")).name == "gamelore"
            seconds = time.monotonic() - begin
            own = seconds - max(delays.seconds - held_up, waited(pid) - waited_before)
            figures.infos += 1
            figures.slowest_info = max(figures.slowest_info, seconds)
            figures.slowest_server = max(figures.slowest_server, own)
            assert own <= INFO_SECONDS, f"expected a reply to INFO within {INFO_SECONDS} s, got one after {own:.2f} s"

    with Delays() as delays, beside(ask_on, over):
        yield


@contextmanager
def beside(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Do work in another thread during the `with` block, and raise what it raises."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work)
        try:
            yield
        finally:
            over.set()
        done.result()


def _expect(reply: str, got: str) -> None:
    assert got == reply, f"expected {reply}, got {got}"


# ---- ways of sending --------------------------------------------------------------------------------------------


def _whole(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    return _sent_in(port, [sent])


def _pieces(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    size = max(1, len(sent) // 4)
    return _sent_in(port, [sent[begin : begin + size] for begin in range(0, len(sent), size)])


def _shut(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    return _sent_in(port, [sent], shuts=True)


def _sent_in(port: int, pieces: list[bytes], shuts: bool = False) -> bytes:
    """Send a request in pieces; return all that comes back. A connection that is reset gives what came before."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.01 if len(pieces) > 1 else 0)
            if shuts:
                connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                received += data
        except (ConnectionError, BrokenPipeError):
            pass
    return received


def _cut(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(sent[: len(sent) // 2])
    return b""


def _unread(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(sent)
    return b""


def _held(port: int, sent: bytes, held: list[socket.socket]) -> bytes:
    held.append(socket.create_connection(("127.0.0.1", port), PATIENCE))
    held[-1].sendall(sent[: len(sent) // 2])
    return b""


SENDING = {"whole": _whole, "pieces": _pieces, "cut": _cut, "held": _held, "unread": _unread, "shut": _shut}


# ---- replies ----------------------------------------------------------------------------------------------------


def assert_known(sent: bytes, way: str, answer: bytes) -> None:
    """Assert that an answer is one that the protocol has for this message."""
    if way in ("cut", "held", "unread"):
        return
    head, _, body = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
    text = sent.partition(b"\r\n\r\n")[2]
    is_proper = sent == request(text) and len(text) <= WebLimits.body
    if status is None:
        assert not answer, f"expected HTTP, got {answer[:100]!r}"
        assert not is_proper, "expected an answer, got a closed connection"
        return
    assert int(status[1]) in STATUSES, answer[:300]
    assert len(body) == int(re.findall(rb"Content-length: (\d+)", head)[0])
    if is_proper:
        _assert_reply(text.decode("utf-8", "replace"), int(status[1]), body.decode("ascii"))


def _assert_reply(text: str, status: int, reply: str) -> None:
    """Assert that a reply belongs to the kind of the message. Each text is a message or refused with status 400."""
    try:
        message = messages.parse(text)
    except ProtocolError:
        assert status == 400, f"expected a refusal, got {status} {reply}"
        return
    assert status == 200, f"expected a reply, got {status} {reply}"
    match message:
        case messages.Info():
            assert messages.parse_status(reply).status in ("available", "busy"), reply
        case messages.Start() | messages.Preview():
            assert reply in ("ready", "busy", "nil"), reply
        case messages.Play():
            assert messages.term(reply) == reply
        case messages.Stop():
            assert reply in ("done", "busy", "nil"), reply
        case messages.Abort():
            assert reply in ("aborted", "busy"), reply


def _started(request: str) -> str:
    """Return the id of the match that a request starts; empty if it starts none."""
    try:
        message = messages.parse(request.partition("\r\n\r\n")[2] or request.partition("\n\n")[2] or request)
    except ProtocolError:
        return ""
    return message.match if isinstance(message, messages.Start) else ""


# ---- the fuzzer -------------------------------------------------------------------------------------------------


@contextmanager
def session() -> Iterator[Callable[[Any], None]]:
    """One server for many sequences; at the end, it is stopped and its store is checked."""
    with TemporaryDirectory() as folder:
        target = Target(Path(folder))
        try:
            yield target
            target.close()
        finally:
            target.give_up()


def assert_borne(example: dict[str, Any]) -> None:
    """Send a sequence to a server of its own."""
    with session() as check:
        check(example)


def fewer_steps(example: dict[str, Any], fails: Callable[[Any], bool]) -> dict[str, Any]:
    """Leave out all steps that are not needed."""
    return {**example, "steps": list(reduced(example["steps"], lambda steps: fails({**example, "steps": list(steps)})))}
