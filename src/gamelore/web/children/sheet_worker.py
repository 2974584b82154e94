"""The child process behind the page "Rulesheets": it checks, formats and examines the texts that people write.

Such a text may be made to explode, so every request has limits of its own. What exceeds them is told as a finding, or
costs this process, which the page replaces.

A report takes minutes. A thread makes it, so that the page can ask how far it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...analysis.explore import Effort
from ...analysis.playcheck import NOT_PLAYED, check_sheet
from ...api.rules import Checked
from ...drawing.board import Boards
from ...drawing.position import state_svg
from ...drawing.thought import move_marks
from ...errors import counted, shortened
from ...game.compile import rulesheet_findings
from ...game.game import Game, Position, make
from ...gdl.limits import GIB, Limits
from ...gdl.lint import Finding
from ...gdl.syntax import formatted, parse
from ...net.requests import answer_requests, limits_within, processor_time
from .long_job import Computation

if TYPE_CHECKING:
    from ...api.inventor import GameReport

CHECK_LIMITS = Limits(seconds=4.0, memory=GIB // 2)  # of a check of the text, which follows every change
PLAY_LIMITS = Limits(seconds=20.0, literals=4_000_000, memory=GIB)  # of loading a game, at most
OVERTIME = 10.0  # seconds of processor time after which a process is killed that does not heed its limits
MOST_WITNESS = 20_000  # moves that lead to findings, in an answer
MOST_BOARDS = 8  # pictures of a series
MOST_DEAD_RULES = 20
_TOO_LARGE = (
    "expected a report that fits into the memory of its process, got a larger one; choose fewer matches or simulations"
)
PLAYERS = {"random": "random players", "uct": "UCT players", "perfect": "best play"}


class SheetWorker:
    """The requests of the page. Texts of rules are arguments, and results are values that JSON can hold.

    memory           bytes for the process
    prepare_seconds  processor time to load the game of a report
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds)
        self._examination: _Examination | None = None

    def idle(self) -> bool:
        """Do nothing between requests: the thread of a report works by itself."""
        return False

    def check(self, text: str) -> dict[str, Any]:
        """Find mistakes in a text without playing it.

        Returns:
            `findings` (see `_rows`), and `is_playable`: whether the game can be played to find more.
        """
        with processor_time(CHECK_LIMITS.seconds + OVERTIME):
            findings = rulesheet_findings(text, None, CHECK_LIMITS)
        errors = {finding.code for finding in findings if finding.severity == "error"}
        return {"findings": _rows(findings), "is_playable": errors.isdisjoint(NOT_PLAYED | {"too-large"})}

    def check_by_play(self, text: str, name: str, seconds: float, load_seconds: float) -> dict[str, Any]:
        """Find mistakes in a text, and play the game for some seconds to find more.

        Args:
            text: the rules
            name: name of the game
            seconds: time of play
            load_seconds: processor time to load the game, less than that of PLAY_LIMITS

        Returns:
            `findings` (see `_rows`), and `played`: lines about the positions and matches that were played, or why the
            game was not played.
        """
        limits = replace(PLAY_LIMITS, seconds=min(load_seconds, PLAY_LIMITS.seconds))
        with processor_time(limits.seconds + seconds + 2 * OVERTIME):
            sheet = check_sheet(None, text, name, Effort(seconds=seconds, memory=limits.memory), "auto", limits)
        return {"findings": _rows(sheet.findings), "played": str(Checked(replace(sheet, findings=[])))}

    def format(self, text: str) -> str:
        """Return a text in canonical layout. Raise GDLSyntaxError if it is not a rulesheet."""
        with processor_time(CHECK_LIMITS.seconds + OVERTIME):
            return formatted(text)

    def series(self, text: str, name: str, moves: Sequence[Sequence[str]]) -> list[dict[str, str]]:
        """Draw the positions on the way of some joint moves: the first one, and the last ones.

        Returns:
            for each drawn position its `svg`, and a `caption`: the joint move that led to it.

        Raises:
            GameloreError: the game cannot be loaded, or a move is not legal.
        """
        with processor_time(PLAY_LIMITS.seconds + OVERTIME):
            game = make(parse(text), name, "auto", PLAY_LIMITS)
            return list(_series(game, list(_positions(game, moves)), moves))

    def begin_report(self, text: str, name: str, matches: int, simulations: int) -> None:
        """Begin the inventor's report of a game, see `api.inventor.report`. Errors come with `report_progress`."""
        self._examination = _Examination(text, name, matches, simulations, self._limits)
        self._examination.begin()

    def report_progress(self) -> dict[str, Any]:
        """Return how far the report is.

        Returns:
            `stage` in words, `done` and `total` of its steps (0 if they are not counted), and `outcome`: None, then
            {"ok": report}, see `_report`, or an error as `net.requests.answer` returns it.
        """
        assert self._examination is not None
        return self._examination.as_json()


class _Examination(Computation):
    """A report that a thread makes."""

    def __init__(self, text: str, name: str, matches: int, simulations: int, limits: Limits) -> None:
        self._stage, self._done, self._total = "loading the game", 0, 0
        examined = partial(self._examined, text, name, limits, matches=matches, simulations=simulations)
        super().__init__(examined, "report", _TOO_LARGE)

    def as_json(self) -> dict[str, Any]:
        return {"stage": self._stage, "done": self._done, "total": self._total, "outcome": self.outcome}

    def _examined(self, text: str, name: str, limits: Limits, **numbers: int) -> dict[str, Any]:
        from ...api.inventor import report  # imports numba

        game = make(parse(text), name, limits=limits)
        self._tell("looking for mistakes by play", 0, 0)
        told = report(game, **numbers, limits=limits, progress=self._tell)
        self._tell("drawing the report", 0, 0)
        return _report(told)

    def _tell(self, stage: str, done: int, total: int) -> None:
        self._stage, self._done, self._total = stage, done, total


# ---- findings ----


def _rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as dictionaries with the fields of `Finding`.

    `witness` is left out where it is long, beyond MOST_WITNESS moves in all findings; `num_moves` tells its length.
    """
    rows, room = [], MOST_WITNESS
    for finding in findings:
        row = asdict(finding)
        del row["path"]
        row["num_moves"] = None if finding.witness is None else len(finding.witness)
        room -= row["num_moves"] or 0
        if room < 0:
            row["witness"] = None
            room += row["num_moves"] or 0
        rows.append(row)
    return rows


def _positions(game: Game, moves: Iterable[Sequence[str]]) -> Iterator[Position]:
    """Yield the first position, and that after each joint move."""
    position = game.start()
    yield position
    for joint in moves:
        position = position.play(joint)
        yield position


def _series(game: Game, positions: Sequence[Position], moves: Sequence[Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yield the picture and the caption of each position that is shown."""
    boards = Boards.of(game)
    for ply in (0, *range(max(1, len(positions) - MOST_BOARDS + 1), len(positions))):
        marks = list(move_marks(boards, positions[ply - 1], positions[ply], moves[ply - 1])) if ply else []
        svg = state_svg(boards, positions[ply].facts, game.roles, marks)
        yield {"svg": svg, "caption": _caption(ply, game.roles, moves[ply - 1]) if ply else "start"}


def _caption(ply: int, roles: Sequence[str], joint: Sequence[str]) -> str:
    return f"{ply}. {', '.join(f'{role} {move}' for role, move in zip(roles, joint, strict=True))}"


# ---- reports ----


def _report(report: GameReport) -> dict[str, Any]:
    """Return a report for the page.

    Returns:
        `headline`, `columns` and `rows` (a table of the results, as texts), `notes` (pairs of a title and a text),
        `dead_rules` (texts), `figure` and `start` (pictures as SVG), and `html`, the report as a page.
    """
    from ...lab.figures import svg_text

    start = report.matches["random"].game.start()
    roles = list(report.matches["random"].game.roles)
    with TemporaryDirectory() as folder:
        report.save(page := Path(folder) / "report.html")
        html = page.read_text(encoding="utf-8")
    return {
        "headline": report.headline,
        "columns": ["players", "matches", *(f"goal of {role}" for role in roles), "draws", "a role gets 100", "plies"],
        "rows": [[_cell(text) for text in _results(report, row, roles)] for row in report.rows],
        "notes": list(_notes(report)),
        "dead_rules": [shortened(rule) for rule in report.dead_rules[:MOST_DEAD_RULES]],
        "figure": svg_text(report.plot()),
        "start": state_svg(Boards.of(start.game), start.facts, roles),
        "html": html,
    }


def _results(report: GameReport, row: dict[str, Any], roles: Sequence[str]) -> Iterator[object]:
    """Yield the cells of a row of the table of results."""
    yield PLAYERS.get(row["players"], row["players"])
    yield row["matches"]
    for role in roles:
        goal, interval = row[f"goal_{role}"], row.get(f"interval_{role}")
        yield goal if interval is None else f"{goal:.1f} [{interval[0]:.1f}, {interval[1]:.1f}]"
    for share in ("draws", "decisive"):
        yield f"{row[share]:.0%}" if share in row else None
    yield row["plies"]


def _cell(content: object) -> str:
    """Return the text of a cell; a dash if there is nothing to tell."""
    if content is None or (isinstance(content, float) and isnan(content)):
        return "-"
    return f"{content:.1f}" if isinstance(content, float) else str(content)


def _notes(report: GameReport) -> Iterator[tuple[str, str]]:
    """Yield titles with texts: what the table does not tell."""
    if report.solved is None:
        yield "Solved", f"no: {report.not_solved}"
    else:
        values = ", ".join(f"{role} {value}" for role, value in report.solved.values.items())
        plies = "" if report.solved.plies is None else f" after {counted(report.solved.plies, 'ply', 'plies')}"
        yield "Solved", f"yes: best play ends with {values}{plies}; {report.solved.num_positions:,} positions"
    most = report.choices.max(initial=0)
    yield "Choices", f"{report.mean_choices:.1f} moves on average for a role that chooses, at most {most:.1f} in a ply"
    ended = min(matches.ends.get("terminal", 0) / len(matches) for matches in report.matches.values())
    yield "Ends", "every match ended" if ended == 1 else f"only {ended:.0%} of the matches ended by the rules"
    errors, warnings = len(report.checked.errors), len(report.checked.warnings)
    yield "Mistakes", f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    number, sample = len(report.dead_rules), f"in {report.num_sampled:,} positions of these matches"
    more = f"; the first {MOST_DEAD_RULES} are" if number > MOST_DEAD_RULES else ":"
    dead = f"{counted(number, 'rule')} never fired {sample}{more}" if number else f"none; each rule fired {sample}"
    yield "Rules without effect", dead


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(SheetWorker)


if __name__ == "__main__":
    main()
