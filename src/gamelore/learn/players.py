"""Every player by name: those of play/roster.py, and those that know what is in a knowledge store, or put it there.

Whoever takes players by name imports them from here: the command line, the lab, the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..play.player import Finished, Player, Started, Turn
from ..play.roster import ROSTER as ROSTER
from ..play.roster import Entry, enlist, yes_or_no
from ..play.roster import player as player
from .knowledge import Knowledge, default_path

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game
    from .lasting import LastingLearner
    from .seqplayer import SeqPlayer
    from .settings import Kind


class StoredSeqPlayer(Player):
    """SeqPlayer with the pairs of a stored learner; it is read when a first match begins, or a first turn comes.

    knowledge  the store's file; None for the user's own
    learner    its number in that store; None for the newest that has learned sequences of the game that is played
    options    see `SeqPlayerSettings`
    """

    def __init__(self, knowledge: str | None = None, learner: int | None = None, **options: object) -> None:
        from .seqplayer import SeqPlayerSettings

        self.settings = SeqPlayerSettings(**options)  # type: ignore[arg-type]
        self.knowledge = knowledge
        self.learner = learner
        self._read: tuple[Game, SeqPlayer] | None = None

    def begin(self, role: int, started: Started) -> None:
        """Raises KnowledgeError where the store has no sequences for this game."""
        self.of(started.graph).begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        return self.of(turn.graph).choose(turn)

    def end(self, role: int, finished: Finished) -> None:
        """See `Player.end`."""
        self.of(finished.graph).end(role, finished)

    def of(self, graph: Graph) -> SeqPlayer:
        """The player itself, for matches on this graph."""
        if self._read is None or self._read[0] is not graph.game:
            self._read = graph.game, self._make(graph.game)
        return self._read[1]

    def _make(self, game: Game) -> SeqPlayer:
        from .seqplayer import SeqPlayer
        from .seqstudy import load_pairs, newest

        with Knowledge(self.knowledge or default_path(), create=False) as store:
            found = newest(store, game) if self.learner is None else store.find(self.learner)
            return SeqPlayer(load_pairs(store, found, game), self.settings)


enlist(
    "seqplayer",
    Entry(
        "plays the sequences that were learned of the game (L&E 2004), from the store `knowledge`, of its `learner`",
        {
            "knowledge": str,
            "learner": int,
            "version": int,
            "enforce": str,
            "votes": str,
            "verify": int,
            "fallback": str,
        },
        StoredSeqPlayer,
    ),
)


def _lasting(kind: Kind, **options: object) -> LastingLearner:
    from .lasting import LastingLearner

    return LastingLearner(kind, **options)  # type: ignore[arg-type]


_LEARNER_OPTIONS: dict[str, Callable[[str], object]] = {
    "knowledge": str,
    "opponent": str,
    "seed": int,
    "learn": yes_or_no,
    "quota": int,
    "search": float,
    "initialisation": str,
    "depth": int,
    "alpha": float,
    "gamma": float,
    "lam": float,
    "epsilon": float,
    "symmetry": str,
    "ties": str,
}
_LEARNERS: dict[Kind, tuple[str, dict[str, Callable[[str], object]]]] = {
    "baseline": (
        "learns afterstate values against `opponent` (its options joined by +), into `knowledge` unless learn=no"
        " (B&S 2007)",
        {},
    ),
    "transfer": (
        "the same, and begins with what the games `source` (joined by +; else all in the store) taught (B&S 2007)",
        {"source": str, "source_opponent": str, "control": str},
    ),
    "lookahead": ("the same, and begins with what it sees `depth` plies ahead (B&S 2007)", {"heuristic": str}),
}
for _kind, (_about, _options) in _LEARNERS.items():
    enlist(_kind, Entry(_about, {**_LEARNER_OPTIONS, **_options}, partial(_lasting, _kind)))
