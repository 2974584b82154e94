"""The tables of what was learned: classes of sequences, speed, how good the advice is, the "
"strategies of the figures."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...games import load
from ...learn.patterns import Patterns
from .. import stats
from ..report import Table, span
from ..stats import Array
from . import classes
from .observing import SOURCES
from .plan import TITLES
from .printed import FASTER
from .strategies import STRATEGIES
from .study import Study
from .tables import CLASS_NAMES, spread

_SHOWN_CLASSES = 12  # as examples


def classes_table(study: Study) -> Table:
    """The 264 classes of lose tic-tac-toe: which can be learned, which were."""
    possible, met = classes.possible(), _met(study)
    rows = [_class_row(classes.kind_name(kind), kind, possible, met) for kind in classes.KINDS]
    rows.append(_class_row("together", None, possible, met))
    header = (
        "", "allowed", "stand in a match", "that the contestant won or drew", "and with a perfect player",
        "met in a run", "twice", "from two origins", "met in any run",
    )  # fmt: skip
    caption = (
        "Classes of sequences of length 3 under the 8 symmetries. The first columns count all matches of the game; "
        f"the last four what the training met: means over {study.plan.runs} runs, and how many were met in any of them."
    )
    return Table(header, rows, tuple(range(1, len(header))), caption)


_Met = list[dict[classes.Class, tuple[int, bool]]]


def _met(study: Study) -> _Met:
    """Of each run the classes met, with how often and whether from several origin states."""
    length = classes.LENGTH
    return [
        {(row[0], row[1], tuple(row[2 : 2 + length])): (row[-2], bool(row[-1])) for row in result["met"]}
        for result in study.learned(classes.GAME)
    ]


def _class_row(name: str, kind: classes.Kind | None, possible: classes.Possible, met: _Met) -> tuple[str, ...]:
    def num(found: Iterable[classes.Class]) -> int:
        return sum(kind is None or one[:2] == kind for one in found)

    runs = [
        [num(run), num(c for c, (n, _) in run.items() if n > 1), num(c for c, (_, several) in run.items() if several)]
        for run in met
    ]
    counted = (possible.allowed, possible.in_match, possible.in_success, possible.in_training)
    means = np.array(runs, np.float64).mean(axis=0)
    ever = num(set().union(*met))
    return name, *(str(num(some)) for some in counted), *(f"{mean:.1f}" for mean in means), str(ever)


def classes_words(study: Study) -> list[str]:
    """Which classes are left out, and why, found by going through all matches."""
    possible, met = classes.possible(), _met(study)
    ever: set[classes.Class] = set().union(*met)
    patterns = Patterns(load(classes.GAME))
    lost = possible.in_match - possible.in_success
    are_lines = "exactly" if lost == possible.lines else "not only"
    shut_out = possible.in_success - possible.in_training
    unmet = sorted(possible.in_training - ever)
    kinds = {classes.kind_name(kind): classes.share_of(kind, shut_out) for kind in classes.KINDS}
    examples = ", ".join(classes.squares(patterns, one) for one in unmet[:_SHOWN_CLASSES])
    words = [
        f"{len(possible.allowed) - len(possible.in_match)} of the {len(possible.allowed)} classes cannot "
        "stand in any match.",
        f"{len(lost)} stand only in matches that their contestant lost: {are_lines} the solos whose three squares are "
        "in a line, which is what loses.",
        f"{len(shut_out)} more stand in no match that their contestant won or drew against, or as, a perfect player, "
        "and a perfect player takes part in all of the training: "
        + ", ".join(f"{count} {name}" for name, count in kinds.items() if count)
        + ". (A first player that loses nothing takes the centre, and has few such moves from then on.)",
        f"That leaves {len(possible.in_training)} that the training can meet at all; {len(ever)} of them were met in "
        f"at least one of {len(met)} runs.",
    ]
    if unmet:
        named = f", by their squares numbered in rows: {examples}" + (" .." if len(unmet) > _SHOWN_CLASSES else "")
        words.append(f"The other {len(unmet)} need rare moves of the weaker side and happened not to be met{named}.")
    outside = len(ever - possible.in_training)
    if outside:
        words.append(f"{outside} were met that should be impossible: this is a mistake of the program.")
    return words


# ---- speed, advice, strategies ----


def speed_table(study: Study) -> Table:
    """How long a decision takes."""
    rows = []
    for game in study.games:
        times = [result["microseconds"] for result in study.results[f"speed/{game}"]]
        cells = [spread(np.array([one[version] for one in times])) for version in ("version 1", "version 2")]
        paper = f"{FASTER:g}" if game == "fivemensmorris" else ""
        rows.append((TITLES[game], *cells, span(stats.mean_interval(study.faster(game)), 1), paper))
    caption = (
        "Microseconds of processor time per decision, with the same pairs against the same opponents; of each run the "
        f"median of several repeats, mean and standard deviation over {len(times)} runs. The last columns: by how "
        "many per cent version 2 is faster."
    )
    return Table(("", "version 1", "version 2", "faster by, ours", "paper"), rows, (1, 2, 3, 4), caption)


def advice_table(study: Study) -> Table:
    """How often advice loses nothing, by the solution."""
    rows = []
    names = {**{source: f"pairs {name}" for source, name in zip(SOURCES, CLASS_NAMES, strict=False)}}
    for game in study.games:
        for source, tallies in study.advice(game).items():
            name = names.get(source, "moves that the Enforcer made")
            rows.append((TITLES[game], name, f"{tallies[:, 0].mean():.1f}", *_shares(tallies)))
    caption = (
        "How often a move loses nothing against best play, in the states that version 2 met in testing and in which "
        "some legal move does lose something. Classes of pairs are asked in every such state, each by itself; a "
        "random move is the yardstick, in the same states. Means over states with 95 % intervals over runs (jackknife)."
    )
    header = ("game", "advice of", "states a run", "loses nothing, %", "a random move, %", "difference")
    return Table(header, rows, (2, 3, 4, 5), caption)


def _shares(tallies: Array) -> tuple[str, ...]:
    """Of all runs together: right moves, the same at random, and the difference with its interval."""
    if not tallies[:, 0].sum():
        return "none met", "", ""

    def share(column: int) -> float:
        return float(100 * tallies[:, column].sum() / tallies[:, 0].sum())

    met = tallies[tallies[:, 0] > 0]
    difference = stats.jackknife(met, lambda some: float(100 * (some[:, 1] - some[:, 2]).sum() / some[:, 0].sum()))
    return f"{share(1):.1f}", f"{share(2):.1f}", span(difference, 1, sign=True)


def strategies_table(study: Study) -> Table:
    """In how many runs each strategy of Figures 5 to 7 was learned."""
    figures = {"reflection": "Figure 5", "block": "Figure 6", "shuttle": "Figure 7"}
    rows = []
    for strategy, game in STRATEGIES.items():
        if game in study.games:
            found = [study.shown(game, strategy, what) for what in ("num", "strong")]
            best = study.best_shown(game, strategy)
            words = f"{best.weight:.2f} ({best.comments:.0f})" if best else "none"
            in_runs = (f"{int((one > 0).sum())} of {len(one)}" for one in found)
            rows.append((strategy, f"{TITLES[game]}, {figures[strategy]}", *in_runs, f"{found[0].mean():.1f}", words))
    header = (
        "strategy",
        "where",
        "runs with such a pair",
        "of weight .9 or more",
        "pairs a run",
        "best weight (comments)",
    )
    return Table(header, rows, (2, 3, 4, 5))
