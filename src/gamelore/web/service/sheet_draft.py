"""Rulesheets while they are written: their texts, which are kept on disk, and the checks and reports of these texts.

A draft lives in the process of the pages, and knows no rules: child processes check its text, see `sheet_worker`. Any
number of pages show a draft, and one of them at a time may change it. Checks and reports go on while a page shows it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from ...errors import GameloreError, counted
from ...files import write_whole
from ...net.pool import WorkerDied, WorkerProcess, WorkerSettings
from .rule_processes import ProcessLimits, RuleProcesses
from .sheet_library import ListedSheet, SheetLibrary, check_name, own_key
from .watchers import Watchers

MODULE = "gamelore.web.children.sheet_worker"
MOST_TEXT = 600_000  # characters of a text that is written on a page, which sends it as one message
PAUSE, PLAY_PAUSE = 0.1, 1.5  # seconds without a change until the text is checked, and then until the game is played
PLAY_SECONDS, LOAD_SECONDS = 3.0, 5.0  # for playing and loading after a pause
LONG_SECONDS, LONG_LOAD_SECONDS = 15.0, 20.0  # the same after a click
BUSY_MACHINE = 5.0  # factor from such a time to the limit of elapsed time
CHECK_SECONDS = 60.0  # limit of elapsed time for a check of the text
PATIENCE = 0.5  # seconds that a check of the text still has when there is a newer text
IDLE_SECONDS = 60.0  # for which an idle process is kept
PROGRESS_SECONDS = 0.4
MOST_KEPT, MOST_OPEN = 500, 100  # drafts on disk and in memory
NEW = "new/"  # begin of the keys of texts that are no sheet yet
NEW_NAME = "mygame"
TEMPLATE = Path(__file__).with_name("new_sheet.kif")

log = logging.getLogger(__name__)
Finding: TypeAlias = Mapping[str, Any]
"""A finding as `SheetWorker` returns it."""


class CheckProcesses:
    """Child processes that check texts, a few for all drafts; who finds none free waits.

    Args:
        limits: memory and processor time of each
        most: number of processes at a time
    """

    def __init__(self, limits: ProcessLimits, most: int) -> None:
        self._settings = WorkerSettings(player="", memory=limits.memory, prepare_seconds=limits.seconds, module=MODULE)
        self._free = asyncio.Semaphore(most)
        self._idle: dict[WorkerProcess, asyncio.TimerHandle] = {}  # with the end of each
        self._used: set[WorkerProcess] = set()

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> Any:
        """Return the answer of a free process, which is killed if nobody waits for it any more."""
        async with self._taken() as process:
            return await process.ask(do, time_limit, **given)

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(process.close(learns=False) for process in (*self._idle, *self._used)))

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[WorkerProcess]:
        async with self._free:
            process = self._idle_process() or WorkerProcess(self._settings)
            self._used.add(process)
            try:
                yield process
            finally:
                self._used.discard(process)
                self._give_back(process)

    def _idle_process(self) -> WorkerProcess | None:
        """Return the process that was used last, which does not end for now."""
        while self._idle:
            process, ending = self._idle.popitem()
            ending.cancel()
            if process.is_alive:
                return process
        return None

    def _give_back(self, process: WorkerProcess) -> None:
        if not process.is_idle:
            process.kill("the check was stopped")
        elif process.is_alive:
            self._idle[process] = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end, process)

    def _end(self, process: WorkerProcess) -> None:
        del self._idle[process]
        process.end()


@dataclass(frozen=True)
class DraftServices:
    """What drafts use: processes for short checks of the text, for checks by play, and for reports."""

    reading: CheckProcesses
    playing: CheckProcesses
    jobs: RuleProcesses


class ReportJob:
    """The inventor's report on a text, made in a process of its own.

    Attributes:
        text: the text
        stage: what it does now, in words
        share: share of the stage that is done, 0 to 1; None if unknown
        report: what `SheetWorker.report_progress` returns in the end; None until then
        error: why there is no report; empty if it goes on, or is made
        earlier: the report before it, which is shown until this one is made; None if there is none
    """

    def __init__(
        self, text: str, name: str, matches: int, simulations: int, earlier: Mapping[str, Any] | None = None
    ) -> None:
        self.text, self.name, self.earlier = text, name, earlier
        self.stage = "starting a process"
        self.share: float | None = None
        self.report: Mapping[str, Any] | None = None
        self.error = ""
        self._numbers = {"matches": matches, "simulations": simulations}
        self._task: asyncio.Task[None] | None = None

    @property
    def shown(self) -> Mapping[str, Any] | None:
        """The report, or the one before it."""
        return self.report or self.earlier

    @property
    def is_running(self) -> bool:
        """Whether the report is being made."""
        return self._task is not None and self.report is None and not self.error

    def begin(self, jobs: RuleProcesses, tell: Callable[[], None]) -> None:
        """Begin; call a function after each change."""
        self._task = asyncio.get_running_loop().create_task(self._run(jobs, tell))

    def stop(self) -> None:
        """End the process."""
        if self._task is not None and self.is_running:
            self.error = "the report was stopped"
            self._task.cancel()

    async def _run(self, jobs: RuleProcesses, tell: Callable[[], None]) -> None:
        try:
            async with jobs.job(MODULE) as process:
                await process.ask("begin_report", CHECK_SECONDS, text=self.text, name=self.name, **self._numbers)
                while await self._goes_on(process):
                    tell()
                    await asyncio.sleep(PROGRESS_SECONDS)
        except GameloreError as error:
            self.error = str(error)
        tell()

    async def _goes_on(self, process: WorkerProcess) -> bool:
        """Ask how far the report is; return False if it has ended."""
        progress = await process.ask("report_progress", CHECK_SECONDS)
        outcome, total = progress["outcome"], progress["total"]
        self.stage, self.share = progress["stage"], progress["done"] / total if total else None
        if outcome is None:
            return True
        self.report, self.error = outcome.get("ok"), outcome.get("message", "")
        if outcome.get("line"):
            self.error = f"line {outcome['line']}, column {outcome['column']}: {self.error}"
        return False


class DraftPage(Protocol):
    """A page that shows a draft."""

    @property
    def is_connected(self) -> bool:
        """Whether a browser shows it."""
        ...

    def show_draft(self) -> None:
        """Show what has changed."""
        ...


Stage: TypeAlias = Literal["waiting", "text", "play", "checked"]


@dataclass(eq=False)
class Draft:
    """A text with its checks, see the module.

    Attributes:
        key: key of the sheet, or NEW with an id
        name: name of the game
        saved: the text of the sheet on disk; None if there is none yet
        text: the present text
        services: the child processes
        file: where an unsaved text is kept
        revision: number of changes
        stage: what is checked now
        findings: what is wrong, in the order of the text
        findings_revision: the revision of the text with these findings
        played: what play has shown, as lines of text; empty if the game was not played
        report: the last report
        pen: the page that may change the text
        gone: why the text is not kept here any more; empty if it is
    """

    key: str
    name: str
    saved: str | None
    text: str
    services: DraftServices
    file: Path
    revision: int = 0
    stage: Stage = "waiting"
    findings: Sequence[Finding] = ()
    findings_revision: int = -1
    played: str = ""
    report: ReportJob | None = None
    pen: DraftPage | None = None
    gone: str = ""
    _newer: asyncio.Event = field(default_factory=asyncio.Event)
    _checking: asyncio.Task[None] | None = None
    _is_long: bool = False  # whether the next check by play is one after a click

    def __post_init__(self) -> None:
        self._pages: Watchers[DraftPage] = Watchers(self.stop)

    @property
    def is_changed(self) -> bool:
        """Whether the text is not that of the sheet on disk."""
        return self.text != self.saved

    @property
    def is_watched(self) -> bool:
        """Whether a page shows the draft."""
        return bool(self._pages)

    # ---- pages --------------------------------------------------------------------------------------------------

    def watch(self, page: DraftPage) -> Callable[[], None]:
        """Tell a page about each change, until the returned function is called.

        The page may change the text, unless another page does so in a browser. Checks and reports end GRACE after the
        last page has left.
        """
        leave = self._pages.add(page)
        if self.pen is None or not self.pen.is_connected:
            self.pen = page
        if self.stage != "checked":
            self._begin_check()
        return partial(self._leave, page, leave)

    def _leave(self, page: DraftPage, leave: Callable[[], None]) -> None:
        leave()
        if self.pen is page:
            self.pen = next((other for other in self._pages if other.is_connected), None)
        self.tell()

    def take_pen(self, page: DraftPage) -> None:
        """Let a page change the text, and no other page."""
        self.pen = page
        self.tell()

    def stop(self) -> None:
        """End the checks and the report."""
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None
        if self.report is not None:
            self.report.stop()

    def tell(self) -> None:
        """Let all pages show what has changed."""
        self._pages.tell(lambda page: page.show_draft())

    # ---- the text -----------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Change the text, keep it, and check it. Raise GameloreError if it is too long, or the draft is gone."""
        text = plain(checked_length(text))
        if text == self.text:
            return
        self.check_kept()
        self.text = text
        self.revision += 1
        self.keep()
        self._is_long = False
        self._begin_check()
        self.tell()

    def drop(self, why: str) -> None:
        """Keep the text no more, end the checks, and tell the pages why."""
        self.gone = why
        self.stop()
        self.keep()
        self.tell()

    def check_kept(self) -> None:
        """Raise GameloreError if the draft is gone."""
        if self.gone:
            raise GameloreError(
                f"expected a text that is kept here, got one that is not: {self.gone}; download it, and open the file "
                "to go on with it"
            )

    def keep(self) -> None:
        """Write the text to its file; remove the file if the text is that of the sheet, or the draft is gone."""
        kept = {"key": self.key, "name": self.name, "text": self.text}
        try:
            if self.is_changed and not self.gone:
                write_whole(self.file, json.dumps(kept))
            else:
                self.file.unlink(missing_ok=True)
        except OSError as error:  # the text stays in memory
            log.warning("a draft could not be kept: %s", error)

    # ---- checks -------------------------------------------------------------------------------------------------

    def check_longer(self) -> None:
        """Check by play, for a longer time."""
        self._is_long = True
        self._begin_check()

    @property
    def verdict(self) -> str:
        """What the checks say, in a line."""
        if self.gone:
            return ""
        if self.stage == "waiting" or self.findings_revision != self.revision:
            return "Checking the text .."
        severities = [finding["severity"] for finding in self.findings]
        numbers = [counted(severities.count(kind), kind) for kind in ("error", "warning") if severities.count(kind)]
        words = " and ".join(numbers) or "Nothing is wrong"
        return f"{words}{_STAGES[self.stage]}"

    def _begin_check(self) -> None:
        """Check the text, unless the draft is gone; a check of an older text ends."""
        if self.gone:
            return
        self.stage = "waiting"
        self._newer.set()
        if self._checking is None or self._checking.done():
            self._checking = asyncio.get_running_loop().create_task(self._check())

    async def _check(self) -> None:
        """Check the text until nothing is left to check."""
        try:
            while self.stage != "checked":
                self._newer.clear()
                if not await self._is_newer_within(PAUSE):
                    await self._check_once()
                self.tell()
        except Exception as error:
            if not isinstance(error, GameloreError):
                log.exception("a check failed")
            self._show([*(self.findings if self.findings_revision == self.revision else ()), _ended(error)])
            self.stage = "checked"
        self.tell()

    async def _check_once(self) -> None:
        """Check the text without and with play; stop when there is a newer one."""
        self.stage = "text"
        seen = await self._answer(self.services.reading.ask("check", CHECK_SECONDS, text=self.text), PATIENCE)
        if seen is None:
            return
        self.played = ""
        self._show(seen["findings"])
        is_long = self._is_long
        if seen["is_playable"]:
            self.stage = "play"
            self.tell()
            if not is_long and await self._is_newer_within(PLAY_PAUSE):
                return
            played = await self._answer(self._play(*(_LONG if is_long else _SHORT)))
            if played is None:
                return
            self.played = played["played"]
            self._show(played["findings"])
        if not self._newer.is_set():
            self.stage, self._is_long = "checked", False

    def _play(self, seconds: float, load_seconds: float) -> Coroutine[Any, Any, Any]:
        limit = BUSY_MACHINE * (seconds + load_seconds)
        given = {"text": self.text, "name": self.name, "seconds": seconds, "load_seconds": load_seconds}
        return self.services.playing.ask("check_by_play", limit, **given)

    def _show(self, findings: Sequence[Finding]) -> None:
        self.findings, self.findings_revision = findings, self.revision

    async def _is_newer_within(self, seconds: float) -> bool:
        """Wait for some seconds; return True as soon as there is a newer text."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._newer.wait(), seconds)
        return self._newer.is_set()

    async def _answer(self, asked: Coroutine[Any, Any, Any], patience: float = 0.0) -> Any:
        """Return an answer about the text; None as soon as there is a newer text, after some seconds of patience."""
        asking = asyncio.ensure_future(asked)
        newer = asyncio.ensure_future(self._newer.wait())
        try:
            await asyncio.wait({asking, newer}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({asking}, timeout=patience)
            return asking.result() if asking.done() and not self._newer.is_set() else None
        finally:
            newer.cancel()
            asking.cancel()
            await asyncio.gather(asking, newer, return_exceptions=True)

    async def format(self) -> str:
        """Return the text in canonical layout. Raise GDLSyntaxError if it is not a rulesheet."""
        text: str = await self.services.reading.ask("format", CHECK_SECONDS, text=self.text)
        return text

    async def series(self, moves: Sequence[Sequence[str]]) -> list[dict[str, str]]:
        """Return pictures of the positions that moves lead to, see `SheetWorker.series`."""
        limit = BUSY_MACHINE * LONG_LOAD_SECONDS
        given = {"text": self.text, "name": self.name, "moves": moves}
        pictures: list[dict[str, str]] = await self.services.playing.ask("series", limit, **given)
        return pictures

    def begin_report(self, matches: int, simulations: int) -> None:
        """Begin a report on the present text; a report that goes on ends."""
        if self.report is not None:
            self.report.stop()
        earlier = self.report.shown if self.report else None
        self.report = ReportJob(self.text, self.name, matches, simulations, earlier)
        self.report.begin(self.services.jobs, self.tell)
        self.tell()


_SHORT, _LONG = (PLAY_SECONDS, LOAD_SECONDS), (LONG_SECONDS, LONG_LOAD_SECONDS)
_DELETED = "it was deleted in another tab"
_STAGES = {"text": " in the text", "play": " in the text; looking for more by play ..", "checked": ""}


def _ended(error: Exception) -> Finding:
    """Return a check that has not ended well as a finding."""
    remedy = "write smaller rules: fewer variables in a rule, and smaller sets of values for them"
    why = "the check was too much for its process, which was ended" if isinstance(error, WorkerDied) else "no check"
    place = {"line": 1, "column": 1, "rule": "", "witness": None, "num_moves": None}
    return {"severity": "error", "code": "too-large", "message": f"{why}: {error}", "remedy": remedy, **place}


# ---- all drafts ----


@dataclass(frozen=True, slots=True)
class KeptDraft:
    """An unsaved text on disk, in a line: its key, its name, and the time of its last change."""

    key: str
    name: str
    changed: float


class Drafts:
    """The drafts in a folder, and those that are open.

    Args:
        folder: folder of the files
        library: the sheets
        services: the child processes
    """

    def __init__(self, folder: Path, library: SheetLibrary, services: DraftServices) -> None:
        self._folder, self._library, self._services = folder, library, services
        self._open: dict[str, Draft] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for kept in self.kept()[MOST_KEPT:]:
            self._file(kept.key).unlink(missing_ok=True)

    def open(self, key: str) -> Draft:
        """Return the draft of a sheet, with its unsaved text if there is one.

        Raises:
            GameloreError: there is neither a sheet nor an unsaved text, or the text is too long to be edited here.
        """
        if key in self._open:
            return self._open[key]
        kept = self._read(self._file(key))
        if kept is None and key.startswith(NEW):
            raise GameloreError(
                "expected the address of a text that is kept here, got another one; a new text is kept from its first "
                "change until it is saved or deleted"
            )
        saved, name = (None, str(kept["name"])) if kept and not self._is_sheet(key) else self._saved(key)
        return self._added(key, name, saved, str(kept["text"]) if kept else saved or "")

    def new(self, name: str = NEW_NAME, text: str | None = None) -> Draft:
        """Return a draft that is no sheet yet, with a small game if no text is given. Raise GameloreError as `open`."""
        key = f"{NEW}{secrets.token_urlsafe(6)}"
        if text is None:
            return self._added(key, name, None, TEMPLATE.read_text(encoding="utf-8"))
        draft = self._added(key, name, None, plain(checked_length(text)))
        draft.keep()
        return draft

    def save(self, draft: Draft, name: str) -> ListedSheet:
        """Keep the text of a draft as a sheet.

        Raises:
            GameloreError: the name is no file name, another draft has an unsaved text of this sheet, or the draft is
                gone.
        """
        draft.check_kept()
        check_name(name)
        key = own_key(name)
        if key != draft.key and self._is_unsaved(key):
            raise GameloreError(
                f"expected a name without unsaved changes, got {name}, which has some; save them or give them up on "
                "its own page, or choose another name"
            )
        sheet = self._library.save(name, draft.text)
        if sheet.key != draft.key:
            text = draft.text
            self._give_up(draft, f"it was saved as {name} in another tab")
            draft = self.open(sheet.key)
            draft.write(text)
        draft.saved = draft.text
        draft.keep()
        draft.tell()
        return sheet

    def discard(self, draft: Draft) -> None:
        """Give up the unsaved text of a draft; a draft that is no sheet is closed."""
        self._give_up(draft, _DELETED)

    def delete(self, key: str) -> None:
        """Delete a sheet that was written here, and its unsaved text. Raise GameloreError for any other sheet."""
        self._library.delete(key)
        if draft := self._open.pop(key, None):
            draft.drop(_DELETED)
        self._file(key).unlink(missing_ok=True)

    def kept(self) -> list[KeptDraft]:
        """Return the unsaved texts on disk, the last one first."""
        kept = []
        for file in self._folder.glob("*.json"):
            if draft := self._read(file):
                with suppress(OSError):
                    kept.append(KeptDraft(str(draft["key"]), str(draft["name"]), file.stat().st_mtime))
        return sorted(kept, key=lambda draft: -draft.changed)

    def _give_up(self, draft: Draft, why: str) -> None:
        """Go back to the saved text of a draft; if there is none, drop the draft for a reason."""
        if draft.saved is not None:
            draft.write(draft.saved)
        elif not draft.gone:
            self._open.pop(draft.key, None)
            draft.drop(why)

    def _is_unsaved(self, key: str) -> bool:
        """Return whether a draft of a sheet, open or on disk, has another text than the sheet."""
        draft = self._open.get(key)
        return draft.is_changed if draft is not None else self._read(self._file(key)) is not None

    def _added(self, key: str, name: str, saved: str | None, text: str) -> Draft:
        draft = self._open[key] = Draft(key, name, saved, text, self._services, self._file(key))
        for other in [other for other in self._open.values() if other is not draft and not other.is_watched]:
            if len(self._open) > MOST_OPEN:
                other.stop()
                del self._open[other.key]
        return draft

    def _is_sheet(self, key: str) -> bool:
        return any(sheet.key == key for sheet in self._library.sheets())

    def _saved(self, key: str) -> tuple[str, str]:
        """Return the text and the name of a sheet."""
        return plain(checked_length(self._library.text(key))), self._library.sheet(key).name

    def _file(self, key: str) -> Path:
        return self._folder / f"{sha256(key.encode('utf-8', 'replace')).hexdigest()[:32]}.json"

    def _read(self, file: Path) -> dict[str, Any] | None:
        """Return what a file has kept; None if there is no such file, or another one."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            plain(checked_length(kept["text"]))
            return kept if self._file(kept["key"]) == file and kept["name"] else None
        return None


def plain(text: str) -> str:
    """Return a text as the editor has it: lines end with a line feed, and nothing is left that UTF-8 cannot write."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode("utf-8")


def checked_length(text: str) -> str:
    """Return a text. Raise GameloreError if it is too long to be edited."""
    if len(text) > MOST_TEXT:
        raise GameloreError(
            f"expected a text of at most {MOST_TEXT:,} characters, got {len(text):,}; edit it in another program, and "
            "check it with `gamelore check`"
        )
    return text
