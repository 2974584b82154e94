"""Studies: a learner of values plays a series of matches, or a learner of sequences watches tournaments.

Every match, or tournament, is stored before the next one begins. The same call again continues a study, and does
nothing if the study is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, KnowledgeError
from ..matches.lockstep import run_lockstep
from ..matches.opponents import Opponent, OpponentSettings
from ..players.player import Finished, Player, Started, Turn
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from .sequences.seqlearner import Curriculum, Score, Seated, SeqLearner, SequenceSettings, Tournaments, score, watch
from .sequences.seqplayer import TIERS, SeqPlayer, SeqPlayerSettings
from .session import STAGE, Session, ValueSession, match_rows, patterns_of, starting
from .sources import Sources, TaughtValues, enrol
from .store.knowledge import KnowledgeStore
from .store.schema import ALL_ROLES, MatchRow, StoredLearner
from .td.initial_values import LearnerSettings, Symmetric
from .td.learner import Learner
from .td.series import check_estimate, learned_features

if TYPE_CHECKING:
    from ..game.game import Game


class Opposition(NamedTuple):
    """The players of the other roles, where they are not opponents of B&S.

    name     their name as the opponent of a learner
    players  a player for each role; that of the learner's role never plays
    """

    name: str
    players: Sequence[Player]


def study(
    knowledge: KnowledgeStore,
    game: Game,
    role: str,
    settings: LearnerSettings,
    opponent: OpponentSettings | Opposition,
    num_matches: int,
    *,
    seed: int = 0,
    sources: Sources | None = None,
    taught_by: TaughtValues | None = None,
    progress: Callable[[int], None] | None = None,
) -> StoredLearner:
    """Let a learner play until it has `num_matches` matches, including those of earlier calls.

    The learner first learns from matches that were kept. Every match is stored before the next match begins, and the
    feature values are stored at the end. `sources` and `taught_by`: see `enrol`. `progress` is called with the
    learner's number of matches at the start and after each match. Raises KnowledgeError if the sources have no feature
    values.
    """
    against = opponent.name if isinstance(opponent, Opposition) else opponent
    with starting(knowledge) as started:
        stored = enrol(knowledge, game, role, settings, against, seed=seed, sources=sources, taught_by=taught_by)
        started.append(stored)
        session = ValueSession.of(knowledge, stored, game, settings)
        if isinstance(opponent, Opposition):
            seats = list(opponent.players)
        else:
            seats = [Opponent(opponent)] * game.num_roles
            rest = max(0, num_matches - stored.num_matches)
            check_estimate(game, session.learner.role, [(settings, knowledge.inherited(stored), opponent)], rest)
    seats[session.learner.role] = session
    _play(session.learner.graph, seats, seed, stored, num_matches, progress)
    _store_features(knowledge, stored, session.learner)
    return stored


SELF = "self"
"""The name of the opponent of learners that play against each other; no player has this name."""


def study_self(
    knowledge: KnowledgeStore,
    game: Game,
    settings: LearnerSettings,
    num_matches: int,
    *,
    seed: int = 0,
    sources: Sources | None = None,
    taught_by: TaughtValues | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[StoredLearner]:
    """Let learners of all roles play against each other until they have `num_matches` matches; see `study`.

    A match is stored for all of them in one transaction. Raises KnowledgeError if they have different numbers of
    matches, because some of them learned elsewhere.
    """
    about: dict[str, Any] = {"seed": seed, "sources": sources, "taught_by": taught_by}
    graph = PositionGraph(game)
    with starting(knowledge) as learners:
        learners.extend(enrol(knowledge, game, role, settings, SELF, **about) for role in game.roles)
        sessions = [ValueSession.of(knowledge, stored, game, settings, graph) for stored in learners]
        if len({stored.num_matches for stored in learners}) > 1:
            counts = ", ".join(f"{stored.role} {stored.num_matches}" for stored in learners)
            raise KnowledgeError(
                f"{knowledge.path}: expected learners with the same number of matches against themselves, got "
                f"{counts}; learn with another seed"
            )
    _play(graph, [_Together(knowledge, sessions)] * game.num_roles, seed, learners[0], num_matches, progress)
    for stored, session in zip(learners, sessions, strict=True):
        _store_features(knowledge, stored, session.learner)
    return learners


class _Together(Player):
    """The learners of all roles as one player, which stores what they learn from a match in one transaction."""

    def __init__(self, knowledge: KnowledgeStore, sessions: Sequence[ValueSession]) -> None:
        self._knowledge = knowledge
        self._sessions = sessions

    def begin(self, role: int, started: Started) -> None:
        self._sessions[role].begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        return self._sessions[turn.role].choose(turn)

    def end(self, role: int, finished: Finished) -> None:
        if role == len(self._sessions) - 1:  # the match loop calls `end` for all roles, in their order
            with self._knowledge.writing():
                for number, session in enumerate(self._sessions):
                    session.end(number, finished)


def _play(
    graph: PositionGraph,
    seats: Sequence[Player],
    seed: int,
    stored: StoredLearner,
    num_matches: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Play the matches of a study that a learner has not played yet."""
    tell, first = progress or (lambda _: None), stored.num_matches
    tell(first)
    if first < num_matches:
        keys = [stream(seed, 0, STAGE)]
        run_lockstep(
            graph, seats, keys, num_matches - first, first_match=first, on_end=lambda _: tell(stored.num_matches)
        )


def _store_features(knowledge: KnowledgeStore, stored: StoredLearner, learner: Learner) -> None:
    """Store the learner's feature values if it has learned since they were computed."""
    if stored.features_at != stored.num_matches:
        knowledge.store_features(stored, learned_features(learner, 0, stored.depth))


def study_sequences(
    knowledge: KnowledgeStore,
    game: Game,
    settings: SequenceSettings | None = None,
    curriculum: Curriculum | None = None,
    *,
    player: Callable[[str], Player],
    symmetry: Symmetric = "all",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> StoredLearner:
    """Let a learner of sequences watch the tournaments of its curriculum that it has not watched in earlier calls.

    Every tournament is stored before the next tournament begins. `player` creates a player of the curriculum from its
    name. `progress` is called with the number of watched tournaments, at the start and after each tournament. If a
    player of the curriculum cannot play this game, GameloreError is raised before any match is played or stored.
    """
    settings, curriculum = settings or SequenceSettings(), curriculum or Curriculum()
    tournaments = Tournaments(PositionGraph(game), (seed, 0), player)
    seat_all(tournaments, curriculum)
    patterns = patterns_of(game, symmetry)
    watched = {"symmetry": symmetry, "symmetries": patterns.symmetries.num, "curriculum": asdict(curriculum)}
    about = {"kind": "sequences", **asdict(settings), **watched}
    stored = knowledge.learner(game, ALL_ROLES, opponent=str(curriculum), settings=about, seed=seed)
    session = Session(SeqLearner(patterns, settings), (knowledge, stored))
    tell = progress or (lambda _: None)
    first = stored.num_matches // curriculum.matches
    tell(first)
    for number in range(first, len(curriculum.tournaments)):
        session.record(_in_order(watch(session.learner, tournaments, curriculum, number)))
        tell(number + 1)
    return stored


def _in_order(tournament: Iterable[Seated]) -> list[MatchRow]:
    """Return the matches of a tournament as rows of the store, in the order of the matches."""
    rows: dict[int, MatchRow] = {}
    for seated in tournament:
        rows |= zip(seated.finished.matches.tolist(), match_rows(seated.finished, max(seated.role, 0)), strict=True)
    return [rows[match] for match in sorted(rows)]


def seat_all(tournaments: Tournaments, curriculum: Curriculum) -> None:
    """Call `begin` of every player of a curriculum without a match, as a test.

    Raise GameloreError if a player cannot play the game.
    """
    graph, nowhere = tournaments.graph, np.zeros(0, np.int64)
    for name in dict.fromkeys([curriculum.expert, *curriculum.opponents]):
        try:
            tournaments.named(name).begin(0, Started(graph, nowhere, nowhere))
        except GameloreError as error:
            raise cannot_play(graph.game, name, error) from error


def cannot_play(game: Game, name: str, error: GameloreError) -> GameloreError:
    """Return an error of the same type that names the player, the game and a remedy."""
    instead = "choose other players, for example --expert uct:simulations=200 --against random"
    return type(error)(f"{name} cannot play {game.name}: {error}. To learn sequences, {instead}")


def score_versions(
    learner: SeqLearner, expert: str, matches: int, *, player: Callable[[str], Player], seed: int = 0
) -> Iterator[tuple[str, str, Score]]:
    """Test a random player and both versions of SeqPlayer, each against a random player and against the expert.

    Yield (player, opponent, score) of each test, of `matches` matches; nothing for 0 matches. `player` creates a player
    from its name.
    """
    if not matches:
        return
    tournaments = Tournaments(PositionGraph(learner.patterns.game), (seed, 0), player)
    players: dict[str, Player] = {"random": tournaments.named("random")}
    for version in TIERS:
        settings = SeqPlayerSettings(version)  # type: ignore[arg-type]
        players[f"seqplayer:version={version}"] = SeqPlayer(learner.pairs, settings)
    for name, first in players.items():
        for opponent in _tested_against(expert):
            played = tournaments.play(first, tournaments.named(opponent), matches, f"test/{name}/{opponent}")
            yield name, opponent, score(played)


def num_tests(expert: str) -> int:
    """Return the number of tests of `score_versions`."""
    return (1 + len(TIERS)) * len(_tested_against(expert))


def _tested_against(expert: str) -> list[str]:
    return list(dict.fromkeys(["random", expert]))
