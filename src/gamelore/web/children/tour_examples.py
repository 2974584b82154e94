"""The child process behind the tour: examples, learners and small experiments, computed when a visitor asks for them.

All of them are in three shipped games: tic-tac-toe teaches, Connect3 is the game that is learned after it, and lose
tic-tac-toe teaches what does not help. The visitor has the first role, as the learners have. Random numbers come from
the numbers in the requests, so that an answer is the same in every process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from time import perf_counter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...api.memory import LearnedMoves
from ...drawing.board import Boards, Place, extent
from ...drawing.position import MARGIN, NARROWEST, SIDE, Mark, state_svg, svg
from ...drawing.thought import MoveThought, move_marks, telling, thought_signs
from ...errors import GameloreError, one_of
from ...game.game import Game, Position, make
from ...gdl.limits import Limits
from ...gdl.lint import refuse
from ...gdl.syntax import parse
from ...lab.feature_trees import feature_svg, feature_words
from ...lab.stats import Interval, Window, mean_interval, paired
from ...learning.store.features import FeatureValues, Tree, combine
from ...learning.store.features import parse as parse_feature
from ...learning.td.afterstates import Afterstates, Representatives, own_afterstates
from ...learning.td.discovery import FeatureSpace, feature_space, reachable_features
from ...learning.td.initial_values import LearnerSettings
from ...learning.td.series import Series, extract, play_series
from ...matches.opponents import Kind, OpponentSettings
from ...net.requests import answer_requests, limits_within, processor_time
from ...players.position_graph import PositionGraph
from ...players.random_streams import stream
from ...rulesheets import load
from .learning_run import points
from .rule_worker import Plies

TEACHER, PUPIL, UNLIKE = "tictactoe", "connect3", "losetictactoe"
ROLE = 0  # of the visitor, and of all learners
CAREFUL: Final = "egreedy"
WEAK: Final = "weak"
RUNS, MOST_RUNS = 40, 400  # independent learners of each kind
SOURCE_MATCHES = 100
RECENT = 20  # matches of which a mean is shown
MOST_LEARNED = 1000  # matches of the single learner
ILLUSTRATED = 400  # random matches in which an example of each feature is looked for
CENSUS_MATCHES = 200  # random matches in which the features of the pupil are counted
TEACHER_PLIES, PUPIL_PLIES = 4, (8, 10, 12)  # of examples: so many that the tree fits on a page
MOST_TRIED = 500  # random matches in which an example is looked for
SPREAD = 7919  # a prime number: neighbouring examples are not alike
SEED = 2007
FIRST_MATCHES: Window = (1, 30)  # in which learners are compared: there, knowledge can help most
QUIZ = 3  # pairs of features
MOST_POINTS = 60  # of the curve of the single learner
MOST_KEPT = 500  # values in memory

Cached = TypeVar("Cached")
_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
ExperimentName: TypeAlias = Literal["unlike", "changed"]


class Explored:
    """A game with its positions, and the features of the role of the visitor.

    Args:
        game: one of the games of the tour, in which one role moves at a time
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.plain = Boards(game.rulesheet, game.facts(game.initial))
        self.plain.boards = tuple(replace(board, labels=()) for board in self.plain.boards)
        self.graph = PositionGraph(game)
        self.role = game.roles[ROLE]

    @cached_property
    def space(self) -> FeatureSpace:
        """The features two plies below an afterstate."""
        return feature_space(self.graph, ROLE)

    @property
    def opponent(self) -> str:
        """The name of the other role."""
        return self.game.roles[1 - ROLE]

    def position(self, plies: Plies) -> Position:
        """Return the position after joint moves. Raise IllegalMoveError for an illegal one."""
        position = self.game.start()
        for joint in plies:
            position = position.play(list(joint))
        return position

    def joint(self, position: Position, move: str) -> list[str]:
        """Return the joint move in which the visitor's role makes a move."""
        return [move if role == self.role else legal[0] for role, legal in position.legal.items()]

    def picture(self, after: Position, before: Position | None = None, joint: Sequence[str] = ()) -> str:
        """Draw a small board, with a ring around what a joint move has changed."""
        return self.drawn(after, list(move_marks(self.plain, before, after, joint)) if before is not None else [])

    def drawn(self, position: Position, marks: Sequence[Mark], heat: Mapping[Place, float] | None = None) -> str:
        """Draw the boards of a position without labels, and without room for other facts."""
        facts = [fact for fact in position.facts if self.plain.place_of(fact)]
        picture = state_svg(self.plain, facts, self.game.roles, marks, heat=heat)
        width, height = map(float, _SIZE.search(picture).groups())  # type: ignore[union-attr]
        blank = max(0.0, NARROWEST - max(x for x, _ in extent(self.plain.boards))) * SIDE
        return svg((width - blank, height - MARGIN), [picture])

    def end(self, position: Position) -> str | None:
        """Return how a match ended for the visitor's role: L, D or W, or the goal; None if it goes on."""
        if not position.is_terminal:
            return None
        goal = position.goals[self.role] or 0
        return {0: "L", 50: "D", 100: "W"}.get(goal, str(goal))

    def features(self, position: Position) -> list[str | None]:
        """Return the feature of the afterstate of each legal move; None if it has none."""
        return [self.space.feature(int(number)) for number in self.space.ids(self._afterstates(position))]

    def rows(self, positions: Sequence[Position]) -> Afterstates:
        """Return the numbers of positions in the graph, int32[n]."""
        return self.graph.intern(np.array([self.game.state_of(position) for position in positions], np.uint64))

    def _afterstates(self, position: Position) -> Afterstates:
        graph, row = self.graph, self.rows([position])
        graph.expand(row)
        return own_afterstates(row, ROLE, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)

    def is_turn(self, position: Position) -> bool:
        """Return whether the visitor's role has a choice."""
        return not position.is_terminal and len(position.legal[self.role]) > 1

    def random_match(self, random: Random) -> Iterator[tuple[list[list[str]], Position]]:
        """Yield the joint moves so far and the position, for each position of a random match that is not terminal."""
        plies, position = list[list[str]](), self.game.start()
        while not position.is_terminal:
            yield list(plies), position
            plies.append([random.choice(legal) for legal in position.legal.values()])
            position = position.play(plies[-1])


def followers(position: Position) -> Iterator[tuple[list[str], Position]]:
    """Yield the joint moves of a position in which one role chooses, each with the position after it."""
    mover = max(position.legal, key=lambda role: len(position.legal[role]))
    for move in position.legal[mover]:
        joint = [move if role == mover else legal[0] for role, legal in position.legal.items()]
        yield joint, position.play(joint)


def loses_at_once(tree: Tree) -> bool:
    """Return whether some reply of the opponent is a loss for the role."""
    return isinstance(tree, tuple) and 0 in tree


def is_telling(features: Sequence[str | None]) -> bool:
    """Return whether the moves of a position show what features are.

    Two moves have the same feature, others have others; after some moves the opponent can win at once.
    """
    texts = [feature for feature in features if feature]
    losing = [loses_at_once(parse_feature(text)) for text in texts]
    return len(texts) == len(features) and 3 <= len(set(texts)) < len(texts) and any(losing) and not all(losing)


# ---- experiments ------------------------------------------------------------------------------------------------


class TeacherGame(NamedTuple):
    """What a learner begins with: the values learned in a game against a kind of opponent; no game, no values.

    name  how its curve is called
    """

    name: str
    game: str = ""
    opponent: Kind = CAREFUL


@dataclass(frozen=True)
class TourExperiment:
    """Learners of one game against the careful opponent: a beginner, and the pupils of several teachers."""

    target: str
    matches: int
    teachers: tuple[TeacherGame, ...]


EXPERIMENTS: Mapping[str, TourExperiment] = {
    "unlike": TourExperiment(
        PUPIL,
        150,
        (TeacherGame("tic-tac-toe", TEACHER), TeacherGame("lose tic-tac-toe", UNLIKE), TeacherGame("nobody")),
    ),
    "changed": TourExperiment(
        TEACHER, 150, (TeacherGame("careful opponent", TEACHER), TeacherGame("weak opponent", TEACHER, WEAK))
    ),
}


def opponents(kind: Kind, seed: int, runs: int = RUNS) -> list[OpponentSettings]:
    """Return the opponent of each run. It has a habit: in the same position, it always makes the same move."""
    return [OpponentSettings(kind, "hashed", hash_key=int(stream(seed, run, "order"))) for run in range(runs)]


def series(
    explored: Explored,
    settings: LearnerSettings,
    against: Sequence[OpponentSettings],
    matches: int,
    key: tuple[int, str],
    values: Sequence[FeatureValues] | None = None,
) -> Series:
    """Play a series of matches with one learner for each opponent. `key`: seed and stage of its random numbers."""
    lanes, (seed, stage) = range(len(against)), key
    seeds = [(seed, run, stage) for run in lanes]
    return play_series(
        explored.game, ROLE, [settings for _ in lanes], values, against, matches, seeds, graph=explored.graph
    )


def curve(name: str, game: str, rewards: NDArray[np.float32], *, is_taught: bool) -> dict[str, Any]:
    """Return a curve as `learning_run.LearningRun.progress` does."""
    runs, matches = rewards.shape
    return {
        "id": name,
        "learner": "transfer" if is_taught else "baseline",
        "game": game,
        "source": name if is_taught else None,
        "runs": runs,
        "done": matches,
        "matches": matches,
        "points": points(rewards),
    }


def interval(of: Interval) -> dict[str, float]:
    """Return an interval as JSON values, in points with one decimal."""
    return {"mean": round(of.mean, 1), "low": round(of.low, 1), "high": round(of.high, 1)}


# ---- requests ---------------------------------------------------------------------------------------------------


class TourWorker:
    """The requests of the tour. Their arguments and results are values that JSON can hold; pictures are SVG.

    Args:
        memory: bytes for the process
        prepare_seconds: processor time to load a game
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits: Limits = limits_within(memory, prepare_seconds)
        self._seconds = prepare_seconds
        self._games: dict[str, Explored] = {}
        self._kept: dict[tuple[Any, ...], Any] = {}  # the oldest value first

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    # ---- rules, and afterstates -------------------------------------------------------------------------------------

    def drawn(self, rules: str, wishes: Sequence[str]) -> dict[str, Any]:
        """Draw a game after some moves.

        Args:
            rules: text of the rules
            wishes: moves, one for each ply; a role whose move is not legal makes its first move

        Returns:
            `svg`, `first` (the role that chooses first), `num_moves` (its number of moves at the start), and
            `num_cells` (places of the first board).

        Raises:
            GameloreError: the text is no rulesheet.
        """
        return self._once(("drawn", rules, *wishes), lambda: self._draw(rules, wishes))

    def _draw(self, rules: str, wishes: Sequence[str]) -> dict[str, Any]:
        with processor_time(self._seconds):
            sheet = parse(rules)
            refuse(sheet)
            explored = Explored(make(sheet, "rules", limits=self._limits))
        start = explored.game.start()
        first = max(start.legal, key=lambda role: len(start.legal[role]))
        here, before, joint = start, None, list[str]()
        for wish in wishes:
            before, joint = here, [wish if wish in legal else legal[0] for legal in here.legal.values()]
            here = here.play(joint)
        return {
            "svg": explored.picture(here, before, joint),
            "first": first,
            "num_moves": len(start.legal[first]),
            "num_cells": len(explored.plain.boards[0].spots) if explored.plain.boards else 0,
        }

    def compare(self, left: Plies, right: Plies) -> dict[str, bool]:
        """Return whether two lines of play lead to the same board (`is_same`), or to the same when turned or mirrored
        (`is_turned`).
        """
        teacher = self._explored(TEACHER)
        rows = teacher.rows([teacher.position(left), teacher.position(right)])
        first, second = teacher.graph.memo(Representatives).of(ROLE, rows)
        is_same = bool(rows[0] == rows[1])
        return {"is_same": is_same, "is_turned": bool(first == second) and not is_same}

    def orders(self, plies: int) -> dict[str, int]:
        """Return the numbers of `lines` of play with so many plies, of `boards` after them, and of all `matches`."""
        return self._once(("orders", plies), lambda: self._count_orders(plies))

    def _count_orders(self, plies: int) -> dict[str, int]:
        """Count the ways to each position of tic-tac-toe, ply by ply."""
        graph = self._explored(TEACHER).graph
        ways, matches, levels = Counter({graph.start: 1}), 0, list[Counter[int]]()
        while ways:
            rows = np.array(sorted(ways), np.int32)
            graph.expand(rows)
            matches += sum(ways.pop(row) for row in rows[graph.terminal[rows]].tolist())
            ways = _one_ply_on(graph, ways)
            levels.append(ways)
        told = levels[plies - 1]
        return {"lines": sum(told.values()), "boards": len(told), "matches": matches}

    # ---- a learner ----------------------------------------------------------------------------------------------

    def learned(self, seed: int, matches: int) -> dict[str, Any]:
        """Let one learner play tic-tac-toe from the beginning, and return what it thinks about its first moves then.

        Args:
            seed: seed of its random numbers
            matches: number of matches, at most MOST_LEARNED

        Returns:
            `svg` (the empty board with values and visits), `first` and `last` (mean reward of the first and the last
            RECENT matches, None for no match), `last_ends` (wins, draws and losses in the last RECENT matches), and
            `points` (a list of match and mean reward of the RECENT matches up to it).
        """
        if not 0 <= matches <= MOST_LEARNED:
            raise GameloreError(f"expected 0 to {MOST_LEARNED} matches, got {matches}; choose fewer")
        return self._once(("learned", seed, matches), lambda: self._learn(seed, matches))

    def _learn(self, seed: int, matches: int) -> dict[str, Any]:
        teacher, settings = self._explored(TEACHER), LearnerSettings("baseline", initialisation="eager")
        against = [OpponentSettings(CAREFUL, "hashed", hash_key=int(stream(seed, 0, "order")))]
        played = series(teacher, settings, against, matches, (seed, "tour"))
        rewards = played.rewards[0].astype(float)
        recent = rewards[-RECENT:]
        return {
            "svg": _values_picture(teacher, played),
            "first": float(rewards[:RECENT].mean()) if matches else None,
            "last": float(recent.mean()) if matches else None,
            "last_ends": [int((recent == goal).sum()) for goal in (100, 50, 0)],
            "points": [
                [match, round(float(rewards[max(0, match - RECENT) : match].mean()), 1)] for match in _steps(matches)
            ],
        }

    # ---- trees and features -------------------------------------------------------------------------------------

    def example(self, number: int) -> dict[str, Any]:
        """Return a position of tic-tac-toe whose moves show what features are.

        Returns:
            `plies`, and `features` (for each legal move of the first role, in order).
        """
        examples = self._once(("telling",), self._telling)
        plies, features = examples[number * SPREAD % len(examples)]
        return {"plies": plies, "features": features}

    def _telling(self) -> list[tuple[list[list[str]], list[str | None]]]:
        """Return all positions that `is_telling`, each reached in one way."""
        teacher = self._explored(TEACHER)
        ways: dict[frozenset[str], tuple[list[list[str]], Position]] = {}
        ways[teacher.game.start().facts] = [], teacher.game.start()
        for _ in range(TEACHER_PLIES):
            further = (([*plies, joint], after) for plies, here in ways.values() for joint, after in followers(here))
            ways = {after.facts: (plies, after) for plies, after in further if not after.is_terminal}
        rated = ((plies, teacher.features(position)) for plies, position in ways.values())
        return sorted((plies, features) for plies, features in rated if is_telling(features))

    def tree(self, game: str, plies: Plies, move: str) -> dict[str, Any]:
        """Return the afterstate of a move, what the opponent can reply, and what can be answered.

        Returns:
            `svg`, `end` (see `Explored.end`), `replies`: each with `move`, `svg`, `end`, and `answers` with the same;
            and the feature of the afterstate, see `_feature`.
        """
        explored = self._explored(one_of(game, (TEACHER, PUPIL), "a game of the tour"))
        before = explored.position(plies)
        joint = explored.joint(before, move)
        after = before.play(joint)
        index = before.legal[explored.role].index(move)
        replies = [
            self._drawn_move(explored, after, *reply)
            | {"answers": [self._drawn_move(explored, reply[1], *answer) for answer in _further(reply[1])]}
            for reply in _further(after)
        ]
        feature = self._feature(explored.features(before)[index], explored)
        return self._drawn_move(explored, before, joint, after) | {"replies": replies} | feature

    def _drawn_move(self, explored: Explored, before: Position, joint: list[str], after: Position) -> dict[str, Any]:
        return {
            "move": " ".join(telling(joint)),
            "svg": explored.picture(after, before, joint),
            "end": explored.end(after),
        }

    def _feature(self, text: str | None, explored: Explored) -> dict[str, Any]:
        """Return a feature as `feature` (its text or None), `tree` (a picture) and `words`."""
        if text is None:
            return {"feature": None, "tree": "", "words": ""}
        return {
            "feature": text,
            "tree": feature_svg(text),
            "words": feature_words(text, explored.role, explored.opponent),
        }

    def census(self) -> dict[str, int]:
        """Return the numbers of `afterstates` of tic-tac-toe, of those `with_feature`, and of different `features`."""

        def count() -> dict[str, int]:
            teacher = self._explored(TEACHER)
            counted = reachable_features(teacher.game, ROLE, graph=teacher.graph)
            numbers = {"afterstates": counted.num_afterstates, "features": len(counted.features)}
            return numbers | {"with_feature": sum(counted.features.values())}

        return self._once(("census",), count)

    # ---- values of features -------------------------------------------------------------------------------------

    def taught(self) -> dict[str, Any]:
        """Return the features of tic-tac-toe with the values that RUNS learners learned, and pairs to compare.

        Returns:
            `rows` (the highest value first): each with `feature`, `tree`, `words`, `value`, `visits`, and `board` (a
            picture of an afterstate with the feature, or empty); `pairs` (numbers of two rows); `runs`, `matches` (of
            each learner) and `seconds`.
        """
        return self._once(("taught",), self._teach)

    def _teach(self) -> dict[str, Any]:
        begin = perf_counter()
        teacher, values = self._explored(TEACHER), combine(self._learn_values(TeacherGame("", TEACHER), SEED, RUNS))
        seconds = perf_counter() - begin
        boards = self._once(("boards",), self._illustrate)
        rows = [
            self._feature(text, teacher) | {"value": round(value, 1), "visits": visits, "board": boards.get(text, "")}
            for text, (value, visits) in sorted(values.items(), key=lambda item: -item[1][0])
        ]
        return {
            "rows": rows,
            "pairs": _pairs([row["value"] for row in rows]),
            "runs": RUNS,
            "matches": SOURCE_MATCHES,
            "seconds": seconds,
        }

    def _illustrate(self) -> dict[str, str]:
        """Return a picture of an afterstate with each feature, as far as random matches have met it."""
        teacher, random, boards = self._explored(TEACHER), Random(SEED), dict[str, str]()
        for _ in range(ILLUSTRATED):
            if len(boards) == self.census()["features"]:
                break
            for _, before in teacher.random_match(random):
                if not teacher.is_turn(before):
                    continue
                for move, feature in zip(before.legal[teacher.role], teacher.features(before), strict=True):
                    if feature and feature not in boards:
                        joint = teacher.joint(before, move)
                        boards[feature] = teacher.picture(before.play(joint), before, joint)
        return boards

    def _values(self, teacher: TeacherGame, seed: int, runs: int = RUNS) -> list[FeatureValues]:
        """Return the feature values that each run has learned in the game of a teacher."""
        key = ("values", teacher.game, teacher.opponent, seed, runs)
        return self._once(key, lambda: self._learn_values(teacher, seed, runs))

    def _learn_values(self, teacher: TeacherGame, seed: int, runs: int) -> list[FeatureValues]:
        """Let learners play the game of a teacher with random moves, and return their feature values."""
        settings = LearnerSettings("baseline", initialisation="eager", epsilon=1.0)
        against = opponents(teacher.opponent, seed, runs)
        played = series(self._explored(teacher.game), settings, against, SOURCE_MATCHES, (seed, "source"))
        return [extract(played, run) for run in range(runs)]

    # ---- another game -------------------------------------------------------------------------------------------

    def pupil_example(self, number: int) -> dict[str, Any]:
        """Return a position of Connect3 in which some move has a feature of tic-tac-toe.

        Returns:
            `plies`, `features` (of the legal moves), and the `row` of `taught` of the feature that is looked for.
        """
        return self._once(("pupil", number), lambda: self._find_pupil_example(number))

    def _find_pupil_example(self, number: int) -> dict[str, Any]:
        pupil, random = self._explored(PUPIL), Random(SPREAD * number)
        rows = {row["feature"]: row for row in self.taught()["rows"] if row["board"]}
        for _ in range(MOST_TRIED):
            for plies, position in pupil.random_match(random):
                if len(plies) not in PUPIL_PLIES or not pupil.is_turn(position):
                    continue
                features = pupil.features(position)
                fitting = [feature for feature in features if feature in rows and features.count(feature) <= 2]
                if fitting and len(set(filter(None, features))) >= 3:
                    return {"plies": plies, "features": features, "row": rows[random.choice(fitting)]}
        raise GameloreError(f"expected a position with a feature of {TEACHER}, got none; choose another example")

    def shared(self, game: str) -> dict[str, int]:
        """Return how far the features of a game fit Connect3.

        Returns:
            `features` (of the game), `met` (different features in random matches of Connect3), `known` (those of them
            that the game has), `afterstates` (with a feature, in these matches) and `fitting` (with a known one).
        """

        def count() -> dict[str, int]:
            own = set(combine(self._values(TeacherGame("", one_of(game, (TEACHER, UNLIKE), "a teacher")), SEED)))
            pupil = self._explored(PUPIL)
            met = reachable_features(pupil.game, ROLE, limit=1, num_matches=CENSUS_MATCHES, seed=SEED).features
            known = [feature for feature in met if feature in own]
            return {
                "features": len(own),
                "met": len(met),
                "known": len(known),
                "afterstates": sum(met.values()),
                "fitting": sum(met[feature] for feature in known),
            }

        return self._once(("shared", game), count)

    # ---- experiments --------------------------------------------------------------------------------------------

    def experiment(self, name: ExperimentName, seed: int, runs: int = RUNS) -> dict[str, Any]:
        """Let a beginner and the pupils of some teachers learn, and compare them.

        Args:
            name: which experiment
            seed: seed of all random numbers
            runs: number of learners of each kind, at most MOST_RUNS

        Returns:
            `curves`, as `LearningRun.progress` has them; `gains`: for each pupil `name`, and the mean difference to the
            beginner in the first matches, `mean`, `low` and `high` (95 % interval); `window` (these matches), `runs`,
            `matches`, and `seconds`.
        """
        plan = EXPERIMENTS[one_of(name, EXPERIMENTS, "an experiment")]
        if not 1 <= runs <= MOST_RUNS:
            raise GameloreError(f"expected 1 to {MOST_RUNS} runs, got {runs}; choose fewer")
        return self._once(("experiment", name, seed, runs), lambda: self._compare_learners(plan, seed, runs))

    def _compare_learners(self, plan: TourExperiment, seed: int, runs: int) -> dict[str, Any]:
        begin, target = perf_counter(), self._explored(plan.target)
        alone = series(target, _BEGINNER, opponents(CAREFUL, seed, runs), plan.matches, (seed, "target")).rewards
        taught = {teacher.name: self._pupil(plan, teacher, seed, runs) for teacher in plan.teachers}
        curves = [curve("beginner", plan.target, alone, is_taught=False)]
        curves += [curve(name, plan.target, rewards, is_taught=True) for name, rewards in taught.items()]
        gains = [
            {"name": name} | interval(mean_interval(paired(rewards, alone, FIRST_MATCHES)))
            for name, rewards in taught.items()
        ]
        return {
            "curves": curves,
            "gains": gains,
            "window": list(FIRST_MATCHES),
            "runs": runs,
            "matches": plan.matches,
            "seconds": perf_counter() - begin,
        }

    def _pupil(self, plan: TourExperiment, teacher: TeacherGame, seed: int, runs: int) -> NDArray[np.float32]:
        """Return the rewards of learners that begin with the values of a teacher, float32[runs, matches]."""
        settings = _PUPIL if teacher.game else replace(_PUPIL, control="terminal")
        values = self._values(teacher, seed, runs) if teacher.game else None
        against = opponents(CAREFUL, seed, runs)
        return series(self._explored(plan.target), settings, against, plan.matches, (seed, "target"), values).rewards

    def opponents_compared(self) -> list[dict[str, Any]]:
        """Return the features of tic-tac-toe with their values against both opponents, the largest difference first.

        Each has `feature`, `tree`, `words`, `careful` and `weak`.
        """

        def compare() -> list[dict[str, Any]]:
            careful, weak = (combine(self._values(TeacherGame("", TEACHER, kind), SEED)) for kind in (CAREFUL, WEAK))
            both = sorted(set(careful) & set(weak), key=lambda text: careful[text][0] - weak[text][0])
            return [
                self._feature(text, self._explored(TEACHER))
                | {"careful": round(careful[text][0], 1), "weak": round(weak[text][0], 1)}
                for text in both
            ]

        return self._once(("opponents",), compare)

    # ---- what is kept -------------------------------------------------------------------------------------------

    def _explored(self, name: str) -> Explored:
        if name not in self._games:
            self._games[name] = Explored(load(name, limits=self._limits))
        return self._games[name]

    def _once(self, key: tuple[Any, ...], compute: Callable[[], Cached]) -> Cached:
        """Return a value that was computed before, or compute it."""
        if key not in self._kept:
            self._kept[key] = compute()
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]  # type: ignore[no-any-return]


_BEGINNER = LearnerSettings("baseline", initialisation="eager")
_PUPIL = LearnerSettings("transfer", initialisation="eager")


def _one_ply_on(graph: PositionGraph, ways: Mapping[int, int]) -> Counter[int]:
    """Return the number of ways to each position one ply later. The positions are expanded."""
    further = Counter[int]()
    for row, number in ways.items():
        first = int(graph.succ_start[row])
        for after in graph.successors[first : first + int(graph.num_joint[row])].tolist():
            further[after] += number
    return further


def _values_picture(explored: Explored, played: Series) -> str:
    """Draw the start of a game with the values that a learner has learned for its moves."""
    start = explored.game.start()
    row = explored.rows([start])
    explored.graph.list_moves(row)
    _, q, visits = played.learner.estimates(0, row)
    moves = [
        MoveThought(index, move, int(number), float(value), 0, 100, None, False)
        for index, (move, value, number) in enumerate(zip(start.legal[explored.role], q, visits, strict=True))
    ]
    moves.sort(key=lambda move: -(move.mean or 0.0))
    thought = LearnedMoves(start, {explored.role: moves}, (), int(visits.sum()), 0.0, 0, False)
    return explored.drawn(start, *thought_signs(explored.plain, thought))


def _steps(matches: int) -> list[int]:
    """Return the numbers of matches at which a curve has points."""
    return sorted({round(step) for step in np.linspace(1, matches, min(matches, MOST_POINTS))}) if matches else []


def _pairs(values: Sequence[float]) -> list[tuple[int, int]]:
    """Return pairs of rows to compare, the easiest first; the one with the higher value is first or second by turns."""
    half = len(values) // 2
    pairs = [(i, half + i) for i in range(0, half, max(1, half // QUIZ))][:QUIZ]
    return [pair if number % 2 else pair[::-1] for number, pair in enumerate(pairs)]


def _further(position: Position) -> list[tuple[list[str], Position]]:
    """Return the joint moves with the positions after them; none at the end of a match."""
    return [] if position.is_terminal else list(followers(position))


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(TourWorker)


if __name__ == "__main__":
    main()
