"""Experiments on a Ray cluster: the rows of the local pool, killed workers and nodes, other versions, addresses."""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import gamelore
from gamelore.errors import ExperimentError
from gamelore.lab.experiment import Batch, SettingGrid, batches, run_grid
from gamelore.lab.results import Outcome, ResultStore
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from gamelore.workers import cluster
from gamelore.workers.processes import Report
from lab.pretended import die, fail, make_setting, make_source, pretend

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("cluster"),  # so that it starts once
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'gamelore[ray]'"),
    pytest.mark.skipif(sys.platform != "linux", reason="several nodes on one machine need Linux"),
]
TESTS = Path(__file__).parents[1]


def paths(first: Path = TESTS) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(first), str(TESTS)])}


@pytest.fixture(scope="module", autouse=True)
def no_token() -> Iterator[None]:
    """Clusters without tokens: none is made in the home of the user, and one that is there changes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(scope="module")
def machines(no_token: None) -> Iterator[Any]:
    """A head without cores, and two nodes with one core each, all on this machine."""
    from ray.cluster_utils import Cluster

    soon = {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 4}
    head = {"num_cpus": 0, "env_vars": paths(), "_system_config": soon}
    started = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        started.add_node(num_cpus=1, env_vars=paths())
    yield started
    started.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    with ResultStore(tmp_path / "results.db") as opened:
        yield opened


def learners(runs: int = 2) -> SettingGrid:
    """Runs that learn tic-tac-toe, and runs of another game with and without their values."""
    given: dict[str, Any] = {"matches": 20, "runs": runs, "opponent": OpponentSettings(filler="hashed")}
    source = make_source("source", game="tictactoe", learner=LearnerSettings(epsilon=0.5), **given)
    transfer = make_setting("transfer", game="connect3", source=source, learner=LearnerSettings("transfer"), **given)
    return SettingGrid.of([transfer, make_setting("baseline", game="connect3", **given)])


def pretended(runs: int = 3) -> SettingGrid:
    return SettingGrid.of(
        [make_setting("a", runs=runs, source=make_source(runs=runs)), make_setting("b", game="other")]
    )


def rows(file: Path) -> list[tuple[Any, ...]]:
    """All trials of a store as they lie in it, without the times."""
    columns = "id, run, settings, version, game, rules_hash, engine, rewards, lengths, feature_values, result"
    with sqlite3.connect(file) as store:
        return list(store.execute(f"SELECT {columns} FROM trial ORDER BY id, run"))


def test_a_cluster_plays_the_same_rows_to_the_bit(machines: Any, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with ResultStore(tmp_path / "here.db") as here, ResultStore(tmp_path / "there.db") as there:
        run_grid(learners(), here, workers=1, progress=False)
        summary = run_grid(learners(), there, cluster=machines.address, progress=lambda *now: told.append(now))
    assert summary.played == 6
    assert told[-1] == ("matches", 120, 120)
    assert rows(tmp_path / "here.db") == rows(tmp_path / "there.db")


@pytest.mark.long
def test_nodes_need_no_file_of_the_caller(
    machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ResultStore
) -> None:
    """A relative path names nothing in the folder where a node works."""
    monkeypatch.chdir(tmp_path)
    Path("own.kif").write_text(
        "(role me)\n(init (n 0))\n(legal me go)\n(<= (next (n 1)) (does me go))\n(<= terminal (true (n 1)))\n"
        "(goal me 70)\n"
    )
    setting = make_setting("own", game="own.kif", opponent=OpponentSettings("random"))
    run_grid(SettingGrid.of([setting]), store, cluster=machines.address, progress=False)
    assert (store.rewards("own") == 70).all()


def hold(batch: Batch, report: Report, told: Path) -> list[Outcome]:
    """The first job of this game waits for its end, and says where."""
    import ray

    with suppress(FileExistsError):
        if batch.game == "other":
            told.with_suffix(".taken").mkdir()
            told.with_suffix(".new").write_text(ray.get_runtime_context().get_node_id())
            told.with_suffix(".new").rename(told)
            time.sleep(600)
    return pretend(batch, report)


def test_a_killed_node_loses_no_trial(machines: Any, tmp_path: Path) -> None:
    held = tmp_path / "held"

    def kill() -> None:
        while not held.exists():
            time.sleep(0.05)
        (lost,) = (node for node in machines.worker_nodes if node.node_id == held.read_text())
        machines.remove_node(lost, allow_graceful=False)

    killer = Thread(target=kill, daemon=True)
    killer.start()
    there_now: dict[str, Any] = {"cluster": machines.address, "progress": False}
    with ResultStore(tmp_path / "here.db") as here, ResultStore(tmp_path / "there.db") as there:
        run_grid(pretended(), there, play=partial(hold, told=held), **there_now)
        killer.join()
        machines.add_node(num_cpus=1, env_vars=paths())
        assert run_grid(pretended(4), there, play=pretend, **there_now).played == 2
        run_grid(pretended(4), here, workers=1, progress=False, play=pretend)
    assert rows(tmp_path / "here.db") == rows(tmp_path / "there.db")


def fail_last(batch: Batch, report: Report, ended: Path) -> list[Outcome]:
    """The first of four jobs fails, half a second after the others have ended."""
    if batch.lanes[0].trial.run > 0:
        outcomes = pretend(batch, report)
        (ended / str(batch.lanes[0].trial.run)).touch()
        return outcomes
    give_up = time.monotonic() + 60
    while len(list(ended.iterdir())) < 3 and time.monotonic() < give_up:
        time.sleep(0.05)
    time.sleep(0.5)
    return fail(batch, report)


def one_by_one(trials: list[Any], store: ResultStore, workers: int) -> list[Batch]:
    """Each trial as a job of its own."""
    return [batch for trial in trials for batch in batches([trial], store)]


def test_an_error_of_a_job_says_where_it_arose_and_keeps_what_is_done(
    machines: Any, store: ResultStore, tmp_path: Path
) -> None:
    (ended := tmp_path / "ended").mkdir()
    grid = SettingGrid.of([make_setting("b", game="other", runs=4)])
    play = partial(fail_last, ended=ended)
    with pytest.raises(ZeroDivisionError) as raised:
        run_grid(grid, store, cluster=machines.address, progress=False, play=play, jobs=one_by_one)
    assert "pretended.py" in raised.value.__notes__[0]
    assert set(store.finished()) == {("b", 1), ("b", 2), ("b", 3)}


class Awkward(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def raise_awkward(batch: Batch, report: Report) -> list[Outcome]:
    raise Awkward("one", "two")


@pytest.mark.long
def test_an_error_that_does_not_come_back_is_told_as_text(machines: Any, store: ResultStore) -> None:
    with pytest.raises(ExperimentError, match=r"expected a job without errors(.|\n)*raise Awkward"):
        run_grid(pretended(1), store, cluster=machines.address, progress=False, play=raise_awkward)


@pytest.mark.long
def test_a_job_that_kills_its_workers_is_told(machines: Any, store: ResultStore) -> None:
    with pytest.raises(
        ExperimentError, match=r"one lost its worker 4 times, .* it continues after the finished trials"
    ):
        run_grid(pretended(1), store, cluster=machines.address, progress=False, play=die)


def test_another_version_of_gamelore_is_refused_before_the_first_trial(tmp_path: Path, store: ResultStore) -> None:
    from ray.cluster_utils import Cluster

    other = tmp_path / "src" / "gamelore"
    shutil.copytree(Path(gamelore.__file__).parent, other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "errors.py").open("a") as file:
        file.write("\n# another version\n")
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "env_vars": paths(other.parent)})
    try:
        with pytest.raises(ExperimentError, match=r"expected the versions of this machine .* got gamelore .* instead"):
            run_grid(pretended(), store, cluster=machines.address, progress=False, play=pretend)
    finally:
        machines.shutdown()
    assert not store.finished()


def test_a_worker_compares_versions_too(machines: Any, store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may join after the check of all nodes."""
    ours = cluster.versions()
    monkeypatch.setattr(cluster, "_check_nodes", lambda: None)
    monkeypatch.setattr(cluster, "versions", lambda: {**ours, "numpy": "1.0"})
    with pytest.raises(ExperimentError, match=r"on the node .*, got numpy .* instead of 1\.0"):
        run_grid(pretended(1), store, cluster=machines.address, progress=False, play=pretend)


def test_another_gamelore_may_tell_of_other_libraries() -> None:
    with pytest.raises(ExperimentError, match=r"on the node far, got numpy unknown instead of 2\.0; install"):
        cluster._compare("far", {"gamelore": "1", "jax": "3"}, {"gamelore": "1", "numpy": "2.0"})


@pytest.mark.parametrize("address", ["127.0.0.1:9", "rai", ""])
def test_a_wrong_address_is_told(store: ResultStore, address: str) -> None:
    with pytest.raises(ExperimentError, match=f"expected the head of a Ray cluster at {address!r}, got none"):
        run_grid(pretended(), store, cluster=address, progress=False, play=pretend)


def test_a_missing_ray_is_told(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(ExperimentError, match=r"expected Ray for a cluster, got none; pip install 'gamelore\[ray\]'"):
        run_grid(pretended(), store, cluster="ray", progress=False, play=pretend)


@pytest.mark.long
def test_a_program_stays_on_its_cluster(machines: Any, store: ResultStore) -> None:
    import ray

    ray.init(address=machines.address, log_to_driver=False)
    by_name = f"localhost:{machines.address.rpartition(':')[2]}"
    try:
        with pytest.raises(ExperimentError, match=r"no connection to another cluster than 10\.0\.0\.1:1, got one to"):
            run_grid(pretended(), store, cluster="10.0.0.1:1", progress=False, play=pretend)
        run_grid(pretended(1), store, cluster="ray", progress=False, play=pretend)
        run_grid(pretended(2), store, cluster=by_name, progress=False, play=pretend)
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_a_cluster_of_this_machine_starts_and_ends_with_the_tournament(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray may set environment variables, and store a token in the home; afterwards the former are as before."""
    import ray

    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.setenv("HOME", str(tmp_path))
    nodes = []

    def lowest(position: gamelore.Position, role: str) -> str:
        return position.legal[role][0]

    def tell(stage: str, done: int, total: int) -> None:
        nodes.append(ray.nodes() if ray.is_initialized() else [])

    players = {"clever": "egreedy", "other": lowest}
    before = dict(os.environ)
    there = gamelore.tournament("tictactoe", players, matches=4, seed=3, cluster="ray", workers=1, progress=tell)
    here = gamelore.tournament("tictactoe", players, matches=4, seed=3, progress=False)
    assert there.rows == here.rows
    assert [node["Resources"]["CPU"] for node in nodes[-1]] == [1.0]
    assert not ray.is_initialized()
    assert dict(os.environ) == before
