"""Banerjee & Stone 2007 as data: the readings, the figures, and the settings that they need.

A *reading* settles what the paper leaves open (readings.md, B&S; the numbers below are its points). Both must run:

              opponents' filler (2)   initialisation (5)   source run (8)
    text      random                  lazy                 3000 matches, epsilon 0.01, as every series of the paper
    figures   hashed, keyed by run    eager                100 matches of random moves, as Table 1 implies

A `hashed` filler is a fixed move order, drawn anew in every run, so that intervals cover the opponent's order, too
(15); the figures' settings also run with the first legal move as filler. Both kinds of source, and others, are in
the sweep. What the paper states is the same in both: alpha 0.3, gamma 1, lambda 0.7, epsilon 0.01, 10 runs of 3000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ...learn.transfer import LearnerSettings
from ...play.player import Filler, OpponentSettings
from ..endpoints import Finding
from ..grid import Grid, Setting

ReadingName = Literal["text", "figures"]
Initialisation = Literal["lazy", "siblings", "eager"]

SEED = 2007
VERDICT_SEED = 720076  # added to the seed: verdicts rest on runs that nothing was chosen by
SOURCE = "tictactoe"
TARGETS = ("connect3", "othello4", "capturego3")
OPPONENTS = ("egreedy", "random", "weak")
LEARNERS = ("baseline", "transfer", "lookahead")
INITIALISATIONS: tuple[Initialisation, ...] = ("lazy", "siblings", "eager")
SWEPT_MATCHES = (30, 100, 300, 1000, 3000)
SWEPT_EPSILONS = (0.01, 1.0)
CONTROLS = ("terminal", "features", "shuffled", "printed", "from-random", "from-weak")
TITLES = {
    "connect3": "Connect3 5x5",
    "othello4": "Othello 4x4",
    "capturego3": "CaptureGo 3x3",
    "tictactoe": "Tic-tac-toe",
}
NAMES = {"egreedy": "ε-greedy", "random": "Random", "weak": "Weak"}


@dataclass(frozen=True)
class Reading:
    """One way to settle what the paper leaves open."""

    name: ReadingName
    filler: Filler
    initialisation: Initialisation
    source_matches: int
    source_epsilon: float = 0.01
    opponent_epsilon: float = 0.01

    @property
    def words(self) -> str:
        filler = {
            "random": "a uniformly random move",
            "hashed": "a fixed move order, another one in every run",
            "first": "the first legal move",
        }[self.filler]
        when = {
            "lazy": "after the match that visited it",
            "siblings": "after the match in which it could have been chosen",
            "eager": "when it is first looked at, which expands trees while choosing",
        }[self.initialisation]
        return (
            f"opponents without a decisive move play {filler} (ε = {self.opponent_epsilon}); an afterstate gets its "
            f"first value {when} (`{self.initialisation}`); the source run has {self.source_matches} "
            f"matches of a learner that explores with probability {self.source_epsilon:g}"
        )


READINGS: dict[str, Reading] = {
    "text": Reading("text", "random", "lazy", 3000),
    "figures": Reading("figures", "hashed", "eager", 100, source_epsilon=1.0),
}


@dataclass(frozen=True)
class Figure:
    """One of the paper's learning figures; `axis` is the range of its y axis, `averaged_from` see readings.md 7."""

    number: int
    game: str
    opponent: str
    learners: tuple[str, ...]
    axis: tuple[float, float]
    averaged_from: int = 301


FIGURES = (
    Figure(3, "connect3", "egreedy", LEARNERS, (98.2, 100.0)),
    Figure(4, "othello4", "egreedy", LEARNERS, (98.2, 99.6)),
    Figure(5, "capturego3", "egreedy", LEARNERS, (97.0, 100.0)),
    Figure(6, "othello4", "weak", ("transfer", "lookahead"), (97.5, 100.0)),
    Figure(7, "othello4", "random", ("transfer", "lookahead"), (45.0, 90.0), averaged_from=1),
)
EXTRA = {"weak": ("baseline", "maxmax"), "random": ("baseline", "avgmax")}
"""Learners beside those of Figures 6 and 7."""


@dataclass(frozen=True)
class Plan:
    """Makes the settings of one reading, named "{prefix}/{game}/{opponent}/{learner}"."""

    reading: Reading
    runs: int
    matches: int
    seed: int
    prefix: str = ""

    @property
    def name(self) -> str:
        return self.prefix or self.reading.name

    def verdicts(self) -> Plan:
        """The same settings with fresh random numbers."""
        return replace(self, prefix=f"{self.reading.name}-verdicts", seed=self.seed + VERDICT_SEED)

    def source(
        self, opponent: str, *, name: str = "source", matches: int | None = None, epsilon: float | None = None,
        filler: Filler | None = None,
    ) -> Setting:  # fmt: skip
        """Tic-tac-toe learned from nothing against an opponent, by the first mover."""
        learner = LearnerSettings("baseline", epsilon=self.reading.source_epsilon if epsilon is None else epsilon)
        return Setting(
            f"{self.name}/{SOURCE}/{self._tag(opponent, filler)}/{name}", SOURCE, 0, learner,
            self._opponent(opponent, filler), self.runs, matches or self.reading.source_matches, self.seed,
            stage="source", extract=True,
        )  # fmt: skip

    def target(
        self, game: str, opponent: str, learner: str, *, filler: Filler | None = None,
        initialisation: Initialisation | None = None,
    ) -> Setting:  # fmt: skip
        """A learner in a target, with its own kind of opponent's values where it transfers."""
        tag = f"{learner}~{initialisation}" if initialisation else learner
        return Setting(
            f"{self.name}/{game}/{self._tag(opponent, filler)}/{tag}", game, 0,
            self._learner(learner, initialisation), self._opponent(opponent, filler), self.runs, self.matches,
            self.seed, source=self.source(opponent, filler=filler) if learner == "transfer" else None,
        )  # fmt: skip

    def control(self, game: str, kind: str) -> Setting:
        """The transfer learner against the epsilon-greedy opponent with something else in the place of its values."""
        base = self.target(game, "egreedy", "transfer")
        base = replace(base, id=f"{base.id}~{kind}")
        if kind in ("terminal", "features", "shuffled"):
            return replace(base, learner=replace(base.learner, control=kind))  # type: ignore[arg-type]
        if kind == "printed":
            return replace(base, source=None, printed="egreedy")
        return replace(base, source=self.source(kind.removeprefix("from-")))

    def core(self) -> Iterator[Setting]:
        """What Figures 3 to 7 and Table 1 show."""
        for figure in FIGURES:
            for learner in (*figure.learners, *EXTRA.get(figure.opponent, ())):
                yield self.target(figure.game, figure.opponent, learner)
        yield from (self.source(opponent) for opponent in OPPONENTS)

    def controls(self) -> Iterator[Setting]:
        """What isolates the features' values; and the other ways to initialise."""
        for game in TARGETS:
            yield from (self.control(game, kind) for kind in CONTROLS)
            for initialisation in INITIALISATIONS:
                if initialisation != self.reading.initialisation:
                    yield self.target(game, "egreedy", "transfer", initialisation=initialisation)
                    yield self.target(game, "egreedy", "lookahead", initialisation=initialisation)

    def sensitivity(self) -> Iterator[Setting]:
        """The first legal move as filler, and the other suicide rule."""
        for figure in FIGURES:
            if figure.opponent != "random":  # which has no filler
                yield from (self.target(figure.game, figure.opponent, x, filler="first") for x in figure.learners)
        yield from (self.target("capturego3_suicide", "egreedy", learner) for learner in LEARNERS)

    def sweep(self) -> Iterator[Setting]:
        """Source runs of other lengths and policies."""
        for opponent in OPPONENTS:
            for matches in SWEPT_MATCHES:
                for epsilon in SWEPT_EPSILONS:
                    yield self.source(opponent, name=swept(matches, epsilon), matches=matches, epsilon=epsilon)

    def parts(self, parts: Iterable[str]) -> Iterator[Setting]:
        """The settings of several of "core", "controls", "sensitivity" and "sweep"."""
        for part in parts:
            yield from getattr(self, part)()

    def of_findings(self, findings: Iterable[Finding], max_runs: int | None = None) -> Grid:
        """The settings that sampled claims rest on, each with the runs that its claims' half-widths ask for.

        At least as many as draw the figures, at most each claim's own limit, and at most `max_runs`.
        """
        wanted: dict[str, int] = {}
        for finding in findings:
            runs = max(self.runs, min(finding.wanted, finding.claim.max_runs))
            runs = runs if max_runs is None else min(runs, max_runs)
            for name in finding.settings if finding.claim.max_runs else ():
                tail = name.split("/", 1)[1]
                wanted[tail] = max(wanted.get(tail, 0), runs)
        every = {setting.id.split("/", 1)[1]: setting for setting in Grid.of(self.core()).settings.values()}
        return Grid.of(replace(every[tail], runs=runs) for tail, runs in wanted.items())

    def _opponent(self, kind: str, filler: Filler | None) -> OpponentSettings:
        return OpponentSettings(kind, filler or self.reading.filler, self.reading.opponent_epsilon)  # type: ignore[arg-type]

    def _tag(self, opponent: str, filler: Filler | None) -> str:
        return f"{opponent}-{filler}" if filler else opponent

    def _learner(self, name: str, initialisation: Initialisation | None) -> LearnerSettings:
        when = initialisation or self.reading.initialisation
        if name in ("maxmax", "avgmax"):
            return LearnerSettings("lookahead", name, when)  # type: ignore[arg-type]
        return LearnerSettings(name, initialisation=when)  # type: ignore[arg-type]


def swept(matches: int, epsilon: float) -> str:
    """The name of a source run of the sweep."""
    return f"source-{matches}-{epsilon:g}"
