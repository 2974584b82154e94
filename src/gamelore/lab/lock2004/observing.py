"""How good advice is: SeqPlayer's decisions while it plays, judged by the solution of the game."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...learn.advice import consult
from ...learn.contexts import ContextPairs
from ...learn.seqplayer import SeqPlayer, SeqPlayerSettings
from ...play.perfect import SolvedMoves
from .printed import CLASSES

if TYPE_CHECKING:
    from ...play.player import Turn

ENFORCED = "enforced"
SOURCES = (*(f"{low:g}" for low in CLASSES), ENFORCED)
"""Who advises: each class of pairs, by its lowest weight, in every state met; and the Enforcer, where it decided."""


class Tally:
    """Of one source: states in which a move loses something, how many of its moves there lost nothing, and how many
    would have at random (the sum of the shares of such moves among the legal ones)."""

    def __init__(self) -> None:
        self.states, self.right, self.random = 0, 0, 0.0

    def add(self, shares: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
        """Counts moves: of each state the share of legal moves that lose nothing, and whether the one advised does."""
        counted = shares < 1.0
        self.states += int(counted.sum())
        self.right += int(right[counted].sum())
        self.random += float(shares[counted].sum())

    def as_json(self) -> list[float]:
        return [self.states, self.right, self.random]


class Observed(SeqPlayer):
    """Plays as SeqPlayer does, and keeps count of how good its advice was: `tallies`, by SOURCES."""

    def __init__(self, pairs: ContextPairs, settings: SeqPlayerSettings) -> None:
        super().__init__(pairs, settings)
        self.tallies = {source: Tally() for source in SOURCES}
        weights = self.pairs.weights
        highs = (np.inf, *CLASSES[:-1])
        self._classes = {
            f"{low:g}": self.pairs.chosen(np.flatnonzero((weights >= low) & (weights < high)))
            for low, high in zip(CLASSES, highs, strict=True)
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
        self,
        source: str,
        choices: NDArray[np.int32],
        optimal: list[NDArray[np.bool_]],
        shares: NDArray[np.float64],
    ) -> None:
        advised = np.flatnonzero(choices >= 0)
        right = np.array([optimal[i][choices[i]] for i in advised], np.bool_)
        self.tallies[source].add(shares[advised], right)

    def as_json(self) -> dict[str, Any]:
        return {source: tally.as_json() for source, tally in self.tallies.items()}
