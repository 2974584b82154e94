"""The process behind the page Knowledge: gains, the map of games, learners, lessons, comparison, export and import."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore import learn, load
from gamelore.errors import KnowledgeError
from gamelore.gdl.syntax import parse
from gamelore.lab import stats
from gamelore.lab.studies.transfer_study import TransferPlan, transfer
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, Lessons, StoredLesson, TrialRow
from gamelore.learning.store.schema import ALL_ROLES, LearnedRows, MatchRow, PairRow, SequenceRow, StoredLearner
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory.advice import rival_name
from gamelore.web.children.knowledge_map import MOST_ALONE, MOST_COMPARED, experiment_teachings, gain, rows_of_map
from gamelore.web.children.knowledge_worker import KnowledgeWorker

BASELINE: dict[str, Any] = {"kind": "baseline", "alpha": 0.3, "heuristic": "minimax"}
TRANSFER: dict[str, Any] = {"kind": "transfer", "alpha": 0.3, "sources": {"games": ["coins"]}}
HOSTILE = "<img src=x onerror=alert(1)>"
LARGE = 1_000_000


@dataclass
class Rules:
    """As much of a game as the store looks at."""

    name: str = "coins"
    text: str = "(role red)\n(role blue)"
    roles: tuple[str, ...] = ("red", "blue")
    goal_values: tuple[tuple[int, ...], ...] = ((0, 100), (0, 100))

    @property
    def rulesheet(self) -> str:
        return self.text

    @property
    def rules_hash(self) -> str:
        return parse(self.text).rules_hash


COINS, DICE = Rules(), Rules("dice", "(role red)\n(role blue)\n(init rolled)")


def add(
    store: KnowledgeStore,
    rewards: Sequence[float],
    *,
    game: Rules = COINS,
    settings: Mapping[str, Any] = BASELINE,
    opponent: str = "weak",
    seed: int = 0,
    sources: Sequence[StoredLearner] = (),
    features: Mapping[str, tuple[float, int]] | None = None,
) -> StoredLearner:
    """Add a learner with rewards, or let it go on."""
    learner = store.learner(game, "red", opponent=opponent, settings=settings, seed=seed, sources=sources)  # type: ignore[arg-type]
    store.record(learner, [MatchRow(reward, 7) for reward in rewards], LearnedRows())
    store.store_features(learner, FeatureValues(features or {}))
    return learner


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "k.db")


@pytest.fixture
def worker() -> KnowledgeWorker:
    return KnowledgeWorker(memory=3 << 30, prepare_seconds=60.0)


# ---- gains ------------------------------------------------------------------------------------------------------


def runs(*rewards: Sequence[float], first: int = 0) -> dict[int, Any]:
    return {first + seed: np.array(own, float) for seed, own in enumerate(rewards)}


def test_runs_with_the_same_seed_are_compared_with_each_other() -> None:
    ours, theirs = runs(*([10.0 + 2 * i, 20.0] for i in range(6))), runs(*([10.0 + i, 20.0, 99.0] for i in range(8)))
    told, wanted = gain(ours, theirs), stats.mean_interval([i / 2 for i in range(6)])
    assert (told["mean"], told["low"], told["high"]) == (wanted.mean, wanted.low, wanted.high)
    assert (told["runs"], told["matches"]) == (6, 2)
    assert told["text"] == "+1.2 points in the first 2 matches; 95 % interval +0.3 to +2.2 over 6 runs"
    assert told["short"] == "+1.2 ± 1.0"


def test_runs_with_other_seeds_are_independent_samples() -> None:
    left, right = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    told = gain(runs(*([x] for x in left)), runs(*([x] for x in right), first=10))
    wanted, _ = stats.welch(left, right)
    assert (told["mean"], told["low"], told["high"], told["runs"]) == (wanted.mean, wanted.low, wanted.high, 5)


@pytest.mark.parametrize(
    ("num", "words"),
    [(1, "one run: no interval"), (4, "4 runs: too few for an interval, 5 are needed")],
)
def test_a_gain_of_few_runs_has_no_interval(num: int, words: str) -> None:
    told = gain(runs(*([30.0] for _ in range(num))), runs(*([20.0] for _ in range(num))))
    assert (told["low"], told["high"]) == (None, None)
    assert told["text"] == f"+10.0 points in the first 1 match; {words}"


def test_only_the_first_matches_count() -> None:
    long = [50.0] * MOST_COMPARED
    told = gain(runs([*long, 0.0]), runs([*long, 100.0, 100.0]))
    assert (told["mean"], told["matches"]) == (0.0, MOST_COMPARED)


# ---- the map ----------------------------------------------------------------------------------------------------


def test_pupils_are_below_their_teachers() -> None:
    arrows = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")]
    assert rows_of_map(["e", "d", "c", "b", "a"], arrows) == [["a"], ["d", "b"], ["c"], ["e"]]


def test_circles_end() -> None:
    rows = rows_of_map(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c"), ("c", "c")])
    assert sorted(game for row in rows for game in row) == ["a", "b", "c"]


def test_few_games_without_arrows_are_shown() -> None:
    assert rows_of_map([str(i) for i in range(50)], []) == [[str(i) for i in range(MOST_ALONE)]]
    assert rows_of_map([], []) == []


def test_who_taught_whom_with_the_gain(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    with KnowledgeStore(path) as store:
        teacher = add(store, [0, 0])
        for seed in range(5):
            add(store, [20, 40], game=DICE, seed=seed)
            add(store, [50, 50], game=DICE, seed=seed, settings=TRANSFER, sources=[teacher])
        add(store, [0], game=DICE, seed=9, opponent="egreedy", settings=TRANSFER, sources=[teacher])
    view = worker.overview(path, str(tmp_path))
    json.dumps(view, allow_nan=False)
    first, second = view["teachings"]
    assert (first["teacher"], first["pupil"]) == (COINS.rules_hash, DICE.rules_hash)
    assert (first["names"], first["what"]) == (("coins", "dice"), "features")
    assert first["text"] == "+20.0 points in the first 2 matches; 95 % interval +20.0 to +20.0 over 5 runs"
    assert first["about"] == "red against weak: learners 3, 5, 7, 9, 11"
    assert second["gain"] is None
    assert second["text"].startswith("not known: no baseline learner")
    assert [[game["name"] for game in row] for row in view["games"]] == [["coins"], ["dice"]]
    assert view["games"][1][0] | {"key": ""} == {"key": "", "name": "dice", "learners": 11, "lessons": 0}


def test_a_teacher_that_was_deleted_stays_on_the_map(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    with KnowledgeStore(path) as store:
        teacher = add(store, [0])
        pupil = add(store, [1], game=DICE, settings=TRANSFER, sources=[teacher])
        store.delete([teacher.id])
    view = worker.overview(path, str(tmp_path))
    assert view["games"][0] == [{"key": COINS.rules_hash, "name": "coins", "learners": 0, "lessons": 0}]
    (taught_by,) = worker.learner(path, pupil.id)["teachers"]
    assert (taught_by["game"], taught_by["number"], taught_by["matches"]) == ("coins", None, 1)


def test_gains_of_experiments(tmp_path: Path) -> None:
    plan = TransferPlan(
        "tictactoe", ("connect3",), learners=("baseline", "transfer"), source_matches=3, runs=2, matches=4
    )
    result = transfer(plan, tmp_path / "runs" / "mine", workers=1, progress=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.db").write_text("no store")
    (teaching,) = experiment_teachings(tmp_path)
    rewards = result.rewards["tictactoe", "connect3"]
    assert teaching.gain is not None
    assert teaching.gain["mean"] == pytest.approx(float((rewards["transfer"] - rewards["baseline"]).mean()))
    assert (teaching.teacher, teaching.pupil) == (load("tictactoe").rules_hash, load("connect3").rules_hash)
    assert (teaching.names, teaching.what) == (("tictactoe", "connect3"), "experiment")
    assert teaching.about == "experiment mine, against egreedy"
    assert teaching.text.endswith("2 runs: too few for an interval, 5 are needed")


# ---- learners ---------------------------------------------------------------------------------------------------


def test_a_missing_store_is_empty(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    view = worker.overview(path, str(tmp_path))
    assert (view["learners"], view["lessons"], view["games"], view["size"]) == ([], [], [], 0)
    assert not Path(path).exists()


def test_a_learner_with_its_relatives_and_its_curve(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        teachers = [add(store, [0, 100, 50, 50], seed=seed) for seed in range(5)]
        pupil = add(store, [1], game=DICE, settings=TRANSFER, sources=teachers[:2])
    about = worker.learner(path, 1)
    json.dumps(about, allow_nan=False)
    assert (about["game"], about["role"], about["opponent"], about["matches"]) == ("coins", "red", "weak", 4)
    assert (about["mean"], about["plies"]) == (50.0, 7.0)
    assert about["settings"] == {"alpha": "0.3", "heuristic": "minimax", "kind": "baseline"}
    assert [other["number"] for other in about["siblings"]] == [2, 3, 4, 5]
    assert [other["number"] for other in about["pupils"]] == [pupil.id]
    assert [point[:2] for point in about["curve"]["points"]] == [[1, 0], [2, 50], [3, 50], [4, 50]]
    assert about["curve"]["band"][-1] == [4, 50, 50, 50]
    own = worker.learner(path, pupil.id)
    assert [(other["number"], other["matches"]) for other in own["teachers"]] == [(1, 4), (2, 4)]
    assert own["settings"]["sources.games"] == "coins"
    assert (own["curve"]["band"], own["curve"]["runs"]) == ([], 1)


def test_long_curves_have_few_points(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        add(store, [100.0] * 1500 + [0.0] * 500)
    curve = worker.learner(path, 1)["curve"]
    assert len(curve["points"]) == 300
    assert curve["points"][-1] == [2000, 75.0, 0.0]
    assert curve["trailing"] == 100


def test_features_with_a_column_for_each_opponent(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        add(store, [50], features={"L,{n,W}": (40.0, 3), "W": (90.0, 7), "{n}": (50.0, 1)})
        add(store, [50], opponent="egreedy:filler=first", features={"L,{n,W}": (30.0, 2)})
        add(store, [50, 50], opponent="egreedy:filler=first", seed=1, features={"L,{n,W}": (35.0, 2)})
        add(store, [50], game=DICE, opponent="other", features={"W": (1.0, 1)})
    features = worker.features(path, 1)
    assert [column["number"] for column in features["columns"]] == [1, 3]
    assert [row["feature"] for row in features["rows"]] == ["W", "L,{n,W}", "{n}"]
    row = features["rows"][1]
    assert (row["label"], row["visits"], row["value0"], row["value1"]) == ("b", 3, 40.0, 35.0)
    assert "○" in row["tree"]
    assert features["rows"][0]["value1"] is None
    assert (features["num"], features["left_out"]) == (3, "")
    svg = worker.feature_picture(path, 1)
    assert "<svg" in svg


def test_two_learners_side_by_side(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        left = add(store, [10, 10], features={"W": (90.0, 1), "L": (10.0, 5)})
        right = add(store, [30, 50], settings={**BASELINE, "alpha": 0.5}, features={"L": (12.5, 1), "D": (50.0, 1)})
        other = add(store, [0], game=DICE)
    both = worker.compare(path, left.id, right.id)
    json.dumps(both, allow_nan=False)
    assert both["settings"] == [["alpha", "0.3", "0.5"]]
    assert both["num_equal"] == 7
    assert both["difference"] == "+30.0 points in the first 2 matches; one run: no interval"
    rows = [(row["feature"], row["left"], row["right"], row["difference"]) for row in both["features"]]
    assert rows == [("L", 10.0, 12.5, 2.5), ("D", None, 50.0, None), ("W", 90.0, None, None)]
    assert worker.compare(path, left.id, other.id)["difference"].startswith("they learned different games")


def test_learners_that_differ_only_in_the_seed_are_single_runs(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        for seed in range(6):
            add(store, [10.0 * seed], seed=seed)
    both = worker.compare(path, 1, 3)
    assert both["settings"] == [["seed", "0", "2"]]
    assert both["difference"] == "+20.0 points in the first 1 match; one run: no interval"


def test_sequences_of_two_learners(worker: KnowledgeWorker, path: str) -> None:
    game = load("tictactoe")
    moves = ("(does xplayer (mark 1 1))", "(does oplayer noop)")
    context = frozenset({"(cell 2 2 x)", "(control xplayer)"})
    with KnowledgeStore(path) as store:
        for seed, agreements in enumerate((1.0, 3.0)):
            settings = {"kind": "sequences", "lengths": [3]}
            learner = store.learner(game, ALL_ROLES, opponent="watched", settings=settings, seed=seed)
            sequence = SequenceRow("xplayer", "duet", moves, context, 2, False)
            pair = PairRow("xplayer", context, (("duet", moves),), 4.0, agreements, 1.0, 1.0)
            store.record(learner, [MatchRow(100, 5)], LearnedRows((), [sequence], [pair]))
    learned = worker.sequences(path, 1)
    assert (learned["num_sequences"], learned["num_pairs"], learned["roles"]) == (1, 1, ["xplayer", "oplayer"])
    (row,) = learned["pairs"]
    assert (row["role"], row["agreed"], row["context"]) == ("xplayer", "1 of 4", "(cell 2 2 x) (control xplayer)")
    assert row["moves"] == "xplayer (mark 1 1), oplayer noop"
    assert "<svg" in learned["svg"]
    assert worker.sequences(path, 1, role="oplayer")["pairs"] == []
    both = worker.compare(path, 1, 2)
    assert (both["features"], both["pairs"]["both"], both["pairs"]["only"]) == (None, 1, [0, 0])
    (shared,) = both["pairs"]["rows"]
    assert shared["left"] < shared["right"]


def test_features_of_a_learner_that_was_interrupted_are_computed(worker: KnowledgeWorker, tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    learn("tictactoe", matches=3, store=path, progress=False)
    wanted = worker.features(str(path), 1)["rows"]
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM feature")
        connection.execute("UPDATE learner SET features_at = 0")
    assert wanted
    assert worker.features(str(path), 1)["rows"] == wanted


# ---- lessons ----------------------------------------------------------------------------------------------------


@pytest.fixture
def lesson_store(path: str) -> str:
    """A store with a lesson that began with that of another game, and tests of it."""
    value = StoredValue(0.5, 0.25, None, (0.5, 0.5), {"(cell 1 1 x)": (0.25, -0.25), "(cell 2 2 o)": (0.1, 0.3)})
    game, other = load("tictactoe"), load("connect3")
    with KnowledgeStore(path) as store:
        lessons = Lessons(store)
        lessons.put(other, StoredLesson(1, 10, 1000, 1.0, value._replace(weights={})))
        lessons.put(game, StoredLesson(1, 10, 1000, 1.0, value, origin=other.rules_hash, likeness=0.25))
        for advice, state, against, better, worse in (
            (LESSON, 0, rival_name(1), 1.0, 0.5),
            (LESSON, 1, rival_name(10), 20.0, 0.0),
            (LESSON, 1, rival_name(1), 0.0, 0.0),
            (OPENINGS, 50, WITHOUT, 0.0, 20.0),
            ("exploration=0.25", 1, WITHOUT, 0.0, 0.0),
        ):
            row = TrialRow(advice, state, against, 40, 28.0, 1.0, better, worse)
            lessons.add_evidence(game, row, lambda _, row=row: row)
    return path


def test_a_lesson_with_tests_and_reasons(worker: KnowledgeWorker, lesson_store: str) -> None:
    lesson = worker.lesson(lesson_store, "tictactoe")
    json.dumps(lesson, allow_nan=False)
    assert (lesson["game"], lesson["variant"], lesson["likeness"], lesson["taken_for"]) == (
        "tictactoe", "connect3", 0.25, 10,
    )  # fmt: skip
    assert [row["number"] for row in lesson["generations"]] == [1]
    assert lesson["weights"][0] == {"role": "xplayer", "fact": "(cell 1 1 x)", "weight": 25.0}
    assert lesson["svg"].startswith("<svg ")
    tests = {(test["what"], test["against"]): test for test in lesson["tests"]}
    used = tests["the values of generation 1", "the same player that had only 10 s before the match"]
    assert (used["verdict"], used["rounds"], used["score"]) == ("taken", 40, 70.0)
    assert used["why"].startswith("the matches show that it is better: the evidence is 485,165,195 to 1")
    also = tests["the values of generation 1", "the same player that had only 1 s before the match"]
    assert (also["verdict"], also["why"]) == ("taken", "another test of the same advice has shown that it is better")
    refused = tests["the openings, with 50 positions", "the same player without it"]
    assert (refused["verdict"], refused["why"][:36]) == ("refused", "the matches show that it is worse: t")
    still = tests["the values carried over from the variant", "the same player that had only 1 s before the match"]
    assert still["why"].startswith("too few matches to tell: the evidence is 2.7 to 1, and ")
    assert ("the parameter exploration=0.25 of the search", "the same player without it") in tests


def test_a_lesson_is_named_by_its_hash_too(worker: KnowledgeWorker, lesson_store: str) -> None:
    rules_hash = load("tictactoe").rules_hash
    for key in (rules_hash, rules_hash[:12]):
        assert worker.lesson(lesson_store, key)["game"] == "tictactoe"
    with pytest.raises(KnowledgeError, match=r"expected a game with a lesson \(connect3, tictactoe\), got 'chess'"):
        worker.lesson(lesson_store, "chess")


def test_the_map_has_the_variant_of_a_lesson(worker: KnowledgeWorker, lesson_store: str, tmp_path: Path) -> None:
    view = worker.overview(lesson_store, str(tmp_path))
    (teaching,) = view["teachings"]
    assert (teaching["names"], teaching["what"], teaching["gain"]) == (("connect3", "tictactoe"), "lesson", None)
    assert teaching["text"] == "score 70 % of 40 rounds against the same player that had only 1 s before the match"
    assert [lesson["game"] for lesson in view["lessons"]] == ["connect3", "tictactoe"]


# ---- export, import, deletion -----------------------------------------------------------------------------------


def test_an_export_comes_back(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    with KnowledgeStore(path) as store:
        first = add(store, [50, 60], features={"W": (90.0, 1)})
        add(store, [1], seed=1)
    text = worker.export(path, LARGE, numbers=[first.id])
    added = worker.add(copy, text, "mine.json")
    assert added == {"what": "learners", "num": 1, "new": ["learner 1 (coins, red)"], "longer": [], "same": 0}
    assert worker.add(copy, text, "mine.json")["same"] == 1
    with KnowledgeStore(path) as store:
        add(store, [70])
    longer = worker.add(copy, worker.export(path, LARGE, numbers=[1, 2]), "mine.json")
    assert (longer["new"], longer["longer"], longer["same"]) == (
        ["learner 2 (coins, red)"],
        ["learner 1 (coins, red)"],
        0,
    )
    assert worker.features(copy, 1)["columns"][0]["matches"] == 3


def test_learners_that_differ_are_not_imported(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    for place, reward in ((path, 10), (copy, 20)):
        with KnowledgeStore(place) as store:
            add(store, [reward])
    text = worker.export(path, LARGE, numbers=[1])
    with pytest.raises(
        KnowledgeError, match=r"^mine\.json: .*got different matches or initial values; import into a new"
    ):
        worker.add(copy, text, "mine.json")
    assert worker.learner(copy, 1)["mean"] == 20.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "gamelore-lessons"}', '{"format": "other"}', "[" * 5000])
def test_other_files_are_refused_by_their_name(worker: KnowledgeWorker, path: str, text: str) -> None:
    with pytest.raises(KnowledgeError, match=r"^mine\.json: expected"):
        worker.add(path, text, "mine.json")


def test_lessons_are_exported_and_imported(worker: KnowledgeWorker, lesson_store: str, tmp_path: Path) -> None:
    copy, rules_hash = str(tmp_path / "copy.db"), load("tictactoe").rules_hash
    text = worker.export(lesson_store, LARGE, lessons=[rules_hash])
    assert worker.add(copy, text, "l.json") == {
        "what": "lessons", "num": 1, "new": ["tictactoe"], "longer": [], "same": 0,
    }  # fmt: skip
    assert worker.add(copy, text, "l.json")["same"] == 1
    assert worker.lesson(copy, rules_hash)["weights"] == worker.lesson(lesson_store, rules_hash)["weights"]
    assert worker.delete(copy, {}, [rules_hash]) == "deleted 1 lesson"
    assert worker.overview(copy, str(tmp_path))["lessons"] == []


def test_impossible_evidence_is_not_imported(worker: KnowledgeWorker, lesson_store: str, tmp_path: Path) -> None:
    copy, rules_hash = str(tmp_path / "copy.db"), load("tictactoe").rules_hash
    content = json.loads(worker.export(lesson_store, LARGE, lessons=[rules_hash]))
    content["lessons"][0]["trials"][0][6] = 1000.0
    with pytest.raises(KnowledgeError, match=r"^l\.json: .*expected better of at most 22.38 after 40 rounds, got 1000"):
        worker.add(copy, json.dumps(content), "l.json")
    assert worker.overview(copy, str(tmp_path))["lessons"] == []


def test_a_damaged_lesson_is_told_and_leaves_the_others(
    worker: KnowledgeWorker, lesson_store: str, tmp_path: Path
) -> None:
    with sqlite3.connect(lesson_store) as connection:
        connection.execute("UPDATE trial SET num = 'many'")
    view = worker.overview(lesson_store, str(tmp_path))
    assert [lesson["game"] for lesson in view["lessons"]] == ["connect3"]
    (damage,) = view["damaged"]
    assert damage["number"] is None
    assert damage["error"].startswith(
        f"{lesson_store}: lesson about tictactoe: expected what an import would take, got"
    )


def test_a_large_export_is_refused_with_the_command(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        add(store, [50] * 100)
    with pytest.raises(KnowledgeError, match=r"at most 0\.0 MB, got .* gamelore knowledge export FILE 1 --knowledge"):
        worker.export(path, 100, numbers=[1])


def test_no_other_learner_is_deleted(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        created = {str(add(store, [1], seed=seed).id): "" for seed in range(3)}
        created["1"] = store.find(1).created
    with pytest.raises(KnowledgeError, match="expected learner 2 as the page shows it, got another one"):
        worker.delete(path, {**created, "2": "2001-01-01T00:00:00+00:00"})
    with pytest.raises(KnowledgeError, match="expected the number of a learner"):
        worker.delete(path, {**created, "9": ""})
    assert worker.delete(path, {"1": created["1"], "3": ""}) == "deleted 2 learners"
    with KnowledgeStore(path) as store:
        assert store.numbers() == [2]


def test_damaged_learners_are_told_and_can_be_deleted(worker: KnowledgeWorker, path: str, tmp_path: Path) -> None:
    with KnowledgeStore(path) as store:
        for seed in range(2):
            add(store, [1], seed=seed)
    assert worker.check(path) == []
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE learner SET settings = 'no JSON' WHERE id = 2")
    view = worker.overview(path, str(tmp_path))
    assert [learner["number"] for learner in view["learners"]] == [1]
    (damage,) = view["damaged"]
    assert damage["number"] == 2
    assert "expected learner 2 as gamelore stores it" in damage["error"]
    assert worker.check(path)[0].startswith("learner 2: ")
    assert worker.delete(path, {"2": ""}) == "deleted 1 learner"
    assert worker.overview(path, str(tmp_path))["damaged"] == []


def test_names_are_escaped_in_pictures(worker: KnowledgeWorker, path: str) -> None:
    with KnowledgeStore(path) as store:
        add(store, [1], game=Rules(HOSTILE, "(role red)"), opponent=HOSTILE, features={"W": (1.0, 1)})
    assert worker.learner(path, 1)["game"] == HOSTILE
    assert "<img" not in worker.feature_picture(path, 1)
