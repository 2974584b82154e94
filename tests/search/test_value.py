"""Learned values: samples, ridge regression, tied facts, and priors, held against numbers computed by hand."""

from dataclasses import replace
from itertools import count
from time import monotonic

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gamelore import load
from gamelore.networks.network import Network
from gamelore.networks.tuples import draw_tuples
from gamelore.players.random_streams import stream
from gamelore.search import teaching
from gamelore.search.growth import EngineGrower, Grower
from gamelore.search.native_growth import grower
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import (
    Samples,
    Teacher,
    TeachingState,
    _blas,
    _Forecasts,
    _squares,
    can_be_taught,
    fact_classes,
)
from gamelore.search.thinking import Search
from gamelore.search.tree import (
    EDGE,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    PARENT,
    PROVED,
    SOLE_WINNER,
    STAGE,
    UNRELATED,
    Tree,
)
from gamelore.search.value import LinearValue, UpperBound, upper_bound

SMALL = TeachingSettings(simulations=60_000, first=20_000)


def by_fact(game_name: str, weights: dict[str, float], role: int = 0) -> LinearValue:
    """Return a value with these weights for one role."""
    game = load(game_name)
    value = LinearValue.zero(game)
    for bit in range(game.circuit.num_facts if game.circuit else 0):
        value.weights[role, bit] = weights.get(game.fact_text(bit), 0.0)
    return replace(value, determination=1.0)


def test_a_value_is_the_sum_of_the_weights_of_the_facts() -> None:
    game = load("tictactoe")
    value = by_fact("tictactoe", {"(cell 2 2 x)": 0.25, "(cell 1 1 x)": 0.125, "(control oplayer)": 0.5})
    value.constants[:] = [0.0625, 0.0]
    state = game.start().play(["(mark 2 2)", "noop"]).state
    assert value(state[None], 0).tolist() == [0.25 + 0.5 + 0.0625]
    assert value(state[None], 1).tolist() == [0.0]


@pytest.mark.parametrize("way", [grower, EngineGrower])
def test_the_prior_by_hand(way: type[EngineGrower]) -> None:
    """Below (mark 1 1) and (mark 1 2), x has seven moves. One is worth 0.7, so the mean is 0.1.

    With gain 0.5 the priors are 0.1 + 0.5 (0.7 - 0.1) = 0.4 and 0.1 + 0.5 (0 - 0.1) = 0.05.
    """
    game = load("tictactoe")
    position = game.start().play(["(mark 1 1)", "noop"])
    settings = GrowthSettings(least=1, leaves=1, prior_visits=8, gain=0.5, minimax=0.0, exploration=5.0)
    trees: Grower = way(game, settings)
    trees.prior = by_fact("tictactoe", {"(cell 3 3 x)": 0.7}).prior(settings)
    tree = Tree(game, 2048, 20_000)
    tree.assumption = 100
    tree.start(position.state)
    trees.grow(tree, 40, stream(1), (0, 100))
    arrays = tree.arrays
    size = int(arrays.size[NUM_NODES])
    listed = [n for n in range(1, size) if arrays.nodes[n, PARENT] == 0 and arrays.nodes[n, STAGE] == LISTED]
    assert len(listed) > 3
    for node in listed:
        first, count = tree.span(node, 0)
        reply = position.legal["oplayer"][int(arrays.joint[node, 1])]
        moves = position.play(["noop", reply]).legal["xplayer"]
        assert count == len(moves) == 7
        for index, move in enumerate(moves):
            if arrays.child[first + index] < 0:
                assert arrays.visits[first + index] == 8
                has_best = "(mark 3 3)" in moves
                prior = (0.4 if move == "(mark 3 3)" else 0.05) if has_best else 0.0
                assert arrays.sums[first + index] == pytest.approx(8 * prior)
        tried = [move for index, move in enumerate(moves) if arrays.child[first + index] >= 0]
        assert "(mark 3 3)" not in moves or not tried or "(mark 3 3)" in tried, "the best prior comes first"


@pytest.mark.parametrize("way", [grower, EngineGrower])
def test_a_network_takes_the_place_of_the_linear_value(way: type[EngineGrower]) -> None:
    """Each move that was never tried has the value of the network there, after the first move and after others."""
    game, rng = load("connect3"), np.random.default_rng(2)
    network = Network.zero(draw_tuples(game, rng, 20), 2)
    network.entries[:] = rng.normal(scale=0.2, size=network.entries.shape)
    trees: Grower = way(game, GrowthSettings(least=1, leaves=1))
    trees.prior = replace(LinearValue.zero(game), network=network).prior(GrowthSettings(prior_visits=8))
    assert (trees.prior.visits, trees.prior.minimax, trees.prior.determination) == (4, 0.5, 0.5)
    tree = Tree(game, 2048, 20_000)
    tree.assumption = 100
    tree.start(game.initial)
    trees.grow(tree, 60, stream(1), (0, 100))
    arrays, checked = tree.arrays, 0
    for node in range(int(arrays.size[NUM_NODES])):
        if arrays.nodes[node, STAGE] != LISTED:
            continue
        mover = int(arrays.nodes[node, MOVER])
        first, count = tree.span(node, mover)
        joint = np.zeros((count, 2), np.int32)
        joint[:, mover] = arrays.actions[first : first + count]
        joint[:, 1 - mover] = arrays.actions[tree.span(node, 1 - mover)[0]]
        values = network(game.next(np.repeat(arrays.states[node][None], count, axis=0), joint), np.full(count, mover))
        untried = arrays.child[first : first + count] < 0
        assert arrays.guesses[first : first + count][untried] == pytest.approx(values[untried], abs=1e-6)
        checked += int(untried.sum())
    assert checked > 20


def test_both_ways_to_grow_use_a_prior_alike() -> None:
    game, settings = load("connect3"), GrowthSettings(least=8)
    trees = []
    for way in (grower, EngineGrower):
        growing: Grower = way(game, settings)
        growing.prior = by_fact("connect3", {"(cell 2 1 red)": 0.3, "(cell 1 1 red)": 0.1}).prior(settings)
        tree = Tree(game, 2048, 20_000)
        tree.assumption = 100
        tree.start(game.initial)
        growing.grow(tree, 8, stream(1), (0, 1))
        trees.append(tree)
    assert (trees[0].arrays.visits == trees[1].arrays.visits).all()


@pytest.mark.parametrize("way", [grower, EngineGrower])
def test_the_determination_narrows_the_exploration(way: type[EngineGrower]) -> None:
    """With determination 0.5 and narrowing 0.5, exploration 1 counts as 1 * (1 - 0.5 * 0.5) = 0.75."""
    game, visits = load("connect3"), []
    for exploration, narrowing in ((1.0, 0.5), (0.75, 0.0), (1.0, 0.0)):
        settings = GrowthSettings(exploration=exploration, narrowing=narrowing, minimax=0.25)
        growing: Grower = way(game, settings)
        value = by_fact("connect3", {"(cell 2 1 red)": 0.3, "(cell 1 1 red)": 0.1})
        growing.prior = replace(value, determination=0.5).prior(settings)
        tree = Tree(game, 4096, 40_000)
        tree.assumption = 100
        tree.start(game.initial)
        growing.grow(tree, 500, stream(1), (0, 100))
        visits.append(tree.arrays.visits)
    assert (visits[0] == visits[1]).all()
    assert (visits[0] != visits[2]).any()


def test_facts_that_a_symmetry_exchanges_share_a_class() -> None:
    game = load("tictactoe")
    assert game.circuit is not None
    classes = fact_classes(game)
    of = {game.fact_text(bit): int(classes[bit]) for bit in range(game.circuit.num_facts)}
    corners = {of[f"(cell {row} {column} x)"] for row in (1, 3) for column in (1, 3)}
    assert len(corners) == 1
    assert of["(cell 1 1 o)"] not in corners
    assert of["(cell 2 2 x)"] not in corners


def test_ridge_regression_by_hand() -> None:
    """One fact a and its absence, twice each: values 1 and 0. Without a penalty the weight is 1; else it is smaller.

    Centred, the sum of squares of the fact is 4 * 1/4 = 1, so with the penalty 0.25 * 4 = 1 the weight is 1 / (1 + 1).
    """
    game = load("connect3")
    samples = Samples(game)
    size = samples.moments.shape[1]
    fact = int(samples._class_of[0])
    rows = np.zeros((4, size))
    rows[:, -1], rows[:2, fact] = 1, 1
    samples.moments[0], samples.targets[0], samples.num = rows.T @ rows, rows.T @ np.array([1.0, 1, 0, 0]), 4
    value = samples.fit(None, 0.25)
    assert value.weights[0, 0] == pytest.approx(0.5)
    assert value.constants[0] == pytest.approx(0.25, abs=1e-6)
    assert not value.weights[1].any()
    again = samples.fit(LinearValue(np.full_like(value.weights, 1.0), value.constants), 0.25)
    assert again.weights[0, 0] == pytest.approx(1.0), "drawn to the weight before, which fits exactly"


def test_teaching_knows_a_good_move_from_a_bad_one() -> None:
    """In breakthrough, a pawn before the last row is worth more than one in the middle, for both roles."""
    game = load("breakthrough")
    teacher = Teacher(game, stream(1), GrowthSettings(), SMALL)
    teacher.teach()
    assert teacher.is_done
    assert teacher.value is not None
    assert game.circuit is not None
    weights = {game.fact_text(bit): teacher.value.weights[:, bit] for bit in range(game.circuit.num_facts)}

    def mean(row: int, colour: str, role: int) -> float:
        return float(np.mean([weights[f"(cell {column} {row} {colour})"][role] for column in range(1, 5)]))

    assert mean(4, "white", 0) > mean(3, "white", 0)
    assert mean(2, "black", 1) > mean(3, "black", 1)


def test_teaching_repeats_and_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    game = load("connect3")
    whole, parts = (Teacher(game, stream(1), GrowthSettings(), SMALL) for _ in range(2))
    whole.teach()
    assert whole.value is not None
    clock = count()
    monkeypatch.setattr(teaching, "monotonic", lambda: float(next(clock)))
    while not parts.is_done:
        parts.teach(deadline=next(clock) + 3.0)
    assert parts.value is not None
    assert (whole.value.weights == parts.value.weights).all()
    assert whole.simulations == parts.simulations


def test_teaching_takes_one_thread_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads wait for each other in a loop, which takes the time of other processes."""
    teacher = Teacher(load("tictactoe"), stream(1), GrowthSettings(), SMALL)
    absorb, during = Samples.absorb, []
    _blas.cache_clear()  # another test may have filled it

    def libraries() -> dict[str, int]:
        return {each["filepath"]: each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    def threads() -> set[int]:
        return {number for path, number in libraries().items() if path in loaded}

    def note(samples: Samples) -> bool:
        during.append(threads())
        return absorb(samples)

    loaded = set(libraries())  # numpy's; a compilation may load that of scipy, which teaching does not use
    monkeypatch.setattr(Samples, "absorb", note)
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        teacher.teach()
        assert threads() == before, "other code gets its threads back"
    assert during
    assert all(numbers <= {1} for numbers in during)


def test_generations_double_and_the_last_one_takes_the_rest() -> None:
    game = load("connect3")
    teacher = Teacher(game, stream(1), GrowthSettings(), TeachingSettings(simulations=100_000, first=10_000))
    ends = [teacher._generation_ends]
    for _ in range(3):
        teacher._generation_ends = teacher._next_end()
        ends.append(teacher._generation_ends)
    assert ends == [10_000, 30_000, 100_000, 100_000]


def test_half_a_generation_has_taught_something() -> None:
    """The first generation ends at 10,000 walks, the second at 30,000; it counts at 15,000, at 20,000 and so on."""
    game = load("connect3")
    lessons = TeachingSettings(simulations=100_000, first=10_000, matches=4, walks=64)
    teacher = Teacher(game, stream(1), GrowthSettings(), lessons)

    def value_after(walks: int) -> LinearValue | None:
        while teacher.simulations < walks:
            teacher.teach(monotonic() + 0.001)
        return teacher.value

    assert value_after(9_000) is None
    first = value_after(13_000)
    assert first is not None
    assert value_after(14_000) is first
    second, third = value_after(17_000), value_after(22_000)
    assert second is not None
    assert third is not None
    assert (second.weights != first.weights).any()
    assert (third.weights != second.weights).any()
    assert teacher.last is first


def test_teaching_can_begin_with_a_value() -> None:
    """It leads the searches as soon as it correlates with their results, and the first generation is drawn to it."""
    game = load("breakthrough")
    lessons = TeachingSettings(simulations=1_500_000, first=150_000, matches=8)
    source = Teacher(game, stream(1), GrowthSettings(), lessons)
    source.teach()
    begin = TeachingState(0, 0, 0, source.value, None)
    teacher = Teacher(game, stream(2), GrowthSettings(), lessons, begin)
    assert teacher.value is None
    assert teacher.last is source.value is not None
    while teacher.simulations < 60_000:
        teacher._step()
    state = teacher.pause()
    assert state.value is source.value
    assert teacher.value is not None
    assert np.array_equal(teacher.value.weights, source.value.weights)
    assert 0.1 < teacher.value.determination == teacher._samples.correlation
    assert teacher._grower.prior.visits == round(16 * teacher.value.determination) > 0
    resumed = Teacher(game, stream(2), GrowthSettings(), lessons, state)
    while teacher.value.weights is source.value.weights:
        teacher._step()
    assert teacher.generation == 0
    assert teacher.simulations >= 75_000, "after half of the generation, the value is fitted"
    assert teacher._grower.prior.determination == teacher._samples.correlation
    for each in (teacher, resumed):
        while each.generation == 0:
            each._step()
    assert resumed.value is not None
    assert np.array_equal(teacher.value.weights, resumed.value.weights)
    fresh = Teacher(game, stream(2), GrowthSettings(), lessons)
    while fresh.generation == 0:
        fresh._step()
    assert fresh.value is not None
    assert teacher.value.determination > fresh.value.determination == 0


def test_a_value_that_says_nothing_does_not_lead() -> None:
    game = load("breakthrough")
    lessons = TeachingSettings(simulations=100_000, first=20_000, matches=4, walks=64)
    rng, nonsense = np.random.default_rng(1), LinearValue.zero(game)
    nonsense.weights[:] = rng.normal(0.0, 0.3, nonsense.weights.shape)
    teacher = Teacher(game, stream(2), GrowthSettings(), lessons, TeachingState(0, 0, 0, nonsense, None))
    while teacher.generation == 0:
        assert teacher._grower.prior.visits == 0
        teacher._step()


def test_samples_by_hand() -> None:
    """A value that is right everywhere explains all; one that says 0.5 everywhere explains nothing.

    The samples are the replies that the roles have in a tree of forty walks, with the values that their moves have: 3/4
    of the mean result and 1/4 of the minimax value. The determination counts mean results only.
    """
    game = load("connect3")
    tree = Tree(game, 2048, 20_000)
    tree.assumption = 100
    tree.start(game.initial)
    grower(game, GrowthSettings(least=4)).grow(tree, 40, stream(1), (0, 100))
    arrays, size = tree.arrays, tree.num_nodes
    children = [node for node in range(1, size) if arrays.visits[arrays.nodes[node, EDGE]] >= 4]
    edges = arrays.nodes[children, EDGE]
    weights, values = np.sqrt(arrays.visits[edges]), arrays.sums[edges] / arrays.visits[edges]
    movers = arrays.nodes[arrays.nodes[children, PARENT], MOVER]
    constant = LinearValue.zero(game)
    constant.constants[:] = 0.5
    samples = Samples(game)
    samples.add(tree, 4, 0, 0.25, constant)
    error = variance = 0.0
    for role in np.unique(movers):
        results, own = values[movers == role], weights[movers == role]
        error += (own * (results - 0.5) ** 2).sum()
        variance += (own * (results - np.average(results, weights=own)) ** 2).sum()
    assert samples.squares == pytest.approx([error, variance, 0, 0])
    assert samples.correlation == 0, "a constant varies with nothing"
    assert samples.determination == max(0.0, 1 - samples.squares[0] / samples.squares[1])
    doubtful = Samples(game)
    doubtful.add(tree, 1, 100, 0.25, constant)
    assert not doubtful.num, "visits are counted without the virtual ones"
    while samples.absorb():
        pass
    mixed = 0.75 * values + 0.25 * arrays.guesses[edges]
    assert samples.targets[:, -1] == pytest.approx([(weights * mixed)[movers == role].sum() for role in (0, 1)])
    samples.clear()
    assert samples.determination == 0


def test_squares_by_hand() -> None:
    """The weighted mean of the forecasts 0, 1, 1 is 1/2, that of the results 1/4, 1/4, 3/4 is 3/8."""
    squares = _squares(np.array([0.0, 1.0, 1.0]), np.array([0.25, 0.25, 0.75]), np.array([2.0, 1.0, 1.0]))
    error = 2 * 0.25**2 + 0.75**2 + 0.25**2
    variance = 3 * 0.125**2 + 0.375**2
    product = 2 * 0.5 * 0.125 - 0.5 * 0.125 + 0.5 * 0.375
    assert squares == pytest.approx([error, variance, product, 4 * 0.25])
    samples = Samples(load("connect3"))
    samples.squares += squares
    assert samples.correlation == pytest.approx(product**2 / variance)
    samples.squares[2] *= -1
    assert samples.correlation == 0


def test_exploration_is_not_narrowed_where_interests_are_not_opposite() -> None:
    settings = GrowthSettings(exploration=1.0, narrowing=0.5)
    prior = replace(LinearValue.zero(load("connect3")), determination=0.5, foresight=1.0).prior(settings)
    assert upper_bound(settings, prior, 100) == UpperBound(0.75, 0.75, joint=1.0)
    for total in (UNRELATED, SOLE_WINNER):
        assert upper_bound(settings, prior, total) == UpperBound(1.0, 0.0, joint=1.0)


def three_positions() -> Tree:
    """Return a tree of connect3 in which red is to move, then blue, then red, with five moves each.

    The favourite of the second position has a mean of 0.75, and its highest minimax value is 0.625.
    """
    game = load("connect3")
    middle = game.start().play(["(drop 1)", "noop"])
    last = middle.play(["noop", "(drop 1)"])
    tree = Tree(game, 2048, 20_000)
    tree.plant(np.array([game.initial, middle.state, last.state]))
    grower(game, GrowthSettings()).grow(tree, 120, stream(1), (0, 100))
    first, count = tree.span(1, 1)
    assert count == 5
    tree.arrays.visits[first : first + count] = [20, 12, 4, 2, 2]
    tree.arrays.sums[first : first + count] = [15.0, 6.0, 1.0, 0.0, 0.0]
    tree.arrays.guesses[first : first + count] = [0.5, 0.625, 0.25, 0.0, 0.0]
    return tree


def test_forecasts_are_held_against_the_goal_of_the_mover() -> None:
    tree, forecasts = three_positions(), _Forecasts(3)
    forecasts.note(tree, 1)
    forecasts.end([0, 1], np.array([True, True]), np.array([[100, 0], [75, 25]], np.int16))
    x = np.array([0.75, 0.625, 1.0])
    assert forecasts.num == 1, "nothing is noted about the first match"
    assert forecasts.moments.tolist() == np.outer(x, x).tolist()
    assert forecasts.results.tolist() == (0.25 * x).tolist()


def test_a_closed_move_is_no_favourite() -> None:
    tree, forecasts = three_positions(), _Forecasts(3)
    tree.arrays.closed[tree.span(1, 1)[0]] = 1
    forecasts.note(tree, 1)
    forecasts.end([1], np.array([True]), np.array([[0, 100]], np.int16))
    assert forecasts.results.tolist() == [0.5, 0.625, 1.0]


def test_what_says_nothing_about_forecasts() -> None:
    """Proved positions, positions in which nobody moves alone, matches without an end, and goals that are missing."""
    tree, forecasts = three_positions(), _Forecasts(3)
    arrays = tree.arrays
    for array, column, value in ((arrays.nodes, STAGE, PROVED), (arrays.nodes, MOVER, NOBODY), (arrays.counts, 1, 1)):
        before = int(array[1, column])
        array[1, column] = value
        forecasts.note(tree, 1)
        array[1, column] = before
    forecasts.end([1], np.array([True]), np.array([[0, 100]], np.int16))
    forecasts.note(tree, 1)
    forecasts.end([1], np.array([False]), np.array([[50, 50]], np.int16))
    forecasts.end([1], np.array([True]), np.array([[0, 100]], np.int16))
    assert forecasts.num == 0
    forecasts.note(tree, 1)
    forecasts.end([1], np.array([True]), np.array([[0, -1]], np.int16))
    assert forecasts.num == 1
    assert forecasts.results.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("mean", "guess", "weight"),
    [(0.25, 0.75, 0.75), (0.5, 0.0, 0.0), (-0.25, 0.5, 1.0), (0.5, -0.25, 0.0), (0.0, 0.0, 0.0)],
)
def test_forecasts_by_hand(mean: float, guess: float, weight: float) -> None:
    """Eighty matches end with `mean` times the mean result and `guess` times the minimax value."""
    forecasts = _Forecasts(1)
    rng = np.random.default_rng(1)
    for num in range(80):
        assert forecasts.weight == 0 or num >= 64, "few matches say nothing"
        x, y = rng.random(2)
        forecasts._noted[0] = [(0, x, y)]
        forecasts.end([0], np.array([True]), np.array([[20 + 100 * (mean * x + guess * y)]]))
    assert forecasts.weight == pytest.approx(weight, abs=1e-9)


def test_the_weight_of_minimax_values_is_halfway_to_a_higher_foresight() -> None:
    value = replace(LinearValue.zero(load("connect3")), determination=0.5)
    assert replace(value, foresight=0.75).prior(GrowthSettings()).minimax == 0.625
    assert replace(value, foresight=0.25).prior(GrowthSettings()).minimax == 0.5
    assert replace(value, foresight=0.75).prior(GrowthSettings()).visits == 8


def test_foresight_repeats() -> None:
    lessons = TeachingSettings(simulations=200_000, first=10_000, walks=64)
    whole, parts = (Teacher(load("breakthrough"), stream(1), GrowthSettings(), lessons) for _ in range(2))
    whole.teach()
    while not parts.is_done:
        parts.teach(monotonic() + 0.001)
    assert whole.value is not None
    assert parts.value is not None
    assert 0 < whole.value.foresight == parts.value.foresight <= 1


def test_a_value_is_trusted_as_far_as_it_explains() -> None:
    game = load("connect3")
    value = replace(LinearValue.zero(game), determination=0.75)
    assert value.prior(GrowthSettings())[2:6] == (12, 1.0, 0.75, 0.75)
    assert value.prior(GrowthSettings(minimax=0.2))[2:6] == (12, 1.0, 0.2, 0.75)
    assert value.prior(GrowthSettings(scout=False))[2:6] == (0, 1.0, 0.0, 0.0)
    assert LinearValue.zero(game).prior(GrowthSettings(minimax=0.2))[2:6] == (0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["goofspiel", "tictactoe3p", "pegsolitaire"])
def test_teaching_in_every_kind_of_game(name: str) -> None:
    teacher = Teacher(load(name), stream(1), GrowthSettings(), SMALL)
    teacher.teach()
    assert teacher.is_done
    assert (teacher.value is None) == (name == "goofspiel"), "no role moves alone there"


def test_a_search_with_a_value_says_how_often_it_went_where() -> None:
    game = load("connect3")
    search = Search(game)
    search.begin(game.initial, stream(1), by_fact("connect3", {"(cell 2 1 red)": 0.5}))
    search.run(500)
    assert sum(move.visits for move in search.moves(0)) == search.visits
    search.follow(np.array([1, 0], np.int32))
    assert sum(move.visits for move in search.moves(1)) == search.visits


def test_a_proof_reaches_the_minimax_values_above_it() -> None:
    """In connect3 every guess of a listed node with two or more moves is the minimax of the guesses below it."""
    game, settings = load("connect3"), GrowthSettings(least=8)
    growing = grower(game, settings)
    growing.prior = by_fact("connect3", {"(cell 2 1 red)": 0.3, "(cell 1 1 red)": 0.1}).prior(settings)
    tree = Tree(game, 8192, 200_000)
    tree.assumption = 100
    tree.start(game.initial)
    growing.grow(tree, 800, stream(1), (0, 1000))
    arrays, checked = tree.arrays, 0
    for node in range(1, tree.num_nodes):
        parent, edge = int(arrays.nodes[node, PARENT]), int(arrays.nodes[node, EDGE])
        mover, chooser = int(arrays.nodes[node, MOVER]), int(arrays.nodes[parent, MOVER])
        if not arrays.counts[node].all() or arrays.counts[node].max() == 1:
            continue
        first, count = tree.span(node, mover)
        best = float(arrays.guesses[first : first + count].max())
        guess = best if mover == chooser else 1.0 - best
        bounds = arrays.low[node, chooser] / 100, arrays.high[node, chooser] / 100
        assert arrays.guesses[edge] == pytest.approx(min(max(guess, bounds[0]), bounds[1]), abs=1e-6)
        checked += bounds[0] == bounds[1]
    assert checked > 10, "proved nodes are among them"


def test_the_parts_of_the_samples_have_the_sums_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of teaching ends between two parts. The order of the additions changes nothing but the last digits."""
    game = load("connect3")
    tree = Tree(game, 2048, 20_000)
    tree.assumption = 100
    tree.start(game.initial)
    grower(game, GrowthSettings(least=4)).grow(tree, 300, stream(1), (0, 100))
    whole, parts = Samples(game), Samples(game)
    whole.add(tree, 2, 0, 0.0, None)
    monkeypatch.setattr(teaching, "_MOST_OPERATIONS", 0)
    monkeypatch.setattr(teaching, "_FEWEST_ROWS", 3)
    parts.add(tree, 2, 0, 0.0, None)
    assert whole.absorb()
    assert whole.absorb(), "one part for each role"
    assert not whole.absorb()
    num_parts = 0
    while parts.absorb():
        num_parts += 1
    assert num_parts > 4
    assert parts.num == whole.num == int(whole.num)
    assert parts.moments == pytest.approx(whole.moments)
    assert parts.targets == pytest.approx(whole.targets)
    assert whole.moments[:, -1, -1].all(), "both roles have samples"


def test_a_teacher_that_is_done_keeps_its_value_only() -> None:
    teacher = Teacher(load("connect3"), stream(1), GrowthSettings(), SMALL)
    kept = {"_tree", "_samples", "_grower"}
    assert kept <= vars(teacher).keys()
    teacher.teach()
    assert teacher.value is not None
    assert not kept & vars(teacher).keys()
    teacher.teach()


@pytest.mark.parametrize("walks", [5_000, 15_000, 40_000])
def test_a_teacher_goes_on_where_another_one_stopped(walks: int) -> None:
    game, lessons = load("breakthrough"), TeachingSettings(simulations=80_000, first=10_000, walks=64)
    whole, stopped = (Teacher(game, stream(1), GrowthSettings(), lessons) for _ in range(2))
    whole.teach()
    while stopped.simulations < walks:
        stopped.teach(deadline=monotonic() + 0.001)
    state = stopped.pause()
    resumed = Teacher(game, stream(1), GrowthSettings(), lessons, begin=state)
    assert state.generation == {5_000: 0, 15_000: 1, 40_000: 2}[walks]
    assert (resumed.value is None) == (state.value is None)
    for teacher in (resumed, stopped):
        teacher.teach()
        assert (teacher.simulations, teacher.is_done) == (whole.simulations, True)
        assert teacher.value is not None
        assert whole.value is not None
        assert np.array_equal(teacher.value.weights, whole.value.weights)
        assert teacher.value.determination == whole.value.determination
        assert teacher.value.foresight == whole.value.foresight


def test_a_teacher_values_by_what_the_present_generation_has_seen() -> None:
    game, lessons = load("breakthrough"), TeachingSettings(simulations=80_000, first=10_000, walks=64)
    teacher = Teacher(game, stream(1), GrowthSettings(), lessons)
    while teacher.value is None or teacher.value is teacher.last:
        teacher._step()
    resumed = Teacher(game, stream(1), GrowthSettings(), lessons, begin=teacher.pause())
    assert resumed.value is not None
    assert np.array_equal(resumed.value.weights, teacher.value.weights)


def test_a_teacher_goes_on_without_the_sums_of_another_one() -> None:
    game = load("breakthrough")
    first = Teacher(game, stream(1), GrowthSettings(), SMALL)
    while first.pause().generation < 1:
        first.teach(deadline=monotonic() + 0.001)
    state = first.pause()
    again = Teacher(game, stream(1), GrowthSettings(), SMALL, begin=replace(state, progress=None))
    assert again.pause().generation == state.generation
    assert again.value is state.value
    again.teach()
    assert again.is_done


def test_a_teacher_without_a_budget_left_keeps_what_it_knows() -> None:
    game = load("breakthrough")
    first = Teacher(game, stream(1), GrowthSettings(), SMALL)
    first.teach()
    again = Teacher(game, stream(1), GrowthSettings(), SMALL, begin=first.pause())
    assert again.is_done
    assert again.value is first.value
    assert again.pause() is not None


def test_the_sums_of_all_roles_together_are_limited() -> None:
    """Each role has a regression of its own, with a sum for each pair of facts."""
    for roles, expected in ((2, True), (9, False)):
        bits = " ".join(f"(init (bit {number}))" for number in range(1000))
        sheet = bits + "(<= (next (bit ?n)) (true (bit ?n)) (does r0 (keep ?n))) (<= terminal (true none))"
        sheet += "(<= (next none) (does r0 stop)) (legal r0 stop) (<= (legal r0 (keep ?n)) (true (bit ?n)))"
        sheet += "".join(f"(role r{number}) (goal r{number} 0)" for number in range(roles))
        sheet += "".join(f"(legal r{number} stop)" for number in range(1, roles))
        assert can_be_taught(load(sheet)) is expected
