"""The follower process: it knows the legal moves of the present positions while players think. See pool.py.

Players think in worker processes (worker.py), which are busy then, may be late, and may die. The follower has no
player. It derives the legal moves with the plain reasoner from the rules as the host wrote them, without those that
only goals need: a state takes milliseconds, and nothing is compiled. So the process is small, and knows the first legal
moves early.

The process answers the same requests as a worker process, except those about choosing moves and learning. A match of
which a turn was missed is *lost*: its legal moves are unknown from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..errors import GameloreError, IllegalMoveError
from ..game.game import Game, Position, make
from ..gdl import lint
from ..gdl.clauses import RelationGraph, keyword, reachable, signature
from ..gdl.syntax import Rulesheet, parse
from .requests import answer_requests, limits_within, processor_time

Followed: TypeAlias = tuple[tuple[str, ...], int, str | None, bool]
"""The values of `requests.Advanced`; the kind of end is unknown here."""
OF_MOVES = "role", "base", "input", "init", "legal", "next", "terminal"
"""The relations that say who moves, what is legal, and what comes of it."""
NO_GOALS = parse("(<= (goal ?r 0) (role ?r))").rules


class FollowedMatch:
    """A match for one role. Raise GameloreError for an unknown role.

    rules  text of the rules
    legal  the role's legal moves; empty in a terminal position and in a lost match
    ply    number of joint moves so far
    """

    def __init__(self, game: Game, rules: str, role: str) -> None:
        self.game, self.rules = game, rules
        self._role = _role_of(game, role)
        self._position: Position | None = game.start()
        self._before: Position | None = None  # the position before the last joint move
        self.ply = 0

    @property
    def legal(self) -> tuple[str, ...]:
        return tuple(self._position.legal[self._role]) if self._position is not None else ()

    def report(self, moves: Sequence[str]) -> None:
        """Take the host's report of the last joint move. A repeated report changes nothing, see `PlayerMatches`."""
        if not moves or self._position is None:
            return
        after = _after(self._position, moves)
        if after is not None:
            self._before, self._position = self._position, after
            self.ply += 1
        elif self._before is None or _after(self._before, moves) != self._position:
            self._position = None

    def advanced(self) -> Followed:
        """Return the present state of the match."""
        return self.legal, self.ply, None, self._position is None


def _after(position: Position, moves: Sequence[str]) -> Position | None:
    """Return the position after a joint move; None if it is illegal."""
    try:
        return position.play(tuple(moves))
    except IllegalMoveError:
        return None


def _role_of(game: Game, name: str) -> str:
    """Return the role with this name, in upper or lower case. Raise GameloreError if there is none."""
    for role in game.roles:
        if role.lower() == name.strip().lower():
            return role
    raise GameloreError(f"expected one of the roles {', '.join(game.roles)}, got {name!r}; choose one of these")


def without_goals(sheet: Rulesheet) -> Rulesheet:
    """Return the rules that OF_MOVES depend on, and a goal for each role, which a game must have.

    Those of the real goals may be the largest part: sums, or counts of a board.
    """
    needed = reachable(RelationGraph(sheet).bodies, map(keyword, OF_MOVES))
    kept = tuple(rule for rule in sheet.rules if signature(rule.head) in needed)
    return replace(sheet, rules=kept if keyword("goal") in needed else (*kept, *NO_GOALS))


class Follower:
    """All matches that the process follows, by their keys. The methods are those of `worker.Worker`.

    memory           bytes for the process
    prepare_seconds  processor time to get a game ready

    A game is kept while a match with its rules runs, because it remembers every state that it has seen.
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds, rehearses=False)  # the pool ends a late process
        self._prepare_seconds = prepare_seconds
        self._games: dict[str, Game] = {}
        self._matches: dict[str, FollowedMatch] = {}

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    def recognise(self, rules: str, new_games: object = ()) -> dict[str, Any]:
        """Return a key of the rules. Rules under other names count as another game."""
        return {"key": hashlib.sha256(rules.encode()).hexdigest(), "name": "", "is_new": False}

    def prepare(self, rules: str, new_games: object = ()) -> None:
        """Load a game. Raise GDLError for a game that cannot be played."""
        self._game(rules)

    def opening(self, role: str, rules: str) -> tuple[str, ...]:
        """Return the legal moves of a role in the initial position. Raise GameloreError for an unknown role."""
        return FollowedMatch(self._game(rules), rules, role).legal

    def start(
        self,
        match: str,
        role: str,
        rules: str,
        number: int = 0,
        history: Sequence[Sequence[str] | None] = (),
        deadline: float | None = None,
    ) -> tuple[int, Followed]:
        """Begin a match, or continue a match after these joint moves; see `Worker.start`."""
        followed = self._matches[match] = FollowedMatch(self._game(rules), rules, role)
        for moves in history:
            followed.report(moves or ())
        return number, followed.advanced()

    def advance(self, match: str, moves: Sequence[str] | None) -> Followed:
        """Take the host's report of the last joint move, and return the new state of the match."""
        if match not in self._matches:
            raise GameloreError(f"expected a running match, got {match}; start it first")
        self._matches[match].report(moves or ())
        return self._matches[match].advanced()

    def abort(self, match: str) -> None:
        """Forget a match, and its game if no other match plays it. Do nothing for an unknown match."""
        self._matches.pop(match, None)
        self._games = {followed.rules: followed.game for followed in self._matches.values()}

    def _game(self, rules: str) -> Game:
        if rules not in self._games:
            with processor_time(self._prepare_seconds):
                sheet = parse(rules)
                lint.refuse(sheet)  # also for a mistake in what is left out
                self._games[rules] = make(without_goals(sheet), "followed", "reasoner", self._limits)
        return self._games[rules]


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(Follower)


if __name__ == "__main__":
    main()
