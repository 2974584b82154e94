"""The three learners on games that can be worked out by hand, and against learners written plainly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gamelore import load
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.schema import Afterstate
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.series import Series, learned_features, play_series
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import Finished
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.solver.best_response import BestResponse
from learning.plain_learner import PlainGame, PlainLearner
from learning.small_games import ASTRAY, COINS, PENNIES, TREE, WAITING

EGREEDY = OpponentSettings("egreedy", "first", epsilon=0.0)
PASSING = OpponentSettings("weak", "first", epsilon=0.0)  # in WAITING: to end pays the best it can get
VALUES = FeatureValues({"L,{D,W}": (30.0, 1), "{W}": (80.0, 1)})


def settings(kind: Any = "baseline", initialisation: Any = "lazy", **others: Any) -> LearnerSettings:
    return LearnerSettings(kind, initialisation=initialisation, epsilon=0.0, ties="first", **others)


def series(text: str, learner: LearnerSettings, num_matches: int, values: FeatureValues | None = None) -> Series:
    return play_series(load(text), 0, [learner], [values], [EGREEDY], num_matches, [(0, 0, "test")])


def known(played: Series, lane: int = 0) -> dict[str, tuple[float, int]]:
    """Where `(at ..)` a lane's afterstates are -> (q, visits)."""
    at = {}
    for one in played.learner.afterstates(lane):
        (place,) = (fact[4:-1] for fact in one.facts if fact.startswith("(at "))
        at[place] = (pytest.approx(one.q), one.visits)
    return at


def test_baseline_by_hand() -> None:
    # Match 1: all 50, so the first move, a; black, greedy, takes the loss. sigma = A, loss. t = 1: delta = 0;
    #   t = 2: delta = 0 - 50: A = 50 + 0.21 * -50 = 39.5, loss = 50 + 0.3 * -50 = 35.
    # Match 2: b is the first of those at 50. sigma = B, win2. t = 2: delta = 100 - 50: B = 60.5, win2 = 65.
    # Match 3: b again. t = 1: delta = 65 - 60.5 = 4.5: B = 60.5 + 0.3 * 4.5 = 61.85; t = 2: delta = 35:
    #   B = 61.85 + 0.21 * 35 = 69.2, win2 = 65 + 0.3 * 35 = 75.5.
    played = series(TREE, settings(), 3)
    assert played.rewards.tolist() == [[0.0, 100.0, 100.0]]
    assert played.lengths.tolist() == [[2, 3, 3]]
    assert known(played) == {"nodeA": (39.5, 1), "loss": (35.0, 1), "nodeB": (69.2, 2), "win2": (75.5, 2)}


def test_lazy_transfer_by_hand() -> None:
    # Match 1: nothing is known while playing: a, and black takes the loss. A = 30, loss = 0, its true reward.
    #   t = 1: delta = 0 - 30: A = 30 + 0.3 * -30 = 21; t = 2: delta = 0 - 0.
    played = series(TREE, settings("transfer"), 1, VALUES)
    assert known(played) == {"nodeA": (21.0, 1), "loss": (0.0, 1)}


def test_siblings_transfer_by_hand() -> None:
    # As lazy; but also all that could have been chosen at the root has its first value now: B and E, 80, draw2, 50.
    played = series(TREE, settings("transfer", "siblings"), 1, VALUES)
    first = {"nodeA": (21.0, 1), "loss": (0.0, 1), "nodeB": (80.0, 0), "nodeE": (80.0, 0), "draw2": (50.0, 0)}
    assert known(played) == first
    # Match 2: b. sigma = B, win2 = 100. t = 1: delta = 100 - 80: B = 86. win2 was the only choice at D.
    played = series(TREE, settings("transfer", "siblings"), 2, VALUES)
    assert known(played) == first | {"nodeB": (86.0, 1), "win2": (100.0, 1)}


def test_eager_transfer_by_hand() -> None:
    # Match 1: A is worth 30, B and E 80, draw2 50: b. sigma = B, win2: as in match 2 above. Only visits are stored.
    played = series(TREE, settings("transfer", "eager"), 1, VALUES)
    assert played.rewards.tolist() == [[100.0]]
    assert known(played) == {"nodeB": (86.0, 1), "win2": (100.0, 1)}


@pytest.mark.parametrize(
    ("heuristic", "chosen", "value"),
    [
        # A: loss, or C and there a win. B, E: D, F, and there a win. Afterwards the first value has moved to the win
        # by delta = 100 - value (minimax, maxmax), unless it was there.
        ("minimax", "nodeB", 100.0),  # A = min(0, 100) = 0; B = 100
        ("maxmax", "nodeA", 70.0),  # A = max(0, 100) = 100, the first of equals; then a loss: 100 + 0.3 * (0 - 100)
        ("avgmax", "nodeB", 100.0),  # A = (0 + 100) / 2 = 50
    ],
)
def test_lookahead_by_hand(heuristic: Any, chosen: str, value: float) -> None:
    played = series(TREE, settings("lookahead", "eager", heuristic=heuristic), 1)
    assert known(played)[chosen] == (value, 1)


def test_depth_1_leaves_what_is_below_at_the_default() -> None:
    # depth 1, minimax: A = min(0, 50) = 0, B = E = 50, draw2 = 50: b, the first. sigma = B = 50, win2 = 100:
    #   t = 1: delta = 100 - 50: B = 65
    played = series(TREE, settings("lookahead", "eager", depth=1), 1)
    assert known(played) == {"nodeB": (65.0, 1), "win2": (100.0, 1)}


def test_controls_by_hand() -> None:
    # terminal: no feature has a value, so a first; then A = 50 and loss = 0: A = 50 + 0.3 * (0 - 50) = 35
    assert known(series(TREE, settings("transfer", control="terminal"), 1)) == {"nodeA": (35.0, 1), "loss": (0.0, 1)}
    # features: A = 30, loss = 50. t = 1: delta = 50 - 30: A = 36; t = 2: delta = -50: A = 36 - 10.5, loss = 35
    played = series(TREE, settings("transfer", control="features"), 1, VALUES)
    assert known(played) == {"nodeA": (25.5, 1), "loss": (35.0, 1)}


def test_shuffled_values_are_keyed_by_the_run() -> None:
    values = FeatureValues({f"{{n,{i}}}": (float(i), 1) for i in range(1, 90)} | dict(VALUES))
    learner = settings("transfer", "eager", control="shuffled")
    graph = PositionGraph(load(TREE))
    lanes = Learner(graph, 0, [learner] * 3, [values] * 3, [(1, 0), (1, 1), (1, 0)])
    spaces = lanes.initial.spaces
    ids = spaces[0].used.ids([afterstate for afterstate in graph.children([graph.start]).tolist()])
    lanes.initial.look_into(np.zeros(3, np.int32), graph.children([graph.start]))
    worth = lanes.initial.worth[:, ids[0]].tolist()
    assert worth == [values.shuffled(1, run)["L,{D,W}"][0] for run in (0, 1)]  # two groups: lanes 0 and 2 share theirs


def test_the_reward_equivalence_at_work() -> None:
    # 10, 20 and 60 count as 0, 50 and 100, and back: 75 is worth 40, half way from 20 to 60, and 100 is 60.
    # a leads to "L" and d to "L", the default 50; b to "D", 60; c to "D,W", 40. So b: sigma = mid, end20.
    #   mid = 60, end20 = its true reward 20: mid = 60 + 0.3 * (20 - 60) = 48
    values = FeatureValues({"D,W": (75.0, 1), "D": (100.0, 1)})
    played = series(COINS, settings("transfer", "eager"), 1, values)
    assert known(played) == {"mid": (48.0, 1), "end20": (20.0, 1)}
    # Now 10 and 20 both count as 0, which is worth (10 + 20) / 2 = 15. a, b and d lead to "L", 15; c to "L,W", 60.
    #   high = 60, end60 = 60: nothing moves
    values = FeatureValues({"L": (0.0, 1), "L,W": (100.0, 1)}, outcomes=(0, 100))
    learner = settings("transfer", "eager", equivalence={10: 0, 20: 0, 60: 100})
    played = series(COINS, learner, 1, values)
    assert known(played) == {"high": (60.0, 1), "end60": (60.0, 1)}


def test_an_afterstate_that_comes_again_and_again() -> None:
    # Red passes, blue passes or ends. sigma = S, S, .., S, over: Q(S) moves only in the last two steps.
    played = play_series(load(WAITING), 0, [settings()], None, [OpponentSettings("random")], 5, [(0, 0, "test")])
    longest = int(played.lengths.max())
    assert longest > 4
    q, over, visits = 50.0, 50.0, 0
    for length in played.lengths[0].tolist():
        times = length // 2  # red's plies
        visits += times
        # t < times: delta = Q(S) - Q(S) = 0; t = times: delta = over - q, for each p = 1 .. times
        q += sum(0.3 * 0.7**age for age in range(times)) * (over - q)
        # the last step: delta = 100 - over, for S at ages 1 .. times, for over itself at age 0
        delta = 100.0 - over
        q += sum(0.3 * 0.7**age for age in range(1, times + 1)) * delta
        over += 0.3 * delta
    values = sorted((one.visits, one.q) for one in played.learner.afterstates(0))
    assert values == [(5, pytest.approx(over)), (visits, pytest.approx(q))]


def test_where_both_choose_at_once_the_pair_is_learned() -> None:
    played = play_series(
        load(PENNIES), "red", [settings()], None, [OpponentSettings("egreedy", "first", 0.0)], 2, [(0, 0, "test")]
    )
    # Both show heads, the first. sigma = (open, heads), same. Match 1: t = 2: delta = 50: 60.5 and 65.
    # Match 2: t = 1: delta = 65 - 60.5: 61.85; t = 2: delta = 35: 69.2 and 75.5.
    found = {one.facts: (pytest.approx(one.q), one.visits) for one in played.learner.afterstates(0)}
    assert found == {frozenset({"open", "(does red heads)"}): (69.2, 2), frozenset({"same"}): (75.5, 2)}
    assert dict(learned_features(played.learner, 0)) == {"L,W": (pytest.approx(69.2), 2)}


def test_pairs_are_initialised_too() -> None:
    both = [settings("transfer", "eager"), settings("lookahead", "eager", heuristic="maxmax")]
    values = [FeatureValues({"L,W": (80.0, 1)}), None]
    played = play_series(load(PENNIES), 0, both, values, [EGREEDY] * 2, 1, [(0, 0, "test")] * 2)
    pair = frozenset({"open", "(does red heads)"})
    # transfer: 80 + 0.3 * (100 - 80); maxmax: 100, and the same side comes up
    assert [dict((one.facts, one.q) for one in played.learner.afterstates(lane))[pair] for lane in (0, 1)] == [
        pytest.approx(86.0),
        pytest.approx(100.0),
    ]


def test_pairs_can_be_taken_up_again() -> None:
    game = load("goofspiel")
    opponents = [OpponentSettings("random")]
    whole = play_series(game, 0, [settings()], None, opponents, 20, [(0, 0, "test")])
    half = play_series(game, 0, [settings()], None, opponents, 9, [(0, 0, "test")])
    rest = Learner(half.graph, 0, [settings()])
    rest.load(0, half.learner.afterstates(0))
    seats = [rest, Opponent(opponents[0])]
    rewards: list[float] = []
    run_lockstep(
        half.graph,
        seats,
        [stream(0, 0, "test")],
        11,
        first_match=9,
        on_end=lambda finished: rewards.extend(np.maximum(finished.goals[:, 0], 0).tolist()),
    )
    assert rewards == whole.rewards[0, 9:].tolist()
    assert set(rest.afterstates(0)) == set(whole.learner.afterstates(0))


def test_matches_that_end_otherwise_are_counted_and_pay_nothing() -> None:
    # ties first: trap (stuck); then ring, up to the cap; then out, without a goal
    played = play_series(load(ASTRAY), 0, [settings()], None, [EGREEDY], 3, [(0, 0, "test")], max_plies=4)
    assert played.rewards.tolist() == [[0.0, 0.0, 0.0]]
    assert played.lengths.tolist() == [[1, 4, 1]]
    assert [played.num_stuck.tolist(), played.num_capped.tolist(), played.num_missing.tolist()] == [[1], [1], [1]]
    assert known(played)["trap"] == (35.0, 1)


def test_sigma_k_is_a_terminal_position_or_the_last_afterstate() -> None:
    # Red passes, blue passes. Cut off after blue's ply, and before it: the open position after that is no afterstate
    # of red's and gets no value. sigma = S, and again S, S: t = 1: delta = 0; t = 2: delta = 0 - Q.
    for max_plies, q, visits in ((1, 35.0, 1), (2, 35.0, 1), (4, 50.0 - 50.0 * 0.3 * 1.7, 2)):
        played = play_series(load(WAITING), 0, [settings()], None, [PASSING], 1, [(0, 0, "test")], max_plies=max_plies)
        (only,) = played.learner.afterstates(0)
        assert (only.facts, only.visits) == (frozenset({"(control blue)"}), visits)
        assert only.q == pytest.approx(q)
    # As blue, nothing was chosen after one ply, and nothing is learned.
    played = play_series(load(WAITING), 1, [settings()], None, [PASSING], 1, [(0, 0, "test")], max_plies=1)
    assert played.learner.afterstates(0) == []
    assert played.num_capped.tolist() == [1]


def test_feature_values_are_means_weighted_by_visits() -> None:
    # {W}: B, 60 in 3 visits, and E, 90 in 1: (180 + 90) / 4 = 67.5. L,{D,W}: A, 40 in 2. No feature: root, win2.
    graph = PositionGraph(load(TREE))
    learner = Learner(graph, 0, [settings()] * 2)
    at = {"nodeA": (40.0, 2), "nodeB": (60.0, 3), "nodeE": (90.0, 1), "win2": (99.0, 9), "nodeF": (10.0, 0)}
    learner.load(1, [Afterstate(frozenset({f"(at {n})", "(control black)"}), *v) for n, v in at.items()])
    found = learned_features(learner, 1)
    assert dict(found) == {"L,{D,W}": (40.0, 2), "{W}": (67.5, 4)}
    assert (found.outcomes, found.depth) == ((0, 50, 100), 2)
    assert dict(learned_features(learner, 1, depth=1)) == {"n,L": (40.0, 2)}
    assert dict(learned_features(learner, 0)) == {}


def test_facts_of_another_game_are_refused() -> None:
    learner = Learner(PositionGraph(load(TREE)), 0, [settings()])
    with pytest.raises(KnowledgeError, match=r"expected afterstates of .*, got others"):
        learner.load(0, [Afterstate(frozenset({"(cell 1 1 x)"}), 50.0, 1)])
    with pytest.raises(KnowledgeError, match=r"got others: \(does nobody \(go left\)\) is no move of "):
        learner.load(0, [Afterstate(frozenset({"(does nobody (go left))"}), 50.0, 1)])
    several = {f"(does red (go {where}))" for where in ("left", "right")}
    with pytest.raises(KnowledgeError, match=r"got others: \(does red \(go left\)\) .* are several moves"):
        learner.load(0, [Afterstate(frozenset(several), 50.0, 1)])


KINDS = [
    LearnerSettings(kind, heuristic, initialisation, epsilon=0.1, ties=ties)  # type: ignore[arg-type]
    for kind, heuristic in (
        ("baseline", "minimax"),
        ("transfer", "minimax"),
        ("lookahead", "minimax"),
        ("lookahead", "maxmax"),
        ("lookahead", "avgmax"),
    )
    for initialisation, ties in (("lazy", "random"), ("siblings", "first"), ("eager", "random"))
]
TAUGHT = FeatureValues(
    {"L": (41.0, 1), "{W}": (72.0, 1), "{n,W}": (66.0, 1), "L,{n,W}": (45.0, 1), "{D},{W}": (57.5, 1)}
)


@pytest.mark.parametrize(("name", "role"), [("tictactoe", 0), ("tictactoe", 1), ("othello4", 0), ("capturego3", 1)])
def test_learners_do_what_plain_ones_do(name: str, role: int) -> None:
    """Rewards, values and visits are those of learners written with dictionaries."""
    game = load(name)
    plain, num_matches = PlainGame(game), 8
    opponents = [OpponentSettings(("egreedy", "random", "weak")[i % 3], epsilon=0.1) for i in range(len(KINDS))]
    seeds = [(5, i, "target") for i in range(len(KINDS))]
    values = [TAUGHT if one.kind == "transfer" else None for one in KINDS]
    played = play_series(game, role, KINDS, values, opponents, num_matches, seeds)
    for lane, one in enumerate(KINDS):
        learner, rewards = PlainLearner(plain, role, one, values[lane]), []

        def note(finished: Finished, rewards: list[float] = rewards) -> None:
            rewards.append(float(max(finished.goals[0, role], 0)))

        seats: list[Any] = [Opponent(opponents[lane])] * game.num_roles
        seats[role] = learner
        run_lockstep(PositionGraph(game), seats, [stream(*seeds[lane])], num_matches, on_end=note)
        assert played.rewards[lane].tolist() == rewards
        found = {one.facts: one for one in played.learner.afterstates(lane)}
        assert {facts: one.visits for facts, one in found.items()} == learner.visits
        # Python and machine code raise lambda to a power with other roundings
        assert {facts: one.q for facts, one in found.items()} == pytest.approx(learner.q, rel=1e-12)


def test_settings_are_checked() -> None:
    with pytest.raises(
        GameloreError,
        match=r"expected the setting kind to be baseline, transfer, lookahead or oracle, "
        r"got 'minimax'",
    ):
        LearnerSettings("minimax")  # type: ignore[arg-type]
    with pytest.raises(GameloreError, match=r"expected lam from 0 to 1, got 1\.5"):
        LearnerSettings(lam=1.5)
    with pytest.raises(GameloreError, match="expected a depth from 0 to 100"):
        LearnerSettings(depth=-1)
    with pytest.raises(GameloreError, match="only for the transfer learner and the oracle, got terminal for lookahead"):
        LearnerSettings("lookahead", control="terminal")
    assert LearnerSettings("transfer", equivalence={50: 0, 0: 0}).equivalence == ((0, 0), (50, 0))
    assert hash(LearnerSettings()) == hash(LearnerSettings())


@pytest.mark.parametrize(("kind", "values"), [("lookahead", None), ("transfer", VALUES)])
def test_goals_above_100_are_refused(kind: str, values: FeatureValues | None) -> None:
    high = COINS.replace("(leaf end60 60)", "(leaf end60 150)")
    with pytest.raises(GameloreError, match="expected goals from 0 to 100 for walker in unnamed, got 150; scale"):
        series(high, settings(kind, "eager"), 9, values)
    with pytest.raises(GameloreError, match="expected an equivalence of goals from 0 to 100, got 150"):
        settings("transfer", equivalence={0: 0, 150: 100})


def test_a_transfer_learner_needs_values_of_its_depth() -> None:
    graph = PositionGraph(load(TREE))
    with pytest.raises(GameloreError, match="of depth 2 for a transfer learner, got none"):
        Learner(graph, 0, [LearnerSettings("transfer")])
    with pytest.raises(GameloreError, match="of depth 3 for a transfer learner, got values of depth 2"):
        Learner(graph, 0, [LearnerSettings("transfer", depth=3)], [VALUES])
    with pytest.raises(GameloreError, match="got 1, 2, 1 and 1; give lists of the same length"):
        Learner(graph, 0, [LearnerSettings()], [None, None])


def test_an_oracle_by_hand() -> None:
    # White wins with b or c, draws with d, and at a black takes the loss. Match 1: b, the first of the best. Q(B) and
    # Q(win2) are 100 and remain so.
    played = play_series(load(TREE), 0, [settings("oracle", "eager")], None, [EGREEDY], 2, [(0, 0, "test")])
    assert played.rewards.tolist() == [[100.0, 100.0]]
    unvisited = {"nodeA": (0.0, 0), "draw2": (50.0, 0), "nodeE": (100.0, 0)}  # seen at the first choice
    assert known(played) == {"nodeB": (100.0, 2), "win2": (100.0, 2)} | unvisited
    # lazy: match 1 takes the first move, a, which the oracle then knows to be worth nothing
    played = play_series(load(TREE), 0, [settings("oracle")], None, [EGREEDY], 2, [(0, 0, "test")])
    assert played.rewards.tolist() == [[0.0, 100.0]]
    assert known(played) == {"nodeA": (0.0, 1), "loss": (0.0, 1), "nodeB": (100.0, 1), "win2": (100.0, 1)}


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel"])
def test_an_oracle_that_does_not_learn_gets_what_it_expects(name: str) -> None:
    game, lanes, opponent = load(name), 40, OpponentSettings("random")
    oracle = LearnerSettings("oracle", initialisation="eager", alpha=0.0, epsilon=0.1)
    seeds = [(3, lane, "test") for lane in range(lanes)]
    played = play_series(game, 0, [oracle] * lanes, None, [opponent] * lanes, 100, seeds)
    exact = BestResponse(played.graph, 0, Opponent(opponent), 0.1).expected
    error = played.rewards.std() / np.sqrt(played.rewards.size)
    assert abs(played.rewards.mean() - exact) < 4 * error
    optimal = replace(oracle, control="optimal")
    played = play_series(game, 0, [optimal] * lanes, None, [opponent] * lanes, 100, seeds)
    assert played.rewards.mean() < exact + 4 * error


def test_an_oracle_knows_the_opponent_of_its_lane() -> None:
    opponents = [OpponentSettings(kind, "hashed", 0.0, key) for kind in ("egreedy", "weak") for key in range(10)]  # type: ignore[arg-type]
    oracle = LearnerSettings("oracle", initialisation="eager", epsilon=0.0)
    played = play_series(load("tictactoe"), 0, [oracle] * 20, None, opponents, 3, [(1, i, "x") for i in range(20)])
    assert (played.rewards == 100).all()


def test_an_oracle_needs_an_opponent() -> None:
    with pytest.raises(GameloreError, match=r"expected the opponent of an oracle .* got none; name the opponent"):
        Learner(PositionGraph(load(TREE)), 0, [LearnerSettings("oracle")])
    with pytest.raises(GameloreError, match="control of a learner of the kind oracle to be optimal, got shuffled"):
        LearnerSettings("oracle", control="shuffled")
    with pytest.raises(
        GameloreError, match="of the kind transfer with turns=0 to be terminal, shuffled, features, got optimal"
    ):
        LearnerSettings("transfer", control="optimal")
    with pytest.raises(GameloreError, match="an equivalence only for the transfer learner, got one for oracle"):
        LearnerSettings("oracle", equivalence={0: 0})


def test_the_control_optimal_takes_no_random_moves_of_its_own_into_account() -> None:
    """By hand, against random moves: C is 95 = 0.8 * 100 + 0.2 * 75, and 100 without random moves; A is half of it."""
    graph, oracle = PositionGraph(load(TREE)), LearnerSettings("oracle", initialisation="eager", epsilon=0.2)
    learners = [oracle, replace(oracle, control="optimal")]
    learner = Learner(graph, 0, learners, opponents=[OpponentSettings("random")] * 2)
    start = np.array([graph.start], np.int32)
    assert learner.estimates(0, start)[1].tolist() == pytest.approx([47.5, 100, 100, 50])
    assert learner.estimates(1, start)[1].tolist() == pytest.approx([50, 100, 100, 50])


def test_an_oracle_refuses_what_its_values_do_not_model() -> None:
    with pytest.raises(GameloreError, match=r"expected gamma=1 for the oracle, .* got 0\.9; leave gamma out"):
        LearnerSettings("oracle", gamma=0.9)
    graph, merging = PositionGraph(load("tictactoe")), LearnerSettings("oracle", symmetry="all")
    for filler in ("hashed", "first"):
        with pytest.raises(GameloreError, match=f'symmetry "all", got filler={filler}, .*; choose symmetry "none"'):
            Learner(graph, 0, [merging], opponents=[OpponentSettings("weak", filler)])  # type: ignore[arg-type]
    for opponent in (OpponentSettings("weak", "random"), OpponentSettings("random", "hashed")):
        Learner(graph, 0, [merging], opponents=[opponent])


def test_an_oracle_that_shares_values_by_symmetry_gets_what_it_expects() -> None:
    lanes, opponent = 40, OpponentSettings("egreedy", "random")
    oracle = LearnerSettings("oracle", initialisation="eager", alpha=0.0, symmetry="all")
    seeds = [(3, lane, "test") for lane in range(lanes)]
    played = play_series(load("losetictactoe"), 0, [oracle] * lanes, None, [opponent] * lanes, 100, seeds)
    exact = BestResponse(played.graph, 0, Opponent(opponent), 0.01).expected
    assert abs(played.rewards.mean() - exact) < 4 * played.rewards.std() / np.sqrt(played.rewards.size)


def test_a_game_that_is_too_large_for_an_oracle_is_refused_before_the_first_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GAMELORE_ORACLE_MIB", "1")
    graph = PositionGraph(load("othello4"))
    with pytest.raises(GameloreError, match=r"all positions of othello4 to need at most 1 MiB"):
        Learner(graph, 0, [LearnerSettings("oracle")], opponents=[OpponentSettings("random")])
