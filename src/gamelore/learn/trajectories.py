"""Matches that are over and wait to be learned from: a process that kept them was killed before it came to that."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import GameloreError
from ..play.match import MatchState
from ..play.player import CAP, END_NAMES, Finished
from .knowledge import Knowledge, StoredLearner, Trajectory
from .learner import Learner
from .transfer import finished_matches

if TYPE_CHECKING:
    from ..play.graph import Graph

_log = logging.getLogger(__name__)


def learn_waiting(store: Knowledge, stored: StoredLearner, learner: Learner, waiting: Iterable[Trajectory]) -> None:
    """Learns from these matches in their order.

    One that cannot be played, or takes more memory than there is, is left out for good, and the log says so.
    """
    for one in waiting:
        try:
            finished = replayed(learner.graph, one.moves, one.end)
        except GameloreError as error:
            _leave_out(store, stored, one, error)
            continue
        try:
            learn_from(store, stored, learner, finished, one.number)
        except MemoryError:
            _leave_out(store, stored, one, "there is not enough memory to learn from it")


def _leave_out(store: Knowledge, stored: StoredLearner, one: Trajectory, why: object) -> None:
    _log.warning("match %r of learner %d is left out: %s", one.match, stored.id, why)
    store.forget_trajectory(stored, one.number)


def learn_from(
    store: Knowledge, stored: StoredLearner, learner: Learner, finished: Finished, trajectory: int | None
) -> None:
    """Learns from one match on the learner's graph and stores that; the trajectory of this number is over with it.

    `learner`, of one lane, knows what is stored. Raises KnowledgeError, as `Knowledge.record_match` does; then it knows
    more than that, and is to be read again.
    """
    learner.end(learner.role, finished)
    (match,) = finished_matches(learner, finished)
    store.record_match(stored, match.reward, match.length, match.afterstates, trajectory=trajectory)


def replayed(graph: Graph, moves: Sequence[Sequence[int | str]], end: str) -> Finished:
    """A match, by its moves or choices per ply and role. Raises GameloreError for one that cannot be played."""
    match = MatchState(graph, max_plies=len(moves) + (end != END_NAMES[CAP]))
    for joint in moves:
        for role, move in enumerate(joint):
            match.submit(role, move)
    if match.end != end:
        raise GameloreError(f"expected a match that ends as {end} after {len(moves)} plies, got {match.end}")
    return match.finished()
