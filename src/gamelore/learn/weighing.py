"""PWL, probabilistic weight learning: how well a context pair's advice fits the expert (Lock & Epstein 2004, 1.1).

"It takes the states where it was the expert's turn to act, checks whether a context pair's advice supports or opposes
the expert's decision, and revises the pair's weight in [0,1] accordingly." The formula is not printed (readings.md,
L&E 7); WEIGHTS has several by name, and any function of a `Record` will do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel
from .contexts import ContextPairs, Record
from .matching import candidates, holds, smallest
from .patterns import Bits, image, widened

if TYPE_CHECKING:
    from ..play.graph import Graph

Weighting: TypeAlias = Callable[[Record], NDArray[np.float64]]
FULLY_TRUSTED = 10  # comments


def agreement(record: Record) -> NDArray[np.float64]:
    """agreements / comments, as if there were 10 comments at least: reliable and frequently applicable."""
    return record.agreements / np.maximum(record.comments, FULLY_TRUSTED)


def laplace(record: Record) -> NDArray[np.float64]:
    """(agreements + 1) / (comments + 2), the rule of succession."""
    return (record.agreements + 1.0) / (record.comments + 2.0)


def plain(record: Record) -> NDArray[np.float64]:
    """agreements / comments; 0 without comments."""
    return record.agreements / np.maximum(record.comments, 1.0)


def trusting(record: Record) -> NDArray[np.float64]:
    """(agreements + 1) / (comments + 1): what nothing speaks against is right."""
    return (record.agreements + 1.0) / (record.comments + 1.0)


def results(record: Record) -> NDArray[np.float64]:
    """(successes + 1) / (tries + 1): how often the move succeeded, whoever made it; trusted until it was tried."""
    return (record.successes + 1.0) / (record.tries + 1.0)


WEIGHTS: Mapping[str, Weighting] = {
    "agreement": agreement, "laplace": laplace, "plain": plain, "trusting": trusting, "results": results
}  # fmt: skip


def weigh(
    pairs: ContextPairs,
    graph: Graph,
    rows: NDArray[np.int32],
    roles: NDArray[np.int8],
    moves: NDArray[np.int32],
    by_expert: NDArray[np.bool_],
    successes: NDArray[np.float64],
) -> None:
    """Adds to the pairs' record what they would have advised in these turns, one after the other.

    rows, roles, moves: [n], where, who, what (move numbers); by_expert: bool[n]; successes: float64[n], 1 or 0 by how
    the match ended for whom moved, NaN where it had no result.
    """
    if not len(pairs) or not len(rows):
        return
    patterns = pairs.patterns
    starts, firsts = pairs.first_moves
    states = patterns.of(graph, rows)
    _weigh(
        states,
        rows,
        roles,
        moves,
        by_expert,
        successes,
        graph.num_moves,
        graph.move_start,
        graph.move_actions,
        pairs.roles,
        widened(pairs.contexts, states.shape[1]),
        pairs.by_context,
        starts,
        firsts,
        patterns.move_images(firsts, graph),
        patterns.symmetries.inverse,
        patterns.byte_tables,
        pairs.record.comments,
        pairs.record.agreements,
        pairs.record.tries,
        pairs.record.successes,
    )


@kernel(
    "void(uint64[:, ::1], int32[::1], int8[::1], int32[::1], boolean[::1], float64[::1], int32[:, ::1], int64[:, ::1],"
    " int32[::1], int8[::1], uint64[:, ::1], int64[::1], int64[::1], int32[::1], int32[:, ::1], int32[::1],"
    " uint64[:, :, :, ::1], float64[::1], float64[::1], float64[::1], float64[::1])"
)
def _weigh(
    states: Bits,
    rows: NDArray[np.int32],
    roles: NDArray[np.int8],
    played: NDArray[np.int32],
    by_expert: NDArray[np.bool_],
    succeeded: NDArray[np.float64],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
    pair_roles: NDArray[np.int8],
    contexts: Bits,
    by_context: NDArray[np.int64],
    starts: NDArray[np.int64],
    firsts: NDArray[np.int32],
    move_images: NDArray[np.int32],
    inverse: NDArray[np.int32],
    byte_tables: NDArray[np.uint64],
    comments: NDArray[np.float64],
    agreements: NDArray[np.float64],
    tries: NDArray[np.float64],
    successes: NDArray[np.float64],
) -> None:
    """See `weigh`."""
    num_symmetries, num_roles = move_images.shape[0], num_moves.shape[1]
    images = np.empty((num_symmetries, states.shape[1]), np.uint64)
    legal_in = np.full(move_images.shape[1], -1, np.int64)  # the last turn in which a move was legal
    for turn in range(rows.size):
        role = roles[turn]
        for symmetry in range(num_symmetries):
            image(states[turn], symmetry, byte_tables, images[symmetry])
        begin = move_start[rows[turn], role]
        for action in move_actions[begin : begin + num_moves[rows[turn], role]]:
            legal_in[action * num_roles + role] = turn
        low, high = candidates(pair_roles, contexts, by_context, role, images[smallest(images)])
        for place in range(low, high):
            pair = by_context[place] if by_context.size else place
            if pair_roles[pair] != role:
                continue
            advises, agrees = False, False
            for symmetry in range(num_symmetries):
                if not holds(contexts, pair, images, symmetry):
                    continue
                for first in firsts[starts[pair] : starts[pair + 1]]:
                    move = move_images[inverse[symmetry], first]
                    advises |= legal_in[move] == turn
                    agrees |= move == played[turn]
            if advises and by_expert[turn]:
                comments[pair] += 1
                agreements[pair] += agrees
            if agrees and not np.isnan(succeeded[turn]):
                tries[pair] += 1
                successes[pair] += succeeded[turn]
