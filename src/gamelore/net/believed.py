"""A match that runs, as far as its player knows: the positions that it may be in.

That is one, unless a turn was missed, which leaves a gap: from then on the match is *desynchronised*. Believed in is
then every position that a joint move unknown to the player may have led to; it plays on from the first, and what it is
told later rules others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from typing import TYPE_CHECKING

import numpy as np

from ..errors import GameloreError

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.match import MatchState
    from ..play.player import Finished, Player, Started, Turn

MAX_GUESSES = 500  # unknown joint moves that are tried after a missed turn
MAX_BELIEFS = 32  # of them that are followed
UNENDING = 1 << 30  # plies: a host says when a match is over, see `Advanced.end`


@dataclass(frozen=True, slots=True)
class Advanced:
    """Where a match is, as its player sees it.

    legal               the role's moves in action order; none where the match is over, or nothing fits what was told
    ply                 joint moves so far, a missed one included
    end                 None while it runs, else "terminal", "stuck" or "cap"; after "cap" the host may yet go on
    is_desynchronised   a turn was missed
    """

    legal: tuple[str, ...]
    ply: int
    end: str | None
    is_desynchronised: bool


class BelievedMatch:
    """A match that runs: the positions that it may be in, which is one unless a turn was missed."""

    def __init__(self, graph: Graph, role: int, number: int, lane: int, key: np.uint64) -> None:
        self.role = role
        self.number = number
        self.lane = lane
        self.key = key
        self.beliefs = [_walked(graph, [])]
        self.is_desynchronised = False
        self._ply = 0
        self._chosen: tuple[int, int] | None = None  # at which ply, which move

    def started(self) -> Started:
        """The event for the player that it began."""
        return replace(self.beliefs[0].started(self.number), lanes=np.array([self.lane]))

    def move_to(self, graph: Graph) -> None:
        """Walks its way again on another graph of the game."""
        self.beliefs = [_walked(graph, _choices(state)) for state in self.beliefs]

    def report(self, moves: Sequence[str]) -> None:
        """Takes a joint move; without moves it takes nothing."""
        if not moves or self._goes_on(moves) or self._is_repeated(moves):
            return
        self.is_desynchronised = True
        guesses = chain.from_iterable(self._guesses(state, moves) for state in self.beliefs)
        self.beliefs = list(islice(guesses, MAX_BELIEFS))
        self._goes_on(moves)

    def advanced(self, max_plies: int) -> Advanced:
        """Where the match is."""
        legal = tuple(self.beliefs[0].legal(self.role)) if self.beliefs else ()
        return Advanced(legal, self._ply, self.end(max_plies), self.is_desynchronised)

    def move(self, player: Player, deadline: float | None) -> str:
        """What the player chooses here."""
        legal = self.beliefs[0].legal(self.role) if self.beliefs else []
        if not legal:
            raise GameloreError(f"expected a position with legal moves, got none at ply {self._ply}; ask advance first")
        if self._chosen is None or self._chosen[0] != self._ply:
            self._chosen = self._ply, self._ask(player, deadline)
        choice = self._chosen[1]
        if not 0 <= choice < len(legal):
            raise GameloreError(f"a player chose move {choice} of {len(legal)}, not a legal one; mend its choose()")
        return legal[choice]

    def finished(self, max_plies: int) -> Finished | None:
        """What there is to learn from; None where the match was cut short or is desynchronised."""
        end = self.end(max_plies)
        if end is None or self.is_desynchronised:
            return None
        state = self.beliefs[0]
        if state.end is None:
            state = _walked(state.graph, _choices(state), max_plies=state.ply)
        return replace(state.finished(self.number), lanes=np.array([self.lane]))

    @property
    def goals(self) -> tuple[int | None, ...]:
        """By role; empty where no position fits what was told."""
        return self.beliefs[0].goals if self.beliefs else ()

    def end(self, max_plies: int) -> str | None:
        """None where it runs, for all that is known."""
        from ..play.player import CAP, END_NAMES

        end = self.beliefs[0].end if self.beliefs else None
        return END_NAMES[CAP] if end is None and self._ply >= max_plies else end

    def _goes_on(self, moves: Sequence[str]) -> bool:
        """Makes the joint move wherever it is legal, if it is anywhere, and gives up the other positions."""
        fitting = [(state, joint) for state in self.beliefs if (joint := _joint(state.graph, state.row, moves))]
        for state, joint in fitting:
            for role, choice in enumerate(joint):
                state.submit(role, choice)
        if fitting:
            self.beliefs = [state for state, _ in fitting]
            self._ply = self.beliefs[0].ply
        return bool(fitting)

    def _is_repeated(self, moves: Sequence[str]) -> bool:
        for state in self.beliefs:
            log = state.turn(self.role, self.key).log
            assert log is not None
            if state.ply and _joint(state.graph, int(log.rows[0, -2]), moves) == log.choices[0, -1].tolist():
                return True
        return False

    def _guesses(self, state: MatchState, moves: Sequence[str]) -> Iterator[MatchState]:
        """The match one unknown joint move on, wherever this joint move is legal then."""
        graph = state.graph
        joints = list(islice(self._unknown(state), MAX_GUESSES // len(self.beliefs)))
        rows = graph.successor([state.row] * len(joints), joints) if joints else np.empty(0, np.int32)
        graph.list_moves(rows)
        for joint, row in zip(joints, rows.tolist(), strict=True):
            if _joint(graph, row, moves):
                yield _walked(graph, [*_choices(state), joint])

    def _unknown(self, state: MatchState) -> Iterator[list[int]]:
        """Every joint move, those first that have in them what the player chose here."""
        moves = [list(range(num)) for num in state.graph.num_moves[state.row].tolist()]
        own = moves[self.role]
        chosen = [self._chosen[1]] if self._chosen is not None and self._chosen[0] == state.ply else []
        for part in (chosen, [move for move in own if move not in chosen]):
            moves[self.role] = part
            yield from map(list, product(*moves))

    def _ask(self, player: Player, deadline: float | None) -> int:
        state = self.beliefs[0]
        return int(player.choose(self._turn(state, deadline))[0]) if state.has_choice(self.role) else 0

    def _turn(self, state: MatchState, deadline: float | None) -> Turn:
        """What the player is asked. A match log is read by lanes, so it has all lanes up to that of the match."""
        turn = state.turn(self.role, self.key)
        if self.lane:
            assert turn.log is not None
            rows, choices = (np.repeat(part, self.lane + 1, axis=0) for part in (turn.log.rows, turn.log.choices))
            turn = replace(turn, lanes=np.array([self.lane]), log=replace(turn.log, rows=rows, choices=choices))
        return replace(turn, deadline=deadline) if deadline is not None else turn


def _joint(graph: Graph, row: int, moves: Sequence[str]) -> list[int]:
    """The positions of a joint move within the legal moves of every role; empty where it is not legal here."""
    if len(moves) != graph.game.num_roles:
        return []
    try:
        actions = [graph.game.action(role, move) for role, move in enumerate(moves)]
        return [graph.legal(row, role).tolist().index(action) for role, action in enumerate(actions)]
    except ValueError:  # it is no term, never a move, or not legal here
        return []


def _choices(state: MatchState) -> list[list[int]]:
    """All joint moves of a match so far."""
    log = state.turn(0, 0).log
    assert log is not None
    choices: list[list[int]] = log.choices[0].tolist()
    return choices


def _walked(graph: Graph, choices: Sequence[Sequence[int]], max_plies: int = UNENDING) -> MatchState:
    """A match in which these joint moves were made."""
    from ..play.match import MatchState

    state = MatchState(graph, max_plies=max_plies)
    for joint in choices:
        for role, choice in enumerate(joint):
            state.submit(role, choice)
    return state
