"""Learners whose learning lasts, as players: whatever they play, wherever, they go on in the knowledge store.

study.py plays a series against one opponent; a `LastingLearner` is asked for moves by whoever plays: a table of the
network, `gamelore play`. Both keep the same learners, and each goes on with what the other one left.

A match goes this way, and the process may be killed at any point of it:

    begin   the learner is read from the store, or made there. Matches that were kept and not learned from, because a
            process was killed between the two, are learned from now
    keep    the match is over: it goes on disk as a trajectory. That is quick, and an answer can go out
    end     the match is learned from. In one transaction its values go into the store and the trajectory goes out, so
            that it is learned from once
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, KnowledgeError
from ..play import roster
from ..play.match import match_records
from ..play.player import END_NAMES, Finished, Opponent, Player, Started, Turn
from ..play.player import Kind as OpponentKind
from . import tables
from .features import FeatureValues
from .knowledge import Knowledge, StoredLearner, default_path
from .learner import Learner
from .settings import Kind, LearnerSettings
from .study import Sources, described, known_learners, opponent_text, other_games, taught
from .trajectories import learn_from, learn_waiting, replayed

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game

UNKNOWN = "unknown"  # the opponent, unless somebody tells who it is
SOURCE_SECONDS = 10.0  # for what sources that nobody named know now; somebody waits for a first move meanwhile

_log = logging.getLogger(__name__)


class LastingLearner(Player):
    """A learner of B&S for every game and role that it plays, kept in the store.

    kind             "baseline", "transfer" or "lookahead"
    knowledge        the store's file; None for the user's own
    opponent         against whom, see `full_opponent`
    seed             the learner's; part of what tells it from others
    source           for transfer: names, or hashes, of the games to begin with, joined by "+". None: every other game
                     in the store that was learned against this opponent, else against any, so far as they can be
                     looked into in SOURCE_SECONDS; where there is none it begins as a baseline learner does. Whatever
                     it began with, it goes on with that
    source_opponent  against whom that was learned; None: this opponent
    learn            False: nothing in the store is changed, and it does not explore
    quota            bytes that the store may take; beyond, nothing more is learned and stored
    search           seconds of a move for a search besides (searching.py), within the deadline of the turn; 0: none
    settings         see `LearnerSettings`

    Several matches may run at once; they are learned from in the order in which they end. One process at a time can go
    on with a learner: another one gets a KnowledgeError, and what is stored stays whole. Any method may raise
    KnowledgeError where the store cannot be read or written, or where sources that were named teach nothing.
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
            raise GameloreError(f"expected sources with the transfer learner only, got {kind}; leave them out")
        if source_opponent and not source:
            raise GameloreError(f"expected a source with source_opponent={source_opponent}, got none; name the games")
        if quota is not None and quota < 0:
            raise GameloreError(f"expected a quota of at least 0 bytes, got {quota}; give another, or leave it out")
        if not 0.0 <= search < float("inf"):
            raise GameloreError(f"expected search of at least 0 seconds, got {search}; give another, or leave it out")
        self._opened: Knowledge | None = None
        self._roles: dict[tuple[str, int], _Role] = {}
        self._warned = False

    def open(self) -> None:
        """Opens the store now, and makes it where it is new, which a first match does otherwise."""
        self._store()

    def close(self) -> None:
        """Lets go of the store; whatever comes after opens it again."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None
        for known in self._roles.values():
            known.is_stale = True

    # as a player

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`. The learner is read, or made; that may take its time."""
        self._role(started.graph, role)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        learner = self._role(turn.graph, turn.role).learner
        asked = replace(turn, lanes=np.zeros_like(turn.lanes))  # one learner plays in all lanes
        choices = learner.choose(asked)
        if not self.search:
            return choices
        from .searching import search_on

        return search_on(learner, asked, choices, self.search)

    def end(self, role: int, finished: Finished) -> None:
        """Learns from the matches that ended, one after the other, and stores what it learned."""
        for one in _each(finished):
            known = self._known(finished.graph, role)
            if self._may_store():
                known.learn(one)
            else:
                known.pass_over(one)

    # more than a player

    def num_matches(self, graph: Graph, role: int) -> int:
        """How many matches this role has behind it: learned from, kept, or ended here without either."""
        return self._role(graph, role).num_matches

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        """Puts one match that ended on disk, so that it is learned from whatever happens; `end` is to come.

        False where it does not: nothing is to be learned, or the quota is used up.

        match_id  tells it from all other matches of this role, whenever they were played. Where a process died, its
                  last match may be kept once more with the same id: then nothing is done, neither now nor in `end`
        """
        known = self._known(finished.graph, role)
        return self._may_store() and known.keep(finished, match_id)

    # from the store

    def _known(self, graph: Graph, role: int) -> _Role:
        """The learner of a role, on whichever graph of the game it is at home."""
        known = self._roles.get((graph.game.rules_hash, role))
        return self._role(graph, role) if known is None or known.is_stale else known

    def _role(self, graph: Graph, role: int) -> _Role:
        """The learner of a role on this very graph."""
        key = (graph.game.rules_hash, role)
        known = self._roles.get(key)
        if known is None or known.is_stale or known.graph is not graph:
            known = self._roles[key] = self._read(graph, role, known)
        return known

    def _read(self, graph: Graph, role: int, before: _Role | None) -> _Role:
        """A learner as it is in the store now; `before` is what it was here so far."""
        store = self._store()
        stored, values = self._enrolled(store, graph.game, graph.game.roles[role]) if store else (None, None)
        learner = Learner(graph, role, [self._playing(values)], [values], [(self.seed, 0)])
        known = _Role(graph, role, learner, before)
        if store is not None and stored is not None:
            learner.load(0, store.afterstates(stored))
            known.shelf = store, stored
            if self._may_store():
                known.catch_up()
        return known

    def _enrolled(self, store: Knowledge, game: Game, role: str) -> tuple[StoredLearner | None, FeatureValues | None]:
        """The stored learner, made where it is new and may be stored; and the values of features it began with."""
        if (stored := self._find(store, game, role)) is not None:
            return stored, store.inherited(stored)
        sources, teachers, values = self._beginning(store, game)
        if not self._may_store():
            return None, values
        stored = store.learner(
            game,
            role,
            opponent=self.opponent,
            settings=described(game, self.settings, sources),
            seed=self.seed,
            inherited=values,
            sources=teachers,
        )
        return stored, store.inherited(stored)

    def _find(self, store: Knowledge, game: Game, role: str) -> StoredLearner | None:
        """The learner to go on with; the oldest, where whatever it began with will do."""
        wanted = self._identity(described(game, self.settings, self.sources))
        known = known_learners(store, game, role, self.opponent, self.seed)
        return next((one for one in known if self._identity(one.settings) == wanted), None)

    def _identity(self, about: dict[str, Any]) -> str:
        left_out = {"sources"} if self._looks_for_sources else set()
        return tables.to_json({key: about[key] for key in about.keys() - left_out})

    def _beginning(
        self, store: Knowledge, game: Game
    ) -> tuple[Sources | None, Sequence[StoredLearner], FeatureValues | None]:
        """What a new learner begins with: its sources, the learners that these are now, and what they teach."""
        how = self.opponent, self.settings.depth
        if self.sources is not None:
            return self.sources, *taught(store, self.sources, *how, keep=self._may_store())
        if not self._looks_for_sources:
            return None, (), None
        sources = other_games(store, game, *how)
        if sources is not None:
            try:
                return sources, *taught(store, sources, *how, keep=self._may_store(), seconds=SOURCE_SECONDS)
            except KnowledgeError as error:  # all that was learned there has no feature
                _log.info("%s", error)
        return Sources(()), (), None

    @property
    def _looks_for_sources(self) -> bool:
        return self._needs_values and self.sources is None

    @property
    def _needs_values(self) -> bool:
        return self.settings.kind == "transfer" and self.settings.control != "terminal"

    def _playing(self, values: FeatureValues | None) -> LearnerSettings:
        """How it plays with what it began with: as a baseline learner where that was nothing."""
        settings = self.settings
        if self._needs_values and values is None:
            settings = replace(settings, kind="baseline", control=None, equivalence=None)
        return settings if self.learns else replace(settings, epsilon=0.0)

    def _store(self) -> Knowledge | None:
        """The open store; None where there is none and none is to be made."""
        if self._opened is None and (self.learns or self.path.exists()):
            self._opened = Knowledge(self.path, create=self.learns, writable=self.learns)
            weakref.finalize(self, self._opened.close)
        elif self._opened is None:
            self._warn(f"{self.path}: no knowledge there, and none is to be made; playing without")
        return self._opened

    def _may_store(self) -> bool:
        store = self._store() if self.learns else None
        if store is not None and self.quota is not None and store.size >= self.quota:
            self._warn(f"{self.path}: the quota of {self.quota} bytes is used up; nothing more is learned")
            return False
        return store is not None

    def _warn(self, text: str) -> None:
        """Into the log, once."""
        if not self._warned:
            _log.warning("%s", text)
        self._warned = True


class _Role:
    """The learner of one role of a game, as it plays on a graph and as it is stored.

    shelf     its store, and what it is there; None: it is in none, and learns nothing
    kept      (what was played, number of the trajectory) of matches that are on disk and not learned from; the number
              is None for one that turned out to be learned from already
    unstored  how many matches ended here and were not learned from
    is_stale  the store knows something else than this one; it is to be read again
    """

    def __init__(self, graph: Graph, role: int, learner: Learner, before: _Role | None) -> None:
        self.graph = graph
        self.role = role
        self.learner = learner
        self.shelf: tuple[Knowledge, StoredLearner] | None = None
        self.kept: list[tuple[bytes, int | None]] = before.kept if before else []
        self.unstored: int = before.unstored if before else 0
        self.is_stale = False

    @property
    def num_matches(self) -> int:
        """See `LastingLearner.num_matches`."""
        learned = self.shelf[1].num_matches if self.shelf else 0
        return learned + sum(number is not None for _, number in self.kept) + self.unstored

    def keep(self, finished: Finished, match_id: str) -> bool:
        """See `LastingLearner.keep`."""
        if self.shelf is None:
            return False
        store, stored = self.shelf
        record = match_records(finished, finished.graph.game.roles, [()])[0]
        try:
            number = store.keep_match(stored, match_id, record.moves, record.end)
        except KnowledgeError:
            self.is_stale = True
            raise
        self.kept.append((_played(finished), number))
        return True

    def learn(self, finished: Finished) -> None:
        """Learns from one match, which is on disk, or not."""
        place = self._place(finished)
        if self.shelf is None:
            self.pass_over(finished)
        elif place is None:
            self._take_in(finished, None)
        elif (number := self.kept[place][1]) is not None:
            self._take_in(finished, number)
        if place is not None:
            del self.kept[place]

    def pass_over(self, finished: Finished) -> None:
        """One match is not learned from; where it is on disk it will be another time."""
        self.unstored += self._place(finished) is None

    def catch_up(self) -> None:
        """Learns from the matches that another process kept, and did not come to learn from."""
        if self.shelf is None:
            return
        store, stored = self.shelf
        left = {trajectory.number: trajectory for trajectory in store.trajectories(stored)}
        self.kept[:] = [(played, number if number in left else None) for played, number in self.kept]
        waiting = [left[number] for number in sorted(left.keys() - {number for _, number in self.kept})]
        self.is_stale = True  # unless all goes well
        learn_waiting(store, stored, self.learner, waiting)
        self.is_stale = False

    def _take_in(self, finished: Finished, trajectory: int | None) -> None:
        """Learns, and stores what was learned."""
        assert self.shelf is not None
        self.is_stale = True  # unless all goes well
        if finished.graph is not self.graph:
            finished = replayed(self.graph, finished.choices[0].tolist(), END_NAMES[finished.ends[0]])
        learn_from(*self.shelf, self.learner, finished, trajectory)
        self.is_stale = False

    def _place(self, finished: Finished) -> int | None:
        """Where among those kept this match stands, or one that was played in the same way."""
        played = _played(finished)
        return next((place for place, (kept, _) in enumerate(self.kept) if kept == played), None)


def full_opponent(text: str) -> str:
    """An opponent as the store knows it.

    One of the roster ("egreedy:filler=first,epsilon=0.05"; a plus will do for the comma, which would end an option) is
    written out in full, so that it is the one that `gamelore learn` learns against; any other name is that name.
    Raises GameloreError for one of the roster with options that it does not have.
    """
    if text.partition(":")[0].strip() not in get_args(OpponentKind):
        return text.strip() or UNKNOWN
    found = roster.player(text.replace("+", ","))
    assert isinstance(found, Opponent)
    return opponent_text(found.settings[0])


def _each(finished: Finished) -> Iterator[Finished]:
    """The matches one by one, as of the only lane."""
    for i, plies in enumerate(finished.plies.tolist()):
        yield Finished(
            graph=finished.graph,
            lanes=np.zeros(1, np.int64),
            matches=finished.matches[i : i + 1],
            plies=finished.plies[i : i + 1],
            rows=finished.rows[i : i + 1, : plies + 1],
            choices=finished.choices[i : i + 1, :plies],
            goals=finished.goals[i : i + 1],
            ends=finished.ends[i : i + 1],
        )


def _played(finished: Finished) -> bytes:
    """What was played in one match, the same on every graph."""
    return finished.choices[0, : finished.plies[0]].astype(np.int32).tobytes()
