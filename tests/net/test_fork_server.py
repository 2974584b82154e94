"""Children of the fork server: their streams, environment and exit codes, and the end of one of both."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from gamelore.net import fork_server
from gamelore.net.fork_server import start_child
from processes import descendants, name_of, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a fork server")
MODULES = {
    "echoing_child": "import os, sys\ndef main():\n    os.write(1, os.read(0, 100).upper())\n    sys.exit(7)\n",
    "telling_child": "import os\ndef main():\n    told = map(os.environ.get, ('TOLD', 'GONE'))\n"
    "    print(os.getcwd(), *told, os.getsid(0) == os.getpid())\n",
    "waiting_child": "import os\ndef main():\n    os.read(0, 1)\n",
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


async def started(module: str) -> Child:
    child = Child()
    await start_child(lambda: child, module)
    return child


@pytest.fixture(autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server._Server]:
    """A fork server of its own, which imports our modules."""
    folder = tmp_path_factory.mktemp("modules")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    server = fork_server._Server()
    monkeypatch.setattr(fork_server, "_server", server)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, sys.path)]))
    monkeypatch.setenv("GONE", "soon")
    yield server
    server.end()


def pid_of(server: fork_server._Server) -> int:
    assert server._process is not None
    return server._process.pid


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
    async def told() -> str:
        child = await started("telling_child")
        assert await child.code() == 0
        return child.said.decode().strip()

    async def whole() -> None:
        assert (await told()).endswith(" None soon True")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TOLD", "now")
        monkeypatch.delenv("GONE")
        assert await told() == f"{tmp_path} now None True"

    asyncio.run(whole())


def test_children_are_copies_with_the_names_of_their_modules(server: fork_server._Server) -> None:
    async def whole() -> None:
        children = [await started("waiting_child") for _ in range(3)]
        pids = {child.transport.get_pid() for child in children if child.transport is not None}
        assert pids == {process.pid for process in descendants(pid_of(server))}
        assert {name_of(pid) for pid in pids} == {"waiting_child"}
        assert name_of(pid_of(server)) == "fork_server"
        for child in children:
            assert child.transport is not None
            child.transport.kill()
        assert [await child.code() for child in children] == 3 * [-signal.SIGKILL]

    asyncio.run(whole())


def test_a_variable_that_modules_read_at_their_import_needs_a_new_python(
    server: fork_server._Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        assert await (await started("telling_child")).code() == 0
        assert server.can_copy()
        monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
        assert not server.can_copy()

    asyncio.run(whole())


def test_an_import_that_fails_ends_only_the_child(capfd: pytest.CaptureFixture[str]) -> None:
    async def whole() -> None:
        assert await (await started("failing_child")).code() == 1
        assert await (await started("telling_child")).code() == 0

    asyncio.run(whole())
    assert "ValueError: no module" in capfd.readouterr().err


def test_a_killed_server_is_replaced_and_its_children_are_known_to_have_ended(server: fork_server._Server) -> None:
    async def whole() -> None:
        child = await started("waiting_child")
        before = pid_of(server)
        os.kill(before, signal.SIGKILL)
        assert await child.code() == -signal.SIGKILL
        again = await started("telling_child")
        assert await again.code() == 0
        assert pid_of(server) != before

    asyncio.run(whole())


async def asked_of_a_stopped(server: fork_server._Server) -> asyncio.Task[Child]:
    """Ask a server for a child that it cannot start, because it is stopped."""
    await (await started("telling_child")).lost
    os.kill(pid_of(server), signal.SIGSTOP)
    starting = asyncio.create_task(started("waiting_child"))
    await asyncio.sleep(0.05)
    return starting


def test_a_server_that_dies_before_the_child_starts_is_told(server: fork_server._Server) -> None:
    async def whole() -> None:
        starting = await asked_of_a_stopped(server)
        os.kill(pid_of(server), signal.SIGKILL)
        with pytest.raises(ConnectionResetError, match="the fork server has ended"):
            await starting

    asyncio.run(whole())


def test_a_child_that_nobody_waits_for_any_more_ends(server: fork_server._Server) -> None:
    async def whole() -> None:
        starting = await asked_of_a_stopped(server)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        os.kill(pid_of(server), signal.SIGCONT)
        assert await (await started("telling_child")).code() == 0

    asyncio.run(whole())
    wait_until(lambda: not any(child.is_alive for child in descendants(pid_of(server))), "no child to be left", 60)


def test_the_server_ends_with_the_process_that_asks(tmp_path: Path) -> None:
    code = """
    import asyncio, os, sys
    from gamelore.net import fork_server

    class Child(asyncio.SubprocessProtocol):
        pass

    async def main():
        await fork_server.start_child(Child, "waiting_child")
        print(fork_server._server._process.pid, flush=True)
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), 9)

    asyncio.run(main())
    """
    for how in ("killed", "ended"):
        done = subprocess.run([sys.executable, "-c", dedent(code), how], capture_output=True, text=True, check=False)
        pid = int(done.stdout)
        wait_until(lambda pid=pid: name_of(pid) != "fork_server", "no fork server to be left", 60)  # type: ignore[misc]
