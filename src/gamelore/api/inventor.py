"""The inventor's report: whether a game is balanced, how long and how wide it is, and which rules never matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..drawing.position import position_svg
from ..errors import GameloreError, check_count, counted
from ..files import write_whole
from ..game.game import Game
from ..gdl.limits import Limits
from ..rulesheets import loaded
from .exact import Solved, solve
from .playing import Matches, play
from .progress import Progress, displayed
from .rows import save_rows
from .rules import Checked, check

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.stats import Interval

SAMPLED = 400  # positions in which it is tested which rules fire, beside the last one of each match
SHOWN_RULES = 20
UCT, RANDOM = "uct", "random"


@dataclass(frozen=True, eq=False, repr=False)
class GameReport:
    """What matches tell about a game. `print` shows it as text, `save` writes a page.

    Attributes:
        checked: the findings of `check`, with play.
        matches: "random" and "uct" -> matches of these players with themselves.
        solved: exact values, if the game could be solved.
        not_solved: why it could not be solved.
        choices: float64[plies], the mean number of moves of the roles that choose, by ply, in random matches.
        mean_choices: the same over all plies.
        dead_rules: rules that fired in no position of a sample.
        num_sampled: the number of positions in it: the last ones of all matches, and some others.
    """

    checked: Checked
    matches: dict[str, Matches]
    solved: Solved | None
    not_solved: str
    choices: NDArray[np.float64]
    mean_choices: float
    dead_rules: tuple[str, ...]
    num_sampled: int

    @property
    def name(self) -> str:
        """The name of the game."""
        return self.checked.game

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each kind of play: mean goals with intervals, length, draws and decisive matches."""
        rows = [self._row(kind, matches) for kind, matches in self.matches.items()]
        if self.solved:
            values = {f"goal_{role}": float(value) for role, value in self.solved.values.items()}
            rows.append({"players": "perfect", "matches": None, **values, "plies": self.solved.plies})
        return rows

    def _row(self, kind: str, matches: Matches) -> dict[str, Any]:
        row: dict[str, Any] = {"players": kind, "matches": len(matches)}
        for role, interval in matches.intervals.items():
            row[f"goal_{role}"] = interval.mean
            row[f"interval_{role}"] = None if interval.too_few else (interval.low, interval.high)
        return row | {
            "plies": float(matches.plies.mean()),
            "draws": self.draws(kind),
            "decisive": self.decisive(kind),
            "not_ended": 1 - matches.ends.get("terminal", 0) / len(matches),
        }

    def draws(self, kind: str) -> float:
        """Return the share of matches in which all roles got the same goal, 0 to 1; 0 for a puzzle."""
        goals = np.nan_to_num(self.matches[kind].goals)
        return float((goals == goals[:, :1]).all(axis=1).mean()) if goals.shape[1] > 1 else 0.0

    def decisive(self, kind: str) -> float:
        """Return the share of matches in which a role got 100, 0 to 1."""
        return float((self.matches[kind].goals == 100).any(axis=1).mean())

    @property
    def headline(self) -> str:
        """The balance in a sentence."""
        strong = self.matches[UCT]
        if len(strong.game.roles) == 1:
            return f"{self.name} is a puzzle; uct gets {strong.mean_goals[strong.game.roles[0]]:.0f} points on average"
        if self.solved:
            values = ", ".join(f"{role} {value}" for role, value in self.solved.values.items())
            return f"{self.name}: with best play {values}"
        goals = ", ".join(f"{role} {_span(interval)}" for role, interval in strong.intervals.items())
        best, mean = max(strong.intervals.values(), key=lambda each: each.mean), np.mean([*strong.mean_goals.values()])
        is_clear = not best.too_few and best.low > mean
        return f"{self.name}: {'an advantage' if is_clear else 'no clear advantage'} between uct players: {goals}"

    def save(self, path: str | Path) -> None:
        """Write the report: as a page if the file ends in .html, or its rows into a .csv or .json file."""
        path = Path(path)
        if path.suffix == ".html":
            write_whole(path, self._page())
        else:
            save_rows(path, self.rows)

    def plot(self) -> Figure:
        """Return a matplotlib figure: the results by players and role, the lengths, and the choices by ply."""
        from ..lab.figures import inventor_figure

        results = {
            f"{kind}, {role}": matches.goals[:, number]
            for kind, matches in self.matches.items()
            for number, role in enumerate(matches.game.roles)
        }
        if self.solved:
            results |= {f"perfect, {role}": np.array([value]) for role, value in self.solved.values.items()}
        lengths = {kind: matches.plies for kind, matches in self.matches.items()}
        return inventor_figure(results, lengths, self.choices)

    def __repr__(self) -> str:
        return f"<GameReport {self.headline}>"

    def __str__(self) -> str:
        return "\n".join([self.headline, "", *self._lines()])

    def _lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        for kind, matches in self.matches.items():
            goals = ", ".join(f"{role} {_span(interval)}" for role, interval in matches.intervals.items())
            yield (
                f"{kind}, {counted(len(matches), 'match', 'matches')}: {goals}; {self.draws(kind):.0%} draws, "
                f"{self.decisive(kind):.0%} with 100 points for a role; {_lengths(matches)}"
            )
        if self.solved:
            plies = "" if self.solved.plies is None else f", in {self.solved.plies} plies"
            values = ", ".join(f"{role} {value}" for role, value in self.solved.values.items())
            yield f"perfect: {values}{plies}; {self.solved.num_positions:,} positions"
        else:
            yield f"not solved: {self.not_solved}"
        yield f"choices: {self.mean_choices:.1f} moves on average, at most {self.choices.max(initial=0):.1f} in a ply"
        errors, warnings = len(self.checked.errors), len(self.checked.warnings)
        yield f"check: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        yield from (f"    {finding.code}: {finding.message}" for finding in self.checked.findings[:SHOWN_RULES])
        dead = counted(len(self.dead_rules), "rule")
        colon = ":" if self.dead_rules else ""
        yield f"{dead} of the sheet never fired in {self.num_sampled:,} positions of these matches{colon}"
        yield from (f"    {rule}" for rule in self.dead_rules[:SHOWN_RULES])
        if (more := len(self.dead_rules) - SHOWN_RULES) > 0:
            yield f"    and {more} more"

    def _page(self) -> str:
        """Return the report as a page of HTML."""
        from ..lab.figures import svg_text

        start = position_svg(self.matches[RANDOM].game.start())
        title = escape(f"Report on {self.name}")
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>'
            "body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;line-height:1.5}"
            "svg{max-width:100%;height:auto}pre{white-space:pre-wrap}</style></head>"
            f"<body><h1>{title}</h1><p><strong>{escape(self.headline)}</strong></p>{start}"
            f"{svg_text(self.plot())}<pre>{escape(chr(10).join(self._lines()))}</pre></body></html>\n"
        )

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        return f"<p>{escape(self.headline)}</p>{svg_text(self.plot())}<pre>{escape(chr(10).join(self._lines()))}</pre>"


def report(
    source: Game | str | Path,
    *,
    matches: int = 200,
    simulations: int = 200,
    memory: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress | bool | None = None,
) -> GameReport:
    """Examine a game of your own: is it balanced, how long and how wide is it, which rules never matter?

    Args:
        source: a game, a shipped name, a path or GDL text.
        matches: number of matches of random players, and of UCT players.
        simulations: number of simulations of the UCT players for each move.
        memory: limit in GiB for solving the game.
        seed: seed of all random numbers.
        limits: limits of loading.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The report.

    Raises:
        GameloreError: the sheet has errors, so that it cannot be played.
    """
    check_count("matches", matches)
    check_count("simulations", simulations)
    checked = check(source, play=True, matches=matches, seed=seed, limits=limits)
    if checked.played is None:
        raise GameloreError(f"expected a sheet that can be played: {checked.not_played}\n{checked}")
    game = loaded(source, limits)
    with displayed(progress) as tell:
        played = {
            RANDOM: play(game, RANDOM, matches=matches, seed=seed, progress=_named(tell, "random matches")),
            UCT: play(
                game, f"uct:simulations={simulations}", matches=matches, seed=seed, progress=_named(tell, "uct matches")
            ),
        }
        solved, why = None, ""
        try:
            solved = solve(game, memory=memory, progress=tell)
        except GameloreError as error:
            why = str(error)
    return GameReport(checked, played, solved, why, *_choices(played[RANDOM]), *_dead(played, seed, limits))


def _named(tell: Progress, name: str) -> Progress:
    """Return a function that tells progress under another name."""
    return lambda stage, done, total: tell(name, done, total)


def _choices(matches: Matches) -> tuple[NDArray[np.float64], float]:
    """Return the mean number of moves of the roles that choose: by ply, float64[longest], and over all plies."""
    from ..matches.match import MatchState
    from ..players.position_graph import PositionGraph

    longest = int(matches.plies.max(initial=0))
    sums, counts = np.zeros(longest), np.zeros(longest)
    graph = PositionGraph(matches.game)
    for record in matches.records:
        match = MatchState.after(graph, record.moves, max_plies=len(record.moves) + 1)
        rows = np.array(match.rows[:-1], np.int32)
        choosing = graph.acting[rows] | (graph.num_moves[rows] > 1)
        sums[: len(rows)] += np.where(choosing, graph.num_moves[rows], 0).sum(axis=1)
        counts[: len(rows)] += choosing.sum(axis=1)
    by_ply = np.divide(sums, counts, out=np.zeros(longest), where=counts > 0)
    return by_ply, float(sums.sum() / counts.sum()) if counts.any() else 0.0


def _dead(played: dict[str, Matches], seed: int, limits: Limits | None) -> tuple[tuple[str, ...], int]:
    """Return the rules that fire in no position of a sample, and the number of positions in it."""
    from ..analysis.dead_rules import dead_rules

    game = played[RANDOM].game
    last, others = [], []
    for match in (match for matches in played.values() for match in matches):
        *before, end = zip(match, [*match.moves, {}], strict=True)
        last.append(end)
        others += before
    chosen = np.random.default_rng(seed).permutation(len(others))[:SAMPLED].tolist()
    sample = [*last, *(others[number] for number in chosen)]
    states, moves = [position.facts for position, _ in sample], [joint for _, joint in sample]
    return tuple(str(rule) for rule in dead_rules(game.rulesheet, states, moves, limits)), len(sample)


def _span(interval: Interval) -> str:
    """Return a mean with its interval as text."""
    return (
        f"{interval.mean:.1f}" if interval.too_few else f"{interval.mean:.1f} [{interval.low:.1f}, {interval.high:.1f}]"
    )


def _lengths(matches: Matches) -> str:
    low, high = np.percentile(matches.plies, [5, 95])
    return f"{matches.plies.mean():.1f} plies on average, nine in ten {low:.0f} to {high:.0f}"
