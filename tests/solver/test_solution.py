from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

import numpy as np
import pytest

import gamelore
from gamelore import GameloreError
from gamelore.analysis.symmetry import Symmetries, symmetries
from gamelore.players import position_graph
from gamelore.solver import retrograde, statespace
from gamelore.solver import solution as solving
from gamelore.solver.retrograde import OPEN, values
from gamelore.solver.solution import ENDLESS, Solution, solve
from gamelore.solver.statespace import Canonical, TurnGame, expand
from walks import Plain, copied, drawn_walk

GIB = 1 << 30


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game that is too large is refused as soon as that is known."""
    monkeypatch.setattr(statespace, "SECONDS", 0.0)


NOT_ZERO_SUM = """
(role white) (role black)
(init (at start))
(legal white left) (legal white right) (legal black noop)
(<= (next (at one)) (does white left))
(<= (next (at two)) (does white right))
(<= terminal (not (true (at start))))
(goal white 100)
(<= (goal black 0) (true (at one)))
(<= (goal black 50) (true (at two)))
"""

ODD = """
(role white) (role black)
(init (at start))
(<= (legal white stay) (true (at start)))
(<= (legal white leave) (true (at start)))
(legal black noop)
(<= (next (at start)) (does white stay))
(<= (next (at end)) (does white leave))
(<= terminal (true (at end)))
(goal white 0) (goal black 1)
"""


# two counters that end a match after four plies, and that a symmetry exchanges
PHASES = "(suc 0 1) (suc 1 2) (suc 2 3) (suc 3 4) (suc 4 0)" + "".join(
    f"""
    (init (phase {name} 0))
    (<= (next (phase {name} ?j)) (true (phase {name} ?i)) (suc ?i ?j))
    (<= terminal (true (phase {name} 4)))
    (<= (goal ?p 50) (role ?p) (true (phase {name} 4)) (true (at ?n)) (inner ?n))
    """
    for name in ("one", "other")
)

# white moves 190 times, by the only move that it has
CORRIDOR = """
    (role white) (role black) (init (at 0))
    (legal white on) (legal black noop)
    (<= (next (at ?j)) (true (at ?i)) (succ ?i ?j))
    (<= terminal (true (at 190)))
    (goal white 100) (goal black 0)
    """ + " ".join(f"(succ {i} {i + 1})" for i in range(190))

# both choose in turn what 0 or 1 to write; after twelve ones, and there only, both at once
LATE = (
    """
    (role white) (role black) (init (at 0)) (digit 0) (digit 1)
    (<= (legal ?p (write ?d)) (true (at ?i)) (turn ?i ?p) (digit ?d))
    (<= (legal ?p noop) (role ?p) (true (at ?i)) (turn ?i ?q) (distinct ?p ?q))
    (<= (legal ?p (write ?d)) (role ?p) (true (at 12)) (digit ?d))
    (<= (next (written ?i 1)) (true (at ?i)) (does ?p (write 1)))
    (<= (next (written ?i 1)) (true (written ?i 1)))
    (<= (next (at ?j)) (true (at ?i)) (succ ?i ?j))
    (<= terminal (true (at 12)) (not ones))
    (goal white 50) (goal black 50)
    (<= ones """
    + " ".join(f"(true (written {i} 1))" for i in range(12))
    + ") (turn 12 nobody) "
    + " ".join(f"(succ {i} {i + 1}) (turn {i} {('white', 'black')[i % 2]})" for i in range(12))
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test sees the solutions of another one."""
    monkeypatch.setattr(solving, "folder", lambda: tmp_path / "compiled")
    monkeypatch.setattr(solving, "_in_use", WeakValueDictionary())
    return tmp_path / "solved"


def compare(game: gamelore.Game, solution: Solution, middle: int = 50) -> None:
    """Every position's value and distance against plain Python."""
    plain = Plain.of(game.start())
    values = plain.values(middle)
    distances = plain.distances(values, middle)
    states = np.array([position.state for position in plain.positions.values()])
    goals, found = solution.look_up(states)
    assert dict(zip(values, goals[:, 0].tolist(), strict=True)) == values
    assert dict(zip(values, found.tolist(), strict=True)) == {facts: distances[facts] for facts in values}
    assert (goals.sum(axis=1) == 2 * middle).all()
    assert solution.num_positions == len(values)


@pytest.mark.parametrize("seed", range(12))
def test_walks_with_cycles_and_several_goals_agree_with_plain_python(seed: int) -> None:
    game = gamelore.load(drawn_walk(seed).text)
    compare(game, solve(game))


@pytest.mark.parametrize("seed", range(12))
def test_symmetric_walks_agree_with_plain_python(seed: int) -> None:
    game = gamelore.load(copied(drawn_walk(seed, nodes=5, leaves=2), 2 + seed % 2).text)
    solution = solve(game)
    assert solution.num_classes < solution.num_positions
    compare(game, solution)


def test_walks_have_all_kinds_of_values() -> None:
    found = [solve(gamelore.load(drawn_walk(seed).text)) for seed in range(12)]
    values = np.concatenate([solution.goals for solution in found])
    distances = np.concatenate([solution.distances for solution in found])
    assert set(values.tolist()) == {0, 30, 50, 80, 100}
    assert distances.max() > 3
    assert ENDLESS in distances


@pytest.mark.parametrize("seed", [2, 5])
def test_the_reasoner_comes_to_the_same(seed: int) -> None:
    text = drawn_walk(seed, nodes=7, leaves=3).text
    game = gamelore.load(text, engine="reasoner")
    solution = solve(game)
    compare(game, solution)
    assert solution.values == solve(gamelore.load(text)).values


@pytest.mark.parametrize("name", ["tictactoe", "losetictactoe"])
def test_tictactoe_whole_with_and_without_symmetry(load: Callable[..., gamelore.Game], name: str) -> None:
    game = load(name)
    folded, plain = solve(game), solve(game, symmetry=False)
    assert folded.values == plain.values == (50, 50)
    assert (folded.num_positions, folded.num_classes) == (5478, 765)
    assert (plain.num_positions, plain.num_classes) == (5478, 5478)
    for kind in zip(folded.look_up(plain.states), plain.look_up(plain.states), strict=True):
        assert (kind[0] == kind[1]).all()


def test_tictactoe_agrees_with_plain_python(load: Callable[..., gamelore.Game]) -> None:
    compare(load("tictactoe"), solve(load("tictactoe")))


@pytest.mark.parametrize(
    ("name", "values", "distance", "positions"),
    [
        ("othello4", (0, 100), 12, 62_789),
        ("capturego3", (100, 0), 7, 5_476),
        ("capturego3_suicide", (100, 0), 7, 5_752),
        ("pegsolitaire", (100,), 13, 3_016),
        ("connect3", (100, 0), 9, 4_176_536),
    ],
)
def test_known_values(
    load: Callable[..., gamelore.Game], name: str, values: tuple[int, ...], distance: int, positions: int
) -> None:
    solution = solve(load(name))
    assert (solution.values, solution.distance, solution.num_positions) == (values, distance, positions)


def test_othello_by_discs_is_lost_by_3_to_11(load: Callable[..., gamelore.Game]) -> None:
    """As is known of 4x4: values of the same positions with other goals, the difference of discs at the end."""
    game = load("othello4")
    turns = TurnGame(game, Canonical(symmetries(game)))
    table, moves = expand(turns, GIB, lambda done, of: None)
    cells = [(x, y) for x in range(1, 5) for y in range(1, 5)]
    discs = [
        sum(game.holds(table.states, f"(cell {x} {y} {colour})").astype(np.int16) for x, y in cells)
        for colour in ("black", "white")
    ]
    over = moves.ends != OPEN
    moves.ends[over] = (50 + discs[0] - discs[1])[over]
    goals, _ = values(moves, 0, lambda done, of: None)
    assert goals[0] - 50 == 3 - 11


@pytest.mark.parametrize("removal", ["any", "standard"])
@pytest.mark.parametrize("flying", ["no", "yes"])
def test_five_mens_morris_is_a_draw(flying: str, removal: str) -> None:
    solution = solve(gamelore.load(f"fivemensmorris:flying={flying},removal={removal}"), cache=False)
    assert (solution.values, solution.distance) == ((50, 50), ENDLESS)
    assert solution.left_out == tuple(f"(step {i})" for i in range(101))
    assert (
        solution.num_positions
        == {
            ("no", "any"): 17_850_905,
            ("yes", "any"): 17_852_969,
            ("no", "standard"): 17_844_721,
            ("yes", "standard"): 17_846_785,
        }[flying, removal]
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_counter_that_ends_in_a_draw_is_left_out(seed: int) -> None:
    walk = drawn_walk(seed)
    with_counter, without = gamelore.load(walk.counted(40)), gamelore.load(walk.text)
    solution = solve(with_counter)
    assert solution.left_out == tuple(f"(step {i})" for i in range(41))
    assert solution.num_positions == solve(without).num_positions
    for seen in Plain.of(without.start()).positions.values():
        late = with_counter.state([*seen.facts, "(step 39)"])
        assert [one.tolist() for one in solution.look_up(late[None])] == [
            one.tolist() for one in solve(without).look_up(seen.state[None])
        ]


def test_a_counter_is_left_out_where_a_symmetry_exchanges_it_with_another() -> None:
    walk = drawn_walk(2, nodes=6, leaves=2)
    game = gamelore.load(walk.text + PHASES + " ".join(f"(inner n{n})" for n in walk.owner))
    assert symmetries(game).num > 1
    folded, plain = solve(game), solve(game, symmetry=False)
    assert len(folded.left_out) == len(plain.left_out) == 10  # both, as one counter
    assert folded.num_positions == plain.num_positions
    for kind in zip(folded.look_up(plain.states), plain.look_up(plain.states), strict=True):
        assert (kind[0] == kind[1]).all()


FULL = """
    (role a) (role b) (cell p) (cell q) (cell r) (init (turn a)) (init (step 1)) (succ 1 2) (succ 2 3) (succ 3 4)
    (<= (init (holds ?x none)) (cell ?x)) (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
    (<= (legal ?r (mark ?x)) (true (turn ?r)) (true (holds ?x none)))
    (<= (legal ?r wait) (role ?r) (not (true (turn ?r))))
    (<= (next (holds ?x ?r)) (does ?r (mark ?x))) (<= (next (holds ?x ?r)) (true (holds ?x ?r)) (distinct ?r none))
    (<= (next (holds ?x none)) (true (holds ?x none)) (not (marked ?x))) (<= (marked ?x) (does ?r (mark ?x)))
    (<= (next (turn a)) (true (turn b))) (<= (next (turn b)) (true (turn a)))
    (<= open (true (holds ?x none))) (<= (won ?r) (role ?r) (true (holds p ?r)) (true (holds q ?r)))
    (<= over (won ?r)) (<= terminal over)
    (<= (goal ?r 100) (won ?r)) (<= (goal ?r 0) (won ?o) (role ?r) (distinct ?r ?o))
"""
DRAW = "(<= (goal ?r 50) (role ?r) (not over)"


@pytest.mark.parametrize(
    "end",
    [
        f"(<= terminal (true (step 4))) {DRAW})",  # the counter is the only end of a full board
        f"(<= terminal (true (step 4))) {DRAW} (not open))",
        f"(<= terminal (true (step 4))) (<= terminal (not open)) {DRAW} (not open))",
    ],
)
def test_positions_that_the_counter_keeps_out_of_reach_are_no_faults(end: str) -> None:
    solution = solve(gamelore.load(FULL + end), cache=False)
    assert (solution.values, solution.num_positions) == ((50, 50), 13)


def test_a_win_that_comes_after_the_end_of_the_counter_has_its_distance() -> None:
    """a needs four steps, which are seven plies; the match ends after four plies as a draw."""
    sheet = """
        (role a) (role b) (init (at 0)) (init (turn a)) (init (step 1))
        (succ 0 1) (succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5) (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
        (<= (legal ?r walk) (true (turn ?r))) (<= (legal ?r rest) (true (turn ?r)))
        (<= (legal ?r wait) (role ?r) (not (true (turn ?r))))
        (<= (next (at ?n)) (true (at ?m)) (succ ?m ?n) (does a walk))
        (<= (next (at ?n)) (true (at ?n)) (not (does a walk)))
        (<= (next (turn a)) (true (turn b))) (<= (next (turn b)) (true (turn a)))
        (<= terminal (true (at 4))) (<= terminal (true (step 5)))
        (<= (goal a 100) (true (at 4))) (<= (goal b 0) (true (at 4)))
        (<= (goal ?r 50) (role ?r) (not (true (at 4))))
    """
    soon = solve(gamelore.load(sheet), cache=False)
    assert (soon.values, soon.distance, len(soon.left_out)) == ((100, 0), 7, 5)
    longer = sheet.replace("(true (step 5))", "(true (step 9))") + " ".join(f"(succ {i} {i + 1})" for i in range(5, 9))
    late = solve(gamelore.load(longer), cache=False)
    assert (late.values, late.distance, len(late.left_out)) == ((100, 0), 7, 9)


def test_a_counter_that_ends_in_a_win_is_kept() -> None:
    game = gamelore.load(drawn_walk(3).counted(9, (100, 0)))
    solution = solve(game)
    assert solution.left_out == ()
    compare(game, solution)


def test_one_role_gets_the_best_goal_that_can_be_reached() -> None:
    sheet = """
    (role walker) (init (at a)) (arrow a a) (arrow a b) (arrow b c) (arrow a d) (arrow a e) (arrow e e) (arrow c f)
    (<= (legal walker (go ?m)) (true (at ?n)) (arrow ?n ?m))
    (<= (next (at ?m)) (does walker (go ?m)))
    (leaf d 30) (leaf f 80)
    (<= terminal (true (at ?n)) (leaf ?n ?v))
    (<= (goal walker ?v) (true (at ?n)) (leaf ?n ?v))
    """
    game = gamelore.load(sheet)
    solution = solve(game)
    states = np.array([game.state([f"(at {node})"]) for node in "abcdef"])
    goals, distances = solution.look_up(states)
    assert goals[:, 0].tolist() == [80, 80, 80, 30, 0, 80]
    assert distances.tolist() == [3, 2, 1, 0, ENDLESS, 0]


def test_moves_without_a_choice_and_a_match_that_is_over_at_once() -> None:
    solution = solve(gamelore.load(CORRIDOR))
    assert (solution.values, solution.distance, solution.num_positions) == ((100, 0), 190, 191)
    over = "(role a) (role b) (init over) (<= terminal (true over)) (legal a x) (legal b x) (goal a 70) (goal b 30)"
    solution = solve(gamelore.load(over))
    assert (solution.values, solution.distance, solution.num_positions) == ((70, 30), 0, 1)


def test_a_group_too_large_for_tables_is_cut_down(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statespace, "_TABLES", 4 * 8 * 256 * 8)  # of four elements, for states of one word
    solution = solve(load("tictactoe"))
    assert 1 < solution.canonical.symmetries.num <= 4
    assert 765 < solution.num_classes < solution.num_positions == 5478
    assert solution.values == (50, 50)


def never(stage: str, done: int, of: int) -> None:
    raise AssertionError("work has begun")


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ("tictactoe3p", "one or two roles"),
        ("goofspiel", "one role at a time"),
        (NOT_ZERO_SUM, "add up to the same"),
        ("connectfour", "4 GiB"),
    ],
)
def test_what_cannot_be_solved_is_refused_before_any_long_work(
    load: Callable[..., gamelore.Game], sheet: str, message: str
) -> None:
    with pytest.raises(GameloreError, match=message):
        solve(load(sheet), progress=never, patience=0)  # else 20 s go to a better estimate


def test_moves_at_the_same_time_are_found_late(folder: Path) -> None:
    with pytest.raises(GameloreError, match="one role at a time"):
        solve(gamelore.load(LATE))
    assert not folder.exists()


def test_the_budget_is_held_while_positions_are_found(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(solving, "fewest_positions", lambda turns, enough, patience: 0)
    with pytest.raises(GameloreError, match=r"othello4, which has at least .* positions"):
        solve(load("othello4"), memory=1 << 20)
    assert not folder.exists()
    assert solve(load("othello4"), memory=1 << 24).values == (0, 100)


def test_the_reasoner_has_a_budget_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statespace, "MOST_ON_THE_REASONER", 5)
    with pytest.raises(GameloreError, match=r"at most 5 positions .* the engine reasoner was chosen"):
        solve(gamelore.load(drawn_walk(2).text, engine="reasoner"))


def test_a_position_without_moves_is_an_error(load: Callable[..., gamelore.Game]) -> None:
    with pytest.raises(GameloreError, match="got none in unnamed"):
        solve(load("walk"))


def test_a_match_without_end_needs_a_half() -> None:
    with pytest.raises(GameloreError, match="even sum"):
        solve(gamelore.load(ODD))


def test_states_out_of_reach_are_an_error(load: Callable[..., gamelore.Game]) -> None:
    game = load("tictactoe")
    state = game.state(["(cell 1 1 x)", "(control xplayer)"])
    with pytest.raises(GameloreError, match="are reachable in the game"):
        solve(game).look_up(state[None])


@pytest.mark.parametrize("name", ["tictactoe", "othello4", "capturego3", "pegsolitaire"])
@pytest.mark.parametrize("symmetry", [True, False])
def test_random_matches_tell_no_more_positions_than_there_are(
    load: Callable[..., gamelore.Game], name: str, symmetry: bool
) -> None:
    game = load(name)
    solution = solve(game, symmetry=symmetry)
    turns = TurnGame(game, solution.canonical)
    for enough in (100, 10**6):
        assert 10 < statespace.fewest_positions(turns, enough) <= solution.num_classes


def test_repeats_are_counted() -> None:
    assert statespace._num_repeats(np.array([5, 1, 2, 5, 2, 5, 5], np.uint64)) == 1 + 3
    assert statespace._num_repeats(np.zeros(0, np.uint64)) == 0


@pytest.mark.parametrize("num_positions", [2_000, 100_000, 3_000_000])
def test_a_bound_from_repeats_is_true_and_tells_much(num_positions: int) -> None:
    """Of uniform draws, for which it is closest, and of others, in a thousand experiments."""
    draw = np.random.default_rng(1)
    bounds = []
    for power in (1, 3):
        for _ in range(500):
            drawn = (num_positions * draw.random(4096) ** power).astype(np.uint64)
            bounds.append(statespace._fewest(4096, statespace._num_repeats(drawn)))
    assert max(bounds) <= num_positions
    assert np.median(bounds[:500]) > min(num_positions / 2.5, 4096**2 / 2 / 25)
    assert np.median(bounds[500:]) < np.median(bounds[:500])


def test_no_repeat_among_few_draws_bounds_by_the_birthday_problem() -> None:
    """The smallest number of days for which so many without a repeat are likelier than `DOUBT`, by the product."""
    bound = statespace._fewest(1000, 0)
    for num, likely in ((bound - 100, False), (int(bound * 1.01), True)):
        assert (np.exp(np.log1p(-np.arange(1000) / num).sum()) > statespace.DOUBT) == likely


def test_a_game_far_out_of_reach_is_told_so(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rounds of random matches are played is fixed here; else it depends on the speed of the machine."""
    monkeypatch.setattr(statespace, "NUM_MATCHES", statespace.NUM_MATCHES[:6])
    with pytest.raises(GameloreError) as raised:
        solve(load("connectfour"), progress=never, patience=math.inf)
    message = str(raised.value)
    found = re.search(r"which has at least (\d\.\d) \* 10\^(\d+) positions .* with 99.9 % confidence", message)
    assert found
    assert 2e9 < float(found[1]) * 10 ** int(found[2]) < 4.6e12
    assert "far out of reach" in message
    assert "allow more memory" not in message


@pytest.mark.parametrize(
    ("positions", "machine", "told"),
    [
        (10**8, 1 << 40, "allow more memory"),
        (10**8, 8 << 30, "this is out of reach, because this machine can hold at most 95,443,717 positions"),
        (10**8, 1 << 30, "this is far out of reach, because this machine can hold at most 11,930,464 positions"),
        (
            10**10,
            1 << 50,
            r"has at least 1.0 \* 10\^10 positions .* far out of reach.* can hold at most 2.1 \* "
            r"10\^9 positions",
        ),
        (10**8, math.inf, "allow more memory"),
    ],
)
def test_more_memory_is_advised_only_where_there_may_be_enough(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch, positions: int, machine: float, told: str
) -> None:
    monkeypatch.setattr(statespace, "machine_memory", lambda: machine)
    game = load("connectfour")
    turns = TurnGame(game, Canonical(Symmetries.trivial(game)))
    with pytest.raises(GameloreError, match=told):
        statespace.refuse_size(turns, 1 << 30, positions, positions)


def test_a_second_call_reads_the_file(load: Callable[..., gamelore.Game], folder: Path) -> None:
    first = solve(load("losetictactoe"))
    assert len(list(folder.iterdir())) == 1
    game = gamelore.load("losetictactoe")
    second = solve(game, progress=never)
    assert (second.num_positions, second.num_moves, second.seconds) == (5478, first.num_moves, first.seconds)
    for name in ("states", "slots", "goals", "distances"):
        assert (getattr(first, name) == getattr(second, name)).all()
    assert second.look_up(first.states)[0].tolist() == first.look_up(first.states)[0].tolist()
    assert solve(game, symmetry=False).num_classes == 5478


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_solution_that_is_held_is_not_worked_out_again(engine: Literal["native", "reasoner"]) -> None:
    game = gamelore.load(drawn_walk(2, nodes=7, leaves=3).text, engine=engine)
    held = solve(game)
    assert solve(game, progress=never) is held
    assert solve(game, symmetry=False) is not held
    assert solve(game, cache=False) is not held


def test_a_counter_left_out_stays_out_in_the_file() -> None:
    game = gamelore.load(drawn_walk(1).counted(12))
    first = solve(game).left_out
    assert first == solve(game, progress=never).left_out == tuple(f"(step {i})" for i in range(13))


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:9], lambda data: b"", lambda data: data[:-70] + b"?" + data[-69:]],
)
def test_a_damaged_file_is_solved_again(
    load: Callable[..., gamelore.Game], folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    game = load("tictactoe")
    solve(game)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    told: list[str] = []
    assert solve(game, progress=lambda stage, done, of: told.append(stage)).values == (50, 50)
    assert told
    assert solve(game, progress=never).values == (50, 50)


def test_no_cache_neither_reads_nor_writes(load: Callable[..., gamelore.Game], folder: Path) -> None:
    solve(load("tictactoe"), cache=False)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_cache(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(solving, "folder", lambda: tmp_path / "file" / "compiled")
    assert solve(load("tictactoe")).values == (50, 50)


def test_an_interrupted_call_leaves_nothing(load: Callable[..., gamelore.Game], folder: Path) -> None:
    def interrupt(stage: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(load("tictactoe"), progress=interrupt)
    assert not folder.exists()


def test_ctrl_c_while_canonical_states_are_worked_out(load: Callable[..., gamelore.Game]) -> None:
    game = load("tictactoe")
    folded = Canonical(symmetries(game))
    states = np.repeat(game.initial[None], 100_000, axis=0)

    def go_on() -> None:
        while True:
            folded.of(states)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        with pytest.raises(KeyboardInterrupt):
            go_on()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_progress_tells_both_stages(load: Callable[..., gamelore.Game]) -> None:
    told: list[tuple[str, int, int]] = []
    solve(load("tictactoe"), progress=lambda *step: told.append(step))
    assert told[0][0] == "positions"
    assert max(of for stage, _, of in told if stage == "positions") == 765
    assert [stage for stage, _, _ in told] == sorted(stage for stage, _, _ in told)
    assert all(0 < done <= of for stage, done, of in told)


def test_progress_is_told_within_the_computation_of_values(
    load: Callable[..., gamelore.Game], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a player that solves a game in slices of time can pause there."""
    told: list[list[tuple[str, int, int]]] = [[], []]
    solutions = []
    for at_once, steps in zip((1 << 16, 50), told, strict=True):
        monkeypatch.setattr(retrograde, "_AT_ONCE", at_once)
        solutions.append(solve(load("tictactoe"), cache=False, progress=partial(_note, steps)))
    num_parts = sum(stage == "positions" for stage, _, _ in told[0])
    few, many = ([step for step in steps if step[0] == "values"] for steps in told)
    assert len(few) == 2 * num_parts + 2, "two passes over the moves, and two values"
    assert len(many) > len(few) + 8
    assert few == sorted(few)
    assert many == sorted(many)
    assert few[-1] == many[-1]
    assert np.array_equal(solutions[0].goals, solutions[1].goals)
    assert np.array_equal(solutions[0].distances, solutions[1].distances)


def _note(steps: list[tuple[str, int, int]], stage: str, done: int, of: int) -> None:
    steps.append((stage, done, of))


def test_other_threads_run_while_the_table_of_positions_is_filled() -> None:
    for filling in (position_graph._intern, position_graph._refill):
        assert filling.targetoptions["nogil"]  # type: ignore[attr-defined]


def test_the_time_of_a_solution_counts_no_imports() -> None:
    """They took 0.36 of 0.38 seconds in tictactoe."""
    script = """
import sys, time
imported, clock = [], time.process_time
time.process_time = lambda: imported.append(set(sys.modules)) or clock()
from gamelore import load
from gamelore.solver.solution import solve
solve(load("tictactoe"), cache=False)
print(sorted(name for name in imported[-1] - imported[0] if name.startswith(("scipy", "numpy", "gamelore"))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
