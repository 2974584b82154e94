"""knowledge show, of learners of sequences: their pairs as boards with numbered moves, the best first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from .console import counted, show_table, show_width

if TYPE_CHECKING:
    from ..lab.learned import LearnedPair
    from ..lab.pairs import DrawnPair
    from ..learn.knowledge import Knowledge, StoredLearner
    from ..rules.game import Game


class Shown(NamedTuple):
    """The pairs of a learner that are to be shown, of how many."""

    learner: StoredLearner
    game: Game
    pairs: list[LearnedPair]
    of: int

    @property
    def drawn(self) -> list[DrawnPair]:
        """Their drawings, labelled by their places."""
        return [one for place, pair in enumerate(self.pairs, 1) for one in pair.drawn(str(place))]


def chosen(
    store: Knowledge, learners: Sequence[StoredLearner], top: int, min_weight: float, role: str | None
) -> list[Shown]:
    """What there is to show; learners without such pairs are left out."""
    from ..lab.learned import best
    from ..learn.seqstudy import load_pairs
    from ..rules.game import make
    from ..rules.gdl import parse

    found = []
    for learner in learners:
        game = make(parse(store.rules(learner)), learner.game)
        pairs = load_pairs(store, learner, game)
        found.append(Shown(learner, game, best(pairs, top, role=role, min_weight=min_weight), len(pairs)))
    return [one for one in found if one.pairs]


def as_json(shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """All pairs, with the number of their learner."""
    return [{"learner": one.learner.id, **pair.as_json()} for one in shown for pair in one.pairs]


def print_pairs(shown: Sequence[Shown]) -> None:
    """For each learner a table of its pairs, then their boards."""
    from ..lab.pairs import pairs_text

    for place, one in enumerate(shown):
        learner, game, pairs, of = one
        if place:
            typer.echo()
        typer.echo(f"{game.name}: the best {len(pairs)} of {counted(of, 'pair')} of learner {learner.id}\n")
        columns = ("pair", "role", "weight", "as the expert", "succeeded")
        show_table(columns, _lines(pairs), numbers=[0, 2, 3, 4])
        typer.echo("\n" + pairs_text(game, one.drawn, show_width()) + "\n")
        typer.echo(f"learner {learner.id}: {game.name}, {learner.opponent}, after {learner.num_matches} matches")


def _lines(pairs: Sequence[LearnedPair]) -> Iterator[tuple[object, ...]]:
    for place, pair in enumerate(pairs, 1):
        agreed = f"{pair.agreements:.0f} of {pair.comments:.0f}"
        yield place, pair.role, f"{pair.weight:.2f}", agreed, f"{pair.successes:g} of {pair.tries:.0f}"


def draw(shown: Sequence[Shown], path: Path) -> list[Path]:
    """A picture for each learner."""
    from ..lab.boards import draw_pairs

    files = []
    for one in shown:
        place = path if len(shown) == 1 else path.with_name(f"{path.stem}-{one.learner.id}{path.suffix}")
        title = f"{one.game.name}: the best {len(one.pairs)} of {counted(one.of, 'pair')}"
        files += draw_pairs(one.game, one.drawn, place, title)
    return files
