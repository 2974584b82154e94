"""The figures of the report on Banerjee & Stone 2007."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .. import stats
from ..claims import PrintedTable
from ..drawing import draw_features
from ..endpoints import column_rmse
from ..figures import (
    COLOURS,
    VERDICT_COLOURS,
    CurvePlan,
    Dot,
    Picture,
    dot_figure,
    learning_figure,
    sweep_figure,
    write_rows,
)
from ..stats import Interval
from ..structure import feature_texts
from ..trees import DrawnFeature, labels
from .plan import FIGURES, NAMES, OPPONENTS, SOURCE, SWEPT_EPSILONS, SWEPT_MATCHES, TARGETS, TITLES, Figure, swept
from .study import CONTROL_NAMES, CONTROLLED, LATE, Study


def curves(study: Study) -> Iterator[Picture]:
    """Figures 3 to 7."""
    for figure in FIGURES:
        yield _curves(study, figure)


def _curves(study: Study, figure: Figure) -> Picture:
    """One of them; the rows hold both averages (readings.md, B&S 7), the picture the one that the figure asks for."""
    drawn, other = (study.window((first, 3000))[0] for first in ((1, 301) if figure.averaged_from == 1 else (301, 1)))
    rewards = {x: study.rewards(figure.game, figure.opponent, x) for x in figure.learners}
    shown = {x: stats.mean_curve(r, drawn) for x, r in rewards.items()}
    extra = {x: stats.mean_curve(r, other, max(drawn, other)) for x, r in rewards.items()}
    where = f"{TITLES[figure.game]} against {NAMES[figure.opponent]}"
    caption = (
        f"Figure {figure.number}: {where}, reading {study.name}, averaged from match {drawn}, "
        f"{study.plan.runs} runs with 95 % bands."
    )
    name = f"figure{figure.number}-{study.name}"
    title = f"Figure {figure.number}. {where}  (reading {study.name})"
    plan = CurvePlan(name, title, caption, figure.axis, drawn, other, study.plan.runs)
    return learning_figure(plan, shown, study.folder, extra)


def figure2_picture(table: PrintedTable, values: dict[str, dict[str, float]], folder: Path) -> Picture:
    """The twelve features, drawn; `values` {opponent: {letter: value}} stand beneath."""
    features = [
        DrawnFeature(letter, text, {NAMES[x]: values[x][letter] for x in values if letter in values[x]})
        for letter, text in table.features.items()
    ]
    png, svg = draw_features(features, folder / "figure2")
    rows = [(one.label, one.text, *one.values.values()) for one in features]
    header = ("letter", "feature", *values)
    caption = (
        "Figure 2: the twelve features of tic-tac-toe for the first mover, with the values of Table 1 as printed. "
        "Which letter of a group (a, b, e, g), (c, d), (j, k, l) is which feature is a guess."
    )
    return Picture("figure2", caption, png, svg, write_rows(folder / "figure2.csv", header, rows))


def second_mover_picture(folder: Path) -> Picture:
    """The features of the role that the paper does not show."""
    found = [DrawnFeature(label, text) for label, text in zip(labels(), feature_texts(SOURCE, 1), strict=False)]
    png, svg = draw_features(found, folder / "figure2-second")
    rows = write_rows(folder / "figure2-second.csv", ("letter", "feature"), [(one.label, one.text) for one in found])
    caption = f"The {len(found)} features of tic-tac-toe for the second mover, which the paper does not show."
    return Picture("figure2-second", caption, png, svg, rows)


def table1_picture(study: Study) -> Picture:
    """Table 1: our values with intervals, the printed ones as diamonds."""
    table = study.evidence.table
    panels = []
    for opponent in OPPONENTS:
        printed = table.column(opponent)
        dots = [
            Dot(f"{text}  ({letter})", study.feature(opponent, letter), COLOURS["transfer"], printed[letter])
            for letter, text in table.features.items()
        ]
        panels.append((NAMES[opponent], dots))
    caption = (
        f"Table 1: values of the twelve features after {study.plan.reading.source_matches} matches of tic-tac-toe, "
        f"reading {study.name}; mean over those of {study.plan.runs} runs that met the feature, with 95 % interval; "
        "diamonds: the paper."
    )
    return dot_figure(f"table1-{study.name}", caption, panels, study.folder, xlabel="value", zero=50, same_x=True)


def sweep_picture(study: Study) -> Picture:
    """How far the values are from Table 1, by length and policy of the source run."""
    panels = {
        NAMES[opponent]: {
            f"learner's ε = {epsilon:g}": [(n, _swept(study, opponent, n, epsilon)) for n in SWEPT_MATCHES]
            for epsilon in SWEPT_EPSILONS
        }
        for opponent in OPPONENTS
    }
    caption = (
        "Distance from Table 1 (root mean square over the twelve features) by length of the source run and by the "
        f"learner's exploration ε, reading {study.name}."
    )
    return sweep_figure(f"sweep-{study.name}", caption, panels, study.folder, "RMSE, points")


def _swept(study: Study, opponent: str, matches: int, epsilon: float) -> Interval:
    name = f"{study.plan.name}/{SOURCE}/{opponent}/{swept(matches, epsilon)}"
    return column_rmse(study.evidence.store.values(name, study.evidence.runs), study.evidence.table.printed(opponent))


def controls_picture(study: Study) -> Picture:
    """What each control gains over the baseline, per target."""
    panels = []
    for game in TARGETS:
        dots = [
            Dot(
                CONTROL_NAMES[kind],
                study.difference(game, "egreedy", learner, "baseline"),
                COLOURS.get(kind, "#5d6670"),
            )
            for kind, learner in CONTROLLED
        ]
        panels.append((TITLES[game], dots))
    caption = (
        f"What carries the gain: mean reward, {study.matches(LATE)}, minus the baseline's, ε-greedy opponent, reading "
        f"{study.name}, {study.plan.runs} runs, 95 % intervals of paired differences."
    )
    return dot_figure(f"controls-{study.name}", caption, panels, study.folder, xlabel="points over baseline", zero=0)


def claims_picture(study: Study) -> Picture:
    """Every difference between learners that a claim is about."""
    found = [f for f in study.findings if f.claim.measure == "difference"]
    dots = [Dot(f.claim.id, f.interval, VERDICT_COLOURS[f.verdict]) for f in found]
    caption = (
        f"Every claimed order of two learners, reading {study.name}: paired difference in points per match, 95 % "
        "intervals; each claim says: right of 0. Green: reproduced, red: contradicted, blue: equivalent, grey: "
        "undecided."
    )
    xlabel = "points per match (logarithmic beyond 1)"
    return dot_figure(f"claims-{study.name}", caption, [("", dots)], study.folder, xlabel=xlabel, zero=0, symlog=True)
