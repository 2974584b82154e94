"""Corners of GDL and of the encoding: small sheets on which both engines and the naive evaluator must agree."""

from itertools import pairwise

import numpy as np
import pytest

import gamelore
from gamelore.game.compile import rulesheet_findings
from naive import Naive

ENGINES = ["native", "reasoner"]
CLOCK = """
(role a) (init (n 0)) (succ 0 1) (succ 1 2) (succ 2 3)
(<= (next (n ?y)) (true (n ?x)) (succ ?x ?y)) (<= terminal (true (n 3)))
"""

SHEETS = {
    "first facts by a rule whose negation runs in a cycle of relations": CLOCK
    + """
    (legal a go) (goal a 100) (even 0) (<= (even ?y) (succ ?x ?y) (not (even ?x))) (<= (init (mark ?x)) (even ?x))
    (<= (next (mark ?x)) (true (mark ?x)))
    """,
    "first facts by recursion inside such a cycle": CLOCK
    + """
    (legal a go) (goal a 100) (start 0) (succ 3 0)
    (<= (odd ?y) (succ ?x ?y) (linked ?x) (not (odd ?x)) (distinct ?y 0))
    (<= (linked ?x) (start ?x)) (<= (linked ?y) (linked ?x) (succ ?x ?y)) (<= (linked ?x) (linked ?x) (odd ?x))
    (<= (init (mark ?x)) (odd ?x)) (<= (next (mark ?x)) (true (mark ?x)) (linked ?x))
    """,
    "first facts by a ring that is entered far from where all begins": CLOCK
    + f"""
    (legal a go) (goal a 100) (linked 0) {" ".join(f"(chain {x} {x + 1})" for x in range(40))}
    (<= (arc ?x ?y) (chain ?x ?y)) (arc 40 41) (arc 41 42) (arc 42 40)
    (<= (odd ?y) (chain ?x ?y) (linked ?x) (not (odd ?x)))
    (<= (linked ?y) (linked ?x) (arc ?x ?y) (or (odd ?x) (not (odd ?x))))
    (<= (init (mark ?x)) (linked ?x) (not (odd ?x))) (<= (next (mark ?x)) (true (mark ?x)) (linked ?x))
    """,
    "no first fact": """
    (role a) (legal a go) (<= (next (n 1)) (not (true (n 1)))) (<= terminal (true (n 1))) (goal a 100)
    """,
    "no fact at all": "(role a) (legal a go) (<= terminal (not (true x))) (<= (goal a 100) (not never))",
    "a role whose only move is decided by another's": CLOCK
    + """
    (role b) (legal b noop) (legal a left) (legal a right) (<= (next gone) (does b noop) (does a left))
    (<= (next here) (or (does a left) (does a right)) (does b noop)) (<= (legal a (never ?x)) (nothing ?x))
    (<= (goal a 100) (true gone)) (<= (goal a 0) (not (true gone))) (<= (goal b ?g) (value ?g)) (value 50)
    """,
    "facts with functions in functions": CLOCK
    + """
    (init (at (pair (s (s z)) w))) (legal a up) (legal a down) (init (at w))
    (<= (next (at (pair ?x (s w)))) (does a up) (true (at (pair (s ?x) w))))
    (<= (next (at (pair z z))) (does a down) (true (at ?x)) (not (distinct ?x w)))
    (<= (goal a 100) (true (at (pair ?x ?x)))) (<= (goal a 0) (not paired)) (<= paired (true (at (pair ?x ?x))))
    """,
    "one name with several arities": CLOCK
    + """
    (p) (p 1) (p 1 2) (<= p (true (n 1))) (<= (p ?x) (true (n ?x))) (<= (p ?x ?y) (p ?x) (p ?y) (distinct ?x ?y) p)
    (<= (legal a (go ?x)) (p ?x)) (<= (legal a (go ?x ?y)) (p ?x ?y)) (<= (legal a go) p)
    (<= (next (seen ?x)) (does a (go ?x))) (<= (next (seen ?x ?y)) (does a (go ?x ?y))) (<= (next seen) (does a go))
    (<= (goal a 100) (true seen)) (<= (goal a 1) (true (seen ?x))) (<= (goal a 2) (true (seen ?x ?y)))
    """,
    "or, and, not and distinct inside each other": CLOCK
    + """
    (legal a x) (legal a y) (c 0) (c 1) (c 2)
    (<= (next (f ?x)) (c ?x) (or (does a x) (and (does a y) (distinct ?x 1))) (not (and (does a x) (true (f ?x)))))
    (<= (next (g ?x)) (c ?x) (not (or (distinct ?x 2) (true (f 0)) (not (does a y)))))
    (<= (goal a 100) (or (true (f 1)) (and (true (g 2)) (or (true (f 2)) (not (true (f 2)))))))
    (<= (goal a 0) (and) (not (true (f 1))) (or (or) (not (true (g 2)))))
    """,
    "chained loops, each negating the one before": CLOCK
    + """
    (c 0) (c 1) (c 2) (e 0 1) (e 1 2) (e 2 0) (<= (legal a (cut ?x)) (c ?x)) (init (on 0))
    (<= (next (on ?x)) (true (on ?x))) (<= (next (on ?x)) (does a (cut ?x))) (<= (next (off ?x)) (does a (cut ?x)))
    (<= (r ?x) (true (on ?x))) (<= (r ?y) (r ?x) (e ?x ?y) (not (true (off ?y))))
    (<= (s ?x) (c ?x) (not (r ?x))) (<= (s ?y) (s ?x) (e ?x ?y) (true (off ?x)))
    (<= (t ?x) (true (n 2)) (c ?x) (not (s ?x))) (<= (t ?y) (t ?x) (e ?y ?x) (not (true (on ?x))))
    (<= (goal a 100) (t ?x)) (<= (goal a 0) (s 0) (r 1)) (<= (goal a 50) (s 2) (not (t 2)))
    """,
}


def canonical(legal):
    return {role: sorted(moves) for role, moves in legal.items()}


def joint_moves(legal):
    """Some joint moves: each role's i-th move, as many as the role with the most has."""
    most = max(map(len, legal.values()))
    return [{role: moves[i % len(moves)] for role, moves in legal.items()} for i in range(most)]


def walk(naive, limit=30):
    """States and the joint moves to try there."""
    states = [naive.initial]
    for facts in states:
        joints = [] if naive.terminal(facts) else joint_moves(naive.legal(facts))
        yield facts, joints
        for joint in joints:
            after = naive.next(facts, joint)
            if after not in states and len(states) < limit:
                states.append(after)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHEETS)
def test_agrees_with_the_naive_evaluator(name, engine):
    naive, game = Naive(SHEETS[name]), gamelore.load(SHEETS[name], engine=engine)
    assert game.start().facts == naive.initial
    for facts, joints in walk(naive):
        position = game.position(facts)
        assert position.is_terminal == naive.terminal(facts)
        assert position.goals == naive.goals(facts)
        if not position.is_terminal:
            assert canonical(position.legal) == canonical(naive.legal(facts))
        for joint in joints:
            assert position.play(joint).facts == naive.next(facts, joint)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_value_written_in_two_ways_is_one_value(engine):
    rules = "(legal a go) (<= (goal a 50) (true (n 1))) (<= (goal a 050) (true (n 1))) (<= (goal a 050) (true (n 2)))"
    game = gamelore.load(CLOCK + rules + "(<= (goal a 7) (true (n 2)))", engine=engine)
    assert game.goal_values == ((7, 50),)
    assert [game.position([f"(n {n})"]).goals["a"] for n in range(4)] == [None, 50, None, None]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rules", "values"),
    [
        ("(worth 1 200) (worth 2 50) (<= (goal a ?v) (true (n ?n)) (worth ?n ?v))", (50, 200)),
        ("(<= (goal a ?n) (true (n ?n))) (<= (goal a 70) (true (n 2)))", (0, 1, 2, 3, 70)),
        ("(worth 1 1) (worth 2 high) (<= (goal a ?v) (worth 2 ?v)) (<= (goal a ?v) (worth ?v 1))", (1,)),
        (
            "(worth 1 10) (<= (goal a ?v) (worth 1 ?v)) (<= (goal a ?v) (worth 2 ?v)) (<= (goal a 5) (worth 2 ?v))",
            (10,),
        ),
    ],
)
def test_a_variable_as_the_goal_stands_for_the_values_of_its_rule(engine, rules, values):
    game = gamelore.load(f"{CLOCK} (legal a go) {rules}", engine=engine)
    assert game.goal_values == (values,)


def nested(term, depth):
    return f"{'(c ' * depth}{term}{')' * depth}"


def test_a_goal_whose_domain_has_no_bounds_is_a_number_of_the_rules():
    """The nesting of (at ..) grows without end, so that the domain of a goal deep inside is not followed.

    135 is a number of the rules, but no goal.
    """
    rules = f"""
        (role a) (init (at 35)) (init (at 135)) (init (at low)) (legal a go) (<= (next (at (c ?x))) (true (at ?x)))
        (<= terminal (true (at {nested("35", 10)}))) (<= (goal a ?v) (true (at {nested("?v", 10)})) (fair ?v)) (fair 35)
        (<= (goal a ?v) (true (at {nested("?v", 10)})) (distinct ?v 35) (distinct ?v low) (true (at low)))
    """
    game = gamelore.load(rules, engine="reasoner")
    assert game.goal_values == ((35,),)
    position = game.start()
    while not position.is_terminal:
        position = position.play("go")
    assert position.goals == {"a": 35}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_role_without_any_move_is_stuck(engine):
    game = gamelore.load("(role a) (role b) (init x) (legal a go) (<= terminal (true y)) (goal a 100)", engine=engine)
    assert game.start().legal == {"a": ["go"], "b": []}
    assert game.goal_values == ((100,), ())
    with pytest.raises(
        gamelore.IllegalMoveError,
        match=r"got no move of b; legal moves: none, so the match "
        r"cannot go on",
    ):
        game.start().play({"a": "go"})
    result = game.playouts(700, seed=0)
    assert (result.num_stuck, result.num_steps) == (700, 0)
    assert result.goals == ({None: 700}, {None: 700}), "the goals of a stuck match are none, whatever the rules say"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_match_that_is_over_before_it_begins(engine):
    rules = "(role a) (init x) (legal a go) (<= (next y) (does a go)) (<= terminal (true x)) (<= (goal a 40) (true x))"
    result = gamelore.load(rules, engine=engine).playouts(3000, seed=0)
    assert (result.num_playouts, result.num_steps, result.num_stuck) == (3000, 0, 0)
    assert result.goals == ({40: 3000},)


@pytest.mark.parametrize("value", ["1e2", "40000", "-5", "9" * 5000, "high", "٣", "(half 100)"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_no_goal_value_counts_as_none(engine, value):
    rules = f"(role a) (init x) (legal a go) (<= terminal (true x)) (goal a {value}) (<= (goal a 150) (true x))"
    game = gamelore.load(rules, engine=engine)
    assert game.goal_values == ((150,),)
    assert game.start().goals == {"a": 150}


def ring(num_facts, num_moves):
    """`num_facts` facts, of which one holds, and a move that goes any of `num_moves` ways on."""
    links = " ".join(f"(succ {x} {y})" for x, y in pairwise([*range(num_facts), 0]))
    by = " ".join(f"(by m{move})" for move in range(num_moves))
    return f"""
    (role a) (role b) (init (at 0)) {links} {by} (<= (legal ?r (go ?m)) (role ?r) (by ?m))
    (<= (next (at ?y)) (true (at ?x)) (succ ?x ?y) (does a (go ?m)) (does b (go ?m)))
    (<= (next (at ?x)) (true (at ?x)) (does a (go ?m)) (does b (go ?k)) (distinct ?m ?k))
    (<= terminal (true (at {num_facts - 1}))) (<= (goal a ?m) (role a) (level ?m) (true (at ?m)))
    {" ".join(f"(level {x})" for x in range(num_facts))} (goal b 0)
    """


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("num_facts", "num_moves"), [(2, 1), (63, 1), (64, 32), (65, 33), (128, 2), (129, 64)])
def test_whole_words_and_one_bit_more(num_facts, num_moves, engine):
    game = gamelore.load(ring(num_facts, num_moves), engine=engine)
    states = np.array([game.state([f"(at {x})"]) for x in range(num_facts)])
    terminal, goals = game.evaluate(states)
    assert game.terminal(states).tolist() == terminal.tolist()
    assert terminal.tolist() == [False] * (num_facts - 1) + [True]
    assert goals.tolist() == [[x, 0] for x in range(num_facts)]
    legal = game.legal(states)
    assert np.diff(legal.offsets).tolist() == [num_moves] * 2 * (num_facts - 1) + [0, 0]
    last = [game.action(role, f"(go m{num_moves - 1})") for role in range(2)]
    after = game.next(states, np.tile(np.array(last, np.int32), (num_facts, 1)))
    assert [game.facts(state) for state in after] == [{f"(at {(x + 1) % num_facts})"} for x in range(num_facts)]
    assert np.unique(game.state_keys(states)).size == num_facts
    np.testing.assert_array_equal(game.state_keys(after), np.roll(game.state_keys(states), -1))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_batch(engine):
    game = gamelore.load("tictactoe", engine=engine)
    none = np.zeros((0, game.num_words), np.uint64)
    terminal, goals = game.evaluate(none)
    assert (terminal.shape, goals.shape) == ((0,), (0, 2))
    assert game.terminal(none).shape == (0,)
    legal = game.legal(none)
    assert (legal.offsets.tolist(), legal.actions.tolist()) == ([0], [])
    assert game.next(none, np.zeros((0, 2), np.int32)).shape == none.shape
    assert game.state_keys(none).shape == game.holds(none, "(control xplayer)").shape == (0,)
    assert game.acting(none).shape == (0, 2)


@pytest.mark.parametrize("num_states", [511, 512, 513, 5000])
def test_a_batch_answers_as_its_states_do_one_by_one(num_states):
    game = gamelore.load("capturego3", engine="native")
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], num_states, axis=0)
    for _ in range(3):
        legal = game.legal(states)
        counts = np.diff(legal.offsets)
        chosen = legal.offsets[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
        states = game.next(states, legal.actions[chosen].reshape(num_states, 2))
    legal, (terminal, goals) = game.legal(states), game.evaluate(states)
    for place in (0, 1, 510, num_states - 1):
        alone = states[place : place + 1]
        assert game.evaluate(alone)[0][0] == terminal[place]
        assert game.evaluate(alone)[1][0].tolist() == goals[place].tolist()
        begin, end = legal.offsets[2 * place], legal.offsets[2 * place + 2]
        assert game.legal(alone).actions.tolist() == legal.actions[begin:end].tolist()


def test_states_of_another_shape_never_reach_machine_code():
    game = gamelore.load("tictactoe", engine="native")
    for wrong in (game.initial, np.zeros((3, game.num_words + 1), np.uint64), np.zeros((3, game.num_words), np.int64)):
        with pytest.raises(ValueError, match=r"expected states uint64\[batch, 1\]"):
            game.evaluate(wrong)


@pytest.mark.parametrize("engine", ENGINES)
def test_variables_in_facts_and_moves_are_refused(engine):
    game = gamelore.load("tictactoe", engine=engine)
    for ask in (lambda: game.state(["(cell 1 1 ?x)"]), lambda: game.holds(game.initial[None], "(cell 1 1 ?x)")):
        with pytest.raises(gamelore.GDLSemanticError, match=r"1:11: expected a fact or a move without variables"):
            ask()
    with pytest.raises(gamelore.IllegalMoveError, match=r"got mark 2 2; legal moves: \(mark 1 1\)"):
        game.start().play({"xplayer": "mark 2 2", "oplayer": "noop"})


def test_a_fact_that_no_state_holds_is_named():
    game = gamelore.load("tictactoe", engine="native")
    with pytest.raises(gamelore.GDLSemanticError, match=r"facts that tictactoe can reach, got \(cell 9 9 b\)"):
        game.state(["(cell 9 9 b)"])


def test_a_wrong_engine_and_a_negative_number_are_refused():
    with pytest.raises(gamelore.GameloreError, match="engines auto, native, reasoner, got 'nativ'"):
        gamelore.load("tictactoe", engine="nativ")
    game = gamelore.load("tictactoe")
    with pytest.raises(gamelore.GameloreError, match="expected a number of playouts of at least 0, got -1"):
        game.playouts(-1)
    with pytest.raises(gamelore.GameloreError, match="expected at least one thread, got 0"):
        game.playouts(1, threads=0)


def test_files_and_folders_beside_the_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "connect3").mkdir()
    (tmp_path / "my game (1).kif").write_text(SHEETS["no first fact"])
    assert gamelore.load("connect3").roles == ("red", "yellow")
    assert gamelore.load("my game (1).kif").name == "my game (1)"
    with pytest.raises(gamelore.GameloreError, match="expected the name of a shipped game, got ''"):
        gamelore.load("")
    assert gamelore.load(SHEETS["no first fact"] + "\n; from one.kif").name == "unnamed"


def test_progress_counts_every_finished_playout_and_may_stop_them():
    rules = """
    (role a) (init x) (legal a stay) (legal a go) (<= (next x) (does a stay)) (<= (next y) (does a go))
    (<= terminal (true y)) (<= terminal (true x) never)
    """
    told = []
    game = gamelore.load(rules + "(<= (goal a 0) never)", engine="native")
    assert game.playouts(3000, seed=1, progress=told.append).goals == ({None: 3000},)
    assert told[-1] == 3000

    def interrupt(_):
        raise InterruptedError

    endless = gamelore.load(rules.replace("(does a go)", "(does a go) never") + "(goal a 0)", engine="native")
    with pytest.raises(InterruptedError):
        endless.playouts(10_000, seed=1, threads=2, progress=interrupt)


def test_branches_that_multiply_out_are_refused_before_they_are_made():
    many = " ".join(f"(or (true (n {i})) (not (true (m {i}))))" for i in range(40))
    for body in (f"(and {many})", f"(not (or {many.replace('or', 'and')}))", many):
        with pytest.raises(gamelore.GDLSemanticError, match="this rule has more than 4096 conjunctions"):
            gamelore.load(f"{CLOCK} (legal a go) (goal a 0) (<= (next z) {body})")


def test_findings_of_a_sheet_that_loading_refuses_need_no_grounding():
    flawed = f"{CLOCK} (legal a go) (goal a 0) (<= p (true x) (not q)) (<= q (not p)) (<= (next z) (not (succ 0 ?x)))"
    assert {"negation-in-cycle", "unsafe-variable"} <= {finding.code for finding in rulesheet_findings(flawed)}
