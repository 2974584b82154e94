"""Lessons that searches give about a game: `study` teaches them, and `GameLesson` shows what was learned and tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import DamagedLessonError, GameloreError, check_seed, counted
from ..files import write_whole
from ..game.game import Game
from ..rulesheets import loaded
from .progress import Progress, displayed
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..learning.store.lesson_rows import Lessons, StoredLesson
    from ..learning.store.schema import GameRow
    from ..learning.store.taught_rows import GenerationRow, StoredValue
    from .memory import Knowledge

POINTS = 100
_MOST_WEIGHTS = 8  # facts of a role in the text of a lesson
_OF_SOLVER, _SOLVER_MEMORY = 0.1, 1 << 30  # of the time; bytes
_FIRST_LOOK = 1.0  # seconds until it is known whether a game may be small enough for the solver


@dataclass(frozen=True)
class AdviceTest:
    """What matches have said about a state of some advice.

    Attributes:
        advice: "lesson", "openings", or a parameter of the search, such as "exploration=0.25".
        state: number of the state: of a lesson, the number of generations that have ended, or 0 for the value of a
            variant of the game; of openings, how many times their number has doubled; of a parameter, 0, because its
            evidence is kept from state to state of the lesson.
        against: the player without the advice: "startclock=10" has learned for ten seconds, "without" is the same
            player without the advice.
        rounds: number of rounds of matches, with sides swapped.
        score: mean score in them, 0 to 100.
        verdict: "taken", "refused" or "open", for a startclock of this length.
        error: standard error of the score, in points.
    """

    advice: str
    state: int
    against: str
    rounds: int
    score: float
    verdict: str
    error: float


@dataclass(frozen=True)
class LessonSummary:
    """A lesson in a few numbers.

    Attributes:
        game: name of the game.
        rules_hash: hash of its rules.
        seconds: CPU seconds of teaching.
        generations: number of generations that have ended.
        determination: share of the results of searches that the value explains, 0 to 1.
        variant: name of the game whose lesson was the start; None for no such game.
        openings: number of positions in the book of openings.
        matches: number of matches over the network.
        taken_for: longest startclock, in seconds, for which a state of the lesson is used; 60 stands for all longer
            ones, too. None for no startclock.
        damage: what is wrong, if the lesson cannot be read; "" otherwise.
    """

    game: str
    rules_hash: str
    seconds: float
    generations: int
    determination: float
    variant: str | None
    openings: int
    matches: int
    taken_for: int | None
    damage: str = ""


@dataclass(frozen=True)
class GameLesson:
    """What was learned about a game from searches. `print` shows it as text, a notebook as a picture.

    Attributes:
        game: the game.
        seconds: CPU seconds of teaching.
        simulations: number of simulations of teaching, and of positions of self-play.
        determination: share of the results of searches that the linear value explains, 0 to 1; those in the variant if
            `has_own_value` is False.
        informed: share of the playouts that see wins in one ply; None if that has not been decided.
        weights: role -> fact -> what the fact adds to the value of a position after a move of this role, in points. If
            a network was taught, they are those of the linear value that is nearest to it.
        generations: the generations of teaching, each with its number, walks, seconds and determination, and whether it
            has taught a network (`is_network`), which then takes the place of the linear value in the search.
        tests: what matches have said about the states of the lesson and of the openings.
        num_openings: number of positions in the book of openings.
        variant: name of the game whose lesson was the start, and the score of the map from there, 0 to 1; None for no
            such game.
        opponents: role -> posterior of the opponent with this role in the last matches over the network: the
            probability of each known player and of "unknown", the most probable first. In a game with two roles, all
            opponents of these matches are taken for one player.
        solved: role -> goal under best play, if the game is solved; {} otherwise. The player uses the solution under a
            clock, and with the option solve=yes.
        fidelity: share of the values of the network that the weights explain, 0 to 1; None without a network.
    """

    game: Game
    seconds: float
    simulations: int
    determination: float
    informed: float | None
    weights: Mapping[str, Mapping[str, float]]
    generations: Sequence[GenerationRow]
    tests: Sequence[AdviceTest]
    num_openings: int
    variant: tuple[str, float] | None = None
    opponents: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    solved: Mapping[str, int] = field(default_factory=dict)
    fidelity: float | None = None
    rows: list[dict[str, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = [
            {"game": self.game.name, "role": role, "fact": fact, "weight": weight}
            for role, own in self.weights.items()
            for fact, weight in own.items()
        ]
        object.__setattr__(self, "rows", rows)

    @property
    def has_own_value(self) -> bool:
        """Whether the linear value was taught in the game itself; otherwise it is that of the variant."""
        return not self.variant or any(row.number and not row.is_network for row in self.generations)

    def save(self, path: str | Path) -> None:
        """Write the weights to a file that ends in .csv, or the picture to one that ends in .svg."""
        if Path(path).suffix == ".svg":
            write_whole(Path(path), self.svg)
        else:
            save_rows(path, self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the lesson as JSON values."""
        return {
            "game": self.game.name,
            "rules_hash": self.game.rules_hash,
            "seconds": self.seconds,
            "simulations": self.simulations,
            "determination": self.determination,
            "informed": self.informed,
            "weights": {role: dict(own) for role, own in self.weights.items()},
            "fidelity": self.fidelity,
            "generations": [row._asdict() for row in self.generations],
            "tests": [asdict(test) for test in self.tests],
            "openings": self.num_openings,
            "opponents": {role: dict(posterior) for role, posterior in self.opponents.items()},
            "solved": dict(self.solved),
            "variant": self.variant and {"game": self.variant[0], "likeness": self.variant[1]},
        }

    def plot(self) -> Figure:
        """Return a matplotlib figure of how strong the states of the lesson were: their scores in tests.

        There is a line for each startclock of the rivals, with 95 % intervals; full dots are states that have passed. A
        test ends as soon as it decides, so scores are farther from 50 than in matches that were not chosen so.
        """
        from ..lab.figures import strength_figure
        from ..learning.store.lesson_rows import LESSON

        seconds = {0: 0.0} | {row.number: row.seconds for row in self.generations}
        lines: dict[str, list[tuple[float, float, float, bool]]] = {}
        for test in self.tests:
            if test.advice == LESSON and test.rounds and test.state in seconds:
                point = seconds[test.state], test.score, test.error, test.verdict == "taken"
                lines.setdefault(test.against, []).append(point)
        return strength_figure(f"{self.game.name}: tests of the lesson", lines)

    @cached_property
    def svg(self) -> str:
        """The weights on the boards of the game."""
        from ..drawing.board import Boards
        from ..drawing.weights import weights_svg

        return weights_svg(Boards.of(self.game), self.weights)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        whose = "the value" if self.has_own_value or not self.variant else f"the linear value of {self.variant[0]}"
        taught = (
            f"{self.game.name}: taught for {self.seconds:.0f} s of CPU time, {self.simulations:,} simulations, "
            f"{counted(len(self.generations), 'generation')}; {whose} explains {self.determination:.0%} of what "
            f"searches find{'' if self.has_own_value else ' there'}; {counted(self.num_openings, 'opening')}"
        )
        start = [f"began with the lesson of {self.variant[0]} (likeness {self.variant[1]:.2f})"] if self.variant else []
        networks = [row for row in self.generations if row.is_network and row.number]
        network = [f"the last {counted(len(networks), 'generation')} taught a network in self-play"] if networks else []
        if self.fidelity is not None:
            network = [*network, f"the weights of facts explain {self.fidelity:.0%} of the values of the network"]
        playouts = [f"informed playouts: {self.informed:.0%}"] if self.informed is not None else []
        goals = ", ".join(f"{role} {goal}" for role, goal in self.solved.items())
        about = "solved, so nothing more is to be studied; under a clock, or with solve=yes, its solution is played"
        solved = [f"{about}: {goals}"] if self.solved else []
        tests = [
            f"  {test.advice} {test.state} against {test.against}: {test.score:.0f}% in "
            f"{counted(test.rounds, 'round')}, {test.verdict}"
            for test in self.tests
        ]
        opponents = [
            f"  the last opponent as {role}: {player} ({share:.0%})"
            for role, posterior in self.opponents.items()
            for player, share in list(posterior.items())[:1]
        ]
        return "\n".join(
            [
                taught,
                *solved,
                *start,
                *network,
                *playouts,
                *tests,
                *opponents,
                *filter(None, map(self._best, self.weights)),
            ]
        )

    def _best(self, role: str) -> str:
        """Return the largest weights of a role as text; "" if it has none."""
        largest = sorted(self.weights[role].items(), key=lambda item: -abs(item[1]))[:_MOST_WEIGHTS]
        if not largest:
            return ""
        return f"  after a move of {role}: " + ", ".join(f"{fact} {weight:+.0f}" for fact, weight in largest)


def study(
    game: Game | str | Path,
    *,
    seconds: float = 600.0,
    store: Knowledge | str | Path | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> GameLesson:
    """Learn about a game from searches: a value, openings, and whether matches speak for them.

    Everything is stored at once. The same call again goes on where the last one stopped, also after an interruption.

    Args:
        game: a game, or what `load` takes.
        seconds: time for this call. More than half of it is teaching, three tenths are test matches, a tenth is
            searches of openings, and a twentieth compares the opponents of the last matches with known players; as long
            as the value of a similar game is tried, nearly all of it is test matches. Before, with ten seconds or more,
            a small game is solved, see `solve`, if this takes no more than a tenth of the time; then nothing more is
            to be studied, and the call ends.
        store: a knowledge store, or its file; the user's store if it is None.
        seed: seed of all random numbers.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        What was learned so far.

    Raises:
        GameloreError: the game has one role only, is too large, or plays on the reasoner.
        KnowledgeError: the store cannot be written.
    """
    from ..catalogue import known_opponents
    from ..learning.exchange import check_lesson
    from ..learning.store.lesson_rows import Lessons, StoredLesson
    from ..learning.store.taught_rows import NOTHING
    from ..memory.course import Course

    if not isfinite(seconds):
        raise GameloreError(f"expected a finite number of seconds, got {seconds:g}; give a number")
    if not seconds > 0:
        raise GameloreError(f"expected a time of more than 0 seconds, got {seconds:g}; give it longer")
    check_seed(seed)
    rules = suitable(loaded(game))
    with _opened(store) as opened, displayed(progress) as tell:
        lessons = Lessons(opened)
        check_lesson(lessons, rules.rules_hash, rules.name)
        if _OF_SOLVER * seconds >= _FIRST_LOOK and _solve(rules, monotonic() + _OF_SOLVER * seconds):
            lessons.put(rules, StoredLesson(0, 0, 0, 0.0, NOTHING))  # unless there is a lesson
            return lesson_of(rules, lessons)
        course = Course(rules, lessons, seed, opponents=known_opponents())
        begin, stage, total = monotonic(), f"studying {rules.name}, in seconds", round(seconds)
        try:
            course.go_on(begin + seconds, lambda told: tell(stage, min(round(monotonic() - begin), total), total))
        finally:
            course.store_lesson()
        tell(stage, total, total)
        return lesson_of(rules, lessons)


def suitable(game: Game) -> Game:
    """Return a game that can be studied.

    Raises:
        GameloreError: the game has one role only, is too large, or plays on the reasoner.
    """
    from ..search.teaching import can_be_taught

    if can_be_taught(game):
        return game
    if game.num_roles == 1:
        wanted, has, remedy = "a game with two or more roles", "with 1 role", "study another game"
    elif game.uses_reasoner:
        wanted, has = "a game that is compiled", "on the reasoner" if game.is_bounded else "on the engine reasoner"
        remedy = "leave the choice of the engine to gamelore, or study another game"
    else:
        wanted = "a game with at most 2,000 facts, fewer for more than two roles"
        has = f"with about {64 * game.num_words:,} and {game.num_roles} roles"
        remedy = "study another game"
    raise GameloreError(f"expected {wanted}, got {game.name} {has}; {remedy}")


class _OutOfTime(Exception):
    """The solution of a game takes too long."""


def _solve(game: Game, deadline: float) -> bool:
    """Solve a small game until the deadline, or leave it alone; return whether it is solved.

    The solution is stored, and needs no test.
    """
    from ..search.startclock import may_be_solved
    from ..solver.solution import solve

    def watch(stage: str, done: int, total: int) -> None:
        if monotonic() > deadline:
            raise _OutOfTime

    if may_be_solved(game):
        with suppress(GameloreError, MemoryError, _OutOfTime):
            solve(game, memory=_SOLVER_MEMORY, patience=0.0, progress=watch)
            return True
    return False


def _opened(store: Knowledge | str | Path | None) -> Any:
    """Open a store; the user's store for None."""
    from ..learning.store.knowledge import KnowledgeStore, default_path

    return KnowledgeStore(default_path() if store is None else store if isinstance(store, str | Path) else store.path)


def lesson_of(game: Game, lessons: Lessons) -> GameLesson:
    """Return what a store says about a game. Raise GameloreError if it has no lesson."""
    from ..solver.solution import stored as stored_solution

    stored = lessons.find(game.rules_hash)
    if stored is None:
        raise GameloreError(
            f"expected a lesson about {game.name} in {lessons.knowledge.path}, got none; study the game "
            f"(gamelore study {game.name})"
        )
    weights, fidelity = _weights(game, stored.value)
    origin, solution = _variant(lessons, stored), stored_solution(game)
    return GameLesson(
        game,
        stored.seconds,
        stored.walks,
        stored.value.determination,
        stored.value.informed,
        weights,
        lessons.generations(game.rules_hash),
        _tests(lessons, game.rules_hash),
        lessons.num_openings(game.rules_hash),
        (origin, stored.likeness) if origin else None,
        _opponents(game, lessons),
        dict(zip(game.roles, solution.values, strict=True)) if solution is not None else {},
        fidelity,
    )


def _weights(game: Game, stored: StoredValue) -> tuple[dict[str, dict[str, float]], float | None]:
    """Return the weights of facts, and the share of the network's values that they explain; None without a network."""
    from ..memory.lesson import restored_network, stored_value, surrogate

    network, fidelity = restored_network(game, stored.network) if stored.network is not None else None, None
    if network is not None:
        nearest = surrogate(game, network)
        stored, fidelity = stored_value(game, nearest, None), nearest.determination
    weights = {
        role: {fact: POINTS * own[number] for fact, own in stored.weights.items()}
        for number, role in enumerate(game.roles)
    }
    return weights, fidelity


def _opponents(game: Game, lessons: Lessons) -> dict[str, dict[str, float]]:
    """Return the posterior probabilities of the last opponents with each role."""
    from ..memory.recogniser import recognised

    posteriors = {
        role: recognised(lessons, game.rules_hash, number, game.num_roles) for number, role in enumerate(game.roles)
    }
    return {role: posterior for role, posterior in posteriors.items() if posterior}


def _variant(lessons: Lessons, stored: StoredLesson) -> str | None:
    """Return the name of the game whose lesson was the start, or "a deleted game"."""
    if not stored.origin:
        return None
    row = lessons.game(stored.origin)
    return row.name if row is not None else "a deleted game"


def _tests(lessons: Lessons, rules_hash: str) -> list[AdviceTest]:
    """Return what matches have said about the states of each kind of advice."""
    from ..learning.store.lesson_rows import WITHOUT
    from ..memory.advice import evidence_of, startclock_of, verdict

    rows = lessons.trials(rules_hash)
    tests = []
    for row in rows:
        startclock = 0 if row.against == WITHOUT else startclock_of(row.against)
        if startclock is not None:
            said = verdict(rows, row.advice, row.number, startclock)
            evidence = evidence_of(row)
            tests.append(AdviceTest(*row[:4], POINTS * evidence.score, said, POINTS * evidence.error))
    return tests


def readable_summary_of(lessons: Lessons, row: GameRow) -> LessonSummary:
    """Return a lesson of a store in a few numbers, or what is wrong with it."""
    try:
        return summary_of(lessons, row)
    except DamagedLessonError as error:
        return LessonSummary(row.name, row.rules_hash, 0.0, 0, 0.0, None, 0, 0, None, str(error))


def summary_of(lessons: Lessons, row: GameRow) -> LessonSummary:
    """Return a lesson of a store in a few numbers."""
    from ..learning.store.lesson_rows import LESSON
    from ..memory.advice import startclock_of

    stored = lessons.find(row.rules_hash)
    assert stored is not None
    taken = [startclock_of(test.against) for test in _tests(lessons, row.rules_hash) if _is_taken(test, LESSON)]
    return LessonSummary(
        row.name,
        row.rules_hash,
        stored.seconds,
        stored.generation,
        stored.value.determination,
        _variant(lessons, stored),
        lessons.num_openings(row.rules_hash),
        len(lessons.matches(row.rules_hash)),
        max((startclock for startclock in taken if startclock is not None), default=None),
    )


def _is_taken(test: AdviceTest, advice: str) -> bool:
    return test.advice == advice and test.verdict == "taken"
