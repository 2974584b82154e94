"""Kills at random moments: of the player server, its processes and the host. No match is lost, none counted twice.

A manager plays short matches against `gamelore serve` with a learner. Meanwhile processes are killed; what should run
all the time is started again. A match that ended without an error is in the store once, unless the server was killed
between its last move and the reply to STOP: only the server knew the match then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, Any

from commands import run, stored_matches
from gamelore.learning.store.knowledge import KnowledgeStore
from processes import wait_until
from reducing import reduced
from restarted_server import Kill, RestartedServer, is_cut_off
from scripted_manager import Match, ScriptedManager, start_of
from wire import GAMELORE, PATIENCE

GAMES = ("tictactoe", "losetictactoe", "connect3")
VICTIMS = {"worker": 6, "follower": 4, "server": 2, "starting": 1, "host": 3}
"""What is killed, and how often: a child process of the server, the server itself, the server and then the first worker
of the next one while it starts, the host."""
AT_ONCE = 2  # matches of the scripted manager
ABSENT = "start the player first"  # in what a host says that does not reach its player at first
BETWEEN_TRIES = 0.2  # seconds


def drawn(random: Random) -> dict[str, Any]:
    """Draw who leads the matches, and after which times, in seconds, what is killed."""
    manager = random.choice(("scripted", "host"))
    victims = {name: weight for name, weight in VICTIMS.items() if name != "host" or manager == "host"}
    kills = [
        {
            "after": random.choice((0.0, random.uniform(0, 0.1), random.uniform(0, 1.0))),
            "whom": random.choices(list(victims), list(victims.values()))[0],
            "number": random.randrange(100),
        }
        for _ in range(random.randint(4, 10))
    ]
    names = {"game": random.choice(GAMES), "seed": random.randrange(2**32), "scrambles": random.random() < 0.3}
    return {"manager": manager, **names, "kills": kills}


@dataclass
class Figures:
    """What came of all examples so far.

    cut_off  error-free matches that are not in the store, because the server was killed before it had heard of the end
    """

    kills: Counter[str] = field(default_factory=Counter)
    matches: int = 0
    error_free: int = 0
    stored: int = 0
    cut_off: int = 0

    def __str__(self) -> str:
        victims = ", ".join(f"{number} of {name}" for name, number in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({victims}), {self.matches} matches, {self.error_free} of them without error, "
            f"{self.stored} in the store, {self.cut_off} cut off with their server, none lost or double"
        )


class Host:
    """`gamelore host` in a process of its own, started again until its series has all its matches."""

    NUM_MATCHES = 25

    def __init__(self, example: dict[str, Any], server: RestartedServer, folder: Path) -> None:
        roles = [f"{role}=random" for role in start_of(example["game"]).legal]
        mine = example["seed"] % len(roles)
        roles[mine] = roles[mine].replace("random", server.url)
        players = [text for role in roles for text in ("--player", role)]
        clocks = ("--startclock", 60, "--playclock", 20, "--give-up", 0)
        options = ("--matches", self.NUM_MATCHES, "--record", folder, *(["--scramble"] if example["scrambles"] else []))
        command = (*GAMELORE, "host", example["game"], *players, *clocks, *options, "--json")
        self._command, self._folder = list(map(str, command)), folder
        self._process: subprocess.Popen[str] | None = None

    def play(self, over: threading.Event) -> list[Match]:
        """Return the matches of the series. Whatever is killed, it has the number of matches that was asked for."""
        summary = self._last_words()
        played = self._records()
        assert summary["matches"] == len(played) == self.NUM_MATCHES
        assert len({record["matchId"] for record in played}) == self.NUM_MATCHES
        run("replay", self._folder)
        overs = [*(record["startTime"] / 1000 for record in played[1:]), time.time()]
        return [_match_of(record, over) for record, over in zip(played, overs, strict=True) if record["isCompleted"]]

    @property
    def has_begun(self) -> bool:
        """Whether the host has begun its first match."""
        journal = self._folder / "journal.jsonl"
        return journal.exists() and journal.stat().st_size > 0

    def kill(self) -> bool:
        """Kill the host, if it runs; it is started again."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.kill()
        return True

    def may_have(self, match: str) -> bool:
        return match.startswith(json.loads((self._folder / "series.json").read_text())["token"])

    def _last_words(self) -> Any:
        """Return what the host prints that comes to the end of the series."""
        while True:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                out, errors = self._process.communicate(timeout=4 * PATIENCE)
            finally:
                self._process.kill()
            if ABSENT in errors:  # it asks who is there before it plays
                time.sleep(BETWEEN_TRIES)
            elif self._process.returncode != -signal.SIGKILL:
                assert self._process.returncode == 0, (self._process.returncode, out, errors)
                return json.loads(out)

    def _records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self._folder.glob("match-*.json"))]


def _match_of(record: dict[str, Any], over: float) -> Match:
    errors = tuple(error for phase in record["errors"] for error in phase if error)
    return Match(record["matchId"], errors, None, record["startTime"] / 1000, record["stateTimes"][-1] / 1000, over)


class Scripted(ScriptedManager):
    """A manager in this process."""

    has_begun = True

    def __init__(self, example: dict[str, Any], server: RestartedServer, folder: Path) -> None:
        super().__init__(server.send, example["game"], example["seed"], AT_ONCE)

    def kill(self) -> bool:
        return False


MANAGERS: dict[str, type[Scripted] | type[Host]] = {"scripted": Scripted, "host": Host}


class Killing:
    """Examples one after the other, with one server and one store."""

    def __init__(self, folder: Path, log: IO[str]) -> None:
        self.figures = Figures()
        self._folder = folder
        self._store = folder / "knowledge.db"
        self._server = RestartedServer(self._store, log, "--matches-at-once", 2 * AT_ONCE)
        self._num_examples = 0

    def __call__(self, example: dict[str, Any]) -> None:
        """Play while processes are killed. Raise AssertionError if a match is lost or counted twice."""
        if not self._server.runs:
            self._server.start()
        self._num_examples += 1
        manager = MANAGERS[example["manager"]](example, self._server, self._folder / f"series{self._num_examples}")
        over = threading.Event()
        kills: list[Kill] = []
        with ThreadPoolExecutor(1) as thread:
            playing = thread.submit(manager.play, over)
            try:
                wait_until(lambda: manager.has_begun or playing.done(), "matches that begin", PATIENCE)
                for kill in example["kills"]:
                    time.sleep(kill["after"])
                    if playing.done():
                        break
                    kills += self._kill(kill["whom"], kill["number"], manager)
            finally:
                over.set()
                self.figures.kills.update(kill.victim for kill in kills)
            matches = playing.result()
        self._assert_each_once(matches, kills, manager)

    def close(self) -> None:
        """End the server. Assert that the store is whole."""
        if self._server.runs:
            self._server.end(signal.SIGINT)
            self._server.assert_alone()
            self._assert_whole()

    def give_up(self) -> None:
        """Kill the server without any check."""
        with suppress(AssertionError):
            self._server.end(signal.SIGKILL)

    def _kill(self, whom: str, number: int, manager: Scripted | Host) -> Iterator[Kill]:
        """Kill a process, and start it again if it is not one that the server replaces. Yield what was killed."""
        begin = time.time()
        if whom == "host":
            if manager.kill():
                yield Kill(whom, begin, time.time())
        elif whom in ("server", "starting"):
            yield self._server.kill()
            self._server.start(loses_a_worker=whom == "starting")
            if whom == "starting":
                yield Kill("worker", begin, time.time())
        else:
            pids = self._server.workers() if whom == "worker" else self._server.followers()
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(pids[number % len(pids)], signal.SIGKILL)
                    yield Kill(whom, begin, time.time())

    def _assert_each_once(self, matches: list[Match], kills: list[Kill], manager: Scripted | Host) -> None:
        """Assert that each match is in the store once, or not at all with a reason; and that there are no others."""
        stored = stored_matches(self._store)
        figures = self.figures
        figures.matches += len(matches)
        for match in matches:
            assert stored[match.id] <= 1, f"expected the match {match.id} once in the store, it is there twice"
            figures.error_free += not match.errors
            figures.stored += stored[match.id]
            if not match.errors and not stored[match.id]:
                assert is_cut_off(match, kills), f"expected the match {match} in the store, it is lost; {kills}"
                figures.cut_off += 1
        strange = {match for match in stored if manager.may_have(match)} - {match.id for match in matches}
        assert not strange, f"expected only matches that were played to their end in the store, got {strange}"
        self._server.assert_alone()
        self._assert_whole()

    def _assert_whole(self) -> None:
        run("knowledge", "check", "--knowledge", self._store)
        with KnowledgeStore(self._store, create=False) as knowledge:
            for learner in knowledge.learners():
                assert len(knowledge.matches(learner)) == learner.num_matches


# ---- the fuzzer -------------------------------------------------------------------------------------------------


@contextmanager
def session() -> Iterator[Callable[[Any], None]]:
    """One server and store for many examples."""
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as log:
        killing = Killing(Path(folder), log)
        try:
            yield killing
            killing.close()
            assert "Traceback" not in (Path(folder) / "log").read_text()
        except BaseException:
            killing.give_up()
            print((Path(folder) / "log").read_text()[-5000:], flush=True)
            raise


def assert_borne(example: dict[str, Any]) -> None:
    """Play and kill with a server and a store of their own."""
    with session() as check:
        check(example)


def fewer_kills(example: dict[str, Any], fails: Callable[[Any], bool]) -> dict[str, Any]:
    """Leave out all kills that are not needed."""
    kills = reduced(example["kills"], lambda kills: fails({**example, "kills": list(kills)}))
    return {**example, "kills": list(kills)}
