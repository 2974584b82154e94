"""`gamelore serve` and `gamelore.net.serve` as processes of their own, on real sockets, ended by real signals."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from commands import run
from gamelore.cli.serve import size
from gamelore.errors import GameloreError
from gamelore.net.serving import spec
from gamelore.play.player import Player
from wire import PATIENCE, request, rules, say, status_of

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


def children(pid: int) -> set[int]:
    if not Path("/proc").exists():
        pytest.skip("no /proc: processes are looked up there")
    return {int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()}


def gone(pids: set[int]) -> bool:
    """Whether processes have ended, by and by."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_plays_until_a_signal_comes(tmp_path: Path, number: signal.Signals):
    with server(tmp_path, "--player", "egreedy", "--name", "robot") as (started, port):
        assert "robot" in say(port, "( INFO )")
        assert start(port) == "ready"
        assert re.fullmatch(r"\(mark [123] [123]\)", say(port, "( PLAY m NIL )"))
        workers = children(started.pid)
        started.send_signal(number)
        _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == (130 if number == signal.SIGINT else 0)
    assert ("interrupted; what was learned is in the knowledge store" in told) == (number == signal.SIGINT)
    assert "match m: begins, as xplayer, with clocks of 10 and 10 s" in told
    assert workers
    assert gone(workers)


SLOW = """
import time
from gamelore.play.player import Player

class Thinker(Player):
    def choose(self, turn):
        time.sleep(30)

class Brooder(Player):
    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1

    def end(self, role, finished):
        time.sleep(30)
"""


def test_a_signal_while_the_player_thinks(tmp_path: Path):
    (tmp_path / "slow.py").write_text(SLOW)
    with server(tmp_path, "--player", f"{tmp_path / 'slow.py'}:Thinker") as (started, port):
        assert start(port) == "ready"
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(request("( PLAY m NIL )"))
            assert "busy" in say(port, "( INFO )")
            workers = children(started.pid)
            started.send_signal(signal.SIGINT)
            _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130, told
    assert "Traceback" not in told
    assert gone(workers)


def test_the_second_signal_does_not_wait(tmp_path: Path):
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
        workers = children(started.pid)
        started.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert started.poll() is None  # it waits for what is learned
        before = time.monotonic()
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=PATIENCE)
        assert time.monotonic() - before < 5
    assert started.returncode == 130, told
    assert "Traceback" not in told
    assert gone(workers)


def test_a_port_that_is_taken(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--player", "random", "--port", port, code=1)
    assert f"expected a free port, got {port}" in result.stderr


def test_an_address_of_another_machine():
    assert "expected an address" in run("serve", "--player", "random", "--address", "192.0.2.1", code=1).stderr


def test_a_player_that_there_is_not():
    result = run("serve", "--player", "ranom", "--port", 0, code=1)
    assert "random" in result.stderr


@pytest.mark.parametrize("options", [["--name", "two words"], ["--quota", "much"], ["--port", 70000], ["--margin", -1]])
def test_mistakes_in_options(options: list[object]):
    run("serve", *options, code=2)


def test_who_may_call(tmp_path: Path):
    options = ["--address", "0.0.0.0", "--allow-host", "player.example.org", "--get", "--cors"]
    with server(tmp_path, "--player", "random", *options) as (_, port):
        assert status_of(port, request("( INFO )", "Host: player.example.org:80", "Origin: http://a.example")) == 200
        assert status_of(port, request("( INFO )", "Host: example.org")) == 403
        assert status_of(port, b"GET /(INFO) HTTP/1.0\r\nHost: 192.168.0.1\r\n\r\n") == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1572864000", 1572864000), ("4G", 4 << 30), ("500m", 500 << 20), ("1.5 KiB", 1536), ("2TB", 2 << 40)],
)
def test_sizes(text: str, expected: int):
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "G", "-1", "4X", "4 G G"])
def test_sizes_that_are_none(text: str):
    with pytest.raises(typer.BadParameter, match="such as 500M"):
        size(text)


# from Python

OWN = """
from gamelore.net import serve
from gamelore.play.player import Player

class Last(Player):
    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1

{guard}serve(Last, port=0, name="last", on_ready=lambda url: print(url, flush=True))
"""


def test_a_player_of_ones_own(tmp_path: Path):
    path = tmp_path / "last.py"
    path.write_text(OWN.format(guard="if __name__ == '__main__': "))
    with process(sys.executable, path) as started:
        assert started.stdout is not None
        port = int(started.stdout.readline().rpartition(":")[2])
        assert "last" in say(port, "( INFO )")
        assert start(port) == "ready"
        assert say(port, "( PLAY m NIL )") == "(mark 3 3)"
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0, told
    assert "Traceback" not in told


def test_a_call_that_is_not_guarded(tmp_path: Path):
    path = tmp_path / "last.py"
    path.write_text(OWN.format(guard=""))
    with process(sys.executable, path) as started:
        _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1
    assert '__name__ == "__main__"' in told


def test_a_class_that_other_processes_cannot_find():
    class Inside(Player):
        pass

    with pytest.raises(GameloreError, match="at the top of a Python file"):
        spec(Inside)
    assert spec("egreedy") == "egreedy"
