"""games, check, report and fmt: list shipped games, find mistakes in rulesheets, examine games, format rulesheets."""

from __future__ import annotations

import difflib
import errno
import io
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..api.rules import Checked, list_games
from ..api.rules import check as check_of
from ..errors import GameloreError, GDLSyntaxError, counted
from ..files import whole_file
from . import console
from .console import LIMITS, LOAD_SECONDS_HELP, LOADING_MEMORY, Engine, Json, Memory, Seed, of_loading

if TYPE_CHECKING:
    from ..gdl.lint import Finding

ENCODING = "utf-8", "surrogateescape"  # comments of old sheets can contain bytes that are not UTF-8; keep them
STANDARD_INPUT = "-"

app = typer.Typer()


@console.command(app, "games", "games", "games --json")
def games(json: Json = False) -> None:
    """List the shipped games, with the options of games that have options."""
    listed = list_games()
    if json:
        return console.emit([{**asdict(game), "path": str(game.path)} for game in listed])
    console.show_table(("game", "roles", "about"), [(game.name, ", ".join(game.roles), game.about) for game in listed])
    typer.echo("\nSome games have options; write them like fivemensmorris:cap=80,flying=yes\n")
    options = [
        (game.name, option.name, option.value, ", ".join(option.choices)) for game in listed for option in game.options
    ]
    console.show_table(("game", "option", "default", "values"), options)


@console.command(
    app,
    "check",
    "check mygame.kif",
    "check games/*.kif --json",
    "check mygame.kif --play",
    "check games/*.kif --play --matches 100 --max-steps 500 --json",
)
def check(
    files: Annotated[
        list[str],
        Argument(metavar="FILE", help="Rulesheets or shipped games; options: NAME:option=value,option=value."),
    ],
    strict: Annotated[bool, Option("--strict", help="Also exit with code 1 if there are only warnings.")] = False,
    play: Annotated[bool, Option("--play", help="Also play, to find mistakes that the text does not show.")] = False,
    seconds: Annotated[
        float | None, Option(min=0, help="Seconds of play for each game.", show_default="5, or no limit with --matches")
    ] = None,
    matches: Annotated[int | None, Option(min=0, help="Number of random matches.")] = None,
    max_steps: Annotated[
        int | None, Option(min=1, help="Stop a match after this many moves.", show_default="1000")
    ] = None,
    max_states: Annotated[
        int | None,
        Option(
            min=0, help="Visit all states if there are at most this many.", show_default="10000, or 300 on the reasoner"
        ),
    ] = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    load_seconds: Annotated[
        float, of_loading("--load-seconds", "--ground-seconds", help=LOAD_SECONDS_HELP)
    ] = LIMITS.seconds,
    ground_literals: Annotated[
        int, of_loading(help="Size of the ground rules, in literals (about 100 bytes each).")
    ] = LIMITS.literals,
    memory: Memory = LOADING_MEMORY,
    json: Json = False,
) -> None:
    """Find mistakes in rulesheets, each with its line, column, rule and remedy.

    Most mistakes are found without playing. With --play, the states nearest to the initial state are visited. If these
    are not all states, random matches are played, too. Play finds these errors: a role without a legal move, no goal or
    several goals at the end, goals outside 0 to 100, facts outside 'base', and moves outside 'input'. It warns of
    matches that need not end. Each finding names the moves that lead to the state. The report also names the engine
    that plays the game, and the reason for this engine.

    At most 50 findings of a kind are shown, and long rules are shortened. If the rules exceed a limit, the findings
    until then are kept, and the finding 'too-large' tells which limit.

    The output of --json is a list of findings. With --play it is an object: 'findings' is this list, and 'played' is a
    report of play.

    The exit code is 1 if there is an error (with --strict also for a warning), 2 if a file cannot be read, and
    otherwise 0.
    """
    given = {"seconds": seconds, "matches": matches, "max_steps": max_steps, "max_states": max_states}
    unwanted = [name.replace("_", "-") for name, value in given.items() if value is not None and not play]
    if unwanted:
        console.fail(f"expected --play together with {', '.join(f'--{x}' for x in unwanted)}; add it", console.USAGE)
    limits = console.limits_of(load_seconds, memory, ground_literals)
    sheets: list[Checked] = []
    with console.status() as progress:
        for number, name in enumerate(files, 1):
            progress(f"{number} of {len(files)}: {name}")
            sheet, error = _checked(name, play=play, seed=seed, engine=engine, limits=limits, **given)
            progress("")
            if sheet is None:
                console.say(f"error: {error}")
                continue
            sheets.append(sheet)
            if not json and (sheet.findings or sheet.played or sheet.not_played):
                typer.echo(sheet)
            if sheet.interrupted:
                console.say(f"interrupted at {sheet.title}; the findings so far are shown")
                break
    findings = [finding for sheet in sheets for finding in sheet.findings]
    if json:
        rows = [asdict(finding) for finding in findings]
        console.emit({"findings": rows, "played": list(map(_played, sheets))} if play else rows)
    elif sheets:
        typer.echo(_total(findings, len(sheets)))
    if sheets and sheets[-1].interrupted:
        raise typer.Exit(console.INTERRUPTED)
    if len(sheets) < len(files):
        raise typer.Exit(console.USAGE)
    raise typer.Exit(
        console.FAILED if any(strict or finding.severity == "error" for finding in findings) else console.OK
    )


def _checked(name: str, **options: Any) -> tuple[Checked | None, str]:
    """Check a rulesheet. If it cannot be read, the result is None with the reason."""
    try:
        console.rulesheet_path(name)
        return check_of(name, **options), ""
    except GameloreError as error:
        return None, str(error)
    except OSError as error:
        return None, f"expected a rulesheet that can be read, got: {error}"


def _played(checked: Checked) -> dict[str, Any]:
    """Return the report of play as JSON fields, without the findings."""
    sheet = {"path": str(checked.path), "game": checked.game}
    if checked.played is None:
        return sheet | {"engine": None, "reason": f"not played, because {checked.not_played}"}
    report = asdict(checked.played) | {"size": checked.played.size and checked.played.size._asdict()}
    del report["findings"]
    return sheet | report


def _total(findings: Sequence[Finding], num_files: int) -> str:
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = counted(counts["error"], "error"), counted(counts["warning"], "warning")
    return f"{errors} and {warnings} in {counted(num_files, 'rulesheet')}"


@console.command(
    app,
    "report",
    "report mygame.kif --html mygame.html",
    "report connect3 --matches 500 --simulations 1000",
    "report tictactoe --json",
)
def report(
    game: console.GameName,
    matches: Annotated[int, Option(min=2, help="Number of matches of random players, and of UCT players.")] = 200,
    simulations: Annotated[int, Option(min=1, help="Simulations of the UCT players for each move.")] = 200,
    html: Annotated[Path | None, Option("--html", metavar="FILE", help="Also write a page with pictures.")] = None,
    load_seconds: Annotated[float, of_loading("--load-seconds", help=LOAD_SECONDS_HELP)] = LIMITS.seconds,
    memory: Memory = LOADING_MEMORY,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Examine a game of your own: is it balanced, how long and how wide is it, which rules never matter?

    Random players and UCT players play matches against themselves, and the game is solved if it is small. The report
    has the mean goals of all roles with their 95 % intervals, draws and decisive matches, lengths, the number of
    choices, the findings of `gamelore check --play`, and the rules that fired in no position of these matches.
    """
    from ..api.inventor import report as report_of
    from ..api.progress import progress_bars

    with console.usage():
        console.rulesheet_path(game)
    limits = console.limits_of(load_seconds, memory)
    with progress_bars(transient=True) as tell:
        told = report_of(game, matches=matches, simulations=simulations, seed=seed, limits=limits, progress=tell)
    if json:
        findings = [asdict(finding) for finding in told.checked.findings]
        choices = {"choices": told.choices.tolist(), "mean_choices": told.mean_choices}
        rules = {"findings": findings, "dead_rules": told.dead_rules}
        console.emit({"game": told.name, "headline": told.headline, "players": told.rows, **choices, **rules})
    else:
        typer.echo(told)
    if html is not None:
        told.save(html if html.suffix == ".html" else html.with_suffix(".html"))
        console.say(f"wrote {html}")


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A rulesheet before and after formatting.

    If formatting fails, `after` is None, `error` is the message, and `code` is the exit code.
    """

    name: str
    before: str = ""
    after: str | None = None
    error: str | None = None
    code: int = console.OK

    @property
    def changed(self) -> bool:
        return self.after is not None and self.after != self.before


@console.command(
    app,
    "fmt",
    "fmt mygame.kif",
    "fmt games/*.kif --check",
    "fmt mygame.kif --diff",
    "fmt - < mygame.kif > formatted.kif",
    kept="each file is either formatted or unchanged",
)
def fmt(
    files: Annotated[list[str], Argument(metavar="FILE", help="Rulesheets; write - for standard input.")],
    check: Annotated[bool, Option("--check", help="Write nothing; exit with code 1 if a file would change.")] = False,
    diff: Annotated[bool, Option("--diff", help="Write nothing; show what would change.")] = False,
    stdout: Annotated[bool, Option("--stdout", help="Write nothing; print the formatted text.")] = False,
    json: Json = False,
) -> None:
    """Format rulesheets in the canonical layout: only white space changes, all comments stay.

    A rule is written on one line if it fits; otherwise each condition has its own line. Facts on the same line stay on
    the same line. Several blank lines become one. A file with a syntax error is not changed; all other files are
    formatted.
    """
    sheets = []
    for name in files:
        sheet = _read_text(name)
        printed = stdout or name == STANDARD_INPUT
        if sheet.changed and not (check or diff or printed):
            sheet = _written(sheet)
        if sheet.error and not json:
            console.say(f"error: {sheet.error}")
        sheets.append(sheet)
        if not json:
            _show_formatted(sheet, printed, check, diff)
    if json:
        console.emit([_described(sheet, stdout, diff) for sheet in sheets])
    elif STANDARD_INPUT not in files and not (stdout or diff):
        typer.echo(_summary(sheets, check))
    code = max(sheet.code for sheet in sheets)
    if code or (check and any(sheet.changed for sheet in sheets)):
        raise typer.Exit(code or console.FAILED)


def _read_text(name: str) -> _Sheet:
    """Read and format a file or standard input."""
    from ..gdl.syntax import formatted, refuse_binary

    try:
        path = None if name == STANDARD_INPUT else console.rulesheet_path(name, shipped=False)
        text = (path.read_bytes() if path else sys.stdin.buffer.read()).decode(*ENCODING)
        refuse_binary(text, path or "standard input")
        return _Sheet(name, text, formatted(text, path))
    except OSError as error:
        return _Sheet(name, error=f"expected a rulesheet that can be read, got: {error}", code=console.USAGE)
    except GDLSyntaxError as error:
        return _Sheet(name, text, error=str(error), code=console.FAILED)
    except GameloreError as error:
        return _Sheet(name, error=str(error), code=console.USAGE)


def _written(sheet: _Sheet) -> _Sheet:
    """Replace the text in the file by the formatted text, in one step. A symbolic link stays a link."""
    assert sheet.after is not None
    path = Path(sheet.name)
    try:
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), sheet.name)
        with whole_file(path) as new:
            new.write_bytes(sheet.after.encode(*ENCODING))
            shutil.copymode(path, new)
    except OSError as error:
        return _Sheet(sheet.name, error=f"expected a rulesheet that can be written, got: {error}", code=console.FAILED)
    return sheet


def _show_formatted(sheet: _Sheet, printed: bool, check: bool, diff: bool) -> None:
    """Print the formatted text, the difference, or one line about the file, depending on the options of `fmt`."""
    if sheet.after is None:
        return
    if diff:
        typer.echo(_difference(sheet).encode(*ENCODING), nl=False)
    elif printed and not check:
        typer.echo(sheet.after.encode(*ENCODING), nl=False)
    elif sheet.changed:
        typer.echo(f"{'would format' if check else 'formatted'} {sheet.name}")


def _difference(sheet: _Sheet) -> str:
    """Return the unified diff; an empty text if the file would not change."""
    before, after = (list(io.StringIO(text, newline="\n")) for text in (sheet.before, sheet.after))
    lines = difflib.unified_diff(before, after, sheet.name, sheet.name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _described(sheet: _Sheet, stdout: bool, diff: bool) -> dict[str, Any]:
    """Return the result of `fmt` for one file as JSON fields."""
    described: dict[str, Any] = {"path": sheet.name, "changed": sheet.changed, "error": _readable(sheet.error)}
    if stdout or sheet.name == STANDARD_INPUT:
        described["text"] = _readable(sheet.after)
    if diff:
        described["diff"] = sheet.after and _readable(_difference(sheet))
    return described


def _readable(text: str | None) -> str | None:
    """Replace bytes that are not UTF-8, since JSON cannot contain them."""
    return text and text.encode(*ENCODING).decode("utf-8", "replace")


def _summary(sheets: Sequence[_Sheet], check: bool) -> str:
    """Return a text with the numbers of files that were changed, unchanged, and not formatted."""
    changed, failed = sum(sheet.changed for sheet in sheets), sum(sheet.error is not None for sheet in sheets)
    counts = [
        (changed, "would change" if check else "formatted"),
        (len(sheets) - changed - failed, "already formatted"),
        (failed, "not formatted"),
    ]
    return ", ".join(f"{number} {what}" for number, what in counts if number)
