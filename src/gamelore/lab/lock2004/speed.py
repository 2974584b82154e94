"""How much faster version 2 of SeqPlayer decides than version 1, with the same pairs against the same opponents."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...learn.seqplayer import SeqPlayer
from ...learn.training import Tournaments, score
from ...play.player import Player
from ..workers import Report
from .plan import VERSIONS, Experiment
from .runs import Done, Job, graph_of, trained

if TYPE_CHECKING:
    from ...play.player import Finished, Started, Turn

REPEATS = 5


class Timed(Player):
    """Another player, and the processor time of its decisions in nanoseconds."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.nanoseconds = self.decisions = 0

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`."""
        self.player.begin(role, started)

    def end(self, role: int, finished: Finished) -> None:
        """See `Player.end`."""
        self.player.end(role, finished)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        begin = time.process_time_ns()
        choices = self.player.choose(turn)
        self.nanoseconds += time.process_time_ns() - begin
        self.decisions += len(turn.lanes)
        return choices


def time_run(job: Job, report: Report) -> Done:
    """Trains, then lets both versions play in turn: microseconds per decision, the median of several repeats."""
    begin, experiment = time.process_time(), job.experiment
    graph = graph_of(experiment.game)
    tournaments = Tournaments(graph, (experiment.seed, job.run))
    pairs = trained(experiment, tournaments).pairs
    found: dict[str, list[float]] = {test.name: [] for test in VERSIONS}
    for _ in range(REPEATS):
        for test in VERSIONS:
            found[test.name].append(_once(experiment, tournaments, SeqPlayer(pairs, test.player)))
    report(experiment.size)
    result = {"microseconds": {name: median(times) for name, times in found.items()}}
    return Done(job, graph.game.rules_hash, time.process_time() - begin, result)


def _once(experiment: Experiment, tournaments: Tournaments, player: SeqPlayer) -> float:
    timed = Timed(player)
    for opponent in experiment.tests[0].opponents:
        other = tournaments.named(experiment.spec(opponent))
        score(tournaments.play(timed, other, experiment.matches, f"test/{opponent}"))
    return timed.nanoseconds / 1000 / max(timed.decisions, 1)
