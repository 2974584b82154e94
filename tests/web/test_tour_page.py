"""The tour: what its child process computes, what it says about results, and a walk through all ten steps."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")

from gamelore import rulesheets
from gamelore.errors import GameloreError
from gamelore.learning.store.features import canonical_text
from gamelore.web.children import tour_examples
from gamelore.web.children.learning_run import LearningPlan
from gamelore.web.children.tour_examples import PUPIL, TEACHER, UNLIKE, TourWorker
from gamelore.web.pages.frame import Services
from gamelore.web.service.rule_processes import RuleProcesses
from gamelore.web.teaching.tour_feature_steps import folded
from gamelore.web.teaching.tour_parts import gain_text, guess_text, verdict
from gamelore.web.teaching.tour_play_steps import CHANGES, SHOWN_MOVES, learned_text
from gamelore.web.teaching.tour_transfer_steps import frames, gain_of, until
from gamelore.web.teaching.tour_visit import MOST_VISITS, SEEDS, Tour, transfer_plan

MEMORY = 3 << 30
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def worker() -> TourWorker:
    """What the child process asks, in this process."""
    return TourWorker(memory=MEMORY, prepare_seconds=60.0)


def line(*moves: str) -> list[list[str]]:
    """Return joint moves of tic-tac-toe: x, o, x .."""
    return [[f"(mark {move})", "noop"] if i % 2 == 0 else ["noop", f"(mark {move})"] for i, move in enumerate(moves)]


# ---- the child process ------------------------------------------------------------------------------------------


def test_a_changed_line_changes_the_game(worker: TourWorker) -> None:
    text = rulesheets.path(TEACHER).read_text()
    drawn = {
        key: worker.drawn(text.replace(change.before, change.after, 1) if change.before else text, SHOWN_MOVES)
        for key, change in CHANGES.items()
    }
    assert all(change.before in text for change in CHANGES.values())
    cells, moves = ({key: board[name] for key, board in drawn.items()} for name in ("num_cells", "num_moves"))
    assert cells == moves == {"none": 9, "size": 16, "mark": 9, "begin": 9}
    assert [drawn[key]["first"] for key in ("none", "begin")] == ["xplayer", "oplayer"]
    assert ">k<" in drawn["mark"]["svg"]
    assert ">x<" not in drawn["mark"]["svg"]
    with pytest.raises(GameloreError):
        worker.drawn("(role x", [])


def test_two_orders_lead_to_one_afterstate(worker: TourWorker) -> None:
    corner = line("1 1", "2 2", "1 3")
    assert worker.compare(corner, line("1 3", "2 2", "1 1")) == {"is_same": True, "is_turned": False}
    assert worker.compare(corner, line("1 1", "2 2", "3 1")) == {"is_same": False, "is_turned": True}
    assert worker.compare(corner, line("1 1", "2 2", "3 3")) == {"is_same": False, "is_turned": False}


def test_the_numbers_of_orders_and_boards(worker: TourWorker) -> None:
    boards = 9 * math.comb(8, 2)  # a place of o, and two of x
    assert worker.orders(3) == {"lines": 9 * 8 * 7, "boards": boards, "matches": 255_168}
    census = worker.census()
    assert (census["afterstates"], census["features"]) == (2739, 12), "Banerjee & Stone draw twelve features"
    assert 0 < census["with_feature"] < census["afterstates"]


def test_a_learner_begins_with_50_and_learns(worker: TourWorker) -> None:
    none, some = worker.learned(3, 0), worker.learned(3, 200)
    assert none["svg"].count(">50<") == 9
    assert (none["first"], none["points"]) == (None, [])
    assert sum(some["last_ends"]) == tour_examples.RECENT
    wins, draws, _ = some["last_ends"]
    assert some["last"] == pytest.approx((100 * wins + 50 * draws) / tour_examples.RECENT)
    assert some["points"][-1] == [200, pytest.approx(some["last"], abs=0.05)]
    assert some == TourWorker(memory=MEMORY, prepare_seconds=60.0).learned(3, 200), "any process gives the same answer"
    with pytest.raises(GameloreError, match="expected 0 to"):
        worker.learned(3, tour_examples.MOST_LEARNED + 1)


def shape_text(shapes: list[tuple[str, tuple[str, ...]]]) -> str:
    """Return the text of a folded tree as that of a feature."""
    names = {"opponent": "n"}

    def member(kind: str, answers: tuple[str, ...]) -> str:
        return kind if kind != "learner" else "{" + ",".join(names.get(answer, answer) for answer in answers) + "}"

    return canonical_text(",".join(member(*shape) for shape in shapes))


@pytest.mark.parametrize("game", [TEACHER, PUPIL])
def test_a_folded_tree_is_the_feature(worker: TourWorker, game: str) -> None:
    for number in range(3):
        example = worker.example(number) if game == TEACHER else worker.pupil_example(number)
        explored = worker._explored(game)
        legal = explored.position(example["plies"]).legal[explored.role]
        for move, feature in zip(legal, example["features"], strict=True):
            tree = worker.tree(game, example["plies"], move)
            assert tree["feature"] == feature
            if feature:
                assert shape_text(folded(tree["replies"], 3)) == feature
                assert tree["words"]
                assert len(folded(tree["replies"], 1)) == len(tree["replies"])


def test_examples_show_what_they_should(worker: TourWorker) -> None:
    examples = [worker.example(number) for number in range(5)]
    assert len({str(example["plies"]) for example in examples}) == 5
    for example in examples:
        texts = example["features"]
        assert len(set(texts)) < len(texts), "two moves have the same feature"
        losing = ["L" in re.sub(r"\{[^}]*\}", "", text) for text in texts]
        assert any(losing)
        assert not all(losing)
    pupils = [worker.pupil_example(number) for number in range(5)]
    taught = {row["feature"] for row in worker.taught()["rows"]}
    for example in pupils:
        assert example["row"]["feature"] in taught
        assert 1 <= example["features"].count(example["row"]["feature"]) <= 2


def test_the_values_of_features(worker: TourWorker) -> None:
    taught = worker.taught()
    values = [row["value"] for row in taught["rows"]]
    assert values == sorted(values, reverse=True)
    by_text = {row["feature"]: row["value"] for row in taught["rows"]}
    assert by_text["{W}"] > by_text["{n},{n,W}"] > by_text["L"]
    assert all(row["board"].startswith("<svg") for row in taught["rows"])
    assert len(taught["pairs"]) == tour_examples.QUIZ
    assert all(values[left] != values[right] for left, right in taught["pairs"])


def test_features_of_tictactoe_fit_connect3_and_those_of_lose_tictactoe_do_not(worker: TourWorker) -> None:
    fitting, strange = worker.shared(TEACHER), worker.shared(UNLIKE)
    assert 0 < fitting["known"] <= fitting["met"]
    assert 0 < fitting["fitting"] <= fitting["afterstates"]
    assert (strange["known"], strange["fitting"]) == (0, 0)


def test_a_strange_teacher_teaches_as_much_as_nobody(worker: TourWorker) -> None:
    result = worker.experiment("unlike", 1, 10)
    points = {curve["source"]: curve["points"] for curve in result["curves"]}
    assert points["lose tic-tac-toe"] == points["nobody"], "none of its features occurs"
    assert points["tic-tac-toe"] != points["nobody"]
    for gain in result["gains"]:
        assert gain["low"] <= gain["mean"] <= gain["high"]
    assert {curve["done"] for curve in result["curves"]} == {result["matches"]}


def test_more_learners_make_the_interval_narrower(worker: TourWorker) -> None:
    few, many = (worker.experiment("changed", 1, runs)["gains"][1] for runs in (10, 160))
    assert few["name"] == many["name"] == "weak opponent"
    assert many["high"] - many["low"] < few["high"] - few["low"]
    with pytest.raises(GameloreError, match="expected 1 to"):
        worker.experiment("changed", 1, 10_000)
    with pytest.raises(GameloreError):
        worker.experiment("other", 1)  # type: ignore[arg-type]


def test_a_weak_opponent_makes_dangerous_afterstates_look_good(worker: TourWorker) -> None:
    rows = worker.opponents_compared()
    differences = [row["weak"] - row["careful"] for row in rows]
    assert differences == sorted(differences, reverse=True)
    assert rows[0]["feature"].startswith("L")
    assert differences[0] > 10


# ---- what the pages say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.1, 3, "better"), (-1, 2, "equal"), (-3, -0.1, "worse"), (0, 0, "equal")]
)
def test_verdicts_follow_from_intervals(low: float, high: float, expected: str) -> None:
    assert verdict({"mean": (low + high) / 2, "low": low, "high": high}) == expected


def test_results_in_words() -> None:
    gain = {"mean": -7.2, "low": -11.1, "high": -3.3}
    assert gain_text(gain) == "7.2 points a match less than the beginner (interval of the difference: -11.1 to -3.3)"
    assert guess_text("worse", "worse").endswith("You were right.")
    assert guess_text("better", "equal").endswith("The result is: no clear difference.")
    rows = [
        {"quantity": quantity, "learner": learner, "mean": mean, "low": mean - 1, "high": mean + 1}
        for mean, (quantity, learner) in enumerate(
            itertools.product(["early gain", "late gain"], ["lookahead", "baseline"])
        )
    ]
    assert gain_of(rows, "late gain") == {"mean": 3.0, "low": 2.0, "high": 4.0}
    told = learned_text(30, {"first": 12.5, "last": 80.0, "last_ends": [15, 2, 3]})
    assert "Last 20 matches: 80 points a match (15 wins, 2 draws, 3 losses)" in told
    assert (
        learned_text(2, {"first": 50.0, "last": 50.0, "last_ends": [1, 0, 1]}) == "2 matches: 1 win, 0 draws, 1 loss."
    )


def test_curves_grow_to_their_end() -> None:
    assert frames(150)[-1] == 150
    assert frames(3) == [1, 2, 3]
    curve = {"done": 3, "points": [(1, 50.0, None, None), (2, 75.0, None, None), (3, 66.7, None, None)]}
    assert until(curve, 2) == {"done": 2, "points": curve["points"][:2]}


def test_answers_fold_before_replies() -> None:
    answers = [{"end": None}, {"end": "W"}, {"end": None}]
    replies = [{"end": None, "answers": answers}, {"end": None, "answers": answers[:2]}, {"end": "L", "answers": []}]
    assert len(folded(replies, 1)[0][1]) == 3
    assert folded(replies, 2)[:2] == [("learner", ("W", "opponent"))] * 2
    assert folded(replies, 3) == [("L", ()), ("learner", ("W", "opponent"))]


def test_plans_of_runs_are_valid() -> None:
    for seed in range(SEEDS):
        plan = LearningPlan.of(transfer_plan(seed))
        assert plan.runs >= 5, "an interval needs runs"


def test_visits_have_ids_and_the_oldest_are_forgotten() -> None:
    nothing: Any = None
    tour = Tour(Services(RuleProcesses(), library=nothing, archive=nothing, store=Path(), folder=Path()))
    first = tour.visit()
    assert tour.visit(first.id) is first
    assert tour.visit("../../etc").id != "../../etc"
    for _ in range(MOST_VISITS):
        tour.visit()
    assert tour.visit(first.id) is not first


# ---- in a browser -----------------------------------------------------------------------------------------------


def feedback(page, text: str = "") -> str:
    """Wait until the feedback of the first task contains a text, and return it."""
    found = page.get_by_test_id("feedback").first.filter(has_text=text)
    found.wait_for()
    return found.inner_text()


def wait_until_done(page, number: int = 0) -> None:
    page.locator("[data-done=true]").nth(number).wait_for()


def step(page, number: int) -> None:
    """Wait for a step. It says where one is, and fits the narrow page of a phone."""
    page.get_by_test_id("progress").filter(has_text=f"Step {number} of 10").wait_for()
    assert page.locator(".gl-steps a[aria-current=step]").inner_text() == str(number)
    assert page.locator("[role=heading][aria-level='1']").count() == 1
    _fits(page)


def _fits(page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def turn_by_key(page, number: int) -> None:
    """Turn from a step that is done to the next one."""
    _fits(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**/tour/{number}?visit=*")
    step(page, number)


def usable(page, board: int = 0):
    """Return the places of a board that can be clicked."""
    return page.locator(".gl-board").nth(board).locator("rect.gl-next")


def click_until_done(page, places: Iterator[int]) -> None:
    """Click places until the task is done; after each click wait for other feedback."""
    told = page.get_by_test_id("feedback").first
    for place in places:
        before = told.inner_text()
        usable(page).nth(place).click()
        page.wait_for_function(
            "before => document.querySelector('[data-testid=feedback]').innerText !== before", arg=before
        )
        if told.get_attribute("data-done"):
            return
    raise AssertionError(f"the task is not done: {told.inner_text()}")


def test_steps_1_to_4_rules_play_afterstates_and_a_learner(page, web_url: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{web_url}/tour/99")  # there is no such step
    step(page, 1)
    feedback(page, "9 cells")
    page.get_by_text("Add a fourth row and column").click()
    feedback(page, "16 cells")
    assert "(index 4)" in page.locator(".gl-changed").inner_text()
    turn_by_key(page, 2)
    _play_by_keyboard(page)
    turn_by_key(page, 3)
    for board, order in enumerate((["1 1", "2 2", "3 3"], ["3 3", "2 2", "1 1"])):
        for place in order:
            usable(page, board).and_(page.locator(f'[aria-label^="{place}"]')).click()
            page.locator(".gl-board").nth(board).locator(f'rect.place:not(.gl-next)[aria-label^="{place}"]').wait_for()
    wait_until_done(page)
    page.get_by_text("255,168").wait_for()
    page.get_by_test_id("next").click()
    step(page, 4)
    feedback(page, "No match yet")
    page.get_by_test_id("play-100").click()
    wait_until_done(page)
    page.locator('.gl-steps a[aria-label="step 3: Afterstates, done"]').wait_for()
    page.reload()
    assert feedback(page, "matches").startswith("100 matches"), "the visit is kept on the server"


def _play_by_keyboard(page) -> None:
    """Play a match to its end with Enter and Space."""
    told = page.get_by_test_id("feedback")
    for ply in range(0, 10, 2):
        told.filter(has_text="legal move").or_(page.locator("[data-done=true]")).first.wait_for()
        if page.locator("[data-done=true]").count():
            return
        usable(page).first.focus()
        page.keyboard.press("Enter" if ply % 4 else "Space")
        rows = "document.querySelectorAll('main ol.gl-mono li').length"
        page.wait_for_function(f"n => {rows} > n || document.querySelector('[data-done=true]')", arg=ply + 1)
    wait_until_done(page)


def test_steps_5_to_8_trees_features_values_and_connect3(page, web_url: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{web_url}/tour/5")
    step(page, 5)
    feedback(page, "Click a cell")
    click_until_done(page, iter(range(5)))
    turn_by_key(page, 6)
    feedback(page, "Click a cell")
    usable(page).first.click()
    for text in ("Forget the boards", "Equal next moves", "Equal replies"):
        page.get_by_test_id("fold").click()
        page.locator("main [role=status]").filter(has_text=text).wait_for()
    feedback(page, "The feature in words")
    click_until_done(page, iter(range(1, 5)))
    page.get_by_text("different features").wait_for()
    turn_by_key(page, 7)
    for number in (1, 2, 3):
        page.get_by_text(f"Question {number} of 3").wait_for()
        page.get_by_test_id("choice-1").focus()
        page.keyboard.press("Enter")
    wait_until_done(page)
    page.get_by_text("features that the learners met").wait_for()
    turn_by_key(page, 8)
    feedback(page, "Click a column")
    columns = sorted({label.split()[0] for label in usable(page).evaluate_all("all => all.map(e => e.ariaLabel)")})
    for column in columns:
        usable(page).and_(page.locator(f'[aria-label^="{column} "]')).first.click()
        page.locator(".gl-card", has=page.locator(f'[aria-label="afterstate of (drop {column})"]')).wait_for()
        if page.locator("[data-done=true]").count():
            break
    wait_until_done(page)
    page.get_by_text("is called transfer").wait_for()


def test_steps_9_and_10_transfer_live_and_its_limits(page, web_url: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{web_url}/tour/9")
    step(page, 9)
    feedback(page, "Choose one")
    page.get_by_test_id("guess-better").click()
    page.get_by_role("button", name="as fast as possible").click()
    wait_until_done(page)
    assert re.search(r"In the first 30 matches, the pupil got \d+\.\d points a match (more|less)", feedback(page))
    page.get_by_test_id("curves").wait_for()
    turn_by_key(page, 10)
    for number, name in enumerate(("unlike", "changed")):
        page.get_by_test_id(f"experiment-{name}").get_by_test_id("guess-worse").click()
        page.get_by_test_id("feedback").nth(number).filter(has_text="In matches 1 to 30").wait_for()
    page.get_by_text("its teacher is nobody").wait_for()
    page.locator('.gl-steps a[aria-label="step 10: When it does not help, done"]').wait_for()
    page.get_by_text("against the weak opponent:").first.wait_for()
    assert page.get_by_test_id("next").count() == 0
    page.get_by_role("link", name="Watch learning").last.wait_for()
    _fits(page)
