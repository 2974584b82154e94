"""`gamelore serve` and `gamelore.net.serve` as processes of their own, on real sockets, ended by real signals."""

from __future__ import annotations

import ast
import asyncio
import errno
import inspect
import json
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
import typer

from commands import run, run_json
from gamelore.cli.console import num_bytes
from gamelore.errors import GameloreError
from gamelore.net import player_server
from gamelore.net.http import WebLimits
from gamelore.net.player_server import spec
from gamelore.net.pool import CLOSE_SECONDS, WorkerSettings
from gamelore.players.player import Player
from processes import descendants_named
from wire import PATIENCE, request, rules, say

EXAMPLE = Path(__file__).parents[2] / "examples" / "greedy_player.py"
SERVE = (sys.executable, "-c", "from gamelore.cli import main; main()", "serve", "--port", "0")


@contextmanager
def process(*command: object) -> Iterator[subprocess.Popen[str]]:
    """A process with pipes, which is gone afterwards."""
    started = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def server(folder: Path, *options: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`gamelore serve` with a store of its own, and the port where it listens."""
    with process(*SERVE, "--json", "--knowledge", folder / "k.db", *options) as started:
        assert started.stdout is not None
        told = json.loads(started.stdout.readline())
        yield started, int(told["url"].rpartition(":")[2])


def start(port: int, match: str = "m", playclock: int = 10) -> str:
    return say(port, f"( START {match} xplayer ( {rules('tictactoe')} ) 10 {playclock} )")


def gone(pids: set[int]) -> bool:
    """Whether processes have ended, by and by."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


def own_processes(pid: int) -> set[int]:
    """Return the processes of a player server without its fork server."""
    return set(descendants_named(pid, "worker", "follower"))


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_it_plays_until_a_signal_comes(tmp_path: Path):
    with server(tmp_path, "--player", f"{EXAMPLE}:Greedy", "--name", "robot") as (started, port):
        assert "robot" in say(port, "( INFO )")
        assert start(port) == "ready"
        assert say(port, "( PLAY m NIL )") == "(mark 1 1)"  # nothing pays, all are equal
        workers = own_processes(started.pid)
        started.send_signal(signal.SIGTERM)
        _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0
    assert "interrupted" not in told
    assert "match m: begins, the role is xplayer, the clocks are 10 and 10 s" in told
    assert workers
    assert gone(workers)


SLOW = """
import time
from gamelore.players.player import Player

class Thinker(Player):
    def choose(self, turn):
        time.sleep(600)

class Brooder(Player):
    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1

    def end(self, role, finished):
        time.sleep(600)
"""


def test_a_signal_while_the_player_thinks(tmp_path: Path):
    (tmp_path / "slow.py").write_text(SLOW)
    with server(tmp_path, "--player", f"{tmp_path / 'slow.py'}:Thinker") as (started, port):
        assert start(port) == "ready"
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(request("( PLAY m NIL )"))
            assert "busy" in say(port, "( INFO )")
            workers = own_processes(started.pid)
            started.send_signal(signal.SIGINT)
            _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130, told
    assert "interrupted; what it had learned is in the knowledge store" in told
    assert "Traceback" not in told
    assert gone(workers)


def is_closing(process: subprocess.Popen[str], port: int) -> bool:
    """Return whether nothing listens on the port any more. Connections may still be waited for."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != 0


def is_learning(process: subprocess.Popen[str], port: int) -> bool:
    """Return whether all processes but the one of the player have ended."""
    return len(own_processes(process.pid)) == 1


@pytest.mark.parametrize("is_time", [is_closing, is_learning])
def test_the_second_signal_does_not_wait(tmp_path: Path, is_time: Callable[[subprocess.Popen[str], int], bool]):
    (tmp_path / "slow.py").write_text(SLOW)
    with server(tmp_path, "--player", f"{tmp_path / 'slow.py'}:Brooder") as (started, port):
        assert start(port) == "ready"
        moves = ["NIL"]
        for mine, others in (("1 1", "2 1"), ("1 2", "2 2"), ("1 3", "")):
            assert say(port, f"( PLAY m {moves[-1]} )") != "nil"
            moves.append(f"( (mark {mine}) noop )")
            if others:
                assert say(port, f"( PLAY m {moves[-1]} )") == "noop"
                moves.append(f"( noop (mark {others}) )")
        assert say(port, f"( STOP m {moves[-1]} )") == "done"
        workers = own_processes(started.pid)
        before = time.monotonic()
        started.send_signal(signal.SIGINT)
        while not is_time(started, port):
            assert time.monotonic() - before < PATIENCE
            time.sleep(0.001)
        assert started.poll() is None  # it waits for what is learned
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=PATIENCE)
        assert time.monotonic() - before < CLOSE_SECONDS
    assert started.returncode == 130, told
    assert "Traceback" not in told
    assert gone(workers)


class NoWorkers:
    """In the place of the processes, where none is needed."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(player_server, "Workers", NoWorkers)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--player", "random", "--port", port, code=1)
    assert f"expected a free port, got {port}" in result.stderr


def test_an_address_of_another_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(player_server, "Workers", NoWorkers)
    assert "expected an address" in run("serve", "--player", "random", "--address", "192.0.2.1", code=1).stderr


def test_a_player_that_there_is_not():
    result = run("serve", "--player", "ranom", "--port", 0, code=1)
    assert "random" in result.stderr


@pytest.mark.parametrize("options", [["--name", "two words"], ["--quota", "much"], ["--port", 70000], ["--margin", -1]])
def test_mistakes_in_options(options: list[object]):
    run("serve", *options, code=2)


def test_every_match_has_connections(monkeypatch: pytest.MonkeyPatch):
    told: list[WebLimits] = []

    def listen(answer: object, address: str, port: int, limits: WebLimits) -> None:
        told.append(limits)
        raise OSError(errno.EADDRINUSE, "taken")

    monkeypatch.setattr(player_server, "Workers", NoWorkers)
    monkeypatch.setattr(player_server, "listen", listen)
    for matches in (1, 1000):
        run("serve", "--matches-at-once", matches, code=1)
    assert [limits.connections for limits in told] == [WebLimits().connections, 4000]


class SlowWorkers(NoWorkers):
    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        return self


@pytest.mark.parametrize("long", [0.0, 60.0])
def test_a_long_start_is_explained(
    long: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gamelore")
    monkeypatch.setattr(player_server, "LONG_START", long)
    monkeypatch.setattr(player_server, "Workers", SlowWorkers)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(GameloreError, match="expected a free port"):
        player_server.serve("random", port=taken.getsockname()[1])
    assert (player_server.COMPILES in caplog.messages) == (not long)


def told_to_serve(monkeypatch: pytest.MonkeyPatch, *options: object) -> dict[str, Any]:
    """What `gamelore serve` with these options hands on."""
    given: dict[str, Any] = {}

    def serve(player: str, **others: Any) -> signal.Signals:
        given.update(others, player=player)
        return signal.SIGTERM

    monkeypatch.setattr(player_server, "serve", serve)
    run("serve", *options)
    return given


def test_options_go_where_they_belong(monkeypatch: pytest.MonkeyPatch):
    web = ["--allow-host", "a.example", "--allow-host", "b.example", "--get", "--cors", "--patience", 3]
    others = ["--address", "0.0.0.0", "--quota", "500M", "--memory", "2G", "--no-learn", "--search", 2]
    given = told_to_serve(monkeypatch, *web, *others)
    hosts = ("a.example", "b.example")
    assert given["limits"] == WebLimits(seconds=3, hosts=hosts, is_get_allowed=True, is_cors_allowed=True)
    assert (given["address"], given["quota"], given["memory"]) == ("0.0.0.0", 500 << 20, 2 << 30)
    assert (given["learn"], given["search"]) == (False, 2)


def test_nothing_is_open_unless_told_so(monkeypatch: pytest.MonkeyPatch):
    given = told_to_serve(monkeypatch)
    assert given["limits"] == WebLimits()
    assert (given["address"], given["quota"]) == ("127.0.0.1", 4 << 30)


def test_its_defaults_are_those_of_the_call(monkeypatch: pytest.MonkeyPatch):
    usual = {name: one.default for name, one in inspect.signature(player_server.serve).parameters.items()}
    given = told_to_serve(monkeypatch)
    assert {name: given[name] for name in usual.keys() - {"limits", "on_ready"}} == {
        name: usual[name] for name in usual.keys() - {"limits", "on_ready"}
    }
    settings = WorkerSettings("random")
    assert (settings.memory, settings.prepare_seconds) == (usual["memory"], usual["prepare_seconds"])


def test_uct_thinks_as_long_as_the_clock_allows(tmp_path: Path):
    """Its 1,000 simulations of the lab would take some milliseconds."""
    with server(tmp_path, "--player", "uct") as (_, port):
        assert start(port, playclock=2) == "ready"
        begin = time.monotonic()
        assert say(port, "( PLAY m NIL )").startswith("(mark ")
        assert time.monotonic() - begin > 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2 << 30), ("0.5", 1 << 29), ("4G", 4 << 30), ("500m", 500 << 20), ("1.5 KiB", 1536), ("2TB", 2 << 40)],
)
def test_sizes(text: str, expected: int):
    assert num_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "0", "G", "-1", "inf", "nan", "4X", "4 G G", "9" * 400])
def test_sizes_that_are_none(text: str):
    with pytest.raises(typer.BadParameter, match="a size above 0 such as 500M"):
        num_bytes(text)


def test_the_log_leaves_lines_out_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr(player_server.time, "monotonic", lambda: now)
    few = player_server.Sparing()

    def logged() -> str:
        record = logging.makeLogRecord({"msg": "refused %s", "args": ("a message",)})
        return record.left_out + record.getMessage() if few.filter(record) else ""

    assert [logged() for _ in range(player_server.LINES + 7)] == ["refused a message"] * player_server.LINES + [""] * 7
    now += 1
    assert [logged(), logged()] == ["(7 lines were left out) refused a message", "refused a message"]


def test_other_logs_do_not_see_what_is_left_out_of_standard_error(caplog: pytest.LogCaptureFixture):
    player_server.log_to_stderr()
    logging.root.addHandler(caplog.handler)  # `log_to_stderr` removes all others
    for number in range(player_server.LINES + 3):
        logging.getLogger("gamelore.net").warning("line %d", number)
    assert caplog.messages == [f"line {number}" for number in range(player_server.LINES + 3)]


def test_a_flood_does_not_hide_what_happens_in_a_match(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(player_server.time, "monotonic", lambda: 100.0)
    few = player_server.Sparing()
    records = [logging.makeLogRecord({"msg": "refused"}) for _ in range(2 * player_server.LINES)]
    records[1:1] = [logging.makeLogRecord({"msg": "late", "match": "m1"}) for _ in range(2 * player_server.LINES)]
    records.append(logging.makeLogRecord({"msg": "over", "match": "m2"}))
    shown = [record.msg for record in records if few.filter(record)]
    assert (shown.count("refused"), shown.count("late"), shown[-1]) == (
        player_server.LINES,
        player_server.LINES,
        "over",
    )


# from Python


def test_the_example_as_its_docstring_says():
    """Both commands; the player says where it is."""
    about = ast.get_docstring(ast.parse(EXAMPLE.read_text())) or ""
    python, host = (line.split() for line in about.splitlines() if line.startswith(("python", "gamelore")))
    with process(sys.executable, EXAMPLE.parents[1] / python[1]) as started:
        assert started.stderr is not None
        told = started.stderr.readline()
        if "expected a free port" in told:
            pytest.skip(told)
        assert "http://127.0.0.1:9147" in told
        standings = run_json(*host[1:])
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=PATIENCE)
    greedy, random = standings["players"]
    assert greedy["mean_goal"] > random["mean_goal"]
    assert not greedy["errors"]
    assert started.returncode == 0, told
    assert "Traceback" not in told


UNGUARDED = """
from gamelore.net import serve
from gamelore.players.player import Player

class Last(Player):
    pass

serve(Last, port=0)
"""


def test_a_call_that_is_not_guarded(tmp_path: Path):
    path = tmp_path / "last.py"
    path.write_text(UNGUARDED)
    with process(sys.executable, path) as started:
        _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1
    assert '__name__ == "__main__"' in told


def test_a_class_that_other_processes_cannot_find():
    class Inside(Player):
        pass

    with pytest.raises(GameloreError, match="at the top level of a Python file"):
        spec(Inside)
    with pytest.raises(GameloreError, match="leave out the parentheses"):
        spec(Inside())  # type: ignore[arg-type]
    assert spec("egreedy") == "egreedy"
