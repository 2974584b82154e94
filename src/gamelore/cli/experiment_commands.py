"""transfer, reproduce, demo and matches: run experiments, write their reports, and export their matches as CSV."""

from __future__ import annotations

import csv
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from . import console
from .console import Cluster, Force, Json, Seed, Workers

if TYPE_CHECKING:
    from ..lab.report import ReportPaths

SEED = 2007
KEPT = "finished trials are stored in the folder; run the same command again to continue"

Out = Annotated[
    Path,
    Option(
        "--out", metavar="DIR", help="Folder for the report and all results; results that are already there are used."
    ),
]
Runs = Annotated[int, Option("--runs", min=1, help="Independent runs of each series.")]
Matches = Annotated[int, Option("--matches", min=1, help="Matches of each series.")]

app = typer.Typer()


@console.command(
    app,
    "transfer",
    "transfer tictactoe connect3 othello4 --opponent egreedy:filler=hashed --out carried",
    "transfer othello4 capturego3 --source-role white --target-role white --runs 30 --matches 1000 --out go",
    "transfer --every-pair --runs 5 --matches 500 --out all --json",
    kept=KEPT,
    loads="games",
)
def transfer(
    source: Annotated[str | None, Argument(metavar="SOURCE", help="The game that is learned first.")] = None,
    targets: Annotated[
        list[str] | None, Argument(metavar="TARGET", help="The games that are learned after it.")
    ] = None,
    out: Out = Path("transfer"),
    opponent: Annotated[
        str, Option(help="The opponent: egreedy, random or weak, for example weak:filler=first,epsilon=0.05.")
    ] = "egreedy:filler=hashed",
    source_role: Annotated[
        str | None, Option(help="The learner's role in the source game.", show_default="the first role")
    ] = None,
    target_role: Annotated[
        str | None, Option(help="The learner's role in the target games.", show_default="the first role")
    ] = None,
    source_matches: Annotated[int, Option(min=1, help="Number of matches in the source game.")] = 100,
    source_epsilon: Annotated[
        float, Option(min=0, max=1, help="Probability of a random move in the source game.")
    ] = 1.0,
    initialisation: Annotated[
        Literal["lazy", "siblings", "eager"],
        Option(help="When afterstates get their initial values; see `gamelore learn`."),
    ] = "eager",
    heuristic: Annotated[
        Literal["minimax", "maxmax", "avgmax"], Option(help="The search of the lookahead learner.")
    ] = "minimax",
    runs: Runs = 10,
    matches: Matches = 3000,
    every_pair: Annotated[
        bool,
        Option(
            "--every-pair", help="Use all pairs of the four games of Banerjee & Stone 2007, without SOURCE and TARGET."
        ),
    ] = False,
    workers: Workers = 2,
    cluster: Cluster = None,
    seed: Seed = SEED,
    json: Json = False,
) -> None:
    """Learn one game, then other games with and without knowledge from the first game; report the difference.

    Each finished trial is stored at once. After an interruption, run the same command again to continue. More runs and
    more TARGETs can be added to a report. For other games, fewer runs, or other settings, choose another folder.
    """
    from ..api.transfer_experiment import with_roles
    from ..lab.studies.transfer_study import TransferPlan
    from ..lab.studies.transfer_study import every_pair as pairs
    from ..lab.studies.transfer_study import transfer as run
    from ..learning.td.initial_values import LearnerSettings
    from ..matches.opponents import opponent_settings

    if every_pair == bool(source) or bool(source) != bool(targets):
        console.fail("expected SOURCE and at least one TARGET, or --every-pair without them", console.USAGE)
    if every_pair and (source_role or target_role):
        console.fail("expected no roles with --every-pair, which plays all roles; leave them out", console.USAGE)
    with console.usage():
        options: dict[str, Any] = {
            "opponent": opponent_settings(opponent),
            "learner": LearnerSettings("transfer", heuristic, initialisation),
            "source_matches": source_matches,
            "source_epsilon": source_epsilon,
            "runs": runs,
            "matches": matches,
            "seed": seed,
        }
    plans = pairs(**options) if every_pair else [TransferPlan(source or "", tuple(targets or ()), **options)]
    limits = console.LOADING.get()
    if not every_pair:
        with console.usage():
            plans = [with_roles(plans[0], source_role, target_role, limits)]
    result = run(plans, out, workers=workers, cluster=cluster, progress=sys.stderr.isatty(), limits=limits)
    _show(result.report, {"gains": [gain.as_json() for gain in result.gains]}, json)


READINGS = {"banerjee2007": ("text", "figures", "both"), "lock2004": ("text", "tables", "both")}
"""Paper -> its readings."""


@console.command(
    app,
    "reproduce",
    "reproduce banerjee2007 --out report",
    "reproduce banerjee2007 --reading both --verdicts --out report",
    "reproduce banerjee2007 --reading text --runs 3 --matches 500 --out quick --json",
    "reproduce banerjee2007 --reading both --headroom --verdicts --out headroom",
    "reproduce lock2004 --out strategies",
    "reproduce lock2004 --core --runs 3 --out quick --json",
    "reproduce lock2004 --reading tables --core --out tables",
    kept=KEPT,
)
def reproduce(
    paper: Annotated[
        str, Argument(metavar="PAPER", help="banerjee2007: Banerjee & Stone 2007; lock2004: Lock & Epstein 2004.")
    ],
    out: Out = Path("report"),
    reading: Annotated[
        Literal["text", "figures", "tables", "both"] | None,
        Option(
            help="Settings that the paper leaves open: as in its text, or as its figures (banerjee2007) or tables "
            "(lock2004) suggest.",
            show_default="figures; for lock2004 text",
        ),
    ] = None,
    matches: Annotated[
        int | None, Option(min=1, help="banerjee2007: number of matches of each series.", show_default="3000")
    ] = None,
    headroom: Annotated[
        bool,
        Option(
            "--headroom",
            help="banerjee2007: also compare with a learner that begins with exact values, and with one that begins "
            "with features two turns below, in six games (with --verdicts about half an hour for each reading on two "
            "cores, and 3 GB of memory).",
        ),
    ] = False,
    core: Annotated[bool, Option("--core", help="lock2004: make only the two tables of the paper.")] = False,
    fresh: Annotated[
        int | None,
        Option(
            min=2,
            help="lock2004: number of runs, in place of --runs, for improved variants of the player, for the arms that "
            "compare readings, for games that are not in the paper, and for --verdicts.",
            show_default="20",
        ),
    ] = None,
    verdicts: Annotated[
        bool, Option("--verdicts", help="Make as many new runs as needed to judge every claim.")
    ] = False,
    runs: Runs = 10,
    workers: Workers = 2,
    cluster: Cluster = None,
    seed: Annotated[int | None, Option(help="Seed of all random numbers.", show_default="the paper's year")] = None,
    json: Json = False,
) -> None:
    """Reproduce the whole study of a paper: every figure and table, and every claim with its verdict.

    Each finished trial is stored at once. After an interruption, run the same command again to continue. For other
    settings, choose another folder.
    """
    own: dict[str, dict[str, Any]] = {
        "banerjee2007": {"matches": matches, "headroom": headroom or None},
        "lock2004": {"core": core or None, "fresh": fresh},
    }
    console.known(paper, tuple(own), "a paper")
    for other, options in own.items():
        given = [name for name, value in options.items() if value is not None]
        if other != paper and given:
            console.fail(
                f"expected only options for {paper}, got --{given[0]}, which is for {other}; leave it out, or write "
                f"gamelore reproduce {other}",
                console.USAGE,
            )
    console.known(reading or "both", READINGS[paper], f"a reading of {paper}")
    every = own[paper] | {"reading": reading, "seed": seed, "cluster": cluster}
    chosen = {name: value for name, value in every.items() if value is not None}
    run = import_module(f"gamelore.lab.papers.{paper}").reproduce
    report = run(out, runs=runs, verdicts=verdicts, workers=workers, progress=sys.stderr.isatty(), **chosen)
    _show(report, _claims(report), json)


@console.command(app, "demo", "demo --out demo", "demo --out demo --runs 3 --matches 1000", kept=KEPT)
def demo(
    out: Out = Path("demo"),
    runs: Runs = 5,
    matches: Matches = 3000,
    workers: Workers = 2,
    seed: Seed = SEED,
    json: Json = False,
) -> None:
    """Learn tic-tac-toe, then three games with and without that knowledge; report the results in about two minutes."""
    from ..lab.papers.banerjee2007 import demo as run

    report = run(out, runs=runs, matches=matches, seed=seed, workers=workers, progress=sys.stderr.isatty())
    _show(report, _claims(report), json)


@console.command(app, "matches", "matches report matches.csv", "matches report matches.csv --force --json")
def matches(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder of an experiment, as given by --out.")],
    file: Annotated[Path, Argument(metavar="FILE", help="The CSV file to write.")],
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the matches of an experiment as CSV rows: reward, length, all settings and the version of gamelore."""
    from ..lab.results import STORE, ResultStore, store_path

    if not store_path(folder).is_file():
        console.fail(
            f"expected the folder of an experiment with the file {STORE}, got {folder}; name the folder that "
            "--out named",
            console.USAGE,
        )
    console.refuse_existing(file, force)
    with ResultStore(store_path(folder)) as store:
        count = store.export_matches(file)
    console.emit({"file": str(file), "matches": count}) if json else console.say(f"wrote {count} matches to {file}")


def _claims(report: ReportPaths) -> dict[str, Any]:
    """Read the claims of a report."""
    with (report.folder / "claims.csv").open(newline="", encoding="utf-8") as file:
        return {"claims": list(csv.DictReader(file))}


def _show(report: ReportPaths, results: dict[str, Any], json: bool) -> None:
    """Print the headline and the path of a report; with `json`, print both and the results as JSON."""
    if json:
        places = {"html": str(report.html), "markdown": str(report.markdown)}
        console.emit({"headline": report.headline, "report": places, **results})
    else:
        typer.echo(f"{report.headline}\n\nreport: {report.html}\n        {report.markdown}")
