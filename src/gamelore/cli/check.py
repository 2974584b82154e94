"""check: what is wrong with rulesheets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import GameloreError
from ..rules.asp import Limits
from .console import (
    FAILED,
    INTERRUPTED,
    OK,
    USAGE,
    Engine,
    Json,
    Seed,
    command,
    counted,
    emit,
    fail,
    rulesheet_path,
    say,
    status,
)

if TYPE_CHECKING:
    from ..rules.check import Finding
    from ..rules.playcheck import PlayReport
    from ..rules.tryout import Effort

NOT_PLAYED = frozenset({"syntax", "no-perfect-model"})  # errors, besides those for which loading refuses
LIMITS = Limits()


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "check",
        "check mygame.kif",
        "check games/*.kif --json",
        "check mygame.kif --play",
        "check games/*.kif --play --matches 100 --max-steps 500 --json",
    )(check)


def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Rulesheets, or names of shipped games; :option=value,.. behind either."),
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings, too, make the exit code 1.")] = False,
    play: Annotated[bool, typer.Option("--play", help="Also find what shows in play only.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0, help="Play each so long.", show_default="5, or no limit with --matches"),
    ] = None,
    matches: Annotated[int | None, typer.Option("--matches", min=0, help="Play so many random matches.")] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Cut matches that are longer.", show_default="1000")
    ] = None,
    max_states: Annotated[
        int | None,
        typer.Option(
            "--max-states",
            min=0,
            help="See all reachable states where they are no more than this.",
            show_default="10000, or 300 on the reasoner",
        ),
    ] = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    ground_seconds: Annotated[
        float, typer.Option("--ground-seconds", min=0, help="Compile only what grounds in so much processor time.")
    ] = LIMITS.seconds,
    ground_literals: Annotated[
        int,
        typer.Option(
            "--ground-literals", min=0, help="Compile only what grounds to so many literals, about 100 bytes each."
        ),
    ] = LIMITS.literals,
    json: Json = False,
) -> None:
    """Say what is wrong with rulesheets: every finding with its line, column, rule and remedy.

    The text shows most of it. With --play the states nearest the start are visited, and unless these are all there are,
    random matches are played: this finds a role without a legal move, no or several goals at the end, goals outside
    0..100, facts outside 'base' and moves outside 'input' (errors), and matches that need not end (a warning), each
    with the moves that lead there. It also says on which engine the game plays, and why.

    With --json: a list of findings; with --play, too, an object of these 'findings' and of what was 'played'.

    The exit code is 1 where there is an error (with --strict also where there is a warning), 2 where a file cannot be
    read, 0 otherwise.
    """
    options = {"--seconds": seconds, "--matches": matches, "--max-steps": max_steps, "--max-states": max_states}
    given = [name for name, value in options.items() if value is not None]
    if given and not play:
        fail(f"expected --play together with {', '.join(given)}; add it", USAGE)
    limits = Limits(ground_seconds, ground_literals)
    effort = _effort(seconds, matches, max_steps, max_states, seed) if play else None

    def checked(path: Path, text: str, game: str) -> _Checked:
        return _check(_Checked(path, game), text, effort, engine, limits)

    result = _check_all(files, checked, quiet=json)
    found = [finding for one in result.checked for finding in one.findings]
    if not json:
        typer.echo(_total(found, len(result.checked)))
    elif play:
        emit({"findings": [asdict(finding) for finding in found], "played": list(map(_played, result.checked))})
    else:
        emit([asdict(finding) for finding in found])
    raise typer.Exit(result.exit_code(strict))


@dataclass
class _Checked:
    """One file: its findings, and what was played, or why nothing was; whether Ctrl-C ended it.

    game: its name, with the options that were chosen.
    """

    path: Path
    game: str
    findings: list[Finding] = field(default_factory=list)
    report: PlayReport | None = None
    not_played: str = ""
    interrupted: bool = False

    @property
    def title(self) -> str:
        """The path, and the options behind it."""
        _, colon, options = self.game.partition(":")
        return f"{self.path}{colon}{options}"


@dataclass
class _Result:
    """All files; whether one could not be read."""

    checked: list[_Checked] = field(default_factory=list)
    unreadable: bool = False

    def exit_code(self, strict: bool) -> int:
        if any(one.interrupted for one in self.checked):
            return INTERRUPTED
        if self.unreadable:
            return USAGE
        bad = any(strict or finding.severity == "error" for one in self.checked for finding in one.findings)
        return FAILED if bad else OK


def _effort(
    seconds: float | None, matches: int | None, max_steps: int | None, max_states: int | None, seed: int
) -> Effort:
    from ..rules.tryout import Effort

    default = Effort()
    if seconds is None and matches is None:
        seconds = default.seconds
    return Effort(seconds, matches, max_steps or default.max_steps, max_states, seed)


def _check_all(files: Sequence[str], checked: Callable[[Path, str, str], _Checked], quiet: bool) -> _Result:
    """Checks files one after the other, and prints each one's findings at once unless `quiet`."""
    result = _Result()
    with status() as progress:
        for number, name in enumerate(files, 1):
            source = _read(name)
            if source is None:
                result.unreadable = True
                continue
            progress(f"{number} of {len(files)}: {source[0]}")
            one = checked(*source)
            result.checked.append(one)
            progress("")
            if not quiet:
                _show(one)
            if one.interrupted:
                say(f"interrupted at {one.title}; what was found until then is kept")
                break
    return result


def _read(name: str) -> tuple[Path, str, str] | None:
    """A rulesheet's place, text and name; None, and a message, where it cannot be read."""
    from ..games import sheet

    try:
        rulesheet_path(name)
        return sheet(name)
    except GameloreError as error:
        say(f"error: {error}")
    except OSError as error:
        say(f"error: expected a rulesheet to read, got: {error}")
    return None


def _check(checked: _Checked, text: str, effort: Effort | None, engine: Any, limits: Limits) -> _Checked:
    from ..rules.check import REFUSED
    from ..rules.game import findings

    try:
        checked.findings = findings(text, checked.path, limits)
        if effort is None:
            return checked
        if any(found.severity == "error" and found.code in REFUSED | NOT_PLAYED for found in checked.findings):
            checked.not_played = "it has errors to be put right first"
        else:
            _play(checked, text, effort, engine, limits)
    except KeyboardInterrupt:
        checked.interrupted, checked.not_played = True, "it was interrupted"
    return checked


def _play(checked: _Checked, text: str, effort: Effort, engine: Any, limits: Limits) -> None:
    from ..rules.gdl import parse
    from ..rules.playcheck import play_check, unplayable

    try:
        checked.report = play_check(parse(text, checked.path), checked.game, effort, engine, limits)
        found, checked.interrupted = checked.report.findings, checked.report.interrupted
    except GameloreError as error:
        found, checked.not_played = [unplayable(error, checked.path)], "it cannot be loaded"
    checked.findings = sorted([*checked.findings, *found], key=lambda finding: (finding.line, finding.column))


def _played(checked: _Checked) -> dict[str, Any]:
    """What was played with one file, for JSON; the findings are elsewhere."""
    if checked.report is None:
        return {
            "path": str(checked.path),
            "game": checked.game,
            "engine": None,
            "reason": f"not played: {checked.not_played}",
        }
    data = asdict(checked.report) | {"size": checked.report.size and checked.report.size._asdict()}
    del data["findings"]
    return {"path": str(checked.path), "game": checked.game, **data}


def _show(checked: _Checked) -> None:
    for finding in checked.findings:
        typer.echo(finding)
    if checked.report:
        typer.echo("\n  ".join([f"{checked.title}: {_engine(checked.report)}", *_figures(checked.report)]))
    elif checked.not_played:
        typer.echo(f"{checked.title}: not played: {checked.not_played}")


def _engine(report: PlayReport) -> str:
    """Which engine, why, and how large the game is."""
    if report.size:
        numbers = zip(report.size, ("fact", "action", "gate"), strict=True)
        size = ", ".join(counted(number, what) for number, what in numbers)
        how = f"native engine {report.reason}\n  made" if report.reason else "native engine, made"
        return f"{how} in {report.make_seconds:.1f} s: {size}"
    return f"{report.engine}, because {report.reason}"


def _figures(report: PlayReport) -> list[str]:
    """What was played."""
    states = f"all {report.num_states} reachable states" if report.all_states else counted(report.num_states, "state")
    matches = counted(report.num_matches, "random match", "random matches")
    lines = [f"visited {states}, played {matches}{_ends(report)}"]
    if report.mean_length is not None:
        means = (
            f"{role} {'none' if goal is None else format(goal, '.1f')}" for role, goal in report.mean_goals.items()
        )
        lines.append(f"on average {report.mean_length:.1f} moves; goals {', '.join(means)}")
    if report.longest_match is not None:
        lines.append(f"every match ends within {counted(report.longest_match, 'move')}")
    return lines + report.remarks


def _ends(report: PlayReport) -> str:
    """What became of matches that did not end in a terminal state."""
    unfinished = report.num_matches - report.num_ended - report.num_stuck - report.num_cut
    ends = {"stuck": report.num_stuck, "cut": report.num_cut, "unfinished when time was up": unfinished}
    told = ", ".join(f"{count} {end}" for end, count in ends.items() if count)
    return f" ({told})" if told else ""


def _total(findings: Sequence[Finding], num_files: int) -> str:
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = counted(counts["error"], "error"), counted(counts["warning"], "warning")
    return f"{errors} and {warnings} in {counted(num_files, 'rulesheet')}"
