"""Watched runs: curves that grow side by side, pace, interruptions, and results equal to those of the lab."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore import rulesheets
from gamelore.api.transfer_experiment import TransferExperiment
from gamelore.errors import GameloreError
from gamelore.gdl.limits import Limits
from gamelore.lab import feature_trees
from gamelore.lab.results import ResultStore
from gamelore.lab.stats import mean_curve
from gamelore.lab.studies.transfer_study import TransferPlan, TransferResult, transfer
from gamelore.learning.store.features import combine
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.series import CAP_VARIABLE
from gamelore.matches.opponents import opponent_settings
from gamelore.web.children import learning_run
from gamelore.web.children.learning_run import MOST_POINTS, PLAN, LearningPlan, LearningRun, PlannedGame, points

MEMORY = 2 << 30
THREE = ["baseline", "transfer", "lookahead"]
SMALL: dict[str, Any] = {"runs": 3, "matches": 60, "source_matches": 20}


def plan_of(game: str = "connect3", learners: Sequence[str] = THREE, **changes: Any) -> dict[str, Any]:
    sources = [{"game": "tictactoe"}] if "transfer" in learners else []
    return {"target": {"game": game}, "learners": [*learners], "sources": sources, **SMALL, **changes}


@pytest.fixture
def run() -> Iterator[LearningRun]:
    """A run; its thread ends with the test."""
    learning = LearningRun(memory=MEMORY, prepare_seconds=60.0)
    yield learning
    learning.set_speed(None)
    if learning.progress()["state"] != "idle":
        learning.stop()


def wait_for(run: LearningRun, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask for the progress until it meets a condition, or until the run is over."""
    while not condition(progress := run.progress()) and progress["state"] in ("running", "paused"):
        time.sleep(0.005)
    json.dumps(progress, allow_nan=False)
    return progress


def ended(run: LearningRun) -> dict[str, Any]:
    return wait_for(run, lambda _: False)


def targets(progress: dict[str, Any]) -> list[dict[str, Any]]:
    return [curve for curve in progress["curves"] if curve["learner"] != "source"]


def lab_result(folder: Path, source: str, target: str, learners: Sequence[str], **changes: Any) -> TransferResult:
    settings: dict[str, Any] = {**SMALL, **changes}
    plan = TransferPlan(
        source,
        (target,),
        opponent_settings("egreedy:filler=hashed"),
        LearnerSettings("transfer", "minimax", "eager"),
        tuple(learners),
        **settings,
    )
    return transfer(plan, folder, workers=1, progress=False)


def assert_same_rewards(one: Path, other: Path) -> None:
    """The stores have the same trials, with equal rewards, lengths and feature values."""
    columns = "id, run, settings, rewards, lengths, feature_values, result"
    rows = []
    for folder in (one, other):
        with ResultStore(folder / "results.db") as store:
            rows.append(store._connection.execute(f"SELECT {columns} FROM trial ORDER BY id, run").fetchall())
    assert rows[0]
    assert rows[0] == rows[1]


def test_the_numbers_and_figures_are_those_of_the_lab(run: LearningRun, tmp_path: Path) -> None:
    run.begin(plan_of(), str(tmp_path / "web"))
    progress = ended(run)
    assert (progress["state"], progress["error"], progress["stage"]) == ("done", None, "done")
    wanted = lab_result(tmp_path / "lab", "tictactoe", "connect3", THREE)
    assert_same_rewards(tmp_path / "web", tmp_path / "lab")
    figures = run.figures()
    assert figures["headline"] == wanted.report.headline
    assert figures["headline"].startswith("Transfer minus baseline, mean reward of matches 7 to 60 against the egreedy")
    assert figures["gains"] == TransferExperiment("", wanted.gains, wanted.rewards, None).rows
    assert [figure["svg"] for figure in figures["figures"]] == [picture.svg.read_text() for picture in wanted.pictures]
    assert figures["figures"][0]["caption"].startswith("connect3, after tictactoe, against egreedy: cumulative")
    assert figures["folder"] == str(tmp_path / "web")
    assert Path(figures["report"]).is_file()
    for curve in targets(progress):
        match, mean, low, high = curve["points"][-1]
        rewards = wanted.rewards["tictactoe", "connect3"][curve["learner"]]
        assert (match, low, high) == (60, None, None), "three runs are too few for an interval"
        assert mean == pytest.approx(rewards.mean(), abs=1e-3)


def test_an_oracle_advances_with_the_others(run: LearningRun, tmp_path: Path) -> None:
    """In the lab it has a batch of its own."""
    four = [*THREE, "oracle"]
    plan = plan_of("losetictactoe", four, matches=20)
    run.begin(plan, str(tmp_path / "web"))
    assert ended(run)["state"] == "done"
    lab_result(tmp_path / "lab", "tictactoe", "losetictactoe", four, matches=20)
    assert_same_rewards(tmp_path / "web", tmp_path / "lab")


def test_learners_grow_side_by_side(run: LearningRun, tmp_path: Path) -> None:
    run.set_speed(10)
    run.begin(plan_of(source_matches=3), str(tmp_path))
    progress = wait_for(run, lambda now: any(curve["done"] for curve in targets(now)))
    assert [curve["learner"] for curve in targets(progress)] == THREE
    assert {curve["done"] for curve in targets(progress)} < set(range(1, 60))
    assert len({curve["done"] for curve in targets(progress)}) <= 2, "the thread may be telling the next step"
    assert progress["speed"] == 10
    assert progress["stage"].startswith("learning connect3: baseline, ")
    run.set_speed(None)
    assert ended(run)["state"] == "done"


def test_a_paused_run_waits(run: LearningRun, tmp_path: Path) -> None:
    run.begin(plan_of(learners=["baseline"]), str(tmp_path))
    run.pause()
    progress = wait_for(run, lambda now: now["stage"].startswith("learning"))
    assert progress["state"] == "paused"
    assert progress["stage"] == "learning connect3: baseline"
    assert (progress["matches_per_second"], progress["seconds_left"]) == (None, None)
    assert progress["curves"] == [
        {
            "id": "connect3/egreedy/baseline",
            "learner": "baseline",
            "game": "connect3",
            "source": None,
            "runs": 3,
            "done": 0,
            "matches": 60,
            "points": [],
        }
    ]
    with pytest.raises(GameloreError, match="expected a run that is done, got one that is paused; wait"):
        run.figures()
    with pytest.raises(GameloreError, match="expected one run at a time, got another while one goes on; stop it"):
        run.begin(plan_of(), str(tmp_path / "other"))
    run.resume()
    assert ended(run)["state"] == "done"


def test_steps_follow_the_speed() -> None:
    pace = learning_run._Pace()
    assert pace.rate() is None
    pace.set_speed(1000)
    assert [pace.next(0), pace.next(100)] == [100, 200]
    assert pace.rate() is not None
    pace.set_speed(1e-300)
    assert pace.next(200) == 201
    threading.Timer(0.01, pace.set_speed, [None]).start()
    assert pace.next(201) > 201, "a new speed ends a long wait"
    assert pace.next(0) == 1, "another game begins with one match"


def test_a_pause_holds_the_next_step() -> None:
    pace, reached = learning_run._Pace(), threading.Event()
    pace.pause(True)

    def step() -> None:
        pace.next(0)
        reached.set()

    thread = threading.Thread(target=step)
    thread.start()
    assert not reached.wait(0.05)
    pace.pause(False)
    thread.join()
    assert reached.is_set()


CHILD = (sys.executable, "-m", "gamelore.web.children.learning_run")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_child_loses_only_the_series_that_it_played(run: LearningRun, tmp_path: Path) -> None:
    plan, folder = plan_of(source_matches=3), tmp_path / "web"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(do: str, **given: Any) -> Any:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({"do": do, **given}) + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())["ok"]

    assert ask("hello", memory=MEMORY, prepare_seconds=60.0, player="", options={}) is False
    ask("set_speed", matches_per_second=10)
    ask("begin", plan=plan, folder=str(folder))
    while not any(curve["done"] for curve in targets(ask("progress"))):
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    run.begin(json.loads((folder / PLAN).read_text()), str(folder))
    run.pause()
    progress = wait_for(run, lambda now: now["stage"].startswith("learning"))
    assert progress["stage"].startswith("learning connect3"), "the source is not played again"
    assert [curve["done"] for curve in progress["curves"]] == [3, 0, 0, 0]
    assert len(progress["curves"][0]["points"]) == 3
    assert progress["num_features"] > 0
    run.resume()
    assert ended(run)["state"] == "done"
    wanted = lab_result(tmp_path / "lab", "tictactoe", "connect3", THREE, source_matches=3)
    assert_same_rewards(folder, tmp_path / "lab")
    assert run.figures()["headline"] == wanted.report.headline


def test_a_stopped_run_goes_on_and_a_finished_one_is_only_drawn(run: LearningRun, tmp_path: Path) -> None:
    plan = plan_of(learners=["baseline"])
    run.begin(plan, str(tmp_path))
    run.pause()
    wait_for(run, lambda now: now["stage"].startswith("learning"))
    run.stop()
    assert ended(run)["state"] == "stopped"
    for _ in range(2):
        run.begin(plan, str(tmp_path))
        assert ended(run)["state"] == "done"
        assert [curve["done"] for curve in run.progress()["curves"]] == [60]
    with ResultStore(tmp_path / "results.db") as store:
        assert store.totals()["trials"] == 3
    more = plan_of(learners=["baseline", "lookahead"], runs=5)
    run.begin(more, str(tmp_path))
    progress = ended(run)
    assert [curve["runs"] for curve in progress["curves"]] == [5, 5]
    assert all(low <= mean <= high for curve in progress["curves"] for _, mean, low, high in curve["points"])


def test_a_learner_without_a_source(run: LearningRun, tmp_path: Path) -> None:
    run.begin(plan_of("tictactoe", ["baseline"], opponent="random"), str(tmp_path))
    assert ended(run)["state"] == "done"
    figures = run.figures()
    assert figures["headline"].startswith("Mean reward of matches 7 to 60 against the random opponent (3 runs, too few")
    assert [(row["quantity"], row["learner"], row["low"]) for row in figures["gains"]] == [("level", "baseline", None)]
    assert len(figures["figures"]) == 1
    assert run.features() == []


def test_each_source_has_a_transfer_learner_of_its_own(run: LearningRun, tmp_path: Path) -> None:
    sources = [{"game": "tictactoe"}, {"game": "capturego3", "role": "white"}]
    plan = plan_of("losetictactoe", ["baseline", "transfer"], sources=sources)
    run.begin({**plan, "target": {"game": "losetictactoe", "role": "oplayer"}}, str(tmp_path))
    progress = ended(run)
    assert [(curve["learner"], curve["game"], curve["source"]) for curve in progress["curves"]] == [
        ("source", "tictactoe", None),
        ("source", "capturego3.role2", None),
        ("baseline", "losetictactoe.role2", None),
        ("transfer", "losetictactoe.role2", "tictactoe"),
        ("transfer", "losetictactoe.role2", "capturego3.role2"),
    ]
    assert [figure["name"] for figure in run.figures()["figures"]] == [
        "tictactoe-to-losetictactoe-role2",
        "capturego3-role2-to-losetictactoe-role2",
    ]
    assert [source["source"] for source in run.features()] == ["tictactoe", "capturego3.role2"]


def test_features_and_the_values_that_they_carry(run: LearningRun, tmp_path: Path) -> None:
    run.begin(plan_of(learners=["transfer"]), str(tmp_path))
    progress = ended(run)
    (source,) = run.features()
    with ResultStore(tmp_path / "results.db") as store:
        values = store.values("tictactoe/egreedy/source", 3)
    carried = {row["text"]: (row["value"], row["visits"]) for row in source["features"]}
    assert carried == dict(combine(values))
    visits = [row["visits"] for row in source["features"]]
    assert visits == sorted(visits, reverse=True)
    assert [row["label"] for row in source["features"]][:2] == ["a", "b"]
    assert {row["runs"] for row in source["features"]} <= {1, 2, 3}
    trees = {row["text"]: row["tree"] for row in source["features"]}
    assert trees["{n},{n,W}"] == " ■\n┌┴─┐\n●  ●\n│ ┌┴┐\n■ ■ □"
    assert "<svg" in source["svg"]
    assert progress["num_features"] == source["num_features"] == len(carried)
    assert source["left_out"] == ""
    assert run.figures()["headline"].startswith("Mean reward of matches 7 to 60"), "there is no baseline to compare"


def test_large_features_are_counted_and_not_sent(
    run: LearningRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_trees, "MOST_LETTERS", 8)
    run.begin(plan_of(learners=["transfer"], matches=2), str(tmp_path))
    assert ended(run)["state"] == "done"
    (source,) = run.features()
    assert 0 < len(source["features"]) < source["num_features"]
    assert max(len(row["text"]) for row in source["features"]) <= 8
    missing = source["num_features"] - len(source["features"])
    assert source["left_out"].startswith(f"{missing} of {source['num_features']} features are not drawn")


def test_texts_of_rulesheets_are_files_of_the_folder(run: LearningRun, tmp_path: Path) -> None:
    text = rulesheets.path("tictactoe").read_text(encoding="utf-8")
    name = "../<script>alert(1)</script> $x^2$"
    plan = plan_of(learners=["baseline"], target={"game": text, "name": name, "role": "oplayer"}, matches=20)
    run.begin(plan, str(tmp_path / "web"))
    assert ended(run)["state"] == "done"
    (path,) = (tmp_path / "web" / "rules").rglob("*.kif")
    assert path.parent == tmp_path / "web" / "rules" / "target"
    assert path.read_text(encoding="utf-8") == text
    assert json.loads((tmp_path / "web" / PLAN).read_text())["target"]["name"] == name
    assert "<script" not in json.dumps([run.progress(), run.figures()])
    plain = plan_of(learners=["baseline"], target={"game": "tictactoe", "role": "oplayer"}, matches=20)
    run.begin(plain, str(tmp_path / "plain"))
    assert ended(run)["state"] == "done"
    rewards = []
    for folder, game in (("web", path.stem), ("plain", "tictactoe")):
        with ResultStore(tmp_path / folder / "results.db") as store:
            rewards.append(store.rewards(f"{game}.role2/egreedy/baseline"))
    assert np.array_equal(rewards[0], rewards[1])


BROKEN = "(role white)\n(init start)\n(legal white go"


def test_errors_in_rules_have_their_place(run: LearningRun, tmp_path: Path) -> None:
    run.begin(plan_of(learners=["baseline"], target={"game": BROKEN}), str(tmp_path))
    progress = ended(run)
    assert progress["state"] == "failed"
    assert progress["error"]["error"] == "GDLSyntaxError"
    assert progress["error"]["line"] == 3
    with pytest.raises(GameloreError, match="got one that is failed"):
        run.figures()


def failed(run: LearningRun, plan: dict[str, Any], folder: Path) -> str:
    """Return the message of a run that fails."""
    run.begin(plan, str(folder))
    progress = ended(run)
    assert progress["state"] == "failed"
    message: str = progress["error"]["message"]
    return message


def test_failures_are_told_in_sentences(run: LearningRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = plan_of(learners=["baseline"], target={"game": "connect3", "role": "nobody"})
    assert failed(run, nobody, tmp_path / "a").startswith("expected a role of connect3 (red, yellow), got 'nobody'")
    with monkeypatch.context() as patch:
        patch.setenv(CAP_VARIABLE, "1")
        message = failed(run, plan_of("connectfour", ["lookahead"]), tmp_path / "b")
    assert message.startswith("expected eager initialisation to need at most 1 MiB, got an estimate of")
    run.begin(plan_of(learners=["baseline"]), str(tmp_path / "c"))
    assert ended(run)["state"] == "done"
    before = (tmp_path / "c" / PLAN).read_text()
    message = failed(run, plan_of(learners=["baseline"], matches=61), tmp_path / "c")
    assert message.startswith("expected the settings of the trials in")
    assert "matches was 60, is 61" in message
    assert (tmp_path / "c" / PLAN).read_text() == before
    monkeypatch.setattr(learning_run, "transfer", _exhausted)
    assert failed(run, plan_of(learners=["baseline"]), tmp_path / "d").startswith("expected a run that fits into the")


def _exhausted(*_: Any, **__: Any) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ["baseline", "genius"]}, r"expected a learner \(baseline, transfer, .*got 'genius'"),
        ({"learners": []}, "expected every learner once, got none; choose some"),
        ({"learners": ["baseline", "baseline"]}, "expected every learner once, got baseline, baseline"),
        ({"sources": []}, "expected sources for the learner transfer, got no source"),
        ({"learners": ["baseline"]}, "expected sources for the learner transfer, got sources without it"),
        ({"sources": [{"game": "tictactoe"}] * 9}, "expected at most 8 sources, got 9"),
        ({"opponent": "kasparov"}, "expected an opponent .*, got 'kasparov'"),
        ({"runs": 0}, "expected a whole number of runs from 1, got 0"),
        ({"runs": 31}, "expected at most 30 runs, got 31"),
        ({"matches": 10_001}, "expected at most 10000 matches, got 10001"),
        ({"source_epsilon": 1.5}, "expected a source_epsilon from 0 to 1, got 1.5"),
        ({"runs": "many"}, r"expected the plan of a job, got another value: Expected `int`, got `str` - at `\$.runs`"),
        ({"initialisation": "late"}, r"expected the plan of a job, got another value: Invalid enum value 'late'"),
        ({"speed": 3}, "expected the plan of a job, got another value: Object contains unknown field `speed`"),
    ],
)
def test_plans_are_checked_before_anything_happens(
    run: LearningRun, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GameloreError, match=message):
        run.begin({**plan_of(), "sources": [{"game": "tictactoe"}], **changes}, str(tmp_path / "web"))
    assert run.progress()["state"] == "idle"
    assert not list(tmp_path.iterdir())


def test_a_plan_reads_no_files_of_this_machine(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.kif"
    sheet.write_text(rulesheets.path("tictactoe").read_text(encoding="utf-8"), encoding="utf-8")
    for path in (str(sheet), "../mine.kif", "/etc/passwd", "mine"):
        with pytest.raises(GameloreError, match="expected the text of a rulesheet or a shipped game"):
            PlannedGame(path).kept(tmp_path / "rules")
    assert PlannedGame("breakthrough:width=5").kept(tmp_path / "rules") == "breakthrough:width=5"
    assert not (tmp_path / "rules").exists()


def test_the_requests_need_a_run(run: LearningRun) -> None:
    for request in (run.pause, run.resume, run.stop, run.figures):
        with pytest.raises(GameloreError, match="expected a run, got none; begin one first"):
            request()
    for speed in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(GameloreError, match="expected a speed above 0"):
            run.set_speed(speed)
    assert run.features() == []
    assert run.progress()["state"] == "idle"
    assert not run.idle()


def test_points_are_those_of_the_lab_thinned() -> None:
    rewards = np.random.default_rng(1).choice([0.0, 50.0, 100.0], (5, 1000)).astype(np.float32)
    shown, curve = points(rewards), mean_curve(rewards)
    assert len(shown) == MOST_POINTS
    assert (shown[0][0], shown[-1][0]) == (1, 1000)
    for match, mean, low, high in shown:
        wanted = (curve.mean[match - 1], curve.low[match - 1], curve.high[match - 1])
        assert (mean, low, high) == pytest.approx(wanted, abs=1e-3)
    assert [match for match, *_ in points(rewards[:, :7])] == [1, 2, 3, 4, 5, 6, 7]
    assert {(low, high) for _, _, low, high in points(rewards[:4])} == {(None, None)}


def test_a_plan_is_the_same_after_a_round_trip_as_json(tmp_path: Path) -> None:
    plan = LearningPlan.of(plan_of(opponent="weak:filler=first", source_epsilon=0.5))
    (made,) = plan.plans(tmp_path, Limits())
    assert (made.source, made.targets, made.learners) == ("tictactoe", ("connect3",), tuple(THREE))
    assert (made.runs, made.matches, made.source_matches, made.source_epsilon) == (3, 60, 20, 0.5)
    assert made.opponent == opponent_settings("weak:filler=first")


def test_two_sources_of_the_same_name_are_refused(run: LearningRun, tmp_path: Path) -> None:
    sheets = [rulesheets.path(game).read_text(encoding="utf-8") for game in ("tictactoe", "losetictactoe")]
    sources = [{"game": text, "name": "mine"} for text in sheets]
    message = failed(run, plan_of(learners=["transfer"], sources=sources), tmp_path)
    assert message.startswith("expected one setting with the name mine/egreedy/source, got two")
