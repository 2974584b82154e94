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
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from commands import run, stored_matches
from gamelore import load
from gamelore.game.game import Position
from gamelore.learning.store.knowledge import Knowledge
from processes import Process, children, command_of, descendants, wait_until
from reducing import reduced
from wire import GAMELORE, rules, say

GAMES = ("tictactoe", "losetictactoe", "connect3")
VICTIMS = {"worker": 6, "follower": 4, "server": 2, "starting": 1, "host": 3}
"""What is killed, and how often: a child process of the server, the server itself, the server and then the first worker
of the next one while it starts, the host."""
AT_ONCE = 2  # matches of the scripted manager
ABSENT = "start the player first"  # in what a host says that does not reach its player at first
BETWEEN_TRIES = 0.2  # seconds
PATIENCE = 120.0  # seconds; only what hangs takes so long
LAG = 0.01  # seconds by which a kill may seem to come too early: times in records are in milliseconds


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


@dataclass(frozen=True)
class Match:
    """A match that was played to its end. Times are in seconds since 1970.

    begin  time before START
    last   time after the last move
    over   time after the reply to STOP
    """

    id: str
    is_error_free: bool
    begin: float
    last: float
    over: float


class Kill(NamedTuple):
    """What was killed, and the times before and after it, in seconds since 1970."""

    victim: str
    begin: float
    end: float


class Server:
    """`gamelore serve` with a learner and a store, killed and started again at the same port."""

    def __init__(self, store: Path, log: IO[str]) -> None:
        self.port = 0
        self._store, self._log = store, log
        self._process: subprocess.Popen[str] | None = None
        self._left: list[Process] = []

    def start(self, *, loses_a_worker: bool = False) -> None:
        """Start the server, and wait until it listens. Kill its first worker as soon as it has one, if told so."""
        command = (*GAMELORE, "serve", "--player", "baseline", "--knowledge", self._store, "--json")
        options = ("--matches-at-once", 2 * AT_ONCE, "--port", self.port)
        process = subprocess.Popen(
            list(map(str, (*command, *options))), stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._process = process
        if loses_a_worker:
            wait_until(lambda: bool(self.workers()), "a first worker", PATIENCE)
            os.kill(self.workers()[0], signal.SIGKILL)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"expected a server that listens, got one that ended: {process.wait(PATIENCE)}"
        self.port = int(json.loads(line)["url"].rpartition(":")[2])

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.poll() is None, f"expected the server to live, it ended: {self._process.returncode}"
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None

    def workers(self) -> list[int]:
        return [pid for pid in children(self.pid) if "gamelore.net.worker" in command_of(pid)]

    def followers(self) -> list[int]:
        return [pid for pid in children(self.pid) if "gamelore.net.follower" in command_of(pid)]

    def end(self, how: signal.Signals) -> None:
        """Send a signal that ends the server. What it leaves behind must end by itself, see `assert_alone`."""
        assert self._process is not None
        process = self._process
        self._left += descendants(self.pid)
        process.send_signal(how)
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()
        self._process = None

    def assert_alone(self) -> None:
        """Assert that no process is left of servers that have ended."""
        wait_until(lambda: not any(child.is_alive for child in self._left), "no process to be left", PATIENCE)
        self._left.clear()


@cache
def _start_of(name: str) -> Position:
    return load(name).start()


class Scripted:
    """A manager in this process: it plays AT_ONCE matches at a time until it is told to end."""

    def __init__(self, example: dict[str, Any], server: Server, folder: Path) -> None:
        self._server, self._game = server, example["game"]
        self._name, self._seed = f"scripted.{example['seed']}.{time.time_ns()}", example["seed"]

    def play(self, over: threading.Event) -> list[Match]:
        """Return the matches that were played. Each of AT_ONCE threads plays one more after `over`."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            done = [threads.submit(self._play_on, f"{self._name}.{number}", over) for number in range(AT_ONCE)]
        return [match for thread in done for match in thread.result()]

    @property
    def has_begun(self) -> bool:
        return True

    def kill(self) -> bool:
        return False

    def may_have(self, match: str) -> bool:
        """Whether a match in the store can be one of this manager that it has not told of."""
        return match.startswith(self._name)

    def _play_on(self, name: str, over: threading.Event) -> list[Match]:
        random, matches = Random(f"{self._seed}{name[-1]}"), []
        while True:
            is_last = over.is_set()
            matches.append(self._match(f"{name}.{len(matches)}", random))
            if is_last:
                return matches

    def _match(self, name: str, random: Random) -> Match:
        """Play a match to its end, as managers do: a random move takes the place of a missing one."""
        begin = time.time()
        position, shown, errors = _start_of(self._game), "NIL", 0
        role = random.choice(list(position.legal))
        self._start(name, role)
        while not position.is_terminal:
            joint = {name: random.choice(moves) for name, moves in position.legal.items()}
            reply = self._say(f"( PLAY {name} {shown} )")
            errors += reply not in position.legal[role]
            joint[role] = reply if reply in position.legal[role] else joint[role]
            position, shown = position.play(joint), f"( {' '.join(joint.values())} )"
        last = time.time()
        self._say(f"( STOP {name} {shown} )")
        return Match(name, not errors, begin, last, time.time())

    def _start(self, name: str, role: str) -> None:
        """Send START until the server is there and takes the match."""
        message = f"( START {name} {role} ( {rules(self._game)} ) 60 20 )"
        wait_until(lambda: self._say(message) == "ready", "a match that begins", PATIENCE)

    def _say(self, message: str) -> str:
        """Return the reply to a message; empty if there is none."""
        try:
            return say(self._server.port, message)
        except (OSError, ValueError, AssertionError):  # no connection, or a reply that was cut off
            return ""


class Host:
    """`gamelore host` in a process of its own, started again until its series has all its matches."""

    NUM_MATCHES = 25

    def __init__(self, example: dict[str, Any], server: Server, folder: Path) -> None:
        roles = [f"{role}=random" for role in _start_of(example["game"]).legal]
        mine = example["seed"] % len(roles)
        roles[mine] = roles[mine].replace("random", f"http://127.0.0.1:{server.port}")
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
    is_error_free = not any(error for phase in record["errors"] for error in phase)
    return Match(record["matchId"], is_error_free, record["startTime"] / 1000, record["stateTimes"][-1] / 1000, over)


MANAGERS: dict[str, type[Scripted] | type[Host]] = {"scripted": Scripted, "host": Host}


class Killing:
    """Examples one after the other, with one server and one store."""

    def __init__(self, folder: Path, log: IO[str]) -> None:
        self.figures = Figures()
        self._folder = folder
        self._store = folder / "knowledge.db"
        self._server = Server(self._store, log)
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
            self._server.end(signal.SIGKILL)
            yield Kill("server", begin, time.time())
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
            figures.error_free += match.is_error_free
            figures.stored += stored[match.id]
            if match.is_error_free and not stored[match.id]:
                assert _is_cut_off(match, kills), f"expected the match {match} in the store, it is lost; {kills}"
                figures.cut_off += 1
        strange = {match for match in stored if manager.may_have(match)} - {match.id for match in matches}
        assert not strange, f"expected only matches that were played to their end in the store, got {strange}"
        self._server.assert_alone()
        self._assert_whole()

    def _assert_whole(self) -> None:
        run("knowledge", "check", "--knowledge", self._store)
        with Knowledge(self._store, create=False) as knowledge:
            for learner in knowledge.learners():
                assert len(knowledge.matches(learner)) == learner.num_matches


def _is_cut_off(match: Match, kills: list[Kill]) -> bool:
    """Whether the server was killed after the last move and before the reply to STOP."""
    return any(
        match.last - LAG <= kill.end and kill.begin <= match.over + LAG for kill in kills if kill.victim == "server"
    )


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
