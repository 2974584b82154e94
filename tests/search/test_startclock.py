"""The startclock: what a pupil learns, solutions of small games in slices, and the moves that solutions advise."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import NoReturn

import numpy as np
import pytest

from gamelore import Game, Position, load
from gamelore.catalogue import play_matches, player
from gamelore.matches.match import MatchState
from gamelore.players.player import Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.search import startclock as module
from gamelore.search.champion import Gamelore, _hardest
from gamelore.search.choice import MoveReport
from gamelore.search.rounds import rehearsed, side_of
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.startclock import Pupil, Solving, advised, has_network, may_be_solved
from gamelore.search.teaching import Teacher
from gamelore.search.thinking import Search
from gamelore.solver.solution import solve, stored
from walks import Plain, drawn_walk

MEMORY = 256 << 20


@pytest.fixture
def unstored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of an earlier test is used."""
    monkeypatch.setattr(module, "stored", lambda game: None)


def solved(game: Game) -> Solving:
    solving = Solving(game, MEMORY)
    solving.run()
    assert solving.is_done
    return solving


def turn_of(state: MatchState, role: int, seconds: float = 0.01) -> Turn:
    return replace(state.turn(role, stream(1)), deadline=monotonic() + seconds)


@pytest.mark.usefixtures("unstored")
def test_slices_give_the_solution_of_the_solver() -> None:
    game = load("othello4")
    solving, slices = Solving(game, MEMORY), 0
    while not solving.is_done:
        solving.run(monotonic())  # so each slice ends at the next step
        slices += 1
    assert slices > 1
    expected = solve(game, cache=False)
    assert solving.solution is not None
    assert (solving.solution.values, solving.solution.distance) == (expected.values, expected.distance)
    assert np.array_equal(solving.solution.goals, expected.goals)


@pytest.mark.parametrize("name", ["goofspiel", "connectfour"])
def test_games_that_are_given_up(name: str) -> None:
    """One has moves at the same time, the other more positions than fit."""
    solving = solved(load(name))
    assert solving.solution is None
    solving.run()


def test_games_of_another_form_are_not_tried() -> None:
    assert may_be_solved(load("tictactoe"))
    assert not may_be_solved(load("tictactoe3p"))
    assert not may_be_solved(load("pegsolitaire"))
    assert not may_be_solved(load("tictactoe", engine="reasoner"))
    assert not may_be_solved(load(load("tictactoe").rulesheet.text.replace("oplayer", "random")))


@pytest.mark.usefixtures("unstored")
def test_a_solution_that_is_not_wanted_any_more_is_given_up() -> None:
    solving = Solving(load("connect3"), MEMORY)
    solving.run(monotonic())
    solving.close()
    assert solving._thread is not None
    solving._thread.join(60)
    assert solving.is_done
    assert solving.solution is None


def test_an_error_of_the_solver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "stored", fails)
    with pytest.raises(ZeroDivisionError):
        Solving(load("tictactoe"), MEMORY).run()


def test_an_error_after_the_end_of_a_slice_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, progress: Callable[[str, int, int], None], **__: object) -> NoReturn:
        progress("states", 1, 2)
        raise ZeroDivisionError

    monkeypatch.setattr(module, "solve", fails)
    monkeypatch.setattr(module, "stored", lambda game: None)
    solving = Solving(load("tictactoe"), MEMORY)
    solving.run(monotonic())
    with pytest.raises(ZeroDivisionError):
        solving.run()
    solving.run()
    assert solving.is_done


def test_a_solution_that_ends_while_a_slice_begins_is_not_waited_for() -> None:
    solving = solved(load("tictactoe"))

    class Changes(threading.Condition):
        """The thread has the lock first, and ends."""

        def __enter__(self) -> bool:
            solving.is_done = True
            return super().__enter__()

    solving.is_done, solving._changes = False, Changes()
    begin = monotonic()
    solving.run(begin + 10.0)
    assert solving.is_done
    assert monotonic() < begin + 5.0


def test_a_player_that_is_not_needed_any_more_gives_up() -> None:
    thinker, state = player("gamelore"), MatchState(PositionGraph(load("connect3")))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    thinker._solving_of(state.graph.game).run(monotonic())
    solving = thinker._solving
    assert solving is not None
    assert solving._thread is not None
    del thinker
    gc.collect()
    solving._thread.join(60)
    assert solving.is_done


def test_a_stored_solution_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gamelore solve` has stored it; it is not computed again."""
    values = solve(load("othello4")).values

    def fails(*_: object, **__: object) -> NoReturn:
        raise AssertionError("solved again")

    monkeypatch.setattr(module, "solve", fails)
    game = load("othello4")
    assert stored(game) is not None
    solution = solved(game).solution
    assert solution is not None
    assert solution.values == values
    assert stored(load("connectfour")) is None


def after(game: Game, *marks: str) -> Position:
    position = game.start()
    for mark in marks:
        position = position.play([mark if mark in moves else "noop" for moves in position.legal.values()])
    return position


def advice_in(game: Game, position: Position) -> tuple[module.SolvedChoice, dict[str, float], list[str]]:
    """What the solution advises to the role that chooses, with the slips by move, and the role's moves."""
    role = next(index for index, moves in enumerate(position.legal.values()) if len(moves) > 1)
    solution = solved(game).solution
    assert solution is not None
    advice = advised(solution, game, game.state(sorted(position.facts)), role)
    assert advice is not None
    moves = list(position.legal.values())[role]
    return advice, {moves[index]: slip for index, slip in zip(advice.moves, advice.slips, strict=True)}, moves


def test_only_the_centre_answers_a_corner() -> None:
    game = load("tictactoe")
    advice, slips, _ = advice_in(game, after(game, "(mark 1 1)"))
    assert not advice.is_won
    assert list(slips) == ["(mark 2 2)"]
    # x has 7 moves, none of which loses: o gets 50 after each
    assert slips["(mark 2 2)"] == 50


def test_slips_are_the_mean_over_replies() -> None:
    """All nine first moves of x draw. A corner has one right reply of eight, and o loses after the other seven.

    After the centre, the four corners draw and the four edges lose.
    """
    game = load("tictactoe")
    _, slips, _ = advice_in(game, game.start())
    assert len(slips) == 9
    assert slips["(mark 1 1)"] == pytest.approx((50 + 7 * 100) / 8)
    assert slips["(mark 2 2)"] == pytest.approx((4 * 50 + 4 * 100) / 8)


def test_a_win_has_the_distance_to_its_end() -> None:
    """x has two in a row: it wins in one ply, or later with other moves that keep the win."""
    game = load("tictactoe")
    advice, slips, moves = advice_in(game, after(game, "(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 3 3)"))
    assert advice.is_won
    fastest = int(advice.moves[advice.plies.argmin()])
    assert moves[fastest] == "(mark 1 3)"
    assert advice.plies.min() == 0
    assert slips["(mark 1 3)"] == 100


def test_positions_out_of_reach_have_no_advice() -> None:
    game = load("tictactoe")
    solution = solved(game).solution
    assert solution is not None
    facts = [f"(cell {row} {column} b)" for row in (1, 2, 3) for column in (1, 2, 3)]
    assert advised(solution, game, game.state([*facts, "(control oplayer)"]), 1) is None


def test_advice_counts_with_the_end_by_the_step_counter() -> None:
    """Held against plain recursion in games with their counter: which moves are best, and whether they win."""
    late = 0
    for seed in range(6):
        drawn = drawn_walk(seed)
        walk = replace(drawn, leaves={leaf: 100 if goal > 50 else 0 for leaf, goal in drawn.leaves.items()})
        game = load(walk.counted(6))
        solving, plain = solved(game), Plain.of(game.start())
        assert solving.solution is not None
        assert solving.solution.left_out
        for facts in (facts for facts, after in plain.after.items() if len(after) > 1):
            role, state = plain.chooser[facts], game.state(sorted(facts))
            values = [abs(100 * role - minimax(plain, after)) for after in plain.after[facts]]
            advice = advised(solving.solution, game, state, role, solving.plies_left(state))
            without = advised(solving.solution, game, state, role)
            assert advice is not None
            assert without is not None
            assert advice.moves.tolist() == [move for move, value in enumerate(values) if value == max(values)]
            assert advice.is_won == (max(values) == 100)
            late += advice.moves.tolist() != without.moves.tolist()
    assert late > 10, "the counter matters in many positions"


def minimax(plain: Plain, facts: frozenset[str]) -> int:
    """The goal of the first role if both play best."""
    if facts in plain.ends:
        return plain.ends[facts]
    return (max, min)[plain.chooser[facts]](minimax(plain, after) for after in plain.after[facts])


def test_a_solution_with_all_of_its_facts_has_no_limit() -> None:
    solving = solved(load("tictactoe"))
    assert solving.plies_left(solving.game.initial) is None


def test_visits_and_slips_choose_among_moves_that_keep_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of visits 0.6, 0.3 and 0.1, and results of replies 0.5, 0.9 and 0.95: the sums are 1.1, 1.2 and 1.05."""
    visits = [900, 60, 30, 0, 10]
    reports = [MoveReport(index, count, 50.0, 0, 100, None, False) for index, count in enumerate(visits)]
    search = Search(load("tictactoe"))
    monkeypatch.setattr(Search, "moves", lambda self, role: reports)
    advice = module.SolvedChoice(np.array([1, 2, 4]), False, np.array([50.0, 90.0, 95.0]), np.array([-1, -1, -1]))
    assert _hardest(advice, search, 0, stream(2)) == 2


@pytest.mark.parametrize(
    "players", [("gamelore:solve=yes,simulations=20", "perfect"), ("perfect", "gamelore:solve=yes,simulations=20")]
)
def test_it_plays_the_solution(players: tuple[str, str]) -> None:
    """Connect3 is a win for the first player in nine plies, othello4 one for the second in twelve.

    Against perfect play, the player wins within this distance, and exactly then.
    """
    for name in ("connect3", "othello4"):
        game = load(name)
        solution = solve(game)
        played = play_matches(game, players, 3)
        assert {record.goals for record in played} == {solution.values}
        wins = solution.values[players.index("gamelore:solve=yes,simulations=20")] == 100
        lengths = {len(record.moves) for record in played}
        assert lengths == {solution.distance} if wins else max(lengths) <= solution.distance


def test_it_does_not_lose_a_drawn_position() -> None:
    spec = "gamelore:solve=yes,simulations=2"
    for players in ([spec, "perfect"], ["perfect", spec]):
        assert {record.goals for record in play_matches(load("tictactoe"), players, 10)} == {(50, 50)}
    assert play_matches(load("tictactoe"), [spec, "random"], 5) == play_matches(load("tictactoe"), [spec, "random"], 5)


@pytest.mark.usefixtures("unstored")
def test_it_solves_in_the_startclock_and_then_needs_no_search() -> None:
    thinker, state = player("gamelore:teaching=0"), MatchState(PositionGraph(load("othello4")))
    assert isinstance(thinker, Gamelore)
    game = state.graph.game
    thinker.prepare(game, 0)
    thinker.begin(0, state.started(0))
    solving = thinker._solving
    assert solving is not None
    assert not solving.is_done, "only the clock of START is used"
    while not solving.is_done:
        assert thinker.ponder(turn_of(state, 0))
    while state.end is None:
        role = (
            next(role for role in state.pending() if state.has_choice(role))
            if any(map(state.has_choice, (0, 1)))
            else None
        )
        choices = [0, 0]
        if role is not None:
            before = thinker._lanes[0].search.num_walks
            choices[role] = int(thinker.choose(turn_of(state, role, 5.0))[0])
            assert role == 0 or thinker._lanes[0].search.num_walks == before, "the second role wins by the solution"
        state.play(choices)
    assert tuple(state.goals) == (0, 100)


def test_without_a_startclock_games_are_solved_only_if_told_so() -> None:
    for spec, is_solved in (("gamelore", False), ("gamelore:solve=yes", True), ("gamelore:solve=no", False)):
        thinker, state = player(spec), MatchState(PositionGraph(load("tictactoe")))
        assert isinstance(thinker, Gamelore)
        thinker.begin(0, state.started(0))
        assert (thinker._solving is not None) == is_solved
        if spec == "gamelore:solve=no":
            thinker.prepare(state.graph.game, 0)
            assert thinker._solving is None


@pytest.mark.usefixtures("unstored")
def test_a_player_that_does_not_ponder_solves_before_the_match_if_told_so() -> None:
    thinker, state = player("gamelore:solve=yes,ponder=no"), MatchState(PositionGraph(load("tictactoe")))
    assert isinstance(thinker, Gamelore)
    game = state.graph.game
    thinker.prepare(game, 0)
    thinker.begin(0, replace(state.started(0), startclock=0.0))
    assert thinker._solution_of(game) is None, "there is no time"
    begin = monotonic()
    thinker.begin(0, replace(state.started(0), startclock=600.0))
    assert thinker._solution_of(game) is not None
    assert monotonic() < begin + 60.0, "what is left of the startclock is not waited for"


@pytest.mark.usefixtures("unstored")
def test_another_game_ends_the_solution_of_the_last_one() -> None:
    thinker = player("gamelore:teaching=0")
    assert isinstance(thinker, Gamelore)
    first, second = (MatchState(PositionGraph(load(name))) for name in ("connect3", "othello4"))
    thinker.prepare(first.graph.game, 0)
    solving = thinker._solving
    thinker.ponder(turn_of(first, 0))
    thinker.prepare(second.graph.game, 0)
    assert thinker._solving is not solving
    assert solving is not None
    assert solving._thread is not None
    solving._thread.join(60)
    assert solving.is_done


# ---- pupils -------------------------------------------------------------------------------------------------------

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A startclock of a second has a network."""
    monkeypatch.setattr(module, "LEAST_STARTCLOCK", 0.5)


def pupil_of(name: str, startclock: float) -> Pupil:
    pupil = Pupil(load(name), stream(1), GrowthSettings(), QUICK)
    pupil.plan(startclock)
    return pupil


def finished(pupil: Pupil) -> Pupil:
    while not pupil.is_done:
        pupil.teach(monotonic() + 0.02)
    return pupil


def test_a_short_startclock_teaches_a_linear_value_only() -> None:
    pupil = pupil_of("breakthrough", 0.2)
    while pupil.seconds < 0.4:
        pupil.teach(monotonic() + 0.02)
    assert pupil._self_play is None
    assert pupil.linear_seconds == pytest.approx(pupil.seconds, abs=0.05)
    assert pupil.value is not None
    assert pupil.value.network is None
    assert not pupil.is_done


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("has_won", [True, False])
def test_a_network_is_used_if_it_wins_the_contest(has_won: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Contest, "is_won", has_won)
    pupil = finished(pupil_of("breakthrough", 0.6))
    assert pupil._self_play is not None
    assert pupil.seconds >= 0.7 * 0.6, "until the contest"
    assert pupil.linear_seconds < 0.5 * pupil.seconds
    value = pupil.value
    assert value is not None
    assert (value.network is not None) == has_won
    assert pupil.simulations > pupil.teacher.simulations
    if value.network is not None:
        before = value.network.entries.copy()
        pupil._self_play.play(monotonic() + 0.3)
        assert np.array_equal(value.network.entries, before), "the network that has won does not change"


@pytest.mark.usefixtures("soon")
def test_a_contest_is_played_to_its_end_in_the_same_time_for_both() -> None:
    pupil = pupil_of("breakthrough", 0.6)
    while pupil._contest is None:
        assert not pupil.is_deciding
        pupil.teach(monotonic() + 0.02)
    assert pupil.is_deciding
    rounds = pupil._contest._rounds
    networks = [len(side.grower.prior.network.offsets) for side in rounds.sides]
    assert networks[0] > networks[1] == 0
    assert min(side.walks for side in rounds.sides) >= 64
    finished(pupil)
    assert not pupil.is_deciding
    assert len(rounds.scores) == 4
    assert (pupil.value is not None and pupil.value.network is not None) == (sum(rounds.scores) > 2)


@pytest.mark.usefixtures("soon")
def test_on_a_busy_machine_the_clock_counts() -> None:
    """Nothing is left of the startclock for a network, so there is none."""
    pupil = pupil_of("breakthrough", 1.0)
    assert pupil.begin(1.0) is pupil
    pupil._began = monotonic() - 1.0
    while pupil.teacher.generation < 2:
        pupil.teach(monotonic() + 0.02)
    assert pupil._self_play is None
    assert not pupil.is_done


@pytest.mark.usefixtures("soon")
def test_there_is_no_contest_before_the_first_match_of_a_network() -> None:
    pupil = pupil_of("breakthrough", 1.0)
    while pupil._self_play is None:
        pupil.teach(monotonic() + 0.02)
    assert not pupil._self_play.matches
    pupil._began = monotonic() - 1.0
    finished(pupil)
    assert pupil._contest is not None
    assert pupil._self_play.matches > 0


@pytest.mark.usefixtures("soon")
def test_a_pupil_whose_teacher_ends_late_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Teacher, "is_done", True)
    pupil = pupil_of("breakthrough", 1.0)
    assert not pupil.is_done, "there is time for a network"
    pupil._spent = 0.8
    assert pupil.is_done


@pytest.mark.usefixtures("soon")
def test_the_next_match_goes_on_with_the_network() -> None:
    pupil = finished(pupil_of("breakthrough", 0.6))
    self_play = pupil._self_play
    assert self_play is not None
    matches = self_play.matches
    assert not pupil.begin(0.6).is_done
    finished(pupil)
    assert pupil._self_play is self_play
    assert self_play.matches > matches


@pytest.mark.usefixtures("soon")
def test_a_short_startclock_after_a_long_one_teaches_the_linear_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Contest, "is_won", True)
    pupil = finished(pupil_of("breakthrough", 0.6))
    assert pupil._self_play is not None
    positions, walks = pupil._self_play.positions, pupil.teacher.simulations
    pupil.begin(0.2)
    while pupil.seconds < 0.3:
        pupil.teach(monotonic() + 0.02)
    assert not pupil.is_done
    assert pupil._self_play.positions == positions
    assert pupil.teacher.simulations > walks
    assert pupil.value is not None
    assert pupil.value.network is not None, "what has won stays"


@pytest.mark.usefixtures("soon")
def test_a_trial_of_playouts_comes_before_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Teacher, "is_in_trial", True)
    pupil = pupil_of("breakthrough", 0.6)
    while pupil.seconds < 0.8:
        pupil.teach(monotonic() + 0.02)
    assert pupil._self_play is None


def test_games_that_have_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    game = load("breakthrough")
    assert has_network(game)
    monkeypatch.setattr(module, "_MOST_NETWORK_NODES", 10)
    assert not has_network(game)


def test_a_game_without_facts_has_no_network() -> None:
    game = load(
        "(role a) (role b) (legal a go) (legal b go) (legal b stay) (goal a 50) (goal b 50)(<= terminal (not (role a)))"
    )
    assert game.circuit is not None
    assert game.circuit.num_facts == 0
    assert not has_network(game)


def test_a_rehearsal_measures_how_fast_a_side_is() -> None:
    game = load("tictactoe")
    effort = rehearsed(game, side_of(game, None, GrowthSettings()))
    assert effort.speed == effort.walks / effort.seconds > 1000
