"""Informed playouts: their moves are wins, else answers, else all legal moves, as the rules say one ply ahead."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore import Game
from gamelore.circuit.aig import evaluate
from gamelore.circuit.playout import informed_playouts
from gamelore.game.engines import unpack_bits

BEST = 100
State = NDArray[np.uint64]


def moves_of(game: Game, state: State, role: int) -> tuple[list[str], NDArray[np.int32]]:
    """Return the legal moves of a role, and a joint move for each."""
    legal = game.legal(state[None])
    if not legal.by_role(2)[1].all():
        return [], np.zeros((0, 2), np.int32)
    joint = legal.joint_moves(role, 2)
    return [game.move_text(role, action) for action in joint[:, role].tolist()], joint


def wins(game: Game, state: State, role: int) -> set[str]:
    """Return the moves of a role after which the match is over with its highest goal."""
    texts, joint = moves_of(game, state, role)
    if not texts:
        return set()
    terminal, goals = game.evaluate(game.next(np.repeat(state[None], len(joint), axis=0), joint))
    return {text for text, over, goal in zip(texts, terminal, goals[:, role], strict=True) if over and goal == BEST}


def turned(game: Game, state: State) -> State:
    """Return the position in which the other role is to move."""
    first, second = (f"(control {role})" for role in game.roles)
    return game.state({first: second, second: first}.get(fact, fact) for fact in game.facts(state))


def informed_moves(game: Game, state: State, role: int) -> set[str]:
    """Return the moves of the role to move in an informed playout, from the definition."""
    legal, own = set(moves_of(game, state, role)[0]), wins(game, state, role)
    return own or legal & wins(game, turned(game, state), 1 - role) or legal


def positions(game: Game, matches: int, seed: int) -> State:
    """Return all positions of random matches in which the match goes on."""
    rng, states, seen = np.random.default_rng(seed), np.repeat(game.initial[None], matches, axis=0), []
    while len(states):
        seen.append(states)
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        states = game.next(states, legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)])
        states = states[~game.evaluate(states)[0]]
    return np.unique(np.concatenate(seen), axis=0)


def turns_and_idle(game: Game) -> tuple[list[int], list[int]]:
    """Return the facts that give the roles the turn, and the idle actions."""
    assert game.circuit is not None
    facts = list(game.fact_texts)
    return [facts.index(f"(control {role})") for role in game.roles], [game.action(role, "noop") for role in (0, 1)]


def marked(game: Game, states: State) -> State:
    """Return states whose playouts are informed."""
    assert game.circuit is not None
    word, bit = divmod(game.circuit.num_facts, 64)
    wide = np.zeros((len(states), word + 1), np.uint64)
    wide[:, : game.num_words] = states
    wide[:, word] |= np.uint64(1 << bit)
    return wide


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("tictactoe", {"win", "answer", "any"}),
        ("connect3", {"win", "answer", "any"}),
        ("connectfour", {"win", "answer", "any"}),
        ("breakthrough", {"win", "any"}),  # nobody can make a move of the other role
        ("losetictactoe", {"any"}),  # who completes a line loses
    ],
)
def test_the_moves_are_those_of_the_definition(load: Callable[..., Game], name: str, kinds: set[str]) -> None:
    game = load(name)
    assert game.circuit is not None
    facts, actions = game.circuit.num_facts, range(game.circuit.num_actions)
    circuit = informed_playouts(game.circuit, *turns_and_idle(game))
    assert circuit is not None
    states = positions(game, 20, seed=1)
    inputs = np.zeros((2, len(states), circuit.num_inputs), np.bool_)
    inputs[:, :, :facts] = unpack_bits(states, facts)
    inputs[1, :, facts] = True
    plain, informed = evaluate(circuit, inputs[0]), evaluate(circuit, inputs[1])
    owners = np.repeat([0, 1], [len(moves) for moves in circuit.actions])
    seen = set()
    for row, state in enumerate(states):
        mover = int(game.acting(state[None])[0].argmax())
        legal, wanted = set(moves_of(game, state, mover)[0]), informed_moves(game, state, mover)
        seen.add("win" if wins(game, state, mover) else "answer" if wanted < legal else "any")
        for outputs, moves in ((plain, legal), (informed, wanted)):
            may = [a for a in actions if outputs["legal"][row, a]]
            assert {game.move_text(mover, a) for a in may if owners[a] == mover} == moves
            assert len(may) == len(moves) + 1, "the other role is idle"
    assert informed["next"][:, facts].all()
    assert not plain["next"][:, facts].any()
    assert seen == kinds


@pytest.mark.parametrize(("name", "fills_its_words"), [("connectfour", True), ("breakthrough", False)])
def test_marked_playouts_take_a_win_and_others_may_not(
    load: Callable[..., Game], name: str, fills_its_words: bool
) -> None:
    game = load(name)
    assert game.circuit is not None
    assert (game.circuit.num_facts % 64 == 0) == fills_its_words
    winning = next(s for s in positions(game, 50, seed=2) if wins(game, s, 0) and not game.acting(s[None])[0, 1])
    states = np.repeat(winning[None], 256, axis=0)
    runner = game.informed_runner
    assert runner is not None
    assert game.informed_runner is runner, "it is made once"
    plain, informed = runner.rollouts(states, seed=1), runner.rollouts(marked(game, states), seed=1)
    assert (plain.goals[:, 0] < BEST).any()
    assert (informed.goals[:, 0] == BEST).all()
    assert (informed.steps == 1).all()


# a may end the match at once, which is good for b alone.
GIFT = """
(role a) (role b) (init (control a)) (init (ply 0)) (succ 0 1) (succ 1 2)
(<= (legal ?r noop) (role ?r) (not (true (control ?r))))
(<= (legal ?r end) (true (control ?r)))
(<= (legal ?r wait) (true (control ?r)))
(<= (next (control a)) (true (control b)))
(<= (next (control b)) (true (control a)))
(<= (next (ply ?n)) (true (ply ?m)) (succ ?m ?n))
(<= (next ended) (does a end))
(<= (next ended) (true ended))
(<= terminal (true ended))
(<= terminal (true (ply 2)))
"""
GOALS_OF_B = "(<= (goal b 100) (true ended)) (<= (goal b 0) (not (true ended)))"


@pytest.mark.parametrize("goals", ["(<= (goal a 100) never)", "(goal a 50)"])
def test_a_role_with_fewer_than_two_goals_never_wins(goals: str) -> None:
    game = gamelore.load(f"{GIFT} {GOALS_OF_B} {goals}")
    runner = game.informed_runner
    assert runner is not None
    played = runner.rollouts(marked(game, np.repeat(game.initial[None], 256, axis=0)), seed=1)
    assert set(played.goals[:, 1].tolist()) == {0, 100}


def test_without_goals_there_are_no_informed_playouts() -> None:
    assert gamelore.load(f"{GIFT} (<= (goal a 100) never)").informed_runner is None


@pytest.mark.parametrize("name", ["goofspiel", "tictactoe3p", "pegsolitaire"])
def test_games_without_informed_playouts(load: Callable[..., Game], name: str) -> None:
    """Roles that choose at the same time, three roles, and one role."""
    assert load(name).informed_runner is None


def test_the_reasoner_has_none(load: Callable[..., Game]) -> None:
    assert load("tictactoe", "reasoner").informed_runner is None


def test_a_wrong_turn_leaves_legal_moves(load: Callable[..., Game]) -> None:
    """Which facts give the turn is seen in random matches, so it may be wrong; a playout must go on all the same."""
    game = load("connectfour")
    assert game.circuit is not None
    _, idle = turns_and_idle(game)
    circuit = informed_playouts(game.circuit, [3, 5], [idle[1], idle[0]])
    assert circuit is not None
    facts, states = game.circuit.num_facts, positions(game, 20, seed=3)
    inputs = np.zeros((len(states), circuit.num_inputs), np.bool_)
    inputs[:, :facts] = unpack_bits(states, facts)
    plain = evaluate(circuit, inputs)["legal"]
    inputs[:, facts] = True
    informed = evaluate(circuit, inputs)["legal"]
    assert (informed <= plain).all()
    red = len(circuit.actions[0])
    assert informed[:, :red].any(axis=1).all()
    assert informed[:, red:].any(axis=1).all()
