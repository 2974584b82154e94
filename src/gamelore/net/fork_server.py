"""The fork server: a process that imports the modules of child processes once, and copies itself for each new child.

The import of all players takes two seconds of processor time and 200 MB. A copy takes some milliseconds, and shares
this memory with the other copies. The server starts with the first child, and ends with the process that asks it.

Both talk over a socket. A request is a datagram with the name of a module and four file descriptors: standard input,
output and error of the child, and the end of a pipe for news about the child. The child calls `main` of the module.
News are lines: `pid` with the process id, then `code` with the exit code as in `subprocess.Popen`; or `error` with the
reason why there is no child.

Only Linux has a fork server, since libraries of other systems do not survive a copy. There, each child is a new Python.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
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
from contextlib import suppress
from functools import partial
from typing import IO, TypeAlias

MAX_REQUEST = 1 << 20  # bytes, more than a socket sends at once, so that no request is cut off
NUM_FILES = 4
INPUT, OUTPUT, STANDARD_ERROR, NEWS = range(NUM_FILES)  # of a child; the first three are its file descriptors
READ_AT_IMPORT = ("PYTHON", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "LD_")  # variables that a copy would read too late
END_SECONDS = 5.0  # time limit for the server to end by itself

MakeProtocol: TypeAlias = Callable[[], asyncio.SubprocessProtocol]


async def start_child(make_protocol: MakeProtocol, module: str) -> None:
    """Start a child process in its own session, so that Ctrl-C does not reach it.

    Args:
        make_protocol: returns the protocol of the child, as for `loop.subprocess_exec`
        module: name of a module with a function `main`, which the child calls

    Raises:
        ConnectionResetError: the fork server was killed
        OSError: the system starts no process
    """
    if sys.platform == "linux" and _server.can_copy():
        await _Child(make_protocol()).start(module)
    else:
        command = (sys.executable, "-P", "-m", module)
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(make_protocol, *command, stderr=None, start_new_session=True)


def kill_group(child: asyncio.SubprocessTransport) -> None:
    """Kill a child process with all processes of its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.get_pid(), signal.SIGKILL)


class _Server:
    """The fork server of this process, from the first request on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0
        self._environ: dict[str, str] = {}

    def can_copy(self) -> bool:
        """Return whether a copy of the server can take over the present environment of this process."""
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
        """End the server, and with it its copies."""
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
        return self._owner == os.getpid()  # a copy of this process has no server

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
        request = {"module": module, "folder": os.getcwd(), "changes": self._changes()}
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)

    def _changes(self) -> dict[str, str | None]:
        """Return the variables of the environment that have changed since the start; None for a deleted one."""
        before, now = self._environ, dict(os.environ)
        return {name: now.get(name) for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


_server = _Server()


class _Child(asyncio.SubprocessTransport):
    """A child of the fork server. Its protocol is told of it as asyncio tells protocols of its own child processes."""

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pid = 0
        self._code: int | None = None
        self._pipes: dict[int, asyncio.ReadTransport | asyncio.WriteTransport] = {}
        self._news = b""

    async def start(self, module: str) -> None:
        """Start the child; see `start_child`."""
        (their_input, our_input), (our_output, their_output), (our_news, their_news) = os.pipe(), os.pipe(), os.pipe()
        writes, reads = os.fdopen(our_input, "wb", 0), (os.fdopen(our_output, "rb", 0), os.fdopen(our_news, "rb", 0))
        try:
            try:
                await self._connect(writes, *reads)
                _server.request(module, [their_input, their_output, STANDARD_ERROR, their_news])
            finally:
                for file in (their_input, their_output, their_news):
                    os.close(file)
            await self._started
        except BaseException:  # if a child starts nevertheless, it ends, because its input is closed
            self.close()
            for pipe in (writes, *reads)[len(self._pipes) :]:
                pipe.close()
            raise

    async def _connect(self, writes: IO[bytes], output: IO[bytes], news: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self._pipes[INPUT], _ = await loop.connect_write_pipe(partial(_Pipe, self, INPUT), writes)
        self._pipes[OUTPUT], _ = await loop.connect_read_pipe(partial(_Pipe, self, OUTPUT), output)
        self._pipes[NEWS], _ = await loop.connect_read_pipe(partial(_Pipe, self, NEWS), news)

    # of asyncio.SubprocessTransport

    def get_pid(self) -> int:
        """Return the process id."""
        return self._pid

    def get_returncode(self) -> int | None:
        """Return the exit code; None while the child runs."""
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Return the pipe to standard input (0) or from standard output (1)."""
        return self._pipes.get(fd)

    def send_signal(self, signal: int) -> None:
        """Send a signal, if the child still runs."""
        if self._code is None:
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
        *lines, self._news = (self._news + data).split(b"\n")
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
        if number == NEWS:
            self._set_started(ConnectionResetError("the fork server has ended"))
            self._exited(-signal.SIGKILL)
        self._pipes.pop(number, None)
        if not self._pipes and self._pid:
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


class _Copying:
    """The work of the fork server.

    requests: the socket from which requests come.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._news: dict[int, int] = {}  # file descriptor for news about each child, by its process id
        self._ended, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, Python writes nothing to the pipe
        signal.set_wakeup_fd(wakes)
        self._own = [self._ended, wakes]

    def run(self) -> str:
        """Answer requests. Return "" after the last one, and in a copy the name of the module that it has to run."""
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
                if self._copied(files, **given):
                    return str(given["module"])

    def _copied(self, files: list[int], module: str, folder: str, changes: dict[str, str | None]) -> bool:
        """Copy this process. Return whether this is the copy."""
        with suppress(Exception):  # an error comes again in the copy, which prints it
            importlib.import_module(module)
            _load_kernels()
        gc.freeze()  # else the collector of a copy writes to all of the shared memory
        *streams, news = files
        try:
            with warnings.catch_warnings():  # the threads of OpenBLAS, of which Python warns, end before a copy
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError as error:
            _write(news, f"error {error}")
            pid = -1
        if pid == 0:
            self._become_child(streams, news, module)
            os.chdir(folder)
            for name, value in changes.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            return True
        for file in streams:
            os.close(file)
        if pid > 0:
            self._news[pid] = news
        else:
            os.close(news)
        return False

    def _become_child(self, streams: list[int], news: int, module: str) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _name_process(module)
        _write(news, f"pid {os.getpid()}")
        for number, file in enumerate(streams):
            os.dup2(file, number)
        self._requests.close()
        for file in (*streams, news, *self._own, *self._news.values()):
            os.close(file)

    def _tell_codes(self) -> None:
        """Tell the exit codes of all children that have ended."""
        while self._news:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            news = self._news.pop(pid)
            _write(news, f"code {os.waitstatus_to_exitcode(status)}")
            os.close(news)


def _load_kernels() -> None:
    """Load the machine code of all imported kernels, so that copies share it. Without kernels, do not import numba."""
    if kernel := sys.modules.get("gamelore.players.kernel"):
        kernel.load_kernels()


def _write(news: int, text: str) -> None:
    with suppress(BrokenPipeError):  # nobody waits for this child any more
        os.write(news, f"{text}\n".encode())


def _name_process(module: str) -> None:
    """Name this process after a module, for programs that list processes."""
    set_name = 15
    ctypes.CDLL(None).prctl(set_name, module.rpartition(".")[2].encode())


def main() -> None:
    """Be the fork server. Standard input is the socket."""
    _name_process("fork_server")
    name = _Copying(socket.socket(fileno=os.dup(0))).run()
    if name:
        module = sys.modules["__main__"] = importlib.import_module(name)
        module.main()


if __name__ == "__main__":
    main()
