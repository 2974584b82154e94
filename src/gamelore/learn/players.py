"""Every player by name: those of play/roster.py, and SeqPlayer with what a knowledge store has for it.

Whoever takes players by name imports them from here: the command line, the lab, the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..play.player import Finished, Player, Started, Turn
from ..play.roster import ROSTER as ROSTER
from ..play.roster import Entry, enlist
from ..play.roster import player as player
from .knowledge import Knowledge, default_path

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game
    from .seqplayer import SeqPlayer


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
