"""Learning sequences that lasts: every finished tournament goes into the knowledge store.

The counterpart of study.py. A learner that was stopped, or killed, watches the tournaments that it has not seen yet and
becomes what it would have become without the stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ..errors import GameloreError, KnowledgeError
from ..play.graph import Graph
from ..play.player import Started
from ..rules.symmetry import Symmetries
from .knowledge import ALL_ROLES, Knowledge, MatchRow, StoredLearner
from .patterns import Patterns
from .seqstore import pair_rows, restored, sequence_rows
from .sequences import SeqLearner, SequenceSettings
from .settings import Symmetric
from .training import Curriculum, Seated, Tournaments, train

if TYPE_CHECKING:
    from ..play.player import Player
    from ..rules.game import Game
    from .contexts import ContextPairs


def study_sequences(
    knowledge: Knowledge,
    game: Game,
    settings: SequenceSettings | None = None,
    curriculum: Curriculum | None = None,
    *,
    symmetry: Symmetric = "all",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> StoredLearner:
    """Lets a learner of sequences watch its curriculum, so far as it has not in earlier calls.

    Every tournament is in the store before the next one begins. `progress` is told how many the learner has watched,
    first when it starts. Raises GameloreError, before a match is played or anything stored, where a player of the
    curriculum cannot play this game.
    """
    settings, curriculum = settings or SequenceSettings(), curriculum or Curriculum()
    tournaments = _NotedTournaments(Graph(game), (seed, 0))
    seat_all(tournaments, curriculum)
    patterns = patterns_of(game, symmetry)
    stored = knowledge.learner(
        game,
        ALL_ROLES,
        opponent=str(curriculum),
        settings=described(settings, curriculum, symmetry, patterns),
        seed=seed,
    )
    done = stored.num_matches // curriculum.matches
    if progress is not None:
        progress(done)
    learner = load_learner(knowledge, stored, game)

    def keep(number: int) -> None:
        knowledge.record_tournament(stored, tournaments.noted(), sequence_rows(learner), pair_rows(learner))
        if progress is not None:
            progress(number)

    train(learner, tournaments, curriculum, first=done, after=keep)
    return stored


def described(
    settings: SequenceSettings, curriculum: Curriculum, symmetry: Symmetric, patterns: Patterns
) -> dict[str, Any]:
    """All that tells one learner of sequences from another, as the store keeps it.

    The number of symmetries is part of it: there are none on the reasoner, and what is learned is another thing then.
    """
    about = {"kind": "sequences", "symmetry": symmetry, "symmetries": patterns.symmetries.num}
    return {**about, **asdict(settings), "curriculum": asdict(curriculum)}


def patterns_of(game: Game, symmetry: Symmetric = "all") -> Patterns:
    """The patterns of a game. Raises GameloreError for another word."""
    if symmetry not in get_args(Symmetric):
        raise GameloreError(
            f"expected symmetry {' | '.join(get_args(Symmetric))}, got {symmetry!r}; choose one of these"
        )
    return Patterns(game, Symmetries.trivial(game) if symmetry == "none" else None)


def seat_all(tournaments: Tournaments, curriculum: Curriculum) -> None:
    """Tells every player of a curriculum that matches begin, none yet. Raises GameloreError where one cannot play."""
    graph, nowhere = tournaments.graph, np.zeros(0, np.int64)
    for name in dict.fromkeys([curriculum.expert, *curriculum.opponents]):
        try:
            tournaments.named(name).begin(0, Started(graph, nowhere, nowhere))
        except GameloreError as error:
            raise cannot_play(graph.game, name, error) from error


def cannot_play(game: Game, name: str, error: GameloreError) -> GameloreError:
    """What to say where a player of a curriculum cannot play a game, and what to do instead."""
    instead = "name others for this curriculum, as in --expert uct:simulations=200 --against random"
    return type(error)(f"{name} cannot play {game.name}: {error}. To learn sequences, {instead}")


def load_learner(knowledge: Knowledge, stored: StoredLearner, game: Game, *, only_pairs: bool = False) -> SeqLearner:
    """What a stored learner of sequences knows, for a game: its own, or one with the same roles, moves and facts.

    only_pairs: leave the SeqTable empty, which takes a while to read and is needed to go on learning.
    Raises KnowledgeError for a learner of something else, and for what the game does not have.
    """
    if not stored.has_sequences:
        raise KnowledgeError(
            f"expected a learner of sequences, got learner {stored.id} ({stored.settings.get('kind')}); {_LEARN}"
        )
    known = {field.name for field in fields(SequenceSettings)}
    settings = {name: value for name, value in stored.settings.items() if name in known}
    settings["lengths"] = tuple(settings.get("lengths", SequenceSettings().lengths))
    patterns = patterns_of(game, stored.settings.get("symmetry", "all"))
    sequences = [] if only_pairs else knowledge.sequences(stored)
    try:
        return restored(patterns, SequenceSettings(**settings), stored.num_matches, sequences, knowledge.pairs(stored))
    except KnowledgeError as error:
        raise KnowledgeError(f"learner {stored.id} ({stored.game}): {error}") from error


def load_pairs(knowledge: Knowledge, stored: StoredLearner, game: Game) -> ContextPairs:
    """Its context pairs alone, which is enough to play by. Raises as `load_learner` does."""
    return load_learner(knowledge, stored, game, only_pairs=True).pairs


def newest(knowledge: Knowledge, game: Game) -> StoredLearner:
    """The learner of the game's sequences that was made last. Raises KnowledgeError where none has learned any."""
    found = [one for one in knowledge.learners(source=game.rules_hash, role=ALL_ROLES) if one.num_matches]
    if not found:
        raise KnowledgeError(f"{knowledge.path}: expected learned sequences of {game.name}, got none; {_LEARN}")
    return found[-1]


_LEARN = "learn them first (gamelore learn GAME --learner sequences)"


class _NotedTournaments(Tournaments):
    """Notes how matches ended."""

    def __init__(self, graph: Graph, key: tuple[int | str, ...]) -> None:
        super().__init__(graph, key)
        self._noted: dict[int, MatchRow] = {}

    def play(self, first: Player, second: Player, num_matches: int, stage: str) -> Iterator[Seated]:
        """See `Tournaments.play`."""
        for seated in super().play(first, second, num_matches, stage):
            finished = seated.finished
            goals = np.maximum(finished.goals[:, max(seated.role, 0)], 0)  # a goal that the rules do not give counts 0
            rows = zip(finished.matches.tolist(), goals.tolist(), finished.plies.tolist(), strict=True)
            self._noted |= {match: MatchRow(float(goal), plies) for match, goal, plies in rows}
            yield seated

    def noted(self) -> list[MatchRow]:
        """The matches since this was last asked, in their order."""
        noted, self._noted = self._noted, {}
        return [noted[match] for match in sorted(noted)]
