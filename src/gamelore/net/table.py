"""One player at one game: its matches, known by their ids, as they come in from a host. No input or output, no clock.

A host tells what was played and wants one move of one role. A turn that was missed leaves a gap: from then on the match
is *desynchronised*. The table then believes in every position that a joint move unknown to it may have led to, plays on
from the first, drops those that what it is told later rules out, and lets nobody learn from the match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ..errors import GameloreError

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.match import MatchState
    from ..play.player import Finished, Player, Started, Turn
    from ..rules.game import Game

MAX_GUESSES = 500  # unknown joint moves that are tried after a missed turn
MAX_BELIEFS = 32  # of them that are followed
MAX_GRAPH = 500_000_000  # bytes, about; beyond, the graph is made anew between two turns
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


@dataclass(frozen=True, slots=True)
class Ended:
    """How a match ended: `end` is None where it was stopped before, `goals` are by role, None where there are none.

    is_learned: the player is told of it in `Table.learn`; not where the match was cut short or is desynchronised.
    """

    end: str | None
    goals: tuple[int | None, ...]
    is_desynchronised: bool
    is_learned: bool


@runtime_checkable
class LastingPlayer(Protocol):
    """What a player has besides `Player` whose learning lasts, such as learn.lasting.LastingLearner."""

    def num_matches(self, graph: Graph, role: int) -> int:
        """How many matches of this game and role it has behind it, in this process or before."""

    def keep(self, role: int, finished: Finished, match_id: str) -> None:
        """Puts a match that is over on disk, so that it is learned from whatever happens before `end`."""


class Table:
    """A player, its matches of one game, and the positions that they share.

    seed       of the random streams: in match m role r draws from stream(seed, 0, STAGE, m, r), the ply as counter
    max_plies  a match that was stopped after so many ends as "cap"; None for MAX_PLIES of play/match.py

    Calls must not overlap. Every method but `abort` raises GameloreError for a match that does not run here.
    """

    def __init__(self, game: Game, player: Player, *, seed: int = 0, max_plies: int | None = None) -> None:
        from ..play.graph import Graph
        from ..play.match import MAX_PLIES

        self.game = game
        self.player = player
        self.seed = seed
        self.max_plies = MAX_PLIES if max_plies is None else max_plies
        self._graph = Graph(game)
        self._matches: dict[str, _Match] = {}
        self._over: list[tuple[int, Finished]] = []
        self._numbers: defaultdict[int, _Numbers] = defaultdict(_Numbers)

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the matches that run."""
        return tuple(self._matches)

    def start(self, match: str, role: str, number: int | None = None) -> int:
        """Begins a match in which the player has this role (its name, in any case); gives its number.

        number: of the match's random streams; None for the next one: as many as the player has behind it, or as this
        table has begun. What is not learned yet is learned first. Raises GameloreError for an unknown role and for an
        id that is taken, and whatever the player's `begin` raises; then there is no such match.
        """
        place = self._role(role)
        if match in self._matches:
            raise GameloreError(f"expected a new match, got {match}, which runs already; stop or abort it first")
        self.learn()
        numbers = self._numbers[place]
        taken = numbers.take(self._behind(place)) if number is None else numbers.claim(number)
        begun = _Match(place, taken, self._free_lane(), self._key(taken, place), self._state())
        try:
            self.player.begin(place, begun.started())
        except BaseException:
            numbers.leave(taken, False)
            raise
        self._matches[match] = begun
        return taken

    def advance(self, match: str, moves: Sequence[str] | None) -> Advanced:
        """Takes the joint move that was played last, in the order of roles; None or none where there is none yet.

        Moves are told apart by their meaning. The same report again changes nothing, where the joint move is not legal
        once more. One that fits neither this position nor that before it tells of a missed turn.
        """
        running = self._find(match)
        self._bound_graph()
        running.report(moves or ())
        return running.advanced(self.max_plies)

    def choose(self, match: str, deadline: float | None = None) -> str:
        """The player's move as text; the same one again where it is asked twice.

        deadline: until when the player may think, in seconds of `time.monotonic`; None for as long as it wants. The
        player is asked only where there is a choice. Raises GameloreError where the role has no move here, or the
        player gives none of its legal moves.
        """
        running = self._find(match)
        return running.move(self.player, deadline)

    def stop(self, match: str, moves: Sequence[str] | None) -> Ended:
        """Takes the last joint move and ends the match; where its player's learning lasts, it is on disk from now on.

        The player itself is told in `learn`.
        """
        self.advance(match, moves)
        running = self._matches[match]
        finished = running.finished(self.max_plies)
        if finished is not None:
            if isinstance(self.player, LastingPlayer):
                self.player.keep(running.role, finished, match)
            self._over.append((running.role, finished))
        del self._matches[match]
        self._numbers[running.role].leave(running.number, finished is not None)
        goals = running.goals or (None,) * self.game.num_roles
        return Ended(running.end(self.max_plies), goals, running.is_desynchronised, finished is not None)

    def learn(self) -> None:
        """Tells the player of the matches that have ended."""
        while self._over:
            role, finished = self._over.pop(0)
            self.player.end(role, finished)

    def abort(self, match: str) -> None:
        """Forgets a match; nobody learns from it. One that does not run is forgotten already."""
        running = self._matches.pop(match, None)
        if running is not None:
            self._numbers[running.role].leave(running.number, False)

    def _find(self, match: str) -> _Match:
        if match not in self._matches:
            raise GameloreError(f"expected a match that runs, got {match}; start it first")
        return self._matches[match]

    def _role(self, name: str) -> int:
        for place, role in enumerate(self.game.roles):
            if role.lower() == name.strip().lower():
                return place
        raise GameloreError(f"expected one of the roles {', '.join(self.game.roles)}, got {name!r}; take one of them")

    def _behind(self, role: int) -> int:
        return self.player.num_matches(self._graph, role) if isinstance(self.player, LastingPlayer) else 0

    def _key(self, number: int, role: int) -> np.uint64:
        from ..learn.study import STAGE
        from ..play.streams import stream

        return stream(self.seed, 0, STAGE, number, role)

    def _free_lane(self) -> int:
        taken = {running.lane for running in self._matches.values()}
        return next(lane for lane in range(len(taken) + 1) if lane not in taken)

    def _state(self) -> MatchState:
        from ..play.match import MatchState

        return MatchState(self._graph, max_plies=UNENDING)

    def _bound_graph(self) -> None:
        """Lets a graph go that has grown too large; the matches walk their way again on a new one."""
        if _num_bytes(self._graph) <= MAX_GRAPH:
            return
        from ..play.graph import Graph

        self.learn()
        self._graph = Graph(self.game)
        for running in self._matches.values():
            running.beliefs = [_walked(self._graph, _choices(state)) for state in running.beliefs]


class _Numbers:
    """The numbers of one role's matches. That of a match that came to no end is free again."""

    def __init__(self) -> None:
        self._next = 0
        self._used: set[int] = set()  # `_next` or larger

    def take(self, at_least: int) -> int:
        """The first free number."""
        number = max(at_least, self._next)
        while number in self._used:
            number += 1
        return self.claim(number)

    def claim(self, number: int) -> int:
        """This very number, free or not."""
        self._used.add(number)
        return number

    def leave(self, number: int, is_spent: bool) -> None:
        """Its match is over."""
        if not is_spent:
            self._used.discard(number)
        elif number == self._next:
            self._used.discard(number)
            self._next += 1


class _Match:
    """A match that runs: the positions that it may be in, which is one unless a turn was missed."""

    def __init__(self, role: int, number: int, lane: int, key: np.uint64, state: MatchState) -> None:
        self.role = role
        self.number = number
        self.lane = lane
        self.key = key
        self.beliefs = [state]
        self.is_desynchronised = False
        self._ply = 0
        self._chosen: tuple[int, int] | None = None  # at which ply, which move

    def started(self) -> Started:
        """The event for the player that it began."""
        return replace(self.beliefs[0].started(self.number), lanes=np.array([self.lane]))

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


def _num_bytes(graph: Graph) -> int:
    """About how much memory the positions take; what players keep beside them is not in it."""
    each = 8 * graph.game.num_words + 48 + 15 * graph.game.num_roles
    return graph.num_rows * each + graph.successors.nbytes + graph.move_actions.nbytes
