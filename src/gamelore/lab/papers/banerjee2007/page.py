"""The report on Banerjee & Stone 2007. `reproduce` plays missing trials, then writes tables, figures and text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ....errors import ExperimentError
from ... import figures, report, stats
from ...claims import ClaimFinding, claims_table, read_committed, verdict_counts, write_findings
from ...experiment import RunSummary, SettingGrid, code_version, run_grid
from ...feature_trees import DrawnFeature, draw_features, labels
from ...figures import CurvePlan, Dot, ReportPicture
from ...report import Block, Bullets, Heading, Pictures, ReportPaths, TableBlock, Text, span
from ...results import ResultStore, store_path
from ...stats import Interval
from . import measures
from . import plan as paper
from .measures import Cost, Evidence, Headroom, Study, column_rmse, compare_costs, feature_texts, judge_claims, rmse
from .plan import Claims, Plan, PrintedTable, load_claims, swept

PARTS: dict[str, tuple[str, ...]] = {
    "text": ("core", "controls", "sweep"),
    "figures": ("core", "controls", "sensitivity", "sweep"),
}
COLUMNS = (
    "claim", "reading", "place", "measure", "test", "target", "margin", "paper", "mean", "low", "high", "runs",
    "runs_wanted", "p", "p_holm", "verdict", "settings",
)  # fmt: skip
"""The columns of claims.csv. headroom.csv has two more, `ahead` and `room`: the words for the verdict."""
COMMITTED = Path(__file__).with_name("committed.csv")


def reproduce(
    out: Path | str,
    reading: Literal["text", "figures", "both"] = "figures",
    *,
    runs: int = 10,
    matches: int = 3000,
    seed: int = paper.SEED,
    verdicts: bool = False,
    max_runs: int | None = None,
    workers: int = 2,
    cluster: str | None = None,
    progress: bool = True,
    parts: Iterable[str] | None = None,
    headroom: bool = False,
) -> ReportPaths:
    """Play the trials that are not yet in `out`/results.db, and write report.md, report.html, pictures and CSV files.

    runs      number of runs of every setting that the figures and tables show
    verdicts  judge the claims by additional trials with fresh seeds and more runs, see `Plan.of_findings`; only by the
              runs that it returns, even if `out` holds more
    max_runs  largest number of runs of every setting of these additional trials; None for no further limit
    parts     names of the parts to run, from PARTS; the part "core" is always run; None for all parts
    cluster   the Ray cluster that plays, see `cluster_pool`; None for processes of this machine
    headroom  also run the part "headroom" (oracle and turns), which takes longer than all others together; with
              `verdicts` and without `max_runs`, as many fresh runs as claims.toml says

    Raise ExperimentError if `out` holds results of other settings.
    """
    begin = time.perf_counter()
    folder, plans, claims = Path(out), _plans(reading, runs, matches, seed), load_claims()
    possible = {plan.name: PARTS[plan.reading.name] for plan in plans}
    parts = None if parts is None else tuple(parts)
    wanted = {"core", *(PARTS["figures"] if parts is None else parts)}
    chosen = {name: tuple(part for part in several if part in wanted) for name, several in possible.items()}
    with ResultStore(store_path(folder)) as store:
        grid = SettingGrid.of(setting for plan in plans for setting in plan.parts(chosen[plan.name]))
        ran = [run_grid(grid, store, workers=workers, cluster=cluster, progress=progress, label="figures")]
        drawn = [_evidence(plan, claims, store, plan.runs) for plan in plans]
        judged = drawn
        if verdicts:  # the scatter of the runs above determines how many additional runs are needed
            judging = [plan.verdicts() for plan in plans]
            pilots = zip(judging, [judge_claims(claims, evidence) for evidence in drawn], strict=True)
            wanted_grids = [plan.of_findings(findings, max_runs).settings for plan, findings in pilots]
            grid = SettingGrid.of(setting for settings in wanted_grids for setting in settings.values())
            ran.append(run_grid(grid, store, workers=workers, cluster=cluster, progress=progress, label="verdicts"))
            fixed = [{name: setting.runs for name, setting in settings.items()} for settings in wanted_grids]
            judged = [_evidence(plan, claims, store, num) for plan, num in zip(judging, fixed, strict=True)]
        rooms: list[Headroom | None] = [None] * len(plans)
        if headroom:
            used = [plan.verdicts() for plan in plans] if verdicts else plans
            num = min(claims.headroom_runs, max_runs or claims.headroom_runs) if verdicts else runs
            grid = SettingGrid.of(setting for plan in used for setting in plan.headroom(num))
            ran.append(run_grid(grid, store, workers=workers, cluster=cluster, progress=progress, label="headroom"))
            evidences = [Evidence(store, plan.name, paper.SOURCE, claims.table, num) for plan in used]
            rooms = [Headroom.judged(claims, evidence) for evidence in evidences]
        studies = [
            Study(plan, shown, judge_claims(claims, evidence), folder, chosen[plan.name], room)
            for plan, shown, evidence, room in zip(plans, drawn, judged, rooms, strict=True)
        ]
        given: dict[str, Any] = {
            "runs": runs,
            "matches": matches,
            "seed": seed,
            "verdicts": verdicts,
            "headroom": headroom,
        }
        if cluster is not None:
            given["cluster"] = cluster
        made_by = _made_by(folder, reading, given, {"max_runs": max_runs, "parts": parts})
        return _write(studies, claims, verdicts, _provenance(studies, store, ran, made_by, begin))


def _made_by(folder: Path, reading: str, given: Mapping[str, Any], only_python: Mapping[str, Any]) -> tuple[str, str]:
    """Return "command" and the command that makes this report, or "call" and the call if it has no command.

    only_python: options that the command does not have; None for an option that was not given
    """
    more = {name: value for name, value in only_python.items() if value is not None}
    if more:
        options = {"out": str(folder), "reading": reading, **given, **more}
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return "call", f"`gamelore.lab.papers.banerjee2007.reproduce({words})`"
    flags = (f"--{name}" if value is True else f"--{name} {value}" for name, value in given.items() if value)
    return "command", f"`gamelore reproduce banerjee2007 --reading {reading} {' '.join(flags)} --out {folder}`"


def _plans(reading: str, runs: int, matches: int, seed: int) -> list[Plan]:
    readings = paper.READINGS
    names = list(readings) if reading == "both" else [reading]
    if names[0] not in readings:
        raise ExperimentError(
            f"expected the reading {', '.join(readings)} or both, got {reading!r}; choose one of these"
        )
    return [Plan(readings[name], runs, matches, seed) for name in reversed(names)]


def _evidence(plan: Plan, claims: Claims, store: ResultStore, runs: int | Mapping[str, int]) -> Evidence:
    costs = {}
    for game in paper.TARGETS:
        name = f"cost/{plan.reading.name}/{game}"
        if store.noted(name) is None:  # times are measured only once, since they are not reproducible
            transfer, baseline = (plan.target(game, "egreedy", learner) for learner in ("transfer", "baseline"))
            store.note(name, compare_costs(transfer, baseline, store.values(plan.source("egreedy").id)).as_json())
        costs[game] = Cost(**store.noted(name))
    return Evidence(store, plan.name, paper.SOURCE, claims.table, runs, costs)


def _write(studies: Sequence[Study], claims: Claims, verdicts: bool, provenance: TableBlock) -> ReportPaths:
    folder = studies[0].folder
    features = [figure2_picture(claims.table, folder), second_mover_picture(folder)]
    rows = ((study.name, finding) for study in studies for finding in study.findings)
    write_findings(folder / "claims.csv", COLUMNS, rows)
    if studies[0].headroom:
        rooms = ((study.name, finding) for study in studies if study.headroom for finding in study.headroom.findings)
        write_findings(folder / "headroom.csv", (*COLUMNS, "ahead", "room"), rooms, _verdict_words)
    title = "General Game Learning using Knowledge Transfer (Banerjee & Stone 2007), reproduced"
    page = blocks(studies, features, verdicts, provenance)
    return report.write_report(title, headline(studies[0], verdicts), page, folder)


def _provenance(
    studies: Sequence[Study], store: ResultStore, ran: Sequence[RunSummary], made_by: tuple[str, str], begin: float
) -> TableBlock:
    plan, totals = studies[0].plan, store.totals()
    trials = f"{totals['trials']} with {totals['matches']} matches; all in `{store.path.name}`, with their settings"
    settings = f"seed {plan.seed}, {plan.runs} runs of {plan.matches} matches"
    headroom = " and `headroom.csv`" if studies[0].headroom else ""
    rows = {
        made_by[0]: made_by[1],
        "settings": f"{settings}; verdicts from seed {plan.verdicts().seed}",
        "trials": trials,
        "stuck matches, missing goals": f"{totals['stuck']}, {totals['missing']}",
        "wall time": f"{', '.join(map(str, ran))}; everything {time.perf_counter() - begin:.1f} s",
        "claims": f"`{paper.PATH.name}` of the package; findings in `claims.csv`{headroom}",
    }
    return report.provenance_table(code_version(), rows, store.rules())


def demo(
    out: Path | str = "report", *, runs: int = 5, matches: int = 3000, seed: int = paper.SEED, workers: int = 2,
    progress: bool = True,
) -> ReportPaths:  # fmt: skip
    """Reproduce the reading "figures" with fewer runs and without the sensitivity table.

    A learner learns tic-tac-toe. Then learners learn three other games with and without the values of tic-tac-toe. The
    report compares these learners.
    """
    parts = PARTS["text"]
    return reproduce(
        out, "figures", runs=runs, matches=matches, seed=seed, workers=workers, progress=progress, parts=parts
    )


# ---- the text ----


def headline(study: Study, verdicts: bool) -> str:
    """Return the result in two sentences.

    Each number is followed by its verdict. With `verdicts`, this is the verdict of this run, else the project's own.
    """
    findings = {finding.claim.id: finding for finding in study.findings}
    committed = read_committed(COMMITTED)

    def words(claim: str) -> str:
        finding = findings[claim]
        project = committed[claim, study.name].words(sign=True)
        judged = f"{finding.verdict}, {finding.interval.num} runs" if verdicts else project
        return f"{span(finding.interval, sign=True)} ({judged})"

    compared = [figure for figure in paper.FIGURES if "baseline" in figure.learners]
    gains = [
        f"{words(f'figure{figure.number}.transfer-over-baseline')} in {paper.TITLES[figure.game]}"
        for figure in compared
    ]
    weak, random = (words(f"figure{number}.transfer-over-lookahead") for number in (6, 7))
    first, last = study.window(paper.LATE)
    runs = study.plan.runs
    intervals = "95 % intervals" if verdicts else f"{runs} runs, {stats.with_intervals(runs)}"
    project = "the verdicts in brackets are the project's own, from fresh runs of 3000 matches"
    judging = "" if verdicts else f" The {runs} runs of this report are too few for verdicts; {project}."
    return (
        f"Knowledge from tic-tac-toe changes the mean reward of matches {first} to {last} against the ε-greedy "
        f"opponent by {gains[0]}, {gains[1]} and {gains[2]} (transfer minus baseline, in points from 0 to 100, "
        f"{intervals}, reading {study.name}; the paper claims more than 0 in all three). Transfer minus minimax "
        f"lookahead in Othello is {weak} against the weak opponent and {random} against the random opponent (the "
        "paper claims more than 0 for both)."
        f"{judging}"
    )


def blocks(
    studies: Sequence[Study], features: Sequence[ReportPicture], verdicts: bool, provenance: TableBlock
) -> list[Block]:
    """Return the blocks of the report below the headline."""
    page: list[Block] = [*_method(studies)]
    for study in studies:
        heading = Heading(f"Figures 3 to 7, reading {study.name}")
        page += [heading, Pictures(list(curves(study)), 2), levels_table(study)]
    for study in studies:
        page += _controls(study)
    for study in studies:
        page += _headroom_blocks(study)
    for study in studies:
        page += [Heading(f"What transfer costs, reading {study.name}", 3), costs_table(study)]
    page += [Heading("The features (Figure 2) and their values (Table 1)"), Pictures(features)]
    for study in studies:
        sweep = [sweep_picture(study)] if "sweep" in study.parts else []
        heading = Heading(f"Reading {study.name}", 3)
        page += [heading, Pictures([table1_picture(study), *sweep]), table1_table(study)]
    return [*page, *_claims(studies, verdicts), Heading("Where the numbers come from"), provenance]


def _method(studies: Sequence[Study]) -> list[Block]:
    plan = studies[0].plan
    return [
        Heading("Question, method and readings"),
        Text(
            "Does knowledge from one game make learning of the next game faster? A TD(λ) learner of afterstate values "
            "learns tic-tac-toe (learning rate 0.3, no discount, λ = 0.7). Its values are averaged for each game-tree "
            "feature. The **transfer** learner starts another game with these averages as initial values. It explores "
            "with probability 0.01. It is compared with two learners that differ only in their initial values: "
            "**baseline** starts with 50 everywhere, and **lookahead** with the values of a search that is as deep as "
            "the features."
        ),
        Text(
            f"Each curve is the mean of {plan.runs} runs of {plan.matches} matches. Run i of all learners shares its "
            "random numbers and its opponent, so differences are computed run by run. Intervals are 95 % t-intervals "
            "over runs; they may reach beyond 0 and 100, and fewer than five runs have no interval. The shaded part of "
            "a figure is the range of the axis in the paper."
        ),
        Text("The paper does not state all settings. A reading is one choice of the missing settings:"),
        Bullets([f"**{study.name}**: {study.plan.reading.words}." for study in studies]),
    ]


def _controls(study: Study) -> list[Block]:
    page: list[Block] = []
    if "controls" in study.parts:
        page += [
            Heading(f"Causes of the gain, reading {study.name}"),
            Pictures([controls_picture(study)]),
            controls_table(study),
            Heading("When values are initialised", 3),
            initialisation_table(study),
        ]
    if "sensitivity" in study.parts:
        page += [Heading("Sensitivity to the opponent's move order and to the rules", 3), sensitivity_table(study)]
    return page


def _claims(studies: Sequence[Study], verdicts: bool) -> list[Block]:
    preliminary = (
        "These verdicts are preliminary, because they use the runs of the figures. With `--verdicts`, the verdicts use "
        "fresh seeds and as many runs as are needed for the wanted half-widths of the intervals. The last column has "
        "the project's own verdicts."
    )
    final = (
        "The verdicts use fresh seeds and as many runs as are needed for the wanted half-widths of the intervals, up "
        "to the limit of each claim. This number is fixed before the first of these runs, from the variance in the "
        "runs of the figures. Further runs of the same settings, as those of `--headroom`, are not used."
    )
    rules = (
        "A claim that is tested with fewer than five runs is undecided, and so is a claim for which fewer than six "
        "runs all gave the same number. The other claims are judged as follows. A claimed order is equivalent if the "
        "95 % interval lies within the claim's margin around 0. If not, it is reproduced or contradicted if p < 0.05 "
        "after Holm's correction over all directional claims of a reading, and undecided in all other cases. A claimed "
        "value or range is reproduced if the 95 % interval lies within the range, or within the margin of the value, "
        "contradicted if it lies outside, and undecided in all other cases. These intervals are not corrected for "
        "multiple comparisons. The column p has the p-values after Holm's correction."
    )
    matches = studies[0].plan.matches
    scaled = (
        f" The claims are about windows in series of 3000 matches. Here, in series of {matches}, the windows are "
        "scaled."
    )
    preliminarily = "" if verdicts else "preliminary: "
    counts = [verdict_counts(finding.verdict for finding in study.findings) for study in studies]
    named = zip((study.name for study in studies), counts, strict=True)
    return [
        Heading("Every claim of the paper"),
        Text(f"{final if verdicts else preliminary} {rules}{scaled if matches != 3000 else ''}"),
        Bullets([f"**{name}**: {preliminarily}{words}." for name, words in named]),
        Pictures([claims_picture(study) for study in studies]),
        claims_table(_by_reading(studies), None if verdicts else read_committed(COMMITTED), readings=True),
    ]


def _by_reading(studies: Sequence[Study]) -> Iterator[tuple[str, ClaimFinding]]:
    """Yield (reading, finding) for every claim in every reading.

    A claim whose number does not come from runs is equal in all readings, and is yielded only once.
    """
    for findings in zip(*(study.findings for study in studies), strict=True):
        shown = findings if findings[0].sampled else findings[:1]
        yield from zip((study.name for study in studies), shown, strict=False)


# ---- the tables ----


def levels_table(study: Study) -> TableBlock:
    """Return the table of the learners of every figure.

    The columns are the mean reward in several windows, the match at which a mean of 95 is reached, and the axis of the
    paper's figure.
    """
    windows = [paper.LATE, paper.WHOLE, paper.LAST]
    rows = []
    for figure in paper.FIGURES:
        axis = f"{figure.axis[0]:g} to {figure.axis[1]:g}"
        for learner in (*figure.learners, *paper.EXTRA.get(figure.opponent, ())):
            series = figure.game, figure.opponent, learner
            reached = float(np.median(stats.matches_until(study.evidence.rewards(*series))))
            levels = [span(study.level(*series, window)) for window in windows]
            until = f"{reached:.0f}" if np.isfinite(reached) else "never"
            rows.append((str(figure.number), learner, *levels, until, axis))
    caption = (
        "Mean reward with 95 % interval over runs. The first column is the end of a curve averaged from match "
        f"{study.window(paper.LATE)[0]}, the second is the end of a curve averaged from match 1. Until 95: "
        "median over runs of the first match at which the mean of the last 20 reaches 95."
    )
    header = ("figure", "learner", *map(study.matches, windows), "until 95", "paper's axis")
    return TableBlock(header, rows, (2, 3, 4, 5, 6), caption)


def controls_table(study: Study) -> TableBlock:
    """Return the table of the mean rewards of the controls, with their differences from the baseline and transfer."""
    rows = []
    for game, (kind, learner) in product(paper.TARGETS, [("baseline", "baseline"), *measures.CONTROLLED]):
        gain = "" if kind == "baseline" else _gain(study, game, "egreedy", learner, "baseline")
        rest = "" if kind == "transfer" else _gain(study, game, "egreedy", "transfer", learner)
        level = span(study.level(game, "egreedy", learner))
        rows.append((paper.TITLES[game], measures.CONTROL_NAMES[kind], level, gain, rest))
    header = ("target", "initial values", study.matches(paper.LATE), "minus baseline", "transfer minus this")
    caption = (
        "Paired differences with 95 % intervals. If the last column is above 0, the learned feature values contribute "
        "more than this control."
    )
    return TableBlock(header, rows, (2, 3, 4), caption)


def _gain(study: Study, game: str, opponent: str, left: str, right: str, window: stats.Window = paper.LATE) -> str:
    return span(study.difference(game, opponent, left, right, window), sign=True)


def initialisation_table(study: Study) -> TableBlock:
    """Return the table of mean rewards and gains over the baseline for each kind of initialisation.

    The kinds are lazy, siblings and eager. They differ in the time at which an afterstate gets its initial value.
    """
    rows = []
    for game, when, learner in product(paper.TARGETS, paper.INITIALISATIONS, ("transfer", "lookahead")):
        name = learner if when == study.plan.reading.initialisation else f"{learner}~{when}"
        gains = [_gain(study, game, "egreedy", name, "baseline", x) for x in (paper.LATE, paper.EARLY)]
        rows.append((paper.TITLES[game], when, learner, span(study.level(game, "egreedy", name)), *gains))
    late, early = study.matches(paper.LATE), study.matches(paper.EARLY)
    header = ("target", "initialisation", "learner", late, "minus baseline", f"the same, {early}")
    caption = (
        "lazy: initial values for the afterstates of a match, after the match; siblings: also for all other candidates "
        "in the visited states; eager: for every candidate when it is first scored, which expands trees during "
        "the choice."
    )
    return TableBlock(header, rows, (3, 4, 5), caption)


def sensitivity_table(study: Study) -> TableBlock:
    """Return the table of mean rewards with the filler `first` (first legal move) and with another suicide rule."""
    rows = []
    for figure in (figure for figure in paper.FIGURES if figure.opponent != "random"):
        title = f"{paper.TITLES[figure.game]} against {paper.NAMES[figure.opponent]}, filler"
        for filler, tag in ((study.plan.reading.filler, ""), ("first", "-first")):
            rows.append(_situation(study, f"{title} {filler}", figure.game, figure.opponent + tag, figure.learners))
    title = f"{paper.TITLES['capturego3']} against {paper.NAMES['egreedy']}, suicide legal and losing"
    rows.append(_situation(study, title, "capturego3_suicide", "egreedy", paper.LEARNERS))
    header = ("situation", *paper.LEARNERS, "transfer - baseline", "transfer - lookahead")
    caption = (
        f"Mean reward, {study.matches(paper.LATE)}. With the filler `first`, all runs have the same opponent, so "
        "the interval does not include differences between opponents."
    )
    return TableBlock(header, rows, (1, 2, 3, 4, 5), caption)


def _situation(study: Study, title: str, game: str, opponent: str, learners: Sequence[str]) -> tuple[str, ...]:
    levels = [span(study.level(game, opponent, x)) if x in learners else "" for x in paper.LEARNERS]
    others = ("baseline", "lookahead")
    gains = [_gain(study, game, opponent, "transfer", x) if x in learners else "" for x in others]
    return title, *levels, *gains


def costs_table(study: Study) -> TableBlock:
    """Return the table of the time of each learner, by part, with the ratio of the times of transfer and baseline."""
    rows = []
    for game, cost in study.evidence.costs.items():
        for learner, parts in (("baseline", cost.right), ("transfer", cost.left)):
            numbers = [f"{parts[name]:.1f}" for name in measures.COST_PARTS]
            ratio = span(stats.mean_interval(cost.ratios)) if learner == "transfer" else ""
            rows.append((paper.TITLES[game], learner, *numbers, f"{sum(parts.values()):.1f}", ratio))
    sizes = {f"{cost.lanes} lanes with {cost.matches} matches each" for cost in study.evidence.costs.values()}
    caption = (
        f"Microseconds per match, measured in series of {' or '.join(sorted(sizes))}. No series uses positions that "
        "another series has stored. Playing: rules, opponents and the loop, including the evaluation of new positions, "
        "so a learner that meets fewer positions needs less time; choosing: the learner's choices; learning: Equation "
        "2; initialising: expanding and matching trees. Ratio: wall time of transfer divided by wall time of the "
        "baseline, mean and 95 % interval of "
        f"{measures.REPEATS} repeats."
    )
    return TableBlock(
        ("target", "learner", *measures.COST_PARTS, "together", "ratio"), rows, (2, 3, 4, 5, 6, 7), caption
    )


def table1_table(study: Study) -> TableBlock:
    """Return our values of Table 1 beside the printed values."""
    table = study.evidence.table
    rows = []
    for letter, text in table.features.items():
        cells = [(f"{table.column(x)[letter]:g}", span(study.feature(x, letter))) for x in paper.OPPONENTS]
        rows.append((f"({letter})", f"`{text}`", *(cell for pair in cells for cell in pair)))
    names = [cell for opponent in paper.OPPONENTS for cell in (f"{paper.NAMES[opponent]}, paper", "ours")]
    caption = f"L, D, W: loss, draw, win for the learner; n: undecided. {rmse_words(study)}"
    return TableBlock(("", "feature", *names), rows, tuple(range(2, 8)), caption)


def rmse_words(study: Study) -> str:
    """Return a sentence with the root mean square distances between our values and the printed columns.

    Each distance is that of the guessed assignment of letters to features. Its range over all assignments that the
    paper's text allows follows in brackets.
    """
    words = []
    table = study.evidence.table
    for opponent in paper.OPPONENTS:
        runs, printed = study.evidence.learned(opponent), table.column(opponent)
        distance = span(column_rmse(runs, table.printed(opponent)))
        others = [rmse(runs, {text: printed[x] for x, text in order.items()}) for order in table.assignments()]
        words.append(f"{paper.NAMES[opponent]} {distance} ({min(others):.2f} to {max(others):.2f})")
    return (
        "Root mean square distance from the paper's column, in brackets the range over all assignments of letters "
        f"that the paper's text allows: {'; '.join(words)}."
    )


# ---- headroom ----

ROOM = {"reproduced": "no room", "contradicted": "room", "undecided": "undecided"}
"""Verdict on an endpoint of [room] -> word in the table."""
AHEAD = {"reproduced": "ahead", "equivalent": "equal", "contradicted": "behind", "undecided": "undecided"}
"""The same for the other endpoints, which are differences of two learners."""
ABLATIONS = ("turns-replies", "turns-minimax")


def _verdict_words(finding: ClaimFinding) -> dict[str, str]:
    """Return the cells of the columns `ahead` and `room`. One of them is empty."""
    is_room = finding.claim.measure == "below_ceiling"
    words = (ROOM if is_room else AHEAD)[finding.verdict]
    return {"ahead": "" if is_room else words, "room": words if is_room else ""}


def _judged(finding: ClaimFinding) -> str:
    """Return the interval of an endpoint, and the word for its verdict."""
    words = _verdict_words(finding)
    return f"{span(finding.interval, sign=True)} {words['ahead'] or words['room']}"


def _headroom_blocks(study: Study) -> list[Block]:
    room = study.headroom
    if room is None:
        return []
    depth = 2 * paper.TURNS + 2
    return [
        Heading(f"How far initial values can go, reading {study.name}"),
        Text(
            "The **ceiling** is the exact expected reward of best play against the opponent of each run, with the "
            "learner's own random moves. No learner can expect more. Where lookahead reaches it, except for the "
            "margin, no initial values can bring an advantage: there is no room. The **oracle** begins with these "
            "exact values, and differs from the other learners only in its initial values, which it gets at the same "
            "time. It is no upper bound: its values change with every match that it learns from, and a learner that "
            "knows good values of a few afterstates may stop to explore the others. Where it is not ahead of "
            "lookahead, exact initial values bring no advantage to this learner, but others may."
        ),
        headroom_table(study, room),
        Text(
            f"**Turns** is the transfer learner with features {paper.TURNS} turns below an afterstate. It weights the "
            "opponent's replies by a model that the source run taught: how often this kind of opponent chose a move "
            "that wins, loses, gives a win away, or does none of these. It examines the positions of "
            f"{depth} plies, and lookahead those of 2, so the difference turns - lookahead is not at equal depth and "
            "may come from the deeper search alone. **Lookahead-deep** is the lookahead learner that examines as many "
            "plies as turns does. The two ablations use no feature values (**replies**), or no model of the replies "
            "(**minimax**)."
        ),
        turns_table(study, room),
        Pictures([headroom_picture(study, room)]),
    ]


def headroom_table(study: Study, room: Headroom) -> TableBlock:
    """Return the table of the arms in all games against all opponents, beside the ceiling."""
    rows = []
    for oracle, below_ceiling in zip(room.oracle, room.room, strict=True):
        game, opponent, window = cell = _cell(oracle)
        levels = [room.level(game, opponent, arm, window) for arm in paper.HEADROOM_ARMS]
        rows.append(
            (*_cell_words(study, cell), *(f"{x.mean:.2f}" for x in (*levels, room.ceiling(game, opponent))),
             span(room.difference(game, opponent, "transfer", "lookahead", window), sign=True), _judged(oracle),
             _judged(below_ceiling))
        )  # fmt: skip
    header = (
        *("game", "opponent", "window", *paper.HEADROOM_ARMS, "ceiling"),
        *("transfer - lookahead", "oracle - lookahead", "ceiling - lookahead"),
    )
    caption = (
        "Mean reward per match, and paired differences with 95 % intervals. Oracle - lookahead: ahead or behind if "
        "p < 0.05 after Holm's correction over all rows of the reading; equal if its interval lies within the margin "
        f"({room.margins}). Ceiling - lookahead: no room if the upper end of its interval is at most the margin, room "
        "if the lower end is above it."
    )
    return TableBlock(header, rows, tuple(range(3, 11)), caption)


def turns_table(study: Study, room: Headroom) -> TableBlock:
    """Return the table of the learner with turns: its verdicts, and its differences from its ablations."""
    rows = []
    for findings in zip(*room.turns.values(), strict=True):
        game, opponent, window = cell = _cell(findings[0])
        gains = [room.difference(game, opponent, "turns", arm, window) for arm in ABLATIONS]
        rows.append(
            (*_cell_words(study, cell), f"{room.level(game, opponent, 'turns', window).mean:.2f}",
             *map(_judged, findings), *(span(gain, sign=True) for gain in gains))
        )  # fmt: skip
    differences = [f"turns - {right}" for right in (*room.turns, *(arm.removeprefix("turns-") for arm in ABLATIONS))]
    caption = (
        "Mean reward per match of the learner with turns, and paired differences with 95 % intervals. Verdicts on the "
        f"first {len(room.turns)} differences: ahead or behind if p < 0.05 after Holm's correction over these columns "
        f"of the reading; equal if the interval lies within the margin ({room.margins})."
    )
    header = ("game", "opponent", "window", "turns", *differences)
    return TableBlock(header, rows, tuple(range(3, len(header))), caption)


def _cell(finding: ClaimFinding) -> tuple[str, str, stats.Window]:
    """Return the game, the opponent and the window of an endpoint."""
    of = finding.claim.of
    return of["game"], of["opponent"], (of["window"][0], of["window"][1])


def _cell_words(study: Study, cell: tuple[str, str, stats.Window]) -> tuple[str, str, str]:
    game, opponent, window = cell
    return paper.TITLES[game], paper.NAMES[opponent], study.matches(window)


def headroom_picture(study: Study, room: Headroom) -> ReportPicture:
    """Draw the differences of oracle, transfer and turns from lookahead, with one panel for each opponent."""
    panels = []
    for opponent in paper.OPPONENTS:
        dots = []
        for game, (name, window), arm in product(
            paper.HEADROOM_GAMES, paper.HEADROOM_WINDOWS.items(), ("oracle", "turns", "transfer")
        ):
            gain = room.difference(game, opponent, arm, "lookahead", window)
            dots.append(Dot(f"{paper.TITLES[game]}, {name}: {arm}", gain, figures.COLOURS[arm]))
        panels.append((paper.NAMES[opponent], dots))
    windows = " and ".join(f"{name} ({study.matches(window)})" for name, window in paper.HEADROOM_WINDOWS.items())
    caption = (
        f"Oracle, turns and transfer, minus lookahead: paired differences in points per match, 95 % intervals, reading "
        f"{study.name}, {windows}. Lookahead examines fewer plies than turns."
    )
    xlabel = "points over lookahead (log. beyond 1)"
    return figures.dot_figure(
        f"headroom-{study.name}", caption, panels, study.folder, xlabel=xlabel, zero=0, symlog=True
    )


# ---- the figures ----


def curves(study: Study) -> Iterator[ReportPicture]:
    """Yield Figures 3 to 7.

    There are two averages (readings.md, B&S 7). A picture shows the average that fits the paper's figure; its CSV file
    has both.
    """
    for figure in paper.FIGURES:
        begins = (1, 301) if figure.averaged_from == 1 else (301, 1)
        drawn, other = (study.window((first, 3000))[0] for first in begins)
        rewards = {x: study.evidence.rewards(figure.game, figure.opponent, x) for x in figure.learners}
        shown = {x: stats.mean_curve(r, drawn) for x, r in rewards.items()}
        extra = {x: stats.mean_curve(r, other, max(drawn, other)) for x, r in rewards.items()}
        match = f"{paper.TITLES[figure.game]} against {paper.NAMES[figure.opponent]}"
        caption = (
            f"Figure {figure.number}: {match}, reading {study.name}, averaged from match {drawn}, "
            f"{study.plan.runs} runs, {stats.with_intervals(study.plan.runs, '95 % bands')}."
        )
        name = f"figure{figure.number}-{study.name}"
        title = f"Figure {figure.number}. {match}  (reading {study.name})"
        plan = CurvePlan(name, title, caption, figure.axis, drawn, other, study.plan.runs)
        yield figures.learning_figure(plan, shown, study.folder, extra)


def figure2_picture(table: PrintedTable, folder: Path) -> ReportPicture:
    """Draw the twelve features of Figure 2, with the printed values of Table 1 below them."""
    features = [
        DrawnFeature(letter, text, {name: table.column(x)[letter] for x, name in paper.NAMES.items()})
        for letter, text in table.features.items()
    ]
    png, svg = draw_features(features, folder / "figure2")
    rows = [(feature.label, feature.text, *feature.values.values()) for feature in features]
    header = ("letter", "feature", *paper.NAMES)
    caption = (
        "Figure 2: the twelve features of tic-tac-toe for the first player, with the printed values of Table 1. "
        "The assignment of letters to features within the groups (a, b, e, g), (c, d) and (j, k, l) is a guess."
    )
    return ReportPicture("figure2", caption, png, svg, figures.write_rows(folder / "figure2.csv", header, rows))


def second_mover_picture(folder: Path) -> ReportPicture:
    """Draw the features of the second mover. The paper does not show them."""
    name, features = "figure2-second", zip(labels(), feature_texts(paper.SOURCE, 1), strict=False)
    rows = [(label, text) for label, text in features]
    png, svg = draw_features([DrawnFeature(label, text) for label, text in rows], folder / name)
    caption = f"The {len(rows)} features of tic-tac-toe for the second player; the paper does not show them."
    table = figures.write_rows(folder / f"{name}.csv", ("letter", "feature"), rows)
    return ReportPicture(name, caption, png, svg, table)


def table1_picture(study: Study) -> ReportPicture:
    """Draw Table 1: our values with intervals, and the printed values as diamonds."""
    table = study.evidence.table
    panels = []
    for opponent, name in paper.NAMES.items():
        printed = table.column(opponent)
        values = [(f"{text}  ({x})", study.feature(opponent, x), printed[x]) for x, text in table.features.items()]
        panels.append((name, [Dot(label, value, figures.COLOURS["transfer"], x) for label, value, x in values]))
    caption = (
        f"Table 1: values of the twelve features after {study.plan.reading.source_matches} matches of tic-tac-toe, "
        f"reading {study.name}; mean over those of {study.plan.runs} runs that met the feature, with 95 % interval; "
        "diamonds: the paper."
    )
    return figures.dot_figure(
        f"table1-{study.name}", caption, panels, study.folder, xlabel="value", zero=50, same_x=True
    )


def sweep_picture(study: Study) -> ReportPicture:
    """Draw the distance of our values from Table 1 for source runs of different lengths and policies."""
    evidence = study.evidence

    def distance(opponent: str, matches: int, epsilon: float) -> Interval:
        name = f"{study.plan.name}/{paper.SOURCE}/{opponent}/{swept(matches, epsilon)}"
        return column_rmse(evidence.store.values(name, study.plan.runs), evidence.table.printed(opponent))

    panels = {
        paper.NAMES[opponent]: {
            f"learner's ε = {epsilon:g}": [(n, distance(opponent, n, epsilon)) for n in paper.SWEPT_MATCHES]
            for epsilon in paper.SWEPT_EPSILONS
        }
        for opponent in paper.OPPONENTS
    }
    caption = (
        "Distance from Table 1 (root mean square over the twelve features) by length of the source run and by the "
        f"learner's exploration ε, reading {study.name}."
    )
    return figures.sweep_figure(f"sweep-{study.name}", caption, panels, study.folder, "RMSE, points")


def controls_picture(study: Study) -> ReportPicture:
    """Draw the gain of each control over the baseline, in one panel per target."""
    panels = []
    for game in paper.TARGETS:
        dots = []
        for kind, learner in measures.CONTROLLED:
            gain = study.difference(game, "egreedy", learner, "baseline")
            dots.append(Dot(measures.CONTROL_NAMES[kind], gain, figures.COLOURS.get(kind, "#5d6670")))
        panels.append((paper.TITLES[game], dots))
    caption = (
        f"Causes of the gain: mean reward, {study.matches(paper.LATE)}, minus the baseline's, ε-greedy opponent, "
        f"reading {study.name}, {study.plan.runs} runs, paired differences, {stats.with_intervals(study.plan.runs)}."
    )
    return figures.dot_figure(
        f"controls-{study.name}", caption, panels, study.folder, xlabel="points over baseline", zero=0
    )


def claims_picture(study: Study) -> ReportPicture:
    """Draw all differences between learners that the paper claims."""
    differences = [f for f in study.findings if f.claim.measure == "difference"]
    dots = [Dot(f.claim.id, f.interval, figures.VERDICT_COLOURS[f.verdict]) for f in differences]
    caption = (
        f"Every claimed order of two learners, reading {study.name}: paired difference in points per match, 95 % "
        "intervals; each claim says that the difference is positive. Green: reproduced, red: contradicted, blue: "
        "equivalent, grey: undecided."
    )
    xlabel = "points per match (logarithmic beyond 1)"
    return figures.dot_figure(
        f"claims-{study.name}", caption, [("", dots)], study.folder, xlabel=xlabel, zero=0, symlog=True
    )
