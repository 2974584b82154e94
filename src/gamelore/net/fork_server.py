"""The fork server: a process that imports the modules of child processes once, and forks for each new child.

The import of all players, with their machine code, takes two seconds of processor time and 200 MB. A fork takes some
milliseconds, and shares this memory with the other children. The server starts with the first child, and ends with the
process that asks it.

Both talk over a socket. A request is a datagram with the name of a module and five file descriptors: standard input,
output and error of the child, its working directory, and the end of a pipe for its status. The child calls `main` of
the module. The status is lines: `pid` with the process id, then `code` with the exit code as in `subprocess.Popen`; or
`error` with the reason why there is no child.

The server has one thread and never runs a kernel of numba, so that the libraries survive a fork. On other systems than
Linux they do not. There, each child is a new Python.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import TypeAlias

from .requests import end_with_the_parent, set_process_name

MAX_REQUEST = 1 << 20  # bytes, more than a socket sends at once, so that no request is cut off
NUM_FILES = 5
INPUT, OUTPUT, STANDARD_ERROR, STATUS, FOLDER = range(NUM_FILES)  # the first three are file descriptors of the child
PLAYER = "gamelore.memory.remembering"  # the module of the default player; others import it only when they need it
READ_AT_IMPORT = ("PYTHON", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "LD_")  # variables that modules read before the fork
END_SECONDS = 5.0  # time limit for the server to end by itself

MakeProtocol: TypeAlias = Callable[[], asyncio.SubprocessProtocol]


async def start_child(make_protocol: MakeProtocol, module: str) -> None:
    """Start a child process in its own session, so that Ctrl-C does not reach it.

    The child has the present working directory and environment. Its umask, limits, priority and processors are those of
    this process when the first child started.

    Args:
        make_protocol: returns the protocol of the child, as for `loop.subprocess_exec`
        module: name of a module with a function `main`, which the child calls

    Raises:
        ConnectionResetError: the fork server or the child was killed
        OSError: the system starts no process
    """
    if sys.platform == "linux" and _client.can_fork():
        await _Child(make_protocol()).start(module)
    else:
        command = (sys.executable, "-P", "-m", module)
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(make_protocol, *command, stderr=None, start_new_session=True)


def kill_group(child: asyncio.SubprocessTransport) -> None:
    """Kill a child process with all processes of its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.get_pid(), signal.SIGKILL)


class _Client:
    """The side that asks: the fork server of this process, from the first request on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0
        self._environ: dict[str, str] = {}

    def can_fork(self) -> bool:
        """Return whether a fork of the server can take over the present environment of this process."""
        return not self._is_started() or not any(name.startswith(READ_AT_IMPORT) for name in self._changes())

    def request(self, module: str, files: list[int]) -> None:
        """Ask for a child. Start the server if there is none, or if it was killed. Raise OSError if this fails."""
        with self._lock:
            if not self._is_started():
                self._start()
            try:
                self._send(module, files)
            except ConnectionError:
                self.end()
                self._start()
                self._send(module, files)

    def end(self) -> None:
        """End the server, and with it its children."""
        if not self._is_started():
            return
        assert self._socket is not None
        assert self._process is not None
        self._owner = 0
        self._socket.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:  # it imports a module
            self._process.kill()
            self._process.wait()

    def _is_started(self) -> bool:
        return self._owner == os.getpid()  # a fork of this process has no server

    def _start(self) -> None:
        command, environ = (sys.executable, "-P", "-m", f"{__package__}.fork_server"), dict(os.environ)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True, env=environ
            )
        self._socket, self._environ, self._owner = ours, environ, os.getpid()
        atexit.unregister(self.end)
        atexit.register(self.end)

    def _send(self, module: str, files: list[int]) -> None:
        assert self._socket is not None
        request = {"module": module, "changes": self._changes()}
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)

    def _changes(self) -> dict[str, str | None]:
        """Return the variables of the environment that have changed since the start; None for a deleted one."""
        before, now = self._environ, dict(os.environ)
        return {name: now.get(name) for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


_client = _Client()


class _Child(asyncio.SubprocessTransport):
    """A child of the fork server.

    Its protocol is told of it as asyncio tells protocols of its own child processes, but for `pipe_connection_lost`.
    `close` closes the pipes and does not kill: every child ends when its input does.
    """

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pid = 0
        self._code: int | None = None
        self._pipes: dict[int, asyncio.ReadTransport | asyncio.WriteTransport] = {}
        self._num_lost = 0
        self._status = b""

    async def start(self, module: str) -> None:
        """Start the child; see `start_child`."""
        try:
            with ExitStack() as theirs:
                await self._request(module, theirs)
            await self._started
        except BaseException:  # if a child starts nevertheless, it ends, because its input is closed
            self.close()
            raise

    async def _request(self, module: str, theirs: ExitStack) -> None:
        """Ask the server for the child. Closing `theirs` closes the files of the child in this process."""
        files = {STANDARD_ERROR: STANDARD_ERROR, FOLDER: os.open(".", os.O_PATH)}
        theirs.callback(os.close, files[FOLDER])
        loop = asyncio.get_running_loop()
        for number in (INPUT, OUTPUT, STATUS):
            reads, writes = os.pipe()
            files[number], ours = (reads, writes) if number == INPUT else (writes, reads)
            theirs.callback(os.close, files[number])
            connect = loop.connect_write_pipe if number == INPUT else loop.connect_read_pipe
            pipe = os.fdopen(ours, "wb" if number == INPUT else "rb", 0)
            try:
                self._pipes[number], _ = await connect(partial(_Pipe, self, number), pipe)
            except BaseException:
                pipe.close()
                raise
        _client.request(module, [files[number] for number in range(NUM_FILES)])

    # of asyncio.SubprocessTransport

    def get_pid(self) -> int:
        """Return the process id."""
        return self._pid

    def get_returncode(self) -> int | None:
        """Return the exit code; None while the child runs."""
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Return the pipe to standard input (0) or from standard output (1), which may be closed."""
        return self._pipes.get(fd)

    def send_signal(self, signal: int) -> None:
        """Send a signal, if the child still runs."""
        if self._pid and self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close all pipes."""
        self._started.cancel()
        for pipe in self._pipes.values():
            pipe.close()

    # for the pipes

    def received(self, number: int, data: bytes) -> None:
        """Take the data that came from a pipe."""
        if number == OUTPUT:
            self._protocol.pipe_data_received(number, data)
            return
        *lines, self._status = (self._status + data).split(b"\n")
        for line in lines:
            kind, _, value = line.decode().partition(" ")
            if kind == "pid":
                self._pid = int(value)
                self._protocol.connection_made(self)
                self._set_started(None)
            elif kind == "code":
                self._exited(int(value))
            else:
                self._set_started(OSError(value))

    def lost(self, number: int) -> None:
        """Note that a pipe is closed."""
        if number == STATUS:
            self._set_started(ConnectionResetError("the fork server or the child has ended"))
            self._exited(-signal.SIGKILL)
        self._num_lost += 1
        if self._num_lost == len(self._pipes) and self._pid:
            self._protocol.connection_lost(None)

    def _set_started(self, error: OSError | None) -> None:
        if not self._started.done():
            if error is None:
                self._started.set_result(None)
            else:
                self._started.set_exception(error)

    def _exited(self, code: int) -> None:
        if self._pid and self._code is None:
            self._code = code
            self._protocol.process_exited()


class _Pipe(asyncio.Protocol):
    """A pipe of a child."""

    def __init__(self, child: _Child, number: int) -> None:
        self._child, self._number = child, number

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._child.received(self._number, data)

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._child.lost(self._number)


class _Server:
    """The fork server itself.

    requests: the socket from which requests come.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._status: dict[int, int] = {}  # file descriptor for the status of each child, by its process id
        self._ended, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, Python writes nothing to the pipe
        signal.set_wakeup_fd(wakes)
        self._own = [self._ended, wakes]

    def run(self) -> str:
        """Answer requests. Return "" after the last one, and in a child the name of the module that it has to run."""
        while True:
            waiting: list[socket.socket | int] = [self._requests, self._ended]
            ready, _, _ = select.select(waiting, [], [])
            if self._ended in ready:
                os.read(self._ended, MAX_REQUEST)
                self._tell_codes()
            if self._requests in ready:
                request, files, _, _ = socket.recv_fds(self._requests, MAX_REQUEST, NUM_FILES)
                if not request:
                    return ""
                given = json.loads(request)
                if len(files) < NUM_FILES:
                    _refuse(files, "too many open files")
                elif self._fork(files, **given):
                    return str(given["module"])

    def _fork(self, files: list[int], module: str, changes: dict[str, str | None]) -> bool:
        """Fork. Return whether this is the child."""
        with suppress(Exception):  # an error comes again in the child, which prints it
            importlib.import_module(module)
            _load_players()
        gc.freeze()  # else the collector of a child writes to all of the shared memory
        server = os.getpid()
        try:
            with warnings.catch_warnings():  # the threads of OpenBLAS, of which Python warns, end before a fork
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError as error:
            _refuse(files, str(error))
            return False
        if pid == 0:
            self._become_child(server, files, module)
            _change_environment(changes)
            return True
        self._status[pid] = files.pop(STATUS)
        for file in files:
            os.close(file)
        return False

    def _become_child(self, server: int, files: list[int], module: str) -> None:
        end_with_the_parent()
        if os.getppid() != server:  # it ended just now
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        set_process_name(module.rpartition(".")[2])
        for number in (INPUT, OUTPUT, STANDARD_ERROR):
            os.dup2(files[number], number)
        os.fchdir(files[FOLDER])
        self._requests.close()  # before `pid`: while it is open, requests to a dead server seem to arrive
        _write(files[STATUS], f"pid {os.getpid()}")
        for file in (*files, *self._own, *self._status.values()):
            os.close(file)
        if random := sys.modules.get("numpy.random"):
            random.seed()  # else all children draw the same numbers from the generator that players may share

    def _tell_codes(self) -> None:
        """Tell the exit codes of all children that have ended."""
        while self._status:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if status := self._status.pop(pid, None):  # none for a process that an import has started
                _write(status, f"code {os.waitstatus_to_exitcode(code)}")
                os.close(status)


def _load_players() -> None:
    """If a module has imported players, load all that children with players need, so that they share it."""
    if kernel := sys.modules.get("gamelore.players.kernel"):
        importlib.import_module(PLAYER)
        kernel.load_kernels()


def _change_environment(changes: dict[str, str | None]) -> None:
    """Set variables of the environment; None deletes one."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _refuse(files: list[int], why: str) -> None:
    """Close the files of a child that cannot start, after the reason if they are enough to tell it."""
    if len(files) > STATUS:
        _write(files[STATUS], f"error {why}")
    for file in files:
        os.close(file)


def _write(status: int, text: str) -> None:
    with suppress(BrokenPipeError):  # nobody waits for this child any more
        os.write(status, f"{text}\n".encode())


def main() -> None:
    """Be the fork server. Standard input is the socket."""
    set_process_name("fork_server")
    name = _Server(socket.socket(fileno=os.dup(0))).run()
    if name:
        module = sys.modules["__main__"] = importlib.import_module(name)
        module.main()


if __name__ == "__main__":
    main()
