"""Two answers to every question of the rules: native against reasoner, and the naive evaluator as a third."""

from itertools import product

import numpy as np
import pytest

import gamelore
from gamelore import rulesheets
from gamelore.analysis.perft import perft
from naive import Naive

NUM_MATCHES = {"as written": 60, "rewritten": 20}
MOST_STEPS = 300  # for matches may be long
NUM_NAIVE_STATES = 40


def random_steps(game, num_matches, seed):
    """Some distinct steps of random matches, uint64[n, words] and int32[n, roles], and the ends, uint64[m, words]."""
    rng = np.random.default_rng(seed)
    states = np.repeat(game.initial[None], num_matches, axis=0)
    steps, joints, ends = [], [], []
    while len(states):
        terminal = game.evaluate(states)[0]
        ends.append(states[terminal])
        states = states[~terminal]
        legal = game.legal(states)
        counts = np.diff(legal.offsets)
        assert (counts > 0).all(), "a role without a move"
        chosen = legal.offsets[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
        joint = legal.actions[chosen].reshape(len(states), game.num_roles)
        steps.append(states)
        joints.append(joint)
        states = game.next(states, joint)
    steps, joints, ends = np.concatenate(steps), np.concatenate(joints), np.concatenate(ends)
    _, first = np.unique(np.hstack([steps, joints.astype(np.uint64)]), axis=0, return_index=True)
    some = rng.permutation(first)[:MOST_STEPS]
    return steps[some], joints[some], np.unique(ends, axis=0)


def legal_texts(game, states):
    legal = game.legal(states)
    ends = legal.offsets[1:].tolist()
    actions = legal.actions.tolist()
    texts, start = [], 0
    for index, end in enumerate(ends):
        texts.append([game.move_text(index % game.num_roles, action) for action in actions[start:end]])
        start = end
    return texts


def fact_sets(game, states):
    return [game.facts(state) for state in states]


@pytest.mark.parametrize("rules", NUM_MATCHES)
@pytest.mark.parametrize("name", rulesheets.names())
def test_both_engines_agree_on_random_matches(name, rules):
    native = gamelore.load(name, engine="native")
    reasoner = gamelore.load(name, engine="reasoner", rewrite=rules == "rewritten")
    assert native.roles == reasoner.roles
    assert native.facts(native.initial) == reasoner.facts(reasoner.initial)
    steps, joints, ends = random_steps(native, NUM_MATCHES[rules], seed=1)
    states = np.concatenate([steps, ends])
    same = np.array([reasoner.state(facts) for facts in fact_sets(native, states)])
    for mine, theirs in zip(native.evaluate(states), reasoner.evaluate(same), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for game, rows in ((native, states), (reasoner, same)):
        np.testing.assert_array_equal(game.terminal(rows), game.evaluate(rows)[0])
    assert legal_texts(native, states) == legal_texts(reasoner, same)
    np.testing.assert_array_equal(native.state_keys(states), reasoner.state_keys(same))
    np.testing.assert_array_equal(native.acting(states), reasoner.acting(same))
    moves = [[native.move_text(role, action) for role, action in enumerate(joint)] for joint in joints.tolist()]
    joint = np.array([[reasoner.action(role, move) for role, move in enumerate(row)] for row in moves], np.int32)
    assert fact_sets(native, native.next(steps, joints)) == fact_sets(
        reasoner, reasoner.next(same[: len(steps)], joint)
    )


@pytest.mark.parametrize("name", rulesheets.names())
def test_the_naive_evaluator_agrees(name):
    game = gamelore.load(name, engine="native")
    naive = Naive(rulesheets.path(name).read_text())
    steps, joints, ends = random_steps(game, 20, seed=2)
    rng = np.random.default_rng(3)
    for index in rng.choice(len(steps), min(NUM_NAIVE_STATES, len(steps)), replace=False):
        facts = game.facts(steps[index])
        legal = legal_texts(game, steps[index : index + 1])
        assert naive.legal(facts) == {role: sorted(moves) for role, moves in zip(game.roles, legal, strict=True)}
        assert not naive.terminal(facts)
        moves = {role: game.move_text(r, joints[index, r]) for r, role in enumerate(game.roles)}
        assert naive.next(facts, moves) == game.facts(game.next(steps[index][None], joints[index][None])[0])
    for state in ends[:NUM_NAIVE_STATES]:
        facts = game.facts(state)
        assert naive.terminal(facts)
        assert naive.goals(facts) == game.position(facts).goals


@pytest.mark.parametrize("engine", ["native", pytest.param("reasoner", marks=pytest.mark.long)])
def test_complete_games_of_tictactoe(engine):
    counts = perft(gamelore.load("tictactoe", engine=engine), 9)
    assert sum(counts.complete) == 255_168
    assert counts.sequences[:3] == (1, 9, 72)


def law_of_random_play(game):
    """Goal of the first role -> its probability, by following all positions of a game with one mover at a time."""
    law = {}
    states, probabilities = game.initial[None], np.ones(1)
    while len(states):
        terminal, goals = game.evaluate(states)
        for goal in np.unique(goals[terminal, 0]):
            law[int(goal)] = law.get(int(goal), 0.0) + probabilities[terminal & (goals[:, 0] == goal)].sum()
        states, probabilities = states[~terminal], probabilities[~terminal]
        rows, joints = every_joint(game, states)
        after, same = np.unique(game.next(states[rows], joints), axis=0, return_inverse=True)
        shares = probabilities / np.bincount(rows, minlength=len(states))
        states, probabilities = after, np.bincount(same.ravel(), shares[rows], len(after))
    assert abs(sum(law.values()) - 1) < 1e-9
    return law


def every_joint(game, states):
    """The row of the state and the joint move, for each of the joint moves in some states."""
    legal = game.legal(states)
    starts, counts = legal.by_role(game.num_roles)
    joints = [
        (row, *(legal.actions[first : first + count] for first, count in zip(*own, strict=True)))
        for row, own in enumerate(zip(starts.tolist(), counts.tolist(), strict=True))
    ]
    pairs = [(row, joint) for row, *moves in joints for joint in product(*moves)]
    moves = np.array([joint for _, joint in pairs], np.int32).reshape(-1, game.num_roles)
    return np.array([row for row, _ in pairs], np.int64), moves


@pytest.mark.parametrize(
    ("name", "engine", "count"),
    [("tictactoe", "native", 200_000), ("tree", "native", 200_000), ("tree", "reasoner", 3_000)],
)
def test_random_playouts_of_both_engines_have_the_same_law(load, name, engine, count):
    """The tree has six ends, most of them after two plies, so the reasoner plays many matches in little time."""
    result = load(name, engine).playouts(count, seed=1)
    assert result.num_playouts == sum(result.goals[0].values()) == count
    for value, probability in law_of_random_play(load(name, "native")).items():
        error = (probability * (1 - probability) / count) ** 0.5
        assert abs(result.goals[0][value] / count - probability) < 4.5 * error


def test_the_reasoner_answers_equal_steps_once(monkeypatch):
    game = gamelore.load("tictactoe", engine="reasoner")
    reasoner, asked = game._engine.reasoner, []
    successors = reasoner.successors

    def note(states, joints):
        steps = list(zip(states, joints, strict=True))
        asked.append(len(steps))
        return successors(*zip(*steps, strict=True))

    monkeypatch.setattr(reasoner, "successors", note)
    _, joints = every_joint(game, game.initial[None])
    mixed = np.random.default_rng(4).permutation(np.repeat(np.arange(9), 5))
    after = game.next(np.repeat(game.initial[None], 45, axis=0), joints[mixed])
    assert asked == [9]
    marked = [{fact for fact in game.facts(state) if fact.endswith(" x)")} for state in after]
    moves = [game.move_text(0, joint[0]) for joint in joints[mixed]]
    assert marked == [{move.replace("mark", "cell").replace(")", " x)")} for move in moves]


def test_playouts_do_not_depend_on_threads_and_are_exactly_as_many_as_asked():
    game = gamelore.load("connect3", engine="native")
    told = []
    for n in (0, 1, 63, 64, 65, 513, 20_001):
        one = game.playouts(n, seed=5)
        assert one == game.playouts(n, seed=5, threads=3, progress=told.append)
        assert all(sum(goals.values()) == n for goals in one.goals)
    assert told[-1] == 20_001
    assert game.playouts(1000, seed=5) != game.playouts(1000, seed=6)


def test_playouts_count_stuck_matches_and_unclear_goals_apart():
    rules = """
    (role a) (role b) (init (n 0)) (succ 0 1) (succ 1 2)
    (<= (legal a left) (true (n 0))) (<= (legal a right) (true (n 0))) (<= (legal b go) (true (n 0)))
    (<= (legal a go) (true (n 1))) (<= (legal b go) (true (n 1)) (not (true dead)))
    (<= (next (n ?y)) (true (n ?x)) (succ ?x ?y)) (<= (next dead) (does a left))
    (<= terminal (true (n 2)))
    (<= (goal a 100) terminal) (<= (goal b 0) terminal) (<= (goal b 50) terminal)
    """
    for engine in ("native", "reasoner"):
        result = gamelore.load(rules, engine=engine).playouts(1000, seed=0)
        assert 400 < result.num_stuck < 600
        assert result.goals[0] == {100: 1000 - result.num_stuck, None: result.num_stuck}
        assert result.goals[1] == {None: 1000}
        assert result.num_steps == 2000 - result.num_stuck
        assert result.mean(0) == 100
        assert np.isnan(result.mean(1))
