"""Settings of a learner of values, and the initial values of its afterstates: default, lookahead, transfer or oracle.

The kinds of learners differ only in the value of an afterstate before its first visit:

baseline   the default
lookahead  the value that a search below the afterstate finds
transfer   the value of the feature that the afterstate matches; for a terminal afterstate, its true reward
oracle     the exact expected reward against this opponent (solver/best_response.py). The paper has no such learner. It
           is no upper bound: its values change with every match, and it may stop to explore. The reward of best play
           itself is `BestResponse.expected`

A *space* divides afterstates into classes. All afterstates of a class have the same initial value. The numbers of the
classes are

    0              nothing is known about the afterstate
    1 + goal       the afterstate is terminal, with this goal value of the learner
    FIRST_SET ..   the trees of a `FeatureSpace`, or the distinct values of a lookahead

Lanes share a space, so the class of each afterstate is computed only once. A *group* consists of a space and a value
for each of its classes. Lanes with equal settings and feature values share a group.

Values of an oracle, or of features further below (deep_features.py), are too many for classes. A group with such values
has a *valuation* instead, which computes the value of one afterstate at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import GameloreError, check_word
from ...game.engines import HIGHEST_GOAL
from ...matches.opponents import Opponent, OpponentSettings
from ...players.kernel import I32, F64x2, I32x2, Int32, inlined, kernel
from ...players.lookahead import Heuristic, choice_values, lookahead
from ...solver.best_response import BestResponse
from ..store.features import DEEPEST, Equivalence, FeatureValues, Replies, check_depth
from .afterstates import Afterstates, grown, pair_origins
from .deep_features import DeepFeatures
from .discovery import FIRST_SET, UNKNOWN, FeatureSpace, check_goals, feature_space
from .replies import NUM_CLASSES, fit

if TYPE_CHECKING:
    from ...players.position_graph import PositionGraph

Kind = Literal["baseline", "transfer", "lookahead", "oracle"]
Initialisation = Literal["lazy", "siblings", "eager"]
Ties = Literal["random", "first"]
Control = Literal["terminal", "shuffled", "features", "replies", "minimax", "optimal"]
_CONTROLS: dict[Kind, tuple[Control, ...]] = {
    "transfer": ("terminal", "shuffled", "features"),
    "oracle": ("optimal",),
}
_DEEP_CONTROLS: tuple[Control, ...] = ("shuffled", "replies", "minimax")
"""Controls of a transfer learner with turns > 0."""
Symmetric = Literal["all", "none"]
"""Whether afterstates that are equal by symmetry share one learned value: "all" symmetries count, or "none"."""
_WORDS = {"kind": Kind, "heuristic": Heuristic, "initialisation": Initialisation, "ties": Ties, "symmetry": Symmetric}
Pairs: TypeAlias = Mapping[int, int] | tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """Settings of one learner. The defaults are those of the paper (section 4), where the paper states a value.

    kind            source of initial values:
                    "baseline": Every afterstate has the default value.
                    "transfer": A terminal afterstate has its true reward (readings.md, B&S 14). Another afterstate has
                    the value of the feature that it matches, or the default if there is none.
                    "lookahead": A search computes the value. Terminal positions at any level of the search have their
                    true reward.
                    "oracle": Every afterstate has the highest expected reward that this learner can reach against its
                    opponent, with its own random moves. All positions of the game must fit into memory. The values
                    have no discount, so gamma must be 1. With symmetry "all", the opponent must be symmetric, see
                    `OpponentSettings.is_symmetric`.
    heuristic       for "lookahead": assumed behaviour of the other roles in the search, see `players.lookahead`
    initialisation  time of the initial values (readings.md, B&S 5 and 11). An afterstate has the default value before.
                    "lazy": An afterstate gets its initial value after the first match that visited it.
                    "siblings": After each match, the afterstates of all legal moves in that match get their initial
                    values, including the moves that were not chosen.
                    "eager": An afterstate gets its initial value when the learner first compares it with others.
    alpha           learning rate of Equation 2
    gamma           discount of Equation 2
    lam             lambda of Equation 2
    epsilon         probability of a random move
    depth           number of plies examined below an afterstate
    default         value of an afterstate about which nothing is known (the paper's delta)
    ties            choice among several best moves: "random", or "first" for the first move in action order
    equivalence     for "transfer": pairs of equivalent outcomes, ((outcome of this game, outcome of the source), ..);
                    None for `Equivalence.default`
    turns           for "transfer": number of turns between an afterstate and the afterstates below it whose features
                    give its value, see deep_features.py. With 0, its own feature gives its value, as in the paper
    control         a control experiment. For "transfer":
                    "terminal": The learner recognises terminal afterstates and uses no features.
                    "shuffled": The values are permuted among the features, differently in each run.
                    "features": The learner uses features and does not recognise terminal afterstates.
                    For "transfer" with turns, only "shuffled" of these, and
                    "replies": The learner uses no features; every leaf has the default value.
                    "minimax": The learner uses no model of the replies; the others do what is worst for it.
                    For "oracle": "optimal": The values are those of a learner that never makes a random move.
    symmetry        "all": Afterstates that are images of each other under the symmetries of the game share one entry.
                    The paper uses no symmetries; this setting is an addition of gamelore.
    """

    kind: Kind = "baseline"
    heuristic: Heuristic = "minimax"
    initialisation: Initialisation = "lazy"
    alpha: float = 0.3
    gamma: float = 1.0
    lam: float = 0.7
    epsilon: float = 0.01
    depth: int = 2
    default: float = 50.0
    ties: Ties = "random"
    equivalence: Pairs | None = None
    control: Control | None = None
    symmetry: Symmetric = "none"
    turns: int = 0

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            check_word(name, getattr(self, name), get_args(words))
        check_word("control", self.control, (None, *get_args(Control)))
        for name in ("alpha", "gamma", "lam", "epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise GameloreError(f"expected {name} from 0 to 1, got {getattr(self, name)}; correct the settings")
            object.__setattr__(self, name, float(getattr(self, name)))  # 1 and 1.0 are one setting, also as JSON
        check_depth(self.depth)
        if not 0 <= self.turns <= DEEPEST or (self.turns and self.kind != "transfer"):
            raise GameloreError(
                f"expected turns from 0 to {DEEPEST}, and only for the transfer learner, got {self.turns} for "
                f"{self.kind}; leave turns out"
            )
        self._check_control()
        if self.equivalence and self.kind != "transfer":
            raise GameloreError(
                f"expected an equivalence only for the transfer learner, got one for {self.kind}; leave it out"
            )
        if self.kind == "oracle" and self.gamma < 1.0:
            raise GameloreError(
                f"expected gamma=1 for the oracle, whose values have no discount, got {self.gamma}; leave gamma out"
            )
        if self.equivalence is not None:  # JSON gives a dictionary or lists
            pairs = tuple(sorted(dict(self.equivalence).items()))
            object.__setattr__(self, "equivalence", pairs)
            for goal in chain.from_iterable(pairs):
                if not 0 <= goal <= HIGHEST_GOAL:
                    raise GameloreError(
                        f"expected an equivalence of goals from 0 to {HIGHEST_GOAL}, got {goal}; correct the settings"
                    )

    def _check_control(self) -> None:
        if self.control is None:
            return
        if self.kind not in _CONTROLS:
            raise GameloreError(
                f"expected a control only for the transfer learner and the oracle, got {self.control} for {self.kind}; "
                "leave it out"
            )
        allowed = _DEEP_CONTROLS if self.turns else _CONTROLS[self.kind]
        if self.control not in allowed:
            turns = f" with turns={self.turns}" if self.kind == "transfer" else ""
            raise GameloreError(
                f"expected the control of a learner of the kind {self.kind}{turns} to be {', '.join(allowed)}, got "
                f"{self.control}; choose one of these, or leave it out"
            )

    @property
    def needs_values(self) -> bool:
        """Whether the learner needs feature values of a source game."""
        return self.kind == "transfer" and self.control != "terminal"

    @property
    def needs_replies(self) -> bool:
        """Whether the learner needs the replies of the opponents in a source game."""
        return self.turns > 0 and self.control != "minimax"

    def described(self) -> dict[str, Any]:
        """Return the settings as a dictionary of JSON values, which identifies the learner in the store and the lab.

        The dictionary contains `symmetry` and `turns` only if they differ from the default. Learners that were stored
        before these settings existed are therefore still found.
        """
        described = asdict(self)
        if self.symmetry == "none":
            del described["symmetry"]
        if not self.turns:
            del described["turns"]
        return described


NO_GROUP = -1
NO_SPACE = -1


class Space(Protocol):
    """A division of afterstates into numbered classes."""

    @property
    def num_ids(self) -> int:
        """Upper bound of the class numbers; all class numbers are smaller."""

    def ids(self, afterstates: ArrayLike) -> NDArray[np.int32]:
        """Return the class of each afterstate, int32[n]. This may expand the graph."""


class LookaheadSpace:
    """A space whose classes have equal values in a search of `depth` plies (`players.lookahead`)."""

    def __init__(self, graph: PositionGraph, role: int, depth: int, heuristic: Heuristic, default: float) -> None:
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
        """Return the value of a class of positions that are not terminal."""
        return self._values[number - FIRST_SET]

    def ids(self, afterstates: ArrayLike) -> NDArray[np.int32]:
        """See `Space`."""
        graph, wanted = self._graph, np.ascontiguousarray(afterstates, np.int32)
        rows = wanted >= 0
        ids = np.empty(len(wanted), np.int32)
        ids[rows] = self._numbered(lookahead(graph, self._role, wanted[rows], *self._how))
        if not rows.all():
            ids[~rows] = self._numbered(self._of_pairs(wanted[~rows]))
        terminal = rows & graph.terminal[np.maximum(wanted, 0)]
        goals = np.maximum(graph.goals[wanted[terminal], self._role], 0)
        check_goals(graph.game, self._role, goals)
        ids[terminal] = 1 + goals
        return ids

    def _of_pairs(self, pairs: Afterstates) -> NDArray[np.float64]:
        # the simultaneous moves of the other roles are the first ply; a search of depth 0 ignores them
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


class Valuation(Protocol):
    """Values of single afterstates for several learners, as an alternative to a space and the values of its classes."""

    def of(self, learners: NDArray[np.int32], afterstates: Afterstates) -> NDArray[np.float64]:
        """Return the value of afterstates[i] for the learner learners[i], float64[n]. This may expand the graph."""


ValuationT = TypeVar("ValuationT", bound=Valuation)
UsedT = TypeVar("UsedT")


class ExactValues:
    """The exact values of oracles, as a `Valuation`; oracles with the same opponent share a table."""

    def __init__(self) -> None:
        self._tables: list[BestResponse] = []

    def add(self, table: BestResponse) -> int:
        """Add a learner with this table, and return its number."""
        self._tables.append(table)
        return len(self._tables) - 1

    def of(self, learners: NDArray[np.int32], afterstates: Afterstates) -> NDArray[np.float64]:
        """See `Valuation`."""
        out = np.empty(len(afterstates))
        for learner in np.unique(learners).tolist():
            own = learners == learner
            out[own] = self._tables[learner].values_of(afterstates[own])
        return out


@dataclass
class TimedUse(Generic[UsedT]):
    """A space or a valuation, and the time that it needed to determine classes or values.

    label    its name in reports of the time
    seconds  includes the expansion of the graph. Positions that another space or player has already expanded take no
             time.
    """

    used: UsedT
    label: str
    seconds: float = 0.0


class Initial(NamedTuple):
    """The arrays of `InitialValues`, for kernels.

    group_space   int32[groups], number of the space of each group; NO_SPACE if the group has a valuation. `values` then
                  gives the initial value of an afterstate, and the learner keeps it in its table
    classes       int32[spaces, any], classes of positions: classes[space, row] belongs to the afterstate row
    pair_classes  int32[spaces, any], classes of pairs: pair_classes[space, move] belongs to the afterstate ~move
    worth         float64[groups, num_ids or more], initial value of each class

    A class is UNKNOWN until it is computed. For the numbers of pairs see afterstates.py.
    """

    group_space: I32
    classes: I32x2
    pair_classes: I32x2
    worth: F64x2


class InitialValues:
    """The spaces and groups of a learner, with the arrays of `Initial`, which `look_into` fills and replaces."""

    def __init__(self, graph: PositionGraph) -> None:
        self.graph = graph
        self.spaces: list[TimedUse[Space]] = []
        self.group_space = np.empty(0, np.int32)
        self.classes = np.empty((0, 0), np.int32)
        self.pair_classes = np.empty((0, 0), np.int32)
        self.worth = np.empty((0, 0))
        self._space_numbers: dict[Hashable, int] = {}
        self._group_numbers: dict[Hashable, int] = {}
        self._worth_of: list[Callable[[int], float]] = []
        self._known_ids: list[int] = []
        self._valuations: dict[Hashable, TimedUse[Valuation]] = {}
        self._valued: dict[int, tuple[TimedUse[Valuation], int]] = {}

    def valuation(self, make: Callable[[], ValuationT], key: Hashable, label: str) -> ValuationT:
        """Return the valuation with this key; it is made only if the key is new."""
        if key not in self._valuations:
            self._valuations[key] = TimedUse(make(), label)
        return cast(ValuationT, self._valuations[key].used)

    def valued_group(self, valuation: Hashable, key: Hashable, number: Callable[[], int]) -> int:
        """Return the number of the group with this key, for a valuation given by its key.

        `number` gives the number of the learner in the valuation; it is called only if the key of the group is new.
        """
        group = self._new_group((valuation, key), NO_SPACE, lambda _: np.nan)
        if group not in self._valued:
            self._valued[group] = self._valuations[valuation], number()
        return group

    def values(self, groups: NDArray[np.int32], afterstates: Afterstates) -> NDArray[np.float64]:
        """Return the initial value of afterstates[i] in groups[i], float64[n]. The groups must have valuations."""
        out = np.empty(len(afterstates))
        for use in self._valuations.values():
            mine = np.array([self._valued[group][0] is use for group in groups.tolist()], np.bool_)
            if mine.any():
                begin = perf_counter()
                learners = np.array([self._valued[group][1] for group in groups[mine].tolist()], np.int32)
                out[mine] = use.used.of(learners, afterstates[mine])
                use.seconds += perf_counter() - begin
        return out

    def space(self, space: Space, key: Hashable, label: str) -> int:
        """Return the number of the space with this key; `space` is added only if the key is new."""
        if key not in self._space_numbers:
            self._space_numbers[key] = len(self.spaces)
            self.spaces.append(TimedUse(space, label))
            self.classes = np.pad(self.classes, ((0, 1), (0, 0)), constant_values=UNKNOWN)
            self.pair_classes = np.pad(self.pair_classes, ((0, 1), (0, 0)), constant_values=UNKNOWN)
        return self._space_numbers[key]

    def group(self, space: int, key: Hashable, worth_of: Callable[[int], float]) -> int:
        """Return the number of the space's group with this key; `worth_of` maps a class to its initial value."""
        if (space, key) in self._group_numbers:
            return self._group_numbers[space, key]
        group = self._new_group((space, key), space, worth_of)
        self._fill_worth(space)
        return group

    def _new_group(self, key: Hashable, space: int, worth_of: Callable[[int], float]) -> int:
        """Return the number of the group with this key; it is added only if the key is new."""
        if key not in self._group_numbers:
            self._group_numbers[key] = len(self._worth_of)
            self._worth_of.append(worth_of)
            self._known_ids.append(0)
            self.group_space = np.append(self.group_space, np.int32(space))
            self.worth = np.vstack([self.worth, np.empty((1, self.worth.shape[1]))])
        return self._group_numbers[key]

    def look_into(self, spaces: NDArray[np.int32], afterstates: Afterstates) -> None:
        """Determine the class of afterstates[i] in the space spaces[i], for each i."""
        for number in np.unique(spaces).tolist():
            use = self.spaces[number]
            begin = perf_counter()
            fresh = np.unique(afterstates[spaces == number])
            ids = use.used.ids(fresh)
            self.classes = grown(self.classes, self.graph.num_rows, UNKNOWN)
            self.pair_classes = grown(self.pair_classes, len(self.graph.move_actions), UNKNOWN)
            rows = fresh >= 0
            self.classes[number, fresh[rows]] = ids[rows]
            self.pair_classes[number, ~fresh[~rows]] = ids[~rows]
            self._fill_worth(number)
            use.seconds += perf_counter() - begin

    @property
    def arrays(self) -> Initial:
        """The present arrays, in the order of the parameters of the kernels in update.py."""
        return Initial(self.group_space, self.classes, self.pair_classes, self.worth)

    @property
    def seconds(self) -> float:
        """Time to determine classes and values, in seconds."""
        return sum(use.seconds for use in self.uses)

    @property
    def uses(self) -> list[TimedUse[Space] | TimedUse[Valuation]]:
        """All spaces and valuations."""
        return [*self.spaces, *self._valuations.values()]

    def _fill_worth(self, space: int) -> None:
        """Set the initial values of the new classes of a space, in all groups of the space."""
        num_ids, width = self.spaces[space].used.num_ids, self.worth.shape[1]
        if width < num_ids:
            self.worth = np.pad(self.worth, ((0, 0), (0, 2 * num_ids - width)))
        for group in np.flatnonzero(self.group_space == space).tolist():
            for number in range(self._known_ids[group], num_ids):
                self.worth[group, number] = self._worth_of[group](number)
            self._known_ids[group] = num_ids


@inlined
def class_of(space: int, afterstate: Int32, classes: I32x2, pair_classes: I32x2) -> int:
    """Return the class of an afterstate, or UNKNOWN; for use inside kernels. In NO_SPACE, every class is UNKNOWN."""
    if space == NO_SPACE:
        return UNKNOWN
    if afterstate >= 0:
        return classes[space, afterstate] if afterstate < classes.shape[1] else UNKNOWN
    move = ~afterstate
    return pair_classes[space, move] if move < pair_classes.shape[1] else UNKNOWN


@kernel
def classes_of(space: int, afterstates: I32, classes: I32x2, pair_classes: I32x2) -> I32:
    """Return the class of each afterstate, int32[n], or UNKNOWN."""
    out = np.empty(afterstates.size, np.int32)
    for i in range(afterstates.size):
        out[i] = class_of(space, afterstates[i], classes, pair_classes)
    return out


def initial_group(
    initial: InitialValues,
    graph: PositionGraph,
    role: int,
    settings: LearnerSettings,
    values: FeatureValues | None,
    run: tuple[int, int],
    opponent: OpponentSettings | None = None,
) -> int:
    """Return the number of the learner's group; NO_GROUP for a baseline learner.

    run       (seed, run), the key of the random permutation for the control "shuffled"
    opponent  the opponent of the learner; only an oracle needs it

    Raises GameloreError for a transfer learner without feature values, or with feature values of another depth, and for
    an oracle without an opponent, with a symmetry that its opponent does not have, or in a game that is too large.
    """
    default = settings.default
    if settings.kind == "baseline":
        return NO_GROUP
    if settings.kind == "lookahead":
        return _lookahead_group(initial, graph, role, settings)
    if settings.kind == "oracle":
        return _oracle_group(initial, graph, role, settings, opponent)
    if settings.control == "terminal":
        space = _feature_space(initial, feature_space(graph, role, 0))
        return initial.group(space, default, lambda number: _reward(number, default))
    if values is None or values.depth != settings.depth:
        given = f"values of depth {values.depth}" if values is not None else "none"
        raise GameloreError(
            f"expected feature values of depth {settings.depth} for a transfer learner, got {given}; learn them "
            "in a source game, or set control to terminal"
        )
    if settings.control == "shuffled":
        values = values.shuffled(*run)
    return _transfer_group(initial, graph, role, settings, values)


def _lookahead_group(initial: InitialValues, graph: PositionGraph, role: int, settings: LearnerSettings) -> int:
    depth, heuristic, default = how = (settings.depth, settings.heuristic, settings.default)
    space = initial.space(LookaheadSpace(graph, role, *how), how, f"{heuristic} of depth {depth}")
    looked = initial.spaces[space].used
    assert isinstance(looked, LookaheadSpace)

    def worth(number: int) -> float:
        return looked.value(number) if number >= FIRST_SET else _reward(number, default)

    return initial.group(space, (), worth)


def _oracle_group(
    initial: InitialValues,
    graph: PositionGraph,
    role: int,
    settings: LearnerSettings,
    opponent: OpponentSettings | None,
) -> int:
    if opponent is None:
        raise GameloreError(
            "expected the opponent of an oracle (egreedy, random or weak, with its options), got none; name the "
            "opponent, for example opponent=weak:filler=random"
        )
    if settings.symmetry == "all" and not opponent.is_symmetric:
        raise GameloreError(
            'expected an opponent with filler=random for an oracle with symmetry "all", got filler='
            f"{opponent.filler}, which does not move alike in positions that are equal by symmetry; choose "
            'symmetry "none", or filler=random'
        )
    epsilon = 0.0 if settings.control == "optimal" else settings.epsilon
    table = graph.memo(best_response, role, opponent.effective(), epsilon)
    exact = initial.valuation(ExactValues, ExactValues, "exact values")
    return initial.valued_group(ExactValues, table, lambda: exact.add(table))


def best_response(graph: PositionGraph, role: int, opponent: OpponentSettings, epsilon: float) -> BestResponse:
    """Return the exact values against an opponent; for `PositionGraph.memo`.

    They are computed here and not when the first of them is asked for, which may be against the clock of a move.
    """
    table = BestResponse(graph, role, Opponent(opponent), epsilon)
    table.solve()
    return table


def _transfer_group(
    initial: InitialValues, graph: PositionGraph, role: int, settings: LearnerSettings, values: FeatureValues
) -> int:
    outcomes = graph.game.goal_values[role]
    equivalence = Equivalence.default(outcomes, values.outcomes)
    if settings.equivalence is not None:
        equivalence = Equivalence.given(dict(settings.equivalence), outcomes)
    features = feature_space(graph, role, settings.depth, equivalence)
    translated = {text: equivalence.back(value) for text, (value, _) in values.items()}
    if settings.turns:
        if settings.control == "replies":
            features, translated = feature_space(graph, role, 0), {}
        return _deep_group(initial, settings, features, translated, values.replies)
    default, sees_end = settings.default, settings.control != "features"

    def worth(number: int) -> float:
        if number < FIRST_SET:
            return _reward(number, default) if sees_end else default
        return translated.get(features.feature(number) or "", default)

    space = _feature_space(initial, features)
    return initial.group(space, (default, sees_end, tuple(translated.items())), worth)


def _deep_group(
    initial: InitialValues,
    settings: LearnerSettings,
    features: FeatureSpace,
    translated: Mapping[str, float],
    replies: Replies,
) -> int:
    model, turns = settings.needs_replies, settings.turns
    if model and not replies:
        raise GameloreError(
            f"expected the opponents' replies in the source of a learner with turns={turns}, got none (only `gamelore "
            "learn` counts them, and older versions did not); learn the source again, or set control to minimax"
        )
    key = DeepFeatures, turns, features, model
    label = f"features of depth {features.depth}, {turns} turns below"
    deep = initial.valuation(lambda: DeepFeatures(initial.graph, features.role, turns, features, model), key, label)

    def number() -> int:
        weights = fit(replies) if model else np.ones(NUM_CLASSES)
        return deep.add(translated, settings.default, settings.epsilon, weights)

    learned = tuple(translated.items()), tuple(replies.items()) if model else ()
    return initial.valued_group(key, (settings.default, settings.epsilon, learned), number)


def _feature_space(initial: InitialValues, space: FeatureSpace) -> int:
    depth = space.depth
    return initial.space(space, space, f"features of depth {depth}" if depth else "terminal check")


def _reward(number: int, default: float) -> float:
    """Return the reward of a class of terminal afterstates. Return the default for any other class."""
    return float(number - 1) if 0 < number < FIRST_SET else default
