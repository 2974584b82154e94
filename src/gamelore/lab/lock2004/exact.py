"""What the baselines of lose tic-tac-toe come to exactly: nothing is sampled."""

from __future__ import annotations

from functools import cache
from typing import cast

from ...games import load
from ...play import roster
from ...play.expectation import Expected, Memoryless, Uniform, expected
from ...play.graph import Graph
from .plan import BEST
from .printed import COLUMNS, Column

MATCHES = 1000
"""Of each tournament of the baselines, ours and the paper's."""


@cache
def exact_baselines() -> dict[Column, float]:
    """Every cell of the baseline's row for lose tic-tac-toe, in per cent; sides alternate."""
    graph = Graph(load("losetictactoe"))
    opponents = {column.opponent for column in COLUMNS}
    found = {opponent: _both_seats(graph, opponent) for opponent in opponents}
    return {
        column: sum(_value(one, role, column) for role, one in enumerate(found[column.opponent])) / 2
        for column in COLUMNS
    }


def _both_seats(graph: Graph, opponent: str) -> tuple[Expected, Expected]:
    """The random player in the first seat, and in the second."""
    best = BEST["losetictactoe"]
    other = Uniform() if opponent == "random" else cast(Memoryless, roster.player(f"{opponent}:best={best}"))
    return expected(graph, [Uniform(), other]), expected(graph, [other, Uniform()])


def _value(found: Expected, role: int, column: Column) -> float:
    return 100 * (found.better(role) if column.what == "power" else found.not_worse(role))


def z_score(mean: float, exact: float, matches: int = MATCHES) -> float:
    """How many standard errors of so many matches a share in per cent is from its exact value."""
    share = exact / 100
    error = 100 * (share * (1 - share) / matches) ** 0.5
    return (mean - exact) / error if error else 0.0
