"""The page Watch learning: its chart and its words, runs that are watched, learners that are kept; and a browser."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")

from gamelore import rulesheets
from gamelore.errors import GameloreError
from gamelore.net.pool import WorkerDied
from gamelore.web.children.studying_job import StudyingJob
from gamelore.web.pages.frame import whole
from gamelore.web.service import watchers
from gamelore.web.service.rule_processes import ProcessLimits, TooBusy
from gamelore.web.service.sheet_library import SheetLibrary
from gamelore.web.teaching import learning_curves
from gamelore.web.teaching.learning_curves import (
    FURTHER_LOOKS,
    IDLE,
    LOOKS,
    LearningDesk,
    WatchedRun,
    chart_options,
    curve_looks,
    curve_names,
    failure_text,
    in_order,
    last_values,
    plain_words,
)
from gamelore.web.teaching.learning_form import default_source, planned_game, planned_sheet, share
from gamelore.web.teaching.learning_page import when_text
from gamelore.web.teaching.learning_words import (
    LEARNERS,
    SPEEDS,
    done_share,
    gain_rows,
    left_text,
    plan_facts,
    seconds_text,
    speed_index,
    speed_text,
    stage_text,
    verdicts,
    windows_text,
)

PLAN: dict[str, Any] = {
    "target": {"game": "connect3", "role": "red"},
    "learners": ["baseline", "transfer"],
    "sources": [{"game": "tictactoe"}],
    "opponent": "egreedy:filler=hashed,epsilon=0.01",
    "runs": 5,
    "matches": 200,
    "seed": 2007,
    "source_matches": 20,
    "source_epsilon": 1.0,
    "initialisation": "eager",
    "heuristic": "minimax",
}


def curve(learner: str, points: list[tuple[int, float, float | None, float | None]], **given: Any) -> dict[str, Any]:
    about = {"game": "connect3", "source": None, "runs": 5, "done": len(points), "matches": 100}
    return {"id": learner, "learner": learner, "points": points, **about, **given}


# ---- the chart --------------------------------------------------------------------------------------------------


def test_each_learner_has_a_line_and_a_shaded_interval() -> None:
    curves = [curve("baseline", [(1, 50.0, -20.0, 120.0), (2, 40.0, 30.0, 50.0)]), curve("oracle", [(1, 90, 85, 95)])]
    options = chart_options(curves)
    line, low, height = options["series"][:3]
    assert (line["name"], line["data"]) == ("baseline", [(1, 50.0), (2, 40.0)])
    assert [low["data"], height["data"]] == [[(1, 0.0), (2, 30.0)], [(1, 100.0), (2, 20.0)]], "cut to 0 to 100, stacked"
    assert low["stack"] == height["stack"] != options["series"][4]["stack"]
    assert low["lineStyle"]["opacity"] == 0
    assert height["areaStyle"]["color"] == line["color"] != options["series"][3]["color"]
    assert options["legend"]["data"] == ["baseline", "oracle"]
    assert (options["xAxis"]["name"], options["xAxis"]["max"]) == ("matches", 100)
    assert options["yAxis"]["name"] == "mean reward so far (0 to 100)"
    json.dumps(options, allow_nan=False)


def test_few_runs_have_no_interval() -> None:
    few = curve("baseline", [(1, 50.0, None, None)], runs=3)
    assert [series["data"] for series in chart_options([few])["series"]] == [[(1, 50.0)], [], []]
    assert last_values([few, curve("oracle", [])]) == [
        {"name": "baseline", "done": "1 of 100", "mean": "50.0", "interval": "too few runs (3)"},
        {"name": "oracle", "done": "0 of 100", "mean": "-", "interval": "-"},
    ]


def test_all_curves_look_different_in_colour_and_in_line() -> None:
    curves = [curve(kind, []) for kind in LEARNERS] + [curve("transfer", [], source=f"game{i}") for i in range(7)]
    looks = curve_looks(curves)
    assert len({look.colour for look in looks}) == len({str(look.line) for look in looks}) == len(curves)
    assert all(contrast(look.colour) > 4 for look in (*LOOKS.values(), *FURTHER_LOOKS))


def contrast(colour: str) -> float:
    """Return the contrast with white, as the guidelines for accessible pages compute it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 1.05 / (0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] + 0.05)


def test_transfer_learners_of_several_sources_are_told_apart() -> None:
    kinds = ["baseline", "transfer", "lookahead", "transfer"]
    curves = in_order(curve(kind, [], source=f"game{i}") for i, kind in enumerate(kinds))
    assert curve_names(curves) == ["baseline", "transfer from game1", "transfer from game3", "lookahead"]
    assert curve_names([curve("source", [], game="tictactoe")]) == ["learner in tictactoe"]
    assert curve_names([curve("transfer", [], source="tictactoe")]) == ["transfer"]


# ---- words ------------------------------------------------------------------------------------------------------


def gain(quantity: str, mean: float, low: float | None, high: float | None, **given: Any) -> dict[str, Any]:
    about = {"source": "tictactoe", "target": "connect3", "learner": "baseline", **given}
    return {**about, "quantity": quantity, "mean": mean, "low": low, "high": high}


def test_what_an_interval_says_is_told_in_words() -> None:
    gains = [
        gain("level", 95.0, 94.0, 96.0),
        gain("level", 97.5, 96.5, 98.5, learner="transfer"),
        gain("early gain", 9.74, 5.0, 14.4),
        gain("late gain", -0.2, -0.8, 0.4),
        gain("late gain", -3.0, -4.0, -2.0, learner="lookahead"),
    ]
    early, late = verdicts(gains, 10)
    assert early == (
        "In the first tenth of the matches, transfer got 9.7 points more per match than baseline; the interval from "
        "+5.0 to +14.4 does not contain 0, so this is hardly chance."
    )
    assert late.startswith("After that, transfer got 0.2 points fewer per match than baseline, but the interval from")
    assert "contains 0: these runs do not show which of the two is better" in late
    baseline, transfer = gain_rows(gains)
    assert (baseline["level"], baseline["early"]) == ("95.0 [94.0, 96.0]", "+9.7 [+5.0, +14.4]: more")
    assert baseline["late"] == "-0.2 [-0.8, +0.4]: contains 0"
    assert (transfer["learner"], transfer["early"]) == ("transfer (after tictactoe)", "")
    assert verdicts([gain("late gain", 2.0, None, None)], 3) == [
        "After that, transfer got 2.0 points more per match than baseline; 3 runs are too few to say whether this is "
        "chance."
    ]
    assert verdicts([gain("level", 95.0, 94.0, 96.0)], 10) == []


def test_several_sources_are_told_apart_in_the_results() -> None:
    gains = [gain("level", 95.0, 94.0, 96.0, source=name) for name in ("tictactoe", "othello4")]
    gains += [gain("late gain", 1.0, 0.5, 1.5, source="othello4", learner="lookahead")]
    assert [row["learner"] for row in gain_rows(gains)] == [
        "baseline (beside transfer after tictactoe)",
        "baseline (beside transfer after othello4)",
    ]
    (told,) = verdicts(gains, 10)
    assert "transfer after othello4 got 1.0 points more per match than lookahead" in told, "there is no baseline"


def test_the_plan_in_words() -> None:
    facts = plan_facts(PLAN)
    assert ("learners", "baseline, transfer (after tictactoe)") in facts
    assert ("they play", "red") in facts
    assert ("", "1 % random moves; among equally good moves the same one in the same position") in facts
    assert ("runs", "5 runs of 200 matches") in facts
    assert ("learned first", "tictactoe: 20 matches with 100 % random moves") in facts
    assert ("opponent", "random: makes any legal move (random)") in plan_facts({**PLAN, "opponent": "random"})
    own = {**PLAN, "target": {"game": "(role white)", "name": "mine"}, "learners": ["baseline"], "sources": []}
    assert "learned first" not in dict(plan_facts(own))


def test_how_far_a_run_is_in_words() -> None:
    progress = {**IDLE, "state": "running", "matches_per_second": 96.4, "seconds_left": 41.0}
    assert left_text(progress) == "about 40 seconds left, 96 matches a second at present"
    assert left_text({**progress, "state": "paused"}) == left_text(IDLE) == ""
    times = {2: "a few seconds", 88: "about 90 seconds", 90: "about 2 minutes", 7200: "about 2.0 hours"}
    assert {seconds: seconds_text(seconds) for seconds in times} == times
    assert done_share([curve("baseline", [], done=50), curve("oracle", [], done=100)]) == 0.75
    assert done_share([]) == 0.0
    assert windows_text(3000) == ("matches 1 to 300", "matches 301 to 3000")
    assert windows_text(1) == ("matches 1 to 1", "matches 1 to 1")
    assert re.fullmatch(r"\d\d [A-Z][a-z]+ 2026, \d\d:\d\d", when_text("2026-05-04T12:00:00+00:00"))


def test_speeds_of_the_slider() -> None:
    assert [speed_index(speed) for speed in SPEEDS] == list(range(len(SPEEDS)))
    assert SPEEDS[speed_index(70)] == 100
    assert speed_text(None) == "full speed"
    assert [speed_text(speed) for speed in (1, 1000)] == ["1 match a second", "1,000 matches a second"]


def test_errors_name_nothing_of_the_command_line() -> None:
    told = (
        "expected eager or siblings initialisation, or turns, to need at most 1 MiB, got 5 positions of x, which need "
        "2 MiB; choose lazy initialisation, look ahead less far (depth, turns), play fewer matches, or allow more "
        "memory with the environment variable GAMELORE_LOOKAHEAD_MIB"
    )
    assert plain_words(told).endswith("; choose another time for the first value of a position (More options), fewer "
                                      "matches or a smaller game")  # fmt: skip
    oracle = "choose a smaller game, another learner (lookahead or transfer), or allow more memory with the variable X"
    assert plain_words(oracle) == "choose a smaller game, or without the learner oracle"
    assert plain_words("expected a, got b; choose another folder with --out") == "expected a, got b; begin a new run"
    assert "close its page" in plain_words("expected at most 4 jobs at a time, got one more; end another job first")
    broken = {"error": "GDLSyntaxError", "message": "expected )", "line": 3, "column": 2, "rule": "", "remedy": "close"}
    assert failure_text(broken) == "line 3, column 2: expected ); close"


# ---- the form ---------------------------------------------------------------------------------------------------


def test_games_of_a_plan_are_found_again(tmp_path: Path) -> None:
    library = SheetLibrary(tmp_path)
    text = rulesheets.path("tictactoe").read_text(encoding="utf-8")
    own = library.save("mine", text).key
    planned = planned_game(library, own, library.rules(own))
    assert planned == {"game": text, "name": "mine"}
    assert planned_sheet(library, planned) == (own, {})
    key, choices = "shipped/fivemensmorris", {"cap": "80"}
    planned = planned_game(library, key, library.rules(key, choices))
    assert planned == {"game": "fivemensmorris:cap=80"}
    assert planned_sheet(library, planned) == (key, choices)
    library.delete(own)
    assert planned_sheet(library, {"game": text, "name": "mine"}) == ("", {})
    assert default_source("shipped/connect3") == "shipped/tictactoe" != default_source("shipped/tictactoe")


@pytest.mark.parametrize("value", [None, 0, 31, 2.5])
def test_numbers_of_the_form_are_checked(value: float | None) -> None:
    with pytest.raises(GameloreError, match=r"expected a whole number for runs from 1 to 30, got .*; choose another"):
        whole(SimpleNamespace(value=value), "runs", 1, 30)  # type: ignore[arg-type]
    with pytest.raises(GameloreError, match="expected a share from 0 to 1, got"):
        share(SimpleNamespace(value=2 if value else None), "a share")  # type: ignore[arg-type]

    assert whole(SimpleNamespace(value=7.0), "runs", 1, 30) == 7  # type: ignore[arg-type]
    assert share(SimpleNamespace(value=1), "a share") == 1.0  # type: ignore[arg-type]


# ---- runs that are watched --------------------------------------------------------------------------------------


class ScriptedChild:
    """A child process whose run plays a match at each request for its progress."""

    def __init__(self, matches: int, error: GameloreError | None = None) -> None:
        self.matches, self.error = matches, error
        self.done, self.is_paused, self.asked = 0, False, list[tuple[str, Any]]()

    async def ask(self, do: str, seconds: float, /, **given: Any) -> Any:
        await asyncio.sleep(0)
        if do not in ("progress", "features", "figures"):
            self.asked.append((do, next(iter(given.values()), None)))
        if self.error is not None and do == "progress" and self.done:
            raise self.error
        return getattr(self, f"_{do}", lambda **_: None)(**given)

    def _pause(self) -> None:
        self.is_paused = True

    def _resume(self) -> None:
        self.is_paused = False

    def _progress(self) -> dict[str, Any]:
        self.done += not self.is_paused
        points = [(match, 50.0, None, None) for match in range(1, self.done + 1)]
        state = "paused" if self.is_paused else "done" if self.done >= self.matches else "running"
        curves = [curve("baseline", points, matches=self.matches)]
        return {**IDLE, "state": state, "stage": "learning connect3", "curves": curves, "num_features": self.done // 2}

    def _features(self) -> list[dict[str, Any]]:
        return [{"source": "tictactoe"}]

    def _figures(self) -> dict[str, Any]:
        return {"headline": "done"}


class ScriptedProcesses:
    """Processes that give each run the next child."""

    limits = ProcessLimits()

    def __init__(self, *children: ScriptedChild) -> None:
        self.children, self.num_open = list(children), 0

    @asynccontextmanager
    async def job(self, module: str):
        assert module == "gamelore.web.children.learning_run"
        if not self.children:
            raise TooBusy("expected at most 4 jobs at a time, got one more; end another job first")
        self.num_open += 1
        try:
            yield self.children.pop(0)
        finally:
            self.num_open -= 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all times be short."""
    monkeypatch.setattr(learning_curves, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(watchers, "GRACE", 0.001)


def run_of(folder: Path, *children: ScriptedChild) -> WatchedRun:
    return WatchedRun("run1", folder / "run1", PLAN, ScriptedProcesses(*children), "connect3")  # type: ignore[arg-type]


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


def num_done(run: WatchedRun) -> int:
    return run.progress["curves"][0]["done"] if run.progress["curves"] else 0


def test_a_run_is_watched_to_its_end_by_two_pages(tmp_path: Path) -> None:
    async def play() -> None:
        child = ScriptedChild(6)
        run, seen = run_of(tmp_path, child), [list[str](), list[str]()]
        for states in seen:
            run.watch(lambda states=states: states.append(run.progress["state"]))  # type: ignore[misc]
        await until(lambda: run.figures)
        await until(lambda: not run.is_on)
        assert seen[0][-1] == seen[1][-1] == "done"
        assert (run.figures, run.features, run.error) == ({"headline": "done"}, [{"source": "tictactoe"}], "")
        assert child.asked[:2] == [("set_speed", None), ("begin", PLAN)]
        again = LearningDesk(tmp_path, run.processes).run("run1")
        assert (again.figures, again.features, num_done(again)) == (run.figures, run.features, 6)
        again.watch(lambda: None)
        assert not again.is_on, "a finished run needs no process"

    asyncio.run(play())


def test_a_page_that_fails_does_not_stop_the_run(tmp_path: Path) -> None:
    async def play() -> None:
        run = run_of(tmp_path, ScriptedChild(3))
        run.watch(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        await until(lambda: run.figures)

    asyncio.run(play())


def test_pause_and_speed_reach_the_child(tmp_path: Path) -> None:
    async def play() -> None:
        child = ScriptedChild(10**6)
        run = run_of(tmp_path, child)
        run.set_speed(100.0)
        run.watch(lambda: None)
        await until(lambda: num_done(run))
        run.pause()
        await until(lambda: run.progress["state"] == "paused")
        assert stage_text(run) == "Paused while learning connect3"
        run.set_speed(5.0)
        run.resume()
        await until(lambda: run.progress["state"] == "running")
        steps = [("set_speed", 100.0), ("begin", PLAN), ("pause", None), ("set_speed", 100.0)]
        assert child.asked[:4] == steps
        assert child.asked[-2:] == [("resume", None), ("set_speed", 5.0)]
        await run.stop()
        assert child.asked[-1] == ("stop", None)
        assert stage_text(run).startswith("Interrupted")

    asyncio.run(play())


def test_a_run_waits_while_nobody_watches_and_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        child = ScriptedChild(10**6)
        run = run_of(tmp_path, child)
        leaves = [run.watch(lambda: None) for _ in range(2)]
        await until(lambda: num_done(run))
        leaves[0]()
        await asyncio.sleep(0.01)
        assert not child.is_paused, "a second page watches"
        leaves[1]()
        await until(lambda: child.is_paused)
        assert run.is_on
        assert not run.is_paused, "no person has paused it"
        run.watch(lambda: None)
        await until(lambda: not child.is_paused)
        await run.stop()

    asyncio.run(play())


def test_a_forgotten_run_ends_its_process_and_continues_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_curves, "PARKED_SECONDS", 0.0)

    async def play() -> None:
        children = [ScriptedChild(10**6), ScriptedChild(5)]
        run = run_of(tmp_path, *children)
        leave = run.watch(lambda: None)
        await until(lambda: num_done(run))
        leave()
        await until(lambda: not run.is_on)
        assert run.processes.num_open == 0  # type: ignore[attr-defined]
        desk = LearningDesk(tmp_path, run.processes)
        (kept,) = desk.kept()
        assert (kept.id, kept.title, kept.state) == ("run1", "connect3", "stopped")
        again = desk.run("run1")
        assert num_done(again) == num_done(run), "what was shown last"
        again.watch(lambda: None)
        await until(lambda: again.figures)

    asyncio.run(play())


def test_a_run_that_a_person_has_paused_stays_paused(tmp_path: Path) -> None:
    async def play() -> None:
        run = run_of(tmp_path, ScriptedChild(10**6), ScriptedChild(3))
        run.watch(lambda: None)
        await until(lambda: num_done(run))
        run.pause()
        await run.stop()
        again = LearningDesk(tmp_path, run.processes).run("run1")
        again.watch(lambda: None)
        assert not again.is_on
        again.resume()
        await until(lambda: again.figures)

    asyncio.run(play())


OUT_OF_MEMORY = "the process needed more than its 3.2 GB of memory; allow more memory if you want to play this game"
UNKNOWN = "expected a learner, got 'x'; choose another one"


@pytest.mark.parametrize(
    ("error", "state"), [(WorkerDied(OUT_OF_MEMORY, True), "stopped"), (GameloreError(UNKNOWN), "failed")]
)
def test_why_a_run_cannot_go_on_is_told(tmp_path: Path, error: GameloreError, state: str) -> None:
    async def play() -> None:
        run = run_of(tmp_path, ScriptedChild(10**6, error), ScriptedChild(3))
        run.watch(lambda: None)
        await until(lambda: run.error and not run.is_on)
        assert run.progress["state"] == state
        assert stage_text(run) == "The run cannot go on"
        assert "allow more memory" not in run.error
        run.watch(lambda: None)
        assert not run.is_on, "only a person tries again"
        run.start()
        await until(lambda: run.figures)
        assert run.error == ""

    asyncio.run(play())


def test_a_run_that_gets_no_process_says_what_to_do(tmp_path: Path) -> None:
    async def play() -> None:
        run = run_of(tmp_path)
        run.watch(lambda: None)
        await until(lambda: run.error)
        assert "pause another learning run" in run.error

    asyncio.run(play())


def test_a_deleted_run_leaves_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        desk = LearningDesk(tmp_path, ScriptedProcesses(ScriptedChild(10**6)))  # type: ignore[arg-type]
        run = await desk.begin(PLAN, "connect3", 100.0)
        assert (run.speed, run.is_on) == (100.0, True)
        run.watch(lambda: None)
        await until(lambda: num_done(run))
        await desk.delete(run.id)
        run.pause()  # a page that still shows it
        run.resume()
        assert not run.is_on
        assert not run.folder.exists()
        with pytest.raises(GameloreError, match="expected the address of a learning run"):
            desk.run(run.id)
        with pytest.raises(GameloreError, match="expected the address of a learning run"):
            desk.run("../run1")
        assert desk.kept() == []

    asyncio.run(play())


def test_damaged_folders_are_told(tmp_path: Path) -> None:
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "run.json").write_text("{}", encoding="utf-8")
    desk = LearningDesk(tmp_path, ScriptedProcesses())  # type: ignore[arg-type]
    with pytest.raises(GameloreError, match=r"expected a learning run in .*; delete it"):
        desk.run("run1")
    assert desk.kept() == []


# ---- a learner to keep ------------------------------------------------------------------------------------------


def learned(job: StudyingJob, folder: Path, **given: Any) -> dict[str, Any]:
    job.begin(folder=str(folder), store=str(folder / "knowledge.db"), **given)
    while (progress := job.progress())["outcome"] is None:
        time.sleep(0.01)
    json.dumps(progress, allow_nan=False)
    return progress["outcome"]


def test_a_learner_that_keeps_what_it_learns(tmp_path: Path) -> None:
    text = rulesheets.path("connect3").read_text(encoding="utf-8")
    plan = {**PLAN, "target": {"game": text, "name": "mine", "role": "yellow"}}
    outcome = learned(StudyingJob(2 << 30, 60.0), tmp_path, plan=plan, learner="transfer", matches=30)
    about = outcome["ok"]
    assert (about["number"], about["game"], about["matches"]) == (2, "mine", 30)
    assert about["features"] > 0
    from gamelore import Knowledge

    source, target = Knowledge(tmp_path / "knowledge.db").learners()
    assert (source.game.name, source.num_matches, source.settings["epsilon"]) == ("tictactoe", 20, 1.0)
    assert (target.kind, target.role, target.seed) == ("transfer", "yellow", 0)
    again = learned(StudyingJob(2 << 30, 60.0), tmp_path, plan=plan, learner="transfer", matches=30)
    assert again == outcome, "nothing is left to play"


def test_a_study_without_memory_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("gamelore.web.children.studying_job.learn", exhausted)
    outcome = learned(StudyingJob(2 << 30, 60.0), tmp_path, plan=PLAN, learner="baseline", matches=30)
    assert outcome["message"].startswith("expected a study that fits into the memory of its process, got a larger one")


def test_only_a_learner_of_the_run_can_be_kept(tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match=r"expected a learner of this run \(baseline, transfer\), got 'oracle'"):
        learned(StudyingJob(2 << 30, 60.0), tmp_path, plan=PLAN, learner="oracle", matches=30)


# ---- in a browser -----------------------------------------------------------------------------------------------


def begin(page, web_url: str, **numbers: int) -> str:
    """Begin a run of connect3 after tictactoe, and return its address."""
    page.goto(f"{web_url}/learning")
    page.get_by_test_id("role").wait_for()
    page.get_by_test_id("learner-lookahead").click()
    for name, number in numbers.items():
        page.get_by_test_id(name).fill(str(number))
    page.get_by_test_id("start").click()
    page.wait_for_url("**/learning/*")
    return page.url


def matches_so_far(page) -> int:
    cell = page.get_by_test_id("last-values").first.locator("tbody tr").first.locator("td").nth(1)
    return int(cell.inner_text().partition(" of ")[0].replace(",", "")) if cell.count() else 0


def wait_for_match(page, least: int) -> None:
    while matches_so_far(page) < least:
        page.wait_for_timeout(50)


def test_a_run_is_watched_paused_left_and_watched_to_its_end(page, web_url: str, tmp_path: Path) -> None:
    address = begin(page, web_url, runs=5, matches=300)
    wait_for_match(page, 1)
    page.get_by_test_id("pause").click()
    page.get_by_test_id("stage").get_by_text("Paused while learning connect3: baseline, transfer").wait_for()
    assert page.get_by_test_id("source-features").inner_text().startswith("From tictactoe: ")
    page.get_by_test_id("features").locator("svg").first.wait_for()
    page.wait_for_timeout(700)
    before = matches_so_far(page)
    page.goto(f"{web_url}/learning")
    page.get_by_test_id("run-list").get_by_text("paused").first.wait_for()
    page.get_by_test_id("run-list").get_by_role(
        "link", name="connect3: baseline, transfer (after tictactoe)"
    ).first.click()
    page.wait_for_url(address)
    page.get_by_test_id("stage").get_by_text("Paused").wait_for()
    assert before <= matches_so_far(page) < 300
    second = page.context.new_page()
    second.goto(address)
    page.get_by_test_id("speed").locator('[tabindex="0"]').focus()
    page.keyboard.press("PageUp")
    second.get_by_test_id("speed-text").get_by_text("full speed").wait_for()
    page.get_by_test_id("go-on").click()
    wait_for_match(second, before + 1)  # another page follows the same run
    second.close()
    headline = page.get_by_test_id("headline")
    headline.get_by_text("Transfer minus baseline, mean reward of matches 31 to 300").wait_for()
    assert page.get_by_test_id("gains").locator("tbody tr").count() == 2
    assert "the interval from" in page.get_by_test_id("verdict").first.inner_text()
    with page.expect_download() as download:
        page.get_by_test_id("save-html").click()
    download.value.save_as(tmp_path / "report.html")
    assert headline.inner_text().partition(":")[0] in (tmp_path / "report.html").read_text(encoding="utf-8")
    page.get_by_test_id("keep-learner").click()
    page.get_by_role("option", name="baseline").click()
    page.get_by_test_id("keep-matches").fill("20")
    page.get_by_test_id("keep").click()
    page.get_by_test_id("kept").get_by_text("Kept: learner").wait_for()


@pytest.mark.long
def test_a_run_that_cannot_go_on_says_why_and_is_deleted(page, web_url: str) -> None:
    begin(page, web_url, runs=1, matches=10)
    page.get_by_test_id("headline").get_by_text("too few for intervals").wait_for()
    address = page.url
    page.get_by_role("button", name="Change the settings").click()
    page.get_by_test_id("role").wait_for()
    assert page.get_by_test_id("matches").input_value() == "10"
    page.get_by_test_id("run-list").wait_for()
    page.get_by_test_id("matches").fill("")  # the field itself replaces 20000 by the largest number
    page.get_by_test_id("start").click()
    page.get_by_text("expected a whole number for matches from 1 to 10,000, got nothing").wait_for()
    page.goto(address)
    page.get_by_test_id("delete").click()
    page.get_by_test_id("agree").click()
    page.get_by_test_id("start").wait_for()
    page.goto(address)
    page.get_by_text("expected the address of a learning run").wait_for()
