"""The page Knowledge: its charts, and a person who browses a store, compares, exports, deletes and imports."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gamelore import learn, load
from gamelore.gdl.syntax import parse
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, Lessons, StoredLesson, TrialRow
from gamelore.learning.store.schema import LearnedRows, MatchRow
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory.advice import rival_name

pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")

from gamelore.web.pages.knowledge_page import imported_text
from gamelore.web.pages.knowledge_parts import (
    band_lines,
    curve_line,
    curve_options,
    map_height,
    map_options,
)
from gamelore.web.pages.learned_pages import used_text

HOSTILE = "<img src=x onerror=alert(1)>"


# ---- charts -----------------------------------------------------------------------------------------------------


def game(key: str, learners: int = 1, lessons: int = 0) -> dict[str, Any]:
    return {"key": key, "name": f"game {key}", "learners": learners, "lessons": lessons}


def teaching(teacher: str, pupil: str, mean: float | None = None, low: float | None = None) -> dict[str, Any]:
    gain = None if mean is None else {"mean": mean, "low": low, "runs": 1, "short": f"{mean:+.1f}"}
    return {"teacher": teacher, "pupil": pupil, "gain": gain}


def test_games_are_boxes_and_teachings_are_arrows() -> None:
    rows = [[game("a", 2, 1)], [game("b"), game("c", 0), game("d"), game("e")]]
    teachings = [teaching("a", "b", -1.0), teaching("a", "b", 2.0, 1.0), teaching("a", "c"), teaching("a", "gone")]
    (series,) = map_options(rows, teachings, 320.0)["series"]
    nodes = {node["id"]: node for node in series["data"]}
    assert nodes["a"]["name"] == "game a\n2 learners\n1 lesson"
    assert nodes["c"]["name"] == "game c\nnot stored now"
    assert nodes["a"]["y"] < nodes["b"]["y"] == nodes["d"]["y"] < nodes["e"]["y"]
    assert nodes["b"]["x"] < nodes["c"]["x"] < nodes["d"]["x"]
    arrows = {(link["source"], link["target"]): link["label"]["formatter"] for link in series["links"]}
    assert arrows == {("a", "b"): "+2.0 and 1 more", ("a", "c"): "gain not known"}
    assert map_height(rows, 320.0) > map_height(rows[:1], 320.0)
    assert map_height(rows, 320.0) > map_height(rows, 1100.0)


def test_a_chart_ends_above_the_highest_value() -> None:
    lines = [curve_line("mean", [(1, 10.0), (2, 30.0)], "red"), *band_lines([(1, 10.0, -5.0, 41.0)], "red")]
    options = curve_options(lines, "matches", "reward")
    assert options["yAxis"]["max"] == 60
    assert options["legend"]["data"] == ["mean"]
    assert [line["data"] for line in options["series"][1:]] == [[[1, 0.0]], [[1, 41.0]]]
    assert curve_options([curve_line("mean", [(1, 100.0)], "red")], "matches", "reward")["yAxis"]["max"] == 100


def test_an_import_is_told() -> None:
    added = {"what": "learners", "num": 4, "new": ["learner 1"], "longer": ["learner 2"], "same": 2}
    assert imported_text("k.json", added).splitlines() == [
        "k.json: 4 learners",
        "new: learner 1",
        "longer than here, so they replaced what was here: learner 2",
        "already here with as much or more, so nothing changed: 2",
    ]
    assert imported_text("l.json", {"what": "lessons", "num": 1, "new": [], "longer": [], "same": 1}).splitlines() == [
        "l.json: 1 lesson",
        "already here with as much or more, so nothing changed: 1",
    ]


def test_when_a_lesson_is_used() -> None:
    assert used_text(None) == "not yet: no test has shown that it helps"
    assert used_text(10) == "in matches with at most 10 s before the first move"


# ---- in a browser -----------------------------------------------------------------------------------------------


@dataclass
class Hostile:
    """As much of a game as the store looks at, with a name that is HTML."""

    name: str = HOSTILE
    roles: tuple[str, ...] = ("red",)
    goal_values: tuple[tuple[int, ...], ...] = ((0, 100),)
    rulesheet: str = "(role red)"
    rules_hash: str = parse("(role red)").rules_hash


@pytest.fixture(scope="module")
def numbers(web_folder: Path) -> dict[str, int]:
    """The numbers of learners in the store of the server; it also has a lesson."""
    path, quiet = web_folder / "knowledge.db", {"progress": False, "store": web_folder / "knowledge.db", "seed": 77}
    learned = {
        "source": learn("tictactoe", matches=20, opponent="weak", **quiet),
        "other opponent": learn("tictactoe", matches=5, opponent="maxmax", **quiet),
        "baseline": learn("connect3", matches=5, opponent="weak", **quiet),
        "transfer": learn("connect3", "transfer", sources=["tictactoe"], matches=5, opponent="weak", **quiet),
        "sequences": learn(
            "tictactoe", "sequences", matches=4, cycles=1, tests=1, expert="perfect", against=["random"], **quiet
        ),
    }
    value = StoredValue(0.5, 0.25, None, (0.5, 0.5), {"(cell 1 1 x)": (0.25, -0.25)})
    rules = load("tictactoe")
    with KnowledgeStore(path) as store:
        lessons = Lessons(store)
        lessons.put(rules, StoredLesson(1, 10, 10**9, 1.0, value))
        row = TrialRow(LESSON, 1, rival_name(10), 10, 7.0, 1.0, 20.0, 0.0)
        lessons.add_evidence(rules, row, lambda _: row)
        hostile = store.learner(Hostile(), "red", opponent=HOSTILE, settings={"kind": HOSTILE}, seed=0)  # type: ignore[arg-type]
        store.record(hostile, [MatchRow(1.0, 1)], LearnedRows())
        store.store_features(hostile, FeatureValues({"W": (1.0, 1)}))
    return {name: learner.number for name, learner in learned.items()} | {"hostile": hostile.id}


def test_a_store_is_browsed(page: Any, web_url: str, numbers: dict[str, int]) -> None:
    page.goto(f"{web_url}/knowledge")
    chart = page.get_by_test_id("map")
    chart.get_by_text("connect3").first.click()
    page.get_by_test_id("found").filter(has_text=re.compile(r"^2 of \d+ learners")).wait_for()
    gains = page.get_by_test_id("gains")
    assert "one run: no interval" in gains.inner_text()
    page.get_by_role("link", name=f"learner {numbers['transfer']}", exact=True).click()
    page.get_by_role("heading", name=f"Learner {numbers['transfer']}: connect3, red").wait_for()
    page.get_by_test_id("features").locator("pre").first.wait_for()
    page.locator(".gl-picture svg").wait_for()
    page.get_by_role("link", name=f"learner {numbers['source']} (tictactoe)", exact=True).click()
    page.get_by_role("heading", name=f"Learner {numbers['source']}: tictactoe, xplayer").wait_for()
    titles = page.get_by_test_id("features").locator("th").all_inner_texts()
    assert any("weak" in title for title in titles)
    assert any("maxmax" in title for title in titles)


def test_sequences_and_lessons_are_shown(page: Any, web_url: str, numbers: dict[str, int]) -> None:
    page.goto(f"{web_url}/knowledge/learner/{numbers['sequences']}")
    page.get_by_test_id("pairs-count").filter(
        has_text=re.compile(r"\d+ sequences?, \d+ pairs? with a context")
    ).wait_for()
    page.goto(f"{web_url}/knowledge/lesson/tictactoe")
    page.get_by_role("heading", name="Lesson about tictactoe").wait_for()
    assert "the matches show that it is better" in page.get_by_test_id("tests").inner_text()
    assert page.locator(".gl-picture svg").count() == 1
    page.goto(f"{web_url}/knowledge/lesson/nothing")
    page.get_by_role("alert").filter(has_text="expected a game with a lesson").wait_for()


def test_compare_export_delete_and_import(page: Any, web_url: str, numbers: dict[str, int], tmp_path: Path) -> None:
    page.goto(f"{web_url}/knowledge")
    for name in ("baseline", "transfer"):
        page.get_by_role("checkbox", name=f"choose learner {numbers[name]}", exact=True).click()
    with page.expect_download() as download:
        page.get_by_test_id("export").click()
    file = tmp_path / "knowledge.json"
    download.value.save_as(file)
    page.get_by_test_id("compare").click()
    page.get_by_test_id("difference").filter(has_text="one run: no interval").wait_for()
    assert "transfer" in page.get_by_test_id("differences").inner_text()
    assert page.get_by_test_id("common-features").locator("pre").count() > 0
    page.get_by_role("link", name="All knowledge").click()
    page.get_by_role("checkbox", name=f"choose learner {numbers['transfer']}", exact=True).click()
    page.get_by_test_id("delete").click()
    page.get_by_test_id("agree").click()
    page.get_by_text("deleted 1 learner").wait_for()
    for told in ("new: learner", "already here with as much or more, so nothing changed: 2"):
        page.get_by_test_id("import").locator("input[type=file]").set_input_files(file)
        page.get_by_test_id("imported").filter(has_text=told).wait_for()


def test_names_are_no_html(page: Any, web_url: str, numbers: dict[str, int]) -> None:
    dialogs: list[str] = []

    def dismiss(dialog: Any) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    number = numbers["hostile"]
    page.goto(f"{web_url}/knowledge")
    page.get_by_role("link", name=f"learner {number}", exact=True).wait_for()
    assert page.locator("img[src=x]").count() == 0
    for path in (f"learner/{number}", f"compare/{number}/{numbers['source']}"):
        page.goto(f"{web_url}/knowledge/{path}")
        page.get_by_text(HOSTILE).first.wait_for()
        assert page.locator("img[src=x]").count() == 0
    page.remove_listener("dialog", dismiss)
    assert dialogs == []
