"""Games that are compiled within `base` and `input`: exactly what the plain reasoner says, inside and outside."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from itertools import count, product
from random import Random

import numpy as np
import pytest

import agreement
import gamelore
from bounded_sheets import COUNTER, LEAVING_BASE, LEAVING_INPUT, SHEETS
from clocks import counted_time
from commands import run
from evaluators import LIMITS, Evaluator, Played, Unfit, native_engine, within_limits
from gamelore.catalogue import play_matches
from gamelore.circuit.translate import build
from gamelore.game import compile as pipeline
from gamelore.game.engines import BoundedEngine, ReasonerEngine
from gamelore.game.game import Game
from gamelore.gdl import syntax
from gamelore.gdl.limits import Limits
from gamelore.ground.clingo import Names
from gamelore.ground.optimize import goal_outside, rewrite, within_bounds
from gamelore.ground.program import ground
from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import SearchSettings, search
from random_programs import rulesheet

SMALL = Limits(literals=20_000)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


@pytest.fixture(params=SHEETS)
def name(request):
    return request.param


def bounded(text):
    game = gamelore.load(text, limits=SMALL)
    assert game.engine == "native"
    assert game.is_bounded
    return game


def oracle(text):
    return gamelore.load(text, engine="reasoner", limits=SMALL, rewrite=False)


def positions(game, other, most):
    """Pairs of the same position, breadth first along all joint moves."""
    pairs = {game.start().facts: (game.start(), other.start())}
    queue = list(pairs.values())
    for mine, theirs in queue:
        yield mine, theirs
        for joint in product(*mine.legal.values()):
            after = mine.play(joint), theirs.play(joint)
            assert after[0].facts == after[1].facts
            if after[0].facts not in pairs and len(pairs) < most:
                pairs[after[0].facts] = after
                queue.append(after)


# ---- agreement with the plain reasoner ------------------------------------------------------------------------------


def test_all_answers_are_those_of_the_plain_reasoner(name):
    game, other = bounded(SHEETS[name]), oracle(SHEETS[name])
    seen = list(positions(game, other, 120))
    for mine, theirs in seen:
        assert mine.facts == theirs.facts
        assert (mine.legal, mine.is_terminal, mine.goals) == (theirs.legal, theirs.is_terminal, theirs.goals)
        assert game.position(mine.facts) == mine, "equal positions have equal rows"
    mine, theirs = (np.array([pair[side].state for pair in seen]) for side in (0, 1))
    np.testing.assert_array_equal(game.state_keys(mine), other.state_keys(theirs))
    np.testing.assert_array_equal(game.acting(mine), other.acting(theirs))
    for ours, expected in zip(game.evaluate(mine), other.evaluate(theirs), strict=True):
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(game.terminal(mine), other.terminal(theirs))
    for fact in sorted(seen[-1][0].facts):
        np.testing.assert_array_equal(game.holds(mine, fact), other.holds(theirs, fact))
    assert (mine[:, -1] > 0).any() == (name != "counter")


def test_a_batch_may_mix_states_inside_and_outside():
    game, other = bounded(LEAVING_BASE), oracle(LEAVING_BASE)
    pairs = list(positions(game, other, 60))
    mine, theirs = (np.array([pair[side].state for pair in pairs]) for side in (0, 1))
    legal, expected = game.legal(mine), other.legal(theirs)
    np.testing.assert_array_equal(legal.offsets, expected.offsets)
    np.testing.assert_array_equal(legal.terminal, expected.terminal)
    assert texts(game, legal) == texts(other, expected)
    going = ~legal.terminal
    after = game.next(mine[going], joints(game, going.sum()))
    assert set(after[:, -1] > 0) == {True, False}
    assert list(map(game.facts, after)) == list(map(other.facts, other.next(theirs[going], joints(other, going.sum()))))


def texts(game, legal):
    """The legal moves as text, those of both roles by turns."""
    roles = np.repeat(np.arange(len(legal.offsets) - 1) % 2, np.diff(legal.offsets))
    return list(map(game.move_text, roles.tolist(), legal.actions.tolist()))


def joints(game, number):
    """So many joint moves, int32[number, 2], three different ones by turns."""
    moves = [("up", "stay"), ("up", "up"), ("stay", "back")]
    some = [[game.action(role, move) for role, move in enumerate(moves[lane % 3])] for lane in range(number)]
    return np.array(some, np.int32)


def test_no_states_at_all():
    game = bounded(COUNTER)
    none = game.initial[None][:0]
    assert game.next(none, np.zeros((0, 2), np.int32)).shape == none.shape
    assert game.legal(none).offsets.tolist() == [0]
    assert [part.shape for part in game.evaluate(none)] == [(0,), (0, 2)]
    assert game.terminal(none).shape == (0,)


def test_play_that_stays_inside_asks_no_reasoner(monkeypatch):
    def never(*_):
        raise AssertionError("asked the reasoner though all is inside")

    monkeypatch.setattr(ReasonerEngine, "__init__", never)
    game = bounded(COUNTER)
    assert sum(game.playouts(5000, seed=1).goals[0].values()) == 5000
    assert game.start().play(["(add two)", "noop"]).legal["black"] == ["(add one)", "(add two)"]
    assert game.state(["(count (s z))", "(control black)"])[-1] == 0


def test_a_state_that_somebody_makes_up_may_be_anywhere():
    game = bounded(COUNTER)
    far = "(s (s (s (s (s (s (s (s z))))))))"
    position = game.position([f"(count {far})", "(control black)", "unheard-of"])
    assert position.facts == {f"(count {far})", "(control black)", "unheard-of"}
    after = position.play(["noop", "(add one)"])
    assert after.facts == {f"(count (s {far}))", "(control white)", "done"}
    assert after.goals == {"white": 100, "black": 0}
    with pytest.raises(gamelore.IllegalMoveError, match="legal moves: noop"):
        position.play(["(add three)", "noop"])


def test_what_never_changes_may_be_otherwise_in_a_state_that_somebody_makes_up():
    strict = "(init (rules strict)) (<= (next (rules ?x)) (true (rules ?x)))"
    game = bounded(f"{COUNTER}{strict}(<= (legal ?r resign) (role ?r) (true (rules strict)))")
    assert game.start().legal["black"] == ["noop", "resign"]
    lenient = game.position(game.start().facts - {"(rules strict)"})
    assert lenient.legal["black"] == ["noop"]
    assert lenient.play(["(add one)", "noop"]).legal["white"] == ["noop"]


def test_a_move_outside_may_be_asked_about_anywhere():
    """`next` does not look at legality: white says what is far beyond `input` in a state that is inside."""
    game, other = bounded(LEAVING_INPUT), oracle(LEAVING_INPUT)
    moves = ["(say (s (s (s (s (s (s z)))))))", "go"]
    afters = []
    for played in (game, other):
        joint = np.array([[played.action(role, move) for role, move in enumerate(moves)]], np.int32)
        afters.append(played.facts(played.next(played.initial[None], joint)[0]))
    assert afters[0] == afters[1]
    assert game.initial[-1] == 0
    assert "(said (s (s (s (s (s (s z)))))))" in afters[0]


def test_goals_that_are_possible_are_told_without_those_of_the_bounds():
    game = bounded(LEAVING_BASE)
    assert game.goal_values == ((100,), (30, 70))
    assert goal_outside(syntax.parse("(role a) (<= (goal a 32767) (p 032766))")) == 32765


# ---- random play ----------------------------------------------------------------------------------------------------


def law(game):
    """(goals, steps) -> its probability, in random matches from the start."""
    found, reached = {}, {game.start(): 1.0}
    steps = 0
    while reached:
        following = {}
        for position, probability in reached.items():
            joints = list(product(*position.legal.values()))
            if position.is_terminal or not joints:
                goals = tuple(position.goals.values()) if position.is_terminal else (None,) * game.num_roles
                found[goals, steps] = found.get((goals, steps), 0.0) + probability
            for joint in joints:
                after = position.play(joint)
                following[after] = following.get(after, 0.0) + probability / len(joints)
        reached, steps = following, steps + 1
    return found


@pytest.mark.parametrize("name", ["counter", "leaving base", "leaving input", "forgotten", "reading legal"])
def test_random_matches_have_the_law_of_the_rules(name):
    """Those that go outside are neither too many nor too few."""
    n = 2000
    game = bounded(SHEETS[name])
    expected = law(game)
    rolled = game.rollouts(np.repeat(game.initial[None], n, axis=0), seed=3)
    ends = [tuple(None if goal < 0 else goal for goal in row) for row in rolled.goals.tolist()]
    ends = list(zip(ends, rolled.steps.tolist(), strict=True))
    assert set(ends) <= set(expected)
    played = game.playouts(n, seed=4)
    assert played.num_playouts == n
    assert abs(played.num_steps / n - sum(steps * p for (_, steps), p in expected.items())) < 0.1
    for end, probability in expected.items():
        assert abs(ends.count(end) / n - probability) < 4.5 * (probability * (1 - probability) / n) ** 0.5 + 1e-9
    for role in range(game.num_roles):
        for goal in {goals[role] for goals, _ in expected}:
            probability = sum(p for (goals, _), p in expected.items() if goals[role] == goal)
            count = played.goals[role].get(goal, 0)
            assert abs(count / n - probability) < 4.5 * (probability * (1 - probability) / n) ** 0.5 + 1e-9


@pytest.mark.parametrize("name", SHEETS)
def test_random_matches_depend_on_the_seed_alone(name):
    told = []
    game = bounded(SHEETS[name])
    for n in (0, 1, 7, 100):
        one = game.playouts(n, seed=5, threads=1)
        assert one == game.playouts(n, seed=5, threads=2, progress=told.append)
        assert all(sum(goals.values()) == n for goals in one.goals)
    assert told[-1] <= 100
    states = np.array([mine.state for mine, _ in positions(game, oracle(SHEETS[name]), 30)])
    first, second = (game.rollouts(states, seed=6, threads=threads, max_steps=2) for threads in (1, 2))
    np.testing.assert_array_equal(first.goals, second.goals)
    np.testing.assert_array_equal(first.steps, second.steps)
    assert first.steps.max() <= 2
    assert game.rollouts(states[:0], seed=1).goals.shape == (0, game.num_roles)


def test_a_search_plays_on_where_the_bounds_end():
    game = bounded(LEAVING_BASE)
    far = game.position(["(n (s (s (s z))))", "(last up)", "(clock 3)"])
    assert far.state[-1] > 0
    found = search(game, far.state[None], extend(stream(1), [0]), SearchSettings(simulations=200))
    assert found.visits.sum() == 400
    assert 0 < found.means.max() <= 100
    (record,) = play_matches(game, ["uct:simulations=30", "random"], 1, seed=2)
    assert len(record.moves) == 4


# ---- loading --------------------------------------------------------------------------------------------------------


def test_the_reason_says_that_the_bounds_were_taken_and_why():
    assert re.fullmatch(
        "the whole game is too large, so only the states within `base` and `input` are compiled: "
        r"expected grounding to end within 20000 literals, but it did not; the largest relation is `\w+`, "
        r"with \d+ atoms so far",
        bounded(COUNTER).engine_reason,
    )


@pytest.mark.parametrize(("by_time", "limits"), [(False, SMALL), (True, Limits(seconds=0.3, literals=10**9))])
def test_a_second_load_neither_grounds_nor_compiles(folder, monkeypatch, by_time, limits):
    with counted_time():
        first = gamelore.load(LEAVING_BASE, limits=limits)
    assert ("within 0.3 s" in first.engine_reason) == by_time
    monkeypatch.setattr(pipeline, "ground", None)
    second = gamelore.load(LEAVING_BASE, limits=limits)
    assert second.engine_reason == first.engine_reason
    assert len(list(folder.glob("*.game"))) == len(list(folder.glob("*.refused"))) == 1
    assert second.playouts(100, seed=1) == first.playouts(100, seed=1)
    for mine, theirs in positions(second, oracle(LEAVING_BASE), 40):
        assert mine.legal == theirs.legal


@pytest.mark.parametrize(
    "text",
    [
        COUNTER.replace("(base", "(declared").replace("(input", "(allowed"),
        COUNTER + "(<= (base (count (s ?n))) (base (count ?n)))",  # endless itself
        COUNTER.replace("(base (count", "(base (counter"),  # of something else
        COUNTER + "(<= seen (next done))",  # reads what is held back
        "(role r) (legal r go) (<= (input ?r ?m) (legal ?r ?m)) (base (count z)) (goal r 0) (<= terminal (true done))"
        "(init (count z)) (<= (next (count (s ?x))) (true (count ?x)))",
    ],
    ids=["none", "endless", "of other facts", "next in a body", "of what is legal"],
)
def test_without_bounds_that_help_it_is_refused_as_ever(folder, monkeypatch, text):
    with pytest.raises(gamelore.GroundingError, match=r"within 20000 literals.*the largest relation is `") as error:
        gamelore.load(text, engine="native", limits=SMALL)
    assert "within base" not in str(error.value)
    monkeypatch.setattr(pipeline, "ground", None)
    assert gamelore.load(text, limits=SMALL).engine == "reasoner"
    assert gamelore.load(text, limits=SMALL).engine_reason == error.value.message


def test_a_sheet_that_grounds_as_it_is_has_no_bounds():
    game = gamelore.load("tictactoe")
    assert (game.engine, game.is_bounded, game.engine_reason) == ("native", False, "")


def test_without_rewriting_there_are_bounds_too():
    game = gamelore.load(LEAVING_INPUT, limits=SMALL, rewrite=False)
    assert game.is_bounded
    for mine, theirs in positions(game, oracle(LEAVING_INPUT), 30):
        assert (mine.legal, mine.goals) == (theirs.legal, theirs.goals)


def test_no_perfect_model_is_told_in_the_words_of_the_sheet():
    text = COUNTER + "(<= terminal (true (count (s ?n))) (not (goal white 7)))\n(<= (goal white 7) (not terminal))"
    with pytest.raises(gamelore.GDLSemanticError) as error:
        gamelore.load(text, limits=SMALL)
    assert "no perfect model: (terminal) depends on not (goal white 7), which depends on (terminal)" in str(error.value)
    assert "as written" not in str(error.value)


def test_the_check_compares_what_is_outside(tmp_path):
    path = tmp_path / "leaving.kif"
    path.write_text(LEAVING_BASE)
    found = run("check", path, "--play", "--ground-literals", SMALL.literals, code=1).stdout
    assert (
        "native engine; the whole game is too large, so only the states within `base` and `input` are compiled" in found
    )
    assert re.search(r"is not in 'base', and the same is true of \d+ more with the name", found)


# ---- what is compiled -----------------------------------------------------------------------------------------------


def test_the_rules_within_bounds():
    sheet = syntax.parse(
        "(role r) (init (n z)) (base (n z)) (legal r go) (goal r 1)"
        "(<= (next (n (s ?x))) (true (n ?x))) (<= (next (m ?x)) (true (n ?x))) (<= (next (n ?x)) (true (n ?x)) p)"
        "(<= terminal (not (or p (goal r 1)))) (<= p (true (m z)))"
    )
    inside = within_bounds(sheet)
    assert str(inside).splitlines() == [
        "(role r)",
        "(init (n z))",
        "(base (n z))",
        "(legal r go)",
        "(goal r 1)",
        "(<= (next (n (s ?x))) (true (n ?x)) (base (n (s ?x))))",
        "(<= (next (m ?x)) (true (n ?x)))",
        "(<= (next (n ?x)) (true (n ?x)) p)",
        "(<= terminal (not (or p (goal r 1))))",
        "(<= p (true (m z)))",
        "(<= (init (n z)))",
        "(<= (base (n z)))",
        "(<= (next outside of base) (true (n ?x)) (not (base (n (s ?x)))))",
        "(<= is outside (true outside of base))",
        "(<= terminal terminal)",
        "(<= terminal is outside)",
        "(<= (goal ?role ?value) (goal ?role ?value) (not is outside))",
        "(<= (goal ?role 32767) (role ?role) is outside)",
    ]
    numbers = Names(sheet).numbers
    assert list(Names(inside).numbers.items())[: len(numbers)] == list(numbers.items())


def drawn_bounds(random, text):
    """The sheet with some of its possible facts in `base`, some of its moves in `input`."""
    rules = tuple(rule for rule in syntax.parse(text).rules if rule.head.name not in ("base", "input"))
    sheet = syntax.Rulesheet(rules, "")
    program = ground(sheet, LIMITS)
    facts, moves = random.choice([0.5, 0.8, 0.95, 1]), random.choice([0.5, 0.8, 0.95, 1])
    term = program.names.text
    lines = [f"(base {term(fact)})" for fact in program.true if random.random() < facts]
    lines += [f"(input {term(role)} {term(move)})" for role, move in program.does if random.random() < moves]
    return "\n".join([str(sheet), *lines])


def bounded_game(sheet):
    inside = within_bounds(sheet)
    if inside is None:
        raise Unfit("nothing is bounded")
    with within_limits():
        program = ground(rewrite(inside), LIMITS, Names(inside))
    native = native_engine(build(program), program.names, program.roles)
    reasoner = partial(ReasonerEngine, sheet, LIMITS, True, native.names)
    return Game(sheet, "random", BoundedEngine(sheet, native, reasoner), "within bounds")


def bounded_evaluator(sheet) -> Evaluator:
    return Played(bounded_game(sheet))


@pytest.mark.parametrize("first", [0, 100, 200, 300])
def test_random_programs_within_random_bounds(first, monkeypatch):
    """Three of each row of seeds: some sheets are too large, and of some nothing is bounded."""
    monkeypatch.setattr(agreement, "native_game", bounded_game)
    num_played = 0
    for seed in count(first):
        random = Random(seed)
        with suppress(Unfit, gamelore.GroundingError):
            text = drawn_bounds(random, rulesheet(random))
            agreement.assert_agreement(text, {"bounded": bounded_evaluator})
            agreement.assert_possible_matches(text)
            num_played += 1
        if num_played == 3:
            break


# Too large without bounds. Each `base` or `input` is wrong in the first state: it depends on the state or the moves.
CHANGING = {
    "base by true": "(<= (base (n ?x)) (true (n ?x)))",
    "base by does": "(<= (base (n 0)) (does r up))",
    "input by a relation": "(<= (input ?r ?m) (here ?r ?m)) (<= (here ?r up) (role ?r) (true (n 7)))",
}


@pytest.mark.parametrize("bound", CHANGING)
def test_bounds_that_depend_on_the_state_or_the_moves_are_not_used(bound):
    rules = """
        (role r) (init (n 0)) (<= (legal r up) (true (n ?x))) (<= (next (n ?y)) (does r up) (true (n ?x)) (succ ?x ?y))
        (<= terminal (true (n 3))) (<= (goal r 70) (true (n 3))) (succ 0 1) (succ 1 2) (succ 2 3)
    """
    sheet = syntax.parse(rules + CHANGING[bound])
    assert within_bounds(sheet) is None
    for engine in ("native", "reasoner"):
        game = gamelore.load(rules + CHANGING[bound], engine=engine)
        assert not game.is_bounded
        position = game.start()
        for _ in range(3):
            assert position.legal == {"r": ["up"]}
            position = position.play("up")
        assert (position.facts, position.is_terminal, position.goals) == ({"(n 3)"}, True, {"r": 70})
    codes = [finding.code for finding in gamelore.check(rules + CHANGING[bound], play=True, matches=3).findings]
    assert set(codes) == {"bounds-depend-on-state"}
