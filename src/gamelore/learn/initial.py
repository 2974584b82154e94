"""What an afterstate is worth before it was ever visited; in nothing else do the three learners differ:

baseline   the default
lookahead  what a search below the afterstate finds
transfer   the value of the feature that the afterstate matches; the true reward of a terminal one

Whatever gives initial values puts afterstates into classes of equal worth, numbered

    0              nothing known
    1 + goal       terminal, with this goal value of the learner
    FIRST_SET ..   the trees of a `FeatureSpace`, or the distinct values of a lookahead

A *space* is one way to do so; lanes share it, so each afterstate is looked into once. A *group* is a space with one
worth for every class; lanes with the same settings and feature values share it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from ..play.kernel import kernel
from ..play.search import Heuristic, choice_values, lookahead
from .afterstates import Afterstates, pair_origins
from .coalesce import FIRST_SET, UNKNOWN
from .features import Equivalence, FeatureValues
from .settings import LearnerSettings
from .trees import FeatureSpace, feature_space

if TYPE_CHECKING:
    from ..play.graph import Graph

NO_GROUP = -1


class Space(Protocol):
    """Puts afterstates into classes."""

    @property
    def num_ids(self) -> int:
        """Classes are smaller than this."""
        ...

    def ids(self, afterstates: ArrayLike) -> NDArray[np.int32]:
        """The class of each afterstate; may expand the graph."""
        ...


class LookaheadSpace:
    """Classes of equal value, `depth` plies below the afterstate looked at (`play.search`)."""

    def __init__(self, graph: Graph, role: int, depth: int, heuristic: Heuristic, default: float) -> None:
        self._graph = graph
        self._role = role
        self._how = (depth, heuristic, default)
        self._numbers: dict[float, int] = {}
        self._values: list[float] = []

    @property
    def num_ids(self) -> int:
        """See `Space`."""
        return FIRST_SET + len(self._values)

    def value(self, number: int) -> float:
        """The value of a class of positions that are not terminal."""
        return self._values[number - FIRST_SET]

    def ids(self, afterstates: ArrayLike) -> NDArray[np.int32]:
        """See `Space`."""
        graph, wanted = self._graph, np.ascontiguousarray(afterstates, np.int32)
        rows = wanted >= 0
        ids = np.empty(len(wanted), np.int32)
        ids[rows] = self._numbered(lookahead(graph, self._role, wanted[rows], *self._how))
        if not rows.all():
            ids[~rows] = self._numbered(self._of_pairs(wanted[~rows]))
        over = rows & graph.terminal[np.maximum(wanted, 0)]
        ids[over] = 1 + np.maximum(graph.goals[wanted[over], self._role], 0)
        return ids

    def _of_pairs(self, pairs: Afterstates) -> NDArray[np.float64]:
        # the others' answer at the same time is the first ply; at depth 0 nobody looks even there
        depth, heuristic, default = self._how
        if not depth:
            return np.full(len(pairs), default)
        rows, choices = pair_origins(self._graph, self._role, pairs)
        offsets, values = choice_values(self._graph, self._role, rows, depth, heuristic, default)
        return np.asarray(values[offsets[:-1] + choices])

    def _numbered(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        distinct, places = np.unique(values, return_inverse=True)
        numbers = [self._numbers.setdefault(value, len(self._numbers)) for value in distinct.tolist()]
        self._values = list(self._numbers)
        return (FIRST_SET + np.array(numbers, np.int32)[places.ravel()]).astype(np.int32)


@dataclass
class SpaceUse:
    """A space and what it cost: `seconds` of looking into `num_afterstates`, the expansion of the graph included.

    What another space or player has expanded before costs nothing more.
    """

    space: Space
    label: str
    seconds: float = 0.0
    num_afterstates: int = 0


class InitialValues:
    """The spaces and groups of a learner.

    group_space  int32[groups]
    classes      int32[spaces, rows or more], UNKNOWN where not looked into
    pair_classes int32[spaces, moves or more], the same for pairs
    worth        float64[groups, classes or more]
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.spaces: list[SpaceUse] = []
        self.group_space = np.empty(0, np.int32)
        self.classes = np.empty((0, 0), np.int32)
        self.pair_classes = np.empty((0, 0), np.int32)
        self.worth = np.empty((0, 0))
        self._space_numbers: dict[Hashable, int] = {}
        self._group_numbers: dict[Hashable, int] = {}
        self._worth_of: list[Callable[[int], float]] = []
        self._known_ids: list[int] = []

    def space(self, space: Space, key: Hashable, label: str) -> int:
        """The number of the space with this key; the first one that comes with it is kept."""
        if key not in self._space_numbers:
            self._space_numbers[key] = len(self.spaces)
            self.spaces.append(SpaceUse(space, label))
            self.classes = _padded(self.classes, len(self.spaces), self.classes.shape[1])
            self.pair_classes = _padded(self.pair_classes, len(self.spaces), self.pair_classes.shape[1])
        return self._space_numbers[key]

    def group(self, space: int, key: Hashable, worth_of: Callable[[int], float]) -> int:
        """The number of the space's group with this key; `worth_of` gives the worth of a class."""
        if (space, key) not in self._group_numbers:
            self._group_numbers[space, key] = len(self._worth_of)
            self._worth_of.append(worth_of)
            self._known_ids.append(0)
            self.group_space = np.append(self.group_space, np.int32(space))
            self.worth = np.vstack([self.worth, np.empty((1, self.worth.shape[1]))])
            self._fill_worth(space)
        return self._group_numbers[space, key]

    def look_into(self, spaces: NDArray[np.int32], afterstates: Afterstates) -> None:
        """Finds the classes of afterstates, each in the space at the same place of `spaces`."""
        for number in np.unique(spaces).tolist():
            use = self.spaces[number]
            begin = perf_counter()
            fresh = np.unique(afterstates[spaces == number])
            ids = use.space.ids(fresh)
            self._make_room()
            rows = fresh >= 0
            self.classes[number, fresh[rows]] = ids[rows]
            self.pair_classes[number, ~fresh[~rows]] = ids[~rows]
            self._fill_worth(number)
            use.seconds += perf_counter() - begin
            use.num_afterstates += len(fresh)

    @property
    def seconds(self) -> float:
        """Spent on looking into afterstates, all spaces together."""
        return sum(use.seconds for use in self.spaces)

    def _make_room(self) -> None:
        graph, spaces = self.graph, len(self.spaces)
        if self.classes.shape[1] < graph.num_rows:
            self.classes = _padded(self.classes, spaces, 2 * graph.num_rows)
        if self.pair_classes.shape[1] < len(graph.move_actions):
            self.pair_classes = _padded(self.pair_classes, spaces, 2 * len(graph.move_actions))

    def _fill_worth(self, space: int) -> None:
        """Gives the space's new classes their worth in all its groups."""
        num_ids = self.spaces[space].space.num_ids
        if self.worth.shape[1] < num_ids:
            wider = np.empty((len(self._worth_of), 2 * num_ids))
            wider[:, : self.worth.shape[1]] = self.worth
            self.worth = wider
        for group in np.flatnonzero(self.group_space == space).tolist():
            for number in range(self._known_ids[group], num_ids):
                self.worth[group, number] = self._worth_of[group](number)
            self._known_ids[group] = num_ids


def _padded(array: NDArray[np.int32], height: int, width: int) -> NDArray[np.int32]:
    """A copy with more rows and columns, the new ones UNKNOWN."""
    wider = np.full((height, width), UNKNOWN, np.int32)
    wider[: array.shape[0], : array.shape[1]] = array
    return wider


@kernel("int64(int64, int32, int32[:, ::1], int32[:, ::1])")
def class_of(
    space: int, afterstate: int | np.int32, classes: NDArray[np.int32], pair_classes: NDArray[np.int32]
) -> int:
    """The class of an afterstate, or UNKNOWN; for use inside kernels."""
    if afterstate >= 0:
        return classes[space, afterstate] if afterstate < classes.shape[1] else UNKNOWN
    move = ~afterstate
    return pair_classes[space, move] if move < pair_classes.shape[1] else UNKNOWN


def initial_group(
    initial: InitialValues,
    graph: Graph,
    role: int,
    settings: LearnerSettings,
    values: FeatureValues | None,
    run: tuple[int, int],
) -> int:
    """The group of initial values of a learner, NO_GROUP for the default alone.

    Raises GameloreError where a transfer learner has no feature values, or those of another depth.
    """
    if settings.kind == "lookahead":
        return _lookahead_group(initial, graph, role, settings)
    if settings.control == "terminal":
        return _terminal_group(initial, graph, role, settings.default)
    if settings.kind == "transfer":
        return _transfer_group(initial, graph, role, settings, _checked(settings, values, run))
    return NO_GROUP


def _lookahead_group(initial: InitialValues, graph: Graph, role: int, settings: LearnerSettings) -> int:
    depth, heuristic, default = how = (settings.depth, settings.heuristic, settings.default)
    space = initial.space(LookaheadSpace(graph, role, *how), how, f"{heuristic} of depth {depth}")
    looked = initial.spaces[space].space
    assert isinstance(looked, LookaheadSpace)

    def worth(number: int) -> float:
        return looked.value(number) if number >= FIRST_SET else _reward(number, default)

    return initial.group(space, (), worth)


def _terminal_group(initial: InitialValues, graph: Graph, role: int, default: float) -> int:
    space = _feature_space(initial, feature_space(graph, role, 0))
    return initial.group(space, default, lambda number: _reward(number, default))


def _transfer_group(
    initial: InitialValues, graph: Graph, role: int, settings: LearnerSettings, values: FeatureValues
) -> int:
    equivalence = _equivalence(settings, graph.game.goal_values[role], values)
    features = feature_space(graph, role, settings.depth, equivalence)
    known = {text: equivalence.back(value) for text, (value, _) in values.items()}
    default, sees_end = settings.default, settings.control != "features"

    def worth(number: int) -> float:
        if number < FIRST_SET:
            return _reward(number, default) if sees_end else default
        return known.get(features.feature(number) or "", default)

    space = _feature_space(initial, features)
    return initial.group(space, (default, sees_end, tuple(known.items())), worth)


def _feature_space(initial: InitialValues, space: FeatureSpace) -> int:
    depth = space.depth
    return initial.space(space, space, f"features of depth {depth}" if depth else "terminal check")


def _equivalence(settings: LearnerSettings, target: tuple[int, ...], values: FeatureValues) -> Equivalence:
    if settings.equivalence is None:
        return Equivalence.default(target, values.outcomes)
    return Equivalence.given(dict(settings.equivalence), target)


def _checked(settings: LearnerSettings, values: FeatureValues | None, run: tuple[int, int]) -> FeatureValues:
    if values is None or values.depth != settings.depth:
        found = f"those of depth {values.depth}" if values is not None else "none"
        raise GameloreError(
            f"expected feature values of depth {settings.depth} for a transfer learner, got {found}; learn them "
            "in a source game, or set control to terminal"
        )
    return values.shuffled(*run) if settings.control == "shuffled" else values


def _reward(number: int, default: float) -> float:
    """The true reward of a class of terminal afterstates, the default of others."""
    return float(number - 1) if 0 < number < FIRST_SET else default
