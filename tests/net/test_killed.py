"""Both ends as processes, and one of them killed: no match is lost, none counted twice, and the knowledge is whole."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from commands import run
from gamelore.learning.store.knowledge import KnowledgeStore
from wire import GAMELORE, PATIENCE, served

MATCHES = 24


def host(port: int, folder: Path) -> subprocess.Popen[str]:
    """A host in a process of its own that plays a series to its end."""
    players = ("--player", f"xplayer=http://127.0.0.1:{port}", "--player", "oplayer=random")
    options = ("--matches", str(MATCHES), "--record", str(folder), "--startclock", "20", "--playclock", "10")
    return subprocess.Popen(
        [*GAMELORE, "host", "tictactoe", *players, *options, "--json"], stdout=subprocess.PIPE, text=True
    )


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("match-*.json"))]


def is_faulty(record: dict[str, Any]) -> bool:
    return any(error for phase in record["errors"] for error in phase)


def wait_for_records(folder: Path, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(list(folder.glob("match-*.json"))) < number:
        assert time.monotonic() < deadline, "the host plays no matches"
        time.sleep(0.01)


def told(process: subprocess.Popen[str]) -> Any:
    """What a host printed, once it has come to its end."""
    out, _ = process.communicate(timeout=4 * PATIENCE)
    assert process.returncode == 0
    return json.loads(out)


def learned(store: Path) -> Counter[str]:
    """How often the one learner of a store has learned from each match."""
    with KnowledgeStore(store, create=False) as knowledge:
        (learner,) = knowledge.learners()
        assert len(knowledge.matches(learner)) == learner.num_matches
        assert not knowledge.trajectories(learner)
    connection = sqlite3.connect(store)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return Counter(match.partition("#")[0] for (match,) in connection.execute("SELECT id FROM match"))
    finally:
        connection.close()


def test_a_player_killed_and_started_again(tmp_path: Path) -> None:
    store, folder = tmp_path / "knowledge.db", tmp_path / "series"
    options = ("--player", "baseline", "--knowledge", store)
    with served(*options) as (player, port):
        playing = host(port, folder)
        wait_for_records(folder, 6)
        os.kill(player.pid, signal.SIGKILL)
        player.wait(PATIENCE)
    with served(*options, "--port", port):
        summary = told(playing)
    played = records(folder)
    assert summary["matches"] == len(played) == MATCHES
    assert sum(map(is_faulty, played)) <= 1  # the others wait for their player in the startclock
    known = learned(store)
    assert set(known.values()) == {1}
    assert known.keys() <= {record["matchId"] for record in played}
    assert len(known) >= MATCHES - 2  # it may be killed while it plays, or before it hears of the end
    run("replay", folder)


def test_a_host_killed_and_started_again(tmp_path: Path) -> None:
    store, folder = tmp_path / "knowledge.db", tmp_path / "series"
    with served("--player", "baseline", "--knowledge", store) as (_, port):
        first = host(port, folder)
        wait_for_records(folder, 6)
        first.kill()
        first.communicate()
        assert len(records(folder)) < MATCHES
        summary = told(host(port, folder))
    played = records(folder)
    assert summary["matches"] == len(played) == MATCHES
    assert not any(map(is_faulty, played))
    assert learned(store) == Counter(record["matchId"] for record in played)
