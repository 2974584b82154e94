"""Afterstates: what a role's own move leads to, before anybody answers (Banerjee & Stone 2007, section 2.1).

As a number, int32:

    row >= 0    where the others have only one move each, the position after the joint move, a row of the graph
    ~move < 0   where others choose at the same time, the pair of position and own move; `move` is the place of
                the move in `graph.move_actions`

As facts, the same on both engines and in every process: those of the position, and for a pair also what the role
does there, `(does red (play 3))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, KnowledgeError
from ..play.kernel import kernel

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game

Afterstates = NDArray[np.int32]


def role_number(game: Game, role: int | str) -> int:
    """A role by its name or number. Raises GameloreError for one that the game does not have."""
    if isinstance(role, str) and role in game.roles:
        return game.roles.index(role)
    if isinstance(role, int) and 0 <= role < game.num_roles:
        return role
    names = " | ".join(game.roles)
    raise GameloreError(f"expected a role of {game.name}, {names}, got {role!r}; choose one, or its number from 0")


def pair_origins(graph: Graph, role: int, pairs: Afterstates) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(rows, choices) of pairs, which are negative afterstates of the role."""
    rows = np.flatnonzero(graph.num_moves[:, role] > 0).astype(np.int32)
    rows = rows[np.argsort(graph.move_start[rows, role])]
    starts = graph.move_start[rows, role]
    moves = ~pairs.astype(np.int64)
    found = np.searchsorted(starts, moves, "right") - 1
    return rows[found], (moves - starts[found]).astype(np.int32)


def afterstate_facts(graph: Graph, role: int, afterstates: Afterstates) -> list[frozenset[str]]:
    """Afterstates as facts."""
    rows, pairs = afterstates.copy(), np.flatnonzero(afterstates < 0)
    choices = np.full(len(rows), -1, np.int32)
    if pairs.size:
        rows[pairs], choices[pairs] = pair_origins(graph, role, afterstates[pairs])
    found = zip(rows.tolist(), choices.tolist(), strict=True)
    return [graph.facts(row) | (_does(graph, role, row, choice) if choice >= 0 else set()) for row, choice in found]


def _does(graph: Graph, role: int, row: int, choice: int) -> set[str]:
    move = graph.game.move_text(role, int(graph.legal(row, role)[choice]))
    return {f"(does {graph.game.roles[role]} {move})"}


def afterstates_of_facts(graph: Graph, role: int, facts: Sequence[frozenset[str]]) -> Afterstates:
    """The numbers of afterstates given as facts. Raises KnowledgeError for those of another game."""
    moves = [[fact for fact in one if fact.startswith("(does ")] for one in facts]
    try:
        states = [graph.game.state(one.difference(own)) for one, own in zip(facts, moves, strict=True)]
        found = graph.intern(np.array(states, np.uint64).reshape(-1, graph.game.num_words))
        for i in (i for i, own in enumerate(moves) if own):
            found[i] = _pair(graph, role, int(found[i]), moves[i][0])
    except ValueError as error:
        raise KnowledgeError(
            f"expected afterstates of {graph.game.name}, got others: {error}; were they learned with other rules?"
        ) from error
    return found


def _pair(graph: Graph, role: int, row: int, does: str) -> int:
    """The number of the pair of a position and what the role does there; ValueError where it cannot."""
    action = graph.game.action(role, does.removeprefix(f"(does {graph.game.roles[role]} ")[:-1])
    return pair_number(graph, role, row, action)


def pair_number(graph: Graph, role: int, row: int, action: int) -> int:
    """The afterstate of a role's action in a row where others move, too; ValueError where it is not legal."""
    choice: int = graph.legal(row, role).tolist().index(action)
    return ~(int(graph.move_start[row, role]) + choice)


@kernel("boolean(int64, int64, int32[:, ::1])")
def moves_alone(row: int, role: int, num_moves: NDArray[np.int32]) -> bool:
    """Whether every other role has one move at most; for use inside kernels."""
    alone = True
    for other in range(num_moves.shape[1]):
        alone &= bool(other == role or num_moves[row, other] <= 1)
    return alone


@kernel(
    "Tuple((int64[::1], int32[::1], int32[::1]))(int32[:, ::1], int32[:, :, ::1], int32[::1], int64,"
    " boolean[::1], boolean[:, ::1], int32[:, ::1], int64[:, ::1])"
)
def trails(
    rows: NDArray[np.int32],
    choices: NDArray[np.int32],
    plies: NDArray[np.int32],
    role: int,
    terminal: NDArray[np.bool_],
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], Afterstates, NDArray[np.int32]]:
    """The afterstates sigma_1 .. sigma_k of the role in finished matches.

    rows, choices and plies are those of `play.player.Finished`. A terminal position that is not an afterstate of the
    role itself, the others having moved last, is sigma_k (readings.md, B&S 6). A match that came to no terminal
    position has none: sigma_k is the role's last afterstate, and there may be no afterstate at all.

    Returns (offsets int64[n + 1], afterstates int32[total], the rows of the role's own turns int32[total], -1 for
    an appended terminal position).
    """
    offsets = np.zeros(plies.size + 1, np.int64)
    found = np.empty(plies.sum() + plies.size, np.int32)
    turns = np.full(found.size, -1, np.int32)
    size = 0
    for i in range(plies.size):
        for ply in range(plies[i]):
            row = rows[i, ply]
            if acting[row, role] or num_moves[row, role] > 1:
                found[size] = rows[i, ply + 1]
                if not moves_alone(row, role, num_moves):
                    found[size] = ~(move_start[row, role] + choices[i, ply, role])
                turns[size] = row
                size += 1
        last = rows[i, plies[i]]
        if terminal[last] and (size == offsets[i] or found[size - 1] != last):
            found[size] = last
            size += 1
        offsets[i + 1] = size
    return offsets, found[:size], turns[:size]


@kernel("int32[::1](int32[::1], int64, int32[:, ::1], int64[:, ::1], int64[::1], int32[::1])")
def own_afterstates(
    turns: NDArray[np.int32],
    role: int,
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
) -> Afterstates:
    """Every afterstate that the role can choose in these positions, position after position, in action order.

    Positions where the role moves alone must be expanded.
    """
    total = 0
    for row in turns:
        total += num_moves[row, role]
    out = np.empty(total, np.int32)
    size = 0
    for row in turns:
        alone = moves_alone(row, role, num_moves)
        for move in range(num_moves[row, role]):
            out[size] = successors[succ_start[row] + move] if alone else ~(move_start[row, role] + move)
            size += 1
    return out
