"""The contents of Banerjee & Stone 2007: readings, figures, settings of all experiments, printed values, claims.

A *reading* decides all questions that the paper leaves open. readings.md, B&S, lists these questions; the numbers in
parentheses below refer to this list. There are two readings, and both are run:

              opponents' filler (2)   initialisation (5)   source run (8)
    text      random                  lazy                 3000 matches, epsilon 0.01, as every series of the paper
    figures   hashed, keyed by run    eager                100 matches of random moves, as Table 1 implies

A `filler` chooses the opponent's move if no move is decisive. A `hashed` filler follows an order of all moves. This
order is fixed during a run, and a new order is chosen at random for every run. So the intervals over runs also include
the influence of this order (15). The part "sensitivity" runs the settings of the figures with the first legal move as
filler. The part "sweep" has source runs of several lengths and policies, among them those of both readings. Both
readings use the numbers of the paper: alpha 0.3, gamma 1, lambda 0.7, epsilon 0.01, 10 runs of 3000 matches.

Figure 2 names twelve features by letters (1). The text of the paper determines the features of the letters h, f and i.
It also determines that the group of letters {j, k, l} stands for the forks. The group {a, b, e, g} stands for the other
features with an immediate loss, and {c, d} for the remaining two features. The order of the letters within a group is a
guess.

In the available copy of the paper, the first and the third column of Table 1 have merged into one sequence of numbers.
Each row has two numbers of this sequence, and their order is not stated. This module assumes that the order alternates:
the first row has the weak opponent first, the second row has the egreedy opponent first, and so on. Under this
assumption, the value against the weak opponent is at least as large as the value against the egreedy opponent in every
row except j (a fork). In row j it is smaller by 0.35.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, permutations, product
from math import inf
from pathlib import Path
from statistics import mode
from typing import Any, Literal

from ....errors import check_word
from ....learning.store.features import FeatureValues
from ....learning.td.initial_values import LearnerSettings
from ....matches.opponents import Filler, OpponentSettings
from ...claims import Claim, ClaimFinding, by_id, check_keys, entries, read_tables
from ...experiment import PrintedValues, SeriesSetting, SettingGrid

ReadingName = Literal["text", "figures"]
Initialisation = Literal["lazy", "siblings", "eager"]

SEED = 2007
VERDICT_SEED = 720076  # added to the seed, so that verdicts come from runs that influenced no choice
SOURCE = "tictactoe"
TARGETS = ("connect3", "othello4", "capturego3")
OPPONENTS = ("egreedy", "random", "weak")
LEARNERS = ("baseline", "transfer", "lookahead")
EARLY, LATE, WHOLE, LAST = (1, 300), (301, 3000), (1, 3000), (2701, 3000)
"""Windows of a series of 3000 matches; both ends are included."""
INITIALISATIONS: tuple[Initialisation, ...] = ("lazy", "siblings", "eager")
SWEPT_MATCHES = (30, 100, 300, 1000, 3000)
SWEPT_EPSILONS = (0.01, 1.0)
HEADROOM_GAMES = (*TARGETS, "losetictactoe", "breakthrough", "goofspiel")
"""The paper's targets, and three of our own: another winning condition, other pieces, simultaneous moves."""
HEADROOM_ARMS = (*LEARNERS, "oracle")
TURNS = 2
"""Number of turns of the learner "turns", chosen on development runs; see docs/banerjee2007/development.md."""
TURNS_ARMS: dict[str, dict[str, Any]] = {
    "turns": {"kind": "transfer", "turns": TURNS},
    "turns-replies": {"kind": "transfer", "turns": TURNS, "control": "replies"},
    "turns-minimax": {"kind": "transfer", "turns": TURNS, "control": "minimax"},
    "lookahead-deep": {"kind": "lookahead", "depth": 2 * TURNS + 2},
}
"""The learner with features several turns below, its ablations, and the lookahead that examines as many plies."""
HEADROOM_WINDOWS = {"early": EARLY, "late": LATE}
CONTROLS = ("terminal", "features", "shuffled", "printed", "from-random", "from-weak")
TITLES = {
    "connect3": "Connect3 5x5",
    "othello4": "Othello 4x4",
    "capturego3": "CaptureGo 3x3",
    "tictactoe": "Tic-tac-toe",
    "losetictactoe": "Lose tic-tac-toe",
    "breakthrough": "Breakthrough",
    "goofspiel": "Goofspiel",
}
NAMES = {"egreedy": "ε-greedy", "random": "Random", "weak": "Weak"}


@dataclass(frozen=True)
class Reading:
    """One decision of all questions that the paper leaves open."""

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
            "hashed": "the first legal move in a fixed order of moves, another order in every run",
            "first": "the first legal move",
        }[self.filler]
        when = {
            "lazy": "after the match that visited it",
            "siblings": "after the match in which it could be chosen",
            "eager": "when it is first scored, which expands trees during the choice",
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
    """One of the paper's learning figures.

    axis           range of the y axis, in points
    averaged_from  number of the first match in the average that the figure shows (readings.md, B&S 7)
    """

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
"""Opponent -> additional learners in the situations of Figures 6 and 7."""


@dataclass(frozen=True)
class Plan:
    """The settings of one reading. Their ids are "{name}/{game}/{opponent}/{learner}"."""

    reading: Reading
    runs: int
    matches: int
    seed: int
    prefix: str = ""

    @property
    def name(self) -> str:
        return self.prefix or self.reading.name

    def verdicts(self) -> Plan:
        """Return the same plan with fresh random numbers."""
        return replace(self, prefix=f"{self.reading.name}-verdicts", seed=self.seed + VERDICT_SEED)

    def source(
        self, opponent: str, *, name: str = "source", matches: int | None = None, epsilon: float | None = None,
        filler: Filler | None = None,
    ) -> SeriesSetting:  # fmt: skip
        """Return the setting of a source: the first mover learns tic-tac-toe without initial values."""
        learner = LearnerSettings("baseline", epsilon=self.reading.source_epsilon if epsilon is None else epsilon)
        return SeriesSetting(
            f"{self.name}/{SOURCE}/{self._tag(opponent, filler)}/{name}", SOURCE, self.seed, self.runs, 0,
            matches or self.reading.source_matches, learner, self._opponent(opponent, filler), "source", extract=True,
        )  # fmt: skip

    def target(
        self, game: str, opponent: str, learner: str, *, filler: Filler | None = None,
        initialisation: Initialisation | None = None,
    ) -> SeriesSetting:  # fmt: skip
        """Return the setting of a learner in a target game.

        The transfer learner uses feature values that were learned in the source game against the same kind of opponent.
        """
        tag = f"{learner}~{initialisation}" if initialisation else learner
        return SeriesSetting(
            f"{self.name}/{game}/{self._tag(opponent, filler)}/{tag}", game, self.seed, self.runs, 0, self.matches,
            self._learner(learner, initialisation), self._opponent(opponent, filler),
            source=self.source(opponent, filler=filler) if self._learner(learner, None).kind == "transfer" else None,
        )  # fmt: skip

    def control(self, game: str, kind: str) -> SeriesSetting:
        """Return the setting of the transfer learner with other feature values, against the epsilon-greedy opponent."""
        base = self.target(game, "egreedy", "transfer")
        base = replace(base, id=f"{base.id}~{kind}")
        if kind in ("terminal", "features", "shuffled"):
            return replace(base, learner=replace(base.learner, control=kind))  # type: ignore[arg-type]
        if kind == "printed":
            return replace(base, source=None, printed=PrintedValues("egreedy", printed_values("egreedy")))
        return replace(base, source=self.source(kind.removeprefix("from-")))

    def core(self) -> Iterator[SeriesSetting]:
        """Yield the settings of Figures 3 to 7 and Table 1."""
        for figure in FIGURES:
            for learner in (*figure.learners, *EXTRA.get(figure.opponent, ())):
                yield self.target(figure.game, figure.opponent, learner)
        yield from (self.source(opponent) for opponent in OPPONENTS)

    def controls(self) -> Iterator[SeriesSetting]:
        """Yield the controls that isolate the effect of feature values, and the other kinds of initialisation."""
        for game in TARGETS:
            yield from (self.control(game, kind) for kind in CONTROLS)
            for initialisation in INITIALISATIONS:
                if initialisation != self.reading.initialisation:
                    yield self.target(game, "egreedy", "transfer", initialisation=initialisation)
                    yield self.target(game, "egreedy", "lookahead", initialisation=initialisation)

    def sensitivity(self) -> Iterator[SeriesSetting]:
        """Yield the settings with the first legal move as filler, and with a different suicide rule."""
        for figure in FIGURES:
            if figure.opponent != "random":  # the random opponent has no filler
                yield from (self.target(figure.game, figure.opponent, x, filler="first") for x in figure.learners)
        yield from (self.target("capturego3_suicide", "egreedy", learner) for learner in LEARNERS)

    def sweep(self) -> Iterator[SeriesSetting]:
        """Yield the settings of source runs of several lengths and policies."""
        for opponent, matches, epsilon in product(OPPONENTS, SWEPT_MATCHES, SWEPT_EPSILONS):
            yield self.source(opponent, name=swept(matches, epsilon), matches=matches, epsilon=epsilon)

    def headroom(self, runs: int | None = None) -> Iterator[SeriesSetting]:
        """Yield the settings of the paper's learners, the oracle, and the learners of TURNS_ARMS, in six games.

        The oracle begins with exact values, but learns away from them, and with some initialisations it stops to
        explore. So it is no upper bound of what a learner can reach. The upper bound is the ceiling, the exact
        expected reward of best play, which is stored with each run of the oracle.

        runs: number of runs of each setting; None for that of the plan
        """
        for game, opponent, arm in product(HEADROOM_GAMES, OPPONENTS, (*HEADROOM_ARMS, *TURNS_ARMS)):
            yield replace(self.target(game, opponent, arm), runs=runs or self.runs)

    def parts(self, parts: Iterable[str]) -> Iterator[SeriesSetting]:
        """Return the settings of the parts with these names: "core", "controls", "sensitivity" or "sweep"."""
        return chain.from_iterable(getattr(self, part)() for part in parts)

    def of_findings(self, findings: Iterable[ClaimFinding], max_runs: int | None = None) -> SettingGrid[SeriesSetting]:
        """Return the settings of all claims that are measured on runs.

        Each setting gets enough runs for the wanted half-width of each of its claims. This number is at most the limit
        of the claim (`Claim.max_runs`), but at least the number of runs in the figures. `max_runs` limits it further.
        """
        wanted: dict[str, int] = {}
        for finding in findings:
            runs = max(self.runs, min(finding.wanted, finding.claim.max_runs))
            runs = runs if max_runs is None else min(runs, max_runs)
            for name in finding.settings if finding.claim.max_runs else ():
                tail = name.split("/", 1)[1]
                wanted[tail] = max(wanted.get(tail, 0), runs)
        every = {setting.id.split("/", 1)[1]: setting for setting in SettingGrid.of(self.core()).settings.values()}
        return SettingGrid.of(replace(every[tail], runs=runs) for tail, runs in wanted.items())

    def _opponent(self, kind: str, filler: Filler | None) -> OpponentSettings:
        return OpponentSettings(kind, filler or self.reading.filler, self.reading.opponent_epsilon)  # type: ignore[arg-type]

    def _tag(self, opponent: str, filler: Filler | None) -> str:
        return f"{opponent}-{filler}" if filler else opponent

    def _learner(self, name: str, initialisation: Initialisation | None) -> LearnerSettings:
        when = initialisation or self.reading.initialisation
        kind = {"heuristic": name, "kind": "lookahead"} if name in ("maxmax", "avgmax") else {"kind": name}
        kind = TURNS_ARMS.get(name, kind)
        return LearnerSettings(**kind, initialisation=when)  # type: ignore[arg-type]


def swept(matches: int, epsilon: float) -> str:
    """Return the name of a source run in the sweep."""
    return f"source-{matches}-{epsilon:g}"


# ---- Figure 2 and Table 1, as printed ----

FIGURE_2: dict[str, tuple[str, ...]] = {
    "abeg": ("L,{n}", "L,{n},{n,W}", "L,{n,W}", "L,{W}"),
    "cd": ("{n},{n,W}", "{D},{W}"),
    "f": ("L",),
    "h": ("{D}",),
    "i": ("L,{D}",),
    "jkl": ("{W}", "{n,W}", "{n,W},{W}"),
}
"""Group of letters -> features of these letters. The order of the features within a group is a guess."""

TABLE_1: dict[str, tuple[float, float, float]] = {
    "a": (41.08, 46.31, 51.62),
    "b": (43.75, 48.81, 57.55),
    "c": (54.36, 53.75, 54.63),
    "d": (59.63, 60.11, 61.5),
    "e": (43.03, 50.41, 59.62),
    "f": (38.0, 43.5, 40.77),
    "g": (40.18, 49.43, 58.16),
    "h": (50.0, 50.0, 50.0),
    "i": (44.64, 42.98, 48.93),
    "j": (57.48, 58.9, 57.13),
    "k": (58.28, 54.84, 58.42),
    "l": (57.45, 54.26, 63.36),
}
"""Letter -> printed values against the egreedy, the random and the weak opponent."""


def printed_values(opponent: str, within: Literal["guess", "mean"] = "guess") -> FeatureValues:
    """Return the column of Table 1 for this opponent as feature values.

    With "guess", the letters of a group are assigned to features as guessed. With "mean", every feature of a group gets
    the mean value of the group. All numbers of visits are 1, since the paper does not print them. Raise GameloreError
    for an unknown opponent.
    """
    check_word("opponent", opponent, OPPONENTS)
    column = OPPONENTS.index(opponent)
    values: dict[str, tuple[float, int]] = {}
    for letters, texts in FIGURE_2.items():
        cells = [TABLE_1[letter][column] for letter in letters]
        if within == "mean":
            cells = [sum(cells) / len(cells)] * len(cells)
        values.update((text, (cell, 1)) for text, cell in zip(texts, cells, strict=True))
    return FeatureValues(values)


@dataclass(frozen=True)
class PrintedTable:
    """Table 1 of the paper.

    features  letter -> feature text
    values    letter -> values against the egreedy, the random and the weak opponent
    groups    groups of letters whose order is not known
    """

    features: dict[str, str]
    values: dict[str, tuple[float, float, float]]
    groups: tuple[str, ...]

    @classmethod
    def of_the_paper(cls) -> PrintedTable:
        """Return the printed table with the guessed assignment of letters to features."""
        pairs = [(letter, text) for group, texts in FIGURE_2.items() for letter, text in zip(group, texts, strict=True)]
        return cls(dict(sorted(pairs)), TABLE_1, tuple(group for group in FIGURE_2 if len(group) > 1))

    def column(self, opponent: str) -> dict[str, float]:
        """Return the printed values against this opponent, by letter."""
        return {letter: row[OPPONENTS.index(opponent)] for letter, row in self.values.items()}

    def printed(self, opponent: str) -> dict[str, float]:
        """Return the printed values against this opponent, by feature text."""
        return {self.features[letter]: value for letter, value in self.column(opponent).items()}

    def assignments(self) -> Iterator[dict[str, str]]:
        """Yield every assignment of letters to feature texts that the paper's text allows.

        The guessed assignment comes first.
        """
        for orders in product(*(permutations(group) for group in self.groups)):
            moved = dict(zip("".join(self.groups), chain(*orders), strict=True))
            yield {letter: self.features[moved.get(letter, letter)] for letter in self.features}


# ---- the claims ----

PATH = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True)
class Claims:
    """The paper's claims by id, its Table 1, and the endpoints of the part "headroom", which are not the paper's.

    headroom  the oracle is ahead of lookahead
    room      lookahead reaches the ceiling, except for the margin; so there is no room for an advantage over it
    turns     the learner with features several turns below is ahead of lookahead, and ahead of the baseline
    deep      the same learner is ahead of the lookahead of equal depth; judged together with `turns`
    """

    claims: dict[str, Claim]
    table: PrintedTable
    headroom: tuple[Claim, ...] = ()
    room: tuple[Claim, ...] = ()
    turns: tuple[Claim, ...] = ()
    deep: tuple[Claim, ...] = ()

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims.values())

    @property
    def headroom_runs(self) -> int:
        """Number of fresh runs of each setting of the part "headroom"."""
        return max(claim.max_runs for claim in (*self.headroom, *self.room, *self.turns, *self.deep))

    @property
    def margin_words(self) -> str:
        """The margins of the endpoints as text, such as `0.5 early; 0.1 late, 0.3 against Random`."""
        names = {window: name for name, window in HEADROOM_WINDOWS.items()}
        margins: dict[str, dict[str, float]] = {}
        for claim in self.headroom:
            margins.setdefault(names[tuple(claim.of["window"])], {})[claim.of["opponent"]] = claim.margin
        return "; ".join(_window_margin_words(name, by_opponent) for name, by_opponent in margins.items())


def _window_margin_words(window: str, margins: dict[str, float]) -> str:
    usual = mode(margins.values())
    others = (f", {margin:g} against {NAMES[name]}" for name, margin in margins.items() if margin != usual)
    return f"{usual:g} {window}{''.join(others)}"


def load_claims(path: Path = PATH) -> Claims:
    """Read the claims from the file, and make a claim of each cell of Table 1.

    Raise ExperimentError if the file is not a valid file of claims.
    """
    table = PrintedTable.of_the_paper()
    data = read_tables(path, ("table1", "margins", "headroom", "room", "turns", "turns-deep"))
    return Claims(
        by_id([*entries(data), *_cells(table, data["table1"])]),
        table,
        headroom=tuple(_ahead(data, "headroom", "oracle", ("lookahead",))),
        room=tuple(_room(data)),
        turns=tuple(_ahead(data, "turns", "turns", ("lookahead", "baseline"))),
        deep=tuple(_ahead(data, "turns-deep", "turns", ("lookahead-deep",))),
    )


def _cells(table: PrintedTable, data: dict[str, Any]) -> Iterator[Claim]:
    check_keys(data, {"place", "quote", "margin", "half_width", "max_runs"}, set(), "table1")
    for letter, opponent in product(table.features, OPPONENTS):
        value, margin = table.column(opponent)[letter], data["margin"]
        of, target = {"feature": letter, "opponent": opponent}, (value - margin, value + margin)
        name = f"table1.{letter}-{opponent}"
        yield Claim(id=name, measure="table1_value", of=of, test="within", target=target, paper=f"{value:g}", **data)


def _ahead(data: dict[str, Any], family: str, left: str, rights: Sequence[str]) -> Iterator[Claim]:
    """Yield a claim for each game, opponent, right learner and window: that the left learner is ahead of the right."""
    for game, opponent, right, window in product(HEADROOM_GAMES, OPPONENTS, rights, HEADROOM_WINDOWS):
        of = {"left": left, "right": right}
        name = f"{family}.{game}-{opponent}{f'-{right}' if len(rights) > 1 else ''}-{window}"
        yield _endpoint(data, family, name, game, opponent, window, of, measure="difference", test="above")


def _room(data: dict[str, Any]) -> Iterator[Claim]:
    """Yield a claim for each game, opponent and window: that lookahead is below the ceiling by at most the margin."""
    for game, opponent, window in product(HEADROOM_GAMES, OPPONENTS, HEADROOM_WINDOWS):
        name = f"room.{game}-{opponent}-{window}"
        of = {"learner": "lookahead"}
        yield _endpoint(data, "room", name, game, opponent, window, of, measure="below_ceiling", test="within")


def _endpoint(
    data: dict[str, Any], family: str, name: str, game: str, opponent: str, window: str, of: dict[str, Any], *,
    measure: str, test: str,
) -> Claim:  # fmt: skip
    """Return the claim of a cell, with the margin of its window and its opponent."""
    check_keys(data[family], {"place", "quote", "max_runs"}, {"note"}, family)
    check_keys(data["margins"], set(HEADROOM_WINDOWS), set(), "margins")
    margin = data["margins"][window][opponent]
    of = {"game": game, "opponent": opponent, **of, "window": list(HEADROOM_WINDOWS[window])}
    target = (0.0,) if test == "above" else (-inf, margin)
    return Claim(id=name, measure=measure, of=of, test=test, target=target, margin=margin, **data[family])
