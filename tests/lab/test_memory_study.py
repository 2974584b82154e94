"""The study of the memory: its units, its arms, and what its contests say about players that differ for sure."""

from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from gamelore import load
from gamelore.lab.experiment import SettingGrid, run_grid
from gamelore.lab.results import ResultStore, Trial
from gamelore.lab.studies import memory_study
from gamelore.lab.studies.memory_study import (
    ABOUT_GAME,
    Arm,
    ContestSide,
    MemoryJob,
    MemorySetting,
    memory_jobs,
    play_memory_job,
    shuffled,
    studied,
    teachings,
)
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, Lessons, OpeningMove, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import StoredNetwork, StoredValue
from gamelore.memory import course as course_module
from gamelore.memory import rivals as rivals_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.lesson import restored_network, stored_network
from gamelore.networks.self_play import SelfPlay, SelfPlaySettings
from gamelore.search.settings import TeachingSettings

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)
KNOWN = MemorySetting("known", "breakthrough", 1, 2, "known", ("connect3",), 1.0, 0.1, 2.0, 2, 2)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (course_module, rivals_module, tuition_module):
        monkeypatch.setattr(module, "TeachingSettings", lambda simulations=1 << 60: QUICK)


def test_contests_of_the_first_teachings_come_first(tmp_path: Path) -> None:
    other = replace(KNOWN, id="other", arm="default")
    trials = [Trial(setting, run) for setting in (KNOWN, other) for run in (0, 1)]
    jobs = memory_jobs(tmp_path, trials)
    expected = [("known", 0), ("other", 0), ("known", 1), ("other", 1)]
    assert [(job.trial.setting.id, job.trial.run) for job in jobs] == expected
    assert [job.size for job in jobs] == [8] * 4
    long = replace(KNOWN, id="long", study=5.0)
    settings = [long, KNOWN, other, replace(KNOWN, id="another game", game="tictactoe")]
    jobs = memory_jobs(tmp_path, [Trial(setting, 0) for setting in settings])
    assert [job.trial.setting.id for job in jobs] == ["known", "another game", "other", "long"]


def test_a_teaching_is_made_once(tmp_path: Path) -> None:
    game = load("breakthrough")
    path = studied(game, 0, 0.3, tmp_path)
    before = path.stat().st_mtime_ns
    assert studied(game, 0, 0.3, tmp_path) == path
    assert path.stat().st_mtime_ns == before
    with KnowledgeStore(path) as knowledge:
        assert Lessons(knowledge).find(game.rules_hash) is not None
    assert studied(game, 1, 0.3, tmp_path) != path


def test_a_shuffled_lesson_has_the_weights_of_the_other_game() -> None:
    game = load("tictactoe")
    weights = {f"(cell {number} 1 w)": (float(number), -float(number)) for number in range(1, 9)}
    value = StoredValue(0.5, 0.25, None, (0.125, 0.375), weights)
    lesson = StoredLesson(3, 10, 1000, 2.0, value, b"progress", id="an id")
    mixed = shuffled(game, lesson, np.random.default_rng(1))
    assert sorted(mixed.value.weights.values()) == sorted(weights.values())
    assert mixed.value.weights.keys() <= set(game.fact_texts)
    assert (mixed.value.determination, mixed.value.constants, mixed.progress) == (0.5, (0.125, 0.375), b"")
    assert mixed.id == "an id", "so that tests of the game's own lesson do not count"
    assert shuffled(game, lesson, np.random.default_rng(2)).value.weights != mixed.value.weights


def test_a_shuffled_network_has_the_entries_of_the_other_game(monkeypatch: pytest.MonkeyPatch) -> None:
    game, other = load("tictactoe"), load("connect3")
    self_play = SelfPlay(other, np.uint64(1), SelfPlaySettings(matches=16))
    self_play.play(inf, 100)
    value = StoredValue(0.5, 0.25, None, (0.125, 0.375), {}, stored_network(other, self_play.network))
    mixed = shuffled(game, StoredLesson(3, 10, 1000, 2.0, value), np.random.default_rng(1)).value
    assert mixed.network is not None
    assert set(mixed.network.facts) <= set(game.fact_texts)
    network = restored_network(game, mixed.network)
    assert network is not None
    assert network.entries.any()
    for own, theirs in zip(network.entries, self_play.network.entries, strict=True):
        assert {*own.tolist()} <= {*theirs.astype(np.float16).astype(np.float32).tolist()}
    damaged = value._replace(network=StoredNetwork((), b""))
    assert shuffled(game, StoredLesson(3, 10, 1000, 2.0, damaged), np.random.default_rng(1)).value.network is None
    monkeypatch.setattr(memory_study, "has_network", lambda game: False)
    lesson = StoredLesson(3, 10, 1000, 2.0, value)
    assert shuffled(game, lesson, np.random.default_rng(1)).value.network is None, "as in its own lessons"


def test_the_study_resumes_and_keeps_the_scores_of_each_teaching(tmp_path: Path) -> None:
    others = {"variant": ("breakthrough:width=5",), "unrelated": ("tictactoe", "connect3"), "default": ()}
    settings = [
        replace(KNOWN, id=arm, arm=arm, others=others.get(arm, KNOWN.others), runs=1 if arm in others else 2)
        for arm in get_args(Arm)
    ]
    jobs = lambda trials, store, workers: memory_jobs(tmp_path / "knowledge", trials)  # noqa: E731
    with ResultStore(tmp_path / "results.db") as store:
        for played in (11, 0):
            summary = run_grid(
                SettingGrid.of(settings), store, workers=1, progress=False, jobs=jobs, play=partial(play_memory_job)
            )
            assert summary.played == played
        for setting in settings:
            scores = teachings(store, setting.id)
            assert sorted(scores) == list(range(setting.runs))
            assert all(len(own) == 4 and all(0 <= score <= 100 for score in own) for own in scores.values())
        result = store.by_run("known")[0]
        assert result.keys() == {
            "scores",
            "lessons",
            "used",
            "used_by_rival",
            "variant",
            "retrieval",
            "startclocks",
            "cpu",
            "choices",
        }
        assert all(KNOWN.startclock / 2 < seconds < 1.0 for both in result["startclocks"] for seconds in both)
        assert all(used.keys() == {"state", "knob", "openings"} for used in result["used"])
        assert len(result["used"]) == len(result["retrieval"]) == len(result["scores"]) == 2
        assert all(seconds > 0 for seconds in result["cpu"])
        assert all(choices > 0 for choices in result["choices"])
        assert store.by_run("variant")[0]["variant"] == load("breakthrough:width=5").rules_hash
        assert store.by_run("unrelated")[0]["variant"] == ""
        results = {arm: store.by_run(arm)[0] for arm in get_args(Arm)}
        assert {arm: own["lessons"] for arm, own in results.items()} == {
            "known": 1,
            "variant": 1,
            "unrelated": 2,
            "shuffled": 1,
            "default": 0,
            "no-openings": 1,
            "no-knobs": 1,
        }
        nothing = {"state": None, "knob": None, "openings": False}
        assert results["default"]["used"] == [nothing] * 2, "it has no memory"
        assert all(own["used_by_rival"][0] == nothing for own in results.values()), "its memory is empty at first"


def test_arms_leave_out_a_part_of_a_lesson(tmp_path: Path) -> None:
    game, opening = load("breakthrough"), OpeningMove(0, "noop", 60, 60.0)
    value = StoredValue(0.5, 0.25, None, (0.5, 0.5), {"(cell 1 1 white)": (1.0, -1.0)})
    with KnowledgeStore(tmp_path / "breakthrough-0-1.db") as knowledge:
        lessons = Lessons(knowledge)
        lessons.put(game, StoredLesson(2, 10, 1000, 1.0, value))
        lessons.put_opening(game, frozenset({"(cell 1 1 white)"}), [opening])
        for advice in (LESSON, OPENINGS, "exploration=0.5"):
            lessons.add_evidence(game, TrialRow(advice, 2, WITHOUT), lambda row: row._replace(num=1))
    left = {}
    for arm in ABOUT_GAME:
        with KnowledgeStore(tmp_path / f"{arm}.db") as knowledge:
            own, job = Lessons(knowledge), MemoryJob(Trial(replace(KNOWN, arm=arm), 0), tmp_path)
            memory_study._fill(own, game, job)
            kept = own.kept(game.rules_hash)
            assert kept is not None
            assert kept.lesson.value == value
            left[arm] = len(kept.openings), sorted(row.advice for row in kept.trials)
    assert left == {
        "known": (1, ["exploration=0.5", LESSON, OPENINGS]),
        "no-openings": (0, ["exploration=0.5", LESSON]),
        "no-knobs": (1, [LESSON, OPENINGS]),
    }


@pytest.mark.parametrize(("has_store", "num_lessons"), [(True, 1), (False, 0)])
def test_a_side_keeps_its_store_from_session_to_session(has_store: bool, num_lessons: int, tmp_path: Path) -> None:
    game = load("breakthrough")
    with KnowledgeStore(tmp_path / "knowledge.db") as knowledge:
        lessons = Lessons(knowledge)
        side = ContestSide(game, lessons if has_store else None, 1)
        values = []
        for _ in range(2):
            values.append(side.learn(0.2).value)
            side.end()
        assert len(lessons.games()) == num_lessons
    assert len(side.retrieval) == len(side.startclocks) == len(side.used) == 2
    assert all(0.1 < seconds < 1.0 for seconds in side.startclocks)
    if not has_store:
        assert values[0] is not None
        assert values[1] is not None
        assert not np.array_equal(values[0].weights, values[1].weights), "a teacher with other random numbers"
