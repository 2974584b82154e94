"""Rulesheets without a player: the shipped ones (`list_games`), mistakes (`check`), and symmetries (`symmetries`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..errors import GameloreError, check_seed, check_word, counted, shortened
from ..game.game import EngineName, Game
from ..gdl.limits import Limits
from ..gdl.syntax import parse
from ..rulesheets import Option, loaded, names, options, path, sheet_or_text

if TYPE_CHECKING:
    from ..analysis.playcheck import CheckedSheet, PlayReport
    from ..analysis.symmetry import Symmetries
    from ..gdl.lint import Finding


@dataclass(frozen=True)
class ListedGame:
    """A shipped game.

    Attributes:
        name: its name for `load`.
        roles: its roles, in their order.
        about: the game in a line.
        options: its options, each with `name`, `value` (the default) and `choices` (the allowed values; if there are
            none, any word), all of them texts; write "game:option=value".
        path: its rulesheet.
    """

    name: str
    roles: tuple[str, ...]
    about: str
    options: tuple[Option, ...]
    path: Path


def list_games() -> list[ListedGame]:
    """Return the shipped games, in alphabetical order."""
    return [_listed(path(name)) for name in names()]


def _listed(file: Path) -> ListedGame:
    """Return a rulesheet as a shipped game; its first line is a comment that tells what it is."""
    text = file.read_text(encoding="utf-8")
    rules = parse(text, file).rules
    roles = tuple(str(rule.head.args[0]) for rule in rules if rule.head.name == "role")
    return ListedGame(file.stem, roles, text.splitlines()[0].lstrip("; "), tuple(options(rules).values()), file)


class Checked:
    """A checked rulesheet. `print` shows the findings, and what play has shown.

    Attributes:
        game: the name of the game, with the chosen options.
        path: the file; None for GDL text.
        findings: what is wrong, in the order of the text; each has `severity` ("error" or "warning"), `code`,
            `message`, `line`, `column`, `rule`, `remedy`, and the moves that lead to it, if play has found it.
        played: statistics of play; None if the sheet was not played.
        not_played: why it was not played.
        interrupted: whether Ctrl-C ended the check.
        title: the path, or the name of the game, with the chosen options.
    """

    def __init__(self, sheet: CheckedSheet) -> None:
        self.game = sheet.game
        self.path = sheet.path
        self.findings = tuple(sheet.findings)
        self.played = sheet.report
        self.not_played = sheet.not_played
        self.interrupted = sheet.interrupted
        self.title = sheet.title

    @property
    def errors(self) -> list[Finding]:
        """The findings that are errors."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that are warnings."""
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each finding."""
        return list(map(asdict, self.findings))

    def __repr__(self) -> str:
        counts = f"{counted(len(self.errors), 'error')}, {counted(len(self.warnings), 'warning')}"
        return f"<Checked {self.title}: {counts}>"

    def __str__(self) -> str:
        lines = list(map(str, self.findings))
        if self.played:
            lines.append("\n  ".join([f"{self.title}: {_engine(self.played)}", *_figures(self.played)]))
        elif self.not_played:
            lines.append(f"{self.title}: not played, because {self.not_played}")
        return "\n".join(lines or [f"{self.title}: nothing is wrong"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def check(
    source: Game | str | Path,
    *,
    play: bool = False,
    seconds: float | None = None,
    matches: int | None = None,
    max_steps: int | None = None,
    max_states: int | None = None,
    seed: int = 0,
    engine: EngineName = "auto",
    limits: Limits | None = None,
) -> Checked:
    """Find mistakes in a rulesheet, each with its line, column, rule and remedy.

    Args:
        source: a game, a shipped name, a path or GDL text.
        play: whether the game is also played, to find mistakes that the text does not show. The states nearest to the
            first one are visited; if these are not all states, random matches are played, too.
        seconds: time of play; 5 if it is None, no limit if a number of matches is given.
        matches: number of random matches.
        max_steps: number of moves after which a match is stopped; 1,000 if it is None.
        max_states: number of states up to which all are visited; 10,000 if it is None, or 300 on the reasoner.
        seed: seed of the random matches.
        engine: see `load`.
        limits: limits of the check of the text and of loading.

    Returns:
        The findings. Ctrl-C ends the check, and keeps the findings until then.

    Raises:
        GameloreError: there is no such game or option, or an option of play is given without `play`.
        OSError: the file cannot be read.
    """
    from ..analysis.explore import Effort
    from ..analysis.playcheck import check_sheet

    options = {"seconds": seconds, "matches": matches, "max_steps": max_steps, "max_states": max_states}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if given and not play:
        raise GameloreError(f"expected play=True together with {', '.join(given)}; add it")
    check_seed(seed)
    unlimited = {} if matches is None else {"seconds": None}
    effort = Effort(**unlimited | given, seed=seed) if play else None
    check_word("engine", engine, get_args(EngineName))
    named = (None, source.rulesheet.text, source.name) if isinstance(source, Game) else sheet_or_text(source)
    return Checked(check_sheet(*named, effort, engine, limits))


def symmetries(game: Game | str | Path) -> Symmetries:
    """Return the symmetries of a game that keep its roles, goals and first state.

    Args:
        game: a game, or what `load` takes.

    Returns:
        A group of permutations of facts and moves. `why` tells why some may be missing, and is empty otherwise.
    """
    from ..analysis.symmetry import symmetries as symmetries_of

    return symmetries_of(loaded(game))


def _engine(report: PlayReport) -> str:
    """Describe the engine, the reason for it, and the size of the game."""
    if report.size:
        numbers = zip(report.size, ("fact", "action", "gate"), strict=True)
        size = ", ".join(counted(number, what) for number, what in numbers)
        how = f"native engine; {report.reason}\n  made" if report.reason else "native engine, made"
        return f"{how} in {report.make_seconds:.1f} s: {size}"
    return f"{report.engine} engine: {report.reason}"


def _figures(report: PlayReport) -> list[str]:
    """Return lines of text about the visited states and the played matches."""
    states = f"all {report.num_states} reachable states" if report.all_states else counted(report.num_states, "state")
    matches = counted(report.num_matches, "random match", "random matches")
    lines = [f"visited {states}, played {matches}{_ends(report)}"]
    if report.mean_length is not None:
        means = (
            f"{role} {'none' if goal is None else format(goal, '.1f')}" for role, goal in report.mean_goals.items()
        )
        lines.append(f"on average {report.mean_length:.1f} moves; goals {shortened(', '.join(means))}")
    if report.longest_match is not None:
        lines.append(f"every match ends within {counted(report.longest_match, 'move')}")
    return lines + report.remarks


def _ends(report: PlayReport) -> str:
    """Return a text with the number of matches that did not end in a terminal state, by reason."""
    unfinished = report.num_matches - report.num_ended - report.num_stuck - report.num_cut
    ends = {"stuck": report.num_stuck, "stopped as too long": report.num_cut, "unfinished when time was up": unfinished}
    counts = ", ".join(f"{count} {end}" for end, count in ends.items() if count)
    return f" ({counts})" if counts else ""
