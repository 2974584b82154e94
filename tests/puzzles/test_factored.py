"""Puzzles that are searched by parts: sums by hand, their solutions, and solutions that the rules do not allow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.analysis.parts import PartGame, parts
from gamelore.catalogue import player
from gamelore.matches.match import MatchState
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.puzzles import factored
from gamelore.puzzles.factored import FactoredSearch, alternatives
from gamelore.puzzles.outlook import Reached
from gamelore.puzzles.portfolio import BY_PARTS, Exhaustion, PuzzleSearch
from gamelore.search.champion import Gamelore

NUMBERS = "".join(f"(after {i} {i + 1})" for i in range(12))
LANE = """
(init ({x} 0))
(<= (next ({x} ?n)) (does robot (go {x})) (true ({x} ?m)) (after ?m ?n))
(<= (next ({x} ?m)) (true ({x} ?m)) (not (does robot (go {x}))))
(<= (legal robot (go {x})) (true ({x} ?m)) (after ?m ?n))
"""
RACE = f"""
(role robot) {NUMBERS} {LANE.format(x="a")} {LANE.format(x="b")} {LANE.format(x="c")}
(<= terminal (true (a 3)) (true (b 4)))
(<= (goal robot 100) (true (a 3)) (true (b 4)))
(<= (goal robot 0) (not (true (a 3)))) (<= (goal robot 0) (not (true (b 4))))
"""  # lane c leads nowhere
EITHER = RACE.replace("(<= (goal robot 100) (true (a 3)) (true (b 4)))", "(<= (goal robot 100) ok)").replace(
    "(<= terminal (true (a 3)) (true (b 4)))",
    "(<= ok (true (c 2))) (<= ok (true (a 3)) (true (b 4))) (<= terminal ok)",
)
AT_ONCE = f"""
(role robot) {NUMBERS} (init (a 0)) (init (b 0)) (length 1) (length 2) (length 3)
(<= (legal robot (steps ?x ?y)) (length ?x) (length ?y))
(<= (next (a ?n)) (does robot (steps ?x ?y)) (true (a ?m)) (plus ?m ?x ?n))
(<= (next (b ?n)) (does robot (steps ?x ?y)) (true (b ?m)) (plus ?m ?y ?n))
(<= (plus ?m 1 ?n) (after ?m ?n)) (<= (plus ?m 2 ?n) (after ?m ?k) (after ?k ?n))
(<= (plus ?m 3 ?n) (plus ?m 2 ?k) (after ?k ?n))
(<= terminal (true (a 4))) (<= terminal (true (b 9)))
(<= terminal (true (a 12))) (<= terminal (true (b 12)))
(<= out (true (a ?n)) (not (after ?n 12)))
(<= (goal robot 100) (true (a 4)) (true (b 9)))
(<= (goal robot 0) (not (true (a 4)))) (<= (goal robot 0) (not (true (b 9))))
"""  # both steps are made at once; the first one to arrive ends the match, so both must arrive in the same ply
SPOILED = RACE.replace("(goal robot 0) (not (true (a 3)))", "(goal robot 0) (true (a 2)) (true (b 2))").replace(
    "(<= terminal (true (a 3)) (true (b 4)))", "(<= terminal (true (a 3))) (<= terminal (true (b 4)))"
)  # the first lane that arrives ends the match, so no lane may be finished before the other


def by_parts(game: Game) -> PuzzleSearch:
    search = PuzzleSearch(game, methods=("by parts",))
    search.begin(game.initial, stream(1))
    search.run()
    return search


def test_an_alternative_has_a_group_of_parts_for_each_aim() -> None:
    game = load(RACE)
    whole = parts(game)
    (groups,) = alternatives(whole)
    facts = [{game.fact_text(f) for number in group.parts for f in whole.parts[number].facts} for group in groups]
    assert sorted(min(own) for own in facts) == ["(a 0)", "(b 0)"], "nothing of lane c"


def test_serial_groups_are_solved_one_after_the_other() -> None:
    search = by_parts(load(RACE))
    assert search.solution is not None
    assert search.is_proved
    assert (search.solution.goal, search.solution.method, len(search.solution.actions)) == (100, "by parts", 3 + 4)


def test_one_of_the_alternatives_is_enough() -> None:
    game = load(EITHER)
    assert [len(groups) for groups in alternatives(parts(game))] == [1, 2]
    search = by_parts(game)
    assert search.solution is not None
    assert search.solution.goal == 100


def test_alternatives_share_the_memory() -> None:
    game, shares = load(EITHER), list[float]()

    def new_search(part: Game, share: float) -> PuzzleSearch:
        shares.append(share)
        return PuzzleSearch(part, share)

    assert list(FactoredSearch(parts(game), new_search, {}).steps(game.initial, stream(1)))
    assert set(shares) == {1 / 2}


@pytest.mark.parametrize("rules", [RACE, EITHER, AT_ONCE])
def test_the_games_of_groups_are_compiled_once(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, made = list[Game](), factored.part_game

    def counted(*given: Any) -> PartGame:
        compiled.append((part := made(*given)).game)
        return part

    monkeypatch.setattr(factored, "part_game", counted)
    game = load(rules)
    search = PuzzleSearch(game, methods=(BY_PARTS,))
    for _ in range(2):
        search.begin(game.initial, stream(1))
        search.run(100_000)
        assert search.solution is not None
        assert search.solution.goal == 100
    assert len(compiled) == len(search._games_of_groups) > 0


@pytest.mark.parametrize(("startclock", "num_ready"), [(None, 3), (60.0, 3), (0.0, 1)])
def test_the_games_of_all_groups_are_compiled_in_the_startclock(startclock: float | None, num_ready: int) -> None:
    """The first method makes a step in `prepare`, which compiles the first of two alternatives for the first lane."""
    thinker, state = player("gamelore:seconds=0.1"), MatchState(PositionGraph(load(EITHER)))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    lanes = np.arange(2)
    thinker.begin(0, replace(state.started(0), lanes=lanes, matches=lanes, startclock=startclock))
    ready = [len(thinker._puzzle_of(thinker._lanes[lane])._games_of_groups) for lane in (0, 1)]
    assert ready == [num_ready, num_ready if num_ready > 1 else 0]


def test_parallel_groups_arrive_in_the_same_ply() -> None:
    """A needs 2 plies for 4 steps, B 3 plies for 9; so A makes 3 plies, such as 1, 1, 2."""
    game = load(AT_ONCE)
    whole = parts(game)
    assert whole.kind == "parallel"
    search = by_parts(game)
    assert search.solution is not None
    assert (search.solution.goal, len(search.solution.actions)) == (100, 3)


def test_a_joined_plan_that_fails_the_check_is_dropped() -> None:
    search = by_parts(load(SPOILED))
    assert (search.solution, search.is_running, search.is_proved) == (None, False, False)


def test_a_puzzle_of_one_part_is_left_to_the_other_methods() -> None:
    search = by_parts(load("pegsolitaire"))
    assert (search.solution, search.is_running) == (None, False)


def test_positions_that_differ_in_irrelevant_facts_only_are_one_position() -> None:
    """The lanes are rings; lane c does not count. So there are 13 * 13 - 1 positions, not 13 times as many."""
    game = load(
        RACE.replace("(<= (legal robot (go c)) (true (c ?m)) (after ?m ?n))", "(legal robot (go c))(after 12 0)")
    )
    whole = parts(game)
    assert whole.num_irrelevant == 13
    kept = Exhaustion(Reached(game, 1 << 20), game.initial, None, whole.relevant)
    list(kept.steps())
    everything = Exhaustion(Reached(game, 1 << 20), game.initial, None)
    list(everything.steps())
    assert kept.is_complete
    assert everything.is_complete
    assert (kept.bound, everything.bound) == (100, 100)
    assert (kept.reached.num, everything.reached.num) == (168, 13 * 168)


def test_a_part_that_may_run_out_of_moves_is_not_irrelevant() -> None:
    """The last step on lane c may be the only way to let a ply pass."""
    whole = parts(load(RACE))
    facts = [whole.game.fact_text(fact) for part in whole.parts for fact in part.facts]
    held = {fact for fact in facts if whole.game.state([fact]) @ np.ones(1, np.uint64) & whole.relevant[0]}
    assert "(c 11)" in held


SOLVED = {"asteroidsParallel": 10, "blocksWorldParallel": 3, "blocksWorldSerial": 6, "incredible": 13}


@pytest.mark.parametrize("name", SOLVED)
def test_sums_of_the_public_repository(shared: Path, name: str) -> None:
    game = load(shared / "games" / f"{name}.kif")
    search = by_parts(game)
    assert search.solution is not None
    position = game.start()
    for action in search.solution.actions.tolist():
        position = position.play(game.move_text(0, action))
    assert position.is_terminal
    assert list(position.goals.values()) == [100]
    assert len(search.solution.actions) == SOLVED[name]


def test_lockstep_gives_up_when_a_group_has_no_positions_left() -> None:
    game = load(AT_ONCE.replace("(true (b 9))", "(true (b 5))").replace("(true (a 4))", "(true (a 1))"))
    whole = parts(game)
    assert by_parts(game).solution is None
    assert list(FactoredSearch(whole, lambda part, share: PuzzleSearch(part), {}).steps(game.initial, np.uint64(1)))
