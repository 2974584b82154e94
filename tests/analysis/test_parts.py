"""Parts of games: by hand in tiny sheets, and against random play of sums."""

from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.analysis.parts import Parts, conjuncts, part_game, parts
from gamelore.game.engines import unpack_bits
from parsing import num_calls

TURNS = """
(role white) (role black) (init (turn white))
(<= (next (turn white)) (true (turn black))) (<= (next (turn black)) (true (turn white)))
(<= (legal ?r wait) (role ?r) (not (true (turn ?r))))
"""
HEAPS = (
    TURNS
    + """
(init (heap a 2)) (init (heap b 1)) (less 0 1) (less 0 2) (less 1 2)
(<= (legal ?r (leave ?h ?n)) (true (turn ?r)) (true (heap ?h ?m)) (less ?n ?m))
(<= (next (heap ?h ?n)) (does ?r (leave ?h ?n)))
(<= (next (heap ?h ?n)) (true (heap ?h ?n)) (does ?r (leave ?g ?m)) (distinct ?g ?h))
(<= terminal (true (heap a 0)) (true (heap b 0)))
(<= (goal ?r 100) (true (turn ?r))) (<= (goal ?r 0) (role ?r) (not (true (turn ?r))))
"""
)
BOTH = """
(role robot) (init (left 0)) (init (right 0)) (next-of 0 1) (next-of 1 2)
(legal robot (do go go)) (legal robot (do go rest)) (legal robot (do rest go)) (legal robot (do rest rest))
(<= (next (left ?m)) (true (left ?n)) (next-of ?n ?m) (does robot (do go ?x)))
(<= (next (left ?n)) (true (left ?n)) (does robot (do rest ?x)))
(<= (next (right ?m)) (true (right ?n)) (next-of ?n ?m) (does robot (do ?x go)))
(<= (next (right ?n)) (true (right ?n)) (does robot (do ?x rest)))
(<= terminal (true (left 2))) (<= (goal robot 100) (true (left 2))) (<= (goal robot 0) (not (true (left 2))))
"""  # the robot moves on both sides at once, and only the left side counts
DOOR = """
(role robot) (init (at home)) (init (door closed))
(<= (legal robot open) (true (door closed)))
(<= (legal robot walk) (true (at home)) (true (door open)))
(<= (next (door open)) (does robot open)) (<= (next (door open)) (true (door open)))
(<= (next (door closed)) (true (door closed)) (not (does robot open)))
(<= (next (at away)) (does robot walk)) (<= (next (at home)) (true (at home)) (not (does robot walk)))
(<= terminal (true (at away))) (<= (goal robot 100) (true (at away))) (<= (goal robot 0) (true (at home)))
"""  # a move is possible only in a state of the door, and changes the robot's place


def facts_of(game: Game, bits: tuple[int, ...]) -> set[str]:
    return {game.fact_text(bit) for bit in bits}


def test_heaps_are_serial_parts_and_the_turn_is_the_clock() -> None:
    game = load(HEAPS)
    whole = parts(game)
    assert whole.kind == "serial"
    assert facts_of(game, whole.clock) == {"(turn white)", "(turn black)"}
    assert {frozenset(facts_of(game, part.facts)) for part in whole.parts} == {
        frozenset(f"(heap a {n})" for n in range(3)),
        frozenset(f"(heap b {n})" for n in range(2)),
    }
    assert whole.num_irrelevant == 0
    assert sorted(len(whole.joint[own]) for own in whole.possible) == [3, 3]


def test_a_move_touches_the_part_that_it_changes() -> None:
    game = load(HEAPS)
    whole = parts(game)
    for part in whole.parts:
        (heap,) = {text[6] for text in facts_of(game, part.facts)}
        for move, actions in enumerate(whole.joint.tolist()):
            texts = {game.move_text(role, action) for role, action in enumerate(actions)}
            assert part.touches[:, move].any() == any(text.startswith(f"(leave {heap}") for text in texts)


def test_sides_that_move_at_once_are_parallel_and_one_is_irrelevant() -> None:
    game = load(BOTH)
    whole = parts(game)
    assert whole.kind == "parallel"
    assert [len(set(part.classes.tolist())) for part in whole.parts] == [2, 2]
    held = unpack_bits(whole.relevant[None], game.circuit.num_facts)[0]
    assert {game.fact_text(int(bit)) for bit in np.flatnonzero(held)} == {f"(left {n})" for n in range(3)}


def test_a_condition_ties_what_it_allows_to_what_it_reads() -> None:
    game = load(DOOR)
    together = [facts_of(game, part.facts) for part in parts(game).parts]
    assert any({"(door open)", "(at home)", "(at away)"} <= own for own in together)


def test_moves_of_one_side_at_a_time_are_serial() -> None:
    assert parts(load(BOTH.replace("(legal robot (do go go))", ""))).kind == "serial"


def test_sides_that_always_do_the_same_are_one_part() -> None:
    unequal = ["(legal robot (do go rest))", "(legal robot (do rest go))"]
    back = "(legal robot (do back back))" + "".join(
        f"(<= (next ({side} 0)) (does robot (do back back)))" for side in ("left", "right")
    )
    assert parts(load(BOTH.replace(unequal[0], "").replace(unequal[1], "") + back)).kind == "one"


def test_facts_that_decide_which_moves_are_possible_are_relevant() -> None:
    """The robot may rest on the left only while the right side is not at its end."""
    bounded = BOTH.replace("(legal robot (do rest rest))", "").replace(
        "(legal robot (do rest go))", "(<= (legal robot (do rest go)) (not (true (right 2))))"
    )
    assert parts(load(bounded)).num_irrelevant == 0


def test_roles_that_choose_at_the_same_time_make_one_part() -> None:
    game = load(BOTH + "(role other) (legal other heads) (legal other tails) (goal other 0)")
    whole = parts(game)
    assert (whole.kind, whole.parts) == ("one", ())
    assert (whole.relevant == ~np.uint64(0)).all()


def test_the_reasoner_gets_one_part() -> None:
    whole = parts(load(HEAPS, engine="reasoner"))
    assert (whole.kind, whole.num_irrelevant) == ("one", 0)


def test_a_game_without_moves_gets_one_part() -> None:
    once = "(role robot) (init on) (legal robot wait) (<= terminal (true on)) (goal robot 9)"
    assert parts(load(once + "(<= (next on) (does robot wait))")).kind == "one"
    assert parts(load(once + "(<= (next on) (true on))")).kind == "one"


def test_a_role_that_never_has_an_action_makes_one_part() -> None:
    game = load("(role robot) (init on) (<= (legal robot go) (true off)) (<= terminal (true on)) (goal robot 9)")
    assert game.circuit is not None
    assert game.circuit.actions == [[]]
    assert parts(game).kind == "one"


def lamps(number: int) -> Game:
    """The robot lights lamp 1, 2, ... or not: as many parts and as many phases."""
    rules = """
        (role robot) (init (step 0))
        (<= (legal robot (light ?n)) (true (step ?n)) (next-of ?n ?m))
        (<= (legal robot (pass ?n)) (true (step ?n)) (next-of ?n ?m))
        (<= (next (step ?m)) (true (step ?n)) (next-of ?n ?m))
        (<= (next (lit ?n)) (does robot (light ?n))) (<= (next (lit ?n)) (true (lit ?n)))
        (<= (goal robot 100) (true (lit 0))) (<= (goal robot 0) (not (true (lit 0))))
    """
    order = " ".join(f"(next-of {n} {n + 1})" for n in range(number))
    return load(f"{rules} {order} (<= terminal (true (step {number})))")


def test_many_parts_are_made_at_once() -> None:
    some, twice = lamps(20), lamps(40)
    assert [len(parts(game).parts) for game in (some, twice)] == [20, 40]
    assert num_calls(parts, twice) <= 2.5 * num_calls(parts, some)


def test_a_game_with_too_many_phases_parts_and_moves_is_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    game = lamps(20)
    monkeypatch.setattr("gamelore.analysis.parts.MOST_CELLS", 20 * 20 * 40)
    assert parts(game).kind == "serial"
    monkeypatch.setattr("gamelore.analysis.parts.MOST_CELLS", 20 * 20 * 40 - 1)
    assert (parts(game).kind, parts(game).parts) == ("one", ())


def random_transitions(game: Game, matches: int, plies: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng, seen = np.random.default_rng(1), []
    states = np.repeat(game.initial[None], matches, axis=0)
    for _ in range(plies):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        going = counts.min(axis=1) > 0
        states, starts, counts = states[going], starts[going], counts[going]
        if not len(states):
            break
        joint = legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]
        following = game.next(states, joint)
        seen.append((states, joint, following))
        states = following
    return seen


SUMS = {
    "nim4": 4,
    "ticTacToeParallel": 2,
    "asteroidsParallel": 2,
    "pentago": 8,
    "blocksWorldParallel": 2,
    "incredible": 2,
}


@pytest.mark.parametrize("name", SUMS)
def test_the_part_of_a_state_and_the_class_of_a_move_decide_on_the_next_part(shared: Path, name: str) -> None:
    game = load(shared / "games" / f"{name}.kif")
    whole = parts(game)
    assert len(whole.parts) == SUMS[name]
    following: list[dict[tuple[bytes, bytes, int], bytes]] = [{} for _ in whole.parts]
    for before, joint, after in random_transitions(game, 128, 60):
        for state, actions, next_state in zip(before, joint.tolist(), after, strict=True):
            move, now = whole.moves[tuple(actions)], (state & whole.clock_mask).tobytes()
            for part, own in zip(whole.parts, following, strict=True):
                key = (state & part.mask).tobytes(), now, int(part.classes[move])
                held = (next_state & part.mask).tobytes()
                assert own.setdefault(key, held) == held


@pytest.mark.parametrize("name", SUMS)
def test_a_move_is_legal_if_its_classes_are_possible_in_all_parts(shared: Path, name: str) -> None:
    game = load(shared / "games" / f"{name}.kif")
    whole = parts(game)
    states = np.concatenate([before for before, *_ in random_transitions(game, 32, 40)])
    legal = game.legal(states)
    starts, counts = legal.by_role(game.num_roles)
    allowed = [
        {whole.moves[joint] for joint in _products(legal.actions, *bounds)}
        for bounds in zip(starts, counts, strict=True)
    ]
    classes: list[dict[tuple[bytes, bytes], set[int]]] = [{} for _ in whole.parts]
    for state, moves in zip(states, allowed, strict=True):
        now = (state & whole.clock_mask).tobytes()
        for part, own in zip(whole.parts, classes, strict=True):
            own.setdefault(((state & part.mask).tobytes(), now), set()).update(part.classes[list(moves)].tolist())
    for state, moves in zip(states, allowed, strict=True):
        now = (state & whole.clock_mask).tobytes()
        for move in _candidates(whole, moves):
            keys = [((state & part.mask).tobytes(), now) for part in whole.parts]
            each = zip(whole.parts, classes, keys, strict=True)
            if all(int(part.classes[move]) in own[key] for part, own, key in each):
                assert move in moves


def _products(actions: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> list[tuple[int, ...]]:
    lists = [actions[start : start + count].tolist() for start, count in zip(starts, counts, strict=True)]
    joint: list[tuple[int, ...]] = [()]
    for own in lists:
        joint = [(*before, action) for before in joint for action in own]
    return joint


def _candidates(whole: Parts, moves: set[int]) -> list[int]:
    """The moves of the phase that allows these moves and the fewest others."""
    phases = [set(np.flatnonzero(own).tolist()) for own in whole.possible]
    return sorted(min((own for own in phases if moves <= own), key=len))


@pytest.mark.parametrize("name", ["lightsOn", "factoringMediumTurtleBrain", "checkers-mustjump", "snake_2008"])
def test_states_that_differ_in_irrelevant_facts_only_are_equivalent(shared: Path, name: str) -> None:
    game = load(shared / "games" / f"{name}.kif")
    whole = parts(game)
    seen: dict[bytes, tuple[object, ...]] = {}
    transitions = random_transitions(game, 64, 50)
    states = np.unique(np.concatenate([before for before, *_ in transitions]), axis=0)
    terminal, goals = game.evaluate(states)
    legal = game.legal(states)
    starts, counts = legal.by_role(game.num_roles)
    for number, state in enumerate(states):
        joint = np.array(_products(legal.actions, starts[number], counts[number]), np.int32)
        after = game.next(np.repeat(state[None], len(joint), axis=0), joint) & whole.relevant
        outcome = bool(terminal[number]), goals[number].tobytes(), frozenset(row.tobytes() for row in after)
        assert seen.setdefault((state & whole.relevant).tobytes(), outcome) == outcome


def test_parts_as_a_game(shared: Path) -> None:
    """One board of asteroidsParallel, played by the moves of both."""
    game = load(shared / "games" / "asteroidsParallel.kif")
    whole = parts(game)
    assert game.circuit is not None
    aims = [aim for aim in conjuncts(game.circuit, game.circuit.outputs["goal"][-1]) if whole.reads(aim)]
    assert whole.joined(aims) == [[0], [1]]
    own = [aim for aim in aims if not whole.reads(aim) & sum(1 << fact for fact in whole.parts[1].facts)]
    piece = part_game(whole, [0], own, [])
    assert [len(actions) for actions in piece.moves] == [3, 3, 3]
    class_of = {int(action): number for number, actions in enumerate(piece.moves) for action in actions}
    for before, joint, after in random_transitions(game, 64, 50):
        made = np.array([[class_of[action]] for action in joint[:, 0].tolist()], np.int32)
        np.testing.assert_array_equal(piece.game.next(piece.states(before), made), piece.states(after))
    np.testing.assert_array_equal(piece.states(game.initial[None])[0], piece.game.initial)
