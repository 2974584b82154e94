"""The opinion of the player gamelore about a position: a search, and its result as a `Thought`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ..drawing.thought import MoveThought, Thought
from ..errors import GameloreError, check_count, check_seed
from ..game.game import Game, Position
from ..rulesheets import loaded

if TYPE_CHECKING:
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
    """Search a position as the player gamelore does, and return what the search thinks about it.

    Args:
        position: a position; or a game, or what `load` takes, for its first position
        seconds: time for the search; 1 if no number of simulations is given, else no limit
        simulations: number of simulations
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
    """A search of a position that can go on: each `go_on` returns what is thought so far.

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
        from ..search.thinking import Search

        self.position = position
        self._search = Search(position.game, teacher.growth if teacher else growth, threads=threads, shared=shared)
        taught = (teacher.value, teacher.assumption) if teacher else (None, None)
        self._search.begin(position.state, stream(seed, THINK), *taught)
        self._seconds = 0.0

    def go_on(self, simulations: int | None = None, seconds: float | None = None) -> Thought:
        """Search on until a budget is used up or the position is proved; None is no limit."""
        search, first = self._search, 0
        if not search.num_walks:
            first = search.run(1)  # compiles what is needed, outside the time
        begin = monotonic()
        search.run(simulations and simulations - first, None if seconds is None else begin + seconds)
        self._seconds += monotonic() - begin
        return _thought(self.position, search, search.num_walks, self._seconds)


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


def _in_order(search: Search, role: int) -> list[tuple[MoveReport, float | None]]:
    """Return the reports of a role's moves with their shares, the best first; see `Thought`."""
    best, shares, reports = search.choice(role, search.key), search.strategy(role), search.moves(role)
    if shares is None:
        return [(report, None) for report in sorted(reports, key=lambda r: (r.index != best, -r.visits))]
    return [
        (reports[i], shares[i]) for i in sorted(range(len(reports)), key=lambda i: (-shares[i], -reports[i].visits))
    ]
