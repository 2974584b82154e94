"""The page Rulesheets: drafts that are never lost, checks that give way to newer texts, and the editor in a browser."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gamelore import rulesheets
from gamelore.errors import GameloreError
from gamelore.net.pool import WorkerDied
from gamelore.web.service import sheet_draft, watchers
from gamelore.web.service.rule_processes import ProcessLimits
from gamelore.web.service.sheet_draft import MOST_TEXT, TEMPLATE, CheckProcesses, Draft, Drafts, DraftServices
from gamelore.web.service.sheet_library import SheetLibrary

TEXT = TEMPLATE.read_text(encoding="utf-8")
ERROR = {"severity": "error", "code": "missing", "message": "no role", "line": 1, "column": 1, "rule": "", "remedy": ""}
SECONDS = 60_000  # milliseconds to wait in a second tab


class Checking:
    """Processes that find an error in each text with the word `wrong`, and wait for ever at the word `slow`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> Any:
        self.asked.append(f"{do} {given['text']}")
        try:
            return await self._answer(do, given["text"])
        except asyncio.CancelledError:
            self.cancelled.append(f"{do} {given['text']}")
            raise

    async def _answer(self, do: str, text: str) -> Any:
        if "slow" in text and do == "check_by_play":
            await asyncio.Event().wait()
        if "deadly" in text:
            raise WorkerDied("the process needed more than its memory", True)
        findings = [ERROR | {"witness": None, "num_moves": None}] if "wrong" in text else []
        if do == "check":
            return {"findings": findings, "is_playable": not findings}
        return {"findings": findings, "played": "played"}


class Page:
    """A page that shows a draft."""

    def __init__(self) -> None:
        self.is_connected = True
        self.num_shown = 0

    def show_draft(self) -> None:
        self.num_shown += 1


@pytest.fixture
def checking(monkeypatch) -> Checking:
    for name in ("PAUSE", "PLAY_PAUSE", "PATIENCE"):
        monkeypatch.setattr(sheet_draft, name, 0.01)
    monkeypatch.setattr(watchers, "GRACE", 0.01)
    return Checking()


def drafts_in(folder: Path, checking: Any, jobs: Any = None) -> Drafts:
    library = SheetLibrary(folder / "sheets")
    return Drafts(folder / "drafts", library, DraftServices(checking, checking, jobs))


def run(checking: Checking, tmp_path: Path, what: Callable[[Drafts], Awaitable[None]]) -> None:
    async def whole() -> None:
        await what(drafts_in(tmp_path, checking))

    asyncio.run(whole())


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_true():
            await asyncio.sleep(0.005)


async def checked(draft: Draft) -> None:
    await until(lambda: draft.stage == "checked")


# ---- drafts ----


def test_an_unsaved_text_is_kept_and_opened_again(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.open("shipped/tictactoe")
        assert not draft.is_changed
        assert drafts.kept() == []
        draft.write("(role a)")
        again = drafts_in(tmp_path, checking)  # a server that has started again
        assert [(kept.key, kept.name) for kept in again.kept()] == [("shipped/tictactoe", "tictactoe")]
        opened = again.open("shipped/tictactoe")
        assert (opened.text, opened.is_changed) == ("(role a)", True)
        draft.write(draft.saved or "")
        assert drafts.kept() == []

    run(checking, tmp_path, what)


def test_a_new_text_is_kept_from_its_first_change(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new()
        assert (draft.text, draft.saved, drafts.kept()) == (TEXT, None, [])
        draft.write("(role a)")
        assert drafts_in(tmp_path, checking).open(draft.key).text == "(role a)"
        uploaded = drafts.new("other", "\ufeff(role a)\r\n(role b)\ud800")
        assert uploaded.text == "(role a)\n(role b)?"
        assert {kept.name for kept in drafts.kept()} == {"mygame", "other"}
        drafts.discard(draft)
        assert [kept.name for kept in drafts.kept()] == ["other"]
        with pytest.raises(GameloreError, match="expected the address of a text that is kept"):
            drafts.open(draft.key)

    run(checking, tmp_path, what)


def test_saving_makes_a_sheet_of_a_draft(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.open("shipped/tictactoe")
        draft.write("(role a)")
        assert drafts.save(draft, "mine").key == "own/mine"
        assert (tmp_path / "sheets" / "mine.kif").read_text() == "(role a)"
        assert drafts.kept() == []
        assert not draft.is_changed  # the shipped sheet has its own text again
        mine = drafts.open("own/mine")
        assert (mine.text, mine.is_changed, mine.name) == ("(role a)", False, "mine")
        mine.write("(role b)")
        drafts.save(mine, "mine")
        assert (tmp_path / "sheets" / "mine.kif").read_text() == "(role b)"
        drafts.delete("own/mine")
        with pytest.raises(GameloreError, match="expected a rulesheet"):
            drafts.open("own/mine")
        with pytest.raises(GameloreError, match="expected a name of letters"):
            drafts.save(draft, "../mine")

    run(checking, tmp_path, what)


def test_a_deleted_draft_tells_its_pages_and_is_kept_no_more(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        new, sheet = drafts.new("a", "(role a)"), drafts.new("b", "(role b)")
        drafts.save(sheet, "mine")
        assert sheet.gone == "it was saved as mine in another tab"
        mine = drafts.open("own/mine")
        mine.write("(role c)")
        for draft, delete in ((new, lambda: drafts.discard(new)), (mine, lambda: drafts.delete("own/mine"))):
            page = Page()
            draft.watch(page)
            delete()
            assert (page.num_shown, draft.gone, draft.verdict) == (1, "it was deleted in another tab", "")
            with pytest.raises(GameloreError, match="one that is not: it was deleted in another tab; download it"):
                draft.write("(role d)")
            with pytest.raises(GameloreError, match="one that is not: it was deleted in another tab; download it"):
                drafts.save(draft, "other")
            draft.keep()
            draft.check_longer()
        assert drafts.kept() == []
        assert not (tmp_path / "sheets" / "other.kif").exists()
        assert checking.asked == []

    run(checking, tmp_path, what)


def test_unsaved_changes_of_a_sheet_are_not_overwritten(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        drafts.save(drafts.new("mine", "(role a)"), "mine")
        mine, other = drafts.open("own/mine"), drafts.new("b", "(role b)")
        mine.write("(role c)")
        for opened in (drafts, drafts_in(tmp_path, checking)):  # the second one has read nothing yet
            with pytest.raises(
                GameloreError, match="expected a name without unsaved changes, got mine, which has some"
            ):
                opened.save(other, "mine")
        assert (tmp_path / "sheets" / "mine.kif").read_text() == "(role a)"
        assert (mine.text, other.gone) == ("(role c)", "")
        drafts.save(mine, "mine")
        drafts.save(other, "mine")
        assert (mine.text, mine.is_changed) == ("(role b)", False)

    run(checking, tmp_path, what)


def test_files_that_are_no_drafts_are_passed_over(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new("a", "(role a)")
        kept = json.loads(draft.file.read_text())
        for number, wrong in enumerate(("", "[]", "{}", json.dumps(kept), json.dumps(kept | {"text": 3}))):
            (draft.file.parent / f"{number}.json").write_text(wrong)
        assert [kept.key for kept in drafts.kept()] == [draft.key]

    run(checking, tmp_path, what)


def test_long_texts_are_refused(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new()
        for change in (draft.write, lambda text: drafts.new("long", text)):
            with pytest.raises(GameloreError, match="expected a text of at most 600,000 characters"):
                change(" " * (MOST_TEXT + 1))
        assert draft.text == TEXT

    run(checking, tmp_path, what)


# ---- checks ----


def test_a_text_is_checked_and_then_played(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft, page = drafts.new("a", "right"), Page()
        draft.watch(page)
        assert draft.verdict == "Checking the text .."
        await checked(draft)
        assert (draft.verdict, draft.played) == ("Nothing is wrong", "played")
        draft.write("wrong")
        await checked(draft)
        assert (draft.verdict, draft.played) == ("1 error", "")
        assert checking.asked == ["check right", "check_by_play right", "check wrong"]
        assert page.num_shown > 0

    run(checking, tmp_path, what)


def test_a_newer_text_ends_the_check_of_an_older_one(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new("a", "slow")
        draft.watch(Page())
        await until(lambda: "check_by_play slow" in checking.asked)
        draft.write("wrong")
        await checked(draft)
        assert checking.cancelled == ["check_by_play slow"]
        assert [finding["code"] for finding in draft.findings] == ["missing"]

    run(checking, tmp_path, what)


def test_checks_end_when_no_page_shows_the_draft(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new("a", "slow")
        first, second = draft.watch(Page()), draft.watch(Page())
        await until(lambda: "check_by_play slow" in checking.asked)
        first()
        await asyncio.sleep(0.05)
        assert checking.cancelled == []
        second()
        await until(lambda: checking.cancelled == ["check_by_play slow"])
        draft.watch(Page())  # opened again
        await until(lambda: checking.asked.count("check_by_play slow") == 2)

    run(checking, tmp_path, what)


def test_a_check_that_kills_its_process_is_a_finding(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft = drafts.new("a", "deadly")
        draft.watch(Page())
        await checked(draft)
        assert draft.verdict == "1 error"
        assert "more than its memory" in draft.findings[0]["message"]
        draft.write("right")
        await checked(draft)
        assert draft.verdict == "Nothing is wrong"

    run(checking, tmp_path, what)


def test_one_page_at_a_time_has_the_pen(checking: Checking, tmp_path: Path) -> None:
    async def what(drafts: Drafts) -> None:
        draft, first, second, third = drafts.new("a", "right"), Page(), Page(), Page()
        leave_first = draft.watch(first)
        draft.watch(second)
        assert draft.pen is first
        draft.take_pen(second)
        assert draft.pen is second
        second.is_connected = False  # its tab was closed a moment ago
        draft.watch(third)
        assert draft.pen is third
        leave_first()
        assert draft.pen is third
        await checked(draft)

    run(checking, tmp_path, what)


class Reporting:
    """Jobs in which a report is half done until it may end."""

    def __init__(self) -> None:
        self.num_open = 0
        self.outcome: Any = None

    @asynccontextmanager
    async def job(self, module: str) -> AsyncIterator[Any]:
        assert module == "gamelore.web.children.sheet_worker"
        self.num_open += 1
        try:
            yield self
        finally:
            self.num_open -= 1

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> Any:
        return {"stage": "matches", "done": 1, "total": 2, "outcome": self.outcome} if do == "report_progress" else None


def test_a_report_is_made_and_can_be_stopped(checking: Checking, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sheet_draft, "PROGRESS_SECONDS", 0.01)

    async def whole() -> None:
        jobs = Reporting()
        draft = drafts_in(tmp_path, checking, jobs).new("a", "right")
        draft.begin_report(10, 10)
        stopped = draft.report
        assert stopped is not None
        await until(lambda: stopped.share == 0.5)
        assert (stopped.stage, stopped.is_running, jobs.num_open) == ("matches", True, 1)
        draft.begin_report(10, 10)  # stops the first one
        await until(lambda: jobs.num_open == 1)
        assert (stopped.is_running, stopped.error) == (False, "the report was stopped")
        jobs.outcome = {"ok": {"headline": "balanced"}}
        await until(lambda: draft.report is not None and draft.report.report == {"headline": "balanced"})
        jobs.outcome = {"error": "GDLSyntaxError", "message": "wrong", "line": 2, "column": 3}
        draft.begin_report(10, 10)
        await until(lambda: draft.report is not None and draft.report.error == "line 2, column 3: wrong")
        await until(lambda: jobs.num_open == 0)

    asyncio.run(whole())


LARGE = rulesheets.path("breakthrough").read_text(encoding="utf-8")


def test_processes_check_texts_and_are_replaced_when_nobody_waits(tmp_path: Path) -> None:
    async def whole() -> None:
        processes = CheckProcesses(ProcessLimits(), most=1)
        try:
            assert await processes.ask("check", 60, text=TEXT) == {"findings": [], "is_playable": True}
            (first,) = processes._idle
            asking = asyncio.create_task(
                processes.ask("check_by_play", 60, text=LARGE, name="a", seconds=50, load_seconds=9)
            )
            await until(lambda: not first.is_idle)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert not first.is_alive
            assert await processes.ask("format", 60, text="(role   a)") == "(role a)\n"
        finally:
            await processes.close()

    asyncio.run(whole())


class TextProcess:
    """A process that answers each request at once."""

    is_alive = is_idle = True

    def __init__(self, settings: object) -> None:
        """Begin."""

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> "TextProcess":
        return self

    def end(self) -> None:
        self.is_alive = False


def test_a_process_ends_only_if_it_was_idle_all_the_time(monkeypatch) -> None:
    monkeypatch.setattr(sheet_draft, "WorkerProcess", TextProcess)

    async def whole() -> None:
        processes = CheckProcesses(ProcessLimits(), most=1)
        monkeypatch.setattr(sheet_draft, "IDLE_SECONDS", 0.05)
        first = await processes.ask("check", 60)
        monkeypatch.setattr(sheet_draft, "IDLE_SECONDS", 1000)
        assert await processes.ask("check", 60) is first
        await asyncio.sleep(0.1)
        assert first.is_alive
        monkeypatch.setattr(sheet_draft, "IDLE_SECONDS", 0)
        assert await processes.ask("check", 60) is first
        await until(lambda: not first.is_alive)
        assert await processes.ask("check", 60) is not first

    asyncio.run(whole())


# ---- in a browser ----


def opened(page, web_url: str, tmp_path: Path, text: str, name: str = "game.kif") -> None:
    """Open a text in the editor, as an uploaded file."""
    file = tmp_path / name
    file.write_text(text)
    page.goto(f"{web_url}/rulesheets")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a file").click()
    chooser.value.set_files(file)
    page.wait_for_url("**/rulesheets?sheet=new/*")


def edit(page, web_url: str, web_folder: Path, text: str, name: str) -> None:
    """Open one's own rulesheet in the editor."""
    file = web_folder / "sheets" / f"{name}.kif"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    page.goto(f"{web_url}/rulesheets?sheet=own/{name}")


def verdict(page, text: str) -> None:
    page.get_by_test_id("verdict").get_by_text(re.compile(text)).wait_for()


def test_a_broken_sheet_is_mended_saved_and_played(page, web_url: str, web_folder: Path, tmp_path: Path) -> None:
    opened(page, web_url, tmp_path, f"{TEXT.replace('(take ?number)', '(take ?count)', 1)}(goal first")
    verdict(page, "^2 errors")
    page.locator(".gl-mark-error").first.wait_for()
    page.get_by_test_id("finding").filter(has_text="syntax").get_by_test_id("go").click()
    page.locator(".cm-focused").wait_for()
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    verdict(page, "^1 error")
    assert "the variable ?count in the head is in no positive condition" in page.get_by_test_id("finding").inner_text()
    page.reload()  # the text is kept, though it was never saved
    page.get_by_test_id("go").click()
    page.locator(".cm-focused").wait_for()
    for _ in "?count":
        page.keyboard.press("Delete")
    page.keyboard.type("?number")
    verdict(page, "^Nothing is wrong$")
    assert page.get_by_test_id("findings").inner_text() == ""
    assert page.locator(".gl-mark").count() == 0
    page.keyboard.press("Control+s")
    page.get_by_test_id("name").fill("../mended")
    page.get_by_test_id("save-name").click()
    page.get_by_text("expected a name of letters, digits").wait_for()
    page.get_by_test_id("name").fill("mended")  # the field is still there
    page.get_by_test_id("save-name").click()
    page.wait_for_url("**/rulesheets?sheet=own/mended")
    assert (web_folder / "sheets" / "mended.kif").read_text() == TEXT
    page.get_by_test_id("play-now").click()
    page.wait_for_url("**/play/*")
    page.get_by_test_id("moves").get_by_text("Moves of").click()
    page.get_by_role("button", name="(take 3)").click()
    page.get_by_text("first (take 3)").wait_for()


def test_names_in_a_sheet_are_never_html(page, web_url: str, web_folder: Path) -> None:
    hostile = "<img/src/onerror=window.pwned=1>"
    text = TEXT.replace("first", hostile).replace("second", "<svg/onload=window.pwned=2>")
    text = text.replace("(goal ?player 0) (true", "(goal ?player 1) (true (none)) (true")
    edit(page, web_url, web_folder, text, "hostile")
    page.get_by_test_id("show-moves").first.click()
    page.locator(".gl-series svg").first.wait_for()
    assert hostile in page.get_by_test_id("findings").inner_text()
    page.locator(".gl-mark").first.hover()
    page.get_by_label("Matches of each kind").fill("2")
    page.get_by_label("Simulations for a move").fill("2")
    page.get_by_test_id("report").click()
    page.get_by_test_id("headline").wait_for()
    assert f"goal of {hostile}" in page.get_by_test_id("report-result").inner_text()
    assert page.evaluate("window.pwned") is None


@pytest.mark.long
def test_half_a_character_is_replaced(page, web_url: str, web_folder: Path) -> None:
    """No message can have a lone surrogate, so it would never arrive."""
    edit(page, web_url, web_folder, "(role a)", "half")
    verdict(page, "^3 errors")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.evaluate("document.execCommand('insertText', false, ' (goal' + String.fromCharCode(0xd83d))")
    verdict(page, "^1 error")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(page.url)
    other.get_by_text("(role a) (goal\ufffd").wait_for()


def test_a_lost_connection_and_a_second_tab_lose_nothing(page, web_url: str, web_folder: Path) -> None:
    edit(page, web_url, web_folder, "(role a)", "lost")
    verdict(page, "^3 errors")
    page.locator(".cm-content").click()
    page.evaluate("window.socket.io.engine.close()")  # it opens again by itself
    page.keyboard.press("Control+End")
    page.keyboard.type(" (goal")
    verdict(page, "^1 error")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(page.url)
    other.get_by_text("(role a) (goal)").wait_for()
    other.get_by_text("being changed in another tab").wait_for()
    other.get_by_role("button", name="Change it here").click()
    page.get_by_text("being changed in another tab").wait_for()
    other.locator(".cm-content").click()
    other.keyboard.press("Control+a")
    other.keyboard.type("(role   c)")
    page.get_by_text("(role   c)").wait_for()
    other.get_by_test_id("format").click()
    page.get_by_text("(role c)").wait_for()
    other.get_by_text("(role c)").wait_for()


@pytest.mark.long
def test_a_text_that_was_deleted_in_another_tab(page, web_url: str, tmp_path: Path) -> None:
    opened(page, web_url, tmp_path, "(role a)", "gone.kif")
    verdict(page, "^3 errors")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(page.url)
    verdict(other, "^3 errors")
    page.get_by_test_id("give-up").click()
    page.get_by_test_id("agree").click()
    page.wait_for_url("**/rulesheets")
    other.get_by_text("not kept here any more: it was deleted in another tab").wait_for()
    assert other.get_by_test_id("save").is_disabled()
    other.locator(".cm-content").click()
    other.keyboard.type("(role b)")
    assert other.get_by_text("(role b)").count() == 0
    page.get_by_text("Rulesheets", exact=True).first.wait_for()
    assert page.get_by_text("gone", exact=True).count() == 0


@pytest.mark.long
def test_a_tab_that_comes_back_too_late_loses_nothing(page, web_url: str, tmp_path: Path) -> None:
    opened(page, web_url, tmp_path, "(role a)", "late.kif")
    verdict(page, "error")
    page.locator(".cm-content").click()
    page.evaluate("window.socket.io.opts.reconnection = false; window.socket.disconnect()")
    page.keyboard.press("Control+End")
    page.keyboard.type(" ; late")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(page.url)
    verdict(other, "error")
    other.locator(".cm-content").click()
    other.keyboard.press("Control+Home")
    other.keyboard.type("(first) (goal")
    verdict(other, "^1 error")
    page.evaluate("window.socket.connect()")
    page.get_by_text("your text is kept as another one").wait_for()
    page.get_by_text("(first) (goal").wait_for()
    page.goto(f"{web_url}/rulesheets")
    page.get_by_text("late", exact=True).first.click()
    page.get_by_text("; late").wait_for()


def test_an_exploding_sheet_costs_only_its_check(page, web_url: str, web_folder: Path) -> None:
    numbers = " ".join(f"(n {number})" for number in range(200))
    boom = f"{numbers}\n(<= (next (boom ?a ?b ?c ?d)) (n ?a) (n ?b) (n ?c) (n ?d))"
    edit(page, web_url, web_folder, TEXT + boom, "boom")
    verdict(page, "looking for more by play")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(f"{web_url}/rulesheets?sheet=shipped/tictactoe")
    verdict(other, "Nothing is wrong")
    verdict(page, "^1 error")
    assert "the largest relation is `next`" in page.get_by_test_id("findings").inner_text()
