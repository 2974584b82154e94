"""Two processes on one store at the same time, killed and started again: no match is lost, none is counted twice.

Two `gamelore learn` end with what each would have learned alone. Two `gamelore serve` keep every match exactly once
whose STOP they answered.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import gamelore
from gamelore.learning.exchange import problems
from gamelore.learning.session import LastingLearner
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.players.position_graph import PositionGraph
from hostile_disks import learned
from restarted_server import Kill, RestartedServer
from scripted_manager import Match, ScriptedManager
from wire import GAMELORE, PATIENCE

SEED = 7
GAME = "tictactoe"
MOST_SERVED = 24  # matches against each server, unless the kills take longer
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


def _serve(folder: Path, example: dict[str, Any]) -> None:
    """Play against both servers, kill them and start them again, and look at the account of each."""
    store, seeds = folder / "k.db", [SEED, SEED if example["same"] else SEED + 1]
    over, kills = threading.Event(), list[list[Kill]]([[], []])
    with (folder / "log").open("w") as log, ThreadPoolExecutor(len(seeds)) as threads:
        servers = [RestartedServer(store, log, "--seed", seed) for seed in seeds]
        managers = [ScriptedManager(server.send, GAME, number) for number, server in enumerate(servers)]
        try:
            for server in servers:
                server.start()
            at_least = min(example["matches"], MOST_SERVED) // 2  # in each of two threads
            played = [threads.submit(manager.play, over, at_least) for manager in managers]
            try:
                for number, seconds in example["kills"]:
                    time.sleep(seconds)
                    kills[number].append(servers[number].kill())
                    servers[number].launch()  # the next kill may come before it listens
            finally:
                over.set()
            matches = [playing.result() for playing in played]
            for server in servers:
                server.end(signal.SIGINT)
                server.assert_alone()
        finally:
            for server in servers:
                if server.runs:
                    server.end(signal.SIGKILL)
    log_text = (folder / "log").read_text()
    assert "Traceback" not in log_text, log_text[-5000:]
    assert_each_once(_learned_matches(store, set(seeds)), list(zip(matches, kills, strict=True)))


def assert_each_once(stored: Counter[str], played: list[tuple[list[Match], list[Kill]]]) -> None:
    """Assert that the store has each finished match once, others at most once, and none else.

    stored: how often the store has each match.
    played: for each server, the matches against it, and how often it was killed.
    """
    for matches, kills in played:
        for match in matches:
            assert stored[match.id] <= 1, f"expected the match {match.id} once in the store, got {stored[match.id]}"
            assert stored[match.id] or not match.is_finished, f"expected the match {match} in the store, it is lost"
            assert match.is_finished or _is_hit(match, kills), f"expected an answer to STOP of {match}, got none"
    strange = stored.keys() - {match.id for matches, _ in played for match in matches}
    assert not strange, f"expected only matches that were played in the store, got {strange}"


def _is_hit(match: Match, kills: list[Kill]) -> bool:
    """Whether the server was killed during the match."""
    return any(match.begin <= kill.end and kill.begin <= match.over for kill in kills)


def _learned_matches(store: Path, seeds: set[int]) -> Counter[str]:
    """Let the learners learn what waits. Return how often the store has each match, of whatever learner."""
    graph = PositionGraph(gamelore.load(GAME))
    for seed in seeds:
        LastingLearner("baseline", knowledge=store, seed=seed).num_matches(graph, 0)
    with KnowledgeStore(store, create=False) as knowledge:
        assert list(problems(knowledge)) == []
        learners = knowledge.learners()
        assert {learner.seed for learner in learners} <= seeds
        assert not any(knowledge.trajectories(learner) for learner in learners)
    with closing(sqlite3.connect(store)) as connection:
        return Counter(match.partition("#")[0] for (match,) in connection.execute("SELECT id FROM match"))
