"""Which contexts hold in a state: kernels for weighing and advice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel
from .patterns import Bits, comes_before


@kernel("boolean(uint64[:, ::1], int64, uint64[:, ::1], int64)")
def holds(contexts: Bits, pair: int, images: Bits, symmetry: int) -> bool:
    """Whether the context of a pair holds in an image of a state."""
    missing = np.uint64(0)
    for word in range(contexts.shape[1]):
        missing |= contexts[pair, word] & ~images[symmetry, word]
    return bool(missing == 0)


@kernel("int64(uint64[:, ::1])")
def smallest(images: Bits) -> int:
    """Which image of a state is the smallest; that one is canonical."""
    best = 0
    for symmetry in range(1, images.shape[0]):
        if comes_before(images[symmetry], images[best]):
            best = symmetry
    return best


@kernel("UniTuple(int64, 2)(int8[::1], uint64[:, ::1], int64[::1], int64, uint64[::1])")
def candidates(
    roles: NDArray[np.int8], contexts: Bits, by_context: NDArray[np.int64], role: int, state: Bits
) -> tuple[int, int]:
    """Which pairs can have a context that holds: places in `by_context`, or all pairs where that is empty.

    state: the canonical image; of exact contexts only that itself holds, and there are a few pairs with it at most.
    """
    if by_context.size == 0:
        return 0, roles.size
    low, high = 0, by_context.size
    while low < high:
        middle = (low + high) // 2
        pair = by_context[middle]
        before = roles[pair] < role or (roles[pair] == role and comes_before(contexts[pair], state))
        low, high = (middle + 1, high) if before else (low, middle)
    end = low
    while end < by_context.size and roles[by_context[end]] == role:
        pair = by_context[end]
        if comes_before(state, contexts[pair]):
            break
        end += 1
    return low, end
