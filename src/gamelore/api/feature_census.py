"""Game-tree features of a game (Banerjee & Stone 2007, section 3): `features` and its result `Features`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import check_seed, one_of
from ..game.game import Game
from ..rulesheets import loaded
from .progress import Progress, displayed
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.feature_trees import DrawnFeature
    from ..learning.td.discovery import FeatureCensus


class Features(Mapping[str, "FeatureCensus"]):
    """The features of a game by role.

    A feature is the game tree below an afterstate, reduced to its pattern of outcomes: "L,{n,W}" is an afterstate with
    two replies, of which one loses, and the other leads to a position with two moves, of which one wins. For each role
    there is a census: `features` (text -> number of afterstates that match it), `num_positions`, `num_afterstates`,
    `complete` (whether all reachable positions were examined), and `method`.

    `print` draws the features as trees; in notebooks they are pictures.

    Attributes:
        game: the game.
        depth: the depth of the features, in plies below an afterstate.
    """

    def __init__(self, game: Game, depth: int, censuses: Mapping[str, FeatureCensus]) -> None:
        self.game = game
        self.depth = depth
        self._censuses = dict(censuses)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each role and feature, with the number of afterstates that match it."""
        return [
            {"role": role, "feature": feature, "afterstates": count}
            for role, census in self.items()
            for feature, count in census.features.items()
        ]

    def save(self, path: str | Path) -> None:
        """Write the rows into a file that ends in .csv or .json."""
        save_rows(path, self.rows)

    def plot(self, role: str | None = None) -> Figure:
        """Return a matplotlib figure of the features of a role, of the first one if it is None, as in the paper."""
        from ..lab.feature_trees import features_figure

        name = one_of(role, self, f"a role of {self.game.name} with features") if role else next(iter(self))
        return features_figure(self.drawn(name), title=f"{self.game.name}, {name}")

    def drawn(self, role: str) -> list[DrawnFeature]:
        """Return the features of a role that are drawn, with labels: all but very large ones."""
        from ..lab.feature_trees import drawable, labelled

        return drawable(labelled((text, {}) for text in self[role].features))

    def __getitem__(self, role: str) -> FeatureCensus:
        return self._censuses[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._censuses)

    def __len__(self) -> int:
        return len(self._censuses)

    def __repr__(self) -> str:
        counts = ", ".join(f"{role} {len(census.features)}" for role, census in self.items())
        return f"<Features of {self.game.name}: {counts}>"

    def __str__(self) -> str:
        return self.text(100)

    def text(self, width: int) -> str:
        """Return the features as trees of characters, in lines of at most `width` characters."""
        from ..lab.feature_trees import feature_sheet

        return "\n\n".join(f"{self._title(role)}\n\n{feature_sheet(self.drawn(role), width)}" for role in self)

    def _title(self, role: str) -> str:
        """Return a line about the features of a role."""
        from ..lab.feature_trees import left_out

        num, census = len(self.drawn(role)), self[role]
        missing = len(census.features) - num
        title = f"{self.game.name}, {role}: {len(census.features)} features in {census.method}"
        return f"{title}; {left_out(missing, len(census.features))}" if missing else title

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        return "".join(f"<p>{escape(self._title(role))}</p>{svg_text(self.plot(role))}" for role in self)


def features(
    game: Game | str | Path,
    role: str | Sequence[str] | None = None,
    *,
    depth: int = 2,
    limit: int = 100_000,
    matches: int = 1000,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Features:
    """Find the game-tree features of a game (Banerjee & Stone 2007, section 3).

    Args:
        game: a game, or what `load` takes.
        role: a role, or several; every role if it is None.
        depth: depth of a feature in plies below an afterstate.
        limit: number of reachable positions up to which all are examined; for a larger game the positions of random
            matches are.
        matches: number of these matches.
        seed: seed of these matches.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The features, and how often each of them occurs.

    Raises:
        GameloreError: there is no such role, or the seed is negative.
    """
    from ..learning.td.discovery import reachable_features
    from ..players.position_graph import PositionGraph

    check_seed(seed)
    rules = loaded(game)
    wanted = rules.roles if role is None else (role,) if isinstance(role, str) else tuple(role)
    roles = [one_of(name, rules.roles, f"a role of {rules.name}") for name in wanted]
    graph, censuses = PositionGraph(rules), {}
    with displayed(progress) as tell:
        for done, name in enumerate(roles):
            tell("roles", done, len(roles))
            censuses[name] = reachable_features(
                rules, name, depth=depth, limit=limit, num_matches=matches, seed=seed, graph=graph
            )
            tell("roles", done + 1, len(roles))
    return Features(rules, depth, censuses)
