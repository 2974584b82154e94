"""Two processes on one store at the same time, killed and started again: no match is lost, none is counted twice.

Two `gamelore learn` end with what each would have learned alone. Two `gamelore serve` keep every match that ended
without an error exactly once.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import gamelore
from gamelore.learning.exchange import problems
from gamelore.learning.session import LastingLearner
from gamelore.learning.store.knowledge import Knowledge
from gamelore.players.position_graph import PositionGraph
from hostile_disks import learned
from wire import GAMELORE, PATIENCE

SEED = 7
GAME = "tictactoe"
MOST_SERVED = 25  # matches of a series
MOST_STARTS = 20  # of a process that another one hinders
HINDERED = ("another process continues this learner", "another process learned from it", "another process has locked")


def drawn(random: Random) -> dict[str, Any]:
    """Draw two processes, and who is killed when: (number of the process, seconds since the last kill)."""
    kills = [[random.randrange(2), round(random.uniform(0.0, 2.5), 3)] for _ in range(random.randrange(4))]
    return {
        "command": random.choice(["learn", "learn", "serve"]),
        "same": random.random() < 0.5,
        "matches": random.randint(10, 25) if random.random() < 0.5 else random.randint(50, 300),
        "kills": kills,
    }


def assert_no_match_is_lost(example: dict[str, Any]) -> None:
    """Let both processes come to their end; see the head of this module."""
    with TemporaryDirectory() as folder:
        if example["command"] == "learn":
            _learn(Path(folder) / "k.db", example)
        else:
            _serve(Path(folder), example)


# ---- gamelore learn ----------------------------------------------------------------------------------------------


def _learn(store: Path, example: dict[str, Any]) -> None:
    seeds = [SEED, SEED if example["same"] else SEED + 1]
    with _killed(example["kills"]) as processes:
        threads = [
            threading.Thread(target=_finish, args=(number, seed, store, example["matches"], processes))
            for number, seed in enumerate(seeds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(processes[number].returncode == 0 for number in range(2)), "a process could not end"
    expected = [_alone(seed, example["matches"]) for seed in dict.fromkeys(seeds)]
    assert sorted(learned(store.parent), key=str) == sorted(expected, key=str)


@cache
def _alone(seed: int, matches: int) -> Any:
    """What a learner learns that nobody hinders."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "k.db"
        subprocess.run(_command(seed, store, matches), check=True, capture_output=True)
        (knowledge,) = learned(store.parent)
        return knowledge


def _command(seed: int, store: Path, matches: int) -> list[str]:
    words = f"learn {GAME} --matches {matches} --seed {seed} --knowledge {store}"
    return [*GAMELORE, *words.split()]


def _finish(number: int, seed: int, store: Path, matches: int, processes: dict[int, Any]) -> None:
    """Run a learner to its end; start it again when it was killed or hindered."""
    for _ in range(MOST_STARTS):
        process = subprocess.Popen(
            _command(seed, store, matches), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        processes[number] = process
        _, told = process.communicate(timeout=4 * PATIENCE)
        is_hindered = process.returncode == 1 and any(text in told for text in HINDERED)
        if process.returncode != -signal.SIGKILL and not is_hindered:
            return


@contextmanager
def _killed(kills: list[tuple[int, float]]) -> Iterator[dict[int, Any]]:
    """Give a dictionary for the newest process of each number, and kill them as told."""
    processes: dict[int, Any] = {}
    over = threading.Event()

    def kill() -> None:
        for number, seconds in kills:
            if over.wait(seconds):
                return
            if (process := processes.get(number)) is not None and process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield processes
    finally:
        over.set()
        thread.join()


# ---- gamelore serve ----------------------------------------------------------------------------------------------


class _Server:
    """A server that is started again, on the same port, whenever it was killed."""

    def __init__(self) -> None:
        self.port = 0
        self.is_ready, self.over = threading.Event(), threading.Event()

    def keep_serving(self, number: int, seed: int, store: Path, processes: dict[int, Any]) -> None:
        """Serve until it is over."""
        while not self.over.is_set():
            words = f"serve --player baseline --knowledge {store} --seed {seed} --port {self.port} --json"
            command = [*GAMELORE, *words.split()]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                processes[number] = process
                if told := process.stdout.readline():  # type: ignore[union-attr]  # else it was killed before
                    self.port = int(json.loads(told)["url"].rpartition(":")[2].strip("/"))
                    self.is_ready.set()
                while process.poll() is None and not self.over.wait(0.02):
                    pass
                process.send_signal(signal.SIGINT)


def _serve(folder: Path, example: dict[str, Any]) -> None:
    seeds = [SEED, SEED if example["same"] else SEED + 1]
    servers = [_Server() for _ in seeds]
    with _killed(example["kills"]) as processes:
        threads = [
            threading.Thread(target=server.keep_serving, args=(number, seed, folder / "k.db", processes))
            for number, (server, seed) in enumerate(zip(servers, seeds, strict=True))
        ]
        for thread in threads:
            thread.start()
        try:
            assert all(server.is_ready.wait(PATIENCE) for server in servers)
            matches = min(example["matches"], MOST_SERVED)
            hosts = [_host(server, folder / f"series{number}", matches) for number, server in enumerate(servers)]
            for host in hosts:
                _, told = host.communicate(timeout=8 * PATIENCE)
                assert host.returncode == 0, told
        finally:
            for server, thread in zip(servers, threads, strict=True):
                server.over.set()
                thread.join(2 * PATIENCE)
    _assert_each_once(folder, seeds, len(example["kills"]))


def _host(server: _Server, folder: Path, matches: int) -> subprocess.Popen[str]:
    """A host that plays a series against the server."""
    players = f"--player xplayer=http://127.0.0.1:{server.port} --player oplayer=random"
    clocks = "--startclock 20 --playclock 10"
    words = f"host {GAME} {players} --matches {matches} --record {folder} {clocks} --json"
    return subprocess.Popen([*GAMELORE, *words.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _assert_each_once(folder: Path, seeds: list[int], num_kills: int) -> None:
    """Assert that the learners have each match of the records once, but for those whose end a killed server missed."""
    records = [json.loads(path.read_text()) for path in folder.glob("series*/match-*.json")]
    sound = {record["matchId"] for record in records if not any(error for phase in record["errors"] for error in phase)}
    graph = PositionGraph(gamelore.load(GAME))
    for seed in set(seeds):
        LastingLearner("baseline", knowledge=folder / "k.db", seed=seed).num_matches(graph, 0)  # learns what waits
    with Knowledge(folder / "k.db", create=False) as knowledge:
        assert list(problems(knowledge)) == []
        learners = knowledge.learners()
        assert sorted(learner.seed for learner in learners) == sorted(set(seeds))
        assert not any(knowledge.trajectories(learner) for learner in learners)
    with closing(sqlite3.connect(folder / "k.db")) as connection:
        stored = Counter(match.partition("#")[0] for (match,) in connection.execute("SELECT id FROM match"))
    assert set(stored.values()) == {1}, "a match is counted twice"
    assert stored.keys() <= {record["matchId"] for record in records}
    assert len(sound - stored.keys()) <= num_kills, "a match is lost"
