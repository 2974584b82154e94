"""Packed rows in and out of the compiled circuit: any number of positions, facts and moves, at the edges of words."""

import numpy as np
import pytest

import gamelore

SIZES = [1, 2, 63, 64, 65, 130]
BATCHES = [0, 1, 2, 63, 64, 65, 511, 512, 513, 1100]


def ring(num_facts):
    """Facts on a ring move on by one, but for what a pushes away; a match is over where none but the last holds."""
    links = " ".join(f"(after f{i} f{(i + 1) % num_facts})" for i in range(num_facts))
    return f"""
    (role a) (role b) {links} (<= (init (on ?x)) (after ?x ?y))
    (<= (legal a (push ?x)) (true (on ?x)))
    (legal b wait)
    (<= (next (on ?y)) (true (on ?x)) (after ?x ?y) (not (does a (push ?x))))
    (<= open (true (on ?x)) (distinct ?x f{num_facts - 1}))
    (<= terminal (not open))
    (<= (goal a 100) (true (on f0))) (<= (goal a 0) (not (true (on f0)))) (goal b 50)
    (<= (goal b 60) (true (on f{num_facts - 1})))
    """


@pytest.fixture(scope="module", params=SIZES)
def sized(request):
    """A game, its number of facts, and random states with their facts, bool[n, facts]."""
    num_facts = request.param
    game = gamelore.load(ring(num_facts), engine="native")
    held = np.random.default_rng(num_facts).random((max(BATCHES), num_facts)) < 0.3
    held[::7] = False
    held[3::7, :-1] = False
    single = np.array([game.state([f"(on f{i})"]) for i in range(num_facts)])
    states = np.array([np.bitwise_or.reduce(single[row], initial=np.uint64(0)) for row in held])
    return game, held, states


@pytest.mark.parametrize("batch", BATCHES)
def test_terminal_and_goals(sized, batch):
    game, held, states = sized
    terminal, goals = game.evaluate(states[:batch])
    np.testing.assert_array_equal(terminal, ~held[:batch, :-1].any(axis=1))
    np.testing.assert_array_equal(goals[:, 0], np.where(held[:batch, 0], 100, 0))
    np.testing.assert_array_equal(goals[:, 1], np.where(held[:batch, -1], -1, 50))


@pytest.mark.parametrize("batch", BATCHES)
def test_legal_moves(sized, batch):
    game, held, states = sized
    push = [game.action(0, f"(push f{i})") for i in range(held.shape[1])]
    wait = game.action(1, "wait")
    legal = game.legal(states[:batch])
    going = held[:batch, :-1].any(axis=1)
    np.testing.assert_array_equal(legal.terminal, ~going)
    expected = [
        moves
        for row, goes_on in zip(held[:batch], going, strict=True)
        for moves in ([sorted(push[i] for i in np.flatnonzero(row)), [wait]] if goes_on else [[], []])
    ]
    lists = [part.tolist() for part in np.split(legal.actions, legal.offsets[1:-1])] if batch else []
    assert lists == expected
    assert legal.offsets[0] == 0
    assert legal.offsets[-1] == len(legal.actions)


@pytest.mark.parametrize("batch", BATCHES)
def test_successors(sized, batch):
    game, held, states = sized
    num_facts = held.shape[1]
    rng = np.random.default_rng(batch)
    pushed = rng.integers(0, num_facts, batch)
    push = np.array([game.action(0, f"(push f{i})") for i in range(num_facts)], np.int32)
    joint = np.stack([push[pushed], np.full(batch, game.action(1, "wait"), np.int32)], axis=1)
    left = held[:batch].copy()
    left[np.arange(batch), pushed] = False
    following = game.next(states[:batch], joint)
    single = np.array([game.state([f"(on f{i})"]) for i in range(num_facts)])
    expected = [np.bitwise_or.reduce(single[row], initial=np.uint64(0)) for row in np.roll(left, 1, axis=1)]
    np.testing.assert_array_equal(following, np.array(expected, np.uint64).reshape(batch, game.num_words))


def test_nothing_is_left_of_an_earlier_batch(sized):
    game, _, states = sized
    going = states[:600][~game.legal(states[:600]).terminal]
    legal = game.legal(going)
    moves = legal.actions[legal.offsets[:-1]].reshape(-1, 2)
    together = game.next(going, moves)
    for i in range(0, len(going), 50):
        np.testing.assert_array_equal(game.next(going[i : i + 1], moves[i : i + 1]), together[i : i + 1])
    np.testing.assert_array_equal(game.next(going, moves), together)


@pytest.mark.parametrize("action", [-1, 2, 2**31 - 1])
def test_an_action_that_is_none_is_refused(action):
    game = gamelore.load(ring(1), engine="native")
    states = np.repeat(game.initial[None], 3, axis=0)
    joint = np.array([[0, 1], [action, 1], [0, 1]], np.int32)
    with pytest.raises(ValueError, match="actions from 0 to 1"):
        game.next(states, joint)
    np.testing.assert_array_equal(game.next(states, np.zeros((3, 2), np.int32))[1], game.state([]))


@pytest.mark.parametrize(
    ("states", "joint"),
    [
        (np.zeros((3, 2), np.uint64), np.zeros((3, 2), np.int32)),
        (np.zeros((3, 1), np.int64), np.zeros((3, 2), np.int32)),
        (np.zeros((3, 1), np.uint64), np.zeros((2, 2), np.int32)),
        (np.zeros((3, 1), np.uint64), np.zeros((3, 2), np.int64)),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(states, joint):
    game = gamelore.load(ring(1), engine="native")
    with pytest.raises(ValueError, match=r"expected (states|joint moves)"):
        game.next(states, joint)


def test_rows_that_do_not_lie_one_after_the_other():
    game = gamelore.load("tictactoe", engine="native")
    wide = np.repeat(game.initial[None], 20, axis=0).repeat(2, axis=1)
    spread = wide[::2, ::2]
    assert not spread.flags.c_contiguous
    np.testing.assert_array_equal(game.legal(spread).actions, game.legal(spread.copy()).actions)
