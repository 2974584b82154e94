from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from gamelore import GameloreError, GDLSemanticError, GDLSyntaxError, KnowledgeError, load
from gamelore.analysis.isomorphism import scramble
from gamelore.catalogue import player
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.match import MatchState
from gamelore.matches.opponents import OpponentSettings
from gamelore.net import follower, pool, worker
from gamelore.net.belief import PlayerMatches
from gamelore.net.pool import (
    GAMES,
    IDLE,
    START_TRIES,
    TEXTS,
    GameSeats,
    Request,
    RunningMatch,
    WorkerDied,
    WorkerProcess,
    Workers,
    WorkerSettings,
)
from gamelore.net.requests import answer as _answer
from gamelore.net.worker import Worker
from gamelore.players.position_graph import PositionGraph
from gamelore.rulesheets import path, read
from wire import PATIENCE

TICTACTOE = path("tictactoe").read_text(encoding="utf-8")
FIRST = ("(mark 1 1)", "noop")
SECOND = ("noop", "(mark 2 1)")
ROW = [FIRST, SECOND, ("(mark 1 2)", "noop"), ("noop", "(mark 2 2)"), ("(mark 1 3)", "noop")]

COUNTING = """
(role counter) (init (at 0)) (succ 0 1) (succ 1 2) (succ 2 3)
(legal counter go) (legal counter {other})
(<= (next (at ?n)) (true (at ?m)) (succ ?m ?n) (does counter go))
(<= (next (at ?m)) (true (at ?m)) (does counter {other}))
(<= terminal (true (at 3))) (<= (goal counter 100) (true (at 3)))
"""

DOUBLING = """
(role r) (init (f 0)) (legal r x) (goal r 100)
(<= terminal (true (f never)))
(<= (next (f (g ?x ?x))) (true (f ?x)))
"""

PLAYERS = """
import os, sys, time
import numpy as np
from gamelore import GameloreError
from gamelore.players.player import Player
from gamelore.catalogue import player

class OddError(GameloreError):
    pass

class Ill(Player):
    '''An egreedy one that does in its second turn of a match what the file `how` says; the file is empty then.'''
    def __init__(self, how):
        self.how = how
        self.egreedy = player("egreedy:epsilon=0.3")
    def choose(self, turn):
        how = open(self.how).read() if turn.plies[0] >= 2 else ""
        open(self.how, "w" if how else "r").close()
        if how == "hang":
            time.sleep(60)
        elif how == "die":
            if os.fork() == 0:
                time.sleep(60)
            os._exit(3)
        elif how == "talk":
            print('{"ok": "(mark 3 3)"}', flush=True)
            os.write(1, b'{"ok": "(mark 3 2)"}\\n')
            os.system("echo '{}'")
            assert sys.stdin.readline() == ""
        elif how == "grow":
            self.much = bytearray(1 << 31)
        elif how == "illegal":
            return np.full(len(turn.rows), 99)
        elif how == "raise":
            1 / 0
        elif how == "odd":
            raise OddError("an error of one's own")
        return self.egreedy.choose(turn)
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a file with players of one's own."""
    file = tmp_path_factory.mktemp("players") / "own.py"
    file.write_text(dedent(PLAYERS))
    return str(file)


@pytest.fixture(scope="module")
def how(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says what is wrong with the player `Ill`."""
    return tmp_path_factory.mktemp("players") / "how"


@pytest.fixture(scope="module")
def workers(runner: asyncio.Runner, own: str, how: Path) -> Iterator[Workers]:
    """Those of the player `Ill`. Most tests share them, for a process takes long to start."""
    how.write_text("")
    spec = f"{own}:Ill:how={how}"
    workers = Workers(WorkerSettings(spec, {"seed": 3}, memory=1 << 30, prepare_seconds=20, processes=2, patience=0.2))
    runner.run(workers.__aenter__())
    yield workers
    runner.run(workers.close())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The knowledge of the learner in `learning`."""
    return tmp_path_factory.mktemp("learned") / "there.db"


@pytest.fixture(scope="module")
def learning(runner: asyncio.Runner, store: Path) -> Iterator[Workers]:
    """Those of a learner."""
    workers = Workers(WorkerSettings("baseline", {"knowledge": store, "opponent": "egreedy", "seed": 7}))
    runner.run(workers.__aenter__())
    assert workers.is_lasting
    yield workers
    runner.run(workers.close())


def processes(workers: Workers) -> list[int]:
    found = [process._transport.get_pid() for process in workers._processes if process._transport is not None]
    return [pid for pid in found if pid is not None]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill(match: RunningMatch) -> None:
    """The process in which it runs, or ran."""
    assert match._process is not None
    assert match._process._transport is not None
    match._process._transport.send_signal(signal.SIGKILL)


def egreedy() -> PlayerMatches:
    """A table of the player that `Ill` is while nothing is wrong."""
    return PlayerMatches(load("tictactoe"), player("egreedy:epsilon=0.3"), seed=3)


def choice(number: int | None, *joint: Sequence[str]) -> str:
    """What xplayer chooses in that match after these."""
    table = egreedy()
    table.start("m", "xplayer", number)
    for moves in joint:
        table.advance("m", moves)
    return table.choose("m")


async def played(match: RunningMatch, moves: Sequence[Sequence[str]]) -> list[str]:
    """The legal moves after these joint moves."""
    at = await match.advance(None)
    for joint in moves:
        at = await match.advance(joint)
    assert at.ply == len(moves)
    return list(at.legal)


# what a match is


def test_it_plays_as_a_table_does(runner, workers) -> None:
    table = egreedy()

    async def series() -> None:
        for number in range(3):
            match = await workers.start("m", "xplayer", TICTACTOE)
            assert (match.game, match.number, table.start("m", "xplayer")) == ("tictactoe", number, number)
            state, joint = MatchState(PositionGraph(table.game)), None
            while state.end is None:
                assert await match.advance(joint) == table.advance("m", joint)
                mine = await match.choose(10) if state.legal(0) else ""
                assert mine == table.choose("m")
                joint = (mine, state.legal(1)[0])
                for role, move in enumerate(joint):
                    state.submit(role, move)
            assert await match.stop(joint) == table.stop("m", joint)
        again = await workers.start("m", "xplayer", TICTACTOE)
        assert again.number == table.start("m", "xplayer") == 3
        await again.abort()

    runner.run(series())


def test_a_process_is_told_the_startclock_and_its_end(runner, workers, monkeypatch: pytest.MonkeyPatch) -> None:
    told, ask = dict[str, float](), WorkerProcess.ask

    async def noted(self: WorkerProcess, do: str, seconds: float, /, **given: Any) -> Any:
        told.update({name: given[name] for name in ("deadline", "startclock") if do == "start"})
        return await ask(self, do, seconds, **given)

    async def test() -> None:
        monkeypatch.setattr(WorkerProcess, "ask", noted)
        clock = {"deadline": time.monotonic() + 7.5, "startclock": 10}
        match = await workers.start("m", "xplayer", TICTACTOE, **clock)
        assert told == clock
        await match.abort()

    runner.run(test())


def test_scrambled_rules_are_recognised_and_moves_are_in_their_words(runner, workers) -> None:
    sheet, _ = read("tictactoe")
    theirs, renaming = scramble(sheet, np.random.default_rng(5))

    async def test() -> None:
        openings: list[tuple[str, ...]] = []
        match = await workers.start("m", renaming.theirs("oplayer").upper(), str(theirs), openings.append)
        assert openings == [(renaming.theirs("noop"),)]
        assert match.game == "tictactoe"
        joint = tuple(map(renaming.theirs, FIRST))
        legal = await played(match, [(joint[0].upper(), joint[1])])
        assert sorted(legal) == sorted(renaming.theirs(move) for move in table_legal(FIRST))
        assert await match.choose(10) in legal
        await match.abort()

    runner.run(test())


def table_legal(*joint: Sequence[str]) -> list[str]:
    """What oplayer may do after these."""
    table = PlayerMatches(load("tictactoe"), player("random"))
    table.start("m", "oplayer")
    for moves in joint:
        at = table.advance("m", moves)
    return list(at.legal)


def test_a_new_game_is_the_same_one_in_other_words(runner, workers) -> None:
    async def test() -> None:
        names = set()
        for number, other in enumerate(["stay", "wait", "rest"]):
            match = await workers.start("m", "counter", COUNTING.format(other=other))
            assert match.number == number
            assert await played(match, []) == ["go", other]
            names.add(match.game)
            await match.abort()
        assert len(names) == 1
        assert names.pop().startswith("game-")
        assert (await workers.prepare(COUNTING.format(other="idle"))).startswith("game-")

    runner.run(test())


def test_spelling_is_as_received(runner, workers) -> None:
    async def test() -> None:
        match = await workers.start("m", "XPLAYER", TICTACTOE.upper())
        assert (await played(match, []))[0] == "(MARK 1 1)"
        await match.abort()

    runner.run(test())


def test_what_is_told_is_told_though_nobody_waits(runner, workers) -> None:
    async def test() -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        telling = asyncio.create_task(match.advance(FIRST))
        await asyncio.sleep(0)
        telling.cancel()
        assert (await match.advance(SECOND)).ply == 2
        ended = await asyncio.gather(match.stop(None), match.stop(None))
        assert ended[0] == ended[1]
        with pytest.raises(GameloreError, match="expected a running match, got m, which is over"):
            await match.advance(None)

    runner.run(test())


def test_matches_share_processes(runner, workers) -> None:
    async def test() -> None:
        begun = await asyncio.gather(*(workers.start(f"m{i}", "xplayer", TICTACTOE) for i in range(4)))
        assert len({match.number for match in begun}) == 4
        assert sorted(process.num_matches for process in workers._processes if process.num_matches) == [2, 2]
        for match in begun:
            assert (await match.stop(FIRST)).end is None
        assert not any(process.num_matches for process in workers._processes)

    runner.run(test())


def test_who_looks_at_new_rules_holds_nobody_up(runner, workers, monkeypatch) -> None:
    async def never(process: WorkerProcess, rules: str) -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        await workers.prepare(TICTACTOE)
        monkeypatch.setattr(workers, "_look", never)
        looking = asyncio.create_task(workers.prepare("(role r)"))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(workers.prepare(TICTACTOE), PATIENCE) == "tictactoe"
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    runner.run(test())


def test_a_new_text_does_not_wait_for_others(runner, workers, monkeypatch) -> None:
    look = workers._look

    async def looks(process: WorkerProcess, rules: str) -> tuple[str, GameSeats]:
        if rules.startswith("(role r"):
            await asyncio.Event().wait()
        return await look(process, rules)

    async def test() -> None:
        monkeypatch.setattr(workers, "_look", looks)
        waiting = [asyncio.create_task(workers.prepare(f"(role r{i})" + " " * 99_999)) for i in range(3)]
        await asyncio.sleep(0)
        assert (await asyncio.wait_for(workers.prepare(COUNTING.format(other="brief")), PATIENCE)).startswith("game-")
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    runner.run(test())


def test_a_long_look_lets_another_process_start(runner, workers, monkeypatch) -> None:
    async def test() -> None:
        looking_at = await workers._take_spare()
        workers._give_back(looking_at)
        looking_at = workers._spare
        pid = looking_at._transport.get_pid()
        monkeypatch.setattr(pool, "QUICK_LOOK", 0.0)
        os.kill(pid, signal.SIGSTOP)
        try:
            look = asyncio.create_task(workers._compared(COUNTING.format(other="longer")))
            async with asyncio.timeout(PATIENCE):
                while workers._spare in (None, looking_at):
                    await asyncio.sleep(0.01)
        finally:
            os.kill(pid, signal.SIGCONT)
        await look

    runner.run(test())


def test_a_dead_process_does_not_take_the_place_of_one_that_starts(runner, workers) -> None:
    async def test() -> None:
        looking_at = await workers._take_spare()
        workers._refill()
        starting = workers._spare
        looking_at.kill("a test")
        workers._give_back(looking_at)
        assert workers._spare is starting
        assert starting.is_alive
        await starting.answer(starting.hello)

    runner.run(test())


def test_two_texts_of_a_new_game_at_the_same_time_are_one_game(runner, workers, monkeypatch) -> None:
    look, looked = workers._look, []
    both = asyncio.Event()

    async def looks(process: WorkerProcess, rules: str) -> tuple[str, GameSeats]:
        """Examine a text; the first two examinations end when both are done."""
        looked.append(rules)
        result = await look(process, rules)
        if len(looked) >= 2:
            both.set()
        await both.wait()
        return result

    async def test() -> None:
        monkeypatch.setattr(workers, "_look", looks)
        texts = [COUNTING.replace("at", "place").format(other=other) + "(another thing)" for other in ("one", "two")]
        games = await asyncio.gather(*map(workers._recognised, texts))
        assert len(looked) == 3
        assert games[0] is games[1]
        assert games[0].new_games[0][2] in texts

    runner.run(test())


def test_a_process_that_is_too_slow_to_start_is_not_tried_again(own, caplog, monkeypatch) -> None:
    monkeypatch.setattr(pool, "HELLO_SECONDS", 0.01)

    async def test() -> None:
        async with Workers(WorkerSettings(f"{own}:Ill:how={own}", memory=1 << 30)):
            raise AssertionError("not to be reached")

    with pytest.raises(WorkerDied, match=r"more than its 0.01 s for the request hello"):
        asyncio.run(test())
    assert not caplog.records


@pytest.mark.parametrize("num_killed", [1, START_TRIES])
def test_processes_killed_while_they_start_are_replaced_but_not_without_end(own, caplog, num_killed) -> None:
    async def kill_first(workers: Workers) -> None:
        killed: set[int] = set()
        while len(killed) < num_killed:
            for pid in set(processes(workers)) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            await asyncio.sleep(0.01)

    async def test() -> None:
        workers = Workers(WorkerSettings(f"{own}:Ill:how={own}", memory=1 << 30))
        killing = asyncio.create_task(kill_first(workers))
        try:
            async with workers:
                assert len(processes(workers)) == 1
        finally:
            await killing

    if num_killed < START_TRIES:
        asyncio.run(test())
    else:
        with pytest.raises(WorkerDied, match="the process died"):
            asyncio.run(test())
    told = [record.getMessage() for record in caplog.records]
    assert sum("died while it started" in line for line in told) == min(num_killed, START_TRIES - 1)


def killing(monkeypatch: pytest.MonkeyPatch, request: str, number: int) -> list[WorkerProcess]:
    """Send this signal to the first process that gets such a request. Return those that got it."""
    killed: list[WorkerProcess] = []
    post = WorkerProcess.post

    def posts(process: WorkerProcess, do: str, seconds: float, /, **given: Any) -> Request:
        posted = post(process, do, seconds, **given)
        if do == request and not killed:
            killed.append(process)
            assert process._transport is not None
            process._transport.send_signal(number)
        return posted

    monkeypatch.setattr(WorkerProcess, "post", posts)
    return killed


@pytest.mark.parametrize("request_", ["recognise", "prepare", "start"])
def test_a_process_killed_before_the_match_begins_is_replaced(runner, workers, monkeypatch, request_) -> None:
    killed = killing(monkeypatch, request_, signal.SIGKILL)

    async def test() -> None:
        match = await workers.start("m", "xplayer", f"{TICTACTOE}; {request_}")
        assert len(await played(match, [FIRST])) == 1
        assert len(killed) == 1
        assert match._process not in killed
        await match.abort()

    runner.run(test())


def test_a_process_that_exceeds_a_limit_before_the_match_begins_is_not_replaced(runner, workers, monkeypatch) -> None:
    killed = killing(monkeypatch, "prepare", signal.SIGXCPU)
    with pytest.raises(WorkerDied, match="20 s of processor time; allow more time"):
        runner.run(workers.start("m", "xplayer", f"{TICTACTOE}; over the limit"))
    assert len(killed) == 1


def test_a_match_given_up_before_it_begins_leaves_a_process_that_had_others(runner, workers) -> None:
    async def test() -> None:
        rules = COUNTING.format(other="wait")
        first = await workers.start("m", "counter", rules)
        process = first._process
        assert process is not None
        await first.abort()
        async with asyncio.timeout(PATIENCE):
            while not process.is_idle:
                await asyncio.sleep(0.01)
            process._transport.send_signal(signal.SIGSTOP)
            starting = asyncio.create_task(workers.start("n", "counter", rules))
            while process._working is None:
                await asyncio.sleep(0.01)
        starting.cancel()
        process._transport.send_signal(signal.SIGCONT)
        await asyncio.gather(starting, return_exceptions=True)
        second = await workers.start("o", "counter", rules)
        assert second._process is process
        await second.abort()

    runner.run(test())


def test_rules_in_upper_case_need_no_second_look(runner, workers, monkeypatch) -> None:
    """The spare process may still be starting, which takes seconds on a busy machine."""

    async def never(process: WorkerProcess, rules: str) -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        await workers.prepare(TICTACTOE)
        monkeypatch.setattr(workers, "_look", never)
        match = await asyncio.wait_for(workers.start("m", "XPLAYER", TICTACTOE.upper()), PATIENCE)
        assert (await played(match, []))[0] == "(MARK 1 1)"
        await match.abort()

    runner.run(test())


@dataclass
class Idle:
    """A process that has nothing to do."""

    left_at: float = 0.0
    num_matches: int = 1
    is_alive: bool = True
    is_idle: bool = True

    def end(self) -> None:
        self.is_alive = False


def test_of_what_is_not_used_any_more_little_is_kept() -> None:
    workers = Workers(WorkerSettings("random"))
    idle = [Idle(left_at) for left_at in range(10)]
    for number in range(2 * GAMES):
        processes = idle[number : number + 1]
        workers._games[str(number)] = GameSeats("", [], processes)  # type: ignore[arg-type]
    for number in range(2 * TEXTS):
        workers._keys[str(number)] = "0"
        workers._forget()
    assert (len(workers._games), len(workers._keys)) == (GAMES, TEXTS)
    assert all(str(number) in workers._games for number in range(10))  # for they have processes
    workers.leave(idle[0])  # type: ignore[arg-type]
    assert [one.is_alive for one in idle] == [True] + [False] * (10 - IDLE) + [True] * (IDLE - 1)
    assert idle[0].num_matches == 0


# what is wrong with it


@pytest.mark.parametrize(
    ("role", "rules", "error", "text"),
    [
        ("r", "(role r", GDLSyntaxError, "this '(' is never closed"),
        ("r", "(init a)", GDLSemanticError, "expected at least one rule for 'role'"),
        ("zplayer", TICTACTOE, GameloreError, "expected one of the roles xplayer, oplayer, got 'zplayer'"),
    ],
)
def test_what_cannot_be_played_is_said(runner, workers, role, rules, error, text) -> None:
    async def test() -> None:
        with pytest.raises(error, match=text.replace("(", r"\(")):
            await workers.start("m", role, rules)
        match = await workers.start("m", "xplayer", TICTACTOE)
        assert len(await played(match, [])) == 9
        await match.abort()

    runner.run(test())


def test_errors_of_rules_have_their_place(runner, workers) -> None:
    with pytest.raises(GDLSyntaxError) as caught:
        runner.run(workers.prepare("(role r)\n(init (a)"))
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_rules_that_explode_cost_their_own_process_only(runner, workers, monkeypatch) -> None:
    async def test() -> None:
        match = await workers.start("m", "counter", COUNTING.format(other="stay"))
        monkeypatch.setattr(pool, "LOOK_SECONDS", 3.0)
        exploding = asyncio.create_task(workers.start("n", "r", DOUBLING))
        await asyncio.sleep(0)
        assert (await match.advance(["go"])).ply == 1
        with pytest.raises(
            GameloreError, match=r"for the request|processor time|memory|to answer within|terms of at most"
        ):
            await exploding
        assert await match.choose(10) in ("go", "stay")
        await match.abort()

    runner.run(test())


def test_what_a_player_prints_and_reads_is_not_the_protocol(runner, workers, how) -> None:
    async def test() -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        await played(match, [FIRST, SECOND])
        assert await match.choose(10) == choice(match.number, FIRST, SECOND)
        assert (await match.advance(("(mark 3 3)", "noop"))).legal == ("noop",)
        assert how.read_text() == ""
        await match.abort()

    how.write_text("talk")
    runner.run(test())


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("hang", "the process needed more than its"),
        ("raise", "the player failed with ZeroDivisionError"),
        ("odd", "an error of one's own"),
        ("illegal", "expected a move index from 0 to 6, got 99"),
    ],
)
def test_a_player_that_fails_and_its_match_goes_on(runner, workers, how, what, text) -> None:
    async def test() -> None:
        match, elsewhere, other = [await workers.start(name, "xplayer", TICTACTOE) for name in "mno"]
        assert other._process is match._process
        legal = await played(match, [FIRST, SECOND])
        with pytest.raises(GameloreError, match=text):
            await match.choose(0.05 if what == "hang" else 10)
        assert (await match.advance(SECOND)).legal == tuple(legal)  # told again: a repetition
        assert await other.choose(10) == choice(other.number)
        assert (await match.stop((legal[0], "noop"))).is_desynchronised is False
        for running in (elsewhere, other):
            await running.abort()

    how.write_text(what)
    runner.run(test())


@pytest.mark.parametrize(
    ("what", "text"),
    [("die", "the process died (exit code 3)"), ("grow", "the process needed more than its 1.1 GB of memory")],
)
def test_a_process_that_dies_is_replaced_and_nothing_changes(runner, workers, how, caplog, what, text) -> None:
    async def test() -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        number = match.number
        await played(match, [FIRST, SECOND])
        assert await match.choose(30) == choice(number, FIRST, SECOND)
        assert text in caplog.text
        assert match.number == number
        assert (await match.stop(("(mark 3 3)", "noop"))).is_desynchronised is False

    how.write_text(what)
    runner.run(test())


def test_who_is_busy_with_what_nobody_waits_for_is_killed(runner, workers, how) -> None:
    async def test() -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        await played(match, [FIRST, SECOND])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(match.choose(60), 0.05)
        await match.abort()
        hanging = match._process
        match = await workers.start("n", "xplayer", TICTACTOE)
        assert await match.choose(10) == choice(match.number)
        await match.abort()
        assert hanging is not None
        await hanging.gone

    how.write_text("hang")
    runner.run(test())


# what is learned


def learned(store: Path) -> tuple[list[object], list[object]]:
    with KnowledgeStore(store, create=False) as knowledge:
        (learner,) = knowledge.learners(source="tictactoe")
        return list(knowledge.matches(learner)), list(knowledge.afterstates(learner))


async def learn(workers: Workers, number: int, disturb: Callable[[str, RunningMatch], None]) -> None:
    """One match against an egreedy opponent; `disturb` is called wherever a process may die."""
    game = load("tictactoe")
    opponent = PlayerMatches(game, player("egreedy"), seed=7)
    opponent.start("m", "oplayer", number)
    match = await workers.start("m", "xplayer", TICTACTOE)
    joint, end = None, None
    while end is None:
        end = (await match.advance(joint)).end
        opponent.advance("m", joint)
        if end is None:
            joint = (await match.choose(20), opponent.choose("m"))
    disturb("terminal", match)
    ended = await match.stop(joint)
    assert (ended.end, ended.is_learned, match.number) == ("terminal", True, number)
    disturb("stop", match)


def test_a_learner_behind_processes_that_die_learns_what_it_does_alone(runner, learning, store, tmp_path) -> None:
    async def test() -> None:
        deaths = {(2, "terminal"), (4, "stop")}

        def disturb(number: int, where: str, match: RunningMatch) -> None:
            if (number, where) in deaths:
                deaths.remove((number, where))
                kill(match)

        for number in range(6):
            await learn(learning, number, partial(disturb, number))
        assert not deaths
        await (await learning.start("m", "xplayer", TICTACTOE)).abort()  # what is not learned yet is learned first

    runner.run(test())
    with KnowledgeStore(tmp_path / "here.db") as knowledge:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings("baseline"), OpponentSettings(), 6, seed=7)
    assert learned(store) == learned(tmp_path / "here.db")


def test_a_learner_has_one_process_for_a_game(runner, learning) -> None:
    async def test() -> None:
        begun = await asyncio.gather(*(learning.start(f"m{i}", "xplayer", TICTACTOE) for i in range(3)))
        first = min(match.number or 0 for match in begun)
        assert sorted(match.number or 0 for match in begun) == [first, first + 1, first + 2]
        assert len({match._process for match in begun}) == 1
        for match in begun:
            await match.abort()

    runner.run(test())


def test_a_store_that_fails_costs_one_match(runner, learning, store) -> None:
    def execute(statement: str) -> None:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute(statement)

    async def test() -> None:
        match = await learning.start("m", "xplayer", TICTACTOE)
        number = match.number or 0
        await played(match, ROW[:4])
        execute("CREATE TRIGGER full BEFORE INSERT ON trajectory BEGIN SELECT RAISE(ABORT, 'no space'); END")
        with pytest.raises(KnowledgeError, match="no space"):
            await match.stop(ROW[4])
        assert not any(process.num_matches for process in learning._processes)
        with pytest.raises(GameloreError, match="expected a running match, got m, which is over"):
            await match.advance(None)
        execute("DROP TRIGGER full")
        await learn(learning, number, lambda where, match: None)

    runner.run(test())


# how it begins and ends


def test_the_processes_are_started_by_their_modules_own_names() -> None:
    """The pool does not import the modules, see test_architecture.py, so they could be renamed and the names stay."""
    assert (worker.__name__, follower.__name__) == (pool.WORKER, pool.FOLLOWER)


def test_players_that_cannot_play(runner, tmp_path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no store at all" * 100)

    async def begin(spec: str) -> None:
        async with Workers(WorkerSettings(spec, {"knowledge": tmp_path / "broken.db"})):
            raise AssertionError("not to be reached")

    async def test() -> list[object]:
        return list(await asyncio.gather(begin("egredy"), begin("baseline"), return_exceptions=True))

    misspelt, broken = runner.run(test())
    assert type(misspelt) is GameloreError
    assert "got 'egredy'; did you mean egreedy" in str(misspelt)
    assert type(broken) is KnowledgeError


def test_who_does_not_learn_plays_without_the_store(tmp_path, caplog) -> None:
    (tmp_path / "broken.db").write_bytes(b"no store at all" * 100)
    worker = Worker("random", {"knowledge": tmp_path / "broken.db"}, 1 << 30, 60.0)
    assert worker.recognise(TICTACTOE)["name"] == "tictactoe"
    assert "the games in the store cannot be recognised" in caplog.text


@pytest.mark.parametrize("settings", [{"memory": 1000}, {"prepare_seconds": 0}, {"patience": -1}, {"processes": 0}])
def test_settings_out_of_bounds(settings) -> None:
    with pytest.raises(GameloreError, match=r"allow more|leave it out"):
        WorkerSettings("random", **settings)


def test_closing_while_all_is_busy(runner, workers, how) -> None:  # the last one of these workers
    async def test() -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        await played(match, [FIRST, SECOND])
        choosing = asyncio.create_task(match.choose(60))
        await asyncio.sleep(0.05)
        starting = asyncio.create_task(workers.start("n", "r", DOUBLING))
        await asyncio.sleep(0.05)
        pids = processes(workers)
        assert pids
        await workers.close()
        assert not any(is_alive(pid) for pid in pids)
        results = await asyncio.gather(choosing, starting, return_exceptions=True)
        assert [isinstance(result, GameloreError) for result in results] == [True, True]

    how.write_text("hang")
    runner.run(test())


def test_no_process_outlives_its_owner(own, how) -> None:
    how.write_text("hang")
    code = f"""
    import asyncio, os, signal
    from gamelore.net.pool import Workers, WorkerSettings

    async def main():
        async with Workers(WorkerSettings({f"{own}:Ill:how={how}"!r})) as workers:
            match = await workers.start("m", "xplayer", open({str(path("tictactoe"))!r}).read())
            await match.advance({FIRST})
            await match.advance({SECOND})
            asyncio.create_task(match.choose(60))
            await asyncio.sleep(0.1)
            print(*(process._transport.get_pid() for process in workers._processes), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
    """
    command = [sys.executable, "-c", dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    pids = list(map(int, done.stdout.split()))
    assert pids, done.stderr
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))


def test_a_bug_in_a_players_own_file_is_printed_without_our_frames(tmp_path, capsys) -> None:
    file = tmp_path / "buggy.py"
    file.write_text(
        "from gamelore.players.player import PositionPlayer\n\n\n"
        "class Buggy(PositionPlayer):\n    def move(self, position, role):\n        return {}[role]\n"
    )
    answer = _answer(player(f"{file}:Buggy").move, {"position": None, "role": "x"})
    assert answer["message"] == "the player failed with KeyError: 'x'"
    told = capsys.readouterr().err
    assert told.startswith(f"a bug in the player of {file}, line 6, in move: KeyError: 'x'\n")
    assert told.count('File "') == 1
