"""Hints with their reasons: exact values, searches, learned values and sequences, lessons; and what was learned."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import gamelore
from gamelore.drawing.board import Boards, Place
from gamelore.errors import GameloreError
from gamelore.game.game import Position
from gamelore.learning.sequences.seqplayer import TIERS
from gamelore.learning.store.lesson_rows import StoredLesson
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.rulesheets import path
from gamelore.web.children import hints
from gamelore.web.children.hints import HintPictures, Hints, Step, lesson_hints, line_text
from gamelore.web.children.rule_worker import RuleWorker

FOUR_PLIES = [["(mark 1 1)", "noop"], ["noop", "(mark 2 1)"], ["(mark 1 2)", "noop"], ["noop", "(mark 2 2)"]]
TWO_DROPS = [["(drop 4)", "noop"], ["noop", "(drop 1)"]]  # red wins by (drop 3)


def sheet(name: str) -> dict[str, str]:
    return {"rules": path(name).read_text(encoding="utf-8"), "name": name}


def played(name: str, plies: list[list[str]]) -> Position:
    position = gamelore.load(name).start()
    for joint in plies:
        position = position.play(joint)
    return position


def plain_pictures(position: Position) -> HintPictures:
    return HintPictures(Boards.of(position.game), lambda *_: "")


def baseline(store: Path) -> gamelore.Learned:
    (learner,) = (each for each in gamelore.Knowledge(store).learners(game="tictactoe") if each.kind == "baseline")
    return learner


@pytest.fixture(scope="module")
def worker() -> RuleWorker:
    return RuleWorker(memory=2 << 30, prepare_seconds=60)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A store in which tic-tac-toe has taught Connect3, and with sequences of tic-tac-toe."""
    file = tmp_path_factory.mktemp("store") / "knowledge.db"
    common = {"store": file, "progress": False}
    gamelore.learn("tictactoe", matches=300, **common)
    gamelore.learn("connect3", "transfer", sources=["tictactoe"], initialisation="eager", matches=30, **common)
    gamelore.learn("tictactoe", "sequences", matches=10, tests=0, **common)
    return file


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let games be solved for as long as they need, on slow machines too."""
    monkeypatch.setattr(hints, "SOLVE_SECONDS", 60.0)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(hints, "SOLVE_SECONDS", 0.05)


# ---- exact values, and searches ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("patient")
def test_a_win_is_told_with_the_line_that_wins(worker: RuleWorker, tmp_path: Path) -> None:
    (hint,) = worker.hints(**sheet("tictactoe"), plies=FOUR_PLIES, store=str(tmp_path / "none.db"))
    assert (hint["role"], hint["move"], hint["kind"]) == ("xplayer", "(mark 1 3)", "exact")
    assert "xplayer wins in 1 ply, whatever the opponent does." in hint["reason"]
    assert "Of the 5 moves, 4 are worse." in hint["reason"]
    assert "Best play: 1. xplayer (mark 1 3)." in hint["reason"]
    plain = worker.view(**sheet("tictactoe"), plies=FOUR_PLIES, marked=False)["svg"]
    assert hint["svg"].count("<circle") == plain.count("<circle") + 1, "a ring marks the move"
    assert 'data-place="' in hint["svg"], "the move can be made on the picture"
    assert not (tmp_path / "none.db").exists()
    json.dumps(hint)


@pytest.mark.usefixtures("patient")
def test_a_line_of_best_play_ends_with_the_promised_goal(worker: RuleWorker, tmp_path: Path) -> None:
    (hint,) = worker.hints(**sheet("connect3"), plies=TWO_DROPS, store=str(tmp_path / "none.db"))
    assert "red wins in 3 plies" in hint["reason"]
    position = played("connect3", TWO_DROPS)
    for _, role, move in re.findall(r"(\d)\. (\w+) (\(.+?\))", hint["reason"].partition("Best play:")[2]):
        position = position.play({name: move if name == role else legal[0] for name, legal in position.legal.items()})
    assert position.is_terminal
    assert position.goals["red"] == 100
    assert all(f">{number}<" in hint["svg"] for number in (1, 2, 3)), "the moves have numbers on the board"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("name", "plies", "told"),
    [
        ("tictactoe", [], "the match ends in a draw, 50 points for xplayer. All moves have the same value."),
        ("connect3", [["(drop 3)", "noop"]], "Against best play every move of yellow loses"),
        ("pegsolitaire", [], "player can reach 100 points in 13 plies, and not more."),
    ],
)
def test_draws_losses_and_puzzles_are_told(
    worker: RuleWorker, tmp_path: Path, name: str, plies: list[list[str]], told: str
) -> None:
    hint, *_ = worker.hints(**sheet(name), plies=plies, store=str(tmp_path / "none.db"))
    assert hint["kind"] == "exact"
    assert told in hint["reason"]


@pytest.mark.usefixtures("hurried")
def test_a_large_game_is_searched(worker: RuleWorker, tmp_path: Path) -> None:
    (hint,) = worker.hints(**sheet("connectfour"), plies=[], store=str(tmp_path / "none.db"))
    assert hint["kind"] == "search"
    assert hint["move"] in played("connectfour", []).legal["red"]
    assert "simulated matches the search expects" in hint["reason"]
    assert f"The line that it expects: 1. red {hint['move']}" in hint["reason"]


@pytest.mark.usefixtures("hurried")
def test_roles_that_choose_at_once_have_hints_each(worker: RuleWorker, tmp_path: Path) -> None:
    told = worker.hints(**sheet("goofspiel"), plies=[], store=str(tmp_path / "none.db"))
    assert [hint["role"] for hint in told] == ["red", "blue"]


def test_after_the_end_there_is_no_hint(worker: RuleWorker, tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match="expected a position in which the match goes on"):
        worker.hints(**sheet("tictactoe"), plies=[*FOUR_PLIES, ["(mark 1 3)", "noop"]], store=str(tmp_path / "n.db"))


def test_a_damaged_store_leaves_the_other_hints(worker: RuleWorker, tmp_path: Path) -> None:
    file = tmp_path / "knowledge.db"
    file.write_bytes(b"no store" * 1000)
    assert [hint["kind"] for hint in worker.hints(**sheet("tictactoe"), plies=[], store=str(file))] == ["exact"]


# ---- pictures ---------------------------------------------------------------------------------------------------


def test_numbers_in_one_place_are_put_together() -> None:
    position, drawn = played("tictactoe", []), []
    here, there = (Place(("cell", 3), (column, "1")) for column in "12")
    pictures = HintPictures(Boards.of(position.game), lambda position, marks=(), heat=None: drawn.append(marks) or "")
    pictures.steps(position, [Step(here, None, 1), Step(there, here, 2), Step(here, there, 3)])
    marks = drawn[0][::-1]
    assert [mark.texts for mark in marks] == [("1,3",), ("2",), ()]
    assert [mark.is_best for mark in marks] == [True, False, False]


def test_a_line_names_roles_and_leaves_out_noops() -> None:
    game = gamelore.load("tictactoe")
    assert line_text(game, FOUR_PLIES[:2]) == "1. xplayer (mark 1 1), 2. oplayer (mark 2 1)"
    goofspiel = gamelore.load("goofspiel")
    assert line_text(goofspiel, [["(bid 2)", "(bid 3)"]]) == "1. red (bid 2) and blue (bid 3)"


# ---- learned values ---------------------------------------------------------------------------------------------


def test_the_feature_that_matched_and_the_value_that_it_carried(worker: RuleWorker, store: Path) -> None:
    gamelore.solve("connect3", progress=False)  # keeps the solution: a hint has two seconds to find it
    exact, values = worker.hints(**sheet("connect3"), plies=TWO_DROPS, store=str(store))
    (learner,) = gamelore.Knowledge(store).learners(game="connect3")
    position = Position(learner.game, learner.game.state(played("connect3", TWO_DROPS).facts))
    best, second, *_ = learner.moves(position).moves["red"]
    assert (exact["kind"], values["kind"], values["move"]) == ("exact", "values", best.move)
    assert f"expects {best.mean:.0f} of 100 points after this move, {second.mean:.0f}" in values["reason"]
    assert values["title"] == (
        "What was learned: transfer learner of red that began with tictactoe, 30 matches against egreedy"
    )
    # after (drop 3), red threatens to win at two places, and no reply stops both
    assert best.move == "(drop 3)"
    value, visits = baseline(store).features["{n,W}"]
    assert "Why: after every reply of the opponent, red can play on or win at once." in values["reason"]
    assert f"This is the feature {{n,W}}. In tictactoe such positions were worth {value:.0f} points" in values["reason"]
    assert f"(met {visits} time" in values["reason"]
    ((title, svg),) = values["pictures"]
    assert "{n,W}" in title
    ElementTree.fromstring(svg)


def test_exact_values_judge_what_was_learned(worker: RuleWorker, store: Path) -> None:
    exact, *others = worker.hints(**sheet("tictactoe"), plies=FOUR_PLIES, store=str(store))
    position = played("tictactoe", FOUR_PLIES)
    goals = {row["move"]: row["goal_xplayer"] for row in gamelore.solve("tictactoe", progress=False).moves(position)}
    assert others
    for hint in others:
        loss = max(goals.values()) - goals[hint["move"]]
        verdict = f"disagree: this move gives away {loss} points" if loss else "agree: no move is better"
        assert hint["reason"].endswith(f"The exact values {verdict}.")
    assert "The exact values" not in exact["reason"]


class EndlessSolving:
    """A solution that is never known, and the number of times that it was gone on with."""

    num_runs, solution, is_done = 0, None, False

    def __init__(self, *_: object) -> None:
        """Begin nothing."""

    def run(self, deadline: float) -> None:
        EndlessSolving.num_runs += 1

    def close(self) -> None:
        """Give nothing up."""


@pytest.mark.usefixtures("hurried")
def test_a_game_is_solved_on_once_for_all_hints(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "Solving", EndlessSolving)
    worker = RuleWorker(memory=2 << 30, prepare_seconds=60)
    told = worker.hints(**sheet("tictactoe"), plies=FOUR_PLIES, store=str(store))
    assert len(told) > 1
    assert EndlessSolving.num_runs == 1


def test_a_learner_that_knows_nothing_here_gives_no_hint(worker: RuleWorker, store: Path) -> None:
    """After two strange moves, no position after a move was ever met."""
    learner = baseline(store)
    plies = next(
        [["(mark 1 1)", "noop"], ["noop", reply], ["(mark 1 2)", "noop"], ["noop", other]]
        for reply in ("(mark 3 3)", "(mark 3 2)", "(mark 3 1)")
        for other in ("(mark 2 3)", "(mark 2 1)")
        if not _met(learner, [["(mark 1 1)", "noop"], ["noop", reply], ["(mark 1 2)", "noop"], ["noop", other]])
    )
    assert "values" not in {hint["kind"] for hint in worker.hints(**sheet("tictactoe"), plies=plies, store=str(store))}


def _met(learner: gamelore.Learned, plies: list[list[str]]) -> bool:
    position = Position(learner.game, learner.game.state(played("tictactoe", plies).facts))
    return any(move.visits for move in learner.moves(position).moves["xplayer"])


def test_what_was_learned_has_values_heat_and_a_choice_of_learners(worker: RuleWorker, store: Path) -> None:
    learned = worker.learned(**sheet("tictactoe"), plies=[], store=str(store))
    learner = baseline(store)
    assert learned["learner"] == learner.number
    assert learned["learners"] == [[learner.number, "baseline learner of xplayer, 300 matches against egreedy"]]
    position = Position(learner.game, learner.game.start().state)
    assert {row["move"]: row["mean"] for row in learned["rows"]} == {
        move.move: move.mean for move in learner.moves(position).moves["xplayer"]
    }
    assert learned["svg"].count("fill-opacity") == 9
    assert learned["svg"].count('fill-opacity="0.55"') == 1, "the best move is shaded the most"
    assert learned == worker.learned(**sheet("tictactoe"), plies=[], store=str(store), learner=learner.number)
    json.dumps(learned)


def test_what_nobody_learned_is_told(worker: RuleWorker, store: Path) -> None:
    for plies, number in (FOUR_PLIES[:1], None), ([], 77):  # nobody has learned oplayer; there is no learner 77
        with pytest.raises(GameloreError, match=r"expected a learner that knows tictactoe as [ox]player"):
            worker.learned(**sheet("tictactoe"), plies=plies, store=str(store), learner=number)


def test_a_learner_is_read_again_when_it_has_learned_more(store: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.db"
    gamelore.Knowledge(own).add(_exported(store, tmp_path / "k.json"))
    position = gamelore.load("tictactoe").start()
    asked = Hints(position.game, Boards.of(position.game), lambda *_: "")
    before, (learner,), _ = asked.learned(position, own)
    gamelore.learn("tictactoe", matches=320, store=own, progress=False)
    after, (again,), _ = asked.learned(position, own)
    assert (learner.num_matches, again.num_matches) == (300, 320)
    assert after.simulations == before.simulations + 20


def _exported(store: Path, file: Path) -> Path:
    gamelore.Knowledge(store).export(file)
    return file


# ---- learned sequences ------------------------------------------------------------------------------------------


def test_the_sequences_that_vote_fit_the_position(worker: RuleWorker, store: Path) -> None:
    position = played("tictactoe", FOUR_PLIES[:3])
    (stored, pairs), *_ = hints.StoredLearners(position.game).of_sequences(store)
    advice = hints._advice(pairs, position, "oplayer")
    move = position.legal["oplayer"][advice.choices[0]]
    assert len(advice.pairs)
    for vote in range(len(advice.pairs)):
        context, ((role, first), *_) = hints._turned(pairs, advice, vote)
        assert context <= position.facts
        assert (role, first) == ("oplayer", move)
    told = worker.hints(**sheet("tictactoe"), plies=FOUR_PLIES[:3], store=str(store))
    (hint,) = (hint for hint in told if hint["kind"] == "sequences")
    voters = np.unique(advice.pairs)
    assert hint["move"] == move
    assert f"with a weight of {pairs.weights[voters].sum():.2f}." in hint["reason"]
    assert f"with a weight of {pairs.weights[voters].max():.2f} of at most 1" in hint["reason"]
    assert f"play {move}, then" in hint["reason"]
    assert "the player perfect made that move" in hint["reason"]
    assert stored.has_sequences
    assert pairs.weights[voters].min() >= TIERS[2][advice.tiers[0]]


def test_a_context_in_words() -> None:
    boards = Boards.of(gamelore.load("tictactoe"))
    facts = {"(cell 1 1 b)", "(cell 2 2 x)", "(control oplayer)"}
    assert hints._context_text(frozenset(facts), boards) == (
        "when the 2 shaded places are as now and (control oplayer) holds"
    )
    assert hints._context_text(frozenset(), boards) == "at any time"


# ---- lessons ----------------------------------------------------------------------------------------------------


def test_a_lesson_adds_up_the_weights_of_facts() -> None:
    """x in the middle is worth 8 points to xplayer, and an empty corner 3: (mark 2 2) gives 8, a corner -3."""
    position = played("tictactoe", [])
    weights = {"(cell 2 2 x)": (0.08, -0.5), "(cell 1 1 b)": (0.03, 0.0), "(control oplayer)": (0.4, 0.0)}
    lesson = StoredLesson(1, 1, 100, 1.0, StoredValue(0.25, 0.0, None, (0.0, 0.0), weights))
    (hint,) = lesson_hints(lesson, position, "xplayer", plain_pictures(position))
    assert (hint.role, hint.move, hint.kind) == ("xplayer", "(mark 2 2)", "lesson")
    # of nine moves one fills the middle, and one the corner: 8 - 8 / 9 + 3 / 9
    assert "7.4 points better than the mean of all moves: (cell 2 2 x) +7.1, (cell 1 1 b) +0.3." in hint.reason
    assert "explain 25% of what its searches find, so they are only a rough guide" in hint.reason
    ((_, svg),) = hint.pictures
    ElementTree.fromstring(svg)


def test_a_lesson_that_cannot_tell_moves_apart_gives_no_hint() -> None:
    position = played("tictactoe", [])
    lesson = StoredLesson(1, 1, 100, 1.0, StoredValue(0.9, 0.0, None, (0.0, 0.0), {"(control oplayer)": (0.4, 0.0)}))
    assert list(lesson_hints(lesson, position, "xplayer", plain_pictures(position))) == []


def test_the_lesson_of_a_store_is_asked(worker: RuleWorker, lessons, tmp_path: Path) -> None:
    game = gamelore.load("tictactoe")
    value = StoredValue(0.6, 0.0, None, (0.0, 0.0), {"(cell 3 3 x)": (0.5, 0.0)})
    lessons.put(game, StoredLesson(1, 1, 100, 1.0, value))
    told = worker.hints(**sheet("tictactoe"), plies=[], store=str(lessons.knowledge.path))
    assert [hint["kind"] for hint in told] == ["exact", "lesson"]
    assert told[1]["move"] == "(mark 3 3)"
    assert "so they are a good guide" in told[1]["reason"]


# ---- on the page ------------------------------------------------------------------------------------------------


def test_hints_and_learned_values_on_the_page(
    page, web_url: str, web_folder: Path, store: Path, tmp_path: Path
) -> None:
    knowledge = gamelore.Knowledge(web_folder / "knowledge.db")
    before = {learner.number for learner in knowledge}
    knowledge.add(_exported(store, tmp_path / "exported.json"))
    page.goto(f"{web_url}/?game=shipped/tictactoe")
    page.get_by_test_id("start").click()
    page.get_by_test_id("status").get_by_text("xplayer is to move").wait_for()
    page.get_by_test_id("hint").click()
    cards = page.get_by_test_id("hint-card")
    learned = cards.filter(has_text="What was learned: baseline learner of xplayer, 300 matches")  # others may be there
    learned.wait_for()
    assert "Exact values" in cards.first.inner_text()
    board = page.locator(".gl-board svg")
    board.get_by_text("9", exact=True).wait_for()  # the last move of the line of best play
    learned.get_by_role("button", name="show the move").click()
    board.locator("circle").wait_for()
    page.get_by_test_id("learned").click()
    page.get_by_test_id("learner").get_by_text("baseline learner of xplayer").wait_for()
    page.get_by_test_id("thoughts").get_by_role("row").nth(9).wait_for()
    assert board.locator("rect[fill-opacity]").count() == 9
    page.get_by_test_id("exact").click()
    board.get_by_text("=50", exact=True).first.wait_for()
    knowledge.delete(*(learner.number for learner in knowledge if learner.number not in before))
