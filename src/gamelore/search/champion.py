"""The strongest player: a search in each match whose trees are kept, and a value that is taught in the startclock.

In a puzzle, a game with one role, it follows the best solution that the search of puzzles/portfolio.py has found, or
that of an earlier match. While this is not known to be the best, a part of the time goes to the tree, too. The mean
goal of the walks through a move is at most the best goal that can be reached after it. So a mean above the goal of the
solution shows that a better end exists there, and then the player makes this move, and searches again from there.

A small game for two roles is solved, see startclock.py. Then a won position is played without a search. In any other
position the search and the values of the replies choose among the moves that keep the value: those that are hard to
answer. In a sum of impartial games, see solver/nimbers.py, a winning move is made without a search. Where there is
none, the player searches, because the other role may not know the theory.

What is taught in the startclock can be remembered: then a `Schooling` of memory/ takes the place of the teacher.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ldexp
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..circuit.playout import num_cores
from ..game.engines import HIGHEST_GOAL
from ..players.kernel import load_kernels
from ..players.player import Finished, Player, Started, Turn
from ..players.position_graph import MIB, memory_cap
from ..players.random_streams import extend
from ..players.uct import FOREST_VARIABLE, OF_THE_CLOCK
from ..puzzles.portfolio import PuzzleSearch, PuzzleSolution
from ..solver.nimbers import ImpartialSum, impartial_sum
from .rounds import Openings
from .settings import MEMORY_MIB, PUZZLE_SHARE, ChampionSettings, GrowthSettings
from .startclock import Pupil, SolvedChoice, Solving, advised, may_be_solved
from .teaching import Teacher, can_be_taught, fact_classes, teaching_key
from .thinking import Growers, Search
from .tree import UNRELATED

if TYPE_CHECKING:
    from ..game.game import Game
    from ..solver.solution import Solution
    from .choice import MoveReport
    from .value import LinearValue

DEFAULT_SIMULATIONS = 10_000
_FAST = 1e6  # walks per second of a search that has not begun yet, at most
_REHEARSED = 32  # walks that load everything that a search needs
_LEAST_MEMORY = 16.0  # MiB of a tree
_MANY_LANES = 64  # trees of further lanes may have to do with less
_MOST_THREADS = 4  # by default: they share a tree, whose lock each of them has for about a fifth of the time
_SEARCH_KEY, _PUZZLE_KEY, _WINNING_KEY = 3, 4, 5  # extend the key of a move, see `players.random_streams`
_SOLVER_SHARE = 0.5  # of the memory, until the game is solved or given up


class Prepared(Protocol):
    """What a player knows and learns for a match: a `Pupil` or a `Teacher`, or what a memory makes of earlier lessons.

    value       a learned value; None if there is none
    growth      parameters of the searches
    assumption  what earlier searches know of the goals of all roles together; see `search.tree.Tree`
    openings    moves of positions that were searched long; None if there are none
    is_done     whether there is nothing more to learn
    """

    @property
    def value(self) -> LinearValue | None: ...
    @property
    def growth(self) -> GrowthSettings: ...
    @property
    def assumption(self) -> int: ...
    @property
    def openings(self) -> Openings | None: ...
    @property
    def is_done(self) -> bool: ...

    def teach(self, deadline: float | None = None) -> None:
        """Go on with learning until it is done, or until the deadline, in seconds of `time.monotonic`."""

    def end(self) -> None:
        """End the match; this may be called several times."""


class Schooling(Protocol):
    """What prepares a player for the matches of a game."""

    @property
    def game(self) -> Game: ...

    def begin(self, startclock: float | None) -> Prepared:
        """Begin a match; `startclock` is the time to learn before the first move, in seconds, None if unknown."""


School: TypeAlias = Callable[["Game"], Schooling]
"""A function that returns what prepares a player for the matches of a game."""


@dataclass
class _Lane:
    """What the player keeps for the matches of a lane, all of one game.

    number    of the lane
    prepared  what the player knows and learns for the match; None in games that cannot be taught
    search    trees that follow the match
    plies     number of plies that these have followed; None if they have not begun
    puzzle    search for solutions, in a game with one role
    chosen    last (ply, move); None before the first
    earlier   solution of a puzzle that the player remembers; None if there is none
    """

    game: Game
    number: int
    prepared: Prepared | None = None
    search: Search | None = None
    plies: int | None = None
    puzzle: PuzzleSearch | None = None
    chosen: tuple[int, int] | None = None
    earlier: PuzzleSolution | None = None

    def begin(self, prepared: Prepared | None, earlier: PuzzleSolution | None) -> None:
        """Begin a match."""
        self.prepared, self.earlier, self.plies, self.chosen = prepared, earlier, None, None
        if self.puzzle is not None:
            self.puzzle.forget()


class Gamelore(Player):
    """Player that searches in a tree of its own for each match, and makes the best move that it found.

    Args:
        settings: parameters
        school: what prepares the player for games that can be taught; by default, a new teacher of each game
    """

    def __init__(self, settings: ChampionSettings | None = None, school: School | None = None) -> None:
        self.settings = settings or ChampionSettings()
        self._school, self._remembers = school or self._new_teacher, school is not None
        self._lanes: dict[int, _Lane] = {}
        self._schooling: Schooling | None = None  # of the last game
        self._solving: Solving | None = None
        self._end_solving: weakref.finalize[[], Gamelore] | None = None
        self._sum: tuple[Game, ImpartialSum | None] | None = None  # of the last game
        self._growers: Growers | None = None  # of the last game; lanes are searched one after another
        self._has_clock = False
        self._is_solvers_turn = False  # to use the next slice

    def begin(self, role: int, started: Started) -> None:
        """See `Player.begin`. The trees of earlier matches are not used again; what was learned is."""
        game = started.graph.game
        self._lanes = {number: lane for number, lane in self._lanes.items() if lane.game is game}
        end = None if started.startclock is None else monotonic() + OF_THE_CLOCK * started.startclock
        if self._may_solve(game) and not (self._has_clock and self.settings.ponder):
            self._solve(game, end)
        prepared = self._prepared_for(game, started.startclock, end)
        earlier = self._earlier_solution(game) if game.num_roles == 1 else None
        for number in started.lanes.tolist():
            lane = self._lane(game, number)
            lane.begin(prepared, earlier)
            if game.num_roles == 1 and self._has_clock and not game.uses_reasoner:
                self._puzzle_of(lane).compile_parts(end)

    def end(self, role: int, finished: Finished) -> None:
        """See `Player.end`."""
        for number in finished.lanes.tolist():
            prepared = self._lane(finished.graph.game, number).prepared
            if prepared is not None:
                prepared.end()

    def _lane(self, game: Game, number: int) -> _Lane:
        """Return what the player keeps for a lane, and forget what it has kept there for another game."""
        lane = self._lanes.get(number)
        if lane is None or lane.game is not game:
            lane = self._lanes[number] = _Lane(game, number)
        return lane

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. A single legal move is made without a search."""
        choices, game = np.zeros(len(turn.rows), np.int32), turn.graph.game
        several = np.flatnonzero(turn.graph.num_moves[turn.rows, turn.role] > 1).tolist()
        lanes = [self._lane(game, int(turn.lanes[index])) for index in several]
        self._load(game, lanes)
        for number, (index, lane) in enumerate(zip(several, lanes, strict=True)):
            limits = self._simulations(turn), self._deadline(turn, len(several), number)
            choose = self._choice if game.num_roles > 1 else self._choice_in_puzzle
            choices[index] = choose(lane, turn, index, *limits)
            lane.chosen = int(turn.plies[index]), int(choices[index])
        return choices

    def _load(self, game: Game, lanes: Iterable[_Lane]) -> None:
        """Load what a choice needs, so that this takes nothing of the time for a move."""
        if self.settings.nimbers:
            self._sum_of(game)
        if self.settings.seconds is not None or self._has_clock:
            load_kernels()
            for lane in lanes:
                self._rehearse(lane)

    def _rehearse(self, lane: _Lane) -> None:
        """Let a new search walk: the first call loads code, so only the second one tells how long a batch takes."""
        search = self._search_of(lane)
        if search.num_walks:
            return
        search.begin(lane.game.initial, np.uint64(0))
        for _ in range(0 if lane.game.uses_reasoner else 2):  # where a walk may take seconds
            search.run(_REHEARSED)

    def _choice(self, lane: _Lane, turn: Turn, index: int, simulations: int | None, deadline: float | None) -> int:
        """Return a move that is known to win, or the best move of a lane after a search in its tree."""
        winning = self._winning(turn, index)
        if winning:
            return winning[int(extend(_key(turn, index), _WINNING_KEY)) % len(winning)]
        advice = self._advice(turn, index)
        if advice is not None and (advice.is_won or len(advice.moves) == 1):
            return int(advice.moves[advice.plies.argmin()])
        search, noise = self._followed(lane, turn, index, deadline), _key(turn, index)
        opening = self._opening(lane, turn, index, simulations, deadline) if advice is None else None
        if opening is not None:
            return opening
        if advice is not None:
            search.run(min(simulations or DEFAULT_SIMULATIONS, DEFAULT_SIMULATIONS), deadline)
            return _hardest(advice, search, turn.role, noise)
        settles = self._has_clock if self.settings.settle is None else self.settings.settle
        # with a budget of simulations, the tree that is kept for the next move must not depend on time
        search.run(simulations, deadline, turn.role if settles and not simulations else None)
        if search.visits == 0 and turn.deadline is None:  # `seconds` were too few for a batch
            search.run(self.settings.least)
        return search.choice(turn.role, noise)

    def _advice(self, turn: Turn, index: int) -> SolvedChoice | None:
        """Return what the solution of the game says about a position; None if it is not solved."""
        game, state = turn.graph.game, turn.graph.states[turn.rows[index]]
        solution = self._solution_of(game)
        if solution is None or self._solving is None:
            return None
        return advised(solution, game, state, turn.role, self._solving.plies_left(state))

    def _opening(
        self, lane: _Lane, turn: Turn, index: int, simulations: int | None, deadline: float | None
    ) -> int | None:
        """Return the move of a position that was searched longer before than the tree and a search now; else None."""
        openings, search = lane.prepared.openings if lane.prepared is not None else None, lane.search
        if openings is None or search is None:
            return None
        walks = float(search.visits)
        if simulations is not None:
            walks += simulations
        elif deadline is not None:
            walks += max(deadline - monotonic(), 0.0) * (search.rate or _FAST)
        action = openings.choice(turn.graph.states[turn.rows[index]], turn.role, int(walks))
        if action is None:
            return None
        return int(np.flatnonzero(turn.graph.legal(int(turn.rows[index]), turn.role) == action)[0])

    def _winning(self, turn: Turn, index: int) -> list[int]:
        """Return the moves that win by the theory of nimbers, if it applies to the game."""
        theory = self._sum_of(turn.graph.game) if self.settings.nimbers else None
        return theory.winning(turn.graph.states[turn.rows[index]], turn.role) if theory is not None else []

    def _sum_of(self, game: Game) -> ImpartialSum | None:
        """Return the nimbers of a game; None if it is no sum of impartial games."""
        if self._sum is None or self._sum[0] is not game:
            self._sum = game, impartial_sum(game)
        return self._sum[1]

    def _choice_in_puzzle(
        self, lane: _Lane, turn: Turn, index: int, simulations: int | None, deadline: float | None
    ) -> int:
        """Return the first move of the best solution, or a move of the tree that promises more; see the module."""
        puzzle, now = self._puzzle(lane, turn, index, turn.graph.states[turn.rows[index]]), monotonic()
        part = simulations and max(1, round(PUZZLE_SHARE * simulations))
        puzzle.run(part, None if deadline is None else now + PUZZLE_SHARE * (deadline - now))
        choice = puzzle.choice()
        if choice is not None and puzzle.is_proved:
            return choice
        other = self._choice(lane, turn, index, simulations and part and max(1, simulations - part), deadline)
        expected = self._search_of(lane).moves(turn.role)[other]
        return other if choice is None or promises_more(expected, puzzle.solution) else choice

    def _puzzle(self, lane: _Lane, turn: Turn, index: int, state: NDArray[np.uint64]) -> PuzzleSearch:
        """Return the search of a lane of a game with one role, below a state, uint64[words]."""
        puzzle, key = self._puzzle_of(lane), np.uint64(extend(_key(turn, index), _PUZZLE_KEY))
        if puzzle.state is None:
            puzzle.begin(state, key, lane.earlier.after(state) if lane.earlier is not None else None)
        elif not puzzle.is_at(state):
            puzzle.advance(state, key)
        return puzzle

    def _earlier_solution(self, game: Game) -> PuzzleSolution | None:
        """Return the best solution of earlier matches of a game with one role; None without a memory of them."""
        return None

    def _puzzle_of(self, lane: _Lane) -> PuzzleSearch:
        if lane.puzzle is None:
            memory = PUZZLE_SHARE * self._memory(lane.number)
            lane.puzzle = PuzzleSearch(lane.game, memory, self.settings.max_plies)
        return lane.puzzle

    def prepare(self, game: Game, role: int) -> None:
        """See `Player.prepare`. The tree that this makes is used in the next match."""
        self._has_clock = True
        lane = self._lane(game, 0)
        if lane.search is not None:
            return
        if game.num_roles == 1 and not game.uses_reasoner:
            puzzle = self._puzzle_of(lane)
            puzzle.begin(game.initial, np.uint64(0))
            puzzle.run(1)
            puzzle.forget()
        self._load(game, [lane])
        if self._may_learn(game):
            self._schooling_of(game)
            fact_classes(game)  # to find symmetries may take longer than a slice of the startclock
            _ = game.informed_runner  # compiled here, because a trial may begin when little is left of the startclock
        if self._may_solve(game):
            self._solving_of(game)

    def ponder(self, turn: Turn) -> bool:
        """See `Player.ponder`. If the move has been chosen and the others have no choice, think about what follows.

        In a game that is solved, there is nothing to think about. The reasoner keeps every state that it sees, so the
        player does not think ahead on it.
        """
        game = turn.graph.game
        if not self.settings.ponder or game.uses_reasoner or self._solution_of(game) is not None:
            return False
        lane = self._lane(game, int(turn.lanes[0]))
        if game.num_roles == 1:
            return self._ponder_on_puzzle(lane, turn)
        if self._solves(turn) or self._learns(lane, turn):
            return True
        ply, num_moves = int(turn.plies[0]), turn.graph.num_moves[turn.rows[0]]
        if lane.search is not None and lane.plies == ply + 1:
            search = lane.search
        else:
            search = self._followed(lane, turn, 0)
            if lane.chosen is not None and lane.chosen[0] == ply and (np.delete(num_moves, turn.role) == 1).all():
                choices = np.zeros(len(num_moves), np.int32)
                choices[turn.role] = lane.chosen[1]
                search.follow(choices)
                lane.plies = ply + 1
        return search.ponder(turn.deadline) > 0 or self._solves(turn)

    def _ponder_on_puzzle(self, lane: _Lane, turn: Turn) -> bool:
        """Search for a better solution, from the position after the chosen move on if there is one."""
        game, state = turn.graph.game, turn.graph.states[turn.rows[0]]
        if lane.chosen is not None and lane.chosen[0] == int(turn.plies[0]):
            action = game.legal(state[None]).actions[lane.chosen[1]]
            state = game.next(state[None], np.array([[action]], np.int32))[0]
            if game.terminal(state[None])[0]:
                return False
        puzzle = self._puzzle(lane, turn, 0, state)
        return puzzle.run(deadline=turn.deadline, least_steps=1) > 0  # a step can take longer than the slice

    def _may_learn(self, game: Game) -> bool:
        """Return whether the player learns in the startclock."""
        return self.settings.ponder and self.settings.teaching is None and can_be_taught(game)

    def _learns(self, lane: _Lane, turn: Turn) -> bool:
        """Go on with teaching until the deadline if the match has not begun; return whether there is more to teach."""
        has_begun = turn.plies[0] > 0 or lane.chosen is not None
        if has_begun or not self._may_learn(lane.game) or lane.prepared is None or lane.prepared.is_done:
            return False
        lane.prepared.teach(turn.deadline)
        return True

    def _may_solve(self, game: Game) -> bool:
        """Return whether the player tries to solve a game; without a budget, only while it ponders."""
        is_wanted = self._has_clock and self.settings.ponder if self.settings.solve is None else self.settings.solve
        return is_wanted and may_be_solved(game)

    def _solve(self, game: Game, end: float | None) -> None:
        """Solve a game before a match; in a startclock, in half of it.

        end: of the startclock, in seconds of `time.monotonic`; None without one
        """
        if end is not None or not self._has_clock:
            self._solving_of(game).run(None if end is None else (monotonic() + end) / 2)

    def _solves(self, turn: Turn) -> bool:
        """Use every second slice for the solution of the game until it is done; return whether this one was used."""
        solving = self._solving
        if solving is None or solving.is_done or solving.game is not turn.graph.game:
            return False
        self._is_solvers_turn = not self._is_solvers_turn
        if self._is_solvers_turn:
            solving.run(turn.deadline)
        return self._is_solvers_turn

    def _solving_of(self, game: Game) -> Solving:
        """Return what solves a game, and give up the solution of any other game."""
        if self._solving is None or self._solving.game is not game:
            if self._end_solving is not None:
                self._end_solving()
            self._solving = Solving(game, int(_SOLVER_SHARE * self._limit * MIB))
            self._end_solving = weakref.finalize(self, self._solving.close)  # whose thread waits for the next slice
        return self._solving

    def _solution_of(self, game: Game) -> Solution | None:
        """Return the solution of a game; None if it is not solved."""
        return self._solving.solution if self._solving is not None and self._solving.game is game else None

    def _schooling_of(self, game: Game) -> Schooling:
        """Return what prepares for matches of a game, and forget that of any other game."""
        if self._schooling is None or self._schooling.game is not game:
            self._schooling = self._school(game)
        return self._schooling

    def _new_teacher(self, game: Game) -> Schooling:
        given = game, teaching_key(self.settings.seed, game), self.settings.growth, self.settings.lessons
        return Pupil(*given) if self.settings.teaching is None else Teacher(*given)

    def _prepared_for(self, game: Game, startclock: float | None, end: float | None) -> Prepared | None:
        """Begin a match; return what the player knows and learns for it, None in games that cannot be taught.

        end: of a budget of teaching, in seconds of `time.monotonic`
        """
        if self.settings.teaching and can_be_taught(game):
            prepared = self._schooling_of(game).begin(startclock)
            prepared.teach(end)
            return prepared
        if self._may_learn(game) and (self._has_clock or self._remembers):
            return self._schooling_of(game).begin(startclock)
        return None

    def _search_of(self, lane: _Lane) -> Search:
        """Return the search of a lane, a new one if its settings have changed. The reasoner gains nothing from threads.

        Before the first move, teaching may find out something about the settings. After it, the teaching of another
        match must not cost this one its tree.
        """
        growth = lane.prepared.growth if lane.prepared is not None else self.settings.growth
        if lane.search is None or (lane.chosen is None and lane.search.settings != growth):
            is_timed = not self.settings.simulations and (self.settings.seconds is not None or self._has_clock)
            cores = min(num_cores(), _MOST_THREADS) if is_timed and not lane.game.uses_reasoner else 1
            memory = self._memory(lane.number) * (1 if lane.game.num_roles > 1 else 1 - PUZZLE_SHARE)
            if self._growers is None or self._growers.game is not lane.game:
                self._growers = Growers(lane.game)
            threads = self.settings.threads or cores
            lane.search = Search(lane.game, growth, memory, threads, shared=is_timed, growers=self._growers)
            lane.plies = None
        return lane.search

    def _memory(self, lane: int) -> float:
        """Return the memory of the tree of a lane in MiB. Each lane gets half of what the lanes before it have left."""
        least = _LEAST_MEMORY * min(1.0, _MANY_LANES / (lane + 1))
        return max(ldexp(self._limit, -lane - 1), least)  # a power of 2 overflows from lane 1,023 on

    @property
    def _limit(self) -> float:
        """Memory of all trees in MiB."""
        return float(self.settings.memory or memory_cap(FOREST_VARIABLE, MEMORY_MIB) / MIB)

    def _simulations(self, turn: Turn) -> int | None:
        """Return the number of walks for a move; None for no limit."""
        unlimited = self.settings.seconds is not None or turn.deadline is not None
        return self.settings.simulations or (None if unlimited else DEFAULT_SIMULATIONS)

    def _deadline(self, turn: Turn, lanes: int, done: int) -> float | None:
        """Return the time at which the search for a move ends.

        Lanes share `seconds`, and those that are left share the time that is left of a clock.

        lanes: number of lanes with a choice
        done: number of those whose move is chosen
        """
        now, limits = monotonic(), []
        if self.settings.seconds is not None:
            limits.append(now + self.settings.seconds / lanes)
        if turn.deadline is not None:
            limits.append(now + OF_THE_CLOCK * (turn.deadline - now) / (lanes - done))
        return min(limits, default=None)

    def _followed(self, lane: _Lane, turn: Turn, index: int, deadline: float | None = None) -> Search:
        """Return the search of a lane, after it has followed the match to the position of the turn."""
        search, ply, state = self._search_of(lane), int(turn.plies[index]), turn.graph.states[turn.rows[index]]
        before = lane.plies
        if before is not None and turn.log is not None and before <= ply:
            if not search.is_at(turn.graph.states[turn.log.rows[lane.number, before]]):
                before = ply  # the match took another way, so nothing that the tree contains is of use
            for choices in turn.log.choices[lane.number, before:ply]:
                search.follow(choices, deadline)
        if before is None or not search.is_at(state):
            value, assumption = (
                (None, None) if lane.prepared is None else (lane.prepared.value, lane.prepared.assumption)
            )
            if before is not None and search.assumption == UNRELATED:
                assumption = UNRELATED  # this match may have shown that the assumption is wrong
            search.begin(state, np.uint64(extend(_key(turn, index), _SEARCH_KEY)), value, assumption)
        lane.plies = ply
        return search


def promises_more(move: MoveReport, solution: PuzzleSolution | None) -> bool:
    """Return whether a move of the tree promises more than the best solution of a puzzle; see the module."""
    # the mean of a move without walks is nan, and then the maximum is the first number
    return solution is None or max(move.low, move.mean) > solution.goal


def _hardest(advice: SolvedChoice, search: Search, role: int, noise: np.uint64) -> int:
    """Return the move that is hardest to answer among those that keep the value of a position.

    The measure is the sum of its share of the visits, and of the mean result of random replies to it, from 0 to 1. The
    visits come from playouts, which see several plies ahead; but in a small tree that is proved soon, they say little.
    """
    reports, drawn = search.moves(role), extend(noise, np.arange(len(advice.moves)))
    visits = np.array([reports[move].visits for move in advice.moves])
    grades = visits / max(visits.sum(), 1) + advice.slips / HIGHEST_GOAL
    return int(max(zip(grades, drawn, advice.moves, strict=True))[2])


def _key(turn: Turn, index: int) -> np.uint64:
    """Return the key of the random numbers for a lane in this turn."""
    return np.uint64(extend(turn.keys[index], turn.plies[index]))
