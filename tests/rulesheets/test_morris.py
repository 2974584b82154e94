"""Five men's morris, position by position, with both engines."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest

import gamelore
from gamelore.analysis.perft import joint_batches
from gamelore.game.game import Game, Position

POINTS = range(1, 17)
RINGS = [(1, 2, 3, 10, 16, 15, 14, 7), (4, 5, 6, 9, 13, 12, 11, 8)]
SPOKES = [(2, 5), (7, 8), (9, 10), (12, 15)]
EDGES = {frozenset(pair) for ring in RINGS for pair in zip(ring, (*ring[1:], ring[0]), strict=True)}
EDGES |= set(map(frozenset, SPOKES))
MILLS = {frozenset(mill) for mill in [(1, 2, 3), (3, 10, 16), (14, 15, 16), (1, 7, 14)]}
MILLS |= {frozenset(mill) for mill in [(4, 5, 6), (6, 9, 13), (11, 12, 13), (4, 8, 11)]}
FLYING, STANDARD = "flying=yes", "removal=standard"
VARIANTS = ["", FLYING, STANDARD, f"{FLYING},{STANDARD}"]


@cache
def morris(options: str = "") -> Game:
    return gamelore.load(f"fivemensmorris:{options}", engine="native")


def position(
    black: Iterable[int],
    white: Iterable[int],
    control: str = "black",
    hands: tuple[int, int] = (0, 0),
    options: str = "",
    step: int = 20,
) -> Position:
    """A position in which these points have pieces; all are placed where both hands are empty."""
    colours = dict.fromkeys(black, "black") | dict.fromkeys(white, "white")
    facts = {f"(cell {point} {colours.get(point, 'b')})" for point in POINTS}
    facts |= {f"(hand {role} {number})" for role, number in zip(("black", "white"), hands, strict=True) if number}
    facts |= {f"(control {control})", f"(stage {'placing' if any(hands) else 'moving'})", f"(step {step})"}
    return morris(options).position(facts)


def moves(here: Position, begin: str = "") -> set[str]:
    """The moves of the player to move that begin so; the other one has to wait."""
    (mover,) = (role for role in here.legal if f"(control {role})" in here.facts)
    (waiting,) = here.legal.keys() - {mover}
    assert here.legal[waiting] == ["noop"]
    return {move for move in here.legal[mover] if move.startswith(begin)}


def play(here: Position, move: str) -> Position:
    joint = (move, "noop") if "(control black)" in here.facts else ("noop", move)
    return here.play(joint)


def on(here: Position, colour: str) -> set[int]:
    return {point for point in POINTS if f"(cell {point} {colour})" in here.facts}


# ---- the board ----


def test_there_are_20_edges() -> None:
    found = set()
    for start, end in permutations(POINTS, 2):
        others = [point for point in POINTS if point not in (start, end)]
        here = position([start, *others[:2]], others[2:5])
        if moves(here, f"(move {start} {end})") | moves(here, f"(move_take {start} {end} "):
            found.add((start, end))
    assert {frozenset(pair) for pair in found} == EDGES
    assert len(found) == 2 * len(EDGES) == 40


def test_there_are_8_mills() -> None:
    found = set()
    for pair in combinations(POINTS, 2):
        others = [point for point in POINTS if point not in pair]
        for white in (others[:2], others[2:4]):
            for move in moves(position(pair, white, hands=(3, 3)), "(place_take"):
                found.add(frozenset([*pair, int(move.split()[1])]))
    assert found == MILLS
    assert len(MILLS) == 8


def test_points_lie_where_the_picture_has_them() -> None:
    """Every line is straight; a mill's middle point lies in the middle."""
    rules = map(str, morris().rulesheet.rules)
    words = [rule.strip("()").split() for rule in rules if rule.startswith("(location ")]
    places = {int(point): np.array([int(x), int(y)]) for _, point, x, y in words}
    assert sorted(places) == list(POINTS)
    assert all((places[a] == places[b]).any() for a, b in EDGES)
    for a, b, c in map(sorted, MILLS):
        assert (places[a] + places[c] == 2 * places[b]).all()


# ---- placing ----


def test_the_start() -> None:
    start = morris().start()
    assert start.facts == position([], [], hands=(5, 5), step=0).facts
    assert moves(start) == {f"(place {point})" for point in POINTS}
    after = play(play(start, "(place 3)"), "(place 16)")
    assert after.facts == position([3], [16], hands=(4, 4), step=2).facts
    assert moves(after) == {f"(place {point})" for point in POINTS if point not in (3, 16)}


def test_a_mill_closed_in_placing_removes_a_piece_in_the_same_move() -> None:
    here = position([1, 2], [5, 9], hands=(3, 3))
    assert moves(here, "(place 3)") == set()
    assert moves(here, "(place_take") == {"(place_take 3 5)", "(place_take 3 9)"}
    assert play(here, "(place_take 3 5)").facts == position([1, 2, 3], [9], "white", (2, 3), step=21).facts


def test_few_pieces_do_not_lose_while_there_are_some_to_place() -> None:
    here = position([1, 2, 3], [9], "white", (2, 3))
    assert not here.is_terminal
    assert here.goals == {"black": 50, "white": 50}


def test_the_last_piece_ends_the_placing() -> None:
    here = play(position([1, 2, 6, 8], [3, 5, 9, 11], hands=(1, 1)), "(place 16)")
    assert here.facts == position([1, 2, 6, 8, 16], [3, 5, 9, 11], "white", (0, 1), step=21).facts
    after = play(here, "(place 14)")
    assert after.facts == position([1, 2, 6, 8, 16], [3, 5, 9, 11, 14], step=22).facts
    assert {move.split()[0] for move in moves(after)} == {"(move"}


def test_a_third_piece_lost_by_the_last_one_placed_loses() -> None:
    """It can happen: at the sixth, eighth and tenth move of the match."""
    here = position([5, 6, 9], [1, 2], "white", (0, 1))
    after = play(here, "(place_take 3 9)")
    assert after.is_terminal
    assert after.goals == {"black": 0, "white": 100}


# ---- moving ----


def test_pieces_move_along_lines_to_empty_points() -> None:
    here = position([2, 7, 13], [3, 8, 11])
    assert moves(here) == {"(move 2 1)", "(move 2 5)", "(move 7 1)", "(move 7 14)", "(move 13 9)", "(move 13 12)"}
    assert play(here, "(move 2 5)").facts == position([5, 7, 13], [3, 8, 11], "white", step=21).facts


def test_a_mill_closed_by_a_move_removes_any_piece() -> None:
    here = position([1, 3, 5], [4, 8, 11, 16])
    taken = {"(move_take 5 2 4)", "(move_take 5 2 8)", "(move_take 5 2 11)", "(move_take 5 2 16)"}
    assert moves(here, "(move 5 2)") == set()
    assert moves(here, "(move_take") == taken
    assert play(here, "(move_take 5 2 8)").facts == position([1, 2, 3], [4, 11, 16], "white", step=21).facts


def test_a_piece_does_not_close_the_mill_that_it_leaves() -> None:
    here = position([1, 2, 3, 8], [4, 5, 9, 12])
    assert moves(here, "(move_take") == set()
    assert "(move 1 7)" in moves(here)
    assert moves(position([1, 2, 8], [4, 5, 9]), "(move_take") == set()  # 2 to 3 leaves 1 and 3


def test_an_opened_mill_can_be_closed_again() -> None:
    here = play(play(position([1, 2, 3, 8], [5, 6, 13, 16]), "(move 1 7)"), "(move 13 12)")
    assert moves(here, "(move_take 7 1 ") == {f"(move_take 7 1 {point})" for point in (5, 6, 12, 16)}


def test_two_mills_at_once_remove_one_piece() -> None:
    here = position([2, 3, 7, 14], [5, 6, 9, 13], hands=(1, 1))
    after = play(here, "(place_take 1 5)")
    assert on(after, "black") == {1, 2, 3, 7, 14}
    assert on(after, "white") == {6, 9, 13}


# ---- the end ----


def test_two_pieces_left_lose() -> None:
    after = play(position([1, 3, 5], [4, 8, 12]), "(move_take 5 2 8)")
    assert after.is_terminal
    assert after.goals == {"black": 100, "white": 0}
    assert after.legal == {"black": [], "white": []}
    assert position([1, 2, 3], [4, 5], "white").goals == {"black": 100, "white": 0}
    assert not position([1, 2, 3], [4, 5, 12], "white").is_terminal


def test_who_cannot_move_loses() -> None:
    here = position([1, 3, 14], [2, 7, 10, 15], "black")
    assert here.is_terminal
    assert here.goals == {"black": 0, "white": 100}
    assert not position([1, 3, 14], [2, 7, 10, 15], "white").is_terminal
    assert not position([1, 3, 14], [2, 7, 10, 12]).is_terminal


def test_the_cap_is_a_draw_but_a_win_at_the_cap_is_a_win() -> None:
    drawn = play(position([1, 3, 5], [4, 8, 12], step=99), "(move 5 6)")
    assert drawn.is_terminal
    assert drawn.goals == {"black": 50, "white": 50}
    won = play(position([1, 3, 5], [4, 8, 12], step=99), "(move_take 5 2 8)")
    assert won.is_terminal
    assert won.goals == {"black": 100, "white": 0}
    assert not play(position([1, 3, 5], [4, 8, 12], step=98), "(move 5 6)").is_terminal


# ---- options ----


@pytest.mark.parametrize("cap", [10, 80, 100, 200])
def test_the_counter_has_no_facts_beyond_the_cap(cap: int) -> None:
    game = morris(f"cap={cap}")
    assert game.circuit is not None
    assert game.circuit.num_facts == 48 + 2 + 2 + 10 + cap + 1
    assert len(one_match(game, seed=cap)) <= cap + 1
    assert game.playouts(1000, seed=1).num_steps <= 1000 * cap


def test_no_cap_no_counter() -> None:
    game = morris("cap=none")
    assert game.circuit is not None
    assert game.circuit.num_facts == 48 + 2 + 2 + 10
    assert not any("step" in fact for fact in game.start().facts)


def test_flying() -> None:
    """With three pieces left and none to place, to any empty point; mills close as ever."""
    here = position([1, 3, 8], [4, 5, 9, 13], options=FLYING)
    empty = set(POINTS) - {1, 3, 8, 4, 5, 9, 13}
    plain = {f"(move {start} {end})" for start in (1, 3, 8) for end in empty}
    closing = {f"(move_take 8 2 {point})" for point in (4, 5, 9, 13)}
    assert moves(here) == plain - {"(move 8 2)"} | closing
    assert play(here, "(move 3 16)").facts == position([1, 8, 16], [4, 5, 9, 13], "white", step=21).facts


def test_who_has_more_pieces_or_some_to_place_does_not_fly() -> None:
    four = position([1, 3, 8, 13], [4, 5, 9], options=FLYING)
    assert moves(four) == moves(position([1, 3, 8, 13], [4, 5, 9]))
    placing = position([1, 3, 8], [4, 5, 9], hands=(2, 2), options=FLYING)
    assert moves(placing, "(move") == set()


def test_who_flies_is_never_without_a_move() -> None:
    assert position([1, 3, 14], [2, 7, 10, 15], options="").is_terminal
    assert not position([1, 3, 14], [2, 7, 10, 15], options=FLYING).is_terminal
    assert position([1, 3, 14, 4], [2, 7, 10, 15, 5], options=FLYING).goals["black"] == 50
    assert position([1, 3], [2, 7, 10, 15], options=FLYING).goals == {"black": 0, "white": 100}


def test_standard_removal_spares_mills() -> None:
    here = position([1, 3, 5], [4, 8, 11, 16], options=STANDARD)
    assert moves(here, "(move_take") == {"(move_take 5 2 16)"}
    placing = position([1, 3], [4, 8, 11, 16], hands=(1, 1), options=STANDARD)
    assert moves(placing, "(place_take") == {"(place_take 2 16)"}


def test_standard_removal_takes_any_where_all_are_in_mills() -> None:
    here = position([1, 3, 5], [4, 8, 11], options=STANDARD)
    assert moves(here, "(move_take") == {f"(move_take 5 2 {point})" for point in (4, 8, 11)}
    both = position([1, 3, 5], [6, 9, 13, 11, 12], options=STANDARD)  # two mills that share point 13
    assert len(moves(both, "(move_take")) == 5


# ---- both engines ----


def one_match(game: Game, seed: int) -> list[Position]:
    """The positions of a random match."""
    rng, here = np.random.default_rng(seed), game.start()
    found = [here]
    while not here.is_terminal:
        here = here.play([rng.choice(here.legal[role]) for role in game.roles])
        found.append(here)
    return found


@pytest.mark.parametrize("options", VARIANTS)
def test_both_engines_agree(options: str) -> None:
    native, reasoner = morris(options), gamelore.load(f"fivemensmorris:{options}", engine="reasoner")
    for here in one_match(native, seed=4)[::3]:
        there = reasoner.position(here.facts)
        assert {role: set(legal) for role, legal in there.legal.items()} == {
            role: set(legal) for role, legal in here.legal.items()
        }
        assert there.is_terminal == here.is_terminal
        assert there.goals == here.goals
        if not here.is_terminal:
            joint = {role: legal[-1] for role, legal in here.legal.items()}
            assert there.play(joint).facts == here.play(joint).facts


@pytest.mark.parametrize("options", VARIANTS)
def test_nobody_is_ever_stuck(options: str) -> None:
    """A mill can always be paid for: nobody is without a piece to remove when one closes."""
    game = morris(options)
    played = game.playouts(20_000, seed=5)
    assert played.num_stuck == 0
    assert set(played.goals[0]) == {0, 50, 100}
    layer = game.initial[None]
    for _ in range(5):
        ((parents, joints),) = joint_batches(game.legal(layer), game.num_roles, most=10**6)
        assert len(np.unique(parents)) == len(layer)
        layer = np.unique(game.next(layer[parents], joints), axis=0)


def test_random_play_draws_as_often_as_the_readings_say() -> None:
    """readings.md, L&E 3: 59.4 % not lost and 40.1 % won at cap 100, 63.5 and 36.2 at cap 80, sides alternating."""
    for cap, draws in ((100, 0.193), (80, 0.273)):
        played = morris(f"cap={cap}").playouts(20_000, seed=6)
        assert played.goals[0][50] / 20_000 == pytest.approx(draws, abs=0.01)
