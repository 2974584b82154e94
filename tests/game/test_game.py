"""The friendly side of Game, the same on both engines."""

import re
from pathlib import Path

import numpy as np
import pytest

import gamelore
from gamelore import GameloreError, IllegalMoveError, rulesheets
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import parse
from gamelore.ground.clingo import Names
from gamelore.ground.program import ground

ENGINES = ["native", "reasoner"]

STUCK = """
(role a) (role b) (init (n 0)) (succ 0 1) (succ 1 2)
(<= (legal a go) (true (n ?x)))
(<= (legal b go) (true (n 0)))
(<= (next (n ?y)) (true (n ?x)) (succ ?x ?y))
(<= terminal (true (n 2)))
(goal a 100) (goal a 50)
(<= (goal b 10) (not terminal))
"""


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def test_roles_have_the_order_of_the_rules(engine):
    """Also where they are functions, whose names are the same and whose numbers are not in this order."""
    sheet = """
        (init (turn 1)) (init (turn 2)) (role (player 2)) (role (player 1)) (role dealer)
        (<= (legal ?r wait) (role ?r)) (<= (next (turn 1)) (true (turn 2))) (<= terminal (not (true (turn 2))))
        (<= (goal ?r 50) (role ?r))
    """
    assert gamelore.load(sheet, engine=engine).roles == ("(player 2)", "(player 1)", "dealer")


def test_the_first_position_of_tictactoe(engine):
    position = gamelore.load("tictactoe", engine=engine).start()
    assert len(position.facts) == 10
    assert "(cell 1 1 b)" in position.facts
    assert position.legal["xplayer"] == [f"(mark {x} {y})" for x in "123" for y in "123"]
    assert position.legal["oplayer"] == ["noop"]
    assert not position.is_terminal
    game, first = position.game, position.state[None]
    assert [game.holds(first, fact).tolist() for fact in ("(cell 1 1 b)", "(cell 9 9 b)")] == [[True], [False]]
    assert repr(game) == f"<Game tictactoe: roles xplayer, oplayer; engine {engine}>"


def test_a_match_to_its_end(engine):
    position = gamelore.load("tictactoe", engine=engine).start()
    for x_move, o_move in [("(mark 1 1)", "(mark 2 1)"), ("(mark 1 2)", "(mark 2 2)")]:
        position = position.play({"xplayer": x_move, "oplayer": "noop"})
        position = position.play({"xplayer": "noop", "oplayer": o_move})
    position = position.play(["(MARK 1 3)", "noop"])
    assert position.is_terminal
    assert position.goals == {"xplayer": 100, "oplayer": 0}
    assert position.legal == {"xplayer": [], "oplayer": []}


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ({"xplayer": "(mark 4 4)", "oplayer": "noop"}, ["(mark 4 4)", "legal moves: (mark 1 1)", "(mark 3 3)"]),
        ({"xplayer": "(mark 1 1)"}, ["no move of oplayer", "legal moves: noop"]),
        ({"xplayer": "(mark 1 1)", "oplayer": "noop", "nobody": "noop"}, ["nobody", "xplayer, oplayer"]),
        (["noop"], ["expected 2 moves", "got 1"]),
        ("noop", ["expected 2 moves", "got 1"]),
    ],
)
def test_an_illegal_move_names_the_legal_ones(engine, moves, words):
    position = gamelore.load("tictactoe", engine=engine).start()
    with pytest.raises(gamelore.IllegalMoveError) as caught:
        position.play(moves)
    for word in words:
        assert word in str(caught.value)


def test_a_terminal_position_takes_no_move(engine):
    game = gamelore.load("tictactoe", engine=engine)
    full = [f"(cell {x} {y} {'xo'[(x * 3 + y) % 2]})" for x in (1, 2, 3) for y in (1, 2, 3)]
    position = game.position([*full, "(control oplayer)"])
    assert position.is_terminal
    with pytest.raises(gamelore.IllegalMoveError, match="the match is over"):
        position.play({"xplayer": "noop", "oplayer": "noop"})


def test_positions_are_values(engine):
    game = gamelore.load("tictactoe", engine=engine)
    start = game.start()
    assert game.position(start.facts) == start
    assert hash(game.position(start.facts)) == hash(start)
    assert start.play(["(mark 1 1)", "noop"]) != start
    assert "(control xplayer)" in repr(start)


def test_goals_that_are_missing_or_several_are_none_and_stuck_roles_have_no_moves(engine):
    position = gamelore.load(STUCK, engine=engine).start()
    assert position.goals == {"a": None, "b": 10}
    position = position.play(["go", "go"])
    assert position.legal == {"a": ["go"], "b": []}
    assert not position.is_terminal
    end = position.game.position(["(n 2)"])
    assert end.is_terminal
    assert end.goals == {"a": None, "b": None}


def test_text_path_and_name_load_the_same_rules(tmp_path):
    path = rulesheets.path("tictactoe")
    copy = tmp_path / "other.kif"
    copy.write_text(path.read_text().upper().replace("\n", "\r\n") + "; a comment\r\n")
    loaded = [gamelore.load("tictactoe"), gamelore.load(path), gamelore.load(path.read_text()), gamelore.load(copy)]
    assert len({game.rules_hash for game in loaded}) == 1
    assert [game.name for game in loaded] == ["tictactoe", "tictactoe", "unnamed", "other"]


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(gamelore.GameloreError, match="tictactoe"):
        gamelore.load("tictactoo")


def test_a_missing_file_is_said():
    with pytest.raises((OSError, gamelore.GameloreError), match=r"nowhere\.kif"):
        gamelore.load(Path("nowhere.kif"))


def test_state_keys_are_the_same_on_both_engines():
    native, reasoner = (gamelore.load("connect3", engine=engine) for engine in ENGINES)
    moves = [f"(drop {native.start().legal['red'][0].split()[1].rstrip(')')})", "noop"]
    for game_moves in (None, moves):
        positions = [
            game.start() if game_moves is None else game.start().play(game_moves) for game in (native, reasoner)
        ]
        keys = [position.game.state_keys(position.state[None])[0] for position in positions]
        assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("name", "acting"),
    [("tictactoe", [1, 0]), ("goofspiel", [1, 1]), ("tictactoe3p", [1, 0, 0]), ("pegsolitaire", [1])],
)
def test_whose_turn_it_is_at_the_start(engine, name, acting):
    game = gamelore.load(name, engine=engine)
    assert game.acting(game.initial[None])[0].tolist() == [bool(value) for value in acting]


def test_turns_without_a_control_fact_are_read_off_the_moves(engine):
    rules = """
    (role a) (role b) (init (n 0)) (succ 0 1) (succ 1 2) (succ 2 3)
    (<= (legal a left) (true (n 0))) (<= (legal a right) (true (n 0))) (<= (legal b wait) (true (n 0)))
    (<= (legal b left) (true (n 1))) (<= (legal b right) (true (n 1))) (<= (legal a wait) (true (n 1)))
    (<= (legal a left) (true (n 2))) (<= (legal b wait) (true (n 2)))
    (<= (next (n ?y)) (true (n ?x)) (succ ?x ?y))
    (<= terminal (true (n 3))) (goal a 100) (goal b 0)
    """
    game = gamelore.load(rules, engine=engine)
    states = np.array([game.state([f"(n {n})"]) for n in range(3)])
    assert game.acting(states).tolist() == [[True, False], [False, True], [True, False]]


def test_a_counter_without_bound_is_refused_natively_and_played_by_the_reasoner():
    rules = """
    (role a) (init (count z)) (legal a up)
    (<= (next (count (s ?n))) (true (count ?n)))
    (<= terminal (true (count (s (s (s z)))))) (goal a 100)
    """
    with pytest.raises(gamelore.GroundingError, match=r"literals.*`(true|next|init|legal|does)`.*reasoner"):
        gamelore.load(rules, engine="native", limits=Limits(literals=20_000))
    with pytest.raises(gamelore.GroundingError, match=r"within 0.2 s"):
        gamelore.load(rules, engine="native", limits=Limits(seconds=0.2, literals=10**9))
    game = gamelore.load(rules, engine="auto", limits=Limits(literals=20_000))
    assert game.engine == "reasoner"
    position = game.start()
    for _ in range(3):
        assert not position.is_terminal
        position = position.play("up")
    assert position.is_terminal
    assert position.goals == {"a": 100}


GRID = " ".join(f"(e {x} {y})" for x in range(30) for y in range(30))
CUT = f"""
(role a) (init (n 0)) (legal a go) (goal a 0) (<= terminal (q 1)) {GRID}
(<= (p ?x) (e ?x ?y) (e ?y ?z) (e ?z ?w) (true (n ?w)) (not (q ?w)))
(<= (next (n ?x)) (p ?x))
"""


@pytest.mark.parametrize(("big", "named"), [("q", "`q`"), ("part:1", "a part of the rule at line 4")])
def test_what_is_too_large_is_named_in_the_words_of_the_sheet(big, named):
    """Of two relations of a rewritten sheet one is that of the rules as somebody wrote them, and one was made."""
    numbers = " ".join(f"(e {x})" for x in range(100))
    rules = f"(role a) (legal a go) (<= terminal (q 0 0)) {numbers}\n"
    rewritten = parse(f"{rules}\n\n(<= ({big} ?x ?y) (e ?x) (e ?y)) (<= (next ?x) ({big} ?x ?y))")
    with pytest.raises(gamelore.GroundingError, match=f"the largest relation is {named}, with [0-9]+ atoms so far"):
        ground(rewritten, Limits(literals=5000), Names(parse(rules)))


def test_a_cycle_through_a_part_of_a_rule_is_told_by_its_line():
    cycle = CUT + "(<= (q ?x) (p ?x) (true (n 0)))"
    with pytest.raises(gamelore.GDLSemanticError, match=r"a part of the rule at line 3 depends on not \(q 0\)"):
        gamelore.load(cycle, engine="native")


@pytest.mark.parametrize("engine", ENGINES)
def test_no_perfect_model_is_refused(engine):
    rules = """
    (role a) (init (n 0)) (legal a go) (<= (next (n 0)) p) (<= p (true (n 0)) (not q)) (<= q (true (n 0)) (not p))
    (<= terminal p) (goal a 0)
    """
    with pytest.raises(gamelore.GDLSemanticError, match="no perfect model"):
        bool(gamelore.load(rules, engine=engine).start().is_terminal)


def test_a_search_for_a_perfect_model_is_stopped(monkeypatch):
    """Pigeons that do not fit into holes: clingo would need hours to prove that there is no model."""
    pigeons = " ".join(f"(pigeon {i})" for i in range(13)) + " ".join(f"(hole {i})" for i in range(12))
    rules = f"""(role x) (legal x stay) (goal x 0) (<= terminal (true never)) {pigeons}
    (<= (in ?p ?h) (pigeon ?p) (hole ?h) (not (out ?p ?h)))
    (<= (out ?p ?h) (pigeon ?p) (hole ?h) (not (in ?p ?h)))
    (<= (some ?p) (in ?p ?h))
    (<= bad (pigeon ?p) (not (some ?p)) (not bad))
    (<= bad (in ?p ?h) (in ?q ?h) (distinct ?p ?q) (not bad))
    (<= (next never) (in 0 0) (not bad))"""
    monkeypatch.setattr("gamelore.game.reasoner.IN_PLAY", 0.002)
    with pytest.raises(gamelore.GroundingError, match=r"the reasoner to answer within 0\.12 s"):
        gamelore.load(rules, "reasoner", Limits(seconds=60)).start().play(["stay"])


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        ([4, "noop"], "expected a move of xplayer as text, got 4; legal moves: "),
        (
            {"X": "(mark 1 1)", "oplayer": "noop"},
            "expected moves of xplayer, oplayer only, got a move of X",
        ),
        (5, "expected the moves of xplayer, oplayer as a list or as a mapping role -> move, got 5; give one move"),
        ({"noop"}, "as a list or as a mapping role -> move, got {'noop'}; give one move of each role, as text"),
        ("(mark 1 1)", "got 1; a role that waits has one legal move, often noop"),
    ],
)
def test_moves_that_are_no_joint_move_are_told(moves, told):
    with pytest.raises(IllegalMoveError, match=re.escape(told)):
        gamelore.load("tictactoe").start().play(moves)


def test_a_position_draws_itself_into_a_file(tmp_path):
    position = gamelore.load("tictactoe").start()
    position.save(tmp_path / "p.svg")
    position.save(tmp_path / "p.TXT")
    assert (tmp_path / "p.svg").read_text() == position._repr_svg_()
    assert (tmp_path / "p.TXT").read_text() == f"{position}\n"
    with pytest.raises(GameloreError, match=r"expected a file that ends in \.svg or \.txt, got"):
        position.save(tmp_path / "p.png")


def texts_of(game):
    """The numbers of names and of texts that a game keeps."""
    return len(game._engine.names.spellings), game._term.cache_info().currsize


def test_texts_that_name_nothing_take_no_memory():
    game = gamelore.load("tictactoe")
    before = texts_of(game)
    for number in range(50):
        with pytest.raises(IllegalMoveError, match=rf"got \(mark {number + 4} made{number}\), which is never legal"):
            game.action(0, f"(mark {number + 4} made{number})")
        assert not game.holds(game.initial[None], f"(made{number} 1)").any()
        with pytest.raises(gamelore.GDLSemanticError, match=rf"expected facts .* can reach, got \(made{number} 1\)"):
            game.state([f"(made{number} 1)"])
    assert texts_of(game) == before


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_game_keeps_a_bounded_number_of_texts(engine, monkeypatch):
    monkeypatch.setattr("gamelore.game.game.MOST_TEXTS", 5)
    game = gamelore.load("tictactoe", engine=engine)
    for _ in range(2):
        moves = game.start().legal["xplayer"]
        assert [game.action(0, move) for move in moves] == game.legal(game.initial[None]).actions[:9].tolist()
        assert all(game.holds(game.initial[None], fact).all() for fact in game.start().facts)
    kept = game._term, game._action, game._move_text, game._fact_text
    assert max(part.cache_info().currsize for part in kept) == 5


def test_the_text_of_one_fact_does_not_make_all_others():
    game = gamelore.load("tictactoe")
    assert game.fact_text(3)
    assert "fact_texts" not in vars(game)
    assert [game.fact_text(bit) for bit in range(game.circuit.num_facts)] == list(game.fact_texts)
