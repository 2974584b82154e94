"""Seats of a duel: players in processes of their own, pinned to processor cores, with their CPU time.

A *contender* is a player of a duel. Its text is

    uct:simulations=100           a player of gamelore/catalogue.py, from this source tree
    uct:seconds=0.02@/old/src     the same from another source tree, the folder that contains the folder `gamelore`
    ggp:java -jar p.jar {port}    another program that plays over the GGP protocol, as a shell command

In the command, {port} stands for a free port, at which the program must listen on 127.0.0.1, and {dir} for a folder.
The folder is new for each match: a copy of the contender's data, or empty. The command is run in it. Its processes are
killed at the end of the match, and also if the duel itself is killed. Its output is kept if its match was faulty. The
version of a program is that of the source tree if the command begins with `gamelore`; otherwise it must be told.

`DuelSeat` has the methods of `net.host.Seat`, so that the host leads matches of duels like all others. A gamelore
player keeps its process over many matches of a game (`ProcessSeat`), so that it compiles the game once. Another program
is started for each match, and killed at its end (`ProgramSeat`).

CPU time is that of a process and its descendants: the clock of every live process, which counts nanoseconds and
includes threads that have ended, and the children that these processes have waited for, in ticks of 10 ms. A process
that outlives its parent and is no child of a process of the seat any more is not counted. Linux only.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from ..errors import GameloreError, ProtocolError
from ..game.game import EngineName
from ..gdl.limits import Limits
from ..net.host import Moves, RemoteSeat
from ..net.http import Client
from ..net.messages import ABORTED, DONE, READY, Start

PROGRAM = Path(__file__).with_name("seat_process.py")
TREE = Path(__file__).parents[2]  # the folder of the package
GGP = "ggp:"
LOAD_SECONDS = 600.0  # maximum time to load the rules, or until a program answers INFO
INFO_SECONDS = 2.0
AGAIN = 0.1  # seconds between two attempts to reach a program
REPLY_LIMIT = 1 << 20  # maximum length of a reply of seat_process.py
# Before a shell command: a process that waits for the end of its input, which comes when the duel ends in any way, and
# then kills the process group of the command.
WATCHED = "exec 3<&0 </dev/null; (read _ <&3; kill -9 0) & exec 3<&-; "
# A shell command: assignments, and the program
COMMAND = re.compile(r"(?:exec\s+)?((?:(?!PATH=)\w+=[^\s;&|`()]*\s+)*)(\S+)")
ASK_PLACE = "from importlib.util import find_spec; print(find_spec('gamelore').origin)"
LOG = "log"  # file of a program's output, beside its data
LOG_TAIL = 2000  # characters of a program's output that an error message shows

# CPU time


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants; 0 if there is no such process."""
    return sum(map(_own_seconds, descendants(pid)))


def descendants(pid: int) -> list[int]:
    """Return a process and all live processes below it."""
    pids = [pid]
    for parent in pids:
        pids += [child for task in _tasks(parent) for child in _children(parent, task)]
    return pids


def _tasks(pid: int) -> list[int]:
    """Return the threads of a process."""
    try:
        return list(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def _children(pid: int, task: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split()))
    except OSError:  # the thread has ended
        return []


def _own_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # the clock of another process has the number that clock_getcpuclockid(3) gives it
        return time.clock_gettime((~pid << 3) | 2) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    except OSError:  # the process has ended
        return 0.0


def check_platform() -> None:
    """Raise GameloreError if this system cannot pin processes or count the CPU time of their descendants."""
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists() or not hasattr(os, "sched_setaffinity"):
        raise GameloreError(
            "expected Linux with the files /proc/PID/task/TID/children, got another system; run duels on Linux"
        )


@contextmanager
def pinned(cores: frozenset[int]) -> Iterator[None]:
    """Let the processes that this thread starts in the block run on these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pin(pid: int, cores: frozenset[int]) -> None:
    """Move a process and its descendants, with all their threads, to these cores."""
    for process in descendants(pid):
        for task in _tasks(process):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(task, cores)


# contenders


@dataclass(frozen=True, slots=True)
class Contender:
    """A player of a duel; see the head of this module.

    text     the text that describes the contender
    spec     the player's spec, or the shell command
    tree     the source tree of a gamelore player, or of a program that is `gamelore`; None for another program
    version  the commit of the tree, "+" if files differ from it, and a hash of its Python files; of another program,
             what its user says
    data     folder with the data of another program, which is copied for each match
    """

    text: str
    spec: str
    tree: Path | None = None
    version: str = ""
    data: Path | None = None

    @classmethod
    def parse(cls, text: str, data: Path | None = None, version: str = "") -> Contender:
        """Read a contender; `version` is that of a program.

        Raise GameloreError for a folder that is no source tree, and for a version if the program has a source tree.
        """
        if is_program(text):
            described = text if data is None else f"{text} with {data}"
            program = text.removeprefix(GGP).strip()
            own_tree = tree_of_program(program)
            if own_tree is not None and version:
                raise GameloreError(
                    f"expected a version of a program that is not gamelore, got {version!r} of {text}, whose version "
                    f"is that of {own_tree}; leave it out"
                )
            return cls(described, program, own_tree, version_of(own_tree) if own_tree else version, data)
        spec, at, folder = text.rpartition("@")
        spec, tree = (spec, Path(folder)) if at else (text, TREE)
        if not (tree / "gamelore" / "__init__.py").is_file():
            raise GameloreError(
                f"expected PLAYER@FOLDER, where FOLDER contains the folder gamelore, got {text!r}; name the folder "
                "src of a checkout"
            )
        return cls(text, spec, tree.resolve(), version_of(tree))

    @property
    def code(self) -> str:
        """What tells the code from other code: the hash of the tree's Python files, or the version of a program."""
        return self.version if self.tree is None else self.version.rpartition(" ")[2]

    @property
    def is_outside(self) -> bool:
        """Whether the contender is another program, which plays over the GGP protocol."""
        return is_program(self.text)


def is_program(text: str) -> bool:
    """Return whether the text of a contender names another program."""
    return text.startswith(GGP)


def tree_of_program(command: str) -> Path | None:
    """Return the source tree of the script `gamelore` that a shell command runs; None for any other command.

    The interpreter of the script is asked for it, with the assignments of the command, such as PYTHONPATH=/old/src.
    """
    begin = COMMAND.match(command)
    path = shutil.which(os.path.expandvars(os.path.expanduser(begin[2]))) if begin else None
    if begin is None or path is None or Path(path).name != "gamelore":
        return None
    with open(path, "rb") as script:
        mark, interpreter = script.read(2), os.fsdecode(script.readline().strip())
    if mark != b"#!":
        return None
    ask = f"{begin[1]}{interpreter} -P -c {shlex.quote(ASK_PLACE)}"
    told = subprocess.run(["/bin/sh", "-c", ask], cwd="/", capture_output=True, text=True).stdout.strip()
    return Path(told).parents[1] if told.endswith("/gamelore/__init__.py") and Path(told).is_file() else None


def version_of(tree: Path) -> str:
    """Return the commit of a source tree, "+" if files differ from it, and a hash of the tree's Python files."""
    from hashlib import sha256

    digest = sha256()
    for path in sorted((tree / "gamelore").rglob("*.py")):
        digest.update(f"{path.relative_to(tree).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    command = ["git", "-C", str(tree), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "no commit"
    return f"{commit} {digest.hexdigest()[:12]}"


# seats


class DuelSeat(ABC):
    """A contender in one role of one match after the other; see `net.host.Seat`.

    start_cpu     CPU seconds until the first request for a move; a player may reply to START at once and use the
                  startclock afterwards
    opening_cpu   CPU seconds from then until the last reply that the host overruled; 0 without such replies
    play_cpu      CPU seconds from then until the end of the match
    cpu, seconds  for each ply that was not overruled: CPU seconds since the previous reply, and wall-clock seconds
                  until the reply, or until the host gave up waiting, also for the seat's turn
    log           file of the process's output, if it was kept
    """

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.process: subprocess.Popen[bytes] | None = None
        self.turn = asyncio.Lock()  # seats that share a core share the lock, and think one after the other
        self._before = 0.0
        self._reset(None)

    def _reset(self, beginning: Beginning | None) -> None:
        self.start_cpu = self.opening_cpu = self.play_cpu = 0.0
        self.cpu: list[float] = []
        self.seconds: list[float] = []
        self.log: Path | None = None
        self._is_starting = True
        self._num_overruled = beginning.num_overruled if beginning else 0  # of the replies to come

    @property
    def clock(self) -> float:
        """CPU seconds of the seat's processes since they were started."""
        return cpu_seconds(self.process.pid) if self.process else 0.0

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `net.host.Seat.start`."""
        async with self.turn:
            return await self._start(start, number, seconds)

    def _check_code(self) -> None:
        """Raise GameloreError if the source tree has changed, since all matches of a duel must have the same player."""
        tree = self.contender.tree
        if tree is not None and version_of(tree).rpartition(" ")[2] != self.contender.code:
            raise GameloreError(
                f"expected the Python files in {tree} as they were when the duel began, got changed files; play in a "
                "worktree that nobody edits"
            )

    def _end_start(self) -> None:
        if self._is_starting:
            self.start_cpu, self._is_starting = self._split(), False

    def _split(self) -> float:
        """Return the CPU seconds since the last split."""
        before, self._before = self._before, self.clock
        self._last = self._before
        return self._before - before

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """See `net.host.Seat.play`."""
        begin = time.monotonic()
        try:
            async with self.turn:
                self._end_start()
                begin = time.monotonic()
                return await self._play(match, moves, seconds)
        finally:  # also if the host has waited long enough, perhaps before this seat had its turn
            self._end_start()
            if self._num_overruled:
                self._num_overruled -= 1
                self.opening_cpu += self._split()
            else:
                now = self.clock
                self.seconds.append(time.monotonic() - begin)
                self.cpu.append(now - self._last)
                self._last = now

    def is_over(self, log: Path | None = None) -> None:
        """Read the clock at the end of a match, before STOP. `log`: a file for the output so far and until STOP."""
        self._end_start()
        self.play_cpu = self.clock - self._before
        self.log = log

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """See `net.host.Seat.stop`."""
        return await self._stop(match, moves, seconds)

    async def abort(self, match: str, seconds: float) -> str:
        """See `net.host.Seat.abort`. The process is killed."""
        self.close()
        return ABORTED

    def close(self) -> None:
        """Kill the processes of the seat."""
        if self.process is not None:
            for pid in descendants(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process = None

    @abstractmethod
    async def open(self, beginning: Beginning, cores: frozenset[int]) -> None:
        """Prepare a match that begins like this, in processes on these cores; the clocks do not run yet."""

    @abstractmethod
    async def _start(self, start: Start, number: int, seconds: float) -> str: ...

    @abstractmethod
    async def _play(self, match: str, moves: Moves, seconds: float) -> str: ...

    @abstractmethod
    async def _stop(self, match: str, moves: Moves, seconds: float) -> str: ...


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a seat is told about a match before it begins.

    facts          facts of the first position
    rules          rules that begin with this position, for other programs
    key            key of the random stream of the seat's role
    num_overruled  number of plies in which the host makes a move of its own in place of the reply
    """

    role: int
    facts: tuple[str, ...]
    rules: str
    key: int
    max_plies: int
    num_overruled: int = 0


class ProcessSeat(DuelSeat):
    """A gamelore player in a process of its own, for matches of one game.

    limits      limits within which the process loads the game; a source tree without such limits has its own
    engine      engine of the game: "auto", "native" or "reasoner"
    think       seconds for a move; None for no limit
    start_think seconds for START. The player then thinks in START, and while others do; None if it does not, and
                prepares for a match before START, without a clock
    """

    def __init__(
        self,
        contender: Contender,
        rules: str,
        seed: int,
        think: float | None,
        start_think: float | None = None,
        limits: Limits | None = None,
        engine: EngineName = "auto",
    ) -> None:
        super().__init__(contender)
        self._rules, self._seed, self._think, self._start_think = rules, seed, think, start_think
        self._loading = {"engine": engine, "limits": asdict(limits or Limits())}
        self._writer: asyncio.StreamWriter | None = None
        self._requests = 0
        self._matches = 0

    async def open(self, beginning: Beginning, cores: frozenset[int]) -> None:
        """See `DuelSeat.open`. Before the first match, start the process and load the rules.

        A player without a clock for START begins the match here, and may teach itself as long as it wants to. Seats
        that share a core do so one after the other.
        """
        self._reset(beginning)
        self._beginning, self._before = beginning, self.clock
        if self.process is None:
            await self._launch(cores)
        else:
            pin(self.process.pid, cores)
        if self._start_think is None:
            async with self.turn:
                await self._begin()

    async def _launch(self, cores: frozenset[int]) -> None:
        """Start the process on these cores, and load the rules."""
        self._check_code()
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - open as long as the process
        ours, theirs = socket.socketpair()
        with theirs, pinned(cores):
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(self.contender.tree)},
            )
        self._replies, self._writer = await asyncio.open_connection(sock=ours, limit=REPLY_LIMIT)
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                given = {"rules": self._rules, "player": self.contender.spec, "seed": self._seed}
                await self._ask("load", **given, **self._loading)
        except TimeoutError:
            raise self._failed(f"none within {LOAD_SECONDS:g} s after it got the rules") from None

    def close(self) -> None:
        """See `DuelSeat.close`."""
        if self.process is not None:
            self._log.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().close()

    async def _begin(self) -> None:
        told = self._beginning
        self._matches += 1
        arguments = {"role": told.role, "facts": told.facts, "key": told.key, "max_plies": told.max_plies}
        await self._ask("start", match=self._matches - 1, seconds=self._start_think, **arguments)

    async def _start(self, start: Start, number: int, seconds: float) -> str:
        if self._start_think is not None:
            await self._begin()
        return READY

    async def _play(self, match: str, moves: Moves, seconds: float) -> str:
        return str((await self._ask("play", moves=moves, seconds=self._think))["move"])

    async def _stop(self, match: str, moves: Moves, seconds: float) -> str:
        try:
            await self._ask("stop", moves=moves)
        except asyncio.CancelledError:  # by the host's clock: it is still busy with a move that was late
            self.close()
            raise
        return DONE

    def is_over(self, log: Path | None = None) -> None:
        """See `DuelSeat.is_over`. The log contains the earlier matches of the process, too."""
        super().is_over(log)
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            # with an offset of its own, because the process writes at the offset of the file
            log.write_bytes(os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0))

    async def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Return the reply to a request; skip replies to earlier requests, which came too late."""
        assert self._writer is not None  # `open` was called
        self._requests += 1
        self._writer.write(f"{json.dumps({'do': do, 'id': self._requests, **arguments})}\n".encode())
        reply: dict[str, Any] = {"id": None}
        while reply["id"] != self._requests:
            try:
                line = await self._replies.readline()
            except OSError:  # the process was killed
                line = b""
            if not line:
                raise self._failed("the end of its process")
            reply = json.loads(line)
        if "error" in reply:
            raise self._failed(reply["error"])
        return reply

    def _failed(self, why: str) -> GameloreError:
        return GameloreError(
            f"expected a reply from {self.contender.text}, got {why}; correct the player, then run the command again, "
            f"it continues{_tail(self._log)}"
        )


class ProgramSeat(DuelSeat):
    """Another program, which plays one match over the GGP protocol."""

    def __init__(self, contender: Contender, client: Client) -> None:
        super().__init__(contender)
        self._client = client
        self._folder: TemporaryDirectory[str] | None = None

    async def open(self, beginning: Beginning, cores: frozenset[int]) -> None:
        """See `DuelSeat.open`. Start the program anew with a copy of its data, and wait until it answers INFO."""
        self._check_code()
        self.close()
        self._reset(beginning)
        self._beginning, self._before = beginning, 0.0
        self._folder = TemporaryDirectory(prefix="gamelore-duel-")
        folder = Path(self._folder.name) / "data"
        if self.contender.data is None:
            folder.mkdir()
        else:
            await asyncio.to_thread(shutil.copytree, self.contender.data, folder)
        port = _free_port()
        command = self.contender.spec.replace("{port}", str(port)).replace("{dir}", str(folder))
        self._log: IO[bytes] = (folder.parent / LOG).open("w+b")
        with pinned(cores):
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", WATCHED + command],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        self._remote = RemoteSeat(f"http://127.0.0.1:{port}", self._client)
        await self._is_ready(self.process)

    async def _is_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the program answers INFO; any answer will do."""
        deadline = time.monotonic() + LOAD_SECONDS
        while True:
            try:
                await self._remote.info(INFO_SECONDS)
                return
            except ProtocolError:
                return
            except OSError:  # no connection, or too late
                if process.poll() is not None or time.monotonic() > deadline:
                    why = "no answer" if process.poll() is None else "its end"
                    raise GameloreError(
                        f"expected {self.contender.text} to answer INFO, got {why}; correct the command"
                        f"{_tail(self._log)}"
                    ) from None
            await asyncio.sleep(AGAIN)

    def close(self) -> None:
        """See `DuelSeat.close`. The folder is removed, and its log is kept if `is_over` has said so."""
        super().close()
        if self._folder is not None:
            self._log.close()
            if self.log is not None:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(Path(self._folder.name) / LOG, self.log)
            self._folder.cleanup()
            self._folder = None

    async def _start(self, start: Start, number: int, seconds: float) -> str:
        return await self._remote.start(replace(start, rules=self._beginning.rules), number, seconds)

    async def _play(self, match: str, moves: Moves, seconds: float) -> str:
        return await self._remote.play(match, moves, seconds)

    async def _stop(self, match: str, moves: Moves, seconds: float) -> str:
        try:
            return await self._remote.stop(match, moves, seconds)
        finally:
            self.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _tail(log: IO[bytes]) -> str:
    """Return the last part of a program's output for an error message."""
    log.seek(0)
    text = log.read().decode("utf-8", "replace").strip()
    return f":\n{text[-LOG_TAIL:]}" if text else ""
