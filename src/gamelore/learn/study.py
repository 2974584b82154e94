"""Learning that lasts: a series of matches whose every finished match goes into the knowledge store.

A learner that was stopped, or killed, goes on where it was and becomes what it would have become without the stop:
its random numbers are keyed by (seed, run, stage, match, role), and all it knows is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import KnowledgeError
from ..play.player import OpponentSettings
from ..rules.symmetry import symmetries
from . import tables
from .features import FeatureValues, Rule, combine
from .knowledge import Knowledge, StoredLearner
from .settings import LearnerSettings

if TYPE_CHECKING:
    from ..rules.game import Game
    from .transfer import FinishedMatch

STAGE = "learn"  # of the random streams


@dataclass(frozen=True)
class Sources:
    """Whose features a transfer learner begins with: all learners of these games, so far as they are narrowed down.

    games     names, or hashes of rules
    opponent  whole or just its kind; None: the very opponent that the transfer learner meets
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

    Every match is in the store before the next one begins; its features are there at the end. `progress` is told
    how many matches the learner has, first when it starts. Raises KnowledgeError where the sources teach nothing.
    """
    learner = enrol(knowledge, game, role, settings, opponent, seed=seed, sources=sources)
    if progress is not None:
        progress(learner.num_matches)
    if learner.num_matches < num_matches:
        _play(knowledge, game, learner, settings, opponent, num_matches, progress)
    elif learner.features_at != learner.num_matches:
        refresh_features(knowledge, learner)
    return learner


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
    described = _described(game, settings, sources)
    known = knowledge.learners(source=game.rules_hash, role=role, opponent=against)
    text = tables.to_json(described)
    for learner in known:
        if (learner.opponent, learner.seed, tables.to_json(learner.settings)) == (against, seed, text):
            return learner
    teachers = list(_teachers(knowledge, sources, against, settings.depth)) if sources else []
    return knowledge.learner(
        game,
        role,
        opponent=against,
        settings=described,
        seed=seed,
        inherited=_taught(knowledge, teachers, sources.rule) if sources else None,
        sources=teachers,
    )


def _described(game: Game, settings: LearnerSettings, sources: Sources | None) -> dict[str, Any]:
    """All that tells one learner of values from another, as the store keeps it.

    How many symmetries there are is part of it: none on the reasoner, and what is learned is another thing then.
    """
    about = settings.described()
    if settings.symmetry == "all":
        about["symmetries"] = symmetries(game).num
    return about | ({"sources": asdict(sources)} if sources else {})


def _teachers(knowledge: Knowledge, sources: Sources, against: str, depth: int) -> Iterator[StoredLearner]:
    opponent = sources.opponent or against
    for game in sources.games:
        found = knowledge.learners(source=game, role=sources.role, opponent=opponent)
        found = [one for one in found if one.num_matches and one.depth == depth and not one.has_sequences]
        if not found:
            met = sorted({one.opponent for one in knowledge.learners(source=game) if not one.has_sequences})
            raise KnowledgeError(
                f"expected knowledge of {game} against {opponent}, got none in {knowledge.path} "
                f"(against: {', '.join(met) or 'nobody'}); learn that first, or choose another source opponent"
            )
        yield from found


def _taught(knowledge: Knowledge, teachers: Sequence[StoredLearner], rule: Rule) -> FeatureValues:
    for teacher in teachers:
        if teacher.features_at != teacher.num_matches:
            refresh_features(knowledge, teacher)
    values = combine([knowledge.feature_values(teacher) for teacher in teachers], rule)
    if not values:
        games = ", ".join(sorted({teacher.game for teacher in teachers}))
        raise KnowledgeError(
            f"expected values of features from {games}, got none in {knowledge.path}; let more matches be learned there"
        )
    return values


def refresh_features(knowledge: Knowledge, learner: StoredLearner) -> None:
    """Works out a learner's feature values from the afterstates in the store; no match is played."""
    from ..games import load
    from ..play.graph import Graph
    from .learner import Learner
    from .transfer import learned_features

    graph = Graph(load(knowledge.rules(learner)))
    settings = LearnerSettings(symmetry=learner.settings.get("symmetry", "none"))
    known = Learner(graph, graph.game.roles.index(learner.role), [settings])
    known.load(0, knowledge.afterstates(learner))
    knowledge.store_features(learner, learned_features(known, 0, learner.depth))


def opponent_text(opponent: OpponentSettings) -> str:
    """An opponent as one text, the same for the same opponent; `play.roster.player` reads it."""
    if opponent.kind == "random":
        return "random"
    key = f",hash_key={opponent.hash_key}" if opponent.filler == "hashed" else ""
    return f"{opponent.kind}:filler={opponent.filler},epsilon={float(opponent.epsilon)}{key}"
