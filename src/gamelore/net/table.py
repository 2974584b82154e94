"""One player at one game: its matches, known by their ids, as they come in from a host. No input or output, no clock.

A host tells what was played and wants one move of one role. A match in which a turn was missed is *desynchronised*, see
believed.py; nobody learns from it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ..errors import GameloreError, KnowledgeError
from .believed import Advanced as Advanced
from .believed import BelievedMatch

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.player import Finished, Player
    from ..rules.game import Game

MAX_GRAPH = 500_000_000  # bytes, about; beyond, the graph is made anew between two turns
MOST_USED = 1000  # numbers of matches that are remembered

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a match ended: `end` is None where it was stopped before, `goals` are by role, None where there are none.

    is_learned: its player's learning lasts, and the match is on disk for it. Not where it was cut short, or is
    desynchronised, nor where the player does not learn now.
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

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        """Puts a match that is over on disk, so that it is learned from whatever happens before `end`.

        False where nothing is to be learned, or nothing may be stored any more.
        """


class Table:
    """A player, its matches of one game, and the positions that they share.

    seed       of the random streams: in match m role r draws from stream(seed, 0, STAGE, m, r), the ply as counter
    max_plies  a match that was stopped after so many ends as "cap"; None for MAX_PLIES of play/match.py
    max_graph  bytes of positions, about, beyond which they are forgotten; None for MAX_GRAPH

    Calls must not overlap. Every method but `abort` raises GameloreError for a match that does not run here.
    """

    def __init__(
        self, game: Game, player: Player, *, seed: int = 0, max_plies: int | None = None, max_graph: int | None = None
    ) -> None:
        from ..play.graph import Graph
        from ..play.match import MAX_PLIES

        self.game = game
        self.player = player
        self.seed = seed
        self.max_plies = MAX_PLIES if max_plies is None else max_plies
        self.max_graph = MAX_GRAPH if max_graph is None else max_graph
        self._graph = Graph(game)
        self._matches: dict[str, BelievedMatch] = {}
        self._over: list[tuple[int, Finished]] = []
        self._unlearned: list[tuple[int, Finished]] = []  # on disk, and the player failed to learn from them
        self._numbers: defaultdict[int, _Numbers] = defaultdict(_Numbers)

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the matches that run."""
        return tuple(self._matches)

    def opening(self, role: str) -> tuple[str, ...]:
        """The first legal moves of a role (its name, in any case). Raises GameloreError for an unknown one."""
        place, graph = self._role(role), self._graph
        return tuple(self.game.move_text(place, action) for action in graph.legal(graph.start, place).tolist())

    def start(self, match: str, role: str, number: int | None = None) -> int:
        """Begins a match in which the player has this role (its name, in any case); gives its number.

        number: of the match's random streams; None for the next one: as many as the player has behind it, or as this
        table has begun. What is not learned yet is learned first; where that fails the log says so. Raises
        GameloreError for an unknown role and for an id that is taken, and whatever the player's `begin` raises; then
        there is no such match.
        """
        place = self._role(role)
        if match in self._matches:
            raise GameloreError(f"expected a new match, got {match}, which runs already; stop or abort it first")
        self._try_to_tell()
        numbers = self._numbers[place]
        taken = numbers.take(self._behind(place)) if number is None else numbers.claim(number)
        begun = BelievedMatch(self._graph, place, taken, self._free_lane(), self._key(taken, place))
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

        The player itself is told in `learn`. Raises what its `keep` raises; the match runs on then.
        """
        self.advance(match, moves)
        running = self._matches[match]
        finished = running.finished(self.max_plies)
        is_learned = False
        if finished is not None:
            if isinstance(self.player, LastingPlayer):
                is_learned = self.player.keep(running.role, finished, match)
            self._over.append((running.role, finished))
        del self._matches[match]
        self._numbers[running.role].leave(running.number, finished is not None)
        goals = running.goals or (None,) * self.game.num_roles
        return Ended(running.end(self.max_plies), goals, running.is_desynchronised, is_learned)

    def learn(self) -> None:
        """Tells the player of the matches that have ended, each once, in their order; raises what its `end` raises.

        The matches after that one are for the next time; so is that one itself, where it is on disk and the player's
        store failed it.
        """
        self._over[:0], self._unlearned = self._unlearned, []
        self._tell()

    def abort(self, match: str) -> None:
        """Forgets a match; nobody learns from it. One that does not run is forgotten already."""
        running = self._matches.pop(match, None)
        if running is not None:
            self._numbers[running.role].leave(running.number, False)

    def _tell(self) -> None:
        while self._over:
            role, finished = self._over.pop(0)
            try:
                self.player.end(role, finished)
            except KnowledgeError:
                if isinstance(self.player, LastingPlayer):
                    self._unlearned.append((role, finished))
                raise

    def _try_to_tell(self) -> None:
        """What goes wrong in learning from some matches is nothing to others."""
        while self._over:
            try:
                self._tell()
            except MemoryError:
                raise
            except Exception as error:
                is_told = isinstance(error, GameloreError)
                log.warning("a match is not learned from: %s", error, exc_info=not is_told)

    def _find(self, match: str) -> BelievedMatch:
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

    def _bound_graph(self) -> None:
        """Lets a graph go that has grown too large; the matches walk their way again on a new one."""
        if _num_bytes(self._graph) <= self.max_graph:
            return
        from ..play.graph import Graph

        self._try_to_tell()
        self._graph = Graph(self.game)
        for running in self._matches.values():
            running.move_to(self._graph)


class _Numbers:
    """The numbers of one role's matches. That of a match that came to no end is free again."""

    def __init__(self) -> None:
        self._num_spent = 0
        self._used: set[int] = set()  # those that would come up again otherwise

    def take(self, at_least: int) -> int:
        """The first free number."""
        least = max(at_least, self._num_spent)
        self._used = {number for number in self._used if number >= least}
        return self.claim(next(number for number in count(least) if number not in self._used))

    def claim(self, number: int) -> int:
        """This very number, free or not."""
        if len(self._used) >= MOST_USED:  # somebody else counts, and not all come here
            self._used = set(sorted(self._used)[MOST_USED // 2 :])
        self._used.add(number)
        return number

    def leave(self, number: int, is_spent: bool) -> None:
        """Its match is over."""
        if is_spent:
            self._num_spent += 1
        else:
            self._used.discard(number)


def _num_bytes(graph: Graph) -> int:
    """About how much memory the positions take; what players keep beside them is not in it."""
    each = 8 * graph.game.num_words + 48 + 15 * graph.game.num_roles
    return graph.num_rows * each + graph.successors.nbytes + graph.move_actions.nbytes
