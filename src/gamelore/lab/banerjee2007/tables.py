"""The tables of the report on Banerjee & Stone 2007."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import stats
from ..costs import PARTS, REPEATS
from ..endpoints import Finding, column_rmse, rmse
from ..figures import write_rows
from ..report import Table, span
from .plan import EXTRA, FIGURES, INITIALISATIONS, LEARNERS, NAMES, OPPONENTS, TARGETS, TITLES, Figure
from .study import CONTROL_NAMES, CONTROLLED, EARLY, LAST, LATE, WHOLE, Study


def levels_table(study: Study) -> Table:
    """Every figure's learners: levels under both averages, and speed."""
    learners = [(figure, x) for figure in FIGURES for x in (*figure.learners, *EXTRA.get(figure.opponent, ()))]
    rows = [_levels(study, figure, learner) for figure, learner in learners]
    windows = [study.matches(window) for window in (LATE, WHOLE, LAST)]
    caption = (
        "Mean reward with 95 % interval over runs. The first column is where a curve averaged from match "
        f"{study.window(LATE)[0]} ends, the second where one averaged from match 1 ends. Until 95: median over runs of "
        "the first match at which the mean of the last 20 reaches 95."
    )
    return Table(("figure", "learner", *windows, "until 95", "paper's axis"), rows, (2, 3, 4, 5, 6), caption)


def _levels(study: Study, figure: Figure, learner: str) -> tuple[str, ...]:
    where = figure.game, figure.opponent, learner
    reached = float(np.median(stats.matches_until(study.rewards(*where))))
    levels = [span(study.level(*where, window)) for window in (LATE, WHOLE, LAST)]
    until = f"{reached:.0f}" if np.isfinite(reached) else "never"
    return str(figure.number), learner, *levels, until, f"{figure.axis[0]:g} to {figure.axis[1]:g}"


def controls_table(study: Study) -> Table:
    """The controls' levels and gains."""
    rows = [
        _control(study, game, kind, learner)
        for game in TARGETS
        for kind, learner in [("baseline", "baseline"), *CONTROLLED]
    ]
    header = ("target", "initial values", study.matches(LATE), "minus baseline", "transfer minus this")
    caption = (
        "Paired differences with 95 % intervals. Where the last column lies right of 0, the values that the features "
        "have learned add to what this control has."
    )
    return Table(header, rows, (2, 3, 4), caption)


def _control(study: Study, game: str, kind: str, learner: str) -> tuple[str, ...]:
    gain, rest = "", ""
    if kind != "baseline":
        gain = span(study.difference(game, "egreedy", learner, "baseline"), sign=True)
    if kind != "transfer":
        rest = span(study.difference(game, "egreedy", "transfer", learner), sign=True)
    return TITLES[game], CONTROL_NAMES[kind], span(study.level(game, "egreedy", learner)), gain, rest


def initialisation_table(study: Study) -> Table:
    """lazy, siblings and eager."""
    rows = [
        _initialised(study, game, when, learner)
        for game in TARGETS
        for when in INITIALISATIONS
        for learner in ("transfer", "lookahead")
    ]
    late, early = study.matches(LATE), study.matches(EARLY)
    header = ("target", "initialisation", "learner", late, "minus baseline", f"the same, {early}")
    caption = (
        "lazy: afterstates visited in the last match; siblings: all candidates of the visited states; eager: every "
        "candidate when it is first scored (which expands trees while choosing)."
    )
    return Table(header, rows, (3, 4, 5), caption)


def _initialised(study: Study, game: str, when: str, learner: str) -> tuple[str, ...]:
    name = learner if when == study.plan.reading.initialisation else f"{learner}~{when}"
    late, early = (study.difference(game, "egreedy", name, "baseline", window) for window in (LATE, EARLY))
    return (
        TITLES[game],
        when,
        learner,
        span(study.level(game, "egreedy", name)),
        *(span(x, sign=True) for x in (late, early)),
    )


def sensitivity_table(study: Study) -> Table:
    """The reading's filler against the first legal move; the suicide rule."""
    rows = []
    for figure in (figure for figure in FIGURES if figure.opponent != "random"):
        title = f"{TITLES[figure.game]} against {NAMES[figure.opponent]}, filler"
        for filler, tag in ((study.plan.reading.filler, ""), ("first", "-first")):
            rows.append(_situation(study, f"{title} {filler}", figure.game, figure.opponent + tag, figure.learners))
    title = f"{TITLES['capturego3']} against {NAMES['egreedy']}, suicide legal and losing"
    rows.append(_situation(study, title, "capturego3_suicide", "egreedy", LEARNERS))
    header = ("situation", *LEARNERS, "transfer - baseline", "transfer - lookahead")
    caption = (
        f"Mean reward, {study.matches(LATE)}. With the filler `first` every run meets the same opponent: the interval "
        "hides that."
    )
    return Table(header, rows, (1, 2, 3, 4, 5), caption)


def _situation(study: Study, title: str, game: str, opponent: str, learners: Sequence[str]) -> tuple[str, ...]:
    levels = [span(study.level(game, opponent, x)) if x in learners else "" for x in LEARNERS]
    gains = [
        span(study.difference(game, opponent, "transfer", x), sign=True) if x in learners else ""
        for x in ("baseline", "lookahead")
    ]
    return title, *levels, *gains


def costs_table(study: Study) -> Table:
    """Where the time goes."""
    rows = []
    for game, cost in study.evidence.costs.items():
        for learner, parts in (("baseline", cost.right), ("transfer", cost.left)):
            numbers = [f"{parts[name]:.1f}" for name in PARTS]
            ratio = span(stats.mean_interval(cost.ratios)) if learner == "transfer" else ""
            rows.append((TITLES[game], learner, *numbers, f"{sum(parts.values()):.1f}", ratio))
    sizes = {f"{cost.lanes} lanes of {cost.matches} matches" for cost in study.evidence.costs.values()}
    caption = (
        f"Microseconds per match of {' or '.join(sorted(sizes))}, positions not worked out before. Playing: rules, "
        "opponents and loop, working out new positions included, so a learner that meets fewer of them pays less "
        "there; choosing: the learner's choices; learning: Equation 2; initialising: expanding and matching trees. "
        f"Ratio: transfer's wall time over the baseline's, mean and 95 % interval of {REPEATS} repeats."
    )
    return Table(("target", "learner", *PARTS, "together", "ratio"), rows, (2, 3, 4, 5, 6, 7), caption)


def table1_table(study: Study) -> Table:
    """Table 1, ours beside the paper's."""
    table = study.evidence.table
    rows = []
    for letter, text in table.features.items():
        cells = [(f"{table.column(x)[letter]:g}", span(study.feature(x, letter))) for x in OPPONENTS]
        rows.append((f"({letter})", f"`{text}`", *(cell for pair in cells for cell in pair)))
    names = [cell for opponent in OPPONENTS for cell in (f"{NAMES[opponent]}, paper", "ours")]
    caption = f"L, D, W: loss, draw, win for the learner; n: undecided. {rmse_words(study)}"
    return Table(("", "feature", *names), rows, tuple(range(2, 8)), caption)


def rmse_words(study: Study) -> str:
    """Root mean square distances, as assigned and over all assignments that the text allows."""
    words = []
    table = study.evidence.table
    for opponent in OPPONENTS:
        runs, printed = study.evidence.learned(opponent), table.column(opponent)
        found = column_rmse(runs, table.printed(opponent))
        others = [rmse(runs, {one[letter]: printed[letter] for letter in one}) for one in table.assignments()]
        words.append(f"{NAMES[opponent]} {span(found)} ({min(others):.2f} to {max(others):.2f})")
    return (
        "Root mean square distance from the paper's column, in brackets the range over all assignments of letters "
        f"that the paper's text allows: {'; '.join(words)}."
    )


def claims_table(studies: Sequence[Study]) -> Table:
    """Every claim, in every reading; what was counted on the games alone stands once."""
    rows = []
    for findings in zip(*(study.findings for study in studies), strict=True):
        sampled = bool(findings[0].settings) or findings[0].interval.num > 0
        for study, finding in list(zip(studies, findings, strict=True))[: None if sampled else 1]:
            rows.append(_claim_row(finding, study.name if sampled else "any"))
    header = ("claim", "the paper's words and place", "reading", "paper", "claimed", "ours", "runs", "p", "verdict")
    return Table(header, rows, (5, 6, 7))


def _claim_row(finding: Finding, reading: str) -> tuple[str, ...]:
    claim = finding.claim
    sign = {"above": ">", "below": "<", "within": "in", "equals": "="}[claim.test]
    claimed = f"{sign} {' to '.join(f'{number:g}' for number in claim.target)}"
    if claim.directional and claim.margin:
        claimed += f" (margin {claim.margin:g})"
    note = f" Here: {claim.note}." if claim.note else ""
    words = f"“{claim.quote}” ({claim.place}).{note}"
    ours, runs = span(finding.interval), str(finding.interval.num or "")
    p = "" if finding.adjusted is None else "< 0.001" if finding.adjusted < 0.001 else f"{finding.adjusted:.3f}"
    return f"`{claim.id}`", words, reading, claim.paper, claimed, ours, runs, p, finding.verdict


def write_claims(studies: Sequence[Study], folder: Path) -> Path:
    """Every finding as a row, with the settings it rests on."""
    header = (
        "claim", "reading", "place", "measure", "test", "target", "margin", "paper", "mean", "low", "high", "runs",
        "runs_wanted", "p", "p_holm", "verdict", "settings",
    )  # fmt: skip
    rows = [_finding_row(study.name, finding) for study in studies for finding in study.findings]
    return write_rows(folder / "claims.csv", header, rows)


def _finding_row(reading: str, finding: Finding) -> tuple[object, ...]:
    claim, one = finding.claim, finding.interval
    p_values = ("" if p is None else f"{p:.3g}" for p in (finding.p, finding.adjusted))
    return (
        claim.id, reading, claim.place, claim.measure, claim.test, " ".join(f"{x:g}" for x in claim.target),
        claim.margin, claim.paper, one.mean, one.low, one.high, one.num, finding.wanted, *p_values, finding.verdict,
        " ".join(finding.settings),
    )  # fmt: skip
