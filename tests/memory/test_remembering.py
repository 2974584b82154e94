"""The player with a memory: its matches and lessons are stored, and a broken store does not cost it a match."""

import logging
from pathlib import Path
from time import monotonic, process_time

import numpy as np
import pytest

from gamelore import Game, GameloreError, KnowledgeError, load
from gamelore.catalogue import player
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, Lessons, PlayedMatch, TrialRow
from gamelore.matches.match import MatchState
from gamelore.memory import course as course_module
from gamelore.memory import rivals as rivals_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.advice import rival_name
from gamelore.memory.remembering import Remembering
from gamelore.memory.schooling import MatchMemory
from gamelore.net.belief import LastingPlayer, PlayerMatches
from gamelore.players.player import Player, Turn
from gamelore.puzzles.portfolio import PuzzleSearch
from gamelore.search import startclock as startclock_module
from gamelore.search.champion import Gamelore
from gamelore.search.settings import TeachingSettings
from gamelore.search.startclock import Pupil

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (course_module, rivals_module, tuition_module):
        monkeypatch.setattr(module, "TeachingSettings", lambda simulations=1 << 60: QUICK)
    monkeypatch.setattr(startclock_module, "stored", lambda game: None)  # a solved game is not learned


def played(matches: PlayerMatches, match: str, startclock: float = 1.0) -> str:
    """Play a match in the first role against first legal moves; return with what.

    Of the startclock, a fifth is used, in CPU time, and the rest counts as used.
    """
    matches.start(match, "white", startclock=startclock)
    end = process_time() + startclock / 5
    while process_time() < end and matches.ponder(match, monotonic() + 0.02):
        pass
    prepared(matches.player)._seconds += startclock
    state, joint = MatchState(matches._graph), None
    while not matches.advance(match, joint).end:
        mine = matches.choose(match, monotonic() + 0.01)
        joint = [mine, state.legal(1)[0]]
        for role, move in enumerate(joint):
            state.submit(role, move)
    ended = matches.stop(match, joint)
    assert ended.is_learned
    matches.learn()
    return ended.about


def prove(lessons: Lessons, game: Game) -> None:
    """Add evidence that no test doubts for the newest state of the lesson."""
    number = lessons.taught(game.rules_hash, LESSON)[-1].number
    row = TrialRow(LESSON, number, rival_name(1), 50, 45.0, 1.0, 20.0, -5.0)
    lessons.add_evidence(game, row, lambda _: row)


def prepared(player: Player) -> MatchMemory:
    """Return what a player that remembers plays with in its only match."""
    assert isinstance(player, Remembering)
    (own,) = (lane.prepared for lane in player._lanes.values())
    assert isinstance(own, MatchMemory)
    return own


def test_the_catalogue_makes_it_for_a_store(tmp_path: Path) -> None:
    made = player("gamelore:seconds=0.1", knowledge=tmp_path / "k.db", quota=10)
    assert isinstance(made, Remembering)
    assert isinstance(made, LastingPlayer)
    assert (made.path, made.quota, made.settings.seconds) == (tmp_path / "k.db", 10, 0.1)
    plain = player("gamelore:seconds=0.1")
    assert isinstance(plain, Gamelore)
    assert not isinstance(plain, LastingPlayer)


def test_matches_and_lessons_are_stored(tmp_path: Path) -> None:
    game, path = load("breakthrough"), tmp_path / "k.db"
    matches = PlayerMatches(game, Remembering(knowledge=path))
    untested = "a value without memory (lesson open: not tried; openings open: not tried)"
    assert played(matches, "m1") == untested
    with KnowledgeStore(path) as knowledge:
        lessons = Lessons(knowledge)
        (match,) = lessons.matches(game.rules_hash)
        lesson = lessons.find(game.rules_hash)
    assert (match.id, match.role, match.startclock, len(match.goals)) == ("m1", 0, 1, 2)
    assert game.start().play(match.moves[0])
    assert lesson is not None
    assert lesson.walks > 0


def test_another_process_goes_on(tmp_path: Path) -> None:
    """Numbers of matches go on, so random numbers differ, and the lesson grows."""
    game, path = load("breakthrough"), tmp_path / "k.db"
    walks = []
    for name in ("m1", "m2"):
        memory = Remembering(knowledge=path)
        assert memory.num_matches(PlayerMatches(game, memory)._graph, 0) == len(walks)
        played(PlayerMatches(game, memory), name)
        lesson = memory.lessons.find(game.rules_hash)
        assert lesson is not None
        walks.append(lesson.walks)
        memory.close()
    assert walks[1] > walks[0]


def test_a_tested_lesson_is_in_the_search_from_the_first_move_on(tmp_path: Path) -> None:
    game, path = load("breakthrough"), tmp_path / "k.db"
    memory = Remembering(knowledge=path)
    played(PlayerMatches(game, memory), "m1")
    prove(memory.lessons, game)
    memory.close()
    again = Remembering(knowledge=path)
    matches = PlayerMatches(game, again)
    matches.start("m2", "white", startclock=0.0)
    matches.advance("m2", None)
    matches.choose("m2", monotonic() + 0.05)
    assert prepared(again).verdicts[LESSON] == "taken"
    expected = f"state {prepared(again).snapshot} of the lesson (lesson taken: 90% of 50 rounds against startclock=1; "
    assert again.about(game, 0).startswith(expected)
    value = prepared(again).value
    assert value is not None
    assert np.array_equal(again._lanes[0].search._stems[0].grower.prior.constants, value.constants)


def test_a_full_store_keeps_no_more(tmp_path: Path) -> None:
    game, path = load("breakthrough"), tmp_path / "k.db"
    memory = Remembering(knowledge=path, quota=10)
    matches = PlayerMatches(game, memory)
    matches.start("m1", "white", startclock=0.0)
    state, joint = MatchState(matches._graph), None
    while not matches.advance("m1", joint).end:
        joint = [state.legal(0)[0], state.legal(1)[0]]
        for role, move in enumerate(joint):
            state.submit(role, move)
    assert not matches.stop("m1", joint).is_learned
    assert memory.lessons.matches(game.rules_hash) == []


@pytest.mark.parametrize("learn", [True, False])
def test_a_store_that_cannot_be_read_costs_no_match(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, learn: bool
) -> None:
    path = tmp_path / "k.db"
    path.write_text("this is no store")
    matches = PlayerMatches(load("breakthrough"), Remembering(knowledge=path, learn=learn))
    with caplog.at_level(logging.WARNING):
        matches.start("m1", "white", startclock=0.0)
    assert "plays without memory" in caplog.text
    matches.advance("m1", None)
    assert matches.choose("m1", monotonic() + 0.05)


def test_a_store_that_fails_once_costs_one_match_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    path.write_text("this is no store")
    memory = Remembering(knowledge=path)
    matches = PlayerMatches(load("breakthrough"), memory)
    teachers = []
    for match in ("m1", "m2"):
        matches.start(match, "white", startclock=0.0)
        teachers.append(memory._lanes[0].prepared)
        matches.abort(match)
    assert isinstance(teachers[0], Pupil)
    assert teachers[0] is teachers[1], "it knows what it has learned, as a player without memory"
    path.unlink()
    matches.start("m3", "white", startclock=0.0)
    matches.start("m4", "white", startclock=0.0)
    first, second = (memory._lanes[number].prepared for number in (0, 1))
    assert isinstance(first, MatchMemory)
    assert isinstance(second, MatchMemory)
    assert first._memory is second._memory


def test_a_match_knows_what_the_solver_took_of_its_startclock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Remembering(knowledge=tmp_path / "k.db")
    matches = PlayerMatches(load("breakthrough"), memory)
    matches.start("m1", "white", startclock=1.0)

    def solve(self: Gamelore, turn: Turn) -> bool:
        end = process_time() + 0.02
        while process_time() < end:
            pass
        return True

    monkeypatch.setattr(Gamelore, "_solves", solve)
    assert matches.ponder("m1", monotonic() + 0.02)
    solved = prepared(memory).solved
    assert 0.02 <= solved < 0.1
    matches.advance("m1", None)
    matches.choose("m1", monotonic() + 0.01)
    assert matches.ponder("m1", monotonic() + 0.02)
    assert prepared(memory).solved == solved, "the startclock is over"


def test_a_missing_store_costs_a_player_that_does_not_learn_no_match(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    matches = PlayerMatches(load("breakthrough"), Remembering(knowledge=tmp_path / "none.db", learn=False))
    with caplog.at_level(logging.WARNING):
        matches.start("m1", "white", startclock=0.0)
    assert "no such file" in caplog.text
    assert not (tmp_path / "none.db").exists()


def test_a_finished_match_is_kept_if_the_lesson_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*given: object) -> None:
        raise KnowledgeError("the disk is full")

    game, path = load("breakthrough"), tmp_path / "k.db"
    monkeypatch.setattr(Lessons, "put", full)
    with caplog.at_level(logging.WARNING):
        played(PlayerMatches(game, Remembering(knowledge=path)), "m1")
    assert "the disk is full" in caplog.text
    with KnowledgeStore(path) as knowledge:
        assert [match.id for match in Lessons(knowledge).matches(game.rules_hash)] == ["m1"]


def test_a_budget_of_teaching_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match=r"expected no option teaching beside knowledge, .* got teaching=20000"):
        player("gamelore:teaching=20000", knowledge=tmp_path / "k.db")
    with pytest.raises(GameloreError, match=r"expected no parameters of the search .*, got exploration=0.7, minimax=0"):
        player("gamelore:exploration=0.7,minimax=0", knowledge=tmp_path / "k.db")


def test_a_player_that_does_not_learn_uses_the_store_and_leaves_it(tmp_path: Path) -> None:
    game, path = load("breakthrough"), tmp_path / "k.db"
    memory = Remembering(knowledge=path)
    played(PlayerMatches(game, memory), "m1")
    prove(memory.lessons, game)
    memory.close()
    before = path.read_bytes()
    reader = player("gamelore:learn=no", knowledge=path)
    matches = PlayerMatches(game, reader)
    matches.start("m2", "white", startclock=0.3)
    assert prepared(reader).verdicts[LESSON] == "taken"
    assert prepared(reader).value is not None
    assert prepared(reader).is_done
    matches.abort("m2")
    assert path.read_bytes() == before


def test_without_a_tested_lesson_it_learns_in_the_startclock_only(tmp_path: Path) -> None:
    game, path = load("breakthrough"), tmp_path / "k.db"
    with KnowledgeStore(path):
        pass
    reader = Remembering(knowledge=path, learn=False)
    matches = PlayerMatches(game, reader)
    matches.start("m1", "white", startclock=0.5)
    end = monotonic() + 0.5
    while monotonic() < end:
        matches.ponder("m1", min(end, monotonic() + 0.02))
    assert prepared(reader).value is not None
    matches.abort("m1")
    assert reader.lessons.find(game.rules_hash) is None


# puzzles

WALK = """
(role robot) (init (step 0)) (init (at 0)) (legal robot up) (legal robot stay)
(<= (next (step ?n)) (true (step ?m)) (after ?m ?n)) (after 0 1) (after 1 2) (after 2 3) (after 3 4)
(<= (next (at ?n)) (does robot up) (true (at ?m)) (after ?m ?n))
(<= (next (at ?m)) (does robot stay) (true (at ?m)))
(<= terminal (true (step 4))) (<= (goal robot 90) (true (at 3))) (<= (goal robot 20) (not (true (at 3))))
"""  # three of four plies must go up, for 90
SOLUTION = ["up", "stay", "up", "up"]


def walked(game: Game, player: Player, match: str) -> tuple[list[str], str]:
    """Play a match of a puzzle; return the moves, and with what they were made."""
    matches, moves, joint = PlayerMatches(game, player), list[str](), None
    matches.start(match, game.roles[0], startclock=0.0)
    while not matches.advance(match, joint).end:
        joint = [matches.choose(match, monotonic() + 0.05)]
        moves += joint
        matches.ponder(match, monotonic() + 0.01)
        assert len(moves) < 10
    ended = matches.stop(match, joint)
    matches.learn()
    return moves, ended.about


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search of puzzles find nothing."""
    monkeypatch.setattr(PuzzleSearch, "run", lambda *_, **__: 0)


@pytest.mark.usefixtures("blind")
def test_the_best_match_of_a_puzzle_is_played_again(tmp_path: Path) -> None:
    game, path = load(WALK), tmp_path / "k.db"
    with KnowledgeStore(path) as knowledge:
        lessons = Lessons(knowledge)
        assert lessons.best_matches(game.rules_hash, 4) == []
        for name, moves, goal in (("m1", ["stay"] * 4, 20), ("m2", SOLUTION, 90), ("m3", ["up"] * 3 + ["stay"], 90)):
            lessons.add_match(game, PlayedMatch(name, 0, 0, tuple((move,) for move in moves), (goal,)))
        lessons.add_match(game, PlayedMatch("m0", 0, 0, (("stay",),), (0,)))
        best = lessons.best_matches(game.rules_hash, 4)
        assert [match.id for match in best] == ["m2", "m3", "m1"], "the older one of equal ones first"
        assert lessons.best_matches(game.rules_hash, 1) == best[:1]
    again, about = walked(game, Remembering(knowledge=path), "m4")
    assert (again, about) == (SOLUTION, "the solution of an earlier match (goal 90)")
    with KnowledgeStore(path) as knowledge:
        goals = [match.goals for match in Lessons(knowledge).matches(game.rules_hash)]
        assert goals == [(20,), (90,), (90,), (0,), (90,)]
    reader = Remembering(knowledge=path, learn=False)
    assert walked(game, reader, "m5")[0] == SOLUTION, "also if it learns nothing"


@pytest.mark.usefixtures("blind")
def test_a_move_that_changes_nothing_is_left_out_of_a_solution(tmp_path: Path) -> None:
    """Else the player could not tell whether it has made it."""
    rules = WALK.replace("(true (step ?m)) (after ?m ?n)", "(true (step ?n))").replace(
        "(true (step 4))", "(true (at 3))"
    )
    game = load(rules)
    memory = Remembering(knowledge=tmp_path / "k.db")
    memory.lessons.add_match(game, PlayedMatch("m1", 0, 0, tuple((move,) for move in SOLUTION), (90,)))
    assert walked(game, memory, "m2")[0] == ["up"] * 3


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_solution_is_followed_after_forced_moves(tmp_path: Path, engine: str) -> None:
    """The first choice is at the second ply, where the solution goes on."""
    rules = WALK.replace("(legal robot stay)", "(<= (legal robot stay) (not (true (step 0))))")
    game = load(rules, engine=engine)
    memory = Remembering(knowledge=tmp_path / "k.db")
    memory.lessons.add_match(game, PlayedMatch("m1", 0, 0, tuple((move,) for move in SOLUTION), (90,)))
    assert walked(game, memory, "m2")[0] == SOLUTION


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize(
    "moves", [SOLUTION[:3], [*SOLUTION, "up"], ["up", "down", "up", "up"], ["up", ")", "up", "up"]]
)
def test_a_match_that_contradicts_the_rules_is_no_solution(tmp_path: Path, moves: list[str]) -> None:
    """The next best one is."""
    game = load(WALK)
    memory = Remembering(knowledge=tmp_path / "k.db")
    for name, own, goal in (("m1", moves, 100), ("m2", SOLUTION, 90)):
        memory.lessons.add_match(game, PlayedMatch(name, 0, 0, tuple((move,) for move in own), (goal,)))
    assert walked(game, memory, "m3") == (SOLUTION, "the solution of an earlier match (goal 90)")


@pytest.mark.parametrize("goals", ["[", '["a"]', "null"])
def test_damaged_goals_cost_the_solutions_only(tmp_path: Path, goals: str, caplog: pytest.LogCaptureFixture) -> None:
    game, path = load(WALK), tmp_path / "k.db"
    with KnowledgeStore(path) as knowledge:
        Lessons(knowledge).add_match(game, PlayedMatch("m1", 0, 0, tuple((move,) for move in SOLUTION), (90,)))
        with knowledge.writing() as connection:
            connection.execute("UPDATE played SET goals = ?", [goals])
    with caplog.at_level(logging.WARNING):
        moves, about = walked(game, Remembering(knowledge=path), "m2")
    assert (len(moves), about) == (4, "")
    assert "name another file" not in caplog.text, "the store is sound"


def test_a_puzzle_is_played_without_a_store_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    game = load(WALK)
    with caplog.at_level(logging.WARNING):
        matches = PlayerMatches(game, Remembering(knowledge=tmp_path / "none.db", learn=False))
        matches.start("m1", "robot", startclock=0.0)
        matches.advance("m1", None)
        assert matches.choose("m1", monotonic() + 0.2) in {"up", "stay"}
    assert "does not know its earlier solutions" in caplog.text
