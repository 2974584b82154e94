"""Opponents of both papers; functions that read player options such as "name:option=value,option=value".

The opponents of Banerjee & Stone (2007, section 4) are egreedy, random and weak. The opponents of Lock & Epstein (2004)
are the reasonable player, and mixtures of the reasonable and the perfect player, such as the expert and the novice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, check_word, one_of
from ..players.kernel import F64, I8, I32, I64, U64, Boolx2, I8x2, I32x2, I64x2, Int8, inlined, kernel
from ..players.lookahead import MoveClasses
from ..players.player import Player, Started, Turn
from ..players.preferences import most_wanted, nth_wanted
from ..players.random_streams import EXPLORE, WHICH, below, mix, uniform, unit
from ..solver.perfect import Best, Choice, Graded, Grades, Perfect, SolvedMoves

if TYPE_CHECKING:
    from ..players.position_graph import PositionGraph

Kind = Literal["egreedy", "random", "weak"]
Filler = Literal["random", "first", "hashed"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_FILLERS: tuple[Filler, ...] = get_args(Filler)


_EGREEDY, _RANDOM = np.int8(0), np.int8(1)
_FILL_RANDOM, _FILL_FIRST = np.int8(0), np.int8(1)
_EXPLORE, _WHICH = np.uint64(EXPLORE), np.uint64(WHICH)

# preference of each kind for the classes WIN, LOSS, GIVES, NEUTRAL of moves; the kind random has no preferences
_WANTS = np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 3, 2, 1]], np.int8)


@dataclass(frozen=True, slots=True)
class OpponentSettings:
    """Settings of an opponent of Banerjee & Stone.

    kind      "egreedy", "random" or "weak", see `Opponent`
    filler    choice among equally good moves, which the paper does not specify (readings.md, B&S 2): "random" makes a
              new random choice each time. "first" takes the first move in action order. "hashed" makes a pseudo-random
              choice that is always the same in the same position.
    epsilon   probability of a random move
    hash_key  key of the pseudo-random choices for "hashed"

    The kind "random" always makes a random choice among all moves. It ignores the other settings.
    """

    kind: Kind = "egreedy"
    filler: Filler = "random"
    epsilon: float = 0.01
    hash_key: int = 0

    def __post_init__(self) -> None:
        check_word("kind", self.kind, _KINDS)
        check_word("filler", self.filler, _FILLERS)
        if not 0.0 <= self.epsilon <= 1.0:
            raise GameloreError(f"expected an epsilon from 0 to 1, got {self.epsilon}; epsilon is a probability")

    def effective(self) -> OpponentSettings:
        """Return the settings with defaults in place of those that have no effect."""
        if self.kind == "random":
            return OpponentSettings("random")
        return self if self.filler == "hashed" else replace(self, hash_key=0)

    @property
    def is_symmetric(self) -> bool:
        """Whether equal moves of positions that are equal by symmetry have equal probabilities."""
        return self.kind == "random" or self.filler == "random"


class OpponentArrays(NamedTuple):
    """Classes of moves (`MoveClasses`), the settings of each lane, and the preferences of each kind; for kernels."""

    is_classified: Boolx2
    classes: I8
    kinds: I8
    fillers: I8
    epsilons: F64
    hash_keys: U64
    wants: I8x2


class Opponent(Player):
    """Player of the kind egreedy, random or weak, with one settings object for each lane or for all lanes.

    egreedy  chooses a winning move. If there is none, it chooses a move that is not known to lose. If there is none
             either, it chooses any move.
    weak     chooses a losing move. If there is none, it chooses a move after which the other roles can make the weak
             player lose at once. If there is none either, it avoids winning moves if it can.
    random   chooses any move.

    With probability epsilon, egreedy and weak choose a uniformly random move instead. For the classes of moves see
    `MoveClasses` and readings.md, B&S 4.
    """

    def __init__(self, settings: OpponentSettings | Sequence[OpponentSettings]) -> None:
        lanes = [settings] if isinstance(settings, OpponentSettings) else list(settings)
        if not lanes:
            raise GameloreError("expected settings for at least one lane, got none")
        self.settings = tuple(lanes)
        self._kinds = np.array([_KINDS.index(lane.kind) for lane in lanes], np.int8)
        self._fillers = np.array([_FILLERS.index(lane.filler) for lane in lanes], np.int8)
        self._epsilons = np.array([lane.epsilon for lane in lanes])
        self._hash_keys = np.array([lane.hash_key & 0xFFFFFFFFFFFFFFFF for lane in lanes], np.uint64)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`.

        When a role is in a position for the first time, the tree below the position is expanded, with as many plies as
        the game has roles.
        """
        classes = turn.graph.memo(MoveClasses)
        choices, unknown = self._try(turn, classes)
        if unknown.size:
            classes.classify(unknown, turn.role)
            choices, _ = self._try(turn, classes)
        return choices

    def arrays(self, classes: MoveClasses) -> OpponentArrays:
        """Return the settings and the present classes of moves, for kernels."""
        settings = self._kinds, self._fillers, self._epsilons, self._hash_keys, _WANTS
        return OpponentArrays(classes.is_classified, classes.classes, *settings)

    def begin(self, role: int, started: Started) -> None:
        """Raise GameloreError if a lane has no settings."""
        if len(self.settings) > 1 and started.lanes[-1] >= len(self.settings):
            raise GameloreError(
                f"expected settings for {started.lanes[-1] + 1} lanes, got {len(self.settings)}; give one setting for "
                "each lane, or a single setting for all lanes"
            )

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Memoryless`. If there are settings for several lanes, those of the first lane are used."""
        graph.list_moves(rows)
        classes, settings = graph.memo(MoveClasses), self.settings[0]
        if settings.kind != "random":
            classes.complete(rows[graph.num_moves[rows, role] > 1], role)
        moves = graph.num_moves, graph.move_start, graph.keys, classes.classes
        kind, filler, hash_key = self._kinds[0], self._fillers[0], self._hash_keys[0]
        return _share(rows, role, *moves, kind, filler, settings.epsilon, hash_key, _WANTS)

    def _try(self, turn: Turn, classes: MoveClasses) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return (choices, rows with unknown classes). The choices are valid only if all classes are known."""
        graph = turn.graph
        moves = graph.num_moves, graph.move_start, graph.keys
        arrays: tuple[NDArray[Any], ...] = self.arrays(classes)
        return _choose(turn.role, turn.lanes, turn.rows, turn.keys, turn.plies, *moves, *arrays)


@inlined
def _hashed(state_key: np.uint64, hash_key: np.uint64, count: int) -> int:
    """Return a number below `count` that is always the same in the same position; for use inside kernels."""
    return below(mix(state_key, hash_key), np.uint64(0), np.uint64(0), count)


@inlined
def choose_in_lane(
    role: int,
    lane: int,
    row: int,
    key: np.uint64,
    counter: int,
    num_moves: I32x2,
    move_start: I64x2,
    state_keys: U64,
    opponent: OpponentArrays,
) -> int:
    """Return the opponent's choice in one lane, or -1 if the classes of the moves are unknown.

    For use inside kernels.
    """
    ply, begin, moves = np.uint64(counter), move_start[row, role], int(num_moves[row, role])
    if opponent.kinds.size == 1:
        lane = 0
    kind = opponent.kinds[lane]
    if kind == _RANDOM or unit(key, ply, _EXPLORE) < opponent.epsilons[lane]:
        return below(key, ply, _WHICH, moves)
    if row >= opponent.is_classified.shape[0] or not opponent.is_classified[row, role]:
        return -1
    wants = opponent.wants[kind]
    best, count = most_wanted(begin, moves, opponent.classes, wants)
    which = 0
    if opponent.fillers[lane] == _FILL_RANDOM:
        which = below(key, ply, _WHICH, count)
    elif opponent.fillers[lane] != _FILL_FIRST:
        which = _hashed(state_keys[row], opponent.hash_keys[lane], count)
    return nth_wanted(begin, opponent.classes, wants, best, which)


@kernel
def _choose(
    role: int,
    lanes: I64,
    rows: I32,
    keys: U64,
    plies: I32,
    num_moves: I32x2,
    move_start: I64x2,
    state_keys: U64,
    is_classified: Boolx2,
    classes: I8,
    kinds: I8,
    fillers: I8,
    epsilons: F64,
    hash_keys: U64,
    wants: I8x2,
) -> tuple[I32, I32]:
    """See `Opponent._try`."""
    # put together here, because numba needs more time for a call with a tuple than for one with its arrays
    opponent = OpponentArrays(is_classified, classes, kinds, fillers, epsilons, hash_keys, wants)
    choices = np.empty(rows.size, np.int32)
    unknown = np.empty(rows.size, np.int32)
    num_unknown = 0
    for i in range(rows.size):
        choices[i] = choose_in_lane(
            role, lanes[i], rows[i], keys[i], plies[i], num_moves, move_start, state_keys, opponent
        )
        if choices[i] < 0:
            unknown[num_unknown] = rows[i]
            num_unknown += 1
    return choices, unknown[:num_unknown]


@kernel
def _share(
    rows: I32,
    role: int,
    num_moves: I32x2,
    move_start: I64x2,
    state_keys: U64,
    classes: I8,
    kind: Int8,
    filler: Int8,
    epsilon: float,
    hash_key: np.uint64,
    wants: I8x2,
) -> F64:
    """Return the probabilities of the role's moves, one row after the other; see `_choose`."""
    total = 0
    for row in rows:
        total += num_moves[row, role]
    shares = np.empty(total)
    at = 0
    for row in rows:
        moves, begin = int(num_moves[row, role]), move_start[row, role]
        own = shares[at : at + moves]
        at += moves
        own[:] = 1.0 / max(moves, 1)
        if kind == _RANDOM or moves <= 1:
            continue
        own[:] = epsilon / moves
        best, count = most_wanted(begin, moves, classes, wants[kind])
        if filler == _FILL_RANDOM:
            for move in range(moves):
                if wants[kind][classes[begin + move]] == best:
                    own[move] += (1.0 - epsilon) / count
        else:
            which = 0 if filler == _FILL_FIRST else _hashed(state_keys[row], hash_key, count)
            own[nth_wanted(begin, classes, wants[kind], best, which)] += 1.0 - epsilon
    return shares


Readers: TypeAlias = Mapping[str, Callable[[str], object]]
"""Options of a player: a mapping from names of options to functions that read their values."""


def options_of(kind: type, *fixed: str) -> Readers:
    """Return the parameters of a class as options, without those in `fixed`.

    The annotation of a parameter, or else its default value, gives the type of the option.
    """
    init = inspect.unwrap(kind.__init__)  # type: ignore[misc]
    parameters = list(inspect.signature(init).parameters.values())[1:]
    try:
        hints = get_type_hints(init)
    except Exception:  # annotations that only a type checker can resolve
        hints = {}
    named = (option for option in parameters if option.kind in (option.POSITIONAL_OR_KEYWORD, option.KEYWORD_ONLY))
    types = {option.name: hints.get(option.name, type(option.default)) for option in named}
    return {name: _reader(of) for name, of in types.items() if name not in fixed}


def _reader(kind: object) -> Callable[[str], object]:
    """Return the function that reads the text of an option of this type, such as `int` or `int | None`."""
    readers: dict[object, Callable[[str], object]] = {bool: yes_or_no, int: int, float: float, Path: Path}
    return next((readers[part] for part in (kind, *get_args(kind)) if part in readers), str)


def read_options(text: str, readers: Readers, name: str, spec: str) -> dict[str, object]:
    """Return the options of player `name` from a text such as "option=value,option=value".

    spec: the complete description of the player, for error messages

    Raise GameloreError for an unreadable value and for an unknown option. The error suggests the most similar name.
    """
    options: dict[str, object] = {}
    for part in filter(str.strip, text.split(",")):
        key, equals, value = map(str.strip, part.partition("="))
        if not equals:
            raise GameloreError(
                f"expected option=value, got {part!r} in {spec!r}; write name:option=value,option=value"
            )
        reader = readers[one_of(key, readers, f"an option of {name}")]
        try:
            options[key] = reader(value)
        except ValueError:
            raise GameloreError(f"expected a number for {key}, got {value!r} in {spec!r}; write {key}=1") from None
    return options


def yes_or_no(text: str) -> bool:
    """Read "yes" or "no" as a bool. Raise GameloreError for another word."""
    if text.lower() not in ("yes", "no"):
        raise GameloreError(f"expected yes or no, got {text!r}; write one of these")
    return text.lower() == "yes"


OPPONENT_OPTIONS = options_of(OpponentSettings, "kind")
"""Options of the opponents egreedy and weak. The opponent random has no options."""


def opponent_settings(spec: str) -> OpponentSettings:
    """Read an opponent of Banerjee & Stone, such as "weak:filler=first". Raise GameloreError for another text."""
    name, _, options = spec.partition(":")
    kind = next((kind for kind in get_args(Kind) if kind == name.strip()), None)
    if kind is None:
        raise GameloreError(f"expected an opponent (egreedy, random or weak), got {spec!r}; choose one of these")
    readers: Readers = {} if kind == "random" else OPPONENT_OPTIONS
    return OpponentSettings(kind, **read_options(options, readers, kind, spec))  # type: ignore[arg-type]


def opponent_text(opponent: OpponentSettings) -> str:
    """Return an opponent as canonical text, in the form that `opponent_settings` reads."""
    if opponent.kind == "random":
        return "random"
    key = f",hash_key={opponent.hash_key}" if opponent.filler == "hashed" else ""
    return f"{opponent.kind}:filler={opponent.filler},epsilon={float(opponent.epsilon)}{key}"


Own = Literal["ignore", "avoid"]
EXPERT, NOVICE = 10.0, 70.0  # percentage of reasonable moves of each player
_PERCENT = 100.0

# preferences for the classes WIN, LOSS, GIVES, NEUTRAL of moves
_REASONABLE_WANTS = {"ignore": np.array([2, 1, 0, 1], np.int8), "avoid": np.array([2, 0, 0, 1], np.int8)}


class Reasonable(Graded):
    """Player that makes a winning move, or avoids moves after which another role can make it lose at once.

    own       treatment of the player's own moves that lose at once (readings.md, L&E 5).
              "ignore": The player does not avoid them. This is the default interpretation of the paper. With it, the
              reasonable player plays lose tic-tac-toe at random.
              "avoid": The player avoids them too. It then plays like egreedy without exploration.
    choice    choice among equally good moves, see `Graded`
    hash_key  see `Graded`
    """

    def __init__(self, own: Own = "ignore", choice: Choice = "drawn", hash_key: int = 0) -> None:
        super().__init__(choice, hash_key)
        check_word("own", own, get_args(Own))
        self.own = own

    def grades(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        classes = graph.memo(MoveClasses)
        classes.complete(rows, role)
        return classes.classes, _REASONABLE_WANTS[self.own]


class _ReasonableBySolution(Reasonable):
    """A reasonable player in a solved game. It reads the classes of moves from the solution, and expands no replies."""

    def grades(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        solved = graph.memo(SolvedMoves)
        solved.look(rows)
        return solved.classes, _REASONABLE_WANTS[self.own]


class XReasonable(Player):
    """Player that makes each move like `Reasonable` with a probability of `x` per cent, else like `Perfect`.

    x         percentage of reasonable moves; the paper's expert has 10, and its novice has 70
    own       see `Reasonable`
    best      see `Perfect`
    choice    choice among equally good perfect moves, see `Graded`; a reasonable move is always drawn
    hash_key  see `Graded`

    Raise GameloreError if x is not from 0 to 100. When the first match begins, raise GameloreError if the game cannot
    be solved.
    """

    def __init__(
        self,
        x: float = EXPERT,
        own: Own = "ignore",
        best: Best = "fastest",
        choice: Choice = "drawn",
        hash_key: int = 0,
    ) -> None:
        if not 0.0 <= x <= _PERCENT:
            raise GameloreError(f"expected an x from 0 to 100, got {x}; x is the percentage of reasonable moves")
        self.x = x
        self.perfect = Perfect(best, choice, hash_key)
        self.reasonable = _ReasonableBySolution(own)

    def begin(self, role: int, started: Started) -> None:
        """See `Perfect.begin`."""
        self.perfect.begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        is_reasonable = _PERCENT * uniform(turn.keys, turn.plies, EXPLORE) < self.x
        choices = np.empty(len(turn.rows), np.int32)
        for player, part in ((self.reasonable, is_reasonable), (self.perfect, ~is_reasonable)):
            lanes, rows, keys, plies = turn.lanes[part], turn.rows[part], turn.keys[part], turn.plies[part]
            choices[part] = player.choose(replace(turn, lanes=lanes, rows=rows, keys=keys, plies=plies))
        return choices

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Graded.distribution`."""
        share = self.x / _PERCENT
        reasonable, perfect = (seat.distribution(graph, rows, role) for seat in (self.reasonable, self.perfect))
        return share * reasonable + (1.0 - share) * perfect
