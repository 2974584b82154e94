"""Matches between players given by name, and what came out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph
from .lockstep import run_lockstep
from .match import MAX_PLIES, MatchRecord, match_records
from .player import Finished
from .roster import player
from .streams import stream

if TYPE_CHECKING:
    from ..rules.game import Game

STAGE = "play"  # in the key of the streams: (seed, run 0, stage, match, role)
_SIDE_BY_SIDE = 256
_TOO_MANY_ROWS = 2_000_000  # a graph beyond this is dropped between two batches; results do not depend on it


def play_matches(
    game: Game,
    players: Sequence[str],
    num_matches: int,
    seed: int = 0,
    *,
    max_plies: int = MAX_PLIES,
    on_progress: Callable[[int], None] | None = None,
) -> list[MatchRecord]:
    """Records of matches between players given by name (roster.py), one for each role.

    Match i has the streams (seed, 0, "play", i, role): it is the same however many are played. `on_progress` is told
    how many are over. Raises GameloreError for an unknown player or a wrong number of players.
    """
    seats = [player(spec) for spec in players]
    prefix = stream(seed, 0, STAGE)
    graph = Graph(game)
    records: list[MatchRecord] = []
    for begin in range(0, num_matches, _SIDE_BY_SIDE):
        numbers = np.arange(begin, min(begin + _SIDE_BY_SIDE, num_matches))
        ended: list[Finished] = []
        keys = np.full(len(numbers), prefix)
        run_lockstep(graph, seats, keys, 1, first_match=numbers, max_plies=max_plies, on_end=ended.append)
        batch = [record for finished in ended for record in _records(finished, players, seed)]
        records += sorted(batch, key=lambda record: int(record.key[-1]))
        if on_progress is not None:
            on_progress(len(records))
        if graph.num_rows > _TOO_MANY_ROWS:
            graph = Graph(game)
    return records


def _records(finished: Finished, players: Sequence[str], seed: int) -> list[MatchRecord]:
    return match_records(finished, players, [(seed, 0, STAGE, match) for match in finished.matches.tolist()])


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """What one role got: the mean goal (a missing one counts 0) and its 95% interval, None for a single match."""

    role: str
    player: str
    mean: float
    low: float | None
    high: float | None
    missing: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A number of matches: by role, and how they ended."""

    num_matches: int
    mean_plies: float
    ends: dict[str, int]
    roles: tuple[RoleSummary, ...]


def summarise(records: Sequence[MatchRecord]) -> Summary:
    """Means over matches of the same game between the same players. Raises ValueError for none."""
    if not records:
        raise ValueError("expected at least one match, got none; play some first")
    ends = [record.end for record in records]
    return Summary(
        num_matches=len(records),
        mean_plies=float(np.mean([len(record.moves) for record in records])),
        ends={end: ends.count(end) for end in sorted(set(ends))},
        roles=tuple(_role_summary(records, role) for role in range(len(records[0].roles))),
    )


def _role_summary(records: Sequence[MatchRecord], role: int) -> RoleSummary:
    goals = [record.goals[role] for record in records]
    values = np.array([goal or 0 for goal in goals], np.float64)
    low, high = _interval(values)
    first = records[0]
    return RoleSummary(first.roles[role], first.players[role], float(values.mean()), low, high, goals.count(None))


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float | None, float | None]:
    """95% of Student's distribution around the mean."""
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half
