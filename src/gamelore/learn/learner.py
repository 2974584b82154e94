"""The three learners of Banerjee & Stone (2007): baseline, transfer and lookahead.

All three play greedily by the values of afterstates, explore at times, and learn from each match after it, as the
paper does in the next match's startclock. They differ in the value of a new afterstate (initial.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..play.player import TERMINAL, Finished, Player, Turn
from .afterstates import Afterstates, afterstate_facts, afterstates_of_facts, own_afterstates, trails
from .features import FeatureValues
from .initial import InitialValues, class_of, initial_group
from .merging import Representatives
from .scoring import choose, initialise, lane_numbers, learn
from .settings import LearnerSettings
from .tables import Afterstate
from .values import ValueTable

if TYPE_CHECKING:
    from ..play.graph import Graph


@dataclass(frozen=True, slots=True)
class Changed:
    """What the matches that ended last changed: match i, in lane lanes[i], the entries of
    afterstates[offsets[i] : offsets[i + 1]], where one may come twice."""

    lanes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    afterstates: Afterstates


class Learner(Player):
    """Learners of one role, one for each lane; `table` holds their values.

    settings  one per lane
    values    per lane the feature values to start from, for transfer learners
    runs      per lane (seed, run), which key the control "shuffled"

    seconds_choosing, seconds_learning and seconds_initialising tell what the time went into, without overlap; the
    last is looking into afterstates (`initial.spaces` has it by space). `changed` is about the last `end`.
    """

    def __init__(
        self,
        graph: Graph,
        role: int,
        settings: Sequence[LearnerSettings],
        values: Sequence[FeatureValues | None] | None = None,
        runs: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.graph = graph
        self.role = role
        self.settings = tuple(settings)
        self.table = ValueTable()
        self.initial = InitialValues(graph)
        self.seconds_choosing = self.seconds_learning = 0.0
        self.changed = Changed(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))
        given = list(values) if values is not None else [None] * len(self.settings)
        keys = list(runs) if runs is not None else [(0, lane) for lane in range(len(self.settings))]
        if not self.settings or not len(given) == len(keys) == len(self.settings):
            raise GameloreError(
                f"expected settings, values and runs for each lane, got {len(self.settings)}, {len(given)} and "
                f"{len(keys)}; give lists of one length"
            )
        lanes = zip(self.settings, given, keys, strict=True)
        self._groups = np.array([initial_group(self.initial, graph, role, *lane) for lane in lanes], np.int32)
        self._eager = np.array([one.initialisation == "eager" for one in settings], np.bool_)
        self._siblings = np.array([one.initialisation == "siblings" for one in settings], np.bool_)
        self._first = np.array([one.ties == "first" for one in settings], np.bool_)
        self._numbers = lane_numbers(self.settings)
        self._representatives = graph.memo(Representatives)
        asked = np.array([one.symmetry == "all" for one in settings], np.bool_)
        self._merges = bool(asked.any()) and self._representatives.symmetries.num > 1
        self._merging = asked & self._merges

    @property
    def seconds_initialising(self) -> float:
        """Spent on looking into afterstates for their first value."""
        return self.initial.seconds

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        begin, looking = perf_counter(), self.initial.seconds
        choices, closed, unmet, spaces, afterstates = self._try(turn)
        while closed.size or unmet.size or afterstates.size:
            if closed.size:
                turn.graph.expand(closed)
            if unmet.size:
                self._representatives.meet(self.role, unmet)
            self.initial.look_into(spaces, afterstates)
            choices, closed, unmet, spaces, afterstates = self._try(turn)
        self.seconds_choosing += perf_counter() - begin - (self.initial.seconds - looking)
        return choices

    def end(self, role: int, finished: Finished) -> None:
        """Learns from the matches that ended. A missing goal counts 0, as does a match that came to no end."""
        begin, looking = perf_counter(), self.initial.seconds
        graph = self.graph
        offsets, afterstates, turns = trails(
            np.ascontiguousarray(finished.rows),
            np.ascontiguousarray(finished.choices),
            finished.plies,
            role,
            graph.terminal,
            graph.acting,
            graph.num_moves,
            graph.move_start,
        )
        others, other_offsets = self._unchosen(finished.lanes, offsets, turns)
        afterstates = self._merged(finished.lanes, offsets, afterstates)
        others = self._merged(finished.lanes, other_offsets, others)
        self._initialise(finished.lanes, other_offsets, others)
        self._initialise(finished.lanes, offsets, afterstates)
        rewards = np.maximum(finished.goals[:, role], 0).astype(np.float64)
        table = self.table
        learn(finished.lanes, offsets, afterstates, rewards, self._numbers, table.keys, table.q, table.visits)
        self.changed = _joined(finished.lanes, offsets, afterstates, other_offsets, others)
        self.seconds_learning += perf_counter() - begin - (self.initial.seconds - looking)

    def estimates(
        self, lane: int, rows: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]:
        """What a lane's learner thinks of every legal move in these rows, whose moves are listed.

        Returns (offsets int64[n + 1], q float64[moves] in units of reward, visits int32[moves]); the moves of rows[i]
        are at offsets[i : i + 2], in action order. Where there is no entry the initial value counts, as in choosing.
        """
        graph, rows = self.graph, np.ascontiguousarray(rows)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(graph.num_moves[rows, self.role], out=offsets[1:])
        graph.expand(rows[graph.num_joint[rows] == graph.num_moves[rows, self.role]])
        found = own_afterstates(rows, self.role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
        if self._merging[lane]:
            found = self._representatives.of(self.role, found)
        q, visits = self.table.get(lane, found)
        new = np.isnan(q)
        q[new] = self._first_values(lane, found[new])
        return offsets, q, visits

    def _first_values(self, lane: int, afterstates: Afterstates) -> NDArray[np.float64]:
        """What afterstates without an entry count while a lane's learner chooses."""
        initial, group = self.initial, self._groups[lane]
        if not self._eager[lane] or group < 0:
            return np.full(len(afterstates), self.settings[lane].default)
        space = initial.group_space[group]
        initial.look_into(np.full(len(afterstates), space, np.int32), afterstates)
        classes = np.array([class_of(space, one, initial.classes, initial.pair_classes) for one in afterstates], int)
        return np.asarray(initial.worth[group, classes])

    def afterstates(self, lane: int, numbers: Iterable[int] | None = None) -> list[Afterstate]:
        """What a lane's learner knows, as facts: all of it, or these afterstates. `load` takes it up again."""
        wanted = np.array(list(self.table.lane(lane)[0] if numbers is None else numbers), np.int32)
        q, visits = self.table.get(lane, wanted)
        facts = afterstate_facts(self.graph, self.role, wanted)
        return [Afterstate(*entry) for entry in zip(facts, q.tolist(), visits.tolist(), strict=True)]

    def load(self, lane: int, stored: Iterable[Afterstate]) -> None:
        """Lets a lane's learner go on with what another one knew. Raises KnowledgeError for another game's."""
        entries = sorted(stored, key=attrgetter("visits"))  # of two in one class the last counts
        numbers = afterstates_of_facts(self.graph, self.role, [one.facts for one in entries])
        if self._merging[lane]:
            numbers = self._representatives.of(self.role, numbers)
        self.table.load(lane, numbers, [one.q for one in entries], [one.visits for one in entries])

    def _try(
        self, turn: Turn
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], Afterstates, NDArray[np.int32], Afterstates]:
        """See `scoring.choose`."""
        graph, initial = turn.graph, self.initial
        return choose(
            turn.role,
            turn.lanes,
            turn.rows,
            turn.keys,
            turn.plies,
            graph.num_moves,
            graph.move_start,
            graph.expanded,
            graph.succ_start,
            graph.successors,
            self._merging,
            self._representatives.rows,
            self._representatives.moves,
            self.table.keys,
            self.table.q,
            self._groups,
            self._eager,
            self._first,
            self._numbers,
            initial.group_space,
            initial.classes,
            initial.pair_classes,
            initial.worth,
        )

    def _unchosen(
        self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], turns: NDArray[np.int32]
    ) -> tuple[Afterstates, NDArray[np.int64]]:
        """For the lanes with initialisation "siblings" all that could have been chosen: (afterstates, offsets)."""
        graph = self.graph
        wanted = np.repeat(self._siblings[lanes], np.diff(offsets)) & (turns >= 0)
        if not wanted.any():
            return np.empty(0, np.int32), np.zeros(len(offsets), np.int64)
        own = turns[wanted]
        counts = np.zeros(len(turns) + 1, np.int64)
        np.cumsum(np.where(wanted, graph.num_moves[turns, self.role], 0), out=counts[1:])
        graph.expand(own[graph.num_joint[own] == graph.num_moves[own, self.role]])
        found = own_afterstates(own, self.role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
        return found, counts[offsets]

    def _merged(self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], afterstates: Afterstates) -> Afterstates:
        """The same with representatives for the lanes that have one value for each symmetry class."""
        if not self._merges or not afterstates.size:
            return afterstates
        wanted = np.repeat(self._merging[lanes], np.diff(offsets))
        merged = afterstates.copy()
        merged[wanted] = self._representatives.of(self.role, afterstates[wanted])
        return merged

    def _initialise(self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], afterstates: Afterstates) -> None:
        """Gives a first value to those of these afterstates that have none."""
        if not afterstates.size:
            return
        table, initial = self.table, self.initial
        table.reserve(len(afterstates))
        for _ in range(2):
            fresh, spaces, unknown = initialise(
                lanes,
                offsets,
                afterstates,
                self._groups,
                self._numbers,
                initial.group_space,
                initial.classes,
                initial.pair_classes,
                initial.worth,
                table.keys,
                table.q,
            )
            table.size += fresh
            if not unknown.size:
                break
            initial.look_into(spaces, unknown)


def missing_goals(finished: Finished, role: int) -> NDArray[np.bool_]:
    """bool[n]: matches that came to their end and gave the role no goal, or several."""
    return np.asarray((finished.ends == TERMINAL) & (finished.goals[:, role] < 0))


def _joined(
    lanes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    afterstates: Afterstates,
    other_offsets: NDArray[np.int64],
    others: Afterstates,
) -> Changed:
    if not others.size:
        return Changed(lanes, offsets, afterstates)
    parts: Iterator[Afterstates] = (
        part
        for i in range(len(lanes))
        for part in (
            afterstates[offsets[i] : offsets[i + 1]],
            others[other_offsets[i] : other_offsets[i + 1]],
        )
    )
    return Changed(lanes, offsets + other_offsets, np.concatenate(list(parts)))
