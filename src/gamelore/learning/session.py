"""Sessions: learners that are stored after every match or tournament, so that a killed process loses little work.

A `Session` is a learner in memory together with its rows in the store. Sessions are used in two ways:

    study.py         `gamelore learn`: series of matches of learners of values, and tournaments that a learner of
                     sequences watches
    LastingLearner   a player for matches over the network, for `gamelore play` and for the lab

A learner of values that one of them began can be continued by another. The whole knowledge of a learner is in the
store, and random numbers are keyed by (seed, run, stage, match, role). Therefore a learner that was stopped or killed
learns the same as without the stop.

A match of a learner of values has three steps. The process may be killed at any point:

    begin   the learner is read from the store, or added to it. It first learns from matches that a killed process kept
            without learning from them
    keep    the match has ended, and is stored as a trajectory. This takes little time, so the player can reply soon
    end     the learner learns from the match. One transaction stores the new values and removes the trajectory, so that
            the learner learns from the match only once

A learner of sequences learns from whole tournaments. Each tournament is stored in one transaction.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import Symmetries
from ..errors import GameloreError, KnowledgeError, check_word
from ..matches.match import MatchState, match_records
from ..matches.opponents import Kind as OpponentKind
from ..matches.opponents import OpponentSettings, opponent_settings, opponent_text
from ..players.player import CAP, END_NAMES, Finished, Player, Started, Turn
from ..players.position_graph import PositionGraph
from ..players.uct import prepare_search
from .sequences.patterns import Patterns
from .sequences.seqlearner import SeqLearner, SequenceSettings
from .sequences.seqplayer import SeqPlayer, SeqPlayerSettings
from .sources import Enrolment, Sources, other_games, role_of, taught
from .store.features import FeatureValues
from .store.knowledge import KnowledgeStore, default_path
from .store.schema import ALL_ROLES, LearnedRows, MatchRow, StoredLearner, Trajectory
from .td.initial_values import Kind, LearnerSettings, Symmetric
from .td.learner import Learner, search_on
from .td.series import check_growth, looks_ahead

if TYPE_CHECKING:
    from ..game.game import Game

STAGE = "learn"
"""The stage in the keys of the random streams, for learners of values."""
UNKNOWN = "unknown"  # the name of the opponent if none is given
# time limit before the first move for computing the feature values of sources that were found automatically
SOURCE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Learns(Protocol):
    """A learner that can be read from rows of the store and written to them."""

    def restore(self, learned: LearnedRows, num_matches: int) -> None:
        """Replace the knowledge by these rows, which were stored after `num_matches` matches."""

    def changes(self) -> LearnedRows:
        """Return the rows that must be stored after learning, see `KnowledgeStore.record`."""


L = TypeVar("L", bound=Learns)
Shelf: TypeAlias = tuple[KnowledgeStore, StoredLearner]
"""A store and a learner that is stored in it."""


class Session(Generic[L]):
    """A learner in memory, together with its rows in the store.

    shelf      the store and the stored learner; None: the learner is not stored and does not learn
    is_stale   whether the learner may differ from the store, so that it must be read again
    """

    def __init__(self, learner: L, shelf: Shelf | None) -> None:
        self.learner = learner
        self.shelf = shelf
        self._restore()

    def _restore(self) -> None:
        """Replace what the learner knows by its rows in the store."""
        if self.shelf is not None:
            knowledge, stored = self.shelf
            knowledge.restore(stored, self.learner.restore)
        self.is_stale = False

    @property
    def num_matches(self) -> int:
        """Number of matches that the learner has played."""
        return self.shelf[1].num_matches if self.shelf else 0

    def record(self, matches: Sequence[MatchRow], trajectory: int | None = None, match: str | None = None) -> None:
        """Store matches, and the changes that the learner made after them, in one transaction.

        Raises KnowledgeError in the same cases as `KnowledgeStore.record`. After an error the session is stale.
        """
        assert self.shelf is not None
        knowledge, stored = self.shelf
        self.is_stale = True  # until the transaction succeeds
        knowledge.record(stored, matches, self.learner.changes(), trajectory=trajectory, match=match)
        self.is_stale = False


@contextmanager
def starting(knowledge: KnowledgeStore | None) -> Iterator[list[StoredLearner]]:
    """Yield a list for the learners that start in this context. If an error ends it, delete the new ones.

    Learners that were stored before, or that have matches, are not deleted.
    """
    before = knowledge.numbers() if knowledge else []
    started: list[StoredLearner] = []
    try:
        yield started
    except BaseException:
        new = [stored.id for stored in started if stored.id not in before]
        if knowledge and new:
            with knowledge.writing():
                for stored in knowledge.learners(ids=new):
                    if not stored.num_matches and not knowledge.trajectories(stored):
                        knowledge.delete([stored.id])
        raise


def match_rows(finished: Finished, role: int) -> list[MatchRow]:
    """Return finished matches as rows of the store. The reward of a match without a goal value is 0."""
    goals = np.maximum(finished.goals[:, role], 0).tolist()
    return [MatchRow(float(goal), plies) for goal, plies in zip(goals, finished.plies.tolist(), strict=True)]


# learners of values, match by match


class ValueSession(Session[Learner], Player):
    """A learner of values for one role of a game on a graph. It learns from each match when the match ends.

    kept       (choices as bytes, number of the trajectory, its id) of each match that was kept and whose `end` was not
               called yet. The number is None if the learner has already learned from the match
    unstored   number of matches that ended in this process and were neither stored nor learned from
    counting   whether the replies of the opponents are counted. This expands the positions below each of them, so it is
               not done during matches over the network
    """

    def __init__(
        self, learner: Learner, shelf: Shelf | None, before: ValueSession | None = None, *, counting: bool = False
    ) -> None:
        super().__init__(learner, shelf)
        self.counting = counting
        self.kept: list[tuple[bytes, int | None, str]] = before.kept if before else []
        self.unstored: int = before.unstored if before else 0

    @classmethod
    def of(
        cls,
        knowledge: KnowledgeStore,
        stored: StoredLearner,
        game: Game,
        settings: LearnerSettings,
        graph: PositionGraph | None = None,
    ) -> ValueSession:
        """Return the session of a stored learner. It first learns from all matches that were kept.

        graph: the graph of the matches; a new one if it is None
        """
        role = role_of(knowledge, stored, game)
        inherited = knowledge.inherited(stored)
        begin = [playing(settings, inherited)], [inherited], [(stored.seed, 0)]
        learner = Learner(graph or PositionGraph(game), role, *begin, [known_opponent(stored.opponent)])
        session = cls(learner, (knowledge, stored), counting=True)
        session.catch_up()
        return session

    @property
    def num_matches(self) -> int:
        """See `LastingLearner.num_matches`."""
        return super().num_matches + sum(number is not None for _, number, _ in self.kept) + self.unstored

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`. Raises GameloreError if lookahead in earlier matches has filled the graph."""
        if looks_ahead(self.learner.settings[0]):
            check_growth(started.graph)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. The same learner plays in all lanes."""
        return self.learner.choose(replace(turn, lanes=np.zeros_like(turn.lanes)))

    def end(self, role: int, finished: Finished) -> None:
        """See `Player.end`. Learns from the matches one after another."""
        for match in each_match(finished):
            self.learn(match)

    def keep(self, finished: Finished, match_id: str) -> bool:
        """See `LastingLearner.keep`."""
        if self.shelf is None:
            return False
        knowledge, stored = self.shelf
        record = match_records(finished, (), with_states=False)[0]
        try:
            number = knowledge.keep_match(stored, match_id, record.moves, END_NAMES[finished.ends[0]])
        except KnowledgeError:
            self.is_stale = True
            raise
        self.kept.append((_played(finished), number, match_id))
        return True

    def learn(self, finished: Finished) -> None:
        """Learn from one match, whether it was kept or not."""
        index = self._index(finished)
        if self.shelf is None:
            self.pass_over(finished)
        elif index is None:
            self._take_in(finished)
        elif self.kept[index][1] is not None:
            self._take_in(finished, *self.kept[index][1:])
        if index is not None:
            del self.kept[index]

    def pass_over(self, finished: Finished) -> None:
        """Do not learn from this match now. If the match was kept, the learner learns from it later."""
        self.unstored += self._index(finished) is None

    def catch_up(self) -> None:
        """Learn from the matches that another process kept but did not learn from, in the order of the matches."""
        if self.shelf is None:
            return
        knowledge, stored = self.shelf
        waiting = {trajectory.number: trajectory for trajectory in knowledge.trajectories(stored)}
        ids = {(number, trajectory.match) for number, trajectory in waiting.items()}
        self.kept[:] = [(played, n if (n, match) in ids else None, match) for played, n, match in self.kept]
        for number in sorted(waiting.keys() - {number for _, number, _ in self.kept}):
            if (reason := self._failure(waiting[number])) is not None:
                match = waiting[number].match
                _log.warning("match %r is left out and learner %d does not learn from it: %s", match, stored.id, reason)
                knowledge.forget_trajectory(stored, number, match)

    def _failure(self, waiting: Trajectory) -> object:
        """Learn from a match that was kept, and return None.

        If the match cannot be replayed or needs too much memory, return the reason.
        """
        try:
            try:
                finished = replayed(self.learner.graph, waiting.moves, waiting.end)
            except GameloreError as error:
                return error
            self._take_in(finished, waiting.number, waiting.match)
        except MemoryError:
            self._restore()  # the learner may have learned a part of the match
            return "there is not enough memory"
        return None

    def _take_in(self, finished: Finished, trajectory: int | None = None, match: str | None = None) -> None:
        """Learn from a match, and store what was learned."""
        learner = self.learner
        self.is_stale = True  # until the match is stored
        if finished.graph is not learner.graph:
            finished = replayed(learner.graph, finished.choices[0].tolist(), END_NAMES[finished.ends[0]])
        learner.end(learner.role, finished)
        if self.counting:
            learner.count(finished)
        self.record(match_rows(finished, learner.role), trajectory, match)

    def _index(self, finished: Finished) -> int | None:
        """Return the index in `kept` of a match with the same choices as this match, or None."""
        played = _played(finished)
        return next((index for index, (kept, *_) in enumerate(self.kept) if kept == played), None)


def _played(finished: Finished) -> bytes:
    """Return the choices of one match as bytes. They do not depend on the graph."""
    return finished.choices[0, : finished.plies[0]].astype(np.int32).tobytes()


def replayed(graph: PositionGraph, moves: Sequence[Sequence[int | str]], end: str) -> Finished:
    """Return the finished match with these moves. Raise GameloreError if it cannot be played.

    moves  for each ply, a move of each role, as text or as index of a legal move
    end    the word for the end of the match, see END_NAMES
    """
    match = MatchState.after(graph, moves, max_plies=len(moves) + (end != END_NAMES[CAP]))
    if match.end != end:
        raise GameloreError(f"expected a match that ends as {end} after {len(moves)} plies, got {match.end}")
    return match.finished()


def each_match(finished: Finished) -> Iterator[Finished]:
    """Yield each of the matches by itself, in lane 0."""
    for i, plies in enumerate(finished.plies.tolist()):
        yield Finished(
            graph=finished.graph,
            lanes=np.zeros(1, np.int64),
            matches=finished.matches[[i]],
            plies=finished.plies[[i]],
            rows=finished.rows[[i], : plies + 1],
            choices=finished.choices[[i], :plies],
            goals=finished.goals[[i]],
            ends=finished.ends[[i]],
        )


def playing(settings: LearnerSettings, values: FeatureValues | None) -> LearnerSettings:
    """Return the settings with which a learner plays: a transfer learner without values plays as a baseline learner."""
    if settings.needs_values and values is None:
        return replace(settings, kind="baseline", control=None, equivalence=None, turns=0)
    return settings


# learners of values as players


class StoredValuePlayer(Player):
    """A stored learner of values as a player of its role that neither learns nor explores."""

    def __init__(self, knowledge: KnowledgeStore, stored: StoredLearner, game: Game) -> None:
        self.role = role_of(knowledge, stored, game)
        about = f"{stored.settings.get('kind')} after {stored.num_matches} matches against {stored.opponent}"
        self.spec = f"{stored.game} {stored.role} {about}, seed {stored.seed}"
        self._stored = stored
        self._inherited = knowledge.inherited(stored)
        self._learned = knowledge.learned(stored)
        self._learner: Learner | None = None

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. Raise GameloreError for another game or role than that of the learner."""
        game, stored = turn.graph.game, self._stored
        if (game.rules_hash, turn.role) != (stored.rules_hash, self.role):
            raise GameloreError(
                f"expected {stored.role} of {stored.game}, which learner {stored.id} has learned, got "
                f"{game.roles[turn.role]} of {game.name}; give this player that role"
            )
        return self.on(turn.graph).choose(replace(turn, lanes=np.zeros_like(turn.lanes)))

    def on(self, graph: PositionGraph) -> Learner:
        """Return the learner on a graph of its game."""
        if self._learner is None or self._learner.graph is not graph:
            names = {field.name for field in fields(LearnerSettings)}
            given = {name: value for name, value in self._stored.settings.items() if name in names}
            settings = playing(LearnerSettings(**given), self._inherited)
            begin = [settings], [self._inherited], [(self._stored.seed, 0)]
            self._learner = Learner(graph, self.role, *begin, [known_opponent(self._stored.opponent)])
            self._learner.restore(self._learned, self._stored.num_matches)
            self._learner.stop_exploring()
        return self._learner


class LastingLearner(Player):
    """A player that has a learner of B&S in the store for every game and role that it plays.

    kind             "baseline", "transfer", "lookahead" or "oracle"; the oracle needs an opponent of B&S
    knowledge        file of the store; None: the user's store
    opponent         the opponent from which it learns, see `full_opponent`
    seed             part of the learner's identity
    source           for "transfer": the names of the source games, or the hashes of their rules, joined by "+". None:
                     all other games in the store that were learned against this opponent, or if there are none,
                     against any opponent. Games whose feature values cannot be computed within SOURCE_SECONDS are left
                     out, and if the learner needs replies, games without them, see `sources.has_replies`. Without a
                     source game it begins like a baseline learner. The sources of a stored learner never change
    source_opponent  opponent of the sources; None: the learner's own opponent
    learn            False: the store is not changed, and the learner does not explore
    quota            maximum size of the store in bytes; a larger store is not changed, and the player stops learning
    search           seconds per move for an additional search (`learner.search_on`), within the deadline; 0: no search
    settings         see `LearnerSettings`

    Several matches may run at once. The learner learns from them in the order in which they end. Only one process at a
    time can continue a learner: a second one gets a KnowledgeError from `end`, and then reads the learner again. What
    both have kept is learned from once, by one of them. Any method may raise KnowledgeError if the store cannot be read
    or written, or if sources given by name have no feature values. `begin` raises GameloreError for a graph that
    lookahead has filled beyond the cap of `td.series`; earlier matches are stored by then. Callers that replace a large
    graph between matches, such as `play_matches`, avoid the error with the default cap.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        knowledge: str | Path | None = None,
        opponent: str = UNKNOWN,
        seed: int = 0,
        source: str | None = None,
        source_opponent: str | None = None,
        learn: bool = True,
        quota: int | None = None,
        search: float = 0.0,
        **settings: object,
    ) -> None:
        self.settings = LearnerSettings(kind, **settings)  # type: ignore[arg-type]
        self.path = Path(knowledge) if knowledge is not None else default_path()
        self.opponent = full_opponent(opponent)
        self.seed = seed
        self.sources = Sources(tuple(source.split("+")), source_opponent) if source else None
        self.learns = learn
        self.quota = quota
        self.search = search
        if source and kind != "transfer":
            raise GameloreError(
                f"expected sources only for the transfer learner, got sources for {kind}; leave them out"
            )
        if source_opponent and not source:
            raise GameloreError(
                f"expected a source together with source_opponent={source_opponent}, got none; name the source games"
            )
        if quota is not None and quota < 0:
            raise GameloreError(
                f"expected a quota of at least 0 bytes, got {quota}; choose another value, or leave the option out"
            )
        if not 0.0 <= search < float("inf"):
            raise GameloreError(
                f"expected a search time of at least 0 seconds, got {search}; choose another value, or leave the "
                "option out"
            )
        self._opened: KnowledgeStore | None = None
        self._sessions: dict[tuple[str, int], ValueSession] = {}
        self._warned = False

    def open(self) -> None:
        """Open the store, or create it. Without this call, the first match opens it."""
        self._store()

    def close(self) -> None:
        """Close the store; the next call opens it again."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None
        for session in self._sessions.values():
            session.is_stale = True

    # methods of a player

    def prepare(self, game: Game, role: int) -> None:
        """See `Player.prepare`. Only an additional search compiles anything; `begin` does all other work."""
        if self.search:
            prepare_search(game)

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`. Reads the learner or adds it to the store, which may take some time."""
        self._session(started.graph, role).begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        session = self._session(turn.graph, turn.role)
        choices = session.choose(turn)
        if not self.search:
            return choices
        return search_on(session.learner, replace(turn, lanes=np.zeros_like(turn.lanes)), choices, self.search)

    def end(self, role: int, finished: Finished) -> None:
        """Learn from the matches that ended, one after another, and store the new values."""
        for match in each_match(finished):
            session = self._any_session(finished.graph, role)
            if self._may_store():
                session.learn(match)
            else:
                session.pass_over(match)

    # methods that other players do not have

    def num_matches(self, graph: PositionGraph, role: int) -> int:
        """Return the number of matches that the learner of this role played.

        These are the matches that it learned from, the matches that were kept, and all others that ended here.
        """
        return self._session(graph, role).num_matches

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        """Store one match that has ended, before `end` is called. So the learner learns from it even after a crash.

        Returns False if the match was not stored, because the learner does not learn or the quota is used up.

        match_id  an id that is unique among all matches of this role. If a match with this id was kept before, for
                  example before a crash, this call and `end` have no effect
        """
        session = self._any_session(finished.graph, role)
        return self._may_store() and session.keep(finished, match_id)

    # sessions, read from the store

    def _any_session(self, graph: PositionGraph, role: int) -> ValueSession:
        """Return the session of a role on any graph of the game."""
        session = self._sessions.get((graph.game.rules_hash, role))
        return self._session(graph, role) if session is None or session.is_stale else session

    def _session(self, graph: PositionGraph, role: int) -> ValueSession:
        """Return the session of a role on this graph."""
        key = (graph.game.rules_hash, role)
        session = self._sessions.get(key)
        if session is None or session.is_stale or session.learner.graph is not graph:
            session = self._sessions[key] = self._read(graph, role, session)
        return session

    def _read(self, graph: PositionGraph, role: int, before: ValueSession | None) -> ValueSession:
        """Return a new session with the current rows of the store. It replaces the session `before`."""
        store = self._store()
        with starting(store) as started:
            stored, values = self._enrolled(store, graph.game, graph.game.roles[role]) if store else (None, None)
            if stored:
                started.append(stored)
            begin = [playing(self.settings, values)], [values], [(self.seed, 0)]
            learner = Learner(graph, role, *begin, [known_opponent(self.opponent)])
        if not self.learns:
            learner.stop_exploring()
        session = ValueSession(learner, (store, stored) if store and stored else None, before)
        if self._may_store():
            session.catch_up()
        return session

    def _enrolled(
        self, store: KnowledgeStore, game: Game, role: str
    ) -> tuple[StoredLearner | None, FeatureValues | None]:
        """Return the stored learner, and the feature values with which it began.

        A new learner is added to the store. If it may not be stored, the first value is None.
        """
        enrolment = Enrolment(game, role, self.settings, self.opponent, self.seed, self.sources)
        stored = enrolment.find(store, any_sources=self._looks_for_sources)
        if stored is None:
            sources, teachers, values = self._beginning(store, game)
            if not self._may_store():
                return None, values
            stored = replace(enrolment, sources=sources).make(store, teachers, values)
        return stored, store.inherited(stored)

    def _beginning(
        self, store: KnowledgeStore, game: Game
    ) -> tuple[Sources | None, Sequence[StoredLearner], FeatureValues | None]:
        """Return (sources, their learners, their feature values) for a new learner."""
        how = self.opponent, self.settings.depth
        if self.sources is not None:
            return self.sources, *taught(store, self.sources, *how, keep=self._may_store())
        if not self._looks_for_sources:
            return None, (), None
        sources = other_games(store, game, *how)
        if sources is not None:
            try:
                values = taught(
                    store, sources, *how, keep=self._may_store(), seconds=SOURCE_SECONDS,
                    needs_replies=self.settings.needs_replies,
                )  # fmt: skip
                return sources, *values
            except KnowledgeError as error:  # the sources have no feature values
                _log.info("%s", error)
        return Sources(()), (), None

    @property
    def _looks_for_sources(self) -> bool:
        return self.settings.needs_values and self.sources is None

    def _store(self) -> KnowledgeStore | None:
        """Return the open store; None if the file does not exist and must not be created."""
        if self._opened is None and (self.learns or self.path.exists()):
            self._opened = KnowledgeStore(self.path, create=self.learns, writable=self.learns)
            weakref.finalize(self, self._opened.close)
        elif self._opened is None:
            self._warn(
                f"{self.path}: this file does not exist and will not be created; the learner plays without knowledge"
            )
        return self._opened

    def _may_store(self) -> bool:
        """Return whether the learner learns and the quota is not used up."""
        store = self._store() if self.learns else None
        if store is not None and self.quota is not None and store.size >= self.quota:
            self._warn(f"{self.path}: the quota of {self.quota} bytes is used up; the learner does not learn any more")
            return False
        return store is not None

    def _warn(self, text: str) -> None:
        """Log a warning, but only the first one."""
        if not self._warned:
            _log.warning("%s", text)
        self._warned = True


def full_opponent(text: str) -> str:
    """Return the text of an opponent in the form in which it is stored.

    For an opponent of B&S such as "egreedy:filler=first,epsilon=0.05", the text with all options is returned, which is
    the text that `gamelore learn` stores. A plus may be used instead of the comma, because a comma would end an option
    of the player. Any other name is returned unchanged. Raises GameloreError for an opponent of B&S with unknown
    options.
    """
    settings = known_opponent(text.replace("+", ","))
    return opponent_text(settings) if settings else text.strip() or UNKNOWN


def known_opponent(text: str) -> OpponentSettings | None:
    """Return the settings of an opponent of B&S given as text. Return None for any other name."""
    is_known = text.partition(":")[0].strip() in get_args(OpponentKind)
    return opponent_settings(text) if is_known else None


# learners of sequences, tournament by tournament


def patterns_of(game: Game, symmetry: Symmetric = "all") -> Patterns:
    """Return the patterns of a game with all symmetries or without any. Raise GameloreError for any other word."""
    check_word("symmetry", symmetry, get_args(Symmetric))
    return Patterns(game, Symmetries.trivial(game) if symmetry == "none" else None)


def load_learner(
    knowledge: KnowledgeStore, stored: StoredLearner, game: Game, *, only_pairs: bool = False
) -> SeqLearner:
    """Return a stored learner of sequences.

    game        the learner's game, or another game with the same roles, moves and facts
    only_pairs  do not read the SeqTable; reading it is slow, and it is needed only to continue learning

    Raises KnowledgeError for a learner of values, and for roles, moves or facts that the game does not have.
    """
    if not stored.has_sequences:
        raise KnowledgeError(
            f"expected a learner of sequences, got learner {stored.id} ({stored.settings.get('kind')}); {_LEARN}"
        )
    names = {field.name for field in fields(SequenceSettings)}
    settings = SequenceSettings(**{name: value for name, value in stored.settings.items() if name in names})
    learner = SeqLearner(patterns_of(game, stored.settings.get("symmetry", "all")), settings)
    try:
        learned = LearnedRows(pairs=knowledge.pairs(stored)) if only_pairs else knowledge.learned(stored)
        learner.restore(learned, stored.num_matches)
    except KnowledgeError as error:
        raise KnowledgeError(f"learner {stored.id} ({stored.game}): {error}") from error
    return learner


def newest(knowledge: KnowledgeStore, game: Game) -> StoredLearner:
    """Return the newest learner of sequences of this game that has watched matches.

    Raise KnowledgeError if there is none.
    """
    for learner in reversed(knowledge.learners(source=game.rules_hash, role=ALL_ROLES)):
        if learner.num_matches:
            return learner
    raise KnowledgeError(f"{knowledge.path}: expected learned sequences of {game.name}, got none; {_LEARN}")


_LEARN = "learn sequences first (gamelore learn GAME --learner sequences)"


class StoredSeqPlayer(Player):
    """SeqPlayer with the pairs of a stored learner. The learner is read at the first match or the first turn.

    knowledge  file of the store; None: the user's store
    learner    number of the learner in the store; None: the newest learner of sequences of the game
    options    see `SeqPlayerSettings`
    """

    def __init__(self, knowledge: str | None = None, learner: int | None = None, **options: object) -> None:
        self.settings = SeqPlayerSettings(**options)  # type: ignore[arg-type]
        self.knowledge = knowledge
        self.learner = learner
        self._read: tuple[Game, SeqPlayer] | None = None

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`. Raises KnowledgeError if the store has no sequences for this game."""
        self.of(started.graph).begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        return self.of(turn.graph).choose(turn)

    def end(self, role: int, finished: Finished) -> None:
        """See `Player.end`."""
        self.of(finished.graph).end(role, finished)

    def of(self, graph: PositionGraph) -> SeqPlayer:
        """Return the player for matches on this graph."""
        game = graph.game
        if self._read is None or self._read[0] is not game:
            with KnowledgeStore(self.knowledge, create=False) as store:
                stored = newest(store, game) if self.learner is None else store.find(self.learner)
                self._read = game, SeqPlayer(load_learner(store, stored, game, only_pairs=True).pairs, self.settings)
        return self._read[1]
