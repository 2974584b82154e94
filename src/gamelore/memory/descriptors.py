"""Descriptors of a game: a few numbers by which the ledger of advice (ledger.py) tells which games are alike.

They come from the circuit, from random playouts, and from game-tree features (Banerjee & Stone 2007, section 3) of
positions in these playouts. The features are those that can decide a match within a full turn: whether a role can win
at once, whether it must lose at once whatever it does, and which share of its moves gives the match away.

Deeper features are built from those below, as B&S propose (section 6), and not by looking deeper. Let w be the share of
positions in which the role to move wins in at most n plies of its own, and l the share in which it loses against such a
win whatever it does. A position with b moves that is not won so far is won one turn deeper if any move leads to one of
the lost positions, so with probability 1 - (1 - l) ** b. And it is lost if every move leads to a won one: w ** b. This
takes positions after different moves for independent, which they are not. So the numbers are no probabilities of wins,
but they tell whether threats of several moves are to be expected.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..game.engines import random_moves
from ..players.lookahead import GIVES, LOSS, WIN, MoveClasses
from ..players.position_graph import PositionGraph

if TYPE_CHECKING:
    from ..game.game import Game

DESCRIPTORS = (
    *("facts", "roles", "moves", "plies", "spread of plies", "unfinished", "advantage", "draws", "growth", "wins 1"),
    *("losses 1", "gives", "wins 2", "losses 2", "wins 3", "losses 3"),
)
"""The names of the descriptors."""
_PLAYOUTS, _MOST_PLIES = 32, 120
_POSITIONS = 24  # whose features are found, for each role
_MOST_SUCCESSORS = 12_000  # two plies below these positions, about; fewer positions in games with many moves
_TURNS = 3  # of the deepest features


class RandomMatches(NamedTuple):
    """Random playouts side by side, as far as they are needed here.

    states    uint64[n, words], positions in which the match goes on
    branching float64[n], the number of joint moves there
    lengths   float64[playouts], the numbers of plies
    goals     float64[m, roles], the results of the playouts that have ended, 0 to 100
    """

    states: NDArray[np.uint64]
    branching: NDArray[np.float64]
    lengths: NDArray[np.float64]
    goals: NDArray[np.float64]


def descriptors(game: Game) -> dict[str, float]:
    """Return the descriptors of a game that has a circuit, by name. The same game gets the same ones."""
    return next(described for described in describing(game) if described is not None)


def describing(game: Game) -> Iterator[dict[str, float] | None]:
    """Yield None after each piece of work, of some milliseconds, and then the descriptors of a game, by name."""
    assert game.circuit is not None
    rng = np.random.default_rng(0)
    playouts = random_playouts(game, rng)
    yield None
    graph, shares = PositionGraph(game), list[tuple[float, float, float, float]]()
    rows = np.unique(graph.intern(_drawn(game, playouts, rng)))
    graph.list_moves(rows)
    for row, role in product(rows, range(game.num_roles)):
        shares += _of_role(graph, row[None], role)
        yield None
    goals = playouts.goals[:, 0] if len(playouts.goals) else np.full(1, 50.0)
    yield {
        "facts": log2(game.circuit.num_facts),
        "roles": log2(game.num_roles),
        "moves": float(np.log2(playouts.branching).mean()),
        "plies": log2(1.0 + playouts.lengths.mean()),
        "spread of plies": float(playouts.lengths.std() / max(playouts.lengths.mean(), 1.0)),
        "unfinished": 1.0 - len(playouts.goals) / _PLAYOUTS,
        "advantage": abs(float(goals.mean()) - 50.0) / 50.0,
        "draws": float((goals == 50).mean()),
        "growth": _growth(playouts),
        **(composed(*np.array(shares).mean(axis=0).tolist()) if shares else composed(0.0, 0.0, 0.0, 1.0)),
    }


def random_playouts(game: Game, rng: np.random.Generator) -> RandomMatches:
    """Play random playouts of at most `_MOST_PLIES` plies."""
    states = np.repeat(game.initial[None], _PLAYOUTS, axis=0)
    seen, branching, goals = list[NDArray[np.uint64]](), list[NDArray[np.float64]](), list[NDArray[np.int16]]()
    lengths = np.full(_PLAYOUTS, float(_MOST_PLIES))
    lanes = np.arange(_PLAYOUTS)
    for ply in range(_MOST_PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        is_open = counts.all(axis=1)
        ended = legal.terminal
        lengths[lanes[~is_open]] = ply
        if ended.any():
            goals.append(game.evaluate(states[ended])[1])
        if not is_open.any():
            break
        drawn = random_moves(starts, counts, rng)
        states, lanes = states[is_open], lanes[is_open]
        seen.append(states)
        branching.append(np.maximum(counts[is_open], 1).prod(axis=1, dtype=np.float64))
        states = game.next(states, legal.actions[drawn[is_open]])
    results = np.concatenate(goals).clip(0) if goals else np.zeros((0, game.num_roles))
    return RandomMatches(np.concatenate(seen), np.concatenate(branching), lengths, results.astype(np.float64))


def _growth(playouts: RandomMatches) -> float:
    """Return the logarithm to base 2 of the number of facts in late positions, as a multiple of that at the start."""
    counts = np.bitwise_count(playouts.states).sum(axis=1, dtype=np.float64)
    return float(np.log2((1.0 + counts[-(len(counts) // 4) - 1 :].mean()) / (1.0 + counts[0])))


def _drawn(game: Game, playouts: RandomMatches, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return positions of playouts whose features are found, uint64[n, words]."""
    order = rng.permutation(len(playouts.states))
    cost = np.cumsum(playouts.branching[order] ** 2)
    return playouts.states[order[: min(_POSITIONS * game.num_roles, int((cost <= _MOST_SUCCESSORS).sum()))]]


def composed(won: float, lost: float, gives: float, moves: float) -> dict[str, float]:
    """Return the shares of positions that are won and lost within some turns, from those of one turn; see the module.

    Args:
        won: share of positions in which the role to move wins at once
        lost: share in which it does not, and every move lets it lose
        gives: share of such moves
        moves: number of moves in a position
    """
    named = {"wins 1": won, "losses 1": lost, "gives": gives}
    for turns in range(2, _TURNS + 1):
        won, lost = won + (1.0 - won) * (1.0 - (1.0 - lost) ** moves), lost + (1.0 - lost) * won**moves
        named |= {f"wins {turns}": won, f"losses {turns}": lost}
    return named


def _of_role(graph: PositionGraph, rows: NDArray[np.int32], role: int) -> list[tuple[float, float, float, float]]:
    """Return the arguments of `composed` for each position in which a role has a choice."""
    own, classes = rows[graph.num_moves[rows, role] > 1], graph.memo(MoveClasses)
    if not len(own):
        return []
    classes.complete(own, role)
    shares = []
    for row in own.tolist():
        start, num = int(graph.move_start[row, role]), int(graph.num_moves[row, role])
        kinds = classes.classes[start : start + num]
        wins, bad = bool((kinds == WIN).any()), np.isin(kinds, (LOSS, GIVES))
        shares.append((float(wins), float(not wins and bad.all()), float(bad.mean()), float(num)))
    return shares
