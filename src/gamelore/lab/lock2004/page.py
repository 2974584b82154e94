"""What the report on Lock & Epstein 2004 says, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...learn.weighing import WEIGHTS
from ..figures import VERDICT_COLOURS
from ..report import Block, Bullets, Heading, Pictures, Table, Text, span
from . import learned, pictures, tables
from .findings import Finding
from .plan import BEST, TEST_MATCHES, TITLES
from .printed import TABLE_1, Column
from .study import Raised, Study, Tried

AGAINST_PERFECT = Column("perfect", "reliability")


@dataclass(frozen=True)
class Findings:
    """Everything that the page tells of; the last three are empty where they were left out."""

    study: Study
    judged: Study
    findings: Sequence[Finding]
    sensitivity: Mapping[str, Sequence[Tried]]
    improvements: Mapping[str, Sequence[Tried]]
    raised: Sequence[Raised]


def headline(found: Findings) -> str:
    """What came out, in two sentences with intervals and verdicts."""
    study = found.study
    words = [f"{TITLES[game]}: {_levels(found, game)}" for game in study.games]
    return (
        f"Won or drawn against the perfect player after watching {_watched(study)}, means over {study.plan.runs} runs "
        f"with 95 % intervals. {'. '.join(words)}. Of the paper's claims: {verdict_counts(found.findings)}."
    )


def _levels(found: Findings, game: str) -> str:
    """The random player's level, and those of both versions beside the paper's with their verdicts."""
    words = [f"a random player {found.study.level(game, 'baseline', AGAINST_PERFECT).mean:.1f} %"]
    for version in ("version 1", "version 2"):
        ours, paper = (
            span(found.study.level(game, version, AGAINST_PERFECT), 1),
            TABLE_1[game][version][AGAINST_PERFECT],
        )
        of = {"game": game, "row": version, "opponent": "perfect", "what": "reliability"}
        (verdict,) = (one.verdict for one in found.findings if one.claim.test == "within" and one.claim.of == of)
        words.append(f"{version} {ours} % (the paper {paper.mean:g}: {verdict})")
    return ", ".join(words)


def _watched(study: Study) -> str:
    counts = [one.curriculum.num_matches for one in study.plan.core() if one.learner is not None]
    return f"{' and '.join(map(str, counts))} matches"


def verdict_counts(findings: Sequence[Finding]) -> str:
    """How the verdicts fall."""
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICT_COLOURS if counts[verdict])  # type: ignore[index]


def blocks(found: Findings, folder: Path, provenance: Table) -> list[Block]:
    """Everything below the headline."""
    study = found.study
    return [
        *_method(study),
        *_table1(study, folder),
        *_table2(study),
        *_strategies(study, folder),
        *_advice(study),
        *_tried(found, folder),
        *_claims(found, folder),
        Heading("Where the numbers come from"),
        provenance,
    ]


def _method(study: Study) -> list[Block]:
    perfect = {
        "value": "any move that loses nothing",
        "fastest": "a random one of the fastest wins and the slowest losses",
    }
    best = "; ".join(f"in {TITLES[game].lower()} {perfect[BEST[game]]}" for game in study.games)
    return [
        Heading("The question, the method, the readings"),
        Text(
            "Can a player become good by learning which sequences of moves to play in which positions, from watching "
            "others play? **SeqLearner** watches tournaments of a perfect player against a random one, a novice, an "
            "expert and a perfect one, all of it twice. It collects the sequences of moves of whoever won or drew, and "
            "takes what the positions before a sequence have in common for its context. Pairs of contexts and "
            "sequences are weighed by how often they agree with the perfect player. **SeqPlayer** plays by them: "
            "version 1 lets all pairs from .55 vote, version 2 asks the best classes of pairs first."
        ),
        Text(
            f"A run is one training and then, for each version, {TEST_MATCHES if study.plan.share == 1 else 'fewer'} "
            "test matches against each of the four opponents. Perfect players are computed from the solutions of the "
            "games. The paper leaves things open; these readings, fixed before the runs told of here, are used:"
        ),
        Bullets(
            [
                f"A perfect player makes, {best} (the choice that fits the printed baselines best).",
                "A reasonable player wins at once where it can and avoids to let the other one win at once; in lose "
                "tic-tac-toe that is a random player. Expert and novice draw anew for each move.",
                "Sides alternate. Weights: agreements / comments x min(1, comments / 10). A sequence gets a context "
                "when it was met twice.",
                "A match of five men's morris that is not over after 100 moves is a draw. The solution, and so the "
                "perfect player and every judgement by it, leaves that limit out: there a match without end is a draw.",
                "Sequences and contexts count as one with their images under the 8 symmetries of the square.",
            ]
        ),
    ]


def _table1(study: Study, folder: Path) -> list[Block]:
    found: list[Block] = [
        Heading("Table 1: how well SeqPlayer plays"),
        Pictures([pictures.reliability_picture(study, folder)]),
        *(tables.table1(study, game) for game in study.games),
    ]
    if "losetictactoe" in study.games:
        found.append(tables.exact_table(study))
    return [*found, Heading("Improvements, tested", 3), tables.compared_table(study)]


def _table2(study: Study) -> list[Block]:
    found: list[Block] = [
        Heading("Table 2: what was learned"),
        tables.table2(study),
        Text(
            "The paper's text calls the best class larger than all other included pairs together in both games; its "
            "own Table 2 says so of lose tic-tac-toe only (575.5 against 984.6 in five men's morris)."
        ),
        tables.formulas_table(study),
        Bullets([f"**{name}**: {_first_sentence(formula)}" for name, formula in WEIGHTS.items()]),
    ]
    if "losetictactoe" in study.games:
        found += [
            Heading("The 264 classes of sequences of lose tic-tac-toe", 3),
            learned.classes_table(study),
            Bullets(learned.classes_words(study)),
        ]
    return [*found, Heading("Speed", 3), learned.speed_table(study)]


def _first_sentence(documented: object) -> str:
    return " ".join((documented.__doc__ or "").split("\n\n")[0].split())


def _strategies(study: Study, folder: Path) -> list[Block]:
    shown = [pictures.strategies_picture(study, game, folder) for game in study.games]
    return [
        Heading("Learned strategies (Figures 5 to 7)"),
        Text(
            "A pair shows a strategy where all of its branches of that kind do. **reflection**: a duet of the first "
            "player, which has the centre; every move of the other is answered on the opposite side of the centre. "
            "**block**: a duet of the placing stage; each own move takes the last free point of a mill of which the "
            "other has two points. **shuttle**: a solo that slides a piece there, back and there again, and "
            "closes a mill."
        ),
        learned.strategies_table(study),
        Pictures([picture for picture in shown if picture is not None]),
        Heading("The best pairs", 3),
        Pictures([pictures.best_picture(study, game, folder) for game in study.games]),
    ]


def _advice(study: Study) -> list[Block]:
    return [Heading("How good the advice is"), learned.advice_table(study)]


def _tried(found: Findings, folder: Path) -> list[Block]:
    plan = found.study.plan
    shown: list[Block] = []
    if found.sensitivity:
        caption = (
            "What hangs on the readings: reliability of version 2 against the perfect player with one thing changed, "
            "95 % intervals; diamonds: the paper. Green, red: the difference from the default is, run by run, "
            "above or below 0."
        )
        shown += [
            Heading("Sensitivity: one thing changed at a time"),
            Pictures([pictures.tried_picture("sensitivity", caption, found.sensitivity, folder)]),
            tables.tried_table(found.sensitivity, plan.runs, _matches(found.study)),
        ]
    if found.improvements:
        caption = (
            f"Beyond the paper: reliability of version 2 against the perfect player, {plan.fresh} runs with fresh "
            "seeds, 95 % intervals; diamonds: the paper."
        )
        shown += [
            Heading("Beyond the paper: what makes it better"),
            Text("Options, never silently the default, on runs of their own that nothing was chosen by."),
            Pictures([pictures.tried_picture("improvements", caption, found.improvements, folder)]),
            tables.tried_table(found.improvements, plan.fresh, _matches(found.study)),
        ]
    if found.raised:
        shown += [
            Heading("Games that the authors never saw"),
            Text("Nothing is told to the learner but the rules: `gamelore learn GAME --learner sequences`."),
            tables.raised_table(found.raised, plan.fresh),
        ]
    return shown


def _matches(study: Study) -> int:
    return study.plan.core()[0].matches


def _claims(found: Findings, folder: Path) -> list[Block]:
    fresh = found.judged is not found.study
    basis = (
        f"These verdicts rest on {found.judged.plan.fresh} runs with fresh seeds."
        if fresh
        else "These verdicts rest on the runs above; `--verdicts` judges by fresh seeds and more runs."
    )
    rules = (
        "A claimed order is reproduced or contradicted where p < 0.05 after Holm's correction over all such claims, "
        "undecided else. A claimed value is reproduced where our 95 % interval lies within the paper's own (from its "
        "standard deviation; a margin where it prints none), contradicted where it lies outside, undecided where they "
        "overlap, and where fewer than six runs all gave the same number. The column p is Holm's."
    )
    return [
        Heading("Every claim of the paper"),
        Text(f"{basis} {rules}"),
        Bullets([_named(found.findings, verdict) for verdict in VERDICT_COLOURS]),
        Pictures([pictures.changes_picture(found.findings, folder)]),
        tables.claims_table(found.findings),
    ]


def _named(findings: Sequence[Finding], verdict: str) -> str:
    """The claims with a verdict, by their names."""
    names = [f"`{finding.claim.id}`" for finding in findings if finding.verdict == verdict]
    return f"**{len(names)} {verdict}**{': ' if names else ''}{', '.join(names)}"
