"""The growth of a memory: checkpoints, what is kept between interrupted calls, and whom it plays against."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import pytest

from gamelore import load
from gamelore.errors import ExperimentError
from gamelore.lab.experiment import SettingGrid, run_grid
from gamelore.lab.results import ResultStore, Trial
from gamelore.lab.studies import growth_study
from gamelore.lab.studies.growth_study import GrowthJob, GrowthSetting, growth_jobs, growth_of, play_growth_job
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, Lessons, TrialRow
from gamelore.memory import course as course_module
from gamelore.memory import rivals as rivals_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.advice import rival_name
from gamelore.search.settings import TeachingSettings

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)
SETTING = GrowthSetting("growth", "breakthrough", 1, 2, 0.2, (0, 2), ("without", "random"), 1.0, 2)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (course_module, rivals_module, tuition_module):
        monkeypatch.setattr(module, "TeachingSettings", lambda simulations=1 << 60: QUICK)


def told(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "breakthrough-0.json").read_text())
    return content


def test_matches_are_played_at_the_checkpoints(tmp_path: Path) -> None:
    jobs = lambda trials, *_: growth_jobs(tmp_path, trials)  # noqa: E731
    with ResultStore(tmp_path / "results.db") as store:
        grid = SettingGrid.of([SETTING])
        run_grid(grid, store, workers=1, progress=False, jobs=jobs, play=partial(play_growth_job))
        grown = growth_of(store, "growth", "random")
        assert list(grown) == [0, 2]
        assert all(len(runs) == 2 for runs in grown.values())
        assert min(min(runs) for runs in grown.values()) > 60
        assert SETTING.size == 16
    assert told(tmp_path)["startclocks"] == 2
    with KnowledgeStore(tmp_path / "breakthrough-0.db") as knowledge:
        assert Lessons(knowledge).find(load("breakthrough").rules_hash) is not None


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, played = GrowthJob(Trial(SETTING, 0), tmp_path), list[int]()
    real = growth_study.pair_score

    def interrupted(*given: object) -> float:
        is_new = not (tmp_path / "breakthrough-0.json").exists()
        played.append(0 if is_new else told(tmp_path)["startclocks"])  # type: ignore[arg-type]
        if len(played) == 6:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(growth_study, "pair_score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play_growth_job(job, lambda num: None)
    before = told(tmp_path)
    assert played == [0] * 4 + [2] * 2, "pairs of matches at the checkpoints 0 and 2"
    assert list(before["scores"]) == ["0"]  # type: ignore[call-overload]
    (outcome,) = play_growth_job(job, lambda num: None)
    assert played[6:] == [2] * 4
    assert outcome.result["scores"]["0"] == before["scores"]["0"]  # type: ignore[index]


def test_a_memory_of_other_settings_is_refused(tmp_path: Path) -> None:
    setting = replace(SETTING, startclock=0.05, checkpoints=(0,), rivals=("random",), pairs=1)
    play_growth_job(GrowthJob(Trial(setting, 0), tmp_path), lambda num: None)
    with pytest.raises(ExperimentError, match="choose another --out"):
        play_growth_job(GrowthJob(Trial(replace(setting, startclock=0.1), 0), tmp_path), lambda num: None)


def test_what_is_told_beside_the_scores(tmp_path: Path) -> None:
    (outcome,) = play_growth_job(GrowthJob(Trial(replace(SETTING, pairs=1), 0), tmp_path), lambda num: None)
    result = outcome.result
    assert result.keys() == {"scores", "cpu", "used", "startclock"}
    assert all(own.keys() == {"0", "2"} for own in result.values())
    assert result["used"]["0"] == {"state": None, "knob": None, "openings": False}
    assert all(len(times) == 2 and min(times) >= 0 for own in result["cpu"].values() for times in own.values())
    assert result["cpu"]["0"]["without"][0] > 0
    assert all(SETTING.startclock / 2 < seconds < 1.0 for seconds in result["startclock"].values())


def test_a_memory_plays_with_what_has_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The side with memory gets its newest state that has passed, the other one learns anew."""
    game, used = load("breakthrough"), list[object]()
    job = GrowthJob(Trial(SETTING, 0), tmp_path)
    play_growth_job(job, lambda num: None)
    with KnowledgeStore(tmp_path / "breakthrough-0.db") as knowledge:
        lessons = Lessons(knowledge)
        number = lessons.taught(game.rules_hash, LESSON)[-1].number
        row = TrialRow(LESSON, number, rival_name(1), 50, 45.0, 1.0, 20.0, -5.0)
        lessons.add_evidence(game, row, lambda _: row)
        expected = lessons.value(game.rules_hash, LESSON, number)
    (tmp_path / "breakthrough-0.json").write_text(
        json.dumps({"settings": SETTING.text, "startclocks": 2, "scores": {"0": {}}})
    )
    real = growth_study.playing
    monkeypatch.setattr(growth_study, "playing", lambda champion, own: (used.append(own), real(champion, own))[1])
    play_growth_job(job, lambda num: None)
    assert expected is not None
    assert used[0].value.constants.tolist() == list(expected.constants)  # type: ignore[attr-defined]
    assert used[1].value is not used[0].value  # type: ignore[attr-defined]


def test_pairs_are_shared_among_four_teachings_of_the_rival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = list[tuple[object, object]]()
    monkeypatch.setattr(growth_study, "pair_score", lambda game, own, *_: (sides.append(tuple(own)), 50.0)[1])
    setting = replace(SETTING, startclock=0.05, checkpoints=(0,), rivals=("without",), pairs=20)
    play_growth_job(GrowthJob(Trial(setting, 0), tmp_path), lambda num: None)
    assert len({id(own) for own, _ in sides}) == 1
    rivals = [rival for _, rival in sides]
    assert [rivals[pair] is rivals[pair - pair % 5] for pair in range(20)] == [True] * 20
    assert len({id(rival) for rival in rivals}) == 4


def test_retrieval_is_part_of_a_startclock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the making of a teacher, on the other side."""
    left, real = list[float](), growth_study.learned
    monkeypatch.setattr(growth_study, "learned", lambda *given: (left.append(given[2]), real(*given))[1])

    def slow(function: Callable[..., object], *given: object) -> object:
        end = process_time() + 0.1
        while process_time() < end:
            pass
        return function(*given)

    begin = growth_study.GameMemory.begin
    monkeypatch.setattr(growth_study.GameMemory, "begin", lambda *given: slow(begin, *given))
    monkeypatch.setattr(growth_study, "new_pupil", partial(slow, growth_study.new_pupil))
    setting = replace(SETTING, checkpoints=(1,), rivals=("without",), pairs=1)
    play_growth_job(GrowthJob(Trial(setting, 0), tmp_path), lambda num: None)
    assert len(left) == 3, "one startclock, one on a copy, and that of the rival"
    assert all(seconds <= 0.1 for seconds in left)
