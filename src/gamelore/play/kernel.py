"""The one decorator for compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(*signatures: str) -> Callable[[_F], _F]:
    """Compiles a loop over arrays with explicit signatures: no game and no shape compiles anything anew.

    The machine code is kept beside the source file. A kernel that calls another one keeps the code it was
    linked with: after a change of the callee, touch the caller's file as well.
    """

    def compiled(function: _F) -> _F:
        return cast(_F, numba.njit(list(signatures), cache=True, error_model="numpy")(function))

    return compiled
