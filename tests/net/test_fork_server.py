"""Children of the fork server: their streams, environment and exit codes, and the end of one of both."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gamelore.net import fork_server
from gamelore.net.fork_server import start_child
from processes import descendants, name_of, num_open_files, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a fork server")
MODULES = {
    "echoing_child": "import os, sys\ndef main():\n    os.write(1, os.read(0, 100).upper())\n    sys.exit(7)\n",
    "telling_child": "import os\ndef main():\n    told = map(os.environ.get, ('TOLD', 'GONE'))\n"
    "    print(os.getcwd(), *told, os.getsid(0) == os.getpid())\n"
    "if __name__ == '__main__':\n    main()\n",  # for a new Python
    "waiting_child": "import os\ndef main():\n    os.read(0, 1)\n",
    "open_child": "import os\ndef main():\n    print(*sorted(map(int, os.listdir('/proc/self/fd'))))\n",
    "drawing_child": "from numpy import random\ndef main():\n    print(random.random())\n",
    "failing_child": "raise ValueError('no module')\n",
}


class Child(asyncio.SubprocessProtocol):
    """A child and all that it says."""

    def __init__(self) -> None:
        self.transport: asyncio.SubprocessTransport | None = None
        self.said, self.events = b"", list[str]()
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        self.events.append("made")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        assert fd == 1
        self.said += data

    def process_exited(self) -> None:
        self.events.append("exited")
        pipe = self.transport and self.transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport | None)
        if pipe is not None:
            pipe.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost")
        self.lost.set_result(None)

    async def code(self) -> int | None:
        await self.lost
        assert self.transport is not None
        return self.transport.get_returncode()

    async def killed(self) -> int | None:
        """Kill the child, and return its exit code."""
        assert self.transport is not None
        self.transport.kill()
        return await self.code()


async def started(module: str) -> Child:
    child = Child()
    await start_child(lambda: child, module)
    return child


async def told_by(module: str) -> str:
    """Return what a child prints that ends well."""
    child = await started(module)
    assert await child.code() == 0
    return child.said.decode().strip()


@pytest.fixture(autouse=True)
def client(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server._Client]:
    """A fork server of its own, which imports our modules."""
    folder = tmp_path_factory.mktemp("modules")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    client = fork_server._Client()
    monkeypatch.setattr(fork_server, "_client", client)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, sys.path)]))
    monkeypatch.setenv("GONE", "soon")
    yield client
    client.end()


def pid_of(client: fork_server._Client) -> int:
    """Return the process id of the fork server."""
    assert client._process is not None
    return client._process.pid


def test_a_child_has_its_streams_and_an_exit_code() -> None:
    async def whole() -> None:
        child = await started("echoing_child")
        assert child.transport is not None
        assert child.transport.get_returncode() is None
        requests = child.transport.get_pipe_transport(0)
        assert isinstance(requests, asyncio.WriteTransport)
        requests.write(b"hello")
        assert await child.code() == 7
        assert child.said == b"HELLO"
        assert child.events == ["made", "exited", "lost"]

    asyncio.run(whole())


def test_a_child_has_the_present_folder_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        assert (await told_by("telling_child")).endswith(" None soon True")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TOLD", "now")
        monkeypatch.delenv("GONE")
        assert await told_by("telling_child") == f"{tmp_path} now None True"

    asyncio.run(whole())


def test_children_are_forks_with_the_names_of_their_modules(client: fork_server._Client) -> None:
    async def whole() -> None:
        children = [await started("waiting_child") for _ in range(3)]
        pids = {child.transport.get_pid() for child in children if child.transport is not None}
        assert pids == {process.pid for process in descendants(pid_of(client))}
        assert {name_of(pid) for pid in pids} == {"waiting_child"}
        assert name_of(pid_of(client)) == "fork_server"
        for child in children:
            assert child.transport is not None
            child.transport.kill()
        assert [await child.code() for child in children] == 3 * [-signal.SIGKILL]

    asyncio.run(whole())


def test_a_variable_that_modules_read_at_their_import_needs_a_new_python(
    client: fork_server._Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        assert await (await started("telling_child")).code() == 0
        assert client.can_fork()
        monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
        monkeypatch.setenv("TOLD", "now")
        assert not client.can_fork()
        before = descendants(pid_of(client))
        child = await started("telling_child")  # a new Python, as on systems without a fork server
        assert await child.code() == 0
        assert child.transport is not None
        child.transport.close()
        assert child.said.decode().split()[-3:] == ["now", "soon", "True"]
        assert descendants(pid_of(client)) == before

    asyncio.run(whole())


def test_a_child_has_no_open_files_but_its_streams() -> None:
    async def whole() -> None:
        waiting = await started("waiting_child")
        assert await told_by("open_child") == "0 1 2 3"  # the last is that of /proc/self/fd
        await waiting.killed()

    asyncio.run(whole())


def test_the_server_keeps_no_files_and_no_threads(client: fork_server._Client) -> None:
    async def whole() -> None:
        worker = await started("gamelore.net.worker")  # with all libraries
        assert await worker.killed() == -signal.SIGKILL
        before = num_open_files(pid_of(client))
        for _ in range(3):
            assert await (await started("telling_child")).code() == 0
        wait_until(lambda: num_open_files(pid_of(client)) == before, "the files of children to be closed", 60)
        assert len(os.listdir(f"/proc/{pid_of(client)}/task")) == 1

    asyncio.run(whole())


def test_children_draw_different_numbers() -> None:
    async def whole() -> None:
        assert await told_by("drawing_child") != await told_by("drawing_child")

    asyncio.run(whole())


def test_a_deleted_working_directory_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    async def whole() -> None:
        child = await started("waiting_child")
        assert await child.killed() == -signal.SIGKILL

    asyncio.run(whole())


def test_a_request_to_a_child_that_has_just_died_is_no_error(client: fork_server._Client) -> None:
    """The pipe to the child is closed at once; its exit code comes later, here because the server is stopped."""

    async def whole() -> None:
        child = await started("waiting_child")
        assert child.transport is not None
        os.kill(pid_of(client), signal.SIGSTOP)
        child.transport.kill()
        pipe = child.transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        async with asyncio.timeout(60):
            while not pipe.is_closing():
                await asyncio.sleep(0.01)
        assert child.transport.get_pipe_transport(0) is pipe
        pipe.write(b"request")
        assert child.transport.get_returncode() is None
        os.kill(pid_of(client), signal.SIGCONT)
        assert await child.code() == -signal.SIGKILL

    asyncio.run(whole())


def test_a_start_without_free_descriptors_keeps_none(
    client: fork_server._Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        assert await (await started("telling_child")).code() == 0
        before, pipes = num_open_files(os.getpid()), iter([os.pipe(), os.pipe()])

        def pipe() -> tuple[int, int]:
            for ends in pipes:
                return ends
            raise OSError(24, "Too many open files")

        with monkeypatch.context() as patched:
            patched.setattr(os, "pipe", pipe)
            with pytest.raises(OSError, match="Too many open files"):
                await started("telling_child")
        async with asyncio.timeout(60):
            while num_open_files(os.getpid()) > before:
                await asyncio.sleep(0.01)
        assert await (await started("telling_child")).code() == 0

    asyncio.run(whole())


def test_a_server_with_too_many_files_refuses_children_and_keeps_those_it_has(client: fork_server._Client) -> None:
    async def whole() -> None:
        waiting = await started("waiting_child")
        assert waiting.transport is not None
        server = pid_of(client)
        before = resource.prlimit(server, resource.RLIMIT_NOFILE)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (num_open_files(server) + 4, before[1]))  # a child brings five
        with pytest.raises(OSError, match="too many open files"):
            await started("telling_child")
        resource.prlimit(server, resource.RLIMIT_NOFILE, before)
        assert await (await started("telling_child")).code() == 0
        assert pid_of(client) == server
        assert waiting.transport.get_returncode() is None
        assert await waiting.killed() == -signal.SIGKILL

    asyncio.run(whole())


def test_an_import_that_fails_ends_only_the_child(capfd: pytest.CaptureFixture[str]) -> None:
    async def whole() -> None:
        assert await (await started("failing_child")).code() == 1
        assert await (await started("telling_child")).code() == 0

    asyncio.run(whole())
    assert "ValueError: no module" in capfd.readouterr().err


def test_a_killed_server_is_replaced_and_its_children_are_known_to_have_ended(client: fork_server._Client) -> None:
    async def whole() -> None:
        child = await started("waiting_child")
        before = pid_of(client)
        os.kill(before, signal.SIGKILL)
        assert await child.code() == -signal.SIGKILL
        assert client._process is not None
        client._process.wait()  # its socket may be closed later than its pipes
        again = await started("telling_child")
        assert await again.code() == 0
        assert pid_of(client) != before

    asyncio.run(whole())


async def asked_of_a_stopped(client: fork_server._Client, monkeypatch: pytest.MonkeyPatch) -> asyncio.Task[Child]:
    """Ask a server for a child that it cannot start, because it is stopped."""
    await (await started("telling_child")).lost
    os.kill(pid_of(client), signal.SIGSTOP)
    asked, send = asyncio.Event(), client._send

    def send_and_tell(*request: Any) -> None:
        send(*request)
        asked.set()

    with monkeypatch.context() as patched:
        patched.setattr(client, "_send", send_and_tell)
        starting = asyncio.create_task(started("waiting_child"))
        await asked.wait()
    return starting


def test_a_server_that_dies_before_the_child_starts_is_told(
    client: fork_server._Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        starting = await asked_of_a_stopped(client, monkeypatch)
        os.kill(pid_of(client), signal.SIGKILL)
        with pytest.raises(ConnectionResetError, match="the fork server or the child has ended"):
            await starting

    asyncio.run(whole())


def test_a_child_that_nobody_waits_for_any_more_ends(
    client: fork_server._Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        starting = await asked_of_a_stopped(client, monkeypatch)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        os.kill(pid_of(client), signal.SIGCONT)
        assert await (await started("telling_child")).code() == 0

    asyncio.run(whole())
    wait_until(lambda: not any(child.is_alive for child in descendants(pid_of(client))), "no child to be left", 60)


def test_the_server_ends_with_the_process_that_asks(tmp_path: Path) -> None:
    code = """
    import asyncio, os, sys
    from gamelore.net import fork_server

    class Child(asyncio.SubprocessProtocol):
        pass

    async def main():
        await fork_server.start_child(Child, "waiting_child")
        print(fork_server._client._process.pid, flush=True)
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), 9)

    asyncio.run(main())
    """
    for how in ("killed", "ended"):
        command = [sys.executable, "-c", dedent(code), how]
        with (tmp_path / "errors").open("w") as errors:  # no pipe, for whose end `run` would wait
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False, timeout=120)
        pid = int(done.stdout)
        wait_until(lambda pid=pid: name_of(pid) != "fork_server", "no fork server to be left", 60)  # type: ignore[misc]
