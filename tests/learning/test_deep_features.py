"""Values from features several turns below an afterstate, against numbers by hand and a double in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gamelore.errors import GameloreError
from gamelore.game.game import Position
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.td.discovery import feature_space
from gamelore.learning.td.initial_values import Control, LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.replies import fit
from gamelore.learning.td.series import extract, play_series
from gamelore.matches.opponents import OpponentSettings
from gamelore.players.lookahead import GIVES, LOSS, NEUTRAL, WIN, MoveClasses
from gamelore.players.position_graph import PositionGraph
from gamelore.rulesheets import load, path
from walks import Walk

REPLIES = {(1, 0, 0, 1, WIN): 9, (1, 0, 0, 1, NEUTRAL): 1, (0, 0, 1, 1, NEUTRAL): 4}
WEIGHTS = {WIN: 5.0, LOSS: 0.2, GIVES: 0.2, NEUTRAL: 1.0}
"""The weights of REPLIES, with one imagined choice for and one against: (9 + 1) : (1 + 1), and (0 + 1) : (4 + 1)."""
FEATURES = {"L,{n}": (20.0, 1), "{n,W}": (90.0, 1), "L,{n,W}": (35.0, 1), "{n},{n,W}": (60.0, 1), "L,{W}": (45.0, 1)}
VALUES = FeatureValues(FEATURES, replies=REPLIES)


def values_of(
    graph: PositionGraph,
    afterstates: Sequence[int],
    turns: int,
    control: Control | None = None,
    values: FeatureValues = VALUES,
    role: int = 0,
) -> list[float]:
    """The initial values of afterstates for an eager learner."""
    settings = LearnerSettings("transfer", turns=turns, control=control, initialisation="eager")
    learner = Learner(graph, role, [settings], [values])
    return learner._first_values(0, np.array(afterstates, np.int32)).tolist()


def test_the_weights_of_the_replies_by_hand() -> None:
    assert fit(REPLIES) == pytest.approx([WEIGHTS[number] for number in range(4)])
    assert fit({}) == pytest.approx([1.0] * 4)
    losing = {(0, 1, 0, 1, LOSS): 3}  # (3 + 1) : (0 + 1); GIVES was never offered, so it has the weight of LOSS
    assert fit(losing) == pytest.approx([1.0, 4.0, 4.0, 1.0])


def test_equal_moves_share_the_weight_of_their_class() -> None:
    """Two wins beside one neutral move: 6 of 9 choices of a win are what equal weights predict."""
    even = {(2, 0, 0, 1, WIN): 6_000_000, (2, 0, 0, 1, NEUTRAL): 3_000_000}
    assert fit(even)[WIN] == pytest.approx(1.0, abs=1e-5)


WALK = Walk(
    # white moves from n0; black replies in n1 and n2; white moves in n3, n4, n5; black in n6; white in n7
    {0: [1, 2], 1: [3, 10], 2: [4, 5], 3: [6, 11], 4: [6, 12], 5: [11, 6], 6: [7, 10], 7: [12, 11]},
    {0: 0, 1: 1, 2: 1, 3: 0, 4: 0, 5: 0, 6: 1, 7: 0},
    {10: 0, 11: 50, 12: 100},
)


def walked(graph: PositionGraph, *nodes: int) -> list[int]:
    """The rows of these nodes of a walk."""
    graph.expand(np.arange(1, dtype=np.int32))
    for _ in range(8):
        graph.expand(np.arange(graph.num_rows, dtype=np.int32))
    rows = {graph.facts(row): row for row in range(graph.num_rows)}
    return [rows[frozenset({f"(at n{node})"})] for node in nodes]


def test_a_walk_by_hand() -> None:
    """n6 is the only afterstate with a feature: black can win, or let white choose between win and draw: L,{D,W}.

    One turn below n1: black wins (n10) or moves to n3, where white chooses between n6 and a draw. Black's move to n10
    is a WIN, that to n3 is NEUTRAL, because white cannot win at once there. Below n2, white can win in n4: so black's
    move to n4 GIVES, that to n5 is NEUTRAL.
    """
    graph = PositionGraph(load(WALK.text))
    n1, n2, n6 = walked(graph, 1, 2, 6)
    values = FeatureValues({"L,{D,W}": (30.0, 5)}, replies=REPLIES)
    assert values_of(graph, [n6], 0, values=values) == [30.0]
    assert values_of(graph, [n1, n2], 1, values=values) == pytest.approx(
        [(5 * 0 + 1 * max(30, 50)) / 6, (0.2 * 100 + 1 * max(50, 30)) / 1.2]
    )
    high = FeatureValues({"L,{D,W}": (80.0, 5)}, replies=REPLIES)
    assert values_of(graph, [n1, n2], 1, values=high) == pytest.approx([80 / 6, (0.2 * 100 + 80) / 1.2])
    assert values_of(graph, [n1, n2], 1, "replies", high) == pytest.approx([50 / 6, (0.2 * 100 + 50) / 1.2])
    assert values_of(graph, [n1, n2], 1, "minimax", high) == [0.0, 80.0]
    # two turns below, n6 is a position to follow: black wins (weight 5), or gives n7, where white wins (weight 0.2)
    n6_worth = 0.2 * 100 / 5.2
    assert values_of(graph, [n6], 1, values=high) == pytest.approx([n6_worth])
    assert values_of(graph, [n1], 2, values=high) == pytest.approx([max(50, n6_worth) / 6])


Facts = frozenset[str]


class Double:
    """The recursion in plain Python, for a game in which one role moves at a time."""

    def __init__(self, graph: PositionGraph, role: int, values: FeatureValues, control: str | None) -> None:
        self.graph, self.role, self.control = graph, graph.game.roles[role], control
        self.space, self.table = feature_space(graph, role), values

    def value(self, position: Position, turns: int) -> float:
        """The value of a position after `turns` turns; 0: of an afterstate by its feature."""
        if position.is_terminal:
            return float(position.goals[self.role] or 0)
        if not turns:
            row = int(self.graph.intern(self.graph.game.state(position.facts)[None])[0])
            feature = self.space.feature(int(self.space.ids([row])[0]))
            return 50.0 if self.control == "replies" else self.table.get(feature or "", (50.0, 0))[0]
        mover = next(role for role, moves in position.legal.items() if list(moves) != ["noop"])
        if mover == self.role:
            return max(self.value(after, turns - 1) for after in self.after(position, mover))
        replies = [self.value(after, turns) for after in self.after(position, mover)]
        if self.control == "minimax":
            return min(replies)
        weights = [WEIGHTS[number] for number in self.classes(position, mover)]
        return sum(w * v for w, v in zip(weights, replies, strict=True)) / sum(weights)

    def after(self, position: Position, mover: str) -> list[Position]:
        others = {role: moves[0] for role, moves in position.legal.items()}
        return [position.play(list((others | {mover: move}).values())) for move in position.legal[mover]]

    def classes(self, position: Position, mover: str) -> list[int]:
        numbers = []
        for after in self.after(position, mover):
            replier = next(role for role in after.legal if role != mover)
            ends = [after] if after.is_terminal else self.after(after, replier)
            goals = [end.goals[mover] for end in ends if end.is_terminal]
            first = after.goals[mover] if after.is_terminal else None
            numbers.append(WIN if first == 100 else LOSS if first == 0 else GIVES if 0 in goals else NEUTRAL)
        return numbers


@pytest.mark.parametrize("engine", ["native", "reasoner"])
@pytest.mark.parametrize("control", [None, "replies", "minimax"])
@pytest.mark.parametrize("turns", [1, 2])
def test_against_plain_python(engine: str, control: Control | None, turns: int) -> None:
    """In tic-tac-toe with marks in two cells; on the reasoner in four, because it is slow."""
    marks = "xobbbbbbb" if engine == "native" else "xobbbxobb"
    cells = "".join(f"(init (cell {i // 3 + 1} {i % 3 + 1} {mark}))" for i, mark in enumerate(marks))
    text = path("tictactoe").read_text(encoding="utf-8")
    text = text.replace("(<= (init (cell ?x ?y b)) (index ?x) (index ?y))", cells)
    game = load(text, engine=engine)  # type: ignore[arg-type]
    graph = PositionGraph(game)
    afterstates = graph.successors_of([graph.start]).tolist()
    double = Double(graph, 0, VALUES, control)
    wanted = [double.value(Position(game, graph.states[row]), turns) for row in afterstates]
    assert values_of(graph, afterstates, turns, control) == pytest.approx(wanted)
    assert len(set(wanted)) > 1 or engine == "reasoner"
