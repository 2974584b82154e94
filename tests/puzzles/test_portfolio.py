"""Puzzles: each method by hand on tiny puzzles, proofs, replay, and the player that follows a solution."""

from dataclasses import dataclass, field, replace
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamelore import Game, load
from gamelore.analysis.symmetry import step_counter
from gamelore.catalogue import play_matches, player
from gamelore.matches.match import MatchState
from gamelore.players.player import Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.puzzles import outlook, portfolio
from gamelore.puzzles.outlook import FactBits, Fit, Novelty, Prospect, Reached, seeming_clocks, successors
from gamelore.puzzles.portfolio import (
    BY_ACTION,
    Exhaustion,
    PolicySearch,
    PuzzleSearch,
    PuzzleSolution,
    adapt,
    best_first,
)
from gamelore.search.champion import Gamelore

KEY = """
(role robot) (init (at 1)) (succ 0 1) (succ 1 2) (legal robot left) (legal robot right)
(<= (next (at ?y)) (does robot left) (true (at ?x)) (succ ?y ?x))
(<= (next (at ?y)) (does robot right) (true (at ?x)) (succ ?x ?y))
(<= (next (at 0)) (does robot left) (true (at 0)))
(<= (next (at 2)) (does robot right) (true (at 2)))
(<= (next key) (true key))
(<= (next key) (does robot left) (true (at 1)))
(<= open (true key) (true (at 2)))
(<= terminal open) (<= (goal robot 100) open) (<= (goal robot 0) (not open))
"""  # three rooms; the key lies in room 0, the door is in room 2

COUNT = "(init (step 0)) (<= (next (step ?n)) (true (step ?m)) (after ?m ?n)) (<= terminal (true (step 9)))" + "".join(
    f"(after {i} {i + 1})" for i in range(9)
)
LAMP = f"""
(role robot) {COUNT} (legal robot press)
(<= (next on) (not (true on)))
(<= (goal robot 100) (true on)) (<= (goal robot 0) (not (true on)))
"""  # the lamp is on after an odd number of plies, and the match ends after nine
WALK = f"""
(role robot) {COUNT} (init (at 0)) (legal robot up) (legal robot stay)
(<= (next (at ?n)) (does robot up) (true (at ?m)) (after ?m ?n))
(<= (next (at ?m)) (does robot stay) (true (at ?m)))
(<= (goal robot 80) (true (at 8))) (<= (goal robot 30) (not (true (at 8)))) (<= terminal (true (at 8)))
"""  # eight of nine plies must go up, for 80
FILL = """
(role robot) (may a 1) (may b 1) (may b 2) (may c 2) (may c 3) (init (blank a)) (init (blank b)) (init (blank c))
(<= (legal robot (put ?c ?v)) (true (blank ?c)) (may ?c ?v) (not (taken ?v)))
(<= (taken ?v) (true (has ?c ?v)))
(<= (next (has ?c ?v)) (does robot (put ?c ?v))) (<= (next (has ?c ?v)) (true (has ?c ?v)))
(<= (next (blank ?c)) (true (blank ?c)) (not (filled ?c))) (<= (filled ?c) (does robot (put ?c ?v)))
(<= open (true (blank ?c))) (<= playable (legal robot ?m)) (<= terminal (not playable))
(<= (goal robot 100) (not open)) (<= (goal robot 0) open)
"""  # each cell gets a number that it may have, and all numbers are different: a 1, b 2, c 3


@pytest.fixture
def key() -> Game:
    return load(KEY)


def all_facts(game: Game) -> FactBits:
    return FactBits(game, np.full(game.num_words, ~np.uint64(0)))


def kept(reached: Reached) -> list[set[str]]:
    return [set(reached.game.facts(state)) for state in reached.states[: reached.num]]


def test_width_1_keeps_a_position_for_each_new_fact(key: Game) -> None:
    reached = Reached(key, 1 << 16)
    list(portfolio._iterated_width(reached, key.initial, all_facts(key), 1))
    assert kept(reached) == [{"(at 1)"}, {"(at 0)", "key"}, {"(at 2)"}]
    assert reached.best is None, "the way back with the key makes no new fact"


def test_width_2_keeps_a_position_for_each_new_pair(key: Game) -> None:
    reached = Reached(key, 1 << 16)
    list(portfolio._iterated_width(reached, key.initial, all_facts(key), 2))
    assert kept(reached) == [{"(at 1)"}, {"(at 0)", "key"}, {"(at 2)"}, {"(at 1)", "key"}]
    assert reached.best is not None
    assert reached.best.goal == 100
    assert [key.move_text(0, action) for action in reached.best.actions] == ["left", "right", "right"]


def test_novelty_by_hand() -> None:
    seen, level = Novelty(64, 2, 2), np.zeros(1, np.int64)

    def width(bits: int, levels: np.ndarray = level) -> int:
        return int(seen.widths(np.array([[bits]], np.uint64), np.zeros((1, 1), np.uint64), levels)[0])

    assert [width(0b0011), width(0b0011), width(0b0100), width(0b0101), width(0b0111)] == [1, 3, 1, 2, 2]
    assert [width(0b0111), width(1 << 63), width(1 << 63 | 1), width(0)] == [3, 1, 2, 3]
    assert width(0b0011, level + 1) == 1, "levels do not know of each other"


def test_the_fit_is_the_share_of_the_condition_that_holds(key: Game) -> None:
    fit = Fit.of_goal(key)
    assert fit is not None
    states = [key.state(facts) for facts in (["(at 1)"], ["(at 0)", "key"], ["(at 2)"], ["(at 2)", "key"])]
    assert_allclose(fit.of(np.array(states)), [0, 0.5, 0.5, 1])
    many = np.repeat(np.array(states), 100, axis=0)
    assert_allclose(fit.of(many), np.repeat([0, 0.5, 0.5, 1], 100))


@pytest.mark.parametrize("num", range(2, 24))
def test_the_fit_is_1_however_many_parts_hold(num: int) -> None:
    """In single precision, the sum of ten tenths is more than 1, and other sums are less."""
    lamps = "".join(f"(lamp {i}) (init (off {i}))" for i in range(num))
    game = load(
        "(role robot)" + lamps + "(<= (legal robot (light ?l)) (lamp ?l))"
        "(<= (next (on ?l)) (does robot (light ?l))) (<= (next (on ?l)) (true (on ?l)))"
        f"(<= all {' '.join(f'(true (on {i}))' for i in range(num))})"
        "(<= terminal all) (<= (goal robot 100) all) (<= (goal robot 0) (not all))"
    )
    fit = Fit.of_goal(game)
    assert fit is not None
    states = np.array([game.state([f"(on {i})" for i in range(count)]) for count in (num, num - 1)])
    assert fit.of(states).tolist() == [1, np.float32(num - 1) / np.float32(num)]
    assert fit.held_parts(states).sum(axis=1).tolist() == [num, num - 1]


def test_fits_do_not_exceed_1_where_goals_exceed_100() -> None:
    """Their levels are indices of tables."""
    game = load(KEY.replace("(<= (goal robot 0) (not open))", "(<= (goal robot 300) (not open))"))
    assert portfolio._fits(game, None, game.initial[None]) == [1]


def test_the_fit_is_1_exactly_where_the_goal_holds() -> None:
    game = load("pegsolitaire")
    fit = Fit.of_goal(game)
    assert fit is not None
    rng, states = np.random.default_rng(1), np.repeat(game.initial[None], 50, axis=0)
    while len(states):
        goals = game.evaluate(states)[1][:, 0]
        fits = fit.of(states)
        assert ((fits == 1) == (goals == max(game.goal_values[0]))).all()
        assert ((fits >= 0) & (fits <= 1)).all()
        legal = game.legal(states)
        starts, counts = legal.by_role(1)
        going = counts[:, 0] > 0
        drawn = (starts + (rng.random(counts.shape) * counts).astype(np.int64))[going]
        states = game.next(states[going], legal.actions[drawn])


def test_best_first_follows_the_fit(key: Game) -> None:
    reached = Reached(key, 1 << 16)
    steps = best_first(reached, key.initial, all_facts(key), Fit.of_goal(key), np.full(1, ~np.uint64(0)))
    assert sum(steps) == 8, "the first position, then three others; each has two children"
    assert reached.best is not None
    assert reached.best.goal == 100


def test_facts_are_new_on_another_level_of_the_fit(key: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three positions fit half: two after the first one, which does not fit, and one after such a position."""
    asked = list[tuple[set[str], set[str]]]()

    class Recorded(Novelty):
        def widths(self, bits: np.ndarray, before: np.ndarray, levels: np.ndarray) -> np.ndarray:
            asked.extend((set(key.facts(own)), set(key.facts(last))) for own, last in zip(bits, before, strict=True))
            return super().widths(bits, before, levels)

    monkeypatch.setattr(portfolio, "Novelty", Recorded)
    all_bits = np.full(1, ~np.uint64(0))
    list(best_first(Reached(key, 1 << 16), key.initial, all_facts(key), Fit.of_goal(key), all_bits))
    assert asked == [
        ({"(at 1)"}, set()),
        ({"(at 0)", "key"}, set()),
        ({"(at 2)"}, set()),
        ({"(at 1)", "key"}, {"(at 0)", "key"}),
    ]


def test_breadth_first_sees_each_position_once(key: Game) -> None:
    search = Exhaustion(Reached(key, 1 << 16), key.initial, None)
    assert sum(search.steps()) == 2 * 4
    assert search.is_complete
    assert search.bound == 100
    assert kept(search.reached) == [{"(at 1)"}, {"(at 0)", "key"}, {"(at 2)"}, {"(at 1)", "key"}]


def test_positions_that_differ_in_the_count_only_are_one_position() -> None:
    game = load(WALK)
    counter = step_counter(game)
    assert counter is not None
    masked, full = (Exhaustion(Reached(game, 1 << 16), game.initial, own) for own in (counter, None))
    for search in (masked, full):
        list(search.steps())
        assert search.is_complete
        assert search.bound == 80
    assert masked.reached.num == 8
    assert full.reached.num == sum(min(ply, 7) + 1 for ply in range(9))


def test_what_only_the_count_ends_is_not_lost() -> None:
    """The lamp is off at ply 2 as at ply 0, so the masked search stops there; its bound says that this may be wrong."""
    game = load(LAMP)
    counter = step_counter(game)
    masked = Exhaustion(Reached(game, 1 << 16), game.initial, counter)
    list(masked.steps())
    assert (masked.is_complete, masked.bound, masked.reached.best) == (True, 100, None)
    search = PuzzleSearch(game, methods=("breadth first",))
    search.begin(game.initial, stream(1))
    search.run()
    assert search.is_proved
    assert search.solution is not None
    assert (search.solution.goal, len(search.solution.actions)) == (100, 9)


def test_a_value_below_the_highest_goal_is_proved_by_exhaustion() -> None:
    game = load(WALK.replace("(goal robot 80)", "(goal robot 80) (true (at 9))) (<= (goal robot 50)"))
    search = PuzzleSearch(game)
    search.begin(game.initial, stream(1))
    search.run(10_000)
    assert search.is_proved
    assert search.solution is not None
    assert search.solution.goal == 50


def test_a_full_table_proves_nothing() -> None:
    game = load("pegsolitaire")
    search = Exhaustion(Reached(game, 1), game.initial, None)
    list(search.steps())
    assert not search.is_complete
    assert search.reached.num == len(search.reached.states) == outlook.CHILDREN


def test_a_search_with_a_full_table_does_not_begin_again_without_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more positions without the mask, so they do not fit either."""
    lamps = "".join(f"(lamp {i})" for i in range(12))
    game = load(
        f"(role robot) {COUNT} {lamps} (<= (legal robot (press ?l)) (lamp ?l))"
        "(<= (next (on ?l)) (does robot (press ?l)) (not (true (on ?l))))"
        "(<= (next (on ?l)) (true (on ?l)) (not (does robot (press ?l))))"
        f"(<= all {' '.join(f'(true (on {i}))' for i in range(12))}) (<= (goal robot 100) all)"
    )
    planted, plant = list[np.ndarray](), Reached.plant
    monkeypatch.setattr(Reached, "plant", lambda reached, *given: planted.append(given[1]) or plant(reached, *given))
    search = PuzzleSearch(game, memory=1e-6, methods=("breadth first",))
    assert search._counter is not None
    search.begin(game.initial, stream(1))
    search.run()
    assert not search.is_running
    assert not search.is_proved
    assert len(planted) == 1
    assert (planted[0] & search._counter.mask == 0).all()


def test_facts_that_count_plies_are_recognised() -> None:
    game = load(WALK)
    texts = {f"(step {i})" for i in range(10)}
    clocks = seeming_clocks(game, game.initial, 1)
    assert {
        game.fact_text(bit) for bit in range(game.circuit.num_facts) if int(clocks[bit >> 6]) >> (bit & 63) & 1
    } <= texts
    assert clocks.any()


def after(game: Game, *moves: str) -> np.ndarray:
    position = game.start()
    for move in moves:
        position = position.play(move)
    return position.state


def prospect_of(game: Game) -> Prospect:
    prospect = Prospect.of_game(game, np.zeros(game.num_words, np.uint64))
    assert prospect is not None
    return prospect


def test_hopeless_positions_by_hand() -> None:
    """With b 1, a has no number left. With c 2, b and a would both need 1, which the relaxation does not see."""
    game = load(FILL)
    firsts = ["(put a 1)", "(put b 1)", "(put b 2)", "(put c 2)", "(put c 3)"]
    states = np.array([after(game, move) for move in firsts])
    assert prospect_of(game).can_end(states, 0).tolist() == [True, False, True, True, True]
    assert prospect_of(game).can_end(states, 100).tolist() == [False] * 5, "no goal is higher"
    ban = portfolio.action_bits(np.array([game.action(0, "(put b 1)")], np.int32), 1)
    banned = prospect_of(game).can_end(states, 0, np.repeat(ban, 5, axis=0))
    assert banned.tolist() == [True, False, True, False, True], "b has no number after c 2"
    many = np.repeat(states, 300, axis=0)
    assert prospect_of(game).can_end(many, 0).tolist() == np.repeat([True, False, True, True, True], 300).tolist()


def test_no_position_on_the_way_to_a_better_end_is_hopeless() -> None:
    game = load("pegsolitaire")
    prospect, rng = prospect_of(game), np.random.default_rng(2)
    for _ in range(20):
        states = [game.initial]
        while len(actions := game.legal(states[-1][None]).actions):
            states.append(game.next(states[-1][None], np.array([[rng.choice(actions)]], np.int32))[0])
        goal = int(game.evaluate(states[-1][None])[1][0, 0])
        assert prospect.can_end(np.array(states), goal - 1).all()


def test_subsets_propagate_constraints() -> None:
    game = load(FILL)
    reached = Reached(game, 1 << 16)
    reached.plant(game.initial)
    children, ban = portfolio._pruned(reached, 0, np.zeros(1, np.uint64), prospect_of(game))
    assert [game.move_text(0, action) for action in children.actions] == ["(put a 1)"], "nothing else fills a"
    hopeless = [game.action(0, move) for move in ("(put b 1)", "(put c 2)")]
    assert ban == np.bitwise_or.reduce(portfolio.action_bits(np.array(hopeless, np.int32), 1), axis=0)
    list(portfolio.by_subsets(reached, game.initial, prospect_of(game), Fit.of_goal(game), 1))
    assert reached.best is not None
    assert reached.best.goal == 100
    assert reached.num == 3, "no choice is left, so each position has one child; the last one is the end"


def test_the_part_of_the_goal_with_the_fewest_actions_is_the_most_urgent() -> None:
    game = load(FILL)
    fit = Fit.of_goal(game)
    assert fit is not None
    following = np.array(
        [after(game, move) for move in ("(put b 1)", "(put b 2)", "(put a 1)", "(put c 3)", "(put c 2)")]
    )
    assert portfolio._most_urgent(fit, game.initial, following).tolist() == [2]
    assert portfolio._most_urgent(fit, game.initial, following[[0, 1, 3]]).tolist() == [2]
    assert portfolio._most_urgent(fit, following[2], following[[2, 2]]).tolist() == [0, 1], "nothing new: all"


def test_rows_leave_an_agenda_by_rank_and_the_latest_first() -> None:
    agenda = outlook.Agenda()
    agenda.add(np.array([5, 3, 5, 9]), np.arange(4))
    agenda.add(np.array([3]), np.array([4]))
    assert agenda.take(3).tolist() == [4, 1, 2]
    agenda.add(np.arange(3000)[::-1] + 10, np.arange(5, 3005))
    assert agenda.take(4).tolist() == [0, 3, 3004, 3003]
    assert agenda.size == 2998


def test_a_policy_is_adapted_by_hand() -> None:
    """First choice: b among a, b, c, all with probability 1/3. Second: c among b, c, both with 1/2."""
    policies = np.zeros((1, 1 << 16), np.float32)
    match = np.array([0, 3, 5]), np.array([0, 1, 2, 1, 2], np.int32), np.array([1, 2], np.int32)
    adapt(policies, 0, *match, BY_ACTION, 1.0)
    first = [-1 / 3, 2 / 3 - 1 / 2, -1 / 3 + 1 / 2]
    assert_allclose(policies[0, :3], first, rtol=1e-6)
    adapt(policies, 0, *match, BY_ACTION, 0.5)
    three, two = np.exp(first) / np.exp(first).sum(), np.exp(first[1:]) / np.exp(first[1:]).sum()
    change = np.array([-three[0], 1 - three[1] - two[0], -three[2] + 1 - two[1]])
    assert_allclose(policies[0, :3], first + 0.5 * change, rtol=1e-5)
    assert not policies[0, 3:].any()


def test_moves_are_drawn_by_their_weights() -> None:
    policies = np.zeros((1, 1 << 16), np.float32)
    policies[0, :3] = np.log([1, 2, 5])
    lanes = np.arange(8000)
    offsets, actions = 3 * np.arange(8001), np.tile(np.arange(3, dtype=np.int32), 8000)
    zeros = np.zeros(8000, np.int64)
    drawn = portfolio._choose(offsets, actions, lanes, zeros, zeros, 0, policies, np.zeros(1, np.int64), np.uint64(7))
    assert_allclose(np.bincount(drawn) / 8000, [1 / 8, 2 / 8, 5 / 8], atol=0.02)


def test_policies_learn_a_way_that_random_matches_do_not_find() -> None:
    """A way of 8 steps up in 9 plies has probability 10 / 512 in a random match, and the fit shows the direction."""
    game = load(WALK)
    search = PolicySearch(game, Fit.of_goal(game), 100)
    steps = search.steps(game.initial, stream(1))
    while search.best is None or search.best.goal < 80:
        next(steps)
    weight = search._policies[0, 0]
    for _ in range(100):
        next(steps)
    assert weight[game.action(0, "up")] > weight[game.action(0, "stay")]


def test_the_best_match_of_a_level_is_learned_by_the_level_above() -> None:
    game = load(WALK)
    search = PolicySearch(game, None, 100)
    steps = search.steps(game.initial, stream(1))
    while not search._policies[1].any():
        next(steps)
    assert (search._policies[0] == search._policies[1]).all()
    assert search._bests[0] == [None] * len(portfolio.KINDS)
    assert all(trial is not None for trial in search._bests[1])


@pytest.mark.parametrize("method", portfolio.SHARES)
def test_each_method_solves_a_small_puzzle(key: Game, method: str) -> None:
    search = PuzzleSearch(key, methods=(method,))
    search.begin(key.initial, stream(1))
    search.run(1000)
    assert search.solution is not None
    assert search.solution.goal == 100
    assert search.solution.method == method


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_solution_can_be_replayed(engine: str) -> None:
    game = load(KEY, engine=engine)
    search = PuzzleSearch(game)
    search.begin(game.initial, stream(1))
    search.run(100)
    assert search.solution is not None
    position = game.start()
    for state, action in zip(search.solution.states, search.solution.actions, strict=False):
        assert (position.state == state).all()
        position = position.play(game.move_text(0, int(action)))
    assert position.is_terminal
    assert list(position.goals.values()) == [search.solution.goal] == [100]


def test_a_solution_by_hand(key: Game) -> None:
    solution = PuzzleSolution.of_moves(key, ["left", "right", "right"], "by hand")
    assert solution is not None
    assert (solution.goal, solution.method) == (100, "by hand")
    facts = [{*key.facts(state)} for state in solution.states]
    assert facts == [{"(at 1)"}, {"(at 0)", "key"}, {"(at 1)", "key"}, {"(at 2)", "key"}]
    rest = solution.after(solution.states[1])
    assert rest is not None
    assert rest.actions.tolist() == solution.actions[1:].tolist()
    for moves in ([], ["left", "right"], ["left", "right", "right", "left"], ["left", "jump", "right"]):
        assert PuzzleSolution.of_moves(key, moves, "by hand") is None


def test_peg_solitaire_is_solved() -> None:
    game = load("pegsolitaire")
    search = PuzzleSearch(game)
    search.begin(game.initial, stream(1))
    search.run(100_000)
    assert search.is_proved
    assert search.solution is not None
    assert search.solution.goal == max(game.goal_values[0])


def test_results_with_a_budget_repeat() -> None:
    game, solutions = load("pegsolitaire"), []
    for _ in range(2):
        search = PuzzleSearch(game, methods=("by width", "NRPA"))
        search.begin(game.initial, stream(3))
        spent = [search.run(300), search.run(200)]
        assert search.solution is not None
        solutions.append((spent, search.solution.goal, search.solution.actions.tolist(), search.solution.method))
    assert solutions[0] == solutions[1]


def test_a_budget_under_a_clock_is_shared_by_positions_and_not_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    game, order, step = load("pegsolitaire"), list[str](), PuzzleSearch._step
    monkeypatch.setattr(PuzzleSearch, "_step", lambda search, name: order.append(name) or step(search, name))
    orders = []
    for deadline in (None, monotonic() + 1000):
        search = PuzzleSearch(game)
        search.begin(game.initial, stream(3))
        search.run(200, deadline)
        orders.append(order.copy())
        order.clear()
    assert orders[0] == orders[1]
    assert len(set(orders[0])) > 3


@dataclass
class FakeSteps:
    """Steps of methods that take seconds of a clock of their own. `begun` lists the steps and when they began."""

    seconds: dict[str, float]
    now: float = 100.0
    begun: list[tuple[str, float]] = field(default_factory=list)

    def make(self, name: str) -> int:
        self.begun.append((name, self.now))
        self.now += self.seconds[name]
        return 1000

    def search(self, monkeypatch: pytest.MonkeyPatch) -> PuzzleSearch:
        monkeypatch.setattr(portfolio, "monotonic", lambda: self.now)
        game = load("pegsolitaire")
        search = PuzzleSearch(game, methods=tuple(self.seconds))
        search.begin(game.initial, stream(1))
        monkeypatch.setattr(search, "_step", self.make)
        return search

    def spent(self) -> dict[str, float]:
        names = [name for name, _ in self.begun]
        return {name: seconds * names.count(name) for name, seconds in self.seconds.items()}


@pytest.mark.parametrize("is_budget", [False, True])
def test_slices_that_are_too_short_for_a_method_do_not_change_its_share(
    is_budget: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step beyond the slice, as a budget of its own or not, costs its method as much as any other."""
    steps = FakeSteps({"by width": 0.1, "NRPA": 0.01})
    search = steps.search(monkeypatch)
    for _ in range(1000):
        if is_budget:
            search.run(deadline=steps.now + 0.05)
            assert search.run(1) > 0
        else:
            assert search.run(deadline=steps.now + 0.05, least_steps=1) > 0
    spent = steps.spent()
    assert spent["by width"] > 10
    assert spent["NRPA"] / portfolio.METHODS["NRPA"] == pytest.approx(spent["by width"], abs=0.11)


def test_a_search_goes_on_from_a_position_of_its_solution() -> None:
    game = load("pegsolitaire")
    search = PuzzleSearch(game, methods=("NRPA",))
    search.begin(game.initial, stream(3))
    search.run(200)
    solution = search.solution
    assert solution is not None
    search.advance(solution.states[2], stream(4))
    assert search.is_at(solution.states[2])
    assert search.solution is not None
    assert search.solution.goal == solution.goal
    assert search.solution.actions.tolist() == solution.actions[2:].tolist()
    other = next(
        state for state in successors(game, game.initial[None]).states if not (state == solution.states[1]).all()
    )
    search.advance(other, stream(4))
    assert search.solution is None, "the solution does not lead there"
    search.run(200)
    assert search.solution is not None


def test_a_search_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slow step begins that would end too late, however many quick steps of another method were made before."""
    steps = FakeSteps({"by subsets": 2.0, "NRPA": 0.01})
    search = steps.search(monkeypatch)
    deadline = steps.now + 13
    assert search.run(deadline=deadline) > 0
    slow = [begin for name, begin in steps.begun if name == "by subsets"]
    assert len(slow) == 2
    assert max(slow) + 2 <= deadline
    quick = [begin for name, begin in steps.begun if name == "NRPA"]
    assert deadline - 0.02 < max(quick) + 0.01 <= deadline, "the quick method uses what is left"
    assert search.run(deadline=deadline) == search.run(deadline=deadline - 1) == 0
    assert search.run(1) >= 1


def turn_of(state: MatchState, deadline: float | None = None) -> Turn:
    return replace(state.turn(0, stream(1)), deadline=deadline)


def test_the_player_solves_peg_solitaire() -> None:
    game = load("pegsolitaire")
    records = [play_matches(game, ["gamelore:simulations=20000"], 1, seed=2)[0] for _ in range(2)]
    assert [record.goals for record in records] == [(max(game.goal_values[0]),)] * 2
    assert records[0].moves == records[1].moves


def test_the_player_follows_its_solution_and_searches_again_after_another_move() -> None:
    thinker, state = player("gamelore:simulations=20000"), MatchState(PositionGraph(load("pegsolitaire")))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    choice = int(thinker.choose(turn_of(state))[0])
    puzzle = thinker._lanes[0].puzzle
    solution = puzzle.solution
    assert solution is not None
    assert puzzle.is_proved
    state.play([choice])
    while state.graph.num_moves[state.row, 0] < 2:
        state.play([0])
    thinker.choose(turn_of(state))
    assert puzzle.solution is not None
    assert puzzle.solution.actions.tolist() == solution.actions[state.ply :].tolist()
    other = (int(thinker.choose(turn_of(state))[0]) + 1) % int(state.graph.num_moves[state.row, 0])
    state.play([other])
    while state.graph.num_moves[state.row, 0] < 2:
        state.play([0])
    thinker.choose(turn_of(state))
    assert puzzle.is_at(state.graph.states[state.row])
    assert not (solution.states == puzzle.state).all(axis=1).any(), "the other move leads off the old solution"


def test_the_player_ponders_on_a_puzzle_until_it_is_solved() -> None:
    thinker, state = player("gamelore:seconds=0.1"), MatchState(PositionGraph(load("pegsolitaire")))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    while thinker.ponder(turn_of(state, monotonic() + 0.02)):
        pass
    puzzle = thinker._lanes[0].puzzle
    assert puzzle.is_proved
    choice = int(thinker.choose(turn_of(state))[0])
    assert choice == puzzle.choice()
    assert not thinker.ponder(turn_of(state, monotonic() + 0.02)), "after its move"
    state.play([choice])
    assert puzzle.is_at(state.graph.states[state.row])


def test_a_match_does_not_use_the_search_of_the_one_before() -> None:
    thinker, state = player("gamelore:simulations=100"), MatchState(PositionGraph(load("pegsolitaire")))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    thinker.choose(turn_of(state))
    first = thinker._lanes[0].puzzle
    thinker.begin(0, state.started(0))
    assert (first.state, first.solution, first.is_proved) == (None, None, False)


def test_a_tree_that_promises_more_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search of puzzles is made to find nothing; the tree then chooses."""
    monkeypatch.setattr(PuzzleSearch, "run", lambda *_, **__: 0)
    record = play_matches(load(KEY), ["gamelore:simulations=400"], 1)[0]
    assert record.goals == (100,)


def test_an_end_that_is_proved_without_a_walk_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree looks at all children of its root first. The search of puzzles knows of a worse end."""
    game = load("""
        (role r) (init start) (pays 1 10) (pays 2 90) (pays 3 20) (<= (legal r ?n) (pays ?n ?g) (true start))
        (<= (next (did ?n)) (does r ?n)) (<= terminal (true (did ?n))) (<= (goal r ?g) (true (did ?n)) (pays ?n ?g))
        """)

    def know(puzzle: PuzzleSearch, *_: object) -> None:
        puzzle.solution = SimpleNamespace(goal=10)  # type: ignore[assignment]

    monkeypatch.setattr(PuzzleSearch, "advance", know)
    monkeypatch.setattr(PuzzleSearch, "run", lambda *_, **__: 0)
    monkeypatch.setattr(PuzzleSearch, "choice", lambda _: 0)
    monkeypatch.setattr(PuzzleSearch, "is_proved", False)
    assert play_matches(game, ["gamelore:simulations=4"], 1)[0].goals == (90,)


def test_the_player_solves_a_puzzle_on_the_reasoner() -> None:
    record = play_matches(load(KEY, engine="reasoner"), ["gamelore:simulations=20"], 1)[0]
    assert record.goals == (100,)
