"""The tables of the report on Lock & Epstein 2004."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ...learn.training import Curriculum
from ...learn.weighing import WEIGHTS
from .. import stats
from ..figures import write_rows
from ..report import Table, span
from ..stats import Array, Interval
from .exact import exact_baselines, z_score
from .findings import Finding
from .plan import OTHERS, PAPER, TITLES
from .printed import CLASSES, COLUMNS, PAIRS, ROWS, SEQUENCES, TABLE_1, TABLE_2, Column
from .study import Compared, Raised, Study, Tried, printed_cell

CLASS_NAMES = (".9 to 1", ".8 to .9", ".7 to .8", ".55 to .7 (tier 3)")
_ROW_NAMES = {"baseline": "Baseline", "version 1": "Experiment 1", "version 2": "Experiment 2"}


def spread(samples: Array, decimals: int = 1) -> str:
    """`82.0 (13.2)`: mean and standard deviation over runs."""
    deviation = samples.std(ddof=1) if len(samples) > 1 else 0.0
    return f"{samples.mean():.{decimals}f} ({deviation:.{decimals}f})"


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


# ---- Table 1 ----


def table1(study: Study, game: str) -> Table:
    """Table 1 of one game, ours above the paper's."""
    improved = {(one.row, one.column) for one in study.compared if one.game == game and one.improved}
    rows = []
    for row in ROWS:
        ours = [spread(study.samples(game, row, column)) for column in COLUMNS]
        bold = [
            f"**{text}**" if (row, column) in improved else text for column, text in zip(COLUMNS, ours, strict=True)
        ]
        rows += [
            (_ROW_NAMES[row], "ours", *bold),
            ("", "paper", *(printed_cell(game, row, column) for column in COLUMNS)),
        ]
    header = ("", "", *(f"{column.opponent}, {column.what}" for column in COLUMNS))
    caption = (
        f"{TITLES[game]}: per cent of matches won or drawn (reliability) and won (power), means with standard "
        f"deviations over {study.plan.runs} runs, of the baseline over {2 * study.plan.runs} blocks. Bold: improved "
        "over the row above (ours: Welch's test, p < 0.05 after Holm's correction over all such comparisons "
        "in both games)."
    )
    return Table(header, rows, tuple(range(2, 2 + len(COLUMNS))), caption)


def exact_table(study: Study) -> Table:
    """The baselines of lose tic-tac-toe against what they come to exactly."""
    exact, rows = exact_baselines(), []
    num = sum(scores[0] for scores in _baseline_scores(study))
    for column in COLUMNS:
        ours = float(study.samples("losetictactoe", "baseline", column).mean())
        paper = TABLE_1["losetictactoe"]["baseline"][column].mean
        rows.append(
            (
                f"{column.opponent}, {column.what}", f"{exact[column]:.2f}", f"{ours:.2f}",
                f"{z_score(ours, exact[column], num):+.2f}", f"{paper:.2f}", f"{z_score(paper, exact[column]):+.2f}",
            )
        )  # fmt: skip
    header = ("random player against", "exact", f"ours, {num} matches", "z", "paper, 1000 matches", "z")
    caption = (
        "Lose tic-tac-toe: the baseline's exact expectation, computed from the solution by following the probability "
        "of each position (sides alternate), and how many standard errors both samples are from it."
    )
    return Table(header, rows, (1, 2, 3, 4, 5), caption)


def _baseline_scores(study: Study) -> Iterator[list[int]]:
    for result in study.results[f"{study.part}/losetictactoe/baseline"]:
        (scores,) = result["scores"].values()
        yield scores["perfect"]


def compared_table(study: Study) -> Table:
    """Every cell against the one above it, ours beside the paper's bold cells."""
    rows = [_compared_row(one) for one in study.compared]
    header = ("game", "experiment", "against", "ours: change", "p (Holm)", "ours", "paper", "paper: change")
    caption = (
        "Change from the row above in points, with 95 % intervals (Welch). Improved, worse: p < 0.05 after Holm's "
        f"correction over these {len(rows)} comparisons."
    )
    return Table(header, rows, (3, 4, 7), caption)


def _compared_row(one: Compared) -> tuple[str, ...]:
    above = ROWS[ROWS.index(one.row) - 1]
    paper, before = (TABLE_1[one.game][row][one.column] for row in (one.row, above))
    ours = "improved" if one.improved else "worse" if one.worse else ""
    return (
        TITLES[one.game], f"{_ROW_NAMES[one.row]} over {_ROW_NAMES[above]}",
        f"{one.column.opponent}, {one.column.what}",
        span(one.difference, 1, sign=True), _p(one.adjusted), ours, "improved" if paper.bold else "",
        f"{paper.mean - before.mean:+.1f}",
    )  # fmt: skip


# ---- Table 2 and the counts ----


def table2(study: Study) -> Table:
    """Pairs by weight class, sequences and pairs, ours beside the paper's."""
    rows: list[tuple[str, ...]] = []
    for number, name in enumerate(CLASS_NAMES):
        cells = []
        for game in study.games:
            paper = TABLE_2[game][number]
            cells += [spread(study.classes(game)[:, number]), f"{paper.mean:.2f} ({paper.deviation:.2f})"]
        rows.append((f"pairs with weights {name}", *cells))
    rows.append(("pairs from .55, together", *_both(study, lambda game: study.classes(game).sum(axis=1), PAIRS)))
    rows.append(("sequences in SeqTable", *_both(study, lambda game: study.count(game, "sequences"), SEQUENCES)))
    for what, words in (("twice", "met twice at least"), ("origins", "met in two origin states at least")):
        cells = [cell for game in study.games for cell in (spread(study.count(game, what)), "")]
        rows.append((f"of these, {words}", *cells))
    rows.append(
        ("context pairs in all", *(c for game in study.games for c in (spread(study.count(game, "pairs")), "")))
    )
    header = ("", *(cell for game in study.games for cell in (f"{TITLES[game]}, ours", "paper")))
    return Table(header, rows, tuple(range(1, len(header))), "Means with standard deviations over runs.")


def _both(study: Study, samples: Callable[[str], Array], printed: dict[str, float]) -> Iterator[str]:
    for game in study.games:
        yield from (spread(samples(game)), f"{printed[game]:g}")


def formulas_table(study: Study) -> Table:
    """Table 2 under each of PWL's formulas."""
    rows = []
    for game in study.games:
        for formula in WEIGHTS:
            sizes = study.classes(game, formula)
            rows.append((TITLES[game], formula, *(spread(size) for size in sizes.T), spread(sizes.sum(axis=1))))
        rows.append((TITLES[game], "the paper", *(f"{cell.mean:g}" for cell in TABLE_2[game]), f"{PAIRS[game]:g}"))
    caption = (
        "How many pairs each weight class has under each formula for PWL, which the paper does not print. A formula "
        "changes neither what is watched nor which pairs there are."
    )
    return Table(("game", "formula", *CLASS_NAMES, "together"), rows, (2, 3, 4, 5, 6), caption)


# ---- variants and claims ----


def tried_table(found: Mapping[str, Sequence[Tried]], runs: int, matches: int) -> Table:
    """Variants against the perfect player."""
    rows = [
        (
            TITLES[game],
            one.name,
            span(one.reliability, 1),
            "" if one.difference is None else span(one.difference, 1, sign=True),
        )
        for game, variants in found.items()
        for one in variants
    ]
    caption = (
        f"Reliability of version 2 against the perfect player, {runs} runs of {matches} matches each, with 95 % "
        "intervals over runs; differences from the default run by run, on the same training matches where "
        "the game is the same."
    )
    return Table(("game", "variant", "won or drawn, %", "minus the default"), rows, (2, 3), caption)


def raised_table(found: Sequence[Raised], runs: int) -> Table:
    """Games that the authors never saw."""
    rows = [
        (
            OTHERS[one.game],
            one.test,
            one.opponent,
            span(one.baseline, 1),
            span(one.reliability, 1),
            span(one.difference, 1, sign=True),
        )
        for one in found
    ]
    header = ("game", "player", "against", "random player: won or drawn, %", "SeqPlayer", "difference")
    caption = (
        f"Reliability after {Curriculum().num_matches} matches watched, sequences of three moves; {runs} runs of 50 "
        "matches each with fresh seeds, 95 % intervals."
    )
    return Table(header, rows, (3, 4, 5), caption)


def claims_table(findings: Sequence[Finding]) -> Table:
    """Every claim with its verdict."""
    header = ("claim", "the paper's words and place", "paper", "claimed", "ours", "runs", "p", "verdict")
    return Table(header, [_claim_row(finding) for finding in findings], (4, 5, 6))


def _claim_row(finding: Finding) -> tuple[str, ...]:
    claim = finding.claim
    sign = {"above": ">", "below": "<", "within": "in"}[claim.test]
    claimed = f"{sign} {' to '.join(_number(number) for number in claim.target)}"
    note = f" Here: {claim.note}." if claim.note else ""
    words = f"“{claim.quote}” ({claim.place}).{note}"
    ours = span(finding.interval)
    return (
        f"`{claim.id}`",
        words,
        claim.paper,
        claimed,
        ours,
        str(finding.interval.num),
        _p(finding.adjusted),
        finding.verdict,
    )


def _number(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def write_claims(findings: Sequence[Finding], folder: Path) -> Path:
    """Every finding as a row."""
    header = (
        "claim", "place", "measure", "test", "target", "paper", "mean", "low", "high", "runs", "p", "p_holm", "verdict"
    )  # fmt: skip
    return write_rows(folder / "claims.csv", header, [_finding_row(one) for one in findings])


def _finding_row(finding: Finding) -> tuple[object, ...]:
    claim, one = finding.claim, finding.interval
    p_values = ("" if p is None else f"{p:.3g}" for p in (finding.p, finding.adjusted))
    target = " ".join(f"{x:g}" for x in claim.target)
    return (
        claim.id, claim.place, claim.measure, claim.test, target, claim.paper, one.mean, one.low, one.high, one.num,
        *p_values, finding.verdict,
    )  # fmt: skip


def write_table1(study: Study, folder: Path) -> Path:
    """Table 1 as rows: ours with interval, exact where known, the paper's."""
    header = (
        "game", "row", "opponent", "what", "mean", "deviation", "low", "high", "runs", "paper", "paper_deviation",
        "paper_bold", "exact",
    )  # fmt: skip
    rows = [_table1_row(study, game, row, column) for game in study.games for row in ROWS for column in COLUMNS]
    return write_rows(folder / "table1.csv", header, rows)


def _table1_row(study: Study, game: str, row: str, column: Column) -> tuple[object, ...]:
    samples, cell = study.samples(game, row, column), TABLE_1[game][row][column]
    interval: Interval = stats.mean_interval(samples)
    exact = exact_baselines()[column] if (game, row) == ("losetictactoe", "baseline") else ""
    deviation = float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    return (
        game, row, *column, interval.mean, deviation, interval.low, interval.high, interval.num, cell.mean,
        cell.deviation, int(cell.bold), exact,
    )  # fmt: skip


def write_table2(study: Study, folder: Path) -> Path:
    """Table 2 and the counts by run."""
    header = ("game", "run", "sequences", "twice", "origins", "pairs", *(f"from_{low:g}" for low in CLASSES))
    rows = [
        (game, run, *(result[what] for what in header[2:6]), *result["classes"][PAPER.weighting])
        for game in study.games
        for run, result in enumerate(study.learned(game))
    ]
    return write_rows(folder / "table2.csv", header, rows)
