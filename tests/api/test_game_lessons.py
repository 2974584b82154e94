"""`study`: what it returns, where it keeps that, and what it refuses; the command `gamelore study`."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from commands import run, run_json
from gamelore import AdviceTest, GameLesson, GameloreError, Knowledge, KnowledgeError, load, solve, study
from gamelore.api import game_lessons
from gamelore.api.game_lessons import lesson_of
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, Lessons, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory.advice import rival_name
from gamelore.memory.lesson import stored_value, surrogate
from gamelore.networks.self_play import SelfPlay
from gamelore.search.value import LinearValue
from gamelore.solver import solution


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a lesson about the small breakthrough."""
    path = tmp_path_factory.mktemp("store") / "k.db"
    while not study("breakthrough", seconds=1.5, store=path, progress=False).generations:
        pass  # on a busy machine, a call may not end a generation
    return path


@pytest.fixture
def lessons(store: Path) -> Iterator[Lessons]:
    with KnowledgeStore(store) as knowledge:
        yield Lessons(knowledge)


def test_what_was_learned(store: Path, lessons: Lessons) -> None:
    lesson = lesson_of(load("breakthrough"), lessons)
    assert isinstance(lesson, GameLesson)
    assert lesson.seconds > 0.2
    assert lesson.simulations > 10_000
    assert set(lesson.weights) == {"white", "black"}
    assert lesson.generations[0].number == 1
    assert lesson.rows[0].keys() == {"game", "role", "fact", "weight"}
    assert json.loads(json.dumps(lesson.as_json()))["simulations"] == lesson.simulations
    assert str(lesson).startswith("breakthrough: taught for")
    assert lesson._repr_svg_().startswith("<svg ")


def test_with_a_network_the_weights_are_those_nearest_to_it(tmp_path: Path) -> None:
    game = load("breakthrough")
    play = SelfPlay(game, np.uint64(1))
    play.play(inf, 2000)
    value = stored_value(game, replace(LinearValue.zero(game), network=play.network), None)
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        lessons = Lessons(knowledge)
        lessons.put(game, StoredLesson(1, 0, play.positions, 20.0, value))
        lesson = lesson_of(game, lessons)
    assert lesson.fidelity is not None
    assert 0.2 < lesson.fidelity < 1.0
    nearest = surrogate(game, play.network)
    fact = game.fact_texts.index("(cell 1 4 white)")
    assert lesson.weights["white"]["(cell 1 4 white)"] == pytest.approx(100 * nearest.weights[0, fact], abs=0.5)
    assert f"explain {lesson.fidelity:.0%} of the values of the network" in str(lesson)
    assert lesson.as_json()["fidelity"] == lesson.fidelity
    assert lesson.svg.startswith("<svg ")


def test_the_same_call_goes_on(store: Path, lessons: Lessons) -> None:
    before = lesson_of(load("breakthrough"), lessons)
    stages = []
    after = study(load("breakthrough"), seconds=0.7, store=store, progress=lambda *told: stages.append(told))
    assert after.simulations > before.simulations
    assert after.seconds > before.seconds
    assert stages[-1] == ("studying breakthrough, in seconds", 1, 1)


def test_the_verdicts_of_the_tests(lessons: Lessons) -> None:
    game = load("breakthrough")
    for advice, number, against, better, worse in (
        (LESSON, 50, rival_name(1), 0.0, 20.0),
        (LESSON, 51, rival_name(1), 20.0, 0.0),
        (LESSON, 51, rival_name(10), 0.0, 0.0),
        (OPENINGS, 50, WITHOUT, 0.0, 20.0),
    ):
        row = TrialRow(advice, number, against, 40, 28.0, 1.0, better, worse)
        lessons.add_evidence(game, row, lambda _, row=row: row)
    error = 100 * (1.25 / 41 / 40) ** 0.5
    assert lesson_of(game, lessons).tests == [
        AdviceTest(LESSON, 50, "startclock=1", 40, 70.0, "refused", error),
        AdviceTest(LESSON, 51, "startclock=1", 40, 70.0, "taken", error),
        AdviceTest(LESSON, 51, "startclock=10", 40, 70.0, "open", error),
        AdviceTest(OPENINGS, 50, "without", 40, 70.0, "refused", error),
    ]


def test_the_picture_of_strength_has_a_line_for_each_kind_of_rival(lessons: Lessons) -> None:
    game = load("breakthrough")
    (axes,) = lesson_of(game, lessons).plot().axes
    assert axes.get_legend() is None, "nothing was tried"
    generations = lesson_of(game, lessons).generations
    for number, startclock, total, better in ((1, 10, 12.0, 0.0), (1, 1, 28.0, 20.0), (0, 1, 4.0, 0.0)):
        row = TrialRow(LESSON, number, rival_name(startclock), 40, total, 1.0, better, 0.0)
        lessons.add_evidence(game, row, lambda _, row=row: row)
    (axes,) = lesson_of(game, lessons).plot().axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["startclock=1", "startclock=10"]
    short, long = axes.containers
    place = np.log10(1 + generations[0].seconds)
    assert short[0].get_xydata() == pytest.approx(np.array([[0.0, 10.0], [place, 70.0]]))
    assert long[0].get_xydata() == pytest.approx(np.array([[place, 30.0]]))


def test_pictures_and_tables_are_written(lessons: Lessons, tmp_path: Path) -> None:
    lesson = lesson_of(load("breakthrough"), lessons)
    for name in ("weights.svg", "weights.csv"):
        lesson.save(tmp_path / name)
    assert (tmp_path / "weights.svg").read_text().startswith("<svg ")
    assert (tmp_path / "weights.csv").read_text().startswith("game,role,fact,weight")


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (
            "pegsolitaire",
            "expected a game with two or more roles, got pegsolitaire with 1 role; study another game",
        )
    ],
)
def test_games_that_cannot_be_studied(game: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match=message):
        study(game, seconds=1, store=tmp_path / "k.db", progress=False)
    with pytest.raises(GameloreError, match="expected a time of more than 0 seconds, got 0"):
        study("tictactoe", seconds=0, store=tmp_path / "k.db", progress=False)


def test_a_store_without_a_lesson_says_so(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "k.db") as knowledge, pytest.raises(GameloreError, match="got none; study the game"):
        lesson_of(load("tictactoe"), Lessons(knowledge))
    with pytest.raises(KnowledgeError):
        study("tictactoe", seconds=1, store=tmp_path, progress=False)


def test_a_small_game_is_solved_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = load("breakthrough:width=3,height=4,rows=1")
    monkeypatch.setattr(solution, "folder", lambda: tmp_path / "compiled")  # without solutions of earlier tests
    assert study(game, seconds=0.2, store=tmp_path / "k.db", progress=False).solved == {}, "without time for it"
    monkeypatch.setattr(game_lessons, "_OF_SOLVER", 1000.0)
    lesson = study(game, seconds=0.2, store=tmp_path / "k.db", progress=False)
    assert lesson.solved == solve(game, progress=False).values
    assert (
        "solved, so nothing more is to be studied; under a clock, or with solve=yes, its solution is played: white "
        in str(lesson)
    )
    assert lesson.as_json()["solved"] == lesson.solved


def test_the_command(tmp_path: Path) -> None:
    store, picture = tmp_path / "k.db", tmp_path / "weights.svg"
    told = run("study", "tictactoe", "connect3", "--seconds", 1, "--knowledge", store, "--svg", picture).stdout
    assert "tictactoe: taught for" in told
    assert "connect3: taught for" in told
    for name in ("tictactoe", "connect3"):
        assert (tmp_path / f"weights-{name}.svg").read_text().startswith("<svg ")
    assert "with 1 role" in run("study", "tictactoe", "pegsolitaire", "--knowledge", store, code=1).stderr, (
        "before any study"
    )
    for seconds in (0.3, 9):  # a busy machine may not end a generation in less; with 10, the game is solved
        (report,) = run_json("study", "tictactoe", "--seconds", seconds, "--knowledge", store)
        assert report["game"] == "tictactoe"
        if report["generations"]:
            break
    assert report["generations"]
    run("study", "tictactoo", "--knowledge", store, code=2)


def test_lessons_of_a_store(store: Path, tmp_path: Path) -> None:
    knowledge, copy = Knowledge(store), Knowledge(tmp_path / "copy.db")
    (summary,) = knowledge.lessons()
    assert summary.game == "breakthrough"
    assert summary.seconds > 0.2
    assert summary.generations == len(knowledge.lesson("breakthrough").generations) > 0
    assert copy.lessons() == []
    assert knowledge.export_lessons(tmp_path / "lessons.json", ["breakthrough"]) == 1
    assert copy.add_lessons(tmp_path / "lessons.json") == 1
    assert copy.lessons() == knowledge.lessons()
    assert copy.delete_lesson("breakthrough")
    assert not copy.delete_lesson("breakthrough")
    assert copy.lessons() == []


def test_a_lesson_that_began_with_a_variant_says_so(tmp_path: Path) -> None:
    game, other = load("tictactoe"), load("connect3")
    value = StoredValue(0.5, 0.25, None, (0.5, 0.5), {"(cell 1 1 x)": (0.25, -0.25)})
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        lessons = Lessons(knowledge)
        lessons.put(other, StoredLesson(1, 10, 1000, 1.0, value))
        lessons.put(game, StoredLesson(1, 10, 1000, 1.0, value, origin=other.rules_hash, likeness=0.25))
        row = TrialRow(LESSON, 1, rival_name(10), 10, 7.0, 1.0, 20.0, 0.0)
        lessons.add_evidence(game, row, lambda _: row)
    lesson = Knowledge(tmp_path / "k.db").lesson(game)
    assert lesson.variant == ("connect3", 0.25)
    assert "began with the lesson of connect3 (likeness 0.25)" in str(lesson)
    assert lesson.as_json()["variant"] == {"game": "connect3", "likeness": 0.25}
    summary = Knowledge(tmp_path / "k.db").lessons()[1]
    assert (summary.variant, summary.taken_for) == ("connect3", 10)


def test_the_commands_about_lessons(store: Path, tmp_path: Path) -> None:
    own, file, copy = ["--knowledge", store], tmp_path / "lessons.json", ["--knowledge", tmp_path / "copy.db"]
    table = run("lessons", "list", *own).stdout.splitlines()
    assert table[0].split()[:3] == ["game", "seconds", "generations"]
    assert table[1].startswith("breakthrough ")
    (listed,) = run_json("lessons", "list", *own)
    assert listed["game"] == "breakthrough"
    told = run("lessons", "show", "breakthrough", "--svg", tmp_path / "w.svg", *own).stdout
    assert "generation  simulations  seconds  explains  value" in told
    assert (tmp_path / "w.svg").read_text().startswith("<svg ")
    told = run("lessons", "show", "breakthrough", "--strength", tmp_path / "s.svg", *own).stderr
    assert told == f"wrote the picture {tmp_path / 's.svg'}\n"
    assert "<svg " in (tmp_path / "s.svg").read_text()
    assert run_json("lessons", "show", "breakthrough", *own)["game"] == "breakthrough"
    run("lessons", "export", file, *own)
    run("lessons", "export", file, *own, code=1)
    assert run_json("lessons", "export", file, "breakthrough", "--force", *own)["lessons"] == 1
    run("lessons", "import", file, *copy)
    assert run_json("lessons", "import", file, *copy)["lessons"] == 0
    assert "got none; gamelore lessons list" in run("lessons", "delete", "tictactoe", *copy, code=1).stderr
    run("lessons", "delete", "breakthrough", *copy)
    assert "has no lesson; gamelore study" in run("lessons", "list", *copy).stderr


VALUE = StoredValue(0.5, 0.25, None, (0.5, 0.5), {"(cell 1 1 x)": (0.25, -0.25)})


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store with a damaged lesson about connect3, and a sound one about tictactoe."""
    path = tmp_path / "damaged.db"
    with KnowledgeStore(path) as knowledge:
        for name in ("connect3", "tictactoe"):
            Lessons(knowledge).put(load(name), StoredLesson(1, 10, 1000, 1.0, VALUE))
        with knowledge.writing() as connection:
            game = "(SELECT id FROM game WHERE name = 'connect3')"
            connection.execute(f"UPDATE taught SET weights = '{{\"x\":[1]}}' WHERE game = {game}")
    return path


def test_a_damaged_lesson_is_named_and_can_be_deleted(damaged: Path, tmp_path: Path) -> None:
    own = ["--knowledge", damaged]
    problem = "lesson about connect3: expected what an import would take, got: expected 2 weights for each fact"
    remedy = "gamelore lessons delete connect3 removes it"
    assert [line[: len(problem)] for line in Knowledge(damaged).check()] == [problem]
    listed = run("lessons", "list", *own)
    assert listed.stdout.splitlines()[1].split() == ["connect3", *"------", "damaged"]
    assert remedy in listed.stderr
    for words in (("show", "connect3"), ("export", tmp_path / "all.json")):
        error = run("lessons", *words, *own, code=1).stderr
        assert problem in error
        assert remedy in error
    assert remedy in run("study", "connect3", *own, "--seconds", 1, code=1).stderr
    run("lessons", "export", tmp_path / "one.json", "tictactoe", *own)
    run("study", "othello4", *own, "--seconds", 0.5)
    run("lessons", "delete", "connect3", *own)
    assert Knowledge(damaged).check() == []


def test_a_damaged_file_is_no_damaged_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lesson about a game.db"
    with KnowledgeStore(path) as knowledge:
        Lessons(knowledge).put(load("tictactoe"), StoredLesson(1, 10, 1000, 1.0, VALUE))

    def find(lessons: Lessons, _: str) -> None:
        with lessons.knowledge.reading():
            raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(Lessons, "find", find)
    with pytest.raises(KnowledgeError, match="expected a readable knowledge store, got: database disk image is malf"):
        Knowledge(path).lessons()


def test_a_damaged_trial_costs_only_its_game(damaged: Path) -> None:
    with KnowledgeStore(damaged) as knowledge:
        lessons = Lessons(knowledge)
        for name in ("connect3", "tictactoe"):
            lessons.add_evidence(load(name), TrialRow(LESSON, 1, "startclock=1"), lambda row: row._replace(num=1))
        with knowledge.writing() as connection:
            connection.execute(
                "UPDATE trial SET num = 'many' WHERE game = (SELECT id FROM game WHERE name = 'connect3')"
            )
    assert [row["game"] for row in Knowledge(damaged).ledger()] == ["tictactoe"]
    assert [bool(lesson.damage) for lesson in Knowledge(damaged).lessons()] == [True, False]


@pytest.mark.parametrize(
    "evidence",
    [(1, 500.0, 0.0, 0.0, 0.0), (1, 0.5, 2.0, 0.0, 0.0), (1, 0.5, 0.0, 1000.0, 0.0), (1, 0.5, 0.0, 0.0, 9.0)],
)
def test_impossible_evidence_is_refused(evidence: tuple[float, ...], tmp_path: Path) -> None:
    game, file = load("tictactoe"), tmp_path / "lessons.json"
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        Lessons(knowledge).put(game, StoredLesson(1, 10, 1000, 1.0, VALUE))
        Lessons(knowledge).add_evidence(game, TrialRow(LESSON, 1, "startclock=1"), lambda row: row._replace(num=1))
    Knowledge(tmp_path / "k.db").export_lessons(file)
    content = json.loads(file.read_text())
    content["lessons"][0]["trials"][0][3:] = evidence
    file.write_text(json.dumps(content))
    with pytest.raises(KnowledgeError, match=r"lessons.json: .* after 1 round, got .* \(nothing was imported\)"):
        Knowledge(tmp_path / "new.db").add_lessons(file)
    assert not (tmp_path / "new.db").exists()


def test_a_wrong_import_makes_no_store(tmp_path: Path) -> None:
    for kind in ("lessons", "knowledge"):
        run(kind, "import", tmp_path / "none.json", "--knowledge", tmp_path / "new.db", code=1)
        assert not (tmp_path / "new.db").exists()


def test_missing_folders_are_refused(store: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "k.db"
    assert "expected a file in an existing folder" in run("study", "tictactoe", "--knowledge", missing, code=1).stderr
    error = run("lessons", "export", missing.with_name("l.json"), "--knowledge", store, code=1).stderr
    assert "expected a file in an existing folder" in error
    assert not missing.parent.exists()


def test_exports_of_the_other_kind_name_the_command(store: Path, tmp_path: Path) -> None:
    lessons, learners = tmp_path / "l.json", tmp_path / "k.json"
    Knowledge(store).export_lessons(lessons)
    Knowledge(store).export(learners)
    with pytest.raises(KnowledgeError, match="got lessons; import this one with `gamelore lessons import`"):
        Knowledge(tmp_path / "new.db").add(lessons)
    with pytest.raises(KnowledgeError, match="got learners; import this one with `gamelore knowledge import`"):
        Knowledge(tmp_path / "new.db").add_lessons(learners)


def test_commands_about_learners_and_lessons_know_each_other(store: Path) -> None:
    own = ["--knowledge", store]
    assert "it has lessons: gamelore lessons list" in run("knowledge", "list", *own).stderr
    assert "it has lessons: gamelore lessons list" in run("knowledge", "show", *own, code=1).stderr
    assert (
        "a lesson about goofspiel, got none"
        in run("lessons", "export", store.with_name("no.json"), "goofspiel", *own, code=1).stderr
    )
    assert "(gamelore study goofspiel)" in run("lessons", "show", "goofspiel", *own, code=1).stderr


def test_a_solved_game_is_studied_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_lessons, "_solve", lambda game, deadline: True)
    lesson = study("tictactoe", seconds=100_000, store=tmp_path / "k.db", progress=False)
    assert (lesson.seconds, lesson.generations) == (0.0, [])
    assert "after a move of" not in str(lesson)
    assert Knowledge(tmp_path / "k.db").check() == []


def test_texts_of_refusals(tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match="expected a finite number of seconds, got inf"):
        study("tictactoe", seconds=float("inf"), store=tmp_path / "k.db", progress=False)
    with pytest.raises(GameloreError, match="a game that is compiled, got tictactoe on the engine reasoner"):
        game_lessons.suitable(load("tictactoe", "reasoner"))
    error = run("recognise", tmp_path / "none.jsonl", "--role", "white", code=1).stderr
    assert "name one that gamelore play --records wrote" in error


def test_what_a_lesson_that_beats_the_longest_rival_is_used_for(tmp_path: Path) -> None:
    game, other = load("tictactoe"), load("connect3")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        lessons = Lessons(knowledge)
        lessons.put(game, StoredLesson(1, 10, 1000, 1.0, VALUE, origin=other.rules_hash, likeness=0.25))
        row = TrialRow(LESSON, 1, rival_name(60), 40, 38.0, 1.0, 20.0, 0.0)
        lessons.add_evidence(game, row, lambda _: row)
    (line,) = run("lessons", "list", "--knowledge", tmp_path / "k.db").stdout.splitlines()[1:]
    assert "a deleted game" in line
    assert line.endswith("all startclocks")
    assert "95%" in run("lessons", "ledger", "--knowledge", tmp_path / "k.db").stdout
    assert '"explains"' in run("lessons", "list", "--help").stdout
    assert "depend on time" in " ".join(run("study", "--help").stdout.replace("│", " ").split())
