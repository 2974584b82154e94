"""Values from features several turns below an afterstate, against numbers by hand and a double in plain Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore.errors import GameloreError, KnowledgeError
from gamelore.game.game import Position
from gamelore.learning.exchange import export_learners, import_learners
from gamelore.learning.sources import Sources, computed_features, has_replies
from gamelore.learning.store.features import FeatureValues, Replies, combine
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.study import study
from gamelore.learning.td.afterstates import own_afterstates
from gamelore.learning.td.discovery import feature_space
from gamelore.learning.td.initial_values import Control, LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.replies import fit
from gamelore.learning.td.series import extract, play_series
from gamelore.matches.lockstep import Uniform
from gamelore.matches.opponents import OpponentSettings
from gamelore.players.lookahead import GIVES, LOSS, NEUTRAL, WIN
from gamelore.players.position_graph import PositionGraph
from gamelore.rulesheets import load, path
from gamelore.solver.best_response import BestResponse
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
    epsilon: float = 0.0,
) -> list[float]:
    """The initial values of afterstates for an eager learner."""
    settings = LearnerSettings("transfer", turns=turns, control=control, initialisation="eager", epsilon=epsilon)
    learner = Learner(graph, 0, [settings], [values])
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


def test_the_weights_of_an_opponent_without_random_moves() -> None:
    """With one alternative, the weight of a class is the ratio of the choices for it and against it."""
    sure = {(0, 0, 1, 1, NEUTRAL): 100_000, (1, 0, 0, 1, WIN): 100_000}
    assert fit(sure) == pytest.approx([100_001, 1 / 100_001, 1 / 100_001, 1], rel=1e-6)
    # with three classes together, the derivatives of the logarithm of the likelihood are 0
    mixed = {(1, 0, 2, 3, WIN): 50_000, (0, 0, 2, 3, NEUTRAL): 60_000, (0, 0, 4, 1, NEUTRAL): 9, (1, 0, 1, 0, WIN): 70}
    weights = fit(mixed)
    rows = np.array([[*key, times] for key, times in mixed.items()], float)
    shares = rows[:, :4] * weights / (rows[:, :4] @ weights)[:, None]
    chosen = np.array([rows[rows[:, 4] == number, 5].sum() for number in range(4)])
    for number in (WIN, GIVES):
        imagined = 1 - 2 * weights[number] / (weights[number] + 1)
        assert rows[:, 5] @ shares[:, number] == pytest.approx(chosen[number] + imagined, abs=1e-6)


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
    # a learner with random moves: in n3 and n5 it makes one of two moves with probability 0.1 each
    assert values_of(graph, [n1], 1, values=high, epsilon=0.2) == pytest.approx([(0.9 * 80 + 0.1 * 50) / 6])
    n3 = 0.9 * 50 + 0.1 * (0.2 * (0.9 * 100 + 0.1 * 50) / 5.2)
    assert values_of(graph, [n1], 2, values=high, epsilon=0.2) == pytest.approx([n3 / 6])


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
            own = [self.value(after, turns - 1) for after in self.after(position, mover)]
            return 0.9 * max(own) + 0.1 * sum(own) / len(own)
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
    assert values_of(graph, afterstates, turns, control, epsilon=0.1) == pytest.approx(wanted)
    assert len(set(wanted)) > 1 or engine == "reasoner"


STUCK = """
(role white) (role black) (init (at start))
(<= (legal white (go ?n)) (true (at start)) (arrow start ?n))
(<= (legal black noop) (true (at start)))
(<= (legal black (go ?n)) (true (at middle)) (arrow middle ?n))
(<= (legal white noop) (true (at middle)))
(<= (legal white (go ?n)) (true (at stuck)) (arrow start ?n))
(arrow start middle) (arrow start win) (arrow middle stuck) (arrow middle win)
(<= (next (at ?n)) (does ?p (go ?n)))
(<= terminal (true (at win)))
(<= (goal white 100) (true (at win))) (<= (goal black 0) (true (at win)))
"""


@pytest.mark.parametrize("turns", [1, 2])
def test_a_stuck_position_has_the_default(turns: int) -> None:
    """There, white has two moves, but black has none. Black's own moves lose, or are neutral."""
    graph = PositionGraph(load(STUCK))
    (middle,) = (row for row in graph.successors_of([graph.start]).tolist() if "(at middle)" in graph.facts(row))
    assert values_of(graph, [middle], turns, values=EVEN) == pytest.approx([(50 + 100) / 2])
    assert values_of(graph, [middle], turns, "minimax", EVEN) == [50.0]


EVEN = FeatureValues({}, replies={(0, 0, 0, 2, NEUTRAL): 1})
"""The replies of an opponent whose moves have equal weights."""


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel"])
def test_to_the_end_of_the_game_the_values_are_exact(name: str) -> None:
    """Goofspiel has simultaneous moves. Five turns below an afterstate, both games are over."""
    graph = PositionGraph(load(name))
    exact = BestResponse(graph, 0, Uniform(), 0.1)
    first = np.array([graph.start], np.int32)
    graph.expand(first)
    own = own_afterstates(first, 0, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    if name == "tictactoe":  # begin later, because nine plies without a cache take long
        first = graph.successors_of(own[:1])[:1]
        graph.expand(first)
        own = own_afterstates(first, 0, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    assert values_of(graph, own.tolist(), 5, None, EVEN, 0.1) == pytest.approx(exact.values_of(own), abs=1e-4)
    if name == "tictactoe":  # a draw, unless the first mark of o was a mistake
        assert set(values_of(graph, own.tolist(), 5, "minimax", EVEN)) <= {0.0, 50.0, 100.0}


def test_learners_of_different_sources_share_the_graph() -> None:
    graph = PositionGraph(load("tictactoe"))
    afterstates = graph.successors_of([graph.start])
    other = FeatureValues({"L,{n}": (80.0, 1)}, replies={(1, 0, 0, 1, NEUTRAL): 9})
    settings = [LearnerSettings("transfer", turns=2, control=control) for control in (None, None, "replies", "minimax")]  # type: ignore[arg-type]
    learner = Learner(graph, 0, settings, [VALUES, other, other, other])
    lanes = np.arange(4).repeat(len(afterstates))
    learner.look_into(lanes, np.tile(afterstates, 4))
    together = [learner.table.get(lane, afterstates)[0].tolist() for lane in range(4)]
    assert together == [
        values_of(graph, afterstates.tolist(), 2, one.control, values, 0.01)
        for one, values in zip(settings, [VALUES, other, other, other], strict=True)
    ]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(GameloreError, match=r"expected turns from 0 to 100, .* got 1 for lookahead; leave turns out"):
        LearnerSettings("lookahead", turns=1)
    for turns, control in ((0, "replies"), (0, "minimax"), (1, "terminal"), (1, "features")):
        allowed = "shuffled, replies, minimax" if turns else "terminal, shuffled, features"
        with pytest.raises(GameloreError, match=f"with turns={turns} to be {allowed}, got {control}; choose one of"):
            LearnerSettings("transfer", turns=turns, control=control)  # type: ignore[arg-type]
    graph, plain = PositionGraph(load("tictactoe")), FeatureValues({"L": (20.0, 1)})
    with pytest.raises(GameloreError, match=r"expected the opponents' replies .* learn the source again, or"):
        Learner(graph, 0, [LearnerSettings("transfer", turns=1)], [plain])
    Learner(graph, 0, [LearnerSettings("transfer", turns=1, control="minimax")], [plain])
    assert "turns" not in LearnerSettings("transfer").described()
    assert LearnerSettings("transfer", turns=2).described()["turns"] == 2


def test_the_replies_of_a_series_are_counted() -> None:
    """A random opponent in tic-tac-toe decides at most four times in a match."""
    played = play_series(
        load("tictactoe"), 0, [LearnerSettings()] * 2, None, [OpponentSettings("random")] * 2, 50,
        [(1, run, "source") for run in range(2)], replies=True,
    )  # fmt: skip
    for lane in range(2):
        decisions = sum(min(int(plies) // 2, 4) for plies in played.lengths[lane])
        values = extract(played, lane)
        assert sum(values.replies.values()) == decisions
        assert all(key[key[4]] > 0 and sum(key[:4]) in (8, 6, 4, 2) for key in values.replies)
    assert played.learner.replies[0] != played.learner.replies[1]
    assert not extract(
        play_series(load("tictactoe"), 0, [LearnerSettings()], None, [OpponentSettings("random")], 5, [(1, 0, "x")]), 0
    ).replies


def test_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMELORE_LOOKAHEAD_MIB", "3")
    settings = LearnerSettings("transfer", turns=2)
    with pytest.raises(GameloreError, match=r"got .* of connect3.*look ahead less far \(depth, turns\)"):
        play_series(load("connect3"), 0, [settings], [VALUES], [OpponentSettings("random")], 20, [(1, 0, "x")])


def test_what_the_opponent_taught_is_stored_and_exported(tmp_path: Path) -> None:
    """A learner with turns begins with the stored replies, and a stop changes nothing."""
    sources, settings = Sources(("tictactoe",)), LearnerSettings("transfer", turns=2, initialisation="eager")
    greedy = OpponentSettings("egreedy", "first", 0.1)
    with KnowledgeStore(tmp_path / "whole.db") as whole, KnowledgeStore(tmp_path / "parts.db") as parts:
        for knowledge, steps in ((whole, (30,)), (parts, (1, 12, 30))):
            for num_matches in steps:
                source = study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, num_matches)
            for num_matches in steps:
                stored = study(
                    knowledge, load("connect3"), "red", settings, greedy, num_matches, seed=2, sources=sources
                )
        assert whole.feature_values(source).replies == parts.feature_values(source).replies != {}
        values = whole.inherited(stored)
        assert values is not None
        assert values.replies == whole.feature_values(source).replies
        assert whole.matches(stored) == parts.matches(stored)
        assert set(whole.afterstates(stored)) == set(parts.afterstates(stored))
        export_learners(parts, tmp_path / "k.json")
        with KnowledgeStore(tmp_path / "other.db") as other:
            assert import_learners(other, tmp_path / "k.json") == 2
            assert other.feature_values(source).replies == values.replies
            assert other.inherited(stored).replies == values.replies  # type: ignore[union-attr]
            assert other.feature_values(stored).replies == whole.feature_values(stored).replies
            other.store_features(source, computed_features(other, other.find(source.id)))
            assert other.feature_values(source).replies == values.replies
            study(other, load("connect3"), "red", settings, greedy, 40, seed=2, sources=sources)
            study(whole, load("connect3"), "red", settings, greedy, 40, seed=2, sources=sources)
            assert other.matches(other.find(stored.id)) == whole.matches(stored)


def test_sources_without_replies_teach_no_learner_with_turns(tmp_path: Path) -> None:
    """The learner is not stored, so that it can begin once the sources have replies."""
    game, greedy, sources = load("connect3"), OpponentSettings("egreedy", "first"), Sources(("tictactoe",))
    settings = LearnerSettings("transfer", turns=1)
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, 20)
        with knowledge.writing() as connection:
            connection.execute("DELETE FROM reply")
        with pytest.raises(KnowledgeError, match=r"expected the opponents' replies in tictactoe .* learn more matches"):
            study(knowledge, game, "red", settings, greedy, 5, sources=sources)
        assert len(knowledge.learners()) == 1
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, 30)
        assert study(knowledge, game, "red", settings, greedy, 5, sources=sources).num_matches == 5


def test_a_source_whose_matches_were_hardly_counted_teaches_no_learner_with_turns(tmp_path: Path) -> None:
    """As a store of format 3 that was continued: only the last match has replies."""
    game, greedy, sources = load("connect3"), OpponentSettings("egreedy", "first"), Sources(("tictactoe",))
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, 20)
        with knowledge.writing() as connection:
            connection.execute("DELETE FROM reply")
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, 21)
        with pytest.raises(KnowledgeError, match=r"got [1-4] decisions in 21 matches .* with `gamelore learn`, which"):
            study(knowledge, game, "red", LearnerSettings("transfer", turns=1), greedy, 5, sources=sources)
        minimax = LearnerSettings("transfer", turns=1, control="minimax")
        assert study(knowledge, game, "red", minimax, greedy, 2, sources=sources).num_matches == 2


@pytest.mark.parametrize(
    ("decisions", "num_matches", "enough"),
    [(0, 1, False), (1, 1, True), (9, 20, False), (10, 20, True), (99, 3000, False), (100, 3000, True)],
)
def test_how_many_decisions_are_enough(decisions: int, num_matches: int, enough: bool) -> None:
    replies = {(1, 0, 0, 1, WIN): decisions} if decisions else {}
    assert has_replies(FeatureValues({"L": (20.0, 1)}, replies=replies), num_matches) == enough


def imported_again(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> tuple[Replies, Replies]:
    """Import a learner with turns, then a changed file with a match more. Return its own and inherited replies."""
    greedy, settings = OpponentSettings("egreedy", "first"), LearnerSettings("transfer", turns=1)
    with KnowledgeStore(tmp_path / "k.db") as knowledge, KnowledgeStore(tmp_path / "other.db") as other:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), greedy, 20)
        for num_matches in (5, 6):
            study(knowledge, load("connect3"), "red", settings, greedy, num_matches, sources=Sources(("tictactoe",)))
            export_learners(knowledge, tmp_path / f"{num_matches}.json")
        import_learners(other, tmp_path / "5.json")
        content = json.loads((tmp_path / "6.json").read_text())
        change(content)
        (tmp_path / "6.json").write_text(json.dumps(content))
        assert import_learners(other, tmp_path / "6.json") == 1
        stored = other.learners(source="connect3")[0]
        inherited = other.inherited(stored)
        assert (stored.num_matches, inherited is None) == (6, False)
        return other.feature_values(stored).replies, inherited.replies  # type: ignore[union-attr]


def rows_of(content: dict[str, Any], inherited: int) -> list[list[int]]:
    """The replies of the learner with turns in an exported file."""
    return [row for row in content["learners"][1]["replies"] if row[0] == inherited]


def test_a_file_of_an_older_version_leaves_the_replies_as_they_are(tmp_path: Path) -> None:
    def age(content: dict[str, Any]) -> None:
        content["version"] = 3
        for learner in content["learners"]:
            del learner["replies"]

    own, inherited = imported_again(tmp_path, age)
    assert own
    assert inherited


def test_a_file_with_another_model_is_another_learner(tmp_path: Path) -> None:
    def exchange(content: dict[str, Any]) -> None:
        content["learners"][1]["replies"] = [*rows_of(content, 0), [1, 1, 0, 0, 1, 0, 5]]

    with pytest.raises(KnowledgeError, match="got different matches or initial values"):
        imported_again(tmp_path, exchange)


@pytest.mark.parametrize(
    "row",
    [
        [0, 1, 0, 0, 1, 7, 3], [0, 1, 0, 0, 1, 1, 3], [0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, -3],
        [0, -1, 0, 0, 1, 3, 3], [2, 1, 0, 0, 1, 0, 3], [0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0.0, 3],
    ],
)  # fmt: skip
def test_replies_that_cannot_be_are_not_imported(tmp_path: Path, row: list[int]) -> None:
    def spoil(content: dict[str, Any]) -> None:
        content["learners"][1]["replies"].append(row)

    with pytest.raises(KnowledgeError, match="export the knowledge again"):
        imported_again(tmp_path, spoil)


def test_the_replies_of_several_sources() -> None:
    one, two = {(1, 0, 0, 1, WIN): 2}, {(1, 0, 0, 1, WIN): 1, (0, 0, 1, 1, GIVES): 4}
    none, first, second = (FeatureValues({"L": (20.0, 1)}, replies=replies) for replies in ({}, one, two))
    together = {(0, 0, 1, 1, GIVES): 4, (1, 0, 0, 1, WIN): 3}
    assert combine([none, first, second]).replies == combine([first, second], "mean").replies == together
    assert combine([none, first, second], "first").replies == one
    assert combine([first, second], "most").replies == two
    assert second.shuffled(1, 2).replies == two
    assert FeatureValues({}, replies=[(1, 0, 0, 1, WIN, 2)]).replies == one
