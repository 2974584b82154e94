"""Recognition of opponents by their moves: `recognise` and its result `RecognisedOpponent`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import GameloreError, one_of
from ..game.game import Game
from .playing import Matches, player_of, replay
from .progress import Progress, displayed
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..memory.recogniser import Policies, SeenMove
    from ..players.position_graph import PositionGraph

_SHOWN = 3  # players of a match in the text


@dataclass(frozen=True)
class RecognisedOpponent:
    """Posterior probabilities of an opponent, from its moves in some matches. `print` shows them as text.

    Attributes:
        game: the game.
        role: the role of the opponent.
        posteriors: after each match, the probability of each known player and of "unknown", the most probable first;
            they come from the moves of all matches so far.
    """

    game: Game
    role: str
    posteriors: Sequence[Mapping[str, float]]

    @property
    def player(self) -> str:
        """The most probable player after all matches, or "unknown"."""
        return next(iter(self.posteriors[-1]))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each match and player: the number of the match, from 1, the player, its probability."""
        return [
            {"match": number, "player": name, "probability": share}
            for number, posterior in enumerate(self.posteriors, 1)
            for name, share in posterior.items()
        ]

    def save(self, path: str | Path) -> None:
        """Write the rows into a file that ends in .csv or .json."""
        save_rows(path, self.rows)

    def plot(self) -> Figure:
        """Return a matplotlib figure: the probability of each player after each match."""
        from ..lab.figures import shares_figure

        names = self.posteriors[-1]
        return shares_figure({name: [posterior[name] for posterior in self.posteriors] for name in names}, "match")

    def __str__(self) -> str:
        lines = [f"{self.game.name}, {self.role}"]
        for number, posterior in enumerate(self.posteriors, 1):
            best = list(posterior.items())[:_SHOWN]
            lines.append(f"  after match {number}: " + ", ".join(f"{name} {share:.0%}" for name, share in best))
        return "\n".join(lines)


def recognise(
    matches: Matches | str | Path,
    role: str,
    known: Iterable[str] | None = None,
    *,
    progress: Progress | bool | None = None,
) -> RecognisedOpponent:
    """Find out which of the known players an opponent is, from its moves alone.

    The names in the records are not looked at. All matches count as matches of the same opponent.

    Args:
        matches: matches of one game, or a file or folder of their records, see `replay`.
        role: the role of the opponent.
        known: the names of the known players, with their options; those of `catalogue.KNOWN_OPPONENTS` if it is None.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The probability of each known player, and of an unknown one, after each match.

    Raises:
        GameloreError: a player or the role does not exist, the opponent never had a choice, or a record contradicts the
            rules.
    """
    from ..catalogue import KNOWN_OPPONENTS
    from ..memory.recogniser import Policies, fits, posterior
    from ..players.position_graph import PositionGraph

    given = matches if isinstance(matches, Matches) else replay(matches)
    number = list(given.game.roles).index(one_of(role, given.game.roles, f"a role of {given.game.name}"))
    players = {name: player_of(name) for name in (KNOWN_OPPONENTS if known is None else known)}
    if not players:
        raise GameloreError("expected the name of at least one known player, got none; name one")
    graph = PositionGraph(given.game)
    moves = list(_seen(given, graph, number))
    if not any(moves):
        raise GameloreError(f"expected matches in which {role} had a choice, got none; name another role")
    policies = Policies(graph, players)
    with displayed(progress) as tell:
        _compute(policies, [move for own in moves for move in own], tell)
    compared = [list(fits(policies, own))[-1] for own in moves]
    return RecognisedOpponent(given.game, role, [posterior(compared[: end + 1]) for end in range(len(compared))])


def _seen(matches: Matches, graph: PositionGraph, role: int) -> Iterator[Sequence[SeenMove]]:
    """Yield the moves of a role in each match."""
    from ..matches.match import MatchState
    from ..memory.recogniser import seen_moves

    for record in matches.records:
        match = MatchState.after(graph, record.moves, max_plies=len(record.moves) + 1)
        yield seen_moves(match, role)


def _compute(policies: Policies, moves: Sequence[SeenMove], tell: Progress) -> None:
    """Compute the policies in all positions of some moves."""
    for number, move in enumerate(moves):
        tell("comparing moves", number, len(moves))
        policies.of(move.row, move.role)
