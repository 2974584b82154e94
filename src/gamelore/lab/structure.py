"""What claims say about the games and their features, counted: no learner plays here.

Features are those of all reachable positions, in larger games of `NUM_MATCHES` random matches with the fixed seed
`SEED` (learn/trees.py says where that begins).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..games import load
from .trees import LEARNER, OPPONENT, Node, feature_tree

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.player import Finished

SEED = 2007
NUM_MATCHES = 2000
DEFAULT = 50.0  # what the paper's learners take for a state that is not decided


@lru_cache
def feature_texts(game: str, role: int) -> tuple[str, ...]:
    """The features of a role's afterstates, as canonical texts in their order."""
    from ..learn.trees import reachable_features

    return tuple(reachable_features(load(game), role, num_matches=NUM_MATCHES, seed=SEED).features)


def feature_count(game: str, role: int) -> int:
    """How many features a role's afterstates have."""
    return len(feature_texts(game, role))


def features_with(game: str, role: int, what: str) -> int:
    """How many have a "win in the middle" (the opponent's move loses at once) or a "loss at the bottom"."""
    node, depth = {"win in the middle": ("W", 1), "loss at the bottom": ("L", 2)}[what]
    return sum(node in _level(text, depth) for text in feature_texts(game, role))


def features_shared(game: str, role: int, source: str) -> int:
    """How many features of the source (its first role) a game has."""
    return len(set(feature_texts(game, role)) & set(feature_texts(source, 0)))


def lookahead_values_else(game: str, role: int) -> int:
    """How many features have another value than 0, 50 or 100 under minimax with undecided leaves at 50."""
    values = [minimax(feature_tree(text)) for text in feature_texts(game, role)]
    return sum(value not in (0.0, 50.0, 100.0) for value in values)


def minimax(node: Node) -> float:
    """The value of a feature's tree, the opponent to move at the root."""
    if not node.children:
        outcomes = {"L": 0.0, "D": 50.0, "W": 100.0, LEARNER: DEFAULT, OPPONENT: DEFAULT}
        return outcomes[node.kind] if node.kind in outcomes else float(node.kind)
    below = [minimax(child) for child in node.children]
    return max(below) if node.kind == LEARNER else min(below)


def _level(text: str, depth: int) -> set[str]:
    """The kinds of the nodes at a depth: 1 are the learner's states below the afterstate, 2 those below them."""
    nodes = [feature_tree(text)]
    for _ in range(depth):
        nodes = [child for node in nodes for child in node.children]
    return {node.kind for node in nodes}


def other_rewards(games: list[str]) -> int:
    """How many goal values other than 0, 50 and 100 the games can give, over all roles."""
    return sum(value not in (0, 50, 100) for name in games for role in load(name).goal_values for value in role)


def moves_share(game: str, what: str) -> float:
    """Share of plies at which the mover has "more" / "as many" / "no fewer" moves than the mover before it had."""
    graph, matches = _random_matches(game)
    steps = np.concatenate([np.diff(_num_moves(graph, rows)) for rows in matches])
    return float(np.mean({"more": steps > 0, "as many": steps == 0, "no fewer": steps >= 0}[what]))


def repeated_afterstates(game: str, role: int) -> int:
    """In how many random matches some state comes twice after a move of this role."""
    graph, matches = _random_matches(game)
    afterstates = [rows[1:][graph.acting[rows[:-1], role]] for rows in matches]
    return sum(len(set(rows.tolist())) < len(rows) for rows in afterstates)


def afterstates_per_pair(game: str, role: int) -> float:
    """Distinct afterstates of a role per pair of a reachable state of its turn and a move."""
    graph = _walked_through(game)
    rows = np.flatnonzero(graph.acting[:, role] & (graph.num_joint > 0))
    found = [graph.successors[graph.succ_start[row] :][: graph.num_joint[row]] for row in rows]
    return len(np.unique(np.concatenate(found))) / int(graph.num_joint[rows].sum())


def _num_moves(graph: Graph, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Moves of whoever is to move, for every state of a match but the last."""
    return np.asarray((graph.num_moves[rows[:-1]] * graph.acting[rows[:-1]]).sum(axis=1))


@lru_cache
def _walked_through(game: str) -> Graph:
    from ..play.graph import Graph

    graph = Graph(load(game))
    done = 0
    while done < graph.num_rows:
        todo = np.arange(done, graph.num_rows, dtype=np.int32)
        done = graph.num_rows
        graph.expand(todo)
    return graph


@lru_cache
def _random_matches(game: str, num_matches: int = 200) -> tuple[Graph, list[NDArray[np.int32]]]:
    """A graph, and the rows of every match."""
    from ..play.graph import Graph
    from ..play.lockstep import run_lockstep
    from ..play.player import Opponent, OpponentSettings
    from ..play.streams import stream

    graph = Graph(load(game))
    matches: list[NDArray[np.int32]] = []

    def keep(finished: Finished) -> None:
        matches.extend(rows[: plies + 1] for rows, plies in zip(finished.rows, finished.plies, strict=True))

    player = Opponent(OpponentSettings("random"))
    keys = [stream(SEED, i, "structure") for i in range(num_matches)]
    run_lockstep(graph, [player] * graph.game.num_roles, keys, 1, on_end=keep)
    return graph, matches
