"""What a set of context pairs advises in a state: the votes of L&E's tiers (2004, section 1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel
from ..play.streams import WHICH, below
from .contexts import ContextPairs
from .matching import candidates, holds, smallest
from .patterns import Bits, image, widened

if TYPE_CHECKING:
    from ..play.player import Turn

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Advice:
    """What was voted for, and by which branches.

    choices     int32[n], a position within the legal moves, NOBODY where no pair advises one
    tiers       int8[n], the tier that decided, NOBODY where none did
    offsets     int64[n + 1]; of lane i are the votes offsets[i] : offsets[i + 1]
    branches    int32[votes], the branches that begin with the chosen move
    symmetries  int32[votes], the symmetry under which their context holds
    pairs       int32[votes], whose branches they are
    """

    choices: NDArray[np.int32]
    tiers: NDArray[np.int8]
    offsets: NDArray[np.int64]
    branches: NDArray[np.int32]
    symmetries: NDArray[np.int32]
    pairs: NDArray[np.int32]


def consult(
    pairs: ContextPairs,
    turn: Turn,
    tiers: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    *,
    by_branch: bool = False,
) -> Advice:
    """The advice of the highest tier that has any, in each lane of the turn.

    pairs    by falling weight
    tiers    float64[tiers], the lowest weight in each, falling; a tier supports every move that its pairs advise with
             their weights, and the one with the highest sum is chosen, a random one of several
    allowed  bool[total], which of the legal moves, lane after lane, may be advised at all
    by_branch  each branch of a pair's tree votes; else a pair votes for each of its moves once
    """
    patterns, graph = pairs.patterns, turn.graph
    starts, firsts = (pairs.starts, np.ascontiguousarray(pairs.moves[:, 0])) if by_branch else pairs.first_moves
    states = patterns.of(graph, turn.rows)
    return Advice(
        *_consult(
            states,
            turn.rows,
            turn.keys,
            turn.plies,
            turn.role,
            allowed,
            graph.num_moves,
            graph.move_start,
            graph.move_actions,
            pairs.roles,
            widened(pairs.contexts, states.shape[1]),
            pairs.by_context,
            pairs.weights,
            starts,
            firsts,
            pairs.starts,
            pairs.moves,
            patterns.move_images(firsts, graph),
            patterns.symmetries.inverse,
            patterns.byte_tables,
            tiers,
            by_branch,
        )
    )


@kernel(
    "Tuple((int32[::1], int8[::1], int64[::1], int32[::1], int32[::1], int32[::1]))(uint64[:, ::1], int32[::1],"
    " uint64[::1], int32[::1], int64, boolean[::1], int32[:, ::1], int64[:, ::1], int32[::1], int8[::1],"
    " uint64[:, ::1], int64[::1], float64[::1], int64[::1], int32[::1], int64[::1], int32[:, ::1], int32[:, ::1],"
    " int32[::1], uint64[:, :, :, ::1], float64[::1], boolean)"
)
def _consult(
    states: Bits,
    rows: NDArray[np.int32],
    keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
    role: int,
    allowed: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
    roles: NDArray[np.int8],
    contexts: Bits,
    by_context: NDArray[np.int64],
    weights: NDArray[np.float64],
    first_starts: NDArray[np.int64],
    firsts: NDArray[np.int32],
    starts: NDArray[np.int64],
    moves: NDArray[np.int32],
    move_images: NDArray[np.int32],
    inverse: NDArray[np.int32],
    byte_tables: NDArray[np.uint64],
    tiers: NDArray[np.float64],
    by_branch: bool,
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int8],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
]:
    """See `consult`."""
    num_symmetries, num_pairs, num_roles = move_images.shape[0], roles.size, num_moves.shape[1]
    images = np.empty((num_symmetries, states.shape[1]), np.uint64)
    legal_in = np.full(move_images.shape[1], -1, np.int64)  # the last lane in which a move may be advised
    voted_by = np.full(move_images.shape[1], -1, np.int64)  # the last (lane, pair) that voted for a move
    support = np.zeros(move_images.shape[1])
    choices, decided = np.full(rows.size, NOBODY, np.int32), np.full(rows.size, NOBODY, np.int8)
    offsets = np.zeros(rows.size + 1, np.int64)
    votes = np.empty((3, 256), np.int32)
    size, seen = 0, 0
    for lane in range(rows.size):
        begin, num = move_start[rows[lane], role], num_moves[rows[lane], role]
        for i in range(num):
            move = move_actions[begin + i] * num_roles + role
            support[move] = 0.0
            if allowed[seen + i]:
                legal_in[move] = lane
        seen += num
        for symmetry in range(num_symmetries):
            image(states[lane], symmetry, byte_tables, images[symmetry])
        low, high = candidates(roles, contexts, by_context, role, images[smallest(images)])
        tier, any_vote, tier_begin, end = -1, False, low, low
        while tier + 1 < tiers.size and not any_vote:
            tier += 1
            tier_begin = low if by_context.size else end
            end = tier_begin
            while end < high:
                voter = by_context[end] if by_context.size else end
                if weights[voter] < tiers[tier] and not by_context.size:
                    break  # the pairs come by falling weight
                end += 1
                if roles[voter] != role or weights[voter] < tiers[tier]:
                    continue
                for symmetry in range(num_symmetries):
                    if not holds(contexts, voter, images, symmetry):
                        continue
                    for first in firsts[first_starts[voter] : first_starts[voter + 1]]:
                        move = move_images[inverse[symmetry], first]
                        vote = lane * num_pairs + voter
                        if legal_in[move] == lane and (by_branch or voted_by[move] != vote):
                            voted_by[move] = vote
                            support[move] += weights[voter]
                            any_vote = True
        if any_vote:
            best, count = 0.0, 0
            for i in range(num):
                move = move_actions[begin + i] * num_roles + role
                if legal_in[move] == lane:
                    # sums of the same weights in another order may differ in their last bits
                    if support[move] > best + 1e-9:
                        best, count = support[move], 0
                    if support[move] > best - 1e-9:
                        count += 1
            which = below(keys[lane], np.uint64(plies[lane]), np.uint64(WHICH), count)
            for i in range(num):
                move = move_actions[begin + i] * num_roles + role
                if legal_in[move] == lane and support[move] > best - 1e-9:
                    if which == 0:
                        choices[lane] = i
                        break
                    which -= 1
            decided[lane] = tier
            chosen = move_actions[begin + choices[lane]] * num_roles + role
            for place in range(tier_begin, end):
                voter = by_context[place] if by_context.size else place
                if roles[voter] != role or weights[voter] < tiers[tier]:
                    continue
                for symmetry in range(num_symmetries):
                    if not holds(contexts, voter, images, symmetry):
                        continue
                    for branch in range(starts[voter], starts[voter + 1]):
                        if move_images[inverse[symmetry], moves[branch, 0]] == chosen:
                            if size == votes.shape[1]:
                                more = np.empty((3, 2 * size), np.int32)
                                more[:, :size] = votes
                                votes = more
                            votes[0, size], votes[1, size], votes[2, size] = branch, symmetry, voter
                            size += 1
        offsets[lane + 1] = size
    return choices, decided, offsets, votes[0, :size].copy(), votes[1, :size].copy(), votes[2, :size].copy()
