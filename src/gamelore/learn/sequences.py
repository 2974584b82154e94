"""SeqLearner: learns from finished matches which sequences of moves to play in which contexts (Lock & Epstein 2004).

Of every match it weighs its context pairs by what the experts did in it, and takes the sequences of the successful
contestants into the SeqTable; after every tournament it extracts the pairs anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..play.player import TERMINAL
from ..rules.engine import pack_bits
from ..rules.vicinity import Vicinity
from .contexts import ContextPairs, Trees
from .excerpts import excerpts, turns
from .seqtable import Entries, SeqTable
from .weighing import WEIGHTS, weigh

if TYPE_CHECKING:
    from ..play.player import Finished
    from .patterns import Patterns

Draws = Literal["count", "lose"]
Repeated = Literal["encounters", "origins", "once"]
Contexts = Literal["common", "each"]


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """What SeqLearner learns, and how it weighs it. The defaults are the paper's, where it names them.

    lengths    of sequences, in moves; the paper: 3 for lose tic-tac-toe, 3 and 5 for five men's morris
    weighting  PWL's formula, by name (weighing.py)
    repeated   a sequence gets a context when it was met in two "encounters", or in two different "origins"
               (readings.md, L&E 9), or when it was met "once"
    contexts   what the origin states of a sequence have in "common", or "each" of them as a context of its own
    trees      sequences of one "context" make one tree, or only those with the same "first" move as well
    draws      whether a contestant who drew counts as successful: "count" them, as the paper does where the game is a
               draw, or "lose"
    locality   sequences of which each move is near the first only, and contexts of facts near their moves only:
               "none", "moves", "contexts" or "both" (the paper's section 3)
    """

    lengths: tuple[int, ...] = (3,)
    weighting: str = "agreement"
    repeated: Repeated = "encounters"
    contexts: Contexts = "common"
    trees: Trees = "context"
    draws: Draws = "count"
    locality: Literal["none", "moves", "contexts", "both"] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        if not self.lengths or self.lengths[0] < 1:
            raise GameloreError(f"expected lengths of sequences of at least 1, got {self.lengths}; the paper has 3")
        known = {
            "weighting": tuple(WEIGHTS),
            "repeated": get_args(Repeated),
            "contexts": get_args(Contexts),
            "trees": get_args(Trees),
            "draws": get_args(Draws),
            "locality": ("none", "moves", "contexts", "both"),
        }
        for name, words in known.items():
            if getattr(self, name) not in words:
                found = getattr(self, name)
                raise GameloreError(f"expected {name} {' | '.join(words)}, got {found!r}; choose one of these")


class SeqLearner:
    """Learns one game; `pairs` are the context pairs as last extracted, with their weights as of then."""

    def __init__(self, patterns: Patterns, settings: SequenceSettings | None = None) -> None:
        self.patterns = patterns
        self.settings = settings or SequenceSettings()
        self.table = SeqTable(patterns, self.settings.lengths[-1], apart=self.settings.contexts == "each")
        self.pairs = ContextPairs.none(patterns, self.settings.lengths[-1])
        self.num_matches = 0

    def watch(self, finished: Finished, experts: NDArray[np.bool_]) -> None:
        """Weighs the pairs by these matches, and takes their sequences into the table.

        experts: bool[n, roles], whose moves are those of an expert.
        """
        outcomes = results(finished)
        successful = outcomes == 1.0 if self.settings.draws == "lose" else outcomes >= 0.5
        made = turns(finished)
        weigh(
            self.pairs,
            finished.graph,
            made.rows,
            made.roles,
            made.moves,
            experts[made.matches, made.roles],
            np.where(np.isnan(outcomes), np.nan, successful)[made.matches, made.roles],
        )
        met = excerpts(finished, successful, self.settings.lengths)
        if self.settings.locality in ("moves", "both"):
            met = met.chosen(self._vicinity.close_together(met.moves // finished.graph.game.num_roles))
        self.table.add(met, self.patterns.of(finished.graph, met.rows))
        self.num_matches += len(finished.lanes)

    def extract(self) -> None:
        """Sweeps through the SeqTable for contexts; pairs that stay keep their record."""
        found = self.repeated
        contexts = found.contexts
        if self.settings.locality in ("contexts", "both"):
            actions = found.moves // self.patterns.game.num_roles
            contexts = contexts & pack_bits(self._vicinity.around(actions), contexts.shape[1])
        pairs = ContextPairs.form(
            self.patterns, found.roles, found.kinds, found.moves, contexts, self.settings.trees, exact=self.is_exact
        )
        pairs.inheriting(self.pairs)
        self.pairs = pairs.weighed(WEIGHTS[self.settings.weighting](pairs.record))

    @property
    def is_exact(self) -> bool:
        """Whether contexts are whole states."""
        return self.table.apart and self.settings.locality in ("none", "moves")

    @cached_property
    def _vicinity(self) -> Vicinity:
        return Vicinity.of(self.patterns.game)

    @property
    def repeated(self) -> Entries:
        """The sequences that have a context."""
        entries = self.table.entries
        if self.settings.repeated == "origins":
            return entries[entries.several]
        return entries[entries.encounters >= (1 if self.settings.repeated == "once" else 2)]


def results(finished: Finished) -> NDArray[np.float64]:
    """float64[n, roles]: 1 for a win, 0.5 for a draw, 0 for a loss; NaN where the match has no result.

    Who has more than any other role has won, who shares the most with others has drawn. Alone, who gets its best goal
    value has won, any other has lost.
    """
    goals = finished.goals.astype(np.float64)
    if goals.shape[1] == 1:
        outcome = (goals == finished.graph.game.goal_values[0][-1]).astype(np.float64)
    else:
        others = np.stack([np.delete(goals, role, axis=1).max(axis=1) for role in range(goals.shape[1])], axis=1)
        outcome = np.where(goals == others, 0.5, (goals > others).astype(np.float64))
    missing = (finished.goals < 0).any(axis=1) | (finished.ends != TERMINAL)
    outcome[missing] = np.nan
    return np.asarray(outcome)
