from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from gamelore import GameloreError, GDLSemanticError, GDLSyntaxError, KnowledgeError, load
from gamelore.games import path, read
from gamelore.learn.knowledge import Knowledge
from gamelore.learn.settings import LearnerSettings
from gamelore.learn.study import study
from gamelore.net.table import Table
from gamelore.net.workers import RunningMatch, Workers, WorkerSettings
from gamelore.play.graph import Graph
from gamelore.play.match import MatchState
from gamelore.play.player import OpponentSettings
from gamelore.play.roster import player
from gamelore.rules.renaming import scramble

TICTACTOE = path("tictactoe").read_text(encoding="utf-8")
FIRST = ("(mark 1 1)", "noop")
SECOND = ("noop", "(mark 2 1)")

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
from gamelore.play.player import Player

class First(Player):
    def choose(self, turn):
        return np.zeros(len(turn.rows), np.int32)

class Loud(First):
    def choose(self, turn):
        print('{"ok": "(mark 3 3)"}', flush=True)
        os.write(1, b'{"ok": "(mark 3 2)"}\\n')
        os.system("echo '{}'")
        assert sys.stdin.readline() == ""
        return super().choose(turn)

class Ill(First):
    '''Does in its second turn of a match what the file `how` says, which is empty then if that is "once".'''
    def __init__(self, how):
        self.how = how
    def choose(self, turn):
        how = open(self.how).read() if turn.plies[0] >= 2 else ""
        if how == "hang":
            time.sleep(60)
        elif how == "die":
            if os.fork() == 0:
                time.sleep(60)
            os._exit(3)
        elif how == "once":
            open(self.how, "w").close()
            os._exit(3)
        elif how == "grow":
            self.much = bytearray(1 << 31)
        elif how == "illegal":
            return np.full(len(turn.rows), 99)
        elif how == "raise":
            1 / 0
        return super().choose(turn)
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
def ill_workers(runner: asyncio.Runner, own: str, how: Path) -> Iterator[Workers]:
    """Those of the player `Ill`."""
    workers = Workers(WorkerSettings(f"{own}:Ill:how={how}", memory=1 << 30, patience=0.2, processes=1))
    runner.run(workers.__aenter__())
    yield workers
    runner.run(workers.close())


@pytest.fixture(scope="module")
def workers(runner: asyncio.Runner) -> Iterator[Workers]:
    """Workers of a player that does not learn, for all tests that do them no harm."""
    workers = Workers(WorkerSettings("egreedy:epsilon=0.3", {"seed": 3, "knowledge": None}, processes=2))
    runner.run(workers.__aenter__())
    yield workers
    pids = processes(workers)
    runner.run(workers.close())
    assert pids
    assert not any(is_alive(pid) for pid in pids)


@pytest.fixture
def within(runner: asyncio.Runner) -> Callable[..., object]:
    """`within(test, player, ..)`: runs test(workers) with workers of their own."""

    def run(test: Callable[[Workers], Awaitable[None]], spec: str, **settings: object) -> None:
        async def go() -> None:
            async with Workers(WorkerSettings(spec, **settings)) as workers:  # type: ignore[arg-type]
                await test(workers)

        runner.run(go())

    return run


def processes(workers: Workers) -> list[int]:
    found = [process._transport.get_pid() for process in workers._processes if process._transport is not None]
    return [pid for pid in found if pid is not None]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill_all(workers: Workers) -> None:
    """All that play; not the spare one."""
    for process in workers._processes:
        if process.num_matches or process.left_at:
            assert process._transport is not None
            process._transport.send_signal(signal.SIGKILL)


async def played(match: RunningMatch, moves: Sequence[Sequence[str]]) -> list[str]:
    """The legal moves after these joint moves."""
    at = await match.advance(None)
    for joint in moves:
        at = await match.advance(joint)
    assert at.ply == len(moves)
    return list(at.legal)


# what a match is


def test_it_plays_as_a_table_does(runner, workers) -> None:
    game = load("tictactoe")
    table = Table(game, player("egreedy:epsilon=0.3"), seed=3)

    async def series() -> None:
        for number in range(3):
            match = await workers.start("m", "xplayer", TICTACTOE)
            assert (match.game, match.number, table.start("m", "xplayer")) == ("tictactoe", number, number)
            state, joint = MatchState(Graph(game)), None
            while state.end is None:
                assert await match.advance(joint) == table.advance("m", joint)
                mine = await match.choose(10) if state.legal(0) else ""
                assert mine == table.choose("m")
                joint = (mine, state.legal(1)[0])
                for role, move in enumerate(joint):
                    state.submit(role, move)
            assert await match.stop(joint) == table.stop("m", joint)

    runner.run(series())


def test_scrambled_rules_are_recognised_and_moves_are_in_their_words(runner, workers) -> None:
    sheet, _ = read("tictactoe")
    theirs, renaming = scramble(sheet, np.random.default_rng(5))

    async def test() -> None:
        match = await workers.start("m", renaming.theirs("oplayer").upper(), str(theirs))
        assert match.game == "tictactoe"
        joint = tuple(map(renaming.theirs, FIRST))
        legal = await played(match, [(joint[0].upper(), joint[1])])
        assert sorted(legal) == sorted(renaming.theirs(move) for move in table_legal(FIRST))
        assert await match.choose(10) in legal
        await match.abort()

    runner.run(test())


def table_legal(*joint: Sequence[str]) -> list[str]:
    """What oplayer may do after these."""
    table = Table(load("tictactoe"), player("random"))
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
        with pytest.raises(GameloreError, match="expected a match that runs, got m, which is over"):
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


# what is wrong with it


@pytest.mark.parametrize(
    ("role", "rules", "error", "text"),
    [
        ("r", "(role r", GDLSyntaxError, "a '(' that is never closed"),
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


def test_rules_that_explode_cost_their_own_process_only(within) -> None:
    async def test(workers: Workers) -> None:
        match = await workers.start("m", "counter", COUNTING.format(other="stay"))
        with pytest.raises(GameloreError, match=r"for too long|processor time"):
            await workers.start("n", "r", DOUBLING)
        assert (await match.advance(["go"])).ply == 1
        again = await workers.start("n", "counter", COUNTING.format(other="wait"))
        assert await again.choose(10) in ("go", "wait")

    within(test, "random", prepare_seconds=1.5)


def test_what_a_player_prints_and_reads_is_not_the_protocol(within, own) -> None:
    async def test(workers: Workers) -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        assert await match.choose(10) == "(mark 1 1)"
        assert (await match.advance(FIRST)).legal == ("noop",)

    within(test, f"{own}:Loud")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("hang", "it was busy with choose for too long"),
        ("die", r"it died \(exit code 3\)"),
        ("grow", "it went over its 1.1 GB of memory"),
        ("raise", "a player failed: ZeroDivisionError"),
        ("illegal", "a player chose move 99 of 7, not a legal one"),
    ],
)
def test_a_player_that_fails_and_its_match_goes_on(runner, ill_workers, how, what, text) -> None:
    async def test() -> None:
        match = await ill_workers.start("m", "xplayer", TICTACTOE)
        other = await ill_workers.start("n", "xplayer", TICTACTOE)
        assert await match.choose(10) == "(mark 1 1)"
        legal = await played(match, [FIRST, SECOND])
        with pytest.raises(GameloreError, match=text):
            await match.choose(0.05)
        assert (await match.advance(SECOND)).legal == tuple(legal)  # told again: a repetition
        assert await other.choose(10) == "(mark 1 1)"
        assert (await match.stop((legal[0], "noop"))).is_desynchronised is False
        await other.abort()

    how.write_text(what)
    runner.run(test())


def test_a_choice_is_made_elsewhere_where_there_is_time(runner, ill_workers, how) -> None:
    async def test() -> None:
        match = await ill_workers.start("m", "xplayer", TICTACTOE)
        number = match.number
        await played(match, [FIRST, SECOND])
        assert await match.choose(20) == "(mark 1 2)"
        assert match.number == number
        await match.abort()

    how.write_text("once")
    runner.run(test())


def test_who_is_busy_with_what_nobody_waits_for_is_killed(runner, ill_workers, how) -> None:
    async def test() -> None:
        match = await ill_workers.start("m", "xplayer", TICTACTOE)
        legal = await played(match, [FIRST, SECOND])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(match.choose(60), 0.05)
        assert (await match.advance(None)).legal == tuple(legal)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(match.choose(60), 0.05)
        await match.abort()
        match = await ill_workers.start("n", "xplayer", TICTACTOE)
        assert await match.choose(10) == "(mark 1 1)"
        await match.abort()

    how.write_text("hang")
    runner.run(test())


def test_a_process_that_was_killed_is_replaced(runner, workers) -> None:
    async def test() -> None:
        begun = [await workers.start(f"m{i}", "xplayer", TICTACTOE) for i in range(3)]
        before = [await played(match, [FIRST, SECOND]) for match in begun]
        numbers = [match.number for match in begun]
        kill_all(workers)
        moves = [await match.choose(20) for match in begun]
        assert all(move in legal for move, legal in zip(moves, before, strict=True))
        kill_all(workers)
        assert [(await match.advance(None)).legal for match in begun] == [tuple(legal) for legal in before]
        assert [match.number for match in begun] == numbers
        kill_all(workers)
        assert {(await match.stop(None)).end for match in begun} == {None}

    runner.run(test())


# what is learned


def learned(store: Path) -> tuple[list[object], list[object]]:
    with Knowledge(store, create=False) as knowledge:
        (learner,) = knowledge.learners(source="tictactoe")
        return list(knowledge.matches(learner)), list(knowledge.afterstates(learner))


async def learn(workers: Workers, number: int, disturb: Callable[[str], None]) -> None:
    """One match against an egreedy opponent; `disturb` is called wherever a process may die."""
    game = load("tictactoe")
    opponent = Table(game, player("egreedy"), seed=7)
    opponent.start("m", "oplayer", number)
    match = await workers.start("m", "xplayer", TICTACTOE)
    disturb("start")
    joint, end = None, None
    while end is None:
        end = (await match.advance(joint)).end
        opponent.advance("m", joint)
        disturb("advance")
        if end is None:
            joint = (await match.choose(20), opponent.choose("m"))
    ended = await match.stop(joint)
    assert (ended.end, ended.is_learned, match.number) == ("terminal", True, number)
    disturb("stop")


def test_a_learner_behind_processes_that_die_learns_what_it_does_alone(within, tmp_path) -> None:
    async def test(workers: Workers) -> None:
        assert workers.is_lasting
        deaths = {(1, "start"), (2, "advance"), (4, "stop")}

        def disturb(number: int, where: str) -> None:
            if (number, where) in deaths:
                deaths.remove((number, where))
                kill_all(workers)

        for number in range(6):
            await learn(workers, number, partial(disturb, number))

    options = {"knowledge": tmp_path / "there.db", "opponent": "egreedy", "seed": 7}
    within(test, "baseline", options=options)
    with Knowledge(tmp_path / "here.db") as knowledge:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings("baseline"), OpponentSettings(), 6, seed=7)
    assert learned(tmp_path / "there.db") == learned(tmp_path / "here.db")


def test_a_learner_has_one_process_for_a_game(within, tmp_path) -> None:
    async def test(workers: Workers) -> None:
        begun = await asyncio.gather(*(workers.start(f"m{i}", "xplayer", TICTACTOE) for i in range(3)))
        assert sorted(match.number for match in begun) == [0, 1, 2]  # type: ignore[type-var]
        assert max(process.num_matches for process in workers._processes) == 3

    within(test, "baseline", options={"knowledge": tmp_path / "store.db"})


# how it begins and ends


def test_a_player_that_there_is_not(within, tmp_path) -> None:
    async def nothing(workers: Workers) -> None:
        raise AssertionError("not to be reached")

    with pytest.raises(GameloreError, match="got 'egredy'; did you mean egreedy"):
        within(nothing, "egredy")
    (tmp_path / "broken.db").write_bytes(b"no store at all" * 100)
    with pytest.raises(KnowledgeError):
        within(nothing, "baseline", options={"knowledge": tmp_path / "broken.db"})


@pytest.mark.parametrize("settings", [{"memory": 1000}, {"prepare_seconds": 0}, {"patience": -1}, {"processes": 0}])
def test_settings_out_of_bounds(settings) -> None:
    with pytest.raises(GameloreError, match=r"give more|leave it out"):
        WorkerSettings("random", **settings)


def test_closing_while_all_is_busy(within, own, how) -> None:
    how.write_text("hang")

    async def test(workers: Workers) -> None:
        match = await workers.start("m", "xplayer", TICTACTOE)
        await played(match, [FIRST, SECOND])
        choosing = asyncio.create_task(match.choose(60))
        starting = asyncio.create_task(workers.start("n", "counter", COUNTING.format(other="stay")))
        await asyncio.sleep(0.05)
        pids = processes(workers)
        await workers.close()
        assert not any(is_alive(pid) for pid in pids)
        results = await asyncio.gather(choosing, starting, return_exceptions=True)
        assert [isinstance(result, GameloreError) for result in results] == [True, True]

    within(test, f"{own}:Ill:how={how}")


def test_no_process_outlives_its_owner(own, how) -> None:
    how.write_text("hang")
    code = f"""
    import asyncio, os, signal
    from gamelore.net.workers import Workers, WorkerSettings

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
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, timeout=60, check=False)
    pids = list(map(int, done.stdout.split()))
    assert pids, done.stderr
    until = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))
