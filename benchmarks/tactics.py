"""Measure how many tactics a player finds within a time: `python benchmarks/tactics.py --sheets FOLDER`.

A *tactic* is a position in which few moves keep the value: at most a third of the legal moves, none of which ends the
match at once. One of them wins within DEPTH plies, or all other moves are refuted within DEPTH plies, with best play on
both sides. The file tactics.json next to this one has 200 of them with the moves that keep the value, so that measuring
needs no solver. A player answers each with an empty tree, without stored solutions. Its process runs on one core, and
its clock is its own CPU time, so that other work on the machine makes no difference. The code of the game is compiled,
and a move is made for practice, before the first answer. Rows by game say how many answers keep the value, and how much
CPU time they took. The exit code is 1 if under 95 % are right.

    python benchmarks/tactics.py --sheets FOLDER
    python benchmarks/tactics.py --sheets FOLDER --player gamelore:seconds=0.2,threads=1,nimbers=no,teaching=4000000
    python benchmarks/tactics.py --sheets FOLDER --player uct:seconds=0.2 --source OLD/src --least 0

`--make` draws new positions and overwrites the file (--source: the `src` of commit 401fbf9). Positions come from
random matches; their values are those of the solver, which in large games solves ends of matches as games of their
own. The first candidates are those that `uct` with WEAK simulations gets wrong. They are tried with `uct` and 0.2 s of
CPU time, in the order in which they were drawn, until a share of MISSED was wrong; others fill up. What `uct` gets
wrong in a time is not quite repeatable, all else is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gamelore
from exhaustive import Joint, SolvedValues, State, expanded, random_match
from gamelore.errors import GameloreError
from gamelore.game.game import Game, Position
from gamelore.gdl.syntax import natural_order
from gamelore.lab.seats import PROGRAM, TREE, cpu_seconds
from gamelore.matches.match import MAX_PLIES
from gamelore.matches.openings import sheet_from
from gamelore.players.random_streams import stream
from gamelore.players.uct import SearchSettings, search

FILE = Path(__file__).with_name("tactics.json")
GAMES = {  # shipped or public sheet -> (number of tactics, ply at which ends begin; 0 if the solver solves the game)
    **dict.fromkeys(("nim4", "chomp", "double_tictactoe_dengji", "fivemensmorris"), (30, 0)),
    **dict.fromkeys(("sheepAndWolf", "breakthrough:width=4"), (24, 0)),
    **dict.fromkeys(("connect3", "othello4"), (8, 0)),
    **{"connectFour": (8, 30), "ticTacToeLargeSuicide": (8, 12)},
}
SECONDS = 0.2
PLAYER = f"gamelore:seconds={SECONDS},threads=1,nimbers=no"
UCT = f"uct:seconds={SECONDS}"
FEW = 1 / 3  # of the legal moves keep the value
DEPTH = 12  # plies in which the best move wins, or all that do not keep a draw or a loss are refuted
MIDDLE = 50
MISSED = 0.75  # wanted share of tactics that uct gets wrong
TRIED = 2.1  # most candidates that uct tries with all its time, for each tactic of a game
WEAK = SearchSettings(simulations=500)
CANDIDATES, OF_ENDS = 500, 40  # of a game before the weak search, as a whole or from ends
FROM_ONE = 8  # candidates from one match, or from one end
CONTINUATIONS = 20  # matches from an end
EARLY = 6  # plies of a match from an end in which candidates are looked for
MEMORY = 1 << 28  # bytes for the solver of an end
CPU_CLOCK = "import time, runpy, sys; time.monotonic = time.process_time; runpy.run_path(sys.argv[1], None, '__main__')"


@dataclass(frozen=True, slots=True)
class Tactic:
    """A position, by the moves from the start of those who have a choice; `keep`: the moves that keep the value."""

    sheet: str
    moves: tuple[str, ...]
    keep: tuple[str, ...]
    legal: int
    is_missed: bool = False

    def position(self, game: Game) -> Position:
        """Return the position."""
        position = game.start()
        for move in self.moves:
            forced = {role: moves[0] for role, moves in position.legal.items()}
            position = position.play(forced | {mover(position): move})
        return position


def load(sheets: Path, name: str) -> Game:
    """Return the game of a public sheet, or a shipped game."""
    path = sheets / f"{name}.kif"
    return gamelore.load(path if path.exists() else name)


def mover(position: Position) -> str:
    """Return the role that has a choice; the first role if none has."""
    return max(position.legal, key=lambda role: len(position.legal[role]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a player says to a tactic."""

    tactic: Tactic
    move: str
    cpu: float

    @property
    def is_right(self) -> bool:
        return self.move in self.tactic.keep


class Answerer:
    """A player in a process of its own with the CPU clock, see the module. `source`: the folder of its package."""

    def __init__(self, game: Game, player: str, source: Path) -> None:
        command = [sys.executable, "-P", "-c", CPU_CLOCK, str(PROGRAM)]
        environment = os.environ | {"PYTHONPATH": str(source)}
        self._game = game
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        self._ask("load", rules=game.rulesheet.text, player=player, seed=0, engine="auto", limits=asdict(game.limits))
        self.answer(game.start(), 0)  # for practice

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request, and return the reply; see seat_process.py."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps({"do": do, "id": 0, **arguments}), file=process.stdin, flush=True)
        reply: dict[str, Any] = json.loads(process.stdout.readline() or '{"error": "the process has ended"}')
        if "error" in reply:
            raise SystemExit(
                f"expected an answer in {self._game.name}, got: {reply['error']}; see the player's options"
            )
        return reply

    def answer(self, position: Position, number: int) -> tuple[str, float]:
        """Return the player's move, and the CPU seconds that it needed."""
        role = self._game.roles.index(mover(position))
        key, facts = int(stream(number)), sorted(position.facts)
        self._ask("start", role=role, facts=facts, match=number, key=key, max_plies=MAX_PLIES)
        begin = cpu_seconds(self._process.pid)
        move: str = self._ask("play", moves=None, seconds=None)["move"]
        return move, cpu_seconds(self._process.pid) - begin

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def answers(game: Game, tactics: Sequence[Tactic], player: str, source: Path) -> Iterator[Answer]:
    """Yield the answers of a player to tactics of a game."""
    answerer = Answerer(game, player, source)
    try:
        for number, tactic in enumerate(tactics):
            yield Answer(tactic, *answerer.answer(tactic.position(game), number))
    finally:
        answerer.close()


# Making the positions


@dataclass(frozen=True, slots=True)
class End:
    """A game with its exact values; or the end of a match as a game of its own, after the moves `before`."""

    game: Game
    values: SolvedValues
    before: tuple[str, ...] = ()


def ends(game: Game, ply: int, rng: np.random.Generator) -> Iterator[End]:
    """Yield a whole game again and again, or with a `ply`, different ends of random matches that have so many plies."""
    if not ply:
        whole = End(game, SolvedValues(game))
        while True:
            yield whole
    while True:
        states, joints = random_match(game, rng)
        if len(states) <= ply:
            continue
        end = gamelore.load(sheet_from(game.rulesheet, sorted(game.facts(states[ply]), key=natural_order)))
        with suppress(GameloreError):  # it is too large
            yield End(end, SolvedValues(end, MEMORY), texts_of(game, states[:ply], joints[:ply]))


def texts_of(game: Game, states: Sequence[State], joints: Sequence[Joint]) -> tuple[str, ...]:
    """Return the moves of those who have a choice, as text."""
    movers = expanded(game, np.array(states)).mover.tolist() if states else []
    return tuple(game.move_text(role, joint[role]) for role, joint in zip(movers, joints, strict=True))


def tactics_in(end: End, states: Sequence[State], joints: Sequence[Joint], sheet: str) -> Iterator[Tactic]:
    """Yield the tactics of a match."""
    game, moves = end.game, expanded(end.game, np.array(states))
    texts, values = texts_of(game, states, joints), end.values.bounds(moves.states)[0]
    is_over, distances = game.evaluate(moves.states)[0], end.values.distances(moves.states)
    for index, state in enumerate(states):
        children, role = moves.parents == index, int(moves.mover[index])
        keeps = values[children, role] == values[children, role].max()
        wins = values[children, role].max() > MIDDLE
        is_short = (
            distances[children][keeps].min() < DEPTH if wins else distances[children][~keeps].max(initial=0) < DEPTH
        )
        if keeps.sum() <= FEW * len(keeps) and is_short and not is_over[children][keeps].any():
            legal = game.position(game.facts(state)).legal[game.roles[role]]
            keep = tuple(move for move, is_kept in zip(legal, keeps.tolist(), strict=True) if is_kept)
            yield Tactic(sheet, end.before + texts[:index], keep, len(legal))


def candidates(game: Game, sheet: str, ply: int, seed: int) -> Iterator[Tactic]:
    """Yield different tactics, at most FROM_ONE from a match or from an end."""
    rng, seen = np.random.default_rng(int(stream(seed, game.rules_hash))), set[tuple[str, ...]]()
    for end in ends(game, ply, rng):
        from_end = 0
        for _ in range(CONTINUATIONS if ply else 1):
            states, joints = random_match(end.game, rng)
            early = EARLY if ply else len(states)
            for tactic in tactics_in(end, states[:early], joints[:early], sheet):
                if tactic.moves not in seen and from_end < FROM_ONE:
                    seen.add(tactic.moves)
                    from_end += 1
                    yield tactic


def is_hard(game: Game, tactic: Tactic, number: int) -> bool:
    """Return whether the weak search gets a tactic wrong."""
    position = tactic.position(game)
    weak = search(game, position.state[None], np.array([stream(number)]), WEAK)
    role = game.roles.index(mover(position))
    visits = weak.visits[weak.offsets[role] : weak.offsets[role + 1]]
    return position.legal[game.roles[role]][int(visits.argmax())] not in tactic.keep


def made(game: Game, sheet: str, seed: int, source: Path) -> list[Tactic]:
    """Return the tactics of a game."""
    size, ply = GAMES[sheet]
    hard, easy = list[Tactic](), list[Tactic]()
    for number, tactic in enumerate(islice(candidates(game, sheet, ply, seed), OF_ENDS if ply else CANDIDATES)):
        (hard if is_hard(game, tactic, number) else easy).append(tactic)
        if len(hard) >= TRIED * size:
            break
    missed, others = list[Tactic](), list[Tactic]()
    for answer in answers(game, [*hard, *easy][: int(TRIED * size)], UCT, source):
        (others if answer.is_right else missed).append(replace(answer.tactic, is_missed=not answer.is_right))
        if len(missed) >= MISSED * size and len(missed) + len(others) >= size:
            break
    print(f"{sheet}: {len(hard)} hard candidates, {len(missed)} of {len(missed) + len(others)} missed", flush=True)
    return [*missed, *others][:size]


def make(sheets: Path, games: Sequence[str], seed: int, source: Path, file: Path) -> None:
    """Make tactics of the games, and write them."""
    tactics = [tactic for sheet in games for tactic in made(load(sheets, sheet), sheet, seed, source)]
    rows = ",\n".join(json.dumps(asdict(tactic)) for tactic in tactics)
    file.write_text(f"[\n{rows}\n]\n", encoding="ascii")
    print(f"{len(tactics)} tactics of {len(games)} games, {sum(tactic.is_missed for tactic in tactics)} missed")


# Measuring


def read(file: Path) -> list[Tactic]:
    """Return the tactics in a file."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="ascii"))
    return [Tactic(**row | {"moves": tuple(row["moves"]), "keep": tuple(row["keep"])}) for row in rows]


def measure(sheets: Path, tactics: Sequence[Tactic], player: str, source: Path) -> list[Answer]:
    """Ask a player; print a row for each game, and the positions that it gets wrong."""
    given: list[Answer] = []
    print(f"{player}\n| game | tactics | missed by uct | right | CPU seconds, mean | most |\n|---|---|---|---|---|---|")
    for name, group in groupby(tactics, lambda tactic: tactic.sheet):
        own = list(answers(load(sheets, name), list(group), player, source))
        given += own
        times = [answer.cpu for answer in own]
        counts = len(own), sum(answer.tactic.is_missed for answer in own), sum(answer.is_right for answer in own)
        print(f"| {name} | {' | '.join(map(str, counts))} | {np.mean(times):.3f} | {max(times):.3f} |", flush=True)
    return given


def main(
    sheets: Annotated[Path, typer.Option(help="folder of the public rulesheets")],
    player: Annotated[str, typer.Option(help="player with its options")] = PLAYER,
    source: Annotated[Path, typer.Option(help="folder of the package that the player is from")] = TREE,
    file: Annotated[Path, typer.Option(help="file of the tactics")] = FILE,
    games: Annotated[str, typer.Option(help="names of games with commas; by default all")] = "",
    least: Annotated[float, typer.Option(help="share of right answers for exit code 0")] = 0.95,
    seed: Annotated[int, typer.Option(help="seed of the positions that are made")] = 0,
    is_making: Annotated[bool, typer.Option("--make", help="make positions instead")] = False,
) -> None:
    """Measure tactics; exit with 1 if too few answers are right."""
    wanted = games.split(",") if games else None
    if is_making:
        make(sheets, wanted or list(GAMES), seed, source, file)
        return
    tactics = [tactic for tactic in read(file) if wanted is None or tactic.sheet in wanted]
    given = measure(sheets, tactics, player, source)
    right = sum(answer.is_right for answer in given)
    print(f"\n{right} of {len(given)} right")
    for answer in given:
        if not answer.is_right:
            print(f"wrong: {answer.tactic.sheet}: {answer.move}, not {' '.join(answer.tactic.keep)}, after ", end="")
            print(*answer.tactic.moves)
    sys.exit(right < least * len(given))


if __name__ == "__main__":
    typer.run(main)
