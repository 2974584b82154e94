"""One run of Lock & Epstein 2004: training, testing, and results as plain data (scores, strategies, advice, times).

The result of a run is a dictionary with these keys:

scores      test -> opponent -> [matches, wins, draws]
sources     test -> source of a decision -> number of decisions
sequences   number of sequences in the table
twice       number of sequences that occurred in at least two encounters
origins     number of sequences that occurred in at least two origin states
pairs       number of context pairs
classes     formula -> number of pairs in each weight class
advice      source -> [states, advised moves that lose nothing, expected number of random moves that lose nothing]
strategies  name -> {num, strong, best}, see `look_for`
best        the pairs of the highest weights
met         each sequence as [role, kind, move, .., encounters, several]; only for lose tic-tac-toe. `several` is 1 if
            the sequence occurred in different origin states, else 0
seconds     processor time of training and of testing

The result of a timed run has only one key, `microseconds`: version of SeqPlayer -> median time of a decision.

The strategies are those of the paper's Figures 5 to 7. Each strategy belongs to one kind of branch, duets or solos. A
pair shows a strategy if it has branches of this kind, and all these branches fit the definition below:

reflection  lose tic-tac-toe, Figure 5: a duet of xplayer. In its context, xplayer has marked the centre. xplayer
            answers every move of oplayer by a mark on the opposite square, as seen from the centre
block       five men's morris, Figure 6: a duet in the placing stage. Each move of the contestant fills the last free
            point of a mill. The opponent has the other two points of this mill
shuttle     five men's morris, Figure 7: a solo of slides. The same piece slides from a first point to a second, back
            to the first, and again to the second. At least one of these slides closes a mill
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....analysis.symmetry import Symmetries, symmetries
from ....catalogue import player
from ....game.game import Game
from ....learning.sequences.contexts import ContextPairs
from ....learning.sequences.patterns import Patterns
from ....learning.sequences.seqlearner import WEIGHTS, SeqLearner, Tournaments, score, train
from ....learning.sequences.seqplayer import SeqPlayer, SeqPlayerSettings, consult
from ....players.player import Player, Turn
from ....players.position_graph import PositionGraph
from ....players.random_streams import stream
from ....rulesheets import load
from ....solver.perfect import SolvedMoves
from ....workers.processes import Report
from ...results import Outcome, ResultStore, Trial
from ...sequence_text import Branch, LearnedPair, best, learned
from .plan import CLASSES, OPPONENTS, OUTER_RING, RANDOM, Experiment, Group

RunResult: TypeAlias = dict[str, Any]

NUM_BEST = 8
MAX_ROWS = 1_500_000  # a graph with more rows is dropped between two runs; this does not change results
REPEATS = 5  # number of measurements of each version in a timed run


def one_by_one(trials: Iterable[Trial[Experiment]], store: ResultStore, workers: int) -> Iterator[Trial[Experiment]]:
    """Return every trial as a job of its own, the longest trials first."""
    return iter(sorted(trials, key=lambda trial: (-trial.setting.runs * trial.setting.size, trial.run)))


def play_run(trial: Trial[Experiment], report: Report) -> list[Outcome]:
    """Make one run, and report the number of its matches as progress."""
    return _made(trial, report, _learner if trial.setting.learner else _baseline)


def time_run(trial: Trial[Experiment], report: Report) -> list[Outcome]:
    """Measure the time of decisions of both versions of SeqPlayer, with equal pairs and against equal opponents."""
    return _made(trial, report, _timed)


def _made(
    trial: Trial[Experiment], report: Report, make: Callable[[Experiment, Tournaments], RunResult]
) -> list[Outcome]:
    begin, experiment = time.process_time(), trial.setting
    graph = graph_of(experiment.game)
    hash_key = int(stream(experiment.seed, trial.run, "choice"))  # used only by players that repeat their choices
    tournaments = Tournaments(graph, (experiment.seed, trial.run), partial(player, hash_key=hash_key))
    result = make(experiment, tournaments)
    report(experiment.size)
    seconds, game = time.process_time() - begin, graph.game
    return [Outcome(trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=result)]


def _baseline(experiment: Experiment, tournaments: Tournaments) -> RunResult:
    return {"scores": {RANDOM: _scores(experiment, tournaments, player("random"), OPPONENTS)}}


def _learner(experiment: Experiment, tournaments: Tournaments) -> RunResult:
    begin = time.process_time()
    learner = trained(experiment, tournaments)
    trained_at = time.process_time()
    result: RunResult = {**_counts(learner), "scores": {}, "sources": {}}
    for test in experiment.tests:
        pairs = learner.pairs.weighed(WEIGHTS[test.weighting](learner.pairs.record))
        if not test.has_pairs:
            pairs = pairs.chosen(np.zeros(0, np.intp))
        observed = experiment.measured and test.player.version == 2  # advice is judged only when version 2 plays
        player = (Observed if observed else SeqPlayer)(pairs, test.player)
        result["scores"][test.name] = _scores(experiment, tournaments, player, test.opponents)
        result["sources"][test.name] = player.sources
        if isinstance(player, Observed):
            result["advice"] = player.as_json()
    if experiment.measured:
        result |= _measured(experiment, learner)
    result["seconds"] = [trained_at - begin, time.process_time() - trained_at]
    return result


def trained(experiment: Experiment, tournaments: Tournaments) -> SeqLearner:
    """Return the learner of an experiment after the training stage."""
    game = tournaments.graph.game
    learner = SeqLearner(Patterns(game, symmetry_group(game, experiment.group)), experiment.learner)
    train(learner, tournaments, experiment.curriculum)
    return learner


def symmetry_group(game: Game, which: Group) -> Symmetries:
    """Return the symmetries of a group. Sequences or contexts that are images of each other count as one."""
    if which == "none":
        return Symmetries.trivial(game)
    group = symmetries(game)
    if which == "all" or game.name.partition(":")[0] != "fivemensmorris":
        return group
    return group.keeping(f"(cell {point} b)" for point in OUTER_RING)


def _scores(
    experiment: Experiment, tournaments: Tournaments, player: Player, opponents: tuple[str, ...]
) -> dict[str, list[int]]:
    scores = {}
    for opponent in opponents:
        other = tournaments.named(experiment.spec(opponent))
        result = score(tournaments.play(player, other, experiment.matches, f"test/{opponent}"))
        scores[opponent] = [result.matches, result.wins, result.draws]
    return scores


def _counts(learner: SeqLearner) -> RunResult:
    entries, record = learner.table.entries, learner.pairs.record
    edges = [*reversed(CLASSES), np.inf]
    return {
        "sequences": len(entries),
        "twice": int((entries.encounters >= 2).sum()),
        "origins": int(entries.several.sum()),
        "pairs": len(learner.pairs),
        "classes": {name: np.histogram(formula(record), edges)[0][::-1].tolist() for name, formula in WEIGHTS.items()},
    }


def _measured(experiment: Experiment, learner: SeqLearner) -> RunResult:
    pairs, entries = learner.pairs, learner.table.entries
    result: RunResult = {
        "strategies": look_for(pairs, experiment.game),
        "best": [pair.as_json() for pair in best(pairs, NUM_BEST)],
    }
    if experiment.game == "losetictactoe":
        columns = (entries.roles, entries.kinds, *entries.moves.T, entries.encounters, entries.several)
        result["met"] = np.column_stack([column.astype(np.int64) for column in columns]).tolist()
    return result


_graphs: dict[str, PositionGraph] = {}


def graph_of(game: str) -> PositionGraph:
    """Return the graph of a game with the positions met so far. Only the graph of the last game is kept."""
    if game not in _graphs or _graphs[game].num_rows > MAX_ROWS:
        _graphs.clear()
        gc.collect()  # needed because a graph and the data of its rows refer to each other
        _graphs[game] = PositionGraph(_load(game))
    return _graphs[game]


_load = cache(load)


# ---- how good advice is ----

ENFORCED = "enforced"
SOURCES = (*(f"{low:g}" for low in CLASSES), ENFORCED)
"""Sources of advice. A class of pairs is named by its lowest weight, and is asked for advice in every state met.

The last source is the Enforcer. Its advice is known only in states in which it made the decision.
"""


class AdviceTally:
    """A tally of the advice of one source.

    states  number of states with advice; only states in which at least one legal move loses something are counted
    right   number of advised moves that lose nothing
    random  expected number of moves that lose nothing if the moves in these states are chosen at random: the sum over
            the states of (number of legal moves that lose nothing) / (number of legal moves)
    """

    def __init__(self) -> None:
        self.states, self.right, self.random = 0, 0, 0.0

    def add(self, shares: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
        """Add states with advice to the tally.

        shares  for each state, the share of legal moves that lose nothing
        right   for each state, whether the advised move loses nothing
        """
        counted = shares < 1.0
        self.states += int(counted.sum())
        self.right += int(right[counted].sum())
        self.random += float(shares[counted].sum())

    def as_json(self) -> list[float]:
        return [self.states, self.right, self.random]


class Observed(SeqPlayer):
    """A SeqPlayer that also measures the quality of its advice, as one tally for each of SOURCES."""

    def __init__(self, pairs: ContextPairs, settings: SeqPlayerSettings) -> None:
        super().__init__(pairs, settings)
        self.tallies = {source: AdviceTally() for source in SOURCES}
        weights = self.pairs.weights
        self._classes = {
            f"{low:g}": self.pairs.chosen(np.flatnonzero((weights >= low) & (weights < high)))
            for high, low in pairwise((np.inf, *CLASSES))
        }

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        graph, role = turn.graph, turn.role
        solved = graph.memo(SolvedMoves)
        solved.look(turn.rows)
        begins, counts = graph.move_start[turn.rows, role], graph.num_moves[turn.rows, role]
        optimal = [solved.optimal[begin : begin + count] for begin, count in zip(begins, counts, strict=True)]
        shares = np.array([part.mean() for part in optimal])
        allowed = np.ones(counts.sum(), np.bool_)
        for source, pairs in self._classes.items():
            if len(pairs):
                choices = consult(pairs, turn, np.zeros(1), allowed).choices
                self._add(source, choices, optimal, shares)
        self._enforced = np.full(len(turn.lanes), -1, np.int32)
        choices = super().choose(turn)
        self._add(ENFORCED, self._enforced, optimal, shares)
        return choices

    def _enforce(self, turn: Turn, i: int, lane: int, allowed: NDArray[np.bool_]) -> int:
        self._enforced[i] = super()._enforce(turn, i, lane, allowed)
        return int(self._enforced[i])

    def _add(
        self, source: str, choices: NDArray[np.int32], optimal: list[NDArray[np.bool_]], shares: NDArray[np.float64]
    ) -> None:
        advised = np.flatnonzero(choices >= 0)
        right = np.array([optimal[i][choices[i]] for i in advised], np.bool_)
        self.tallies[source].add(shares[advised], right)

    def as_json(self) -> dict[str, Any]:
        return {source: tally.as_json() for source, tally in self.tallies.items()}


# ---- the strategies of the figures ----

STRONG = 0.9
MILLS = ((1, 2, 3), (3, 10, 16), (14, 15, 16), (1, 7, 14), (4, 5, 6), (6, 9, 13), (11, 12, 13), (4, 8, 11))


def look_for(pairs: ContextPairs, game: str) -> RunResult:
    """Return for each strategy of a game its pairs, as a dictionary.

    num     number of pairs that show the strategy
    strong  number of these pairs with a weight of at least STRONG
    best    the pair with the highest weight among them; None if there is none
    """
    every = [learned(pairs, pair) for pair in range(len(pairs))]
    counts = {}
    for name in (name for name, where in STRATEGIES.items() if where == game):
        shown = [pair for pair in every if shows(pair, name)]
        best = max(shown, key=lambda pair: (pair.weight, pair.comments), default=None)
        strong = sum(pair.weight >= STRONG for pair in shown)
        counts[name] = {"num": len(shown), "strong": strong, "best": best and best.as_json()}
    return counts


def shows(pair: LearnedPair, strategy: str) -> bool:
    """Return whether a pair shows a strategy, as defined at the top of this module."""
    kind, test = _TESTS[strategy]
    branches = [moves for branch_kind, moves in pair.branches if branch_kind == kind]
    return bool(branches) and all(test(pair.role, pair.context, moves) for moves in branches)


def _points(move: str) -> tuple[int, ...]:
    """Return the numbers in a move, such as (1, 3) for `(mark 1 3)`."""
    return tuple(int(word) for word in move.strip("()").split()[1:])


def _reflects(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if role != "xplayer" or "(cell 2 2 x)" not in facts:
        return False
    pairs = [(move[1], reply[1]) for move, reply in pairwise(moves) if move[0] != role == reply[0]]
    opposite = [tuple(4 - coordinate for coordinate in _points(move)) for move, _ in pairs]
    return bool(pairs) and opposite == [_points(reply) for _, reply in pairs]


def _blocks(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if "(stage placing)" not in facts:
        return False
    other = "white" if role == "black" else "black"
    theirs = {point for point in range(1, 17) if f"(cell {point} {other})" in facts}
    for mover, move in moves:
        point = _points(move)[0]
        if not move.startswith("(place"):
            return False
        if mover == other:
            theirs.add(point)
        elif not any(point in mill and theirs.issuperset(set(mill) - {point}) for mill in MILLS):
            return False
    return True


def _shuttles(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if not all(move.startswith("(move") for _, move in moves):
        return False
    ways = [_points(move)[:2] for _, move in moves]
    returns = all(later == earlier[::-1] for earlier, later in pairwise(ways))
    return len(ways) > 2 and returns and any(move.startswith("(move_take") for _, move in moves)


STRATEGIES = {"reflection": "losetictactoe", "block": "fivemensmorris", "shuttle": "fivemensmorris"}
"""Strategy -> game in which it occurs."""
_TESTS: dict[str, tuple[str, Callable[[str, frozenset[str], Branch], bool]]] = {
    "reflection": ("duet", _reflects), "block": ("duet", _blocks), "shuttle": ("solo", _shuttles)
}  # fmt: skip


# ---- how long decisions take ----


class Timed(SeqPlayer):
    """A SeqPlayer that measures the processor time of its decisions, in nanoseconds."""

    nanoseconds = decisions = 0

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        begin = time.process_time_ns()
        choices = super().choose(turn)
        self.nanoseconds += time.process_time_ns() - begin
        self.decisions += len(turn.lanes)
        return choices


def _timed(experiment: Experiment, tournaments: Tournaments) -> RunResult:
    """Return the median time of a decision by each version, in microseconds."""
    pairs = trained(experiment, tournaments).pairs
    times: dict[str, list[float]] = {test.name: [] for test in experiment.tests}
    for _ in range(REPEATS):
        for test in experiment.tests:
            times[test.name].append(_microseconds(experiment, tournaments, Timed(pairs, test.player)))
    return {"microseconds": {name: median(repeats) for name, repeats in times.items()}}


def _microseconds(experiment: Experiment, tournaments: Tournaments, timed: Timed) -> float:
    for opponent in experiment.tests[0].opponents:
        other = tournaments.named(experiment.spec(opponent))
        score(tournaments.play(timed, other, experiment.matches, f"test/{opponent}"))
    return timed.nanoseconds / 1000 / max(timed.decisions, 1)
