"""Afterstates: positions after a role's own move (B&S 2007, section 2.1), as numbers and as facts.

The number of an afterstate is an int32 of one of two forms:

    row >= 0    a position: the row of the graph for the position after the joint move. Used if every other role has
                only one move.
    ~move < 0   a pair of a position and the role's own move in it; `move` is the index of that move in
                `graph.move_actions`. Used if other roles choose at the same time.

The facts of an afterstate are the facts of the position. A pair has one more fact, the role's move, such as
`(does red (play 3))`. Facts are the same on both engines and in every process.

Some afterstates are images of each other under the symmetries of the game. They share one representative:

    of a position  the smallest image of the position (solver/statespace.py)
    of a pair      the smallest image of the pair; positions are compared first, and then the numbers of the moves

So the representative does not depend on the order in which the afterstates are met.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...analysis.symmetry import Symmetries, bounded_symmetries
from ...errors import GameloreError, GDLError, KnowledgeError
from ...players.kernel import I32, I64, Bool, Boolx2, I32x2, I32x3, I64x2, Int32, inlined, kernel
from ...players.position_graph import must_choose
from ...solver.statespace import Canonical

if TYPE_CHECKING:
    from ...game.game import Game
    from ...players.position_graph import PositionGraph

Afterstates = NDArray[np.int32]


def role_number(game: Game, role: int | str) -> int:
    """Return the number of a role given by name or number. Raise GameloreError for an unknown role."""
    if isinstance(role, str) and role in game.roles:
        return game.roles.index(role)
    if isinstance(role, int) and 0 <= role < game.num_roles:
        return role
    names = ", ".join(game.roles)
    raise GameloreError(
        f"expected a role of {game.name} ({names}) or its number from 0, got {role!r}; choose one of these"
    )


def pair_origins(graph: PositionGraph, role: int, pairs: Afterstates) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows and the choices of pairs, int32[n] each. Pairs are negative afterstates of the role."""
    rows = np.flatnonzero(graph.num_moves[:, role] > 0).astype(np.int32)
    rows = rows[np.argsort(graph.move_start[rows, role])]
    starts = graph.move_start[rows, role]
    moves = ~pairs.astype(np.int64)
    origins = np.searchsorted(starts, moves, "right") - 1
    return rows[origins], (moves - starts[origins]).astype(np.int32)


def afterstate_facts(graph: PositionGraph, role: int, afterstates: Afterstates) -> list[frozenset[str]]:
    """Return the facts of each afterstate."""
    rows, pairs = afterstates.copy(), np.flatnonzero(afterstates < 0)
    if pairs.size:
        rows[pairs], _ = pair_origins(graph, role, afterstates[pairs])
    facts = [graph.facts(row) for row in rows.tolist()]
    for i in pairs.tolist():
        move = graph.game.move_text(role, int(graph.move_actions[~afterstates[i]]))
        facts[i] |= {f"(does {graph.game.roles[role]} {move})"}
    return facts


def afterstates_of_facts(graph: PositionGraph, role: int, facts: Sequence[frozenset[str]]) -> Afterstates:
    """Return the numbers of afterstates given as facts, int32[n].

    Raise KnowledgeError for facts that do not belong to the game.
    """
    moves = [[fact for fact in afterstate if fact.startswith("(does ")] for afterstate in facts]
    prefix = f"(does {graph.game.roles[role]} "
    try:
        states = [graph.game.state(afterstate.difference(own)) for afterstate, own in zip(facts, moves, strict=True)]
        numbers = graph.intern(np.array(states, np.uint64).reshape(-1, graph.game.num_words))
        for i, own in enumerate(moves):
            if len(own) > 1:
                raise ValueError(f"{' '.join(sorted(own))} are several moves")
            if own:
                if not own[0].startswith(prefix):
                    raise ValueError(f"{own[0]} is no move of {graph.game.roles[role]}")
                action = graph.game.action(role, own[0].removeprefix(prefix)[:-1])
                numbers[i] = pair_number(graph, role, int(numbers[i]), action)
    except ValueError as error:
        why = error.message if isinstance(error, GDLError) else error
        raise KnowledgeError(f"expected afterstates of {graph.game.name}, got others: {why}") from error
    return numbers


def pair_number(graph: PositionGraph, role: int, row: int, action: int) -> int:
    """Return the number of a pair: a row in which other roles move too, and the role's action.

    Raise ValueError for an illegal action.
    """
    legal: list[int] = graph.legal(row, role).tolist()
    if action not in legal:
        raise ValueError(f"{graph.game.move_text(role, action)} is not legal there")
    return ~(int(graph.move_start[row, role]) + legal.index(action))


@inlined
def moves_alone(row: int, role: int, num_moves: I32x2) -> bool:
    """Return whether every other role has at most one move; for use inside kernels."""
    alone = True
    for other in range(num_moves.shape[1]):
        alone &= bool(other == role or num_moves[row, other] <= 1)
    return alone


@inlined
def own_afterstate(
    row: int, move: int, role: int, alone: bool, move_start: I64x2, succ_start: I64, successors: I32
) -> np.int32:
    """Return the afterstate of a move of the role; `alone` is `moves_alone` of the row. For use inside kernels."""
    return np.int32(successors[succ_start[row] + move] if alone else ~(move_start[row, role] + move))


@inlined
def write_trail(
    i: int,
    plies: int,
    rows: I32x2,
    choices: I32x3,
    role: int,
    terminal: Bool,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    begin: int,
    entries: I32,
    turns: I32,
) -> int:
    """Write the afterstates and the turns of match i from index `begin` on. Return the index after the last of them.

    See `trails`; for use inside kernels.
    """
    size = begin
    for ply in range(plies):
        row = rows[i, ply]
        if must_choose(row, role, acting, num_moves):
            entries[size] = rows[i, ply + 1]
            if not moves_alone(row, role, num_moves):
                entries[size] = ~(move_start[row, role] + choices[i, ply, role])
            turns[size] = row
            size += 1
    last = rows[i, plies]
    if terminal[last] and (size == begin or entries[size - 1] != last):
        entries[size], turns[size] = last, -1
        size += 1
    return size


@kernel
def trails(
    rows: I32x2,
    choices: I32x3,
    plies: I32,
    role: int,
    terminal: Bool,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
) -> tuple[I64, I32, I32]:
    """Return the afterstates sigma_1 .. sigma_k of the role in each finished match.

    For the parameters rows, choices and plies see `players.player.Finished`. If another role made the last move, the
    terminal position is appended as sigma_k (readings.md, B&S 6). If the match has no terminal position, sigma_k is the
    role's last afterstate. Such a match may have no afterstate at all.

    Returns a tuple of three arrays:

    offsets      int64[n + 1]; match i has the entries offsets[i] .. offsets[i + 1] - 1 of the other arrays
    afterstates  int32[total]
    turns        int32[total], the row in which the role moved; -1 for an appended terminal position
    """
    most = plies.size
    for num_plies in plies:
        most += num_plies
    offsets = np.zeros(plies.size + 1, np.int64)
    entries = np.empty(most, np.int32)
    turns = np.empty(entries.size, np.int32)
    size = 0
    for i in range(plies.size):
        size = write_trail(
            i, plies[i], rows, choices, role, terminal, acting, num_moves, move_start, size, entries, turns
        )
        offsets[i + 1] = size
    return offsets, entries[:size], turns[:size]


@kernel
def own_afterstates(
    turns: I32, role: int, num_moves: I32x2, move_start: I64x2, succ_start: I64, successors: I32
) -> I32:
    """Return all afterstates that the role can choose in these positions.

    They are in the order of the positions, and within a position in action order. Positions in which the role moves
    alone must be expanded.
    """
    total = 0
    for row in turns:
        total += num_moves[row, role]
    out = np.empty(total, np.int32)
    size = 0
    for row in turns:
        alone = moves_alone(row, role, num_moves)
        for move in range(num_moves[row, role]):
            out[size] = own_afterstate(row, move, role, alone, move_start, succ_start, successors)
            size += 1
    return out


MOST_TABLES = 1 << 28  # largest size in bytes of the tables for images of states


def merging_symmetries(game: Game) -> Symmetries:
    """Return the symmetries under which afterstates share a representative.

    These are all symmetries of the game, or a subgroup if their tables would be larger than MOST_TABLES.
    """
    return bounded_symmetries(game, MOST_TABLES)


UNMET = np.int32(-(2**31))  # marks a missing entry; no afterstate has this number, because no graph lists 2**31 moves


class Representatives:
    """Representatives of the afterstates met so far. Each graph has one object, `graph.memo(Representatives)`.

    rows   int32[any], representatives of positions: rows[row] belongs to the afterstate row
    moves  int32[any], representatives of pairs: moves[move] belongs to the afterstate ~move

    An entry is UNMET until it is computed. Both arrays are replaced when they grow.
    """

    def __init__(self, graph: PositionGraph) -> None:
        self.graph = graph
        self.rows = np.empty(0, np.int32)
        self.moves = np.empty(0, np.int32)

    @cached_property
    def symmetries(self) -> Symmetries:
        """See `merging_symmetries`; computed on first use."""
        return merging_symmetries(self.graph.game)

    @cached_property
    def _canonical(self) -> Canonical:
        return Canonical(self.symmetries)

    def of(self, role: int, afterstates: ArrayLike) -> Afterstates:
        """Return the representatives of the role's afterstates, int32[n]. New positions are added to the graph."""
        wanted = np.ascontiguousarray(afterstates, np.int32)
        representatives = _look_up(wanted, self.rows, self.moves)
        unmet = representatives == UNMET
        if unmet.any():
            self.meet(role, wanted[unmet])
            representatives = _look_up(wanted, self.rows, self.moves)
        return representatives

    def meet(self, role: int, afterstates: Afterstates) -> None:
        """Compute the representatives of these afterstates."""
        fresh = np.unique(afterstates)
        self._meet_rows(fresh[fresh >= 0])
        if fresh[0] < 0:
            self._meet_pairs(role, fresh[fresh < 0])

    def _meet_rows(self, rows: NDArray[np.int32]) -> None:
        graph = self.graph
        canonical = graph.intern(self._canonical.of(graph.states[rows]))
        self.rows = grown(self.rows, graph.num_rows, UNMET)
        self.rows[rows] = self.rows[canonical] = canonical

    def _meet_pairs(self, role: int, pairs: Afterstates) -> None:
        graph = self.graph
        origins, _ = pair_origins(graph, role, pairs)
        states, actions = self._smallest(graph.states[origins], graph.move_actions[~pairs])
        rows = graph.intern(states)
        graph.list_moves(rows)
        canonical = [pair_number(graph, role, *pair) for pair in zip(rows.tolist(), actions.tolist(), strict=True)]
        self.moves = grown(self.moves, len(graph.move_actions), UNMET)
        self.moves[~pairs] = self.moves[np.invert(canonical)] = canonical

    def _smallest(
        self, states: NDArray[np.uint64], actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the smallest image of each state, and the image of its action that belongs to it.

        Parameters and results are states uint64[n, words] and actions of the role int32[n].
        """
        moved = self.symmetries.actions[:, actions].T.astype(np.uint64)
        images = np.concatenate([self.symmetries.images(states), moved[:, :, None]], axis=2)
        first = np.lexsort(np.moveaxis(images, 2, 0)[::-1])[:, 0]  # the last key of lexsort is its primary key
        smallest = images[np.arange(len(images)), first]
        return smallest[:, :-1], smallest[:, -1].astype(np.int32)


def grown(array: NDArray[np.int32], width: int, fill: int | np.int32) -> NDArray[np.int32]:
    """Return an array whose last axis has at least `width` entries. New entries are `fill`.

    A too short axis is at least doubled.
    """
    if array.shape[-1] >= width:
        return array
    wider = np.full((*array.shape[:-1], 2 * width), fill, np.int32)
    wider[..., : array.shape[-1]] = array
    return wider


@inlined
def representative(afterstate: np.int32, rows: I32, moves: I32) -> Int32:
    """Return the representative of an afterstate, or UNMET; for use inside kernels.

    `rows` and `moves` are the arrays of `Representatives`.
    """
    if afterstate >= 0:
        return rows[afterstate] if afterstate < rows.size else UNMET
    move = ~afterstate
    return moves[move] if move < moves.size else UNMET


@kernel
def _look_up(afterstates: I32, rows: I32, moves: I32) -> I32:
    representatives = np.empty(afterstates.size, np.int32)
    for i in range(afterstates.size):
        representatives[i] = representative(afterstates[i], rows, moves)
    return representatives
