"""Training and testing SeqPlayer: tournaments between players by name, sides alternating (Lock & Epstein 2004, 2).

In match i of a tournament the first player has role i modulo the number of roles, and the second all others. A game of
one role is played by them in turn. The numbers of a tournament's random streams are (seed, run, stage, match, role).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..play import roster
from ..play.lockstep import run_lockstep
from ..play.match import MAX_PLIES
from ..play.player import Player
from ..play.streams import stream
from .sequences import SeqLearner, results

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.player import Finished


@dataclass(frozen=True, slots=True)
class Curriculum:
    """Whom SeqLearner watches: the expert against each opponent in a tournament, and all of that `cycles` times.

    matches: of each tournament; the paper: 20 for lose tic-tac-toe, 40 for five men's morris.
    """

    expert: str = "perfect"
    opponents: tuple[str, ...] = ("random", "novice", "expert", "perfect")
    cycles: int = 2
    matches: int = 20

    def __post_init__(self) -> None:
        if not self.opponents or self.cycles < 1 or self.matches < 1:
            found = f"{len(self.opponents)} opponents, {self.cycles} cycles and {self.matches} matches"
            raise GameloreError(f"expected at least one opponent, cycle and match to watch, got {found}")

    @property
    def tournaments(self) -> tuple[str, ...]:
        """The opponents, tournament by tournament."""
        return self.opponents * self.cycles

    @property
    def num_matches(self) -> int:
        return self.matches * len(self.tournaments)

    def __str__(self) -> str:
        return f"{self.cycles} x {self.matches} matches each of {self.expert} with {', '.join(self.opponents)}"


@dataclass(frozen=True, slots=True)
class Seated:
    """Finished matches in which the first player of the tournament had this role (NOBODY: it did not play)."""

    finished: Finished
    role: int


NOBODY = -1


class Tournaments:
    """Plays tournaments on one graph, with players that are made once by their names."""

    def __init__(self, graph: Graph, key: tuple[int | str, ...], max_plies: int = MAX_PLIES) -> None:
        self.graph = graph
        self._key = key
        self._max_plies = max_plies
        self._players: dict[str, Player] = {}

    def named(self, name: str) -> Player:
        """The player of this name."""
        if name not in self._players:
            self._players[name] = roster.player(name)
        return self._players[name]

    def play(self, first: Player, second: Player, num_matches: int, stage: str) -> Iterator[Seated]:
        """Plays a tournament; `stage` keys its random numbers."""
        roles = self.graph.game.num_roles
        seatings = max(roles, 2)
        for seat in range(seatings):
            numbers = np.arange(seat, num_matches, seatings)
            seats = [first if role == seat else second for role in range(roles)]
            ended: list[Finished] = []
            keys = np.full(len(numbers), stream(*self._key, stage))  # type: ignore[arg-type]
            run_lockstep(
                self.graph, seats, keys, 1, first_match=numbers, max_plies=self._max_plies, on_end=ended.append
            )
            for finished in ended:
                yield Seated(finished, seat if seat < roles else NOBODY)


def train(
    learner: SeqLearner,
    tournaments: Tournaments,
    curriculum: Curriculum,
    *,
    first: int = 0,
    after: Callable[[int], None] | None = None,
) -> None:
    """Lets the learner watch the tournaments from number `first` on; `after` is told how many it has watched."""
    for number, opponent in list(enumerate(curriculum.tournaments))[first:]:
        expert, other = tournaments.named(curriculum.expert), tournaments.named(opponent)
        for seated in tournaments.play(expert, other, curriculum.matches, f"train/{number}"):
            learner.watch(seated.finished, _experts(seated, opponent == curriculum.expert))
        learner.extract()
        if after is not None:
            after(number + 1)


def _experts(seated: Seated, both: bool) -> NDArray[np.bool_]:
    """bool[n, roles]: who plays as the expert."""
    finished = seated.finished
    experts = np.full((len(finished.lanes), finished.goals.shape[1]), both)
    if seated.role != NOBODY:
        experts[:, seated.role] = True
    return experts


@dataclass(frozen=True, slots=True)
class Score:
    """Of a tournament, for the first player."""

    matches: int
    wins: int
    draws: int

    @property
    def reliability(self) -> float:
        """Matches won or drawn, in per cent."""
        return 100.0 * (self.wins + self.draws) / self.matches

    @property
    def power(self) -> float:
        """Matches won, in per cent."""
        return 100.0 * self.wins / self.matches


def score(played: Iterator[Seated]) -> Score:
    """Plays it and counts; a match without a result counts as lost."""
    found = [results(seated.finished)[:, seated.role] for seated in played if seated.role != NOBODY]
    outcome = np.concatenate(found)
    return Score(len(outcome), int((outcome == 1.0).sum()), int((outcome == 0.5).sum()))
