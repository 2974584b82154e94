"""The transfer map: shares of weight by hand, contests between a game and its variant, and what counts as found."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from gamelore import Game, load
from gamelore.analysis.variants import map_names
from gamelore.gdl.syntax import parse
from gamelore.lab.experiment import SettingGrid, run_grid
from gamelore.lab.results import Outcome, ResultStore, Trial
from gamelore.lab.studies import map_study
from gamelore.lab.studies.map_study import (
    TAKEN_AT,
    MapJob,
    MapSetting,
    SourceLesson,
    carried_share,
    map_jobs,
    mapped,
    num_effective,
    p_of_teachings,
    play_map_job,
    significant,
    source_lesson,
    teaching_scores,
    verdicts,
)
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import Lessons, StoredLesson
from gamelore.learning.store.taught_rows import NOTHING, StoredValue
from gamelore.memory.lesson import stored_value
from gamelore.players.random_streams import stream
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.value import LinearValue

SETTING = MapSetting("breakthrough/misere", "", 1, 1, "", 1.0, 20_000, 64, 4)


@cache
def lesson_value(game: Game, run: int) -> LinearValue:
    """Teach for some tenths of a second."""
    teacher = Teacher(game, stream(run), GrowthSettings(), TeachingSettings(simulations=60_000, first=30_000))
    teacher.teach()
    assert teacher.value is not None
    return teacher.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sheets that differ by names, and teachings of the first."""
    game = load("breakthrough")
    (tmp_path / "source.kif").write_text(game.rulesheet.text)
    (tmp_path / "target.kif").write_text(game.rulesheet.text.replace("white", "snow").replace("black", "coal"))
    for run in range(2):
        value = stored_value(game, lesson_value(game, run), None)
        with KnowledgeStore(tmp_path / f"source-{run}-1.db") as knowledge:
            Lessons(knowledge).put(game, StoredLesson(1, 10, 1000, 1.0, value))
    return tmp_path


def setting(folder: Path, **changes: object) -> MapSetting:
    own = replace(SETTING, game=str(folder / "target.kif"), origin=str(folder / "source.kif"))
    return replace(own, **changes)  # type: ignore[arg-type]


def test_the_share_of_the_weight_by_hand() -> None:
    """Tic-tac-toe has no 4 x 4 cells: the fact (cell 4 4 x) of an imagined source corresponds to nothing."""
    game = load("tictactoe")
    value = StoredValue(0.5, 0.0, None, (0.5, 0.5), {"(cell 1 1 x)": (0.3, -0.1), "(queen 4 4)": (0.1, 0.1)})
    source = SourceLesson(game.rulesheet, value)
    names = map_names(game.rulesheet, game.rulesheet)
    assert carried_share(source, names, game) == pytest.approx(0.4 / 0.6)
    assert carried_share(source._replace(value=NOTHING), names, game) == 0.0


def test_a_game_with_other_names_takes_everything(folder: Path) -> None:
    lesson = source_lesson(folder, str(folder / "source.kif"), 0, 1.0)
    assert lesson is not None
    assert parse((folder / "source.kif").read_text()).rules_hash == lesson.sheet.rules_hash
    assert mapped(lesson, load(folder / "target.kif"))[0] == (1.0, 1.0, True)
    idle = lesson.value._replace(determination=0.0, foresight=0.0)
    assert mapped(lesson._replace(value=idle), load(folder / "target.kif")) == ((1.0, 1.0, False), None)


def test_a_rival_is_taught_once_for_all_sources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taught = list[str]()
    monkeypatch.setattr(map_study, "Teacher", lambda game, *given: (taught.append(game.name), Teacher(game, *given))[1])
    own = setting(folder, runs=2, rounds=1, walks=8, taught=500)
    settings = [own, replace(own, id="other", game="connect3"), replace(own, id="again")]
    jobs = map_jobs(folder, SettingGrid.of(settings).trials())
    assert [(Path(job.trial.setting.game).stem, *job.trial.key[::-1]) for job in jobs] == [
        ("target", 0, own.id),
        ("target", 0, "again"),
        ("connect3", 0, "other"),
        ("target", 1, own.id),
        ("target", 1, "again"),
        ("connect3", 1, "other"),
    ]
    assert jobs[0].size == 4
    outcomes = [play_map_job(job, lambda num: None) for job in jobs]
    assert [len(own) for own in outcomes] == [1] * 6, "so that each is stored as soon as it is over"
    assert taught == [load(own.game).name, "connect3"] * 2


def test_a_carried_value_beats_a_search_without(folder: Path) -> None:
    with ResultStore(folder / "results.db") as store:
        own = setting(folder, runs=2, rounds=64, walks=64)
        jobs = lambda trials, *_: map_jobs(folder, trials)  # noqa: E731
        run_grid(SettingGrid.of([own]), store, workers=1, progress=False, jobs=jobs, play=partial(play_map_job))
        scores = teaching_scores(store, own.id, "none")
        assert len(scores) == 2
        assert np.mean(scores) > 0.6, "the standard error of 128 rounds is 0.03"
        assert scores == [np.mean(result["none"]) for result in store.results(own.id)]
        assert len(teaching_scores(store, own.id, "taught")) == 2
        assert {(result["score"], result["share"]) for result in store.results(own.id)} == {(1.0, 1.0)}


def test_a_contest_can_be_played_again(folder: Path) -> None:
    job, results = MapJob(Trial(setting(folder), 0), folder), list[object]()
    for _ in range(2):
        map_study._target.cache_clear()
        map_study._idle_scores.cache_clear()
        results.append(play_map_job(job, lambda num: None)[0].result)
    assert results[0] == results[1]


def assert_plays_as_no_value(result: dict[str, Any]) -> None:
    assert result["none"] == [0.5] * SETTING.rounds
    assert len(result["taught"]) == SETTING.rounds


def test_a_teaching_without_a_generation_plays_as_no_value(folder: Path) -> None:
    game = load("breakthrough")
    with KnowledgeStore(folder / "empty-0-1.db") as knowledge:
        Lessons(knowledge).put(game, StoredLesson(0, 1, 10, 0.1, NOTHING))
    own = setting(folder, origin=str(folder / "empty.kif"))
    (outcome,) = play_map_job(MapJob(Trial(own, 0), folder), lambda num: None)
    assert (outcome.result["score"], outcome.result["share"], outcome.result["has_effect"]) == (0.0, 0.0, False)
    assert_plays_as_no_value(outcome.result)


@pytest.mark.parametrize("change", [{"determination": 0.0, "foresight": 0.0}, {"weights": {}}])
def test_a_value_that_has_no_effect_plays_as_no_value(folder: Path, change: dict[str, object]) -> None:
    game = load("breakthrough")
    value = stored_value(game, lesson_value(game, 0), None)._replace(**change)  # type: ignore[arg-type]
    with KnowledgeStore(folder / "idle-0-1.db") as knowledge:
        Lessons(knowledge).put(game, StoredLesson(1, 10, 1000, 1.0, value))
    own = setting(folder, origin=str(folder / "idle.kif"))
    (outcome,) = play_map_job(MapJob(Trial(own, 0), folder), lambda num: None)
    assert outcome.result["score"] == 1.0
    assert not outcome.result["has_effect"]
    assert_plays_as_no_value(outcome.result)


def test_a_search_without_a_value_plays_once_for_all_sources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loses against a taught value."""
    game, played, scores = load("breakthrough"), list[object](), map_study._scores
    monkeypatch.setattr(map_study, "_scores", lambda *given: (played.append(given), scores(*given))[1])
    for name in ("one", "two"):
        with KnowledgeStore(folder / f"{name}-0-1.db") as knowledge:
            Lessons(knowledge).put(game, StoredLesson(0, 1, 10, 0.1, NOTHING))
    own = [setting(folder, origin=str(folder / f"{name}.kif"), rounds=32, taught=500_000) for name in ("one", "two")]
    map_study._idle_scores.cache_clear()
    first, second = (play_map_job(MapJob(Trial(each, 0), folder), lambda num: None)[0].result for each in own)
    assert first == second
    assert len(played) == 1
    assert np.mean(first["taught"]) < 0.4


def test_walks_follow_from_the_time_that_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second for each hundred walks of a round, so 8 seconds are enough for two rounds of 400 walks."""
    clock = [0.0]

    def scores(game: Game, values: object, walks: int, num: int, key: object) -> list[float]:
        clock[0] += walks / 100 * num
        return [0.5] * num

    monkeypatch.setattr(map_study, "_scores", scores)
    monkeypatch.setattr(map_study, "time", SimpleNamespace(process_time=lambda: clock[0]))
    game = load("tictactoe")
    assert [map_study.affordable_walks(game, 2, seconds) for seconds in (0.5, 2.0, 8.0, 15.9, 16.0)] == [
        100,
        100,
        400,
        400,
        800,
    ]


def test_verdicts_are_those_of_the_players_test(tmp_path: Path) -> None:
    """At the level of 1/300, the first bet is nothing, and some perfect rounds are enough."""
    assert pytest.approx(0.1 / 6 / 5) == TAKEN_AT
    scores = {0: [1.0] * 16, 1: [0.0] * 16, 2: [1.0, 0.0] * 8, 3: [0.0] * 16}
    with ResultStore(tmp_path / "results.db") as store:
        own = setting(tmp_path, runs=4)
        results = {run: {"taught": taught, "has_effect": run < 3} for run, taught in scores.items()}
        store.add([Outcome(Trial(own, run), result=result) for run, result in results.items()], "1")
        assert num_effective(store, own.id) == 3
        assert verdicts(store, own.id) == ["taken", "refused", "open"]


def test_the_variance_between_teachings_is_that_of_all_pairs() -> None:
    """Squares of 0.02 and 0.08 with 1 and 2 degrees of freedom: the variance is 0.1 / 3."""
    samples, deviation = {"a": [0.5, 0.7], "b": [0.2, 0.6, 0.4]}, (0.1 / 3) ** 0.5
    for sign in (1, -1):
        values = p_of_teachings(samples, 16, sign)
        assert values["a"] == pytest.approx(t.sf(sign * 0.1 * 2**0.5 / deviation, 3))
        assert values["b"] == pytest.approx(t.sf(-sign * 0.1 * 3**0.5 / deviation, 3))
    assert p_of_teachings({}, 16, 1) == {}
    one = [0.5, 0.9, 0.1, 1.0, 0.6]
    assert p_of_teachings({"one": one}, 4, 1)["one"] == pytest.approx(
        ttest_1samp(one, 0.5, alternative="greater").pvalue
    )


def test_teachings_that_agree_are_no_certainty() -> None:
    """Means of 4 rounds deviate by 0.35 / 2 at least, so 0.9 from 4 teachings has t = 0.4 / 0.0875, 6 degrees."""
    values = p_of_teachings({"a": [0.9] * 4, "b": [0.5] * 4}, 4, 1)
    assert values == {"a": pytest.approx(t.sf(0.4 / 0.0875, 6)), "b": pytest.approx(0.5)}


def test_gains_of_a_few_points_can_be_found() -> None:
    """Among 500 pairs of five teachings of 16 rounds, in 20 of which the carried value wins 65 %."""
    rng = np.random.default_rng(0)
    means = {str(number): 0.65 if number < 20 else 0.45 for number in range(500)}
    samples = {name: (mean + 0.09 * rng.standard_normal(5)).tolist() for name, mean in means.items()}
    found = significant(p_of_teachings(samples, 16, 1), 0.05)
    assert len({str(number) for number in range(20)} & set(found)) >= 15
    assert len(found) <= 23


def test_findings_by_hand() -> None:
    """Of four p-values, with 5 %: 0.01 <= 0.0125 and 0.02 <= 0.025, but 0.04 > 0.0375 and 0.9 > 0.05."""
    assert significant({"a": 0.9, "b": 0.02, "c": 0.04, "d": 0.01}, 0.05) == ["b", "d"]
    assert significant({}, 0.05) == []
