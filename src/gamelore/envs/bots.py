"""Bots of OpenSpiel as players: "openspiel:mcts", by the entry point `gamelore.players`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..catalogue import PlayerKind
from ..errors import GameloreError, one_of
from ..game.game import Game, Position
from ..players.player import Player, Turn
from ..players.random_streams import WHICH, below

if TYPE_CHECKING:
    from .spiel import SpielGame

MCTS = "mcts"
SIMULATIONS, UCT_C = 1000, 2.0


class OpenSpielPlayer(Player):
    """A bot of OpenSpiel. It chooses in each position anew, and gets the position without its history.

    bot          "mcts" for OpenSpiel's MCTS in Python with random rollouts (that in C++ crashes with games in Python,
                 also with OpenSpiel's own, in version 2.0), or a bot that it has registered
    simulations  number of simulations of "mcts" for a move
    uct_c        weight of the exploration of "mcts"
    """

    def __init__(self, bot: str = MCTS, simulations: int = SIMULATIONS, uct_c: float = UCT_C) -> None:
        if find_spec("pyspiel") is None:
            raise GameloreError(
                "expected OpenSpiel for the player openspiel, got none; pip install open_spiel (Linux and macOS)"
            )
        import pyspiel

        self._bot = one_of(bot, (MCTS, *pyspiel.registered_bots()), "a bot of OpenSpiel")
        if simulations < 1:
            raise GameloreError(f"expected at least one simulation, got {simulations}")
        self._simulations, self._uct_c = simulations, uct_c
        self._games: dict[str, SpielGame] = {}

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        game, choices = turn.graph.game, []
        spiel = self._game(game)
        for row, key, ply in zip(turn.rows.tolist(), turn.keys, turn.plies, strict=True):
            seed = below(key, np.uint64(ply), np.uint64(WHICH), 2**31 - 1)
            state = spiel.new_initial_state().at(Position(game, turn.graph.states[row]))
            action = self._made(spiel, turn.role, seed).step(state)
            first = spiel.table.firsts[turn.role]
            choices.append(turn.graph.legal(row, turn.role).tolist().index(first + action))
        return np.array(choices, np.int32)

    def _game(self, game: Game) -> SpielGame:
        """Return a game as OpenSpiel sees it."""
        from .spiel import open_spiel_game

        if game.rules_hash not in self._games:
            self._games[game.rules_hash] = open_spiel_game(game)
        return self._games[game.rules_hash]

    def _made(self, game: SpielGame, role: int, seed: int) -> Any:
        """Return the bot for a role."""
        import pyspiel

        if self._bot == "uniform_random":
            return pyspiel.make_uniform_random_bot(role, seed)
        if self._bot != MCTS:
            return pyspiel.load_bot(self._bot, game, role)
        from open_spiel.python.algorithms import mcts

        if game.get_type().dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
            raise GameloreError(
                f"expected a game of turns for openspiel:mcts, got {game.table.game.name}, in which roles choose at "
                "the same time; take another player"
            )
        random = np.random.RandomState(seed)  # OpenSpiel's code asks for this kind
        evaluator = mcts.RandomRolloutEvaluator(1, random)
        return mcts.MCTSBot(game, self._uct_c, self._simulations, evaluator, random_state=random)


OPENSPIEL = PlayerKind(
    "a bot of OpenSpiel (pip install open_spiel): openspiel:mcts, with `simulations` for each move",
    {"bot": str, "simulations": int, "uct_c": float},
    OpenSpielPlayer,
    leading="bot",
)
