"""Learners of Banerjee & Stone (2007): baseline, transfer and lookahead; an oracle; their moves with or without UCT.

All kinds of learners usually choose the move to the afterstate with the highest value. With probability epsilon
they choose a random move. They learn from a match after its end; in the paper this happens during the startclock of the
next match. The kinds differ only in the initial values of afterstates (initial_values.py).

`search_on` combines the learned value of a move with the result of a search. Q is treated as a mean over the visits of
the afterstate. The result of the search is a mean over the simulations of the move. The combination is the mean over
all visits and simulations: (visits * Q + simulations * mean) / (visits + simulations). So learned values dominate for
moves that were met often, and the search dominates for new moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import GameloreError
from ...matches.opponents import OpponentSettings
from ...players.lookahead import draw_each
from ...players.player import Finished, Player, Turn
from ...players.random_streams import EXPLORE, extend, uniform
from ...players.uct import NODES_AT_ONCE, SEARCH, SearchSettings, search
from ..store.features import FeatureValues
from ..store.schema import Afterstate, LearnedRows
from .afterstates import Afterstates, Representatives, afterstate_facts, afterstates_of_facts, own_afterstates, trails
from .initial_values import NO_SPACE, InitialValues, LearnerSettings, classes_of, initial_group
from .replies import count_replies
from .update import EPSILON, Lookup, ValueTable, choose, initialise, lane_numbers, learn

if TYPE_CHECKING:
    from ...players.position_graph import PositionGraph


class Learner(Player):
    """Learners of one role, one for each lane; `table` holds their values.

    settings   settings of each lane
    values     feature values for the transfer learner of each lane
    runs       (seed, run) of each lane, the key of the random permutation for the control "shuffled"
    opponents  opponent of each lane; None for an unknown opponent. Only an oracle needs it

    replies    the replies of the opponents in each lane, counted by `count`

    seconds_choosing and seconds_learning do not include the time for initial values; `initial.seconds` is that time.
    """

    def __init__(
        self,
        graph: PositionGraph,
        role: int,
        settings: Sequence[LearnerSettings],
        values: Sequence[FeatureValues | None] | None = None,
        runs: Sequence[tuple[int, int]] | None = None,
        opponents: Sequence[OpponentSettings | None] | None = None,
    ) -> None:
        self.graph = graph
        self.role = role
        self.settings = tuple(settings)
        self.table = ValueTable()
        self.initial = InitialValues(graph)
        self.replies = [Counter[tuple[int, ...]]() for _ in settings]
        self._newest: list[Counter[tuple[int, ...]]] = []  # the replies of the matches of the last call of `count`
        self.seconds_choosing = self.seconds_learning = 0.0
        # for the matches of the last call of `end`: their lanes, and parts (offsets, afterstates); at first one match
        # without afterstates
        self._changed = np.zeros(1, np.int64), [(np.zeros(2, np.int64), np.zeros(0, np.int32))]
        given = list(values) if values is not None else [None] * len(self.settings)
        keys = list(runs) if runs is not None else [(0, lane) for lane in range(len(self.settings))]
        self.opponents = against = list(opponents) if opponents is not None else [None] * len(self.settings)
        if not self.settings or not len(given) == len(keys) == len(against) == len(self.settings):
            raise GameloreError(
                f"expected settings, values, runs and opponents for each lane, got {len(self.settings)}, {len(given)}, "
                f"{len(keys)} and {len(against)}; give lists of the same length"
            )
        lanes = zip(self.settings, given, keys, against, strict=True)
        self._groups = np.array([initial_group(self.initial, graph, role, *lane) for lane in lanes], np.int32)
        self._eager = np.array([lane.initialisation == "eager" for lane in settings], np.bool_)
        self.siblings = np.array([lane.initialisation == "siblings" for lane in settings], np.bool_)
        self._first = np.array([lane.ties == "first" for lane in settings], np.bool_)
        self._numbers = lane_numbers(self.settings)
        self.epsilon = self._numbers[:, EPSILON]  # probability of a random move by lane, float64[lanes]
        self.representatives = graph.memo(Representatives)
        symmetric = np.array([lane.symmetry == "all" for lane in settings], np.bool_)
        self._merges = bool(symmetric.any()) and self.representatives.symmetries.num > 1
        self._merging = symmetric & self._merges

    def stop_exploring(self) -> None:
        """Make no random moves any more. Initial values that count with such moves stay as they are."""
        self.epsilon[:] = 0.0

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        begin, looking = perf_counter(), self.initial.seconds
        choices, unexpanded, unmet, asking, afterstates = self._try(turn)
        while unexpanded.size or unmet.size or afterstates.size:
            if unexpanded.size:
                turn.graph.expand(unexpanded)
            if unmet.size:
                self.representatives.meet(self.role, unmet)
            self.look_into(asking, afterstates)
            choices, unexpanded, unmet, asking, afterstates = self._try(turn)
        self.seconds_choosing += perf_counter() - begin - (self.initial.seconds - looking)
        return choices

    def end(self, role: int, finished: Finished) -> None:
        """Learn from the matches that ended. The reward is 0 for a missing goal, and for a match that was cut off.

        A change of this order of steps must change `compiled_series._learn` too, which learns inside a compiled loop.
        """
        begin, looking = perf_counter(), self.initial.seconds
        graph = self.graph
        rows, choices = np.ascontiguousarray(finished.rows), np.ascontiguousarray(finished.choices)
        moves = (graph.terminal, graph.acting, graph.num_moves, graph.move_start)
        offsets, afterstates, turns = trails(rows, choices, finished.plies, role, *moves)
        others, other_offsets = self._unchosen(finished.lanes, offsets, turns)
        afterstates = self._merged(finished.lanes, offsets, afterstates)
        others = self._merged(finished.lanes, other_offsets, others)
        self._initialise(finished.lanes, other_offsets, others)
        self._initialise(finished.lanes, offsets, afterstates)
        rewards = np.maximum(finished.goals[:, role], 0).astype(np.float64)
        table = self.table
        learn(finished.lanes, offsets, afterstates, rewards, self._numbers, table.keys, table.q, table.visits)
        self._changed = finished.lanes, [(offsets, afterstates), (other_offsets, others)]
        self.seconds_learning += perf_counter() - begin - (self.initial.seconds - looking)

    def count(self, finished: Finished) -> None:
        """Count the opponents' replies in the matches that ended, as knowledge for other games."""
        self._newest = count_replies(finished, self.role)
        for lane, replies in zip(finished.lanes.tolist(), self._newest, strict=True):
            self.replies[lane].update(replies)

    def estimates(
        self, lane: int, rows: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]:
        """Return the values of all legal moves in these rows for the learner of a lane.

        The moves of the rows must be listed. A move without an entry has its initial value, as in `choose`.

        Returns a tuple of three arrays:

        offsets  int64[n + 1]; the moves of rows[i] have the entries offsets[i] .. offsets[i + 1] - 1, in action order
        q        float64[moves], in units of reward
        visits   int32[moves]
        """
        graph, rows = self.graph, np.ascontiguousarray(rows)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(graph.num_moves[rows, self.role], out=offsets[1:])
        graph.expand(rows[graph.num_joint[rows] == graph.num_moves[rows, self.role]])
        own = own_afterstates(rows, self.role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
        if self._merging[lane]:
            own = self.representatives.of(self.role, own)
        q, visits = self.table.get(lane, own)
        new = np.isnan(q)
        q[new] = self._first_values(lane, own[new])
        return offsets, q, visits

    def _first_values(self, lane: int, afterstates: Afterstates) -> NDArray[np.float64]:
        """Return the values that the learner of a lane uses for afterstates without an entry, float64[n]."""
        initial, group = self.initial, self._groups[lane]
        if not self._eager[lane] or group < 0:
            return np.full(len(afterstates), self.settings[lane].default)
        space = initial.group_space[group]
        if space == NO_SPACE:
            return initial.values(np.full(len(afterstates), group, np.int32), afterstates)
        initial.look_into(np.full(len(afterstates), space, np.int32), afterstates)
        classes = classes_of(space, afterstates, initial.classes, initial.pair_classes)
        return np.asarray(initial.worth[group, classes])

    def afterstates(self, lane: int, numbers: Iterable[int] | None = None) -> list[Afterstate]:
        """Return entries of a lane as facts, in the form that `load` takes.

        numbers: the afterstates to return; None for all entries
        """
        wanted = np.array(list(self.table.lane(lane)[0] if numbers is None else numbers), np.int32)
        q, visits = self.table.get(lane, wanted)
        facts = afterstate_facts(self.graph, self.role, wanted)
        return [Afterstate(*entry) for entry in zip(facts, q.tolist(), visits.tolist(), strict=True)]

    def load(self, lane: int, stored: Iterable[Afterstate]) -> None:
        """Put stored entries into the table of a lane. Raise KnowledgeError for entries of another game."""
        entries = sorted(stored, key=attrgetter("visits"))  # the last of several equal numbers is kept
        numbers = afterstates_of_facts(self.graph, self.role, [entry.facts for entry in entries])
        if self._merging[lane]:
            numbers = self.representatives.of(self.role, numbers)
        self.table.load(lane, numbers, [entry.q for entry in entries], [entry.visits for entry in entries])

    def restore(self, learned: LearnedRows, num_matches: int) -> None:
        """Replace the table by one with these entries, for the first lane. See `session.Learns`."""
        self.table = ValueTable()
        self.load(0, learned.afterstates)
        self.replies[0] = Counter(dict(learned.replies))

    def changes(self) -> LearnedRows:
        """Return what changed in the last calls of `end` and `count`, for their first match, as rows of the store.

        Before the first call of these, and after `play_series`, which does not call them, there is nothing.
        """
        return LearnedRows(self.changed_by(0), replies=self._newest[0].items() if self._newest else ())

    def changed_by(self, match: int) -> list[Afterstate]:
        """Return the entries that one match of the last call of `end` changed, without duplicates.

        match: index of the match in that call
        """
        lanes, parts = self._changed
        numbers = np.concatenate([part[offsets[match] : offsets[match + 1]] for offsets, part in parts])
        return self.afterstates(int(lanes[match]), dict.fromkeys(numbers.tolist()))

    @property
    def lookup(self) -> Lookup:
        """The present arrays of the representatives, the table and the settings, for kernels."""
        merged, table = self.representatives, self.table
        lanes = (self._groups, self._eager, self._first, self._numbers)
        return Lookup(self._merging, merged.rows, merged.moves, table.keys, table.q, *lanes)

    def look_into(self, lanes: NDArray[np.int64], afterstates: Afterstates) -> None:
        """Determine the initial value of afterstates[i] for the lane lanes[i], for each i.

        The values of groups without a space are put into the table, because no classes hold them.
        """
        groups = self._groups[lanes]
        spaces = self.initial.group_space[groups]
        in_space = spaces != NO_SPACE
        if in_space.any():
            self.initial.look_into(spaces[in_space], afterstates[in_space])
        if not in_space.all():
            groups, lanes, afterstates = groups[~in_space], lanes[~in_space], afterstates[~in_space]
            values = self.initial.values(groups, afterstates)
            self.table.load(lanes, afterstates, values, np.zeros(len(values), np.int32))

    def _try(
        self, turn: Turn
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], Afterstates, NDArray[np.int64], Afterstates]:
        """See `update.choose`."""
        graph = turn.graph
        positions = (turn.role, turn.lanes, turn.rows, turn.keys, turn.plies)
        moves = (graph.num_moves, graph.move_start, graph.expanded, graph.succ_start, graph.successors)
        arrays: tuple[NDArray[Any], ...] = (*self.lookup, *self.initial.arrays)
        return choose(*positions, *moves, *arrays)

    def _unchosen(
        self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], turns: NDArray[np.int32]
    ) -> tuple[Afterstates, NDArray[np.int64]]:
        """Return (afterstates, offsets) of all legal moves in the matches, for lanes with initialisation "siblings"."""
        graph = self.graph
        wanted = np.repeat(self.siblings[lanes], np.diff(offsets)) & (turns >= 0)
        if not wanted.any():
            return np.empty(0, np.int32), np.zeros(len(offsets), np.int64)
        own = turns[wanted]
        counts = np.zeros(len(turns) + 1, np.int64)
        np.cumsum(np.where(wanted, graph.num_moves[turns, self.role], 0), out=counts[1:])
        graph.expand(own[graph.num_joint[own] == graph.num_moves[own, self.role]])
        afterstates = own_afterstates(
            own, self.role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors
        )
        return afterstates, counts[offsets]

    def _merged(self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], afterstates: Afterstates) -> Afterstates:
        """Replace the afterstates by their representatives in the lanes with symmetry "all"; return all afterstates."""
        if not self._merges or not afterstates.size:
            return afterstates
        wanted = np.repeat(self._merging[lanes], np.diff(offsets))
        merged = afterstates.copy()
        merged[wanted] = self.representatives.of(self.role, afterstates[wanted])
        return merged

    def _initialise(self, lanes: NDArray[np.int64], offsets: NDArray[np.int64], afterstates: Afterstates) -> None:
        """Make the missing entries of these afterstates, with initial values."""
        if not afterstates.size:
            return
        table, initial = self.table, self.initial
        table.reserve(len(afterstates))
        matches = (lanes, offsets, afterstates, self._groups, self._numbers)
        for _ in range(2):
            fresh, asking, unknown = initialise(*matches, *initial.arrays, table.keys, table.q)
            table.size += fresh
            if not unknown.size:
                break
            self.look_into(asking, unknown)


def pooled(
    q: NDArray[np.float64], visits: NDArray[np.int32], means: NDArray[np.float64], tries: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Combine learned values and search results of moves, float64[moves]; q and means are in units of reward.

    A move without visits and simulations keeps its q. If a move has no simulations, its mean is ignored.
    """
    total = visits.astype(np.float64) + tries
    sums = visits * q + tries * np.where(tries > 0, means, 0.0)
    return np.divide(sums, total, out=q.copy(), where=total > 0)


def search_on(learner: Learner, turn: Turn, choices: NDArray[np.int32], seconds: float) -> NDArray[np.int32]:
    """Return the learner's choices after a search, int32[n].

    The search ends after `seconds`, or at the deadline of the turn. All lanes of the turn together have this time. The
    given choice remains in lanes where the learner explores, and in lanes where no simulation ended in time.
    """
    exploring = uniform(turn.keys, turn.plies, EXPLORE) < learner.epsilon[turn.lanes]
    places = np.flatnonzero(~exploring & (turn.graph.num_moves[turn.rows, turn.role] > 1))
    if not places.size:
        return choices
    asked = replace(
        turn, lanes=turn.lanes[places], rows=turn.rows[places], keys=turn.keys[places], plies=turn.plies[places]
    )
    revised = choices.copy()
    revised[places] = _search(learner, asked, choices[places], seconds)
    return revised


def _search(learner: Learner, turn: Turn, choices: NDArray[np.int32], seconds: float) -> NDArray[np.int32]:
    graph, streams = turn.graph, extend(extend(turn.keys, turn.plies), SEARCH)
    settings = SearchSettings(simulations=max(1, NODES_AT_ONCE // len(turn.rows)), seconds=seconds)
    searched = search(graph.game, graph.states[turn.rows], streams, settings, turn.deadline)
    if not searched.visits.any():
        return choices
    revised = np.empty_like(choices)
    for i, lane in enumerate(turn.lanes.tolist()):
        begin = i * graph.game.num_roles + turn.role
        moves = slice(*searched.offsets[begin : begin + 2])
        offsets, q, visits = learner.estimates(lane, turn.rows[i : i + 1])
        values = pooled(q, visits, searched.means[moves], searched.visits[moves])
        if learner.settings[lane].ties == "first":
            revised[i] = values.argmax()
        else:
            revised[i] = draw_each(offsets, values, turn.keys[i : i + 1], turn.plies[i : i + 1])[0]
    return revised
