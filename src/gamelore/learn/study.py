"""Learning that lasts: a series of matches whose every finished match goes into the knowledge store.

A learner that was stopped, or killed, goes on where it was and becomes what it would have become without the stop:
its random numbers are keyed by (seed, run, stage, match, role), and all it knows is in the store.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import GameloreError, KnowledgeError
from ..play.player import OpponentSettings
from ..rules.symmetry import symmetries
from . import tables
from .features import FeatureValues, Rule, combine
from .knowledge import Knowledge, StoredLearner, Trajectory
from .settings import LearnerSettings

if TYPE_CHECKING:
    from ..rules.game import Game
    from .afterstates import Afterstates
    from .transfer import FinishedMatch
    from .trees import FeatureSpace

STAGE = "learn"  # of the random streams
ANYONE = "*"  # as the opponent of sources: whoever it was
QUICK = 0.1  # seconds for looking into some afterstates, after which more are looked into at once

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sources:
    """Whose features a transfer learner begins with: all learners of these games, so far as they are narrowed down.

    games     names, or hashes of rules
    opponent  whole or just its kind; ANYONE; None: the very opponent that the transfer learner meets
    role      None: every role
    rule      how several sources become one, see `features.combine`
    """

    games: tuple[str, ...]
    opponent: str | None = None
    role: str | None = None
    rule: Rule = "visits"


def study(
    knowledge: Knowledge,
    game: Game,
    role: str,
    settings: LearnerSettings,
    opponent: OpponentSettings,
    num_matches: int,
    *,
    seed: int = 0,
    sources: Sources | None = None,
    progress: Callable[[int], None] | None = None,
) -> StoredLearner:
    """Lets a learner play until it has `num_matches` matches behind it, those of earlier calls included.

    Matches that a player kept for the learner (lasting.py) are learned from first. Every match is in the store before
    the next one begins; its features are there at the end. `progress` is told how many matches the learner has, first
    when it starts. Raises KnowledgeError where the sources teach nothing.
    """
    learner = enrol(knowledge, game, role, settings, opponent, seed=seed, sources=sources)
    if waiting := knowledge.trajectories(learner):
        _learn_waiting(knowledge, game, learner, settings, waiting)
    if progress is not None:
        progress(learner.num_matches)
    if learner.num_matches < num_matches:
        _play(knowledge, game, learner, settings, opponent, num_matches, progress)
    elif learner.features_at != learner.num_matches:
        refresh_features(knowledge, learner)
    return learner


def _learn_waiting(
    knowledge: Knowledge, game: Game, learner: StoredLearner, settings: LearnerSettings, waiting: list[Trajectory]
) -> None:
    from ..play.graph import Graph
    from .learner import Learner
    from .trajectories import learn_waiting

    runs = [(learner.seed, 0)]
    known = Learner(Graph(game), game.roles.index(learner.role), [settings], [knowledge.inherited(learner)], runs)
    known.load(0, knowledge.afterstates(learner))
    learn_waiting(knowledge, learner, known, waiting)


def _play(
    knowledge: Knowledge,
    game: Game,
    learner: StoredLearner,
    settings: LearnerSettings,
    opponent: OpponentSettings,
    num_matches: int,
    progress: Callable[[int], None] | None,
) -> None:
    from .transfer import extract, play_series

    def keep(match: FinishedMatch) -> None:
        knowledge.record_match(learner, match.reward, match.length, match.afterstates)
        if progress is not None:
            progress(learner.num_matches)

    series = play_series(
        game,
        learner.role,
        [settings],
        [knowledge.inherited(learner)],
        [opponent],
        num_matches - learner.num_matches,
        [(learner.seed, 0, STAGE)],
        on_match=keep,
        first_match=learner.num_matches,
        stored=[knowledge.afterstates(learner)],
    )
    knowledge.store_features(learner, extract(series, 0, learner.depth))


def enrol(
    knowledge: Knowledge,
    game: Game,
    role: str,
    settings: LearnerSettings,
    opponent: OpponentSettings,
    *,
    seed: int = 0,
    sources: Sources | None = None,
) -> StoredLearner:
    """The stored learner of this description; a new one takes what its sources know now.

    Raises KnowledgeError where a transfer learner has no sources, or they teach nothing.
    """
    if sources is None and settings.kind == "transfer" and settings.control != "terminal":
        raise KnowledgeError("expected sources for a transfer learner, got none; name games that were learned before")
    against = opponent_text(opponent)
    about = described(game, settings, sources)
    for learner in known_learners(knowledge, game, role, against, seed):
        if tables.to_json(learner.settings) == tables.to_json(about):
            return learner
    teachers, values = taught(knowledge, sources, against, settings.depth) if sources else ([], None)
    return knowledge.learner(
        game,
        role,
        opponent=against,
        settings=about,
        seed=seed,
        inherited=values,
        sources=teachers,
    )


def known_learners(knowledge: Knowledge, game: Game, role: str, against: str, seed: int) -> list[StoredLearner]:
    """The stored learners of this game, role, opponent (as its full text) and seed, of any settings; oldest first."""
    found = knowledge.learners(source=game.rules_hash, role=role, opponent=against)
    return [learner for learner in found if (learner.opponent, learner.seed) == (against, seed)]


def described(game: Game, settings: LearnerSettings, sources: Sources | None) -> dict[str, Any]:
    """All that tells one learner of values from another, as the store keeps it.

    How many symmetries there are is part of it: none on the reasoner, and what is learned is another thing then.
    """
    about = settings.described()
    if settings.symmetry == "all":
        about["symmetries"] = symmetries(game).num
    return about | ({"sources": asdict(sources)} if sources else {})


def other_games(knowledge: Knowledge, game: Game, against: str, depth: int) -> Sources | None:
    """Every other game that was learned against this opponent, or else against anyone; None where there is none."""
    called = Counter(known.name for known in knowledge.games())
    for opponent in (None, ANYONE):
        found = _can_teach(knowledge.learners(opponent=None if opponent else against), depth)
        others = {one.rules_hash: one.game for one in found if one.rules_hash != game.rules_hash}
        if others:
            names = (name if called[name] == 1 else rules_hash for rules_hash, name in others.items())
            return Sources(tuple(names), opponent)
    return None


def _can_teach(learners: Sequence[StoredLearner], depth: int) -> list[StoredLearner]:
    return [one for one in learners if one.num_matches and one.depth == depth and not one.has_sequences]


def taught(
    knowledge: Knowledge,
    sources: Sources,
    against: str,
    depth: int,
    *,
    keep: bool = True,
    seconds: float | None = None,
) -> tuple[list[StoredLearner], FeatureValues]:
    """The learners that a transfer learner against this opponent has as its sources, and what they know now.

    keep     False: what must be worked out for that is not stored
    seconds  how long to work; those that need longer, or cannot be looked into, are left out, and the log says so.
             None: as long as it takes, and none is left out

    Raises KnowledgeError where the sources teach nothing.
    """
    end = None if seconds is None else monotonic() + seconds
    known = [(one, _values(knowledge, one, keep, end)) for one in _teachers(knowledge, sources, against, depth)]
    found = [(teacher, values) for teacher, values in known if values is not None]
    combined = combine([values for _, values in found], sources.rule)
    if not combined:
        games = ", ".join(sorted({teacher.game for teacher, _ in known}))
        raise KnowledgeError(
            f"expected values of features from {games}, got none in {knowledge.path}; let more matches be learned there"
        )
    return [teacher for teacher, _ in found], combined


def _teachers(knowledge: Knowledge, sources: Sources, against: str, depth: int) -> Iterator[StoredLearner]:
    opponent = sources.opponent or against
    for game in sources.games:
        met_by = None if opponent == ANYONE else opponent
        found = _can_teach(knowledge.learners(source=game, role=sources.role, opponent=met_by), depth)
        if not found:
            met = sorted({one.opponent for one in _can_teach(knowledge.learners(source=game), depth)})
            raise KnowledgeError(
                f"expected knowledge of {game} against {opponent}, got none in {knowledge.path} "
                f"(against: {', '.join(met) or 'nobody'}); learn that first, or choose another source opponent"
            )
        yield from found


def _values(knowledge: Knowledge, learner: StoredLearner, keep: bool, end: float | None) -> FeatureValues | None:
    """What a learner can teach now; None where that is not known by the end (monotonic seconds), if there is one."""
    if learner.features_at != learner.num_matches:
        try:
            values = _worked_out(knowledge, learner, end)
        except (GameloreError, MemoryError, TimeoutError) as error:
            if end is None:
                raise
            _log.warning("%s is left out as a source: %s", learner.game, str(error) or type(error).__name__)
            return None
        if not keep:
            return values
        knowledge.store_features(learner, values)
    return knowledge.feature_values(learner)


def refresh_features(knowledge: Knowledge, learner: StoredLearner) -> None:
    """Works out a learner's feature values from the afterstates in the store; no match is played."""
    knowledge.store_features(learner, _worked_out(knowledge, learner))


def _worked_out(knowledge: Knowledge, learner: StoredLearner, end: float | None = None) -> FeatureValues:
    """Raises TimeoutError where the end (monotonic seconds) comes before."""
    from ..games import load
    from ..play.graph import Graph
    from .learner import Learner
    from .transfer import learned_features
    from .trees import feature_space

    graph = Graph(load(knowledge.rules(learner)))
    settings = LearnerSettings(symmetry=learner.settings.get("symmetry", "none"))
    known = Learner(graph, graph.game.roles.index(learner.role), [settings])
    known.load(0, knowledge.afterstates(learner))
    if end is not None:
        _look_into(feature_space(graph, known.role, learner.depth), known.table.lane(0)[0], end)
    return learned_features(known, 0, learner.depth)


def _look_into(space: FeatureSpace, afterstates: Afterstates, end: float) -> None:
    """Has a space find out about these, which it remembers. Raises TimeoutError where the end comes before."""
    done, size = 0, 1
    while done < len(afterstates):
        begin = monotonic()
        if begin >= end:
            raise TimeoutError(f"{len(afterstates) - done} of {len(afterstates)} afterstates take too long")
        space.ids(afterstates[done : done + size])
        done, size = done + size, 2 * size if monotonic() - begin < QUICK else 1


def opponent_text(opponent: OpponentSettings) -> str:
    """An opponent as one text, the same for the same opponent; `play.roster.player` reads it."""
    if opponent.kind == "random":
        return "random"
    key = f",hash_key={opponent.hash_key}" if opponent.filler == "hashed" else ""
    return f"{opponent.kind}:filler={opponent.filler},epsilon={float(opponent.epsilon)}{key}"
