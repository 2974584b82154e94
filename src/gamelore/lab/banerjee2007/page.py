"""What the report on Banerjee & Stone 2007 says, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..figures import VERDICT_COLOURS, Picture
from ..report import Block, Bullets, Heading, Pictures, Table, Text, span
from . import pictures, tables
from .plan import FIGURES, TITLES
from .study import LATE, Study


def headline(study: Study, verdicts: bool) -> str:
    """What came out, in two sentences with intervals; with the verdicts where these are final."""
    found = {finding.claim.id: finding for finding in study.findings}

    def words(claim: str) -> str:
        finding = found[claim]
        judged = f" ({finding.verdict}, {finding.interval.num} runs)" if verdicts else ""
        return f"{span(finding.interval, sign=True)}{judged}"

    gains = [
        f"{words(f'figure{figure.number}.transfer-over-baseline')} in {TITLES[figure.game]}"
        for figure in FIGURES
        if "baseline" in figure.learners
    ]
    weak, random = (words(f"figure{number}.transfer-over-lookahead") for number in (6, 7))
    first, last = study.window(LATE)
    runs = "" if verdicts else f"{study.plan.runs} runs, "
    return (
        f"Starting from what was learned in tic-tac-toe changes the mean reward of matches {first} to {last} against "
        f"the ε-greedy opponent by {gains[0]}, {gains[1]} and {gains[2]} (transfer minus baseline, points of 100, "
        f"{runs}95 % intervals, reading {study.name}; the paper: above 0 in all three). Transfer minus minimax "
        f"lookahead in Othello: {weak} against the weak and {random} against the random opponent (the paper: "
        "above 0 in both)."
    )


def blocks(studies: Sequence[Study], features: Sequence[Picture], verdicts: bool, provenance: Table) -> list[Block]:
    """Everything below the headline."""
    found: list[Block] = [*_method(studies)]
    for study in studies:
        found += _curves(study)
    for study in studies:
        found += _controls(study)
    for study in studies:
        found += [Heading(f"What transfer costs, reading {study.name}", 3), tables.costs_table(study)]
    found += [Heading("The features (Figure 2) and their values (Table 1)"), Pictures(features)]
    for study in studies:
        shown = [pictures.table1_picture(study)]
        if "sweep" in study.parts:
            shown.append(pictures.sweep_picture(study))
        found += [Heading(f"Reading {study.name}", 3), Pictures(shown), tables.table1_table(study)]
    return [*found, *_claims(studies, verdicts), Heading("Where the numbers come from"), provenance]


def _method(studies: Sequence[Study]) -> list[Block]:
    plan = studies[0].plan
    return [
        Heading("The question, the method, the readings"),
        Text(
            "Does what was learned in one game make learning the next one faster? A TD(λ) learner of afterstate values "
            "learns tic-tac-toe (learning rate 0.3, no discount, λ = 0.7). Its values are averaged over game-tree "
            "features, and these averages initialise the values of another game: the **transfer** learner, which "
            "explores with probability 0.01. It is compared with the same learner starting at 50 everywhere "
            "(**baseline**) and with one that starts from a search as deep as the features (**lookahead**)."
        ),
        Text(
            f"Each curve is the mean of {plan.runs} runs of {plan.matches} matches. Run i of all learners shares its "
            "random numbers and its opponent, so differences are taken run by run. Intervals are 95 % t-intervals over "
            "runs (of few runs they may reach beyond 0 and 100). The shaded part of a figure is the range of the "
            "paper's own axis."
        ),
        Text("The paper leaves some things open. A reading settles them:"),
        Bullets([f"**{study.name}**: {study.plan.reading.words}." for study in studies]),
    ]


def _curves(study: Study) -> list[Block]:
    return [
        Heading(f"Figures 3 to 7, reading {study.name}"),
        Pictures(list(pictures.curves(study)), 2),
        tables.levels_table(study),
    ]


def _controls(study: Study) -> list[Block]:
    found: list[Block] = []
    if "controls" in study.parts:
        found += [
            Heading(f"What carries the gain, reading {study.name}"),
            Pictures([pictures.controls_picture(study)]),
            tables.controls_table(study),
            Heading("When values are initialised", 3),
            tables.initialisation_table(study),
        ]
    if "sensitivity" in study.parts:
        found += [
            Heading("What hangs on the opponent's move order and on the rules", 3),
            tables.sensitivity_table(study),
        ]
    return found


def _claims(studies: Sequence[Study], verdicts: bool) -> list[Block]:
    preliminary = (
        "These verdicts are preliminary: they rest on the runs that draw the figures. `--verdicts` judges by fresh "
        "seeds and as many runs as the wanted half-widths ask for."
    )
    final = (
        "Verdicts rest on fresh seeds and on as many runs as the wanted half-widths ask for, up to each claim's limit, "
        "fixed before the first of them from the scatter of the runs that draw the figures."
    )
    rules = (
        "A claimed order is reproduced or contradicted where p < 0.05 after Holm's correction over all directional "
        "claims of a reading; equivalent where the 95 % interval lies within the claim's margin of no difference; "
        "undecided else, and where fewer than six runs all gave the same number. A claimed value or range is "
        "reproduced where the 95 % interval lies within it (a value: within its margin), contradicted where it lies "
        "outside; these intervals are not corrected for their number. The column p is Holm's."
    )
    matches = studies[0].plan.matches
    scaled = f" The claims' windows are those of series of 3000; here, of {matches}, they are the same shares of it."
    return [
        Heading("Every claim of the paper"),
        Text(f"{final if verdicts else preliminary} {rules}{scaled if matches != 3000 else ''}"),
        Bullets([f"**{study.name}**: {verdict_counts(study)}." for study in studies]),
        Pictures([pictures.claims_picture(study) for study in studies]),
        tables.claims_table(studies),
    ]


def verdict_counts(study: Study) -> str:
    """How the verdicts fall."""
    counts = Counter(finding.verdict for finding in study.findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICT_COLOURS)  # type: ignore[index]
