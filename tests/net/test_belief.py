from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, GameloreError, KnowledgeError, load
from gamelore import catalogue as players
from gamelore.catalogue import player
from gamelore.learning.session import STAGE
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import Afterstate, MatchRow
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.series import CAP_VARIABLE
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchState
from gamelore.matches.opponents import OpponentSettings
from gamelore.net.belief import MOST_USED, PlayerMatches
from gamelore.net.requests import Advanced, Ended
from gamelore.players.player import Finished, Player, Started, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

FIRST_ROW = [
    ("(mark 1 1)", "noop"), ("noop", "(mark 2 1)"), ("(mark 1 2)", "noop"), ("noop", "(mark 2 2)"),
    ("(mark 1 3)", "noop"),
]  # fmt: skip


class Watched(Player):
    """Takes its first move and writes down all that it is told; what it keeps lasts."""

    def __init__(self, behind: int = 0) -> None:
        self.behind = behind
        self.told: list[object] = []
        self.turns: list[Turn] = []
        self.finished: list[Finished] = []

    def choose(self, turn: Turn) -> np.ndarray:
        self.turns.append(turn)
        self.told.append("choose")
        return np.zeros(len(turn.lanes), np.int32)

    def begin(self, role: int, started: Started) -> None:
        self.told.append(("begin", role, started.lanes.tolist(), started.matches.tolist()))

    def end(self, role: int, finished: Finished) -> None:
        self.told.append(("end", role, finished.lanes.tolist(), finished.matches.tolist()))
        self.finished.append(finished)


class Last(Watched):
    """Takes its last move."""

    def choose(self, turn: Turn) -> np.ndarray:
        return turn.graph.num_moves[turn.rows, turn.role] - 1


class Kept(Watched):
    """One more match is behind it with each that it keeps. What is in `fails` fails once each."""

    def __init__(self, behind: int = 0, fails: Sequence[str] = (), keeps: bool = True) -> None:
        super().__init__(behind)
        self.fails = list(fails)
        self.keeps = keeps

    def num_matches(self, graph: PositionGraph, role: int) -> int:
        return self.behind

    def keep(self, role: int, finished: Finished, match_id: str) -> bool:
        self._fail("keep")
        self.behind += self.keeps
        self.told.append(("keep", role, match_id))
        return self.keeps

    def end(self, role: int, finished: Finished) -> None:
        self._fail("end")
        super().end(role, finished)

    def _fail(self, what: str) -> None:
        if what in self.fails:
            self.fails.remove(what)
            raise KnowledgeError(f"a store that cannot {what}")


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


def seated(game: Game, one: Player | None = None, role: str = "xplayer", **settings: int) -> PlayerMatches:
    table = PlayerMatches(game, one or Watched(), **settings)
    table.start("m", role)
    return table


def told(table: PlayerMatches, moves: list[tuple[str, str]], match: str = "m") -> Advanced:
    at = table.advance(match, None)
    for joint in moves:
        at = table.advance(match, joint)
    return at


def host(game: Game, tables: list[PlayerMatches], ids: list[str]) -> None:
    """Plays a match among one table for each role, as a host does."""
    state, joint = MatchState(PositionGraph(game)), None
    while state.end is None:
        for table, match in zip(tables, ids, strict=True):
            table.advance(match, joint)
        joint = [table.choose(match) for table, match in zip(tables, ids, strict=True)]
        for role, move in enumerate(joint):
            state.submit(role, move)
    for table, match in zip(tables, ids, strict=True):
        assert table.stop(match, joint).goals == state.goals
        table.learn()


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "othello4"])
def test_tables_play_the_matches_that_lockstep_plays(name) -> None:
    game, specs = load(name), ["egreedy:epsilon=0.3", "weak:epsilon=0.3"]
    ended: list[Finished] = []
    run_lockstep(PositionGraph(game), [player(spec) for spec in specs], stream(5, 0, STAGE), 4, on_end=ended.append)
    ours = [Watched(), Watched()]
    for one, spec in zip(ours, specs, strict=True):
        one.choose = player(spec).choose  # type: ignore[method-assign]
    tables = [PlayerMatches(game, one, seed=5) for one in ours]
    for number in range(4):
        for table, role in zip(tables, game.roles, strict=True):
            assert table.start(f"m{number}", role) == number
        host(game, tables, [f"m{number}"] * 2)
    for one in ours:
        assert [finished.choices[0].tolist() for finished in one.finished] == [
            finished.choices[0].tolist() for finished in ended
        ]
        assert [finished.goals.tolist() for finished in one.finished] == [finished.goals.tolist() for finished in ended]


def test_a_match_from_start_to_stop(game) -> None:
    one = Watched()
    table = seated(game, one)
    at = table.advance("m", None)
    assert (at.ply, at.end, at.is_desynchronised, len(at.legal)) == (0, None, False, 9)
    assert at.legal[0] == table.choose("m") == "(mark 1 1)"
    assert told(table, FIRST_ROW[:1]) == Advanced(("noop",), 1, None, False)
    assert table.choose("m") == "noop"
    assert told(table, FIRST_ROW[1:4]).legal[0] == "(mark 1 3)"
    assert table.stop("m", FIRST_ROW[4]) == Ended("terminal", (100, 0), False, False)
    assert one.told == [("begin", 0, [0], [0]), "choose"]  # with one move there was nothing to ask
    table.learn()
    table.learn()
    assert one.told[2:] == [("end", 0, [0], [0])]
    assert one.finished[0].goals.tolist() == [[100, 0]]
    assert one.finished[0].choices[0].tolist() == [[0, 0], [0, 2], [0, 0], [0, 1], [0, 0]]


def test_it_learns_from_what_was_played_not_from_what_it_said(game) -> None:
    one = Watched()
    table = seated(game, one)
    assert table.choose("m") == "(mark 1 1)"
    told(table, [("(mark 3 3)", "noop")])
    assert "(mark 3 3)" not in told(table, [("noop", "(mark 1 1)")]).legal


def test_moves_are_told_apart_by_their_meaning(game) -> None:
    table = seated(game)
    at = told(table, [("( MARK  1 1 )", "NOOP"), ("noop", "(Mark 2\n1)")])
    assert (at.ply, at.is_desynchronised) == (2, False)


@pytest.mark.parametrize("again", [FIRST_ROW[0], ("(MARK 1 1)", "NoOp")])
def test_the_same_report_again_changes_nothing(game, again) -> None:
    table = seated(game)
    first = told(table, FIRST_ROW[:1])
    assert table.advance("m", again) == first
    assert table.advance("m", None) == first
    assert table.stop("m", again) == Ended(None, (None, None), False, False)


def test_the_last_report_again_in_stop(game) -> None:
    table = seated(game)
    assert told(table, FIRST_ROW).end == "terminal"
    assert table.stop("m", FIRST_ROW[-1]).end == "terminal"


def test_asked_twice_it_says_the_same(game) -> None:
    one = Watched()
    table = seated(game, one)
    assert table.choose("m") == table.choose("m")
    assert one.told.count("choose") == 1


def test_after_a_missed_turn_it_plays_on_and_does_not_learn(game) -> None:
    one = Kept()
    table = seated(game, one)
    table.choose("m")  # (mark 1 1), which it takes for what was played in the turn that it misses
    at = told(table, FIRST_ROW[1:2])
    assert (at.ply, at.end, at.is_desynchronised, len(at.legal)) == (2, None, True, 7)
    assert table.choose("m") == "(mark 1 2)"
    at = told(table, FIRST_ROW[2:4])
    assert at.is_desynchronised
    assert table.choose("m") == "(mark 1 3)"
    assert table.stop("m", FIRST_ROW[4]) == Ended("terminal", (100, 0), True, False)
    table.learn()
    assert [what for what in one.told if what != "choose"] == [("begin", 0, [0], [0])]


def test_after_a_missed_turn_what_is_told_later_rules_positions_out(game) -> None:
    table = seated(game)
    told(table, FIRST_ROW[1:2])  # where x marked first, nobody knows: not at 2 1
    told(table, [("(mark 1 1)", "noop"), ("noop", "(mark 1 2)")])
    legal = table.advance("m", None).legal
    assert not {"(mark 1 1)", "(mark 2 1)", "(mark 1 2)"} & set(legal)
    assert len(legal) == 5


def test_positions_that_fit_the_reports_may_have_fewer_moves_than_the_one_that_was_chosen_in() -> None:
    """After two missed turns, the player may be left, where it has three moves, or right, where it has one."""
    table = seated(
        load("""
            (role me) (role you) (init (at start)) (goal me 50) (goal you 50) (<= terminal (true end))
            (<= (legal me go) (not (true (after left))) (not (true (after right))))
            (<= (legal me (left ?n)) (true (after left)) (number ?n))
            (<= (legal me (right 1)) (true (after right)))
            (<= (legal you left) (true (at start))) (<= (legal you right) (true (at start)))
            (<= (legal you noop) (not (true (at start))))
            (<= (next (at ?side)) (true (at start)) (does you ?side))
            (<= (next (after ?side)) (true (at ?side)) (distinct ?side start) (does me go))
            (<= (next end) (does me (right 1)))
            (number 1) (number 2) (number 3)
        """),
        Last(),
        role="me",
    )
    told(table, [("go", "noop")])  # the turn before it is missed
    assert table.choose("m") == "(left 3)"
    assert table.advance("m", ("go", "left")) == Advanced((), 2, None, True)


def test_after_two_missed_turns_it_knows_no_legal_move(game) -> None:
    table = seated(game)
    for moves in [("(mark 9 9)", "noop"), ("nothing",), FIRST_ROW[0]]:
        assert table.advance("m", moves) == Advanced((), 0, None, True)
    with pytest.raises(GameloreError, match="expected a position with legal moves, got none"):
        table.choose("m")
    assert table.stop("m", None) == Ended(None, (None, None), True, False)


@pytest.mark.parametrize("junk", ["(mark 1", ")", "", "(mark ?x 1)", "(" * 5000, "(" * 150 + "a" + " b)" * 150, "\x00"])
def test_what_is_no_term_is_no_legal_move(game, junk) -> None:
    table = seated(game)
    at = table.advance("m", [junk, "noop"])
    assert at.is_desynchronised
    assert at.legal == ()


def test_a_match_that_is_cut_short_or_aborted_is_not_learned_from(game) -> None:
    one = Kept()
    table = seated(game, one)
    assert table.stop("m", FIRST_ROW[0]) == Ended(None, (None, None), False, False)
    table.start("other", "xplayer")
    table.abort("other")
    table.abort("other")
    table.learn()
    assert [what[0] for what in one.told] == ["begin", "begin"]
    assert table.running == ()


def test_a_match_of_too_many_plies_is_learned_from_as_capped(game) -> None:
    one = Watched()
    table = seated(game, one, max_plies=2)
    assert told(table, FIRST_ROW[:1]).end is None
    at = told(table, FIRST_ROW[1:2])
    assert (at.end, len(at.legal)) == ("cap", 7)
    at = told(table, FIRST_ROW[2:4])
    assert (at.end, table.choose("m")) == ("cap", "(mark 1 3)")
    assert table.stop("m", None) == Ended("cap", (None, None), False, False)
    table.learn()
    assert one.finished[0].goals.tolist() == [[-1, -1]]


def test_what_lasts_is_kept_before_stop_returns_and_learned_before_the_next_begins(game) -> None:
    one = Kept(behind=7)
    table = PlayerMatches(game, one)
    for number, match in [(7, "a"), (8, "b")]:
        assert table.start(match, "OPLAYER") == number
        told(table, FIRST_ROW[:4], match)
        assert table.stop(match, FIRST_ROW[4]).is_learned
    assert one.told == [
        ("begin", 1, [0], [7]), ("keep", 1, "a"), ("end", 1, [0], [7]), ("begin", 1, [0], [8]), ("keep", 1, "b"),
    ]  # fmt: skip


def play(table: PlayerMatches, match: str) -> Ended:
    """A whole match of xplayer."""
    table.start(match, "xplayer")
    told(table, FIRST_ROW[:4], match)
    return table.stop(match, FIRST_ROW[4])


def ended(one: Watched) -> list[object]:
    """The numbers of the matches of whose end it was told."""
    return [what[3][0] for what in one.told if what[0] == "end"]  # type: ignore[index]


def test_what_a_player_cannot_store_any_more_is_not_called_learned(game) -> None:
    one = Kept(keeps=False)
    table = PlayerMatches(game, one)
    assert [play(table, match).is_learned for match in "ab"] == [False, False]
    table.learn()
    assert ended(one) == [0, 1]


def test_a_store_that_fails_to_learn_is_asked_again_the_next_time(game, caplog) -> None:
    one = Kept(fails=["end"])
    table = PlayerMatches(game, one)
    for match in "abc":
        play(table, match)
    assert ended(one) == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "the player could not learn from a match: a store that cannot end"
    ]
    table.learn()
    assert ended(one) == [1, 0, 2]


def test_a_store_that_fails_while_learning_leaves_the_others_for_the_next_time(game) -> None:
    one = Kept(fails=["end", "end"])
    table = PlayerMatches(game, one)
    play(table, "a")
    for _ in range(2):
        with pytest.raises(KnowledgeError, match="a store that cannot end"):
            table.learn()
        assert ended(one) == []
    table.learn()
    assert ended(one) == [0]


def test_a_player_that_fails_to_learn_costs_itself_one_match(game, caplog) -> None:
    one = Watched()
    one.end = lambda role, finished: 1 / 0  # type: ignore[method-assign]
    table = PlayerMatches(game, one)
    play(table, "a")
    table.start("b", "xplayer")
    assert "ZeroDivisionError" in caplog.text
    del one.end
    told(table, FIRST_ROW, "b")
    table.stop("b", None)
    table.learn()
    assert ended(one) == [1]


def test_a_store_that_fails_to_keep_a_match(game) -> None:
    table = PlayerMatches(game, Kept(fails=["keep"]))
    with pytest.raises(KnowledgeError, match="a store that cannot keep"):
        play(table, "a")
    assert table.running == ("a",)
    assert table.stop("a", None).is_learned
    table.start("b", "xplayer")
    table.abort("b")
    assert table.start("c", "xplayer") == 1


def learned(path: Path) -> tuple[list[MatchRow], list[Afterstate]]:
    with KnowledgeStore(path, create=False) as store:
        (learner,) = store.learners(source="connect3")
        return store.matches(learner), store.afterstates(learner)


def test_a_learner_at_a_table_learns_what_it_does_alone(tmp_path) -> None:
    game, here, there = load("connect3"), tmp_path / "here.db", tmp_path / "there.db"
    with KnowledgeStore(here) as store:
        study(store, game, "yellow", LearnerSettings("baseline"), OpponentSettings(), 30, seed=7)
    learner = players.player("baseline", knowledge=str(there), opponent="egreedy", seed=7)
    tables = [PlayerMatches(game, player("egreedy"), seed=7), PlayerMatches(game, learner, seed=7)]
    for number in range(30):
        assert [table.start(f"m{number}", role) for table, role in zip(tables, game.roles, strict=True)] == [number] * 2
        host(game, tables, [f"m{number}"] * 2)
    assert learned(there) == learned(here)


def test_matches_that_came_to_no_end_leave_their_number(game) -> None:
    table = PlayerMatches(game, Watched())
    assert [table.start("a", "xplayer"), table.start("b", "xplayer"), table.start("c", "oplayer")] == [0, 1, 0]
    table.abort("a")
    assert table.start("d", "xplayer") == 0
    told(table, FIRST_ROW, "b")
    table.stop("b", None)
    assert [table.start("e", "xplayer"), table.start("f", "xplayer", number=40)] == [2, 40]


@pytest.mark.parametrize("step", [None, 2])
def test_of_numbers_only_some_are_remembered(game, step) -> None:
    table = PlayerMatches(game, Watched())
    table.start("long", "xplayer")
    for number in range(2 * MOST_USED):
        given = None if step is None else step * number
        assert table.start("m", "xplayer", given) == (number + 1 if given is None else given)
        told(table, FIRST_ROW)
        table.stop("m", None)
        table.learn()
    (numbers,) = table._numbers.values()
    assert len(numbers._used) <= MOST_USED


def test_matches_at_once_have_lanes_of_their_own(game) -> None:
    one = Watched()
    table = PlayerMatches(game, one)
    for match in "abc":
        table.start(match, "xplayer")
    table.abort("b")
    table.start("d", "xplayer")
    told(table, FIRST_ROW[:2], "c")
    assert [table.choose(match) for match in "cda"] == ["(mark 1 2)", "(mark 1 1)", "(mark 1 1)"]
    assert [what[2:] for what in one.told[:4]] == [([0], [0]), ([1], [1]), ([2], [2]), ([1], [1])]
    turn = one.turns[0]
    assert turn.lanes.tolist() == [2]
    assert turn.log is not None
    assert turn.log.rows[2].tolist()[-1] == turn.rows[0]
    assert turn.log.choices[2].tolist() == [[0, 0], [0, 2]]


def test_the_deadline_is_the_players(game) -> None:
    one = Watched()
    deadline = time.monotonic() + 60
    seated(game, one).choose("m", deadline)
    assert one.turns[0].deadline == deadline


def test_a_graph_that_grew_too_large_is_made_anew_and_nothing_changes(game) -> None:
    one = Watched()
    table = seated(game, one)
    table.start("gap", "oplayer")
    before = told(table, FIRST_ROW[:3])
    gap = told(table, FIRST_ROW[1:3], "gap")
    table.max_graph = 0
    assert table.advance("m", None) == before
    assert table.advance("gap", None) == gap
    table.choose("m")
    assert told(table, FIRST_ROW[3:]).end == "terminal"
    table.stop("m", None)
    table.advance("gap", None)
    assert one.finished[0].choices[0].tolist() == [[0, 0], [0, 2], [0, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("max_graph", [1 << 18, 1 << 30])
def test_a_graph_is_made_anew_before_a_learner_refuses_it(monkeypatch, tmp_path, max_graph: int) -> None:
    monkeypatch.setenv(CAP_VARIABLE, "1")
    game, one = load("connect3"), player(f"lookahead:initialisation=eager,depth=3,knowledge={tmp_path / 'k.db'}")
    tables = [PlayerMatches(game, one, max_graph=max_graph), PlayerMatches(game, player("random"))]
    num_played = 0
    with pytest.raises(GameloreError, match="at most 1 MiB") if max_graph > 1 << 20 else nullcontext():
        for number in range(20):
            for table, role in zip(tables, game.roles, strict=True):
                table.start(str(number), role)
            host(game, tables, [str(number)] * 2)
            num_played += 1
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        assert knowledge.learners()[0].num_matches == num_played
    assert (num_played == 20) == (max_graph < 1 << 20)


def test_a_player_that_chooses_no_legal_move(game) -> None:
    one = Watched()
    one.choose = lambda turn: np.array([9])  # type: ignore[method-assign]
    with pytest.raises(GameloreError, match="expected a move index from 0 to 8, got 9"):
        seated(game, one).choose("m")


def test_a_match_whose_beginning_fails_does_not_run(game) -> None:
    one = Watched()
    one.begin = lambda role, started: 1 / 0  # type: ignore[method-assign]
    table = PlayerMatches(game, one)
    with pytest.raises(ZeroDivisionError):
        table.start("m", "xplayer")
    assert table.running == ()


def test_mistakes_of_the_caller(game) -> None:
    table = seated(game)
    with pytest.raises(GameloreError, match="expected one of the roles xplayer, oplayer, got 'zplayer'"):
        table.start("n", "zplayer")
    with pytest.raises(GameloreError, match="expected a new match, got m, which is already running"):
        table.start("m", "xplayer")
    for call in [lambda: table.advance("n", None), lambda: table.choose("n"), lambda: table.stop("n", None)]:
        with pytest.raises(GameloreError, match="expected a running match, got n"):
            call()
