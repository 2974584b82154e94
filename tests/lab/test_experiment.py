"""The runner: batches, workers, resuming."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from gamelore.errors import ExperimentError, GroundingError
from gamelore.gdl.limits import Limits
from gamelore.lab.experiment import (
    Batch,
    Lane,
    PrintedValues,
    SettingGrid,
    batches,
    play_batch,
    run_grid,
)
from gamelore.lab.papers.banerjee2007.plan import printed_values
from gamelore.lab.results import Outcome, ResultStore
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from gamelore.workers.processes import Report
from gamelore.workers.processes import _Team as Team
from lab.pretended import die, fail, make_setting, make_source, pretend


def small_grid(runs: int = 3) -> SettingGrid:
    source = make_source(runs=runs)
    return SettingGrid.of([make_setting("a", runs=runs, source=source), make_setting("b", runs=runs, game="other")])


def test_batches_hold_one_game_and_are_shared_evenly(store: ResultStore) -> None:
    settings = [make_setting("a", runs=5), make_setting("b", runs=4), make_setting("c", game="other")]
    found = list(batches(SettingGrid.of(settings).trials(), store, workers=2))
    assert [(batch.game, len(batch.lanes)) for batch in found] == [("game", 4), ("game", 5), ("other", 1), ("other", 2)]
    assert len({lane.trial.key for batch in found for lane in batch.lanes}) == 12


def test_oracles_have_small_batches_of_their_own(store: ResultStore) -> None:
    """Each of them needs a table of all positions, and its graph is kept for no other batch."""
    oracle = make_setting("oracle", runs=60, learner=LearnerSettings("oracle"))
    trials = SettingGrid.of([make_setting("a", runs=60), oracle]).trials()
    shared = [(batch.expands_all, len(batch.lanes)) for batch in batches(trials, store, workers=2)]
    assert sorted(shared) == [(False, 30), (False, 30), (True, 20), (True, 20), (True, 20)]


def test_learners_with_turns_have_batches_of_their_own(store: ResultStore) -> None:
    deep = make_setting("deep", runs=200, learner=LearnerSettings("transfer", turns=1, control="minimax"))
    trials = SettingGrid.of([make_setting("a", runs=200), deep]).trials()
    shared = [(batch.lanes[0].trial.setting.learner.turns, len(batch.lanes)) for batch in batches(trials, store)]
    assert sorted(shared) == [(0, 100), (0, 100), (1, 66), (1, 67), (1, 67)]
    assert all(len({lane.trial.setting.id for lane in batch.lanes}) == 1 for batch in batches(trials, store))


def test_all_learners_of_a_game_can_be_together(store: ResultStore) -> None:
    learners = (LearnerSettings(), LearnerSettings("oracle"), LearnerSettings("transfer", turns=1, control="minimax"))
    settings = [make_setting(str(i), runs=30, learner=learner) for i, learner in enumerate(learners)]
    (batch,) = batches(SettingGrid.of(settings).trials(), store, workers=1, together=True)
    assert len(batch.lanes) == 90
    assert batch.expands_all


def test_watched_trials_are_played_in_this_process(store: ResultStore) -> None:
    with pytest.raises(ExperimentError, match="expected 1 worker for trials that are watched, got 2 workers"):
        run_grid(small_grid(), store, workers=2, progress=False, watch=lambda batch, done, rewards: 1)
    with pytest.raises(ExperimentError, match="got the cluster ray; set workers to 1"):
        run_grid(small_grid(), store, workers=1, cluster="ray", progress=False, watch=lambda batch, done, rewards: 1)


def test_everything_is_played_once(store: ResultStore) -> None:
    summary = run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    assert (summary.played, summary.stored) == (9, 0)
    again = run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    assert (again.played, again.stored) == (0, 9)
    more = run_grid(small_grid(runs=5), store, workers=1, progress=False, play=pretend)
    assert (more.played, more.stored) == (6, 9)


def test_targets_get_the_values_of_their_own_source_run(store: ResultStore) -> None:
    given: dict[int, float] = {}

    def watch(batch: Batch, report: Report) -> list[Outcome]:
        given.update({lane.trial.run: lane.values["L,{W}"][0] for lane in batch.lanes if lane.values})
        return pretend(batch, report)

    run_grid(small_grid(), store, workers=1, progress=False, play=watch)
    assert given == {0: 0.0, 1: 1.0, 2: 2.0}


def test_printed_values_stand_for_a_source(store: ResultStore) -> None:
    setting = make_setting("printed", printed=PrintedValues("weak", printed_values("weak")), runs=1)
    (batch,) = batches(SettingGrid.of([setting]).trials(), store, workers=1)
    assert batch.lanes[0].values is not None
    assert batch.lanes[0].values["{D}"] == (50.0, 1)


def test_a_run_that_broke_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def break_off(batch: Batch, report: Report) -> list[Outcome]:
        if batch.game == "other":
            raise KeyboardInterrupt
        return pretend(batch, report)

    grid = small_grid()
    with ResultStore(tmp_path / "broken.db") as store:
        with pytest.raises(KeyboardInterrupt):
            run_grid(grid, store, workers=1, progress=False, play=break_off)
        assert len(store.finished()) == 6
    with ResultStore(tmp_path / "broken.db") as store, ResultStore(tmp_path / "whole.db") as whole:
        assert run_grid(grid, store, workers=1, progress=False, play=pretend).stored == 6
        run_grid(grid, whole, workers=1, progress=False, play=pretend)
        for name in grid.settings:
            assert np.array_equal(store.rewards(name), whole.rewards(name))


def test_two_workers_find_the_same_as_one(tmp_path: Path) -> None:
    grid = small_grid()
    with ResultStore(tmp_path / "one.db") as one, ResultStore(tmp_path / "two.db") as two:
        run_grid(grid, one, workers=1, progress=False, play=pretend)
        run_grid(grid, two, workers=2, progress=False, play=pretend)
        for name in grid.settings:
            assert np.array_equal(one.rewards(name), two.rewards(name))


PATHS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
KILLED = """
from lab.pretended import linger
from lab.test_experiment import small_grid
from gamelore.lab.experiment import run_grid
from gamelore.lab.results import ResultStore

if __name__ == "__main__":
    with ResultStore("results.db") as store:
        run_grid(small_grid(), store, workers=2, progress=False, play=linger)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_run_keeps_what_was_finished_and_leaves_no_worker_behind(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": PATHS, "PRETENDED": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "killed.py"], cwd=tmp_path, env=environment)
    wait_until(lambda: len(found_in(tmp_path)) == 6 and any(path.name.isdigit() for path in tmp_path.iterdir()))
    workers = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_alive(worker) for worker in workers))
    with ResultStore(tmp_path / "results.db") as store:
        summary = run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    assert (summary.stored, summary.played) == (6, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("whole_group", [True, False], ids=["Ctrl-C", "the caller alone"])
def test_an_interrupted_run_ends_at_once_without_a_word_of_its_workers(tmp_path: Path, whole_group: bool) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": PATHS, "PRETENDED": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "killed.py"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: len(found_in(tmp_path)) == 6 and any(path.name.isdigit() for path in tmp_path.iterdir()))
    send, whom = (os.killpg, process.pid) if whole_group else (os.kill, process.pid)
    send(whom, signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # its workers would linger for ten minutes
    assert errors.count("Traceback") == 1
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "SpawnProcess" not in errors


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something that is to happen soon."""
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "waited for too long"
        time.sleep(0.05)


def found_in(folder: Path) -> set[tuple[str, int]]:
    if not (folder / "results.db").exists():
        return set()
    try:
        with ResultStore(folder / "results.db") as store:
            return store.finished()
    except ExperimentError:  # not yet there as a whole
        return set()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")  # dead, but not buried


def test_a_worker_that_dies_is_reported(store: ResultStore) -> None:
    with pytest.raises(ExperimentError, match="fewer --workers, it continues after the finished trials"):
        run_grid(small_grid(), store, workers=2, progress=False, play=die)


UNGUARDED = """
from lab.pretended import pretend
from lab.test_experiment import small_grid
from gamelore.lab.experiment import run_grid
from gamelore.lab.results import ResultStore

print("once")
with ResultStore("results.db") as store:
    print(run_grid(small_grid(), store, workers=2, progress=False, play=pretend).played)
"""
OWN_PLAY = UNGUARDED.replace("import pretend", "import pretend as plays").replace(
    'print("once")', "def pretend(*given):\n    return plays(*given)"
)
GUARDED = OWN_PLAY.replace("with ResultStore", 'if __name__ == "__main__":\n  with ResultStore').replace(
    "    print", "     print"
)


def script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What Python says to a text: that of a file script.py in this folder, and on standard input."""
    (folder / "script.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("arguments", [["script.py"], ["-"]], ids=["file", "standard input"])
def test_a_script_without_a_guard_runs_once(tmp_path: Path, arguments: list[str]) -> None:
    ended = script(tmp_path, UNGUARDED, *arguments)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("once\n9\n", "", 0)


@pytest.mark.skipif(not Path("/proc").exists(), reason="the process to kill is found in /proc")
def test_a_killed_helper_of_python_says_nothing(tmp_path: Path) -> None:
    ended = script(tmp_path, UNGUARDED.replace("import pretend", "import kill_the_tracker as pretend"), "script.py")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("once\n9\n", "", 0)


def test_an_error_of_a_job_says_where_it_arose(store: ResultStore) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_grid(small_grid(), store, workers=2, progress=False, play=fail)
    assert "pretended.py" in raised.value.__notes__[0]


def test_a_guarded_script_may_do_the_jobs_itself(tmp_path: Path) -> None:
    ended = script(tmp_path, GUARDED, "script.py")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("9\n", "", 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["script.py"],
            "script.py with the function `play`, but a worker ended during the import; put the code that the "
            "script runs under `if",
        ),
        (
            ["-"],
            "expected a function that workers can import, got a function of a notebook or of standard input; "
            "move it to a",
        ),
    ],
)
def test_a_script_that_workers_cannot_import_is_told(tmp_path: Path, arguments: list[str], told: str) -> None:
    ended = script(tmp_path, OWN_PLAY, *arguments)
    assert ended.returncode == 1
    *_, last = ended.stderr.strip().splitlines()
    assert last.startswith("gamelore.errors.ExperimentError: expected ")
    assert told in last
    assert "memory" not in ended.stderr
    assert "freeze_support" not in ended.stderr


def test_results_of_other_settings_are_refused(store: ResultStore) -> None:
    run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    with pytest.raises(ExperimentError, match="choose another folder"):
        run_grid(SettingGrid.of([make_setting("b", game="third")]), store, workers=1, progress=False, play=pretend)


def test_rules_that_changed_are_found_before_the_first_match(tmp_path: Path) -> None:
    sheet = tmp_path / "own.kif"
    rules = "(role me)\n(init (n 0))\n(legal me go)\n(<= (next (n 1)) (does me go))\n(<= terminal (true (n 1)))\n"
    sheet.write_text(rules + "(goal me 100)\n")
    grid = SettingGrid.of([make_setting("own", game=str(sheet), runs=1, opponent=OpponentSettings("random"))])
    with ResultStore(tmp_path / "results.db") as store:
        assert run_grid(grid, store, workers=1, progress=False).played == 1
        sheet.write_text("; a comment changes nothing\n" + rules + "(goal me 100)\n")
        assert run_grid(grid, store, workers=1, progress=False).stored == 1
        sheet.write_text(rules + "(goal me 50)\n")
        with pytest.raises(ExperimentError, match=r"expected the rules of .*own\.kif with which .* was made"):
            run_grid(grid, store, workers=1, progress=False)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_process_loads_the_games_within_the_limits(tmp_path: Path, workers: int) -> None:
    grid = SettingGrid.of([make_setting("own", game="tictactoe", runs=2, opponent=OpponentSettings("random"))])
    with (
        ResultStore(tmp_path / "results.db") as store,
        pytest.raises(GroundingError, match="expected the game to load within 0 s"),
    ):
        run_grid(grid, store, workers=workers, progress=False, limits=Limits(seconds=0))


def test_real_matches_do_not_depend_on_the_batch() -> None:
    setting = make_setting(
        "tictactoe/egreedy/source", game="tictactoe", runs=4, matches=30, stage="source", extract=True,
        learner=LearnerSettings(epsilon=0.5), opponent=OpponentSettings(filler="hashed"),
    )  # fmt: skip
    counted: list[int] = []
    lanes = [Lane(trial, None) for trial in SettingGrid.of([setting]).trials()]
    together = play_batch(Batch("tictactoe", 0, 30, "source", tuple(lanes)), counted.append)
    (alone,) = play_batch(Batch("tictactoe", 0, 30, "source", (lanes[2],)), counted.append)
    assert np.array_equal(alone.rewards, together[2].rewards)
    assert np.array_equal(alone.lengths, together[2].lengths)
    assert alone.values is not None
    assert together[2].values is not None
    assert dict(alone.values) == dict(together[2].values)
    assert sum(counted) == 5 * 30
    assert set(np.unique(alone.rewards)) <= {0.0, 50.0, 100.0}


def test_a_worker_that_dies_is_noticed_if_its_end_of_the_pipe_stays_open() -> None:
    """On Windows it stays open if the worker has not taken it over yet."""
    context, team = get_context("spawn"), Team(script=None)
    ours, theirs = context.Pipe()
    team.add(context.Process(target=os._exit, args=(3,)), ours)
    with theirs, pytest.raises(ExperimentError, match="one died"):
        list(team.do(["job"], lambda steps: None))
    team.dismiss()
