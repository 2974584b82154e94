from __future__ import annotations

import numpy as np
import pytest

from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import CLOSED, DEPTH, PARENT, Forest

WHITE, BLACK = 0, 1
ROOT_TWO = 2**0.5


class Walks:
    """Walks in one tree, named by the nodes that they end at; what they found is told by hand."""

    def __init__(self, game, exploration: float = ROOT_TWO) -> None:
        self.game = game
        self.forest = Forest(game, game.initial[None], exploration)
        self.ends = np.zeros(0, np.int32)
        self.count = 0

    def down(self, num: int = 1) -> list[str]:
        """So many walks at once; (at NODE) of their ends."""
        keys = extend(stream(7), np.arange(self.count, self.count + num))
        self.count += num
        self.ends = self.forest.select(np.zeros(num, np.int64), keys)
        return [self.node(end) for end in self.ends]

    def up(self, *values: list[float]) -> None:
        self.forest.back_up(self.ends, np.array(values))

    def node(self, number: int) -> str:
        facts = self.game.facts(self.forest.states[number])
        return next(fact.removeprefix("(at ").removesuffix(")") for fact in facts if fact.startswith("(at "))

    def visits(self, node: int, role: int) -> list[int]:
        forest = self.forest
        begin = forest.move_start[node, role]
        return forest.visits[begin : begin + forest.num_moves[node, role]].tolist()


def test_selection_by_hand(load) -> None:
    """White at the root of TREE; l leads to p, m to q, r to leaf30."""
    walks = Walks(load("tree"))
    worth = {"p": 0.4, "q": 0.0, "leaf30": 0.3}
    first = [walks.down()[0]]
    walks.up([worth[first[0]], 0])
    for _ in range(2):
        first += walks.down()
        walks.up([worth[first[-1]], 0])
    assert sorted(first) == ["leaf30", "p", "q"]  # every move once before any twice
    # one visit each, ln 3 the same for all: the mean decides, l. Black below takes either, both unvisited
    assert walks.down()[0] in ("leaf40", "leaf90")
    walks.up([0.9, 0])
    # l (0.4 + 0.9) / 2 + sqrt(2 ln 4 / 2) = 1.83, m 0 + sqrt(2 ln 4) = 1.67, r 0.3 + 1.67 = 1.97
    assert walks.down() == ["leaf30"]
    walks.up([0.0, 0])
    # l 0.65 + sqrt(2 ln 5 / 2) = 1.92, m sqrt(2 ln 5) = 1.79, r 0.15 + 1.27 = 1.42
    assert walks.down()[0] in ("leaf40", "leaf90")
    walks.up([0.2, 0])
    # l 1.5 / 3 + sqrt(2 ln 6 / 3) = 1.59, m sqrt(2 ln 6) = 1.89, r 0.15 + sqrt(2 ln 6 / 2) = 1.49
    assert walks.down()[0] in ("leaf0", "deep")
    walks.up([0.0, 0])
    assert walks.visits(0, WHITE) == [3, 2, 2]
    assert walks.visits(0, BLACK) == [7]
    assert walks.forest.walks[0] == 7


def test_every_role_maximises_its_own_goal(load) -> None:
    walks = Walks(load("tree"), exploration=0.0)
    leaf = {"leaf40": [0.4, 0.6], "leaf90": [0.9, 0.1], "p": [0.5, 0.5]}
    ends = []
    for _ in range(12):
        ends += walks.down()
        walks.up(leaf.get(ends[-1], [0.0, 0.0]))
    # greedy: white takes l, the best of its first three; black below takes leaf40, which is better for black
    assert ends[-6:] == ["leaf40"] * 6


def test_walks_at_once_go_apart(load) -> None:
    walks = Walks(load("tree"))
    assert sorted(walks.down(3)) == ["leaf30", "p", "q"]  # the root is listed in between
    walks.up([0.1, 0], [0.1, 0], [0.1, 0])
    walks.down(6)
    assert walks.visits(0, WHITE) == [3, 3, 3]  # a visit whose value is not known yet counts as a loss


def test_a_walk_may_end_where_another_has_just_begun_to_look(load) -> None:
    """WALK's garden has no moves: all walks that leave end there, at the same node."""
    walks = Walks(load("walk"))
    ends = walks.down(9)
    assert ends.count("dead_end") > 0
    assert ends.count("garden") > 0
    numbers = {walks.node(end): set() for end in walks.ends}
    for end in walks.ends:
        numbers[walks.node(end)].add(int(end))
    assert len(numbers["garden"]) == len(numbers["dead_end"]) == 1
    walks.up(*[[0.0]] * 9)
    walks.down(9)
    closed = np.flatnonzero(walks.forest.stage == CLOSED)
    assert {walks.node(node) for node in closed} == {"garden", "dead_end"}  # terminal, and stuck


def test_withdrawn_walks_leave_no_trace(load) -> None:
    walks = Walks(load("tree"))
    forest = walks.forest
    walks.down(3)
    walks.up([0.4, 0.6], [0.0, 1.0], [0.3, 0.7])
    before = [array.copy() for array in (forest.visits, forest.sums, forest.walks)]
    walks.down(5)
    assert walks.visits(0, WHITE) != [1, 1, 1]
    forest.withdraw(walks.ends)
    size = len(before[0])
    assert np.array_equal(forest.visits[:size], before[0])
    assert np.array_equal(forest.sums[:size], before[1])
    assert forest.walks.sum() == before[2].sum()
    assert not forest.visits[size:].any()


def test_simultaneous_moves_have_one_child_by_joint_move(load) -> None:
    game = load("one_shot")
    forest = Forest(game, game.initial[None], 0.5)
    for i in range(60):
        ends = forest.select(np.zeros(1, np.int64), extend(stream(1), [i]))
        forest.back_up(ends, np.full((1, 2), 0.5))
    children = np.flatnonzero(forest.links[: forest.num_nodes, PARENT] == 0)
    assert sorted(map(tuple, forest.led[children].tolist())) == [(i, j) for i in range(4) for j in range(2)]
    assert (forest.links[children, DEPTH] == 1).all()
    for role in (0, 1):
        begin = forest.move_start[0, role]
        assert forest.visits[begin : begin + forest.num_moves[0, role]].sum() == 60
    for child in children:
        joint = forest.actions[forest.move_start[0] + forest.led[child]]
        assert np.array_equal(forest.states[child], game.next(game.initial[None], joint[None])[0])


@pytest.mark.parametrize("name", ["tictactoe3p", "goofspiel"])
def test_visits_add_up(load, name) -> None:
    """In every node and for every role: the visits of its moves are the walks through it, one more per child's own."""
    game = load(name)
    forest = Forest(game, np.repeat(game.initial[None], 3, axis=0), ROOT_TWO)
    rng = np.random.default_rng(1)
    for i in range(30):
        ends = forest.select(np.repeat(np.arange(3), 5), extend(stream(2), np.arange(15 * i, 15 * i + 15)))
        forest.back_up(ends, rng.random((15, game.num_roles)))
    for node in range(forest.num_nodes):
        for role in range(game.num_roles):
            begin = forest.move_start[node, role]
            moves = slice(begin, begin + forest.num_moves[node, role])
            assert forest.visits[moves].sum() == forest.walks[node]
            assert (forest.sums[moves] <= forest.visits[moves]).all()
    assert forest.walks[:3].tolist() == [150, 150, 150]
