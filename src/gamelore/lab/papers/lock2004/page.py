"""The report on Lock & Epstein 2004. `reproduce` makes missing runs, then writes tables, figures and text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product, starmap
from pathlib import Path
from typing import Literal

from ....errors import ExperimentError, counted
from ....learning.sequences.seqlearner import WEIGHTS
from ....rulesheets import load
from ....solver.solution import solve
from ....workers.processes import Play
from ... import report, stats
from ...claims import ClaimFinding, claims_table, read_committed, verdict_counts, write_findings
from ...experiment import RunSummary, SettingGrid, code_version, run_grid
from ...figures import VERDICT_COLOURS, Bars, Dot, ReportPicture, bar_figure, dot_figure, write_rows
from ...report import Block, Bullets, Heading, Pictures, ReportPaths, TableBlock, Text, span
from ...results import ResultStore, store_path
from ...sequence_pictures import draw_pairs
from ...sequence_text import LearnedPair
from ...stats import Interval
from . import plan as paper
from . import tables
from .measures import (
    FARTHEST,
    PATH,
    ArmResult,
    Raised,
    Results,
    Study,
    Tried,
    arm_results,
    judge_claims,
    printed_interval,
    raised,
    tried,
)
from .plan import Column, Experiment, Plan, Reading
from .runs import STRATEGIES, one_by_one, play_run, time_run

MEASURING = (
    *("lab.papers.lock2004.plan", "lab.papers.lock2004.runs", "lab.sequence_text", "lab.feature_trees"),
    "drawing",
)
"""The modules that determine the result of a run, in addition to `experiment.MEASURING`."""
TITLE = "Learning and Applying Competitive Strategies (Lock & Epstein 2004), reproduced"
COLUMNS = (
    "claim", "reading", "place", "measure", "test", "target", "paper", "mean", "low", "high", "runs", "p", "p_holm",
    "verdict",
)  # fmt: skip
"""The columns of claims.csv."""
COMMITTED = Path(__file__).with_name("committed.csv")


@dataclass(frozen=True)
class Part:
    """A part of the plan. `play` is the function that makes one run."""

    name: str
    experiments: Sequence[Experiment]
    play: Play = play_run
    alone: bool = False  # whether runs are made one by one in this process, so that measured times are not disturbed


def reproduce(
    out: Path | str,
    reading: Literal["text", "tables", "both"] = "text",
    *,
    runs: int = 10,
    seed: int = paper.SEED,
    fresh: int = 20,
    core: bool = False,
    verdicts: bool = False,
    workers: int = 2,
    cluster: str | None = None,
    progress: bool = True,
    games: tuple[str, ...] = paper.GAMES,
    share: float = 1.0,
) -> ReportPaths:
    """Make the runs that are not yet in `out`/results.db, and write report.md, report.html, pictures and CSV files.

    reading   the reading of the paper, see `plan.READINGS`
    runs      number of runs of every experiment of the paper, and of each variant of the sensitivity part
    fresh     number of runs of each improvement, of each arm and, with `verdicts`, of the experiments that judge the
              claims
    core      leave out the parts "sensitivity", "improvements" and "others" of the reading "text", and the part "arms"
              of the reading "tables"
    cluster   the Ray cluster that makes the runs, see `cluster_pool`; None for processes of this machine
    verdicts  judge the claims by additional runs with fresh seeds
    share     fraction of the paper's number of matches that every tournament has; a value below 1 saves time

    Raise ExperimentError if `out` holds results of other settings, or for an unknown reading. Raise GameloreError if a
    game cannot be solved.
    """
    begin, folder = time.perf_counter(), Path(out)
    plans = [Plan(runs, seed, fresh, share, games, each) for each in _readings(reading)]
    parts = [_parts(plan, core, verdicts) for plan in plans]
    first, later = ([part for pair in parts for part in pair[number]] for number in (0, 1))
    with ResultStore(store_path(folder)) as store:
        every = SettingGrid.of(experiment for part in (*first, *later) for experiment in part.experiments)
        store.check(every.settings, version())

        def written(parts: Sequence[Part]) -> ReportPaths:
            machines = f"--workers {workers}" if cluster is None else f"--cluster {cluster}"
            flags = f"--reading {reading} {machines}" + " --core" * core + " --verdicts" * verdicts
            computed = counted(workers, "worker") if cluster is None else f"the cluster {cluster}"
            spent = f"{time.perf_counter() - begin:.1f} s, {computed}"
            return _write(plans, parts, store, folder, _provenance(plans[0], store, ran, spent, flags))

        ran = [run_part(part, store, workers, progress, cluster) for part in first]
        if {trial.key for trial in every.trials()} - store.finished():
            written(first)  # a preliminary report, before the remaining parts are run
        ran += [run_part(part, store, workers, progress, cluster) for part in later]
        return written((*first, *later))


def _readings(name: str) -> list[Reading]:
    """Return the readings with this name, or both. Raise ExperimentError for any other name."""
    if name not in (*paper.READINGS, "both"):
        raise ExperimentError(
            f"expected the reading {', '.join(paper.READINGS)} or both, got {name!r}; choose one of these"
        )
    return [reading for reading in paper.READINGS.values() if name in (reading.name, "both")]


def _parts(plan: Plan, core: bool, verdicts: bool) -> tuple[list[Part], list[Part]]:
    """Return the parts that are run before a preliminary report is written, and the parts that are run after it."""
    prefix = plan.reading.prefix
    first = [Part(f"{prefix}core", plan.core()), Part(f"{prefix}speed", plan.speed(), time_run, alone=True)]
    more = [Part("sensitivity", plan.sensitivity()), Part("improvements", plan.improvements())]
    more = [*more, Part("others", plan.others())] if plan.reading.is_text else [Part("arms", plan.arms())]
    judging = [Part(f"{prefix}verdicts", plan.verdicts())] if verdicts else []
    return first, judging if core else more + judging


def run_part(part: Part, store: ResultStore, workers: int, progress: bool, cluster: str | None = None) -> RunSummary:
    """Solve the games of a part, so that no worker has to solve them, and make the missing runs of the part."""
    grid, finished = SettingGrid.of(part.experiments), store.finished()
    for name in sorted({trial.setting.game for trial in grid.trials() if trial.key not in finished}):
        game = load(name)
        store.check_rules({name: game.rules_hash})
        with _solving(name, progress) as show:
            solve(game, progress=show)
    return run_grid(
        grid, store, workers=1 if part.alone else workers, cluster=None if part.alone else cluster,
        progress=progress, label=part.name, jobs=one_by_one,
        play=part.play, version=version(),
    )  # fmt: skip


def version() -> str:
    """Return the version of gamelore and a hash of the code that determines the result of a run."""
    return code_version(*MEASURING)


@contextmanager
def _solving(name: str, shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not shown, transient=True) as bar:
        task = bar.add_task(f"solving {name}")
        yield lambda what, done, total: bar.update(
            task, description=f"solving {name}: {what}", completed=done, total=total
        )


def _write(
    plans: Sequence[Plan], parts: Sequence[Part], store: ResultStore, folder: Path, provenance: TableBlock
) -> ReportPaths:
    experiments = [experiment for part in parts for experiment in part.experiments]
    results: Results = {experiment.id: store.results(experiment.id, experiment.runs) for experiment in experiments}
    stages = {part.name: part.experiments for part in parts}
    reported = [_findings(plan, stages, results) for plan in plans]
    write_findings(folder / "claims.csv", COLUMNS, by_reading(reported))
    for each in reported:
        tables.write_table1(each.study, folder)
        tables.write_table2(each.study, folder)
    head = " ".join(map(headline, reported))
    return report.write_report(TITLE, head, blocks(reported, folder, provenance), folder)


def _findings(plan: Plan, stages: Mapping[str, Sequence[Experiment]], results: Results) -> Findings:
    """Return the results of one reading. `stages` contains the experiments of all parts that were run, by part."""
    study = Study(plan, "core", results)
    is_judged = f"{plan.reading.prefix}verdicts" in stages
    judged = Study(replace(plan, runs=plan.fresh), "verdicts", results) if is_judged else study
    if not plan.reading.is_text:
        arms = {game: arm_results(stages["arms"], results, game) for game in plan.games} if "arms" in stages else {}
        return Findings(study, judged, judge_claims(judged), arms=arms)
    sensitivity, improvements = (
        {game: tried(stages[name], results, game) for game in plan.games} if name in stages else {}
        for name in ("sensitivity", "improvements")
    )
    others = raised(stages.get("others", ()), results)
    return Findings(study, judged, judge_claims(judged), sensitivity, improvements, others)


def _provenance(plan: Plan, store: ResultStore, ran: Sequence[RunSummary], spent: str, flags: str) -> TableBlock:
    processor = ", ".join(f"{part.label} {store.seconds(part.label):.1f} s" for part in ran)
    options = f"--runs {plan.runs} --fresh {plan.fresh} --seed {plan.seed} {flags}"
    improved, judged, arms = (plan.seed + more for more in (paper.FRESH_SEED, paper.VERDICT_SEED, paper.ARMS_SEED))
    rows = {
        "command": f"`gamelore reproduce lock2004 {options}`",
        "seeds": f"{plan.seed}; improvements {improved}; arms {arms}; verdicts with fresh seeds {judged}",
        "runs": f"all in `{store.path.name}`, with their settings and results",
        "wall time of this command": f"{', '.join(map(str, ran))}; everything {spent}",
        "processor time of all runs": processor,
        "claims": f"`{PATH.name}` of the package; findings in `claims.csv`; tables in `table1.csv`, `table2.csv`",
    }
    return report.provenance_table(version(), rows, store.rules())


# ---- the text ----

AGAINST_PERFECT = Column("perfect", "reliability")


@dataclass(frozen=True)
class Findings:
    """All results of one reading.

    study         results of the part "core", which the tables show
    judged        results that the verdicts are based on: `study`, or those of the part "verdicts"
    findings      the judged claims
    sensitivity   game -> results of the variants; empty if the part was not run
    improvements  game -> results of the improvements; empty if the part was not run
    raised        results in games that are not in the paper; empty if the part "others" was not run
    arms          game -> results of the arms; empty if the part was not run
    """

    study: Study
    judged: Study
    findings: Sequence[ClaimFinding]
    sensitivity: Mapping[str, Sequence[Tried]] = field(default_factory=dict)
    improvements: Mapping[str, Sequence[Tried]] = field(default_factory=dict)
    raised: Sequence[Raised] = ()
    arms: Mapping[str, Sequence[ArmResult]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the reading."""
        return self.study.plan.reading.name

    @property
    def is_judged(self) -> bool:
        """Whether the verdicts come from additional runs with fresh seeds."""
        return self.judged is not self.study


def by_reading(reported: Iterable[Findings]) -> Iterator[tuple[str, ClaimFinding]]:
    """Yield (reading, finding) for every claim in every reading."""
    for each in reported:
        yield from ((each.name, finding) for finding in each.findings)


def headline(reported: Findings) -> str:
    """Return the result of a reading in a few sentences.

    Each number is followed by its verdict: that of this report if it has additional runs, else the project's own.
    """
    study, runs, name, committed = reported.study, reported.study.plan.runs, reported.name, read_committed(COMMITTED)
    verdicts = (x.verdict if reported.is_judged else committed[x.claim.id, name].verdict for x in reported.findings)
    undecided = f" The {runs} runs of this report are too few for verdicts; all verdicts are the project's own."
    words = [f"{paper.TITLES[game]}: {_levels(reported, game)}" for game in study.games]
    watched = [x.curriculum.num_matches for x in study.plan.core() if x.learner is not None]
    return (
        f"Matches won or drawn against the perfect player after watching {' and '.join(map(str, watched))} matches, "
        f"means over {runs} runs, {stats.with_intervals(runs)}, reading {name}. {'. '.join(words)}. Of the paper's "
        f"claims: {verdict_counts(verdicts)}. Cells of Table 1, versions 1 and 2, within the printed standard "
        f"deviation: {_cells_of_versions(study)}.{'' if reported.is_judged else undecided}"
    )


def _cells_of_versions(study: Study) -> str:
    """Return how many cells of versions 1 and 2 lie within the printed standard deviation, such as `19 of 28`."""
    cells = list(product(study.games, paper.ROWS[1:]))
    return f"{sum(starmap(study.cells_within, cells))} of {len(cells) * len(paper.COLUMNS)}"


def _levels(reported: Findings, game: str) -> str:
    """Return the reliability of the random player and of both versions, as text.

    That of a version is followed by the paper's number and the verdict.
    """
    words = [f"a random player {reported.study.level(game, 'baseline', AGAINST_PERFECT).mean:.1f} %"]
    for version in ("version 1", "version 2"):
        ours = span(reported.study.level(game, version, AGAINST_PERFECT), 1)
        printed = paper.TABLE_1[game][version][AGAINST_PERFECT]
        of = {"game": game, "row": version, "opponent": "perfect", "what": "reliability"}
        (finding,) = (x for x in reported.findings if x.claim.test == "within" and x.claim.of == of)
        key = finding.claim.id, reported.name
        verdict = finding.verdict if reported.is_judged else read_committed(COMMITTED)[key].words(1)
        words.append(f"{version} {ours} % (the paper {printed.mean:g}: {verdict})")
    return ", ".join(words)


def blocks(reported: Sequence[Findings], folder: Path, provenance: TableBlock) -> list[Block]:
    """Return the blocks of the report below the headline."""
    page = _method([each.study for each in reported])
    for each in reported:
        study = each.study
        page += [
            *_table1(study, folder),
            *_table2(study),
            *_strategies(study, folder),
            Heading(f"How good the advice is, reading {each.name}"),
            tables.advice_table(study),
            *_tried(each, folder),
            *_arms(each, folder),
        ]
    return [*page, *_claims(reported, folder), Heading("Where the numbers come from"), provenance]


def _method(studies: Sequence[Study]) -> list[Block]:
    matches = paper.TEST_MATCHES if studies[0].plan.share == 1 else "fewer"
    return [
        Heading("Question, method and readings"),
        Text(
            "Can a player become good if it watches matches of others and learns which sequences of moves to play in "
            "which positions? **SeqLearner** watches tournaments of a perfect player against a random player, a "
            "novice, an expert and a perfect player, each of them twice. It collects the sequences of moves of each "
            "player that won or drew. The context of a sequence is the set of facts that all positions before it "
            "have in common. The weight of a pair of context and sequences depends on how often it agrees with the "
            "perfect player. **SeqPlayer** plays by these pairs: in version 1 all pairs with a weight of at least "
            ".55 vote; version 2 asks the classes of pairs one after the other, the highest weights first."
        ),
        Text(
            f"A run is one training and then, for each version, {matches} test matches against each of the four "
            "opponents. Perfect players are computed from the solutions of the games. The paper does not state all "
            "settings. A reading is one choice of the missing settings:"
        ),
        Bullets([f"**{study.plan.reading.name}**: {study.plan.reading.words}." for study in studies]),
        Text("All readings have in common, fixed before the runs of this report:"),
        Bullets(
            [
                "A reasonable player wins at once if it can and avoids moves that let the other player win at once; "
                "in lose tic-tac-toe this is a random player. Expert and novice decide for each move at random whether "
                "to play it like the perfect or like the reasonable player.",
                "Sides alternate. Weights: agreements / comments x min(1, comments / 10). A sequence gets a context "
                "when it was encountered twice.",
                "A match of five men's morris that is not over after 100 moves is a draw. The solution, and so the "
                "perfect player and every comparison with it, ignore this limit; there an endless match is a draw.",
                "Sequences and contexts that are symmetric under the 8 symmetries of the square count as the same.",
            ]
        ),
    ]


def _table1(study: Study, folder: Path) -> list[Block]:
    exactly = [tables.exact_table(study)] if "losetictactoe" in study.games and study.plan.reading.is_text else []
    return [
        Heading(f"Table 1: how well SeqPlayer plays, reading {study.plan.reading.name}"),
        Pictures([reliability_picture(study, folder)]),
        *(tables.table1(study, game) for game in study.games),
        Text(f"Cells within the printed standard deviation: {tables.cells_words(study)}."),
        *exactly,
        Heading("Tests of the improvements", 3),
        tables.compared_table(study),
    ]


def _table2(study: Study) -> list[Block]:
    classes: list[Block] = []
    if "losetictactoe" in study.games:
        classes = [
            Heading("The 264 classes of sequences of lose tic-tac-toe", 3),
            tables.classes_table(study),
            Bullets(tables.classes_words(study)),
        ]
    first = {name: (formula.__doc__ or "").split("\n\n")[0].split() for name, formula in WEIGHTS.items()}
    return [
        Heading(f"Table 2: what was learned, reading {study.plan.reading.name}"),
        tables.table2(study),
        Text(
            "The paper's text says that the best class is larger than all other included pairs together in both "
            "games. In its own Table 2 this is true only for lose tic-tac-toe (in five men's morris 575.5 against "
            "984.6)."
        ),
        tables.formulas_table(study),
        Bullets([f"**{name}**: {' '.join(words)}" for name, words in first.items()]),
        *classes,
        Heading("Speed", 3),
        tables.speed_table(study),
    ]


def _strategies(study: Study, folder: Path) -> list[Block]:
    shown = [strategies_picture(study, game, folder) for game in study.games]
    return [
        Heading(f"Learned strategies (Figures 5 to 7), reading {study.plan.reading.name}"),
        Text(
            "A pair shows a strategy if all its branches of the same kind show the strategy. **reflection**: a duet "
            "of the first player, which has the centre; it answers every move of the other player on the opposite "
            "side of the centre. **block**: a duet of the placing stage; each move of the player takes the last free "
            "point of a mill in which the other player has two points. **shuttle**: a solo that slides a piece away, "
            "back and away again, and closes a mill."
        ),
        tables.strategies_table(study),
        Pictures([picture for picture in shown if picture is not None]),
        Heading("The best pairs", 3),
        Pictures([best_picture(study, game, folder) for game in study.games]),
    ]


def _tried(reported: Findings, folder: Path) -> list[Block]:
    plan, matches = reported.study.plan, reported.study.plan.core()[0].matches
    page: list[Block] = []
    if reported.sensitivity:
        caption = (
            "Sensitivity to the readings: reliability of version 2 against the perfect player with one change, "
            "95 % intervals; diamonds: the paper. Green, red: the difference from the default, run by run, is "
            "above or below 0."
        )
        page += [
            Heading("Sensitivity: one change at a time"),
            Pictures([tried_picture("sensitivity", caption, reported.sensitivity, folder)]),
            tables.tried_table(reported.sensitivity, plan.runs, matches),
        ]
    if reported.improvements:
        caption = (
            f"Beyond the paper: reliability of version 2 against the perfect player, {plan.fresh} runs with fresh "
            "seeds, 95 % intervals; diamonds: the paper."
        )
        page += [
            Heading("Beyond the paper: improvements"),
            Text("These options are never the default. They were chosen on other runs than those shown here."),
            Pictures([tried_picture("improvements", caption, reported.improvements, folder)]),
            tables.tried_table(reported.improvements, plan.fresh, matches),
        ]
    if reported.raised:
        page += [
            Heading("Games that are not in the paper"),
            Text("The learner gets only the rules, as in `gamelore learn GAME --learner sequences`."),
            tables.raised_table(reported.raised, plan.fresh),
        ]
    return page


def _arms(reported: Findings, folder: Path) -> list[Block]:
    if not reported.arms:
        return []
    plan = reported.study.plan
    caption = (
        f"Arms: reliability of version 2 against the perfect player, {plan.fresh} runs with fresh seeds, 95 % "
        "intervals; diamonds: the paper. Green: the reading `tables`; brown: the reading `text`."
    )
    return [
        Heading("Arms: which programs of the paper fit its tables"),
        Text(
            "Each arm makes all runs of Table 1. The first nine combine every choice of the perfect players with every "
            "use of the Enforcer. Drawn choices are among the best moves of the reading `text` (in lose tic-tac-toe "
            "all moves that lose nothing), the other choices among the fastest wins and slowest losses. The further "
            "arms change the reading `tables` in one point. A cell fits if our mean lies within one printed standard "
            "deviation of the printed mean. The distance is the sum over the cells of both versions of the distances "
            f"of the means, in printed standard deviations, each at most {FARTHEST:g}."
        ),
        Pictures([arms_picture(caption, reported.arms, folder)]),
        *(tables.arms_table(reported.arms, game, plan.fresh) for game in reported.arms),
    ]


def _claims(reported: Sequence[Findings], folder: Path) -> list[Block]:
    is_judged = reported[0].is_judged
    basis = (
        f"These verdicts use {reported[0].judged.plan.fresh} runs with fresh seeds."
        if is_judged
        else "These verdicts are preliminary, because they use the runs above. With `--verdicts`, they use fresh seeds "
        "and more runs. The last column of the table has the project's own verdicts."
    )
    rules = (
        "A claimed order is reproduced or contradicted if p < 0.05 after Holm's correction over all such claims of a "
        "reading, and otherwise undecided. A claimed value is compared with an interval around the paper's number, "
        "which follows from the printed standard deviation, or from a margin if none is printed. The claim is "
        "reproduced if our 95 % interval lies within this interval, contradicted if it lies outside, and undecided if "
        "the two overlap, if fewer than six runs all gave the same number, or if there are fewer than five runs. The "
        "column p has the p-values after Holm's correction."
    )
    committed = None if is_judged else read_committed(COMMITTED)
    return [
        Heading("Every claim of the paper"),
        Text(f"{basis} {rules}"),
        *(block for each in reported for block in _verdicts(each, folder)),
        claims_table(by_reading(reported), committed, readings=True),
    ]


def _verdicts(reported: Findings, folder: Path) -> list[Block]:
    """Return the list of the claims with each verdict, and the picture of the claimed changes."""
    names: dict[str, list[str]] = {verdict: [] for verdict in VERDICT_COLOURS}
    for finding in reported.findings:
        names[finding.verdict].append(f"`{finding.claim.id}`")
    return [
        Heading(f"Verdicts, reading {reported.name}", 3),
        Bullets([f"**{len(ids)} {verdict}**{': ' if ids else ''}{', '.join(ids)}" for verdict, ids in names.items()]),
        Pictures([changes_picture(reported, folder)]),
    ]


# ---- the figures ----

COLOURS = {"baseline": "#8a929b", "version 1": "#8a6d3b", "version 2": "#1f6fb4"}
NUM_DRAWN = 6


def reliability_picture(study: Study, folder: Path) -> ReportPicture:
    """Draw the reliabilities of Table 1 as bars, our values beside those of the paper."""
    panels = [
        (paper.TITLES[game], [bars for row in paper.ROWS for bars in _bars(study, game, row)]) for game in study.games
    ]
    caption = (
        "Reliability: per cent of matches won or drawn against four opponents, ours (full) beside the paper's "
        "(hatched), with 95 % intervals over runs; the paper's intervals follow from its standard deviations."
    )
    name = f"{study.plan.reading.prefix}reliability"
    return bar_figure(name, caption, paper.OPPONENTS, panels, folder, "won or drawn, %")


def _bars(study: Study, game: str, row: str) -> tuple[Bars, Bars]:
    columns = [Column(opponent, "reliability") for opponent in paper.OPPONENTS]
    ours, printed = [study.level(game, row, column) for column in columns], []
    num = paper.BLOCKS if row == "baseline" else paper.RUNS
    for mean, deviation, _ in (paper.TABLE_1[game][row][column] for column in columns):
        printed.append(Interval(mean, *printed_interval(mean, deviation, num), num))
    return Bars(f"{row}, ours", ours, COLOURS[row]), Bars(f"{row}, paper", printed, COLOURS[row], hatched=True)


def tried_picture(name: str, caption: str, variants_of: Mapping[str, Sequence[Tried]], folder: Path) -> ReportPicture:
    """Draw the results of the variants against the perfect player. The default variant also has the paper's number."""
    panels = []
    for game, variants in variants_of.items():
        printed = paper.TABLE_1[game]["version 2"][AGAINST_PERFECT].mean
        dots = [Dot(x.name, x.reliability, _colour(x), printed if x.name == paper.DEFAULT else None) for x in variants]
        panels.append((paper.TITLES[game], dots))
    return dot_figure(name, caption, panels, folder, xlabel="won or drawn against perfect, %", share_labels=False)


def _colour(variant: Tried) -> str:
    """Return the colour of a variant.

    Green means better than the default, red means worse. Grey means that the interval of the difference contains 0.
    """
    difference = variant.difference
    if difference is None or difference.too_few or difference.low <= 0 <= difference.high:
        return "#5d6670"
    return VERDICT_COLOURS["reproduced" if difference.low > 0 else "contradicted"]


def arms_picture(caption: str, arms_of: Mapping[str, Sequence[ArmResult]], folder: Path) -> ReportPicture:
    """Draw the reliability of version 2 against the perfect player in every arm."""
    colours = {paper.TABLES_ARM: VERDICT_COLOURS["reproduced"], paper.TEXT_ARM: COLOURS["version 1"]}
    panels = []
    for game, arms in arms_of.items():
        printed = paper.TABLE_1[game]["version 2"][AGAINST_PERFECT].mean
        dots = [Dot(arm.name, arm.perfect[1], colours.get(arm.name, "#5d6670"), printed) for arm in arms]
        panels.append((paper.TITLES[game], dots))
    return dot_figure("arms", caption, panels, folder, xlabel="won or drawn against perfect, %")


def changes_picture(reported: Findings, folder: Path) -> ReportPicture:
    """Draw our value of every change between rows of Table 1 that the paper claims, with the paper's number."""
    changes = [x for x in reported.findings if x.claim.measure == "over"]
    dots = [Dot(x.claim.id, x.interval, VERDICT_COLOURS[x.verdict], float(x.claim.paper)) for x in changes]
    caption = (
        "Every change between two rows of Table 1 that the paper claims, in points with 95 % intervals (Welch); "
        "diamonds: the paper's. Green: reproduced, red: contradicted, grey: undecided."
    )
    name = f"{reported.study.plan.reading.prefix}changes"
    return dot_figure(name, caption, [("", dots)], folder, xlabel="points", zero=0)


def strategies_picture(study: Study, game: str, folder: Path) -> ReportPicture | None:
    """Draw for each strategy of a game the best pair of all runs. Return None if no strategy was learned."""
    best = {name: study.best_shown(game, name) for name, where in STRATEGIES.items() if where == game}
    pairs = {name: pair for name, pair in best.items() if pair is not None}
    caption = (
        f"{paper.TITLES[game]}: for each strategy in the paper's figures, the pair with the highest weight that "
        "shows it."
    )
    name = f"{study.plan.reading.prefix}strategies-{game}"
    return _pairs_picture(name, caption, game, pairs, folder) if pairs else None


def best_picture(study: Study, game: str, folder: Path) -> ReportPicture:
    """Draw the best pairs of all runs."""
    caption = (
        f"{paper.TITLES[game]}: the {NUM_DRAWN} pairs with the highest weights in {study.plan.runs} runs; of equal "
        "weights, the pairs with more comments come first."
    )
    pairs = dict(zip("abcdefghijkl", study.best(game, NUM_DRAWN), strict=False))
    return _pairs_picture(f"{study.plan.reading.prefix}best-{game}", caption, game, pairs, folder)


def _pairs_picture(name: str, caption: str, game: str, pairs: Mapping[str, LearnedPair], folder: Path) -> ReportPicture:
    """Draw pairs on boards, each below its label, and write the data of the pairs as CSV."""
    drawn = [next(pair.drawn(label)) for label, pair in pairs.items()]  # its duets, if it has any
    png, svg = draw_pairs(load(game), drawn, folder / name, matrix=game == "losetictactoe")
    rows = [
        (label, x.role, x.weight, x.comments, " ".join(sorted(x.context)), kind, " ".join(map(" ".join, moves)))
        for label, x in pairs.items()
        for kind, moves in x.branches
    ]
    header = ("pair", "role", "weight", "comments", "context", "kind", "moves")
    return ReportPicture(name, caption, png, svg, write_rows(folder / f"{name}.csv", header, rows))
