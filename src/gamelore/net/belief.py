"""The matches of one player, as its host reports them, including missed turns.

This module has no I/O and no clock. A match is *desynchronised* after a missed turn: the player does not know the joint
move of that turn. It then keeps up to MAX_BELIEFS positions that are possible after this turn. It chooses its moves in
the first of these positions, and removes positions that contradict later reports. No player learns from a
desynchronised match.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, replace
from functools import lru_cache
from itertools import chain, count, islice, product
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ..errors import GameloreError, GDLError, KnowledgeError, player_bug
from ..learning.session import STAGE
from ..matches.match import MAX_PLIES, MatchState
from ..players.kernel import load_kernels
from ..players.player import CAP, END_NAMES
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from .requests import Advanced, Ended

if TYPE_CHECKING:
    from ..analysis.isomorphism import Renaming
    from ..game.game import Game
    from ..players.player import Finished, Player, Started, Turn

MAX_GUESSES = 500  # maximum number of possible joint moves to try after a missed turn
MAX_BELIEFS = 32  # maximum number of possible positions to keep after a missed turn
UNENDING = 1 << 30  # plies, in effect no limit: the host decides when a match is over, see `Advanced.end`
# bytes of a position graph; a larger one is replaced between two turns. This is less than the default cap at which
# learners that look ahead refuse to begin a match (`learning.td.series`)
MAX_GRAPH = 200_000_000
SLICE = 0.02  # seconds for `PlayerMatches.ponder`; a request waits until it is over, and the batch that is under way
MOST_USED = 1000  # maximum number of used match numbers to remember
RENAMED = 100_000  # maximum number of cached renamed moves of a match

log = logging.getLogger(__name__)


@dataclass(eq=False)
class BelievedMatch:
    """A running match and its possible positions: exactly one unless a turn was missed.

    beliefs    a match state for each possible position
    number     number of the match in its random streams
    lane       lane of the match; different for all running matches of the player
    key        key of the random stream of the match
    max_plies  maximum number of plies; a match of at least this length ends as "cap"
    renaming   translation between the names of the game and the names of the host; None if the names are the same
    """

    beliefs: list[MatchState]
    role: int
    number: int
    lane: int
    key: np.uint64
    max_plies: int
    renaming: InitVar[Renaming | None]
    is_desynchronised: bool = False
    _ply: int = 0
    _chosen: tuple[int, str] | None = None  # ply and text of the move that was chosen last

    def __post_init__(self, renaming: Renaming | None) -> None:
        self._ours = renaming.ours if renaming else str
        self._theirs = lru_cache(RENAMED)(renaming.theirs) if renaming else str

    def started(self, startclock: float | None = None) -> Started:
        """Return the event that tells the player that this match began; for `startclock` see `Started`."""
        return replace(self.beliefs[0].started(self.number), lanes=np.array([self.lane]), startclock=startclock)

    def move_to(self, graph: PositionGraph) -> None:
        """Replay the match on another position graph of the game."""
        self.beliefs = [MatchState.after(graph, state.choices, max_plies=UNENDING) for state in self.beliefs]

    def report(self, moves: Sequence[str]) -> None:
        """Take the host's report of the last joint move. The report is empty at the first turn."""
        moves = [_renamed(self._ours, move) for move in moves]
        if not moves or self._goes_on(moves) or self._is_repeated(moves):
            return
        self.is_desynchronised = True
        guesses = chain.from_iterable(self._guesses(state, moves) for state in self.beliefs)
        self.beliefs = list(islice(guesses, MAX_BELIEFS))
        self._goes_on(moves)

    def advanced(self) -> Advanced:
        """Return the present state of the match."""
        return Advanced(tuple(map(self._theirs, self._legal())), self._ply, self.end, self.is_desynchronised)

    def move(self, player: Player, deadline: float | None) -> str:
        """Return the player's move in the present position. Repeated calls return the same move.

        Raise GameloreError if the player chooses an illegal move. The next call asks it again.
        """
        legal = self._legal()
        if not legal:
            raise GameloreError(
                f"expected a position with legal moves, got none at ply {self._ply}; call advance first"
            )
        if self._chosen is None or self._chosen[0] != self._ply:
            choice = self._ask(player, deadline)
            if not 0 <= choice < len(legal):
                raise GameloreError(
                    f"expected a move index from 0 to {len(legal) - 1}, got {choice}; correct the method choose() of "
                    "the player"
                )
            self._chosen = self._ply, legal[choice]
        return self._theirs(self._chosen[1])

    def ponder(self, player: Player, deadline: float) -> bool:
        """Let the player think about the present position; see `Player.ponder`."""
        return bool(self.beliefs and not self.end and player.ponder(self._turn(self.beliefs[0], deadline)))

    def finished(self) -> Finished | None:
        """Return the finished match for the learner.

        Return None if the match was stopped before its end, or if it is desynchronised.
        """
        if self.end is None or self.is_desynchronised:
            return None
        state = self.beliefs[0]
        if state.end is None:
            state = MatchState.after(state.graph, state.choices, max_plies=state.ply)
        return replace(state.finished(self.number), lanes=np.array([self.lane]))

    @property
    def goals(self) -> tuple[int | None, ...]:
        """The goals by role; empty if no position fits the reports."""
        return self.beliefs[0].goals if self.beliefs else ()

    @property
    def end(self) -> str | None:
        """The kind of end of the match; None while the match runs."""
        end = self.beliefs[0].end if self.beliefs else None
        return END_NAMES[CAP] if end is None and self._ply >= self.max_plies else end

    def _legal(self) -> Sequence[str]:
        return self.beliefs[0].legal(self.role) if self.beliefs else ()

    def _goes_on(self, moves: Sequence[str]) -> bool:
        """Make the joint move in all positions in which it is legal, and remove the other positions.

        If the joint move is illegal in all positions, return False and change nothing.
        """
        fitting = [(state, joint) for state in self.beliefs if (joint := _joint(state.graph, state.row, moves))]
        for state, joint in fitting:
            state.play(joint)
        if fitting:
            self.beliefs = [state for state, _ in fitting]
            self._ply = self.beliefs[0].ply
        return bool(fitting)

    def _is_repeated(self, moves: Sequence[str]) -> bool:
        """Return whether this joint move was the last move before one of the positions."""
        return any(
            state.ply and _joint(state.graph, state.rows[-2], moves) == state.choices[-1] for state in self.beliefs
        )

    def _guesses(self, state: MatchState, moves: Sequence[str]) -> Iterator[MatchState]:
        """Yield the match after each possible missed joint move after which the reported joint move is legal."""
        graph = state.graph
        joints = list(islice(self._unknown(state), MAX_GUESSES // len(self.beliefs)))
        rows = graph.successor([state.row] * len(joints), joints) if joints else np.empty(0, np.int32)
        graph.list_moves(rows)
        for joint, row in zip(joints, rows.tolist(), strict=True):
            if _joint(graph, row, moves):
                yield MatchState.after(graph, [*state.choices, joint], max_plies=UNENDING)

    def _unknown(self, state: MatchState) -> Iterator[list[int]]:
        """Yield every joint move. Joint moves with the player's own choice come first."""
        moves = [list(range(num)) for num in state.graph.num_moves[state.row].tolist()]
        own = moves[self.role]
        # The positions that fit the reports may have different legal moves, so the choice is looked up by its text.
        ply, choice = self._chosen or (None, "")
        legal = state.legal(self.role) if ply == state.ply else []
        chosen = [move for move, text in enumerate(legal) if text == choice]
        for part in (chosen, [move for move in own if move not in chosen]):
            moves[self.role] = part
            yield from map(list, product(*moves))

    def _ask(self, player: Player, deadline: float | None) -> int:
        state = self.beliefs[0]
        return int(player.choose(self._turn(state, deadline))[0]) if state.has_choice(self.role) else 0

    def _turn(self, state: MatchState, deadline: float | None) -> Turn:
        """Return the turn for the player.

        Players use the lane as an index into the log of the turn. So the log has entries for all lanes up to the lane
        of this match.
        """
        turn = state.turn(self.role, self.key)
        if self.lane:
            assert turn.log is not None
            rows, choices = (np.repeat(part, self.lane + 1, axis=0) for part in (turn.log.rows, turn.log.choices))
            turn = replace(turn, lanes=np.array([self.lane]), log=replace(turn.log, rows=rows, choices=choices))
        return replace(turn, deadline=deadline) if deadline is not None else turn


@runtime_checkable
class LastingPlayer(Protocol):
    """Additional methods of a player that stores its knowledge; see learning/session.py."""

    def num_matches(self, graph: PositionGraph, role: int) -> int:
        """Return the number of matches of this game and role that the player has finished, in all processes."""

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        """Write a finished match to disk, so that the player learns from it even after a crash.

        Return False if the player cannot learn from the match, or if it may not store more matches.
        """


@runtime_checkable
class Explaining(Protocol):
    """Additional method of a player that remembers; see memory/remembering.py."""

    def about(self, game: Game, lane: int) -> str:
        """Return what the match in a lane is played with, and why; "" if memory has no part in it."""


class PlayerMatches:
    """All running matches of one player and game, by their ids, on a shared position graph.

    seed       seed of the random streams: role r of match m uses stream(seed, 0, STAGE, m, r), with the ply as counter
    max_plies  maximum number of plies; a match of at least this length ends as "cap"
    max_graph  maximum size of the position graph in bytes; a larger graph is replaced between two turns

    Calls must not overlap. `advance`, `choose` and `stop` raise GameloreError for the id of a match that does not run
    here.
    """

    def __init__(
        self, game: Game, player: Player, *, seed: int = 0, max_plies: int = MAX_PLIES, max_graph: int = MAX_GRAPH
    ) -> None:
        self.game = game
        self.player = player
        self.seed = seed
        self.max_plies = max_plies
        self.max_graph = max_graph
        self._graph = PositionGraph(game)
        self._matches: dict[str, BelievedMatch] = {}
        self._over: list[tuple[int, Finished]] = []
        self._unlearned: list[tuple[int, Finished]] = []  # on disk; their learning failed because of the store
        self._numbers: defaultdict[int, _Numbers] = defaultdict(_Numbers)

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the running matches."""
        return tuple(self._matches)

    def opening(self, role: str, renaming: Renaming | None = None) -> tuple[str, ...]:
        """Return the legal moves of a role in the initial position. Raise GameloreError for an unknown role.

        role: name of the role, in upper or lower case
        """
        index, graph = self._role(role, renaming), self._graph
        legal = (self.game.move_text(index, action) for action in graph.legal(graph.start, index).tolist())
        return tuple(map(renaming.theirs, legal) if renaming else legal)

    def start(
        self,
        match: str,
        role: str,
        number: int | None = None,
        renaming: Renaming | None = None,
        startclock: float | None = None,
        deadline: float | None = None,
    ) -> int:
        """Begin a match for a role, and return the number of the match.

        The player first learns from finished matches. Failures of this learning are only logged. Then it prepares for
        the game, so that nothing is left to compile or to load in its first move. After that, it is told how much of
        the startclock is left. A player that remembers is told all of it, because the names of its rivals must not
        depend on how long it took to load the game.

        Args:
            match: id of the match
            role: name of the role, in upper or lower case
            number: number of the match for its random streams; None for the next free number after the numbers of the
                player's earlier matches
            renaming: translation between the names of the game and the names of the host
            startclock: length in seconds; None if that is not known
            deadline: end of the startclock, in seconds of `time.monotonic`; None if that is not known

        Raises:
            GameloreError: for an unknown role, or for an id in use. Errors of the player's `prepare` and `begin` are
                raised too. After an error, the match does not run.
        """
        index = self._role(role, renaming)
        if match in self._matches:
            raise GameloreError(f"expected a new match, got {match}, which is already running; stop or abort it first")
        self._try_to_learn()
        self._bound_graph()
        numbers = self._numbers[index]
        if number is None:
            player = self.player
            number = numbers.take(player.num_matches(self._graph, index) if isinstance(player, LastingPlayer) else 0)
        else:
            numbers.claim(number)
        lanes = {running.lane for running in self._matches.values()}
        lane = next(lane for lane in count() if lane not in lanes)
        key = stream(self.seed, 0, STAGE, number, index)
        beliefs = [MatchState(self._graph, max_plies=UNENDING)]
        running = BelievedMatch(beliefs, index, number, lane, key, self.max_plies, renaming)
        try:
            self.player.prepare(self.game, index)
            load_kernels()
            if deadline is not None and (startclock is None or not isinstance(self.player, Explaining)):
                startclock = max(0.0, deadline - monotonic())
            self.player.begin(index, running.started(startclock))
        except BaseException:
            numbers.leave(number, False)
            raise
        self._matches[match] = running
        return number

    def advance(self, match: str, moves: Sequence[str] | None) -> Advanced:
        """Take the host's report of the last joint move, and return the new state of the match.

        moves: the joint move in the order of roles; None or empty before the first joint move

        Differences in the spelling of a move do not matter. A repeated report changes nothing, except when the joint
        move is legal in the present position too: then it is made again. If the joint move fits neither the present
        position nor the previous position, a turn was missed.
        """
        running = self._find(match)
        self._bound_graph()
        running.report(moves or ())
        return running.advanced()

    def choose(self, match: str, deadline: float | None = None) -> str:
        """Return the player's move as text. Repeated calls in the same position return the same move.

        The player is asked only if it has a choice.

        deadline: end of the thinking time, in seconds of `time.monotonic`; None for no limit

        Raise GameloreError if the role has no legal move, or if the player chooses an illegal move.
        """
        return self._find(match).move(self.player, deadline)

    def ponder(self, match: str, deadline: float) -> bool:
        """Let the player think about the position of a match until the deadline; return whether it did."""
        return self._find(match).ponder(self.player, deadline)

    def stop(self, match: str, moves: Sequence[str] | None) -> Ended:
        """Take the host's report of the last joint move, and end the match.

        A lasting player writes the finished match to disk in its `keep`. The player learns from the match later, in
        `learn`. Errors of `keep` are raised here, and the match then continues to run.
        """
        self.advance(match, moves)
        running = self._matches[match]
        finished = running.finished()
        is_learned, about = False, ""
        if finished is not None:
            if isinstance(self.player, LastingPlayer):
                is_learned = self.player.keep(running.role, finished, match)
            self._over.append((running.role, finished))
        if isinstance(self.player, Explaining):
            about = self.player.about(self.game, running.lane)
        self._leave(match, finished is not None)
        goals = running.goals or (None,) * self.game.num_roles
        return Ended(running.end, goals, running.is_desynchronised, is_learned, about)

    def learn(self) -> None:
        """Let the player learn once from each finished match, in order. Errors of the player's `end` are raised.

        After an error, the next call continues with the next match. It also repeats each match on disk from which the
        player could not learn because the store failed.
        """
        self._over[:0], self._unlearned = self._unlearned, []
        self._learn()

    def abort(self, match: str) -> None:
        """Remove a running match; the player does not learn from it. Do nothing if the match does not run here."""
        if match in self._matches:
            self._leave(match, False)

    def _leave(self, match: str, is_spent: bool) -> None:
        running = self._matches.pop(match)
        self._numbers[running.role].leave(running.number, is_spent)

    def _learn(self) -> None:
        while self._over:
            role, finished = self._over.pop(0)
            try:
                self.player.end(role, finished)
            except KnowledgeError:
                if isinstance(self.player, LastingPlayer):
                    self._unlearned.append((role, finished))
                raise

    def _try_to_learn(self) -> None:
        """Let the player learn. Failures are logged and do not affect other matches."""
        while self._over:
            try:
                self._learn()
            except MemoryError:
                raise
            except Exception as error:
                bug = player_bug(error)
                is_explained = bug is not None or isinstance(error, GameloreError)
                log.warning("the player could not learn from a match: %s", bug or error, exc_info=not is_explained)

    def _find(self, match: str) -> BelievedMatch:
        if match not in self._matches:
            raise GameloreError(f"expected a running match, got {match}; start it first")
        return self._matches[match]

    def _role(self, name: str, renaming: Renaming | None) -> int:
        names = [role.lower() for role in self.game.roles]
        name = _renamed(renaming.ours, name) if renaming else name
        if name.strip().lower() in names:
            return names.index(name.strip().lower())
        raise GameloreError(
            f"expected one of the roles {', '.join(self.game.roles)}, got {name!r}; choose one of these"
        )

    def _bound_graph(self) -> None:
        """If the position graph has become too large, replace it and replay the running matches on the new graph."""
        if self._graph.num_bytes <= self.max_graph:
            return
        self._try_to_learn()
        self._graph = PositionGraph(self.game)
        for running in self._matches.values():
            running.move_to(self._graph)


class _Numbers:
    """The numbers of the matches of one role. If a match does not finish, its number becomes free again."""

    def __init__(self) -> None:
        self._num_spent = 0
        self._used: set[int] = set()  # numbers that are not free

    def take(self, at_least: int) -> int:
        """Mark the first free number as used and return it. The number is at least `at_least`."""
        least = max(at_least, self._num_spent)
        self._used = {number for number in self._used if number >= least}
        number = next(number for number in count(least) if number not in self._used)
        self.claim(number)
        return number

    def claim(self, number: int) -> None:
        """Mark a number as used, even if it is used already."""
        if len(self._used) >= MOST_USED:  # the caller chooses the numbers, so `take` removes no old ones
            self._used = set(sorted(self._used)[MOST_USED // 2 :])
        self._used.add(number)

    def leave(self, number: int, is_spent: bool) -> None:
        """Note that the match with this number is over.

        is_spent: whether the match finished; otherwise its number becomes free
        """
        if is_spent:
            self._num_spent += 1
        else:
            self._used.discard(number)


def _renamed(ours: Callable[[str], str], text: str) -> str:
    """Return a role or a move with the names of the game. A text that is no term is returned unchanged."""
    with suppress(GDLError):
        return ours(text)
    return text


def _joint(graph: PositionGraph, row: int, moves: Sequence[str]) -> list[int]:
    """Return the indices of a joint move among the roles' legal moves; empty if the joint move is illegal here."""
    if len(moves) != graph.game.num_roles:
        return []
    try:
        actions = [graph.game.action(role, move) for role, move in enumerate(moves)]
        return [graph.legal(row, role).tolist().index(action) for role, action in enumerate(actions)]
    except ValueError:  # a move is no term, not a move of the game, or illegal here
        return []
