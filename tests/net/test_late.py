"""Players that are late or die in every turn, with real processes: all answers are legal, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from gamelore.analysis.isomorphism import Renaming, scramble
from gamelore.gdl.syntax import Rulesheet
from gamelore.net import follower
from gamelore.net.player_server import PlayerServer
from gamelore.net.pool import Workers, WorkerSettings
from gamelore.rulesheets import load, read
from wire import PATIENCE

T = TypeVar("T")

ILL = """
import os, time
from gamelore.players.player import Player

def prepare():
    with open(__file__ + ".log", "a") as log:
        log.write("prepares")
    while not os.path.exists(__file__ + ".go"):
        time.sleep(0.01)
    open(__file__ + ".ready", "w").close()

class Asleep(Player):
    def choose(self, turn):
        time.sleep(1.2)
        return turn.graph.num_moves[turn.rows, turn.role] - 1

class Dying(Player):
    def choose(self, turn):
        os._exit(3)

class Failing(Player):
    def choose(self, turn):
        raise ValueError("as always")

class Unprepared(Player):
    '''A player whose first move of each process takes several turns.'''
    is_prepared = False
    def choose(self, turn):
        if not self.is_prepared:
            prepare()
            self.is_prepared = True
        return turn.graph.num_moves[turn.rows, turn.role] - 1

class Preparing(Player):
    '''A player that gets ready for longer than the startclock.'''
    def prepare(self, game, role):
        prepare()
    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1
"""


@pytest.fixture
def players(tmp_path: Path) -> Path:
    file = tmp_path / "ill.py"
    file.write_text(ILL)
    return file


def served(settings: WorkerSettings, scenario: Callable[[PlayerServer], Awaitable[T]], most_matches: int = 1) -> T:
    """What comes out of a scenario with a player server of real processes."""

    async def run() -> T:
        following = replace(settings, player="", module=follower.__name__)
        async with (
            asyncio.timeout(PATIENCE),
            Workers(settings) as workers,
            Workers(following) as followers,
            PlayerServer(workers, "ill", followers=followers, most_matches=most_matches) as server,
        ):
            return await scenario(server)

    return asyncio.run(run())


async def until_there(file: str) -> None:
    while not Path(file).exists():
        await asyncio.sleep(0.01)


async def play(server: PlayerServer, name: str, match: str, sheet: Rulesheet, names: Renaming, turns: int) -> list[int]:
    """Play some turns of a match as the first role, and check that all answers are legal.

    Return the index of each answer where there was a choice.
    """
    position, joint, answers = load(name).start(), "NIL", []
    text = " ".join(str(sheet).split())
    role = names.theirs(position.game.roles[0])
    assert await server.answer(f"( START {match} {role} ( {text} ) 30 1 )") == "ready"
    for _ in range(turns):
        reply = await server.answer(f"( PLAY {match} {joint} )")
        legal, *others = position.legal.values()
        theirs = list(map(names.theirs, legal))
        assert reply in theirs
        if len(legal) > 1:
            answers.append(theirs.index(reply))
        moves = [legal[theirs.index(reply)], *(moves[-1] for moves in others)]
        joint = f"( {' '.join(map(names.theirs, moves))} )"
        position = position.play(moves)
        if position.is_terminal:
            break
    await server.answer(f"( STOP {match} {joint} )")
    return answers


@pytest.mark.parametrize("player", ["Asleep", "Dying", "Failing"])
def test_every_answer_of_an_ill_player_is_legal(players: Path, player: str) -> None:
    """Turns in turn, with noops, and at once; several matches at once; with scrambled names."""

    async def scenario(server: PlayerServer) -> list[list[int]]:
        matches = []
        for name in ("tictactoe", "goofspiel", "tictactoe3p"):
            sheet = read(name)[0]
            theirs, renaming = scramble(sheet, np.random.default_rng(7))
            matches.append(play(server, name, name, sheet, Renaming.identity(sheet), 5))
            matches.append(play(server, name, f"{name}.other", theirs, renaming, 5))
        return await asyncio.gather(*matches)

    played = served(WorkerSettings(f"{players}:{player}", processes=3), scenario, most_matches=6)
    assert all(len(answers) >= 2 for answers in played)
    assert {answer for answers in played for answer in answers} == {0}  # the first legal move


@pytest.mark.parametrize("player", ["Unprepared", "Preparing"])
def test_what_a_late_player_prepares_is_not_lost(players: Path, player: str) -> None:
    async def scenario(server: PlayerServer) -> list[int]:
        position, joint = load("connectfour").start(), "NIL"
        answers: list[int] = []
        assert (
            await server.answer(f"( START m red ( {' '.join(str(read('connectfour')[0]).split())} ) 1 1 )") == "ready"
        )
        while not answers or answers[-1] == 0:
            reply = await server.answer(f"( PLAY m {joint} )")
            legal = position.legal["red"]
            if len(legal) > 1:
                answers.append(legal.index(reply))
            if len(answers) == 2:
                await until_there(f"{players}.log")
                Path(f"{players}.go").touch()
                await until_there(f"{players}.ready")
            moves = [reply, position.legal["yellow"][0]]
            joint = f"( {' '.join(moves)} )"
            position = position.play(moves)
        return answers

    answers = served(WorkerSettings(f"{players}:{player}"), scenario)
    assert answers[:2] == [0, 0]
    assert answers[-1] > 1  # the player's own move
    assert Path(f"{players}.log").read_text() == "prepares"


def test_a_hanging_player_is_killed_after_its_match(players: Path) -> None:
    """The next match need not wait until the patience is over."""

    async def scenario(server: PlayerServer) -> None:
        sheet = read("tictactoe")[0]
        for match in ("first", "second"):
            await play(server, "tictactoe", match, sheet, Renaming.identity(sheet), 1)

    players.write_text(ILL.replace("1.2", "600"))
    served(WorkerSettings(f"{players}:Asleep", patience=1000.0), scenario)
