"""`reproduce`: the whole of Banerjee & Stone 2007, from the grid to the report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ...errors import ExperimentError
from ..claims import OPPONENTS, Claims, load_claims
from ..costs import Cost, compare_costs
from ..endpoints import Evidence, Finding, evaluate
from ..grid import Grid
from ..report import ReportPaths, Table, machine, peak_memory, write_report
from ..runner import RunSummary, run_grid, version
from ..trials import STORE, TrialStore
from . import page, pictures, tables
from .plan import READINGS, SEED, SOURCE, TARGETS, Plan
from .study import Study

PARTS: dict[str, tuple[str, ...]] = {
    "text": ("core", "controls", "sweep"),
    "figures": ("core", "controls", "sensitivity", "sweep"),
}


def reproduce(
    out: Path | str,
    reading: Literal["text", "figures", "both"] = "figures",
    *,
    runs: int = 10,
    matches: int = 3000,
    seed: int = SEED,
    verdicts: bool = False,
    max_runs: int | None = None,
    workers: int = 2,
    progress: bool = True,
    parts: Iterable[str] | None = None,
) -> ReportPaths:
    """Runs what is not yet in `out`/results.db, and writes report.md, report.html, the pictures and their rows.

    `runs` runs draw the figures. With `verdicts` the claims are judged by fresh seeds and more runs, see
    `Plan.of_findings`, where `max_runs` can limit them further. `parts` leaves out some of PARTS (the core is always
    there). Raises ExperimentError where `out` holds results of other settings.
    """
    begin = time.perf_counter()
    folder, plans, claims = Path(out), _plans(reading, runs, matches, seed), load_claims()
    chosen = {plan.name: _parts(plan, parts) for plan in plans}
    with TrialStore(folder / STORE) as store:
        grid = Grid.of(setting for plan in plans for setting in plan.parts(chosen[plan.name]))
        ran = [run_grid(grid, store, workers=workers, progress=progress, label="figures")]
        drawn = [_evidence(plan, claims, store, plan.runs) for plan in plans]
        judged = drawn
        if verdicts:
            judging = [plan.verdicts() for plan in plans]
            pilots = [evaluate(claims, evidence) for evidence in drawn]
            grid = _verdict_grid(judging, pilots, max_runs)
            ran.append(run_grid(grid, store, workers=workers, progress=progress, label="verdicts"))
            judged = [_evidence(plan, claims, store, None) for plan in judging]
        studies = [
            Study(plan, mine, evaluate(claims, others), folder, chosen[plan.name])
            for plan, mine, others in zip(plans, drawn, judged, strict=True)
        ]
        provenance = _provenance(studies, store, ran, verdicts, begin)
        return _write(studies, claims, verdicts, provenance)


def _plans(reading: str, runs: int, matches: int, seed: int) -> list[Plan]:
    names = list(READINGS) if reading == "both" else [reading]
    if names[0] not in READINGS:
        raise ExperimentError(f"expected reading {' | '.join(READINGS)} | both, got {reading!r}; choose one of these")
    return [Plan(READINGS[name], runs, matches, seed) for name in reversed(names)]


def _parts(plan: Plan, parts: Iterable[str] | None) -> tuple[str, ...]:
    possible = PARTS[plan.reading.name]
    if parts is None:
        return possible
    return tuple(part for part in possible if part == "core" or part in set(parts))


def _evidence(plan: Plan, claims: Claims, store: TrialStore, runs: int | None) -> Evidence:
    costs = {game: _cost(plan, store, game) for game in TARGETS}
    return Evidence(store, plan.name, SOURCE, claims.table, runs, costs)


def _cost(plan: Plan, store: TrialStore, game: str) -> Cost:
    """Measured once, then noted: times are the one thing that does not repeat."""
    name = f"cost/{plan.reading.name}/{game}"
    if store.noted(name) is None:
        transfer = plan.target(game, "egreedy", "transfer")
        values = store.values(plan.source("egreedy").id)
        store.note(name, compare_costs(transfer, plan.target(game, "egreedy", "baseline"), values).as_json())
    return Cost(**store.noted(name))


def _verdict_grid(plans: Sequence[Plan], pilots: Sequence[Sequence[Finding]], max_runs: int | None) -> Grid:
    """Fresh runs, as many as the pilots' scatter says; the number is fixed before the first of them."""
    grids = [plan.of_findings(findings, max_runs) for plan, findings in zip(plans, pilots, strict=True)]
    return Grid.of(setting for one in grids for setting in one.settings.values())


def _write(studies: Sequence[Study], claims: Claims, verdicts: bool, provenance: Table) -> ReportPaths:
    folder, table = studies[0].folder, claims.table
    printed = {opponent: table.column(opponent) for opponent in OPPONENTS}
    features = [pictures.figure2_picture(table, printed, folder), pictures.second_mover_picture(folder)]
    tables.write_claims(studies, folder)
    blocks = page.blocks(studies, features, verdicts, provenance)
    title = "General Game Learning using Knowledge Transfer (Banerjee & Stone 2007), reproduced"
    return write_report(title, page.headline(studies[0], verdicts), blocks, folder)


def _provenance(
    studies: Sequence[Study], store: TrialStore, ran: Sequence[RunSummary], verdicts: bool, begin: float
) -> Table:
    plan, totals = studies[0].plan, store.totals()
    wall = ", ".join(
        f"{name} {one.seconds:.1f} s ({one.played} trials played, {one.found} found finished)"
        for name, one in zip(("figures", "verdicts"), ran, strict=False)
    )
    rows = [
        ("gamelore", version()),
        ("command", _command(studies, verdicts)),
        (
            "settings",
            f"seed {plan.seed}, {plan.runs} runs of {plan.matches} matches; verdicts from seed {plan.verdicts().seed}",
        ),
        ("trials", f"{totals['trials']} with {totals['matches']} matches; every one in `{STORE}`, with its settings"),
        ("stuck matches, missing goals", f"{totals['stuck']}, {totals['missing']}"),
        ("wall time", f"{wall}; everything {time.perf_counter() - begin:.1f} s; peak memory {peak_memory()}"),
        ("machine", machine()),
        ("rules", ", ".join(f"{game} `{rules[:12]}`" for game, rules in store.rules().items())),
        ("written", datetime.now(UTC).isoformat(timespec="seconds")),
        ("claims", f"`{Path(load_claims().path).name}` of the package; findings in `claims.csv`"),
    ]
    return Table(("", ""), rows)


def _command(studies: Sequence[Study], verdicts: bool) -> str:
    reading = studies[0].name if len(studies) == 1 else "both"
    plan = studies[0].plan
    numbers = f"--runs {plan.runs} --matches {plan.matches} --seed {plan.seed}"
    options = f"{numbers}{' --verdicts' if verdicts else ''} --out {studies[0].folder}"
    return f"`gamelore reproduce banerjee2007 --reading {reading} {options}`"
