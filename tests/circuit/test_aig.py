"""Circuits: random programs on which the naive evaluator, the reasoner, plain gates and machine code must agree."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gamelore
from gamelore import rulesheets as games
from gamelore.circuit import aig as circuits
from gamelore.circuit import translate
from gamelore.circuit.aig import FALSE, TRUE, Builder, Circuit
from gamelore.game.engines import unpack_bits
from gamelore.gdl.syntax import parse
from gamelore.ground.program import ground
from naive import Naive

NUM_FACTS = 5
MOVES = {"a": ["m1", "m2", "m3"], "b": ["m1", "m4"]}
NUM_LAYERS = 3


def sentences(layer):
    """What a rule of a layer may use: facts, actions, relations of its own layer (positive) and of lower ones."""
    given_ = [f"(true f{i})" for i in range(NUM_FACTS)]
    lower = [f"(p{below} {x})" for below in range(layer) for x in "uv"]
    own = [f"(p{layer} {x})" for x in "uv"] if layer < NUM_LAYERS else []
    return given_ + lower, own


@st.composite
def bodies(draw, layer, actions=False):
    stable, own = sentences(layer)
    if actions:
        stable = stable + [f"(does {role} {move})" for role, moves in MOVES.items() for move in moves]
    literals = [
        f"(not {sentence})" if draw(st.booleans()) else sentence
        for sentence in draw(st.lists(st.sampled_from(stable), min_size=1, max_size=3))
    ]
    if own and draw(st.booleans()):
        literals.append(draw(st.sampled_from(own)))
    if draw(st.booleans()):
        literals.append(f"(or {' '.join(draw(st.lists(st.sampled_from(stable), min_size=1, max_size=3)))})")
    return " ".join(literals)


@st.composite
def rulesheets(draw):
    """Stratified, with recursion inside each layer; every role has its first move, every fact can come true."""
    rules = [f"(role {role})" for role in MOVES] + ["(init f0)"]
    for layer in range(NUM_LAYERS):
        for x in "uv":
            rules += [f"(<= (p{layer} {x}) {draw(bodies(layer))})" for _ in range(draw(st.integers(1, 3)))]
    for role, moves in MOVES.items():
        rules.append(f"(legal {role} {moves[0]})")
        rules += [f"(<= (legal {role} {move}) {draw(bodies(NUM_LAYERS))})" for move in moves[1:]]
    for i in range(NUM_FACTS):
        rules += [f"(<= (next f{i}) {draw(bodies(NUM_LAYERS, True))})" for _ in range(draw(st.integers(1, 3)))]
        rules.append(f"(<= (next f{i}) (true f0) (does a m1) (does b m1))")
    rules.append(f"(<= terminal {draw(bodies(NUM_LAYERS))})")
    rules += [f"(<= (goal a {value}) {draw(bodies(NUM_LAYERS))})" for value in (0, 100)] + ["(goal b 50)"]
    return "\n".join(rules)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rulesheets())
def test_four_evaluators_agree_on_random_rulesheets(text):
    naive = Naive(text)
    native, reasoner = gamelore.load(text, engine="native"), gamelore.load(text, engine="reasoner")
    for facts in seen_states(naive):
        expected = (naive.legal(facts), naive.terminal(facts), naive.goals(facts))
        for game in (native, reasoner):
            position = game.position(facts)
            legal = {role: sorted(moves) for role, moves in position.legal.items()}
            if not position.is_terminal:
                assert legal == expected[0]
            assert (position.is_terminal, position.goals) == expected[1:]
        for joint in [dict(zip(MOVES, moves, strict=True)) for moves in (("m1", "m1"), ("m3", "m4"), ("m2", "m1"))]:
            if all(move in expected[0][role] for role, move in joint.items()) and not expected[1]:
                after = naive.next(facts, joint)
                for game in (native, reasoner):
                    assert game.position(facts).play(joint).facts == after


def seen_states(naive, limit=12):
    states = [naive.initial]
    for facts in states:
        if not naive.terminal(facts):
            for move_a in naive.legal(facts)["a"]:
                after = naive.next(facts, {"a": move_a, "b": naive.legal(facts)["b"][-1]})
                if after not in states and len(states) < limit:
                    states.append(after)
    return states


def test_plain_gates_and_machine_code_agree_on_any_input_with_one_action_each():
    for name in ("capturego3", "othello4", "goofspiel", "connectfour"):
        game = gamelore.load(name, engine="native")
        circuit = translate.build(ground(game.rulesheet))
        rng = np.random.default_rng(0)
        facts = rng.random((700, circuit.num_facts)) < 0.4
        joint = np.stack([rng.integers(0, len(moves), 700) for moves in circuit.actions], axis=1)
        first = np.cumsum([0, *map(len, circuit.actions)])[:-1]
        actions = np.zeros((700, circuit.num_actions), np.bool_)
        for role in range(game.num_roles):
            actions[np.arange(700), first[role] + joint[:, role]] = True
        plain = circuits.evaluate(circuit, np.concatenate([facts, actions], axis=1))
        states = np.zeros((700, 64 * game.num_words), np.bool_)
        states[:, : circuit.num_facts] = facts
        rows = np.packbits(states, axis=1, bitorder="little").view(np.uint64)
        following = unpack_bits(game.next(rows, (first + joint).astype(np.int32)), 64 * game.num_words)
        np.testing.assert_array_equal(following[:, : circuit.num_facts], plain["next"])
        assert not following[:, circuit.num_facts :].any(), "unused bits of a state must be zero"
        terminal, goals = game.evaluate(rows)
        np.testing.assert_array_equal(terminal, plain["terminal"][:, 0])
        assert goals.shape == (700, game.num_roles)
        legal = game.legal(rows)
        shown = np.zeros((700, circuit.num_actions), np.bool_)
        lanes = np.repeat(np.arange(700), np.diff(legal.offsets).reshape(700, -1).sum(axis=1))
        shown[lanes, legal.actions] = True
        np.testing.assert_array_equal(shown, plain["legal"] & ~plain["terminal"])


def empty_builder(num_facts=4, actions=((1, 2, 3),)):
    terms = [[(number, ()) for number in moves] for moves in actions]
    facts = [(number, ()) for number in range(num_facts)]
    return Builder(Circuit(facts, terms, [[] for _ in actions], [False] * num_facts))


def test_gates_are_shared_and_simplified():
    build = empty_builder()
    a, b = 2, 4
    ab = build.conjunction(a, b)
    assert build.conjunction(b, a) == ab
    assert build.conjunction(a, TRUE) == a
    assert build.conjunction(a, FALSE) == FALSE
    assert build.conjunction(a, a ^ 1) == FALSE
    assert build.conjunction(a, ab) == ab
    assert build.conjunction(a ^ 1, ab) == FALSE
    assert build.conjunction(a ^ 1, ab ^ 1) == a ^ 1
    assert build.conjunction(a, ab ^ 1) == build.conjunction(a, b ^ 1)


def test_long_sums_that_differ_in_one_place_share_what_they_have_in_common():
    build = empty_builder(num_facts=65, actions=())
    facts = list(range(2, 2 * 64, 2))
    build.any_of(facts)
    for missing in facts:
        before = build.circuit.num_gates
        build.any_of(set(facts) - {missing})
        assert build.circuit.num_gates - before <= 6


def test_more_than_half_of_a_roles_actions_become_the_complement_of_the_rest():
    build = empty_builder()
    first, second, third = 10, 12, 14
    assert build.any_of([first, second]) == third ^ 1
    assert build.any_of([first, second, third]) == TRUE


def test_a_union_of_sets_of_actions_is_the_complement_of_what_is_in_none_of_them():
    build = empty_builder(actions=((1, 2, 3, 4, 5), (6, 7)))
    first, second = range(10, 20, 2), (20, 22)
    few, others = build.any_of(first[:2]), build.any_of(first[1:4])
    assert build.any_of([few, others]) == first[4] ^ 1
    assert build.any_of([few, first[3]]) == build.any_of([*first[:2], first[3]])
    of_both = build.any_of([first[0], second[0]])
    assert build.any_of([of_both, first[1], first[2], first[3]]) == build.disjunction(first[4] ^ 1, second[0])
    assert build.any_of([of_both, second[1]]) == TRUE


@pytest.mark.parametrize("name", games.names())
def test_no_gate_is_left_that_nothing_needs(name):
    circuit = translate.build(ground(parse(games.path(name).read_text())))
    outputs = [literal for literals in circuit.outputs.values() for literal in literals]
    assert circuits.needed_nodes(circuit, outputs)[circuit.num_inputs + 1 :].all()


def test_a_chain_of_groups_needs_as_many_sweeps_as_it_is_long():
    n = 40
    links = " ".join(f"(link {i} {i + 1})" for i in range(n))
    text = f"""
    (role a) (init (on 0)) {links}
    (<= (reach 0) (true (on 0)))
    (<= (reach ?y) (reach ?x) (link ?x ?y) (not (true (cut ?y))))
    (<= (reach ?x) (reach ?y) (link ?x ?y))
    (<= (legal a (cut ?x)) (link ?x ?y))
    (<= (next (cut ?x)) (does a (cut ?x))) (<= (next (on 0)) (true (on 0)))
    (<= terminal (not (reach {n}))) (<= (goal a 100) (reach {n})) (<= (goal a 0) (not (reach {n})))
    """
    game = gamelore.load(text, engine="native")
    assert len(ground(parse(text)).heads) > n
    start = game.start()
    assert start.goals == {"a": 100}
    assert start.play("(cut 7)").is_terminal
    assert not game.start().play("(cut 0)").is_terminal


def test_a_cycle_through_negation_is_told_in_the_words_of_the_sheet_though_it_was_factored():
    text = """
    (role a) (init (f 1)) (init (g 1)) (init (h 1)) (legal a go) (goal a 0)
    (<= (p ?x) (true (f ?x)) (not (q ?x)))
    (<= (p ?x) (true (f ?x)) (r ?x))
    (<= (r ?x) (true (g ?x)) (p ?x))
    (<= (r ?x) (true (h ?x)) (p ?x))
    (<= (q ?x) (true (f ?x)) (true (g ?x)) (r ?x))
    (<= (next (f 1)) (p 1)) (<= (next (g 1)) (q 1)) (<= (next (h 1)) (r 1)) (<= terminal (p 1))
    """
    with pytest.raises(gamelore.GDLSemanticError, match=r"no perfect model: \(p 1\) depends on not \(q 1\)"):
        translate.build(ground(parse(text)))


def test_a_cycle_through_two_negations_is_one_though_one_of_them_is_all_of_a_rule():
    text = """
    (role a) (init (f 1)) (legal a go) (goal a 0)
    (<= odd (true (f 1)) (not even)) (<= even (not odd)) (<= (next (f 1)) odd) (<= terminal even)
    """
    with pytest.raises(gamelore.GDLSemanticError, match=r"no perfect model: \(odd\) depends on not \(even\)"):
        translate.build(ground(parse(text)))


def test_a_circuit_that_would_be_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(translate, "MOST_LITERALS", 10)
    with pytest.raises(gamelore.GroundingError, match="at most 10 literals in the rules after factoring"):
        translate.build(ground(parse(games.path("tictactoe").read_text())))
