"""One run of an experiment: a training stage, a testing stage, and what is to be known of both, as plain data.

scores      test -> opponent -> [matches, wins, draws]
sources     test -> source of a decision -> how often
sequences   in the table; `twice`: met in two encounters at least, `origins`: in two origin states
pairs       context pairs; `classes`: formula -> pairs in each weight class
advice      source -> [states, moves without regret, the same expected of a random move]
strategies  name -> {num, strong, best}
best        the pairs of the highest weights
met         the sequences themselves, [role, kind, move, .., encounters, several]; of lose tic-tac-toe
seconds     of processor time: training, testing
"""

from __future__ import annotations

import gc
import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...games import load
from ...learn.patterns import Patterns
from ...learn.seqplayer import SeqPlayer
from ...learn.sequences import SeqLearner
from ...learn.training import Tournaments, score, train
from ...learn.weighing import WEIGHTS
from ...play import roster
from ...play.graph import Graph
from ...rules.symmetry import Symmetries, symmetries
from ..learned import best
from ..workers import Report
from . import strategies
from .observing import Observed
from .plan import OUTER_RING, RANDOM, Experiment, Group, Test
from .printed import CLASSES, OPPONENTS

if TYPE_CHECKING:
    from ...learn.contexts import ContextPairs
    from ...play.player import Player
    from ...rules.game import Game

Result: TypeAlias = dict[str, Any]

NUM_BEST = 8
MAX_ROWS = 1_500_000  # a graph beyond this is dropped between two runs; results do not depend on it


class Job(NamedTuple):
    """A run that is to be made."""

    experiment: Experiment
    run: int


class Done(NamedTuple):
    """A run that was made; rules_hash: of the game."""

    job: Job
    rules_hash: str
    seconds: float
    result: Result


def play_run(job: Job, report: Report) -> Done:
    """Makes one run; `report` is told of its matches."""
    begin, experiment = time.process_time(), job.experiment
    graph = graph_of(experiment.game)
    tournaments = Tournaments(graph, (experiment.seed, job.run))
    result = _baseline(experiment, tournaments) if experiment.learner is None else _learner(experiment, tournaments)
    report(experiment.size)
    return Done(job, graph.game.rules_hash, time.process_time() - begin, result)


def _baseline(experiment: Experiment, tournaments: Tournaments) -> Result:
    player = roster.player("random")
    return {"scores": {RANDOM: _scores(experiment, tournaments, player, OPPONENTS)}}


def _learner(experiment: Experiment, tournaments: Tournaments) -> Result:
    begin = time.process_time()
    learner = trained(experiment, tournaments)
    trained_at = time.process_time()
    result: Result = {**_counts(learner), "scores": {}, "sources": {}}
    for test in experiment.tests:
        pairs = learner.pairs.weighed(WEIGHTS[test.weighting](learner.pairs.record))
        if not test.has_pairs:
            pairs = pairs.chosen(np.zeros(0, np.intp))
        player = _player(experiment, pairs, test)
        result["scores"][test.name] = _scores(experiment, tournaments, player, test.opponents)
        result["sources"][test.name] = player.sources
        if isinstance(player, Observed):
            result["advice"] = player.as_json()
    if experiment.measured:
        result |= _measured(experiment, learner)
    result["seconds"] = [trained_at - begin, time.process_time() - trained_at]
    return result


def trained(experiment: Experiment, tournaments: Tournaments) -> SeqLearner:
    """The learner of an experiment after the training stage."""
    game = tournaments.graph.game
    learner = SeqLearner(Patterns(game, symmetry_group(game, experiment.group)), experiment.learner)
    train(learner, tournaments, experiment.curriculum)
    return learner


def symmetry_group(game: Game, which: Group) -> Symmetries:
    """The symmetries under which sequences and contexts count as one."""
    if which == "none":
        return Symmetries.trivial(game)
    found = symmetries(game)
    if which == "all" or game.name.partition(":")[0] != "fivemensmorris":
        return found
    return found.keeping(f"(cell {point} b)" for point in OUTER_RING)


def _player(experiment: Experiment, pairs: ContextPairs, test: Test) -> SeqPlayer:
    """Advice is judged where version 2 plays."""
    observed = experiment.measured and test.player.version == 2
    return (Observed if observed else SeqPlayer)(pairs, test.player)


def _scores(
    experiment: Experiment, tournaments: Tournaments, player: Player, opponents: tuple[str, ...]
) -> dict[str, list[int]]:
    scores = {}
    for opponent in opponents:
        other = tournaments.named(experiment.spec(opponent))
        found = score(tournaments.play(player, other, experiment.matches, f"test/{opponent}"))
        scores[opponent] = [found.matches, found.wins, found.draws]
    return scores


def _counts(learner: SeqLearner) -> Result:
    entries, record = learner.table.entries, learner.pairs.record
    edges = [*reversed(CLASSES), np.inf]
    return {
        "sequences": len(entries),
        "twice": int((entries.encounters >= 2).sum()),
        "origins": int(entries.several.sum()),
        "pairs": len(learner.pairs),
        "classes": {name: np.histogram(formula(record), edges)[0][::-1].tolist() for name, formula in WEIGHTS.items()},
    }


def _measured(experiment: Experiment, learner: SeqLearner) -> Result:
    pairs, entries = learner.pairs, learner.table.entries
    found = strategies.look_for(pairs, experiment.game)
    result: Result = {
        "strategies": {name: shown.as_json() for name, shown in found.items()},
        "best": [one.as_json() for one in best(pairs, NUM_BEST)],
    }
    if experiment.game == "losetictactoe":
        columns = (entries.roles, entries.kinds, *entries.moves.T, entries.encounters, entries.several)
        result["met"] = np.column_stack([column.astype(np.int64) for column in columns]).tolist()
    return result


_graphs: dict[str, Graph] = {}


def graph_of(game: str) -> Graph:
    """The positions of a game that were met so far, those of one game at a time."""
    if game not in _graphs or _graphs[game].num_rows > MAX_ROWS:
        _graphs.clear()
        gc.collect()  # a graph and what is known of its rows refer to each other
        _graphs[game] = Graph(_game(game))
    return _graphs[game]


@cache
def _game(game: str) -> Game:
    return load(game)
