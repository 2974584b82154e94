"""The opinion of the player gamelore about a position: a search, and its result as a `Thought`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ..drawing.thought import MoveThought, Thought
from ..errors import GameloreError, check_count, check_seed
from ..game.game import Game, Position
from ..rulesheets import loaded

if TYPE_CHECKING:
    from ..puzzles.portfolio import PuzzleSearch, PuzzleSolution
    from ..search.choice import MoveReport
    from ..search.settings import GrowthSettings, Joint
    from ..search.teaching import Teacher
    from ..search.thinking import Search

THINK = "think"  # stage of the random numbers
_TEACHING_SLICE = 0.1  # seconds


def think(
    position: Position | Game | str | Path,
    *,
    seconds: float | None = None,
    simulations: int | None = None,
    teaching: int = 0,
    threads: int = 1,
    joint: Joint | None = None,
    seed: int = 0,
    on_teaching: Callable[[int, int], None] = lambda done, of: None,
) -> Thought:
    """Search a position by the tree search of the player gamelore, and return what the search thinks about it.

    In a puzzle, a game with one role, three quarters of the time or of the simulations go to the search for solutions,
    as in the player. The best solution is the line, unless the tree promises more, and there are no further simulations
    once it is proved to be the best. What else the player uses is left out: networks, the solution of a small game, the
    theory of nimbers, and what is remembered.

    Args:
        position: a position; or a game, or what `load` takes, for its first position
        seconds: time for the search; 1 if no number of simulations is given, else no limit
        simulations: number of simulations; in the search for solutions, 32 positions count as one
        teaching: number of simulations that teach a value of the game first, as a startclock does
        threads: number of threads
        joint: choice of moves where several roles choose at once: decoupled UCT (uct), regret matching (regret) or
            exp3; that of the player gamelore if it is None
        seed: seed of the random numbers; without a limit on time, the same seed gives the same result
        on_teaching: called with the number of simulations of the teaching so far, and with their final number

    Returns:
        The moves with visits, values and proofs, and the best line. It is a picture in notebooks.

    Raises:
        GameloreError: for a position in which the match is over, and for no simulations
    """
    from ..search.settings import GrowthSettings

    if simulations is not None:
        check_count("simulations", simulations)
    check_count("threads", threads)
    check_seed(seed)
    if not isinstance(position, Position):
        position = loaded(position).start()
    check_goes_on(position)
    growth = GrowthSettings(joint=joint) if joint else GrowthSettings()
    teacher = _teacher(position.game, growth, teaching, seed, on_teaching) if teaching else None
    opinion = Opinion(position, growth, teacher, threads=threads, shared=simulations is None, seed=seed)
    return opinion.go_on(simulations, 1.0 if seconds is None and simulations is None else seconds)


def check_goes_on(position: Position) -> None:
    """Raise GameloreError for a position in which the match is over."""
    if position.is_terminal or not all(position.legal.values()):
        raise GameloreError("expected a position in which the match goes on, got the end of a match; play fewer moves")


class Opinion:
    """A search of a position that can go on: each `go_on` returns what is thought so far; see `think`.

    Args:
        position: a position in which the match goes on
        growth: parameters of the search
        teacher: teacher of the game whose lessons are over
        threads: number of threads
        shared: whether they share a tree; the result is then not repeatable
        seed: seed of the random numbers
    """

    def __init__(
        self,
        position: Position,
        growth: GrowthSettings | None = None,
        teacher: Teacher | None = None,
        *,
        threads: int = 1,
        shared: bool = False,
        seed: int = 0,
    ) -> None:
        from ..players.random_streams import stream
        from ..search.settings import MEMORY_MIB, PUZZLE_SHARE
        from ..search.thinking import Search

        game, settings = position.game, teacher.growth if teacher else growth
        self.position, memory = position, MEMORY_MIB * (1 if game.num_roles > 1 else 1 - PUZZLE_SHARE)
        self._search = Search(game, settings, memory, threads=threads, shared=shared)
        taught = (teacher.value, teacher.assumption) if teacher else (None, None)
        self._search.begin(position.state, stream(seed, THINK), *taught)
        self._puzzle: PuzzleSearch | None = None
        if game.num_roles == 1:
            from ..puzzles.portfolio import PuzzleSearch

            self._puzzle = PuzzleSearch(game, PUZZLE_SHARE * MEMORY_MIB, self._search.settings.max_plies)
            self._puzzle.begin(position.state, stream(seed, THINK, "puzzle"))
        self._seconds, self._in_puzzle = 0.0, 0

    def go_on(self, simulations: int | None = None, seconds: float | None = None) -> Thought:
        """Search on until a budget is used up or the position is proved; None is no limit."""
        from ..search.settings import PUZZLE_SHARE

        search, puzzle, spent = self._search, self._puzzle, 0
        if not search.num_walks:
            spent = search.run(1)  # compiles what is needed, outside the time
        begin = monotonic()
        if puzzle is not None:
            part = simulations and max(1, round(PUZZLE_SHARE * simulations))
            deadline = None if seconds is None else begin + PUZZLE_SHARE * seconds
            self._in_puzzle += puzzle.run(part, deadline, least_steps=1)
            spent += part or 0
        if puzzle is None or puzzle.solution is None or not puzzle.is_proved:
            rest = simulations and max(0, simulations - spent)
            search.run(rest, None if seconds is None else begin + seconds)
        self._seconds += monotonic() - begin
        thought = _thought(self.position, search, search.num_walks + self._in_puzzle, self._seconds)
        if puzzle is None or puzzle.solution is None or not self._follows(puzzle):
            return thought
        return _solved(thought, puzzle.solution, search.is_proved or puzzle.is_proved)

    def _follows(self, puzzle: PuzzleSearch) -> bool:
        """Return whether the player would follow the solution of a puzzle, and not the tree."""
        from ..search.champion import promises_more

        best = self._search.moves(0)[self._search.choice(0, self._search.key)]
        return puzzle.is_proved or not promises_more(best, puzzle.solution)


def _teacher(
    game: Game, growth: GrowthSettings, simulations: int, seed: int, tell: Callable[[int, int], None]
) -> Teacher:
    """Return the teacher of a game after its lessons, as the player gamelore has them in a startclock."""
    from ..search.settings import TeachingSettings
    from ..search.teaching import Teacher, teaching_key

    key = teaching_key(seed, game)
    teacher = Teacher(game, key, growth, TeachingSettings(simulations=simulations))
    while not teacher.is_done:
        teacher.teach(monotonic() + _TEACHING_SLICE)
        tell(min(teacher.simulations, simulations), simulations)
    return teacher


def _thought(position: Position, search: Search, simulations: int, seconds: float) -> Thought:
    """Return what a search knows about a position."""
    moves = {}
    for role, (name, legal) in enumerate(position.legal.items()):
        if len(legal) > 1:
            moves[name] = [
                MoveThought(
                    index=report.index,
                    move=legal[report.index],
                    visits=report.visits,
                    mean=report.mean if report.visits else None,
                    low=report.low,
                    high=report.high,
                    plies=report.plies,
                    is_closed=report.is_closed,
                    share=share,
                )
                for report, share in _in_order(search, role)
            ]
    here, line = position, list[tuple[str, ...]]()
    for choices in search.line():
        line.append(tuple(legal[choice] for legal, choice in zip(here.legal.values(), choices, strict=True)))
        here = here.play(line[-1])
    return Thought(position, moves, tuple(line), simulations, seconds, search.num_nodes, search.is_proved)


def _solved(thought: Thought, solution: PuzzleSolution, is_proved: bool) -> Thought:
    """Return a thought about a puzzle with a solution as its line, whose first move is the best one."""
    ((role, legal),) = thought.position.legal.items()
    line = [thought.position.game.move_text(0, action) for action in solution.actions.tolist()]
    moves = [_bounded(move, legal[move.index] == line[0], solution, is_proved) for move in thought.moves.get(role, ())]
    return replace(
        thought,
        moves={role: sorted(moves, key=lambda move: move.move != line[0])} if moves else {},
        line=tuple((move,) for move in line),
        is_proved=is_proved,
        solution=solution.goal,
    )


def _bounded(move: MoveThought, is_best: bool, solution: PuzzleSolution, is_proved: bool) -> MoveThought:
    """Return what is thought about a move of a puzzle, given a solution, which may begin with this move."""
    if not is_best:
        return replace(move, high=min(move.high, solution.goal)) if is_proved else move
    low = max(move.low, solution.goal)
    if not is_proved:
        return replace(move, low=low, high=max(move.high, low))
    return replace(move, low=low, high=low, plies=len(solution.actions), is_closed=True)


def _in_order(search: Search, role: int) -> list[tuple[MoveReport, float | None]]:
    """Return the reports of a role's moves with their shares, the best first; see `Thought`."""
    best, shares, reports = search.choice(role, search.key), search.strategy(role), search.moves(role)
    if shares is None:
        return [(report, None) for report in sorted(reports, key=lambda r: (r.index != best, -r.visits))]
    return [
        (reports[i], shares[i]) for i in sorted(range(len(reports)), key=lambda i: (-shares[i], -reports[i].visits))
    ]
