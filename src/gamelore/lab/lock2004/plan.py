"""Lock & Epstein 2004 as data: the experiments with their settings.

An *experiment* is repeated in runs. A run is a training stage and a testing stage (the paper's section 2); a baseline
run has no training, its player is random. Run i of all experiments with one seed shares its random numbers, so the same
matches are watched, whatever is learned from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ...errors import ExperimentError
from ...learn.seqplayer import SeqPlayerSettings
from ...learn.sequences import SequenceSettings
from ...learn.training import Curriculum
from ...learn.weighing import WEIGHTS
from ...play.perfect import Best
from .printed import GAMES, OPPONENTS

Group = Literal["paper", "all", "none"]
"""Symmetries: the 8 of the square that the paper has, all that the rules have (morris: 16), or none."""

SEED = 2004
VERDICT_SEED, FRESH_SEED = 720076, 1_440_152  # added to the seed: runs that nothing was chosen by
TEST_MATCHES = 50
LENGTHS = {"losetictactoe": (3,), "fivemensmorris": (3, 5)}
TRAINING_MATCHES = {"losetictactoe": 20, "fivemensmorris": 40}
TITLES = {"losetictactoe": "Lose tic-tac-toe", "fivemensmorris": "Five men's morris"}
BEST: dict[str, Best] = {"losetictactoe": "value", "fivemensmorris": "fastest"}
"""What the perfect player calls a best move: in morris it must be the fastest win and the slowest loss, or a random one
would draw too often; the printed baselines of lose tic-tac-toe fit any move that loses nothing (readings.md, L&E 4)."""
OTHERS = {"connect3": "Connect3", "breakthrough": "Breakthrough, 4x5"}
"""Games that the authors never saw, with their titles."""
OUTER_RING = (1, 2, 3, 7, 10, 14, 15, 16)


PAPER, SECOND = SequenceSettings(), SeqPlayerSettings(2)


@dataclass(frozen=True)
class Test:
    """Tournaments of SeqPlayer against each of the opponents, with pairs weighed by this formula, or without pairs."""

    name: str
    player: SeqPlayerSettings
    weighting: str = PAPER.weighting
    opponents: tuple[str, ...] = OPPONENTS
    has_pairs: bool = True


VERSIONS = (Test("version 1", SeqPlayerSettings(1)), Test("version 2", SECOND))
RANDOM = "random player"
"""The test of a baseline."""


@dataclass(frozen=True)
class Experiment:
    """What every run of it does.

    learner   None for a baseline; its weighting is that of the tests
    watched   what it learns from, where that is not the paper's training
    tests     empty for a baseline, which is one test of the random player
    measured  whether a run also looks at what was learned: strategies, advice by the solution, classes of sequences
    """

    id: str
    game: str
    seed: int
    runs: int
    learner: SequenceSettings | None
    tests: tuple[Test, ...]
    group: Group = "paper"
    best: Best = "value"
    training: int = 20
    matches: int = TEST_MATCHES
    measured: bool = False
    watched: Curriculum | None = None

    @property
    def sheet(self) -> str:
        """The game without options."""
        return self.game.partition(":")[0]

    @property
    def curriculum(self) -> Curriculum:
        plain = self.watched or Curriculum(matches=self.training)
        return replace(plain, expert=self.spec(plain.expert), opponents=tuple(map(self.spec, plain.opponents)))

    def spec(self, opponent: str) -> str:
        """An opponent as play/roster.py has it."""
        return opponent if opponent == "random" else f"{opponent}:best={self.best}"

    @property
    def size(self) -> int:
        """Matches of a run."""
        tested = sum(len(test.opponents) for test in self.tests) if self.learner else len(OPPONENTS)
        return tested * self.matches + (self.curriculum.num_matches if self.learner else 0)

    @property
    def text(self) -> str:
        """All that a run depends on beside its number, as JSON."""
        settings: dict[str, Any] = asdict(self) | {"curriculum": asdict(self.curriculum)}
        del settings["runs"]
        return json.dumps(settings, sort_keys=True)


@dataclass(frozen=True)
class Variant:
    """One thing changed: of what is learned, of how it is used, or of the game."""

    name: str
    learner: SequenceSettings = PAPER
    player: SeqPlayerSettings = SECOND
    group: Group = "paper"
    options: str = ""  # of the game
    best: Best | None = None  # unless that of BEST
    watched: Curriculum | None = None  # unless that of the paper
    has_pairs: bool = True

    def test(self, opponents: tuple[str, ...]) -> Test:
        return Test(self.name, self.player, self.learner.weighting, opponents, self.has_pairs)


DEFAULT = "as in the tables"
_SENSITIVITY = (
    Variant(DEFAULT),
    *(Variant(f"weighting={name}", SequenceSettings(weighting=name)) for name in WEIGHTS if name != PAPER.weighting),
    Variant("draws=lose", SequenceSettings(draws="lose")),
    Variant("repeated=origins", SequenceSettings(repeated="origins")),
    Variant("repeated=once", SequenceSettings(repeated="once")),
    Variant("enforce=duets", player=SeqPlayerSettings(2, enforce="duets")),
    Variant("enforce=duets, version 1", player=SeqPlayerSettings(1, enforce="duets")),
    Variant("enforce=none", player=SeqPlayerSettings(2, enforce="none")),
    Variant("votes=sequences", player=SeqPlayerSettings(2, votes="sequences")),
    Variant("repeated=once", SequenceSettings(repeated="once")),
    Variant("contexts=each", SequenceSettings(contexts="each")),
    Variant("trees=first", SequenceSettings(trees="first")),
    Variant("locality=moves", SequenceSettings(locality="moves")),
    Variant("locality=contexts", SequenceSettings(locality="contexts")),
    Variant("locality=both", SequenceSettings(locality="both")),
    Variant("votes=sequences", player=SeqPlayerSettings(2, votes="sequences")),
    Variant("enforce=duets", player=SeqPlayerSettings(2, enforce="duets")),
    Variant("enforce=none", player=SeqPlayerSettings(2, enforce="none")),
    Variant("no symmetries", group="none"),
)
_LENGTHS = {"losetictactoe": ((1,), (2,), (4,), (2, 3)), "fivemensmorris": ((1,), (3,), (5,), (3, 5, 7))}
_CAPS = ("80", "120")
_EACH = SequenceSettings(lengths=(1, 3), weighting="results", repeated="once", contexts="each")
_KNOWN_GROUND = SeqPlayerSettings(2, enforce="duets", votes="sequences")
_MORE = Curriculum(opponents=("perfect",), cycles=1, matches=8000)
_DEPTHS = {"losetictactoe": 5, "fivemensmorris": 2}  # of verification, in plies: what can be afforded


def improvements(game: str) -> tuple[Variant, ...]:
    """What is tried to beat the default against the perfect player, on fresh runs; never silently the default.

    The last ones remember each state with the moves that did not lose from it, sequences of one and three moves, and go
    where most of what they remember begins. A search without pairs is the control of one that verifies advice.
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
    if game == "fivemensmorris":
        name = f"each state a context, {_MORE.matches} matches of perfect players"
        listed.append(Variant(name, _EACH, _KNOWN_GROUND, "all", watched=_MORE))
    return tuple(listed)


def sensitivity(game: str) -> tuple[Variant, ...]:
    """What the paper leaves open, or calls hand-tuned, changed one at a time."""
    lengths = LENGTHS[game]
    listed = [replace(one, learner=replace(one.learner, lengths=lengths)) for one in _SENSITIVITY]
    listed += [Variant(f"lengths {_words(some)}", SequenceSettings(lengths=some)) for some in _LENGTHS[game]]
    own = SequenceSettings(lengths=lengths)
    other: Best = "fastest" if BEST[game] == "value" else "value"
    listed += [Variant(f"perfect: best={other}", own, best=other)]
    if game == "fivemensmorris":
        listed += [Variant("all 16 symmetries", own, group="all")]
        listed += [Variant(f"cap of {cap} plies", own, options=f":cap={cap}") for cap in _CAPS]
    return tuple(listed)


def _words(lengths: Iterable[int]) -> str:
    return " and ".join(map(str, lengths))


@dataclass(frozen=True)
class Plan:
    """Makes the experiments, "{part}/{game}/{number or name}".

    runs     of each experiment (baselines: twice as many blocks)
    fresh    runs of each improvement and of what the verdicts rest on
    share    of the paper's number of matches that every tournament has; below 1 for a quick look
    """

    runs: int = 10
    seed: int = SEED
    fresh: int = 20
    share: float = 1.0
    games: tuple[str, ...] = GAMES

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.games) - set(GAMES)):
            raise ExperimentError(f"expected games of the paper, {', '.join(GAMES)}, got {unknown[0]}; choose these")

    def core(self) -> list[Experiment]:
        """Tables 1 and 2."""
        return [*self._tables("core", self.seed, self.runs, measured=True)]

    def verdicts(self) -> list[Experiment]:
        """The same with fresh seeds and more runs."""
        return [*self._tables("verdicts", self.seed + VERDICT_SEED, self.fresh, measured=True)]

    def speed(self) -> list[Experiment]:
        """What version 2 is timed against version 1 with."""
        learners = [one for one in self.core() if one.learner is not None]
        return [replace(one, id=f"speed/{one.game}", runs=min(self.runs, 5), measured=False) for one in learners]

    def _tables(self, part: str, seed: int, runs: int, *, measured: bool) -> Iterator[Experiment]:
        for game in self.games:
            plain = Experiment(f"{part}/{game}/baseline", game, seed, 2 * runs, None, (), best=BEST[game])
            learning = replace(
                plain, id=f"{part}/{game}/learner", runs=runs, learner=SequenceSettings(lengths=LENGTHS[game]),
                tests=VERSIONS, measured=measured,
            )  # fmt: skip
            yield from map(self._sized, (plain, learning))

    def sensitivity(self) -> list[Experiment]:
        """Every variant against the perfect player."""
        found = [self._grouped("sensitivity", game, sensitivity(game), self.seed, self.runs) for game in self.games]
        return [one for some in found for one in some]

    def improvements(self) -> list[Experiment]:
        """Every improvement against the perfect player, on runs of their own."""
        seed = self.seed + FRESH_SEED
        found = [self._grouped("improvements", game, improvements(game), seed, self.fresh) for game in self.games]
        return [one for some in found for one in some]

    def others(self) -> list[Experiment]:
        """Games that the authors never saw, by the default and with weights by results; none in a look at one game."""
        seed = self.seed + FRESH_SEED
        found = []
        for game in OTHERS if self.games == GAMES else ():
            plain = Experiment(f"others/{game}/baseline", game, seed, self.fresh, None, (), best="fastest")
            tests = [replace(test, opponents=("perfect", "random")) for test in VERSIONS]
            tests.append(replace(tests[1], name="version 2, weights by results", weighting="results"))
            named = replace(plain, id=f"others/{game}/learner")
            learning = replace(named, learner=SequenceSettings(), tests=tuple(tests))
            found += [self._sized(plain), self._sized(learning)]
        return found

    def _grouped(self, part: str, game: str, variants: Iterable[Variant], seed: int, runs: int) -> list[Experiment]:
        """Variants that learn the same from the same matches are tests of one experiment."""
        groups: dict[Experiment, list[Variant]] = {}
        for one in variants:
            learner = replace(one.learner, weighting=PAPER.weighting)
            best, sheet = one.best or BEST[game], game + one.options
            shared = Experiment("", sheet, seed, runs, learner, (), one.group, best, watched=one.watched)
            groups.setdefault(shared, []).append(one)
        return [
            self._sized(
                replace(
                    shared,
                    id=f"{part}/{game}/{some[0].name}",
                    tests=tuple(one.test(("perfect",)) for one in some),
                )
            )
            for shared, some in groups.items()
        ]

    def _sized(self, experiment: Experiment) -> Experiment:
        def part(matches: int) -> int:
            return max(2, round(matches * self.share / 2) * 2)  # sides alternate

        watched = experiment.watched and replace(experiment.watched, matches=part(experiment.watched.matches))
        training = part(TRAINING_MATCHES.get(experiment.sheet, 20))
        return replace(experiment, training=training, watched=watched, matches=part(TEST_MATCHES))
