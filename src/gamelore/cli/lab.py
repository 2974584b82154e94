"""transfer, reproduce and demo: whole experiments, with a report at the end; matches: what they played, as rows."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .console import USAGE, Json, Seed, command, emit, fail, known, load_game, opponent_settings, say, usage

if TYPE_CHECKING:
    from ..lab.report import ReportPaths
    from ..lab.transfer import TransferPlan
    from ..rules.game import Game

SEED = 2007
KEPT = "finished trials are in the folder; the same command goes on from there"

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder of the report and of every trial's result; resumed.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, help="Independent runs of every series.")]
Matches = Annotated[int, typer.Option("--matches", min=1, help="Matches of every series.")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes that play.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    command(
        app,
        "transfer",
        "transfer tictactoe connect3 othello4 --opponent egreedy:filler=hashed --out carried",
        "transfer othello4 capturego3 --source-role white --target-role white --runs 30 --matches 1000 --out go",
        "transfer --every-pair --runs 5 --matches 500 --out all --json",
        kept=KEPT,
    )(transfer)
    command(
        app,
        "reproduce",
        "reproduce banerjee2007 --out report",
        "reproduce banerjee2007 --reading both --verdicts --out report",
        "reproduce banerjee2007 --reading text --runs 3 --matches 500 --out quick --json",
        "reproduce lock2004 --out strategies",
        "reproduce lock2004 --core --runs 3 --out quick --json",
        kept=KEPT,
    )(reproduce)
    command(app, "demo", "demo --out demo", "demo --out demo --runs 3 --matches 1000", kept=KEPT)(demo)
    command(app, "matches", "matches report matches.csv", "matches report matches.csv --force --json")(matches)


def transfer(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help="The game learned first.")] = None,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET", help="Games learned with and without that.")
    ] = None,
    out: Out = Path("transfer"),
    opponent: Annotated[
        str, typer.Option("--opponent", help="egreedy, random or weak, with :filler=random|first|hashed,epsilon=..")
    ] = "egreedy:filler=hashed",
    source_role: Annotated[
        str | None, typer.Option("--source-role", help="Who learns in the source.", show_default="the first role")
    ] = None,
    target_role: Annotated[
        str | None, typer.Option("--target-role", help="Who learns in the targets.", show_default="the first role")
    ] = None,
    source_matches: Annotated[int, typer.Option("--source-matches", min=1, help="Matches in the source.")] = 100,
    source_epsilon: Annotated[
        float, typer.Option("--source-epsilon", min=0, max=1, help="How often the learner explores there.")
    ] = 1.0,
    initialisation: Annotated[
        Literal["lazy", "siblings", "eager"], typer.Option("--initialisation", help="When first values are given.")
    ] = "eager",
    heuristic: Annotated[
        Literal["minimax", "maxmax", "avgmax"], typer.Option("--heuristic", help="Of the lookahead learner.")
    ] = "minimax",
    runs: Runs = 10,
    matches: Matches = 3000,
    every_pair: Annotated[
        bool, typer.Option("--every-pair", help="All sources, targets and roles of the paper's four games instead.")
    ] = False,
    workers: Workers = 2,
    seed: Seed = SEED,
    json: Json = False,
) -> None:
    """Learn one game, then others with and without what was learned, and report the difference.

    A finished trial is stored at once: interrupted, the same command goes on; with other settings it refuses a folder
    that holds results.
    """
    from ..lab.transfer import TransferPlan
    from ..lab.transfer import every_pair as pairs
    from ..lab.transfer import transfer as run
    from ..learn.transfer import LearnerSettings

    if every_pair == bool(source) or bool(source) != bool(targets):
        fail("expected SOURCE and at least one TARGET, or --every-pair in their place", USAGE)
    with usage():
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
    if not every_pair:
        plans = [_with_roles(plans[0], source_role, target_role)]
    result = run(plans, out, workers=workers, progress=sys.stderr.isatty())
    _show(result.report, {"gains": [gain.as_json() for gain in result.gains]}, json)


def _with_roles(plan: TransferPlan, source_role: str | None, target_role: str | None) -> TransferPlan:
    """Roles by their names, as numbers; every game is looked at before the first match."""
    source, targets = load_game(plan.source), [load_game(target) for target in plan.targets]
    numbers = {_role_number(target, target_role) for target in targets}
    if len(numbers) > 1:
        fail(f"expected {target_role} at one place among the roles of all targets; give one target at a time", USAGE)
    return replace(plan, source_role=_role_number(source, source_role), target_role=numbers.pop())


def _role_number(game: Game, role: str | None) -> int:
    return game.roles.index(known(role, game.roles, f"a role of {game.name}")) if role else 0


def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="banerjee2007: Banerjee & Stone 2007; lock2004: Lock & Epstein 2004.")
    ],
    out: Out = Path("report"),
    reading: Annotated[
        Literal["text", "figures", "both"] | None,
        typer.Option(
            "--reading",
            help="banerjee2007: the paper's words taken literally, or what its printed numbers imply.",
            show_default="figures",
        ),
    ] = None,
    matches: Annotated[
        int | None,
        typer.Option("--matches", min=1, help="banerjee2007: matches of every series.", show_default="3000"),
    ] = None,
    core: Annotated[
        bool, typer.Option("--core", help="lock2004: its two tables without sensitivity and improvements.")
    ] = False,
    fresh: Annotated[
        int | None,
        typer.Option(
            "--fresh", min=2, help="lock2004: runs of every improvement, and of the verdicts.", show_default="20"
        ),
    ] = None,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", help="Judge every claim with fresh seeds and as many runs as that takes.")
    ] = False,
    runs: Runs = 10,
    workers: Workers = 2,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Decides every random number: same seed, same result.", show_default="the paper's year"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a paper's whole study again: every figure and table, and every claim with its verdict.

    A finished trial is stored at once: interrupted, the same command goes on; with other settings it refuses a folder
    that holds results.
    """
    known(paper, _PAPERS, "a paper")
    own: dict[str, dict[str, Any]] = {
        "banerjee2007": {"reading": reading, "matches": matches},
        "lock2004": {"core": core or None, "fresh": fresh},
    }
    for other, options in own.items():
        if other != paper:
            _refuse_options_of(other, options, paper)
    chosen = {name: value for name, value in (own[paper] | {"seed": seed}).items() if value is not None}
    report = _reproduced(
        paper, out, runs=runs, verdicts=verdicts, workers=workers, progress=sys.stderr.isatty(), **chosen
    )
    _show(report, _claims(report), json)


_PAPERS = ("banerjee2007", "lock2004")


def _refuse_options_of(other: str, options: dict[str, Any], paper: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        fail(
            f"expected options of {paper}, got --{given[0]}, which is for {other}; leave it out, "
            f"or write gamelore reproduce {other}",
            USAGE,
        )


def _reproduced(paper: str, out: Path, **options: Any) -> ReportPaths:
    if paper == "banerjee2007":
        from ..lab.banerjee2007 import reproduce as of_banerjee

        return of_banerjee(out, **options)
    from ..lab.lock2004 import reproduce as of_lock

    return of_lock(out, **options)


def demo(
    out: Out = Path("demo"),
    runs: Runs = 5,
    matches: Matches = 3000,
    workers: Workers = 2,
    seed: Seed = SEED,
    json: Json = False,
) -> None:
    """See it work in about two minutes: tic-tac-toe learned, three games learned faster for it (or not), a report."""
    from ..lab.demo import demo as run

    report = run(out, runs=runs, matches=matches, seed=seed, workers=workers, progress=sys.stderr.isatty())
    _show(report, _claims(report), json)


def matches(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an experiment (its --out).")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    json: Json = False,
) -> None:
    """Write every match of an experiment as a row: its reward, its length, all settings and the version."""
    from ..lab.trials import STORE, TrialStore

    if not (folder / STORE).is_file():
        fail(f"expected the folder of an experiment, with {STORE} in it; got {folder}; name what --out named", USAGE)
    if file.exists() and not force:
        fail(f"{file}: expected a new file, got one that exists; name another, or write over it with --force")
    with TrialStore(folder / STORE) as store:
        count = store.export_matches(file)
    emit({"file": str(file), "matches": count}) if json else say(f"wrote {count} matches to {file}")


def _claims(report: ReportPaths) -> dict[str, Any]:
    with (report.folder / "claims.csv").open(newline="", encoding="utf-8") as file:
        return {"claims": list(csv.DictReader(file))}


def _show(report: ReportPaths, results: dict[str, Any], json: bool) -> None:
    if json:
        places = {"html": str(report.html), "markdown": str(report.markdown)}
        emit({"headline": report.headline, "report": places, **results})
    else:
        typer.echo(f"{report.headline}\n\nreport: {report.html}\n        {report.markdown}")
