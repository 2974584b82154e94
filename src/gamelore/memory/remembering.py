"""The player gamelore with a memory: what it learns about a game is stored, and its next match goes on from there.

A puzzle, a game with one role, needs no lesson: its best match is the solution, which is replayed by the rules before
it is used again, and needs no test.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from ..errors import GameloreError, KnowledgeError
from ..learning.store.knowledge import KnowledgeStore, default_path
from ..learning.store.lesson_rows import Lessons, PlayedMatch
from ..matches.match import match_records
from ..puzzles.portfolio import PuzzleSolution
from ..search.champion import Gamelore, Schooling
from ..search.settings import ChampionSettings, GrowthSettings
from .schooling import GameMemory, MatchMemory

if TYPE_CHECKING:
    from ..game.game import Game
    from ..players.player import Finished, Turn
    from ..players.position_graph import PositionGraph

_REMEMBERED = "an earlier match"  # the method of a solution
_MOST_REPLAYED = 4  # matches, until one of them agrees with the rules
_log = logging.getLogger(__name__)


class Remembering(Gamelore):
    """The player gamelore with a memory.

    Args:
        settings: parameters of the player
        knowledge: file of the store; the user's store if it is None
        quota: maximum size of the store in bytes; nothing more is stored in a larger one
        learn: False uses what is in the store, and does not change it
    """

    def __init__(
        self,
        settings: ChampionSettings | None = None,
        knowledge: str | Path | None = None,
        quota: int | None = None,
        learn: bool = True,
    ) -> None:
        super().__init__(settings, self._memory_of)
        if self.settings.teaching is not None:
            raise GameloreError(
                "expected no option teaching beside knowledge, because a player that remembers learns in its "
                f"startclocks, got teaching={self.settings.teaching}; leave one of them out"
            )
        given, default = (asdict(growth) for growth in (self.settings.growth, GrowthSettings()))
        changed = [f"{name}={value}" for name, value in given.items() if value != default[name]]
        if changed:
            raise GameloreError(
                "expected no parameters of the search beside knowledge, because what is remembered was tested with the "
                f"default ones, got {', '.join(changed)}; leave them out, or play without knowledge"
            )
        self.learns = learn
        self.path = Path(knowledge) if knowledge is not None else default_path()
        self.quota = quota
        self._lessons: Lessons | None = None
        self._teacher: Schooling | None = None  # of the last game without memory, because the store failed

    @property
    def lessons(self) -> Lessons:
        """The lessons in the store, which is opened, or made, now."""
        if self._lessons is None:
            store = KnowledgeStore(self.path, create=self.learns, writable=self.learns)
            self._lessons = Lessons(store, self.quota)
        return self._lessons

    def close(self) -> None:
        """Close the store; the next match opens it again."""
        if self._lessons is not None:
            self._lessons.knowledge.close()
        self._lessons = self._schooling = None
        self._lanes.clear()

    def _memory_of(self, game: Game) -> Schooling:
        """Return what the store says about a game. Without a store, the player learns as one without memory."""
        try:
            return GameMemory(game, self.lessons, self.settings.seed, learns=self.learns)
        except KnowledgeError as error:
            _log.warning("plays without memory: %s", error)
            if self._teacher is None or self._teacher.game is not game:
                self._teacher = self._new_teacher(game)
            return self._teacher

    def _schooling_of(self, game: Game) -> Schooling:
        """See `Gamelore._schooling_of`. If the store fails, the next match tries it again."""
        schooling = super()._schooling_of(game)
        if not isinstance(schooling, GameMemory):
            self._schooling = None
        return schooling

    def _solves(self, turn: Turn) -> bool:
        """See `Gamelore._solves`. Tell the match how much of its startclock this took."""
        begin, has_solved = process_time(), super()._solves(turn)
        lane = self._lane(turn.graph.game, int(turn.lanes[0]))
        is_startclock = not turn.plies[0] and lane.chosen is None
        if has_solved and is_startclock and isinstance(lane.prepared, MatchMemory):
            lane.prepared.solved += process_time() - begin
        return has_solved

    def _earlier_solution(self, game: Game) -> PuzzleSolution | None:
        """See `Gamelore._earlier_solution`. A match that contradicts the rules is none."""
        try:
            matches = self.lessons.best_matches(game.rules_hash, _MOST_REPLAYED)
        except KnowledgeError as error:
            _log.warning("does not know its earlier solutions: %s", error)
            return None
        moves = ([joint[0] for joint in match.moves] for match in matches)
        solutions = (PuzzleSolution.of_moves(game, own, _REMEMBERED) for own in moves)
        return next(filter(None, solutions), None)

    def num_matches(self, graph: PositionGraph, role: int) -> int:
        """See `net.belief.LastingPlayer`. Without a store, this is 0."""
        try:
            return self.lessons.num_matches(graph.game.rules_hash, role)
        except KnowledgeError as error:
            _log.warning("does not know its earlier matches: %s", error)
            return 0

    def about(self, game: Game, lane: int) -> str:
        """Return what the match in a lane is played with, and why; "" if memory has no part in it."""
        own = self._lane(game, lane)
        solution, prepared = own.puzzle.solution if own.puzzle is not None else None, own.prepared
        if solution is not None and solution.method == _REMEMBERED:
            return f"the solution of an earlier match (goal {solution.goal})"
        return prepared.about if isinstance(prepared, MatchMemory) else ""

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        """See `net.belief.LastingPlayer`. Store a match; what was learned in its startclock is stored in `end`."""
        if not self.learns or self.lessons.is_full:
            return False
        game = finished.graph.game
        prepared = self._lane(game, int(finished.lanes[0])).prepared
        startclock = prepared.startclock if isinstance(prepared, MatchMemory) else 0
        record = match_records(finished, (), with_states=False)[0]
        goals = tuple(finished.goals[0].tolist())
        match = PlayedMatch(match_id, role, startclock, tuple(map(tuple, record.moves)), goals)
        return self.lessons.add_match(game, match)
