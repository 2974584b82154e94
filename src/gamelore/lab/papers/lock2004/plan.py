"""The contents of Lock & Epstein 2004: the printed Tables 1 and 2, the readings, and all experiments.

A *reading* decides what the paper leaves open (readings.md, L&E). There are two. "text" takes the words literally.
"tables" is what the numbers of Tables 1 and 2 suggest: perfect programs that repeat their choices.

An *experiment* consists of several runs. A run has a training stage and a testing stage (section 2 of the paper). A run
of a baseline has no training stage; its player is the random player. Experiments with the same seed use the same random
numbers in run i. So their learners watch the same matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from ....errors import ExperimentError
from ....learning.sequences.seqlearner import WEIGHTS, Curriculum, SequenceSettings
from ....learning.sequences.seqplayer import Enforce, SeqPlayerSettings
from ....solver.perfect import Best, Choice
from ...results import Setting

GAMES = ("losetictactoe", "fivemensmorris")
OPPONENTS = ("perfect", "expert", "novice", "random")
ROWS = ("baseline", "version 1", "version 2")
"""The rows of Table 1. The paper's Experiments 1 and 2 test versions 1 and 2 of SeqPlayer."""
WHAT = ("reliability", "power")
RUNS, BLOCKS = 10, 20
"""Numbers of samples of the printed standard deviations: 10 runs, and for the baseline 20 blocks of 50 matches.

The blocks are an assumption (readings.md, L&E 6).
"""
CLASSES = (0.9, 0.8, 0.7, 0.55)
"""The lowest weight of each class of pairs in Table 2.

The weights of a class are below the lowest weight of the class before (readings.md, L&E 11). In version 2 of
SeqPlayer, the last class is tier 3, and the other classes are the subclasses of tier 2 (seqplayer.py).
"""


class Cell(NamedTuple):
    """A printed mean with its standard deviation.

    In Table 1, both are in per cent, and `bold` marks a statistically significant improvement over the row above.
    """

    mean: float
    deviation: float
    bold: bool = False


class Column(NamedTuple):
    """One column of Table 1: an opponent, and "reliability" (won or drawn matches) or "power" (won matches)."""

    opponent: str
    what: str


COLUMNS = tuple(
    Column(opponent, what) for opponent in OPPONENTS for what in WHAT if (opponent, what) != ("perfect", "power")
)
"""The columns of Table 1. Power against the perfect player is omitted, since nobody can win a match against it."""


def _row(*numbers: tuple[float, float] | tuple[float, float, bool]) -> dict[Column, Cell]:
    return {column: Cell(*cell) for column, cell in zip(COLUMNS, numbers, strict=True)}


TABLE_1: dict[str, dict[str, dict[Column, Cell]]] = {
    "losetictactoe": {
        "baseline": _row(
            (20.5, 4.14), (25.8, 5.33), (9.0, 4.12), (49.2, 7.57), (37.7, 6.67), (58.4, 7.28), (46.1, 7.84)
        ),
        "version 1": _row(
            (66.0, 20.96, True), (70.8, 16.22, True), (12.8, 4.71, True), (83.5, 6.38, True), (42.7, 8.08, True),
            (85.3, 4.79, True), (55.4, 5.52, True),
        ),
        "version 2": _row(
            (82.0, 13.24, True), (83.8, 9.73, True), (12.1, 4.22), (85.1, 5.08), (46.7, 7.08), (87.0, 4.17),
            (57.4, 7.02),
        ),
    },
    "fivemensmorris": {
        "baseline": _row(
            (0.2, 0.6), (1.6, 1.2), (1.2, 0.98), (22.4, 4.27), (14.2, 5.9), (54.0, 7.27), (36.0, 6.81)
        ),
        "version 1": _row(
            (39.6, 13.11, True), (34.2, 11.29, True), (1.0, 1.34), (28.8, 4.66, True), (9.2, 2.23), (54.2, 7.18),
            (17.4, 6.39),
        ),
        "version 2": _row(
            (57.8, 13.22, True), (45.0, 10.05, True), (0.8, 1.33), (45.0, 4.58, True), (29.0, 5.81, True),
            (73.0, 8.35, True), (51.2, 7.44, True),
        ),
    },
}  # fmt: skip
TABLE_2: dict[str, tuple[Cell, Cell, Cell, Cell]] = {
    "losetictactoe": (Cell(17.8, 2.79), Cell(3.8, 1.54), Cell(6.65, 1.84), Cell(3.2, 1.44)),
    "fivemensmorris": (Cell(575.5, 48.79), Cell(210.4, 8.44), Cell(277.9, 20.97), Cell(496.3, 20.79)),
}
"""Number of pairs in each of the CLASSES, with its standard deviation."""
SEQUENCES = {"losetictactoe": 78.2, "fivemensmorris": 12234.0}
PAIRS = {"losetictactoe": 31.45, "fivemensmorris": 1560.1}
"""Number of pairs with weights above .55."""
FASTER = 21.0
"""Time that version 2 saves in five men's morris, in per cent of the time of version 1."""


# ---- experiments ----

Group = Literal["paper", "all", "none"]
"""Group of symmetries.

"paper" has the 8 symmetries of the square, "all" has all symmetries of the rules (16 in five men's morris), and "none"
has only the identity.
"""

SEED = 2004
VERDICT_SEED, FRESH_SEED, ARMS_SEED = 720076, 1_440_152, 2_880_304
"""Numbers that are added to the seed, so that these runs influenced no choice."""
TEST_MATCHES = 50
LENGTHS = {"losetictactoe": (3,), "fivemensmorris": (3, 5)}
TRAINING_MATCHES = {"losetictactoe": 20, "fivemensmorris": 40}
TITLES = {"losetictactoe": "Lose tic-tac-toe", "fivemensmorris": "Five men's morris"}
OTHERS = {"connect3": "Connect3", "breakthrough": "Breakthrough, 4x5"}
"""Games that are not in the paper, with their titles."""
OUTER_RING = (1, 2, 3, 7, 10, 14, 15, 16)


PAPER, SECOND = SequenceSettings(), SeqPlayerSettings(2)


@dataclass(frozen=True)
class Test:
    """Tournaments of SeqPlayer against each of several opponents.

    weighting  the formula for the weights of the pairs
    has_pairs  whether SeqPlayer gets the learned pairs
    """

    name: str
    player: SeqPlayerSettings
    weighting: str = PAPER.weighting
    opponents: tuple[str, ...] = OPPONENTS
    has_pairs: bool = True


VERSIONS = (Test("version 1", SeqPlayerSettings(1)), Test("version 2", SECOND))


@dataclass(frozen=True)
class Reading:
    """One choice of the settings that the paper leaves open and that differ between the readings.

    words    the reading in words
    best     game -> the moves among which the perfect player chooses, see `Perfect`
    choice   its choice among these moves, see `Graded`; in each run, other choices are fixed
    enforce  the sequences that the Enforcer continues, see `SeqPlayerSettings`
    """

    name: str
    words: str
    best: Mapping[str, Best] = field(hash=False)
    choice: Choice = "drawn"
    enforce: Enforce = "all"

    @property
    def is_text(self) -> bool:
        return self.name == "text"

    @property
    def prefix(self) -> str:
        """The beginning of the ids of all experiments of this reading."""
        return "" if self.is_text else f"{self.name}-"

    @property
    def versions(self) -> tuple[Test, ...]:
        """The tests of both versions of SeqPlayer."""
        return tuple(replace(test, player=replace(test.player, enforce=self.enforce)) for test in VERSIONS)


TEXT = Reading(
    "text",
    "the words of the paper. A perfect player draws its move anew each time: in lose tic-tac-toe among all moves that "
    "lose nothing, which fit the printed baselines; in five men's morris among the fastest wins and slowest losses, "
    "since with all moves that lose nothing the random player would draw too often. The Enforcer continues duets and "
    "solos",
    {"losetictactoe": "value", "fivemensmorris": "fastest"},
)
TABLES = Reading(
    "tables",
    "what the printed tables suggest. In both games a perfect player chooses among the fastest wins and slowest "
    "losses. Within a run it repeats its choice whenever a position or a symmetric one comes again. The Enforcer "
    "continues duets only, the sequences of which an opponent can follow a branch",
    {"losetictactoe": "fastest", "fivemensmorris": "fastest"},
    "symmetric",
    "duets",
)
READINGS = {reading.name: reading for reading in (TEXT, TABLES)}


RANDOM = "random player"
"""The name of the only test of a baseline."""


@dataclass(frozen=True)
class Experiment(Setting):
    """The setting of an experiment.

    learner   the settings of the learner, None for a baseline; its weighting is not used, since every test has its own
    watched   the training matches, if they differ from the paper's; else None
    tests     the tests of the learner; empty for a baseline, which has one test of the random player
    measured  whether a run also examines the learned pairs and sequences: the strategies that they show, the quality of
              their advice, and the classes of sequences
    """

    learner: SequenceSettings | None
    tests: tuple[Test, ...]
    group: Group = "paper"
    best: Best = "value"
    choice: Choice = "drawn"
    training: int = 20
    matches: int = TEST_MATCHES
    measured: bool = False
    watched: Curriculum | None = None

    @property
    def sheet(self) -> str:
        """The name of the game without its options."""
        return self.game.partition(":")[0]

    @property
    def curriculum(self) -> Curriculum:
        plain = self.watched or Curriculum(matches=self.training)
        return replace(plain, expert=self.spec(plain.expert), opponents=tuple(map(self.spec, plain.opponents)))

    def spec(self, opponent: str) -> str:
        """Return the specification of an opponent, as text for catalogue.py."""
        repeated = "" if self.choice == "drawn" else f",choice={self.choice}"
        return opponent if opponent == "random" else f"{opponent}:best={self.best}{repeated}"

    @property
    def size(self) -> int:
        """The number of matches of a run."""
        tested = sum(len(test.opponents) for test in self.tests) if self.learner else len(OPPONENTS)
        return tested * self.matches + (self.curriculum.num_matches if self.learner else 0)

    def describe(self) -> dict[str, Any]:
        """See `Setting.describe`. A drawn choice is left out, as in stores from the time before other choices."""
        described = super().describe() | {"curriculum": asdict(self.curriculum)}
        return {name: value for name, value in described.items() if (name, value) != ("choice", "drawn")}


@dataclass(frozen=True)
class Variant:
    """A variant of the default: it changes the learner, the player that uses the learned pairs, or the game."""

    name: str
    learner: SequenceSettings = PAPER
    player: SeqPlayerSettings = SECOND
    group: Group = "paper"
    options: str = ""  # options of the game
    best: Best | None = None  # None for that of the reading "text"
    choice: Choice = "drawn"
    watched: Curriculum | None = None  # None for the paper's training matches
    has_pairs: bool = True

    def test(self, opponents: tuple[str, ...], version: Literal[1, 2] | None = None) -> Test:
        """Return the test of this variant, or of this variant with another version of SeqPlayer."""
        name = self.name if version is None else arm_test(self.name, version)
        player = self.player if version is None else replace(self.player, version=version)
        return Test(name, player, self.learner.weighting, opponents, self.has_pairs)


def arm_test(arm: str, version: int) -> str:
    """Return the name of the test of one version of SeqPlayer in an arm."""
    return f"{arm}, version {version}"


DEFAULT = "as in the tables"


def _changed(setting: str) -> Variant:
    """Return the variant that changes one setting of the learner or of the player, such as `draws=lose`."""
    name, _, value = setting.partition("=")
    if name in ("enforce", "votes"):
        return Variant(setting, player=replace(SECOND, **{name: value}))  # type: ignore[arg-type]
    return Variant(setting, replace(PAPER, **{name: value}))  # type: ignore[arg-type]


_SENSITIVITY = (
    Variant(DEFAULT),
    *(_changed(f"weighting={name}") for name in WEIGHTS if name != PAPER.weighting),
    *map(_changed, ("draws=lose", "repeated=origins", "repeated=once", "enforce=duets")),
    Variant("enforce=duets, version 1", player=SeqPlayerSettings(1, enforce="duets")),
    *map(_changed, ("enforce=none", "votes=sequences", "contexts=each", "trees=first")),
    *map(_changed, ("locality=moves", "locality=contexts", "locality=both")),
    Variant("no symmetries", group="none"),
)
_LENGTHS = {"losetictactoe": ((1,), (2,), (4,), (2, 3)), "fivemensmorris": ((1,), (3,), (5,), (3, 5, 7))}
_CAPS = ("80", "120")
_EACH = SequenceSettings(lengths=(1, 3), weighting="results", repeated="once", contexts="each")
_KNOWN_GROUND = SeqPlayerSettings(2, enforce="duets", votes="sequences")
_MORE = Curriculum(opponents=("perfect",), cycles=1, matches=8000)
_DEPTHS = {"losetictactoe": 5, "fivemensmorris": 2}  # of verification, in plies; larger depths are too slow


def improvements(game: str) -> tuple[Variant, ...]:
    """Return the variants that may be better than the default against the perfect player.

    They are tested on fresh runs, and never replace the default without notice. The last variants remember each state
    with the sequences of one and three moves that began in it, from the matches that the contestant did not lose. They
    prefer moves that begin many of these sequences. Some variants verify the advice of the pairs by a search. Their
    control is a variant that searches without pairs.
    """
    own, depth = SequenceSettings(lengths=LENGTHS[game]), _DEPTHS[game]
    searching = SeqPlayerSettings(2, verify=depth, fallback="verified")
    listed = [
        Variant(DEFAULT, own),
        Variant("weights by results", replace(own, weighting="results")),
        Variant("relevant facts only", replace(own, locality="contexts")),
        Variant(f"verified {depth} plies deep", own, searching),
        Variant(f"the search of {depth} plies alone", own, searching, has_pairs=False),
        Variant("duets enforced, not solos", own, SeqPlayerSettings(2, enforce="duets")),
        Variant("each state a context", _EACH, _KNOWN_GROUND, "all"),
    ]
    name = f"each state a context, {_MORE.matches} matches of perfect players"
    more = (Variant(name, _EACH, _KNOWN_GROUND, "all", watched=_MORE),) if game == "fivemensmorris" else ()
    return (*listed, *more)


def sensitivity(game: str) -> tuple[Variant, ...]:
    """Return the variants that change one choice that the paper leaves open or calls hand-tuned."""
    own = SequenceSettings(lengths=LENGTHS[game])
    listed = [replace(variant, learner=replace(variant.learner, lengths=own.lengths)) for variant in _SENSITIVITY]
    for lengths in _LENGTHS[game]:
        listed.append(Variant(f"lengths {' and '.join(map(str, lengths))}", SequenceSettings(lengths=lengths)))
    other: Best = "fastest" if TEXT.best[game] == "value" else "value"
    listed.append(Variant(f"perfect: best={other}", own, best=other))
    if game == "fivemensmorris":
        listed += [Variant("all 16 symmetries", own, group="all")]
        listed += [Variant(f"cap of {cap} plies", own, options=f":cap={cap}") for cap in _CAPS]
    return tuple(listed)


_CHOICES: tuple[Choice, ...] = get_args(Choice)
_ENFORCED: tuple[Enforce, ...] = get_args(Enforce)


def arms(game: str) -> tuple[Variant, ...]:
    """Return the arms: variants that are compared with the whole of Table 1 instead of one of its cells.

    The first arms combine each choice of the perfect players with each use of the Enforcer. The drawn choices are among
    the best moves of the reading "text", the other choices among those of the reading "tables". The other arms change
    the reading "tables" in one further point.
    """
    own = SequenceSettings(lengths=LENGTHS[game])
    crossed = [
        Variant(
            f"choice={choice}, enforce={enforce}",
            own,
            SeqPlayerSettings(2, enforce=enforce),
            best=(TEXT if choice == "drawn" else TABLES).best[game],
            choice=choice,
        )
        for choice, enforce in product(_CHOICES, _ENFORCED)
    ]
    base = crossed[_CHOICES.index(TABLES.choice) * len(_ENFORCED) + _ENFORCED.index(TABLES.enforce)]
    changed = [
        replace(base, name="best=value", best="value"),
        replace(base, name="no symmetries", group="none"),
        replace(base, name="weighting=laplace", learner=replace(own, weighting="laplace")),
        replace(base, name="contexts=grown", learner=replace(own, contexts="grown")),
        replace(base, name="locality=contexts", learner=replace(own, locality="contexts")),
        replace(base, name="nearest=1", player=replace(base.player, nearest=1)),
    ]
    if game == "fivemensmorris":
        changed.append(replace(base, name="cap of 80 plies", options=":cap=80"))
    return (*crossed, *(replace(variant, name=f"tables, {variant.name}") for variant in changed))


TEXT_ARM, TABLES_ARM = (f"choice={reading.choice}, enforce={reading.enforce}" for reading in (TEXT, TABLES))
"""The names of the arms that are the readings "text" and "tables"."""


@dataclass(frozen=True)
class Plan:
    """The plan of all experiments of one reading. Their ids are "{reading.prefix}{part}/{game}/{name}".

    runs     number of runs of each experiment; a baseline has twice as many runs, and each of these is a block
    fresh    number of runs of each improvement, and of the experiments that judge the claims
    share    fraction of the paper's number of matches that every tournament has; a value below 1 saves time
    """

    runs: int = 10
    seed: int = SEED
    fresh: int = 20
    share: float = 1.0
    games: tuple[str, ...] = GAMES
    reading: Reading = TEXT

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.games) - set(GAMES)):
            raise ExperimentError(
                f"expected games of the paper ({', '.join(GAMES)}), got {unknown[0]}; choose one of these"
            )

    def core(self) -> list[Experiment]:
        """Return the experiments of Tables 1 and 2."""
        return [*self._tables("core", self.seed, self.runs)]

    def verdicts(self) -> list[Experiment]:
        """Return the experiments of Tables 1 and 2 with fresh seeds and `fresh` runs."""
        return [*self._tables("verdicts", self.seed + VERDICT_SEED, self.fresh)]

    def speed(self) -> list[Experiment]:
        """Return the experiments that measure the times of versions 1 and 2."""
        runs, learners = min(self.runs, 5), [experiment for experiment in self.core() if experiment.learner is not None]
        prefix = self.reading.prefix
        return [replace(learner, id=f"{prefix}speed/{learner.game}", runs=runs, measured=False) for learner in learners]

    def _tables(self, part: str, seed: int, runs: int) -> Iterator[Experiment]:
        reading, part = self.reading, self.reading.prefix + part
        for game in self.games:
            opponents: Any = {"best": reading.best[game], "choice": reading.choice}
            plain = Experiment(f"{part}/{game}/baseline", game, seed, 2 * runs, None, (), **opponents)
            learning = replace(
                plain, id=f"{part}/{game}/learner", runs=runs, learner=SequenceSettings(lengths=LENGTHS[game]),
                tests=reading.versions, measured=True,
            )  # fmt: skip
            yield from map(self._sized, (plain, learning))

    def sensitivity(self) -> list[Experiment]:
        """Return the experiments with the variants of `sensitivity`, against the perfect player."""
        return [*self._variants("sensitivity", sensitivity, self.seed, self.runs)]

    def improvements(self) -> list[Experiment]:
        """Return the experiments with the variants of `improvements`, against the perfect player, with fresh seeds."""
        return [*self._variants("improvements", improvements, self.seed + FRESH_SEED, self.fresh)]

    def arms(self) -> list[Experiment]:
        """Return the experiments of the arms, with both versions against all opponents, with fresh seeds."""
        return [*self._variants("arms", arms, self.seed + ARMS_SEED, self.fresh, both_versions=True)]

    def others(self) -> list[Experiment]:
        """Return the experiments in games that are not in the paper; none unless the plan has both games."""
        seed = self.seed + FRESH_SEED
        experiments = []
        for game in OTHERS if self.games == GAMES else ():
            plain = Experiment(f"others/{game}/baseline", game, seed, self.fresh, None, (), best="fastest")
            tests = [replace(test, opponents=("perfect", "random")) for test in VERSIONS]
            tests.append(replace(tests[1], name="version 2, weights by results", weighting="results"))
            named = replace(plain, id=f"others/{game}/learner")
            learning = replace(named, learner=SequenceSettings(), tests=tuple(tests))
            experiments += [self._sized(plain), self._sized(learning)]
        return experiments

    def _variants(
        self,
        part: str,
        variants_of: Callable[[str], tuple[Variant, ...]],
        seed: int,
        runs: int,
        *,
        both_versions: bool = False,
    ) -> Iterator[Experiment]:
        """Yield the experiments with these variants.

        Variants that learn the same pairs from the same matches share one experiment. Each is one of its tests against
        the perfect player. With `both_versions`, each is a test of either version against all opponents.
        """
        for game in self.games:
            groups: dict[Experiment, list[Variant]] = {}
            for variant in variants_of(game):
                learner = replace(variant.learner, weighting=PAPER.weighting)
                best, sheet, watched = variant.best or TEXT.best[game], game + variant.options, variant.watched
                training = (learner, (), variant.group, best, variant.choice)
                shared = Experiment("", sheet, seed, runs, *training, watched=watched)
                groups.setdefault(shared, []).append(variant)
            for shared, group in groups.items():
                tests = tuple(
                    variant.test(OPPONENTS if both_versions else ("perfect",), version)
                    for variant in group
                    for version in ((1, 2) if both_versions else (None,))
                )
                yield self._sized(replace(shared, id=f"{part}/{game}/{group[0].name}", tests=tests))

    def _sized(self, experiment: Experiment) -> Experiment:
        def part(matches: int) -> int:
            return max(2, round(matches * self.share / 2) * 2)  # an even number, since sides alternate

        watched = experiment.watched and replace(experiment.watched, matches=part(experiment.watched.matches))
        training = part(TRAINING_MATCHES.get(experiment.sheet, 20))
        return replace(experiment, training=training, watched=watched, matches=part(TEST_MATCHES))
