"""Nimbers: sums of heaps by hand and against the exact solver, refused games, and the player that uses them."""

from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.catalogue import play_matches
from gamelore.solver import nimbers
from gamelore.solver.nimbers import ImpartialSum, impartial_sum, smallest_missing
from gamelore.solver.solution import solve

TURNS = """
(role white) (role black) (init (turn white))
(<= (next (turn white)) (true (turn black))) (<= (next (turn black)) (true (turn white)))
(<= (legal ?r wait) (role ?r) (not (true (turn ?r))))
(<= (goal ?r 0) (role ?r) (true (turn ?r))) (<= (goal ?r 100) (role ?r) (not (true (turn ?r))))
(<= (less ?m ?n) (after ?m ?n)) (<= (less ?m ?n) (after ?k ?n) (less ?m ?k))
""" + "".join(f"(after {i} {i + 1})" for i in range(6))  # who cannot move loses


def heaps(*sizes: int) -> str:
    """Heaps from which any number of stones may be taken, from ?m to ?n."""
    names = "abcde"[: len(sizes)]
    return (
        TURNS
        + "".join(f"(init (heap {name} {size}))" for name, size in zip(names, sizes, strict=True))
        + f"""
(<= (legal ?r (leave ?h ?n)) (true (turn ?r)) (true (heap ?h ?m)) (less ?n ?m))
(<= (next (heap ?h ?n)) (does ?r (leave ?h ?n)))
(<= (next (heap ?h ?n)) (true (heap ?h ?n)) (does ?r (leave ?g ?m)) (distinct ?g ?h))
(<= terminal {"".join(f"(true (heap {name} 0))" for name in names)})
"""
    )


def misere(sheet: str) -> str:
    """Who cannot move wins."""
    return sheet.replace(
        "(<= (goal ?r 0) (role ?r) (true (turn ?r))) (<= (goal ?r 100) (role ?r) (not (true (turn ?r))))",
        "(<= (goal ?r 100) (role ?r) (true (turn ?r))) (<= (goal ?r 0) (role ?r) (not (true (turn ?r))))",
    )


def few(*sizes: int) -> str:
    """Heaps from which one stone or two may be taken."""
    return heaps(*sizes).replace("(less ?n ?m)", "(may ?n ?m)") + (
        "(<= (may ?n ?m) (after ?n ?m)) (<= (may ?n ?m) (after ?n ?k) (after ?k ?m))"
    )


def sum_of(game: Game) -> ImpartialSum:
    theory = impartial_sum(game)
    assert theory is not None
    return theory


def nimbers_by_size(game: Game) -> list[dict[str, int]]:
    """For each part the nimber of each fact that is alone in a position of it."""
    return [
        {next(iter(game.facts(np.frombuffer(position, np.uint64)))): number for position, number in own.items()}
        for own in sum_of(game).nimbers
    ]


def test_smallest_missing_number() -> None:
    assert [smallest_missing(values) for values in ([], [1, 2], [0, 1, 3], [0, 0, 1])] == [0, 0, 2, 2]


def test_a_heap_of_nim_has_its_size_as_nimber() -> None:
    game = load(heaps(3, 2))
    assert nimbers_by_size(game) == [{f"(heap a {n})": n for n in range(4)}, {f"(heap b {n})": n for n in range(3)}]
    assert not sum_of(game).is_misere


def test_a_heap_of_which_one_or_two_stones_are_taken_has_its_size_modulo_3() -> None:
    (first, second) = nimbers_by_size(load(few(6, 4)))
    assert first == {f"(heap a {n})": n % 3 for n in range(7)}
    assert second == {f"(heap b {n})": n % 3 for n in range(5)}


def test_winning_moves_by_hand() -> None:
    """1, 4, 6: exclusive or 3; the only winning moves leave 5 of 6 (101) or 7 of 4, or 2 of 1, which are no moves."""
    game = load(heaps(1, 4, 6))
    (index,) = sum_of(game).winning(game.initial, 0)
    assert game.start().legal["white"][index] == "(leave c 5)"


SHEETS = {
    "nim": heaps(1, 3, 4),
    "misère nim": misere(heaps(2, 3, 3)),
    "misère ones": misere(heaps(1, 1, 2)),
    "one or two": few(5, 4),
    "one heap": heaps(5, 1),
}


@pytest.mark.parametrize("name", SHEETS)
def test_nimbers_agree_with_the_solver_everywhere(name: str) -> None:
    game = load(SHEETS[name])
    theory, solution = sum_of(game), solve(game)
    seen, todo = set(), [game.start()]
    while todo:
        position = todo.pop()
        key = position.state.tobytes()
        if key in seen:
            continue
        seen.add(key)
        mover = int(not game.holds(position.state[None], "(turn white)")[0])
        value = solution.look_up(position.state[None])[0][0]
        assert theory.mover_loses(position.state) == (value[mover] == 0)
        if not position.is_terminal:
            moves = position.legal[game.roles[mover]]
            other = "wait"
            after = [position.play([move, other] if mover == 0 else [other, move]) for move in moves]
            values = [solution.look_up(own.state[None])[0][0][mover] for own in after]
            assert theory.winning(position.state, mover) == [i for i, goal in enumerate(values) if goal == 100]
            todo += after
    assert len(seen) > 10


REFUSED = {
    "misère play with options that nim does not have": misere(few(5, 4)),
    "white takes from heap a only": heaps(3, 2).replace("(less ?n ?m))", "(less ?n ?m) (allowed ?r ?h))")
    + "(allowed white a) (allowed black a) (allowed black b)",
    "an end by the count": heaps(3, 2)
    + "(init (count 0)) (<= (next (count ?n)) (true (count ?m)) (after ?m ?n)) (<= terminal (true (count 4)))",
    "stones may be put back": heaps(3, 2).replace("(less ?n ?m))", "(distinct ?n ?m) (less ?n 4))") + "(less 0 0)",
    "an end with stones left": heaps(3, 2).replace("(true (heap b 0))", ""),
    "the goal counts stones": heaps(3, 2).replace(
        "(<= (goal ?r 0) (role ?r)", "(<= (goal ?r 0) (role ?r) (true (heap a 0))"
    ),
    "a pass": heaps(3, 2)
    + "(<= (legal ?r pass) (true (turn ?r))) (<= (next (heap ?h ?n)) (true (heap ?h ?n)) (does ?r pass))",
    "one role": "(role robot) (legal robot wait) (init on) (<= terminal (true on)) (goal robot 100)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_games_are_refused(name: str) -> None:
    assert impartial_sum(load(REFUSED[name])) is None


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "goofspiel", "pegsolitaire"])
def test_games_that_are_no_sums_are_refused(name: str) -> None:
    assert impartial_sum(load(name)) is None


def test_nim_of_the_public_repository(shared: Path) -> None:
    """Nim1 has heaps of 1, 5, 4, 2: exclusive or 2. Nim4, where the last stone loses, has 12, 12, 20, 20: 0."""
    first, second = (load(shared / "games" / f"nim{number}.kif") for number in (1, 4))
    moves = first.start().legal["player1"]
    assert [moves[index] for index in sum_of(first).winning(first.initial, 0)] == ["(reduce d 0)"]
    assert sum_of(second).is_misere
    assert sum_of(second).mover_loses(second.initial)


def test_the_player_wins_a_won_sum_without_a_search() -> None:
    game = load(misere(heaps(1, 5, 6, 3)))
    assert not sum_of(game).mover_loses(game.initial)
    players = ["gamelore:simulations=1", "gamelore:simulations=500,nimbers=no"]
    assert {record.goals for record in play_matches(game, players, 5)} == {(100, 0)}


TOKENS = """
(<= (legal ?r (take ?p ?x)) (true (turn ?r)) (true (on ?p ?x)))
(<= (next (on ?p ?x)) (true (on ?p ?x)) (not (taken ?p ?x)))
(<= (taken ?p ?x) (does ?r (take ?p ?x)))
(<= some (true (on ?p ?x))) (<= terminal (not some))
"""
"""Any token may be taken; the tokens of a part are tied."""


def tokens(num_parts: int, each: int) -> str:
    """Return a sum of parts with 2^each positions; a token protects itself from nothing, but all are read together."""
    sheet = TURNS + TOKENS
    for part in range(num_parts):
        sheet += "".join(f"(init (on p{part} {token}))" for token in range(each))
        sheet += f"(<= (legal ?r (all p{part})) (true (turn ?r)) (full p{part}))"
        sheet += f"(<= (full p{part}) " + "".join(f"(true (on p{part} {token}))" for token in range(each)) + ")"
    return sheet + "(<= (taken ?p ?x) (does ?r (all ?p)) (true (on ?p ?x)))"


def test_large_sums_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is limited for all parts together, and done for many positions at once."""
    game, calls = load(tokens(6, 6)), list[int]()
    plain = sum_of(game)
    assert [len(own) for own in plain.nimbers] == [64] * 6
    following = game.next

    def counted(states: np.ndarray, joint: np.ndarray) -> np.ndarray:
        calls.append(len(states))
        return following(states, joint)

    monkeypatch.setattr(game, "next", counted)
    sum_of(game)
    assert len(calls) < 6 * 64
    needed = sum(calls)
    calls.clear()
    monkeypatch.setattr(nimbers, "MOST_MOVES", needed // 2)
    assert impartial_sum(game) is None
    assert sum(calls) < 0.75 * needed, "the parts are found, and their first positions"
    monkeypatch.setattr(nimbers, "MOST_MOVES", needed)
    assert sum_of(game).nimbers == plain.nimbers


class Counted(dict[bytes, int]):
    """Numbers that count how often they are looked up."""

    times = 0

    def __getitem__(self, key: bytes) -> int:
        self.times += 1
        return super().__getitem__(key)


def test_parts_that_a_move_leaves_alone_are_looked_up_once() -> None:
    game = load(heaps(1, 4, 6))
    plain = sum_of(game)
    theory = ImpartialSum(plain.whole, tuple(map(Counted, plain.nimbers)), plain.is_misere)
    assert theory.winning(game.initial, 0) == plain.winning(game.initial, 0)
    assert [own.times for own in theory.nimbers] == [1 + 1, 1 + 4, 1 + 6]  # type: ignore[attr-defined]
