"""Play matches between `gamelore` and OpenSpiel's MCTS in C++ at equal CPU time for each move, on five games.

    python benchmarks/openspiel_matches.py --sheets FOLDER --check        # the rules are the same
    python benchmarks/openspiel_matches.py --sheets FOLDER --seconds 0.02 --csv FILE
    python benchmarks/openspiel_matches.py --sheets FOLDER --seconds 0.2 --teaching 4000000 --csv FILE

OpenSpiel's bot is `pyspiel.MCTSBot`, which is bound from C++, with its solver on (`--exploration`, `--rollouts`). The
rulesheets are public ones whose rules are those of OpenSpiel's game: `--check` walks random matches in both and
compares the legal moves and the results. Matches come in pairs with the same two random plies and sides swapped. Both
players are in this process, which has one thread, and think in turn. Its clock is its own CPU time. OpenSpiel's bot
takes a number of simulations, so it gets as many as fit into the time at the rate of its last move in the match, at
first at the rate in the first position. Its CPU time, and gamelore's, are printed.

With `--csv`, each match is a row, and matches that are there already are not played again; matches end after `--limit`
seconds of CPU time. gamelore's value is taught before the first match of a game.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import cpu_clock  # noqa: F401 - before gamelore
import gamelore
from gamelore.game.game import Game, Position
from gamelore.lab.duel import families
from gamelore.lab.experiment import code_version
from gamelore.lab.stats import Interval, complete_rounds, score_interval
from gamelore.matches.match import MatchState
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.search.champion import Gamelore
from gamelore.search.settings import ChampionSettings
from rows import append, read

MEMORY_MIB = 1000  # of OpenSpiel's tree
MEASURED = 1000  # simulations that measure OpenSpiel's rate
PASS = "pass"


def column(number: str) -> str:
    """Return the letter of a column, a for 1."""
    return "abcdefghijklmnop"[int(number) - 1]


def drop(words: list[str], _: int) -> str:
    """Translate (drop 1), in connect four."""
    return str(int(words[1]) - 1)


def pawn(rows: int) -> Callable[[list[str], int], str]:
    """Return the translation of (move 1 2 1 3), in breakthrough. OpenSpiel's first player begins at the top."""

    def translated(words: list[str], _: int) -> str:
        x, y, u, v = words[1:]
        return f"{column(x)}{rows + 1 - int(y)}{column(u)}{rows + 1 - int(v)}"

    return translated


def stone(words: list[str], _: int) -> str:
    """Translate (move 4 6), in othello. OpenSpiel numbers the rows from the other side."""
    return f"{column(words[1])}{9 - int(words[2])}" if words[0] == "move" else PASS


def hexagon(words: list[str], _: int) -> str:
    """Translate (place a 3), in hex. OpenSpiel's first player joins the first and the last number, ours the letters."""
    return f"{column(words[2])}{'abcdefghi'.index(words[1]) + 1}"


@dataclass(frozen=True, slots=True)
class Shared:
    """A public sheet, OpenSpiel's name of the game, the translation of our moves, and OpenSpiel's signs to drop."""

    sheet: str
    name: str
    translated: Callable[[list[str], int], str]
    signs: str = ""

    def ours(self, move: str, role: int) -> str:
        return self.translated(move.strip("()").split(), role)

    def theirs(self, text: str) -> str:
        return text.translate(str.maketrans("", "", self.signs))


GAMES = (
    Shared("connectFour", "connect_four(rows=6,columns=8)", drop, "xo"),
    Shared("breakthrough", "breakthrough(rows=8,columns=8)", pawn(8), "*"),
    Shared("breakthroughSmall", "breakthrough(rows=6,columns=6)", pawn(6), "*"),
    Shared("reversi", "othello", stone),
    Shared("hex", "hex(board_size=9)", hexagon),
)


@dataclass
class Pair:
    """A position in both systems. OpenSpiel's passes and ours, where nothing else is legal, need not be the same."""

    shared: Shared
    position: Position
    state: Any  # pyspiel.State

    @classmethod
    def start(cls, shared: Shared, game: Game) -> Pair:
        import pyspiel

        return cls(shared, game.start(), pyspiel.load_game(shared.name).new_initial_state())

    @property
    def role(self) -> int:
        """The role that has a choice; the one after OpenSpiel's player to move if none has."""
        counts = [len(moves) for moves in self.position.legal.values()]
        return counts.index(max(counts)) if max(counts) > 1 else self.state.current_player()

    def actions(self) -> dict[str, int]:
        """Return OpenSpiel's legal actions by our texts."""
        player = self.state.current_player()
        texts = {action: self.state.action_to_string(player, action) for action in self.state.legal_actions()}
        return {self.shared.theirs(text): action for action, text in texts.items()}

    def moves(self) -> dict[str, str]:
        """Return our legal moves by the same texts."""
        own = self.position.legal[self.position.game.roles[self.role]]
        return {self.shared.ours(move, self.role): move for move in own}

    def play(self, text: str) -> Pair:
        """Return the position after a move, by its text."""
        name = self.position.game.roles[self.role]
        forced = {role: moves[0] for role, moves in self.position.legal.items()}
        state = self.state.clone()
        state.apply_action(self.actions()[text])
        return replace(self, position=self.position.play(forced | {name: self.moves()[text]}), state=state)

    def differences(self) -> str:
        """Return how the two systems differ here; an empty text if they do not."""
        if self.position.is_terminal or self.state.is_terminal():
            goals = [goal or 0 for goal in self.position.goals.values()]
            returns = [50 + 50 * value for value in self.state.returns()]
            both = self.position.is_terminal and self.state.is_terminal()
            return "" if both and goals == returns else f"ends {goals}, {returns}, {self.state}"
        same = self.role == self.state.current_player() and self.moves().keys() == self.actions().keys()
        return "" if same else f"moves {sorted(self.moves())}, {sorted(self.actions())}"


def check(shared: Shared, game: Game, matches: int, seed: int) -> tuple[int, str]:
    """Walk random matches in both systems; return the number of compared positions, and the first difference."""
    rng, compared = np.random.default_rng(seed), 0
    for _ in range(matches):
        pair = Pair.start(shared, game)
        while True:
            compared += 1
            if difference := pair.differences():
                return compared, difference
            if pair.position.is_terminal:
                break
            pair = pair.play(str(rng.choice(sorted(pair.moves()))))
    return compared, ""


@dataclass(frozen=True, slots=True)
class Settings:
    """CPU seconds of a move; walks that teach gamelore; OpenSpiel's constant of UCT and playouts of a leaf; version."""

    seconds: float
    teaching: int
    exploration: float
    rollouts: int
    version: str

    @property
    def texts(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}


class TheirBot:
    """OpenSpiel's MCTS in C++ with as many simulations for a move as fit into the time."""

    def __init__(self, shared: Shared, settings: Settings) -> None:
        import pyspiel

        self._game = pyspiel.load_game(shared.name)
        self._settings = settings
        self._rate = self._first_rate = self._measured_rate()

    def _bot(self, simulations: int, seed: int) -> Any:
        import pyspiel

        evaluator = pyspiel.RandomRolloutEvaluator(self._settings.rollouts, seed)
        limits = max(2, simulations), MEMORY_MIB, True, seed, False  # with the solver, without a log
        return pyspiel.MCTSBot(self._game, evaluator, self._settings.exploration, *limits)

    def begin(self) -> None:
        """Begin a match."""
        self._rate = self._first_rate

    def _measured_rate(self) -> float:
        """Return the simulations per CPU-second in the first position."""
        begin = time.process_time()
        self._bot(MEASURED, 1).step(self._game.new_initial_state())
        return MEASURED / (time.process_time() - begin)

    def choose(self, state: Any, seed: int) -> tuple[int, float]:
        """Return an action and its CPU seconds."""
        simulations = int(self._rate * self._settings.seconds)
        begin = time.process_time()
        action: int = self._bot(simulations, seed).step(state)
        spent = time.process_time() - begin
        if spent > self._settings.seconds / 2:  # else its solver ended the search
            self._rate = simulations / spent
        return action, spent


class OurPlayer:
    """The player gamelore, which follows a match of its own."""

    def __init__(self, game: Game, settings: Settings) -> None:
        budget = ChampionSettings(seconds=settings.seconds, teaching=settings.teaching, threads=1, ponder=False)
        self._player, self._graph = Gamelore(budget), PositionGraph(game)

    def begin(self, role: int, number: int) -> None:
        """Begin a match; the first one teaches."""
        self._role, self._key = role, stream(number, role)
        self._match = MatchState(self._graph)
        self._player.begin(role, self._match.started(0))

    def follow(self, joint: Sequence[str]) -> None:
        """Make a joint move."""
        for role, move in enumerate(joint):
            self._match.submit(role, move)

    def choose(self) -> tuple[str, float]:
        """Return a move and its CPU seconds."""
        begin = time.process_time()
        index = int(self._player.choose(self._match.turn(self._role, int(self._key)))[0])
        return self._match.legal(self._role)[index], time.process_time() - begin


@dataclass
class Table:
    """Both players of a game."""

    shared: Shared
    game: Game
    settings: Settings
    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._ours, self._theirs = OurPlayer(self.game, self.settings), TheirBot(self.shared, self.settings)
        self.play(0)  # for practice: it compiles everything, and teaches
        self.spent.clear()

    def opening(self, number: int) -> list[str]:
        """Return two random moves, the same for both matches of a pair."""
        rng, pair, texts = np.random.default_rng([number // 2, 7]), Pair.start(self.shared, self.game), list[str]()
        for _ in range(2):
            texts.append(str(rng.choice(sorted(pair.moves()))))
            pair = pair.play(texts[-1])
        return texts

    def play(self, number: int) -> tuple[float, int]:
        """Play a match; gamelore has the first role in those with even numbers. Return (its score, plies)."""
        pair, own, plies = Pair.start(self.shared, self.game), number % 2, 0
        opening = self.opening(number)
        self._ours.begin(own, number)
        self._theirs.begin()
        while not pair.position.is_terminal:
            text = opening[plies] if plies < len(opening) else self._move(pair, own, number * 1000 + plies)
            later = pair.play(text)
            name = self.game.roles[pair.role]
            forced = {role: moves[0] for role, moves in pair.position.legal.items()}
            joint = forced | {name: pair.moves()[text]}
            self._ours.follow([joint[role] for role in self.game.roles])
            pair, plies = later, plies + 1
        if difference := pair.differences():
            raise SystemExit(f"expected equal rules, got a difference in {self.shared.sheet}: {difference}")
        return (pair.position.goals[self.game.roles[own]] or 0) / 100, plies

    def _move(self, pair: Pair, own: int, seed: int) -> str:
        """Return the text of the next move; a forced one without a search."""
        moves = pair.moves()
        if len(moves) == 1:
            return next(iter(moves))
        if pair.role == own:
            move, spent = self._ours.choose()
            self.spent["ours"].append(spent)
            return self.shared.ours(move, own)
        action, spent = self._theirs.choose(pair.state, seed)
        self.spent["theirs"].append(spent)
        return next(text for text, other in pair.actions().items() if other == action)


def played(table: Table, matches: int, done: set[int], limit: float) -> Iterator[dict[str, str]]:
    """Play the missing matches of a game, pair by pair; yield a row for each."""
    end = time.process_time() + limit
    for number in range(matches):
        if number in done:
            continue
        if number % 2 == 0 and time.process_time() > end:
            return
        score, plies = table.play(number)
        spent = {name: f"{np.sum(table.spent[name]):.4f}" for name in ("ours", "theirs")}
        table.spent.clear()
        row = {"game": table.shared.sheet, "number": str(number), "score": str(score), "plies": str(plies)}
        yield row | spent | table.settings.texts


def score_of(rows: Sequence[dict[str, str]]) -> Interval:
    """Return the score of a game, with the interval over its complete pairs."""
    pairs = complete_rounds(rows, lambda row: int(row["number"]) // 2)
    return score_interval([(float(one["score"]) + float(two["score"])) / 2 for one, two in pairs])


def percent(score: Interval) -> str:
    """Return a score and its interval in %, as two cells of a table."""
    return f"{100 * score.mean:.0f} | {100 * max(0, score.low):.0f} to {100 * min(1, score.high):.0f}"


def report(rows: Sequence[dict[str, str]], names: Sequence[str]) -> None:
    """Print the score of each game, and the mean over games; games of a family of rules are one cluster."""
    print("| game | matches | score % | 95 % | CPU seconds a match, ours / theirs | ratio |\n|---|---|---|---|---|---|")
    scores: dict[str, float] = {}
    for name in names:
        own = [row for row in rows if row["game"] == name]
        if not own:
            continue
        score, spent = score_of(own), [sum(float(row[side]) for row in own) / len(own) for side in ("ours", "theirs")]
        scores[name] = score.mean
        times = f"{spent[0]:.2f} / {spent[1]:.2f} | {spent[0] / spent[1]:.2f}"
        print(f"| {name} | {len(own)} | {percent(score)} | {times} |")
    mean = score_interval(list(scores.values()), [families().get(name, name) for name in scores])
    print(f"| mean | | {percent(mean)} | | |", flush=True)


def main(
    sheets: Annotated[Path, typer.Option(help="folder of the public rulesheets")],
    seconds: Annotated[float, typer.Option(help="CPU time of a move")] = 0.02,
    teaching: Annotated[int, typer.Option(help="walks that teach gamelore a value before the first match")] = 0,
    exploration: Annotated[float, typer.Option(help="OpenSpiel's constant of UCT")] = 2.0,
    rollouts: Annotated[int, typer.Option(help="OpenSpiel's random playouts for a leaf")] = 1,
    matches: Annotated[int, typer.Option(help="number of matches of each game")] = 20,
    limit: Annotated[
        float, typer.Option(help="CPU seconds for each game; it stops after the pair that exceeds it")
    ] = 1e9,
    games: Annotated[str, typer.Option(help="names of sheets with commas; by default all")] = "",
    csv_file: Annotated[Path | None, typer.Option("--csv", help="file for the rows; those in it are kept")] = None,
    version: Annotated[str, typer.Option(help="version of the code whose rows go on")] = "",
    is_check: Annotated[bool, typer.Option("--check", help="compare the rules instead")] = False,
) -> None:
    """Play matches against OpenSpiel's MCTS, or compare the rules; exit with 1 if these differ."""
    names = games.split(",") if games else [shared.sheet for shared in GAMES]
    if unknown := set(names) - {shared.sheet for shared in GAMES}:
        raise typer.BadParameter(f"expected some of {', '.join(x.sheet for x in GAMES)}, got {', '.join(unknown)}")
    wanted = [shared for shared in GAMES if shared.sheet in names]
    settings = Settings(seconds, teaching, exploration, rollouts, version or code_version("search"))
    rows = [row for row in read(csv_file) if settings.texts.items() <= row.items()]
    differ = False
    for shared in wanted:
        game = gamelore.load(sheets / f"{shared.sheet}.kif")
        if is_check:
            compared, difference = check(shared, game, matches, 0)
            differ |= bool(difference)
            print(f"{shared.sheet}: {compared} positions compared, {difference or 'equal'}", flush=True)
            continue
        done = {int(row["number"]) for row in rows if row["game"] == shared.sheet}
        if len(done) < matches:
            for row in played(Table(shared, game, settings), matches, done, limit):
                rows.append(row)
                append(csv_file, row)
        report(rows, [shared.sheet])
    if not is_check:
        print(settings)
        report(rows, [shared.sheet for shared in wanted])
    sys.exit(differ)


if __name__ == "__main__":
    typer.run(main)
